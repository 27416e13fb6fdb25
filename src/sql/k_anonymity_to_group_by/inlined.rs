//! Aggregates over columns that a projection below computes, as aggregates over its input.
//!
//! The engine computes an expression that two measures share in a projection of its own, and a query
//! may generalize in a subquery. Of labels that are columns no [codes](super::super::codes) can be
//! made, and a key of them is not computed in the scan.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};

use super::super::repeatable::is_plain;

/// Returns an aggregate with expressions of the projections below it in the place of their columns;
/// `None` without any, or where one computes something volatile. The schema stays.
///
/// # Errors
/// When an expression has no type.
pub(super) fn inlined(aggregate: &Aggregate) -> Result<Option<Aggregate>> {
    let mut input = &aggregate.input;
    let (mut groups, mut calls) = (aggregate.group_expr.clone(), aggregate.aggr_expr.clone());
    while let Some((columns, projection)) = projection(input) {
        for expr in &projection.expr {
            if !is_plain(expr) {
                return Ok(None);
            }
        }
        let below = projection.expr.iter().map(|expr| expr.clone().unalias());
        let below: HashMap<Column, Expr> = columns.into_iter().zip(below).collect();
        for expr in groups.iter_mut().chain(&mut calls) {
            *expr = replaced(std::mem::take(expr), &below)?;
        }
        input = &projection.input;
    }
    if Arc::ptr_eq(input, &aggregate.input) {
        return Ok(None);
    }
    let mut inlined = Aggregate::try_new(Arc::clone(input), groups, calls)?;
    inlined.schema = Arc::clone(&aggregate.schema);
    Ok(Some(inlined))
}

/// Returns a projection, and the names under which its columns are seen.
fn projection(plan: &LogicalPlan) -> Option<(Vec<Column>, &Projection)> {
    match plan {
        LogicalPlan::Projection(projection) => Some((projection.schema.columns(), projection)),
        LogicalPlan::SubqueryAlias(alias) => match &*alias.input {
            LogicalPlan::Projection(projection) => Some((alias.schema.columns(), projection)),
            _ => None,
        },
        _ => None,
    }
}

fn replaced(expr: Expr, below: &HashMap<Column, Expr>) -> Result<Expr> {
    let replaced = expr.transform_up(|part| {
        Ok(match part.try_as_col().and_then(|column| below.get(column)) {
            Some(expr) => Transformed::yes(expr.clone()),
            None => Transformed::no(part),
        })
    });
    replaced.data()
}
