//! `exhaustive`: every node of the lattice, each rolled up from its neighbour one level below.
//!
//! The lattice is walked depth first, column by column, so that at most one set of classes per column is
//! held and every node is one roll-up from a node that differs in one level.
//!
//! # Contract
//! Proven best for every model and every loss measure; the cost is one roll-up a node. The oracle of the
//! other lattice methods.

use super::{Best, count_nodes};
use crate::class::{Classes, Judged};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::method::{Found, Method, Outcome, Problem, RecodingKind};

/// See the [module](self).
#[derive(Debug, Clone, Copy)]
pub struct Exhaustive;

impl Method for Exhaustive {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "exhaustive",
            summary: "judges every node; proven best for every model and measure",
            parameters: "",
            example: "method = \"exhaustive\"",
            paper: None,
        }
    }

    fn recoding(&self) -> RecodingKind {
        RecodingKind::Levels
    }

    fn proves(&self, _problem: &Problem<'_>) -> Result<(), String> {
        Ok(())
    }

    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let mut best = Best::new(problem.top);
        let nodes = count_nodes(problem)?;
        let evaluated = for_every_node(problem, &mut |node| {
            if node.suppressed_rows() <= problem.limit {
                best.offer(Found::new(node, problem.objective));
            }
        })?;
        Ok(Outcome { best: best.found, nodes, evaluated, proven: true })
    }
}

/// Judges every allowed node of the lattice and shows it to `see`; returns how many there were.
///
/// # Errors
/// Those of [`Method::search`].
pub fn for_every_node(problem: &Problem<'_>, see: &mut dyn FnMut(&Judged<'_>)) -> Result<u64> {
    let lowest: Vec<usize> = problem.ranges.iter().map(|range| *range.start()).collect();
    let start = problem.table.roll_up(problem.table.base(), &vec![0; lowest.len()], &lowest)?;
    let mut walk = Walk { problem, levels: lowest, see, seen: 0, total: count_nodes(problem)? };
    walk.column(0, &start)?;
    Ok(walk.seen)
}

struct Walk<'a> {
    problem: &'a Problem<'a>,
    levels: Vec<usize>,
    see: &'a mut dyn FnMut(&Judged<'_>),
    seen: u64,
    total: u64,
}

impl Walk<'_> {
    /// Walks all levels of `column` and of the columns behind it, from `classes` at the lowest of these.
    fn column(&mut self, column: usize, classes: &Classes) -> Result<()> {
        let Some(range) = self.problem.ranges.get(column) else {
            if self.problem.watch.stopped() {
                return Err(Error::interrupted());
            }
            (self.see)(&Judged::new(self.problem.table, &self.levels, classes, self.problem.models));
            self.seen += 1;
            self.problem.watch.progress(self.seen, self.total);
            return Ok(());
        };
        self.column(column + 1, classes)?;
        let mut rolled: Option<Classes> = None;
        for level in *range.start() + 1..=*range.end() {
            let finer = self.levels.clone();
            self.levels[column] = level;
            let next =
                self.problem.table.roll_up(rolled.as_ref().unwrap_or(classes), &finer, &self.levels)?;
            self.column(column + 1, &next)?;
            rolled = Some(next);
        }
        self.levels[column] = *range.start();
        Ok(())
    }
}
