//! Made-up hospital visits to try things on: `kanon generate`.
//!
//! The people in them do not exist. The data resembles real data where it matters for
//! anonymization: skewed zip codes and diagnoses, people with one visit and people with a hundred,
//! NULLs, a few very old people and very large bills, and small groups that share one diagnosis.
//!
//! # Contract
//! The same rows and seed give the same bytes on any machine. Memory does not grow with the number
//! of rows. The file appears under its name when it is complete.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};

use super::people::{Draw, MOST_PEOPLE, Person, Visit, visits_of};
use datafusion_kanon::{Error, Result};

/// The size of the window in which visits are shuffled, so that a person's visits are not adjacent.
const WINDOW: usize = 65_536;

/// The rows of a Parquet row group: small enough that a scan of a million rows keeps many threads
/// busy.
const ROW_GROUP: usize = 2 * WINDOW;

/// The random stream that shuffles; the others are one per person.
const SHUFFLE: u64 = u64::MAX;

/// Writes `rows` made-up visits as a Parquet file at `to`, replacing a file of that name.
///
/// The folder of `to` must exist. `progress` is called now and then with the number of rows written
/// so far; when it fails, this function fails too and leaves no file.
pub(crate) fn write_visits(
    rows: u64,
    seed: u64,
    to: &Path,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    if rows > MOST_PEOPLE {
        return Err(Error::policy(format!("{rows} rows are too many: at most {MOST_PEOPLE}")));
    }
    let partial = partial_name(to)?;
    let written = write_partial(rows, seed, &partial, progress)
        .and_then(|()| fs::rename(&partial, to).map_err(|e| Error::data(e).at(to.display())));
    if written.is_err() {
        // The partial file is useless; the first error is the one to report.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Returns `.FILE.partial` in the folder of FILE, so that the rename at the end stays on one file
/// system.
fn partial_name(to: &Path) -> Result<PathBuf> {
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(Error::data(format!("{}: no such folder; create it first", folder.display())));
    }
    match to.file_name() {
        Some(name) if !to.is_dir() => Ok(folder.join(format!(".{}.partial", name.display()))),
        _ => Err(Error::data(format!("{}: expected the name of a file, found a folder", to.display()))),
    }
}

/// Writes and syncs the whole file under its temporary name.
fn write_partial(
    rows: u64,
    seed: u64,
    partial: &Path,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let io_error = |e: std::io::Error| Error::from_io(&e).at(partial.display());
    // The writer's errors may quote cells. These are made up, but the message would not help.
    let writer_error = |e: ParquetError| {
        Error::of_system(&e)
            .unwrap_or_else(|| Error::data("the rows cannot be written"))
            .at(partial.display())
    };

    let schema = schema();
    let file = File::create(partial).map_err(io_error)?;
    let options = ArrowWriterOptions::new().with_properties(properties()).with_skip_arrow_metadata(true);
    let mut writer =
        ArrowWriter::try_new_with_options(&file, Arc::clone(&schema), options).map_err(writer_error)?;
    let mut visits = (0..).flat_map(|number| visits_of(seed, number));
    let mut shuffle = Draw::new(seed, SHUFFLE);
    let mut left = rows;
    while left > 0 {
        let size = usize::try_from(left).unwrap_or(WINDOW).min(WINDOW);
        let mut window: Vec<Visit> = visits.by_ref().take(size).collect();
        // Fisher-Yates shuffle.
        for last in (1..window.len()).rev() {
            window.swap(last, shuffle.index(last + 1));
        }
        writer.write(&batch(&schema, &window)?).map_err(writer_error)?;
        left -= size as u64;
        progress(rows - left)?;
    }
    writer.close().map_err(writer_error)?;
    file.sync_all().map_err(io_error)
}

/// Returns the writer settings, including every setting that the bytes depend on and whose default
/// a later version may change.
fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by("kanon".to_owned())
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_key_value_metadata(None)
        .build()
}

fn schema() -> SchemaRef {
    let field = |name, data_type, nullable| Field::new(name, data_type, nullable);
    Arc::new(Schema::new(vec![
        field("patient_id", DataType::Int64, false),
        field("ssn", DataType::Utf8, false),
        field("name", DataType::Utf8, false),
        field("dob", DataType::Date32, false),
        field("sex", DataType::Utf8, false),
        field("zip", DataType::Utf8, true),
        field("race", DataType::Utf8, true),
        field("education", DataType::Utf8, true),
        field("marital_status", DataType::Utf8, true),
        field("visit_date", DataType::Date32, false),
        field("diagnosis", DataType::Utf8, true),
        field("length_of_stay", DataType::Int32, true),
        field("cost", DataType::Float64, true),
    ]))
}

