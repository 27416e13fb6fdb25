//! Methods that choose one level per column: full-domain generalization.

pub mod exhaustive;
pub mod optimal;

use super::{Found, Problem};
use crate::error::{Error, Result};

/// More nodes than these are not enumerated.
const MAX_NODES: u64 = 2_000_000;

/// The number of nodes within the allowed levels.
///
/// # Errors
/// A policy error when there are too many to enumerate.
fn count_nodes(problem: &Problem<'_>) -> Result<u64> {
    problem
        .ranges
        .iter()
        .try_fold(1u64, |product, range| product.checked_mul(range.clone().count() as u64))
        .filter(|nodes| *nodes <= MAX_NODES)
        .ok_or_else(|| {
            Error::policy(format!(
                "the lattice has more than {MAX_NODES} nodes: narrow it with min_level and max_level"
            ))
        })
}

/// The best nodes so far, best first, never more than asked for.
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

    /// A loss above this cannot enter any more.
    fn cutoff(&self) -> f64 {
        if self.found.len() < self.top {
            f64::INFINITY
        } else {
            self.found.last().map_or(f64::INFINITY, |f| f.loss)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::tests::samarati;
    use crate::measure::LOSSES;
    use crate::method::{METHODS, Outcome, Unwatched};
    use crate::model::{ClassModel, k_anonymity::KAnonymity};

    fn search_all(k: u64, limit: u64, top: usize) -> Vec<(&'static str, Outcome, Outcome)> {
        let table = samarati();
        let models: Vec<Box<dyn ClassModel>> = vec![Box::new(KAnonymity::new(k).unwrap())];
        let ranges: Vec<_> = table.heights().into_iter().map(|h| 0..=h).collect();
        LOSSES
            .iter()
            .map(|objective| {
                let problem = Problem {
                    table: &table,
                    models: &models,
                    objective: *objective,
                    limit,
                    ranges: &ranges,
                    top,
                    watch: &Unwatched,
                };
                let outcomes: Vec<_> = METHODS.iter().map(|m| m.search(&problem).unwrap()).collect();
                (objective.doc().name, outcomes[0].clone(), outcomes[1].clone())
            })
            .collect()
    }

    #[test]
    fn optimal_finds_what_exhaustive_finds() {
        for k in [1, 2, 3, 4, 7, 12, 13] {
            for limit in [0, 1, 4, 12] {
                for top in [1, 3, 100] {
                    for (objective, exhaustive, optimal) in search_all(k, limit, top) {
                        assert_eq!(
                            exhaustive.best, optimal.best,
                            "k {k}, limit {limit}, top {top}, {objective}"
                        );
                        assert_eq!((exhaustive.nodes, exhaustive.evaluated), (8, 8));
                        assert!(optimal.evaluated <= 8);
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_is_found_when_k_exceeds_the_rows() {
        for (_, exhaustive, _) in search_all(13, 11, 1) {
            assert!(exhaustive.best.is_empty());
        }
    }
}
