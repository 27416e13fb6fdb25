//! Finds all minimal nodes: anonymous nodes with no anonymous node below them.
//!
//! The levels of a node are its distance vector from the original table (Samarati & Sweeney 1998);
//! a user who prefers one column over another chooses among these nodes. When anonymity cannot be
//! lost going up, intervals of the lattice are halved until their lowest node is anonymous or their
//! highest is not; otherwise every node is visited.

use super::evaluate::{Evaluator, Purpose};
use super::exhaustive::for_every_node;
use super::{Found, Lattice, is_below, lost_going_up};
use crate::error::Result;

/// Returns the minimal nodes in order of preference, and how many nodes were evaluated.
///
/// # Errors
/// A data error when memory runs out, an interruption; a policy error when more than two million
/// nodes would all have to be visited.
pub fn minimal(lattice: Lattice<'_>) -> Result<(Vec<Found>, u64)> {
    let (mut found, evaluated) = match lost_going_up(lattice.problem) {
        None => by_halves(lattice)?,
        Some(_) => by_visiting(lattice)?,
    };
    found.sort_by(Found::compare);
    Ok((found, evaluated))
}

/// Adds a node to the minimal ones, unless it is above one of them, and drops those above it.
fn offer(found: &mut Vec<Found>, node: Found) {
    if !found.iter().any(|known| is_below(&known.levels, &node.levels)) {
        found.retain(|known| !is_below(&node.levels, &known.levels));
        found.push(node);
    }
}

fn by_visiting(lattice: Lattice<'_>) -> Result<(Vec<Found>, u64)> {
    let problem = lattice.problem;
    let (mut found, mut seen) = (Vec::new(), 0);
    let evaluated = for_every_node(lattice, &mut |node| {
        seen += 1;
        problem.progress.done(seen);
        if node.is_anonymous(problem.limit) {
            offer(&mut found, Found::new(node, problem.objective));
        }
    })?;
    Ok((found, evaluated))
}

fn by_halves(lattice: Lattice<'_>) -> Result<(Vec<Found>, u64)> {
    let problem = lattice.problem;
    let mut evaluator = Evaluator::new(problem);
    let mut refused: Vec<Vec<usize>> = Vec::new();
    let mut found: Vec<Found> = Vec::new();
    let ends = lattice.options.ranges.iter().map(|range| (*range.start(), *range.end()));
    let mut open: Vec<(Vec<usize>, Vec<usize>)> = vec![ends.unzip()];
    while let Some((low, high)) = open.pop() {
        problem.progress.done(evaluator.evaluated());
        let nothing_new = refused.iter().any(|above| is_below(&high, above))
            || found.iter().any(|below| is_below(&below.levels, &low) && below.levels != low);
        if nothing_new {
            continue;
        }
        evaluator.evaluate(std::slice::from_ref(&high), Purpose::Verdict, |_, _| {})?;
        let is_anonymous = |evaluator: &Evaluator<'_>, levels: &[usize]| {
            evaluator.known(levels).and_then(|facts| facts.anonymous.clone())
        };
        if is_anonymous(&evaluator, &high).is_none() {
            refused.retain(|known| !is_below(known, &high));
            refused.push(high);
            continue;
        }
        evaluator.evaluate(std::slice::from_ref(&low), Purpose::Classes, |_, _| {})?;
        if let Some(node) = is_anonymous(&evaluator, &low) {
            offer(&mut found, node);
            continue;
        }
        let widest = (0..low.len()).rev().max_by_key(|column| high[*column] - low[*column]);
        let Some(column) = widest.filter(|column| low[*column] < high[*column]) else { continue };
        let middle = usize::midpoint(low[column], high[column]);
        let (mut upper_low, mut lower_high) = (low.clone(), high.clone());
        upper_low[column] = middle + 1;
        lower_high[column] = middle;
        open.push((upper_low, high));
        open.push((low, lower_high));
    }
    Ok((found, evaluator.evaluated()))
}
