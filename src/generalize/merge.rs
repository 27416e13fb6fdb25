//! `merge`: a hierarchy made of a column's own values, for columns that have none.
//!
//! The values that at least q individuals hold are listed, all others are `other` at every level,
//! where q is the greatest of the smallest class sizes that the policy requires, at least 2. If
//! fewer than q individuals hold one of these others, the listed value with the fewest holders, of
//! several the first in order, is one of them too, unless it is the only one. With n
//! listed values and L levels, level i leaves about `n / s^i` labels, at least two, s the least
//! integer with `s^(L+1) >= n`:
//! - `by = "names"`: neighbours in the order of the values, or in that of the policy, join: always
//!   the two runs for which `h1 m2 + h2 m1` is least, where a run of m values has h holders,
//!   because that adds least to the loss. A run is `first..last`.
//! - `by = "counts"`: the values with the most holders keep their names, and more of the others
//!   become `other` at each level.
//!
//! In a policy `hierarchy = { merge = { levels = 3 } }`; the run counts the holders and makes the tree.
//!
//! # Contract
//! Any type in, matched on its [text form](Value::text_form); `Utf8View` out. NULL stays NULL.
//! Every value has a label; level 0 joins the values that are not listed. Values that are all
//! numbers are in the order of numbers, also as text. No label, and no record, names a value that
//! fewer than q individuals hold. The private record holds the tree, without counts.
//!
//! Under `--recoding` the values join as in the earlier release; those that have become rare since
//! are `other`, and a run that ends in one is named after the ends that it still has. Sets of a
//! method that shows regions stay those of the earlier release, which named their values already.
//!
//! If `other` is a listed value, the label of the others is `other values`, or one with a number;
//! `label = "..."` sets another one, which must be no value of the column. By names the others join
//! nothing below the top. Losses count the values of the input, as they do with a hierarchy file.
//!
//! What the labels reveal: which values at least q individuals hold, and, by counts, which of them
//! are held by the most. Which values are joined depends on the counts of the input, so two
//! releases of overlapping inputs may join differently.
//!
//! ```
//! use datafusion_kanon::extend::{Decimal, Setting};
//! use datafusion_kanon::internals::generalize::merge::{FrequentValues, Merge};
//! let merge = Merge::of(&[("levels".into(), Setting::Number(Decimal::integer(1)))])?;
//! let mut counted = FrequentValues::new(5);
//! for (value, holders) in [("flu", 7), ("gout", 2), ("hives", 9), ("itch", 4), ("mumps", 8), ("rickets", 20)] {
//!     counted.add(value.to_owned(), holders);
//! }
//! let tree = merge.tree(&counted)?;
//! let rows: Vec<String> = tree.rows.rows().iter().map(|row| row.join(" ")).collect();
//! assert_eq!(rows, [
//!     "flu flu flu..hives",
//!     "hives hives flu..hives",
//!     "mumps mumps mumps..rickets",
//!     "rickets rickets mumps..rickets",
//!     "other other other",
//! ]);
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::DataType;

#[cfg(doc)]
use super::Value;
pub use super::frequent_values::FrequentValues;
use super::frequent_values::{free_label, is_made_label};
use super::hierarchy::merged_levels;
use super::value_runs::Runs;
use super::{Generalizer, hierarchy_file};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::known::OTHER;
use crate::parameter::{Absent, Kind, Parameter, Setting, Settings, TextTable};
use crate::plural::plural;

/// The name and documentation.
pub const DOC: &Doc = &Doc {
    name: "merge",
    summary: "joins the values of a column level by level; those with fewer holders than k, or than the least size of a \
              class if that is greater, are `other`. Labels reveal which values k or more individuals hold and, by counts, \
              which of these are the most frequent",
    parameters: "levels",
    example: "hierarchy = { merge = { levels = 3 } }",
    paper: None,
};

/// The parameters, as the table behind the key holds them.
pub const PARAMETERS: &[Parameter] = &[LEVELS, BY, ORDER, LABEL];

/// The number of levels.
const LEVELS: Parameter = Parameter {
    name: "levels",
    kind: Kind::Count,
    absent: Absent::Refused,
    summary: "the number of levels between the values and the top, at most 8",
};
/// What chooses the values that join.
const BY: Parameter = Parameter {
    name: "by",
    kind: Kind::Choice(&[NAMES, COUNTS]),
    absent: Absent::Means(Setting::Word(Cow::Borrowed(NAMES))),
    summary: "whether neighbours join, or the values with the fewest holders",
};
/// The order of the values.
const ORDER: Parameter = Parameter {
    name: "order",
    kind: Kind::Words,
    absent: Absent::Unset,
    summary: "the order of the values, if it is not that of their names",
};
/// The label of the others.
const LABEL: Parameter = Parameter {
    name: "label",
    kind: Kind::Word,
    absent: Absent::Unset,
    summary: "the label of the values that few hold; without it `other`, or `other values` if that is a value",
};
/// Neighbours in the order of the values join.
pub(crate) const NAMES: &str = "names";
/// The values with the fewest holders join the others.
pub(crate) const COUNTS: &str = "counts";

