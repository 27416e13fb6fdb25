//! What a model reads of the values of a sensitive column besides how often they occur.
//!
//! They are added to the distribution once: by the columnar generalizers for the search, one value at a time
//! for the verification.

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
pub struct ReadFacts {
    /// The order of the values.
    pub order: bool,
    /// The label of every value at each level of the column's hierarchy.
    pub levels: bool,
    /// The value itself, as an integer.
    pub integers: bool,
}

impl ReadFacts {
    /// Returns what either reads.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            order: self.order || other.order,
            levels: self.levels || other.levels,
            integers: self.integers || other.integers,
        }
    }
}

/// The facts that a model reads of the distinct values of a column, which are in their order, NULL first.
pub struct ValueFacts {
    /// The number of NULLs among the values, 0 or 1.
    nulls: usize,
    /// For each level above 0 the number of each value's label; empty if no model reads levels.
    levels: Vec<Vec<u32>>,
    /// Each value as an integer, 0 for NULL; empty if no model reads integers.
    integers: Vec<u64>,
}

impl ValueFacts {
    /// Adds the facts to a distribution of these values, in which the number `n` is the `n`th of
    /// them that is not NULL. It may lack some values.
    ///
    /// # Errors
    /// An internal error for a value that is none of them.
    pub fn add_to(&self, distribution: Distribution) -> Result<Distribution> {
        // Numbered again: the distribution may lack labels, too.
        let levels = self.levels.iter().map(|labels| Ok(numbered(self.in_order(&distribution, labels)?)));
        let levels = levels.collect::<Result<Vec<_>>>()?;
        let integers = match self.integers.is_empty() {
            true => Vec::new(),
            false => self.in_order(&distribution, &self.integers)?,
        };
        Ok(distribution.with_levels(levels).with_integers(integers))
    }

    /// Returns the facts in the order of the distribution's values.
    fn in_order<T: Copy>(&self, distribution: &Distribution, facts: &[T]) -> Result<Vec<T>> {
        let at = |value: Option<u32>| value.map_or(0, |number| number as usize + self.nulls);
        let facts = distribution.values().iter().map(|count| facts.get(at(count.value)).copied());
        facts.collect::<Option<_>>().ok_or_else(|| Error::internal("distribution: a value without its facts"))
    }
}

impl SensitiveColumn {
    /// Returns the facts that a model reads of the distinct `values` of the column, which are in
    /// their order, NULL first.
    ///
    /// # Errors
    /// Those of the hierarchy's rules, a data error for a value that is no integer.
    pub fn facts(&self, values: &ArrayRef) -> Result<ValueFacts> {
        let of_level =
            |level: &Arc<dyn Generalizer>| Ok(numbered(text_forms(&apply(&**level, values)?)?.iter()));
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
        self.facts_by(values, of_level, integers)
    }

    /// Returns the facts as [`facts`](Self::facts) does, naively: one value at a time.
    ///
    /// # Errors
    /// As [`facts`](Self::facts).
    pub fn facts_naively(&self, values: &ArrayRef) -> Result<ValueFacts> {
        let of_level = |level: &Arc<dyn Generalizer>| {
            let label = |row| Ok(level.generalize_value(&Value::read(values, row)?)?.text_form());
            Ok(numbered((0..values.len()).map(label).collect::<Result<Vec<_>>>()?))
        };
        let integer = |row: usize| match Value::read(values, row)? {
            Value::Null => Ok(0),
            Value::Int(value) => u64::try_from(value).map_err(|_| self.no_integer()),
            _ => Err(self.no_integer()),
        };
        self.facts_by(values, of_level, || (0..values.len()).map(integer).collect())
    }

    fn facts_by(
        &self,
        values: &ArrayRef,
        of_level: impl Fn(&Arc<dyn Generalizer>) -> Result<Vec<u32>>,
        integers: impl Fn() -> Result<Vec<u64>>,
    ) -> Result<ValueFacts> {
        let reads = self.reads();
        let levels = match reads.levels {
            true => self.hierarchy()?.levels().iter().skip(1).map(of_level).collect::<Result<_>>()?,
            false => Vec::new(),
        };
        let integers = if reads.integers { integers()? } else { Vec::new() };
        Ok(ValueFacts { nulls: values.logical_null_count(), levels, integers })
    }

    fn no_integer(&self) -> Error {
        Error::data("expected integers of at least 0 in every row, or NULL")
            .at(format!("column `{}`", self.name()))
    }
}

/// Numbers labels, equal ones alike, in the order in which they first occur; NULL is a label of its own.
pub(crate) fn numbered<T: Eq + Hash>(labels: impl IntoIterator<Item = T>) -> Vec<u32> {
    let mut numbers: HashMap<T, u32> = HashMap::new();
    labels
        .into_iter()
        .map(|label| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(label).or_insert(next)
        })
        .collect()
}
