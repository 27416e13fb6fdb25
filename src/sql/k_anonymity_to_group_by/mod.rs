//! The optimizer rule `k_anonymity_to_group_by`: turns measures into GROUP BYs, which are
//! vectorized and parallel and can spill.
//!
//! ```text
//! Aggregate G: k_anonymity(q..), l_diversity(s, q..)
//!
//! L3  Aggregate G              least (or greatest) of what the model says of each class
//! L2  Aggregate G, q..         size and counts of each class
//! L1  Aggregate G, q.., s      rows
//! ```
//! Three or more quasi-identifiers, or any with dictionaries, become one key of 122 bits
//! (`src/engine/class_key/`), because the labels of a class are not needed; of generalized columns
//! it takes codes instead of labels (`codes.rs`). What a model says of a class comes from its counts
//! (`of_counts.rs`, `class_values.rs`). Without a sensitive or an individual column, L1 already
//! has the classes, and L2 is not needed. Risk measures over individuals look at each individual's
//! smallest class and have a plan of their own (`individuals.rs`).
//!
//! A rule sees only plans of its session, and leaves a plan that it does not understand as it is, so every
//! measure is a true aggregate as well. Both ask the model's own `value`, class by class: a model stays one
//! file. In the upper layers internal functions do that. They are registered, because a plan that was rewritten
//! here may run elsewhere:
//!
//! | function | looks at | the layer below has, of each class |
//! |---|---|---|
//! | `<model>_of_sizes` | sizes, all classes together | `count` |
//! | `<risk>_of_individuals` | the size of each individual's smallest class | `min` of the sizes |
//! | `<model>_of_counts` | the counts of one class | `sum`, and `array_agg` of the counts; or `count` and `max`, if the model `reads_extremes_only` |
//! | `compared_of_classes` | the values and counts of all classes, once for all models that read them | `array_agg` of value, individual, count |
//! | `<model>_of_class` | one class, where individuals are counted | the class and its counts per individual and value |
//!
//! The values of a class are different rows below, so nothing there needs a table of its own; the engine's
//! aggregates append.
//!
//! # Contract
//! The result is the accumulator's ([`udaf`](super::udaf)), and the rule raises no error where the
//! accumulator has a result. An `Aggregate` is rewritten if all its measures look at constants,
//! columns and deterministic expressions only.
//!
//! - `count`, `sum`, `min`, `max` (not of doubles), `bool_and`, `bool_or` and `avg` of doubles,
//!   without DISTINCT or ORDER BY, are computed in the same layers. Other aggregates stay as they
//!   are, in a branch of their own.
//! - Measures over several sets of quasi-identifiers, or several sensitive or individual columns,
//!   become one branch each.
//! - Branches are joined on G (NULL = NULL) if the input gives the same rows each time it is read,
//!   is not a stream and would not search twice (`anonymize`), and G holds neither floats nor
//!   nested types nor dictionaries of numbers.
//! - A measure that reads the values of its whole group (`t_closeness`) looks in L3 at the counts of
//!   all classes (`compared_of_classes.rs`), which are kept in memory, within the engine's limit.
//! - Three physical rules belong to it: [`classes_in_place`] moves rows between partitions once for L1
//!   and L2, `read_dictionaries` reads the dictionaries of Parquet files, and `count_classes` counts
//!   the rows of classes where nothing else is asked.
//! - FILTER becomes a conditional count in L1. Without G, a FILTER that all calls of a branch share
//!   becomes a Filter below L1, unless it or the input can fail; arguments that can fail (`10 / x`,
//!   casts, most functions) and another FILTER never meet in one branch.
//!
//! The rule leaves every other plan unchanged and never fails. It ignores grouping sets, correlated
//! inputs and statements that are only prepared. `SET kanon.rewrite_measures = false` switches it
//! off. The log says at `debug` why a plan was left unchanged.
//!
//! Each optimization of a query draws a new seed for the keys, and EXPLAIN shows it. Two plans of
//! one query differ only in their seeds.

mod branch;
mod class_values;
pub mod classes_in_place;
mod individuals;
mod infallible;
mod inlined;
mod layer;
mod plain;
pub mod sort_class_sizes;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::catalog::stream::StreamTable;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, NullEquality};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable, JoinType, LogicalPlan, LogicalPlanBuilder, ScalarUDF,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::accounted::Memory;
use super::hierarchies::Hierarchies;
use super::measure_state::Row;
use super::of_counts::functions_of_counts;
use super::options::KanonOptions;
use super::repeatable::{is_plain, is_repeatable};
use super::table::is_task;
use super::udaf::{AggregateInput, ClassAggregate, aggregates, compared, is_measure};
use crate::engine::class_key::Seed;
use crate::engine::functions::random_keys;
use crate::engine::into_engine;
use branch::{Branch, Measure};
use inlined::inlined;
use layer::Layer;
use plain::Plain;