/// Builds the columns of [`schema`], in its order.
fn batch(schema: &SchemaRef, visits: &[Visit]) -> Result<RecordBatch> {
    let people = || visits.iter().map(|visit| visit.person.as_ref());
    let text = |column: fn(&Person) -> Option<&str>| -> ArrayRef {
        Arc::new(people().map(column).collect::<StringArray>())
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(people().map(|p| p.patient_id))),
        text(|p| Some(&p.ssn)),
        text(|p| Some(&p.name)),
        Arc::new(Date32Array::from_iter_values(people().map(|p| p.dob))),
        text(|p| Some(p.sex.letter())),
        text(|p| p.zip.as_deref()),
        text(|p| p.race),
        text(|p| p.education),
        text(|p| p.marital_status),
        Arc::new(Date32Array::from_iter_values(visits.iter().map(|v| v.date))),
        Arc::new(visits.iter().map(|v| v.diagnosis).collect::<StringArray>()),
        Arc::new(visits.iter().map(|v| v.days).collect::<Int32Array>()),
        Arc::new(
            visits.iter().map(|v| v.cents.map(|cents| f64::from(cents) / 100.0)).collect::<Float64Array>(),
        ),
    ];
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|_| Error::internal("generate: the columns of the visits do not match their schema"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow::array::{Array, AsArray};
    use arrow::compute::concat_batches;
    use arrow::datatypes::Int64Type;
    use arrow::util::display::array_value_to_string;
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    fn bytes(rows: u64, seed: u64) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("visits.parquet");
        write_visits(rows, seed, &to, &mut |_| Ok(())).unwrap();
        fs::read(to).unwrap()
    }

    fn read(rows: u64, seed: u64) -> RecordBatch {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("visits.parquet");
        write_visits(rows, seed, &to, &mut |_| Ok(())).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(to).unwrap()).unwrap();
        let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        concat_batches(&schema(), &batches).unwrap()
    }

    #[test]
    fn same_seed_same_bytes_other_seed_other_bytes() {
        assert_eq!(bytes(3000, 42), bytes(3000, 42));
        assert_ne!(bytes(3000, 42), bytes(3000, 43));
    }

    #[test]
    fn writes_the_rows_asked_for_and_tells_progress() {
        for rows in [0, 1, 70_000] {
            let folder = tempfile::tempdir().unwrap();
            let mut told = vec![0];
            write_visits(rows, 1, &folder.path().join("v.parquet"), &mut |done| {
                told.push(done);
                Ok(())
            })
            .unwrap();
            assert_eq!(told.last(), Some(&rows));
            assert_eq!(read(rows, 1).num_rows() as u64, rows);
        }
    }

    #[test]
    fn a_person_is_the_same_at_each_visit_and_not_in_one_run() {
        let visits = read(100_000, 5);
        let ids = visits.column(0).as_primitive::<Int64Type>();
        let mut fixed: HashMap<i64, Vec<String>> = HashMap::new();
        let mut ssns: HashMap<String, i64> = HashMap::new();
        for (row, id) in ids.values().iter().enumerate() {
            let cells: Vec<String> =
                (1..9).map(|c| array_value_to_string(visits.column(c), row).unwrap()).collect();
            assert_eq!(ssns.entry(cells[0].clone()).or_insert(*id), id);
            assert_eq!(fixed.entry(*id).or_insert_with(|| cells.clone()), &cells);
        }
        assert!((55_000..65_000).contains(&fixed.len()), "{} people", fixed.len());
        let neighbours = ids.values().windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(neighbours < 100, "{neighbours} neighbours are of one person");
    }

    #[test]
    fn some_cells_are_missing_on_purpose() {
        let visits = read(100_000, 9);
        for name in ["zip", "race", "education", "marital_status", "diagnosis", "length_of_stay", "cost"] {
            let missing = visits.column_by_name(name).unwrap().null_count();
            assert!((800..=3500).contains(&missing), "{name}: {missing}");
        }
    }

    #[test]
    fn refuses_a_missing_folder_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_visits(10, 1, &folder.path().join("no/v.parquet"), &mut |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), datafusion_kanon::ErrorKind::Data);
        assert!(write_visits(10, 1, folder.path(), &mut |_| Ok(())).is_err());
        write_visits(10, 1, &folder.path().join("v.parquet"), &mut |_| Ok(())).unwrap();
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["v.parquet"]);
    }
}
