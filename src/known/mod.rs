//! Hierarchies that come with the tool: countries, states, codes, dates, addresses.
//!
//! Each file is one hierarchy, and each row of [`KNOWN`] names one: its documentation, the words
//! in the names of columns that hold its values, the names of its levels, the values that it reads
//! and the rule from a value's text to its labels. The generalizer
//! [`generalize::known`](crate::generalize::known) makes levels of them, and a policy chooses one
//! with `hierarchy = { known = "country" }`. `data/README.md` states the origin of every list.
//!
//! A value's text decides, whatever the type of its column: a country is `DE`, `deu` or `Germany`. So a
//! hierarchy is a function from a text to its label at each level, without Arrow, and `generalize::known` alone
//! turns columns into these texts: ZIP codes get back the zeros that integers lose, dates become a day of the
//! week. The lists are text files in the program, read into an index once; the naive twin reads the file again
//! for every value. Nothing is guessed: values that a list does not know are refused, or joined into one label
//! if the policy says so.
//!
//! Every rule keeps these promises, which the tests at the end of this file attack:
//! - [`Rule::label`] and [`Rule::label_naively`] agree on every text;
//! - a label is a function of the label one level below, so that the levels are a tree;
//! - every label of a level [is one](Rule::is_label), and none is [`OTHER`].

mod coordinates;
mod digits;
mod named;
mod ranges;

pub mod country;
pub mod email;
pub mod hour;
pub mod icd10;
pub mod icd9;
pub mod ip;
pub mod isced;
pub mod isco;
pub mod latitude;
pub mod life_stage;
pub mod longitude;
pub mod naics;
pub mod us_state;
pub mod us_zip;
pub mod weekday;

use std::borrow::Cow;

use crate::doc::Doc;

/// A row of [`KNOWN`].
pub struct KnownRow {
    /// Name and documentation.
    pub doc: &'static Doc,
    /// The words in the names of columns for which `kanon init` tries it: `*` is any ending of a
    /// word, `|` separates alternative words, and a word after `=` is the whole name. Without
    /// words it is never proposed.
    pub words: &'static [&'static str],
    /// The names of the levels from level 1 on, finest first, without the top.
    pub levels: &'static [&'static str],
    /// The values that the hierarchy reads.
    pub input: Input,
    /// The publication and edition of the list, or the form of its values.
    pub source: &'static str,
    /// Returns the rule from values to labels.
    pub rule: fn() -> &'static dyn Rule,
}

/// The values that a hierarchy reads, and the text that stands for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Text as it is.
    Text,
    /// Text as it is, and integers in decimal with at least this many digits, so that a code has
    /// the leading zeros again that an integer has lost.
    TextOrIntegers(usize),
    /// Text as it is, and numbers in decimal.
    TextOrNumbers,
    /// Dates and timestamps by their local day of the week: `1` (Monday) to `7`.
    Weekday,
    /// Text as it is, and timestamps by their local hour: `0` to `23`.
    Hour,
}

/// A function from the text of a value to its label at each level, counted from 1.
pub trait Rule: Sync {
    /// Returns the label of a value; `None` for a value outside the list and for other levels.
    fn label(&self, text: &str, level: usize) -> Option<Cow<'static, str>>;

    /// Computes [`label`](Self::label) in another, obvious way, without anything that the first way
    /// has built.
    fn label_naively(&self, text: &str, level: usize) -> Option<String>;

    /// Returns whether a value can have this label at a level.
    fn is_label(&self, label: &str, level: usize) -> bool;

    /// Returns values of the list: all of a list of names, else at least one for each label of the
    /// coarsest level.
    fn examples(&self) -> Vec<String>;
}

/// The label of values outside a list, where a policy joins them.
pub const OTHER: &str = "other";

/// All known hierarchies.
pub const KNOWN: &[KnownRow] = &[
    country::ROW,
    email::ROW,
    hour::ROW,
    icd10::ROW,
    icd9::ROW,
    ip::ROW,
    isced::ROW,
    isco::ROW,
    latitude::ROW,
    life_stage::ROW,
    longitude::ROW,
    naics::ROW,
    us_state::ROW,
    us_zip::ROW,
    weekday::ROW,
];

