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
//! use datafusion_kanon::internals::generalize::{Generalizer, Value, date::{Date, Period}};
//! let year = Date::new(Period::Year);
//! assert_eq!(year.generalize_value(&Value::Date(-1))?, Value::Date(-365)); // 1969-12-31, 1969-01-01
//! let day = Date::new(Period::Day);
//! let (last, first) = (Value::Timestamp(-1, TimeUnit::Second, None), Value::Timestamp(-86_400, TimeUnit::Second, None));
//! assert_eq!(day.generalize_value(&last)?, first);
//! assert_eq!(day.generalize_value(&Value::Null)?, Value::Null);
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::any::Any;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowNumericType, ArrowPrimitiveType, AsArray, PrimitiveArray,
};
use arrow::compute::{max, min};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Weekday};

use super::civil::{date_of, first_day, in_calendar, nearest_day};
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

    /// Returns the first day of the period of a day of the calendar; it may lie before the calendar.
    #[inline]
    fn first(self, day: i32) -> i32 {
        let (year, month, day_of_month) = date_of(day);
        match self {
            Period::Day => day,
            Period::Week => day - (day + 3).rem_euclid(7), // 1970-01-01 was a Thursday
            Period::Month => day - day_of_month + 1,
            Period::Quarter => first_day(year, (month - 1) / 3 * 3 + 1),
            Period::Year => first_day(year, 1),
            Period::Decade => first_day(year - year.rem_euclid(10), 1),
            Period::Century => first_day(year - year.rem_euclid(100), 1),
        }
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
    pub(super) fn first(&self, day: i64) -> Option<i32> {
        in_calendar(self.period.first(in_calendar(day)?).into())
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
    fn next(&self, first: i64) -> Option<i32> {
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

    /// Generalizes values that count days in so many ticks.
    fn column<T, const TICKS: i64>(&self, values: &ArrayRef) -> Result<ArrayRef>
    where
        T: ArrowNumericType,
        T::Native: Into<i64> + TryFrom<i64> + Default,
    {
        let first = |v: T::Native| i64::from(self.first(v.into().div_euclid(TICKS))?).checked_mul(TICKS);
        let fits = |v: T::Native| first(v).is_some_and(|first| T::Native::try_from(first).is_ok());
        let dates = values.as_primitive::<T>();
        let ends = [min(dates), max(dates)];
        // Later days have later first days: if the least and the greatest value have one, so have
        // all between.
        if !ends.into_iter().flatten().all(fits) {
            return self.column_by::<T>(values, first);
        }
        let few = ends[0].zip(ends[1]).and_then(|ends| self.few_firsts::<T, TICKS>(ends));
        // A loop for each period does no work of the others.
        let result = match self.period {
            _ if let Some(firsts) = few => by_comparison(dates, &firsts),
            Period::Day => unary::<T, TICKS>(dates, |day| Period::Day.first(day)),
            Period::Week => unary::<T, TICKS>(dates, |day| Period::Week.first(day)),
            Period::Month => unary::<T, TICKS>(dates, |day| Period::Month.first(day)),
            Period::Quarter => unary::<T, TICKS>(dates, |day| Period::Quarter.first(day)),
            Period::Year => unary::<T, TICKS>(dates, |day| Period::Year.first(day)),
            Period::Decade => unary::<T, TICKS>(dates, |day| Period::Decade.first(day)),
            Period::Century => unary::<T, TICKS>(dates, |day| Period::Century.first(day)),
        };
        Ok(Arc::new(result.with_data_type(values.data_type().clone())))
    }

    /// Returns the first moments of the periods from that of the least value to that of the greatest;
    /// `None` if they are more than [`FEW`].
    fn few_firsts<T, const TICKS: i64>(
        &self,
        (least, greatest): (T::Native, T::Native),
    ) -> Option<Vec<T::Native>>
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i64> + TryFrom<i64>,
    {
        let [mut first, last] = [least, greatest].map(|value| self.first(value.into().div_euclid(TICKS)));
        let mut firsts = Vec::with_capacity(FEW);
        while firsts.len() < FEW {
            let moment = i64::from(first?).checked_mul(TICKS)?;
            firsts.push(T::Native::try_from(moment).ok()?);
            if first >= last {
                return Some(firsts);
            }
            first = self.next(i64::from(first?));
        }
        None
    }

    /// Generalizes timestamps by the days of their zone.
    fn moments<T, const TICKS_PER_DAY: i64>(&self, values: &ArrayRef, zone: Option<&str>) -> Result<ArrayRef>
    where
        T: ArrowNumericType<Native = i64>,
    {
        let zone = Zone::parse(zone.unwrap_or("UTC"))?;
        if zone.is_utc() {
            return self.column::<T, TICKS_PER_DAY>(values);
        }
        let ticks = TICKS_PER_DAY / 86_400;
        self.column_by::<T>(values, |v| {
            let first = self.first(zone.day(v.div_euclid(ticks))?)?;
            zone.first_moment(first.into())?.checked_mul(ticks)
        })
    }

    /// Maps every value through a function, and counts the values without a result.
    fn column_by<T>(&self, values: &ArrayRef, first: impl Fn(T::Native) -> Option<i64>) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: TryFrom<i64>,
    {
        let values = values.as_primitive::<T>();
        let result: PrimitiveArray<T> = values.unary_opt(|v| first(v)?.try_into().ok());
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

/// The greatest number of periods for which values are compared with the first moment of each, which is
/// faster than calendar arithmetic.
const FEW: usize = 8;

/// Maps each value to the last of the ascending `firsts` that is not after it.
fn by_comparison<T>(values: &PrimitiveArray<T>, firsts: &[T::Native]) -> PrimitiveArray<T>
where
    T: ArrowPrimitiveType,
{
    let mut reached = vec![firsts.first().copied().unwrap_or_default(); values.len()];
    for first in firsts.iter().skip(1) {
        for (reached, value) in reached.iter_mut().zip(values.values()) {
            *reached = if value.is_ge(*first) { *first } else { *reached };
        }
    }
    PrimitiveArray::new(reached.into(), values.nulls().cloned())
}

/// Maps the day of each value to the first of its period; where a value is NULL, any number may stand.
fn unary<T, const TICKS: i64>(values: &PrimitiveArray<T>, first: impl Fn(i32) -> i32) -> PrimitiveArray<T>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i64> + TryFrom<i64> + Default,
{
    values.unary(|v| {
        let first = first(nearest_day(v.into().div_euclid(TICKS)));
        i64::from(first).wrapping_mul(TICKS).try_into().unwrap_or_default()
    })
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
            (DataType::Date32, Value::Date(day)) => self.next(i64::from(*day)).map(Value::Date),
            (DataType::Timestamp(unit, name), Value::Timestamp(tick, ..)) if self.keeps_order(input) => {
                let zone = Zone::parse(name.as_deref().unwrap_or("UTC")).ok()?;
                let ticks = ticks_per_second(*unit);
                let end = zone.first_moment(self.next(zone.day(tick.div_euclid(ticks))?)?.into())?;
                Some(Value::Timestamp(end.checked_mul(ticks)?, *unit, name.clone()))
            }
            _ => None,
        }
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        match self.output_type(values.data_type())? {
            DataType::Date32 => self.column::<Date32Type, 1>(values),
            DataType::Date64 => self.column::<Date64Type, 86_400_000>(values),
            DataType::Timestamp(unit, zone) => {
                let zone = zone.as_deref();
                match unit {
                    TimeUnit::Second => self.moments::<TimestampSecondType, 86_400>(values, zone),
                    TimeUnit::Millisecond => {
                        self.moments::<TimestampMillisecondType, 86_400_000>(values, zone)
                    }
                    TimeUnit::Microsecond => {
                        self.moments::<TimestampMicrosecondType, 86_400_000_000>(values, zone)
                    }
                    TimeUnit::Nanosecond => {
                        self.moments::<TimestampNanosecondType, 86_400_000_000_000>(values, zone)
                    }
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
#[path = "date_tests.rs"]
mod tests;
