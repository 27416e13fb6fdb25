//! `subtree`: each column is cut at its own labels of its hierarchy, fine here and coarse there
//! (full-subtree recoding), from the top down (top-down specialization, Fung, Wang & Yu 2005).
//!
//! At first every column shows its coarsest allowed level. Then one label at a time is replaced by
//! those one level below it, for all rows that show it. Labels are tried by the loss
//! (`granularity_mean`) that replacing them saves, divided by the rows of classes that become too
//! small, plus one. The rows of classes that fail are suppressed, as long as the limit allows it
//! and less is lost by that than saved; otherwise the label stays for good. It ends when every
//! label was replaced or stays.
//!
//! # Contract
//! Two values that have a label in common in one class have it in all: a value shows the same label
//! everywhere, but for the default `[output] ends`, under which a class shows the finest region
//! around its own values within that label; `ends = "cuts"` shows the labels. Labels are rated by
//! the quasi-identifiers alone; sensitive values can only veto what is rated best. Greedy: not
//! proven best. A `max_level` holds, but an interval from the least to the greatest of all released
//! values is written `*`; a `min_level` is refused, because regions may be finer. The same bytes
//! for any number of threads; one thread works.

use std::collections::BinaryHeap;

use super::cuts::Finished;
use super::nodes::{Node, regions};
use super::{Row, found, of_leaf};
use crate::class::{ClassTable, EncodedColumn, Held, Region, Union};
use crate::decimal::ratio;
use crate::doc::Doc;
use crate::error::Result;
use crate::generalize::Ends;
use crate::method::lattice::Options;
use crate::method::{Method, Outcome, Problem};
use crate::model::min_size;
use crate::papers;
use crate::progress::Phase;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "subtree",
        summary: "cuts each column at its own labels of its hierarchy, which all rows share",
        parameters: "",
        example: "method = \"subtree\"",
        paper: Some(papers::FUNG_2005),
    },
    parameters: &[],
    keeps_max_level: true,
    shows_cuts: true,
    make: |_, options| Ok(Box::new(Subtree { options: options.clone() })),
};

/// The method that the [module](self) describes.
struct Subtree {
    options: Options,
}

/// A label that may be replaced by those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Label {
    column: usize,
    level: usize,
    code: u32,
}

/// A label with its rating when it was last looked at: the best first, then in policy order.
struct Rated(f64, Label);

impl Ord for Rated {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then_with(|| other.1.cmp(&self.1))
    }
}

impl PartialOrd for Rated {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rated {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rated {}

/// What replacing a label makes of the classes.
struct Replaced {
    /// The loss that it saves, for each row of a class that becomes too small and one more.
    rating: f64,
    /// Whether the limit allows it, and no more is lost than saved.
    is_worth_it: bool,
    /// The classes whose rows show the label, by their places.
    places: Vec<usize>,
    /// What becomes of them.
    kept: Vec<Vec<u32>>,
    /// The base classes that it newly suppresses.
    failing: Vec<u32>,
}

/// The classes between two replacements.
struct State<'a> {
    problem: &'a Problem<'a>,
    /// The level of the label that each value shows, by column.
    levels: Vec<Vec<usize>>,
    /// What a leaf more costs a row, by column.
    of_leaf: Vec<f64>,
    kept: Vec<Vec<u32>>,
    suppressed: Vec<u32>,
    union: Union<'a>,
    rated: u64,
}

impl State<'_> {
    fn table(&self) -> &ClassTable {
        self.problem.table
    }

    fn code(&self, class: u32, column: usize) -> u32 {
        self.table().code(self.table().base(), class as usize, column)
    }

    /// Returns the label that a base class shows in a column.
    fn label(&self, class: u32, column: usize) -> Result<Label> {
        let value = self.code(class, column) as usize;
        let level = self.levels[column][value];
        Ok(Label { column, level, code: self.table().columns()[column].map(0, level)?[value] })
    }

    /// Returns the loss of a row of a base class in all columns, beside that of a suppressed row.
    fn less_than_suppressed(&self, class: u32) -> Result<f64> {
        let mut less = 0.0;
        for (at, column) in self.table().columns().iter().enumerate() {
            let Label { level, code, .. } = self.label(class, at)?;
            let hidden = column.leaves().saturating_sub(column.level(level).leaves()[code as usize]);
            less += self.of_leaf[at] * ratio(hidden.into(), 1);
        }
        Ok(less)
    }

