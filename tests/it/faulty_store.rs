//! An object store in memory, for tests: a log of the calls, faults on demand, and another writer in between.
//!
//! Calls are numbered from 0 in the order in which they are made. Where `InMemory` differs from the stores it
//! stands for, this store does as they do: the answer to a `head` carries no bytes, and an upload that has
//! ended, or lacks a part, cannot be completed.
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(dead_code, reason = "not every test of releases in a store needs all of it")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _, TryFutureExt as _};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, UploadPart,
};

/// What the store is called in its errors.
const NAME: &str = "FaultyStore";

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Does nothing, and answers that the connection broke.
    Fail,
    /// Does nothing, and answers `PermissionDenied`.
    FailDenied,
    /// Gives half of the bytes or of the listed entries, and then an error. A `head` has nothing to cut;
    /// every other call is as with `Fail`.
    Cut,
    /// Waits, and is an ordinary call then.
    Wait(Duration),
    /// Acts, and answers that the connection broke.
    ActThenFail,
    /// Acts, and answers `AlreadyExists` to a put; every other call is as with `ActThenFail`.
    ActThenAlreadyExists,
    /// Does nothing, and answers `NotFound`.
    Gone,
}

/// One call of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// `put`, `multipart`, `put_part`, `complete`, `abort`, `get`, `head`, `delete`, `list`,
    /// `list_with_delimiter` or `copy`.
    pub(crate) kind: &'static str,
    /// The object, for a copy the new one; the prefix of a list.
    pub(crate) path: String,
}

/// What another writer does to the content.
pub(crate) type Change = Box<dyn FnOnce(Arc<InMemory>) -> BoxFuture<'static, ()> + Send>;

/// The store. Clones share everything.
#[derive(Clone)]
pub(crate) struct FaultyStore {
    memory: Arc<InMemory>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    made: usize,
    faults: BTreeMap<usize, Fault>,
    /// From this call on, each call without a fault of its own meets this one.
    fault_from: Option<(usize, Fault)>,
    changes: BTreeMap<usize, Change>,
    ignores_conditions: bool,
    open_uploads: usize,
}

impl FaultyStore {
    /// An empty store without faults.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { memory: Arc::default(), state: Arc::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Every call so far, in the order in which they were made.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Forgets the calls so far.
    pub(crate) fn clear_calls(&self) {
        self.state().calls.clear();
    }

    /// Lets the `nth` call from now on go wrong; 0 is the next one.
    pub(crate) fn fault(&self, nth: usize, fault: Fault) {
        let state = &mut *self.state();
        state.faults.insert(state.made + nth, fault);
    }

    /// Lets the `nth` call from now on and every later one go wrong, as if the network were gone.
    pub(crate) fn fault_from(&self, nth: usize, fault: Fault) {
        let state = &mut *self.state();
        state.fault_from = Some((state.made + nth, fault));
    }

    /// Takes back every fault that no call has met yet.
    pub(crate) fn no_faults(&self) {
        let state = &mut *self.state();
        state.faults.clear();
        state.fault_from = None;
    }

    /// Changes the content just before the `nth` call from now on acts or fails; 0 is the next one.
    pub(crate) fn before(&self, nth: usize, change: Change) {
        let state = &mut *self.state();
        state.changes.insert(state.made + nth, change);
    }

    /// From now on puts overwrite, whatever their mode, as in a store that does not know conditions.
    pub(crate) fn ignore_conditions(&self) {
        self.state().ignores_conditions = true;
    }

    /// The content of every object, by its path.
    pub(crate) fn objects(&self) -> BTreeMap<String, Bytes> {
        let objects = self.memory.list(None).then(async |listed| {
            let path = listed.unwrap().location;
            let bytes = self.memory.get(&path).await.unwrap().bytes().await.unwrap();
            (path.to_string(), bytes)
        });
        now(objects.collect())
    }

    /// Writes an object; this is no call.
    pub(crate) fn put_now(&self, key: &str, bytes: impl Into<PutPayload>) {
        now(self.memory.put(&Path::parse(key).unwrap(), bytes.into())).unwrap();
    }

    /// Removes an object, if it is there; this is no call.
    pub(crate) fn remove_now(&self, key: &str) {
        now(self.memory.delete(&Path::parse(key).unwrap())).unwrap();
    }

    /// The number of multipart uploads that are neither completed nor aborted.
    pub(crate) fn open_uploads(&self) -> usize {
        self.state().open_uploads
    }

