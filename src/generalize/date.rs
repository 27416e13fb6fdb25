//! `date`: a date becomes the first day of its week, month, quarter, year, decade or century.
//!
//! `f(v) = midnight of the first day of the period that holds v`, in the proleptic Gregorian
//! calendar; the time of day is dropped and values before 1970 round toward the past. Weeks begin
//! on Monday (ISO 8601), the decade 1990 on 1990-01-01, the century 1900 on 1900-01-01 (deviation:
//! historians count from 1901). [`papers::SAMARATI_SWEENEY_1998`] generalizes dates of birth.
//!
//! # Contract
//! `Date32`, `Date64` and timestamps of all units in; the same type out. NULL stays NULL. A
//! timestamp with a time zone becomes the first moment of its local period: midnight there or,
//! where clocks change at midnight, that day's earliest moment. Monotone, except where clocks are
//! set back across midnight. Unknown zones are refused; dates beyond the calendar or the type are
//! refused and counted. 1995-01-01 alone reads as a birthday: [`period`](super::period) writes 1995.
//!
//! ```
//! use arrow::datatypes::TimeUnit;
//! use datafusion_kanon::generalize::{Generalizer, Value, date::{Date, Period}};
//! let year = Date::new(Period::Year);
//! assert_eq!(year.generalize_value(&Value::Date(-1))?, Value::Date(-365)); // 1969-12-31, 1969-01-01
//! let day = Date::new(Period::Day);
//! let (last, first) = (Value::Timestamp(-1, TimeUnit::Second, None), Value::Timestamp(-86_400, TimeUnit::Second, None));
//! assert_eq!(day.generalize_value(&last)?, first);
//! assert_eq!(day.generalize_value(&Value::Null)?, Value::Null);
//! # Ok::<(), datafusion_kanon::error::Error>(())
//! ```

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Weekday};

use super::value::{ticks_per_second, unsupported};
use super::zone::Zone;
use super::{Descriptor, Generalizer, GeneralizerRow, Value, each_level};
use crate::doc::Doc;
use crate::error::{Error, Result, nearest};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Settings};
use crate::plural::plural;

/// The row of [`GENERALIZERS`](super::GENERALIZERS) for this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "date",
        summary: "maps a date to the first day of its week, month, quarter, year, decade or century",
        parameters: "period",
        example: "generalize_date(dob, 'year')",
        paper: Some(papers::SAMARATI_SWEENEY_1998),
    },
    key: Some("date"),
    parameters: &[Parameter {
        name: "period",
        kind: Kind::Levels(&Kind::Choice(&["day", "week", "month", "quarter", "year", "decade", "century"])),
        absent: Absent::Refused,
        summary: "the period whose first day remains",
    }],
    levels: |settings: &Settings| {
        each_level(settings.list("period")?, |period| Ok(Date::new(Period::parse(period.word()?)?)))
    },
};

/// A period of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// Seven days from Monday.
    Week,
    /// A calendar month.
    Month,
    /// Three months from January, April, July or October.
    Quarter,
    /// A calendar year.
    Year,
    /// Ten years, beginning with one that ends in 0.
    Decade,
    /// A hundred years, beginning with one that ends in 00.
    Century,
}

const PERIODS: [(&str, Period); 7] = [
    ("day", Period::Day),
    ("week", Period::Week),
    ("month", Period::Month),
    ("quarter", Period::Quarter),
    ("year", Period::Year),
    ("decade", Period::Decade),
    ("century", Period::Century),
];

impl Period {
    /// Returns the period with this name, in lower case.
    ///
    /// # Errors
    /// A policy error that names the nearest valid names.
    pub fn parse(name: &str) -> Result<Self> {
        PERIODS.iter().find(|(known, _)| *known == name).map(|(_, period)| *period).ok_or_else(|| {
            let names = PERIODS.map(|(known, _)| known);
            Error::policy(format!("unknown period `{name}`; {}", nearest(name, &names)))
        })
    }

    /// Returns the name in a policy.
    pub fn name(self) -> &'static str {
        PERIODS.iter().find(|(_, period)| *period == self).map_or("", |(name, _)| name)
    }
}

/// The generalizer that the [module](self) describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Date {
    pub(super) period: Period,
}

impl Date {
    /// Creates the level of first days of `period`.
    pub fn new(period: Period) -> Self {
        Self { period }
    }