/// The top's label, which no other label may be.
const TOP: &str = "*";
/// The most levels.
const MOST_LEVELS: u64 = 8;

/// The tree of a column's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedTree {
    /// The label of the others, which is no listed value.
    pub label: String,
    /// A row for each listed value with its labels from level 0 on, and one of the label alone for all
    /// others if there are any.
    pub rows: TextTable,
    /// Whether it is that of an earlier release, which may lack a value that enough individuals hold now.
    pub is_followed: bool,
}

impl MergedTree {
    /// Returns the rows of the listed values.
    pub fn listed(&self) -> impl Iterator<Item = &Vec<String>> {
        self.rows.rows().iter().filter(|row| row.first() != Some(&self.label))
    }
}

/// The rule by which a tree is made, as a policy states it.
#[derive(Clone, PartialEq, Eq)]
pub struct Merge {
    levels: usize,
    is_by_counts: bool,
    order: Option<Vec<String>>,
    label: Option<String>,
}

/// Shows no `order`: its entries are values of the column.
impl fmt::Debug for Merge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = if self.is_by_counts { COUNTS } else { NAMES };
        write!(f, "Merge({} levels by {by})", self.levels)
    }
}

impl Merge {
    /// Creates the rule from its settings.
    ///
    /// # Errors
    /// A policy error for a setting that is wrong or missing.
    pub fn of(given: &[(String, Setting)]) -> Result<Self> {
        let settings = Settings::by_name(DOC, PARAMETERS, given)?;
        let levels = settings.count(LEVELS.name)?;
        if levels > MOST_LEVELS {
            return Err(
                Error::policy(format!("expected at most {MOST_LEVELS}, found {levels}")).at(LEVELS.name)
            );
        }
        let is_by_counts = settings.word(BY.name)? == COUNTS;
        let order = settings.some_words(ORDER.name)?;
        if let Some(order) = &order {
            if is_by_counts {
                return Err(
                    Error::policy("goes with by = \"names\", not with by = \"counts\"").at(ORDER.name)
                );
            }
            let mut seen = HashSet::new();
            if let Some(at) = order.iter().position(|value| !seen.insert(value)) {
                return Err(Error::policy(format!("entry {} repeats an earlier one", at + 1)).at(ORDER.name));
            }
        }
        let label = settings.some_word(LABEL.name)?.map(str::to_owned);
        if label.as_ref().is_some_and(|label| label == TOP || label.chars().any(char::is_control)) {
            let why = "expected a text other than `*` and without control characters";
            return Err(Error::policy(why).at(LABEL.name));
        }
        Ok(Self { levels: usize::try_from(levels).map_err(Error::internal)?, is_by_counts, order, label })
    }

    /// Returns the label that the policy gives the others.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Checks that the rule suits values of this type: a label is told from them as a text.
    ///
    /// # Errors
    /// A policy error.
    pub fn check_type(&self, data_type: &DataType) -> Result<()> {
        let is_text = match data_type {
            DataType::Dictionary(_, values) => values.is_string(),
            plain => plain.is_string(),
        };
        match self.label.is_none() || is_text {
            true => Ok(()),
            false => Err(Error::policy("goes with columns of text; remove it: no other value is `other`")
                .at(LABEL.name)),
        }
    }

