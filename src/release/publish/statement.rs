//! The publisher's statement in the public record: promises of the policy that the rows cannot show.
//!
//! The statement follows from the policy and the names of the input's columns, never from rows. So it
//! names the method of the policy, not the one that won. Only the date is the publisher's own, because a
//! clock would change the bytes. `kanon verify` compares the statement with the policy if it has one;
//! otherwise it checks that kanon could have written it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::measure::{RISKS, losses};
use crate::method::{AUTO, METHODS, MethodSpec, kind_of};
use crate::policy::{Policy, PolicySpec, Promises, parse_day, protects_column};
use crate::release::publish::record::{ColumnRecord, ModelRecord, PublicRecord, are_same_models};
use crate::role::Role;

/// The role word of columns without a line in the policy.
pub(crate) const OTHERS: &str = "others";

/// The publisher's statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The day of the release, as the publisher gives it: `2026-11-24`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub released_on: Option<String>,
    /// The method, as the policy names it.
    pub method: String,
    /// The loss that the search minimized.
    pub objective: String,
    /// The share of the individuals that the policy allows to suppress, from 0 to 1, as a decimal.
    pub suppression_limit: String,
    /// Whether the publisher asserts that each row is another individual.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub rows_are_individuals: bool,
    /// The sensitive columns in which the publisher accepts that all individuals of a class share a value.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub accept_homogeneity: Vec<String>,
    /// The columns that the publisher releases as they are although few individuals share their values.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub allow_unique: Vec<String>,
    /// The columns of the input that were left out, by role; `others` have no line in the policy.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub left_out: BTreeMap<String, LeftOut>,
    /// The constants of the risk measures in the record, by measure and name.
    pub risk_constants: BTreeMap<String, BTreeMap<String, String>>,
}

/// The columns of one role that were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The number of columns.
    pub columns: usize,
    /// Their names, if the policy publishes them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub names: Option<Vec<String>>,
}

impl Statement {
    /// Creates the statement of a policy, with the day of the release.
    pub(crate) fn of(policy: &Policy, released_on: Option<String>) -> Self {
        let mut left_out: BTreeMap<String, LeftOut> = BTreeMap::new();
        let with_role = policy.columns.iter().filter(|(_, role)| !policy.kind.releases(*role));
        let with_role = with_role.map(|(name, role)| (name, role.word()));
        for (name, role) in with_role.chain(policy.others.iter().map(|name| (name, OTHERS))) {
            let of_role = left_out.entry(role.to_owned()).or_default();
            of_role.columns += 1;
            if policy.spec.output.names_left_out() {
                of_role.names.get_or_insert_default().push(name.clone());
            }
        }
        Self {
            released_on,
            method: policy.spec.method.name.clone(),
            objective: policy.spec.objective.doc().name.to_owned(),
            suppression_limit: policy.spec.suppression_limit.to_string(),
            rows_are_individuals: policy.spec.rows_are_individuals,
            accept_homogeneity: policy.spec.accept_homogeneity.clone(),
            allow_unique: policy.spec.promises().allow_unique.into_iter().map(str::to_owned).collect(),
            left_out,
            risk_constants: risk_constants(|_| true),
        }
    }

    /// Returns whether the statement follows from this policy, whatever its day.
    pub(crate) fn follows_from(&self, policy: &Policy) -> bool {
        let statement = Self::of(policy, self.released_on.clone());
        // The constants are those of the version that made the release, which `check` looks at.
        *self == Self { risk_constants: self.risk_constants.clone(), ..statement }
    }

    /// Returns whether the statement may follow from this policy, as far as it can be told without a table.
    fn fits(&self, spec: &PolicySpec) -> bool {
        let stated = Promises {
            method: &self.method,
            objective: &self.objective,
            suppression_limit: self.suppression_limit.clone(),
            rows_are_individuals: self.rows_are_individuals,
            accept_homogeneity: self.accept_homogeneity.iter().map(String::as_str).collect(),
            allow_unique: self.allow_unique.iter().map(String::as_str).collect(),
        };
        stated == spec.promises()
    }

