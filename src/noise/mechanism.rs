//! The mechanism of `dp_centroids`: everything that the policy says of it, and nothing of the data.
//!
//! A value counts as an integer: the number of units that it lies above the lower bound of its column. So
//! sums, noise and their sensitivity are exact. Rows are ordered by all their integers, and each k
//! consecutive ones make a cluster.
//!
//! The default order is not the paper's. The proof needs an order that does not depend on the data, and nothing
//! else. The noise must cover the sum, over all clusters, of the differences between the rows that they
//! exchange when one row is replaced; these rows form a chain in the order. By distance from a corner, each
//! step of a chain can be as long as a column. Along a Hilbert curve (Skilling 2004) a chain of C steps in d
//! columns is `O(C^(1 - 1/d))` ranges long in a column (above 16 columns, where even halves are too many cells,
//! C is taken). [`Mechanism::sensitivities`] bounds it by how often the curve steps along each column at each
//! level of cells; tests compare the bound with all neighbours of small tables and, by dynamic programming,
//! with all chains. One column alone is the case d = 1. Sánchez et al. 2016 order each column apart so; but
//! then noise would not hide which means a row shows together.

use std::cmp::Ordering;

use arrow::datatypes::DataType;

use super::discrete_laplace::{DiscreteLaplace, Random};
use super::hilbert;
use crate::decimal::{Decimal, ratio};
use crate::error::{Error, Result};
use crate::generalize::value::type_name;
use crate::generalize::{Hierarchy, Value};

/// How rows are ordered before they are cut into clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Along a Hilbert curve through the box of the bounds: rows that are near in the order are near in
    /// every column.
    Hilbert,
    /// By the Manhattan distance from the corner of all lower bounds, each column scaled to the same length: the
    /// order of the paper, with a distance that needs integers alone.
    Distance,
}

impl Order {
    /// The names of the orders.
    pub const NAMES: &[&str] = &["hilbert", "distance"];

    /// Returns the order with this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "hilbert" => Some(Self::Hilbert),
            "distance" => Some(Self::Distance),
            _ => None,
        }
    }
}

/// What the policy says of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoisyColumn {
    name: String,
    /// The lower bound in units.
    low: i128,
    /// The units from the lower bound to the upper one.
    range: u64,
    /// The digits after the point of a unit.
    scale: u32,
    /// The bounds as the bits of floats, which can be compared.
    ends: [u64; 2],
    epsilon: Decimal,
}

/// The mechanism for columns in the order of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mechanism {
    order: Order,
    /// The rows of a cluster; the last one has fewer than twice as many.
    k: u64,
    columns: Vec<NoisyColumn>,
}

/// The most units of a range, unless the bounds themselves have more digits. They do not depend on the column's
/// type: that of a CSV column follows from all its values, so one fraction would change what every mean is a
/// multiple of.
const MAX_UNITS: i128 = 1_000_000_000_000;

/// The most columns: each has at least one bit of a place on the curve.
pub const MAX_COLUMNS: usize = 64;

/// The greatest epsilon. Far smaller ones promise nothing; their digits are computed with exactly.
pub const MAX_EPSILON: Decimal = Decimal::integer(1_000_000_000);

/// The digits after the point of an epsilon, also of the share of a column.
pub const EPSILON_SCALE: u32 = 6;

