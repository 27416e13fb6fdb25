//! Mondrian: splits the rows in two, again and again, while both sides satisfy the policy.
//!
//! What can be cut no more becomes a released class (strict multidimensional partitioning, LeFevre, DeWitt & Ramakrishnan
//! 2006). `split` says where a part is cut:
//!
//! - `span` (default, the paper's): at the median of the column in which the part's values span the largest share of the
//!   column's domain; if a side fails a requirement, at that of the next column;
//! - `entropy`: the same, but columns are ordered by the entropy of their values among the part's rows, as a share of the
//!   entropy among all rows;
//! - `loss`: every cut of every column is considered, and the one is made that saves the most loss for its balance, see
//!   `least_loss.rs`; if a side fails, the next one. It keeps the most and takes the longest.
//!
//! Rows up to the median go left, the others right. If the median is the greatest value, its rows go right and all others
//! left. Spans and entropies are multiplied by the column's `weight`.
//!
//! Columns are cut in the order of their values: numbers and dates by size, others in the order of their hierarchy file,
//! else by their text; NULL is below all. Numbers, dates and timestamps show the interval of their values in the class,
//! other columns with levels between the values and the top the finest label that all of them share, or everything, and
//! the rest the set of them. Classes that then show the same are one.
//!
//! # Contract
//! All rows together must satisfy every requirement; otherwise nothing is found, whatever the suppression limit. Each side
//! of a cut satisfies every requirement. A class made of several that show the same is suppressed if it fails one, which
//! cannot be where two classes that hold merge into one that holds; if that suppresses too many, all rows become one class.
//! The answer depends on the multiset of rows and the
//! order of the columns in the policy, not on the number of threads. Cuts are ranked by the quasi-identifiers; sensitive
//! values can only veto one. It is greedy: it promises no least loss. Deviations from the paper: a median that is the
//! greatest value is cut below it, where the paper tries the next column; columns of equal span are tried in policy order;
//! under `span` and `entropy` a categorical column is cut in its order, not into the children of its hierarchy's root.

use std::borrow::Cow;

use super::cuts::cut_all;
use super::least_loss::LeastLoss;
use super::medians::{First, Medians};
use super::{Row, around, candidate};
use crate::class::Held;
use crate::doc::Doc;
use crate::error::Result;
use crate::method::{Method, Outcome, Problem};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Setting};
use crate::progress::Phase;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "mondrian",
        summary: "splits the rows in two while both sides satisfy the policy; classes show intervals, labels or sets",
        parameters: "split",
        example: "method = { mondrian = { split = \"loss\" } }",
        paper: Some(papers::LEFEVRE_2006),
    },
    parameters: &[SPLIT],
    make: |settings| {
        Ok(Box::new(Mondrian {
            split: match settings.word(SPLIT.name)? {
                LOSS => Split::LeastLoss,
                ENTROPY => Split::Median(First::Entropy),
                _ => Split::Median(First::Span),
            },
        }))
    },
};

const SPAN: &str = "span";
const ENTROPY: &str = "entropy";
const LOSS: &str = "loss";

/// How cuts are chosen.
const SPLIT: Parameter = Parameter {
    name: "split",
    kind: Kind::Choice(&[SPAN, ENTROPY, LOSS]),
    absent: Absent::Means(Setting::Word(Cow::Borrowed(SPAN))),
    summary: "cut at the median of the column of the largest span or entropy, or where the most loss is saved",
};

/// The method that the [module](self) describes.
#[derive(Debug, Clone, Copy)]
struct Mondrian {
    split: Split,
}

#[derive(Debug, Clone, Copy)]
enum Split {
    Median(First),
    LeastLoss,
}

impl Method for Mondrian {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let mut held = Held::new(problem.table.budget());
        // The finished parts, and the class of each base class.
        held.at_least(problem.table.base().len() * (size_of::<u32>() + size_of::<Option<u32>>()))?;
        let (parts, tried) = partition(problem, self.split)?;
        let mut best = None;
        if !parts.is_empty() {
            best = candidate(problem, around(problem.table, &parts)?)?;
        }
        if best.is_none() && !parts.is_empty() {
            // Parts that show the same became one class, and too many of these fail. All rows together do not.
            best = candidate(problem, around(problem.table, &[parts.concat()])?)?;
        }
        Ok(Outcome {
            best: best.into_iter().collect(),
            nodes: None,
            evaluated: tried,
            proven: false,
            bound: None,
        })
    }
}

/// Partitions the base classes of a problem's table, and counts the cuts that were tried; no parts if all base classes
/// together do not satisfy the policy.
///
/// # Errors
/// A data error when memory runs out, an interruption.
fn partition(problem: &Problem<'_>, split: Split) -> Result<(Vec<Vec<u32>>, u64)> {
    let table = problem.table;
    problem.progress.begin(Phase::Search, table.base().len() as u64);
    match split {
        Split::Median(first) => cut_all(problem, &Medians::new(table, first)?),
        Split::LeastLoss => {
            let least = problem.requirements.iter().map(|requirement| requirement.model.min_size()).max();
            cut_all(problem, &LeastLoss::new(table, least.unwrap_or(0))?)
        }
    }
}

#[cfg(test)]
#[path = "mondrian_tests.rs"]
pub(in crate::method) mod tests;