    /// Makes the tree.
    ///
    /// # Errors
    /// A policy error if no value is listed, if the rule's own order lacks one that is, or if its label
    /// is a value.
    pub fn tree(&self, counted: &FrequentValues) -> Result<MergedTree> {
        let least_holders = counted.least_holders;
        let mut listed: Vec<&(String, u64)> = counted.listed.iter().collect();
        if listed.is_empty() {
            let none = plural(counted.others, "distinct value is", "distinct values are");
            return Err(Error::policy(format!(
                "none of its {none} held by {least_holders} or more, so all would become `{}`; give the column \
                 another hierarchy or another role",
                self.label().unwrap_or(OTHER)
            )));
        }
        if counted.has_label() {
            return Err(Error::policy("is a value of the column; choose another text").at(LABEL.name));
        }
        let label = self.label.clone().unwrap_or_else(|| free_label(counted.values()));
        // CSV holds numbers as text; they are in the order of numbers, too.
        if listed.iter().all(|(value, _)| Decimal::parse(value).is_ok()) {
            listed.sort_by_cached_key(|(value, _)| Decimal::parse(value).ok());
        }
        if let Some(order) = &self.order {
            let places: HashMap<&String, usize> = order.iter().zip(0..).collect();
            let place = |value: &String| places.get(value);
            let missing = listed.iter().filter(|(value, _)| place(value).is_none()).count();
            if missing > 0 {
                let missing = plural(missing as u64, "value that it lacks is", "values that it lacks are");
                let why = format!("{missing} held by {least_holders} or more; add each to the list");
                return Err(Error::policy(why).at(ORDER.name));
            }
            listed.sort_by_cached_key(|(value, _)| place(value).copied());
        }
        if counted.one_joins(listed.len()) {
            remove_rarest(&mut listed, |(_, holders)| *holders);
        }
        let names: Vec<&String> = listed.iter().map(|(value, _)| value).collect();
        let holders: Vec<u64> = listed.iter().map(|(_, holders)| *holders).collect();
        let labels = match self.is_by_counts {
            true => self.by_counts(&names, &holders, &label),
            false => self.by_names(&names, &holders, &label),
        };
        let tree = self.tree_of(&names, labels, counted.others > 0, label);
        self.check(&tree).map_err(|_| Error::internal("merge: the rows that were made are no tree"))?;
        Ok(tree)
    }

    /// Follows the tree of an earlier release: values that it does not list, and those that are not
    /// listed any more, join the others, whose label stays. The same values join at each level; a run
    /// is named after the ends that it still has.
    ///
    /// # Errors
    /// An unmet error if the rule makes no such tree, or if no value is left.
    pub fn follow(&self, earlier: &MergedTree, counted: &FrequentValues) -> Result<MergedTree> {
        self.check(earlier)
            .map_err(|_| Error::unmet("the tree of the earlier release is none that this rule makes"))?;
        let listed: HashMap<&String, u64> = counted.listed.iter().map(|(value, n)| (value, *n)).collect();
        let holders = |row: &&Vec<String>| row.first().and_then(|value| listed.get(value)).copied();
        let mut kept: Vec<&Vec<String>> = earlier.listed().filter(|row| holders(row).is_some()).collect();
        if kept.is_empty() {
            let why = format!(
                "no value that the earlier release lists is held by {} or more; release without --recoding",
                counted.least_holders
            );
            return Err(Error::unmet(why));
        }
        // A value that only the earlier tree lacks has enough holders.
        if kept.len() == listed.len() && counted.one_joins(kept.len()) {
            remove_rarest(&mut kept, holders);
        }
        let has_others = counted.others > 0 || kept.len() < listed.len();
        Ok(MergedTree { is_followed: true, ..self.labelled_again(&kept, has_others, &earlier.label) })
    }

    /// Returns the tree of a table that was not counted: every value is another one. It has the
    /// levels of each tree.
    pub fn placeholder_tree(&self) -> MergedTree {
        let label = self.label().unwrap_or(OTHER).to_owned();
        self.tree_of(&[], vec![Vec::new(); self.levels], true, label)
    }

    /// Makes the levels of a tree, level 0 first.
    ///
    /// # Errors
    /// A policy error for a table that is not such a tree.
    pub fn levels(&self, tree: &MergedTree) -> Result<Vec<Arc<dyn Generalizer>>> {
        self.check(tree)?;
        merged_levels(&tree.rows, &tree.label)
    }

    /// Checks that a table is a tree that the rule makes of some counts.
    fn check(&self, tree: &MergedTree) -> Result<()> {
        let (rows, label) = (tree.rows.rows(), &tree.label);
        hierarchy_file::check(rows, |row| format!("row {}", row + 1))?;
        let is_others = |row: &Vec<String>| row.iter().all(|cell| cell == label);
        let (listed, has_others) = match rows.split_last() {
            Some((last, listed)) if is_others(last) => (listed, true),
            _ => (rows, false),
        };
        let is_row = |row: &Vec<String>| {
            row.len() == self.levels + 2 && row.first().is_some_and(|value| value != label)
        };
        let is_own = match self.label() {
            Some(own) => own == label,
            None => is_made_label(label),
        };
        // Its labels are those that the values have which it joins.
        let is_labelled =
            || tree.rows == self.labelled_again(&listed.iter().collect::<Vec<_>>(), has_others, label).rows;
        let is_wide = rows.iter().all(|row| row.len() == self.levels + 2);
        match is_own && is_wide && listed.iter().all(is_row) && is_labelled() {
            true => Ok(()),
            false => Err(Error::policy("the tree in the private record is none that this rule makes")),
        }
    }

