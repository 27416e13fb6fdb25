//! `[input]` `date_format`, `decimal` and `thousands`: how the cells of a file write dates and numbers.
//!
//! Cells are brought into the forms that the engine reads, `2020-12-31T23:59:00` and `1234.5`.
//! Verification does this by code of its own (`plain_values`).

use chrono::{NaiveDate, NaiveTime};

use crate::error::{Error, Result};

/// The formats of dates that `kanon init` tries, each also with a time after a space.
pub const DATE_FORMATS: [&str; 9] = [
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%b-%Y",
    "%d %b %Y",
];

/// The times that may follow a date.
pub const TIMES_OF_DAY: [&str; 3] = ["", " %H:%M", " %H:%M:%S"];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A way to write dates: `%d.%m.%Y`, `%m/%d/%Y %H:%M`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Number(Unit),
    /// The first three letters of the month's English name.
    MonthName,
    Literal(char),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

impl DateFormat {
    /// Reads a format; it must say the day, the month and the year.
    ///
    /// # Errors
    /// A policy error that lists what a format may hold.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            let known = "%d day, %m month, %b its English short name, %Y year, %H hour, %M minute, %S second";
            Err(Error::policy(format!("{why}; a format such as \"%d.%m.%Y\" holds: {known}")))
        };
        let mut parts = Vec::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            parts.push(match letter {
                '%' => match letters.next() {
                    Some('d') => Part::Number(Unit::Day),
                    Some('m') => Part::Number(Unit::Month),
                    Some('b') => Part::MonthName,
                    Some('Y') => Part::Number(Unit::Year),
                    Some('H') => Part::Number(Unit::Hour),
                    Some('M') => Part::Number(Unit::Minute),
                    Some('S') => Part::Number(Unit::Second),
                    Some('y') => {
                        return wrong("years of two digits may be of two centuries: write the years in full");
                    }
                    Some(other) => return wrong(&format!("`%{other}` is not known")),
                    None => return wrong("a `%` ends it"),
                },
                letter if letter.is_ascii_digit() => {
                    return wrong("a digit of its own could be a part of a number");
                }
                letter => Part::Literal(letter),
            });
        }
        let count = |unit| parts.iter().filter(|part| **part == Part::Number(unit)).count();
        let months = count(Unit::Month) + parts.iter().filter(|part| **part == Part::MonthName).count();
        if (count(Unit::Year), months, count(Unit::Day)) != (1, 1, 1) {
            return wrong("it must say the day, the month and the year, each once");
        }
        let time = (count(Unit::Hour), count(Unit::Minute), count(Unit::Second));
        match time {
            (0, 0, 0) | (1, 1, 0 | 1) => Ok(Self { text: text.to_owned(), parts }),
            _ => wrong("a time needs the hour and the minute, each once"),
        }
    }

    /// Returns the format as the policy says it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether another format is the same with day and month swapped, so that both read the
    /// same texts as other days.
    pub(crate) fn is_swapped_form_of(&self, other: &Self) -> bool {
        let swapped = |part: &Part| match part {
            Part::Number(Unit::Day) => Part::Number(Unit::Month),
            Part::Number(Unit::Month) => Part::Number(Unit::Day),
            other => *other,
        };
        self.parts != other.parts && self.parts.iter().map(swapped).eq(other.parts.iter().copied())
    }

    /// Returns whether it says a time of day.
    pub fn has_time(&self) -> bool {
        self.parts.contains(&Part::Number(Unit::Hour))
    }

    /// Returns the date or moment of a cell in ISO form; `None` for a cell that is not written like this.
    pub fn iso(&self, cell: &str) -> Option<String> {
        let mut rest = cell;
        let mut found = [0; 6];
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(letter) => rest = rest.strip_prefix(*letter)?,
                Part::MonthName => {
                    let name = rest.get(..3)?.to_ascii_lowercase();
                    let month = MONTHS.iter().zip(1..).find(|(known, _)| **known == name)?.1;
                    (found[Unit::Month as usize], rest) = (month, rest.get(3..)?);
                }
                Part::Number(unit) => {
                    let is_number = |at: Option<usize>| {
                        at.is_some_and(|at| matches!(self.parts.get(at), Some(Part::Number(_))))
                    };
                    let stands_alone = !is_number(at.checked_sub(1)) && !is_number(Some(at + 1));
                    let lengths = match unit {
                        Unit::Year => 4..=4,
                        _ if stands_alone => 1..=2,
                        _ => 2..=2,
                    };
                    let digits = rest.bytes().take(*lengths.end()).take_while(u8::is_ascii_digit).count();
                    if !lengths.contains(&digits) {
                        return None;
                    }
                    let (number, after) = rest.split_at(digits);
                    (found[*unit as usize], rest) = (number.parse().ok()?, after);
                }
            }
        }
        let [year, month, day, hour, minute, second] = found;
        let date =
            NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day).filter(|_| rest.is_empty())?;
        let time = NaiveTime::from_hms_opt(hour, minute, second)?;
        Some(if self.has_time() { format!("{date}T{time}") } else { date.to_string() })
    }
}