/// The rule's name, under which EXPLAIN VERBOSE shows it.
pub const NAME: &str = "k_anonymity_to_group_by";

/// The rule; see the [module](self).
#[derive(Debug)]
pub struct KAnonymityToGroupBy {
    /// The functions of the upper layers, by name.
    functions: BTreeMap<String, Arc<AggregateUDF>>,
    /// The functions of counts, by name.
    of_counts: BTreeMap<String, Arc<ScalarUDF>>,
}

impl KAnonymityToGroupBy {
    /// Creates the rule.
    ///
    /// # Errors
    /// When a model cannot be made with every parameter 1.
    pub fn new() -> Result<Self> {
        let (aggregates, of_sizes) = aggregates(&Hierarchies::default(), &Memory::default())?;
        let of_class = aggregates.into_iter().filter(|function| function.over() == AggregateInput::OneClass);
        let all = of_class.map(AggregateUDF::from).chain(of_sizes.into_iter().map(AggregateUDF::from));
        let functions = all.map(|function| (function.name().to_owned(), Arc::new(function))).collect();
        let of_counts = functions_of_counts()?.into_iter().map(ScalarUDF::from);
        let of_counts = of_counts.map(|function| (function.name().to_owned(), Arc::new(function))).collect();
        Ok(Self { functions, of_counts })
    }

    /// Returns the upper-layer function of a row.
    fn upper(&self, row: Row, end: &str) -> Result<Arc<AggregateUDF>> {
        self.functions.get(&format!("{}{end}", row.doc().name)).cloned().ok_or_else(no_function)
    }

    /// Returns the function of counts of a model.
    fn of_counts(&self, row: Row) -> Result<Arc<ScalarUDF>> {
        self.of_counts.get(&format!("{}_of_counts", row.doc().name)).cloned().ok_or_else(no_function)
    }

    /// Rewrites an aggregate.
    fn rewritten(&self, aggregate: &Aggregate) -> std::result::Result<LogicalPlan, Stop> {
        let groups = &aggregate.group_expr;
        if groups.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
            return Err(Stop::Declined("grouping sets"));
        }
        if !groups.iter().all(is_plain) {
            return Err(Stop::Declined("an outer group is volatile, correlated or a subquery"));
        }
        if is_correlated(aggregate)? {
            return Err(Stop::Declined("the input is correlated"));
        }
        let (mut branches, rest) = self.branches(aggregate)?;
        for branch in &mut branches {
            branch.filter_first(aggregate)?;
        }
        // A new seed each time: rows cannot be chosen from a seed that was shown before.
        let [seed, _] = random_keys(NAME).map_err(into_engine)?;
        let rewrite = Rewrite { rule: self, aggregate, seed };
        if branches.len() + usize::from(!rest.is_empty()) > 1 {
            rewrite.can_read_again()?;
            rewrite.can_join()?;
        }
        let number = branches.len();
        let mut branches = branches.into_iter();
        let first = branches.next().ok_or(Stop::Declined("no measure"))?;
        let mut answered = first.plan(&rewrite)?;
        for branch in branches {
            answered = joined(answered, branch.plan(&rewrite)?)?;
        }
        if !rest.is_empty() {
            answered = joined(answered, rewrite.untouched(number, rest)?)?;
        }
        // Keeps the original names, qualifiers and types.
        let keys = answered.keys.into_iter().zip(0..);
        let measures = answered.values.into_iter().map(|(at, value)| (value, groups.len() + at));
        let mut columns: Vec<(Expr, usize)> = keys.chain(measures).collect();
        columns.sort_by_key(|(_, at)| *at);
        let columns = columns.into_iter().map(|(value, at)| {
            let (qualifier, field) = aggregate.schema.qualified_field(at);
            let value = value.cast_to(field.data_type(), answered.plan.schema())?;
            Ok(value.alias_qualified(qualifier.cloned(), field.name()))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let plan = LogicalPlanBuilder::from(answered.plan).project(columns)?.build()?;
        match plan.schema().logically_equivalent_names_and_types(&aggregate.schema) {
            true => Ok(plan),
            false => Err(Stop::Declined("the columns would differ")),
        }
    }

    /// Returns the branches that compute the measures, and the indices of the aggregates that no
    /// layers compute.
    fn branches(&self, aggregate: &Aggregate) -> std::result::Result<(Vec<Branch>, Vec<usize>), Stop> {
        let (mut branches, mut others): (Vec<Branch>, Vec<(usize, AggregateFunction)>) = Default::default();
        let mut rest = Vec::new();
        for (at, expr) in aggregate.aggr_expr.iter().enumerate() {
            let Expr::AggregateFunction(call) = expr.clone().unalias() else {
                return Err(Stop::Declined("an aggregate that is not a call"));
            };
            let Some(function) = call.func.inner().downcast_ref::<ClassAggregate>() else {
                others.push((at, call));
                continue;
            };
            if !is_simple(&call) {
                return Err(Stop::Declined("a measure with volatile or correlated arguments or subqueries"));
            }
            let measure = Measure::read(at, function, &call, aggregate)?;
            let measure = measure.ok_or(Stop::Declined("a measure without arguments"))?;
            match branches.iter_mut().find(|branch| branch.takes(&measure)) {
                Some(branch) => branch.add(measure),
                None => branches.push(Branch::new(branches.len(), measure)),
            }
        }
        for (at, call) in others {
            let plain = if is_simple(&call) { Plain::read(&call, aggregate.input.schema())? } else { None };
            let mut place = None;
            for branch in &mut branches {
                if place.is_none() && branch.takes_plain(&call, aggregate)? {
                    place = Some(branch);
                }
            }
            match (plain, place) {
                (Some(plain), Some(branch)) => branch.add_plain(at, plain),
                _ => rest.push(at),
            }
        }
        Ok((branches, rest))
    }
}

fn no_function() -> DataFusionError {
    DataFusionError::Internal("a measure without its functions for the upper layers".into())
}

/// The reason why a plan is left unchanged.
#[derive(Debug)]
enum Stop {
    /// The accumulator must compute the result.
    Declined(&'static str),
    /// Building the plan failed. The engine's error is not kept: it may quote cells.
    Failed,
}

impl From<DataFusionError> for Stop {
    fn from(_error: DataFusionError) -> Self {
        Self::Failed
    }
}

/// The rewrite of one aggregate.
struct Rewrite<'a> {
    rule: &'a KAnonymityToGroupBy,
    aggregate: &'a Aggregate,
    /// The seed of the class keys.
    seed: Seed,
}

impl Rewrite<'_> {
    /// Returns the outer groups.
    fn groups(&self) -> impl Iterator<Item = Expr> {
        self.aggregate.group_expr.iter().map(|key| key.clone().unalias())
    }

