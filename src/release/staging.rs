//! Staging: one work directory beside OUT, and the steps that make a release appear whole or not at all.
//!
//! `.NAME.kanon-work` (mode 0700, same file system as OUT) holds the staged release, the engine's spill files
//! and, for a moment, the release that is replaced. A lock in it tells a running run from a killed one; the
//! next run clears away what a killed one left, and puts a release back that was moved aside.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::engine::Doing;
use super::input::Input;
use super::record::{PrivateRecord, PublicRecord, RECORD, name_of};
use crate::error::{Error, Result};

/// How many times 10 ms pass before a work directory without a lock is one of a killed run.
const PATIENCE: usize = 50;

/// The work directory of one run. Dropped, it is removed with all it holds.
#[derive(Debug)]
pub struct Staging {
    out: PathBuf,
    work: PathBuf,
    _lock: File,
}

impl Staging {
    /// Claims OUT and makes the work directory.
    ///
    /// # Errors
    /// A policy error when OUT exists and may not be replaced, a data error when another run works on it.
    pub fn begin(out: &Path, overwrite: bool, input: &Input) -> Result<Self> {
        let out = absolute(out)?;
        check_apart(&out, input)?;
        let work = out.with_file_name(format!(".{}.kanon-work", name_of(&out)?));
        clear_leftovers(&out, &work)?;
        check_free(&out, overwrite)?;
        let place = format!("work directory {}", work.display());
        private_folder(&work).map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => another_run(&out),
            kind => Error::data(kind).at(&place),
        })?;
        let lock = claim(&work, &out, &place)?;
        let staging = Self { out, work, _lock: lock };
        fs::create_dir(staging.release()).doing(&place)?;
        private_folder(&staging.spill()).doing(&place)?;
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

    /// Writes the record of the staged release.
    ///
    /// # Errors
    /// A data error.
    pub fn write_record(&self, record: &PublicRecord) -> Result<()> {
        let doing = "writing the record";
        let mut file = File::create_new(self.release().join(RECORD)).doing(doing)?;
        file.write_all(record.to_json()?.as_bytes()).doing(doing)?;
        file.sync_all().doing(doing)
    }

    /// Publishes the staged release and its private record.
    ///
    /// # Errors
    /// A data error; what was at OUT before is then still there.
    pub fn publish(self, record: &PrivateRecord) -> Result<()> {
        let doing = "publishing the release";
        let mut private = private_file(&self.work.join("private.json")).doing(doing)?;
        private.write_all(record.to_json()?.as_bytes()).doing(doing)?;
        private.sync_all().doing(doing)?;
        sync(&self.release()).doing(doing)?;
        let aside = self.work.join("old");
        let replaced = is_release(&self.out);
        if replaced {
            fs::rename(&self.out, &aside).doing(doing)?;
        }
        let private = (self.work.join("private.json"), PrivateRecord::path(&self.out)?);
        let published = fs::rename(self.release(), &self.out).and_then(|()| {
            fs::rename(&private.0, &private.1).inspect_err(|_| {
                // Back with it; should that fail too, the release is whole where it is.
                let _ = fs::rename(&self.out, self.release());
            })
        });
        if let Err(error) = published {
            if replaced {
                fs::rename(&aside, &self.out).doing(doing)?;
            }
            return Err(Error::data(error.kind()).at(doing));
        }
        if replaced {
            // From now on it is rubbish: a run that is killed while it removes it must not leave half of it under
            // the name from which releases are put back.
            fs::rename(&aside, self.work.join("replaced")).doing(doing)?;
        }
        if let Some(parent) = self.out.parent() {
            sync(parent).doing(doing)?;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next run.
        let _ = remove(&self.work);
    }
}

fn another_run(out: &Path) -> Error {
    Error::data(format!("another run is writing to {}; wait for it to end", out.display()))
}

