//! Rows that are equal in two inputs: do they belong to the same people?
//!
//! A column that numbers rows names other people in the next input, and all of them seem to come back.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::{count, min, sum};
use datafusion::logical_expr::{Expr, JoinType, lit, when};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::shown_rows::{ROW, ShownRows, compared_name, lost};
use super::{DOING, Matching};
use crate::engine::{Context, column};
use crate::error::Result;
use crate::progress::CancelToken;

/// The rows of two inputs that are equal in the values by which rows are compared, where each input has one such row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EqualRows {
    pub(crate) of_one_person: u64,
    pub(crate) of_two: u64,
    /// The rows of the input that has fewer.
    pub(crate) rows: u64,
}

impl EqualRows {
    /// Returns whether names were given anew: more of them belong to two people than to one, and they are no coincidence.
    pub(crate) fn are_of_others(&self) -> bool {
        self.of_two > self.of_one_person && 10 * self.of_two >= self.rows
    }
}

/// Returns the equal rows of two inputs.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn equal_rows(
    [first, second]: [&ShownRows<'_>; 2],
    matching: &Matching,
    stop: &CancelToken,
) -> Result<EqualRows> {
    // Without named columns, a row is matched by all its values.
    let by: Vec<String> = match matching.row_is_named {
        true => (0..matching.compared.len()).map(compared_name).collect(),
        false => vec![ROW[2].to_owned()],
    };
    if by.is_empty() {
        return Ok(EqualRows::default());
    }
    let [a, b] = [single(first, &by)?, single(second, &by)?];
    let renamed = |name: &String| column(name).alias(format!("other_{name}"));
    let people = [ROW[0].to_owned(), ROW[1].to_owned()];
    let b = b.select(by.iter().chain(&people).map(renamed).collect::<Vec<_>>()).context(DOING)?;
    let others: Vec<String> = by.iter().map(|name| format!("other_{name}")).collect();
    let (left, right): (Vec<&str>, Vec<&str>) =
        by.iter().zip(&others).map(|(one, other)| (one.as_str(), other.as_str())).unzip();
    let pairs = a.join(b, JoinType::Inner, &left, &right, None).context(DOING)?;
    let is_same = people.iter().map(|name| column(name).eq(column(format!("other_{name}"))));
    let is_same = is_same.reduce(Expr::and).ok_or_else(lost)?;
    let same = when(is_same, lit(1i64)).otherwise(lit(0i64)).context(DOING)?;
    let [pairs, same] = numbers(pairs, [count(lit(1i64)), sum(same)], stop).await?;
    let mut rows = u64::MAX;
    for release in [first, second] {
        let [all, _] = numbers(release.table.clone(), [count(lit(1i64)), count(lit(1i64))], stop).await?;
        rows = rows.min(all);
    }
    Ok(EqualRows { of_one_person: same, of_two: pairs - same, rows })
}

/// Returns the rows whose values no other row of their input has.
fn single(release: &ShownRows<'_>, by: &[String]) -> Result<DataFrame> {
    let has_values = by.iter().map(|name| column(name).is_not_null()).reduce(Expr::and).ok_or_else(lost)?;
    let by: Vec<Expr> = by.iter().map(column).collect();
    let people = [ROW[0], ROW[1]].map(|name| min(column(name)).alias(name));
    let counted = [people.to_vec(), vec![count(lit(1i64)).alias("rows")]].concat();
    let all = release.table.clone().filter(has_values).context(DOING)?.aggregate(by, counted);
    all.context(DOING)?.filter(column("rows").eq(lit(1i64))).context(DOING)
}

async fn numbers(table: DataFrame, of: [Expr; 2], stop: &CancelToken) -> Result<[u64; 2]> {
    let [first, second] = of;
    let of = vec![first.alias("first"), second.alias("second")];
    let mut stream = table.aggregate(Vec::new(), of).context(DOING)?.execute_stream().await.context(DOING)?;
    let mut found = [0; 2];
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        for (found, column) in found.iter_mut().zip(batch.columns()) {
            let counts = column.as_primitive_opt::<Int64Type>().ok_or_else(lost)?;
            *found += counts.iter().flatten().map(i64::unsigned_abs).sum::<u64>();
        }
    }
    Ok(found)
}
