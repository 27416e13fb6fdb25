//! Copies in UTF-8 of CSV files in another encoding: the engine reads no other.
//!
//! They lie in a folder of the run under the system's folder for temporary files, which only the
//! owner may read, and go with the input and the queries over it.
//!
//! A query may outlive the input that it reads, so the rows of a copy hold it. Standard input is read by
//! commands only, which keep it to their end.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use datafusion::arrow::csv::{Reader, ReaderBuilder};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use encoding_rs::{CoderResult, Encoding, UTF_8};

use super::files::Input;
use super::formats::check_is_text;
use crate::engine::temporary::TemporaryFolder;
use crate::engine::{Context, into_engine};
use crate::error::{Error, Result};
use crate::policy::CsvOptions;
use crate::store::{Object, PartitionColumns};

/// The bytes of a file by which its encoding is guessed.
const HEAD: u64 = 16 << 20;

/// The copies of an input, by the encoding that the policy says.
#[derive(Debug, Clone, Default)]
pub(super) struct Utf8Copies(Arc<Mutex<BTreeMap<Option<&'static str>, Utf8Files>>>);

/// The files of a CSV input in UTF-8.
#[derive(Debug, Clone)]
pub(super) struct Utf8Files {
    /// From where each file is read.
    pub(super) paths: Vec<PathBuf>,
    /// The folder of the copies, if the files are copies.
    folder: Option<Arc<TemporaryFolder>>,
}

impl Utf8Copies {
    /// Returns the files of a CSV input in UTF-8: themselves, or copies.
    ///
    /// # Errors
    /// A data error for a workbook or an archive, for bytes that are no text in the encoding, or if
    /// a copy cannot be written.
    pub(super) fn of(&self, files: &[Object], csv: &CsvOptions) -> Result<Utf8Files> {
        files.iter().try_for_each(|file| check_is_text(&first_bytes(file, 16)?, &file.place()))?;
        let encodings = files.iter().map(|file| csv.encoding.map_or_else(|| by_mark(file), Ok));
        let encodings = encodings.collect::<Result<Vec<_>>>()?;
        if encodings.iter().all(|encoding| *encoding == UTF_8) {
            let paths = files.iter().map(|file| file.path().to_path_buf()).collect();
            return Ok(Utf8Files { paths, folder: None });
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = csv.encoding.map(Encoding::name);
        if let Some(copies) = known.get(&name) {
            return Ok(copies.clone());
        }
        let doing = "writing a copy of the input in UTF-8 to the folder for temporary files";
        let folder = TemporaryFolder::new().context(doing)?;
        let paths: Vec<PathBuf> =
            (0..files.len()).map(|at| folder.path().join(format!("{at}.csv"))).collect();
        for ((file, path), encoding) in files.iter().zip(&paths).zip(encodings) {
            copy(file.path(), path, encoding, &file.place())?;
        }
        let copies = Utf8Files { paths, folder: Some(Arc::new(folder)) };
        known.insert(name, copies.clone());
        Ok(copies)
    }
}

impl Utf8Files {
    /// Returns the rows of copies, a partition for each; they keep the copies. `None` if the files
    /// are no copies.
    pub(super) fn rows(
        &self,
        schema: &SchemaRef,
        folders: &PartitionColumns,
        has_header: bool,
        delimiter: u8,
    ) -> Option<Vec<Arc<dyn PartitionStream>>> {
        let folder = self.folder.as_ref()?;
        let rows = |(at, path): (usize, &PathBuf)| {
            let (path, folder, schema) = (path.clone(), Arc::clone(folder), Arc::clone(schema));
            let values = folders.values.get(at).cloned().unwrap_or_default();
            Arc::new(Rows { path, folder, schema, values, has_header, delimiter }) as Arc<dyn PartitionStream>
        };
        Some(self.paths.iter().enumerate().map(rows).collect())
    }
}

/// The rows of a copy.
#[derive(Clone)]
struct Rows {
    path: PathBuf,
    /// A query may outlive the input that it reads.
    folder: Arc<TemporaryFolder>,
    schema: SchemaRef,
    /// The values of the partition columns, which are the last.
    values: Vec<Option<String>>,
    has_header: bool,
    delimiter: u8,
}

/// Shows no values of folders.
impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The batches that wait for the query.
const WAITING: usize = 2;
/// The rows of a batch.
const BATCH: usize = 8192;

impl Rows {
    fn open(&self) -> std::result::Result<Reader<File>, DataFusionError> {
        let file =
            File::open(&self.path).context("reading the copy of the input in UTF-8").map_err(into_engine)?;
        let fields = self.schema.fields();
        let of_file = Arc::new(Schema::new(&fields[..fields.len() - self.values.len()]));
        let builder = ReaderBuilder::new(of_file).with_header(self.has_header);
        Ok(builder.with_delimiter(self.delimiter).with_batch_size(BATCH).build(file)?)
    }

    /// Adds the partition columns to rows of the file.
    fn with_folders(&self, rows: &RecordBatch) -> std::result::Result<RecordBatch, DataFusionError> {
        let value =
            |value: &Option<String>| ScalarValue::Utf8View(value.clone()).to_array_of_size(rows.num_rows());
        let values: Vec<ArrayRef> = self.values.iter().map(value).collect::<Result<_, DataFusionError>>()?;
        let columns = rows.columns().iter().cloned().chain(values);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns.collect())?)
    }
}

