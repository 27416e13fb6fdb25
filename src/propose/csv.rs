//! Detects the format of a CSV input from its first lines and its cells: the separator, the header,
//! the texts that mean NULL, and the columns that are numbers or dates.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::functions::unicode::expr_fn::character_length;
use datafusion::logical_expr::{Expr, lit, when};
use datafusion::prelude::{DataFrame, SessionContext};
use encoding_rs::UTF_8;

use super::facts::{count_if, narrow, one_row, whole};
use super::forms::{Forms, Found};
use crate::engine::{Context, Run, column};
use crate::error::Result;
use crate::input::infer_types::{TIMES, misfit};
use crate::input::read_csv::{by_name, delimiter_of, first_lines, records};
use crate::input::{Input, utf8_copies};
use crate::policy::{CsvOptions, CsvType, DateFormat, NumberFormat};

/// The number of columns per pass.
const AT_ONCE: usize = 64;
/// Texts that mean "missing" where all others are numbers or dates.
const MISSING: [&str; 12] = ["?", "NA", "N/A", "n/a", "NULL", "null", "None", "none", "NaN", "nan", "-", "."];

/// Those of them that mean "missing" where others are words, too.
const MISSING_AMONG_WORDS: [&str; 7] = ["NA", "N/A", "n/a", "NULL", "null", "-", "."];

/// The format of a CSV input.
pub(super) struct Written {
    pub(super) options: CsvOptions,
    /// The formats of dates between which the cells leave the choice.
    pub(super) unclear_dates: Vec<DateFormat>,
    /// The same for numbers.
    pub(super) unclear_numbers: Vec<NumberFormat>,
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
    let encoding = Some(utf8_copies::guess(input)?).filter(|encoding| *encoding != UTF_8);
    let mut options = CsvOptions { encoding, ..CsvOptions::default() };
    let first = first_lines(input, &options)?;
    let mark = delimiter_of(&first);
    options.header = has_names(&first, mark);
    // Options are set only where the files' names do not imply them.
    options.delimiter = Some(mark).filter(|mark| by_name(input).ok() != Some(*mark));
    let mut table = input.table(session, &options, &|_| CsvType::Text).await?;
    let mut looks = look(&table, run).await?;
    // The cells of the first line occur again below, so it is an ordinary line.
    if options.header && looks.iter().any(|look| look.named_like_a_cell) {
        options.header = false;
        table = input.table(session, &options, &|_| CsvType::Text).await?;
        looks = look(&table, run).await?;
    }
    let mut occurs = [false; MISSING.len()];
    let forms = find_forms(&table, &looks, run).await?;
    for look in looks.iter().filter(|look| look.missing) {
        let is_text = look.csv_type == CsvType::Text && !forms.types.contains_key(&look.name);
        let counts = MISSING.iter().enumerate().map(|(at, text)| {
            Ok(count_if(column(&look.name).eq(lit(*text)))?.alias(format!("missing_{at}")))
        });
        let row = one_row(&narrow(&table, [look.name.as_str()])?, counts.collect::<Result<_>>()?).await?;
        for (at, occurs) in occurs.iter_mut().enumerate() {
            // Namibia is NA among the codes of countries.
            let is_word =
                look.is_of_two_letters && MISSING[at] == "NA" || !MISSING_AMONG_WORDS.contains(&MISSING[at]);
            if is_text && is_word {
                continue;
            }
            *occurs |= whole(&row, &format!("missing_{at}"))? > Some(0);
        }
    }
    let missing = MISSING.iter().zip(occurs).filter(|(_, occurs)| *occurs);
    options.nulls.extend(missing.map(|(text, _)| (*text).to_owned()));
    options.date_formats = forms.dates;
    options.numbers = forms.numbers.unwrap_or_default();
    let mut types: HashMap<String, CsvType> =
        looks.into_iter().map(|look| (look.name, look.csv_type)).collect();
    types.extend(forms.types);
    Ok(Written { options, unclear_dates: forms.unclear, unclear_numbers: forms.unclear_numbers, types })
}

/// Finds the forms of the dates and numbers of a file.
async fn find_forms(table: &DataFrame, looks: &[Look], run: &Run<'_>) -> Result<Found> {
    let forms = Arc::new(Forms::new()?);
    let of_type = async |csv_type: CsvType| -> Result<Vec<(String, u64)>> {
        let names: Vec<&String> =
            looks.iter().filter(|look| look.csv_type == csv_type).map(|look| &look.name).collect();
        let mut found = Vec::new();
        for some in names.chunks(AT_ONCE) {
            run.stop.check()?;
            let cells = some.iter().map(|name| Ok(((*name).clone(), known(name)?))).collect::<Result<_>>()?;
            found.extend(forms.of_columns(table, cells).await?);
        }
        Ok(found)
    };
    Ok(forms.choose(&of_type(CsvType::Text).await?, &of_type(CsvType::Number).await?))
}

/// Builds the cell of a column, or NULL where it may mean "missing".
fn known(name: &str) -> Result<Expr> {
    let is_missing = column(name).in_list(MISSING.map(lit).to_vec(), false);
    when(is_missing.is_not_true(), column(name)).end().context("typing the CSV columns")
}

/// The findings of one pass about a text column.
struct Look {
    name: String,
    csv_type: CsvType,
    /// Whether one of [`MISSING`] occurs.
    missing: bool,
    /// Whether each cell that is known has two letters, as codes have.
    is_of_two_letters: bool,
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
        let value = known(name)?;
        counted("other_length", character_length(value.clone()).not_eq(lit(2)))?;
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
        let is_of_two_letters = count("other_length")? == 0;
        Ok(Look { name: name.clone(), csv_type, missing, is_of_two_letters, named_like_a_cell })
    });
    looks.collect()
}

/// Returns whether the first line can be names: all are different, and none is a number or consists
/// of digits like a date.
fn has_names(first: &[u8], delimiter: u8) -> bool {
    let records = records(first, delimiter);
    let Some(first) = records.first() else { return true };
    let mut known = HashSet::new();
    // Lines that end in delimiters have columns without a name.
    first.iter().map(String::from_utf8_lossy).filter(|cell| !cell.is_empty()).all(|cell| {
        let is_number = cell.contains(|c: char| c.is_ascii_digit()) && !cell.contains(char::is_alphabetic);
        known.insert(cell) && !is_number
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates_are_no_names() {
        assert!(has_names(b"zip5,sex\n02139,f\n", b','));
        assert!(has_names(b",sex\n1,f\n", b','));
        assert!(!has_names(b"02139,f\n02140,m\n", b','));
        assert!(!has_names(b"f,1995-12-21\n", b','));
        assert!(!has_names(b"yes,no,yes\n", b','));
    }
}
