//! Oddities: cells that every type allows and that may be wrong all the same. Days in the future, a
//! day that may stand for "unknown", codes that lost zeros, spellings of one value, spellings of one
//! individual. Counts only, no values.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringViewArray, UInt64Array};
use arrow::datatypes::DataType;
use datafusion::functions_aggregate::expr_fn::{approx_distinct, count, count_distinct, max, min, sum};
use datafusion::logical_expr::{Expr, cast, lit, try_cast, when};
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;
use unicode_normalization::UnicodeNormalization;

use super::facts::{count_if, is_time, narrow, one_row, whole};
use crate::class::ClassSizes;
use crate::engine::functions::{OfValues, of_values, row_hash};
use crate::engine::{Context, Run, column};
use crate::error::{Error, Result};
use crate::plural::plural;
use crate::release::profile::class_sizes;

/// The number of columns per pass.
const AT_ONCE: usize = 64;
/// Texts with about this many values or fewer are counted in memory.
const FEW: u64 = 10_000;
/// The number of columns of texts with more values that are counted one by one, by a GROUP BY that spills.
const COUNTED_ALONE: usize = 16;
/// A day with more than this many times the rows of the median day is odd.
const TIMES_MEDIAN: u64 = 20;
/// A length of codes is rare if at most one in so many has it: a tenth of many countries' postal codes begin with 0.
const RARE_IN: u64 = 5;
/// At most one cell in so many may be something other than a code.
const OTHERS_IN: u64 = 10;
/// Texts of so many digits may be codes though none begins with 0.
const LEAST_CODE: u128 = 4;

const DOING: &str = "counting odd cells";

/// A column to look at.
#[derive(Debug, Clone)]
pub struct ColumnToCheck {
    /// The name.
    pub name: String,
    /// Whether it is the individual column.
    pub is_individual: bool,
}

/// What is odd about the cells of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Oddities {
    /// The cells with a day that is in the future everywhere on earth.
    in_future: u64,
    /// The cells of the most frequent day, if that is odd.
    of_one_day: u64,
    /// The two lengths of codes and the cells of each, if one is rare.
    digits: Option<[(u64, u64); 2]>,
    /// The values that differ from another one only in their spelling.
    respelt: u64,
}

/// Returns for each column what is odd about its cells, as sentences without the last period.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub async fn oddities(table: &DataFrame, columns: &[ColumnToCheck], run: &Run) -> Result<Vec<Vec<String>>> {
    let mut found = Vec::new();
    let mut counted_alone = 0;
    for some in columns.chunks(AT_ONCE) {
        let typed = some.iter().map(|looked| Column::of(table, looked));
        let typed: Vec<Column<'_>> = typed.collect::<Result<_>>()?;
        found.extend(of_some(table, &typed, &mut counted_alone, run).await?);
    }
    let sentences = found.iter().zip(columns).map(|(odd, looked)| odd.sentences(looked.is_individual));
    Ok(sentences.collect())
}

/// Returns the sentence about individuals that differ only in their spelling; `None` if none do.
///
/// # Errors
/// Those of [`oddities`].
pub(super) async fn respelt_individuals(table: &DataFrame, name: &str, run: &Run) -> Result<Option<String>> {
    let of = ColumnToCheck { name: name.to_owned(), is_individual: true };
    let found = of_some(table, &[Column::of(table, &of)?], &mut 0, run).await?;
    let respelt = found.first().map_or(0, |odd| odd.respelt);
    Ok(Oddities { respelt, ..Oddities::default() }.sentences(true).pop())
}

/// A column with the kind of its cells.
struct Column<'a> {
    name: &'a str,
    is_individual: bool,
    is_time: bool,
    is_text: bool,
}

impl<'a> Column<'a> {
    fn of(table: &DataFrame, looked: &'a ColumnToCheck) -> Result<Self> {
        let field = table.schema().as_arrow().field_with_name(&looked.name);
        let field = field.map_err(|_| Error::internal("oddities: a column is not in the table"))?;
        let data_type = field.data_type();
        Ok(Self {
            name: &looked.name,
            is_individual: looked.is_individual,
            is_time: is_time(data_type),
            is_text: data_type.is_string(),
        })
    }

