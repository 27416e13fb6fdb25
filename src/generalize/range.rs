//! `range`: a number becomes the half-open interval of fixed width that holds it, as text.
//!
//! `f(v) = [a,a+step)` with `a = step * floor(v / step)`: the interval of [`floor`](super::floor), by the same
//! rule for floats. 39 at step 10 is `[30,40)`, -5 is `[-10,0)`, 0.7 at step 0.5 is `[0.5,1.0)`. Interval
//! labels as in [`papers::SAMARATI_2001`].
//!
//! # Contract
//! Integers, floats and decimals in, `Utf8View` out. NULL stays NULL; `NaN`, `inf` and `-inf` are labels of their own,
//! -0.0 counts as 0.0. Bounds are exact decimals and cannot overflow. Labels that are [padded](Range::padded_for)
//! to the width of a release (`[030,040)`) sort as text like the values from 0 up; text order of negative
//! bounds is not theirs, so the level does not claim to keep order. Floats more than 4e15 units of the step's
//! last digit from 0 are refused and counted. An outer interval with few people still shows that they exist.
//!
//! ```
//! use datafusion_kanon::decimal::Decimal;
//! use datafusion_kanon::generalize::{Generalizer, Value, range::Range};
//! let tens = Range::new(Decimal::integer(10))?;
//! assert_eq!(tens.one(&Value::Int(39))?, Value::Text("[30,40)".into()));
//! assert_eq!(tens.one(&Value::Int(-5))?, Value::Text("[-10,0)".into()));
//! assert_eq!(tens.one(&Value::Float(40.0))?, Value::Text("[40,50)".into()));
//! assert_eq!(tens.one(&Value::Null)?, Value::Null);
//! # Ok::<(), datafusion_kanon::error::Error>(())
//! ```

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, UInt64Type};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::decimal_steps::{lower_bound, lower_bounds};
use super::floor::{FloatStep, decimal_text, multiple, positive, too_far, units_by_text};
use super::value::{unsupported, widen};
use super::{Argument, Generalizer, GeneralizerRow, Takes, Value, numbers, text_forms};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::papers;

/// The table row of this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "range",
        summary: "a number becomes the interval of a fixed width that holds it, such as [30,40)",
        parameters: "width",
        example: "generalize_range(age, 10)",
        paper: Some(papers::SAMARATI_2001),
    },
    key: Some("range"),
    takes: Takes::Numbers,
    levels: |argument: &Argument| {
        let level = |step: &Decimal| Ok(Arc::new(Range::new(*step)?) as Arc<dyn Generalizer>);
        numbers(argument)?.iter().map(level).collect()
    },
};

/// The labels of floats that no interval holds.
const OUTSIDE: [&str; 3] = ["NaN", "inf", "-inf"];

/// See the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    step: Decimal,
    /// Labels show at least so many digits before the point.
    digits: usize,
}

/// The interval of one value.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
enum Interval {
    /// Its lower bound in units of the step's last digit.
    From(i128),
    /// One of [`OUTSIDE`].
    Outside(&'static str),
}

impl Range {
    /// Intervals of width `step`, one of which begins at 0.
    ///
    /// # Errors
    /// A policy error unless the step is above 0.
    pub fn new(step: Decimal) -> Result<Self> {
        Ok(Self { step: positive(step)?, digits: 1 })
    }

    fn text(&self, interval: Interval) -> String {
        match interval {
            Interval::Outside(label) => label.to_owned(),
            Interval::From(lower) => {
                let show = |units| decimal_text(units, self.step.scale(), self.digits);
                format!("[{},{})", show(lower), show(lower.saturating_add(self.step.numerator())))
            }
        }
    }

    /// The bounds of a label in units; `None` for other texts and for [`OUTSIDE`].
    fn bounds(&self, label: &str) -> Option<(i128, i128)> {
        let (lower, upper) = label.strip_prefix('[')?.strip_suffix(')')?.split_once(',')?;
        let units = |bound: &str| bound.replace('.', "").parse().ok();
        Some((units(lower)?, units(upper)?))
    }

    /// The interval of an integer: 2^64 times 18 digits is far below 2^127.
    fn of_integer(&self, v: i128) -> Interval {
        let units = v * self.step.denominator();
        Interval::From(units - units.rem_euclid(self.step.numerator()))
    }

    /// One label a distinct interval, and each row's.
    fn labels(&self, intervals: impl Iterator<Item = Option<Interval>>) -> Result<ArrayRef> {
        let mut numbers: HashMap<Interval, u32> = HashMap::new();
        let mut labels: Vec<String> = Vec::new();
        let rows: UInt32Array = intervals
            .map(|interval| {
                let Some(interval) = interval else { return Ok(None) };
                Ok(Some(match numbers.entry(interval) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        let number = u32::try_from(labels.len()).map_err(Error::internal)?;
                        labels.push(self.text(interval));
                        *new.insert(number)
                    }
                }))
            })
            .collect::<Result<_>>()?;
        take(&StringViewArray::from(labels.iter().map(String::as_str).collect::<Vec<_>>()), &rows, None)
            .map_err(|_| Error::internal("labels to rows"))
    }

    fn floats(&self, values: impl Iterator<Item = Option<f64>>) -> Result<ArrayRef> {
        let step = FloatStep::new(self.step)?;
        let mut lost = 0;
        let labels = self.labels(values.map(|v| {
            let v = v?;
            if let Some(label) = outside(v) {
                return Some(Interval::Outside(label));
            }
            let Some(units) = step.units(v) else {
                lost += 1;
                return None;
            };
            #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
            Some(Interval::From(units as i128))
        }));
        if lost == 0 { labels } else { Err(too_far(lost, self.step)) }
    }
}

