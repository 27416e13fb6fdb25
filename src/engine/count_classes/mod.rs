//! The physical optimizer rule `count_classes`: the rows of each class, or of each value in it, are counted
//! by an operator of this crate instead of the engine's GROUP BY.
//!
//! ```text
//! Aggregate FinalPartitioned class, value       CountClasses FinalPartitioned   counts part by part (`parts.rs`)
//! Repartition Hash(class)                 =>    Repartition Hash(class)
//! Aggregate Partial class, value                CountClasses Partial            a fixed table (`first_counts.rs`)
//! ```
//! The engine's hash table reads three places in memory for each group, and grows with the groups. Class
//! keys are random numbers already: a table of fixed size removes most repetitions in one pass,
//! and the remaining rows are dealt to parts small enough to be counted in the processor's cache.
//!
//! Parts are ranges of class keys. So the rows can be returned in the order of the classes for little: a GROUP BY
//! of the classes above needs no table of them, and a sort by the class is left out.
//!
//! Where most rows are groups of their own, each of the three places in the engine's table is a miss of the
//! cache. Groupings by an outer group, by texts whose values are read, and by floats stay with the engine. The
//! operator holds the engine's `AggregateExec`, and other rules see only that and, if it has one, its order. A
//! worker that does not know the operator counts with the engine's GROUP BY instead; for its sake sorts are
//! left out in the sessions of our commands only. `benches/README.md` lists what was measured and not kept.
//!
//! # Contract
//! The rule changes only a GROUP BY by one class key and at most [`MOST_VALUES`] columns of fixed width
//! (numbers except floats, dates, times, keys) that counts rows or nothing, and a sort of its rows by the class. Each half
//! takes and returns what the engine's does, so either works with the engine's other half. The rows
//! of the result are the same, in another order. Where only the least number of rows is asked, one class that
//! has it is returned, and counting ends at the first class of one row. A decimal of -2^127, which is outside
//! the range of `DECIMAL(38, 0)`, is an error.
//!
//! Memory comes from the engine's pool. Without memory for its table, the first half hands every row on;
//! the second half spills, to few files for each thread, and deals a part that does not fit to parts.

mod count_table;
mod counted;
mod dealing;
mod first_counts;
mod operator;
mod part_files;
mod parts;
#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateInputMode, AggregateMode, AggregateOutputMode,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputOrderMode, replace_children_if_necessary,
};

use super::class_key::{KEY, NAME_OF_CLASS_KEY};
use counted::is_of_bits;
use operator::{CountClassesExec, Returned};

/// The rule's name, under which EXPLAIN VERBOSE shows it.
pub(crate) const NAME: &str = "count_classes";

/// The rule; see the [module](self). It must stand behind the engine's rules and `read_dictionaries`.
#[derive(Debug)]
pub(crate) struct CountClasses {
    /// Whether an aggregate looks only at the least of the numbers that it is given.
    pub(crate) reads_least_only: ReadsLeastOnly,
    /// Whether sorts by the class are left out. A worker that makes the engine's GROUP BY of the operator
    /// would miss them.
    pub(crate) replaces_sorts: bool,
}

/// Tells aggregates that look only at the least of the numbers that they are given.
pub(crate) type ReadsLeastOnly = fn(&AggregateUDF) -> bool;

/// The most columns that rows are grouped by beside the class: a sensitive value and the two hashes of an
/// individual.
const MOST_VALUES: usize = 3;

/// Returns whether a plan is a GROUP BY of classes, and of at most [`MOST_VALUES`] columns that are compared by
/// their bits, that counts rows or nothing.
fn counts_classes(aggregate: &AggregateExec) -> bool {
    let Some(((_, name), values)) = aggregate.group_expr().expr().split_first() else { return false };
    let counts_rows = match (aggregate.aggr_expr(), aggregate.filter_expr()) {
        ([], []) => !values.is_empty(),
        ([count], [None]) => counts_rows(count),
        _ => false,
    };
    let schema = aggregate.schema();
    let mut columns = schema.fields().iter().map(|field| field.data_type());
    name.starts_with(NAME_OF_CLASS_KEY)
        && values.len() <= MOST_VALUES
        && aggregate.group_expr().is_single()
        && *aggregate.mode() != AggregateMode::PartialReduce
        && *aggregate.input_order_mode() == InputOrderMode::Linear
        && aggregate.limit_options().is_none()
        && columns.next() == Some(&KEY)
        && columns.by_ref().take(values.len()).all(is_of_bits)
        && columns.all(|count| *count == DataType::Int64)
        && counts_rows
}

