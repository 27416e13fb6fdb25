//! Where the recoded rows of a run go.

use std::sync::Arc;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::{DataFrame, SessionContext};

use crate::class::Budget;
use crate::engine::Run;
use crate::error::Result;
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::policy::Policy;
use crate::release::released_recoding::{Chosen, KeptClasses};
use crate::verify::noise::NoiseKey;

/// The recoded rows of a run, in order.
pub struct RecodedRows<'a> {
    /// The rows of [`apply`](super::apply::apply).
    pub rows: SendableRecordBatchStream,
    /// The policy.
    pub policy: &'a Policy,
    /// What the quasi-identifiers show.
    pub chosen: &'a Chosen,
    /// The kept classes, whose labels the rows get.
    pub kept: &'a KeptClasses,
    /// The budget that the sink's memory comes from.
    pub memory: &'a Arc<dyn Budget>,
}

/// The destination of the recoded rows, which stay unreadable until they are verified.
pub(crate) trait Sink {
    /// Whether a record tells what was found out about the released columns.
    const IS_RECORDED: bool;

    /// Returns the key by which the noise of clusters is drawn.
    ///
    /// # Errors
    /// A data error when the system has no random numbers.
    fn noise_key(&self, clusters: &Clusters) -> Result<NoiseKey>;

    /// Takes all rows.
    ///
    /// # Errors
    /// A data error when the plan or the disk fails.
    async fn take(&mut self, run: &Run<'_>, recoded: RecodedRows<'_>) -> Result<()>;

    /// Returns the rows as they were written.
    ///
    /// # Errors
    /// A data error when they cannot be read; an unmet one when there is more in that place than was written.
    fn taken(&self, session: &SessionContext, chosen: &Chosen) -> Result<DataFrame>;
}
