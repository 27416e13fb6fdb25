//! Files as tables by their names: `SELECT * FROM 'visits.parquet'`.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use crate::engine::into_engine;
use crate::input::files::has_no_data;
use crate::input::{Format, Input};
use crate::policy::{CsvOptions, CsvType};

/// Opens files for a session in the same way as every other command.
#[derive(Clone)]
pub(super) struct Files {
    /// The session before it knew of files, so that it does not hold itself.
    session: SessionContext,
    /// What is opened for the statement that is being planned; `None` at other times, so that a
    /// table may be created under the name of a folder.
    opened: Arc<Mutex<Option<Opened>>>,
}

/// The files opened for a statement.
struct Opened {
    names: Vec<(String, Format)>,
    csv: CsvOptions,
}

impl Files {
    /// Makes a session look for files where no table has the name.
    pub(super) fn enable(session: &SessionContext) -> Self {
        let mut state = session.state();
        let known = Arc::clone(state.catalog_list());
        // Row groups of files are pruned: float columns, whose statistics are wrong, are read
        // through a function only.
        state.config_mut().options_mut().execution.parquet.pruning = true;
        let files = Self { session: SessionContext::new_with_state(state), opened: Arc::default() };
        session.register_catalog_list(Arc::new(DynamicFileCatalog::new(known, Arc::new(files.clone()))));
        files
    }

    /// Starts resolving file names; `csv` says how CSV files are written.
    pub(super) fn begin(&self, csv: CsvOptions) {
        *self.opened() = Some(Opened { names: Vec::new(), csv });
    }

    /// Stops resolving file names and returns the opened files and their formats.
    pub(super) fn end(&self) -> Vec<(String, Format)> {
        self.opened().take().map(|opened| opened.names).unwrap_or_default()
    }

    fn opened(&self) -> MutexGuard<'_, Option<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a name is a file's: a file exists or the name looks like a path, and no
    /// table function has it.
    fn is_file(&self, name: &str) -> bool {
        let is_function = self.session.state_ref().read().table_functions().contains_key(name);
        looks_like_path(name) || (!is_function && Path::new(name).exists())
    }
}

fn looks_like_path(name: &str) -> bool {
    name.contains(['.', '/', '\\', '*', '?', '['])
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Files")
    }
}

#[async_trait]
impl UrlTableFactory for Files {
    async fn try_new(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let csv = self.opened().as_ref().map(|opened| opened.csv.clone());
        let Some(csv) = csv.filter(|_| self.is_file(name)) else { return Ok(None) };
        let input = match Input::find(name) {
            Ok(input) => input,
            // A folder that has the name by chance.
            Err(_) if !looks_like_path(name) && has_no_data(Path::new(name)) => return Ok(None),
            Err(error) => return Err(into_engine(error)),
        };
        let format = input.format;
        let table = input.table(&self.session, &csv, &|_| CsvType::Text).await;
        let table = table.map_err(into_engine)?;
        if let Some(opened) = &mut *self.opened() {
            opened.names.push((name.to_owned(), format));
        }
        Ok(Some(table.into_view()))
    }
}
