//! `expected_reidentifications`: the expected number of individuals that a linkage of the whole
//! table matches correctly.
//!
//! The number of classes: one member of each class is expected to be matched correctly (Dankar & El
//! Emam 2010). An individual with rows in several classes counts once, with `1 / |E|` of the
//! smallest of them.
//!
//! # Contract
//! A count as a float; NULL without rows.
//!
//! ```
//! use datafusion_kanon::internals::class::ClassSizes;
//! use datafusion_kanon::internals::measure::{RiskMeasure, expected_reidentifications::ExpectedReidentifications};
//! let sizes: ClassSizes = [1, 1, 4, 10].into_iter().collect();
//! assert_eq!(ExpectedReidentifications.value(&sizes), Some(4.0));
//! assert_eq!(ExpectedReidentifications.value(&ClassSizes::default()), None);
//! ```

use super::{RiskMeasure, RiskRow};
use crate::class::ClassSizes;
use crate::doc::Doc;
use crate::papers;

/// The row of [`RISKS`](super::RISKS) for this measure.
pub const ROW: RiskRow =
    RiskRow { doc: DOC, is_share: false, parameters: &[], make: |_| Ok(Box::new(ExpectedReidentifications)) };

const DOC: &Doc = &Doc {
    name: "expected_reidentifications",
    summary: "expected number of correct matches when the whole table is linked",
    parameters: "",
    example: "expected_reidentifications(age, sex, zip)",
    paper: Some(papers::DANKAR_EL_EMAM_2010),
};

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedReidentifications;

impl RiskMeasure for ExpectedReidentifications {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn value(&self, sizes: &ClassSizes) -> Option<f64> {
        (sizes.individuals() > 0).then(|| sizes.expected_matches())
    }
}
