//! The proleptic Gregorian calendar in integers: days since 1970-01-01 to years, months and days of
//! the month, and back.
//!
//! Howard Hinnant's `civil_from_days` and `days_from_civil`. They count years from March on, so
//! that a leap day is the last day of its year. Deviation: years and days are counted from a March
//! far enough in the past that no date of the calendar is before it, so that all divisions are of
//! 32-bit numbers without a sign.

/// The days of 400 years, and how many times 400 years before the year 0 the count begins.
const ERA: u32 = 146_097;
const ERAS: u32 = 700;
/// From the first day of the count to 1970-01-01, and from its first year to the year 0.
const DAYS: u32 = ERAS * ERA + 719_468;
const YEARS: u32 = ERAS * 400;

/// The first and the last day of the calendar, those of chrono: -262143-01-01 and +262142-12-31.
pub(super) const FIRST_DAY: i32 = -96_465_292;
pub(super) const LAST_DAY: i32 = 95_026_236;

/// Returns a day of the calendar; `None` for others.
pub(super) fn in_calendar(day: i64) -> Option<i32> {
    i32::try_from(day).ok().filter(|day| (FIRST_DAY..=LAST_DAY).contains(day))
}

/// Returns the day of the calendar that is nearest to `day`.
pub(super) fn nearest_day(day: i64) -> i32 {
    i32::try_from(day.clamp(FIRST_DAY.into(), LAST_DAY.into())).unwrap_or_default()
}

/// Returns the year, the month and the day of the month of a day of the calendar.
#[inline]
pub(super) fn date_of(day: i32) -> (i32, u32, i32) {
    let day = day.cast_unsigned().wrapping_add(DAYS);
    let century = (4 * day + 3) / ERA;
    let quarters = ((4 * day + 3) % ERA) | 3; // four times the days since the century began, and 3
    let year = quarters / 1_461;
    let day = quarters % 1_461 / 4;
    let month = (5 * day + 2) / 153; // 0 is March
    let day = day - (153 * month + 2) / 5 + 1;
    let year = 100 * century + year;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (year.wrapping_sub(YEARS).cast_signed(), month, day.cast_signed())
}

/// Returns the first day of a month; the year may lie a century outside the calendar.
#[inline]
pub(super) fn first_day(year: i32, month: u32) -> i32 {
    let year = year.cast_unsigned().wrapping_add(YEARS);
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let century = year / 100;
    let day = 1_461 * year / 4 - century + century / 4 + (153 * month + 2) / 5;
    day.wrapping_sub(DAYS).cast_signed()
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate, TimeDelta};
    use proptest::prelude::*;

    use super::*;

    /// The date by chrono.
    fn date(day: i32) -> Option<NaiveDate> {
        NaiveDate::default().checked_add_signed(TimeDelta::try_days(i64::from(day))?)
    }

    fn agree(day: i32) {
        let date = date(day);
        assert_eq!(in_calendar(day.into()), date.map(|_| day), "{day}");
        if let Some(date) = date {
            assert_eq!(date_of(day), (date.year(), date.month(), date.day() as i32), "{day}");
            let first = date.with_day(1).unwrap() - NaiveDate::default();
            assert_eq!(i64::from(first_day(date.year(), date.month())), first.num_days(), "{day}");
        }
    }

    #[test]
    fn the_calendar_is_that_of_chrono() {
        let days = [NaiveDate::MIN, NaiveDate::MAX].map(|date| (date - NaiveDate::default()).num_days());
        assert_eq!(days, [FIRST_DAY, LAST_DAY].map(i64::from));
        for day in [i64::MIN, i64::from(FIRST_DAY) - 1, i64::from(LAST_DAY) + 1, i64::MAX] {
            assert_eq!(in_calendar(day), None);
        }
        assert_eq!([i64::MIN, -1, i64::MAX].map(nearest_day), [FIRST_DAY, -1, LAST_DAY]);
        // Four hundred years by day, and all days at both ends, and around each new century.
        (-150_000..150_000).for_each(agree);
        (0..3_000)
            .flat_map(|day| [i32::MIN + day, FIRST_DAY - 1 + day, LAST_DAY + 1 - day, i32::MAX - day])
            .for_each(agree);
        for century in -2_621..=2_621 {
            let new_year = first_day(century * 100, 1);
            (new_year - 2..new_year + 62).for_each(agree);
        }
        // A decade or century of the first years begins before the calendar.
        assert_eq!(first_day(-262_143 - 100, 1), FIRST_DAY - 36_524);
    }

    proptest! {
        #[test]
        fn days_agree(day in any::<i32>(), near in FIRST_DAY..=LAST_DAY) {
            agree(day);
            agree(near);
        }
    }
}
