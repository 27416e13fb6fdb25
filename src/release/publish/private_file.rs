//! The file of the private record of a release in a store, on this machine or in a store: it is written before the release is
//! published, under a pending name, and gets its name afterwards.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engine::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::release::publish::disk;
use crate::release::publish::folder_place::RecordHead;
use crate::release::publish::out_folder::{Parents, is_absent};
use crate::store::Address;
use crate::store::folder::{StoredFolder, StoredText, Until};

/// A file with a private record, or where one will be.
#[derive(Debug, Clone)]
pub(super) enum PrivateFile {
    Local(PathBuf),
    Stored(StoredFolder, String),
}

/// What stands in the name of a pending record in a store before the run.
const STORED_MARK: &str = ".pending/";

/// What stands in the name of a pending record before the digest of what it replaces.
const OVER: &str = "-over-";

/// How much of a digest, and of a run, such a name has.
const DIGITS: usize = 16;

/// The time for one request that has to be made although the run was stopped.
pub(super) const REQUEST_TIME: Duration = Duration::from_secs(60);

impl PrivateFile {
    pub(super) fn at(address: &Address) -> Result<Self> {
        match address {
            Address::Local(path) => Ok(Self::Local(path.clone())),
            Address::Remote(address) => {
                let (folder, name) = StoredFolder::holding(address)?;
                Ok(Self::Stored(folder, name))
            }
        }
    }

