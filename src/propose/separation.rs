//! Finds the columns that single individuals out, by the share of rows that are the only one with
//! their values.
//!
//! The share of distinct tuples and the greedy choice of the next column that separates most are
//! those of [`papers::MOTWANI_XU_2007`]; deviation: exact, over all rows instead of a sample, and
//! with the share of unique rows, the quantity that concerns an individual.

use datafusion::prelude::DataFrame;
use serde::Serialize;

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

/// The share of rows that are nearly all.
pub(super) const NEARLY_ALL: f64 = 0.9;

/// Undecided columns that single nearly all rows out together.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    /// The columns, and the share of rows.
    pub undecided: SingledOut,
    /// Whether it takes the proposed quasi-identifiers, too.
    pub with_quasi: bool,
}

/// Columns and the rows that they single out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SingledOut {
    /// The columns, the one that makes most rows unique first.
    pub columns: Vec<String>,
    /// The share of rows that are unique on them.
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

/// Returns undecided columns that single nearly all rows out, by themselves or with the
/// quasi-identifiers `quasi`, if these, which make the share `of_quasi` of the rows unique, do not
/// do so already.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn together(
    table: &DataFrame,
    undecided: &[&str],
    (quasi, of_quasi): (&[&str], f64),
    stop: &CancelToken,
) -> Result<Option<Together>> {
    if undecided.len() < 2 {
        return Ok(None);
    }
    let all = |unique_share| SingledOut {
        columns: undecided.iter().map(|name| (*name).to_owned()).collect(),
        unique_share,
    };
    let alone = unique_share(table, undecided, stop).await?;
    if alone >= NEARLY_ALL {
        let fewest = greedy(table, undecided, stop).await?;
        let is_enough = |found: &SingledOut| found.unique_share >= NEARLY_ALL && found.columns.len() > 1;
        let fewest = fewest.into_iter().find(is_enough);
        let undecided = fewest.unwrap_or_else(|| all(alone));
        return Ok(Some(Together { undecided, with_quasi: false }));
    }
    if quasi.is_empty() || of_quasi >= NEARLY_ALL {
        return Ok(None);
    }
    let with = unique_share(table, &[quasi, undecided].concat(), stop).await?;
    Ok((with >= NEARLY_ALL).then(|| Together { undecided: all(with), with_quasi: true }))
}
