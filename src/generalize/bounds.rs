//! Bounds between numbers: their spacing, their comparison with numbers and their text in labels.
//!
//! A bound is a decimal. Integers are compared with it exactly. A float is on or above it when it
//! is not below the decimal's nearest double. A `Float32` means the shortest decimal that reads
//! back as it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, StringViewArray};
use arrow::array::{UInt32Array, downcast_integer_array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Float32Type, Float64Type, i256};

use super::value::{unsupported, widen};
use super::{Descriptor, ORIGIN, text_forms};
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::plural::plural;

/// The bounds `origin + k * step` for all integers k. A *unit* is one of the last digit that step
/// and origin have: at step 0.25 it is 0.01.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) step: Decimal,
    pub(crate) origin: Decimal,
    /// The step in units.
    pub(crate) width: i128,
    /// The bound in 0..step, in units.
    pub(crate) first: i128,
    /// The digits after the point of a unit.
    pub(crate) scale: u32,
}

impl Grid {
    /// # Errors
    /// A policy error unless the step is above 0.
    pub(crate) fn new(step: Decimal, origin: Decimal) -> Result<Self> {
        if !step.is_positive() {
            return Err(Error::policy(format!("a step must be above 0, not {step}")));
        }
        let scale = step.scale().max(origin.scale());
        let width = step.units(scale);
        Ok(Self { step, origin, width, first: origin.units(scale).rem_euclid(width), scale })
    }

    /// Describes the generalizer `name` on this grid: its step, and the origin if it is not 0.
    pub(crate) fn describe(&self, name: &str) -> Descriptor {
        let descriptor = Descriptor::new(name).with(self.step);
        match self.origin == Decimal::integer(0) {
            true => descriptor,
            false => descriptor.with_option(ORIGIN.name, self.origin),
        }
    }

    /// Returns the largest bound not above a number, both in units.
    pub(crate) fn below(&self, units: i128) -> Option<i128> {
        units.checked_sub(units.checked_sub(self.first)?.rem_euclid(self.width))
    }

    /// Returns the largest bound not above an integer, in units: 2^64 times 18 digits is far below
    /// 2^127.
    pub(crate) fn of_integer(&self, v: i128) -> Option<i128> {
        self.below(v.checked_mul(10i128.pow(self.scale))?)
    }

    /// Checks that every interval of this grid is a union of intervals of `finer`.
    pub(crate) fn check_coarsens(&self, finer: &Self) -> Result<(), String> {
        if self.step == finer.step {
            return Err(format!("{} is not coarser than {}", self.step, finer.step));
        }
        if !self.step.is_multiple_of(finer.step) {
            return Err(format!("{} is not a multiple of {}", self.step, finer.step));
        }
        let scale = self.scale.max(finer.scale);
        let apart = self.origin.units(scale) - finer.origin.units(scale);
        if apart % finer.step.units(scale) == 0 {
            Ok(())
        } else {
            Err(format!("the origins {} and {} are not on one scale", self.origin, finer.origin))
        }
    }

    /// Creates the error for `count` values of a type whose interval cannot be determined exactly.
    pub(crate) fn too_far(&self, count: usize, data_type: &DataType) -> Error {
        let remedy = match data_type {
            DataType::Float32 => "use a larger step, or double precision",
            // The bounds of decimals are counted in units of the last digit of step and origin.
            _ if data_type.is_decimal() => "use a step and an origin with fewer decimals",
            _ => "use a larger step, or a step and an origin with fewer decimals",
        };
        Error::data(format!(
            "{} too far from 0 to be distinguished at a step of {} from {}: {remedy}",
            plural(count as u64, "value is", "values are"),
            self.step,
            self.origin,
        ))
    }
}

/// Floats beyond this many units are refused. Twice as much is below 2^53, so every bound next to
/// such a float has an exact integer number of units.
const REACH: f64 = 4e15;

/// A [`Grid`] prepared for floats.
pub(crate) struct FloatGrid {
    width: f64,
    first: f64,
    units_in_one: f64,
    reach: f64,
}

impl FloatGrid {
    /// # Errors
    /// A data error when step and origin have more digits than floats can distinguish.
    pub(crate) fn new(grid: &Grid) -> Result<Self> {
        let exact = |n: i128| i64::try_from(n).ok().map(|n| Decimal::integer(n).to_f64());
        let exact = |n: i128| exact(n).filter(|units| *units <= REACH);
        let (Some(width), Some(first)) = (exact(grid.width), exact(grid.first)) else {
            return Err(Error::data(format!(
                "a step of {} is too large for a float column, or has too many digits with its origin",
                grid.step
            )));
        };
        let units_in_one: f64 = format!("1e{}", grid.scale).parse().map_err(Error::internal)?;
        Ok(Self { width, first, units_in_one, reach: REACH / units_in_one })
    }

    /// Returns the units of the largest bound not above the finite `v`: an integer below 2^53, or
    /// `None` out of reach.
    pub(crate) fn units(&self, v: f64) -> Option<f64> {
        if v.abs() > self.reach {
            return None;
        }
        let units = |k: f64| k * self.width + self.first;
        let mut k = ((v * self.units_in_one - self.first) / self.width).floor();
        while self.bound(units(k)) > v {
            k -= 1.0;
        }
        while self.bound(units(k + 1.0)) <= v {
            k += 1.0;
        }
        Some(units(k))
    }

