//! The class table: the summary of the data that methods work on.
//!
//! [`ClassTable`] holds the base classes, which are the distinct tuples of the quasi-identifiers
//! with their sizes and the counts of their sensitive values, as small integer codes.
//! [`ClassTable::roll_up`] makes a node's [`Classes`] from those of a finer node: it maps codes to
//! codes and merges classes that become equal. [`ClassTable::merge`] makes those of
//! [`ReleasedClasses`], which need not show levels.
//!
//! Methods see this table and no rows, because the loss and the models of a node depend on nothing else: the
//! distinct tuples, their sizes and, where a model or a measure looks at sensitive columns, how often each
//! value occurs with each tuple. Each hierarchy is evaluated once per distinct value of its column. Codes are
//! in the order of the values (numbers as numbers, dates as dates, a hierarchy file depth first), also where
//! the labels are text, so a median or an interval of codes is a median or an interval of values.

mod base_classes;
mod builder;
mod class_sizes;
mod classes;
mod encoded_column;
mod encoder;
mod evaluated_classes;
mod evaluated_node;
mod evaluated_partition;
mod grouping;
mod groups;
mod growing_region;
mod held;
mod histograms;
mod individuals;
mod over_subset;
mod packing;
pub mod parts;
mod places;
mod population;
mod region;
mod region_growth;
mod released_classes;
mod roll_up;
mod shown;
mod subset;
mod union;
mod value_classes;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use builder::ClassTableBuilder;
pub use class_sizes::{ClassSizes, ClassSizesBuilder};
pub use classes::Classes;
pub use encoded_column::{EncodedColumn, EncodedLevel};
pub use encoder::Encoder;
pub use evaluated_classes::{EvaluatedClasses, EvaluatedRecoding};
pub use evaluated_node::EvaluatedNode;
pub use evaluated_partition::EvaluatedPartition;
pub use groups::{Groups, by_rank};
pub use growing_region::GrowingRegion;
pub use held::Held;
pub use places::NumberLine;
pub use population::Population;
pub use region::Region;
pub use released_classes::ReleasedClasses;
pub use roll_up::Scratch;
#[cfg(feature = "engine")]
pub(crate) use shown::ShownColumn;
pub use union::Union;
pub(crate) use value_classes::ValueClasses;

use crate::error::{Error, ErrorCode, Result};
use crate::generalize::Hierarchy;
use crate::model::{Counted, Distribution, SensitiveColumn};
use crate::plural::plural;
use packing::Packing;
use roll_up::{Step, merge_by_number, roll_up};

/// Reserves memory before it is used. Above this layer it is DataFusion's memory pool.
pub trait Budget: Send + Sync {
    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// The [`refusal`](Self::refusal) of so many bytes.
    fn grow(&self, bytes: usize) -> Result<()>;

    /// Gives `bytes` back.
    fn shrink(&self, bytes: usize);

    /// Returns the error of a step for which `bytes` more than are reserved would do. It is a data
    /// error with the code [`ErrorCode::OutOfMemory`] that names the limit to raise.
    fn refusal(&self, bytes: usize) -> Error;
}

/// A budget without a limit, for tests and small tables.
#[derive(Debug, Clone, Copy)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn grow(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn shrink(&self, _bytes: usize) {}

    fn refusal(&self, _bytes: usize) -> Error {
        Error::internal("a budget without a limit refused")
    }
}

/// One quasi-identifier of the resolved policy, as the class table needs it.
#[derive(Debug, Clone)]
pub struct QuasiColumn {
    /// The column's name.
    pub name: String,
    /// The column's levels.
    pub hierarchy: Hierarchy,
    /// The column's weight in the loss, above 0; only the ratios of the columns' weights matter.
    pub weight: f64,
}

/// Released classes with their rows, values and individuals. If base classes are suppressed, they
/// are one more class after the released ones.
#[derive(Debug)]
pub struct MergedClasses(Classes);

