//! OUT: where a release may appear, and the folders above it.

use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::engine::Context;
use crate::error::{Error, ErrorCode, Result, of_file};
use crate::input::Input;
use crate::release::publish::disk;
use crate::release::publish::record::{FOLDERS, RECORD, name_of};
use crate::release::publish::released_files::is_name_of_release;
use crate::store::is_partition;

/// Returns the path given with `flag` as an absolute one. Folders above it need not exist yet.
///
/// # Errors
/// A policy error if the nearest existing folder above it cannot be used.
pub fn absolute(flag: &str, out: &Path) -> Result<PathBuf> {
    let here = Path::new(".");
    let above = |path: &'_ Path| path.parent().map(Path::to_path_buf);
    let or_here = |path: PathBuf| if path.as_os_str().is_empty() { here.to_path_buf() } else { path };
    let mut missing = vec![name_of(out)?.into()];
    let mut folder = or_here(above(out).unwrap_or_default());
    loop {
        let unusable = |why: &str| {
            let (out, folder) = (out.display(), folder.display());
            Error::policy(format!("{flag} {out}: the folder {folder} cannot be used: {why}"))
        };
        let error = match fs::canonicalize(&folder) {
            Ok(found) if found.is_dir() => {
                return Ok(missing.iter().rev().fold(found, |path, name| path.join(name)));
            }
            Ok(_) => return Err(unusable("it is a file")),
            Err(error) => error,
        };
        // A link that leads nowhere still exists.
        let is_missing = error.kind() == ErrorKind::NotFound && fs::symlink_metadata(&folder).is_err();
        match (folder.file_name(), above(&folder)) {
            (Some(name), Some(parent)) if is_missing => {
                missing.push(name.to_owned());
                folder = or_here(parent);
            }
            _ => return Err(unusable(&of_file(&error))),
        }
    }
}

/// Checks that the folder `out`, as [`absolute`] returns it, neither lies among the input nor
/// replaces it.
///
/// # Errors
/// A policy error if it does; a data error if an input file cannot be found.
pub(crate) fn check_apart(out: &Path, input: &Input) -> Result<()> {
    for file in input.objects() {
        let Some(path) = file.address().local() else { continue };
        let path = fs::canonicalize(path).context(&file.place())?;
        if path.starts_with(out) {
            return Err(Error::policy(format!(
                "--to {}: this folder holds the input; choose another place",
                out.display()
            )));
        }
    }
    let matched = |path: &Path| is_in_pattern(input, path);
    const PART: &str = "part-00000.parquet";
    let tables = || FOLDERS.iter().map(|table| out.join(table));
    let is_matched = matched(out)
        || matched(&out.join(PART))
        || tables().any(|table| matched(&table) || matched(&table.join(PART)));
    if is_matched {
        return Err(Error::policy(format!(
            "--to {}: the input's pattern matches it, so the next run would read it; choose another place",
            out.display()
        )));
    }
    if is_in_folder(input, out) {
        return Err(Error::policy(format!(
            "--to {}: is inside the input folder, where the next run would read it; choose another place",
            out.display()
        )));
    }
    Ok(())
}

/// Returns whether INPUT has a pattern that matches an absolute path.
pub(super) fn is_in_pattern(input: &Input, path: &Path) -> bool {
    matches(input.local_arguments().filter(|argument| !argument.exists()), path)
}

/// Returns whether one of these globs matches an absolute path.
fn matches(globs: impl Iterator<Item = PathBuf>, path: &Path) -> bool {
    let near =
        std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf));
    let mut patterns = globs.filter_map(|path| glob::Pattern::new(&path.to_string_lossy()).ok());
    let is_near = |p: &glob::Pattern| near.as_ref().is_some_and(|near| p.matches_path(near));
    patterns.any(|p| p.matches_path(path) || is_near(&p))
}

/// Returns whether INPUT is a folder that contains an absolute path.
fn is_in_folder(input: &Input, path: &Path) -> bool {
    let folders = input.local_arguments().filter_map(|path| fs::canonicalize(path).ok());
    folders.filter(|folder| folder.is_dir()).any(|folder| path.starts_with(folder))
}

/// Returns whether INPUT would read a file that appears at an absolute path.
pub(crate) fn reads(input: &Input, file: &Path) -> bool {
    is_in_folder(input, file) || matches(input.local_arguments(), file)
}

/// Returns whether a folder holds a release.
pub(crate) fn is_release(out: &Path) -> bool {
    out.join(RECORD).is_file()
}

