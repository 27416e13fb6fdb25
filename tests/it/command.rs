//! Runs the program in a folder of its own and makes small inputs for it: for the tests of the command line.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::file::properties::WriterProperties;
use serde_json::Value;
use tempfile::TempDir;

/// The program under test: cargo's, unless a run of the tests by hand names another one.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("CARGO_BIN_EXE_kanon")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_kanon")), PathBuf::from)
}

/// How a run ended and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit code; -1 for a signal.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

fn is_of_neighbours(line: &str) -> bool {
    let parts = ["its private record lies in", "is of the same columns"];
    line.starts_with("kanon: the release is published, but") && parts.iter().any(|part| line.contains(part))
}

/// Leaves out the lines that a run prints every ten seconds: a slow machine has some.
pub(crate) fn without_progress(text: &str) -> String {
    let phases = ["grouping", "searching", "writing", "verifying", "publishing"];
    let is_progress = |line: &str| {
        let begins = phases.iter().any(|phase| line.starts_with(&format!("kanon: {phase}, ")));
        begins && line.ends_with(" s")
    };
    text.split_inclusive('\n').filter(|line| !is_progress(line.trim_end())).collect()
}

impl Ran {
    pub(crate) fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let ran = Self {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: without_progress(&text(output.stderr)),
        };
        assert!(!ran.err.contains("panicked"), "{ran:?}");
        ran
    }

    /// The run, which must have ended with `code`; results are on standard output, errors on the other.
    #[track_caller]
    pub(crate) fn exit(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        match code {
            // A test folder may hold several releases, and each says so.
            0 => assert!(self.err.lines().all(is_of_neighbours), "{self:?}"),
            // `check` that fails is a result, a refusal is an error.
            1 => assert_ne!(self.out.is_empty(), self.err.is_empty(), "{self:?}"),
            _ => assert!(self.out.is_empty() && !self.err.is_empty(), "{self:?}"),
        }
        self
    }

    /// The run, whose errors must contain `part`.
    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        assert!(self.err.contains(part), "no `{part}` in {self:?}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A folder that is gone in the end; commands run in it.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file; folders on the way are made.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Writes a Parquet file.
    pub(crate) fn parquet(&self, name: &str, batch: &RecordBatch) {
        self.parquet_with(name, batch, WriterProperties::default());
    }

    /// Writes a Parquet file in a form of one's own.
    pub(crate) fn parquet_with(&self, name: &str, batch: &RecordBatch, properties: WriterProperties) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
    }

    /// Writes an Arrow file, compressed as Feather files are.
    pub(crate) fn arrow_file(&self, name: &str, batch: &RecordBatch) {
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME));
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(path).unwrap();
        let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options.unwrap()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
    }

    /// Writes an Arrow stream.
    pub(crate) fn arrow_stream(&self, name: &str, batch: &RecordBatch) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut writer = StreamWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
    }

    /// `kanon` with the words of `line`, which may stand in single quotes.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(program());
        command.args(words(line)).current_dir(self.0.path()).stdin(Stdio::null());
        command.env_remove("RUST_BACKTRACE").env_remove("RUST_LOG");
        command
    }

    /// Runs `kanon` to its end.
    pub(crate) fn run(&self, line: &str) -> Ran {
        Ran::new(self.command(line).output().unwrap())
    }

    /// The same with environment variables.
    pub(crate) fn run_with(&self, line: &str, variables: &[(&str, &str)]) -> Ran {
        Ran::new(self.command(line).envs(variables.iter().copied()).output().unwrap())
    }

    /// Runs `kanon` with one more word, which may hold quotes, and `input` as its standard input.
    pub(crate) fn run_on(&self, line: &str, word: Option<&str>, input: &str) -> Ran {
        let mut command = self.command(line);
        command.args(word).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that does not read its input closes it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Ran::new(child.wait_with_output().unwrap())
    }

    /// Starts `kanon` and returns when `sign` exists, or when it has ended before.
    pub(crate) fn start_until(&self, line: &str, sign: &str) -> Running {
        let mut command = self.command(line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() && !self.path(sign).exists() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        Running(child)
    }

    /// The bytes of the files of a folder by their names.
    pub(crate) fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.path(folder)).unwrap().map(Result::unwrap);
        entries
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap_or_default())
            })
            .collect()
    }

    /// Everything that lies in the folder, by path, with folders as empty entries.
    pub(crate) fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        fn collect(root: &Path, folder: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                all.insert(name, fs::read(&path).unwrap_or_default());
                if path.is_dir() {
                    collect(root, &path, all);
                }
            }
        }
        let mut all = BTreeMap::new();
        collect(self.0.path(), self.0.path(), &mut all);
        all
    }

    /// The rows of the parts of a release, in order.
    pub(crate) fn released(&self, out: &str) -> RecordBatch {
        let parts = self.files(out).into_keys().filter(|name| name.ends_with(".parquet"));
        let batches: Vec<RecordBatch> = parts.flat_map(|name| read(&self.path(out).join(name))).collect();
        let schema = batches.first().unwrap().schema();
        arrow::compute::concat_batches(&schema, &batches).unwrap()
    }
}

/// A run that goes on.
pub(crate) struct Running(Child);

impl Running {
    /// Sends a signal such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        // A run that has ended takes no signal.
        let _ = Command::new("kill").args([&format!("-{name}"), &self.0.id().to_string()]).output();
    }

    /// Whether it has not ended yet.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Waits for the end.
    pub(crate) fn end(self) -> Ran {
        Ran::new(self.0.wait_with_output().unwrap())
    }
}

/// The batches of a Parquet file.
pub(crate) fn read(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.build().unwrap().map(Result::unwrap).collect()
}

/// A table of these columns, all of which may be NULL.
pub(crate) fn table<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = columns.into_iter().collect();
    let fields = columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect()).unwrap()
}

/// The cells of a column as texts, NULL as `-`.
pub(crate) fn texts(batch: &RecordBatch, column: &str) -> Vec<String> {
    let options = arrow::util::display::FormatOptions::default().with_null("-");
    let array = batch.column_by_name(column).unwrap();
    let formatter = arrow::util::display::ArrayFormatter::try_new(array, &options).unwrap();
    (0..array.len()).map(|row| formatter.value(row).to_string()).collect()
}

/// The words of a command line; single quotes hold a word together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
