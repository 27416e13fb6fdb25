//! Cells: the values that the cuts leave to a part, whether or not its base classes have them.
//!
//! Under `ends = "cuts"` a class shows its cell. Where no cut was made, a cell shows no end; then NULL and NaN
//! are in it, too, whether or not the class has them.

use std::sync::Arc;

use crate::class::{ClassTable, EncodedColumn, GrowingRegion, Region};
use crate::error::Result;
use crate::generalize::Ends;

/// The level-0 codes that a part may have, by column.
#[derive(Debug, Clone)]
pub(super) struct Cell(Vec<Codes>);

/// Codes of one column.
#[derive(Debug, Clone)]
enum Codes {
    /// Those from one to another one, both included.
    Between(u32, u32),
    /// These, in order.
    Each(Arc<[u32]>),
}

/// How many leaves a column shows before a cut and on both sides of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaves {
    pub(super) whole: u64,
    pub(super) left: u64,
    pub(super) right: u64,
}

impl Cell {
    /// Returns the cell of all values of a table; `None` unless classes show what the cuts leave to them.
    pub(super) fn whole(table: &ClassTable, ends: Ends) -> Option<Self> {
        let last = |column: &EncodedColumn| (0u32..).take(column.distinct()).last().unwrap_or(0);
        let whole = || Self(table.columns().iter().map(|column| Codes::Between(0, last(column))).collect());
        (ends == Ends::Cuts).then(whole)
    }

    /// Cuts a column above a code that is not its last.
    pub(super) fn cut_above(self, column: usize, code: u32) -> (Self, Self) {
        self.cut_between(column, code, code + 1)
    }

    /// Cuts a column so that one part has the codes up to `last_of_left`, the other those from
    /// `first_of_right`, which may be the same.
    pub(super) fn cut_between(self, column: usize, last_of_left: u32, first_of_right: u32) -> (Self, Self) {
        let (left, right) = match &self.0[column] {
            Codes::Between(first, last) => {
                (Codes::Between(*first, last_of_left), Codes::Between(first_of_right.min(*last), *last))
            }
            Codes::Each(codes) => {
                let left = &codes[..codes.partition_point(|one| *one <= last_of_left)];
                let right = &codes[codes.partition_point(|one| *one < first_of_right)..];
                (Codes::Each(left.into()), Codes::Each(right.into()))
            }
        };
        self.parted(column, left, right)
    }

    /// Cuts a column into the codes that go left, and the others.
    pub(super) fn cut_off(self, column: usize, goes_left: impl Fn(u32) -> bool) -> (Self, Self) {
        let (left, right): (Vec<u32>, Vec<u32>) = self.0[column].iter().partition(|code| goes_left(*code));
        self.parted(column, Codes::Each(left.into()), Codes::Each(right.into()))
    }

    fn parted(self, column: usize, left: Codes, right: Codes) -> (Self, Self) {
        let mut other = self.clone();
        other.0[column] = right;
        let mut one = self;
        one.0[column] = left;
        (one, other)
    }

    /// Returns the regions that a class with these values shows.
    ///
    /// # Errors
    /// An internal error without values.
    pub(super) fn regions(&self, table: &ClassTable) -> Result<Box<[Region]>> {
        self.0.iter().zip(table.columns()).map(|(codes, column)| codes.region(column)).collect()
    }

    /// Fills the growing region of a column with the column's codes.
    pub(super) fn fill(&self, at: usize, shown: &mut GrowingRegion<'_>) {
        shown.clear();
        match &self.0[at] {
            // An interval is that of its ends.
            Codes::Between(first, last) if shown.column().has_intervals() => {
                [*first, *last].into_iter().for_each(|code| shown.add(code));
            }
            codes => codes.iter().for_each(|code| shown.add(code)),
        }
    }

    /// Returns how many leaves a column shows beside the cuts above these codes, which are in order.
    ///
    /// # Errors
    /// An internal error without values.
    pub(super) fn leaves_beside(
        &self,
        at: usize,
        above: &[u32],
        shown: &mut GrowingRegion<'_>,
    ) -> Result<Vec<Leaves>> {
        let (codes, column) = (&self.0[at], shown.column());
        let whole = codes.region(column)?.leaves(column);
        if let (Codes::Between(first, last), true) = (codes, column.has_intervals()) {
            let leaves = |first, last| Ok(Codes::Between(first, last).region(column)?.leaves(column));
            let beside = |code: &u32| {
                Ok(Leaves { whole, left: leaves(*first, *code)?, right: leaves(code + 1, *last)? })
            };
            return above.iter().map(beside).collect();
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut below = codes.iter().peekable();
        shown.clear();
        for cut in above {
            while let Some(code) = below.next_if(|code| code <= cut) {
                shown.add(code);
            }
            left.push(shown.leaves());
        }
        let mut over = codes.iter().rev().peekable();
        shown.clear();
        for cut in above.iter().rev() {
            while let Some(code) = over.next_if(|code| code > cut) {
                shown.add(code);
            }
            right.push(shown.leaves());
        }
        let sides = left.into_iter().zip(right.into_iter().rev());
        Ok(sides.map(|(left, right)| Leaves { whole, left, right }).collect())
    }

    /// Returns how many leaves a column shows where these codes go left.
    ///
    /// # Errors
    /// An internal error without values.
    pub(super) fn leaves_apart(
        &self,
        at: usize,
        goes_left: impl Fn(u32) -> bool,
        shown: &mut GrowingRegion<'_>,
    ) -> Result<Leaves> {
        let whole = self.0[at].region(shown.column())?.leaves(shown.column());
        let mut side = |is_left: bool| {
            shown.clear();
            self.0[at].iter().filter(|code| goes_left(*code) == is_left).for_each(|code| shown.add(code));
            shown.leaves()
        };
        Ok(Leaves { whole, left: side(true), right: side(false) })
    }
}

impl Codes {
    fn iter(&self) -> Box<dyn DoubleEndedIterator<Item = u32> + '_> {
        match self {
            Self::Between(first, last) => Box::new(*first..=*last),
            Self::Each(codes) => Box::new(codes.iter().copied()),
        }
    }

    /// Returns the region of the codes. All numbers without NULL are everything: neither shows an end.
    fn region(&self, column: &EncodedColumn) -> Result<Region> {
        let least = u32::from(column.has_null());
        match *self {
            Self::Between(first, last)
                if (first == 0 || (first <= least && column.has_intervals()))
                    && last as usize + 1 == column.distinct()
                    && (first < last || column.distinct() == 1) =>
            {
                Ok(Region::Everything)
            }
            Self::Between(first, last) if column.has_intervals() => Ok(match first {
                0 if least == 1 && last > 0 => Region::OrMissing { first: 1, last },
                _ => Region::Interval { first, last },
            }),
            _ => Region::around(column, self.iter().collect()),
        }
    }
}

#[cfg(test)]
#[path = "cell_tests.rs"]
mod tests;
