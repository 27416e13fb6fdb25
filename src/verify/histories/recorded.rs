//! The rows of a release as its private record keeps them, so that it can be judged again without its input: a Parquet file with a
//! line for each row that has a person, in the order of the pseudonyms.
//!
//! ```text
//! shown | kanon_individual_a, _b | kanon_row | kanon_loose | kanon_compared_0 | shown_0 | shown_1 | kanon_of_row_0 | kanon_date_0
//! true  | 1830..     , 77..      | 91..      | 14..        | 60..             | [30,35] | 9413*   | 3              | 2026-03-01
//! ```
//! `shown_` columns are the labels of the class, NULL where the row is not shown. Values are numbers: those whose whole a model reads
//! in the order of the values, others in the order in which they come; lasting ones are pseudonyms. The metadata of the file hold the
//! frequencies of the former in the whole input.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, RecordBatchReader, StringArray, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type, UInt64Type};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use super::shown_classes::{ShownClasses, in_view, of_view};
use super::shown_rows::{
    JudgedModel, LOOSE, ROW, ShownRows, WithoutPerson, class_name, compared_name, date_name, elsewhere_name,
    lost, value_name,
};
use super::{DOING, View};
use crate::class::{Budget, Held};
use crate::engine::damaged::unless_it_panics;
use crate::engine::replay_table::table_of_partitions;
use crate::engine::spilled_rows::SpilledRows;
use crate::engine::{Context, PoolBudget, column};
use crate::error::{Error, Result};
use crate::model::{Distribution, Requirement};
use crate::progress::CancelToken;
use crate::verify::row_lines::{RowLines, RowNames};

const SHOWN: &str = "shown";

/// The key of the frequencies of counted values in the input.
const INPUTS: &str = "kanon.inputs";

/// The lines that are read at a time.
const BATCH_LINES: usize = 8_192;

/// What a private record holds of the rows of a release.
pub(crate) struct RecordedRows<'a> {
    /// The Parquet file.
    pub(crate) lines: Bytes,
    /// The quasi-identifiers, in the order of the release.
    pub(crate) quasi: Vec<String>,
    pub(crate) requirements: &'a [Requirement],
    /// For each model that is judged its place among the requirements, that of its column among the counted ones, and the name of its
    /// column if its values last.
    pub(crate) models: Vec<(usize, Option<usize>, Option<&'a str>)>,
    /// The columns whose values last, by their names.
    pub(crate) lasting: Vec<String>,
    /// The places among the dates of those that the release has.
    pub(crate) dates: Vec<usize>,
    /// The number of hashes of values that are compared.
    pub(crate) compared: usize,
    pub(crate) without_person: WithoutPerson,
}

fn label_name(at: usize) -> String {
    format!("shown_{at}")
}

/// Returns the names of what a line says of its row.
fn of_row(compared: usize) -> Vec<String> {
    let names = ROW.into_iter().chain([LOOSE]).map(str::to_owned);
    names.chain((0..compared).map(compared_name)).collect()
}

fn fields_of_row(compared: usize) -> Vec<Field> {
    let is_nullable = |at: usize| at >= ROW.len();
    let names = of_row(compared).into_iter().enumerate();
    names.map(|(at, name)| Field::new(name, DataType::UInt64, is_nullable(at))).collect()
}

fn damaged() -> Error {
    Error::unmet("the private record is damaged: what it holds of the rows of the release cannot be read")
}

