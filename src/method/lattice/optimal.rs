//! `optimal`: the best node, proven, from as few evaluated nodes as bounds and monotony allow.
//!
//! Nodes are taken in the order of the lower bound that the loss measure gives from the levels alone. When
//! the bound of the next node exceeds the loss of the best node found, no later node can be better. Each node
//! is decided by a binary search along a path upwards, as in Flash (Kohlmayer et al. 2012): with models that
//! survive any merging, the rows of failing classes never grow going up, so a node that suppresses too much
//! rules out all nodes below it. Unlike there, losses are not tagged: every anonymous node whose bound can
//! be best is evaluated.
//!
//! # Contract
//! Proven best for models with [`Merge::Any`]; other models are refused here, and `auto` then takes
//! `exhaustive`. Ties are decided as everywhere: loss, sum of levels, levels in policy order.

use std::collections::HashSet;

use super::{Best, count_nodes};
use crate::class::{ClassTable, Classes, Judged};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::method::{Found, Method, Outcome, Problem, RecodingKind};
use crate::model::Merge;
use crate::papers;

/// See the [module](self).
#[derive(Debug, Clone, Copy)]
pub struct Optimal;

/// Bounds and losses go through different roundings; a node is skipped only if its bound is above by more.
const ROUNDING: f64 = 1e-12;

impl Method for Optimal {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "optimal",
            summary: "proven best from few evaluated nodes, by bounds and monotony",
            parameters: "",
            example: "method = \"optimal\"",
            paper: Some(papers::KOHLMAYER_2012),
        }
    }

    fn recoding(&self) -> RecodingKind {
        RecodingKind::Levels
    }

    fn proves(&self, problem: &Problem<'_>) -> Result<(), String> {
        match problem.models.iter().find(|model| model.merge() != Merge::Any) {
            Some(model) => Err(format!("`{}` can fail again after merging classes", model.doc().name)),
            None => Ok(()),
        }
    }

    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        self.proves(problem).map_err(Error::policy)?;
        let nodes = count_nodes(problem)?;
        let mut search = Search {
            problem,
            finer: Finer::new(problem.table),
            best: Best::new(problem.top),
            refused: Vec::new(),
            anonymous: HashSet::new(),
            evaluated: 0,
        };
        for (done, (bound, levels)) in (1..).zip(in_order_of_bound(problem)) {
            if search.is_beyond(bound) {
                break;
            }
            search.decide(levels)?;
            problem.watch.progress(done, nodes);
        }
        Ok(Outcome { best: search.best.found, nodes, evaluated: search.evaluated, proven: true })
    }
}

/// What is known while nodes are decided.
struct Search<'a> {
    problem: &'a Problem<'a>,
    finer: Finer<'a>,
    best: Best,
    /// Nodes that suppress too much and are below no other such node.
    refused: Vec<Vec<usize>>,
    /// Evaluated nodes that do not.
    anonymous: HashSet<Vec<usize>>,
    evaluated: u64,
}