    /// Returns the first day of the period of `day`, as days since 1970; `None` off the calendar.
    pub(super) fn first(&self, day: i64) -> Option<i64> {
        let (year, month) = civil(day)?;
        let first = match self.period {
            Period::Day => day,
            Period::Week => day - (day + 3).rem_euclid(7), // 1970-01-01 was a Thursday
            Period::Month => day_of(year, month),
            Period::Quarter => day_of(year, (month - 1) / 3 * 3 + 1),
            Period::Year => day_of(year, 1),
            Period::Decade => day_of(year - year.rem_euclid(10), 1),
            Period::Century => day_of(year - year.rem_euclid(100), 1),
        };
        (day.abs() < 90_000_000 || civil(first).is_some()).then_some(first)
    }

    /// Does the same naively, with chrono.
    pub(super) fn first_by_calendar(&self, date: NaiveDate) -> Option<NaiveDate> {
        let year = date.year();
        match self.period {
            Period::Day => Some(date),
            Period::Week => date.week(Weekday::Mon).checked_first_day(),
            Period::Month => date.with_day(1),
            Period::Quarter => {
                NaiveDate::from_ymd_opt(year, [1, 4, 7, 10].into_iter().rfind(|m| *m <= date.month())?, 1)
            }
            Period::Year => NaiveDate::from_ymd_opt(year, 1, 1),
            Period::Decade => NaiveDate::from_ymd_opt(year.div_euclid(10) * 10, 1, 1),
            Period::Century => NaiveDate::from_ymd_opt(year.div_euclid(100) * 100, 1, 1),
        }
    }

    /// Returns the first day of the period after the one that begins on `first`.
    fn next(&self, first: i64) -> Option<i64> {
        let longest = match self.period {
            Period::Day => 1,
            Period::Week => 7,
            Period::Month => 31,
            Period::Quarter => 92,
            Period::Year => 366,
            Period::Decade => 3_653,
            Period::Century => 36_525,
        };
        self.first(first.checked_add(longest)?)
    }

    fn column<T>(&self, values: &ArrayRef, ticks_per_day: i64) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i64> + TryFrom<i64>,
    {
        self.column_by::<T>(values, |v| self.first(v.div_euclid(ticks_per_day))?.checked_mul(ticks_per_day))
    }

    /// Generalizes timestamps by the days of their zone.
    fn moments<T>(&self, values: &ArrayRef, unit: TimeUnit, zone: Option<&str>) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType<Native = i64>,
    {
        let ticks = ticks_per_second(unit);
        let Some(zone) = zone else { return self.column::<T>(values, 86_400 * ticks) };
        let zone = Zone::parse(zone)?;
        self.column_by::<T>(values, |v| {
            let first = self.first(zone.day(v.div_euclid(ticks))?)?;
            zone.first_moment(first)?.checked_mul(ticks)
        })
    }

    fn column_by<T>(&self, values: &ArrayRef, first: impl Fn(i64) -> Option<i64>) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i64> + TryFrom<i64>,
    {
        let values = values.as_primitive::<T>();
        let result: PrimitiveArray<T> = values.unary_opt(|v| first(v.into())?.try_into().ok());
        match result.null_count() - values.null_count() {
            0 => Ok(Arc::new(result.with_data_type(values.data_type().clone()))),
            lost => Err(self.outside(lost)),
        }
    }

    pub(super) fn outside(&self, count: usize) -> Error {
        let dates = plural(count as u64, "value is a date", "values are dates");
        let why = "begins or ends outside the range of the calendar or the type";
        Error::data(format!("{dates} whose {} {why}", self.period.name()))
    }
}

/// Returns a date's year and month (Howard Hinnant's `civil_from_days`); `None` off the calendar.
pub(super) fn civil(day: i64) -> Option<(i64, i64)> {
    let day = day.checked_add(719_468)?; // from 0000-03-01, so that a leap day ends its year
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // from March
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    let year = era * 400 + year;
    (i64::from(NaiveDate::MIN.year()) <= year && year <= i64::from(NaiveDate::MAX.year()))
        .then_some((year, month))
}

/// Returns the first day of a month (Howard Hinnant's `days_from_civil`).
pub(super) fn day_of(year: i64, month: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 - 719_468
}

