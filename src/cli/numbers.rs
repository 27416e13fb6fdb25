//! Numbers on the command line.

use std::ops::RangeInclusive;

/// Makes a parser of whole numbers in `range`.
pub(crate) fn integer<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("expected an integer from {} to {}", range.start(), range.end()))
    }
}

/// Reads `1048576`, `512K`, `800M`, `16G`, `1T` (powers of 1024; `B` and `iB` may follow).
pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[number.len()..].to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("expected a number of bytes, such as 800M or 16G".into()),
    };
    let bytes = number.parse::<usize>().ok().and_then(|n| n.checked_mul(1 << unit));
    match bytes {
        Some(bytes) if bytes >= 16 << 20 => Ok(bytes),
        Some(_) => Err("at least 16M is needed".into()),
        None => Err("expected a number of bytes, such as 800M or 16G".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_from_people() {
        assert_eq!(parse_bytes("16777216"), Ok(16 << 20));
        assert_eq!(parse_bytes("800M"), Ok(800 << 20));
        assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
        for wrong in ["", "M", "1X", "-5G", "1K", "99999999999T"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
