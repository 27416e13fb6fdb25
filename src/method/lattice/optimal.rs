//! `optimal`: the best node, proven, from as few evaluated nodes as bounds and monotony allow.
//!
//! Nodes are taken in the order of the lower bound that the loss measure gives from the levels alone. When
//! the bound of the next node exceeds the loss of the best node found, no later node can be better. Nodes
//! below a node that suppresses too much are skipped: with models that survive any merging, the rows of
//! failing classes never grow going up (Kohlmayer et al. 2012 call it predictive tagging).
//!
//! # Contract
//! Proven best for models with [`Merge::Any`]; other models are refused here, and `auto` then takes
//! `exhaustive`. Ties are decided as everywhere: loss, sum of levels, levels in policy order.

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
        let mut best = Best::new(problem.top);
        let mut refused: Vec<Vec<usize>> = Vec::new();
        let mut finer = Finer::new(problem.table);
        let (mut done, mut evaluated) = (0, 0);
        for (bound, levels) in in_order_of_bound(problem) {
            if problem.watch.stopped() {
                return Err(Error::interrupted());
            }
            if bound - ROUNDING * bound.abs().max(1.0) > best.cutoff() {
                break;
            }
            done += 1;
            problem.watch.progress(done, nodes);
            if refused.iter().any(|above| levels.iter().zip(above).all(|(low, high)| low <= high)) {
                continue;
            }
            evaluated += 1;
            let classes = finer.roll_up(&levels)?;
            let node = Judged::new(problem.table, &levels, &classes, problem.models);
            if node.suppressed_rows() <= problem.limit {
                best.offer(Found::new(&node, problem.objective));
            } else {
                refused.retain(|low| !low.iter().zip(&levels).all(|(low, high)| low <= high));
                refused.push(levels.clone());
            }
            finer.keep(levels, classes);
        }
        Ok(Outcome { best: best.found, nodes, evaluated, proven: true })
    }
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
        let below = |known: &[usize]| known.iter().zip(levels).all(|(low, high)| low <= high);
        match self.nodes.iter().find(|(known, _)| below(known)) {
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
