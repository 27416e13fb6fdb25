//! The class table: what a method knows of the data.
//!
//! [`ClassTable`] holds the base classes, the distinct tuples of the quasi-identifiers with their sizes and
//! the counts of their sensitive values, as small integer codes. A node's [`Classes`] come from a finer node's
//! by [`ClassTable::roll_up`], which maps codes to codes and adds what becomes equal.

mod builder;
mod class_sizes;
mod classes;
mod encoded_column;
mod encoder;
mod evaluated_node;
mod individuals;
mod packing;
mod roll_up;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use builder::ClassTableBuilder;
pub use class_sizes::ClassSizes;
pub use classes::Classes;
pub use encoded_column::{EncodedColumn, EncodedLevel};
pub use encoder::Encoder;
pub use evaluated_node::EvaluatedNode;
pub use roll_up::Scratch;

use crate::error::{Error, Result};
use crate::generalize::Hierarchy;
use crate::model::{Counted, ValueCount};
use packing::Packing;
use roll_up::{Step, roll_up};

/// Asks for memory before it is used. Above this layer it is DataFusion's memory pool.
pub trait Budget: Send + Sync {
    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// A data error that names the limit to raise.
    fn grow(&self, bytes: usize) -> Result<()>;

    /// Gives `bytes` back.
    fn shrink(&self, bytes: usize);
}

/// A budget without a limit, for tests and small tables.
#[derive(Debug, Clone, Copy)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn grow(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn shrink(&self, _bytes: usize) {}
}

/// One quasi-identifier as the policy resolved it: what the class table needs to know of it.
#[derive(Debug, Clone)]
pub struct QuasiColumn {
    /// The column's name.
    pub name: String,
    /// Its levels.
    pub hierarchy: Hierarchy,
    /// Its weight in the loss, above 0; only the ratio to the other columns' weights matters.
    pub weight: f64,
}

/// Memory taken from a budget, given back when dropped.
pub struct Held {
    budget: Arc<dyn Budget>,
    bytes: usize,
}

impl Held {
    /// None yet.
    pub fn new(budget: &Arc<dyn Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    fn budget(&self) -> &Arc<dyn Budget> {
        &self.budget
    }

    /// Takes what is missing to `bytes`, or gives back what is more.
    ///
    /// # Errors
    /// A data error when there is no more.
    pub fn exactly(&mut self, bytes: usize) -> Result<()> {
        self.at_least(bytes)?;
        self.budget.shrink(self.bytes - bytes);
        self.bytes = bytes;
        Ok(())
    }

    /// Takes what is missing to `bytes`.
    ///
    /// # Errors
    /// A data error when there is no more.
    pub fn at_least(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            self.budget.grow(bytes - self.bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.shrink(self.bytes);
    }
}

/// The base classes of a table and the codes of its quasi-identifiers at every level.
pub struct ClassTable {
    columns: Vec<EncodedColumn>,
    sensitive: Vec<String>,
    packing: Packing,
    base: Classes,
    total_rows: u64,
    /// Where an individual column is named.
    individuals: Option<Individuals>,
    /// What the codes take.
    _codes: Held,
}

/// How many rows the individuals of a table have.
struct Individuals {
    count: u64,
    /// How many individuals have so many rows.
    by_rows: BTreeMap<u64, u64>,
    /// The rows without an individual.
    unowned_rows: u64,
}

impl std::fmt::Debug for ClassTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClassTable({} columns, {} base classes)", self.columns.len(), self.base.len())
    }
}

impl ClassTable {
    /// The coded quasi-identifiers in policy order.
    pub fn columns(&self) -> &[EncodedColumn] {
        &self.columns
    }

    /// The names of the sensitive columns whose values are counted.
    pub fn sensitive(&self) -> &[String] {
        &self.sensitive
    }

    /// The classes at level 0 of every column.
    pub fn base(&self) -> &Classes {
        &self.base
    }

    /// n, the rows of the input.
    pub fn total_rows(&self) -> u64 {
        self.total_rows
    }

    /// What sizes count: individuals where the table has an individual column.
    pub fn counted(&self) -> Counted {
        if self.individuals.is_some() { Counted::Individuals } else { Counted::Rows }
    }

    /// The distinct individuals of the input; its rows where none are counted.
    pub fn total_individuals(&self) -> u64 {
        self.individuals.as_ref().map_or(self.total_rows, |individuals| individuals.count)
    }

