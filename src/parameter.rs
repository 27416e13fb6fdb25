//! Parameters of models, measures, generalizers and methods: each is described once, for policies, SQL, the command line,
//! records and the reference.

use std::borrow::Cow;

use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};

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
    /// A number from 0 to 1.
    Share,
    /// Any number.
    Number,
    /// One of these words.
    Choice(&'static [&'static str]),
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

/// What a parameter is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// A number.
    Number(Decimal),
    /// A word.
    Word(Cow<'static, str>),
}

impl Kind {
    /// Returns whether settings are words rather than numbers.
    pub fn is_word(self) -> bool {
        matches!(self, Kind::Choice(_))
    }

    /// Returns the range in words: `a number from 0 to 1`.
    pub fn range(self) -> String {
        match self {
            Kind::Count => "an integer of at least 1".into(),
            Kind::AtLeastOne => "a number of at least 1".into(),
            Kind::Share => "a number from 0 to 1".into(),
            Kind::Number => "a number".into(),
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

    fn allows(self, setting: &Setting) -> bool {
        let one = Decimal::integer(1);
        match (self, setting) {
            (Kind::Count, Setting::Number(value)) => {
                *value >= one && value.to_u64().is_some_and(|count| i64::try_from(count).is_ok())
            }
            (Kind::AtLeastOne, Setting::Number(value)) => *value >= one,
            (Kind::Share, Setting::Number(value)) => *value >= Decimal::integer(0) && *value <= one,
            (Kind::Number, Setting::Number(_)) => true,
            (Kind::Choice(words), Setting::Word(word)) => words.contains(&&**word),
            (Kind::Choice(_), _) | (_, Setting::Word(_)) => false,
        }
    }
}

impl Setting {
    /// Reads the text form.
    ///
    /// # Errors
    /// A policy error for a text that is no number where one is expected.
    pub fn parse(text: &str, kind: Kind) -> Result<Self> {
        match kind.is_word() {
            true => Ok(Self::Word(text.to_owned().into())),
            false => Decimal::parse(text).map(Self::Number),
        }
    }
}

impl From<Decimal> for Setting {
    fn from(value: Decimal) -> Self {
        Self::Number(value)
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Word(word) => write!(f, "{word:?}"),
        }
    }
}

impl Parameter {
    /// Checks that a setting is within the range.
    ///
    /// # Errors
    /// A policy error that says the range, without the parameter's name.
    pub fn check(&self, setting: &Setting) -> Result<()> {
        if self.kind.allows(setting) {
            return Ok(());
        }
        Err(Error::policy(format!("expected {}, found {setting}", self.kind.range())))
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
    /// A policy error for a parameter that the row does not have, one that is missing, and a setting out of range.
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

    /// Returns the number of the parameter `name`; `None` if it is left out.
    ///
    /// # Errors
    /// An internal error for a word.
    pub fn some_number(&self, name: &str) -> Result<Option<Decimal>> {
        match self.get(name) {
            Some(Setting::Number(value)) => Ok(Some(*value)),
            None => Ok(None),
            Some(Setting::Word(_)) => Err(Error::internal(format!("parameter: `{name}` is not a number"))),
        }
    }

    /// Returns the number of the parameter `name`.
    ///
    /// # Errors
    /// An internal error if the row has no such number.
    pub fn number(&self, name: &str) -> Result<Decimal> {
        self.some_number(name)?.ok_or_else(|| Error::internal(format!("parameter: `{name}` is not set")))
    }

    /// Returns the integer of the parameter `name`.
    ///
    /// # Errors
    /// As [`number`](Self::number), or if the parameter is not a [`Count`](Kind::Count).
    pub fn count(&self, name: &str) -> Result<u64> {
        let count = self.number(name)?.to_u64();
        count.ok_or_else(|| Error::internal(format!("parameter: `{name}` is not a count")))
    }

    /// Returns the word of the parameter `name`.
    ///
    /// # Errors
    /// An internal error if the row has no such word.
    pub fn word(&self, name: &str) -> Result<&str> {
        match self.get(name) {
            Some(Setting::Word(word)) => Ok(word),
            _ => Err(Error::internal(format!("parameter: `{name}` is not set to a word"))),
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
        assert!(
            [Kind::Count, Kind::AtLeastOne, Kind::Share, Kind::Number].iter().all(|kind| kind.allows(&one))
        );
        assert!(!Kind::AtLeastOne.allows(&Setting::parse("0.999", Kind::Number).unwrap()));
        let k = &PARAMETERS[0];
        assert!(k.check_count(u64::MAX).is_err() && k.check_count(0).is_err() && k.check_count(1).is_ok());
        assert!(k.check(&Setting::Word("one".into())).is_err() && PARAMETERS[2].check(&one).is_err());
    }
}
