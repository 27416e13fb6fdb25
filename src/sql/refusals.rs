//! Refuses DISTINCT, OVER and constant columns in calls of measures with plan errors. (WITHIN GROUP
//! is a plan error already.)

use datafusion::error::Result;
use datafusion::logical_expr::WindowFunctionDefinition;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawWindowExpr};

use super::udaf::ClassAggregate;

/// Checks calls of measures when SQL is planned.
#[derive(Debug)]
pub(super) struct Refusals;

impl ExprPlanner for Refusals {
    fn plan_aggregate(&self, call: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        if let Some(measure) = call.func.inner().downcast_ref::<ClassAggregate>() {
            measure.no_distinct(call.distinct)?;
            measure.no_constant_column(&call.args)?;
        }
        Ok(PlannerResult::Original(call))
    }

    fn plan_window(&self, call: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        if let WindowFunctionDefinition::AggregateUDF(function) = &call.func_def
            && let Some(measure) = function.inner().downcast_ref::<ClassAggregate>()
        {
            return Err(measure.refused(
                "OVER is not supported: a measure evaluates classes, not rows; use GROUP BY in a subquery",
            ));
        }
        Ok(PlannerResult::Original(call))
    }
}
