//! Tables of a SQL session that are not read once their files have changed.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, cast};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{DataFrame, SessionContext};
use url::Url;

use super::files::{Input, files_of_location};
use super::infer_types::Typing;
use crate::engine::{Context, column, into_engine};
use crate::error::{Error, Result};
use crate::policy::{CsvOptions, CsvType};
use crate::store::{Address, Object, PartitionType};

/// A table of files that is refused once one of them has changed, or others have appeared.
#[derive(Debug)]
pub struct PinnedTable {
    /// The table.
    pub table: Arc<dyn TableProvider>,
    /// Its files as they were when the table was opened.
    pub files: Vec<Object>,
    /// Where they were found: paths, addresses and globs.
    pub locations: Vec<String>,
    /// Whether the engine lists the files at each scan by itself, as it does where folders are partitions.
    pub is_listed_by_engine: bool,
}

impl PinnedTable {
    /// Checks that the locations hold the same files as before.
    ///
    /// # Errors
    /// A data error that names a file that changed, disappeared or appeared.
    fn check_unchanged(&self) -> Result<()> {
        const AGAIN: &str = "; run the statement again, after creating its tables and views again";
        for file in &self.files {
            if let Some(what) = file.what_happened() {
                return Err(
                    Error::data(format!("it {what} after the table was opened{AGAIN}")).at(file.place())
                );
            }
        }
        let known: HashSet<&Address> = self.files.iter().map(Object::address).collect();
        for location in &self.locations {
            // What is read of objects is as it was listed, and others write into a store all the time.
            if let Address::Remote(_) = Address::parse(location)? {
                continue;
            }
            let now = files_of_location(location)?;
            if let Some(new) = now.iter().find(|file| !known.contains(file.address())) {
                let why = format!("it appeared after the table was opened{AGAIN}");
                return Err(Error::data(why).at(new.place()));
            }
        }
        Ok(())
    }

    /// Checks that the engine reads all files of the table and no others, where it lists them by itself.
    ///
    /// # Errors
    /// A data error that names a file.
    pub async fn check_files(&self, session: &dyn Session) -> Result<()> {
        if !self.is_listed_by_engine {
            return Ok(());
        }
        let plan =
            self.table.scan(session, None, &[], None).await.context("listing the files of the table")?;
        let read = self.known_files_of(plan.as_ref())?;
        match self.files.iter().find(|file| file.url().is_ok_and(|url| !read.contains(&url))) {
            None => Ok(()),
            Some(file) => {
                let why = "an external table with partition folders would leave it out; name the folder above all of them, and \
                           move files of other folders away";
                Err(Error::data(why).at(file.place()))
            }
        }
    }

    /// Checks that a plan reads only files of the table; returns their addresses.
    ///
    /// # Errors
    /// A data error that names a file of another origin.
    fn known_files_of(&self, plan: &dyn ExecutionPlan) -> Result<BTreeSet<Url>> {
        let read = files_of_plan(plan);
        let known = self.files.iter().map(Object::url).collect::<Result<BTreeSet<_>>>()?;
        match read.difference(&known).next() {
            None => Ok(read),
            Some(other) => {
                let path = other.to_file_path().unwrap_or_default();
                let why = "it is hidden by its name (`_`, `.`) or a folder's, or appeared after the table was opened, and the engine \
                           would read it; move it away";
                Err(Error::data(why).at(format!("input file {}", path.display())))
            }
        }
    }
}

/// Returns the addresses of the files that a plan reads, with links followed.
fn files_of_plan(plan: &dyn ExecutionPlan) -> BTreeSet<Url> {
    let mut read = BTreeSet::new();
    let source = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
    if let Some(scan) = source.and_then(|source| source.downcast_ref::<FileScanConfig>()) {
        let files = scan.file_groups.iter().flat_map(FileGroup::iter);
        read.extend(files.filter_map(|file| {
            let root: PathBuf = "/".into();
            let path = file.object_meta.location.parts().fold(root, |path, part| path.join(part.as_ref()));
            Url::from_file_path(fs::canonicalize(path).ok()?).ok()
        }));
    }
    read.extend(plan.children().into_iter().flat_map(|child| files_of_plan(child.as_ref())));
    read
}

impl Input {
    /// Pins a table of the files of this input.
    pub(super) fn pin(&self, table: Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
        let (files, locations) = (self.objects.clone(), vec![self.argument.clone()]);
        Arc::new(PinnedTable { table, files, locations, is_listed_by_engine: false })
    }

    /// Reads the input like [`table`](Self::table) as a pinned table, with text columns as they are. Partition columns have the
    /// types that are found over all folders.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub async fn pinned_table(&self, session: &SessionContext, csv: &CsvOptions) -> Result<DataFrame> {
        let pin = |table| self.pin(table);
        let table = self.table_within(session, csv, &|_| CsvType::Text, Typing::Columnar, &pin).await?;
        self.with_folder_types(table)
    }

    /// Returns whether a column is given by folders.
    #[doc(hidden)]
    pub fn is_partition_column(&self, name: &str) -> bool {
        self.folders.names.iter().any(|folder| folder == name)
    }

    /// Gives the partition columns, which are text, the types that are found over all folders.
    ///
    /// # Errors
    /// A data error if the table lacks one.
    #[doc(hidden)]
    pub fn with_folder_types(&self, table: DataFrame) -> Result<DataFrame> {
        if self.folders.names.is_empty() {
            return Ok(table);
        }
        let typed = |field: &FieldRef| {
            let of_folder = self.folders.names.iter().position(|name| name == field.name());
            let found = of_folder.and_then(|at| self.folders.types.get(at));
            let value = column(field.name());
            match found {
                Some(PartitionType::Integer) => cast(value, DataType::Int64).alias(field.name()),
                Some(PartitionType::Date) => cast(value, DataType::Date32).alias(field.name()),
                Some(PartitionType::Text | PartitionType::Recorded(_)) | None => value,
            }
        };
        let columns: Vec<Expr> = table.schema().fields().iter().map(typed).collect();
        table.select(columns).context("opening the input")
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

    fn get_table_definition(&self) -> Option<&str> {
        self.table.get_table_definition()
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
        let plan = self.table.scan(session, projection, filters, limit).await?;
        if self.is_listed_by_engine {
            self.known_files_of(plan.as_ref()).map_err(into_engine)?;
        }
        Ok(plan)
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        _: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Err(into_engine(Error::policy(
            "INSERT INTO: the files of this table are read as they were when it was created; write a new file with COPY ... TO \
             and create the table again",
        )))
    }
}
