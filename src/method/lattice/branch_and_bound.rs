//! Branch and bound over intervals of the lattice: `optimal` runs it to the end, `anytime` until
//! its effort is spent.
//!
//! An interval is the set of nodes between a lowest and a highest one. The highest node tells which
//! rows every node below it suppresses too: when those are too many, no node of the interval is
//! anonymous. The lowest node tells what every node above it loses, and the measure makes a lower
//! bound from both. An interval whose bound is above the best loss is dropped; one that may hold a
//! best node is cut in two, the interval with the least bound first. Before its highest node is
//! evaluated, an interval is narrowed: levels at which the bound alone is too high are cut off.
//!
//! ```text
//! [low, high]  cut off the top level t of the column where that raises the bound most:
//!     [low, high with t - 1]    more is suppressed at its high: often all of it is refused
//!     [low with t, high]        more is lost at its low: often all of it is too expensive
//! ```
//! The intervals partition the undecided nodes, so a search may stop at any time and report the
//! least loss that is still possible.
//!
//! The search does not tag nodes ahead as Flash does: the loss need not be monotone, models need only say how
//! they survive merging, and a search that stops early leaves a bound.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::evaluate::{Evaluator, NodeFacts, Purpose};
use super::{Best, Found, Lattice, height, is_below};
use crate::error::Result;
use crate::measure::Interval;
use crate::method::{Candidate, Outcome, Problem};

/// A search and the facts it has learnt.
pub(super) struct Search<'a> {
    problem: &'a Problem<'a>,
    evaluator: Evaluator<'a>,
    pub(super) best: Best,
    /// Nodes below which no node is anonymous, the newest last.
    refused: Vec<Vec<usize>>,
    open: BinaryHeap<Open>,
    cuts: u64,
    nodes: u64,
    /// The number of nodes in open intervals.
    undecided: f64,
}

/// The number of refused nodes to remember; each is only a chance to skip an evaluation.
const MOST_REFUSED: usize = 4096;

/// An interval that may hold a best node.
#[derive(Debug, Clone)]
struct Open {
    bound: f64,
    low: Vec<usize>,
    high: Vec<usize>,
    /// Every node suppresses at least these rows.
    suppressed: u64,
    /// Every node has at most this many classes, and their squared sizes sum to at least this.
    classes: (u64, u128),
    number: u64,
}

