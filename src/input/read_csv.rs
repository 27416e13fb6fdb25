//! CSV files before the engine reads them: their columns, and a check of every line, so that an
//! error can name it.
//!
//! The engine's errors quote cells and name no file, and it drops empty lines.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use arrow::datatypes::{DataType, Field, Schema};
use csv::{ByteRecord, Position, Reader, ReaderBuilder};

use super::files::Input;
use super::formats::end_of;
use crate::engine::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::generalize::hierarchy::{has_open_quote, has_quote_inside};
use crate::policy::CsvOptions;

/// The bytes of the first file in which the delimiter is looked for.
const HEAD: u64 = 64 << 10;
/// The delimiters that are looked for; the first one wins a tie.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Returns the one-byte delimiter: the given one, else a tab for .tsv files, and for all others the
/// one that their first lines show.
///
/// # Errors
/// A policy error without a given delimiter when .tsv files are mixed with others; a data error
/// when the first file cannot be read.
pub(crate) fn delimiter(input: &Input, csv: &CsvOptions) -> Result<u8> {
    if let Some(given) = csv.delimiter {
        return Ok(given);
    }
    match by_name(input)? {
        b'\t' => Ok(b'\t'),
        _ => Ok(delimiter_of(&first_lines(input, csv)?)),
    }
}

/// Returns the delimiter that the names of the files imply.
///
/// # Errors
/// A policy error when .tsv files are mixed with others.
pub(crate) fn by_name(input: &Input) -> Result<u8> {
    match input.objects.iter().filter(|file| end_of(Path::new(file.address().name())) == "tsv").count() {
        0 => Ok(b','),
        all if all == input.objects.len() => Ok(b'\t'),
        _ => Err(Error::policy(format!(
            "input `{}`: .tsv files are mixed with others; set `delimiter` under [input] of the policy, or by --csv, or \
             give files of one kind",
            input.argument
        ))),
    }
}

/// Returns the first whole lines of the first file.
///
/// # Errors
/// A data error when it cannot be read.
pub(crate) fn first_lines(input: &Input, csv: &CsvOptions) -> Result<Vec<u8>> {
    let texts = input.copies.of(&input.objects, csv)?;
    match (input.objects.first(), texts.paths.first()) {
        (Some(file), Some(path)) => head(path, &file.place()),
        _ => Ok(Vec::new()),
    }
}

/// Returns the first whole lines of a file.
fn head(path: &Path, place: &str) -> Result<Vec<u8>> {
    let mut first = Vec::new();
    let read = File::open(path).context(place)?.take(HEAD).read_to_end(&mut first).context(place)?;
    if u64::try_from(read).is_ok_and(|read| read == HEAD) {
        let end = first.iter().rposition(|byte| *byte == b'\n').map_or(first.len(), |at| at + 1);
        first.truncate(end);
    }
    Ok(first)
}

/// Splits lines into cells, as far as they can be read.
pub(crate) fn records(first: &[u8], delimiter: u8) -> Vec<ByteRecord> {
    let mut reader = ReaderBuilder::new();
    let reader = reader.delimiter(delimiter).has_headers(false).flexible(true).from_reader(first);
    reader.into_byte_records().map_while(std::result::Result::ok).collect()
}

/// Returns the delimiter that splits the first line into the most cells, and most lines into as
/// many, with all quotes around whole cells.
pub(crate) fn delimiter_of(first: &[u8]) -> u8 {
    let separated = |delimiter: u8| {
        let records = records(first, delimiter);
        let cells = records.first().map_or(0, ByteRecord::len);
        let alike = records.iter().filter(|record| record.len() == cells).count();
        // Where nothing splits the first line, no other line says what would.
        let splits = cells > 1;
        (splits, splits && !has_quote_inside(first, delimiter), splits && alike * 2 > records.len(), cells)
    };
    let best = DELIMITERS.iter().rev().max_by_key(|delimiter| separated(**delimiter));
    best.copied().unwrap_or(b',')
}

/// Returns whether the first of these lines looks like data rather than names: a cell is a number
/// or a date, or half of the cells recur in their columns.
pub(crate) fn first_is_data(first: &[u8], delimiter: u8) -> bool {
    let records = records(first, delimiter);
    let Some((first, others)) = records.split_first() else { return false };
    // The names are there again where files with names were joined.
    let others = others.iter().filter(|other| *other != first);
    let again: HashSet<(usize, &[u8])> = others.flat_map(|other| other.iter().enumerate()).collect();
    // Lines that end in delimiters have columns without a name.
    let cells: Vec<(usize, &[u8])> = first.iter().enumerate().filter(|(_, cell)| !cell.is_empty()).collect();
    let is_number = |cell: &[u8]| {
        let text = String::from_utf8_lossy(cell);
        text.contains(|c: char| c.is_ascii_digit()) && !text.contains(char::is_alphabetic)
    };
    let recurring = cells.iter().filter(|cell| again.contains(*cell)).count();
    cells.iter().any(|(_, cell)| is_number(cell)) || (recurring > 0 && recurring * 2 >= cells.len())
}