    /// Numbers and logs a call.
    fn arrive(&self, kind: &'static str, path: &Path) -> Arrived {
        let state = &mut *self.state();
        let number = state.made;
        state.made += 1;
        state.calls.push(Call { kind, path: path.to_string() });
        let later = state.fault_from.filter(|(from, _)| *from <= number).map(|(_, fault)| fault);
        Arrived {
            memory: Arc::clone(&self.memory),
            kind,
            path: path.to_string(),
            fault: state.faults.remove(&number).or(later),
            change: state.changes.remove(&number),
        }
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

/// What `InMemory` answers: it never waits.
fn now<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().unwrap()
}

fn broken() -> Error {
    Error::Generic { store: NAME, source: "error sending request: connection closed".into() }
}

fn not_found(path: impl fmt::Display) -> Error {
    Error::NotFound { path: path.to_string(), source: "said by the test store".into() }
}

/// A call that has its number, and what is to happen to it.
struct Arrived {
    memory: Arc<InMemory>,
    kind: &'static str,
    path: String,
    fault: Option<Fault>,
    change: Option<Change>,
}

impl Arrived {
    /// Whether the answer is to be cut; if so, the call acts.
    fn take_cut(&mut self) -> bool {
        self.fault.take_if(|fault| *fault == Fault::Cut).is_some()
    }

