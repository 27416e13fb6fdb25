//! `us_state`: a state of the United States becomes its division and its region.
//!
//! Reads two-letter postal codes and names, in any case. The four regions and nine divisions are
//! those of the Census Bureau, which count the 50 states and the District of Columbia. The six
//! island areas (`AS`, `GU`, `MP`, `PR`, `UM`, `VI`) and the three postal codes of the armed forces
//! (`AA`, `AE`, `AP`) lie outside them and have a label of their own at both levels.

use super::named::NamedList;
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "us_state",
        summary: "a US state, by postal code or name, to its Census division and region",
        parameters: "",
        example: "hierarchy = { known = \"us_state\" }",
        paper: None,
    },
    words: &["state"],
    levels: &["division", "region"],
    input: Input::Text,
    source: "postal codes and names of US states",
    rule: || &LIST,
};

pub(super) static LIST: NamedList = NamedList::folded(include_str!("../../data/known/us_state.txt"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Rule;
    use crate::known::tests::labels;

    #[test]
    fn states_by_hand() {
        for (value, path) in [
            ("MA", "New England < Northeast"),
            ("west virginia", "South Atlantic < South"),
            ("D.C.", "South Atlantic < South"),
            ("tx", "West South Central < South"),
            ("PR", "Puerto Rico and Island Areas < Puerto Rico and Island Areas"),
            ("AE", "Armed Forces < Armed Forces"),
        ] {
            assert_eq!(labels("us_state", value).as_deref(), Some(path), "{value}");
        }
        assert_eq!((labels("us_state", "Ontario"), labels("us_state", "XX")), (None, None));
    }

    #[test]
    fn all_states_are_there() {
        let codes: Vec<String> = LIST.examples().into_iter().filter(|name| name.len() == 2).collect();
        let of = |level, label: &str| {
            codes.iter().filter(|code| LIST.label(code, level).is_some_and(|own| own == label)).count()
        };
        // 50 states, the District of Columbia, 6 island areas and 3 postal codes of the armed forces.
        assert_eq!(codes.len(), 60);
        assert_eq!(["Northeast", "Midwest", "South", "West"].map(|region| of(2, region)), [9, 12, 17, 13]);
        assert_eq!(["Mountain", "Pacific", "Armed Forces"].map(|division| of(1, division)), [8, 5, 3]);
    }
}
