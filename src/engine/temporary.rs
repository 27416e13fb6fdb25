//! Folders for copies of an input: only their owner may read them, and none outlives the process.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, TempDir};

/// The folders that are there.
static FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn folders() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder in the system's folder for temporary files, removed with everything in it when it is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFolder(TempDir);

impl TemporaryFolder {
    /// Makes a folder.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn new() -> io::Result<Self> {
        let mut builder = Builder::new();
        builder.prefix("kanon-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir()?;
        folders().insert(folder.path().to_path_buf());
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Until it is gone, the end of the process would remove it.
        let path = self.0.path().to_path_buf();
        let _ = std::fs::remove_dir_all(&path);
        folders().remove(&path);
    }
}

/// Removes all folders, when the process ends while threads of a stopped run may hold some.
pub fn remove_all() {
    for folder in std::mem::take(&mut *folders()) {
        // What cannot be removed now is left to the system.
        let _ = std::fs::remove_dir_all(folder);
    }
}
