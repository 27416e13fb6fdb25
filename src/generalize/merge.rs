//! `merge`: a hierarchy made of a column's own values, for columns that have none.
//!
//! The values that at least q individuals hold are listed, all others are `other` at every level,
//! where q is the greatest of the smallest class sizes that the policy requires, at least 2. With n
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
//! `other` counts as one leaf, so no loss sees what joining the rare values costs. By names it
//! joins nothing below the top: if fewer than q individuals hold it, its rows are suppressed, or
//! the column is.
//!
//! What the labels reveal: which values at least q individuals hold, and, by counts, which of them
//! are held by the most. Which values are joined depends on the counts of the input, so two
//! releases of overlapping inputs may join differently.
//!
//! ```
//! use datafusion_kanon::decimal::Decimal;
//! use datafusion_kanon::generalize::merge::{FrequentValues, Merge};
//! use datafusion_kanon::parameter::Setting;
//! let merge = Merge::of(&[("levels".into(), Setting::Number(Decimal::integer(1)))])?;
//! let mut counted = FrequentValues::new(5);
//! for (value, holders) in [("flu", 7), ("gout", 2), ("hives", 9), ("mumps", 8), ("rickets", 20)] {
//!     counted.add(value.to_owned(), holders);
//! }
//! let tree = merge.tree(&counted)?;
//! let rows: Vec<String> = tree.rows().iter().map(|row| row.join(" ")).collect();
//! assert_eq!(rows, [
//!     "flu flu flu..hives",
//!     "hives hives flu..hives",
//!     "mumps mumps mumps..rickets",
//!     "rickets rickets mumps..rickets",
//!     "other other other",
//! ]);
//! # Ok::<(), datafusion_kanon::error::Error>(())
//! ```

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

#[cfg(doc)]
use super::Value;
use super::hierarchy::merged_levels;
use super::{Generalizer, hierarchy_file};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};
pub use crate::known::OTHER;
use crate::parameter::{Absent, Kind, Parameter, Setting, Settings, TextTable};
use crate::plural::plural;

/// The name and documentation.
pub const DOC: &Doc = &Doc {
    name: "merge",
    summary: "joins the values of a column level by level; those with fewer holders than k are `other`. Labels reveal which \
              values k or more individuals hold and, by counts, which of these are the most frequent",
    parameters: "levels",
    example: "hierarchy = { merge = { levels = 3 } }",
    paper: None,
};

/// The parameters, as the table behind the key holds them.
pub const PARAMETERS: &[Parameter] = &[LEVELS, BY, ORDER];

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
/// Neighbours in the order of the values join.
pub(crate) const NAMES: &str = "names";
/// The values with the fewest holders become [`OTHER`].
pub(crate) const COUNTS: &str = "counts";

/// The most levels.
const MOST_LEVELS: u64 = 8;

/// The values of a column that enough individuals hold, in their order.
#[derive(Clone)]
pub struct FrequentValues {
    least_holders: u64,
    /// Each value with its number of holders.
    listed: Vec<(String, u64)>,
    /// The number of all other values.
    others: u64,
    /// The most holders of a value, and the holders of all values, listed or not.
    most_holders: u64,
    all_holders: u64,
}

impl FrequentValues {
    /// Creates the list of no value; a value needs `least_holders`.
    pub fn new(least_holders: u64) -> Self {
        Self { least_holders, listed: Vec::new(), others: 0, most_holders: 0, all_holders: 0 }
    }

    /// Adds the next value. One with the text of the value before it counts with it, as those of
    /// more holders.
    pub fn add(&mut self, value: String, holders: u64) {
        self.most_holders = self.most_holders.max(holders);
        self.all_holders = self.all_holders.saturating_add(holders);
        match self.listed.last_mut() {
            _ if holders < self.least_holders || value == OTHER => self.others += 1,
            Some(last) if last.0 == value => last.1 = last.1.max(holders),
            _ => self.listed.push((value, holders)),
        }
    }

    /// Returns whether a value, listed or not, has at least one in so many of the holders.
    pub fn is_one_held_by_one_in(&self, count: u64) -> bool {
        u128::from(self.most_holders) * u128::from(count) >= u128::from(self.all_holders)
    }

    /// Returns whether no value was counted.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.others == 0
    }

    /// Returns the number of values that are listed.
    pub fn listed(&self) -> usize {
        self.listed.len()
    }
}

