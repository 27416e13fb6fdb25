//! The text of a region: what a class shows in one column where classes need not share a level.
//!
//! ```text
//! 34             one value, as hierarchy files match it
//! [30,35]        the values from 30 to 35; (30,35] has no 30, [30,35) no 35
//! <=23  >70      the values up to 23, the values above 70
//! {cold; flu}    these values, in their order
//! 9413*          the values with this label at a level of the column's hierarchy
//! *              every value, and a missing one
//! ```
//! Only columns of numbers, dates and timestamps have intervals. `34 or missing` and the like also hold NULL; a region of
//! NULL alone is NULL. A label that would be read as something else has a `\` before it. So has a `\`, `;` or `}` in a value
//! between braces.
//!
//! ```
//! use arrow::datatypes::DataType;
//! use datafusion_kanon::extend::Value;
//! use datafusion_kanon::internals::generalize::{Hierarchy, RegionLabel};
//! let ages = Hierarchy::new(&DataType::Int32, vec![])?;
//! let thirties = RegionLabel::parse(Some("[30,39]"), ages.input_type());
//! assert!(thirties.covers(&ages, &Value::Int(35))? && !thirties.covers(&ages, &Value::Int(40))?);
//! assert_eq!(thirties.write(ages.input_type()).as_deref(), Some("[30,39]"));
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::any::Any;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, i256};
use chrono::{NaiveDate, NaiveDateTime};
use serde::{Deserialize, Serialize};

use super::clip::Clip;
use super::hierarchy_of_levels::ClippedText;
use super::value::ticks_per_second;
use super::{Hierarchy, Value};
use crate::error::Result;
use crate::known::OTHER;

const EVERYTHING: &str = "*";
const OR_MISSING: &str = " or missing";

/// The values that a class may have in one column, with a text of its own. Its `Debug` shows no cell.
#[derive(Debug, Clone, PartialEq)]
pub enum RegionLabel {
    /// Every value, and NULL.
    Everything,
    /// NULL alone.
    Missing,
    /// Values, and NULL as well if it `or_missing`.
    Values {
        /// The values.
        values: Values,
        /// Whether NULL is in the region.
        or_missing: bool,
    },
}

/// The values of a region without NULL.
#[derive(Clone, PartialEq)]
pub enum Values {
    /// One value; of a column of text only as a centroid.
    One(Value),
    /// The values from one end to another; without an end, all values on that side.
    Interval(Option<End>, Option<End>),
    /// These values.
    Set(Vec<Value>),
    /// The values that have this text as their label at a level below the top. At level 0, that is the text of a value.
    Label(String),
}

/// What the ends of intervals show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// The least and the greatest value of the class, but none that is the least or the greatest of all released rows:
    /// such an interval has no end on that side.
    #[default]
    Values,
    /// The least and the greatest value of the class, as papers print them.
    Closed,
    /// Where the rows were cut: whatever values the class has, it shows all that the cuts leave to it. The outermost
    /// intervals have no end on that side, and a column that was not cut shows everything.
    Cuts,
}

/// An end of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// The value at the end.
    pub value: Value,
    /// Whether the value is in the interval.
    pub is_closed: bool,
}

/// Shows only the kind, because a label is a cell.
impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::One(_) => "One(..)",
            Self::Interval(..) => "Interval(..)",
            Self::Set(_) => "Set(..)",
            Self::Label(_) => "Label(..)",
        })
    }
}

impl From<Values> for RegionLabel {
    fn from(values: Values) -> Self {
        Self::Values { values, or_missing: false }
    }
}

