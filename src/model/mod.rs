//! Models: the conditions that make a class safe.
//!
//! Each file is one model, and each row of [`MODELS`] names one. A model states which facts of a
//! class it needs, computes one [`Quantity`] from them and decides whether the class holds. Its
//! behaviour when classes merge ([`Merge`]) tells a method which nodes it may skip; the laws in
//! `tests/` attack that claim.
//!
//! A table model ([`Needs::Table`]) judges the kept classes together. Every class by itself holds for it; after
//! the failing classes of other models are suppressed, the sizes of the kept ones decide
//! ([`ClassModel::table_value`]). `EvaluatedClasses::is_anonymous` alone knows both conditions of a search: no
//! more is suppressed than allowed, and every table model holds. `delta_presence` judges classes and, with a
//! lower bound above 0, the table too.

pub mod alpha_k_anonymity;
pub mod average_risk;
pub mod basic_beta_likeness;
pub mod delta_disclosure;
pub mod delta_presence;
mod distribution;
pub mod enhanced_beta_likeness;
pub mod entropy_l_diversity;
mod excess;
pub mod k_anonymity;
pub mod k_map;
pub mod l_diversity;
pub mod personalized_k_anonymity;
pub mod recursive_l_diversity;
mod requirement;
mod seen_class;
mod sensitive_column;
pub mod t_closeness;
pub mod t_closeness_hierarchical;
pub mod t_closeness_ordered;
mod value_facts;

use std::cmp::Ordering;
use std::fmt::Debug;

use arrow::datatypes::i256;
use serde::{Deserialize, Serialize};

use crate::class::ClassSizes;
use crate::decimal::Decimal;
use crate::doc::{Doc, OwnRows, find};
use crate::error::{Error, Result};
use crate::parameter::{Absent, Kind, Parameter, Setting, Settings};
pub use distribution::Distribution;
pub use requirement::{Requirement, looked_at};
pub use seen_class::SeenClass;
pub use sensitive_column::SensitiveColumn;
pub(crate) use value_facts::numbered;
pub use value_facts::{ReadFacts, ValueFacts};

/// The facts of a class that a model needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The size of the class.
    Size,
    /// The frequency of each value of one sensitive column in the class.
    SensitiveCounts,
    /// The same, and the frequency of each value in the whole input; values are numbered in their order.
    Distribution,
    /// The same, and the order of the values means something.
    Order,
    /// The frequency of each value in the class and in the whole input, and the label of each value
    /// at each level of the column's hierarchy.
    Hierarchy,
    /// The frequency of each value in the class, and the values as integers.
    Integers,
    /// The individuals of a population who share the labels of the class.
    Population,
    /// The kept classes together: a table model, for which every class by itself holds.
    Table,
}

impl Needs {
    /// Returns whether a column besides the quasi-identifiers is read: the sensitive one.
    pub fn reads_column(self) -> bool {
        !matches!(self, Self::Size | Self::Population | Self::Table)
    }

    /// Returns whether a class is compared with the whole input.
    pub fn compares(self) -> bool {
        matches!(self, Self::Distribution | Self::Order | Self::Hierarchy)
    }

    /// Returns whether the values of the whole input, or facts about them, are read.
    pub fn reads_input(self) -> bool {
        self.compares() || self == Self::Integers
    }

    /// Returns what is read of the values besides how often they occur.
    #[doc(hidden)]
    pub fn facts(self) -> ReadFacts {
        match self {
            Self::Order => ReadFacts { order: true, ..ReadFacts::default() },
            Self::Hierarchy => ReadFacts { levels: true, ..ReadFacts::default() },
            Self::Integers => ReadFacts { integers: true, ..ReadFacts::default() },
            _ => ReadFacts::default(),
        }
    }
}

/// The unit of sizes, models, risks and the suppression limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Counted {
    /// Rows: each row is an individual.
    Rows,
    /// The distinct values of an individual column: an individual may have many rows, in one class
    /// or in several.
    Individuals,
}

