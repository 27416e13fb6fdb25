//! Methods: which recoding?
//!
//! A method looks at the class table only, never at rows, and returns an [`Outcome`]: the best nodes it found
//! and whether they are proven best. Each row of [`METHODS`] names one.

pub mod lattice;

use std::ops::RangeInclusive;

use crate::class::{ClassTable, EvaluatedNode};
use crate::doc::{Doc, find};
use crate::error::{Error, Result};
use crate::measure::LossMeasure;
use crate::model::Requirement;

/// A question to a method.
pub struct Problem<'a> {
    /// The data.
    pub table: &'a ClassTable,
    /// What every class must hold.
    pub requirements: &'a [Requirement],
    /// What to minimize.
    pub objective: &'a dyn LossMeasure,
    /// L, how many individuals may be suppressed: distinct ones with a suppressed row, or rows where none are counted.
    pub limit: u64,
    /// The allowed levels of each quasi-identifier.
    pub ranges: &'a [RangeInclusive<usize>],
    /// How many of the best nodes to return, at least 1.
    pub top: usize,
    /// When a method that need not finish gives up.
    pub effort: Effort,
    /// How many threads may search.
    pub threads: usize,
    /// Who watches, and may stop the search.
    pub watch: &'a dyn Watch,
}

/// How much a method that need not finish may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// So many seconds of wall time.
    Seconds(u64),
    /// So many evaluated nodes, and up to three more in a large table, where they are taken four at a time; the
    /// answer is the same each time.
    Nodes(u64),
}

impl Default for Effort {
    fn default() -> Self {
        Self::Seconds(30)
    }
}

/// Watches a search.
pub trait Watch: Sync {
    /// `done` of at most `total` nodes are decided.
    fn progress(&self, _done: u64, _total: u64) {}

    /// Whether to give up.
    fn stopped(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// An anonymous node that a method found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// One level per quasi-identifier, in policy order.
    pub levels: Vec<usize>,
    /// The objective there.
    pub loss: f64,
    /// S, the rows of failing classes.
    pub suppressed_rows: u64,
    /// The individuals with a row in a failing class; rows where none are counted.
    pub suppressed_individuals: u64,
    /// The kept classes.
    pub classes: u64,
    /// The size of the smallest kept class, `None` when nothing is kept.
    pub min_class: Option<u64>,
}

impl Found {
    /// What is remembered of a judged node.
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

    /// The order of preference: loss, then the sum of levels, then the levels in policy order.
    pub fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let height = |f: &Self| f.levels.iter().sum::<usize>();
        (self.loss.total_cmp(&other.loss))
            .then_with(|| height(self).cmp(&height(other)))
            .then_with(|| self.levels.cmp(&other.levels))
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The best anonymous nodes, best first; none when no node is anonymous.
    pub best: Vec<Found>,
    /// All nodes of the lattice within the allowed levels.
    pub nodes: u64,
    /// The nodes whose classes were computed.
    pub evaluated: u64,
    /// Whether it is proven that no node is better than these.
    pub proven: bool,
    /// No anonymous node loses less; `None` when it is proven that there is none.
    pub bound: Option<f64>,
}

/// A search over recodings.
pub trait Method: Sync {
    /// The row's documentation.
    fn doc(&self) -> &'static Doc;

    /// Searches.
    ///
    /// # Errors
    /// A data error when memory runs out, [`Error::interrupted`] when the watcher stops it.
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome>;
}

/// A row of [`METHODS`]: the method itself, which has no parameters.
pub type MethodRow = &'static dyn Method;

/// All methods.
pub const METHODS: &[MethodRow] =
    &[&lattice::exhaustive::Exhaustive, &lattice::optimal::Optimal, &lattice::anytime::Anytime];

/// In a lattice of fewer nodes than these, all are visited sooner than a bound is made.
const FEW: usize = 64;

/// The method that a policy names; `auto` is the cheaper of `exhaustive` and `optimal`, which both prove their
/// answer.
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
        .map_err(|valid| Error::policy(format!("there is no method `{name}`; {valid}, auto")))?;
    Ok(*row)
}