impl Generalizer for Date {
    fn descriptor(&self) -> Descriptor {
        Descriptor::new("date").with(self.period.name())
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        match input {
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None) => Ok(input.clone()),
            DataType::Timestamp(_, Some(zone)) => Zone::parse(zone).map(|_| input.clone()),
            other => Err(unsupported(other, "dates or timestamps")),
        }
    }

    fn keeps_order(&self, input: &DataType) -> bool {
        match input {
            DataType::Timestamp(_, Some(zone)) => Zone::is_fixed(zone),
            _ => true,
        }
    }

    fn preimage_end(&self, input: &DataType, label: &Value) -> Option<Value> {
        match (input, label) {
            (DataType::Date32, Value::Date(day)) => {
                i32::try_from(self.next(i64::from(*day))?).ok().map(Value::Date)
            }
            (DataType::Timestamp(unit, name), Value::Timestamp(tick, ..)) if self.keeps_order(input) => {
                let zone = Zone::parse(name.as_deref().unwrap_or("UTC")).ok()?;
                let ticks = ticks_per_second(*unit);
                let end = zone.first_moment(self.next(zone.day(tick.div_euclid(ticks))?)?)?;
                Some(Value::Timestamp(end.checked_mul(ticks)?, *unit, name.clone()))
            }
            _ => None,
        }
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        match self.output_type(values.data_type())? {
            DataType::Date32 => self.column::<Date32Type>(values, 1),
            DataType::Date64 => self.column::<Date64Type>(values, 86_400_000),
            DataType::Timestamp(unit, zone) => {
                let zone = zone.as_deref();
                match unit {
                    TimeUnit::Second => self.moments::<TimestampSecondType>(values, unit, zone),
                    TimeUnit::Millisecond => self.moments::<TimestampMillisecondType>(values, unit, zone),
                    TimeUnit::Microsecond => self.moments::<TimestampMicrosecondType>(values, unit, zone),
                    TimeUnit::Nanosecond => self.moments::<TimestampNanosecondType>(values, unit, zone),
                }
            }
            other => Err(unsupported(&other, "dates or timestamps")),
        }
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        let epoch = NaiveDate::default(); // 1970-01-01
        let result = match value {
            Value::Null => return Ok(Value::Null),
            Value::Date(days) => TimeDelta::try_days(i64::from(*days))
                .and_then(|since| epoch.checked_add_signed(since))
                .and_then(|date| self.first_by_calendar(date))
                .and_then(|first| i32::try_from((first - epoch).num_days()).ok())
                .map(Value::Date),
            Value::Timestamp(ticks, unit, name) => {
                let zone = Zone::parse(name.as_deref().unwrap_or("UTC"))?;
                DateTime::from_timestamp(ticks.div_euclid(ticks_per_second(*unit)), 0)
                    .and_then(|time| self.first_by_calendar(zone.local(time)?.date()))
                    .and_then(|first| zone.earliest(first))
                    .and_then(|first| first.timestamp().checked_mul(ticks_per_second(*unit)))
                    .map(|first| Value::Timestamp(first, *unit, name.clone()))
            }
            _ => return Err(Error::data("only dates and timestamps have a period")),
        };
        result.ok_or_else(|| self.outside(1))
    }

    fn is_label(&self, value: &Value) -> bool {
        self.generalize_value(value).is_ok_and(|first| first == *value)
    }

    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String> {
        let Some(finer) = (finer as &dyn Any).downcast_ref::<Date>() else {
            return Err("`date` can only follow `date`".into());
        };
        match (finer.period, self.period) {
            (finer, coarser) if coarser <= finer => {
                Err(format!("a {} is not a union of {}s", coarser.name(), finer.name()))
            }
            (Period::Week, coarser) => Err(format!("week cannot be combined with {}", coarser.name())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::*;
    use arrow::compute::cast;
    use proptest::prelude::*;

    use super::*;
    use crate::generalize::apply;
    use crate::generalize::laws_tests::agree;

    fn days(date: &str) -> i32 {
        match date.parse::<NaiveDate>() {
            Ok(date) => (date - NaiveDate::default()).num_days() as i32,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn first_days_by_hand() {
        let cases = [
            (Period::Day, "1969-12-31", "1969-12-31"),
            (Period::Week, "1969-12-31", "1969-12-29"),
            (Period::Month, "1969-12-31", "1969-12-01"),
            (Period::Quarter, "1969-12-31", "1969-10-01"),
            (Period::Decade, "1969-12-31", "1960-01-01"),
            (Period::Century, "1969-12-31", "1900-01-01"),
            (Period::Century, "2000-01-01", "2000-01-01"),
            (Period::Decade, "1999-12-31", "1990-01-01"),
            (Period::Decade, "-0001-06-01", "-0010-01-01"),
            (Period::Month, "2000-02-29", "2000-02-01"),
            (Period::Year, "1900-02-28", "1900-01-01"),
            (Period::Quarter, "2024-03-31", "2024-01-01"),
            (Period::Quarter, "2024-04-01", "2024-04-01"),
            // ISO weeks that belong to two years: 2020-W53 and 2025-W01.
            (Period::Week, "2021-01-03", "2020-12-28"),
            (Period::Week, "2021-01-04", "2021-01-04"),
            (Period::Week, "2025-01-01", "2024-12-30"),
            (Period::Week, "2024-03-02", "2024-02-26"),
        ];
        for (period, date, first) in cases {
            let column: ArrayRef = Arc::new(Date32Array::from(vec![Some(days(date)), None]));
            let expected: ArrayRef = Arc::new(Date32Array::from(vec![Some(days(first)), None]));
            assert_eq!(&agree(&Date::new(period), &column).unwrap(), &expected, "{period:?} of {date}");
        }
    }

    #[test]
    fn time_of_day_is_dropped_and_the_type_stays() {
        let column: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1, 1]).with_timezone("UTC"));
        let expected: ArrayRef =
            Arc::new(TimestampNanosecondArray::from(vec![-86_400_000_000_000, 0]).with_timezone("UTC"));
        assert_eq!(&apply(&Date::new(Period::Day), &column).unwrap(), &expected);
        let column: ArrayRef = Arc::new(Date64Array::from(vec![-1, 86_400_001]));
        let expected: ArrayRef = Arc::new(Date64Array::from(vec![-86_400_000, 86_400_000]));
        assert_eq!(&agree(&Date::new(Period::Day), &column).unwrap(), &expected);
    }

    #[test]
    fn a_zone_has_days_of_its_own() {
        let zone = |zone: &str| DataType::Timestamp(TimeUnit::Second, Some(zone.into()));
        let day = Date::new(Period::Day);
        assert!(
            ["UTC", "+00:00", "Etc/UTC", "Z", "-03:30"].iter().all(|one| day.output_type(&zone(one)).is_ok())
        );
        let unknown = day.output_type(&zone("Mars/Olympus")).unwrap_err().to_string();
        assert!(unknown.contains("of the column; convert the column to UTC first"), "{unknown}");
        assert!(day.output_type(&DataType::Utf8View).is_err());
        // 1969-12-31 23:00 in UTC is 01:00 on the day after, two hours east.
        let moments = |moments: Vec<i64>| -> ArrayRef {
            Arc::new(TimestampMillisecondArray::from(moments).with_timezone("+02:00"))
        };
        let column = moments(vec![-3_600_000, -7_200_001]);
        let days = moments(vec![-7_200_000, -93_600_000]);
        assert_eq!(&agree(&day, &column).unwrap(), &days);
        let years = moments(vec![-7_200_000, -7_200_000 - 365 * 86_400_000]);
        assert_eq!(&agree(&Date::new(Period::Year), &column).unwrap(), &years);
    }

    proptest! {
        #[test]
        fn moments_in_zones_agree_and_nest(
            moments in prop::collection::vec(prop::option::of(-3_000_000_000i64..2_200_000_000), 1..8),
            zone in prop::sample::select(vec![
                "Europe/Berlin", "America/Sao_Paulo", "America/St_Johns", "Pacific/Apia", "Africa/Cairo", "+05:45",
            ]),
        ) {
            let column: ArrayRef = Arc::new(TimestampSecondArray::from(moments).with_timezone(zone));
            for (at, (_, finer)) in PERIODS.iter().enumerate() {
                let fine = agree(&Date::new(*finer), &column).unwrap();
                for (_, coarser) in &PERIODS[at + 1..] {
                    if Date::new(*coarser).check_coarsens(&Date::new(*finer)).is_ok() {
                        let direct = agree(&Date::new(*coarser), &column).unwrap();
                        prop_assert_eq!(&agree(&Date::new(*coarser), &fine).unwrap(), &direct);
                    }
                }
            }
        }
    }

    #[test]
    fn what_the_calendar_or_the_type_cannot_hold_is_counted() {
        let year = Date::new(Period::Year);
        let column: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![i64::MIN, 0, i64::MAX]));
        assert!(agree(&year, &column).is_none()); // 1677-01-01 is before the first nanosecond
        assert!(apply(&year, &column).unwrap_err().to_string().starts_with("1 value is a date whose year"));
        let column: ArrayRef = Arc::new(Date32Array::from(vec![i32::MIN, 0, i32::MAX]));
        assert!(apply(&year, &column).unwrap_err().to_string().starts_with("2 values are dates whose year"));
        let edges = [NaiveDate::MIN, NaiveDate::MAX].map(|d| (d - NaiveDate::default()).num_days() as i32);
        for (edge, out) in edges.into_iter().zip([-1, 1]) {
            for (_, period) in PERIODS {
                for day in [edge, edge + out, edge - out * 7] {
                    agree(&Date::new(period), &(Arc::new(Date32Array::from(vec![day])) as ArrayRef));
                }
            }
        }
    }

    #[test]
    fn levels_are_unions_of_finer_ones() {
        let follows = |coarser, finer| Date::new(coarser).check_coarsens(&Date::new(finer));
        for pair in PERIODS.windows(2) {
            let (finer, coarser) = (pair[0].1, pair[1].1);
            assert_eq!(follows(coarser, finer).is_ok(), finer != Period::Week);
            assert!(follows(finer, coarser).is_err() && follows(finer, finer).is_err());
        }
        assert_eq!(follows(Period::Month, Period::Week), Err("week cannot be combined with month".into()));
        assert!(
            follows(Period::Month, Period::Day).is_ok() && follows(Period::Century, Period::Month).is_ok()
        );
        let words = |word: &'static str| ROW.of(vec![word]);
        for (word, _) in PERIODS {
            assert_eq!(words(word).unwrap()[0].descriptor().to_string(), format!("date:{word}"));
        }
        assert!(words("monht").unwrap_err().to_string().contains("did you mean \"month\"?"));
    }

    proptest! {
        #[test]
        fn dates_agree_and_nest(values in prop::collection::vec(prop::option::of(-2_000_000i32..2_000_000), 0..20)) {
            let values: ArrayRef = Arc::new(Date32Array::from(values));
            for (_, fine) in PERIODS {
                let once = agree(&Date::new(fine), &values).unwrap();
                let wide = cast(&values, &DataType::Date64).unwrap();
                prop_assert_eq!(&cast(&agree(&Date::new(fine), &wide).unwrap(), &DataType::Date32).unwrap(), &once);
                for (_, coarse) in PERIODS {
                    let (fine, coarse) = (Date::new(fine), Date::new(coarse));
                    if coarse.check_coarsens(&fine).is_ok() {
                        prop_assert_eq!(&agree(&coarse, &once).unwrap(), &agree(&coarse, &values).unwrap());
                    }
                }
            }
        }

        #[test]
        fn timestamps_agree(ticks in any::<i64>(), bits in 0u32..40, period in 0usize..7) {
            let (ticks, level) = (ticks >> bits, Date::new(PERIODS[period].1));
            let columns: [ArrayRef; 4] = [
                Arc::new(TimestampSecondArray::from(vec![Some(ticks), None])),
                Arc::new(TimestampMillisecondArray::from(vec![Some(ticks), None])),
                Arc::new(TimestampMicrosecondArray::from(vec![Some(ticks), None])),
                Arc::new(TimestampNanosecondArray::from(vec![Some(ticks), None])),
            ];
            for column in columns {
                agree(&level, &column);
            }
        }

        #[test]
        fn the_order_is_kept(a in -2_000_000i32..2_000_000, b in -2_000_000i32..2_000_000, period in 0usize..7) {
            let level = Date::new(PERIODS[period].1);
            let first = |day: i32| level.first(i64::from(day)).unwrap();
            prop_assert!(first(a.min(b)) <= first(a.max(b)));
            prop_assert!(first(a) <= i64::from(a));
        }
    }
}
