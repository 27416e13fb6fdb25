//! Counted classes as a model sees them: the counts of a group in order, class by class.

use arrow::array::{ArrayRef, BooleanArray, Int64Array};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::EmitTo;

use super::interned::{Interned, NULL};
use crate::engine::into_engine;
use crate::model::{Class, Counted, Distribution, ReadFacts, SensitiveColumn, ValueCount};

/// The columns that are counted besides the quasi-identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountedColumns {
    /// Whether an individual column is counted; without one, rows are.
    pub(super) individual: bool,
    /// Whether a sensitive column is counted.
    pub(super) sensitive: bool,
    /// Whether a model reads the values of its whole group.
    pub(super) compared: bool,
}

impl CountedColumns {
    /// Returns the number of columns before the quasi-identifiers.
    pub(super) fn columns(self) -> usize {
        usize::from(self.individual) + usize::from(self.sensitive)
    }
}

/// The key of one count: a class of a group and, where they are counted, a value and an individual
/// in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entry {
    pub(super) group: usize,
    pub(super) class: u32,
    pub(super) value: u32,
    pub(super) individual: u32,
}

/// The classes of each group of an aggregate, counted.
pub(super) trait CountedClasses: Send + Sync {
    /// Adds rows: the columns without constants, the group of each row, and the row's weight, 1
    /// where none is given.
    fn update(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        weights: Option<&Int64Array>,
    ) -> Result<()>;

    /// Calls `see` for each counted class, in the order of groups: with its group, the numbers of
    /// its individuals where they are counted, and the class as a model sees it. A model reads
    /// these facts of `column`.
    fn for_each_class(&self, emit: EmitTo, column: &SensitiveColumn, see: &mut See<'_>) -> Result<()>;

    /// Returns the counts of each of the `groups` emitted groups, for [`merge`](Self::merge) in
    /// another state.
    fn state(&self, emit: EmitTo, groups: usize) -> Result<Vec<ArrayRef>>;

    /// Returns the state of groups of one row each; rows that `filter` drops count nothing.
    fn state_of_rows(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        weights: Option<&Int64Array>,
    ) -> Result<Vec<ArrayRef>>;

    /// Adds the counts of other states to these groups.
    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()>;

    /// Removes the emitted groups and moves the groups behind them to the front.
    fn forget(&mut self, emit: EmitTo) -> Result<()>;

    /// Returns the memory used, in bytes.
    fn bytes(&self) -> usize;
}

/// What is done with each class: its group, the numbers of its individuals where they are counted,
/// and the class.
pub(super) type See<'a> = dyn FnMut(usize, &[u32], &Class<'_>) + 'a;

/// Returns the entries of the emitted groups, in order.
pub(super) fn sorted(entries: impl Iterator<Item = (Entry, u64)>, emit: EmitTo) -> Vec<(Entry, u64)> {
    let mut entries: Vec<(Entry, u64)> = entries.filter(|(entry, _)| is_emitted(emit, entry)).collect();
    entries.sort_unstable();
    entries
}

/// Calls `see` for each class of sorted `entries`. A model reads these facts of `column`, which has
/// these `values`.
pub(super) fn for_each_class(
    looks: CountedColumns,
    mut entries: Vec<(Entry, u64)>,
    values: &Interned,
    column: &SensitiveColumn,
    see: &mut See<'_>,
) -> Result<()> {
    if !looks.compared {
        for group in entries.chunk_by(|(a, _), (b, _)| a.group == b.group) {
            for_each_class_of(looks, group, Distribution::NONE, see);
        }
        return Ok(());
    }
    let mut facts = None;
    if column.reads() != ReadFacts::default() {
        // Values are numbered as they came; facts are of values in their order.
        let ranks = values.ranks();
        let rank = |value: u32| ranks.get(value as usize).copied().unwrap_or(NULL);
        entries.iter_mut().for_each(|(entry, _)| entry.value = rank(entry.value));
        entries.sort_unstable();
        let values = values.ordered_values()?;
        facts = values.map(|values| column.facts(&values)).transpose().map_err(into_engine)?;
    }
    for group in entries.chunk_by(|(a, _), (b, _)| a.group == b.group) {
        let mut input = distribution(looks, group);
        if let Some(facts) = &facts {
            input = facts.add_to(input).map_err(into_engine)?;
        }
        for_each_class_of(looks, group, &input, see);
    }
    Ok(())
}

