//! The environment of a run: resources, cancellation, progress.

use std::fmt;
use std::sync::Arc;

use super::session::Resources;
use crate::error::{Error, Result};
use crate::progress::{CancelToken, Progress, Silent};

/// The environment that every run needs. The default has one thread for each core and 4 GiB, reports no progress, is stopped by
/// no other part of the program, and shows no values.
#[derive(Clone)]
pub struct Run {
    /// The threads and the memory.
    pub resources: Resources,
    /// The flag that stops the run.
    pub stop: CancelToken,
    /// The receiver of progress and notices.
    pub progress: Arc<dyn Progress>,
    /// Whether errors and `kanon hierarchy check` may show values that a hierarchy does not cover. No
    /// other output shows a cell, except that of a query and the file that `kanon hierarchy` writes.
    pub show_values: bool,
}

impl Run {
    /// Computes on a thread of its own, which the runtime has for long computations: the caller's may be the only worker. If the
    /// returned future is dropped, the computation is asked to stop.
    ///
    /// # Errors
    /// Those of the computation; an internal error if it panics.
    pub(crate) async fn on_own_thread<T: Send + 'static>(
        &self,
        compute: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let run = Self { stop: self.stop.of_part(), ..self.clone() };
        let _stop_at_end = StopAtEnd(run.stop.clone());
        let computed = tokio::task::spawn_blocking(move || compute(&run)).await;
        computed.unwrap_or_else(|_| Err(Error::internal("run: the thread of a computation failed")))
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("resources", &self.resources).finish_non_exhaustive()
    }
}

impl Default for Run {
    fn default() -> Self {
        Self {
            resources: Resources::default_of_machine(),
            stop: CancelToken::default(),
            progress: Arc::new(Silent),
            show_values: false,
        }
    }
}

/// Stops a run, or a part of it, once its future is dropped.
pub(crate) struct StopAtEnd(pub CancelToken);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
