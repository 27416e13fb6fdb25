//! Parquet files: the types of their columns, as every reader of this crate takes them, and files
//! that are empty or encrypted.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use base64::Engine;
use datafusion::arrow::ipc::convert::try_schema_from_ipc_buffer;
use datafusion::datasource::file_format::parquet::Int96Coercer;
use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::parquet::basic::Type as PhysicalType;
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::FooterTail;

use super::parquet_encryption::encrypted_columns;
use crate::engine::Context;
use crate::engine::damaged::unless_it_panics;
use crate::error::{Error, ErrorCode, Result};
use crate::store::Object;

/// Returns the columns of a file: texts as views, timestamps with their time zones.
///
/// # Errors
/// A data error for a file that is empty, encrypted or damaged, or that has INT96 timestamps where
/// they can only be read in nanoseconds.
pub(super) fn schema(object: &Object) -> Result<Schema> {
    let place = object.place();
    let file = File::open(object.path()).context(&place)?;
    let read = || -> Result<Schema> {
        check_readable(&file).map_err(|error| error.at(&place))?;
        let metadata = metadata(&file).context(&place)?;
        if let Some(name) = in_nanoseconds(&metadata) {
            return Err(Error::data(format!(
                "column `{name}` holds INT96 timestamps in a list or map in which they can only be read in nanoseconds, \
                 which end in 2262; write it as TIMESTAMP_MICROS (in Spark: \
                 spark.sql.parquet.outputTimestampType), or leave it out"
            ))
            .at(&place));
        }
        let written = metadata.metadata().file_metadata().key_value_metadata().into_iter().flatten();
        let written = written.filter(|kv| kv.key == ARROW_SCHEMA_META_KEY).find_map(|kv| kv.value.as_deref());
        Ok(with_views(with_zones(metadata.schema(), written)))
    };
    // Arrow's reader panics on some damaged schemas, and so does the engine's reader later.
    unless_it_panics(read).unwrap_or_else(|| {
        let why = "the file is damaged: its footer, or the Arrow schema in it (ARROW:schema), cannot be \
             read; write the file again";
        Err(Error::data(why).at(&place).coded(ErrorCode::DamagedFile))
    })
}

/// Returns what a reader needs to know of a file. INT96 timestamps are read in microseconds: in the
/// reader's nanoseconds, those outside the years 1678 to 2261 would become others.
///
/// # Errors
/// Those of Parquet.
pub(super) fn metadata(file: &File) -> ParquetResult<ArrowReaderMetadata> {
    let read = ArrowReaderMetadata::load(file, ArrowReaderOptions::new())?;
    let coerced = Int96Coercer::new(read.parquet_schema(), read.schema(), &TimeUnit::Microsecond).coerce();
    match coerced {
        None => Ok(read),
        Some(schema) => {
            let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
            ArrowReaderMetadata::try_new(Arc::clone(read.metadata()), options)
        }
    }
}

/// Refuses a file that is empty or encrypted.
///
/// # Errors
/// A data error that says what to do.
pub(super) fn check_readable(file: &File) -> Result<()> {
    const NO_KEYS: &str =
        "kanon takes no keys; decrypt the file with the program that wrote it, and give the copy";
    let place = "reading the footer";
    let mut reader = file;
    let length = file.metadata().context(place)?.len();
    if length == 0 {
        let why = "the file is empty (0 bytes), as a job that was interrupted leaves it; write it again, or remove it if \
             nothing is missing";
        return Err(Error::data(why).coded(ErrorCode::DamagedFile));
    }
    let mut tail = [0; 8];
    if reader.seek(SeekFrom::End(-8)).is_err() || reader.read_exact(&mut tail).is_err() {
        return Ok(());
    }
    // The reader of the file refuses what is no footer.
    let Ok(tail) = FooterTail::try_new(&tail) else { return Ok(()) };
    if tail.is_encrypted_footer() {
        return Err(Error::data(format!("the file is encrypted, its footer too, and {NO_KEYS}")));
    }
    let before = u64::try_from(tail.metadata_length())
        .ok()
        .and_then(|bytes| length.checked_sub(bytes.checked_add(8)?));
    let Some(before) = before else { return Ok(()) };
    let mut footer = vec![0; tail.metadata_length()];
    reader.seek(SeekFrom::Start(before)).context(place)?;
    reader.read_exact(&mut footer).context(place)?;
    let encrypted = encrypted_columns(&footer).unwrap_or_default();
    if encrypted.is_empty() {
        return Ok(());
    }
    let names = metadata(file).map(|read| {
        let leaves = encrypted.iter().filter_map(|place| read.parquet_schema().columns().get(*place));
        leaves.map(|leaf| format!("`{}`", leaf.path().string())).collect::<BTreeSet<_>>()
    });
    let names = names.unwrap_or_default().into_iter().collect::<Vec<_>>().join(", ");
    Err(Error::data(format!("these columns are encrypted: {names}; {NO_KEYS}")))
}