/// The behaviour of a model when two classes are merged into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// A class that holds still holds after merging with any class.
    Any,
    /// Two classes that hold merge into one that holds.
    Both,
    /// The model promises nothing.
    None,
}

/// The dangerous end of a model's quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worst {
    /// The table reached the smallest value of all classes.
    Least,
    /// The table reached the largest value of all classes.
    Greatest,
}

/// A class as a model sees it.
#[derive(Debug, Clone, Copy)]
pub struct Class<'a> {
    /// The number of distinct individuals; rows where the policy names no individual column.
    pub size: u64,
    /// How many individuals of the class have each value of the model's sensitive column, each
    /// value once; rows where the policy names no individual column. Empty for a model that only
    /// looks at sizes.
    pub sensitive: &'a [ValueCount],
    /// The values of that column in the whole input, under the same numbers; [`Distribution::NONE`]
    /// for a model that does not look at the input.
    pub input: &'a Distribution,
    /// How many individuals of the population share the labels of the class; `None` for a model
    /// that does not look at a population.
    pub population: Option<u64>,
}

impl<'a> Class<'a> {
    /// Creates a class for models that only look at sizes.
    pub fn of_size(size: u64) -> Self {
        Self::of_values(size, &[])
    }

    /// Creates a class for models that do not look at the whole input.
    pub fn of_values(size: u64, sensitive: &'a [ValueCount]) -> Self {
        Self { size, sensitive, input: Distribution::NONE, population: None }
    }
}

/// The frequency of one value of a sensitive column in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueCount {
    /// The number of the value, the same in all classes; `None` is NULL.
    pub value: Option<u32>,
    /// The rows or individuals with the value, at least 1.
    pub count: u64,
}

/// A number that a model computes from a class. Ratios stay exact until they are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// A count.
    Count(u64),
    /// A ratio of two counts.
    Ratio(u128, u128),
    /// A real number, for models that use logarithms.
    Real(f64),
    /// A difference of two counts.
    Margin(i128),
    /// No number: a condition beside the bound is broken, which is worse than every number.
    Broken,
}

impl Quantity {
    /// Returns the number for a report; NaN for [`Broken`](Self::Broken).
    #[expect(clippy::cast_precision_loss, reason = "only shown")]
    pub fn to_f64(self) -> f64 {
        match self {
            Quantity::Count(n) => n as f64,
            Quantity::Ratio(a, b) => a as f64 / b as f64,
            Quantity::Margin(margin) => margin as f64,
            Quantity::Real(x) => x,
            Quantity::Broken => f64::NAN,
        }
    }

    /// Compares the number with `times` a bound: counts and ratios exactly. `None` for
    /// [`Broken`](Self::Broken) and NaN.
    pub fn compare(self, times: u8, bound: Decimal) -> Option<Ordering> {
        let product = |a: u128, b: i128| i256::from_parts(a, 0).wrapping_mul(i256::from_i128(b));
        // Numerator and denominator are below 2^60, so that no product overflows.
        let exactly = |a: u128, b: u128| {
            let times = product(b, bound.numerator() * i128::from(times));
            Some(product(a, bound.denominator()).cmp(&times))
        };
        match self {
            Quantity::Count(n) => exactly(n.into(), 1),
            Quantity::Ratio(a, b) => exactly(a, b),
            Quantity::Margin(margin) => {
                let margin = i256::from_i128(margin).wrapping_mul(i256::from_i128(bound.denominator()));
                Some(margin.cmp(&i256::from_i128(bound.numerator() * i128::from(times))))
            }
            Quantity::Real(x) => x.partial_cmp(&(bound.to_f64() * f64::from(times))),
            Quantity::Broken => None,
        }
    }

    /// Returns whether the number is at most a bound.
    pub fn is_at_most(self, bound: Decimal) -> bool {
        self.compare(1, bound).is_some_and(Ordering::is_le)
    }

