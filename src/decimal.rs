//! Exact decimals: a parameter means the number as written, never the nearest binary fraction.

use std::cmp::Ordering;
use std::fmt;

use crate::error::{Error, Result};

/// `digits / 10^scale`, without trailing zeros; at most 18 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    digits: i128,
    scale: u32,
}

/// More digits would overflow the exact comparisons.
const MAX_DIGITS: usize = 18;

impl Decimal {
    /// Creates a decimal from an integer.
    pub const fn integer(value: i64) -> Self {
        Self { digits: value as i128, scale: 0 }
    }

    /// Creates `digits / 10^scale` for constants, which have no trailing zeros after the point.
    pub const fn new_const(digits: i64, scale: u32) -> Self {
        Self { digits: digits as i128, scale }
    }

    /// Reads `12`, `-0.05`, `1e-3`.
    ///
    /// # Errors
    /// A policy error when the text is not a decimal number or has more than 18 digits.
    pub fn parse(text: &str) -> Result<Self> {
        Self::read(text).ok_or_else(|| match text.parse::<f64>() {
            // Rust also parses texts such as `inf` as floats.
            Ok(_) if text.contains(|c: char| c.is_ascii_digit()) => Error::policy(format!(
                "expected a number of at most {MAX_DIGITS} digits, at most {MAX_DIGITS} of them after the point"
            )),
            _ => Error::policy("expected a decimal number such as 0.05"),
        })
    }

