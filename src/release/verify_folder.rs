//! A folder judged as a release: its files, its schema, its rows, and with the input the comparison
//! of all rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::Schema;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema, parquet_to_arrow_schema};
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::prelude::{DataFrame, SessionContext};

use crate::class::Budget;
use crate::engine::damaged::unless_it_panics;
use crate::engine::{Context, PoolBudget, Run};
use crate::error::{Error, Kind, Result};
use crate::input::infer_types::Typing;
use crate::input::{Format, Input, PinnedFile, open_typed};
use crate::method::Shows;
use crate::model::{Counted, Quantity, Requirement, SensitiveColumn};
use crate::policy::{Files, FilesAndTrees, Policy, PolicySpec};
use crate::release::check_models::{self, can_be_judged_alone};
use crate::release::check_record::{self, refused};
use crate::release::concrete_recoding::expected;
use crate::release::publish::make_record::{column_records, recoding_record};
use crate::release::publish::record::{
    FileRecord, PrivateRecord, PublicRecord, RECORD, RecodingRecord, are_same_models, compared_with,
    models_text, parameters_text,
};
use crate::release::publish::write::{self, Part};
use crate::release::publish::{order, record, staging};
use crate::release::released_labels::released_labels;
use crate::release::released_recoding::{
    self, GENERALIZED, Shown, field_label, labelled_field, released_schema,
};
use crate::release::written_columns::as_texts;
use crate::release::{merged_trees, released_regions, role_checks};
use crate::role::Role;
use crate::verify::as_is::{ReleasedRows, UniqueTogether};
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
    /// Whether the release was compared with the input.
    pub with_input: bool,
    /// Whether the files are, byte for byte, what this version writes for their rows. `false` only
    /// for a release of an earlier version, whose writer may differ.
    pub with_bytes: bool,
}

