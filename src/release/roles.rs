//! What the data say of the roles that a policy gives: people behind several rows, columns whose values name their
//! rows, rows that are copies.

use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{Expr, lit, when};
use datafusion::prelude::DataFrame;

use super::engine::{Doing, column};
use super::functions::row_hash;
use super::per_class::random_keys;
use super::{Loaded, Run};
use crate::error::{Error, Result};
use crate::role::Role;

/// The part of the rows that may hold a value which occurs once: one in so many.
const UNIQUE_IN: u64 = 10;

/// Refuses a policy whose roles the data contradict; returns how many rows are exact copies of another row.
///
/// # Errors
/// A policy error: an identifier repeats and nobody says who is counted, or a column that is released as it is has
/// a value of its own in more than a tenth of the rows. A data error when reading fails.
pub async fn check(run: &Run<'_>, loaded: &Loaded) -> Result<u64> {
    let policy = &loaded.policy;
    if policy.individual().is_none() && !policy.rows_are_individuals {
        for (name, _) in policy.columns.iter().filter(|(_, role)| *role == Role::Identifier) {
            run.stop.check()?;
            if loaded.schema().field_with_name(name).is_ok_and(|field| field.data_type().is_nested()) {
                return Err(Error::policy(format!(
                    "`{name}` holds lists or objects, in which no repeated identifier can be found; give it the role \
                     `text`"
                )));
            }
            let values = Values::of(&loaded.table, name).await?;
            let repeated = values.rows - values.once;
            if repeated > 0 {
                return Err(Error::policy(format!(
                    "`{name}` repeats in {repeated} rows: people seem to have several rows each, and would count \
                     several times; give the column that tells whose row it is the role `individual`, or say \
                     `rows_are_individuals = true` if each row is a person"
                )));
            }
        }
    }
    for (name, role) in policy.released().filter(|(_, role)| *role != Role::Quasi) {
        if policy.allow_unique.iter().any(|allowed| allowed == name) {
            continue;
        }
        run.stop.check()?;
        let values = Values::of(&loaded.table, name).await?;
        if values.once > values.all_rows / UNIQUE_IN {
            return Err(Error::policy(format!(
                "{} of {} rows hold a value that no other row has, and the column is released as it is (role `{}`): \
                 whoever knows the value finds the row, whatever the quasi-identifiers say; make it a \
                 quasi-identifier with a hierarchy, leave it out (`identifier`, `text`), or say `allow_unique = true` \
                 in its line if nobody can know its values",
                values.once,
                values.all_rows,
                role.word()
            ))
            .at(format!("columns.{name}")));
        }
    }
    copies(&loaded.table).await
}

/// How the values of a column occur.
struct Values {
    /// All rows of the table.
    all_rows: u64,
    /// The rows with a value.
    rows: u64,
    /// The rows whose value no other row has.
    once: u64,
}

impl Values {
    async fn of(table: &DataFrame, name: &str) -> Result<Self> {
        let doing = format!("counting the values of `{name}`");
        let values = table.clone().select(vec![column(name).alias("value")]).doing(&doing)?;
        let groups =
            values.aggregate(vec![column("value")], vec![count(lit(1i64)).alias("n")]).doing(&doing)?;
        let known = column("value").is_not_null();
        let rows = when(known.clone(), column("n")).otherwise(lit(0i64)).doing(&doing)?;
        let once =
            when(known.and(column("n").eq(lit(1i64))), lit(1i64)).otherwise(lit(0i64)).doing(&doing)?;
        let [all_rows, rows, once] = sums(groups, [column("n"), rows, once], &doing).await?;
        Ok(Self { all_rows, rows, once })
    }
}

/// The rows that are exact copies of another row in all flat columns, the first of each not counted.
async fn copies(table: &DataFrame) -> Result<u64> {
    let doing = "counting copies of rows";
    let fields = table.schema().fields().iter();
    let flat = fields.filter(|field| !field.data_type().is_nested());
    let columns: Vec<Expr> = flat.map(|field| column(field.name())).collect();
    // Of two rows that differ, 64 bits under a random key are equal once in 10^19: enough for a count that is told.
    let hash = row_hash(random_keys(doing)?[0], columns).alias("hash");
    let rows = table.clone().select(vec![hash]).doing(doing)?;
    let groups = rows.aggregate(vec![column("hash")], vec![count(lit(1i64)).alias("n")]).doing(doing)?;
    let [copies] = sums(groups, [column("n") - lit(1i64)], doing).await?;
    Ok(copies)
}

/// The sums of some integers over all rows; 0 where there are none.
async fn sums<const N: usize>(table: DataFrame, what: [Expr; N], doing: &str) -> Result<[u64; N]> {
    let all = what.into_iter().enumerate().map(|(at, expr)| sum(expr).alias(format!("sum_{at}")));
    let batches = table.aggregate(vec![], all.collect()).doing(doing)?.collect().await.doing(doing)?;
    let mut sums = [0; N];
    for batch in batches {
        for (sum, values) in sums.iter_mut().zip(batch.columns()) {
            use arrow::array::AsArray;
            let values = values.as_primitive_opt::<arrow::datatypes::Int64Type>();
            let values = values.ok_or_else(|| Error::internal("a sum that is no BIGINT"))?;
            *sum = values.iter().flatten().map(|value| u64::try_from(value).unwrap_or(0)).sum();
        }
    }
    Ok(sums)
}
