//! The threads of a statement.

use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use datafusion_kanon::{Error, Result};

/// Threads for one statement. They cannot be stopped while an operator computes, for hours where a
/// join is large, so the threads of an interrupted statement are left behind.
pub(super) struct Workers(Option<Runtime>);

impl Workers {
    /// Starts threads.
    pub(super) fn begin(threads: usize) -> Result<Self> {
        crate::cli::workers(threads).map(|runtime| Self(Some(runtime)))
    }

    /// Runs a future that may wait for these threads, on a thread of its own; it ends with the caller.
    pub(super) async fn wait<T: Send + 'static>(
        &self,
        what: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let runtime = self.0.as_ref().ok_or_else(gone)?.handle().clone();
        let (_caller, left) = oneshot::channel::<()>();
        let of_thread = runtime.clone();
        let waiting = runtime.spawn_blocking(move || {
            of_thread.block_on(async {
                tokio::select! {
                    done = what => Some(done),
                    _ = left => None,
                }
            })
        });
        waiting.await.ok().flatten().ok_or_else(gone)
    }

    /// Runs a future on these threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        what: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        self.0.as_ref().ok_or_else(gone)?.spawn(what).await.map_err(|_| gone())
    }
}

fn gone() -> Error {
    Error::internal("shell: a thread of the engine panicked or has ended")
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
