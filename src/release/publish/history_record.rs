//! What the records of a release say so that others may follow it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::release::publish::digest;

/// What the public record says of the releases that this one follows, and that may follow it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicHistory {
    /// The SHA-256 of `history` in the private record.
    pub digest: String,
    /// The policy's reason why attackers do not know whose rows change between releases, if it gives one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub changes_unknown: Option<String>,
}

/// The rows of a release by pseudonyms, in its private record.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryRecord {
    /// What the key of the pseudonyms is recognized by.
    pub key: String,
    /// The column that names the person of a row.
    pub person: HistoryColumn,
    /// The columns that tell the rows of a person apart.
    pub row: Vec<HistoryColumn>,
    /// The columns whose values tell that a row was not in an input.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dates: Vec<HistoryColumn>,
    /// The sensitive columns whose values change from one release to the next.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changes: Vec<String>,
    /// The columns by which rows that change are told from those that stay.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub known_changes: Vec<String>,
    /// The quasi-identifiers, in the order of the release.
    pub quasi: Vec<String>,
    /// The models that were judged class by class.
    pub models: Vec<HistoryModel>,
    /// The columns whose values last.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub lasting: Vec<String>,
    /// The number of rows without a person.
    pub rows_without_person: u64,
    /// A Parquet file in base64: a line for each row that has a person, with the labels that show it.
    pub rows: String,
}

/// A column of the input by which rows are found again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryColumn {
    /// The column's name.
    pub name: String,
    /// Its Arrow type: 7 is not `007`.
    #[serde(rename = "type")]
    pub data_type: String,
}

/// A model that was judged class by class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryModel {
    /// Its place among the models of the public record.
    pub model: usize,
    /// The place of its column among the counted ones.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub counted: Option<usize>,
    /// The place of its column among those whose values last.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lasting: Option<usize>,
}

impl HistoryRecord {
    /// Returns the digest that the public record names.
    ///
    /// # Errors
    /// An internal error when it cannot be serialized.
    pub(crate) fn digest(&self) -> Result<String> {
        let text = serde_json::to_string(self)
            .map_err(|_| Error::internal("record: a history cannot be serialized"))?;
        Ok(digest::of_bytes(text.as_bytes()))
    }
}
