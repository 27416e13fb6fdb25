//! `classification_metric`: the share of rows that a classifier by class would get wrong.
//!
//! `(S + sum over kept classes of the rows without the class's most frequent value) / n`, over the
//! values of one sensitive column; NULL is a value.
//!
//! # Contract
//! A share in 0..=1. Needs a table with one sensitive column; of several, the policy must leave
//! one. It rewards homogeneous classes, which l-diversity forbids: it is useful for training
//! models, not for protection.

use super::{Grows, Interval, Loss, LossMeasure, ratio};
use crate::class::{EvaluatedNode, EvaluatedRecoding};
use crate::doc::Doc;
use crate::model::Needs;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct ClassificationMetric;

impl Loss for ClassificationMetric {
    fn of(&self, recoding: &dyn EvaluatedRecoding) -> f64 {
        let classes = recoding.evaluated();
        let minority = |(class, rows): (usize, u64)| {
            let counts = classes.sensitive(class, 0).unwrap_or_default();
            rows - counts.iter().map(|count| count.count).max().unwrap_or(0)
        };
        let wrong = classes.suppressed_rows() + classes.kept().map(minority).sum::<u64>();
        ratio(u128::from(wrong), u128::from(classes.table().total_rows()))
    }
}

impl LossMeasure for ClassificationMetric {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "classification_metric",
            summary: "share of rows that are suppressed or outside the majority of their class",
            parameters: "",
            example: "objective = \"classification_metric\"",
            paper: Some(papers::IYENGAR_2002),
        }
    }

    fn grows(&self) -> Grows {
        Grows::No
    }

    fn needs(&self) -> Needs {
        Needs::SensitiveCounts
    }

    fn for_any_recoding(&self) -> Option<&dyn Loss> {
        Some(self)
    }

    fn value(&self, node: &EvaluatedNode<'_>) -> f64 {
        self.of(node)
    }

    fn bound(&self, interval: &Interval<'_>) -> f64 {
        ratio(u128::from(interval.suppressed), u128::from(interval.rows()))
    }
}
