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
//! public_record, Staging  publish: the records, and the folder in its place
//! ```
//! [`release`] is the whole pipeline in one function. Its middle, from the recoding that was found to
//! verified rows (`pipeline.rs`), is shared with `anonymize()` in SQL: the one has a folder of files as its
//! sink, the other the engine's spill file (`verified_rows.rs`). The other entry points stop earlier:
//! [`profile_classes()`] profiles, [`search()`] chooses, [`check_release()`] verifies an existing folder.

pub mod apply;
mod check_files;
mod check_models;
mod check_record;
pub(crate) mod doubts;
mod earlier_recoding;
pub(crate) mod interval_columns;
pub mod kind;
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
pub(crate) mod verified_rows;
mod verify_folder;
pub(crate) mod written_columns;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use publish::make_record::risks;
pub use publish::place::Place;
pub(crate) use search::{ask, can_be_searched, why_nothing};
pub use search::{compare, limit, profile_classes, search, search_minimal};
use search::{search_apart, unseen_values};
pub(crate) use search_progress::nodes_of;
pub use verify_folder::{Checked, check_release};

use crate::class::ClassSizes;
use crate::engine::phase_clock::PhaseClock;
use crate::engine::{PhaseTime, Resources, Run};
use crate::error::{Code, Error, Result};
use crate::input::infer_types::Typing;
use crate::input::population::PopulationTable;
use crate::input::{Input, PolicySource, open, open_typed};
use crate::model::{Requirement, least_holders};
use crate::policy::{FilesAndTrees, PolicySpec};
use crate::progress::Phase;
use crate::release::pipeline::{VerifiedRelease, write_and_verify};
use crate::release::publish::make_record::{Before, private_record, public_record, search_record};
use crate::release::publish::neighbours;
use crate::release::publish::record::{InputColumn, PrivateRecord, PublicRecord, RecodingRecord};
use crate::release::publish::released_files::ReleasedFiles;
use crate::release::publish::staging::Staging;
use crate::verify::sufficient::Sufficient;

/// The advice for an input that does not fit the policy of a private record: edit the policy file,
/// not the record.
const POLICY_OF_EARLIER: &str = "the policy is that of the earlier release, whose input it fitted, so the load has changed: correct \
     the load, or edit the policy file and make a new first release with --policy";

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
    /// Whether a model compared the classes with a population.
    pub reads_population: bool,
    /// What the publisher should know of what the classes show, in whole sentences.
    pub remarks: Vec<String>,
    /// The columns that each single individuals out by themselves.
    pub sufficient: Sufficient,
    /// What is doubtful about the policy and its input, in whole sentences for users.
    pub doubts: Vec<String>,
    /// Failures after the release was in its place, and values that a requirement names in vain, in
    /// whole sentences for users.
    pub warnings: Vec<String>,
    /// The phases of the run, in their order.
    pub phases: Vec<PhaseTime>,
}

/// Releases `input` under a policy to a place: profile, choose, apply, verify, publish.
///
/// # Errors
/// Any failure; the place then stays as it was.
pub async fn release(
    run: &Run,
    input: &Input,
    source: &PolicySource<'_>,
    place: &Place,
    overwrite: bool,
) -> Result<Released> {
    release_by(run, input, source, None, place, overwrite).await
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
    input: &Input,
    earlier: &PrivateRecord,
    released_on: Option<String>,
    place: &Place,
    overwrite: bool,
) -> Result<Released> {
    let spec = PolicySpec::parse(&earlier.policy)?;
    if let Some(why) = spec.method.kind().facts().why_no_other_rows {
        return Err(Error::policy(format!("`{}` {why}", spec.method.name)).at("--recoding"));
    }
    if spec.population().is_some() {
        return Err(Error::policy(
            "the policy of the earlier release looks at a population, which a private record does not hold, so its recoding cannot \
             be repeated; release with --policy, which searches again",
        )
        .at("--recoding"));
    }
    // Cells of text are typed anew each time; under levels that changes no label.
    let has_types = input.format.has_types() || earlier.assignment.is_some();
    let columns = earlier.input_columns.iter().map(|column| column.expected(has_types)).collect();
    let spec = spec.released_on(released_on).like_earlier(columns);
    let files = FilesAndTrees { files: &earlier.hierarchies, trees: earlier.trees()? };
    let merged: BTreeSet<&str> = spec.merged_quasi().map(|(column, _)| column.name()).collect();
    if !files.trees.keys().map(String::as_str).eq(merged) {
        return Err(Error::unmet(
            "the private record of the earlier release lacks the tree of a merged column, or has one more",
        ));
    }
    let source = PolicySource { spec: &spec, text: &earlier.policy, files: &files };
    release_by(run, input, &source, Some(earlier), place, overwrite).await
}