/// The base classes of a table and the codes of its quasi-identifiers at every level.
pub struct ClassTable {
    columns: Vec<EncodedColumn>,
    sensitive: Vec<String>,
    packing: Packing,
    base: Classes,
    /// The base classes by the values of the input, where level 0 joins values that count each for itself.
    by_value: Option<ValueClasses>,
    total_rows: u64,
    /// The rows per individual, if the policy names an individual column.
    individuals: Option<Individuals>,
    /// The values of each sensitive column in the whole table.
    distributions: Vec<Distribution>,
    /// The population that the individuals were taken from, where a model asks for it.
    population: Option<Arc<Population>>,
    /// Whether it is a part of another table, so that other rows may be kept besides its own.
    is_part: bool,
    /// The memory that the codes take.
    _codes: Held,
}

/// The rows per individual in a table.
#[derive(Clone)]
struct Individuals {
    count: u64,
    /// The number of individuals by their number of rows.
    by_rows: BTreeMap<u64, u64>,
    /// The number of rows without an individual.
    unowned_rows: u64,
}

impl std::fmt::Debug for ClassTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClassTable({} columns, {} base classes)", self.columns.len(), self.base.len())
    }
}

impl ClassTable {
    /// Adds the population that the individuals were taken from.
    #[must_use]
    pub fn with_population(mut self, population: Population) -> Self {
        self.population = Some(Arc::new(population));
        self
    }

    /// Returns the encoded quasi-identifiers in policy order.
    pub fn columns(&self) -> &[EncodedColumn] {
        &self.columns
    }

    /// Returns the sensitive columns that are counted, as [`SensitiveColumn`] writes them.
    pub fn sensitive(&self) -> &[String] {
        &self.sensitive
    }

    /// Returns the position of a sensitive column among the counted ones.
    pub fn sensitive_index(&self, column: &SensitiveColumn) -> Option<usize> {
        let text = column.to_string();
        self.sensitive.iter().position(|counted| *counted == text)
    }

    /// Returns the classes at level 0 of every column.
    pub fn base(&self) -> &Classes {
        &self.base
    }

    /// Returns the budget that the table's memory comes from.
    pub(crate) fn budget(&self) -> &Arc<dyn Budget> {
        self.base.held.budget()
    }

    /// Returns n, the number of rows of the input.
    pub fn total_rows(&self) -> u64 {
        self.total_rows
    }

    /// Returns the unit of class sizes: individuals if the table has an individual column, else
    /// rows.
    pub fn counted(&self) -> Counted {
        if self.individuals.is_some() { Counted::Individuals } else { Counted::Rows }
    }

    /// Returns the number of distinct individuals in the input; rows if no individuals are counted.
    pub fn total_individuals(&self) -> u64 {
        self.individuals.as_ref().map_or(self.total_rows, |individuals| individuals.count)
    }

    /// Returns the number of input rows without an individual; 0 if no individuals are counted.
    pub fn unowned_rows(&self) -> u64 {
        self.individuals.as_ref().map_or(0, |individuals| individuals.unowned_rows)
    }

    /// Returns the largest number of rows of one individual; 1 if no individuals are counted.
    pub fn most_rows_of_one(&self) -> u64 {
        let most = |individuals: &Individuals| individuals.by_rows.keys().next_back().copied().unwrap_or(0);
        self.individuals.as_ref().map_or(1, most)
    }

    /// Returns the most rows that can be suppressed along with at most `limit` individuals: the
    /// rows of the individuals with the most rows, and all rows without an individual.
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

    /// Returns the top level of every column.
    pub fn heights(&self) -> Vec<usize> {
        self.columns.iter().map(EncodedColumn::height).collect()
    }

    /// Returns the label code of a class in one column.
    pub fn code(&self, classes: &Classes, class: usize, column: usize) -> u32 {
        classes.code(class, column, &self.packing)
    }

    /// Returns how many individuals of the whole table (rows, if none are counted) have each value
    /// of a sensitive column.
    pub fn distribution(&self, column: usize) -> &Distribution {
        self.distributions.get(column).unwrap_or(Distribution::NONE)
    }

