//! `kanon hierarchy check`: checks a hierarchy file against a column of a table.

use std::path::{Path, PathBuf};

use arrow::array::StringViewArray;
use clap::Args;
use hashbrown::HashMap;
use serde_json::{Value, json};

use super::{csv_options, draw};
use crate::cli::Done;
use crate::cli::names::name;
use crate::cli::numbers::{grouped, plural, rows};
use crate::cli::source::{Csv, Set};
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::generalize::hierarchy::{first_cell, is_table, parse_csv, parse_table};
use crate::generalize::hierarchy_shape::{HierarchyShape, Spread};
use crate::input::Input;
use crate::input::column_values::for_each_text;
use crate::input::hierarchy_files::HierarchyFiles;
use crate::parameter::TextTable;
use crate::policy::{CsvOptions, Files, Folder};
use crate::progress::Phase;

/// The number of values that --show-values lists.
const SHOWN: usize = 1_000;

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
    /// A file, folder or glob of Parquet, CSV, JSON lines or Arrow files.
    #[arg(long)]
    input: String,
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
        let csv = csv_options(&self.csv, self.policy.as_deref(), &self.set, &self.input)?;
        let text = HierarchyFiles(Folder(PathBuf::new())).read(&self.file.to_string_lossy())?;
        let input = Input::find_or_read(&self.input)?;
        let place = || format!("hierarchy file {}", self.file.display());
        let column = match &self.column {
            Some(column) => column.clone(),
            None => column_of(&self.file, &text, &input, &csv)?,
        };
        let table = match is_table(&self.file.to_string_lossy()) {
            true => parse_table(&text),
            false => parse_csv(&text, &column),
        };
        let table = table.map_err(|error| error.at(place()))?;
        run.progress.begin(Phase::Profile, 0);
        let mut found = Found::new(&table, run.show_values);
        for_each_text(run, &input, &csv, &column, &mut |values, rows| {
            found.add(values, rows);
            Ok(())
        })
        .await?;
        found.lacking.sort_unstable();
        let shape = HierarchyShape::new(table.rows(), &found.rows);
        Ok(Done {
            text: self.describe(&column, &shape, &found),
            json: to_json(&self.file, &column, &shape, &found),
            holds: found.missing_values == 0,
        })
    }

    fn describe(&self, column: &str, shape: &HierarchyShape<'_>, found: &Found<'_>) -> String {
        let mut text = String::new();
        let mut line = |key: &str, rest: String| text += &format!("{key:<10}{rest}\n");
        let nulls = match found.nulls {
            0 => String::new(),
            nulls => format!(", {} without one", grouped(nulls)),
        };
        let known = rows(found.known_rows);
        line("read", format!("{known} with a value of `{column}`{nulls}"));
        let (values, levels) = (found.table.rows().len() as u64, shape.levels().len() as u64);
        let (values, levels) = (plural(values, "value", "values"), plural(levels, "level", "levels"));
        line("tree", format!("{}: {values} in {levels}", self.file.display()));
        match found.missing_values {
            0 => line("covers", format!("every value of `{column}`")),
            missing => {
                let (lacks, it) =
                    (plural(missing, "value", "values"), if missing == 1 { "it" } else { "each" });
                let hold = if found.missing_rows == 1 { "holds" } else { "hold" };
                let of = format!("{lacks} of `{column}`, which {} {hold}", rows(found.missing_rows));
                let next = match found.shows_values {
                    true => format!("; add a line for {it}: {}", list(&found.lacking, missing)),
                    false => format!("; add a line for {it} (--show-values lists them)"),
                };
                line("LACKS", of + found.table.doubt() + &next);
            }
        }
        let unused = found.unused().count() as u64;
        if unused > 0 {
            let verb = plural(unused, "value of the file does", "values of the file do");
            let shown: Vec<&str> = found.unused().take(SHOWN).collect();
            let shown =
                if found.shows_values { format!(": {}", list(&shown, unused)) } else { String::new() };
            line("unused", format!("{verb} not occur in the input{shown}"));
        }
        text + "\n" + &levels_table(shape) + "\n" + &draw::tree(shape, found.known_rows)
    }
}

/// Lists some of `all` texts.
fn list(some: &[impl AsRef<str>], all: u64) -> String {
    let shown: Vec<&str> = some.iter().map(AsRef::as_ref).collect();
    match all - (shown.len() as u64).min(all) {
        0 => shown.join(", "),
        more => format!("{} and {} more", shown.join(", "), grouped(more)),
    }
}