/// Returns the error of an input that does not fit the policy of the earlier release: another input
/// did, so the columns have changed.
fn of_changed_load(error: Error) -> Error {
    let has_no_code = error.code() == Error::policy("").code();
    let error = error.advised(POLICY_OF_EARLIER);
    if has_no_code { error.coded(Code::OtherColumns) } else { error }
}

/// Releases by a search, or by the recoding of an `earlier` release: the stages that the [module](self) lists.
async fn release_by(
    run: &Run,
    input: &Input,
    source: &PolicySource<'_>,
    earlier: Option<&PrivateRecord>,
    place: &Place,
    overwrite: bool,
) -> Result<Released> {
    let clock = Arc::new(PhaseClock::start(Arc::clone(&run.progress)));
    let run = &Run { progress: Arc::<PhaseClock>::clone(&clock), ..run.clone() };
    let staging = Staging::begin(place, overwrite, input)?;
    let resources = Resources { spill: Some(staging.spill()), ..run.resources.clone() };
    let spilling = Run { resources, ..run.clone() };

    let loaded = open(&spilling, input, source.spec, source.files).await;
    let loaded = match earlier {
        None => loaded?,
        Some(_) => loaded.map_err(of_changed_load)?,
    };
    let policy = &loaded.policy;
    role_checks::check_policy(run, &loaded).await?;
    let classes = profile_classes(run, &loaded).await;
    let classes = match earlier {
        None => classes?,
        Some(_) => classes.map_err(of_changed_load)?,
    };
    let doubts = doubts::doubts(run, &loaded, &classes).await?;
    let duplicates = role_checks::duplicates(run, &loaded, &classes).await?;
    role_checks::check_input(run, &loaded, &classes).await?;
    let before = Before {
        sizes: ClassSizes::of(&classes, classes.base()),
        columns: InputColumn::all(policy, loaded.schema())?,
        rows: classes.total_rows(),
        individuals: policy.individual().map(|_| classes.total_individuals()),
        unowned_rows: policy.individual().map(|_| classes.unowned_rows()),
        limit: limit(policy, &classes),
        duplicates,
    };

    let (classes, method, outcome) = match earlier {
        None => {
            let (classes, method, outcome) = search_apart(run, policy, classes).await?;
            (classes, method.to_owned(), outcome)
        }
        Some(record) => {
            let outcome = earlier_recoding::apply_again(run, &loaded, &classes, record)?;
            (classes, record.search.method.clone(), outcome)
        }
    };
    let searched = search_record(policy, &method, &outcome);
    let mut notices = unseen_values(policy, &classes);
    notices.extend(policy.requirements.iter().filter_map(Requirement::why_vacuous));
    let again = open_typed(&spilling, input, source.spec, source.files, Typing::Plain);
    let mut files = ReleasedFiles::new(staging.release(), &policy.requirements);
    let made = write_and_verify(run, &loaded, classes, outcome, again, &mut files).await?;
    input.still_the_same()?;
    loaded.population.as_ref().map_or(Ok(()), PopulationTable::still_the_same)?;

    let VerifiedRelease { content, judged, secret, costs, utility, remarks, warnings: of_plan } = made;
    notices.extend(of_plan);
    let tables = files.records(&content.tables)?;
    let public = public_record(policy, content.recoding.clone(), tables, &judged)?;
    if public.rows() != judged.verified.rows {
        return Err(Error::internal("release: other rows were written than verified"));
    }
    staging.write_record(&public)?;
    let private = private_record(
        source,
        policy,
        input,
        &public,
        &before,
        &judged,
        secret,
        searched,
        utility,
        earlier.map(|record| record.release.clone()),
    )?;
    run.stop.check()?;
    run.progress.begin(Phase::Publish, 0);
    let mut warnings = staging.publish(&private)?;
    warnings.extend(notices);
    warnings.extend(neighbours::warnings(place, &public));

    let least_holders = least_holders(&policy.requirements);
    Ok(Released {
        public,
        private,
        before: before.sizes,
        after: judged.verified.sizes,
        costs,
        chosen: content.recoding.in_policy_order(policy),
        least_holders,
        reads_population: loaded.population.is_some(),
        remarks,
        sufficient: judged.sufficient,
        doubts,
        warnings,
        phases: clock.times(),
    })
}

#[cfg(test)]
#[path = "verifying_plans_tests.rs"]
mod verifying_plans_tests;
