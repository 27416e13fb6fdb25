//! A release as a stream of rows, for a program that writes them itself.

use std::fmt;
use std::sync::Arc;

use datafusion::execution::SendableRecordBatchStream;

use crate::class::ClassSizes;
use crate::engine::phase_clock::PhaseClock;
use crate::engine::{PhaseTime, Run};
use crate::error::Result;
use crate::input::{PolicySource, Source};
use crate::release::kind::Extent;
use crate::release::publish::record::PublicRecord;
use crate::release::stages::{Earlier, opened, unpublished};
use crate::release::verified_rows::{NoiseOfCall, Spill};
use crate::verify::sufficient::Sufficient;

/// The rows of a release, and its record. There is no private record, so neither [`verify`](crate::verify()) nor
/// [`release_again`](super::release_again) can follow it.
#[non_exhaustive]
pub struct Anonymized {
    /// The rows in the order of a release, which come from a spill file of the engine. Their fields have no descriptors: the record
    /// says what the columns show. The stream ends with an error once the run is stopped.
    pub rows: SendableRecordBatchStream,
    /// The public record: of a table without files, because what becomes of the rows is not known. All else is as in the record
    /// of a folder.
    pub public: PublicRecord,
    /// The sizes of the input's base classes.
    pub before: ClassSizes,
    /// The sizes of the released classes.
    pub after: ClassSizes,
    /// The loss of each quasi-identifier, in policy order, as in [`Released`](super::Released).
    pub costs: Vec<f64>,
    /// What the publisher should know of what the classes show, in whole sentences.
    pub remarks: Vec<String>,
    /// The columns that each single individuals out by themselves.
    pub sufficient: Sufficient,
    /// What is doubtful about the policy and its input, in whole sentences for users.
    pub doubts: Vec<String>,
    /// What the publisher should know once the rows are published, in whole sentences for users.
    pub warnings: Vec<String>,
    /// The phases of the run up to the verified rows, in their order.
    pub phases: Vec<PhaseTime>,
}

/// Shows no row.
impl fmt::Debug for Anonymized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anonymized").field("public", &self.public).finish_non_exhaustive()
    }
}

/// Anonymizes an input under a policy like [`release`](super::release()), and returns the rows instead of writing them.
///
/// All rows are verified before the first one can be read; until then they lie in a spill file. The guarantee covers the
/// complete stream only: a part of it is not k-anonymous in itself. Each call is a release of its own, and noise is
/// drawn anew. The rows of another release of the same people may be intersected with these.
///
/// # Errors
/// Those of a release; a policy error for a method that makes two tables.
pub async fn anonymize(run: &Run, input: impl Into<Source>, policy: &PolicySource<'_>) -> Result<Anonymized> {
    let input = input.into();
    let clock = Arc::new(PhaseClock::start(Arc::clone(&run.progress)));
    let run = &Run { progress: Arc::<PhaseClock>::clone(&clock), ..run.clone() };
    let noise = NoiseOfCall::new()?;
    let loaded = opened(run, &input, policy, Earlier::Nothing).await?;
    let spill = Spill::new(&loaded, &noise, Extent::Public)?;
    let done = unpublished(run, &input, policy, Earlier::Nothing, loaded, spill).await?;
    run.stop.check()?;
    Ok(Anonymized {
        rows: done.sink.into_rows()?.read(&run.stop)?,
        public: done.public,
        before: done.before.sizes,
        after: done.made.judged.verified.sizes,
        costs: done.made.costs,
        remarks: done.made.remarks,
        sufficient: done.made.judged.sufficient,
        doubts: done.doubts,
        warnings: done.warnings,
        phases: clock.times(),
    })
}
