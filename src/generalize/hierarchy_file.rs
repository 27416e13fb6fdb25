//! Hierarchy files: tables of texts from CSV or from record batches, checked to be trees.
//!
//! A private record keeps a file from Parquet as CSV, too: the record holds texts, and `kanon verify --input`
//! must not need the file.

use std::cmp::Ordering;
use std::io::Read;

use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use hashbrown::HashMap;

use super::{Value, tidy_hierarchy};
use crate::error::{Error, Result};
use crate::parameter::TextTable;
use crate::plural::plural;

/// Returns whether a policy's file of this name is a table with types and column names (Parquet)
/// rather than CSV.
pub fn is_table(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("parquet"))
}

/// Reads a hierarchy from any table: its columns are the value and its labels, finest first,
/// whatever their names. Cells count by their [text form](Value::text_form). A table of exactly the
/// columns `value`, `level` and `label` is tidy instead: it has one row for each value and level,
/// counted from 1.
///
/// No cell may be NULL: NULL needs no row, because it has its place at every level, and a missing
/// label is not a label.
///
/// # Errors
/// A policy error that names the column and counts its NULLs, or names the row, when the table is
/// not a hierarchy; a data error for columns of types without a text form.
pub fn table_of_batches(batches: &[RecordBatch]) -> Result<TextTable> {
    let schema = batches.first().map(RecordBatch::schema);
    for (index, field) in schema.iter().flat_map(|schema| schema.fields()).enumerate() {
        let nulls: usize = batches.iter().map(|batch| batch.column(index).logical_null_count()).sum();
        if nulls > 0 {
            return Err(Error::policy(format!(
                "column `{}` has {}; remove rows without a value (NULL needs none) and give every value a \
                 label at every level",
                field.name(),
                plural(nulls as u64, "NULL", "NULLs")
            )));
        }
    }
    if let Some(columns) = schema.as_ref().and_then(|schema| tidy_hierarchy::columns_of(schema)) {
        let wide = tidy_hierarchy::wide(batches, columns)?;
        let place = |row| wide.first_rows.get(row).map_or_else(String::new, |first| format!("row {first}"));
        check(&wide.rows, place)?;
        return Ok(wide.rows.into());
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for batch in batches {
        let mut cells = vec![Vec::with_capacity(batch.num_columns()); batch.num_rows()];
        for (column, field) in batch.columns().iter().zip(batch.schema_ref().fields()) {
            for (row, cells) in cells.iter_mut().enumerate() {
                let value = Value::read(column, row);
                let value = value.map_err(|error| error.at(format!("column `{}`", field.name())))?;
                cells.extend(value.text_form());
            }
        }
        rows.extend(cells);
    }
    check(&rows, |row| format!("row {}", row + 1))?;
    Ok(rows.into())
}

/// Writes [`table_of_batches`] as CSV without a header, which [`parse_table`] reads as the same
/// table.
///
/// # Errors
/// The errors of [`table_of_batches`].
pub fn csv_of_batches(batches: &[RecordBatch]) -> Result<String> {
    csv_of_rows(table_of_batches(batches)?.rows())
}

/// Writes the rows of a hierarchy as CSV, which [`parse_table`] reads.
///
/// # Errors
/// An internal error when a row cannot be written.
pub fn csv_of_rows(rows: &[Vec<String>]) -> Result<String> {
    let mut writer = csv::WriterBuilder::new()
        .delimiter(b';')
        .quote_style(csv::QuoteStyle::Always)
        .from_writer(Vec::new());
    for row in rows {
        writer
            .write_record(row)
            .map_err(|_| Error::internal("hierarchy file: a row cannot be written as CSV"))?;
    }
    let bytes =
        writer.into_inner().map_err(|_| Error::internal("hierarchy file: the CSV writer did not finish"))?;
    String::from_utf8(bytes).map_err(|_| Error::internal("hierarchy file: the CSV text is not UTF-8"))
}

/// Reads a hierarchy file: CSV with one row per value, the value first, then its labels.
///
/// The delimiter is `;` or `,`: the one beside which all quotes stand around whole cells, and that
/// splits every line into the same number of columns, at least two. If both do, it is `;`, and
/// errors say so. Quotes, CRLF, empty lines and a byte order mark are understood; nothing is
/// trimmed. The first line is dropped as a header only if its first cell is the `column`'s name.
///
/// # Errors
/// A policy error that names the line when the text is not such a table or not a tree.
pub fn parse_csv(text: &str, column: &str) -> Result<TextTable> {
    parse(text, Some(column))
}

/// Reads a hierarchy file without a header, such as [`csv_of_batches`] writes.
///
/// # Errors
/// The errors of [`parse_csv`].
pub fn parse_table(text: &str) -> Result<TextTable> {
    parse(text, None)
}

/// Returns the first cell of a hierarchy file: the name of its column, if the file has a header.
///
/// # Errors
/// A policy error when the text is not CSV.
pub fn first_cell(text: &str) -> Result<Option<String>> {
    Ok(divided(text)?.0.into_iter().next().and_then(|first| first.cells.into_iter().next()))
}

fn parse(text: &str, header: Option<&str>) -> Result<TextTable> {
    let (mut records, doubt) = divided(text)?;
    if records.first().and_then(|first| first.cells.first()).is_some_and(|cell| Some(cell.as_str()) == header)
    {
        records.remove(0);
    }
    let (lines, rows): (Vec<u64>, Vec<Vec<String>>) =
        records.into_iter().map(|record| (record.line, record.cells)).unzip();
    check(&rows, |row| lines.get(row).map_or_else(String::new, |line| format!("line {line}")))
        .map_err(|error| error.and(doubt))?;
    Ok(TextTable::from(rows).doubted(doubt))
}

/// What errors about the cells of a file say that either delimiter divides as well.
const DIVIDED: &str =
    " (the file is divided at `;`, though `,` would do as well: quotes around the cells decide)";

/// Divides a text at the delimiter that suits it better; also returns what errors say of that.
fn divided(text: &str) -> Result<(Vec<Record>, &'static str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Quotes that one delimiter leaves open may be closed with the other.
    let (by_semicolon, by_comma) = match (records(text, b';'), records(text, b',')) {
        (Err(_), Ok(by_comma)) => return Ok((by_comma, "")),
        (by_semicolon, Err(_)) => return Ok((by_semicolon?, "")),
        (Ok(by_semicolon), Ok(by_comma)) => (by_semicolon, by_comma),
    };
    let suits = |records: &[Record], delimiter: u8| {
        let columns = records.first().map_or(0, |first| first.cells.len());
        let has_columns = records.iter().any(|record| record.cells.len() >= 2);
        let is_even = columns >= 2 && records.iter().all(|record| record.cells.len() == columns);
        (has_columns, !has_quote_inside(text.as_bytes(), delimiter), is_even)
    };
    let (semicolon, comma) = (suits(&by_semicolon, b';'), suits(&by_comma, b','));
    Ok(match semicolon.cmp(&comma) {
        Ordering::Less => (by_comma, ""),
        Ordering::Equal if semicolon.2 => (by_semicolon, DIVIDED),
        Ordering::Equal | Ordering::Greater => (by_semicolon, ""),
    })
}

struct Record {
    line: u64,
    cells: Vec<String>,
}

/// Returns whether a CSV text has a quote that is never closed; a line appended to it would become
/// a part of the last row.
///
/// # Errors
/// The error of reading the text.
pub fn has_open_quote(text: impl Read, delimiter: u8) -> csv::Result<bool> {
    const ANOTHER: &[u8] = b"\n.\n";
    let mut reader = rows_of(text.chain(ANOTHER), delimiter);
    let (mut record, mut ends) = (csv::ByteRecord::new(), false);
    while reader.read_byte_record(&mut record)? {
        ends = record.iter().eq([b"."]);
    }
    Ok(!ends)
}

/// Returns whether a quote in a CSV text stands neither at the begin nor at the end of a cell: the
/// cells are then hardly what this delimiter makes of them. Spaces before a cell's quote are nothing.
pub fn has_quote_inside(text: &[u8], delimiter: u8) -> bool {
    enum Place {
        Begin,
        Plain,
        Quoted,
        AfterQuote,
    }
    let mut place = Place::Begin;
    for byte in text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text) {
        place = match (place, *byte) {
            (Place::Quoted, b'"') => Place::AfterQuote,
            (Place::Quoted, _) => Place::Quoted,
            (_, byte) if byte == delimiter || matches!(byte, b'\r' | b'\n') => Place::Begin,
            // After a quote, another one is a quote in the cell's text.
            (Place::Begin | Place::AfterQuote, b'"') => Place::Quoted,
            (Place::Plain, b'"') | (Place::AfterQuote, _) => return true,
            (Place::Begin, b' ') => Place::Begin,
            (Place::Begin | Place::Plain, _) => Place::Plain,
        };
    }
    false
}