impl ShownRows<'_> {
    /// Writes the rows as a private record keeps them; the memory is that of `budget`.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(crate) async fn lines(&self, budget: &Arc<dyn Budget>, stop: &CancelToken) -> Result<Vec<u8>> {
        let values: Vec<String> = (0..self.width).map(value_name).collect();
        let dates = self.dates.iter().map(|at| date_name(*at));
        let of_row = of_row(self.compared);
        let names: Vec<String> =
            of_row.iter().cloned().chain([class_name(0)]).chain(values).chain(dates).collect();
        let rows = self.table.clone().select(names.iter().map(column).collect::<Vec<_>>()).context(DOING)?;
        let order = names[..=of_row.len()].iter().map(|name| column(name).sort(true, true));
        let rows = rows.sort(order.collect()).context(DOING)?;
        let inputs = serde_json::to_string(&self.inputs).map_err(|_| lost())?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).context(DOING)?))
            .set_key_value_metadata(Some(vec![KeyValue::new(INPUTS.to_owned(), inputs)]))
            .build();
        let schema = self.schema_of_lines();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties)).context(DOING)?;
        let (labels, mut held) = (self.labels_of_classes(), Held::new(budget));
        let mut numbers: Vec<HashMap<u64, u64>> = vec![HashMap::new(); self.width];
        let mut stream = rows.execute_stream().await.context(DOING)?;
        while let Some(batch) = stream.next().await {
            stop.check()?;
            let batch = batch.context(DOING)?;
            let (row, others) = batch.columns().split_at(of_row.len());
            let (class, others) = others.split_first().ok_or_else(lost)?;
            let (values, dates) = others.split_at(self.width);
            let class = class.as_primitive_opt::<UInt64Type>().ok_or_else(lost)?;
            let shown: BooleanArray = (0..class.len()).map(|row| Some(class.is_valid(row))).collect();
            let mut columns: Vec<ArrayRef> = vec![Arc::new(shown)];
            columns.extend_from_slice(row);
            let class = cast(class, &DataType::UInt32).context(DOING)?;
            let class = class.as_primitive_opt::<UInt32Type>().ok_or_else(lost)?;
            for labels in &labels {
                let texts = DictionaryArray::<UInt32Type>::try_new(class.clone(), Arc::clone(labels))
                    .context(DOING)?;
                columns.push(Arc::new(texts));
            }
            for (at, (values, numbers)) in values.iter().zip(&mut numbers).enumerate() {
                columns.push(if self.has_own_numbers(at) {
                    as_they_come(values, numbers)?
                } else {
                    Arc::clone(values)
                });
            }
            columns.extend_from_slice(dates);
            writer
                .write(&RecordBatch::try_new(Arc::clone(&schema), columns).context(DOING)?)
                .context(DOING)?;
            let numbered: usize = numbers.iter().map(HashMap::capacity).sum();
            held.at_least(writer.memory_size() + writer.bytes_written() + numbered * size_of::<[u64; 2]>())?;
        }
        writer.into_inner().context(DOING)
    }

    /// Returns whether the numbers of a counted column are in the order in which threads met the values.
    fn has_own_numbers(&self, at: usize) -> bool {
        self.inputs.get(at).is_some_and(|input| input.values().is_empty())
    }

    fn schema_of_lines(&self) -> SchemaRef {
        let text = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
        let rows = self.table.schema().as_arrow();
        let date = |at: &usize| rows.field_with_name(&date_name(*at)).cloned();
        let mut fields = vec![Field::new(SHOWN, DataType::Boolean, false)];
        fields.extend(fields_of_row(self.compared));
        fields.extend(
            (0..self.classes.labels().0.len()).map(|at| Field::new(label_name(at), text.clone(), true)),
        );
        fields.extend((0..self.width).map(|at| Field::new(value_name(at), DataType::UInt64, true)));
        fields.extend(self.dates.iter().filter_map(|at| date(at).ok()));
        Arc::new(Schema::new(fields))
    }

    /// Returns for each quasi-identifier the labels of all classes.
    fn labels_of_classes(&self) -> Vec<ArrayRef> {
        let (quasi, classes) = self.classes.labels();
        let of_column = |at: usize| -> ArrayRef {
            Arc::new(classes.iter().map(|labels| labels[at].as_deref()).collect::<StringArray>())
        };
        (0..quasi.len()).map(of_column).collect()
    }
}

/// Numbers values anew, in the order in which they come.
fn as_they_come(values: &ArrayRef, numbers: &mut HashMap<u64, u64>) -> Result<ArrayRef> {
    let values = values.as_primitive_opt::<UInt64Type>().ok_or_else(lost)?;
    let mut number = |value: u64| {
        let next = numbers.len() as u64;
        *numbers.entry(value).or_insert(next)
    };
    Ok(Arc::new(values.iter().map(|value| value.map(&mut number)).collect::<UInt64Array>()))
}

impl<'a> ShownRows<'a> {
    /// Reads the rows of a release from its private record.
    ///
    /// # Errors
    /// An unmet error if they are damaged, a data error when memory runs out.
    pub(crate) async fn recorded(
        session: &SessionContext,
        recorded: RecordedRows<'a>,
        views: &[View],
        stop: &CancelToken,
    ) -> Result<Self> {
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "histories"));
        let RecordedRows { lines, quasi, requirements, models, lasting, dates, compared, without_person } =
            recorded;
        let inputs = inputs_of(&lines)?;
        let width = inputs.len() + lasting.len();
        let expected = Layout { compared, labels: quasi.len(), width, dates: &dates };
        let classes = classes_of(&lines, &expected, quasi, &budget, stop)?;
        let (quasi, labels) = classes.labels();
        let numbers: HashMap<&[Option<String>], u64> = labels.iter().map(Vec::as_slice).zip(0..).collect();
        let in_views: Vec<Vec<u64>> = views.iter().map(|over| of_view(quasi, labels, over)).collect();

        let reader = open(&lines)?;
        let schema = expected.schema_of_rows(&reader.schema(), views.len())?;
        let rows = batches(reader).map(|batch| {
            let batch = batch?;
            let lines = expected.split(&batch)?;
            let class =
                |labels: Option<&[Option<String>]>| labels.and_then(|labels| numbers.get(labels).copied());
            lines.rows(&lines.each(class), &in_views, &schema)
        });
        let rows = futures::stream::iter(rows).boxed();
        let rows = SpilledRows::write(session.runtime_env(), Arc::clone(&schema), rows, stop, DOING).await?;
        let models = models.into_iter().map(|(at, column, lasting)| {
            let requirement = requirements.get(at).ok_or_else(damaged)?;
            Ok(JudgedModel { at, requirement, column, lasting })
        });
        Ok(Self {
            table: table_of_partitions(session, vec![Arc::new(rows)])?,
            width,
            models: models.collect::<Result<_>>()?,
            inputs,
            lasting,
            dates,
            classes,
            views: views.to_vec(),
            compared,
            without_person,
        })
    }
}

