//! Arrow files and streams: their schema, and a check of every length before the engine reads them.
//! Arrow's reader allocates as much as a damaged length demands, which ends the process. So every length is
//! compared with the file's, and each batch is decoded once where a panic is caught.
//!
//! A stream is a sequence of messages; a file is a stream whose footer lists its messages as
//! blocks:
//!
//! ```text
//! message  FFFFFFFF (absent in old files), length of the metadata, metadata, body
//! file     ARROW1, messages, footer, length of the footer, ARROW1
//! ```

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
use datafusion::arrow::ipc::{Block, Message, RecordBatch as BatchHeader, root_as_footer, root_as_message};

use crate::engine::Context;
use crate::engine::damaged::unless_it_panics;
use crate::error::{Error, ErrorCode, Result};
use crate::store::Object;

const MAGIC: &[u8; 6] = b"ARROW1";
const DAMAGED: &str = "the file is damaged, or neither an Arrow file nor an Arrow stream";

/// The most bytes of a decompressed buffer; record batches seldom take a hundredth of it.
const MOST_BYTES: u64 = 1 << 32;
/// The most bytes that a codec makes of one: Zstandard makes 128 KiB of a run of 4 bytes.
const MOST_BYTES_OF_ONE: u64 = 1 << 15;
/// The most rows of a record batch without data, whose columns are all NULL.
const ROWS_WITHOUT_DATA: u64 = 1 << 20;

/// The reason why a file is not read.
enum Wrong {
    Damaged,
    /// A compressed buffer beyond [`MOST_BYTES`].
    TooLarge,
    Io(std::io::Error),
}

impl From<std::io::Error> for Wrong {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Self::Damaged,
            _ => Self::Io(error),
        }
    }
}

impl Wrong {
    fn at(self, place: &str) -> Error {
        match self {
            Self::Damaged => Error::data(DAMAGED).coded(ErrorCode::DamagedFile).at(place),
            Self::TooLarge => {
                let why = "a compressed buffer of a record batch holds more than 4 GiB; write smaller record batches";
                Error::data(why).at(place)
            }
            Self::Io(error) => Error::data(error.kind()).at(place),
        }
    }
}

fn damaged<T, E>(result: std::result::Result<T, E>) -> std::result::Result<T, Wrong> {
    result.map_err(|_| Wrong::Damaged)
}

/// Returns the schema of a file after checking its lengths.
///
/// # Errors
/// A data error when the file is damaged.
pub(crate) fn schema(file: &Object) -> Result<Schema> {
    let (path, place) = (file.path(), file.place());
    check_lengths(path).map_err(|wrong| wrong.at(&place))?;
    match unless_it_panics(|| Batches::open(path)) {
        Some(Ok(batches)) => Ok(batches.schema()),
        Some(Err(_)) | None => Err(Error::data(DAMAGED).coded(ErrorCode::DamagedFile).at(place)),
    }
}

/// Decodes every record batch of a file whose lengths [`schema`] has checked, so that no panic of
/// Arrow's reader reaches the engine.
///
/// # Errors
/// A data error when the file is damaged.
pub(crate) fn check(file: &Object) -> Result<()> {
    let decode =
        || Batches::open(file.path()).and_then(|mut batches| batches.try_for_each(|batch| batch.map(drop)));
    match unless_it_panics(decode) {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) | None => {
            let why = "the file is damaged, or uses a feature that the Arrow reader does not support";
            Err(Error::data(why).at(file.place()))
        }
    }
}

/// Returns whether a file has the file form of Arrow IPC, rather than the stream form.
///
/// # Errors
/// A data error for empty files and unsupported forms.
pub(crate) fn is_file(file: &Object) -> Result<bool> {
    let (path, place) = (file.path(), file.place());
    let mut start = Vec::new();
    File::open(path).context(&place)?.take(6).read_to_end(&mut start).context(&place)?;
    match start.as_slice() {
        b"" => {
            Err(Error::data("the file is empty; write it again, or remove it if nothing is missing")
                .at(place))
        }
        [b'F', b'E', b'A', b'1', ..] => {
            Err(Error::data("Feather version 1 is not supported; write the file as Feather version 2")
                .at(place))
        }
        start => Ok(start == MAGIC),
    }
}

/// The record batches of a file in either form.
enum Batches {
    File(FileReader<BufReader<File>>),
    Stream(StreamReader<BufReader<File>>),
}

impl Batches {
    fn open(path: &Path) -> std::result::Result<Self, ArrowError> {
        let mut reader = BufReader::new(File::open(path)?);
        let mut start = [0; MAGIC.len()];
        let is_file = reader.read_exact(&mut start).is_ok() && start == *MAGIC;
        reader.rewind()?;
        Ok(match is_file {
            true => Self::File(FileReader::try_new(reader, None)?),
            false => Self::Stream(StreamReader::try_new(reader, None)?),
        })
    }

    fn schema(&self) -> Schema {
        match self {
            Self::File(reader) => Schema::clone(&reader.schema()),
            Self::Stream(reader) => Schema::clone(&reader.schema()),
        }
    }
}

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::File(reader) => reader.next(),
            Self::Stream(reader) => reader.next(),
        }
    }
}

