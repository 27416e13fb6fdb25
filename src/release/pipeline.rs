//! From the recoding that a search found to rows that were verified: the same way for the files of
//! a release and for the rows of a query.

use std::path::Path;
use std::sync::Arc;

use crate::class::{Budget, ClassTable, Held};
use crate::engine::{Context, PoolBudget, Run};
use crate::error::Result;
use crate::input::Loaded;
use crate::input::population::PopulationTable;
use crate::measure::utility::Utility;
use crate::method::{Outcome, Recoding};
use crate::policy::Policy;
use crate::progress::Phase;
use crate::release::apply::{self, ClassNumbers};
use crate::release::concrete_recoding::{Concrete, concrete, expected, finer};
use crate::release::publish::make_record::{Secret, Tables, chosen_record, recoding_record};
use crate::release::publish::record::RecodingRecord;
use crate::release::publish::write::Part;
use crate::release::released_recoding::Chosen;
use crate::release::role_checks;
use crate::release::search::{limit, nothing_found};
use crate::release::sink::{RecodedRows, Sink};
use crate::release::written_columns::as_texts;
use crate::release::{merged_trees, noise};
use crate::verify::as_is::{self, AsIsColumn, ReleasedRows, UniqueTogether};
use crate::verify::sufficient::Sufficient;
use crate::verify::{Verified, same_types, verify};

/// What a run made, verified.
pub(crate) struct Passed {
    pub(crate) chosen: Chosen,
    /// The loss of each quasi-identifier.
    pub(crate) costs: Vec<f64>,
    /// What the recoding keeps, if it is recorded.
    pub(crate) utility: Option<Utility>,
    pub(crate) verified: Verified,
    /// What a record tells besides.
    pub(crate) findings: Findings,
}

/// What a run made and verified, as its records tell it.
pub(super) struct Made {
    pub(super) tables: Tables,
    pub(super) verified: Verified,
    pub(super) findings: Findings,
    /// What only the private record says of the recoding.
    pub(super) secret: Secret,
    /// The loss of each quasi-identifier, in policy order.
    pub(super) costs: Vec<f64>,
    /// What the quasi-identifiers show, in policy order.
    pub(super) chosen: RecodingRecord,
    pub(super) utility: Option<Utility>,
}

impl Made {
    /// Describes rows that were written into these parts of a folder.
    ///
    /// # Errors
    /// Those of [`chosen_record`].
    pub(super) fn of(policy: &Policy, passed: Passed, parts: &[Part], folder: &Path) -> Result<Self> {
        let Passed { chosen, costs, utility, verified, findings } = passed;
        Ok(Self {
            tables: chosen_record(policy, &chosen, &verified, parts, folder)?,
            secret: Secret::of(&chosen.shown),
            chosen: recoding_record(policy, &chosen.shown, 0..policy.quasi.len())?,
            verified,
            findings,
            costs,
            utility,
        })
    }
}

/// What is found out about the released columns, for a record.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) unique: UniqueTogether,
    pub(crate) sufficient: Sufficient,
    pub(crate) as_is: Vec<AsIsColumn>,
}

/// Recodes the rows as a search of `classes` found best, and verifies what the sink took of them
/// against the input, which is read `again` by the second way of reading it.
///
/// # Errors
/// Any failure of writing or verifying; the caller must then discard what the sink took.
pub(crate) async fn recode_and_verify<S: Sink>(
    run: &Run<'_>,
    loaded: &Loaded,
    classes: ClassTable,
    outcome: &Outcome,
    again: impl Future<Output = Result<Loaded>>,
    sink: &mut S,
) -> Result<Passed> {
    let policy = &loaded.policy;
    let best = outcome.best.first();
    let best = best.ok_or_else(|| nothing_found(policy, limit(policy, &classes), outcome))?;
    if let Recoding::Clusters(clusters) = &best.recoding {
        drop(classes);
        return noise::add_and_verify(run, loaded, clusters, again, sink).await;
    }
    let Concrete { chosen, mut kept, costs, utility } =
        concrete(policy, loaded.schema(), &classes, &best.recoding, S::IS_RECORDED)?;
    let memory: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "kept classes"));
    let mut held = Held::new(&memory);
    held.at_least(kept.bytes() + chosen.shown.bytes())?;
    let numbers = ClassNumbers::new(&classes, std::mem::take(&mut kept.keys), &memory)?;
    held.exactly(kept.bytes() + chosen.shown.bytes())?;
    drop(classes);

    run.progress.begin(Phase::Write, kept.total_rows());
    let plan = apply::apply(loaded.table.clone(), policy, numbers)?;
    let rows = plan.execute_stream().await.context("planning the release")?;
    sink.take(run, RecodedRows { rows, policy, chosen: &chosen, kept: &kept, memory: &memory }).await?;
    drop(kept);
    held.exactly(chosen.shown.bytes())?;

    run.progress.begin(Phase::Verify, 0);
    let again = again.await?;
    same_types(loaded.schema(), again.schema())?;
    merged_trees::check_holders(&again.session, &again.table, &again.policy, run.stop).await?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&again.session, "assignment"));
    let mut expected = expected(policy, &again.policy, &chosen.shown, &budget)?;
    expected.population = again.population.as_ref().map(PopulationTable::for_verification);
    let (session, input) = (&again.session, || again.table.clone());
    let output = as_texts(sink.taken(session, &chosen)?, &policy.written_columns())?;
    let mut verified = verify(session, output.clone(), Some(input()), &expected, run.stop).await?;
    let rows =
        ReleasedRows::new(session, output.clone(), Some(input()), &expected, &verified, run.stop).await?;
    let mut findings = Findings::default();
    if S::IS_RECORDED {
        findings.as_is = rows.shown().await?;
    }
    role_checks::check_released(policy, &rows).await?;
    if S::IS_RECORDED {
        findings.unique = rows.unique_together().await?;
        findings.sufficient = rows.sufficient(&findings.unique).await?;
        verified.reached_among_released = rows.reached_among_released().await?;
        let finer = finer(policy, &chosen.shown);
        as_is::reveals(session, output, input(), &expected, &finer, &mut findings.as_is, run.stop).await?;
    }
    Ok(Passed { chosen, costs, utility, verified, findings })
}