    /// Looks at what replacing a label would do.
    fn replaced(&mut self, label: Label) -> Result<Replaced> {
        self.problem.stop.check()?;
        self.rated += 1;
        let (problem, Label { column, level, .. }) = (self.problem, label);
        let (base, shown) = (problem.table.base(), &problem.table.columns()[column]);
        let below = shown.map(0, level - 1)?;
        let mut places = Vec::new();
        for (place, class) in self.kept.iter().enumerate() {
            if self.label(class[0], column)? == label {
                places.push(place);
            }
        }
        let leaves = shown.level(level).leaves()[label.code as usize];
        let (least, mut kept, mut failing, mut saved) =
            (min_size(problem.requirements), Vec::new(), Vec::new(), 0.0);
        // By sizes alone.
        let (mut saved_by_size, mut too_few) = (0.0, 0u64);
        for place in &places {
            let code = |class: &u32| below[problem.table.code(base, *class as usize, column) as usize];
            let mut class = self.kept[*place].clone();
            class.sort_by_key(code);
            for piece in class.chunk_by(|a, b| code(a) == code(b)) {
                let rows: u64 = piece.iter().map(|class| base.rows_of(*class as usize)).sum();
                let fewer = leaves.saturating_sub(shown.level(level - 1).leaves()[code(&piece[0]) as usize]);
                let saves = self.of_leaf[column] * ratio(u128::from(rows) * u128::from(fewer), 1);
                let mut lost = 0.0;
                for class in piece {
                    lost +=
                        self.less_than_suppressed(*class)? * ratio(base.rows_of(*class as usize).into(), 1);
                }
                if rows < least {
                    saved_by_size -= lost;
                    too_few += rows;
                } else {
                    saved_by_size += saves;
                }
                if rows >= least && self.union.holds(piece) {
                    saved += saves;
                    kept.push(piece.to_vec());
                } else {
                    saved -= lost;
                    failing.extend_from_slice(piece);
                }
            }
        }
        let is_allowed = failing.is_empty()
            || base.size_of(&[self.suppressed.as_slice(), &failing].concat()) <= problem.limit;
        let rating = saved_by_size / ratio(u128::from(too_few) + 1, 1);
        Ok(Replaced { rating, is_worth_it: is_allowed && saved >= 0.0, places, kept, failing })
    }

    /// Replaces a label; returns those that take its place.
    fn replace(&mut self, label: Label, replaced: Replaced) -> Result<Vec<Label>> {
        let Label { column, level, code } = label;
        let shown = &self.problem.table.columns()[column];
        let mut below = Vec::new();
        for (value, above) in shown.map(0, level)?.iter().enumerate() {
            if *above == code {
                self.levels[column][value] = level - 1;
                below.push(Label { column, level: level - 1, code: shown.map(0, level - 1)?[value] });
            }
        }
        below.sort_unstable();
        below.dedup();
        for place in replaced.places.into_iter().rev() {
            self.kept.swap_remove(place);
        }
        self.kept.extend(replaced.kept);
        self.suppressed.extend(replaced.failing);
        Ok(below)
    }
}

impl Method for Subtree {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let table = problem.table;
        let (base, columns) = (table.base(), table.columns());
        let mut held = Held::new(table.budget());
        // A base class in its class, which may be one of its own, before and after a replacement.
        let of_class = 2 * (size_of::<Vec<u32>>() + size_of::<u32>()) + size_of::<u32>();
        let values: usize = columns.iter().map(EncodedColumn::distinct).sum();
        held.at_least(base.len() * of_class + values * size_of::<usize>())?;
        let coarsest: Vec<usize> = self.options.ranges.iter().map(|allowed| *allowed.end()).collect();
        let all = (0u32..).take(base.len()).collect();
        let mut union = Union::new(table, problem.requirements)?;
        let (kept, failing): (Vec<Vec<u32>>, Vec<Vec<u32>>) = Node::new(table, &coarsest, Ends::Values)?
            .classes(all)?
            .into_iter()
            .partition(|class| union.holds(class));
        let suppressed = failing.concat();
        if base.size_of(&suppressed) > problem.limit {
            return found(problem, &self.options, Vec::new(), 1);
        }
        let levels = columns.iter().zip(&coarsest).map(|(column, level)| vec![*level; column.distinct()]);
        let of_leaf = columns.iter().map(of_leaf);
        let (levels, of_leaf) = (levels.collect(), of_leaf.collect());
        let mut state = State { problem, levels, of_leaf, kept, suppressed, union, rated: 0 };
        let mut waiting = BinaryHeap::new();
        let mut new: Vec<Label> = Vec::new();
        for (column, level) in coarsest.iter().enumerate() {
            let labels = (0u32..).take(columns[column].level(*level).leaves().len());
            new.extend(labels.map(|code| Label { column, level: *level, code }));
        }
        let labels = columns
            .iter()
            .flat_map(|column| (1..=column.height()).map(|level| column.level(level).leaves().len()));
        problem.progress.begin(Phase::Search, labels.sum::<usize>() as u64);
        let mut decided = 0;
        loop {
            for label in new.drain(..).filter(|label| label.level > 0) {
                waiting.push(Rated(state.replaced(label)?.rating, label));
            }
            let Some(Rated(_, label)) = waiting.pop() else { break };
            // Others may have been replaced since it was rated.
            let replaced = state.replaced(label)?;
            if waiting.peek().is_some_and(|next| replaced.rating < next.0) {
                waiting.push(Rated(replaced.rating, label));
                continue;
            }
            decided += 1;
            problem.progress.done(decided);
            if replaced.is_worth_it {
                new = state.replace(label, replaced)?;
            }
        }
        let regions = match problem.ends {
            Ends::Cuts => {
                let of_column = |column: &EncodedColumn| {
                    (0..=column.height()).map(|level| regions(column, level)).collect()
                };
                Some(columns.iter().map(of_column).collect::<Result<Vec<Vec<Vec<Region>>>>>()?)
            }
            Ends::Values | Ends::Closed => None,
        };
        let mut parts = Vec::new();
        for classes in std::mem::take(&mut state.kept) {
            let shown = regions.as_ref().map(|regions| {
                let shown = (0..columns.len()).map(|at| {
                    let Label { column, level, code } = state.label(classes[0], at)?;
                    Ok(regions[column][level][code as usize].clone())
                });
                shown.collect::<Result<_>>()
            });
            parts.push(Finished { classes, shown: shown.transpose()? });
        }
        found(problem, &self.options, parts, state.rated)
    }
}
