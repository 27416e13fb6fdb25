//! Detects the format of a CSV input from its first lines and its cells: the separator, the header,
//! the texts that mean NULL, and the columns that are numbers or dates.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, lit, when};
use datafusion::prelude::{DataFrame, SessionContext};

use super::facts::{count_if, narrow, one_row, whole};
use crate::engine::{Context, Run, column};
use crate::error::Result;
use crate::input::infer_types::{TIMES, misfit};
use crate::input::{Input, read_csv};
use crate::policy::{CsvOptions, CsvType};

/// The number of columns per pass.
const AT_ONCE: usize = 64;
/// The bytes of the first file in which the separator is looked for.
const HEAD: u64 = 64 << 10;
/// The possible separators; the first one wins a tie.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Texts that mean "missing" where all others are numbers or dates.
const MISSING: [&str; 12] = ["?", "NA", "N/A", "n/a", "NULL", "null", "None", "none", "NaN", "nan", "-", "."];

/// The format of a CSV input.
pub(super) struct Written {
    pub(super) options: CsvOptions,
    types: HashMap<String, CsvType>,
}

impl Written {
    /// Returns how the cells of a column can be read: as numbers or dates if all of them are.
    pub(super) fn csv_type(&self, name: &str) -> CsvType {
        self.types.get(name).copied().unwrap_or(CsvType::Text)
    }
}

/// Detects the format of a CSV input.
///
/// # Errors
/// A data error when a file cannot be read.
pub(super) async fn find_out(session: &SessionContext, input: &Input, run: &Run<'_>) -> Result<Written> {
    let first = first_lines(input)?;
    let mut options = CsvOptions::default();
    let mark = delimiter(&first);
    options.header = has_names(&first, mark);
    // Options are set only where the files' names do not imply them.
    let usual = read_csv::delimiter(input, &options);
    options.delimiter = Some(mark).filter(|mark| usual.as_ref().ok() != Some(mark));
    let mut table = input.table(session, &options, &|_| CsvType::Text).await?;
    let mut looks = look(&table, run).await?;
    // The cells of the first line occur again below, so it is an ordinary line.
    if options.header && looks.iter().any(|look| look.named_like_a_cell) {
        options.header = false;
        table = input.table(session, &options, &|_| CsvType::Text).await?;
        looks = look(&table, run).await?;
    }
    let mut occurs = [false; MISSING.len()];
    for look in looks.iter().filter(|look| look.missing && look.csv_type != CsvType::Text) {
        let counts = MISSING.iter().enumerate().map(|(at, text)| {
            Ok(count_if(column(&look.name).eq(lit(*text)))?.alias(format!("missing_{at}")))
        });
        let row = one_row(&narrow(&table, [look.name.as_str()])?, counts.collect::<Result<_>>()?).await?;
        for (at, occurs) in occurs.iter_mut().enumerate() {
            *occurs |= whole(&row, &format!("missing_{at}"))? > Some(0);
        }
    }
    let missing = MISSING.iter().zip(occurs).filter(|(_, occurs)| *occurs);
    options.nulls.extend(missing.map(|(text, _)| (*text).to_owned()));
    let types = looks.into_iter().map(|look| (look.name, look.csv_type)).collect();
    Ok(Written { options, types })
}

/// The findings of one pass about a text column.
struct Look {
    name: String,
    csv_type: CsvType,
    /// Whether one of [`MISSING`] occurs.
    missing: bool,
    named_like_a_cell: bool,
}

async fn look(table: &DataFrame, run: &Run<'_>) -> Result<Vec<Look>> {
    let names: Vec<String> = table.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut looks = Vec::new();
    for some in names.chunks(AT_ONCE) {
        run.stop.check()?;
        looks.extend(look_at(table, some).await?);
    }
    Ok(looks)
}

