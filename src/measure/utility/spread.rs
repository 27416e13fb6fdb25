//! How the rows that show a region are spread over its values.

use crate::class::{EncodedColumn, Region};
use crate::decimal::ratio;

/// Values between which the rows that show a region are spread evenly.
#[derive(Debug)]
pub(super) enum Spread {
    /// The codes from one to another one, both included.
    Between(u32, u32),
    /// These codes, in order.
    Each(Vec<u32>),
}

impl Spread {
    pub(super) fn over(codes: Vec<u32>) -> Self {
        match (codes.first(), codes.last()) {
            (Some(first), Some(last)) if (last - first) as usize + 1 == codes.len() => {
                Self::Between(*first, *last)
            }
            _ => Self::Each(codes),
        }
    }

    pub(super) fn of(region: &Region, column: &EncodedColumn) -> Self {
        match region {
            Region::Interval { first, last } => Self::Between(*first, *last),
            Region::OrMissing { first, last } => {
                Self::over(std::iter::once(0).chain(*first..=*last).collect())
            }
            Region::Set(codes) => Self::over(codes.to_vec()),
            region => {
                let all = (0u32..).take(column.distinct());
                Self::over(all.filter(|code| region.holds(column, *code)).collect())
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Between(first, last) => (last - first) as usize + 1,
            Self::Each(codes) => codes.len(),
        }
    }

    /// Returns the share of the region between two codes, both included.
    pub(super) fn share_between(&self, first: u32, last: u32) -> f64 {
        let inside = match self {
            Self::Between(low, high) => {
                (u64::from(last.min(*high)) + 1).saturating_sub(first.max(*low).into())
            }
            Self::Each(codes) => {
                let from = codes.partition_point(|code| *code < first);
                (codes.partition_point(|code| *code <= last) - from) as u64
            }
        };
        ratio(inside.into(), self.count() as u128)
    }
}
