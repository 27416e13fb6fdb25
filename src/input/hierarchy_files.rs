//! Hierarchy files in CSV or Parquet.

use std::fs::File;
use std::path::{Path, PathBuf};

use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::address::local_path;
use super::read_parquet;
use crate::engine::damaged::unless_it_panics;
use crate::error::{Error, Result};
use crate::generalize::hierarchy::{csv_of_batches, is_table};
use crate::policy::{Files, Folder};

/// The hierarchy files in a folder. CSV is read unchanged; Parquet (`.parquet`) is converted to the
/// CSV text that a private record keeps.
#[derive(Debug, Clone)]
pub struct HierarchyFiles(pub Folder);

impl Files for HierarchyFiles {
    fn population(&self, name: &str) -> Result<PathBuf> {
        let local = local_path(name).map_err(|error| error.at("population"))?;
        Ok(self.0.0.join(local))
    }

    fn read(&self, name: &str) -> Result<String> {
        let local = local_path(name).map_err(|error| error.at("hierarchy file"))?;
        if !is_table(name) {
            return self.0.read(&local.to_string_lossy());
        }
        let path = self.0.0.join(local);
        parquet(&path).map_err(|error| error.of_policy().at(format!("hierarchy file {}", path.display())))
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