/// Returns whether an entry is a file that belongs to releases, or the folder of a table or of a value with nothing
/// but such files.
pub(crate) fn is_of_a_release(entry: &DirEntry) -> io::Result<bool> {
    let (name, kind) = (entry.file_name(), entry.file_type()?);
    if kind.is_dir() && FOLDERS.iter().any(|folder| name == *folder) {
        return holds_only(&entry.path(), is_part);
    }
    Ok(is_partition_of_parts(entry)? || is_part(entry)? || (name == RECORD && kind.is_file()))
}

fn is_partition_of_parts(entry: &DirEntry) -> io::Result<bool> {
    let path = entry.path();
    Ok(entry.file_type()?.is_dir()
        && is_partition(&path)
        && holds_only(&path, |inner| Ok(is_partition_of_parts(inner)? || is_part(inner)?))?)
}

fn holds_only(folder: &Path, is_right: impl Fn(&DirEntry) -> io::Result<bool>) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if !is_right(&entry?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_part(entry: &DirEntry) -> io::Result<bool> {
    let name = entry.file_name();
    Ok(is_name_of_release(&name.to_string_lossy()) && entry.file_type()?.is_file())
}

/// Returns whether a path is a folder rather than a link to one.
pub(crate) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir())
}

/// Returns whether a path is an empty folder rather than a link to one.
pub(crate) fn is_empty_folder(out: &Path) -> bool {
    is_folder(out) && fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none())
}

/// Returns whether no entry has this name.
pub(crate) fn is_absent(out: &Path) -> bool {
    fs::symlink_metadata(out).is_err()
}

/// Returns the error for an OUT that is not a release.
pub(crate) fn no_release(out: &Path) -> Error {
    Error::policy(format!("--to {}: exists and is not a kanon release; choose another name", out.display()))
}

/// The state of OUT where a release may appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtOut {
    Nothing,
    EmptyFolder,
    /// A release that may be replaced.
    Release,
}

/// Checks that a release may replace `found`, which is or was at OUT: an empty folder, or a release
/// if the run may overwrite.
///
/// # Errors
/// A policy error that gives the reason.
pub(crate) fn check_replaceable(out: &Path, found: &Path, overwrite: bool) -> Result<AtOut> {
    let shown = out.display();
    let facts = fs::symlink_metadata(found).context(&format!("--to {shown}"))?;
    if facts.is_symlink() {
        return Err(Error::policy(format!(
            "--to {shown}: is a symbolic link, which a release would replace; name the folder itself"
        )));
    }
    if is_empty_folder(found) {
        return Ok(AtOut::EmptyFolder);
    }
    if !is_release(found) {
        return Err(no_release(out));
    }
    if !overwrite {
        let why = format!("--to {shown}: a release already exists; --overwrite replaces it");
        return Err(Error::policy(why).coded(ErrorCode::Exists));
    }
    let place = format!("--to {shown}");
    #[cfg(unix)]
    if rustix::fs::access(found, rustix::fs::Access::WRITE_OK).is_err() {
        let why =
            "the release there is read-only, and --overwrite would replace it; allow it with `chmod u+w`";
        return Err(Error::policy(why).at(place));
    }
    for entry in fs::read_dir(found).context(&place)? {
        let is_expected = entry.and_then(|entry| is_of_a_release(&entry)).context(&place)?;
        if !is_expected {
            let why =
                "a file there does not belong to the release, and --overwrite would remove it; move it away";
            return Err(Error::policy(why).at(place));
        }
    }
    Ok(AtOut::Release)
}

/// The folders above OUT that a run made, topmost first. Dropping it removes the empty ones.
#[derive(Debug, Default)]
pub(crate) struct Parents(Vec<PathBuf>);

impl Parents {
    /// Makes the missing folders above OUT.
    ///
    /// # Errors
    /// A data error; nothing is left behind.
    pub(crate) fn make(out: &Path) -> Result<Self> {
        let missing: Vec<&Path> = out.ancestors().skip(1).take_while(|folder| is_absent(folder)).collect();
        let mut made = Self::default();
        for folder in missing.into_iter().rev() {
            match disk::create_folder(folder) {
                Ok(()) => made.0.push(folder.to_path_buf()),
                // Another run also made it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                error => error.context(&format!("making the folder {}", folder.display()))?,
            }
        }
        Ok(made)
    }

    /// Returns the folders that contain OUT and the new folders.
    pub(crate) fn hold_names<'a>(&'a self, out: &'a Path) -> impl Iterator<Item = &'a Path> {
        let made = self.0.iter().rev().map(PathBuf::as_path);
        std::iter::once(out).chain(made).filter_map(Path::parent)
    }
}

impl Drop for Parents {
    fn drop(&mut self) {
        // A folder that holds the release, or a work directory that could not be removed, stays.
        for folder in self.0.iter().rev() {
            if disk::remove_empty(folder).is_err() {
                return;
            }
        }
    }
}
