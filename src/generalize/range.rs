//! `range`: a number becomes the half-open interval of fixed width that holds it, as text.
//!
//! `f(v) = [a,a+step)` with `a = step * floor(v / step)`: the interval of [`floor`](super::floor),
//! with the same rule for floats. 39 at step 10 is `[30,40)`, -5 is `[-10,0)`, 0.7 at step 0.5 is
//! `[0.5,1.0)`. Interval labels follow [`papers::SAMARATI_2001`]. A policy may move the origin: at
//! step 10 from 5, 39 is `[35,45)`.
//!
//! # Contract
//! Integers, floats and decimals in, `Utf8View` out. NULL stays NULL; `NaN`, `inf` and `-inf` are
//! labels of their own, -0.0 counts as 0.0. Bounds are exact decimals and cannot overflow. Labels
//! [padded](Range::with_label_width) to the width of a release (`[030,040)`) sort as text in the
//! order of the values from 0 up. Negative bounds do not sort as text, so the level does not claim
//! to keep order. Floats more than 4e15 units of the step's last digit from 0 are refused and
//! counted. In a column with [`clip`](super::clip) an interval that an end cuts is shown cut
//! (`[80,90)`), and the ends are open: `<0` and `>=90`, which sort before all intervals. An outer
//! interval with few individuals still shows that they exist.
//!
//! ```
//! use datafusion_kanon::extend::{Decimal, Generalizer, Value};
//! use datafusion_kanon::internals::generalize::range::Range;
//! let tens = Range::new(Decimal::integer(10))?;
//! assert_eq!(tens.generalize_value(&Value::Int(39))?, Value::Text("[30,40)".into()));
//! assert_eq!(tens.generalize_value(&Value::Int(-5))?, Value::Text("[-10,0)".into()));
//! assert_eq!(tens.generalize_value(&Value::Float(40.0))?, Value::Text("[40,50)".into()));
//! assert_eq!(tens.generalize_value(&Value::Null)?, Value::Null);
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::datatypes::{DataType, i256};
use hashbrown::HashMap;

use super::bounds::{
    FloatGrid, Grid, OUTSIDE, decimal_text, is_number, labels_of_rows, map_numbers, not_numbers, outside,
    whole_digits,
};
use super::clip::Clip;
use super::decimal_steps::{lower_bound, scale_of};
use super::{Descriptor, Generalizer, GeneralizerRow, ORIGIN, Value, each_level};
use super::{interval_number, naive_bounds};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Settings};

/// The row of [`GENERALIZERS`](super::GENERALIZERS) for this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "range",
        summary: "maps a number to its interval of a fixed width, such as [30,40)",
        parameters: "width",
        example: "generalize_range(age, 10)",
        paper: Some(papers::SAMARATI_2001),
    },
    key: Some("range"),
    parameters: &[
        Parameter {
            name: "width",
            kind: Kind::Levels(&Kind::Positive),
            absent: Absent::Refused,
            summary: "the width of the intervals",
        },
        ORIGIN,
    ],
    levels: |settings: &Settings| {
        let origin = settings.number(ORIGIN.name)?;
        each_level(settings.list("width")?, |width| Range::from_origin(width.number()?, origin))
    },
};

/// The generalizer that the [module](self) describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    grid: Grid,
    clip: Option<Clip>,
    /// Labels show at least this many digits before the point.
    digits: usize,
}

/// The interval of one value.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
enum Interval {
    /// All numbers below the lower end of the clip.
    Below,
    /// An interval by its lower bound, in units of the grid.
    From(i128),
    /// All numbers from the upper end of the clip on.
    Above,
    /// A position in [`OUTSIDE`].
    Outside(usize),
}

impl Range {
    /// Creates intervals of width `step` whose bounds are the multiples of it.
    ///
    /// # Errors
    /// A policy error unless the step is above 0.
    pub fn new(step: Decimal) -> Result<Self> {
        Self::from_origin(step, Decimal::integer(0))
    }

    /// Creates intervals of width `step` with a bound at `origin`.
    ///
    /// # Errors
    /// A policy error unless the step is above 0.
    pub fn from_origin(step: Decimal, origin: Decimal) -> Result<Self> {
        Ok(Self { grid: Grid::new(step, origin)?, clip: None, digits: 1 })
    }

    /// Returns the number of digits after the point that all labels show.
    fn scale(&self) -> u32 {
        self.grid.scale.max(self.clip.map_or(0, |clip| clip.scale()))
    }

