//! The files of a release as the sink of a run: numbered Parquet files in the folder of each table.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::prelude::{DataFrame, SessionContext};

use super::disk;
use super::partitioning::Partitioning;
use super::record::{FOLDERS, FileRecord, TableRecord};
use super::table_files::TableFiles;
use super::write::{self, Table, write_table};
use crate::class::Budget;
use crate::engine::functions::random_key;
use crate::engine::pseudonym::PseudonymKey;
use crate::engine::{Context, Run};
use crate::error::Result;
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::policy::Policy;
use crate::release::check_files::{check_files, read_files};
use crate::release::kind::{Extent, TablePlan, TableRows};
use crate::release::sink::Sink;
use crate::store::{is_number, is_partition, run_of_part};
use crate::verify::noise::NoiseKey;

/// Returns the name of a file of a table in a folder of this machine.
pub(crate) fn name_of_number(number: usize) -> String {
    format!("part-{number:05}.parquet")
}

/// Returns the name of a file of a table in a store, which no other run gives to an object: none can write over it or remove it
/// by mistake.
pub(crate) fn name_of_run(number: usize, run: &str) -> String {
    format!("part-{number:05}-{run}.parquet")
}

/// Returns the run that gave an object below the folder of a release its name, as [`name_of_run`] does.
pub(crate) fn run_of_name(name: &str) -> Option<&str> {
    run_of_part(part_of(name)?)
}

/// Returns whether an object below the folder of a release has a name as files of releases have.
pub(crate) fn is_name_of_release(name: &str) -> bool {
    let number = |part: &str| part.strip_prefix("part-")?.strip_suffix(".parquet").map(is_number);
    part_of(name).is_some_and(|part| run_of_part(part).is_some() || number(part) == Some(true))
}

/// Returns the name of a file behind folders of a table or of values.
fn part_of(name: &str) -> Option<&str> {
    let (folders, name) = name.rsplit_once('/').unwrap_or(("", name));
    let are_right = folders.is_empty()
        || FOLDERS.contains(&folders)
        || folders.split('/').all(|folder| is_partition(Path::new(folder)));
    are_right.then_some(name)
}

/// The files of a release.
pub(in crate::release) struct ReleasedFiles {
    /// The folder of the release.
    folder: PathBuf,
    /// The policy, whose models are required of the release.
    policy: Arc<Policy>,
    /// The key of pseudonyms, if other releases may follow.
    key: Option<PseudonymKey>,
    tables: Vec<WrittenTable>,
}

/// A table that was written.
struct WrittenTable {
    files: TableFiles,
    schema: SchemaRef,
    /// The metadata of each file's footer.
    footer: Vec<(String, String)>,
}

impl ReleasedFiles {
    /// Takes tables into this folder, of a release under this policy.
    pub(in crate::release) fn new(folder: PathBuf, policy: Arc<Policy>) -> Self {
        Self { folder, policy, key: None, tables: Vec::new() }
    }

    /// Also records the rows by pseudonyms under this key.
    pub(in crate::release) fn with_key(self, key: Option<PseudonymKey>) -> Self {
        Self { key, ..self }
    }
}

impl Sink for ReleasedFiles {
    fn extent(&self) -> Extent {
        Extent::Private
    }

    fn pseudonym_key(&self) -> Option<&PseudonymKey> {
        self.key.as_ref()
    }

    fn noise_key(&self, _clusters: &Clusters) -> Result<NoiseKey> {
        Ok(NoiseKey(random_key()?))
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
        let schema = Arc::clone(&table.schema);
        let partitioning = Partitioning::of_schema(&schema, &table.partition_by)?;
        let footer = partitioning.footer(table.footer(&self.policy.requirements));
        let written = Table {
            folder: &folder,
            schema: &schema,
            partitioning: &partitioning,
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
        let files = TableFiles { folder, parts, partitioning };
        self.tables.push(WrittenTable { files, schema, footer });
        Ok(())
    }

    fn taken(&self, session: &SessionContext) -> Result<Vec<DataFrame>> {
        let tables = self.tables.iter().map(|WrittenTable { files, schema, footer }| {
            check_files(files, schema, footer, write::CREATED_BY)?;
            read_files(session, files)
        });
        tables.collect()
    }

    fn records(&self, planned: &[TablePlan]) -> Result<Vec<TableRecord>> {
        let records = self.tables.iter().zip(planned).map(|(written, planned)| {
            let rows = written.files.parts.iter().map(|part| part.rows).sum();
            Ok(planned.record(rows, FileRecord::all(&written.files)?))
        });
        records.collect()
    }
}
