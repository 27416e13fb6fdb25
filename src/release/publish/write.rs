//! Our Parquet writer: fixed names and settings, the same bytes for the same rows.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::basic::{Compression, GzipLevel, ZstdLevel};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::class::{Budget, Held};
use crate::engine::Context;
use crate::error::{Error, Result};
use crate::plural::grouped;
use crate::policy::{Compression as Named, Layout};
use crate::progress::CancelToken;
use crate::release::publish::partitioning::{PLACE, Partitioning};
use crate::release::publish::released_files::name_of_number;
use crate::release::publish::table_files::Part;
use crate::release::publish::{digest, disk};

/// The rows per batch: fixed, because they shape the bytes.
const BATCH_ROWS: usize = 8_192;

/// The most folders of a release.
const MOST_FOLDERS: usize = 10_000;

/// The writer's name in a released file.
pub const CREATED_BY: &str = concat!("kanon ", env!("CARGO_PKG_VERSION"));

/// Returns the version in the name of a writer, such as `kanon 0.1.0`.
pub(crate) fn version_of(tool: &str) -> Option<[u16; 3]> {
    let mut numbers = tool.strip_prefix("kanon ")?.split('.').map(|number| number.parse().ok());
    let version = [numbers.next()??, numbers.next()??, numbers.next()??];
    let [major, minor, patch] = version;
    (tool == format!("kanon {major}.{minor}.{patch}")).then_some(version)
}

/// Returns the metadata that names the models in the footers of files.
pub fn footer(models: &str) -> Vec<(String, String)> {
    vec![("kanon.models".to_owned(), models.to_owned())]
}

/// A table to be written.
pub struct Table<'a> {
    /// Its folder, which exists.
    pub folder: &'a Path,
    /// The schema of its rows.
    pub schema: &'a SchemaRef,
    /// The partition columns, which order the rows first.
    pub partitioning: &'a Partitioning,
    /// The metadata of each file's footer.
    pub footer: &'a [(String, String)],
    /// How its files are laid out.
    pub layout: Layout,
    /// The budget of the writer.
    pub memory: &'a Arc<dyn Budget>,
}

/// Writes rows into the folder of a table as numbered parts, or into folders below it, one after the other.
///
/// # Errors
/// A data error when the plan or the disk fails, or for a value that cannot name a folder.
pub async fn write_table(
    mut rows: BoxStream<'static, Result<RecordBatch>>,
    table: &Table<'_>,
    stop: &CancelToken,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Part>> {
    let mut parts = Parts::new(table);
    let mut written = 0;
    while let Some(batch) = rows.next().await {
        stop.check()?;
        let batch = batch?;
        written += batch.num_rows() as u64;
        for (folder, rows) in table.partitioning.split(&batch, &parts.schema)? {
            stop.check()?;
            parts.push(folder, rows)?;
        }
        progress(written);
    }
    parts.end_folder()?;
    Ok(parts.done)
}

/// Returns the SHA-256 of the file that [`write_table()`] makes of the rows of the file at `path`, in
/// their order, with `created_by` as the name of the writer; `None` if the writer would have
/// ended the file elsewhere.
pub(crate) fn digest_again(
    path: &Path,
    schema: &SchemaRef,
    footer: &[(String, String)],
    created_by: &str,
    layout: Layout,
    is_last: bool,
    stop: &CancelToken,
) -> Result<Option<String>> {
    let doing = "reading the release";
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).context(doing)?).context(doing)?;
    let reader = reader.with_batch_size(BATCH_ROWS).build().context(doing)?;
    let sink = digest::Sink::default();
    let mut writer =
        ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties(footer, created_by, layout)?))
            .context(doing)?;
    let mut is_full = false;
    for batch in reader {
        stop.check()?;
        if is_full {
            return Ok(None);
        }
        let columns = batch.context(doing)?.columns().to_vec();
        writer.write(&RecordBatch::try_new(Arc::clone(schema), columns).context(doing)?).context(doing)?;
        is_full = writer.bytes_written() as u64 >= layout.file_bytes;
    }
    if !is_full && !is_last {
        return Ok(None);
    }
    Ok(Some(writer.into_inner().context(doing)?.finish()))
}

/// Returns the settings of every released file.
fn properties(footer: &[(String, String)], created_by: &str, layout: Layout) -> Result<WriterProperties> {
    let compression = match layout.compression {
        Named::None => Compression::UNCOMPRESSED,
        Named::Snappy => Compression::SNAPPY,
        Named::Lz4 => Compression::LZ4_RAW,
        Named::Gzip => Compression::GZIP(GzipLevel::default()),
        Named::Zstd => Compression::ZSTD(ZstdLevel::try_new(1).context("writing the release")?),
    };
    let rows = usize::try_from(layout.row_group_rows).unwrap_or(usize::MAX);
    let footer = footer.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
    Ok(WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(created_by.to_owned())
        .set_compression(compression)
        .set_max_row_group_row_count(Some(rows))
        .set_key_value_metadata(Some(footer))
        .build())
}

