//! The place of a release on this machine: its folder OUT, and the file of its private record.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::engine::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::input::Input;
use crate::release::publish::entry_kind::kind_of;
use crate::release::publish::out_folder::{AtOut, absolute, check_replaceable, is_absent, reads};
use crate::release::publish::record::{PRIVATE_END, PrivateRecord, PublicRecord, RECORD, name_of};

/// The folder of this machine where a release is published, and the file of its private record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FolderPlace {
    out: PathBuf,
    private: PathBuf,
    is_apart: bool,
}

/// Returns whether a folder, or one above it, is a release.
pub fn is_in_release(folder: &Path) -> bool {
    folder.ancestors().any(|folder| folder.join(RECORD).is_file())
}

/// Checks that a file that a user names is not written into the folder of a release.
///
/// # Errors
/// A policy error if it would be.
pub fn check_outside_releases(file: &Path) -> Result<()> {
    // A path that cannot be made absolute cannot be written either.
    if !absolute("", file).is_ok_and(|file| file.parent().is_some_and(is_in_release)) {
        return Ok(());
    }
    Err(Error::policy(
        "is inside a release, which is published and would no longer verify; choose another place",
    ))
}

impl FolderPlace {
    /// Returns the place of a release in the folder `out`, with `NAME.private.json` beside it.
    ///
    /// # Errors
    /// A policy error if `out` has no name.
    pub(crate) fn beside(out: &Path) -> Result<Self> {
        let private = out.with_file_name(private_name(out)?);
        Ok(Self { out: out.to_path_buf(), private, is_apart: false })
    }

    /// Returns the place of a release in the folder `out`, with its private record in `private`: a
    /// file where that ends in `.json` and is no folder, otherwise `NAME.private.json` in the folder
    /// `private`. Neither needs to exist.
    ///
    /// # Errors
    /// A policy error if `out` has no name, or if `private` is not UTF-8.
    pub(crate) fn apart(out: &Path, private: &Path) -> Result<Self> {
        if private.to_str().is_none() {
            return Err(Error::policy(format!("--private {}: expected a path in UTF-8", private.display())));
        }
        let is_file = private.extension().is_some_and(|end| end == "json") && !private.is_dir();
        let private = if is_file { private.to_path_buf() } else { private.join(private_name(out)?) };
        Ok(Self::with_file(out, private))
    }

    /// Returns the place of a release in the folder `out` whose private record is the file `private`.
    pub(crate) fn with_file(out: &Path, private: PathBuf) -> Self {
        Self { out: out.to_path_buf(), private, is_apart: true }
    }

    /// Returns the folder of the release.
    pub(crate) fn out(&self) -> &Path {
        &self.out
    }

    /// Returns the file of the private record.
    pub(crate) fn private(&self) -> &Path {
        &self.private
    }

    /// Returns whether the private record was given a place of its own.
    pub(crate) fn is_apart(&self) -> bool {
        self.is_apart
    }

    /// Returns the same place with absolute paths. Folders above need not exist yet.
    ///
    /// # Errors
    /// A policy error if the nearest existing folder above cannot be used, if the release would be in another one, or if
    /// the private record would be in a release.
    pub(crate) fn absolute(&self) -> Result<Self> {
        let out = absolute("--to", &self.out)?;
        if out.parent().is_some_and(is_in_release) {
            let why = "is inside another release, which would no longer verify; choose another place";
            return Err(Error::policy(why).at(format!("--to {}", self.out.display())));
        }
        if !self.is_apart {
            return Self::beside(&out);
        }
        let private = absolute("--private", &self.private)?;
        if private.to_str().is_none() {
            return Err(Error::policy(format!("--private {}: expected a path in UTF-8", private.display())));
        }
        if private.starts_with(&out) || private.parent().is_some_and(is_in_release) {
            let why = if private.starts_with(&out) { "the release" } else { "another release" };
            let why = format!("is inside {why}; a private record holds raw facts, so keep it elsewhere");
            return Err(Error::policy(why).at(format!("--private {}", self.private.display())));
        }
        Ok(Self::with_file(&out, private))
    }

    /// Reads the private record if it belongs to `public`; `None` if there is none, or if it belongs to
    /// another release.
    ///
    /// # Errors
    /// A data error if it cannot be read.
    pub(crate) fn private_record(&self, public: &PublicRecord) -> Result<Option<PrivateRecord>> {
        let record = PrivateRecord::read(&self.private)?;
        Ok(record.filter(|record| record.release == public.digest))
    }

    /// Checks that the next run with this input would not read the private record.
    ///
    /// # Errors
    /// A policy error if it would.
    pub(crate) fn check_not_read(&self, input: &Input) -> Result<()> {
        if !reads(input, &self.private) {
            return Ok(());
        }
        Err(Error::policy(format!(
            "the private record would be {}, which the next run with this input would read; choose another place with --private",
            self.private.display()
        )))
    }

    /// Checks that a release and its private record may appear here. Returns the state of OUT.
    ///
    /// # Errors
    /// A policy error that says what is in the way.
    pub(crate) fn check_free(&self, overwrite: bool) -> Result<AtOut> {
        let out = self.out();
        let found = if is_absent(out) { AtOut::Nothing } else { check_replaceable(out, out, overwrite)? };
        let replaced = (found == AtOut::Release).then(|| out.to_path_buf());
        self.check_private(replaced.as_slice())?;
        Ok(found)
    }

    /// Checks that the private record may get its name: nothing has it, or the record of a release in
    /// one of the folders `replaced`.
    ///
    /// # Errors
    /// A policy error that says what is in the way.
    pub(crate) fn check_private(&self, replaced: &[PathBuf]) -> Result<()> {
        if is_absent(&self.private) {
            return Ok(());
        }
        let private = self.private.display();
        let place = format!("private record {private}");
        let facts = fs::symlink_metadata(&self.private).context(&place)?;
        let why = if !facts.is_file() {
            format!("{} has this name; move it away", kind_of(facts.file_type()))
        } else if replaced.iter().any(|out| belongs(&self.private, out)) {
            return Ok(());
        } else if RecordHead::read(&self.private).is_some() {
            let why = "exists, and belongs to another release, whose later checks and --recoding need it; move it away, or choose \
                       another place with --private";
            return Err(Error::policy(why).coded(ErrorCode::Exists).at(place));
        } else {
            "a file of this name exists and is no private record; move it away, or choose another place with --private".to_owned()
        };
        Err(Error::policy(why).at(place))
    }
}

/// The fields of a private record that every version writes.
#[derive(Deserialize)]
pub(crate) struct RecordHead {
    pub(crate) release: String,
    #[serde(default)]
    pub(crate) policy: String,
}

impl RecordHead {
    /// Reads the text of a private record; `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Reads a private record; `None` if the path is no plain file or the file is none.
    pub(crate) fn read(private: &Path) -> Option<Self> {
        let file = private.is_file().then(|| fs::File::open(private).ok()).flatten()?;
        serde_json::from_reader(std::io::BufReader::new(file)).ok()
    }
}

/// Returns whether a plain file is the private record of the release in the folder `out`.
pub(crate) fn belongs(private: &Path, out: &Path) -> bool {
    let record = RecordHead::read(private);
    record.is_some_and(|record| PublicRecord::read(out).is_ok_and(|public| public.digest == record.release))
}

fn private_name(out: &Path) -> Result<String> {
    Ok(format!("{}{PRIVATE_END}", name_of(out)?))
}

#[cfg(test)]
#[path = "folder_place_tests.rs"]
mod tests;
