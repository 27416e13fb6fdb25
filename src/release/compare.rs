//! The methods compared on the table at hand.

use std::time::{Duration, Instant};

use crate::class::ClassTable;
use crate::engine::Run;
use crate::error::{Kind, Result};
use crate::method::{Candidate, MethodSpec, is_partition, variants};
use crate::policy::Policy;
use crate::release::search::search_by;

/// A lattice of more nodes is searched by `anytime`, within the policy's effort.
const MANY: u64 = 100_000;

/// A method that was tried.
#[derive(Debug)]
pub struct Tried {
    /// The method.
    pub method: MethodSpec,
    /// What came of it.
    pub result: Attempt,
}

/// What came of a method.
#[derive(Debug)]
pub enum Attempt {
    /// It found a recoding.
    Found {
        /// The best one.
        best: Candidate,
        /// The nodes or cuts that were evaluated.
        steps: u64,
        /// Whether no recoding of its kind loses less.
        proven: bool,
        /// The time that the search took.
        time: Duration,
    },
    /// It found nothing within the policy.
    Nothing,
    /// The policy says something that the method cannot do: the reason.
    DoesNotApply(String),
}

/// Searches by every method that applies; returns them by loss, then those that found nothing or do not apply.
///
/// # Errors
/// A data error when memory runs out, an interruption.
pub fn compare(run: &Run<'_>, policy: &Policy, classes: &ClassTable) -> Result<Vec<Tried>> {
    let nodes =
        policy.ranges().into_iter().fold(1u64, |nodes, range| nodes.saturating_mul(range.count() as u64));
    let mut all = Vec::new();
    for mut method in variants() {
        if !is_partition(&method.name) {
            if !is_partition(&policy.method.name) {
                method = policy.method.clone();
            } else if nodes > MANY {
                method.name = "anytime".into();
            }
        }
        let begin = Instant::now();
        let result = match search_by(run, policy, &method, classes, 1) {
            Ok((_, outcome)) => {
                outcome.best.into_iter().next().map_or(Attempt::Nothing, |best| Attempt::Found {
                    best,
                    steps: outcome.evaluated,
                    proven: outcome.proven,
                    time: begin.elapsed(),
                })
            }
            Err(error) if error.kind() == Kind::Policy => Attempt::DoesNotApply(error.to_string()),
            Err(error) => return Err(error),
        };
        all.push(Tried { method, result });
    }
    let loss = |tried: &Tried| match &tried.result {
        Attempt::Found { best, .. } => best.loss,
        Attempt::Nothing | Attempt::DoesNotApply(_) => f64::INFINITY,
    };
    // Stable: equal losses stay in the order of the methods.
    all.sort_by(|a, b| loss(a).total_cmp(&loss(b)));
    Ok(all)
}