    fn text(&self, interval: Interval) -> String {
        let scale = self.scale();
        let [below, above] =
            self.clip.map_or([const { String::new() }; 2], |clip| clip.open_ends(scale, self.digits));
        match interval {
            Interval::Below => below,
            Interval::Above => above,
            Interval::Outside(label) => OUTSIDE.get(label).copied().unwrap_or_default().to_owned(),
            Interval::From(lower) => {
                let units = |bound: i128| bound.saturating_mul(10i128.pow(scale - self.grid.scale));
                let [low, high] = self.clip.map_or([None; 2], |clip| clip.ends());
                let [low, high] = [low, high].map(|end| end.map(|end| end.units(scale)));
                let (lower, upper) = (units(lower), units(lower.saturating_add(self.grid.width)));
                let (lower, upper) =
                    (low.map_or(lower, |l| lower.max(l)), high.map_or(upper, |h| upper.min(h)));
                let show = |units| decimal_text(units, scale, self.digits);
                format!("[{},{})", show(lower), show(upper))
            }
        }
    }

    /// Returns the interval of a float that is NaN, infinite or beyond an end of the clip; `None`
    /// for others.
    fn special(&self, v: f64, side: Ordering) -> Option<Interval> {
        match side {
            Ordering::Less => Some(Interval::Below),
            Ordering::Greater => Some(Interval::Above),
            Ordering::Equal => outside(v).map(Interval::Outside),
        }
    }

    /// Formats each distinct interval once and returns the label of each row.
    fn labels(&self, intervals: impl Iterator<Item = Option<Interval>>) -> Result<ArrayRef> {
        let mut numbers: HashMap<Interval, u32> = HashMap::new();
        let mut labels: Vec<String> = Vec::new();
        let rows: UInt32Array = intervals
            .map(|interval| {
                let Some(interval) = interval else { return Ok(None) };
                let next = u32::try_from(labels.len()).map_err(Error::internal)?;
                Ok(Some(*numbers.entry(interval).or_insert_with(|| {
                    labels.push(self.text(interval));
                    next
                })))
            })
            .collect::<Result<_>>()?;
        labels_of_rows(&labels, &rows)
    }
}

impl Generalizer for Range {
    fn descriptor(&self) -> Descriptor {
        self.grid.describe("range").clipped(self.clip.map(|clip| clip.ends()))
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        match input {
            DataType::Float32 | DataType::Float64 => FloatGrid::new(&self.grid).map(drop)?,
            other if is_number(other) => {}
            other => return Err(not_numbers(other)),
        }
        Ok(DataType::Utf8View)
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        false
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.output_type(values.data_type())?;
        let floats = FloatGrid::new(&self.grid).ok();
        let scale = scale_of(values.data_type());
        let sides = self.clip.map(|clip| (clip.of_integers(), clip.of_floats(), clip.of_decimals(scale)));
        let finer = 10i128.pow(self.scale() - self.grid.scale);
        let is_written = |lower: &i128| {
            let upper = lower.checked_add(self.grid.width).and_then(|upper| upper.checked_mul(finer));
            lower.checked_mul(finer).and(upper).is_some()
        };
        let of_side = |side: Option<Ordering>, from: &dyn Fn() -> Option<i128>| match side {
            Some(Ordering::Less) => Some(Interval::Below),
            Some(Ordering::Greater) => Some(Interval::Above),
            _ => from().filter(&is_written).map(Interval::From),
        };
        let of_integer =
            |v: i128| of_side(sides.as_ref().map(|(side, ..)| side(v)), &|| self.grid.of_integer(v));
        let of_decimal = |v: i256| {
            of_side(sides.as_ref().map(|(.., side)| side(v)), &|| lower_bound(&self.grid, v, scale))
        };
        let of_float = |v: f64| {
            let side = sides.as_ref().map_or(Ordering::Equal, |(_, side, _)| side(v));
            self.special(v, side).or_else(|| {
                let units = floats.as_ref()?.units(v)?;
                #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
                Some(Interval::From(units as i128))
            })
        };
        let intervals = map_numbers(values, of_integer, of_float, of_decimal)?;
        match intervals.iter().filter(|interval| **interval == Some(None)).count() {
            0 => self.labels(intervals.into_iter().map(Option::flatten)),
            lost => Err(self.grid.too_far(lost, values.data_type())),
        }
    }