impl Search<'_> {
    /// Whether a node with this bound cannot be among the best.
    fn is_beyond(&self, bound: f64) -> bool {
        bound - ROUNDING * bound.abs().max(1.0) > self.best.cutoff()
    }

    /// Evaluates a node, or rules it out by a node above it: a binary search along one path upwards finds
    /// where it begins to be anonymous, and a node that is refused there rules out all below it.
    fn decide(&mut self, levels: Vec<usize>) -> Result<()> {
        if self.is_refused(&levels) || self.anonymous.contains(&levels) {
            return Ok(());
        }
        let path = self.path_from(levels);
        let (mut low, mut high) = (0, path.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.is_anonymous(&path[middle])? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(())
    }

    /// A node and nodes above it, each the successor with the least bound, as far as they can be best.
    fn path_from(&self, levels: Vec<usize>) -> Vec<Vec<usize>> {
        let mut path = vec![levels];
        while let Some(last) = path.last() {
            let above =
                self.problem.ranges.iter().enumerate().filter(|(column, range)| last[*column] < *range.end());
            let above = above.map(|(column, _)| {
                let mut levels = last.clone();
                levels[column] += 1;
                (self.problem.objective.bound(self.problem.table, &levels), levels)
            });
            match above.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
                Some((bound, next)) if !self.is_beyond(bound) => path.push(next),
                _ => break,
            }
        }
        path
    }

    fn is_refused(&self, levels: &[usize]) -> bool {
        self.refused.iter().any(|above| is_below(levels, above))
    }

    /// Whether a node suppresses no more than the limit; evaluates it unless that is known.
    fn is_anonymous(&mut self, levels: &[usize]) -> Result<bool> {
        if self.problem.watch.stopped() {
            return Err(Error::interrupted());
        }
        if self.is_refused(levels) {
            return Ok(false);
        }
        if self.anonymous.contains(levels) {
            return Ok(true);
        }
        self.evaluated += 1;
        let classes = self.finer.roll_up(levels)?;
        let node = Judged::new(self.problem.table, levels, &classes, self.problem.models);
        let anonymous = node.suppressed_rows() <= self.problem.limit;
        if anonymous {
            self.best.offer(Found::new(&node, self.problem.objective));
            self.anonymous.insert(levels.to_vec());
        } else {
            self.refused.retain(|known| !is_below(known, levels));
            self.refused.push(levels.to_vec());
        }
        self.finer.keep(levels.to_vec(), classes);
        Ok(anonymous)
    }
}

/// Whether `low` is nowhere above `high`.
fn is_below(low: &[usize], high: &[usize]) -> bool {
    low.iter().zip(high).all(|(low, high)| low <= high)
}

/// Classes of evaluated nodes, from which coarser nodes are rolled up: fewer classes, less work. Together they
/// hold at most as many classes as the base; the largest make room.
struct Finer<'a> {
    table: &'a ClassTable,
    /// Ascending by the number of classes.
    nodes: Vec<(Vec<usize>, Classes)>,
}

impl<'a> Finer<'a> {
    fn new(table: &'a ClassTable) -> Self {
        Self { table, nodes: Vec::new() }
    }

    /// The classes of a node, from the fewest classes that are known below it.
    fn roll_up(&self, levels: &[usize]) -> Result<Classes> {
        match self.nodes.iter().find(|(known, _)| is_below(known, levels)) {
            Some((known, classes)) => self.table.roll_up(classes, known, levels),
            None => self.table.roll_up(self.table.base(), &vec![0; levels.len()], levels),
        }
    }

    fn keep(&mut self, levels: Vec<usize>, classes: Classes) {
        let at = self.nodes.partition_point(|(_, known)| known.len() <= classes.len());
        self.nodes.insert(at, (levels, classes));
        let mut held: usize = self.nodes.iter().map(|(_, known)| known.len()).sum();
        while held > self.table.base().len() {
            let Some((_, largest)) = self.nodes.pop() else { break };
            held -= largest.len();
        }
    }
}

/// All allowed nodes by the lower bound of their loss, then by height and levels.
fn in_order_of_bound(problem: &Problem<'_>) -> Vec<(f64, Vec<usize>)> {
    let mut nodes = vec![vec![]];
    for range in problem.ranges {
        let longer = |levels: &Vec<usize>| {
            range.clone().map(|level| [&levels[..], &[level]].concat()).collect::<Vec<_>>()
        };
        nodes = nodes.iter().flat_map(longer).collect();
    }
    let bounded = nodes.into_iter().map(|levels| (problem.objective.bound(problem.table, &levels), levels));
    let mut bounded: Vec<_> = bounded.collect();
    bounded.sort_by(|(a, low), (b, high)| {
        let heights = low.iter().sum::<usize>().cmp(&high.iter().sum());
        a.total_cmp(b).then(heights).then_with(|| low.cmp(high))
    });
    bounded
}
