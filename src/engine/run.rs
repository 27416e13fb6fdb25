//! The environment of a run: resources, cancellation, progress.

use super::session::Resources;
use crate::progress::{CancelToken, Progress};

/// The environment that every run needs.
pub struct Run<'a> {
    /// The threads and the memory.
    pub resources: &'a Resources,
    /// The flag that stops the run.
    pub stop: &'a CancelToken,
    /// The receiver of progress and notices.
    pub progress: &'a dyn Progress,
    /// Whether errors and `kanon hierarchy check` may show values that a hierarchy does not cover. No
    /// other output shows a cell, except that of a query and the file that `kanon hierarchy` writes.
    pub show_values: bool,
}
