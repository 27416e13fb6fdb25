//! The files of a release as the sink of a run: numbered Parquet files in the folder of each table.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::prelude::{DataFrame, SessionContext};

use super::record::{FOLDERS, FileRecord, TableRecord};
use super::write::{self, Part, Table, write_table};
use super::{digest, disk};
use crate::class::Budget;
use crate::engine::{Context, Run};
use crate::error::Result;
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::policy::Policy;
use crate::release::check_files::{check_files, read_parts};
use crate::release::kind::{Extent, TablePlan, TableRows};
use crate::release::sink::Sink;
use crate::verify::noise::NoiseKey;

/// Returns the name of a file of a table in a folder of this machine.
pub(crate) fn name_of_number(number: usize) -> String {
    format!("part-{number:05}.parquet")
}

/// How many hexadecimal digits name a run.
const DIGITS: usize = 16;

/// Returns the name of a file of a table in a store, which no other run gives to an object: none can write over it or remove it
/// by mistake.
pub(crate) fn name_of_run(number: usize, run: &str) -> String {
    format!("part-{number:05}-{run}.parquet")
}

/// Returns the run that gave an object below the folder of a release its name, as [`name_of_run`] does.
pub(crate) fn run_of_name(name: &str) -> Option<&str> {
    let (number, run) = inside_of_name(name)?.split_once('-')?;
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (is_number(number) && run.len() == DIGITS && run.chars().all(is_digit)).then_some(run)
}

/// Returns whether an object below the folder of a release has a name as files of releases have.
pub(crate) fn is_of_release(name: &str) -> bool {
    run_of_name(name).is_some() || inside_of_name(name).is_some_and(is_number)
}

fn inside_of_name(name: &str) -> Option<&str> {
    let name = match name.split_once('/') {
        Some((folder, name)) if FOLDERS.contains(&folder) => name,
        _ => name,
    };
    name.strip_prefix("part-")?.strip_suffix(".parquet")
}

fn is_number(text: &str) -> bool {
    text.len() >= 5 && text.chars().all(|c| c.is_ascii_digit())
}

/// The files of a release.
pub(in crate::release) struct ReleasedFiles {
    /// The folder of the release.
    folder: PathBuf,
    /// The policy, whose models are required of the release.
    policy: Arc<Policy>,
    tables: Vec<WrittenTable>,
}

/// The files of a table.
struct WrittenTable {
    folder: PathBuf,
    schema: SchemaRef,
    /// The metadata of each file's footer.
    footer: Vec<(String, String)>,
    parts: Vec<Part>,
}

impl ReleasedFiles {
    /// Takes tables into this folder, of a release under this policy.
    pub(in crate::release) fn new(folder: PathBuf, policy: Arc<Policy>) -> Self {
        Self { folder, policy, tables: Vec::new() }
    }
}

impl Sink for ReleasedFiles {
    fn extent(&self) -> Extent {
        Extent::Private
    }

    fn noise_key(&self, _clusters: &Clusters) -> Result<NoiseKey> {
        Ok(NoiseKey(digest::random_key()?))
    }

    async fn take(
        &mut self,
        run: &Run,
        table: &TablePlan,
        rows: TableRows,
        memory: &Arc<dyn Budget>,
    ) -> Result<()> {
        let doing = "writing the release";
        let folder = table.folder.map_or_else(|| self.folder.clone(), |name| self.folder.join(name));
        if table.folder.is_some() {
            disk::create_folder(&folder).context(doing)?;
        }
        let (schema, footer) = (Arc::clone(&table.schema), table.footer(&self.policy.requirements));
        let written = Table {
            folder: &folder,
            schema: &schema,
            footer: &footer,
            layout: self.policy.spec.output.layout(),
            memory,
        };
        // A further table has as many rows at most, and takes less time for each.
        let is_first = self.tables.is_empty();
        let done = |rows| {
            if is_first {
                run.progress.done(rows);
            }
        };
        let parts = write_table(rows.await?, &written, &run.stop, &done).await?;
        if table.folder.is_some() {
            disk::sync_folder(&folder).context(doing)?;
        }
        self.tables.push(WrittenTable { folder, schema, footer, parts });
        Ok(())
    }

    fn taken(&self, session: &SessionContext) -> Result<Vec<DataFrame>> {
        let tables = self.tables.iter().map(|WrittenTable { folder, schema, footer, parts }| {
            check_files(folder, parts, schema, footer, write::CREATED_BY)?;
            read_parts(session, folder, parts)
        });
        tables.collect()
    }

    fn records(&self, planned: &[TablePlan]) -> Result<Vec<TableRecord>> {
        let records = self.tables.iter().zip(planned).map(|(written, planned)| {
            let rows = written.parts.iter().map(|part| part.rows).sum();
            Ok(planned.record(rows, FileRecord::all(&written.folder, &written.parts)?))
        });
        records.collect()
    }
}
