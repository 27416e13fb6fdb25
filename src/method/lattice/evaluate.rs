//! Evaluates nodes, each once, several at a time, from the fewest known classes below them.
//!
//! A roll-up stops as soon as more classes appear than can be kept or suppressed. From 50,000 base classes on,
//! four nodes are evaluated at a time, whatever the number of threads, so that every machine evaluates the same
//! nodes.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Found;
use super::class_cache::{Finer, Size, Source};
use crate::class::{Classes, EvaluatedNode, Scratch};
use crate::error::{Error, ErrorCode, Result};
use crate::measure::Grows;
use crate::method::Problem;
use crate::model::{Class, Counted, Merge, Needs, min_size};

/// The facts remembered about an evaluated node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeFacts {
    /// The node's summary, if it is anonymous.
    pub(super) anonymous: Option<Found>,
    /// Whether no node below it is anonymous.
    pub(super) refuses_below: bool,
    /// A lower bound of the loss of every node above it, if one is known.
    pub(super) least_above: Option<f64>,
    /// The number of rows that every node below suppresses.
    pub(super) suppressed_below: u64,
    /// The number of its classes, and the sum of their squared sizes.
    pub(super) classes: Option<(u64, u128)>,
}

impl NodeFacts {
    /// A node with so many classes that too many rows are in small ones.
    const TOO_FINE: Self =
        Self { anonymous: None, refuses_below: true, least_above: None, suppressed_below: 0, classes: None };
}

/// The purpose of evaluating a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To decide whether it is anonymous.
    Verdict,
    /// To also roll up nodes above it from its classes.
    Classes,
}

/// The facts about a node and its classes with their size; `None` if the roll-up gave up first.
type Evaluated = Option<(NodeFacts, Option<(Size, Option<Classes>)>)>;

/// Evaluates nodes of one problem.
pub(super) struct Evaluator<'a> {
    problem: &'a Problem<'a>,
    known: HashMap<Vec<usize>, NodeFacts>,
    /// Nodes known only to have hardly fewer classes than those they are rolled up from.
    hardly_coarser: HashSet<Vec<usize>>,
    finer: Finer,
    scratch: Vec<Mutex<Scratch>>,
    /// No anonymous node suppresses more rows.
    pub(super) most_suppressed: u64,
    /// More classes can neither all be kept nor be suppressed within the limit.
    most_classes: u64,
    all_survive_any: bool,
    may_refuse_by_suppression: bool,
    /// q: no class of fewer rows is kept.
    pub(super) min_size: u64,
    /// No class of more rows fails.
    pub(super) max_failing: u64,
}

/// Fewer base classes than this are rolled up faster than a thread starts.
const WORTH_A_THREAD: usize = 50_000;

impl<'a> Evaluator<'a> {
    pub(super) fn new(problem: &'a Problem<'a>) -> Self {
        let (rows, counted) = (problem.table.total_rows(), problem.table.counted());
        let most_suppressed = problem.table.most_rows_of(problem.limit);
        let requirements = || problem.requirements.iter();
        let min_size = min_size(problem.requirements).max(1);
        let by_size_alone = requirements().all(|r| {
            let class = Class::of_size(min_size);
            counted == Counted::Rows
                && r.is_over_all_quasi()
                && r.model.needs() == Needs::Size
                && r.model.merge(counted) == Merge::Any
                && r.model.holds(r.model.value(&class))
        });
        let all_survive_any = requirements().all(|r| r.model.merge(counted) == Merge::Any);
        let all_survive_both = requirements().all(|r| r.model.merge(counted) != Merge::None);
        let threads =
            if problem.table.base().len() < WORTH_A_THREAD { 1 } else { problem.threads.clamp(1, WIDTH) };
        Self {
            problem,
            known: HashMap::new(),
            hardly_coarser: HashSet::new(),
            finer: Finer::new(problem.table),
            scratch: (0..threads).map(|_| Mutex::new(problem.table.scratch())).collect(),
            most_suppressed,
            most_classes: most_suppressed + (rows - most_suppressed) / min_size,
            all_survive_any,
            may_refuse_by_suppression: problem.limit == 0 && all_survive_both,
            min_size,
            max_failing: if by_size_alone { min_size - 1 } else { rows },
        }
    }

    /// Returns the number of nodes to evaluate at a time. It depends on the table alone, so that
    /// the same nodes are evaluated whatever the number of threads.
    pub(super) fn width(&self) -> usize {
        if self.problem.table.base().len() < WORTH_A_THREAD { 1 } else { WIDTH }
    }