struct Parts<'a> {
    table: &'a Table<'a>,
    /// The schema of the files.
    schema: SchemaRef,
    /// The folders below that of the table in which the open part lies, with a `/` at their end.
    folder: String,
    /// The folders that were made.
    made: BTreeSet<PathBuf>,
    /// The rows that are written next.
    even: BatchCoalescer,
    open: Option<(ArrowWriter<File>, Part)>,
    done: Vec<Part>,
    /// The memory of the open row group's buffers.
    held: Held,
}

impl<'a> Parts<'a> {
    fn new(table: &'a Table<'a>) -> Self {
        let schema = Arc::new(table.partitioning.schema_of_files(table.schema));
        Self {
            table,
            folder: String::new(),
            made: BTreeSet::new(),
            even: BatchCoalescer::new(Arc::clone(&schema), BATCH_ROWS),
            schema,
            open: None,
            done: Vec::new(),
            held: Held::new(table.memory),
        }
    }

    /// Adds rows of a folder.
    fn push(&mut self, folder: String, rows: RecordBatch) -> Result<()> {
        if folder != self.folder {
            self.end_folder()?;
            self.begin_folder(folder)?;
        }
        self.even.push_batch(rows).context("writing the release")?;
        self.write_completed()
    }

    fn write_completed(&mut self) -> Result<()> {
        while let Some(full) = self.even.next_completed_batch() {
            self.write(&full)?;
        }
        Ok(())
    }

    fn begin_folder(&mut self, folder: String) -> Result<()> {
        let mut path = self.table.folder.to_path_buf();
        for name in folder.split_terminator('/') {
            path.push(name);
            if self.made.insert(path.clone()) {
                disk::create_folder(&path).map_err(|error| match error.kind() {
                    ErrorKind::AlreadyExists => {
                        let why = "this file system has one folder for two released values, because it ignores case; release to another one";
                        Error::data(why).at(PLACE)
                    }
                    _ => Error::from_io(&error).at("writing the release"),
                })?;
            }
        }
        if self.made.len() > MOST_FOLDERS {
            let why = format!(
                "the release would have more than {} folders; name fewer columns, or coarser ones",
                grouped(MOST_FOLDERS as u64)
            );
            return Err(Error::data(why).at(PLACE));
        }
        self.folder = folder;
        Ok(())
    }

    fn end_folder(&mut self) -> Result<()> {
        self.even.finish_buffered_batch().context("writing the release")?;
        self.write_completed()?;
        if let Some((writer, part)) = self.open.take() {
            self.end(writer, part)?;
        }
        let mut path = self.table.folder.to_path_buf();
        for name in self.folder.split_terminator('/') {
            path.push(name);
            disk::sync_folder(&path).context("writing the release")?;
        }
        Ok(())
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let (mut writer, mut part) = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        writer.write(batch).context("writing the release")?;
        self.held.exactly(writer.memory_size())?;
        part.rows += batch.num_rows() as u64;
        if writer.bytes_written() as u64 >= self.table.layout.file_bytes {
            self.end(writer, part)
        } else {
            self.open = Some((writer, part));
            Ok(())
        }
    }

    fn begin(&self) -> Result<(ArrowWriter<File>, Part)> {
        let name = format!("{}{}", self.folder, name_of_number(self.done.len()));
        let file = File::create_new(self.table.folder.join(&name)).context("writing the release")?;
        let properties = properties(self.table.footer, CREATED_BY, self.table.layout)?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&self.schema), Some(properties));
        let writer = writer.context("writing the release")?;
        Ok((writer, Part { name, rows: 0 }))
    }

    fn end(&mut self, mut writer: ArrowWriter<File>, part: Part) -> Result<()> {
        // `into_inner` would drop the reason for an error.
        writer.finish().context("writing the release")?;
        writer.inner().sync_all().context("writing the release")?;
        self.done.push(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise every release would be one of a later version.
    #[test]
    fn this_version_has_a_name() {
        assert!(version_of(CREATED_BY) >= Some([0, 1, 0]));
        assert_eq!(version_of("kanon 12.0.7"), Some([12, 0, 7]));
        for other in ["kanon 0.1", "kanon 0.1.0.0", "kanon 0.01.0", "kanon 0.1.0-rc.1", "0.1.0", ""] {
            assert_eq!(version_of(other), None, "{other}");
        }
    }
}
