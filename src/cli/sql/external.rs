//! `CREATE EXTERNAL TABLE`: the files go through the checks of `FROM 'file'`, and CSV files are read as there, as far
//! as the statement does not say otherwise.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::Schema;
use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::TableReference;
use datafusion::logical_expr::{CreateExternalTable, DdlStatement, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::{self, Statement};

use super::errors::StageResult;
use super::files::note;
use datafusion_kanon::internals::input::files::{files_of_location, format_by_name};
use datafusion_kanon::internals::input::found_types::{find_types, with_types};
use datafusion_kanon::internals::input::pinned_table::PinnedTable;
use datafusion_kanon::internals::policy::one_name_each;
use datafusion_kanon::internals::store::{Address, Object, is_partition};
use datafusion_kanon::{CsvOptions, CsvTypes, Error, Input, InputFormat, KanonOptions, Result};

/// The formats as STORED AS names them.
const FORMATS: [(&str, InputFormat); 4] = [
    ("parquet", InputFormat::Parquet),
    ("csv", InputFormat::Csv),
    ("json", InputFormat::Json),
    ("arrow", InputFormat::Arrow),
];

/// Returns the statement that makes the table a view of the files as every command reads them: those
/// of CSV with the delimiter that is found and the keys of `kanon.csv`. `None` for other statements,
/// and for those that name columns or options, a store elsewhere, or files of another format or none.
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
    // Objects are listed, and copied where the view is read.
    let is_of_format = |location: &str| match Address::parse(location) {
        Ok(Address::Remote(_)) => files_of_location(location).is_ok_and(|objects| {
            let format = |object: &Object| format_by_name(Path::new(object.address().name()));
            objects.iter().all(|object| format(object) == format_of(file_type))
        }),
        _ => Input::find(location).is_ok_and(|input| Some(input.format) == format_of(file_type)),
    };
    (is_plain && is_of_format(location)).then(|| {
        let or_replace = if *or_replace { "OR REPLACE " } else { "" };
        format!("CREATE {or_replace}VIEW {name} AS SELECT * FROM '{}'", location.replace('\'', "''"))
    })
}

/// Returns the format that STORED AS names; `None` for one that only the engine reads.
fn format_of(stored_as: &str) -> Option<InputFormat> {
    FORMATS.iter().find(|(name, _)| stored_as.eq_ignore_ascii_case(name)).map(|(_, format)| *format)
}

/// Creates any other external table, over the files that `FROM 'file'` reads; returns a note for the user. Types that the
/// statement does not say are found from all rows: the engine would read 01067 as 1067.
///
/// # Errors
/// Those of `FROM 'file'`, and those of the engine.
pub(super) async fn create(session: &SessionContext, mut table: CreateExternalTable) -> Result<String> {
    let name = table.name.clone();
    if table.if_not_exists && session.table_exist(name.clone()).asking()? {
        return Ok(String::new());
    }
    if !table.constraints.is_empty() || !table.order_exprs.is_empty() {
        // The engine would leave out a GROUP BY or a sort.
        return Err(Error::policy(
            "nothing checks keys and WITH ORDER of an external table, and wrong ones give wrong answers; leave them out",
        ));
    }
    let files = checked(&table)?;
    let format = format_of(&table.file_type);
    if format == Some(InputFormat::Csv) {
        // Otherwise threads divide a file at any line break, also at one inside of quotes.
        table.options.entry(NEWLINES.to_owned()).or_insert("true".to_owned());
    }
    let has_texts = format == Some(InputFormat::Csv) && table.schema.fields().is_empty();
    let rows = match format {
        Some(InputFormat::Csv) if has_texts => Some("0".to_owned()),
        Some(InputFormat::Json) => Some(usize::MAX.to_string()),
        _ => None,
    };
    if let Some(rows) = rows {
        table.options.entry(LOOKED_AT.to_owned()).or_insert(rows);
    }
    let locations = table.locations.clone();
    let is_in_partition = |file: &Object| file.path().ancestors().skip(1).any(is_partition);
    let has_partitions = !table.table_partition_cols.is_empty() || files.iter().any(is_in_partition);
    if !files.is_empty() && !has_partitions {
        let urls = files.iter().map(|file| Ok(file.url()?.into()));
        table.locations = urls.collect::<Result<_>>()?;
    }
    let plan = LogicalPlan::Ddl(DdlStatement::CreateExternalTable(Box::new(table)));
    session.execute_logical_plan(plan).await.opening()?;
    if files.is_empty() {
        return Ok(String::new());
    }
    let infers = KanonOptions::of(session.state().config().options()).csv_types == CsvTypes::Infer;
    let opened = session.table_provider(name.clone()).await.opening()?;
    let pinned = PinnedTable { table: opened, files, locations, is_listed_by_engine: has_partitions };
    let told = register(session, &name, pinned, has_texts && infers).await;
    if told.is_err() {
        session.deregister_table(name).asking()?;
    }
    told
}