impl RegionLabel {
    /// Returns the region of one level-0 label of a hierarchy. The label at a bound of a clipped column stands for all
    /// values beyond it.
    pub fn of_leaf(hierarchy: &Hierarchy, label: &Value) -> Self {
        if *label == Value::Null {
            return Self::Missing;
        }
        if let Some(beyond) = beyond_a_bound(hierarchy, label) {
            return Self::from(beyond);
        }
        Self::from(match label {
            Value::Text(text) if hierarchy.input_type().is_string() => Values::Label(text.clone()),
            Value::Text(text) => match value_of(text, hierarchy.input_type()) {
                Some(value) => Values::One(value),
                None => Values::Label(text.clone()),
            },
            value => Values::One(value.clone()),
        })
    }

    /// Returns the values from the first region's to the last one's: leaves of a column that has intervals, in order. NULL
    /// is below all values. Without an end on either side, it is everything. `None` for other regions.
    pub fn interval(first: &Self, last: &Self) -> Option<Self> {
        let ends = |region: &Self| match region {
            Self::Values { values: Values::One(value), .. } => {
                let end = Some(End { value: value.clone(), is_closed: true });
                Some((end.clone(), end))
            }
            Self::Values { values: Values::Interval(low, high), .. } => Some((low.clone(), high.clone())),
            _ => None,
        };
        let ((low, _), (_, high)) = (ends(first)?, ends(last)?);
        Some(match (low, high) {
            (None, None) => Self::Everything,
            (Some(low), Some(high))
                if low.is_closed
                    && high.is_closed
                    && compare(&low.value, &high.value) == Some(Ordering::Equal) =>
            {
                Self::from(Values::One(low.value))
            }
            (low, high) => Self::from(Values::Interval(low, high)),
        })
    }

    /// Returns the values above those of `below` and up to those of `last`: leaves of a column that has intervals. Without
    /// `below` there is no end below, and if `last` is the greatest value, none above, unless that is NaN. `None` for other regions.
    pub(crate) fn between_cuts(below: Option<&Self>, last: &Self, is_greatest: bool) -> Option<Self> {
        let high = |region: &Self| match region {
            Self::Values { values: Values::One(value), .. } => {
                Some(Some(End { value: value.clone(), is_closed: true }))
            }
            Self::Values { values: Values::Interval(_, high), .. } => Some(high.clone()),
            _ => None,
        };
        let low = match below {
            Some(below) => high(below)?.map(|end| End { is_closed: !end.is_closed, ..end }),
            None => None,
        };
        let high = high(last)?.filter(|end| !is_greatest || is_nan(&end.value));
        Some(match (low, high) {
            (None, None) => Self::Everything,
            (low, high) => Self::from(Values::Interval(low, high)),
        })
    }

    /// Adds NULL to the region, which must not be the label of a level above 0.
    #[must_use]
    pub(crate) fn or_missing(self) -> Self {
        match self {
            // A label would read as one that ends with these words; its value is in braces.
            Self::Values { values: Values::Label(text), .. } => {
                Self::Values { values: Values::Set(vec![Value::Text(text)]), or_missing: true }
            }
            Self::Values { values, .. } => Self::Values { values, or_missing: true },
            other => other,
        }
    }

    /// Removes an end of an interval that is the least or the greatest released value: an outlier would show there. A
    /// region of one value without NULL stays, because the whole class shares it.
    #[must_use]
    pub fn without_ends_at(self, least: &Value, greatest: &Value) -> Self {
        let (low, high, or_missing) = match self {
            Self::Values { values: Values::Interval(low, high), or_missing } => (low, high, or_missing),
            // Some rows of the class are missing: it may be the value of a single one.
            Self::Values { values: Values::One(value), or_missing: true }
                if !is_nan(&value)
                    && [least, greatest].iter().any(|end| compare(&value, end) == Some(Ordering::Equal)) =>
            {
                return Self::Everything;
            }
            other => return other,
        };
        // Beyond an open end there are numbers only, so NaN stays.
        let is_at = |end: &End, extreme: &Value| {
            compare(&end.value, extreme) == Some(Ordering::Equal) && !is_nan(extreme)
        };
        match (low.filter(|end| !is_at(end, least)), high.filter(|end| !is_at(end, greatest))) {
            (None, None) => Self::Everything,
            (low, high) => Self::Values { values: Values::Interval(low, high), or_missing },
        }
    }

