//! Where a release appears: a folder of this machine, or a folder of a store.

use std::path::PathBuf;

use crate::error::Result;
use crate::progress::CancelToken;
use crate::release::publish::record::{PrivateRecord, PublicRecord};

/// A place that a run has claimed for its release.
///
/// - **Whole or not at all**: the record appears in one step, after all that it lists; a release is what a record lists.
/// - **One writer wins**: of the runs that publish to a place at the same time one succeeds, and the others say so.
/// - **What was there is intact** until the new record replaces the old one, and whenever [`publish`](Self::publish) fails.
/// - **Nothing unverified**: before `publish`, all that is written lies in [`release`](Self::release), a folder of this machine
///   that only its owner may enter. The caller verifies it there.
/// - **Definite**: an error says that nothing was published, or that this is not known and how to find out.
///
/// A target that is dropped removes what it wrote, unless it is published.
pub(in crate::release) trait Target: Send {
    /// Returns the folder in which the release is written and verified.
    fn release(&self) -> PathBuf;

    /// Returns the folder for the engine's spill files.
    fn spill(&self) -> PathBuf;

    /// Gives the files of a release that was verified the names that they will have, and writes its record beside them;
    /// returns the record.
    ///
    /// # Errors
    /// A data error.
    fn complete(&mut self, record: PublicRecord) -> Result<PublicRecord>;

    /// Publishes the completed release, and its private record. Returns warnings about later steps that failed.
    ///
    /// # Errors
    /// A data error; a policy error if something appeared in the place meanwhile; the error of a stopped run.
    fn publish(
        self: Box<Self>,
        public: &PublicRecord,
        private: &PrivateRecord,
        stop: &CancelToken,
    ) -> Result<Vec<String>>;
}
