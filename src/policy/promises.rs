//! The promises of a policy that do not depend on a table.

use super::{ColumnSpec, PolicySpec};
use crate::error::{Error, Result};

/// The promises of a policy, as the statement of a release repeats them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promises<'a> {
    /// The method, as the policy names it.
    pub method: &'a str,
    /// The loss that the search minimizes.
    pub objective: &'a str,
    /// The share of the individuals that may be suppressed.
    pub suppression_limit: String,
    /// Whether each row is another person.
    pub rows_are_individuals: bool,
    /// The sensitive columns in which all individuals of a class may share a value.
    pub accept_homogeneity: Vec<&'a str>,
    /// The columns that may be unique.
    pub allow_unique: Vec<&'a str>,
}

impl PolicySpec {
    /// Checks that the method may release rows of an input whose columns may follow from its rows: names and
    /// order of columns are public.
    ///
    /// # Errors
    /// A policy error for a method that adds noise, if that is so.
    #[doc(hidden)]
    pub fn check_columns_are_known(&self, follow_from_rows: bool) -> Result<()> {
        if !(follow_from_rows && self.method.kind().facts().adds_noise) {
            return Ok(());
        }
        let why = format!(
            "`{}` does not take JSON lines, whose rows decide which columns there are: one person's row could show in the names or the \
             order of the columns; convert the input to Parquet or CSV",
            self.method.name
        );
        Err(Error::policy(why).at("method"))
    }

    /// Returns whether more than a tenth of the individuals may hold a value in a released column that few others hold.
    pub(super) fn may_be_unique(&self, column: &ColumnSpec) -> bool {
        column.allow_unique && self.method.kind().releases(column.role)
    }

    /// Returns the promises.
    #[doc(hidden)]
    pub fn promises(&self) -> Promises<'_> {
        // Of columns that the method leaves out there is nothing to promise.
        let unique = self.columns.iter().filter(|column| self.may_be_unique(column));
        Promises {
            method: &self.method.name,
            objective: self.objective.doc().name,
            suppression_limit: self.suppression_limit.to_string(),
            rows_are_individuals: self.rows_are_individuals,
            accept_homogeneity: self.accept_homogeneity.iter().map(String::as_str).collect(),
            allow_unique: unique.map(|column| column.name.as_str()).collect(),
        }
    }
}
