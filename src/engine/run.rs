//! What a run may use and whom it tells: resources, cancellation, progress.

use super::cancel::CancelToken;
use super::session::Resources;

/// What is going on, for a progress display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Grouping the input.
    Profile,
    /// Looking for the best node.
    Search,
    /// Writing rows.
    Write,
    /// Counting what was written.
    Verify,
    /// Making it appear.
    Publish,
}

/// Hears what a run does.
pub trait Listener: Sync + Send {
    /// A phase begins; `total` units of work are known to lie ahead, or 0.
    fn begin(&self, _phase: Phase, _total: u64) {}
    /// So much of the phase is done.
    fn done(&self, _units: u64) {}
    /// The user should know this while the run goes on.
    fn notice(&self, _text: &str) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Listener for Silent {}

/// What every run needs.
pub struct Run<'a> {
    /// Threads and memory.
    pub resources: &'a Resources,
    /// Who may stop it.
    pub stop: &'a CancelToken,
    /// Who hears of it.
    pub listener: &'a dyn Listener,
    /// Whether errors may show values that a hierarchy does not cover. Nothing else ever shows a cell.
    pub show_values: bool,
}
