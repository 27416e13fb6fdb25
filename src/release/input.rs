//! INPUT as one table: the files of [`files`](super::files), their schema, and canonical columns.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, cast, lit, try_cast, when};
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::prelude::{DataFrame, SessionContext};

use super::engine::{Doing, column};
pub use super::files::{Format, Input, PinnedFile};
use super::functions::canonical_float;
use crate::error::{Error, Result};
use crate::policy::{CsvOptions, CsvType};

impl Input {
    /// The schema that all files share; CSV columns are all text here.
    ///
    /// # Errors
    /// A data error when a file cannot be read or differs from the first.
    pub fn file_schema(&self, csv: &CsvOptions) -> Result<SchemaRef> {
        let mut common: Option<SchemaRef> = None;
        for file in &self.files {
            let schema = match self.format {
                Format::Parquet => parquet_schema(&file.path)?,
                Format::Csv => csv_schema(&file.path, csv)?,
            };
            match &common {
                None => common = Some(Arc::new(schema)),
                Some(first) => same_columns(first, &schema, &file.path)?,
            }
        }
        let common = common.ok_or_else(|| Error::internal("an input without files"))?;
        let mut names = std::collections::HashSet::new();
        match common.fields().iter().find(|field| !names.insert(field.name().as_str())) {
            None => Ok(common),
            Some(twice) => {
                let why = format!("the input has two columns named `{}`; rename one", twice.name());
                Err(Error::data(why))
            }
        }
    }

    /// The input as a table of canonical columns: text as `Utf8View` without dictionaries, one zero and one
    /// NaN; CSV columns typed by `csv_type`.
    ///
    /// # Errors
    /// A data error when files cannot be read or values do not fit their type.
    pub async fn table(
        &self,
        session: &SessionContext,
        csv: &CsvOptions,
        csv_type: &(dyn Fn(&str) -> CsvType + Sync),
    ) -> Result<DataFrame> {
        let schema = self.file_schema(csv)?;
        let raw = self.raw(session, csv, &schema)?;
        match self.format {
            Format::Parquet => canonical(raw, &schema, canonical_float),
            Format::Csv => typed(raw, &schema, csv, csv_type).await,
        }
    }

    /// Parquet files as a table whose floats are the files' bits, for verification: -0.0 and the bits of a NaN
    /// could carry something out.
    pub(super) fn as_written(&self, session: &SessionContext) -> Result<DataFrame> {
        let schema = self.file_schema(&CsvOptions::default())?;
        canonical(self.raw(session, &CsvOptions::default(), &schema)?, &schema, |float| float)
    }

    fn raw(&self, session: &SessionContext, csv: &CsvOptions, schema: &SchemaRef) -> Result<DataFrame> {
        let format: Arc<dyn FileFormat> = match self.format {
            Format::Parquet => {
                Arc::new(ParquetFormat::default().with_enable_pruning(false).with_skip_metadata(true))
            }
            Format::Csv => Arc::new(
                CsvFormat::default()
                    .with_has_header(csv.header)
                    .with_delimiter(csv.delimiter)
                    .with_newlines_in_values(true)
                    // Matches nothing: which texts are NULL is decided below, for the empty text too.
                    .with_null_regex(Some(r"[^\s\S]".to_owned())),
            ),
        };
        let urls = self
            .files
            .iter()
            .map(|file| {
                let absolute =
                    fs::canonicalize(&file.path).doing(&format!("input file {}", file.path.display()))?;
                let url = ListingTableUrl::try_new(url_of(&absolute)?, None);
                url.doing("the input's address")
            })
            .collect::<Result<Vec<ListingTableUrl>>>()?;
        let config = ListingTableConfig::new_with_multi_paths(urls)
            .with_listing_options(ListingOptions::new(format).with_file_extension(""))
            .with_schema(Arc::clone(schema));
        let table = ListingTable::try_new(config).doing("opening the input")?;
        session.read_table(Arc::new(table)).doing("opening the input")
    }
}

fn url_of(absolute: &Path) -> Result<url::Url> {
    url::Url::from_file_path(absolute)
        .map_err(|()| Error::data(format!("{} is no absolute path", absolute.display())))
}