/// Date formats with years of two digits, which do not tell the century.
#[derive(Debug, Clone)]
pub struct ShortYears(Vec<DateFormat>);

impl ShortYears {
    /// Creates the test from all [`DATE_FORMATS`] that end with the year.
    ///
    /// # Errors
    /// None, as the formats are known.
    pub fn new() -> Result<Self> {
        let formats = DATE_FORMATS.iter().filter(|format| format.ends_with("%Y"));
        Ok(Self(formats.map(|format| DateFormat::parse(format)).collect::<Result<_>>()?))
    }

    /// Returns whether a cell is such a date, perhaps with a time after it.
    pub fn fits(&self, cell: &str) -> bool {
        let date = match cell.rsplit_once(' ') {
            Some((date, time)) if time.contains(':') => date,
            _ => cell,
        };
        let Some((before, year)) = date.len().checked_sub(2).and_then(|at| date.split_at_checked(at)) else {
            return false;
        };
        let is_digit = |letter: char| letter.is_ascii_digit();
        if !year.chars().all(is_digit) || before.ends_with(is_digit) {
            return false;
        }
        // Every fourth year is a leap year in both centuries, 1900 excepted.
        let in_full = format!("{before}20{year}");
        self.0.iter().any(|format| format.iso(&in_full).is_some())
    }
}

/// A way to write numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberFormat {
    /// The mark before the fraction.
    pub decimal: char,
    /// The mark between groups of three digits, if the file has one.
    pub thousands: Option<char>,
}

/// The formats of numbers that `kanon init` tries, the usual one first.
pub const NUMBER_FORMATS: [NumberFormat; 7] = [
    NumberFormat { decimal: '.', thousands: None },
    NumberFormat { decimal: ',', thousands: None },
    NumberFormat { decimal: ',', thousands: Some('.') },
    NumberFormat { decimal: ',', thousands: Some(' ') },
    NumberFormat { decimal: '.', thousands: Some(',') },
    NumberFormat { decimal: '.', thousands: Some('\'') },
    NumberFormat { decimal: '.', thousands: Some(' ') },
];

impl Default for NumberFormat {
    fn default() -> Self {
        Self { decimal: '.', thousands: None }
    }
}

impl NumberFormat {
    /// Returns the number of a cell as digits with a point; `None` for a cell that is not written like this.
    pub fn plain(&self, cell: &str) -> Option<String> {
        let cell = cell.trim_ascii();
        let (whole, fraction) = match cell.split_once(self.decimal) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (cell, None),
        };
        let (sign, digits) = match whole.strip_prefix(['+', '-']) {
            Some(digits) => (&whole[..1], digits),
            None => ("", whole),
        };
        let is_mark = |letter: char| self.thousands.is_some_and(|mark| is_same_mark(mark, letter));
        let mut groups = digits.split(is_mark);
        let first = groups.next().unwrap_or_default();
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let mut plain = sign.to_owned() + first;
        for group in groups {
            // 0.125 is no 125, whatever the marks.
            if first.is_empty()
                || first.starts_with('0')
                || first.len() > 3
                || !is_digits(first)
                || group.len() != 3
                || !is_digits(group)
            {
                return None;
            }
            plain += group;
        }
        if let Some(fraction) = fraction {
            plain.push('.');
            plain += fraction;
        }
        // What is left of other marks is no number; words such as `NaN` and exponents may be.
        let is_of_numbers = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let points = plain.matches('.').count();
        (plain.bytes().all(is_of_numbers) && points == usize::from(fraction.is_some())).then_some(plain)
    }
}

