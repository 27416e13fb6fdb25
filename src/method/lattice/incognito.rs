//! `incognito`: all anonymous nodes, found from few columns to many; then the best of them.
//!
//! Incognito (LeFevre, DeWitt & Ramakrishnan 2005) looks at the nodes of every subset of the columns,
//! small subsets first. Two properties save it most evaluations:
//!
//! - *Subset*: a node is anonymous only if it stays anonymous when any one column is left out.
//! - *Generalization*: a node above an anonymous one of the same columns is anonymous.
//!
//! Classes without a column are those in which it is at its top, where all values share one label. So
//! a node of a subset is a node of the whole lattice, and both properties say that anonymity
//! survives going up. The levels of a column are numbered
//!
//! ```text
//! 0 the top, 1 the lowest allowed level, 2 the next, ...
//! ```
//! and a node by these digits, the first column first. The nodes that decide a node have smaller
//! numbers: without a column (digit 0), and one level lower (digit less 1). So one pass in the order
//! of the numbers decides every node.
//!
//! Deviations from the paper: it joins the candidates of i columns from those of i - 1; the order of
//! numbers passes them without a join and evaluates the same nodes. Two subsets whose nodes are the
//! same, because one has a column at the top, are evaluated once. Any models that allow both
//! properties stand in place of k-anonymity, with a suppression limit. The paper returns all
//! anonymous nodes of all columns; of these the best by the objective are returned. A node that
//! cannot be one of them, by the losses known below it, is not evaluated for its loss.
//!
//! # Contract
//! Proven best for every loss measure, ties included. Refused where a node above an anonymous one need
//! not be anonymous, as by [`samarati`](super::samarati). At most two million nodes, which include the
//! nodes with columns at their top where `max_level` rules that out: these are evaluated, and counted
//! as evaluated, but never chosen. The same nodes for any number of threads: it uses one.

use std::ops::RangeInclusive;

use super::evaluate::{Evaluator, NodeFacts, Purpose};
use super::{Best, MAX_NODES, Options, Row, check_survives_going_up};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::method::{Method, Outcome, Problem};
use crate::papers;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "incognito",
        summary: "all anonymous nodes from subsets of the columns; of these the proven best",
        parameters: "",
        example: "method = \"incognito\"",
        paper: Some(papers::LEFEVRE_2005),
    },
    parameters: &[],
    takes_effort: false,
    check: |_, _| Ok(()),
    make: |_, options| Ok(Box::new(Incognito { options })),
};

/// The method that the [module](self) describes.
#[derive(Debug, Clone)]
pub struct Incognito {
    /// The part of the lattice to search.
    pub options: Options,
}

impl Method for Incognito {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        check_survives_going_up(ROW.doc.name, problem)?;
        let numbers = Numbers::new(problem, &self.options)?;
        let mut evaluator = Evaluator::new(problem);
        let anonymous = anonymous(problem, &numbers, &mut evaluator)?;
        let best = best(problem, &self.options, &numbers, &anonymous, &mut evaluator)?;
        let bound = best.found.first().map(|found| found.loss);
        let (nodes, evaluated) = (Some(self.options.nodes()), evaluator.evaluated());
        Ok(Outcome { best: best.candidates(), nodes, evaluated, proven: true, bound })
    }
}

/// Returns for each number whether its node is anonymous.
fn anonymous(problem: &Problem<'_>, numbers: &Numbers, evaluator: &mut Evaluator<'_>) -> Result<Vec<bool>> {
    let mut anonymous = vec![false; numbers.count];
    for number in 0..numbers.count {
        let below_top: Vec<(usize, usize)> = numbers.below_top(number).collect();
        let may_hold = below_top.iter().all(|(digit, stride)| anonymous[number - digit * stride]);
        let must_hold = below_top.iter().any(|(digit, stride)| *digit > 1 && anonymous[number - stride]);
        if may_hold && !must_hold {
            let levels = numbers.levels(number);
            anonymous[number] =
                facts(problem, evaluator, &levels)?.is_some_and(|facts| facts.anonymous.is_some());
        } else {
            anonymous[number] = may_hold;
        }
    }
    Ok(anonymous)
}

/// Returns the best of the anonymous nodes within the allowed levels.
fn best(
    problem: &Problem<'_>,
    options: &Options,
    numbers: &Numbers,
    anonymous: &[bool],
    evaluator: &mut Evaluator<'_>,
) -> Result<Best> {
    let mut best = Best::new(options.top);
    // What each node loses at least, by its number.
    let mut bounds = vec![f64::NEG_INFINITY; numbers.count];
    let mut next: Option<Vec<usize>> = Some(options.ranges.iter().map(|range| *range.start()).collect());
    while let Some(levels) = next {
        next = after(&levels, &options.ranges);
        let number = numbers.of(&levels);
        if !anonymous[number] {
            continue;
        }
        let mut below = levels.clone();
        for (column, range) in options.ranges.iter().enumerate() {
            if levels[column] > *range.start() {
                below[column] -= 1;
                bounds[number] = bounds[number].max(bounds[numbers.of(&below)]);
                below[column] += 1;
            }
        }
        if best.can_enter(bounds[number], &levels)
            && let Some(facts) = facts(problem, evaluator, &levels)?
        {
            facts.anonymous.iter().for_each(|found| best.offer(found.clone()));
            bounds[number] = bounds[number].max(facts.least_above.unwrap_or(f64::NEG_INFINITY));
        }
    }
    Ok(best)
}

