//! `discernibility_star`: discernibility without a penalty for suppression.
//!
//! `sum over all classes of rows^2`, failing classes included (DM*; ARX uses it as a bound).
//!
//! # Contract
//! A non-negative integer as a float, at most n^2. Always grows going up. It ignores suppression.

use super::{Grows, Interval, Loss, LossMeasure, ratio};
use crate::class::EvaluatedNode;
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct DiscernibilityStar;

impl LossMeasure for DiscernibilityStar {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "discernibility_star",
            summary: "sum over all rows of the size of their class",
            parameters: "",
            example: "objective = \"discernibility_star\"",
            paper: Some(papers::EL_EMAM_2009),
        }
    }

    fn grows(&self) -> Grows {
        Grows::Always
    }

    fn for_any_recoding(&self) -> Option<&dyn Loss> {
        None
    }

    fn value(&self, node: &EvaluatedNode<'_>) -> f64 {
        ratio(node.squares(), 1)
    }

    fn bound(&self, interval: &Interval<'_>) -> f64 {
        ratio(interval.squares, 1)
    }
    fn counts_classes(&self) -> bool {
        true
    }
}