/// The label of a float that no interval holds.
fn outside(v: f64) -> Option<&'static str> {
    match v {
        _ if v.is_nan() => Some("NaN"),
        f64::INFINITY => Some("inf"),
        f64::NEG_INFINITY => Some("-inf"),
        _ => None,
    }
}

impl Generalizer for Range {
    fn label(&self) -> String {
        format!("range:{}", self.step)
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        match input {
            DataType::Float32 | DataType::Float64 => FloatStep::new(self.step).map(drop)?,
            DataType::Decimal128(..) | DataType::Decimal256(..) => {}
            other if other.is_integer() => {}
            other => return Err(unsupported(other, "integers, floats or decimals")),
        }
        Ok(DataType::Utf8View)
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        match values.data_type() {
            DataType::Float64 => self.floats(values.as_primitive::<Float64Type>().iter()),
            DataType::Float32 => {
                self.floats(values.as_primitive::<Float32Type>().iter().map(|v| v.map(widen)))
            }
            DataType::UInt64 => {
                let values = values.as_primitive::<UInt64Type>();
                self.labels(values.iter().map(|v| v.map(|v| self.of_integer(i128::from(v)))))
            }
            other if other.is_integer() => {
                let wide =
                    cast(values, &DataType::Int64).map_err(|_| Error::internal("integers to 64 bits"))?;
                let wide = wide.as_primitive::<Int64Type>();
                self.labels(wide.iter().map(|v| v.map(|v| self.of_integer(i128::from(v)))))
            }
            _ => {
                let bounds = lower_bounds(self.step, values)?;
                let lost = bounds.iter().filter(|bound| **bound == Some(None)).count();
                match lost {
                    0 => self.labels(bounds.into_iter().map(|bound| bound.flatten().map(Interval::From))),
                    lost => Err(too_far(lost, self.step)),
                }
            }
        }
    }

    fn one(&self, value: &Value) -> Result<Value> {
        let step = self.step.numerator();
        let lower = match value {
            Value::Null => return Ok(Value::Null),
            Value::Int(v) => {
                v.checked_mul(self.step.denominator()).map(|units| units.div_euclid(step) * step)
            }
            Value::Float(v) if !v.is_finite() => return Ok(Value::Text(v.to_string())),
            Value::Float(v) => units_by_text(*v, self.step),
            Value::Decimal(digits, scale) => lower_bound(self.step, *digits, *scale),
            _ => return Err(Error::data("only numbers have intervals")),
        };
        let lower = lower.ok_or_else(|| too_far(1, self.step))?;
        Ok(Value::Text(self.text(Interval::From(lower))))
    }

