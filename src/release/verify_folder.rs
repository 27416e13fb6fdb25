//! A folder judged as a release: its files, its schema, its rows, and with the input the comparison
//! of all rows.

use std::collections::BTreeMap;
use std::path::Path;

use datafusion::prelude::DataFrame;

use crate::engine::Run;
use crate::error::{Error, ErrorKind, Result};
use crate::input::infer_types::Typing;
use crate::input::{Loaded, PolicySource, Source, open_typed};
use crate::model::{Counted, Quantity, Requirement};
use crate::policy::{Files, FilesAndTrees, PolicySpec};
use crate::release::check_files::{check_folders, check_listing, check_names, check_table, read_tables};
use crate::release::check_models::{self, can_be_judged_alone};
use crate::release::check_record::{self, refused};
use crate::release::histories::recorded;
use crate::release::kind::{Content, Extent, Folder, Judged, Records, kind_row, kind_row_of_record};
use crate::release::merged_trees;
use crate::release::publish::key_file::KeyFile;
use crate::release::publish::local_release::LocalRelease;
use crate::release::publish::place::Place;
use crate::release::publish::record::{
    FileRecord, HistoryRecord, PrivateRecord, PublicRecord, are_same_models, compared_with, parameters_text,
};
use crate::release::publish::{order, record};
use crate::verify::Verified;
use crate::verify::as_is::UniqueTogether;
use crate::verify::sufficient::Sufficient;

/// The result of checking a release.
#[derive(Debug)]
pub struct Checked {
    /// The release's record.
    pub public: PublicRecord,
    /// The counts of the verification.
    pub verified: Verified,
    /// The individuals that are unique on all released columns together; without the input, rows.
    pub unique: UniqueTogether,
    /// The columns that each single individuals out by themselves.
    pub sufficient: Sufficient,
    /// Whether the release was compared with the input.
    pub with_input: bool,
    /// Whether the files are, byte for byte, what this version writes for their rows. `false` only
    /// for a release of an earlier version, whose writer may differ.
    pub with_bytes: bool,
}

/// What a release is compared with.
#[derive(Clone, Copy)]
struct Against<'a> {
    input: &'a Source,
    spec: &'a PolicySpec,
    /// The hierarchy files.
    files: &'a dyn Files,
    private: Option<&'a PrivateRecord>,
    place: Option<&'a Place>,
}

/// Checks a release: its record, files and rows; with `input` also that the rows are
/// those of the input under the policy (`policy` if given, else the copy in the private record).
///
/// # Errors
/// An unmet error that says what is wrong, a data error when it cannot be checked.
pub async fn check_release(
    run: &Run,
    release: &LocalRelease,
    input: Option<&Source>,
    policy: Option<&PolicySource<'_>>,
) -> Result<Checked> {
    let checked = check_local(run, release, input, policy).await;
    checked.map_err(|error| release.named(error))
}

async fn check_local(
    run: &Run,
    release: &LocalRelease,
    input: Option<&Source>,
    policy: Option<&PolicySource<'_>>,
) -> Result<Checked> {
    let out = release.out();
    if let (false, Some(hint)) = (out.exists(), release.unfinished()) {
        return Err(Error::data(format!("{}: no such folder; {hint}", out.display())));
    }
    let public = checked_record(out)?;
    let private = input.map(|_| release.private_record(&public)).transpose()?.flatten();
    let private = private.as_ref();
    let spec = private.map(|private| PolicySpec::parse(&private.policy)).transpose()?;
    let own = private.zip(spec.as_ref()).map(|(p, spec)| PolicySource { spec, files: &p.hierarchies });
    let compared = |input| {
        let PolicySource { spec, files } = policy.copied().or(own).ok_or_else(|| {
            let hint = release.unfinished().map_or(String::new(), |hint| format!("; {hint}"));
            Error::policy(format!(
                "the private record {} is missing, damaged or of another release; name it with --private, or give the policy with --policy{hint}",
                release.private_place()
            ))
        })?;
        Ok(Against { input, spec, files, private, place: release.place() })
    };
    let compared = input.map(compared).transpose()?;
    let models = recorded_models(&public)?;
    let kind = kind_row_of_record(&public);
    let folder = Folder { out, public: &public, models: &models };
    kind.check_record(&folder)?;
    let (judged, with_bytes) = match compared {
        Some(compared) => against(run, &folder, compared).await?,
        None => kind.judge_alone(run, &folder).await.map_err(of_columns)?,
    };
    let Judged { verified, classes, unique, sufficient, .. } = judged;
    input.map_or(Ok(()), |input| input.still_the_same(run))?;
    if (verified.rows, classes) != (public.rows(), public.classes) {
        return Err(refused("the number of rows or classes differs from the record"));
    }
    // The rows alone do not name their individuals, unless each has exactly one.
    if input.is_some() || public.individuals.is_none() || public.recoding.has_row_per_individual() {
        check_counts(&public, &verified, input.is_some())?;
        if public.unique != unique {
            return Err(refused("the unique share on all columns differs from the record"));
        }
    } else {
        check_record::check_individuals(&public, &models, &verified)?;
    }
    public.statement.iter().try_for_each(|statement| statement.check(&public))?;
    Ok(Checked { public, verified, unique, sufficient, with_input: input.is_some(), with_bytes })
}

