//! Methods that choose one level per column: full-domain generalization.

pub mod anytime;
pub mod datafly;
pub mod exhaustive;
pub mod incognito;
pub mod minimal;
pub mod optimal;
pub mod samarati;
pub mod strategies;

mod branch_and_bound;
mod class_cache;
mod evaluate;

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use super::{Candidate, Method, Problem, Recoding};
use crate::class::EvaluatedNode;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::measure::LossMeasure;
use crate::model::{Merge, Requirement};
use crate::parameter::{Absent, Kind, Parameter, Setting, Settings};

/// The most nodes that are visited one by one.
const MAX_NODES: u64 = 2_000_000;

/// The part of a lattice to search, and how far.
#[derive(Debug, Clone)]
pub struct Options {
    /// The allowed levels of each quasi-identifier.
    pub ranges: Vec<RangeInclusive<usize>>,
    /// How many of the best nodes to return, at least 1.
    pub top: usize,
    /// The effort after which a method that need not finish gives up, if one is given.
    pub effort: Option<Effort>,
    /// The positions of the quasi-identifiers that all rows show at one level, whatever the method
    /// does with the others.
    pub global: Vec<usize>,
}

impl Options {
    /// Counts the nodes within the allowed levels; returns `u64::MAX` if the number does not fit.
    pub fn nodes(&self) -> u64 {
        self.ranges.iter().fold(1, |product, range| product.saturating_mul(range.clone().count() as u64))
    }

    /// Counts the nodes for a search that visits all of them.
    ///
    /// # Errors
    /// A policy error when there are too many.
    fn all_nodes(&self) -> Result<u64> {
        match self.nodes() {
            nodes @ ..=MAX_NODES => Ok(nodes),
            _ => Err(Error::policy(format!(
                "the lattice has more than {MAX_NODES} nodes, too many to visit: narrow it with min_level and \
                 max_level"
            ))),
        }
    }
}

/// A row of [`METHODS`](super::METHODS) for a method that searches the lattice.
pub struct Row {
    /// Name and documentation.
    pub doc: &'static Doc,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether a policy's effort bounds it; others run to completion.
    pub takes_effort: bool,
    /// Checks parameters that name quasi-identifiers or levels, when a policy is resolved.
    pub check: Check,
    /// Makes the method for a part of the lattice.
    pub make: fn(&Settings, Options) -> Result<Box<dyn Method>>,
}

/// Checks the settings of a method against the quasi-identifiers.
pub type Check = fn(&[(String, Setting)], &[Allowed<'_>]) -> Result<()>;

/// The name of a quasi-identifier, and its allowed levels.
pub type Allowed<'a> = (&'a str, &'a RangeInclusive<usize>);

impl Row {
    /// Makes the method with parameters by their names, for a part of the lattice.
    ///
    /// # Errors
    /// A policy error for a wrong, a missing or an unknown parameter.
    pub fn with(&self, given: &[(String, Setting)], options: Options) -> Result<Box<dyn Method>> {
        (self.make)(&Settings::by_name(self.doc, self.parameters, given)?, options)
    }
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

/// The parameters of an [`Effort`]; a policy sets exactly one.
pub const EFFORT: &[Parameter] = &[
    Parameter { name: "seconds", kind: Kind::Count, absent: Absent::Unset, summary: "wall time in seconds" },
    Parameter {
        name: "nodes",
        kind: Kind::Count,
        absent: Absent::Unset,
        summary: "how many nodes are evaluated",
    },
];

impl Effort {
    /// Makes the effort that a setting of one of [`EFFORT`] means.
    ///
    /// # Errors
    /// An internal error for another name, and for a setting that is no count.
    pub fn of(name: &str, setting: &Setting) -> Result<Self> {
        match (name, setting.number()?.to_u64()) {
            ("seconds", Some(seconds)) => Ok(Self::Seconds(seconds)),
            ("nodes", Some(nodes)) => Ok(Self::Nodes(nodes)),
            _ => Err(Error::internal(format!("effort: `{name}` is not set to a count"))),
        }
    }
}

impl Default for Effort {
    fn default() -> Self {
        Self::Seconds(30)
    }
}

/// A problem and the lattice to search for its answer.
#[derive(Clone, Copy)]
pub struct Lattice<'a> {
    /// The problem.
    pub problem: &'a Problem<'a>,
    /// The part of the lattice to search.
    pub options: &'a Options,
}

/// An anonymous node.
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
    pub fn compare(&self, other: &Self) -> Ordering {
        (self.loss.total_cmp(&other.loss))
            .then_with(|| height(&self.levels).cmp(&height(&other.levels)))
            .then_with(|| self.levels.cmp(&other.levels))
    }
}

impl From<Found> for Candidate {
    fn from(node: Found) -> Self {
        Self {
            recoding: Recoding::Levels(node.levels),
            loss: node.loss,
            suppressed_rows: node.suppressed_rows,
            suppressed_individuals: node.suppressed_individuals,
            classes: node.classes,
            min_class: node.min_class,
            by: None,
        }
    }
}

/// Returns whether `low` is nowhere above `high`.
fn is_below(low: &[usize], high: &[usize]) -> bool {
    low.iter().zip(high).all(|(low, high)| low <= high)
}

fn height(levels: &[usize]) -> usize {
    levels.iter().sum()
}

/// Returns a requirement under which a node above an anonymous one need not be anonymous, if there
/// is one.
fn lost_going_up<'a>(problem: &Problem<'a>) -> Option<&'a Requirement> {
    problem.requirements.iter().find(|requirement| match requirement.model.merge(problem.table.counted()) {
        Merge::Any => false,
        Merge::Both => problem.limit > 0,
        Merge::None => true,
    })
}

