//! INPUT as one table: the files of [`files`](super::files), their schema, and canonical columns.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, Schema, SchemaRef, TimeUnit,
};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::logical_expr::{Expr, cast, lit, when};
use datafusion::prelude::{DataFrame, SessionContext};

use super::files::{Input, InputFormat};
use super::infer_types::{Typing, typed};
use super::scan::FilesTable;
use super::{read_arrow, read_csv, read_json, read_parquet};
use crate::engine::functions::{OfValues, canonical_float, of_values};
use crate::engine::replay_table::table_of_partitions;
use crate::engine::{Context, INT96_UNIT, column};
use crate::error::{Error, ErrorCode, Result};
use crate::policy::{CsvOptions, CsvType, one_name_each};
use crate::store::{Object, PartitionColumns};

impl Input {
    /// Returns the schema of the input: that which all files share, and the columns of their folders, which are text unless the record
    /// of a release says their types. CSV columns
    /// are all text here, too.
    ///
    /// # Errors
    /// A data error when a file cannot be read or differs from the first, or has a column of a folder.
    #[doc(hidden)]
    pub fn file_schema(&self, csv: &CsvOptions) -> Result<SchemaRef> {
        let files = self.schema_of_files(csv)?;
        if self.folders.names.is_empty() {
            return Ok(files);
        }
        let names: Vec<String> = files.fields().iter().map(|field| field.name().clone()).collect();
        self.folders.check_against(&names).map_err(|error| error.at(format!("input `{}`", self.argument)))?;
        let data_type = |name: &String| match self.folders.recorded(name) {
            None | Some(DataType::Utf8) => DataType::Utf8View,
            Some(recorded) => recorded.clone(),
        };
        let folders = self.folders.names.iter().map(|name| Field::new(name, data_type(name), true));
        let fields = files.fields().iter().cloned().chain(folders.map(Arc::new));
        Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    fn schema_of_files(&self, csv: &CsvOptions) -> Result<SchemaRef> {
        let schema = match self.format {
            InputFormat::Parquet => self.common_schema(csv, |at, _| {
                Ok(without_metadata(&read_parquet::schema(&self.objects[at])?))
            })?,
            InputFormat::Csv => {
                let delimiter = read_csv::delimiter(self, csv)?;
                let files = self.copies.of(&self.objects, csv)?;
                self.common_schema(csv, |at, place| {
                    read_csv::schema(&files.paths[at], csv, delimiter, place)
                })?
            }
            InputFormat::Json => Arc::new(read_json::schema(&self.objects)?),
            InputFormat::Arrow => {
                let kinds = self.objects.iter().map(read_arrow::is_file);
                let kinds = kinds.collect::<Result<Vec<bool>>>()?;
                if let Some(other) = kinds.iter().position(|kind| kinds.first() != Some(kind)) {
                    let why = "Arrow files and Arrow streams are mixed; give files of one kind";
                    return Err(Error::data(why).at(self.objects[other].place()));
                }
                self.common_schema(csv, |at, _| {
                    Ok(without_metadata(&read_arrow::schema(&self.objects[at])?))
                })?
            }
        };
        if schema.fields().is_empty() {
            let why = format!("input `{}`: the input has no rows and no columns", self.argument);
            return Err(Error::data(why).coded(ErrorCode::EmptyInput));
        }
        one_name_each(&schema)?;
        Ok(schema)
    }

    /// Returns the schema that all files share, after a walk through Arrow files.
    ///
    /// # Errors
    /// Those of [`file_schema`](Self::file_schema); a data error for a damaged Arrow file.
    #[doc(hidden)]
    pub fn checked_schema(&self, csv: &CsvOptions) -> Result<SchemaRef> {
        let schema = self.file_schema(csv)?;
        if self.format == InputFormat::Arrow {
            self.objects.iter().try_for_each(read_arrow::check)?;
        }
        Ok(schema)
    }

    /// Returns the schema that all files share; `of` gets the place of a file in the list, and the
    /// words that name it in an error.
    fn common_schema(
        &self,
        csv: &CsvOptions,
        of: impl Fn(usize, &str) -> Result<Schema>,
    ) -> Result<SchemaRef> {
        let mut common: Option<(SchemaRef, &Object)> = None;
        for (at, file) in self.objects.iter().enumerate() {
            let place = file.place();
            let schema = of(at, &place)?;
            match &common {
                None => common = Some((Arc::new(schema), file)),
                Some((first, known)) => {
                    let same = match self.format {
                        InputFormat::Csv => same_names(first, known, &schema, csv.has_header()),
                        _ => same_columns(first, known, &schema),
                    };
                    same.map_err(|error| error.at(place).coded(ErrorCode::OtherColumns))?;
                }
            }
        }
        common.map(|(schema, _)| schema).ok_or_else(|| Error::internal("table: the input has no files"))
    }

    /// Reads the input as a table of canonical columns: text as `Utf8View` without dictionaries,
    /// one zero and one NaN, and the types of [`canonical_type`]; text columns of CSV and JSON
    /// files get their types from `csv_type`.
    ///
    /// # Errors
    /// A data error when files cannot be read or values do not fit their type.
    #[doc(hidden)]
    pub async fn table(
        &self,
        session: &SessionContext,
        csv: &CsvOptions,
        csv_type: &(dyn Fn(&str) -> CsvType + Sync),
    ) -> Result<DataFrame> {
        self.table_typed(session, csv, csv_type, Typing::Columnar).await
    }

    /// Checks every line of CSV files; files of other formats have no lines.
    ///
    /// # Errors
    /// A data error that names the first bad line.
    pub(crate) fn check_lines(&self, csv: &CsvOptions) -> Result<()> {
        if self.format != InputFormat::Csv {
            return Ok(());
        }
        let delimiter = read_csv::delimiter(self, csv)?;
        let texts = self.copies.of(&self.objects, csv)?;
        let mut files = self.objects.iter().zip(&texts.paths);
        files.try_for_each(|(file, path)| read_csv::check(path, delimiter, &file.place()))
    }

    /// Reads the input like [`table`](Self::table); `typing` selects the code that reads texts. The
    /// plain reading does not [check the lines](Self::check_lines): it is the second one, or its
    /// caller has checked them.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub(crate) async fn table_typed(
        &self,
        session: &SessionContext,
        csv: &CsvOptions,
        csv_type: &(dyn Fn(&str) -> CsvType + Sync),
        typing: Typing,
    ) -> Result<DataFrame> {
        self.table_within(session, csv, csv_type, typing, &|table| table).await
    }