impl Mechanism {
    /// Creates the mechanism for columns with their hierarchies and weights, which are at most 1. A column
    /// has the share of epsilon that its weight has of all weights, rounded so that they add up to it.
    ///
    /// # Errors
    /// A policy error that names the key.
    pub(crate) fn new<'a>(
        epsilon: Decimal,
        order: Order,
        k: u64,
        columns: impl Iterator<Item = (&'a str, &'a Hierarchy, f64)>,
    ) -> Result<Self> {
        let given: Vec<(&str, &Hierarchy, f64)> = columns.collect();
        let epsilon_error = |why: String| Error::policy(why).at("method.dp_centroids.epsilon");
        if epsilon.scale() > EPSILON_SCALE {
            let why = format!("expected at most {EPSILON_SCALE} digits after the point, found {epsilon}");
            return Err(epsilon_error(why));
        }
        if epsilon > MAX_EPSILON {
            return Err(epsilon_error(format!("expected at most {MAX_EPSILON}, found {epsilon}")));
        }
        if given.len() > MAX_COLUMNS {
            return Err(epsilon_error(format!(
                "it can be split over at most {MAX_COLUMNS} quasi-identifiers, found {}; leave columns out",
                given.len()
            )));
        }
        /// Weights as integers: parts of the largest.
        const WEIGHT_UNITS: f64 = 1_048_576.0;
        let whole =
            |weight: &f64| format!("{:.0}", weight * WEIGHT_UNITS).parse::<i128>().map_err(Error::internal);
        let weights = given.iter().map(|(.., weight)| whole(weight)).collect::<Result<Vec<_>>>()?;
        let all: i128 = weights.iter().sum();
        let mut before = 0;
        let columns = given.iter().zip(weights).map(|((name, hierarchy, _), weight)| {
            // Cumulative shares are rounded, so that all shares add up to epsilon.
            let cumulative = |weights: i128| {
                epsilon.units(EPSILON_SCALE).saturating_mul(weights).checked_div(all).unwrap_or(0)
            };
            let share = cumulative(before + weight) - cumulative(before);
            before += weight;
            if share == 0 {
                let why = format!(
                    "the share of `{name}` is below 0.000001; raise epsilon or the column's `weight`"
                );
                return Err(epsilon_error(why));
            }
            let epsilon = Decimal::parse(&format!("{share}e-{EPSILON_SCALE}"))?;
            let column = NoisyColumn::new(name, hierarchy, epsilon);
            column.map_err(|why| Error::policy(why).at(format!("columns.{name}")))
        });
        Ok(Self::from_columns(order, k, columns.collect::<Result<_>>()?))
    }

    /// Creates the mechanism for these columns.
    pub(crate) fn from_columns(order: Order, k: u64, columns: Vec<NoisyColumn>) -> Self {
        Self { order, k: k.max(1), columns }
    }

    /// Returns the number of rows of a cluster; the last one also takes the remainder.
    pub fn k(&self) -> u64 {
        self.k
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[NoisyColumn] {
        &self.columns
    }

    /// Returns the number of clusters of so many rows, which is 0 if there are fewer than k.
    pub fn clusters(&self, rows: u64) -> u64 {
        rows / self.k
    }

    /// Returns the cluster of the row with this number in the order, of so many rows.
    pub fn cluster_of(&self, number: u64, rows: u64) -> u64 {
        (number / self.k).min(self.clusters(rows).saturating_sub(1))
    }

    /// Returns the rows of a cluster of so many rows.
    pub fn size(&self, cluster: u64, rows: u64) -> u64 {
        let clusters = self.clusters(rows);
        if cluster + 1 < clusters { self.k } else { rows - self.k * clusters.saturating_sub(1) }
    }

    /// Returns the bits of a coordinate on the curve.
    fn bits_of_coordinate(&self) -> u32 {
        let count = u32::try_from(self.columns.len().max(1)).unwrap_or(u32::MAX);
        (u64::BITS / count).clamp(1, u32::BITS)
    }

    /// Returns the place of a row with these units in the order. Rows with the same place are ordered by
    /// their units in the first column, then in the second, and so on.
    pub fn place(&self, units: &[u64]) -> u64 {
        let bits = self.bits_of_coordinate();
        // The highest bits of the position between the bounds.
        let position = |(units, column): (&u64, &NoisyColumn), bits: u32| {
            let part = (u128::from(*units) << bits) / (u128::from(column.range) + 1);
            u32::try_from(part).unwrap_or(u32::MAX)
        };
        let positions = |bits: u32| units.iter().zip(&self.columns).map(move |of| position(of, bits));
        match self.order {
            Order::Hilbert => hilbert::place(&mut positions(bits).collect::<Vec<_>>(), bits),
            Order::Distance => positions(u32::BITS).map(u64::from).sum(),
        }
    }

    /// Returns, for each column, a bound of how much its sums can change when one row of a table with so many
    /// rows is replaced: the sum of the changes over all clusters, in units.
    ///
    /// The rows between the old place and the new one move on by one, so each cluster between them gives its
    /// first row to its neighbour. The exchanged rows are monotone in the order, with at most one step for each
    /// cluster, and the sums of a column change by the length of this chain in that column: at most its range for
    /// each step. A single column is ordered by its values, so the chain is no longer than the range. On a
    /// Hilbert curve, divide the box into equal cells. A chain visits cells in the order of the curve, so its
    /// moves from cell to cell are at most the steps of the curve along the column; each move of the chain adds
    /// less than the width of a cell. The size of cells with the least bound is taken.
    ///
    /// # Errors
    /// An internal error if the curve is broken.
    pub fn sensitivities(&self, rows: u64) -> Result<Vec<u128>> {
        let clusters = u128::from(self.clusters(rows));
        let range = |column: &NoisyColumn| u128::from(column.range);
        if self.columns.len() == 1 {
            return Ok(self.columns.iter().map(range).collect());
        }
        let mut found: Vec<u128> =
            self.columns.iter().map(|column| range(column).saturating_mul(clusters)).collect();
        if self.order == Order::Distance || self.columns.len() > hilbert::MAX_DIMENSIONS {
            return Ok(found);
        }
        let mut last = vec![u128::MAX; self.columns.len()];
        for bits in 1..=self.bits_of_coordinate() {
            let steps = hilbert::steps(self.columns.len(), bits)?;
            let bound = |(column, steps): (&NoisyColumn, &u128)| {
                // The values of m + 1 neighbouring cells differ by less than (m + 1) * width.
                let width = (range(column) + 1).div_ceil(1 << bits);
                steps.saturating_mul(width).saturating_add(clusters.saturating_mul(width - 1))
            };
            let bounds: Vec<u128> = self.columns.iter().zip(&steps).map(bound).collect();
            // In smaller cells, the steps between them only grow.
            if bounds.iter().zip(&last).all(|(bound, last)| bound >= last) {
                break;
            }
            found.iter_mut().zip(&bounds).for_each(|(found, bound)| *found = (*found).min(*bound));
            last = bounds;
        }
        Ok(found)
    }

    /// Returns the distribution of the noise of each column's sums, in units.
    ///
    /// # Errors
    /// A policy error if a scale has too many digits.
    fn noise(&self, rows: u64) -> Result<Vec<DiscreteLaplace>> {
        let noise = self.columns.iter().zip(self.sensitivities(rows)?).map(|(column, sensitivity)| {
            let epsilon = u128::try_from(column.epsilon.units(EPSILON_SCALE)).map_err(Error::internal)?;
            let scale = sensitivity.checked_mul(10u128.pow(EPSILON_SCALE));
            scale.and_then(|scale| DiscreteLaplace::new(scale, epsilon)).ok_or_else(|| {
                let why = "the bounds are too far apart for so many rows; set closer bounds";
                Error::policy(why).at(format!("columns.{}.clip", column.name))
            })
        });
        noise.collect()
    }

    /// Returns the scale of the noise of each column's means, of clusters of k of so many rows: how far noise
    /// takes a mean away, on average, before it is put back within the bounds.
    ///
    /// # Errors
    /// Those of [`sensitivities`](Self::sensitivities).
    pub fn scales(&self, rows: u64) -> Result<Vec<f64>> {
        let of_units = self.scales_in_units(rows)?.into_iter().zip(&self.columns);
        Ok(of_units.map(|(scale, column)| scale / ratio(10u128.pow(column.scale), 1)).collect())
    }

    /// Returns [`scales`](Self::scales) in units.
    ///
    /// # Errors
    /// The same.
    pub fn scales_in_units(&self, rows: u64) -> Result<Vec<f64>> {
        let columns = self.columns.iter().zip(self.sensitivities(rows)?);
        Ok(columns.map(|(column, most)| ratio(most, self.k.into()) / column.epsilon.to_f64()).collect())
    }

    /// Returns the least k for which the scale of each column's noise is at most this share of its range, of
    /// so many rows; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`sensitivities`](Self::sensitivities).
    pub fn least_k(&self, rows: u64, share: f64) -> Result<Option<u64>> {
        let is_enough = |k: u64| -> Result<bool> {
            let scales = Self { k, ..self.clone() }.scales_in_units(rows)?;
            let ranges = self.columns.iter().map(|column| ratio(column.range.into(), 1));
            Ok(scales.iter().zip(ranges).all(|(scale, range)| *scale <= share * range))
        };
        let (mut less, mut enough) = (0, rows);
        if rows == 0 || !is_enough(rows)? {
            return Ok(None);
        }
        while enough - less > 1 {
            let k = less + (enough - less) / 2;
            if is_enough(k)? { enough = k } else { less = k }
        }
        Ok(Some(enough))
    }

    /// Draws the noise of every sum, one cluster after another, and in each one column after another.
    ///
    /// # Errors
    /// Those of the source, and those of bounds that are too far apart.
    pub fn draw(&self, rows: u64, random: &mut Random<'_>) -> Result<Vec<i128>> {
        let noise = self.noise(rows)?;
        (0..self.clusters(rows)).flat_map(|_| &noise).map(|noise| noise.draw(random)).collect()
    }

    /// Returns what each cluster of so many rows shows in each column, and its rows. Sums and noise are in units,
    /// one cluster after another, and in each one column after another.
    pub fn noisy_means<'a>(
        &'a self,
        rows: u64,
        sums: &'a [u128],
        noise: &'a [i128],
    ) -> impl Iterator<Item = (Vec<f64>, u64)> + 'a {
        let width = self.columns.len().max(1);
        (0u64..).zip(sums.chunks(width).zip(noise.chunks(width))).map(move |(cluster, (sums, noise))| {
            let size = self.size(cluster, rows);
            let of_column = self.columns.iter().zip(sums.iter().zip(noise));
            (of_column.map(|(column, (sum, noise))| column.shown(*sum, *noise, size)).collect(), size)
        })
    }
}

