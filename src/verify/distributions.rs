//! The distribution of each sensitive column over a whole table: what models of distributions
//! compare its classes with.

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::each_class::CountedColumn;
use super::per_class::{INDIVIDUAL, PerClass};
use crate::engine::functions::counted;
use crate::engine::{Context, column};
use crate::error::Result;
use crate::model::{Distribution, ValueCount};
use crate::progress::CancelToken;

const VALUE: &str = "kanon_value";
const DOING: &str = "counting sensitive values";

/// Counts the values of each sensitive column of `fold` over a table, under the numbers that `fold`
/// gives them, which are in the order of the values: the rows with each value, or the distinct
/// individuals where their two hash columns are given. A column whose whole no model reads has no
/// distribution.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn distributions(
    table: &DataFrame,
    columns: &[CountedColumn],
    individual: &[Expr],
    fold: &mut PerClass,
    stop: &CancelToken,
) -> Result<Vec<Distribution>> {
    let is_asked = !individual.is_empty() && columns.iter().any(|counted| counted.read_whole.is_some());
    let individuals = if is_asked { individuals_of(table, individual, stop).await? } else { 0 };
    let mut all = Vec::with_capacity(columns.len());
    for (index, counted) in columns.iter().enumerate() {
        let Some(column) = &counted.read_whole else {
            all.push(Distribution::of_rows(Vec::new()));
            continue;
        };
        let (counts, values) = counts_of(table, &counted.seen, individual, (fold, index), stop).await?;
        let distribution = match individual.is_empty() {
            true => Distribution::of_rows(counts),
            false => Distribution::of_individuals(counts, individuals),
        };
        all.push(match values {
            Some(values) => column.facts_naively(&values)?.add_to(distribution)?,
            None => distribution,
        });
    }
    Ok(all)
}

/// Counts the values of one column; also returns them, in their order.
async fn counts_of(
    table: &DataFrame,
    value: &Expr,
    individual: &[Expr],
    (fold, index): (&mut PerClass, usize),
    stop: &CancelToken,
) -> Result<(Vec<ValueCount>, Option<ArrayRef>)> {
    let doing = DOING;
    let columns = [&[value.clone().alias(VALUE)], individual].concat();
    let mut rows = table.clone().select(columns).context(doing)?;
    if !individual.is_empty() {
        let owned = rows.filter(column(INDIVIDUAL[0]).is_not_null()).context(doing)?;
        rows = owned.distinct().context(doing)?;
    }
    let groups = rows.aggregate(vec![column(VALUE)], vec![count(lit(1i64))]).context(doing)?;
    let sorted = groups.sort(vec![column(VALUE).sort(true, true)]).context(doing)?;
    let mut stream = sorted.execute_stream().await.context(doing)?;
    let (mut counts, mut values) = (Vec::new(), Vec::new());
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(doing)?;
        let numbers = fold.numbers(index, batch.column(0))?;
        let rows = counted(batch.column(1))?;
        counts.extend(numbers.into_iter().zip(rows).map(|(value, count)| ValueCount { value, count }));
        values.push(ArrayRef::clone(batch.column(0)));
    }
    let parts: Vec<&dyn Array> = values.iter().map(|part| &**part).collect();
    let values = if parts.is_empty() { None } else { Some(concat(&parts).context(doing)?) };
    Ok((counts, values))
}

/// Counts the distinct individuals of a table.
async fn individuals_of(table: &DataFrame, individual: &[Expr], stop: &CancelToken) -> Result<u64> {
    let people = table.clone().select(individual.to_vec()).context(DOING)?;
    let people = people.filter(column(INDIVIDUAL[0]).is_not_null()).context(DOING)?;
    let people = people.distinct().context(DOING)?;
    let counting = people.aggregate(Vec::new(), vec![count(lit(1i64))]).context(DOING)?;
    let mut stream = counting.execute_stream().await.context(DOING)?;
    let mut individuals = 0;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        individuals += counted(batch.context(DOING)?.column(0))?.iter().sum::<u64>();
    }
    Ok(individuals)
}
