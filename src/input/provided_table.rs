//! A table of another program as one reading of a run takes it: scanned once, into spill files, with nothing but its rows
//! under their names and types.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::TableReference;
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlanProperties, execute_stream_partitioned};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::engine::spilled_rows::spilled_partitions;
use crate::engine::{Context, into_engine};
use crate::error::{Error, Result};
use crate::progress::CancelToken;

const DOING: &str = "reading the table";

/// Scans a table and returns its rows under this schema, which can be read repeatedly and are then the same. Statistics,
/// order and metadata of the provider stay behind: counts are counts of rows.
///
/// # Errors
/// Errors of the provider; a data error when its rows are not those of the schema or cannot be spilled; an interruption.
pub(super) async fn scanned_once(
    session: &SessionContext,
    provider: &Arc<dyn TableProvider>,
    schema: &SchemaRef,
    stop: &CancelToken,
) -> Result<DataFrame> {
    let source = provider_as_source(Arc::clone(provider));
    let scan = LogicalPlanBuilder::scan(TableReference::bare("input"), source, None);
    let scan = scan.and_then(LogicalPlanBuilder::build).context(DOING)?;
    let plan = session.state().create_physical_plan(&scan).await.context(DOING)?;
    check_names(schema, &plan.schema()).map_err(|error| error.at(DOING))?;
    if plan.boundedness().is_unbounded() {
        return Err(Error::data("the table has no end").at(DOING));
    }
    let partitions = execute_stream_partitioned(plan, session.task_ctx()).context(DOING)?;
    // At most as many files as threads. Each batch is looked at before an operator of the engine could give it other names.
    let files = session.copied_config().target_partitions().min(partitions.len()).max(1);
    let mut dealt: Vec<Vec<BoxStream<'static, EngineResult<RecordBatch>>>> = Vec::new();
    dealt.resize_with(files, Vec::new);
    for (at, rows) in partitions.into_iter().enumerate() {
        let (of_rows, stop) = (Arc::clone(schema), stop.clone());
        let rows = rows.map(move |batch| {
            stop.check().map_err(into_engine)?;
            under(&of_rows, &batch?).map_err(into_engine)
        });
        dealt[at % files].push(rows.boxed());
    }
    let dealt = dealt.into_iter().map(|rows| {
        let rows = futures::stream::select_all(rows);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), rows)) as SendableRecordBatchStream
    });
    spilled_partitions(session, dealt.collect(), stop, DOING).await
}

/// Checks that columns come under the names and in the order of a schema.
fn check_names(schema: &SchemaRef, found: &SchemaRef) -> Result<()> {
    let [schema, found] = [schema, found].map(|schema| schema.fields().iter().map(|field| field.name()));
    if schema.eq(found) {
        return Ok(());
    }
    let why = "the table gives columns of other names, or in another order, than its schema says";
    Err(Error::data(why))
}

/// Returns the columns of a batch under another schema of the same names and types.
fn under(schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
    check_names(schema, &batch.schema())?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows)
        .map_err(|_| Error::data("the table gives columns of other numbers or types than its schema says"))
}
