//! `floor`: a number becomes the largest multiple of a step that is not above it.
//!
//! `f(v) = step * floor(v / step)`, toward negative infinity, with origin 0 (never the data's
//! minimum): -5 at step 10 is -10. A policy may move the origin:
//! `f(v) = o + step * floor((v - o) / step)`. It is the simplest full-domain generalization of a
//! number ([`papers::SAMARATI_2001`]).
//!
//! A step is a decimal, and stored floats are compared with its multiples: the result is the
//! largest `step * k`, rounded once to the nearest double, that is not above `v`. So 0.3 at step
//! 0.1 is 0.3, although `0.3 / 0.1` is 2.9999999999999996. A `Float32` means the shortest decimal
//! that reads back as it.
//!
//! # Contract
//! Integers, floats and decimals in, the same type out. NULL stays NULL, NaN and infinities stay
//! themselves, -0.0 counts as 0.0. Monotone. Refused and counted are results below the integer type
//! (-128 in `Int8` at step 10), floats more than 4e15 units of the step's last digit from 0, and
//! `Float32` results that `Float32` cannot hold. The result is an ordinary number: only the field's
//! metadata shows that it stands for an interval. In a column with [`clip`](super::clip), `high`
//! stands for every value from there on, and `low` for every value up to the next bound.
//!
//! ```
//! use datafusion_kanon::extend::{Decimal, Generalizer, Value};
//! use datafusion_kanon::internals::generalize::floor::Floor;
//! let tens = Floor::new(Decimal::integer(10))?;
//! assert_eq!(tens.generalize_value(&Value::Int(39))?, Value::Int(30));
//! assert_eq!(tens.generalize_value(&Value::Int(-5))?, Value::Int(-10));
//! assert_eq!(tens.generalize_value(&Value::Null)?, Value::Null);
//! let tenths = Floor::new(Decimal::parse("0.1")?)?;
//! assert_eq!(tenths.generalize_value(&Value::Float(0.3))?, Value::Float(0.3));
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type, i256};

use super::bounds::{FloatGrid, Grid, map_integers, not_numbers};
use super::clip::Clip;
use super::decimal_steps::{can_floor, floor_digits, map_decimals, next_bound, threshold};
use super::naive_bounds;
use super::value::{narrow, widen};
use super::{Descriptor, Generalizer, GeneralizerRow, ORIGIN, Value, each_level};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Settings};
use crate::plural::plural;

/// The row of [`GENERALIZERS`](super::GENERALIZERS) for this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "floor",
        summary: "rounds a number down to a multiple of a step; the result is a number",
        parameters: "step",
        example: "generalize_floor(income, 1000)",
        paper: Some(papers::SAMARATI_2001),
    },
    key: Some("floor"),
    parameters: &[
        Parameter {
            name: "step",
            kind: Kind::Levels(&Kind::Positive),
            absent: Absent::Refused,
            summary: "the distance of two results",
        },
        ORIGIN,
    ],
    levels: |settings: &Settings| {
        let origin = settings.number(ORIGIN.name)?;
        each_level(settings.list("step")?, |step| Floor::from_origin(step.number()?, origin))
    },
};

/// The generalizer that the [module](self) describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    grid: Grid,
    clip: Option<Clip>,
}

impl Floor {
    /// Creates the level of multiples of `step`.
    ///
    /// # Errors
    /// A policy error unless the step is above 0.
    pub fn new(step: Decimal) -> Result<Self> {
        Self::from_origin(step, Decimal::integer(0))
    }

    /// Creates the level of `origin` and every number a multiple of `step` away from it.
    ///
    /// # Errors
    /// A policy error unless the step is above 0.
    pub fn from_origin(step: Decimal, origin: Decimal) -> Result<Self> {
        Ok(Self { grid: Grid::new(step, origin)?, clip: None })
    }

    /// Checks that the bounds are whole, for integer columns.
    fn check_whole(&self) -> Result<()> {
        let Grid { step, origin, scale, .. } = self.grid;
        match scale {
            0 => Ok(()),
            _ if step.scale() > 0 => Err(Error::data(format!("a step of {step} needs a float column"))),
            _ => Err(Error::data(format!("an origin of {origin} needs a float column"))),
        }
    }

    fn integers(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let floored = match &self.clip {
            None => map_integers(values, |v| self.grid.below(v))?,
            Some(clip) => {
                let side = clip.of_integers();
                let [low, high] = clip.ends().map(|end| end.map(Decimal::numerator));
                map_integers(values, |v| match side(v) {
                    Ordering::Less => low,
                    Ordering::Equal => self.grid.below(v).max(low),
                    Ordering::Greater => high,
                })?
            }
        };
        match floored.null_count() - values.null_count() {
            0 => Ok(floored),
            lost => Err(Error::data(format!(
                "{} cannot be floored at a step of {}: the result is below the least {}",
                plural(lost as u64, "value", "values"),
                self.grid.step,
                values.data_type(),
            ))),
        }
    }

