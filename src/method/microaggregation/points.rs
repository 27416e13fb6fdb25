//! Points: the base classes of a table in a space in which columns of every kind have distances.
//!
//! - A column of numbers, dates or timestamps has one coordinate. If it has NULLs, labels say besides
//!   whether a value is missing, and a missing value is placed at the mean of the others.
//! - Any other column has for each level of its hierarchy below the top one coordinate per label: 1
//!   for the value's own label, 0 for the others. So two values are the farther apart, the higher the
//!   level at which they first meet. Without levels, all values are equally far apart.
//!
//! Each column is scaled so that its variance over the rows of the table is its weight: no unit
//! counts more than another one. The sum of squares around the centers of classes, divided by that
//! around the center of the table, is then SSE / SST, the information loss of microaggregation
//! (Domingo-Ferrer & Mateo-Sanz 2002), with categories.

use crate::class::{ClassTable, EncodedColumn, Held};
use crate::decimal::ratio;
use crate::error::{Error, Result};

/// The base classes of a table as points.
pub(super) struct Points {
    /// The rows of each base class.
    rows: Vec<f64>,
    /// The number of coordinates that are numbers.
    dimensions: usize,
    /// These coordinates, one base class after another.
    numbers: Vec<f64>,
    /// The number of labels that each base class has.
    slots: usize,
    /// The labels, one base class after another. Each has a number of its own among all columns and levels.
    labels: Vec<u32>,
    /// For each label, the squared distance from it to any other one of its level.
    apart: Vec<f64>,
    /// Half the sum of these distances, one for each slot.
    half_apart: f64,
    _held: Held,
}

/// The center of base classes.
#[derive(Debug, Clone)]
pub(super) struct Center {
    /// The rows of the base classes.
    pub(super) rows: f64,
    /// The mean of each coordinate that is a number.
    means: Vec<f64>,
    /// The share of the rows that has each label, in the order of the labels; those of no row are left out.
    shares: Vec<(u32, f64)>,
    /// The squared distance to a point that has none of these labels, numbers aside.
    labels_apart: f64,
}

/// The center of the base classes that remain as clusters are taken out.
pub(super) struct Remaining<'a> {
    points: &'a Points,
    rows: f64,
    sums: Vec<f64>,
    /// The rows with each label.
    of_label: Vec<f64>,
}

/// The coordinates of a column.
struct Coordinates {
    /// The number of each code; `None` for NULL.
    numbers: Option<Vec<Option<f64>>>,
    /// The label of each code, by slot.
    slots: Vec<Vec<u32>>,
}

impl Coordinates {
    fn of(column: &EncodedColumn) -> Result<Self> {
        if !column.has_intervals() {
            let slots = (0..column.height()).map(|level| column.map(0, level).map(<[u32]>::to_vec));
            return Ok(Self { numbers: None, slots: slots.collect::<Result<_>>()? });
        }
        let codes = || (0u32..).take(column.distinct());
        let is_missing = |code: &u32| *code == 0 && column.has_null();
        // An infinity or NaN has no place; codes are in the order of the values.
        let by_rank = || codes().map(|code| (!is_missing(&code)).then_some(f64::from(code))).collect();
        let numbers = column.number_line()?.map_or_else(by_rank, |line| line.places().to_vec());
        let missing = codes().map(|code| u32::from(is_missing(&code))).collect();
        Ok(Self { numbers: Some(numbers), slots: if column.has_null() { vec![missing] } else { Vec::new() } })
    }
}

