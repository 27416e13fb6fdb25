//! Objects of a store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::{StreamExt, TryStreamExt};
use glob::{MatchOptions, Pattern};
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::address::{Address, RemoteAddress, StoreKind};
use super::copy::LocalCopy;
use super::folder::{StoredFolder, Until};
use super::io::{unless_silent, wait};
use super::local::has_wildcard;
use super::object::{Object, Pin, Tag};
use super::objects::Objects;
use super::other_tables::Checked;
use super::partitions::{is_left_by_jobs, is_partition_name, markers, shown};
use super::released::{RECORD, is_of_run, listed_by};
use super::stores::client;
use super::words::{is_denied, is_missing, of_store};
use crate::engine::Context;
use crate::engine::temporary::TemporaryFolder;
use crate::error::{Error, ErrorCode, Result};
use crate::progress::CancelToken;

/// The objects that an address reaches.
pub(super) struct StoredObjects {
    address: RemoteAddress,
    store: Arc<dyn ObjectStore>,
    /// The record by which the objects of a release were listed.
    record: Mutex<Option<String>>,
}

/// The objects that are copied at the same time.
const COPIES: usize = 4;
/// The objects whose footers are read at the same time.
const FOOTERS: usize = 32;

/// Folders that show a table of another format.
const MARKS: [&str; 7] =
    ["_delta_log", ".hoodie", "metadata", "snapshot", "manifest", "schema", "_spark_metadata"];

impl Objects for StoredObjects {
    fn list(&self, stop: &CancelToken) -> Result<Vec<Object>> {
        let Self { address, .. } = self;
        let place = |error: Error| error.at(format!("input `{address}`"));
        let denied = match self.named(stop).map_err(place)? {
            Named::Object(object) => return Ok(vec![object]),
            Named::Denied(error) => Some(place(error)),
            Named::Nothing => None,
        };
        let nothing = || {
            let why = format!("input `{address}`: no such object, folder or glob");
            Error::data(why).coded(ErrorCode::NotFound)
        };
        if address.kind == StoreKind::Http {
            let nothing = || nothing().and("; of a web server each file is named, because it lists none");
            return Err(denied.unwrap_or_else(nothing));
        }
        // A folder that has such a name is no pattern.
        let is_folder =
            || Ok::<_, Error>(has_wildcard(&address.key) && !self.below(&address.key, 1, stop)?.is_empty());
        let (root, pattern) = match address.key.find(['*', '?', '[']) {
            Some(at) if !is_folder()? => {
                let pattern = Pattern::new(address.key.trim_end_matches('/'))
                    .map_err(|e| Error::policy(format!("input `{address}`: {}", e.msg)))?;
                (address.key[..at].rsplit_once('/').map_or("", |(root, _)| root), Some(pattern))
            }
            _ => (address.key.trim_end_matches('/'), None),
        };
        let below = Below { address, root, pattern };
        let listed = self.released_below(&below, stop)?;
        // A store has no empty folders.
        if listed.is_empty() && (denied.is_some() || !root.is_empty()) {
            return Err(denied.unwrap_or_else(nothing));
        }
        let known = self.with_marks_above(root, &listed, stop)?;
        below.kept(listed, known)
    }

    fn readable(&self, objects: Vec<Object>, by_ranges: bool, stop: &CancelToken) -> Result<Vec<Object>> {
        let folder =
            Arc::new(TemporaryFolder::new().context("copying objects to the folder for temporary files")?);
        let copied = |(at, object): (usize, Object)| {
            if let Some(copy) = known_copy(&object) {
                return Ok(object.with_copy(copy));
            }
            // A key may hold a cell, so a copy has a number, and the end that tells the format.
            let end = Path::new(object.address().name()).extension().map(|end| end.to_string_lossy());
            let name = end.map_or_else(|| at.to_string(), |end| format!("{at}.{end}"));
            let copy = Arc::new(LocalCopy::new(&object, folder.path().join(name), Arc::clone(&folder))?);
            known().insert(object.address().to_string(), (object.clone(), Arc::downgrade(&copy)));
            Ok(object.with_copy(copy))
        };
        known().retain(|_, (_, copy)| copy.strong_count() > 0);
        let objects = objects.into_iter().enumerate().map(copied).collect::<Result<Vec<Object>>>()?;
        match by_ranges {
            true => fetch_parts(&objects, Part::Footer, stop)?,
            false => fetch(&objects, stop)?,
        }
        Ok(objects)
    }

