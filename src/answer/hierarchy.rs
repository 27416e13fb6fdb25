//! What `kanon hierarchy` answers: the hierarchy of a rule over the values of a column.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::Answer;
use crate::class::Held;
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::generalize::hierarchy_rows::csv_for_column;
use crate::input::Input;
use crate::input::column_values::{ColumnRule, hierarchy_of_values};
use crate::plural::plural;
use crate::progress::Phase;
use crate::render::Document;

/// The hierarchy of a rule over the values of a column.
#[derive(Serialize)]
pub struct HierarchyAnswer {
    /// The column's name.
    pub column: String,
    /// The number of distinct values, NULL aside.
    pub values: usize,
    /// The levels, finest first, such as `prefix:3`.
    pub levels: Vec<String>,
    /// For each value a list of the value and its label at every level, finest first.
    pub rows: Vec<Vec<String>>,
    /// The hierarchy file, as CSV.
    #[serde(skip)]
    pub csv: String,
    /// The memory of the rows and of the file.
    #[serde(skip)]
    _held: Held,
}

/// A hierarchy that was written as a file.
#[derive(Debug, Clone, Serialize)]
pub struct HierarchyFileAnswer {
    /// The column's name.
    pub column: String,
    /// The number of distinct values, NULL aside.
    pub values: usize,
    /// The levels, finest first, such as `prefix:3`.
    pub levels: Vec<String>,
    /// The path of the file.
    pub file: String,
}

/// Applies a rule to the distinct values of a column of an input.
///
/// # Errors
/// Those of [`hierarchy_of_values`]; an interruption.
pub async fn hierarchy(run: &Run, input: &Input, rule: &ColumnRule<'_>) -> Result<HierarchyAnswer> {
    run.progress.begin(Phase::Profile, 0);
    let made = hierarchy_of_values(run, input, rule).await?;
    let csv = csv_for_column(&made.rows, rule.column)?;
    run.stop.check()?;
    Ok(HierarchyAnswer {
        column: rule.column.to_owned(),
        values: made.rows.len(),
        levels: made.levels,
        rows: made.rows,
        csv,
        _held: made.held,
    })
}

impl HierarchyAnswer {
    /// Writes the hierarchy as a CSV file that only its owner may read, completely or not at all.
    ///
    /// # Errors
    /// A data error if the file cannot be written, or exists and is not to be overwritten.
    pub fn write(&self, path: &Path, overwrite: bool) -> Result<HierarchyFileAnswer> {
        write_whole(path, &self.csv, overwrite).map_err(|error| Error::from_io(&error))?;
        Ok(HierarchyFileAnswer {
            column: self.column.clone(),
            values: self.values,
            levels: self.levels.clone(),
            file: path.to_string_lossy().into_owned(),
        })
    }
}

impl Answer for HierarchyAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        document.picture(self.csv.as_str());
        document
    }
}

impl Answer for HierarchyFileAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let Self { column, file, .. } = self;
        let values = plural(self.values as u64, "value", "values");
        let levels = plural(self.levels.len() as u64, "level", "levels");
        document.fact("wrote", format!("{file} ({values}, {levels}: {})", self.levels.join(", ")));
        document.advice("keep", format!("{file} to yourself: it holds every value of `{column}`"));
        document
    }
}

fn write_whole(path: &Path, text: &str, overwrite: bool) -> std::io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    match overwrite {
        true => file.persist(path)?,
        false => file.persist_noclobber(path)?,
    };
    Ok(())
}
