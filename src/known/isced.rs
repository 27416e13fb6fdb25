//! `isced`: a level of education becomes low, medium or high.
//!
//! Reads the levels 0 to 8 of ISCED 2011 as integers or as text: `3`, `ED3` (Eurostat) and `ISCED 3`.
//! The groups are Eurostat's: low is at most lower secondary education (0 to 2), medium is upper
//! secondary and post-secondary non-tertiary (3 and 4), high is tertiary (5 to 8). Level 9 (not
//! classified) and codes of two or three digits are outside.

use super::named::NamedList;
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "isced",
        summary: "an ISCED 2011 level of education from 0 to 8 to low, medium or high",
        parameters: "",
        example: "hierarchy = { known = \"isced\" }",
        paper: None,
    },
    words: &["isced", "educat*", "attainment"],
    levels: &["attainment"],
    input: Input::TextOrIntegers(1),
    source: "the levels 0 to 8 of ISCED 2011",
    rule: || &LIST,
};

static LIST: NamedList = NamedList::exact(include_str!("../../data/known/isced.txt"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Rule;
    use crate::known::tests::labels;

    #[test]
    fn levels_by_hand() {
        for (values, label) in
            [(["0", "ED1", "ISCED 2"], "low"), (["3", "4", "ED4"], "medium"), (["5", "ED6", "8"], "high")]
        {
            for value in values {
                assert_eq!(labels("isced", value).as_deref(), Some(label), "{value}");
            }
        }
        assert!(["9", "-1", "03", "344", "ED"].iter().all(|outside| labels("isced", outside).is_none()));
        assert_eq!(LIST.examples().len(), 27);
    }
}
