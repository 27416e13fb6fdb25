//! `delta_presence`: of the population that shares the labels of a class, a share from lo to hi is released.
//!
//! For every generalized tuple of a population table, lo <= released / population <= hi, where both
//! count individuals (Nergiz et al. 2007). Tuples of the population that do not occur in the table
//! count too: with lo above 0, each individual of the population must share its labels with a
//! released individual, so no class can be suppressed. The individuals of the table must belong to
//! the population. If both tables have the individual column, it decides; otherwise no class may
//! have more individuals than the population has with its labels.
//!
//! # Contract
//! Takes two numbers from 0 to 1, lo <= hi, and the population of the policy. The quantity of a
//! class is the share, exactly; no number for a class with more individuals than the population. A
//! table reached the greatest of its classes. A class outside the bounds is suppressed; one tuple
//! without a released individual fails the whole table if lo is above 0. The model implies no class
//! size. Where rows are counted, two classes that hold merge into one that holds; with individuals
//! that is not promised. Only full-domain generalization can be judged, whose labels do not
//! overlap.
//!
//! It bounds what an attacker who knows that a person is of the population believes about whether
//! the person is in the table (membership: a register of people with HIV), which k-anonymity does
//! not: everybody of the population with the labels of a class may be in it. It does not bound what
//! is learnt of a person who is known to be in the table; require k and a model of the sensitive
//! column beside it. It holds for this population only.
//!
//! ```
//! use datafusion_kanon::extend::{Class, ClassModel, Decimal};
//! use datafusion_kanon::internals::model::delta_presence::DeltaPresence;
//! let model = DeltaPresence::new(Decimal::integer(0), Decimal::parse("0.5")?)?;
//! let class = |population| Class { population: Some(population), ..Class::of_size(3) };
//! assert!(model.holds(model.value(&class(6))));
//! assert!(!model.holds(model.value(&class(5))));
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::cmp::Ordering;

use super::{Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, Worst};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter};

/// The row of [`MODELS`](super::MODELS) for this model.
pub const ROW: ModelRow = ModelRow {
    doc: DOC,
    parameters: &[LO, HI],
    constants: &[],
    make: |settings| Ok(Box::new(DeltaPresence::new(settings.number("lo")?, settings.number("hi")?)?)),
};

const LO: Parameter = Parameter {
    name: "lo",
    kind: Kind::Share,
    absent: Absent::Means(crate::parameter::Setting::Number(Decimal::integer(0))),
    summary: "the least share of the population that is released, of every tuple",
};

const HI: Parameter = Parameter {
    name: "hi",
    kind: Kind::Share,
    absent: Absent::Refused,
    summary: "the greatest share of the population that is released, of every tuple",
};

const DOC: &Doc = &Doc {
    name: "delta_presence",
    summary: "of the individuals of a population who share the labels of a class, a share from lo to hi is released",
    parameters: "lo, hi",
    example: "SELECT * FROM delta_presence(patients, census, 'age', 'sex', 'zip')",
    paper: Some(papers::NERGIZ_2007),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeltaPresence {
    lo: Decimal,
    hi: Decimal,
}

impl DeltaPresence {
    /// Creates the model for these bounds.
    ///
    /// # Errors
    /// A policy error unless both are from 0 to 1 and lo is at most hi.
    pub fn new(lo: Decimal, hi: Decimal) -> Result<Self> {
        LO.check_number(lo)?;
        HI.check_number(hi)?;
        if lo > hi {
            return Err(Error::policy(format!("expected at most hi = {hi}, found {lo}")).at("lo"));
        }
        Ok(Self { lo, hi })
    }
}

impl ClassModel for DeltaPresence {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::Population
    }

    fn merge(&self, counted: Counted) -> Merge {
        match counted {
            // The share of a merged class lies between those of its parts.
            Counted::Rows => Merge::Both,
            Counted::Individuals => Merge::None,
        }
    }

    fn min_size(&self) -> u64 {
        0
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        match class.population {
            Some(population) if class.size <= population && population > 0 => {
                Quantity::Ratio(class.size.into(), population.into())
            }
            _ => Quantity::Broken,
        }
    }

    fn releases_every_tuple(&self) -> bool {
        self.lo.is_positive()
    }

    fn is_of_population(&self) -> bool {
        true
    }

    fn worst(&self) -> Worst {
        Worst::Greatest
    }

    fn holds(&self, value: Quantity) -> bool {
        value.is_at_most(self.hi) && value.compare(1, self.lo).is_some_and(Ordering::is_ge)
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("lo", self.lo), ("hi", self.hi)]
    }

    fn required(&self) -> Decimal {
        self.hi
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::make;

    fn model(lo: &str, hi: &str) -> Result<Box<dyn ClassModel>> {
        let given = [("lo", lo), ("hi", hi)];
        make("delta_presence", &given.map(|(name, text)| (name.into(), Decimal::parse(text).unwrap().into())))
    }

    fn holds(lo: &str, hi: &str, size: u64, population: Option<u64>) -> bool {
        let model = model(lo, hi).unwrap();
        model.holds(model.value(&Class { population, ..Class::of_size(size) }))
    }

    #[test]
    fn shares_by_hand() {
        // Two of three, exactly.
        assert!(holds("0", "0.666666666666666667", 2, Some(3)));
        assert!(!holds("0", "0.666666666666666666", 2, Some(3)));
        assert!(holds("0.666666666666666666", "1", 2, Some(3)));
        assert!(!holds("0.666666666666666667", "1", 2, Some(3)));
        assert!(holds("0.5", "0.5", 1 << 40, Some(2 << 40)));
        // More than the population, an empty one, none.
        assert!(![Some(1), Some(0), None].iter().any(|population| holds("0", "1", 2, *population)));
    }

    #[test]
    fn bounds_are_shares_in_their_order() {
        assert_eq!(model("0.6", "0.5").unwrap_err().to_string(), "lo: expected at most hi = 0.5, found 0.6");
        assert!(model("0", "1.1").is_err() && model("-0.1", "1").is_err());
        let of = |lo| model(lo, "0.5").unwrap().releases_every_tuple();
        assert_eq!(["0", "0.0001"].map(of), [false, true]);
        let alone = make("delta_presence", &[("hi".into(), Decimal::integer(1).into())]).unwrap();
        assert_eq!(alone.parameters(), [("lo", Decimal::integer(0)), ("hi", Decimal::integer(1))]);
    }
}
