//! `non_uniform_entropy`: the bits of information about the original values that the release
//! removes.
//!
//! Over all rows, each column adds `-sum_x f(x) log2(f(x) / F(y))`, where f(x) rows have the value
//! x and F(y) rows have a value with the label y of x. Over the suppressed rows alone, each column
//! also adds `-sum_y s(y) log2(s(y) / S)` over the labels that they would have had. The loss is the
//! sum over the columns.
//!
//! # Contract
//! Bits, not below 0; 0 for the data as is. Grows going up when nothing is suppressed. NULL is a
//! value. The loss is measured on the input and ignores other knowledge of an attacker.

use super::{Grows, Interval, Loss, LossMeasure, ratio, rounded_down};
use crate::class::EvaluatedNode;
use crate::doc::Doc;
use crate::papers;

/// The measure that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
pub struct NonUniformEntropy;

impl LossMeasure for NonUniformEntropy {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "non_uniform_entropy",
            summary: "lost bits of information about the original values",
            parameters: "",
            example: "objective = \"non_uniform_entropy\"",
            paper: Some(papers::GIONIS_TASSA_2009),
        }
    }

    fn grows(&self) -> Grows {
        Grows::WithoutSuppression
    }

    fn for_any_recoding(&self) -> Option<&dyn Loss> {
        None
    }

    fn value(&self, node: &EvaluatedNode<'_>) -> f64 {
        let columns = node.table().columns().iter().zip(node.levels());
        let labels = node.suppressed_by_label();
        let suppressed = u128::from(node.suppressed_rows());
        columns.zip(&labels).fold(0.0, |sum, ((column, level), labels)| {
            let kept = labels.iter().filter(|rows| **rows > 0).fold(0.0, |sum, rows| {
                let rows = u128::from(*rows);
                sum - ratio(rows, 1) * ratio(rows, suppressed).log2()
            });
            sum + (column.entropy(*level) + kept)
        })
    }

    fn bound(&self, interval: &Interval<'_>) -> f64 {
        let columns = interval.table.columns().iter().zip(interval.low);
        rounded_down(columns.fold(0.0, |sum, (column, level)| sum + column.entropy(*level)))
    }
}
