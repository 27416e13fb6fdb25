//! What the record of a release says of the folder in which it lies: only what it lists belongs to the release. Beside it may lie
//! what a run is writing, or what a killed one left.

use std::collections::BTreeSet;

use serde::Deserialize;

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
}

#[derive(Deserialize)]
struct File {
    name: String,
}

/// Returns the names, below the folder, of the objects that a record lists; `None` for a text that is no record.
pub(super) fn listed_by(record: &str) -> Option<BTreeSet<String>> {
    let record: Record = serde_json::from_str(record).ok()?;
    let names = record.tables.into_iter().flat_map(|Table { folder, files }| {
        files.into_iter().map(move |File { name }| match &folder {
            Some(folder) => format!("{folder}/{name}"),
            None => name,
        })
    });
    Some(names.collect())
}
