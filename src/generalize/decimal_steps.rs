//! Compares decimal columns with the bounds of [`floor`](super::floor) and [`range`](super::range),
//! in 256-bit integers.
//!
//! A column of scale s holds `digits / 10^s`. It is compared with steps and bounds exactly, without
//! rounding.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, DecimalType, i256};

use super::Value;
use super::bounds::Grid;
use super::value::unsupported;
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::plural::plural;

/// Returns `10^exponent`.
fn ten_to(exponent: i64) -> Option<i256> {
    i256::from(10i64).checked_pow(u32::try_from(exponent).ok()?)
}

/// Returns how many more decimals than `own` a column of this scale has.
fn more_decimals(own: u32, scale: i8) -> i64 {
    i64::from(scale) - i64::from(own)
}

/// Returns a number in units of a column's last digit; `None` if it is not a whole number of them.
fn whole(number: Decimal, scale: i8) -> Option<i256> {
    let (units, more) = (i256::from(number.numerator()), more_decimals(number.scale(), scale));
    if more >= 0 {
        return units.checked_mul(ten_to(more)?);
    }
    let part = ten_to(-more)?;
    (units.checked_rem(part)? == i256::ZERO).then(|| units.checked_div(part)).flatten()
}

/// Returns the digits and the scale of a decimal type.
fn digits_and_scale(data_type: &DataType) -> Result<(u8, i8)> {
    match data_type {
        DataType::Decimal128(digits, scale) | DataType::Decimal256(digits, scale) => Ok((*digits, *scale)),
        other => Err(unsupported(other, "decimals")),
    }
}

/// Checks that a number, called `what` in the error, is one of a column's type.
///
/// # Errors
/// A data error for a number with more decimals than the column has, or beyond its digits.
pub(super) fn check_number(what: &str, number: Decimal, data_type: &DataType) -> Result<()> {
    let (digits, scale) = digits_and_scale(data_type)?;
    let Some(units) = whole(number, scale) else {
        return Err(Error::data(format!(
            "{what} of {number} needs a column with more decimals than {data_type}"
        )));
    };
    if Decimal256Type::is_valid_decimal_precision(units, digits) {
        Ok(())
    } else {
        Err(Error::data(format!("{what} of {number} is beyond every value of {data_type}")))
    }
}

/// Checks that a column of this type can be floored to the bounds of `grid`.
///
/// # Errors
/// The errors of [`check_number`].
pub(super) fn can_floor(grid: &Grid, data_type: &DataType) -> Result<()> {
    check_number("a step", grid.step, data_type)?;
    check_number("an origin", grid.origin, data_type)
}

/// Converts a number to a value of a decimal column; `None` when it has more decimals.
pub(super) fn value(number: Decimal, scale: i8) -> Option<Value> {
    whole(number, scale).map(|digits| Value::Decimal(digits, scale))
}

/// Returns the least digits of a column with this scale that are at least `number`.
pub(super) fn threshold(number: Decimal, scale: i8) -> i256 {
    let (units, more) = (i256::from(number.numerator()), more_decimals(number.scale(), scale));
    // Beyond 256 bits, either no digits reach the number or all do.
    let beyond = if units < i256::ZERO { i256::MIN } else { i256::MAX };
    let reached = match ten_to(more.abs()) {
        Some(part) if more >= 0 => units.checked_mul(part),
        Some(part) => quotient(units, part).and_then(|floor| match floor.checked_mul(part)? == units {
            true => Some(floor),
            false => floor.checked_add(i256::ONE),
        }),
        None if more < 0 => Some(if units > i256::ZERO { i256::ONE } else { i256::ZERO }),
        None => None,
    };
    if units == i256::ZERO { i256::ZERO } else { reached.unwrap_or(beyond) }
}

/// Returns the scale of a decimal type; 0 for others.
pub(super) fn scale_of(data_type: &DataType) -> i8 {
    digits_and_scale(data_type).map_or(0, |(_, scale)| scale)
}

/// Returns the largest multiple of `step` that is not above `v`.
fn below(v: i256, step: i256) -> Option<i256> {
    let rest = v.checked_rem(step)?;
    v.checked_sub(if rest < i256::ZERO { rest.checked_add(step)? } else { rest })
}

/// Returns `floor(v / step)`.
fn quotient(v: i256, step: i256) -> Option<i256> {
    let toward_zero = v.checked_div(step)?;
    match toward_zero.checked_mul(step)? > v {
        true => toward_zero.checked_sub(i256::ONE),
        false => Some(toward_zero),
    }
}

