//! Infers the meaning of a column from the words of its name, looked up in a table.

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
    /// Words that stand next to each other in a name; `*` is any ending of a word.
    words: &'static [&'static str],
}

const fn pattern(named: Named, like: &'static str, words: &'static [&'static str]) -> Pattern {
    Pattern { named, like, words }
}

/// The patterns; the first one that matches a name counts.
const PATTERNS: &[Pattern] = &[
    pattern(
        Named::Person,
        "a person's number",
        &[
            "patient id",
            "patient no",
            "patient nr",
            "patient number",
            "person id",
            "person no",
            "person number",
            "personal id",
            "subject id",
            "participant id",
            "respondent id",
            "beneficiary id",
            "member id",
            "member no",
            "member number",
            "customer id",
            "customer no",
            "customer number",
            "client id",
            "student id",
            "user id",
            "mrn",
            "medical record",
            "ssn",
            "social security",
            "national id",
            "national insurance",
            "nhs number",
            "tax id",
            "tax number",
            "tin",
            "passport*",
            "insurance no",
            "insurance number",
            "driver license",
            "drivers license",
            "driving licence",
        ],
    ),
    pattern(
        Named::Contact,
        "contact or payment data",
        &[
            "email",
            "e mail",
            "mail",
            "phone*",
            "telephone*",
            "mobile",
            "fax",
            "iban",
            "account no",
            "account number",
            "account id",
            "credit card",
            "card no",
            "card number",
            "ip",
            "ip address",
            "mac address",
            "license plate",
            "url",
        ],
    ),
    pattern(
        Named::Contact,
        "a person's name",
        &[
            "first name",
            "last name",
            "full name",
            "given name",
            "family name",
            "middle name",
            "maiden name",
            "birth name",
            "patient name",
            "customer name",
            "user name",
            "employee name",
            "student name",
            "member name",
            "client name",
            "contact name",
            "spouse name",
            "mother name",
            "father name",
            "child name",
            "surname",
            "forename",
            "login",
        ],
    ),
    pattern(
        Named::Known,
        "a place of birth",
        &[
            "birth country",
            "country of birth",
            "birth state",
            "state of birth",
            "birth place",
            "place of birth",
        ],
    ),
    pattern(Named::Birth, "a date of birth", &["dob", "birth*", "born"]),
    pattern(Named::Postal, "a postal code", &["zip", "zip code", "postal*", "post code", "plz"]),
    pattern(Named::Known, "sex or gender", &["sex", "gender"]),
    pattern(Named::Known, "race or origin", &["race", "ethnic*", "ancestry", "caste", "tribe"]),
    pattern(Named::Known, "an age", &["age", "ages"]),
    pattern(
        Named::Known,
        "a place",
        &[
            "city",
            "town",
            "county",
            "state",
            "province",
            "country",
            "region",
            "district",
            "municipality",
            "neighborhood",
            "lat",
            "latitude",
            "lon",
            "lng",
            "longitude",
        ],
    ),
    pattern(
        Named::Known,
        "family and marriage",
        &["marital*", "civil status", "relationship", "household*", "children", "dependents", "family size"],
    ),
    pattern(Named::Known, "education", &["educat*", "isced", "school*", "degree", "university"]),
    pattern(
        Named::Known,
        "an occupation",
        &[
            "occupation*",
            "job*",
            "profession*",
            "work class",
            "employ*",
            "industry",
            "isco",
            "naics",
            "veteran*",
            "military",
        ],
    ),
    pattern(Named::Known, "nationality or language", &["national*", "citizen*", "language*", "immigra*"]),
    pattern(Named::Known, "a religion, which can be sensitive as well", &["religio*"]),
    pattern(
        Named::Event,
        "the date of an event that others may have witnessed",
        &[
            "visit date",
            "encounter date",
            "admission*",
            "admit*",
            "discharge*",
            "appointment*",
            "surgery date",
            "procedure date",
            "death*",
            "died",
            "deceased*",
            "hire*",
            "enrol*",
            "travel date",
            "purchase date",
            "transaction date",
        ],
    ),
    pattern(Named::Notes, "free text", &["note*", "comment*", "remark*", "free text", "narrative", "memo"]),
    pattern(
        Named::Sensitive,
        "health data",
        &[
            "diagnos*",
            "disease*",
            "icd*",
            "dx",
            "problem*",
            "condition*",
            "illness*",
            "symptom*",
            "treatment*",
            "therap*",
            "procedure*",
            "medication*",
            "drug*",
            "prescription*",
            "hiv",
            "test result*",
            "lab result*",
            "allerg*",
            "pregnan*",
            "disab*",
            "genotype*",
            "mutation*",
        ],
    ),
    pattern(
        Named::Sensitive,
        "financial data",
        &["income*", "salar*", "wage*", "earning*", "credit score", "debt*"],
    ),
    pattern(
        Named::Sensitive,
        "private life",
        &["sexual*", "political*", "union member*", "crim*", "offen*", "convict*"],
    ),
    pattern(Named::Contact, "an address", &["address*", "addr", "street*"]),
    pattern(Named::Contact, "a name", &["name", "names"]),
    pattern(Named::Record, "a record number", &["id", "ids", "uuid", "guid", "key", "row number"]),
];

/// Returns the pattern that the name of a column matches, if any.
pub(super) fn meaning(name: &str) -> Option<&'static Pattern> {
    let words = words(name);
    // A count of a person's visits is not a person's number.
    let counts = words.iter().any(|word| COUNTS.contains(&word.as_str()));
    let fits = |pattern: &&Pattern| {
        !(counts && matches!(pattern.named, Named::Person | Named::Record))
            && pattern.words.iter().any(|like| stands_in(like, &words))
    };
    PATTERNS.iter().find(fits)
}

