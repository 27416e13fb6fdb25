//! The work directory of a run: its place beside OUT, its lock, and the checks that keep a run from
//! following, emptying or removing anything that kanon did not make.

use std::fs::{self, DirEntry, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engine::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::release::publish::entry_kind::kind_of;
use crate::release::publish::out_folder::{is_absent, is_folder, is_of_a_release};
use crate::release::publish::record::name_of;
use crate::release::publish::{digest, disk};
use crate::store::stores::endpoints;
use crate::store::{RemoteAddress, shown};

const PAUSE: Duration = Duration::from_millis(10);

/// The number of pauses before a work directory without a lock counts as left by a killed run.
const PATIENCE: usize = if cfg!(test) { 2 } else { 50 };

/// The number of pauses for a lock that is held. A process that another thread starts inherits
/// the lock of a run that has ended, and holds it until it executes its program.
const LOCK_PATIENCE: usize = 50;

/// How often a run that ends tries to remove its work directory, at most, and the pause between two tries.
const REMOVALS: usize = 250;
const PAUSE_OF_REMOVALS: Duration = Duration::from_millis(20);

const RELEASE: &str = "release";
const OLD: &str = "old";
const REPLACED: &str = "replaced";
const SPILL: &str = "spill";
const PRIVATE: &str = "private.json";
const PRIVATE_PLACE: &str = "private.place";
const LOCK: &str = "lock";

/// The folders that hold a release or a part of one.
const RELEASES: [&str; 3] = [RELEASE, OLD, REPLACED];

/// `.NAME.kanon-work` beside an OUT called NAME.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    /// OUT, as errors name it.
    out: String,
    path: PathBuf,
}

impl WorkFolder {
    /// Returns the work directory of runs to OUT.
    ///
    /// # Errors
    /// A policy error if OUT has no name.
    pub(crate) fn of(out: &Path) -> Result<Self> {
        let path = out.with_file_name(format!(".{}.kanon-work", name_of(out)?));
        Ok(Self { out: out.display().to_string(), path })
    }

    /// Returns the work directory of runs to an address, in the folder for temporary files.
    pub(crate) fn of_address(out: &RemoteAddress) -> Self {
        let folder = std::env::temp_dir();
        let identity = format!("{} {} {}", endpoints(), out.store(), out.key());
        #[cfg(unix)]
        let identity = format!("{identity} {:?}", disk::own_uid(&folder).ok());
        let digest = digest::of_bytes(identity.as_bytes());
        let name = format!(".{}.kanon-work", digest.get(..16).unwrap_or(&digest));
        Self { out: out.to_string(), path: folder.join(name) }
    }

    /// Returns what tells the place of a release from others, for names of files.
    pub(crate) fn id(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.chars().filter(char::is_ascii_hexdigit).take(8).collect()
    }

    /// Returns the path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder of the staged release. After it exchanges names with OUT, the replaced
    /// release lies here.
    pub(crate) fn release(&self) -> PathBuf {
        self.path.join(RELEASE)
    }

    /// Returns the folder for the engine's spill files.
    pub(crate) fn spill(&self) -> PathBuf {
        self.path.join(SPILL)
    }

    /// Returns the path of the staged private record.
    pub(crate) fn private(&self) -> PathBuf {
        self.path.join(PRIVATE)
    }

    /// Returns the path of the file that says where the private record goes, unless that is beside OUT; in a run to a store, where
    /// it is pending.
    pub(crate) fn private_place(&self) -> PathBuf {
        self.path.join(PRIVATE_PLACE)
    }

    /// Returns the path to which the release at OUT is moved if names cannot be exchanged.
    pub(crate) fn old(&self) -> PathBuf {
        self.path.join(OLD)
    }

    /// Returns the path to which `old` is moved before its removal, so that no half of it has the
    /// name from which releases are put back.
    pub(crate) fn replaced(&self) -> PathBuf {
        self.path.join(REPLACED)
    }

    fn lock(&self) -> PathBuf {
        self.path.join(LOCK)
    }

    /// Returns the words that name the directory in an error.
    pub(crate) fn place(&self) -> String {
        format!("work directory {}", self.path.display())
    }

    fn another_run(&self) -> Error {
        Error::data(format!("another run is writing to {}; wait for it to end", self.out))
            .coded(ErrorCode::ConcurrentRun)
    }