/// The option for the rows by which the engine chooses types.
const LOOKED_AT: &str = "format.schema_infer_max_rec";

/// The option for line breaks inside of quotes.
const NEWLINES: &str = "format.newlines_in_values";

/// Where a statement says what a message of `FROM 'file'` leaves to a policy.
const OF_OPTIONS: &str =
    "of an external table in OPTIONS ('format.delimiter' ';', 'format.has_header' 'true')";

/// Checks the files of an external table as those of `FROM 'file'` are: names, types and formats.
/// Returns them; none for a table without an end.
fn checked(table: &CreateExternalTable) -> Result<Vec<Object>> {
    let format = format_of(&table.file_type);
    let is_compressed = table.options.keys().any(|key| key.ends_with("compression"));
    let mut files = Vec::new();
    for location in &table.locations {
        if let Address::Remote(address) = Address::parse(location).map_err(|error| error.at("LOCATION"))? {
            // A store that cannot be read gives the better reason.
            drop(files_of_location(location)?);
            let why = "of a store, expected STORED AS the format that the names of its objects end in, without columns and options; \
                       or name it in FROM";
            return Err(Error::policy(format!("LOCATION {address}: {why}")));
        }
        if table.unbounded {
            continue;
        }
        files.extend(match format {
            Some(format) if !is_compressed => Input::find_of_format(location, format)?.objects().to_vec(),
            _ => files_of_location(location)?,
        });
    }
    let Some(format) = format.filter(|_| !is_compressed && !files.is_empty()) else { return Ok(files) };
    let input = Input::of_objects(&table.locations.join(", "), files, format);
    match format {
        // Options may say that it is no JSON lines.
        InputFormat::Json if !table.options.is_empty() => {}
        InputFormat::Csv => {
            if let Some(csv) = csv_of(&table.options) {
                let header = input.checked_schema(&csv).map_err(|error| error.advised(OF_OPTIONS))?;
                if csv.has_header() {
                    declared_in_order(table, &header)?;
                }
            }
        }
        _ => drop(input.checked_schema(&CsvOptions::default())?),
    }
    Ok(input.objects().to_vec())
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

/// Registers a pinned table in place of the engine's. A table of texts whose types are to be found becomes a view with the
/// types of all its cells; returns the note on that.
async fn register(
    session: &SessionContext,
    name: &TableReference,
    pinned: PinnedTable,
    finds_types: bool,
) -> Result<String> {
    let begun = Instant::now();
    one_name_each(&pinned.schema())?;
    let bytes = pinned.files.iter().map(Object::bytes).sum();
    pinned.check_files(&session.state()).await?;
    let pinned: Arc<dyn TableProvider> = Arc::new(pinned);
    let (table, told) = if finds_types {
        let source = provider_as_source(pinned);
        let scan = LogicalPlanBuilder::scan(name.clone(), source, None).and_then(LogicalPlanBuilder::build);
        let texts = DataFrame::new(session.state(), scan.opening()?);
        let csv = CsvOptions::default();
        let types = find_types(&texts, &csv).await?;
        let typed = with_types(texts, &types, &csv)?.into_view();
        (typed, note(name.table(), bytes, begun.elapsed()))
    } else {
        (pinned, String::new())
    };
    session.deregister_table(name.clone()).asking()?;
    session.register_table(name.clone(), table).asking()?;
    Ok(told)
}
