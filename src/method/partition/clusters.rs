//! `clusters`: gathers rows that are alike into classes, then moves them to classes that they fit better.
//!
//! 1. Base classes are sorted by their columns, each time beginning with another column, and neighbours in any of these orders
//!    are near. The base class whose nearest neighbour is closest begins a class, and of those near its members the one that adds
//!    the least loss joins it, again and again, until the class satisfies the policy (k-member clustering, Byun, Kamra, Bertino
//!    & Li 2007, with neighbours instead of all rows). Those of a class that finds no more neighbours, and of one with four times
//!    as many base classes as the policy asks for, are left over and join the class near them to which they add the least.
//!    Under `start = "cuts"` the classes are those of `mondrian` by least loss instead.
//! 2. Each base class moves to a class near it where it adds less loss than it takes along, if both classes then satisfy the
//!    policy, in at most eight rounds (sequential clustering, Goldberger & Tassa 2010).
//!
//! Loss is that of `granularity_mean`, whatever the policy's objective. More than 65,536 base classes are cut by least loss first,
//! as `mondrian` does, until each part has no more, and each part is partitioned by itself, several at a time.
//!
//! # Contract
//! All rows together must satisfy every requirement; otherwise nothing is found, whatever the suppression limit. Every class
//! satisfies every requirement; one that fails once classes that show the same are one is suppressed, and if that suppresses too
//! many, all rows become one class. Classes show the finest regions around their values; these may overlap, so that a person's
//! values can fit several classes, and `ends = "cuts"`, `min_level` and `max_level` are refused. Members are chosen by the
//! quasi-identifiers; sensitive values can only veto. It is greedy: it promises no least loss. The same bytes for any number of
//! threads.

use std::borrow::Cow;

use super::cuts::Finished;
use super::in_parts::{Partition, in_parts};
use super::near::{NEAR, Orders, Remaining};
use super::{Row, found, least_loss, of_leaf};
use crate::class::{ClassTable, EncodedColumn, Held, Region, Union};
use crate::decimal::ratio;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::method::lattice::Options;
use crate::method::{Method, Outcome, Problem};
use crate::model::{Merge, min_size};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Setting};
use crate::progress::Phase;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "clusters",
        summary: "gathers rows that are alike, then moves them where they fit better; classes show intervals, labels or sets",
        parameters: "start",
        example: "method = { clusters = { start = \"cuts\" } }",
        paper: Some(papers::BYUN_2007),
    },
    parameters: &[START],
    keeps_max_level: false,
    shows_cuts: false,
    make: |settings, options| {
        let begins_with_cuts = settings.word(START.name)? == "cuts";
        Ok(Box::new(Clusters { begins_with_cuts, options: options.clone() }))
    },
};

/// The classes to begin with.
const START: Parameter = Parameter {
    name: "start",
    kind: Kind::Choice(&["neighbours", "cuts"]),
    absent: Absent::Means(Setting::Word(Cow::Borrowed("neighbours"))),
    summary: "begin with neighbours, or with the classes of `mondrian` by least loss",
};

/// A class of more than this many times the base classes that the policy asks for is given up.
const MOST_TIMES: usize = 4;

/// The policy is taken to ask for at least so many.
const LEAST: u64 = 16;

/// The base classes that may join a class, at most.
const MOST_NEAR: usize = 1_024;

/// How far from a base class that was left over a class is looked for.
const FAR: usize = 64;

/// The rounds of moves.
const ROUNDS: usize = 8;

/// Base classes of a larger class stay: to know what it shows without one of them, all others are looked at.
const MOST_MEMBERS: usize = 4_096;

/// A table of more base classes is cut into parts first: classes near one another stay near, and parts are searched in parallel.
const MOST_AT_ONCE: usize = 65_536;

/// A smaller gain may come from rounding alone.
pub(super) const ROUNDING: f64 = 1e-9;

/// The method that the [module](self) describes.
struct Clusters {
    begins_with_cuts: bool,
    options: Options,
}

