//! What a model reads of the values of a sensitive column besides how often they occur.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

use super::Distribution;
use super::sensitive_column::SensitiveColumn;
use crate::error::{Error, Result};
use crate::generalize::{Generalizer, Value, apply, text_forms};

/// What a model reads of the values of a sensitive column besides how often they occur.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ValueFacts {
    /// The label of every value at each level of the column's hierarchy.
    pub levels: bool,
    /// The value itself, as an integer.
    pub integers: bool,
}

impl ValueFacts {
    /// Returns what either reads.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { levels: self.levels || other.levels, integers: self.integers || other.integers }
    }
}

/// Returns the number of the label of each value at a level.
type OfLevel<'a> = dyn Fn(&Arc<dyn Generalizer>) -> Result<Vec<u32>> + 'a;

impl SensitiveColumn {
    /// Adds the facts that a model reads to the distribution of a column. `values` are its distinct values in their order,
    /// NULL first, the number `n` being the `n`th of them that is not NULL.
    ///
    /// # Errors
    /// Those of the hierarchy's rules, a data error for a value that is no integer.
    pub fn add_facts(&self, distribution: Distribution, values: &ArrayRef) -> Result<Distribution> {
        let of_level = |level: &Arc<dyn Generalizer>| {
            let labels = text_forms(&apply(&**level, values)?)?;
            Ok(numbered(labels.iter()))
        };
        let integers = || {
            let integers = cast(values, &DataType::Int64).map_err(|_| self.no_integer())?;
            let integers = integers.as_primitive::<Int64Type>();
            if !values.data_type().is_integer() || integers.null_count() > values.null_count() {
                return Err(self.no_integer());
            }
            let wanted =
                integers.iter().map(|value| value.map_or(Some(0), |value| u64::try_from(value).ok()));
            wanted.collect::<Option<Vec<u64>>>().ok_or_else(|| self.no_integer())
        };
        self.with_facts(distribution, values, &of_level, &integers)
    }

    /// Adds the facts as [`add_facts`](Self::add_facts) does, naively: one value at a time.
    ///
    /// # Errors
    /// As [`add_facts`](Self::add_facts).
    pub fn add_facts_naively(&self, distribution: Distribution, values: &ArrayRef) -> Result<Distribution> {
        let of_level = |level: &Arc<dyn Generalizer>| {
            let label = |row| Ok(level.generalize_value(&Value::read(values, row)?)?.text_form());
            let labels = (0..values.len()).map(label).collect::<Result<Vec<_>>>()?;
            Ok(numbered(labels.iter().map(Option::as_deref)))
        };
        let integer = |row: usize| match Value::read(values, row)? {
            Value::Null => Ok(0),
            Value::Int(value) => u64::try_from(value).map_err(|_| self.no_integer()),
            _ => Err(self.no_integer()),
        };
        self.with_facts(distribution, values, &of_level, &|| (0..values.len()).map(integer).collect())
    }

    fn with_facts(
        &self,
        mut distribution: Distribution,
        values: &ArrayRef,
        of_level: &OfLevel<'_>,
        integers: &dyn Fn() -> Result<Vec<u64>>,
    ) -> Result<Distribution> {
        let ValueFacts { levels, integers: reads_integers } = self.reads();
        if levels {
            let labels = self.hierarchy()?.levels().iter().skip(1).map(of_level);
            // Numbered again: the distribution may lack values, and labels.
            let labels = labels.map(|labels| Ok(numbered(in_order(&distribution, values, &labels?)?)));
            let labels = labels.collect::<Result<Vec<_>>>()?;
            distribution = distribution.with_levels(labels);
        }
        if reads_integers {
            let integers = in_order(&distribution, values, &integers()?)?;
            distribution = distribution.with_integers(integers);
        }
        Ok(distribution)
    }

    fn no_integer(&self) -> Error {
        Error::data("expected integers of at least 0 in every row, or NULL")
            .at(format!("column `{}`", self.name()))
    }
}

/// Numbers labels in the order in which they first occur; NULL is a label of its own.
fn numbered<T: Eq + Hash>(labels: impl IntoIterator<Item = T>) -> Vec<u32> {
    let mut numbers: HashMap<T, u32> = HashMap::new();
    labels
        .into_iter()
        .map(|label| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(label).or_insert(next)
        })
        .collect()
}

/// Returns the facts of `values` in the order of the distribution's values, which may lack some.
fn in_order<T: Copy>(distribution: &Distribution, values: &ArrayRef, facts: &[T]) -> Result<Vec<T>> {
    let null = values.logical_null_count();
    let at = |value: Option<u32>| value.map_or(0, |number| number as usize + null);
    let facts = distribution.values().iter().map(|count| facts.get(at(count.value)).copied());
    facts.collect::<Option<_>>().ok_or_else(|| Error::internal("distribution: a value without its facts"))
}