/// Checks that every node above an anonymous one is anonymous.
///
/// # Errors
/// A policy error that names the requirement which does not promise this, and what to use instead of
/// `method`.
fn check_survives_going_up(method: &str, problem: &Problem<'_>) -> Result<()> {
    let Some(requirement) = lost_going_up(problem) else { return Ok(()) };
    let text = requirement.text();
    Err(Error::policy(match requirement.model.merge(problem.table.counted()) {
        Merge::Both => format!(
            "`{method}` needs nodes above an anonymous one to be anonymous, and {text} promises that only if nothing is \
             suppressed; use method = \"optimal\", or suppression_limit = 0"
        ),
        _ => format!(
            "`{method}` needs nodes above an anonymous one to be anonymous, which {text} does not promise; use \
             method = \"optimal\""
        ),
    })
    .at("method"))
}

/// The best nodes so far, best first, at most as many as requested.
#[derive(Debug, Default)]
struct Best {
    found: Vec<Found>,
    top: usize,
}

impl Best {
    fn new(top: usize) -> Self {
        Self { found: Vec::new(), top: top.max(1) }
    }

    fn offer(&mut self, node: Found) {
        let at = self.found.partition_point(|known| known.compare(&node).is_lt());
        if at < self.top {
            self.found.insert(at, node);
            self.found.truncate(self.top);
        }
    }

    fn candidates(self) -> Vec<Candidate> {
        self.found.into_iter().map(Candidate::from).collect()
    }

    /// Returns whether a node can still enter that loses at least `bound` and is nowhere below
    /// `low`.
    fn can_enter(&self, bound: f64, low: &[usize]) -> bool {
        match self.found.last() {
            Some(last) if self.found.len() == self.top => {
                let by_height = || height(low).cmp(&height(&last.levels));
                let order = bound.total_cmp(&last.loss).then_with(by_height);
                order.then_with(|| low.cmp(&last.levels)) == Ordering::Less
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod classic_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::tests::samarati;
    use crate::generalize::Ends;
    use crate::measure::LOSSES;
    use crate::method::Outcome;
    use crate::model::{Needs, Requirement, k_anonymity::KAnonymity};
    use crate::progress::{CancelToken, Silent};

    fn search_all(k: u64, limit: u64, top: usize) -> Vec<(&'static str, Vec<Outcome>)> {
        let table = samarati();
        let requirements = [Requirement::of_sizes(KAnonymity::new(k).unwrap())];
        let ranges = table.heights().into_iter().map(|h| 0..=h).collect();
        let options = Options { ranges, top, effort: Some(Effort::Nodes(1_000)), global: Vec::new() };
        LOSSES
            .iter()
            .filter(|objective| objective.needs() == Needs::Size)
            .map(|objective| {
                let problem = Problem {
                    table: &table,
                    requirements: &requirements,
                    objective: *objective,
                    ends: Ends::Values,
                    limit,
                    threads: 2,
                    progress: &Silent,
                    stop: &CancelToken::default(),
                };
                let rows = [exhaustive::ROW, optimal::ROW, anytime::ROW, incognito::ROW];
                let all =
                    rows.iter().map(|row| row.with(&[], options.clone()).unwrap().search(&problem).unwrap());
                (objective.doc().name, all.collect())
            })
            .collect()
    }

    #[test]
    fn all_methods_find_the_same() {
        for k in [1, 2, 3, 4, 7, 12, 13] {
            for limit in [0, 1, 4, 12] {
                for top in [1, 3, 100] {
                    for (objective, outcomes) in search_all(k, limit, top) {
                        for outcome in &outcomes {
                            let text = format!("k {k}, limit {limit}, top {top}, {objective}");
                            assert_eq!(outcomes[0].best, outcome.best, "{text}");
                            assert_eq!((outcome.nodes, outcome.proven), (Some(8), true), "{text}");
                            assert!(outcome.evaluated <= 8, "{text}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_is_found_when_k_exceeds_the_rows() {
        for (_, outcomes) in search_all(13, 11, 1) {
            assert!(outcomes.iter().all(|outcome| outcome.best.is_empty() && outcome.proven));
        }
    }
}