    /// Returns the function that floors a float; it returns `None` out of reach.
    fn of_float(&self) -> Result<impl Fn(f64) -> Option<f64>> {
        let grid = FloatGrid::new(&self.grid)?;
        let side = self.clip.map(Clip::of_floats);
        let [low, high] = self.clip.map_or([None; 2], |clip| clip.ends());
        let [low, high] = [low, high].map(|end| end.map(Decimal::to_f64));
        Ok(move |v: f64| match side.as_ref().map_or(Ordering::Equal, |side| side(v)) {
            Ordering::Less => low,
            Ordering::Greater => high,
            Ordering::Equal if v.is_finite() => {
                let bound = grid.bound(grid.units(v)?);
                Some(low.map_or(bound, |low| bound.max(low)))
            }
            Ordering::Equal => Some(v),
        })
    }

    fn floats<T>(
        &self,
        values: &PrimitiveArray<T>,
        f: impl Fn(T::Native) -> Option<T::Native>,
    ) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
    {
        let floored: PrimitiveArray<T> = values.unary_opt(f);
        match floored.null_count() - values.null_count() {
            0 => Ok(Arc::new(floored)),
            lost => Err(self.grid.too_far(lost, &T::DATA_TYPE)),
        }
    }
}

impl Generalizer for Floor {
    fn descriptor(&self) -> Descriptor {
        self.grid.describe("floor").clipped(self.clip.map(|clip| clip.ends()))
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        match input {
            DataType::Float32 | DataType::Float64 => FloatGrid::new(&self.grid).map(drop)?,
            other if other.is_integer() => self.check_whole()?,
            other if other.is_decimal() => can_floor(&self.grid, other)?,
            other => return Err(not_numbers(other)),
        }
        self.clip.map_or(Ok(()), |clip| clip.check_type(input))?;
        Ok(input.clone())
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        true
    }

