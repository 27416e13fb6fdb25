//! A release as the rows of a query: chosen, applied and verified like a folder, but kept in the
//! engine's spill file.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use crate::class::{Budget, ClassTable};
use crate::engine::replay_table::table_of_partitions;
use crate::engine::spilled_rows::SpilledRows;
use crate::engine::{Context, PoolBudget, Run};
use crate::error::{Error, Result};
use crate::input::{Loaded, canonical_floats_as_they_are};
use crate::method::is_partition;
use crate::policy::Policy;
use crate::progress::Silent;
use crate::release::apply::{self, ClassNumbers};
use crate::release::concrete_recoding::{concrete, expected};
use crate::release::publish::write;
use crate::release::released_recoding::{self, released_schema};
use crate::release::search::{limit, nothing_found, search};
use crate::release::{released_regions, role_checks};
use crate::verify::as_is::ReleasedRows;
use crate::verify::verify;

/// Returns the columns of a release of a table with this schema. Fields lack descriptors, which are
/// unknown before the search.
///
/// # Errors
/// An internal error if a released column is not in the table.
pub(crate) fn schema(policy: &Policy, table: &Schema) -> Result<SchemaRef> {
    let shown = match is_partition(&policy.method) {
        true => released_regions::fields(policy),
        false => {
            let as_is = policy.quasi.iter().filter_map(|quasi| quasi.hierarchy.levels().first().cloned());
            released_recoding::fields(policy, &as_is.collect::<Vec<_>>())
        }
    };
    let schema = released_schema(policy, table, &shown)?;
    let fields = schema.fields().iter().map(Arc::clone);
    let plain = fields.map(|field| Arc::new(field.as_ref().clone().with_metadata([].into())));
    Ok(Arc::new(Schema::new(plain.collect::<Vec<_>>())))
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
) -> Result<SpilledRows> {
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
    let (chosen, mut kept, _) = concrete(policy, loaded.schema(), &classes, &best.recoding)?;
    let memory: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "kept classes"));
    memory.grow(kept.bytes() + chosen.shown.bytes())?;
    let numbers = ClassNumbers::new(&classes, std::mem::take(&mut kept.keys), &memory)?;
    drop(classes);

    let doing = "generalizing and ordering the rows";
    let plan = apply::apply(loaded.table.clone(), policy, numbers)?;
    let rows = plan.execute_stream().await.context(doing)?;
    let schema = schema(policy, loaded.schema())?;
    let labels = write::labels(policy, &chosen, &kept)?;
    let labelled = rows.map(|batch| {
        let batch = write::labelled(&batch.context(doing)?, policy, &chosen, &labels)?;
        RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()).context(doing)
    });
    let verified =
        SpilledRows::write(runtime, Arc::clone(&schema), labelled.boxed(), run.stop, doing).await?;
    let output = table_of_partitions(&loaded.session, vec![Arc::new(verified.clone())])?;
    let output = canonical_floats_as_they_are(output)?;
    let expected = expected(policy, policy, &chosen.shown, &memory)?;
    let table = || Some(plain_table.clone());
    let found = verify(&loaded.session, output.clone(), table(), &expected, run.stop).await?;
    let rows = ReleasedRows::new(&loaded.session, output, table(), &expected, &found, run.stop).await?;
    role_checks::check_released(policy, &rows).await?;
    Ok(verified)
}
