//! Cuts at medians: a part is cut at the median of its rows, in the column of the largest span or entropy.

use super::cell::Cell;
use super::cuts::{Cut, Cuts, Judge};
use crate::class::{ClassTable, EncodedColumn, Held, Region};
use crate::decimal::ratio;
use crate::error::Result;
use crate::generalize::Ends;

/// The rank by which the columns of a part are tried: the first one whose cut holds is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnRank {
    /// The share of its domain that the part's values span.
    Span,
    /// The entropy of the part's values, as a share of that of all rows' values.
    Entropy,
}

/// Base classes that belong together, and what the cuts leave to them, where that is what a class shows.
pub(super) struct Part {
    classes: Vec<u32>,
    cell: Option<Cell>,
}

/// The median cuts of the parts of a class table.
pub(super) struct Medians<'a> {
    table: &'a ClassTable,
    rank: ColumnRank,
    /// Whether the rows of the median may go to both sides (relaxed partitioning).
    is_relaxed: bool,
    ends: Ends,
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
    pub(super) fn new(table: &'a ClassTable, rank: ColumnRank, is_relaxed: bool, ends: Ends) -> Result<Self> {
        let mut held = Held::new(table.budget());
        // Parts of base classes before and after a cut, and a column of one in order.
        let of_classes = table.base().len() * (2 * size_of::<u32>() + size_of::<(u32, u64)>());
        let values: usize = table.columns().iter().map(EncodedColumn::distinct).sum();
        held.at_least(of_classes + values * (size_of::<f64>() + size_of::<Option<f64>>()))?;
        let positions = table.columns().iter().map(positions).collect::<Result<_>>()?;
        let mut medians =
            Self { table, rank, is_relaxed, ends, positions, entropies: Vec::new(), _held: held };
        if rank == ColumnRank::Entropy {
            let all = medians.whole().classes;
            medians.entropies =
                (0..medians.positions.len()).map(|column| medians.entropy(&all, column)).collect();
        }
        Ok(medians)
    }

    fn code(&self, class: u32, column: usize) -> u32 {
        self.table.code(self.table.base(), class as usize, column)
    }

    /// Returns the columns in which a part has several values, the one to cut first, each with its
    /// greatest value.
    fn columns(&self, part: &[u32]) -> Vec<(usize, u32)> {
        let ordered = (0..self.positions.len()).filter_map(|column| {
            let codes = part.iter().map(|class| self.code(*class, column));
            let (least, most) =
                codes.fold((u32::MAX, 0), |(least, most), code| (least.min(code), most.max(code)));
            let position = |code: u32| self.positions[column][code as usize];
            let of_part = || match self.rank {
                ColumnRank::Span => position(most) - position(least),
                ColumnRank::Entropy => self.entropy(part, column) / self.entropies[column],
            };
            (least < most).then(|| (column, self.table.columns()[column].weight() * of_part(), most))
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

    /// Deals the base classes of a part to two sides in the order of their values in one column,
    /// half of the rows to each.
    fn dealt(&self, part: &[u32], column: usize) -> (Vec<u32>, Vec<u32>) {
        let rows = |class: &u32| self.table.base().rows_of(*class as usize);
        // Base classes are numbered in the order of their keys, which decides between equal values.
        let mut order = part.to_vec();
        order.sort_unstable_by_key(|class| (self.code(*class, column), *class));
        let all: u64 = order.iter().map(rows).sum();
        let mut below = 0;
        let half = order.iter().position(|class| {
            below += rows(class);
            below >= all - below
        });
        let right = order.split_off(half.map_or(1, |half| half + 1).min(order.len() - 1));
        (order, right)
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
    type Part = Part;
    type Scratch = ();

    fn whole(&self) -> Part {
        Part {
            classes: (0u32..).take(self.table.base().len()).collect(),
            cell: Cell::whole(self.table, self.ends),
        }
    }

    fn classes(part: &Part) -> &[u32] {
        &part.classes
    }

    fn shown(&self, part: &Part) -> Result<Option<Box<[Region]>>> {
        part.cell.as_ref().map(|cell| cell.regions(self.table)).transpose()
    }

    fn scratch(&self) -> Result<()> {
        Ok(())
    }

    fn cut(&self, part: Part, judge: &mut Judge<'_>, (): &mut ()) -> Result<Cut<Part>> {
        let classes = &part.classes;
        for (column, most) in self.columns(classes) {
            let (left, right, last_of_left, first_of_right) = if self.is_relaxed {
                let (left, right) = self.dealt(classes, column);
                let code = |class: Option<&u32>| class.map_or(0, |class| self.code(*class, column));
                let (last, first) = (code(left.last()), code(right.first()));
                (left, right, last, if first > last { last + 1 } else { first })
            } else {
                let last = self.median(classes, column).min(most - 1);
                let (mut left, mut right): (Vec<u32>, Vec<u32>) =
                    classes.iter().partition(|class| self.code(**class, column) <= last);
                left.shrink_to_fit();
                right.shrink_to_fit();
                (left, right, last, last + 1)
            };
            if judge.both_hold(&left, &right)? {
                let cut = |cell: Cell| cell.cut_between(column, last_of_left, first_of_right);
                let (one, other) = part.cell.map(cut).unzip();
                let parts = [Part { classes: left, cell: one }, Part { classes: right, cell: other }];
                return Ok(Cut::Into(parts.into()));
            }
        }
        Ok(Cut::Final(part))
    }
}

/// Returns the position of each value of a column in its domain, from 0 to 1: numbers, dates and
/// timestamps by size, other values by their number. NULL is at 0, with the least value.
fn positions(column: &EncodedColumn) -> Result<Vec<f64>> {
    let last = (column.distinct() as u128).saturating_sub(1).max(1);
    Ok(match column.number_line()?.map(|line| line.places().to_vec()) {
        Some(places) if places.iter().flatten().any(|place| *place > 0.0) => {
            places.into_iter().map(Option::unwrap_or_default).collect()
        }
        _ => (0..column.distinct() as u128).map(|code| ratio(code, last)).collect(),
    })
}