impl PartitionStream for Rows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), WAITING);
        let (send, rows) = (stream.tx(), self.clone());
        stream.spawn_blocking(move || {
            for batch in rows.open()? {
                // The query wants no more.
                let batch = batch.map_err(DataFusionError::from).and_then(|batch| rows.with_folders(&batch));
                if send.blocking_send(batch).is_err() {
                    break;
                }
            }
            drop(rows.folder);
            Ok(())
        });
        stream.build()
    }
}

/// Returns UTF-16 if a file begins with its byte order mark, else UTF-8.
fn by_mark(file: &Object) -> Result<&'static Encoding> {
    Ok(Encoding::for_bom(&first_bytes(file, 3)?).map_or(UTF_8, |(encoding, _)| encoding))
}

fn first_bytes(file: &Object, count: u64) -> Result<Vec<u8>> {
    let (mut first, place) = (Vec::new(), file.place());
    File::open(file.path()).context(&place)?.take(count).read_to_end(&mut first).context(&place)?;
    Ok(first)
}

/// Guesses the encoding of the files of an input from the first bytes of each.
///
/// # Errors
/// A data error when a file cannot be read, or when some are in UTF-8 and others are not.
pub(crate) fn guess(input: &Input) -> Result<&'static Encoding> {
    let (mut in_utf8, mut other) = (None, None);
    for file in &input.objects {
        let place = file.place();
        let mut first = Vec::new();
        File::open(file.path()).context(&place)?.take(HEAD).read_to_end(&mut first).context(&place)?;
        check_is_text(&first, &place)?;
        // The last character may be cut in the middle.
        let is_utf8 = std::str::from_utf8(&first).map_or_else(|e| e.error_len().is_none(), |_| true);
        if Encoding::for_bom(&first).is_some() || is_utf8 && !first.is_ascii() {
            in_utf8 = Some(file);
        } else if !is_utf8 {
            let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
            detector.feed(&first, true);
            other = Some((file, detector.guess(None, Utf8Detection::Deny)));
        }
    }
    match (in_utf8, other) {
        (Some(utf8), Some((file, encoding))) => Err(Error::data(format!(
            "{}: is not in UTF-8 but most likely in {}, and {} is: save all files in UTF-8",
            file.place(),
            encoding.name(),
            utf8.shown()
        ))),
        (_, other) => Ok(other.map_or(UTF_8, |(_, encoding)| encoding)),
    }
}

/// Copies a file in an encoding to one in UTF-8, without a byte order mark.
fn copy(from: &Path, to: &Path, encoding: &'static Encoding, place: &str) -> Result<()> {
    let doing = "writing a copy of the input in UTF-8";
    let mut from = File::open(from).context(place)?;
    let mut to = File::create_new(to).context(doing)?;
    let mut decoder = encoding.new_decoder();
    let (mut bytes, mut text) = (vec![0; 1 << 16], String::with_capacity(1 << 18));
    loop {
        let count = from.read(&mut bytes).context(place)?;
        let mut rest = &bytes[..count];
        loop {
            let (result, read, is_damaged) = decoder.decode_to_string(rest, &mut text, count == 0);
            if is_damaged {
                let why =
                    format!("holds bytes that are no text in {}; correct the encoding", encoding.name());
                return Err(Error::data(why).at(place));
            }
            to.write_all(text.as_bytes()).context(doing)?;
            text.clear();
            rest = &rest[read..];
            if result == CoderResult::InputEmpty {
                break;
            }
        }
        if count == 0 {
            return to.flush().context(doing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(bytes: &[u8], encoding: &str) -> Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from.csv"), folder.path().join("to.csv"));
        std::fs::write(&from, bytes).unwrap();
        copy(&from, &to, Encoding::for_label(encoding.as_bytes()).unwrap(), "in")?;
        Ok(std::fs::read_to_string(to).unwrap())
    }

    #[test]
    fn texts_of_other_encodings() {
        assert_eq!(copied(b"Stra\xdfe;M\xfcller\n", "latin1").unwrap(), "Straße;Müller\n");
        // A byte order mark says more than the policy.
        assert_eq!(copied(b"\xfe\xff\0a\0\n", "utf-16").unwrap(), "a\n");
        assert_eq!(copied("\u{feff}PLZ\n".as_bytes(), "latin1").unwrap(), "PLZ\n");
        assert_eq!(copied(b"\xff\xfea\0;\0\xe4\0\n\0", "utf-16").unwrap(), "a;ä\n");
        // A character on the border of two reads.
        let long = format!("{}ß", "a".repeat((1 << 17) - 1));
        let bytes: Vec<u8> = long.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(copied(&bytes, "utf-16le").unwrap(), long);
        for (bytes, encoding) in
            [(&b"a\xffb"[..], "utf-8"), (b"\0\xd8a\0", "utf-16le"), (b"a\0b", "utf-16le")]
        {
            let error = copied(bytes, encoding).unwrap_err();
            assert!(error.to_string().contains("no text in UTF"), "{error}");
        }
    }

    #[test]
    fn encodings_are_guessed() {
        let folder = tempfile::tempdir().unwrap();
        let guessed = |bytes: &[u8]| {
            let path = folder.path().join("in.csv");
            std::fs::write(&path, bytes).unwrap();
            guess(&Input::find(path.to_str().unwrap()).unwrap()).unwrap().name()
        };
        assert_eq!(guessed("Straße;Müller".as_bytes()), "UTF-8");
        assert_eq!(guessed(b"only ASCII"), "UTF-8");
        assert_eq!(guessed(b"Stra\xdfe;M\xfcller;Gr\xf6\xdfe\n"), "windows-1252");
        assert_eq!(guessed(b"\xff\xfea\0\n\0"), "UTF-8");
    }
}