    /// Builds the text with one spelling.
    fn respelt(&self) -> Expr {
        let spelling: Arc<dyn OfValues> = match self.is_individual {
            true => Arc::new(Spelling { name: "kanon_respelt_individual", of: spelling_of_individual }),
            false => Arc::new(Spelling { name: "kanon_respelt", of: spelling }),
        };
        of_values(spelling, self.name, self.text())
    }

    /// Builds the day of a date or a moment, also of one in ISO form as text; NULL for other texts.
    fn day(&self) -> Expr {
        match self.is_text {
            true => try_cast(self.text(), DataType::Date32),
            false => cast(column(self.name), DataType::Date32),
        }
    }

    fn text(&self) -> Expr {
        cast(column(self.name), DataType::Utf8View)
    }
}

async fn of_some(
    table: &DataFrame,
    columns: &[Column<'_>],
    counted_alone: &mut usize,
    run: &Run,
) -> Result<Vec<Oddities>> {
    let mut counts = vec![count(lit(1i64)).alias("rows")];
    for (at, of) in columns.iter().enumerate() {
        let mut add = |what: &str, counting: Expr| counts.push(counting.alias(format!("{what}_{at}")));
        if of.is_time || of.is_text {
            add("known", count(column(of.name)));
            add("days", count(of.day()));
            add("future", count_if(of.day().gt(lit(ScalarValue::Date32(Some(today())))))?);
        }
        if of.is_text {
            let length = of_values(Arc::new(DIGITS), of.name, of.text());
            add("codes", count(length.clone()));
            add("zeros", count(of_values(Arc::new(AFTER_ZERO), of.name, of.text())));
            add("least", min(length.clone()));
            add("greatest", max(length.clone()));
            add("total", sum(length.clone()));
            add("squares", sum(length.clone() * length));
            add("distinct", approx_distinct(hash(column(of.name))?));
        }
    }
    run.stop.check()?;
    let names = || columns.iter().filter(|of| of.is_time || of.is_text).map(|of| of.name);
    if names().next().is_none() {
        return Ok(columns.iter().map(|_| Oddities::default()).collect());
    }
    let row = one_row(&narrow(table, names())?, counts).await?;
    let is_small = |at: usize| -> Result<bool> {
        Ok(whole(&row, &format!("distinct_{at}"))?.is_some_and(|all| all <= FEW))
    };
    let mut small = Vec::new();
    for (at, of) in columns.iter().enumerate().filter(|(_, of)| of.is_text) {
        if is_small(at)? {
            small.push(count_distinct(hash(column(of.name))?).alias(format!("values_{at}")));
            small.push(count_distinct(hash(of.respelt())?).alias(format!("spelt_{at}")));
        }
    }
    let small = match small.as_slice() {
        [] => None,
        _ => {
            let texts = columns.iter().filter(|of| of.is_text).map(|of| of.name);
            Some(one_row(&narrow(table, texts)?, small).await?)
        }
    };
    let mut found = Vec::new();
    for (at, of) in columns.iter().enumerate() {
        run.stop.check()?;
        let mut odd = Oddities::default();
        let count = |what: &str| -> Result<u64> { Ok(whole(&row, &format!("{what}_{at}"))?.unwrap_or(0)) };
        let known = count("known")?;
        if known > 0 && count("days")? == known {
            odd.in_future = count("future")?;
            odd.of_one_day = of_one_day(&by_day(table, of, run).await?);
        }
        if of.is_text {
            odd.digits = digits(&row, at)?;
            let counts = small.as_ref().map(|small| -> Result<_> {
                Ok(whole(small, &format!("values_{at}"))?.zip(whole(small, &format!("spelt_{at}"))?))
            });
            odd.respelt = match counts.transpose()?.flatten() {
                Some((values, spelt)) => values.saturating_sub(spelt),
                None if *counted_alone < COUNTED_ALONE => {
                    *counted_alone += 1;
                    respelt_of_many(table, of, run).await?
                }
                None => 0,
            };
        }
        found.push(odd);
    }
    Ok(found)
}

/// Returns the last day that is today somewhere on earth, in days since 1970-01-01.
fn today() -> i32 {
    const EASTERNMOST: u64 = 14 * 3_600;
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i32::try_from((seconds + EASTERNMOST) / 86_400).unwrap_or(i32::MAX)
}

/// Hashes a value to 64 bits, NULL to NULL.
fn hash(value: Expr) -> Result<Expr> {
    when(value.clone().is_not_null(), row_hash([0, 0], vec![value])).end().context(DOING)
}

/// Counts the rows of each day.
async fn by_day(table: &DataFrame, of: &Column<'_>, run: &Run) -> Result<ClassSizes> {
    let days = narrow(table, [of.name])?.select(vec![of.day().alias("day")]).context(DOING)?;
    let days = days.filter(column("day").is_not_null()).context(DOING)?;
    class_sizes(&days, &["day"], &run.stop, DOING).await
}

/// Returns the rows of the most frequent day, if they are odd beside those of the median day; else 0.
fn of_one_day(days: &ClassSizes) -> u64 {
    // The median of an even number of days is the mean of the two in the middle.
    let middle = [days.classes().saturating_sub(1) / 2, days.classes() / 2];
    let at = |place: u64| {
        let mut before = 0;
        days.histogram().find_map(|(rows, days, _)| {
            before += days;
            (place < before).then_some(rows)
        })
    };
    let twice_median: u64 = middle.into_iter().filter_map(at).sum();
    let most = days.histogram().last().map_or(0, |(rows, ..)| rows);
    if most * 2 > TIMES_MEDIAN * twice_median { most } else { 0 }
}

/// Returns the two lengths of the codes of a column, the shorter one first, if there are two and one is
/// rare.
fn digits(row: &RecordBatch, at: usize) -> Result<Option<[(u64, u64); 2]>> {
    let count =
        |what: &str| -> Result<Option<u128>> { Ok(whole(row, &format!("{what}_{at}"))?.map(u128::from)) };
    let (known, codes) = (count("known")?.unwrap_or(0), count("codes")?.unwrap_or(0));
    let of_lengths = (count("least")?, count("greatest")?, count("total")?, count("squares")?);
    let (Some(least), Some(greatest), Some(total), Some(squares)) = of_lengths else { return Ok(None) };
    // The sum of (length - least) * (greatest - length) is 0 if there is no third length.
    let has_third = (least + greatest) * total != squares + least * greatest * codes;
    let others = known.saturating_sub(codes);
    // Shorter numbers without a leading zero may be ages or lengths of stay.
    let are_codes = count("zeros")? > Some(0) || least >= LEAST_CODE;
    if least == greatest || has_third || !are_codes || others * u128::from(OTHERS_IN) > known {
        return Ok(None);
    }
    let long = (total - least * codes) / (greatest - least);
    let short = codes - long;
    let is_rare = long.min(short) * u128::from(RARE_IN) <= codes;
    let [least, short, greatest, long] =
        [least, short, greatest, long].map(|count| u64::try_from(count).unwrap_or(u64::MAX));
    Ok(is_rare.then_some([(least, short), (greatest, long)]))
}

/// Counts the values that differ from another one only in their spelling, without holding them.
async fn respelt_of_many(table: &DataFrame, of: &Column<'_>, run: &Run) -> Result<u64> {
    let hashes = vec![hash(column(of.name))?.alias("value"), hash(of.respelt())?.alias("spelt")];
    let rows = narrow(table, [of.name])?.select(hashes).context(DOING)?;
    let known = rows.filter(column("value").is_not_null()).context(DOING)?;
    let sizes = class_sizes(&known.distinct().context(DOING)?, &["spelt"], &run.stop, DOING).await?;
    Ok(sizes.individuals() - sizes.classes())
}

/// Returns a text in the one spelling of all that differ only in capitals, outer blanks or Unicode form.
fn spelling(text: &str) -> String {
    let small: String = text.nfc().collect::<String>().to_lowercase();
    small.trim().nfc().collect()
}

/// The same for a number of a person, which keeps no leading zeros either.
fn spelling_of_individual(text: &str) -> String {
    let spelling = spelling(text);
    match spelling.trim_start_matches('0') {
        "" if !spelling.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    }
}

/// Spells texts in one way.
struct Spelling {
    name: &'static str,
    of: fn(&str) -> String,
}

impl OfValues for Spelling {
    fn name(&self) -> &'static str {
        self.name
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values.as_string_view_opt().ok_or_else(no_text)?;
        Ok(Arc::new(texts.iter().map(|text| text.map(self.of)).collect::<StringViewArray>()))
    }
}