    /// Returns the numbers of the intervals where these are sure to fit 64 bits, else the labels.
    fn codes(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.output_type(values.data_type())?;
        let numbers = interval_number::of_column(&self.grid, self.clip, values)?;
        numbers.map_or_else(|| self.generalize(values), |numbers| Ok(Arc::new(numbers)))
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        let side = self.clip.map_or(Ordering::Equal, |clip| clip.side(value));
        let [low, high] = self.clip.map_or([None; 2], |clip| clip.ends());
        let open_end = |sign, end| naive_bounds::open_end(sign, end, self.scale(), self.digits);
        let lower = match (side, value) {
            (_, Value::Null) => return Ok(Value::Null),
            (Ordering::Less, _) => return open_end("<", low),
            (Ordering::Greater, _) => return open_end(">=", high),
            (_, Value::Float(v)) if !v.is_finite() => return Ok(Value::Text(v.to_string())),
            (_, Value::Int(_) | Value::Float(_) | Value::Decimal(..)) => {
                naive_bounds::lower_bound(&self.grid, value)
            }
            _ => return Err(Error::data("only numbers have intervals")),
        };
        let data_type = match value {
            Value::Decimal(_, scale) => DataType::Decimal256(76, *scale),
            _ => DataType::Float64,
        };
        let text = lower.and_then(|lower| {
            naive_bounds::interval_text(&self.grid, lower, [low, high], self.scale(), self.digits)
        });
        Ok(Value::Text(text.ok_or_else(|| self.grid.too_far(1, &data_type))?))
    }

