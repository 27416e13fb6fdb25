//! What `kanon hierarchy check` answers: whether a hierarchy file covers a column of a table, and its shape.

mod draw;

use arrow::array::StringViewArray;
use hashbrown::HashMap;
use serde::Serialize;

use super::Answer;
use crate::engine::Run;
use crate::error::Result;
use crate::generalize::hierarchy::{is_table, parse_csv, parse_table};
use crate::generalize::hierarchy_shape::{HierarchyShape, Spread};
use crate::input::Input;
use crate::input::column_values::for_each_text;
use crate::parameter::TextTable;
use crate::plural::{grouped, plural, rows};
use crate::policy::CsvOptions;
use crate::progress::Phase;
use crate::render::Document;

/// The number of values that are listed.
const SHOWN: usize = 1_000;

/// A hierarchy file, and the column that it is for.
#[derive(Debug, Clone, Copy)]
pub struct HierarchyFile<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its text, or that of its table as CSV.
    pub text: &'a str,
    /// The column.
    pub column: &'a str,
}

/// How a hierarchy file fits a column of a table.
#[derive(Debug, Clone, Serialize)]
pub struct HierarchyCheckAnswer {
    /// The path of the hierarchy file.
    pub file: String,
    /// The column's name.
    pub column: String,
    /// Whether the file has every value of the column.
    pub covers: bool,
    /// The number of values in the file.
    pub values: usize,
    /// The number of rows with a value.
    pub rows: u64,
    /// The number of rows with NULL.
    pub nulls: u64,
    /// The number of distinct values of the column that the file lacks.
    pub missing_values: u64,
    /// The number of rows that hold them.
    pub missing_rows: u64,
    /// With --show-values, the values that the file lacks, at most 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<String>>,
    /// The number of values of the file that no row holds.
    pub unused_values: u64,
    /// With --show-values, these values, at most 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused: Option<Vec<String>>,
    /// The levels, finest first.
    pub levels: Vec<FileLevel>,
    /// Says of missing values that the file's text could have been divided into cells otherwise; empty if it could not.
    #[serde(skip)]
    pub doubt: &'static str,
    /// The labels as a tree, drawn.
    #[serde(skip)]
    pub tree: String,
}

/// A level of a hierarchy file.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FileLevel {
    /// The level's number, from 1.
    pub level: u64,
    /// The number of its labels.
    pub labels: u64,
    /// The number of values of the file below a label.
    pub values: Spread,
    /// The number of rows below a label.
    pub rows: Spread,
}

/// Checks a hierarchy file against the values of its column in an input. They are listed if the run may show values.
///
/// # Errors
/// A policy error for a file that is not a tree, and those of [`for_each_text`].
pub async fn hierarchy_check(
    run: &Run,
    input: &Input,
    csv: &CsvOptions,
    file: &HierarchyFile<'_>,
) -> Result<HierarchyCheckAnswer> {
    let table = match is_table(file.path) {
        true => parse_table(file.text),
        false => parse_csv(file.text, file.column),
    };
    let table = table.map_err(|error| error.at(format!("hierarchy file {}", file.path)))?;
    run.progress.begin(Phase::Profile, 0);
    let mut found = Found::new(&table);
    let most = if run.show_values { SHOWN } else { 0 };
    for_each_text(run, input, csv, file.column, &mut |values, rows| {
        found.add(values, rows, most);
        Ok(())
    })
    .await?;
    found.lacking.sort_unstable();
    let shape = HierarchyShape::new(table.rows(), &found.rows);
    let levels = (1..).zip(shape.levels()).map(|(level, labels)| FileLevel {
        level,
        labels: labels.len() as u64,
        values: Spread::of(labels.iter().map(|label| label.leaves)),
        rows: Spread::of(labels.iter().map(|label| label.rows)),
    });
    let unused = || found.unused().take(SHOWN).map(str::to_owned).collect();
    Ok(HierarchyCheckAnswer {
        file: file.path.to_owned(),
        column: file.column.to_owned(),
        covers: found.missing_values == 0,
        values: table.rows().len(),
        rows: found.known_rows,
        nulls: found.nulls,
        missing_values: found.missing_values,
        missing_rows: found.missing_rows,
        unused_values: found.unused().count() as u64,
        unused: run.show_values.then(unused),
        levels: levels.collect(),
        doubt: table.doubt(),
        tree: draw::tree(&shape, found.known_rows),
        missing: run.show_values.then_some(found.lacking),
    })
}

