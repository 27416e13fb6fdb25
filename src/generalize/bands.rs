//! `bands`: a number becomes the half-open interval between two cut points that holds it, as text.
//!
//! `f(v) = [a,b)` for the neighbouring cut points a <= v < b, `<first` below all of them and
//! `>=last` from the last one on. The policy chooses the cut points, such as the classes of the
//! body mass index: underweight is `<18.5`, normal `[18.5,25)`. Unequal intervals are the
//! discretization that [`papers::SAMARATI_2001`] allows for numbers.
//!
//! # Contract
//! Integers, floats and decimals in, `Utf8View` out. NULL stays NULL; `NaN`, `inf` and `-inf` are
//! labels of their own, as in [`range`](super::range). A float is on or above a cut point when it
//! is not below the cut point's nearest double. A coarser level has some of the finer level's cut
//! points. Labels [padded](Bands::with_label_width) to the width of a release (`[018.5,025)`) sort
//! as text in the order of the values from 0 up, except for the last: `<` sorts first, then `>=`,
//! then the intervals. Negative cut points do not sort as text, so the level does not claim to keep
//! order. An outermost band with few individuals still shows that they exist.
//!
//! ```
//! use datafusion_kanon::extend::{Decimal, Generalizer, Value};
//! use datafusion_kanon::internals::generalize::bands::Bands;
//! let bmi = Bands::new(["18.5", "25", "30", "40"].map(Decimal::parse).into_iter().collect::<Result<_, _>>()?)?;
//! assert_eq!(bmi.generalize_value(&Value::Float(18.4))?, Value::Text("<18.5".into()));
//! assert_eq!(bmi.generalize_value(&Value::Float(18.5))?, Value::Text("[18.5,25)".into()));
//! assert_eq!(bmi.generalize_value(&Value::Int(40))?, Value::Text(">=40".into()));
//! assert_eq!(bmi.generalize_value(&Value::Null)?, Value::Null);
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::datatypes::{DataType, i256};

use super::bounds::{
    OUTSIDE, decimal_text, is_number, labels_of_rows, map_numbers, not_numbers, outside, whole_digits,
};
use super::clip::Clip;
use super::decimal_steps::{scale_of, threshold};
use super::naive_bounds::{bound_text, open_end, reaches};
use super::{Descriptor, Generalizer, GeneralizerRow, Value, each_level};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Setting, Settings};

/// The row of [`GENERALIZERS`](super::GENERALIZERS) for this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "bands",
        summary: "maps a number to its interval between two cut points, such as [18.5,25)",
        parameters: "cut points...",
        example: "generalize_bands(bmi, 18.5, 25, 30)",
        paper: Some(papers::SAMARATI_2001),
    },
    key: Some("bands"),
    parameters: &[Parameter {
        name: "cut points",
        kind: Kind::Levels(&Kind::Numbers),
        absent: Absent::Refused,
        summary: "where intervals meet, ascending",
    }],
    levels: |settings: &Settings| {
        each_level(settings.list("cut points")?, |cuts| {
            Bands::new(cuts.list()?.iter().map(Setting::number).collect::<Result<_>>()?)
        })
    },
};

/// The generalizer that the [module](self) describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bands {
    /// The cut points as the policy gives them.
    stated: Vec<Decimal>,
    clip: Option<Clip>,
    /// The bounds where bands meet, ascending: the stated cut points between the ends of the clip,
    /// and the ends.
    cuts: Vec<Decimal>,
    /// Labels show at least this many digits before the point.
    digits: usize,
}

