//! People who are written in two ways: `7` in one input, `007` or `7 ` in another.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::functions_aggregate::expr_fn::{bit_and, count, sum};
use datafusion::logical_expr::{col, lit};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::shown_rows::lost;
use super::{DOING, Matching};
use crate::engine::functions::{OfValues, of_values, random_keys, row_hash};
use crate::engine::{Context, column, union_of};
use crate::error::Result;
use crate::progress::CancelToken;

const LOOSE: &str = "kanon_loose";
const PERSON: &str = "kanon_person";
const INPUTS: &str = "kanon_inputs";

/// Returns how many people of these inputs differ from a person of another input by nothing but spaces, zeros in front or capital
/// letters, where no input has both. Only texts can.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn spelled_in_two_ways(
    inputs: &[DataFrame],
    matching: &Matching,
    stop: &CancelToken,
) -> Result<u64> {
    let key = random_keys(DOING)?[0];
    let mut all = Vec::with_capacity(inputs.len());
    for (place, input) in inputs.iter().enumerate() {
        let of_input = input.clone().filter(column(&matching.person).is_not_null()).context(DOING)?;
        let loose = of_values(Arc::new(Loose), &matching.person, column(&matching.person));
        let person = row_hash(key, vec![column(&matching.person)]);
        let columns = vec![loose.alias(LOOSE), person.alias(PERSON), lit(1i64 << place).alias(INPUTS)];
        all.push(of_input.select(columns).context(DOING)?.distinct().context(DOING)?);
    }
    let people = union_of(all, DOING)?;
    let by_person = vec![col(LOOSE), col(PERSON)];
    let people = people.aggregate(by_person, vec![sum(col(INPUTS)).alias(INPUTS)]).context(DOING)?;
    let spellings = vec![count(lit(1i64)).alias(PERSON), bit_and(col(INPUTS)).alias(INPUTS)];
    let names = people.aggregate(vec![col(LOOSE)], spellings).context(DOING)?;
    let several = names.filter(col(PERSON).gt(lit(1i64)).and(col(INPUTS).eq(lit(0i64)))).context(DOING)?;
    let mut stream =
        several.select(vec![col(PERSON)]).context(DOING)?.execute_stream().await.context(DOING)?;
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
        let loose = |text: &str| text.trim().trim_start_matches('0').to_lowercase();
        Ok(Arc::new(texts.iter().map(|text| text.map(loose)).collect::<StringViewArray>()))
    }
}
