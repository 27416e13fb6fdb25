//! How the rows that show a region are spread over its values.

use std::collections::HashMap;

use crate::class::{EncodedColumn, NumberLine, Region};
use crate::decimal::ratio;
use crate::error::Result;
use crate::generalize::Value;

/// The codes of a column by the texts of their values, and its line.
pub(super) struct CodesByValue {
    of_text: HashMap<Option<String>, u32>,
    line: Option<NumberLine>,
}

impl CodesByValue {
    pub(super) fn of(column: &EncodedColumn) -> Result<Self> {
        let texts = column.clipped_values()?.into_iter().map(|value| value.text_form());
        Ok(Self { of_text: texts.zip(0u32..).collect(), line: column.number_line()? })
    }
}

/// Values between which the rows that show a region are spread evenly.
#[derive(Debug)]
pub(super) enum Spread {
    /// The codes from one to another one, both included.
    Between(u32, u32),
    /// These codes, in order.
    Each(Vec<u32>),
    /// One value at this place, which need not be one of the column's; this code is the nearest.
    At(u32, Option<f64>),
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
            Region::Set(codes) if !column.joins_values() => Self::over(codes.to_vec()),
            region => {
                let all = (0u32..).take(column.own_values());
                Self::over(all.filter(|value| region.holds(column, column.own_code(*value))).collect())
            }
        }
    }

    /// Returns the spread of a centroid.
    pub(super) fn at(centroid: &Value, column: &CodesByValue) -> Option<Self> {
        if let Some(code) = column.of_text.get(&centroid.text_form()) {
            let place = column.line.as_ref().and_then(|line| line.place(centroid));
            return Some(Self::At(*code, place));
        }
        let line = column.line.as_ref()?;
        let place = line.place(centroid)?;
        // Codes are in the order of the places, that of NULL, which has none, first.
        let above = line.places().partition_point(|at| at.is_none_or(|at| at < place));
        let apart = |at: &usize| (*line.places().get(*at)?).map(|at| (at - place).abs());
        let nearest = [above.checked_sub(1), Some(above)].into_iter().flatten();
        let nearest = nearest.filter_map(|at| Some((apart(&at)?, at))).min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Self::At(u32::try_from(nearest.1).ok()?, Some(place)))
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::At(..) => 1,
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
            Self::At(code, _) => u64::from((first..=last).contains(code)),
            Self::Each(codes) => {
                let from = codes.partition_point(|code| *code < first);
                (codes.partition_point(|code| *code <= last) - from) as u64
            }
        };
        ratio(inside.into(), self.count() as u128)
    }
}
