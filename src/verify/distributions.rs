//! The distribution of each sensitive column over a whole table: what models of distributions compare its classes with.

use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::per_class::{INDIVIDUAL, PerClass};
use crate::engine::functions::counted;
use crate::engine::{Context, column};
use crate::error::Result;
use crate::model::{Counted, Distribution, ValueCount};
use crate::progress::CancelToken;

const VALUE: &str = "kanon_value";

/// Counts the `values` of each sensitive column of `fold` over a table, under the numbers that `fold` gives them: the
/// rows with each value, or the distinct individuals where their two hash columns are given. A column without an
/// expression has no distribution: no model asks for it.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn distributions(
    table: &DataFrame,
    values: &[Option<Expr>],
    individual: &[Expr],
    fold: &mut PerClass,
    stop: &CancelToken,
) -> Result<Vec<Distribution>> {
    let doing = "counting sensitive values";
    let unit = if individual.is_empty() { Counted::Rows } else { Counted::Individuals };
    let mut all = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let mut counts = Vec::new();
        if let Some(value) = value {
            let columns = [&[value.clone().alias(VALUE)], individual].concat();
            let mut rows = table.clone().select(columns).context(doing)?;
            if unit == Counted::Individuals {
                let owned = rows.filter(column(INDIVIDUAL[0]).is_not_null()).context(doing)?;
                rows = owned.distinct().context(doing)?;
            }
            let groups = rows.aggregate(vec![column(VALUE)], vec![count(lit(1i64))]).context(doing)?;
            let mut stream = groups.execute_stream().await.context(doing)?;
            while let Some(batch) = stream.next().await {
                stop.check()?;
                let batch = batch.context(doing)?;
                let numbers = fold.numbers(index, batch.column(0))?;
                let rows = counted(batch.column(1))?;
                counts
                    .extend(numbers.into_iter().zip(rows).map(|(value, count)| ValueCount { value, count }));
            }
        }
        all.push(Distribution::new(unit, counts));
    }
    Ok(all)
}
