//! The properties that a verification expects of a release.

use std::sync::Arc;

use datafusion::prelude::DataFrame;

use super::assigner::Assigner;
use super::assignment::Assignment;
use super::labels::Labels;
use crate::class::Budget;
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::generalize::Generalizer;
use crate::model::{Needs, Requirement, SensitiveColumn, looked_at};

/// The properties that a verification expects of a release.
pub struct Expected<'a> {
    /// The released columns in order: the name, and for a quasi-identifier the generalizer of its
    /// level.
    pub columns: Vec<(String, Option<Arc<dyn Generalizer>>)>,
    /// What each combination of the input's quasi-identifiers shows, where classes show regions;
    /// the generalizers above are then those of plain text.
    pub assignment: Option<Arc<Assignment>>,
    /// The requirements on every class.
    pub requirements: &'a [Requirement],
    /// The sensitive columns, which are released as they are.
    pub sensitive: Vec<String>,
    /// The columns of the input that models read although they are not released.
    pub preferences: Vec<String>,
    /// The population, with its individual column if there is one, where a model looks at it.
    pub population: Option<(DataFrame, Option<String>)>,
    /// The individual column of the input, where individuals are counted.
    pub individual: Option<String>,
    /// The share of the input that may be suppressed; `None` when only the output is judged.
    pub suppression_limit: Option<Decimal>,
}

/// Returns the columns of preferences that these requirements look at.
pub(crate) fn preferences_of(requirements: &[Requirement]) -> Vec<String> {
    let reads = |requirement: &&Requirement| requirement.model.needs() == Needs::Integers;
    let columns = requirements.iter().filter(reads).filter_map(|requirement| requirement.sensitive.as_ref());
    columns.map(|column| column.name().to_owned()).collect()
}

impl Expected<'_> {
    /// Returns whether a column is released as it is.
    pub(crate) fn shows_as_it_is(&self, column: &str) -> bool {
        self.columns.iter().any(|(name, generalizer)| name == column && generalizer.is_none())
    }

    /// Returns the indices of the quasi-identifiers.
    pub(crate) fn quasi(&self) -> impl Iterator<Item = usize> {
        (0..self.columns.len()).filter(|index| self.columns[*index].1.is_some())
    }

    /// Returns an empty numbering of labels for each quasi-identifier.
    pub(crate) fn labels(&self, budget: &Arc<dyn Budget>) -> Vec<Option<Arc<Labels>>> {
        let columns = self.columns.iter();
        columns.map(|(_, quasi)| quasi.as_ref().map(|_| Arc::new(Labels::new(budget)))).collect()
    }

    /// Returns what assigns the input's rows to classes, where an assignment is expected.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn assigner(&self, budget: &Arc<dyn Budget>) -> Result<Option<Arc<Assigner>>> {
        self.assignment.as_ref().map(|assignment| Assigner::new(assignment, budget)).transpose()
    }

    /// Returns what is counted of the sensitive columns: each released one as it is, then what else
    /// the requirements see of one. Each says whether a model reads the values of the whole table.
    /// A requirement that lacks its hierarchy sees nothing.
    ///
    /// # Errors
    /// An unmet error for a requirement of a column that is no sensitive column of the release.
    pub(crate) fn counted(&self) -> Result<Vec<(SensitiveColumn, bool)>> {
        let as_they_are = self.sensitive().into_iter().map(|index| self.columns[index].0.as_str());
        let mut counted: Vec<_> = as_they_are.map(|name| (SensitiveColumn::from(name), false)).collect();
        let released = counted.len();
        let complete = self.requirements.iter().filter(|requirement| requirement.is_complete());
        for (column, reads_whole) in looked_at(complete) {
            let is_released = counted[..released].iter().any(|(known, _)| known.name() == column.name());
            if !is_released && !self.is_preference(column.name()) {
                return Err(Error::unmet(format!(
                    "verification refused: `{}` is not a sensitive column of the release",
                    column.name()
                )));
            }
            match counted.iter_mut().find(|(known, _)| *known == column) {
                Some(known) => *known = (column, reads_whole),
                None => counted.push((column, reads_whole)),
            }
        }
        Ok(counted)
    }

    /// Returns whether a column is read from the input and not released.
    pub(crate) fn is_preference(&self, name: &str) -> bool {
        self.preferences.iter().any(|preference| preference == name)
    }

    /// Returns for each requirement the index of its column among the [counted](Self::counted)
    /// ones; `None` if it looks at none.
    ///
    /// # Errors
    /// As [`counted`](Self::counted).
    pub(super) fn looks_at(&self) -> Result<Vec<Option<usize>>> {
        let counted = self.counted()?;
        let at = |column: &SensitiveColumn| counted.iter().position(|(known, _)| known == column);
        Ok(self.requirements.iter().map(|r| r.sensitive.as_ref().and_then(at)).collect())
    }

    /// Returns the indices of the columns released as they are.
    pub(crate) fn as_is(&self) -> impl Iterator<Item = usize> {
        (0..self.columns.len()).filter(|index| self.columns[*index].1.is_none())
    }

    /// Returns the indices of the sensitive columns.
    pub(crate) fn sensitive(&self) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(|(_, (name, quasi))| quasi.is_none() && self.sensitive.contains(name))
            .map(|(index, _)| index)
            .collect()
    }
}
