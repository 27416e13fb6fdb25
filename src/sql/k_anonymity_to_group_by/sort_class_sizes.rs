//! The physical optimizer rule `sort_class_sizes`: joins rows and class sizes by sorting and
//! merging both sides.
//!
//! # Contract
//! The rule changes only the joins that [`k_anonymity_to_group_by`](super) makes for risks of
//! individuals. The engine would hash the sizes of all classes in memory, without spilling; a sort
//! can spill. The rows are the same. Without the rule, the hash join computes them within the
//! engine's memory limit.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};

use super::layer::is_class_of_sizes;

/// The rule's name, under which EXPLAIN VERBOSE shows it.
pub const NAME: &str = "sort_class_sizes";

/// The rule; see the [module](self). It must stand before the engine's rules, which add the sorts.
#[derive(Debug)]
pub struct SortClassSizes;

/// Returns whether a join is one of rows and class sizes.
fn joins_class_sizes(join: &HashJoinExec) -> bool {
    let is_plain =
        *join.join_type() == JoinType::Inner && join.filter().is_none() && !join.contains_projection();
    match join.on() {
        [(_, class)] => {
            is_plain && class.downcast_ref::<Column>().is_some_and(|column| is_class_of_sizes(column.name()))
        }
        _ => false,
    }
}

impl PhysicalOptimizerRule for SortClassSizes {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sorted = plan.transform_up(|node| {
            let Some(join) = node.downcast_ref::<HashJoinExec>().filter(|join| joins_class_sizes(join))
            else {
                return Ok(Transformed::no(node));
            };
            let merge = SortMergeJoinExec::try_new(
                Arc::clone(join.left()),
                Arc::clone(join.right()),
                join.on().to_vec(),
                None,
                JoinType::Inner,
                vec![SortOptions::default()],
                join.null_equality(),
            )?;
            Ok(Transformed::yes(Arc::new(merge)))
        });
        sorted.data()
    }

    fn name(&self) -> &str {
        NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}
