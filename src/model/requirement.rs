//! A required model, and the columns that it looks at.

use arrow::datatypes::DataType;

use super::{Class, ClassModel, Needs, Quantity, SensitiveColumn, ValueCount};
use crate::generalize::value::type_name;

/// A model that must hold, its sensitive column, and the quasi-identifiers that form its classes.
#[derive(Debug)]
pub struct Requirement {
    /// The model.
    pub model: Box<dyn ClassModel>,
    /// The sensitive column; `None` for a model that only looks at sizes.
    pub sensitive: Option<SensitiveColumn>,
    /// The quasi-identifiers over which released rows form the classes of the model: a subset.
    /// `None` for all.
    pub quasi: Option<Vec<String>>,
}

impl Requirement {
    /// Requires a model of the classes over all quasi-identifiers.
    pub fn new(model: Box<dyn ClassModel>, sensitive: Option<SensitiveColumn>) -> Self {
        Self { model, sensitive, quasi: None }
    }

    /// Requires a model that only looks at sizes.
    pub fn of_sizes(model: impl ClassModel + 'static) -> Self {
        Self::new(Box::new(model), None)
    }

    /// Requires the model over a subset of the quasi-identifiers.
    #[must_use]
    pub fn over(self, quasi: Option<Vec<String>>) -> Self {
        Self { quasi, ..self }
    }

    /// Returns whether the model is required over all quasi-identifiers, not over a subset.
    pub fn is_over_all_quasi(&self) -> bool {
        self.quasi.is_none()
    }

    /// Returns whether a class of this size holds that has this quantity. The least size that the
    /// model claims is a condition too, so that what trusts the claim is right.
    pub fn holds(&self, size: u64, value: Quantity) -> bool {
        size >= self.model.min_size() && self.model.holds(value)
    }

    /// Explains why the requirement is vacuous, if a class of one individual satisfies it: k = 1, l = 1.
    pub fn why_vacuous(&self) -> Option<String> {
        let alone = [ValueCount { value: Some(0), count: 1 }];
        let of_classes = matches!(self.model.needs(), Needs::Size | Needs::SensitiveCounts);
        (of_classes && self.model.holds(self.model.value(&Class::of_values(1, &alone))))
            .then(|| format!("{} promises nothing: it holds for a class of one individual", self.text()))
    }

    /// Returns whether another requirement is the same model of the same columns, whatever its bound.
    pub fn is_like(&self, other: &Self) -> bool {
        self.model.doc().name == other.model.doc().name
            && self.sensitive == other.sensitive
            && self.quasi == other.quasi
    }

    /// Returns whether everything that the model looks at is there. Without the policy, a
    /// requirement that looks at a hierarchy cannot be judged.
    pub fn is_complete(&self) -> bool {
        self.sensitive.as_ref().is_none_or(SensitiveColumn::is_complete)
    }

    /// Returns whether the model compares values of this type by their order, and they are texts:
    /// their order is that of their letters.
    pub fn compares_letters(&self, values: &DataType) -> bool {
        let are_values = self.sensitive.as_ref().is_some_and(|column| column.level() == 0);
        self.model.needs() == Needs::Order && are_values && type_name(values) == "text"
    }

    /// Returns whether the model hides every individual: among others of the class, or among others
    /// of the population. Over a subset it does not protect an individual whose other
    /// quasi-identifiers are known.
    pub fn hides_individuals(&self) -> bool {
        if !self.is_over_all_quasi() {
            return false;
        }
        if self.model.needs() != Needs::Population {
            return self.model.min_size() > 1;
        }
        let alone = Class { population: Some(1), ..Class::of_size(1) };
        !self.model.is_of_population() && !self.model.holds(self.model.value(&alone))
    }

    /// Returns the model with its parameters and its columns as users read it:
    /// `l_diversity(2, diagnosis)`, `k_anonymity(20) over (birth, sex)`.
    pub fn text(&self) -> String {
        let parameters = self.model.parameters().into_iter().map(|(_, value)| value.to_string());
        let sensitive = self.sensitive.iter().map(SensitiveColumn::to_string);
        let arguments: Vec<String> = parameters.chain(sensitive).collect();
        let over =
            self.quasi.as_ref().map(|quasi| format!(" over ({})", quasi.join(", "))).unwrap_or_default();
        format!("{}({}){over}", self.model.doc().name, arguments.join(", "))
    }
}

/// Returns the columns that these requirements look at, each once: with the facts that any of them
/// reads, and whether one reads the values of the whole input.
pub fn looked_at<'a>(requirements: impl Iterator<Item = &'a Requirement>) -> Vec<(SensitiveColumn, bool)> {
    let mut all: Vec<(SensitiveColumn, bool)> = Vec::new();
    for requirement in requirements {
        let (Some(column), needs) = (&requirement.sensitive, requirement.model.needs()) else { continue };
        match all.iter_mut().find(|(known, _)| known == column) {
            None => all.push((column.clone(), needs.reads_input())),
            Some((known, is_read)) => {
                *is_read |= needs.reads_input();
                // Either has the hierarchy if it reads it.
                let facts = known.reads().and(column.reads());
                if !known.is_complete() || column.reads().levels {
                    *known = column.clone();
                }
                *known = known.clone().reading(facts);
            }
        }
    }
    all
}
