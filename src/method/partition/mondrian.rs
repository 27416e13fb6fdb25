//! Mondrian: splits the rows in two at medians, again and again, while both sides satisfy the policy.
//!
//! A part is cut at the median of the column in which its values span the largest share of the column's domain, if both
//! sides satisfy every requirement; else at that of the next column (strict multidimensional partitioning,
//! LeFevre, DeWitt & Ramakrishnan 2006). Rows up to the median go left, the others right. If the median is the greatest
//! value, its rows go right and all others left. What can be cut no more becomes a released class.
//!
//! Columns are cut in the order of their values: numbers and dates by size, others in the order of their hierarchy file,
//! else by their text; NULL is below all. Numbers, dates and timestamps show the interval of their values in the class,
//! other columns with levels between the values and the top the finest label that all of them share, or everything, and
//! the rest the set of them. Classes that then show the same are one.
//!
//! # Contract
//! All rows together must satisfy every requirement; otherwise nothing is found, whatever the suppression limit. Each side
//! of a cut satisfies every requirement. A class made of several that show the same is suppressed if it fails one, which
//! cannot be where two classes that hold merge into one that holds. The answer depends on the multiset of rows and the
//! order of the columns in the policy. Cuts are ranked by the quasi-identifiers; sensitive values can only veto one. It is
//! greedy: it promises no least loss. Deviations from the paper: a median that is the greatest value is cut below it, where
//! the paper tries the next column; columns of equal span are tried in policy order; a categorical column is cut in its
//! order, not into the children of its hierarchy's root.

use super::{Row, candidate};
use crate::class::{ClassTable, EncodedColumn, Held, Region, ReleasedClasses, Union};
use crate::decimal::ratio;
use crate::doc::Doc;
use crate::error::Result;
use crate::generalize::Value;
use crate::method::{Method, Outcome, Problem};
use crate::papers;
use crate::progress::Phase;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "mondrian",
        summary: "splits the rows at medians while both sides satisfy the policy; classes show intervals, labels or sets",
        parameters: "",
        example: "method = \"mondrian\"",
        paper: Some(papers::LEFEVRE_2006),
    },
    make: || Box::new(Strict),
};

/// The method that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct Strict;

impl Method for Strict {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let (released, tried) = strict(problem)?;
        let best = released.map(|released| candidate(problem, released)).transpose()?.flatten();
        Ok(Outcome {
            best: best.into_iter().collect(),
            nodes: None,
            evaluated: tried,
            proven: false,
            bound: None,
        })
    }
}

/// Partitions the base classes of a problem's table, and counts the cuts that were tried; no classes if all base classes
/// together do not satisfy the policy.
///
/// # Errors
/// A data error when memory runs out, an interruption.
fn strict(problem: &Problem<'_>) -> Result<(Option<ReleasedClasses>, u64)> {
    let table = problem.table;
    let mut mondrian = Mondrian::new(problem)?;
    // Parts of base classes, a column of a part in order, and the class of each.
    let mut held = Held::new(table.budget());
    held.at_least(
        table.base().len() * (2 * size_of::<u32>() + size_of::<(u32, u64)>() + size_of::<Option<u32>>()),
    )?;
    let all: Vec<u32> = (0u32..).take(table.base().len()).collect();
    problem.progress.begin(Phase::Search, all.len() as u64);
    let mut whole = 0;
    if all.is_empty() || !mondrian.union.holds(&all) {
        return Ok((None, 0));
    }
    let (mut open, mut parts) = (vec![all], Vec::new());
    while let Some(part) = open.pop() {
        problem.stop.check()?;
        match mondrian.cut(part) {
            Cut::Sides(left, right) => open.extend([right, left]),
            Cut::Whole(part) => {
                whole += part.len() as u64;
                problem.progress.done(whole);
                parts.push(part);
            }
        }
    }
    Ok((Some(released(table, &parts)?), mondrian.tried))
}

struct Mondrian<'a> {
    table: &'a ClassTable,
    union: Union<'a>,
    /// For each column the position of each value in its domain, from 0 to 1.
    positions: Vec<Vec<f64>>,
    /// The number of cuts that were tried.
    tried: u64,
}

enum Cut {
    Sides(Vec<u32>, Vec<u32>),
    Whole(Vec<u32>),
}

impl<'a> Mondrian<'a> {
    fn new(problem: &Problem<'a>) -> Result<Self> {
        let union = Union::new(problem.table, problem.requirements)?;
        let positions = problem.table.columns().iter().map(positions).collect::<Result<_>>()?;
        Ok(Self { table: problem.table, union, positions, tried: 0 })
    }

    fn cut(&mut self, part: Vec<u32>) -> Cut {
        let base = self.table.base();
        let spans = (0..self.positions.len()).filter_map(|column| {
            let codes = part.iter().map(|class| self.table.code(base, *class as usize, column));
            let (least, most) =
                codes.fold((u32::MAX, 0), |(least, most), code| (least.min(code), most.max(code)));
            let position = |code: u32| self.positions[column][code as usize];
            (least < most).then(|| (column, position(most) - position(least), most))
        });
        let mut spans: Vec<(usize, f64, u32)> = spans.collect();
        // Stable: columns of equal span stay in policy order.
        spans.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (column, _, most) in spans {
            let code = |class: &u32| self.table.code(base, *class as usize, column);
            let last_on_the_left = self.median(&part, column).min(most - 1);
            let (left, right): (Vec<u32>, Vec<u32>) =
                part.iter().partition(|class| code(class) <= last_on_the_left);
            self.tried += 1;
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

/// Returns the position of each value of a column in its domain, from 0 to 1: numbers, dates and timestamps by size, other
/// values by their number. NULL is at 0, with the least value.
fn positions(column: &EncodedColumn) -> Result<Vec<f64>> {
    // The codes of a column with a hierarchy file are in the file's order.
    let is_by_size = column.hierarchy().has_intervals();
    let number = |value: &Value| match value {
        _ if !is_by_size => None,
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::Decimal(digits, _) => digits.to_string().parse().ok(),
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
    let position = |(code, number): (usize, &Option<f64>)| match (least, span) {
        (Some(least), Some(span)) if is_plain => number.map_or(0.0, |number| (number - least) / span),
        _ => ratio(code as u128, count.saturating_sub(1).max(1)),
    };
    Ok(numbers.iter().enumerate().map(position).collect())
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
