//! Waiting for a store from code that does not wait asynchronously, as `std::fs` waits for a disk.

use std::future::Future;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use super::stores::stop_of_process;
use crate::engine::{Context, into_store};
use crate::error::{Error, Result};
use crate::progress::CancelToken;

/// The runtime on which all requests are made: a connection belongs to the runtime that opened it, and those of callers
/// come and go.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

pub(super) fn runtime() -> Result<Handle> {
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

/// How long a request is waited for.
#[derive(Clone, Copy)]
pub(crate) enum Until<'a> {
    /// Until the run is stopped.
    Stopped(&'a CancelToken),
    /// This long, also after the run was stopped: what was begun is brought to an end.
    Passed(Duration),
}

impl Until<'_> {
    /// Waits on this thread for a future that makes requests, and drops it when the time is over.
    ///
    /// # Errors
    /// Those of [`wait`], and an error of the store if nothing comes in time.
    pub(super) fn wait<T: Send + 'static>(
        self,
        future: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<object_store::Result<T>> {
        match self {
            Self::Stopped(stop) => wait(stop, future),
            Self::Passed(time) => received(future, |passed| {
                if passed < time { Ok(()) } else { Err(Error::data("the store did not answer in time")) }
            }),
        }
    }
}

/// Checks that neither the run nor the process was stopped.
///
/// # Errors
/// [`Error::interrupted`].
pub(super) fn stopped(stop: &CancelToken) -> Result<()> {
    stop.check().and_then(|()| stop_of_process().check())
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
    received(future, |_| stopped(stop))
}

/// The time between two looks at what ends a wait.
const LOOK: Duration = Duration::from_millis(50);

/// Waits for a future as long as `goes_on`, which gets the time that has passed, allows it.
fn received<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    goes_on: impl Fn(Duration) -> Result<()>,
) -> Result<T> {
    let (send, receive) = sync_channel(1);
    let (task, began) = (
        runtime()?.spawn(async move {
            // The wait may have ended.
            let _ = send.send(future.await);
        }),
        Instant::now(),
    );
    loop {
        match receive.recv_timeout(LOOK) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Disconnected) => return Err(panicked()),
            Err(RecvTimeoutError::Timeout) => goes_on(began.elapsed()).inspect_err(|_| task.abort())?,
        }
    }
}

/// The objects that are written or read at the same time, and their size at most: larger ones come one after the other, so
/// that together they take no more memory than one of these.
const AT_ONCE: usize = 8;
const SMALL: u64 = 1 << 20;

/// Calls `act`, which waits for a store, for each object; `bytes` returns an object's size. After an error, no further calls begin.
///
/// # Errors
/// One of those that came.
pub(crate) fn with_each<T: Sync>(
    objects: &[T],
    bytes: impl Fn(&T) -> u64,
    act: impl Fn(&T) -> Result<()> + Sync,
) -> Result<()> {
    let (small, large): (Vec<&T>, Vec<&T>) = objects.iter().partition(|object| bytes(object) <= SMALL);
    let (next, failed) = (Mutex::new(small.into_iter()), Mutex::new(None));
    let locked = || failed.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        while locked().is_none() {
            let object = next.lock().unwrap_or_else(PoisonError::into_inner).next();
            match object.map(&act) {
                None => break,
                Some(Ok(())) => {}
                Some(Err(error)) => drop(locked().get_or_insert(error)),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..AT_ONCE.min(objects.len()) {
            scope.spawn(work);
        }
        work();
    });
    locked().take().map_or(Ok(()), Err)?;
    large.into_iter().try_for_each(act)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn each_object_has_its_turn_once_and_the_small_ones_at_the_same_time() {
        let (done, now) = (Mutex::new(Vec::new()), Mutex::new((0, 0)));
        let sizes: Vec<u64> = (0..40).map(|n| if n % 4 == 0 { SMALL + n } else { n }).collect();
        let act = |bytes: &u64| {
            let mut counts = now.lock().unwrap();
            counts.0 += 1;
            counts.1 = counts.1.max(counts.0);
            assert!(*bytes <= SMALL || counts.0 == 1, "a large one is alone");
            drop(counts);
            thread::sleep(Duration::from_millis(5));
            now.lock().unwrap().0 -= 1;
            done.lock().unwrap().push(*bytes);
            Ok(())
        };
        with_each(&sizes, |bytes| *bytes, act).unwrap();
        let mut all = done.lock().unwrap().clone();
        all.sort_unstable();
        let mut expected = sizes.clone();
        expected.sort_unstable();
        assert_eq!(all, expected);
        let most = now.lock().unwrap().1;
        assert!((2..=AT_ONCE).contains(&most), "{most} at once");

        let begun = Mutex::new(0);
        let fails = |bytes: &u64| {
            *begun.lock().unwrap() += 1;
            if *bytes == 2 { Err(Error::data("two")) } else { Ok(()) }
        };
        let error = with_each(&sizes, |bytes| *bytes, fails).unwrap_err();
        assert_eq!(error.to_string(), "two");
        assert!(*begun.lock().unwrap() <= 2 + AT_ONCE, "{begun:?}");
        with_each(&[], |bytes: &u64| *bytes, fails).unwrap();
    }

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
