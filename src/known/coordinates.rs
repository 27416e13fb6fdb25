//! Geographic coordinates in decimal degrees: cells of 0.01, 0.1, 1 and 10 degrees.
//!
//! Cells begin at multiples of their size: `[42.36,42.37)`, `[-10,0)`. The last cell holds its upper
//! end too (`[80,90]`), so that the limit has a cell. All arithmetic is on decimal digits.

use std::borrow::Cow;

use super::Rule;

/// The names of the levels.
pub(super) const LEVELS: &[&str] = &["hundredth", "tenth", "degree", "ten_degrees"];

/// The sizes of the cells, in hundredths of a degree, and the digits after the point of their ends.
const CELLS: [(i64, usize); 4] = [(1, 2), (10, 1), (100, 0), (1_000, 0)];

/// The most digits after the point; a double prints fewer for all but the smallest numbers.
const MOST: usize = 30;

/// One coordinate from `-limit` to `limit` degrees.
pub(super) struct Coordinate {
    /// The largest number of degrees.
    pub(super) limit: i64,
}

/// Splits a decimal number into sign, whole number and fraction.
fn split(text: &str) -> Option<(bool, &str, &str)> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |digits: &str, most| {
        (1..=most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    (is_number(whole, 3) && is_number(fraction, MOST)).then_some((is_negative, whole, fraction))
}

impl Coordinate {
    /// Returns the number in hundredths of a degree, rounded down.
    fn hundredths(&self, text: &str) -> Option<i64> {
        let (is_negative, whole, fraction) = split(text)?;
        let mut digits = fraction.bytes().map(|byte| i64::from(byte - b'0'));
        let (tenths, hundredths) = (digits.next()?, digits.next().unwrap_or(0));
        let size = whole.parse::<i64>().ok()? * 100 + tenths * 10 + hundredths;
        let has_more = digits.any(|digit| digit > 0);
        let most = self.limit * 100;
        (size < most || size == most && !has_more).then_some(match (is_negative, has_more) {
            (false, _) => size,
            (true, more) => -size - i64::from(more),
        })
    }
}

/// Writes hundredths of a degree with this many digits after the point.
fn degrees(hundredths: i64, digits: usize) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    let (whole, rest) = (hundredths.abs() / 100, hundredths.abs() % 100);
    match digits {
        0 => format!("{sign}{whole}"),
        1 => format!("{sign}{whole}.{}", rest / 10),
        _ => format!("{sign}{whole}.{rest:02}"),
    }
}

impl Rule for Coordinate {
    fn label(&self, text: &str, level: usize) -> Option<Cow<'static, str>> {
        let (size, digits) = *CELLS.get(level.checked_sub(1)?)?;
        let (most, at) = (self.limit * 100, self.hundredths(text)?);
        let low = (at.div_euclid(size) * size).min(most - size);
        let high = low + size;
        let end = if high == most { ']' } else { ')' };
        Some(format!("[{},{}{end}", degrees(low, digits), degrees(high, digits)).into())
    }

    fn label_naively(&self, text: &str, level: usize) -> Option<String> {
        let (size, digits) = match level {
            1 => (1, 2),
            2 => (10, 1),
            3 => (100, 0),
            4 => (1_000, 0),
            _ => return None,
        };
        // The number is `number / unit`, exactly.
        let (is_negative, whole, fraction) = split(text)?;
        let unit = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        let number: i128 = format!("{whole}{fraction}").parse().ok()?;
        let number = if is_negative { -number } else { number };
        let limit = i128::from(self.limit);
        if number.abs() > limit * unit {
            return None;
        }
        let mut cell = (number * 100).div_euclid(size * unit);
        if cell * size == limit * 100 {
            cell -= 1;
        }
        let edge = |cell: i128| i32::try_from(cell * size).ok().map(|edge| f64::from(edge) / 100.0);
        let close = if (cell + 1) * size == limit * 100 { "]" } else { ")" };
        Some(format!("[{:.digits$},{:.digits$}{close}", edge(cell)?, edge(cell + 1)?))
    }

    fn is_label(&self, label: &str, level: usize) -> bool {
        let low = label.strip_prefix('[').and_then(|ends| ends.split_once(','));
        low.and_then(|(low, _)| self.label(low, level)).is_some_and(|own| own == label)
    }

    fn examples(&self) -> Vec<String> {
        let tens = (-self.limit..=self.limit).step_by(10);
        tens.flat_map(|degrees| [degrees.to_string(), format!("{degrees}.005"), format!("{degrees}.5")])
            .filter(|text| self.hundredths(text).is_some())
            .collect()
    }
}
