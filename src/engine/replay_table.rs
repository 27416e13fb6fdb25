//! A physical plan as a table that can be read repeatedly.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::{DataFrame, SessionContext};

use super::Context;
use crate::error::{Error, Result};

/// Returns a table of the rows of `plan`, which is run again in `context` at each scan.
///
/// # Errors
/// A plan that the engine refuses.
pub(crate) fn table_of_plan(
    session: &SessionContext,
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<DataFrame> {
    session.read_table(Arc::new(Again { plan, context })).context("reading the input")
}

/// Returns a table of the rows of these partitions.
///
/// # Errors
/// An internal error without partitions; a data error when the engine refuses the table.
pub(crate) fn table_of_partitions(
    session: &SessionContext,
    partitions: Vec<Arc<dyn PartitionStream>>,
) -> Result<DataFrame> {
    let first = partitions.first().ok_or_else(|| Error::internal("replay table: there are no partitions"))?;
    let schema = Arc::clone(first.schema());
    let table = StreamingTable::try_new(schema, partitions).context("reading rows")?;
    session.read_table(Arc::new(table)).context("reading rows")
}

struct Again {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
}

/// Prints the kind only.
impl std::fmt::Debug for Again {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Again({})", self.plan.name())
    }
}

#[async_trait]
impl TableProvider for Again {
    fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        // A plan that ran must be reset before it runs again.
        let plan = reset_plan_states(Arc::clone(&self.plan))?;
        let partition = |partition: usize| {
            let (plan, context) = (Arc::clone(&plan), Arc::clone(&self.context));
            Arc::new(Partition { schema: plan.schema(), plan, context, partition })
                as Arc<dyn PartitionStream>
        };
        let partitions = (0..plan.output_partitioning().partition_count()).map(partition).collect();
        let table = StreamingTable::try_new(plan.schema(), partitions)?;
        table.scan(session, projection, filters, limit).await
    }
}

struct Partition {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    schema: SchemaRef,
    partition: usize,
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Partition({} of {})", self.partition, self.plan.name())
    }
}

impl PartitionStream for Partition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        match self.plan.execute(self.partition, Arc::clone(&self.context)) {
            Ok(rows) => rows,
            Err(error) => {
                let failed = futures::stream::once(async { Err(error) });
                Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), failed))
            }
        }
    }
}
