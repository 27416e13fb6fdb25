//! `known`: a value becomes its label in a hierarchy that comes with the tool.
//!
//! `f(v) = label of v at a level of the hierarchy`, such as the subregion of a country. The
//! hierarchies are the rows of [`KNOWN`](crate::known::KNOWN), whose modules say which values they
//! read, their levels, and the source and edition of their lists. In a policy
//! `hierarchy = { known = "country" }` makes all levels of one; `level = 1` ends below the top with
//! level 1.
//!
//! # Contract
//! Text in, and with some hierarchies integers, numbers, dates or timestamps; `Utf8View` out. NULL
//! stays NULL. A value outside the list, such as the empty text, is refused and counted; with
//! `outside = "join"` it becomes `other` at every level above level 0. Spellings of one value (`DE`,
//! `Germany`) are separate values at level 0. Not monotone. A label reveals the list that it comes
//! from, and one with few values below it (a state, a rare diagnosis) hides little.
//!
//! ```
//! use datafusion_kanon::extend::{Generalizer, Value};
//! use datafusion_kanon::internals::generalize::known;
//! let levels = known::ROW.of("country")?;
//! let text = |text: &str| Value::Text(text.into());
//! assert_eq!(levels[0].generalize_value(&text("Germany"))?, text("Western Europe"));
//! assert_eq!(levels[1].generalize_value(&text("de"))?, text("Europe"));
//! assert_eq!(levels[1].generalize_value(&Value::Null)?, Value::Null);
//! assert!(levels[0].generalize_value(&text("Atlantis")).is_err());
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Timelike};
use hashbrown::HashMap;

use super::value::{ticks_per_second, unsupported};
use super::zone::Zone;
use super::{Descriptor, Generalizer, GeneralizerRow, Value, text_forms};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::known::{self, Input, KnownRow, OTHER};
use crate::parameter::{Absent, Kind, Parameter, Setting, Settings};
use crate::plural::plural;

/// The row of [`GENERALIZERS`](super::GENERALIZERS) for this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "known",
        summary: "maps a value to its label in a hierarchy that comes with the tool, such as that of countries",
        parameters: "name",
        example: "generalize_known(country, 'country', 2)",
        paper: None,
    },
    key: Some("known"),
    parameters: &[NAME, LEVEL, OUTSIDE],
    levels,
};

/// The hierarchy.
const NAME: Parameter = Parameter {
    name: "name",
    kind: Kind::Choice(known::NAMES),
    absent: Absent::Refused,
    summary: "which hierarchy",
};
/// The last level below the top.
const LEVEL: Parameter = Parameter {
    name: "level",
    kind: Kind::Count,
    absent: Absent::Unset,
    summary: "the last level below the top, if it is not the hierarchy's own",
};
/// What becomes of values outside the list.
const OUTSIDE: Parameter = Parameter {
    name: "outside",
    kind: Kind::Choice(&["refuse", JOIN]),
    absent: Absent::Means(Setting::Word(Cow::Borrowed("refuse"))),
    summary: "whether values outside the list are refused or joined into the label `other`",
};
/// Values outside the list become [`OTHER`].
pub(super) const JOIN: &str = "join";

fn levels(settings: &Settings) -> Result<Vec<Arc<dyn Generalizer>>> {
    let row = known::find(settings.word(NAME.name)?).map_err(Error::policy)?;
    let joins_others = settings.word(OUTSIDE.name)? == JOIN;
    let height = row.levels.len();
    let last = match settings.some_number(LEVEL.name)? {
        None => height,
        Some(level) => {
            let found = level.to_u64().and_then(|level| usize::try_from(level).ok());
            found.filter(|level| (1..=height).contains(level)).ok_or_else(|| {
                let (levels, names) = (plural(height as u64, "level", "levels"), row.levels.join(", "));
                Error::policy(format!("`{}` has {levels} ({names}), not {level}", row.doc.name))
            })?
        }
    };
    let level = |level| Arc::new(KnownLevel { row, level, joins_others }) as Arc<dyn Generalizer>;
    Ok((1..=last).map(level).collect())
}

