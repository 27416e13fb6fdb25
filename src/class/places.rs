//! The places of numbers and dates on the line between the least and the greatest.

use super::EncodedColumn;
use crate::error::Result;
use crate::generalize::Value;

/// The line from the least to the greatest value of a column of numbers, dates or timestamps.
pub struct NumberLine {
    least: f64,
    span: f64,
    places: Vec<Option<f64>>,
}

impl std::fmt::Debug for NumberLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NumberLine({} places)", self.places.len())
    }
}

impl NumberLine {
    /// Returns the place of each level-0 value, by code: 0 for the least, 1 for the greatest, `None`
    /// for NULL. A clipped number has the place of the bound.
    pub fn places(&self) -> &[Option<f64>] {
        &self.places
    }

    /// Returns the place of any value; `None` for NULL.
    pub fn place(&self, value: &Value) -> Option<f64> {
        value.to_f64().map(|number| self.place_of(number))
    }

    fn place_of(&self, number: f64) -> f64 {
        if self.span > 0.0 { (number - self.least) / self.span } else { 0.0 }
    }
}

impl EncodedColumn {
    /// Returns the line of a column of numbers, dates or timestamps. `None` for other columns and
    /// those with an infinity or NaN.
    ///
    /// # Errors
    /// An internal error if the values cannot be read.
    pub fn number_line(&self) -> Result<Option<NumberLine>> {
        if !self.has_intervals() {
            return Ok(None);
        }
        let values = self.clipped_values()?;
        let numbers: Vec<Option<f64>> = values.iter().map(Value::to_f64).collect();
        let least = numbers.iter().flatten().copied().reduce(f64::min).unwrap_or(0.0);
        let greatest = numbers.iter().flatten().copied().reduce(f64::max).unwrap_or(0.0);
        let span = greatest - least;
        if !span.is_finite() || numbers.iter().flatten().any(|number| !number.is_finite()) {
            return Ok(None);
        }
        let mut line = NumberLine { least, span, places: Vec::new() };
        line.places = numbers.into_iter().map(|number| number.map(|number| line.place_of(number))).collect();
        Ok(Some(line))
    }
}