    /// Makes the work directory and locks it.
    ///
    /// # Errors
    /// A data error if another run works there, or if the folder cannot be made.
    pub(crate) fn create(&self) -> Result<File> {
        disk::create_private_folder(&self.path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => self.another_run(),
            _ => Error::from_io(&error).at(self.place()),
        })?;
        self.claim()
    }

    /// Waits for the lock of a run that begins or ends: for a moment its directory has none.
    /// Returns whether the directory still exists.
    pub(crate) fn wait_for_lock(&self) -> bool {
        for _ in 0..PATIENCE {
            if is_absent(&self.path) {
                return false;
            }
            if !is_absent(&self.lock()) {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }

    /// Checks and locks the work directory.
    ///
    /// # Errors
    /// Errors of [`Self::check`]; a data error if another run holds the lock, or has just removed
    /// it.
    pub(crate) fn claim(&self) -> Result<File> {
        self.check()?;
        let lock = disk::open_lock(&self.lock()).map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.another_run(),
            _ => Error::from_io(&error).at(self.place()),
        })?;
        let mut pauses = 0;
        while lock.try_lock().is_err() {
            if pauses == LOCK_PATIENCE {
                return Err(self.another_run());
            }
            pauses += 1;
            std::thread::sleep(PAUSE);
        }
        // The lock may have been removed before it was taken; it then does not guard the present
        // directory.
        if !is_at(&lock, &self.lock()) {
            return Err(self.another_run());
        }
        self.check()?;
        Ok(lock)
    }

    /// Checks that kanon made the work directory and everything in it. A missing directory passes.
    ///
    /// # Errors
    /// A policy error that names the foreign entry, a data error if the folder cannot be read.
    pub(crate) fn check(&self) -> Result<()> {
        match self.find_foreign() {
            Ok(None) => Ok(()),
            Ok(Some(found)) => Err(Error::policy(format!("{found}; move it away")).at(self.place())),
            // Another run has just removed the directory or an entry in it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            error => error.map(drop).context(&self.place()),
        }
    }

    /// Describes an entry that kanon did not make.
    fn find_foreign(&self) -> io::Result<Option<String>> {
        let facts = fs::symlink_metadata(&self.path)?;
        if !facts.is_dir() {
            let found = kind_of(facts.file_type());
            return Ok(Some(format!("expected a folder that kanon made, found {found}")));
        }
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::uid(&facts) != disk::own_uid(&self.path.with_file_name(""))? {
            return Ok(Some("expected a folder of your own, found one of another user".to_owned()));
        }
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if let Some(name) = foreign_name(&entry)? {
                return Ok(Some(format!("it holds `{}`, which kanon did not make", name.escape_debug())));
            }
        }
        Ok(None)
    }

    /// Removes the work directory at the end of a run, like [`remove`](Self::remove).
    pub(crate) fn remove_at_end(&self) {
        use ErrorKind::{DirectoryNotEmpty, NotFound};
        // A cancelled task of the engine may still write a last file, or remove one while it is
        // being removed here. The next run removes anything that cannot be removed now, or names
        // it.
        for _ in 0..REMOVALS {
            match self.remove() {
                Err(error) if matches!(error.kind(), DirectoryNotEmpty | NotFound) => {}
                _ => return,
            }
            if self.check().is_err() {
                return;
            }
            std::thread::sleep(PAUSE_OF_REMOVALS);
        }
    }

    /// Removes the work directory with everything that kanon made there, its lock last. Any other
    /// entry stays and is an error. A missing directory is not an error.
    pub(crate) fn remove(&self) -> io::Result<()> {
        if is_absent(&self.path) {
            return Ok(());
        }
        if !is_folder(&self.path) {
            return Err(ErrorKind::NotADirectory.into());
        }
        for release in RELEASES {
            remove_release(&self.path.join(release))?;
        }
        if is_folder(&self.spill()) {
            disk::remove(&self.spill())?;
        }
        for file in [self.private(), self.private_place(), self.lock()] {
            if fs::symlink_metadata(&file).is_ok_and(|facts| facts.is_file()) {
                disk::remove(&file)?;
            }
        }
        disk::remove_empty(&self.path)
    }
}

/// Returns the name, below the work directory, of an entry that kanon did not make: `entry` or one
/// in it.
fn foreign_name(entry: &DirEntry) -> io::Result<Option<String>> {
    let (name, kind) = (entry.file_name().to_string_lossy().into_owned(), entry.file_type()?);
    let is_ours = match name.as_str() {
        RELEASE | OLD | REPLACED | SPILL => kind.is_dir(),
        PRIVATE | PRIVATE_PLACE | LOCK => kind.is_file(),
        _ => false,
    };
    if !is_ours {
        return Ok(Some(name));
    }
    if RELEASES.contains(&name.as_str()) {
        for inner in fs::read_dir(entry.path())? {
            let inner = inner?;
            if !is_of_a_release(&inner)? {
                return Ok(Some(shown(&format!("{name}/{}", inner.file_name().to_string_lossy()))));
            }
        }
    }
    Ok(None)
}

/// Removes the files of a release, and their folder if it is then empty.
fn remove_release(folder: &Path) -> io::Result<()> {
    if !is_folder(folder) {
        return Ok(());
    }
    let mut holds_more = false;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_of_a_release(&entry)? {
            disk::remove(&entry.path())?;
        } else {
            holds_more = true;
        }
    }
    if holds_more { Ok(()) } else { disk::remove_empty(folder) }
}

/// Returns whether `path` still refers to this open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |facts: fs::Metadata| (facts.dev(), facts.ino());
    let there = fs::symlink_metadata(path).map(id);
    matches!((file.metadata().map(id), there), (Ok(own), Ok(there)) if own == there)
}

/// Returns whether `path` still refers to this open file. An open file cannot be removed here.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

#[cfg(test)]
#[path = "work_folder_tests.rs"]
mod tests;
