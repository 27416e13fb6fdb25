//! The stages of a run from its input to rows that were verified, with their public record: the same for a folder of files
//! and for a stream of rows.

use std::sync::Arc;

use crate::class::ClassSizes;
use crate::engine::Run;
use crate::error::{Error, ErrorCode, Result};
use crate::input::infer_types::Typing;
use crate::input::{Loaded, PolicySource, Source, open, open_typed};
use crate::method::Outcome;
use crate::model::Requirement;
use crate::plural::plural;
use crate::policy::Policy;
use crate::release::doubts;
use crate::release::earlier_recoding;
use crate::release::histories::NotShown;
use crate::release::histories::chain::Chain;
use crate::release::histories::next_release;
use crate::release::kind::kind_row;
use crate::release::pipeline::{VerifiedRelease, carry_out, write_and_verify};
use crate::release::publish::make_record::{Before, policy_digest, public_record, search_record};
use crate::release::publish::partitioning::Partitioning;
use crate::release::publish::record::{InputColumn, PrivateRecord, PublicRecord, SearchRecord};
use crate::release::role_checks;
use crate::release::search::{limit, profile_classes, search_apart, unseen_values};
use crate::release::sink::Sink;

/// The advice for an input that does not fit the policy of a private record: edit the policy file,
/// not the record.
const POLICY_OF_EARLIER: &str = "the policy is that of the earlier release, whose input it fitted, so the load has changed: correct \
     the load, or edit the policy file and make a new first release with --policy";

/// A release that was verified and is not published yet.
pub(super) struct Unpublished<S> {
    /// What took the rows.
    pub(super) sink: S,
    pub(super) policy: Arc<Policy>,
    pub(super) public: PublicRecord,
    pub(super) made: VerifiedRelease,
    /// The input before recoding.
    pub(super) before: Before,
    /// How the recoding was found.
    pub(super) searched: SearchRecord,
    /// What is doubtful about the policy and its input, in whole sentences for users.
    pub(super) doubts: Vec<String>,
    /// What the publisher should know once the release is published, in whole sentences.
    pub(super) warnings: Vec<String>,
    /// Who is not shown, and why, if the release follows others.
    pub(super) not_shown: Option<NotShown>,
    /// Whether a model compared the classes with a population.
    pub(super) reads_population: bool,
}