    /// Creates the memory for roll-ups, out of the table's budget.
    pub fn scratch(&self) -> Scratch {
        Scratch::new(self.base.held.budget())
    }

    /// Rolls the classes of the node `from` up to the node `to`, which is nowhere below `from`.
    ///
    /// # Errors
    /// An internal error when `from` is above `to` in some column; a data error when memory runs
    /// out.
    pub fn roll_up(&self, classes: &Classes, from: &[usize], to: &[usize]) -> Result<Classes> {
        let rolled = self.roll_up_at_most(classes, from, to, usize::MAX, &mut self.scratch())?;
        rolled.ok_or_else(too_many_classes)
    }

    /// Rolls up as [`roll_up`](Self::roll_up) does, in reusable memory; returns `None` as soon as
    /// there are more than `at_most` classes.
    ///
    /// # Errors
    /// The same as for [`roll_up`](Self::roll_up).
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
        let rolled = roll_up(classes, &keep, &steps, at_most, scratch);
        rolled.map_err(|error| for_combinations(error, self.base.len()))
    }

    /// Returns the finest regions around the values of base classes, one per column.
    ///
    /// # Errors
    /// An internal error without base classes.
    pub(crate) fn regions_around(&self, classes: &[u32]) -> Result<Box<[Region]>> {
        let shown = self.columns.iter().enumerate().map(|(at, column)| {
            let mut codes: Vec<u32> =
                classes.iter().map(|class| self.code(&self.base, *class as usize, at)).collect();
            codes.sort_unstable();
            codes.dedup();
            Region::around(column, codes)
        });
        shown.collect()
    }

    /// Merges the base classes into released ones, in their order.
    ///
    /// # Errors
    /// An internal error for the released classes of another table, a data error when memory runs
    /// out.
    pub fn merge(&self, released: &ReleasedClasses) -> Result<MergedClasses> {
        if released.class_of_base().len() != self.base.len() {
            return Err(Error::internal("merge: the released classes are those of another table"));
        }
        let suppressed = u32::try_from(released.regions().len()).map_err(|_| too_many_classes())?;
        let mut held = Held::new(self.base.held.budget());
        held.at_least(size_of_val(released.class_of_base()))?;
        let classes = released.class_of_base().iter();
        let target: Vec<u32> = classes.map(|class| class.unwrap_or(suppressed)).collect();
        let some_suppressed = usize::from(target.contains(&suppressed));
        let merged = merge_by_number(&self.base, &target, released.regions().len() + some_suppressed);
        merged.map(MergedClasses).map_err(|error| for_combinations(error, self.base.len()))
    }
}

/// Adds to a refusal of memory how many combinations of values are held, and what makes fewer.
fn for_combinations(error: Error, combinations: usize) -> Error {
    if !error.is(ErrorCode::OutOfMemory) {
        return error;
    }
    let combinations = plural(combinations as u64, "combination", "combinations");
    error.and(&format!(
        "; the input has {combinations} of values: coarser ones, such as months in place of days, make fewer"
    ))
}

fn too_many_classes() -> Error {
    Error::data("more than 4,294,967,294 classes: generalize a column first (min_level)")
}

#[cfg(test)]
pub(crate) mod memory_tests;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use crate::generalize::{GENERALIZERS, Value};
    use arrow::array::{Array, ArrayRef, Int32Array, StringViewArray};

    /// A column for tests: `key` and its numbers, or no hierarchy.
    pub(crate) fn quasi(name: &str, values: &ArrayRef, key: Option<(&str, &[i64])>) -> QuasiColumn {
        let levels = match key {
            None => vec![],
            Some((key, numbers)) => {
                let row = GENERALIZERS.iter().find(|row| row.key == Some(key)).unwrap();
                row.of(numbers.iter().map(|n| Decimal::integer(*n)).collect::<Vec<_>>()).unwrap()
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
}