    fn is_label(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Text(text) if OUTSIDE.contains(&text.as_str()) => true,
            Value::Text(text) => self.bounds(text).is_some_and(|(lower, _)| {
                lower.rem_euclid(self.step.numerator()) == 0 && self.text(Interval::From(lower)) == *text
            }),
            _ => false,
        }
    }

    fn follows(&self, finer: &dyn Generalizer) -> Result<(), String> {
        match (finer as &dyn Any).downcast_ref::<Range>() {
            Some(finer) => multiple(self.step, finer.step),
            None => Err("`range` follows only `range`".into()),
        }
    }

    fn padded_for(&self, released: &ArrayRef) -> Option<Arc<dyn Generalizer>> {
        let labels = text_forms(released).ok()?;
        let bounds = labels.iter().flatten().filter_map(|label| self.bounds(label));
        let most = bounds.map(|(lower, upper)| lower.unsigned_abs().max(upper.unsigned_abs())).max()?;
        let digits = (most / self.step.denominator().unsigned_abs()).to_string().len();
        Some(Arc::new(Self { step: self.step, digits }))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::*;
    use proptest::prelude::*;

    use super::*;
    use crate::generalize::floor::Floor;
    use crate::generalize::floor::tests::{agree, float};

    fn range(step: &str) -> Range {
        Range::new(Decimal::parse(step).unwrap()).unwrap()
    }

    fn labels<const N: usize>(labels: [&str; N]) -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values(labels))
    }

    #[test]
    fn intervals_by_hand() {
        let ages: ArrayRef = Arc::new(Int16Array::from(vec![39, 40, -5, -10, 0]));
        assert_eq!(
            &agree(&range("10"), &ages).unwrap(),
            &labels(["[30,40)", "[40,50)", "[-10,0)", "[-10,0)", "[0,10)"])
        );
        assert_eq!(agree(&range("2.5"), &ages).unwrap().as_string_view().value(0), "[37.5,40.0)");
        let tenths: ArrayRef =
            Arc::new(Float64Array::from(vec![0.3, -0.0, -0.05, f64::NAN, f64::NEG_INFINITY]));
        let expected = labels(["[0.3,0.4)", "[0.0,0.1)", "[-0.1,0.0)", "NaN", "-inf"]);
        assert_eq!(&agree(&range("0.1"), &tenths).unwrap(), &expected);
        let singles: ArrayRef = Arc::new(Float32Array::from(vec![Some(0.3), None, Some(f32::INFINITY)]));
        assert_eq!(agree(&range("0.1"), &singles).unwrap().as_string_view().value(0), "[0.3,0.4)");
    }

    #[test]
    fn bounds_do_not_overflow() {
        let ends: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX]));
        let expected = labels([
            "[-9223372036854775810,-9223372036854775800)",
            "[9223372036854775800,9223372036854775810)",
        ]);
        assert_eq!(&agree(&range("10"), &ends).unwrap(), &expected);
        let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
        assert!(agree(&range("0.000000000000000007"), &large).is_some());
    }

    #[test]
    fn padded_labels_sort_like_the_values() {
        let ages: ArrayRef = Arc::new(Int64Array::from(vec![Some(-5), None, Some(5), Some(35), Some(95)]));
        let tens = range("10");
        let padded = tens.padded_for(&agree(&tens, &ages).unwrap()).unwrap();
        let released = agree(&*padded, &ages).unwrap();
        let shown: Vec<Option<&str>> = released.as_string_view().iter().collect();
        assert_eq!(
            shown,
            [Some("[-010,000)"), None, Some("[000,010)"), Some("[030,040)"), Some("[090,100)")]
        );
        assert_eq!(padded.label(), "range:10");
        assert!(
            !tens.is_label(&Value::Text("[030,040)".into()))
                && !padded.is_label(&Value::Text("[30,40)".into()))
        );
        // Padding what is padded changes nothing; there is nothing to pad without a label.
        assert_eq!(&agree(&*padded.padded_for(&released).unwrap(), &ages).unwrap(), &released);
        assert!(tens.padded_for(&labels(["NaN"])).is_none());
    }

    #[test]
    fn labels_and_levels() {
        let label = |text: &str| range("10").is_label(&Value::Text(text.into()));
        assert!(label("[30,40)") && label("[-10,0)") && label("NaN"));
        let wrong =
            ["[35,45)", "[30,50)", "[+30,40)", "[30.0,40.0)", "[-0,10)", "[3.0,40)", "30", "", "[,)", "*"];
        assert!(wrong.iter().all(|text| !label(text)));
        assert_eq!(range("15").follows(&range("10")), Err("15 is not a multiple of 10".into()));
        assert!(range("20").follows(&range("10")).is_ok());
        assert!(range("20").follows(&Floor::new(Decimal::integer(10)).unwrap()).is_err());
        assert!(
            range("10").output_type(&DataType::Date32).is_err() && Range::new(Decimal::integer(0)).is_err()
        );
    }

    proptest! {
        #[test]
        fn integers_agree_and_nest(
            values in prop::collection::vec(prop::option::of(any::<i64>()), 0..20),
            step in 1i64..100_000,
            shift in 0usize..6,
            factor in 2i64..9,
        ) {
            let values: ArrayRef = Arc::new(Int64Array::from(values));
            let (fine, coarse) = (range(&format!("{step}e-{shift}")), range(&format!("{}e-{shift}", step * factor)));
            let (fines, coarses) = (agree(&fine, &values).unwrap(), agree(&coarse, &values).unwrap());
            prop_assert!(coarse.follows(&fine).is_ok());
            // Each fine interval lies within its coarse one.
            for (a, b) in fines.as_string_view().iter().flatten().zip(coarses.as_string_view().iter().flatten()) {
                let (a, b) = (bounds(&fine, a), bounds(&coarse, b));
                prop_assert!(b.0 <= a.0 && a.1 <= b.1);
            }
        }

        #[test]
        fn floats_agree_and_hold_the_value(v in float(), step in 1i64..10_000, shift in 0usize..19) {
            let level = range(&format!("{step}e-{shift}"));
            let single = v as f32;
            agree(&level, &(Arc::new(Float32Array::from(vec![single])) as ArrayRef));
            if let Some(labels) = agree(&level, &(Arc::new(Float64Array::from(vec![v])) as ArrayRef)) {
                let (lower, upper) = labels.as_string_view().value(0)[1..].split_once(',').unwrap();
                prop_assert!(lower.parse::<f64>().unwrap() <= v);
                prop_assert!(v < upper.trim_end_matches(')').parse::<f64>().unwrap());
            }
        }
    }

    /// The bounds on a scale that all steps of the test share.
    fn bounds(level: &Range, label: &str) -> (i128, i128) {
        let (lower, upper) = level.bounds(label).unwrap();
        let to_common = 10i128.pow(6 - level.step.scale());
        (lower * to_common, upper * to_common)
    }
}
