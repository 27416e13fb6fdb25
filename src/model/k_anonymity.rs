//! `k_anonymity`: every individual shares a class with at least k - 1 others.
//!
//! A class E holds iff |E| >= k (Samarati 2001, Sweeney 2002). Sizes count individuals, or rows
//! where the policy names no individual column.
//!
//! # Contract
//! Takes an integer k of at least 1. The quantity is the size of a class, and a table reached the
//! smallest. NULL in a quasi-identifier is a value like any other. The model survives merging with
//! any class, in rows and in individuals: going up a lattice never makes a class fail that held. It
//! bounds the chance of picking a known individual's row by 1/k and protects against nothing else:
//! if all k rows of a class share a diagnosis, the attacker learns it (homogeneity).
//!
//! ```
//! use datafusion_kanon::extend::{Class, ClassModel};
//! use datafusion_kanon::internals::model::k_anonymity::KAnonymity;
//! let model = KAnonymity::new(5)?;
//! assert!(model.holds(model.value(&Class::of_size(5))));
//! assert!(!model.holds(model.value(&Class::of_size(4))));
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
    make: |settings| Ok(Box::new(KAnonymity::new(settings.count("k")?)?)),
};

const K: Parameter = Parameter {
    name: "k",
    kind: Kind::Count,
    absent: Absent::Refused,
    summary: "the least number of individuals of a class",
};

const DOC: &Doc = &Doc {
    name: "k_anonymity",
    summary: "every class has at least k individuals",
    parameters: "k",
    example: "k_anonymity(age, sex, zip)",
    paper: Some(papers::SAMARATI_2001),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KAnonymity {
    k: u64,
}

impl KAnonymity {
    /// Creates the model for this k.
    ///
    /// # Errors
    /// A policy error unless k is from 1 to `i64::MAX`.
    pub fn new(k: u64) -> Result<Self> {
        K.check_count(k)?;
        Ok(Self { k })
    }
}

impl ClassModel for KAnonymity {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::Size
    }

    fn merge(&self, _counted: Counted) -> Merge {
        Merge::Any
    }

    fn min_size(&self) -> u64 {
        self.k
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        Quantity::Count(class.size)
    }

    fn bounded_by_rows(&self) -> Option<Box<dyn ClassModel>> {
        Some(Box::new(*self))
    }

    fn worst(&self) -> Worst {
        Worst::Least
    }

    fn holds(&self, value: Quantity) -> bool {
        matches!(value, Quantity::Count(size) if size >= self.k)
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
    fn a_class_of_k_holds() {
        let model = KAnonymity::new(5).unwrap();
        assert_eq!(model.min_size(), 5);
        let holds = |size| model.holds(model.value(&Class::of_size(size)));
        assert_eq!([0, 4, 5, 6].map(holds), [false, false, true, true]);
    }

    #[test]
    fn parameters_are_checked() {
        let k = |n: &str| vec![("k".into(), Decimal::parse(n).unwrap().into())];
        assert!(make("k_anonymity", &k("5")).is_ok());
        for wrong in ["0", "-1", "2.5", "1e17"] {
            let made = make("k_anonymity", &k(wrong));
            assert_eq!(made.is_err(), wrong != "1e17", "{wrong}");
        }
        assert!(make("k_anonymity", &[]).is_err());
        let extra = [("k".into(), Decimal::integer(5).into()), ("l".into(), Decimal::integer(2).into())];
        assert!(make("k_anonymity", &extra).unwrap_err().to_string().contains("no parameter `l`"));
        assert!(make("k_anonimity", &k("5")).unwrap_err().to_string().contains("did you mean `k_anonymity`"));
    }
}
