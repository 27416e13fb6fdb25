//! What the texts of a column say to a reader who lacks its hierarchy: an attacker, or a reviewer
//! who has the release alone.
//!
//! ```text
//! Rome           the value Rome, and no other
//! {Oslo; Rome}   these values
//! 941*   *13     the values that begin, or end, with these characters
//! cold..flu      the values from the first to the last, as numbers if all are numbers
//! other          the values that no text of the column names; the record may say another label for these
//! *              every value, and a missing one
//! ```
//! A label with another meaning, such as a region of towns, names no value that the reader knows,
//! so it covers none. An attack that reads texts may therefore miss classes that hold a value; it
//! finds none that does not name it. It misses classes, never rows of a class, so fewer matches than k cannot come
//! of it; the output says which columns were read so.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::generalize::region_label::Values;
use crate::generalize::{RegionLabel, Value};

/// The texts of a column, read without its hierarchy.
#[derive(Default)]
pub(super) struct TextReading {
    /// The label of the values that no text names.
    other: String,
    /// The values that a text names alone or in braces, if one is that label.
    named: Option<HashSet<String>>,
}

impl TextReading {
    /// Reads the regions of a column, with the label of the values that none names.
    pub(super) fn new(regions: &[RegionLabel], other: &str) -> Self {
        let has_other = regions.iter().any(|region| names(region).any(|name| name == other));
        Self { other: other.to_owned(), named: has_other.then(|| regions.iter().flat_map(names).collect()) }
    }

    /// Returns whether the text of a region says that it covers a value.
    pub(super) fn covers(&self, region: &RegionLabel, value: &Value) -> bool {
        let (values, or_missing) = match region {
            RegionLabel::Everything => return true,
            RegionLabel::Missing => return *value == Value::Null,
            RegionLabel::Values { values, or_missing } => (values, *or_missing),
        };
        let Some(text) = value.text_form() else { return or_missing };
        let is_unnamed = || self.named.as_ref().is_some_and(|named| !named.contains(&text));
        let mut names = names(region);
        match values {
            Values::Label(label) if covers_by_form(label, &text) => true,
            _ => names.any(|name| name == text || (name == self.other && is_unnamed())),
        }
    }
}

/// Returns the texts of the values that a region names.
fn names(region: &RegionLabel) -> impl Iterator<Item = String> + '_ {
    let (one, set): (Option<String>, &[Value]) = match region {
        RegionLabel::Values { values: Values::One(value), .. } => (value.text_form(), &[]),
        RegionLabel::Values { values: Values::Label(label), .. } => (Some(label.clone()), &[]),
        RegionLabel::Values { values: Values::Set(all), .. } => (None, all),
        _ => (None, &[]),
    };
    one.into_iter().chain(set.iter().filter_map(Value::text_form))
}

/// Returns whether a label with `*` at one end, or a run `first..last`, covers the text of a value.
fn covers_by_form(label: &str, text: &str) -> bool {
    let (head, tail) = (label.trim_end_matches('*'), label.trim_start_matches('*'));
    let is_mask = |part: &str| part.len() < label.len() && !part.contains('*');
    if is_mask(head) {
        return text.starts_with(head);
    }
    if is_mask(tail) {
        return text.ends_with(tail);
    }
    let Some((first, last)) = label.split_once("..") else { return false };
    let number = |text: &str| text.parse::<f64>().ok();
    let compare = |a: &str, b: &str| match (number(a), number(b)) {
        (Some(a), Some(b)) => a.partial_cmp(&b),
        (None, None) => Some(a.cmp(b)),
        _ => None,
    };
    let is_in_order = |a: &str, b: &str| compare(a, b).is_some_and(Ordering::is_le);
    is_in_order(first, text) && is_in_order(text, last)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may")]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;
    use crate::known::OTHER;

    fn covered(texts: &[&str], values: &[&str]) -> Vec<Vec<bool>> {
        let parse = |text: &&str| RegionLabel::parse(Some(text), &DataType::Utf8View);
        let regions: Vec<RegionLabel> = texts.iter().map(parse).collect();
        let reading = TextReading::new(&regions, OTHER);
        let of = |region: &RegionLabel| {
            values.iter().map(|value| reading.covers(region, &Value::Text((*value).to_owned()))).collect()
        };
        regions.iter().map(of).collect()
    }

    #[test]
    fn texts_are_read_as_a_person_reads_them() {
        let texts = ["Rome", "{Oslo; Rome}", "R*", "*lo", "*", "Bern..Oslo", "South", "\\{Rome"];
        let found = covered(&texts, &["Rome", "Oslo", "Cairo"]);
        let expected = [
            [true, false, false],
            [true, true, false],
            [true, false, false],
            [false, true, false],
            [true, true, true],
            [false, true, true],
            [false, false, false],
            [false, false, false],
        ];
        assert_eq!(found, expected);
        // The mark of a fixed width, and runs of numbers.
        assert_eq!(
            covered(&["01067", "010**", "9..11"], &["01067", "10", "9", "02"]),
            [[true, false, false, false], [true, false, false, false], [false, true, true, false],]
        );
    }

    #[test]
    fn other_is_what_no_text_names() {
        let found = covered(&["other", "flu", "{cold; gout}"], &["flu", "gout", "scurvy", "other"]);
        assert_eq!(found[0], [false, false, true, true]);
        let regions: Vec<RegionLabel> = ["other", "other values", "flu"]
            .map(|text| RegionLabel::parse(Some(text), &DataType::Utf8View))
            .into();
        let reading = TextReading::new(&regions, "other values");
        let read = |region: usize, value: &str| reading.covers(&regions[region], &Value::Text(value.into()));
        assert!(
            read(0, "other") && !read(0, "gout") && read(1, "gout") && !read(1, "other") && !read(1, "flu")
        );
        let or_missing = RegionLabel::parse(Some("{flu} or missing"), &DataType::Utf8View);
        let reading = TextReading::new(&[or_missing.clone(), RegionLabel::Missing], OTHER);
        assert!(
            reading.covers(&or_missing, &Value::Null) && reading.covers(&RegionLabel::Missing, &Value::Null)
        );
        assert!(!reading.covers(&RegionLabel::Missing, &Value::Text("flu".into())));
    }
}
