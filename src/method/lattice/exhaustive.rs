//! `exhaustive`: every node of the lattice, each rolled up from its neighbour one level below.
//!
//! The lattice is walked depth first, column by column, so that at most one set of classes per
//! column is held and every node is one roll-up away from a node that differs in one level. The
//! levels of the first column are walked in parallel.
//!
//! # Contract
//! Proven best for every model and every loss measure, at the cost of one roll-up per node. It is
//! the oracle of the other lattice methods.

use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Best, Found, Lattice, Options, Row};
use crate::class::{Classes, EvaluatedNode, Scratch};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::method::{Method, Outcome, Problem};

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "exhaustive",
        summary: "evaluates every node; proven best for every model and measure",
        parameters: "",
        example: "method = \"exhaustive\"",
        paper: None,
    },
    parameters: &[],
    takes_effort: false,
    check: |_, _| Ok(()),
    make: |_, options| Ok(Box::new(Exhaustive { options })),
};

/// The method that the [module](self) describes.
#[derive(Debug, Clone)]
pub struct Exhaustive {
    /// The part of the lattice to search.
    pub options: Options,
}

impl Method for Exhaustive {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let options = &self.options;
        let nodes = options.all_nodes()?;
        let first = options.ranges.first().cloned().unwrap_or(0..=0);
        let (levels, seen) = (Mutex::new(first), AtomicU64::new(0));
        let next = || levels.lock().ok().and_then(|mut levels| levels.next());
        let search = || -> Result<Best> {
            let mut best = Best::new(options.top);
            while let Some(level) = next() {
                let mut ranges: Vec<RangeInclusive<usize>> = options.ranges.clone();
                ranges[0] = level..=level;
                walk(problem, &ranges, &mut |node| {
                    if node.is_anonymous(problem.limit) {
                        best.offer(Found::new(node, problem.objective));
                    }
                    let seen = seen.fetch_add(1, Ordering::Relaxed) + 1;
                    problem.progress.done(seen);
                })?;
            }
            Ok(best)
        };
        let found: Vec<Result<Best>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..problem.threads.max(1)).map(|_| scope.spawn(search)).collect();
            let failed = || Err(Error::internal("exhaustive search: a thread panicked"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
        });
        let mut best = Best::new(options.top);
        for one in found {
            one?.found.into_iter().for_each(|node| best.offer(node));
        }
        let bound = best.found.first().map(|found| found.loss);
        let evaluated = seen.into_inner();
        Ok(Outcome { best: best.candidates(), nodes: Some(nodes), evaluated, proven: true, bound })
    }
}

/// Evaluates every allowed node of the lattice, passes it to `see`, and returns the number of
/// nodes.
///
/// # Errors
/// The errors of [`Method::search`]; a policy error for more than two million nodes.
pub fn for_every_node(lattice: Lattice<'_>, see: &mut dyn FnMut(&EvaluatedNode<'_>)) -> Result<u64> {
    let nodes = lattice.options.all_nodes()?;
    walk(lattice.problem, &lattice.options.ranges, see)?;
    Ok(nodes)
}

fn walk(
    problem: &Problem<'_>,
    ranges: &[RangeInclusive<usize>],
    see: &mut dyn FnMut(&EvaluatedNode<'_>),
) -> Result<()> {
    let lowest: Vec<usize> = ranges.iter().map(|range| *range.start()).collect();
    let start = problem.table.roll_up(problem.table.base(), &vec![0; lowest.len()], &lowest)?;
    let scratch = problem.table.scratch();
    Walk { problem, ranges, levels: lowest, see, scratch }.column(0, &start)
}

struct Walk<'a> {
    problem: &'a Problem<'a>,
    ranges: &'a [RangeInclusive<usize>],
    levels: Vec<usize>,
    see: &'a mut dyn FnMut(&EvaluatedNode<'_>),
    scratch: Scratch,
}

impl Walk<'_> {
    /// Walks all levels of `column` and of the columns after it, from `classes` at their lowest
    /// levels.
    fn column(&mut self, column: usize, classes: &Classes) -> Result<()> {
        let Some(range) = self.ranges.get(column) else {
            self.problem.stop.check()?;
            (self.see)(&EvaluatedNode::new(
                self.problem.table,
                &self.levels,
                classes,
                self.problem.requirements,
            )?);
            return Ok(());
        };
        self.column(column + 1, classes)?;
        let mut rolled: Option<Classes> = None;
        for level in *range.start() + 1..=*range.end() {
            let finer = self.levels.clone();
            self.levels[column] = level;
            let source = rolled.as_ref().unwrap_or(classes);
            let table = self.problem.table;
            let next = table.roll_up_at_most(source, &finer, &self.levels, usize::MAX, &mut self.scratch)?;
            let next =
                next.ok_or_else(|| Error::internal("exhaustive search: an unbounded roll-up hit a bound"))?;
            self.column(column + 1, &next)?;
            rolled = Some(next);
        }
        self.levels[column] = *range.start();
        Ok(())
    }
}