/// Returns a column whose INT96 timestamps are still read in nanoseconds.
fn in_nanoseconds(metadata: &ArrowReaderMetadata) -> Option<String> {
    let (columns, schema) = (metadata.parquet_schema(), metadata.schema());
    let of_int96 = (0..columns.num_columns())
        .filter(|leaf| columns.column(*leaf).physical_type() == PhysicalType::INT96);
    let mut roots = of_int96.map(|leaf| columns.get_column_root(leaf).name());
    let found =
        roots.find(|name| schema.field_with_name(name).is_ok_and(|field| has_nanoseconds(field.data_type())));
    found.map(str::to_owned)
}

fn has_nanoseconds(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(TimeUnit::Nanosecond, None) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_nanoseconds(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_nanoseconds(field.data_type())),
        _ => false,
    }
}

/// Reads texts as views, which the Parquet reader produces faster than other texts.
fn with_views(schema: Schema) -> Schema {
    let viewed = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => Arc::new(Field::new(field.name(), DataType::Utf8View, true)),
        _ => Arc::clone(field),
    };
    Schema::new(schema.fields().iter().map(viewed).collect::<Vec<_>>())
}

/// Gives timestamps the time zones of the Arrow schema in the footer: the Parquet reader drops a
/// zone if the writer changed the unit, and days would then be those of UTC.
fn with_zones(schema: &Schema, written: Option<&str>) -> Schema {
    let bytes = written.and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok());
    let Some(written) = bytes.and_then(|bytes| try_schema_from_ipc_buffer(&bytes).ok()) else {
        return schema.clone();
    };
    let zoned = |field: &Arc<Field>| match (field.data_type(), written.field_with_name(field.name())) {
        (DataType::Timestamp(unit, Some(_)), Ok(argument)) => match argument.data_type() {
            DataType::Timestamp(_, Some(zone)) => {
                let zoned = DataType::Timestamp(*unit, Some(Arc::clone(zone)));
                Field::new(field.name(), zoned, true)
            }
            _ => Field::clone(field),
        },
        _ => Field::clone(field),
    };
    Schema::new(schema.fields().iter().map(zoned).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::parquet::file::properties::WriterProperties;
    use datafusion::parquet::file::writer::SerializedFileWriter;
    use datafusion::parquet::schema::parser::parse_message_type;

    /// The columns of a file without rows.
    fn schema_of(message: &str) -> Result<Schema> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let columns = Arc::new(parse_message_type(message).unwrap());
        let properties = Arc::new(WriterProperties::default());
        let writer = SerializedFileWriter::new(file.reopen().unwrap(), columns, properties).unwrap();
        writer.close().unwrap();
        schema(&Object::of_file(file.path().to_path_buf()).unwrap())
    }

    #[test]
    fn int96_is_never_read_in_nanoseconds() {
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        let plain = schema_of("message m { optional int96 open; required int96 shut; }").unwrap();
        assert!(plain.fields().iter().all(|field| *field.data_type() == micros), "{plain}");
        let list =
            "message m { optional group x (LIST) { repeated group list { optional int96 element; } } }";
        match schema_of(list).unwrap().field(0).data_type() {
            DataType::List(item) => assert_eq!(*item.data_type(), micros),
            other => assert_eq!(other, &micros),
        }
        // The engine does not know the names of this older form.
        let older =
            "message m { optional group x (LIST) { repeated group bag { optional int96 array_element; } } }";
        let error = schema_of(older).unwrap_err().to_string();
        assert!(error.contains("column `x` holds INT96 timestamps in a list or map"), "{error}");
    }
}
