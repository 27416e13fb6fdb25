//! The kinds of release: what each makes of the recoding that a search found, and what it reads in the records of a
//! folder.
//!
//! A kind returns data: the tables, what they show, and a judge of them. The pipeline writes, verifies and records
//! them, `verify_folder.rs` judges a folder, and commands describe it (`describe.rs`).

mod centroids;
pub mod classes;
pub mod describe;
pub(super) mod groups;
pub mod levels;
pub mod measure;
mod noise;
pub mod ordered_rows;
mod recorded_table;
pub(super) mod regions;

use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::prelude::DataFrame;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::class::{Budget, ClassTable, Held};
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::measure::utility::Utility;
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::method::{Candidate, Recoding, ReleaseKind};
use crate::model::Requirement;
use crate::policy::Policy;
use crate::release::check_record::refused;
use crate::release::earlier_recoding::no_recoding;
use crate::release::kind::describe::Describe;
use crate::release::kind::measure::{Measured, Searched};
use crate::release::publish::place::Place;
use crate::release::publish::record::{
    ColumnRecord, FileRecord, PrivateRecord, PublicRecord, RecodingRecord, TableRecord, models_text,
};
use crate::release::publish::{digest, write};
use crate::verify::Verified;
use crate::verify::as_is::{AsIsColumn, UniqueTogether};
use crate::verify::expected::Expected;
use crate::verify::groups::DealingKey;
use crate::verify::noise::NoiseKey;
use crate::verify::sufficient::Sufficient;

/// Returns the row of a kind.
pub(super) fn kind_row(kind: ReleaseKind) -> &'static dyn Kind {
    match kind {
        ReleaseKind::Levels => &levels::Levels,
        ReleaseKind::Regions => &regions::Regions,
        ReleaseKind::Centroids => &centroids::Centroids,
        ReleaseKind::Noise => &noise::Noise,
        ReleaseKind::Groups => &groups::Groups,
    }
}

/// Returns the row of a record's kind. A record that contradicts itself on the noise of columns is refused as one of
/// centroids.
pub(super) fn kind_row_of_record(public: &PublicRecord) -> &'static dyn Kind {
    kind_row(public.recoding.kind().unwrap_or(ReleaseKind::Centroids))
}

impl RecodingRecord {
    /// Returns the description of what the release shows.
    #[doc(hidden)]
    pub fn describe(&self) -> &dyn Describe {
        match self {
            Self::Levels(levels) => levels,
            Self::Regions(regions) => regions,
            Self::Centroids(columns) => columns,
            Self::Groups(groups) => groups,
        }
    }
}

/// A kind of release.
#[async_trait]
pub(super) trait Kind: Sync {
    /// Returns the schemas of the tables as far as they are known before a search, which may lengthen labels.
    ///
    /// # Errors
    /// An internal error if a released column is not in the input.
    fn schemas(&self, policy: &Policy, input: &Schema) -> Result<Vec<SchemaRef>>;

