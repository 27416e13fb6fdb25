//! `lattice(table, policy)`: returns every node of the lattice with its suppression and losses.
//!
//! # Contract
//! The policy is read when the query is planned; its digest stands in the plan. The result has one
//! row per node within the allowed levels: `levels` (a struct with the level of each
//! quasi-identifier as INTEGER), `anonymous` (no more than the limit is suppressed), `minimal`
//! (anonymous, and no node below is), `suppressed_rows`, `suppressed_individuals`, `classes` (the
//! kept ones), `min_class` (NULL when nothing is kept), then a column for each loss measure
//! (DOUBLE; NULL for a measure of a sensitive column where the policy counts none). Refused are
//! lattices of more than two million nodes, and tables in which an identifier repeats while the
//! policy does not state whether rows or individuals are counted. A policy with identifiers that
//! does not state it reads the table again: the table must give the same rows each time.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int32Array, StructArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use super::TableFunctionRow;
use super::arguments::Arguments;
use super::policy::{BoundPolicy, TableAndPolicy, not_repeatable, table_and_policy};
use super::task::{Inputs, Rows, Task, plan_of};
use crate::doc::Doc;
use crate::engine::replay_table::table_of_plan;
use crate::engine::{Context, Resources, column, counting_rules};
use crate::error::Error;
use crate::input::Loaded;
use crate::measure::{self, LossRow};
use crate::method::lattice::exhaustive::for_every_node;
use crate::model::Needs;
use crate::policy::Policy;
use crate::release::ask;
use crate::release::profile::by_values;
use crate::release::role_checks::{each_counts_once, must_not_repeat};
use crate::sql::repeatable::is_repeatable;

/// The row of [`TABLE_FUNCTIONS`](super::TABLE_FUNCTIONS) for this function.
pub const ROW: TableFunctionRow = TableFunctionRow { doc: DOC, plan };

const DOC: &Doc = &Doc {
    name: "lattice",
    summary: "every combination of levels that a policy allows: its suppression and losses, and whether it \
         satisfies the policy",
    parameters: "table, policy",
    example: "SELECT levels, granularity FROM lattice(visits, 'visits.toml') WHERE anonymous ORDER BY granularity",
    paper: None,
};

fn plan(mut call: Arguments<'_>) -> Result<LogicalPlan> {
    let TableAndPolicy { followed, table, .. } = table_and_policy(&mut call)?;
    let policy = &followed.policy;
    call.finish(&[])?;
    let profile = by_values(table.clone(), policy).map_err(|error| call.wrong(error))?;
    let mut inputs = vec![profile.into_unoptimized_plan()];
    let identifiers: Vec<_> = must_not_repeat(policy).map(column).collect();
    if (followed.has_merged_columns() || !identifiers.is_empty()) && !is_repeatable(table.logical_plan())? {
        return Err(not_repeatable(&call));
    }
    if !identifiers.is_empty() {
        inputs.push(table.select(identifiers)?.into_unoptimized_plan());
    }
    let losses: Vec<LossRow> = losses().collect();
    let schema = schema(policy, &losses);
    let task = Lattice { followed, losses, schema: Arc::clone(&schema) };
    plan_of(Arc::new(task), inputs, schema)
}

fn level_fields(policy: &Policy) -> Fields {
    policy.quasi.iter().map(|quasi| Field::new(&quasi.name, DataType::Int32, false)).collect()
}

/// Returns the losses that do not have a column of their own already.
fn losses() -> impl Iterator<Item = LossRow> {
    measure::losses().filter(|loss| loss.doc().name != "suppressed_rows")
}

fn schema(policy: &Policy, losses: &[LossRow]) -> SchemaRef {
    let count = |name: &str| Field::new(name, DataType::UInt64, false);
    let mut fields = vec![
        Field::new("levels", DataType::Struct(level_fields(policy)), false),
        Field::new("anonymous", DataType::Boolean, false),
        Field::new("minimal", DataType::Boolean, false),
        count("suppressed_rows"),
        count("suppressed_individuals"),
        count("classes"),
        Field::new("min_class", DataType::UInt64, true),
    ];
    fields.extend(losses.iter().map(|loss| Field::new(loss.doc().name, DataType::Float64, true)));
    Arc::new(Schema::new(fields))
}

#[derive(Debug)]
struct Lattice {
    followed: BoundPolicy,
    /// Those of the columns.
    losses: Vec<LossRow>,
    schema: SchemaRef,
}