    /// Reads the input like [`table_typed`](Self::table_typed); `within` may put the table of the files into another one.
    pub(super) async fn table_within(
        &self,
        session: &SessionContext,
        csv: &CsvOptions,
        csv_type: &(dyn Fn(&str) -> CsvType + Sync),
        typing: Typing,
        within: &(dyn Fn(Arc<dyn TableProvider>) -> Arc<dyn TableProvider> + Sync),
    ) -> Result<DataFrame> {
        let schema = self.checked_schema(csv)?;
        let raw = self.raw_within(session, csv, &schema, within)?;
        if self.format == InputFormat::Csv {
            if typing == Typing::Columnar {
                self.check_lines(csv)?;
            }
            let texts = with_nulls(raw, &schema, &self.folders, csv)?;
            return typed(texts, &schema, &|_| true, (csv, csv_type), typing).await;
        }
        let has_types = self.format.has_types();
        let is_of_folder = |name: &str| self.folders.names.iter().any(|folder| folder == name);
        let is_cells =
            |name: &str| !has_types || (is_of_folder(name) && self.folders.recorded(name).is_none());
        typed_table(raw, &schema, &is_cells, (csv, csv_type), typing).await
    }

    /// Reads Parquet files as a table whose floats keep their bits, for verification: -0.0 and the
    /// bits of a NaN could carry information out.
    pub(crate) fn as_written(&self, session: &SessionContext) -> Result<DataFrame> {
        let schema = self.file_schema(&CsvOptions::default())?;
        canonical(self.raw(session, &CsvOptions::default(), &schema)?, &schema, |float| float)
    }

    fn raw(&self, session: &SessionContext, csv: &CsvOptions, schema: &SchemaRef) -> Result<DataFrame> {
        self.raw_within(session, csv, schema, &|table| table)
    }

    /// Reads the files as they are; `within` may put their table into another one.
    pub(super) fn raw_within(
        &self,
        session: &SessionContext,
        csv: &CsvOptions,
        schema: &SchemaRef,
        within: &dyn Fn(Arc<dyn TableProvider>) -> Arc<dyn TableProvider>,
    ) -> Result<DataFrame> {
        if self.format == InputFormat::Csv {
            let delimiter = read_csv::delimiter(self, csv)?;
            if let Some(rows) =
                self.copies.of(&self.objects, csv)?.rows(schema, &self.folders, csv.has_header(), delimiter)
            {
                return table_of_partitions(session, rows);
            }
        }
        let format: Arc<dyn FileFormat> = match self.format {
            InputFormat::Parquet => {
                let pruning = session.copied_config().parquet_pruning();
                let format = ParquetFormat::default().with_enable_pruning(pruning).with_skip_metadata(true);
                Arc::new(format.with_coerce_int96(Some(INT96_UNIT.to_owned())))
            }
            InputFormat::Csv => Arc::new(
                CsvFormat::default()
                    .with_has_header(csv.has_header())
                    .with_delimiter(read_csv::delimiter(self, csv)?)
                    .with_newlines_in_values(true)
                    // Matches nothing: the code below decides which texts are NULL, including the
                    // empty text.
                    .with_null_regex(Some(r"[^\s\S]".to_owned())),
            ),
            InputFormat::Json => Arc::new(JsonFormat::default()),
            InputFormat::Arrow => Arc::new(ArrowFormat),
        };
        let table = FilesTable::new(&self.objects, format, schema, &self.folders)?;
        session.read_table(within(Arc::new(table))).context("opening the input")
    }
}

