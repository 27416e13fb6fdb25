//! Input files: found, opened under a policy and read to the end, sometimes released and verified.
//!
//! A case is a policy, a line `=== ` with the end of the file's name, and the file. One without
//! such a line is a CSV file whose first column is a quasi-identifier.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion_kanon::internals::engine::{Resources, Run, map_error};
use datafusion_kanon::internals::error::Error;
use datafusion_kanon::internals::input::{Input, InputFormat, Loaded, PolicySource, open};
use datafusion_kanon::internals::policy::{CsvOptions, PolicySpec};
use datafusion_kanon::internals::release::{LocalRelease, Needed, Place, check_release, release};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::random::{NUMBERS, ODD, Random};
use super::{LONG, Target, blameless, shows_no_cell};
use crate::command::table;

pub(super) struct InputFiles {
    runtime: Runtime,
    folder: TempDir,
    resources: Resources,
    files: BTreeMap<String, String>,
}

const BETWEEN: &[u8] = b"\n=== ";
const ENDS: &[&str] = &["csv", "csv", "csv", "csv", "tsv", "jsonl", "jsonl", "parquet", "arrow", "arrows"];

impl InputFiles {
    pub(super) fn new() -> Self {
        Self {
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap(),
            folder: tempfile::tempdir().unwrap(),
            resources: Resources { threads: 2, memory: 1 << 28, spill: None },
            files: [("sex.csv".to_owned(), "F,zqxj-any\nM,zqxj-any\n,zqxj-any\n".to_owned())].into(),
        }
    }
}

/// The cells of a column, with canaries among them.
fn cell(random: &mut Random, column: usize) -> String {
    if random.once_in(40) {
        return [random.pick(ODD), random.pick(NUMBERS), "", "?", "NA"][random.below(5)].to_owned();
    }
    match column {
        0 => format!("zqxj{}", random.below(9_999)),
        1 => format!("739173917{}", random.below(99)),
        2 => format!("19{:02}-0{}-1{}", random.below(100), 1 + random.below(9), random.below(10)),
        3 => random.pick(&["F", "M", "", "F"]).to_owned(),
        4 => format!("{}", random.below(60)),
        _ => random.pick(&["zqxj flu", "zqxj cough", "zqxj HIV"]).to_owned(),
    }
}

const NAMES: [&str; 6] = ["ssn", "income", "dob", "sex", "age", "problem"];

fn policy(random: &mut Random) -> String {
    let mut text =
        String::from("k = 2\nothers = \"drop\"\nsuppression_limit = 0.5\nrows_are_individuals = true\n");
    let protected = random.once_in(3);
    text += match protected {
        true => "[[require]]\nmodel = \"l_diversity\"\nl = 2\n",
        false => "accept_homogeneity = [\"problem\"]\n",
    };
    if random.once_in(4) {
        text += "[input]\n";
        for (often, line) in [
            (2, format!("delimiter = {:?}\n", random.pick(&[",", ";", "\t", "|", " ", "a", "0", "'"]))),
            (3, format!("nulls = {}\n", random.pick(&["[\"\", \"?\"]", "[]", "[\"NA\", \"F\"]"]))),
            (4, "header = false\n".to_owned()),
        ] {
            if random.once_in(often) {
                text += &line;
            }
        }
    }
    let levels =
        |random: &mut Random, all: &[&str]| format!("role = \"quasi\", hierarchy = {}", random.pick(all));
    let income = levels(
        random,
        &["{ floor = [10, 1000000000] }", "{ range = [0.5, 1000000000] }", "{ prefix = [3] }"],
    );
    let age = levels(random, &["{ range = [5, 10] }", "{ floor = [10] }", "{ prefix = [1] }"]);
    let dob = levels(
        random,
        &["{ date = [\"year\", \"decade\"] }", "{ prefix = [4, 2] }", "{ date = [\"century\"] }"],
    );
    let prefix = if text.contains("header = false") { "column_" } else { "" };
    let names: Vec<String> = NAMES
        .iter()
        .enumerate()
        .map(|(at, name)| if prefix.is_empty() { (*name).into() } else { format!("column_{}", at + 1) })
        .collect();
    let text = text.replace("\"problem\"", &format!("{:?}", names[5]));
    format!(
        "{text}[columns]\n{} = {{ role = \"identifier\" }}\n{} = {{ {income} }}\n{} = {{ {dob} }}\n\
         {} = {{ role = \"quasi\", hierarchy = {{ file = \"sex.csv\" }} }}\n{} = {{ {age} }}\n\
         {} = {{ role = \"sensitive\", allow_unique = true }}",
        names[0], names[1], names[2], names[3], names[4], names[5]
    )
}

