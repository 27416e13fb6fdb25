//! `distinct_tuples`: minus the number of kept classes (Samarati's maximum distribution).
//!
//! # Contract
//! An integer as a float, at most 0: the more classes remain distinct, the smaller it is. It sees
//! neither suppression nor how coarse the labels are.

use super::{Grows, Interval, Loss, LossMeasure, ratio};
use crate::class::{EvaluatedNode, EvaluatedRecoding};
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct DistinctTuples;

impl Loss for DistinctTuples {
    fn of(&self, recoding: &dyn EvaluatedRecoding) -> f64 {
        let classes = recoding.evaluated();
        0.0 - ratio(u128::from(classes.kept_classes()), 1)
    }
}

impl LossMeasure for DistinctTuples {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "distinct_tuples",
            summary: "minus the number of classes",
            parameters: "",
            example: "objective = \"distinct_tuples\"",
            paper: Some(papers::SAMARATI_2001),
        }
    }

    fn grows(&self) -> Grows {
        Grows::No
    }

    fn for_any_recoding(&self) -> Option<&dyn Loss> {
        Some(self)
    }

    fn value(&self, node: &EvaluatedNode<'_>) -> f64 {
        self.of(node)
    }

    fn bound(&self, interval: &Interval<'_>) -> f64 {
        0.0 - ratio(u128::from(interval.kept_classes()), 1)
    }
    fn counts_classes(&self) -> bool {
        true
    }
}
