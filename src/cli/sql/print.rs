//! Prints results on standard output as a table, CSV or JSON. CSV and JSON are streamed.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{ErrorKind, Stdout, Write};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::arrow::csv::{Writer as CsvWriter, WriterBuilder as CsvBuilder};
use datafusion::arrow::json::writer::{JsonFormat, Writer as JsonWriter, WriterBuilder as JsonBuilder};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::StreamExt;

use super::Output;
use super::draw;
use super::errors::StageResult;
use super::own_names::short;
use datafusion_kanon::internals::error::of_file;
use datafusion_kanon::internals::plural;
use datafusion_kanon::{Error, Result};

/// The memory of a drawn table as a multiple of its columns' memory.
const DRAWN: usize = 4;

/// Standard output. It remembers write errors, because the writers above hide them.
pub(super) struct Pipe {
    stdout: Stdout,
    failed: Cell<Option<ErrorKind>>,
}

impl Pipe {
    /// Opens standard output.
    pub(super) fn new() -> Self {
        Self { stdout: std::io::stdout(), failed: Cell::new(None) }
    }

    /// Returns whether the reader has closed the pipe.
    pub(super) fn is_closed(&self) -> bool {
        self.failed.get() == Some(ErrorKind::BrokenPipe)
    }

    fn check(&self) -> Result<()> {
        match self.failed.get() {
            Some(kind) if kind != ErrorKind::BrokenPipe => {
                Err(Error::data(of_file(&kind.into())).at("writing the result"))
            }
            _ => Ok(()),
        }
    }
}

impl Write for &Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.failed.get().is_some() {
            return Ok(bytes.len());
        }
        match (&self.stdout).write(bytes) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                self.failed.set(Some(error.kind()));
                Ok(bytes.len())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if let (None, Err(error)) = (self.failed.get(), (&self.stdout).flush()) {
            self.failed.set(Some(error.kind()));
        }
        Ok(())
    }
}

/// How results are printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) output: Output,
    /// Whether a table is drawn row by row, each as a block of names and values.
    pub(super) is_expanded: bool,
    /// The most rows of a table.
    pub(super) most: usize,
    /// The width of the terminal on which a table is shown; `None` elsewhere.
    pub(super) width: Option<usize>,
}

/// The printer of a result.
enum Printer<'a> {
    Csv(Box<CsvWriter<&'a Pipe>>),
    Json(JsonWriter<&'a Pipe, RowALine>),
    Expanded { shown: usize, most: usize, pipe: &'a Pipe },
    Table { held: Vec<RecordBatch>, memory: MemoryReservation, layout: Layout },
}

/// Prints the rows of a query; `doing` names the operation in errors.
///
/// # Errors
/// Those of the query, and those of writing; a closed pipe is none.
pub(super) async fn print(
    mut rows: SendableRecordBatchStream,
    layout: Layout,
    pool: &Arc<dyn MemoryPool>,
    pipe: &Pipe,
    doing: &str,
) -> Result<()> {
    let schema = short(&rows.schema());
    let mut printer = match layout.output {
        Output::Csv => {
            plain_columns(&schema)?;
            Printer::Csv(Box::new(CsvBuilder::new().with_header(true).build(pipe)))
        }
        Output::Json => {
            distinct_names(&schema)?;
            Printer::Json(JsonBuilder::new().with_explicit_nulls(true).build(pipe))
        }
        Output::Table if layout.is_expanded => Printer::Expanded { shown: 0, most: layout.most, pipe },
        Output::Table => {
            let memory = MemoryConsumer::new("result").register(pool);
            Printer::Table { held: Vec::new(), memory, layout }
        }
    };
    let mut count = 0;
    while let Some(batch) = rows.next().await {
        let batch = batch.running(doing)?;
        let named = short(&batch.schema());
        let batch = match named == batch.schema() {
            true => batch,
            false => {
                RecordBatch::try_new(named, batch.columns().to_vec()).map_err(|error| unwritable(&error))?
            }
        };
        printer.add(&batch)?;
        count += batch.num_rows();
        pipe.check()?;
        if pipe.is_closed() {
            return Ok(());
        }
    }
    printer.finish(&schema, count, pipe)?;
    // `check` reports write errors.
    let _ = { pipe }.flush();
    pipe.check()
}

impl Printer<'_> {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Csv(writer) => writer.write(batch).map_err(|error| unwritable(&error)),
            Self::Json(writer) => writer.write(batch).map_err(|error| unwritable(&error)),
            Self::Expanded { shown, most, pipe } => {
                let rows = batch.slice(0, batch.num_rows().min(*most - *shown));
                let drawn = draw::records(&rows, *shown + 1).map_err(|error| unwritable(&error))?;
                // `check` reports write errors.
                let _ = pipe.write_all(drawn.as_bytes());
                *shown += rows.num_rows();
                Ok(())
            }
            Self::Table { held, memory, layout } => {
                let shown = batch.slice(0, batch.num_rows().min(layout.most - held_rows(held)));
                if shown.num_rows() > 0 {
                    let room = shown.get_array_memory_size().saturating_mul(DRAWN);
                    memory.try_grow(room).map_err(|_| {
                        Error::data(
                            "the result does not fit into memory as a table: use --output csv or json, which \
                             stream rows, add a LIMIT, or raise --memory-limit",
                        )
                    })?;
                    held.push(shown);
                }
                Ok(())
            }
        }
    }

    fn finish(self, schema: &SchemaRef, count: usize, mut pipe: &Pipe) -> Result<()> {
        match self {
            // A result without rows has a header, too.
            Self::Csv(mut writer) if count == 0 => {
                writer.write(&RecordBatch::new_empty(Arc::clone(schema))).map_err(|error| unwritable(&error))
            }
            Self::Csv(_) => Ok(()),
            Self::Json(mut writer) => writer.finish().map_err(|error| unwritable(&error)),
            Self::Expanded { shown, mut pipe, .. } => {
                let _ = writeln!(pipe, "{}", counted(count, shown));
                Ok(())
            }
            Self::Table { mut held, memory: _memory, layout } => {
                let shown = held_rows(&held);
                if held.is_empty() {
                    held.push(RecordBatch::new_empty(Arc::clone(schema)));
                }
                let (drawn, cut) = draw::table(&held, layout.width).map_err(|error| unwritable(&error))?;
                let _ = writeln!(pipe, "{drawn}\n{}", counted(count, shown));
                if let Some(line) = left_out(cut) {
                    let _ = writeln!(pipe, "{line}");
                }
                Ok(())
            }
        }
    }
}