/// Returns whether a letter stands for this mark: a space may be one that does not break.
pub(crate) fn is_same_mark(mark: char, letter: char) -> bool {
    letter == mark
        || mark == ' ' && matches!(letter, '\u{a0}' | '\u{202f}')
        || mark == '\'' && letter == '\u{2019}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_their_format() {
        let iso = |format: &str, cell: &str| DateFormat::parse(format).unwrap().iso(cell);
        let found = |text: &str| Some(text.to_owned());
        assert_eq!(iso("%d.%m.%Y", "31.12.2020"), found("2020-12-31"));
        assert_eq!(iso("%d.%m.%Y", "1.2.2020"), found("2020-02-01"));
        assert_eq!(iso("%m/%d/%Y", "12/31/2020"), found("2020-12-31"));
        assert_eq!(iso("%d.%m.%Y %H:%M", "31.12.2020 7:05"), found("2020-12-31T07:05:00"));
        assert_eq!(iso("%d-%b-%Y", "31-DEC-2020"), found("2020-12-31"));
        assert_eq!(iso("%Y%m%d", "20201231"), found("2020-12-31"));
        for (format, cell) in [
            ("%d.%m.%Y", "31.12.20"),
            ("%d.%m.%Y", "31.12.20201"),
            ("%d.%m.%Y", "30.02.2020"),
            ("%d.%m.%Y", "12/31/2020"),
            ("%d.%m.%Y", "31.12.2020 07:05"),
            ("%d.%m.%Y", " 31.12.2020"),
            ("%d.%m.%Y", "٣1.12.2020"),
            ("%d.%m.%Y", ""),
            ("%d/%m/%Y", "12/31/2020"),
            ("%Y%m%d", "2020123"),
            ("%d-%b-%Y", "31-Dez-2020"),
            ("%d-%b-%Y", "31-dé-2020"),
            ("%d.%m.%Y %H:%M", "31.12.2020 24:00"),
            ("%d.%m.%Y %H:%M:%S", "31.12.2020 23:59:60"),
        ] {
            assert_eq!(iso(format, cell), None, "{cell:?} as {format}");
        }
        for wrong in
            ["", "%d.%m", "%d.%m.%y", "%d.%m.%Y %H", "%d.%m.%Y.%d", "%e.%m.%Y", "%d.%m.20%Y", "%d.%m.%Y%"]
        {
            assert!(DateFormat::parse(wrong).is_err(), "{wrong}");
        }
        for date in DATE_FORMATS {
            TIMES_OF_DAY.iter().for_each(|time| drop(DateFormat::parse(&format!("{date}{time}")).unwrap()));
        }
    }

    #[test]
    fn years_of_two_digits() {
        let short = ShortYears::new().unwrap();
        for cell in ["04.03.53", "4.3.53", "04/13/53", "29.02.96", "04-Mar-53", "04.03.53 10:00", "4 mar 53"]
        {
            assert!(short.fits(cell), "{cell}");
        }
        for cell in [
            "04.03.1953",
            "31.02.53",
            "53",
            "",
            "é",
            "1.53",
            "12:13:14",
            "04.03.5",
            "192.168.1.10",
            "x 10:00",
        ] {
            assert!(!short.fits(cell), "{cell}");
        }
    }

    #[test]
    fn numbers_in_their_format() {
        let german = NumberFormat { decimal: ',', thousands: Some('.') };
        let plain = |format: NumberFormat, cell: &str| format.plain(cell);
        let found = |text: &str| Some(text.to_owned());
        assert_eq!(plain(german, "1.234.567,89"), found("1234567.89"));
        assert_eq!(plain(german, "-1.234"), found("-1234"));
        assert_eq!(plain(german, "0,5"), found("0.5"));
        assert_eq!(plain(german, "1234,5"), found("1234.5"));
        for cell in [
            "0.125",
            "-0.125",
            "00.125",
            "1.23",
            "1.2345",
            "12345.678",
            ".123",
            "1,2,3",
            "1,234.5",
            "1 234",
            "1.234,5.6",
            "1..234",
        ] {
            assert_eq!(plain(german, cell), None, "{cell}");
        }
        let comma = NumberFormat { decimal: ',', thousands: None };
        assert_eq!(plain(comma, "3,14"), found("3.14"));
        assert_eq!((plain(comma, "3.14"), plain(comma, "1.234")), (None, None));
        let spaces = NumberFormat { decimal: ',', thousands: Some(' ') };
        assert_eq!(plain(spaces, "1\u{202f}234,5"), found("1234.5"));
        let swiss = NumberFormat { decimal: '.', thousands: Some('\'') };
        assert_eq!(plain(swiss, "1’234.50"), found("1234.50"));
        assert_eq!(plain(NumberFormat::default(), "1,5"), None);
    }
}
