//! `period`: a date becomes the name of its week, month, quarter, year, decade or century.
//!
//! | period | name |
//! |---|---|
//! | day | `1995-03-14` |
//! | week | `1995-W11`, as ISO 8601 counts weeks |
//! | month | `1995-03` |
//! | quarter | `1995-Q1` |
//! | year | `1995` |
//! | decade | `1990s` |
//! | century | `1900-1999` |
//!
//! The periods are those of [`date`](super::date), which shows their first day and keeps the column
//! a date: `1990-01-01` reads as a birthday, `1990s` does not.
//!
//! # Contract
//! `Date32`, `Date64` and timestamps of all units in; text out. NULL stays NULL. A timestamp
//! belongs to the local day of its time zone. Names sort as text like their periods from the year 0
//! to 9999; other years have a sign (`-0044`, `+10000`). Unknown zones are refused; dates beyond
//! the calendar are refused and counted.
//!
//! ```
//! use datafusion_kanon::extend::{Generalizer, Value};
//! use datafusion_kanon::internals::generalize::{date::Period, period::PeriodName};
//! let of = |period, day| PeriodName::new(period).generalize_value(&Value::Date(day));
//! assert_eq!(of(Period::Decade, -1)?, Value::Text("1960s".into())); // 1969-12-31
//! assert_eq!(of(Period::Week, -1)?, Value::Text("1970-W01".into()));
//! assert_eq!(PeriodName::new(Period::Year).generalize_value(&Value::Null)?, Value::Null);
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta};

use super::civil::{date_of, first_day, in_calendar};
use super::date::{Date, Period};
use super::value::ticks_per_second;
use super::zone::Zone;
use super::{Descriptor, Generalizer, GeneralizerRow, Value, each_level};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Settings};

/// The row of [`GENERALIZERS`](super::GENERALIZERS) for this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "period",
        summary: "maps a date to the name of its week, month, quarter, year, decade or century, such as 1990s",
        parameters: "period",
        example: "generalize_period(dob, 'decade')",
        paper: Some(papers::SAMARATI_SWEENEY_1998),
    },
    key: Some("period"),
    parameters: &[Parameter {
        name: "period",
        kind: Kind::Levels(&Kind::Choice(&["day", "week", "month", "quarter", "year", "decade", "century"])),
        absent: Absent::Refused,
        summary: "the period whose name remains",
    }],
    levels: |settings: &Settings| {
        each_level(settings.list("period")?, |period| Ok(PeriodName::new(Period::parse(period.word()?)?)))
    },
};

/// The generalizer that the [module](self) describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodName {
    dates: Date,
}

impl PeriodName {
    /// Creates the level of names of `period`.
    pub fn new(period: Period) -> Self {
        Self { dates: Date::new(period) }
    }

    /// Returns the first day of the period of `day`, both in days since 1970; `None` if the days of
    /// the name are not in the calendar.
    fn first(&self, day: i64) -> Option<i32> {
        let first = self.dates.first(day)?;
        match self.dates.period {
            // A week belongs to the year of its Thursday, and a century has the name of its last year, too.
            Period::Week => in_calendar(i64::from(first) + 3)?,
            Period::Century => in_calendar(first_day(date_of(first).0 + 99, 1).into())?,
            _ => first,
        };
        Some(first)
    }

    /// Returns the name of the period that begins on `first`.
    fn name(&self, first: i32) -> String {
        let (year, month, day) = date_of(first);
        let text = year_text(year);
        match self.dates.period {
            Period::Day => format!("{text}-{month:02}-{day:02}"),
            Period::Week => {
                let (year, ..) = date_of(first + 3);
                format!("{}-W{:02}", year_text(year), (first + 3 - first_day(year, 1)) / 7 + 1)
            }
            Period::Month => format!("{text}-{month:02}"),
            Period::Quarter => format!("{text}-Q{}", month.div_ceil(3)),
            Period::Year => text,
            Period::Decade => format!("{text}s"),
            Period::Century => format!("{text}-{}", year_text(year + 99)),
        }
    }

    /// Returns the first day of the period of each value.
    fn firsts(&self, values: &ArrayRef) -> Result<Int32Array> {
        self.output_type(values.data_type())?;
        let (ticks, zone) = match values.data_type() {
            DataType::Date32 => (1, None),
            DataType::Date64 => (86_400_000, None),
            DataType::Timestamp(unit, Some(zone)) => (ticks_per_second(*unit), Some(Zone::parse(zone)?)),
            DataType::Timestamp(unit, None) => (86_400 * ticks_per_second(*unit), None),
            _ => return Err(Error::internal("period: a type without days")),
        };
        let numbers = match values.data_type() {
            DataType::Date32 => {
                cast(&cast(values, &DataType::Int32).map_err(Error::internal)?, &DataType::Int64)
            }
            _ => cast(values, &DataType::Int64),
        }
        .map_err(Error::internal)?;
        let firsts: Int32Array = numbers.as_primitive::<Int64Type>().unary_opt(|number| {
            let rounded = number.div_euclid(ticks);
            self.first(match &zone {
                Some(zone) => zone.day(rounded)?,
                None => rounded,
            })
        });
        match firsts.null_count() - values.null_count() {
            0 => Ok(firsts),
            lost => Err(self.dates.outside(lost)),
        }
    }

