//! Dates that tell that a row was not in an input: a stay of May in an extract that ends in March.

use arrow::array::Array;
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::logical_expr::{Expr, lit, when};
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;

use super::DOING;
use super::shown_rows::{ShownRows, date_name};
use crate::engine::{Context, column};
use crate::error::Result;
use crate::progress::CancelToken;

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
    pub(super) async fn read(releases: &[ShownRows<'_>], stop: &CancelToken) -> Result<Self> {
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
