//! `optimal`: the proven best node, from as few evaluated nodes as bounds and monotonicity allow.
//!
//! Runs branch and bound over intervals of the lattice until no interval is open. Rows that a node
//! suppresses because of models which survive any merging, or because a class is smaller than a
//! model implies, are suppressed at every node below. With a limit of 0 the same holds for models
//! where two classes that hold merge into one that holds. The measures add their own bounds (as
//! Bayardo & Agrawal 2005 and Kohlmayer et al. 2015 bound losses under suppression). Losses need
//! not be monotone.
//!
//! # Contract
//! Proven best for every model and every loss measure. Ties are broken as everywhere: by loss, sum
//! of levels, then levels in policy order. The same nodes are evaluated whatever the number of
//! threads.

use super::branch_and_bound::Search;
use super::{Lattice, Options, Row};
use crate::doc::Doc;
use crate::error::Result;
use crate::method::{Method, Outcome, Problem};
use crate::papers;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "optimal",
        summary: "proven best from few evaluated nodes, by bounds and monotonicity",
        parameters: "",
        example: "method = \"optimal\"",
        paper: Some(papers::KOHLMAYER_2015),
    },
    parameters: &[],
    takes_effort: false,
    check: |_, _| Ok(()),
    make: |_, options| Ok(Box::new(Optimal { options })),
};

/// The method that the [module](self) describes.
#[derive(Debug, Clone)]
pub struct Optimal {
    /// The part of the lattice to search.
    pub options: Options,
}

impl Method for Optimal {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let mut search = Search::new(Lattice { problem, options: &self.options });
        search.run(false, &mut |_| false)?;
        Ok(search.outcome())
    }
}
