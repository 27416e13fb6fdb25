//! The operator that counts the rows of classes, or of values in them, in the place of an engine's
//! aggregate.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode, AggregateOutputMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput, SpillMetrics,
};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties, SpillManager,
};
use futures::StreamExt;
use futures::stream::try_unfold;

use super::counted::{Counted, RowCount, batch_of, counted_of, rows_of, unexpected_form};
use super::first_counts::FirstCounts;
use super::parts::Parts;
use super::{MOST_VALUES, counts_classes};

/// Counts as the aggregate that it holds, which is what other rules and workers see of it.
#[derive(Debug)]
pub(super) struct CountClassesExec {
    aggregate: AggregateExec,
    returned: Returned,
    /// Those of the aggregate, and the order of the rows.
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// Which rows the half that returns each class, or each of its values, once returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Returned {
    /// All rows.
    All,
    /// All rows, in the order of the classes.
    InOrder,
    /// One class of the least size.
    LeastSize,
}

impl CountClassesExec {
    pub(super) const NAME: &str = "CountClassesExec";

    /// Creates the operator in the place of an aggregate that counts the rows of classes.
    pub(super) fn new(aggregate: AggregateExec) -> Self {
        let (properties, metrics) = (Arc::clone(aggregate.properties()), ExecutionPlanMetricsSet::new());
        Self { aggregate, returned: Returned::All, properties, metrics }
    }

    /// Lets the operator return its rows in this way.
    pub(super) fn returning(self, returned: Returned) -> Self {
        let mut properties = self.aggregate.properties().as_ref().clone();
        if returned == Returned::InOrder {
            let mut equivalence = properties.eq_properties.clone();
            equivalence.add_ordering([by_class(&self.aggregate)]);
            properties.set_eq_properties(equivalence);
        }
        Self { returned, properties: Arc::new(properties), ..self }
    }

    /// Returns the operator in the place of the same aggregate over other children. Over a child in the
    /// order of the classes that is the aggregate itself, whose rows have this order, too.
    fn in_place_of(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let aggregate = plan.downcast_ref::<AggregateExec>().ok_or_else(unexpected_form)?;
        match counts_classes(aggregate) {
            true => Ok(Arc::new(Self::new(aggregate.clone()).returning(self.returned))),
            false if self.returned == Returned::InOrder => {
                let sort = SortExec::new(LexOrdering::from([by_class(aggregate)]), plan);
                Ok(Arc::new(sort.with_preserve_partitioning(true)))
            }
            false => Ok(plan),
        }
    }
}

/// Returns the order of the rows of an aggregate by their class.
fn by_class(aggregate: &AggregateExec) -> PhysicalSortExpr {
    let class = Column::new(aggregate.schema().field(0).name(), 0);
    PhysicalSortExpr::new(Arc::new(class), SortOptions::default())
}

impl DisplayAs for CountClassesExec {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A tree shows the name above.
        if !matches!(form, DisplayFormatType::TreeRender) {
            let returned = match self.returned {
                Returned::All => "",
                Returned::InOrder => ", in order",
                Returned::LeastSize => ", of the least size",
            };
            write!(f, "{}{returned}: ", Self::NAME)?;
        }
        self.aggregate.fmt_as(form, f)
    }
}

impl ExecutionPlan for CountClassesExec {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(&self.aggregate)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.aggregate.input_distribution_requirements()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.aggregate.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.aggregate.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.in_place_of(Arc::new(self.aggregate.clone()).replace_children(children, options)?)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let are_counted = !self.aggregate.aggr_expr().is_empty();
        match (self.aggregate.group_expr().expr().len(), are_counted) {
            (1, true) => self.execute_of::<0, i64>(partition, &context),
            (2, true) => self.execute_of::<1, i64>(partition, &context),
            (2, false) => self.execute_of::<1, ()>(partition, &context),
            (3, true) => self.execute_of::<2, i64>(partition, &context),
            (3, false) => self.execute_of::<2, ()>(partition, &context),
            (4, true) => self.execute_of::<MOST_VALUES, i64>(partition, &context),
            (4, false) => self.execute_of::<MOST_VALUES, ()>(partition, &context),
            _ => Err(unexpected_form()),
        }
    }
}

