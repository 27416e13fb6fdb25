//! Readers of Parquet files that hand out the dictionaries of some columns.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::error::Result;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema, parquet_to_arrow_schema};
use datafusion::parquet::basic::{Encoding, EncodingMask};
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataBuilder,
};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::future::{BoxFuture, FutureExt};

/// Other readers, with dictionaries for these columns.
#[derive(Debug)]
pub(super) struct DictionaryReaders {
    pub(super) readers: Arc<dyn ParquetFileReaderFactory>,
    pub(super) columns: BTreeSet<String>,
}

impl ParquetFileReaderFactory for DictionaryReaders {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let reader = self.readers.create_reader(partition_index, file, metadata_size_hint, metrics)?;
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition_index);
        let counted =
            Counted { dictionaries: counter(KEYS_FROM_DICTIONARIES), texts: counter(KEYS_FROM_TEXTS) };
        Ok(Box::new(DictionaryReader { reader, columns: self.columns.clone(), counted: Some(counted) }))
    }
}

/// The metrics of a scan: how many columns of text that only class keys look at its readers hand out as
/// dictionaries, and how many as a text for each row.
const KEYS_FROM_DICTIONARIES: &str = "kanon_key_columns_as_dictionaries";
const KEYS_FROM_TEXTS: &str = "kanon_key_columns_as_texts";

struct Counted {
    dictionaries: Count,
    texts: Count,
}

struct DictionaryReader {
    reader: Box<dyn AsyncFileReader + Send>,
    columns: BTreeSet<String>,
    /// What is counted with the first metadata.
    counted: Option<Counted>,
}

impl AsyncFileReader for DictionaryReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.reader.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.reader.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        let Self { reader, columns, counted } = self;
        async move {
            let metadata = reader.get_metadata(options).await?;
            let Changed { metadata: changed, dictionaries, texts } = with_dictionaries(&metadata, columns)?;
            if let Some(counted) = counted.take() {
                counted.dictionaries.add(dictionaries);
                counted.texts.add(texts);
            }
            Ok(changed.map_or(metadata, Arc::new))
        }
        .boxed()
    }
}

/// Metadata whose schema says that columns are dictionaries.
struct Changed {
    /// `None` where there is nothing to say.
    metadata: Option<ParquetMetaData>,
    /// The number of columns that are dictionaries now.
    dictionaries: usize,
    /// The number of the others that are texts.
    texts: usize,
}

fn with_dictionaries(metadata: &ParquetMetaData, columns: &BTreeSet<String>) -> ParquetResult<Changed> {
    let file = metadata.file_metadata();
    let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?;
    let (mut dictionaries, mut texts) = (0, 0);
    let fields = schema.fields().iter().map(|field| {
        let is_text = columns.contains(field.name())
            && matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        if !is_text || !has_dictionaries(metadata, field.name()) {
            texts += usize::from(is_text);
            return Arc::clone(field);
        }
        dictionaries += 1;
        let packed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        Arc::new(Field::clone(field).with_data_type(packed))
    });
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
    if dictionaries == 0 {
        return Ok(Changed { metadata: None, dictionaries, texts });
    }
    let others =
        file.key_value_metadata().into_iter().flatten().filter(|pair| pair.key != ARROW_SCHEMA_META_KEY);
    let own = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema));
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        Some(others.cloned().chain([own]).collect()),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    let changed = ParquetMetaDataBuilder::new(file)
        .set_row_groups(metadata.row_groups().to_vec())
        .set_column_index(metadata.column_index().cloned())
        .set_offset_index(metadata.offset_index().cloned());
    Ok(Changed { metadata: Some(changed.build()), dictionaries, texts })
}

/// Returns whether all pages of a column are known to be numbers of a dictionary.
fn has_dictionaries(metadata: &ParquetMetaData, column: &str) -> bool {
    let is_packed = |chunk: &ColumnChunkMetaData| {
        let are_numbers = |mask: &EncodingMask| {
            mask.is_only(Encoding::RLE_DICTIONARY) || mask.is_only(Encoding::PLAIN_DICTIONARY)
        };
        chunk.dictionary_page_offset().is_some() && chunk.page_encoding_stats_mask().is_some_and(are_numbers)
    };
    let of_column = |chunk: &&ColumnChunkMetaData| chunk.column_path().parts() == [column];
    let chunks = || metadata.row_groups().iter().map(|group| group.columns().iter().find(of_column));
    chunks().all(|chunk| chunk.is_some_and(is_packed))
}

#[cfg(test)]
#[path = "readers_tests.rs"]
mod tests;
