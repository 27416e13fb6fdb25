//! The files of a release as they must be: their listing, schema, footers and bytes.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::logical_expr::Expr;
use datafusion::parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema, parquet_to_arrow_schema};
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::prelude::{DataFrame, SessionContext};

use crate::engine::damaged::unless_it_panics;
use crate::engine::{Context, Run, column};
use crate::error::{Error, Result};
use crate::input::{Input, InputFormat};
use crate::release::check_record::refused;
use crate::release::publish::record::{FileRecord, PublicRecord, RECORD, TableRecord};
use crate::release::publish::released_files::{name_of_number, name_of_run, run_of_name};
use crate::release::publish::table_files::{Part, TableFiles};
use crate::release::publish::write;
use crate::store::{Object, shown};

/// Checks that the files of each table are named by their numbers, or all by number and run, as in a store, and lie in no folders
/// but those of the table's columns, each with rows: no file is listed twice, and no name leads elsewhere.
pub(super) fn check_names(public: &PublicRecord) -> Result<()> {
    let run = public.files().find_map(|file| run_of_name(&file.name));
    let name = |at| run.map_or_else(|| name_of_number(at), |run| name_of_run(at, run));
    for table in &public.tables {
        // Only names are looked at.
        let TableFiles { parts, partitioning, .. } = public.files_of(table, Path::new(""))?;
        for (at, part) in parts.iter().enumerate() {
            if part.name.strip_prefix(part.folders()) != Some(&name(at)) {
                return Err(refused("the files of the record are not numbered from part-00000.parquet"));
            }
            partitioning.values(&part.name)?;
            if part.rows == 0 && !partitioning.is_empty() {
                return Err(refused("a file in the folder of a value has no rows"));
            }
        }
    }
    Ok(())
}

/// Checks that the folder of a table holds only its parts, and the record if that is there.
pub(super) fn check_listing(files: &TableFiles) -> Result<()> {
    for part in &files.parts {
        match fs::symlink_metadata(files.path(part)) {
            Ok(facts) if facts.is_file() => {}
            // A link, a folder or a pipe: copying the release would publish something else.
            Ok(_) => return Err(refused(format!("{} is not a plain file", part.shown()))),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(refused(format!("{} is missing", part.shown())));
            }
            Err(error) => return Err(Error::from_io(&error).at(part.shown()).at("reading the release")),
        }
    }
    let planned: BTreeSet<PathBuf> = files.parts.iter().map(|part| files.path(part)).collect();
    let folders = planned.iter().flat_map(|file| file.ancestors().skip(1));
    let folders: BTreeSet<&Path> = folders.filter(|folder| folder.starts_with(&files.folder)).collect();
    let record = files.folder.join(RECORD);
    for folder in folders.iter().copied().chain([files.folder.as_path()]) {
        for entry in fs::read_dir(folder).context("reading the release")? {
            let entry = entry.context("reading the release")?;
            let (path, kind) = (entry.path(), entry.file_type().context("reading the release")?);
            let is_folder = kind.is_dir() && folders.contains(path.as_path());
            if !is_folder && path != record && !planned.contains(&path) {
                return Err(refused("the release contains a file or a folder that the record does not list"));
            }
        }
    }
    Ok(())
}

/// Checks that a release holds the folders of its tables and the record, and nothing else.
///
/// # Errors
/// An unmet error.
pub(super) fn check_folders(out: &Path, tables: &[TableRecord]) -> Result<()> {
    for entry in fs::read_dir(out).context("reading the release")? {
        let entry = entry.context("reading the release")?;
        let (name, kind) = (entry.file_name(), entry.file_type().context("reading the release")?);
        let is_listed = |table: &TableRecord| table.folder.as_deref().is_some_and(|folder| name == *folder);
        let is_table = tables.iter().any(is_listed) && kind.is_dir();
        if !is_table && (name != RECORD || !kind.is_file()) {
            return Err(refused("the release contains a file or a folder that the record does not list"));
        }
        if is_table && fs::symlink_metadata(entry.path().join(RECORD)).is_ok() {
            return Err(refused("the folder of a table contains a record"));
        }
    }
    Ok(())
}