fn parquet_schema(path: &Path) -> Result<Schema> {
    let place = format!("input file {}", path.display());
    let file = fs::File::open(path).doing(&place)?;
    let reader = SerializedFileReader::new(file).doing(&place)?;
    let facts = reader.metadata().file_metadata();
    let schema = parquet_to_arrow_schema(facts.schema_descr(), facts.key_value_metadata()).doing(&place)?;
    // No metadata of the input may reach a release.
    let fields: Vec<Field> =
        schema.fields().iter().map(|f| Field::new(f.name(), f.data_type().clone(), true)).collect();
    Ok(Schema::new(fields))
}

fn csv_schema(path: &Path, csv: &CsvOptions) -> Result<Schema> {
    let place = format!("input file {}", path.display());
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(csv.delimiter)
        .has_headers(false)
        .from_path(path)
        .map_err(|_| Error::data("cannot be opened").at(&place))?;
    let mut first = csv::StringRecord::new();
    let any = reader
        .read_record(&mut first)
        .map_err(|_| Error::data("the first line is no CSV in UTF-8").at(&place))?;
    if !any {
        return Err(Error::data("the file is empty").at(&place));
    }
    if let (1, Some(mark)) =
        (first.len(), [";", "\t", "|", ","].into_iter().find(|mark| first[0].contains(*mark)))
    {
        return Err(Error::policy(format!(
            "{place}: the first line is one field that holds {mark:?}; if that separates the columns, say \
             delimiter = {mark:?} under [input] in a policy"
        )));
    }
    let names = first.iter().enumerate().map(|(index, name)| {
        if csv.header {
            name.trim_start_matches('\u{feff}').to_owned()
        } else {
            format!("column_{}", index + 1)
        }
    });
    Ok(Schema::new(names.map(|name| Field::new(name, DataType::Utf8, true)).collect::<Vec<_>>()))
}

fn same_columns(first: &Schema, other: &Schema, path: &Path) -> Result<()> {
    let place = format!("input file {}", path.display());
    for field in other.fields() {
        match first.field_with_name(field.name()) {
            Err(_) => {
                return Err(Error::data(format!(
                    "column `{}` is in no earlier file; all files of an input must have the same columns",
                    field.name()
                ))
                .at(place));
            }
            Ok(known) if known.data_type() != field.data_type() => {
                return Err(Error::data(format!(
                    "column `{}` is {} here and {} in an earlier file",
                    field.name(),
                    field.data_type(),
                    known.data_type()
                ))
                .at(place));
            }
            Ok(_) => {}
        }
    }
    let order = |schema: &Schema| schema.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    if order(first) != order(other) {
        return Err(
            Error::data("the columns are not those of the earlier files, or in another order").at(place)
        );
    }
    Ok(())
}

/// The type of a column without encodings: what `canonical` makes of it.
pub fn canonical_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => canonical_type(values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8View,
        // Parquet knows no days in milliseconds: they would be released as plain integers.
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        other => other.clone(),
    }
}

fn canonical(raw: DataFrame, schema: &Schema, float: fn(Expr) -> Expr) -> Result<DataFrame> {
    let columns: Vec<Expr> = schema
        .fields()
        .iter()
        .map(|field| {
            let plain = canonical_type(field.data_type());
            let value = match field.data_type() {
                DataType::Dictionary(..) | DataType::Utf8 | DataType::LargeUtf8 | DataType::Date64 => {
                    cast(column(field.name()), plain.clone())
                }
                _ => column(field.name()),
            };
            let value =
                if matches!(plain, DataType::Float32 | DataType::Float64) { float(value) } else { value };
            value.alias(field.name())
        })
        .collect();
    raw.select(columns).doing("opening the input")
}

