//! Centroids: the value that stands for those of a class in a release by microaggregation.
//!
//! - `mean`: of numbers the mean, as a float; of dates and timestamps the mean, rounded down to a day
//!   or a tick.
//! - `median`: of numbers, dates and timestamps the least value that half of the rows do not exceed,
//!   with its own type.
//! - `noisy_mean`: the mean, as a float, with noise that makes a release differentially private; no
//!   function of the values alone.
//! - `mode`: of texts, booleans and the values of a hierarchy file the value of the most rows; of
//!   several the least.
//!
//! # Contract
//! A mean or a median is that of the rows with a value; where more than half of the rows have none,
//! it is NULL. To a mode, NULL is a value, below all others. A clipped number counts as the bound. A
//! mean of values that include an infinity or NaN is infinite or NaN. Deviation from exact arithmetic:
//! the sum of floats is rounded once and compensated for what the steps lose, then divided by the rows.
//!
//! A centroid is no generalization: it need not be the value of any row, and it says nothing about
//! how far the rows are from it. A mean follows an outlier: where one person of a class has a value
//! far beyond the others', the mean gives its size away (clip such a column, or take the median). Where
//! values are missing, a mean or a median is that of fewer people, at least half of the class. A median
//! or a mode is the value of at least one person of the class.
//!
//! ```
//! use datafusion_kanon::extend::Value;
//! use datafusion_kanon::internals::generalize::Centroid;
//! let ages = [(Value::Int(30), 1), (Value::Int(31), 2), (Value::Null, 3)];
//! assert_eq!(Centroid::Mean.of(&ages)?, Value::Float(92.0 / 3.0));
//! assert_eq!(Centroid::Median.of(&ages)?, Value::Int(31));
//! assert_eq!(Centroid::Mode.of(&ages)?, Value::Null);
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::cmp::Ordering;

use arrow::datatypes::{DataType, i256};
use serde::{Deserialize, Serialize};

use super::region_label::{compare, value_of};
use super::{Hierarchy, Value};
#[cfg(feature = "engine")]
use super::{RegionLabel, region_label::Values};
use crate::decimal::ratio;
use crate::error::{Error, Result};

/// The value that stands for those of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Centroid {
    /// The mean.
    Mean,
    /// The mean with noise.
    NoisyMean,
    /// The lower median.
    Median,
    /// The most frequent value.
    Mode,
}

impl Centroid {
    /// Returns the centroid of columns of numbers with this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "mean" => Some(Self::Mean),
            "median" => Some(Self::Median),
            _ => None,
        }
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::NoisyMean => "noisy_mean",
            Self::Median => "median",
            Self::Mode => "mode",
        }
    }

    /// Returns the centroid of a column with this hierarchy, where columns of numbers have this one. Codes
    /// are no numbers: a column with a hierarchy file has a mode.
    #[must_use]
    #[doc(hidden)]
    pub fn for_column(self, hierarchy: &Hierarchy) -> Self {
        if hierarchy.has_intervals() { self } else { Self::Mode }
    }

    /// Returns whether kanon makes this centroid of values of this type.
    pub fn suits(self, data_type: &DataType) -> bool {
        let is_number = data_type.is_integer() || data_type.is_floating() || data_type.is_decimal();
        if self == Self::NoisyMean {
            return is_number;
        }
        self == Self::Mode || !(data_type.is_string() || *data_type == DataType::Boolean)
    }

    /// Returns the type of the centroid of values of this type.
    pub fn output_type(self, data_type: &DataType) -> DataType {
        let is_number = data_type.is_integer() || data_type.is_floating() || data_type.is_decimal();
        match data_type {
            _ if matches!(self, Self::Mean | Self::NoisyMean) && is_number => DataType::Float64,
            text if text.is_string() => DataType::Utf8,
            other => other.clone(),
        }
    }

    /// Returns the centroid of values with their rows. A value may occur several times.
    ///
    /// # Errors
    /// A data error if the sum of the values is too large, an internal error for values of several
    /// types, those without a mean and a centroid with noise.
    pub fn of(self, values: &[(Value, u64)]) -> Result<Value> {
        if self == Self::NoisyMean {
            return Err(Error::internal("centroid: noise is drawn for a whole release"));
        }
        let mut sorted: Vec<(&Value, u64)> = values.iter().map(|(value, rows)| (value, *rows)).collect();
        sorted.sort_by(|a, b| order(a.0, b.0));
        sorted.dedup_by(|next, first| {
            let is_same = order(next.0, first.0) == Ordering::Equal;
            first.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        if self == Self::Mode {
            // Of several, `max_by_key` returns the last: here the least value.
            let most = sorted.iter().rev().max_by_key(|(_, rows)| *rows);
            return Ok(most.map_or(Value::Null, |(value, _)| (*value).clone()));
        }
        let missing = sorted.first().filter(|(value, _)| **value == Value::Null).map_or(0, |(_, rows)| *rows);
        let present = &sorted[usize::from(missing > 0)..];
        let rows: u64 = present.iter().map(|(_, rows)| rows).sum();
        match present.first() {
            None => Ok(Value::Null),
            Some(_) if missing > rows => Ok(Value::Null),
            Some((first, _)) if self == Self::Mean => mean(first, present, rows),
            Some(_) => median(present, rows),
        }
    }

    /// Reads the text form of a centroid whose type is this one; `None` for any other text.
    pub fn parse(text: Option<&str>, output_type: &DataType) -> Option<Value> {
        text.map_or(Some(Value::Null), |text| value_of(text, output_type))
    }
}

#[cfg(feature = "engine")]
impl RegionLabel {
    /// Reads the text form of a centroid whose type is this one, as the region of that value alone.
    pub(crate) fn of_centroid(text: Option<&str>, output_type: &DataType) -> Option<Self> {
        Centroid::parse(text, output_type).map(|value| match value {
            Value::Null => Self::Missing,
            value => Self::from(Values::One(value)),
        })
    }

    /// Returns the value of a region that was read by [`of_centroid`](Self::of_centroid).
    pub(crate) fn centroid(&self) -> &Value {
        match self {
            Self::Values { values: Values::One(value), .. } => value,
            _ => &Value::Null,
        }
    }
}

/// Orders the values of one column, NULL first.
fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        _ => compare(a, b).unwrap_or(Ordering::Equal),
    }
}

