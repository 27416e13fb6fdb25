//! `clip`: numbers below or above two ends become the ends (bottom and top coding).
//!
//! `f(v) = low for v < low, high for v >= high, v between`. A column's policy has `clip = [0, 90]`
//! next to its hierarchy; the ends are the policy's, never the data's minimum and maximum. Every
//! level, also level 0, then works on `<0`, `>=90` and the values between. Where a column keeps
//! numbers (`floor`, no hierarchy), a number cannot express "below": `low` stands for itself and
//! everything below it, and is also the first label between.
//!
//! # Contract
//! Integers, floats and decimals in. The SQL function and columns that keep numbers return the same
//! type; where labels are text, `Utf8View`. Either end may be left out; ends must be values of the
//! column's type. NULL stays NULL, NaN stays NaN, -0.0 counts as 0.0; an infinity becomes the end
//! on its side, or stays if there is none. Monotone as numbers; as text `<0` and `>=90` sort after
//! the digits of level 0 and before all intervals. Clipping hides how far out an outlier is, not
//! that there is one: few individuals beyond an end are still few.
//!
//! ```
//! use datafusion_kanon::extend::{Decimal, Generalizer, Value};
//! use datafusion_kanon::internals::generalize::clip::Clip;
//! let ages = Clip::new(Some(Decimal::integer(0)), Some(Decimal::integer(90)))?;
//! assert_eq!(ages.generalize_value(&Value::Int(104))?, Value::Int(90));
//! assert_eq!(ages.generalize_value(&Value::Int(-3))?, Value::Int(0));
//! assert_eq!(ages.generalize_value(&Value::Float(39.5))?, Value::Float(39.5));
//! assert_eq!(ages.generalize_value(&Value::Null)?, Value::Null);
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float32Array, Float64Array};
use arrow::datatypes::{DataType, Float32Type, Float64Type, i256};

use super::bounds::{decimal_text, map_integers, not_numbers};
use super::decimal_steps::{check_number, map_decimals, threshold, value as decimal_value};
use super::naive_bounds::reaches;
use super::value::{narrow, widen};
use super::{Descriptor, Generalizer, GeneralizerRow, Value};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::parameter::{Absent, Kind, Parameter, Settings};

/// The row of [`GENERALIZERS`](super::GENERALIZERS) for this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "clip",
        summary: "limits numbers to two bounds (top and bottom coding); in a policy, a key of the column",
        parameters: "low, high",
        example: "generalize_clip(age, 0, 90)",
        paper: None,
    },
    key: None,
    parameters: &[end("low", "what numbers below it become"), end("high", "what numbers from it on become")],
    levels: |all: &Settings| {
        Ok(vec![Arc::new(Clip::new(all.some_number("low")?, all.some_number("high")?)?)])
    },
};

const fn end(name: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Number, absent: Absent::Unset, summary }
}

/// The generalizer that the [module](self) describes; it keeps numbers as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clip {
    low: Option<Decimal>,
    high: Option<Decimal>,
}

impl Clip {
    /// Clips below `low` and from `high` on.
    ///
    /// # Errors
    /// A policy error without any end, or unless `low` is below `high`.
    pub fn new(low: Option<Decimal>, high: Option<Decimal>) -> Result<Self> {
        match (low, high) {
            (None, None) => Err(Error::policy("expected at least one bound to clip at")),
            (Some(low), Some(high)) if low >= high => Err(Error::policy(format!(
                "the lower bound must be below the upper one, but {low} is not below {high}"
            ))),
            _ => Ok(Self { low, high }),
        }
    }

    /// Returns the lower and the upper end.
    pub(crate) fn ends(&self) -> [Option<Decimal>; 2] {
        [self.low, self.high]
    }

    /// Returns a function that tells on which side of the ends a float is; `Equal` is between them.
    pub(crate) fn of_floats(self) -> impl Fn(f64) -> Ordering {
        let (low, high) = (self.low.map(Decimal::to_f64), self.high.map(Decimal::to_f64));
        move |v| match () {
            () if low.is_some_and(|low| v < low) => Ordering::Less,
            () if high.is_some_and(|high| v >= high) => Ordering::Greater,
            () => Ordering::Equal,
        }
    }

    /// Returns a function that tells on which side of the ends an integer is.
    pub(crate) fn of_integers(self) -> impl Fn(i128) -> Ordering {
        let (low, high) = (self.low.map(Decimal::ceil), self.high.map(Decimal::ceil));
        move |v| match () {
            () if low.is_some_and(|low| v < low) => Ordering::Less,
            () if high.is_some_and(|high| v >= high) => Ordering::Greater,
            () => Ordering::Equal,
        }
    }