    /// Returns the number for a record; `None` if it is not finite.
    pub fn finite(self) -> Option<f64> {
        Some(self.to_f64()).filter(|number| number.is_finite())
    }
}

/// The relative rounding error of a number that a logarithm made: it decides no tie.
const TOLERANCE: f64 = 1e-12;

/// A promise that each class holds or fails by itself.
pub trait ClassModel: Debug + Send + Sync {
    /// Returns the model's documentation.
    fn doc(&self) -> &'static Doc;
    /// Returns the facts of a class that `value` reads.
    fn needs(&self) -> Needs;
    /// Returns how the model behaves when classes merge. Fewer models survive merging when
    /// individuals are counted, because an individual can be in both classes.
    fn merge(&self, counted: Counted) -> Merge;
    /// Returns the size below which no class can hold.
    fn min_size(&self) -> u64;
    /// Computes the model's quantity for one class.
    fn value(&self, class: &Class<'_>) -> Quantity;
    /// Returns the dangerous end of the quantity.
    fn worst(&self) -> Worst;
    /// Returns whether a class with this quantity holds.
    fn holds(&self, value: Quantity) -> bool;
    /// For a table model, computes the quantity of the kept classes together; `None` without a
    /// class, and for any other model, as by default.
    fn table_value(&self, _kept: &ClassSizes) -> Option<Quantity> {
        None
    }
    /// For a table model, returns the name of the risk measure whose value it bounds, if it is one. By
    /// default it is none.
    fn bounds_risk(&self) -> Option<&'static str> {
        None
    }
    /// Returns whether some individuals of every tuple of the population must be released. By
    /// default they need not.
    fn releases_every_tuple(&self) -> bool {
        false
    }
    /// Returns whether every individual must be one of the population. By default they need not.
    fn is_of_population(&self) -> bool {
        false
    }
    /// Returns whether a class holds if it does for every value by itself, a NULL never failing:
    /// then a requirement may name the only values that count. By default it may not.
    fn judges_each_value(&self) -> bool {
        false
    }
    /// Returns whether the quantity depends on nothing but the size of a class, the number of its
    /// values without NULL and the count of the most common of these: then a query need not keep
    /// the other counts. By default it keeps them all.
    fn reads_extremes_only(&self) -> bool {
        false
    }
    /// Returns the model that bounds this one by rows alone: on the rows of a class, each counted as
    /// an individual, it holds if this model holds on the individuals, and its quantity is at least as
    /// good. Released rows do not name their individuals, so this is all that they can confirm. `None`
    /// if rows confirm nothing, as by default.
    fn bounded_by_rows(&self) -> Option<Box<dyn ClassModel>> {
        None
    }
    /// For a model that looks at the whole input: returns whether a class that holds can have this
    /// quantity when the released rows stand for the input, because only they are there.
    /// By default it can have every quantity.
    fn may_reach_among_released(&self, _value: Quantity, _counted: Counted) -> bool {
        true
    }
    /// Returns the required bound, in the unit of `value`.
    fn required(&self) -> Decimal;
    /// Returns the worst quantity of the given classes, which is what the table reached; `None`
    /// without a class. By default the least or the greatest, as [`worst`](Self::worst) says.
    fn reached(&self, values: &mut dyn Iterator<Item = Quantity>) -> Option<Quantity> {
        let order = |a: &Quantity, b: &Quantity| a.to_f64().total_cmp(&b.to_f64());
        match self.worst() {
            Worst::Least => values.min_by(order),
            Worst::Greatest => values.max_by(order),
        }
    }
    /// Returns the parameters by name; [`make`] turns them into this model again.
    fn parameters(&self) -> Vec<(&'static str, Decimal)>;
}

/// A row of [`MODELS`], or a model of the program's own.
pub struct ModelRow {
    /// Name and documentation.
    pub doc: &'static Doc,
    /// Its parameters, in the order of a call's arguments.
    pub parameters: &'static [Parameter],
    /// Those of them on which the quantity depends: a SQL call takes them as constants. The others
    /// bound the quantity.
    pub constants: &'static [Parameter],
    /// Makes the model.
    pub make: fn(&Settings) -> Result<Box<dyn ClassModel>>,
}

impl ModelRow {
    /// Makes the model with parameters by their names.
    ///
    /// # Errors
    /// A policy error for a wrong, a missing or an unknown parameter.
    pub fn with(&self, given: &[(String, Setting)]) -> Result<Box<dyn ClassModel>> {
        let model = (self.make)(&Settings::by_name(self.doc, self.parameters, given)?)?;
        // Records hold what it says.
        let said = model.parameters();
        let is_said = |(name, set): &(String, Setting)| match set {
            Setting::Number(number) => said.iter().any(|(one, value)| one == name && value == number),
            _ => true,
        };
        if model.doc().name == self.doc.name && given.iter().all(is_said) {
            return Ok(model);
        }
        let why = "makes a model of another name, or of other parameters than those given";
        Err(Error::policy(format!("`{}` {why}", self.doc.name)))
    }
}

/// All models of this crate.
pub const MODELS: &[ModelRow] = &[
    k_anonymity::ROW,
    alpha_k_anonymity::ROW,
    l_diversity::ROW,
    entropy_l_diversity::ROW,
    recursive_l_diversity::ROW,
    t_closeness::ROW,
    t_closeness_ordered::ROW,
    t_closeness_hierarchical::ROW,
    basic_beta_likeness::ROW,
    enhanced_beta_likeness::ROW,
    delta_disclosure::ROW,
    personalized_k_anonymity::ROW,
    k_map::ROW,
    delta_presence::ROW,
    average_risk::ROW,
];

/// The models of the program's own.
static OWN: OwnRows<ModelRow> = OwnRows::none();

/// Returns the rows of [`MODELS`], then the models that the program has registered.
pub fn all() -> impl Iterator<Item = &'static ModelRow> {
    MODELS.iter().chain(own())
}

