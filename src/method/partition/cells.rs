//! `cells`: suppresses single cells until every class holds; all other values stay as they are (local suppression, as in
//! sdcMicro).
//!
//! At first all cells are suppressed, and all rows are one class. Then a class reveals one column: rows whose value is held by
//! rows enough to be a class of their own become that class, and the others stay together with the column suppressed. If those
//! do not hold, the smallest of the new classes stay with them. A class reveals the column for which the most rows get a class
//! of their own, times the column's `weight`, divided by the entropy of its values (in nats, and 0.05 more): columns that split
//! a class little leave it large enough to reveal others. It ends when no class can reveal a column.
//!
//! # Contract
//! All rows together must satisfy every requirement; otherwise nothing is found, whatever the suppression limit. A class shows in
//! each column one value or `*`, which is everything and matches nothing but itself; nothing else is suppressed. The hierarchy of
//! a column does not matter, and `min_level` and `max_level` are refused. Regions overlap: a row that shows `*` may hold the
//! values of another class, so that a person's values can fit several classes. Columns are chosen by the quasi-identifiers;
//! sensitive values can only veto. Greedy: not proven best. The same bytes for any number of threads.

use super::cuts::{Cut, Cuts, Judge, cut_all};
use super::{Row, found};
use crate::class::{ClassTable, Held, Region};
use crate::decimal::ratio;
use crate::doc::Doc;
use crate::error::Result;
use crate::method::lattice::Options;
use crate::method::{Method, Outcome, Problem};
use crate::papers;
use crate::progress::Phase;

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "cells",
        summary: "suppresses single cells until every class holds; other values stay as they are",
        parameters: "",
        example: "method = \"cells\"",
        paper: Some(papers::TEMPL_2015),
    },
    parameters: &[],
    keeps_max_level: false,
    shows_cuts: true,
    make: |_, options| Ok(Box::new(Cells { options: options.clone() })),
};

/// What a column without entropy is divided by.
const LEAST_ENTROPY: f64 = 0.05;

/// The method that the [module](self) describes.
struct Cells {
    options: Options,
}

/// Base classes that belong together.
struct Part {
    classes: Vec<u32>,
    columns: Vec<Shows>,
}

/// What a part shows in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// Its value.
    Value,
    /// `*`, but it may reveal its values.
    Maybe,
    /// `*`.
    Nothing,
}

/// A way to reveal a column.
struct Revealed {
    rating: f64,
    column: usize,
    /// The rows that get a class of their own, by value.
    apart: Vec<Vec<u32>>,
    /// The others.
    rest: Vec<u32>,
}

/// The cells of a class table.
struct Revealing<'a> {
    table: &'a ClassTable,
    _held: Held,
}

impl Revealing<'_> {
    fn code(&self, class: u32, column: usize) -> u32 {
        self.table.code(self.table.base(), class as usize, column)
    }

    fn rows(&self, classes: &[u32]) -> u64 {
        classes.iter().map(|class| self.table.base().rows_of(*class as usize)).sum()
    }

    /// Parts the rows by the values of a column; `None` if none get a class of their own.
    fn reveal(&self, part: &Part, column: usize, judge: &mut Judge<'_>) -> Result<Option<Revealed>> {
        let mut sorted = part.classes.clone();
        sorted.sort_by_key(|class| self.code(*class, column));
        let (mut apart, mut rest, mut entropy) = (Vec::new(), Vec::new(), 0.0);
        let all = self.rows(&sorted);
        for same in sorted.chunk_by(|a, b| self.code(*a, column) == self.code(*b, column)) {
            let rows = self.rows(same);
            let share = ratio(rows.into(), all.max(1).into());
            entropy -= if rows > 0 { share * share.ln() } else { 0.0 };
            match judge.holds(same)? {
                true => apart.push((rows, same.to_vec())),
                false => rest.extend_from_slice(same),
            }
        }
        // Stable: those of as many rows stay in the order of their values.
        apart.sort_by_key(|(rows, _)| std::cmp::Reverse(*rows));
        while !rest.is_empty() && !judge.holds(&rest)? {
            let Some((_, smallest)) = apart.pop() else { return Ok(None) };
            rest.extend(smallest);
        }
        let revealed: u64 = apart.iter().map(|(rows, _)| rows).sum();
        let weight = self.table.columns()[column].weight();
        let rating = weight * ratio(revealed.into(), 1) / (entropy.max(0.0) + LEAST_ENTROPY);
        let apart: Vec<Vec<u32>> = apart.into_iter().map(|(_, classes)| classes).collect();
        Ok((!apart.is_empty()).then_some(Revealed { rating, column, apart, rest }))
    }
}

impl Cuts for Revealing<'_> {
    type Part = Part;
    type Scratch = ();

    fn whole(&self) -> Part {
        let classes = (0u32..).take(self.table.base().len()).collect();
        Part { classes, columns: vec![Shows::Maybe; self.table.columns().len()] }
    }

    fn classes(part: &Part) -> &[u32] {
        &part.classes
    }

    fn shown(&self, part: &Part) -> Result<Option<Box<[Region]>>> {
        let shown = part.columns.iter().enumerate().map(|(at, shows)| match (shows, part.classes.first()) {
            (Shows::Value, Some(class)) => Region::Label { level: 0, code: self.code(*class, at) },
            _ => Region::Everything,
        });
        Ok(Some(shown.collect()))
    }

    fn scratch(&self) -> Result<()> {
        Ok(())
    }

    fn cut(&self, part: Part, judge: &mut Judge<'_>, (): &mut ()) -> Result<Cut<Part>> {
        let mut best: Option<Revealed> = None;
        for column in (0..part.columns.len()).filter(|at| part.columns[*at] == Shows::Maybe) {
            if let Some(revealed) = self.reveal(&part, column, judge)?
                && best.as_ref().is_none_or(|best| revealed.rating > best.rating)
            {
                best = Some(revealed);
            }
        }
        let Some(Revealed { column, apart, rest, .. }) = best else { return Ok(Cut::Final(part)) };
        let showing = |shows: Shows| {
            let mut columns = part.columns.clone();
            columns[column] = shows;
            columns
        };
        let apart = apart.into_iter().map(|classes| Part { classes, columns: showing(Shows::Value) });
        let rest = (!rest.is_empty()).then(|| Part { classes: rest, columns: showing(Shows::Nothing) });
        Ok(Cut::Into(apart.chain(rest).collect()))
    }
}

impl Method for Cells {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let table = problem.table;
        let mut held = Held::new(table.budget());
        // A base class in its part, which may be one of its own, before and after a cut, and what that shows.
        let of_class =
            3 * (size_of::<u32>() + size_of::<Part>()) + table.columns().len() * size_of::<Region>();
        held.at_least(table.base().len() * of_class)?;
        problem.progress.begin(Phase::Search, table.base().len() as u64);
        let (parts, tried) = cut_all(problem, &Revealing { table, _held: held })?;
        found(problem, &self.options, parts, tried)
    }
}
