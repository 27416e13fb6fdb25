//! Parameters: what a row of a table can be told, described once for policies, SQL, the command line, records and docs.

use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};

/// A parameter of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// The name in a policy and in records.
    pub name: &'static str,
    /// The numbers that it can be.
    pub kind: Kind,
    /// The number where none is given; `None` if one must be given.
    pub default: Option<Decimal>,
    /// The meaning, in a few words.
    pub summary: &'static str,
}

/// The numbers that a parameter can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An integer from 1 to `i64::MAX`.
    Count,
    /// A number of at least 1.
    AtLeastOne,
    /// A number from 0 to 1.
    Share,
}

impl Kind {
    /// Returns the range in words: `a number from 0 to 1`.
    pub fn range(self) -> &'static str {
        match self {
            Kind::Count => "an integer of at least 1",
            Kind::AtLeastOne => "a number of at least 1",
            Kind::Share => "a number from 0 to 1",
        }
    }

    fn allows(self, value: Decimal) -> bool {
        let one = Decimal::integer(1);
        match self {
            Kind::Count => value >= one && value.to_u64().is_some_and(|count| i64::try_from(count).is_ok()),
            Kind::AtLeastOne => value >= one,
            Kind::Share => value >= Decimal::integer(0) && value <= one,
        }
    }
}

impl Parameter {
    /// Checks that a number is within the range.
    ///
    /// # Errors
    /// A policy error that says the range, without the parameter's name.
    pub fn check(&self, value: Decimal) -> Result<()> {
        if self.kind.allows(value) {
            return Ok(());
        }
        Err(Error::policy(format!("expected {}, found {value}", self.kind.range())))
    }

    /// Checks a count.
    ///
    /// # Errors
    /// A policy error at the parameter's name.
    pub fn check_count(&self, count: u64) -> Result<()> {
        match i64::try_from(count) {
            Ok(value) => self.check(Decimal::integer(value)).map_err(|error| error.at(self.name)),
            Err(_) => {
                Err(Error::policy(format!("expected at most {}, found {count}", i64::MAX)).at(self.name))
            }
        }
    }
}

/// The numbers of a row's parameters, all within their ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    parameters: &'static [Parameter],
    /// In the order of the parameters.
    values: Vec<Decimal>,
}

impl Settings {
    /// Reads numbers by their names.
    ///
    /// # Errors
    /// A policy error for a parameter that the row does not have, one that is missing, and a number out of range.
    pub fn by_name(of: &Doc, parameters: &'static [Parameter], given: &[(String, Decimal)]) -> Result<Self> {
        let is_known = |name: &str| parameters.iter().any(|parameter| parameter.name == name);
        if let Some((name, _)) = given.iter().find(|(name, _)| !is_known(name)) {
            let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
            let why = format!("`{}` has no parameter `{name}`; it takes {}", of.name, names.join(", "));
            return Err(Error::policy(why));
        }
        let value = |parameter: &Parameter| {
            let given = given.iter().find(|(name, _)| name == parameter.name).map(|(_, value)| *value);
            let missing = || Error::policy(format!("the parameter `{}` is missing", parameter.name));
            let value = given.or(parameter.default).ok_or_else(missing)?;
            parameter.check(value).map_err(|error| error.at(parameter.name))?;
            Ok(value)
        };
        Ok(Self { parameters, values: parameters.iter().map(value).collect::<Result<_>>()? })
    }

    /// Returns the defaults of parameters.
    ///
    /// # Errors
    /// A policy error for a parameter without one.
    pub fn defaults(of: &Doc, parameters: &'static [Parameter]) -> Result<Self> {
        Self::by_name(of, parameters, &[])
    }

    /// Returns the number of the parameter `name`.
    ///
    /// # Errors
    /// An internal error if the row has no such parameter.
    pub fn number(&self, name: &str) -> Result<Decimal> {
        let at = self.parameters.iter().position(|parameter| parameter.name == name);
        let value = at.and_then(|at| self.values.get(at)).copied();
        value.ok_or_else(|| Error::internal(format!("parameter: `{name}` is none of the row's parameters")))
    }

    /// Returns the integer of the parameter `name`.
    ///
    /// # Errors
    /// As [`number`](Self::number), or if the parameter is not a [`Count`](Kind::Count).
    pub fn count(&self, name: &str) -> Result<u64> {
        let count = self.number(name)?.to_u64();
        count.ok_or_else(|| Error::internal(format!("parameter: `{name}` is not a count")))
    }

    /// Returns all numbers, in the order of the parameters.
    pub fn values(&self) -> &[Decimal] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: &Doc = &Doc { name: "f", summary: "", parameters: "k, r", example: "", paper: None };
    const PARAMETERS: &[Parameter] = &[
        Parameter { name: "k", kind: Kind::Count, default: None, summary: "" },
        Parameter { name: "r", kind: Kind::Share, default: Some(Decimal::new_const(2, 1)), summary: "" },
    ];

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings> {
        let given = pairs.iter().map(|(name, value)| ((*name).to_owned(), Decimal::parse(value).unwrap()));
        Settings::by_name(DOC, PARAMETERS, &given.collect::<Vec<_>>())
    }

    #[test]
    fn settings_are_complete_and_within_their_ranges() {
        let all = settings(&[("r", "0.5"), ("k", "3")]).unwrap();
        assert_eq!((all.count("k").unwrap(), all.number("r").unwrap().to_string()), (3, "0.5".into()));
        let some = settings(&[("k", "3")]).unwrap();
        assert_eq!(some.values(), [Decimal::integer(3), Decimal::new_const(2, 1)]);
        let refused = |pairs: &[(&str, &str)]| settings(pairs).unwrap_err().to_string();
        assert_eq!(refused(&[]), "the parameter `k` is missing");
        assert_eq!(refused(&[("l", "2")]), "`f` has no parameter `l`; it takes k, r");
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
        assert!(all.number("x").is_err() && all.count("r").is_err());
        assert!(Settings::defaults(DOC, PARAMETERS).is_err());
        assert!(Settings::defaults(DOC, &PARAMETERS[1..]).is_ok());
    }

    #[test]
    fn one_is_within_every_range() {
        let kinds = [Kind::Count, Kind::AtLeastOne, Kind::Share];
        assert!(kinds.iter().all(|kind| kind.allows(Decimal::integer(1))));
        assert!(!Kind::AtLeastOne.allows(Decimal::parse("0.999").unwrap()));
        let k = PARAMETERS[0];
        assert!(k.check_count(u64::MAX).is_err() && k.check_count(0).is_err() && k.check_count(1).is_ok());
    }
}
