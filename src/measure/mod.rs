//! Measures: the loss and the risk of a release.
//!
//! There are two tables. A [`LossMeasure`] rates a recoding by how much its release would lose
//! ([`LOSSES`]); a [`RiskMeasure`] rates a set of classes by how easily an individual is found
//! ([`RISKS`]). Losses count rows and are computed from integers summed in a
//! fixed order, so a loss has the same bits whatever the number of threads.
//!
//! Losses that rate levels have no [`Loss`] for other recodings: the heights, the precision,
//! `discernibility_star`, which reads the failing classes, and the entropy, which reads the labels that
//! suppressed rows would have had. For all others one law holds: a node that is expressed as released classes
//! keeps and loses the same, to the bit.

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

pub mod utility;

use std::fmt::Debug;

use crate::class::{ClassSizes, ClassTable, EvaluatedNode, EvaluatedRecoding};
pub use crate::decimal::ratio;
use crate::doc::{Doc, OwnRows};
use crate::error::Result;
use crate::model::Needs;
use crate::parameter::{Parameter, Setting, Settings};

/// When a loss is guaranteed to grow going up the lattice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grows {
    /// Always.
    Always,
    /// Between nodes that suppress nothing.
    WithoutSuppression,
    /// Not in general.
    No,
}

/// A loss that can rate any recoding: it reads the sizes of classes, the values of the first sensitive
/// column, and how many leaves are shown.
pub trait Loss {
    /// Computes the loss of an evaluated recoding.
    fn of(&self, recoding: &dyn EvaluatedRecoding) -> f64;
}

/// A measure of how much a release loses, with what a search of the lattice needs: smaller is
/// better.
pub trait LossMeasure: Debug + Send + Sync {
    /// Returns the measure's documentation.
    fn doc(&self) -> &'static Doc;

    /// Returns when the loss grows with the levels.
    fn grows(&self) -> Grows;

    /// Returns the facts that the loss reads: sizes, or the values of the table's first sensitive
    /// column. Sizes by default.
    fn needs(&self) -> Needs {
        Needs::Size
    }

    /// Returns the measure as a [`Loss`]; `None` if it is defined for levels only.
    fn for_any_recoding(&self) -> Option<&dyn Loss>;

    /// Computes the loss of an evaluated node.
    fn value(&self, node: &EvaluatedNode<'_>) -> f64;

    /// Returns a lower bound, to the last bit, of the losses of the anonymous nodes in the
    /// interval. A search skips an interval whose bound is above the best loss.
    fn bound(&self, interval: &Interval<'_>) -> f64;

    /// Returns whether the bound reads `classes` or `squares` of an interval, which are costly to
    /// compute. By default it does not.
    fn counts_classes(&self) -> bool {
        false
    }
}

/// Facts about every anonymous node between a lowest node and the nodes above it: the input of a
/// bound.
#[derive(Debug, Clone, Copy)]
pub struct Interval<'a> {
    /// The table.
    #[doc(hidden)]
    pub table: &'a ClassTable,
    /// The levels of the lowest node.
    pub low: &'a [usize],
    /// Every node suppresses at least these rows.
    pub suppressed: u64,
    /// No anonymous node suppresses more rows.
    pub limit: u64,
    /// Every node has at most this many classes, kept or not.
    pub classes: u64,
    /// At every node the squared sizes of all classes, kept or not, sum to at least this.
    pub squares: u128,
    /// No class of fewer rows is kept.
    pub min_size: u64,
    /// No class of more rows fails.
    pub max_failing: u64,
}

impl Interval<'_> {
    /// Returns n, the number of rows of the table.
    pub fn rows(&self) -> u64 {
        self.table.total_rows()
    }

    /// Returns the largest number of classes that a node of the interval can keep.
    pub fn kept_classes(&self) -> u64 {
        self.classes.min((self.rows() - self.suppressed) / self.min_size.max(1))
    }
}

/// A row of [`LOSSES`], or a loss of the program's own: the measure itself, which has no parameters.
pub type LossRow = &'static dyn LossMeasure;

/// All loss measures of this crate.
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

/// The loss measures of the program's own.
static OWN: OwnRows<dyn LossMeasure> = OwnRows::none();

/// Returns the rows of [`LOSSES`], then the loss measures that the program has registered.
pub fn losses() -> impl Iterator<Item = LossRow> {
    LOSSES.iter().copied().chain(OWN.all())
}

/// Adds a loss measure of the program's own, which was checked.
pub(crate) fn add_loss(measure: impl LossMeasure + 'static) {
    OWN.add(Box::new(measure));
}

/// A measure of how easily an individual is found: smaller is better. `None` for a table without
/// individuals.
pub trait RiskMeasure: Debug + Send + Sync {
    /// Returns the measure's documentation.
    fn doc(&self) -> &'static Doc;

    /// Computes the risk of a table whose classes have these sizes.
    fn value(&self, sizes: &ClassSizes) -> Option<f64>;
}

/// A row of [`RISKS`].
pub struct RiskRow {
    /// Name and documentation.
    pub doc: &'static Doc,
    /// Whether the risk is a share rather than a count.
    pub is_share: bool,
    /// Its parameters, in the order of a call's arguments; each has a default.
    pub parameters: &'static [Parameter],
    /// Makes the measure.
    pub make: fn(&Settings) -> Result<Box<dyn RiskMeasure>>,
}

impl RiskRow {
    /// Makes the measure with parameters by their names; the others have their defaults.
    ///
    /// # Errors
    /// A policy error for a wrong or an unknown parameter.
    pub fn with(&self, given: &[(String, Setting)]) -> Result<Box<dyn RiskMeasure>> {
        (self.make)(&Settings::by_name(self.doc, self.parameters, given)?)
    }
}

/// All risk measures.
pub const RISKS: &[RiskRow] = &[
    prosecutor_risk_max::ROW,
    prosecutor_risk_mean::ROW,
    share_at_risk::ROW,
    expected_reidentifications::ROW,
    sample_uniqueness::ROW,
];

/// Lowers a bound that was rounded differently than the loss, by more than both rounding errors.
fn rounded_down(bound: f64) -> f64 {
    bound - bound.abs() * 1e-12
}