/// The rule by which a tree is made, as a policy states it.
#[derive(Clone, PartialEq, Eq)]
pub struct Merge {
    levels: usize,
    is_by_counts: bool,
    order: Option<Vec<String>>,
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
        Ok(Self { levels: usize::try_from(levels).map_err(Error::internal)?, is_by_counts, order })
    }

    /// Makes the tree: a row for each listed value with its labels from level 0 on, and one for all
    /// others if there are any.
    ///
    /// # Errors
    /// A policy error if no value is listed, or if the rule's own order lacks one that is.
    pub fn tree(&self, counted: &FrequentValues) -> Result<TextTable> {
        let least_holders = counted.least_holders;
        let mut listed: Vec<&(String, u64)> = counted.listed.iter().collect();
        if listed.is_empty() {
            let none = plural(counted.others, "distinct value is", "distinct values are");
            return Err(Error::policy(format!(
                "none of its {none} held by {least_holders} or more, so all would become `{OTHER}`; give the column \
                 another hierarchy or another role"
            )));
        }
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
        let names: Vec<&String> = listed.iter().map(|(value, _)| value).collect();
        let holders: Vec<u64> = listed.iter().map(|(_, holders)| *holders).collect();
        let labels = match self.is_by_counts {
            true => self.by_counts(&names, &holders),
            false => self.by_names(&names, &holders),
        };
        let tree = self.tree_of(&names, labels, counted.others > 0);
        self.check(&tree).map_err(|_| Error::internal("merge: the rows that were made are no tree"))?;
        Ok(tree)
    }

    /// Follows the tree of an earlier release: values that it does not list, and those that are not
    /// listed any more, join the others. The same values join at each level; a run is named after
    /// the ends that it still has.
    ///
    /// # Errors
    /// An unmet error if the rule makes no such tree, or if no value is left.
    pub fn follow(&self, earlier: &TextTable, counted: &FrequentValues) -> Result<TextTable> {
        self.check(earlier)
            .map_err(|_| Error::unmet("the tree of the earlier release is none that this rule makes"))?;
        let listed: HashSet<&String> = counted.listed.iter().map(|(value, _)| value).collect();
        let is_kept = |row: &&Vec<String>| row.first().is_some_and(|value| listed.contains(value));
        let kept: Vec<&Vec<String>> = earlier.rows().iter().filter(is_kept).collect();
        if kept.is_empty() {
            let why = format!(
                "no value that the earlier release lists is held by {} or more; release without --recoding",
                counted.least_holders
            );
            return Err(Error::unmet(why));
        }
        let has_others = counted.others > 0 || kept.len() < listed.len();
        Ok(self.labelled_again(&kept, has_others))
    }

    /// Returns the tree of a table that was not counted: every value is another one. It has the
    /// levels of each tree.
    pub fn placeholder_tree(&self) -> TextTable {
        self.tree_of(&[], vec![Vec::new(); self.levels], true)
    }

    /// Makes the levels of a tree, level 0 first.
    ///
    /// # Errors
    /// A policy error for a table that is not such a tree.
    pub fn levels(&self, tree: &TextTable) -> Result<Vec<Arc<dyn Generalizer>>> {
        self.check(tree)?;
        merged_levels(tree, OTHER)
    }

    /// Checks that a table is a tree that the rule makes of some counts.
    fn check(&self, tree: &TextTable) -> Result<()> {
        let rows = tree.rows();
        hierarchy_file::check(rows, |row| format!("row {}", row + 1))?;
        let is_others = |row: &Vec<String>| row.iter().all(|cell| cell == OTHER);
        let (listed, has_others) = match rows.split_last() {
            Some((last, listed)) if is_others(last) => (listed, true),
            _ => (rows, false),
        };
        let is_row = |row: &Vec<String>| {
            row.len() == self.levels + 2 && row.first().is_some_and(|value| value != OTHER)
        };
        // Its labels are those that the values have which it joins.
        let is_labelled = || *tree == self.labelled_again(&listed.iter().collect::<Vec<_>>(), has_others);
        let is_wide = rows.iter().all(|row| row.len() == self.levels + 2);
        match is_wide && listed.iter().all(is_row) && is_labelled() {
            true => Ok(()),
            false => Err(Error::policy("the tree in the private record is none that this rule makes")),
        }
    }

    /// Returns rows of a tree as a tree with labels of their own.
    fn labelled_again(&self, rows: &[&Vec<String>], has_others: bool) -> TextTable {
        let names: Vec<&String> = rows.iter().filter_map(|row| row.first()).collect();
        let cells = |level: usize| rows.iter().filter_map(move |row| row.get(level + 1));
        let levels = 1..=self.levels;
        let labels = match self.is_by_counts {
            true => {
                let label = |(name, cell): (&&String, &String)| {
                    if *name == cell { cell.clone() } else { OTHER.to_owned() }
                };
                levels.map(|level| names.iter().zip(cells(level)).map(label).collect()).collect()
            }
            false => {
                let cells: Vec<Vec<&String>> = levels.map(|level| cells(level).collect()).collect();
                let runs = cells.iter().map(|cells| cells.chunk_by(|a, b| a == b).map(<[_]>::len).collect());
                run_labels(&names, &runs.collect::<Vec<_>>())
            }
        };
        self.tree_of(&names, labels, has_others)
    }

    /// Returns the tree of these values, with their labels at each level from level 1 on.
    fn tree_of(&self, names: &[&String], labels: Vec<Vec<String>>, has_others: bool) -> TextTable {
        let mut rows: Vec<Vec<String>> =
            names.iter().map(|name| vec![(*name).clone(), (*name).clone()]).collect();
        for of_level in labels {
            rows.iter_mut().zip(of_level).for_each(|(row, label)| row.push(label));
        }
        if has_others {
            rows.push(vec![OTHER.to_owned(); self.levels + 2]);
        }
        rows.into()
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

    fn by_names(&self, names: &[&String], holders: &[u64]) -> Vec<Vec<String>> {
        let mut runs = Runs::of(holders);
        let lengths = self.groups(names.len()).map(|groups| {
            runs.join(groups);
            runs.0.values().map(|run| run.values).collect()
        });
        run_labels(names, &lengths.collect::<Vec<_>>())
    }

    fn by_counts(&self, names: &[&String], holders: &[u64]) -> Vec<Vec<String>> {
        let mut most_first: Vec<usize> = (0..names.len()).collect();
        most_first.sort_by_key(|at| Reverse(holders[*at]));
        let mut rank = vec![0; names.len()];
        most_first.into_iter().enumerate().for_each(|(place, at)| rank[at] = place);
        // One of the labels is that of the others.
        let label = |groups: usize, (name, rank): (&&String, &usize)| match rank + 1 < groups {
            true => (*name).clone(),
            false => OTHER.to_owned(),
        };
        let of_level = |groups: usize| names.iter().zip(&rank).map(|one| label(groups, one)).collect();
        self.groups(names.len()).map(of_level).collect()
    }
}

