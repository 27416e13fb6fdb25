//! A policy made by code: the keys of a policy file, set one by one. The parser of the file is the only
//! one that judges them.

use std::fmt;

use serde::Serialize;
use toml::{Table, Value};

use super::keys::join;
use super::set_key::{insert, path_of};
use super::spec::PolicySpec;
use crate::error::{Error, Errors, Result};
use crate::role::Role;

/// Keys with their values, and the errors of those that could not be set.
#[derive(Clone, Default)]
struct Entries {
    table: Table,
    wrong: Vec<Error>,
}

impl Entries {
    fn set(mut self, key: &str, value: impl Serialize) -> Self {
        let set = path_of(key).and_then(|path| {
            let value = Value::try_from(value)
                .map_err(|why| Error::policy(format!("the value cannot be written as TOML: {why}")));
            value.and_then(|value| insert(&mut self.table, &path, value)).map_err(|error| error.at(key))
        });
        self.wrong.extend(set.err());
        self
    }
}

/// Shows no values: an order of values holds cells.
impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.table.keys()).finish()
    }
}

/// Makes a [`PolicySpec`] from keys that code sets: those of a policy file, with the same meaning.
///
/// A wrong key or value is an error of [`build`](Self::build), in the words of a policy file's.
///
/// ```
/// use datafusion_kanon::{PolicyColumn, PolicyRequirement, PolicySpec, Role};
/// let spec = PolicySpec::builder()
///     .k(5)
///     .suppression_limit(0.05)
///     .rows_are_individuals()
///     .drop_others()
///     .require(PolicyRequirement::new("l_diversity").set("l", 2))
///     .column("zip", PolicyColumn::new(Role::Quasi).hierarchy("prefix", [4, 3, 2]).weight(2.0))
///     .column("sex", PolicyColumn::new(Role::Quasi))
///     .column("diagnosis", PolicyColumn::new(Role::Sensitive))
///     .set("output.released_on", "2026-11-24")
///     .build()?;
/// assert!(spec.text().contains("suppression_limit"));
/// let wrong = PolicySpec::builder().k(5).column("zip", PolicyColumn::new(Role::Quasi).set("rule", 1)).build();
/// assert_eq!(wrong.unwrap_err().to_string(), "columns.zip.rule: unknown key; did you mean `role`?");
/// # Ok::<(), datafusion_kanon::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct PolicyBuilder(Entries);

impl PolicyBuilder {
    /// Sets k: each class has at least this many individuals.
    pub fn k(self, k: u64) -> Self {
        self.set("k", k)
    }

    /// Sets the share of the individuals that may be suppressed, from 0 to 1.
    pub fn suppression_limit(self, share: f64) -> Self {
        self.set("suppression_limit", share)
    }

    /// States that each row is another individual.
    pub fn rows_are_individuals(self) -> Self {
        self.set("rows_are_individuals", true)
    }

    /// Leaves out the columns that the policy does not name; without it they are an error.
    pub fn drop_others(self) -> Self {
        self.set("others", "drop")
    }

    /// Sets the method by its name; `set("method.mondrian.split", "loss")` gives one with its parameters.
    pub fn method(self, name: &str) -> Self {
        self.set("method", name)
    }

    /// Adds a model that must hold.
    pub fn require(mut self, requirement: PolicyRequirement) -> Self {
        let PolicyRequirement(Entries { table, wrong }) = requirement;
        let all = self.0.table.entry("require").or_insert_with(|| Value::Array(Vec::new()));
        match all {
            Value::Array(all) => {
                let place = format!("require[{}]", all.len());
                all.push(Value::Table(table));
                self.0.wrong.extend(wrong.into_iter().map(|error| error.at(&place)));
            }
            _ => self.0.wrong.push(Error::policy("is set to a value that is no list").at("require")),
        }
        self
    }

    /// Adds a column; any character may be in its name.
    pub fn column(mut self, name: &str, column: PolicyColumn) -> Self {
        let PolicyColumn(Entries { table, wrong }) = column;
        let place = join("columns", name);
        self.0.wrong.extend(wrong.into_iter().map(|error| error.at(&place)));
        let is_there = self.0.table.get("columns").is_some_and(|columns| columns.get(name).is_some());
        let added = match is_there {
            true => Err(Error::policy("the column is given twice")),
            false => insert(&mut self.0.table, &["columns".into(), name.into()], Value::Table(table)),
        };
        self.0.wrong.extend(added.map_err(|error| error.at(&place)).err());
        self
    }

    /// Sets any key, as `--set` does: a dotted key of TOML, such as `objective` or `output.ends`. The last value of
    /// a key holds.
    pub fn set(self, key: &str, value: impl Serialize) -> Self {
        Self(self.0.set(key, value))
    }

    /// Makes the policy spec. Its [text](PolicySpec::text) holds the keys as TOML.
    ///
    /// # Errors
    /// Those of [`PolicySpec::parse`], and policy errors for values that TOML cannot hold.
    pub fn build(self) -> Result<PolicySpec> {
        Errors::of(self.0.wrong.into_iter().map(Err::<(), _>))?;
        spec_of(&self.0.table)
    }
}

/// Parses a table of the keys of a policy.
pub(super) fn spec_of(table: &Table) -> Result<PolicySpec> {
    let text = toml::to_string(table);
    PolicySpec::parse(&text.map_err(|_| Error::internal("policy: a table cannot be written as TOML"))?)
}

/// A column for a [`PolicyBuilder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct PolicyColumn(Entries);

impl PolicyColumn {
    /// Creates a column with this role.
    pub fn new(role: Role) -> Self {
        Self(Entries::default().set("role", role.word()))
    }

    /// Sets a key of the hierarchy: the rule, such as `prefix`, or an option beside it, such as `side`.
    pub fn hierarchy(self, key: &str, value: impl Serialize) -> Self {
        self.set(&format!("hierarchy.{key}"), value)
    }

    /// Sets how many times the column counts in the loss.
    pub fn weight(self, weight: f64) -> Self {
        self.set("weight", weight)
    }

    /// Sets any key of the column's line, such as `clip` or `min_level`.
    pub fn set(self, key: &str, value: impl Serialize) -> Self {
        Self(self.0.set(key, value))
    }
}

/// A model that must hold, for a [`PolicyBuilder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct PolicyRequirement(Entries);

impl PolicyRequirement {
    /// Creates the requirement of the model with this name.
    pub fn new(model: &str) -> Self {
        Self(Entries::default().set("model", model))
    }

    /// Sets a parameter of the model, or another key of `[[require]]`, such as `sensitive`.
    pub fn set(self, key: &str, value: impl Serialize) -> Self {
        Self(self.0.set(key, value))
    }
}

impl PolicySpec {
    /// Returns a builder without keys.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }
}
