//! Packed keys: the codes of one class in as few 64-bit words as its columns need.
//!
//! Classes are stored in the order of their keys. The column with the most values takes the lowest bits, so that a
//! roll-up reads memory that it has just read.

/// The position of each column's code in a key, the column with the most values lowest. A code
/// never straddles two words. Levels above 0 have at most as many labels as level 0, so one layout
/// serves every node.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    fields: Vec<Field>,
    words: usize,
}

/// The position of one column's code in a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) word: usize,
    pub(super) shift: u32,
    pub(super) mask: u64,
}

/// The key widths, in words, for which a roll-up is compiled.
pub(super) const WIDTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

impl Packing {
    /// Creates a layout for columns with these numbers of distinct values; `None` if no key is wide
    /// enough.
    pub(super) fn new(distinct: impl Iterator<Item = usize>) -> Option<Self> {
        let mut columns: Vec<(usize, usize)> = distinct.enumerate().collect();
        columns.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut fields = vec![Field { word: 0, shift: 0, mask: 0 }; columns.len()];
        let (mut word, mut used) = (0, 0);
        for (column, count) in columns {
            let bits = usize::BITS - count.saturating_sub(1).leading_zeros();
            let bits = bits.max(1);
            if used + bits > u64::BITS {
                word += 1;
                used = 0;
            }
            fields[column] = Field { word, shift: used, mask: u64::MAX >> (u64::BITS - bits) };
            used += bits;
        }
        let words = WIDTHS.into_iter().find(|width| *width > word)?;
        Some(Self { fields, words })
    }

    /// Returns the number of words per key, one of [`WIDTHS`].
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Returns the position of a column's code.
    pub(super) fn field(&self, column: usize) -> Field {
        self.fields[column]
    }
}

impl Field {
    /// Returns the code in a key.
    #[expect(clippy::cast_possible_truncation, reason = "codes are packed from u32")]
    pub(super) fn get(self, key: &[u64]) -> u32 {
        ((key[self.word] >> self.shift) & self.mask) as u32
    }

    /// Returns the number of the first bit after the code.
    pub(super) fn end(self) -> u32 {
        self.shift + self.mask.count_ones()
    }

    /// Writes a code into a key whose field is still zero.
    pub(super) fn put(self, key: &mut [u64], code: u32) {
        key[self.word] |= u64::from(code) << self.shift;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        let sizes = [1usize, 2, 3, 1 << 20, 1 << 31, 5, 1 << 32, 70];
        let packing = Packing::new(sizes.into_iter()).unwrap();
        assert_eq!(packing.words(), 2);
        for last in [false, true] {
            let code = |size: usize| if last { u32::try_from(size - 1).unwrap() } else { 0 };
            let mut key = [0u64; 2];
            sizes.iter().enumerate().for_each(|(at, size)| packing.field(at).put(&mut key, code(*size)));
            for (at, size) in sizes.iter().enumerate() {
                assert_eq!(packing.field(at).get(&key), code(*size));
            }
        }
        assert!(Packing::new(std::iter::repeat_n(1 << 32, 65)).is_none());
    }
}
