//! Packed keys: the codes of one class in as few 64-bit words as its columns need.

/// Where each column's code sits. A code never straddles two words; levels above 0 have fewer labels than
/// level 0 has values, so one layout serves every node.
#[derive(Debug)]
pub(super) struct Packing {
    fields: Vec<Field>,
    words: usize,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    word: usize,
    shift: u32,
    mask: u64,
}

impl Packing {
    /// A layout for columns with so many distinct values each.
    pub(super) fn new(distinct: impl Iterator<Item = usize>) -> Self {
        let (mut word, mut used) = (0, 0);
        let fields = distinct
            .map(|count| {
                let bits = usize::BITS - count.saturating_sub(1).leading_zeros();
                let bits = bits.max(1);
                if used + bits > u64::BITS {
                    word += 1;
                    used = 0;
                }
                let field = Field { word, shift: used, mask: u64::MAX >> (u64::BITS - bits) };
                used += bits;
                field
            })
            .collect();
        Self { fields, words: word + 1 }
    }

    /// Words per key.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// The code of `column` in key number `at`.
    #[expect(clippy::cast_possible_truncation, reason = "codes are packed from u32")]
    pub(super) fn get(&self, keys: &[u64], at: usize, column: usize) -> u32 {
        let field = self.fields[column];
        ((keys[at * self.words + field.word] >> field.shift) & field.mask) as u32
    }

    /// Replaces the code of `column` in a single key.
    pub(super) fn set(&self, key: &mut [u64], column: usize, code: u32) {
        let field = self.fields[column];
        let cleared = key[field.word] & !(field.mask << field.shift);
        key[field.word] = cleared | (u64::from(code) << field.shift);
    }

    /// Packs column-major codes of `len` classes.
    pub(super) fn pack(&self, codes: &[Vec<u32>], len: usize) -> Vec<u64> {
        let mut keys = vec![0u64; len * self.words];
        for (column, codes) in codes.iter().enumerate() {
            for (key, code) in keys.chunks_exact_mut(self.words).zip(codes) {
                self.set(key, column, *code);
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        let sizes = [1usize, 2, 3, 1 << 20, 1 << 31, 5, 1 << 32, 70];
        let packing = Packing::new(sizes.into_iter());
        assert_eq!(packing.words(), 2);
        let codes: Vec<Vec<u32>> = sizes.iter().map(|n| vec![0, u32::try_from(n - 1).unwrap()]).collect();
        let keys = packing.pack(&codes, 2);
        for (column, expected) in codes.iter().enumerate() {
            assert_eq!([packing.get(&keys, 0, column), packing.get(&keys, 1, column)], expected[..]);
        }
    }
}
