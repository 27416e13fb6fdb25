//! Which part a row is dealt to.

use super::counted::{Counted, RowCount};

/// The number of parts is 2 to the power of this.
const PARTS_BITS: u32 = 8;
pub(super) const PARTS: usize = 1 << PARTS_BITS;

/// The bits of a class key (`src/engine/class_key/`).
const KEY_BITS: u32 = 122;

/// The classes of some rows, from the least to the greatest.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassRange {
    least: i128,
    greatest: i128,
}

impl ClassRange {
    /// The range of no rows.
    pub(super) const EMPTY: Self = Self { least: i128::MAX, greatest: i128::MIN };

    /// Returns the range of the classes in either.
    pub(super) fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }

    /// Returns the range that has the classes of these rows, too.
    pub(super) fn with<'a, const VALUES: usize, N: RowCount>(
        self,
        rows: impl Iterator<Item = &'a Counted<VALUES, N>>,
    ) -> Self {
        rows.map(Counted::class).fold(self, |range, class| range.or(Self { least: class, greatest: class }))
    }
}

/// How rows are dealt to [`PARTS`] parts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Dealing {
    /// By ranges of classes: the first begins at a class, and each is 2 to the power of `bits` long.
    Classes { first: i128, bits: u32 },
    /// Rows of one class, by the bits of the hash behind the first so many.
    OneClass { bits: u32 },
}

impl Dealing {
    /// That of all class keys. Others, of a user's column with the name of one, are in the first or the last
    /// part.
    pub(super) const OF_ALL: Self = Self::Classes { first: 0, bits: KEY_BITS - PARTS_BITS };

    /// Returns how to deal the rows of one of these parts, which have classes in a range.
    pub(super) fn of_part(self, range: ClassRange) -> Self {
        match (self, range.greatest.wrapping_sub(range.least).cast_unsigned()) {
            (Self::OneClass { bits }, _) => Self::OneClass { bits: bits + PARTS_BITS },
            (_, 0) => Self::OneClass { bits: 0 },
            (_, distance) => {
                let bits = (u128::BITS - distance.leading_zeros()).saturating_sub(PARTS_BITS);
                Self::Classes { first: range.least, bits }
            }
        }
    }

    /// Returns the index of the part of a row.
    pub(super) fn part_of<const VALUES: usize, N: RowCount>(self, counted: &Counted<VALUES, N>) -> usize {
        let part = match self {
            Self::Classes { first, bits } => {
                let distance = counted.class().max(first).wrapping_sub(first).cast_unsigned();
                usize::try_from(distance >> bits).ok()
            }
            Self::OneClass { bits } => {
                usize::try_from(counted.hash() << bits >> (u64::BITS - PARTS_BITS)).ok()
            }
        };
        part.unwrap_or(usize::MAX).min(PARTS - 1)
    }
}
