//! The files of an input as a table of the engine: exactly the files that were listed, and the columns of their folders.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::listing::helpers::expr_applicable_for_cols;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result as EngineResult;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;

use crate::engine::into_engine;
use crate::error::{Error, Result};
use crate::store::pinned::PinnedObjects;
use crate::store::{Object, PartitionColumns};

/// Files of one format.
pub(super) struct FilesTable {
    files: Listed,
    format: Arc<dyn FileFormat>,
    /// The columns of the files, and those of folders.
    schema: TableSchema,
    /// The values of the partition columns for each file; empty without such columns.
    values: Vec<Vec<ScalarValue>>,
}

/// Shows no values of folders.
impl fmt::Debug for FilesTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilesTable").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Where the engine reads the files.
enum Listed {
    /// All are files of this machine, which the engine reads as they are.
    Local(Vec<PartitionedFile>),
    /// Some are objects of stores.
    Pinned(Arc<PinnedObjects>),
}

impl FilesTable {
    /// Creates the table of files with these columns; the partition columns come last.
    ///
    /// # Errors
    /// A data error if a file of this machine cannot be found, or if its path holds a control character.
    pub(super) fn new(
        objects: &[Object],
        format: Arc<dyn FileFormat>,
        schema: &SchemaRef,
        folders: &PartitionColumns,
    ) -> Result<Self> {
        let files = if objects.iter().all(|object| object.address().local().is_some()) {
            Listed::Local(objects.iter().map(Object::as_file).collect::<Result<_>>()?)
        } else {
            Listed::Pinned(PinnedObjects::new(objects))
        };
        let (of_files, of_folders) = schema.fields().split_at(schema.fields().len() - folders.names.len());
        let of_files = TableSchema::builder(Arc::new(Schema::new(of_files)));
        let schema = of_files.with_table_partition_cols(of_folders.to_vec()).build();
        let value = |(value, field): (&Option<String>, &FieldRef)| {
            let typed = ScalarValue::Utf8View(value.clone()).cast_to(field.data_type());
            typed.map_err(|_| {
                Error::data("a folder holds no value of the type that the record says").at(field.name())
            })
        };
        let row = |values: &Vec<Option<String>>| {
            values.iter().zip(schema.table_partition_cols()).map(value).collect::<Result<Vec<_>>>()
        };
        let values = folders.values.iter().map(row).collect::<Result<_>>()?;
        Ok(Self { files, format, schema, values })
    }

    /// Returns whether a filter looks at partition columns only, so that files can be left out by it.
    fn is_of_partition_columns(&self, filter: &Expr) -> bool {
        let columns = self.schema.table_partition_cols().iter().map(|field| field.name().as_str());
        let columns: Vec<&str> = columns.collect();
        !columns.is_empty() && expr_applicable_for_cols(&columns, filter)
    }

    /// Returns the files for which filters on partition columns hold.
    fn files_with(
        &self,
        session: &dyn Session,
        files: Vec<PartitionedFile>,
        filters: Vec<Expr>,
    ) -> EngineResult<Vec<PartitionedFile>> {
        let Some(filter) = conjunction(filters) else { return Ok(files) };
        let columns: &Fields = self.schema.table_partition_cols();
        let schema = Arc::new(Schema::new(columns.clone()));
        let filter = session.create_physical_expr(filter, &DFSchema::try_from(Arc::clone(&schema))?)?;
        let mut kept = Vec::new();
        for file in files {
            let values =
                file.partition_values.iter().map(ScalarValue::to_array).collect::<EngineResult<_>>()?;
            let row = RecordBatch::try_new(Arc::clone(&schema), values)?;
            let holds = filter.evaluate(&row)?.into_array(1)?;
            let holds: Option<&BooleanArray> = holds.as_boolean_opt();
            if holds.is_some_and(|holds| holds.is_valid(0) && holds.value(0)) {
                kept.push(file);
            }
        }
        Ok(kept)
    }
}

#[async_trait]
impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.table_schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> EngineResult<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| match self.is_of_partition_columns(filter) {
                true => TableProviderFilterPushDown::Exact,
                false => TableProviderFilterPushDown::Inexact,
            })
            .collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let (store, mut files) = match &self.files {
            Listed::Local(files) => (ObjectStoreUrl::local_filesystem(), files.clone()),
            Listed::Pinned(objects) => objects.register(session.runtime_env()).map_err(into_engine)?,
        };
        for (file, values) in files.iter_mut().zip(&self.values) {
            file.partition_values.clone_from(values);
        }
        let of_folders = filters.iter().filter(|filter| self.is_of_partition_columns(filter)).cloned();
        let files = self.files_with(session, files, of_folders.collect())?;
        if files.is_empty() {
            let schema = match projection {
                Some(columns) => Arc::new(self.schema.table_schema().project(columns)?),
                None => self.schema(),
            };
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let groups = FileGroup::new(files).split_files(session.config().target_partitions());
        let source = self.format.file_source(self.schema.clone());
        let scan = FileScanConfigBuilder::new(store, source)
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        self.format.create_physical_plan(session, scan).await
    }
}
