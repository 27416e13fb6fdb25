//! Cuts by least loss: of all cuts of a part, the one that saves the most loss, divided by the
//! geometric mean of its sides' rows.
//!
//! Each row of a part loses, in each column of weight w with D leaves, `w (leaves - 1) / (D - 1)`,
//! where `leaves` counts those of the region around the part's values: what
//! [`granularity_mean`](crate::measure::granularity_mean) adds up. A cut saves the difference
//! between the loss of the part and that of both sides, in all columns, not only in the one that is
//! cut. It is divided by the geometric mean of the sides' rows: cutting off a few outliers saves
//! little but costs little, because the other side can still be cut in many ways. Without that, greedy cuts
//! are made through the middle, where they save the most at once, and the classes end up to twice as coarse
//! (visits, k = 20: 0.155 instead of 0.109; on Adult without l-diversity it costs 0.032 instead of 0.028).
//!
//! A column is cut below each of its values. A column that shows labels or sets is also cut in one
//! label against the rest: a value, or a label one level below the one that all values of the part
//! share. A label whose values are not neighbours in the order of the column is cut in runs of
//! neighbours.
//!
//! Under `ends = "cuts"` a class shows what the cuts leave to it, so a cut saves loss in its own column only.

use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};

use super::cell::{Cell, Leaves};
use super::cuts::{self, Cut, Cuts, Finished, Judge};
use super::of_leaf;
use crate::class::{ClassTable, EncodedColumn, GrowingRegion, Held, Region};
use crate::decimal::ratio;
use crate::error::Result;
use crate::generalize::Ends;
use crate::method::Problem;
use crate::model::min_size;

/// Cuts all base classes of a problem's table by least loss, and counts the cuts that were tried.
///
/// # Errors
/// A data error when memory runs out, an interruption.
pub(super) fn cut_all(problem: &Problem<'_>) -> Result<(Vec<Finished>, u64)> {
    cuts::cut_all(problem, &LeastLoss::new(problem.table, min_size(problem.requirements), problem.ends)?)
}

/// One label against the rest is tried only where a part has at most this many labels.
const MOST_LABELS: usize = 64;

/// The best cuts of a part that are tried. Without a bound, a requirement that vetoes every cut
/// would take a time that grows with the square of the part.
const MOST_TRIED: usize = 256;

/// The best cuts of each column that are tried besides: the best of all may be neighbours in one
/// column, all vetoed.
const MOST_OF_COLUMN: usize = 16;

/// The cuts of the parts of a class table.
pub(super) struct LeastLoss<'a> {
    table: &'a ClassTable,
    /// The codes of each base class, one for each column.
    codes: Vec<u32>,
    /// The loss of a leaf in each column.
    of_leaf: Vec<f64>,
    /// The fewest individuals that a side may have.
    min_size: u64,
    ends: Ends,
    _held: Held,
}

/// Base classes that belong together.
pub(super) struct Part {
    /// Their numbers, for each column in the order of its values.
    orders: Vec<Vec<u32>>,
    /// What the cuts leave to them, where that is what a class shows.
    cell: Option<Cell>,
}

/// The memory of one thread.
pub(super) struct Scratch<'a> {
    /// What each column shows around the values that were added to a side.
    shown: Vec<GrowingRegion<'a>>,
    /// How many base classes of the part have each value, by column; all 0 between parts.
    occurs: Vec<Vec<u32>>,
    /// The side in which each individual was last seen.
    seen: Vec<u32>,
    side: u32,
    /// Whether each base class goes left; none between parts.
    goes_left: Vec<bool>,
    _held: Held,
}

/// One side of a cut.
#[derive(Debug, Clone, Copy)]
struct Side {
    loss: f64,
    rows: u64,
    /// The individuals, or rows if none are counted.
    size: u64,
}

