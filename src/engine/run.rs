//! The environment of a run: resources, cancellation, progress.

use super::cancel::CancelToken;
use super::session::Resources;

/// A phase of a run, for a progress display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Receives the phases, progress and notices of a run.
pub trait Listener: Sync + Send {
    /// Begins a phase; `total` is its number of units of work, or 0 if unknown.
    fn begin(&self, _phase: Phase, _total: u64) {}
    /// Reports that `units` of the phase are done.
    fn done(&self, _units: u64) {}
    /// Shows the user a text while the run goes on.
    fn notice(&self, _text: &str) {}
}

/// A listener that ignores everything.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Listener for Silent {}

/// The environment that every run needs.
pub struct Run<'a> {
    /// The threads and the memory.
    pub resources: &'a Resources,
    /// The flag that stops the run.
    pub stop: &'a CancelToken,
    /// The listener for progress and notices.
    pub listener: &'a dyn Listener,
    /// Whether errors may show values that a hierarchy does not cover. No other output ever shows a
    /// cell.
    pub show_values: bool,
}
