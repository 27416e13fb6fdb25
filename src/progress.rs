//! What a run tells its user, and how the user stops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A phase of a run, for a progress display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The input is grouped.
    Profile,
    /// The best node is searched.
    Search,
    /// Rows are written.
    Write,
    /// The written rows are counted.
    Verify,
    /// The release is moved to its place.
    Publish,
}

impl Phase {
    /// Returns what is done in it: `grouping`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Profile => "grouping",
            Self::Search => "searching",
            Self::Write => "writing",
            Self::Verify => "verifying",
            Self::Publish => "publishing",
        }
    }
}

/// Receives the phases, the progress and the notices of a run.
///
/// A run calls it from several threads, also from several at the same time, between batches of rows: a method must return
/// soon. Each phase begins once for each run that has it, and ends where the next begins. By default each method does nothing.
pub trait Progress: Sync + Send {
    /// Begins a phase; `total` is its number of units of work, or 0 if unknown. Writing counts rows; a search counts
    /// what its method tries (combinations of levels, or classes); the other phases count nothing.
    fn begin(&self, _phase: Phase, _total: u64) {}
    /// Reports how many units of the phase are done so far, which may skip numbers, and be below an earlier report
    /// of another thread.
    fn done(&self, _units: u64) {}
    /// Shows the user a text, without cells, while the run goes on.
    fn notice(&self, _text: &str) {}
}

/// Ignores all progress and notices.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {}

/// A flag shared by a run and every caller that may stop it.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    flag: Arc<AtomicBool>,
    /// The flag of the whole, where this one is of a part.
    whole: Option<Arc<AtomicBool>>,
}

impl CancelToken {
    /// Asks the run to stop.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::SeqCst);
    }

    /// Returns whether the run was asked to stop.
    pub fn is_set(&self) -> bool {
        [Some(&self.flag), self.whole.as_ref()].into_iter().flatten().any(|flag| flag.load(Ordering::SeqCst))
    }

    /// Fails once the run was asked to stop.
    ///
    /// # Errors
    /// [`Error::interrupted`].
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::interrupted()) } else { Ok(()) }
    }

    /// Returns the token of a part of the run, which stops with the run, and may be stopped before it.
    #[cfg(feature = "engine")]
    pub(crate) fn of_part(&self) -> Self {
        Self { flag: Arc::default(), whole: Some(Arc::clone(&self.flag)) }
    }
}