    fn record(&self) -> Option<String> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_one_with_later(&self) -> bool {
        false
    }
}

/// The copies of the process, by their addresses: the statements of a session and the tables of a command read one.
static KNOWN: Mutex<BTreeMap<String, (Object, Weak<LocalCopy>)>> = Mutex::new(BTreeMap::new());

fn known() -> MutexGuard<'static, BTreeMap<String, (Object, Weak<LocalCopy>)>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the copy of an object of the same content that is there.
fn known_copy(object: &Object) -> Option<Arc<LocalCopy>> {
    let known = known();
    let (_, copy) = known.get(&object.address().to_string()).filter(|(same, _)| same == object)?;
    // Without a tag only length and time are known.
    copy.upgrade().filter(|_| matches!(object.pin(), Pin::Remote { e_tag: Some(_), .. }))
}

/// What has the key of an address itself.
enum Named {
    Object(Object),
    Nothing,
    /// It may not be asked.
    Denied(Error),
}

impl StoredObjects {
    pub(super) fn new(address: RemoteAddress) -> Result<Self> {
        Ok(Self { store: client(&address)?, address, record: Mutex::default() })
    }

    /// Returns the object that has the key itself. The errors have no place.
    fn named(&self, stop: &CancelToken) -> Result<Named> {
        let Self { address, store, .. } = self;
        if address.key.is_empty() || address.key.ends_with('/') {
            return Ok(Named::Nothing);
        }
        let (store, key) = (Arc::clone(store), key_of(address)?);
        let is_web = address.kind == StoreKind::Http;
        let look = async move {
            let head = store.head(&key);
            match if is_web { unless_silent(head).await } else { head.await } {
                Err(error) if !is_missing(&error) && !is_web => {
                    // A failed HEAD gives no reason, a failed GET does.
                    store.get_opts(&key, of_one_byte()).await.map(|answer| answer.meta)
                }
                found => found,
            }
        };
        match wait(stop, look)? {
            // A marker of a folder.
            Ok(meta) if meta.size == 0 && !has_extension(&address.key) => Ok(Named::Nothing),
            Ok(meta) => Ok(Named::Object(listed_object(address, meta))),
            Err(error) if is_missing(&error) => Ok(Named::Nothing),
            // Who may list a folder need not be allowed to ask for its name.
            Err(error) if is_denied(&error) => Ok(Named::Denied(of_store(&error, address))),
            Err(error) => Err(of_store(&error, address)),
        }
    }

    /// Reads a byte, because the answer to a failed HEAD gives no reason, such as that there is no bucket.
    fn first_byte(&self, stop: &CancelToken) -> Result<Result<()>> {
        if self.address.key().is_empty() {
            return Ok(Ok(()));
        }
        let (store, key) = (Arc::clone(&self.store), key_of(&self.address)?);
        let read = wait(stop, async move { store.get_opts(&key, of_one_byte()).await.map(drop) })?;
        Ok(read.map_err(|error| of_store(&error, &self.address)))
    }

    /// Lists objects in a folder and the folders in it.
    fn below(&self, folder: &str, most: usize, stop: &CancelToken) -> Result<Vec<ObjectMeta>> {
        let place = format!("input `{}`", self.address);
        let (store, prefix) = (Arc::clone(&self.store), folder_of(folder).map_err(|e| e.at(&place))?);
        let listed =
            wait(stop, async move { store.list(prefix.as_ref()).take(most).try_collect::<Vec<_>>().await })?;
        let mut listed = listed.map_err(|error| {
            let advice = match &error {
                object_store::Error::InvalidPath { .. } => {
                    "; a key below it has an empty part (`//`), `.`, `..` or a control character: name the other objects"
                }
                _ => "",
            };
            of_store(&error, &self.address).and(advice).at(place)
        })?;
        listed.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(listed)
    }

