//! `discernibility`: each row costs the number of rows that look the same (discernibility metric).
//!
//! `sum over kept classes of rows^2, plus n S`: a suppressed row looks the same as every row.
//!
//! # Contract
//! A non-negative integer as a float, at most n^2. Grows going up when nothing is suppressed. It
//! only sees the sizes of classes, not how coarse their labels are.

use super::{Grows, Interval, Loss, LossMeasure, ratio};
use crate::class::{EvaluatedNode, EvaluatedRecoding};
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct Discernibility;

impl Loss for Discernibility {
    fn of(&self, recoding: &dyn EvaluatedRecoding) -> f64 {
        let classes = recoding.evaluated();
        let kept: u128 = classes.kept().map(|(_, rows)| u128::from(rows) * u128::from(rows)).sum();
        let suppressed = u128::from(classes.suppressed_rows()) * u128::from(classes.table().total_rows());
        ratio(kept + suppressed, 1)
    }
}

impl LossMeasure for Discernibility {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "discernibility",
            summary: "sum over all rows of the number of rows that are indistinguishable from it",
            parameters: "",
            example: "objective = \"discernibility\"",
            paper: Some(papers::BAYARDO_AGRAWAL_2005),
        }
    }

    fn grows(&self) -> Grows {
        Grows::WithoutSuppression
    }

    fn for_any_recoding(&self) -> Option<&dyn Loss> {
        Some(self)
    }

    fn value(&self, node: &EvaluatedNode<'_>) -> f64 {
        self.of(node)
    }

    fn bound(&self, interval: &Interval<'_>) -> f64 {
        let n = u128::from(interval.rows());
        let suppressed = u128::from(interval.suppressed);
        // A suppressed row costs n instead of the rows of its class.
        let by_squares = interval.squares + suppressed * (n - u128::from(interval.max_failing).min(n));
        // A kept row costs at least the smallest size.
        let least = u128::from(interval.min_size).min(n);
        ratio(by_squares.max(least * (n - suppressed) + n * suppressed), 1)
    }
    fn counts_classes(&self) -> bool {
        true
    }
}
