//! A folder judged as a release: its files, its schema, its rows, and with the input the comparison
//! of all rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::Schema;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::prelude::DataFrame;

use crate::class::Budget;
use crate::engine::{PoolBudget, Rules, Run};
use crate::error::{Error, Kind, Result};
use crate::input::infer_types::Typing;
use crate::input::{Input, Loaded, open_typed};
use crate::model::{Counted, Quantity, Requirement, SensitiveColumn};
use crate::policy::{Files, FilesAndTrees, Policy, PolicySpec};
use crate::release::check_files::{check_bytes, check_files, check_listing, footer_of, read_parts};
use crate::release::check_models::{self, can_be_judged_alone};
use crate::release::check_record::{self, refused};
use crate::release::concrete_recoding::expected;
use crate::release::publish::make_record::{column_records, recoding_record};
use crate::release::publish::place::Place;
use crate::release::publish::record::{
    FileRecord, PrivateRecord, PublicRecord, RecodingRecord, TableRecord, are_same_models, compared_with,
    models_text, parameters_text,
};
use crate::release::publish::write::{self, Part};
use crate::release::publish::{digest, order, record, staging};
use crate::release::released_labels::released_labels;
use crate::release::released_recoding::{
    self, GENERALIZED, Shown, field_label, labelled_field, released_schema,
};
use crate::release::written_columns::as_texts;
use crate::release::{groups, merged_trees, noise, released_regions, role_checks};
use crate::role::Role;
use crate::verify::as_is::{ReleasedRows, UniqueTogether};
use crate::verify::noise::{NoiseKey, check_shown};
use crate::verify::sufficient::Sufficient;
use crate::verify::{Expected, Verified, expected::preferences_of, verify};

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
pub(super) struct Against<'a> {
    pub(super) input: &'a Input,
    pub(super) spec: &'a PolicySpec,
    /// The hierarchy files.
    pub(super) files: &'a dyn Files,
    pub(super) private: Option<&'a PrivateRecord>,
}

/// What was found in the rows of a release.
pub(super) struct Judged {
    pub(super) verified: Verified,
    /// The number of classes, or of groups.
    pub(super) classes: u64,
    pub(super) unique: UniqueTogether,
    pub(super) sufficient: Sufficient,
    /// Whether the files are what this version writes.
    pub(super) with_bytes: bool,
}