    /// Returns rows of a tree as a tree with labels of their own.
    fn labelled_again(&self, rows: &[&Vec<String>], has_others: bool, other: &str) -> MergedTree {
        let names: Vec<&String> = rows.iter().filter_map(|row| row.first()).collect();
        let cells = |level: usize| rows.iter().filter_map(move |row| row.get(level + 1));
        let levels = 1..=self.levels;
        let labels = match self.is_by_counts {
            true => {
                let label = |(name, cell): (&&String, &String)| {
                    if *name == cell { cell.clone() } else { other.to_owned() }
                };
                levels.map(|level| names.iter().zip(cells(level)).map(label).collect()).collect()
            }
            false => {
                let cells: Vec<Vec<&String>> = levels.map(|level| cells(level).collect()).collect();
                let runs = cells.iter().map(|cells| cells.chunk_by(|a, b| a == b).map(<[_]>::len).collect());
                run_labels(&names, &runs.collect::<Vec<_>>(), other)
            }
        };
        self.tree_of(&names, labels, has_others, other.to_owned())
    }

    /// Returns the tree of these values, with their labels at each level from level 1 on.
    fn tree_of(
        &self,
        names: &[&String],
        labels: Vec<Vec<String>>,
        has_others: bool,
        label: String,
    ) -> MergedTree {
        let mut rows: Vec<Vec<String>> =
            names.iter().map(|name| vec![(*name).clone(), (*name).clone()]).collect();
        for of_level in labels {
            rows.iter_mut().zip(of_level).for_each(|(row, label)| row.push(label));
        }
        if has_others {
            rows.push(vec![label.clone(); self.levels + 2]);
        }
        MergedTree { label, rows: rows.into(), is_followed: false }
    }

    /// Returns the number of levels between the values and the top.
    pub fn count_levels(&self) -> usize {
        self.levels
    }

    /// Returns how many labels each level leaves of `listed` values.
    fn groups(&self, listed: usize) -> impl Iterator<Item = usize> {
        let power = |step: usize| (0..=self.levels).fold(1usize, |power, _| power.saturating_mul(step));
        let step = (2..).find(|step| power(*step) >= listed).unwrap_or(2);
        (1..=self.levels).scan(listed, move |groups, _| {
            *groups = groups.div_ceil(step).max(listed.min(2));
            Some(*groups)
        })
    }

    fn by_names(&self, names: &[&String], holders: &[u64], other: &str) -> Vec<Vec<String>> {
        let mut runs = Runs::of(holders);
        let lengths = self.groups(names.len()).map(|groups| {
            runs.join(groups);
            runs.lengths()
        });
        run_labels(names, &lengths.collect::<Vec<_>>(), other)
    }

    fn by_counts(&self, names: &[&String], holders: &[u64], other: &str) -> Vec<Vec<String>> {
        let mut most_first: Vec<usize> = (0..names.len()).collect();
        most_first.sort_by_key(|at| Reverse(holders[*at]));
        let mut rank = vec![0; names.len()];
        most_first.into_iter().enumerate().for_each(|(place, at)| rank[at] = place);
        // One of the labels is that of the others.
        let label = |groups: usize, (name, rank): (&&String, &usize)| match rank + 1 < groups {
            true => (*name).clone(),
            false => other.to_owned(),
        };
        let of_level = |groups: usize| names.iter().zip(&rank).map(|one| label(groups, one)).collect();
        self.groups(names.len()).map(of_level).collect()
    }
}

/// Removes the first of the entries that the fewest hold.
fn remove_rarest<T, N: Ord>(all: &mut Vec<T>, holders: impl Fn(&T) -> N) {
    let rarest = all.iter().enumerate().min_by_key(|(_, one)| holders(one)).map(|(at, _)| at);
    rarest.into_iter().for_each(|at| drop(all.remove(at)));
}

/// Returns the labels of values at each level, from the lengths of the runs in which they join.
fn run_labels(names: &[&String], lengths: &[Vec<usize>], other: &str) -> Vec<Vec<String>> {
    // No value contains it, and none continues its dots, so each run has a label of its own.
    let touches = names.iter().any(|name| name.starts_with('.') || name.ends_with('.'));
    let end = if touches { "-" } else { "" };
    let is_free = |dots: &String| !other.contains(dots) && !names.iter().any(|name| name.contains(dots));
    let dots = (2..).map(|dots| ".".repeat(dots) + end).find(is_free).unwrap_or_default();
    let of_level = |lengths: &Vec<usize>| {
        let mut rest = names;
        let mut labels = Vec::with_capacity(names.len());
        for length in lengths {
            let (run, after) = rest.split_at(*length);
            rest = after;
            let label = match run {
                [name] => (*name).clone(),
                [first, .., last] => format!("{first}{dots}{last}"),
                [] => continue,
            };
            labels.extend(std::iter::repeat_n(label, run.len()));
        }
        labels
    };
    lengths.iter().map(of_level).collect()
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
