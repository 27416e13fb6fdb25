//! The models that a policy spec requires.

use toml::{Table, Value};

use super::key_tables::{REQUIRE, names};
use super::keys::{Keys, expected, join, level, string, words};
use crate::decimal::Decimal;
use crate::doc::find;
use crate::error::{Error, Result};
use crate::model::{self, ClassModel, MODELS, Needs, k_anonymity};
use crate::parameter::Setting;

/// Keys of a `[[require]]` that are reserved for a later version.
const REQUIRE_LATER: &[&str] = &["quasi"];

/// A required model and its parameters, which are known to be valid.
#[derive(Debug, Clone)]
pub(super) struct Required {
    /// `require[0]`; `None` for the short form `k = ...`, whose parameter is its own place.
    pub(super) path: Option<String>,
    pub(super) model: &'static str,
    pub(super) parameters: Vec<(String, Setting)>,
    /// The sensitive column, if the policy names it.
    pub(super) sensitive: Option<String>,
    /// The level of the sensitive column's hierarchy at which values are compared.
    pub(super) level: Option<usize>,
    /// The only sensitive values that are bounded.
    pub(super) values: Option<Vec<String>>,
}

impl Required {
    pub(super) fn read(path: String, mut table: Table) -> Result<Self> {
        let at = |error: Error| error.at(join(&path, "model"));
        let name = match table.remove("model") {
            Some(value) => string(value).map_err(at)?,
            None => return Err(Error::policy("expected `model = ...`").at(&path)),
        };
        let row = find(MODELS, |row| row.doc, &name)
            .map_err(|valid| at(Error::policy(format!("unknown model `{name}`; {valid}"))))?;
        let parameters = row.parameters.iter().map(|parameter| parameter.name);
        let known: Vec<&str> = names(REQUIRE).into_iter().chain(parameters).collect();
        let mut keys = Keys::new(path.clone(), table, &known, REQUIRE_LATER)?;
        let parameters = keys.settings(row.parameters)?;
        let sensitive = keys.take("sensitive", string)?;
        let at_level = keys.take("level", level)?;
        let values = keys.take("values", words)?;
        let required =
            Self { path: Some(path), model: row.doc.name, parameters, sensitive, level: at_level, values };
        required.check_keys()?;
        Ok(required)
    }

    /// Refuses keys that the model has no use for.
    fn check_keys(&self) -> Result<()> {
        let model = self.make()?;
        let refused = |key: &str, why: &str| {
            let why = format!("`{}` {why}; remove the key", self.model);
            Err(Error::policy(why).at(join(self.place(), key)))
        };
        let given = [
            ("sensitive", self.sensitive.is_some()),
            ("level", self.level.is_some()),
            ("values", self.values.is_some()),
        ];
        if let (false, Some((key, _))) =
            (model.needs().reads_column(), given.iter().find(|(_, is_given)| *is_given))
        {
            return refused(key, "uses no sensitive column");
        }
        if self.level.is_some() && !matches!(model.needs(), Needs::SensitiveCounts | Needs::Distribution) {
            return refused("level", "looks at the values themselves, not at their labels");
        }
        if self.values.is_some() && !model.judges_each_value() {
            return refused("values", "judges all values together");
        }
        if self.values.as_ref().is_some_and(Vec::is_empty) {
            let why = "expected at least one value, found an empty list";
            return Err(Error::policy(why).at(join(self.place(), "values")));
        }
        Ok(())
    }

    /// Requires k-anonymity in the short form.
    pub(super) fn of_k(k: Decimal) -> Self {
        Self {
            path: None,
            model: k_anonymity::ROW.doc.name,
            parameters: k_of(k),
            sensitive: None,
            level: None,
            values: None,
        }
    }

    /// Returns whether another requirement is the same model of the same column, looked at in the same way.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.model, one.sensitive.clone(), one.level, one.values.clone());
        key(self) == key(other)
    }

    /// Makes the model.
    pub(super) fn make(&self) -> Result<Box<dyn ClassModel>> {
        model::make(self.model, &self.parameters).map_err(|error| match &self.path {
            Some(path) => error.at(path),
            None => error,
        })
    }

    /// Returns the place of the requirement in the policy, for errors.
    pub(super) fn place(&self) -> &str {
        self.path.as_deref().unwrap_or("k")
    }
}

pub(super) fn k_of(k: Decimal) -> Vec<(String, Setting)> {
    vec![("k".into(), k.into())]
}

/// Reads `k = 5`, short for a `[[require]]` of k-anonymity.
pub(super) fn short_k(value: Value) -> Result<Required> {
    let k = match value {
        Value::Integer(k) if k >= 1 => Decimal::integer(k),
        Value::String(text) if text.parse::<i64>().is_ok() => {
            let why = format!(
                "expected an integer of at least 1, found the text {text:?}; write it without quotes"
            );
            return Err(Error::policy(why));
        }
        other => return Err(expected("an integer of at least 1", &other)),
    };
    Ok(Required::of_k(k))
}
