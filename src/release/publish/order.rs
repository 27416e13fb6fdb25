//! The order of a release's rows across all files: by class, then by a hash of the other released
//! values. So the order reveals nothing about the order of the input; any other order could.

use std::collections::HashSet;
use std::fs::File;

use arrow::array::{Array, ArrayRef};
use arrow::record_batch::RecordBatch;
use arrow::row::{OwnedRow, RowConverter, Rows};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::engine::Context;
use crate::engine::functions::{row_converter, row_hashes};
use crate::error::{Error, Result};
use crate::progress::CancelToken;
use crate::release::apply::ORDER_KEY;
use crate::release::publish::table_files::TableFiles;

/// The columns by which classes are ordered: the quasi-identifiers, behind the partition columns.
pub(crate) enum Classes {
    /// In policy order; classes ascend.
    InOrder(Vec<String>),
    /// In an order that only the policy knows; the rows of each class are adjacent.
    Together(Vec<String>),
}

/// Checks that the rows of all parts are in the order in which kanon writes them.
///
/// # Errors
/// An unmet error if they are not, a data error if they cannot be read.
pub(crate) fn check(files: &TableFiles, classes: &Classes, stop: &CancelToken) -> Result<()> {
    let doing = "reading the release";
    let mut last: Option<(OwnedRow, u64)> = None;
    let mut before: HashSet<OwnedRow> = HashSet::new();
    let (mut converter, mut folders) = (None, "");
    for part in &files.parts {
        if part.folders() != folders {
            // The folders were compared.
            (folders, before) = (part.folders(), HashSet::new());
        }
        let file = File::open(files.path(part)).context(doing)?;
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).context(doing)?.build().context(doing)? {
            stop.check()?;
            let batch = files.partitioning.with_values(&part.name, &batch.context(doing)?)?;
            let (labels, hashes) = keys(&batch, classes, &mut converter)?;
            for (label, hash) in labels.iter().zip(hashes) {
                if let Some((class, least)) = &mut last {
                    if class.row() == label {
                        if hash < *least {
                            return Err(out_of_order());
                        }
                        *least = hash;
                        continue;
                    }
                    let right = match classes {
                        Classes::InOrder(_) => class.row() < label,
                        Classes::Together(_) => {
                            before.insert(class.clone()) && !before.contains(&label.owned())
                        }
                    };
                    if !right {
                        return Err(out_of_order());
                    }
                }
                last = Some((label.owned(), hash));
            }
        }
    }
    Ok(())
}

fn out_of_order() -> Error {
    Error::unmet("verification refused: the rows are not in the order in which kanon writes them")
}

/// Returns the class of each row, comparable, and the hash of its other released values.
fn keys(
    batch: &RecordBatch,
    classes: &Classes,
    converter: &mut Option<RowConverter>,
) -> Result<(Rows, Vec<u64>)> {
    let doing = "reading the release";
    let (Classes::InOrder(names) | Classes::Together(names)) = classes;
    let column = |name: &String| {
        batch
            .column_by_name(name)
            .cloned()
            .ok_or_else(|| Error::internal("order: a part lacks a released column"))
    };
    let quasi: Vec<ArrayRef> = names.iter().map(column).collect::<Result<_>>()?;
    let schema = batch.schema();
    let others = schema.fields().iter().zip(batch.columns());
    let others = others.filter(|(field, _)| !names.contains(field.name()));
    let others: Vec<ArrayRef> = others.map(|(_, values)| ArrayRef::clone(values)).collect();
    let converter = match converter {
        Some(converter) => converter,
        none => none.insert(row_converter(quasi.iter().map(Array::data_type)).context(doing)?),
    };
    let hashes = match others.is_empty() {
        true => vec![0; batch.num_rows()],
        false => row_hashes(ORDER_KEY, &others).context(doing)?,
    };
    Ok((converter.convert_columns(&quasi).context(doing)?, hashes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::release::publish::partitioning::Partitioning;
    use crate::release::publish::table_files::Part;

    use arrow::array::{Int64Array, StringArray};
    use datafusion::parquet::arrow::ArrowWriter;

    type Row = (&'static str, i64);

    /// What [`check`] says of parts with these rows: the quasi-identifier `zip` and a column beside it.
    fn is_right(parts: &[&[Row]], classes: &Classes) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let parts = parts.iter().enumerate().map(|(number, rows)| {
            let name = format!("part-{number:05}.parquet");
            let zip: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0)));
            let batch = RecordBatch::try_from_iter([("zip", zip), ("note", notes(rows))]).unwrap();
            let file = File::create(folder.path().join(&name)).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            Part { name, rows: rows.len() as u64 }
        });
        let files = TableFiles {
            folder: folder.path().to_path_buf(),
            parts: parts.collect(),
            partitioning: Partitioning::default(),
        };
        check(&files, classes, &Default::default()).is_ok()
    }

    fn notes(rows: &[Row]) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1)))
    }

    #[test]
    fn classes_stand_together_and_their_rows_by_hash() {
        let (in_order, together) =
            (Classes::InOrder(vec!["zip".to_owned()]), Classes::Together(vec!["zip".to_owned()]));
        let both = |parts: &[&[Row]]| (is_right(parts, &in_order), is_right(parts, &together));
        // Three notes in the order of their hashes.
        let mut rows = [("", 1), ("", 2), ("", 3)];
        let hashes = row_hashes(ORDER_KEY, &[notes(&rows)]).unwrap();
        rows.sort_by_key(|row| hashes[usize::try_from(row.1 - 1).unwrap()]);
        let [x, y, z] = rows.map(|row| row.1);

        assert_eq!(both(&[&[("1", x), ("1", y), ("2", x), ("3", z)]]), (true, true));
        assert_eq!(both(&[&[("1", y), ("1", y), ("2", x), ("2", x)]]), (true, true), "copies of rows");
        assert_eq!(both(&[&[("1", y), ("1", x)]]), (false, false), "hashes that fall");
        assert_eq!(both(&[&[("1", x), ("1", z), ("1", y)]]), (false, false), "below the hash before");
        assert_eq!(both(&[&[("2", x), ("1", x), ("3", x)]]), (false, true), "classes that fall");
        assert_eq!(both(&[&[("1", x), ("2", x), ("1", z)]]), (false, false), "a class in two places");
        assert_eq!(
            both(&[&[("2", x), ("3", x), ("3", y), ("2", z)]]),
            (false, false),
            "a class in two places"
        );
        // The order goes on from file to file.
        assert_eq!(both(&[&[("1", x)], &[("1", y), ("2", x)]]), (true, true));
        assert_eq!(both(&[&[("1", y)], &[("1", x), ("2", x)]]), (false, false), "hashes that fall");
        assert_eq!(both(&[&[("1", x), ("2", x)], &[("1", z)]]), (false, false), "a class in two files");
    }
}
