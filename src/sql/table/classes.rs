//! `classes(table, column..., [sensitive => column], [individual => column])`: the classes of a
//! table, one row each.
//!
//! # Contract
//! Columns are names in quotes or expressions. The result has a column for each, then `size`
//! (BIGINT: the rows of the class, or with `individual` its distinct individuals, not counting
//! NULL), `risk` (DOUBLE: 1 / size, the prosecutor risk; NULL for size 0), and for each sensitive
//! column `distinct_<column>` (BIGINT: its distinct non-NULL values). NULL equals NULL; there is
//! one zero and one NaN. The rows have no order. The function is a GROUP BY and shows cells.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};

use super::TableFunctionRow;
use super::arguments::Arguments;
use super::distinct_counts::{ROWS, distinct, distinct_counts};
use crate::doc::Doc;
use crate::sql::udaf::compared_column as compared;

/// The row of [`TABLE_FUNCTIONS`](super::TABLE_FUNCTIONS) for this function.
pub const ROW: TableFunctionRow = TableFunctionRow { doc: DOC, plan };

const DOC: &Doc = &Doc {
    name: "classes",
    summary: "the classes of a table: their columns, size, risk and number of distinct sensitive values",
    parameters: "table, column..., [sensitive => column], [individual => column]",
    example: "SELECT * FROM classes(visits, 'age', 'zip', sensitive => 'diagnosis')",
    paper: None,
};

fn plan(mut call: Arguments<'_>) -> Result<LogicalPlan> {
    let table = call.table()?;
    let columns = call.columns(&table)?;
    let sensitive = call.named_columns("sensitive", &table)?;
    let individual = call.named_column("individual", &table)?;
    call.finish(&["sensitive", "individual"])?;

    let schema = table.schema();
    let keys = columns.iter().map(|(_, column)| compared(column.clone(), schema));
    let keys = keys.collect::<Result<Vec<Expr>>>()?;
    let values = individual.iter().chain(sensitive.iter().map(|(_, column)| column));
    let values = values.map(|value| compared(value.clone(), schema)).collect::<Result<Vec<Expr>>>()?;
    let size = match individual {
        Some(_) => distinct(0),
        None => ROWS.to_owned(),
    };
    let before = usize::from(individual.is_some());
    let classes = distinct_counts(table.clone(), "key", keys, values)?;

    let column = |name: String| Expr::Column(Column::from_name(name));
    let size = column(size);
    let risk = when(size.clone().gt(lit(0i64)), lit(1.0) / cast(size.clone(), DataType::Float64)).end()?;
    let keys = columns.iter().enumerate();
    let mut shown: Vec<Expr> = keys.map(|(at, (name, _))| column(format!("key_{at}")).alias(name)).collect();
    shown.extend([size.alias("size"), risk.alias("risk")]);
    let counts = sensitive.iter().enumerate();
    shown.extend(
        counts.map(|(at, (name, _))| column(distinct(at + before)).alias(format!("distinct_{name}"))),
    );
    let names: Vec<String> = shown.iter().map(|expr| expr.schema_name().to_string()).collect();
    if let Some(twice) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
        let name = &names[twice];
        return Err(call.refused(format!(
            "two columns of the result would be named `{name}`; rename the table's column: (SELECT {name} AS \
             other, ... FROM ...)"
        )));
    }
    LogicalPlanBuilder::from(classes).project(shown)?.build()
}
