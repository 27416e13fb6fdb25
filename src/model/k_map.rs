//! `k_map`: at least k individuals of a population share the labels of every class.
//!
//! A class E holds iff at least k individuals of a population table have its generalized
//! quasi-identifiers (Sweeney). The population holds the same columns; one row of it is one
//! individual, unless the policy names an individual column that it has, too. A class whose labels
//! no individual of the population has fails.
//!
//! # Contract
//! Takes an integer k of at least 1 and the population of the policy. The quantity is the number of
//! individuals of the population with the labels of the class, and a table reached the least of its
//! classes. The model implies no class size: a class of one holds if k others of the population
//! look alike. It survives merging with any class, counted in rows or in individuals, because the
//! labels of a merged class cover those of its parts. Only full-domain generalization can be
//! judged, whose labels do not overlap.
//!
//! It is weaker than k-anonymity and keeps more: an attacker who knows that a person is of the
//! population, but not that the person is in the table, finds k candidates. It does not protect
//! individuals whose presence in the table is known (a neighbour saw the ambulance), nor against an
//! attacker with another population: a register that is older, smaller or more detailed. It ignores
//! sensitive values.
//!
//! ```
//! use datafusion_kanon::extend::{Class, ClassModel};
//! use datafusion_kanon::internals::model::k_map::KMap;
//! let model = KMap::new(5)?;
//! let class = |population| Class { population: Some(population), ..Class::of_size(1) };
//! assert!(model.holds(model.value(&class(5))));
//! assert!(!model.holds(model.value(&class(4))));
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use super::{Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, Worst};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::Result;
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter};

/// The row of [`MODELS`](super::MODELS) for this model.
pub const ROW: ModelRow = ModelRow {
    doc: DOC,
    parameters: &[K],
    constants: &[],
    make: |settings| Ok(Box::new(KMap::new(settings.count("k")?)?)),
};

const K: Parameter = Parameter {
    name: "k",
    kind: Kind::Count,
    absent: Absent::Refused,
    summary: "the least number of individuals of the population that share the labels of a class",
};

const DOC: &Doc = &Doc {
    name: "k_map",
    summary: "at least k individuals of a population share the labels of every class",
    parameters: "k",
    example: "SELECT * FROM k_map(patients, census, 'age', 'sex', 'zip')",
    paper: Some(papers::SWEENEY_2002),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KMap {
    k: u64,
}

impl KMap {
    /// Creates the model for this k.
    ///
    /// # Errors
    /// A policy error unless k is from 1 to `i64::MAX`.
    pub fn new(k: u64) -> Result<Self> {
        K.check_count(k)?;
        Ok(Self { k })
    }
}

impl ClassModel for KMap {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::Population
    }

    fn merge(&self, _counted: Counted) -> Merge {
        Merge::Any
    }

    fn min_size(&self) -> u64 {
        0
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        Quantity::Count(class.population.unwrap_or(0))
    }

    fn worst(&self) -> Worst {
        Worst::Least
    }

    fn holds(&self, value: Quantity) -> bool {
        matches!(value, Quantity::Count(population) if population >= self.k)
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("k", self.required())]
    }

    fn required(&self) -> Decimal {
        Decimal::integer(i64::try_from(self.k).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::make;

    #[test]
    fn the_population_decides_and_not_the_class() {
        let model = make("k_map", &[("k".into(), Decimal::integer(3).into())]).unwrap();
        let holds =
            |size, population| model.holds(model.value(&Class { population, ..Class::of_size(size) }));
        assert!(holds(1, Some(3)) && holds(1, Some(u64::MAX)));
        assert!(!holds(100, Some(2)) && !holds(100, Some(0)));
        // Without a population nothing holds.
        assert!(!holds(100, None));
        assert_eq!(model.parameters(), [("k", Decimal::integer(3))]);
        let wrong = make("k_map", &[("k".into(), Decimal::integer(0).into())]).unwrap_err().to_string();
        assert_eq!(wrong, "k: expected an integer of at least 1, found 0");
    }
}
