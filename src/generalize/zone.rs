//! Time zones: the local day of a moment and the first moment of a local day.
//!
//! Clock changes at midnight make days without a midnight (the first moment is then the change
//! itself), days with two midnights (the earlier one counts) and days that a place skipped. Zone
//! names need arrow's feature `chrono-tz`.
//!
//! The columnar way asks for the offset of a moment, the naive way which moment shows a local time.

use arrow::array::timezone::Tz;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc};

use crate::error::{Error, Result};

const DAY: i64 = 86_400;

/// A time zone; `None` is UTC.
pub(super) struct Zone(Option<Tz>);

impl Zone {
    /// Parses the name of a zone, such as `Europe/Berlin` or `+02:00`.
    ///
    /// # Errors
    /// A data error when there is no such zone.
    pub(super) fn parse(name: &str) -> Result<Self> {
        if matches!(name, "UTC" | "Etc/UTC" | "Z") {
            return Ok(Self(None));
        }
        let zone = name.parse().map_err(|_| {
            Error::data(format!("unknown time zone {name:?} of the column; convert the column to UTC first"))
        })?;
        Ok(Self(Some(zone)))
    }

    /// Returns whether the named zone never changes its clocks: UTC and offsets such as `+02:00`.
    pub(super) fn is_fixed(name: &str) -> bool {
        matches!(name, "UTC" | "Etc/UTC" | "Z") || name.starts_with(['+', '-'])
    }

    /// Returns whether it is UTC by one of its names.
    pub(super) fn is_utc(&self) -> bool {
        self.0.is_none()
    }

