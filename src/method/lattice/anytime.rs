//! `anytime`: the best node found within a given effort, for lattices too large to finish.
//!
//! 1. Greedy: go up from the lowest levels, always in the column with the most labels, to the first
//!    anonymous node, as [`datafly`] does.
//! 2. Descent: while a node with one column one level lower, or also another column one level
//!    higher, is anonymous and loses less, go there.
//! 3. Branch and bound as in `optimal`, with a descent from every better node found, until the
//!    effort is spent.
//!
//! # Contract
//! Never worse than the greedy node, once that is found. The outcome states whether it is proven
//! best and, if not, a bound below which no anonymous node loses. An effort in nodes evaluates the
//! same nodes each time; under an effort in seconds the answer may differ from run to run.

use std::time::{Duration, Instant};

use super::branch_and_bound::Search;
use super::evaluate::Purpose;
use super::{Effort, Lattice, Options, Row, datafly};
use crate::doc::Doc;
use crate::error::Result;
use crate::method::{Method, Outcome, Problem};
use crate::papers;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "anytime",
        summary: "the best node found within an effort of seconds or nodes, with a bound",
        parameters: "",
        example: "method = \"anytime\"",
        paper: Some(papers::SWEENEY_1998),
    },
    parameters: &[],
    takes_effort: true,
    check: |_, _| Ok(()),
    make: |_, options| Ok(Box::new(Anytime { options })),
};

/// The method that the [module](self) describes.
#[derive(Debug, Clone)]
pub struct Anytime {
    /// The part of the lattice to search.
    pub options: Options,
}

impl Method for Anytime {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let begun = Instant::now();
        let mut enough = |evaluated: u64| match self.options.effort.unwrap_or_default() {
            Effort::Seconds(seconds) => begun.elapsed() >= Duration::from_secs(seconds),
            Effort::Nodes(nodes) => evaluated >= nodes,
        };
        let lattice = Lattice { problem, options: &self.options };
        let mut search = Search::new(lattice);
        datafly::climb(lattice, &mut search, &mut enough)?;
        loop {
            descend(lattice, &mut search, &mut enough)?;
            let before = search.best.found.first().cloned();
            search.run(true, &mut enough)?;
            if search.best.found.first() == before.as_ref() || enough(search.evaluated()) {
                return Ok(search.outcome());
            }
        }
    }
}

/// Goes from the best node to better neighbours as long as there are any.
fn descend(lattice: Lattice<'_>, search: &mut Search<'_>, enough: &mut dyn FnMut(u64) -> bool) -> Result<()> {
    while let Some(best) = search.best.found.first().cloned() {
        for neighbour in neighbours(lattice.options, &best.levels) {
            if enough(search.evaluated()) {
                return Ok(());
            }
            if !search.is_worse(&neighbour) {
                search.evaluate(std::slice::from_ref(&neighbour), Purpose::Verdict)?;
                if search.best.found.first() != Some(&best) {
                    break;
                }
            }
        }
        if search.best.found.first() == Some(&best) {
            break;
        }
    }
    Ok(())
}

/// Returns the nodes with one column one level lower, then those with another column one level
/// higher as well.
fn neighbours(options: &Options, levels: &[usize]) -> Vec<Vec<usize>> {
    let columns = || 0..levels.len();
    let lower: Vec<Vec<usize>> = columns()
        .filter(|column| levels[*column] > *options.ranges[*column].start())
        .map(|column| {
            let mut lower = levels.to_vec();
            lower[column] -= 1;
            lower
        })
        .collect();
    let mut all = lower.clone();
    for lower in lower {
        let higher = columns().filter(|column| {
            lower[*column] == levels[*column] && levels[*column] < *options.ranges[*column].end()
        });
        all.extend(higher.map(|column| {
            let mut swapped = lower.clone();
            swapped[column] += 1;
            swapped
        }));
    }
    all
}