/// The length of a text of digits; NULL for texts that are none, or not such ones.
struct DigitCount {
    name: &'static str,
    is_one: fn(&[u8]) -> bool,
}

const DIGITS: DigitCount = DigitCount { name: "kanon_digits", is_one: |digits| !digits.is_empty() };
const AFTER_ZERO: DigitCount =
    DigitCount { name: "kanon_digits_after_zero", is_one: |digits| digits.len() > 1 && digits[0] == b'0' };

impl OfValues for DigitCount {
    fn name(&self) -> &'static str {
        self.name
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values.as_string_view_opt().ok_or_else(no_text)?;
        let digits = |text: &str| (self.is_one)(text.as_bytes()) && text.bytes().all(|b| b.is_ascii_digit());
        let counts = texts.iter().map(|text| text.filter(|text| digits(text)).map(|text| text.len() as u64));
        Ok(Arc::new(counts.collect::<UInt64Array>()))
    }
}

fn no_text() -> Error {
    Error::internal("oddities: a text column is not Utf8View")
}

impl Oddities {
    fn sentences(&self, is_individual: bool) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.in_future > 0 {
            let lie = if self.in_future == 1 { "lies" } else { "lie" };
            sentences.push(format!("{} {lie} in the future", plural(self.in_future, "cell", "cells")));
        }
        if self.of_one_day > 0 {
            sentences.push(format!(
                "{} hold one and the same day, more than {TIMES_MEDIAN} times as many as the median day: does it stand \
                 for \"unknown\"?",
                plural(self.of_one_day, "cell", "cells")
            ));
        }
        if let Some([(least, short), (greatest, long)]) = self.digits {
            let cells = plural(short, "cell has", "cells have");
            sentences.push(format!(
                "{cells} {}, {} {greatest}: were leading zeros lost?",
                plural(least, "digit", "digits"),
                plural(long, "has", "have")
            ));
        }
        if self.respelt > 0 {
            let values = plural(self.respelt, "value differs", "values differ");
            sentences.push(match is_individual {
                true => format!(
                    "{values} from another only in capitals, outer blanks, Unicode form or leading zeros: one person \
                     may count as several"
                ),
                false => format!("{values} from another only in capitals, outer blanks or Unicode form"),
            });
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::ClassSizes;

    #[test]
    fn spellings_of_one_value() {
        let zurich = ["Zürich", " zürich", "ZÜRICH\u{a0}", "Zu\u{308}rich", "ZU\u{308}RICH"].map(spelling);
        assert_eq!(zurich, ["zürich"; 5]);
        assert_ne!(spelling("Zurich"), "zürich");
        assert_eq!(
            ["007", " 7", "0", "000", "", "0a0", "70"].map(spelling_of_individual),
            ["7", "7", "0", "0", "", "a0", "70"]
        );
    }

    fn days(rows: &[u64]) -> ClassSizes {
        let mut days = ClassSizes::default();
        rows.iter().for_each(|rows| days.add(*rows));
        days
    }

    #[test]
    fn a_day_is_odd_beside_the_median_day() {
        // The median day has 1, 1.5 and 2 rows.
        let cases = [
            (vec![1, 1, 21], 21),
            (vec![1, 1, 20], 0),
            (vec![1, 2, 1, 31], 31),
            (vec![1, 2, 1, 30], 0),
            (vec![2, 1, 2, 3, 41], 41),
            (vec![1, 100], 0),
            (vec![100], 0),
            (vec![], 0),
        ];
        for (rows, odd) in cases {
            assert_eq!(of_one_day(&days(&rows)), odd, "{rows:?}");
        }
    }
}