    /// Waits, lets the other writer come first, and acts and answers as the fault allows.
    async fn meet<T>(self, act: impl Future<Output = Result<T>>) -> Result<T> {
        if let Some(Fault::Wait(time)) = self.fault {
            tokio::time::sleep(time).await;
        }
        if let Some(change) = self.change {
            change(self.memory).await;
        }
        let (path, source) = (self.path, "said by the test store".into());
        match self.fault {
            None | Some(Fault::Wait(_)) => act.await,
            Some(Fault::Fail | Fault::Cut) => Err(broken()),
            Some(Fault::FailDenied) => Err(Error::PermissionDenied { path, source }),
            Some(Fault::Gone) => Err(not_found(path)),
            Some(Fault::ActThenAlreadyExists) if self.kind == "put" => {
                drop(act.await);
                Err(Error::AlreadyExists { path, source })
            }
            Some(Fault::ActThenFail | Fault::ActThenAlreadyExists) => {
                drop(act.await);
                Err(broken())
            }
        }
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        let arrived = self.arrive("put", location);
        if self.state().ignores_conditions {
            options.mode = PutMode::Overwrite;
        }
        arrived.meet(self.memory.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let begin = async {
            self.state().open_uploads += 1;
            Ok(())
        };
        self.arrive("multipart", location).meet(begin).await?;
        Ok(Box::new(Upload {
            store: self.clone(),
            location: location.clone(),
            attributes: options.attributes,
            begun: 0,
            parts: Arc::new(Mutex::new(Some(BTreeMap::new()))),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_head = options.head;
        let mut arrived = self.arrive(if is_head { "head" } else { "get" }, location);
        let is_cut = arrived.take_cut();
        let answer = arrived.meet(self.memory.get_opts(location, options)).await?;
        if !is_head && !is_cut {
            return Ok(answer);
        }
        let (meta, range, attributes) =
            (answer.meta.clone(), answer.range.clone(), answer.attributes.clone());
        let chunks = if is_head {
            vec![]
        } else {
            let whole = answer.bytes().await?;
            vec![Ok(whole.slice(..whole.len() / 2)), Err(broken())]
        };
        let payload = GetResultPayload::Stream(stream::iter(chunks).boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let delete = move |location: Result<Path>| {
            let store = store.clone();
            async move {
                let location = location?;
                let arrived = store.arrive("delete", &location);
                arrived.meet(store.memory.delete(&location)).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let prefix = prefix.cloned().unwrap_or_default();
        let mut arrived = self.arrive("list", &prefix);
        let is_cut = arrived.take_cut();
        let memory = Arc::clone(&self.memory);
        let list = async move {
            let mut entries: Vec<_> = memory.list(Some(&prefix)).collect().await;
            if is_cut {
                entries.truncate(entries.len() / 2);
                entries.push(Err(broken()));
            }
            Ok(stream::iter(entries))
        };
        arrived.meet(list).try_flatten_stream().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = prefix.cloned().unwrap_or_default();
        let arrived = self.arrive("list_with_delimiter", &prefix);
        arrived.meet(self.memory.list_with_delimiter(Some(&prefix))).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.arrive("copy", to).meet(self.memory.copy_opts(from, to, options)).await
    }
}

/// A multipart upload. As in a store, it stays open if it is dropped.
struct Upload {
    store: FaultyStore,
    location: Path,
    attributes: Attributes,
    begun: usize,
    /// The parts that have arrived; `None` at the end of the upload.
    parts: Arc<Mutex<Option<BTreeMap<usize, PutPayload>>>>,
}

impl Upload {
    /// Ends the upload if it has `count` parts, and gives them out.
    fn end(&self, count: usize) -> Result<BTreeMap<usize, PutPayload>> {
        let parts = &mut *self.parts.lock().unwrap();
        if parts.as_ref().is_some_and(|parts| parts.len() < count) {
            return Err(Error::Generic { store: NAME, source: "Missing part".into() });
        }
        let ended = parts.take().ok_or_else(|| not_found(&self.location))?;
        self.store.state().open_uploads -= 1;
        Ok(ended)
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload({})", self.location)
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (number, path, parts) = (self.begun, self.location.clone(), Arc::clone(&self.parts));
        self.begun += 1;
        let put = async move {
            let parts = &mut *parts.lock().unwrap();
            parts.as_mut().ok_or_else(|| not_found(path))?.insert(number, data);
            Ok(())
        };
        self.store.arrive("put_part", &self.location).meet(put).boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let complete = async {
            let payload = self.end(self.begun)?.into_values().flatten().collect();
            let options = PutOptions::from(self.attributes.clone());
            self.store.memory.put_opts(&self.location, payload, options).await
        };
        self.store.arrive("complete", &self.location).meet(complete).await
    }

    async fn abort(&mut self) -> Result<()> {
        let abort = async { self.end(0).map(drop) };
        self.store.arrive("abort", &self.location).meet(abort).await
    }
}

#[tokio::test]
async fn the_nth_call_goes_wrong_and_may_have_acted() {
    let store = FaultyStore::new();
    store.fault(1, Fault::ActThenFail);
    store.fault(2, Fault::Fail);
    let [a, b, c] = ["a", "b", "c"].map(Path::from);
    store.put(&a, "1".into()).await.unwrap();
    assert!(matches!(store.put(&b, "2".into()).await, Err(Error::Generic { .. })));
    assert!(matches!(store.put(&c, "3".into()).await, Err(Error::Generic { .. })));
    assert_eq!(store.objects().into_keys().collect::<Vec<_>>(), ["a", "b"]);
    let calls = ["a", "b", "c"].map(|path| Call { kind: "put", path: path.to_owned() });
    assert_eq!(store.calls(), calls);
}

#[tokio::test]
async fn a_cut_read_gives_half_and_an_error() {
    let store = FaultyStore::new();
    store.put_now("a", "12345678");
    store.put_now("b", "");
    store.fault(0, Fault::Cut);
    store.fault(1, Fault::Cut);
    let chunks: Vec<_> = store.get(&Path::from("a")).await.unwrap().into_stream().collect().await;
    assert!(matches!(&chunks[..], [Ok(half), Err(_)] if half == "1234"), "{chunks:?}");
    let entries: Vec<_> = store.list(None).collect().await;
    assert!(matches!(&entries[..], [Ok(entry), Err(_)] if entry.location.as_ref() == "a"), "{entries:?}");
    assert_eq!(store.get(&Path::from("a")).await.unwrap().bytes().await.unwrap(), "12345678");
}

#[tokio::test]
async fn another_writer_comes_first_unless_conditions_are_ignored() {
    let store = FaultyStore::new();
    let key = Path::from("a");
    let theirs: Change = Box::new(|memory| {
        async move { drop(memory.put(&Path::from("a"), "theirs".into()).await.unwrap()) }.boxed()
    });
    store.before(0, theirs);
    let created = store.put_opts(&key, "ours".into(), PutMode::Create.into()).await;
    assert!(matches!(created, Err(Error::AlreadyExists { .. })), "{created:?}");
    assert_eq!(store.objects()["a"], "theirs");
    store.ignore_conditions();
    store.put_opts(&key, "ours".into(), PutMode::Create.into()).await.unwrap();
    assert_eq!(store.objects()["a"], "ours");
}

#[tokio::test]
async fn an_upload_without_a_part_stays_open_until_it_is_aborted() {
    let store = FaultyStore::new();
    let mut upload = store.put_multipart(&Path::from("a")).await.unwrap();
    store.fault(0, Fault::Fail);
    upload.put_part("1".into()).await.unwrap_err();
    upload.put_part("2".into()).await.unwrap();
    upload.complete().await.unwrap_err();
    assert_eq!(store.open_uploads(), 1);
    upload.abort().await.unwrap();
    assert_eq!(store.open_uploads(), 0);
    assert!(store.objects().is_empty());
}
