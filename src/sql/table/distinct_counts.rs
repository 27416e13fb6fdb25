//! Counts the rows and distinct values of each group of rows with GROUP BYs, which spill when
//! memory ends; the engine's own distinct counts do not spill, and windows over many groups hardly
//! do.
//!
//! ```text
//! L3  Aggregate key..                                     rows, and per value: distinct, known
//! L1  Aggregate GROUPING SETS ((key.., value), ...)       rows, one set per value
//! ```

use datafusion::common::Column;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder, lit, when};

/// The name of the column with the rows of a group.
pub(super) const ROWS: &str = "rows";

/// Returns the name of the column with the distinct non-NULL values of the value at `at`.
pub(super) fn distinct(at: usize) -> String {
    format!("distinct_{at}")
}

/// Returns the name of the column with the rows whose value at `at` is not NULL.
pub(super) fn known(at: usize) -> String {
    format!("known_{at}")
}

/// Returns one row per group of `keys`: the key columns `prefix_0`, `prefix_1`..., [`ROWS`], and
/// for each of `values` [`distinct`] and [`known`], all BIGINT. Keys and values must be
/// [compared](crate::sql::udaf::compared_column) expressions. The keys and several values together
/// are at most 64.
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

    let n = sum(lit(1i64)).alias("n");
    let several = counted.len() > 1;
    let plan = if several {
        let with = |value: &Expr| groups.iter().chain([value]).cloned().collect();
        let sets = Expr::GroupingSet(GroupingSet::GroupingSets(counted.iter().map(with).collect()));
        builder.project(lowest)?.aggregate(vec![sets], vec![n])?
    } else {
        builder.aggregate(lowest, vec![n])?
    };
    // The engine sets a bit for each column that a set lacks; the lowest bit is the last column's.
    let of_set = |at: usize| {
        let lacks = (0..counted.len()).fold(0u64, |bits, other| bits << 1 | u64::from(other != at));
        column(Aggregate::INTERNAL_GROUPING_ID).eq(lit(lacks))
    };
    let counted_where = |condition: Option<Expr>, value: Expr| match condition {
        Some(condition) => Ok(sum(when(condition, value).otherwise(lit(0i64))?)),
        None => Ok::<Expr, DataFusionError>(sum(value)),
    };
    let mut counts = vec![counted_where(several.then(|| of_set(0)), column("n"))?.alias(ROWS)];
    for (at, value) in counted.iter().enumerate() {
        let has_value = value.clone().is_not_null();
        let counts_here = if several { of_set(at).and(has_value) } else { has_value };
        counts.push(counted_where(Some(counts_here.clone()), lit(1i64))?.alias(distinct(at)));
        counts.push(counted_where(Some(counts_here), column("n"))?.alias(known(at)));
    }
    plan.aggregate(groups, counts)?.build()
}