impl Bands {
    /// Creates bands that meet at `cuts`.
    ///
    /// # Errors
    /// A policy error unless there is a cut point and each is above the previous one.
    pub fn new(cuts: Vec<Decimal>) -> Result<Self> {
        if cuts.is_empty() {
            return Err(Error::policy("expected at least one cut point"));
        }
        if let Some([one, next]) = cuts.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::policy(format!("cut points must ascend, but {next} follows {one}")));
        }
        Ok(Self { stated: cuts.clone(), clip: None, cuts, digits: 1 })
    }

    /// Returns the label of each band, the lowest first, then those of the floats in no band.
    fn labels(&self) -> Vec<String> {
        let bound = |cut: &Decimal| decimal_text(cut.numerator(), cut.scale(), self.digits);
        let between = self.cuts.windows(2).map(|pair| format!("[{},{})", bound(&pair[0]), bound(&pair[1])));
        let first = self.cuts.first().map(|cut| format!("<{}", bound(cut)));
        let last = self.cuts.last().map(|cut| format!(">={}", bound(cut)));
        let outside = OUTSIDE.iter().map(|label| (*label).to_owned());
        first.into_iter().chain(between).chain(last).chain(outside).collect()
    }

    /// Returns the place of each value's band in [`labels`](Self::labels).
    fn places(&self, values: &ArrayRef) -> Result<UInt32Array> {
        let whole: Vec<i128> = self.cuts.iter().map(|cut| cut.ceil()).collect();
        let floats: Vec<f64> = self.cuts.iter().map(|cut| cut.to_f64()).collect();
        let of_float = |v: f64| match outside(v).filter(|_| self.is_outside(v)) {
            Some(label) => floats.len() + 1 + label,
            None => floats.partition_point(|cut| *cut <= v),
        };
        let scale = scale_of(values.data_type());
        let decimals: Vec<i256> = self.cuts.iter().map(|cut| threshold(*cut, scale)).collect();
        let of_integer = |v: i128| whole.partition_point(|cut| *cut <= v);
        let places =
            map_numbers(values, of_integer, of_float, |v| decimals.partition_point(|cut| *cut <= v))?;
        let places = places.into_iter().map(|place| place.map(u32::try_from).transpose());
        places.collect::<std::result::Result<_, _>>().map_err(Error::internal)
    }

    /// Returns whether a float that no interval holds has a label of its own; an infinity beyond an
    /// end of the clip has none.
    fn is_outside(&self, v: f64) -> bool {
        let [low, high] = self.clip.map_or([None; 2], |clip| clip.ends());
        let end = if v > 0.0 { high } else { low };
        v.is_nan() || (v.is_infinite() && end.is_none())
    }
}

impl Generalizer for Bands {
    fn descriptor(&self) -> Descriptor {
        self.stated
            .iter()
            .fold(Descriptor::new("bands"), Descriptor::with)
            .clipped(self.clip.map(|clip| clip.ends()))
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        if is_number(input) { Ok(DataType::Utf8View) } else { Err(not_numbers(input)) }
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        false
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        labels_of_rows(&self.labels(), &self.places(values)?)
    }

    /// Returns the numbers of the bands.
    fn codes(&self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(Arc::new(self.places(values)?))
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        let reached = |cut: &&Decimal| match value {
            Value::Int(v) => v.saturating_mul(cut.denominator()) >= cut.numerator(),
            Value::Float(v) => *v >= cut.to_f64(),
            Value::Decimal(digits, scale) => reaches(*digits, *scale, **cut),
            _ => false,
        };
        match value {
            Value::Null => return Ok(Value::Null),
            Value::Float(v) if self.is_outside(*v) => return Ok(Value::Text(v.to_string())),
            Value::Int(_) | Value::Float(_) | Value::Decimal(..) => {}
            _ => return Err(Error::data("only numbers have bands")),
        }
        let (last, next) = (self.cuts.iter().rfind(reached), self.cuts.iter().find(|cut| !reached(cut)));
        let (Some(last), Some(next)) = (last, next) else {
            let (sign, cut) = if last.is_none() { ("<", next) } else { (">=", last) };
            return open_end(sign, cut.copied(), 0, self.digits);
        };
        let bounds = [last, next].map(|cut| bound_text(*cut, 0, self.digits));
        let [Some(last), Some(next)] = bounds else {
            return Err(Error::internal("bands: a band has no bound"));
        };
        Ok(Value::Text(format!("[{last},{next})")))
    }

