//! `relative_height`: the relative height of each column in its hierarchy, summed (Samarati's
//! minimum relative distance).
//!
//! `sum_i g_i / H_i` over the levels g of a node, where H_i is the top level of column i (a column
//! with one level adds 0). Level 0 counts as a step where `merge` joins values at it.
//!
//! # Contract
//! A float between 0 (the data as is) and the number of columns (everything suppressed). Always
//! grows going up. It sees neither data nor suppression.

use super::{Grows, Interval, Loss, LossMeasure, ratio};
use crate::class::{ClassTable, EvaluatedNode};
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
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

    fn for_any_recoding(&self) -> Option<&dyn Loss> {
        None
    }

    fn value(&self, node: &EvaluatedNode<'_>) -> f64 {
        value(node.table(), node.levels())
    }

    fn bound(&self, interval: &Interval<'_>) -> f64 {
        value(interval.table, interval.low)
    }
}

fn value(table: &ClassTable, levels: &[usize]) -> f64 {
    let (sum, whole) = sum_of_shares(table, levels);
    lowest_terms(sum, whole)
}

/// Returns `sum_i g_i / H_i` as a fraction, so that nodes with equal sums have equal losses, to the
/// last bit.
pub(super) fn sum_of_shares(table: &ClassTable, levels: &[usize]) -> (u128, u128) {
    let shares = table.columns().iter().zip(levels).filter(|(column, _)| column.height() > 0);
    shares.fold((0, 1), |(sum, whole), (column, level)| {
        let [level, height] = column.steps(*level).map(u128::from);
        let common = whole / greatest_common_divisor(whole, height) * height;
        (sum * (common / whole) + level * (common / height), common)
    })
}

/// Reduces a fraction to lowest terms and returns the nearest float.
pub(super) fn lowest_terms(a: u128, b: u128) -> f64 {
    let divisor = greatest_common_divisor(a, b).max(1);
    ratio(a / divisor, b / divisor)
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