/// A possible cut: a run of base classes in the order of a column goes left, all others right.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    /// The loss that the cut saves for its balance.
    saves: f64,
    column: usize,
    /// The places of the left side in the order of the column.
    first: usize,
    end: usize,
    /// Whether the left side is one label rather than the values up to one; if so, the label of each value.
    apart: Option<Labels<'a>>,
}

/// The label of each value of a column; `None` if each value is its own.
type Labels<'a> = Option<&'a [u32]>;

impl Candidate<'_> {
    /// Compares by preference, the best first.
    fn compare(&self, other: &Self) -> Ordering {
        let place = |cut: &Self| (cut.column, cut.first, cut.end);
        other.saves.total_cmp(&self.saves).then_with(|| place(self).cmp(&place(other)))
    }
}

/// A part that is being cut.
struct Cutting<'a, 'b> {
    cuts: &'b LeastLoss<'a>,
    scratch: &'b mut Scratch<'a>,
    part: &'b Part,
    /// The columns in which the part has several values.
    varying: Vec<usize>,
    /// The values of each of them, in order.
    values: Vec<Vec<u32>>,
    /// The part itself, as a side.
    whole: Side,
    found: Vec<Candidate<'a>>,
}

impl<'a> LeastLoss<'a> {
    /// Prepares cuts whose sides have at least `min_size` individuals.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn new(table: &'a ClassTable, min_size: u64, ends: Ends) -> Result<Self> {
        let (classes, columns) = (table.base().len(), table.columns());
        let mut held = Held::new(table.budget());
        // Its codes, its place in the orders of a part before and after a cut, and its values in that part.
        held.at_least(classes * 4 * columns.len() * size_of::<u32>())?;
        let codes = (0..classes).flat_map(|class| (0..columns.len()).map(move |column| (class, column)));
        Ok(Self {
            table,
            codes: codes.map(|(class, column)| table.code(table.base(), class, column)).collect(),
            of_leaf: columns.iter().map(of_leaf).collect(),
            min_size,
            ends,
            _held: held,
        })
    }

    /// Returns the codes of a base class.
    fn codes(&self, class: u32) -> &[u32] {
        let columns = self.of_leaf.len();
        &self.codes[class as usize * columns..][..columns]
    }

    /// Returns the values of a part in one column, in order.
    fn values(&self, part: &Part, column: usize) -> Vec<u32> {
        let mut values: Vec<u32> =
            part.orders[column].iter().map(|class| self.codes(*class)[column]).collect();
        values.dedup();
        values
    }

    /// Cuts the cell of a part.
    fn cut_cell(&self, part: &mut Part, cut: &Candidate<'_>) -> Option<(Cell, Cell)> {
        let cell = part.cell.take()?;
        let code = |at: usize| self.codes(part.orders[cut.column][at])[cut.column];
        let (first, last) = (code(cut.first), code(cut.end - 1));
        Some(match cut.apart {
            None => cell.cut_above(cut.column, last),
            Some(labels) => {
                let values = self.values(part, cut.column);
                cell.cut_off(cut.column, |code| goes_left(code, &values, first..=last, labels))
            }
        })
    }

    /// Returns the cuts of a part whose sides may be large enough.
    ///
    /// # Errors
    /// An interruption, an internal error if a cell has no values.
    fn candidates(
        &self,
        part: &Part,
        judge: &Judge<'_>,
        scratch: &mut Scratch<'a>,
    ) -> Result<Vec<Candidate<'a>>> {
        let varies = |column: &usize| {
            let ends = part.orders[*column].first().zip(part.orders[*column].last());
            ends.is_some_and(|(first, last)| self.codes(*first)[*column] != self.codes(*last)[*column])
        };
        let varying: Vec<usize> = (0..part.orders.len()).filter(varies).collect();
        let values = varying.iter().map(|column| self.values(part, *column)).collect();
        let whole = Side { loss: 0.0, rows: 0, size: 0 };
        let mut cutting = Cutting { cuts: self, scratch, part, varying, values, whole, found: Vec::new() };
        cutting.whole = cutting.side_of(Self::classes(part));
        // An individual can be on both sides, a row cannot.
        if cutting.whole.rows / 2 >= self.min_size {
            let mut columns = Vec::with_capacity(cutting.varying.len());
            for (column, values) in cutting.varying.iter().zip(&cutting.values) {
                let shown = &mut cutting.scratch.shown[*column];
                if let Some(cell) = &part.cell {
                    cell.fill(*column, shown);
                }
                columns.push((*column, values.clone(), shown.labels_below()));
            }
            cutting.count(Self::classes(part), |occurs| occurs + 1);
            for (column, values, labels) in columns {
                judge.go_on()?;
                cutting.below_each_value(column, &values)?;
                if let Some(labels) = labels {
                    cutting.against_the_rest(column, &values, labels)?;
                }
            }
            cutting.count(Self::classes(part), |_| 0);
        }
        Ok(cutting.found)
    }
}

