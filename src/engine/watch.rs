//! The plans of sessions without rules, for the test that no plan of a verification is ours.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::DataType;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, displayable};

use super::rules::Rules;

/// How operators and functions that only count fast are called in plans.
const OURS: [&str; 3] = ["CountClassesExec", "kanon_class_key", "kanon_value_key"];

/// How many plans there were, and those with parts of ours.
static PLANS: Mutex<(usize, Vec<String>)> = Mutex::new((0, Vec::new()));

fn plans() -> MutexGuard<'static, (usize, Vec<String>)> {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds to no rules one that looks at each plan and leaves it as it is.
pub(super) fn watching(rules: Rules) -> Rules {
    if rules.is_empty() { vec![Arc::new(Watch)] } else { rules }
}

/// Returns how many plans sessions without rules have made so far, and those with parts of ours.
pub(crate) fn watched() -> (usize, Vec<String>) {
    plans().clone()
}

/// Returns whether a plan has an operator, a key or a dictionary that only counting fast asks for.
pub(crate) fn has_parts_of_ours(plan: &Arc<dyn ExecutionPlan>) -> bool {
    fn reads_dictionaries(plan: &Arc<dyn ExecutionPlan>) -> bool {
        let schema = plan.schema();
        let mut types = schema.fields().iter().map(|field| field.data_type());
        types.any(|of| matches!(of, DataType::Dictionary(..)))
            || plan.children().into_iter().any(reads_dictionaries)
    }
    let text = displayable(plan.as_ref()).indent(true).to_string();
    OURS.iter().any(|part| text.contains(part)) || reads_dictionaries(plan)
}

#[derive(Debug)]
struct Watch;

impl PhysicalOptimizerRule for Watch {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut plans = plans();
        plans.0 += 1;
        if has_parts_of_ours(&plan) {
            plans.1.push(displayable(plan.as_ref()).indent(true).to_string());
        }
        Ok(plan)
    }

    fn name(&self) -> &'static str {
        "watch"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