/// Returns the rows of an input that is not CSV as canonical columns. Columns of text get their types from `csv_type`
/// where `is_cells` says that they are cells of text, and where a column has no type.
///
/// # Errors
/// A data error when values do not fit their type.
pub(super) async fn typed_table(
    raw: DataFrame,
    schema: &Schema,
    is_cells: &(dyn Fn(&str) -> bool + Sync),
    (csv, csv_type): (&CsvOptions, &(dyn Fn(&str) -> CsvType + Sync)),
    typing: Typing,
) -> Result<DataFrame> {
    let is_text = |field: &Field| match canonical_type(field.data_type()) {
        DataType::Utf8View => is_cells(field.name()) || *field.data_type() == DataType::Null,
        _ => false,
    };
    typed(canonical(raw, schema, canonical_float)?, schema, &is_text, (csv, csv_type), typing).await
}

/// Returns the result of a query as canonical columns, like those of an input.
///
/// # Errors
/// A data error when two columns have one name.
pub(crate) fn canonical_table(table: DataFrame) -> Result<DataFrame> {
    let schema = table.schema().as_arrow().clone();
    one_name_each(&schema)?;
    canonical(table, &schema, canonical_float)
}

/// Does the same as [`canonical_table`], with floats unchanged.
///
/// # Errors
/// As [`canonical_table`].
pub(crate) fn canonical_floats_as_they_are(table: DataFrame) -> Result<DataFrame> {
    let schema = table.schema().as_arrow().clone();
    canonical(table, &schema, |float| float)
}

/// Keeps names and types alone: no metadata of the input may reach a release.
pub(super) fn without_metadata(schema: &Schema) -> Schema {
    let plain = |field: &Arc<Field>| Field::new(field.name(), field.data_type().clone(), true);
    Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>())
}

/// Checks that a CSV file has the first line of the first file, `file`. Where a file has no
/// names, its first line holds cells, so the error does not show them.
fn same_names(first: &Schema, file: &Object, other: &Schema, has_header: bool) -> Result<()> {
    const SAME: &str = "all files of a CSV input need the same columns in the same order";
    let (mut names, path) = (first.fields().iter().zip(other.fields()), file.shown());
    let advice = if has_header { "; if the line of names is missing here, add it" } else { "" };
    if let Some(at) = names.position(|(a, b)| a.name() != b.name()) {
        let column = at + 1;
        return Err(Error::data(format!(
            "column {column} does not have the name that it has in {path}; {SAME}{advice}"
        )));
    }
    if first.fields().len() != other.fields().len() {
        return Err(Error::data(format!(
            "the first line has {} cells, that of {path} has {}; {SAME}{advice}",
            other.fields().len(),
            first.fields().len()
        )));
    }
    Ok(())
}

/// Checks that a file has the columns of the first file, `file`, in the same order.
fn same_columns(first: &Schema, file: &Object, other: &Schema) -> Result<()> {
    const SAME: &str = "all files of an input must have the same columns of the same types in the same order";
    let path = file.shown();
    let find = |schema: &Schema, name: &str| schema.field_with_name(name).ok().map(|f| f.data_type().clone());
    for field in other.fields() {
        match find(first, field.name()) {
            None => {
                return Err(Error::data(format!(
                    "column `{}` is here but not in {path}; {SAME}: add it there, or remove it here",
                    field.name()
                )));
            }
            Some(known) if known != *field.data_type() => {
                return Err(Error::data(format!(
                    "column `{}` is {} here and {known} in {path}; {SAME}: cast one of them",
                    field.name(),
                    field.data_type(),
                )));
            }
            Some(_) => {}
        }
    }
    if let Some(missing) = first.fields().iter().find(|field| find(other, field.name()).is_none()) {
        return Err(Error::data(format!(
            "column `{}` of {path} is missing here; {SAME}: add it here (NULL where it is unknown)",
            missing.name()
        )));
    }
    let moved = first.fields().iter().zip(other.fields()).find(|(a, b)| a.name() != b.name());
    match moved {
        None if first.fields().len() == other.fields().len() => Ok(()),
        moved => Err(Error::data(format!(
            "column `{}` has another position than in {path}; {SAME}: write the columns in that order",
            moved.map_or("", |(_, here)| here.name())
        ))),
    }
}