fn median(present: &[(&Value, u64)], rows: u64) -> Result<Value> {
    let mut below = 0;
    let half = present.iter().find(|(_, rows_of_value)| {
        below += rows_of_value;
        below >= rows.div_ceil(2)
    });
    half.map(|(value, _)| (*value).clone()).ok_or_else(|| Error::internal("centroid: no median"))
}

fn mean(first: &Value, present: &[(&Value, u64)], rows: u64) -> Result<Value> {
    let too_large = || Error::data("the sum of a class's values is too large for a mean; use \"median\"");
    let is_moment = |value: &Value| matches!(value, Value::Date(_) | Value::Timestamp(..));
    let whole = |value: &Value| match value {
        Value::Int(value) => Some(*value),
        Value::Date(days) => Some(i128::from(*days)),
        Value::Timestamp(ticks, ..) => Some(i128::from(*ticks)),
        _ => None,
    };
    match first {
        Value::Float(_) => mean_of_floats(present, rows),
        Value::Decimal(_, scale) => {
            let mut sum = Some(i256::ZERO);
            for (value, rows) in present {
                let Value::Decimal(digits, _) = value else { return Err(mixed()) };
                let product = digits.checked_mul(i256::from_i128(i128::from(*rows)));
                sum = sum.zip(product).and_then(|(sum, product)| sum.checked_add(product));
            }
            let sum = format!("{}e{}", sum.ok_or_else(too_large)?, -i32::from(*scale));
            Ok(Value::Float(sum.parse::<f64>().map_err(Error::internal)? / ratio(rows.into(), 1)))
        }
        _ => {
            let mut sum = Some(0i128);
            for (value, rows) in present {
                let value = whole(value).ok_or_else(mixed)?;
                let product = value.checked_mul(i128::from(*rows));
                sum = sum.zip(product).and_then(|(sum, product)| sum.checked_add(product));
            }
            let sum = sum.ok_or_else(too_large)?;
            if !is_moment(first) {
                let size = ratio(sum.unsigned_abs(), rows.into());
                return Ok(Value::Float(if sum < 0 { -size } else { size }));
            }
            // Between the least and the greatest, so it fits.
            let mean = sum.div_euclid(i128::from(rows));
            match first {
                Value::Timestamp(_, unit, zone) => {
                    Ok(Value::Timestamp(i64::try_from(mean).map_err(Error::internal)?, *unit, zone.clone()))
                }
                _ => Ok(Value::Date(i32::try_from(mean).map_err(Error::internal)?)),
            }
        }
    }
}

/// Divides the sum by the rows.
fn mean_of_floats(present: &[(&Value, u64)], rows: u64) -> Result<Value> {
    let mut values = Vec::with_capacity(present.len());
    for (value, rows) in present {
        let Value::Float(value) = value else { return Err(mixed()) };
        values.push((*value, ratio((*rows).into(), 1)));
    }
    let all = ratio(rows.into(), 1);
    let sum = compensated_sum(values.iter().map(|(value, rows)| value * rows));
    let mean = match sum.is_finite() || values.iter().any(|(value, _)| !value.is_finite()) {
        true => sum / all,
        // Only the sum is too large.
        false => compensated_sum(values.iter().map(|(value, rows)| value * (rows / all))),
    };
    // There is one NaN, and no -0.0.
    Ok(Value::Float(if mean.is_nan() { f64::NAN } else { mean + 0.0 }))
}

