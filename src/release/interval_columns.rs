//! `[output] intervals = "columns"`: a quasi-identifier with intervals is written as numbers or
//! dates instead of text.
//!
//! ```text
//! age               age_from  age_to  age_missing
//! [30,35]                 30      35  false
//! 34                      34      34  false
//! >=71                    71    NULL  false
//! [30,35] or missing      30      35  NULL: it may be missing
//! NULL                  NULL    NULL  true
//! *                     NULL    NULL  NULL
//! ```
//! Both ends are included; NaN is above all numbers, and beyond an open end there is none. Each
//! text stands for one such triple, and the rest of a release and its verification work with the
//! texts: rows are written from texts and read back into them.
//!
//! A triple that no text is written as is refused, so a forged column cannot hide behind its text. Ends that
//! are not included become the number or the day beside them, and a set becomes the interval around it: the
//! text says that before it is written, and so does the assignment. The record lists the quasi-identifier once,
//! with the type of its ends and the names of the columns (`written_as`).

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::DataType;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::engine::{column, into_engine};
use crate::error::{Error, Result};
use crate::generalize::region_label::{End, Values};
use crate::generalize::{RegionLabel, Value, compare};
use crate::policy::{Policy, Quasi, end_names};

/// A quasi-identifier that is written as three columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct IntervalColumns {
    /// Its name.
    pub(crate) name: String,
    /// The type of its values in the input, which the ends have.
    pub(crate) value_type: DataType,
}

impl IntervalColumns {
    /// Returns the names of the columns: of both ends, and of whether the value is missing.
    pub(crate) fn names(&self) -> [String; 3] {
        end_names(&self.name)
    }

    /// Returns the names of the columns with their types.
    pub(crate) fn columns(&self) -> [(String, DataType); 3] {
        let [from, to, missing] = self.names();
        [(from, self.value_type.clone()), (to, self.value_type.clone()), (missing, DataType::Boolean)]
    }

    /// Returns the columns of texts.
    ///
    /// # Errors
    /// An internal error for a text that cannot be written so.
    pub(crate) fn arrays(&self, texts: &ArrayRef) -> Result<[ArrayRef; 3]> {
        let (mut from, mut to, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..texts.len() {
            let text = Value::read(texts, row)?.text_form();
            let region = RegionLabel::parse(text.as_deref(), &self.value_type);
            let [least, most, is_missing] = bounds(region)
                .ok_or_else(|| Error::internal("interval columns: a region without two ends"))?;
            from.push(least);
            to.push(most);
            missing.push(is_missing);
        }
        Ok([
            Value::build(&from, &self.value_type)?,
            Value::build(&to, &self.value_type)?,
            Value::build(&missing, &DataType::Boolean)?,
        ])
    }
}

impl IntervalColumns {
    /// Returns the expression for the text of a row.
    pub(crate) fn text(&self) -> Expr {
        let signature = Signature::any(3, Volatility::Immutable);
        let text = ScalarUDF::new_from_impl(RegionText { of: self.clone(), signature });
        text.call(self.names().iter().map(column).collect()).alias(&self.name)
    }
}

impl Quasi {
    /// Returns the columns that the policy writes its intervals as; `None` for one column.
    pub(crate) fn interval_columns(&self, policy: &Policy) -> Option<IntervalColumns> {
        let hierarchy = &self.hierarchy;
        (policy.spec.output.writes_ends() && hierarchy.has_intervals())
            .then(|| IntervalColumns { name: self.name.clone(), value_type: hierarchy.input_type().clone() })
    }
}

/// Returns the region as an interval that includes its ends: of a set, from its least value to its
/// greatest. Where numbers are whole or values are dates, an end that is not included becomes the
/// value beside it; otherwise it is included now.
pub(super) fn with_ends_included(region: RegionLabel) -> RegionLabel {
    let RegionLabel::Values { values, or_missing } = region else { return region };
    let included = |end: Option<End>, step: i8| {
        end.map(|end| End {
            value: match end.value {
                Value::Int(value) if !end.is_closed => Value::Int(value + i128::from(step)),
                Value::Date(days) if !end.is_closed => Value::Date(days.saturating_add(step.into())),
                other => other,
            },
            is_closed: true,
        })
    };
    let (low, high) = match values {
        Values::Interval(low, high) => (included(low, 1), included(high, -1)),
        Values::Set(all) => {
            let end = |value: &Value| Some(End { value: value.clone(), is_closed: true });
            (all.first().and_then(end), all.last().and_then(end))
        }
        other => return RegionLabel::Values { values: other, or_missing },
    };
    let values = match (&low, &high) {
        (Some(from), Some(to)) if compare(&from.value, &to.value) == Some(Ordering::Equal) => {
            Values::One(from.value.clone())
        }
        _ => Values::Interval(low, high),
    };
    RegionLabel::Values { values, or_missing }
}

/// Returns the ends of a region, and whether its value is missing; NULL where that is open. `None`
/// for a set and an end that is not included.
fn bounds(region: RegionLabel) -> Option<[Value; 3]> {
    let (values, or_missing) = match region {
        RegionLabel::Everything => return Some([Value::Null, Value::Null, Value::Null]),
        RegionLabel::Missing => return Some([Value::Null, Value::Null, Value::Bool(true)]),
        RegionLabel::Values { values, or_missing } => (values, or_missing),
    };
    let end = |end: Option<End>| match end {
        Some(end) => end.is_closed.then_some(end.value),
        None => Some(Value::Null),
    };
    let (least, most) = match values {
        Values::One(value) => (value.clone(), value),
        Values::Interval(low, high) => (end(low)?, end(high)?),
        Values::Set(_) | Values::Label(_) => return None,
    };
    Some([least, most, if or_missing { Value::Null } else { Value::Bool(false) }])
}

/// Returns the region with these ends; `None` if no region is written so.
fn region(from: Value, to: Value, missing: Value) -> Option<RegionLabel> {
    let or_missing = match (&from, &to, &missing) {
        (Value::Null, Value::Null, Value::Null) => return Some(RegionLabel::Everything),
        (Value::Null, Value::Null, Value::Bool(true)) => return Some(RegionLabel::Missing),
        (Value::Null, Value::Null, _) | (_, _, Value::Bool(true)) => return None,
        _ => missing == Value::Null,
    };
    let end = |value: &Value| {
        (*value != Value::Null).then(|| Some(End { value: value.clone(), is_closed: true })).flatten()
    };
    // Texts are compared, because NaN is unequal to itself.
    let values = match from.text_form() == to.text_form() {
        true => Values::One(from),
        false => Values::Interval(end(&from), end(&to)),
    };
    Some(RegionLabel::Values { values, or_missing })
}

#[derive(PartialEq, Eq)]
struct RegionText {
    of: IntervalColumns,
    signature: Signature,
}

impl Hash for RegionText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
    }
}

