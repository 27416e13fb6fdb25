//! Formats counts, with their nouns, and shares for messages and results.

/// Formats the count with its noun: `1 row`, `2 rows`, `1,234 rows`.
pub fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Formats a number of rows: `1 row`, `2 rows`.
#[cfg(feature = "engine")]
pub fn rows(count: u64) -> String {
    plural(count, "row", "rows")
}

/// Formats a number of individuals: `1 individual`, `2 individuals`.
#[cfg(feature = "engine")]
pub fn individuals(count: u64) -> String {
    plural(count, "individual", "individuals")
}

/// Formats the number with its digits in groups of three: `1,234,567`.
pub fn grouped(n: u64) -> String {
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
pub fn percent(share: f64) -> String {
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

    #[cfg(feature = "engine")]
    #[test]
    fn numbers_for_people() {
        assert_eq!(["0", "999", "1,000", "1,234,567"], [0, 999, 1000, 1_234_567].map(grouped));
        let shares = [0.0, 0.000_01, 0.0003, 0.043, 0.71, 0.2, 0.9996, 0.999_99, 1.0].map(percent);
        let shown = ["0 %", "< 0.01 %", "0.03 %", "4.3 %", "71 %", "20 %", "99.96 %", "> 99.99 %", "100 %"];
        assert_eq!(shares, shown);
    }
}
