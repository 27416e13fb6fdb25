//! From groups of a class, a sensitive value and an individual to the counts of each class.

use std::sync::Arc;

use arrow::array::{Array, Decimal128Array};
use hashbrown::HashMap;

use crate::class::{Budget, Held};
use crate::error::{Error, Result};
use crate::model::{Distribution, SeenClass, ValueCount};

/// Numbers for keys, in the order in which they come.
#[derive(Default)]
struct Numbers(HashMap<i128, u32>);

impl Numbers {
    fn number(&mut self, key: i128) -> Result<u32> {
        let next = u32::try_from(self.0.len());
        let next = next.map_err(|_| Error::data("a column has more than 4 billion distinct values"))?;
        Ok(*self.0.entry(key).or_insert(next))
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * (size_of::<(i128, u32)>() + 1)
    }
}

/// Counts the groups of one class after the other.
pub(super) struct Fold {
    class: Option<i128>,
    /// The numbers of the values of each sensitive column.
    values: Vec<Numbers>,
    /// The numbers of the individuals, where they are counted.
    individuals: Option<Numbers>,
    /// The groups of the class: for each sensitive column the number of the value, then that of the individual; and rows.
    groups: Vec<Vec<(Option<u32>, u64)>>,
    of_individuals: Vec<u32>,
    rows: u64,
    unowned_rows: u64,
    held: Held,
}

/// The counts of a class that has ended.
pub(super) struct Ended {
    rows: u64,
    unowned_rows: u64,
    values: Vec<Vec<ValueCount>>,
    individuals: Option<Vec<u32>>,
}

impl Ended {
    /// Returns what models see of the class; `inputs` are the distributions over the whole table.
    pub(super) fn seen<'a>(&'a self, inputs: &'a [Distribution]) -> SeenClass<'a> {
        SeenClass {
            rows: self.rows,
            size: self.individuals.as_ref().map_or(self.rows, |individuals| individuals.len() as u64),
            unowned_rows: self.unowned_rows,
            values: &self.values,
            inputs,
            individuals: self.individuals.as_deref(),
        }
    }
}

impl Fold {
    /// Counts this many sensitive columns; memory comes from `budget`.
    pub(super) fn new(columns: usize, counts_individuals: bool, budget: &Arc<dyn Budget>) -> Self {
        Self {
            class: None,
            values: (0..columns).map(|_| Numbers::default()).collect(),
            individuals: counts_individuals.then(Numbers::default),
            groups: vec![Vec::new(); columns],
            of_individuals: Vec::new(),
            rows: 0,
            unowned_rows: 0,
            held: Held::new(budget),
        }
    }

    /// Returns how many individuals there were; `None` where rows are counted.
    pub(super) fn individuals(&self) -> Option<u64> {
        self.individuals.as_ref().map(|individuals| individuals.0.len() as u64)
    }

    /// Returns the numbers of values of a sensitive column by their keys; `None` is NULL.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn numbers(&mut self, column: usize, keys: &Decimal128Array) -> Result<Vec<Option<u32>>> {
        let values = &mut self.values[column];
        let numbers =
            keys.iter().map(|key| key.map(|key| values.number(key)).transpose()).collect::<Result<_>>()?;
        self.hold()?;
        Ok(numbers)
    }

    /// Adds a group: `keys` has an array for each sensitive column, then that of the individuals, where they are counted.
    /// Calls `ended` if the class before ended.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn add(
        &mut self,
        class: i128,
        keys: &[&Decimal128Array],
        row: usize,
        rows: u64,
        ended: impl FnOnce(&Ended),
    ) -> Result<()> {
        if self.class.is_some_and(|before| before != class) {
            self.end(ended);
        }
        self.class = Some(class);
        self.rows += rows;
        let key = |at: usize| keys.get(at).filter(|keys| !keys.is_null(row)).map(|keys| keys.value(row));
        let individual = match &mut self.individuals {
            None => None,
            Some(individuals) => match key(self.values.len()) {
                None => {
                    self.unowned_rows += rows;
                    return Ok(());
                }
                Some(key) => Some(individuals.number(key)?),
            },
        };
        self.of_individuals.extend(individual);
        for (at, (values, groups)) in self.values.iter_mut().zip(&mut self.groups).enumerate() {
            let value = key(at).map(|key| values.number(key)).transpose()?;
            groups.push((value, individual.map_or(rows, u64::from)));
        }
        Ok(())
    }

    /// Calls `ended` for the last class, if there is one.
    pub(super) fn end(&mut self, ended: impl FnOnce(&Ended)) {
        if self.class.take().is_none() {
            return;
        }
        let counts_individuals = self.individuals.is_some();
        self.of_individuals.sort_unstable();
        self.of_individuals.dedup();
        let class = Ended {
            rows: std::mem::take(&mut self.rows),
            unowned_rows: std::mem::take(&mut self.unowned_rows),
            values: self.groups.iter_mut().map(|groups| counts(groups, counts_individuals)).collect(),
            individuals: counts_individuals.then(|| std::mem::take(&mut self.of_individuals)),
        };
        ended(&class);
    }

    /// Reserves what the fold takes by now, with a class that has not ended.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn hold(&mut self) -> Result<()> {
        let numbers = self.values.iter().chain(&self.individuals).map(Numbers::bytes).sum::<usize>();
        let groups = self.groups.iter().map(Vec::capacity).sum::<usize>() * size_of::<(Option<u32>, u64)>();
        self.held.at_least(numbers + groups + self.of_individuals.capacity() * size_of::<u32>())
    }
}

/// Counts the values of a class, given the individual or the rows of each group; in the order of their numbers.
fn counts(groups: &mut Vec<(Option<u32>, u64)>, counts_individuals: bool) -> Vec<ValueCount> {
    groups.sort_unstable();
    if counts_individuals {
        groups.dedup();
    }
    let of_value = groups.chunk_by(|(a, _), (b, _)| a == b).filter_map(|same| {
        let count =
            if counts_individuals { same.len() as u64 } else { same.iter().map(|(_, rows)| rows).sum() };
        Some(ValueCount { value: same.first()?.0, count })
    });
    let of_value = of_value.collect();
    groups.clear();
    of_value
}
