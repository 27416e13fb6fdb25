//! Evaluating nodes: each once, from the fewest classes that are known below it, several at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::is_below;
use crate::class::{Classes, Judged, Scratch};
use crate::error::{Error, Result};
use crate::measure::Grows;
use crate::method::{Found, Problem};
use crate::model::{Class, Merge, Needs};

/// What is remembered of an evaluated node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Facts {
    /// What is kept there, when it is anonymous.
    pub(super) anonymous: Option<Found>,
    /// Whether no node below it is anonymous.
    pub(super) refuses_below: bool,
    /// The loss that no node above it is below, where one is known.
    pub(super) least_above: Option<f64>,
    /// Rows that every node below suppresses.
    pub(super) suppressed_below: u64,
    /// Its classes, and the sum of their squared sizes.
    pub(super) classes: Option<(u64, u128)>,
}

impl Facts {
    /// A node with so many classes that too many rows are in small ones.
    const TOO_FINE: Self =
        Self { anonymous: None, refuses_below: true, least_above: None, suppressed_below: 0, classes: None };
}

/// What a node is evaluated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To know whether it is anonymous.
    Verdict,
    /// To roll up nodes above it from its classes as well.
    Classes,
}

/// What is known of a node and its classes; `None` when it was given up before anything was known.
type Evaluated = Option<(Facts, Option<Classes>)>;

/// Evaluates nodes of one problem.
pub(super) struct Evaluator<'a> {
    problem: &'a Problem<'a>,
    known: HashMap<Vec<usize>, Facts>,
    /// Nodes whose classes are hardly fewer than those they are rolled up from, and that is all that is known.
    hardly_coarser: HashSet<Vec<usize>>,
    finer: Finer,
    scratch: Vec<Mutex<Scratch>>,
    /// More classes than these cannot all be kept, nor be suppressed within the limit.
    most_classes: u64,
    all_survive_any: bool,
    may_refuse_by_suppression: bool,
    /// q: no smaller class is kept.
    pub(super) min_size: u64,
    /// No larger class fails.
    pub(super) max_failing: u64,
}

/// Fewer base classes than these are rolled up faster than a thread starts.
const WORTH_A_THREAD: usize = 50_000;

impl<'a> Evaluator<'a> {
    pub(super) fn new(problem: &'a Problem<'a>) -> Self {
        let (rows, limit) = (problem.table.total_rows(), problem.limit.min(problem.table.total_rows()));
        let requirements = || problem.requirements.iter();
        let min_size = requirements().map(|r| r.model.min_size()).max().unwrap_or(0).max(1);
        let by_size_alone = requirements().all(|r| {
            let class = Class::of_size(min_size);
            r.model.needs() == Needs::Size
                && r.model.merge() == Merge::Any
                && r.model.holds(r.model.value(&class))
        });
        let all_survive_any = requirements().all(|r| r.model.merge() == Merge::Any);
        let all_survive_both = requirements().all(|r| r.model.merge() != Merge::None);
        let threads =
            if problem.table.base().len() < WORTH_A_THREAD { 1 } else { problem.threads.clamp(1, WIDTH) };
        Self {
            problem,
            known: HashMap::new(),
            hardly_coarser: HashSet::new(),
            finer: Finer::new(problem),
            scratch: (0..threads).map(|_| Mutex::new(problem.table.scratch())).collect(),
            most_classes: limit + (rows - limit) / min_size,
            all_survive_any,
            may_refuse_by_suppression: limit == 0 && all_survive_both,
            min_size,
            max_failing: if by_size_alone { min_size - 1 } else { rows },
        }
    }

    /// How many nodes to take at a time: a number that depends on the table alone, so that the same nodes are
    /// evaluated whatever the number of threads.
    pub(super) fn width(&self) -> usize {
        if self.problem.table.base().len() < WORTH_A_THREAD { 1 } else { WIDTH }
    }

    /// The nodes whose classes were computed.
    pub(super) fn evaluated(&self) -> u64 {
        (self.known.len() + self.hardly_coarser.len()) as u64
    }

    /// What is known of a node.
    pub(super) fn known(&self, levels: &[usize]) -> Option<&Facts> {
        self.known.get(levels)
    }

