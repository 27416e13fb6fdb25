//! The files of a table in a folder of this machine.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::release::publish::partitioning::Partitioning;
use crate::release::publish::record::{PublicRecord, TableRecord};
use crate::store::shown;

/// The files of a table.
pub struct TableFiles {
    /// The folder below which they lie.
    pub(crate) folder: PathBuf,
    /// The files in the order of their rows.
    pub(crate) parts: Vec<Part>,
    /// The partition columns.
    pub(crate) partitioning: Partitioning,
}

/// A written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name below the folder of the table.
    pub name: String,
    /// Its rows.
    pub rows: u64,
}

impl Part {
    /// Returns its name without values of columns, for errors.
    pub(crate) fn shown(&self) -> String {
        shown(&self.name)
    }

    /// Returns the folders below that of the table in which it lies, with a `/` at their end.
    pub(crate) fn folders(&self) -> &str {
        folders_of(&self.name)
    }
}

/// Returns the folders of a name, with a `/` at their end.
pub(crate) fn folders_of(name: &str) -> &str {
    name.rfind('/').and_then(|end| name.get(..=end)).unwrap_or_default()
}

impl TableFiles {
    /// Returns the path of a file.
    pub(crate) fn path(&self, part: &Part) -> PathBuf {
        self.folder.join(&part.name)
    }
}

impl PublicRecord {
    /// Returns the files of a table of the release at `out`.
    ///
    /// # Errors
    /// An unmet error if the record contradicts itself on its columns.
    pub(crate) fn files_of(&self, table: &TableRecord, out: &Path) -> Result<TableFiles> {
        let parts = table.files.iter().map(|file| Part { name: file.name.clone(), rows: file.rows });
        let partitioning = Partitioning::of_record(self, table)?;
        Ok(TableFiles { folder: table.path(out), parts: parts.collect(), partitioning })
    }

    /// Returns the names and types of the columns that a table is written as.
    ///
    /// # Errors
    /// An unmet error for columns that kanon does not write.
    pub(crate) fn written_columns_of(&self, table: &TableRecord) -> Result<Vec<(String, String)>> {
        let mut written = Vec::new();
        for column in &table.columns {
            match self.recoding.written_as(&column.name)? {
                None => written.push((column.name.clone(), column.data_type.clone())),
                Some(columns) => written.extend(
                    columns.columns().into_iter().map(|(name, data_type)| (name, data_type.to_string())),
                ),
            }
        }
        Ok(written)
    }
}