/// Types the text columns of CSV files; the texts of `nulls` are NULL.
async fn typed(
    raw: DataFrame,
    schema: &Schema,
    csv: &CsvOptions,
    csv_type: &(dyn Fn(&str) -> CsvType + Sync),
) -> Result<DataFrame> {
    let nulls: Vec<Expr> = csv.nulls.iter().map(|text| lit(text.clone())).collect();
    let texts: Vec<Expr> = schema
        .fields()
        .iter()
        .map(|field| {
            // The reader makes NULL of empty cells, whatever it is told.
            let value = when(column(field.name()).is_null(), lit("")).otherwise(column(field.name()));
            let value = value.doing("opening the input")?;
            if nulls.is_empty() {
                return Ok(value.alias(field.name()));
            }
            let text = when(
                value.clone().in_list(nulls.clone(), false),
                lit(datafusion::scalar::ScalarValue::Utf8(None)),
            )
            .otherwise(value);
            Ok(text.doing("opening the input")?.alias(field.name()))
        })
        .collect::<Result<_>>()?;
    let texts = raw.select(texts).doing("opening the input")?;
    let types = choose_types(&texts, schema, csv_type).await?;
    let columns: Vec<Expr> = schema
        .fields()
        .iter()
        .zip(types)
        .map(|(field, data_type)| {
            let value = cast(column(field.name()), data_type.clone());
            let value = if data_type == DataType::Float64 { canonical_float(value) } else { value };
            value.alias(field.name())
        })
        .collect();
    texts.select(columns).doing("opening the input")
}

/// Whether a text is not NULL and cannot be read as a value of this type.
pub(super) fn misfit(value: &Expr, data_type: &DataType) -> Expr {
    let read = try_cast(value.clone(), data_type.clone());
    let misfit = read.clone().is_null();
    // A date reads the day of a timestamp and drops the time.
    let misfit = match data_type {
        DataType::Date32 => {
            let whole = DataType::Timestamp(TimeUnit::Microsecond, None);
            misfit.or(try_cast(value.clone(), whole.clone()).not_eq(try_cast(read, whole)))
        }
        _ => misfit,
    };
    // A moment in another zone would become another day in UTC.
    let misfit = match data_type {
        DataType::Date32 | DataType::Timestamp(..) => {
            let east = value.clone().like(lit("%:%+%")).and(value.clone().not_like(lit("%+00:00")));
            misfit.or(east).or(value.clone().like(lit("%:%-%")))
        }
        _ => misfit,
    };
    value.clone().is_not_null().and(misfit)
}

/// The narrowest type of its kind that every value of a column fits, found in one pass over the columns that
/// are not text.
async fn choose_types(
    texts: &DataFrame,
    schema: &Schema,
    csv_type: &(dyn Fn(&str) -> CsvType + Sync),
) -> Result<Vec<DataType>> {
    let candidates = |name: &str| match csv_type(name) {
        CsvType::Text => vec![],
        CsvType::Number => vec![DataType::Int64, DataType::Float64],
        CsvType::Date => vec![DataType::Date32, DataType::Timestamp(TimeUnit::Microsecond, None)],
    };
    let mut misfits = Vec::new();
    for field in schema.fields() {
        for data_type in candidates(field.name()) {
            let misfit = misfit(&column(field.name()), &data_type);
            let counted = when(misfit, lit(1i64)).end().doing("typing the CSV columns")?;
            misfits.push(count(counted).alias(format!("misfit_{}", misfits.len())));
        }
    }
    let mut counts = Vec::new();
    if !misfits.is_empty() {
        let counted = texts.clone().aggregate(vec![], misfits).doing("typing the CSV columns")?;
        for batch in counted.collect().await.doing("typing the CSV columns")? {
            for array in batch.columns() {
                use arrow::array::AsArray;
                counts.push(array.as_primitive::<arrow::datatypes::Int64Type>().value(0));
            }
        }
    }
    let mut counts = counts.into_iter();
    schema
        .fields()
        .iter()
        .map(|field| {
            let candidates = candidates(field.name());
            let tried: Vec<(DataType, i64)> = candidates.into_iter().zip(&mut counts).collect();
            let Some((_, least)) = tried.iter().min_by_key(|(_, misfits)| *misfits) else {
                return Ok(DataType::Utf8View);
            };
            match tried.iter().find(|(_, misfits)| *misfits == 0) {
                Some((fitting, _)) => Ok(fitting.clone()),
                None => Err(Error::data(format!(
                    "column `{}`: {least} rows hold no {}; name the texts that mean \"missing\" in [input] nulls, \
                     or choose a hierarchy for text",
                    field.name(),
                    if csv_type(field.name()) == CsvType::Number { "number" } else { "date" },
                ))),
            }
        })
        .collect()
}