/// Checks the release at `place`: its record, files and rows; with `input` also that the rows are
/// those of the input under the policy (`policy` if given, else the copy in the private record).
///
/// # Errors
/// An unmet error that says what is wrong, a data error when it cannot be checked.
pub async fn check_release(
    run: &Run<'_>,
    place: &Place,
    input: Option<&Input>,
    policy: Option<(&PolicySpec, &dyn Files)>,
) -> Result<Checked> {
    let out = place.out();
    if let (false, Some(hint)) = (out.exists(), staging::unfinished(out)) {
        return Err(Error::data(format!("{}: no such folder; {hint}", out.display())));
    }
    let public = PublicRecord::read(out)?;
    check_record::check_words(&public)?;
    if public.recoding.makes_groups() {
        groups::check::check_folders(out)?;
    }
    for table in &public.tables {
        let (folder, parts) = (table.path(out), table.parts());
        check_listing(&folder, &parts)?;
        for file in &table.files {
            if FileRecord::of(&folder, &file.name, file.rows)? != *file {
                return Err(refused(format!("{} is not the file that the record describes", file.name)));
            }
        }
    }
    let private = input.map(|_| place.private_record(&public)).transpose()?.flatten();
    let private = private.as_ref();
    let spec = private.map(|private| PolicySpec::parse(&private.policy)).transpose()?;
    let own = private.zip(spec.as_ref()).map(|(p, spec)| (spec, &p.hierarchies as &dyn Files));
    let compared = |input| {
        let (spec, files) = policy.or(own).ok_or_else(|| {
            let hint = staging::unfinished(out).map_or(String::new(), |hint| format!("; {hint}"));
            Error::policy(format!(
                "the private record {} is missing, damaged or of another release; name it with --private, or give the policy with --policy{hint}",
                place.private().display()
            ))
        })?;
        Ok(Against { input, spec, files, private })
    };
    let compared = input.map(compared).transpose()?;
    let models = recorded_models(&public)?;
    let makes_groups = public.recoding.makes_groups();
    let Judged { verified, classes, unique, sufficient, with_bytes } = match compared {
        _ if makes_groups => groups::check::judge(run, out, &public, &models, compared).await?,
        None => alone(run, out, &public).await?,
        Some(compared) => against(run, out, &public, compared).await?,
    };
    input.map_or(Ok(()), Input::still_the_same)?;
    if (verified.rows, classes) != (public.rows(), public.classes) {
        return Err(refused("the number of rows or classes differs from the record"));
    }
    // The rows alone do not name their individuals, unless each has exactly one.
    if input.is_some() || public.individuals.is_none() || makes_groups {
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

/// Judges rows by themselves: the models of the record on the classes of its quasi-identifiers. Where
/// individuals are counted these are the models that [bound](crate::model::ClassModel::bounded_by_rows) them
/// by rows; a model without one is not judged and reaches `None`, nor is one that looks at the whole input.
async fn alone(run: &Run<'_>, out: &Path, public: &PublicRecord) -> Result<Judged> {
    let (models, parts) = (recorded_models(public)?, &parts_of(public));
    let mechanism = check_record::check_noise(public, &models)?;
    let (schema, footer) = (recorded_schema(out, public, parts)?, write::footer(&models_text(&models)));
    check_files(out, parts, &schema, &footer, &public.tool)?;
    let with_bytes = check_bytes(run, out, files_of(public), schema.clone(), &footer, &public.tool)?;
    let session = run.resources.session(Rules::new())?;
    let written = read_parts(&session, out, parts)?;
    if let Some(mechanism) = &mechanism {
        check_shown(&written, mechanism, run.stop).await?;
    }
    let output = as_texts(written, &public.recoding.written_columns()?)?;
    let generalizers = check_record::generalizers(public, &schema, &output).await?;
    let columns = public.columns().map(|column| column.name.clone()).zip(generalizers);
    let bounding = |requirement: Requirement| {
        let bounds_labels = check_models::values_bound_labels(&requirement);
        let is_judged = bounds_labels || can_be_judged_alone(&requirement, public);
        let model = match public.individuals {
            _ if requirement.model.needs().compares() || !is_judged => None,
            None => Some(requirement.model),
            Some(_) => requirement.model.bounded_by_rows(),
        };
        let as_they_are = |column: SensitiveColumn| if bounds_labels { column.at_level(0) } else { column };
        model.map(|model| {
            Requirement::new(model, requirement.sensitive.map(as_they_are)).over(requirement.quasi)
        })
    };
    let models: Vec<Option<Requirement>> = models.into_iter().map(bounding).collect();
    let judged: Vec<bool> = models.iter().map(Option::is_some).collect();
    let models: Vec<Requirement> = models.into_iter().flatten().collect();
    let sensitive = public.columns().filter(|column| column.role == Role::Sensitive.word());
    let expected = Expected {
        columns: columns.collect(),
        assignment: None,
        requirements: &models,
        sensitive: sensitive.map(|column| column.name.clone()).collect(),
        preferences: Vec::new(),
        population: None,
        individual: None,
        suppression_limit: None,
    };
    let mut verified = verify(&session, output.clone(), None, &expected, run.stop).await?;
    let mut reached = std::mem::take(&mut verified.reached).into_iter();
    let of_model = |is_judged: bool| if is_judged { reached.next().flatten() } else { None };
    verified.reached = judged.into_iter().map(of_model).collect();
    let requirements = &recorded_models(public)?;
    let expected = Expected { requirements, preferences: preferences_of(requirements), ..expected };
    let rows = ReleasedRows::new(&session, output, None, &expected, &verified, run.stop).await?;
    if public.individuals.is_none() {
        verified.reached_among_released = rows.reached_among_released().await?;
        check_models::check_among_released(expected.requirements, &verified)?;
    } else {
        check_models::check_shares(public, &rows.share_over_subsets().await?)?;
    }
    let unique = rows.unique_together().await?;
    let sufficient = rows.sufficient(&unique).await?;
    order::check(out, parts, &order::Classes::Together(public.written_quasi()?), run.stop)?;
    Ok(Judged { classes: verified.sizes.classes(), verified, unique, sufficient, with_bytes })
}

/// Judges rows against the input's rows.
async fn against(
    run: &Run<'_>,
    out: &Path,
    public: &PublicRecord,
    Against { input, spec, files, private }: Against<'_>,
) -> Result<Judged> {
    let parts = &parts_of(public);
    input.check_lines(spec.csv())?;
    let trees = private.map_or(Ok(BTreeMap::new()), PrivateRecord::followed_trees)?;
    let loaded = open_typed(run, input, spec, &FilesAndTrees { files, trees }, Typing::Plain).await?;
    let policy = &loaded.policy;
    private.map_or(Ok(()), |private| private.check_trees(policy))?;
    merged_trees::check_holders(&loaded.session, &loaded.table, policy, run.stop).await?;
    let models = recorded_models(public)?;
    if !are_same_models(&models, &policy.requirements) {
        return Err(refused("the models of the record are not those of the policy"));
    }
    let session = run.resources.session(Rules::new())?;
    let written = read_parts(&session, out, parts)?;
    let output = as_texts(written.clone(), &public.recoding.written_columns()?)?;
    let shown = recorded_shown(policy, public, &output, private).await?;
    let fields = match &shown {
        Shown::Levels { generalizers, .. } => released_recoding::fields(policy, generalizers),
        Shown::Regions { .. } | Shown::Noise { .. } => released_regions::fields(policy),
    };
    let schema = Arc::new(released_schema(policy, loaded.schema(), &fields)?);
    let footer = write::footer(&models_text(&models));
    check_files(out, parts, &schema, &footer, &public.tool)?;
    let with_bytes = check_bytes(run, out, files_of(public), Schema::clone(&schema), &footer, &public.tool)?;
    check_columns(policy, public, &schema, &shown)?;
    if policy.individual().is_some() != public.individuals.is_some() {
        return Err(refused("the record counts another unit than the policy"));
    }
    let memory: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "assignment"));
    let expected = expected(policy, policy, &shown, &memory)?;
    let (verified, unique, sufficient) = match &shown {
        Shown::Noise { mechanism, key, .. } => {
            let judged = noise::judge(run, written, &loaded, expected, mechanism, *key).await?;
            (judged.0, judged.1, Sufficient::default())
        }
        Shown::Levels { .. } | Shown::Regions { .. } => judge(run, output, &loaded, expected).await?,
    };
    if public.statement.as_ref().is_some_and(|statement| !statement.follows_from(policy)) {
        return Err(refused("the record's statement is not that of the policy"));
    }
    let quasi = policy.quasi.iter().flat_map(|quasi| quasi.written_names(policy)).collect();
    order::check(out, parts, &order::Classes::InOrder(quasi), run.stop)?;
    Ok(Judged { classes: verified.sizes.classes(), verified, unique, sufficient, with_bytes })
}

