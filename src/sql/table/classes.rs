//! `classes(table, column..., [sensitive => column], [individual => column])`: the classes of a table, one row each.
//!
//! # Contract
//! Columns are names in quotes or expressions. The result has a column for each, then `size` (BIGINT: the rows of the
//! class, or with `individual` its distinct individuals, NULL nobody), `risk` (DOUBLE: 1 / size, the prosecutor risk;
//! NULL for size 0), and for each sensitive column `distinct_<column>` (BIGINT: its distinct values that are not NULL).
//! NULL equals NULL; there is one zero and one NaN. The rows are in no order. It is a GROUP BY, and shows cells.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count_distinct, sum};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};

use super::TableFunctionRow;
use super::call::{Call, compared};
use crate::doc::Doc;

/// The table row of this function.
pub const ROW: TableFunctionRow = TableFunctionRow { doc: DOC, plan };

const DOC: &Doc = &Doc {
    name: "classes",
    summary: "the classes of a table: their columns, size, risk, and how many sensitive values they have",
    parameters: "table, column..., [sensitive => column], [individual => column]",
    example: "SELECT * FROM classes(visits, 'age', 'zip', sensitive => 'diagnosis')",
    paper: None,
};

fn plan(mut call: Call<'_>) -> Result<LogicalPlan> {
    let table = call.table()?;
    let columns = call.columns(&table)?;
    let sensitive = call.named_columns("sensitive", &table)?;
    let individual = call.named_column("individual", &table)?;
    call.finish(&["sensitive", "individual"])?;

    let schema = table.schema();
    let key = |(name, column): &(String, Expr)| Ok(compared(column.clone(), schema)?.alias(name));
    let keys = columns.iter().map(key).collect::<Result<Vec<Expr>>>()?;
    let size = match individual {
        Some(who) => count_distinct(compared(who, schema)?),
        // A sum, because the engine makes a GROUP BY of one distinct count beside sums, and not beside counts.
        None => sum(lit(1i64)),
    };
    let mut counts = vec![size.alias("size")];
    for (name, column) in &sensitive {
        counts.push(count_distinct(compared(column.clone(), schema)?).alias(format!("distinct_{name}")));
    }
    let classes = LogicalPlanBuilder::from(table.clone()).aggregate(keys, counts)?.build()?;

    let column = |name: &str| Expr::Column(Column::from_name(name));
    let risk =
        when(column("size").gt(lit(0i64)), lit(1.0) / cast(column("size"), DataType::Float64)).end()?;
    let mut shown: Vec<Expr> = columns.iter().map(|(name, _)| column(name)).collect();
    shown.extend([column("size"), risk.alias("risk")]);
    shown.extend(sensitive.iter().map(|(name, _)| column(&format!("distinct_{name}"))));
    LogicalPlanBuilder::from(classes).project(shown)?.build()
}
