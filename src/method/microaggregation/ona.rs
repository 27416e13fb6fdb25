//! `ona`: near-optimal microaggregation by moving rows (after Soria-Comas, Domingo-Ferrer & Mulero 2019).
//!
//! It begins with the classes of [`mdav`](super::mdav), and again with those that come of cutting the
//! table in two, again and again, while both sides satisfy every requirement. Then, for each base
//! class in turn:
//! - it moves to the class in which the sum of squares grows by less than it falls in its own, if
//!   both then satisfy the requirements;
//! - where its own class cannot do without it, that class is dissolved if all its members together
//!   cost less in other classes;
//! - a class that can be cut in two, whose sum of squares never grows by that, is cut.
//!
//! That is repeated until nothing changes, at most 30 times. The sum of squares falls with each step. If
//! `mdav` places every row, the result with the lesser sum is taken, so it is never greater than that of
//! `mdav`; otherwise the one that places all rows. Deviations from the paper: it begins with random
//! classes, which would be others each time, and either start alone lost more on some of the generated
//! tables; more than 8,192 base classes are cut into parts first.

use super::cut::{InTwo, in_two};
use super::mdav::mdav;
use super::points::{Center, Points};
use super::{CENTROID, MOST_AT_ONCE, Microaggregation, PartSize, row};
use crate::doc::Doc;
use crate::error::Result;
use crate::method::partition::Row;
use crate::method::partition::cuts::Judge;
use crate::papers;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = row(
    &Doc {
        name: "ona",
        summary: "microaggregation: moves rows between classes until none gains; classes show centroids",
        parameters: "centroid",
        example: "method = \"ona\"",
        paper: Some(papers::SORIA_COMAS_2019),
    },
    &[CENTROID],
    |settings, _| Microaggregation::boxed(settings, PartSize::Count(MOST_AT_ONCE), ona),
);

/// The most rounds.
const ROUNDS: usize = 30;

/// A smaller gain may come from rounding alone.
const ROUNDING: f64 = 1e-9;

/// A class that gains and loses members; a dissolved one has none.
struct Cluster {
    members: Vec<u32>,
    center: Center,
    squares: f64,
    /// The step in which it last changed.
    changed: u64,
}

struct Clusters<'a, 'j> {
    points: &'a Points,
    /// No class of fewer rows satisfies the requirements.
    least: f64,
    judge: &'a mut Judge<'j>,
    clusters: Vec<Cluster>,
    /// The cluster of each base class.
    cluster_of: Vec<usize>,
    /// The step in which each base class was last looked at.
    seen: Vec<u64>,
    /// The changes so far.
    step: u64,
}

/// Finds clusters among base classes.
///
/// # Errors
/// An interruption.
pub(super) fn ona(
    points: &Points,
    classes: &[u32],
    least: f64,
    judge: &mut Judge<'_>,
) -> Result<Vec<Vec<u32>>> {
    let gathered = mdav(points, classes, least, judge)?;
    let (mut cut, mut open) = (Vec::new(), vec![classes.to_vec()]);
    while let Some(part) = open.pop() {
        match in_two(points, part, least, judge)? {
            InTwo::Cut(sides) => open.extend(sides),
            InTwo::Whole(part) => cut.push(part),
        }
    }
    let squares = |clusters: &[Vec<u32>]| {
        let of_cluster = |cluster: &Vec<u32>| points.squares(cluster, &points.center(cluster));
        clusters.iter().map(of_cluster).sum::<f64>()
    };
    let all = |clusters: &[Vec<u32>]| clusters.iter().map(Vec::len).sum::<usize>();
    let gathered = improve(points, gathered, least, judge)?;
    let cut = improve(points, cut, least, judge)?;
    // Those of `mdav` may leave base classes over.
    let is_better = all(&gathered) == all(&cut) && squares(&gathered) <= squares(&cut);
    Ok(if is_better { gathered } else { cut })
}

/// Moves base classes between clusters while that lessens the sum of squares.
fn improve(
    points: &Points,
    start: Vec<Vec<u32>>,
    least: f64,
    judge: &mut Judge<'_>,
) -> Result<Vec<Vec<u32>>> {
    let mut order: Vec<u32> = start.iter().flatten().copied().collect();
    order.sort_unstable();
    let count = order.last().map_or(0, |last| *last as usize + 1);
    let (cluster_of, seen) = (vec![0; count], vec![0; count]);
    let mut all = Clusters { points, least, judge, clusters: Vec::new(), cluster_of, seen, step: 0 };
    start.into_iter().for_each(|members| all.add(members));
    for _ in 0..ROUNDS {
        let before = all.step;
        for class in &order {
            all.move_one(*class)?;
        }
        if all.step == before {
            break;
        }
    }
    Ok(all
        .clusters
        .into_iter()
        .map(|cluster| cluster.members)
        .filter(|members| !members.is_empty())
        .collect())
}

