//! Runs `sql/**/*.slt`: the tutorial, and one page for every feature, are tests.
//!
//! `query` and `statement` run in a session of this process where everything is registered.
//! `system` runs in bash (a pipe fails when one of its commands does) in a temporary folder of the
//! file's own, where `data` is the repository's folder and `kanon` is found first.
//! `KANON_SLT_UPDATE=1` writes what comes out into the files instead of comparing; a new or wrong
//! result then shows in `git diff sql/`. `KANON_SLT_ONLY=model/` takes only the files whose paths
//! hold that text.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use async_trait::async_trait;
use datafusion::error::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};
use sqllogictest::{
    AsyncDB, DBOutput, DefaultColumnType, Runner, default_normalizer, default_validator,
    strict_column_validator,
};

use crate::command::without_progress;
use crate::house::{files_below, root};

thread_local! {
    /// Where the file of this thread runs its commands.
    static FOLDER: RefCell<PathBuf> = const { RefCell::new(PathBuf::new()) };
}

struct Session(SessionContext);

impl Session {
    /// Several partitions and tiny batches, so that states are merged even for ten rows.
    fn new() -> Result<Self, DataFusionError> {
        let config =
            SessionConfig::new().with_target_partitions(3).with_batch_size(2).with_information_schema(true);
        let session = SessionContext::new_with_config(config);
        datafusion_kanon::internals::sql::register_all(&session)?;
        Ok(Self(session))
    }
}

#[async_trait]
impl AsyncDB for Session {
    type Error = DataFusionError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, DataFusionError> {
        let answer = self.0.sql(sql).await?;
        let types: Vec<DefaultColumnType> =
            answer.schema().fields().iter().map(|f| kind(f.data_type())).collect();
        let batches = answer.collect().await?;
        if types.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let mut rows = Vec::new();
        for batch in &batches {
            rows.extend(rows_of(batch)?.into_iter().flat_map(lines));
        }
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &'static str {
        "kanon"
    }

    async fn run_command(command: Command) -> std::io::Result<Output> {
        let kanon = Path::new(env!("CARGO_BIN_EXE_kanon"));
        let system = std::env::var_os("PATH").unwrap_or_default();
        let folders = kanon.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&system));
        let mut output = Command::new("bash")
            .args(["-e", "-o", "pipefail"])
            .args(command.get_args())
            .current_dir(FOLDER.with_borrow(Clone::clone))
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("LC_ALL", "C")
            .output()?;
        // Scripts print standard error, too.
        output.stdout = without_progress(&String::from_utf8_lossy(&output.stdout)).into_bytes();
        Ok(output)
    }
}

/// `T` text and all that prints like it, `I` integers, `R` floats and decimals.
fn kind(data_type: &DataType) -> DefaultColumnType {
    match data_type {
        DataType::Dictionary(_, values) => kind(values),
        other if other.is_integer() => DefaultColumnType::Integer,
        other if other.is_numeric() => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

fn rows_of(batch: &RecordBatch) -> Result<Vec<Vec<String>>, DataFusionError> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<ArrayFormatter<'_>> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options)).collect::<Result<_, _>>()?;
    let cell = |row: usize, column: usize| -> String {
        let values = batch.column(column);
        match values.data_type() {
            DataType::Float64 if values.is_valid(row) => {
                rounded(values.as_primitive::<Float64Type>().value(row))
            }
            DataType::Float32 if values.is_valid(row) => {
                values.as_primitive::<Float32Type>().value(row).to_string()
            }
            _ => Some(columns[column].value(row).to_string())
                .filter(|c| !c.is_empty())
                .unwrap_or("(empty)".into()),
        }
    };
    Ok((0..batch.num_rows())
        .map(|row| (0..columns.len()).map(|column| cell(row, column)).collect())
        .collect())
}

/// A plan has several lines: each a row of the page.
fn lines(row: Vec<String>) -> Vec<Vec<String>> {
    let joined = row.join(" ");
    if joined.contains('\n') { joined.lines().map(|line| vec![line.to_owned()]).collect() } else { vec![row] }
}

/// A float at 12 significant digits.
fn rounded(value: f64) -> String {
    format!("{value:.11e}").parse::<f64>().map_or(value.to_string(), |rounded| rounded.to_string())
}

#[test]
fn floats_are_printed_at_twelve_digits() {
    assert_eq!([0.1 + 0.2, 2.0 / 3.0, -0.0, 1e300].map(rounded)[..2], ["0.3", "0.666666666667"]);
    assert_eq!([f64::INFINITY, f64::NAN].map(rounded), ["inf", "NaN"]);
}

/// Runs one file; an error as text.
fn run(file: &Path, update: bool) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    std::os::unix::fs::symlink(root().join("data"), folder.path().join("data")).map_err(|e| e.to_string())?;
    FOLDER.set(folder.path().to_path_buf());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let mut runner = Runner::new(|| async { Session::new() });
        // Where SQL finds what a command wrote, between `control substitution on` and `off`.
        runner.set_var("folder".into(), folder.path().display().to_string());
        runner.with_column_validator(strict_column_validator);
        if update {
            let updated = runner.update_test_file(
                file,
                " ",
                default_validator,
                default_normalizer,
                strict_column_validator,
            );
            return updated.await.map_err(|e| e.to_string());
        }
        runner.run_file_async(file).await.map_err(|e| e.display(false).to_string())
    })
}

#[test]
fn slt() {
    let update = std::env::var_os("KANON_SLT_UPDATE").is_some();
    let mut all = files_below(&root().join("sql"), "slt");
    if let Ok(only) = std::env::var("KANON_SLT_ONLY") {
        all.retain(|file| file.to_string_lossy().contains(&only));
    }
    assert!(!all.is_empty());
    let failed: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = all.iter().map(|file| scope.spawn(move || run(file, update))).collect();
        let results = running.into_iter().map(|thread| thread.join().unwrap_or(Err("panicked".into())));
        results
            .zip(&all)
            .filter_map(|(result, file)| Some(format!("{}:\n{}", file.display(), result.err()?)))
            .collect()
    });
    assert!(failed.is_empty(), "{}\n\n{} of {} files failed", failed.join("\n\n"), failed.len(), all.len());
}
