//! Models: is this class safe?
//!
//! Each file is one model, each row of [`MODELS`] names one. A model says what it needs to know of a class,
//! computes one [`Quantity`] of it and decides whether the class holds. How it survives the merging of
//! classes ([`Merge`]) tells a method which nodes it may skip; the laws in `tests/` attack the claim.

pub mod k_anonymity;
pub mod l_diversity;

use std::fmt::Debug;

use crate::decimal::Decimal;
use crate::doc::{Doc, find};
use crate::error::{Error, Result};

/// What a model looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The size of the class.
    Size,
    /// How often each value of one sensitive column occurs in the class.
    SensitiveCounts,
}

/// What sizes, models, risks and the suppression limit count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Rows: each is a person.
    Rows,
    /// The distinct values of an individual column: a person may have many rows, in one class or in several.
    Individuals,
}

/// How a model survives when two classes are merged into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// A class that holds still holds after merging with any class.
    Any,
    /// Two classes that hold give one that holds.
    Both,
    /// Nothing is promised.
    None,
}

/// Which end of a model's quantity is the dangerous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worst {
    /// The least value of all classes is what was reached.
    Least,
    /// The greatest value of all classes is what was reached.
    Greatest,
}

/// A class as a model sees it.
#[derive(Debug, Clone, Copy)]
pub struct Class<'a> {
    /// Distinct individuals; rows where the policy names no individual.
    pub size: u64,
    /// How many individuals of the class have each value of the model's sensitive column, each value once; rows
    /// where the policy names no individual. Empty for a model that looks at sizes only.
    pub sensitive: &'a [ValueCount],
}

impl Class<'_> {
    /// A class for models that look at sizes only.
    pub fn of_size(size: u64) -> Self {
        Self { size, sensitive: &[] }
    }
}

/// How many have a value of a sensitive column in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueCount {
    /// The number of the value, the same in all classes; `None` is NULL.
    pub value: Option<u32>,
    /// Its rows or individuals, at least 1.
    pub count: u64,
}

/// A model that must hold, and the sensitive column that it looks at.
#[derive(Debug)]
pub struct Requirement {
    /// The model.
    pub model: Box<dyn ClassModel>,
    /// The column's name; `None` for a model that looks at sizes only.
    pub sensitive: Option<String>,
}

impl Requirement {
    /// A model that looks at sizes only.
    pub fn of_sizes(model: impl ClassModel + 'static) -> Self {
        Self { model: Box::new(model), sensitive: None }
    }

    /// The model with its parameters and its column, for people: `l_diversity(2, diagnosis)`.
    pub fn text(&self) -> String {
        let parameters = self.model.parameters().into_iter().map(|(_, value)| value.to_string());
        let text: Vec<String> = parameters.chain(self.sensitive.clone()).collect();
        format!("{}({})", self.model.doc().name, text.join(", "))
    }
}

/// What a model computes of a class. Ratios are kept exact until they are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// A count.
    Count(u64),
    /// A ratio of two counts.
    Ratio(u128, u128),
    /// A real number, where a logarithm occurs.
    Real(f64),
}

impl Quantity {
    /// The number for a report.
    #[expect(clippy::cast_precision_loss, reason = "only shown")]
    pub fn to_f64(self) -> f64 {
        match self {
            Quantity::Count(n) => n as f64,
            Quantity::Ratio(a, b) => a as f64 / b as f64,
            Quantity::Real(x) => x,
        }
    }
}

