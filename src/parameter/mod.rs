//! Parameters of models, measures, generalizers and methods: each is described once, for policies,
//! SQL, the command line, records and the reference.
//!
//! Each syntax has one reader that makes a [`Setting`] of what a user wrote: `policy/keys.rs` for policies,
//! `sql/constants.rs` for literals, `Setting::parse` for texts (command line, records). [`Settings::by_name`]
//! then refuses settings that are unknown, missing or out of range, so a row's `make` does not check them.
//!
//! The first parameter of a generalizer has one entry per level ([`Kind::Levels`]); a policy gives it under the
//! generalizer's key, a SQL call gives the entry of one level. A hierarchy file is a setting too: a
//! [`TextTable`], whose text form is its number of columns, because errors and logs show settings. The effort
//! of a search is one list (`EFFORT` in `method/lattice`), because one key of a policy bounds several methods.
//!
//! Table functions list no parameters. Their arguments are relations and expressions over their columns, which
//! only the engine's planner can resolve: a `Setting` could not hold them, and each reader would have kinds
//! that it never reads.

mod setting;

pub(crate) use setting::toml_key;
#[cfg(feature = "engine")]
pub(crate) use setting::toml_text;
pub use setting::{Setting, TextTable};

use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result, closest};

/// A parameter of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name in a policy and in records.
    pub name: &'static str,
    /// What it can be set to.
    pub kind: Kind,
    /// What it means to leave it out.
    pub absent: Absent,
    /// The meaning, in a few words.
    pub summary: &'static str,
}

/// What a parameter can be set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An integer from 1 to `i64::MAX`.
    Count,
    /// A number of at least 1.
    AtLeastOne,
    /// A number above 0.
    Positive,
    /// A number from 0 to 1.
    Share,
    /// Any number.
    Number,
    /// Any numbers.
    Numbers,
    /// Any text but the empty one.
    Word,
    /// Any words.
    Words,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list with one entry of this kind per level, finest first, and at least one; in a SQL call,
    /// the entry alone.
    Levels(&'static Kind),
    /// A table of texts; a policy names its file.
    File,
    /// A list of nodes of the lattice, and at least one: each a table with the level of each column.
    Nodes,
}

/// What it means to leave a parameter out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// That is an error.
    Refused,
    /// The feature does without.
    Unset,
    /// The same as this setting.
    Means(Setting),
}

