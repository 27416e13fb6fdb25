//! `relative_height`: how far up its hierarchy each column goes (Samarati's minimum relative distance).
//!
//! `sum_i g_i / H_i` over the levels g of a node, H_i the top level of column i (a column of one level adds 0).
//!
//! # Contract
//! A float between 0 (the data as is) and the number of columns (everything suppressed). Always grows going up.
//! It sees neither data nor suppression.

use super::{Grows, Interval, LossMeasure, ratio};
use crate::class::{ClassTable, Judged};
use crate::doc::Doc;
use crate::papers;

/// See the [module](self).
#[derive(Debug, Clone, Copy)]
pub struct RelativeHeight;

impl LossMeasure for RelativeHeight {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "relative_height",
            summary: "sum of the levels, each as a share of its hierarchy",
            parameters: "",
            example: "objective = \"relative_height\"",
            paper: Some(papers::SAMARATI_2001),
        }
    }

    fn grows(&self) -> Grows {
        Grows::Always
    }

    fn value(&self, node: &Judged<'_>) -> f64 {
        sum_of_shares(node.table(), node.levels())
    }

    fn bound(&self, interval: &Interval<'_>) -> f64 {
        sum_of_shares(interval.table, interval.low)
    }
}

/// `sum_i g_i / H_i`.
pub(super) fn sum_of_shares(table: &ClassTable, levels: &[usize]) -> f64 {
    let shares = table.columns().iter().zip(levels);
    shares
        .map(|(column, level)| ratio(*level as u128, column.height() as u128))
        .fold(0.0, |sum, share| sum + share)
}
