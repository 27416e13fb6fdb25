//! `mdav`: maximum distance to the average vector, the classic microaggregation.
//!
//! While the rows that are left make three classes, the base class farthest from their center and its
//! nearest neighbours become a class, and so do the one farthest from that and its own neighbours. Of
//! what then is left, two classes are made if it is enough for two, else one (Domingo-Ferrer & Torra
//! 2005). A class takes neighbours until it satisfies every requirement; with k-anonymity of rows that
//! all differ these are the k of the paper. Deviations: a table of more than 8,192 base classes is cut
//! into parts first. Base classes left over at the end join the nearest class, provided that it still
//! satisfies the requirements.

use super::cut::farthest;
use super::points::{Points, Remaining};
use super::{CENTROID, MOST_AT_ONCE, Microaggregation, PartSize, row};
use crate::doc::Doc;
use crate::error::Result;
use crate::method::partition::Row;
use crate::method::partition::cuts::Judge;
use crate::papers;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = row(
    &Doc {
        name: "mdav",
        summary: "microaggregation: gathers rows around the farthest ones; classes show centroids",
        parameters: "centroid",
        example: "method = { mdav = { centroid = \"median\" } }",
        paper: Some(papers::DOMINGO_FERRER_TORRA_2005),
    },
    &[CENTROID],
    |settings, _| Microaggregation::boxed(settings, PartSize::Count(MOST_AT_ONCE), mdav),
);

/// The clusters that a base class which is left over tries to join.
const MOST_TRIED: usize = 64;

/// Clusters base classes; those that fit into no class are in none.
///
/// # Errors
/// An interruption.
pub(super) fn mdav(
    points: &Points,
    classes: &[u32],
    least: f64,
    judge: &mut Judge<'_>,
) -> Result<Vec<Vec<u32>>> {
    let mut left = classes.to_vec();
    left.sort_unstable();
    let mut center = Remaining::new(points, &left);
    let mut clusters = Vec::new();
    let rows = |left: &[u32]| left.iter().map(|class| points.rows(*class)).sum::<f64>();
    let mut rows_left = rows(&left);
    while rows_left >= 2.0 * least && !left.is_empty() {
        let seed = farthest(&left, center.distances());
        let pair = rows_left >= 3.0 * least;
        let Some(first) = gather(points, seed, &left, least, judge)? else { break };
        take(&mut left, &first, &mut center);
        rows_left -= rows(&first);
        clusters.push(first);
        if pair && !left.is_empty() {
            let seed = farthest(&left, |class| points.distance(seed, class));
            let Some(second) = gather(points, seed, &left, least, judge)? else { break };
            take(&mut left, &second, &mut center);
            rows_left -= rows(&second);
            clusters.push(second);
        }
    }
    if !left.is_empty() && judge.holds(&left)? {
        clusters.push(left);
    } else {
        place_leftovers(points, left, &mut clusters, judge)?;
    }
    Ok(clusters)
}

/// Returns a base class with its nearest neighbours: as many as satisfy the requirements. `None` if
/// all that are left do not.
fn gather(
    points: &Points,
    seed: u32,
    left: &[u32],
    least: f64,
    judge: &mut Judge<'_>,
) -> Result<Option<Vec<u32>>> {
    let mut near: Vec<(f64, u32)> =
        left.iter().map(|class| (points.distance(seed, *class), *class)).collect();
    // The seed comes first, also among equals.
    let by_distance = |a: &(f64, u32), b: &(f64, u32)| {
        a.0.total_cmp(&b.0).then((a.1 != seed).cmp(&(b.1 != seed))).then(a.1.cmp(&b.1))
    };
    let (mut cluster, mut rows, mut sorted) = (Vec::new(), 0.0, 0);
    while cluster.len() < near.len() {
        if cluster.len() == sorted {
            // Sorting all of them would take longer than finding them.
            let wanted = (4 * sorted).max(64).min(near.len());
            if wanted < near.len() {
                near[sorted..].select_nth_unstable_by(wanted - sorted - 1, by_distance);
            }
            near[sorted..wanted].sort_unstable_by(by_distance);
            sorted = wanted;
        }
        let class = near[cluster.len()].1;
        cluster.push(class);
        rows += points.rows(class);
        if rows >= least && judge.holds(&cluster)? {
            return Ok(Some(cluster));
        }
    }
    Ok(None)
}

fn take(left: &mut Vec<u32>, cluster: &[u32], center: &mut Remaining<'_>) {
    let mut taken = cluster.to_vec();
    taken.sort_unstable();
    left.retain(|class| taken.binary_search(class).is_err());
    center.take(cluster);
}

/// Adds each base class to the nearest class that still satisfies the requirements with it.
fn place_leftovers(
    points: &Points,
    left: Vec<u32>,
    clusters: &mut [Vec<u32>],
    judge: &mut Judge<'_>,
) -> Result<()> {
    let mut centers: Vec<_> = clusters.iter().map(|cluster| points.center(cluster)).collect();
    for class in left {
        let added = |at: usize| {
            let distance = points.distance_from(&centers[at], class, f64::INFINITY);
            (centers[at].added(points.rows(class), distance), at)
        };
        let mut nearest: Vec<(f64, usize)> = (0..clusters.len()).map(added).collect();
        nearest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, at) in nearest.into_iter().take(MOST_TRIED) {
            clusters[at].push(class);
            if judge.holds(&clusters[at])? {
                centers[at] = points.center(&clusters[at]);
                break;
            }
            clusters[at].pop();
        }
    }
    Ok(())
}
