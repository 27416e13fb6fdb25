//! Staging: one work directory beside OUT, and the steps that make a release appear whole or not at all.
//!
//! `.NAME.kanon-work` (mode 0700, same file system as OUT) holds the staged release, its private record and the engine's
//! spill files. A lock in it tells a running run from a killed one.
//!
//! # What a killed run leaves
//!
//! | killed before | at OUT | beside OUT | in the work directory |
//! |---|---|---|---|
//! | 1. the record and the private record are on the device | the old release | its private record | anything |
//! | 2. OUT and the staged release exchange names | the old release | its private record | the new release and its record |
//! | 3. the private record gets its name | the new release | the old private record | the new private record |
//! | 4. the work directory is removed | the new release | its private record | rubbish |
//!
//! Where the system cannot exchange names, the old release is moved to `old` in the work directory first; killed before
//! the new one is moved, nothing is at OUT. The next run to the same place clears away what a killed one left: it puts `old`
//! back, and gives the private record its name. Until then `kanon verify OUT` says where things are. Nothing is published
//! twice: a run that fails at one of these steps undoes those before it, and from step 4 on errors are warnings.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engine::Doing;
use crate::error::{Error, Result, of_file};
use crate::input::Input;
use crate::release::publish::disk;
pub use crate::release::publish::disk::private_file;
use crate::release::publish::record::{PrivateRecord, PublicRecord, RECORD, name_of};
use crate::release::publish::target::{
    Parents, absolute, check_apart, check_free, is_absent, is_empty_folder, is_release, no_release,
};

/// How many times 10 ms pass before a work directory without a lock is one of a killed run.
const PATIENCE: usize = if cfg!(test) { 2 } else { 50 };

/// The work directory of one run. Dropped, it is removed with all it holds.
#[derive(Debug)]
pub struct Staging {
    out: PathBuf,
    overwrite: bool,
    work: PathBuf,
    /// Whether the work directory stays: it holds what belongs to OUT, or could not be removed.
    keeps_work: bool,
    _lock: File,
    parents: Parents,
}

/// How a release took its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placed {
    /// It exchanged names with what was there.
    Exchanged,
    /// It was moved to where nothing was.
    Moved,
    /// It was moved to where a release was, which was moved aside.
    MovedAside,
}

