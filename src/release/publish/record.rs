//! The two records of a release: one public, one for the publisher only.
//!
//! [`PublicRecord`] is `OUT/_kanon.json`. It states no fact about suppressed rows alone.
//! [`PrivateRecord`] lies beside OUT, readable by its owner alone; it holds raw facts and
//! everything that `kanon verify --input` needs to judge the release again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::engine::Context;
use crate::error::{Error, ErrorCode, Result, of_file};
use crate::measure::utility::Utility;
use crate::model::{ClassModel, Requirement};
use crate::policy::Layout;
use crate::release::publish::digest;
use crate::release::publish::entry_kind::kind_of;
pub use crate::release::publish::history_record::{
    HistoryColumn, HistoryModel, HistoryRecord, PublicHistory,
};
pub use crate::release::publish::input_records::{InputColumn, InputRecord};
pub use crate::release::publish::model_record::ModelRecord;
pub(crate) use crate::release::publish::model_record::compared_with;
pub use crate::release::publish::recoding_record::{
    CentroidColumn, FOLDERS, FoundRecoding, GROUP_ROLES, GroupsRecord, LevelRecord, NoiseRecord,
    RecodingRecord, RegionColumn, Regions, RegionsRecord,
};
pub use crate::release::publish::statement::{LeftOut, Statement};
use crate::release::publish::table_files::TableFiles;
use crate::render::plain_number;
use crate::role::Role;
pub use crate::store::RECORD;
use crate::verify::as_is::{AsIsColumn, UniqueTogether};
use crate::verify::homogeneous::Homogeneous;

/// The version of the format of both records. Releases of format 1, by versions before the first
/// published one, cannot be verified any more; from 2 on, every version verifies earlier formats.
pub const FORMAT: u32 = 2;

/// The end of the name of a private record.
pub const PRIVATE_END: &str = ".private.json";

/// Returns whether a file is a private record by its name.
pub fn is_private(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(PRIVATE_END))
}

/// Returns the last part of OUT's path.
///
/// # Errors
/// A policy error if OUT has none.
pub fn name_of(out: &Path) -> Result<String> {
    match out.file_name().and_then(|name| name.to_str()) {
        Some(name) => Ok(name.to_owned()),
        None => Err(Error::policy(format!("{}: expected the name of a folder", out.display()))),
    }
}

/// The part of a record that every version reads.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The public record of how a release was made: `OUT/_kanon.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicRecord {
    /// The version of the record's format.
    pub format: u32,
    /// The program and its version.
    pub tool: String,
    /// The publisher's statement; the first releases of this format have none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub statement: Option<Statement>,
    /// The models, with their required and reached values.
    pub models: Vec<ModelRecord>,
    /// The unit that models and risks count: `individuals`, or `rows` if the policy names no individual column.
    pub counted_in: String,
    /// What the released quasi-identifiers show.
    pub recoding: RecodingRecord,
    /// How the files are laid out, where the policy says it.
    #[serde(skip_serializing_if = "Layout::is_default", default)]
    pub layout: Layout,
    /// The released tables: one, or the two of a method that makes groups.
    pub tables: Vec<TableRecord>,
    /// The number of distinct individuals behind the rows, where individuals are counted. The rows do not name them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub individuals: Option<u64>,
    /// The number of released classes, or of groups.
    pub classes: u64,
    /// The individuals that are unique on the quasi-identifiers together with all columns released
    /// as they are.
    pub unique: UniqueTogether,
    /// For each sensitive column the released classes that share one value of it.
    pub homogeneous: Vec<Homogeneous>,
    /// The risk measures of the release, by name.
    #[serde(serialize_with = "all_plainly")]
    pub risk: BTreeMap<String, f64>,
    /// How releases of the same people may follow this one, if the policy says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub history: Option<PublicHistory>,
    /// The SHA-256 of this record with this field empty.
    pub digest: String,
}

/// Rounds a number as records hold it: whole, or with 12 significant digits, so that reading and
/// writing it again gives the same text.
pub fn recorded(value: f64) -> f64 {
    if value.fract() == 0.0 { value } else { format!("{value:.11e}").parse().unwrap_or(value) }
}

pub(super) fn plainly<S: serde::Serializer>(
    value: &f64,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    plain_number(recorded(*value)).serialize(serializer)
}

