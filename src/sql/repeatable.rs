//! Finds plans that give the same rows each time they are read, and expressions that give the same
//! value for a row.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

use super::udaf::is_measure;

/// Returns whether a plan gives the same rows each time: scans, filters, joins and exact
/// aggregates, without volatile functions. Plans that depend on an order among equals (LIMIT,
/// windows), on the order of additions (sums of doubles) or on unknown code do not count as
/// repeatable.
pub(super) fn is_repeatable(plan: &LogicalPlan) -> Result<bool> {
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

/// Returns whether an expression gives the same value for a row wherever it is evaluated.
pub(super) fn is_plain(expr: &Expr) -> bool {
    let has_subquery = expr.exists(|inner| {
        Ok(matches!(
            inner,
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
        ))
    });
    !expr.is_volatile() && !expr.contains_outer() && !has_subquery.unwrap_or(true)
}