/// Returns the line below a result: its number of rows, and how many are shown.
fn counted(count: usize, shown: usize) -> String {
    let rows = plural::rows(u64::try_from(count).unwrap_or(u64::MAX));
    match count - shown {
        0 => format!("({rows})"),
        _ => format!("({rows}; the first {shown} are shown)"),
    }
}

/// Returns the line that says what of a table does not fit the terminal.
fn left_out(cut: draw::Cut) -> Option<String> {
    let columns =
        plural::plural(u64::try_from(cut.columns).unwrap_or(u64::MAX), "more column", "more columns");
    match (cut.has_cells, cut.columns) {
        (false, 0) => None,
        (true, 0) => Some(r"cells are cut to the width of the terminal; \x shows them whole".to_owned()),
        (false, _) => Some(format!(r"and {columns}; \x shows each row as lines")),
        (true, _) => Some(format!(r"and {columns}; cells are cut, too; \x shows each row as lines")),
    }
}

fn held_rows(held: &[RecordBatch]) -> usize {
    held.iter().map(RecordBatch::num_rows).sum()
}

/// Refuses repeated column names: a JSON object would lose a value.
fn distinct_names(schema: &Schema) -> Result<()> {
    let mut names = HashSet::new();
    match schema.fields().iter().find(|field| !names.insert(field.name())) {
        None => Ok(()),
        Some(field) => {
            let why = format!(
                "JSON needs distinct names: two columns are named `{}`; rename one with AS",
                field.name()
            );
            Err(Error::policy(why))
        }
    }
}

fn plain_columns(schema: &Schema) -> Result<()> {
    match schema.fields().iter().find(|field| field.data_type().is_nested()) {
        None => Ok(()),
        Some(field) => {
            let why =
                format!("column `{}` is nested, which CSV cannot represent; use --output json", field.name());
            Err(Error::policy(why))
        }
    }
}

/// Builds the error for a result that the format cannot represent; the engine's error may quote a
/// cell.
fn unwritable(error: &ArrowError) -> Error {
    Error::data(match error {
        ArrowError::JsonError(_) => "a column's type cannot be written as JSON; cast it to VARCHAR",
        _ => "a value cannot be written as text",
    })
}

/// A JSON array with one row per line.
#[derive(Debug, Default)]
struct RowALine;

impl JsonFormat for RowALine {
    fn start_stream<W: Write>(&self, out: &mut W) -> Result<(), ArrowError> {
        Ok(out.write_all(b"[")?)
    }

    fn start_row<W: Write>(&self, out: &mut W, is_first: bool) -> Result<(), ArrowError> {
        Ok(out.write_all(if is_first { b"\n" } else { b",\n" })?)
    }

    fn end_stream<W: Write>(&self, out: &mut W) -> Result<(), ArrowError> {
        Ok(out.write_all(b"\n]\n")?)
    }
}