    /// Returns the number of nodes whose classes were computed far enough to decide whether they
    /// are anonymous.
    pub(super) fn evaluated(&self) -> u64 {
        self.known.len() as u64
    }

    /// Returns the facts about a node, if it was evaluated.
    pub(super) fn known(&self, levels: &[usize]) -> Option<&NodeFacts> {
        self.known.get(levels)
    }

    /// Evaluates the unknown nodes, each once, and calls `see` for each of them in the given order.
    pub(super) fn evaluate(
        &mut self,
        nodes: &[Vec<usize>],
        purpose: Purpose,
        mut see: impl FnMut(&[usize], &NodeFacts),
    ) -> Result<()> {
        let mut new: Vec<&Vec<usize>> = Vec::new();
        for levels in nodes {
            let tried = purpose == Purpose::Classes && self.hardly_coarser.contains(levels);
            if !tried && !self.known.contains_key(levels) && !new.contains(&levels) {
                new.push(levels);
            }
        }
        let sources: Vec<Option<usize>> = new.iter().map(|levels| self.finer.below(levels)).collect();
        let one = |at: usize, scratch: &mut Scratch| self.one(new[at], sources[at], purpose, scratch);
        let mut results = self.each(new.len(), &one)?;
        let is_short =
            |result: &Result<Evaluated>| matches!(result, Err(error) if error.is(ErrorCode::OutOfMemory));
        if results.iter().any(is_short) {
            // Again one by one, with nothing but the whole table and the classes of one node in memory.
            self.finer.let_go(self.problem.table);
            let threads = 0..self.scratch.len().div_ceil(2);
            self.scratch = threads.map(|_| Mutex::new(self.problem.table.scratch())).collect();
            results.iter_mut().for_each(let_go);
            for at in 0..new.len() {
                if is_short(&results[at]) {
                    results[at] = self.one(new[at], sources[at], purpose, &mut self.problem.table.scratch());
                    let_go(&mut results[at]);
                }
            }
        }
        for (levels, result) in new.into_iter().zip(results) {
            let Some((facts, classes)) = result? else {
                self.hardly_coarser.insert(levels.clone());
                continue;
            };
            if let Some((size, classes)) = classes {
                self.finer.keep(levels.clone(), size, classes);
            }
            see(levels, &facts);
            self.known.insert(levels.clone(), facts);
        }
        Ok(())
    }

    /// Runs `work` for 0, 1, ... `count` - 1, in parallel if there is more than one scratch, and
    /// returns the results in this order.
    fn each<T: Send>(
        &self,
        count: usize,
        work: &(dyn Fn(usize, &mut Scratch) -> T + Sync),
    ) -> Result<Vec<T>> {
        let run = |at: usize, scratch: &Mutex<Scratch>| -> Result<T> {
            Ok(work(at, &mut *scratch.lock().map_err(|_| failed())?))
        };
        if count <= 1 || self.scratch.len() == 1 {
            return (0..count).map(|at| run(at, &self.scratch[0])).collect();
        }
        let next = AtomicUsize::new(0);
        let worker = |scratch: &Mutex<Scratch>| {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    return done;
                }
                done.push((at, run(at, scratch)));
            }
        };
        let worker = &worker;
        let mut done = std::thread::scope(|scope| {
            let threads: Vec<_> =
                self.scratch.iter().map(|scratch| scope.spawn(move || worker(scratch))).collect();
            let done = threads.into_iter().map(|thread| thread.join().map_err(|_| failed()));
            done.collect::<Result<Vec<_>>>().map(|done| done.into_iter().flatten().collect::<Vec<_>>())
        })?;
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, result)| result).collect()
    }

    fn one(
        &self,
        levels: &[usize],
        source: Option<usize>,
        purpose: Purpose,
        scratch: &mut Scratch,
    ) -> Result<Evaluated> {
        self.problem.stop.check()?;
        let table = self.problem.table;
        let Source { levels: from, classes: source, fewest } = self.finer.at(source, levels, table);
        if from == levels {
            let node = EvaluatedNode::new(table, levels, source, self.problem.requirements)?;
            return Ok(Some((self.facts(&node), None)));
        }
        let most = usize::try_from(self.most_classes).unwrap_or(usize::MAX);
        let enough = match purpose {
            Purpose::Verdict => most,
            Purpose::Classes if self.problem.objective.counts_classes() => usize::MAX,
            // Hardly fewer classes save nothing.
            Purpose::Classes => fewest / 2,
        };
        let Some(classes) = table.roll_up_at_most(source, &from, levels, enough, scratch)? else {
            return Ok((enough >= most).then_some((NodeFacts::TOO_FINE, None)));
        };
        let node = EvaluatedNode::new(table, levels, &classes, self.problem.requirements)?;
        let facts = self.facts(&node);
        Ok(Some((facts, Some((Size::of(&classes), Some(classes))))))
    }

    fn facts(&self, node: &EvaluatedNode<'_>) -> NodeFacts {
        let (limit, is_anonymous) = (self.problem.limit, node.is_anonymous(self.problem.limit));
        let objective = self.problem.objective;
        let anonymous = is_anonymous.then(|| Found::new(node, objective));
        let loss_grows = match objective.grows() {
            Grows::Always => true,
            // If nothing is suppressed here and classes that hold keep holding, nothing is
            // suppressed above.
            Grows::WithoutSuppression => {
                node.suppressed_rows() == 0 && (self.all_survive_any || self.may_refuse_by_suppression)
            }
            Grows::No => false,
        };
        let refuses_below =
            node.surely_suppressed_individuals() > limit || (self.may_refuse_by_suppression && !is_anonymous);
        NodeFacts {
            least_above: anonymous.as_ref().filter(|_| loss_grows).map(|found| found.loss),
            anonymous,
            refuses_below,
            suppressed_below: node.surely_suppressed_rows(),
            classes: Some((node.classes(), node.squares())),
        }
    }
}

