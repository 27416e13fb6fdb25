//! A folder of a store in which a release lies or will lie: its objects listed, read, and written under conditions.

use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::ready;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{
    Error as StoreError, GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode,
    PutMultipartOptions, PutPayload, UpdateVersion,
};
use sha2::{Digest, Sha256};

use super::address::{RemoteAddress, StoreKind};
use super::io::stopped;
pub(crate) use super::io::{Until, with_each};
use super::object::Tag;
use super::partitions::shown;
use super::stores::{client, client_without_retries};
use super::words::{is_missing, is_refused, of_store};
use crate::engine::{Context, into_store};
use crate::error::{Error, ErrorCode, Result};
use crate::progress::CancelToken;

/// The bytes that are written or read by one request.
const PIECE: usize = 8 << 20;
/// The most pieces of an object: stores take 10,000.
const MOST_PIECES: u64 = 9_999;
/// The pieces of a file that are written at the same time.
const PIECES: usize = 2;

const READING: &str = "reading the release";

/// The most time for a file.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest text that is read.
const LONGEST_TEXT: u64 = 256 << 20;

/// A folder of a store. Its objects are named by what follows the folder in their keys.
#[derive(Clone)]
pub(crate) struct StoredFolder {
    /// Its key has no `/` at its end.
    address: RemoteAddress,
    store: Arc<dyn ObjectStore>,
    /// The same store by a client that repeats no request.
    once: Arc<dyn ObjectStore>,
}

/// An object of a folder as it is listed.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) modified: DateTime<Utc>,
}

/// A text, as it was read.
#[derive(Debug, Clone)]
pub(crate) struct StoredText {
    pub(crate) text: String,
    version: UpdateVersion,
}

impl StoredText {
    /// Returns whether nothing was written since `other` was read.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let tag = |text: &Self| text.version.e_tag.clone().map(Tag);
        (&self.text, tag(self)) == (&other.text, tag(other))
    }
}

/// A single request that failed.
pub(crate) struct Failed {
    pub(crate) error: Error,
    /// Whether the store refused it, so that nothing was done and nothing will be.
    pub(crate) is_refused: bool,
}

impl StoredFolder {
    /// Opens a folder.
    ///
    /// # Errors
    /// A policy error for a web server, which is only read; a data error if no client of the store can be made.
    pub(crate) fn open(address: &RemoteAddress) -> Result<Self> {
        if address.kind == StoreKind::Http {
            let why =
                "is on a web server, which is only read; name a folder of s3, az, abfss or gs, or a path";
            return Err(Error::policy(why).coded(ErrorCode::Address).at(address));
        }
        let address = address.trimmed();
        let (store, once) = (client(&address)?, client_without_retries(&address)?);
        Ok(Self { address, store, once })
    }