    /// Returns the same for the digits of a decimal column with this scale.
    pub(crate) fn of_decimals(self, scale: i8) -> impl Fn(i256) -> Ordering {
        let [low, high] = [self.low, self.high].map(|end| end.map(|end| threshold(end, scale)));
        move |v| match () {
            () if low.is_some_and(|low| v < low) => Ordering::Less,
            () if high.is_some_and(|high| v >= high) => Ordering::Greater,
            () => Ordering::Equal,
        }
    }

    /// Returns, computed naively, the side of a value; a value that is not a number is between.
    pub(crate) fn side(&self, value: &Value) -> Ordering {
        let below = |end: Decimal| match value {
            Value::Int(v) => v.saturating_mul(end.denominator()) < end.numerator(),
            Value::Float(v) => *v < end.to_f64(),
            Value::Decimal(digits, scale) => !reaches(*digits, *scale, end),
            _ => false,
        };
        match (self.low, self.high) {
            (Some(low), _) if below(low) => Ordering::Less,
            (_, Some(high)) if is_number(value) && !below(high) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }

    /// Returns the end of a side as an integer.
    fn whole_end(&self, side: Ordering) -> Option<i128> {
        let end = if side == Ordering::Less { self.low } else { self.high };
        end.filter(|end| end.scale() == 0).map(Decimal::numerator)
    }

    /// Returns the value that stands for all values on a side; `value` itself between the ends.
    pub(crate) fn coded(&self, side: Ordering, value: &Value) -> Value {
        let end = match side {
            Ordering::Less => self.low,
            Ordering::Equal => None,
            Ordering::Greater => self.high,
        };
        match (end, value) {
            (Some(end), Value::Int(_)) => Value::Int(end.numerator()),
            (Some(end), Value::Decimal(_, scale)) => decimal_value(end, *scale).unwrap_or(Value::Null),
            (Some(end), _) => Value::Float(end.to_f64()),
            (None, Value::Float(0.0)) => Value::Float(0.0),
            (None, _) => value.clone(),
        }
    }

    /// Returns `<0` and `>=90`, with at least `scale` decimals and `digits` digits before the
    /// point.
    pub(crate) fn open_ends(&self, scale: u32, digits: usize) -> [String; 2] {
        let text = |sign: &str, end: Option<Decimal>| {
            end.map_or(String::new(), |end| {
                let scale = scale.max(end.scale());
                format!("{sign}{}", decimal_text(end.units(scale), scale, digits))
            })
        };
        [text("<", self.low), text(">=", self.high)]
    }

    /// Returns the number of digits after the point of the ends.
    pub(crate) fn scale(&self) -> u32 {
        self.low.map_or(0, Decimal::scale).max(self.high.map_or(0, Decimal::scale))
    }

    /// Checks that the ends are numbers of a column's type.
    pub(crate) fn check_type(&self, input: &DataType) -> Result<()> {
        for end in [self.low, self.high].into_iter().flatten() {
            let fits = match input {
                DataType::Float64 => true,
                DataType::Float32 => widen(narrow(end.to_f64())).to_bits() == end.to_f64().to_bits(),
                other if other.is_integer() => {
                    end.scale() == 0 && Value::build(&[Value::Int(end.numerator())], other).is_ok()
                }
                other if other.is_decimal() => {
                    check_number("a bound", end, other)?;
                    true
                }
                other => return Err(not_numbers(other)),
            };
            if !fits {
                return Err(Error::data(format!("the bound {end} does not fit the column type {input}")));
            }
        }
        Ok(())
    }
}

fn is_number(value: &Value) -> bool {
    match value {
        Value::Int(_) | Value::Decimal(..) => true,
        Value::Float(v) => !v.is_nan(),
        _ => false,
    }
}

impl Generalizer for Clip {
    fn descriptor(&self) -> Descriptor {
        Descriptor::new("clip").clipped(Some(self.ends()))
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        self.check_type(input)?;
        Ok(input.clone())
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        true
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.check_type(values.data_type())?;
        let side = self.of_floats();
        let (low, high) = (self.low.map_or(0.0, Decimal::to_f64), self.high.map_or(0.0, Decimal::to_f64));
        Ok(match values.data_type() {
            DataType::Float64 => {
                let clipped: Float64Array = values.as_primitive::<Float64Type>().unary(|v| match side(v) {
                    Ordering::Less => low,
                    Ordering::Equal if v == 0.0 => 0.0,
                    Ordering::Equal => v,
                    Ordering::Greater => high,
                });
                Arc::new(clipped)
            }
            DataType::Float32 => {
                let (low, high) = (narrow(low), narrow(high));
                let clipped: Float32Array =
                    values.as_primitive::<Float32Type>().unary(|v| match side(widen(v)) {
                        Ordering::Less => low,
                        Ordering::Equal if v == 0.0 => 0.0,
                        Ordering::Equal => v,
                        Ordering::Greater => high,
                    });
                Arc::new(clipped)
            }
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
                let side = self.of_decimals(*scale);
                let [low, high] = [self.low, self.high].map(|end| end.map(|end| threshold(end, *scale)));
                map_decimals(values, |v| match side(v) {
                    Ordering::Less => low,
                    Ordering::Equal => Some(v),
                    Ordering::Greater => high,
                })?
            }
            _ => {
                let side = self.of_integers();
                let (low, high) = (self.whole_end(Ordering::Less), self.whole_end(Ordering::Greater));
                map_integers(values, |v| match side(v) {
                    Ordering::Less => low,
                    Ordering::Equal => Some(v),
                    Ordering::Greater => high,
                })?
            }
        })
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        match value {
            Value::Int(_) if self.scale() > 0 => Err(Error::data("integers need integer bounds")),
            Value::Null | Value::Int(_) | Value::Float(_) | Value::Decimal(..) => {
                Ok(self.coded(self.side(value), value))
            }
            _ => Err(Error::data("only numbers can be clipped")),
        }
    }