/// One row: a node.
struct Node {
    levels: Vec<usize>,
    anonymous: bool,
    suppressed_rows: u64,
    suppressed_individuals: u64,
    classes: u64,
    min_class: Option<u64>,
    losses: Vec<Option<f64>>,
}

#[async_trait]
impl Task for Lattice {
    fn name(&self) -> &'static str {
        DOC.name
    }

    fn says(&self) -> String {
        self.followed.says()
    }

    async fn run(&self, inputs: &Inputs, rows: &Rows) -> crate::error::Result<()> {
        let resources = Resources::of_task(&inputs.context);
        let run = self.followed.run(&resources, &inputs.stop);
        let session = resources.session_of(inputs.context.runtime_env(), counting_rules());
        if let Some(identifiers) = inputs.plans.get(1) {
            let table = table_of_plan(&session, Arc::clone(identifiers), Arc::clone(&inputs.context))?;
            let policy = Arc::clone(&self.followed.policy);
            each_counts_once(&run, &Loaded { session: session.clone(), table, policy, population: None })
                .await?;
        }
        let (policy, classes) = self.followed.classes(inputs, &session, &run).await?;

        let losses = self.losses.clone();
        let nodes = run.on_own_thread(move |run| {
            let mut nodes: Vec<Node> = Vec::new();
            ask(run, &policy, &classes, 1, None, |lattice| {
                for_every_node(lattice, &mut |node| {
                    let knows =
                        |loss: LossRow| loss.needs() == Needs::Size || !classes.sensitive().is_empty();
                    nodes.push(Node {
                        levels: node.levels().to_vec(),
                        anonymous: node.is_anonymous(lattice.problem.limit),
                        suppressed_rows: node.suppressed_rows(),
                        suppressed_individuals: node.suppressed_individuals(),
                        classes: node.kept_classes(),
                        min_class: node.min_class(),
                        losses: losses.iter().map(|loss| knows(*loss).then(|| loss.value(node))).collect(),
                    });
                })
            })?;
            Ok(nodes)
        });
        rows.send(self.batch(&nodes.await?)?).await
    }
}

impl Lattice {
    fn batch(&self, nodes: &[Node]) -> crate::error::Result<RecordBatch> {
        let minimal = minimal(nodes);
        let counts = |of: fn(&Node) -> u64| -> ArrayRef {
            Arc::new(nodes.iter().map(|n| Some(of(n))).collect::<UInt64Array>())
        };
        let level = |column: usize| -> crate::error::Result<ArrayRef> {
            let levels = nodes.iter().map(|node| i32::try_from(node.levels[column]).map_err(Error::internal));
            Ok(Arc::new(levels.collect::<crate::error::Result<Int32Array>>()?))
        };
        let fields = level_fields(&self.followed.policy);
        let levels = (0..fields.len()).map(level).collect::<crate::error::Result<Vec<_>>>()?;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StructArray::try_new(fields, levels, None).context("showing the nodes")?),
            Arc::new(nodes.iter().map(|node| Some(node.anonymous)).collect::<BooleanArray>()),
            Arc::new(minimal.into_iter().map(Some).collect::<BooleanArray>()),
            counts(|node| node.suppressed_rows),
            counts(|node| node.suppressed_individuals),
            counts(|node| node.classes),
            Arc::new(nodes.iter().map(|node| node.min_class).collect::<UInt64Array>()),
        ];
        for loss in 0..self.losses.len() {
            columns.push(Arc::new(nodes.iter().map(|node| node.losses[loss]).collect::<Float64Array>()));
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns).context("showing the nodes")
    }
}

/// Returns for each node whether it is anonymous and no node below it is.
fn minimal(nodes: &[Node]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|at| nodes[*at].levels.iter().sum::<usize>());
    // By levels: whether a node at or below them is anonymous.
    let mut reached: HashMap<&[usize], bool> = HashMap::with_capacity(nodes.len());
    let mut minimal = vec![false; nodes.len()];
    for at in order {
        let node = &nodes[at];
        let mut below = node.levels.clone();
        let mut is_above = false;
        for column in 0..below.len() {
            if let Some(finer) = node.levels[column].checked_sub(1) {
                below[column] = finer;
                is_above |= reached.get(below.as_slice()).copied().unwrap_or(false);
                below[column] = node.levels[column];
            }
        }
        minimal[at] = node.anonymous && !is_above;
        reached.insert(&node.levels, node.anonymous || is_above);
    }
    minimal
}
