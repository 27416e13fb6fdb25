//! How the files of a release are laid out: keys of `[output]`, which shape the bytes and say nothing about rows.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use toml::Value;

use super::PolicySpec;
use super::keys::{Keys, expected, string, words};
use crate::error::{Error, Result};
use crate::method::ReleaseKind;

/// How the Parquet files of a release are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The rows of a row group, at most.
    pub row_group_rows: u64,
    /// The bytes from which on a file ends, at the end of a row group.
    pub file_bytes: u64,
    /// How pages are compressed.
    pub compression: Compression,
}

/// How the pages of a Parquet file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Not at all.
    None,
    /// Snappy, which the oldest readers know.
    Snappy,
    /// LZ4, in Parquet's own form `LZ4_RAW`.
    Lz4,
    /// Gzip, at its default level.
    Gzip,
    /// Zstandard, at level 1.
    Zstd,
}

/// The compressions by their names.
const COMPRESSIONS: [(&str, Compression); 5] = [
    ("none", Compression::None),
    ("snappy", Compression::Snappy),
    ("lz4", Compression::Lz4),
    ("gzip", Compression::Gzip),
    ("zstd", Compression::Zstd),
];

const ROW_GROUP_ROWS: RangeInclusive<u64> = 1_000..=100_000_000;
const FILE_BYTES: RangeInclusive<u64> = 10_000..=1_000_000_000_000;

impl Default for Layout {
    fn default() -> Self {
        Self { row_group_rows: 262_144, file_bytes: 512 << 20, compression: Compression::Zstd }
    }
}

impl Layout {
    /// Takes the keys of `[output]`.
    pub(super) fn take(keys: &mut Keys) -> Result<Self> {
        let default = Self::default();
        Ok(Self {
            row_group_rows: keys
                .take("row_group_rows", |value| integer(&value, &ROW_GROUP_ROWS))?
                .unwrap_or(default.row_group_rows),
            file_bytes: keys
                .take("file_bytes", |value| integer(&value, &FILE_BYTES))?
                .unwrap_or(default.file_bytes),
            compression: keys.take("compression", compression)?.unwrap_or(default.compression),
        })
    }

    /// Returns whether it is that of a policy that says nothing.
    #[cfg(feature = "engine")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a policy can say it.
    #[cfg(feature = "engine")]
    pub(crate) fn is_valid(&self) -> bool {
        ROW_GROUP_ROWS.contains(&self.row_group_rows) && FILE_BYTES.contains(&self.file_bytes)
    }
}

/// Reads the partition columns.
pub(super) fn partition_by(value: Value) -> Result<Vec<String>> {
    let names = words(value)?;
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, twice)) => Err(Error::policy(format!("`{twice}` is named twice; name it once"))),
        None => Ok(names),
    }
}

impl PolicySpec {
    /// Checks that the partition columns are released, by a method that makes one table.
    pub(super) fn check_folders(&self) -> Result<()> {
        let refused = |why| Err(Error::policy(why).at("output.partition_by"));
        for name in self.output.partition_by() {
            let Some(column) = self.column(name) else {
                return refused(format!(
                    "expected released columns, found `{name}`, which the policy does not name"
                ));
            };
            if !self.method.kind().releases(column.role()) {
                let role = column.role().word();
                return refused(format!(
                    "expected released columns, found `{name}`, which is not released (role {role})"
                ));
            }
        }
        if !self.output.partition_by().is_empty() && self.method.kind() == ReleaseKind::Groups {
            let method = &self.method.name;
            return refused(format!("`{method}` makes two tables with folders of their own; leave it out"));
        }
        Ok(())
    }
}

fn integer(value: &Value, range: &RangeInclusive<u64>) -> Result<u64> {
    let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| expected(&format!("a whole number from {} to {}", range.start(), range.end()), value))
}

fn compression(value: Value) -> Result<Compression> {
    let name = string(value)?;
    let found = COMPRESSIONS.iter().find(|(known, _)| *known == name);
    found.map(|(_, compression)| *compression).ok_or_else(|| {
        let names = COMPRESSIONS.map(|(name, _)| format!("\"{name}\""));
        Error::policy(format!("expected one of {}, found `{name}`", names.join(", ")))
    })
}