impl CountClassesExec {
    /// Executes the operator over rows with so many values.
    fn execute_of<const VALUES: usize, N: RowCount>(
        &self,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mode = self.aggregate.mode();
        let is_last = mode.output_mode() == AggregateOutputMode::Final;
        let input = self.aggregate.input().execute(partition, Arc::clone(context))?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let output = |metrics| Output::<VALUES, N>::new(self.schema(), metrics, context);
        let counted = if mode.input_mode() == AggregateInputMode::Raw {
            let columns = self.aggregate.group_expr().expr().iter();
            let columns = columns.map(|(column, _)| Arc::clone(column)).collect();
            // Where this operator does both, the rows between the halves are not its output.
            let output = output(if is_last { metrics.intermediate() } else { metrics.clone() });
            let counts = FirstCounts::new(context.memory_pool());
            First { input, columns, counts, output, has_ended: false }.stream()
        } else {
            input
        };
        if !is_last {
            return Ok(counted);
        }
        let spills = SpillMetrics::new(&self.metrics, partition);
        let parts = Parts::new(
            SpillManager::new(context.runtime_env(), spills, self.schema()),
            context.memory_pool(),
            metrics.elapsed_compute().clone(),
        );
        let parts = parts.in_order(self.returned == Returned::InOrder);
        let counted_parts = MetricBuilder::new(&self.metrics).counter("counted_parts", partition);
        let last = Last {
            input: Some(counted),
            parts: Some(parts),
            returned: self.returned,
            counted_parts,
            output: output(metrics),
        };
        Ok(last.stream())
    }
}

/// Rows that wait to be returned in batches, from the last to the first.
struct Output<const VALUES: usize, N: RowCount> {
    schema: SchemaRef,
    rows: Vec<Counted<VALUES, N>>,
    batch: usize,
    metrics: BaselineMetrics,
}

impl<const VALUES: usize, N: RowCount> Output<VALUES, N> {
    fn new(schema: SchemaRef, metrics: BaselineMetrics, context: &TaskContext) -> Self {
        Self { schema, rows: Vec::new(), batch: context.session_config().batch_size(), metrics }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.batch
    }

    /// Returns the next batch; `None` without rows.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut rows = self.rows.split_off(self.rows.len().saturating_sub(self.batch));
        rows.reverse();
        if rows.is_empty() {
            return Ok(None);
        }
        Ok(Some(batch_of(&self.schema, &rows)?.record_output(&self.metrics)))
    }
}

/// The half that sees rows.
struct First<const VALUES: usize, N: RowCount> {
    input: SendableRecordBatchStream,
    columns: Vec<Arc<dyn PhysicalExpr>>,
    counts: FirstCounts<VALUES, N>,
    output: Output<VALUES, N>,
    has_ended: bool,
}

impl<const VALUES: usize, N: RowCount> First<VALUES, N> {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let _timer = self.output.metrics.elapsed_compute().timer();
        let columns = self.columns.iter().map(|column| column.evaluate(batch)?.into_array(batch.num_rows()));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.counts.add(rows_of(&columns)?, &mut self.output.rows);
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while !self.has_ended && !self.output.is_full() {
            match self.input.next().await.transpose()? {
                Some(batch) => self.add(&batch)?,
                None => {
                    self.has_ended = true;
                    self.counts.drain(&mut self.output.rows);
                }
            }
        }
        let batch = self.output.next();
        self.counts.shrink(&self.output.rows);
        batch
    }

    fn stream(self) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.output.schema);
        let batches = try_unfold(self, async |mut first| Ok(first.next().await?.map(|batch| (batch, first))));
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

/// Returns to the runtime once: where nothing is read, counting all parts would hold its thread.
async fn let_others_run() {
    let mut has_returned = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_returned, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The half that sees every row of its classes.
struct Last<const VALUES: usize, N: RowCount> {
    /// `None` when it has ended.
    input: Option<SendableRecordBatchStream>,
    /// `None` when all were counted, or a class of one row was found and nothing else is asked.
    parts: Option<Parts<VALUES, N>>,
    returned: Returned,
    counted_parts: Count,
    output: Output<VALUES, N>,
}

impl<const VALUES: usize, N: RowCount> Last<VALUES, N> {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(parts) = &mut self.parts else { return self.output.next() };
        if let Some(mut input) = self.input.take() {
            while let Some(batch) = input.next().await.transpose()? {
                parts.add(counted_of(&batch)?).await?;
            }
        }
        let is_of_least_size = self.returned == Returned::LeastSize;
        let has_enough = |rows: &[Counted<VALUES, N>]| match is_of_least_size {
            true => matches!(rows, [one] if one.rows.number() == Some(1)),
            false => !rows.is_empty(),
        };
        let rows = &mut self.output.rows;
        while !has_enough(rows) {
            let Some(classes) = parts.next().await? else {
                self.parts = None;
                break;
            };
            self.counted_parts.add(1);
            rows.extend(classes);
            if is_of_least_size {
                let least = rows.iter().min_by_key(|counted| counted.rows.number()).copied();
                rows.clear();
                rows.extend(least);
                let_others_run().await;
            }
        }
        if is_of_least_size {
            self.parts = None;
        }
        self.output.next()
    }

    fn stream(self) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.output.schema);
        let batches = try_unfold(self, async |mut last| Ok(last.next().await?.map(|batch| (batch, last))));
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}