    /// Does the same naively, with chrono.
    fn name_by_calendar(&self, date: NaiveDate) -> Option<String> {
        let first = self.dates.first_by_calendar(date)?;
        Some(match self.dates.period {
            Period::Day => first.format("%Y-%m-%d").to_string(),
            Period::Week => {
                first.checked_add_signed(TimeDelta::days(3))?; // the year that the name shows is in the calendar
                first.format("%G-W%V").to_string()
            }
            Period::Month => first.format("%Y-%m").to_string(),
            Period::Quarter => format!("{}-Q{}", first.format("%Y"), first.month0() / 3 + 1),
            Period::Year => first.format("%Y").to_string(),
            Period::Decade => format!("{}s", first.format("%Y")),
            Period::Century => {
                let last = first.with_year(first.year() + 99)?;
                format!("{}-{}", first.format("%Y"), last.format("%Y"))
            }
        })
    }

    /// Returns a date of the period with this name.
    fn date_of(&self, name: &str) -> Option<NaiveDate> {
        let date = |text: String| NaiveDate::parse_from_str(&text, "%Y-%m-%d").ok();
        match self.dates.period {
            Period::Day => date(name.to_owned()),
            Period::Week => NaiveDate::parse_from_str(&format!("{name}-1"), "%G-W%V-%u").ok(),
            Period::Month => date(format!("{name}-01")),
            Period::Quarter => {
                let (year, quarter) = name.split_once("-Q")?;
                date(format!(
                    "{year}-{}-01",
                    ["01", "04", "07", "10"].get(quarter.parse::<usize>().ok()?.checked_sub(1)?)?
                ))
            }
            Period::Year => date(format!("{name}-01-01")),
            Period::Decade => date(format!("{}-01-01", name.strip_suffix('s')?)),
            // The last year has a sign, too, and may have a digit less.
            Period::Century => {
                let dashes = name.match_indices('-').map(|(at, _)| at);
                dashes.filter_map(|at| date(format!("{}-01-01", name.get(..at)?))).next()
            }
        }
    }
}

/// Writes a year with four digits at least, and with a sign where chrono writes one.
fn year_text(year: i32) -> String {
    match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{year:+05}"),
    }
}

impl Generalizer for PeriodName {
    fn descriptor(&self) -> Descriptor {
        Descriptor::new("period").with(self.dates.period.name())
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        self.dates.output_type(input).map(|_| DataType::Utf8View)
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        false
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let firsts = self.firsts(values)?;
        Ok(Arc::new(
            firsts.iter().map(|first| first.map(|first| self.name(first))).collect::<StringViewArray>(),
        ))
    }

    /// Returns the first days of the periods, counted from 1970.
    fn codes(&self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(Arc::new(self.firsts(values)?))
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        let date = match value {
            Value::Null => return Ok(Value::Null),
            Value::Date(days) => TimeDelta::try_days(i64::from(*days))
                .and_then(|since| NaiveDate::default().checked_add_signed(since)),
            Value::Timestamp(ticks, unit, name) => {
                let zone = Zone::parse(name.as_deref().unwrap_or("UTC"))?;
                DateTime::from_timestamp(ticks.div_euclid(ticks_per_second(*unit)), 0)
                    .and_then(|time| Some(zone.local(time)?.date()))
            }
            _ => return Err(Error::data("only dates and timestamps have a period")),
        };
        let name = date.and_then(|date| self.name_by_calendar(date));
        name.map(Value::Text).ok_or_else(|| self.dates.outside(1))
    }

