//! `suppressed_rows`: S, the number of rows in failing classes (Samarati's minimum suppression).
//!
//! # Contract
//! A non-negative integer as a float, at most the rows of the input. It ignores how coarse the
//! other rows are.

use super::{Grows, Interval, Loss, LossMeasure, ratio};
use crate::class::{EvaluatedNode, EvaluatedRecoding};
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct SuppressedRows;

impl Loss for SuppressedRows {
    fn of(&self, recoding: &dyn EvaluatedRecoding) -> f64 {
        let classes = recoding.evaluated();
        ratio(u128::from(classes.suppressed_rows()), 1)
    }
}

impl LossMeasure for SuppressedRows {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "suppressed_rows",
            summary: "number of rows in failing classes",
            parameters: "",
            example: "objective = \"suppressed_rows\"",
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
        ratio(u128::from(interval.suppressed), 1)
    }
}
