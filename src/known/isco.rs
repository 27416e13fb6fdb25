//! `isco`: an occupation in ISCO-08 becomes its minor, sub-major and major group.
//!
//! Reads codes of one to four digits as text; a shorter code stays as it is at the levels that keep
//! more digits. Integers are refused: 221 may be the minor group `221`, medical doctors, or the unit
//! group `0221` of the armed forces without its zero, so they must be made text first. A code
//! counts if it begins with one of the 43 sub-major groups of ISCO-08 (or is one of its 10 major
//! groups); whether its other digits are in use is not checked.

use super::digits::Digits;
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "isco",
        summary: "an ISCO-08 code to its first three, two and one digits",
        parameters: "",
        example: "hierarchy = { known = \"isco\" }",
        paper: None,
    },
    words: &["isco", "occupation*", "job*", "profession*"],
    levels: &["minor_group", "sub_major_group", "major_group"],
    input: Input::Text,
    source: "codes of the groups of ISCO-08",
    rule: || &CODES,
};

static CODES: Digits = Digits {
    sections: "01 02 03 11 12 13 14 21 22 23 24 25 26 31 32 33 34 35 41 42 43 44 51 52 53 54 61 62 63 71 72 73 74 75 81 82 83 \
               91 92 93 94 95 96",
    lengths: [1, 4],
    kept: &[3, 2, 1],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::tests::labels;

    #[test]
    fn codes_by_hand() {
        for (value, path) in
            [("2211", "221 < 22 < 2"), ("0110", "011 < 01 < 0"), ("83", "83 < 83 < 8"), ("9", "9 < 9 < 9")]
        {
            assert_eq!(labels("isco", value).as_deref(), Some(path), "{value}");
        }
        assert!(
            ["0011", "1500", "22111", "2x", "99", "22.1"]
                .iter()
                .all(|outside| labels("isco", outside).is_none())
        );
        assert_eq!(CODES.sections.split(' ').count(), 43);
    }
}