async fn look_at(table: &DataFrame, names: &[String]) -> Result<Vec<Look>> {
    let mut counts = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let mut counted = |what: &str, condition: Expr| -> Result<()> {
            counts.push(count_if(condition)?.alias(format!("{what}_{at}")));
            Ok(())
        };
        let cell = column(name);
        let is_missing = cell.clone().in_list(MISSING.map(lit).to_vec(), false);
        let value =
            when(is_missing.clone().is_not_true(), cell.clone()).end().context("typing the CSV columns")?;
        counted("known", value.clone().is_not_null())?;
        counted("missing", is_missing)?;
        counted("name", cell.eq(lit(name.clone())))?;
        // 02139 is a code, not a number.
        let code = value.clone().like(lit("0_%")).and(value.clone().not_like(lit("0.%")));
        counted("number", misfit(name, &value, &DataType::Float64).or(code))?;
        for (kind, data_type) in ["day", "moment"].into_iter().zip(&TIMES) {
            counted(kind, misfit(name, &value, data_type))?;
        }
    }
    let table = narrow(table, names.iter().map(String::as_str))?;
    let row = one_row(&table, counts).await?;
    let looks = names.iter().enumerate().map(|(at, name)| {
        let count = |what: &str| Ok(whole(&row, &format!("{what}_{at}"))?.unwrap_or(0));
        let csv_type = match (count("known")?, count("number")?, count("day")?.min(count("moment")?)) {
            (0, ..) => CsvType::Text,
            (_, 0, _) => CsvType::Number,
            (_, _, 0) => CsvType::Date,
            _ => CsvType::Text,
        };
        let (missing, named_like_a_cell) = (count("missing")? > 0, count("name")? > 0);
        Ok(Look { name: name.clone(), csv_type, missing, named_like_a_cell })
    });
    looks.collect()
}

/// Returns the first whole lines of the first file.
fn first_lines(input: &Input) -> Result<Vec<u8>> {
    let mut first = Vec::new();
    if let Some(file) = input.files.first() {
        let place = format!("input file {}", file.path.display());
        let file = std::fs::File::open(&file.path).context(&place)?;
        let read = file.take(HEAD).read_to_end(&mut first).context(&place)?;
        if u64::try_from(read).is_ok_and(|read| read == HEAD) {
            let end = first.iter().rposition(|byte| *byte == b'\n').map_or(first.len(), |at| at + 1);
            first.truncate(end);
        }
    }
    Ok(first)
}

fn records(first: &[u8], delimiter: u8) -> Vec<csv::ByteRecord> {
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.delimiter(delimiter).has_headers(false).flexible(true).from_reader(first);
    reader.into_byte_records().map_while(std::result::Result::ok).collect()
}

/// Returns the separator that splits the first line into the most cells, and most lines into as
/// many.
fn delimiter(first: &[u8]) -> u8 {
    let separated = |delimiter: u8| {
        let records = records(first, delimiter);
        let cells = records.first().map_or(0, csv::ByteRecord::len);
        let alike = records.iter().filter(|record| record.len() == cells).count();
        (cells > 1, alike * 2 > records.len(), cells)
    };
    let best = DELIMITERS.iter().rev().max_by_key(|delimiter| separated(**delimiter));
    best.copied().unwrap_or(b',')
}

/// Returns whether the first line can be names: all are different, and none is a number or consists
/// of digits like a date.
fn has_names(first: &[u8], delimiter: u8) -> bool {
    let records = records(first, delimiter);
    let Some(first) = records.first() else { return true };
    let mut known = HashSet::new();
    first.iter().map(String::from_utf8_lossy).all(|cell| {
        let is_number = cell.contains(|c: char| c.is_ascii_digit()) && !cell.contains(char::is_alphabetic);
        known.insert(cell) && !is_number
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_separates_cells() {
        assert_eq!(delimiter(b"a;b;c\n1,5;2,5;x\n"), b';');
        assert_eq!(delimiter(b"a,b\n\"1;2\",3\n"), b',');
        assert_eq!(delimiter(b"a\tb\n1\t2\n"), b'\t');
        assert_eq!(delimiter(b"a,b\n1,2\n1,2\n3\n"), b',');
        assert_eq!(delimiter(b"one\ntwo\n"), b',');
        assert_eq!(delimiter(b""), b',');
    }

    #[test]
    fn numbers_and_dates_are_no_names() {
        assert!(has_names(b"zip5,sex\n02139,f\n", b','));
        assert!(has_names(b",sex\n1,f\n", b','));
        assert!(!has_names(b"02139,f\n02140,m\n", b','));
        assert!(!has_names(b"f,1995-12-21\n", b','));
        assert!(!has_names(b"yes,no,yes\n", b','));
    }
}
