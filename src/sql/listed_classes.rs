//! Counted classes as models see them: the counts of each class behind one another.

use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::EmitTo;

use super::interned::{Interned, NULL};
use crate::engine::into_engine;
use crate::model::{Class, Distribution, ReadFacts, SensitiveColumn, ValueCount, ValueFacts};

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

/// The rows of a class that have one value and one individual, where these are counted, as numbers
/// of [`Interned`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Count {
    pub(super) value: u32,
    pub(super) individual: u32,
    pub(super) rows: u64,
}

/// Where the counts of a class end.
#[derive(Debug, Clone, Copy)]
struct ClassEnd {
    group: usize,
    end: usize,
}

/// Classes with their counts. Where individuals are counted, a class has each pair of an individual
/// and a value once; where rows are, a value may come several times.
#[derive(Default)]
pub(super) struct ListedClasses {
    classes: Vec<ClassEnd>,
    counts: Vec<Count>,
}

/// A visitor of classes. Takes the group, the numbers of the individuals if they are counted, the
/// place of the sensitive column among those asked for, and the class as its model sees it.
pub(super) type See<'a> = dyn FnMut(usize, &[u32], usize, &Class<'_>) + 'a;

impl ListedClasses {
    /// Adds a class of a group.
    ///
    /// # Errors
    /// That of a count; the classes must not be used any more then.
    pub(super) fn add(&mut self, group: usize, counts: impl Iterator<Item = Result<Count>>) -> Result<()> {
        for count in counts {
            self.counts.push(count?);
        }
        self.classes.push(ClassEnd { group, end: self.counts.len() });
        Ok(())
    }

    /// Returns the group and the counts of each class.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[Count])> {
        let starts = std::iter::once(0).chain(self.classes.iter().map(|class| class.end));
        let of = |(class, start): (&ClassEnd, usize)| {
            (class.group, self.counts.get(start..class.end).unwrap_or_default())
        };
        self.classes.iter().zip(starts).map(of)
    }

    /// Returns the counts of the emitted groups' classes, in the order of groups.
    pub(super) fn emitted(&self, emit: EmitTo) -> Vec<(usize, &[Count])> {
        let mut classes: Vec<(usize, &[Count])> =
            self.iter().filter(|(group, _)| is_emitted(emit, *group)).collect();
        classes.sort_by_key(|(group, _)| *group);
        classes
    }

    /// Returns the memory used, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.classes.capacity() * size_of::<ClassEnd>() + self.counts.capacity() * size_of::<Count>()
    }

    /// Calls `see` for each class of the emitted groups, in the order of groups, and for each of the
    /// `columns`, which are one column with these `values` and with the facts that each model reads.
    ///
    /// # Errors
    /// Those of the facts.
    pub(super) fn for_each_class(
        &self,
        emit: EmitTo,
        looks: CountedColumns,
        values: &Interned,
        columns: &[SensitiveColumn],
        see: &mut See<'_>,
    ) -> Result<()> {
        let (ranks, facts) = if looks.compared { facts_of(values, columns)? } else { Default::default() };
        let (mut of_group, mut of_class) = (GroupCounts::new(looks, values.len()), SeenClass::default());
        for classes in self.emitted(emit).chunk_by(|(a, _), (b, _)| a == b) {
            let mut inputs = vec![Distribution::NONE.clone(); columns.len()];
            if looks.compared {
                let counts = classes.iter().flat_map(|(_, counts)| *counts);
                counts.for_each(|count| of_group.add(ranks.renumbered(count)));
                let whole = of_group.take();
                for (input, facts) in inputs.iter_mut().zip(&facts) {
                    let whole = whole.clone();
                    *input = match facts {
                        Some(facts) => facts.add_to(whole).map_err(into_engine)?,
                        None => whole,
                    };
                }
            }
            for (group, counts) in classes {
                of_class.read(looks, counts.iter().map(|count| ranks.renumbered(count)));
                for (at, input) in inputs.iter().enumerate() {
                    let SeenClass { size, sensitive, individuals, .. } = &of_class;
                    let class = Class { size: *size, sensitive, input, population: None };
                    see(*group, individuals, at, &class);
                }
            }
        }
        Ok(())
    }
}

/// Returns the ranks of the values, if a model reads facts of them, and what each of the `columns` reads.
fn facts_of(values: &Interned, columns: &[SensitiveColumn]) -> Result<(ValueRanks, Vec<Option<ValueFacts>>)> {
    let reads = |column: &SensitiveColumn| column.reads() != ReadFacts::default();
    if !columns.iter().any(reads) {
        return Ok((ValueRanks::default(), columns.iter().map(|_| None).collect()));
    }
    // Values are numbered as they came; facts are of values in their order.
    let ordered = values.ordered_values()?;
    let facts = columns.iter().map(|column| {
        let ordered = ordered.as_ref().filter(|_| reads(column));
        ordered.map(|values| column.facts(values)).transpose().map_err(into_engine)
    });
    Ok((ValueRanks(Some(values.ranks())), facts.collect::<Result<_>>()?))
}

