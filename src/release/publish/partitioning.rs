//! `[output] partition_by`: columns of a table that the names of its folders hold instead of its files, such as
//! `year=2024/zip=12%2A/part-00000.parquet`. Hive, Spark and most other programs read this layout.
//!
//! The rows are ordered by these columns first, so each folder is written once. A name shows a value as it is released, in the only
//! way in which kanon writes it: readers of the names learn nothing that the rows do not say.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray, UInt32Array};
use arrow::compute::{CastOptions, cast_with_options, partition, take};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use serde_json::json;

use crate::engine::Context;
use crate::engine::functions::row_converter;
use crate::error::{Error, Result};
use crate::generalize::Value;
use crate::policy::Policy;
use crate::release::check_record::refused;
use crate::release::publish::record::{PublicRecord, TableRecord};
use crate::release::publish::table_files::{Part, folders_of};
use crate::store::{PartitionColumns, PartitionType, can_be_partition_column, check_column, folder_name};

pub(crate) const PLACE: &str = "output.partition_by";

impl Policy {
    /// Returns the columns that name folders of the release and are released as they are. Its rows are ordered by them first.
    pub(crate) fn as_is_partition_columns(&self) -> Vec<&str> {
        let names = self.spec.output.partition_by().iter().map(String::as_str);
        names.filter(|name| self.quasi_index(name).is_none()).collect()
    }

    /// Returns the places of the quasi-identifiers in the order by which classes are ordered: those that name folders come first.
    pub(crate) fn quasi_in_order(&self) -> Vec<usize> {
        let names = self.spec.output.partition_by().iter();
        let mut order: Vec<usize> = names.filter_map(|name| self.quasi_index(name)).collect();
        let others: Vec<usize> = (0..self.quasi.len()).filter(|at| !order.contains(at)).collect();
        order.extend(others);
        order
    }
}

/// The columns of a table that the names of folders hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partitioning {
    /// Each column with its place among all columns of the table, from the outermost folder to the innermost.
    columns: Vec<(usize, FieldRef)>,
}

impl Partitioning {
    /// Finds columns of a planned table.
    ///
    /// # Errors
    /// A policy error for a column whose values cannot name folders, or if the files would have no column.
    pub(crate) fn of_schema(schema: &Schema, names: &[String]) -> Result<Self> {
        let column = |name: &String| {
            let (at, field) = schema.fields().find(name).ok_or_else(|| {
                Error::policy(format!("`{name}` is written as several columns; partition by others"))
                    .at(PLACE)
            })?;
            if !can_be_partition_column(field.data_type()) {
                return Err(Error::policy(format!(
                    "`{name}` has the type {}; expected a column of text, whole numbers, dates or booleans",
                    field.data_type()
                ))
                .at(PLACE));
            }
            Ok((at, Arc::clone(field)))
        };
        let columns: Vec<_> = names.iter().map(column).collect::<Result<_>>()?;
        for name in names {
            let is_like = |other: &&FieldRef| {
                other.name() != name && other.name().to_lowercase() == name.to_lowercase()
            };
            if let Some(other) = schema.fields().iter().find(is_like) {
                let why = format!(
                    "`{name}` and `{}` differ only in case, and some programs take them for one",
                    other.name()
                );
                return Err(Error::policy(why + "; rename one").at(PLACE));
            }
            check_column(name)
                .map_err(|why| Error::policy(format!("the name `{name}` {why}; rename it")).at(PLACE))?;
        }
        if columns.len() == schema.fields().len() {
            let why = "expected at least one released column that is not in it, because files need a column";
            return Err(Error::policy(why).at(PLACE));
        }
        Ok(Self { columns })
    }