    /// The input's rows without an individual; 0 where none are counted.
    pub fn unowned_rows(&self) -> u64 {
        self.individuals.as_ref().map_or(0, |individuals| individuals.unowned_rows)
    }

    /// The most rows that one individual has; 1 where none are counted.
    pub fn most_rows_of_one(&self) -> u64 {
        let most = |individuals: &Individuals| individuals.by_rows.keys().next_back().copied().unwrap_or(0);
        self.individuals.as_ref().map_or(1, most)
    }

    /// The most rows that can be suppressed when at most `limit` individuals may be: those of the individuals with
    /// the most rows, and all without an individual.
    pub fn most_rows_of(&self, limit: u64) -> u64 {
        let Some(individuals) = &self.individuals else { return limit.min(self.total_rows) };
        let (mut rows, mut left) = (individuals.unowned_rows, limit);
        for (each, count) in individuals.by_rows.iter().rev() {
            let taken = left.min(*count);
            rows = rows.saturating_add(taken.saturating_mul(*each));
            left -= taken;
        }
        rows.min(self.total_rows)
    }

    /// The top level of every column.
    pub fn heights(&self) -> Vec<usize> {
        self.columns.iter().map(EncodedColumn::height).collect()
    }

    /// The label code of a class of a node in one column.
    pub fn code(&self, classes: &Classes, class: usize, column: usize) -> u32 {
        classes.code(class, column, &self.packing)
    }

    /// How many rows of all have each value of a sensitive column.
    pub fn values_of_all(&self, column: usize) -> Vec<ValueCount> {
        let all = vec![0u32; self.base.len()];
        self.base.sensitive.get(column).map_or(Vec::new(), |base| base.regrouped(&all, 1).counts)
    }

    /// Memory for roll-ups, out of the table's budget.
    pub fn scratch(&self) -> Scratch {
        Scratch::new(self.base.held.budget())
    }

    /// The classes of the node `to`, from those of a node `from` that is nowhere above it.
    ///
    /// # Errors
    /// An internal error when `from` is above `to` in some column, a data error when memory runs out.
    pub fn roll_up(&self, classes: &Classes, from: &[usize], to: &[usize]) -> Result<Classes> {
        let rolled = self.roll_up_at_most(classes, from, to, usize::MAX, &mut self.scratch())?;
        rolled.ok_or_else(too_many_classes)
    }

    /// As [`roll_up`](Self::roll_up), in memory that is used again; `None` as soon as there are more than
    /// `at_most` classes.
    ///
    /// # Errors
    /// As there.
    pub fn roll_up_at_most(
        &self,
        classes: &Classes,
        from: &[usize],
        to: &[usize],
        at_most: usize,
        scratch: &mut Scratch,
    ) -> Result<Option<Classes>> {
        let mut keep = vec![u64::MAX; self.packing.words()];
        let mut steps = Vec::new();
        for (column, coded) in self.columns.iter().enumerate() {
            if from[column] == to[column] {
                continue;
            }
            let (field, map) = (self.packing.field(column), coded.map(from[column], to[column])?);
            keep[field.word] &= !(field.mask << field.shift);
            // A single label has the code 0, which is there already.
            if coded.level(to[column]).leaves().len() > 1 {
                steps.push(Step { field, map });
            }
        }
        roll_up(classes, &keep, &steps, at_most, scratch)
    }
}

