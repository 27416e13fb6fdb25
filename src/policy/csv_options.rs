//! `[input]`: how files of texts are read.
//!
//! `--csv` takes these keys in one line instead of an option for each, so that a key has one parser, one
//! description and one default.

use arrow::datatypes::DataType;
use encoding_rs::{Encoding, REPLACEMENT, X_USER_DEFINED};
use toml::Value;

use super::cell_forms::{DateFormat, NumberFormat};
use super::key_tables::{INPUT, names};
use super::keys::{Keys, boolean, delimiter, expected, not_too_deep, string, table_of, words};
use crate::error::{Error, Result};
use crate::generalize::Generalizer;

/// The format of a CSV input. The forms of dates and numbers hold for the texts of JSON lines, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    /// The one ASCII character between two cells; by default a tab in .tsv files, and in others the
    /// one that their first lines show.
    pub delimiter: Option<u8>,
    /// Whether the first line holds the column names; `None`: it does, and a first line that looks
    /// like data is refused.
    pub header: Option<bool>,
    /// The cells that stand for NULL.
    pub nulls: Vec<String>,
    /// How dates are written: a cell is read by the first format that it has. Dates in ISO form are
    /// read besides, unless a format begins with the year and a hyphen.
    #[doc(hidden)]
    pub date_formats: Vec<DateFormat>,
    /// How numbers are written.
    #[doc(hidden)]
    pub numbers: NumberFormat,
    /// The encoding of the files, if it is neither UTF-8 nor UTF-16 with a byte order mark.
    pub encoding: Option<&'static Encoding>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            delimiter: None,
            header: None,
            nulls: vec![String::new()],
            date_formats: Vec::new(),
            numbers: NumberFormat::default(),
            encoding: None,
        }
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
    /// Parses keys of `[input]` that are written in one line: `delimiter = ";", encoding = "latin1"`.
    ///
    /// # Errors
    /// A policy error that names the key.
    pub fn parse(keys: &str) -> Result<Self> {
        not_too_deep(keys)?;
        let text = format!("input = {{ {keys} }}");
        let not_keys = |_| {
            Error::policy("expected keys of [input] in one line, such as: delimiter = \";\", header = false")
        };
        let mut table: toml::Table = toml::from_str(&text).map_err(not_keys)?;
        table.remove("input").map_or_else(|| Ok(Self::default()), Self::read)
    }

    pub(super) fn read(value: Value) -> Result<Self> {
        let table = table_of(value).map_err(|error| error.at("input"))?;
        let mut keys = Keys::new("input".into(), table, &names(INPUT))?;
        let default = Self::default();
        let numbers = NumberFormat {
            decimal: keys
                .take("decimal", |value| mark(value, &['.', ',']))?
                .unwrap_or(default.numbers.decimal),
            thousands: keys.take("thousands", |value| mark(value, &['.', ',', ' ', '\'']))?,
        };
        if numbers.thousands == Some(numbers.decimal) {
            let why = format!(
                "is the decimal mark, too; write decimal = {:?}",
                if numbers.decimal == '.' { "," } else { "." }
            );
            return Err(Error::policy(why).at("input.thousands"));
        }
        Ok(Self {
            delimiter: keys.take("delimiter", delimiter)?,
            header: keys.take("header", boolean)?,
            nulls: keys.take("nulls", words)?.unwrap_or(default.nulls),
            date_formats: keys.take("date_format", date_formats)?.unwrap_or_default(),
            numbers,
            encoding: keys.take("encoding", encoding)?,
        })
    }

    /// Returns whether the first line holds the column names.
    pub fn has_header(&self) -> bool {
        self.header.unwrap_or(true)
    }

    /// Returns whether dates in ISO form are read besides those of the formats.
    pub fn reads_iso(&self) -> bool {
        self.date_formats.iter().all(|format| !format.text().starts_with("%Y-"))
    }
}

/// Reads one of these marks.
fn mark(value: Value, known: &[char]) -> Result<char> {
    let found = value.as_str().and_then(|text| known.iter().find(|mark| text.chars().eq([**mark])));
    let marks: Vec<String> = known.iter().map(|mark| format!("\"{mark}\"")).collect();
    found.copied().ok_or_else(|| expected(&format!("one of {}", marks.join(", ")), &value))
}

/// Reads the name of an encoding.
fn encoding(value: Value) -> Result<&'static Encoding> {
    let found = value.as_str().and_then(|name| Encoding::for_label(name.as_bytes()));
    // The web's standard reads some encodings as an error only.
    let found = found.filter(|encoding| *encoding != REPLACEMENT && *encoding != X_USER_DEFINED);
    let known = "an encoding such as \"utf-8\", \"utf-16\", \"latin1\", \"windows-1252\" or \"shift_jis\"";
    found.ok_or_else(|| expected(known, &value))
}

/// Reads one format of dates, or a list of them.
fn date_formats(value: Value) -> Result<Vec<DateFormat>> {
    let texts = match value {
        Value::Array(_) => words(value)?,
        one => vec![string(one)?],
    };
    let formats: Vec<DateFormat> = texts.iter().map(|text| DateFormat::parse(text)).collect::<Result<_>>()?;
    for (at, format) in formats.iter().enumerate() {
        if let Some(other) = formats[..at].iter().find(|other| other.is_swapped_form_of(format)) {
            return Err(Error::policy(format!(
                "03/04 would be read by the first of \"{}\" and \"{}\", whichever was meant; keep one of them",
                other.text(),
                format.text()
            )));
        }
    }
    Ok(formats)
}