/// What a release takes from releases before it.
#[derive(Clone, Copy)]
pub(super) enum Earlier<'a> {
    /// Nothing.
    Nothing,
    /// The recoding of another one, which is not looked at besides.
    Recoding(&'a PrivateRecord),
    /// The histories of the same people.
    Chain(&'a Chain),
}

/// Opens the input of a run, which may follow an `earlier` release.
///
/// # Errors
/// As [`open`].
pub(super) async fn opened(
    run: &Run,
    input: &Source,
    policy: &PolicySource<'_>,
    earlier: Earlier<'_>,
) -> Result<Loaded> {
    let loaded = open(run, input, policy).await;
    loaded.map_err(|error| of_load(error, earlier))
}

/// Releases the rows of an opened input into a sink, by a search or by the recoding of an `earlier` release: the stages that the
/// [module](super) lists, up to the public record.
///
/// # Errors
/// Any failure; the caller must then discard what the sink took.
pub(super) async fn unpublished<S: Sink>(
    run: &Run,
    input: &Source,
    policy: &PolicySource<'_>,
    earlier: Earlier<'_>,
    loaded: Loaded,
    mut sink: S,
) -> Result<Unpublished<S>> {
    let resolved = &loaded.policy;
    if let [table] = kind_row(resolved.kind).schemas(resolved, loaded.schema())?.as_slice() {
        Partitioning::of_schema(table, resolved.spec.output.partition_by())?;
    }
    role_checks::check_policy(run, &loaded).await?;
    let classes = profile_classes(run, &loaded).await;
    let classes = classes.map_err(|error| of_load(error, earlier))?;
    let doubts = doubts::doubts(run, &loaded, &classes).await?;
    let duplicates = role_checks::duplicates(run, &loaded, &classes).await?;
    role_checks::check_input(run, &loaded, &classes).await?;
    let before = Before {
        sizes: ClassSizes::of(&classes, classes.base()),
        columns: InputColumn::all(resolved, loaded.schema())?,
        rows: classes.total_rows(),
        individuals: resolved.individual().map(|_| classes.total_individuals()),
        unowned_rows: resolved.individual().map(|_| classes.unowned_rows()),
        limit: limit(resolved, &classes),
        duplicates,
    };

    let mut warnings = unseen_values(resolved, &classes);
    warnings.extend(resolved.requirements.iter().filter_map(Requirement::why_vacuous));
    let again = open_typed(run, input, policy, Typing::Plain);
    let mut not_shown = None;
    let (mut made, searched) = match earlier {
        Earlier::Nothing => {
            let (classes, method, outcome) = search_apart(run, resolved, classes).await?;
            let searched = search_record(resolved, method, &outcome);
            (write_and_verify(run, &loaded, classes, outcome, again, &mut sink).await?, searched)
        }
        Earlier::Recoding(record) => {
            let outcome = earlier_recoding::apply_again(run, &loaded, &classes, record)?;
            let searched = search_record(resolved, &record.search.method, &outcome);
            (write_and_verify(run, &loaded, classes, outcome, again, &mut sink).await?, searched)
        }
        Earlier::Chain(chain) => {
            let next = next_release::plan(run, &loaded, classes, chain).await?;
            not_shown = Some(next.not_shown);
            let made = carry_out(run, &loaded, next.plan, again, &mut sink, Some(next.continued)).await?;
            let history = made.history.as_ref().ok_or_else(|| {
                Error::policy("the policy has no `[history]`, without which no release follows others")
                    .at("--after")
            })?;
            chain.check_record(run, &loaded, history).await?;
            let outcome = Outcome { best: Vec::new(), nodes: None, evaluated: 0, proven: false, bound: None };
            (made, search_record(resolved, &resolved.spec.method.name, &outcome))
        }
    };
    if let (Some(history), Some(key)) = (made.history.take(), sink.pseudonym_key()) {
        if history.shown_without_person > 0 {
            warnings.push(format!(
                "{} no person by `{}`, so no release can follow it; leave them out of the input",
                plural(history.shown_without_person, "row of it names", "rows of it name"),
                history.person.name
            ));
        }
        made.history = Some(history.of_policy(policy_digest(policy, resolved)?, key)?);
    }
    warnings.append(&mut made.warnings);
    input.still_the_same(run)?;
    loaded.population.as_ref().map_or(Ok(()), |population| population.still_the_same(run))?;

    let verified = &made.judged.verified;
    let read_again = verified.rows + verified.suppressed_rows.unwrap_or_default();
    if read_again != before.rows {
        return Err(Error::unmet(
            "the input changed during the run: it has another number of rows than it had; nothing was published",
        ));
    }
    let tables = sink.records(&made.content.tables)?;
    let public =
        public_record(resolved, made.content.recoding.clone(), tables, &made.judged, made.history.as_ref())?;
    if public.rows() != verified.rows {
        return Err(Error::internal("release: other rows were written than verified"));
    }
    Ok(Unpublished {
        sink,
        policy: Arc::clone(resolved),
        public,
        made,
        before,
        searched,
        doubts,
        warnings,
        not_shown,
        reads_population: loaded.population.is_some(),
    })
}

/// Returns the error of an input that does not fit the policy. That of an `earlier` release fitted another input, so the
/// columns have changed.
fn of_load(error: Error, earlier: Earlier<'_>) -> Error {
    if matches!(earlier, Earlier::Nothing) {
        return error;
    }
    let has_no_code = error.code() == Error::policy("").code();
    let error = error.advised(POLICY_OF_EARLIER);
    if has_no_code { error.coded(ErrorCode::OtherColumns) } else { error }
}