    /// Reads a text that a column whose values have this type can show; `None` for a text that kanon never writes. A column
    /// that has intervals shows no labels.
    pub fn parse_canonical(text: Option<&str>, data_type: &DataType, has_intervals: bool) -> Option<Self> {
        let region = Self::parse(text, data_type);
        let is_canonical = match &region {
            Self::Values { values: Values::Label(_), .. } => !has_intervals,
            Self::Values { values: Values::Interval(Some(low), Some(high)), .. } => {
                compare(&low.value, &high.value) == Some(Ordering::Less)
            }
            Self::Values { values: Values::Set(all), .. } if has_intervals => {
                all.len() > 1
                    && all.windows(2).all(|pair| compare(&pair[0], &pair[1]) == Some(Ordering::Less))
            }
            Self::Values { values: Values::Set(all), .. } => {
                let mut texts = HashSet::new();
                all.iter().all(|value| texts.insert(text_of(value)))
            }
            _ => true,
        };
        (is_canonical && region.write(data_type).as_deref() == text).then_some(region)
    }

    /// Returns the text of the region in a column whose values have this type; `None` is NULL.
    pub fn write(&self, data_type: &DataType) -> Option<String> {
        let (values, or_missing) = match self {
            Self::Everything => return Some(EVERYTHING.to_owned()),
            Self::Missing => return None,
            Self::Values { values, or_missing } => (values, *or_missing),
        };
        let mut text = match values {
            Values::One(value) => text_of(value),
            Values::Interval(low, high) => match (low, high) {
                (Some(low), Some(high)) => {
                    let (open, close) =
                        (if low.is_closed { '[' } else { '(' }, if high.is_closed { ']' } else { ')' });
                    format!("{open}{},{}{close}", text_of(&low.value), text_of(&high.value))
                }
                (None, Some(high)) => {
                    format!("<{}{}", if high.is_closed { "=" } else { "" }, text_of(&high.value))
                }
                (Some(low), None) => {
                    format!(">{}{}", if low.is_closed { "=" } else { "" }, text_of(&low.value))
                }
                (None, None) => return Some(EVERYTHING.to_owned()),
            },
            Values::Set(all) => {
                let escaped = |value: &Value| {
                    text_of(value).replace('\\', "\\\\").replace(';', "\\;").replace('}', "\\}")
                };
                format!("{{{}}}", all.iter().map(escaped).collect::<Vec<_>>().join("; "))
            }
            Values::Label(text) if Self::parse(Some(text), data_type) == *self => text.clone(),
            Values::Label(text) => format!("\\{text}"),
        };
        if or_missing {
            text += OR_MISSING;
        }
        Some(text)
    }

    /// Reads the text of a region in a column whose values have this type. Text that is nothing else is a label.
    pub fn parse(text: Option<&str>, data_type: &DataType) -> Self {
        let text = match text {
            None => return Self::Missing,
            Some(EVERYTHING) => return Self::Everything,
            Some(text) => text,
        };
        if let Some(label) = text.strip_prefix('\\') {
            return Self::from(Values::Label(label.to_owned()));
        }
        let (body, or_missing) = text.strip_suffix(OR_MISSING).map_or((text, false), |body| (body, true));
        let values = match members(body) {
            Some(all) => {
                // Only the label of merged values is a member and no value of the column.
                let other = |one: &String| (one == OTHER).then(|| Value::Text(one.clone()));
                let value = |one: &String| value_of(one, data_type).or_else(|| other(one));
                all.iter().map(value).collect::<Option<_>>().map(Values::Set)
            }
            None if data_type.is_string() => None,
            None if *data_type == DataType::Boolean => value_of(body, data_type).map(Values::One),
            None => interval_of(body, data_type).or_else(|| value_of(body, data_type).map(Values::One)),
        };
        match values {
            Some(values) => Self::Values { values, or_missing },
            None => Self::from(Values::Label(text.to_owned())),
        }
    }

