//! Regions: what a released class shows in one column, where classes need not share a level.
//!
//! A region has a canonical form, and only this form has its text. So two laws hold: a text that was written is
//! read as the same region, and a text covers the values of its region and no others. Columns of numbers and
//! dates show intervals and never labels, because the label of a decade would read as a year.

use std::collections::HashMap;

use arrow::array::Array;

use super::EncodedColumn;
use crate::error::{Error, Result};
use crate::generalize::region_label::Values;
use crate::generalize::{RegionLabel, Value, text_forms};

/// The values of a column that a released class shows, by their level-0 codes, which are in the
/// order of the values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// NULL, and the values from one code to another one.
    OrMissing {
        /// The least code, above that of NULL.
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
            Self::OrMissing { first, last } => value == 0 || (*first..=*last).contains(&value),
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
            Self::OrMissing { first, last } => column.leaves_between(*first, *last) + 1,
            Self::Set(codes) => column.leaves_of(codes),
            Self::Label { level, code } => column.level(*level).leaves()[*code as usize],
        }
    }

    /// Returns the bytes that what a class shows takes.
    pub(crate) fn bytes_of(shown: &[Self]) -> usize {
        let of_set = |region: &Self| if let Self::Set(codes) = region { size_of_val(&**codes) } else { 0 };
        size_of_val(shown) + shown.iter().map(of_set).sum::<usize>()
    }

    /// Returns the label of a region in its canonical form, as those of released classes are.
    ///
    /// # Errors
    /// An internal error for other regions, for codes that are not the column's, and for a set with
    /// values beyond a bound of a clipped column.
    pub fn label(&self, column: &EncodedColumn) -> Result<RegionLabel> {
        match self {
            Self::Everything => Ok(RegionLabel::Everything),
            Self::Interval { first, last } => column.interval_label(*first, *last),
            Self::OrMissing { first, last } => Ok(column.interval_label(*first, *last)?.or_missing()),
            Self::Set(codes) => column.set_label(codes),
            Self::Label { level: 0, code } => column.leaf_label(*code),
            Self::Label { level, code } => {
                match Value::read(column.level(*level).labels(), *code as usize)? {
                    Value::Text(text) => Ok(RegionLabel::from(Values::Label(text))),
                    _ => Err(Error::internal("region: a label that reads as a value")),
                }
            }
        }
    }

    /// Returns the label of what the cuts leave to a class, among the `kept` codes, which are in
    /// order: those of suppressed rows must not show.
    ///
    /// # Errors
    /// The errors of [`label`](Self::label).
    pub fn label_of_cuts(&self, column: &EncodedColumn, kept: &[u32]) -> Result<RegionLabel> {
        match self {
            Self::Interval { first, last } if first < last => column.cut_label(*first, *last, kept),
            // The rows of all its values may be suppressed.
            Self::OrMissing { first, last }
                if kept.get(kept.partition_point(|code| code < first)).is_none_or(|code| code > last) =>
            {
                Ok(RegionLabel::Missing)
            }
            Self::OrMissing { first, last } if first < last => {
                Ok(column.cut_label(*first, *last, kept)?.or_missing())
            }
            region => region.label_among(column, kept),
        }
    }

    /// Returns the label of the region among the `kept` codes, which are in order: a set names no
    /// value of suppressed rows alone, and no interval ends at one. The set of a label whose text
    /// means something else names all values that have the label.
    ///
    /// # Errors
    /// The errors of [`label`](Self::label).
    pub fn label_among(&self, column: &EncodedColumn, kept: &[u32]) -> Result<RegionLabel> {
        let within = |first: &u32, last: &u32| {
            let from = kept.partition_point(|code| code < first);
            let held = &kept[from..kept.partition_point(|code| code <= last).max(from)];
            Some((*held.first()?, *held.last()?))
        };
        let codes = match self {
            Self::Set(codes) => codes,
            Self::Interval { first, last } => {
                let (first, last) = within(first, last).unwrap_or((*first, *last));
                return Self::Interval { first, last }.label(column);
            }
            Self::OrMissing { first, last } => {
                let (first, last) = within(first, last).unwrap_or((*first, *last));
                return Self::OrMissing { first, last }.label(column);
            }
            Self::Label { .. } | Self::Everything => return self.label(column),
        };
        let held = codes.iter().copied().filter(|code| kept.binary_search(code).is_ok());
        match *held.collect::<Vec<u32>>() {
            [code] if column.has_intervals() => column.leaf_label(code),
            ref held => column.set_label(held),
        }
    }

    /// Returns the finest region that a class with these values can show, in order and each once:
    /// one value, their interval where the column has intervals, the finest label that all of them
    /// have where it has levels, else their set.
    ///
    /// # Errors
    /// An internal error without values.
    pub fn around(column: &EncodedColumn, codes: Vec<u32>) -> Result<Self> {
        let (Some(first), Some(last)) = (codes.first().copied(), codes.last().copied()) else {
            return Err(Error::internal("region: no values"));
        };
        if column.has_intervals() {
            return Ok(match codes.get(1) {
                Some(second) if first == 0 && column.has_null() => Self::OrMissing { first: *second, last },
                _ => Self::Interval { first, last },
            });
        }
        if codes.len() > 1 && column.shows_labels() {
            for level in 1..column.height() {
                let labels = column.map(0, level)?;
                let code = labels[first as usize];
                if codes.iter().all(|value| labels[*value as usize] == code) {
                    return Ok(Self::Label { level, code });
                }
            }
            return Ok(Self::Everything);
        }
        Ok(Self::Set(codes.into()))
    }

    /// Returns whether the column has these codes, and sets are in order.
    pub(super) fn is_valid_for(&self, column: &EncodedColumn) -> bool {
        let is_value = |code: &u32| (*code as usize) < column.distinct();
        match self {
            Self::Everything => true,
            Self::Interval { first, last } => first <= last && is_value(last),
            Self::OrMissing { first, last } => {
                column.has_null() && *first > 0 && first <= last && is_value(last)
            }
            Self::Set(codes) => {
                let is_in_order = codes.windows(2).all(|pair| pair[0] < pair[1]);
                is_in_order && codes.last().is_some_and(is_value)
            }
            Self::Label { level, code } => {
                *level <= column.height() && (*code as usize) < column.level(*level).leaves().len()
            }
        }
    }

    /// Returns the region's canonical form, which holds at least the same values and shares its
    /// text with no other.
    ///
    /// In columns of numbers and dates in natural order, that is a value, an interval or a set. In
    /// other columns it is a label or a set: a label whose text a coarser one above it repeats
    /// becomes the coarser one, and a label whose text an unrelated one shares becomes the set of
    /// its values. An interval without ends becomes everything.
    ///
    /// # Errors
    /// An internal error if labels cannot be read.
    pub(super) fn canonical(self, texts: &LabelTexts<'_>) -> Result<Self> {
        let column = texts.column;
        match self {
            Self::Everything => Ok(Self::Everything),
            Self::Label { level, .. } if level == column.height() => Ok(Self::Everything),
            Self::Label { level: 0, code } => texts.one(code),
            Self::Label { level, code } => texts.label(level, code),
            Self::Interval { first, last } if first == last => texts.one(first),
            Self::Interval { first, last } if column.has_intervals() => {
                if first == 0 && column.has_null() {
                    return Self::OrMissing { first: 1, last }.canonical(texts);
                }
                // Only clipped columns have an interval without ends.
                let is_all = column.interval_label(first, last)? == RegionLabel::Everything;
                Ok(if is_all { Self::Everything } else { Self::Interval { first, last } })
            }
            Self::OrMissing { first, last } if column.has_intervals() => {
                let is_all = column.interval_label(first, last)? == RegionLabel::Everything;
                Ok(if is_all { Self::Everything } else { Self::OrMissing { first, last } })
            }
            Self::OrMissing { first, last } => {
                Ok(Self::Set(std::iter::once(0).chain(first..=last).collect()))
            }
            Self::Interval { first, last } => Ok(Self::Set((first..=last).collect())),
            Self::Set(codes) => match *codes {
                [code] => texts.one(code),
                // One value or NULL is an interval.
                [0, code] if column.has_null() && column.has_intervals() => {
                    Self::OrMissing { first: code, last: code }.canonical(texts)
                }
                _ => Ok(Self::Set(codes)),
            },
        }
    }
}

