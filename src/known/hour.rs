//! `hour`: a time becomes its hour and a part of the day.
//!
//! Reads timestamps, by the local hour of their time zone, and text: a time (`8:05`, `23:59:59.5`,
//! `8:05 PM`), a date and a time (`2024-03-02 14:35`, with a space or `T`), or an hour from 0 to
//! 23. A time zone behind a time (`Z`, `UTC`, `+02:00`) changes nothing: the hour is the one that
//! is written. Level 1 is the hour (`14:00-14:59`), level 2 is night (0 to 5), morning (6 to 11),
//! afternoon (12 to 17) or evening (18 to 23).

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::named::NamedList;
use super::{Input, KnownRow, Rule};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "hour",
        summary: "a timestamp or time to its hour and to night, morning, afternoon or evening",
        parameters: "",
        example: "hierarchy = { known = \"hour\" }",
        paper: None,
    },
    words: &["hour", "time"],
    levels: &["hour", "part_of_day"],
    input: Input::Hour,
    source: "times of the day",
    rule: || &Hour,
};

static LIST: NamedList = NamedList::exact(include_str!("../../data/known/hour.txt"));

/// The rule that the [module](self) describes.
struct Hour;

/// Returns the hour of a text, read from its start.
fn hour(text: &str) -> Option<u8> {
    let is_date = |date: &&str| {
        let mut bytes = date.bytes().enumerate();
        bytes.all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() })
    };
    let after_date = text.get(..10).filter(is_date).and_then(|_| text.get(10..)?.strip_prefix([' ', 'T']));
    let time = after_date.unwrap_or(text);
    let (hour, mut rest) = number(time, 1..=2)?;
    if rest.is_empty() {
        // A lone hour is a number.
        return (after_date.is_none() && hour < 24 && (time.len() == 1 || !time.starts_with('0')))
            .then_some(hour);
    }
    let sixty = |rest: &mut &str| {
        let (number, after) = number(rest.strip_prefix(':')?, 2..=2)?;
        *rest = after;
        (number < 60).then_some(())
    };
    sixty(&mut rest)?;
    if rest.starts_with(':') {
        sixty(&mut rest)?;
        if let Some(fraction) = rest.strip_prefix('.') {
            rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            (rest.len() < fraction.len()).then_some(())?;
        }
    }
    let hour = match rest.trim_ascii_start().to_ascii_lowercase().as_str() {
        "am" | "a.m." if (1..=12).contains(&hour) => hour % 12,
        "pm" | "p.m." if (1..=12).contains(&hour) => hour % 12 + 12,
        "" | "z" | "utc" | "gmt" => hour,
        zone => {
            let (_, minutes) = number(zone.strip_prefix(['+', '-'])?, 2..=2)?;
            let minutes = minutes.strip_prefix(':').unwrap_or(minutes);
            (minutes.is_empty() || number(minutes, 2..=2)?.1.is_empty()).then_some(hour)?
        }
    };
    (hour < 24).then_some(hour)
}

/// Splits a number of so many digits from the start of a text.
fn number(text: &str, digits: RangeInclusive<usize>) -> Option<(u8, &str)> {
    let found = text.bytes().take(*digits.end()).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(found);
    if digits.contains(&found) { Some((number.parse().ok()?, rest)) } else { None }
}

