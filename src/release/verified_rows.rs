//! A release as the rows of a query: chosen, applied and verified like a folder, but kept in the
//! engine's spill file.

use std::future::ready;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use crate::class::{Budget, ClassTable};
use crate::engine::functions::random_key;
use crate::engine::pseudonym::PseudonymKey;
use crate::engine::replay_table::table_of_partitions;
use crate::engine::spilled_rows::SpilledRows;
use crate::engine::{Context, Run};
use crate::error::{Error, Result};
use crate::input::{Loaded, canonical_floats_as_they_are};
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::policy::Policy;
use crate::release::kind::{Extent, TablePlan, TableRows, kind_row};
use crate::release::pipeline::write_and_verify;
use crate::release::publish::digest;
use crate::release::publish::record::TableRecord;
use crate::release::role_checks;
use crate::release::search::search_apart;
use crate::release::sink::Sink;
use crate::verify::noise::NoiseKey;

/// Returns the columns of a release of a table with this schema. Fields lack descriptors, which are
/// unknown before the search.
///
/// # Errors
/// A policy error for a method that makes several tables, an internal error if a released column is not in the table.
pub(crate) fn schema(policy: &Policy, table: &Schema) -> Result<SchemaRef> {
    let Ok([schema]) = <[SchemaRef; 1]>::try_from(kind_row(policy.kind).schemas(policy, table)?) else {
        let why = format!(
            "`{}` makes two tables, and one is returned here: write them with kanon release, or use another method",
            policy.spec.method.name
        );
        return Err(Error::policy(why).at("method"));
    };
    let fields = schema.fields().iter().map(Arc::clone);
    let plain = fields.map(|field| Arc::new(field.as_ref().clone().with_metadata([].into())));
    Ok(Arc::new(Schema::new(plain.collect::<Vec<_>>())))
}

/// Searches, applies the best recoding to the rows and verifies the result against them before any
/// row can be read; `again` is the table as a verification reads it.
///
/// # Errors
/// All errors of a release.
pub(crate) async fn anonymize(
    run: &Run,
    loaded: &Loaded,
    again: Loaded,
    classes: ClassTable,
    noise: &NoiseOfCall,
) -> Result<SpilledRows> {
    let policy = &loaded.policy;
    role_checks::check_policy(run, loaded).await?;
    role_checks::check_input(run, loaded, &classes).await?;
    let (classes, _, outcome) = search_apart(run, policy, classes).await?;
    let mut spill = Spill::new(loaded, noise, Extent::Verdict)?;
    write_and_verify(run, loaded, classes, outcome, ready(Ok(again)), &mut spill).await?;
    spill.into_rows()
}

/// The noise of a call in a query, which may run several times: of the same rows it is the same, because other
/// noise would give these away, and other rows are refused, because they would be a second release.
#[derive(Debug)]
pub(crate) struct NoiseOfCall {
    key: NoiseKey,
    /// What the first run drew it by.
    drawn: OnceLock<NoiseKey>,
}

impl NoiseOfCall {
    /// Draws the key of a call.
    ///
    /// # Errors
    /// A data error when the system has no random numbers.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { key: NoiseKey(random_key()?), drawn: OnceLock::new() })
    }

    fn of(&self, clusters: &Clusters) -> Result<NoiseKey> {
        let key = NoiseKey(digest::keyed_words(clusters.words(), &self.key.0)?);
        match *self.drawn.get_or_init(|| key) == key {
            true => Ok(key),
            false => Err(Error::data(
                "the table has changed since the rows of this call were first read, and its noise is drawn once; write the call again, \
                 which is another release",
            )),
        }
    }
}

/// The engine's spill file as the sink of a run.
pub(super) struct Spill<'a> {
    runtime: Arc<RuntimeEnv>,
    schema: SchemaRef,
    noise: &'a NoiseOfCall,
    extent: Extent,
    rows: Option<SpilledRows>,
}

impl<'a> Spill<'a> {
    /// Takes the rows of an opened input into a spill file of its session.
    ///
    /// # Errors
    /// As [`schema`].
    pub(super) fn new(loaded: &Loaded, noise: &'a NoiseOfCall, extent: Extent) -> Result<Self> {
        let schema = schema(&loaded.policy, loaded.schema())?;
        Ok(Self { runtime: loaded.session.runtime_env(), schema, noise, extent, rows: None })
    }

    /// Returns the rows, once they are verified.
    ///
    /// # Errors
    /// An internal error if none were taken.
    pub(super) fn into_rows(self) -> Result<SpilledRows> {
        self.rows.ok_or_else(not_taken)
    }
}

fn not_taken() -> Error {
    Error::internal("verified_rows: the rows of a release were not taken")
}

impl Sink for Spill<'_> {
    fn extent(&self) -> Extent {
        self.extent
    }

    fn pseudonym_key(&self) -> Option<&PseudonymKey> {
        None
    }

    fn noise_key(&self, clusters: &Clusters) -> Result<NoiseKey> {
        self.noise.of(clusters)
    }

    async fn take(
        &mut self,
        run: &Run,
        _table: &TablePlan,
        rows: TableRows,
        _memory: &Arc<dyn Budget>,
    ) -> Result<()> {
        let doing = "generalizing and ordering the rows";
        if self.rows.is_some() {
            return Err(Error::internal("verified_rows: a query returns one table"));
        }
        let schema = Arc::clone(&self.schema);
        // Without the descriptors, which were unknown when the query was planned.
        let (progress, mut done) = (Arc::clone(&run.progress), 0);
        let plain = rows.await?.map(move |batch| {
            let batch = batch?;
            done += batch.num_rows() as u64;
            progress.done(done);
            RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()).context(doing)
        });
        let (runtime, schema) = (Arc::clone(&self.runtime), Arc::clone(&self.schema));
        self.rows = Some(SpilledRows::write(runtime, schema, plain.boxed(), &run.stop, doing).await?);
        Ok(())
    }

    fn taken(&self, session: &SessionContext) -> Result<Vec<DataFrame>> {
        let rows = self.rows.clone().ok_or_else(not_taken)?;
        Ok(vec![canonical_floats_as_they_are(table_of_partitions(session, vec![Arc::new(rows)])?)?])
    }

    /// There are no files.
    fn records(&self, planned: &[TablePlan]) -> Result<Vec<TableRecord>> {
        let rows = self.rows.as_ref().ok_or_else(not_taken)?.rows();
        Ok(planned.iter().map(|planned| planned.record(rows, Vec::new())).collect())
    }
}
