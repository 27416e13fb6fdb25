//! `average_risk`: an individual of the kept classes is found with a probability of at most r, on average.
//!
//! A table model: the mean over the kept individuals of 1/|their smallest class| is at most r. If
//! no individual has rows in several classes, the mean is the number of kept classes divided by the
//! number of kept individuals (the average re-identification risk of Dankar & El Emam 2010, the
//! marketer risk).
//!
//! # Contract
//! Takes a number r from 0 to 1. Each class holds by itself. After the classes that fail other
//! models are suppressed, the model judges the kept classes together. The quantity is the mean. It
//! is exact if no individual is in two classes; otherwise the comparison has a relative tolerance
//! of 1e-12. The model holds for a table without classes. It implies no class size, and where
//! nothing is suppressed it survives merging.
//!
//! It bounds the share of individuals that an attacker re-identifies who matches the whole table (a
//! marketer). It promises nothing to a single individual: at r = 0.05, one individual in twenty may
//! be alone in a class. Require k beside it. It ignores sensitive values.
//!
//! ```
//! use datafusion_kanon::internals::class::ClassSizes;
//! use datafusion_kanon::extend::{ClassModel, Decimal};
//! use datafusion_kanon::internals::model::average_risk::AverageRisk;
//! let model = AverageRisk::new(Decimal::parse("0.2")?)?;
//! let holds = |sizes: &[u64]| {
//!     model.table_value(&sizes.iter().copied().collect::<ClassSizes>()).is_none_or(|value| model.holds(value))
//! };
//! assert!(holds(&[1, 9]));
//! assert!(!holds(&[1, 8]));
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use super::{Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, TOLERANCE, Worst};
use crate::class::ClassSizes;
use crate::decimal::{Decimal, ratio};
use crate::doc::Doc;
use crate::error::Result;
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter};

/// The row of [`MODELS`](super::MODELS) for this model.
pub const ROW: ModelRow = ModelRow {
    doc: DOC,
    parameters: &[R],
    constants: &[],
    make: |settings| Ok(Box::new(AverageRisk::new(settings.number("r")?)?)),
};

const R: Parameter = Parameter {
    name: "r",
    kind: Kind::Share,
    absent: Absent::Refused,
    summary: "the greatest probability of finding an individual, on average",
};

const DOC: &Doc = &Doc {
    name: "average_risk",
    summary: "an individual of the kept classes is found with a probability of at most r, on average",
    parameters: "r",
    example: "average_risk(age, sex, zip)",
    paper: Some(papers::DANKAR_EL_EMAM_2010),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AverageRisk {
    r: Decimal,
}

impl AverageRisk {
    /// Creates the model for this risk.
    ///
    /// # Errors
    /// A policy error unless r is from 0 to 1.
    pub fn new(r: Decimal) -> Result<Self> {
        R.check_number(r)?;
        Ok(Self { r })
    }
}

impl ClassModel for AverageRisk {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::Table
    }

    fn merge(&self, _counted: Counted) -> Merge {
        // Everybody's smallest class grows as classes merge. A suppressed class that is kept after
        // merging may raise the mean.
        Merge::Both
    }

    fn min_size(&self) -> u64 {
        0
    }

    fn value(&self, _class: &Class<'_>) -> Quantity {
        Quantity::Ratio(0, 1)
    }

    fn table_value(&self, kept: &ClassSizes) -> Option<Quantity> {
        let individuals = kept.individuals();
        if individuals == 0 {
            return None;
        }
        let are_disjoint = kept.histogram().all(|(size, classes, of)| size.checked_mul(classes) == Some(of));
        Some(match are_disjoint {
            true => Quantity::Ratio(kept.classes().into(), individuals.into()),
            false => Quantity::Real(kept.expected_matches() / ratio(individuals.into(), 1)),
        })
    }

    fn bounds_risk(&self) -> Option<&'static str> {
        Some("prosecutor_risk_mean")
    }

    fn worst(&self) -> Worst {
        Worst::Greatest
    }

    fn holds(&self, value: Quantity) -> bool {
        match value {
            Quantity::Real(mean) => mean <= self.r.to_f64() * (1.0 + TOLERANCE),
            exact => exact.is_at_most(self.r),
        }
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("r", self.r)]
    }

    fn required(&self) -> Decimal {
        self.r
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::make;

    fn model(r: &str) -> Result<Box<dyn ClassModel>> {
        make("average_risk", &[("r".into(), Decimal::parse(r).unwrap().into())])
    }

    fn holds(r: &str, kept: &ClassSizes) -> bool {
        let model = model(r).unwrap();
        model.table_value(kept).is_none_or(|value| model.holds(value))
    }

    #[test]
    fn the_mean_by_hand() {
        // Three classes of eleven people.
        let sizes: ClassSizes = [1, 3, 7].into_iter().collect();
        assert!(holds("0.272727272727272728", &sizes) && !holds("0.272727272727272727", &sizes));
        assert!(holds("0", &ClassSizes::default()));
        let large: ClassSizes = [1u64 << 40; 3].into_iter().collect();
        assert!(holds("0.000000000000909495", &large) && !holds("0.0000000000009", &large));
    }

    #[test]
    fn people_count_once_at_their_smallest_class() {
        // Ann and Bob are in a class of two and in one of five with three others.
        let mut sizes = ClassSizes::default();
        sizes.add_class(2);
        sizes.add_class(5);
        sizes.add_individuals(2, 2);
        sizes.add_individuals(5, 3);
        // (1/2 + 1/2 + 3/5) / 5
        assert!(holds("0.32", &sizes) && !holds("0.31999999", &sizes));
    }

    #[test]
    fn a_class_that_is_no_longer_suppressed_can_raise_the_mean() {
        let kept = |sizes: &[u64]| sizes.iter().copied().collect::<ClassSizes>();
        // Under k = 2, two people alone are suppressed; merged they are a class.
        assert!(holds("0.01", &kept(&[100])) && !holds("0.01", &kept(&[100, 2])));
    }

    #[test]
    fn every_class_by_itself_holds() {
        let model = model("0").unwrap();
        assert!(model.holds(model.value(&Class::of_size(1))));
        assert!(make("average_risk", &[("r".into(), Decimal::integer(2).into())]).is_err());
    }
}
