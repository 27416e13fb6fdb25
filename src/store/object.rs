//! An object as it was when it was listed, so that a change is seen.

use std::fmt;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use datafusion::datasource::listing::{ListingTableUrl, PartitionedFile};
use object_store::ObjectMeta;

use super::address::Address;
use super::copy::LocalCopy;
use super::partitions::shown;
use crate::engine::Context;
use crate::error::{Error, Result};

/// A file of this machine or an object of a store, as it was when it was listed.
#[derive(Clone)]
pub struct Object {
    address: Address,
    /// Its path below the folder that was named, as it was listed.
    below: String,
    bytes: u64,
    pin: Pin,
    /// The copy of an object of a store.
    copy: Option<Arc<LocalCopy>>,
}

/// What changes whenever the content does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// Of a file of this machine.
    Local {
        /// The time of the last change of the content, which programs may set.
        modified: Option<SystemTime>,
        /// The time of the last change of content, name or permissions, which they may not: seconds and nanoseconds.
        /// `None` where the machine keeps none.
        changed: Option<(i64, i64)>,
    },
    /// Of an object of a store.
    Remote {
        /// The tag of the content. Some web servers give none.
        e_tag: Option<Tag>,
        /// The version, where the store keeps versions.
        version: Option<String>,
        /// The time of the last change.
        modified: DateTime<Utc>,
    },
}

/// A tag of content. Servers write one tag with quotes and without them.
#[derive(Debug, Clone, Eq)]
pub struct Tag(pub(super) String);

impl Tag {
    /// Returns whether the content may differ in bytes where the tag is the same.
    pub(super) fn is_weak(&self) -> bool {
        self.0.starts_with("W/")
    }

    pub(super) fn bare(&self) -> &str {
        self.0.trim_start_matches("W/").trim_matches('"')
    }
}

impl PartialEq for Tag {
    fn eq(&self, other: &Self) -> bool {
        self.bare() == other.bare()
    }
}

impl Pin {
    /// Returns whether an object has the content of another one, as far as its store says.
    pub(super) fn is_content_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Remote { e_tag: Some(a), .. }, Self::Remote { e_tag: Some(b), .. }) => a == b,
            (Self::Remote { modified: a, .. }, Self::Remote { modified: b, .. }) => a == b,
            (a, b) => a == b,
        }
    }
}

/// Objects are equal if they lie at one place and have one content. Copies do not count.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        (&self.address, self.bytes) == (&other.address, other.bytes) && self.pin.is_content_of(&other.pin)
    }
}

impl Eq for Object {}

impl Object {
    /// Finds a file of this machine.
    ///
    /// # Errors
    /// A data error if it cannot be found, or if it is no plain file.
    pub(crate) fn of_file(path: PathBuf) -> Result<Self> {
        Self::of_file_below(path, String::new())
    }

    /// Finds a file of this machine, whose path below the folder that was named is known.
    ///
    /// # Errors
    /// As [`of_file`](Self::of_file).
    pub(super) fn of_file_below(path: PathBuf, below: String) -> Result<Self> {
        let pin = Pin::Local { modified: None, changed: None };
        let named = Self { address: Address::Local(path), below, bytes: 0, pin, copy: None };
        let facts = fs::metadata(named.path()).context(&named.place())?;
        if !facts.is_file() {
            // A pipe can be read only once, and each file is read several times.
            let why =
                "expected a plain file, found a pipe, a socket or a device; write its content into a file";
            return Err(Error::data(why).at(named.place()));
        }
        let pin = Pin::Local { modified: facts.modified().ok(), changed: changed(&facts) };
        Ok(Self { bytes: facts.len(), pin, ..named })
    }

    /// Creates an object of a store.
    pub(super) fn of_store(address: Address, bytes: u64, pin: Pin) -> Self {
        Self { address, below: String::new(), bytes, pin, copy: None }
    }

    /// Returns the object with its path below the folder that was named.
    pub(crate) fn listed_below(self, below: String) -> Self {
        Self { below, ..self }
    }

    /// Returns its path below the folder that was named, as it was listed; empty if it was named itself.
    pub(crate) fn below(&self) -> &str {
        &self.below
    }

    /// Returns the object with its copy.
    pub(super) fn with_copy(self, copy: Arc<LocalCopy>) -> Self {
        Self { copy: Some(copy), ..self }
    }

