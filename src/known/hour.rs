//! `hour`: a time becomes its hour and a part of the day.
//!
//! Reads timestamps, by the local hour of their time zone, and text: a time (`8:05`, `23:59:59.5`),
//! a date and a time (`2024-03-02 14:35`, with a space or `T`; a zone behind it is not looked at), or
//! an hour from 0 to 23. Level 1 is the hour (`14:00-14:59`), level 2 is night (0 to 5), morning (6
//! to 11), afternoon (12 to 17) or evening (18 to 23).

use std::borrow::Cow;

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

/// Returns the hour of a text, from its first digits on.
fn hour(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let has_date = bytes.get(4) == Some(&b'-')
        && bytes.get(7) == Some(&b'-')
        && [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(is_digit)
        && matches!(bytes.get(10), Some(b' ' | b'T'));
    let start = if has_date { 11 } else { 0 };
    let end = start + if is_digit(start + 1) { 2 } else { 1 };
    let digits = text.get(start..end)?;
    // A lone hour is a number; a time has minutes up to 59.
    let is_whole = match text.get(end..)? {
        "" => !has_date && (digits.len() == 1 || !digits.starts_with('0')),
        minutes => {
            minutes.starts_with(':')
                && matches!(bytes.get(end + 1), Some(b'0'..=b'5'))
                && is_digit(end + 2)
                && !is_digit(end + 3)
        }
    };
    is_whole.then(|| if digits.len() == 2 { digits.strip_prefix('0').unwrap_or(digits) } else { digits })
}

/// As [`hour`], by splitting the text.
fn hour_naively(text: &str) -> Option<String> {
    if text.parse::<u8>().is_ok_and(|hour| hour.to_string() == text) {
        return Some(text.to_owned());
    }
    let chars: Vec<char> = text.chars().collect();
    let shape = |from: usize, to: usize| -> String {
        chars.iter().skip(from).take(to - from).map(|c| if c.is_ascii_digit() { '9' } else { *c }).collect()
    };
    let from = if ["9999-99-99 ", "9999-99-99T"].contains(&shape(0, 11).as_str()) { 11 } else { 0 };
    let time: String = chars.iter().skip(from).collect();
    let (hour, rest) = time.split_once(':')?;
    let minutes: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let is_time = [shape(from, from + 3), shape(from, from + 2)]
        .iter()
        .any(|shape| ["99:", "9:"].contains(&shape.as_str()))
        && minutes.len() == 2
        && minutes.parse::<u8>().is_ok_and(|minutes| minutes < 60);
    hour.parse::<u8>().ok().filter(|_| is_time).map(|hour| hour.to_string())
}

impl Rule for Hour {
    fn label(&self, text: &str, level: usize) -> Option<Cow<'static, str>> {
        LIST.label(hour(text)?, level)
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
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::known::tests::labels;

    #[test]
    fn hours_by_hand() {
        let path = |value: &str| labels("hour", value);
        for value in ["14", "14:35", "14:00:59.999", "2024-03-02 14:35", "2024-03-02T14:35:00+02:00"] {
            assert_eq!(path(value).as_deref(), Some("14:00-14:59 < afternoon"), "{value}");
        }
        assert_eq!(path("0").as_deref(), Some("00:00-00:59 < night"));
        assert_eq!(path("05:59").as_deref(), Some("05:00-05:59 < night"));
        assert_eq!(path("6:00").as_deref(), Some("06:00-06:59 < morning"));
        assert_eq!(path("23:00").as_deref(), Some("23:00-23:59 < evening"));
        for outside in
            ["24", "24:00", "08", "14:60", "14:5", "14.5", "2024-03-02", "2 pm", "014:30", ":30", "14:350"]
        {
            assert_eq!(path(outside), None, "{outside}");
        }
    }
}
