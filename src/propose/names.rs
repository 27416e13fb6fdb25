//! Infers the meaning of a column from the words of its name, looked up in a table.

use super::languages::{LANGUAGES, Words};

/// The kind of column that a name indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Named {
    /// A person's own number, the same in every row of the person.
    Person,
    /// A name or contact details.
    Contact,
    /// The number of a record.
    Record,
    /// A date of birth.
    Birth,
    /// A postal code.
    Postal,
    /// The date of an event that others may have seen.
    Event,
    /// Any other attribute that others may know.
    Known,
    /// An attribute that must not be learnt about a person.
    Sensitive,
    /// Free text.
    Notes,
}

/// The names with one meaning.
pub(super) struct Pattern {
    pub(super) named: Named,
    /// The meaning: "named like ...".
    pub(super) like: &'static str,
    /// The words of this meaning in a language.
    words: fn(&Words) -> &'static str,
}

const fn pattern(named: Named, like: &'static str, words: fn(&Words) -> &'static str) -> Pattern {
    Pattern { named, like, words }
}

/// The patterns; the first one that matches a name counts.
const PATTERNS: &[Pattern] = &[
    pattern(Named::Person, "a person's number", |words| words.person),
    pattern(Named::Contact, "contact or payment data", |words| words.contact),
    pattern(Named::Contact, "a person's name", |words| words.person_name),
    pattern(Named::Known, "a place of birth", |words| words.birth_place),
    pattern(Named::Birth, "a date of birth", |words| words.birth),
    pattern(Named::Postal, "a postal code", |words| words.postal),
    pattern(Named::Known, "sex or gender", |words| words.sex),
    pattern(Named::Known, "race or origin", |words| words.race),
    pattern(Named::Known, "an age", |words| words.age),
    pattern(Named::Known, "a place", |words| words.place),
    pattern(Named::Known, "family and marriage", |words| words.family),
    pattern(Named::Known, "education", |words| words.education),
    pattern(Named::Known, "an occupation", |words| words.occupation),
    pattern(Named::Known, "nationality or language", |words| words.nationality),
    pattern(Named::Known, "a religion, which can be sensitive as well", |words| words.religion),
    pattern(Named::Event, "the date of an event that others may have witnessed", |words| words.event),
    pattern(Named::Notes, "free text", |words| words.notes),
    pattern(Named::Sensitive, "health data", |words| words.health),
    pattern(Named::Sensitive, "financial data", |words| words.money),
    pattern(Named::Sensitive, "private life", |words| words.private),
    pattern(Named::Contact, "an address", |words| words.address),
    pattern(Named::Contact, "a name", |words| words.name),
    pattern(Named::Record, "a record number", |words| words.record),
];

/// Returns the pattern that the name of a column matches, if any.
pub(super) fn meaning(name: &str) -> Option<&'static Pattern> {
    let name = Name::new(name);
    // A count of a person's visits is not a person's number.
    let counts = name.words.iter().any(|word| is_in(word, |words| words.counts));
    let fits = |pattern: &&Pattern| {
        !(counts && matches!(pattern.named, Named::Person | Named::Record))
            && LANGUAGES
                .iter()
                .any(|language| listed((pattern.words)(language)).any(|like| name.is_like(like)))
    };
    PATTERNS.iter().find(fits)
}

/// Returns the pattern of a person's number for a name that is only the word for the person.
pub(super) fn person_alone(name: &str) -> Option<&'static Pattern> {
    let whole = Name::new(name).words.join(" ");
    let is_person = is_in(&whole, |words| words.person_alone);
    PATTERNS.iter().find(|pattern| is_person && pattern.named == Named::Person)
}

/// Returns whether a name of a column is like one of these patterns.
pub(super) fn is_like(name: &str, patterns: &[&str]) -> bool {
    let name = Name::new(name);
    patterns.iter().any(|like| name.is_like(like))
}

/// Returns whether the words of `own`, the name of a hierarchy, stand in the name of a column.
pub(super) fn contains_name(name: &str, own: &str) -> bool {
    Name::new(name).is_like(&words(own).join(" "))
}

/// Returns the entries of a list of words.
pub(super) fn listed(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(", ").filter(|entry| !entry.is_empty())
}

/// Returns whether a word is in a list of any language.
fn is_in(word: &str, list: fn(&Words) -> &'static str) -> bool {
    LANGUAGES.iter().any(|language| listed(list(language)).any(|entry| entry == word))
}