/// The names of all known hierarchies.
pub const NAMES: &[&str] = &NAMES_OF_ROWS;

const NAMES_OF_ROWS: [&str; KNOWN.len()] = {
    let mut names = [""; KNOWN.len()];
    let mut row = 0;
    while row < names.len() {
        names[row] = KNOWN[row].doc.name;
        row += 1;
    }
    names
};

/// Returns the known hierarchy with this name.
///
/// # Errors
/// A text with the nearest valid name, or all of them.
pub fn find(name: &str) -> Result<&'static KnownRow, String> {
    crate::doc::find(KNOWN, |row| row.doc, name)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    pub(super) fn row(name: &str) -> &'static KnownRow {
        find(name).unwrap()
    }

    /// Returns the labels of a value from level 1 on, and checks them.
    fn path(row: &KnownRow, value: &str) -> Option<Vec<String>> {
        let rule = (row.rule)();
        let label = |level| {
            let label = rule.label(value, level).map(Cow::into_owned);
            assert_eq!(label, rule.label_naively(value, level), "{} {level}: {value:?}", row.doc.name);
            if let Some(label) = &label {
                assert!(rule.is_label(label, level), "{} {level}: {label:?}", row.doc.name);
                assert!(!label.is_empty() && label != OTHER && label != "*");
            }
            label
        };
        let path: Vec<Option<String>> = (1..=row.levels.len()).map(label).collect();
        assert!(path.iter().all(|label| label.is_some() == path[0].is_some()), "{value:?}");
        assert_eq!((label(0), label(row.levels.len() + 1)), (None, None));
        path.into_iter().collect()
    }

    pub(super) fn labels(name: &str, value: &str) -> Option<String> {
        path(row(name), value).map(|path| path.join(" < "))
    }

    #[test]
    fn every_hierarchy_is_a_tree_that_covers_its_list() {
        for row in KNOWN {
            let (mut above, mut values) = (BTreeMap::new(), BTreeSet::new());
            for value in (row.rule)().examples() {
                assert!(values.insert(value.clone()), "{} lists {value} twice", row.doc.name);
                let path = path(row, &value).unwrap_or_else(|| panic!("{}: {value}", row.doc.name));
                for (level, pair) in path.windows(2).enumerate() {
                    let parent = above.entry((level, pair[0].clone())).or_insert(pair[1].clone());
                    assert_eq!(*parent, pair[1], "{} {level}: {}", row.doc.name, pair[0]);
                }
            }
            assert!(values.len() > 1 && !row.levels.is_empty());
            assert!(path(row, "").is_none() && path(row, OTHER).is_none() && path(row, "*").is_none());
        }
    }

    #[test]
    fn names_are_sorted_and_found() {
        assert!(NAMES.is_sorted() && NAMES.iter().all(|name| find(name).unwrap().doc.name == *name));
        assert!(find("contry").err().unwrap().contains("country"));
    }

    /// Texts near the list: a value of it with another case, and something before, after or between.
    fn near(row: &'static KnownRow) -> impl Strategy<Value = String> {
        let values = prop::sample::select((row.rule)().examples());
        let more = prop_oneof![
            5 => Just(String::new()),
            5 => "[0-9A-Za-z .:;&@/é☃+-]{1,2}",
            1 => "\\PC{0,6}",
        ];
        (values, any::<(bool, bool)>(), any::<prop::sample::Index>(), more).prop_map(
            |(value, (is_lower, cut), place, more)| {
                let value = if is_lower { value.to_lowercase() } else { value };
                let mut chars: Vec<char> = value.chars().collect();
                let place = place.index(chars.len() + 1);
                if cut && place < chars.len() {
                    chars.remove(place);
                }
                let (before, after) = chars.split_at(place.min(chars.len()));
                before.iter().copied().chain(more.chars()).chain(after.iter().copied()).collect()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn both_ways_agree_near_the_lists(
            texts in KNOWN.iter().map(near).collect::<Vec<_>>(),
        ) {
            for (row, text) in KNOWN.iter().zip(texts) {
                path(row, &text);
            }
        }
    }
}
