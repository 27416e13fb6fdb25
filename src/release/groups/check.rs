//! A folder judged as a release in groups: its tables, their files, their rows, and with the input the
//! comparison of all rows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};

use crate::class::Budget;
use crate::engine::{Context, PoolBudget, Rules, Run};
use crate::error::{Error, Kind, Result};
use crate::input::infer_types::Typing;
use crate::input::open_typed;
use crate::method::ReleaseKind;
use crate::method::anatomy::{COLUMNS, check_models};
use crate::model::{Requirement, values_needed};
use crate::policy::FilesAndTrees;
use crate::release::check_files::{check_bytes, check_files, footer_of};
use crate::release::check_record::refused;
use crate::release::groups::tables::{self, Schemas};
use crate::release::groups::{footers, group_tables, groups_record, read_tables, verified};
use crate::release::publish::digest;
use crate::release::publish::order;
use crate::release::publish::record::{
    ColumnRecord, GROUP_ROLES, GroupsRecord, PublicRecord, RECORD, RecodingRecord, TABLES_OF_GROUPS,
    TableRecord, are_same_models,
};
use crate::release::released_recoding::{field_label, labelled_field};
use crate::release::role_checks;
use crate::release::verify_folder::{Against, Judged};
use crate::role::Role;
use crate::verify::groups::DealingKey;
use crate::verify::sufficient::Sufficient;

/// Judges the release at `out`, which has these models; `against` its input, if that is given.
///
/// # Errors
/// An unmet error that says what is wrong, a data error when it cannot be checked.
pub(in crate::release) async fn judge(
    run: &Run<'_>,
    out: &Path,
    public: &PublicRecord,
    models: &[Requirement],
    against: Option<Against<'_>>,
) -> Result<Judged> {
    let RecodingRecord::Groups(groups) = &public.recoding else {
        return Err(Error::internal("groups: a record of another recoding"));
    };
    let sensitive = check_models(models).map_err(refused)?;
    if sensitive.name() != groups.sensitive || groups.l != values_needed(models) {
        return Err(refused("the record contradicts itself on how frequent a sensitive value may be"));
    }
    let schemas = schemas(out, public, groups)?;
    let loaded = match &against {
        None => None,
        Some(Against { input, spec, files, .. }) => {
            input.check_lines(spec.csv())?;
            let files = FilesAndTrees { files: *files, trees: BTreeMap::new() };
            Some(open_typed(run, input, spec, &files, Typing::Plain).await?)
        }
    };
    if let Some(loaded) = &loaded {
        let policy = &loaded.policy;
        if !are_same_models(models, &policy.requirements) {
            return Err(refused("the models of the record are not those of the policy"));
        }
        if policy.kind != ReleaseKind::Groups || groups_record(policy)? != *groups {
            return Err(refused("the record describes another kind of recoding than the policy asks for"));
        }
        let planned = Schemas::of(policy, loaded.schema())?;
        let columns =
            planned.0.iter().map(|schema| tables::columns(policy, schema)).collect::<Result<Vec<_>>>()?;
        if planned != schemas || !columns.iter().eq(public.tables.iter().map(|table| &table.columns)) {
            return Err(refused("the columns of the record are not those of the policy"));
        }
        if policy.individual().is_some() != public.individuals.is_some() {
            return Err(refused("the record counts another unit than the policy"));
        }
        if public.statement.as_ref().is_some_and(|statement| !statement.follows_from(policy)) {
            return Err(refused("the record's statement is not that of the policy"));
        }
    }
    let mut with_bytes = true;
    for ((table, schema), footer) in public.tables.iter().zip(&schemas.0).zip(footers(models)) {
        let (folder, parts) = (table.path(out), table.parts());
        check_files(&folder, &parts, schema, &footer, &public.tool)?;
        with_bytes &= check_bytes(run, &folder, &table.files, Schema::clone(schema), &footer, &public.tool)?;
        let by_group = order::Classes::InOrder(vec![COLUMNS[0].to_owned()]);
        order::check(&folder, &parts, &by_group, run.stop)?;
    }

    let session = loaded
        .as_ref()
        .map_or_else(|| run.resources.session(Rules::new()), |loaded| Ok(loaded.session.clone()))?;
    let tables = read_tables(&session, out, &public.tables)?;
    let tables = tables.try_into().map_err(|_| refused("the release does not have two tables"))?;
    let individual = loaded.as_ref().and_then(|loaded| loaded.policy.individual());
    let judged = group_tables(tables, groups, models, individual);
    let key = against.as_ref().map(dealing_key).transpose()?;
    let input = loaded.as_ref().zip(key).map(|(loaded, key)| (loaded.table.clone(), key));
    let with_input = input.is_some();
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&session, "verification"));
    let found = judged.verify(input, &budget, run.stop).await?;
    if let Some(loaded) = &loaded {
        role_checks::check_released_groups(run, loaded, found.rows).await.map_err(|error| {
            match error.kind() {
                Kind::Policy => refused(error),
                _ => error,
            }
        })?;
    }
    let classes = found.groups;
    let (verified, unique) = verified(&judged, found, public.individuals.is_some(), with_input);
    Ok(Judged { verified, classes, unique, sufficient: Sufficient::default(), with_bytes })
}

