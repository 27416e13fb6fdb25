//! The formats of input files, by their names and first bytes.

use std::path::Path;

use crate::error::{Error, Result};
use crate::store::Object;

/// The input formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputFormat {
    /// Apache Parquet.
    Parquet,
    /// Text separated by commas or another delimiter.
    Csv,
    /// JSON lines: one object per line.
    Json,
    /// Arrow IPC, as a file or a stream.
    Arrow,
}

impl InputFormat {
    /// Returns whether files of this format say the types of their columns.
    pub fn has_types(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }
}

/// The lower-case file name extensions, and their formats.
const ENDS: [(&str, InputFormat); 12] = [
    ("parquet", InputFormat::Parquet),
    ("pq", InputFormat::Parquet),
    ("csv", InputFormat::Csv),
    ("tsv", InputFormat::Csv),
    ("txt", InputFormat::Csv),
    ("json", InputFormat::Json),
    ("jsonl", InputFormat::Json),
    ("ndjson", InputFormat::Json),
    ("arrow", InputFormat::Arrow),
    ("arrows", InputFormat::Arrow),
    ("feather", InputFormat::Arrow),
    ("ipc", InputFormat::Arrow),
];

impl InputFormat {
    /// Returns the name of the format in messages.
    pub fn name(self) -> &'static str {
        match self {
            InputFormat::Parquet => "Parquet",
            InputFormat::Csv => "CSV",
            InputFormat::Json => "JSON lines",
            InputFormat::Arrow => "Arrow",
        }
    }
}

/// Extensions of files that are not read, what they are, and how to export them.
const OTHERS: [(&[&str], &str); 4] = [
    (
        &["xlsx", "xls", "xlsm", "xlsb", "ods"],
        "a workbook is not read, because its cells hold formats and formulas; save the sheet as CSV (in Excel: File, Save As, \
         \"CSV UTF-8\") and give that file",
    ),
    (
        &["sav", "zsav", "dta", "sas7bdat", "xpt", "rds", "rdata"],
        "files of statistics programs are not read; export the table as CSV or Parquet",
    ),
    (&["gz", "zip", "bz2", "xz", "zst", "7z"], "compressed files are not read; unpack the file first"),
    (
        &["db", "sqlite", "sqlite3", "duckdb", "mdb", "accdb"],
        "databases are not read; export the table as CSV or Parquet",
    ),
];

/// The first bytes of files that are no text whatever their names end in, and an extension of what they are.
const FIRST_BYTES: [(&[u8], &str); 4] = [
    (b"PK\x03\x04", "xlsx"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "xlsx"),
    (b"\x1f\x8b\x08", "gz"),
    (b"SQLite format 3\0", "sqlite"),
];

/// Refuses a file of texts that is a workbook, an archive or a database by its first bytes.
///
/// # Errors
/// A data error that says how to export it.
pub(super) fn check_is_text(first: &[u8], place: &str) -> Result<()> {
    let Some((bytes, found)) = FIRST_BYTES.iter().find(|(bytes, _)| first.starts_with(bytes)) else {
        return Ok(());
    };
    let why = OTHERS.iter().find(|(ends, _)| ends.contains(found)).map_or("", |(_, why)| *why);
    let what = match *bytes {
        b"PK\x03\x04" => {
            "it is no text but a workbook (.xlsx, .ods) or an archive (.zip), whatever its name; if an archive, unpack it; "
        }
        _ => "it is no text, whatever its name; ",
    };
    Err(Error::data(format!("{what}{why}")).at(place))
}

/// Returns the format that the name of a file says; `None` if it is not read.
pub fn format_by_name(path: &Path) -> Option<InputFormat> {
    let found = end_of(path);
    ENDS.iter().find(|(end, _)| *end == found).map(|(_, format)| *format)
}

/// Returns the format that the name of an object says.
///
/// # Errors
/// A data error that says how to export a file that is not read.
pub(super) fn format_of(object: &Object) -> Result<InputFormat> {
    let name = Path::new(object.address().name());
    if let Some(format) = format_by_name(name) {
        return Ok(format);
    }
    let found = end_of(name);
    let why = match OTHERS.iter().find(|(ends, _)| ends.contains(&found.as_str())) {
        Some((_, why)) => (*why).to_owned(),
        None => format!("expected a name that ends in {}", ends()),
    };
    Err(Error::data(why).at(object.place()))
}

/// Returns the extension of a file name in lower case, without the dot.
pub(crate) fn end_of(path: &Path) -> String {
    path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

/// Returns the extension of a file name in lower case if it is one of files of data, whether they are read
/// or not.
pub fn end_of_data(path: &Path) -> Option<String> {
    let end = end_of(path);
    let is_read = ENDS.iter().any(|(known, _)| *known == end);
    (is_read || OTHERS.iter().any(|(known, _)| known.contains(&end.as_str()))).then_some(end)
}

/// Lists all extensions that are read, for an error.
pub(super) fn ends() -> String {
    let ends: Vec<String> = ENDS.iter().map(|(end, _)| format!(".{end}")).collect();
    ends.join(", ")
}
