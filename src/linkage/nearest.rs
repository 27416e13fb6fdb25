//! The classes whose centroids are nearest to a person: the best guess of an attacker who has neither
//! the input nor the assignment (distance-based record linkage, Domingo-Ferrer & Torra 2001).
//!
//! Numbers, dates and timestamps are compared in standard deviations of the released rows, other
//! values are equal or one apart; so are a missing and a present one. Of several classes at the least
//! distance all match.

use crate::decimal::ratio;
use crate::generalize::{RegionLabel, Value};

/// The centroids of the classes.
pub(super) struct Nearest {
    columns: Vec<Centroids>,
    classes: usize,
}

/// The centroids of one column, by class.
pub(super) struct Centroids {
    /// Numbers that can be compared: finite ones of a column of numbers, dates or timestamps.
    numbers: Vec<Option<f64>>,
    /// The texts of all.
    texts: Vec<Option<String>>,
    /// What numbers are divided by, first by the largest of them, so that no square is out of range.
    scales: [f64; 2],
}

impl Centroids {
    /// Reads what each class shows in a column; `rows` has its rows.
    pub(super) fn new<'a>(
        is_number: bool,
        shown: impl Iterator<Item = &'a RegionLabel>,
        rows: &[i64],
    ) -> Self {
        let values: Vec<&Value> = shown.map(RegionLabel::centroid).collect();
        let numbers: Vec<Option<f64>> =
            values.iter().map(|value| number(value).filter(|_| is_number)).collect();
        let most = numbers.iter().flatten().map(|number| number.abs()).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let deviation = deviation(numbers.iter().map(|number| number.map(|number| number / most)), rows);
        let scales = [most, if deviation > 0.0 { deviation } else { 1.0 }];
        Self { numbers, texts: values.into_iter().map(Value::text_form).collect(), scales }
    }

    /// Returns the squared distance of a class from a value.
    fn distance(&self, class: usize, (number, text): &(Option<f64>, Option<String>)) -> f64 {
        if let (Some(centroid), Some(number)) = (self.numbers[class], number) {
            let [most, deviation] = self.scales;
            return ((centroid / most - number / most) / deviation).powi(2);
        }
        if self.texts[class] == *text { 0.0 } else { 1.0 }
    }
}

impl Nearest {
    /// Prepares the search among this number of classes.
    pub(super) fn new(columns: Vec<Centroids>, classes: usize) -> Self {
        Self { columns, classes }
    }

    /// Returns the classes that are nearest to a row with these values, in order.
    pub(super) fn classes(&self, values: Vec<Option<&Value>>) -> Vec<u32> {
        let of_row: Vec<(Option<f64>, Option<String>)> = values
            .into_iter()
            .map(|value| (value.and_then(number), value.and_then(Value::text_form)))
            .collect();
        let (mut nearest, mut least) = (Vec::new(), f64::INFINITY);
        for (class, number) in (0..self.classes).zip(0u32..) {
            let mut distance = 0.0;
            for (column, value) in self.columns.iter().zip(&of_row) {
                distance += column.distance(class, value);
                if distance > least {
                    break;
                }
            }
            if distance < least {
                (nearest, least) = (Vec::new(), distance);
            }
            if distance <= least {
                nearest.push(number);
            }
        }
        nearest
    }
}

/// Returns the standard deviation of the numbers of rows that have one.
fn deviation(numbers: impl Iterator<Item = Option<f64>>, rows: &[i64]) -> f64 {
    let mut weighed: Vec<(f64, f64)> = numbers
        .zip(rows)
        .filter_map(|(number, rows)| Some((number?, ratio(rows.unsigned_abs().into(), 1))))
        .collect();
    // The classes arrive in any order.
    weighed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let all: f64 = weighed.iter().map(|(_, rows)| rows).sum();
    let mean = weighed.iter().map(|(number, rows)| number * rows).sum::<f64>() / all;
    let squares: f64 = weighed.iter().map(|(number, rows)| (number - mean).powi(2) * rows).sum();
    if all > 0.0 { (squares / all).sqrt() } else { 0.0 }
}

/// Returns a number, date or timestamp as a number; `None` for other values, infinities and NaN.
fn number(value: &Value) -> Option<f64> {
    value.to_f64().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generalize::region_label::Values;

    fn column(is_number: bool, values: &[Value], rows: &[i64]) -> Centroids {
        let shown: Vec<RegionLabel> = values
            .iter()
            .map(|value| match value {
                Value::Null => RegionLabel::Missing,
                value => RegionLabel::from(Values::One(value.clone())),
            })
            .collect();
        Centroids::new(is_number, shown.iter(), rows)
    }

    #[test]
    fn the_nearest_centroids_match() {
        let rows = [2, 2, 2];
        let text = |text: &str| Value::Text(text.into());
        let columns = vec![
            column(true, &[20.0, 40.0, 40.0].map(Value::Float), &rows),
            column(false, &["f", "m", "f"].map(text), &rows),
        ];
        let nearest = Nearest::new(columns, 3);
        let found = |age: Value, sex: &str| nearest.classes(vec![Some(&age), Some(&text(sex))]);
        assert_eq!(found(Value::Int(22), "f"), [0]);
        assert_eq!(found(Value::Int(50), "m"), [1]);
        assert_eq!(found(Value::Int(40), "x"), [1, 2]);
        assert_eq!(found(Value::Null, "f"), [0, 2]);
    }

    /// They must neither hide the distances of others nor match what they are not.
    #[test]
    fn numbers_without_a_place_match_their_like() {
        let values = [Value::Float(1.0), Value::Float(f64::NAN), Value::Null, Value::Float(9.0)];
        let nearest = Nearest::new(vec![column(true, &values, &[3; 4])], 4);
        let found = |value: Value| nearest.classes(vec![Some(&value)]);
        assert_eq!(found(Value::Float(2.0)), [0]);
        assert_eq!(found(Value::Float(f64::NAN)), [1]);
        assert_eq!(found(Value::Null), [2]);
    }

    #[test]
    fn no_number_is_too_large_or_too_small() {
        for scale in [1e200, 1e-200, f64::MAX / 3.0] {
            let values = [1.0, 2.0, 3.0].map(|value| Value::Float(value * scale));
            let nearest = Nearest::new(vec![column(true, &values, &[3; 3])], 3);
            assert_eq!(nearest.classes(vec![Some(&values[1])]), [1], "{scale}");
        }
    }
}
