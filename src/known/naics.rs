//! `naics`: an industry in NAICS becomes its code with five, four and three digits, and its sector.
//!
//! Reads codes of two to six digits, as integers or as text; a shorter code stays as it is at the
//! levels that keep more digits. The sectors of several numbers are one: `31-33` (manufacturing),
//! `44-45` (retail) and `48-49` (transportation), and these texts are read, too. A code counts if it
//! begins with one of the 20 sectors of NAICS 2022, whose list is the same since 1997; whether its
//! other digits are in use is not checked.

use super::digits::Digits;
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "naics",
        summary: "a NAICS code to its first five, four and three digits, and to its sector",
        parameters: "",
        example: "hierarchy = { known = \"naics\" }",
        paper: None,
    },
    words: &["naics", "industry", "sector"],
    levels: &["industry", "industry_group", "subsector", "sector"],
    input: Input::TextOrIntegers(1),
    source: "codes of the sectors of NAICS 2022",
    rule: || &CODES,
};

static CODES: Digits = Digits {
    sections: "11 21 22 23 31-33 42 44-45 48-49 51 52 53 54 55 56 61 62 71 72 81 92",
    lengths: [2, 6],
    kept: &[5, 4, 3, 2],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::tests::labels;

    #[test]
    fn codes_by_hand() {
        for (value, path) in [
            ("541511", "54151 < 5415 < 541 < 54"),
            ("325412", "32541 < 3254 < 325 < 31-33"),
            ("45", "45 < 45 < 45 < 44-45"),
            ("48-49", "48-49 < 48-49 < 48-49 < 48-49"),
        ] {
            assert_eq!(labels("naics", value).as_deref(), Some(path), "{value}");
        }
        assert!(
            ["1", "13", "99", "5415111", "54x", "31-32", "54-", "541.5"]
                .iter()
                .all(|o| labels("naics", o).is_none())
        );
        assert_eq!(CODES.sections.split(' ').count(), 20);
    }
}
