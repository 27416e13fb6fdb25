//! The release: profile, choose, apply, verify, publish.
//!
//! ```text
//! open                    the table with the policy's roles, and the policy resolved for it
//! check_policy            roles, before classes are counted
//! profile_classes         profile: the table of base classes
//! check_input             roles, before the search
//! search                  choose: the recoding, or that of an earlier release
//! Kind::plan, Sink::take  apply: a kind plans the rows, the sink runs the plan and keeps them
//! Judge::judge            verify: a second reading of the input, after the rows are written
//! public_record           what was released, without files for a stream
//! private_record, Target  publish: the other record, and the release in its place
//! ```
//! [`release`] is the whole pipeline in one function, and [`anonymize()`] all of it but the last line
//! (`stages.rs`): the one has a folder of files as its sink, the other the engine's spill file (`verified_rows.rs`). The
//! middle, from the recoding that was found to verified rows (`pipeline.rs`), is shared with `anonymize()` in SQL. The
//! other entry points stop earlier: [`profile_classes()`] profiles, [`search()`] chooses, [`check_release()`] verifies an
//! existing folder.

mod anonymize;
pub mod apply;
mod check_files;
mod check_models;
mod check_record;
pub(crate) mod doubts;
mod earlier_recoding;
pub mod histories;
pub(crate) mod interval_columns;
pub mod kind;
pub(crate) mod labels_for_all;
mod merged_trees;
mod pipeline;
pub mod profile;
pub mod publish;
pub(crate) mod released_labels;
pub(crate) mod released_schema;
pub mod role_checks;
mod search;
mod search_progress;
mod sink;
mod stages;
pub(crate) mod verified_rows;
mod verify_folder;
pub(crate) mod written_columns;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

pub use anonymize::{Anonymized, anonymize};
pub(crate) use check_files::read_tables;
pub use publish::local_release::{LocalRelease, Needed};
pub use publish::make_record::risks;
pub use publish::place::Place;
pub use publish::unchanged::unchanged;
pub(crate) use search::{ask, can_be_searched, why_nothing};
pub use search::{compare, limit, profile_classes, search, search_minimal};
pub(crate) use search_progress::nodes_of;
pub use verify_folder::{Checked, check_release};

use crate::class::ClassSizes;
use crate::engine::phase_clock::PhaseClock;
use crate::engine::{PhaseTime, Resources, Run};
use crate::error::{Error, Result};
use crate::input::{PolicySource, Source};
use crate::model::least_holders;
use crate::policy::{FilesAndTrees, PolicySpec};
use crate::progress::CancelToken;
use crate::progress::Phase;
use crate::release::histories::NotShown;
use crate::release::histories::chain::Chain;
use crate::release::kind::describe::Labels;
use crate::release::labels_for_all::labels_for_all;
use crate::release::pipeline::VerifiedRelease;
use crate::release::publish::key_file::KeyFile;
use crate::release::publish::make_record::private_record;
use crate::release::publish::neighbours;
use crate::release::publish::record::{PrivateRecord, PublicRecord, RecodingRecord};
use crate::release::publish::released_files::ReleasedFiles;
use crate::release::stages::{Earlier, Unpublished, opened, unpublished};
use crate::store::fetch;
use crate::verify::sufficient::Sufficient;

/// A published release.
#[derive(Debug)]
#[non_exhaustive]
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
    /// Whether a model compared the classes with a population.
    pub reads_population: bool,
    /// What the publisher should know of what the classes show, in whole sentences.
    pub remarks: Vec<String>,
    /// The people with a row that is not shown, by why, if the release follows others.
    pub not_shown: Option<NotShown>,
    /// The label that all values of a column have, by its name, where that is not `*`.
    #[doc(hidden)]
    pub labels: Labels,
    /// The columns that each single individuals out by themselves.
    pub sufficient: Sufficient,
    /// What is doubtful about the policy and its input, in whole sentences for users: to be read before the release is given
    /// away.
    pub doubts: Vec<String>,
    /// Failures after the release was in its place, and values that a requirement names in vain, in
    /// whole sentences for users.
    pub warnings: Vec<String>,
    /// The file of the key of pseudonyms, if this run made it.
    pub new_key: Option<PathBuf>,
    /// The phases of the run, in their order.
    pub phases: Vec<PhaseTime>,
}

