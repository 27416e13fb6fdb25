//! The strict forms of texts that are read as dates, moments, integers and numbers; see
//! [`infer_types`](super::infer_types).

use arrow::compute::kernels::cast_utils::Parser;
use arrow::datatypes::{Date32Type, Float64Type};

/// The limit up to which every integer has its own double.
const EXACT: u64 = 1 << 53;

/// Returns whether the bytes have the form `form`, in which `0` stands for any digit.
fn has_form(bytes: &[u8], form: &[u8]) -> bool {
    bytes.len() == form.len()
        && bytes.iter().zip(form).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            form => byte == form,
        })
}

/// Returns the rest of a text after its date and time: fraction and zone.
fn after_time(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let (date, time) = (bytes.get(..10)?, bytes.get(11..19)?);
    let has_time = has_form(date, b"0000-00-00")
        && matches!(bytes.get(10)?, b'T' | b't' | b' ')
        && has_form(time, b"00:00:00");
    if has_time { text.get(19..) } else { None }
}

/// Returns whether a text has the form of a date or a moment; the cast checks its numbers against
/// the calendar and the clock.
pub(super) fn is_moment(text: &str) -> bool {
    if has_form(text.as_bytes(), b"0000-00-00") {
        return true;
    }
    let Some(rest) = after_time(text) else { return false };
    // The cast would carry a leap second over into the next minute.
    let is_leap_second = text.as_bytes().get(17).is_none_or(|tens| *tens > b'5');
    let (digits, zone) = match rest.strip_prefix('.') {
        Some(fraction) => {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            (Some(digits), fraction.get(digits..).unwrap_or_default())
        }
        None => (None, rest),
    };
    !is_leap_second
        && digits.is_none_or(|digits| (1..=9).contains(&digits))
        && matches!(zone, "" | "Z" | "z" | "+00:00" | " UTC")
}

/// Returns whether a text is a date or a moment in the usual form, on a day that the calendar has.
pub(crate) fn is_plain_date(text: &str) -> bool {
    is_moment(text) && text.get(..10).and_then(Date32Type::parse).is_some()
}

/// Returns whether a text is a moment in an unsupported time zone.
pub(super) fn names_zone(text: &str) -> bool {
    let rest = after_time(text).unwrap_or_default();
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit()).trim_start();
    !is_moment(text) && zone.starts_with(|c: char| c.is_alphabetic() || c == '+' || c == '-')
}

fn unsigned(text: &str) -> &str {
    let text = text.trim_ascii();
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn is_integer(text: &str) -> bool {
    is_digits(unsigned(text))
}

/// Returns whether a text begins with a zero that counts, as 01067 does and 0.5 does not.
pub(super) fn is_code(text: &str) -> bool {
    matches!(unsigned(text).as_bytes(), [b'0', b'0'..=b'9', ..])
}

/// Returns whether a text is a number that a double holds; see [`infer_types`](super::infer_types).
pub(crate) fn is_number(text: &str) -> bool {
    let number = unsigned(text);
    if ["nan", "inf", "infinity"].iter().any(|word| number.eq_ignore_ascii_case(word)) {
        return true;
    }
    if is_digits(number) {
        return !is_inexact(text);
    }
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (number, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    (is_digits(whole) || is_digits(fraction))
        && [whole, fraction].iter().all(|digits| digits.is_empty() || is_digits(digits))
        && exponent.is_none_or(is_integer_without_spaces)
        && Float64Type::parse(text).is_some_and(f64::is_finite)
}

fn is_integer_without_spaces(text: &str) -> bool {
    is_digits(text.strip_prefix(['+', '-']).unwrap_or(text))
}

/// Returns whether a text is an integer that a double may round.
pub(super) fn is_inexact(text: &str) -> bool {
    let digits = unsigned(text).trim_start_matches('0');
    is_integer(text) && !digits.is_empty() && digits.parse::<u64>().map_or(true, |integer| integer > EXACT)
}

/// Returns whether a text is a number beyond the range of a double.
pub(super) fn is_infinite(text: &str) -> bool {
    !is_number(text) && !is_integer(text) && Float64Type::parse(text).is_some_and(f64::is_infinite)
}