/// Lets the classes of an evaluated node go.
fn let_go(result: &mut Result<Evaluated>) {
    if let Ok(Some((_, Some((_, classes))))) = result {
        *classes = None;
    }
}

/// The number of nodes of a large table to evaluate at a time.
const WIDTH: usize = 4;

fn failed() -> Error {
    Error::internal("lattice search: a thread panicked")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::memory_tests::{counting, visits};
    use crate::generalize::Ends;
    use crate::measure::LOSSES;
    use crate::method::Outcome;
    use crate::method::lattice::{Effort, Options, anytime, incognito, optimal};
    use crate::model::{Requirement, k_anonymity::KAnonymity};
    use crate::progress::{CancelToken, Silent};

    /// What a search finds under a limit on the memory besides the table's, and the most that it took.
    fn found(
        (groups, place): (i32, fn(i32) -> i32),
        row: &super::super::Row,
        limit: usize,
    ) -> (Result<Outcome>, usize) {
        let (counting, budget) = counting(usize::MAX);
        let table = visits(groups, place, true, &budget).unwrap();
        let before = counting.used();
        counting.limit_to(before.saturating_add(limit));
        counting.most();
        let requirements = [Requirement::of_sizes(KAnonymity::new(4).unwrap())];
        let ranges = table.heights().into_iter().map(|height| 0..=height).collect();
        let options = Options { ranges, top: 3, effort: Some(Effort::Nodes(9)), global: Vec::new() };
        let objective = LOSSES.iter().find(|loss| loss.doc().name == "average_class_size").unwrap();
        let problem = Problem {
            table: &table,
            requirements: &requirements,
            objective: *objective,
            ends: Ends::Values,
            limit: 40,
            threads: 3,
            progress: &Silent,
            stop: &CancelToken::default(),
        };
        let outcome = row.with(&[], options).unwrap().search(&problem);
        assert_eq!(counting.used(), before, "a search gives back what it takes");
        (outcome, counting.most() - before)
    }

    #[test]
    fn a_search_finds_the_same_when_memory_is_short() {
        // One node at a time, and several.
        let tables: [(i32, fn(i32) -> i32); 2] = [(9_000, |n| n / 3 % 60), (51_000, |n| n / 997)];
        for table in tables {
            for row in [optimal::ROW, anytime::ROW, incognito::ROW] {
                let (plenty, most) = found(table, &row, usize::MAX);
                let plenty = plenty.unwrap();
                let mut least = most;
                for part in [9, 7, 5, 3, 1] {
                    match found(table, &row, most / 10 * part).0 {
                        Ok(outcome) => {
                            let text = format!("{}, {} groups, {part} tenths", row.doc.name, table.0);
                            assert_eq!(outcome.best, plenty.best, "{text}");
                            assert_eq!(outcome.evaluated, plenty.evaluated, "{text}");
                            assert_eq!(outcome.proven, plenty.proven, "{text}");
                            least = most / 10 * part;
                        }
                        Err(error) => {
                            assert!(error.is(ErrorCode::OutOfMemory), "{error}");
                            assert!(error.to_string().contains("bytes would do"), "{error}");
                        }
                    }
                }
                let is_wide = table.0 > 50_000;
                assert!(is_wide || least < most / 10 * 8, "{}: {least} of {most} bytes", row.doc.name);
            }
        }
    }
}
