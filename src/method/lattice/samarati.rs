//! `samarati`: an anonymous node of the least height, by binary search on the height.
//!
//! The height of a node is the sum of its levels. If no node of a height is anonymous, none below it
//! is, because every node above an anonymous one is anonymous. So a binary search finds the least
//! height (Samarati & Sweeney 1998, Samarati 2001). The levels of a node are its distance vector from
//! the original table; `kanon search --minimal` lists those of all minimal nodes, and
//! `search --top` those that this method found.
//!
//! Deviations from the paper: any models that allow the argument stand in place of k-anonymity.
//! Heights begin at the lowest allowed node. A node below one that was refused is not evaluated. The
//! paper returns any anonymous node of the least height; this returns the best by the objective.
//!
//! # Contract
//! The best anonymous nodes of the least height, in order of preference; nothing is found only if no
//! node is anonymous. A higher node may lose less, so only under the objective
//! `height` these nodes are proven best, and only if there are as many as asked for. At most two million
//! nodes. The same for any number of threads. Refused where a node above an anonymous one need not be anonymous:
//! with a suppression limit under models where only two classes that hold merge into one that holds
//! (`t_closeness`), and under models that promise nothing of merged classes (most, where individuals
//! are counted).

use std::ops::RangeInclusive;

use super::branch_and_bound::Search;
use super::{Best, Lattice, Options, Row, check_survives_going_up, height};
use crate::doc::Doc;
use crate::error::Result;
use crate::measure::{LossMeasure, height::Height};
use crate::method::{Method, Outcome, Problem};
use crate::papers;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "samarati",
        summary: "the least sum of levels, by binary search; of these nodes the one that loses least",
        parameters: "",
        example: "method = \"samarati\"",
        paper: Some(papers::SAMARATI_2001),
    },
    parameters: &[],
    takes_effort: false,
    check: |_, _| Ok(()),
    make: |_, options| Ok(Box::new(Samarati { options })),
};

/// The method that the [module](self) describes.
#[derive(Debug, Clone)]
pub struct Samarati {
    /// The part of the lattice to search.
    pub options: Options,
}

impl Method for Samarati {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        check_survives_going_up(ROW.doc.name, problem)?;
        self.options.all_nodes()?;
        let mut search = Search::new(Lattice { problem, options: &self.options });
        let ranges = &self.options.ranges;
        let mut best = Best::new(self.options.top);
        if let Some(least) = least_height(ranges, &mut search)? {
            for node in nodes_of_height(ranges, least) {
                if search.holds(&node)? {
                    search.anonymous(&node).into_iter().for_each(|found| best.offer(found.clone()));
                }
            }
        }
        let is_complete = best.found.len() == best.top;
        let by_height = problem.objective.doc().name == Height.doc().name && is_complete;
        let best = best.candidates();
        if best.is_empty() || by_height {
            let (nodes, evaluated) = (Some(self.options.nodes()), search.evaluated());
            let bound = best.first().map(|best| best.loss);
            return Ok(Outcome { best, nodes, evaluated, proven: true, bound });
        }
        Ok(search.outcome_with(best))
    }
}

/// Returns the least height of an anonymous node; `None` if no node is anonymous.
fn least_height(ranges: &[RangeInclusive<usize>], search: &mut Search<'_>) -> Result<Option<usize>> {
    let (lowest, highest): (Vec<usize>, Vec<usize>) =
        ranges.iter().map(|range| (*range.start(), *range.end())).unzip();
    if !search.holds(&highest)? {
        return Ok(None);
    }
    let (mut low, mut high) = (height(&lowest), height(&highest));
    while low < high {
        let middle = usize::midpoint(low, high);
        let mut some_hold = false;
        for node in nodes_of_height(ranges, middle) {
            if search.holds(&node)? {
                some_hold = true;
                break;
            }
        }
        if some_hold {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(Some(high))
}

/// Returns the allowed nodes of a height, in the order of their levels.
fn nodes_of_height(ranges: &[RangeInclusive<usize>], of: usize) -> Vec<Vec<usize>> {
    let Some((first, rest)) = ranges.split_first() else {
        return if of == 0 { vec![Vec::new()] } else { Vec::new() };
    };
    let least: usize = rest.iter().map(|range| *range.start()).sum();
    let most: usize = rest.iter().map(|range| *range.end()).sum();
    let fits = |level: &usize| (level + least..=level + most).contains(&of);
    let with = |level: usize| {
        nodes_of_height(rest, of - level).into_iter().map(move |node| [&[level], &node[..]].concat())
    };
    first.clone().filter(fits).flat_map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::tests::samarati;
    use crate::method::lattice::classic_tests::{choice, samarati_2001};

    fn levels(table: &crate::class::ClassTable, k: u64, limit: u64) -> Vec<Vec<usize>> {
        choice(&ROW, table, k, limit).0
    }

    #[test]
    fn samarati_and_sweeney_1998() {
        // Both minimal nodes of k = 2 have the height 1; of those of k = 3, [1, 0] and [0, 2], the first.
        let table = samarati();
        let found = levels(&table, 2, 0);
        assert_eq!(found.len(), 2);
        assert!(found.contains(&vec![1, 0]) && found.contains(&vec![0, 1]));
        assert_eq!(levels(&table, 3, 0), [[1, 0]]);
        assert_eq!(levels(&table, 12, 0), [[1, 2]]);
        assert!(levels(&table, 13, 11).is_empty());
    }

    #[test]
    fn samarati_2001_with_suppression() {
        let table = samarati_2001();
        assert_eq!(levels(&table, 2, 0), [[1, 1]]);
        // Of the minimal nodes [1, 0] and [0, 2].
        assert_eq!(levels(&table, 2, 1), [[1, 0]]);
        let found = levels(&table, 2, 2);
        assert_eq!(found.len(), 2);
        assert!(found.contains(&vec![1, 0]) && found.contains(&vec![0, 1]));
        assert_eq!(levels(&table, 2, 4), [[0, 0]]);
    }

    #[test]
    fn nodes_of_a_height_are_within_the_ranges() {
        assert_eq!(nodes_of_height(&[0..=1, 1..=2, 0..=0], 2), [[0, 2, 0], [1, 1, 0]]);
        assert!(
            nodes_of_height(&[0..=1, 1..=2], 0).is_empty() && nodes_of_height(&[0..=1, 1..=2], 4).is_empty()
        );
    }
}