    /// Finds the columns of a recorded table.
    ///
    /// # Errors
    /// An unmet error for columns by which kanon does not partition.
    pub(crate) fn of_record(public: &PublicRecord, table: &TableRecord) -> Result<Self> {
        if table.partition_by.is_empty() {
            return Ok(Self::default());
        }
        let wrong = || refused("the record contradicts itself on the folders of its files");
        let written = public.written_columns_of(table)?;
        let mut columns = Vec::new();
        for name in &table.partition_by {
            let at = written.iter().position(|(written, _)| written == name).ok_or_else(wrong)?;
            let data_type: Option<DataType> = written[at].1.parse().ok();
            let data_type = data_type.filter(can_be_partition_column).ok_or_else(wrong)?;
            check_column(name).map_err(|_| wrong())?;
            if columns.iter().any(|(other, _)| *other == at) {
                return Err(wrong());
            }
            columns.push((at, Arc::new(Field::new(name, data_type, true))));
        }
        if table.folder.is_some() || columns.len() == written.len() {
            return Err(wrong());
        }
        Ok(Self { columns })
    }

    /// Returns whether the files lie in no folders and hold all columns.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the partition columns.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &FieldRef> {
        self.columns.iter().map(|(_, field)| field)
    }

    /// Returns what the files hold of the columns of a table.
    pub(crate) fn of_files<T: Clone>(&self, columns: &[T]) -> Vec<T> {
        let is_of_files = |at: &usize| self.columns.iter().all(|(folder, _)| folder != at);
        columns
            .iter()
            .enumerate()
            .filter(|(at, _)| is_of_files(at))
            .map(|(_, column)| column.clone())
            .collect()
    }

    /// Returns all columns of a table from those of its files, and those of its folders in their order.
    pub(crate) fn of_all<T>(&self, mut files: Vec<T>, folders: Vec<T>) -> Vec<T> {
        let mut folders: Vec<(usize, T)> = self.columns.iter().map(|(at, _)| *at).zip(folders).collect();
        folders.sort_by_key(|(at, _)| *at);
        for (at, column) in folders {
            files.insert(at.min(files.len()), column);
        }
        files
    }

    /// Returns the metadata of the footers of a table's files: these columns with their types, which no file holds, beside `others`.
    pub(crate) fn footer(&self, mut others: Vec<(String, String)>) -> Vec<(String, String)> {
        if !self.is_empty() {
            let columns = self.fields().map(|field| (field.name(), field.data_type().to_string()));
            others.push(("kanon.partition_by".to_owned(), json!(columns.collect::<Vec<_>>()).to_string()));
        }
        others
    }

    /// Returns the schema of the files of a table.
    pub(crate) fn schema_of_files(&self, schema: &Schema) -> Schema {
        Schema::new(self.of_files(schema.fields()))
    }

    /// Returns the rows of each folder, adjacent ones together, with the path of the folder and a `/`. Without folders, all rows.
    ///
    /// # Errors
    /// A data error for a value that cannot name a folder.
    pub(crate) fn split(&self, rows: &RecordBatch, files: &SchemaRef) -> Result<Vec<(String, RecordBatch)>> {
        if self.is_empty() {
            return Ok(vec![(String::new(), rows.clone())]);
        }
        let doing = "writing the release";
        let values: Vec<ArrayRef> = self.columns.iter().map(|(at, _)| Arc::clone(rows.column(*at))).collect();
        let of_files =
            RecordBatch::try_new(Arc::clone(files), self.of_files(rows.columns())).context(doing)?;
        let parts = partition(&values).context(doing)?.ranges();
        let part = |Range { start, end }: Range<usize>| {
            Ok((self.path(&values, start)?, of_files.slice(start, end - start)))
        };
        parts.into_iter().map(part).collect()
    }

    /// Returns the path of the folder of a row with these values, with a `/` at its end.
    fn path(&self, values: &[ArrayRef], row: usize) -> Result<String> {
        let mut path = String::new();
        for (field, values) in self.fields().zip(values) {
            let value = Value::read(values, row)?.text_form();
            let is_usual = |date: &String| date.len() == "2024-11-29".len();
            let name = match (&value, field.data_type()) {
                (Some(date), DataType::Date32) if !is_usual(date) => {
                    Err("is no date of the years 0000 to 9999")
                }
                _ => folder_name(field.name(), value.as_deref()),
            };
            let name = name.map_err(|why| {
                let why = format!(
                    "a released value of `{}` {why}; leave the column out of partition_by",
                    field.name()
                );
                Error::data(why).at(PLACE)
            })?;
            path.push_str(&name);
            path.push('/');
        }
        Ok(path)
    }

    /// Returns the values of the columns in the path of a file, each as one row.
    ///
    /// # Errors
    /// An unmet error for a path that kanon does not write.
    pub(crate) fn values(&self, file: &str) -> Result<Vec<ArrayRef>> {
        let wrong = || refused("a file lies in a folder that kanon does not write");
        let found = PartitionColumns::find(&[file]).map_err(|_| wrong())?;
        let texts = found.values.into_iter().next().unwrap_or_default();
        if !found.names.iter().eq(self.fields().map(|field| field.name())) {
            return Err(refused("a file lies in folders of other columns than the record says"));
        }
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let value = |(field, text): (&FieldRef, Option<String>)| {
            let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
            cast_with_options(&text, field.data_type(), &strict)
        };
        let values: std::result::Result<Vec<ArrayRef>, _> = self.fields().zip(texts).map(value).collect();
        let values = values.map_err(|_| wrong())?;
        if self.path(&values, 0).map_err(|_| wrong())? != folders_of(file) {
            return Err(wrong());
        }
        Ok(values)
    }

    /// Returns what the folders of files give, in the types of the columns.
    ///
    /// # Errors
    /// A data error for values that not every reader tells apart.
    pub(crate) fn columns(&self, files: &[&str]) -> Result<PartitionColumns> {
        let found = PartitionColumns::find(files).map_err(|_| {
            let why = "programs would take two released values for one, such as the texts `01` and `1`; name other columns";
            Error::data(why).at(PLACE)
        })?;
        let types = self.fields().map(|field| PartitionType::Recorded(field.data_type().clone()));
        Ok(PartitionColumns { types: types.collect(), ..found })
    }

    /// Checks that each folder holds adjacent files, and that the columns among these that no policy orders ascend.
    ///
    /// # Errors
    /// An unmet error if not.
    pub(crate) fn check_order(&self, parts: &[Part], quasi: &[String]) -> Result<()> {
        let mut folders: Vec<&Part> = parts.iter().collect();
        folders.dedup_by_key(|part| part.folders());
        let distinct: BTreeSet<&str> = folders.iter().map(|part| part.folders()).collect();
        let wrong = || refused("the folders of the release are not in the order in which kanon writes them");
        if distinct.len() != folders.len() {
            return Err(wrong());
        }
        let ascend = |field: &&FieldRef| !quasi.contains(field.name());
        let doing = "reading the release";
        if !self.fields().any(|field| ascend(&field)) {
            return Ok(());
        }
        let types = self.fields().filter(ascend).map(|field| field.data_type());
        let converter = row_converter(types).context(doing)?;
        let mut last = None;
        for part in folders {
            let values = self.fields().zip(self.values(&part.name)?).filter(|(field, _)| ascend(field));
            let values: Vec<ArrayRef> = values.map(|(_, value)| value).collect();
            let row = converter.convert_columns(&values).context(doing)?.iter().next().map(|row| row.owned());
            if last > row {
                return Err(wrong());
            }
            last = row;
        }
        Ok(())
    }

    /// Returns rows of a file with all columns of its table.
    ///
    /// # Errors
    /// As [`values`](Self::values).
    pub(crate) fn with_values(&self, file: &str, rows: &RecordBatch) -> Result<RecordBatch> {
        if self.is_empty() {
            return Ok(rows.clone());
        }
        let repeated = |value: ArrayRef| {
            let first = UInt32Array::from(vec![0; rows.num_rows()]);
            take(&value, &first, None).context("reading the release")
        };
        let values = self.values(file)?.into_iter().map(repeated).collect::<Result<_>>()?;
        let fields = self.of_all(rows.schema().fields().to_vec(), self.fields().cloned().collect());
        let columns = self.of_all(rows.columns().to_vec(), values);
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).context("reading the release")
    }
}
