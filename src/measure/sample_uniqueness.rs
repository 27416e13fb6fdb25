//! `sample_uniqueness`: the share of individuals who are alone in their class.
//!
//! `individuals in classes of size 1 / individuals` (Dankar & El Emam 2010). An individual with
//! rows in several classes is unique when alone in one of them.
//!
//! # Contract
//! A share in 0..=1; NULL without rows. It measures uniqueness in the sample, not in the
//! population.
//!
//! ```
//! use datafusion_kanon::internals::class::ClassSizes;
//! use datafusion_kanon::internals::measure::{RiskMeasure, sample_uniqueness::SampleUniqueness};
//! let sizes: ClassSizes = [1, 1, 4, 10].into_iter().collect();
//! assert_eq!(SampleUniqueness.value(&sizes), Some(0.125));
//! assert_eq!(SampleUniqueness.value(&ClassSizes::default()), None);
//! ```

use super::{RiskMeasure, RiskRow, ratio};
use crate::class::ClassSizes;
use crate::doc::Doc;
use crate::papers;

/// The row of [`RISKS`](super::RISKS) for this measure.
pub const ROW: RiskRow =
    RiskRow { doc: DOC, is_share: true, parameters: &[], make: |_| Ok(Box::new(SampleUniqueness)) };

const DOC: &Doc = &Doc {
    name: "sample_uniqueness",
    summary: "share of individuals alone in their class",
    parameters: "",
    example: "sample_uniqueness(age, sex, zip)",
    paper: Some(papers::DANKAR_EL_EMAM_2010),
};

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct SampleUniqueness;

impl RiskMeasure for SampleUniqueness {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn value(&self, sizes: &ClassSizes) -> Option<f64> {
        (sizes.classes() > 0).then(|| ratio(u128::from(sizes.unique()), u128::from(sizes.individuals())))
    }
}