    /// Declines if reading the input twice may give different rows or search twice.
    fn can_read_again(&self) -> std::result::Result<(), Stop> {
        let input = &self.aggregate.input;
        if !is_repeatable(input)? {
            return Err(Stop::Declined("the input may return different rows when it is read again"));
        }
        if reads_once(input)? {
            return Err(Stop::Declined("the input is a search or a stream, which is read once"));
        }
        Ok(())
    }

    /// Declines if branches cannot be joined on the outer groups.
    fn can_join(&self) -> std::result::Result<(), Stop> {
        for key in &self.aggregate.group_expr {
            let declared = key.get_type(self.aggregate.input.schema())?;
            let of = compared(&declared);
            // The engine's joins fail on dictionaries of numbers.
            let is_packed = matches!(declared, DataType::Dictionary(..)) && !of.is_string();
            if of.is_nested() || of.is_floating() || is_packed {
                return Err(Stop::Declined("an outer group of a type that is not joined"));
            }
        }
        Ok(())
    }

    /// Builds the branch of the aggregates that no layers compute: the `Aggregate` reduced to them.
    fn untouched(&self, number: usize, rest: Vec<usize>) -> Result<Answered> {
        let mut layer = Layer::new(number, 1);
        let keys = self.groups().map(|key| layer.key(key)).collect();
        let calls = rest.into_iter().filter_map(|at| Some((at, self.aggregate.aggr_expr.get(at)?)));
        let values = calls.map(|(at, expr)| (at, layer.value(expr.clone().unalias()))).collect();
        Ok(Answered { plan: layer.over(LogicalPlan::clone(&self.aggregate.input))?, keys, values })
    }
}

/// A plan with one row per outer group: columns for its keys, and the values of the aggregates by
/// their indices.
struct Answered {
    plan: LogicalPlan,
    keys: Vec<Expr>,
    values: Vec<(usize, Expr)>,
}

/// Joins two branches over the same groups.
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

/// Returns whether an aggregate call can be rewritten: it has no modifier that forbids it.
fn is_simple(call: &AggregateFunction) -> bool {
    let params = &call.params;
    let mut columns = params.args.iter().chain(params.filter.as_deref());
    let is_bare = !params.distinct && params.order_by.is_empty() && params.null_treatment.is_none();
    is_bare && columns.all(is_plain)
}