impl Points {
    /// Places the base classes of a table.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn new(table: &ClassTable) -> Result<Self> {
        let base = table.base();
        let columns = table.columns().iter().map(Coordinates::of).collect::<Result<Vec<_>>>()?;
        let dimensions = columns.iter().filter(|column| column.numbers.is_some()).count();
        let slots: usize = columns.iter().map(|column| column.slots.len()).sum();
        let mut held = Held::new(table.budget());
        // Per column a number and labels of each value, and the distances of the labels.
        let of_values = |(at, column): (&Coordinates, &EncodedColumn)| {
            column.distinct()
                * (size_of::<Option<f64>>() + at.slots.len() * (size_of::<u32>() + size_of::<f64>()))
        };
        let of_values: usize = columns.iter().zip(table.columns()).map(of_values).sum();
        let of_base = (dimensions + 1) * size_of::<f64>() + (slots + 1) * size_of::<u32>();
        held.at_least(of_values + base.len() * of_base)?;
        let mut points = Self {
            rows: base.rows().map(|rows| ratio(rows.into(), 1)).collect(),
            dimensions,
            numbers: vec![0.0; base.len() * dimensions],
            slots,
            labels: vec![0; base.len() * slots],
            apart: Vec::new(),
            half_apart: 0.0,
            _held: held,
        };
        let (mut dimension, mut slot) = (0, 0);
        for (at, (coordinates, column)) in columns.iter().zip(table.columns()).enumerate() {
            let codes: Vec<u32> = (0..base.len()).map(|class| table.code(base, class, at)).collect();
            let apart = 1.0 / ratio(coordinates.slots.len().max(1) as u128, 1);
            let spread: f64 = coordinates.slots.iter().map(|labels| points.spread(labels, &codes)).sum();
            let mut variance = apart * spread;
            let moments = coordinates.numbers.as_ref().map(|numbers| points.moments(numbers, &codes));
            variance += moments.map_or(0.0, |(_, variance)| variance);
            let scale = if variance > 0.0 { column.weight() / variance } else { 0.0 };
            if let (Some(numbers), Some((mean, _))) = (&coordinates.numbers, moments) {
                for (class, code) in codes.iter().enumerate() {
                    let number = numbers[*code as usize].map_or(0.0, |number| number - mean);
                    points.numbers[class * dimensions + dimension] = number * scale.sqrt();
                }
                dimension += 1;
            }
            for labels in &coordinates.slots {
                let first = u32::try_from(points.apart.len()).map_err(Error::internal)?;
                for (class, code) in codes.iter().enumerate() {
                    points.labels[class * slots + slot] = first + labels[*code as usize];
                }
                let count = labels.iter().max().map_or(0, |most| *most as usize + 1);
                points.apart.extend(std::iter::repeat_n(apart * scale, count));
                points.half_apart += apart * scale / 2.0;
                slot += 1;
            }
        }
        Ok(points)
    }

    /// Returns half the chance that two rows differ in a label.
    fn spread(&self, labels: &[u32], codes: &[u32]) -> f64 {
        let mut rows = vec![0.0; labels.iter().max().map_or(0, |most| *most as usize + 1)];
        codes.iter().zip(&self.rows).for_each(|(code, n)| rows[labels[*code as usize] as usize] += n);
        let all: f64 = rows.iter().sum();
        (1.0 - rows.iter().map(|rows| (rows / all) * (rows / all)).sum::<f64>()) / 2.0
    }

    /// Returns the mean of the numbers of the rows that have one, and the variance of all rows, the others
    /// at the mean.
    fn moments(&self, numbers: &[Option<f64>], codes: &[u32]) -> (f64, f64) {
        let present =
            || codes.iter().zip(&self.rows).filter_map(|(code, n)| Some((numbers[*code as usize]?, *n)));
        let rows: f64 = present().map(|(_, n)| n).sum();
        if rows == 0.0 {
            return (0.0, 0.0);
        }
        let mean = present().map(|(x, n)| x * n).sum::<f64>() / rows;
        let squares: f64 = present().map(|(x, n)| (x - mean) * (x - mean) * n).sum();
        (mean, squares / self.rows.iter().sum::<f64>())
    }

    /// Returns the rows of a base class.
    pub(super) fn rows(&self, class: u32) -> f64 {
        self.rows[class as usize]
    }

    fn numbers(&self, class: u32) -> &[f64] {
        &self.numbers[class as usize * self.dimensions..][..self.dimensions]
    }

    fn labels(&self, class: u32) -> &[u32] {
        &self.labels[class as usize * self.slots..][..self.slots]
    }

    /// Returns the squared distance of two base classes.
    pub(super) fn distance(&self, a: u32, b: u32) -> f64 {
        let labels = self.labels(a).iter().zip(self.labels(b));
        let apart = labels.map(|(a, b)| if a == b { 0.0 } else { self.apart[*a as usize] });
        squared(self.numbers(a), self.numbers(b)) + apart.sum::<f64>()
    }

    /// Returns the center of base classes.
    pub(super) fn center(&self, classes: &[u32]) -> Center {
        let rows: f64 = classes.iter().map(|class| self.rows(*class)).sum();
        let mut means = vec![0.0; self.dimensions];
        let mut shares: Vec<(u32, f64)> = Vec::with_capacity(classes.len() * self.slots);
        for class in classes {
            let share = self.rows(*class) / rows;
            means.iter_mut().zip(self.numbers(*class)).for_each(|(mean, x)| *mean += share * x);
            shares.extend(self.labels(*class).iter().map(|label| (*label, share)));
        }
        shares.sort_by_key(|(label, _)| *label);
        shares.dedup_by(|next, first| {
            let is_same = next.0 == first.0;
            first.1 += if is_same { next.1 } else { 0.0 };
            is_same
        });
        let squares = shares.iter().map(|(label, share)| self.apart[*label as usize] / 2.0 * share * share);
        let labels_apart = self.half_apart + squares.sum::<f64>();
        Center { rows, means, shares, labels_apart }
    }

    /// Returns the squared distance of a base class from a center; at least `bound` if it is not less.
    pub(super) fn distance_from(&self, center: &Center, class: u32, bound: f64) -> f64 {
        let distance = squared(&center.means, self.numbers(class));
        if self.slots == 0 || distance >= bound {
            return distance;
        }
        let share = |label: &u32| {
            let place = center.shares.binary_search_by_key(label, |(label, _)| *label);
            place.map_or(0.0, |place| self.apart[*label as usize] * center.shares[place].1)
        };
        let near: f64 = self.labels(class).iter().map(share).sum();
        // Rounding can leave less than nothing.
        (distance + center.labels_apart - near).max(0.0)
    }

    /// Returns the sum of squared distances of the rows of base classes from their center.
    pub(super) fn squares(&self, classes: &[u32], center: &Center) -> f64 {
        let squares =
            classes.iter().map(|class| self.rows(*class) * self.distance_from(center, *class, f64::INFINITY));
        squares.sum()
    }
}

