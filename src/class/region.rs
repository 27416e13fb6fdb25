//! Regions: what a released class shows in one column, where classes need not share a level.

use super::EncodedColumn;
use crate::error::Result;
use crate::generalize::Value;

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
            Self::Interval { first, last } => (*first..=*last).contains(&value),
            Self::Set(codes) => codes.binary_search(&value).is_ok(),
            Self::Label { level, code } => {
                column.map(0, *level).is_ok_and(|labels| labels.get(value as usize) == Some(code))
            }
        }
    }

    /// Returns the number of leaves in the region. Those of a hierarchy file count whether or not they
    /// occur, except in a set, which names its values.
    pub fn leaves(&self, column: &EncodedColumn) -> u64 {
        match self {
            Self::Everything => column.leaves(),
            Self::Interval { first, last } => column.leaves_between(*first, *last),
            Self::Set(codes) => codes.len() as u64,
            Self::Label { level, code } => column.level(*level).leaves()[*code as usize],
        }
    }

    /// Returns whether the column has these codes, and sets are in order.
    pub(super) fn is_valid_for(&self, column: &EncodedColumn) -> bool {
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

    /// Returns the same region in the form that all regions with its text have: a single value is its
    /// level-0 label, a label that a coarser level repeats is the coarser one, and the top is
    /// everything.
    ///
    /// # Errors
    /// An internal error if labels cannot be read.
    pub(super) fn canonical(self, column: &EncodedColumn) -> Result<Self> {
        let (mut level, mut code) = match self {
            Self::Label { level, code } => (level, code),
            Self::Interval { first, last } if first == last => (0, first),
            Self::Set(codes) if codes.len() == 1 => (0, codes[0]),
            other => return Ok(other),
        };
        let label = |level: usize, code: u32| {
            let (of_level, at) = (column.level(level), code as usize);
            Value::read(of_level.labels(), at).map(|label| (label.text_form(), of_level.leaves()[at]))
        };
        while level < column.height() {
            let coarser = column.map(level, level + 1)?[code as usize];
            let (finer_label, coarser_label) = (label(level, code)?, label(level + 1, coarser)?);
            // Rows without a value show NULL, which may also be the label of all values.
            if finer_label != coarser_label || finer_label.0.is_none() {
                break;
            }
            (level, code) = (level + 1, coarser);
        }
        Ok(if level == column.height() { Self::Everything } else { Self::Label { level, code } })
    }
}