impl<'a> Cutting<'a, '_> {
    fn begin_side(&mut self) -> Side {
        self.varying.iter().for_each(|column| self.scratch.shown[*column].clear());
        self.scratch.side = self.scratch.side.checked_add(1).unwrap_or_else(|| {
            self.scratch.seen.fill(0);
            1
        });
        Side { loss: 0.0, rows: 0, size: 0 }
    }

    /// Adds a base class to a side.
    fn add(&mut self, class: u32, side: &mut Side) {
        let codes = self.cuts.codes(class);
        for column in &self.varying {
            self.scratch.shown[*column].add(codes[*column]);
        }
        let base = self.cuts.table.base();
        let rows = base.rows_of(class as usize);
        side.rows += rows;
        let Some(individuals) = base.individuals(class as usize) else {
            side.size += rows;
            return;
        };
        for individual in individuals {
            let seen = &mut self.scratch.seen[*individual as usize];
            side.size += u64::from(*seen != self.scratch.side);
            *seen = self.scratch.side;
        }
    }

    /// Returns the loss of a side with these rows, whose values were added.
    fn loss(&self, rows: u64) -> f64 {
        let of_column = |column: &usize| {
            let more = self.scratch.shown[*column].leaves().saturating_sub(1);
            self.cuts.of_leaf[*column] * ratio(u128::from(more), 1)
        };
        self.varying.iter().map(of_column).sum::<f64>() * ratio(u128::from(rows), 1)
    }

    /// Returns the side of these base classes.
    fn side_of(&mut self, classes: &[u32]) -> Side {
        let mut side = self.begin_side();
        classes.iter().for_each(|class| self.add(*class, &mut side));
        side.loss = self.loss(side.rows);
        side
    }

    /// Adds base classes one by one; returns the side before each whose value differs from that of
    /// the one before it.
    fn growing_sides(&mut self, order: impl Iterator<Item = u32>, column: usize) -> Vec<Side> {
        let mut side = self.begin_side();
        let (mut sides, mut last) = (Vec::new(), None);
        for class in order {
            let code = self.cuts.codes(class)[column];
            if last.is_some_and(|last| last != code) {
                side.loss = self.loss(side.rows);
                sides.push(side);
            }
            last = Some(code);
            self.add(class, &mut side);
        }
        sides
    }

    /// Keeps a cut if its sides are large enough. `leaves` are those of the cells, where these are shown.
    fn offer(
        &mut self,
        (left, right): (Side, Side),
        leaves: Option<Leaves>,
        column: usize,
        places: Range<usize>,
        apart: Option<Labels<'a>>,
    ) {
        if left.size < self.cuts.min_size || right.size < self.cuts.min_size {
            return;
        }
        let balance = ratio(u128::from(left.rows) * u128::from(right.rows), 1).sqrt();
        let saved = match leaves {
            None => self.whole.loss - left.loss - right.loss,
            Some(leaves) => {
                let of = |rows: u64, leaves: u64| {
                    ratio(u128::from(rows) * u128::from(leaves.saturating_sub(1)), 1)
                };
                let saved = of(self.whole.rows, leaves.whole)
                    - of(left.rows, leaves.left)
                    - of(right.rows, leaves.right);
                self.cuts.of_leaf[column] * saved
            }
        };
        let saves = saved / balance;
        self.found.push(Candidate { saves, column, first: places.start, end: places.end, apart });
    }

    /// Returns the places in the order of a column at which a run of base classes with the same label begins.
    fn starts(&self, column: usize, labels: Labels<'_>) -> Vec<usize> {
        let order = &self.part.orders[column];
        let label = |at: usize| {
            let code = self.cuts.codes(order[at])[column];
            labels.map_or(code, |labels| labels[code as usize])
        };
        (0..order.len()).filter(|at| *at == 0 || label(*at) != label(at - 1)).collect()
    }

    /// Finds the cuts below each value of a column but the first.
    fn below_each_value(&mut self, column: usize, values: &[u32]) -> Result<()> {
        let part = self.part;
        let above = values.split_last().map_or(&[][..], |(_, above)| above);
        let shown = &mut self.scratch.shown[column];
        let leaves = part.cell.as_ref().map(|cell| cell.leaves_beside(column, above, shown)).transpose()?;
        let left = self.growing_sides(part.orders[column].iter().copied(), column);
        let right = self.growing_sides(part.orders[column].iter().rev().copied(), column);
        let ends = self.starts(column, None).into_iter().skip(1);
        for (at, (sides, end)) in left.into_iter().zip(right.into_iter().rev()).zip(ends).enumerate() {
            self.offer(sides, leaves.as_ref().map(|leaves| leaves[at]), column, 0..end, None);
        }
        Ok(())
    }

    /// Finds the cuts of a column in one label against the rest.
    fn against_the_rest(&mut self, column: usize, values: &[u32], labels: Labels<'a>) -> Result<()> {
        let part = self.part;
        let mut ends = self.starts(column, labels);
        if ends.len() > MOST_LABELS {
            return Ok(());
        }
        ends.push(part.orders[column].len());
        // The first label and the last one are already cut off below a value.
        for run in ends.windows(2).skip(1).take(ends.len().saturating_sub(3)) {
            let classes = &part.orders[column][run[0]..run[1]];
            let left = self.side_of(classes);
            if left.size < self.cuts.min_size {
                continue;
            }
            self.count(classes, |occurs| occurs - 1);
            let right = self.rest_of(left);
            self.count(classes, |occurs| occurs + 1);
            let code = |at: usize| self.cuts.codes(part.orders[column][at])[column];
            let (first, last) = (code(run[0]), code(run[1] - 1));
            let goes_left = |code: u32| goes_left(code, values, first..=last, labels);
            let shown = &mut self.scratch.shown[column];
            let leaves =
                part.cell.as_ref().map(|cell| cell.leaves_apart(column, goes_left, shown)).transpose()?;
            self.offer((left, right), leaves, column, run[0]..run[1], Some(labels));
        }
        Ok(())
    }

    /// Returns the side of all values that still occur. Its individuals are not counted: that would
    /// cost more than to try the cut.
    fn rest_of(&mut self, left: Side) -> Side {
        self.begin_side();
        for (column, values) in self.varying.iter().zip(&self.values) {
            let (occurs, shown) = (&self.scratch.occurs[*column], &mut self.scratch.shown[*column]);
            values.iter().filter(|value| occurs[**value as usize] > 0).for_each(|value| shown.add(*value));
        }
        let rows = self.whole.rows - left.rows;
        Side { loss: self.loss(rows), rows, size: rows }
    }

    /// Changes how often the values of these base classes occur.
    fn count(&mut self, classes: &[u32], change: impl Fn(u32) -> u32) {
        for class in classes {
            let codes = self.cuts.codes(*class);
            for column in &self.varying {
                let occurs = &mut self.scratch.occurs[*column][codes[*column] as usize];
                *occurs = change(*occurs);
            }
        }
    }
}

