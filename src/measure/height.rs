//! `height`: the sum of the levels (Samarati's minimum absolute distance).
//!
//! `sum_i g_i` over the levels g of a node. Level 0 counts as a step where `merge` joins values at it.
//!
//! # Contract
//! A non-negative integer as a float; 0 for the data as is. Always grows going up. It sees neither
//! data nor suppression: a level of a fine hierarchy counts as much as one of a coarse hierarchy.

use super::{Grows, Interval, Loss, LossMeasure, ratio};
use crate::class::{ClassTable, EvaluatedNode};
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct Height;

impl LossMeasure for Height {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "height",
            summary: "sum of the levels",
            parameters: "",
            example: "objective = \"height\"",
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
        sum(node.table(), node.levels())
    }

    fn bound(&self, interval: &Interval<'_>) -> f64 {
        sum(interval.table, interval.low)
    }
}

fn sum(table: &ClassTable, levels: &[usize]) -> f64 {
    let steps = table.columns().iter().zip(levels).map(|(column, level)| column.steps(*level)[0]);
    ratio(steps.map(u128::from).sum(), 1)
}
