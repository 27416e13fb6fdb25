//! Waiting for a store from code that does not wait asynchronously, as `std::fs` waits for a disk.

use std::future::Future;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use super::stores::stop_of_process;
use crate::engine::{Context, into_store};
use crate::error::{Error, Result};
use crate::progress::CancelToken;

/// The runtime on which all requests are made: a connection belongs to the runtime that opened it, and those of callers
/// come and go.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

fn runtime() -> Result<Handle> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*runtime {
        return Ok(known.handle().clone());
    }
    let made = Builder::new_multi_thread().worker_threads(2).thread_name("kanon-store").enable_all().build();
    let made = made.context("starting the threads for stores")?;
    let handle = made.handle().clone();
    *runtime = Some(made);
    Ok(handle)
}

/// Runs a future that makes requests for code that waits asynchronously. It is dropped with the returned one.
///
/// # Errors
/// Those of the future, and an error of the store if it panics or threads cannot be started.
pub(super) async fn on_runtime<T: Send + 'static>(
    future: impl Future<Output = object_store::Result<T>> + Send + 'static,
) -> object_store::Result<T> {
    let mut task = AbortOnDrop(runtime().map_err(into_store)?.spawn(future));
    (&mut task.0).await.map_err(|_| into_store(panicked()))?
}

fn panicked() -> Error {
    Error::internal("store: a request panicked")
}

/// The longest silence of a server: a client of whole files knows no other limit.
const SILENCE: Duration = Duration::from_secs(60);

/// Waits for a part of an answer.
///
/// # Errors
/// Those of the future, and an error of the store if nothing comes.
pub(super) async fn unless_silent<T>(
    part: impl Future<Output = object_store::Result<T>>,
) -> object_store::Result<T> {
    let silent = |error: tokio::time::error::Elapsed| object_store::Error::Generic {
        store: "network",
        source: format!("timed out: {error}").into(),
    };
    tokio::time::timeout(SILENCE, part).await.map_err(silent)?
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits on this thread for a future that makes requests; a stopped run waits no longer, and drops it.
///
/// # Errors
/// [`Error::interrupted`], a data error if threads cannot be started, an internal error if the future panics.
pub(super) fn wait<T: Send + 'static>(
    stop: &CancelToken,
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T> {
    const LOOK: Duration = Duration::from_millis(50);
    let (send, receive) = sync_channel(1);
    let task = runtime()?.spawn(async move {
        // The run was stopped.
        let _ = send.send(future.await);
    });
    loop {
        match receive.recv_timeout(LOOK) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Disconnected) => return Err(panicked()),
            Err(RecvTimeoutError::Timeout) => {
                stop.check().and_then(|()| stop_of_process().check()).inspect_err(|_| task.abort())?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn waits_within_any_runtime_and_until_the_run_is_stopped() {
        let stop = CancelToken::default();
        let one_thread = Builder::new_current_thread().build().unwrap();
        let slept = one_thread.block_on(async {
            let sleep = async {
                tokio::time::sleep(Duration::from_millis(5)).await;
                7
            };
            wait(&stop, sleep).unwrap()
        });
        assert_eq!(slept, 7);
        stop.cancel();
        let stopped = wait(&stop, std::future::pending::<()>()).unwrap_err();
        assert_eq!(stopped.kind(), ErrorKind::Interrupted);
        let panicked = wait(&CancelToken::default(), async { assert_eq!(1, 2) }).unwrap_err();
        assert_eq!(panicked.kind(), ErrorKind::Internal);
    }
}
