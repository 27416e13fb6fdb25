//! The optimizer's rule `k_anonymity_to_group_by`: measures become GROUP BYs, which are vectorized, parallel and spill.
//!
//! ```text
//! Aggregate G: k_anonymity(q..), l_diversity(s, q..)
//!
//! L3  Aggregate G              least (or greatest) of the classes
//! L2  Aggregate G, q..         one value a class, by the model itself
//! L1  Aggregate G, q.., s      rows
//! ```
//! Three quasi-identifiers and more become one key of 122 bits (`src/release/class_key.rs`), because nobody asks for the
//! labels of a class. Without a sensitive or an individual column L1 knows the classes, and L2 is not needed. Risk
//! measures over individuals look at everybody's smallest class, in a form of their own (`people.rs`).
//!
//! # Contract
//! The answer is the accumulator's ([`udaf`](super::udaf)). An `Aggregate` is rewritten where every measure in it
//! looks at constants, columns and deterministic expressions, and every other aggregate is `count`, `sum`, `min`,
//! `max` (not of doubles), `bool_and`, `bool_or` or `avg` of doubles, without DISTINCT or ORDER BY. FILTER becomes a
//! conditional count in L1. Measures over several sets of quasi-identifiers, or several sensitive or individual columns, become one branch
//! each, joined on G (NULL = NULL), where the input gives the same rows each time it is read. Whatever else there is,
//! the plan stays as it was: the rule never fails. Grouping sets and correlated inputs are left to the accumulator.
//! `SET kanon.rewrite_measures = false` switches the rule off.

mod branch;
mod layer;
mod people;
mod plain;
mod repeatable;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, NullEquality};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable, JoinType, LogicalPlan, LogicalPlanBuilder,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::answers::Row;
use super::options::KanonOptions;
use super::udaf::{ClassAggregate, Over, aggregates};
use crate::release::class_key::Seed;
use crate::release::engine::into_engine;
use crate::release::functions::random_keys;
use branch::{Branch, Measure};
use plain::Plain;
pub(super) use repeatable::is_repeatable;

/// The rule's name, under which EXPLAIN VERBOSE shows it.
pub const NAME: &str = "k_anonymity_to_group_by";

/// See the [module](self).
#[derive(Debug)]
pub struct KAnonymityToGroupBy {
    /// The functions of the upper layers by name.
    functions: BTreeMap<String, Arc<AggregateUDF>>,
}

impl KAnonymityToGroupBy {
    /// The rule.
    ///
    /// # Errors
    /// When a model cannot be made with every parameter 1.
    pub fn new() -> Result<Self> {
        let (aggregates, of_sizes) = aggregates()?;
        let of_class = aggregates.into_iter().filter(|function| function.over() == Over::OneClass);
        let all = of_class.map(AggregateUDF::from).chain(of_sizes.into_iter().map(AggregateUDF::from));
        let functions = all.map(|function| (function.name().to_owned(), Arc::new(function))).collect();
        Ok(Self { functions })
    }

    /// The function of an upper layer for a row.
    fn upper(&self, row: Row, end: &str) -> Result<Arc<AggregateUDF>> {
        let function = self.functions.get(&format!("{}{end}", row.doc().name)).cloned();
        function.ok_or_else(|| {
            DataFusionError::Internal("a measure without its functions for the upper layers".into())
        })
    }

