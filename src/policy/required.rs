//! The models that a policy spec requires.

use std::collections::HashSet;

use toml::{Table, Value};

use super::key_tables::{REQUIRE, names};
use super::keys::{Keys, expected, join, level, some, string, words};
use super::spec::PolicySpec;
use crate::decimal::Decimal;
use crate::doc::find;
use crate::error::{Error, Errors, Result, nearest};
use crate::model::{self, ClassModel, Needs, Requirement, SensitiveColumn, k_anonymity};
use crate::parameter::Setting;
use crate::role::Role;

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
    /// The quasi-identifiers that form the classes, if not all do.
    pub(super) quasi: Option<Vec<String>>,
}

impl Required {
    pub(super) fn read(path: String, mut table: Table) -> Result<Self> {
        let at = |error: Error| error.at(join(&path, "model"));
        let name = match table.remove("model") {
            Some(value) => string(value).map_err(at)?,
            None => return Err(Error::policy("expected `model = ...`").at(&path)),
        };
        let row = find(model::all(), |row| row.doc, &name)
            .map_err(|valid| at(Error::policy(format!("unknown model `{name}`; {valid}"))))?;
        let parameters = row.parameters.iter().map(|parameter| parameter.name);
        let known: Vec<&str> = names(REQUIRE).into_iter().chain(parameters).collect();
        let mut keys = Keys::new(path.clone(), table, &known)?;
        let parameters = keys.settings(row.parameters)?;
        let sensitive = keys.take("sensitive", string)?;
        let at_level = keys.take("level", level)?;
        let values = keys.take("values", words)?;
        let quasi = keys.take("quasi", words)?;
        let model = row.doc.name;
        let required =
            Self { path: Some(path), model, parameters, sensitive, level: at_level, values, quasi };
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
        if self.quasi.is_some() && !matches!(model.needs(), Needs::Size | Needs::SensitiveCounts) {
            return refused("quasi", "holds for the classes over all quasi-identifiers only");
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
            quasi: None,
        }
    }

    /// Returns whether another requirement is the same model of the same columns, looked at in the same way.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let key = |one: &Self| {
            let Self { model, sensitive, level, values, mut quasi, .. } = one.clone();
            quasi.iter_mut().for_each(|quasi| quasi.sort());
            (model, sensitive, level, values, quasi)
        };
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

impl PolicySpec {
    /// Makes the models with their columns.
    ///
    /// # Errors
    /// A policy error that names the requirement.
    #[doc(hidden)]
    pub fn requirements(&self) -> Result<Vec<Requirement>> {
        let mut requirements: Vec<Requirement> = Vec::new();
        let mut wrong = Errors::default();
        for required in &self.required {
            let Some(requirement) = wrong.value_of(self.requirement(required)) else { continue };
            if requirements.iter().any(|other| other.is_like(&requirement)) {
                let why = format!("`{}` is required twice for the same columns; keep one", required.model);
                wrong.add(Error::policy(why).at(required.place()));
            }
            requirements.push(requirement);
        }
        wrong.end_of_stage().map(|()| requirements)
    }

    /// Makes a model with its columns.
    fn requirement(&self, required: &Required) -> Result<Requirement> {
        let model = required.make()?;
        let sensitive = match model.needs().reads_column() {
            false => None,
            true => Some(
                SensitiveColumn::new(self.looked_at(required)?)
                    .at_level(required.level.unwrap_or(0))
                    .only(required.values.clone())
                    .reading(model.needs().facts()),
            ),
        };
        Ok(Requirement::new(model, sensitive).over(self.over(required)?))
    }

    /// Returns the subset of the quasi-identifiers that a requirement names.
    fn over(&self, required: &Required) -> Result<Option<Vec<String>>> {
        let Some(named) = &required.quasi else { return Ok(None) };
        let refused = |why: String| Err(Error::policy(why).at(join(required.place(), "quasi")));
        let quasi: Vec<&str> = self.with_role(Role::Quasi).collect();
        let is_quasi = |name: &&String| quasi.contains(&name.as_str());
        if let Some(other) = named.iter().find(|name| !is_quasi(name)) {
            return refused(match self.column(other) {
                Some(column) => format!("the role of `{other}` is `{}`, not `quasi`", column.role.word()),
                None => format!("unknown quasi-identifier `{other}`; {}", nearest(other, &quasi)),
            });
        }
        if named.is_empty() {
            return refused("expected at least one quasi-identifier, found an empty list".to_owned());
        }
        let mut seen = HashSet::new();
        if let Some(again) = named.iter().find(|name| !seen.insert(*name)) {
            return refused(format!("`{again}` is named twice"));
        }
        if named.len() == quasi.len() {
            return refused("these are all quasi-identifiers; remove the key".to_owned());
        }
        // In the policy's order, whatever the order of the list.
        let quasi = quasi.into_iter().filter(|name| named.iter().any(|one| one == name));
        Ok(Some(quasi.map(str::to_owned).collect()))
    }

    /// Returns the sensitive column of a model: the named one, else the only one.
    fn looked_at(&self, required: &Required) -> Result<String> {
        let role = match required.make()?.needs() {
            Needs::Integers => Role::Preference,
            _ => Role::Sensitive,
        };
        let (word, sensitive) = (role.word(), self.with_role(role).collect::<Vec<&str>>());
        let why = match (&required.sensitive, sensitive.as_slice()) {
            (None, [only]) => return Ok((*only).to_owned()),
            (Some(spec), names) if names.contains(&spec.as_str()) => return Ok(spec.clone()),
            (_, []) => {
                format!("`{}` needs a {word} column, but no column has the role `{word}`", required.model)
            }
            (None, names) => format!(
                "`{}` needs one {word} column; name it: sensitive = one of {}",
                required.model,
                some(names)
            ),
            (Some(spec), names) => match self.column(spec) {
                Some(column) => format!("the role of `{spec}` is `{}`, not `{word}`", column.role.word()),
                None => format!("unknown {word} column `{spec}`; {}", nearest(spec, names)),
            },
        };
        let place = if required.sensitive.is_some() {
            join(required.place(), "sensitive")
        } else {
            required.place().to_owned()
        };
        Err(Error::policy(why).at(place))
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
