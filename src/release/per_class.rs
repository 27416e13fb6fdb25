//! Groups of one class brought together: from `GROUP BY labels, sensitive values` to classes and the counts of
//! their values, by a spilling sort on two hashes of the labels under a random key.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::UInt64Type;
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::logical_expr::Expr;
use datafusion::prelude::DataFrame;

use super::engine::{Doing, column};
use super::functions::row_hash;
use crate::error::{Error, Result};
use crate::model::ValueCount;

/// Two random keys of a hash.
///
/// # Errors
/// A data error when the system has no random numbers.
pub(super) fn random_keys(doing: &str) -> Result<[[u64; 2]; 2]> {
    let mut random = [0u8; 32];
    rand::TryRng::try_fill_bytes(&mut rand::rngs::SysRng, &mut random)
        .map_err(|_| Error::data("no random numbers can be had from the system").at(doing))?;
    let word =
        |at: usize| random.iter().skip(at * 8).take(8).fold(0u64, |w, byte| (w << 8) | u64::from(*byte));
    Ok([[word(0), word(1)], [word(2), word(3)]])
}

const POSITION: [&str; 2] = ["kanon_class_a", "kanon_class_b"];

/// The rows of `table` with equal `labels` side by side: the position of the class, then `columns`.
pub(super) fn by_class(
    table: DataFrame,
    labels: &[Expr],
    columns: Vec<Expr>,
    keys: [[u64; 2]; 2],
) -> Result<DataFrame> {
    let doing = "bringing classes together";
    let hashes = keys.into_iter().zip(POSITION).map(|(key, name)| row_hash(key, labels.to_vec()).alias(name));
    let rows = table.select(hashes.chain(columns).collect::<Vec<_>>()).doing(doing)?;
    rows.sort(POSITION.map(|name| column(name).sort(true, true)).to_vec()).doing(doing)
}

/// Which class each row of a batch belongs to.
pub(super) struct Position<'a>([&'a UInt64Array; 2]);

impl<'a> Position<'a> {
    /// The positions, and the columns behind them.
    pub(super) fn split(batch: &'a RecordBatch) -> Result<(Self, &'a [ArrayRef])> {
        let wrong = || Error::internal("a class without a position");
        let [a, b, rest @ ..] = batch.columns() else { return Err(wrong()) };
        let hash = |array: &'a ArrayRef| array.as_primitive_opt::<UInt64Type>().ok_or_else(wrong);
        Ok((Self([hash(a)?, hash(b)?]), rest))
    }

    pub(super) fn at(&self, row: usize) -> (u64, u64) {
        (self.0[0].value(row), self.0[1].value(row))
    }
}

/// Counts the sensitive values of one class after the other.
pub(super) struct PerClass {
    class: Option<(u64, u64)>,
    columns: Vec<Column>,
}

#[derive(Default)]
struct Column {
    converter: Option<RowConverter>,
    numbers: HashMap<Box<[u8]>, u32>,
    counts: HashMap<Option<u32>, u64>,
}

/// The sensitive values of a batch.
pub(super) struct Values(Vec<(Rows, ArrayRef)>);

impl PerClass {
    pub(super) fn new(columns: usize) -> Self {
        Self { class: None, columns: (0..columns).map(|_| Column::default()).collect() }
    }

    /// Whether a new class begins here, after another one.
    pub(super) fn begins(&mut self, class: (u64, u64)) -> bool {
        self.class.replace(class).is_some_and(|before| before != class)
    }

    /// The values of a batch, one array a sensitive column.
    pub(super) fn values(&mut self, arrays: &[ArrayRef]) -> Result<Values> {
        let doing = "counting sensitive values";
        let rows = self.columns.iter_mut().zip(arrays).map(|(column, array)| {
            let converter = match &mut column.converter {
                Some(converter) => converter,
                none => {
                    let field = SortField::new(array.data_type().clone());
                    none.insert(RowConverter::new(vec![field]).doing(doing)?)
                }
            };
            let rows = converter.convert_columns(std::slice::from_ref(array)).doing(doing)?;
            Ok((rows, ArrayRef::clone(array)))
        });
        Ok(Values(rows.collect::<Result<_>>()?))
    }

    /// Counts `rows` rows with the values at `row`.
    pub(super) fn add(&mut self, row: usize, values: &Values, rows: u64) {
        if rows == 0 {
            return;
        }
        for (column, (values, array)) in self.columns.iter_mut().zip(&values.0) {
            let value = (!array.is_null(row)).then(|| column.number(values.row(row).data()));
            *column.counts.entry(value).or_default() += rows;
        }
    }

    /// The counts of the class that ended, for each sensitive column.
    pub(super) fn take(&mut self) -> Vec<Vec<ValueCount>> {
        let take = |column: &mut Column| {
            let counts = column.counts.drain().map(|(value, count)| ValueCount { value, count });
            let mut counts: Vec<ValueCount> = counts.collect();
            counts.sort_unstable_by_key(|count| count.value);
            counts
        };
        self.columns.iter_mut().map(take).collect()
    }
}

impl Column {
    fn number(&mut self, value: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        // More values than numbers would be told apart no more, which can only refuse.
        let number = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        self.numbers.insert(value.into(), number);
        number
    }
}
