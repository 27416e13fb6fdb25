//! The operator of table functions that no plan can express: one task over planned inputs, run when
//! it is executed.
//!
//! Nothing is pushed below it: no filter, no limit, no projection. The task ends when its rows are
//! no longer wanted.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::TableReference;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use tokio::sync::mpsc::Sender;

use crate::engine::into_engine;
use crate::engine::run::StopAtEnd;
use crate::error::Error;
use crate::progress::CancelToken;

/// The work of a table function when it is executed.
#[async_trait]
pub(super) trait Task: Debug + Send + Sync {
    /// Returns the function's name.
    fn name(&self) -> &'static str;

    /// Returns the text that EXPLAIN shows behind the name, without cells.
    fn says(&self) -> String;

    /// Runs the task and sends its rows.
    ///
    /// # Errors
    /// Those of the task.
    async fn run(&self, inputs: &Inputs, rows: &Rows) -> crate::error::Result<()>;
}

/// The planned inputs of a task.
pub(super) struct Inputs {
    pub(super) plans: Vec<Arc<dyn ExecutionPlan>>,
    pub(super) context: Arc<TaskContext>,
    /// Cancelled when the rows are no longer wanted.
    pub(super) stop: CancelToken,
}

/// The receiver of a task's rows.
pub(super) struct Rows(Sender<Result<RecordBatch>>);

impl Rows {
    /// Sends rows.
    ///
    /// # Errors
    /// [`Error::interrupted`] when the rows are no longer wanted.
    pub(super) async fn send(&self, batch: RecordBatch) -> crate::error::Result<()> {
        self.0.send(Ok(batch)).await.map_err(|_| Error::interrupted())
    }
}

/// Builds the plan of a task over these inputs, with rows of this schema.
///
/// # Errors
/// Those of building plans.
pub(super) fn plan_of(
    task: Arc<dyn Task>,
    inputs: Vec<LogicalPlan>,
    schema: SchemaRef,
) -> Result<LogicalPlan> {
    let name = task.name();
    let table = TaskTable { task, inputs, schema };
    LogicalPlanBuilder::scan(TableReference::bare(name), provider_as_source(Arc::new(table)), None)?.build()
}

/// Returns whether a table runs a task each time it is scanned.
pub(in crate::sql) fn is_task(table: &dyn TableProvider) -> bool {
    table.is::<TaskTable>()
}

#[derive(Debug)]
struct TaskTable {
    task: Arc<dyn Task>,
    inputs: Vec<LogicalPlan>,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for TaskTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    /// Filters and the limit are left to the plan above.
    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            inputs.push(session.create_physical_plan(input).await?);
        }
        let all = Arc::new(TaskExec::new(Arc::clone(&self.task), inputs, Arc::clone(&self.schema)));
        let Some(projection) = projection else { return Ok(all) };
        let columns = projection.iter().map(|index| {
            let name = self.schema.field(*index).name();
            let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, *index));
            ProjectionExpr { expr, alias: name.clone() }
        });
        Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), all)?))
    }
}

struct TaskExec {
    task: Arc<dyn Task>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl TaskExec {
    fn new(task: Arc<dyn Task>, inputs: Vec<Arc<dyn ExecutionPlan>>, schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { task, inputs, properties: Arc::new(properties) }
    }
}

impl Debug for TaskExec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TaskExec({:?})", self.task)
    }
}

impl DisplayAs for TaskExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TaskExec: {}({})", self.task.name(), self.task.says())
    }
}

impl ExecutionPlan for TaskExec {
    fn name(&self) -> &'static str {
        "TaskExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _look: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self {
            task: Arc::clone(&self.task),
            inputs: children,
            properties: Arc::clone(&self.properties),
        }))
    }

    /// The task reads its inputs itself, with their own partitioning.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(DataFusionError::Internal(format!("{} has one partition", self.task.name())));
        }
        let mut stream = RecordBatchReceiverStream::builder(self.schema(), 2);
        let (task, rows) = (Arc::clone(&self.task), Rows(stream.tx()));
        let inputs = Inputs { plans: self.inputs.clone(), context, stop: CancelToken::default() };
        stream.spawn(async move {
            // Dropping the stream drops this future, which cancels the work on other threads.
            let _ended = StopAtEnd(inputs.stop.clone());
            let done = task.run(&inputs, &rows).await;
            done.map_err(|error| into_engine(error.at(task.name())))
        });
        Ok(stream.build())
    }
}
