//! The two tables of a release in groups: their schemas, their columns in the record, their rows in order.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, cast, lit};
use datafusion::prelude::DataFrame;

use crate::engine::functions::row_hash;
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::method::anatomy::COLUMNS;
use crate::policy::Policy;
use crate::release::apply::ORDER_KEY;
use crate::release::kind::groups::{quasi_names, sensitive_column};
use crate::release::publish::record::{ColumnRecord, GROUP_ROLES};
use crate::release::released_schema::{field_label, labelled_field, released_type};

/// Returns the schemas of both tables: the quasi-identifiers with the number of the group; the number of the
/// group with a sensitive value and its count.
///
/// # Errors
/// An internal error if a released column is not in the input.
pub(super) fn schemas(policy: &Policy, input: &Schema) -> Result<[SchemaRef; 2]> {
    let [group, rows] = COLUMNS.map(|name| labelled_field(name, DataType::Int64, None));
    let field = |name: &str| {
        let field = input.field_with_name(name);
        let field = field.map_err(|_| Error::internal("groups: the input lacks a released column"))?;
        let label = field_label(policy.days_since.get(name).map(String::as_str), None);
        Ok(labelled_field(name, released_type(field.data_type()), label))
    };
    let mut of_quasi = quasi_names(policy).iter().map(|name| field(name)).collect::<Result<Vec<_>>>()?;
    of_quasi.push(group.clone());
    let of_values = vec![group, field(sensitive_column(policy)?)?, rows];
    Ok([of_quasi, of_values].map(|fields| Arc::new(Schema::new(fields))))
}

/// Returns the record of each column of a table.
///
/// # Errors
/// An internal error for a column that the policy does not have.
pub(super) fn columns(policy: &Policy, schema: &Schema) -> Result<Vec<ColumnRecord>> {
    let column = |field: &Arc<arrow::datatypes::Field>| {
        let own = COLUMNS.iter().position(|name| name == field.name());
        let of_policy = || policy.columns.iter().find(|(name, _)| name == field.name());
        let role = match own {
            Some(at) => Some(GROUP_ROLES[at]),
            None => of_policy().map(|(_, role)| role.word()),
        };
        let role = role.ok_or_else(|| Error::internal("groups: a column without a role"))?;
        Ok(ColumnRecord {
            name: field.name().clone(),
            role: role.to_owned(),
            data_type: field.data_type().to_string(),
            days_since: policy.days_since.get(field.name()).cloned(),
        })
    };
    schema.fields().iter().map(column).collect()
}

/// Returns the rows of the first table in order: the group and a hash of the others, then the columns.
pub(super) fn ordered_quasi(dealt: DataFrame, quasi: &[String]) -> Result<DataFrame> {
    let [group, _] = COLUMNS;
    let columns = || quasi.iter().map(column).collect::<Vec<_>>();
    let of_table = columns().into_iter().chain([column(group)]);
    sorted_by_group(dealt, columns(), of_table)
}

/// Returns the rows of the second table in the same way.
pub(super) fn ordered_values(dealt: DataFrame, sensitive: &str) -> Result<DataFrame> {
    let [group, rows] = COLUMNS;
    let groups = vec![column(group), column(sensitive)];
    let lines = dealt
        .aggregate(groups.clone(), vec![count(lit(1i64)).alias(rows)])
        .context("planning the release")?;
    sorted_by_group(lines, vec![column(sensitive), column(rows)], groups.into_iter().chain([column(rows)]))
}

fn sorted_by_group(
    rows: DataFrame,
    hashed: Vec<Expr>,
    columns: impl Iterator<Item = Expr>,
) -> Result<DataFrame> {
    let order = ["kanon_group", "kanon_hash"].map(|name| unused_name(&rows, name));
    let [group, _] = COLUMNS;
    let by = [cast(column(group), DataType::UInt64), row_hash(ORDER_KEY, hashed)];
    let by = by.into_iter().zip(&order).map(|(key, name)| key.alias(name));
    // The writer takes them by their places.
    let columns = columns.enumerate().map(|(at, column)| column.alias(format!("kanon_written_{at}")));
    let rows = rows.select(by.chain(columns).collect::<Vec<_>>()).context("planning the release")?;
    rows.sort(order.map(|name| column(name).sort(true, true)).to_vec()).context("planning the release")
}

/// Returns a name that no column of a table has. By one of the table's own, the engine would sort by that
/// column, even if it has another name by then.
pub(super) fn unused_name(table: &DataFrame, name: &str) -> String {
    let mut unused = name.to_owned();
    while table.schema().fields().iter().any(|field| *field.name() == unused) {
        unused.push('_');
    }
    unused
}