impl Ord for Open {
    /// The interval to take first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        let least = other.bound.total_cmp(&self.bound);
        least
            .then_with(|| height(&other.low).cmp(&height(&self.low)))
            .then_with(|| other.low.cmp(&self.low))
            .then_with(|| self.number.cmp(&other.number))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Open {}

impl Open {
    fn nodes(&self) -> f64 {
        self.low
            .iter()
            .zip(&self.high)
            .map(|(low, high)| crate::measure::ratio((high - low + 1) as u128, 1))
            .product()
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(lattice: Lattice<'a>) -> Self {
        let Lattice { problem, options } = lattice;
        let (low, high): (Vec<usize>, Vec<usize>) =
            options.ranges.iter().map(|range| (*range.start(), *range.end())).unzip();
        let mut search = Self {
            problem,
            evaluator: Evaluator::new(problem),
            best: Best::new(options.top),
            refused: Vec::new(),
            open: BinaryHeap::new(),
            cuts: 0,
            nodes: options.nodes(),
            undecided: 0.0,
        };
        let classes = (problem.table.base().len() as u64, 0);
        let mut all = Open { bound: f64::NEG_INFINITY, low, high, suppressed: 0, classes, number: 0 };
        all.bound = search.bound(&all.low, &all);
        search.open(all);
        search
    }

    /// Returns the number of nodes whose classes were computed.
    pub(super) fn evaluated(&self) -> u64 {
        self.evaluator.evaluated()
    }

    /// Narrows the open intervals until none is left or `enough` accepts the number of evaluated
    /// nodes; with `until_better`, also stops once a better node is found.
    pub(super) fn run(&mut self, until_better: bool, enough: &mut dyn FnMut(u64) -> bool) -> Result<()> {
        let before = self.best.found.first().cloned();
        while !enough(self.evaluated()) {
            if until_better && self.best.found.first() != before.as_ref() {
                break;
            }
            let round = self.next_round();
            if round.is_empty() {
                break;
            }
            let highs: Vec<Vec<usize>> = round.iter().map(|open| open.high.clone()).collect();
            self.evaluate(&highs, Purpose::Verdict)?;
            let mut lows = Vec::new();
            let mut wide = Vec::new();
            for mut open in round {
                if self.narrowed_by_high(&mut open) {
                    lows.push(open.low.clone());
                    wide.push(open);
                } else {
                    self.undecided -= open.nodes();
                }
            }
            if !enough(self.evaluated()) {
                self.evaluate(&lows, Purpose::Classes)?;
            }
            for mut open in wide {
                self.undecided -= open.nodes();
                if self.narrowed_by_low(&mut open) {
                    self.cut(&open);
                }
            }
            let decided = crate::measure::ratio(self.nodes.into(), 1) - self.undecided;
            self.problem.progress.done(share_of(self.nodes, decided));
        }
        Ok(())
    }

    /// Takes the next intervals that may hold a best node, narrowed.
    fn next_round(&mut self) -> Vec<Open> {
        let mut round = Vec::new();
        while round.len() < self.evaluator.width() {
            let Some(mut open) = self.open.pop() else { break };
            let before = open.nodes();
            if self.may_hold_best(&open) {
                self.narrow(&mut open);
                if !self.is_refused(&open.high) {
                    self.undecided -= before - open.nodes();
                    round.push(open);
                    continue;
                }
            }
            self.undecided -= before;
        }
        round
    }

    fn may_hold_best(&self, open: &Open) -> bool {
        self.best.can_enter(open.bound, &open.low)
    }

    /// Cuts off the levels at which the bound alone rules out all nodes.
    fn narrow(&self, open: &mut Open) {
        let mut low = open.low.clone();
        for column in 0..low.len() {
            while open.high[column] > open.low[column] {
                low[column] = open.high[column];
                if self.best.can_enter(self.bound(&low, open).max(open.bound), &low) {
                    break;
                }
                open.high[column] -= 1;
            }
            low[column] = open.low[column];
        }
    }

    /// Returns the bound of the nodes of `open` that are nowhere below `low`.
    fn bound(&self, low: &[usize], open: &Open) -> f64 {
        let table = self.problem.table;
        let labels = table.columns().iter().zip(low);
        let combinations = labels.fold(1u64, |product, (column, level)| {
            product.saturating_mul(column.level(*level).leaves().len() as u64)
        });
        let classes = open.classes.0.min(combinations).max(1);
        let rows = u128::from(table.total_rows());
        self.problem.objective.bound(&Interval {
            table,
            low,
            suppressed: open.suppressed,
            limit: self.evaluator.most_suppressed,
            classes,
            squares: open.classes.1.max(rows * rows / u128::from(classes)),
            min_size: self.evaluator.min_size,
            max_failing: self.evaluator.max_failing,
        })
    }

    fn is_refused(&self, levels: &[usize]) -> bool {
        self.refused.iter().rev().any(|above| is_below(levels, above))
    }

    /// Narrows the interval by the facts of its highest node; returns whether it may hold a best
    /// node.
    fn narrowed_by_high(&self, open: &mut Open) -> bool {
        let Some(facts) = self.evaluator.known(&open.high) else { return true };
        if facts.refuses_below {
            return false;
        }
        open.suppressed = open.suppressed.max(facts.suppressed_below);
        open.bound = open.bound.max(self.bound(&open.low, open));
        open.low != open.high && self.may_hold_best(open)
    }

    /// Narrows the interval by the facts of its lowest node; returns whether it may hold a best
    /// node.
    fn narrowed_by_low(&self, open: &mut Open) -> bool {
        let Some(facts) = self.evaluator.known(&open.low) else { return true };
        if let Some((classes, squares)) = facts.classes {
            open.classes = (open.classes.0.min(classes), open.classes.1.max(squares));
        }
        let least = facts.least_above.unwrap_or(f64::NEG_INFINITY);
        open.bound = open.bound.max(self.bound(&open.low, open)).max(least);
        self.may_hold_best(open)
    }

    /// Cuts an interval in two.
    fn cut(&mut self, open: &Open) {
        let mut low = open.low.clone();
        let mut cut: Option<(f64, f64, usize)> = None;
        for column in (0..low.len()).filter(|column| open.low[*column] < open.high[*column]) {
            low[column] = open.high[column];
            let labels =
                |level: usize| self.problem.table.columns()[column].level(level).leaves().len() as u128;
            let merged = crate::measure::ratio(labels(open.low[column]), labels(open.high[column]));
            let gain = self.bound(&low, open);
            if cut
                .is_none_or(|(best, labels, _)| gain.total_cmp(&best).then(merged.total_cmp(&labels)).is_gt())
            {
                cut = Some((gain, merged, column));
            }
            low[column] = open.low[column];
        }
        let Some((gain, _, column)) = cut else { return };
        let mut lower = open.clone();
        lower.high[column] -= 1;
        let mut upper = open.clone();
        upper.low[column] = open.high[column];
        upper.bound = open.bound.max(gain);
        for mut part in [upper, lower] {
            self.cuts += 1;
            part.number = self.cuts;
            if self.may_hold_best(&part) {
                self.open(part);
            }
        }
    }

    fn open(&mut self, open: Open) {
        self.undecided += open.nodes();
        self.open.push(open);
    }

    /// Evaluates nodes and remembers what follows for others.
    pub(super) fn evaluate(&mut self, nodes: &[Vec<usize>], purpose: Purpose) -> Result<()> {
        let Self { evaluator, best, refused, .. } = self;
        evaluator.evaluate(nodes, purpose, |levels, facts: &NodeFacts| {
            if let Some(found) = &facts.anonymous {
                best.offer(found.clone());
            }
            // A lowest node has no open nodes below it.
            if facts.refuses_below && purpose == Purpose::Verdict {
                refused.retain(|known| !is_below(known, levels));
                refused.push(levels.to_vec());
                if refused.len() > MOST_REFUSED {
                    refused.remove(0);
                }
            }
        })
    }

    /// Returns whether a node is anonymous; evaluates it if that is not known.
    pub(super) fn holds(&mut self, levels: &[usize]) -> Result<bool> {
        if self.is_refused(levels) {
            return Ok(false);
        }
        self.evaluate(&[levels.to_vec()], Purpose::Verdict)?;
        self.problem.progress.done(self.evaluated());
        Ok(self.anonymous(levels).is_some())
    }

    /// Returns the result of a method that chose these of the evaluated nodes by a rule of its own.
    pub(super) fn outcome_with(self, best: Vec<Candidate>) -> Outcome {
        let of_all = self.outcome();
        Outcome { proven: of_all.proven && of_all.best == best, best, ..of_all }
    }

    /// Returns a node's summary, if it is known to be anonymous.
    pub(super) fn anonymous(&self, levels: &[usize]) -> Option<&Found> {
        self.evaluator.known(levels)?.anonymous.as_ref()
    }

    /// Returns whether a node is known, without evaluating it, to be no better than the best.
    pub(super) fn is_worse(&self, levels: &[usize]) -> bool {
        let alone = Open {
            bound: f64::NEG_INFINITY,
            low: levels.to_vec(),
            high: levels.to_vec(),
            suppressed: 0,
            classes: (self.problem.table.base().len() as u64, 0),
            number: 0,
        };
        self.evaluator.known(levels).is_some()
            || self.is_refused(levels)
            || !self.best.can_enter(self.bound(levels, &alone), levels)
    }

    /// Returns the result, which is proven when no open interval may hold a better node.
    pub(super) fn outcome(mut self) -> Outcome {
        let all_seen = self.evaluated() >= self.nodes;
        while self.open.peek().is_some_and(|open| all_seen || !self.may_hold_best(open)) {
            self.open.pop();
        }
        let open = self.open.peek().map(|open| open.bound);
        let best = self.best.found.first().map(|found| found.loss);
        Outcome {
            nodes: Some(self.nodes),
            evaluated: self.evaluated(),
            proven: open.is_none(),
            // An open interval can only hold a second best node, above the best.
            bound: open.into_iter().chain(best).min_by(f64::total_cmp),
            best: self.best.candidates(),
        }
    }
}

/// Converts a float count to an integer of at most `most`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn share_of(most: u64, count: f64) -> u64 {
    (count.max(0.0) as u64).min(most)
}