    fn is_label(&self, value: &Value) -> bool {
        let Value::Text(text) = value else { return *value == Value::Null };
        if let Some(label) = OUTSIDE.iter().position(|label| label == text) {
            let v = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][label];
            return self.clip.is_none_or(|clip| clip.side(&Value::Float(v)) == Ordering::Equal);
        }
        let ends = [Interval::Below, Interval::Above].map(|end| self.text(end));
        if ends.contains(text) {
            return !text.is_empty();
        }
        // An interval holds its lower bound, not its upper one.
        let lower = text.strip_prefix('[').and_then(|rest| rest.split(',').next());
        let units: Option<i128> = lower.and_then(|lower| lower.replace('.', "").parse().ok());
        let (scale, own) = (self.scale(), self.grid.scale);
        let between = |units: i128| {
            let [low, high] = self.clip.map_or([None; 2], |clip| clip.ends());
            low.is_none_or(|low| low.units(scale) <= units)
                && high.is_none_or(|high| units < high.units(scale))
        };
        let lower = units.filter(|units| between(*units));
        let lower = lower.and_then(|units| self.grid.below(units.div_euclid(10i128.pow(scale - own))));
        lower.is_some_and(|lower| self.text(Interval::From(lower)) == *text)
    }

    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String> {
        match (finer as &dyn Any).downcast_ref::<Range>() {
            Some(finer) if self.clip != finer.clip => Err("they are clipped at other bounds".into()),
            Some(finer) => self.grid.check_coarsens(&finer.grid),
            None => Err("`range` can only follow `range`".into()),
        }
    }

    fn with_label_width(&self, released: &ArrayRef) -> Option<Arc<dyn Generalizer>> {
        Some(Arc::new(Self { digits: whole_digits(released)?, ..self.clone() }))
    }

    fn clipped(&self, clip: &Clip) -> Result<Arc<dyn Generalizer>> {
        Ok(Arc::new(Self { clip: Some(*clip), ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::*;
    use proptest::prelude::*;

    use super::*;
    use crate::generalize::floor::Floor;
    use crate::generalize::laws_tests::{agree, float};

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
        let padded = tens.with_label_width(&agree(&tens, &ages).unwrap()).unwrap();
        let released = agree(&*padded, &ages).unwrap();
        let shown: Vec<Option<&str>> = released.as_string_view().iter().collect();
        assert_eq!(
            shown,
            [Some("[-010,000)"), None, Some("[000,010)"), Some("[030,040)"), Some("[090,100)")]
        );
        assert_eq!(padded.descriptor().to_string(), "range:10");
        assert!(
            !tens.is_label(&Value::Text("[030,040)".into()))
                && !padded.is_label(&Value::Text("[30,40)".into()))
        );
        // Padding padded labels changes nothing; without labels there is nothing to pad.
        assert_eq!(&agree(&*padded.with_label_width(&released).unwrap(), &ages).unwrap(), &released);
        assert!(tens.with_label_width(&labels(["NaN"])).is_none());
    }

    #[test]
    fn labels_and_levels() {
        let label = |text: &str| range("10").is_label(&Value::Text(text.into()));
        assert!(label("[30,40)") && label("[-10,0)") && label("NaN"));
        let wrong =
            ["[35,45)", "[30,50)", "[+30,40)", "[30.0,40.0)", "[-0,10)", "[3.0,40)", "30", "", "[,)", "*"];
        assert!(wrong.iter().all(|text| !label(text)));
        assert_eq!(range("15").check_coarsens(&range("10")), Err("15 is not a multiple of 10".into()));
        assert!(range("20").check_coarsens(&range("10")).is_ok());
        assert!(range("20").check_coarsens(&Floor::new(Decimal::integer(10)).unwrap()).is_err());
        assert!(
            range("10").output_type(&DataType::Date32).is_err() && Range::new(Decimal::integer(0)).is_err()
        );
    }

    #[test]
    fn intervals_begin_at_the_origin() {
        let from = |step: &str, origin: &str| {
            Range::from_origin(Decimal::parse(step).unwrap(), Decimal::parse(origin).unwrap()).unwrap()
        };
        let ages: ArrayRef = Arc::new(Int16Array::from(vec![4, 5, 39, -5, -6]));
        let expected = labels(["[-5,5)", "[5,15)", "[35,45)", "[-5,5)", "[-15,-5)"]);
        assert_eq!(&agree(&from("10", "5"), &ages).unwrap(), &expected);
        // An origin is as good as any other bound.
        assert_eq!(&agree(&from("10", "-35"), &ages).unwrap(), &expected);
        assert_eq!(agree(&from("10", "0.25"), &ages).unwrap().as_string_view().value(0), "[0.25,10.25)");
        assert_eq!(from("10", "5").descriptor().to_string(), "range:10 origin:5");
        assert_eq!(from("20", "5").check_coarsens(&from("10", "5")), Ok(()));
        assert_eq!(from("20", "5").check_coarsens(&from("10", "15")), Ok(()));
        assert!(from("20", "5").check_coarsens(&range("10")).unwrap_err().contains("the origins 5 and 0"));
        assert!(from("10", "1e-18").output_type(&DataType::Float64).is_err());
        let label = |text: &str| from("10", "5").is_label(&Value::Text(text.into()));
        assert!(label("[35,45)") && !label("[30,40)") && label("[-5,5)"));
    }

    proptest! {
        #[test]
        fn floats_agree_from_every_origin(
            v in float(), step in 1i64..10_000, origin in -20_000i64..20_000, shift in 0usize..12, factor in 2i64..9,
        ) {
            let at = |n: i64| Decimal::parse(&format!("{n}e-{shift}")).unwrap();
            let level = |step: i64| Range::from_origin(at(step), at(origin)).unwrap();
            let column: ArrayRef = Arc::new(Float64Array::from(vec![v]));
            let (fine, coarse) = (level(step), level(step * factor));
            prop_assert!(coarse.check_coarsens(&fine).is_ok());
            if let (Some(fines), Some(coarses)) = (agree(&fine, &column), agree(&coarse, &column)) {
                let (a, b) = (fines.as_string_view().value(0), coarses.as_string_view().value(0));
                if v.is_finite() {
                    let ends = |label: &str| {
                        let (lower, upper) = label[1..label.len() - 1].split_once(',').unwrap();
                        (lower.parse::<f64>().unwrap(), upper.parse::<f64>().unwrap())
                    };
                    prop_assert!(ends(a).0 <= v && v < ends(a).1 && ends(b).0 <= v && v < ends(b).1);
                    prop_assert!(ends(b).0 <= ends(a).0 && ends(a).1 <= ends(b).1);
                }
            }
            agree(&level(step), &(Arc::new(Float32Array::from(vec![v as f32])) as ArrayRef));
        }

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
            prop_assert!(coarse.check_coarsens(&fine).is_ok());
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
        let (lower, upper) =
            label.strip_prefix('[').unwrap().strip_suffix(')').unwrap().split_once(',').unwrap();
        let units = |bound: &str| bound.replace('.', "").parse::<i128>().unwrap();
        let (lower, upper) = (units(lower), units(upper));
        let to_common = 10i128.pow(6 - level.grid.scale);
        (lower * to_common, upper * to_common)
    }
}
