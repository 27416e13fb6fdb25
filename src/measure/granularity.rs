//! `granularity`: how much of each column's domain a released value stands for, over all columns.
//!
//! Per column i with D_i leaves and weight w_i (divided by the largest weight),
//! `A_i = sum over kept rows of leaves(v_i)/D_i, plus S`, `X_i = (A_i - n/D_i) / (n - n/D_i)`, not below 0,
//! and the loss is the geometric mean `prod_i (1 + w_i X_i)^(1/m) - 1` (Iyengar's loss metric, as in ARX).
//! A suppressed row counts as a row whose every value stands for the whole domain. Leaves are the rows of
//! the hierarchy file, else the distinct values of the input.
//!
//! # Contract
//! A float in 0..=1: 0 for the data as is, 1 when everything is suppressed (equal weights). Grows going up
//! when nothing is suppressed. Compared with ARX, X_i is not cut to ten decimals.

use super::{Grows, LossMeasure, ratio};
use crate::class::{ClassTable, Judged};
use crate::doc::Doc;
use crate::papers;

/// See the [module](self).
#[derive(Debug, Clone, Copy)]
pub struct Granularity;

impl LossMeasure for Granularity {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "granularity",
            summary: "share of each column's domain that a value stands for, geometric mean",
            parameters: "",
            example: "objective = \"granularity\"",
            paper: Some(papers::IYENGAR_2002),
        }
    }

    fn grows(&self) -> Grows {
        Grows::WithoutSuppression
    }

    fn value(&self, node: &Judged<'_>) -> f64 {
        geometric(node.table(), &of_columns(node))
    }

    fn bound(&self, table: &ClassTable, levels: &[usize]) -> f64 {
        geometric(table, &of_levels(table, levels))
    }
}

fn geometric(table: &ClassTable, columns: &[f64]) -> f64 {
    let product: f64 = columns.iter().zip(table.columns()).map(|(x, c)| 1.0 + c.weight() * x).product();
    product.powf(1.0 / ratio(columns.len() as u128, 1)) - 1.0
}

/// X_i of every column at a judged node.
pub(super) fn of_columns(node: &Judged<'_>) -> Vec<f64> {
    let table = node.table();
    let leaves: Vec<&[u64]> =
        table.columns().iter().zip(node.levels()).map(|(c, level)| c.level(*level).leaves()).collect();
    let mut covered = vec![0u128; leaves.len()];
    for (class, rows) in node.kept() {
        for (column, (sum, leaves)) in covered.iter_mut().zip(&leaves).enumerate() {
            *sum += u128::from(rows) * u128::from(leaves[node.code(class, column) as usize]);
        }
    }
    let suppressed = u128::from(node.suppressed_rows());
    let columns = table.columns().iter().zip(covered);
    columns
        .map(|(c, sum)| share(sum + suppressed * u128::from(c.leaves()), table.total_rows(), c.leaves()))
        .collect()
}

/// X_i of every column if no row were suppressed, which is the least it can be: a suppressed row counts all
/// leaves.
pub(super) fn of_levels(table: &ClassTable, levels: &[usize]) -> Vec<f64> {
    let columns = table.columns().iter().zip(levels);
    columns.map(|(c, level)| share(c.covered(*level), table.total_rows(), c.leaves())).collect()
}

/// X_i from `covered = D_i A_i`.
fn share(covered: u128, rows: u64, leaves: u64) -> f64 {
    let rows = u128::from(rows);
    ratio(covered.saturating_sub(rows), rows * u128::from(leaves.saturating_sub(1)))
}
