//! Filters the engine's errors: shows those about the text of a query, and nothing that read a row.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use super::no_column::no_column;
use super::own_names;
use datafusion_kanon::internals::engine::map_error;
use datafusion_kanon::{Error, Result};

/// Marks the engine's errors with the stage at which they occur.
pub(super) trait StageResult<T> {
    /// Maps an error of a query that has read no row: errors about its text are shown in full.
    fn planning(self) -> Result<T>;
    /// Maps an error of opening files to learn their columns.
    fn opening(self) -> Result<T>;
    /// Maps an error of a statement that never reads a row, shown in full.
    fn asking(self) -> Result<T>;
    /// Maps an error of a query that reads rows, without its text.
    fn running(self, doing: &str) -> Result<T>;
}

impl<T> StageResult<T> for std::result::Result<T, DataFusionError> {
    fn planning(self) -> Result<T> {
        self.map_err(|error| match error.find_root() {
            // From a constant expression.
            DataFusionError::Execution(text) => Error::policy(text),
            _ => stage_error(&error),
        })
    }

    fn opening(self) -> Result<T> {
        self.map_err(|error| stage_error(&error))
    }

    fn asking(self) -> Result<T> {
        self.map_err(|error| about_text(&error).unwrap_or_else(|| Error::policy(error.strip_backtrace())))
    }

    fn running(self, doing: &str) -> Result<T> {
        self.map_err(|error| map_error(&error, doing))
    }
}

fn stage_error(error: &DataFusionError) -> Error {
    about_text(error).unwrap_or_else(|| map_error(error, "planning the query"))
}

/// Returns the error if it is about the query's text or this crate's own.
fn about_text(error: &DataFusionError) -> Option<Error> {
    match error.find_root() {
        DataFusionError::SQL(parser, _) => Some(Error::policy(parser)),
        DataFusionError::SchemaError(schema, _) => Some(Error::policy(match &**schema {
            SchemaError::FieldNotFound { field, valid_fields } => no_column(field, valid_fields),
            other => other.to_string(),
        })),
        DataFusionError::Plan(text) => Some(Error::policy(with_help(text))),
        DataFusionError::Configuration(text) | DataFusionError::NotImplemented(text) => {
            Some(Error::policy(text))
        }
        DataFusionError::External(inner) => inner.downcast_ref::<Error>().cloned(),
        _ => None,
    }
}

/// Adds to a plan error what was probably meant.
fn with_help(text: &str) -> String {
    if let Some(suggestion) = own_names::suggestion(text) {
        return suggestion;
    }
    let hint = match text.contains("Utf8") {
        true => {
            ": a column of a CSV file is text if one cell is, nulls in --csv names the words for missing values, CAST(x AS INT) or \
             CAST(x AS DOUBLE) makes numbers of texts, CAST(x AS VARCHAR) texts of numbers"
        }
        false => "",
    };
    if let Some((_, of)) = text.split_once("Function '")
        && let Some((function, _)) =
            of.split_once("' failed to match any signature").or_else(|| of.split_once("' expects "))
    {
        return format!("`{function}` does not take arguments of these types{hint}");
    }
    if let Some((_, of)) = text.split_once("Cannot coerce arithmetic expression ")
        && let Some(sign) = of.split(' ').find(|word| ["+", "-", "*", "/", "%"].contains(word))
        && !hint.is_empty()
    {
        return format!("`{sign}` does not take operands of these types{hint}");
    }
    if text.starts_with("table '") && text.ends_with("not found") {
        let text = text.replacen("'datafusion.public.", "'", 1);
        format!(r"{text}; \d lists the tables; file names are quoted: FROM 'visits.parquet'")
    } else {
        text.to_owned()
    }
}
