//! Regions: what a released class shows in one column, where classes need not share a level.

use super::EncodedColumn;

/// The values of a column that a released class shows, by their level-0 codes, which are in the
/// order of the values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// The values below the label with this code of this level.
    Label {
        /// The level.
        level: usize,
        /// The label's code.
        code: u32,
    },
    /// The values from one code to another one, both included.
    Interval {
        /// The least code.
        first: u32,
        /// The greatest code.
        last: u32,
    },
    /// The values with these codes, in order.
    Set(Box<[u32]>),
    /// All values: the column is suppressed.
    Everything,
}

impl Region {
    /// Returns whether the region holds the value with this code.
    pub fn holds(&self, column: &EncodedColumn, value: u32) -> bool {
        match self {
            Self::Everything => true,
            Self::Interval { first, last } => (first..=last).contains(&&value),
            Self::Set(codes) => codes.binary_search(&value).is_ok(),
            Self::Label { level, code } => {
                column.map(0, *level).is_ok_and(|labels| labels.get(value as usize) == Some(code))
            }
        }
    }

    /// Returns the number of leaves in the region: rows of the hierarchy file below a label, and
    /// otherwise values that occur.
    pub fn leaves(&self, column: &EncodedColumn) -> u64 {
        match self {
            Self::Everything => column.leaves(),
            Self::Interval { first, last } => u64::from(last.saturating_sub(*first)) + 1,
            Self::Set(codes) => codes.len() as u64,
            Self::Label { level, code } => column.level(*level).leaves()[*code as usize],
        }
    }

    /// Returns whether the column has these codes, and sets are in order.
    pub(super) fn is_of(&self, column: &EncodedColumn) -> bool {
        let is_value = |code: &u32| (*code as usize) < column.distinct();
        match self {
            Self::Everything => true,
            Self::Interval { first, last } => first <= last && is_value(last),
            Self::Set(codes) => {
                let is_in_order = codes.windows(2).all(|pair| pair[0] < pair[1]);
                is_in_order && codes.last().is_some_and(is_value)
            }
            Self::Label { level, code } => {
                *level <= column.height() && (*code as usize) < column.level(*level).leaves().len()
            }
        }
    }
}
