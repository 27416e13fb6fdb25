//! Ordinary aggregates beside measures, combined from partial results per class.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::bool_and_or::{bool_and_udaf, bool_or_udaf};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast, lit, when};

use super::super::udaf::compared;
use super::layer::{Layer, call};

/// An aggregate that can be combined from partial aggregates over parts of the rows.
pub(super) enum Plain {
    /// `sum`, `min`, `max`, `bool_and`, `bool_or`: the same aggregate over the parts.
    Same(AggregateFunction),
    /// `count`: the sum of the parts.
    Count(AggregateFunction),
    /// `avg` of doubles: sum and count.
    Avg(AggregateFunction),
}

impl Plain {
    /// Reads a call; `None` where its parts cannot be combined.
    pub(super) fn read(aggregate: &AggregateFunction, schema: &DFSchema) -> Result<Option<Self>> {
        // The engine's grouped minimum of doubles loses NaN, its ungrouped one does not.
        let is_end = [min_udaf(), max_udaf()].contains(&aggregate.func);
        for argument in aggregate.params.args.iter().filter(|_| is_end) {
            if compared(&argument.get_type(schema)?).is_floating() {
                return Ok(None);
            }
        }
        let same = [sum_udaf(), min_udaf(), max_udaf(), bool_and_udaf(), bool_or_udaf()];
        if same.contains(&aggregate.func) {
            return Ok(Some(Self::Same(aggregate.clone())));
        }
        if aggregate.func == count_udaf() {
            return Ok(Some(Self::Count(aggregate.clone())));
        }
        let doubles = match aggregate.params.args.as_slice() {
            [one] => one.get_type(schema)? == DataType::Float64,
            _ => false,
        };
        Ok((doubles && aggregate.func == avg_udaf()).then(|| Self::Avg(aggregate.clone())))
    }

    fn text(&self) -> &AggregateFunction {
        match self {
            Self::Same(aggregate) | Self::Count(aggregate) | Self::Avg(aggregate) => aggregate,
        }
    }

    /// Returns the FILTER of the call.
    pub(super) fn filter(&self) -> Option<&Expr> {
        self.text().params.filter.as_deref()
    }

    /// Removes the FILTER of the call.
    pub(super) fn forget_filter(&mut self) {
        match self {
            Self::Same(aggregate) | Self::Count(aggregate) | Self::Avg(aggregate) => {
                aggregate.params.filter = None;
            }
        }
    }

    /// Adds the partial aggregates to the `layers`, lowest first, and returns the value above the
    /// last layer.
    ///
    /// # Errors
    /// Those of building expressions.
    pub(super) fn lay(self, layers: &mut [&mut Layer]) -> Result<Expr> {
        Ok(match self {
            Self::Same(aggregate) => {
                let upper = aggregate.func.clone();
                up(layers, Expr::AggregateFunction(aggregate), |part| call(&upper, vec![part], None))
            }
            Self::Count(aggregate) => counted(layers, aggregate)?,
            Self::Avg(aggregate) => {
                let of = |func| AggregateFunction { func, params: aggregate.params.clone() };
                let total = Self::Same(of(sum_udaf())).lay(layers)?;
                total / cast(counted(layers, of(count_udaf()))?, DataType::Float64)
            }
        })
    }
}

fn counted(layers: &mut [&mut Layer], aggregate: AggregateFunction) -> Result<Expr> {
    let sum = up(layers, Expr::AggregateFunction(aggregate), |part| call(&sum_udaf(), vec![part], None));
    // Without rows there is no part. (The engine's coalesce must be simplified before it runs.)
    when(sum.clone().is_null(), lit(0i64)).otherwise(sum)
}

/// Adds `lowest` to the lowest layer, and `upper` of the layer below to each other layer.
fn up(layers: &mut [&mut Layer], lowest: Expr, upper: impl Fn(Expr) -> Expr) -> Expr {
    let mut value = lowest;
    for (height, layer) in layers.iter_mut().enumerate() {
        value = layer.value(if height == 0 { value } else { upper(value) });
    }
    value
}