/// Returns the type of a column in the plans of a release: no encodings, and no type that Parquet
/// would write as a plainer one. Types that convert without loss become one: halves are `Float32`,
/// decimals of up to 38 digits `Decimal128`; a column without a type is text.
pub fn canonical_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => canonical_type(values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => DataType::Utf8View,
        // Parquet has neither days in milliseconds nor seconds: they would be released as plain
        // integers.
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => {
            // Parquet has no negative scales: the zeros are written out.
            let zeros = scale.min(&0).unsigned_abs();
            let digits = digits.saturating_add(zeros).min(DECIMAL256_MAX_PRECISION);
            match digits {
                ..=DECIMAL128_MAX_PRECISION => DataType::Decimal128(digits, *scale.max(&0)),
                _ => DataType::Decimal256(digits, *scale.max(&0)),
            }
        }
        other => other.clone(),
    }
}

fn canonical(raw: DataFrame, schema: &Schema, float: fn(Expr) -> Expr) -> Result<DataFrame> {
    let columns: Vec<Expr> = schema
        .fields()
        .iter()
        .map(|field| {
            let plain = canonical_type(field.data_type());
            let (value, data_type) = decoded(column(field.name()), field.data_type());
            let value = match data_type {
                _ if *data_type == plain => value,
                DataType::Timestamp(TimeUnit::Second, _) | DataType::Time32(TimeUnit::Second) => {
                    of_values(Arc::new(Milliseconds), field.name(), value)
                }
                _ => cast(value, plain.clone()),
            };
            let value =
                if matches!(plain, DataType::Float32 | DataType::Float64) { float(value) } else { value };
            value.alias(field.name())
        })
        .collect();
    raw.select(columns).context("opening the input")
}

/// A cast of timestamps and times from seconds to milliseconds.
struct Milliseconds;

impl OfValues for Milliseconds {
    fn name(&self) -> &'static str {
        "kanon_milliseconds"
    }

    fn of_type(&self, values: &DataType) -> Result<DataType> {
        Ok(canonical_type(values))
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        // By default, Arrow turns values that do not fit into NULL.
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let milliseconds = cast_with_options(values, &canonical_type(values.data_type()), &strict);
        milliseconds.map_err(|_| {
            let what = if matches!(values.data_type(), DataType::Time32(_)) { "time of day" } else { "timestamp" };
            Error::data(format!(
                "a {what} in seconds is beyond the range of milliseconds, in which it would be written; correct it or \
                 write NULL"
            ))
        })
    }
}

/// Returns a column without its dictionary, and its type then. Arrow's cast from a dictionary of
/// texts to a view takes the text behind a NULL entry as the value; this one does not.
fn decoded(value: Expr, data_type: &DataType) -> (Expr, &DataType) {
    match data_type {
        DataType::Dictionary(_, plain) => decoded(cast(value, (**plain).clone()), plain),
        plain => (value, plain),
    }
}

/// Returns the text columns of CSV files; the texts in `nulls` become NULL. Partition columns have a NULL of their own.
pub(super) fn with_nulls(
    raw: DataFrame,
    schema: &Schema,
    folders: &PartitionColumns,
    csv: &CsvOptions,
) -> Result<DataFrame> {
    let nulls: Vec<Expr> = csv.nulls.iter().map(|text| lit(text.clone())).collect();
    let texts: Vec<Expr> = schema
        .fields()
        .iter()
        .map(|field| {
            if folders.names.contains(field.name()) {
                return Ok(column(field.name()));
            }
            // The reader always turns empty cells into NULL.
            let value = when(column(field.name()).is_null(), lit("")).otherwise(column(field.name()));
            let value = value.context("opening the input")?;
            let text = match nulls.is_empty() {
                true => value,
                false => {
                    let null = lit(datafusion::scalar::ScalarValue::Utf8(None));
                    let text = when(value.clone().in_list(nulls.clone(), false), null).otherwise(value);
                    text.context("opening the input")?
                }
            };
            Ok(cast(text, DataType::Utf8View).alias(field.name()))
        })
        .collect::<Result<_>>()?;
    raw.select(texts).context("opening the input")
}
