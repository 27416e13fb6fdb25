//! The one label that a released column shows in every row.

use std::fs::File;
use std::path::Path;

use arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::engine::damaged::unless_it_panics;
use crate::generalize::{Descriptor, Value};
use crate::release::kind::describe::Labels;
use crate::release::publish::record::PublicRecord;

/// Returns the label of each column that shows one label for all values, as its first released row
/// has it, but for `*` and NULL. The record calls every such column suppressed. None where the rows
/// cannot be read.
pub(crate) fn labels_for_all(out: &Path, record: &PublicRecord) -> Labels {
    let first = if has_labels(record) { first_row(out, record) } else { None };
    let Some(first) = first else { return Labels::new() };
    let label = |name: &str| match Value::read(first.column_by_name(name)?, 0).ok()? {
        Value::Text(label) if label != "*" => Some((name.to_owned(), label)),
        _ => None,
    };
    of_one_label(record).filter_map(label).collect()
}

/// Returns whether such columns are there.
pub(crate) fn has_labels(record: &PublicRecord) -> bool {
    of_one_label(record).next().is_some()
}

fn of_one_label(record: &PublicRecord) -> impl Iterator<Item = &str> {
    let recoding = &record.recoding;
    let is_one = |name: &&str| recoding.level(name).is_some_and(|level| level.by == Descriptor::suppress());
    recoding.columns().into_iter().filter(is_one)
}

/// Returns the first row of a release of one table.
fn first_row(out: &Path, record: &PublicRecord) -> Option<RecordBatch> {
    let files = record.files_of(record.tables.first()?, out).ok()?;
    let part = files.parts.iter().find(|part| part.rows > 0)?;
    let read = || {
        let file = File::open(files.path(part)).ok()?;
        let rows = ParquetRecordBatchReaderBuilder::try_new(file).ok()?.with_limit(1).build().ok()?;
        let rows = rows.flatten().find(|rows| rows.num_rows() > 0)?;
        files.partitioning.with_values(&part.name, &rows).ok()
    };
    unless_it_panics(read).flatten()
}
