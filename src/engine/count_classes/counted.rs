//! A class, values of it, and a number of their rows, in batches and out of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, Int64Array, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, Decimal128Type, Int64Type, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::error::{DataFusionError, Result};

use crate::engine::{bits, into_engine};
use crate::error::Error;

/// A class, a value of each of some columns, and the number of rows with these values in the class.
///
/// Keys and values are two halves of 128 bits: an `i128` would take 8 bytes more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted<const VALUES: usize, N: RowCount> {
    /// The bits of the class key, or [`NULL`].
    pub(super) class: [u64; 2],
    pub(super) values: [[u64; 2]; VALUES],
    pub(super) rows: N,
}

/// A number of rows, or `()` if the query does not count rows.
pub(super) trait RowCount: Copy + Send + 'static {
    /// One row.
    const ONE: Self;

    fn of(number: i64) -> Self;

    fn plus(self, other: Self) -> Self;

    /// Returns the number, if there is one.
    fn number(self) -> Option<i64>;
}

impl RowCount for i64 {
    const ONE: Self = 1;

    fn of(number: i64) -> Self {
        number
    }

    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn number(self) -> Option<i64> {
        Some(self)
    }
}

impl RowCount for () {
    const ONE: Self = ();

    fn of(_: i64) -> Self {}

    fn plus(self, (): Self) -> Self {}

    fn number(self) -> Option<i64> {
        None
    }
}

impl<const VALUES: usize, N: RowCount> Counted<VALUES, N> {
    /// A place that no row has taken. No class key, no decimal within its range and no NULL has these bits.
    pub(super) const NONE: Self = Self { class: [1, 1 << 63], values: [[0; 2]; VALUES], rows: N::ONE };

    pub(super) fn is_none(&self) -> bool {
        self.class == Self::NONE.class
    }

    /// Adds rows of the same class and values.
    pub(super) fn add(&mut self, other: Self) {
        self.rows = self.rows.plus(other.rows);
    }

    /// Returns the class key; of NULL, the least number of all.
    pub(super) fn class(&self) -> i128 {
        joined(self.class)
    }

    /// Returns whether the other rows have this class and these values.
    pub(super) fn is_of_same(&self, other: &Self) -> bool {
        self.class == other.class && self.values == other.values
    }

    /// Returns a number of evenly distributed bits, also where a user's column has the name of a class key
    /// and values with a pattern.
    pub(super) fn hash(&self) -> u64 {
        self.values.iter().fold(mixed(0, self.class), |hash, value| mixed(hash, *value))
    }
}

/// Returns a hash of 128 bits and a hash before them.
fn mixed(hash: u64, [low, high]: [u64; 2]) -> u64 {
    let factors = [low ^ hash ^ 0x9E37_79B9_7F4A_7C15, high ^ hash.rotate_left(32) ^ 0xD1B5_4A32_D192_ED03];
    let [low, high] = halves(u128::from(factors[0]) * u128::from(factors[1]));
    low ^ high
}

/// Returns the error for columns or a plan that are not of the form that the rule looks for.
pub(super) fn unexpected_form() -> DataFusionError {
    DataFusionError::Internal("count_classes: columns or a plan of another form".into())
}

/// The bits of NULL: no decimal within its range has them, and shorter values have zeros in the higher half.
pub(super) const NULL: [u64; 2] = [0, 1 << 63];

/// Returns the lower and the higher half.
fn halves(bits: u128) -> [u64; 2] {
    [bits & u128::from(u64::MAX), bits >> 64].map(|half| u64::try_from(half).unwrap_or_default())
}

fn joined([low, high]: [u64; 2]) -> i128 {
    (u128::from(high) << 64 | u128::from(low)).cast_signed()
}

/// Returns whether values of this type are equal if and only if their bits are, at most 128 of them.
pub(super) fn is_of_bits(of: &DataType) -> bool {
    let is_short = of.primitive_width().is_some_and(|width| width <= 8);
    let is_other = of.is_floating() || matches!(of, DataType::Interval(_));
    matches!(of, DataType::Decimal128(..)) || is_short && !is_other
}

