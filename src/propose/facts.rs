//! Facts about columns: types, NULLs, distinct values, lengths. Counts and averages only, no
//! values.
//!
//! Distinct values are first estimated for many columns in one pass, in little memory. Then they
//! are counted exactly in columns with few of them, and in columns with about one per row, where a
//! single repeated value matters.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use datafusion::functions_aggregate::expr_fn::{approx_distinct, count, count_distinct, max, min, sum};
use datafusion::logical_expr::{Expr, cast as cast_to, lit, try_cast, when};
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::prelude::DataFrame;

use super::quartiles;
use crate::engine::functions::{OfValues, of_values, row_hash};
use crate::engine::{Context, Run, column};
use crate::error::{Error, Result};
use crate::generalize::prefix::characters;
use crate::generalize::value::is_supported;
use crate::release::profile::class_sizes;

/// The number of columns per pass.
const AT_ONCE: usize = 64;
/// Columns with about this many distinct values or fewer are counted in memory.
const FEW: u64 = 10_000;
/// The number of columns with more distinct values that are counted one by one, by a GROUP BY that
/// spills.
const COUNTED_ALONE: usize = 16;
/// Persons have few rows each: there are at least this many numbers of persons in 100 rows.
const FEW_ROWS_EACH: u64 = 5;
/// A column with at least this many distinct values per 100 rows singles nearly all rows out by itself.
pub(super) const IDENTIFIES: u64 = 90;
/// A text with this many spaces is a sentence.
const SENTENCE: u64 = 3;

/// The facts about a column.
#[derive(Debug, Clone)]
pub struct ColumnFacts {
    /// The name.
    pub name: String,
    /// The type; for a CSV column, the one that all its cells can be read as.
    pub data_type: DataType,
    /// The rows of the table.
    pub rows: u64,
    /// The rows where the column is NULL.
    pub nulls: u64,
    /// The distinct non-NULL values; `None` for types that cannot be released.
    pub distinct: Option<u64>,
    /// Whether `distinct` was counted; otherwise it is an estimate within about 2 %.
    pub is_counted: bool,
    /// The lengths of texts and integers.
    pub(super) length: Option<Length>,
    /// The spread of most numbers.
    pub(super) spread: Option<f64>,
    /// Whether the column holds texts that are all dates.
    pub(super) is_dates_as_text: bool,
}

/// The lengths of the texts of a column, in characters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Length {
    pub(super) least: u64,
    pub(super) greatest: u64,
    /// The mean length, rounded down.
    pub(super) mean: u64,
    /// The rows with a sentence.
    pub(super) sentences: u64,
}

impl ColumnFacts {
    /// Returns the number of rows where the column is not NULL.
    pub fn known(&self) -> u64 {
        self.rows - self.nulls
    }

    /// Returns whether no value occurs twice, known for certain.
    pub fn is_unique(&self) -> bool {
        self.is_counted && self.distinct == Some(self.known()) && self.known() > 0
    }

    /// Returns whether there are at least `percent` distinct values per 100 non-NULL rows.
    pub(super) fn has_distinct_percent(&self, percent: u64) -> bool {
        self.distinct.is_some_and(|distinct| {
            u128::from(distinct) * 100 >= u128::from(self.known()) * u128::from(percent)
        })
    }

    /// Returns whether values repeat, and each stands in few rows, as the numbers of persons do.
    pub(super) fn has_few_rows_each(&self) -> bool {
        !self.is_unique() && self.distinct > Some(1) && self.has_distinct_percent(FEW_ROWS_EACH)
    }

    /// Returns whether the values may be numbers or pseudonyms of persons, who have one or several rows each.
    pub(super) fn may_be_numbers_of_persons(&self) -> bool {
        let is_code = self.data_type.is_integer() || self.data_type.is_string() && !self.is_prose();
        is_code && self.known() > 0 && self.has_distinct_percent(FEW_ROWS_EACH)
    }

    /// Returns whether most values are sentences or long, and there are many of them.
    pub(super) fn is_prose(&self) -> bool {
        let Some(length) = self.length.filter(|_| self.data_type.is_string()) else { return false };
        let is_long = length.mean >= 40 || length.sentences.saturating_mul(2) > self.known();
        is_long && self.has_distinct_percent(10)
    }
}

