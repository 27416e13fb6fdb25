//! The columns of a call that compares two tables.

use datafusion::common::DFSchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::binary::comparison_coercion;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::sql::sqlparser::ast::Expr as SqlExpr;

use super::arguments::Arguments;
use crate::generalize::value::type_name;
use crate::sql::udaf::compared_column as compared;

/// A table of a call, and its name in errors.
pub(super) type Named<'a> = (&'a LogicalPlan, &'a str);

/// Returns the columns that the arguments name in both tables, in the types in which they are compared.
///
/// # Errors
/// A plan error for a column that one of the tables lacks, and for types that cannot be compared: a
/// cast of texts to numbers could fail while the query runs, and show one.
pub(super) fn compared_columns(
    call: &mut Arguments<'_>,
    arguments: &[SqlExpr],
    [(a, name_a), (b, name_b)]: [Named<'_>; 2],
) -> Result<(Vec<Expr>, Vec<Expr>)> {
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    for argument in arguments {
        let (name, left) = call.column(argument, a.schema()).map_err(|error| in_table(error, name_a))?;
        let (_, right) = call.column(argument, b.schema()).map_err(|error| in_table(error, name_b))?;
        let types = (left.get_type(a.schema())?, right.get_type(b.schema())?);
        let are_texts = (type_name(&types.0) == "text", type_name(&types.1) == "text");
        let common = comparison_coercion(&types.0, &types.1).filter(|_| are_texts.0 == are_texts.1);
        let Some(common) = common else {
            return Err(call.refused(format!(
                "`{name}` is {} in {name_a} and {} in {name_b}, which cannot be compared; cast one",
                types.0, types.1
            )));
        };
        let key = |key: Expr, schema: &DFSchemaRef| compared(key.cast_to(&common, schema)?, schema);
        of_a.push(key(left, a.schema())?);
        of_b.push(key(right, b.schema())?);
    }
    Ok((of_a, of_b))
}

/// Adds to an error which of the two tables it is about.
fn in_table(error: DataFusionError, table: &str) -> DataFusionError {
    match error {
        DataFusionError::Plan(why) => DataFusionError::Plan(format!("{why} (in {table})")),
        other => other,
    }
}
