//! The places of numbers and dates on the line between the least and the greatest.

use super::EncodedColumn;
use crate::error::Result;
use crate::generalize::Value;

impl EncodedColumn {
    /// Returns the place of each level-0 value of a column of numbers, dates or timestamps, by
    /// code: 0 for the least, 1 for the greatest, `None` for NULL. `None` for other columns and
    /// those with an infinity or NaN.
    ///
    /// # Errors
    /// An internal error if the values cannot be read.
    pub fn places(&self) -> Result<Option<Vec<Option<f64>>>> {
        if !self.has_intervals() {
            return Ok(None);
        }
        let number = |value: &Value| match value {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            Value::Decimal(digits, _) => digits.to_string().parse().ok(),
            Value::Date(days) => Some(f64::from(*days)),
            Value::Timestamp(ticks, ..) => Some(*ticks as f64),
            _ => None,
        };
        let mut numbers = vec![None; self.distinct()];
        // Level 0 may merge values; the greatest stands for them.
        for (value, code) in self.level(0).of_value().iter().enumerate() {
            numbers[*code as usize] = match Value::read(self.values(), value)? {
                Value::Null => None,
                other => Some(number(&other).unwrap_or(f64::NAN)),
            };
        }
        let least = numbers.iter().flatten().copied().reduce(f64::min).unwrap_or(0.0);
        let greatest = numbers.iter().flatten().copied().reduce(f64::max).unwrap_or(0.0);
        let span = greatest - least;
        if !span.is_finite() || numbers.iter().flatten().any(|number| !number.is_finite()) {
            return Ok(None);
        }
        let place = |number: f64| if span > 0.0 { (number - least) / span } else { 0.0 };
        Ok(Some(numbers.into_iter().map(|number| number.map(place)).collect()))
    }
}
