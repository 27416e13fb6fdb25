//! A table of another program as a run reads it: rows under names and types, and nothing else that its provider says.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use async_trait::async_trait;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::TableReference;
use datafusion::datasource::TableType;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::{StreamExt, TryStreamExt};

use super::table::without_metadata;
use crate::engine::into_engine;
use crate::error::Error;

/// A table whose statistics, order and metadata are hidden: counts are counts of rows, and only names and types reach a
/// release.
pub(super) struct ProvidedTable {
    provider: Arc<dyn TableProvider>,
    schema: SchemaRef,
}

impl ProvidedTable {
    pub(super) fn new(provider: Arc<dyn TableProvider>) -> Self {
        let schema = Arc::new(without_metadata(&provider.schema()));
        Self { provider, schema }
    }
}

/// Prints the kind only: the provider may hold rows.
impl fmt::Debug for ProvidedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProvidedTable(..)")
    }
}

#[async_trait]
impl TableProvider for ProvidedTable {
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
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let (name, provider) = (TableReference::bare("input"), Arc::clone(&self.provider));
        let scan = LogicalPlanBuilder::scan(name, provider_as_source(provider), projection.cloned())?;
        let plan = session.create_physical_plan(&scan.build()?).await?;
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        check_names(&schema, &plan.schema())?;
        let partition = |partition: usize| {
            let (plan, schema) = (Arc::clone(&plan), Arc::clone(&schema));
            Arc::new(Partition { plan, schema, partition }) as Arc<dyn PartitionStream>
        };
        let partitions = (0..plan.output_partitioning().partition_count()).map(partition).collect();
        StreamingTable::try_new(Arc::clone(&schema), partitions)?.scan(session, None, &[], None).await
    }
}

struct Partition {
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    partition: usize,
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Partition({} of {})", self.partition, self.plan.name())
    }
}

impl PartitionStream for Partition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let rows = futures::stream::iter([self.plan.execute(self.partition, context)]).try_flatten();
        let rows = rows.map(move |batch| under(&schema, &batch?));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}

/// Checks that columns come under the names and in the order of a schema.
fn check_names(schema: &SchemaRef, found: &SchemaRef) -> EngineResult<()> {
    let [schema, found] = [schema, found].map(|schema| schema.fields().iter().map(|field| field.name()));
    if schema.eq(found) {
        return Ok(());
    }
    let why = "the table gives columns of other names, or in another order, than its schema says";
    Err(into_engine(Error::data(why)))
}

/// Returns the columns of a batch under another schema of the same names and types.
fn under(schema: &SchemaRef, batch: &RecordBatch) -> EngineResult<RecordBatch> {
    check_names(schema, &batch.schema())?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows).map_err(|_| {
        let why = "the table gives columns of other numbers or types than its schema says";
        into_engine(Error::data(why))
    })
}
