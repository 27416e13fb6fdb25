//! `country`: a country becomes its subregion and its continent.
//!
//! Reads ISO 3166-1 alpha-2 and alpha-3 codes and English names: the short names of ISO 3166-1 and
//! the United Nations, and common ones (`South Korea`, `UK`). Only letters and digits count, in any
//! case: `united-states` is `United States`. Names with accents are listed with and without them.
//!
//! The subregions are the 22 geographic ones of UN M49 with the five continents above them. M49 has
//! no subregion for two of the 249 entries: Taiwan counts as Eastern Asia, and Antarctica is a
//! subregion and a continent of its own. Codes that ISO has withdrawn and Kosovo, which has none,
//! are outside.

use super::named::NamedList;
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "country",
        summary: "a country, by ISO 3166-1 code or English name, to its UN subregion and continent",
        parameters: "",
        example: "hierarchy = { known = \"country\" }",
        paper: None,
    },
    words: &[
        "country",
        "countries",
        "nation",
        "national*",
        "citizen*",
        "origin",
        // German
        "=land",
        "geburts|wohn|herkunfts|aufenthalts land",
        "staat",
        "staatsangeh*",
        "staatsburg*",
        "staatsbuerg*",
        "herkunft",
        // French
        "=pays",
        "pays naissance|residence|domicile|origine",
        "code|nom pays",
        "origine",
        // Spanish and Portuguese
        "pais",
        "paises",
        "nacional*",
        "ciudadan*",
        "cidadan*",
        "origen",
        "origem",
        // Italian
        "paese",
        "nazion*",
        "cittadinan*",
        // Dutch
        "geboorte|woon land",
        "landcode",
        "land naam",
        "herkomst",
    ],
    levels: &["subregion", "continent"],
    input: Input::Text,
    source: "ISO 3166-1 codes and English names, 2024",
    rule: || &LIST,
};

static LIST: NamedList = NamedList::folded(include_str!("../../data/known/country.txt"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Rule;
    use crate::known::tests::labels;

    #[test]
    fn countries_by_hand() {
        for (values, path) in [
            (["DE", "deu", "GERMANY"], "Western Europe < Europe"),
            (["US", "United-States", "the united states of america"], "Northern America < Americas"),
            (["TT", "trinidad & tobago", "Trinidad and Tobago"], "Caribbean < Americas"),
            (["CI", "Cote d'Ivoire", "CÔTE D’IVOIRE"], "Western Africa < Africa"),
            (["AQ", "ATA", "Antarctica"], "Antarctica < Antarctica"),
            (["KR", "Korea, Republic of", "South Korea"], "Eastern Asia < Asia"),
        ] {
            for value in values {
                assert_eq!(labels("country", value).as_deref(), Some(path), "{value}");
            }
        }
        for outside in ["", "-", "XK", "Yugoslavia", "EU", "Germany Germany", "D"] {
            assert_eq!(labels("country", outside), None, "{outside}");
        }
    }

    #[test]
    fn all_249_entries_are_there() {
        let text = include_str!("../../data/known/country.txt");
        let lines: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| !line.starts_with('='))
            .map(|line| line.split(';').collect())
            .collect();
        assert_eq!((lines.len(), text.lines().count() - lines.len()), (249, 23));
        assert!(lines.iter().all(|names| names[0].len() == 2 && names[1].len() == 3 && names.len() > 2));
        assert_eq!(LIST.examples().len(), lines.iter().map(Vec::len).sum::<usize>());
        let of = |continent: &str| {
            let is_there =
                |names: &&Vec<&str>| LIST.label(names[0], 2).is_some_and(|label| label == continent);
            lines.iter().filter(is_there).count()
        };
        let counts = ["Africa", "Americas", "Antarctica", "Asia", "Europe", "Oceania"].map(of);
        assert_eq!(counts, [60, 57, 1, 51, 51, 29]);
    }
}
