//! Finds the columns that single individuals out, by the share of rows that are the only one with
//! their values.
//!
//! The share of distinct tuples and the greedy choice of the next column that separates most are
//! those of [`papers::MOTWANI_XU_2007`]; deviation: exact, over all rows instead of a sample, and
//! with the share of unique rows, the quantity that concerns an individual.

use datafusion::prelude::DataFrame;

use super::facts::narrow;
use crate::error::Result;
use crate::measure::RiskMeasure;
use crate::measure::sample_uniqueness::SampleUniqueness;
#[cfg(doc)]
use crate::papers;
use crate::progress::CancelToken;
use crate::release::profile::class_sizes;

/// The number of columns that the greedy choice considers.
const CANDIDATES: usize = 8;
/// The most columns that it combines.
const TOGETHER: usize = 3;

/// Columns and the rows that they single out.
#[derive(Debug, Clone, PartialEq)]
pub struct SingledOut {
    /// The columns, the one that separates most first.
    pub columns: Vec<String>,
    /// The share of rows that are the only one with their values of these columns.
    pub unique_share: f64,
}

/// Returns the share of rows of `table` that are the only one with their values of `names`.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn unique_share(table: &DataFrame, names: &[&str], stop: &CancelToken) -> Result<f64> {
    Ok(separated(table, names, stop).await?.0)
}

/// Returns the share of unique rows, and the number of distinct tuples.
async fn separated(table: &DataFrame, names: &[&str], stop: &CancelToken) -> Result<(f64, u64)> {
    let table = narrow(table, names.iter().copied())?;
    let sizes = class_sizes(&table, names, stop, "grouping the input by some of its columns").await?;
    Ok((SampleUniqueness.value(&sizes).unwrap_or_default(), sizes.classes()))
}

/// Returns the column, the pair and the three columns of `names` that single out most rows, found
/// greedily among the first eight names. Stops when no row is left to single out.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn greedy(table: &DataFrame, names: &[&str], stop: &CancelToken) -> Result<Vec<SingledOut>> {
    let mut open: Vec<&str> = names.iter().copied().take(CANDIDATES).collect();
    let (mut taken, mut found): (Vec<&str>, Vec<SingledOut>) = (Vec::new(), Vec::new());
    while taken.len() < TOGETHER && found.last().is_none_or(|last| last.unique_share < 1.0) {
        let mut best: Option<(usize, (f64, u64))> = None;
        for (at, name) in open.iter().enumerate() {
            stop.check()?;
            // Among equal shares of unique rows, more distinct tuples separate more.
            let separated = separated(table, &[&taken[..], &[*name]].concat(), stop).await?;
            if best.is_none_or(|(_, most)| separated > most) {
                best = Some((at, separated));
            }
        }
        let Some((at, (unique_share, _))) = best else { break };
        taken.push(open.remove(at));
        found.push(SingledOut {
            columns: taken.iter().map(|name| (*name).to_owned()).collect(),
            unique_share,
        });
    }
    Ok(found)
}
