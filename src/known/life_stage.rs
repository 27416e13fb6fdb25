//! `life_stage`: an age in years becomes five years, a stage of life and a broad group.
//!
//! Reads whole years from 0 to 130, as integers or as text without leading zeros. Level 1 is the
//! five-year group of the United Nations (`35-39`, up to `100+`), level 2 the stage: child (0 to
//! 14), youth (15 to 24, the definition of the United Nations), adult (25 to 64) and older (from
//! 65), level 3 the groups of dependency ratios: under 15, 15-64 and 65+. All are groupings of
//! World Population Prospects.

use super::named::NamedList;
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "life_stage",
        summary: "an age in years to five years, a stage of life and a broad group",
        parameters: "",
        example: "hierarchy = { known = \"life_stage\" }",
        paper: None,
    },
    words: &[
        "age",
        "ages",
        // German
        "=alter",
        "alter jahre|aufnahme|diagnose",
        // Spanish and Portuguese
        "edad",
        "edades",
        "idade",
        "idades",
        // Italian
        "=età",
        "=Età",
        "=ETÀ",
        "eta anni|paziente|diagnosi|ricovero",
        // Dutch
        "leeftijd*",
    ],
    levels: &["five_years", "stage", "broad"],
    input: Input::TextOrIntegers(1),
    source: "ages from 0 to 130 in years",
    rule: || &LIST,
};

static LIST: NamedList = NamedList::exact(include_str!("../../data/known/life_stage.txt"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Rule;
    use crate::known::tests::labels;

    #[test]
    fn ages_by_hand() {
        for (value, path) in [
            ("0", "0-4 < child 0-14 < under 15"),
            ("14", "10-14 < child 0-14 < under 15"),
            ("15", "15-19 < youth 15-24 < 15-64"),
            ("25", "25-29 < adult 25-64 < 15-64"),
            ("64", "60-64 < adult 25-64 < 15-64"),
            ("65", "65-69 < older 65+ < 65+"),
            ("130", "100+ < older 65+ < 65+"),
        ] {
            assert_eq!(labels("life_stage", value).as_deref(), Some(path), "{value}");
        }
        assert!(
            ["-1", "131", "7.5", "007", "+7", " 7"]
                .iter()
                .all(|outside| labels("life_stage", outside).is_none())
        );
        assert_eq!(LIST.examples().len(), 131);
    }
}
