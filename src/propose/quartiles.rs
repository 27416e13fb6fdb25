//! The spread of most values of a numeric column, which one outlier cannot change.
//!
//! ```text
//! spread = 2.5 * (third quartile - first quartile)      about four standard deviations
//!          1.2 * (95th percentile - 5th percentile)     where the quartiles are equal
//! ```
//! Values are counted by sign, exponent and the next 12 bits: in little memory, to 0.02 %, and
//! independently of their order.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Float64Type, UInt64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, Expr, Volatility, create_udaf};
use datafusion::scalar::ScalarValue;

use crate::engine::into_engine;
use crate::error::Error;

/// The number of low bits of a double that are ignored.
const DROPPED: u32 = 40;
const SIGN: u64 = 1 << 63;

/// Returns the spread of `values`, which are doubles; NULL where nearly all are equal.
pub(super) fn spread(values: Expr) -> Expr {
    let state = Arc::new(vec![DataType::List(Arc::new(Field::new_list_field(DataType::UInt64, true)))]);
    let double = Arc::new(DataType::Float64);
    let spread = create_udaf(
        "kanon_spread",
        vec![DataType::Float64],
        double,
        Volatility::Immutable,
        Arc::new(|_| Ok(Box::new(Counts::default()) as Box<dyn Accumulator>)),
        state,
    );
    spread.call(vec![values])
}

/// The number of values per leading bits, in the order of the values.
#[derive(Default)]
struct Counts(BTreeMap<u64, u64>);

/// Shows the type only: the counts hold values.
impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counts(..)")
    }
}

/// Returns the first bits of a double, in the order of doubles.
fn first_bits(value: f64) -> u64 {
    let bits = value.to_bits();
    (if bits & SIGN == 0 { bits | SIGN } else { !bits }) >> DROPPED
}

/// Returns the double of [`first_bits`] whose other bits are 0.
fn of_first_bits(first: u64) -> f64 {
    let bits = first << DROPPED;
    // All bits of a negative number were inverted.
    f64::from_bits(if bits & SIGN == 0 { !(bits | ((1 << DROPPED) - 1)) } else { bits & !SIGN })
}

impl Counts {
    fn add(&mut self, first: u64, count: u64) {
        *self.0.entry(first).or_default() += count;
    }

    /// Returns the value below which `percent` percent of the values lie.
    fn percentile(&self, percent: u64) -> Option<f64> {
        let all: u64 = self.0.values().sum();
        let rank = u128::from(all.checked_sub(1)?) * u128::from(percent) / 100;
        let mut before = 0u128;
        let found = self.0.iter().find(|(_, count)| {
            before += u128::from(**count);
            before > rank
        });
        found.map(|(first, _)| of_first_bits(*first))
    }

    fn spread(&self) -> Option<f64> {
        let between = |low, high| Some(self.percentile(high)? - self.percentile(low)?);
        let quartiles = between(25, 75).map(|apart| 2.5 * apart);
        quartiles.filter(|spread| *spread > 0.0).or_else(|| between(5, 95).map(|apart| 1.2 * apart))
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values.first().and_then(|values| values.as_primitive_opt::<Float64Type>());
        let values = values
            .ok_or_else(|| into_engine(Error::internal("propose: the values of a spread are not doubles")))?;
        values
            .iter()
            .flatten()
            .filter(|value| value.is_finite())
            .for_each(|value| self.add(first_bits(value), 1));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states.first().and_then(|states| states.as_list_opt::<i32>());
        let lists = lists.ok_or_else(|| {
            into_engine(Error::internal("propose: the state of a spread is not a list of counts"))
        })?;
        for list in lists.iter().flatten() {
            let pairs =
                list.as_primitive::<UInt64Type>().values().chunks_exact(2).map(|pair| (pair[0], pair[1]));
            pairs.for_each(|(first, count)| self.add(first, count));
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let pairs = self.0.iter().flat_map(|(first, count)| [*first, *count]);
        let pairs: Vec<ScalarValue> = pairs.map(ScalarValue::from).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&pairs, &DataType::UInt64))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.spread().filter(|spread| *spread > 0.0)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.len() * 3 * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;

    use super::*;

    fn spread_of(values: impl IntoIterator<Item = f64>) -> Option<f64> {
        let mut counts = Counts::default();
        let values: ArrayRef = Arc::new(Float64Array::from_iter_values(values));
        counts.update_batch(&[values]).unwrap();
        // Merges through the state, as with several threads.
        let mut merged = Counts::default();
        for state in counts.state().unwrap() {
            merged.merge_batch(&[state.to_array().unwrap()]).unwrap();
        }
        match merged.evaluate().unwrap() {
            ScalarValue::Float64(spread) => spread,
            _ => None,
        }
    }

    #[test]
    fn one_outlier_changes_nothing() {
        let hundred = || (0..100u32).map(f64::from);
        assert_eq!(spread_of(hundred()), Some(2.5 * 50.0));
        assert_eq!(spread_of(hundred().chain([7_777_777.0])), Some(2.5 * 50.0));
        assert_eq!(spread_of(hundred().map(|value| -value)), Some(2.5 * 50.0));
        assert_eq!(spread_of(hundred().map(|value| value - 50.0)), Some(2.5 * 50.0));
    }

    #[test]
    fn values_that_are_mostly_equal() {
        let zeros = [0.0].into_iter().cycle().take(80);
        assert_eq!(spread_of(zeros.clone().chain((1..=20u32).map(f64::from))), Some(1.2 * 15.0));
        assert_eq!(spread_of(zeros), None);
        assert_eq!(spread_of([f64::NAN, f64::INFINITY]), None);
        assert_eq!(spread_of([]), None);
    }

    #[test]
    fn first_bits_keep_the_order_of_doubles() {
        let values = [-1e300, -2.0, -1.5, -1e-300, 0.0, 1e-300, 1.5, 2.0, 1e300];
        let first: Vec<u64> = values.map(first_bits).to_vec();
        assert!(first.is_sorted());
        for value in values {
            let near = of_first_bits(first_bits(value));
            assert!((near - value).abs() <= value.abs() / 4_000.0, "{value} {near}");
        }
    }
}
