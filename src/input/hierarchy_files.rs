//! Hierarchy files in CSV or Parquet.

use std::fs::File;
use std::path::{Path, PathBuf};

use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::read_parquet;
use crate::engine::damaged::unless_it_panics;
use crate::error::{Error, Result};
use crate::generalize::hierarchy::{csv_of_batches, is_table};
use crate::policy::{Files, Folder};
use crate::progress::CancelToken;
use crate::store::{Address, text_at, with_file_at};

/// The hierarchy files that a policy names: paths from its own folder, or addresses. CSV is read unchanged; Parquet (`.parquet`)
/// is converted to the CSV text that a private record keeps.
#[derive(Debug, Clone)]
pub struct HierarchyFiles {
    policy: Address,
}

impl HierarchyFiles {
    /// Creates the files that the policy at a place names.
    pub fn of_policy(policy: Address) -> Self {
        Self { policy }
    }

    /// Creates the files that are named from the current folder.
    pub fn of_current_folder() -> Self {
        Self { policy: Address::Local(PathBuf::new()) }
    }

    /// Returns the place of the policy.
    pub fn policy(&self) -> &Address {
        &self.policy
    }
}

impl Files for HierarchyFiles {
    fn population(&self, name: &str) -> Result<String> {
        self.policy.beside(name).map(|place| place.to_string()).map_err(|error| error.at("population"))
    }

    fn read(&self, name: &str) -> Result<String> {
        let at = self.policy.beside(name).map_err(|error| error.at("hierarchy file"))?;
        let place = |error: Error| error.at(format!("hierarchy file {at}"));
        let stop = CancelToken::default();
        match &at {
            _ if is_table(name) => {
                with_file_at(&at, &stop, parquet).map_err(|error| place(error.of_policy()))
            }
            Address::Local(path) => Folder(PathBuf::new()).read(&path.to_string_lossy()),
            Address::Remote(address) => text_at(address, &stop).map_err(place),
        }
    }
}

fn parquet(path: &Path) -> Result<String> {
    // The reader's errors may quote the file's content.
    let broken = || Error::policy("it cannot be read as Parquet");
    let unread = |error| Error::of_policy_file(&error);
    let facts = std::fs::metadata(path).map_err(unread)?;
    if !facts.is_file() {
        return Err(Error::policy("expected a plain file"));
    }
    let file = File::open(path).map_err(unread)?;
    let read = || {
        read_parquet::check_readable(&file)?;
        let metadata = read_parquet::metadata(&file).map_err(|_| broken())?;
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
        let reader = reader.build().map_err(|_| broken())?;
        csv_of_batches(&reader.collect::<std::result::Result<Vec<_>, _>>().map_err(|_| broken())?)
    };
    unless_it_panics(read).unwrap_or_else(|| Err(broken()))
}