/// A class that grows and shrinks; one that has lost all members stays empty.
#[derive(Default)]
struct Cluster {
    members: Vec<u32>,
    shown: Box<[Region]>,
    /// The leaves that it shows, by column.
    leaves: Box<[u64]>,
    rows: u64,
    /// The loss of each of its rows.
    of_row: f64,
}

impl Cluster {
    fn loss(&self) -> f64 {
        self.of_row * ratio(self.rows.into(), 1)
    }
}

/// The classes and what they are made of.
struct Clustering<'a> {
    problem: &'a Problem<'a>,
    orders: &'a Orders,
    /// The codes of each base class, one base class after another.
    codes: Vec<u32>,
    /// What a leaf more costs a row, by column.
    of_leaf: Vec<f64>,
    union: Union<'a>,
    /// Whether a class that holds keeps holding, whatever is added.
    survives_any_merging: bool,
    clusters: Vec<Cluster>,
    /// The class of each base class.
    cluster_of: Vec<Option<u32>>,
    /// The number of classes that were judged.
    judged: u64,
}

impl<'a> Clustering<'a> {
    fn table(&self) -> &'a ClassTable {
        self.problem.table
    }

    fn codes(&self, class: u32) -> &[u32] {
        let columns = self.of_leaf.len();
        &self.codes[class as usize * columns..][..columns]
    }

    fn rows_of(&self, class: u32) -> u64 {
        self.table().base().rows_of(class as usize)
    }

    fn holds(&mut self, classes: &[u32]) -> bool {
        self.judged += 1;
        self.union.holds(classes)
    }

    /// Returns the class of one base class.
    fn alone(&self, class: u32) -> Cluster {
        let codes = || self.table().columns().iter().zip(self.codes(class));
        let shown: Box<[Region]> = codes().map(|(column, code)| Region::of_one(column, *code)).collect();
        let leaves: Box<[u64]> = codes().map(|(column, code)| column.leaves_below(*code)).collect();
        let of_row = self.of_row(&leaves);
        Cluster { members: vec![class], shown, leaves, rows: self.rows_of(class), of_row }
    }

    /// Returns the class of these base classes.
    fn of(&self, members: &[u32]) -> Option<Cluster> {
        let (first, others) = members.split_first()?;
        let mut cluster = self.alone(*first);
        others.iter().for_each(|class| self.add(&mut cluster, *class));
        Some(cluster)
    }

    fn add(&self, cluster: &mut Cluster, class: u32) {
        for (at, (column, code)) in self.table().columns().iter().zip(self.codes(class)).enumerate() {
            if !cluster.shown[at].holds(column, *code) {
                cluster.shown[at] = cluster.shown[at].with(column, *code);
                cluster.leaves[at] = cluster.shown[at].leaves(column);
            }
        }
        cluster.members.push(class);
        cluster.rows += self.rows_of(class);
        cluster.of_row = self.of_row(&cluster.leaves);
    }

    /// Returns the loss of a row that shows these leaves.
    fn of_row(&self, leaves: &[u64]) -> f64 {
        leaves.iter().zip(&self.of_leaf).map(|(leaves, of_leaf)| of_leaf * more(*leaves, 1)).sum()
    }

    /// Returns the loss that a base class adds to a class, its own included; `None` if that is not less than `bound`.
    fn added(&self, cluster: &Cluster, class: u32, bound: f64) -> Option<f64> {
        let rows = ratio(self.rows_of(class).into(), 1);
        let all = ratio(cluster.rows.into(), 1) + rows;
        let mut added = cluster.of_row * rows;
        for (at, (column, code)) in self.table().columns().iter().zip(self.codes(class)).enumerate() {
            if added >= bound {
                return None;
            }
            let leaves = cluster.shown[at].leaves_with(column, *code);
            added += self.of_leaf[at] * more(leaves, cluster.leaves[at]) * all;
        }
        (added < bound).then_some(added)
    }

    /// Returns the loss of a class without one of its members.
    fn loss_without(&self, cluster: &Cluster, class: u32) -> f64 {
        let columns = self.table().columns();
        let leaves: Vec<u64> = (0..columns.len())
            .map(|at| {
                let code = self.codes(class)[at];
                let others = cluster.members.iter().filter(|member| **member != class);
                let mut others = others.map(|member| self.codes(*member)[at]);
                if others.clone().any(|other| other == code) {
                    return cluster.leaves[at];
                }
                match &cluster.shown[at] {
                    Region::Set(_) => cluster.leaves[at] - columns[at].leaves_below(code),
                    _ => {
                        let first = others.next().map(|code| Region::of_one(&columns[at], code));
                        let rest = first
                            .map(|first| others.fold(first, |region, code| region.with(&columns[at], code)));
                        rest.map_or(0, |rest| rest.leaves(&columns[at]))
                    }
                }
            })
            .collect();
        self.of_row(&leaves) * ratio((cluster.rows - self.rows_of(class)).into(), 1)
    }

    /// Returns the base classes, those first whose nearest neighbour in an order is closest.
    fn seeds(&self) -> Vec<u32> {
        let mut closest = vec![f64::INFINITY; self.table().base().len()];
        let distance = |a: u32, b: u32| {
            let columns = self.table().columns().iter().zip(&self.of_leaf);
            let columns = columns.zip(self.codes(a).iter().zip(self.codes(b)));
            let apart = |((column, of_leaf), (a, b)): ((&EncodedColumn, &f64), (&u32, &u32))| {
                let own = column.leaves_below(*a).max(column.leaves_below(*b));
                of_leaf * more(Region::of_one(column, *a).leaves_with(column, *b), own)
            };
            columns.map(apart).sum::<f64>()
        };
        for sorted in self.orders.sorted() {
            for pair in sorted.windows(2) {
                let apart = distance(pair[0], pair[1]);
                for class in pair {
                    closest[*class as usize] = closest[*class as usize].min(apart);
                }
            }
        }
        let mut seeds: Vec<u32> = (0u32..).take(closest.len()).collect();
        seeds.sort_by(|a, b| closest[*a as usize].total_cmp(&closest[*b as usize]));
        seeds
    }

    /// Gathers classes; returns the base classes that are left over.
    fn gather(&mut self) -> Result<Vec<u32>> {
        let mut remaining = Remaining::all(self.table(), self.orders)?;
        let mut is_taken = vec![false; self.cluster_of.len()];
        // The class for which each base class was last looked at.
        let mut seen_for = vec![u32::MAX; self.cluster_of.len()];
        let least = min_size(self.problem.requirements);
        let most = usize::try_from(least.max(LEAST)).unwrap_or(usize::MAX).saturating_mul(MOST_TIMES);
        let (mut left_over, mut gathered) = (Vec::new(), 0);
        for (number, seed) in (0u32..).zip(self.seeds()) {
            if is_taken[seed as usize] {
                continue;
            }
            let mut cluster = self.alone(seed);
            let mut near: Vec<(f64, u32)> = Vec::new();
            let mut last = seed;
            let holds = loop {
                is_taken[last as usize] = true;
                remaining.take(last);
                self.problem.stop.check()?;
                if cluster.rows >= least && self.holds(&cluster.members) {
                    break true;
                }
                if cluster.members.len() >= most {
                    break false;
                }
                remaining.near(last, |class| {
                    if seen_for[class as usize] != number {
                        seen_for[class as usize] = number;
                        near.push((0.0, class));
                    }
                });
                for (added, class) in &mut near {
                    *added = self.added(&cluster, *class, f64::INFINITY).unwrap_or(f64::INFINITY);
                }
                let by_loss =
                    |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1));
                if near.len() > MOST_NEAR {
                    near.select_nth_unstable_by(MOST_NEAR, by_loss);
                    near.truncate(MOST_NEAR);
                }
                let best = near.iter().enumerate().min_by(|(_, a), (_, b)| by_loss(a, b)).map(|(at, _)| at);
                let Some(best) = best else { break false };
                last = near.swap_remove(best).1;
                self.add(&mut cluster, last);
            };
            gathered += cluster.members.len() as u64;
            self.problem.progress.done(gathered);
            match holds {
                true => self.keep(cluster)?,
                false => left_over.extend(cluster.members),
            }
        }
        Ok(left_over)
    }

    fn keep(&mut self, cluster: Cluster) -> Result<()> {
        let number = u32::try_from(self.clusters.len()).map_err(Error::internal)?;
        cluster.members.iter().for_each(|class| self.cluster_of[*class as usize] = Some(number));
        self.clusters.push(cluster);
        Ok(())
    }

    /// Lets base classes that are left over join classes; those that no class can take become one, with as many classes as that
    /// needs.
    fn join(&mut self, left_over: Vec<u32>) -> Result<()> {
        let mut rest = Vec::new();
        for class in left_over {
            self.problem.stop.check()?;
            let mut near: Vec<u32> = Vec::new();
            for [before, after] in self.orders.around(class, FAR) {
                let known = |class: &u32| self.cluster_of[*class as usize];
                near.extend(before.iter().rev().filter_map(known).take(NEAR));
                near.extend(after.iter().filter_map(known).take(NEAR));
            }
            if near.is_empty() {
                near = (0u32..).take(self.clusters.len()).collect();
            }
            near.sort_unstable();
            near.dedup();
            let added = |number: u32| self.added(&self.clusters[number as usize], class, f64::INFINITY);
            let mut near: Vec<(f64, u32)> =
                near.into_iter().map(|number| (added(number).unwrap_or(f64::INFINITY), number)).collect();
            near.sort_by(|a, b| a.0.total_cmp(&b.0));
            let fits = near.into_iter().find(|(_, number)| self.can_take(*number, class));
            match fits {
                Some((_, number)) => self.put(class, number),
                None => rest.push(class),
            }
        }
        let mut taken_back = 1;
        while !rest.is_empty() && !self.holds(&rest) && !self.clusters.is_empty() {
            self.problem.stop.check()?;
            let from = self.clusters.len().saturating_sub(taken_back);
            rest.extend(self.clusters.drain(from..).flat_map(|cluster| cluster.members));
            taken_back *= 2;
        }
        if let Some(cluster) = self.of(&rest) {
            self.keep(cluster)?;
        }
        Ok(())
    }

    /// Returns whether a class that satisfies the policy does so with one more base class.
    fn can_take(&mut self, number: u32, class: u32) -> bool {
        if self.survives_any_merging {
            return true;
        }
        let members = [self.clusters[number as usize].members.as_slice(), &[class]].concat();
        self.holds(&members)
    }

    fn put(&mut self, class: u32, number: u32) {
        let mut cluster = std::mem::take(&mut self.clusters[number as usize]);
        self.add(&mut cluster, class);
        self.clusters[number as usize] = cluster;
        self.cluster_of[class as usize] = Some(number);
    }

    /// Moves base classes to classes that they fit better.
    fn settle(&mut self) -> Result<()> {
        // Moves are counted, to know what has changed since a base class was last looked at.
        let mut moves = 1u64;
        let mut changed_at = vec![moves; self.clusters.len()];
        let mut looked_at = vec![0u64; self.cluster_of.len()];
        let mut seen_for = vec![u32::MAX; self.clusters.len()];
        for _ in 0..ROUNDS {
            let before = moves;
            seen_for.fill(u32::MAX);
            for class in (0u32..).take(self.cluster_of.len()) {
                let Some(own) = self.cluster_of[class as usize] else { continue };
                let mut near = Vec::new();
                let mut is_new = changed_at[own as usize] > looked_at[class as usize];
                for neighbour in self.orders.around(class, NEAR).flatten().flatten() {
                    let Some(other) = self.cluster_of[*neighbour as usize].filter(|other| *other != own)
                    else {
                        continue;
                    };
                    if seen_for[other as usize] != class {
                        seen_for[other as usize] = class;
                        is_new |= changed_at[other as usize] > looked_at[class as usize];
                        near.push(other);
                    }
                }
                looked_at[class as usize] = moves;
                if !is_new || near.is_empty() {
                    continue;
                }
                self.problem.stop.check()?;
                if let Some(to) = self.better(class, own, near) {
                    moves += 1;
                    (changed_at[own as usize], changed_at[to as usize]) = (moves, moves);
                }
            }
            if moves == before {
                break;
            }
        }
        Ok(())
    }

    /// Moves a base class to the class near it that it fits best, if less is lost and both satisfy the policy; returns that class.
    fn better(&mut self, class: u32, own: u32, near: Vec<u32>) -> Option<u32> {
        let cluster = &self.clusters[own as usize];
        if cluster.members.len() > MOST_MEMBERS {
            return None;
        }
        let gain = cluster.loss() - self.loss_without(cluster, class);
        let mut best: Option<(f64, u32)> = None;
        for other in near {
            let bound = best.map_or(gain, |(added, _)| added) - ROUNDING;
            if let Some(added) = self.added(&self.clusters[other as usize], class, bound) {
                best = Some((added, other));
            }
        }
        let (_, to) = best?;
        let without: Vec<u32> = cluster.members.iter().copied().filter(|member| *member != class).collect();
        if !(without.is_empty() || self.holds(&without)) || !self.can_take(to, class) {
            return None;
        }
        self.clusters[own as usize] = self.of(&without).unwrap_or_default();
        self.put(class, to);
        Some(to)
    }
}