    /// Returns the folder of an object, and the name of the object in it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn holding(address: &RemoteAddress) -> Result<(Self, String)> {
        let (folder, name) = address.key.rsplit_once('/').unwrap_or(("", &address.key));
        Ok((Self::open(&address.with_key(folder.to_owned()))?, name.to_owned()))
    }

    /// Returns the address of an object.
    pub(crate) fn address_of(&self, name: &str) -> RemoteAddress {
        self.address.join(name)
    }

    /// Returns the address of an object without values of columns, for errors.
    pub(crate) fn shown(&self, name: &str) -> String {
        shown(&self.address_of(name).to_string())
    }

    fn key_of(&self, name: &str) -> Result<Key> {
        let address = self.address_of(name);
        super::remote::key_of(&address).map_err(|error| error.at(self.shown(name)))
    }

    fn failed(&self, name: &str, error: &object_store::Error) -> Error {
        let address = self.address_of(name);
        of_store(error, &address).at(self.shown(name))
    }

    /// Lists the objects, but for markers of folders.
    ///
    /// # Errors
    /// A data error if they cannot be listed.
    pub(crate) fn list(&self, until: Until<'_>) -> Result<Vec<Listed>> {
        let (store, key) = (Arc::clone(&self.store), self.key_of("")?);
        let listed = until.wait(async move { store.list(Some(&key)).try_collect::<Vec<_>>().await })?;
        let listed = listed.map_err(|error| self.failed("", &error))?;
        let name = |key: &Key| {
            let below = key.as_ref().strip_prefix(&self.address.key).unwrap_or(key.as_ref());
            below.trim_start_matches('/').to_owned()
        };
        let all = listed.into_iter().map(|meta| Listed {
            name: name(&meta.location),
            bytes: meta.size,
            modified: meta.last_modified,
        });
        Ok(all.filter(|object| object.bytes > 0 || object.name.contains('.')).collect())
    }

    /// Lists the names of the folders in it.
    ///
    /// # Errors
    /// A data error if they cannot be listed.
    pub(crate) fn folders(&self, until: Until<'_>) -> Result<Vec<String>> {
        let (store, key) = (Arc::clone(&self.store), self.key_of("")?);
        let listed = until.wait(async move { store.list_with_delimiter(Some(&key)).await })?;
        let listed = listed.map_err(|error| self.failed("", &error))?;
        let names = listed.common_prefixes.iter().filter_map(|key| key.filename().map(str::to_owned));
        Ok(names.collect())
    }

    /// Reads a text with what is needed to replace it; `None` if it is not there.
    ///
    /// # Errors
    /// A data error if it cannot be read, or if it is far too long.
    pub(crate) fn text(&self, name: &str, until: Until<'_>) -> Result<Option<StoredText>> {
        self.read_text(&self.store, name, until).map_err(|failed| failed.error)
    }

    /// Reads a text by one request, like [`text`](Self::text).
    pub(crate) fn text_once(
        &self,
        name: &str,
        until: Until<'_>,
    ) -> std::result::Result<Option<StoredText>, Failed> {
        self.read_text(&self.once, name, until)
    }

    fn read_text(
        &self,
        store: &Arc<dyn ObjectStore>,
        name: &str,
        until: Until<'_>,
    ) -> std::result::Result<Option<StoredText>, Failed> {
        let unknown = |error| Failed { error, is_refused: false };
        let (store, key) = (Arc::clone(store), self.key_of(name).map_err(unknown)?);
        let read = until.wait(async move {
            let answer = store.get(&key).await?;
            if answer.meta.size > LONGEST_TEXT {
                return Err(into_store(Error::data("it is too long for a record")));
            }
            let version =
                UpdateVersion { e_tag: answer.meta.e_tag.clone(), version: answer.meta.version.clone() };
            let text = String::from_utf8_lossy(&answer.bytes().await?).into_owned();
            Ok(StoredText { text, version })
        });
        match read.map_err(unknown)? {
            Ok(text) => Ok(Some(text)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(Failed { error: self.failed(name, &error), is_refused: is_refused(&error) }),
        }
    }

    /// Writes a text by one request, if nothing is there, or what it `replaces` is as it was read.
    pub(crate) fn write_text(
        &self,
        name: &str,
        text: &str,
        replaces: Option<&StoredText>,
        until: Until<'_>,
    ) -> std::result::Result<(), Failed> {
        let unknown = |error| Failed { error, is_refused: false };
        let (store, key) = (Arc::clone(&self.once), self.key_of(name).map_err(unknown)?);
        let mode = replaces.map_or(PutMode::Create, |there| PutMode::Update(there.version.clone()));
        let payload = PutPayload::from(text.to_owned());
        let written = until.wait(async move { store.put_opts(&key, payload, mode.into()).await });
        written
            .map_err(unknown)?
            .map(drop)
            .map_err(|error| Failed { error: self.failed(name, &error), is_refused: is_refused(&error) })
    }

    /// Writes a file to a name that only this run writes. What was begun is ended when the run is stopped, so that nothing
    /// arrives later.
    ///
    /// # Errors
    /// A data error if the file or its store fails, the error of a stopped run; something may be there.
    pub(crate) fn write_file(&self, name: &str, path: &Path, stop: &CancelToken) -> Result<()> {
        let (store, key) = (Arc::clone(&self.store), self.key_of(name)?);
        let mut file = File::open(path).context(READING)?;
        let bytes = file.metadata().context(READING)?.len();
        let stop = stop.clone();
        let written = Until::Passed(LONGEST).wait(async move {
            if bytes <= PIECE as u64 {
                let mut whole = Vec::new();
                file.read_to_end(&mut whole).context(READING).map_err(into_store)?;
                return match store.put_opts(&key, whole.into(), PutMode::Create.into()).await {
                    // An earlier try of the client wrote it.
                    Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => Ok(()),
                    written => written.map(drop),
                };
            }
            let mut upload = store.put_multipart_opts(&key, PutMultipartOptions::default()).await?;
            let piece = (PIECE as u64).max(bytes.div_ceil(MOST_PIECES));
            if let Err(error) = send(&mut *upload, &mut file, piece, &stop).await {
                // The store keeps what cannot be given up.
                let _ = upload.abort().await;
                return Err(error);
            }
            Ok(())
        })?;
        written.map_err(|error| self.failed(name, &error))
    }

    /// Returns whether the store refuses to write a file again where it is, as the condition says. Larger files are written
    /// without conditions: of them nothing is known.
    ///
    /// # Errors
    /// A data error if the file cannot be read.
    pub(crate) fn is_conditional(&self, name: &str, path: &Path, until: Until<'_>) -> Result<bool> {
        if std::fs::metadata(path).context(READING)?.len() > PIECE as u64 {
            return Ok(true);
        }
        let whole = std::fs::read(path).context(READING)?;
        let (store, key) = (Arc::clone(&self.once), self.key_of(name)?);
        let again =
            until.wait(async move { store.put_opts(&key, whole.into(), PutMode::Create.into()).await })?;
        Ok(again.is_err())
    }

    /// Returns whether an object has this length and this SHA-256.
    ///
    /// # Errors
    /// A data error if it cannot be read.
    pub(crate) fn holds(&self, name: &str, bytes: u64, sha256: &str, until: Until<'_>) -> Result<bool> {
        let digest = self.read(name, bytes, Sha256::new(), until, |digest, piece| {
            digest.update(piece);
            Ok(())
        })?;
        let hex =
            |digest: Sha256| digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Ok(digest.is_some_and(|digest| hex(digest) == sha256))
    }

    /// Copies an object of this length to a new file; returns whether it has this length.
    ///
    /// # Errors
    /// A data error if it cannot be read or written.
    pub(crate) fn copy(&self, name: &str, bytes: u64, to: &Path, stop: &CancelToken) -> Result<bool> {
        const DOING: &str = "copying an object to the folder for temporary files";
        let file = File::create_new(to).context(DOING)?;
        let copied = self.read(name, bytes, file, Until::Stopped(stop), |file, piece| {
            file.write_all(piece).context(DOING).map_err(into_store)
        })?;
        Ok(copied.is_some())
    }

    /// Reads an object of this length in pieces into a sink; `None` if it has another length.
    fn read<S: Send + 'static>(
        &self,
        name: &str,
        bytes: u64,
        mut sink: S,
        until: Until<'_>,
        take: impl Fn(&mut S, &[u8]) -> object_store::Result<()> + Send + 'static,
    ) -> Result<Option<S>> {
        let (store, key) = (Arc::clone(&self.store), self.key_of(name)?);
        let kind = self.address.kind;
        let read = until.wait(async move {
            let (mut tag, mut at) = (None::<Tag>, 0);
            while at < bytes {
                let end = bytes.min(at + PIECE as u64);
                let options = GetOptions {
                    range: Some(GetRange::Bounded(at..end)),
                    if_match: tag.as_ref().filter(|tag| !tag.is_weak()).map(|tag| kind.condition(tag)),
                    ..GetOptions::default()
                };
                let answer = store.get_opts(&key, options).await?;
                if answer.meta.size != bytes {
                    return Ok(None);
                }
                tag = answer.meta.e_tag.clone().map(Tag);
                let piece = answer.bytes().await?;
                if piece.len() as u64 != end - at {
                    return Err(into_store(Error::data("the store gave no whole answer")));
                }
                take(&mut sink, &piece)?;
                at = end;
            }
            Ok(Some(sink))
        })?;
        read.map_err(|error| self.failed(name, &error))
    }

    /// Removes objects, which need not be there; returns how many could not be removed.
    pub(crate) fn remove_all(&self, names: &[String], until: Until<'_>) -> usize {
        let Ok(keys) = names.iter().map(|name| self.key_of(name)).collect::<Result<Vec<_>>>() else {
            return names.len();
        };
        let store = Arc::clone(&self.store);
        let removed = until.wait(async move {
            let answers = store.delete_stream(futures::stream::iter(keys.into_iter().map(Ok)).boxed());
            let is_gone = |answer: &object_store::Result<Key>| match answer {
                Ok(_) => true,
                Err(error) => is_missing(error),
            };
            Ok(answers.filter(|answer| ready(is_gone(answer))).count().await)
        });
        names.len() - removed.ok().and_then(std::result::Result::ok).unwrap_or(0).min(names.len())
    }

    /// Removes an object, which need not be there.
    ///
    /// # Errors
    /// A data error if its store fails.
    pub(crate) fn remove(&self, name: &str, until: Until<'_>) -> Result<()> {
        let (store, key) = (Arc::clone(&self.store), self.key_of(name)?);
        match until.wait(async move { store.delete(&key).await })? {
            Err(error) if !is_missing(&error) => Err(self.failed(name, &error)),
            _ => Ok(()),
        }
    }
}

/// Sends a file in pieces.
async fn send(
    upload: &mut dyn MultipartUpload,
    file: &mut File,
    bytes: u64,
    stop: &CancelToken,
) -> object_store::Result<()> {
    let mut is_whole = false;
    while !is_whole {
        stopped(stop).map_err(into_store)?;
        let mut pieces = Vec::new();
        while pieces.len() < PIECES && !is_whole {
            let mut piece = Vec::new();
            Read::take(&mut *file, bytes).read_to_end(&mut piece).context(READING).map_err(into_store)?;
            is_whole = (piece.len() as u64) < bytes;
            if !piece.is_empty() {
                pieces.push(upload.put_part(piece.into()));
            }
        }
        // All of them end, also where one fails.
        futures::future::join_all(pieces).await.into_iter().collect::<object_store::Result<()>>()?;
    }
    upload.complete().await.map(drop)
}

impl fmt::Debug for StoredFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)
    }
}

impl fmt::Display for StoredFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)
    }
}