/// Returns the models that the program has registered.
pub(crate) fn own() -> Vec<&'static ModelRow> {
    OWN.all()
}

/// Adds a model of the program's own, which was checked.
pub(crate) fn add(row: ModelRow) {
    OWN.add(Box::new(row));
}

/// The constant of models that look at a hierarchy, where a SQL call names one that was loaded.
pub const HIERARCHY: Parameter = Parameter {
    name: "hierarchy",
    kind: Kind::File,
    absent: Absent::Refused,
    summary: "the name of a hierarchy that was loaded for the sensitive column",
};

/// Makes the model `name` with these parameters.
///
/// # Errors
/// A policy error for an unknown model or a wrong parameter.
pub fn make(name: &str, given: &[(String, Setting)]) -> Result<Box<dyn ClassModel>> {
    let row = find(all(), |row| row.doc, name)
        .map_err(|valid| Error::policy(format!("unknown model `{name}`; {valid}")))?;
    row.with(given)
}

/// Returns the size below which a class over all quasi-identifiers fails, whatever it holds; 0
/// without a requirement.
pub(crate) fn min_size(requirements: &[Requirement]) -> u64 {
    let of_classes = requirements.iter().filter(|requirement| requirement.is_over_all_quasi());
    of_classes.map(|requirement| requirement.model.min_size()).max().unwrap_or(0)
}