/// Returns a reader of all rows of a CSV text, the first included, each of any length.
fn rows_of<R: Read>(text: R, delimiter: u8) -> csv::Reader<R> {
    csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text)
}

fn records(text: &str, delimiter: u8) -> Result<Vec<Record>> {
    let no_csv = |_| Error::policy("the hierarchy file is not CSV");
    if has_open_quote(text.as_bytes(), delimiter).map_err(no_csv)? {
        return Err(Error::policy("a quote in the hierarchy file is never closed"));
    }
    rows_of(text.as_bytes(), delimiter)
        .records()
        .map(|record| {
            let record = record.map_err(no_csv)?;
            // The position is before the empty lines that the reader skips.
            let line = record.position().map_or(0, |start| {
                let rest = usize::try_from(start.byte()).ok().and_then(|byte| text.get(byte..)).unwrap_or("");
                let skipped = rest.chars().take_while(|c| matches!(c, '\r' | '\n')).filter(|c| *c == '\n');
                start.line() + skipped.map(|_| 1).sum::<u64>()
            });
            Ok(Record { line, cells: record.iter().map(str::to_owned).collect() })
        })
        .collect()
}

/// Checks that the rows are a table and a tree; `place` names a row in errors, which show no cell.
pub(super) fn check(rows: &[Vec<String>], place: impl Fn(usize) -> String) -> Result<()> {
    let Some(columns) = rows.first().map(Vec::len) else {
        return Err(Error::policy("a hierarchy needs at least one row"));
    };
    if let Some((row, cells)) = rows.iter().enumerate().find(|(_, cells)| cells.len() != columns) {
        let (this, first) = (place(row), place(0));
        let found = plural(cells.len() as u64, "column", "columns");
        return Err(Error::policy(format!("{this} has {found}, {first} has {columns}")));
    }
    if columns < 2 {
        return Err(Error::policy(
            "a hierarchy needs at least two columns separated by `;` or `,`: the value and one label",
        ));
    }
    let mut values: HashMap<&str, usize> = HashMap::new();
    for (row, value) in rows.iter().enumerate().filter_map(|(row, cells)| Some((row, cells.first()?))) {
        if let Some(earlier) = values.insert(value, row) {
            return Err(Error::policy(format!("{} repeats the value of {}", place(row), place(earlier))));
        }
    }
    for level in 1..columns - 1 {
        let mut parents: HashMap<&str, (usize, &str)> = HashMap::new();
        for (row, cells) in rows.iter().enumerate() {
            if let (Some(label), Some(parent)) = (cells.get(level), cells.get(level + 1)) {
                let (earlier, expected) = *parents.entry(label).or_insert((row, parent));
                if expected != parent {
                    let (this, earlier, next) = (place(row), place(earlier), level + 1);
                    return Err(Error::policy(format!(
                        "{this} and {earlier} agree at level {level} but not at level {next}"
                    )));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use arrow::compute::cast;
    use arrow::datatypes::{DataType, Int32Type};
    use proptest::prelude::*;

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap()
    }

    #[test]
    fn csv_as_people_write_it() {
        let table = |text: &str| parse_csv(text, "marital").unwrap().rows().to_vec();
        let cells =
            |rows: &[[&str; 2]]| rows.iter().map(|r| r.map(str::to_owned).to_vec()).collect::<Vec<_>>();
        assert_eq!(table("\u{feff}marital,x\r\na,b\r\nc,d\r\n\r\n"), cells(&[["a", "b"], ["c", "d"]]));
        assert_eq!(table("\"a;1\",\"say \"\"b\"\"\"\nc,d"), cells(&[["a;1", "say \"b\""], ["c", "d"]]));
        assert_eq!(table("a,1;b\nc,2;d\n"), cells(&[["a,1", "b"], ["c,2", "d"]]));
        assert_eq!(table("a,1;b\nc;d\n"), cells(&[["a,1", "b"], ["c", "d"]]));
        assert_eq!(table("a;1,b\nc,d\n"), cells(&[["a;1", "b"], ["c", "d"]]));
        assert_eq!(table(" a , b \nMarital,x\n"), cells(&[[" a ", " b "], ["Marital", "x"]]));
        assert_eq!(table(",empty\na,\n"), cells(&[["", "empty"], ["a", ""]]));
    }

    #[test]
    fn quotes_stand_around_cells() {
        let parsed = |text: &str| parse_csv(text, "q").unwrap();
        let rows = |text: &str| parsed(text).rows().iter().map(|row| row.join("|")).collect::<Vec<_>>();
        for (text, expected) in [
            ("\"x\",\"L; 1\"\n\"y\",\"L; 2\"\n", ["x|L; 1", "y|L; 2"]),
            ("x,\"L; 1\"\ny,\"L; 2\"\n", ["x|L; 1", "y|L; 2"]),
            ("\"x; 1\",L\n\"y; 2\",L\n", ["x; 1|L", "y; 2|L"]),
            ("\"x\",\"L; 1\",\"T; T\"\r\n\"y\",\"L; 2\",\"T; T\"\r\n", ["x|L; 1|T; T", "y|L; 2|T; T"]),
            ("\"x\", \"L; 1\"\n\"y\", \"L; 2\"\n", ["x| \"L; 1\"", "y| \"L; 2\""]),
            ("\"x\";\"L, 1\"\ny;\"L, 2\"\n", ["x|L, 1", "y|L, 2"]),
            ("x;\"say \"\"L, 1\"\"\"\ny;\"L,\n2\"\n", ["x|say \"L, 1\"", "y|L,\n2"]),
            // Quotes inside cells do not decide the delimiter.
            ("x;5\" or 6\", 1\ny;L\n", ["x|5\" or 6\", 1", "y|L"]),
            ("x,5\" pipe\ny,L\n", ["x|5\" pipe", "y|L"]),
            ("x, a;L\ny, b;L\n", ["x, a|L", "y, b|L"]),
        ] {
            assert_eq!(rows(text), expected, "{text}");
            assert_eq!(parsed(text).doubt().is_empty(), !text.starts_with("x, a;"), "{text}");
        }
        // A line too long is found instead of a table of quotes.
        let uneven = parse_csv("\"x\",\"L; 1\"\n\"y\",\"L; 2\",\"T\"\n", "q").unwrap_err().to_string();
        assert_eq!(uneven, "line 2 has 3 columns, line 1 has 2");
        assert!(parse_csv("\"x; 1\"\n\"y; 2\"\n", "q").unwrap_err().to_string().contains("two columns"));
    }

    #[test]
    fn errors_name_the_delimiter_where_either_would_do() {
        let doubted = "the file is divided at `;`, though `,` would do as well";
        let twice = parse_csv("x,a;L\nx,a;M\n", "q").unwrap_err().to_string();
        assert!(
            twice.starts_with("line 2 repeats the value of line 1 (") && twice.contains(doubted),
            "{twice}"
        );
        let levels = super::super::hierarchy::ROW.of(parse_csv("x,L; 1\ny,L; 2\n", "q").unwrap()).unwrap();
        let lacks = levels[0].generalize_value(&Value::Text("x".into())).unwrap_err().to_string();
        assert!(lacks.starts_with("1 distinct value is not in the hierarchy file (the file is"), "{lacks}");
        assert!(lacks.contains(doubted) && lacks.ends_with("; add a line for it"), "{lacks}");
        let levels = super::super::hierarchy::ROW.of(parse_csv("x,L 1\ny,L 2\n", "q").unwrap()).unwrap();
        let lacks = levels[0].generalize_value(&Value::Text("z".into())).unwrap_err().to_string();
        assert_eq!(lacks, "1 distinct value is not in the hierarchy file; add a line for it");
    }

    #[test]
    fn any_table_is_a_hierarchy() {
        let zips: ArrayRef = Arc::new(Int64Array::from(vec![2139, 2138, 98512]));
        let towns = StringArray::from(vec!["Cambridge", "Cambridge", "Olympia"]);
        let packed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let table = batch(vec![("zip", zips), ("town", cast(&towns, &packed).unwrap())]);
        assert_eq!(
            table_of_batches(&[table.slice(0, 1), table.slice(1, 2)]).unwrap().rows(),
            [["2139", "Cambridge"], ["2138", "Cambridge"], ["98512", "Olympia"]]
        );
        assert!(is_table("zip.parquet") && is_table("ZIP.PARQUET"));
        assert!(!is_table("zip.csv") && !is_table("parquet"));
    }

    #[test]
    fn what_is_no_hierarchy_is_refused_and_not_shown() {
        let text = |cells: Vec<Option<&str>>| Arc::new(StringArray::from(cells)) as ArrayRef;
        let refused =
            |columns: Vec<(&str, ArrayRef)>| table_of_batches(&[batch(columns)]).unwrap_err().to_string();
        let values = text(vec![Some("SECRET"), None, None]);
        let null = refused(vec![("v", values), ("l", text(vec![Some("a"); 3]))]);
        assert!(null.starts_with("column `v` has 2 NULLs; remove rows without a value"), "{null}");
        assert!(!null.contains("SECRET"));
        let keys: arrow::array::DictionaryArray<Int32Type> = vec![Some("a"), None].into_iter().collect();
        let null = refused(vec![("v", text(vec![Some("x"), Some("y")])), ("l", Arc::new(keys) as ArrayRef)]);
        assert!(null.starts_with("column `l` has 1 NULL;"), "{null}");
        let twice = refused(vec![("v", text(vec![Some("SECRET"); 2])), ("l", text(vec![Some("a"); 2]))]);
        assert_eq!(twice, "row 2 repeats the value of row 1");
        assert!(refused(vec![("v", text(vec![Some("a")]))]).contains("at least two columns"));
        assert!(table_of_batches(&[]).unwrap_err().to_string().contains("at least one row"));
        let list = DataType::new_list(DataType::Int8, true);
        let list = Arc::new(arrow::array::ListArray::new_null(
            match &list {
                DataType::List(field) => Arc::clone(field),
                other => panic!("{other}"),
            },
            1,
        ));
        assert!(table_of_batches(&[batch(vec![("v", text(vec![Some("a")])), ("l", list)])]).is_err());
    }

    proptest! {
        #[test]
        fn the_recorded_text_is_the_same_table(
            cells in prop::collection::btree_map("[a;,\"\r\n \u{feff}é]{0,5}", "[a;,\"\r\n*]{0,3}", 1..8),
        ) {
            let (values, labels): (Vec<String>, Vec<String>) = cells.into_iter().unzip();
            let table = batch(vec![
                ("v", Arc::new(StringArray::from(values)) as ArrayRef),
                ("l", Arc::new(StringArray::from(labels)) as ArrayRef),
            ]);
            let text = csv_of_batches(std::slice::from_ref(&table)).unwrap();
            prop_assert!(parse_table(&text).unwrap() == table_of_batches(&[table]).unwrap());
        }
    }
}