/// Sums with compensation for rounding (Neumaier).
fn compensated_sum(parts: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut rest) = (0.0f64, 0.0f64);
    for part in parts {
        let next = sum + part;
        rest += if sum.abs() >= part.abs() { (sum - next) + part } else { (part - next) + sum };
        sum = next;
    }
    if sum.is_finite() { sum + rest } else { sum }
}

fn mixed() -> Error {
    Error::internal("centroid: values of several types, or of one without a mean")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::TimeUnit;

    fn ints(values: &[i128]) -> Vec<(Value, u64)> {
        values.iter().map(|value| (Value::Int(*value), 1)).collect()
    }

    #[test]
    fn means_are_those_of_the_rows() {
        assert_eq!(Centroid::Mean.of(&ints(&[-1, 2, 2])).unwrap(), Value::Float(1.0));
        let largest = ints(&[i128::from(u64::MAX), i128::from(u64::MAX)]);
        assert_eq!(Centroid::Mean.of(&largest).unwrap(), Value::Float(18_446_744_073_709_551_615.0));
        let cents = [(Value::Decimal(i256::from(150), 2), 1), (Value::Decimal(i256::from(-25), 2), 3)];
        assert_eq!(Centroid::Mean.of(&cents).unwrap(), Value::Float(0.1875));
        let floats = [(Value::Float(0.1), 7), (Value::Float(0.1), 3)];
        assert_eq!(Centroid::Mean.of(&floats).unwrap(), Value::Float(0.1));
        let large = [(Value::Float(f64::MAX), 5), (Value::Float(-f64::MAX), 5)];
        assert_eq!(Centroid::Mean.of(&large).unwrap().text_form().as_deref(), Some("0"));
    }

    /// Otherwise the same ages would have another mean as floats than as integers.
    #[test]
    fn means_of_whole_floats_are_those_of_integers() {
        for n in 1..500i32 {
            let values = (1..=n % 17 + 1).map(|i| (i * n * 7) % 113);
            let floats: Vec<_> = values.clone().map(|x| (Value::Float(f64::from(x)), 1)).collect();
            let ints: Vec<_> = values.map(|x| (Value::Int(x.into()), 1)).collect();
            assert_eq!(Centroid::Mean.of(&floats).unwrap(), Centroid::Mean.of(&ints).unwrap(), "{n}");
        }
    }

    #[test]
    fn means_of_moments_are_rounded_down() {
        let days = |all: &[i32]| all.iter().map(|day| (Value::Date(*day), 1)).collect::<Vec<_>>();
        assert_eq!(Centroid::Mean.of(&days(&[-2, -1])).unwrap(), Value::Date(-2));
        assert_eq!(Centroid::Mean.of(&days(&[1, 2, 4])).unwrap(), Value::Date(2));
        let at = |ticks| Value::Timestamp(ticks, TimeUnit::Second, None);
        assert_eq!(Centroid::Mean.of(&[(at(i64::MAX), 9), (at(i64::MAX - 3), 1)]).unwrap(), at(i64::MAX - 1));
    }

    #[test]
    fn medians_and_modes_are_values() {
        assert_eq!(Centroid::Median.of(&ints(&[4, 1, 3, 2])).unwrap(), Value::Int(2));
        assert_eq!(Centroid::Median.of(&[(Value::Int(9), 3), (Value::Int(1), 2)]).unwrap(), Value::Int(9));
        let text = |text: &str, rows| (Value::Text(text.into()), rows);
        assert_eq!(
            Centroid::Mode.of(&[text("b", 2), text("a", 1), text("a", 1)]).unwrap(),
            Value::Text("a".into())
        );
        assert_eq!(
            Centroid::Mode.of(&[(Value::Bool(true), 2), (Value::Null, 1)]).unwrap(),
            Value::Bool(true)
        );
    }

    #[test]
    fn most_rows_decide_whether_it_is_missing() {
        for centroid in [Centroid::Mean, Centroid::Median] {
            let half = [(Value::Int(5), 1), (Value::Null, 1)];
            assert_ne!(centroid.of(&half).unwrap(), Value::Null);
            assert_eq!(centroid.of(&[(Value::Int(5), 1), (Value::Null, 2)]).unwrap(), Value::Null);
            assert_eq!(centroid.of(&[(Value::Null, 2)]).unwrap(), Value::Null);
        }
    }

    #[test]
    fn texts_are_read_back() {
        for centroid in [Value::Null, Value::Float(92.0 / 3.0), Value::Float(-1e300), Value::Float(f64::NAN)]
        {
            let text = centroid.text_form();
            let read = Centroid::parse(text.as_deref(), &DataType::Float64).map(|value| value.text_form());
            assert_eq!(read, Some(text));
        }
        for other in ["30.0", "", "1e3", "nan", "30 or missing"] {
            assert_eq!(Centroid::parse(Some(other), &DataType::Float64), None, "{other}");
        }
        assert_eq!(Centroid::parse(Some("*"), &DataType::Utf8), Some(Value::Text("*".into())));
    }
}
