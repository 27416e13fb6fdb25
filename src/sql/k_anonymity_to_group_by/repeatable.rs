//! Finds plans that give the same rows each time they are read, and plans that should be read only
//! once.

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::catalog::stream::StreamTable;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

use super::super::table::is_task;
use super::{is_measure, is_plain};

/// Returns whether a plan gives the same rows each time: scans, filters, joins and exact
/// aggregates, without volatile functions. Plans that depend on an order among equals (LIMIT,
/// windows), on the order of additions (sums of doubles) or on unknown code do not count as
/// repeatable.
pub(in crate::sql) fn is_repeatable(plan: &LogicalPlan) -> Result<bool> {
    let exact = [count_udaf(), min_udaf(), max_udaf()];
    let is_exact = |expr: &Expr| match expr.clone().unalias() {
        Expr::AggregateFunction(call) => exact.contains(&call.func) || is_measure(expr),
        _ => false,
    };
    let mut repeatable = true;
    plan.apply(|node| {
        repeatable &= match node {
            LogicalPlan::Aggregate(aggregate) => aggregate.aggr_expr.iter().all(is_exact),
            LogicalPlan::Distinct(distinct) => matches!(distinct, Distinct::All(_)),
            LogicalPlan::TableScan(scan) => scan.fetch.is_none(),
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::EmptyRelation(_) => true,
            LogicalPlan::Sort(sort) => sort.fetch.is_none(),
            _ => false,
        };
        repeatable &= node.expressions().iter().all(is_plain);
        Ok(if repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(repeatable)
}

/// Returns whether a plan has a source that should be read once: a table function of this crate
/// that searches (`anonymize`, `lattice`), or a stream, which may end after one read.
pub(super) fn reads_once(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| match node {
        LogicalPlan::TableScan(scan) => Ok(source_as_provider(&scan.source).is_ok_and(|table| {
            is_task(&*table) || table.is::<StreamTable>() || table.is::<StreamingTable>()
        })),
        _ => Ok(false),
    })
}
