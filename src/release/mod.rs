//! The release: profile, choose, apply, verify, publish.
//!
//! [`release`] is the whole pipeline in one function. The other entry points stop earlier:
//! [`load()`] profiles, [`search()`] chooses, [`check_release()`] verifies an existing folder.

pub mod apply;
mod check_record;
mod concrete_recoding;
pub mod profile;
pub mod publish;
pub(crate) mod released_labels;
pub mod released_recoding;
mod released_regions;
pub mod role_checks;
mod search;
mod search_progress;
pub(crate) mod verified_rows;
mod verify_folder;

use std::path::Path;
use std::sync::Arc;

pub use publish::make_record::risks;
pub(crate) use search::{ask, can_be_searched};
pub use search::{limit, load, search, search_minimal};
#[cfg(feature = "cli")]
pub(crate) use search_progress::nodes_of;
pub use verify_folder::{Checked, check_release};

use crate::class::{Budget, ClassSizes};
use crate::engine::{Context, PoolBudget, Resources, Run};
use crate::error::Result;
use crate::input::infer_types::Typing;
use crate::input::{Input, PolicySource, open, open_typed};
use crate::progress::Phase;
use crate::release::apply::ClassNumbers;
use crate::release::concrete_recoding::{concrete, expected, finer};
use crate::release::publish::make_record::{Before, private_record, public_record, recoding_record};
use crate::release::publish::record::{PrivateRecord, PublicRecord, RecodingRecord, models_text};
use crate::release::publish::staging::Staging;
use crate::release::publish::write;
use crate::release::search::nothing_found;
use crate::verify::as_is::{self, ReleasedRows};
use crate::verify::expected::least_holders;
use crate::verify::verify;

/// A published release.
#[derive(Debug)]
pub struct Released {
    /// The public record.
    pub public: PublicRecord,
    /// The private record, for the publisher only.
    pub private: PrivateRecord,
    /// The sizes of the input's base classes.
    pub before: ClassSizes,
    /// The sizes of the released classes.
    pub after: ClassSizes,
    /// The loss of each quasi-identifier, in policy order: the share of its domain that a value
    /// covers, on average over the rows of the input; 0 for a value as it is, 1 for a suppressed
    /// row.
    pub costs: Vec<f64>,
    /// What the quasi-identifiers show, in policy order.
    pub chosen: RecodingRecord,
    /// q, the greatest of the requirements' smallest class sizes, at least 2: a value with fewer
    /// holders identifies individuals.
    pub least_holders: u64,
    /// Failures after the release was in its place, in whole sentences for users.
    pub warnings: Vec<String>,
}

/// Releases `input` under a policy to the folder `out`: profile, choose, apply, verify, publish.
///
/// # Errors
/// Any failure; `out` then stays as it was.
pub async fn release(
    run: &Run<'_>,
    input: &Input,
    source: &PolicySource<'_>,
    out: &Path,
    overwrite: bool,
) -> Result<Released> {
    let staging = Staging::begin(out, overwrite, input)?;
    let resources = Resources { spill: Some(staging.spill()), ..run.resources.clone() };

    let loaded = open(&resources, input, source.spec, source.files).await?;
    let policy = &loaded.policy;
    role_checks::check(run, &loaded).await?;
    let classes = load(run, &loaded).await?;
    let duplicates = role_checks::duplicates(run, &loaded, &classes).await?;
    role_checks::check_as_is(run, &loaded, &classes).await?;
    let before = Before {
        sizes: ClassSizes::of(&classes, classes.base()),
        rows: classes.total_rows(),
        individuals: policy.individual().map(|_| classes.total_individuals()),
        limit: limit(policy, &classes),
        duplicates,
    };

    let (method, outcome) = tokio::task::block_in_place(|| search(run, policy, &classes, 1))?;
    let best = outcome.best.first().ok_or_else(|| nothing_found(policy, before.limit, &outcome))?;
    let (chosen, mut kept, costs) = concrete(policy, loaded.schema(), &classes, &best.recoding)?;
    let memory: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "kept classes"));
    memory.grow(kept.bytes() + chosen.shown.bytes())?;
    let numbers = ClassNumbers::new(&classes, std::mem::take(&mut kept.keys), &memory)?;
    drop(classes);

    run.progress.begin(Phase::Write, kept.total_rows());
    let plan = apply::apply(loaded.table.clone(), policy, numbers)?;
    let rows = plan.execute_stream().await.context("planning the release")?;
    let footer = write::footer(&models_text(&policy.requirements));
    let folder = staging.release();
    let done = |rows| run.progress.done(rows);
    let parts = write::write(rows, policy, &chosen, &kept, &footer, &folder, &memory, run.stop, &done);
    let parts = parts.await?;

    run.progress.begin(Phase::Verify, 0);
    verify_folder::check_files(&staging.release(), &parts, &chosen.schema, &footer, write::CREATED_BY)?;
    let (verified, unique, as_is) = {
        let again = open_typed(&resources, input, source.spec, source.files, Typing::Plain).await?;
        crate::verify::same_types(loaded.schema(), again.schema())?;
        let memory: Arc<dyn Budget> = Arc::new(PoolBudget::new(&again.session, "assignment"));
        let expected = expected(policy, &again.policy, &chosen.shown, &memory)?;
        let (session, table) = (&again.session, again.table);
        let output = verify_folder::read_parts(session, &staging.release(), &parts)?;
        let mut verified = verify(session, output.clone(), Some(table.clone()), &expected, run.stop).await?;
        let rows =
            ReleasedRows::new(session, output.clone(), Some(table.clone()), &expected, &verified, run.stop);
        let rows = rows.await?;
        let mut as_is = rows.shown().await?;
        role_checks::check_released(policy, &rows).await?;
        let unique = rows.unique_together().await?;
        verified.replace_reached(rows.reached().await?);
        let finer = finer(policy, &chosen.shown);
        as_is::reveals(session, output, table, &expected, &finer, &mut as_is, run.stop).await?;
        (verified, unique, as_is)
    };
    input.still_the_same()?;

    let public = public_record(policy, &chosen, &verified, unique, &parts, &staging.release())?;
    staging.write_record(&public)?;
    let private = private_record(
        source,
        policy,
        input,
        &public,
        &before,
        &verified,
        as_is,
        &chosen.shown,
        method,
        &outcome,
    )?;
    run.stop.check()?;
    run.progress.begin(Phase::Publish, 0);
    let warnings = staging.publish(&private)?;

    let chosen = recoding_record(policy, &chosen.shown, 0..policy.quasi.len());
    let least_holders = least_holders(&policy.requirements);
    Ok(Released {
        public,
        private,
        before: before.sizes,
        after: verified.sizes,
        costs,
        chosen,
        least_holders,
        warnings,
    })
}