/// Checks every length in a file against the file's own length.
fn check_lengths(path: &Path) -> std::result::Result<(), Wrong> {
    let file = File::open(path)?;
    let mut messages = Messages { length: file.metadata()?.len(), file: BufReader::new(file) };
    let is_file = messages.length >= 6 && messages.bytes(0, 6)? == MAGIC;
    if is_file { messages.check_blocks() } else { messages.check_stream() }
}

/// A file read at given offsets.
struct Messages {
    file: BufReader<File>,
    length: u64,
}

impl Messages {
    /// Reads `count` bytes at an offset, all within the file.
    fn bytes(&mut self, at: u64, count: u64) -> std::result::Result<Vec<u8>, Wrong> {
        if at.checked_add(count).is_none_or(|end| end > self.length) {
            return Err(Wrong::Damaged);
        }
        let mut bytes = vec![0; damaged(usize::try_from(count))?];
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn four(&mut self, at: u64) -> std::result::Result<[u8; 4], Wrong> {
        damaged(self.bytes(at, 4)?.try_into())
    }

    fn check_stream(&mut self) -> std::result::Result<(), Wrong> {
        let mut at = 0u64;
        // Fewer bytes end a stream that was never closed.
        while self.length.saturating_sub(at) >= 4 {
            let mut length = self.four(at)?;
            at += 4;
            if length == [0xFF; 4] {
                length = self.four(at)?;
                at += 4;
            }
            let length = damaged(u64::try_from(i32::from_le_bytes(length)))?;
            if length == 0 {
                return Ok(());
            }
            let metadata = self.bytes(at, length)?;
            let message = damaged(root_as_message(&metadata))?;
            at += length;
            let body = damaged(u64::try_from(message.bodyLength()))?;
            if body > self.length - at {
                return Err(Wrong::Damaged);
            }
            self.check_message(message, at, body)?;
            at += body;
        }
        Ok(())
    }

    fn check_blocks(&mut self) -> std::result::Result<(), Wrong> {
        let end = self.length.checked_sub(10).ok_or(Wrong::Damaged)?;
        let length = damaged(u64::try_from(i32::from_le_bytes(self.four(end)?)))?;
        let footer = self.bytes(end.checked_sub(length).ok_or(Wrong::Damaged)?, length)?;
        let footer = damaged(root_as_footer(&footer))?;
        let dictionaries = footer.dictionaries().into_iter().flatten();
        dictionaries
            .chain(footer.recordBatches().into_iter().flatten())
            .try_for_each(|block| self.check_block(block))
    }

    fn check_block(&mut self, block: &Block) -> std::result::Result<(), Wrong> {
        let at = damaged(u64::try_from(block.offset()))?;
        let length = damaged(u64::try_from(block.metaDataLength()))?;
        let body = damaged(u64::try_from(block.bodyLength()))?;
        let metadata = self.bytes(at, length)?;
        // `bytes` has already added the first two.
        if at.saturating_add(length).checked_add(body).is_none_or(|end| end > self.length) {
            return Err(Wrong::Damaged);
        }
        let prefix = if metadata.starts_with(&[0xFF; 4]) { 8 } else { 4 };
        let message = damaged(root_as_message(metadata.get(prefix..).ok_or(Wrong::Damaged)?))?;
        self.check_message(message, at.saturating_add(length), body)
    }

    /// Checks the message's claims about its body, which begins at offset `at`.
    fn check_message(&mut self, message: Message<'_>, at: u64, body: u64) -> std::result::Result<(), Wrong> {
        let dictionary =
            message.header_as_dictionary_batch().map(|dictionary| dictionary.data().ok_or(Wrong::Damaged));
        match message.header_as_record_batch().map(Ok).or(dictionary) {
            Some(batch) => self.check_batch(batch?, at, body),
            None => Ok(()),
        }
    }

    fn check_batch(&mut self, batch: BatchHeader<'_>, at: u64, body: u64) -> std::result::Result<(), Wrong> {
        let mut plain = body;
        for buffer in batch.buffers().into_iter().flatten() {
            let offset = damaged(u64::try_from(buffer.offset()))?;
            let length = damaged(u64::try_from(buffer.length()))?;
            if offset.checked_add(length).is_none_or(|end| end > body) {
                return Err(Wrong::Damaged);
            }
            if batch.compression().is_some() && length > 0 {
                let size = self.bytes(at.saturating_add(offset), 8)?;
                let size = i64::from_le_bytes(damaged(size.try_into())?);
                // -1 marks an uncompressed buffer.
                let size = if size == -1 { 0 } else { damaged(u64::try_from(size))? };
                if size > length.saturating_sub(8).saturating_mul(MOST_BYTES_OF_ONE) {
                    return Err(Wrong::Damaged);
                }
                if size > MOST_BYTES {
                    return Err(Wrong::TooLarge);
                }
                plain = plain.saturating_add(size);
            }
        }
        let most = plain.saturating_mul(8).saturating_add(ROWS_WITHOUT_DATA);
        let nodes = batch.nodes().into_iter().flatten();
        let counts = nodes.flat_map(|node| [node.length(), node.null_count()]).chain([batch.length()]);
        let fits = |count: i64| u64::try_from(count).is_ok_and(|count| count <= most);
        if counts.into_iter().all(fits) { Ok(()) } else { Err(Wrong::Damaged) }
    }
}