    /// Measures a recoding that a method of this kind found, also what it keeps if that is asked for.
    ///
    /// # Errors
    /// A data error when memory runs out.
    fn measure(&self, searched: &Searched<'_>, with_utility: bool) -> Result<Measured>;

    /// Applies the recoding of the release that a private record belongs to; `None` if too many rows fail the models or fit
    /// no class.
    ///
    /// # Errors
    /// An unmet error if the record holds none that the policy allows, a policy or an unmet error if the values of a column have
    /// changed, a data error when memory runs out.
    fn apply_again(
        &self,
        _run: &Run,
        _loaded: &Loaded,
        _classes: &ClassTable,
        _earlier: &PrivateRecord,
    ) -> Result<Option<Candidate>> {
        Err(no_recoding())
    }

    /// Plans the release of a recoding that a method of this kind found.
    ///
    /// # Errors
    /// An unmet error when no row would be left, a data error when memory runs out or the system has no random
    /// numbers.
    async fn plan(&self, run: &Run, loaded: &Loaded, found: PlanInput<'_>) -> Result<ReleasePlan>;

    /// Reads what a release shows from its records, whose public one is of this kind, as the policy of its input is.
    ///
    /// # Errors
    /// A policy error when the private record is needed and missing, an unmet error when a record cannot be true.
    async fn read(&self, policy: &Policy, input: &Schema, records: &Records<'_>) -> Result<Content>;

    /// Checks what the public record says of its quasi-identifiers, before anything else is read.
    ///
    /// # Errors
    /// An unmet error when it contradicts itself.
    fn check_columns(&self, public: &PublicRecord) -> Result<()>;

    /// Checks what the public record of a folder says of its models and tables, before any row is read.
    ///
    /// # Errors
    /// An unmet error when it contradicts itself or the files.
    fn check_record(&self, _folder: &Folder<'_>) -> Result<()> {
        Ok(())
    }

    /// Judges a folder without its input; returns also whether its files are what this version writes.
    ///
    /// # Errors
    /// An unmet error when a model fails, or the files or the rows are not those of the record; a data error when they cannot be
    /// read or memory runs out.
    async fn judge_alone(&self, run: &Run, folder: &Folder<'_>) -> Result<(Judged, bool)>;
}

/// A folder that is judged as a release.
pub(super) struct Folder<'a> {
    pub(super) out: &'a Path,
    pub(super) public: &'a PublicRecord,
    /// The models of the record.
    pub(super) models: &'a [Requirement],
}

/// What a search found, with what it looked at.
pub(super) struct PlanInput<'a> {
    pub(super) recoding: Recoding,
    pub(super) classes: ClassTable,
    /// Whether a record tells what the recoding keeps.
    pub(super) extent: Extent,
    /// Draws the key of the noise of clusters.
    pub(super) noise_key: &'a (dyn Fn(&Clusters) -> Result<NoiseKey> + Sync),
}

/// The records of a release, and the rows of its tables as they were written.
pub(super) struct Records<'a> {
    pub(super) public: &'a PublicRecord,
    pub(super) private: Option<&'a PrivateRecord>,
    /// Where the release is, with the key of its pseudonyms.
    pub(super) place: Option<&'a Place>,
    pub(super) written: &'a [DataFrame],
}

/// A release before its rows are written.
pub(super) struct ReleasePlan {
    pub(super) content: Content,
    /// The rows of each table.
    pub(super) rows: Vec<TableRows>,
    pub(super) secret: Secret,
    /// The loss of each quasi-identifier, in policy order.
    pub(super) costs: Vec<f64>,
    /// What the recoding keeps, if that is recorded.
    pub(super) utility: Option<Utility>,
    /// What the publisher should know of what the classes show, in whole sentences.
    pub(super) remarks: Vec<String>,
    /// What the publisher should know once the release is published, in whole sentences.
    pub(super) warnings: Vec<String>,
    /// The budget of the rows while they are written.
    pub(super) budget: Arc<dyn Budget>,
    /// What stays reserved until the release is judged.
    pub(super) held: Held,
}

/// The rows of a table in the order of the release, which are made once they are asked for. Those of groups are dealt to disk
/// before.
pub(super) type TableRows = BoxFuture<'static, Result<BoxStream<'static, Result<RecordBatch>>>>;

/// What a release shows, and who judges it.
pub(super) struct Content {
    pub(super) tables: Vec<TablePlan>,
    /// What the public record says of it, with the quasi-identifiers in the order of the released columns.
    pub(super) recoding: RecodingRecord,
    pub(super) judge: Box<dyn Judge>,
}

/// A table of a release.
pub(super) struct TablePlan {
    /// Its folder below that of the release; `None` for the only table.
    pub(super) folder: Option<&'static str>,
    pub(super) schema: SchemaRef,
    /// The columns as the public record lists them.
    pub(super) columns: Vec<ColumnRecord>,
    /// The partition columns.
    pub(super) partition_by: Vec<String>,
    /// The columns by which the rows are ordered, before a hash of the others.
    pub(super) ordered_by: Vec<String>,
    /// Whether the models are promised of this table, so that its files name them.
    pub(super) names_models: bool,
}

impl TablePlan {
    /// Returns the metadata of the files' footers, besides the schema.
    pub(super) fn footer(&self, models: &[Requirement]) -> Vec<(String, String)> {
        if self.names_models { write::footer(&models_text(models)) } else { Vec::new() }
    }

    /// Returns the record of the table once it has so many rows in these files.
    pub(super) fn record(&self, rows: u64, files: Vec<FileRecord>) -> TableRecord {
        TableRecord {
            folder: self.folder.map(str::to_owned),
            columns: self.columns.clone(),
            partition_by: self.partition_by.clone(),
            rows,
            files,
        }
    }
}

/// What only the private record says.
#[derive(Default)]
pub(crate) struct Secret {
    /// What each combination of values shows.
    pub(crate) assignment: Option<bytes::Bytes>,
    /// The key by which rows were dealt to groups.
    pub(crate) dealing_key: Option<DealingKey>,
    /// The key by which noise was drawn.
    pub(crate) noise_key: Option<NoiseKey>,
}

/// A judge of the tables of a release.
#[async_trait]
pub(super) trait Judge: Send + Sync {
    /// Returns what says which class of the only table shows each row of the input; `None` if classes do not show the rows
    /// themselves.
    ///
    /// # Errors
    /// An unmet error if the private record is damaged, a data error when memory runs out.
    fn shown<'a>(&self, _policy: &'a Policy, _budget: &Arc<dyn Budget>) -> Result<Option<Expected<'a>>> {
        Ok(None)
    }

    /// Judges the tables as they were written against the input, which was read by the second way of reading it.
    ///
    /// # Errors
    /// An unmet error that says what is wrong, a policy error for a released column that identifies individuals, a data
    /// error when the tables cannot be judged.
    async fn judge(
        &self,
        run: &Run,
        again: &Loaded,
        written: Vec<DataFrame>,
        extent: Extent,
    ) -> Result<Judged>;
}

/// What is found out of a release besides whether it is right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extent {
    /// Nothing.
    Verdict,
    /// What `kanon verify` tells, and a public record states.
    Public,
    /// What a private record states, too.
    Private,
}

/// What was found out of a release that is right.
pub(crate) struct Judged {
    pub(crate) verified: Verified,
    /// The number of classes, or of groups.
    pub(crate) classes: u64,
    pub(crate) unique: UniqueTogether,
    pub(crate) sufficient: Sufficient,
    /// The columns that are released as they are, for the private record.
    pub(crate) as_is: Vec<AsIsColumn>,
}

/// Returns the only table of a release.
fn only_table<T>(tables: Vec<T>) -> Result<T> {
    let [table] =
        <[T; 1]>::try_from(tables).map_err(|_| Error::internal("kind: a release of other than one table"))?;
    Ok(table)
}

/// Reads a key of a private record.
fn key_of_record<const BYTES: usize>(key: &str) -> Result<[u8; BYTES]> {
    let key = digest::of_hex(key).and_then(|bytes| bytes.try_into().ok());
    key.ok_or_else(|| refused("the private record is damaged"))
}

fn wrong_recoding() -> Error {
    Error::internal("kind: the method found a recoding of another kind")
}
