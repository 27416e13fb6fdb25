//! A folder judged as a release: its files, its schema, its rows, and with the input the comparison
//! of all rows.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::datatypes::Schema;
use datafusion::prelude::DataFrame;

use crate::engine::{Rules, Run};
use crate::error::{Error, Kind, Result};
use crate::input::infer_types::Typing;
use crate::input::{Input, open_typed};
use crate::model::{Counted, Quantity, Requirement, SensitiveColumn};
use crate::policy::{Files, FilesAndTrees, PolicySpec};
use crate::release::check_files::{check_bytes, check_files, check_listing, footer_of, read_parts};
use crate::release::check_models::{self, can_be_judged_alone};
use crate::release::check_record::{self, refused};
use crate::release::kind::groups::alone;
use crate::release::kind::{Extent, Judged, Records, kind_of};
use crate::release::merged_trees;
use crate::release::publish::place::Place;
use crate::release::publish::record::{
    FileRecord, PrivateRecord, PublicRecord, TableRecord, are_same_models, compared_with, models_text,
    parameters_text,
};
use crate::release::publish::write::{self, Part};
use crate::release::publish::{order, record, staging};
use crate::release::released_schema::{GENERALIZED, field_label, labelled_field};
use crate::release::written_columns::as_texts;
use crate::role::Role;
use crate::verify::as_is::{ReleasedRows, UniqueTogether};
use crate::verify::noise::check_shown;
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
struct Against<'a> {
    input: &'a Input,
    spec: &'a PolicySpec,
    /// The hierarchy files.
    files: &'a dyn Files,
    private: Option<&'a PrivateRecord>,
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
        alone::check_folders(out)?;
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
    let (judged, with_bytes) = match compared {
        Some(compared) => against(run, out, &public, &models, compared).await?,
        None if makes_groups => alone::judge_alone(run, out, &public, &models).await?,
        None => judge_alone(run, out, &public).await?,
    };
    let Judged { verified, classes, unique, sufficient, .. } = judged;
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
async fn judge_alone(run: &Run<'_>, out: &Path, public: &PublicRecord) -> Result<(Judged, bool)> {
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
    let classes = verified.sizes.classes();
    Ok((Judged { verified, classes, unique, sufficient, as_is: Vec::new() }, with_bytes))
}

/// Judges tables against the input; returns also whether their files are what this version writes.
async fn against(
    run: &Run<'_>,
    out: &Path,
    public: &PublicRecord,
    models: &[Requirement],
    Against { input, spec, files, private }: Against<'_>,
) -> Result<(Judged, bool)> {
    input.check_lines(spec.csv())?;
    let trees = private.map_or(Ok(BTreeMap::new()), PrivateRecord::followed_trees)?;
    let loaded = open_typed(run, input, spec, &FilesAndTrees { files, trees }, Typing::Plain).await?;
    let policy = &loaded.policy;
    private.map_or(Ok(()), |private| private.check_trees(policy))?;
    merged_trees::check_holders(&loaded.session, &loaded.table, policy, run.stop).await?;
    if !are_same_models(models, &policy.requirements) {
        return Err(refused("the models of the record are not those of the policy"));
    }
    if public.recoding.kind() != Some(policy.kind) {
        let method = &policy.method.name;
        return Err(refused(format!("the record describes another kind of recoding than `{method}` makes")));
    }
    let written = public.tables.iter().map(|table| {
        let (folder, parts) = (table.path(out), table.parts());
        read_parts(&loaded.session, &folder, &parts)
    });
    let written: Vec<DataFrame> = written.collect::<Result<_>>()?;
    let records = Records { public, private, written: &written };
    let content = kind_of(policy.kind).read(policy, loaded.schema(), &records).await?;
    if content.tables.len() != public.tables.len() {
        return Err(refused("the tables of the record are not those of the policy"));
    }
    let mut with_bytes = true;
    for (planned, table) in content.tables.iter().zip(&public.tables) {
        with_bytes &= check_table(run, out, public, table, &planned.schema, &planned.footer(models))?;
    }
    let planned = content.tables.iter().map(|table| (table.folder, &table.columns));
    if !planned.eq(public.tables.iter().map(|table| (table.folder.as_deref(), &table.columns)))
        || content.recoding != public.recoding
    {
        return Err(refused("the columns of the record are not those of the policy"));
    }
    if policy.individual().is_some() != public.individuals.is_some() {
        return Err(refused("the record counts another unit than the policy"));
    }
    if let Some(population) = &loaded.population {
        population.check_members(&policy.requirements, &loaded.table).await?;
    }
    let judged = content.judge.judge(run, &loaded, written, Extent::Public).await;
    let judged = judged.map_err(|error| match error.kind() {
        Kind::Policy => refused(error),
        _ => error,
    })?;
    if public.statement.as_ref().is_some_and(|statement| !statement.follows_from(policy)) {
        return Err(refused("the record's statement is not that of the policy"));
    }
    for (planned, table) in content.tables.into_iter().zip(&public.tables) {
        let classes = order::Classes::InOrder(planned.ordered_by);
        order::check(&table.path(out), &table.parts(), &classes, run.stop)?;
    }
    Ok((judged, with_bytes))
}

/// Checks the files of a table against its schema and footer; returns whether they are what this version writes.
pub(super) fn check_table(
    run: &Run<'_>,
    out: &Path,
    public: &PublicRecord,
    table: &TableRecord,
    schema: &Schema,
    footer: &[(String, String)],
) -> Result<bool> {
    let (folder, parts) = (table.path(out), table.parts());
    check_files(&folder, &parts, schema, footer, &public.tool)?;
    check_bytes(run, &folder, &table.files, schema.clone(), footer, &public.tool)
}

/// Returns the files of the only table.
fn files_of(public: &PublicRecord) -> &[FileRecord] {
    public.tables.first().map_or(&[], |table| &table.files)
}

fn parts_of(public: &PublicRecord) -> Vec<Part> {
    public.tables.first().map(TableRecord::parts).unwrap_or_default()
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
