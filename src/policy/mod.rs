//! Policies: requirements written in TOML and resolved against a table.
//!
//! A policy goes through two stages. [`PolicySpec`] holds the parsed file: keys and shapes are
//! checked, and no file is opened. [`PolicySpec::resolve`] checks it against a table's schema and
//! reads the hierarchy files; the resulting [`Policy`] is complete, and no later code validates it
//! again.
//!
//! [`PolicyBuilder`] sets the keys of the file by code, and serde reads and writes them as a part of other data; the
//! parser of the file judges them in each case.

mod builder;
#[cfg(test)]
mod builder_tests;
pub mod cell_forms;
mod column;
mod csv_options;
mod history;
pub mod key_tables;
mod keys;
#[cfg(test)]
mod known_tests;
pub mod layout;
mod method;
pub mod own_rows;
mod population;
mod promises;
mod relative;
mod required;
mod resolve;
#[cfg(test)]
mod resolve_tests;
mod rule;
mod serialized;
#[cfg(test)]
mod serialized_tests;
mod set_key;
mod spec;
#[cfg(test)]
mod spec_tests;
#[cfg(test)]
mod together_tests;

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use arrow::datatypes::Schema;

pub use builder::{PolicyBuilder, PolicyColumn, PolicyRequirement};
pub use cell_forms::{DateFormat, NumberFormat};
pub use csv_options::{CsvOptions, CsvType};
pub use keys::parse_day;
pub use layout::{Compression, Layout};
pub use method::Output;
pub use own_rows::{register_generalizer, register_loss, register_model};
pub use promises::Promises;
pub use resolve::protects_column;
pub use set_key::SetKey;
pub use spec::{ColumnSpec, EarlierColumn, HierarchySpec, PolicySpec};

use crate::class::QuasiColumn;
use crate::error::{Error, ErrorCode, Result, nearest};
use crate::generalize::merge::MergedTree;
use crate::generalize::{Centroid, Hierarchy};
use crate::method::lattice::Options;
use crate::method::microaggregation::dp_centroids;
use crate::method::{MethodSpec, ReleaseKind};
use crate::model::{Needs, Requirement, SensitiveColumn, looked_at};
use crate::noise::Mechanism;
use crate::plural::plural;
use crate::role::Role;

/// A policy resolved against one table.
#[derive(Debug)]
pub struct Policy {
    /// What the policy file says.
    pub spec: PolicySpec,
    /// The quasi-identifiers in policy order.
    pub quasi: Vec<Quasi>,
    /// Every column of the table with its role, in the table's order; columns dropped by
    /// `others = "drop"` are absent.
    pub columns: Vec<(String, Role)>,
    /// The columns dropped by `others = "drop"`, in the table's order.
    pub others: Vec<String>,
    /// The models that every class must satisfy.
    pub requirements: Vec<Requirement>,
    /// What the releases of the method are.
    pub kind: ReleaseKind,
    /// What classes show for a column of numbers, if they show centroids.
    pub centroid: Option<Centroid>,
    /// The columns that hold the days since the date in another column, with that column's name.
    pub days_since: BTreeMap<String, String>,
    /// The hierarchies of sensitive columns, by the columns' names.
    pub sensitive_hierarchies: BTreeMap<String, Hierarchy>,
}

/// A quasi-identifier of a resolved policy.
#[derive(Debug, Clone)]
pub struct Quasi {
    /// The column's name.
    pub name: String,
    /// The column's levels.
    pub hierarchy: Hierarchy,
    /// The tree of the levels, if the run made it of the column's values.
    pub tree: Option<MergedTree>,
    /// The column's weight in the loss, and in how noise is split.
    pub weight: f64,
    /// The levels that a method may choose from.
    pub levels: RangeInclusive<usize>,
    /// Whether all rows show the column at one level, even where the method recodes others locally.
    pub is_global: bool,
}

impl Quasi {
    /// Returns the column as the class table needs it.
    pub fn for_class_table(&self) -> QuasiColumn {
        QuasiColumn { name: self.name.clone(), hierarchy: self.hierarchy.clone(), weight: self.weight }
    }
}