/// Reads the facts of all columns of `table`, in its order.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn read_facts(table: &DataFrame, run: &Run) -> Result<Vec<ColumnFacts>> {
    let fields: Vec<(String, DataType)> = table
        .schema()
        .fields()
        .iter()
        .map(|field| (field.name().clone(), field.data_type().clone()))
        .collect();
    let mut facts = Vec::new();
    for some in fields.chunks(AT_ONCE) {
        run.stop.check()?;
        facts.extend(estimated(table, some).await?);
    }
    let few = |fact: &&mut ColumnFacts| fact.distinct.is_some_and(|distinct| distinct <= FEW);
    let mut small: Vec<&mut ColumnFacts> = facts.iter_mut().filter(few).collect();
    for some in small.chunks_mut(AT_ONCE) {
        run.stop.check()?;
        count_together(table, some).await?;
    }
    let open = facts.iter_mut().filter(|fact| !fact.is_counted && fact.has_distinct_percent(IDENTIFIES));
    for fact in open.take(COUNTED_ALONE) {
        let known = narrow(table, [fact.name.as_str()])?
            .filter(column(&fact.name).is_not_null())
            .context("counting values")?;
        let sizes = class_sizes(&known, &[&fact.name], &run.stop, "counting values").await?;
        (fact.distinct, fact.is_counted) = (Some(sizes.classes()), true);
    }
    Ok(facts)
}

/// Estimates the facts of some columns in one pass.
async fn estimated(table: &DataFrame, fields: &[(String, DataType)]) -> Result<Vec<ColumnFacts>> {
    let mut counts = vec![count(lit(1i64)).alias("rows")];
    for (at, (name, data_type)) in fields.iter().enumerate() {
        let mut counted = |what: &str, counting: Expr| counts.push(counting.alias(format!("{what}_{at}")));
        let value = column(name);
        if data_type.is_nested() {
            // The column can only be dropped, and not every reader can read it.
            counted("known", count(lit(1i64)));
            continue;
        }
        counted("known", count(value.clone()));
        if !is_supported(data_type) && !data_type.is_decimal() {
            continue;
        }
        counted("distinct", approx_distinct(hash(name)?));
        if data_type.is_string() || data_type.is_integer() {
            let text = cast_to(value.clone(), DataType::Utf8View);
            let length = of_values(Arc::new(CHARACTERS), name, text.clone());
            counted("least", min(length.clone()));
            counted("greatest", max(length.clone()));
            counted("total", sum(length));
            let is_sentence = of_values(Arc::new(SPACES), name, text.clone()).gt_eq(lit(SENTENCE));
            counted("sentences", count_if(is_sentence)?);
            if data_type.is_string() {
                let date = try_cast(text, DataType::Date32);
                counted("dates", count(date));
            }
        }
        if data_type.is_numeric() {
            counted("spread", quartiles::spread(cast_to(value, DataType::Float64)));
        }
    }
    let table = narrow(table, fields.iter().map(|(name, _)| name.as_str()))?;
    let batch = one_row(&table, counts).await?;
    let rows = whole(&batch, "rows")?.unwrap_or(0);
    let facts = fields.iter().enumerate().map(|(at, (name, data_type))| {
        let whole = |what: &str| whole(&batch, &format!("{what}_{at}"));
        let known = whole("known")?.unwrap_or(0);
        let length = match (whole("least")?, whole("greatest")?, whole("total")?) {
            (Some(least), Some(greatest), Some(total)) => Some(Length {
                least,
                greatest,
                mean: total.checked_div(known).unwrap_or(0),
                sentences: whole("sentences")?.unwrap_or(0),
            }),
            _ => None,
        };
        Ok(ColumnFacts {
            name: name.clone(),
            data_type: data_type.clone(),
            rows,
            nulls: rows.saturating_sub(known),
            distinct: whole("distinct")?,
            is_counted: false,
            length,
            spread: number(&batch, &format!("spread_{at}"))?,
            is_dates_as_text: known > 0 && whole("dates")? == Some(known),
        })
    });
    facts.collect()
}

async fn count_together(table: &DataFrame, facts: &mut [&mut ColumnFacts]) -> Result<()> {
    let counts = facts.iter().enumerate();
    let counts =
        counts.map(|(at, fact)| Ok(count_distinct(hash(&fact.name)?).alias(format!("distinct_{at}"))));
    let counts = counts.collect::<Result<_>>()?;
    let table = narrow(table, facts.iter().map(|fact| fact.name.as_str()))?;
    let batch = one_row(&table, counts).await?;
    for (at, fact) in facts.iter_mut().enumerate() {
        (fact.distinct, fact.is_counted) = (whole(&batch, &format!("distinct_{at}"))?, true);
    }
    Ok(())
}