pub(super) fn plainly_if_any<S: serde::Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    value.map(|value| plain_number(recorded(value))).serialize(serializer)
}

fn all_plainly<S: serde::Serializer>(
    values: &BTreeMap<String, f64>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let plain = |value: &f64| plain_number(recorded(*value));
    serializer.collect_map(values.iter().map(|(name, value)| (name, plain(value))))
}

/// A released column in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnRecord {
    /// The column's name.
    pub name: String,
    /// Its role, as in a policy.
    pub role: String,
    /// Its Arrow type, such as `Int64` or `Utf8`.
    #[serde(rename = "type")]
    pub data_type: String,
    /// For days since another column's date, the name of that column.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub days_since: Option<String>,
}

/// A released table in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRecord {
    /// The folder of its files in the release; none if they lie beside the record.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub folder: Option<String>,
    /// The columns in order.
    pub columns: Vec<ColumnRecord>,
    /// The columns that the names of folders hold instead of the files, from the outermost folder to the innermost.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub partition_by: Vec<String>,
    /// The number of rows.
    pub rows: u64,
    /// The files in the order of their rows; a stream of rows has none.
    pub files: Vec<FileRecord>,
}

/// A released file in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// The file's name, behind the folders that hold values of columns.
    pub name: String,
    /// Its number of rows.
    pub rows: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
}

impl TableRecord {
    /// Returns the folder of the table's files in the release at `out`.
    pub fn path(&self, out: &Path) -> PathBuf {
        self.folder.as_ref().map_or_else(|| out.to_path_buf(), |folder| out.join(folder))
    }
}

impl FileRecord {
    /// Returns the records of existing files.
    ///
    /// # Errors
    /// A data error if a file cannot be read.
    pub(crate) fn all(files: &TableFiles) -> Result<Vec<Self>> {
        files.parts.iter().map(|part| Self::of(&files.folder, &part.name, part.rows)).collect()
    }

    /// Returns the record of an existing file.
    ///
    /// # Errors
    /// A data error if the file cannot be read.
    #[doc(hidden)]
    pub fn of(folder: &Path, name: &str, rows: u64) -> Result<Self> {
        let path = folder.join(name);
        let bytes = fs::metadata(&path).context("reading the release")?.len();
        Ok(Self { name: name.to_owned(), rows, bytes, sha256: digest::of_file(&path)? })
    }
}

impl PublicRecord {
    /// Returns the columns of the policy in all tables.
    pub fn columns(&self) -> impl Iterator<Item = &ColumnRecord> {
        self.tables.iter().flat_map(|table| {
            let is_own = |column: &ColumnRecord| GROUP_ROLES.contains(&column.role.as_str());
            table.columns.iter().filter(move |column| table.folder.is_none() || !is_own(column))
        })
    }

    /// Returns the columns of the quasi-identifiers.
    pub fn quasi(&self) -> impl Iterator<Item = &ColumnRecord> {
        self.columns().filter(|column| column.role == Role::Quasi.word())
    }

    /// Returns the names of the columns in which the files hold the quasi-identifiers.
    ///
    /// # Errors
    /// An unmet error for columns that kanon does not write.
    #[doc(hidden)]
    pub fn written_quasi(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for column in self.quasi() {
            match self.recoding.written_as(&column.name)? {
                Some(columns) => names.extend(columns.names()),
                None => names.push(column.name.clone()),
            }
        }
        Ok(names)
    }

    /// Returns the files of all tables.
    pub fn files(&self) -> impl Iterator<Item = &FileRecord> {
        self.tables.iter().flat_map(|table| &table.files)
    }

    /// Returns the number of rows in the table of the quasi-identifiers.
    pub fn rows(&self) -> u64 {
        self.tables.first().map_or(0, |table| table.rows)
    }

    /// Returns the record with its own digest set.
    ///
    /// # Errors
    /// An internal error when it cannot be serialized.
    #[doc(hidden)]
    pub fn sealed(mut self) -> Result<Self> {
        self.digest = self.expected_digest()?;
        Ok(self)
    }

    fn expected_digest(&self) -> Result<String> {
        let open = Self { digest: String::new(), ..self.clone() };
        Ok(digest::of_bytes(open.to_json()?.as_bytes()))
    }