/// A promise that each class holds or fails by itself.
pub trait ClassModel: Debug + Send + Sync {
    /// The row's documentation.
    fn doc(&self) -> &'static Doc;
    /// What `value` looks at.
    fn needs(&self) -> Needs;
    /// How the model survives merging. A person can be in both classes, so that fewer models survive when
    /// individuals are counted.
    fn merge(&self, counted: Counted) -> Merge;
    /// The size below which no class can hold.
    fn min_size(&self) -> u64;
    /// The model's quantity of one class.
    fn value(&self, class: &Class<'_>) -> Quantity;
    /// Which end of the quantity is dangerous.
    fn worst(&self) -> Worst;
    /// Whether a class with this quantity holds.
    fn holds(&self, value: Quantity) -> bool;
    /// The bound that was required, in the unit of `value`.
    fn required(&self) -> Decimal;
    /// The worst quantity of all classes given: what the table reached. `None` for no class.
    fn reached(&self, values: &mut dyn Iterator<Item = Quantity>) -> Option<Quantity> {
        let order = |a: &Quantity, b: &Quantity| a.to_f64().total_cmp(&b.to_f64());
        match self.worst() {
            Worst::Least => values.min_by(order),
            Worst::Greatest => values.max_by(order),
        }
    }
    /// The parameters by name: [`make`] with these gives this model again.
    fn parameters(&self) -> Vec<(&'static str, Decimal)>;
}

/// The parameters of a model, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters(Vec<(String, Decimal)>);

impl Parameters {
    /// Parameters from pairs.
    pub fn new(pairs: Vec<(String, Decimal)>) -> Self {
        Self(pairs)
    }

    /// Takes the positive integer `name`.
    ///
    /// # Errors
    /// A policy error when it is missing or no integer of at least 1.
    pub fn take_count(&mut self, name: &str) -> Result<u64> {
        let value = self.take(name)?;
        value.to_u64().filter(|n| *n > 0).ok_or_else(|| {
            Error::policy(format!("expected an integer of at least 1, found {value}")).at(name)
        })
    }

    /// Takes the number `name`.
    ///
    /// # Errors
    /// A policy error when it is missing.
    pub fn take(&mut self, name: &str) -> Result<Decimal> {
        let at = self.0.iter().position(|(key, _)| key == name);
        let at = at.ok_or_else(|| Error::policy(format!("the parameter `{name}` is missing")))?;
        Ok(self.0.swap_remove(at).1)
    }

    /// Refuses what was not taken.
    ///
    /// # Errors
    /// A policy error that names a parameter that the model does not have.
    pub fn finish(self, doc: &Doc) -> Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Error::policy(format!(
                "`{}` has no parameter `{name}`; it takes {}",
                doc.name, doc.parameters
            ))),
        }
    }
}

/// A row of [`MODELS`].
pub struct ModelRow {
    /// Name and documentation.
    pub doc: &'static Doc,
    /// The names of its parameters in the order of a call.
    pub parameters: &'static [&'static str],
    /// Makes the model; parameters are validated here and nowhere later.
    pub make: fn(Parameters) -> Result<Box<dyn ClassModel>>,
}

/// All models.
pub const MODELS: &[ModelRow] = &[k_anonymity::ROW, l_diversity::ROW];

/// The model `name` with these parameters.
///
/// # Errors
/// A policy error when there is no such model or a parameter is wrong.
pub fn make(name: &str, parameters: Parameters) -> Result<Box<dyn ClassModel>> {
    let row = find(MODELS, |row| row.doc, name)
        .map_err(|valid| Error::policy(format!("there is no model `{name}`; {valid}")))?;
    (row.make)(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::k_anonymity::KAnonymity;

    fn parameters(pairs: &[(&str, &str)]) -> Parameters {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), Decimal::parse(value).unwrap()));
        Parameters::new(pairs.collect())
    }

    #[test]
    fn a_count_is_an_integer_of_at_least_one() {
        let count = |value: &str| parameters(&[("k", value)]).take_count("k").map_err(|e| e.to_string());
        assert_eq!((count("1"), count("5")), (Ok(1), Ok(5)));
        for wrong in ["0", "-1", "2.5"] {
            assert_eq!(count(wrong), Err(format!("k: expected an integer of at least 1, found {wrong}")));
        }
        let mut two = parameters(&[("k", "5"), ("l", "2")]);
        assert_eq!(two.take_count("l"), Ok(2));
        assert!(two.take("l").unwrap_err().to_string().contains("`l` is missing"));
        assert_eq!(two.take("k"), Ok(Decimal::integer(5)));
        assert!(two.finish(k_anonymity::ROW.doc).is_ok());
    }

    #[test]
    fn a_table_reaches_the_worst_of_its_classes() {
        let model = KAnonymity::new(5).unwrap();
        let reached =
            |sizes: &[u64]| model.reached(&mut sizes.iter().map(|size| model.value(&Class::of_size(*size))));
        assert_eq!(reached(&[7, 3, 9]), Some(Quantity::Count(3)));
        assert_eq!(reached(&[]), None);
        assert_eq!([Quantity::Ratio(1, 4).to_f64(), Quantity::Real(0.5).to_f64()], [0.25, 0.5]);
    }

    #[test]
    fn a_requirement_names_its_parameters_and_its_column() {
        assert_eq!(Requirement::of_sizes(KAnonymity::new(5).unwrap()).text(), "k_anonymity(5)");
        let Ok(model) = make("l_diversity", parameters(&[("l", "2")])) else { panic!("no model of classes") };
        assert_eq!((model.min_size(), model.required()), (2, Decimal::integer(2)));
        assert_eq!(model.parameters(), [("l", Decimal::integer(2))]);
        assert_eq!(
            Requirement { model, sensitive: Some("disease".into()) }.text(),
            "l_diversity(2, disease)"
        );
    }
}
