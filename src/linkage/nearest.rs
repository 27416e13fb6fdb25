//! The classes whose centroids are nearest to a person: the best guess of an attacker who has neither
//! the input nor the assignment (distance-based record linkage, Domingo-Ferrer & Torra 2001).
//!
//! Numbers, dates and timestamps are compared in standard deviations of the released rows, other
//! values are equal or one apart; so are a missing and a present one. Of several classes at the least
//! distance all match.

use crate::decimal::ratio;
use crate::generalize::region_label::Values;
use crate::generalize::{RegionLabel, Value};

/// The centroids of the classes.
pub(super) struct Nearest {
    columns: Vec<Centroids>,
    classes: u32,
}

/// Those of one column, by class.
enum Centroids {
    /// Numbers, and what a difference of 1 is divided by.
    Numbers(Vec<Option<f64>>, f64),
    /// Texts of other values.
    Texts(Vec<Option<String>>),
}

impl Nearest {
    /// Prepares the search; `shown` has what each class shows, by column, and `rows` its rows.
    pub(super) fn new(shown: Vec<Vec<RegionLabel>>, rows: &[i64]) -> Self {
        let classes = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let value = |shown: &RegionLabel| match shown {
            RegionLabel::Values { values: Values::One(value), .. } => value.clone(),
            _ => Value::Null,
        };
        let column = |shown: Vec<RegionLabel>| {
            let values: Vec<Value> = shown.iter().map(value).collect();
            let numbers: Vec<Option<f64>> = values.iter().map(number).collect();
            let is_number =
                values.iter().zip(&numbers).all(|(value, number)| *value == Value::Null || number.is_some());
            match is_number {
                true => {
                    let scale = deviation(&numbers, rows);
                    Centroids::Numbers(numbers, if scale > 0.0 { scale } else { 1.0 })
                }
                false => Centroids::Texts(values.iter().map(Value::text_form).collect()),
            }
        };
        Self { columns: shown.into_iter().map(column).collect(), classes }
    }

    /// Returns the classes that are nearest to a row with these values, in order.
    pub(super) fn classes(&self, values: Vec<Option<&Value>>) -> Vec<u32> {
        let of_row: Vec<(Option<f64>, Option<String>)> = values
            .into_iter()
            .map(|value| (value.and_then(number), value.and_then(Value::text_form)))
            .collect();
        let (mut nearest, mut least) = (Vec::new(), f64::INFINITY);
        for class in 0..self.classes {
            let columns = self.columns.iter().zip(&of_row);
            let distance: f64 = columns.map(|(column, value)| column.distance(class as usize, value)).sum();
            if distance < least {
                (nearest, least) = (Vec::new(), distance);
            }
            if distance <= least {
                nearest.push(class);
            }
        }
        nearest
    }
}

impl Centroids {
    /// Returns the squared distance of a class from a value.
    fn distance(&self, class: usize, (number, text): &(Option<f64>, Option<String>)) -> f64 {
        let is_other = match self {
            Self::Texts(texts) => texts[class] != *text,
            Self::Numbers(numbers, scale) => match (numbers[class], number) {
                (Some(centroid), Some(number)) => return ((centroid - number) / scale).powi(2),
                (centroid, number) => centroid.is_some() != number.is_some(),
            },
        };
        if is_other { 1.0 } else { 0.0 }
    }
}

/// Returns the standard deviation of the numbers of rows that have one.
fn deviation(numbers: &[Option<f64>], rows: &[i64]) -> f64 {
    let weighed = || {
        let present = numbers.iter().zip(rows).filter_map(|(number, rows)| Some(((*number)?, *rows)));
        present.map(|(number, rows)| (number, ratio(rows.unsigned_abs().into(), 1)))
    };
    let all: f64 = weighed().map(|(_, rows)| rows).sum();
    let mean = weighed().map(|(number, rows)| number * rows).sum::<f64>() / all;
    let squares: f64 = weighed().map(|(number, rows)| (number - mean) * (number - mean) * rows).sum();
    if all > 0.0 { (squares / all).sqrt() } else { 0.0 }
}

/// Returns a number, date or timestamp as a number; `None` for other values, infinities and NaN.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Float(number) => *number,
        Value::Date(days) => f64::from(*days),
        Value::Int(_) | Value::Decimal(..) => value.text_form()?.parse().ok()?,
        Value::Timestamp(ticks, ..) => ticks.to_string().parse().ok()?,
        Value::Null | Value::Bool(_) | Value::Text(_) => return None,
    };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_centroids_match() {
        let one = |value: Value| RegionLabel::from(Values::One(value));
        let ages = [20.0, 40.0, 40.0].map(|age| one(Value::Float(age))).to_vec();
        let sexes = ["f", "m", "f"].map(|sex| one(Value::Text(sex.into()))).to_vec();
        let nearest = Nearest::new(vec![ages, sexes], &[2, 2, 2]);
        let found = |age: Value, sex: Option<&Value>| nearest.classes(vec![Some(&age), sex]);
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(found(Value::Int(22), Some(&text("f"))), [0]);
        assert_eq!(found(Value::Int(50), Some(&text("m"))), [1]);
        assert_eq!(found(Value::Int(40), Some(&text("x"))), [1, 2]);
        assert_eq!(found(Value::Null, Some(&text("f"))), [0, 2]);
    }
}
