//! Loads the hierarchies of a session: from the result of a query with [`load_hierarchy`], or from a
//! file with [`load_hierarchy_file`]. `generalize('name', value, level)` then looks values up in
//! them. Loading a name again replaces it for later plans.

use std::path::Path;

use arrow::record_batch::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;

use super::generalize::hierarchies;
use super::hierarchies::{Hierarchies, place};
use crate::error::Error;
use crate::generalize::hierarchy::{self, is_table, parse_csv, parse_table};
use crate::input::hierarchy_files::HierarchyFiles;
use crate::policy::Files;

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
/// the labels, finest first, or exactly `value`, `level` and `label`, with a row for each value and
/// level. Replaces a hierarchy of that name.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> datafusion::error::Result<()> {
/// let session = SessionContext::new();
/// datafusion_kanon::register_all(&session)?;
/// let table = "VALUES ('divorced', 'alone'), ('widowed', 'alone'), ('married', 'together')";
/// let table = session.sql(table).await?.collect().await?;
/// datafusion_kanon::load_hierarchy(&session, "marital", &table)?;
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
/// datafusion_kanon::register_all(&session)?;
/// datafusion_kanon::load_hierarchy_file(&session, "marital_status", "data/papers/marital.csv")?;
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
    let text = HierarchyFiles::of_current_folder().read(&path);
    let table =
        text.and_then(|text| if is_table(&path) { parse_table(&text) } else { parse_csv(&text, name) });
    let table = table.map_err(|error| planned(&error.at(place(name))))?;
    hierarchies.load(name, table).map_err(|error| planned(&error))
}