/// A table of the same columns in types of its own.
fn batch(random: &mut Random, rows: usize) -> RecordBatch {
    let texts = |random: &mut Random, column: usize| -> ArrayRef {
        let cells: StringArray =
            (0..rows).map(|_| Some(cell(random, column)).filter(|cell| !cell.is_empty())).collect();
        Arc::new(cells)
    };
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let types = [
        [DataType::Utf8, DataType::Utf8View, DataType::LargeUtf8],
        [DataType::Int64, DataType::Float64, DataType::Decimal128(20, 2)],
        [DataType::Date32, DataType::Timestamp(TimeUnit::Nanosecond, None), DataType::Date64],
        [DataType::Utf8, dictionary.clone(), DataType::Utf8View],
        [DataType::Int8, DataType::UInt64, DataType::Float32],
        [DataType::Utf8, dictionary, DataType::LargeUtf8],
    ];
    let columns: Vec<ArrayRef> = (0..6)
        .map(|column| {
            let texts = texts(random, column);
            cast(&texts, &types[column][random.below(3)]).unwrap_or(texts)
        })
        .collect();
    table(NAMES.into_iter().zip(columns))
}

fn encoded(batch: &RecordBatch, end: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    match end {
        "parquet" => {
            let form = random.pick(&[Compression::UNCOMPRESSED, Compression::SNAPPY]);
            let form = WriterProperties::builder()
                .set_compression(form)
                .set_dictionary_enabled(random.once_in(2))
                .build();
            let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(form)).unwrap();
            writer.write(batch).unwrap();
            writer.close().unwrap();
        }
        "arrow" => {
            let form = random.pick(&[None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)]);
            let form = IpcWriteOptions::default().try_with_compression(form).unwrap();
            let mut writer = FileWriter::try_new_with_options(&mut bytes, &batch.schema(), form).unwrap();
            writer.write(batch).unwrap();
            writer.finish().unwrap();
        }
        _ => {
            let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
            writer.write(batch).unwrap();
            writer.finish().unwrap();
        }
    }
    bytes
}

/// A file in which a length is another one: of a message, a block or a buffer in Arrow, or a byte
/// of the Arrow schema in the footer of Parquet.
fn with_odd_lengths(mut file: Vec<u8>, end: &str, random: &mut Random) -> Vec<u8> {
    const KEY: &[u8] = b"ARROW:schema";
    if end == "parquet" {
        let is_text = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        let key = file.windows(KEY.len()).rposition(|part| part == KEY).map(|at| at + KEY.len());
        let from =
            key.and_then(|key| Some(key + file[key..].windows(8).position(|part| part.iter().all(is_text))?));
        let Some(from) = from else { return file };
        let to =
            file[from..].iter().position(|byte| !is_text(byte)).map_or(file.len(), |length| from + length);
        // As many characters as before, so that all else stays as it is.
        let to = from + (to - from) / 4 * 4;
        if let Ok(mut schema) = STANDARD.decode(&file[from..to]) {
            for _ in 0..=random.below(3) {
                let at = random.below(schema.len());
                schema[at] =
                    if random.once_in(2) { random.byte() } else { schema[at] ^ (1 << random.below(8)) };
            }
            file.splice(from..to, STANDARD.encode(schema).into_bytes());
        }
        return file;
    }
    let length = file.len() as i64;
    for _ in 0..=random.below(2) {
        // Lengths stand at multiples of four.
        let at = random.below(file.len() / 4) * 4;
        let odd = [-1, 0, 1, 7, length, length * 2, 1 << 31, 1 << 40, 1 << 59, i64::MAX, i64::MIN, -2];
        let odd = random.pick(&odd).to_le_bytes();
        let odd = if random.once_in(2) { &odd[..] } else { &odd[..4] };
        let to = (at + odd.len()).min(file.len());
        file.splice(at..to, odd[..to - at].iter().copied());
    }
    file
}

