//! Checks that a class shows the centroids of its rows, as they were counted in the input.
//!
//! It shares no arithmetic with the one that computes them
//! ([`generalize::centroid`](crate::generalize::centroid)), but for the number that a clipped value
//! counts as: a shown value is tested for the properties of a mean, a median or a mode. A mean of
//! numbers may differ from the sum of all values by their shares of the rows by what rounding can do
//! to that sum.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::datatypes::i256;
use hashbrown::HashMap;

use super::assignment::Assignment;
use super::labels::Labels;
use crate::class::{Budget, Held};
use crate::decimal::ratio;
use crate::error::{Error, Result};
use crate::generalize::{Centroid, Value, compare};

/// Checks what every class of an assignment shows. `counts` has the rows of each class with each
/// value, by their numbers, for each quasi-identifier.
///
/// # Errors
/// An unmet error if a class shows another value than the centroid of its rows.
pub(super) fn check_centroids(
    assignment: &Assignment,
    centroid: Centroid,
    values: &[Arc<Labels>],
    counts: &[HashMap<(u32, u32), u64>],
    budget: &Arc<dyn Budget>,
) -> Result<()> {
    for ((column, values), counts) in assignment.columns.iter().zip(values).zip(counts) {
        let centroid = centroid.for_column(&column.hierarchy);
        let mut held = Held::new(budget);
        held.at_least(counts.len() * size_of::<((u32, u32), u64)>())?;
        let mut counts: Vec<((u32, u32), u64)> = counts.iter().map(|(pair, rows)| (*pair, *rows)).collect();
        counts.sort_unstable();
        for of_class in counts.chunk_by(|a, b| a.0.0 == b.0.0) {
            let value = |((_, value), rows): &((u32, u32), u64)| {
                Ok((column.hierarchy.clipped_value(&values.value(*value)?)?, *rows))
            };
            let rows: Vec<(Value, u64)> = of_class.iter().map(value).collect::<Result<_>>()?;
            let shown = column.shown_by_class[of_class[0].0.0 as usize];
            let shown = column.shown[shown as usize].1.centroid();
            if !is_centroid(centroid, shown, &rows) {
                return Err(Error::unmet(format!(
                    "verification refused: a class does not show the {} of its rows",
                    centroid.name()
                )));
            }
        }
    }
    Ok(())
}

/// Returns whether a value is the centroid of values with their rows. A text or a boolean must occur
/// once.
fn is_centroid(centroid: Centroid, shown: &Value, values: &[(Value, u64)]) -> bool {
    let rows = |is_counted: &dyn Fn(&Value) -> bool| -> u64 {
        values.iter().filter(|(value, _)| is_counted(value)).map(|(_, rows)| rows).sum()
    };
    let is = |value: &Value, ordering| compare(value, shown) == Some(ordering);
    if centroid == Centroid::Mode {
        let most = rows(&|value| value == shown);
        let is_less =
            |value: &Value| *shown != Value::Null && (*value == Value::Null || is(value, Ordering::Less));
        return most > 0
            && values.iter().all(|(value, rows)| *rows < most || (*rows == most && !is_less(value)));
    }
    let missing = rows(&|value| *value == Value::Null);
    let present = rows(&|value| *value != Value::Null);
    if present == 0 || missing > present {
        return *shown == Value::Null;
    }
    if centroid == Centroid::Median {
        let below = rows(&|value| is(value, Ordering::Less));
        let equal = rows(&|value| is(value, Ordering::Equal));
        return equal > 0 && 2 * below < present && 2 * (below + equal) >= present;
    }
    let present = values.iter().filter(|(value, _)| *value != Value::Null);
    match shown {
        Value::Float(mean) => is_mean_of_numbers(*mean, present.collect()),
        Value::Date(_) | Value::Timestamp(..) => is_mean_of_moments(shown, present),
        _ => false,
    }
}

/// Sums one row after another, the least numbers first.
fn is_mean_of_numbers(mean: f64, mut values: Vec<&(Value, u64)>) -> bool {
    let number = |value: &Value| value.text_form().and_then(|text| text.parse::<f64>().ok());
    values.sort_by(|a, b| compare(&a.0, &b.0).unwrap_or(Ordering::Equal));
    let rows: u64 = values.iter().map(|(_, rows)| rows).sum();
    let all = ratio(rows.into(), 1);
    let (mut sum, mut sizes) = (0.0, 0.0);
    for (value, rows) in &values {
        let Some(number) = number(value) else { return false };
        let part = number * (ratio((*rows).into(), 1) / all);
        sum += part;
        sizes += part.abs();
    }
    if !sum.is_finite() {
        return (sum.is_nan() && mean.is_nan()) || sum == mean;
    }
    let roundings = ratio(values.len() as u128 + 8, 1);
    (sum - mean).abs() <= 4.0 * roundings * f64::EPSILON * sizes
}

/// The mean is rounded down: the sum lies between it and the next day or tick.
fn is_mean_of_moments<'a>(mean: &Value, values: impl Iterator<Item = &'a (Value, u64)>) -> bool {
    let ticks = |value: &Value| match value {
        Value::Date(days) => Some(i256::from_i128((*days).into())),
        Value::Timestamp(ticks, ..) => Some(i256::from_i128((*ticks).into())),
        _ => None,
    };
    let Some(mean) = ticks(mean) else { return false };
    let (mut sum, mut rows) = (i256::ZERO, i256::ZERO);
    for (value, n) in values {
        let (Some(value), n) = (ticks(value), i256::from_i128((*n).into())) else { return false };
        sum += value * n;
        rows += n;
    }
    mean * rows <= sum && sum < (mean + i256::ONE) * rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![Just(Value::Null), (-3..4i128).prop_map(Value::Int)]
    }

    fn date() -> impl Strategy<Value = Value> {
        prop_oneof![Just(Value::Null), (-3..4i32).prop_map(Value::Date)]
    }

    fn float() -> impl Strategy<Value = Value> {
        prop_oneof![Just(Value::Null), any::<i32>().prop_map(|x| Value::Float(f64::from(x) * 0.1))]
    }

    /// Attacks the centroids of rows with these values.
    fn attack(rows: Vec<(Value, u64)>, others: &[Value]) {
        let mut values: Vec<(Value, u64)> = Vec::new();
        for (value, rows) in rows {
            match values.iter_mut().find(|(other, _)| *other == value) {
                Some((_, known)) => *known += rows,
                None => values.push((value, rows)),
            }
        }
        let values = &values;
        for centroid in [Centroid::Mean, Centroid::Median, Centroid::Mode] {
            let right = centroid.of(values).unwrap();
            assert!(is_centroid(centroid, &right, values), "{centroid:?} {}", values.len());
            for other in others.iter().filter(|other| other.text_form() != right.text_form()) {
                assert!(!is_centroid(centroid, other, values), "{centroid:?} {}", values.len());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn only_the_centroid_is_one(
            values in prop::collection::vec((value(), 1..4u64), 1..8),
            dates in prop::collection::vec((date(), 1..4u64), 1..8),
            floats in prop::collection::vec((float(), 1..4u64), 1..8),
        ) {
            let steps = || -12..13i32;
            let numbers: Vec<Value> = steps().map(|x| Value::Float(f64::from(x) / 3.0)).collect();
            let ints = steps().map(|x| Value::Int(x.into()));
            attack(values, &numbers.into_iter().chain(ints).chain([Value::Null]).collect::<Vec<_>>());
            attack(dates, &steps().map(Value::Date).chain([Value::Null]).collect::<Vec<_>>());
            attack(floats, &[Value::Null, Value::Float(1e-3)]);
        }
    }
}
