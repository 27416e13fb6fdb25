//! Local copies of objects. A copy starts empty and keeps each block that is read, so no block that it holds is fetched again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::parquet::file::metadata::FooterTail;
use futures::{StreamExt, TryStreamExt};
use object_store::{GetOptions, GetRange, GetResult, ObjectStore};

use super::address::{Address, RemoteAddress, StoreKind};
use super::io::unless_silent;
use super::object::{Object, Pin};
use super::remote::{key_of, listed_object};
use super::stores::client;
use super::words::of_store;
use crate::engine::temporary::TemporaryFolder;
use crate::engine::{Context, into_store};
use crate::error::{Error, Result};

/// The bytes that are there or not there together.
const BLOCK: u64 = 256 << 10;
/// The bytes of one request, about.
const PIECE: u64 = 8 << 20;
/// The requests for pieces of one object at the same time.
const PIECES: usize = 2;

const DOING: &str = "copying an object to the folder for temporary files";

/// The copy of an object, a file of a folder of the process.
#[derive(Debug)]
pub(super) struct LocalCopy {
    path: PathBuf,
    /// For each block whether it is there.
    blocks: Mutex<Vec<bool>>,
    _folder: Arc<TemporaryFolder>,
}

impl LocalCopy {
    /// Makes the file of a copy, which has the length of the object and nothing of it.
    ///
    /// # Errors
    /// A data error if it cannot be made.
    pub(super) fn new(object: &Object, path: PathBuf, folder: Arc<TemporaryFolder>) -> Result<Self> {
        File::create_new(&path).and_then(|file| file.set_len(object.bytes())).context(DOING)?;
        let blocks = usize::try_from(object.bytes().div_ceil(BLOCK))
            .map_err(|_| Error::data("it is too large").at(DOING))?;
        Ok(Self { path, blocks: Mutex::new(vec![false; blocks]), _folder: folder })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn blocks(&self) -> MutexGuard<'_, Vec<bool>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what of a range is not there, in pieces of whole blocks.
    fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let (blocks, mut missing) = (self.blocks(), Vec::<Range<u64>>::new());
        for at in range.start / BLOCK..range.end.div_ceil(BLOCK) {
            let is_there = usize::try_from(at).ok().and_then(|at| blocks.get(at)).is_none_or(|there| *there);
            match missing.last_mut() {
                _ if is_there => {}
                Some(last) if last.end == at * BLOCK && last.end - last.start < PIECE => last.end += BLOCK,
                _ => missing.push(at * BLOCK..(at + 1) * BLOCK),
            }
        }
        missing
    }

    fn write(&self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        file.seek(SeekFrom::Start(start))?;
        file.write_all(bytes)
    }

    /// Fetches what of a range of the object is not there. Wait for it on the runtime of stores.
    ///
    /// # Errors
    /// A data error that names the object if it has changed, if its store fails, or if the disk does.
    pub(super) async fn fetch(&self, object: &Object, range: Range<u64>) -> Result<()> {
        let Address::Remote(address) = object.address() else {
            return Err(Error::internal("store: a file is no object of a store"));
        };
        let failed = |error: &object_store::Error| of_store(error, address).at(object.place());
        let missing = self.missing(range.start..range.end.min(object.bytes()));
        if address.kind == StoreKind::Http && !missing.is_empty() {
            return self.fetch_all(object, address).await;
        }
        let pieces = missing.into_iter().map(|piece| async move {
            let end = piece.end.min(object.bytes());
            let answer = read(object, Some(GetRange::Bounded(piece.start..end)))
                .await
                .map_err(|error| failed(&error))?;
            let bytes = answer.bytes().await.map_err(|error| failed(&error))?;
            if bytes.len() as u64 != end - piece.start {
                return Err(changed().at(object.place()));
            }
            self.write(piece.start, &bytes).context(DOING)?;
            let mut blocks = self.blocks();
            for at in piece.start / BLOCK..end.div_ceil(BLOCK) {
                if let Some(block) = usize::try_from(at).ok().and_then(|at| blocks.get_mut(at)) {
                    *block = true;
                }
            }
            Ok(())
        });
        let pieces: Vec<_> = pieces.collect();
        futures::stream::iter(pieces).buffered(PIECES).try_collect::<Vec<()>>().await.map(drop)
    }

    /// Fetches the footer of a Parquet file, as far as it is one.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    pub(super) async fn fetch_footer(&self, object: &Object) -> Result<()> {
        const TAIL: u64 = 8;
        let Some(end) = object.bytes().checked_sub(TAIL) else {
            return self.fetch(object, 0..object.bytes()).await;
        };
        self.fetch(object, end..object.bytes()).await?;
        let mut tail = [0; 8];
        let mut file = File::open(&self.path).context(DOING)?;
        file.seek(SeekFrom::Start(end)).and_then(|_| file.read_exact(&mut tail)).context(DOING)?;
        let Ok(tail) = FooterTail::try_new(&tail) else { return Ok(()) };
        let start = end.saturating_sub(tail.metadata_length() as u64);
        self.fetch(object, start..object.bytes()).await
    }

    /// Fetches an object in one answer: some web servers know no ranges.
    async fn fetch_all(&self, object: &Object, address: &RemoteAddress) -> Result<()> {
        let failed = |error: &object_store::Error| of_store(error, address).at(object.place());
        let answer = unless_silent(read(object, None)).await;
        let mut answer = answer.map_err(|error| failed(&error))?.into_stream();
        let mut at = 0;
        while let Some(bytes) = unless_silent(answer.try_next()).await.map_err(|error| failed(&error))? {
            self.write(at, &bytes).context(DOING)?;
            at += bytes.len() as u64;
            if at > object.bytes() {
                return Err(changed().at(object.place()));
            }
        }
        if at != object.bytes() {
            return Err(changed().at(object.place()));
        }
        self.blocks().fill(true);
        Ok(())
    }
}

/// Reads bytes of an object, if it is as it was listed.
///
/// # Errors
/// Those of the store; ours within one for an object that has changed.
async fn read(object: &Object, range: Option<GetRange>) -> object_store::Result<GetResult> {
    let (Address::Remote(address), Pin::Remote { e_tag, version, .. }) = (object.address(), object.pin())
    else {
        return Err(into_store(Error::internal("store: a file is no object of a store")));
    };
    let (store, key) = (client(address).map_err(into_store)?, key_of(address).map_err(into_store)?);
    let options = GetOptions {
        // A weak tag is the same for no condition.
        if_match: e_tag.as_ref().filter(|tag| !tag.is_weak()).map(|tag| address.kind.condition(tag)),
        version: version.clone(),
        range,
        ..GetOptions::default()
    };
    let answer = store.get_opts(&key, options).await?;
    // Some servers know no conditions.
    if listed_object(address, answer.meta.clone()) != *object {
        return Err(into_store(changed()));
    }
    Ok(answer)
}

fn changed() -> Error {
    Error::data("it changed since it was listed")
}
