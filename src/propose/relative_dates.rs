//! Dates that are never before those of another column and soon after them, as discharges are after
//! admissions: the days between them say less than a second date.

use arrow::datatypes::DataType;
use datafusion::functions_aggregate::expr_fn::approx_distinct;
use datafusion::logical_expr::{Expr, cast, when};
use datafusion::prelude::DataFrame;

use super::facts::{count_if, narrow, one_row, whole};
use crate::engine::{Context, Run, column};
use crate::error::Result;

/// The number of columns of dates that are compared with one another.
const COMPARED: usize = 8;
/// The distinct differences in days are at least this many times fewer than the distinct dates.
const TIMES_FEWER: u64 = 2;

/// Returns columns of `dates`, each with the column from which its days may be counted, in a table with
/// so many `rows`. Half of the rows or more have both.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn relative_dates<'a>(
    table: &DataFrame,
    dates: &[&'a str],
    rows: u64,
    run: &Run,
) -> Result<Vec<(&'a str, &'a str)>> {
    let dates = dates.get(..COMPARED).unwrap_or(dates);
    let pairs = dates.iter().flat_map(|date| dates.iter().map(move |since| (*date, *since)));
    let pairs: Vec<(&str, &str)> = pairs.filter(|(date, since)| date != since).collect();
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    run.stop.check()?;
    let mut counts = Vec::new();
    for (at, (date, since)) in pairs.iter().enumerate() {
        let known = column(*date).is_not_null().and(column(*since).is_not_null());
        let days = day(date) - day(since);
        let among = |of: Expr| when(known.clone(), of).end().context("comparing dates");
        counts.push(count_if(known.clone())?.alias(format!("known_{at}")));
        counts.push(count_if(day(date).lt(day(since)))?.alias(format!("before_{at}")));
        counts.push(approx_distinct(among(days)?).alias(format!("days_{at}")));
        counts.push(approx_distinct(among(day(date))?).alias(format!("dates_{at}")));
    }
    let row = one_row(&narrow(table, dates.iter().copied())?, counts).await?;
    let mut found = Vec::new();
    for (at, (date, since)) in pairs.into_iter().enumerate() {
        let count = |what: &str| Ok(whole(&row, &format!("{what}_{at}"))?.unwrap_or(0));
        let (known, days): (u64, u64) = (count("known")?, count("days")?);
        let is_near = days.saturating_mul(TIMES_FEWER) <= count("dates")?;
        if known > 0 && known >= rows.div_ceil(2) && count("before")? == 0 && is_near {
            found.push((days, date, since));
        }
    }
    // The nearest first; what days are counted from is a date itself.
    found.sort_by_key(|(days, ..)| *days);
    let mut chosen: Vec<(&str, &str)> = Vec::new();
    for (_, date, since) in found {
        if chosen.iter().all(|(other, from)| *other != date && *other != since && *from != date) {
            chosen.push((date, since));
        }
    }
    Ok(chosen)
}

/// Builds the number of a date's or moment's day.
fn day(name: &str) -> Expr {
    cast(cast(column(name), DataType::Date32), DataType::Int32)
}
