//! How a region grows when a class takes one more value.

use super::{EncodedColumn, Region};

impl Region {
    /// Returns the finest region around one value.
    pub(crate) fn of_one(column: &EncodedColumn, code: u32) -> Self {
        match column.has_intervals() {
            true => Self::Interval { first: code, last: code },
            false => Self::Label { level: 0, code },
        }
    }

    /// Returns the finest region around the values of this one, which is itself the finest around
    /// some, and one more.
    pub(crate) fn with(&self, column: &EncodedColumn, code: u32) -> Self {
        if self.holds(column, code) {
            return self.clone();
        }
        let is_null = code == 0 && column.has_null();
        match self {
            Self::Interval { first, last } if is_null => Self::OrMissing { first: *first, last: *last },
            Self::Interval { first: 0, .. } if column.has_null() => {
                Self::OrMissing { first: code, last: code }
            }
            Self::Interval { first, last } => {
                Self::Interval { first: code.min(*first), last: code.max(*last) }
            }
            Self::OrMissing { first, last } => {
                Self::OrMissing { first: code.min(*first), last: code.max(*last) }
            }
            Self::Label { level, code: label } if column.shows_labels() => {
                match shared_level(column, *level, *label, code) {
                    (level, _) if level == column.height() => Self::Everything,
                    (level, code) => Self::Label { level, code },
                }
            }
            Self::Label { code: one, .. } => Self::Set([code.min(*one), code.max(*one)].into()),
            Self::Set(codes) => {
                let at = codes.partition_point(|one| *one < code);
                Self::Set(codes[..at].iter().chain([&code]).chain(&codes[at..]).copied().collect())
            }
            Self::Everything => Self::Everything,
        }
    }

    /// Returns the number of leaves in the region with one more value.
    pub(crate) fn leaves_with(&self, column: &EncodedColumn, code: u32) -> u64 {
        match self {
            Self::Set(codes) => match codes.binary_search(&code) {
                Ok(_) => column.leaves_of(codes),
                Err(_) => column.leaves_of(codes) + column.leaves_below(code),
            },
            Self::Label { level: 0, code: one } if !column.shows_labels() => match *one == code {
                true => column.leaves_below(code),
                false => column.leaves_of(&[*one, code]),
            },
            Self::Label { level, code: label } => match shared_level(column, *level, *label, code) {
                (level, _) if level == column.height() => column.leaves(),
                (level, label) => column.level(level).leaves()[label as usize],
            },
            // These are made without memory of their own.
            region => region.with(column, code).leaves(column),
        }
    }
}

/// Returns the finest level at which a value has the label that lies above a label, and that label.
fn shared_level(column: &EncodedColumn, level: usize, label: u32, value: u32) -> (usize, u32) {
    let shared = (level..column.height()).find_map(|coarser| {
        let above = *column.map(level, coarser).ok()?.get(label as usize)?;
        (column.map(0, coarser).ok()?.get(value as usize) == Some(&above)).then_some((coarser, above))
    });
    shared.unwrap_or((column.height(), 0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::method::partition::mondrian::tests::{rows, table_with};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_grown_region_is_that_around_its_values(rows in rows()) {
            let table = table_with(&rows, false, true);
            for (at, column) in table.columns().iter().enumerate() {
                let mut codes = Vec::new();
                let mut grown: Option<Region> = None;
                for class in 0..table.base().len() {
                    let code = table.code(table.base(), class * 7 % table.base().len(), at);
                    codes.push(code);
                    let mut all = codes.clone();
                    all.sort_unstable();
                    all.dedup();
                    let around = Region::around(column, all).unwrap();
                    if let Some(before) = &grown {
                        prop_assert_eq!(before.leaves_with(column, code), around.leaves(column));
                    }
                    let next = grown.map_or_else(|| Region::of_one(column, code), |before| before.with(column, code));
                    prop_assert_eq!(next.leaves(column), around.leaves(column));
                    for code in 0..column.distinct() as u32 {
                        prop_assert_eq!(next.holds(column, code), around.holds(column, code));
                    }
                    grown = Some(next);
                }
            }
        }
    }
}
