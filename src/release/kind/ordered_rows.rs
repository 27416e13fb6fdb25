//! The rows of a table, whose order is checked before they are written.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{SchemaRef, UInt64Type};
use arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::engine::Context;
use crate::error::{Error, Result};

/// Returns rows as they are written. Their first two columns are the number of a class and a hash, by which they must be
/// ordered; `written_as` makes the columns of the table from all.
pub fn ordered_rows(
    rows: SendableRecordBatchStream,
    written_as: impl Fn(&RecordBatch) -> Result<RecordBatch> + Send + 'static,
) -> BoxStream<'static, Result<RecordBatch>> {
    let mut last = (0, 0);
    let written = rows.map(move |batch| {
        let batch = batch.context("generalizing and ordering the rows")?;
        last = check_order(&batch, last)?;
        written_as(&batch)
    });
    written.boxed()
}

/// Checks that class number and hash never descend, starting from `last`; returns the last pair of the batch. A plan that
/// lost its sort would publish the order of the input.
fn check_order(batch: &RecordBatch, mut last: (u64, u64)) -> Result<(u64, u64)> {
    let lost = || Error::internal("ordered rows: the plan of the release lost a column");
    let number = |column: usize| {
        batch
            .columns()
            .get(column)
            .and_then(|column| column.as_primitive_opt::<UInt64Type>())
            .ok_or_else(lost)
    };
    for next in number(0)?.values().iter().copied().zip(number(1)?.values().iter().copied()) {
        if next < last {
            return Err(Error::internal("ordered rows: the plan of the release lost the order of the rows"));
        }
        last = next;
    }
    Ok(last)
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
    use arrow::array::UInt64Array;
    use arrow::datatypes::Schema;

    use super::*;

    #[test]
    fn rows_out_of_order_are_seen() {
        let batch = |classes: Vec<u64>, hashes: Vec<u64>| {
            let columns = [("class", classes), ("hash", hashes)];
            RecordBatch::try_from_iter(
                columns.map(|(name, of)| (name, Arc::new(UInt64Array::from(of)) as ArrayRef)),
            )
            .unwrap()
        };
        assert_eq!(check_order(&batch(vec![0, 0, 1], vec![5, 5, 0]), (0, 3)).unwrap(), (1, 0));
        check_order(&batch(vec![0, 0], vec![5, 4]), (0, 0)).unwrap_err();
        check_order(&batch(vec![1, 0], vec![5, 6]), (0, 0)).unwrap_err();
        check_order(&batch(vec![1], vec![5]), (1, 6)).unwrap_err();
        check_order(&RecordBatch::new_empty(Arc::new(Schema::empty())), (0, 0)).unwrap_err();
    }
}