/// Judges rows whose classes show what their rows generalize to, or regions or centroids of them.
async fn judge(
    run: &Run<'_>,
    output: DataFrame,
    loaded: &Loaded,
    mut expected: Expected<'_>,
) -> Result<(Verified, UniqueTogether, Sufficient)> {
    let policy = &loaded.policy;
    if let Some(population) = &loaded.population {
        population.check_members(&policy.requirements, &loaded.table).await?;
        expected.population = Some(population.for_verification());
    }
    let (session, table) = (&loaded.session, || Some(loaded.table.clone()));
    let mut verified = verify(session, output.clone(), table(), &expected, run.stop).await?;
    let rows = ReleasedRows::new(session, output, table(), &expected, &verified, run.stop).await?;
    verified.reached_among_released = rows.reached_among_released().await?;
    role_checks::check_released(policy, &rows).await.map_err(|error| match error.kind() {
        Kind::Policy => refused(error),
        _ => error,
    })?;
    let unique = rows.unique_together().await?;
    let sufficient = rows.sufficient(&unique).await?;
    Ok((verified, unique, sufficient))
}

/// Returns the files of the only table.
fn files_of(public: &PublicRecord) -> &[FileRecord] {
    public.tables.first().map_or(&[], |table| &table.files)
}

fn parts_of(public: &PublicRecord) -> Vec<Part> {
    public.tables.first().map(TableRecord::parts).unwrap_or_default()
}