    /// The rewritten plan; `None` where the accumulator must answer.
    fn rewritten(&self, aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
        if aggregate.input.contains_outer_reference()
            || aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_)) || !is_plain(key))
        {
            return Ok(None);
        }
        let schema = aggregate.input.schema();
        let (mut branches, mut plain): (Vec<Branch>, Vec<(usize, Plain)>) = (Vec::new(), Vec::new());
        for (at, expr) in aggregate.aggr_expr.iter().enumerate() {
            let Some(call) = call_of(expr) else { return Ok(None) };
            match call.func.inner().downcast_ref::<ClassAggregate>() {
                Some(function) => {
                    let Some(measure) = Measure::read(at, function, &call, schema)? else { return Ok(None) };
                    match branches.iter_mut().find(|branch| branch.takes(&measure)) {
                        Some(branch) => branch.add(measure),
                        None => branches.push(Branch::new(branches.len(), measure)),
                    }
                }
                None => match Plain::read(&call, schema)? {
                    Some(aggregate) => plain.push((at, aggregate)),
                    None => return Ok(None),
                },
            }
        }
        let several = branches.len() > 1;
        let joinable = || {
            let keys = aggregate.group_expr.iter().map(|key| key.get_type(schema));
            let keys = keys.collect::<Result<Vec<_>>>()?;
            Ok::<_, DataFusionError>(keys.iter().all(|key| !key.is_nested() && !key.is_floating()))
        };
        if several && !(is_repeatable(&aggregate.input)? && joinable()?) {
            return Ok(None);
        }
        let mut branches = branches.into_iter();
        let Some(mut first) = branches.next() else { return Ok(None) };
        first.add_plain(plain);
        // New for every query, so that nobody who saw one can choose rows for another.
        let [seed, _] = random_keys(NAME).map_err(into_engine)?;
        let rewrite = Rewrite { rule: self, aggregate, seed };
        let mut answered = first.plan(&rewrite)?;
        for branch in branches {
            answered = joined(answered, branch.plan(&rewrite)?)?;
        }
        // The names, qualifiers and types of before.
        let keys = answered.keys.into_iter().zip(0..);
        let measures =
            answered.values.into_iter().map(|(at, value)| (value, aggregate.group_expr.len() + at));
        let mut columns: Vec<(Expr, usize)> = keys.chain(measures).collect();
        columns.sort_by_key(|(_, at)| *at);
        let columns = columns.into_iter().map(|(value, at)| {
            let (qualifier, field) = aggregate.schema.qualified_field(at);
            let value = value.cast_to(field.data_type(), answered.plan.schema())?;
            Ok(value.alias_qualified(qualifier.cloned(), field.name()))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Some(LogicalPlanBuilder::from(answered.plan).project(columns)?.build()?))
    }
}

/// What is being rewritten.
struct Rewrite<'a> {
    rule: &'a KAnonymityToGroupBy,
    aggregate: &'a Aggregate,
    /// Of the keys of classes.
    seed: Seed,
}

/// A plan with a row for each outer group: columns for its keys, and by their places values for the aggregates.
struct Answered {
    plan: LogicalPlan,
    keys: Vec<Expr>,
    values: Vec<(usize, Expr)>,
}

/// Two branches over the same groups, side by side.
fn joined(left: Answered, right: Answered) -> Result<Answered> {
    let builder = LogicalPlanBuilder::from(left.plan);
    let plan = if left.keys.is_empty() {
        builder.cross_join(right.plan)?
    } else {
        let columns =
            |keys: &[Expr]| keys.iter().filter_map(|key| key.try_as_col().cloned()).collect::<Vec<Column>>();
        let on = (columns(&left.keys), columns(&right.keys));
        builder.join_detailed(right.plan, JoinType::Inner, on, None, NullEquality::NullEqualsNull)?
    };
    let values = left.values.into_iter().chain(right.values).collect();
    Ok(Answered { plan: plan.build()?, keys: left.keys, values })
}

/// The call of an aggregate in an `Aggregate`'s list, where nothing in it forbids a rewrite.
fn call_of(expr: &Expr) -> Option<AggregateFunction> {
    let Expr::AggregateFunction(call) = expr.clone().unalias() else { return None };
    let params = &call.params;
    let columns = || params.args.iter().chain(params.filter.as_deref());
    let is_simple = !params.distinct && params.order_by.is_empty() && params.null_treatment.is_none();
    (is_simple && columns().all(is_plain)).then_some(call)
}

/// Whether an expression says the same of a row wherever it is computed.
fn is_plain(expr: &Expr) -> bool {
    let has_subquery = expr.exists(|inner| {
        Ok(matches!(
            inner,
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
        ))
    });
    !expr.is_volatile() && !expr.contains_outer() && !has_subquery.unwrap_or(true)
}

/// Whether an expression is a measure.
fn is_measure(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_measure(&alias.expr),
        Expr::AggregateFunction(call) => {
            call.func.inner().downcast_ref::<ClassAggregate>().is_some_and(|f| f.over() == Over::Quasi)
        }
        _ => false,
    }
}

impl OptimizerRule for KAnonymityToGroupBy {
    fn name(&self) -> &str {
        NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let aggregate = match plan {
            LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(is_measure) => aggregate,
            other => return Ok(Transformed::no(other)),
        };
        if KanonOptions::of(&config.options()).rewrite_measures
            && let Ok(Some(plan)) = self.rewritten(&aggregate)
            && plan.schema().logically_equivalent_names_and_types(&aggregate.schema)
        {
            return Ok(Transformed::yes(plan));
        }
        Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)))
    }
}
