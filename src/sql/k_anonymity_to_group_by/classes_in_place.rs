//! The physical optimizer rule `classes_in_place`: rows are moved between partitions once for two
//! layers of GROUP BY.
//!
//! ```text
//! Aggregate FinalPartitioned class              Aggregate FinalPartitioned class
//! Repartition Hash(class)                       Aggregate Partial class
//! Aggregate Partial class                =>     Aggregate FinalPartitioned class, value
//! Aggregate FinalPartitioned class, value       Repartition Hash(class)
//! Repartition Hash(class, value)                Aggregate Partial class, value
//! Aggregate Partial class, value
//! ```
//! The engine's next rule then makes one aggregate of the upper two.
//!
//! # Contract
//! The rule changes only layers that [`k_anonymity_to_group_by`](super) makes. Rows of one class are
//! in one partition, with all their values, so the rows of the result are the same. A table with few classes
//! that have very many values each keeps fewer threads busy.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::layer::is_key;

/// The rule's name, under which EXPLAIN VERBOSE shows it.
pub const NAME: &str = "classes_in_place";

/// The rule; see the [module](self). It must stand behind the engine's rule [`AFTER`], which moves
/// rows between partitions.
#[derive(Debug)]
pub struct ClassesInPlace;

/// The engine's rule that adds the repartitions.
pub const AFTER: &str = "EnsureRequirements";

fn aggregate(plan: &Arc<dyn ExecutionPlan>, mode: AggregateMode) -> Option<&AggregateExec> {
    plan.downcast_ref::<AggregateExec>().filter(|aggregate| *aggregate.mode() == mode)
}

/// Returns the repartition by hash, and its number of partitions.
fn repartition(plan: &Arc<dyn ExecutionPlan>) -> Option<(&RepartitionExec, usize)> {
    let repartition = plan.downcast_ref::<RepartitionExec>()?;
    match repartition.partitioning() {
        Partitioning::Hash(_, partitions) if !repartition.preserve_order() => {
            Some((repartition, *partitions))
        }
        _ => None,
    }
}

/// Returns the columns below `lower` that become the group keys of `upper`, which must be ours.
fn keys_below(upper: &AggregateExec, lower: &AggregateExec) -> Option<Vec<Arc<dyn PhysicalExpr>>> {
    let below = lower.group_expr().expr();
    let keys = upper.group_expr().expr().iter().map(|(key, _)| {
        let column = key.downcast_ref::<Column>().filter(|column| is_key(column.name()))?;
        below.get(column.index()).map(|(key, _)| Arc::clone(key))
    });
    keys.collect::<Option<Vec<_>>>().filter(|keys| !keys.is_empty())
}

/// Returns the plan with one repartition instead of two; `None` if it is not of this form.
fn in_place(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let is_final = aggregate(plan, AggregateMode::FinalPartitioned).map(AggregateExec::input);
    let Some((above, _)) = is_final.and_then(repartition) else { return Ok(None) };
    let Some(upper) = aggregate(above.input(), AggregateMode::Partial) else { return Ok(None) };
    let Some(lower) = aggregate(upper.input(), AggregateMode::FinalPartitioned) else { return Ok(None) };
    let Some((below, partitions)) = repartition(lower.input()) else { return Ok(None) };
    let Some(keys) = keys_below(upper, lower) else { return Ok(None) };
    let below = RepartitionExec::try_new(Arc::clone(below.input()), Partitioning::Hash(keys, partitions))?;
    let lower = replace_children_if_necessary(Arc::clone(upper.input()), vec![Arc::new(below)])?;
    let upper = replace_children_if_necessary(Arc::clone(above.input()), vec![lower])?;
    replace_children_if_necessary(Arc::clone(plan), vec![upper]).map(Some)
}

impl PhysicalOptimizerRule for ClassesInPlace {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let in_place = plan.transform_up(|node| {
            Ok(match in_place(&node)? {
                Some(changed) => Transformed::yes(changed),
                None => Transformed::no(node),
            })
        });
        in_place.data()
    }

    fn name(&self) -> &str {
        NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}