impl Staging {
    /// Claims OUT and makes the work directory.
    ///
    /// # Errors
    /// A policy error when OUT exists and may not be replaced, a data error when another run works on it.
    pub fn begin(out: &Path, overwrite: bool, input: &Input) -> Result<Self> {
        let out = absolute(out)?;
        check_apart(&out, input)?;
        let work = work_of(&out)?;
        clear_leftovers(&out, &work)?;
        check_free(&out, overwrite)?;
        let parents = Parents::make(&out)?;
        let place = format!("work directory {}", work.display());
        disk::create_private_folder(&work).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => another_run(&out),
            _ => Error::data(of_file(&error)).at(&place),
        })?;
        let lock = claim(&work, &out, &place)?;
        let staging = Self { out, overwrite, work, keeps_work: false, _lock: lock, parents };
        // Another run may have published since: the lock keeps all others out from here on.
        check_free(&staging.out, overwrite)?;
        disk::create_folder(&staging.release()).doing(&place)?;
        disk::create_private_folder(&staging.spill()).doing(&place)?;
        Ok(staging)
    }

    /// Where the release is staged.
    pub fn release(&self) -> PathBuf {
        self.work.join("release")
    }

    /// Where the engine spills.
    pub fn spill(&self) -> PathBuf {
        self.work.join("spill")
    }

    /// Where the private record is staged.
    fn private(&self) -> PathBuf {
        self.work.join("private.json")
    }

    /// Where a release is moved that is replaced.
    fn aside(&self) -> PathBuf {
        self.work.join("old")
    }

    /// Writes the record of the staged release.
    ///
    /// # Errors
    /// A data error.
    pub fn write_record(&self, record: &PublicRecord) -> Result<()> {
        disk::write_new(&self.release().join(RECORD), &record.to_json()?).doing("writing the record")
    }

    /// Publishes the staged release and its private record. Returns warnings: what could not be done afterwards.
    ///
    /// # Errors
    /// A data error; what was at OUT before is then still there, unless the error says where it is. A policy error when
    /// something appeared at OUT meanwhile.
    pub fn publish(mut self, record: &PrivateRecord) -> Result<Vec<String>> {
        let doing = "publishing the release";
        disk::write_private(&self.private(), &record.to_json()?).doing(doing)?;
        for folder in [self.release(), self.work.clone()] {
            disk::sync_folder(&folder).doing(doing)?;
        }
        check_free(&self.out, self.overwrite)?;
        let placed = self.place().map_err(|error| error.at(doing))?;
        if let Err(error) = disk::rename(&self.private(), &PrivateRecord::path(&self.out)?) {
            let undone = self.take_back(placed);
            return Err(self.undone(&error, undone).at(doing));
        }
        Ok(self.finish(placed))
    }

    /// Puts the staged release to OUT.
    fn place(&mut self) -> Result<Placed> {
        let refused = |error: std::io::Error| Error::data(of_file(&error));
        if !is_absent(&self.out) {
            match disk::exchange(&self.release(), &self.out) {
                Ok(()) => return Ok(Placed::Exchanged),
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                Err(error) => return Err(refused(error)),
            }
        }
        if !is_release(&self.out) {
            return disk::rename(&self.release(), &self.out).map(|()| Placed::Moved).map_err(refused);
        }
        disk::rename(&self.out, &self.aside()).map_err(refused)?;
        match disk::rename(&self.release(), &self.out) {
            Ok(()) => Ok(Placed::MovedAside),
            Err(error) => {
                let undone = disk::rename(&self.aside(), &self.out);
                Err(self.undone(&error, undone))
            }
        }
    }

    /// Makes OUT what it was before the release was placed.
    fn take_back(&self, placed: Placed) -> std::io::Result<()> {
        match placed {
            Placed::Exchanged => disk::exchange(&self.release(), &self.out),
            Placed::Moved => disk::rename(&self.out, &self.release()),
            Placed::MovedAside => {
                disk::rename(&self.out, &self.release())?;
                disk::rename(&self.aside(), &self.out)
            }
        }
    }

    /// Returns the error of a step after the steps before it were undone, or were not.
    fn undone(&mut self, error: &std::io::Error, undone: std::io::Result<()>) -> Error {
        let why = of_file(error);
        let Err(also) = undone else { return Error::data(why) };
        self.keeps_work = true;
        Error::data(format!(
            "{why}; undoing it failed too ({}): what belongs to {} lies in {}, and the next `kanon release` to the same \
             place puts things right",
            of_file(&also),
            self.out.display(),
            self.work.display()
        ))
    }

    /// Tidies up after a release that is published.
    fn finish(mut self, placed: Placed) -> Vec<String> {
        let mut warnings = Vec::new();
        for folder in self.parents.hold_names(&self.out) {
            if let Err(error) = disk::sync_folder(folder) {
                warnings.push(format!(
                    "{} could not be written down to the device ({}): should the power fail soon, verify the release again",
                    folder.display(),
                    of_file(&error)
                ));
            }
        }
        let aside = match placed {
            // A run that is killed while it removes it must not leave half of it under the name from which releases are
            // put back.
            Placed::MovedAside => disk::rename(&self.aside(), &self.work.join("replaced")),
            Placed::Exchanged | Placed::Moved => Ok(()),
        };
        if let Err(error) = aside.and_then(|()| remove(&self.work)) {
            warnings.push(format!(
                "{} could not be removed ({}): the next `kanon release` to the same place removes it",
                self.work.display(),
                of_file(&error)
            ));
            self.keeps_work = true;
        }
        warnings
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.keeps_work {
            // What cannot be removed now is removed by the next run.
            let _ = remove(&self.work);
        }
    }
}

/// Says that a run to OUT did not end, and what to do; `None` where no work directory lies beside OUT.
pub(crate) fn unfinished(out: &Path) -> Option<String> {
    let work = work_of(out).ok().filter(|work| work.is_dir())?;
    let old =
        if work.join("old").is_dir() { " (the release that was there lies in its folder `old`)" } else { "" };
    Some(format!(
        "{} is of a run that is still at work, or was killed{old}; the next `kanon release` to the same place puts \
         things right",
        work.display()
    ))
}

/// The work directory of runs to OUT.
fn work_of(out: &Path) -> Result<PathBuf> {
    Ok(out.with_file_name(format!(".{}.kanon-work", name_of(out)?)))
}

fn another_run(out: &Path) -> Error {
    Error::data(format!("another run is writing to {}; wait for it to end", out.display()))
}