/// Returns the columns of a file, all text; `place` names the file in errors.
///
/// # Errors
/// A data error for a file without a first line, or with a first line of data where the options do
/// not say whether there are names; a policy error when the first line seems to have another
/// delimiter.
pub(crate) fn schema(path: &Path, csv: &CsvOptions, delimiter: u8, place: &str) -> Result<Schema> {
    let mut first = ByteRecord::new();
    if !next(&mut reader(path, delimiter, place)?, &mut first, place)? {
        return Err(Error::data("the file is empty").coded(ErrorCode::EmptyInput).at(place));
    }
    if first.iter().any(|cell| cell.contains(&0)) {
        return Err(Error::data(
            "the first line holds a NUL byte, as UTF-16 does; save the file as CSV in UTF-8, or set encoding = \"utf-16le\" under [input] of \
             the policy, or by --csv",
        )
        .at(place));
    }
    if first.get(0).is_some_and(|cell| cell.get(..4).is_some_and(|note| note.eq_ignore_ascii_case(b"sep="))) {
        return Err(Error::data(
            "the first line is Excel's sep= line, which names the delimiter; delete this line",
        )
        .at(place));
    }
    let cells: Vec<&str> = first
        .iter()
        .map(|cell| {
            std::str::from_utf8(cell).map_err(|_| Error::data(
                    "the first line is not UTF-8; save the file as UTF-8, or set encoding under [input] of the policy, or by --csv, such as \"windows-1252\"",
                )
                .at(place))
        })
        .collect::<Result<_>>()?;
    if let [only] = cells.as_slice()
        && let Some(mark) = [";", "\t", "|", ","].into_iter().find(|mark| only.contains(*mark))
    {
        return Err(Error::policy(format!(
            "{place}: the first line is one field that holds {mark:?}; if it separates the columns, set \
             delimiter = {mark:?} under [input] of the policy, or by --csv"
        )));
    }
    if csv.header.is_none() && first_is_data(&head(path, place)?, delimiter) {
        return Err(Error::data(
            "the first line looks like data, not like the names of the columns; add a line of names, or set header = false (header = true, if \
             these are the names) under [input] of the policy, or by --csv",
        )
        .coded(ErrorCode::OtherColumns)
        .at(place));
    }
    let names = cells.into_iter().enumerate().map(|(index, name)| {
        if csv.has_header() { name.to_owned() } else { format!("column_{}", index + 1) }
    });
    Ok(Schema::new(names.map(|name| Field::new(name, DataType::Utf8, true)).collect::<Vec<_>>()))
}