impl<'a> Cuts for LeastLoss<'a> {
    type Part = Part;
    type Scratch = Scratch<'a>;

    fn whole(&self) -> Part {
        let ordered = |column: usize| {
            let mut order: Vec<u32> = (0u32..).take(self.table.base().len()).collect();
            order.sort_by_key(|class| self.codes(*class)[column]);
            order
        };
        Part {
            orders: (0..self.of_leaf.len()).map(ordered).collect(),
            cell: Cell::whole(self.table, self.ends),
        }
    }

    fn shown(&self, part: &Part) -> Result<Option<Box<[Region]>>> {
        part.cell.as_ref().map(|cell| cell.regions(self.table)).transpose()
    }

    fn classes(part: &Part) -> &[u32] {
        part.orders.first().map_or(&[], Vec::as_slice)
    }

    fn scratch(&self) -> Result<Scratch<'a>> {
        let (classes, columns) = (self.table.base().len(), self.table.columns());
        let individuals = self.table.base().all_individuals();
        let values: usize = columns.iter().map(EncodedColumn::distinct).sum();
        let mut held = Held::new(self.table.budget());
        // Its count, its mark in the region of a set, a cut and its two sides.
        let of_value = 2 * size_of::<u32>() + size_of::<Candidate<'_>>() + 2 * size_of::<Side>();
        held.at_least(classes * size_of::<bool>() + individuals * size_of::<u32>() + values * of_value)?;
        Ok(Scratch {
            shown: columns.iter().map(GrowingRegion::new).collect::<Result<_>>()?,
            occurs: columns.iter().map(|column| vec![0; column.distinct()]).collect(),
            seen: vec![0; individuals],
            side: 0,
            goes_left: vec![false; classes],
            _held: held,
        })
    }

    fn cut(&self, mut part: Part, judge: &mut Judge<'_>, scratch: &mut Scratch<'a>) -> Result<Cut<Part>> {
        let mut candidates = self.candidates(&part, judge, scratch)?;
        candidates.sort_unstable_by(Candidate::compare);
        let mut of_column = vec![0; self.of_leaf.len()];
        for (place, cut) in candidates.into_iter().enumerate() {
            of_column[cut.column] += 1;
            if place >= MOST_TRIED && of_column[cut.column] > MOST_OF_COLUMN {
                continue;
            }
            let Candidate { column, first, end, .. } = cut;
            let order = &part.orders[column];
            let right: Vec<u32> = order[..first].iter().chain(&order[end..]).copied().collect();
            if !judge.both_hold(&order[first..end], &right)? {
                continue;
            }
            let goes_left = &mut scratch.goes_left;
            order[first..end].iter().for_each(|class| goes_left[*class as usize] = true);
            let on_the_left = end - first;
            let sides = part.orders.iter().map(|order| {
                let mut left = Vec::with_capacity(on_the_left);
                let mut right = Vec::with_capacity(order.len() - on_the_left);
                for class in order {
                    if goes_left[*class as usize] { left.push(*class) } else { right.push(*class) }
                }
                (left, right)
            });
            let (left, right): (Vec<Vec<u32>>, Vec<Vec<u32>>) = sides.unzip();
            order[first..end].iter().for_each(|class| goes_left[*class as usize] = false);
            let (one, other) = self.cut_cell(&mut part, &cut).unzip();
            let parts = [Part { orders: left, cell: one }, Part { orders: right, cell: other }];
            return Ok(Cut::Into(parts.into()));
        }
        Ok(Cut::Final(part))
    }
}

/// Returns whether a value of a cell goes left where one label is cut off: those of a part that are
/// `left`, and the others if they have the same label.
fn goes_left(code: u32, of_part: &[u32], left: RangeInclusive<u32>, labels: Labels<'_>) -> bool {
    let label = |code: u32| labels.and_then(|labels| labels.get(code as usize));
    match of_part.binary_search(&code) {
        Ok(_) => left.contains(&code),
        Err(_) => label(code).is_some() && label(code) == label(*left.start()),
    }
}