impl Target for InputFiles {
    const NAME: &'static str = "csv";
    const TOKENS: &'static [&'static str] = &[
        ",",
        ";",
        "\t",
        "|",
        "\n",
        "\r\n",
        "\"",
        "\"\"",
        "\",\"",
        "?",
        "NA",
        "null",
        "true",
        "{\"age\":",
        "}\n{",
        "[1]",
        ":",
        "1e999",
        "zqxj77",
        "7391739171",
        "2024-02-30",
        "1990-01-01T00:00:00+05:00",
        "24:00",
        "T23:59:60",
        " America/New_York",
        " UTC",
        ".5Z",
        "1e400",
        "1234567890123456789",
        "header = false\n",
        "nulls = []\n",
        "[input]\n",
        "delimiter = \";\"\n",
        "role = \"individual\"",
        "relative_to = \"dob\"",
        "=== jsonl\n",
        "=== tsv\n",
        "PAR1",
        "ARROW1\0\0",
    ];

    fn random(&self, random: &mut Random) -> Vec<u8> {
        let (policy, end, rows) = (policy(random), random.pick(ENDS), random.below(30));
        let header = !policy.contains("header = false");
        let delimiter = policy.split("delimiter = ").nth(1).and_then(|rest| rest.lines().next());
        let delimiter = match delimiter.map(|said| said.trim_matches('"').replace("\\t", "\t")) {
            Some(said) => said,
            None if end == "tsv" => "\t".to_owned(),
            None => ",".to_owned(),
        };
        let file = match end {
            "csv" | "tsv" => {
                let quoted = random.once_in(3);
                let mut lines = if header { vec![NAMES.map(str::to_owned).to_vec()] } else { vec![] };
                lines
                    .extend((0..rows).map(|_| (0..6).map(|column| cell(random, column)).collect::<Vec<_>>()));
                let write = |cell: &String| match quoted {
                    true => format!("\"{}\"", cell.replace('"', "\"\"")),
                    false => cell.clone(),
                };
                let end = random.pick(&["\n", "\n", "\r\n"]);
                let lines = lines
                    .iter()
                    .map(|line| line.iter().map(write).collect::<Vec<_>>().join(&delimiter) + end);
                lines.collect::<String>().into_bytes()
            }
            "jsonl" => {
                let mut text = String::new();
                for _ in 0..rows {
                    let mut row = serde_json::Map::new();
                    for (column, name) in NAMES.iter().enumerate() {
                        if random.once_in(30) {
                            continue;
                        }
                        let cell = cell(random, column);
                        let value = match cell.parse::<i64>() {
                            Ok(number) if random.once_in(2) || column == 4 => number.into(),
                            _ if random.once_in(20) => serde_json::Value::Null,
                            _ => cell.into(),
                        };
                        row.insert((*name).to_owned(), value);
                    }
                    text += &(serde_json::Value::Object(row).to_string() + "\n");
                }
                text.into_bytes()
            }
            end => {
                let whole = encoded(&batch(random, rows), end, random);
                // The policy is left alone here, so that what is damaged is the file.
                match random.below(3) {
                    0 => whole,
                    1 => with_odd_lengths(whole, end, random),
                    _ => random.mutated(&whole, &["PAR1"], &[&whole]),
                }
            }
        };
        [policy.as_bytes(), BETWEEN, end.as_bytes(), b"\n", &file].concat()
    }

    fn attempt(&mut self, input: &[u8]) -> Result<(), String> {
        let split = input.windows(BETWEEN.len()).position(|part| part == BETWEEN).and_then(|at| {
            let rest = &input[at + BETWEEN.len()..];
            let line = rest.iter().position(|byte| *byte == b'\n')?;
            let end = std::str::from_utf8(&rest[..line]).ok().filter(|end| ENDS.contains(end))?;
            Some((String::from_utf8_lossy(&input[..at]).into_owned(), end, &rest[line + 1..]))
        });
        let (policy, end, file) = split.unwrap_or((String::new(), "csv", input));
        let path = self.folder.path().join(format!("in.{end}"));
        fs::write(&path, file).map_err(|error| error.to_string())?;
        let outcome = self.read(&policy, path.to_str().unwrap_or_default(), file);
        let _ = fs::remove_file(path);
        outcome
    }
}

impl InputFiles {
    fn read(&self, policy: &str, path: &str, file: &[u8]) -> Result<(), String> {
        let input = Input::find(path).map_err(|error| error.to_string())?;
        let parsed = if policy.is_empty() { None } else { Some(PolicySpec::parse(policy)) };
        let options = parsed
            .as_ref()
            .and_then(|said| said.as_ref().ok())
            .map_or_else(CsvOptions::default, |said| said.csv().clone());
        // Names are no cells.
        let mut names = format!("{policy}\n{}", header(&input, &options, file));
        let schema = match input.file_schema(&options) {
            Ok(schema) => schema,
            Err(error) => return blameless(&error, &names),
        };
        schema.fields().iter().for_each(|field| names += field.name());
        let said = match parsed {
            Some(Err(error)) => return blameless(&error, &names),
            Some(Ok(said)) => said,
            None => match PolicySpec::from_columns(&[schema.field(0).name().clone()], None, 2) {
                Ok(said) => said,
                Err(error) => return blameless(&error, &names),
            },
        };
        let run = Run { resources: self.resources.clone(), ..Run::default() };
        let opened = self
            .within(async { open(&run, &input, &PolicySource { spec: &said, files: &self.files }).await })?;
        let loaded = match opened {
            Ok(loaded) => loaded,
            Err(error) => return blameless(&error, &names),
        };
        let read = self.within(async {
            let collected = loaded.table.clone().collect().await;
            collected.map_err(|error| map_error(&error, "reading"))
        })?;
        match read {
            Ok(batches) => as_it_is_written(&input, &options, &loaded, file, &batches)?,
            Err(error) => return blameless(&error, &names),
        }
        // A release costs a hundred times as much.
        if !policy.is_empty() && file.len().is_multiple_of(5) {
            self.release(&input, &said, &names)
        } else {
            Ok(())
        }
    }

