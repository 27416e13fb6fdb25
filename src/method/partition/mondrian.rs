//! Mondrian: cuts the table in two again and again, as long as both parts satisfy the policy.
//!
//! A part is cut at the median of the column in which its values span the largest share of the column's domain, if both
//! sides satisfy every requirement; else at that of the next column (strict multidimensional partitioning,
//! LeFevre, DeWitt & Ramakrishnan 2006). A row goes left if its value is at most the median; where the median is the
//! greatest value, it goes right. What can be cut no more becomes a released class.
//!
//! Columns are cut in the order of their values: numbers and dates by size, text in the order of its hierarchy file, else
//! by itself. Numbers, dates and timestamps show the interval of their values in the class, text with a hierarchy the
//! finest label that all of them share, other columns the set of them. Classes that then show the same are one.
//!
//! # Contract
//! Every released class satisfies every requirement, and nothing is suppressed, if merging two classes that satisfy them
//! keeps them satisfied. The answer depends on the multiset of rows alone. Cuts are chosen by the quasi-identifiers;
//! sensitive values can only forbid one. It is greedy: it promises no least loss. Deviations from the paper: a median that
//! is the greatest value is cut below it, where the paper tries the next column; columns of equal span are tried in
//! policy order; a categorical column is cut in its order, not into the children of its hierarchy's root.

use crate::class::{ClassTable, EncodedColumn, Region, ReleasedClasses, Union};
use crate::decimal::ratio;
use crate::error::Result;
use crate::generalize::Value;
use crate::method::Problem;

/// Parts the base classes of a problem's table; `None` if all of them together do not satisfy the policy.
///
/// # Errors
/// A data error when memory runs out, an interruption.
pub fn strict(problem: &Problem<'_>) -> Result<Option<ReleasedClasses>> {
    let table = problem.table;
    let mut mondrian = Mondrian::new(problem)?;
    let all: Vec<u32> = (0u32..).take(table.base().len()).collect();
    if all.is_empty() || !mondrian.union.holds(&all) {
        return Ok(None);
    }
    let (mut open, mut parts) = (vec![all], Vec::new());
    while let Some(part) = open.pop() {
        problem.stop.check()?;
        match mondrian.cut(part) {
            Cut::Sides(left, right) => open.extend([right, left]),
            Cut::Whole(part) => parts.push(part),
        }
    }
    released(table, &parts).map(Some)
}

struct Mondrian<'a> {
    table: &'a ClassTable,
    union: Union<'a>,
    /// For each column the place of each value in its domain, from 0 to 1.
    places: Vec<Vec<f64>>,
}

enum Cut {
    Sides(Vec<u32>, Vec<u32>),
    Whole(Vec<u32>),
}

impl<'a> Mondrian<'a> {
    fn new(problem: &Problem<'a>) -> Result<Self> {
        let union = Union::new(problem.table, problem.requirements)?;
        let places = problem.table.columns().iter().map(places).collect::<Result<_>>()?;
        Ok(Self { table: problem.table, union, places })
    }

    fn cut(&mut self, part: Vec<u32>) -> Cut {
        let base = self.table.base();
        let spans = (0..self.places.len()).filter_map(|column| {
            let codes = part.iter().map(|class| self.table.code(base, *class as usize, column));
            let (least, most) =
                codes.fold((u32::MAX, 0), |(least, most), code| (least.min(code), most.max(code)));
            let place = |code: u32| self.places[column][code as usize];
            (least < most).then(|| (column, place(most) - place(least), most))
        });
        let mut spans: Vec<(usize, f64, u32)> = spans.collect();
        // Stable: columns of equal span stay in policy order.
        spans.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (column, _, most) in spans {
            let code = |class: &u32| self.table.code(base, *class as usize, column);
            let last_on_the_left = self.median(&part, column).min(most - 1);
            let (left, right): (Vec<u32>, Vec<u32>) =
                part.iter().partition(|class| code(class) <= last_on_the_left);
            if self.union.holds(&left) && self.union.holds(&right) {
                return Cut::Sides(left, right);
            }
        }
        Cut::Whole(part)
    }

    /// Returns the least value that at least half of the rows do not exceed.
    fn median(&self, part: &[u32], column: usize) -> u32 {
        let base = self.table.base();
        let mut rows: Vec<(u32, u64)> = part
            .iter()
            .map(|class| (self.table.code(base, *class as usize, column), base.rows_of(*class as usize)))
            .collect();
        rows.sort_unstable();
        let all: u64 = rows.iter().map(|(_, rows)| rows).sum();
        let mut below = 0;
        for (code, rows) in rows {
            below += rows;
            if below >= all - below {
                return code;
            }
        }
        0
    }
}

/// Returns the place of each value of a column in its domain, from 0 to 1: numbers, dates and timestamps by size, other
/// values by their number. NULL is at 0, with the least value.
fn places(column: &EncodedColumn) -> Result<Vec<f64>> {
    let number = |value: &Value| match value {
        Value::Int(value) => i64::try_from(*value).ok().map(|value| value as f64),
        Value::Float(value) => Some(*value),
        Value::Date(days) => Some(f64::from(*days)),
        Value::Timestamp(ticks, ..) => Some(*ticks as f64),
        _ => None,
    };
    let mut numbers = vec![None; column.distinct()];
    // Level 0 may merge values; the greatest stands for them.
    for (value, code) in column.level(0).of_value().iter().enumerate() {
        numbers[*code as usize] = match Value::read(column.values(), value)? {
            Value::Null => None,
            other => Some(number(&other).unwrap_or(f64::NAN)),
        };
    }
    let least = numbers.iter().flatten().copied().reduce(f64::min);
    let most = numbers.iter().flatten().copied().reduce(f64::max);
    let span =
        least.zip(most).map(|(least, most)| most - least).filter(|span| span.is_finite() && *span > 0.0);
    let is_plain = numbers.iter().flatten().all(|number| number.is_finite());
    let count = numbers.len() as u128;
    let place = |(code, number): (usize, &Option<f64>)| match (least, span) {
        (Some(least), Some(span)) if is_plain => number.map_or(0.0, |number| (number - least) / span),
        _ => ratio(code as u128, count.saturating_sub(1).max(1)),
    };
    Ok(numbers.iter().enumerate().map(place).collect())
}

/// Gives every part the finest regions that hold its values.
fn released(table: &ClassTable, parts: &[Vec<u32>]) -> Result<ReleasedClasses> {
    let mut class_of_base = vec![None; table.base().len()];
    let mut regions = Vec::with_capacity(parts.len());
    for (number, part) in (0u32..).zip(parts) {
        for class in part {
            class_of_base[*class as usize] = Some(number);
        }
        let shown = table.columns().iter().enumerate().map(|(at, column)| {
            let mut codes: Vec<u32> =
                part.iter().map(|class| table.code(table.base(), *class as usize, at)).collect();
            codes.sort_unstable();
            codes.dedup();
            Region::around(column, codes)
        });
        regions.push(shown.collect::<Result<_>>()?);
    }
    ReleasedClasses::new(table, class_of_base, regions)
}

#[cfg(test)]
#[path = "mondrian_tests.rs"]
mod tests;