/// Locks a work directory. That it is gone means that another run has just cleared it away.
fn claim(work: &Path, out: &Path, place: &str) -> Result<File> {
    let lock = disk::create_file(&work.join("lock")).map_err(|error| match error.kind() {
        ErrorKind::NotFound => another_run(out),
        _ => Error::data(of_file(&error)).at(place),
    })?;
    lock.try_lock().map_err(|_| another_run(out))?;
    // A lock that its run has removed meanwhile is no lock of what may be there by now.
    if is_at(&lock, &work.join("lock")) { Ok(lock) } else { Err(another_run(out)) }
}

/// Whether an open file is the one that has a name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |facts: fs::Metadata| (facts.dev(), facts.ino());
    matches!((file.metadata().map(id), fs::metadata(path).map(id)), (Ok(own), Ok(there)) if own == there)
}

/// Whether an open file is the one that has a name: one that is open cannot be removed here.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

/// Removes a work directory, its lock last. That it is gone is fine.
fn remove(work: &Path) -> std::io::Result<()> {
    if is_absent(work) {
        return Ok(());
    }
    for entry in fs::read_dir(work)? {
        let entry = entry?;
        if entry.file_name() != "lock" {
            disk::remove(&entry.path())?;
        }
    }
    disk::remove(work)
}

/// Removes the work directory of a killed run. A release that it had moved aside is put back, a private
/// record that it had not yet moved is moved.
fn clear_leftovers(out: &Path, work: &Path) -> Result<()> {
    // While a run begins or ends, its directory is there for a moment without its lock.
    for _ in 0..PATIENCE {
        if !work.exists() {
            return Ok(());
        }
        if work.join("lock").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let place = format!("work directory {} of an earlier run", work.display());
    let _lock = claim(work, out, &place)?;
    let aside = work.join("old");
    if is_release(&aside) && !is_release(out) {
        if !is_absent(out) && !is_empty_folder(out) {
            // The release that was moved aside is kept until it can come back.
            return Err(no_release(out));
        }
        disk::rename(&aside, out).doing(&place)?;
    }
    let private = work.join("private.json");
    if let (Ok(text), Ok(public)) = (fs::read_to_string(&private), PublicRecord::read(out)) {
        let belongs = serde_json::from_str::<PrivateRecord>(&text).is_ok_and(|p| p.release == public.digest);
        if belongs {
            disk::rename(&private, &PrivateRecord::path(out)?).doing(&place)?;
        }
    }
    remove(work).doing(&place)
}

#[cfg(test)]
#[path = "staging_tests.rs"]
mod faults;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Format;

    fn nothing() -> Input {
        Input { said: "x.csv".into(), files: vec![], format: Format::Csv }
    }

    #[test]
    fn a_run_claims_out_and_cleans_up() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let staging = Staging::begin(&out, false, &nothing()).unwrap();
        let second = Staging::begin(&out, false, &nothing()).unwrap_err();
        assert!(second.to_string().contains("another run"), "{second}");
        drop(staging);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_releases_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        fs::create_dir(&out).unwrap();
        assert!(Staging::begin(&out, false, &nothing()).is_ok());
        fs::write(out.join("thesis.txt"), "years of work").unwrap();
        assert!(Staging::begin(&out, true, &nothing()).unwrap_err().to_string().contains("no release"));
        fs::write(out.join(RECORD), "{}").unwrap();
        assert!(Staging::begin(&out, false, &nothing()).unwrap_err().to_string().contains("--overwrite"));
        assert!(Staging::begin(&out, true, &nothing()).unwrap_err().to_string().contains("move it away"));
        fs::rename(out.join("thesis.txt"), out.join("part-00000.parquet")).unwrap();
        assert!(Staging::begin(&out, true, &nothing()).is_ok());
    }

    #[test]
    fn what_a_killed_run_left_is_put_right() {
        let folder = tempfile::tempdir().unwrap();
        let (out, work) = (folder.path().join("out"), folder.path().join(".out.kanon-work"));
        fs::create_dir_all(work.join("old")).unwrap();
        fs::write(work.join("old").join(RECORD), "{}").unwrap();
        fs::write(work.join("lock"), "").unwrap();
        let refused = Staging::begin(&out, false, &nothing()).unwrap_err();
        assert!(refused.to_string().contains("--overwrite"), "{refused}");
        assert!(is_release(&out) && !work.exists());
    }
}