    fn is_label(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Text(name) => {
                self.date_of(name).and_then(|date| self.name_by_calendar(date)).as_ref() == Some(name)
            }
            _ => false,
        }
    }

    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String> {
        match (finer as &dyn Any).downcast_ref::<Self>() {
            Some(finer) => self.dates.check_coarsens(&finer.dates),
            None => Err("`period` can only follow `period`".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::*;
    use arrow::datatypes::TimeUnit;
    use proptest::prelude::*;

    use super::*;
    use crate::generalize::laws_tests::agree;

    fn named(period: Period, date: &str) -> String {
        let day = (date.parse::<NaiveDate>().unwrap() - NaiveDate::default()).num_days();
        let level = PeriodName::new(period);
        let name = level.name(level.first(day).unwrap());
        let value = PeriodName::new(period).generalize_value(&Value::Date(day as i32)).unwrap();
        assert_eq!(value, Value::Text(name.clone()));
        assert!(PeriodName::new(period).is_label(&value), "{name}");
        name
    }

    #[test]
    fn names_by_hand() {
        let cases = [
            (Period::Day, "1969-12-31", "1969-12-31"),
            (Period::Week, "2021-01-03", "2020-W53"),
            (Period::Week, "2019-12-30", "2020-W01"),
            (Period::Week, "1995-03-14", "1995-W11"),
            (Period::Month, "1995-12-31", "1995-12"),
            (Period::Quarter, "1995-04-01", "1995-Q2"),
            (Period::Quarter, "1995-12-31", "1995-Q4"),
            (Period::Year, "0044-03-15", "0044"),
            (Period::Year, "-0044-03-15", "-0044"),
            (Period::Decade, "1939-12-31", "1930s"),
            (Period::Decade, "-0001-01-01", "-0010s"),
            (Period::Century, "1905-06-01", "1900-1999"),
            (Period::Century, "-0005-06-01", "-0100--0001"),
            (Period::Century, "-9950-06-01", "-10000--9901"),
            (Period::Century, "+9950-06-01", "9900-9999"),
            (Period::Century, "+10005-06-01", "+10000-+10099"),
        ];
        for (period, date, name) in cases {
            assert_eq!(named(period, date), name, "{period:?} of {date}");
        }
    }

    #[test]
    fn labels_are_names_of_this_period() {
        let is_label = |period, text: &str| PeriodName::new(period).is_label(&Value::Text(text.to_owned()));
        assert!(is_label(Period::Quarter, "1995-Q4") && is_label(Period::Decade, "1990s"));
        assert!(is_label(Period::Century, "1900-1999") && is_label(Period::Week, "2020-W53"));
        for (period, text) in [
            (Period::Quarter, "1995-Q5"),
            (Period::Quarter, "1995-Q0"),
            (Period::Quarter, "1995-Q+1"),
            (Period::Decade, "1995s"),
            (Period::Decade, "1990"),
            (Period::Century, "1900-1998"),
            (Period::Century, "1900"),
            (Period::Century, ""),
            (Period::Week, "2021-W53"),
            (Period::Month, "1995-1"),
            (Period::Year, "995"),
            (Period::Year, " 1995"),
            (Period::Day, "1995-02-30"),
        ] {
            assert!(!is_label(period, text), "{period:?} {text:?}");
        }
        assert!(!PeriodName::new(Period::Year).is_label(&Value::Int(1995)));
    }

    #[test]
    fn types_and_zones() {
        let name = |values: ArrayRef| {
            let names = PeriodName::new(Period::Day).generalize(&values).unwrap();
            names.as_string_view().value(0).to_owned()
        };
        // 1995-03-14 23:30 UTC.
        let seconds = 795_223_800_i64;
        assert_eq!(name(Arc::new(Date32Array::from(vec![9_203]))), "1995-03-14");
        assert_eq!(name(Arc::new(Date64Array::from(vec![seconds * 1_000]))), "1995-03-14");
        let moments = TimestampSecondArray::from(vec![seconds]);
        assert_eq!(name(Arc::new(moments.clone())), "1995-03-14");
        assert_eq!(name(Arc::new(moments.with_timezone("Europe/Berlin"))), "1995-03-15");
        let refused =
            |values: ArrayRef| PeriodName::new(Period::Year).generalize(&values).unwrap_err().to_string();
        assert!(refused(Arc::new(Int64Array::from(vec![1]))).contains("dates or timestamps"));
        assert_eq!(
            refused(Arc::new(Date64Array::from(vec![Some(i64::MAX), None]))),
            "1 value is a date whose year begins or ends outside the range of the calendar or the type"
        );
    }

    #[test]
    fn levels_follow_periods_that_they_hold() {
        let year = PeriodName::new(Period::Year);
        assert!(year.check_coarsens(&PeriodName::new(Period::Quarter)).is_ok());
        assert!(year.check_coarsens(&PeriodName::new(Period::Week)).is_err());
        assert!(year.check_coarsens(&PeriodName::new(Period::Decade)).is_err());
        assert!(year.check_coarsens(&Date::new(Period::Quarter)).unwrap_err().contains("`period`"));
    }

    proptest! {
        #[test]
        fn both_ways_agree(
            days in proptest::collection::vec(proptest::option::of(-4_000_000_i32..4_000_000), 1..40),
            period in proptest::sample::select(vec![
                Period::Day, Period::Week, Period::Month, Period::Quarter, Period::Year, Period::Decade, Period::Century,
            ]),
        ) {
            let level = PeriodName::new(period);
            let dates: ArrayRef = Arc::new(Date32Array::from(days.clone()));
            agree(&level, &dates);
            let seconds = days.iter().map(|day| day.map(|day| i64::from(day) * 21_601));
            let moments: ArrayRef = Arc::new(TimestampSecondArray::from_iter(seconds).with_timezone("America/Havana"));
            prop_assert_eq!(moments.data_type(), &DataType::Timestamp(TimeUnit::Second, Some("America/Havana".into())));
            agree(&level, &moments);
            let names = level.generalize(&dates).unwrap();
            for row in 0..names.len() {
                prop_assert!(level.is_label(&Value::read(&names, row).unwrap()));
            }
            // Two dates have one name exactly when they have one first day.
            let firsts = Date::new(period).generalize(&dates).unwrap();
            for a in 0..names.len() {
                for b in 0..a {
                    prop_assert_eq!(
                        Value::read(&names, a).unwrap() == Value::read(&names, b).unwrap(),
                        Value::read(&firsts, a).unwrap() == Value::read(&firsts, b).unwrap()
                    );
                }
            }
        }
    }
}