    fn read(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((m, e)) => (m, e.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (negative, unsigned) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let all: String = [whole, fraction].concat();
        if !all.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let significant = all.trim_start_matches('0');
        if significant.len() > MAX_DIGITS {
            return None;
        }
        if significant.is_empty() {
            return Some(Self::integer(0));
        }
        let magnitude: i128 = significant.parse().ok()?;
        let digits = if negative { -magnitude } else { magnitude };
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        Self::normal(digits, scale)
    }

    fn normal(mut digits: i128, mut scale: i32) -> Option<Self> {
        while scale > 0 && digits % 10 == 0 {
            digits /= 10;
            scale -= 1;
        }
        while scale < 0 {
            digits = digits.checked_mul(10)?;
            scale += 1;
        }
        let limit = u32::try_from(MAX_DIGITS).ok()?;
        let scale = u32::try_from(scale).ok().filter(|s| *s <= limit)?;
        (digits.unsigned_abs() < 10u128.pow(limit)).then_some(Self { digits, scale })
    }

    /// Converts a float to the decimal that it prints as.
    ///
    /// # Errors
    /// A policy error for NaN, infinities and numbers beyond 18 digits.
    pub fn from_f64(value: f64) -> Result<Self> {
        Self::parse(&format!("{value}"))
    }

    /// Returns the numerator over [`Self::denominator`].
    pub fn numerator(self) -> i128 {
        self.digits
    }

    /// Returns the denominator, a power of ten.
    pub fn denominator(self) -> i128 {
        10i128.pow(self.scale)
    }

    /// Returns the number of digits after the point.
    pub fn scale(self) -> u32 {
        self.scale
    }

    /// Returns the number in units of `10^-scale`; `scale` is at least the number's own.
    pub(crate) fn units(self, scale: u32) -> i128 {
        self.digits * 10i128.pow(scale.saturating_sub(self.scale))
    }

    /// Returns the least integer not below the number.
    pub(crate) fn ceil(self) -> i128 {
        -(-self.digits).div_euclid(self.denominator())
    }

    /// Returns the nearest float.
    pub fn to_f64(self) -> f64 {
        // Rust parses decimal text to the nearest float.
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Returns whether the number is above zero.
    pub fn is_positive(self) -> bool {
        self.digits > 0
    }

    /// Returns the number as an integer, if it is one that fits.
    pub fn to_u64(self) -> Option<u64> {
        (self.scale == 0).then(|| u64::try_from(self.digits).ok()).flatten()
    }

    /// Returns whether `self` is `other` times an integer.
    pub fn is_multiple_of(self, other: Self) -> bool {
        match (self.digits.checked_mul(other.denominator()), other.digits.checked_mul(self.denominator())) {
            (Some(a), Some(b)) => b != 0 && a % b == 0,
            _ => false,
        }
    }

    /// Returns `floor(self * n)` for a share `self` between 0 and 1, exactly: the suppression limit
    /// in rows.
    pub fn floor_of(self, n: u64) -> u64 {
        let (whole, rest) = (i128::from(n) / self.denominator(), i128::from(n) % self.denominator());
        let floor = whole
            .saturating_mul(self.digits)
            .saturating_add(rest.saturating_mul(self.digits).div_euclid(self.denominator()));
        u64::try_from(floor.max(0)).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { "-" } else { "" };
        let magnitude = self.digits.unsigned_abs();
        if self.scale == 0 {
            return write!(f, "{sign}{magnitude}");
        }
        let unit = self.denominator().unsigned_abs();
        let width = self.scale as usize;
        write!(f, "{sign}{}.{:0width$}", magnitude / unit, magnitude % unit)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let floors = |d: &Self| (d.digits.div_euclid(d.denominator()), d.digits.rem_euclid(d.denominator()));
        let ((a, x), (b, y)) = (floors(self), floors(other));
        // Compares the fractions at the larger of the two scales, where both are below 10^30.
        let scale = self.scale.max(other.scale);
        let at = |rest: i128, own: u32| rest * 10i128.pow(scale - own);
        a.cmp(&b).then_with(|| at(x, self.scale).cmp(&at(y, other.scale)))
    }
}

/// Returns `a / b` as the nearest float, 0 for 0/0.
#[expect(clippy::cast_precision_loss, reason = "the one place where counts become a share")]
pub fn ratio(a: u128, b: u128) -> f64 {
    if a == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// Returns the natural logarithm of `a / b`, as exact for neighbours as for any other numbers; neither is 0.
pub(crate) fn ln_ratio(a: u128, b: u128) -> f64 {
    let apart = a.abs_diff(b);
    match a < b {
        _ if apart > b / 2 => ratio(a, b).ln(),
        true => (-ratio(apart, b)).ln_1p(),
        false => ratio(apart, b).ln_1p(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_neighbours_are_exact() {
        assert_eq!([ln_ratio(7, 7), ln_ratio(1, 2), ln_ratio(2, 1)], [0.0, 0.5f64.ln(), 2f64.ln()]);
        let n = 1u128 << 60;
        let little = 2f64.powi(-60);
        assert_eq!([ln_ratio(n + 1, n), ln_ratio(n, n + 1)], [little, -little]);
        for (a, b) in [(3, 2), (2, 3), (149, 100), (151, 100), (49, 100), (51, 100)] {
            let plain = ratio(a, b).ln();
            assert!((ln_ratio(a, b) - plain).abs() <= 1e-15 * plain.abs().max(1.0), "{a} {b}");
        }
    }

    #[test]
    fn what_was_written_is_what_is_meant() {
        for (text, shown) in
            [("0.10", "0.1"), ("-0.05", "-0.05"), ("1e-3", "0.001"), ("2e2", "200"), ("7", "7")]
        {
            assert_eq!(Decimal::parse(text).unwrap().to_string(), shown);
        }
        for wrong in ["", ".", "1.2.3", "abc", "1e99", "NaN", "inf", "--1", "1_000"] {
            assert!(Decimal::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_number_with_too_many_digits_is_no_other_mistake() {
        let why = |text: &str| Decimal::parse(text).unwrap_err().to_string();
        let digits = "expected a number of at most 18 digits, at most 18 of them after the point";
        for text in ["1e18", "1e-19", "1234567890123456789", "0.1234567890123456789", "-1e400"] {
            assert_eq!(why(text), digits, "{text}");
        }
        for text in ["", "abc", "NaN", "inf", "1_000"] {
            assert_eq!(why(text), "expected a decimal number such as 0.05", "{text}");
        }
        for text in ["999999999999999999", "1e17", "1e-18", "0.123456789012345678"] {
            assert!(Decimal::parse(text).is_ok(), "{text}");
        }
        // A zero has no digits, whatever its exponent.
        for text in ["0e2147483647", "0e-2147483648", "-0.000"] {
            assert_eq!(Decimal::parse(text).unwrap(), Decimal::integer(0), "{text}");
        }
    }

    #[test]
    fn the_limit_is_floored_exactly() {
        // 0.29 * 100 is 28.999999999999996 in binary.
        assert_eq!(Decimal::parse("0.29").unwrap().floor_of(100), 29);
        assert_eq!(Decimal::parse("0.05").unwrap().floor_of(30_162), 1_508);
        assert_eq!(Decimal::parse("1").unwrap().floor_of(u64::MAX), u64::MAX);
        assert_eq!(Decimal::parse("0").unwrap().floor_of(5), 0);
    }

    #[test]
    fn order_and_multiples() {
        let d = |t: &str| Decimal::parse(t).unwrap();
        assert!(d("-0.5") < d("-0.25") && d("0.1") < d("0.11") && d("3") > d("2.999"));
        assert!(d("1.5").is_multiple_of(d("0.5")) && !d("1").is_multiple_of(d("0.3")));
        assert!((d("0.1").to_f64() - 0.1).abs() < f64::EPSILON);
    }
}