/// Returns whether the words of one of these patterns stand in the name of a column.
pub(super) fn is_like(name: &str, patterns: &[&str]) -> bool {
    let words = words(name);
    patterns.iter().any(|like| stands_in(like, &words))
}

/// Returns whether the words of `own`, the name of a hierarchy, stand in the name of a column.
pub(super) fn contains_name(name: &str, own: &str) -> bool {
    stands_in(&words(own).join(" "), &words(name))
}

/// Words of names for a count, a kind or a state instead of a person's number.
const COUNTS: &[&str] =
    &["of", "in", "per", "count", "counts", "total", "type", "kind", "status", "visits", "stays", "days"];

/// Returns the words of a name in lower case: `patientId`, `patient-id` and `PATIENT_ID2` begin
/// with `patient` and `id`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let next_is_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        // A new word begins after a lower-case letter, or at the last of several upper-case letters
        // before a lower-case one.
        let turns = letter.is_uppercase()
            && before.is_some_and(|before| before.is_lowercase() || before.is_uppercase() && next_is_small);
        if !letter.is_alphabetic() || turns {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphabetic(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether the words of a pattern stand next to each other among `words`, or are joined in
/// one of them.
fn stands_in(pattern: &str, words: &[String]) -> bool {
    let parts: Vec<&str> = pattern.split(' ').collect();
    let apart =
        words.windows(parts.len()).any(|run| run.iter().zip(&parts).all(|(word, part)| fits(part, word)));
    let together = pattern.replace(' ', "");
    apart || parts.len() > 1 && words.iter().any(|word| fits(&together, word))
}

fn fits(part: &str, word: &str) -> bool {
    part.strip_suffix('*').map_or(part == word, |stem| word.starts_with(stem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::KNOWN;

    #[test]
    fn names_are_read_word_by_word() {
        assert_eq!(words("patientID"), ["patient", "id"]);
        assert_eq!(words("ICDCode10_main-dx.2"), ["icd", "code", "main", "dx"]);
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

    #[test]
    fn every_pattern_is_written_as_words() {
        for like in PATTERNS.iter().flat_map(|pattern| pattern.words) {
            let plain = like.trim_end_matches('*');
            assert_eq!(words(plain).join(" "), plain);
            assert!(meaning(plain).is_some(), "{like}");
        }
        for row in KNOWN {
            for like in row.words {
                let plain = like.trim_end_matches('*');
                assert_eq!(words(plain).join(" "), plain, "{}", row.doc.name);
                assert!(is_like(plain, row.words));
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