/// Maps the digits of a decimal column through a function.
///
/// # Errors
/// A data error that counts the values whose result has more digits than the type.
pub(super) fn map_decimals(values: &ArrayRef, f: impl Fn(i256) -> Option<i256>) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Decimal128(digits, _) => {
            floored_by(values.as_primitive::<Decimal128Type>(), *digits, |v| f(i256::from(v))?.to_i128())
        }
        DataType::Decimal256(digits, _) => floored_by(values.as_primitive::<Decimal256Type>(), *digits, f),
        other => Err(unsupported(other, "integers, floats or decimals")),
    }
}

/// Returns a function from a column's digits to the largest bound of `grid` not above them.
pub(super) fn floor_digits(grid: &Grid, scale: i8) -> impl Fn(i256) -> Option<i256> {
    let (step, origin) = (whole(grid.step, scale), whole(grid.origin, scale));
    move |v| below(v.checked_sub(origin?)?, step?)?.checked_add(origin?)
}

/// Returns the bound of `grid` after the given one.
pub(super) fn next_bound(grid: &Grid, digits: i256, scale: i8) -> Option<Value> {
    Some(Value::Decimal(digits.checked_add(whole(grid.step, scale)?)?, scale))
}

fn floored_by<T: DecimalType>(
    values: &PrimitiveArray<T>,
    digits: u8,
    of: impl Fn(T::Native) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let floored: PrimitiveArray<T> =
        values.unary_opt(|v| of(v).filter(|floor| T::is_valid_decimal_precision(*floor, digits)));
    match floored.null_count() - values.null_count() {
        0 => Ok(Arc::new(floored.with_data_type(values.data_type().clone()))),
        lost => Err(Error::data(format!(
            "{} cannot be floored: the result has more digits than {}",
            plural(lost as u64, "value", "values"),
            values.data_type()
        ))),
    }
}

/// Returns the lower bound of a decimal's interval, in units of the grid; `None` for bounds beyond
/// 128 bits.
pub(super) fn lower_bound(grid: &Grid, digits: i256, scale: i8) -> Option<i128> {
    let part = ten_to(more_decimals(grid.scale, scale).abs())?;
    let units = match more_decimals(grid.scale, scale) > 0 {
        true => quotient(digits, part)?,
        false => digits.checked_mul(part)?,
    };
    let lower = grid.below(units.to_i128()?)?;
    lower.checked_add(grid.width).map(|_| lower)
}

#[cfg(test)]
mod tests {
    use arrow::array::*;
    use proptest::prelude::*;

    use super::*;
    use crate::generalize::Generalizer;
    use crate::generalize::floor::Floor;
    use crate::generalize::laws_tests::agree;
    use crate::generalize::naive_bounds::reaches;
    use crate::generalize::range::Range;

