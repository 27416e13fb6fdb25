//! `icd10`: a diagnosis in ICD-10 becomes its category, its block and its chapter.
//!
//! Reads codes of the WHO edition of 2019, in any case, with or without the dot: a letter and two
//! digits, then up to four letters or digits (`E11`, `e11.9`, `E119`). Labels are codes and ranges
//! of codes: `E11`, `E10-E14`, `E00-E90`. The list has the 22 chapters and 263 blocks, the finest
//! ones where blocks hold blocks; a category inside a block counts whether or not the edition uses
//! it.
//!
//! Deviation: the block A92-A99 is A90-A99 as in the editions before, whose A90 and A91 (dengue)
//! would have no block. The Clinical Modification of the United States (ICD-10-CM) is another
//! classification: many of its categories are in these blocks, those between them (`E08`, `E09`)
//! and those with letters (`C7A`) are outside.

use super::ranges::CodeRanges;
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "icd10",
        summary: "an ICD-10 code (WHO) to its category, block and chapter",
        parameters: "",
        example: "hierarchy = { known = \"icd10\" }",
        paper: None,
    },
    words: &[
        "icd*",
        "diagnos*",
        "dx",
        "disease*",
        "cause*",
        // Compounds: German and Dutch
        "haupt|neben|aufnahme|entlassungs|hoofd|neven|opname|ontslag diagnos*",
        "krankheit*",
        "todes ursache*",
        "ziekte*",
        "doods oorzaak",
        // French
        "maladie*",
        "=cim",
        // Spanish and Portuguese
        "enfermedad*",
        "doenca*",
        "causa",
        "=cie",
        "cid principal|secundari*|obito",
        // Italian
        "malattia",
    ],
    levels: &["category", "block", "chapter"],
    input: Input::Text,
    source: "ICD-10 of the WHO, 2019",
    rule: || &LIST,
};

static LIST: CodeRanges = CodeRanges::new(include_str!("../../data/known/icd10.txt"), |code| match code {
    [b'A'..=b'Z', b'0'..=b'9', b'0'..=b'9', ..] => Some(3),
    _ => None,
});

#[cfg(test)]
mod tests {
    use crate::known::tests::labels;

    #[test]
    fn codes_by_hand() {
        for (values, path) in [
            (["E11", "e11.9", "E119"], "E11 < E10-E14 < E00-E90"),
            (["I21", "I21.4", "I214"], "I21 < I20-I25 < I00-I99"),
            (["U07", "u07.1", "U071"], "U07 < U00-U49 < U00-U85"),
            (["Y09", "Y09.9", "y09"], "Y09 < X85-Y09 < V01-Y98"),
            (["C50", "C50.911", "c50"], "C50 < C50-C50 < C00-D48"),
            (["A90", "A97", "A99"], ""),
        ] {
            for value in values {
                let found = labels("icd10", value).unwrap();
                assert!(
                    found == path || path.is_empty() && found.ends_with("A90-A99 < A00-B99"),
                    "{value}: {found}"
                );
            }
        }
        let outside = [
            "E",
            "E1",
            "E08",
            "C7A",
            "E11.",
            ".E11",
            "E11.99999",
            "E.11",
            "E11-",
            "E1é",
            "250",
            "E11..1",
            "A10",
        ];
        assert!(outside.iter().all(|code| labels("icd10", code).is_none()));
    }

    #[test]
    fn all_chapters_and_blocks_are_there() {
        let text = include_str!("../../data/known/icd10.txt");
        assert_eq!(text.lines().count(), 22);
        let mut last = String::new();
        let (mut blocks, mut letters) = (0, std::collections::BTreeSet::new());
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        for line in lines {
            let (chapter, ranges) = line.split_once(": ").unwrap();
            let (first, end) = chapter.split_once('-').unwrap();
            for range in ranges.split(' ') {
                let (from, to) = range.split_once('-').unwrap();
                assert!(last.as_str() < from && from <= to && first <= from && to <= end, "{range}");
                last = to.to_owned();
                blocks += 1;
                letters.extend([from.chars().next(), to.chars().next()]);
            }
            assert_eq!((&ranges[..3], last == end), (first, true), "{chapter}");
        }
        assert_eq!((blocks, letters.len()), (263, 26));
    }
}
