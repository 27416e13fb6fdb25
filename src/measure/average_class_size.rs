//! `average_class_size`: rows per class, all suppressed rows being one class.
//!
//! `n / (kept classes + [S > 0])`.
//!
//! # Contract
//! A float in 1..=n. Grows going up when nothing is suppressed. It ignores how many rows are
//! suppressed and only sees whether any is.

use super::{Grows, Interval, Loss, LossMeasure, ratio};
use crate::class::{EvaluatedNode, EvaluatedRecoding};
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct AverageClassSize;

impl Loss for AverageClassSize {
    fn of(&self, recoding: &dyn EvaluatedRecoding) -> f64 {
        let evaluated = recoding.evaluated();
        let classes = evaluated.kept_classes() + u64::from(evaluated.suppressed_rows() > 0);
        ratio(u128::from(evaluated.table().total_rows()), u128::from(classes))
    }
}

impl LossMeasure for AverageClassSize {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "average_class_size",
            summary: "rows per class",
            parameters: "",
            example: "objective = \"average_class_size\"",
            paper: Some(papers::LEFEVRE_2006),
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
        // If rows are suppressed, at least one class is not kept.
        let with_suppression = interval.kept_classes() + u64::from(interval.limit > 0);
        let classes = with_suppression.min(interval.classes).max(1);
        ratio(u128::from(interval.rows()), u128::from(classes))
    }
    fn counts_classes(&self) -> bool {
        true
    }
}
