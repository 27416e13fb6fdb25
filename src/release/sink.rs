//! Where the tables of a run go.

use std::sync::Arc;

use datafusion::prelude::{DataFrame, SessionContext};

use crate::class::Budget;
use crate::engine::Run;
use crate::engine::pseudonym::PseudonymKey;
use crate::error::Result;
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::release::kind::{Extent, TablePlan, TableRows};
use crate::release::publish::record::TableRecord;
use crate::verify::noise::NoiseKey;

/// The destination of the tables of a release, which stay unreadable until they are verified.
pub(super) trait Sink: Sync {
    /// Returns what is to be found out of the release, for its records.
    fn extent(&self) -> Extent;

    /// Returns the key of pseudonyms, by which a private record holds the rows; `None` where there is no such record.
    fn pseudonym_key(&self) -> Option<&PseudonymKey>;

    /// Returns the key by which the noise of clusters is drawn.
    ///
    /// # Errors
    /// A data error when the system has no random numbers.
    fn noise_key(&self, clusters: &Clusters) -> Result<NoiseKey>;

    /// Takes the next table; the memory that writing takes comes from `memory`.
    ///
    /// # Errors
    /// A data error when the plan or the disk fails.
    async fn take(
        &mut self,
        run: &Run,
        table: &TablePlan,
        rows: TableRows,
        memory: &Arc<dyn Budget>,
    ) -> Result<()>;

    /// Returns the rows of each table as they were written.
    ///
    /// # Errors
    /// A data error when they cannot be read; an unmet one when there is more in that place than was written.
    fn taken(&self, session: &SessionContext) -> Result<Vec<DataFrame>>;

    /// Returns the records of the tables that it took, which were planned so.
    ///
    /// # Errors
    /// A data error when a file cannot be read.
    fn records(&self, planned: &[TablePlan]) -> Result<Vec<TableRecord>>;
}