    /// Returns local time minus UTC at a moment, in seconds; `None` outside the calendar.
    fn offset(&self, moment: i64) -> Option<i64> {
        let Some(zone) = &self.0 else { return Some(0) };
        let utc = DateTime::from_timestamp(moment, 0)?.naive_utc();
        Some(i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc()))
    }

    /// Returns the local day of a moment, both counted from 1970-01-01; `None` outside the
    /// calendar.
    pub(super) fn day(&self, moment: i64) -> Option<i64> {
        Some(moment.checked_add(self.offset(moment)?)?.div_euclid(DAY))
    }

    /// Returns the local time of a moment in seconds since 1970-01-01 00:00; `None` outside the
    /// calendar.
    pub(super) fn local_seconds(&self, moment: i64) -> Option<i64> {
        DateTime::from_timestamp(moment, 0)?;
        moment.checked_add(self.offset(moment)?)
    }

    /// Returns the first moment of a local day, or of the next day that the place had; `None`
    /// outside the calendar.
    pub(super) fn first_moment(&self, day: i64) -> Option<i64> {
        let midnight = day.checked_mul(DAY)?;
        let (mut before, mut after) = (midnight.checked_sub(DAY)?, midnight.checked_add(DAY)?);
        let (earlier, later) = (self.offset(before)?, self.offset(after)?);
        for offset in [earlier, later] {
            if self.offset(midnight - offset)? == offset {
                return Some(midnight - offset);
            }
        }
        // No clock showed this midnight, so the first moment is the change of the clocks.
        while after - before > 1 {
            let between = before + (after - before) / 2;
            if self.offset(between)? == earlier {
                before = between;
            } else {
                after = between;
            }
        }
        Some(after)
    }

    /// Returns the local time of a moment, computed naively; `None` outside the calendar.
    pub(super) fn local(&self, moment: DateTime<Utc>) -> Option<NaiveDateTime> {
        let Some(zone) = &self.0 else { return Some(moment.naive_utc()) };
        moment.naive_utc().checked_add_offset(moment.with_timezone(zone).offset().fix())
    }

    /// Returns the first moment of a local date, found naively by trying every second from midnight
    /// on.
    pub(super) fn earliest(&self, date: NaiveDate) -> Option<DateTime<Utc>> {
        let midnight = date.and_time(NaiveTime::MIN);
        let Some(zone) = &self.0 else { return Some(midnight.and_utc()) };
        (0..2 * DAY).find_map(|second| {
            let local = midnight.checked_add_signed(TimeDelta::try_seconds(second)?)?;
            let moments = zone.from_local_datetime(&local);
            let moments = moments.earliest().into_iter().chain(moments.latest()).map(|time| time.to_utc());
            moments.into_iter().find(|moment| self.local(*moment) == Some(local))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places whose clocks changed at midnight, twice, by a whole day, by odd amounts, or never.
    const PLACES: [&str; 26] = [
        "UTC",
        "+05:30",
        "-09:30",
        "Europe/Berlin",
        "Europe/Dublin",
        "Europe/Lisbon",
        "America/New_York",
        "America/Sao_Paulo",
        "America/Havana",
        "America/Asuncion",
        "America/Santiago",
        "America/St_Johns",
        "America/Scoresbysund",
        "America/Godthab",
        "Africa/Cairo",
        "Africa/Casablanca",
        "Asia/Amman",
        "Asia/Beirut",
        "Asia/Tehran",
        "Asia/Gaza",
        "Asia/Kathmandu",
        "Australia/Lord_Howe",
        "Antarctica/Troll",
        "Pacific/Apia",
        "Pacific/Kiritimati",
        "Pacific/Kwajalein",
    ];

    fn at(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp()
    }

    fn day(text: &str) -> i64 {
        (text.parse::<NaiveDate>().unwrap() - NaiveDate::default()).num_days()
    }

    #[test]
    fn days_by_hand() {
        for (place, date, moment) in [
            ("Europe/Berlin", "2024-07-01", "2024-07-01T00:00:00+02:00"),
            ("Europe/Berlin", "2024-03-31", "2024-03-31T00:00:00+01:00"),
            ("+05:30", "1969-12-31", "1969-12-31T00:00:00+05:30"),
            // Clocks went from 23:59:59 to 01:00:00, and from 23:59:59 back to 23:00:00.
            ("America/Sao_Paulo", "2018-11-04", "2018-11-04T01:00:00-02:00"),
            ("America/Sao_Paulo", "2018-02-18", "2018-02-18T00:00:00-03:00"),
            // At 00:01 back to 23:01: the day began twice.
            ("America/St_Johns", "2006-10-29", "2006-10-29T00:00:00-02:30"),
            // Samoa had no 30 December 2011.
            ("Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00"),
            ("Pacific/Apia", "2011-12-31", "2011-12-31T00:00:00+14:00"),
        ] {
            let zone = Zone::parse(place).unwrap();
            assert_eq!(zone.first_moment(day(date)), Some(at(moment)), "{place} {date}");
        }
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        assert_eq!(berlin.day(at("2024-06-30T22:00:00Z")), Some(day("2024-07-01")));
        assert_eq!(berlin.day(at("2024-06-30T21:59:59Z")), Some(day("2024-06-30")));
        let unknown = Zone::parse("Mars/Olympus").err().unwrap().to_string();
        assert!(unknown.starts_with("unknown time zone \"Mars/Olympus\" of the column"), "{unknown}");
    }

    #[test]
    fn both_ways_agree_around_every_change_of_clocks() {
        let mut changes = 0;
        for place in PLACES {
            let zone = Zone::parse(place).unwrap();
            let mut offset = None;
            for day in day("1850-01-01")..day("2040-01-01") {
                let now = zone.offset(day * DAY).unwrap();
                if offset.replace(now).is_none_or(|before| before == now) {
                    continue;
                }
                changes += 1;
                for day in day - 3..day + 4 {
                    let date = NaiveDate::default() + TimeDelta::days(day);
                    let first = zone.first_moment(day).unwrap();
                    assert_eq!(zone.earliest(date).unwrap().timestamp(), first, "{place} {date}");
                    // It is the first one: nothing before it is of that day or later, it itself is.
                    assert!(zone.day(first).unwrap() >= day, "{place} {date}");
                    for earlier in [1, 60, 1_800, 3_600, 7_200, 86_400] {
                        let before = zone.day(first - earlier).unwrap();
                        assert!(before < day, "{place} {date}: {earlier} seconds before");
                    }
                    for later in (0..90_000).step_by(600) {
                        let moment = DateTime::from_timestamp(first + later, 0).unwrap();
                        let local = (zone.local(moment).unwrap().date() - NaiveDate::default()).num_days();
                        assert_eq!(zone.day(first + later), Some(local), "{place} {date}");
                    }
                }
            }
        }
        assert!(changes > 2_000, "{changes}");
    }
}
