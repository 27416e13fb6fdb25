//! Proposes to merge the values of a column for which there is no better hierarchy.

use datafusion::prelude::{DataFrame, SessionContext};

use super::facts::{ColumnFacts, narrow};
use super::steps::Levels;
use crate::error::Result;
use crate::generalize::merge;
use crate::input::merged::{ColumnToMerge, RowsToCount, frequent_values};
use crate::progress::CancelToken;

/// Columns with more distinct values are not merged.
const MOST: u64 = 10_000;
/// Integers with more distinct values are numbers, not codes.
const MOST_CODES: u64 = 10;
/// A value is frequent if at least one holder in this many holds it.
const FREQUENT: u64 = 3;
/// The k that a first policy requires.
pub(super) const K: u64 = 5;

/// Returns the rule that merges the values of a column; `None` where fewer than three of them are
/// held by enough individuals, or are in enough rows if no column identifies individuals.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn find(
    session: &SessionContext,
    table: &DataFrame,
    facts: &ColumnFacts,
    individual: Option<&str>,
    stop: &CancelToken,
) -> Result<Option<Levels>> {
    let distinct = facts.distinct.filter(|distinct| facts.is_counted && (3..=MOST).contains(distinct));
    let is_code = facts.data_type.is_integer() && distinct <= Some(MOST_CODES);
    if distinct.is_none() || facts.is_dates_as_text || !(is_code || facts.data_type.is_string()) {
        return Ok(None);
    }
    let table = narrow(table, [facts.name.as_str()].into_iter().chain(individual))?;
    let column = ColumnToMerge { name: &facts.name, individual, least_holders: K, levels: 0, label: None };
    let rows = RowsToCount { session, table: &table, rows: None };
    let (counted, _) = frequent_values(&column, &rows, stop).await?;
    if counted.listed() < 3 {
        return Ok(None);
    }
    let levels = match counted.listed() {
        ..5 => 1,
        5..9 => 2,
        _ => 3,
    };
    let by = match counted.is_one_held_by_one_in(FREQUENT) {
        true => format!(", by = {:?}", merge::COUNTS),
        false => String::new(),
    };
    let settings = vec![(merge::DOC.name, format!("{{ levels = {levels}{by} }}"))];
    Ok(Some(Levels { settings, why: None }))
}
