//! Rows and distinct values of each group of rows, as GROUP BYs and sorts: they spill where memory ends, which the
//! engine's own distinct counts do not.
//!
//! ```text
//! L3  Aggregate key..            rows, and of each value: distinct, known
//! W   Window                     which row is the first of its group and value, for each of several values
//! L1  Aggregate key.., value..   rows
//! ```

use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, lit, when};

/// The column of a group's rows.
pub(super) const ROWS: &str = "rows";

/// The column of the distinct values of the value at `at`, NULL being none.
pub(super) fn distinct(at: usize) -> String {
    format!("distinct_{at}")
}

/// The column of the rows that have the value at `at`.
pub(super) fn known(at: usize) -> String {
    format!("known_{at}")
}

/// A row for each group of `keys`: their columns `prefix_0`, `prefix_1`..., [`ROWS`], and for each of `values`
/// [`distinct`] and [`known`], all BIGINT. Keys and values are expressions that are [compared](super::call::compared).
pub(super) fn distinct_counts(
    input: LogicalPlan,
    prefix: &str,
    keys: Vec<Expr>,
    values: Vec<Expr>,
) -> Result<LogicalPlan> {
    let column = |name: &str| Expr::Column(Column::from_name(name));
    let named = |prefix: &str, exprs: Vec<Expr>| {
        let named = exprs.into_iter().enumerate().map(|(at, expr)| expr.alias(format!("{prefix}_{at}")));
        named.collect::<Vec<Expr>>()
    };
    let names = |prefix: &str, count: usize| {
        (0..count).map(|at| column(&format!("{prefix}_{at}"))).collect::<Vec<Expr>>()
    };
    let (groups, counted) = (names(prefix, keys.len()), names("value", values.len()));
    let lowest: Vec<Expr> = named(prefix, keys).into_iter().chain(named("value", values)).collect();
    let builder = LogicalPlanBuilder::from(input);
    if counted.is_empty() {
        return builder.aggregate(lowest, vec![sum(lit(1i64)).alias(ROWS)])?.build();
    }

    let mut plan = builder.aggregate(lowest, vec![sum(lit(1i64)).alias("n")])?;
    // The groups of one value are distinct already.
    if counted.len() > 1 {
        for (at, value) in counted.iter().enumerate() {
            let partition = groups.iter().chain([value]).cloned().collect();
            let number = row_number().partition_by(partition).build()?.alias(format!("number_{at}"));
            plan = plan.window([number])?;
        }
    }
    let mut counts = vec![sum(column("n")).alias(ROWS)];
    for (at, value) in counted.iter().enumerate() {
        let mut counts_once = value.clone().is_not_null();
        if counted.len() > 1 {
            counts_once = counts_once.and(column(&format!("number_{at}")).eq(lit(1u64)));
        }
        counts.push(sum(when(counts_once, lit(1i64)).otherwise(lit(0i64))?).alias(distinct(at)));
        let rows = when(value.clone().is_not_null(), column("n")).otherwise(lit(0i64))?;
        counts.push(sum(rows).alias(known(at)));
    }
    plan.aggregate(groups, counts)?.build()
}
