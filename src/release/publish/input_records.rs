//! The input's files and columns in a private record.

use std::path::PathBuf;

use arrow::datatypes::Schema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::generalize::value::type_name;
use crate::policy::{EarlierColumn, Policy};
use crate::role::Role;

/// An input file in the private record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputRecord {
    /// The file's path.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its HMAC-SHA-256 by `digest_key`, in hexadecimal digits.
    pub hmac_sha256: String,
}

/// A column of the input in the private record, which a run by the same recoding must find again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputColumn {
    /// Its name.
    pub column: String,
    /// The type of its values, whatever their encoding.
    #[serde(rename = "type")]
    pub data_type: String,
}

impl InputColumn {
    /// Returns the columns that are released or counted, in the order of the table.
    ///
    /// # Errors
    /// An internal error if the schema lacks one.
    pub(crate) fn all(policy: &Policy, schema: &Schema) -> Result<Vec<Self>> {
        let is_read = |role: Role| role.is_released() || role == Role::Individual;
        let columns = policy.columns.iter().filter(|(_, role)| is_read(*role));
        let column = |(name, _): &(String, Role)| {
            let field = schema.field_with_name(name);
            let field =
                field.map_err(|_| Error::internal("record: the schema lacks a column of the policy"))?;
            Ok(Self { column: name.clone(), data_type: type_name(field.data_type()) })
        };
        columns.map(column).collect()
    }

    /// Returns what a later run must find; a type that was only guessed from cells of text need not
    /// be the same.
    pub(crate) fn expected(&self, has_types: bool) -> EarlierColumn {
        EarlierColumn { name: self.column.clone(), data_type: has_types.then(|| self.data_type.clone()) }
    }
}