    /// Returns the record's text as it is written.
    ///
    /// # Errors
    /// An internal error when it cannot be serialized.
    pub fn to_json(&self) -> Result<String> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|_| Error::internal("record: a record cannot be serialized"))?;
        text.push('\n');
        Ok(text)
    }

    /// Reads and checks the record of a release.
    ///
    /// # Errors
    /// A data error if there is none or it is of another format, an unmet error if it was edited, is
    /// not a plain file or contradicts itself.
    pub fn read(out: &Path) -> Result<Self> {
        let path = out.join(RECORD);
        if fs::symlink_metadata(&path).is_ok_and(|facts| !facts.is_file()) {
            return Err(Error::unmet(format!(
                "verification refused: {} is not a plain file",
                path.display()
            )));
        }
        let text = fs::read_to_string(&path).map_err(|e| {
            let why = format!("{}: {}; is this a release of kanon?", path.display(), of_file(&e));
            let is_missing = e.kind() == std::io::ErrorKind::NotFound;
            if is_missing { Error::data(why).coded(ErrorCode::NotFound) } else { Error::data(why) }
        })?;
        Self::parse(&text, &path.display())
    }

    /// Reads and checks the text of a record at a place.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn parse(text: &str, place: &dyn std::fmt::Display) -> Result<Self> {
        let edited = || Error::unmet(format!("verification refused: {place} was edited or damaged"));
        let format = serde_json::from_str::<Format>(text).map_err(|_| edited())?.format;
        if format != FORMAT {
            let advice =
                if format > FORMAT { "use the version that wrote it" } else { "release the data again" };
            return Err(Error::data(format!(
                "{place}: the record has format {format}, and this version reads format {FORMAT}; {advice}"
            )));
        }
        let record: Self = serde_json::from_str(text).map_err(|_| edited())?;
        // Compares the text itself, so that not even white space can carry information.
        if record.expected_digest()? != record.digest || record.to_json()? != text {
            return Err(edited());
        }
        let quasi = record.quasi().map(|column| column.name.as_str());
        let names: BTreeSet<&String> = record.columns().map(|column| &column.name).collect();
        let are_unique = names.len() == record.columns().count();
        let folders: Vec<Option<&str>> = record.tables.iter().map(|table| table.folder.as_deref()).collect();
        if folders != record.recoding.folders() || !are_unique || !quasi.eq(record.recoding.columns()) {
            return Err(Error::unmet(format!(
                "verification refused: {place} does not list the tables of its recoding, with distinct columns, and what each quasi-identifier shows"
            )));
        }
        Ok(record)
    }
}

/// The private record of a release: raw facts, for the publisher only. Its `Debug` shows none of
/// them.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivateRecord {
    /// The version of the record's format.
    pub format: u32,
    /// The digest of the public record of the same release.
    pub release: String,
    /// The policy file's text.
    pub policy: String,
    /// The hierarchy files' texts, by the file name in the policy.
    pub hierarchies: BTreeMap<String, String>,
    /// The trees of the columns whose values were merged, by the columns' names, as CSV like that
    /// of hierarchy files.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub merged: BTreeMap<String, String>,
    /// The labels of the values in these columns that few individuals hold, where they are not `other`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub merged_labels: BTreeMap<String, String>,
    /// The input as the user typed it, or the name of the table.
    pub input: String,
    /// The input files; a table has none.
    pub files: Vec<InputRecord>,
    /// The key of the input files' digests.
    pub digest_key: String,
    /// The columns that are released or counted, in the input's order; earlier versions recorded none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub input_columns: Vec<InputColumn>,
    /// The number of rows in the input.
    pub input_rows: u64,
    /// The number of distinct individuals in the input, where they are counted.
    pub input_individuals: Option<u64>,
    /// The number of rows whose individual is NULL, if individuals are counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input_rows_without_individual: Option<u64>,
    /// The number of rows that repeat an earlier row exactly: two equal rows count one.
    pub duplicate_rows: u64,
    /// The number of suppressed rows.
    pub suppressed_rows: u64,
    /// The number of individuals with a suppressed row, where they are counted.
    pub suppressed_individuals: Option<u64>,
    /// The number of suppressed rows without an individual, which no limit bounds, if individuals are counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub suppressed_rows_without_individual: Option<u64>,
    /// The number of individuals that may be suppressed; rows, where no individuals are counted.
    pub suppression_limit: u64,
    /// The risk measures, by name, of the input before recoding, but after clips and merges have joined values.
    pub risk_before: BTreeMap<String, f64>,
    /// The models that compare the classes with the whole input, with what they reached among all its rows.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub compared_with_input: Vec<ModelRecord>,
    /// The findings about the columns released as they are.
    pub as_is: Vec<AsIsColumn>,
    /// For regions, what each combination of the input's quasi-identifiers shows: a Parquet file in base64.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub assignment: Option<String>,
    /// The key by which rows were dealt to groups, in hexadecimal digits: with it, guesses of values can be tested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dealing_key: Option<String>,
    /// The key by which noise was drawn, in hexadecimal digits: with it, the noise can be taken off.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub noise_key: Option<String>,
    /// How the recoding was found.
    pub search: SearchRecord,
    /// What the release keeps of the quasi-identifiers' distributions; earlier versions did not record it, and
    /// groups keep all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub utility: Option<Utility>,
    /// The digest of the release whose recoding was applied again, without a search.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recoding_of: Option<String>,
    /// The rows by pseudonyms, if releases of the same people may follow this one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub history: Option<HistoryRecord>,
}