fn too_many_classes() -> Error {
    Error::data("more than 4,294,967,294 classes: generalize a column first (min_level)")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use crate::generalize::{Argument, GENERALIZERS, Options, Value};
    use arrow::array::{Array, ArrayRef, Int32Array, StringViewArray};

    /// A column for tests: `key` and its numbers, or no hierarchy.
    pub(crate) fn quasi(name: &str, values: &ArrayRef, key: Option<(&str, &[i64])>) -> QuasiColumn {
        let levels = match key {
            None => vec![],
            Some((key, numbers)) => {
                let row = GENERALIZERS.iter().find(|row| row.key == Some(key)).unwrap();
                (row.levels)(
                    &Argument::Numbers(numbers.iter().map(|n| Decimal::integer(*n)).collect()),
                    &Options::default(),
                )
                .unwrap()
            }
        };
        QuasiColumn {
            name: name.into(),
            hierarchy: Hierarchy::new(values.data_type(), levels).unwrap(),
            weight: 1.0,
        }
    }

    /// A class table over columns of equal length, one row each.
    pub(crate) fn table(columns: Vec<(QuasiColumn, ArrayRef)>) -> ClassTable {
        use std::collections::BTreeMap;
        let (quasi, arrays): (Vec<_>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let mut seen: BTreeMap<Vec<String>, (u32, u64)> = BTreeMap::new();
        for row in 0..arrays[0].len() {
            let tuple =
                arrays.iter().map(|a| format!("{:?}", Value::read(a, row).unwrap().text_form())).collect();
            seen.entry(tuple).or_insert((row as u32, 0)).1 += 1;
        }
        let firsts = arrow::array::UInt32Array::from_iter_values(seen.values().map(|(row, _)| *row));
        let values: Vec<ArrayRef> =
            arrays.iter().map(|a| arrow::compute::take(a, &firsts, None).unwrap()).collect();
        let rows: Vec<u64> = seen.values().map(|(_, n)| *n).collect();
        let mut builder =
            ClassTableBuilder::new(quasi, vec![], &(Arc::new(Unlimited) as Arc<dyn Budget>)).unwrap();
        builder.add(&values, &rows).unwrap();
        builder.finish().unwrap()
    }

    /// Samarati & Sweeney 1998: race (as is, person) and ZIP (94138, 9413*, 941**).
    pub(crate) fn samarati() -> ClassTable {
        let race: ArrayRef = Arc::new(StringViewArray::from_iter_values(
            ["asian", "black", "white"].iter().flat_map(|r| std::iter::repeat_n(*r, 4)),
        ));
        let zip: ArrayRef =
            Arc::new(Int32Array::from_iter_values([94138, 94139, 94141, 94142].into_iter().cycle().take(12)));
        table(vec![(quasi("race", &race, None), race), (quasi("zip", &zip, Some(("prefix", &[4, 3]))), zip)])
    }

    #[test]
    fn roll_up_adds_the_rows_of_classes_that_become_equal() {
        let table = samarati();
        let least = |to: &[usize]| table.roll_up(table.base(), &[0, 0], to).unwrap().rows().min().unwrap();
        let expected = [([0, 0], 1), ([0, 1], 2), ([1, 0], 3), ([0, 2], 4), ([1, 1], 6), ([1, 2], 12)];
        for (node, k) in expected {
            assert_eq!(least(&node), k, "{node:?}");
        }
        // From a finer node that is not the base.
        let finer = table.roll_up(table.base(), &[0, 0], &[0, 1]).unwrap();
        let mut rows: Vec<u64> = table.roll_up(&finer, &[0, 1], &[1, 2]).unwrap().rows().collect();
        rows.sort_unstable();
        assert_eq!(rows, [12]);
        assert!(table.roll_up(&finer, &[0, 1], &[0, 0]).is_err());
    }

    #[test]
    fn null_is_a_value() {
        let sex: ArrayRef =
            Arc::new(StringViewArray::from(vec![Some("f"), None, None, Some("f"), Some("m")]));
        let table = table(vec![(quasi("sex", &sex, None), sex)]);
        let mut rows: Vec<u64> = table.base().rows().collect();
        rows.sort_unstable();
        assert_eq!(rows, [1, 2, 2]);
        assert!(table.roll_up(table.base(), &[0], &[1]).unwrap().rows().eq([5]));
    }

    #[test]
    fn a_class_table_says_when_memory_runs_out_and_gives_it_back() {
        struct Small(std::sync::Mutex<usize>);
        impl Budget for Small {
            fn grow(&self, bytes: usize) -> Result<()> {
                let mut used = self.0.lock().unwrap();
                if *used + bytes > 100_000 {
                    return Err(Error::data("too much"));
                }
                *used += bytes;
                Ok(())
            }
            fn shrink(&self, bytes: usize) {
                *self.0.lock().unwrap() -= bytes;
            }
        }
        let budget = Arc::new(Small(std::sync::Mutex::new(0)));
        let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..50_000));
        let dynamic: Arc<dyn Budget> = budget.clone();
        let mut builder = ClassTableBuilder::new(vec![quasi("n", &values, None)], vec![], &dynamic).unwrap();
        assert!(builder.add(&[values], &vec![1; 50_000]).is_err());
        drop(builder);
        assert_eq!(*budget.0.lock().unwrap(), 0);
    }
}
