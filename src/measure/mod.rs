//! Measures: what is lost, and what is at risk.
//!
//! Two traits, two tables. A [`LossMeasure`] judges a node of a search by what its release would lose
//! ([`LOSSES`]); a [`RiskMeasure`] judges a set of classes by how easily a person is found ([`RISKS`]).
//! Losses count rows and are computed from integers summed in a fixed order, so that a loss has the same
//! bits whatever the thread count.

pub mod granularity;
pub mod granularity_mean;
pub mod height;
pub mod suppressed_rows;

pub mod expected_reidentifications;
pub mod prosecutor_risk_max;
pub mod prosecutor_risk_mean;
pub mod sample_uniqueness;
pub mod share_at_risk;

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::class::{ClassTable, Judged};
use crate::doc::Doc;

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

    /// The loss of a judged node.
    fn value(&self, node: &Judged<'_>) -> f64;

    /// A number that the loss at the node `levels` cannot be below, from the levels alone.
    fn bound(&self, _table: &ClassTable, _levels: &[usize]) -> f64 {
        f64::NEG_INFINITY
    }
}

/// A row of [`LOSSES`]: the measure itself, which has no parameters.
pub type LossRow = &'static dyn LossMeasure;

/// All loss measures.
pub const LOSSES: &[LossRow] = &[
    &granularity::Granularity,
    &granularity_mean::GranularityMean,
    &height::Height,
    &suppressed_rows::SuppressedRows,
];

/// The sizes of a table's classes: how many classes have each size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassSizes(BTreeMap<u64, u64>);

impl ClassSizes {
    /// Counts one class.
    pub fn add(&mut self, size: u64) {
        *self.0.entry(size).or_default() += 1;
    }

    /// Size and number of classes of that size, ascending; classes without an individual are left out.
    pub fn histogram(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.0.iter().filter(|(size, _)| **size > 0).map(|(size, count)| (*size, *count))
    }

    /// The number of classes.
    pub fn classes(&self) -> u64 {
        self.histogram().map(|(_, count)| count).sum()
    }

    /// The number of individuals.
    pub fn individuals(&self) -> u64 {
        self.histogram().map(|(size, count)| size * count).sum()
    }

    /// The smallest class, k.
    pub fn min(&self) -> Option<u64> {
        self.histogram().next().map(|(size, _)| size)
    }

    /// The largest class.
    pub fn max(&self) -> Option<u64> {
        self.histogram().next_back().map(|(size, _)| size)
    }
}

impl FromIterator<u64> for ClassSizes {
    fn from_iter<T: IntoIterator<Item = u64>>(sizes: T) -> Self {
        let mut all = Self::default();
        sizes.into_iter().for_each(|size| all.add(size));
        all
    }
}

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

/// `a / b` as the nearest float, 0 for 0/0.
#[expect(clippy::cast_precision_loss, reason = "the one place where counts become a share")]
pub fn ratio(a: u128, b: u128) -> f64 {
    if a == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// A number for JSON: whole ones without a point.
#[cfg(feature = "engine")]
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
pub(crate) fn plain_number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { (value as i64).into() } else { value.into() }
}