    /// Returns the pending record that this was shown as.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub(super) fn of_shown(pending: &str) -> Result<Self> {
        match (Address::parse(pending)?, pending.rsplit_once(STORED_MARK)) {
            (Address::Remote(_), Some((record, run))) => {
                let record = Self::at(&Address::parse(record)?)?;
                Ok(record.named(&format!("{}{STORED_MARK}{run}", record.name())))
            }
            (address, _) => Self::at(&address),
        }
    }

    /// Returns the pending record of a run to a place, which replaces that of a release with the digest `over`.
    pub(super) fn pending(&self, run: &str, place: &str, over: Option<&str>) -> Self {
        let over = over.map(|digest| format!("{OVER}{}", beginning(digest))).unwrap_or_default();
        self.named(&format!("{}{}{run}-{place}{over}", self.name(), self.mark()))
    }

    fn name(&self) -> String {
        match self {
            Self::Local(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Stored(_, name) => name.clone(),
        }
    }

    fn named(&self, name: &str) -> Self {
        match self {
            Self::Local(path) => Self::Local(path.with_file_name(name)),
            Self::Stored(folder, _) => Self::Stored(folder.clone(), name.to_owned()),
        }
    }

    /// Returns the run of a pending record, the place of its release, and the beginning of the digest of what it replaces.
    fn pending_parts(&self) -> Option<(String, String, Option<String>)> {
        let name = self.name();
        let (_, parts) = name.rsplit_once(self.mark())?;
        let (parts, over) = parts.split_once(OVER).map_or((parts, None), |(parts, over)| (parts, Some(over)));
        let (run, place) = parts.split_once('-')?;
        let is_run = run.len() == DIGITS && run.chars().all(|c| c.is_ascii_hexdigit());
        is_run.then(|| (run.to_owned(), place.to_owned(), over.map(str::to_owned)))
    }

    /// Returns the run of a pending record; `None` for what is none.
    pub(super) fn run(&self) -> Option<String> {
        self.pending_parts().map(|(run, ..)| run)
    }

    /// Returns what stands between the name of a record and the rest of that of a pending one. In a store it ends a folder, which
    /// can be listed.
    fn mark(&self) -> &'static str {
        match self {
            Self::Local(_) => ".pending-",
            Self::Stored(..) => STORED_MARK,
        }
    }

    /// Makes the folders above it.
    pub(super) fn make_parents(&self) -> Result<Parents> {
        match self {
            Self::Local(path) => Parents::make(path),
            Self::Stored(..) => Ok(Parents::default()),
        }
    }

    /// Reads it; `None` if nothing is there.
    ///
    /// # Errors
    /// A data error if it cannot be read.
    pub(super) fn text(&self) -> Result<Option<String>> {
        match self {
            Self::Local(path) if is_absent(path) => Ok(None),
            Self::Local(path) if !path.is_file() => {
                Err(Error::data("expected a plain file").at(format!("private record {self}")))
            }
            Self::Local(path) => match fs::read_to_string(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                text => text.context(&format!("private record {self}")).map(Some),
            },
            Self::Stored(folder, name) => {
                Ok(folder.text(name, Until::Passed(REQUEST_TIME))?.map(|text| text.text))
            }
        }
    }

    /// Returns whether it is the record of the release with this digest.
    pub(super) fn is_of(&self, digest: &str) -> Result<bool> {
        let head = self.text()?.and_then(|text| RecordHead::parse(&text));
        Ok(head.is_some_and(|head| head.release == digest))
    }

    /// Finds the record of the release with this digest: here, or pending.
    ///
    /// # Errors
    /// A data error if it cannot be read.
    pub(super) fn of_release(&self, digest: &str) -> Result<Option<Self>> {
        if self.is_of(digest)? {
            return Ok(Some(self.clone()));
        }
        for pending in self.all_pending()? {
            if pending.is_of(digest)? {
                return Ok(Some(pending));
            }
        }
        Ok(None)
    }

    /// Returns the pending records of this name.
    pub(super) fn all_pending(&self) -> Result<Vec<Self>> {
        let start = format!("{}{}", self.name(), self.mark());
        let names: Vec<String> = match self {
            Self::Local(path) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
                let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
                names.filter(|name| name.starts_with(&start)).collect()
            }
            Self::Stored(folder, _) => {
                let pending = StoredFolder::open(&folder.address_of(start.trim_end_matches('/')))?;
                let listed = pending.list(Until::Passed(REQUEST_TIME))?;
                listed.into_iter().map(|object| format!("{start}{}", object.name)).collect()
            }
        };
        Ok(names.iter().map(|name| self.named(name)).filter(|pending| pending.run().is_some()).collect())
    }

    /// Removes the pending records of runs to one place that cannot publish any more, because what they would replace was replaced
    /// by the release with this digest. The names are those of a list that was made before it was known to be still there.
    ///
    /// # Errors
    /// A data error.
    pub(super) fn remove_outdated(pending: &[Self], place: &str, digest: &str) -> Result<()> {
        for record in pending {
            let parts = record.pending_parts();
            let is_outdated =
                parts.is_some_and(|(_, of, over)| of == place && over.as_deref() != Some(beginning(digest)));
            if is_outdated && !record.is_of(digest)? {
                record.remove()?;
            }
        }
        Ok(())
    }

    /// Ends what a killed run left of the release with this digest: its record that is pending gets its name, or is removed if
    /// a record of that release has the name.
    ///
    /// # Errors
    /// A data error.
    pub(super) fn end_pending(&self, digest: &str) -> Result<()> {
        for pending in self.all_pending()? {
            if !pending.is_of(digest)? {
                continue;
            }
            let over = pending.pending_parts().and_then(|(_, _, over)| over);
            let there = self.text()?.and_then(|text| RecordHead::parse(&text));
            match there {
                Some(there) if there.release == digest => pending.remove()?,
                Some(there) if Some(beginning(&there.release)) == over.as_deref() => {
                    pending.rename(self, Some(&there.release))?;
                }
                // Another release has it: every command finds the pending one.
                Some(_) => {}
                None => pending.rename(self, None)?,
            }
        }
        Ok(())
    }

    /// Checks that the next record may get the name: nothing has it, or the record of the release with the digest `replaced`.
    /// What a killed run left pending of that release gets its name first.
    ///
    /// # Errors
    /// A policy error that says what is in the way.
    pub(super) fn check_free(&self, replaced: Option<&str>) -> Result<()> {
        let place = format!("private record {self}");
        if let Some(digest) = replaced {
            self.end_pending(digest)?;
        }
        let Some(text) = self.text()? else { return Ok(()) };
        let head = RecordHead::parse(&text);
        match (head, replaced) {
            (Some(head), Some(replaced)) if head.release == replaced => Ok(()),
            (Some(_), _) => {
                let why = "exists, and belongs to another release, whose later checks and --recoding need it; move it away, or \
                           choose another place with --private";
                Err(Error::policy(why).coded(ErrorCode::Exists).at(place))
            }
            (None, _) => {
                let why = "a file of this name exists and is no private record; move it away, or choose another place with \
                           --private";
                Err(Error::policy(why).at(place))
            }
        }
    }

    /// Writes a record that is pending, readable only by its owner.
    ///
    /// # Errors
    /// A data error; a part of it may be there.
    pub(super) fn create(&self, text: &str) -> Result<()> {
        match self {
            Self::Local(path) => {
                let written = disk::write_private(path, text).and_then(|()| sync_folder_of(path));
                written.context(&format!("private record {self}"))
            }
            Self::Stored(folder, name) => write(folder, name, text, None),
        }
    }

    /// Gives a record that is pending its name; over the record of the release with the digest `replaced`, if one is given.
    ///
    /// # Errors
    /// A data error, also if another record has the name by now.
    pub(super) fn rename(&self, to: &Self, replaced: Option<&str>) -> Result<()> {
        let other = || Error::data("another file has this name by now").at(format!("private record {to}"));
        let is_replaced =
            |text: &str| RecordHead::parse(text).is_some_and(|head| Some(head.release.as_str()) == replaced);
        match (self, to) {
            (Self::Local(from), Self::Local(path)) => {
                let named = match to.text()? {
                    None => disk::rename_to_free(from, path),
                    Some(text) if is_replaced(&text) => disk::rename(from, path),
                    Some(_) => return Err(other()),
                };
                named.and_then(|()| sync_folder_of(path)).context(&format!("private record {to}"))
            }
            (_, Self::Stored(folder, name)) => {
                let text = self.text()?.ok_or_else(|| Error::data("it is not there").at(self))?;
                let there = folder.text(name, Until::Passed(REQUEST_TIME))?;
                if there.as_ref().is_some_and(|there| !is_replaced(&there.text)) {
                    return Err(other());
                }
                write(folder, name, &text, there.as_ref())?;
                self.remove()
            }
            (_, Self::Local(_)) => Err(Error::internal("private record: it is pending in another place")),
        }
    }

    /// Removes it.
    ///
    /// # Errors
    /// A data error.
    pub(super) fn remove(&self) -> Result<()> {
        match self {
            Self::Local(path) if is_absent(path) => Ok(()),
            Self::Local(path) if !path.is_file() => {
                Err(Error::data("expected a plain file").at(format!("private record {self}")))
            }
            Self::Local(path) => disk::remove(path).context(&format!("private record {self}")),
            Self::Stored(folder, name) => folder.remove(name, Until::Passed(REQUEST_TIME)),
        }
    }
}

/// Writes a record to a store, over one that is there as it was read.
fn write(folder: &StoredFolder, name: &str, text: &str, replaces: Option<&StoredText>) -> Result<()> {
    let until = Until::Passed(REQUEST_TIME);
    let written = folder.write_text(name, text, replaces, until);
    match (written, folder.text(name, until)) {
        // Whatever the store answered.
        (_, Ok(Some(there))) if there.text == text => Ok(()),
        (Err(failed), _) => Err(failed.error),
        (Ok(()), Err(error)) => Err(error),
        (Ok(()), Ok(_)) => {
            let place = format!("private record {}", folder.address_of(name));
            Err(Error::data("another file has this name by now").at(place))
        }
    }
}

fn sync_folder_of(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), disk::sync_folder)
}

fn beginning(digest: &str) -> &str {
    digest.get(..DIGITS).unwrap_or(digest)
}

impl fmt::Display for PrivateFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => write!(f, "{}", path.display()),
            Self::Stored(folder, name) => write!(f, "{}", folder.address_of(name)),
        }
    }
}