    /// Checks that kanon could have written this statement into the record.
    ///
    /// # Errors
    /// An unmet error.
    pub(crate) fn check(&self, record: &PublicRecord) -> Result<()> {
        let limit = Decimal::parse(&self.suppression_limit);
        let limit_is_a_share = limit.is_ok_and(|limit| {
            limit.to_string() == self.suppression_limit
                && limit >= Decimal::integer(0)
                && limit <= Decimal::integer(1)
        });
        let is_method = |name: &str| name == AUTO || METHODS.iter().any(|row| row.doc().name == name);
        let are_of = |names: &[String], roles: &[Role]| {
            let distinct: BTreeSet<&String> = names.iter().collect();
            let is_of = |name: &String| {
                let mut columns = record.columns();
                columns
                    .any(|column| column.name == *name && roles.iter().any(|role| role.word() == column.role))
            };
            distinct.len() == names.len() && names.iter().all(is_of)
        };
        let is_left_out = |(role, of_role): (&String, &LeftOut)| {
            let method = MethodSpec::named(&self.method);
            let is_known =
                role == OTHERS || Role::parse(role).is_ok_and(|role| !method.kind().releases(role));
            let are_all = of_role.names.as_ref().is_none_or(|names| {
                let distinct: BTreeSet<&String> = names.iter().collect();
                distinct.len() == of_role.columns
                    && names.len() == of_role.columns
                    && record.columns().all(|column| !distinct.contains(&column.name))
            });
            is_known && of_role.columns > 0 && are_all
        };
        let all_names: Vec<&String> =
            self.left_out.values().flat_map(|of_role| of_role.names.iter().flatten()).collect();
        let are_distinct = all_names.iter().collect::<BTreeSet<_>>().len() == all_names.len();
        let individual = self.left_out.get(Role::Individual.word()).map_or(0, |of_role| of_role.columns);
        let models = record.models.iter().map(ModelRecord::requirement).collect::<Result<Vec<_>>>()?;
        let is_answered = |column: &ColumnRecord| {
            column.role != Role::Sensitive.word()
                || self.accept_homogeneity.contains(&column.name)
                || protects_column(&models, &column.name)
        };
        let is_made_by = |method: &str| record.recoding.kind() == Some(kind_of(method));
        let holds = [
            (self.released_on.as_deref().is_none_or(|day| parse_day(day).is_ok()), "the day of the release"),
            (is_method(&self.method) && is_made_by(&self.method), "the method"),
            (
                losses().any(|row| row.doc().name == self.objective),
                "the objective, which no loss measure of this program has as its name",
            ),
            (limit_is_a_share, "the suppression limit"),
            (!self.rows_are_individuals || record.individuals.is_none(), "what is counted"),
            (
                are_of(&self.accept_homogeneity, &[Role::Sensitive]) && record.columns().all(is_answered),
                "the accepted homogeneity",
            ),
            (
                are_of(&self.allow_unique, &[Role::Sensitive, Role::Insensitive]),
                "the columns allowed to be unique",
            ),
            (self.left_out.iter().all(is_left_out) && are_distinct, "the columns that were left out"),
            (individual == usize::from(record.individuals.is_some()), "the column of individuals"),
            (
                self.risk_constants == risk_constants(|name| record.risk.contains_key(name)),
                "the constants of the risks",
            ),
        ];
        match holds.iter().find(|(holds, _)| !holds) {
            None => Ok(()),
            Some((_, what)) => Err(Error::unmet(format!(
                "verification refused: the record's statement is wrong about {what}"
            ))),
        }
    }
}

/// Returns whether a release may have been made by this policy: it has the columns and their roles,
/// the models, the method and the limit.
pub fn may_be_policy_of(spec: &PolicySpec, record: &PublicRecord) -> bool {
    let method = MethodSpec::named(spec.promises().method);
    let released = spec.columns().iter().filter(|column| method.kind().releases(column.role()));
    let columns: BTreeSet<(&str, &str)> =
        released.map(|column| (column.name(), column.role().word())).collect();
    let recorded = record.columns().map(|column| (column.name.as_str(), column.role.as_str()));
    let models = record.models.iter().map(ModelRecord::requirement).collect::<Result<Vec<_>>>();
    let same_models = models.is_ok_and(|recorded| {
        spec.requirements().is_ok_and(|required| are_same_models(&required, &recorded))
    });
    columns == recorded.collect()
        && same_models
        && record.statement.as_ref().is_none_or(|statement| statement.fits(spec))
}

/// Returns the constants of the recorded risk measures that have some.
fn risk_constants(is_recorded: impl Fn(&str) -> bool) -> BTreeMap<String, BTreeMap<String, String>> {
    let with_constants = RISKS.iter().filter(|row| !row.parameters.is_empty() && is_recorded(row.doc.name));
    with_constants
        .map(|row| {
            let constants = row.parameters.iter().filter_map(|parameter| {
                parameter.default().map(|constant| (parameter.name.to_owned(), constant.to_string()))
            });
            (row.doc.name.to_owned(), constants.collect())
        })
        .collect()
}