/// Returns how many equally frequent values the requirements of a sensitive column need in a class
/// over all quasi-identifiers, however large it is: the l of their l-diversity. 0 without such a
/// requirement; `u64::MAX` if a million values are not enough.
pub(crate) fn values_needed(requirements: &[Requirement]) -> u64 {
    const MOST: u64 = 1 << 20;
    const OFTEN: u64 = 1 << 30;
    let needed = |model: &dyn ClassModel| {
        let holds = |values: u64| {
            let numbers = 0..u32::try_from(values).unwrap_or(u32::MAX);
            let counts: Vec<_> = numbers.map(|n| ValueCount { value: Some(n), count: OFTEN }).collect();
            model.holds(model.value(&Class::of_values(values * OFTEN, &counts)))
        };
        let Some(enough) = (0..=MOST.ilog2()).map(|power| 1 << power).find(|values| holds(*values)) else {
            return u64::MAX;
        };
        let (mut too_few, mut enough) = (enough / 2, enough);
        while enough - too_few > 1 {
            let middle = too_few.midpoint(enough);
            if holds(middle) { enough = middle } else { too_few = middle }
        }
        enough
    };
    let of_values = requirements
        .iter()
        .filter(|one| one.is_over_all_quasi() && one.model.needs() == Needs::SensitiveCounts);
    of_values.map(|requirement| needed(&*requirement.model)).max().unwrap_or(0)
}

/// Returns q, the greatest of the requirements' smallest class sizes, at least 2: a value with
/// fewer holders identifies individuals.
pub fn least_holders(requirements: &[Requirement]) -> u64 {
    min_size(requirements).max(2)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::k_anonymity::KAnonymity;

    /// How often each value occurs, for tests.
    pub(crate) fn counts(counts: &[(Option<u32>, u64)]) -> Vec<ValueCount> {
        counts.iter().map(|(value, count)| ValueCount { value: *value, count: *count }).collect()
    }

    #[test]
    fn a_table_reaches_the_worst_of_its_classes() {
        let model = KAnonymity::new(5).unwrap();
        let reached =
            |sizes: &[u64]| model.reached(&mut sizes.iter().map(|size| model.value(&Class::of_size(*size))));
        assert_eq!(reached(&[7, 3, 9]), Some(Quantity::Count(3)));
        assert_eq!(reached(&[]), None);
        assert!(Quantity::Broken.to_f64().is_nan() && Quantity::Broken.finite().is_none());
        let greatest = make("t_closeness", &[("t".into(), Decimal::integer(1).into())]).unwrap();
        let worst = greatest.reached(&mut [Quantity::Broken, Quantity::Real(f64::INFINITY)].into_iter());
        assert_eq!(worst, Some(Quantity::Broken));
        assert_eq!([Quantity::Ratio(1, 4).to_f64(), Quantity::Real(0.5).to_f64()], [0.25, 0.5]);
    }

    #[test]
    fn quantities_are_compared_exactly() {
        let third = Decimal::parse("0.333333333333333333").unwrap();
        assert_eq!(Quantity::Ratio(1, 3).compare(1, third), Some(Ordering::Greater));
        assert_eq!(Quantity::Ratio(2, 3).compare(2, third), Some(Ordering::Greater));
        let half = Decimal::parse("0.5").unwrap();
        let huge = u128::from(u64::MAX) * u128::from(u64::MAX);
        assert_eq!(Quantity::Ratio(huge / 2, huge).compare(1, half), Some(Ordering::Less));
        assert_eq!(Quantity::Ratio(huge / 2 + 1, huge).compare(1, half), Some(Ordering::Greater));
        assert_eq!(Quantity::Count(1).compare(2, half), Some(Ordering::Equal));
        assert!(Quantity::Real(0.5).is_at_most(half) && !Quantity::Real(f64::NAN).is_at_most(half));
        assert!(!Quantity::Broken.is_at_most(Decimal::integer(i64::MAX)));
    }

    #[test]
    fn a_requirement_names_its_parameters_and_its_column() {
        assert_eq!(Requirement::of_sizes(KAnonymity::new(5).unwrap()).text(), "k_anonymity(5)");
        let model = make("l_diversity", &[("l".into(), Decimal::integer(2).into())]).unwrap();
        assert_eq!((model.min_size(), model.required()), (2, Decimal::integer(2)));
        assert_eq!(model.parameters(), [("l", Decimal::integer(2))]);
        assert_eq!(
            Requirement::new(model, Some("disease".into()))
                .over(Some(vec!["sex".into(), "age".into()]))
                .text(),
            "l_diversity(2, disease) over (sex, age)"
        );
    }
}