    /// Floats have no preimage end: file statistics skip NaN, so `floor(v) > label` would lose NaN
    /// as `v >= end`.
    fn preimage_end(&self, input: &DataType, label: &Value) -> Option<Value> {
        match label {
            _ if self.clip.is_some() => None,
            Value::Int(v) if input.is_integer() => v.checked_add(self.grid.width).map(Value::Int),
            Value::Decimal(digits, scale) if input.is_decimal() => next_bound(&self.grid, *digits, *scale),
            _ => None,
        }
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.output_type(values.data_type())?;
        match values.data_type() {
            DataType::Float64 => self.floats(values.as_primitive::<Float64Type>(), self.of_float()?),
            DataType::Float32 => {
                let of_float = self.of_float()?;
                let floor = |v: f32| {
                    if v.is_nan() {
                        return Some(v);
                    }
                    let bound = of_float(widen(v))?;
                    let narrow = narrow(bound);
                    // A bound that reads back as another number would not be a label.
                    (widen(narrow).to_bits() == bound.to_bits()).then_some(narrow)
                };
                self.floats(values.as_primitive::<Float32Type>(), floor)
            }
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
                let floor = floor_digits(&self.grid, *scale);
                let Some(clip) = &self.clip else { return map_decimals(values, floor) };
                let side = clip.of_decimals(*scale);
                let [low, high] = clip.ends().map(|end| end.map(|end| threshold(end, *scale)));
                map_decimals(values, |v| match side(v) {
                    Ordering::Less => low,
                    Ordering::Equal => floor(v).max(low),
                    Ordering::Greater => high,
                })
            }
            _ => self.integers(values),
        }
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        if let Some(clip) = &self.clip
            && clip.side(value) != Ordering::Equal
        {
            return clip.generalize_value(value);
        }
        let floor = match value {
            Value::Null => Value::Null,
            Value::Int(_) => {
                self.check_whole()?;
                let floor = naive_bounds::lower_bound(&self.grid, value).and_then(i256::to_i128);
                Value::Int(floor.ok_or_else(|| Error::data("1 value is too small to be floored"))?)
            }
            Value::Float(v) if !v.is_finite() => value.clone(),
            Value::Float(_) => {
                let units = naive_bounds::lower_bound(&self.grid, value);
                let units = units.ok_or_else(|| self.grid.too_far(1, &DataType::Float64))?;
                Value::Float(naive_bounds::float(units, self.grid.scale))
            }
            Value::Decimal(_, scale) => {
                let floor = naive_bounds::lower_bound(&self.grid, value);
                let floor = floor.and_then(|bound| naive_bounds::decimal(&self.grid, bound, *scale));
                floor.ok_or_else(|| {
                    Error::data("1 value cannot be floored: its column cannot hold the result")
                })?
            }
            _ => return Err(Error::data("only numbers can be floored")),
        };
        // An interval that the lower end cuts begins at that end.
        match &self.clip {
            Some(clip) if clip.side(&floor) == Ordering::Less => clip.generalize_value(&floor),
            _ => Ok(floor),
        }
    }

    fn is_label(&self, value: &Value) -> bool {
        match (value, self.generalize_value(value)) {
            (Value::Float(v), Ok(Value::Float(floor))) => v.is_nan() || v.to_bits() == floor.to_bits(),
            (value, Ok(floor)) => *value == floor,
            (_, Err(_)) => false,
        }
    }

    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String> {
        match (finer as &dyn Any).downcast_ref::<Floor>() {
            Some(finer) if self.clip != finer.clip => Err("they are clipped at other bounds".into()),
            Some(finer) => self.grid.check_coarsens(&finer.grid),
            None => Err("`floor` can only follow `floor`".into()),
        }
    }

    fn clipped(&self, clip: &Clip) -> Result<Arc<dyn Generalizer>> {
        Ok(Arc::new(Self { clip: Some(*clip), ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::*;
    use arrow::compute::cast;
    use arrow::datatypes::*;
    use proptest::prelude::*;

    use super::*;
    use crate::generalize::apply;
    use crate::generalize::laws_tests::{agree, float};

    fn floor(step: &str) -> Floor {
        Floor::new(Decimal::parse(step).unwrap()).unwrap()
    }

    fn doubles(values: impl IntoIterator<Item = f64>) -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(values))
    }

    #[test]
    fn toward_negative_infinity() {
        let ages: ArrayRef = Arc::new(Int32Array::from(vec![Some(39), Some(-5), None, Some(0), Some(-10)]));
        let tens: ArrayRef = Arc::new(Int32Array::from(vec![Some(30), Some(-10), None, Some(0), Some(-10)]));
        assert_eq!(&agree(&floor("10"), &ages).unwrap(), &tens);
        let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
        assert_eq!(
            agree(&floor("7"), &large).unwrap().as_primitive::<UInt64Type>().value(0),
            u64::MAX - u64::MAX % 7
        );
    }

    #[test]
    fn multiples_of_a_decimal_step_stay() {
        let tenths = doubles((0..20).map(|k| f64::from(k - 10) / 10.0));
        assert_eq!(&agree(&floor("0.1"), &tenths).unwrap(), &tenths);
        // 0.29 * 100 is a little less than 29, and the double below 0.05 becomes 5.
        let close = doubles([0.29, 0.05, 0.05f64.next_down()]);
        assert_eq!(&agree(&floor("0.01"), &close).unwrap(), &doubles([0.29, 0.05, 0.04]));
        let gap: ArrayRef = Arc::new(Float64Array::from(vec![Some(17.5), None]));
        let tens: ArrayRef = Arc::new(Float64Array::from(vec![Some(10.0), None]));
        assert_eq!(&agree(&floor("10"), &gap).unwrap(), &tens);
        let odd = [-0.0, 0.05, -0.05, 1e-300, -1e-300, f64::INFINITY, f64::NEG_INFINITY];
        let bounds = [0.0, 0.0, -0.1, 0.0, -0.1, f64::INFINITY, f64::NEG_INFINITY];
        assert_eq!(&agree(&floor("0.1"), &doubles(odd)).unwrap(), &doubles(bounds));
        assert!(
            agree(&floor("0.1"), &doubles([f64::NAN]))
                .unwrap()
                .as_primitive::<Float64Type>()
                .value(0)
                .is_nan()
        );
        let singles: ArrayRef = Arc::new(Float32Array::from(vec![0.3, 0.7, -0.1, 1_234_567.8]));
        assert_eq!(&agree(&floor("0.1"), &singles).unwrap(), &singles);
    }

    #[test]
    fn what_does_not_fit_is_counted_and_not_shown() {
        let error = |step: &str, values: ArrayRef| apply(&floor(step), &values).unwrap_err().to_string();
        let least: ArrayRef = Arc::new(Int8Array::from(vec![Some(-128), None, Some(-127), Some(5)]));
        assert!(agree(&floor("10"), &least).is_none());
        assert!(
            error("10", least).starts_with("2 values cannot be floored at a step of 10: the result is below")
        );
        let far = doubles([5e15, 1e300, 1.0]);
        assert!(agree(&floor("1"), &far).is_none());
        let why = error("1", far);
        assert!(
            why.starts_with("2 values are too far from 0 to be distinguished at a step of 1 from 0"),
            "{why}"
        );
        assert!(why.ends_with(": use a larger step, or a step and an origin with fewer decimals"), "{why}");
        // 16777217 is not a `Float32`.
        let coarse: ArrayRef = Arc::new(Float32Array::from(vec![16_777_218.0, 16_777_220.0]));
        let why = error("16777217", coarse);
        assert!(why.starts_with("2 values are too far from 0"), "{why}");
        assert!(why.ends_with(": use a larger step, or double precision"), "{why}");
    }

    #[test]
    fn wrong_steps_are_refused() {
        assert!(Floor::new(Decimal::integer(0)).is_err() && Floor::new(Decimal::integer(-1)).is_err());
        let error = floor("0.5").output_type(&DataType::Int8).unwrap_err();
        assert_eq!(error.to_string(), "a step of 0.5 needs a float column");
        let error = floor("1").output_type(&DataType::Utf8View).unwrap_err().to_string();
        assert!(error.contains("expected integers, floats or decimals"), "{error}");
        assert!(floor("5e15").output_type(&DataType::Float64).is_err());
        assert_eq!(floor("20").check_coarsens(&floor("15")), Err("20 is not a multiple of 15".into()));
        assert_eq!(floor("1").check_coarsens(&floor("0.25")), Ok(()));
        assert!(floor("10").check_coarsens(&floor("10")).is_err());
    }

    #[test]
    fn an_origin_moves_the_bounds() {
        let from = |step: &str, origin: &str| {
            Floor::from_origin(Decimal::parse(step).unwrap(), Decimal::parse(origin).unwrap()).unwrap()
        };
        let ages: ArrayRef = Arc::new(Int32Array::from(vec![Some(4), Some(5), None, Some(39), Some(-6)]));
        let bounds: ArrayRef = Arc::new(Int32Array::from(vec![Some(-5), Some(5), None, Some(35), Some(-15)]));
        assert_eq!(&agree(&from("10", "5"), &ages).unwrap(), &bounds);
        assert_eq!(
            &agree(&from("0.5", "0.1"), &doubles([0.1, 0.59, 0.6, -0.1])).unwrap(),
            &doubles([0.1, 0.1, 0.6, -0.4])
        );
        let error = from("10", "0.5").output_type(&DataType::Int8).unwrap_err();
        assert_eq!(error.to_string(), "an origin of 0.5 needs a float column");
        assert_eq!(from("10", "5").descriptor().to_string(), "floor:10 origin:5");
    }

    #[test]
    fn only_multiples_are_labels() {
        assert!(floor("10").is_label(&Value::Int(-10)) && !floor("10").is_label(&Value::Int(-5)));
        assert!(
            floor("0.1").is_label(&Value::Float(0.3)) && !floor("0.1").is_label(&Value::Float(0.1 + 0.2))
        );
        assert!(
            !floor("0.1").is_label(&Value::Float(-0.0)) && !floor("1").is_label(&Value::Text("1".into()))
        );
    }

    proptest! {
        #[test]
        fn integers_agree_and_nest(
            values in prop::collection::vec(prop::option::of(any::<i64>()), 0..20),
            step in 1i64..1_000_000_000_000_000_000,
            bits in 0u32..64,
            factor in 2i64..20,
        ) {
            let step = (step >> bits.min(58)) + 1;
            let values: ArrayRef = Arc::new(Int64Array::from(values));
            let fine = Floor::new(Decimal::integer(step)).unwrap();
            let coarse = Floor::new(Decimal::integer(step.min(1 << 50) * factor)).unwrap();
            for width in [DataType::Int8, DataType::Int16, DataType::UInt8, DataType::UInt32, DataType::Int64, DataType::UInt64] {
                let values = cast(&values, &width).unwrap();
                if let (Some(once), Some(direct)) = (agree(&fine, &values), agree(&coarse, &values))
                    && coarse.check_coarsens(&fine).is_ok()
                {
                    prop_assert_eq!(&agree(&coarse, &once).unwrap(), &direct);
                }
            }
        }

        #[test]
        fn floats_agree_and_nest(v in float(), step in 1i64..10_000, shift in 0usize..19, factor in 2i64..50) {
            let at = |n: i64| floor(&format!("{n}e-{shift}"));
            let (fine, coarse) = (at(step), at(step * factor));
            let values = doubles([v]);
            if let (Some(once), Some(direct)) = (agree(&fine, &values), agree(&coarse, &values)) {
                prop_assert_eq!(&agree(&coarse, &once).unwrap(), &direct);
            }
            // Single precision refuses results that it cannot hold; the naive way ignores the
            // width.
            let single: ArrayRef = Arc::new(Float32Array::from(vec![narrow(v)]));
            if let Ok(once) = apply(&fine, &single) {
                let naive = fine.generalize_value(&Value::read(&single, 0).unwrap()).unwrap();
                prop_assert_eq!(&Value::build(&[naive], &DataType::Float32).unwrap(), &once);
                if let (Ok(twice), Ok(direct)) = (apply(&coarse, &once), apply(&coarse, &single)) {
                    prop_assert_eq!(&twice, &direct);
                }
            }
        }
    }
}