/// Hashes a value to 64 bits (NULL to NULL): small, and of one type for all columns. Among 10,000
/// values, two have the same hash with a chance of 3 in a trillion.
fn hash(name: &str) -> Result<Expr> {
    let hash = when(column(name).is_not_null(), row_hash([0, 0], vec![column(name)]));
    hash.end().context("counting values")
}

/// Selects some columns of a table, without the plan of all others: every query would optimize it
/// again, which takes most of the time where there are thousands of them.
pub(super) fn narrow<'a>(table: &DataFrame, names: impl IntoIterator<Item = &'a str>) -> Result<DataFrame> {
    let doing = "reading the input";
    let columns =
        table.clone().select(names.into_iter().map(column).collect::<Vec<Expr>>()).context(doing)?;
    let (state, plan) = columns.into_parts();
    let projections = Optimizer::with_rules(vec![Arc::new(OptimizeProjections::new())]);
    let plan = projections.optimize(plan, &state, |_, _| {}).context(doing)?;
    Ok(DataFrame::new(state, plan))
}

/// Builds `count(*) FILTER (WHERE condition)`.
pub(super) fn count_if(condition: Expr) -> Result<Expr> {
    Ok(count(when(condition, lit(1i64)).end().context("counting values")?))
}

/// Returns the single row of aggregates over all of `table`.
pub(super) async fn one_row(table: &DataFrame, aggregates: Vec<Expr>) -> Result<RecordBatch> {
    let doing = "reading the input";
    let batches =
        table.clone().aggregate(vec![], aggregates).context(doing)?.collect().await.context(doing)?;
    let batch = batches.into_iter().find(|batch| batch.num_rows() == 1);
    batch.ok_or_else(|| Error::internal("propose: the aggregates returned no row"))
}

/// Returns the count `name` of a row; `None` where it was not requested or is NULL.
pub(super) fn whole(row: &RecordBatch, name: &str) -> Result<Option<u64>> {
    let Some(array) = row.column_by_name(name) else { return Ok(None) };
    let array = cast(array, &DataType::UInt64).context("reading counts")?;
    let array = array.as_primitive::<UInt64Type>();
    Ok((!array.is_null(0)).then(|| array.value(0)))
}

fn number(row: &RecordBatch, name: &str) -> Result<Option<f64>> {
    let Some(array) = row.column_by_name(name) else { return Ok(None) };
    let array = cast(array, &DataType::Float64).context("reading spreads")?;
    let array = array.as_primitive::<Float64Type>();
    Ok((!array.is_null(0)).then(|| array.value(0)).filter(|number| number.is_finite()))
}

/// A count over a text: its name in plans, and the function that counts.
struct InText(&'static str, fn(&str) -> usize);

const CHARACTERS: InText = InText("kanon_characters", characters);
const SPACES: InText = InText("kanon_spaces", |text| text.matches(' ').count());

impl OfValues for InText {
    fn name(&self) -> &'static str {
        self.0
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values
            .as_string_view_opt()
            .ok_or_else(|| Error::internal("propose: a text column is not Utf8View"))?;
        let counts = texts.iter().map(|text| text.and_then(|text| u64::try_from((self.1)(text)).ok()));
        Ok(Arc::new(counts.collect::<UInt64Array>()))
    }
}

/// Returns whether a type holds days or moments.
pub(super) fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use datafusion::prelude::SessionContext;

    #[tokio::test]
    async fn a_narrow_table_has_no_plan_of_other_columns() {
        let columns = ["a", "b", "c"].map(|name| (name, Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef));
        let table = SessionContext::new().read_batch(RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        let twice = ["a", "b", "c"].map(|name| (column(name) + column(name)).alias(name));
        let narrowed = narrow(&table.select(twice.to_vec()).unwrap(), ["b"]).unwrap();
        let plan = narrowed.logical_plan().display_indent().to_string();
        assert!(plan.contains(".b") && !plan.contains(".a") && !plan.contains(".c"), "{plan}");
        let rows = narrowed.collect().await.unwrap();
        assert_eq!(rows[0].column(0).as_ref(), &Int64Array::from(vec![2, 4]) as &dyn Array);
    }
}