/// Counts the values of a group: the rows with each, or the distinct individuals.
fn distribution(looks: CountedColumns, group: &[(Entry, u64)]) -> Distribution {
    let counted = if looks.individual { Counted::Individuals } else { Counted::Rows };
    let mut pairs: Vec<(Option<u32>, u32, u64)> = group
        .iter()
        .filter(|(entry, _)| !looks.individual || entry.individual != NULL)
        .map(|(entry, rows)| (value_of(entry), entry.individual, *rows))
        .collect();
    pairs.sort_unstable();
    let of_value = pairs.chunk_by(|(a, ..), (b, ..)| a == b).map(|same| {
        let count = match counted {
            Counted::Rows => same.iter().map(|(.., rows)| rows).sum(),
            Counted::Individuals => same.chunk_by(|(_, a, _), (_, b, _)| a == b).count() as u64,
        };
        ValueCount { value: same.first().and_then(|(value, ..)| *value), count }
    });
    match counted {
        Counted::Rows => Distribution::of_rows(of_value.collect()),
        Counted::Individuals => {
            let of_value = of_value.collect();
            pairs.sort_unstable_by_key(|(_, individual, _)| *individual);
            let individuals = pairs.chunk_by(|(_, a, _), (_, b, _)| a == b).count() as u64;
            Distribution::of_individuals(of_value, individuals)
        }
    }
}

fn for_each_class_of(looks: CountedColumns, group: &[(Entry, u64)], input: &Distribution, see: &mut See<'_>) {
    let (mut individuals, mut sensitive) = (Vec::new(), Vec::new());
    for class in group.chunk_by(|(a, _), (b, _)| a.class == b.class) {
        individuals.clear();
        sensitive.clear();
        individuals
            .extend(class.iter().map(|(entry, _)| entry.individual).filter(|individual| *individual != NULL));
        individuals.sort_unstable();
        individuals.dedup();
        for same in class.chunk_by(|(a, _), (b, _)| a.value == b.value) {
            let count = match looks.individual {
                true => same.iter().filter(|(entry, _)| entry.individual != NULL).count() as u64,
                false => same.iter().map(|(_, rows)| rows).sum(),
            };
            let value = same.first().and_then(|(entry, _)| value_of(entry));
            if count > 0 && looks.sensitive {
                sensitive.push(ValueCount { value, count });
            }
        }
        sensitive.sort_unstable_by_key(|count| count.value);
        let size = match looks.individual {
            true => individuals.len() as u64,
            false => class.iter().map(|(_, rows)| rows).sum(),
        };
        if let Some((entry, _)) = class.first() {
            let individuals = if looks.individual { individuals.as_slice() } else { &[] };
            see(entry.group, individuals, &Class { size, sensitive: &sensitive, input, population: None });
        }
    }
}

/// Removes the entries of the emitted groups and moves the groups behind them to the front.
pub(super) fn left_behind(emit: EmitTo, entries: impl Iterator<Item = (Entry, u64)>) -> Vec<(Entry, u64)> {
    let EmitTo::First(first) = emit else { return Vec::new() };
    let left = entries.filter(|(entry, _)| entry.group >= first);
    left.map(|(entry, rows)| (Entry { group: entry.group - first, ..entry }, rows)).collect()
}

/// Returns the number of an entry's sensitive value; `None` is NULL.
fn value_of(entry: &Entry) -> Option<u32> {
    Some(entry.value).filter(|value| *value != NULL)
}

pub(super) fn damaged() -> DataFusionError {
    DataFusionError::Internal("the state of an aggregate over classes".into())
}

pub(super) fn is_emitted(emit: EmitTo, entry: &Entry) -> bool {
    if let EmitTo::First(first) = emit { entry.group < first } else { true }
}