/// A search in the private record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRecord {
    /// The method that ran.
    pub method: String,
    /// The measure that it minimized.
    pub objective: String,
    /// The number of nodes in the lattice; `None` if the method searches none.
    pub nodes: Option<u64>,
    /// The number of nodes whose classes were computed far enough to decide whether they are anonymous; without a lattice, the
    /// number of sets of classes that were tried. `incognito` also counts nodes of fewer columns, so it can be more than `nodes`.
    pub evaluated: u64,
    /// Whether the best node is proven best.
    pub proven: bool,
    /// A lower bound on the loss of every anonymous node; `None` if the method gives none, or if it
    /// is proven that there is no such node.
    pub bound: Option<f64>,
    /// The best recoding; where several methods were tried, the best one of each. Best first.
    pub best: Vec<CandidateRecord>,
}

/// A recoding that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateRecord {
    /// The recoding: `{"levels": [2, 0, 1]}`, one level per quasi-identifier in policy order, or
    /// `{"regions": 207}`, the number of classes.
    pub recoding: FoundRecoding,
    /// The objective's value.
    pub loss: f64,
    /// The method that found it, as a policy names it, where several were tried.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<String>,
}

impl std::fmt::Debug for PrivateRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PrivateRecord(of {})", self.release)
    }
}

impl PrivateRecord {
    /// Reads a private record; `None` if there is no such file, or if it is none.
    ///
    /// # Errors
    /// A data error if it cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let place = format!("private record {}", path.display());
        match fs::metadata(path) {
            Err(_) => return Ok(None),
            // Opening a pipe would block forever.
            Ok(facts) if !facts.is_file() => {
                let found = kind_of(facts.file_type());
                return Err(Error::data(format!("expected a plain file, found {found}")).at(place));
            }
            Ok(_) => {}
        }
        let text = fs::read_to_string(path).context(&place)?;
        Ok(serde_json::from_str(&text).ok())
    }

    /// Returns the record's text as it is written.
    ///
    /// # Errors
    /// An internal error when it cannot be serialized.
    pub fn to_json(&self) -> Result<String> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|_| Error::internal("record: a record cannot be serialized"))?;
        text.push('\n');
        Ok(text)
    }
}

/// Lists the models in words: `k_anonymity(5)`.
pub(crate) fn models_text(requirements: &[Requirement]) -> String {
    requirements.iter().map(Requirement::text).collect::<Vec<_>>().join(", ")
}

/// Returns whether both name the same models of the same columns, in the same order. Texts do not
/// tell: the name of a column may hold a comma.
pub(crate) fn are_same_models(models: &[Requirement], others: &[Requirement]) -> bool {
    let same = |(one, other): (&Requirement, &Requirement)| {
        one.is_like(other) && one.model.parameters() == other.model.parameters()
    };
    models.len() == others.len() && models.iter().zip(others).all(same)
}

/// Returns the parameters of a model as a record writes them.
pub(crate) fn parameters_text(model: &dyn ClassModel) -> BTreeMap<String, String> {
    model.parameters().into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}
