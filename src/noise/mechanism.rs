//! The mechanism of `dp_centroids`: everything that the policy says of it, and nothing of the data.
//!
//! A value counts as an integer: the number of units that it lies above the lower bound of its column. So
//! sums, noise and their sensitivity are exact. Rows are ordered by all their integers, and each k
//! consecutive ones make a cluster.

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
    /// By the distance from the corner of all lower bounds, where each column is as long as any other: the
    /// order of the paper.
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
    /// The bounds as floats.
    ends: [u64; 2],
    epsilon: Decimal,
}

/// The mechanism for columns in the order of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mechanism {
    order: Order,
    /// The rows of a cluster; the last takes up to twice as many.
    k: u64,
    columns: Vec<NoisyColumn>,
}

/// The most units of a column, unless its bounds have more digits. They do not depend on its type: that of a
/// CSV column follows from its values, and one person's fraction must not show in what all means are multiples of.
const UNITS: i128 = 1_000_000_000_000;

/// The most bits of the number of a cell, for the bound of a sensitivity.
const MOST_CELLS: u32 = 16;

/// The most columns: each has at least one bit of a place on the curve.
const MOST_COLUMNS: usize = 64;

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
        const WEIGHTS: f64 = 1_048_576.0;
        let given: Vec<(&str, &Hierarchy, f64)> = columns.collect();
        let of_method = |why: String| Error::policy(why).at("method.dp_centroids.epsilon");
        if epsilon.scale() > EPSILON_SCALE {
            return Err(of_method(format!("expected at most {EPSILON_SCALE} digits after the point")));
        }
        if given.len() > MOST_COLUMNS {
            return Err(of_method(format!("it is split over at most {MOST_COLUMNS} quasi-identifiers")));
        }
        let whole =
            |weight: &f64| format!("{:.0}", weight * WEIGHTS).parse::<i128>().map_err(Error::internal);
        let weights = given.iter().map(|(.., weight)| whole(weight)).collect::<Result<Vec<_>>>()?;
        let all: i128 = weights.iter().sum();
        let mut before = 0;
        let columns = given.iter().zip(weights).map(|((name, hierarchy, _), weight)| {
            // The first columns together have their share of epsilon, so all have the whole.
            let up_to = |weights: i128| epsilon.units(EPSILON_SCALE).saturating_mul(weights).checked_div(all);
            let share = up_to(before + weight).unwrap_or(0) - up_to(before).unwrap_or(0);
            before += weight;
            if share == 0 {
                return Err(of_method(format!("nothing is left of it for `{name}`")));
            }
            let epsilon = Decimal::parse(&format!("{share}e-{EPSILON_SCALE}"))?;
            let column = NoisyColumn::new(name, hierarchy, epsilon);
            column.map_err(|why| Error::policy(why).at(format!("columns.{name}")))
        });
        Ok(Self::of(order, k, columns.collect::<Result<_>>()?))
    }

    /// Creates the mechanism for these columns.
    pub(crate) fn of(order: Order, k: u64, columns: Vec<NoisyColumn>) -> Self {
        Self { order, k: k.max(1), columns }
    }

    /// Returns the rows of a cluster; the last takes the rest.
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

    /// Returns the place of a row with these units in the order. Rows with the same place are ordered by
    /// their units in the first column, then in the second, and so on.
    pub fn place(&self, units: &[u64]) -> u64 {
        let count = u32::try_from(self.columns.len().max(1)).unwrap_or(u32::MAX);
        let bits = (u64::BITS / count).clamp(1, u32::BITS);
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

    /// Returns by how much the sums of each column over all clusters of a table with so many rows can change
    /// together, in units, if one row is replaced.
    ///
    /// The rows between the old place and the new one move on by one, so each cluster between them exchanges
    /// its first row for the next cluster's. The rows exchanged are a chain in the order of the rows, with at
    /// most one step for each cluster, and the change of a column is what the chain goes up and down in it:
    /// at most its range for each step. Of one column alone the order is that of its values, so a chain goes one
    /// way. Along a Hilbert curve, look at cells of a cube of the bounds: where a chain goes from one cell
    /// to another, the curve has stepped between them, which it does only so often along each column; what a
    /// chain goes inside of cells is at most the width of one for each step. The best width of a cell is taken.
    pub fn sensitivities(&self, rows: u64) -> Vec<u128> {
        let clusters = u128::from(self.clusters(rows));
        let range = |column: &NoisyColumn| u128::from(column.range);
        if self.columns.len() == 1 {
            return self.columns.iter().map(range).collect();
        }
        let mut found: Vec<u128> =
            self.columns.iter().map(|column| range(column).saturating_mul(clusters)).collect();
        if self.order == Order::Distance {
            return found;
        }
        let most_bits = MOST_CELLS / u32::try_from(self.columns.len().max(1)).unwrap_or(u32::MAX);
        let mut last = vec![u128::MAX; self.columns.len()];
        for bits in 1..=most_bits {
            let steps = hilbert::steps(self.columns.len(), bits);
            let bound = |(column, steps): (&NoisyColumn, &u64)| {
                // The values of m + 1 neighbouring cells differ by less than (m + 1) * width.
                let width = (range(column) + 1).div_ceil(1 << bits);
                let goes = u128::from(*steps).saturating_mul(width);
                goes.saturating_add(clusters.saturating_mul(width - 1))
            };
            let bounds: Vec<u128> = self.columns.iter().zip(&steps).map(bound).collect();
            // In ever smaller cells what the curve goes between them only grows.
            if bounds.iter().zip(&last).all(|(bound, last)| bound >= last) {
                break;
            }
            found.iter_mut().zip(&bounds).for_each(|(found, bound)| *found = (*found).min(*bound));
            last = bounds;
        }
        found
    }

    /// Returns the distribution of the noise of each column's sums, in units.
    ///
    /// # Errors
    /// A policy error if a scale has too many digits.
    fn noise(&self, rows: u64) -> Result<Vec<DiscreteLaplace>> {
        let noise = self.columns.iter().zip(self.sensitivities(rows)).map(|(column, sensitivity)| {
            let epsilon = u128::try_from(column.epsilon.units(EPSILON_SCALE)).map_err(Error::internal)?;
            let scale = sensitivity.checked_mul(10u128.pow(EPSILON_SCALE));
            scale.and_then(|scale| DiscreteLaplace::new(scale, epsilon)).ok_or_else(|| {
                let why = "its bounds are too far apart, in units of their last digit, for so many rows";
                Error::policy(why).at(format!("columns.{}.clip", column.name))
            })
        });
        noise.collect()
    }

    /// Returns the scale of the noise of each column's means, of clusters of k of so many rows: how far noise
    /// takes a mean away, on average, before it is put back within the bounds.
    pub fn scales(&self, rows: u64) -> Vec<f64> {
        let of_units = self.scales_in_units(rows).into_iter().zip(&self.columns);
        of_units.map(|(scale, column)| scale / ratio(10u128.pow(column.scale), 1)).collect()
    }

    /// Returns the same in units.
    pub fn scales_in_units(&self, rows: u64) -> Vec<f64> {
        let columns = self.columns.iter().zip(self.sensitivities(rows));
        columns.map(|(column, most)| ratio(most, self.k.into()) / column.epsilon.to_f64()).collect()
    }

    /// Returns the least k for which the noise of each column has at most this share of its range, of so many
    /// rows; all rows if there is none.
    pub fn least_k(&self, rows: u64, share: f64) -> u64 {
        let is_enough = |k: u64| {
            let with_k = Self { k, ..self.clone() };
            let scales = with_k.scales_in_units(rows).into_iter().zip(&self.columns);
            scales.into_iter().all(|(scale, column)| scale <= share * ratio(column.range.into(), 1))
        };
        let (mut less, mut enough) = (0, rows.max(1));
        while enough - less > 1 {
            let k = less + (enough - less) / 2;
            if is_enough(k) { enough = k } else { less = k }
        }
        enough
    }

    /// Draws the noise of every sum, one cluster after another, and in each one column after another.
    ///
    /// # Errors
    /// Those of the source, and those of bounds that are too far apart.
    pub fn draw(&self, rows: u64, random: &mut Random<'_>) -> Result<Vec<i128>> {
        let noise = self.noise(rows)?;
        (0..self.clusters(rows)).flat_map(|_| &noise).map(|noise| noise.draw(random)).collect()
    }
}

/// Returns what each cluster of so many rows shows in each column, and its rows.
pub fn with_noise<'a>(
    mechanism: &'a Mechanism,
    rows: u64,
    sums: &'a [u128],
    noise: &'a [i128],
) -> impl Iterator<Item = (Vec<f64>, u64)> + 'a {
    let width = mechanism.columns().len().max(1);
    (0u64..).zip(sums.chunks(width).zip(noise.chunks(width))).map(move |(cluster, (sums, noise))| {
        let size = mechanism.size(cluster, rows);
        let of_column = mechanism.columns().iter().zip(sums.iter().zip(noise));
        (of_column.map(|(column, (sum, noise))| column.shown(*sum, *noise, size)).collect(), size)
    })
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
        while range(scale + 1).is_some_and(|range| range <= UNITS) {
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

    /// Returns the units that a value lies above the lower bound, rounded. Values outside the bounds count
    /// as these, NULL and NaN as the middle.
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