/// Formats the number of labels of each level, and the values and rows of a label.
fn levels_table(shape: &HierarchyShape<'_>) -> String {
    let head = ["level", "labels", "least", "mean", "most", "least", "mean", "most"].map(str::to_owned);
    let mut table = vec![head];
    for (level, labels) in (1_u64..).zip(shape.levels()) {
        let [least, mean, most] = cells(Spread::of(labels.iter().map(|label| label.leaves)));
        let [least_rows, mean_rows, most_rows] = cells(Spread::of(labels.iter().map(|label| label.rows)));
        let labels = grouped(labels.len() as u64);
        table.push([grouped(level), labels, least, mean, most, least_rows, mean_rows, most_rows]);
    }
    let width = |at: usize| table.iter().map(|row| row[at].len()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    let line = |row: &[String; 8]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}"));
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    // The titles stand over the ends of their three columns.
    let title = |from: usize| widths.iter().skip(from).take(3).map(|width| width + 2).sum::<usize>();
    let (of_values, of_rows) = (widths[0] + 2 + widths[1] + title(2), title(5));
    let titles = format!("{:>of_values$}{:>of_rows$}\n", "values of a label", "rows of a label");
    titles + &table.iter().map(line).collect::<String>()
}

/// Formats the least, mean and greatest count.
fn cells(spread: Spread) -> [String; 3] {
    [grouped(spread.least), format!("{:.1}", spread.mean), grouped(spread.greatest)]
}

fn to_json(file: &Path, column: &str, shape: &HierarchyShape<'_>, found: &Found<'_>) -> Value {
    let spread =
        |spread: Spread| json!({ "least": spread.least, "mean": spread.mean, "greatest": spread.greatest });
    let levels = (1..).zip(shape.levels()).map(|(level, labels)| {
        let level: usize = level;
        json!({
            "level": level,
            "labels": labels.len(),
            "values": spread(Spread::of(labels.iter().map(|label| label.leaves))),
            "rows": spread(Spread::of(labels.iter().map(|label| label.rows))),
        })
    });
    let mut json = json!({
        "file": file.to_string_lossy(),
        "column": column,
        "covers": found.missing_values == 0,
        "values": found.table.rows().len(),
        "rows": found.known_rows,
        "nulls": found.nulls,
        "missing_values": found.missing_values,
        "missing_rows": found.missing_rows,
        "unused_values": found.unused().count(),
        "levels": levels.collect::<Vec<_>>(),
    });
    if found.shows_values {
        json["missing"] = json!(found.lacking);
        json["unused"] = json!(found.unused().take(SHOWN).collect::<Vec<_>>());
    }
    json
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

/// The values of a column, found in a hierarchy file or not.
struct Found<'a> {
    table: &'a TextTable,
    /// The rows of the input for each row of the file.
    rows: Vec<u64>,
    positions: HashMap<&'a str, usize>,
    /// The rows of the input with a value, and without one.
    known_rows: u64,
    nulls: u64,
    missing_values: u64,
    missing_rows: u64,
    shows_values: bool,
    /// Some of the values that the file lacks, if they are shown.
    lacking: Vec<String>,
}

impl<'a> Found<'a> {
    fn new(table: &'a TextTable, shows_values: bool) -> Self {
        let values = table.rows().iter().filter_map(|row| row.first()).enumerate();
        Self {
            table,
            rows: vec![0; table.rows().len()],
            positions: values.map(|(at, value)| (value.as_str(), at)).collect(),
            known_rows: 0,
            nulls: 0,
            missing_values: 0,
            missing_rows: 0,
            shows_values,
            lacking: Vec::new(),
        }
    }

    /// Adds distinct values with their rows.
    fn add(&mut self, values: &StringViewArray, rows: &[u64]) {
        for (value, rows) in values.iter().zip(rows) {
            let Some(value) = value else {
                self.nulls += rows;
                continue;
            };
            self.known_rows += rows;
            match self.positions.get(value).and_then(|at| self.rows.get_mut(*at)) {
                Some(known) => *known += rows,
                None => {
                    self.missing_values += 1;
                    self.missing_rows += rows;
                    if self.shows_values && self.lacking.len() < SHOWN {
                        self.lacking.push(value.to_owned());
                    }
                }
            }
        }
    }

    /// Returns the values of the file that the input does not have, in the file's order.
    fn unused(&self) -> impl Iterator<Item = &str> {
        let values = self.table.rows().iter().filter_map(|row| row.first()).zip(&self.rows);
        values.filter(|(_, rows)| **rows == 0).map(|(value, _)| value.as_str())
    }
}