impl Kind {
    /// Returns the range in words: `a number from 0 to 1`.
    pub fn range(self) -> String {
        match self {
            Kind::Count => "an integer of at least 1".into(),
            Kind::AtLeastOne => "a number of at least 1".into(),
            Kind::Positive => "a number above 0".into(),
            Kind::Share => "a number from 0 to 1".into(),
            Kind::Number => "a number".into(),
            Kind::Numbers => "a list of numbers".into(),
            Kind::Word => "a text that is not empty".into(),
            Kind::Words => "a list of texts".into(),
            Kind::Levels(entry) => {
                format!("a list with one entry per level, finest first, each {}", entry.range())
            }
            Kind::File => "the name of a file".into(),
            Kind::Nodes => "a list of nodes such as [{ age = 1, zip = 2 }]".into(),
            Kind::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                match words.split_last() {
                    Some((last, [first @ .., before])) => {
                        let first: String = first.iter().map(|word| format!("{word}, ")).collect();
                        format!("{first}{before} or {last}")
                    }
                    _ => words.concat(),
                }
            }
        }
    }

    /// Returns whether a setting is within the range; that of levels is their entries'.
    fn allows(self, setting: &Setting) -> bool {
        let one = Decimal::integer(1);
        match (self, setting) {
            (Kind::Count, Setting::Number(value)) => {
                *value >= one && value.to_u64().is_some_and(|count| i64::try_from(count).is_ok())
            }
            (Kind::AtLeastOne, Setting::Number(value)) => *value >= one,
            (Kind::Positive, Setting::Number(value)) => value.is_positive(),
            (Kind::Share, Setting::Number(value)) => *value >= Decimal::integer(0) && *value <= one,
            (Kind::Number, Setting::Number(_)) | (Kind::File, Setting::Table(_)) => true,
            (Kind::Numbers, Setting::List(all)) => all.iter().all(|one| Kind::Number.allows(one)),
            (Kind::Words, Setting::List(all)) => all.iter().all(|one| matches!(one, Setting::Word(_))),
            (Kind::Nodes, Setting::List(all)) => all.iter().all(|one| matches!(one, Setting::Node(_))),
            (Kind::Choice(words), Setting::Word(word)) => words.contains(&&**word),
            (Kind::File | Kind::Word, Setting::Word(word)) => !word.is_empty(),
            _ => false,
        }
    }

    /// Checks that a setting is within the range.
    ///
    /// # Errors
    /// A policy error that says the range, and the level where there are several.
    pub fn check(self, setting: &Setting) -> Result<()> {
        let found = || format!("expected {}, found {setting}", self.range());
        match (self, setting) {
            (Kind::Levels(_), Setting::List(all)) if all.is_empty() => {
                Err(Error::policy("expected at least one level, found an empty list"))
            }
            (Kind::Nodes, Setting::List(all)) if all.is_empty() => {
                Err(Error::policy("expected at least one node, found an empty list"))
            }
            (Kind::Levels(entry), Setting::List(all)) => (1..)
                .zip(all)
                .try_for_each(|(level, one)| entry.check(one).map_err(|error| error.at(of_level(level)))),
            _ if self.allows(setting) => Ok(()),
            (Kind::Choice(words), Setting::Word(word)) => Err(Error::policy(match closest(word, words) {
                Some(close) => format!("{}; did you mean {close:?}?", found()),
                None => found(),
            })),
            _ => Err(Error::policy(found())),
        }
    }
}

/// Returns the place of a node in a list for errors.
pub(crate) fn of_node(number: usize) -> String {
    format!("node {number}")
}

/// Returns the place of a level's entry for errors.
pub(crate) fn of_level(level: usize) -> String {
    format!("level {level}")
}

impl Parameter {
    /// Checks that a setting is within the range.
    ///
    /// # Errors
    /// A policy error that says the range, without the parameter's name.
    pub fn check(&self, setting: &Setting) -> Result<()> {
        self.kind.check(setting)
    }

    /// Checks a number.
    ///
    /// # Errors
    /// A policy error at the parameter's name.
    pub fn check_number(&self, value: Decimal) -> Result<()> {
        self.check(&value.into()).map_err(|error| error.at(self.name))
    }

    /// Checks a count.
    ///
    /// # Errors
    /// A policy error at the parameter's name.
    pub fn check_count(&self, count: u64) -> Result<()> {
        match i64::try_from(count) {
            Ok(value) => self.check_number(Decimal::integer(value)),
            Err(_) => {
                Err(Error::policy(format!("expected at most {}, found {count}", i64::MAX)).at(self.name))
            }
        }
    }

    /// Returns the setting that leaving the parameter out means, if it means one.
    pub fn default(&self) -> Option<&Setting> {
        match &self.absent {
            Absent::Means(setting) => Some(setting),
            Absent::Refused | Absent::Unset => None,
        }
    }
}

/// The settings of a row's parameters, all within their ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(Vec<(&'static str, Setting)>);

