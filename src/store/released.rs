//! What the record of a release says of the folder in which it lies: only what it lists belongs to the release. Beside it may lie
//! what a run is writing, or what a killed one left.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::DataType;
use serde::Deserialize;

use super::folder_names::can_be_partition_column;
use super::partitions::{PartitionColumns, PartitionType};

/// The name of the record of a release.
pub const RECORD: &str = "_kanon.json";

#[derive(Deserialize)]
struct Record {
    tables: Vec<Table>,
}

#[derive(Deserialize)]
struct Table {
    folder: Option<String>,
    files: Vec<File>,
    #[serde(default)]
    partition_by: Vec<String>,
    columns: Vec<Column>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    data_type: String,
}

#[derive(Deserialize)]
struct File {
    name: String,
}

/// Returns the names, below the folder, of the objects that a record lists; `None` for a text that is no record.
pub(super) fn listed_by(record: &str) -> Option<BTreeSet<String>> {
    let record: Record = serde_json::from_str(record).ok()?;
    let names = record.tables.into_iter().flat_map(|Table { folder, files, .. }| {
        files.into_iter().map(move |File { name }| match &folder {
            Some(folder) => format!("{folder}/{name}"),
            None => name,
        })
    });
    Some(names.collect())
}

impl PartitionColumns {
    /// Takes the types of a release from its record, if it says them.
    pub(crate) fn of_record(mut self, record: &str) -> Self {
        let recorded = types_of_partition_columns(record);
        for (name, data_type) in self.names.iter().zip(&mut self.types) {
            if let Some(recorded) = recorded.get(name) {
                *data_type = PartitionType::Recorded(recorded.clone());
            }
        }
        self
    }

    /// Returns the type that the record of a release says of a column.
    pub(crate) fn recorded(&self, name: &str) -> Option<&DataType> {
        let types = self.names.iter().zip(&self.types);
        types.into_iter().find_map(|(other, data_type)| match data_type {
            PartitionType::Recorded(data_type) if other == name => Some(data_type),
            _ => None,
        })
    }
}

/// Returns the types of the columns that folders of a release hold, as its record says them.
fn types_of_partition_columns(record: &str) -> BTreeMap<String, DataType> {
    let record: Option<Record> = serde_json::from_str(record).ok();
    let tables = record.into_iter().flat_map(|record| record.tables);
    let columns = tables.flat_map(|Table { partition_by, columns, .. }| {
        columns.into_iter().filter(move |column| partition_by.contains(&column.name))
    });
    let typed =
        |Column { name, data_type }| Some((name, data_type.parse().ok().filter(can_be_partition_column)?));
    columns.filter_map(typed).collect()
}

/// How many hexadecimal digits name a run.
const DIGITS: usize = 16;

/// Returns the run that gave an object in a store its name, such as `part-00000-0123456789abcdef.parquet`.
pub(crate) fn run_of_part(name: &str) -> Option<&str> {
    let (number, run) = name.strip_prefix("part-")?.strip_suffix(".parquet")?.split_once('-')?;
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (is_number(number) && run.len() == DIGITS && run.chars().all(is_digit)).then_some(run)
}

/// Returns whether a text is the number of a file of a release.
pub(crate) fn is_number(text: &str) -> bool {
    text.len() >= 5 && text.chars().all(|c| c.is_ascii_digit())
}

/// Returns whether a run gave an object of a store its name.
pub(super) fn is_of_run(key: &str) -> bool {
    run_of_part(key.rsplit('/').next().unwrap_or(key)).is_some()
}