/// As [`hour`], by splitting the text from its end.
fn hour_naively(text: &str) -> Option<String> {
    if text.parse::<u8>().is_ok_and(|hour| hour < 24 && hour.to_string() == text) {
        return Some(text.to_owned());
    }
    let shape =
        |text: &str| -> String { text.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect() };
    let mut time = text;
    for mark in [' ', 'T'] {
        if let Some((date, rest)) = time.split_once(mark)
            && shape(date) == "9999-99-99"
        {
            time = rest;
            break;
        }
    }
    let lower = time.to_lowercase();
    let halves = [("am", 0), ("a.m.", 0), ("pm", 12), ("p.m.", 12)];
    let half = halves.iter().find_map(|(word, more)| Some((lower.strip_suffix(word)?, *more)));
    let time = match half {
        Some((time, _)) => time.trim_end().to_owned(),
        None => {
            let is_zone = |end: &&str| {
                ["z", "utc", "gmt", "+99", "-99", "+9999", "-9999", "+99:99", "-99:99"]
                    .contains(&shape(end).as_str())
            };
            let ends = (0..lower.len()).filter_map(|at| lower.get(at..));
            let zone = ends.into_iter().find(is_zone).unwrap_or_default();
            lower.strip_suffix(zone).unwrap_or(&lower).trim_end().to_owned()
        }
    };
    let (time, fraction) = time.split_once('.').unwrap_or((&time, "0"));
    let parts: Vec<&str> = time.split(':').collect();
    let shapes: Vec<String> = parts.iter().map(|part| shape(part)).collect();
    let shapes: Vec<&str> = shapes.iter().map(String::as_str).collect();
    let is_time = match shapes.as_slice() {
        ["9" | "99", "99"] => fraction == "0" && !time.contains('.'),
        ["9" | "99", "99", "99"] => !fraction.is_empty() && fraction.chars().all(|c| c.is_ascii_digit()),
        _ => false,
    };
    let numbers: Vec<u8> = parts.iter().filter_map(|part| part.parse().ok()).collect();
    let (hour, rest) = numbers.split_first().filter(|_| is_time)?;
    let hour = match half {
        Some((_, more)) if (1..=12).contains(hour) => hour % 12 + more,
        Some(_) => return None,
        None => *hour,
    };
    (hour < 24 && rest.iter().all(|number| *number < 60)).then(|| hour.to_string())
}

impl Rule for Hour {
    fn label(&self, text: &str, level: usize) -> Option<Cow<'static, str>> {
        LIST.label(&hour(text)?.to_string(), level)
    }

    fn label_naively(&self, text: &str, level: usize) -> Option<String> {
        LIST.label_naively(&hour_naively(text)?, level)
    }

    fn is_label(&self, label: &str, level: usize) -> bool {
        LIST.is_label(label, level)
    }

    fn examples(&self) -> Vec<String> {
        LIST.examples()
            .into_iter()
            .flat_map(|hour| [format!("{hour}:59"), format!("2024-03-02T{hour:0>2}:00:00Z"), hour])
            .chain(
                ["2:35 PM", "12:00 am", "11:59:59 p.m.", "14:35+0200", "14:00:00.5 UTC", "02:35:10.5 PM"]
                    .map(str::to_owned),
            )
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::known::tests::labels;

    #[test]
    fn hours_by_hand() {
        let path = |value: &str| labels("hour", value);
        for value in [
            "14",
            "14:35",
            "14:00:59.999",
            "2024-03-02 14:35",
            "2024-03-02T14:35:00+02:00",
            "2024-03-02T14:35:00.5 UTC",
            "2024-03-02T14:35:00+0200",
            "14:35:00.5 UTC",
            "02:35:10.5 PM",
            "2:35 PM",
            "02:35:10pm",
            "2024-03-02 2:35 p.m.",
        ] {
            assert_eq!(path(value).as_deref(), Some("14:00-14:59 < afternoon"), "{value}");
        }
        assert_eq!(path("0").as_deref(), Some("00:00-00:59 < night"));
        assert_eq!(path("05:59").as_deref(), Some("05:00-05:59 < night"));
        assert_eq!(path("6:00").as_deref(), Some("06:00-06:59 < morning"));
        assert_eq!(path("12:30 AM").as_deref(), Some("00:00-00:59 < night"));
        assert_eq!(path("12:30 pm").as_deref(), Some("12:00-12:59 < afternoon"));
        assert_eq!(path("23:00").as_deref(), Some("23:00-23:59 < evening"));
        for outside in [
            "24",
            "24:00",
            "08",
            "14:60",
            "14:5",
            "14.5",
            "2024-03-02",
            "2 pm",
            "014:30",
            ":30",
            "14:350",
            "13:00 PM",
            "0:30 am",
            "12:00:60",
            "14:00:00.",
            "14:00 EST",
            "14:00 x",
            "14:00+2",
            "2024-03-02 14",
            "2024/03/02 14:00",
        ] {
            assert_eq!(path(outside), None, "{outside}");
        }
    }
}