impl Settings {
    /// Reads settings by the names of their parameters.
    ///
    /// # Errors
    /// A policy error for a parameter that the row does not have, one that is missing, and a
    /// setting out of range.
    pub fn by_name(of: &Doc, parameters: &[Parameter], given: &[(String, Setting)]) -> Result<Self> {
        let is_known = |name: &str| parameters.iter().any(|parameter| parameter.name == name);
        if let Some((name, _)) = given.iter().find(|(name, _)| !is_known(name)) {
            let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
            let why = format!("`{}` has no parameter `{name}`; it takes {}", of.name, names.join(", "));
            return Err(Error::policy(why));
        }
        let mut all = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            let given = given.iter().find(|(name, _)| name == parameter.name).map(|(_, setting)| setting);
            let setting = match (given, &parameter.absent) {
                (Some(setting), _) | (None, Absent::Means(setting)) => setting,
                (None, Absent::Unset) => continue,
                (None, Absent::Refused) => {
                    return Err(Error::policy(format!("the parameter `{}` is missing", parameter.name)));
                }
            };
            parameter.check(setting).map_err(|error| error.at(parameter.name))?;
            all.push((parameter.name, setting.clone()));
        }
        Ok(Self(all))
    }

    fn get(&self, name: &str) -> Option<&Setting> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, setting)| setting)
    }

    fn set(&self, name: &str) -> Result<&Setting> {
        self.get(name).ok_or_else(|| Error::internal(format!("parameter: `{name}` is not set")))
    }

    /// Returns the number of the parameter `name`; `None` if it is left out.
    ///
    /// # Errors
    /// An internal error if it is set to something else.
    pub fn some_number(&self, name: &str) -> Result<Option<Decimal>> {
        self.get(name).map(Setting::number).transpose()
    }

    /// Returns the number of the parameter `name`.
    ///
    /// # Errors
    /// An internal error if the row has no such number.
    pub fn number(&self, name: &str) -> Result<Decimal> {
        self.set(name)?.number()
    }

    /// Returns the integer of the parameter `name`.
    ///
    /// # Errors
    /// As [`number`](Self::number), or if the parameter is not a [`Count`](Kind::Count).
    pub fn count(&self, name: &str) -> Result<u64> {
        let count = self.number(name)?.to_u64();
        count.ok_or_else(|| Error::internal(format!("parameter: `{name}` is not a count")))
    }

    /// Returns the word of the parameter `name`; `None` if it is left out.
    ///
    /// # Errors
    /// An internal error if it is set to something else.
    pub fn some_word(&self, name: &str) -> Result<Option<&str>> {
        self.get(name).map(Setting::word).transpose()
    }

    /// Returns the word of the parameter `name`.
    ///
    /// # Errors
    /// An internal error if the row has no such word.
    pub fn word(&self, name: &str) -> Result<&str> {
        self.set(name)?.word()
    }

    /// Returns the words of the parameter `name`; `None` if it is left out.
    ///
    /// # Errors
    /// An internal error if it is set to something else.
    pub fn some_words(&self, name: &str) -> Result<Option<Vec<String>>> {
        let words = |all: &Setting| all.list()?.iter().map(|word| word.word().map(str::to_owned)).collect();
        self.get(name).map(words).transpose()
    }

    /// Returns the entries of the parameter `name`.
    ///
    /// # Errors
    /// An internal error if the row has no such list.
    pub fn list(&self, name: &str) -> Result<&[Setting]> {
        self.set(name)?.list()
    }

    /// Returns the table of the parameter `name`.
    ///
    /// # Errors
    /// An internal error if the row has no such table.
    pub fn table(&self, name: &str) -> Result<&TextTable> {
        match self.set(name)? {
            Setting::Table(table) => Ok(table),
            other => Err(other.is_no("table")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: &Doc = &Doc { name: "f", summary: "", parameters: "k, r", example: "", paper: None };
    const PARAMETERS: &[Parameter] = &[
        Parameter { name: "k", kind: Kind::Count, absent: Absent::Refused, summary: "" },
        Parameter {
            name: "r",
            kind: Kind::Share,
            absent: Absent::Means(Setting::Number(Decimal::new_const(2, 1))),
            summary: "",
        },
        Parameter {
            name: "side",
            kind: Kind::Choice(&["left", "right"]),
            absent: Absent::Unset,
            summary: "",
        },
    ];

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings> {
        let kind = |name: &str| PARAMETERS.iter().find(|p| p.name == name).map_or(Kind::Number, |p| p.kind);
        let given =
            pairs.iter().map(|(name, text)| ((*name).to_owned(), Setting::parse(text, kind(name)).unwrap()));
        Settings::by_name(DOC, PARAMETERS, &given.collect::<Vec<_>>())
    }

    #[test]
    fn settings_are_complete_and_within_their_ranges() {
        let all = settings(&[("r", "0.5"), ("k", "3"), ("side", "left")]).unwrap();
        assert_eq!((all.count("k").unwrap(), all.number("r").unwrap().to_string()), (3, "0.5".into()));
        assert_eq!(all.word("side").unwrap(), "left");
        let some = settings(&[("k", "3")]).unwrap();
        assert_eq!(some.number("r").unwrap(), Decimal::new_const(2, 1));
        assert!(some.word("side").is_err() && some.some_number("side").unwrap().is_none());
        let refused = |pairs: &[(&str, &str)]| settings(pairs).unwrap_err().to_string();
        assert_eq!(refused(&[]), "the parameter `k` is missing");
        assert_eq!(refused(&[("l", "2")]), "`f` has no parameter `l`; it takes k, r, side");
        for wrong in ["0", "-1", "2.5"] {
            assert_eq!(
                refused(&[("k", wrong)]),
                format!("k: expected an integer of at least 1, found {wrong}")
            );
        }
        for wrong in ["-0.1", "1.01"] {
            let why = format!("r: expected a number from 0 to 1, found {wrong}");
            assert_eq!(refused(&[("k", "1"), ("r", wrong)]), why);
        }
        let why = "side: expected \"left\" or \"right\", found \"up\"";
        assert_eq!(refused(&[("k", "1"), ("side", "up")]), why);
        assert!(all.number("x").is_err() && all.count("r").is_err() && all.number("side").is_err());
    }

    #[test]
    fn one_is_within_every_range_of_numbers() {
        let one = Setting::Number(Decimal::integer(1));
        let kinds = [Kind::Count, Kind::AtLeastOne, Kind::Positive, Kind::Share, Kind::Number];
        assert!(kinds.iter().all(|kind| kind.allows(&one)));
        assert!(!Kind::AtLeastOne.allows(&Setting::parse("0.999", Kind::Number).unwrap()));
        let k = &PARAMETERS[0];
        assert!(k.check_count(u64::MAX).is_err() && k.check_count(0).is_err() && k.check_count(1).is_ok());
        assert!(k.check(&Setting::Word("one".into())).is_err() && PARAMETERS[2].check(&one).is_err());
    }

    #[test]
    fn lists_have_an_entry_per_level_and_tables_show_no_cell() {
        let (steps, cuts) = (Kind::Levels(&Kind::Positive), Kind::Levels(&Kind::Numbers));
        let integers = |list: &[i64]| list.iter().map(|n| Decimal::integer(*n)).collect::<Vec<_>>();
        assert_eq!(Setting::parse("18,25", cuts).unwrap(), vec![integers(&[18, 25])].into());
        assert_eq!(Setting::parse("10", steps).unwrap(), integers(&[10]).into());
        let refused = |kind: Kind, setting: Setting| kind.check(&setting).unwrap_err().to_string();
        assert!(
            steps.check(&integers(&[1, 2]).into()).is_ok() && cuts.check(&vec![integers(&[])].into()).is_ok()
        );
        assert_eq!(refused(steps, integers(&[5, 0]).into()), "level 2: expected a number above 0, found 0");
        assert_eq!(refused(steps, integers(&[]).into()), "expected at least one level, found an empty list");
        assert_eq!(refused(cuts, integers(&[5]).into()), "level 1: expected a list of numbers, found 5");
        let table = Setting::from(TextTable::from(vec![vec!["secret".to_owned(), "cell".to_owned()]]));
        assert!(Kind::File.check(&table).is_ok());
        assert_eq!(refused(Kind::Number, table.clone()), "expected a number, found a table of 2 columns");
        assert_eq!(
            format!("{table:?} {}", table.word().unwrap_err()).matches("a table of 2 columns").count(),
            2
        );
    }
}