    /// Returns whether the region holds a value of the column.
    ///
    /// # Errors
    /// The errors of the levels for values that they do not cover.
    pub fn covers(&self, hierarchy: &Hierarchy, value: &Value) -> Result<bool> {
        let values = match (self, value) {
            (Self::Everything, _) => return Ok(true),
            (Self::Missing, _) => return Ok(*value == Value::Null),
            (Self::Values { or_missing, .. }, Value::Null) => return Ok(*or_missing),
            (Self::Values { values, .. }, _) => values,
        };
        let merged = hierarchy.merged_label(value)?.map(|label| label.text_form());
        let against = |other: &Value| match &merged {
            Some(label) => (*label == other.text_form()).then_some(Ordering::Equal),
            None => compare(value, other),
        };
        Ok(match values {
            Values::One(one) => against(one) == Some(Ordering::Equal),
            Values::Set(all) => all.iter().any(|one| against(one) == Some(Ordering::Equal)),
            // NaN is above all numbers, but beyond an open end there are numbers only.
            Values::Interval(_, high) if is_nan(value) => {
                high.as_ref().is_some_and(|high| high.is_closed && is_nan(&high.value))
            }
            Values::Interval(low, high) => {
                let is_within = |end: &Option<End>, inside: Ordering| match end {
                    None => true,
                    Some(end) => match against(&end.value) {
                        Some(Ordering::Equal) => end.is_closed,
                        found => found == Some(inside),
                    },
                };
                is_within(low, Ordering::Greater) && is_within(high, Ordering::Less)
            }
            Values::Label(text) => {
                let shown = if merged.is_some() { 1 } else { hierarchy.height() };
                for level in hierarchy.levels().iter().take(shown) {
                    if level.generalize_value(value)?.text_form().as_deref() == Some(text) {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }
}

fn text_of(value: &Value) -> String {
    value.text_form().unwrap_or_default()
}

/// Compares two values of one column, NaN above all numbers; `None` if they are of different kinds.
pub(crate) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => Some(a.total_cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a, unit, _), Value::Timestamp(b, other, _)) if unit == other => Some(a.cmp(b)),
        (Value::Decimal(a, scale), Value::Decimal(b, other)) if scale == other => Some(a.cmp(b)),
        _ => None,
    }
}

/// Returns the values that a level-0 label at a bound of a clipped column stands for; `None` for other labels.
fn beyond_a_bound(hierarchy: &Hierarchy, label: &Value) -> Option<Values> {
    let level_0 = &**hierarchy.levels().first()? as &dyn Any;
    let end = |clip: &Clip, side: Ordering, is_closed: bool| {
        Some(End { value: clip.coded(side, &zero(hierarchy.input_type())?), is_closed })
    };
    if let Some(ClippedText(clip)) = level_0.downcast_ref::<ClippedText>() {
        let Value::Text(text) = label else { return None };
        // A side without a bound has the empty text, which is no number's.
        let [low, high] = clip.open_ends(0, 1);
        return match text {
            _ if *text == low => Some(Values::Interval(None, end(clip, Ordering::Less, false))),
            _ if *text == high => Some(Values::Interval(end(clip, Ordering::Greater, true), None)),
            _ => None,
        };
    }
    // A column that keeps numbers shows the bound itself.
    let clip = level_0.downcast_ref::<Clip>()?;
    let [low, high] = clip.ends();
    let is_at = |side: Ordering| clip.coded(side, label) == *label;
    match () {
        () if low.is_some() && is_at(Ordering::Less) => {
            Some(Values::Interval(None, end(clip, Ordering::Less, true)))
        }
        () if high.is_some() && is_at(Ordering::Greater) => {
            Some(Values::Interval(end(clip, Ordering::Greater, true), None))
        }
        () => None,
    }
}

/// Returns 0 as a number of this type.
fn zero(data_type: &DataType) -> Option<Value> {
    match data_type {
        DataType::Float32 | DataType::Float64 => Some(Value::Float(0.0)),
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            Some(Value::Decimal(i256::ZERO, *scale))
        }
        other => other.is_integer().then_some(Value::Int(0)),
    }
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Float(number) if number.is_nan())
}

