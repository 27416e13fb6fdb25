//! A folder of one table judged by itself: its files, its schema, its rows.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::prelude::{DataFrame, SessionContext};

use crate::engine::{Rules, Run};
use crate::error::Result;
use crate::generalize::{AsIs, Generalizer};
use crate::model::{Requirement, SensitiveColumn};
use crate::release::check_files::{check_table, footer_of, read_files};
use crate::release::check_models::{self, can_be_judged_alone};
use crate::release::check_record::refused;
use crate::release::kind::{Folder, Judged};
use crate::release::publish::order;
use crate::release::publish::record::{ColumnRecord, PublicRecord, models_text};
use crate::release::publish::table_files::TableFiles;
use crate::release::publish::write;
use crate::release::released_schema::{GENERALIZED, field_label, labelled_field};
use crate::release::verify_folder::recorded_models;
use crate::release::written_columns::as_texts;
use crate::role::Role;
use crate::verify::as_is::ReleasedRows;
use crate::verify::expected::preferences_of;
use crate::verify::{Expected, verify};

/// The only table of a folder, whose files are checked against the record.
pub(super) struct RecordedTable<'a> {
    folder: &'a Folder<'a>,
    session: SessionContext,
    files: TableFiles,
    /// Its columns, as the record describes them.
    pub(super) schema: Schema,
    /// Its rows as they were written.
    pub(super) written: DataFrame,
    /// Its rows with one text for each quasi-identifier.
    pub(super) output: DataFrame,
    /// Whether the files are what this version writes.
    with_bytes: bool,
}

impl<'a> RecordedTable<'a> {
    /// Opens the table of a folder.
    ///
    /// # Errors
    /// An unmet error when its files are not those of the record, a data error when they cannot be read.
    pub(super) fn open(run: &Run, folder: &'a Folder<'a>) -> Result<Self> {
        let &Folder { out, public, models } = folder;
        let table = public.tables.first().ok_or_else(|| refused("the record lists no file"))?;
        let files = public.files_of(table, out)?;
        let schema = recorded_schema(public, &files)?;
        let footer = write::footer(&models_text(models));
        let with_bytes = check_table(run, out, public, table, &schema, &footer)?;
        let session = run.resources.session(Rules::new())?;
        let written = read_files(&session, &files)?;
        let output = as_texts(written.clone(), &public.recoding.written_columns()?)?;
        Ok(Self { folder, session, files, schema, written, output, with_bytes })
    }

    /// Judges the rows by themselves where classes show texts of their own, like [`judge`](Self::judge).
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    pub(super) async fn judge_texts(self, run: &Run) -> Result<(Judged, bool)> {
        let public = self.folder.public;
        let is_shown = |column: &ColumnRecord| public.recoding.descriptor(&column.name).is_some();
        let text = |column| is_shown(column).then(|| Arc::new(AsIs { text: true }) as Arc<dyn Generalizer>);
        let generalizers = public.columns().map(text).collect();
        self.judge(run, generalizers).await
    }

    /// Judges the rows and their order by themselves, where these `generalizers` leave the labels as they are. Returns also whether
    /// the files are what this version writes.
    ///
    /// # Errors
    /// As [`judge_rows`], also when the order is not that of the record.
    pub(super) async fn judge(
        self,
        run: &Run,
        generalizers: Vec<Option<Arc<dyn Generalizer>>>,
    ) -> Result<(Judged, bool)> {
        let judged = judge_rows(run, self.folder, &self.session, self.output, generalizers).await?;
        let mut classes = self.folder.public.written_quasi()?;
        self.files.partitioning.check_order(&self.files.parts, &classes)?;
        let of_folders = self.files.partitioning.fields().map(|field| field.name());
        let as_is: Vec<String> = of_folders.filter(|name| !classes.contains(name)).cloned().collect();
        classes.splice(0..0, as_is);
        order::check(&self.files, &order::Classes::Together(classes), &run.stop)?;
        Ok((judged, self.with_bytes))
    }
}

/// Judges rows by themselves: the models of the record on the classes of its quasi-identifiers, whose labels these
/// `generalizers` leave as they are. Where individuals are counted, the models are those that
/// [bound](crate::model::ClassModel::bounded_by_rows) them by rows; a model without one is not judged and reaches `None`, nor
/// is one that looks at the whole input.
///
/// # Errors
/// An unmet error when a model fails, or the rows or their counts are not those of the record; a data error when the rows cannot
/// be read or memory runs out.
async fn judge_rows(
    run: &Run,
    folder: &Folder<'_>,
    session: &SessionContext,
    output: DataFrame,
    generalizers: Vec<Option<Arc<dyn Generalizer>>>,
) -> Result<Judged> {
    let &Folder { public, models: requirements, .. } = folder;
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
    let models: Vec<Option<Requirement>> = recorded_models(public)?.into_iter().map(bounding).collect();
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
    let mut verified = verify(session, output.clone(), None, &expected, &run.stop).await?;
    let mut reached = std::mem::take(&mut verified.reached).into_iter();
    let of_model = |is_judged: bool| if is_judged { reached.next().flatten() } else { None };
    verified.reached = judged.into_iter().map(of_model).collect();
    let expected = Expected { requirements, preferences: preferences_of(requirements), ..expected };
    let rows = ReleasedRows::new(session, output, None, &expected, &verified, &run.stop).await?;
    if public.individuals.is_none() {
        verified.reached_among_released = rows.reached_among_released().await?;
        check_models::check_among_released(expected.requirements, &verified)?;
    } else {
        check_models::check_shares(public, &rows.share_over_subsets().await?)?;
    }
    let unique = rows.unique_together().await?;
    let sufficient = rows.sufficient(&unique).await?;
    let classes = verified.sizes.classes();
    Ok(Judged { verified, classes, unique, sufficient, as_is: Vec::new() })
}

/// Returns the schema of the record's columns, with the types of the first file.
fn recorded_schema(public: &PublicRecord, files: &TableFiles) -> Result<Schema> {
    let first = files.parts.first().ok_or_else(|| refused("the record lists no file"))?;
    let (schema, _) = footer_of(&files.path(first))?;
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
    if !columns.eq(files.partitioning.of_files(&recorded)) {
        return Err(refused("the columns are not those of the record"));
    }
    let of_files = schema.fields().iter().map(|field| field.data_type().clone()).collect();
    let of_folders = files.partitioning.fields().map(|field| field.data_type().clone()).collect();
    let typed = files.partitioning.of_all(of_files, of_folders).into_iter().zip(recorded);
    let fields = typed.map(|(data_type, (name, _, label))| labelled_field(&name, data_type, label));
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}
