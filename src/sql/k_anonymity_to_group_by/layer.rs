//! One GROUP BY of the rewritten plan, and aggregate calls.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, AggregateUDF, Expr, LogicalPlan};

use crate::engine::class_key::{NAME_OF_CLASS_KEY, is_class_key_function};

/// Builds a call of an aggregate.
pub(super) fn call(function: &Arc<AggregateUDF>, arguments: Vec<Expr>, filter: Option<Expr>) -> Expr {
    let (function, filter) = (Arc::clone(function), filter.map(Box::new));
    Expr::AggregateFunction(AggregateFunction::new_udf(function, arguments, false, filter, vec![], None))
}

/// One GROUP BY. Equal expressions are computed once.
pub(super) struct Layer {
    name: String,
    keys: Vec<(Expr, String)>,
    values: Vec<(Expr, String)>,
}

/// The name of the layer of class sizes.
const SIZES: &str = "sizes";

/// Returns whether a column is the class key in a layer of class sizes.
pub(super) fn is_class_of_sizes(column: &str) -> bool {
    column.starts_with("kanon_") && column.contains(&format!("_{SIZES}_key_"))
}

/// Returns whether a column is a key of a layer.
pub(super) fn is_key(column: &str) -> bool {
    column.starts_with("kanon_") && column.contains("_key_")
}

impl Layer {
    pub(super) fn new(branch: usize, height: usize) -> Self {
        Self { name: format!("kanon_{branch}_{height}"), keys: Vec::new(), values: Vec::new() }
    }

    /// Creates the layer that counts the individuals of each class, separate from the branch's
    /// other layers.
    pub(super) fn of_class_sizes(branch: usize) -> Self {
        Self { name: format!("kanon_{branch}_{SIZES}"), keys: Vec::new(), values: Vec::new() }
    }

    /// Groups by an expression and returns its column.
    pub(super) fn key(&mut self, expr: Expr) -> Expr {
        let prefix = match &expr {
            Expr::ScalarFunction(call) if is_class_key_function(&call.func) => {
                format!("{NAME_OF_CLASS_KEY}_{}", self.name.trim_start_matches("kanon_"))
            }
            _ => format!("{}_key", self.name),
        };
        named(&mut self.keys, expr, &prefix)
    }

    /// Groups by a column of the layer below.
    pub(super) fn keep(&mut self, column: &Expr) {
        if let Expr::Column(Column { name, .. }) = column
            && !self.keys.iter().any(|(_, known)| known == name)
        {
            self.keys.push((column.clone(), name.clone()));
        }
    }

    /// Computes an aggregate and returns its column.
    pub(super) fn value(&mut self, aggregate: Expr) -> Expr {
        named(&mut self.values, aggregate, &format!("{}_value", self.name))
    }

    /// Builds the plan of the layer over `input`.
    pub(super) fn over(self, input: LogicalPlan) -> Result<LogicalPlan> {
        let aliased = |(expr, name): (Expr, String)| match &expr {
            Expr::Column(column) if column.relation.is_none() && column.name == name => expr,
            _ => expr.alias(name),
        };
        let keys = self.keys.iter().cloned().map(aliased).collect();
        let values = self.values.into_iter().map(|(expr, name)| expr.alias(name)).collect();
        Ok(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), keys, values)?))
    }
}

fn named(known: &mut Vec<(Expr, String)>, expr: Expr, prefix: &str) -> Expr {
    let column = |name: &str| Expr::Column(Column::from_name(name));
    if let Some((_, name)) = known.iter().find(|(other, _)| *other == expr) {
        return column(name);
    }
    let name = format!("{prefix}_{}", known.len());
    known.push((expr, name.clone()));
    column(&name)
}
