//! Risk measures over individuals, from each individual's smallest class.
//!
//! ```text
//! L3  Aggregate G              the measure over the smallest classes
//! L2  Aggregate G, id          the smallest of the sizes
//! J   Join class               the size of the class of each row
//! S     Aggregate class        individuals, over a second L1
//! L1  Aggregate G, class, id   rows
//! ```
//! `class` is one key of G and the quasi-identifiers. A window would read L1 once, but the engine's
//! window holds its whole input in memory outside any limit. The join sorts both sides, which
//! spills ([`SortClassSizes`](super::sort_class_sizes::SortClassSizes)).

use datafusion::common::{Column, NullEquality};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::min_udaf;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, lit};

use super::super::udaf::compared_column;
use super::branch::Branch;
use super::layer::{Layer, call};
use super::{Answered, Rewrite, Stop};
use crate::engine::class_key::one_key;

impl Branch {
    /// Builds the [`plan`](Branch::plan) of risk measures over individuals. It reads the `input`
    /// twice.
    pub(super) fn plan_of_individuals(
        self,
        rewrite: &Rewrite<'_>,
        input: LogicalPlan,
    ) -> std::result::Result<Answered, Stop> {
        rewrite.can_read_again()?;
        let individual = self.individual().cloned();
        let individual = individual
            .ok_or_else(|| DataFusionError::Internal("a risk of individuals without them".into()))?;
        let schema = input.schema();
        let class =
            rewrite.groups().map(|key| compared_column(key, schema)).collect::<Result<Vec<Expr>>>()?;
        let class = one_key(class.into_iter().chain(self.quasi(schema)?).collect(), rewrite.seed, schema)?;
        let class = class.ok_or(Stop::Declined("no key can be made of a column's type"))?;

        let mut rows = Layer::new(self.number, 1);
        let groups: Vec<Expr> = rewrite.groups().map(|key| rows.key(key)).collect();
        let (class, individual) = (rows.key(class), rows.key(individual));
        let mut sizes = Layer::of_class_sizes(self.number);
        let class_of_sizes = sizes.key(class.clone());
        let (mut individuals, mut answers) = (Layer::new(self.number, 2), Layer::new(self.number, 3));
        groups.iter().chain([&individual]).for_each(|key| individuals.keep(key));
        groups.iter().for_each(|key| answers.keep(key));

        let mut values = Vec::new();
        for measure in self.measures {
            let filter = measure.filter.clone();
            let counted = rows.value(call(&count_udaf(), vec![lit(1i64)], filter.clone()));
            let only = || filter.is_some().then(|| counted.clone().gt(lit(0i64)));
            // The rows of L1 are distinct by individual.
            let size = sizes.value(call(&count_udaf(), vec![individual.clone()], only()));
            let smallest = individuals.value(call(&min_udaf(), vec![size], only()));
            let of_individuals = rewrite.rule.upper(measure.row, "_of_individuals")?;
            let mut arguments = measure.constants;
            arguments.push(smallest);
            let value = call(&of_individuals, arguments, Some(individual.clone().is_not_null()));
            values.push((measure.at, answers.value(value)));
        }
        for (at, plain) in self.plain {
            values.push((at, plain.lay(&mut [&mut rows, &mut individuals, &mut answers])?));
        }
        let rows = rows.over(input)?;
        let sizes = sizes.over(rows.clone())?;
        let column = |expr: &Expr| expr.try_as_col().cloned().into_iter().collect::<Vec<Column>>();
        let on = (column(&class), column(&class_of_sizes));
        let joined = LogicalPlanBuilder::from(rows).join_detailed(
            sizes,
            JoinType::Inner,
            on,
            None,
            NullEquality::NullEqualsNothing,
        )?;
        Ok(Answered { plan: answers.over(individuals.over(joined.build()?)?)?, keys: groups, values })
    }
}
