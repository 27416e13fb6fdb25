//! The file of the key of pseudonyms, which a release and all that follow it share.

use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::Context;
use crate::engine::pseudonym::PseudonymKey;
use crate::error::{Error, Result};
use crate::release::publish::folder_place::check_outside_releases;
use crate::release::publish::out_folder::absolute;
use crate::release::publish::place::Place;
use crate::release::publish::{digest, disk};
use crate::store::Address;

/// A key, and the file that holds it: 64 hexadecimal digits, readable by its owner alone.
pub(in crate::release) struct KeyFile {
    path: PathBuf,
    key: PseudonymKey,
    is_new: bool,
}

impl KeyFile {
    /// Returns the key of a place, or a new one if there is no such file.
    ///
    /// # Errors
    /// A policy error if the place has no file for it, or one that would be published; a data error if the file is no key or cannot be
    /// read.
    pub(in crate::release) fn of_place(place: &Place) -> Result<Self> {
        let path = path_of(place)?;
        let named = |error: Error| error.at(format!("--key {}", path.display()));
        check_outside_releases(&path).map_err(named)?;
        let whole = absolute("--key", &path)?;
        for other in [Some(place.out()), place.private()].into_iter().flatten().filter_map(Address::local) {
            if whole.starts_with(absolute("", other)?) {
                let why = "is the release or its private record, or inside of them; choose another place for the key";
                return Err(named(Error::policy(why)));
            }
        }
        match read(&path)? {
            Some(key) => Ok(Self { path, key, is_new: false }),
            None => Ok(Self { path, key: PseudonymKey::random()?, is_new: true }),
        }
    }

    /// Finds the key of a release, which is recognized so: the file that was named, or any `.key` beside the private record, where those
    /// of all releases that follow one another may be.
    ///
    /// # Errors
    /// A policy error if it is not there, or another one.
    pub(in crate::release) fn of_release(place: &Place, id: &str) -> Result<Self> {
        let path = path_of(place)?;
        let named = |why: &str| {
            Error::policy(format!("{why}; give the key of the first release with --key"))
                .at(path.display().to_string())
        };
        let found = match read(&path)? {
            Some(key) if key.id()? == id => return Ok(Self { path, key, is_new: false }),
            found => found,
        };
        if place.named_key().is_none() {
            for path in keys_beside(&path) {
                // Another file may be of something else.
                match read(&path) {
                    Ok(Some(key)) if key.id()? == id => return Ok(Self { path, key, is_new: false }),
                    _ => {}
                }
            }
        }
        Err(named(match found {
            None => "the key of the pseudonyms is missing, without which nobody can be found again",
            Some(_) => "this is the key of other pseudonyms",
        }))
    }

    /// Returns the file.
    pub(in crate::release) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::release) fn key(&self) -> &PseudonymKey {
        &self.key
    }

    /// Writes the file, if it was not there, and returns it then.
    ///
    /// # Errors
    /// A data error if it cannot be written.
    pub(in crate::release) fn keep(self) -> Result<Option<PathBuf>> {
        if !self.is_new {
            return Ok(None);
        }
        let place = format!("key {}", self.path.display());
        if let Some(parent) = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).context(&place)?;
        }
        disk::write_private_new(&self.path, &format!("{}\n", digest::hex(self.key.bytes())))
            .context(&place)?;
        Ok(Some(self.path))
    }
}

fn path_of(place: &Place) -> Result<PathBuf> {
    place.key().ok_or_else(|| {
        let why = "the key of the pseudonyms is a file of this machine, beside the private record; give a path with --key";
        Error::policy(why).at(place.out().to_string())
    })
}

/// Returns the other keys in the folder of a key, in order.
fn keys_beside(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut keys: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "key")).collect();
    keys.sort_unstable();
    keys
}

fn read(path: &Path) -> Result<Option<PseudonymKey>> {
    let place = format!("key {}", path.display());
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context(&place),
        Ok(facts) if !facts.is_file() => return Err(Error::data("expected a plain file").at(place)),
        Ok(_) => {}
    }
    let text = fs::read_to_string(path).context(&place)?;
    let bytes = digest::of_hex(text.trim_end()).and_then(|bytes| bytes.try_into().ok());
    let wrong = || Error::data(format!("expected {} hexadecimal digits", 2 * PseudonymKey::BYTES)).at(place);
    bytes.map(|bytes| Some(PseudonymKey::of_bytes(bytes))).ok_or_else(wrong)
}
