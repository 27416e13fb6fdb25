//! What the records of a release say so that others may follow it.

use serde::{Deserialize, Serialize};

use crate::engine::pseudonym::PseudonymKey;
use crate::error::{Error, Result};
use crate::release::publish::digest;
use crate::release::publish::record::PublicRecord;

/// What the public record says of the releases that this one follows, and that may follow it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicHistory {
    /// The SHA-256 of `history` in the private record: of its JSON without the rows, and of these.
    pub digest: String,
    /// The digests of the public records of the releases that this one follows: the rows of every history, over all of them, belong to
    /// enough people, and all models of this one hold for them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub after: Vec<String>,
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
    /// The HMAC-SHA-256 of all the rest under this key: only who has it can make such a record.
    pub seal: String,
    /// The SHA-256 of the policy's text, the hierarchies and the merged trees, by which the next release is made.
    pub policy: String,
    /// The column that names the person of a row.
    pub person: HistoryColumn,
    /// The columns by which the rows of a person are matched.
    pub row: Vec<HistoryColumn>,
    /// Whether the policy names them; otherwise they are all released columns.
    pub row_is_named: bool,
    /// The columns whose values tell that a row was not in an input.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dates: Vec<HistoryColumn>,
    /// The sensitive columns whose values change from one release to the next.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changes: Vec<String>,
    /// The columns that are released as they are, by which everybody sees whether a row changed.
    pub compared: Vec<HistoryColumn>,
    /// Whether attackers do not know whose rows change.
    pub changes_are_unknown: bool,
    /// The quasi-identifiers, in the order of the release.
    pub quasi: Vec<String>,
    /// The models that were judged class by class.
    pub models: Vec<HistoryModel>,
    /// The columns whose values last.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub lasting: Vec<String>,
    /// The number of rows without a person.
    pub rows_without_person: u64,
    /// The number of those that the release shows.
    pub shown_without_person: u64,
    /// The digests of the public records of the releases that this one follows.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub after: Vec<String>,
    /// What its classes show that none of these has, in the order of the quasi-identifiers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub new_classes: Vec<Vec<Option<String>>>,
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

impl PublicRecord {
    /// Returns whether a record of rows is the one that this one names, and follows the same releases.
    ///
    /// # Errors
    /// An internal error when it cannot be serialized.
    pub(crate) fn names_rows(&self, rows: &HistoryRecord) -> Result<bool> {
        let named = self.history.as_ref().map(|named| (&named.digest, &named.after));
        Ok(named == Some((&rows.digest()?, &rows.after)))
    }

    /// Returns the digests of the public records of the releases that this one follows.
    pub(crate) fn follows(&self) -> &[String] {
        self.history.as_ref().map_or(&[], |history| &history.after)
    }
}

impl HistoryRecord {
    /// Returns the digest that the public record names.
    ///
    /// # Errors
    /// An internal error when it cannot be serialized.
    pub(crate) fn digest(&self) -> Result<String> {
        let (rest, rows) = self.parts()?;
        Ok(digest::of_texts([&rest, rows]))
    }

    /// Returns the same of a policy with this digest.
    ///
    /// # Errors
    /// An internal error when it cannot be serialized.
    pub(crate) fn of_policy(self, policy: String, key: &PseudonymKey) -> Result<Self> {
        Self { policy, ..self }.sealed(key)
    }

    /// Returns the same with its seal.
    fn sealed(self, key: &PseudonymKey) -> Result<Self> {
        let open = Self { seal: String::new(), ..self };
        let (rest, rows) = open.parts()?;
        let seal = key.mac_of_texts([&rest, rows])?;
        Ok(Self { seal, ..open })
    }

    /// Returns whether it was made by somebody who has this key.
    ///
    /// # Errors
    /// An internal error when it cannot be serialized.
    pub(crate) fn is_sealed_with(&self, key: &PseudonymKey) -> Result<bool> {
        Ok(self.clone().sealed(key)?.seal == self.seal)
    }

    /// Returns what its digest and its seal are of. The rows are long, and need no JSON.
    fn parts(&self) -> Result<(String, &str)> {
        let rest = serde_json::to_string(&Self { rows: String::new(), ..self.clone() });
        let rest = rest.map_err(|_| Error::internal("record: a history cannot be serialized"))?;
        Ok((rest, &self.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_key_can_seal_a_record() {
        let (key, other) = (PseudonymKey::of_bytes([7; 32]), PseudonymKey::of_bytes([8; 32]));
        let column = HistoryColumn { name: "person".into(), data_type: "Utf8View".into() };
        let record = HistoryRecord {
            key: key.id().unwrap(),
            seal: String::new(),
            policy: String::new(),
            person: column,
            row: Vec::new(),
            row_is_named: false,
            dates: Vec::new(),
            changes: Vec::new(),
            compared: Vec::new(),
            changes_are_unknown: false,
            quasi: Vec::new(),
            models: Vec::new(),
            lasting: Vec::new(),
            rows_without_person: 0,
            shown_without_person: 0,
            after: Vec::new(),
            new_classes: Vec::new(),
            rows: String::new(),
        };
        assert!(!record.is_sealed_with(&key).unwrap());
        let sealed = record.sealed(&key).unwrap();
        assert!(sealed.is_sealed_with(&key).unwrap() && !sealed.is_sealed_with(&other).unwrap());
        let edited = HistoryRecord { shown_without_person: 1, ..sealed };
        assert!(!edited.is_sealed_with(&key).unwrap());
        let resealed = edited.sealed(&other).unwrap();
        assert!(!resealed.is_sealed_with(&key).unwrap());
    }
}
