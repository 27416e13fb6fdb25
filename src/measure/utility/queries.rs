//! Random counts, in the input and in what a recoding shows.

use super::QueryUtility;
use super::shown::{Shown, rounded};
use super::spread::Spread;
use crate::decimal::ratio;

/// The steps that the queries may take; at least [`FEWEST_SCANS`] scans are made.
const QUERY_STEPS: usize = 3_000_000;
const FEWEST_SCANS: usize = 100;
/// The most queries.
const QUERIES: usize = 500;
/// A query counts at least one row of so many.
const ONE_OF: u64 = 1_000;

/// Counts the rows of random queries in the input and in the release.
pub(super) fn errors(shown: &Shown<'_>) -> Option<QueryUtility> {
    let all = shown.table.total_rows();
    let mut draw = Draw(1);
    let mut errors = Vec::new();
    for _ in 0..(QUERY_STEPS / shown.rows.len().max(1)).max(FEWEST_SCANS) {
        let conditions = query(shown, &mut draw);
        let Some((first, others)) = conditions.split_first() else { break };
        let mut true_count = 0u64;
        for (class, (code, rows)) in first.code_of.iter().zip(&shown.rows).enumerate() {
            if first.holds(*code) && others.iter().all(|other| other.holds(other.code_of[class])) {
                true_count += rows;
            }
        }
        if true_count.saturating_mul(ONE_OF) >= all && true_count > 0 {
            let true_count = ratio(true_count.into(), 1);
            let shares: Vec<(usize, Vec<f64>)> = conditions
                .iter()
                .map(|one| (one.column, one.shares(&shown.columns[one.column].regions)))
                .collect();
            let of_class = |(regions, rows): &(Vec<u32>, u64)| {
                let share = |(column, shares): &(usize, Vec<f64>)| shares[regions[*column] as usize];
                ratio((*rows).into(), 1) * shares.iter().map(share).product::<f64>()
            };
            let read = shown.classes.iter().map(of_class).sum::<f64>();
            errors.push((read - true_count).abs() / true_count);
        }
        if errors.len() == QUERIES {
            break;
        }
    }
    errors.sort_by(f64::total_cmp);
    let median_relative_error = rounded(*errors.get(errors.len() / 2)?);
    Some(QueryUtility { queries: errors.len() as u64, median_relative_error })
}

/// Draws a query around a row of the input.
fn query<'a>(shown: &'a Shown<'_>, draw: &mut Draw) -> Vec<Condition<'a>> {
    let mut row = draw.below(shown.table.total_rows());
    let class = shown.rows.iter().position(|rows| {
        let is_here = row < *rows;
        row = row.saturating_sub(*rows);
        is_here
    });
    let class = class.unwrap_or(0);
    let mut open: Vec<usize> = (0..shown.columns.len()).collect();
    let count = 1 + draw.below(3.min(open.len() as u64));
    let conditions = (0..count).map(|_| {
        let column = open.swap_remove(usize::try_from(draw.below(open.len() as u64)).unwrap_or(0));
        let of = &shown.columns[column];
        let code = of.code_of[class];
        let (first, last) = match of.column.has_intervals() {
            true => {
                let above = of.column.distinct() as u64 - u64::from(code);
                (draw.code_below(u64::from(code) + 1), code + draw.code_below(above))
            }
            false => (code, code),
        };
        Condition { column, code_of: &of.code_of, first, last }
    });
    conditions.collect()
}

/// A condition of a query.
struct Condition<'a> {
    column: usize,
    code_of: &'a [u32],
    /// The least and the greatest code.
    first: u32,
    last: u32,
}

impl Condition<'_> {
    fn holds(&self, code: u32) -> bool {
        (self.first..=self.last).contains(&code)
    }

    /// Returns the share of each region that satisfies the condition.
    fn shares(&self, regions: &[Spread]) -> Vec<f64> {
        regions.iter().map(|region| region.share_between(self.first, self.last)).collect()
    }
}

/// Random numbers by a fixed seed (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn code_below(&mut self, end: u64) -> u32 {
        u32::try_from(self.below(end)).unwrap_or(0)
    }

    /// Returns a number below `end`, which must not be 0.
    fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }
}
