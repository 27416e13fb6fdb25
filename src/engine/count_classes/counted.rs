//! A class and a number of its rows, in batches and out of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{Decimal128Type, Int64Type, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::error::{DataFusionError, Result};

use crate::engine::class_key::KEY;

/// A class and a number of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counted {
    /// The two halves of the class key: of an `i128`, it would take 8 bytes more.
    pub(super) class: [u64; 2],
    pub(super) rows: i64,
}

impl Counted {
    /// Returns a number of evenly distributed bits, also where a user's column has the name of a class key
    /// and values with a pattern.
    pub(super) fn hash(&self) -> u64 {
        let [low, high] = self.class;
        let product = u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xD1B5_4A32_D192_ED03);
        let [low, high] = halves(product.cast_signed());
        low ^ high
    }
}

/// Returns the error for columns or a plan that are not of the form that the rule looks for.
pub(super) fn unexpected_form() -> DataFusionError {
    DataFusionError::Internal("count_classes: columns or a plan of another form".into())
}

/// The class key that stands for NULL, which is outside the range of `DECIMAL(38, 0)`.
const NULL: i128 = i128::MIN;

/// Returns the lower and the higher half.
fn halves(class: i128) -> [u64; 2] {
    let bits = class.cast_unsigned();
    [bits & u128::from(u64::MAX), bits >> 64].map(|half| u64::try_from(half).unwrap_or_default())
}

fn whole([low, high]: [u64; 2]) -> i128 {
    (u128::from(high) << 64 | u128::from(low)).cast_signed()
}

/// Returns the class of each row of a batch.
pub(super) fn classes_of(classes: &Decimal128Array) -> impl Iterator<Item = [u64; 2]> {
    let nulls = classes.nulls();
    let is_null = move |row| nulls.is_some_and(|nulls| nulls.is_null(row));
    let values = classes.values().iter().enumerate();
    values.map(move |(row, class)| halves(if is_null(row) { NULL } else { *class }))
}

/// Returns what a batch of classes and numbers of rows holds.
///
/// # Errors
/// An internal error for a batch of other columns.
pub(super) fn counted_of(batch: &RecordBatch) -> Result<impl Iterator<Item = Counted>> {
    let [classes, rows] = batch.columns() else { return Err(unexpected_form()) };
    let classes = classes.as_primitive_opt::<Decimal128Type>().ok_or_else(unexpected_form)?;
    let rows = rows.as_primitive_opt::<Int64Type>().ok_or_else(unexpected_form)?;
    Ok(classes_of(classes).zip(rows.values()).map(|(class, rows)| Counted { class, rows: *rows }))
}

/// Returns classes and numbers of rows as a batch.
///
/// # Errors
/// Those of the engine for another schema.
pub(super) fn batch_of(schema: &SchemaRef, counted: &[Counted]) -> Result<RecordBatch> {
    let classes: Vec<i128> = counted.iter().map(|counted| whole(counted.class)).collect();
    let nulls = classes.contains(&NULL);
    let nulls = nulls.then(|| classes.iter().map(|class| *class != NULL).collect::<NullBuffer>());
    let classes: ArrayRef = Arc::new(Decimal128Array::try_new(classes.into(), nulls)?.with_data_type(KEY));
    let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(counted.iter().map(|counted| counted.rows)));
    Ok(RecordBatch::try_new(Arc::clone(schema), vec![classes, rows])?)
}
