//! Writes the assignment of regions that the private record keeps;
//! [`verify::assignment`](mod@crate::verify) reads it.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, DictionaryArray, UInt32Array};
use arrow::datatypes::UInt32Type;
use arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use crate::engine::Context;
use crate::error::Result;

/// A column of texts: the different ones, and the index of the text of each line, NULL for a missing text.
pub(crate) struct Texts {
    pub(crate) texts: ArrayRef,
    pub(crate) of_line: UInt32Array,
}

/// Writes an assignment as Parquet: for each quasi-identifier, in the order of the release, the
/// level-0 labels as text and what they show. Lines that are not `kept` show nothing.
///
/// # Errors
/// An internal error if the columns differ in length.
pub(crate) fn write(kept: BooleanArray, values: Vec<Texts>, shown: Vec<Texts>) -> Result<Vec<u8>> {
    let doing = "writing the assignment";
    let mut columns: Vec<(String, ArrayRef, bool)> = vec![("kept".to_owned(), Arc::new(kept), false)];
    for (name, columns_of) in [("value", values), ("shown", shown)] {
        for (at, column) in columns_of.into_iter().enumerate() {
            let texts =
                DictionaryArray::<UInt32Type>::try_new(column.of_line, column.texts).context(doing)?;
            columns.push((format!("{name}_{at}"), Arc::new(texts), true));
        }
    }
    let batch = RecordBatch::try_from_iter_with_nullable(columns).context(doing)?;
    // What a class shows is long and repeated: without a dictionary each line would hold it.
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).context(doing)?))
        .set_dictionary_page_size_limit(usize::MAX)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).context(doing)?;
    writer.write(&batch).context(doing)?;
    writer.into_inner().context(doing)
}