/// The texts of a column's labels below the top, and whether each of them means one label.
pub(super) struct LabelTexts<'a> {
    column: &'a EncodedColumn,
    /// Maps each text to the coarsest label that shows it, or to `None` if unrelated labels share it.
    labels: HashMap<String, Option<(usize, u32)>>,
}

impl<'a> LabelTexts<'a> {
    /// Reads the texts of a column.
    ///
    /// # Errors
    /// An internal error if labels cannot be read.
    pub(super) fn of(column: &'a EncodedColumn) -> Result<Self> {
        let mut labels: HashMap<String, Option<(usize, u32)>> = HashMap::new();
        // Numbers and dates in their natural order show no labels.
        let shown = if column.shows_labels() { column.height() } else { 1 };
        let levels = 0..if column.has_intervals() { 0 } else { shown };
        for level in levels.rev() {
            let texts = text_forms(column.level(level).labels())?;
            for (text, code) in texts.iter().zip(0u32..) {
                let Some(text) = text else { continue };
                match labels.get_mut(text) {
                    None => {
                        labels.insert(text.to_owned(), Some((level, code)));
                    }
                    Some(known) => {
                        let is_above = |(coarser, above): (usize, u32)| {
                            column.map(level, coarser).is_ok_and(|map| map.get(code as usize) == Some(&above))
                        };
                        *known = known.filter(|known| is_above(*known));
                    }
                }
            }
        }
        Ok(Self { column, labels })
    }

