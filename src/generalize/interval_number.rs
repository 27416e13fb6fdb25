//! The numbers of the intervals of [`range`](super::range), which are its codes.
//!
//! A column of scale s holds integers, the digits d of the values `d / 10^s`. Interval k of width w
//! from bound f on holds those with `f + k w <= d u < f + (k + 1) w`, where u is the unit that makes
//! all of these integers. One division finds it: `k = floor(d u / w)`, less 1 if the rest is below
//! f, because `0 <= f < w`. Floats, whose bounds are compared as doubles, have the lower bound for a
//! number.

use std::cmp::Ordering;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray,
    downcast_integer_array,
};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, i256};

use super::bounds::{FloatGrid, Grid, not_numbers, outside};
use super::clip::Clip;
use super::decimal_steps::{scale_of, threshold};
use super::value::widen;
use crate::decimal::Decimal;
use crate::error::{Error, Result};

/// The number of everything below the lower end of a clip, and from its upper end on.
const BELOW: i64 = i64::MIN;
const ABOVE: i64 = i64::MAX;

/// Returns the number of each value's interval; `None` for columns whose type has values with
/// numbers beyond 64 bits.
///
/// # Errors
/// A data error that counts the floats out of reach.
pub(super) fn of_column(grid: &Grid, clip: Option<Clip>, values: &ArrayRef) -> Result<Option<Int64Array>> {
    match values.data_type() {
        DataType::Float64 => of_floats(grid, clip, values.as_primitive::<Float64Type>(), |v| v).map(Some),
        DataType::Float32 => of_floats(grid, clip, values.as_primitive::<Float32Type>(), widen).map(Some),
        DataType::Decimal128(precision, _) => {
            let Some(limit) = 10i128.checked_pow((*precision).into()) else { return Ok(None) };
            of_digits(grid, clip, values.as_primitive::<Decimal128Type>(), [1 - limit, limit - 1])
        }
        DataType::Decimal256(..) => Ok(None),
        _ => downcast_integer_array!(
            values => of_integers(grid, clip, values),
            other => Err(not_numbers(other))
        ),
    }
}

fn of_integers<T>(grid: &Grid, clip: Option<Clip>, values: &PrimitiveArray<T>) -> Result<Option<Int64Array>>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i128>,
{
    of_digits(grid, clip, values, [T::Native::MIN_TOTAL_ORDER.into(), T::Native::MAX_TOTAL_ORDER.into()])
}

/// Numbers a column whose type has digits from `ends[0]` to `ends[1]`.
fn of_digits<T>(
    grid: &Grid,
    clip: Option<Clip>,
    values: &PrimitiveArray<T>,
    ends: [i128; 2],
) -> Result<Option<Int64Array>>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i128>,
{
    let scale = scale_of(values.data_type());
    let Some(steps) = Steps::new(grid, scale, ends) else { return Ok(None) };
    let number = |digits: i128| {
        let number = i64::try_from(digits).ok().and_then(|digits| steps.number(digits));
        number.ok_or_else(|| Error::internal("range: a value is beyond its type"))
    };
    let Some(clip) = clip else { return values.try_unary(|v| number(v.into())).map(Some) };
    let reached = |end: Decimal| {
        let digits = threshold(end, scale);
        digits.to_i128().unwrap_or(if digits < i256::ZERO { i128::MIN } else { i128::MAX })
    };
    let [low, high] = clip.ends().map(|end| end.map(reached));
    let numbers = values.try_unary(|v| match v.into() {
        digits if low.is_some_and(|low| digits < low) => Ok(BELOW),
        digits if high.is_some_and(|high| digits >= high) => Ok(ABOVE),
        digits => number(digits),
    });
    numbers.map(Some)
}

fn of_floats<T>(
    grid: &Grid,
    clip: Option<Clip>,
    values: &PrimitiveArray<T>,
    wide: impl Fn(T::Native) -> f64,
) -> Result<Int64Array>
where
    T: ArrowPrimitiveType,
{
    let (steps, side) = (FloatGrid::new(grid)?, clip.map(Clip::of_floats));
    let numbers: Int64Array = values.unary_opt(|v| {
        let v = wide(v);
        match (side.as_ref().map_or(Ordering::Equal, |side| side(v)), outside(v)) {
            (Ordering::Less, _) => Some(BELOW),
            (Ordering::Greater, _) => Some(ABOVE),
            // A bound is below 2^53.
            (_, Some(label)) => i64::try_from(label).ok().map(|label| BELOW + 1 + label),
            #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
            (_, None) => steps.units(v).map(|units| units as i64),
        }
    });
    match numbers.null_count() - values.null_count() {
        0 => Ok(numbers),
        lost => Err(grid.too_far(lost, values.data_type())),
    }
}

