//! Which columns of a Parquet file are encrypted behind a plain footer. The Parquet reader, built
//! without encryption, passes over what says so and takes such a column's bytes for damaged ones.

use std::collections::BTreeSet;

// The types of Thrift's compact protocol, in which a footer is written.
const LIST: u8 = 9;
const STRUCTURE: u8 = 12;

/// The deepest structure that is passed over.
const DEPTH: u8 = 32;

/// Returns the places of the encrypted columns, in the order of the schema's leaves; `None` for a
/// footer that cannot be read.
pub(super) fn encrypted_columns(footer: &[u8]) -> Option<BTreeSet<usize>> {
    // The numbers are those of the format: FileMetaData.row_groups, RowGroup.columns and
    // ColumnChunk.crypto_metadata.
    let mut encrypted = BTreeSet::new();
    Compact { bytes: footer }.structure(&mut |file, number, kind| match (number, kind) {
        (4, LIST) => file.list(&mut |group, kind| {
            group.structure_of(kind, &mut |group, number, kind| match (number, kind) {
                (1, LIST) => {
                    let mut place = 0;
                    group.list(&mut |column, kind| {
                        column.structure_of(kind, &mut |column, number, kind| {
                            if number == 8 {
                                encrypted.insert(place);
                            }
                            column.pass(kind, DEPTH)
                        })?;
                        place += 1;
                        Some(())
                    })
                }
                _ => group.pass(kind, DEPTH),
            })
        }),
        _ => file.pass(kind, DEPTH),
    })?;
    Some(encrypted)
}

/// The rest of a text in Thrift's compact protocol. Every function returns `None` at its end.
struct Compact<'a> {
    bytes: &'a [u8],
}

/// Reads a field given its number and type, or an item of a list given its type.
type Field<'f> = dyn FnMut(&mut Compact<'_>, u64, u8) -> Option<()> + 'f;
type Item<'f> = dyn FnMut(&mut Compact<'_>, u8) -> Option<()> + 'f;

impl Compact<'_> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes = self.bytes.get(count..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn structure(&mut self, field: &mut Field<'_>) -> Option<()> {
        let mut number = 0u64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            number = match head >> 4 {
                // The number itself, in zigzag form; no number is negative.
                0 => self.number()? / 2,
                step => number.checked_add(step.into())?,
            };
            field(self, number, head & 0x0F)?;
        }
    }

    fn structure_of(&mut self, kind: u8, field: &mut Field<'_>) -> Option<()> {
        if kind == STRUCTURE { self.structure(field) } else { None }
    }

    fn list(&mut self, item: &mut Item<'_>) -> Option<()> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.number()? } else { (head >> 4).into() };
        (0..count).try_for_each(|_| item(self, head & 0x0F))
    }

    /// Passes over a field.
    fn pass(&mut self, kind: u8, depth: u8) -> Option<()> {
        let deeper = depth.checked_sub(1)?;
        match kind {
            // A boolean is its type.
            1 | 2 => Some(()),
            3 => self.skip(1),
            4..=6 => self.number().map(drop),
            7 => self.skip(8),
            8 => {
                let length = usize::try_from(self.number()?).ok()?;
                self.skip(length)
            }
            LIST | 10 => self.list(&mut |item, kind| item.pass_item(kind, deeper)),
            11 => {
                let count = self.number()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.pass_item(kinds >> 4, deeper)?;
                    self.pass_item(kinds & 0x0F, deeper)
                })
            }
            STRUCTURE => self.structure(&mut |field, _, kind| field.pass(kind, deeper)),
            _ => None,
        }
    }

    /// Passes over an item of a list, where a boolean is a byte.
    fn pass_item(&mut self, kind: u8, depth: u8) -> Option<()> {
        if matches!(kind, 1 | 2) { self.skip(1) } else { self.pass(kind, depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FileMetaData with a version, a boolean, two row groups of two columns, and a text. The second
    /// column of the second group has `crypto_metadata`.
    const FOOTER: &[u8] = &[
        0x15, 0x02, // 1: i32
        0x11, // 2: true
        0x29, 0x2C, // 4: a list of two structures
        0x19, 0x2C, 0x26, 0x08, 0x00, 0x26, 0x08, 0x00, 0x00, // 1: columns with a file offset each
        0x19, 0x2C, 0x26, 0x08, 0x00, 0x26, 0x08, 0x6C, 0x1C, 0x00, 0x00, 0x00, 0x00, // 8: { 1: {} }
        0x28, 0x01, b'x', // 6: a text
        0x00,
    ];

    #[test]
    fn an_encrypted_column_is_found_by_its_place() {
        assert_eq!(encrypted_columns(FOOTER), Some(BTreeSet::from([1])));
        // A signature may follow.
        assert_eq!(encrypted_columns(&[FOOTER, &[7; 28]].concat()), Some(BTreeSet::from([1])));
        assert_eq!(encrypted_columns(&[0x15, 0x02, 0x00]), Some(BTreeSet::new()));
    }

    #[test]
    fn no_footer_makes_it_panic_or_run_on() {
        for end in 0..FOOTER.len() {
            assert_eq!(encrypted_columns(&FOOTER[..end]), None, "{end}");
        }
        for at in 0..FOOTER.len() {
            for byte in 0..=u8::MAX {
                let mut footer = FOOTER.to_vec();
                footer[at] = byte;
                let _ = encrypted_columns(&footer);
            }
        }
        assert_eq!(encrypted_columns(&[0x1C; 1_000]), None);
        assert_eq!(
            encrypted_columns(&[0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),
            None
        );
    }
}