    /// Returns its copy; a file of this machine has none.
    pub(super) fn copy(&self) -> Option<&Arc<LocalCopy>> {
        self.copy.as_ref()
    }

    /// Returns where it lies.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns what changes whenever the content does.
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    /// Returns the file of this machine that is read: itself, or the copy. Of Parquet, the copy holds what was asked for, and the
    /// footer; `fetch` of this room brings the rest.
    pub fn path(&self) -> &Path {
        match (&self.copy, &self.address) {
            (Some(copy), _) => copy.path(),
            (None, Address::Local(path)) => path,
            // Of an object that was listed and not copied, which is never read.
            (None, Address::Remote(_)) => Path::new(""),
        }
    }

    /// Returns what happened to a file of this machine since it was found; `None` if nothing did. What was read of an object
    /// cannot change.
    pub(crate) fn what_happened(&self) -> Option<&'static str> {
        if let Address::Remote(_) = &self.address {
            return None;
        }
        match Self::of_file(self.path().to_path_buf()) {
            Ok(now) if now == *self => None,
            Ok(_) => Some("changed"),
            Err(_) if self.path().exists() => Some("changed"),
            Err(_) => Some("disappeared"),
        }
    }

    /// Returns the address of the file that is read for the engine, with links followed.
    ///
    /// # Errors
    /// A data error if the file cannot be found, or if its path holds a control character.
    pub fn url(&self) -> Result<url::Url> {
        let absolute = fs::canonicalize(self.path()).context(&self.place())?;
        let url = url::Url::from_file_path(&absolute).ok();
        url.filter(|_| !absolute.to_string_lossy().contains(char::is_control)).ok_or_else(|| {
            let why = "its path holds a control character, such as a line break, which the engine cannot read; rename the \
                       file or its folder";
            Error::data(why).at(self.place())
        })
    }

    /// Returns a file of this machine as a file of a plan.
    ///
    /// # Errors
    /// As [`url`](Self::url).
    pub(crate) fn as_file(&self) -> Result<PartitionedFile> {
        let url = ListingTableUrl::try_new(self.url()?, None).context(&self.place())?;
        let modified = match &self.pin {
            Pin::Local { modified, .. } => modified.map(DateTime::from),
            Pin::Remote { modified, .. } => Some(*modified),
        };
        Ok(PartitionedFile::from(ObjectMeta {
            location: url.prefix().clone(),
            last_modified: modified.unwrap_or(DateTime::UNIX_EPOCH),
            size: self.bytes,
            e_tag: None,
            version: None,
        }))
    }

    /// Returns where it lies for a private record: the path with links followed, or the address.
    ///
    /// # Errors
    /// A data error if the file cannot be found.
    pub(crate) fn recorded(&self) -> Result<PathBuf> {
        match &self.address {
            Address::Local(path) => fs::canonicalize(path).context(&self.place()),
            Address::Remote(address) => Ok(address.to_string().into()),
        }
    }

    /// Returns what two names of one object share.
    ///
    /// # Errors
    /// A data error if a file cannot be found.
    pub(crate) fn identity(&self) -> Result<(String, PathBuf)> {
        Ok(match &self.address {
            Address::Local(_) => (String::new(), self.recorded()?),
            Address::Remote(address) => (address.store(), address.key().into()),
        })
    }

    /// Returns the words that name the object in an error.
    pub(crate) fn place(&self) -> String {
        let what = if self.address.local().is_some() { "input file" } else { "input object" };
        format!("{what} {}", self.shown())
    }

    /// Returns where it lies without the values of partition folders, which are cells.
    pub(crate) fn shown(&self) -> String {
        let address = self.address.to_string();
        match address.strip_suffix(&self.below) {
            Some(root) => format!("{root}{}", shown(&self.below)),
            None => shown(&address),
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("address", &self.shown())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
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
        let pinned = Object::of_file(path.clone()).unwrap();
        assert_eq!(pinned.what_happened(), None);
        // Clocks of file systems have steps.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let Pin::Local { modified: Some(modified), .. } = pinned.pin else { unreachable!() };
        fs::write(&path, "n\n2\n").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().ok(), Some(modified));
        assert_eq!(pinned.what_happened(), Some("changed"));
        fs::remove_file(&path).unwrap();
        assert_eq!(pinned.what_happened(), Some("disappeared"));
    }
}
