//! Dates that tell that a row was not in an input: a stay of May in an extract that ends in March.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int64Type, Schema, TimeUnit};
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::{Expr, lit, try_cast, when};
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;

use super::DOING;
use super::shown_rows::{ShownRows, date_name, lost};
use crate::engine::{Context, column};
use crate::error::Result;
use crate::progress::CancelToken;

/// Returns the columns of a table that hold dates: columns of dates or timestamps, and text columns in which at least half of the
/// values are a date, such as `2026-03-01` or `2026-03-01T10:00:00`.
///
/// # Errors
/// A data error when reading fails.
pub(crate) async fn times_in(input: &DataFrame, names: &[String], stop: &CancelToken) -> Result<Vec<String>> {
    let schema = input.schema().as_arrow();
    let data_type = |name: &&String| schema.field_with_name(name).map(|field| field.data_type().clone()).ok();
    let is_text = |name: &&String| data_type(name) == Some(DataType::Utf8View);
    let mut found: Vec<String> =
        names.iter().filter(|name| data_type(name).is_some_and(|of| of.is_temporal())).cloned().collect();
    let texts: Vec<&String> = names.iter().filter(is_text).collect();
    if texts.is_empty() {
        return Ok(found);
    }
    let counts = texts.iter().enumerate().map(|(at, name)| {
        Ok([
            count(column(*name)).alias(format!("values_{at}")),
            count(time_of(schema, name)?).alias(format!("times_{at}")),
        ])
    });
    let counts: Vec<[Expr; 2]> = counts.collect::<Result<_>>()?;
    let counts = input.clone().aggregate(Vec::new(), counts.concat()).context(DOING)?;
    let mut stream = counts.execute_stream().await.context(DOING)?;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let counted =
            |at: usize| Ok(batch.column(at).as_primitive_opt::<Int64Type>().ok_or_else(lost)?.value(0));
        for (at, name) in texts.iter().enumerate().filter(|_| batch.num_rows() > 0) {
            let (values, times): (i64, i64) = (counted(2 * at)?, counted(2 * at + 1)?);
            if times > 0 && 2 * times >= values {
                found.push((*name).clone());
            }
        }
    }
    Ok(found)
}

/// Returns a column of dates; of texts those that are one.
pub(super) fn time_of(schema: &Schema, name: &str) -> Result<Expr> {
    let field = schema.field_with_name(name).context(DOING)?;
    Ok(match field.data_type() {
        DataType::Utf8View => try_cast(column(name), DataType::Timestamp(TimeUnit::Microsecond, None)),
        _ => column(name),
    })
}

/// The least and the greatest value of dates in each input, among the rows that have a person.
pub(super) struct Dates {
    /// Of each input, and each of the dates that it has with a value.
    ranges: Vec<Vec<(usize, [ScalarValue; 2])>>,
}

impl Dates {
    /// Reads the range of each date column in every release. A column has the same type in all of them.
    ///
    /// # Errors
    /// A data error when reading fails.
    pub(super) async fn read(releases: &[&ShownRows<'_>], stop: &CancelToken) -> Result<Self> {
        let mut ranges = Vec::with_capacity(releases.len());
        for release in releases {
            let mut of_input = Vec::new();
            for at in &release.dates {
                let range = range(&release.table, &date_name(*at), stop).await?;
                of_input.extend(range.map(|range| (*at, range)));
            }
            ranges.push(of_input);
        }
        Ok(Self { ranges })
    }

    /// Returns the expression of a word with a bit for each input in which a row of a release was not, as its dates tell.
    ///
    /// # Errors
    /// When the plan cannot be built.
    pub(super) fn not_in(&self, release: &ShownRows<'_>) -> Result<Expr> {
        let mut inputs = lit(0u64);
        for (place, ranges) in self.ranges.iter().enumerate() {
            let there = ranges.iter().filter(|(at, _)| release.dates.contains(at));
            let outside = there.map(|(at, [least, most])| {
                let date = || column(date_name(*at));
                date().lt(lit(least.clone())).or(date().gt(lit(most.clone())))
            });
            if let Some(outside) = outside.reduce(Expr::or) {
                inputs = inputs + when(outside, lit(1u64 << place)).otherwise(lit(0u64)).context(DOING)?;
            }
        }
        Ok(inputs)
    }
}

/// Returns the least and the greatest value of a column; `None` without a value.
async fn range(input: &DataFrame, name: &str, stop: &CancelToken) -> Result<Option<[ScalarValue; 2]>> {
    let ends = vec![min(column(name)).alias("least"), max(column(name)).alias("most")];
    let mut stream =
        input.clone().aggregate(Vec::new(), ends).context(DOING)?.execute_stream().await.context(DOING)?;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        if batch.num_rows() > 0 && batch.column(0).is_valid(0) {
            let ends = [0, 1].map(|at| ScalarValue::try_from_array(batch.column(at), 0));
            let [least, most] = ends;
            return Ok(Some([least.context(DOING)?, most.context(DOING)?]));
        }
    }
    Ok(None)
}
