//! The properties that a verification expects of a release.

use std::sync::Arc;

use super::assigner::Assigner;
use super::assignment::Assignment;
use super::labels::Labels;
use crate::class::Budget;
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::generalize::Generalizer;
use crate::model::{Requirement, is_compared};

/// The properties that a verification expects of a release.
pub struct Expected<'a> {
    /// The released columns in order: the name, and for a quasi-identifier the generalizer of its
    /// level.
    pub columns: Vec<(String, Option<Arc<dyn Generalizer>>)>,
    /// What each combination of the input's quasi-identifiers shows, where classes show regions; the generalizers above are
    /// then those of plain text.
    pub assignment: Option<Arc<Assignment>>,
    /// The requirements on every class.
    pub requirements: &'a [Requirement],
    /// The sensitive columns, which are released as they are.
    pub sensitive: Vec<String>,
    /// The individual column of the input, where individuals are counted.
    pub individual: Option<String>,
    /// The share of the input that may be suppressed; `None` when only the output is judged.
    pub suppression_limit: Option<Decimal>,
}

impl Expected<'_> {
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

    /// Returns for each requirement the index of its column among the sensitive ones; `None` if it looks at none.
    ///
    /// # Errors
    /// An unmet error for a column that is not one of them.
    pub(super) fn looks_at(&self) -> Result<Vec<Option<usize>>> {
        let sensitive = self.sensitive();
        let of_requirement = |requirement: &Requirement| {
            let Some(name) = &requirement.sensitive else { return Ok(None) };
            let at = sensitive.iter().position(|index| self.columns[*index].0 == *name);
            let why = || {
                Error::unmet(format!(
                    "verification refused: `{name}` is not a sensitive column of the release"
                ))
            };
            at.map(Some).ok_or_else(why)
        };
        self.requirements.iter().map(of_requirement).collect()
    }

    /// Returns whether a model compares classes with the whole of a column.
    pub(super) fn is_compared(&self, name: &str) -> bool {
        is_compared(self.requirements, name)
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
