//! A file as it was when it was found, so that a change is seen.

use std::fs::{self, Metadata};
use std::path::PathBuf;
use std::time::SystemTime;

use crate::engine::Context;
use crate::error::{Error, Result};

/// A file as it was at the start of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedFile {
    /// The path.
    pub path: PathBuf,
    /// The length in bytes.
    pub bytes: u64,
    /// The time of the last change of the content, which programs may set.
    pub modified: Option<SystemTime>,
    /// The time of the last change of content, name or permissions, which they may not: seconds and nanoseconds.
    /// `None` where the machine keeps none.
    pub changed: Option<(i64, i64)>,
}

impl PinnedFile {
    /// Finds a file.
    ///
    /// # Errors
    /// A data error if it cannot be found, or if it is no plain file.
    pub(crate) fn new(path: PathBuf) -> Result<Self> {
        let place = format!("input file {}", path.display());
        let facts = fs::metadata(&path).context(&place)?;
        if !facts.is_file() {
            // A pipe can be read only once, and each file is read several times.
            let why =
                "expected a plain file, found a pipe, a socket or a device; write its content into a file";
            return Err(Error::data(why).at(place));
        }
        let (bytes, modified, changed) = (facts.len(), facts.modified().ok(), changed(&facts));
        Ok(Self { path, bytes, modified, changed })
    }

    /// Returns what happened to the file since it was found; `None` if nothing did.
    pub(super) fn what_happened(&self) -> Option<&'static str> {
        match Self::new(self.path.clone()) {
            Ok(now) if now == *self => None,
            Ok(_) => Some("changed"),
            Err(_) if self.path.exists() => Some("changed"),
            Err(_) => Some("disappeared"),
        }
    }

    /// Returns the address of the file for the engine, with links followed.
    ///
    /// # Errors
    /// A data error if the file cannot be found, or if its path holds a control character.
    pub fn url(&self) -> Result<url::Url> {
        let absolute = fs::canonicalize(&self.path).context(&self.place())?;
        let url = url::Url::from_file_path(&absolute).ok();
        url.filter(|_| !absolute.to_string_lossy().contains(char::is_control)).ok_or_else(|| {
            let why = "its path holds a control character, such as a line break, which the engine cannot read; rename the \
                       file or its folder";
            Error::data(why).at(self.place())
        })
    }

    /// Returns the words that name the file in an error.
    pub(crate) fn place(&self) -> String {
        format!("input file {}", self.path.display())
    }
}

#[cfg(unix)]
fn changed(facts: &Metadata) -> Option<(i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    Some((facts.ctime(), facts.ctime_nsec()))
}

#[cfg(not(unix))]
fn changed(_: &Metadata) -> Option<(i64, i64)> {
    None
}

#[cfg(all(unix, feature = "cli"))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_though_length_and_time_are_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.csv");
        fs::write(&path, "n\n1\n").unwrap();
        let pinned = PinnedFile::new(path.clone()).unwrap();
        assert_eq!(pinned.what_happened(), None);
        // Clocks of file systems have steps.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(&path, "n\n2\n").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(pinned.modified.unwrap()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().ok(), pinned.modified);
        assert_eq!(pinned.what_happened(), Some("changed"));
        fs::remove_file(&path).unwrap();
        assert_eq!(pinned.what_happened(), Some("disappeared"));
    }
}
