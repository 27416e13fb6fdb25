//! Detects the format of a CSV input from its first lines and its cells: the separator, the header,
//! the texts that mean NULL, and the columns that are numbers or dates.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use datafusion::functions::unicode::expr_fn::character_length;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::{DataFrame, SessionContext};
use encoding_rs::UTF_8;

use super::doubts::Doubt;
use super::facts::{count_if, narrow, one_row, whole};
use super::forms::{ChosenForms, Tally, TriedForms};
use super::missing::{is_missing_among_words, without_missing};
use crate::engine::{Context, Run, column};
use crate::error::{Error, Result};
use crate::input::infer_types::{TIMES, misfit};
use crate::input::read_csv::{by_name, delimiter_of, first_is_data, first_lines, records};
use crate::input::{Input, utf8_copies};
use crate::policy::{CsvOptions, CsvType, DateFormat, NumberFormat};

/// The number of columns per pass.
const AT_ONCE: usize = 64;
/// The format of a CSV input.
pub(super) struct CsvFormat {
    pub(super) options: CsvOptions,
    /// The formats of dates between which the cells leave the choice.
    pub(super) unclear_dates: Vec<DateFormat>,
    /// The same for numbers.
    pub(super) unclear_numbers: Vec<NumberFormat>,
    types: HashMap<String, CsvType>,
    doubts: HashMap<String, Doubt>,
}

impl CsvFormat {
    /// Returns what is unclear about the cells of a column, if anything is.
    pub(super) fn doubt(&self, name: &str) -> Option<&Doubt> {
        self.doubts.get(name)
    }

    /// Returns how the cells of a column can be read: as numbers or dates if all of them are.
    pub(super) fn csv_type(&self, name: &str) -> CsvType {
        self.types.get(name).copied().unwrap_or(CsvType::Text)
    }
}

/// Detects the format of a CSV input.
///
/// # Errors
/// A data error when a file cannot be read.
pub(super) async fn detect_format(session: &SessionContext, input: &Input, run: &Run) -> Result<CsvFormat> {
    let encoding = Some(utf8_copies::guess(input)?).filter(|encoding| *encoding != UTF_8);
    let mut options = CsvOptions { encoding, ..CsvOptions::default() };
    let first = first_lines(input, &options)?;
    let mark = delimiter_of(&first);
    options.header = Some(false).filter(|_| !has_names(&first, mark));
    // Options are set only where the files' names do not imply them.
    options.delimiter = Some(mark).filter(|mark| by_name(input).ok() != Some(*mark));
    let mut table = input.table(session, &options, &|_| CsvType::Text).await?;
    let mut looks = look(&table, run).await?;
    // The cells of the first line occur again below, so it is an ordinary line.
    if options.has_header() && looks.iter().any(|look| look.named_like_a_cell) {
        options.header = Some(false);
        table = input.table(session, &options, &|_| CsvType::Text).await?;
        looks = look(&table, run).await?;
    }
    let (found, doubts) = find_forms(&table, &looks, mark == b';', run).await?;
    let mut missing = BTreeSet::new();
    for look in looks.iter().filter(|look| look.missing) {
        run.stop.check()?;
        let name = look.name.as_str();
        let is_text = look.csv_type == CsvType::Text
            && !found.types.contains_key(name)
            && !doubts.get(name).is_some_and(Doubt::is_of_one_form);
        for text in missing_in(&table, name).await? {
            // Namibia is NA among the codes of countries.
            let is_value = !is_missing_among_words(&text) || look.is_of_two_letters && text == "NA";
            if !(is_text && is_value) {
                missing.insert(text);
            }
        }
    }
    options.nulls.extend(missing);
    options.date_formats = found.dates;
    options.numbers = found.numbers.unwrap_or_default();
    let mut types: HashMap<String, CsvType> =
        looks.into_iter().map(|look| (look.name, look.csv_type)).collect();
    types.extend(found.types);
    let (unclear_dates, unclear_numbers) = (found.unclear, found.unclear_numbers);
    Ok(CsvFormat { options, unclear_dates, unclear_numbers, types, doubts })
}

/// Finds the forms of the dates and numbers of a file, and the columns in which they are in doubt.
async fn find_forms(
    table: &DataFrame,
    looks: &[Look],
    has_semicolons: bool,
    run: &Run,
) -> Result<(ChosenForms, HashMap<String, Doubt>)> {
    let forms = Arc::new(TriedForms::new()?);
    let of_type = async |csv_type: CsvType| -> Result<Vec<Tally>> {
        let names: Vec<&String> =
            looks.iter().filter(|look| look.csv_type == csv_type).map(|look| &look.name).collect();
        let mut found = Vec::new();
        for some in names.chunks(AT_ONCE) {
            run.stop.check()?;
            let cells = some.iter().map(|name| ((*name).clone(), without_missing(name))).collect();
            found.extend(forms.of_columns(table, cells).await?);
        }
        Ok(found)
    };
    let (texts, numbers) = (of_type(CsvType::Text).await?, of_type(CsvType::Number).await?);
    let leading = |tallies: &[Tally]| -> Vec<(String, u64)> {
        tallies.iter().map(|tally| (tally.name.clone(), tally.leading())).collect()
    };
    let mut found = forms.choose(&leading(&texts), &leading(&numbers), has_semicolons);
    let unclear = found.unclear_columns.drain(..).map(|name| (name, Doubt::Unclear));
    let mut doubts: HashMap<String, Doubt> = unclear.collect();
    let in_doubt =
        texts.iter().filter_map(|tally| Some((tally.name.clone(), Doubt::of_cells(&forms, tally)?)));
    doubts.extend(in_doubt);
    found.types.retain(|name, _| !doubts.contains_key(name));
    Ok((found, doubts))
}

/// Returns the texts of a column that mean "missing" among numbers or dates.
async fn missing_in(table: &DataFrame, name: &str) -> Result<Vec<String>> {
    let doing = "looking for words that mean missing";
    let is_missing = column(name).is_not_null().and(without_missing(name).is_null());
    let table = narrow(table, [name])?.filter(is_missing).context(doing)?.distinct().context(doing)?;
    let mut found = Vec::new();
    for batch in table.collect().await.context(doing)? {
        let texts = batch.columns().first().and_then(|texts| texts.as_string_view_opt());
        let texts = texts.ok_or_else(|| Error::internal("csv: a text column is not Utf8View"))?;
        found.extend(texts.iter().flatten().map(str::to_owned));
    }
    Ok(found)
}

/// The findings of one pass about a text column.
struct Look {
    name: String,
    csv_type: CsvType,
    /// Whether a word occurs that may mean "missing".
    missing: bool,
    /// Whether each cell that is known has two letters, as codes have.
    is_of_two_letters: bool,
    named_like_a_cell: bool,
}

async fn look(table: &DataFrame, run: &Run) -> Result<Vec<Look>> {
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
        let value = without_missing(name);
        let is_missing = cell.clone().is_not_null().and(value.clone().is_null());
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

/// Returns whether the first line can be names: all are different, and none looks like data.
fn has_names(first: &[u8], delimiter: u8) -> bool {
    let records = records(first, delimiter);
    let Some(names) = records.first() else { return true };
    let mut known = HashSet::new();
    // Lines that end in delimiters have columns without a name.
    names.iter().filter(|cell| !cell.is_empty()).all(|cell| known.insert(cell))
        && !first_is_data(first, delimiter)
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
