//! The objects of an input as a store of the engine.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use chrono::DateTime;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::io::on_runtime;
use super::object::Object;
use crate::engine::{Context, into_store};
use crate::error::Error;

/// The objects of an input, and nothing else. Each read fails if its object is no longer as it was listed.
///
/// An object is called by its place in the list: a key may hold a cell, and plans are shown. `get_ranges` is the trait's own,
/// which asks [`get_opts`](ObjectStore::get_opts).
#[derive(Debug)]
pub(crate) struct PinnedObjects {
    number: u64,
    objects: Vec<Object>,
    files: LocalFileSystem,
}

/// The number of the next store, and of the next plan that reads one. The engine keeps footers by the names of files alone, so
/// no two stores have files of one name.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl PinnedObjects {
    pub(crate) fn new(objects: &[Object]) -> Arc<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { number, objects: objects.to_vec(), files: LocalFileSystem::new() })
    }

    /// Makes the store known where a plan will run, as long as the plan holds one of the returned files.
    ///
    /// # Errors
    /// An internal error if the engine does not take the address of the store.
    pub(crate) fn register(
        self: &Arc<Self>,
        runtime: &Arc<RuntimeEnv>,
    ) -> crate::error::Result<(ObjectStoreUrl, Vec<PartitionedFile>)> {
        let scan = NEXT.fetch_add(1, Ordering::Relaxed);
        let url = ObjectStoreUrl::parse(format!("kanon://input-{scan}"))
            .context("opening the objects of the input")?;
        runtime.register_object_store(url.as_ref(), Arc::<Self>::clone(self));
        let registered = Arc::new(Registration { runtime: Arc::downgrade(runtime), url: url.clone() });
        let files = self.objects.iter().enumerate();
        let files = files.map(|(at, object)| {
            PartitionedFile::from(self.meta(at, object)).with_extension(Arc::clone(&registered))
        });
        Ok((url, files.collect()))
    }

    fn meta(&self, at: usize, object: &Object) -> ObjectMeta {
        ObjectMeta {
            location: Path::from(format!("{}-{at}", self.number)),
            last_modified: DateTime::UNIX_EPOCH,
            size: object.bytes(),
            e_tag: None,
            version: None,
        }
    }
}

/// A store in the list of stores of a runtime, which it leaves with the last file of the plan. What reads by then holds the store.
#[derive(Debug)]
struct Registration {
    runtime: Weak<RuntimeEnv>,
    url: ObjectStoreUrl,
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.upgrade() {
            // It was registered.
            let _ = runtime.deregister_object_store(self.url.as_ref());
        }
    }
}

#[async_trait]
impl ObjectStore for PinnedObjects {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let at = location.as_ref().strip_prefix(&format!("{}-", self.number));
        let at = at.and_then(|at| at.parse::<usize>().ok());
        let Some((at, object)) = at.and_then(|at| Some((at, self.objects.get(at)?))) else {
            let source = "it is no object of the input".into();
            return Err(StoreError::NotFound { path: location.to_string(), source });
        };
        if let (Some(copy), false) = (object.copy(), options.head) {
            let (copy, object) = (Arc::clone(copy), object.clone());
            let range = match &options.range {
                Some(range) => range
                    .as_range(object.bytes())
                    .map_err(|_| into_store(Error::internal("store: a range is none")))?,
                None => 0..object.bytes(),
            };
            on_runtime(async move { copy.fetch(&object, range).await.map_err(into_store) }).await?;
        }
        let found = self.files.get_opts(&Path::from_filesystem_path(object.path())?, options).await?;
        Ok(GetResult { meta: self.meta(at, object), ..found })
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(only_read())
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(only_read())
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        futures::stream::once(async { Err(only_read()) }).boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        futures::stream::once(async { Err(only_read()) }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(only_read())
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(only_read())
    }
}

fn only_read() -> StoreError {
    StoreError::NotSupported { source: "the objects of an input are only read".into() }
}

impl fmt::Display for PinnedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "input-{}", self.number)
    }
}