/// Returns the public record of a folder that holds the files which it describes, and nothing else.
///
/// # Errors
/// An unmet error that says what is wrong, a data error when something cannot be read.
pub(super) fn checked_record(out: &Path) -> Result<PublicRecord> {
    let public = PublicRecord::read(out)?;
    check_record::check_words(&public)?;
    check_names(&public)?;
    if public.tables.iter().any(|table| table.folder.is_some()) {
        check_folders(out, &public.tables)?;
    }
    for table in &public.tables {
        let files = public.files_of(table, out)?;
        check_listing(&files)?;
        for (part, file) in files.parts.iter().zip(&table.files) {
            if FileRecord::of(&files.folder, &part.name, part.rows)? != *file {
                return Err(refused(format!("{} is not the file that the record describes", part.shown())));
            }
        }
    }
    Ok(public)
}

/// Returns the error of judging a folder: a column that identifies individuals is the fault of the policy where it is
/// released, and of the folder later.
fn of_columns(error: Error) -> Error {
    if error.kind() == ErrorKind::Policy { refused(error) } else { error }
}

/// Checks the record's sizes against the counts.
fn check_counts(public: &PublicRecord, verified: &Verified, with_input: bool) -> Result<()> {
    let counted_individuals = verified.sizes.individuals();
    if public.individuals.is_some_and(|individuals| individuals != counted_individuals)
        || !check_record::has_risks_of(public, &verified.sizes)?
        || verified.homogeneous != public.homogeneous
    {
        return Err(refused("individuals, risks or homogeneous classes differ from the record"));
    }
    for (model, reached) in public.models.iter().zip(verified.recorded()) {
        let requirement = model.requirement()?;
        if !with_input && !can_be_judged_alone(&requirement, public) {
            let least = verified.sizes.min().unwrap_or(0);
            if !check_models::is_reached(model, &requirement, reached, least, Counted::Rows) {
                return Err(refused(format!("the record states a value of {} that cannot be", model.text())));
            }
            continue;
        }
        if reached.and_then(Quantity::finite).map(record::recorded) != model.reached.map(record::recorded) {
            return Err(refused(format!("{} reaches another value than the recorded one", model.model)));
        }
    }
    Ok(())
}