/// Returns the bits of each value of a column whose type [has them](is_of_bits).
///
/// # Errors
/// For another type, and for a decimal with the bits of NULL, which is outside the range of every decimal.
fn bits_of(column: &dyn Array) -> Result<Vec<[u64; 2]>> {
    let mut bits = if let Some(bits) = bits::map_each(column, |bits| [bits, 0]) {
        bits
    } else if let Some(values) = column.as_primitive_opt::<Decimal128Type>() {
        values.values().iter().map(|value| halves(value.cast_unsigned())).collect()
    } else {
        return Err(unexpected_form());
    };
    let nulls = column.nulls();
    let is_null = |row| nulls.is_some_and(|nulls| nulls.is_null(row));
    if bits.contains(&NULL) && bits.iter().enumerate().any(|(row, bits)| *bits == NULL && !is_null(row)) {
        return Err(into_engine(Error::data("a decimal is outside the range of its type")));
    }
    if nulls.is_some() {
        bits.iter_mut().enumerate().filter(|(row, _)| is_null(*row)).for_each(|(_, bits)| *bits = NULL);
    }
    Ok(bits)
}

fn narrowed<T: ArrowNativeType + TryFrom<u64>>(bits: impl Iterator<Item = [u64; 2]>) -> Result<Buffer> {
    let values = bits.map(|[low, _]| T::try_from(low).map_err(|_| unexpected_form()));
    Ok(Buffer::from_vec(values.collect::<Result<Vec<T>>>()?))
}

/// Returns a column of values of a type, given as their bits.
fn column_of(of: &DataType, bits: impl ExactSizeIterator<Item = [u64; 2]> + Clone) -> Result<ArrayRef> {
    let rows = bits.len();
    let nulls = bits.clone().any(|bits| bits == NULL);
    let nulls = nulls.then(|| bits.clone().map(|bits| bits != NULL).collect::<NullBuffer>());
    let values = match of.primitive_width() {
        Some(1) => narrowed::<u8>(bits)?,
        Some(2) => narrowed::<u16>(bits)?,
        Some(4) => narrowed::<u32>(bits)?,
        Some(8) => narrowed::<u64>(bits)?,
        _ => bits.map(joined).collect(),
    };
    let data = ArrayData::builder(of.clone()).len(rows).add_buffer(values).nulls(nulls).build()?;
    Ok(make_array(data))
}

/// Returns the rows of a batch, given as the columns of the class and of its values.
///
/// # Errors
/// An internal error for other columns.
pub(super) fn rows_of<const VALUES: usize, N: RowCount>(
    columns: &[ArrayRef],
) -> Result<impl Iterator<Item = Counted<VALUES, N>> + use<VALUES, N>> {
    let (class, values) = columns.split_first().ok_or_else(unexpected_form)?;
    let class = bits_of(class)?;
    let values = values.iter().map(|column| bits_of(column)).collect::<Result<Vec<_>>>()?;
    let values: [Vec<[u64; 2]>; VALUES] = values.try_into().map_err(|_| unexpected_form())?;
    let values_of = move |row: usize| values.each_ref().map(|bits| bits[row]);
    let rows = class.into_iter().enumerate();
    Ok(rows.map(move |(row, class)| Counted { class, values: values_of(row), rows: N::ONE }))
}

/// Reads a batch of classes, their values and, if the query counts rows, numbers of rows.
///
/// # Errors
/// An internal error for a batch of other columns.
pub(super) fn counted_of<const VALUES: usize, N: RowCount>(
    batch: &RecordBatch,
) -> Result<impl Iterator<Item = Counted<VALUES, N>> + use<VALUES, N>> {
    let (columns, rows) = batch.columns().split_at_checked(1 + VALUES).ok_or_else(unexpected_form)?;
    let rows = rows.first().map(|rows| rows.as_primitive_opt::<Int64Type>().ok_or_else(unexpected_form));
    let rows = rows.transpose()?.map(|rows| rows.values().clone());
    let rows_at = move |at: usize| rows.as_ref().map_or(N::ONE, |rows| N::of(rows[at]));
    let counted = rows_of(columns)?.enumerate();
    Ok(counted.map(move |(at, counted)| Counted { rows: rows_at(at), ..counted }))
}

/// Returns classes, their values and numbers of rows as a batch, without the numbers if the schema has
/// no column for them.
///
/// # Errors
/// Those of the engine for another schema.
pub(super) fn batch_of<const VALUES: usize, N: RowCount>(
    schema: &SchemaRef,
    counted: &[Counted<VALUES, N>],
) -> Result<RecordBatch> {
    let of = |at: usize| schema.field(at).data_type();
    let mut columns = vec![column_of(of(0), counted.iter().map(|counted| counted.class))?];
    for at in 0..VALUES {
        columns.push(column_of(of(1 + at), counted.iter().map(|counted| counted.values[at]))?);
    }
    if schema.fields().len() > columns.len() {
        let rows = counted.iter().map(|counted| counted.rows.number());
        columns.push(Arc::new(rows.collect::<Int64Array>()));
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