    /// Lists objects in a folder. Of a release, or of a part of one, these are what its record lists; of a folder of releases, what
    /// a run that was killed left in them is left out.
    fn released_below(&self, below: &Below<'_>, stop: &CancelToken) -> Result<Vec<ObjectMeta>> {
        /// While a release is replaced, its objects appear and disappear.
        const TRIES: usize = 3;
        let folder = self.address.with_key(below.root.to_owned());
        let mut missing = None;
        for _ in 0..TRIES {
            let mut listed = self.below(below.root, usize::MAX, stop)?;
            let has_record = listed.iter().any(|object| object.location.as_ref() == folder.join(RECORD).key);
            let own = if has_record { Some(folder.clone()) } else { folder.folder_of_release()? };
            let others = below.releases(&listed).into_iter().filter(|other| other.key() != folder.key());
            missing = None;
            for release in own.iter().cloned().chain(others) {
                let record = release.join(RECORD);
                let Some(text) = StoredFolder::open(&release)?.text(RECORD, Until::Stopped(stop))? else {
                    missing = Some(record);
                    continue;
                };
                let names = listed_by(&text.text).ok_or_else(|| {
                    let why = "is damaged, so it is not known which objects belong to the release";
                    let record = shown(&record.to_string());
                    Error::data(format!("the record {record} {why}")).coded(ErrorCode::DamagedFile)
                })?;
                let keys = names.iter().map(|name| release.join(name)).filter(|object| object.is_in(&folder));
                let keys: BTreeSet<String> = keys.map(|object| object.key).collect();
                let is_own = own.as_ref() == Some(&release);
                // A folder below a release need not be of it.
                let is_whole_of_it = is_own && !keys.is_empty();
                listed.retain(|object| {
                    let key = object.location.as_ref();
                    let is_in = is_own || release.with_key(key.to_owned()).is_in(&release);
                    keys.contains(key) || !(is_in && (is_whole_of_it || is_of_run(key)))
                });
                if listed.iter().filter(|object| keys.contains(object.location.as_ref())).count() < keys.len()
                {
                    missing = Some(record);
                }
                if is_own {
                    *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.text);
                }
            }
            if missing.is_none() {
                return Ok(listed);
            }
        }
        let record = shown(&missing.unwrap_or(folder).to_string());
        Err(Error::data(format!("objects that {record} lists are missing; `kanon verify` says more")))
    }

    /// Returns the keys that were listed, and some of what lies above, which shows whether all are part of a table of
    /// another format. Where a folder above may not be listed, nothing is known of it.
    fn with_marks_above<'a>(
        &self,
        root: &'a str,
        listed: &[ObjectMeta],
        stop: &CancelToken,
    ) -> Result<BTreeSet<String>> {
        let above = |folder: &&'a str| match folder.rsplit_once('/') {
            Some((parent, _)) => Some(parent),
            None => (!folder.is_empty()).then_some(""),
        };
        let folders = std::iter::successors(above(&root), above);
        let marks = folders.flat_map(|folder| MARKS.iter().map(move |mark| format!("{folder}/{mark}")));
        let looks: Vec<_> = marks
            .filter_map(|mark| folder_of(&mark).ok().flatten())
            .map(|mark| {
                let store = Arc::clone(&self.store);
                async move {
                    // What shows Iceberg may be the last of many names.
                    let most = if mark.as_ref().ends_with("metadata") { usize::MAX } else { 1 };
                    match store.list(Some(&mark)).take(most).try_collect::<Vec<_>>().await {
                        Err(error) if is_denied(&error) => Ok(Vec::new()),
                        found => found,
                    }
                }
            })
            .collect();
        let above = wait(stop, futures::stream::iter(looks).buffered(8).try_collect::<Vec<_>>())?;
        let above =
            above.map_err(|error| of_store(&error, &self.address).at(format!("input `{}`", self.address)))?;
        let keys = above.iter().flatten().chain(listed);
        Ok(keys.map(|meta| format!("/{}", meta.location)).collect())
    }
}

