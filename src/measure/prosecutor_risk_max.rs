//! `prosecutor_risk_max`: the highest chance of picking a known individual's row.
//!
//! `1 / min |E|` (Dankar & El Emam 2010), for an attacker who knows that the individual is in the
//! data.
//!
//! # Contract
//! A share in 0..=1; NULL without rows. It only sees sizes, not the values that a class gives away.
//!
//! ```
//! use datafusion_kanon::internals::class::ClassSizes;
//! use datafusion_kanon::internals::measure::{RiskMeasure, prosecutor_risk_max::ProsecutorRiskMax};
//! let sizes: ClassSizes = [1, 1, 4, 10].into_iter().collect();
//! assert_eq!(ProsecutorRiskMax.value(&sizes), Some(1.0));
//! assert_eq!(ProsecutorRiskMax.value(&ClassSizes::default()), None);
//! ```

use super::{RiskMeasure, RiskRow, ratio};
use crate::class::ClassSizes;
use crate::doc::Doc;
use crate::papers;

/// The row of [`RISKS`](super::RISKS) for this measure.
pub const ROW: RiskRow =
    RiskRow { doc: DOC, is_share: true, parameters: &[], make: |_| Ok(Box::new(ProsecutorRiskMax)) };

const DOC: &Doc = &Doc {
    name: "prosecutor_risk_max",
    summary: "highest probability of re-identifying a known individual: 1 / smallest class",
    parameters: "",
    example: "prosecutor_risk_max(age, sex, zip)",
    paper: Some(papers::DANKAR_EL_EMAM_2010),
};

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct ProsecutorRiskMax;

impl RiskMeasure for ProsecutorRiskMax {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn value(&self, sizes: &ClassSizes) -> Option<f64> {
        sizes.min().map(|least| ratio(1, u128::from(least)))
    }
}
