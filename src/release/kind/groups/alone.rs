//! A folder judged as a release in groups by itself: its tables, their files, their rows.

use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};

use crate::class::Budget;
use crate::engine::{PoolBudget, Rules, Run};
use crate::error::{Error, Result};
use crate::method::anatomy::{COLUMNS, check_models};
use crate::model::values_needed;
use crate::release::check_files::{check_table, footer_of, read_tables};
use crate::release::check_record::refused;
use crate::release::kind::groups::{group_tables, judged};
use crate::release::kind::{Folder, Judged};
use crate::release::publish::record::{
    ColumnRecord, GROUP_ROLES, GroupsRecord, PublicRecord, RecodingRecord, TableRecord, models_text,
};
use crate::release::publish::{order, write};
use crate::release::released_schema::{field_label, labelled_field};
use crate::role::Role;

/// Checks what the public record says of the models and tables against their files.
///
/// # Errors
/// An unmet error when they contradict each other.
pub(super) fn check_record(folder: &Folder<'_>) -> Result<()> {
    let &Folder { out, public, models } = folder;
    let groups = groups_of(public)?;
    let sensitive = check_models(models).map_err(refused)?;
    if sensitive.name() != groups.sensitive || groups.l != values_needed(models) {
        return Err(refused("the record contradicts itself on how frequent a sensitive value may be"));
    }
    schemas(out, public, groups).map(drop)
}

fn groups_of(public: &PublicRecord) -> Result<&GroupsRecord> {
    match &public.recoding {
        RecodingRecord::Groups(groups) => Ok(groups),
        _ => Err(Error::internal("groups: a record of another recoding")),
    }
}

/// Judges a folder whose record is checked by itself; returns also whether its files are what this version writes.
///
/// # Errors
/// An unmet error when a model fails, or the files or the rows are not those of the record; a data error when they cannot be read
/// or memory runs out.
pub(super) async fn judge_alone(run: &Run, folder: &Folder<'_>) -> Result<(Judged, bool)> {
    let &Folder { out, public, models } = folder;
    let groups = groups_of(public)?;
    let schemas = schemas(out, public, groups)?;
    let mut with_bytes = true;
    let footers = [Vec::new(), write::footer(&models_text(models))];
    for ((table, schema), footer) in public.tables.iter().zip(&schemas).zip(&footers) {
        with_bytes &= check_table(run, out, public, table, schema, footer)?;
        let by_group = order::Classes::InOrder(vec![COLUMNS[0].to_owned()]);
        order::check(&public.files_of(table, out)?, &by_group, &run.stop)?;
    }
    let session = run.resources.session(Rules::new())?;
    let tables = group_tables(read_tables(&session, out, public)?, groups, models, None)?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&session, "verification"));
    let found = tables.verify(None, &budget, &run.stop).await?;
    Ok((judged(&tables, found, public.individuals.is_some(), false), with_bytes))
}

/// Returns the schemas of the record's columns, with the types of the first files.
fn schemas(out: &Path, public: &PublicRecord, groups: &GroupsRecord) -> Result<[SchemaRef; 2]> {
    let [group, count] = COLUMNS;
    let (quasi, sensitive) = (Role::Quasi.word(), Role::Sensitive.word());
    let mut of_quasi: Vec<(&str, &str)> = groups.columns.iter().map(|name| (name.as_str(), quasi)).collect();
    of_quasi.push((group, GROUP_ROLES[0]));
    let of_values =
        vec![(group, GROUP_ROLES[0]), (groups.sensitive.as_str(), sensitive), (count, GROUP_ROLES[1])];
    let [first, second] = public.tables.as_slice() else {
        return Err(refused("the record does not list two tables"));
    };
    Ok([schema(out, first, &of_quasi)?, schema(out, second, &of_values)?])
}

/// Returns the schema of a table that must have these columns with these roles.
fn schema(out: &Path, table: &TableRecord, expected: &[(&str, &str)]) -> Result<SchemaRef> {
    let wrong = || refused("the columns are not those of the record");
    let is_right = |(column, (name, role)): (&ColumnRecord, &(&str, &str))| {
        let is_own = COLUMNS.contains(name);
        column.name == *name
            && column.role == *role
            && (!is_own || (column.data_type == DataType::Int64.to_string() && column.days_since.is_none()))
    };
    let first = table.files.first().ok_or_else(|| refused("the record lists no file"))?;
    let (found, _) = footer_of(&table.path(out).join(&first.name))?;
    if table.columns.len() != expected.len()
        || found.fields().len() != expected.len()
        || !table.columns.iter().zip(expected).all(is_right)
    {
        return Err(wrong());
    }
    let fields = table.columns.iter().zip(found.fields()).map(|(column, field)| {
        let data_type = field.data_type();
        if column.name != *field.name() || column.data_type != data_type.to_string() {
            return Err(wrong());
        }
        Ok(labelled_field(&column.name, data_type.clone(), field_label(column.days_since.as_deref(), None)))
    });
    Ok(Arc::new(Schema::new(fields.collect::<Result<Vec<_>>>()?)))
}
