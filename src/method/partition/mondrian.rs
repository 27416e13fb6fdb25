//! Mondrian: splits the rows in two, again and again, while both sides satisfy the policy.
//!
//! What can be cut no more becomes a released class (strict multidimensional partitioning, LeFevre,
//! DeWitt & Ramakrishnan 2006). `split` says where a part is cut:
//!
//! - `span` (default, the paper's): at the median of the column in which the part's values span the
//!   largest share of the column's domain; if a side fails a requirement, at that of the next
//!   column;
//! - `entropy`: the same, but columns are ordered by the entropy of their values among the part's
//!   rows, as a share of the entropy among all rows;
//! - `relaxed`: as `span`, but the rows of the median are dealt to both sides, whole base classes
//!   at a time, so that half of the rows go left (the paper's relaxed partitioning);
//! - `loss`: the cuts of all columns are ranked by the `granularity_mean` that they save for their
//!   balance, whatever the policy's objective, and the first whose sides hold is made, see
//!   `least_loss.rs`. Of a part with more than 256 cuts the best 256 are tried, and the best 16 of
//!   each column. It keeps the most and takes the longest.
//!
//! Under `span` and `entropy` rows up to the median go left, the others right. If the median is the
//! greatest value, its rows go right and all others left. Spans and entropies are multiplied by the
//! column's `weight`.
//!
//! Columns are cut in the order of their values: numbers and dates by size, others in the order of
//! their hierarchy file, else by their text; NULL is below all. Numbers, dates and timestamps show
//! the interval of their values in the class, other columns with levels between the values and the
//! top the finest label that all of them share, or everything, and the rest the set of them. Under
//! `[output] ends = "cuts"` a class shows all values that the cuts leave to it instead, whether or
//! not its rows have them, and a cut saves what the column shows less. Classes that then show the
//! same are one.
//!
//! # Contract
//! All rows together must satisfy every requirement; otherwise nothing is found, whatever the
//! suppression limit. Each side of a cut satisfies every requirement. Classes that show the same
//! are merged. A merged class that fails a requirement is suppressed, which happens only under
//! models that do not survive merging; if that suppresses too many, all rows become one class. The
//! answer depends on the multiset of rows and the order of the columns in the policy, not on the
//! number of threads. Cuts are ranked by the quasi-identifiers; sensitive values can only veto one.
//! It is greedy: it promises no least loss. Deviations from the paper: a median that is the
//! greatest value is cut below it, where the paper tries the next column; columns of equal span are
//! tried in policy order; under `span` and `entropy` a categorical column is cut in its order, not
//! into the children of its hierarchy's root.

use std::borrow::Cow;

use super::cuts::{Finished, cut_all};
use super::medians::{ColumnRank, Medians};
use super::{Row, found, least_loss};
use crate::class::Held;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::method::lattice::Options;
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
    keeps_max_level: false,
    shows_cuts: true,
    make: |settings, options| {
        let name = settings.word(SPLIT.name)?;
        let split = SPLITS.iter().find(|(word, _)| *word == name);
        let (_, cut) = split.ok_or_else(|| Error::internal("mondrian: a split that is not in the table"))?;
        Ok(Box::new(Mondrian { cut: *cut, options: options.clone() }))
    },
};

const SPAN: &str = "span";

/// Cuts all base classes of a problem's table, and counts the cuts that were tried.
type CutAll = fn(&Problem<'_>) -> Result<(Vec<Finished>, u64)>;

/// The ways to choose cuts.
const SPLITS: [(&str, CutAll); 4] = [
    (SPAN, |problem| by_medians(problem, ColumnRank::Span, false)),
    ("entropy", |problem| by_medians(problem, ColumnRank::Entropy, false)),
    ("relaxed", |problem| by_medians(problem, ColumnRank::Span, true)),
    ("loss", least_loss::cut_all),
];

fn by_medians(problem: &Problem<'_>, rank: ColumnRank, is_relaxed: bool) -> Result<(Vec<Finished>, u64)> {
    cut_all(problem, &Medians::new(problem.table, rank, is_relaxed, problem.ends)?)
}

/// How cuts are chosen.
const SPLIT: Parameter = Parameter {
    name: "split",
    kind: Kind::Choice(&[SPLITS[0].0, SPLITS[1].0, SPLITS[2].0, SPLITS[3].0]),
    absent: Absent::Means(Setting::Word(Cow::Borrowed(SPAN))),
    summary: "cut at the median of the column of the largest span or entropy, deal its rows to both sides, or cut where the most loss is saved",
};

/// The method that the [module](self) describes.
struct Mondrian {
    cut: CutAll,
    options: Options,
}

impl Method for Mondrian {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let table = problem.table;
        let mut held = Held::new(table.budget());
        // The number of each base class and its class; at most every one is a finished part of its own.
        let of_class = size_of::<Option<u32>>() + size_of::<Finished>() + size_of::<u32>();
        held.at_least(table.base().len() * of_class)?;
        problem.progress.begin(Phase::Search, table.base().len() as u64);
        let (parts, tried) = (self.cut)(problem)?;
        found(problem, &self.options, parts, tried)
    }
}

/// The base classes of each part that relaxed cuts leave.
#[cfg(test)]
pub(super) fn relaxed_parts(problem: &Problem<'_>) -> Result<Vec<Vec<u32>>> {
    Ok(by_medians(problem, ColumnRank::Span, true)?.0.into_iter().map(|part| part.classes).collect())
}

#[cfg(test)]
#[path = "mondrian_tests.rs"]
pub(crate) mod tests;