    pub(super) fn column(&self) -> &'a EncodedColumn {
        self.column
    }

    /// Returns the canonical region of one value.
    fn one(&self, code: u32) -> Result<Region> {
        if self.column.has_intervals() {
            return Ok(Region::Label { level: 0, code });
        }
        self.label(0, code)
    }

    /// Returns the canonical region of a label below the top.
    fn label(&self, level: usize, code: u32) -> Result<Region> {
        let column = self.column;
        let with_label = || -> Result<Vec<u32>> {
            let labels = (0u32..).zip(column.map(0, level)?);
            Ok(labels.filter(|(_, label)| **label == code).map(|(value, _)| value).collect())
        };
        let label = Value::read(column.level(level).labels(), code as usize)?;
        if column.has_intervals() {
            let codes = with_label()?;
            let (Some(first), Some(last)) = (codes.first(), codes.last()) else {
                return Err(Error::internal("region: a label without a value"));
            };
            if (*last - *first) as usize + 1 == codes.len() {
                return Region::Interval { first: *first, last: *last }.canonical(self);
            }
            return Region::Set(codes.into()).canonical(self);
        }
        match label {
            // NULL stands alone below the top.
            Value::Null => Ok(Region::Label { level: 0, code: 0 }),
            // A label above level 0 shows the set of its values where labels do not show.
            Value::Text(text) => match self.labels.get(&text).filter(|_| level == 0 || column.shows_labels())
            {
                Some(Some((level, code))) => Ok(Region::Label { level: *level, code: *code }),
                _ if level == 0 => Ok(Region::Set([code].into())),
                _ => Region::Set(with_label()?.into()).canonical(self),
            },
            _ if level == 0 => Ok(Region::Label { level, code }),
            _ => Region::Set(with_label()?.into()).canonical(self),
        }
    }
}

impl EncodedColumn {
    /// Returns the label of one value.
    pub(super) fn leaf_label(&self, code: u32) -> Result<RegionLabel> {
        Ok(RegionLabel::of_leaf(self.hierarchy(), &Value::read(self.level(0).labels(), code as usize)?))
    }

    pub(crate) fn has_null(&self) -> bool {
        self.level(0).labels().is_null(0)
    }

    /// Returns codes in order without that of NULL.
    pub(crate) fn without_null<'a>(&self, codes: &'a [u32]) -> &'a [u32] {
        codes.strip_prefix(&[0]).filter(|_| self.has_null()).unwrap_or(codes)
    }

    pub(crate) fn has_intervals(&self) -> bool {
        self.hierarchy().has_intervals()
    }

    /// Returns whether several values show a label of the hierarchy; in other columns without
    /// intervals they show a set.
    pub(crate) fn shows_labels(&self) -> bool {
        self.height() > 1 && !self.hierarchy().is_merged() && !self.has_intervals()
    }

    /// Returns the label of the values from one code to another one, both above NULL's.
    fn interval_label(&self, first: u32, last: u32) -> Result<RegionLabel> {
        let interval = RegionLabel::interval(&self.leaf_label(first)?, &self.leaf_label(last)?);
        interval.ok_or_else(|| Error::internal("region: an interval between values without order"))
    }

    /// Returns the label of the values above those below the first code and up to the last one's,
    /// without an end at the least or the greatest of the kept ones.
    fn cut_label(&self, first: u32, last: u32, kept: &[u32]) -> Result<RegionLabel> {
        let kept = self.without_null(kept);
        let (below, up_to) =
            (kept.partition_point(|code| *code < first), kept.partition_point(|code| *code <= last));
        let greatest = kept.get(up_to.wrapping_sub(1)).filter(|code| **code >= first);
        let greatest = greatest.ok_or_else(|| Error::internal("region: a class without a kept value"))?;
        let below = below.checked_sub(1).map(|at| self.leaf_label(kept[at])).transpose()?;
        let label =
            RegionLabel::between_cuts(below.as_ref(), &self.leaf_label(*greatest)?, up_to == kept.len());
        label.ok_or_else(|| Error::internal("region: a cut between values without order"))
    }

    /// Returns the label of the values with these codes.
    fn set_label(&self, codes: &[u32]) -> Result<RegionLabel> {
        let (mut values, mut holds_null) = (Vec::with_capacity(codes.len()), false);
        for code in codes {
            match self.leaf_label(*code)? {
                RegionLabel::Missing => holds_null = true,
                RegionLabel::Values { values: Values::One(value), .. } => values.push(value),
                RegionLabel::Values { values: Values::Label(text), .. } => values.push(Value::Text(text)),
                _ => return Err(Error::internal("region: a set with values beyond a bound")),
            }
        }
        let set = RegionLabel::from(Values::Set(values));
        Ok(if holds_null { set.or_missing() } else { set })
    }
}

#[cfg(test)]
#[path = "region_tests.rs"]
pub(super) mod tests;
