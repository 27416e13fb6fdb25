//! People who are written in two ways: `7` in one input, `007` or `7.0` in another.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::functions_aggregate::expr_fn::{bit_and, count, sum};
use datafusion::logical_expr::{Expr, col, lit};
use futures::StreamExt;
use unicode_normalization::UnicodeNormalization;

use super::DOING;
use super::shown_rows::{LOOSE, ROW, ShownRows, lost};
use crate::engine::functions::{OfValues, of_values};
use crate::engine::{Context, column, union_of};
use crate::error::Result;
use crate::progress::CancelToken;

const INPUTS: &str = "kanon_inputs";

/// Returns what a text shares with other spellings of it; `None` where the person is no text.
pub(super) fn loosely(data_type: &DataType, person: &str) -> Option<Expr> {
    (*data_type == DataType::Utf8View).then(|| of_values(Arc::new(Loose), person, column(person)))
}

/// Returns how many people of these inputs are spelled as a person of another input is, but for spaces, punctuation, zeros in
/// front, capital letters and forms of one letter in Unicode, where no input has both.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn spelled_in_two_ways(releases: &[&ShownRows<'_>], stop: &CancelToken) -> Result<u64> {
    let mut all = Vec::with_capacity(releases.len());
    let by_person = || vec![col(LOOSE), col(ROW[0]), col(ROW[1])];
    for (place, release) in releases.iter().enumerate() {
        let texts = release.table.clone().filter(col(LOOSE).is_not_null()).context(DOING)?;
        let people = texts.select(by_person()).context(DOING)?.distinct().context(DOING)?;
        let columns = [by_person(), vec![lit(1i64 << place).alias(INPUTS)]].concat();
        all.push(people.select(columns).context(DOING)?);
    }
    let people = union_of(all, DOING)?;
    let people = people.aggregate(by_person(), vec![sum(col(INPUTS)).alias(INPUTS)]).context(DOING)?;
    let spellings = vec![count(lit(1i64)).alias(ROW[0]), bit_and(col(INPUTS)).alias(INPUTS)];
    let names = people.aggregate(vec![col(LOOSE)], spellings).context(DOING)?;
    let several = names.filter(col(ROW[0]).gt(lit(1i64)).and(col(INPUTS).eq(lit(0i64)))).context(DOING)?;
    let mut stream =
        several.select(vec![col(ROW[0])]).context(DOING)?.execute_stream().await.context(DOING)?;
    let mut found = 0;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let counts = batch.column(0).as_primitive_opt::<Int64Type>().ok_or_else(lost)?;
        found += counts.values().iter().map(|count| count.unsigned_abs()).sum::<u64>();
    }
    Ok(found)
}

/// What two spellings of one name share.
struct Loose;

impl OfValues for Loose {
    fn name(&self) -> &'static str {
        "kanon_loose"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values.as_string_view_opt().ok_or_else(lost)?;
        Ok(Arc::new(texts.iter().map(|text| text.map(loose)).collect::<StringViewArray>()))
    }
}

fn loose(text: &str) -> String {
    let text = text.trim();
    let whole = text.strip_suffix(".0").filter(|whole| whole.ends_with(|c: char| c.is_ascii_digit()));
    let mut found = String::with_capacity(text.len());
    for c in whole.unwrap_or(text).nfkc().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()) {
        // A zero in front of a digit is none of the number.
        if c.is_ascii_digit() && found.ends_with('0') {
            let before = &found[..found.len() - 1];
            if !before.ends_with(|c: char| c.is_ascii_digit()) {
                found.pop();
            }
        }
        found.push(c);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::loose;

    #[test]
    fn spellings_of_one_name_share_what_is_left() {
        for (text, expected) in [
            ("7", "7"),
            ("007", "7"),
            (" 7.0 ", "7"),
            ("p007", "p7"),
            ("P-70", "p70"),
            ("0", "0"),
            ("000", "0"),
            ("O'Brien", "obrien"),
            ("Jose\u{301}", "jos\u{e9}"),
            ("Jos\u{e9}", "jos\u{e9}"),
            ("\u{ff17}", "7"),
            ("v1.0", "v1"),
            ("1.10", "110"),
            ("", ""),
        ] {
            assert_eq!(loose(text), expected, "{text}");
        }
    }
}
