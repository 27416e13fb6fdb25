//! The words of column names, one file per language.
//!
//! A language is its file and its line in [`LANGUAGES`]. The words of all languages are looked up in
//! every name: a word that means something else in another language stands with a second word, with
//! `=`, or not at all. In doubt a word is left out, because a name without a meaning is a question to
//! the user.

mod dutch;
mod english;
mod french;
mod german;
mod italian;
mod portuguese;
mod spanish;

/// All languages.
pub(super) const LANGUAGES: &[Words] = &[
    english::WORDS,
    german::WORDS,
    french::WORDS,
    spanish::WORDS,
    italian::WORDS,
    portuguese::WORDS,
    dutch::WORDS,
];

/// The words of a language, by meaning, separated by `, `.
///
/// - `birth country`: these words stand next to each other in the name, or are joined in one word;
/// - `id|num patient`: `|` separates alternative words;
/// - `diagnos*`: any ending;
/// - `=land`: the name holds nothing else; with capitals or accents (`=CP`) it is written just so.
///
/// All else is in lower case and without accents, as names are read: `Prénom` is `prenom` and `Straße`
/// is `strasse`. A German word with an umlaut is listed twice, `madchen` and `maedchen`, unless a `*`
/// comes first.
pub(super) struct Words {
    /// A person's own number, in health care, at an authority, as a customer.
    pub(super) person: &'static str,
    /// Words for the person, which are a person's number only as the whole name of a column of
    /// numbers or codes.
    pub(super) person_alone: &'static str,
    /// Telephones, accounts, licence plates.
    pub(super) contact: &'static str,
    /// Names that only persons have.
    pub(super) person_name: &'static str,
    /// Places of birth.
    pub(super) birth_place: &'static str,
    /// Dates and years of birth.
    pub(super) birth: &'static str,
    /// Postal codes.
    pub(super) postal: &'static str,
    /// Sex and gender.
    pub(super) sex: &'static str,
    /// Race and ethnic origin.
    pub(super) race: &'static str,
    /// Ages.
    pub(super) age: &'static str,
    /// Places, from a quarter to a country.
    pub(super) place: &'static str,
    /// Marital status, children, household.
    pub(super) family: &'static str,
    /// Schools and degrees.
    pub(super) education: &'static str,
    /// Occupations and employers.
    pub(super) occupation: &'static str,
    /// Nationality and language.
    pub(super) nationality: &'static str,
    /// Religions.
    pub(super) religion: &'static str,
    /// Dates of visits, admissions, deaths, purchases.
    pub(super) event: &'static str,
    /// Free text.
    pub(super) notes: &'static str,
    /// Diagnoses and treatments.
    pub(super) health: &'static str,
    /// Income and debts.
    pub(super) money: &'static str,
    /// Sexual and political life, convictions.
    pub(super) private: &'static str,
    /// Addresses and streets.
    pub(super) address: &'static str,
    /// Any other name.
    pub(super) name: &'static str,
    /// The number of a record: a stay, an invoice, a row.
    pub(super) record: &'static str,
    /// Words for a count, a kind or a state: a name with one of them is no person's number.
    pub(super) counts: &'static str,
    /// Words that only link others and are skipped: `date de naissance` is `date naissance`.
    pub(super) links: &'static str,
    /// Cells that mean "missing" among numbers or dates, in lower case, with their accents and full
    /// stops; also the errors of spreadsheets (`#nv`).
    pub(super) missing: &'static str,
}

#[cfg(test)]
mod tests {
    use super::super::names::meaning;

    /// Names of columns, separated by `, `, have this meaning; `""` is none.
    #[track_caller]
    pub(super) fn mean(like: &str, names: &str) {
        for name in names.split(", ") {
            assert_eq!(meaning(name).map_or("", |pattern| pattern.like), like, "{name}");
        }
    }
}