    fn is_label(&self, value: &Value) -> bool {
        self.generalize_value(value).is_ok_and(|clipped| clipped == *value)
            || matches!(value, Value::Float(v) if v.is_nan())
    }

    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String> {
        let Some(finer) = (finer as &dyn Any).downcast_ref::<Clip>() else {
            return Err("`clip` can only follow `clip`".into());
        };
        let narrower = |own: Option<Decimal>, finer: Option<Decimal>, side: Ordering| match (own, finer) {
            (Some(own), Some(finer)) => own == finer || own.cmp(&finer) == side,
            (_, finer) => finer.is_none(),
        };
        if self == finer || !narrower(self.low, finer.low, Ordering::Greater) {
            return Err("its lower bound does not clip more".into());
        }
        if narrower(self.high, finer.high, Ordering::Less) {
            Ok(())
        } else {
            Err("its upper bound does not clip more".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::*;
    use arrow::compute::cast;
    use proptest::prelude::*;

    use super::*;
    use crate::generalize::laws_tests::{agree, float};
    use crate::generalize::{GENERALIZERS, Hierarchy};
    use crate::parameter::{Setting, TextTable};

    fn clip(low: &str, high: &str) -> Clip {
        let end = |end: &str| (!end.is_empty()).then(|| Decimal::parse(end).unwrap());
        Clip::new(end(low), end(high)).unwrap()
    }

    fn hierarchy(input: &DataType, key: &str, first: &Setting, origin: i64) -> Result<Hierarchy> {
        let Some(row) = GENERALIZERS.iter().find(|row| row.key == Some(key)) else {
            return Hierarchy::new(input, vec![]);
        };
        let origin = |option: &Parameter| (option.name.to_owned(), Decimal::integer(origin).into());
        let mut given: Vec<_> = row.options().iter().map(origin).collect();
        given.push((row.parameters[0].name.to_owned(), first.clone()));
        Hierarchy::new(input, row.with(&given)?)
    }

    fn widths(widths: &[&str]) -> Setting {
        widths.iter().map(|width| Decimal::parse(width).unwrap()).collect::<Vec<_>>().into()
    }

    fn shown(level: &dyn Generalizer, values: &ArrayRef) -> Vec<String> {
        let labels = agree(level, values).unwrap();
        (0..labels.len())
            .map(|row| Value::read(&labels, row).unwrap().text_form().unwrap_or_default())
            .collect()
    }

    #[test]
    fn top_and_bottom_coding_of_numbers() {
        let ages: ArrayRef =
            Arc::new(Int16Array::from(vec![Some(-3), Some(0), Some(89), Some(90), None, Some(104)]));
        assert_eq!(shown(&clip("0", "90"), &ages), ["0", "0", "89", "90", "", "90"]);
        assert_eq!(shown(&clip("", "90"), &ages), ["-3", "0", "89", "90", "", "90"]);
        let floats: ArrayRef =
            Arc::new(Float32Array::from(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.35]));
        assert_eq!(shown(&clip("0.3", ""), &floats), ["NaN", "inf", "0.3", "0.35"]);
        assert_eq!(shown(&clip("", "0.3"), &floats), ["NaN", "0.3", "-inf", "0.3"]);
        let refused = |clip: Clip, input: DataType| clip.output_type(&input).unwrap_err().to_string();
        assert_eq!(
            refused(clip("0", "300"), DataType::UInt8),
            "the bound 300 does not fit the column type UInt8"
        );
        assert_eq!(
            refused(clip("-1", "9"), DataType::UInt8),
            "the bound -1 does not fit the column type UInt8"
        );
        assert_eq!(
            refused(clip("0.5", ""), DataType::Int64),
            "the bound 0.5 does not fit the column type Int64"
        );
        assert!(refused(clip("0", ""), DataType::Utf8View).contains("expected integers, floats or decimals"));
        assert!(
            refused(clip("0.005", ""), DataType::Decimal128(9, 2))
                .contains("needs a column with more decimals")
        );
        let prices = Decimal128Array::from(vec![1250, -1, 9_000]).with_precision_and_scale(9, 2).unwrap();
        assert_eq!(shown(&clip("0", "90"), &(Arc::new(prices) as ArrayRef)), ["12.50", "0.00", "90.00"]);
        assert!(
            Clip::new(None, None).is_err()
                && Clip::new(Some(Decimal::integer(1)), Some(Decimal::integer(1))).is_err()
        );
    }

    #[test]
    fn intervals_are_cut_and_tails_stay_apart_at_every_level() {
        let ages: ArrayRef = Arc::new(Int64Array::from(vec![-1, 0, 85, 89, 90, 130]));
        let ranges = hierarchy(&DataType::Int64, "range", &widths(&["10", "20", "100"]), 0).unwrap();
        let clipped = ranges.clipped(&clip("0", "90")).unwrap();
        let levels: Vec<_> = clipped.levels().iter().map(|level| shown(&**level, &ages)).collect();
        assert_eq!(levels[0], ["<0", "0", "85", "89", ">=90", ">=90"]);
        assert_eq!(levels[1], ["<0", "[0,10)", "[80,90)", "[80,90)", ">=90", ">=90"]);
        assert_eq!(levels[2], ["<0", "[0,20)", "[80,90)", "[80,90)", ">=90", ">=90"]);
        assert_eq!(levels[3], ["<0", "[0,90)", "[0,90)", "[0,90)", ">=90", ">=90"]);
        assert_eq!(levels[4], ["*"; 6]);
        let labels: Vec<String> =
            clipped.levels().iter().map(|level| level.descriptor().to_string()).collect();
        let expected =
            ["clip:0,90", "range:10 clip:0,90", "range:20 clip:0,90", "range:100 clip:0,90", "suppress"];
        assert_eq!(labels, expected);

        let floors = hierarchy(&DataType::Int64, "floor", &widths(&["10", "20"]), 0).unwrap();
        let clipped = floors.clipped(&clip("18", "90")).unwrap();
        let ages: ArrayRef = Arc::new(Int64Array::from(vec![-1, 17, 18, 19, 21, 85, 95]));
        let levels: Vec<_> = clipped.levels().iter().map(|level| shown(&**level, &ages)).collect();
        assert_eq!(levels[0], ["18", "18", "18", "19", "21", "85", "90"]);
        assert_eq!(levels[1], ["18", "18", "18", "18", "20", "80", "90"]);
        assert_eq!(levels[2], ["18", "18", "18", "18", "20", "80", "90"]);
        assert_eq!(levels[3], [""; 7]);
        assert_eq!(clipped.output_type(), &DataType::Int64);

        let decimals = hierarchy(&DataType::Float64, "range", &widths(&["2.5"]), 1).unwrap();
        let clipped = decimals.clipped(&clip("0.25", "9")).unwrap();
        let values: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 0.25, 1.0, 8.75, 9.0, f64::INFINITY]));
        let expected = ["<0.25", "[0.25,1.00)", "[1.00,3.50)", "[8.50,9.00)", ">=9.00", ">=9.00"];
        assert_eq!(shown(&*clipped.levels()[1], &values), expected);
        let padded =
            clipped.levels()[1].with_label_width(&agree(&*clipped.levels()[1], &values).unwrap()).unwrap();
        assert_eq!(shown(&*padded, &values), expected);
    }

    #[test]
    fn padded_ends() {
        let ages: ArrayRef = Arc::new(Int64Array::from(vec![-1, 5, 105, 130]));
        let ranges = hierarchy(&DataType::Int64, "range", &widths(&["10"]), 0).unwrap();
        let level = &ranges.clipped(&clip("0", "120")).unwrap().levels()[1].clone();
        let padded = level.with_label_width(&agree(&**level, &ages).unwrap()).unwrap();
        assert_eq!(shown(&*padded, &ages), ["<000", "[000,010)", "[100,110)", ">=120"]);
        let young: ArrayRef = Arc::new(Int64Array::from(vec![5]));
        let padded = level.with_label_width(&agree(&**level, &young).unwrap()).unwrap();
        assert_eq!(shown(&*padded, &young), ["[00,10)"]);
    }

    #[test]
    fn only_numbers_are_clipped() {
        let ends = clip("0", "90");
        let refused = |input: DataType, key: &str, first: &Setting| {
            let hierarchy = hierarchy(&input, key, first, 5).unwrap();
            hierarchy.clipped(&ends).unwrap_err().to_string()
        };
        let rows = TextTable::from(vec![vec!["1".into(), "a".into()], vec!["2".into(), "a".into()]]).into();
        let words = vec!["year"].into();
        let why = "only numbers can be clipped: alone, or with `range`, `bands` or `floor`";
        assert_eq!(refused(DataType::Date32, "date", &words), why);
        assert_eq!(refused(DataType::Int64, "file", &rows), why);
        for input in [DataType::Utf8, DataType::Date32, DataType::Boolean] {
            assert!(refused(input, "", &words).contains("expected integers, floats or decimals"));
        }
    }

    proptest! {
        #[test]
        fn clipped_hierarchies_agree_and_nest(
            values in prop::collection::vec((any::<i64>(), 0u32..64, float()), 1..12),
            (low, width, shift) in (-300i64..300, 1i64..600, 0usize..3),
            (step, factor, origin) in (1i64..60, 2i64..5, -70i64..70),
            open in 0..3,
        ) {
            let at = |n: i64| Decimal::parse(&format!("{n}e-{shift}")).unwrap();
            let clip = Clip::new((open != 1).then(|| at(low)), (open != 2).then(|| at(low + width))).unwrap();
            let steps = Setting::from(vec![at(step), at(step * factor)]);
            let cuts = Setting::from(vec![vec![at(-100), at(0), at(step)], vec![at(0)]]);
            let whole = values.iter().map(|(v, bits, _)| v >> bits);
            let decimals = |scale: i8| Decimal128Array::from_iter_values(values.iter().map(|(v, bits, _)| i128::from(v >> bits)))
                .with_precision_and_scale(38, scale).unwrap();
            let columns: [ArrayRef; 7] = [
                Arc::new(decimals(3)),
                Arc::new(decimals(0)),
                cast(&decimals(2), &DataType::Decimal256(60, 2)).unwrap(),
                Arc::new(whole.clone().collect::<Int64Array>()),
                Arc::new(whole.map(|v| v as u16).collect::<UInt16Array>()),
                Arc::new(Float64Array::from_iter_values(values.iter().map(|(v, bits, x)| if bits % 2 == 0 { *x } else { (v >> bits) as f64 / 8.0 }))),
                Arc::new(Float32Array::from_iter_values(values.iter().map(|(.., x)| *x as f32))),
            ];
            for column in &columns {
                for (key, argument) in [("range", &steps), ("floor", &steps), ("bands", &cuts), ("", &cuts)] {
                    let Ok(hierarchy) = hierarchy(column.data_type(), key, argument, origin) else { continue };
                    let hierarchy = match hierarchy.clipped(&clip) {
                        Ok(hierarchy) => hierarchy,
                        // The ends may be of another type; levels that nest unclipped also nest
                        // clipped.
                        Err(error) => {
                            prop_assert!(!error.to_string().contains("not a function"), "{error}");
                            continue;
                        }
                    };
                    let mut above: Option<ArrayRef> = None;
                    for level in hierarchy.levels() {
                        let Ok(labels) = super::super::apply(&**level, column) else { break };
                        for row in 0..column.len() {
                            let naive = level.generalize_value(&Value::read(column, row).unwrap()).unwrap();
                            let nan = matches!(naive, Value::Float(x) if x.is_nan());
                            prop_assert!(nan || naive == Value::read(&labels, row).unwrap(), "{}", level.descriptor());
                            prop_assert!(level.is_label(&naive), "{}", level.descriptor());
                        }
                        if let Some(finer) = &above {
                            for (a, b) in (0..column.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                                let same = |labels: &ArrayRef| {
                                    let cell = |row: usize| Value::read(labels, row).unwrap().text_form();
                                    cell(a) == cell(b)
                                };
                                prop_assert!(!same(finer) || same(&labels), "{}", level.descriptor());
                            }
                        }
                        above = Some(labels);
                    }
                }
            }
        }
    }
}
