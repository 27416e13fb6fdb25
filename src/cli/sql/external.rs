//! `CREATE EXTERNAL TABLE`: the files go through the checks of `FROM 'file'`, and CSV files are read as there, as far
//! as the statement does not say otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::Schema;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::TableReference;
use datafusion::logical_expr::{CreateExternalTable, DdlStatement, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::{self, Statement};

use super::errors::StageResult;
use super::files::note;
use crate::error::{Code, Error, Result};
use crate::input::address::local_path;
use crate::input::found_types::{find_types, with_types};
use crate::input::pinned_table::PinnedTable;
use crate::input::{Format, Input, PinnedFile};
use crate::policy::{CsvOptions, one_name_each};
use crate::sql::options::{CsvTypes, KanonOptions};

/// The formats as STORED AS names them, which is also how files in a folder must end.
const FORMATS: [(&str, Format); 4] =
    [("parquet", Format::Parquet), ("csv", Format::Csv), ("json", Format::Json), ("arrow", Format::Arrow)];

/// Returns the statement that makes the table a view of CSV files as every command reads them: with
/// the delimiter that is found and the keys of `kanon.csv`. `None` for other statements, and for
/// those that name columns or options, a store elsewhere, or files of another format or none.
pub(super) fn as_view(statement: &Statement) -> Option<String> {
    let Statement::CreateExternalTable(parser::CreateExternalTable {
        name,
        columns,
        file_type,
        table_partition_cols,
        order_exprs,
        locations,
        options,
        constraints,
        or_replace,
        unbounded,
        temporary,
        if_not_exists: _,
    }) = statement
    else {
        return None;
    };
    let [location] = locations.as_slice() else { return None };
    let is_plain = columns.is_empty()
        && table_partition_cols.is_empty()
        && order_exprs.is_empty()
        && options.is_empty()
        && constraints.is_empty()
        && !unbounded
        && !temporary;
    let are_csv = |location: &str| Input::find(location).is_ok_and(|input| input.format == Format::Csv);
    (is_plain && file_type.eq_ignore_ascii_case("csv") && are_csv(location)).then(|| {
        let or_replace = if *or_replace { "OR REPLACE " } else { "" };
        format!("CREATE {or_replace}VIEW {name} AS SELECT * FROM '{}'", location.replace('\'', "''"))
    })
}

/// Creates any other external table; returns a note for the user. Types that the statement does not
/// say are found from all rows: the engine would read 01067 as 1067.
///
/// # Errors
/// Those of `FROM 'file'`, and those of the engine.
pub(super) async fn create(session: &SessionContext, mut table: CreateExternalTable) -> Result<String> {
    let name = table.name.clone();
    let is_there = session.table_exist(name.clone()).asking()?;
    let mut untyped = None;
    if !(is_there && table.if_not_exists) {
        let files = checked(&table)?;
        let has_texts = table.file_type.eq_ignore_ascii_case("csv") && table.schema.fields().is_empty();
        if table.file_type.eq_ignore_ascii_case("csv") {
            // Otherwise threads divide a file at any line break, also at one inside of quotes.
            table.options.entry(NEWLINES.to_owned()).or_insert("true".to_owned());
        }
        let rows = match table.file_type.to_ascii_lowercase().as_str() {
            "csv" if has_texts => Some("0".to_owned()),
            "json" => Some(usize::MAX.to_string()),
            _ => None,
        };
        if let Some(rows) = rows {
            table.options.entry(LOOKED_AT.to_owned()).or_insert(rows);
        }
        let infers = KanonOptions::of(session.state().config().options()).csv_types == CsvTypes::Infer;
        let locations = table.locations.clone();
        untyped = Some((files, locations)).filter(|_| has_texts && infers && !table.unbounded);
    }
    let plan = LogicalPlan::Ddl(DdlStatement::CreateExternalTable(Box::new(table)));
    session.execute_logical_plan(plan).await.opening()?;
    let Some((files, locations)) = untyped else { return Ok(String::new()) };
    let typed = add_types(session, &name, files, locations).await;
    if typed.is_err() {
        session.deregister_table(name).asking()?;
    }
    typed
}

/// The option for the rows by which the engine chooses types.
const LOOKED_AT: &str = "format.schema_infer_max_rec";

/// The option for line breaks inside of quotes.
const NEWLINES: &str = "format.newlines_in_values";

/// Where a statement says what a message of `FROM 'file'` leaves to a policy.
const OF_OPTIONS: &str =
    "of an external table in OPTIONS ('format.delimiter' ';', 'format.has_header' 'true')";

/// The codes of errors where there is no file.
const NO_FILE: [Code; 2] = [Code::NotFound, Code::EmptyInput];

/// Checks the files of an external table as those of `FROM 'file'` are: names, types and formats.
/// Returns them if they are known.
fn checked(table: &CreateExternalTable) -> Result<Vec<PinnedFile>> {
    for location in &table.locations {
        local_path(location).map_err(|error| error.at("LOCATION"))?;
    }
    let known = FORMATS.iter().find(|(name, _)| table.file_type.eq_ignore_ascii_case(name));
    let is_compressed = table.options.keys().any(|key| key.ends_with("compression"));
    let (Some((end, format)), false, false) = (known, is_compressed, table.unbounded) else {
        return Ok(Vec::new());
    };
    let has_columns = !table.schema.fields().is_empty();
    let mut files = Vec::new();
    for location in &table.locations {
        match Input::find_of_format(location, *format, end) {
            Ok(input) => files.extend(input.files),
            // Rows may be inserted into it.
            Err(error) if has_columns && NO_FILE.iter().any(|code| code.name() == error.code()) => {}
            Err(error) => return Err(error),
        }
    }
    let input = Input::of_files(&table.locations.join(", "), files, *format);
    match format {
        _ if input.files.is_empty() => {}
        // Options may say that it is no JSON lines.
        Format::Json if !table.options.is_empty() => {}
        Format::Csv => {
            if let Some(csv) = csv_of(&table.options) {
                let header = input.checked_schema(&csv).map_err(|error| error.advised(OF_OPTIONS))?;
                if csv.has_header() {
                    declared_in_order(table, &header)?;
                }
            }
        }
        _ => drop(input.checked_schema(&CsvOptions::default())?),
    }
    Ok(input.files)
}

/// Checks that the columns that a statement declares stand where the header has them: the engine reads cells by
/// their places.
fn declared_in_order(table: &CreateExternalTable, header: &Schema) -> Result<()> {
    let declared = table.schema.fields().iter().enumerate();
    let moved =
        declared.filter_map(|(at, field)| Some((field.name(), at, header.index_of(field.name()).ok()?)));
    match moved.into_iter().find(|(_, at, stands)| at != stands) {
        None => Ok(()),
        Some((name, at, stands)) => Err(Error::data(format!(
            "`{name}` is declared as column {} and is column {} of the header; declare the columns in the order of the \
             files, which are read by it",
            at + 1,
            stands + 1
        ))),
    }
}

/// Returns how the first line of a CSV file is read according to OPTIONS; `None` if that depends on more than the
/// delimiter.
fn csv_of(options: &HashMap<String, String>) -> Option<CsvOptions> {
    let mut csv = CsvOptions { delimiter: Some(b','), header: Some(true), ..CsvOptions::default() };
    for (key, value) in options {
        match (key.as_str(), value.as_bytes()) {
            ("format.delimiter", [delimiter]) => csv.delimiter = Some(*delimiter),
            ("format.has_header", _) => csv.header = Some(value.eq_ignore_ascii_case("true")),
            (LOOKED_AT, _) => {}
            _ => return None,
        }
    }
    Some(csv)
}

/// Replaces a table of texts by a view in which the columns have the types of all their cells.
async fn add_types(
    session: &SessionContext,
    name: &TableReference,
    files: Vec<PinnedFile>,
    locations: Vec<String>,
) -> Result<String> {
    let begun = Instant::now();
    let table = session.table_provider(name.clone()).await.opening()?;
    one_name_each(&table.schema())?;
    let bytes = files.iter().map(|file| file.bytes).sum();
    let pinned = provider_as_source(Arc::new(PinnedTable { table, files, locations }));
    let scan = LogicalPlanBuilder::scan(name.clone(), pinned, None).and_then(LogicalPlanBuilder::build);
    let texts = DataFrame::new(session.state(), scan.opening()?);
    let csv = CsvOptions::default();
    let types = find_types(&texts, &csv).await?;
    let typed = with_types(texts, &types, &csv)?.into_view();
    session.deregister_table(name.clone()).asking()?;
    session.register_table(name.clone(), typed).asking()?;
    Ok(note(name.table(), bytes, begun.elapsed()))
}
