//! From the recoding that a search found to rows that were verified: the same way for the files of
//! a release and for the rows of a query.

use crate::class::ClassTable;
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::measure::utility::Utility;
use crate::method::Outcome;
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::progress::Phase;
use crate::release::histories::{Continued, recorded};
use crate::release::kind::{Content, Judged, PlanInput, ReleasePlan, Secret, kind_row};
use crate::release::merged_trees;
use crate::release::publish::record::HistoryRecord;
use crate::release::search::{limit, nothing_found};
use crate::release::sink::Sink;
use crate::verify::same_types;

/// What a run wrote and verified.
pub(super) struct VerifiedRelease {
    pub(super) content: Content,
    pub(super) judged: Judged,
    /// The rows by pseudonyms, if other releases may follow.
    pub(super) history: Option<HistoryRecord>,
    pub(super) secret: Secret,
    /// The loss of each quasi-identifier, in policy order.
    pub(super) costs: Vec<f64>,
    /// What the recoding keeps, if it is recorded.
    pub(super) utility: Option<Utility>,
    /// What the publisher should know of what the classes show, in whole sentences.
    pub(super) remarks: Vec<String>,
    /// What the publisher should know once the release is published, in whole sentences.
    pub(super) warnings: Vec<String>,
}

/// Writes the release that a search of `classes` found best, and verifies what the sink took of it
/// against the input, which is read `again` by the second way of reading it.
///
/// # Errors
/// Any failure of writing or verifying; the caller must then discard what the sink took.
pub(super) async fn write_and_verify<S: Sink>(
    run: &Run,
    loaded: &Loaded,
    classes: ClassTable,
    outcome: Outcome,
    again: impl Future<Output = Result<Loaded>>,
    sink: &mut S,
) -> Result<VerifiedRelease> {
    let policy = &loaded.policy;
    let best = outcome.best.first();
    let best = best.ok_or_else(|| nothing_found(policy, limit(policy, &classes), &outcome))?;
    if !best.loss.is_finite() {
        let name = policy.spec.objective.doc().name;
        return Err(Error::policy(format!(
            "the loss `{name}` is no number for the best recoding; take another objective"
        )));
    }
    let recoding = best.recoding.clone();
    drop(outcome);
    let noise_key = |clusters: &Clusters| sink.noise_key(clusters);
    let extent = sink.extent();
    let found = PlanInput { recoding, classes, extent, noise_key: &noise_key };
    let plan = kind_row(policy.kind).plan(run, loaded, found).await?;
    carry_out(run, loaded, plan, again, sink, None).await
}

/// Writes a planned release and verifies it, like [`write_and_verify`]; `continued` is what the record of one says that follows others.
///
/// # Errors
/// As [`write_and_verify`].
pub(super) async fn carry_out<S: Sink>(
    run: &Run,
    loaded: &Loaded,
    plan: ReleasePlan,
    again: impl Future<Output = Result<Loaded>>,
    sink: &mut S,
    continued: Option<Continued>,
) -> Result<VerifiedRelease> {
    let tables = &plan.content.tables;
    if plan.content.recoding.kind() != Some(loaded.policy.kind) || tables.len() != plan.rows.len() {
        return Err(Error::internal("pipeline: the plan is not one of the policy's kind"));
    }
    for (table, rows) in tables.iter().zip(plan.rows) {
        sink.take(run, table, rows, &plan.budget).await?;
    }

    run.progress.begin(Phase::Verify, 0);
    let again = again.await?;
    same_types(loaded.schema(), again.schema())?;
    merged_trees::check_holders(&again.session, &again.table, &again.policy, &run.stop).await?;
    let written = sink.taken(&again.session)?;
    let first = written.first().cloned();
    let judged = plan.content.judge.judge(run, &again, written, sink.extent()).await?;
    drop(plan.held);
    let history = match sink.pseudonym_key() {
        Some(key) => recorded(run, &again, &plan.content, first, key, continued).await?,
        None => None,
    };
    Ok(VerifiedRelease {
        content: plan.content,
        judged,
        history,
        secret: plan.secret,
        costs: plan.costs,
        utility: plan.utility,
        remarks: plan.remarks,
        warnings: plan.warnings,
    })
}