    /// Returns the double nearest to the decimal: both operands are exact, so the division rounds
    /// once.
    pub(crate) fn bound(&self, units: f64) -> f64 {
        units / self.units_in_one + 0.0 // -0.0 becomes 0.0
    }
}

/// Formats `units / 10^scale` with all its decimals and at least `digits` digits before the point.
pub(crate) fn decimal_text(units: i128, scale: u32, digits: usize) -> String {
    let (sign, one) = (if units < 0 { "-" } else { "" }, 10u128.pow(scale));
    let (whole, fraction) = (units.unsigned_abs() / one, units.unsigned_abs() % one);
    match usize::try_from(scale) {
        Ok(width) if width > 0 => format!("{sign}{whole:0digits$}.{fraction:0width$}"),
        _ => format!("{sign}{whole:0digits$}"),
    }
}

/// The labels of floats in no interval.
pub(crate) const OUTSIDE: [&str; 3] = ["NaN", "inf", "-inf"];

/// Returns the position in [`OUTSIDE`] of a float that no interval holds.
pub(crate) fn outside(v: f64) -> Option<usize> {
    match v {
        _ if v.is_nan() => Some(0),
        f64::INFINITY => Some(1),
        f64::NEG_INFINITY => Some(2),
        _ => None,
    }
}

/// Returns the most digits before the point of a bound in these labels, without leading zeros;
/// `None` without a bound.
pub(crate) fn whole_digits(labels: &ArrayRef) -> Option<usize> {
    /// More digits than any bound has, so that a forged label is not made longer.
    const MOST: usize = 40;
    let labels = text_forms(labels).ok()?;
    let bounds =
        labels.iter().flatten().flat_map(|label| label.split(|c: char| !c.is_ascii_digit() && c != '.'));
    let bounds = bounds.filter(|bound| !bound.is_empty());
    let digits = |bound: &str| bound.split('.').next().map_or(0, |whole| whole.trim_start_matches('0').len());
    bounds.map(|bound| digits(bound).clamp(1, MOST)).max()
}

/// Returns whether generalizers treat values of this type as numbers.
pub(crate) fn is_number(input: &DataType) -> bool {
    let others = [DataType::Float32, DataType::Float64];
    input.is_integer()
        || others.contains(input)
        || matches!(input, DataType::Decimal128(..) | DataType::Decimal256(..))
}

/// Creates the error for other types.
pub(crate) fn not_numbers(input: &DataType) -> Error {
    unsupported(input, "integers, floats or decimals")
}

/// Maps every number of a column through one of three functions; the one for decimals sees the
/// digits without the point.
///
/// # Errors
/// A data error for columns without numbers.
pub(crate) fn map_numbers<T>(
    values: &ArrayRef,
    of_integer: impl Fn(i128) -> T,
    of_float: impl Fn(f64) -> T,
    of_decimal: impl Fn(i256) -> T,
) -> Result<Vec<Option<T>>> {
    Ok(match values.data_type() {
        DataType::Float64 => values.as_primitive::<Float64Type>().iter().map(|v| v.map(&of_float)).collect(),
        DataType::Float32 => {
            values.as_primitive::<Float32Type>().iter().map(|v| v.map(|v| of_float(widen(v)))).collect()
        }
        DataType::Decimal128(..) => {
            let values = values.as_primitive::<Decimal128Type>();
            values.iter().map(|v| v.map(|v| of_decimal(i256::from(v)))).collect()
        }
        DataType::Decimal256(..) => {
            values.as_primitive::<Decimal256Type>().iter().map(|v| v.map(&of_decimal)).collect()
        }
        _ => downcast_integer_array!(
            values => values.iter().map(|v| v.map(|v| of_integer(i128::from(v)))).collect(),
            other => return Err(not_numbers(other))
        ),
    })
}

/// Applies `f` to every integer of a column. A `None`, or a result that does not fit the column's
/// type, becomes NULL.
///
/// # Errors
/// A data error for columns without integers.
pub(crate) fn map_integers(values: &ArrayRef, f: impl Fn(i128) -> Option<i128>) -> Result<ArrayRef> {
    fn mapped<T>(values: &PrimitiveArray<T>, f: impl Fn(i128) -> Option<i128>) -> ArrayRef
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i128> + TryFrom<i128>,
    {
        Arc::new(values.unary_opt::<_, T>(|v| f(v.into()).and_then(|v| v.try_into().ok())))
    }
    downcast_integer_array!(
        values => Ok(mapped(values, f)),
        other => Err(not_numbers(other))
    )
}

/// Looks up the label of each row by its position in `labels`.
pub(crate) fn labels_of_rows(labels: &[String], rows: &UInt32Array) -> Result<ArrayRef> {
    take(&StringViewArray::from_iter_values(labels), rows, None)
        .map_err(|_| Error::internal("bounds: a row refers to a label that does not exist"))
}