/// Returns whether an aggregate is `count` of a constant that is not NULL.
fn counts_rows(call: &AggregateFunctionExpr) -> bool {
    let arguments = call.expressions();
    let is_value = |literal: &Literal| !literal.value().is_null();
    let is_constant = matches!(&arguments[..], [one] if one.downcast_ref::<Literal>().is_some_and(is_value));
    call.fun().name() == "count" && !call.is_distinct() && is_constant
}

/// Returns the function of an aggregate of all classes, over the columns of a class and its rows, which a
/// projection may have moved, if it looks at nothing but the rows.
fn function_over_sizes<'a>(
    aggregate: &'a AggregateExec,
    projection: Option<&ProjectionExec>,
) -> Option<&'a AggregateUDF> {
    let (call, filter) = (aggregate.aggr_expr(), aggregate.filter_expr());
    let ([call], [None], true) = (call, filter, aggregate.group_expr().is_empty()) else { return None };
    let below = |at: usize| match projection {
        Some(projection) => projection.expr().get(at)?.expr.downcast_ref::<Column>().map(Column::index),
        None => Some(at),
    };
    let arguments = call.expressions();
    let [size] = &arguments[..] else { return None };
    let at = size.downcast_ref::<Column>().and_then(|size| below(size.index()));
    let is_raw = aggregate.mode().input_mode() == AggregateInputMode::Raw;
    (is_raw && at == Some(1)).then(|| call.fun())
}

/// Returns the plan with our operator at its top or right below; `None` if it is not of this form.
fn with_operator(
    plan: &Arc<dyn ExecutionPlan>,
    rule: &CountClasses,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if plan.name() == CountClassesExec::NAME {
        return Ok(None);
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>().filter(|_| rule.replaces_sorts) {
        return Ok(without_sort(sort));
    }
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    if counts_classes(aggregate) {
        return Ok(Some(Arc::new(CountClassesExec::new(aggregate.clone()))));
    }
    // The engine puts a projection between them where the class is not needed.
    let projection = aggregate.input().downcast_ref::<ProjectionExec>();
    let below = projection.map_or(aggregate.input(), ProjectionExec::input);
    let Some(counts) = counts_whole_classes(below) else { return Ok(None) };
    let returned = match counts.group_expr().expr() {
        [_] if function_over_sizes(aggregate, projection).is_some_and(rule.reads_least_only) => {
            Returned::LeastSize
        }
        [_, _, ..] if is_by_class(aggregate) && projection.is_none() => Returned::InOrder,
        _ => return Ok(None),
    };
    let counts = CountClassesExec::new(counts.clone()).returning(returned);
    let mut counts: Arc<dyn ExecutionPlan> = Arc::new(counts);
    if projection.is_some() {
        counts = replace_children_if_necessary(Arc::clone(aggregate.input()), vec![counts])?;
    }
    replace_children_if_necessary(Arc::clone(plan), vec![counts]).map(Some)
}

/// Returns the GROUP BY if every row of its classes, or of their values, comes to it.
fn counts_whole_classes(plan: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    let aggregate = plan.downcast_ref::<AggregateExec>()?;
    let is_last = aggregate.mode().output_mode() == AggregateOutputMode::Final;
    (is_last && counts_classes(aggregate)).then_some(aggregate)
}

/// Returns our operator in the place of a sort of what it returns by the class.
fn without_sort(sort: &SortExec) -> Option<Arc<dyn ExecutionPlan>> {
    let counts = counts_whole_classes(sort.input())?;
    let [by] = &sort.expr()[..] else { return None };
    let is_by_class = by.expr.downcast_ref::<Column>().is_some_and(|column| column.index() == 0);
    let is_whole = sort.preserve_partitioning() || sort.input().output_partitioning().partition_count() == 1;
    let is_same = is_by_class && by.options == SortOptions::default() && is_whole && sort.fetch().is_none();
    is_same.then(|| Arc::new(CountClassesExec::new(counts.clone()).returning(Returned::InOrder)) as _)
}

/// Returns whether a GROUP BY has the classes of the rows below it as its groups.
fn is_by_class(aggregate: &AggregateExec) -> bool {
    let [(class, _)] = aggregate.group_expr().expr() else { return false };
    aggregate.mode().input_mode() == AggregateInputMode::Raw
        && class.downcast_ref::<Column>().is_some_and(|column| column.index() == 0)
}

impl PhysicalOptimizerRule for CountClasses {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let counted = plan.transform_up(|node| {
            Ok(match with_operator(&node, self)? {
                Some(counted) => Transformed::yes(counted),
                None => Transformed::no(node),
            })
        });
        counted.data()
    }

    fn name(&self) -> &str {
        NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}