/// What is named below a folder of a store.
struct Below<'a> {
    address: &'a RemoteAddress,
    root: &'a str,
    pattern: Option<Pattern>,
}

impl Below<'_> {
    /// Returns those of the listed objects that are named: no hidden ones, no markers of folders.
    fn kept(&self, listed: Vec<ObjectMeta>, known: BTreeSet<String>) -> Result<Vec<Object>> {
        let mut checked = Checked::new(known);
        let shown = |folder: &str| format!("{}{}", self.address.root, shown(folder));
        let keys: Vec<(&str, u64)> = listed.iter().map(|meta| (meta.location.as_ref(), meta.size)).collect();
        let markers = markers(&keys);
        let mut kept = Vec::new();
        for (meta, is_marker) in listed.iter().zip(markers) {
            let key = meta.location.as_ref();
            let below = key.strip_prefix(self.root).unwrap_or(key).trim_start_matches('/');
            // A client leaves the `/` at the end of a key out: what has no bytes and no extension marks an empty folder.
            let is_marker = is_marker || meta.size == 0 && !has_extension(key);
            if is_marker || below.split('/').any(is_left_by_jobs) || !self.is_matched(key) {
                continue;
            }
            let folder = key.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("/{folder}"));
            checked.check(&folder, shown)?;
            kept.push(
                listed_object(&self.address.with_key(key.to_owned()), meta.clone())
                    .listed_below(below.to_owned()),
            );
        }
        Ok(kept)
    }

    /// Returns the folders of the listed records beside which objects of releases are named.
    fn releases(&self, listed: &[ObjectMeta]) -> Vec<RemoteAddress> {
        let is_record = |object: &&ObjectMeta| object.location.filename() == Some(RECORD);
        let folder = |object: &ObjectMeta| {
            let key = object.location.as_ref().strip_suffix(RECORD).unwrap_or_default();
            self.address.with_key(key.trim_end_matches('/').to_owned())
        };
        let has_named = |release: &RemoteAddress| {
            let mut keys = listed.iter().map(|object| object.location.as_ref());
            keys.any(|key| {
                is_of_run(key) && self.is_matched(key) && release.with_key(key.to_owned()).is_in(release)
            })
        };
        listed.iter().filter(is_record).map(folder).filter(has_named).collect()
    }

    /// Returns whether a key, or a folder that it lies in, is as the pattern says.
    fn is_matched(&self, key: &str) -> bool {
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::default() };
        let Some(pattern) = &self.pattern else { return true };
        let folders = key.match_indices('/').map(|(at, _)| &key[..at]);
        let itself = Some(key).filter(|_| !self.address.key.ends_with('/'));
        folders.chain(itself).any(|part| pattern.matches_with(part, options))
    }
}

