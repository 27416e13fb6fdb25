//! `SET kanon.<key> = <value>`: the options of a session.
//!
//! The engine's macro would show the keys without `kanon.` and suggest no similar key, so the trait
//! is implemented by hand.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};

use crate::error::{Error, nearest};
use crate::policy::{CsvOptions, NumberFormat};

/// The options of this crate, under `kanon.` in SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KanonOptions {
    /// Whether measures become GROUP BYs (the rule `k_anonymity_to_group_by`).
    pub rewrite_measures: bool,
    /// Whether functions may read files that a query names.
    pub allow_files: bool,
    /// Whether errors may show values that a hierarchy does not cover.
    pub show_values: bool,
    /// How CSV files that a query names are written.
    pub csv: CsvOptions,
    /// What the columns of CSV files are in `FROM 'file'`.
    pub csv_types: CsvTypes,
    /// The text of `csv`.
    csv_keys: String,
}

/// What the columns of CSV files are in `FROM 'file'` and in external tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CsvTypes {
    /// Whole or fractional numbers, days or moments, if all cells are.
    Infer,
    /// Text.
    Text,
}

impl CsvTypes {
    fn name(self) -> &'static str {
        match self {
            Self::Infer => "infer",
            Self::Text => "text",
        }
    }
}

const CSV: &str = "kanon.csv";
const CSV_TYPES: &str = "kanon.csv_types";
const OF_CSV_TYPES: &str = "The columns of CSV files in FROM 'file' and in external tables: text, or infer, which finds their types from every cell; \
                            infer in the shell `kanon sql`";
const OF_CSV: &str = "How CSV files that a query names are written: keys as under [input] of a policy, such as delimiter = \";\", \
                      encoding = \"latin1\"";

impl Default for KanonOptions {
    fn default() -> Self {
        Self {
            rewrite_measures: true,
            allow_files: false,
            show_values: false,
            csv: CsvOptions::default(),
            csv_types: CsvTypes::Text,
            csv_keys: String::new(),
        }
    }
}

impl KanonOptions {
    /// Returns the options of a session, or the defaults where it has none.
    pub fn of(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Returns every option that is on or off: key, value, description.
    fn all(&mut self) -> [(&'static str, &mut bool, &'static str); 3] {
        [
            (
                "kanon.allow_files",
                &mut self.allow_files,
                "Whether functions may read files that a query names: tables, policies, hierarchies",
            ),
            (
                "kanon.rewrite_measures",
                &mut self.rewrite_measures,
                "Whether measures are rewritten to GROUP BYs (the rule k_anonymity_to_group_by); the results \
                 are the same either way",
            ),
            (
                "kanon.show_values",
                &mut self.show_values,
                "Whether errors of lattice and anonymize may show values that a hierarchy does not cover; by \
                 default, errors only count them",
            ),
        ]
    }
}

/// Parses keys of `[input]` for queries.
///
/// # Errors
/// Those of [`CsvOptions::parse`], and a policy error for a key that has no effect on texts.
fn csv_of(keys: &str, types: CsvTypes) -> Result<CsvOptions, Error> {
    let csv = CsvOptions::parse(keys)?;
    if types == CsvTypes::Infer {
        return Ok(csv);
    }
    let NumberFormat { decimal, thousands } = csv.numbers;
    let whole = thousands
        .map_or("x".to_owned(), |mark| format!("replace(x, '{}', '')", mark.to_string().replace('\'', "''")));
    let (key, instead) = if decimal != NumberFormat::default().decimal {
        ("decimal", format!("CAST(replace({whole}, '{decimal}', '.') AS DOUBLE)"))
    } else if thousands.is_some() {
        ("thousands", format!("CAST({whole} AS DOUBLE)"))
    } else if !csv.date_formats.is_empty() {
        ("date_format", "to_date(x, '%d.%m.%Y')".to_owned())
    } else {
        return Ok(csv);
    };
    let why =
        format!("{key} has no effect where columns of CSV files are text (kanon.csv_types); write {instead}");
    Err(Error::policy(why))
}

impl ConfigExtension for KanonOptions {
    const PREFIX: &'static str = "kanon";
}

impl ExtensionOptions for KanonOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    /// Sets the option `kanon.<key>`.
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let key = format!("{}.{key}", Self::PREFIX);
        let refused = |why: Error| DataFusionError::Configuration(format!("{key}: {why}"));
        if key == CSV {
            (self.csv, self.csv_keys) = (csv_of(value, self.csv_types).map_err(refused)?, value.to_owned());
            return Ok(());
        }
        if key == CSV_TYPES {
            let mut all = [CsvTypes::Infer, CsvTypes::Text].into_iter();
            let types = all.find(|types| value.trim().eq_ignore_ascii_case(types.name()));
            let types = types.ok_or_else(|| refused(Error::policy("expected infer or text")))?;
            csv_of(&self.csv_keys, types).map_err(refused)?;
            self.csv_types = types;
            return Ok(());
        }
        let all = self.all();
        let keys: Vec<&str> = all.iter().map(|(known, ..)| *known).chain([CSV, CSV_TYPES]).collect();
        let Some((_, place, _)) = all.into_iter().find(|(known, ..)| *known == key) else {
            let why = format!("unknown option `{key}`; {}", nearest(&key, &keys));
            return Err(DataFusionError::Configuration(why));
        };
        *place = match value.trim().to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => return Err(DataFusionError::Configuration(format!("{key}: expected true or false"))),
        };
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |(key, value, description): (&str, &mut bool, &'static str)| ConfigEntry {
            key: key.to_owned(),
            value: Some(value.to_string()),
            description,
        };
        let text = |key: &str, value: &str, description| ConfigEntry {
            key: key.to_owned(),
            value: Some(value.to_owned()),
            description,
        };
        let csv = text(CSV, &self.csv_keys, OF_CSV);
        let csv_types = text(CSV_TYPES, self.csv_types.name(), OF_CSV_TYPES);
        self.clone().all().map(entry).into_iter().chain([csv, csv_types]).collect()
    }
}
