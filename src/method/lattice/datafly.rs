//! `datafly`: generalizes the column with the most labels until few enough rows are left to suppress.
//!
//! Datafly (Sweeney 1998) lists the distinct tuples of the quasi-identifiers with their numbers of
//! rows. While more than k rows are in tuples of fewer than k rows, the column with the most distinct
//! values in the list goes one level up; then the rest is suppressed. Deviations from the paper: the
//! suppression limit of the policy stands in place of k rows, any models in place of k-anonymity, and a
//! column stays below its `max_level`. Of equal columns the first in policy order goes up, which the
//! paper leaves open.
//!
//! # Contract
//! An anonymous node, if one is found on the way up; nothing about its loss. A node below it may be
//! anonymous too. For models under which nodes above an anonymous one are anonymous, nothing is found
//! only if there is nothing. One node is evaluated per step, the same for any number of threads. The
//! objective does not matter.

use super::branch_and_bound::Search;
use super::evaluate::Purpose;
use super::{Lattice, Options, Row};
use crate::doc::Doc;
use crate::error::Result;
use crate::method::{Method, Outcome, Problem};
use crate::papers;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "datafly",
        summary: "always generalizes the column with the most labels; quick, says nothing about the loss",
        parameters: "",
        example: "method = \"datafly\"",
        paper: Some(papers::SWEENEY_1998),
    },
    parameters: &[],
    takes_effort: false,
    check: |_, _| Ok(()),
    make: |_, options| Ok(Box::new(Datafly { options })),
};

/// The method that the [module](self) describes.
#[derive(Debug, Clone)]
pub struct Datafly {
    /// The part of the lattice to search.
    pub options: Options,
}

impl Method for Datafly {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let lattice = Lattice { problem, options: &self.options };
        let mut search = Search::new(lattice);
        climb(lattice, &mut search, &mut |evaluated| {
            problem.progress.done(evaluated);
            false
        })?;
        Ok(search.outcome())
    }
}

/// Goes up to the first anonymous node, always generalizing the column with the most labels. Every
/// label occurs in some class of the node, because no row is left out on the way.
pub(super) fn climb(
    lattice: Lattice<'_>,
    search: &mut Search<'_>,
    enough: &mut dyn FnMut(u64) -> bool,
) -> Result<()> {
    let mut levels: Vec<usize> = lattice.options.ranges.iter().map(|range| *range.start()).collect();
    loop {
        search.evaluate(std::slice::from_ref(&levels), Purpose::Verdict)?;
        if search.anonymous(&levels).is_some() || enough(search.evaluated()) {
            return Ok(());
        }
        let labels =
            |column: usize| lattice.problem.table.columns()[column].level(levels[column]).leaves().len();
        let below_top =
            (0..levels.len()).filter(|column| levels[*column] < *lattice.options.ranges[*column].end());
        // Takes the first of the widest columns: `max_by_key` returns the last maximum.
        let Some(widest) = below_top.rev().max_by_key(|column| labels(*column)) else { return Ok(()) };
        levels[widest] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::tests::samarati;
    use crate::method::lattice::classic_tests::{choice, samarati_2001};

    /// Three races and four ZIP codes, then two.
    #[test]
    fn it_may_go_higher_than_a_minimal_node() {
        let table = samarati();
        assert_eq!(choice(&ROW, &table, 2, 0), (vec![vec![0, 1]], 2));
        // [1, 0] is anonymous as well.
        assert_eq!(choice(&ROW, &table, 3, 0), (vec![vec![1, 1]], 3));
        assert_eq!(choice(&ROW, &table, 13, 11), (vec![], 4));
    }

    /// Three races and three ZIP codes: the first column goes up.
    #[test]
    fn of_equal_columns_the_first_goes_up() {
        let table = samarati_2001();
        assert_eq!(choice(&ROW, &table, 2, 0), (vec![vec![1, 1]], 3));
        assert_eq!(choice(&ROW, &table, 2, 1), (vec![vec![1, 0]], 2));
        assert_eq!(choice(&ROW, &table, 2, 4), (vec![vec![0, 0]], 1));
    }
}
