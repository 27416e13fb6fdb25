//! A sensitive column as a requirement looks at it: by its values, by their labels at a level of
//! its hierarchy, or by a few of its values only.
//!
//! Requirements see different things of a column, but every room counts these as it counts a column: the class
//! table encodes it as one more sensitive column, the verification and `kanon check` group by one more
//! expression. A model sees counts and knows none of this. Two requirements that see the same share the counts.
//! A choice of values (`values = ["HIV"]`; every other one counts as NULL) is for models that judge each value
//! by itself, and never counts as protection of the column.
//!
//! A column of the role `preference` is counted like a sensitive column, but it is read from the input alone
//! and never written, so the verification has it on the input's side only.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::nullif;
use arrow::datatypes::DataType;

use super::value_facts::ReadFacts;
use crate::error::{Error, Result};
use crate::generalize::{Generalizer, Hierarchy, Value, apply, text_forms};

/// The sensitive column of a requirement, and which of its facts count. Its `Debug` and its text
/// show the policy's words, never a cell.
#[derive(Debug, Clone)]
pub struct SensitiveColumn {
    name: String,
    /// The level of the hierarchy whose labels are counted; 0 for the values themselves.
    level: usize,
    /// The only values that count; every other one counts as NULL.
    only: Option<Vec<String>>,
    /// The levels that the requirement looks at, if any.
    hierarchy: Option<Hierarchy>,
    reads: ReadFacts,
}

impl SensitiveColumn {
    /// Returns the column with its values as they are.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), level: 0, only: None, hierarchy: None, reads: ReadFacts::default() }
    }

    /// Counts the labels of a level instead of the values.
    #[must_use]
    pub fn at_level(mut self, level: usize) -> Self {
        self.level = level;
        self
    }

    /// Counts these values (their text forms) and takes every other one as NULL.
    #[must_use]
    pub fn only(mut self, values: Option<Vec<String>>) -> Self {
        self.only = values;
        self
    }

    /// Gives the column its hierarchy, which levels and distances are taken from.
    #[must_use]
    pub fn with_hierarchy(mut self, hierarchy: Option<Hierarchy>) -> Self {
        self.hierarchy = hierarchy;
        self
    }

    /// Adds what a model reads of the values besides their counts.
    #[must_use]
    pub fn reading(mut self, facts: ReadFacts) -> Self {
        self.reads = self.reads.and(facts);
        self
    }

    /// Returns the name of the column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the level whose labels are counted; 0 for the values themselves.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Returns the only values that count, if not all do.
    pub fn values(&self) -> Option<&[String]> {
        self.only.as_deref()
    }

    /// Returns what the model reads of the values besides their counts.
    pub fn reads(&self) -> ReadFacts {
        self.reads
    }

    /// Returns whether the values themselves are counted, all of them.
    pub fn is_as_it_is(&self) -> bool {
        self.level == 0 && self.only.is_none()
    }

    /// Returns the hierarchy.
    ///
    /// # Errors
    /// A policy error without one.
    pub fn hierarchy(&self) -> Result<&Hierarchy> {
        self.hierarchy.as_ref().ok_or_else(|| {
            let why = "a model looks at the hierarchy of this sensitive column, but it has none; give its line `hierarchy = ...`";
            Error::policy(why).at(format!("columns.{}", self.name))
        })
    }

    /// Returns whether the facts that the requirement reads are there: levels need the hierarchy.
    pub fn is_complete(&self) -> bool {
        self.hierarchy.is_some() || (self.level == 0 && !self.reads.levels)
    }

    /// Gives the column its hierarchy, if a requirement looks at it.
    #[must_use]
    pub fn completed(self, hierarchies: &BTreeMap<String, Hierarchy>) -> Self {
        let hierarchy = hierarchies.get(self.name()).filter(|_| !self.is_complete()).cloned();
        match hierarchy {
            Some(hierarchy) => self.with_hierarchy(Some(hierarchy)),
            None => self,
        }
    }

    /// Returns the type of what is counted, of values of type `input`.
    ///
    /// # Errors
    /// A policy error if the level is not there or its rule does not fit the type.
    pub fn output_type(&self, input: &DataType) -> Result<DataType> {
        match self.level {
            0 => Ok(input.clone()),
            _ => self.rule()?.output_type(input),
        }
    }

    /// Returns what is counted, value by value of a column.
    ///
    /// # Errors
    /// Those of the hierarchy's rule.
    pub fn see(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let seen = match self.level {
            0 => ArrayRef::clone(values),
            _ => apply(&**self.rule()?, values)?,
        };
        let Some(only) = &self.only else { return Ok(seen) };
        let other = |text: Option<&str>| text.is_some_and(|text| !only.iter().any(|one| one == text));
        let others: BooleanArray = text_forms(&seen)?.iter().map(|text| Some(other(text))).collect();
        nullif(&seen, &others).map_err(Error::internal)
    }

    /// Returns what is counted of one value, naively: the oracle of [`see`](Self::see).
    ///
    /// # Errors
    /// As [`see`](Self::see).
    pub fn see_value(&self, value: &Value) -> Result<Value> {
        let seen = if self.level == 0 { value.clone() } else { self.rule()?.generalize_value(value)? };
        let counts = |seen: &Value| match (&self.only, seen.text_form()) {
            (Some(only), Some(text)) => only.contains(&text),
            _ => true,
        };
        Ok(if counts(&seen) { seen } else { Value::Null })
    }

    /// Returns the rule of the level.
    fn rule(&self) -> Result<&Arc<dyn Generalizer>> {
        let (level, levels) = (self.level, self.hierarchy()?.levels());
        levels.get(level).ok_or_else(|| {
            let why = format!("expected a level from 0 to {}, found {level}", levels.len().saturating_sub(1));
            Error::policy(why).at(format!("columns.{}", self.name))
        })
    }
}

/// Two requirements look at the same counts if what they count is written alike.
impl PartialEq for SensitiveColumn {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.level, &self.only) == (&other.name, other.level, &other.only)
    }
}

impl From<&str> for SensitiveColumn {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for SensitiveColumn {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

/// Writes what is counted: `diagnosis`, `diagnosis at level 1`, `diagnosis in ["HIV"]`.
impl fmt::Display for SensitiveColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.level > 0 {
            write!(f, " at level {}", self.level)?;
        }
        match &self.only {
            Some(values) => write!(f, " in {values:?}"),
            None => Ok(()),
        }
    }
}
