//! What the data say of the roles that a policy gives: people behind several rows, columns whose values name their
//! rows, rows that are copies.

use datafusion::logical_expr::Expr;
use datafusion::prelude::DataFrame;

use super::engine::{Doing, column};
use super::functions::{random_keys, row_hash};
use super::profile::class_sizes;
use super::{Loaded, Run};
use crate::error::{Error, Result};
use crate::measure::ClassSizes;
use crate::policy::Policy;
use crate::role::Role;

/// The part of the rows that may hold a value which occurs once: one in so many.
const UNIQUE_IN: u64 = 10;

/// The identifiers that must not repeat: those of a policy that does not say whose row a row is.
pub(crate) fn must_not_repeat(policy: &Policy) -> impl Iterator<Item = &str> {
    let is_said = policy.individual().is_some() || policy.rows_are_individuals;
    let columns = policy.columns.iter().filter(move |(_, role)| !is_said && *role == Role::Identifier);
    columns.map(|(name, _)| name.as_str())
}

/// Refuses a policy under which people would count several times.
///
/// # Errors
/// A policy error: an identifier repeats and nobody says who is counted. A data error when reading fails.
pub(crate) async fn each_counts_once(run: &Run<'_>, loaded: &Loaded) -> Result<()> {
    for name in must_not_repeat(&loaded.policy) {
        run.stop.check()?;
        if loaded.schema().field_with_name(name).is_ok_and(|field| field.data_type().is_nested()) {
            return Err(Error::policy(format!(
                "`{name}` holds lists or objects, in which no repeated identifier can be found; give it the role `text`"
            )));
        }
        let values = values(run, &loaded.table, name).await?;
        let repeated = values.individuals() - alone(&values);
        if repeated > 0 {
            return Err(Error::policy(format!(
                "`{name}` repeats in {repeated} rows: people seem to have several rows each, and would count several \
                 times; give the column that tells whose row it is the role `individual`, or say \
                 `rows_are_individuals = true` if each row is a person"
            )));
        }
    }
    Ok(())
}

/// Refuses a policy whose roles the data contradict; returns how many rows are exact copies of another row.
///
/// # Errors
/// As [`each_counts_once`]; a policy error when a column that is released as it is has a value of its own in more than
/// a tenth of the rows.
pub(super) async fn check(run: &Run<'_>, loaded: &Loaded) -> Result<u64> {
    each_counts_once(run, loaded).await?;
    let policy = &loaded.policy;
    let equal_rows = equal_rows(run, &loaded.table).await?;
    let rows = equal_rows.individuals();
    for (name, role) in policy.released().filter(|(_, role)| *role != Role::Quasi) {
        if policy.allow_unique.iter().any(|allowed| allowed == name) {
            continue;
        }
        run.stop.check()?;
        let alone = alone(&values(run, &loaded.table, name).await?);
        if alone > rows / UNIQUE_IN {
            return Err(Error::policy(format!(
                "{alone} of {rows} rows hold a value that no other row has, and the column is released as it is (role \
                 `{}`): whoever knows the value finds the row, whatever the quasi-identifiers say; make it a \
                 quasi-identifier with a hierarchy, leave it out (`identifier`, `text`), or say `allow_unique = true` \
                 in its line if nobody can know its values",
                role.word()
            ))
            .at(format!("columns.{name}")));
        }
    }
    Ok(rows - equal_rows.classes())
}

/// The rows that have a value in a column, by how many have the same.
async fn values(run: &Run<'_>, table: &DataFrame, name: &str) -> Result<ClassSizes> {
    let doing = format!("counting the values of `{name}`");
    let known = table.clone().filter(column(name).is_not_null()).doing(&doing)?;
    class_sizes(&known, &[name], run.stop, &doing).await
}

/// The rows whose value no other row has.
fn alone(values: &ClassSizes) -> u64 {
    values.histogram().take_while(|(size, ..)| *size == 1).map(|(_, rows, _)| rows).sum()
}

/// The rows, by how many are equal in all flat columns.
async fn equal_rows(run: &Run<'_>, table: &DataFrame) -> Result<ClassSizes> {
    let doing = "counting copies of rows";
    let fields = table.schema().fields().iter();
    let flat = fields.filter(|field| !field.data_type().is_nested());
    let columns: Vec<Expr> = flat.map(|field| column(field.name())).collect();
    // Of two rows that differ, 64 bits under a random key are equal once in 10^19: enough for a count that is told.
    let hash = row_hash(random_keys(doing)?[0], columns).alias("hash");
    let rows = table.clone().select(vec![hash]).doing(doing)?;
    class_sizes(&rows, &["hash"], run.stop, doing).await
}
