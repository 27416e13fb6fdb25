//! The population that the individuals of a table were taken from: how many of its individuals
//! share the labels of each class.
//!
//! The population is grouped into a class table of its own, which is rolled up to the levels of each node. Its
//! labels are found among the input's by their text, once per column and level, so the leaves, losses and codes
//! of the input do not depend on it. Only full-domain generalization can be judged: regions may overlap, and
//! then a person of the population belongs to several. Each evaluated node rolls the population up from its
//! base classes, which costs as much as the population is large; nothing of it is cached yet.

use std::collections::HashMap;

use arrow::array::Array;

use super::{ClassTable, Classes, EncodedColumn};
use crate::error::{Error, Result};
use crate::generalize::text_forms;

/// A population table, grouped by the quasi-identifiers of another table.
#[derive(Debug)]
pub struct Population {
    table: ClassTable,
    /// For each column and level, the code in the other table of each label; `None` for a label
    /// that no row of it has.
    codes: Vec<Vec<Vec<Option<u32>>>>,
}

/// How many individuals of the population share the labels of each class of a node.
#[derive(Debug)]
pub(super) struct PopulationCounts {
    pub(super) of_class: Vec<u64>,
    /// Whether some individuals of the population share the labels of no class.
    pub(super) has_others: bool,
}

impl Population {
    /// Groups a population like the table with these `columns`. The population has the same columns
    /// with the same levels.
    ///
    /// # Errors
    /// An internal error for other columns, those of reading labels.
    pub fn new(columns: &[EncodedColumn], table: ClassTable) -> Result<Self> {
        let others = || Error::internal("population: its columns are not those of the table");
        let of_column = |(own, other): (&EncodedColumn, &EncodedColumn)| {
            if (own.name(), own.height()) != (other.name(), other.height()) {
                return Err(others());
            }
            (0..=own.height()).map(|level| codes_of(own, other, level)).collect::<Result<Vec<_>>>()
        };
        if columns.len() != table.columns().len() {
            return Err(others());
        }
        let codes = table.columns().iter().zip(columns).map(of_column).collect::<Result<_>>()?;
        Ok(Self { table, codes })
    }

    /// Counts, for each of the `classes` of a node of `table`, the individuals of the population
    /// with its labels.
    pub(super) fn counts(
        &self,
        table: &ClassTable,
        classes: &Classes,
        levels: &[usize],
    ) -> Result<PopulationCounts> {
        let own = &self.table;
        let rolled = own.roll_up(own.base(), &vec![0; levels.len()], levels)?;
        let words = table.packing.words();
        let mut of_key: HashMap<Vec<u64>, u64> = HashMap::new();
        let mut unmatched = false;
        for (class, rows) in rolled.rows().enumerate() {
            let mut key = vec![0; words];
            let code = |column: usize| {
                let codes = &self.codes[column][levels[column]];
                codes.get(own.code(&rolled, class, column) as usize).copied().flatten()
            };
            let known = (0..levels.len()).map(|column| {
                let field = table.packing.field(column);
                code(column).map(|code| field.put(&mut key, code))
            });
            if known.collect::<Option<Vec<()>>>().is_some() {
                of_key.insert(key, rolled.size(class, rows));
            } else {
                unmatched |= rolled.size(class, rows) > 0;
            }
        }
        let of_class: Vec<u64> = classes.keys().map(|key| of_key.remove(key).unwrap_or(0)).collect();
        let has_others = unmatched || of_key.values().any(|size| *size > 0);
        Ok(PopulationCounts { of_class, has_others })
    }
}

/// Returns the code in `other` of each label that `own` has at a level.
fn codes_of(own: &EncodedColumn, other: &EncodedColumn, level: usize) -> Result<Vec<Option<u32>>> {
    let (labels, known) = (text_forms(own.level(level).labels())?, text_forms(other.level(level).labels())?);
    let codes: HashMap<Option<&str>, u32> = known.iter().zip(0..).collect();
    debug_assert_eq!(codes.len(), known.len());
    Ok(labels.iter().map(|label| codes.get(&label).copied()).collect())
}
