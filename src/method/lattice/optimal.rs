//! `optimal`: the best node, proven, from as few evaluated nodes as bounds and monotony allow.
//!
//! Branch and bound over intervals of the lattice, run until nothing is open. What is used: rows that a node
//! suppresses because of models which survive any merging, or because a class is smaller than a model implies,
//! are suppressed at every node below; with a limit of 0 the same holds for models of which two classes that
//! hold give one that holds; and the measures' own bounds (as Bayardo & Agrawal 2005 and Kohlmayer et al. 2015
//! bound losses under suppression). Losses need not be monotone.
//!
//! # Contract
//! Proven best for every model and every loss measure. Ties are decided as everywhere: loss, sum of levels,
//! levels in policy order. The same nodes are evaluated whatever the number of threads.

use super::branch_and_bound::Search;
use crate::doc::Doc;
use crate::error::Result;
use crate::method::{Method, Outcome, Problem};
use crate::papers;

/// See the [module](self).
#[derive(Debug, Clone, Copy)]
pub struct Optimal;

impl Method for Optimal {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "optimal",
            summary: "proven best from few evaluated nodes, by bounds and monotony",
            parameters: "",
            example: "method = \"optimal\"",
            paper: Some(papers::KOHLMAYER_2015),
        }
    }

    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let mut search = Search::new(problem);
        search.run(false, &mut |_| false)?;
        Ok(search.outcome())
    }
}
