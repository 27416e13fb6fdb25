//! Damaged inputs, and inputs that are no plain files: each is refused by its name, none ends the process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::fs;
use std::process::Command;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, NullArray, RecordBatch, StringArray};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::arrow::ipc::writer::{FileWriter, StreamWriter};
use datafusion::arrow::ipc::{root_as_footer, root_as_message};
use datafusion::parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::WriterProperties;

use crate::command::{Place, Ran, table};

fn rows() -> RecordBatch {
    let ages: ArrayRef = Arc::new(Int64Array::from(vec![31, 32]));
    let zips: ArrayRef = Arc::new(StringArray::from(vec!["02139", "02140"]));
    table([("age", ages), ("zip", zips)])
}

fn stream(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

fn file(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

/// The bytes with the number `before`, which they hold only once in the part that matters, replaced.
fn with_number(bytes: &[u8], from: usize, before: i64, after: i64) -> Vec<u8> {
    let found = bytes[from..].windows(8).position(|eight| eight == before.to_le_bytes());
    let at = from + found.unwrap();
    [&bytes[..at], &after.to_le_bytes(), &bytes[at + 8..]].concat()
}

/// Every command that opens an input.
#[track_caller]
fn refused(place: &Place, name: &str, part: &str) {
    place.write(
        "p.toml",
        "k = 2\nrows_are_individuals = true\nothers = \"drop\"\n[columns]\nage = { role = \"quasi\" }\n",
    );
    let clean = |ran: Ran| {
        let ran = ran.exit(3).says(part).says(name);
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    };
    for line in ["check NAME --quasi age --k 2", "init NAME", "release NAME --policy p.toml --to out"] {
        clean(place.run(&line.replace("NAME", name)));
    }
    clean(place.run_on("sql -c", Some(&format!("SELECT count(*) FROM '{name}'")), ""));
    assert!(!place.path(".out.kanon-work").exists());
}

const DAMAGED: &str = "the file is damaged";

#[test]
fn a_body_longer_than_its_stream() {
    let place = Place::new();
    let bytes = stream(&rows());
    // The first message is the schema, the second the batch.
    let metadata = |at: usize| {
        let length = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        (at + 8, at + 8 + length)
    };
    let (from, to) = metadata(metadata(0).1);
    let body = root_as_message(&bytes[from..to]).unwrap().bodyLength();
    for length in [1 << 59, body + 16, -1, i64::MAX, i64::MIN] {
        place.write("in.arrows", with_number(&bytes, from, body, length));
        refused(&place, "in.arrows", DAMAGED);
    }
    // The length of the metadata itself.
    for length in [-2i32, i32::MAX, 1 << 20] {
        let damaged = [&bytes[..from - 4], &length.to_le_bytes(), &bytes[from..]].concat();
        place.write("in.arrows", damaged);
        refused(&place, "in.arrows", DAMAGED);
    }
    place.write("in.arrows", &bytes[..to + 8]);
    refused(&place, "in.arrows", DAMAGED);
    // A stream that nobody closed is whole.
    place.write("in.arrows", &bytes[..bytes.len() - 8]);
    place.run("check in.arrows --quasi age --k 1").exit(0);
}

#[test]
fn a_block_beyond_its_file() {
    let place = Place::new();
    let bytes = file(&rows());
    let trailer = bytes.len() - 10;
    let length = u32::from_le_bytes(bytes[trailer..trailer + 4].try_into().unwrap()) as usize;
    let from = trailer - length;
    let footer = root_as_footer(&bytes[from..trailer]).unwrap();
    let block = *footer.recordBatches().unwrap().get(0);
    for (before, after) in [
        (block.bodyLength(), 1 << 59),
        (block.bodyLength(), -1),
        (block.offset(), 1 << 59),
        (block.offset(), i64::MIN),
        (i64::from(block.metaDataLength()), 3),
        (i64::from(block.metaDataLength()), -1),
    ] {
        place.write("in.arrow", with_number(&bytes, from, before, after));
        refused(&place, "in.arrow", DAMAGED);
    }
    let damaged = [&bytes[..trailer], &(-1i32).to_le_bytes()[..], b"ARROW1"].concat();
    place.write("in.arrow", damaged);
    refused(&place, "in.arrow", DAMAGED);
    place.write("in.arrow", &bytes);
    place.run("check in.arrow --quasi age --k 1").exit(0);
}

#[test]
fn a_compressed_buffer_of_endless_length() {
    let place = Place::new();
    let ages: ArrayRef = Arc::new(Int64Array::from(vec![31; 1_000]));
    place.arrow_file("whole.arrow", &table([("age", ages)]));
    let bytes = fs::read(place.path("whole.arrow")).unwrap();
    place.run("check whole.arrow --quasi age --k 1").exit(0);
    for length in [1 << 59, 1 << 33, i64::MIN] {
        place.write("in.arrow", with_number(&bytes, 0, 8_000, length));
        refused(&place, "in.arrow", DAMAGED);
    }
}

#[test]
fn more_rows_than_the_data_can_hold() {
    let place = Place::new();
    let nulls: ArrayRef = Arc::new(NullArray::new(123_457));
    let bytes = stream(&table([("age", nulls)]));
    place.write("whole.arrows", &bytes);
    place.run("check whole.arrows --quasi age --k 1").exit(0);
    let mut damaged = bytes;
    while damaged.windows(8).any(|eight| eight == 123_457i64.to_le_bytes()) {
        damaged = with_number(&damaged, 0, 123_457, 1 << 59);
    }
    place.write("in.arrows", damaged);
    refused(&place, "in.arrows", DAMAGED);
}

/// A Parquet file whose Arrow schema in the footer has one byte of another value.
fn with_schema_byte(batch: &RecordBatch, at: usize, byte: u8) -> Vec<u8> {
    let mut schema = STANDARD.decode(encode_arrow_schema(&batch.schema())).unwrap();
    schema[at] = byte;
    let footer = vec![KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), STANDARD.encode(schema))];
    let properties = WriterProperties::builder().set_key_value_metadata(Some(footer)).build();
    let options = datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn a_damaged_arrow_schema_in_a_parquet_footer() {
    let place = Place::new();
    let length = STANDARD.decode(encode_arrow_schema(&rows().schema())).unwrap().len();
    let (mut refusals, mut panics) = (0, 0);
    for at in 0..length {
        for byte in [0x41, 0xFF] {
            place.write("in.parquet", with_schema_byte(&rows(), at, byte));
            let ran = place.run("check in.parquet --quasi age --k 1");
            assert!(matches!(ran.code, 0 | 3), "byte {at}: {ran:?}");
            assert!(ran.err.lines().count() <= 1, "byte {at}: {ran:?}");
            if ran.code == 3 {
                refusals += 1;
                if panics < 3 && ran.err.contains("ARROW:schema") {
                    panics += 1;
                    refused(&place, "in.parquet", "the Arrow schema in it (ARROW:schema)");
                    // A hierarchy file is read in another way.
                    fs::copy(place.path("in.parquet"), place.path("zips.parquet")).unwrap();
                    place.write("zip.csv", "zip\n02139\n02139\n");
                    place.write(
                        "z.toml",
                        "k = 2\nrows_are_individuals = true\n[columns]\nzip = { role = \"quasi\", hierarchy = { file = \"zips.parquet\" } }\n",
                    );
                    place.run("check zip.csv --policy z.toml").exit(2).says("it cannot be read as Parquet");
                }
            }
        }
    }
    assert!(refusals > 10 && panics == 3, "{refusals} {panics}");
}

#[test]
fn a_pipe_is_no_input() {
    let place = Place::new();
    for name in ["in.csv", "lake/in.json", "in.parquet", "in.arrow"] {
        place.write("lake/x", "");
        fs::remove_file(place.path("lake/x")).unwrap();
        assert!(Command::new("mkfifo").arg(place.path(name)).status().unwrap().success());
        refused(&place, name, "expected a plain file, found a pipe");
    }
    place.run("check lake --quasi age --k 2").exit(3).says("expected a plain file");
    place.run("check 'lake/*.json' --quasi age --k 2").exit(3).says("expected a plain file");
    assert!(Command::new("mkfifo").arg(place.path("tree.csv")).status().unwrap().success());
    place.write("zip.csv", "zip\n02139\n02139\n");
    place.write(
        "z.toml",
        "k = 2\nrows_are_individuals = true\n[columns]\nzip = { role = \"quasi\", hierarchy = { file = \"tree.csv\" } }\n",
    );
    place.run("check zip.csv --policy z.toml").exit(2).says("tree.csv: expected a plain file, found a pipe");
}

#[test]
fn a_path_with_a_line_break() {
    let place = Place::new();
    place.write("a\nb/in.csv", "age\n1\n1\n");
    place.run("check 'a\nb/in.csv' --quasi age --k 2").exit(3).says("holds a control character");
    place.write("ü %41 #b?/in.csv", "age\n1\n1\n");
    place.run("check 'ü %41 #b?/in.csv' --quasi age --k 2").exit(0);
}

#[test]
fn seconds_beyond_milliseconds() {
    use arrow::array::{Date32Array, TimestampSecondArray};
    let place = Place::new();
    let days: ArrayRef = Arc::new(Date32Array::from(vec![1, 2]));
    let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, i64::MAX / 999]));
    place.arrow_file("in.arrow", &table([("age", days), ("seen", far)]));
    place.write(
        "p.toml",
        "k = 2\nrows_are_individuals = true\n[columns]\nage = { role = \"quasi\" }\nseen = { role = \"insensitive\", allow_unique = true }\n",
    );
    let ran = place.run("release in.arrow --policy p.toml --to out").exit(3);
    let part = "column `seen`: a timestamp in seconds is beyond the range of milliseconds";
    assert!(ran.err.contains(part), "{ran:?}");
}
