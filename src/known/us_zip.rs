//! `us_zip`: a US ZIP code becomes its first three digits, its state, its division and its region.
//!
//! Reads five digits, ZIP+4 (`02139-4307`, or nine digits), and integers: those of at most five
//! digits have their leading zeros again, those of nine are ZIP+4; the text `2139` is outside. Level 1
//! is the area of the first three digits (`021**`), level 2 the postal code of its state, levels 3 and
//! 4 are those of
//! [`us_state`]. An area belongs to the state of most of its ZIP codes: some cross
//! a border (06390 in New York counts as Connecticut, American Samoa as Hawaii). The areas are the
//! Postal Service's ranges of states; one inside a range counts whether or not it is in use.
//!
//! The first three digits are the limit of HIPAA's Safe Harbor only where 20,000 people or more live
//! behind them, which this list does not know.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::{Input, KnownRow, Rule, us_state};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "us_zip",
        summary: "a US ZIP code to its first three digits, state, Census division and region",
        parameters: "",
        example: "hierarchy = { known = \"us_zip\" }",
        paper: None,
    },
    words: &[],
    levels: &["area", "state", "division", "region"],
    input: Input::TextOrIntegers(5),
    source: "ZIP codes of the US Postal Service, 2024",
    rule: || &Zip,
};

/// One line per state: its postal code, then the areas and ranges of areas.
const TEXT: &str = include_str!("../../data/known/us_zip.txt");

/// The state of each area, by the number of the area.
static STATES: OnceLock<Vec<Option<&str>>> = OnceLock::new();

/// The rule that the [module](self) describes.
struct Zip;

fn states() -> &'static [Option<&'static str>] {
    STATES.get_or_init(|| {
        let mut states = vec![None; 1_000];
        for (state, ranges) in TEXT.lines().filter_map(|line| line.split_once(' ')) {
            for range in ranges.split(' ') {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
                    states.iter_mut().take(last + 1).skip(first).for_each(|of| *of = Some(state));
                }
            }
        }
        states
    })
}

/// Returns the state of an area of three digits.
fn state(area: &str) -> Option<&'static str> {
    *states().get(area.parse::<usize>().ok()?)?
}

/// Returns the first three digits of a ZIP code.
fn area(text: &str) -> Option<&str> {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let is_zip = match text.as_bytes() {
        [zip @ .., b'-', a, b, c, d] if zip.len() == 5 => zip.iter().chain([a, b, c, d]).all(is_digit),
        zip => [5, 9].contains(&zip.len()) && zip.iter().all(is_digit),
    };
    text.get(..3).filter(|_| is_zip)
}

impl Rule for Zip {
    fn label(&self, text: &str, level: usize) -> Option<Cow<'static, str>> {
        let area = area(text)?;
        let state = state(area)?;
        match level {
            1 => Some(format!("{area}**").into()),
            2 => Some(state.into()),
            _ => us_state::LIST.label(state, level.checked_sub(2)?),
        }
    }

    fn label_naively(&self, text: &str, level: usize) -> Option<String> {
        let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        if !["00000", "000000000", "00000-0000"].contains(&form.as_str()) {
            return None;
        }
        let digits: String = text.chars().take(3).collect();
        for line in TEXT.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            for range in words.iter().skip(1) {
                // Texts of three digits have the order of their numbers.
                let ends: Vec<&str> = range.split('-').collect();
                if ends.first()? <= &digits.as_str() && &digits.as_str() <= ends.last()? {
                    return match level {
                        0 => None,
                        1 => Some(digits + "**"),
                        2 => words.first().map(|state| (*state).to_owned()),
                        above => us_state::LIST.label_naively(words.first()?, above - 2),
                    };
                }
            }
        }
        None
    }

    fn is_label(&self, label: &str, level: usize) -> bool {
        match level {
            1 => label.strip_suffix("**").is_some_and(|area| self.label(&format!("{area}00"), 1).is_some()),
            2 => states().iter().flatten().any(|state| *state == label),
            _ => level.checked_sub(2).is_some_and(|level| us_state::LIST.is_label(label, level)),
        }
    }

    fn examples(&self) -> Vec<String> {
        let areas = states().iter().enumerate().filter(|(_, state)| state.is_some());
        areas
            .flat_map(|(area, _)| {
                [format!("{area:03}00"), format!("{area:03}99-0001"), format!("{area:03}991234")]
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::tests::labels;

    #[test]
    fn zips_by_hand() {
        for (value, path) in [
            ("02139", "021** < MA < New England < Northeast"),
            ("02139-4307", "021** < MA < New England < Northeast"),
            ("100010001", "100** < NY < Middle Atlantic < Northeast"),
            ("05544", "055** < MA < New England < Northeast"),
            ("20500", "205** < DC < South Atlantic < South"),
            ("20166", "201** < VA < South Atlantic < South"),
            ("73301", "733** < TX < West South Central < South"),
            ("79936", "799** < TX < West South Central < South"),
            ("90210", "902** < CA < Pacific < West"),
            ("99501", "995** < AK < Pacific < West"),
            ("96910", "969** < GU < Puerto Rico and Island Areas < Puerto Rico and Island Areas"),
            ("09012", "090** < AE < Armed Forces < Armed Forces"),
        ] {
            assert_eq!(labels("us_zip", value).as_deref(), Some(path), "{value}");
        }
        for outside in [
            "2139", "00000", "00401", "02139-43", "0213", "021394", "0213a", " 02139", "99999-", "71500",
            "021**",
        ] {
            assert_eq!(labels("us_zip", outside), None, "{outside}");
        }
    }

    #[test]
    fn every_state_has_areas_that_no_other_has() {
        let mut count = 0;
        for line in TEXT.lines() {
            let (state, ranges) = line.split_once(' ').unwrap();
            assert!(us_state::LIST.label(state, 1).is_some(), "{state}");
            for range in ranges.split(' ') {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
                assert!(
                    first <= last && states()[first..=last].iter().all(|of| *of == Some(state)),
                    "{range}"
                );
                count += last - first + 1;
            }
        }
        assert_eq!((count, TEXT.lines().count()), (states().iter().flatten().count(), 57));
    }
}