/// OUT as an absolute path; the folder that it lies in must be there.
///
/// # Errors
/// A policy error.
pub(crate) fn absolute(out: &Path) -> Result<PathBuf> {
    let name = name_of(out)?;
    let parent = match out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = fs::canonicalize(parent).map_err(|e| {
        Error::policy(format!(
            "--to {}: the folder {} cannot be used: {}",
            out.display(),
            parent.display(),
            e.kind()
        ))
    })?;
    Ok(parent.join(name))
}

/// A release must not lie among its input, nor replace it.
fn check_apart(out: &Path, input: &Input) -> Result<()> {
    for file in &input.files {
        let path = fs::canonicalize(&file.path).doing(&format!("input file {}", file.path.display()))?;
        if path.starts_with(out) {
            return Err(Error::policy(format!("--to {}: this folder holds the input", out.display())));
        }
    }
    let folder = Path::new(&input.said);
    let matched = |path: &Path| {
        let near =
            std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf));
        let pattern = glob::Pattern::new(&input.said).ok();
        pattern.is_some_and(|p| p.matches_path(path) || near.is_some_and(|near| p.matches_path(&near)))
    };
    if !folder.exists() && (matched(out) || matched(&out.join("part-00000.parquet"))) {
        return Err(Error::policy(format!(
            "--to {}: the input's pattern matches it, so the next run would read it; choose a place outside",
            out.display()
        )));
    }
    if folder.is_dir() && fs::canonicalize(folder).is_ok_and(|folder| out.starts_with(folder)) {
        return Err(Error::policy(format!(
            "--to {}: lies inside the input folder, where the next run would read it; choose a place outside",
            out.display()
        )));
    }
    Ok(())
}

fn is_release(out: &Path) -> bool {
    out.join(RECORD).is_file()
}

fn is_empty_folder(out: &Path) -> bool {
    fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none())
}

fn check_free(out: &Path, overwrite: bool) -> Result<()> {
    let exists = fs::symlink_metadata(out).is_ok();
    if !exists || is_empty_folder(out) {
        return Ok(());
    }
    let shown = out.display();
    if !is_release(out) {
        return Err(Error::policy(format!(
            "--to {shown}: exists and is no release of kanon; choose another name"
        )));
    }
    if !overwrite {
        return Err(Error::policy(format!("--to {shown}: a release is there; --overwrite replaces it")));
    }
    let place = format!("--to {shown}");
    for entry in fs::read_dir(out).doing(&place)? {
        let name = entry.doing(&place)?.file_name();
        let name = name.to_string_lossy();
        if name != RECORD && !(name.starts_with("part-") && name.ends_with(".parquet")) {
            let why =
                "a file lies there that is not of the release, and --overwrite would remove it; move it away";
            return Err(Error::policy(why).at(place));
        }
    }
    Ok(())
}

/// Locks a work directory. That it is gone means that another run has just cleared it away.
fn claim(work: &Path, out: &Path, place: &str) -> Result<File> {
    let lock = File::create(work.join("lock")).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => another_run(out),
        kind => Error::data(kind).at(place),
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

/// Removes a work directory, its lock last.
fn remove(work: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(work)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != "lock" {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir_all(work)
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
    if is_release(&aside) && fs::symlink_metadata(out).is_err() {
        fs::rename(&aside, out).doing(&place)?;
    }
    let private = work.join("private.json");
    if let (Ok(text), Ok(public)) = (fs::read_to_string(&private), PublicRecord::read(out)) {
        let belongs = serde_json::from_str::<PrivateRecord>(&text).is_ok_and(|p| p.release == public.digest);
        if belongs {
            fs::rename(&private, PrivateRecord::path(out)?).doing(&place)?;
        }
    }
    remove(work).doing(&place)
}

fn sync(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(unix)]
fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn private_folder(path: &Path) -> std::io::Result<()> {
    fs::create_dir(path)
}

/// Creates a file that only its owner may read.
///
/// # Errors
/// Those of the file system.
#[cfg(unix)]
pub fn private_file(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // A file that was there before keeps its mode.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Creates a file that only its owner may read.
///
/// # Errors
/// Those of the file system.
#[cfg(not(unix))]
pub fn private_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::input::Format;

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
