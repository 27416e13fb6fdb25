//! `share_at_risk`: the share of individuals whose risk exceeds a bound.
//!
//! `individuals with 1/|E| > r / individuals` (Dankar & El Emam 2010), decided in exact integers.
//! An individual with rows in several classes is at risk when one of them is that small.
//!
//! # Contract
//! Takes r in 0..=1, by default 0.2 (k = 5), and returns a share in 0..=1, NULL without rows. The
//! bound itself is not at risk: with r = 0.2 a class of 5 is safe, a class of 4 is not.
//!
//! ```
//! use datafusion_kanon::extend::Decimal;
//! use datafusion_kanon::internals::class::ClassSizes;
//! use datafusion_kanon::internals::measure::share_at_risk::ROW;
//! let sizes: ClassSizes = [1, 4, 5, 10].into_iter().collect();
//! let risk = ROW.with(&[("r".to_owned(), Decimal::parse("0.2")?.into())])?;
//! assert_eq!(risk.value(&sizes), Some(0.25));
//! assert_eq!(risk.value(&ClassSizes::default()), None);
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use super::{RiskMeasure, RiskRow, ratio};
use crate::class::ClassSizes;
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::Result;
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Setting};

/// The row of [`RISKS`](super::RISKS) for this measure.
pub const ROW: RiskRow = RiskRow {
    doc: DOC,
    is_share: true,
    parameters: &[R],
    make: |settings| Ok(Box::new(ShareAtRisk { bound: settings.number("r")? })),
};

const R: Parameter = Parameter {
    name: "r",
    kind: Kind::Share,
    absent: Absent::Means(Setting::Number(ShareAtRisk::DEFAULT.bound)),
    summary: "the greatest risk that is accepted",
};

const DOC: &Doc = &Doc {
    name: "share_at_risk",
    summary: "share of individuals with a risk above r",
    parameters: "r",
    example: "share_at_risk(0.2, age, sex, zip)",
    paper: Some(papers::DANKAR_EL_EMAM_2010),
};

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct ShareAtRisk {
    bound: Decimal,
}

impl ShareAtRisk {
    /// The measure for the default bound.
    pub const DEFAULT: Self = Self { bound: Decimal::new_const(2, 1) };

    /// Creates the measure for the bound r.
    ///
    /// # Errors
    /// A policy error when r is not between 0 and 1.
    pub fn new(bound: Decimal) -> Result<Self> {
        R.check_number(bound)?;
        Ok(Self { bound })
    }

    /// Returns the number of individuals whose risk exceeds the bound.
    pub fn individuals(self, sizes: &ClassSizes) -> u64 {
        let at_risk = sizes.histogram().filter(|(size, ..)| self.exceeds(*size));
        at_risk.map(|(_, _, individuals)| individuals).sum()
    }

    /// Returns whether `1 / size > bound`, exactly.
    fn exceeds(self, size: u64) -> bool {
        let bound = self.bound.numerator().checked_mul(i128::from(size));
        bound.is_some_and(|product| product < self.bound.denominator())
    }
}

impl RiskMeasure for ShareAtRisk {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn value(&self, sizes: &ClassSizes) -> Option<f64> {
        let at_risk = self.individuals(sizes);
        (sizes.classes() > 0).then(|| ratio(u128::from(at_risk), u128::from(sizes.individuals())))
    }
}