/// Returns the mechanism of a method that adds noise.
fn mechanism(method: &MethodSpec, requirements: &[Requirement], quasi: &[Quasi]) -> Result<Mechanism> {
    let heaviest = quasi.iter().map(|quasi| quasi.weight).fold(0.0, f64::max);
    let columns = quasi.iter().map(|quasi| (quasi.name.as_str(), &quasi.hierarchy, quasi.weight / heaviest));
    dp_centroids::mechanism(&method.settings, requirements, columns)
}

/// Returns the names of the columns that hold the ends of a column's intervals, and whether the
/// value is missing.
pub(crate) fn end_names(column: &str) -> [String; 3] {
    ["from", "to", "missing"].map(|part| format!("{column}_{part}"))
}

impl Policy {
    /// Explains why a release under this policy would protect no individual: no requirement refuses
    /// a class of one. `None` for a policy that a release may follow.
    pub fn promises_nothing(&self) -> Option<String> {
        if self.requirements.iter().any(Requirement::hides_individuals) {
            return None;
        }
        let required: Vec<String> = self.requirements.iter().map(Requirement::text).collect();
        Some(format!(
            "a class of one individual over all quasi-identifiers satisfies {}, so everyone could be identified; require k of at \
             least 2, or l_diversity with l of at least 2, over all quasi-identifiers",
            required.join(" with ")
        ))
    }

    /// Returns the mechanism of a method that adds noise; `None` for others.
    ///
    /// # Errors
    /// A policy error that says what the method cannot do.
    pub fn mechanism(&self) -> Result<Option<Mechanism>> {
        let mechanism = || mechanism(&self.spec.method, &self.requirements, &self.quasi);
        self.kind.facts().adds_noise.then(mechanism).transpose()
    }

    /// Returns whether more than a tenth of the individuals may hold a value in a column that few others hold.
    pub fn may_be_unique(&self, name: &str) -> bool {
        self.spec.column(name).is_some_and(|column| self.spec.may_be_unique(column))
    }

    /// Returns the columns of the release in the table's order.
    pub fn released(&self) -> impl Iterator<Item = (&str, Role)> {
        self.columns
            .iter()
            .filter(|(_, role)| self.kind.releases(*role))
            .map(|(name, role)| (name.as_str(), *role))
    }

    /// Returns the quasi-identifiers in the order of the released columns, by their places in `quasi`.
    pub fn released_quasi(&self) -> impl Iterator<Item = usize> {
        self.released().filter_map(|(name, _)| self.quasi_index(name))
    }

    /// Returns the column whose distinct values are counted as individuals; without one, rows are
    /// counted.
    pub fn individual(&self) -> Option<&str> {
        self.columns.iter().find(|(_, role)| *role == Role::Individual).map(|(name, _)| name.as_str())
    }

    /// Returns the sensitive columns in the table's order.
    pub fn sensitive(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|(_, role)| *role == Role::Sensitive).map(|(name, _)| name.as_str())
    }

    /// Returns the columns in which individuals ask for a k, in the table's order.
    pub fn preferences(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|(_, role)| *role == Role::Preference).map(|(name, _)| name.as_str())
    }

    /// Returns what a search counts of the sensitive columns, each once: the objective's column
    /// first, then those of the models.
    pub fn counted(&self) -> Vec<SensitiveColumn> {
        let of_objective = self.sensitive().filter(|_| self.spec.objective.needs() == Needs::SensitiveCounts);
        let mut counted: Vec<SensitiveColumn> = of_objective.map(SensitiveColumn::from).collect();
        for (column, _) in looked_at(self.requirements.iter()) {
            match counted.iter_mut().find(|known| **known == column) {
                Some(known) => *known = column,
                None => counted.push(column),
            }
        }
        counted
    }

    /// Returns the position of the quasi-identifier `name` in policy order.
    pub fn quasi_index(&self, name: &str) -> Option<usize> {
        self.quasi.iter().position(|q| q.name == name)
    }

    /// Returns the allowed levels of every quasi-identifier.
    pub fn ranges(&self) -> Vec<RangeInclusive<usize>> {
        self.quasi.iter().map(|q| q.levels.clone()).collect()
    }

    /// Returns what this policy lets a method choose from, and how many of the best nodes it is to return.
    pub fn options(&self, top: usize) -> Options {
        let global = self.quasi.iter().enumerate().filter(|(_, quasi)| quasi.is_global);
        let global = global.map(|(at, _)| at).collect();
        Options { ranges: self.ranges(), top, effort: self.spec.effort, global }
    }
}