/// Returns which class shows each row by the lines of a release that follows others. Classes that no earlier release has are
/// `new_classes`.
///
/// # Errors
/// An unmet error if the lines are damaged.
pub(crate) fn row_lines(
    lines: Bytes,
    labels: usize,
    names: RowNames,
    new_classes: &[Vec<Option<String>>],
) -> Result<RowLines> {
    let new: BTreeSet<&[Option<String>]> = new_classes.iter().map(Vec::as_slice).collect();
    let mut numbers: HashMap<Vec<Option<String>>, u32> = HashMap::new();
    let mut found = RowLines { names, classes: Vec::new(), are_earlier: Vec::new(), rows: Vec::new() };
    for batch in batches(open(&lines)?) {
        let batch = batch?;
        let of_row: Option<Vec<&UInt64Array>> =
            ROW.iter().map(|name| batch.column_by_name(name)?.as_primitive_opt()).collect();
        let shown = batch.column_by_name(SHOWN).and_then(|shown| shown.as_boolean_opt()).cloned();
        let texts = (0..labels).map(|at| {
            cast(batch.column_by_name(&label_name(at))?, &DataType::Utf8).ok()?.as_string_opt().cloned()
        });
        let texts: Option<Vec<StringArray>> = texts.collect();
        let (of_row, shown, texts) = match (of_row, shown, texts) {
            (Some(of_row), Some(shown), Some(texts)) => (of_row, shown, texts),
            _ => return Err(damaged()),
        };
        for row in 0..batch.num_rows() {
            let name = [0, 1, 2].map(|part: usize| of_row[part].value(row));
            let class = shown.value(row).then(|| {
                let text = |texts: &StringArray| texts.is_valid(row).then(|| texts.value(row).to_owned());
                let class: Vec<Option<String>> = texts.iter().map(text).collect();
                let next = u32::try_from(found.classes.len()).unwrap_or(u32::MAX);
                *numbers.entry(class).or_insert_with_key(|class| {
                    found.are_earlier.push(!new.contains(class.as_slice()));
                    found.classes.push(class.clone());
                    next
                })
            });
            found.rows.push((name, class));
        }
    }
    Ok(found)
}

/// Returns the distributions of the counted columns over the input.
fn inputs_of(lines: &Bytes) -> Result<Vec<Distribution>> {
    let read = unless_it_panics(|| ParquetRecordBatchReaderBuilder::try_new(lines.clone()));
    let read = read.and_then(std::result::Result::ok).ok_or_else(damaged)?;
    let metadata = read.metadata().file_metadata().key_value_metadata();
    let entry = metadata.into_iter().flatten().find(|entry| entry.key == INPUTS);
    let text = entry.and_then(|entry| entry.value.as_ref());
    text.and_then(|text| serde_json::from_str(text).ok()).ok_or_else(damaged)
}

fn open(lines: &Bytes) -> Result<ParquetRecordBatchReader> {
    let open =
        || ParquetRecordBatchReaderBuilder::try_new(lines.clone())?.with_batch_size(BATCH_LINES).build();
    unless_it_panics(open).and_then(std::result::Result::ok).ok_or_else(damaged)
}

fn batches(mut reader: ParquetRecordBatchReader) -> impl Iterator<Item = Result<RecordBatch>> {
    std::iter::from_fn(move || match unless_it_panics(|| reader.next()) {
        Some(batch) => batch.map(|batch| batch.map_err(|_| damaged())),
        None => Some(Err(damaged())),
    })
}

