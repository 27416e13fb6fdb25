//! What a policy spec says of a population, and of columns whose numbers a model reads.

use super::required::Required;
use super::spec::{ColumnSpec, PolicySpec};
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::measure::granularity::Granularity;
use crate::model::Needs;
use crate::role::Role;

impl PolicySpec {
    /// Returns whether a model reads the numbers of this column.
    pub(super) fn is_read_as_number(&self, name: &str) -> bool {
        if self.numbers.iter().any(|number| number == name) {
            return true;
        }
        let Some(column) = self.column(name) else { return false };
        let mut sensitive = self.columns.iter().filter(|column| column.role == Role::Sensitive);
        let is_only = sensitive.next().is_some_and(|first| first.name == name) && sensitive.next().is_none();
        let looks_at = |required: &Required| match &required.sensitive {
            Some(sensitive) => sensitive == name,
            None => is_only,
        };
        let reads_order =
            |required: &Required| required.make().is_ok_and(|model| model.needs() == Needs::Order);
        column.role == Role::Preference
            || (column.hierarchy.is_none() && self.required.iter().any(|r| looks_at(r) && reads_order(r)))
    }

    pub(super) fn check_population(&self) -> Result<()> {
        let reads =
            |required: &&Required| required.make().is_ok_and(|model| model.needs() == Needs::Population);
        match (self.required.iter().find(reads), &self.population) {
            (Some(required), None) => Err(Error::policy(format!(
                "`{}` compares with a population, but the policy names none; add the line `population = \"census.parquet\"` {}",
                required.model,
                self.above_tables()
            ))
            .at(required.place())),
            (None, Some(_)) => {
                let why = "no required model looks at a population; remove the line, or require k_map or delta_presence";
                Err(Error::policy(why).at("population"))
            }
            (Some(required), Some(_)) => {
                if !self.method.searches_lattice() {
                    let why = format!(
                        "`{}` needs labels that do not overlap, and this method makes none; use one that chooses levels, such as \
                         \"auto\"",
                        required.model
                    );
                    return Err(Error::policy(why).at("method"));
                }
                let is_made = |column: &&ColumnSpec| {
                    column.relative_to.is_some() || column.hierarchy.as_ref().is_some_and(|h| h.merge().is_some())
                };
                let quasi = self.columns.iter().filter(|column| column.role == Role::Quasi);
                match quasi.into_iter().find(is_made) {
                    Some(column) => {
                        let why = "a population cannot be grouped by `merge` or `relative_to`, whose values follow from the input";
                        Err(Error::policy(why).at(column.path()))
                    }
                    None => Ok(()),
                }
            }
            (None, None) => Ok(()),
        }
    }

    /// Returns the file of the population, if a model looks at one.
    pub fn population(&self) -> Option<&str> {
        self.population.as_deref()
    }

    /// Returns the policy by which the population is read: its quasi-identifiers, and its
    /// individuals where it names them.
    #[doc(hidden)]
    pub fn of_population(&self, names_individuals: bool) -> Self {
        let is_read = |column: &&ColumnSpec| {
            column.role == Role::Quasi || (names_individuals && column.role == Role::Individual)
        };
        let k = Decimal::integer(1);
        Self {
            required: vec![Required::of_k(k)],
            columns: self.columns.iter().filter(is_read).cloned().collect(),
            others_are_dropped: true,
            accept_homogeneity: Vec::new(),
            population: None,
            objective: &Granularity,
            earlier: Vec::new(),
            ..self.clone()
        }
    }
}