/// Returns the facts about a node; evaluates it if it is not known.
fn facts<'a>(
    problem: &Problem<'_>,
    evaluator: &'a mut Evaluator<'_>,
    levels: &[usize],
) -> Result<Option<&'a NodeFacts>> {
    evaluator.evaluate(&[levels.to_vec()], Purpose::Verdict, |_, _| {})?;
    problem.progress.done(evaluator.evaluated());
    Ok(evaluator.known(levels))
}

/// Returns the node after this one, the last column counting first; nodes below one come before it.
fn after(levels: &[usize], ranges: &[RangeInclusive<usize>]) -> Option<Vec<usize>> {
    let column = (0..levels.len()).rev().find(|column| levels[*column] < *ranges[*column].end())?;
    let mut next = levels.to_vec();
    next[column] += 1;
    for (level, range) in next.iter_mut().zip(ranges).skip(column + 1) {
        *level = *range.start();
    }
    Some(next)
}

/// The numbers of the nodes of all subsets of the columns.
struct Numbers {
    columns: Vec<Digits>,
    count: usize,
}

/// The digits of one column: 0 is its top, the others are its allowed levels below the top.
struct Digits {
    top: usize,
    lowest: usize,
    count: usize,
    /// What the digit 1 adds to a number.
    stride: usize,
}

impl Numbers {
    /// Numbers the nodes.
    ///
    /// # Errors
    /// A policy error when there are too many.
    fn new(problem: &Problem<'_>, options: &Options) -> Result<Self> {
        let columns = problem.table.columns().iter().zip(&options.ranges);
        let mut columns: Vec<Digits> = columns
            .map(|(column, range)| {
                let (top, lowest) = (column.height(), *range.start());
                let count = 1 + range.clone().filter(|level| *level < top).count();
                Digits { top, lowest, count, stride: 1 }
            })
            .collect();
        let mut count = 1usize;
        for column in columns.iter_mut().rev() {
            column.stride = count;
            count = count.saturating_mul(column.count);
        }
        if count as u64 > MAX_NODES {
            return Err(Error::policy(format!(
                "`{}` would visit more than {MAX_NODES} nodes, because it looks at each column at its top as well: \
                 raise min_level, or use method = \"optimal\"",
                ROW.doc.name
            )));
        }
        Ok(Self { columns, count })
    }

    /// Returns the digits of the columns that are below their top in a node, each with what the digit
    /// 1 adds to its number.
    fn below_top(&self, number: usize) -> impl Iterator<Item = (usize, usize)> {
        let digits = self.columns.iter().map(move |column| (column.digit(number), column.stride));
        digits.filter(|(digit, _)| *digit > 0)
    }

    /// Returns the levels of a node.
    fn levels(&self, number: usize) -> Vec<usize> {
        let level = |column: &Digits| match column.digit(number) {
            0 => column.top,
            digit => column.lowest + digit - 1,
        };
        self.columns.iter().map(level).collect()
    }

    /// Returns the number of the node with these levels.
    fn of(&self, levels: &[usize]) -> usize {
        let digit = |column: &Digits, level: usize| match level == column.top {
            true => 0,
            false => level + 1 - column.lowest,
        };
        self.columns.iter().zip(levels).map(|(column, level)| digit(column, *level) * column.stride).sum()
    }
}

impl Digits {
    fn digit(&self, number: usize) -> usize {
        number / self.stride % self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::tests::samarati;
    use crate::method::lattice::classic_tests::{choice, samarati_2001};

    /// The papers print only the minimal nodes; the others are those above them.
    #[test]
    fn samarati_1998_and_2001() {
        let sorted = |table: &crate::class::ClassTable, k: u64, limit: u64| {
            let mut all = choice(&ROW, table, k, limit).0;
            all.sort();
            all
        };
        assert_eq!(sorted(&samarati(), 2, 0), [[0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(sorted(&samarati(), 3, 0), [[0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(sorted(&samarati_2001(), 2, 0), [[1, 1], [1, 2]]);
        assert_eq!(sorted(&samarati_2001(), 2, 1), [[0, 2], [1, 0], [1, 1], [1, 2]]);
        assert!(sorted(&samarati(), 13, 0).is_empty());
    }

    /// Race alone fails because of one white person, so no node of both columns is evaluated. Five nodes
    /// are: all rows together, race alone, and the ZIP code alone at three levels. The last of these holds
    /// because the level below it does, and is evaluated only for its loss.
    #[test]
    fn a_node_is_not_evaluated_if_it_fails_without_a_column() {
        let (nodes, evaluated) = choice(&ROW, &samarati_2001(), 2, 0);
        assert_eq!((nodes.len(), evaluated), (2, 5));
    }
}
