//! INPUT: a file, a folder or a glob of Parquet or CSV files, pinned and read as one table.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

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
use super::functions::canonical_float;
use crate::error::{Error, Result};
use crate::policy::{CsvOptions, CsvType};

/// The formats that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Comma- or otherwise separated text.
    Csv,
}

/// A file as it was when the run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// When it was last changed.
    pub modified: Option<SystemTime>,
}

impl PinnedFile {
    fn new(path: PathBuf) -> Result<Self> {
        let facts = fs::metadata(&path).doing(&format!("input file {}", path.display()))?;
        Ok(Self { path, bytes: facts.len(), modified: facts.modified().ok() })
    }
}

/// The input files, all of one format.
#[derive(Debug, Clone)]
pub struct Input {
    /// What the user typed.
    pub said: String,
    /// The files in the order of their paths.
    pub files: Vec<PinnedFile>,
    /// Their format.
    pub format: Format,
}

impl Input {
    /// Finds the files of INPUT. Names that begin with `_` or `.` are skipped in folders and globs.
    ///
    /// # Errors
    /// A data error when there is none, when formats are mixed or not known.
    pub fn find(said: &str) -> Result<Self> {
        let path = Path::new(said);
        let mut paths = Vec::new();
        if path.is_dir() {
            collect(path, &mut paths)?;
        } else if path.exists() {
            paths.push(path.to_path_buf());
        } else if said.contains(['*', '?', '[']) {
            let matches =
                glob::glob(said).map_err(|e| Error::policy(format!("input `{said}`: {}", e.msg)))?;
            // What the pattern itself names may be hidden; what it finds below may not.
            let named = Path::new(said).components().take_while(|part| !is_pattern(part.as_os_str())).count();
            for found in matches {
                let found =
                    found.map_err(|e| Error::data(format!("input `{said}`: {}", e.error().kind())))?;
                let below: PathBuf = found.components().skip(named).collect();
                if below.ancestors().any(is_hidden) {
                    continue;
                }
                if let Some(folder) =
                    below.ancestors().skip(usize::from(!found.is_dir())).find(|folder| is_partition(folder))
                {
                    return Err(partitioned(folder));
                }
                if found.is_dir() { collect(&found, &mut paths)? } else { paths.push(found) }
            }
        } else {
            return Err(Error::data(format!("input `{said}`: there is no such file, folder or glob")));
        }
        paths.sort();
        // A file that is reached in two ways is one file.
        let mut known = std::collections::HashSet::new();
        paths.retain(|path| known.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
        let formats: Vec<Format> = paths.iter().map(|p| format_of(p)).collect::<Result<_>>()?;
        let format = *formats.first().ok_or_else(|| {
            Error::data(format!("input `{said}`: no file found; expected .parquet or .csv files"))
        })?;
        if formats.iter().any(|other| *other != format) {
            return Err(Error::data(format!(
                "input `{said}`: Parquet and CSV files are mixed; give one kind"
            )));
        }
        let files = paths.into_iter().map(PinnedFile::new).collect::<Result<_>>()?;
        Ok(Self { said: said.to_owned(), files, format })
    }

    /// Checks that no file changed since [`Input::find`].
    ///
    /// # Errors
    /// A data error that names the first file that did.
    pub fn still_the_same(&self) -> Result<()> {
        let now = Self::find(&self.said)?;
        if now.files.len() != self.files.len() {
            return Err(Error::data(
                "the input changed during the run: files came or went; nothing was published",
            ));
        }
        match self.files.iter().zip(&now.files).find(|(before, after)| before != after) {
            None => Ok(()),
            Some((file, _)) => Err(Error::data(format!(
                "input file {} changed during the run; nothing was published",
                file.path.display()
            ))),
        }
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }

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

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let place = format!("input folder {}", folder.display());
    for entry in fs::read_dir(folder).doing(&place)? {
        let path = entry.doing(&place)?.path();
        if is_hidden(&path) {
            continue;
        }
        if !path.is_dir() {
            paths.push(path);
        } else if is_partition(&path) {
            return Err(partitioned(&path));
        } else {
            collect(&path, paths)?;
        }
    }
    Ok(())
}

fn is_pattern(part: &std::ffi::OsStr) -> bool {
    part.to_string_lossy().contains(['*', '?', '['])
}

fn is_partition(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().contains('='))
}

fn partitioned(folder: &Path) -> Error {
    Error::data(format!(
        "input folder {}: partition folders (`name=value`) are not read yet, their columns would be lost; \
         give files that hold all columns",
        folder.display()
    ))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['_', '.']))
}

fn format_of(path: &Path) -> Result<Format> {
    let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "parquet" | "pq" => Ok(Format::Parquet),
        "csv" | "tsv" | "txt" => Ok(Format::Csv),
        _ => Err(Error::data(format!(
            "input file {}: expected a name that ends in .parquet or .csv (JSON and Arrow files are not read yet)",
            path.display()
        ))),
    }
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
                DataType::Dictionary(..) | DataType::Utf8 | DataType::LargeUtf8 => {
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
            let value = column(field.name());
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
            let misfit = value.is_not_null().and(misfit);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_or_reached_twice_is_not_read_twice() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            "a.parquet",
            "sub/b.parquet",
            "_temporary/a.parquet",
            ".x.kanon-work/release/a.parquet",
            "_log.parquet",
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "").unwrap();
        }
        let found = |said: PathBuf| {
            let input = Input::find(said.to_str().unwrap()).unwrap();
            input.files.into_iter().map(|file| file.path).collect::<Vec<_>>()
        };
        let both = vec![at("a.parquet"), at("sub/b.parquet")];
        assert_eq!(found(folder.path().to_path_buf()), both);
        assert_eq!(found(at("*")), both);
        assert_eq!(found(at("**/*.parquet")), both);
        assert_eq!(found(at("_temporary/*.parquet")), [at("_temporary/a.parquet")]);
        fs::create_dir(at("year=2024")).unwrap();
        fs::write(at("year=2024/c.parquet"), "").unwrap();
        for said in [at("*"), at("**/*.parquet"), folder.path().to_path_buf()] {
            let error = Input::find(said.to_str().unwrap()).unwrap_err();
            assert!(error.to_string().contains("partition folders"), "{error}");
        }
    }
}
