//! The flag by which a user stops a run; all long-running code checks it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A flag shared by a run and every caller that may stop it.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Asks the run to stop.
    pub fn now(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Returns whether the run was asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Fails once the run was asked to stop.
    ///
    /// # Errors
    /// [`Error::interrupted`].
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::interrupted()) } else { Ok(()) }
    }
}