/// The place of each value in the order of the values, where a model reads it.
#[derive(Default)]
struct ValueRanks(Option<Vec<u32>>);

impl ValueRanks {
    /// Returns a count with the rank of its value as its number.
    fn renumbered(&self, count: &Count) -> Count {
        let rank = |ranks: &Vec<u32>| ranks.get(count.value as usize).copied().unwrap_or(NULL);
        Count { value: self.0.as_ref().map_or(count.value, rank), ..*count }
    }
}

/// The values of one group after the other: the rows with each, or the distinct individuals.
struct GroupCounts {
    looks: CountedColumns,
    /// The rows of each value, NULL last, and the values that have any.
    rows: Vec<u64>,
    seen: Vec<u32>,
    /// The individuals of each value, where they are counted.
    pairs: Vec<(u32, u32)>,
}

impl GroupCounts {
    fn new(looks: CountedColumns, values: usize) -> Self {
        let values = if looks.compared && !looks.individual { values + 1 } else { 0 };
        Self { looks, rows: vec![0; values], seen: Vec::new(), pairs: Vec::new() }
    }

    fn add(&mut self, count: Count) {
        if self.looks.individual {
            if count.individual != NULL {
                self.pairs.push((count.value, count.individual));
            }
            return;
        }
        let last = self.rows.len().saturating_sub(1);
        if let Some(rows) = self.rows.get_mut((count.value as usize).min(last)) {
            if *rows == 0 {
                self.seen.push(count.value);
            }
            *rows += count.rows;
        }
    }

    /// Returns the distribution of the group, and begins the next one.
    fn take(&mut self) -> Distribution {
        if !self.looks.individual {
            let last = self.rows.len().saturating_sub(1);
            let of_value = self.seen.drain(..).filter_map(|value| {
                let rows = self.rows.get_mut((value as usize).min(last))?;
                Some(ValueCount { value: value_of(value), count: std::mem::take(rows) })
            });
            return Distribution::of_rows(of_value.collect());
        }
        self.pairs.sort_unstable();
        self.pairs.dedup();
        let of_value = self.pairs.chunk_by(|(a, _), (b, _)| a == b).filter_map(|same| {
            let (value, _) = same.first()?;
            Some(ValueCount { value: value_of(*value), count: same.len() as u64 })
        });
        let of_value = of_value.collect();
        let mut individuals: Vec<u32> = self.pairs.drain(..).map(|(_, individual)| individual).collect();
        individuals.sort_unstable();
        individuals.dedup();
        Distribution::of_individuals(of_value, individuals.len() as u64)
    }
}

/// One class after the other.
#[derive(Default)]
struct SeenClass {
    size: u64,
    /// The individuals or rows with each value, in the order of the values' numbers.
    sensitive: Vec<ValueCount>,
    individuals: Vec<u32>,
    counts: Vec<Count>,
}

impl SeenClass {
    /// Reads the counts of the next class.
    fn read(&mut self, looks: CountedColumns, counts: impl Iterator<Item = Count>) {
        let Self { size, sensitive, individuals, counts: own } = self;
        own.clear();
        sensitive.clear();
        individuals.clear();
        own.extend(counts.filter(|count| !looks.individual || count.individual != NULL));
        own.sort_unstable();
        *size = own.iter().map(|count| count.rows).sum();
        if looks.individual {
            individuals.extend(own.iter().map(|count| count.individual));
            individuals.sort_unstable();
            individuals.dedup();
            *size = individuals.len() as u64;
        }
        for same in own.chunk_by(|a, b| a.value == b.value).filter(|_| looks.sensitive) {
            let count = match looks.individual {
                true => same.len() as u64,
                false => same.iter().map(|count| count.rows).sum(),
            };
            sensitive.extend(same.first().map(|first| ValueCount { value: value_of(first.value), count }));
        }
        // NULL has the greatest number, but models expect it first.
        if let [.., ValueCount { value: None, .. }] = sensitive.as_slice() {
            sensitive.rotate_right(1);
        }
    }
}

/// Returns a sensitive value by its number; `None` is NULL.
fn value_of(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number != NULL)
}

pub(super) fn damaged() -> DataFusionError {
    DataFusionError::Internal("the state of an aggregate over classes".into())
}

pub(super) fn is_emitted(emit: EmitTo, group: usize) -> bool {
    if let EmitTo::First(first) = emit { group < first } else { true }
}

/// Returns how many groups are emitted where there are `groups`. The group of a query without GROUP BY
/// is emitted even if no row came.
pub(super) fn emitted(emit: EmitTo, groups: usize) -> usize {
    if let EmitTo::First(first) = emit { first } else { groups }
}

/// Returns the number of a group that is not emitted after the emitted ones are gone.
pub(super) fn left_behind(emit: EmitTo, group: usize) -> Option<usize> {
    if let EmitTo::First(first) = emit { group.checked_sub(first) } else { None }
}
