//! Cells that mean "missing": words of all languages, errors of spreadsheets, dates that no calendar has.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::languages::LANGUAGES;
use super::names::listed;
use crate::engine::column;
use crate::engine::functions::{OfValues, of_values};
use crate::error::{Error, Result};

/// Texts that mean "missing" among words, too, if they are written just so.
const AMONG_WORDS: &[&str] = &[
    "NA", "N/A", "n/a", "n.a.", "N.A.", "<NA>", "NULL", "null", "(null)", "k.A.", "K.A.", "k. A.", "-", "--",
    "---", "\u{2013}", "\u{2014}", ".",
];

/// Texts in lower case, of no language, that mean "missing" among numbers or dates.
const AMONG_NUMBERS: &[&str] = &[
    "?",
    "??",
    "???",
    "none",
    "nan",
    "nat",
    "(none)",
    "..",
    "...",
    "/",
    "#n/a",
    "#na",
    "#value!",
    "#ref!",
    "#name?",
    "#num!",
    "#null!",
    "#div/0!",
    "00.00.0000",
    "99.99.9999",
    "00/00/0000",
    "99/99/9999",
    "00-00-0000",
    "99-99-9999",
    "0000-00-00",
    "9999-99-99",
    "0000-00-00 00:00:00",
];

/// All words in lower case.
static WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let of_languages = LANGUAGES.iter().flat_map(|language| listed(language.missing));
    let all = AMONG_NUMBERS.iter().chain(AMONG_WORDS).copied().chain(of_languages);
    all.map(str::to_lowercase).collect()
});

/// Longer cells are not looked up.
const LONGEST: usize = 40;

/// Returns whether a cell means "missing" where all others are numbers or dates.
pub(super) fn is_missing(cell: &str) -> bool {
    !cell.is_empty() && cell.len() <= LONGEST && WORDS.contains(&cell.to_lowercase())
}

/// Returns whether such a cell means "missing" where others are words, too.
pub(super) fn is_missing_among_words(cell: &str) -> bool {
    AMONG_WORDS.contains(&cell) || cell.len() > 1 && cell.starts_with('#') && is_missing(cell)
}

/// Builds the cell of the column `name`, or NULL where it may mean "missing".
pub(super) fn without_missing(name: &str) -> Expr {
    of_values(Arc::new(MissingToNull), name, column(name))
}

/// Replaces the cells that mean "missing" by NULL.
struct MissingToNull;

impl OfValues for MissingToNull {
    fn name(&self) -> &'static str {
        "kanon_without_missing"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values
            .as_string_view_opt()
            .ok_or_else(|| Error::internal("missing: a text column is not Utf8View"))?;
        let known = texts.iter().map(|text| text.filter(|text| !is_missing(text)));
        Ok(Arc::new(known.collect::<StringViewArray>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_languages_in_any_capitals() {
        for word in [
            "k.A.",
            "K.A.",
            "keine Angabe",
            "Unbekannt",
            "n.a.",
            "--",
            "#NV",
            "#N/A",
            "#VALUE!",
            "#WERT!",
            "s.o.",
            "inconnu",
            "DESCONOCIDO",
            "sconosciuto",
            "Não informado",
            "onbekend",
            "99.99.9999",
            "?",
            "NaN",
            "unknown",
        ] {
            assert!(is_missing(word), "{word}");
        }
        for value in ["", "0", "x", "keine", "1.1.1990", "none of these", "31.12.9999", "9999", "k.A. "] {
            assert!(!is_missing(value), "{value}");
        }
        for word in ["NA", "k.A.", "#NV", "#DIV/0!", "-"] {
            assert!(is_missing_among_words(word), "{word}");
        }
        // They may be values.
        for word in ["unbekannt", "none", "na", "unknown", "#", "ND"] {
            assert!(!is_missing_among_words(word), "{word}");
        }
    }

    #[test]
    fn words_are_written_as_they_are_looked_up() {
        for language in LANGUAGES {
            let words: Vec<&str> = listed(language.missing).collect();
            assert!(!words.is_empty());
            for (at, word) in words.iter().enumerate() {
                assert_eq!(word.to_lowercase().trim(), *word);
                assert!(word.len() <= LONGEST && !words[..at].contains(word), "{word}");
            }
        }
    }
}
