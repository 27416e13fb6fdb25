//! `icd9`: a diagnosis in ICD-9-CM becomes its category, its block and its chapter.
//!
//! Reads the codes of diagnoses (volume 1) of the last edition, October 2011, in any case, with or
//! without the dot: three digits (`250`), `V` and two digits (`V30`) or `E` and three digits
//! (`E815`), then up to four digits or letters (`250.00`, `25000`). Only text: an integer has lost
//! the zeros of `001`. Labels are codes and ranges of codes: `250`, `249-259`, `240-279`. The list
//! has the 17 chapters and the supplements `V01-V91` and `E000-E999`, with 162 blocks; a category
//! inside a block counts whether or not the edition uses it. Codes of procedures (`36.15`) are
//! outside.

use super::ranges::CodeRanges;
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "icd9",
        summary: "an ICD-9-CM code to its category, block and chapter",
        parameters: "",
        example: "hierarchy = { known = \"icd9\" }",
        paper: None,
    },
    words: super::icd10::ROW.words,
    levels: &["category", "block", "chapter"],
    input: Input::Text,
    source: "diagnoses of ICD-9-CM, 2011",
    rule: || &LIST,
};

static LIST: CodeRanges = CodeRanges::new(include_str!("../../data/known/icd9.txt"), |code| match code {
    [b'0'..=b'9' | b'V', b'0'..=b'9', b'0'..=b'9', ..] => Some(3),
    [b'E', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', ..] => Some(4),
    _ => None,
});

#[cfg(test)]
mod tests {
    use crate::known::tests::labels;

    #[test]
    fn codes_by_hand() {
        for (values, path) in [
            (["250", "250.00", "25000"], "250 < 249-259 < 240-279"),
            (["V30", "v30.00", "V3000"], "V30 < V30-V39 < V01-V91"),
            (["E815", "e815.0", "E8150"], "E815 < E810-E819 < E000-E999"),
            (["042", "042.0", "0420"], "042 < 042-042 < 001-139"),
            (["634", "634.9", "63490"], "634 < 634-639 < 630-679"),
        ] {
            for value in values {
                assert_eq!(labels("icd9", value).as_deref(), Some(path), "{value}");
            }
        }
        let outside = ["1", "36.15", "000", "V00", "V92", "E1", "E031", "E11", "250.", "25O", "286-"];
        assert!(outside.iter().all(|code| labels("icd9", code).is_none()));
    }

    #[test]
    fn all_chapters_and_blocks_are_there() {
        let text = include_str!("../../data/known/icd9.txt");
        assert_eq!(text.lines().count(), 19);
        let mut blocks = 0;
        for line in text.lines() {
            let (chapter, ranges) = line.split_once(": ").unwrap();
            let (first, end) = chapter.split_once('-').unwrap();
            let mut last = "";
            for range in ranges.split(' ') {
                let (from, to) = range.split_once('-').unwrap();
                assert!(last < from && from <= to && from.len() == to.len(), "{range}");
                last = to;
                blocks += 1;
            }
            assert!(ranges.starts_with(first) && last == end, "{chapter}");
        }
        assert_eq!(blocks, 162);
    }
}
