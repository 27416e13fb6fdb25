//! `[input]`: how CSV files are read.

use arrow::datatypes::DataType;
use toml::Value;

use super::keys::{Keys, boolean, delimiter, table_of, words};
use crate::error::Result;
use crate::generalize::Generalizer;

const INPUT: &[&str] = &["delimiter", "header", "nulls"];

/// The format of a CSV input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    /// The one ASCII character between two cells; by default a tab in .tsv files and a comma in
    /// others.
    pub delimiter: Option<u8>,
    /// Whether the first line holds the column names.
    pub header: bool,
    /// The cells that stand for NULL.
    pub nulls: Vec<String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { delimiter: None, header: true, nulls: vec![String::new()] }
    }
}

/// The type to read a CSV column as, so that the column's hierarchy can work on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvType {
    /// The cells as they are written: 02139 keeps its zero.
    Text,
    /// Numbers.
    Number,
    /// Dates.
    Date,
}

impl CsvType {
    /// Returns the type to read cells as for `level`: text if it can work on that.
    pub fn of_level(level: &dyn Generalizer) -> Self {
        let takes = |data_type| level.output_type(&data_type).is_ok();
        match (takes(DataType::Utf8View), takes(DataType::Date32)) {
            (true, _) => Self::Text,
            (_, true) => Self::Date,
            _ => Self::Number,
        }
    }
}

impl CsvOptions {
    pub(super) fn read(value: Value) -> Result<Self> {
        let table = table_of(value).map_err(|error| error.at("input"))?;
        let mut keys = Keys::new("input".into(), table, INPUT, &[])?;
        let default = Self::default();
        Ok(Self {
            delimiter: keys.take("delimiter", delimiter)?,
            header: keys.take("header", boolean)?.unwrap_or(default.header),
            nulls: keys.take("nulls", words)?.unwrap_or(default.nulls),
        })
    }
}