impl std::fmt::Debug for RegionText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kanon_region_text({})", self.of.name)
    }
}

impl ScalarUDFImpl for RegionText {
    fn name(&self) -> &'static str {
        "kanon_region_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let parts = ColumnarValue::values_to_arrays(&arguments.args)?;
        let refused = || {
            Error::unmet(format!(
                "verification refused: the columns of `{}` contradict one another in a row",
                self.of.name
            ))
        };
        let text = |row: usize| -> Result<Option<String>> {
            let [from, to, missing] = [0, 1, 2].map(|part: usize| Value::read(&parts[part], row));
            Ok(region(from?, to?, missing?).ok_or_else(refused)?.write(&self.of.value_type))
        };
        let rows = parts.first().map_or(0, Array::len);
        let texts = (0..rows).map(text).collect::<Result<StringArray>>().map_err(into_engine)?;
        Ok(ColumnarValue::Array(Arc::new(texts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: DataType = DataType::Int32;

    fn triple(value_type: DataType) -> IntervalColumns {
        IntervalColumns { name: "age".into(), value_type }
    }

    #[test]
    fn each_text_stands_for_one_triple() {
        for (value_type, texts) in [
            (INT, vec![Some("34"), Some("[30,35]"), Some("<=23"), Some(">=71 or missing"), Some("*"), None]),
            (
                DataType::Float64,
                vec![Some("NaN"), Some("[0.5,NaN]"), Some("1 or missing"), Some("[-100.5,2.25]")],
            ),
            (DataType::Date32, vec![Some("1990-05-03"), Some("[1990-05-03,2001-01-01] or missing"), None]),
        ] {
            let columns = triple(value_type.clone());
            let written = columns.arrays(&(Arc::new(StringArray::from(texts.clone())) as ArrayRef)).unwrap();
            let back = (0..texts.len()).map(|row| {
                let [from, to, missing] =
                    [0, 1, 2].map(|part: usize| Value::read(&written[part], row).unwrap());
                region(from, to, missing).unwrap().write(&value_type)
            });
            assert_eq!(
                back.collect::<Vec<_>>(),
                texts.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn ends_are_included() {
        for (data_type, text, included) in [
            (INT, "(30,35]", "[31,35]"),
            (INT, "(30,32)", "31"),
            (INT, "<18 or missing", "<=17 or missing"),
            (INT, ">90", ">=91"),
            (INT, "{30; 34}", "[30,34]"),
            (INT, "[30,35]", "[30,35]"),
            (INT, "*", "*"),
            (DataType::Date32, "(1999-12-31,2000-03-01)", "[2000-01-01,2000-02-29]"),
            (DataType::Float64, "(0.5,1.5]", "[0.5,1.5]"),
            (DataType::Float64, "<0.5", "<=0.5"),
        ] {
            let region = with_ends_included(RegionLabel::parse(Some(text), &data_type));
            assert_eq!(region.write(&data_type).as_deref(), Some(included), "{text}");
        }
    }

    #[test]
    fn other_regions_and_other_triples_are_none() {
        for text in ["(30,35]", "[30,35)", "<30", "{30; 34}"] {
            let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
            assert!(triple(INT).arrays(&texts).is_err(), "{text}");
        }
        let (null, one) = (|| Value::Null, || Value::Int(1));
        for (from, to, missing) in [
            (null(), null(), Value::Bool(false)),
            (one(), one(), Value::Bool(true)),
            (null(), one(), Value::Bool(true)),
        ] {
            assert_eq!(region(from, to, missing), None);
        }
        // Not canonical: verification refuses the text.
        let text = region(Value::Int(5), one(), Value::Bool(false)).unwrap().write(&INT);
        assert_eq!(RegionLabel::parse_canonical(text.as_deref(), &INT, true), None);
    }
}
