//! Regions: what a released class shows in one column, where classes need not share a level.

use arrow::array::Array;
use arrow::datatypes::DataType;

use super::EncodedColumn;
use crate::error::{Error, Result};
use crate::generalize::region_label::Values;
use crate::generalize::{RegionLabel, Value};

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

    /// Returns what the text of a region says. The region is in its canonical form, as those of released classes are.
    ///
    /// # Errors
    /// An internal error for other regions, for codes that are not the column's, and for a set with values beyond a bound
    /// of a clipped column.
    pub fn label(&self, column: &EncodedColumn) -> Result<RegionLabel> {
        match self {
            Self::Everything => Ok(RegionLabel::Everything),
            Self::Interval { first, last } => column.span(*first, *last),
            Self::Set(codes) => column.set(codes),
            Self::Label { level: 0, code } => column.leaf(*code),
            Self::Label { level, code } => {
                match Value::read(column.level(*level).labels(), *code as usize)? {
                    Value::Null => Ok(RegionLabel::Missing),
                    Value::Text(text) => Ok(RegionLabel::of_label(column.hierarchy(), &text)),
                    _ => Err(Error::internal("region: a label that reads as a value")),
                }
            }
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

    /// Returns the region in the form that all regions with its text have, which holds at least as much: a single value is
    /// its level-0 label; a text that coarser levels repeat is the label of the coarsest; a label that would read as a
    /// value (the first year of a decade) is the interval of its values; an interval of texts is a set; and all values are
    /// everything.
    ///
    /// # Errors
    /// An internal error if labels cannot be read.
    pub(super) fn canonical(self, column: &EncodedColumn) -> Result<Self> {
        let (level, code) = match self {
            Self::Label { level, code } => (level, code),
            Self::Interval { first, last } => return column.canonical_interval(first, last),
            Self::Set(codes) => return column.canonical_set(codes),
            Self::Everything => return Ok(Self::Everything),
        };
        if level == column.height() {
            return Ok(Self::Everything);
        }
        let label = |level: usize, code: u32| Value::read(column.level(level).labels(), code as usize);
        match label(level, code)? {
            // NULL is the first value, and stands alone below the top.
            Value::Null => Ok(Self::Label { level: 0, code: 0 }),
            Value::Text(text) => {
                for coarser in (level + 1..=column.height()).rev() {
                    let above = column.map(level, coarser)?[code as usize];
                    if label(coarser, above)? == Value::Text(text.clone()) {
                        return Self::Label { level: coarser, code: above }.canonical(column);
                    }
                }
                Ok(Self::Label { level, code })
            }
            _ if level == 0 => Ok(Self::Label { level, code }),
            // Numbers and dates keep their order, so the values of a label are neighbours.
            _ => {
                let labels = column.map(0, level)?;
                let with = |label: &u32| *label == code;
                let ends = labels.iter().position(with).zip(labels.iter().rposition(with));
                let (first, last) = ends.ok_or_else(|| Error::internal("region: a label without a value"))?;
                let [first, last] = [first, last].map(|code| u32::try_from(code).map_err(Error::internal));
                column.canonical_interval(first?, last?)
            }
        }
    }
}

impl EncodedColumn {
    /// Returns the [canonical](Region::canonical) region from one code to another one.
    fn canonical_interval(&self, first: u32, last: u32) -> Result<Region> {
        if first == last {
            return Region::Label { level: 0, code: first }.canonical(self);
        }
        if !self.has_intervals() {
            return self.canonical_set((first..=last).collect());
        }
        // Only clipped columns have an interval without ends.
        let may_be_all = first <= u32::from(self.has_null()) && last as usize + 1 == self.distinct();
        if may_be_all && self.span(first, last)? == RegionLabel::Everything {
            return Ok(Region::Everything);
        }
        Ok(Region::Interval { first, last })
    }

    fn canonical_set(&self, codes: Box<[u32]>) -> Result<Region> {
        match *codes {
            [code] => Region::Label { level: 0, code }.canonical(self),
            // One value or NULL, which has the text of an interval.
            [0, 1] if self.has_null() && self.has_intervals() => Ok(Region::Interval { first: 0, last: 1 }),
            _ => Ok(Region::Set(codes)),
        }
    }

    fn has_null(&self) -> bool {
        self.level(0).labels().is_null(0)
    }

    /// Returns whether the values have a natural order, so that an interval says what it holds.
    fn has_intervals(&self) -> bool {
        let data_type = self.hierarchy().input_type();
        !data_type.is_string() && *data_type != DataType::Boolean
    }

    pub(super) fn leaf(&self, code: u32) -> Result<RegionLabel> {
        Ok(RegionLabel::of_leaf(self.hierarchy(), &Value::read(self.level(0).labels(), code as usize)?))
    }

    /// Returns the label of the values from one code to another one.
    fn span(&self, first: u32, last: u32) -> Result<RegionLabel> {
        // NULL is below all values.
        let holds_null = first == 0 && self.has_null();
        let least = first + u32::from(holds_null);
        let interval = RegionLabel::interval(&self.leaf(least)?, &self.leaf(last)?);
        let interval =
            interval.ok_or_else(|| Error::internal("region: an interval between values without order"))?;
        Ok(if holds_null { interval.or_missing() } else { interval })
    }

    /// Returns the label of the values with these codes.
    fn set(&self, codes: &[u32]) -> Result<RegionLabel> {
        let leaves = codes.iter().map(|code| self.leaf(*code)).collect::<Result<Vec<_>>>()?;
        let holds_null = leaves.contains(&RegionLabel::Missing);
        let value = |leaf: &RegionLabel| match leaf {
            RegionLabel::Values { values: Values::One(value), .. } => Ok(value.clone()),
            RegionLabel::Values { values: Values::Label(text), .. } => Ok(Value::Text(text.clone())),
            _ => Err(Error::internal("region: a set with values beyond a bound")),
        };
        let present: Vec<&RegionLabel> =
            leaves.iter().filter(|leaf| **leaf != RegionLabel::Missing).collect();
        let values = match present.as_slice() {
            [] => return Ok(RegionLabel::Missing),
            [one] => RegionLabel::clone(one),
            all => RegionLabel::from(Values::Set(all.iter().map(|leaf| value(leaf)).collect::<Result<_>>()?)),
        };
        Ok(if holds_null { values.or_missing() } else { values })
    }
}

#[cfg(test)]
#[path = "region_tests.rs"]
pub(super) mod tests;