/// Returns whether an aggregate or a plan below it refers to an outer query.
fn is_correlated(aggregate: &Aggregate) -> Result<bool> {
    let own = aggregate.aggr_expr.iter().any(Expr::contains_outer);
    Ok(own || aggregate.input.exists(|node| Ok(node.contains_outer_reference()))?)
}

/// Returns whether a plan has a source that should be read once: a table function of this crate
/// that searches (`anonymize`, `lattice`), or a stream, which may end after one read.
fn reads_once(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| match node {
        LogicalPlan::TableScan(scan) => Ok(source_as_provider(&scan.source).is_ok_and(|table| {
            is_task(&*table) || table.is::<StreamTable>() || table.is::<StreamingTable>()
        })),
        _ => Ok(false),
    })
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
        let rewritten = if !KanonOptions::of(&config.options()).rewrite_measures {
            Err(Stop::Declined("kanon.rewrite_measures is false"))
        } else if config.query_execution_start_time().is_none() {
            // PREPARE: types are not coerced yet, and the plan would keep its seed.
            Err(Stop::Declined("the statement is only prepared"))
        } else {
            match inlined(&aggregate).ok().flatten() {
                Some(inlined) => self.rewritten(&inlined).or_else(|_| self.rewritten(&aggregate)),
                None => self.rewritten(&aggregate),
            }
        };
        match rewritten {
            Ok(plan) => return Ok(Transformed::yes(plan)),
            Err(Stop::Declined(why)) => log::debug!("{NAME}: left to the accumulator: {why}"),
            Err(Stop::Failed) => log::debug!("{NAME}: left to the accumulator: no plan could be built"),
        }
        Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::common::tree_node::TreeNodeRecursion;
    use datafusion::prelude::SessionContext;

    /// Returns the reason why the aggregate with a measure in a query is left unchanged; `None`
    /// where it is rewritten.
    async fn declined(sql: &str) -> Option<&'static str> {
        let session = SessionContext::new();
        super::super::register_all(&session).unwrap();
        let table = "CREATE TABLE t AS VALUES (1, 2.5, 'a'), (1, 3.5, 'b')";
        session.sql(table).await.unwrap();
        let plan = session.state().create_logical_plan(sql).await.unwrap();
        let plan =
            session.state().analyzer().execute_and_check(plan, session.state().config_options(), |_, _| {});
        let (rule, mut found) = (KAnonymityToGroupBy::new().unwrap(), None);
        plan.unwrap()
            .apply_with_subqueries(|node| {
                if let LogicalPlan::Aggregate(aggregate) = node
                    && aggregate.aggr_expr.iter().any(is_measure)
                {
                    found = Some(rule.rewritten(aggregate));
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
        match found.unwrap() {
            Ok(_) => None,
            Err(Stop::Declined(why)) => Some(why),
            Err(Stop::Failed) => Some("no plan could be built"),
        }
    }

    #[tokio::test]
    async fn a_plan_is_left_alone_for_a_reason() {
        let again = Some("the input may return different rows when it is read again");
        for (sql, reason) in [
            ("SELECT k_anonymity(column1) FROM t", None),
            ("SELECT k_anonymity(column1), max(column2), count(DISTINCT column3) FROM t", None),
            ("SELECT k_anonymity(column1) FROM (SELECT * FROM t LIMIT 1)", None),
            ("SELECT k_anonymity(column1), max(column2) FROM (SELECT * FROM t LIMIT 1)", again),
            ("SELECT sample_uniqueness_individuals(column1, column3) FROM (SELECT * FROM t LIMIT 1)", again),
            (
                "SELECT k_anonymity(column1) FROM t GROUP BY GROUPING SETS ((column3), ())",
                Some("grouping sets"),
            ),
            (
                "SELECT k_anonymity(column1 + random()) FROM t",
                Some("a measure with volatile or correlated arguments or subqueries"),
            ),
            (
                "SELECT k_anonymity(column1), k_anonymity(column3) FROM t GROUP BY column2",
                Some("an outer group of a type that is not joined"),
            ),
            (
                "SELECT k_anonymity(column1), k_anonymity(column3) FROM t \
                 GROUP BY arrow_cast(column1, 'Dictionary(Int32, Int64)')",
                Some("an outer group of a type that is not joined"),
            ),
            (
                "SELECT k_anonymity(1 / column1) FILTER (WHERE 1 / column1 > 2) FROM t",
                Some("FILTER keeps rows from arguments that can fail"),
            ),
            (
                "SELECT (SELECT k_anonymity(b.column1) FROM (SELECT * FROM t AS c WHERE c.column3 = a.column3) AS b) FROM t AS a",
                Some("the input is correlated"),
            ),
        ] {
            assert_eq!(declined(sql).await, reason, "{sql}");
        }
    }
}