impl Answer for HierarchyCheckAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let column = &self.column;
        let nulls = match self.nulls {
            0 => String::new(),
            nulls => format!(", {} without one", grouped(nulls)),
        };
        document.fact("read", format!("{} with a value of `{column}`{nulls}", rows(self.rows)));
        let values = plural(self.values as u64, "value", "values");
        let levels = plural(self.levels.len() as u64, "level", "levels");
        document.fact("tree", format!("{}: {values} in {levels}", self.file));
        match self.missing_values {
            0 => document.fact("covers", format!("every value of `{column}`")),
            missing => document.fact("LACKS", self.lacks(missing)),
        }
        if self.unused_values > 0 {
            let verb = plural(self.unused_values, "value of the file does", "values of the file do");
            let shown = self.unused.as_ref().map(|shown| format!(": {}", list(shown, self.unused_values)));
            let shown = shown.unwrap_or_default();
            document.fact("unused", format!("{verb} not occur in the input{shown}"));
        }
        document.gap();
        document.picture(levels_table(&self.levels));
        document.gap();
        document.picture(self.tree.as_str());
        document
    }

    fn holds(&self) -> bool {
        self.covers
    }
}

impl HierarchyCheckAnswer {
    /// Describes the values that the file lacks.
    fn lacks(&self, missing: u64) -> String {
        let lacks = plural(missing, "value", "values");
        let it = if missing == 1 { "it" } else { "each" };
        let hold = if self.missing_rows == 1 { "holds" } else { "hold" };
        let (column, holders, doubt) = (&self.column, rows(self.missing_rows), self.doubt);
        let next = match &self.missing {
            Some(shown) => format!("{it}: {}", list(shown, missing)),
            None => format!("{it} (--show-values lists them)"),
        };
        format!("{lacks} of `{column}`, which {holders} {hold}{doubt}; add a line for {next}")
    }
}

/// Lists some of `all` texts.
fn list(some: &[String], all: u64) -> String {
    match all - (some.len() as u64).min(all) {
        0 => some.join(", "),
        more => format!("{} and {} more", some.join(", "), grouped(more)),
    }
}

/// Formats the number of labels of each level, and the values and rows of a label.
fn levels_table(levels: &[FileLevel]) -> String {
    let head = ["level", "labels", "least", "mean", "most", "least", "mean", "most"].map(str::to_owned);
    let mut table = vec![head];
    for FileLevel { level, labels, values, rows } in levels {
        let ([least, mean, most], [least_rows, mean_rows, most_rows]) = (cells(values), cells(rows));
        let (level, labels) = (grouped(*level), grouped(*labels));
        table.push([level, labels, least, mean, most, least_rows, mean_rows, most_rows]);
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
fn cells(spread: &Spread) -> [String; 3] {
    [grouped(spread.least), format!("{:.1}", spread.mean), grouped(spread.greatest)]
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
    /// Some of the values that the file lacks.
    lacking: Vec<String>,
}

impl<'a> Found<'a> {
    fn new(table: &'a TextTable) -> Self {
        let values = table.rows().iter().filter_map(|row| row.first()).enumerate();
        Self {
            table,
            rows: vec![0; table.rows().len()],
            positions: values.map(|(at, value)| (value.as_str(), at)).collect(),
            known_rows: 0,
            nulls: 0,
            missing_values: 0,
            missing_rows: 0,
            lacking: Vec::new(),
        }
    }

    /// Adds distinct values with their rows; `most` values that the file lacks are kept.
    fn add(&mut self, values: &StringViewArray, rows: &[u64], most: usize) {
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
                    if self.lacking.len() < most {
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