/// Returns the classes of all lines.
fn classes_of(
    lines: &Bytes,
    expected: &Layout<'_>,
    quasi: Vec<String>,
    budget: &Arc<dyn Budget>,
    stop: &CancelToken,
) -> Result<ShownClasses> {
    let (mut held, mut bytes) = (Held::new(budget), 0);
    let mut classes: BTreeSet<Vec<Option<String>>> = BTreeSet::new();
    for batch in batches(open(lines)?) {
        stop.check()?;
        expected.split(&batch?)?.each(|labels| {
            if let Some(new) = labels.filter(|labels| !classes.contains(*labels)) {
                bytes += new.iter().flatten().map(String::len).sum::<usize>();
                classes.insert(new.to_vec());
            }
        });
        let each = size_of::<Vec<Option<String>>>() + quasi.len() * size_of::<Option<String>>();
        held.at_least(2 * (bytes + classes.len() * each))?;
    }
    Ok(ShownClasses::of_labels(quasi, classes.into_iter().collect(), held))
}

/// The columns of the lines, by their numbers.
struct Layout<'a> {
    compared: usize,
    labels: usize,
    width: usize,
    dates: &'a [usize],
}

/// Some lines.
struct Lines<'a> {
    shown: &'a BooleanArray,
    row: &'a [ArrayRef],
    labels: Vec<StringArray>,
    others: &'a [ArrayRef],
}

impl Layout<'_> {
    fn names(&self) -> impl Iterator<Item = String> {
        let names = std::iter::once(SHOWN.to_owned()).chain(of_row(self.compared));
        let labels = (0..self.labels).map(label_name);
        let dates = self.dates.iter().map(|at| date_name(*at));
        names.chain(labels).chain((0..self.width).map(value_name)).chain(dates)
    }

    /// Returns the columns of lines that are as they should be.
    fn split<'a>(&self, batch: &'a RecordBatch) -> Result<Lines<'a>> {
        let schema = batch.schema();
        let is_expected = schema.fields().iter().map(|field| field.name().clone()).eq(self.names());
        let columns = batch.columns();
        if !is_expected || columns[1..=ROW.len()].iter().any(|column| column.null_count() > 0) {
            return Err(damaged());
        }
        let (row, others) = columns[1..].split_at(of_row(self.compared).len());
        let (labels, others) = others.split_at(self.labels);
        let text = |labels: &ArrayRef| cast(labels, &DataType::Utf8).ok()?.as_string_opt().cloned();
        let labels: Option<Vec<StringArray>> = labels.iter().map(text).collect();
        let shown = columns[0].as_boolean_opt().filter(|shown| shown.null_count() == 0);
        let (shown, labels) = (shown.ok_or_else(damaged)?, labels.ok_or_else(damaged)?);
        Ok(Lines { shown, row, labels, others })
    }

    /// Returns the schema of the rows of [`ShownRows`].
    fn schema_of_rows(&self, lines: &Schema, views: usize) -> Result<SchemaRef> {
        let number = |name: String, nullable| Field::new(name, DataType::UInt64, nullable);
        let mut fields = fields_of_row(self.compared);
        fields.extend((0..views).map(|view| number(class_name(view), true)));
        fields.extend((0..views).map(|view| number(elsewhere_name(view), false)));
        fields.extend((0..self.width).map(|at| number(value_name(at), true)));
        for at in self.dates {
            fields.push(lines.field_with_name(&date_name(*at)).map_err(|_| damaged())?.clone());
        }
        Ok(Arc::new(Schema::new(fields)))
    }
}

impl Lines<'_> {
    /// Calls a function with the labels of each row; `None` for a row that is not shown.
    fn each<T>(&self, mut see: impl FnMut(Option<&[Option<String>]>) -> T) -> Vec<T> {
        let mut labels = vec![None; self.labels.len()];
        let of_row = |row: usize| {
            if !self.shown.value(row) {
                return see(None);
            }
            for (label, texts) in labels.iter_mut().zip(&self.labels) {
                *label = texts.is_valid(row).then(|| texts.value(row).to_owned());
            }
            see(Some(&labels))
        };
        (0..self.shown.len()).map(of_row).collect()
    }

    /// Returns the rows of [`ShownRows`], which are in these classes.
    fn rows(
        &self,
        classes: &[Option<u64>],
        in_views: &[Vec<u64>],
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        let mut columns = self.row.to_vec();
        for of_class in in_views {
            columns.push(Arc::new(in_view(classes, of_class)?));
        }
        let nothing: ArrayRef = Arc::new(UInt64Array::from(vec![0; classes.len()]));
        columns.extend(in_views.iter().map(|_| Arc::clone(&nothing)));
        columns.extend_from_slice(self.others);
        RecordBatch::try_new(Arc::clone(schema), columns).map_err(|_| damaged())
    }
}