/// Checks that no two columns of an input have one name.
///
/// # Errors
/// A data error with their positions. Where a file has no header, the names may be cells, so none
/// is shown.
pub fn one_name_each(schema: &Schema) -> Result<()> {
    let mut names = HashMap::new();
    for (at, field) in schema.fields().iter().enumerate() {
        if let Some(first) = names.insert(field.name(), at) {
            return Err(Error::data(format!(
                "columns {} and {} of the input have the same name; rename one, or set `header = false` under \
                 `[input]` if a CSV file has no header line",
                first + 1,
                at + 1
            )));
        }
    }
    Ok(())
}

/// Creates the error for a column that an input lacks.
pub(crate) fn no_column(schema: &Schema, name: &str) -> Error {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let nearest = nearest(name, &names);
    // If a file has no header, its first line becomes the names: they may be cells, so they are not
    // listed.
    let has = match nearest.starts_with("did you mean") {
        true => nearest,
        false => format!("it has {}", plural(names.len() as u64, "column", "columns")),
    };
    Error::policy(format!("the input has no column `{name}`; {has}")).coded(ErrorCode::OtherColumns)
}

/// A source of hierarchy files: a folder, or the copies in a private record.
pub trait Files: Send + Sync {
    /// Reads the text of the file that the policy calls `name`.
    ///
    /// # Errors
    /// A data error when it is not there, else a policy error when it cannot be read.
    fn read(&self, name: &str) -> Result<String>;

    /// Returns the path or the address of the population that the policy calls `name`.
    ///
    /// # Errors
    /// A policy error where only the hierarchy files are known.
    fn population(&self, _name: &str) -> Result<String> {
        let why = "the population is not known here; give the policy file, with the population beside it, with --policy";
        Err(Error::policy(why).at("population"))
    }

    /// Returns the tree that a run made of a column's values, if it is known.
    ///
    /// # Errors
    /// A policy error when it cannot be read.
    #[doc(hidden)]
    fn tree(&self, _column: &str) -> Result<Option<MergedTree>> {
        Ok(None)
    }
}

/// Files, and the trees of the columns whose values are merged.
pub struct FilesAndTrees<'a> {
    /// The files.
    pub files: &'a dyn Files,
    /// The trees, by the columns' names.
    pub trees: BTreeMap<String, MergedTree>,
}

impl Files for FilesAndTrees<'_> {
    fn read(&self, name: &str) -> Result<String> {
        self.files.read(name)
    }

    fn population(&self, name: &str) -> Result<String> {
        self.files.population(name)
    }

    fn tree(&self, column: &str) -> Result<Option<MergedTree>> {
        Ok(self.trees.get(column).cloned())
    }
}

/// Files in a folder, usually the policy's own.
#[derive(Debug, Clone)]
pub struct Folder(pub PathBuf);

impl Files for Folder {
    fn population(&self, name: &str) -> Result<String> {
        Ok(self.0.join(name).display().to_string())
    }

    fn read(&self, name: &str) -> Result<String> {
        let path = self.0.join(name);
        let refused = |error: Error| error.at(format!("hierarchy file {}", path.display()));
        let unread = |error: std::io::Error| refused(Error::of_policy_file(&error));
        let facts = std::fs::metadata(&path).map_err(unread)?;
        if !facts.is_file() && !facts.is_dir() {
            let why = "expected a plain file, found a pipe, a socket or a device";
            return Err(refused(Error::policy(why)));
        }
        std::fs::read_to_string(&path).map_err(unread)
    }
}

impl Files for BTreeMap<String, String> {
    fn read(&self, name: &str) -> Result<String> {
        self.get(name)
            .cloned()
            .ok_or_else(|| Error::policy(format!("hierarchy file `{name}` is not in the record")))
    }
}
