//! `granularity`: the share of each column's domain that a released value stands for, over all
//! columns.
//!
//! Column i has D_i leaves and weight w_i (divided by the largest weight). With
//! `A_i = sum over kept rows of leaves(v_i)/D_i, plus S` and `X_i = (A_i - n/D_i) / (n - n/D_i)`,
//! not below 0, the loss is the geometric mean `prod_i (1 + w_i X_i)^(1/m) - 1` (Iyengar's loss
//! metric, as in ARX). A suppressed row counts as a row in which every value stands for the whole
//! domain. Leaves are the rows of the hierarchy file, else the distinct values of the input.
//!
//! # Contract
//! A float in 0..=1: 0 for the data as is, 1 when everything is suppressed (with equal weights).
//! Grows going up when nothing is suppressed. Unlike in ARX, X_i is not cut to ten decimals.

use super::{Grows, Interval, Loss, LossMeasure, ratio, rounded_down};
use crate::class::{ClassTable, EvaluatedNode, EvaluatedRecoding};
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct Granularity;

impl Loss for Granularity {
    fn of(&self, recoding: &dyn EvaluatedRecoding) -> f64 {
        geometric(recoding.evaluated().table(), &of_columns(recoding))
    }
}

impl LossMeasure for Granularity {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "granularity",
            summary: "share of its column's domain that a value covers, geometric mean",
            parameters: "",
            example: "objective = \"granularity\"",
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
        // The root may round the larger of two products to the smaller number.
        (rounded_down(1.0 + geometric(interval.table, &of_interval(interval))) - 1.0).max(0.0)
    }
}

fn geometric(table: &ClassTable, columns: &[f64]) -> f64 {
    let product: f64 = columns.iter().zip(table.columns()).map(|(x, c)| 1.0 + c.weight() * x).product();
    product.powf(1.0 / ratio(columns.len() as u128, 1)) - 1.0
}

/// Returns X_i of every column under an evaluated recoding, a share in 0..=1. A suppressed row
/// counts all leaves instead of those that its class shows.
pub fn of_columns(recoding: &dyn EvaluatedRecoding) -> Vec<f64> {
    let table = recoding.evaluated().table();
    let columns = table.columns().iter().zip(recoding.leaves_shown());
    columns.map(|(column, covered)| share(covered, table.total_rows(), column.leaves())).collect()
}

/// Returns a lower bound of X_i for every column: the suppressed rows have the labels with the most
/// leaves.
pub(super) fn of_interval(interval: &Interval<'_>) -> Vec<f64> {
    let suppressed = u128::from(interval.suppressed);
    let columns = interval.table.columns().iter().zip(interval.low);
    columns
        .map(|(c, level)| {
            let added = suppressed * u128::from(c.leaves().saturating_sub(c.most_leaves(*level)));
            share(c.covered(*level) + added, interval.rows(), c.leaves())
        })
        .collect()
}

/// Computes X_i from `covered = D_i A_i`.
pub(crate) fn share(covered: u128, rows: u64, leaves: u64) -> f64 {
    let rows = u128::from(rows);
    ratio(covered.saturating_sub(rows), rows * u128::from(leaves.saturating_sub(1)))
}