/// Returns what the record says that the quasi-identifiers show: the generalizers of levels are padded as the
/// released labels require.
async fn recorded_shown(
    policy: &Policy,
    public: &PublicRecord,
    output: &DataFrame,
    private: Option<&PrivateRecord>,
) -> Result<Shown> {
    let has_levels = matches!(public.recoding, RecodingRecord::Levels(_));
    if public.recoding.kind() != Some(policy.kind) {
        let method = &policy.method.name;
        return Err(refused(format!("the record describes another kind of recoding than `{method}` makes")));
    }
    if let Some(mechanism) = policy.mechanism()? {
        let key = private.and_then(|private| private.noise_key.as_deref()).ok_or_else(|| {
            Error::policy(
                "this release shows means with noise: to compare it with the input, its private record is needed, whose key tells the \
                 noise; it is missing, damaged or belongs to another release",
            )
        })?;
        let key = digest::of_hex(key).and_then(|bytes| bytes.try_into().ok()).map(NoiseKey);
        let key = key.ok_or_else(|| refused("the private record is damaged"))?;
        return Ok(Shown::Noise { mechanism: Arc::new(mechanism), rows: public.rows(), key });
    }
    if !has_levels {
        let recorded = private.and_then(|one| Some((one.recoding_of.is_some(), one.assignment.as_deref()?)));
        let (is_of_earlier, assignment) = recorded.ok_or_else(|| {
            Error::policy(
                "this release shows regions or centroids: to compare it with the input, its private record is needed, which says \
                 what each combination of values shows; it is missing, damaged or belongs to another release",
            )
        })?;
        let assignment = STANDARD.decode(assignment).map_err(|_| refused("the private record is damaged"))?;
        return Ok(Shown::Regions { assignment: assignment.into(), is_of_earlier });
    }
    let (mut levels, mut generalizers) = (Vec::new(), Vec::new());
    for quasi in &policy.quasi {
        let level = public.recoding.level(&quasi.name).map(|recorded| recorded.level);
        let level = level.filter(|level| quasi.levels.contains(level)).ok_or_else(|| {
            refused(format!("the record names no level of `{}` that the policy allows", quasi.name))
        })?;
        let generalizer = &quasi.hierarchy.levels()[level];
        let labels = released_labels(output, &quasi.name).await?;
        let padded = labels.and_then(|labels| generalizer.with_label_width(&labels));
        generalizers.push(padded.unwrap_or_else(|| Arc::clone(generalizer)));
        levels.push(level);
    }
    Ok(Shown::Levels { levels, generalizers })
}

/// Checks the record's columns.
fn check_columns(policy: &Policy, public: &PublicRecord, schema: &Schema, shown: &Shown) -> Result<()> {
    let planned = column_records(policy, schema)?;
    let quasi = policy.released().filter_map(|(name, _)| policy.quasi_index(name));
    if planned.iter().eq(public.columns()) && public.recoding == recoding_record(policy, shown, quasi)? {
        Ok(())
    } else {
        Err(refused("the columns of the record are not those of the policy"))
    }
}

fn recorded_models(public: &PublicRecord) -> Result<Vec<Requirement>> {
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

/// Returns the schema of the record's columns, with the types of the first file.
fn recorded_schema(out: &Path, public: &PublicRecord, parts: &[Part]) -> Result<Schema> {
    let first = parts.first().ok_or_else(|| refused("the record lists no file"))?;
    let (schema, _) = footer_of(&out.join(&first.name))?;
    let columns = schema.fields().iter().map(|field| {
        let label = field.metadata().get(GENERALIZED).cloned();
        (field.name().clone(), field.data_type().to_string(), label)
    });
    let mut recorded = Vec::new();
    for column in public.columns() {
        let by = public.recoding.descriptor(&column.name);
        let label = field_label(column.days_since.as_deref(), by.as_ref());
        match public.recoding.written_as(&column.name)? {
            None => recorded.push((column.name.clone(), column.data_type.clone(), label)),
            Some(written) => {
                let written = written.columns().into_iter();
                recorded
                    .extend(written.map(|(name, data_type)| (name, data_type.to_string(), label.clone())));
            }
        }
    }
    if !columns.eq(recorded.iter().cloned()) {
        return Err(refused("the columns are not those of the record"));
    }
    let typed = schema.fields().iter().map(|field| field.data_type().clone()).zip(recorded);
    let fields = typed.map(|(data_type, (name, _, label))| labelled_field(&name, data_type, label));
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}
