//! Cuts of base classes in two, between those that are far apart.

use super::points::Points;
use crate::error::Result;
use crate::method::partition::cuts::Judge;

/// What came of a cut.
pub(super) enum InTwo {
    /// Two sides that satisfy every requirement.
    Cut([Vec<u32>; 2]),
    /// The base classes, which were not cut.
    Whole(Vec<u32>),
}

/// More base classes are cut near the middle, whatever the sum of squares.
const MOST_RATED: usize = 64;

/// The cuts that are judged, the best first.
const MOST_TRIED: usize = 8;

/// Sorts base classes by which of two distant ones they are nearer to, and cuts them where both sides
/// satisfy every requirement: where the sum of squares falls most, or, of more than 64, as near to the
/// middle as possible, of eight places.
///
/// # Errors
/// An interruption.
pub(super) fn in_two(points: &Points, classes: Vec<u32>, least: f64, judge: &mut Judge<'_>) -> Result<InTwo> {
    let center = points.center(&classes);
    if center.rows < 2.0 * least || classes.len() < 2 {
        return Ok(InTwo::Whole(classes));
    }
    let one = farthest(&classes, |class| points.distance_from(&center, class, f64::INFINITY));
    let other = farthest(&classes, |class| points.distance(one, class));
    let side = |class: u32| points.distance(one, class) - points.distance(other, class);
    let mut sorted: Vec<(f64, u32)> = classes.iter().map(|class| (side(*class), *class)).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let sorted: Vec<u32> = sorted.into_iter().map(|(_, class)| class).collect();
    // The rows before each place.
    let mut rows = 0.0;
    let mut before = sorted.iter().map(|class| {
        rows += points.rows(*class);
        rows - points.rows(*class)
    });
    let cuts: Vec<usize> = if sorted.len() > MOST_RATED {
        let middle = before.position(|rows| rows * 2.0 >= center.rows).unwrap_or(0);
        let step = sorted.len() / (MOST_TRIED + 1);
        let beside = |far: usize| [middle.checked_sub(far * step), Some(middle + far * step)];
        let places = (0..).map(beside).take(MOST_TRIED).flatten().flatten();
        let mut places: Vec<usize> = places.filter(|at| (1..sorted.len()).contains(at)).collect();
        places.dedup();
        places.truncate(MOST_TRIED);
        places
    } else {
        let are_enough = |rows: f64| rows >= least && center.rows - rows >= least;
        let squares = |classes: &[u32]| points.squares(classes, &points.center(classes));
        let possible = before.enumerate().filter(|(_, rows)| are_enough(*rows)).map(|(at, _)| at);
        let mut rated: Vec<(f64, usize)> =
            possible.map(|at| (squares(&sorted[..at]) + squares(&sorted[at..]), at)).collect();
        rated.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        rated.into_iter().take(MOST_TRIED).map(|(_, at)| at).collect()
    };
    for at in cuts {
        let (left, right) = sorted.split_at(at);
        if judge.both_hold(left, right)? {
            return Ok(InTwo::Cut([left.to_vec(), right.to_vec()]));
        }
    }
    Ok(InTwo::Whole(classes))
}

/// Returns the base class that is farthest, of several the first; they must not be empty.
pub(super) fn farthest(classes: &[u32], distance: impl Fn(u32) -> f64) -> u32 {
    let (mut farthest, mut most) = (classes[0], f64::NEG_INFINITY);
    for class in classes {
        let distance = distance(*class);
        if distance > most {
            (farthest, most) = (*class, distance);
        }
    }
    farthest
}