    fn small(values: Vec<Option<i128>>, digits: u8, scale: i8) -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(digits, scale).unwrap())
    }

    fn large(values: &[Option<i128>], digits: u8, scale: i8) -> ArrayRef {
        let values = values.iter().map(|v| v.map(i256::from));
        Arc::new(Decimal256Array::from_iter(values).with_precision_and_scale(digits, scale).unwrap())
    }

    fn floor(step: &str) -> Floor {
        Floor::new(Decimal::parse(step).unwrap()).unwrap()
    }

    fn range(step: &str) -> Range {
        Range::new(Decimal::parse(step).unwrap()).unwrap()
    }

    #[test]
    fn prices_by_hand() {
        let prices = vec![Some(1999), Some(2000), None, Some(-1), Some(-1000), Some(0)];
        let tens = vec![Some(1000), Some(2000), None, Some(-1000), Some(-1000), Some(0)];
        assert_eq!(&agree(&floor("10"), &small(prices.clone(), 9, 2)).unwrap(), &small(tens.clone(), 9, 2));
        assert_eq!(&agree(&floor("10"), &large(&prices, 50, 2)).unwrap(), &large(&tens, 50, 2));
        let halves = agree(&floor("0.5"), &small(vec![Some(1999), Some(-1)], 9, 2)).unwrap();
        assert_eq!(&halves, &small(vec![Some(1950), Some(-50)], 9, 2));
        let labels = agree(&range("10"), &small(prices.clone(), 9, 2)).unwrap();
        let labels: Vec<Option<&str>> = labels.as_string_view().iter().collect();
        let tens = ["[10,20)", "[20,30)", "", "[-10,0)", "[-10,0)", "[0,10)"];
        assert_eq!(labels, tens.map(|label| (!label.is_empty()).then_some(label)));
        let fine = agree(&range("0.005"), &small(vec![Some(1999)], 9, 2)).unwrap();
        assert_eq!(fine.as_string_view().value(0), "[19.990,19.995)");
        // Hundreds without their zeros: 1200 and -100.
        let hundreds = small(vec![Some(12), Some(-1)], 5, -2);
        assert_eq!(&agree(&floor("1000"), &hundreds).unwrap(), &small(vec![Some(10), Some(-10)], 5, -2));
        assert_eq!(agree(&range("1000"), &hundreds).unwrap().as_string_view().value(0), "[1000,2000)");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error =
            |step: &str, data_type: DataType| floor(step).output_type(&data_type).unwrap_err().to_string();
        assert_eq!(
            error("0.005", DataType::Decimal128(9, 2)),
            "a step of 0.005 needs a column with more decimals than Decimal128(9, 2)"
        );
        assert_eq!(
            error("1000", DataType::Decimal128(4, 2)),
            "a step of 1000 is beyond every value of Decimal128(4, 2)"
        );
        // -99.9 at step 10 is -100, of one digit more than the column has.
        assert!(agree(&floor("10"), &small(vec![Some(-999), Some(999)], 3, 1)).is_none());
        let far = Arc::new(Decimal256Array::from(vec![i256::MAX, i256::MIN])) as ArrayRef;
        assert!(agree(&range("0.001"), &far).is_none());
        let why = range("0.001").generalize(&far).unwrap_err().to_string();
        assert!(why.starts_with("2 values are too far from 0"), "{why}");
        let one = range("0.001").generalize_value(&Value::Decimal(i256::MAX, 0)).unwrap_err().to_string();
        assert!(
            [&why, &one].iter().all(|why| why.ends_with(": use a step and an origin with fewer decimals"))
        );
        assert!(agree(&floor("10"), &small(vec![Some(99_999); 2], 38, 10)).is_some());
        let huge = i256::from_string(&format!("1{}5", "0".repeat(50))).unwrap();
        let huge = Decimal256Array::from(vec![huge]).with_precision_and_scale(60, 0).unwrap();
        assert!(agree(&floor("10"), &(Arc::new(huge) as ArrayRef)).is_some());
        assert_eq!(
            floor("10").output_type(&DataType::Decimal256(60, 3)).unwrap(),
            DataType::Decimal256(60, 3)
        );
    }

    #[test]
    fn numbers_are_reached_at_any_scale() {
        // Scale 100: digits stand for less than 1e-23 each; scale -100: for 1e100 each.
        for (digits, scale, number, expected) in [
            (1999, 2, "19.99", true),
            (1998, 2, "19.99", false),
            (19, 0, "19.5", false),
            (20, 0, "19.5", true),
            (5, 100, "1", false),
            (5, 100, "0", true),
            (0, 100, "0", true),
            (-5, 100, "0", false),
            (-5, 100, "-1", true),
            (1, -100, "1e17", true),
            (0, -100, "0", true),
            (0, -100, "1", false),
            (0, -100, "-1", true),
            (-1, -100, "-1e17", false),
        ] {
            let (digits, number) = (i256::from(digits), Decimal::parse(number).unwrap());
            assert_eq!(reaches(digits, scale, number), expected, "{digits} at {scale}, {number}");
            assert_eq!(digits >= threshold(number, scale), expected, "{digits} at {scale}, {number}");
        }
    }

    proptest! {
        #[test]
        fn digits_reach_a_number_from_its_threshold_on(
            digits in prop_oneof![-3..3i128, any::<i128>()],
            scale in any::<i8>(),
            (number, shift) in (-1_000i64..1_000, 0u32..6),
        ) {
            let (digits, number) = (i256::from(digits), Decimal::parse(&format!("{number}e-{shift}")).unwrap());
            prop_assert_eq!(reaches(digits, scale, number), digits >= threshold(number, scale));
        }

        #[test]
        fn decimals_agree_with_integers(
            values in prop::collection::vec(prop::option::of(any::<i64>()), 0..20),
            step in 1i64..100_000,
            scale in -3i8..12,
        ) {
            // A column of scale s at step n / 10^s is the column of its digits at step n.
            let digits: Vec<Option<i128>> = values.iter().map(|v| v.map(i128::from)).collect();
            let integers: ArrayRef = Arc::new(Int64Array::from(values));
            let level = floor(&format!("{step}e{}", -i32::from(scale)));
            let whole = apply_integers(step, &integers);
            for column in [small(digits.clone(), 38, scale), large(&digits, 60, scale)] {
                let floored = agree(&level, &column).unwrap();
                let found: Vec<Option<i128>> = (0..floored.len()).map(|row| digits_of(&floored, row)).collect();
                prop_assert_eq!(&found, &whole);
                agree(&range(&format!("{step}e-3")), &column);
            }
        }
    }

    fn digits_of(values: &ArrayRef, row: usize) -> Option<i128> {
        match Value::read(values, row).unwrap() {
            Value::Decimal(digits, _) => digits.to_i128(),
            _ => None,
        }
    }

    fn apply_integers(step: i64, values: &ArrayRef) -> Vec<Option<i128>> {
        let values = values.as_primitive::<arrow::datatypes::Int64Type>();
        let step = i128::from(step);
        values.iter().map(|v| v.map(|v| i128::from(v).div_euclid(step) * step)).collect()
    }
}