    /// Evaluates the nodes that are not known yet, each once; calls `see` for every new one in the order given.
    pub(super) fn evaluate(
        &mut self,
        nodes: &[Vec<usize>],
        purpose: Purpose,
        mut see: impl FnMut(&[usize], &Facts),
    ) -> Result<()> {
        let mut new: Vec<&Vec<usize>> = Vec::new();
        for levels in nodes {
            let tried = purpose == Purpose::Classes && self.hardly_coarser.contains(levels);
            if !tried && !self.known.contains_key(levels) && !new.contains(&levels) {
                new.push(levels);
            }
        }
        let results: Vec<Result<Evaluated>> = if new.len() == 1 || self.scratch.len() == 1 {
            new.iter().map(|levels| self.one(levels, purpose, &self.scratch[0])).collect()
        } else {
            let next = AtomicUsize::new(0);
            let done: Mutex<Vec<(usize, _)>> = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for scratch in &self.scratch {
                    scope.spawn(|| {
                        while let Some(levels) = new.get(next.fetch_add(1, Ordering::Relaxed)) {
                            let at = new.iter().position(|one| one == levels).unwrap_or_default();
                            let result = self.one(levels, purpose, scratch);
                            if let Ok(mut done) = done.lock() {
                                done.push((at, result));
                            }
                        }
                    });
                }
            });
            let mut done = done.into_inner().map_err(|_| Error::internal("a search thread failed"))?;
            done.sort_by_key(|(at, _)| *at);
            done.into_iter().map(|(_, result)| result).collect()
        };
        for (levels, result) in new.into_iter().zip(results) {
            let Some((facts, classes)) = result? else {
                self.hardly_coarser.insert(levels.clone());
                continue;
            };
            if let Some(classes) = classes {
                self.finer.keep(levels.clone(), classes);
            }
            see(levels, &facts);
            self.hardly_coarser.remove(levels);
            self.known.insert(levels.clone(), facts);
        }
        Ok(())
    }

    fn one(&self, levels: &[usize], purpose: Purpose, scratch: &Mutex<Scratch>) -> Result<Evaluated> {
        if self.problem.watch.stopped() {
            return Err(Error::interrupted());
        }
        let table = self.problem.table;
        let base = vec![0; levels.len()];
        let (from, source) = self.finer.below(levels).unwrap_or((&base, table.base()));
        let most = usize::try_from(self.most_classes).unwrap_or(usize::MAX);
        let enough = match purpose {
            Purpose::Verdict => most,
            Purpose::Classes if self.problem.objective.counts_classes() => usize::MAX,
            // Classes that are hardly fewer save nothing.
            Purpose::Classes => source.len() / 2,
        };
        let mut scratch = scratch.lock().map_err(|_| Error::internal("a search thread failed"))?;
        let Some(classes) = table.roll_up_at_most(source, from, levels, enough, &mut scratch)? else {
            return Ok((enough >= most).then_some((Facts::TOO_FINE, None)));
        };
        let node = Judged::new(table, levels, &classes, self.problem.requirements);
        let facts = self.facts(&node);
        Ok(Some((facts, Some(classes))))
    }

    fn facts(&self, node: &Judged<'_>) -> Facts {
        let (limit, suppressed) = (self.problem.limit, node.suppressed_rows());
        let objective = self.problem.objective;
        let anonymous = (suppressed <= limit).then(|| Found::new(node, objective));
        let loss_grows = match objective.grows() {
            Grows::Always => true,
            // Nothing is suppressed above, if nothing is here and what holds goes on holding.
            Grows::WithoutSuppression => {
                suppressed == 0 && (self.all_survive_any || self.may_refuse_by_suppression)
            }
            Grows::No => false,
        };
        let refuses_below =
            node.surely_suppressed_rows() > limit || (self.may_refuse_by_suppression && suppressed > limit);
        Facts {
            least_above: anonymous.as_ref().filter(|_| loss_grows).map(|found| found.loss),
            anonymous,
            refuses_below,
            suppressed_below: node.surely_suppressed_rows(),
            classes: Some((node.classes(), node.squares())),
        }
    }
}

/// The nodes that are taken at a time from a large table.
const WIDTH: usize = 4;

/// Classes of evaluated nodes, from which coarser nodes are rolled up: fewer classes, less work. Those that
/// were not used for longest make room.
struct Finer {
    /// Ascending by the number of classes: levels, classes, when last kept.
    nodes: Vec<(Vec<usize>, Classes, u64)>,
    kept: u64,
    bytes: usize,
    most_bytes: usize,
}

/// How many nodes' classes are kept at most: what a scan through them costs stays small.
const MOST_FINER: usize = 512;

impl Finer {
    fn new(problem: &Problem<'_>) -> Self {
        let most_bytes = (2 * problem.table.base().bytes()).max(16 << 20);
        Self { nodes: Vec::new(), kept: 0, bytes: 0, most_bytes }
    }

    /// The fewest classes that are kept below a node.
    fn below(&self, levels: &[usize]) -> Option<(&[usize], &Classes)> {
        let found = self.nodes.iter().find(|(known, ..)| is_below(known, levels));
        found.map(|(known, classes, _)| (known.as_slice(), classes))
    }

    fn keep(&mut self, levels: Vec<usize>, classes: Classes) {
        self.kept += 1;
        self.bytes += classes.bytes();
        let at = self.nodes.partition_point(|(_, known, _)| known.len() <= classes.len());
        self.nodes.insert(at, (levels, classes, self.kept));
        while self.bytes > self.most_bytes || self.nodes.len() > MOST_FINER {
            let oldest = self.nodes.iter().enumerate().min_by_key(|(_, (_, _, kept))| *kept);
            let Some((at, _)) = oldest else { break };
            self.bytes -= self.nodes.remove(at).1.bytes();
        }
    }
}
