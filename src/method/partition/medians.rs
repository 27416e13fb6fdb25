//! Cuts at medians: of the column that spans the most, at the median of the part's rows.

use super::cuts::{Cut, Cuts, Judge};
use crate::class::{ClassTable, EncodedColumn, Held};
use crate::decimal::ratio;
use crate::error::Result;
use crate::generalize::Value;

/// By what the columns of a part are ordered: the first one that can be cut is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// The share of its domain that the part's values span.
    Span,
    /// The entropy of the part's values, as a share of that of all rows' values.
    Entropy,
}

/// The median cuts of the parts of a class table.
pub(super) struct Medians<'a> {
    table: &'a ClassTable,
    first: First,
    /// For each column the position of each value in its domain, from 0 to 1.
    positions: Vec<Vec<f64>>,
    /// The entropy of each column among all rows.
    entropies: Vec<f64>,
    _held: Held,
}

impl<'a> Medians<'a> {
    /// Prepares the cuts of a table's parts.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn new(table: &'a ClassTable, first: First) -> Result<Self> {
        let mut held = Held::new(table.budget());
        // Parts of base classes before and after a cut, and a column of one in order.
        held.at_least(table.base().len() * (2 * size_of::<u32>() + size_of::<(u32, u64)>()))?;
        let positions = table.columns().iter().map(positions).collect::<Result<_>>()?;
        let mut medians = Self { table, first, positions, entropies: Vec::new(), _held: held };
        if first == First::Entropy {
            let all = medians.whole();
            medians.entropies =
                (0..medians.positions.len()).map(|column| medians.entropy(&all, column)).collect();
        }
        Ok(medians)
    }

    fn code(&self, class: u32, column: usize) -> u32 {
        self.table.code(self.table.base(), class as usize, column)
    }

    /// Returns the columns in which a part has several values, the one to cut first, each with its greatest value.
    fn columns(&self, part: &[u32]) -> Vec<(usize, u32)> {
        let ordered = (0..self.positions.len()).filter_map(|column| {
            let codes = part.iter().map(|class| self.code(*class, column));
            let (least, most) =
                codes.fold((u32::MAX, 0), |(least, most), code| (least.min(code), most.max(code)));
            let position = |code: u32| self.positions[column][code as usize];
            let rank = || match self.first {
                First::Span => position(most) - position(least),
                First::Entropy => self.entropy(part, column) / self.entropies[column],
            };
            (least < most).then(|| (column, self.table.columns()[column].weight() * rank(), most))
        });
        let mut ordered: Vec<(usize, f64, u32)> = ordered.collect();
        // Stable: equal columns stay in policy order.
        ordered.sort_by(|a, b| b.1.total_cmp(&a.1));
        ordered.into_iter().map(|(column, _, most)| (column, most)).collect()
    }

    /// Returns the values of a part in one column, in order, each once with its rows.
    fn values(&self, part: &[u32], column: usize) -> Vec<(u32, u64)> {
        let rows = |class: &u32| self.table.base().rows_of(*class as usize);
        let mut values: Vec<(u32, u64)> =
            part.iter().map(|class| (self.code(*class, column), rows(class))).collect();
        values.sort_unstable();
        values.dedup_by(|next, first| {
            let is_same = next.0 == first.0;
            if is_same {
                first.1 += next.1;
            }
            is_same
        });
        values
    }

    /// Returns the entropy of a column among the rows of a part, in bits.
    fn entropy(&self, part: &[u32], column: usize) -> f64 {
        let values = self.values(part, column);
        let all: u128 = values.iter().map(|(_, rows)| u128::from(*rows)).sum();
        let bits = values.iter().map(|(_, rows)| {
            let share = ratio(u128::from(*rows), all);
            -share * share.log2()
        });
        bits.sum()
    }

    /// Returns the least value that at least half of the rows do not exceed.
    fn median(&self, part: &[u32], column: usize) -> u32 {
        let values = self.values(part, column);
        let all: u64 = values.iter().map(|(_, rows)| rows).sum();
        let mut below = 0;
        for (code, rows) in values {
            below += rows;
            if below >= all - below {
                return code;
            }
        }
        0
    }
}

impl Cuts for Medians<'_> {
    type Part = Vec<u32>;
    type Scratch = ();

    fn whole(&self) -> Vec<u32> {
        (0u32..).take(self.table.base().len()).collect()
    }

    fn classes(part: &Vec<u32>) -> &[u32] {
        part
    }

    fn scratch(&self) -> Result<()> {
        Ok(())
    }

    fn cut(&self, part: Vec<u32>, judge: &mut Judge<'_>, (): &mut ()) -> Result<Cut<Vec<u32>>> {
        for (column, most) in self.columns(&part) {
            let last_on_the_left = self.median(&part, column).min(most - 1);
            let (left, right): (Vec<u32>, Vec<u32>) =
                part.iter().partition(|class| self.code(**class, column) <= last_on_the_left);
            if judge.may_part(&left, &right)? {
                return Ok(Cut::InTwo(left, right));
            }
        }
        Ok(Cut::Not(part))
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