/// Returns the name of the level that a descriptor describes, such as `subregion`; `None` for other
/// generalizers.
pub fn level_name(by: &Descriptor) -> Option<&'static str> {
    let [name] = &by.argument[..] else { return None };
    let row = known::find(name).ok().filter(|_| by.generalizer == ROW.doc.name)?;
    let level: usize = by.options.get(LEVEL.name)?.parse().ok()?;
    row.levels.get(level.checked_sub(1)?).copied()
}

/// One level of a known hierarchy: the generalizer that the [module](self) describes.
#[derive(Clone, Copy)]
pub struct KnownLevel {
    row: &'static KnownRow,
    level: usize,
    joins_others: bool,
}

impl fmt::Debug for KnownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KnownLevel({})", self.descriptor())
    }
}

impl KnownLevel {
    fn label(&self, text: &str) -> Option<Cow<'static, str>> {
        let label = (self.row.rule)().label(text, self.level);
        if self.joins_others { label.or(Some(OTHER.into())) } else { label }
    }

    /// Returns the text that stands for each value; a moment outside the calendar has an empty one,
    /// which no list holds.
    fn texts(&self, values: &ArrayRef) -> Result<StringViewArray> {
        if let DataType::Dictionary(_, plain) = values.data_type() {
            return self.texts(&cast_to(values, plain)?);
        }
        self.output_type(values.data_type())?;
        let of_moments = |of: &dyn Fn(i64) -> Option<i64>| {
            let moments = cast_to(values, &DataType::Int64)?;
            let text = |moment| of(moment).map_or(String::new(), |number| number.to_string());
            Ok(moments.as_primitive::<Int64Type>().iter().map(|moment| moment.map(text)).collect())
        };
        let weekday = |day: i64| (day + 3).rem_euclid(7) + 1; // 1970-01-01 was a Thursday
        match (self.row.input, values.data_type()) {
            (Input::TextOrIntegers(digits), of) if of.is_integer() => {
                let texts = cast_to(values, &DataType::Utf8View)?;
                Ok(texts
                    .as_string_view()
                    .iter()
                    .map(|text| text.map(|text| format!("{text:0>digits$}")))
                    .collect())
            }
            (_, DataType::Date32) => of_moments(&|day| Some(weekday(day))),
            (_, DataType::Date64) => of_moments(&|moment| Some(weekday(moment.div_euclid(86_400_000)))),
            (input, DataType::Timestamp(unit, name)) => {
                let zone = Zone::parse(name.as_deref().unwrap_or("UTC"))?;
                of_moments(&|moment| {
                    let local = zone.local_seconds(moment.div_euclid(ticks_per_second(*unit)))?;
                    Some(match input {
                        Input::Hour => local.rem_euclid(86_400) / 3_600,
                        _ => weekday(local.div_euclid(86_400)),
                    })
                })
            }
            _ => text_forms(values),
        }
    }

    /// Returns the text that stands for a value, naively; `None` for NULL.
    fn text(&self, value: &Value) -> Result<Option<String>> {
        Ok(Some(match (self.row.input, value) {
            (_, Value::Null) => return Ok(None),
            (Input::Weekday, Value::Date(days)) => {
                // The calendar ends before the days do; whole weeks less have the same weekday.
                let day = TimeDelta::try_days(i64::from(days % 7));
                let date = day.and_then(|day| NaiveDate::default().checked_add_signed(day));
                date.map_or(String::new(), |date| date.weekday().number_from_monday().to_string())
            }
            (Input::Weekday | Input::Hour, Value::Timestamp(ticks, unit, name)) => {
                let zone = Zone::parse(name.as_deref().unwrap_or("UTC"))?;
                let local = DateTime::from_timestamp(ticks.div_euclid(ticks_per_second(*unit)), 0)
                    .and_then(|moment| zone.local(moment));
                local.map_or(String::new(), |local| match self.row.input {
                    Input::Hour => local.hour().to_string(),
                    _ => local.weekday().number_from_monday().to_string(),
                })
            }
            (Input::TextOrIntegers(digits), Value::Int(number)) => {
                let text = number.to_string();
                let zeros = digits.saturating_sub(text.len());
                "0".repeat(zeros) + &text
            }
            (
                Input::Text | Input::TextOrIntegers(_) | Input::TextOrNumbers | Input::Hour,
                Value::Text(text),
            ) => text.clone(),
            (Input::TextOrNumbers, Value::Int(_) | Value::Float(_) | Value::Decimal(..)) => {
                return Ok(value.text_form());
            }
            _ => return Err(Error::data(format!("expected {}", wanted(self.row.input)))),
        }))
    }

    fn outside(&self, count: usize) -> Error {
        let values = plural(count as u64, "distinct value is", "distinct values are");
        let (name, source) = (self.row.doc.name, self.row.source);
        Error::data(format!(
            "{values} outside `{name}` ({source}); correct them, or let `outside = \"join\"` make them one label"
        ))
    }
}