/// The name of a column.
struct Name<'a> {
    written: &'a str,
    /// Its words, without those that only link others.
    words: Vec<String>,
}

impl<'a> Name<'a> {
    fn new(name: &'a str) -> Name<'a> {
        let mut words = words(name);
        words.retain(|word| !is_in(word, |words| words.links));
        Name { written: name.trim(), words }
    }

    /// Returns whether the name is like a pattern, written as [`Words`] says.
    fn is_like(&self, pattern: &str) -> bool {
        if let Some(whole) = pattern.strip_prefix('=') {
            return self.written == whole || self.words.join(" ") == whole;
        }
        let parts: Vec<&str> = pattern.split(' ').collect();
        let apart = |run: &[String]| run.iter().zip(&parts).all(|(word, part)| fits(part, word));
        self.words.windows(parts.len()).any(apart)
            || parts.len() > 1 && self.words.iter().any(|word| is_joined(&parts, word))
    }
}

/// Returns whether a word is one of the words of a part; `*` is any ending.
fn fits(part: &str, word: &str) -> bool {
    part.split('|').any(|one| one.strip_suffix('*').map_or(one == word, |stem| word.starts_with(stem)))
}

/// Returns whether a word is all of these parts, one right after the other.
fn is_joined(parts: &[&str], word: &str) -> bool {
    match parts {
        [] => false,
        [last] => fits(last, word),
        [first, rest @ ..] => {
            first.split('|').any(|one| word.strip_prefix(one).is_some_and(|end| is_joined(rest, end)))
        }
    }
}

/// Returns the words of a name in lower case and without accents: `patientId`, `patient-id` and
/// `PATIENT_ID2` begin with `patient` and `id`, `Prénom` is `prenom`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    // An accent can be a character of its own, after its letter.
    let letters: Vec<char> = name.chars().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let next_is_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        // A new word begins after a lower-case letter, or at the last of several upper-case letters
        // before a lower-case one. `N°` ends one.
        let turns = letter.is_uppercase()
            && before.is_some_and(|before| before.is_lowercase() || before.is_uppercase() && next_is_small)
            || matches!(before, Some('°' | 'º'));
        let is_letter = letter.is_alphabetic() || *letter == '°';
        if !is_letter || turns {
            words.push(String::new());
        }
        if let (true, Some(word)) = (is_letter, words.last_mut()) {
            letter.to_lowercase().for_each(|letter| push_folded(word, letter));
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Appends a lower-case letter without its accent; `N°` becomes `no`.
fn push_folded(word: &mut String, letter: char) {
    word.push_str(match letter {
        'à'..='å' | 'ª' => "a",
        'ç' => "c",
        'è'..='ë' => "e",
        'ì'..='ï' => "i",
        'ñ' => "n",
        'ò'..='ö' | 'ø' | 'º' | '°' => "o",
        'ù'..='ü' => "u",
        'ý' | 'ÿ' => "y",
        'æ' => "ae",
        'œ' => "oe",
        'ĳ' => "ij",
        'ß' => "ss",
        other => return word.push(other),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::KNOWN;

    #[test]
    fn names_are_read_word_by_word() {
        assert_eq!(words("patientID"), ["patient", "id"]);
        assert_eq!(words("ICDCode10_main-dx.2"), ["icd", "code", "main", "dx"]);
        assert_eq!(words("Größe Prénom AÑO Straße_cœur"), ["grosse", "prenom", "ano", "strasse", "coeur"]);
        assert_eq!(words("pre\u{301}nom N°Sécu Nº"), ["prenom", "no", "secu", "no"]);
        assert_eq!(words(""), [""; 0]);
    }

    #[test]
    fn what_names_mean() {
        let cases = [
            ("patient_id", Some(Named::Person)),
            ("PatientId", Some(Named::Person)),
            ("patientid", Some(Named::Person)),
            ("SSN", Some(Named::Person)),
            ("last-name", Some(Named::Contact)),
            ("surname", Some(Named::Contact)),
            ("doctor_name", Some(Named::Contact)),
            ("employeeName", Some(Named::Contact)),
            ("emailAddress", Some(Named::Contact)),
            ("address_city", Some(Named::Known)),
            ("home_address", Some(Named::Contact)),
            ("dateOfBirth", Some(Named::Birth)),
            ("birth_country", Some(Named::Known)),
            ("ZIP5", Some(Named::Postal)),
            ("postcode", Some(Named::Postal)),
            ("age_at_diagnosis", Some(Named::Known)),
            ("native-country", Some(Named::Known)),
            ("marital_status", Some(Named::Known)),
            ("visit_date", Some(Named::Event)),
            ("visit_id", Some(Named::Record)),
            ("icd10", Some(Named::Sensitive)),
            ("drug_name", Some(Named::Sensitive)),
            ("diagnosis_id", Some(Named::Sensitive)),
            ("salary-class", Some(Named::Sensitive)),
            ("notes", Some(Named::Notes)),
            ("uuid", Some(Named::Record)),
            // Matches words, not parts of words.
            ("dosage", None),
            ("message", None),
            ("essex", None),
            ("filename_extension", None),
            ("fnlwgt", None),
            ("estate", None),
            ("grace", None),
            ("paid", None),
            ("column_1", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(meaning(name).map(|pattern| pattern.named), expected, "{name}");
        }
    }

    /// All names that a pattern spells out.
    fn spelt(pattern: &str) -> Vec<String> {
        let one = |part: &str| -> Vec<String> {
            part.split('|').map(|word| word.trim_end_matches('*').to_owned()).collect()
        };
        pattern.trim_start_matches('=').split(' ').map(one).fold(vec![String::new()], |names, part| {
            let longer = |name: &String| -> Vec<String> {
                part.iter().map(|word| format!("{name} {word}").trim().to_owned()).collect()
            };
            names.iter().flat_map(longer).collect()
        })
    }

    /// Capitals and accents stand only in names that must be written just so.
    #[track_caller]
    fn is_written_as_words(like: &str) {
        for plain in spelt(like) {
            let as_written = like.starts_with('=') && words(&plain).concat() != plain.replace(' ', "");
            assert!(as_written || Name::new(&plain).words.join(" ") == plain, "{like}");
            assert!(is_like(&plain, &[like]), "{like}");
        }
        let stars = like.matches('*').count();
        let at_ends = like.split([' ', '|']).filter(|word| word.len() > 3 && word.ends_with('*')).count();
        assert_eq!(stars, at_ends, "{like}");
    }

    #[test]
    fn every_pattern_is_written_as_words() {
        for pattern in PATTERNS {
            for like in LANGUAGES.iter().flat_map(|language| listed((pattern.words)(language))) {
                is_written_as_words(like);
                // No pattern is hidden by an earlier one.
                for plain in spelt(like) {
                    assert_eq!(meaning(&plain).map(|found| found.like), Some(pattern.like), "{plain}");
                }
            }
        }
        for row in KNOWN {
            row.words.iter().for_each(|like| is_written_as_words(like));
        }
    }

    #[test]
    fn lists_hold_each_entry_once() {
        for language in LANGUAGES {
            let lists = PATTERNS.iter().map(|pattern| (pattern.words)(language));
            for list in lists.chain([language.counts, language.links, language.person_alone]) {
                let entries: Vec<&str> = listed(list).collect();
                for (at, entry) in entries.iter().enumerate() {
                    assert!(!entry.contains(',') && entry.trim() == *entry, "{entry:?}");
                    assert!(!entries[..at].contains(entry), "{entry} is listed twice");
                }
            }
        }
    }

    #[test]
    fn names_of_known_hierarchies() {
        let like = |name: &str| -> Vec<&str> {
            KNOWN.iter().filter(|row| is_like(name, row.words)).map(|row| row.doc.name).collect()
        };
        for (name, rows) in [
            ("native-country", &["country"][..]),
            ("citizenship", &["country"]),
            ("Land", &["country"]),
            ("pays_naissance", &["country"]),
            ("land_area", &[]),
            ("pays_tax", &[]),
            ("Alter", &["life_stage"]),
            ("CIE10", &["icd10", "icd9"]),
            ("home_state", &["us_state"]),
            ("ICD10_main", &["icd10", "icd9"]),
            ("hour", &["hour"]),
            ("hours-per-week", &[]),
            ("county", &[]),
            ("status", &[]),
            ("zip", &[]),
        ] {
            assert_eq!(like(name), rows, "{name}");
        }
        assert!(contains_name("icd_main", "icd10") && contains_name("us state", "us_state"));
        assert!(!contains_name("state", "us_state") && !contains_name("age", "life_stage"));
    }
}
