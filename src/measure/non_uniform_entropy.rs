//! `non_uniform_entropy`: the bits about the original values that the release takes away.
//!
//! AggregateInput all rows, per column `-sum_x f(x) log2(f(x) / F(y))`: f(x) rows have the value x, F(y) rows a value
//! with the label y of x. For the suppressed rows alone, per column `-sum_y s(y) log2(s(y) / S)` more, over
//! the labels they would have had. Summed over the columns.
//!
//! # Contract
//! Bits, not below 0; 0 for the data as is. Grows going up when nothing is suppressed. NULL is a value. It is
//! measured on the input: what an attacker can learn from elsewhere is not in it.

use super::{Grows, Interval, LossMeasure, ratio, rounded_down};
use crate::class::EvaluatedNode;
use crate::doc::Doc;
use crate::papers;

/// See the [module](self).
#[derive(Debug, Clone, Copy)]
pub struct NonUniformEntropy;

impl LossMeasure for NonUniformEntropy {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "non_uniform_entropy",
            summary: "bits about the original values that are lost",
            parameters: "",
            example: "objective = \"non_uniform_entropy\"",
            paper: Some(papers::GIONIS_TASSA_2009),
        }
    }

    fn grows(&self) -> Grows {
        Grows::WithoutSuppression
    }

    fn value(&self, node: &EvaluatedNode<'_>) -> f64 {
        let columns = node.table().columns().iter().zip(node.levels());
        let labels = node.suppressed_by_label();
        let suppressed = u128::from(node.suppressed_rows());
        columns.zip(&labels).fold(0.0, |sum, ((column, level), labels)| {
            let told = labels.iter().filter(|rows| **rows > 0).fold(0.0, |sum, rows| {
                let rows = u128::from(*rows);
                sum - ratio(rows, 1) * ratio(rows, suppressed).log2()
            });
            sum + (column.entropy(*level) + told)
        })
    }

    fn bound(&self, interval: &Interval<'_>) -> f64 {
        let columns = interval.table.columns().iter().zip(interval.low);
        rounded_down(columns.fold(0.0, |sum, (column, level)| sum + column.entropy(*level)))
    }
}
