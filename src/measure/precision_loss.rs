//! `precision_loss`: the mean height of a cell in its hierarchy, with suppressed rows at the top
//! (one minus Sweeney's precision).
//!
//! `mean over columns i of (K g_i / H_i + S) / n`: a kept cell loses the share of its hierarchy
//! that it went up, a suppressed cell loses everything.
//!
//! # Contract
//! A float in 0..=1: 0 for the data as is, 1 when everything is suppressed. Grows going up when
//! nothing is suppressed. It ignores how many values a level merges.

use super::relative_height::{lowest_terms, sum_of_shares};
use super::{Grows, Interval, Loss, LossMeasure, rounded_down};
use crate::class::{ClassTable, EvaluatedNode};
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct PrecisionLoss;

impl LossMeasure for PrecisionLoss {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "precision_loss",
            summary: "mean relative height of a cell in its hierarchy",
            parameters: "",
            example: "objective = \"precision_loss\"",
            paper: Some(papers::SWEENEY_2002_PRECISION),
        }
    }

    fn grows(&self) -> Grows {
        Grows::WithoutSuppression
    }

    fn for_any_recoding(&self) -> Option<&dyn Loss> {
        None
    }

    fn value(&self, node: &EvaluatedNode<'_>) -> f64 {
        loss(node.table(), node.levels(), node.suppressed_rows())
    }

    fn bound(&self, interval: &Interval<'_>) -> f64 {
        rounded_down(loss(interval.table, interval.low, interval.suppressed))
    }
}

fn loss(table: &ClassTable, levels: &[usize], suppressed: u64) -> f64 {
    let (sum, whole) = sum_of_shares(table, levels);
    let [rows, suppressed] = [table.total_rows(), suppressed].map(u128::from);
    let columns = levels.len() as u128;
    lowest_terms((rows - suppressed) * sum + suppressed * columns * whole, rows * columns * whole)
}