/// Releases `input`, which is files or a table, under a policy to a place: profile, choose, apply, verify, publish.
/// With `overwrite` the release replaces one that is at the place, and only a release: any other file or folder there is refused.
///
/// # Errors
/// Any failure; the place then stays as it was.
pub async fn release(
    run: &Run,
    input: impl Into<Source>,
    policy: &PolicySource<'_>,
    place: &Place,
    overwrite: bool,
) -> Result<Released> {
    release_by(run, &input.into(), policy, Earlier::Nothing, place, overwrite).await
}

/// Releases `input` to a place under the policy and by the recoding of an earlier release;
/// nothing is searched. The public record states the day `released_on`, never that of the earlier
/// one.
///
/// # Errors
/// A policy error if this kind of recoding cannot be applied to other rows; an unmet error if the recoding does not hold for the
/// input; any other failure. The place then stays as it was.
pub async fn release_again(
    run: &Run,
    input: impl Into<Source>,
    earlier: &PrivateRecord,
    released_on: Option<String>,
    place: &Place,
    overwrite: bool,
) -> Result<Released> {
    let earlier = Earlier::Recoding(earlier);
    release_like(run, &input.into(), earlier, released_on, place, overwrite).await
}

/// The releases that another one follows.
#[derive(Debug, Clone, Default)]
pub struct Followed {
    /// Where they are, in the order in which they were published.
    pub releases: Vec<Place>,
    /// Whether it is right that fewer than half of the people come back, or have other rows.
    pub accept_new_people: bool,
    /// The share of the individuals that may be suppressed, from 0 to 1, instead of that of the policy.
    pub suppression_limit: Option<f64>,
}

/// Releases `input` to a place so that it is safe together with the releases of the same people before it. The policy is that of the last one; the key of pseudonyms is that of the first.
///
/// # Errors
/// A policy error if a record or the key is missing, or releases of this kind cannot be followed; an unmet error if people cannot be
/// found again, or too many of them could not be shown; any other failure. The place then stays as it was.
pub async fn release_after(
    run: &Run,
    input: impl Into<Source>,
    followed: &Followed,
    released_on: Option<String>,
    place: &Place,
    overwrite: bool,
) -> Result<Released> {
    let after = &followed.releases;
    let whole = |place: &Place| Ok::<_, Error>(place.absolute()?.out().clone());
    for earlier in after {
        if whole(earlier)? == whole(place)? {
            let why = "is one of those that are followed; choose another place";
            return Err(Error::policy(why).at(format!("--to {}", place.out())));
        }
    }
    if overwrite && is_of_a_chain(place, &run.stop) {
        let why = "holds a release of these people; if anybody has it, it counts, so give it with --after; if nobody has, delete it first";
        return Err(Error::policy(why).at(format!("--to {}", place.out())));
    }
    let with_key = |earlier: &Place| earlier.clone().with_key(place.named_key());
    let after: Vec<Place> = after.iter().map(with_key).collect();
    let chain = Chain::open(run, &after, followed).await?;
    let place = place.clone().with_key(chain.key_file());
    release_like(run, &input.into(), Earlier::Chain(&chain), released_on, &place, overwrite).await
}

/// Returns whether a place holds a release that others may follow.
fn is_of_a_chain(place: &Place, stop: &CancelToken) -> bool {
    let local = LocalRelease::read(place, Needed::Record, stop);
    let public = local.and_then(|local| verify_folder::checked_record(local.out()));
    public.is_ok_and(|public| public.history.is_some())
}

