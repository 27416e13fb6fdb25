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
use crate::store::folder::{StoredFolder, Until};

/// A file with a private record, or where one will be.
#[derive(Debug, Clone)]
pub(super) enum PrivateFile {
    Local(PathBuf),
    Stored(StoredFolder, String),
}

/// What the name of a record that is pending has behind the name that it will get. The run follows, and what it replaces.
const PENDING: &str = ".pending-";
const OVER: &str = "-over-";

/// How much of a digest such a name has.
const DIGITS: usize = 16;

/// The time for one request that has to be made although the run was stopped.
const LAST: Duration = Duration::from_secs(60);

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

    /// Returns the file under which the record of a run is pending, which replaces that of a release with the digest `over`.
    pub(super) fn pending(&self, run: &str, over: Option<&str>) -> Self {
        let over = over.map(|digest| format!("{OVER}{}", beginning(digest))).unwrap_or_default();
        self.named(&format!("{}{PENDING}{run}{over}", self.name()))
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
            Self::Local(path) => {
                fs::read_to_string(path).context(&format!("private record {self}")).map(Some)
            }
            Self::Stored(folder, name) => {
                Ok(folder.text(name, false, Until::Passed(LAST))?.map(|text| text.text))
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

    /// Returns the records that are pending here.
    fn all_pending(&self) -> Result<Vec<Self>> {
        let start = format!("{}{PENDING}", self.name());
        let names: Vec<String> = match self {
            Self::Local(path) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
            }
            Self::Stored(folder, _) => {
                folder.list(Until::Passed(LAST))?.into_iter().map(|object| object.name).collect()
            }
        };
        Ok(names.iter().filter(|name| name.starts_with(&start)).map(|name| self.named(name)).collect())
    }

    /// Checks that the next record may get the name: nothing has it, or the record of the release with the digest `replaced`.
    /// What a killed run left pending of that release gets its name first.
    ///
    /// # Errors
    /// A policy error that says what is in the way.
    pub(super) fn check_free(&self, replaced: Option<&str>) -> Result<()> {
        let place = format!("private record {self}");
        if let Some(digest) = replaced
            && let Some(pending) = self.of_release(digest)?
            && pending.name() != self.name()
        {
            let over = pending.name().rsplit_once(OVER).map(|(_, over)| over.to_owned());
            let there = self.text()?.and_then(|text| RecordHead::parse(&text));
            if there.is_none_or(|head| Some(beginning(&head.release)) == over.as_deref()) {
                let text = pending.text()?.unwrap_or_default();
                self.write(&text, true).map_err(|error| error.at(&place))?;
                pending.remove()?;
            }
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

    /// Writes a record, readable only by its owner; over one that is there, if it `replaces` it.
    ///
    /// # Errors
    /// A data error; nothing is known of what is there then.
    pub(super) fn write(&self, text: &str, replaces: bool) -> Result<()> {
        match self {
            Self::Local(path) => {
                let place = format!("private record {self}");
                let new = path.with_file_name(format!(".{}.new", self.name()));
                disk::write_private(&new, text).context(&place)?;
                let named =
                    if replaces { disk::rename(&new, path) } else { disk::rename_to_free(&new, path) };
                let synced = named.and_then(|()| path.parent().map_or(Ok(()), disk::sync_folder));
                synced.inspect_err(|_| drop(disk::remove(&new))).context(&place)
            }
            Self::Stored(folder, name) => {
                let there = if replaces { folder.text(name, false, Until::Passed(LAST))? } else { None };
                let written = folder.write_text(name, text, "", there.as_ref(), Until::Passed(LAST));
                match (written, folder.text(name, false, Until::Passed(LAST))) {
                    // Whatever the store answered.
                    (_, Ok(Some(there))) if there.text == text => Ok(()),
                    (Err(refused), _) => Err(refused.error),
                    (Ok(()), Err(error)) => Err(error),
                    (Ok(()), Ok(_)) => Err(Error::data("another file appeared there meanwhile")
                        .at(format!("private record {self}"))),
                }
            }
        }
    }

    /// Removes it.
    ///
    /// # Errors
    /// A data error.
    pub(super) fn remove(&self) -> Result<()> {
        match self {
            Self::Local(path) if is_absent(path) => Ok(()),
            Self::Local(path) => disk::remove(path).context(&format!("private record {self}")),
            Self::Stored(folder, name) => folder.remove(name, Until::Passed(LAST)),
        }
    }
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
