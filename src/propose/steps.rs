//! Proposes levels for a quasi-identifier by its type. Steps come from the spread of most numbers,
//! rounded to 1, 2 or 5 times a power of ten, and begin at 0: they reveal neither the least nor the
//! greatest value.

use std::fmt;

use super::facts::{ColumnFacts, is_time};
use super::names::Named;
use crate::generalize::merge;

/// The key that says what becomes of values outside of a known hierarchy.
pub(super) const OUTSIDE: &str = "outside";
/// Columns with at most this many distinct values are kept as they are or suppressed.
const FEW: u64 = 10;
/// The approximate number of intervals into which the first step divides the spread.
const INTERVALS: f64 = 12.0;
/// The longest text whose every prefix becomes a level.
const CODE: u64 = 6;

/// A hierarchy in the form of a policy: `{ known = "country", outside = "join" }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// The keys and their values in TOML: the generalizer first, then its options.
    pub settings: Vec<(&'static str, String)>,
    /// The reason as a sentence without its period, where there is one.
    pub why: Option<String>,
}

impl Levels {
    /// Returns whether no value is outside of the hierarchy.
    pub(super) fn covers_all(&self) -> bool {
        !self.settings.iter().any(|(key, _)| *key == OUTSIDE)
    }

    /// Returns whether the values are merged, as no hierarchy is known for them.
    pub(super) fn is_merge(&self) -> bool {
        self.settings.iter().any(|(key, _)| *key == merge::DOC.name)
    }

    /// Returns whether the rarest are merged first.
    pub(super) fn is_by_counts(&self) -> bool {
        self.settings.iter().any(|(key, value)| *key == merge::DOC.name && value.contains(merge::COUNTS))
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.settings.iter().map(|(key, value)| format!("{key} = {value}"));
        write!(f, "{{ {} }}", settings.collect::<Vec<_>>().join(", "))
    }
}

/// Returns the levels that suit a column, if any.
pub(super) fn levels(facts: &ColumnFacts, named: Option<Named>) -> Option<Levels> {
    let of = |key, values: Vec<String>| {
        let settings = vec![(key, format!("[{}]", values.join(", ")))];
        (!values.is_empty()).then_some(Levels { settings, why: None })
    };
    let data_type = &facts.data_type;
    if is_time(data_type) {
        return of(
            "period",
            ["month", "quarter", "year", "decade"].map(|period| format!("{period:?}")).to_vec(),
        );
    }
    if facts.is_dates_as_text
        && facts.length.is_some_and(|length| (length.least, length.greatest) == (10, 10))
    {
        // 1995-12-21 keeps its month, its year and its decade.
        return of("prefix", [7, 4, 3].map(|n: u64| n.to_string()).to_vec());
    }
    let is_code = named == Some(Named::Postal);
    match facts.length {
        Some(length) if is_code && length.greatest > 1 => {
            let longest = if length.greatest <= CODE { length.greatest - 1 } else { CODE - 1 };
            of("prefix", (1..=longest).rev().map(|n| n.to_string()).collect())
        }
        _ if facts.distinct.is_none_or(|distinct| distinct <= FEW) => None,
        _ if data_type.is_integer() => of("range", steps(facts.spread?, 0)),
        _ if data_type.is_floating() => of("floor", steps(facts.spread?, -9)),
        _ => None,
    }
}

/// Returns up to three steps that divide one another, none below 2 or below 10 to the power of
/// `least`.
fn steps(spread: f64, least: i32) -> Vec<String> {
    if !spread.is_finite() || spread <= 0.0 {
        return Vec::new();
    }
    let all = (least..=12).flat_map(|power| [1u32, 2, 5].map(|digit| (digit, power)));
    let size = |(digit, power): (u32, i32)| f64::from(digit) * 10f64.powi(power);
    // An interval of width 1 holds one integer.
    let mut fitting = all.filter(|step| least < 0 || *step != (1, 0));
    let Some((digit, power)) = fitting.find(|step| size(*step) * INTERVALS >= spread) else {
        return Vec::new();
    };
    let chain = match digit {
        1 => [(1, power), (2, power), (1, power + 1)],
        2 => [(2, power), (1, power + 1), (2, power + 1)],
        _ => [(5, power), (1, power + 1), (2, power + 1)],
    };
    let widest = chain.iter().take_while(|step| size(**step) < spread).count().max(1);
    chain.into_iter().take(widest).map(|(digit, power)| decimal(digit, power)).collect()
}

/// Formats `digit * 10^power` without an exponent.
fn decimal(digit: u32, power: i32) -> String {
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    if power >= 0 { format!("{digit}{}", zeros(power)) } else { format!("0.{}{digit}", zeros(-power - 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Decimal;

    #[test]
    fn steps_fit_the_spread() {
        assert_eq!(steps(54.0, 0), ["5", "10", "20"]);
        assert_eq!(steps(10.3, 0), ["2", "10"]);
        assert_eq!(steps(120_000.0, 0), ["10000", "20000", "100000"]);
        assert_eq!(steps(0.7, -9), ["0.1", "0.2"]);
        assert_eq!(steps(0.012, -9), ["0.001", "0.002", "0.01"]);
        assert_eq!(steps(1.0, 0), ["2"]);
        for nothing in [0.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(steps(nothing, 0), [""; 0]);
        }
    }

    #[test]
    fn each_step_is_a_multiple_of_the_one_before() {
        for power in -8..=10 {
            for spread in [1.0, 1.3, 2.0, 3.7, 5.0, 9.9].map(|digit| digit * 10f64.powi(power)) {
                for least in [-9, 0] {
                    let steps: Vec<Decimal> =
                        steps(spread, least).iter().map(|step| Decimal::parse(step).unwrap()).collect();
                    assert!(!steps.is_empty(), "{spread}");
                    assert!(steps.windows(2).all(|two| two[0] < two[1] && two[1].is_multiple_of(two[0])));
                    assert!(least < 0 || steps.iter().all(|step| *step >= Decimal::integer(2)));
                }
            }
        }
    }
}