    /// Releases; what was released must be what a check of it finds.
    fn release(&self, input: &Input, said: &PolicySpec, names: &str) -> Result<(), String> {
        let out = Place::beside(&self.folder.path().join("out")).map_err(|error| error.to_string())?;
        let run = Run { resources: self.resources.clone(), ..Run::default() };
        let source = PolicySource { spec: said, files: &self.files };
        let outcome = match self.within(release(&run, input, &source, &out, false))? {
            Ok(released) => {
                shows_no_cell(&format!("{released:?}"), &(names.to_owned() + &input.argument))?;
                let written = LocalRelease::read(&out, Needed::All, &run.stop);
                let written = written.map_err(|error| format!("a release that cannot be read: {error}"))?;
                let checked = self.within(check_release(
                    &run,
                    &written,
                    Some(&input.into()),
                    Some(&PolicySource { spec: said, files: &self.files }),
                ))?;
                checked.map(drop).map_err(|error| format!("a release that does not hold: {error}"))
            }
            // The two readings of texts, or the fast way and the obvious one, differ.
            Err(error) if error.to_string().contains("verification refused") => Err(error.to_string()),
            Err(error) => blameless(&error, names),
        };
        let _ = fs::remove_dir_all(self.folder.path().join("out"));
        let _ = fs::remove_file(self.folder.path().join("out.private.json"));
        outcome
    }

    fn within<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<Result<T, Error>, String> {
        let limit = Duration::from_secs(4) * LONG.as_secs() as u32;
        self.runtime
            .block_on(async { tokio::time::timeout(limit, work).await })
            .map_err(|_| "it takes forever".to_owned())
    }
}

/// The names that a file says: the first line of a CSV file with a header, the keys of JSON lines.
fn header(input: &Input, options: &CsvOptions, file: &[u8]) -> String {
    match input.format {
        InputFormat::Csv if options.has_header() => {
            let mut reader = csv::ReaderBuilder::new();
            reader.has_headers(false).flexible(true).delimiter(delimiter_of(input, options));
            let first = reader.from_reader(file).byte_records().next();
            first
                .and_then(Result::ok)
                .map(|first| String::from_utf8_lossy(first.as_slice()).into_owned())
                .unwrap_or_default()
        }
        InputFormat::Json => {
            let rows = file.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
            let keys = rows.flat_map(|row: serde_json::Map<String, serde_json::Value>| {
                row.into_iter().map(|(key, _)| key)
            });
            keys.collect()
        }
        _ => String::new(),
    }
}

fn delimiter_of(input: &Input, options: &CsvOptions) -> u8 {
    options.delimiter.unwrap_or(if input.argument.ends_with(".tsv") { b'\t' } else { b',' })
}

/// The cells of a CSV file without quotes and carriage returns are those between the delimiters,
/// and JSON lines have a row a line.
fn as_it_is_written(
    input: &Input,
    options: &CsvOptions,
    loaded: &Loaded,
    file: &[u8],
    batches: &[RecordBatch],
) -> Result<(), String> {
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let Ok(text) = std::str::from_utf8(file) else { return Ok(()) };
    if input.format == InputFormat::Json {
        let lines = text.split('\n').filter(|line| !line.trim_matches([' ', '\t', '\r']).is_empty()).count();
        return if lines == rows { Ok(()) } else { Err(format!("{lines} lines became {rows} rows")) };
    }
    if input.format != InputFormat::Csv || text.contains(['"', '\r']) {
        return Ok(());
    }
    let delimiter = char::from(delimiter_of(input, options));
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.split('\n').filter(|line| !line.is_empty()).skip(usize::from(options.has_header()));
    let cells: Vec<Vec<&str>> = lines.map(|line| line.split(delimiter).collect()).collect();
    if cells.len() != rows {
        return Err(format!("{} lines became {rows} rows", cells.len()));
    }
    for (column, field) in loaded.schema().fields().iter().enumerate() {
        if *field.data_type() != DataType::Utf8View {
            continue;
        }
        let read = batches.iter().flat_map(|batch| {
            let texts: &StringViewArray = batch.column(column).as_string_view();
            texts.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        });
        for (row, (read, line)) in read.zip(&cells).enumerate() {
            let written = Some(line[column]).filter(|cell| !options.nulls.iter().any(|null| null == cell));
            if read.as_deref() != written {
                return Err(format!(
                    "row {row}, column {column}: another text than the one between the delimiters"
                ));
            }
        }
    }
    Ok(())
}
