//! The models that a policy spec requires.

use toml::{Table, Value};

use super::key_tables::{REQUIRE, names};
use super::keys::{Keys, expected, join, string};
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
        let required = Self { path: Some(path), model: row.doc.name, parameters, sensitive };
        let looks_at = required.make()?.needs();
        if let (Some(path), Needs::Size, Some(_)) = (&required.path, looks_at, &required.sensitive) {
            let why = format!("`{}` uses no sensitive column; remove the key", required.model);
            return Err(Error::policy(why).at(join(path, "sensitive")));
        }
        Ok(required)
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
    Ok(Required { path: None, model: k_anonymity::ROW.doc.name, parameters: k_of(k), sensitive: None })
}