impl NoisyColumn {
    /// Creates the column with its share of epsilon.
    ///
    /// # Errors
    /// Why noise cannot be added to it.
    pub(crate) fn new(name: &str, hierarchy: &Hierarchy, epsilon: Decimal) -> Result<Self, String> {
        let input = hierarchy.input_type();
        if !(input.is_integer() || input.is_floating() || input.is_decimal()) {
            let days = "; of a date, release the days since another one";
            let is_moment = matches!(input, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
            return Err(format!(
                "`dp_centroids` adds noise to numbers, found {}; leave the column out{}",
                type_name(input),
                if is_moment { days } else { "" }
            ));
        }
        if !hierarchy.has_intervals() {
            let why = "`dp_centroids` adds noise to numbers, and the values of a column with such a hierarchy are codes; remove the \
                       hierarchy, or leave the column out";
            return Err(why.into());
        }
        let clip = hierarchy.levels().first().and_then(|level| level.descriptor().clip);
        let Some([Some(low), Some(high)]) = clip else {
            return Err(
                "`dp_centroids` needs both bounds of a column, chosen without looking at the data; write clip = [0, 100]"
                    .into(),
            );
        };
        let end = |text: &str| Decimal::parse(text).map_err(|error| error.to_string());
        let (low, high) = (end(&low)?, end(&high)?);
        let scale_of_ends = low.scale().max(high.scale());
        let range = |scale: u32| high.units(scale).checked_sub(low.units(scale));
        let mut scale = scale_of_ends;
        while range(scale + 1).is_some_and(|range| range <= MAX_UNITS) {
            scale += 1;
        }
        let range = range(scale).and_then(|range| u64::try_from(range).ok());
        let range = range.ok_or("the bounds of `clip` have too many digits")?;
        let ends = [low, high].map(|end| end.to_f64().to_bits());
        Ok(Self { name: name.to_owned(), low: low.units(scale), range, scale, ends, epsilon })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the share of epsilon.
    pub fn epsilon(&self) -> Decimal {
        self.epsilon
    }

    /// Returns the units that a value lies above the lower bound. A value beyond a bound counts as the bound,
    /// NULL and NaN as the middle. Floats are rounded to the nearest unit; further digits of decimals are dropped.
    ///
    /// # Errors
    /// An internal error for a value that is no number.
    pub fn units(&self, value: &Value) -> Result<u64> {
        let places = usize::try_from(self.scale).map_err(Error::internal)?;
        let text = match value {
            Value::Null => return Ok(self.range / 2),
            Value::Float(value) if value.is_nan() => return Ok(self.range / 2),
            Value::Float(value) => {
                let [low, high] = self.ends.map(f64::from_bits);
                format!("{:.places$}", value.clamp(low, high)).replace('.', "")
            }
            Value::Int(value) => format!("{value}{:0<places$}", ""),
            Value::Decimal(digits, scale) => {
                let digits = digits.to_string();
                let more = i64::from(self.scale) - i64::from(*scale);
                match usize::try_from(more.unsigned_abs()).map_err(Error::internal)? {
                    places if more >= 0 => format!("{digits}{:0<places$}", ""),
                    places => match digits.get(..digits.len().saturating_sub(places)) {
                        None | Some("" | "-") => "0".to_owned(),
                        Some(digits) => digits.to_owned(),
                    },
                }
            }
            _ => return Err(Error::internal("dp_centroids: a value that is no number")),
        };
        let units = text.parse::<i128>().unwrap_or(if text.starts_with('-') { i128::MIN } else { i128::MAX });
        let above = units.saturating_sub(self.low).clamp(0, i128::from(self.range));
        u64::try_from(above).map_err(Error::internal)
    }

    /// Returns whether a cluster may show this number.
    pub fn may_show(&self, mean: f64) -> bool {
        let [low, high] = self.ends.map(f64::from_bits);
        let is_minus_zero = mean == 0.0 && mean.is_sign_negative();
        (low..=high).contains(&mean) && !is_minus_zero
    }

    /// Returns the mean that a cluster of so many rows shows: the sum of its units with noise, divided by
    /// the rows, and within the bounds.
    pub fn shown(&self, sum: u128, noise: i128, rows: u64) -> f64 {
        let [low, high] = self.ends.map(f64::from_bits);
        let most = i128::try_from(u128::from(self.range) * u128::from(rows)).unwrap_or(i128::MAX);
        let noisy = i128::try_from(sum).unwrap_or(i128::MAX).saturating_add(noise);
        match (noisy.cmp(&0), noisy.cmp(&most)) {
            (Ordering::Less | Ordering::Equal, _) => low + 0.0,
            (_, Ordering::Greater | Ordering::Equal) => high + 0.0,
            _ => {
                let sum = self.low.saturating_mul(i128::from(rows)).saturating_add(noisy);
                let size = ratio(sum.unsigned_abs(), u128::from(rows) * 10u128.pow(self.scale));
                (if sum < 0 { -size } else { size }).clamp(low, high)
            }
        }
    }
}

#[cfg(test)]
#[path = "mechanism_tests.rs"]
mod tests;