/// Checks that a release holds the folders of its tables and the record, and nothing else.
///
/// # Errors
/// An unmet error.
pub(in crate::release) fn check_folders(out: &Path) -> Result<()> {
    for entry in fs::read_dir(out).context("reading the release")? {
        let entry = entry.context("reading the release")?;
        let (name, kind) = (entry.file_name(), entry.file_type().context("reading the release")?);
        let is_table = TABLES_OF_GROUPS.iter().any(|table| name == *table) && kind.is_dir();
        if !is_table && (name != RECORD || !kind.is_file()) {
            return Err(refused("the release contains a file or a folder that the record does not list"));
        }
        if is_table && fs::symlink_metadata(entry.path().join(RECORD)).is_ok() {
            return Err(refused("the folder of a table contains a record"));
        }
    }
    Ok(())
}

/// Returns the key of the dealing from the private record.
fn dealing_key(against: &Against<'_>) -> Result<DealingKey> {
    let key = against.private.and_then(|private| private.dealing_key.as_deref()).ok_or_else(|| {
        Error::policy(
            "this release shows the rows of groups: to compare it with the input, its private record is needed, whose key tells which \
             row went to which group; it is missing, damaged or belongs to another release",
        )
    })?;
    let key = digest::of_hex(key).and_then(|bytes| bytes.try_into().ok());
    key.map(DealingKey).ok_or_else(|| refused("the private record is damaged"))
}

/// Returns the schemas of the record's columns, with the types of the first files.
fn schemas(out: &Path, public: &PublicRecord, groups: &GroupsRecord) -> Result<Schemas> {
    let [group, count] = COLUMNS;
    let (quasi, sensitive) = (Role::Quasi.word(), Role::Sensitive.word());
    let mut of_quasi: Vec<(&str, &str)> = groups.columns.iter().map(|name| (name.as_str(), quasi)).collect();
    of_quasi.push((group, GROUP_ROLES[0]));
    let of_values =
        vec![(group, GROUP_ROLES[0]), (groups.sensitive.as_str(), sensitive), (count, GROUP_ROLES[1])];
    let [first, second] = public.tables.as_slice() else {
        return Err(refused("the record does not list two tables"));
    };
    Ok(Schemas([schema(out, first, &of_quasi)?, schema(out, second, &of_values)?]))
}

/// Returns the schema of a table that must have these columns with these roles.
fn schema(out: &Path, table: &TableRecord, expected: &[(&str, &str)]) -> Result<arrow::datatypes::SchemaRef> {
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
