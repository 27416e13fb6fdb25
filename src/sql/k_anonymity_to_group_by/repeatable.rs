//! Whether a plan gives the same rows each time it is read.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

use super::{is_measure, is_plain};

/// Whether a plan gives the same rows each time: scans, filters, joins and exact aggregates, without volatile
/// functions. What depends on an order among equals (LIMIT, windows), on the order of additions (sums of doubles) or
/// on code that is not known is not taken for repeatable.
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
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::EmptyRelation(_) => true,
            LogicalPlan::Sort(sort) => sort.fetch.is_none(),
            _ => false,
        };
        if let LogicalPlan::TableScan(scan) = node {
            repeatable &= scan.fetch.is_none();
        }
        repeatable &= node.expressions().iter().all(is_plain);
        Ok(if repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(repeatable)
}