impl Center {
    /// Returns by how much the sum of squares grows when rows at this squared distance join.
    pub(super) fn added(&self, rows: f64, distance: f64) -> f64 {
        rows * self.rows / (self.rows + rows) * distance
    }

    /// Returns by how much the sum of squares falls when rows at this squared distance leave; others stay.
    pub(super) fn saved(&self, rows: f64, distance: f64) -> f64 {
        rows * self.rows / (self.rows - rows) * distance
    }
}

impl<'a> Remaining<'a> {
    /// Begins with these base classes.
    pub(super) fn new(points: &'a Points, classes: &[u32]) -> Self {
        let (sums, of_label) = (vec![0.0; points.dimensions], vec![0.0; points.apart.len()]);
        let mut remaining = Self { points, rows: 0.0, sums, of_label };
        classes.iter().for_each(|class| remaining.add(*class, 1.0));
        remaining
    }

    /// Takes base classes away.
    pub(super) fn take(&mut self, classes: &[u32]) {
        classes.iter().for_each(|class| self.add(*class, -1.0));
    }

    fn add(&mut self, class: u32, sign: f64) {
        let rows = sign * self.points.rows(class);
        self.rows += rows;
        self.sums.iter_mut().zip(self.points.numbers(class)).for_each(|(sum, x)| *sum += rows * x);
        self.points.labels(class).iter().for_each(|label| self.of_label[*label as usize] += rows);
    }

    /// Returns a function for the squared distance of a base class from the center, less what all
    /// have in common.
    pub(super) fn distances(&self) -> impl Fn(u32) -> f64 {
        let means: Vec<f64> = self.sums.iter().map(|sum| sum / self.rows).collect();
        move |class| {
            let near =
                self.points.labels(class).iter().map(|label| {
                    self.points.apart[*label as usize] * self.of_label[*label as usize] / self.rows
                });
            squared(&means, self.points.numbers(class)) - near.sum::<f64>()
        }
    }
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}