/// Returns by how much a number of leaves is greater than another one.
fn more(leaves: u64, than: u64) -> f64 {
    ratio(leaves.saturating_sub(than).into(), 1)
}

impl Clusters {
    /// Returns the classes of a table: none if all base classes together do not satisfy the requirements.
    fn partition(&self, problem: &Problem<'_>) -> Result<Partition> {
        let Problem { table, requirements, .. } = *problem;
        let all: Vec<u32> = (0u32..).take(table.base().len()).collect();
        let mut held = Held::new(table.budget());
        // Its codes, its class, the regions that its class shows, when it was looked at, and its place among the seeds.
        let of_class =
            2 * size_of::<(u64, Cluster)>() + table.columns().len() * size_of::<(Region, u64, u32)>();
        held.at_least(all.len() * of_class)?;
        let mut union = Union::new(table, requirements)?;
        if all.is_empty() || !union.holds(&all) {
            return Ok((Vec::new(), 0));
        }
        let orders = Orders::new(table)?;
        let code = |class: &u32, at: usize| table.code(table.base(), *class as usize, at);
        let codes = all.iter().flat_map(|class| (0..table.columns().len()).map(move |at| code(class, at)));
        let mut clustering = Clustering {
            problem,
            orders: &orders,
            codes: codes.collect(),
            of_leaf: table.columns().iter().map(of_leaf).collect(),
            union,
            survives_any_merging: requirements
                .iter()
                .all(|one| one.model.merge(table.counted()) == Merge::Any),
            clusters: Vec::new(),
            cluster_of: vec![None; all.len()],
            judged: 0,
        };
        if self.begins_with_cuts {
            let (mut parts, tried) = least_loss::cut_all(problem)?;
            parts.sort_unstable_by_key(|part| part.classes.iter().copied().min());
            for cluster in parts.iter().filter_map(|part| clustering.of(&part.classes)).collect::<Vec<_>>() {
                clustering.keep(cluster)?;
            }
            clustering.judged += tried;
        } else {
            let left_over = clustering.gather()?;
            clustering.join(left_over)?;
        }
        clustering.settle()?;
        let clusters = clustering.clusters.into_iter().filter(|cluster| !cluster.members.is_empty());
        Ok((clusters.map(|cluster| cluster.members).collect(), clustering.judged))
    }
}

impl Method for Clusters {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let base = problem.table.base().len();
        problem.progress.begin(Phase::Search, base as u64);
        let (classes, judged) = match base {
            ..=MOST_AT_ONCE => self.partition(problem)?,
            _ => in_parts(problem, MOST_AT_ONCE, |problem| self.partition(problem))?,
        };
        let parts = classes.into_iter().map(|classes| Finished { classes, shown: None });
        found(problem, &self.options, parts.collect(), judged)
    }
}
