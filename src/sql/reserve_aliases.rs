//! The optimizer rule `reserve_aliases`: prevents the engine from generating an alias twice in a
//! plan.
//!
//! DataFusion 55 optimizes a statement when it is prepared and again when it is executed, and
//! counts `__common_expr_1`, `__common_expr_2`, ... from 1 both times. Two expressions then share a
//! name, and `EXECUTE` computes one in place of the other: a wrong result, with and without
//! measures.
//!
//! # Contract
//! The rule changes no plan. It runs before all other rules and makes the session's generator
//! continue after the greatest number of a generated name in the plan.

use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule's name, under which EXPLAIN VERBOSE shows it.
pub const NAME: &str = "reserve_aliases";

/// The rule; see the [module](self).
#[derive(Debug)]
pub struct ReserveAliases;

/// Returns the number of a generated name: `__common_expr_7` has 7.
fn number(name: &str) -> Option<usize> {
    let (prefix, number) = name.rsplit_once('_')?;
    // Far below the greatest number: the generator adds to it.
    number.parse().ok().filter(|number| prefix.starts_with("__") && *number < 1_000_000_000)
}

impl OptimizerRule for ReserveAliases {
    fn name(&self) -> &str {
        NAME
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut greatest = None;
        plan.apply_with_subqueries(|node| {
            for (qualifier, field) in node.schema().iter() {
                let names = qualifier.map(TableReference::table).into_iter().chain([field.name().as_str()]);
                greatest = greatest.max(names.filter_map(number).max());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if let Some(greatest) = greatest {
            config.alias_generator().update_min_id(greatest);
        }
        Ok(Transformed::no(plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_have_a_number() {
        assert_eq!(number("__common_expr_12"), Some(12));
        assert_eq!(number("__scalar_sq_1"), Some(1));
        for other in
            ["common_expr_1", "__common_expr", "__common_expr_99999999999", "__common_expr_x", "a_1", ""]
        {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