/// Releases under the policy of an earlier release.
async fn release_like(
    run: &Run,
    input: &Source,
    earlier: Earlier<'_>,
    released_on: Option<String>,
    place: &Place,
    overwrite: bool,
) -> Result<Released> {
    let (record, flag) = match earlier {
        Earlier::Nothing => return Err(Error::internal("release: nothing earlier")),
        Earlier::Recoding(record) => (record, "--recoding"),
        Earlier::Chain(chain) => (chain.last(), "--after"),
    };
    let spec = PolicySpec::parse(&record.policy)?;
    let spec = match earlier {
        Earlier::Chain(chain) => chain.policy(spec)?,
        _ => spec,
    };
    if let Some(why) = spec.method.kind().facts().why_no_other_rows {
        return Err(Error::policy(format!("`{}` {why}", spec.method.name)).at(flag));
    }
    if spec.population().is_some() {
        return Err(Error::policy(
            "the policy of the earlier release looks at a population, which a private record does not hold, so its recoding cannot \
             be repeated; release with --policy, which searches again",
        )
        .at(flag));
    }
    // Cells of text are typed anew each time; under levels that changes no label.
    let shows_regions = record.assignment.is_some() || matches!(earlier, Earlier::Chain(_));
    let has_types = input.has_types() || shows_regions;
    let columns = record.input_columns.iter().map(|column| column.expected(has_types)).collect();
    let spec = spec.released_on(released_on).like_earlier(columns);
    let files = FilesAndTrees { files: &record.hierarchies, trees: record.trees()? };
    let merged: BTreeSet<&str> = spec.merged_quasi().map(|(column, _)| column.name()).collect();
    if !files.trees.keys().map(String::as_str).eq(merged) {
        return Err(Error::unmet(
            "the private record of the earlier release lacks the tree of a merged column, or has one more",
        ));
    }
    let policy = PolicySource { spec: &spec, files: &files };
    release_by(run, input, &policy, earlier, place, overwrite).await
}

/// Releases by a search, or by the recoding of an `earlier` release: the stages that the [module](self) lists.
async fn release_by(
    run: &Run,
    input: &Source,
    policy: &PolicySource<'_>,
    earlier: Earlier<'_>,
    place: &Place,
    overwrite: bool,
) -> Result<Released> {
    let clock = Arc::new(PhaseClock::start(Arc::clone(&run.progress)));
    let mut target = place.claim(overwrite, input, &run.stop)?;
    let resources = Resources { spill: Some(target.spill()), ..run.resources.clone() };
    let run = &Run { resources, progress: Arc::<PhaseClock>::clone(&clock), ..run.clone() };
    let loaded = opened(run, input, policy, earlier).await?;
    let key = loaded.policy.spec.history().map(|_| KeyFile::of_place(place)).transpose()?;
    let pseudonyms = key.as_ref().map(|key| key.key().clone());
    let files = ReleasedFiles::new(target.release(), Arc::clone(&loaded.policy)).with_key(pseudonyms);
    let done = unpublished(run, input, policy, earlier, loaded, files).await?;

    let Unpublished { policy: resolved, public, made, before, searched, doubts, reads_population, .. } = done;
    let VerifiedRelease { content, judged, history, secret, costs, utility, remarks, .. } = made;
    let public = target.complete(public)?;
    place.check_not_input(input, &public)?;
    let labels = labels_for_all(&target.release(), &public);
    // Their digests are of all their bytes.
    fetch(input.objects(), &run.stop)?;
    let private = private_record(
        policy,
        &resolved,
        input,
        &public,
        &before,
        &judged,
        secret,
        searched,
        utility,
        match earlier {
            Earlier::Recoding(record) => Some(record.release.clone()),
            Earlier::Nothing | Earlier::Chain(_) => None,
        },
        history,
    )?;
    run.stop.check()?;
    run.progress.begin(Phase::Publish, 0);
    let new_key = key.map_or(Ok(None), KeyFile::keep)?;
    let mut warnings = target.publish(&public, &private, &run.stop)?;
    warnings.extend(done.warnings);
    warnings.extend(neighbours::warnings(place, &public, &run.stop));

    Ok(Released {
        public,
        private,
        before: before.sizes,
        after: judged.verified.sizes,
        costs,
        chosen: content.recoding.in_policy_order(&resolved),
        least_holders: least_holders(&resolved.requirements),
        reads_population,
        remarks,
        not_shown: done.not_shown,
        labels,
        sufficient: judged.sufficient,
        doubts,
        warnings,
        new_key,
        phases: clock.times(),
    })
}

#[cfg(test)]
#[path = "verifying_plans_tests.rs"]
mod verifying_plans_tests;
