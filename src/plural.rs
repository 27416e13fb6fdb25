//! Formats counts, with their nouns, and shares for messages and results.

/// Formats the count with its noun: `1 row`, `2 rows`, `1,234 rows`.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Formats the number with its digits in groups of three: `1,234,567`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a share as a percentage: `0 %`, `0.03 %`, `4.3 %`, `71 %`. Only exact values show as 0
/// or 100.
#[cfg(feature = "engine")]
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.01 {
        return "< 0.01 %".to_owned();
    }
    if percent > 99.99 && percent < 100.0 {
        return "> 99.99 %".to_owned();
    }
    let decimals = match percent {
        p if p == p.round() => 0,
        p if !(1.0..99.0).contains(&p) => 2,
        p if p < 10.0 => 1,
        _ => 0,
    };
    format!("{percent:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let rows = [0, 1, 2, 1_000, 1_234_567].map(|count| plural(count, "row", "rows"));
        assert_eq!(rows, ["0 rows", "1 row", "2 rows", "1,000 rows", "1,234,567 rows"]);
        assert_eq!(grouped(999), "999");
    }
}