/// Checks every line: as many fields as the first line, UTF-8, no NUL byte, and in a file of one
/// column no empty line, which the engine would not count as a row.
///
/// # Errors
/// A data error that names the first bad line.
pub(crate) fn check(path: &Path, delimiter: u8, place: &str) -> Result<()> {
    let mut reader = reader(path, delimiter, place)?;
    let mut record = ByteRecord::new();
    let mut fields = None;
    let mut last = None;
    let mut gaps = Gaps::new(path).context(place)?;
    while next(&mut reader, &mut record, place)? {
        last = record.position().cloned();
        let expected = *fields.get_or_insert(record.len());
        let follows_a_gap = expected == 1 && gaps.precede(reader.position().byte()).context(place)?;
        // Most lines are ASCII; their fields need no separate checks.
        if record.len() == expected && !follows_a_gap && is_ascii_without_nul(record.as_slice()) {
            continue;
        }
        let why = if follows_a_gap {
            "an empty line precedes this one; write \"\" for an empty cell, or delete the line".to_owned()
        } else if record.len() != expected {
            format!(
                "{} fields, the first line has {expected}; check the quotes from there on, and the delimiter",
                record.len()
            )
        } else if let Some(field) = record.iter().position(|cell| std::str::from_utf8(cell).is_err()) {
            format!(
                "field {} is not UTF-8; save the file as UTF-8, or set encoding under [input] of the policy, or by --csv, such as \"windows-1252\"",
                field + 1
            )
        } else if let Some(field) = record.iter().position(|cell| cell.contains(&0)) {
            format!("field {} holds a NUL byte; save the file as CSV in UTF-8", field + 1)
        } else {
            continue;
        };
        let line = line_of(path, record.position()).context(place)?;
        return Err(Error::data(why).coded(ErrorCode::DamagedFile).at(format!("{place}: line {line}")));
    }
    match last {
        Some(start) if is_open(path, delimiter, start.byte()).context(place)? => {
            let line = line_of(path, Some(&start)).context(place)?;
            let why = "a quote opened in this row is never closed: the rest of the file would be one cell";
            Err(Error::data(why).coded(ErrorCode::DamagedFile).at(format!("{place}: line {line}")))
        }
        _ => Ok(()),
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Finds the empty lines between the rows of a file of one column, whatever ends its lines.
struct Gaps {
    file: BufReader<File>,
    /// How many bytes were read.
    at: u64,
    /// Whether the last of them was CR, so that LF would end the same line.
    ended_in_cr: bool,
}

impl Gaps {
    fn new(path: &Path) -> std::io::Result<Self> {
        Ok(Self { file: BufReader::new(File::open(path)?), at: 0, ended_in_cr: false })
    }

    /// Returns whether an empty line precedes the row that ends before the byte `end`; rows must
    /// come in order.
    fn precede(&mut self, end: u64) -> std::io::Result<bool> {
        let skipped = match self.at {
            0 => BYTE_ORDER_MARK,
            _ if self.ended_in_cr => b"\n",
            _ => b"",
        };
        let mut row = Vec::new();
        (&mut self.file).take(end.saturating_sub(self.at)).read_to_end(&mut row)?;
        self.at = end;
        let rest = row.strip_prefix(skipped).unwrap_or(&row);
        self.ended_in_cr = row.last() == Some(&b'\r');
        Ok(matches!(rest.first(), Some(b'\r' | b'\n')))
    }
}

fn is_ascii_without_nul(bytes: &[u8]) -> bool {
    bytes.is_ascii() && !bytes.contains(&0)
}

/// Returns whether the last row, which begins at `start`, has a quote that is never closed.
fn is_open(path: &Path, delimiter: u8, start: u64) -> std::io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    has_open_quote(file, delimiter).map_err(std::io::Error::other)
}

fn reader(path: &Path, delimiter: u8, place: &str) -> Result<Reader<File>> {
    let file = File::open(path).context(place)?;
    let mut builder = ReaderBuilder::new();
    Ok(builder
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(1 << 16)
        .from_reader(file))
}

fn next(reader: &mut Reader<File>, record: &mut ByteRecord, place: &str) -> Result<bool> {
    reader.read_byte_record(record).map_err(|_| Error::data("cannot be read").at(place))
}

/// Returns the line on which a record begins. The reader's position is before the line ends that it
/// skips.
fn line_of(path: &Path, start: Option<&Position>) -> std::io::Result<u64> {
    let Some(start) = start else { return Ok(1) };
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start.byte()))?;
    let mut line = start.line();
    for byte in BufReader::new(file).bytes() {
        match byte? {
            b'\n' => line += 1,
            b'\r' => {}
            _ => break,
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &[u8]) -> Result<(), String> {
        let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        check(file.path(), b',', "in.csv")
            .map_err(|error| error.to_string().rsplit_once(".csv: ").unwrap().1.to_owned())
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        let ragged = |fields: u32, line: u32| {
            let rest = "the first line has 2; check the quotes from there on, and the delimiter";
            Err(format!("line {line}: {fields} fields, {rest}"))
        };
        assert_eq!(checked(b"a,b\n1,2\n3\n"), ragged(1, 3));
        let open = "a quote opened in this row is never closed: the rest of the file would be one cell";
        assert_eq!(checked(b"a,b\n1,2\n3,\"4\n5,6\n7,8\n"), Err(format!("line 3: {open}")));
        assert_eq!(checked(b"a,b\n1,\"x"), Err(format!("line 2: {open}")));
        for closed in [
            &b"a,b\n1,\"x\""[..],
            b"a,b\n1,\"x\ny\"\n",
            b"a,b\n1,5\" pipe\n",
            b"a,b\n.,.\n",
            b"a,b\n1,\"\"\"\"\n",
        ] {
            assert_eq!(checked(closed), Ok(()), "{}", String::from_utf8_lossy(closed));
        }
        assert_eq!(checked(b"a,b\r\n1,2\r\n\r\n3,4,5\r\n"), ragged(3, 4));
        assert_eq!(checked(b"a,b\n\"two\nlines\",2\n\n\n3\n"), ragged(1, 6));
        assert_eq!(checked(b"a,b\n1,\"open\n3,4\n"), Err(format!("line 2: {open}")));
        assert_eq!(checked(b"a,b\n1,2\n\"open,4\n5,6\n"), ragged(1, 3));
        let not_text = "line 2: field 2 is not UTF-8; save the file as UTF-8, or set encoding under [input] of the policy, or by --csv, such as \"windows-1252\"".to_owned();
        assert_eq!(checked(b"a,b\n1,\xff\n"), Err(not_text.clone()));
        // Two halves of one character in two fields.
        assert_eq!(checked(b"a,b\n\"x\",\xc3\n\xa9,1\n"), Err(not_text));
        let nul = "line 3: field 1 holds a NUL byte; save the file as CSV in UTF-8".to_owned();
        assert_eq!(checked(b"a,b\n1,2\n3\0,4\n"), Err(nul));
        // An empty line is a row only in a file of one column; the engine reads it in none.
        let empty = "an empty line precedes this one; write \"\" for an empty cell, or delete the line";
        assert_eq!(checked(b"a\n1\n\n2\n"), Err(format!("line 4: {empty}")));
        assert_eq!(checked(b"a\r\n1\r\n\r\n2\r\n"), Err(format!("line 4: {empty}")));
        assert_eq!(checked(b"a\r1\r\r2\r"), Err(format!("line 1: {empty}")));
        assert_eq!(checked(b"a\n1\r\r2\n"), Err(format!("line 2: {empty}")));
        assert_eq!(checked(b"a\n1\n\r2\n"), Err(format!("line 3: {empty}")));
        assert_eq!(checked(b"a,b\r\n1,2\r\n\r\n5,\"6\r\n"), Err(format!("line 4: {open}")));
        assert_eq!(checked("a\n\u{feff}\n2\n".as_bytes()), Ok(()));
        assert_eq!(checked("\u{feff}\n1\n".as_bytes()), Err(format!("line 1: {empty}")));
        for fine in
            ["a\r1\r2\r", "a\n1\n2\n\n", "a\r\n\"1\r\n\n2\"\r\n2", "a\n\"\"\n\"\"\n", "a,b\n1,2\n\n3,4\n"]
        {
            assert_eq!(checked(fine.as_bytes()), Ok(()), "{fine:?}");
        }
        assert_eq!(checked("\u{feff}\"a\",b\nä,2".as_bytes()), Ok(()));
    }

    #[test]
    fn what_separates_cells() {
        assert_eq!(delimiter_of(b"a;b;c\n1,5;2,5;x\n"), b';');
        assert_eq!(delimiter_of(b"a,b\n\"1;2\",3\n"), b',');
        assert_eq!(delimiter_of(b"a\tb\n1\t2\n"), b'\t');
        assert_eq!(delimiter_of(b"\"a\",\"b; c; d\"\n\"1\",\"2; 3; 4\"\n"), b',');
        assert_eq!(delimiter_of(b"a|\"b,c,d\"\n1|\"2,3,4\"\n"), b'|');
        assert_eq!(delimiter_of(b"a;b\n5\" pipe;2\n6\" pipe;3\n"), b';');
        assert_eq!(delimiter_of(b"a,b\n1,2\n1,2\n3\n"), b',');
        assert_eq!(delimiter_of(b"one\ntwo\n"), b',');
        assert_eq!(delimiter_of(b"one\na,b\n"), b',');
        assert_eq!(delimiter_of(b""), b',');
    }

    #[test]
    fn a_header_that_is_none() {
        let of = |text: &[u8]| {
            let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let schema = schema(file.path(), &CsvOptions::default(), b',', "in.csv")
                .map_err(|error| error.to_string())?;
            Ok::<_, String>(schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>())
        };
        assert_eq!(of("\u{feff}\"a\",b\n".as_bytes()).unwrap(), ["a", "b"]);
        assert_eq!(of(b",a\n").unwrap(), ["", "a"]);
        for (text, part) in [
            (&b""[..], "empty"),
            (b"sep=;\n", "delete this line"),
            (b"SEP=;\n", "delete this line"),
            (b"a\0,b\0\n", "NUL"),
            (b"\xff\xfea,b", "UTF-8"),
            (b"a;b", "\";\""),
        ] {
            assert!(of(text).unwrap_err().contains(part), "{part}");
        }
    }
}