/// Checks the files of a table against its schema and footer; returns whether they are what this version writes.
pub(super) fn check_table(
    run: &Run,
    out: &Path,
    public: &PublicRecord,
    table: &TableRecord,
    schema: &Schema,
    footer: &[(String, String)],
) -> Result<bool> {
    let files = public.files_of(table, out)?;
    let footer = files.partitioning.footer(footer.to_vec());
    check_files(&files, schema, &footer, &public.tool)?;
    if table.rows != files.parts.iter().map(|part| part.rows).sum::<u64>() {
        return Err(refused("the number of rows or classes differs from the record"));
    }
    check_bytes(run, &files, &table.files, schema, &footer, public)
}

/// Checks files against the plan: listing, schema, footer and row counts.
///
/// # Errors
/// An unmet error that names the file.
pub(super) fn check_files(
    files: &TableFiles,
    schema: &Schema,
    footer: &[(String, String)],
    tool: &str,
) -> Result<()> {
    check_listing(files)?;
    let schema = files.partitioning.schema_of_files(schema);
    let mut keys = footer.to_vec();
    keys.push((ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema)));
    for part in &files.parts {
        let (found, facts) = footer_of(&files.path(part))?;
        if found.fields() != schema.fields() {
            return Err(refused(format!("{}: the schema is not the planned one", part.shown())));
        }
        if facts.rows != part.rows {
            return Err(refused(format!("{}: the footer counts other rows than the record", part.shown())));
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
                part.shown()
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
pub(super) fn check_bytes(
    run: &Run,
    files: &TableFiles,
    records: &[FileRecord],
    schema: &Schema,
    footer: &[(String, String)],
    public: &PublicRecord,
) -> Result<bool> {
    let (tool, layout) = (public.tool.as_str(), public.layout);
    let schema = Arc::new(files.partitioning.schema_of_files(schema));
    let next = files.parts.iter().skip(1).map(Some).chain([None]);
    for ((part, file), next) in files.parts.iter().zip(records).zip(next) {
        let is_last = next.is_none_or(|next| next.folders() != part.folders());
        match write::digest_again(&files.path(part), &schema, footer, tool, layout, is_last, &run.stop)? {
            Some(digest) if digest == file.sha256 => {}
            _ if tool != write::CREATED_BY => return Ok(false),
            Some(_) => return Err(refused(format!("{} holds data other than its rows", part.shown()))),
            None => {
                return Err(refused(format!("{} does not end where kanon begins a new file", part.shown())));
            }
        }
    }
    Ok(true)
}

pub(super) struct Footer {
    rows: u64,
    keys: Vec<(String, String)>,
    created_by: Option<String>,
}

/// Returns the schema and the metadata of a Parquet footer.
pub(super) fn footer_of(path: &Path) -> Result<(Schema, Footer)> {
    unless_it_panics(|| read_footer(path)).unwrap_or_else(|| {
        let why = "the file is damaged: its footer, or the Arrow schema in it, cannot be read";
        Err(Error::data(why).at(shown(&path.display().to_string())))
    })
}

fn read_footer(path: &Path) -> Result<(Schema, Footer)> {
    let place = shown(&path.display().to_string());
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

/// Reads the rows of each table of the release at `out` as they were written.
///
/// # Errors
/// A data error when a file cannot be read.
pub(crate) fn read_tables(
    session: &SessionContext,
    out: &Path,
    public: &PublicRecord,
) -> Result<Vec<DataFrame>> {
    public.tables.iter().map(|table| read_files(session, &public.files_of(table, out)?)).collect()
}

/// Reads the rows of a table as they were written: text without encodings, floats bit by bit.
///
/// # Errors
/// A data error when a file cannot be read, or when the values of folders could not be told apart by every reader.
pub(super) fn read_files(session: &SessionContext, files: &TableFiles) -> Result<DataFrame> {
    let TableFiles { parts, partitioning, .. } = files;
    let object = |part: &Part| Ok(Object::of_file(files.path(part))?.listed_below(part.name.clone()));
    let objects = parts.iter().map(object).collect::<Result<_>>()?;
    let input = Input::of_objects("", objects, InputFormat::Parquet);
    if partitioning.is_empty() {
        return input.as_written(session);
    }
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    let rows = input.with_partition_columns(partitioning.columns(&names)?).as_written(session)?;
    // The partition columns come last.
    let columns = rows.schema().fields().iter().map(|field| column(field.name()));
    let mut of_files: Vec<Expr> = columns.collect();
    let of_folders = of_files.split_off(of_files.len() - partitioning.fields().count());
    rows.select(partitioning.of_all(of_files, of_folders)).context("reading the release")
}
