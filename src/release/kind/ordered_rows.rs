//! The rows of a table, whose order is checked before they are written.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{cast, partition};
use arrow::datatypes::{SchemaRef, UInt64Type};
use arrow::record_batch::RecordBatch;
use arrow::row::{OwnedRow, RowConverter};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::engine::Context;
use crate::engine::functions::row_converter;
use crate::error::{Error, Result};

/// Returns rows as they are written. Their first two columns are the number of a class and a hash, by which they must be
/// ordered, and before these by the columns at the places `folders`; `written_as` makes the columns of the table from all.
pub fn ordered_rows(
    rows: SendableRecordBatchStream,
    folders: Vec<usize>,
    written_as: impl Fn(&RecordBatch) -> Result<RecordBatch> + Send + 'static,
) -> BoxStream<'static, Result<RecordBatch>> {
    let mut order = Order { folders, converter: None, folder: None, last: (0, 0) };
    let written = rows.map(move |batch| {
        let batch = batch.context("generalizing and ordering the rows")?;
        order.check(&batch)?;
        written_as(&batch)
    });
    written.boxed()
}

/// The order of the rows so far. A plan that lost its sort would publish the order of the input.
struct Order {
    /// The places of the partition columns.
    folders: Vec<usize>,
    converter: Option<RowConverter>,
    /// The last values of these columns.
    folder: Option<OwnedRow>,
    /// The last class number and hash.
    last: (u64, u64),
}

impl Order {
    /// Checks that the partition columns never descend, nor do class number and hash in a folder.
    fn check(&mut self, batch: &RecordBatch) -> Result<()> {
        let column = |at: usize| batch.columns().get(at).ok_or_else(lost);
        let number = |at: usize| column(at)?.as_primitive_opt::<UInt64Type>().ok_or_else(lost);
        let rows = number(0)?.values().iter().copied().zip(number(1)?.values().iter().copied());
        if self.folders.is_empty() {
            return self.check_classes(rows);
        }
        let doing = "generalizing and ordering the rows";
        let folders: Vec<ArrayRef> =
            self.folders.iter().map(|at| column(*at).cloned()).collect::<Result<_>>()?;
        let rows: Vec<(u64, u64)> = rows.collect();
        for range in partition(&folders).context(doing)?.ranges() {
            let first: Vec<ArrayRef> = folders.iter().map(|values| values.slice(range.start, 1)).collect();
            let next = self.row(&first)?;
            match self.folder.as_ref().map(|last| last.cmp(&next)) {
                Some(Ordering::Greater) => return Err(out_of_order()),
                Some(Ordering::Equal) => {}
                Some(Ordering::Less) | None => (self.folder, self.last) = (Some(next), (0, 0)),
            }
            self.check_classes(rows[range].iter().copied())?;
        }
        Ok(())
    }

    fn check_classes(&mut self, rows: impl Iterator<Item = (u64, u64)>) -> Result<()> {
        for next in rows {
            if next < self.last {
                return Err(out_of_order());
            }
            self.last = next;
        }
        Ok(())
    }

    /// Returns the first row of columns, comparable.
    fn row(&mut self, columns: &[ArrayRef]) -> Result<OwnedRow> {
        let doing = "generalizing and ordering the rows";
        let converter = match &mut self.converter {
            Some(converter) => converter,
            none => none.insert(row_converter(columns.iter().map(Array::data_type)).context(doing)?),
        };
        let rows = converter.convert_columns(columns).context(doing)?;
        let first = rows.iter().next().ok_or_else(lost)?;
        Ok(first.owned())
    }
}

fn lost() -> Error {
    Error::internal("ordered rows: the plan of the release lost a column")
}

fn out_of_order() -> Error {
    Error::internal("ordered rows: the plan of the release lost the order of the rows")
}

/// Returns columns with the types of a schema.
pub(super) fn typed(mut columns: Vec<ArrayRef>, schema: &SchemaRef) -> Result<RecordBatch> {
    for (values, field) in columns.iter_mut().zip(schema.fields()) {
        if values.data_type() != field.data_type() {
            *values = cast(values, field.data_type()).context("writing the release")?;
        }
    }
    RecordBatch::try_new(Arc::clone(schema), columns).context("writing the release")
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, UInt64Array};
    use arrow::datatypes::Schema;

    use super::*;

    fn batch(years: &[Option<i64>], classes: &[u64], hashes: &[u64]) -> RecordBatch {
        let numbers = |of: &[u64]| Arc::new(UInt64Array::from(of.to_vec())) as ArrayRef;
        let years: ArrayRef = Arc::new(Int64Array::from(years.to_vec()));
        let columns = [("class", numbers(classes)), ("hash", numbers(hashes)), ("year", years)];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, of)| (name, of, true))).unwrap()
    }

    /// Checks batches, each with the year, the class and the hash of its rows.
    fn check(folders: Vec<usize>, batches: &[&[(Option<i64>, u64, u64)]]) -> Result<()> {
        let mut order = Order { folders, converter: None, folder: None, last: (0, 0) };
        batches.iter().try_for_each(|rows| {
            let years: Vec<Option<i64>> = rows.iter().map(|row| row.0).collect();
            let classes: Vec<u64> = rows.iter().map(|row| row.1).collect();
            let hashes: Vec<u64> = rows.iter().map(|row| row.2).collect();
            order.check(&batch(&years, &classes, &hashes))
        })
    }

    #[test]
    fn rows_out_of_order_are_seen() {
        let y = Some(7);
        check(vec![], &[&[(y, 0, 3)], &[(y, 0, 5), (y, 0, 5), (y, 1, 0)]]).unwrap();
        check(vec![], &[&[(y, 0, 5), (y, 0, 4)]]).unwrap_err();
        check(vec![], &[&[(y, 1, 5), (y, 0, 6)]]).unwrap_err();
        check(vec![], &[&[(y, 1, 6)], &[(y, 1, 5)]]).unwrap_err();
        let mut order = Order { folders: vec![], converter: None, folder: None, last: (0, 0) };
        order.check(&RecordBatch::new_empty(Arc::new(Schema::empty()))).unwrap_err();
    }

    #[test]
    fn partition_columns_come_first() {
        let rows: &[(Option<i64>, u64, u64)] = &[(None, 5, 1), (Some(1), 2, 1), (Some(1), 2, 2)];
        check(vec![2], &[rows, &[(Some(1), 2, 2), (Some(1), 3, 0), (Some(4), 0, 0)]]).unwrap();
        check(vec![2], &[rows, &[(Some(1), 2, 1)]]).unwrap_err();
        check(vec![2], &[rows, &[(Some(0), 9, 9)]]).unwrap_err();
        check(vec![2], &[rows, &[(None, 9, 9)]]).unwrap_err();
        check(vec![2], &[&[(Some(1), 2, 1), (Some(1), 1, 9)]]).unwrap_err();
        check(vec![], &[rows]).unwrap_err();
    }
}
