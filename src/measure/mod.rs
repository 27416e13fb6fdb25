//! Measures: what is lost, and what is at risk.
//!
//! Two traits, two tables. A [`LossMeasure`] judges a node of a search by what its release would lose
//! ([`LOSSES`]); a [`RiskMeasure`] judges a set of classes by how easily a person is found ([`RISKS`]).
//! Losses count rows and are computed from integers summed in a fixed order, so that a loss has the same
//! bits whatever the thread count.

pub mod average_class_size;
pub mod classification_metric;
pub mod discernibility;
pub mod discernibility_star;
pub mod distinct_tuples;
pub mod granularity;
pub mod granularity_mean;
pub mod height;
pub mod non_uniform_entropy;
pub mod precision_loss;
pub mod relative_height;
pub mod suppressed_rows;

pub mod expected_reidentifications;
pub mod prosecutor_risk_max;
pub mod prosecutor_risk_mean;
pub mod sample_uniqueness;
pub mod share_at_risk;

use std::fmt::Debug;

use crate::class::{ClassSizes, ClassTable, EvaluatedNode};
pub use crate::decimal::ratio;
use crate::doc::Doc;
use crate::model::Needs;

/// When a loss can only grow going up the lattice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grows {
    /// Always.
    Always,
    /// Between nodes that suppress nothing.
    WithoutSuppression,
    /// Not in general.
    No,
}

/// What a release loses: smaller is better.
pub trait LossMeasure: Debug + Send + Sync {
    /// The row's documentation.
    fn doc(&self) -> &'static Doc;

    /// When the loss grows with the levels.
    fn grows(&self) -> Grows;

    /// What it looks at: sizes, or the values of the table's first sensitive column.
    fn needs(&self) -> Needs {
        Needs::Size
    }

    /// The loss of a judged node.
    fn value(&self, node: &EvaluatedNode<'_>) -> f64;

    /// A number that the loss of no anonymous node in the interval is below, to the last bit: a search skips
    /// an interval whose bound is above the best loss.
    fn bound(&self, interval: &Interval<'_>) -> f64;

    /// Whether the bound looks at the classes or squares of an interval, which cost a search more to know.
    fn counts_classes(&self) -> bool {
        false
    }
}

/// What is known of every anonymous node between a lowest node and nodes above it: what a bound is made of.
#[derive(Debug, Clone, Copy)]
pub struct Interval<'a> {
    /// The table.
    pub table: &'a ClassTable,
    /// The levels of the lowest node.
    pub low: &'a [usize],
    /// Every node suppresses at least these rows.
    pub suppressed: u64,
    /// No anonymous node suppresses more rows.
    pub limit: u64,
    /// Every node has at most so many classes, kept or not.
    pub classes: u64,
    /// The sum of the squares of the sizes of all classes, kept or not, is at least this at every node.
    pub squares: u128,
    /// No class of fewer rows is kept.
    pub min_size: u64,
    /// No class of more rows fails.
    pub max_failing: u64,
}

impl Interval<'_> {
    /// n, the rows of the table.
    pub fn rows(&self) -> u64 {
        self.table.total_rows()
    }

    /// The most classes that a node of the interval can keep.
    pub fn kept_classes(&self) -> u64 {
        self.classes.min((self.rows() - self.suppressed) / self.min_size.max(1))
    }
}

/// A row of [`LOSSES`]: the measure itself, which has no parameters.
pub type LossRow = &'static dyn LossMeasure;

/// All loss measures.
pub const LOSSES: &[LossRow] = &[
    &granularity::Granularity,
    &granularity_mean::GranularityMean,
    &height::Height,
    &relative_height::RelativeHeight,
    &precision_loss::PrecisionLoss,
    &discernibility::Discernibility,
    &discernibility_star::DiscernibilityStar,
    &average_class_size::AverageClassSize,
    &non_uniform_entropy::NonUniformEntropy,
    &classification_metric::ClassificationMetric,
    &distinct_tuples::DistinctTuples,
    &suppressed_rows::SuppressedRows,
];

/// How easily a person is found: smaller is better. `None` for a table without individuals.
pub trait RiskMeasure: Debug + Send + Sync {
    /// The row's documentation.
    fn doc(&self) -> &'static Doc;

    /// The risk of a table whose classes have these sizes.
    fn value(&self, sizes: &ClassSizes) -> Option<f64>;
}

/// A row of [`RISKS`].
pub struct RiskRow {
    /// Name and documentation.
    pub doc: &'static Doc,
    /// Whether it is a share, not a count.
    pub is_share: bool,
    /// The names of its constants in the order of a call.
    pub parameters: &'static [&'static str],
    /// What the constants are when nobody says them.
    pub defaults: &'static [crate::decimal::Decimal],
    /// Makes the measure; constants are validated here.
    pub make: fn(&[crate::decimal::Decimal]) -> crate::error::Result<Box<dyn RiskMeasure>>,
}

/// All risk measures.
pub const RISKS: &[RiskRow] = &[
    prosecutor_risk_max::ROW,
    prosecutor_risk_mean::ROW,
    share_at_risk::ROW,
    expected_reidentifications::ROW,
    sample_uniqueness::ROW,
];

/// A bound that went through other roundings than the loss, below any of their errors.
fn rounded_down(bound: f64) -> f64 {
    bound - bound.abs() * 1e-12
}
