//! `granularity_mean`: [`granularity`](super::granularity) with the arithmetic mean over the
//! columns.
//!
//! `mean over i of w_i X_i`, with the X_i of `granularity` (ARX: loss with the arithmetic mean).
//!
//! # Contract
//! A float in 0..=1: 0 for the data as is, 1 when everything is suppressed (with equal weights).
//! Grows going up when nothing is suppressed.

use super::granularity::{of_columns, of_interval};
use super::{Grows, Interval, Loss, LossMeasure, ratio};
use crate::class::{ClassTable, EvaluatedNode, EvaluatedRecoding};
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct GranularityMean;

impl Loss for GranularityMean {
    fn of(&self, recoding: &dyn EvaluatedRecoding) -> f64 {
        mean(recoding.evaluated().table(), &of_columns(recoding))
    }
}

impl LossMeasure for GranularityMean {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "granularity_mean",
            summary: "share of its column's domain that a value covers, arithmetic mean",
            parameters: "",
            example: "objective = \"granularity_mean\"",
            paper: Some(papers::IYENGAR_2002),
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
        mean(interval.table, &of_interval(interval))
    }
}

fn mean(table: &ClassTable, columns: &[f64]) -> f64 {
    let sum: f64 = columns.iter().zip(table.columns()).map(|(x, c)| c.weight() * x).sum();
    sum / ratio(columns.len() as u128, 1)
}
