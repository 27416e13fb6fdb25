//! Methods that choose one level per column: full-domain generalization.

pub mod anytime;
pub mod exhaustive;
pub mod minimal;
pub mod optimal;

mod branch_and_bound;
mod class_cache;
mod evaluate;

use std::cmp::Ordering;

use super::{Found, Problem};
use crate::error::{Error, Result};

/// The most nodes that are visited one by one.
const MAX_NODES: u64 = 2_000_000;

/// Counts the nodes within the allowed levels; returns `u64::MAX` if the number does not fit.
fn count_nodes(problem: &Problem<'_>) -> u64 {
    problem.ranges.iter().fold(1, |product, range| product.saturating_mul(range.clone().count() as u64))
}

/// Counts the nodes for a search that visits all of them.
///
/// # Errors
/// A policy error when there are too many.
fn count_all_nodes(problem: &Problem<'_>) -> Result<u64> {
    match count_nodes(problem) {
        nodes @ ..=MAX_NODES => Ok(nodes),
        _ => Err(Error::policy(format!(
            "the lattice has more than {MAX_NODES} nodes, too many to visit: narrow it with min_level and \
             max_level"
        ))),
    }
}

/// Returns whether `low` is nowhere above `high`.
fn is_below(low: &[usize], high: &[usize]) -> bool {
    low.iter().zip(high).all(|(low, high)| low <= high)
}

fn height(levels: &[usize]) -> usize {
    levels.iter().sum()
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
mod tests {
    use super::*;
    use crate::class::tests::samarati;
    use crate::measure::LOSSES;
    use crate::method::{Effort, METHODS, Outcome};
    use crate::model::{Needs, Requirement, k_anonymity::KAnonymity};
    use crate::progress::{CancelToken, Silent};

    fn search_all(k: u64, limit: u64, top: usize) -> Vec<(&'static str, Vec<Outcome>)> {
        let table = samarati();
        let requirements = [Requirement::of_sizes(KAnonymity::new(k).unwrap())];
        let ranges: Vec<_> = table.heights().into_iter().map(|h| 0..=h).collect();
        LOSSES
            .iter()
            .filter(|objective| objective.needs() == Needs::Size)
            .map(|objective| {
                let problem = Problem {
                    table: &table,
                    requirements: &requirements,
                    objective: *objective,
                    limit,
                    ranges: &ranges,
                    top,
                    effort: Effort::Nodes(1_000),
                    threads: 2,
                    progress: &Silent,
                    stop: &CancelToken::default(),
                };
                (objective.doc().name, METHODS.iter().map(|m| m.search(&problem).unwrap()).collect())
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
                            assert_eq!((outcome.nodes, outcome.proven), (8, true), "{text}");
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
