//! `local`: full-domain generalization of what holds, then again of the rows that were suppressed,
//! until nothing is left (local recoding as in ARX).
//!
//! Each round searches the lattice for the rows that are left, as `anytime` within 1,000 nodes
//! (under `best` within its effort in nodes) and with any number of them suppressed. The classes
//! that hold are kept, and the others are the rows of the next round. If a round keeps nothing and
//! its rows are more than the limit allows to suppress, the classes of the last round are taken
//! back, then those of the round before it, until a node within the limit is found for the rows
//! that are left. There are at most 64 rounds.
//!
//! # Contract
//! Each class is one of a node of the lattice among the rows of its round, and shows the finest
//! regions around its values; under `[output] ends = "cuts"` the labels of the node. Not proven
//! best. Like that of `auto`, the choice of levels looks at the rows that the models suppress, and
//! so at sensitive values where a model does. A `max_level` holds in every round, but an interval
//! from the least to the greatest of all released values is written `*`; a `min_level` is refused,
//! because regions may be finer. Regions of different classes may overlap. The same bytes for any
//! number of threads.

use super::nodes::Node;
use super::{Row, found};
use crate::class::{Held, Union};
use crate::doc::Doc;
use crate::error::Result;
use crate::method::lattice::{Effort, Options, anytime::Anytime};
use crate::method::{Method, Outcome, Problem, best};
use crate::papers;
use crate::progress::{Phase, Silent};

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "local",
        summary: "levels for the rows whose classes hold, then other levels for the rest, and so on",
        parameters: "",
        example: "method = \"local\"",
        paper: Some(papers::PRASSER_2020),
    },
    parameters: &[],
    keeps_max_level: true,
    shows_cuts: true,
    make: |_, options| Ok(Box::new(Local { options: options.clone() })),
};

/// Rows that are left after so many rounds are suppressed, or recoded with those of the last rounds.
const MOST_ROUNDS: usize = 64;

/// The method that the [module](self) describes.
struct Local {
    options: Options,
}

/// The rows that a round kept, by class, and the levels of its node.
struct Round {
    levels: Vec<usize>,
    kept: Vec<Vec<u32>>,
}

impl Local {
    /// Recodes base classes by one node that suppresses at most `limit`; also returns those that
    /// are left. `None` if there is no such node.
    fn round(
        &self,
        problem: &Problem<'_>,
        base: &[u32],
        limit: u64,
        evaluated: &mut u64,
    ) -> Result<Option<(Round, Vec<u32>)>> {
        let is_all = base.len() == problem.table.base().len();
        let only = if is_all { None } else { Some(problem.table.only(base)?) };
        let table = only.as_ref().unwrap_or(problem.table);
        let effort = match self.options.effort {
            Some(Effort::Nodes(nodes)) => Effort::Nodes(nodes),
            _ => best::EFFORT,
        };
        let anytime = Anytime { options: Options { top: 1, effort: Some(effort), ..self.options.clone() } };
        let outcome = anytime.search(&Problem { table, limit, progress: &Silent, ..*problem })?;
        *evaluated += outcome.evaluated;
        let best = outcome.best.into_iter().next();
        let Some(levels) = best.and_then(|best| best.recoding.levels().map(<[usize]>::to_vec)) else {
            return Ok(None);
        };
        let mut union = Union::new(problem.table, problem.requirements)?;
        let classes = Node::new(problem.table, &levels, problem.ends)?.classes(base.to_vec())?;
        let (kept, left): (Vec<Vec<u32>>, Vec<Vec<u32>>) =
            classes.into_iter().partition(|class| union.holds(class));
        let mut left = left.concat();
        left.sort_unstable();
        Ok(Some((Round { levels, kept }, left)))
    }
}

impl Method for Local {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let base = problem.table.base();
        let mut held = Held::new(problem.table.budget());
        // Its number in the rows that are left, before and after a round, and in its class.
        held.at_least(base.len() * 3 * size_of::<u32>())?;
        problem.progress.begin(Phase::Search, base.len() as u64);
        let mut left: Vec<u32> = (0u32..).take(base.len()).collect();
        let (mut rounds, mut evaluated) = (Vec::new(), 0);
        while !left.is_empty() && rounds.len() < MOST_ROUNDS {
            let round = self.round(problem, &left, u64::MAX, &mut evaluated)?;
            let Some((round, rest)) = round.filter(|(round, _)| !round.kept.is_empty()) else { break };
            rounds.push(round);
            left = rest;
            problem.progress.done((base.len() - left.len()) as u64);
        }
        while base.size_of(&left) > problem.limit {
            // Without a round, all rows are searched once more.
            let last: Option<Round> = rounds.pop();
            let is_first = rounds.is_empty();
            left.extend(last.into_iter().flat_map(|round| round.kept).flatten());
            left.sort_unstable();
            if let Some((round, _)) = self.round(problem, &left, problem.limit, &mut evaluated)? {
                rounds.push(round);
                break;
            }
            if is_first {
                break;
            }
        }
        let mut parts = Vec::new();
        for Round { levels, kept } in rounds {
            let node = Node::new(problem.table, &levels, problem.ends)?;
            for class in kept {
                parts.push(node.part(class)?);
            }
        }
        found(problem, &self.options, parts, evaluated)
    }
}