impl RemoteAddress {
    /// Returns whether a folder above holds a release, as far as that may be asked.
    ///
    /// # Errors
    /// A data error if the store fails.
    #[doc(hidden)]
    pub fn is_in_release(&self) -> Result<bool> {
        for above in self.folders_above() {
            if above.holds(RECORD)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the release above this folder, if it may be one of its folders.
    fn folder_of_release(&self) -> Result<Option<Self>> {
        for above in self.folders_above() {
            if above.holds(RECORD)? {
                return Ok(Some(above));
            }
            if !above.key().rsplit('/').next().is_some_and(is_partition_name) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Returns whether a folder of a store has an object of a name; not of a glob or a web server, which have no such folders.
    ///
    /// # Errors
    /// A data error if its store fails.
    #[doc(hidden)]
    pub fn holds(&self, name: &str) -> Result<bool> {
        let has_folders = self.kind != StoreKind::Http && !has_wildcard(&self.key);
        if has_folders { self.join(name).exists() } else { Ok(false) }
    }

    /// Returns whether there is an object at the address.
    ///
    /// # Errors
    /// A data error if its store fails.
    #[doc(hidden)]
    pub fn exists(&self) -> Result<bool> {
        let (store, key) = (client(self)?, key_of(self).map_err(|error| error.at(self))?);
        // Not HEAD, whose failures give no reason. The content is not read.
        let asked = async move { store.get_opts(&key, GetOptions::default()).await.map(drop) };
        match wait(&CancelToken::default(), asked)? {
            Ok(()) => Ok(true),
            // Who may write need not be allowed to ask.
            Err(error) if is_missing(&error) || is_denied(&error) => Ok(false),
            Err(error) => Err(of_store(&error, self).at(self)),
        }
    }

    /// Returns whether INPUT at this address, a folder or a glob, reads what lies at another address.
    pub(crate) fn reaches(&self, other: &Self) -> bool {
        match self.key.find(['*', '?', '[']).map(|_| Pattern::new(self.key())) {
            None => other.is_in(self),
            // It names nothing.
            Some(Err(_)) => false,
            Some(Ok(pattern)) => {
                let below = Below { address: self, root: "", pattern: Some(pattern) };
                other.is_in(&self.with_key(String::new())) && below.is_matched(other.key())
            }
        }
    }
}

fn of_one_byte() -> GetOptions {
    GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() }
}

fn has_extension(key: &str) -> bool {
    key.rsplit('/').next().is_some_and(|name| name.contains('.'))
}

pub(super) fn listed_object(address: &RemoteAddress, meta: ObjectMeta) -> Object {
    let pin = Pin::Remote { e_tag: meta.e_tag.map(Tag), version: meta.version, modified: meta.last_modified };
    Object::of_store(Address::Remote(address.clone()), meta.size, pin)
}

pub(super) fn key_of(address: &RemoteAddress) -> Result<Key> {
    Key::parse(&address.key).map_err(|_| bad_key())
}

fn folder_of(key: &str) -> Result<Option<Key>> {
    let key = key.trim_matches('/');
    (!key.is_empty()).then(|| Key::parse(key).map_err(|_| bad_key())).transpose()
}

fn bad_key() -> Error {
    Error::data(
        "its key has an empty part (`//`), `.`, `..` or a control character, which cannot be read; rename it",
    )
}

/// Fetches objects whole.
///
/// # Errors
/// A data error for an object that has changed, or that cannot be read; the error of a stopped run.
pub(crate) fn fetch(objects: &[Object], stop: &CancelToken) -> Result<()> {
    fetch_parts(objects, Part::Whole, stop)
}

/// What is fetched of each object.
#[derive(Clone, Copy)]
enum Part {
    Footer,
    Whole,
}

fn fetch_parts(objects: &[Object], part: Part, stop: &CancelToken) -> Result<()> {
    let copied = |object: &Object| Some((Arc::clone(object.copy()?), object.clone()));
    let fetched = objects.iter().filter_map(copied).map(|(copy, object)| async move {
        match part {
            Part::Footer => copy.fetch_footer(&object).await,
            Part::Whole => copy.fetch(&object, 0..object.bytes()).await,
        }
    });
    let fetched: Vec<_> = fetched.collect();
    if fetched.is_empty() {
        return Ok(());
    }
    let at_once = match part {
        Part::Footer => FOOTERS,
        Part::Whole => COPIES,
    };
    wait(stop, futures::stream::iter(fetched).buffered(at_once).try_collect::<Vec<()>>())?.map(drop)
}

/// Finds and copies one object.
///
/// # Errors
/// A data error if it is not there or cannot be read; the place is not added.
pub(super) fn copied(address: &RemoteAddress, stop: &CancelToken) -> Result<Object> {
    let objects = StoredObjects::new(address.clone())?;
    let missing = || Error::data("no such object").coded(ErrorCode::NotFound);
    let object = match objects.named(stop)? {
        Named::Object(object) => object,
        Named::Nothing => return Err(objects.first_byte(stop)?.err().unwrap_or_else(missing)),
        Named::Denied(error) => return Err(error),
    };
    objects.readable(vec![object], false, stop)?.pop().ok_or_else(missing)
}
