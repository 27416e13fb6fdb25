//! A model in a record: what was required and reached.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;
use crate::error::Result;
use crate::model::{Quantity, Requirement, SensitiveColumn, make};
use crate::release::publish::record::{parameters_text, plainly, plainly_if_any};

/// A model in a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRecord {
    /// The model's name, as in a policy.
    pub model: String,
    /// Its parameters by name, as decimals.
    pub parameters: BTreeMap<String, String>,
    /// The sensitive column that the model looks at, if it needs one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sensitive: Option<String>,
    /// The level of the column's hierarchy whose labels are compared, if it is not the values themselves.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub level: Option<usize>,
    /// The only values that the model bounds, if it does not bound all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub values: Option<Vec<String>>,
    /// The quasi-identifiers over which the model holds, if it is a subset.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub quasi: Option<Vec<String>>,
    /// The required bound.
    #[serde(serialize_with = "plainly")]
    pub required: f64,
    /// The worst value of all released classes; `null` if it is not finite, as among the released
    /// rows alone it need not be.
    #[serde(serialize_with = "plainly_if_any")]
    pub reached: Option<f64>,
    /// Of a model that compares the classes with the whole input: what they were compared with to
    /// reach this value. In a public record these are the `released rows`, which anybody has, in a
    /// private one the `input`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compared_with: Option<String>,
}

/// Returns what a public record compares the classes of a model with, if the model compares them.
pub(crate) fn compared_with(requirement: &Requirement) -> Option<&'static str> {
    requirement.model.needs().compares().then_some("released rows")
}

impl ModelRecord {
    /// Creates the record of a model that reached this value, in a public record.
    pub(crate) fn of(requirement: &Requirement, reached: Option<Quantity>) -> Self {
        Self {
            model: requirement.model.doc().name.to_owned(),
            parameters: parameters_text(&*requirement.model),
            sensitive: requirement.sensitive.as_ref().map(|column| column.name().to_owned()),
            level: requirement.sensitive.as_ref().map(SensitiveColumn::level).filter(|level| *level > 0),
            values: requirement.sensitive.as_ref().and_then(|column| Some(column.values()?.to_vec())),
            quasi: requirement.quasi.clone(),
            required: requirement.model.required().to_f64(),
            reached: reached.and_then(Quantity::finite),
            compared_with: compared_with(requirement).map(str::to_owned),
        }
    }

    /// Returns the model and its columns in words: `l_diversity of diagnosis`, `k_anonymity over
    /// (birth, sex)`; with its parameters if there are several.
    pub fn text(&self) -> String {
        let parameters = self.parameters.iter().map(|(name, value)| format!("{name} = {value}"));
        // The bound of a model's only parameter is told beside it.
        let parameters = match self.parameters.len() {
            0 | 1 => String::new(),
            _ => format!(" ({})", parameters.collect::<Vec<_>>().join(", ")),
        };
        let of = self.column().map(|column| format!(" of {column}")).unwrap_or_default();
        let over = self.quasi.as_ref().map(|quasi| format!(" over ({})", quasi.join(", ")));
        format!("{}{parameters}{of}{}", self.model, over.unwrap_or_default())
    }

    /// Returns the sensitive column as the model looks at it, without its hierarchy.
    #[doc(hidden)]
    pub fn column(&self) -> Option<SensitiveColumn> {
        let column = SensitiveColumn::from(self.sensitive.as_deref()?);
        Some(column.at_level(self.level.unwrap_or(0)).only(self.values.clone()))
    }

    /// Makes the model.
    ///
    /// # Errors
    /// A policy error for a model or a parameter that this version does not know.
    #[doc(hidden)]
    pub fn requirement(&self) -> Result<Requirement> {
        let parameters =
            self.parameters.iter().map(|(name, text)| Ok((name.clone(), Decimal::parse(text)?.into())));
        let model = make(&self.model, &parameters.collect::<Result<Vec<_>>>()?)?;
        let sensitive = self.column().map(|column| column.reading(model.needs().facts()));
        Ok(Requirement::new(model, sensitive).over(self.quasi.clone()))
    }
}
