//! INPUT of a command: one argument or several, which are one table.

use clap::Args;

use super::in_shell;
use super::source::{find_table, record_of};
use datafusion_kanon::internals::input::files::STANDARD_INPUT;
use datafusion_kanon::records::PublicRecord;
use datafusion_kanon::{CancelToken, Error, Input, Result};

/// Checks that a flag was repeated once for each release, or not given.
///
/// # Errors
/// A policy error that says `of_what` there are.
pub(crate) fn one_each(flag: &str, found: usize, count: usize, of_what: &str) -> Result<()> {
    if found == 0 || found == count {
        return Ok(());
    }
    let why = format!("expected one for each of the {count} {of_what}, in their order, found {found}");
    Err(Error::policy(why).at(flag))
}

/// INPUT of a command.
#[derive(Debug, Args)]
pub(crate) struct Inputs {
    /// A file, folder, glob or address (s3://lake/in) of Parquet, CSV, JSON lines or Arrow files; several are one table.
    #[arg(value_name = "INPUT", required = true)]
    input: Vec<String>,
}

impl Inputs {
    /// Takes the arguments of a flag that was repeated.
    pub(crate) fn of(input: Vec<String>) -> Self {
        Self { input }
    }

    /// Returns the arguments.
    pub(crate) fn words(&self) -> Vec<&str> {
        self.input.iter().map(String::as_str).collect()
    }

    /// Returns the arguments as a shell takes them, each behind `before`.
    pub(crate) fn in_shell(&self, before: &str) -> String {
        self.words()
            .into_iter()
            .map(|word| format!("{before}{}", in_shell(word)))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Finds the files, or reads standard input.
    ///
    /// # Errors
    /// Those of [`Input::find_or_read`]; a policy error for standard input beside others.
    pub(crate) fn find(&self, stop: &CancelToken) -> Result<Input> {
        match self.input.as_slice() {
            [one] => Input::find_or_read(one, stop),
            all if all.iter().any(|argument| argument == STANDARD_INPUT) => {
                Err(Error::policy("standard input cannot be a part of a table; name files").at("input"))
            }
            all => Input::find_all(all, stop),
        }
    }

    /// Finds the files. Of a release of several tables, it is the first, which has the quasi-identifiers.
    ///
    /// # Errors
    /// Those of [`find`](Self::find), and of reading a record.
    pub(crate) fn find_table(&self, stop: &CancelToken) -> Result<Input> {
        match self.input.as_slice() {
            [one] => find_table(one, stop),
            _ => self.find(stop),
        }
    }

    /// Returns where the release is and its public record, if the input is one.
    ///
    /// # Errors
    /// Those of reading it.
    pub(crate) fn release(&self) -> Result<Option<(&str, PublicRecord)>> {
        match self.input.as_slice() {
            [one] => Ok(record_of(one)?.map(|record| (one.as_str(), record))),
            _ => Ok(None),
        }
    }

    /// Returns the names of the quasi-identifiers if the input is a release.
    ///
    /// # Errors
    /// Those of reading its record.
    pub(crate) fn quasi_of_release(&self) -> Result<Vec<String>> {
        self.release()?.map_or(Ok(Vec::new()), |(_, record)| record.written_quasi())
    }
}
