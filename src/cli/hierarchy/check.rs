//! `kanon hierarchy check`: checks a hierarchy file against a column of a table.

use std::path::{Path, PathBuf};

use clap::Args;

use super::csv_options;
use crate::cli::Done;
use crate::cli::inputs::Inputs;
use crate::cli::names::name;
use crate::cli::source::{Csv, Set};
use datafusion_kanon::internals::answer::hierarchy_check::{HierarchyFile, hierarchy_check};
use datafusion_kanon::internals::generalize::hierarchy::{first_cell, is_table};
use datafusion_kanon::internals::input::hierarchy_files::HierarchyFiles;
use datafusion_kanon::{CsvOptions, Error, Files, Input, Result, Run};

/// Check a hierarchy file against a column of a table, and draw it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon hierarchy check education.csv --input adult.parquet
  kanon hierarchy check towns.parquet --input 'lake/*.csv' --column town --show-values

Exit codes: 0 the file is a tree and covers the column, 1 it lacks values of the column, 2 it is not a tree.
Labels of the file are shown, values only with --show-values.")]
pub(crate) struct Check {
    /// The hierarchy file: CSV or Parquet.
    file: PathBuf,
    /// A file, folder, glob or address (s3://lake/in) of Parquet, CSV, JSON lines or Arrow files; repeated, they are one table.
    #[arg(long, required = true)]
    input: Vec<String>,
    /// The column of the input; defaults to the one that the file is named after, or that its header names.
    /// Quotes as in CSV are allowed.
    #[arg(long, value_name = "COLUMN", value_parser = name)]
    column: Option<String>,
    /// A policy whose `[input]` says how to read CSV files; - is standard input.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    set: Set,
    #[command(flatten)]
    csv: Csv,
}

impl Check {
    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        let input = Inputs::of(self.input);
        let csv = csv_options(&self.csv, self.policy.as_deref(), &self.set, &input.words())?;
        let path = self.file.to_string_lossy();
        let text = HierarchyFiles::of_current_folder().read(&path)?;
        let input = input.find(&run.stop)?;
        let column = match &self.column {
            Some(column) => column.clone(),
            None => column_of(&self.file, &text, &input, &csv)?,
        };
        let file = HierarchyFile { path: &path, text: &text, column: &column };
        Done::of(&hierarchy_check(run, &input, &csv, &file).await?)
    }
}

/// Returns the column that a hierarchy file is for: the one of its name or of its header.
fn column_of(file: &Path, text: &str, input: &Input, csv: &CsvOptions) -> Result<String> {
    let schema = input.file_schema(csv)?;
    let header = if is_table(&file.to_string_lossy()) { None } else { first_cell(text).ok().flatten() };
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let is_column = |name: &String| schema.field_with_name(name).is_ok();
    match (stem.filter(is_column), header.filter(is_column)) {
        (Some(stem), Some(header)) if stem != header => Err(Error::policy(
            "give the column with --column: the file's name and its first line name two columns of the input",
        )),
        (Some(column), _) | (None, Some(column)) => Ok(column),
        (None, None) => Err(Error::policy(
            "give the column with --column: neither the file's name nor its first line is a column of the input",
        )),
    }
}
