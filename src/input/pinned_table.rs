//! Tables of a SQL session that are not read once their files have changed.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{DataFrame, SessionContext};

use super::files::{Input, PinnedFile, paths_of_location};
use super::infer_types::Typing;
use crate::engine::into_engine;
use crate::error::{Error, Result};
use crate::policy::{CsvOptions, CsvType};

/// A table of files that is refused once one of them has changed, or others have appeared.
#[derive(Debug)]
pub(crate) struct PinnedTable {
    /// The table.
    pub(crate) table: Arc<dyn TableProvider>,
    /// Its files as they were when the table was opened.
    pub(crate) files: Vec<PinnedFile>,
    /// Where they were found: paths, addresses and globs.
    pub(crate) locations: Vec<String>,
}

impl PinnedTable {
    /// Checks that the locations hold the same files as before.
    ///
    /// # Errors
    /// A data error that names a file that changed, disappeared or appeared.
    fn check_unchanged(&self) -> Result<()> {
        const AGAIN: &str = "; run the statement again, after creating its tables and views again";
        if let Some(changed) = self.files.iter().find(|file| !file.is_unchanged()) {
            return Err(
                Error::data(format!("it changed after the table was opened{AGAIN}")).at(changed.place())
            );
        }
        let known: HashSet<&PathBuf> = self.files.iter().map(|file| &file.path).collect();
        for location in &self.locations {
            if let Some(new) = paths_of_location(location)?.iter().find(|path| !known.contains(path)) {
                let why = format!("it appeared after the table was opened{AGAIN}");
                return Err(Error::data(why).at(format!("input file {}", new.display())));
            }
        }
        Ok(())
    }
}

impl Input {
    /// Pins a table of the files of this input.
    pub(super) fn pin(&self, table: Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
        Arc::new(PinnedTable { table, files: self.files.clone(), locations: vec![self.argument.clone()] })
    }

    /// Reads the input like [`table`](Self::table) as a pinned table, with text columns as they are.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub(crate) async fn pinned_table(&self, session: &SessionContext, csv: &CsvOptions) -> Result<DataFrame> {
        self.table_within(session, csv, &|_| CsvType::Text, Typing::Columnar, &|table| self.pin(table)).await
    }
}

#[async_trait]
impl TableProvider for PinnedTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> EngineResult<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        self.check_unchanged().map_err(into_engine)?;
        self.table.scan(session, projection, filters, limit).await
    }
}
