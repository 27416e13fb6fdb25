//! `prosecutor_risk_mean`: the mean chance of picking an individual's row.
//!
//! `classes / individuals` (Dankar & El Emam 2010), which is also the marketer risk: the share of
//! all individuals that a linkage of the whole table is expected to match correctly. An individual
//! with rows in several classes counts with the smallest of them, so the mean of `1 / smallest |E|`
//! over individuals stays a share.
//!
//! # Contract
//! A share in 0..=1; NULL without rows. It only sees sizes, not the values that a class gives away.
//!
//! ```
//! use datafusion_kanon::internals::class::ClassSizes;
//! use datafusion_kanon::internals::measure::{RiskMeasure, prosecutor_risk_mean::ProsecutorRiskMean};
//! let sizes: ClassSizes = [1, 1, 4, 10].into_iter().collect();
//! assert_eq!(ProsecutorRiskMean.value(&sizes), Some(0.25));
//! assert_eq!(ProsecutorRiskMean.value(&ClassSizes::default()), None);
//! ```

use super::{RiskMeasure, RiskRow, ratio};
use crate::class::ClassSizes;
use crate::doc::Doc;
use crate::papers;

/// The row of [`RISKS`](super::RISKS) for this measure.
pub const ROW: RiskRow =
    RiskRow { doc: DOC, is_share: true, parameters: &[], make: |_| Ok(Box::new(ProsecutorRiskMean)) };

const DOC: &Doc = &Doc {
    name: "prosecutor_risk_mean",
    summary: "mean probability of re-identifying a known individual (marketer risk)",
    parameters: "",
    example: "prosecutor_risk_mean(age, sex, zip)",
    paper: Some(papers::DANKAR_EL_EMAM_2010),
};

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct ProsecutorRiskMean;

impl RiskMeasure for ProsecutorRiskMean {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn value(&self, sizes: &ClassSizes) -> Option<f64> {
        let mean = || sizes.expected_matches() / ratio(u128::from(sizes.individuals()), 1);
        (sizes.individuals() > 0).then(mean)
    }
}