/// A grid prepared for the digits of a column: u, w and f of the formula.
struct Steps {
    unit: i64,
    width: i64,
    first: i64,
}

impl Steps {
    /// Returns `None` unless all digits between the ends have numbers of 64 bits, and none that is
    /// [`BELOW`] or [`ABOVE`].
    fn new(grid: &Grid, scale: i8, ends: [i128; 2]) -> Option<Self> {
        let ten_to = |exponent: i64| 10i64.checked_pow(u32::try_from(exponent.max(0)).ok()?);
        let more_decimals = i64::from(scale) - i64::from(grid.scale);
        let finer = ten_to(more_decimals)?;
        let units = |n: i128| i64::try_from(n).ok()?.checked_mul(finer);
        let steps =
            Self { unit: ten_to(-more_decimals)?, width: units(grid.width)?, first: units(grid.first)? };
        let number = |digits: i128| steps.number(i64::try_from(digits).ok()?);
        let numbers = [number(ends[0])?, number(ends[1])?];
        numbers.iter().all(|number| ![BELOW, ABOVE].contains(number)).then_some(steps)
    }

    /// Returns the number of the interval of a value; `None` beyond 64 bits.
    fn number(&self, digits: i64) -> Option<i64> {
        let units = digits.checked_mul(self.unit)?;
        let is_before = units.rem_euclid(self.width) < self.first;
        units.div_euclid(self.width).checked_sub(is_before.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::*;

    use super::*;

    fn numbers(step: &str, clip: Option<[i64; 2]>, values: ArrayRef) -> Option<Vec<Option<i64>>> {
        let grid = Grid::new(Decimal::parse(step).unwrap(), Decimal::integer(5)).unwrap();
        let clip = clip.map(|ends| {
            let [low, high] = ends.map(|end| Some(Decimal::integer(end)));
            Clip::new(low, high).unwrap()
        });
        of_column(&grid, clip, &values).unwrap().map(|numbers| numbers.iter().collect())
    }

    #[test]
    fn numbers_by_hand() {
        let ages = || Arc::new(Int64Array::from(vec![Some(-5), Some(-6), Some(4), Some(5), None, Some(34)]));
        assert_eq!(
            numbers("10", None, ages()).unwrap(),
            [Some(-1), Some(-2), Some(-1), Some(0), None, Some(2)]
        );
        assert_eq!(
            numbers("10", Some([-5, 34]), ages()).unwrap(),
            [Some(-1), Some(BELOW), Some(-1), Some(0), None, Some(ABOVE)]
        );
        let prices = Decimal128Array::from(vec![1_249, 1_250, -1]).with_precision_and_scale(9, 2).unwrap();
        assert_eq!(numbers("2.5", None, Arc::new(prices)).unwrap(), [4, 5, -1].map(Some));
        let floats = Float64Array::from(vec![f64::NAN, 7.49, 7.5, f64::INFINITY]);
        let expected = [BELOW + 1, 50, 75, BELOW + 2].map(Some);
        assert_eq!(numbers("2.5", None, Arc::new(floats)).unwrap(), expected);
    }

    #[test]
    fn a_type_whose_numbers_may_not_fit_has_none() {
        let long = || Arc::new(Int64Array::from(vec![1]));
        // Every integer would be an interval of its own, so no number is left for an end.
        assert!(numbers("1", None, long()).is_none() && numbers("2", Some([0, 90]), long()).is_some());
        // Tenths of 64 bits need more of them.
        assert!(numbers("2.5", None, long()).is_none());
        assert!(numbers("2.5", None, Arc::new(Int32Array::from(vec![1]))).is_some());
        assert!(numbers("10", None, Arc::new(UInt64Array::from(vec![1]))).is_none());
        let decimals = |precision| {
            let column = Decimal128Array::from(vec![1]).with_precision_and_scale(precision, 2).unwrap();
            numbers("10", None, Arc::new(column))
        };
        assert!(decimals(18).is_some() && decimals(20).is_none());
        assert!(numbers("10", None, Arc::new(Decimal256Array::from(vec![i256::ONE]))).is_none());
    }

    #[test]
    fn digits_beyond_the_type_are_a_mistake() {
        let grid = Grid::new(Decimal::parse("0.1").unwrap(), Decimal::integer(0)).unwrap();
        let forged = Decimal128Array::from(vec![i128::MAX]).with_data_type(DataType::Decimal128(9, 0));
        let error = of_column(&grid, None, &(Arc::new(forged) as ArrayRef)).unwrap_err().to_string();
        assert!(error.contains("range: a value is beyond its type"), "{error}");
    }
}
