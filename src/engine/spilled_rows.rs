//! Rows in the engine's spill files, to be read any number of times.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::spill_file::SpillFile;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::task::JoinSet;

use super::replay_table::table_of_partitions;
use super::{Context, into_engine};
use crate::error::{Error, Result};
use crate::progress::CancelToken;

/// Rows on disk.
#[derive(Clone)]
pub(crate) struct SpilledRows {
    manager: Arc<SpillManager>,
    /// `None` without rows.
    file: Option<Arc<dyn SpillFile>>,
    schema: SchemaRef,
    rows: u64,
}

/// Prints the kind only: rows hold cells.
impl std::fmt::Debug for SpilledRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SpilledRows(..)")
    }
}

impl SpilledRows {
    /// Writes the batches of a stream, which have this schema.
    ///
    /// # Errors
    /// Errors of the stream, a data error when the file cannot be written, an interruption.
    pub(crate) async fn write(
        runtime: Arc<RuntimeEnv>,
        schema: SchemaRef,
        mut batches: BoxStream<'_, Result<RecordBatch>>,
        stop: &CancelToken,
        doing: &str,
    ) -> Result<Self> {
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let manager = Arc::new(SpillManager::new(runtime, metrics, Arc::clone(&schema)));
        let mut file = manager.create_in_progress_file("kanon rows").context(doing)?;
        let mut rows = 0;
        while let Some(batch) = batches.next().await {
            stop.check()?;
            let batch = batch?;
            rows += batch.num_rows() as u64;
            file.append_batch(&batch).context(doing)?;
        }
        let file = file.finish().context(doing)?;
        Ok(Self { manager, file, schema, rows })
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Reads the rows in their order. The stream holds the file, and fails once the run is stopped, or where the file lost
    /// rows: a part of a release promises nothing.
    ///
    /// # Errors
    /// A data error when the file cannot be read.
    pub(crate) fn read(&self, stop: &CancelToken) -> Result<SendableRecordBatchStream> {
        let batches = match &self.file {
            None => futures::stream::empty().boxed(),
            Some(file) => {
                let read = self.manager.read_spill_as_stream(Arc::clone(file), None);
                read.context("reading rows that were spilled")?
            }
        };
        let all = (batches, self.rows, stop.clone());
        let counted = futures::stream::try_unfold(all, |(mut batches, left, stop)| async move {
            stop.check().map_err(into_engine)?;
            let batch = batches.next().await.transpose()?;
            let read = batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
            match (batch, left.checked_sub(read)) {
                (Some(batch), Some(left)) => Ok(Some((batch, (batches, left, stop)))),
                (None, Some(0)) => Ok(None),
                _ => {
                    Err(into_engine(Error::data("the rows in a spill file are not those that were written")))
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), counted)))
    }
}

impl PartitionStream for SpilledRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        // The plan above is stopped by what takes its rows.
        match self.read(&CancelToken::default()) {
            Ok(rows) => rows,
            Err(error) => {
                let failed = futures::stream::once(async { Err(into_engine(error)) });
                Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), failed))
            }
        }
    }
}

/// Computes the rows of a plan once and returns them as a table that can be read repeatedly, in as
/// many partitions.
///
/// # Errors
/// Errors of the plan, a data error when the rows cannot be written, an interruption.
pub(crate) async fn spilled(
    session: &SessionContext,
    rows: DataFrame,
    stop: &CancelToken,
    doing: &'static str,
) -> Result<DataFrame> {
    spilled_partitions(session, rows.execute_stream_partitioned().await.context(doing)?, stop, doing).await
}

/// Writes streams of rows to spill files at the same time, and returns them as the partitions of a table that can be read
/// repeatedly.
///
/// # Errors
/// Errors of the streams, a data error when the rows cannot be written, an interruption.
pub(crate) async fn spilled_partitions(
    session: &SessionContext,
    partitions: Vec<SendableRecordBatchStream>,
    stop: &CancelToken,
    doing: &'static str,
) -> Result<DataFrame> {
    let mut writing = JoinSet::new();
    for (number, batches) in partitions.into_iter().enumerate() {
        let (runtime, schema, stop) = (session.runtime_env(), batches.schema(), stop.clone());
        let batches = batches.map(move |batch| batch.context(doing)).boxed();
        writing.spawn(async move {
            let rows = SpilledRows::write(runtime, schema, batches, &stop, doing).await;
            rows.map(|rows| (number, Arc::new(rows) as Arc<dyn PartitionStream>))
        });
    }
    let mut written = Vec::with_capacity(writing.len());
    while let Some(partition) = writing.join_next().await {
        written
            .push(partition.map_err(|_| Error::internal("spilled rows: the task of a partition failed"))??);
    }
    written.sort_by_key(|(number, _)| *number);
    table_of_partitions(session, written.into_iter().map(|(_, rows)| rows).collect())
}