/// Texts of numbers and moments are shorter than this.
const LONGEST: usize = 400;

/// Reads a value from its text form; `None` for any other text.
pub(super) fn value_of(text: &str, data_type: &DataType) -> Option<Value> {
    let value = match data_type {
        other if other.is_string() => return Some(Value::Text(text.to_owned())),
        _ if text.len() > LONGEST => return None,
        DataType::Date32 | DataType::Date64 => Value::Date(match text.strip_prefix("day ") {
            Some(days) => days.parse().ok()?,
            None => {
                let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
                i32::try_from(date.signed_duration_since(NaiveDate::default()).num_days()).ok()?
            }
        }),
        DataType::Timestamp(unit, zone) => {
            let local = if zone.is_some() { text.strip_suffix('Z')? } else { text };
            let ticks = match local.strip_prefix("tick ") {
                Some(ticks) => ticks.parse().ok()?,
                None => {
                    let moment = NaiveDateTime::parse_from_str(local, "%Y-%m-%dT%H:%M:%S%.f").ok()?.and_utc();
                    let per_second = ticks_per_second(*unit);
                    let below = i64::from(moment.timestamp_subsec_nanos()) / (1_000_000_000 / per_second);
                    // The first second of nanoseconds begins before the least of them.
                    let ticks = i128::from(moment.timestamp()) * i128::from(per_second) + i128::from(below);
                    i64::try_from(ticks).ok()?
                }
            };
            Value::Timestamp(ticks, *unit, zone.clone())
        }
        other => {
            let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            Value::read(&cast_with_options(&texts, other, &strict).ok()?, 0).ok()?
        }
    };
    (value.text_form()? == text).then_some(value)
}

/// Reads the two ends of an interval.
fn interval_of(text: &str, data_type: &DataType) -> Option<Values> {
    let end = |text: &str, is_closed: bool| Some(Some(End { value: value_of(text, data_type)?, is_closed }));
    if let Some(rest) = text.strip_prefix('<') {
        let closed = rest.strip_prefix('=');
        return Some(Values::Interval(None, end(closed.unwrap_or(rest), closed.is_some())?));
    }
    if let Some(rest) = text.strip_prefix('>') {
        let closed = rest.strip_prefix('=');
        return Some(Values::Interval(end(closed.unwrap_or(rest), closed.is_some())?, None));
    }
    let (inside, low_is_closed) = match text.strip_prefix('[') {
        Some(inside) => (inside, true),
        None => (text.strip_prefix('(')?, false),
    };
    let (inside, high_is_closed) = match inside.strip_suffix(']') {
        Some(inside) => (inside, true),
        None => (inside.strip_suffix(')')?, false),
    };
    let (low, high) = inside.split_once(',')?;
    Some(Values::Interval(end(low, low_is_closed)?, end(high, high_is_closed)?))
}

/// Reads the texts between braces, without their escapes.
fn members(text: &str) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    let mut characters = text.strip_prefix('{')?.chars();
    while let Some(character) = characters.next() {
        match character {
            '}' => return characters.next().is_none().then_some(all),
            ';' if characters.next() == Some(' ') => all.push(String::new()),
            ';' => return None,
            '\\' => all.last_mut()?.push(characters.next().filter(|next| matches!(next, '\\' | ';' | '}'))?),
            other => all.last_mut()?.push(other),
        }
    }
    None
}

#[cfg(test)]
#[path = "region_label_tests.rs"]
mod tests;
