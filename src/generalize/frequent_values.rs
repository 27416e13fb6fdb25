//! The values of a column that enough individuals hold, and the label of those that they do not.

use std::collections::HashSet;

use crate::known::OTHER;

/// The values of a column that enough individuals hold, in their order.
#[derive(Clone)]
pub struct FrequentValues {
    pub(super) least_holders: u64,
    /// Each value with its number of holders.
    pub(super) listed: Vec<(String, u64)>,
    /// The number of all other values.
    pub(super) others: u64,
    /// The holders of all other values.
    other_holders: u64,
    /// The most holders of a value, and the holders of all values, listed or not.
    most_holders: u64,
    all_holders: u64,
    /// A label, and whether a value has its text.
    label: Option<String>,
    has_label: bool,
}

impl FrequentValues {
    /// Creates the list of no value; a value needs `least_holders`.
    pub fn new(least_holders: u64) -> Self {
        Self {
            least_holders,
            listed: Vec::new(),
            others: 0,
            other_holders: 0,
            most_holders: 0,
            all_holders: 0,
            label: None,
            has_label: false,
        }
    }

    /// Watches for values with the text of a label.
    #[must_use]
    pub fn watching(self, label: Option<&str>) -> Self {
        Self { label: label.map(str::to_owned), ..self }
    }

    /// Adds the next value; returns whether it is listed. One with the text of the value before it counts
    /// with it, as those of more holders.
    pub fn add(&mut self, value: String, holders: u64) -> bool {
        self.most_holders = self.most_holders.max(holders);
        self.all_holders = self.all_holders.saturating_add(holders);
        self.has_label |= self.label.as_ref() == Some(&value);
        if !self.are_enough(holders) {
            self.others += 1;
            self.other_holders = self.other_holders.saturating_add(holders);
            return false;
        }
        match self.listed.last_mut() {
            Some(last) if last.0 == value => last.1 = last.1.max(holders),
            _ => self.listed.push((value, holders)),
        }
        true
    }

    /// Returns the holders of the values that are not listed, each counted once for each such value
    /// until [others_are_held_by](Self::others_are_held_by) is told.
    pub fn other_holders(&self) -> u64 {
        self.other_holders
    }

    /// Sets how many individuals hold one or more of the values that are not listed.
    pub fn others_are_held_by(&mut self, individuals: u64) {
        self.other_holders = individuals;
    }

    /// Returns the values that are listed, in their order.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.listed.iter().map(|(value, _)| value.as_str())
    }

    /// Returns whether a value, listed or not, has at least one in so many of the holders.
    pub fn is_one_held_by_one_in(&self, count: u64) -> bool {
        u128::from(self.most_holders) * u128::from(count) >= u128::from(self.all_holders)
    }

    /// Returns whether no value was counted.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.others == 0
    }

    /// Returns the number of values that a tree lists.
    pub fn listed(&self) -> usize {
        self.listed.len() - usize::from(self.one_joins(self.listed.len()))
    }

    /// Returns whether the rarest of so many listed values joins the others, which too few
    /// individuals hold without it. It is enough alone, because it is listed; the only one stays.
    pub(super) fn one_joins(&self, listed: usize) -> bool {
        self.others > 0 && !self.are_enough(self.other_holders) && listed > 1
    }

    /// Returns whether so many holders are enough for a value.
    pub fn are_enough(&self, holders: u64) -> bool {
        holders >= self.least_holders
    }

    /// Returns whether a value has the label that is watched for.
    pub(super) fn has_label(&self) -> bool {
        self.has_label
    }
}

/// Returns the first label of the others that is none of these values.
pub(super) fn free_label<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let values: HashSet<&str> = values.collect();
    (0u64..).map(label).find(|label| !values.contains(label.as_str())).unwrap_or_default()
}

/// Returns whether the program makes this label of the others.
pub(super) fn is_made_label(text: &str) -> bool {
    let number = match text.strip_prefix(VALUES) {
        Some("") => Some(1),
        Some(number) => number.trim_start().parse().ok(),
        None => Some(0),
    };
    number.is_some_and(|number| label(number) == text)
}

/// The second label of the others.
const VALUES: &str = "other values";

/// Returns the labels of the others in the order in which they are tried.
fn label(number: u64) -> String {
    match number {
        0 => OTHER.to_owned(),
        1 => VALUES.to_owned(),
        number => format!("{VALUES} {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_no_value() {
        let free = |values: &[&str]| free_label(values.iter().copied());
        assert_eq!(free(&["a", "others"]), "other");
        assert_eq!(free(&["other"]), "other values");
        assert_eq!(free(&["other values 2", "other values", "other"]), "other values 3");
        assert!(
            ["other", "other values", "other values 2", "other values 10"].into_iter().all(is_made_label)
        );
        let wrong = ["", "others", "other values 0", "other values 1", "other values 02", "other values2"];
        assert!(!wrong.into_iter().any(is_made_label));
        assert!(!is_made_label("other values  2") && !is_made_label("other values "));
    }
}