/// Judges tables against the input; returns also whether their files are what this version writes.
async fn against(
    run: &Run,
    folder: &Folder<'_>,
    Against { input, spec, files, private, place }: Against<'_>,
) -> Result<(Judged, bool)> {
    let &Folder { out, public, models } = folder;
    let loaded = opened_again(run, input, &PolicySource { spec, files }, private).await?;
    let policy = &loaded.policy;
    merged_trees::check_holders(&loaded.session, &loaded.table, policy, &run.stop).await?;
    if !are_same_models(models, &policy.requirements) {
        return Err(refused("the models of the record are not those of the policy"));
    }
    if public.recoding.kind() != Some(policy.kind) {
        let method = &policy.spec.method.name;
        return Err(refused(format!("the record describes another kind of recoding than `{method}` makes")));
    }
    if public.layout != policy.spec.output.layout() {
        return Err(refused("the files are laid out otherwise than the policy says"));
    }
    let written = read_tables(&loaded.session, out, public)?;
    let records = Records { public, private, place, written: &written };
    let content = kind_row(policy.kind).read(policy, loaded.schema(), &records).await?;
    if content.tables.len() != public.tables.len() {
        return Err(refused("the tables of the record are not those of the policy"));
    }
    let mut with_bytes = true;
    for (planned, table) in content.tables.iter().zip(&public.tables) {
        with_bytes &= check_table(run, out, public, table, &planned.schema, &planned.footer(models))?;
    }
    let planned = content.tables.iter().map(|table| (table.folder, &table.columns, &table.partition_by));
    let recorded =
        public.tables.iter().map(|table| (table.folder.as_deref(), &table.columns, &table.partition_by));
    if !planned.eq(recorded) || content.recoding != public.recoding {
        return Err(refused("the columns of the record are not those of the policy"));
    }
    let held = private.and_then(|private| private.history.as_ref());
    let is_held = held.map_or(Ok(true), |held| public.names_rows(held))?;
    if policy.spec.history().is_some() != public.history.is_some() || !is_held {
        return Err(refused(
            "the record does not say of releases that may follow what the policy and the private record say",
        ));
    }
    if let (Some(held), Some(place)) = (held, place) {
        check_history(run, &loaded, &content, &written, held, place).await?;
    }
    if policy.individual().is_some() != public.individuals.is_some() {
        return Err(refused("the record counts another unit than the policy"));
    }
    if let Some(population) = &loaded.population {
        population.check_members(&policy.requirements, &loaded.table).await?;
    }
    let judged = content.judge.judge(run, &loaded, written, Extent::Public).await.map_err(of_columns)?;
    if public.statement.as_ref().is_some_and(|statement| !statement.follows_from(policy)) {
        return Err(refused("the record's statement is not that of the policy"));
    }
    for (planned, table) in content.tables.into_iter().zip(&public.tables) {
        let classes = order::Classes::InOrder(planned.ordered_by);
        order::check(&public.files_of(table, out)?, &classes, &run.stop)?;
    }
    Ok((judged, with_bytes))
}

/// Checks what a private record holds of the rows, where the key of their pseudonyms is.
///
/// # Errors
/// An unmet error if the input's rows are others.
async fn check_history(
    run: &Run,
    loaded: &Loaded,
    content: &Content,
    written: &[DataFrame],
    held: &HistoryRecord,
    place: &Place,
) -> Result<()> {
    let key = match KeyFile::of_release(place, &held.key) {
        Err(error) if place.named_key().is_some() => return Err(error),
        Err(_) => return Ok(()),
        Ok(key) => key,
    };
    let first = written.first().cloned();
    let again = recorded(run, loaded, content, first, key.key(), held.continued()).await?;
    let again = again.map(|again| again.of_policy(held.policy.clone(), key.key())).transpose()?;
    match again.as_ref() == Some(held) {
        true => Ok(()),
        false => Err(refused("what the private record holds of the rows is not what the input says")),
    }
}

/// Opens the input of a release by the second way of reading it, with the merged trees of its private record.
///
/// # Errors
/// Those of [`open_typed`]; an unmet error if the record has other trees than the policy.
pub(super) async fn opened_again(
    run: &Run,
    input: &Source,
    policy: &PolicySource<'_>,
    private: Option<&PrivateRecord>,
) -> Result<Loaded> {
    input.check_lines(policy.spec.csv())?;
    let trees = private.map_or(Ok(BTreeMap::new()), PrivateRecord::followed_trees)?;
    let files = FilesAndTrees { files: policy.files, trees };
    let loaded =
        open_typed(run, input, &PolicySource { spec: policy.spec, files: &files }, Typing::Plain).await?;
    private.map_or(Ok(()), |private| private.check_trees(&loaded.policy))?;
    Ok(loaded)
}

/// Returns the models that a record promises.
///
/// # Errors
/// An unmet error when what it says of them cannot be.
pub(super) fn recorded_models(public: &PublicRecord) -> Result<Vec<Requirement>> {
    let models = public.models.iter().map(|recorded| {
        let requirement = recorded.requirement()?;
        let model = &requirement.model;
        let agrees = record::recorded(model.required().to_f64()) == record::recorded(recorded.required)
            && parameters_text(&**model) == recorded.parameters
            && model.needs().reads_column() == recorded.sensitive.is_some()
            && check_models::is_looked_at(recorded, &requirement, public)
            && recorded.compared_with.as_deref() == compared_with(&requirement);
        if !agrees {
            return Err(refused(format!("the record contradicts itself on {}", recorded.model)));
        }
        Ok(requirement)
    });
    let models: Vec<_> = models.collect::<Result<_>>()?;
    if models.is_empty() {
        return Err(refused("the record names no model"));
    }
    check_models::check_promise(&models)?;
    Ok(models)
}