/// Returns the labels of values at each level, from the lengths of the runs in which they join.
fn run_labels(names: &[&String], lengths: &[Vec<usize>]) -> Vec<Vec<String>> {
    // No value contains it, and none continues its dots, so each run has a label of its own.
    let touches = names.iter().any(|name| name.starts_with('.') || name.ends_with('.'));
    let end = if touches { "-" } else { "" };
    let is_free = |dots: &String| !names.iter().any(|name| name.contains(dots));
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

/// Neighbouring values that have joined.
#[derive(Clone, Copy)]
struct ValueRun {
    values: usize,
    holders: u64,
}

/// Runs by the places of their first values.
struct Runs(BTreeMap<usize, ValueRun>, BTreeSet<(u128, usize)>);

impl Runs {
    /// Creates a run of each value.
    fn of(holders: &[u64]) -> Self {
        let runs = holders.iter().map(|holders| ValueRun { values: 1, holders: *holders }).enumerate();
        let mut runs = Self(runs.collect(), BTreeSet::new());
        (0..holders.len()).for_each(|first| runs.insert_cost(first));
        runs
    }

    /// Returns by how much the loss grows when a run and the next one join.
    fn added(&self, first: usize) -> Option<u128> {
        let run = self.0.get(&first)?;
        let next = self.0.get(&(first + run.values))?;
        let of = |run: &ValueRun, next: &ValueRun| u128::from(run.holders) * next.values as u128;
        Some(of(run, next) + of(next, run))
    }

    fn insert_cost(&mut self, first: usize) {
        if let Some(added) = self.added(first) {
            self.1.insert((added, first));
        }
    }

    fn remove_cost(&mut self, first: usize) {
        if let Some(added) = self.added(first) {
            self.1.remove(&(added, first));
        }
    }

    /// Joins neighbours until `groups` runs are left, always those that add the least.
    fn join(&mut self, groups: usize) {
        while self.0.len() > groups {
            let Some(first) = self.1.first().map(|(_, first)| *first) else { return };
            let before = self.0.range(..first).next_back().map(|(first, _)| *first);
            let next = first + self.0.get(&first).map_or(0, |run| run.values);
            let changed = [before, Some(first), Some(next)];
            changed.iter().flatten().for_each(|first| self.remove_cost(*first));
            if let (Some(next), Some(run)) = (self.0.remove(&next), self.0.get_mut(&first)) {
                run.values += next.values;
                run.holders = run.holders.saturating_add(next.holders);
            }
            changed.iter().flatten().for_each(|first| self.insert_cost(*first));
        }
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
