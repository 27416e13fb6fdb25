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
    /// Those of one person whose own names differ.
    pub(crate) of_another_name: u64,
    pub(crate) of_two: u64,
    /// The rows of the input that has fewer.
    pub(crate) rows: u64,
}

impl EqualRows {
    /// Returns whether the rows of people were numbered anew: one in fifty is no coincidence.
    pub(crate) fn have_other_names(&self) -> bool {
        50 * self.of_another_name > self.of_one_person
    }

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
    let names = ROW.map(str::to_owned);
    let b = b
        .select(
            by.iter().chain(names.iter().filter(|name| !by.contains(name))).map(renamed).collect::<Vec<_>>(),
        )
        .context(DOING)?;
    let others: Vec<String> = by.iter().map(|name| format!("other_{name}")).collect();
    let (left, right): (Vec<&str>, Vec<&str>) =
        by.iter().zip(&others).map(|(one, other)| (one.as_str(), other.as_str())).unzip();
    let pairs = a.join(b, JoinType::Inner, &left, &right, None).context(DOING)?;
    let is_same = |name: &str| column(name).eq(column(format!("other_{name}")));
    let one = |is_one: Expr| when(is_one, lit(1i64)).otherwise(lit(0i64)).context(DOING);
    let is_of_one_person = is_same(ROW[0]).and(is_same(ROW[1]));
    let has_another_name =
        one(is_of_one_person.clone().and(column(ROW[2]).not_eq(column(format!("other_{}", ROW[2])))))?;
    let counted = [count(lit(1i64)), sum(one(is_of_one_person)?), sum(has_another_name)];
    let [pairs, same, of_another_name] = numbers(pairs, counted, stop).await?;
    let mut rows = u64::MAX;
    for release in [first, second] {
        let [all] = numbers(release.table.clone(), [count(lit(1i64))], stop).await?;
        rows = rows.min(all);
    }
    Ok(EqualRows { of_one_person: same, of_another_name, of_two: pairs - same, rows })
}

/// Returns the rows whose values no other row of their input has.
fn single(release: &ShownRows<'_>, by: &[String]) -> Result<DataFrame> {
    let has_values = by.iter().map(|name| column(name).is_not_null()).reduce(Expr::and).ok_or_else(lost)?;
    let names: Vec<Expr> = ROW
        .iter()
        .filter(|name| !by.iter().any(|by| by == *name))
        .map(|name| min(column(*name)).alias(*name))
        .collect();
    let by: Vec<Expr> = by.iter().map(column).collect();
    let counted = [names, vec![count(lit(1i64)).alias("rows")]].concat();
    let all = release.table.clone().filter(has_values).context(DOING)?.aggregate(by, counted);
    all.context(DOING)?.filter(column("rows").eq(lit(1i64))).context(DOING)
}

async fn numbers<const N: usize>(table: DataFrame, of: [Expr; N], stop: &CancelToken) -> Result<[u64; N]> {
    let of = of.into_iter().enumerate().map(|(at, number)| number.alias(format!("number_{at}"))).collect();
    let mut stream = table.aggregate(Vec::new(), of).context(DOING)?.execute_stream().await.context(DOING)?;
    let mut found = [0; N];
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
