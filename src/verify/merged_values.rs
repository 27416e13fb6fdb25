//! Checks that enough individuals hold each value that a tree of `merge` lists.
//!
//! Rows are read one by one, without a GROUP BY, and with nothing of the counting that made the tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::UInt64Type;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use crate::class::{Budget, Held};
use crate::engine::functions::{random_keys, row_hash};
use crate::engine::{Context, PoolBudget, column};
use crate::error::{Error, Result};
use crate::generalize::Value;
use crate::generalize::merge::OTHER;
use crate::parameter::TextTable;
use crate::progress::CancelToken;

const DOING: &str = "verifying merged values";

/// Checks that at least `least` individuals hold each value that the tree of a column lists; rows,
/// without an individual column.
///
/// # Errors
/// An unmet error if a listed value has too few holders; a data error when reading fails or memory runs out.
pub(crate) async fn check_listed(
    session: &SessionContext,
    input: &DataFrame,
    (name, tree): (&str, &TextTable),
    individual: Option<&str>,
    least: u64,
    stop: &CancelToken,
) -> Result<()> {
    let listed = tree.rows().iter().filter_map(|row| row.first()).filter(|value| *value != OTHER);
    let mut holders: HashMap<&str, HashSet<u64>> =
        listed.map(|value| (value.as_str(), HashSet::new())).collect();
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "holders of merged values"));
    let (mut held, mut bytes, mut number) = (Held::new(&budget), 0, 0u64);
    let mut columns = vec![column(name)];
    let mut rows = input.clone();
    if let Some(individual) = individual {
        columns.push(row_hash(random_keys(DOING)?[0], vec![column(individual)]));
        rows = rows.filter(column(individual).is_not_null()).context(DOING)?;
    }
    let mut batches = rows.select(columns).context(DOING)?.execute_stream().await.context(DOING)?;
    while let Some(batch) = batches.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let hashes = batch.columns().get(1).and_then(|hashes| hashes.as_primitive_opt::<UInt64Type>());
        for row in 0..batch.num_rows() {
            number += 1;
            let Some(text) = Value::read(batch.column(0), row)?.text_form() else { continue };
            let Some(seen) = holders.get_mut(text.as_str()) else { continue };
            let is_new =
                (seen.len() as u64) < least && seen.insert(hashes.map_or(number, |hashes| hashes.value(row)));
            bytes += usize::from(is_new) * 2 * size_of::<u64>();
        }
        held.at_least(bytes)?;
    }
    match holders.values().all(|seen| seen.len() as u64 >= least) {
        true => Ok(()),
        false => Err(Error::unmet(
            "verification refused: the tree of a merged column names a value that too few individuals hold",
        )),
    }
}
