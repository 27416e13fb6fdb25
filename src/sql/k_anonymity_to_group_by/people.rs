//! Risk measures over individuals: everybody's smallest class.
//!
//! ```text
//! L3  Aggregate G              the measure of everybody's smallest class
//! L2  Aggregate G, id          the smallest of the sizes
//! W   Window                   how many people are in the class of each row
//! L1  Aggregate G, q.., id     rows
//! ```

use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::min_udaf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::branch::{Branch, Layers};
use super::layer::{Layer, call};
use super::{Answered, Rewrite};

impl Branch {
    /// As [`plan`](Branch::plan), for risk measures over individuals.
    pub(super) fn plan_of_people(self, rewrite: &Rewrite<'_>) -> Result<Answered> {
        let Layers { mut rows, groups, quasi, individual, .. } = self.lowest(rewrite)?;
        let individual = individual.ok_or_else(|| DataFusionError::Internal("nobody to count".into()))?;
        let mut windows = Layer::new(self.number, 0);
        let (mut people, mut answers) = (Layer::new(self.number, 2), Layer::new(self.number, 3));
        groups.iter().chain([&individual]).for_each(|key| people.keep(key));
        groups.iter().for_each(|key| answers.keep(key));
        let class: Vec<Expr> = groups.iter().chain(&quasi).cloned().collect();

        let mut values = Vec::new();
        for measure in self.measures {
            let filter = measure.filter.clone();
            let counted = rows.value(call(&count_udaf(), vec![lit(1i64)], filter.clone()));
            let only = || filter.is_some().then(|| counted.clone().gt(lit(0i64)));
            let size = windows.value(count_over(&individual, only(), &class));
            let smallest = people.value(call(&min_udaf(), vec![size], only()));
            let of_people = rewrite.rule.upper(measure.row, "_of_people")?;
            let mut arguments = measure.constants;
            arguments.push(smallest);
            let value = call(&of_people, arguments, Some(individual.clone().is_not_null()));
            values.push((measure.at, answers.value(value)));
        }
        for (at, plain) in self.plain {
            values.push((at, plain.lay(&mut [&mut rows, &mut people, &mut answers])?));
        }
        let plan = rows.over(LogicalPlan::clone(&rewrite.aggregate.input))?;
        let plan = LogicalPlanBuilder::from(plan).window(windows.values())?.build()?;
        Ok(Answered { plan: answers.over(people.over(plan)?)?, keys: groups, values })
    }
}

/// How many people are in the class of a row; the rows below tell people apart.
fn count_over(individual: &Expr, filter: Option<Expr>, class: &[Expr]) -> Expr {
    let window = WindowFunction::new(count_udaf(), vec![individual.clone()]);
    let filter = filter.map(Box::new);
    let params = WindowFunctionParams { partition_by: class.to_vec(), filter, ..window.params };
    Expr::from(WindowFunction { fun: window.fun, params })
}