impl Clusters<'_, '_> {
    /// Makes a cluster of base classes.
    fn cluster(&self, mut members: Vec<u32>) -> Cluster {
        members.sort_unstable();
        let center = self.points.center(&members);
        let squares = self.points.squares(&members, &center);
        Cluster { members, center, squares, changed: self.step }
    }

    fn add(&mut self, members: Vec<u32>) {
        let at = self.clusters.len();
        self.clusters.push(self.cluster(Vec::new()));
        self.set(at, members);
    }

    /// Gives a cluster other members.
    fn set(&mut self, at: usize, members: Vec<u32>) {
        self.step += 1;
        self.clusters[at] = self.cluster(members);
        self.clusters[at].members.iter().for_each(|class| self.cluster_of[*class as usize] = at);
    }

    /// Moves a base class, or dissolves its cluster, if that lessens the sum of squares.
    fn move_one(&mut self, class: u32) -> Result<()> {
        let from = self.cluster_of[class as usize];
        let own = &self.clusters[from];
        // Otherwise only clusters that have changed meanwhile can be better.
        let since = if own.changed > self.seen[class as usize] { 0 } else { self.seen[class as usize] };
        self.seen[class as usize] = self.step;
        let rows = self.points.rows(class);
        let others: Vec<u32> = own.members.iter().copied().filter(|other| *other != class).collect();
        if own.center.rows - rows < self.least || others.is_empty() || !self.judge.holds(&others)? {
            // Once for each cluster.
            return if self.clusters[from].members.first() == Some(&class) {
                self.dissolve(from)
            } else {
                Ok(())
            };
        }
        let own = &self.clusters[from];
        let saved = own.center.saved(rows, self.points.distance_from(&own.center, class, f64::INFINITY));
        let Some((to, _)) = self.nearest(class, from, saved * (1.0 - ROUNDING), since) else { return Ok(()) };
        let members = [&self.clusters[to].members[..], &[class]].concat();
        if self.judge.holds(&members)? {
            self.set(from, others);
            self.set(to, members);
            self.split(to)?;
        }
        Ok(())
    }

    /// Returns the cluster that has changed since a step and whose sum of squares grows least by a base
    /// class, and by how much, if that is less than `bound`.
    fn nearest(&self, class: u32, except: usize, bound: f64, since: u64) -> Option<(usize, f64)> {
        let rows = self.points.rows(class);
        let (mut nearest, mut least) = (None, bound);
        for (at, cluster) in self.clusters.iter().enumerate() {
            if cluster.changed <= since || at == except || cluster.members.is_empty() {
                continue;
            }
            let bound = least / cluster.center.added(rows, 1.0);
            let distance = self.points.distance_from(&cluster.center, class, bound);
            if distance < bound {
                (nearest, least) = (Some(at), cluster.center.added(rows, distance));
            }
        }
        nearest.map(|at| (at, least))
    }

    /// Gives the members of a cluster to others if that lessens the sum of squares.
    fn dissolve(&mut self, from: usize) -> Result<()> {
        let squares = self.clusters[from].squares * (1.0 - ROUNDING);
        let members = self.clusters[from].members.clone();
        let (mut moved, mut added) = (Vec::with_capacity(members.len()), 0.0);
        for class in members {
            let Some((to, by)) = self.nearest(class, from, squares - added, 0) else { return Ok(()) };
            added += by;
            moved.push((to, class));
        }
        moved.sort_unstable();
        // Those that join the same cluster move its center further than each alone.
        let (mut joined, mut added) = (Vec::new(), 0.0);
        for together in moved.chunk_by(|a, b| a.0 == b.0) {
            let to = together[0].0;
            let mut members = self.clusters[to].members.clone();
            members.extend(together.iter().map(|(_, class)| *class));
            if !self.judge.holds(&members)? {
                return Ok(());
            }
            added += self.cluster(members.clone()).squares - self.clusters[to].squares;
            joined.push((to, members));
        }
        if added < squares {
            self.set(from, Vec::new());
            for (to, members) in joined {
                self.set(to, members);
                self.split(to)?;
            }
        }
        Ok(())
    }

    /// Cuts a cluster in two, again and again, while both sides satisfy the requirements.
    fn split(&mut self, at: usize) -> Result<()> {
        if self.clusters[at].center.rows < 2.0 * self.least {
            return Ok(());
        }
        let members = self.clusters[at].members.clone();
        if let InTwo::Cut([one, other]) = in_two(self.points, members, self.least, self.judge)? {
            self.set(at, one);
            self.add(other);
            let last = self.clusters.len() - 1;
            self.split(at)?;
            self.split(last)?;
        }
        Ok(())
    }
}