fn cast_to(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    cast(values, to).map_err(|_| Error::internal("known: values cannot be cast"))
}

/// Returns the types of an input in words, for errors.
fn wanted(input: Input) -> &'static str {
    match input {
        Input::Text => "text",
        Input::TextOrIntegers(_) => "text or integers",
        Input::TextOrNumbers => "text or numbers",
        Input::Weekday => "dates or timestamps",
        Input::Hour => "text or timestamps",
    }
}

impl Generalizer for KnownLevel {
    fn descriptor(&self) -> Descriptor {
        let level = Descriptor::new(ROW.doc.name).with(self.row.doc.name).with_option(LEVEL.name, self.level);
        if self.joins_others { level.with_option(OUTSIDE.name, JOIN) } else { level }
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        let is_text = input.is_string();
        let is_read = match self.row.input {
            Input::Text => is_text,
            Input::TextOrIntegers(_) => is_text || input.is_integer(),
            Input::TextOrNumbers => {
                let is_float = matches!(input, DataType::Float32 | DataType::Float64);
                is_text || input.is_integer() || is_float || input.is_decimal()
            }
            Input::Weekday => {
                matches!(input, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
            }
            Input::Hour => is_text || matches!(input, DataType::Timestamp(..)),
        };
        match input {
            _ if !is_read => Err(unsupported(input, wanted(self.row.input))),
            DataType::Timestamp(_, Some(zone)) => Zone::parse(zone).map(|_| DataType::Utf8View),
            _ => Ok(DataType::Utf8View),
        }
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        false
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = self.texts(values)?;
        let mut labels: HashMap<&str, Option<Cow<'static, str>>> = HashMap::new();
        for text in texts.iter().flatten() {
            labels.entry(text).or_insert_with(|| self.label(text));
        }
        match labels.values().filter(|label| label.is_none()).count() {
            0 => {
                let label = |text: Option<&str>| labels.get(text?)?.as_deref();
                Ok(Arc::new(texts.iter().map(label).collect::<StringViewArray>()))
            }
            outside => Err(self.outside(outside)),
        }
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        let Some(text) = self.text(value)? else { return Ok(Value::Null) };
        match (self.row.rule)().label_naively(&text, self.level) {
            Some(label) => Ok(Value::Text(label)),
            None if self.joins_others => Ok(Value::Text(OTHER.to_owned())),
            None => Err(self.outside(1)),
        }
    }

    fn is_label(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Text(text) => {
                (self.joins_others && text == OTHER) || (self.row.rule)().is_label(text, self.level)
            }
            _ => false,
        }
    }

    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String> {
        match (finer as &dyn Any).downcast_ref::<KnownLevel>() {
            Some(finer) if finer.row.doc.name != self.row.doc.name => {
                Err("they come from different known hierarchies".into())
            }
            Some(finer) if finer.joins_others != self.joins_others => {
                Err("`outside` must be the same at all levels".into())
            }
            Some(finer) if finer.level < self.level => Ok(()),
            Some(finer) => Err(format!("level {} is not above level {}", self.level, finer.level)),
            None => Err("a known hierarchy can only follow itself".into()),
        }
    }

    fn uncovered(&self, values: &ArrayRef) -> Result<Vec<usize>> {
        let texts = self.texts(values)?;
        let is_outside = |text: Option<&str>| text.is_some_and(|text| self.label(text).is_none());
        Ok(texts.iter().enumerate().filter(|(_, text)| is_outside(*text)).map(|(row, _)| row).collect())
    }
}
