//! Hierarchies that queries refer to by name, loaded beforehand and shared by the functions of a
//! session.
//!
//! A hierarchy is loaded from the result of a query with [`load_hierarchy`] or from a file with
//! [`load_hierarchy_file`]; `generalize('name', value, level)` then looks values up in it. Loading
//! a name again replaces it for later plans.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;

use super::generalize::{NAME, of_loaded};
use crate::error::{Error, nearest};
use crate::generalize::hierarchy::{self, csv_of_rows, is_table, parse_csv, parse_table};
use crate::generalize::{Argument, Hierarchy, Options};
use crate::input::hierarchy_files::HierarchyFiles;
use crate::policy::{Files, Folder};
use crate::release::publish::digest;

/// A loaded table and its levels. Two are equal when their tables are equal.
pub(crate) struct LoadedHierarchy {
    /// One row per value: the value, then its labels, finest first.
    pub(crate) table: Argument,
    /// The levels: level 0 is the value as text, the last level one label for all.
    pub(crate) hierarchy: Hierarchy,
    /// The SHA-256 of the table.
    pub(super) digest: String,
}

impl LoadedHierarchy {
    fn new(table: Argument) -> crate::error::Result<Self> {
        let levels = (hierarchy::ROW.levels)(&table, &Options::default())?;
        let digest = match &table {
            Argument::Table(rows) => digest::of_bytes(csv_of_rows(rows)?.as_bytes()),
            _ => return Err(Error::internal("load_hierarchy: a loaded hierarchy is not a table")),
        };
        Ok(Self { hierarchy: Hierarchy::new(&DataType::Utf8View, levels)?, table, digest })
    }
}

/// Shows no labels, because they are cells.
impl fmt::Debug for LoadedHierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedHierarchy({} levels)", self.hierarchy.height())
    }
}

impl PartialEq for LoadedHierarchy {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.table == other.table
    }
}

impl Eq for LoadedHierarchy {}

/// The hierarchies of a session by name, shared by clones.
#[derive(Clone, Default)]
pub(crate) struct Hierarchies(Arc<RwLock<BTreeMap<String, Arc<LoadedHierarchy>>>>);

/// Shows the names only.
impl fmt::Debug for Hierarchies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl Hierarchies {
    /// Returns whether both are the same instance.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the names, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Returns the hierarchy of this name; later loads do not change it.
    ///
    /// # Errors
    /// A policy error that lists the loaded names and how to load one.
    pub(crate) fn get(&self, name: &str) -> crate::error::Result<Arc<LoadedHierarchy>> {
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        loaded.get(name).map(Arc::clone).ok_or_else(|| {
            let names: Vec<&str> = loaded.keys().map(String::as_str).collect();
            let known = if names.is_empty() { "none is".to_owned() } else { nearest(name, &names) };
            Error::policy(format!(
                "no hierarchy `{name}` is loaded; {known}; `load_hierarchy` loads one before the query is planned"
            ))
        })
    }

    /// Loads a hierarchy, replacing one of the same name.
    ///
    /// # Errors
    /// A policy error with the name when the table is not a hierarchy.
    pub(crate) fn load(&self, name: &str, table: Argument) -> crate::error::Result<()> {
        let loaded = LoadedHierarchy::new(table).map_err(|error| error.at(place(name)))?;
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.to_owned(), Arc::new(loaded));
        Ok(())
    }
}

fn place(name: &str) -> String {
    format!("hierarchy `{name}`")
}

/// Returns the hierarchies that the functions of a registry share; `None` where they are not
/// registered.
pub(crate) fn hierarchies(registry: &dyn FunctionRegistry) -> Option<Hierarchies> {
    registry.udf(NAME).ok().and_then(|function| of_loaded(&function))
}

fn registered(registry: &dyn FunctionRegistry) -> Result<Hierarchies> {
    hierarchies(registry).ok_or_else(|| {
        DataFusionError::Plan(
            "hierarchies need the functions of this crate; call `register_all` first".into(),
        )
    })
}

fn planned(error: &Error) -> DataFusionError {
    DataFusionError::Plan(error.to_string())
}

/// Loads the result of a query as the hierarchy `name` of a session: its columns are the value and
/// the labels, finest first. Replaces a hierarchy of that name.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> datafusion::error::Result<()> {
/// let session = SessionContext::new();
/// datafusion_kanon::sql::register_all(&session)?;
/// let table = "VALUES ('divorced', 'alone'), ('widowed', 'alone'), ('married', 'together')";
/// let table = session.sql(table).await?.collect().await?;
/// datafusion_kanon::sql::load_hierarchy(&session, "marital", &table)?;
/// let shown = session.sql("SELECT generalize('marital', 'widowed', 1) AS status").await?.to_string().await?;
/// assert!(shown.contains("| alone  |"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// A plan error when the functions are not registered or the table is not a hierarchy: it has
/// NULLs, a repeated value, fewer than two columns, or labels that are equal at one level and
/// differ at the next.
pub fn load_hierarchy(registry: &dyn FunctionRegistry, name: &str, table: &[RecordBatch]) -> Result<()> {
    let hierarchies = registered(registry)?;
    let table = hierarchy::table_of_batches(table).map_err(|error| planned(&error.at(place(name))))?;
    hierarchies.load(name, table).map_err(|error| planned(&error))
}

/// Loads a CSV or Parquet (`.parquet`) file as the hierarchy `name` of a session, as a policy does:
/// the first line of a CSV file is skipped as a header only if its first cell is `name`. Replaces a
/// hierarchy of that name.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> datafusion::error::Result<()> {
/// let session = SessionContext::new();
/// datafusion_kanon::sql::register_all(&session)?;
/// datafusion_kanon::sql::load_hierarchy_file(&session, "marital_status", "data/papers/marital.csv")?;
/// let sql = "SELECT generalize('marital_status', 'Single', 1) AS status";
/// assert!(session.sql(sql).await?.to_string().await?.contains("| never married |"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// A plan error when the functions are not registered, the file cannot be read or does not hold a
/// hierarchy.
pub fn load_hierarchy_file(
    registry: &dyn FunctionRegistry,
    name: &str,
    path: impl AsRef<Path>,
) -> Result<()> {
    let hierarchies = registered(registry)?;
    let path = path.as_ref().display().to_string();
    let text = HierarchyFiles(Folder(Path::new("").into())).read(&path);
    let table =
        text.and_then(|text| if is_table(&path) { parse_table(&text) } else { parse_csv(&text, name) });
    let table = table.map_err(|error| planned(&error.at(place(name))))?;
    hierarchies.load(name, table).map_err(|error| planned(&error))
}
