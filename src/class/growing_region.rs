//! The number of leaves that the region around a growing set of values shows.
//!
//! Each further value takes constant time, so a method can rate every cut of a part in one sweep of each
//! column.

use super::EncodedColumn;
use crate::error::Result;

/// The region around a set of values of one column to which values are added one by one.
///
/// Its number of leaves is that of [`Region::around`](super::Region::around) these values, in constant time.
#[derive(Debug)]
pub struct GrowingRegion<'a> {
    column: &'a EncodedColumn,
    shown: Shown<'a>,
}

/// What a column shows around several values.
#[derive(Debug)]
enum Shown<'a> {
    Interval {
        has_null: bool,
        ends: Option<(u32, u32)>,
    },
    /// The finest label that all values share.
    Label {
        /// For each level the label of each value.
        levels: Vec<&'a [u32]>,
        /// One of the values, and the level of the label.
        shared: Option<(u32, usize)>,
    },
    Set {
        /// The round in which each value was last added.
        added: Vec<u32>,
        round: u32,
        values: u64,
        leaves: u64,
    },
}

impl<'a> GrowingRegion<'a> {
    /// Creates the region around no value.
    ///
    /// # Errors
    /// An internal error for a column whose levels have no codes.
    pub fn new(column: &'a EncodedColumn) -> Result<Self> {
        let shown = if column.has_intervals() {
            Shown::Interval { has_null: false, ends: None }
        } else if column.shows_labels() {
            let levels = (0..=column.height()).map(|level| column.map(0, level)).collect::<Result<_>>()?;
            Shown::Label { levels, shared: None }
        } else {
            Shown::Set { added: vec![0; column.distinct()], round: 1, values: 0, leaves: 0 }
        };
        Ok(Self { column, shown })
    }

    /// Returns the column.
    pub fn column(&self) -> &'a EncodedColumn {
        self.column
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        match &mut self.shown {
            Shown::Interval { has_null, ends } => (*has_null, *ends) = (false, None),
            Shown::Label { shared, .. } => *shared = None,
            Shown::Set { added, round, values, leaves } => {
                (*values, *leaves) = (0, 0);
                *round = round.checked_add(1).unwrap_or_else(|| {
                    added.fill(0);
                    1
                });
            }
        }
    }

    /// Adds the value with this level-0 code.
    pub fn add(&mut self, value: u32) {
        match &mut self.shown {
            Shown::Interval { has_null, .. } if value == 0 && self.column.has_null() => *has_null = true,
            Shown::Interval { ends: Some((first, last)), .. } => {
                (*first, *last) = ((*first).min(value), (*last).max(value));
            }
            Shown::Interval { ends, .. } => *ends = Some((value, value)),
            Shown::Label { levels, shared: Some((first, level)) } => {
                while levels[*level][value as usize] != levels[*level][*first as usize] {
                    *level += 1;
                }
            }
            Shown::Label { shared, .. } => *shared = Some((value, 0)),
            Shown::Set { added, round, values, leaves } => {
                let at = &mut added[value as usize];
                if *at != *round {
                    (*values, *leaves) = (*values + 1, *leaves + self.column.leaves_below(value));
                }
                *at = *round;
            }
        }
    }

    /// Returns the number of leaves; 0 without values.
    pub fn leaves(&self) -> u64 {
        match &self.shown {
            Shown::Interval { has_null, ends } => {
                let between = ends.map_or(0, |(first, last)| self.column.leaves_between(first, last));
                between + u64::from(*has_null)
            }
            Shown::Label { shared: None, .. } => 0,
            Shown::Label { shared: Some((_, 0)), .. } => 1,
            Shown::Label { shared: Some((_, level)), .. } if *level == self.column.height() => {
                self.column.leaves()
            }
            Shown::Label { levels, shared: Some((first, level)) } => {
                self.column.level(*level).leaves()[levels[*level][*first as usize] as usize]
            }
            Shown::Set { leaves, .. } => *leaves,
        }
    }

    /// Returns the labels by which the values can be parted: for each value of the column its label
    /// one level below the one that all values share, or `Some(None)` if they show a set and only
    /// the values part them. `None` if they show an interval or a single value.
    pub fn labels_below(&self) -> Option<Option<&'a [u32]>> {
        match &self.shown {
            Shown::Label { levels, shared: Some((_, level @ 1..)) } => Some(Some(levels[*level - 1])),
            Shown::Set { values: 2.., .. } => Some(None),
            _ => None,
        }
    }
}
