//! Methods: the searches that choose a recoding.
//!
//! A method only looks at the class table, never at rows, and returns an [`Outcome`]: the best
//! nodes it found and whether they are proven best. Each row of [`METHODS`] names one method.

pub mod lattice;

use std::ops::RangeInclusive;

use crate::class::{ClassTable, EvaluatedNode};
use crate::doc::{Doc, find};
use crate::error::{Error, Result};
use crate::measure::LossMeasure;
use crate::model::Requirement;
use crate::progress::{CancelToken, Progress};

/// The problem that a method solves.
pub struct Problem<'a> {
    /// The classes of the data.
    pub table: &'a ClassTable,
    /// The models that every class must satisfy.
    pub requirements: &'a [Requirement],
    /// The loss to minimize.
    pub objective: &'a dyn LossMeasure,
    /// L, how many individuals may be suppressed: distinct ones with a suppressed row, or rows if
    /// none are counted.
    pub limit: u64,
    /// The allowed levels of each quasi-identifier.
    pub ranges: &'a [RangeInclusive<usize>],
    /// How many of the best nodes to return, at least 1.
    pub top: usize,
    /// The effort after which a method that need not finish gives up.
    pub effort: Effort,
    /// The number of threads that may search.
    pub threads: usize,
    /// The receiver of the number of nodes that are decided.
    pub progress: &'a dyn Progress,
    /// The flag that stops the search.
    pub stop: &'a CancelToken,
}

/// The effort that a method which need not finish may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Seconds of wall time.
    Seconds(u64),
    /// Evaluated nodes. A large table is searched four nodes at a time, so up to three more are
    /// evaluated; the answer is the same each time.
    Nodes(u64),
}

impl Default for Effort {
    fn default() -> Self {
        Self::Seconds(30)
    }
}

/// An anonymous node that a method found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// One level per quasi-identifier, in policy order.
    pub levels: Vec<usize>,
    /// The objective's value at the node.
    pub loss: f64,
    /// S, the number of rows in failing classes.
    pub suppressed_rows: u64,
    /// The number of individuals with a row in a failing class; rows if none are counted.
    pub suppressed_individuals: u64,
    /// The number of kept classes.
    pub classes: u64,
    /// The size of the smallest kept class; `None` if no class is kept.
    pub min_class: Option<u64>,
}

impl Found {
    /// Summarizes an evaluated node.
    pub fn new(node: &EvaluatedNode<'_>, objective: &dyn LossMeasure) -> Self {
        Self {
            levels: node.levels().to_vec(),
            loss: objective.value(node),
            suppressed_rows: node.suppressed_rows(),
            suppressed_individuals: node.suppressed_individuals(),
            classes: node.kept_classes(),
            min_class: node.min_class(),
        }
    }

    /// Compares by preference: loss, then the sum of levels, then the levels in policy order.
    pub fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let height = |f: &Self| f.levels.iter().sum::<usize>();
        (self.loss.total_cmp(&other.loss))
            .then_with(|| height(self).cmp(&height(other)))
            .then_with(|| self.levels.cmp(&other.levels))
    }
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The best anonymous nodes, best first; empty if no node is anonymous.
    pub best: Vec<Found>,
    /// The number of nodes of the lattice within the allowed levels.
    pub nodes: u64,
    /// The number of nodes whose classes were computed far enough to decide whether they are
    /// anonymous.
    pub evaluated: u64,
    /// Whether these nodes are proven best.
    pub proven: bool,
    /// A lower bound of every anonymous node's loss; `None` if it is proven that there is no such
    /// node.
    pub bound: Option<f64>,
}

/// A search over recodings.
pub trait Method: Sync {
    /// Returns the method's documentation.
    fn doc(&self) -> &'static Doc;

    /// Searches the lattice for the best anonymous nodes.
    ///
    /// # Errors
    /// A data error when memory runs out, [`Error::interrupted`] when it was stopped.
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome>;
}

/// A row of [`METHODS`]: the method itself, which has no parameters.
pub type MethodRow = &'static dyn Method;

/// All methods.
pub const METHODS: &[MethodRow] =
    &[&lattice::exhaustive::Exhaustive, &lattice::optimal::Optimal, &lattice::anytime::Anytime];

/// In a lattice of fewer nodes, visiting all of them is faster than making a bound.
const FEW: usize = 64;

/// Returns the method that a policy names; `auto` is the cheaper of `exhaustive` and `optimal`,
/// which both prove their answer.
///
/// # Errors
/// A policy error for an unknown name.
pub fn choose(name: &str, problem: &Problem<'_>) -> Result<MethodRow> {
    if name == "auto" {
        let nodes = problem.ranges.iter().fold(1usize, |n, range| n.saturating_mul(range.clone().count()));
        let few = nodes < FEW;
        return Ok(if few { &lattice::exhaustive::Exhaustive } else { &lattice::optimal::Optimal });
    }
    let row = find(METHODS, |row| row.doc(), name)
        .map_err(|valid| Error::policy(format!("unknown method `{name}`; {valid}, auto")))?;
    Ok(*row)
}