/// Checks the release in `out`: its record, files and rows; with `input` also that the rows are
/// those of the input under the policy (`policy` if given, else the copy in the private record).
///
/// # Errors
/// An unmet error that says what is wrong, a data error when it cannot be checked.
pub async fn check_release(
    run: &Run<'_>,
    out: &Path,
    input: Option<&Input>,
    policy: Option<(&PolicySpec, &dyn Files)>,
) -> Result<Checked> {
    if let (false, Some(hint)) = (out.exists(), staging::unfinished(out)) {
        return Err(Error::data(format!("{}: no such folder; {hint}", out.display())));
    }
    let public = PublicRecord::read(out)?;
    check_record::check_words(&public)?;
    let parts: Vec<Part> = public.files().map(|f| Part { name: f.name.clone(), rows: f.rows }).collect();
    check_listing(out, &parts)?;
    for file in public.files() {
        if FileRecord::of(out, &file.name, file.rows)? != *file {
            return Err(refused(format!("{} is not the file that the record describes", file.name)));
        }
    }
    let (verified, unique, with_bytes) = match input {
        None => alone(run, out, &public, &parts).await?,
        Some(input) => {
            let private = PrivateRecord::read_for(out, &public)?;
            let spec = private.as_ref().map(|p| PolicySpec::parse(&p.policy)).transpose()?;
            let own =
                private.as_ref().zip(spec.as_ref()).map(|(p, spec)| (spec, &p.hierarchies as &dyn Files));
            let (spec, files) = policy.or(own).ok_or_else(|| {
                let hint = staging::unfinished(out).map_or(String::new(), |hint| format!("; {hint}"));
                Error::policy(format!(
                    "the private record beside this release is missing, damaged or of another release; give the policy with --policy{hint}"
                ))
            })?;
            let checked = against(run, out, &public, &parts, input, (spec, files), private.as_ref()).await?;
            input.still_the_same()?;
            checked
        }
    };
    if (verified.rows, verified.sizes.classes()) != (public.rows(), public.classes) {
        return Err(refused("the number of rows or classes differs from the record"));
    }
    // The rows alone do not name their individuals.
    if input.is_some() || public.individuals.is_none() {
        check_counts(&public, &verified, input.is_some())?;
        if public.unique != unique {
            return Err(refused("the unique share on all columns differs from the record"));
        }
    } else {
        check_record::check_individuals(&public, &recorded_models(&public)?, &verified)?;
    }
    public.statement.iter().try_for_each(|statement| statement.check(&public))?;
    Ok(Checked { public, verified, unique, with_input: input.is_some(), with_bytes })
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
async fn alone(
    run: &Run<'_>,
    out: &Path,
    public: &PublicRecord,
    parts: &[Part],
) -> Result<(Verified, UniqueTogether, bool)> {
    let models = recorded_models(public)?;
    let (schema, footer) = (recorded_schema(out, public, parts)?, write::footer(&models_text(&models)));
    check_files(out, parts, &schema, &footer, &public.tool)?;
    let with_bytes = check_bytes(run, out, public, schema.clone(), &footer)?;
    let session = run.resources.session()?;
    let output = as_texts(read_parts(&session, out, parts)?, &public.recoding.written_columns()?)?;
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
    order::check(out, parts, &order::Classes::Together(public.written_quasi()?), run.stop)?;
    Ok((verified, unique, with_bytes))
}

/// Judges rows against the input's rows.
async fn against(
    run: &Run<'_>,
    out: &Path,
    public: &PublicRecord,
    parts: &[Part],
    input: &Input,
    (spec, files): (&PolicySpec, &dyn Files),
    private: Option<&PrivateRecord>,
) -> Result<(Verified, UniqueTogether, bool)> {
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
    let session = run.resources.session()?;
    let output = as_texts(read_parts(&session, out, parts)?, &public.recoding.written_columns()?)?;
    let shown = recorded_shown(policy, public, &output, private).await?;
    let fields = match &shown {
        Shown::Levels { generalizers, .. } => released_recoding::fields(policy, generalizers),
        Shown::Regions { .. } => released_regions::fields(policy),
    };
    let schema = Arc::new(released_schema(policy, loaded.schema(), &fields)?);
    let footer = write::footer(&models_text(&models));
    check_files(out, parts, &schema, &footer, &public.tool)?;
    let with_bytes = check_bytes(run, out, public, Schema::clone(&schema), &footer)?;
    check_columns(policy, public, &schema, &shown)?;
    if policy.individual().is_some() != public.individuals.is_some() {
        return Err(refused("the record counts another unit than the policy"));
    }
    let memory: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "assignment"));
    let mut expected = expected(policy, policy, &shown, &memory)?;
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
    if public.statement.as_ref().is_some_and(|statement| !statement.follows_from(policy)) {
        return Err(refused("the record's statement is not that of the policy"));
    }
    let quasi = policy.quasi.iter().flat_map(|quasi| quasi.written_names(policy)).collect();
    order::check(out, parts, &order::Classes::InOrder(quasi), run.stop)?;
    Ok((verified, unique, with_bytes))
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
    if has_levels != (policy.shows == Shows::Levels) {
        let method = &policy.method.name;
        return Err(refused(format!("the record describes another kind of recoding than `{method}` makes")));
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
    if planned.iter().eq(public.columns()) && public.recoding == recoding_record(policy, shown, quasi) {
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

/// Checks that the folder holds only the parts and the record.
fn check_listing(folder: &Path, parts: &[Part]) -> Result<()> {
    let planned: BTreeSet<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    // Iterates over the list, not the set: a file that is listed twice would be counted twice.
    for (index, Part { name, .. }) in parts.iter().enumerate() {
        if *name != format!("part-{index:05}.parquet") {
            return Err(refused("the files of the record are not numbered from part-00000.parquet"));
        }
        match fs::symlink_metadata(folder.join(name)) {
            Ok(facts) if facts.is_file() => {}
            // A link, a folder or a pipe: copying the release would publish something else.
            Ok(_) => return Err(refused(format!("{name} is not a plain file"))),
            Err(_) => return Err(refused(format!("{name} is missing"))),
        }
    }
    for entry in fs::read_dir(folder).context("reading the release")? {
        let name = entry.context("reading the release")?.file_name();
        let known = name.to_str().is_some_and(|name| name == RECORD || planned.contains(name));
        if !known {
            return Err(refused("the release contains a file that the record does not list"));
        }
    }
    Ok(())
}

/// Checks files against the plan: listing, schema, footer and row counts.
///
/// # Errors
/// An unmet error that names the file.
pub(super) fn check_files(
    folder: &Path,
    parts: &[Part],
    schema: &Schema,
    footer: &[(String, String)],
    tool: &str,
) -> Result<()> {
    check_listing(folder, parts)?;
    let mut keys = footer.to_vec();
    keys.push((ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(schema)));
    for part in parts {
        let (found, facts) = footer_of(&folder.join(&part.name))?;
        if found.fields() != schema.fields() {
            return Err(refused(format!("{}: the schema is not the planned one", part.name)));
        }
        if facts.rows != part.rows {
            return Err(refused(format!("{}: the footer counts other rows than the record", part.name)));
        }
        let mut found_keys = facts.keys;
        if tool != write::CREATED_BY {
            // An earlier version may encode the schema otherwise; its fields are compared above.
            let encoded = |key: &&mut (String, String)| key.0 == ARROW_SCHEMA_META_KEY;
            let both = [&mut found_keys, &mut keys].map(|keys| keys.iter_mut().find(encoded));
            both.into_iter().flatten().for_each(|key| key.1.clear());
        }
        if found_keys != keys || facts.created_by.as_deref() != Some(tool) {
            return Err(refused(format!(
                "{}: the footer holds metadata that kanon did not write",
                part.name
            )));
        }
    }
    Ok(())
}

/// Compares each file, byte for byte, with our writer's output for its rows, and returns whether all
/// are equal: nothing is hidden between their pages, in statistics or in unused dictionary entries.
///
/// # Errors
/// An unmet error for other bytes of this version. The writer of an earlier one may have differed.
fn check_bytes(
    run: &Run<'_>,
    out: &Path,
    public: &PublicRecord,
    schema: Schema,
    footer: &[(String, String)],
) -> Result<bool> {
    let (schema, tool) = (Arc::new(schema), public.tool.as_str());
    let files: Vec<&FileRecord> = public.files().collect();
    for (number, file) in files.iter().enumerate() {
        let is_last = number + 1 == files.len();
        match write::digest_again(&out.join(&file.name), &schema, footer, tool, is_last, run.stop)? {
            Some(digest) if digest == file.sha256 => {}
            _ if tool != write::CREATED_BY => return Ok(false),
            Some(_) => return Err(refused(format!("{} holds data other than its rows", file.name))),
            None => return Err(refused(format!("{} does not end where kanon begins a new file", file.name))),
        }
    }
    Ok(true)
}

struct Footer {
    rows: u64,
    keys: Vec<(String, String)>,
    created_by: Option<String>,
}

/// Returns the schema and the metadata of a Parquet footer.
fn footer_of(path: &Path) -> Result<(Schema, Footer)> {
    unless_it_panics(|| read_footer(path)).unwrap_or_else(|| {
        let why = "the file is damaged: its footer, or the Arrow schema in it, cannot be read";
        Err(Error::data(why).at(path.display()))
    })
}

fn read_footer(path: &Path) -> Result<(Schema, Footer)> {
    let place = format!("{}", path.display());
    let reader = SerializedFileReader::new(fs::File::open(path).context(&place)?).context(&place)?;
    let facts = reader.metadata().file_metadata();
    let schema = parquet_to_arrow_schema(facts.schema_descr(), facts.key_value_metadata()).context(&place)?;
    let keys = facts.key_value_metadata().into_iter().flatten();
    let keys = keys.map(|kv| (kv.key.clone(), kv.value.clone().unwrap_or_default())).collect();
    // A hidden column, or a name that the Arrow schema conceals, would appear here.
    let names = facts.schema_descr().columns().iter().map(|c| c.path().string());
    if !names.eq(schema.fields().iter().map(|f| f.name().clone())) {
        return Err(refused("the columns of a file are not those of its schema"));
    }
    let footer = Footer {
        rows: u64::try_from(facts.num_rows()).map_err(|_| refused("a footer counts negative rows"))?,
        keys,
        created_by: facts.created_by().map(str::to_owned),
    };
    Ok((schema, footer))
}

/// Reads the rows of a release as they were written: text without encodings, floats bit by bit.
///
/// # Errors
/// A data error when a file cannot be read.
pub(super) fn read_parts(session: &SessionContext, folder: &Path, parts: &[Part]) -> Result<DataFrame> {
    let files = parts.iter().map(|part| {
        let path = folder.join(&part.name);
        let bytes = fs::metadata(&path).context("reading the release")?.len();
        Ok(PinnedFile { path, bytes, modified: None })
    });
    let input = Input::of_files("", files.collect::<Result<_>>()?, Format::Parquet);
    input.as_written(session)
}
