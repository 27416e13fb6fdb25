//! A release as the rows of a query: chosen, applied and verified like a folder, but kept in the
//! engine's spill file.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::spill_file::SpillFile;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use crate::class::{Budget, ClassTable};
use crate::engine::replay_table::table_of_partitions;
use crate::engine::{Context, PoolBudget, Run, into_engine};
use crate::error::{Error, Result};
use crate::input::{Loaded, canonical_floats_as_they_are};
use crate::policy::Policy;
use crate::progress::Silent;
use crate::release::apply::{self, ClassNumbers};
use crate::release::publish::write;
use crate::release::released_recoding::{concrete, expected, released_schema};
use crate::release::role_checks;
use crate::release::search::{limit, nothing_found, search};
use crate::verify::as_is::ReleasedRows;
use crate::verify::verify;

/// Returns the columns of a release of a table with this schema. Fields lack descriptors, which are
/// unknown before the search.
///
/// # Errors
/// An internal error if a released column is not in the table.
pub(crate) fn schema(policy: &Policy, table: &Schema) -> Result<SchemaRef> {
    let as_is = policy.quasi.iter().filter_map(|quasi| quasi.hierarchy.levels().first().cloned());
    let schema = released_schema(policy, table, &as_is.collect::<Vec<_>>())?;
    let fields = schema.fields().iter().map(Arc::clone);
    let plain = fields.map(|field| Arc::new(field.as_ref().clone().with_metadata([].into())));
    Ok(Arc::new(Schema::new(plain.collect::<Vec<_>>())))
}

/// Verified rows, on disk.
#[derive(Clone)]
pub(crate) struct VerifiedRows {
    manager: Arc<SpillManager>,
    file: Arc<dyn SpillFile>,
    schema: SchemaRef,
}

/// Prints the kind only: rows hold cells.
impl std::fmt::Debug for VerifiedRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VerifiedRows(..)")
    }
}

impl VerifiedRows {
    /// Reads the rows in the order of a release.
    ///
    /// # Errors
    /// A data error when the file cannot be read.
    pub(crate) fn read(&self) -> Result<SendableRecordBatchStream> {
        let read = self.manager.read_spill_as_stream(Arc::clone(&self.file), None);
        read.context("reading the anonymized rows")
    }
}

impl PartitionStream for VerifiedRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        match self.read() {
            Ok(rows) => rows,
            Err(error) => {
                let failed = futures::stream::once(async { Err(into_engine(error)) });
                Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), failed))
            }
        }
    }
}

/// Searches, applies the best recoding to the rows and verifies the result against them before any
/// row can be read. `plain_table` is the table as a verification reads it.
///
/// # Errors
/// All errors of a release.
pub(crate) async fn anonymize(
    run: &Run<'_>,
    runtime: Arc<RuntimeEnv>,
    loaded: &Loaded,
    plain_table: DataFrame,
    classes: ClassTable,
) -> Result<VerifiedRows> {
    let policy = &loaded.policy;
    role_checks::check(run, loaded).await?;
    role_checks::check_as_is(run, loaded, &classes).await?;
    // A separate thread: the caller's may be the only worker.
    let (resources, stop, task_policy) = (run.resources.clone(), run.stop.clone(), Arc::clone(policy));
    let (classes, outcome) = tokio::task::spawn_blocking(move || {
        let run = Run { resources: &resources, stop: &stop, progress: &Silent, show_values: false };
        let outcome = search(&run, &task_policy, &classes, 1);
        (classes, outcome)
    })
    .await
    .map_err(|_| Error::internal("verified_rows: the thread of the search failed"))?;
    let (_, outcome) = outcome?;
    let best = outcome.best.first();
    let best = best.ok_or_else(|| nothing_found(policy, limit(policy, &classes), &outcome))?;
    let (chosen, kept, _) = concrete(policy, loaded.schema(), &classes, best.recoding.levels())?;
    let memory: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "kept classes"));
    memory.grow(kept.bytes())?;
    let numbers = ClassNumbers::new(&classes, &chosen.levels, &kept, &memory)?;
    drop(classes);

    let doing = "generalizing and ordering the rows";
    let plan = apply::apply(loaded.table.clone(), policy, numbers)?;
    let mut rows = plan.execute_stream().await.context(doing)?;
    let schema = schema(policy, loaded.schema())?;
    let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
    let manager = Arc::new(SpillManager::new(runtime, metrics, Arc::clone(&schema)));
    let mut file = manager.create_in_progress_file("anonymized rows").context(doing)?;
    let labels = write::labels(policy, &chosen, &kept)?;
    while let Some(batch) = rows.next().await {
        run.stop.check()?;
        let batch = write::labelled(&batch.context(doing)?, policy, &chosen, &labels)?;
        let batch = RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()).context(doing)?;
        file.append_batch(&batch).context(doing)?;
    }
    let file = file
        .finish()
        .context(doing)?
        .ok_or_else(|| Error::internal("verified_rows: the spill file of the release is empty"))?;
    let verified = VerifiedRows { manager, file, schema };
    let output = table_of_partitions(&loaded.session, vec![Arc::new(verified.clone())])?;
    let output = canonical_floats_as_they_are(output)?;
    let expected = expected(policy, &chosen.generalizers);
    let table = || Some(plain_table.clone());
    let found = verify(&loaded.session, output.clone(), table(), &expected, run.stop).await?;
    let rows = ReleasedRows::new(&loaded.session, output, table(), &expected, &found, run.stop).await?;
    role_checks::check_released(policy, &rows).await?;
    Ok(verified)
}