    fn is_label(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Text(text) => match text.parse() {
                Ok(v) => self.is_outside(v) && text == &v.to_string(),
                Err(_) => self.labels().contains(text),
            },
            _ => false,
        }
    }

    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String> {
        let Some(finer) = (finer as &dyn Any).downcast_ref::<Bands>() else {
            return Err("`bands` can only follow `bands`".into());
        };
        if self.clip != finer.clip {
            return Err("they are clipped at other bounds".into());
        }
        if let Some(cut) = self.cuts.iter().find(|cut| !finer.cuts.contains(cut)) {
            return Err(format!("{cut} is not a cut point of the finer level"));
        }
        // Two levels may have the same cut points if all others are beyond the ends of a clip.
        if self.stated == finer.stated {
            return Err("its cut points are those of the finer level; leave some out".into());
        }
        Ok(())
    }

    fn with_label_width(&self, released: &ArrayRef) -> Option<Arc<dyn Generalizer>> {
        Some(Arc::new(Self { digits: whole_digits(released)?, ..self.clone() }))
    }

    fn clipped(&self, clip: &Clip) -> Result<Arc<dyn Generalizer>> {
        let [low, high] = clip.ends();
        let between =
            |cut: &&Decimal| low.is_none_or(|low| low < **cut) && high.is_none_or(|high| **cut < high);
        let between: Vec<Decimal> = self.stated.iter().filter(between).copied().collect();
        let cuts = low.into_iter().chain(between).chain(high).collect();
        Ok(Arc::new(Self { stated: self.stated.clone(), clip: Some(*clip), cuts, digits: self.digits }))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::*;
    use proptest::prelude::*;

    use super::*;
    use crate::generalize::Hierarchy;
    use crate::generalize::laws_tests::{agree, float};

    fn bands(cuts: &[&str]) -> Bands {
        Bands::new(cuts.iter().map(|cut| Decimal::parse(cut).unwrap()).collect()).unwrap()
    }

    fn clip(low: Option<&str>, high: Option<&str>) -> Clip {
        let end = |end: Option<&str>| end.map(|end| Decimal::parse(end).unwrap());
        Clip::new(end(low), end(high)).unwrap()
    }

    fn texts(labels: &ArrayRef) -> Vec<Option<&str>> {
        labels.as_string_view().iter().collect()
    }

    /// The classes of the body mass index: underweight, normal, overweight, obese, severely obese.
    const BMI: [&str; 4] = ["18.5", "25", "30", "40"];

    #[test]
    fn body_mass_indices_by_hand() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(-3.0),
            Some(18.499),
            Some(18.5),
            Some(24.9),
            Some(25.0),
            None,
            Some(39.0),
            Some(40.0),
            Some(f64::NAN),
        ]));
        let expected = [
            Some("<18.5"),
            Some("<18.5"),
            Some("[18.5,25)"),
            Some("[18.5,25)"),
            Some("[25,30)"),
            None,
            Some("[30,40)"),
            Some(">=40"),
            Some("NaN"),
        ];
        assert_eq!(texts(&agree(&bands(&BMI), &values).unwrap()), expected);
        let infinite: ArrayRef = Arc::new(Float32Array::from(vec![f32::INFINITY, f32::NEG_INFINITY]));
        assert_eq!(texts(&agree(&bands(&BMI), &infinite).unwrap()), [Some("inf"), Some("-inf")]);
        let whole: ArrayRef = Arc::new(UInt64Array::from(vec![0, 18, 19, 25, u64::MAX]));
        let expected = ["<18.5", "<18.5", "[18.5,25)", "[25,30)", ">=40"].map(Some);
        assert_eq!(texts(&agree(&bands(&BMI), &whole).unwrap()), expected);
        assert_eq!(bands(&BMI).descriptor().to_string(), "bands:18.5,25,30,40");
        assert!(bands(&BMI).output_type(&DataType::Utf8).is_err());
    }

    #[test]
    fn padded_labels_sort_like_the_values_but_for_the_last() {
        let level = bands(&["5", "18.5", "100"]);
        let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 7.0, 20.0, 100.0]));
        let padded = level.with_label_width(&agree(&level, &values).unwrap()).unwrap();
        let labels = agree(&*padded, &values).unwrap();
        assert_eq!(texts(&labels), ["<005", "[005,018.5)", "[018.5,100)", ">=100"].map(Some));
        // Generalizing padded labels returns them unchanged.
        assert_eq!(&agree(&*level.with_label_width(&labels).unwrap(), &values).unwrap(), &labels);
        // The padding has the width of the released labels.
        let few: ArrayRef = Arc::new(StringViewArray::from(vec!["<5"]));
        assert_eq!(
            level.with_label_width(&few).unwrap().generalize_value(&Value::Int(1)).unwrap(),
            Value::Text("<5".into())
        );
    }

    #[test]
    fn labels_and_levels() {
        let label = |text: &str| bands(&BMI).is_label(&Value::Text(text.into()));
        assert!(["<18.5", "[18.5,25)", ">=40", "NaN", "inf", "-inf"].iter().all(|text| label(text)));
        let wrong =
            ["<18", "[18.5,30)", ">=30", ">40", "40", "nan", "+inf", "infinity", "", "*", "[25.0,30)"];
        assert!(wrong.iter().all(|text| !label(text)));
        assert!(bands(&BMI).is_label(&Value::Null) && !bands(&BMI).is_label(&Value::Int(40)));
        assert_eq!(bands(&["25", "30"]).check_coarsens(&bands(&BMI)), Ok(()));
        assert_eq!(
            bands(&["25", "35"]).check_coarsens(&bands(&BMI)),
            Err("35 is not a cut point of the finer level".into())
        );
        assert!(bands(&BMI).check_coarsens(&bands(&BMI)).unwrap_err().contains("leave some out"));
        let cuts = |cuts: &[&str]| Bands::new(cuts.iter().map(|cut| Decimal::parse(cut).unwrap()).collect());
        assert!(cuts(&[]).is_err() && cuts(&["1", "1"]).is_err() && cuts(&["2", "1"]).is_err());
    }

    #[test]
    fn a_clip_cuts_bands() {
        let clip = clip(Some("20"), Some("35"));
        let level = bands(&BMI).clipped(&clip).unwrap();
        let values: ArrayRef =
            Arc::new(Float64Array::from(vec![18.0, 19.0, 20.0, 29.0, 34.0, 35.0, f64::INFINITY]));
        let expected = ["<20", "<20", "[20,25)", "[25,30)", "[30,35)", ">=35", ">=35"].map(Some);
        assert_eq!(texts(&agree(&*level, &values).unwrap()), expected);
        assert_eq!(level.descriptor().to_string(), "bands:18.5,25,30,40 clip:20,35");
        assert!(!level.is_label(&Value::Text("inf".into())) && !level.is_label(&Value::Text("<18.5".into())));
        assert!(bands(&["25"]).clipped(&clip).unwrap().check_coarsens(&*level).is_ok());
        assert!(bands(&["25", "28"]).clipped(&clip).unwrap().check_coarsens(&*level).is_err());
        assert!(bands(&BMI).clipped(&clip).unwrap().check_coarsens(&*level).is_err());
        assert!(bands(&["25"]).check_coarsens(&*level).is_err());
    }

    #[test]
    fn levels_that_differ_only_beyond_the_ends_become_the_same() {
        let levels: Vec<Arc<dyn Generalizer>> = vec![Arc::new(bands(&["3", "4"])), Arc::new(bands(&["3"]))];
        let hierarchy = Hierarchy::new(&DataType::Int64, levels).unwrap();
        let values: ArrayRef = Arc::new(Int64Array::from(vec![2, 3, 4, 5]));
        for (low, high, expected) in [
            (Some("3"), Some("4"), ["<3", "[3,4)", ">=4", ">=4"]),
            (None, Some("4"), ["<3", "[3,4)", ">=4", ">=4"]),
            (Some("5"), Some("9"), ["<5", "<5", "<5", "[5,9)"]),
        ] {
            let clipped = hierarchy.clipped(&clip(low, high)).unwrap();
            for level in &clipped.levels()[1..3] {
                // A cut point at an end makes no empty band.
                assert!(
                    !["[3,3)", "[4,4)"].iter().any(|label| level.is_label(&Value::Text((*label).into())))
                );
                assert_eq!(
                    texts(&agree(&**level, &values).unwrap()),
                    expected.map(Some),
                    "{}",
                    level.descriptor()
                );
            }
        }
    }

    proptest! {
        #[test]
        fn all_numbers_agree_and_lie_within_their_band(
            v in float(),
            whole in any::<i64>(),
            cuts in prop::collection::btree_set((-2_000i64..2_000, 0u32..4), 1..6),
            keep in any::<u8>(),
        ) {
            let mut cuts: Vec<Decimal> =
                cuts.iter().map(|(n, shift)| Decimal::parse(&format!("{n}e-{shift}")).unwrap()).collect();
            cuts.sort();
            cuts.dedup();
            let kept: Vec<Decimal> = cuts.iter().enumerate().filter(|(at, _)| keep >> at & 1 == 1).map(|(_, cut)| *cut).collect();
            let fine = Bands::new(cuts).unwrap();
            let decimals = |scale| Decimal128Array::from(vec![i128::from(whole), i128::from(whole >> 52)])
                .with_precision_and_scale(38, scale).unwrap();
            let columns: [ArrayRef; 6] = [
                Arc::new(decimals(3)),
                Arc::new(decimals(-2)),
                Arc::new(Float64Array::from(vec![v])),
                Arc::new(Float32Array::from(vec![v as f32])),
                Arc::new(Int64Array::from(vec![whole, whole >> 52])),
                Arc::new(Int8Array::from(vec![whole as i8])),
            ];
            for column in columns {
                let labels = agree(&fine, &column).unwrap();
                let Ok(coarse) = Bands::new(kept.clone()) else { continue };
                prop_assert_eq!(coarse.check_coarsens(&fine).is_ok(), coarse.cuts != fine.cuts);
                let coarse = agree(&coarse, &column).unwrap();
                for (fine, coarse) in texts(&labels).into_iter().flatten().zip(texts(&coarse).into_iter().flatten()) {
                    let (fine, coarse) = (ends(fine), ends(coarse));
                    prop_assert!(coarse.0 <= fine.0 && fine.1 <= coarse.1);
                }
            }
            let labels = agree(&fine, &(Arc::new(Float64Array::from(vec![v])) as ArrayRef)).unwrap();
            if v.is_finite() {
                let (lower, upper) = ends(texts(&labels)[0].unwrap());
                prop_assert!(lower <= v && v < upper);
            }
        }
    }

    /// Returns the bounds in a label.
    fn ends(label: &str) -> (f64, f64) {
        let number = |text: &str| text.parse::<f64>().unwrap();
        match (label.strip_prefix('<'), label.strip_prefix(">="), label.strip_prefix('[')) {
            (Some(upper), ..) => (f64::NEG_INFINITY, number(upper)),
            (_, Some(lower), _) => (number(lower), f64::INFINITY),
            (.., Some(both)) => {
                let (lower, upper) = both.trim_end_matches(')').split_once(',').unwrap();
                (number(lower), number(upper))
            }
            _ => (0.0, 0.0),
        }
    }
}
