//! `dp_centroids`: microaggregation with noise, so that the release is differentially private.
//!
//! The rows are ordered, each k consecutive ones become a cluster, and a cluster shows for each of its rows
//! the mean of each column, with noise (Soria-Comas, Domingo-Ferrer, Sánchez & Martínez 2014). The order
//! does not depend on the data: it follows a Hilbert curve through the box of the columns' bounds, or, as in
//! the paper, the distance from its corner. So where one row is replaced by another, each cluster loses at
//! most one row and gains at most one. Noise with the scale that this takes is added to the sums; the larger
//! k is, the less of it is left in a mean.
//!
//! Clusters are cut from an order of rows, so rows with the same values can be in two of them. A map of base
//! classes to classes cannot say that, and none is needed: no column is released as it is, so no released row
//! is joined with a row of the input. The method returns sums ([`Clusters`], a variant of `Recoding` of their
//! own), from which `release/kind/noise` makes rows.
//!
//! # Contract
//! The release is ε-differentially private: whatever an attacker knows, replacing one individual's row by any
//! other changes the probability of any release by a factor of at most `exp(epsilon)`; for an attacker who
//! cannot tell the ChaCha20 stream of a secret key from random numbers. That holds for one release: several
//! of the same individuals add up their epsilons. The number of rows is public. Each individual has one row.
//! Bounds, k, order, weights, columns and epsilon must be chosen without looking at the data: what `search`
//! shows is computed from them, and a choice made by it is not covered by epsilon.
//!
//! Every released column gets noise: quasi-identifiers of numbers with a `clip` on both sides. Sensitive
//! columns are refused, because a value as it is would promise nothing, and insensitive ones are left out. A
//! value beyond a bound counts as the bound, NULL and NaN as the middle. Every column has its share of
//! epsilon, by its weight; the shares add up to epsilon. k is the number of rows of a cluster; the last one
//! takes the rest. No other model can be required. Nothing is suppressed.
//!
//! Noise takes a mean away by `S / k / epsilon` on average, for a column's share of epsilon. S is how much its
//! sums over all clusters can change together ([`Mechanism::sensitivities`]). In the order of the paper that
//! is its range for each of the n / k clusters. Along the curve it is less where columns are few: about `1.4 * (n / k)^(1/2)`
//! ranges for two columns and `1.4 * (n / k)^(2/3)` for three, because the rows that clusters exchange lie
//! along the curve, too. One column alone is ordered by its values, and S is its range. So noise falls faster
//! than k rises, while the rows of a cluster become more different. Noise is drawn exactly, from a discrete
//! Laplace distribution (`noise`). A mean is kept within the bounds.
//!
//! Only the complete released table is protected. A refusal, the running time, the private record and what the
//! command prints are not. Means gain from clusters; counts and sums over the whole table do not. The loss
//! ignores the noise, and counts a base class that is split over several clusters in the first of them.

use std::borrow::Cow;
use std::sync::Arc;

use super::row;
use crate::class::{ClassTable, EncodedColumn, EvaluatedPartition, Held, ReleasedClasses};
use crate::decimal::{Decimal, ratio};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::measure::granularity;
use crate::method::partition::{Row, check_people};
use crate::method::{Candidate, Method, Outcome, Problem, Recoding};
use crate::model::{Needs, Requirement, min_size};
use crate::noise::{Mechanism, NoisyColumn, Order};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Setting, Settings};

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = row(
    &Doc {
        name: "dp_centroids",
        summary: "differential privacy: means of k rows that are near in a fixed order, with noise",
        parameters: "epsilon, order",
        example: "method = { dp_centroids = { epsilon = 1.0 } }",
        paper: Some(papers::SORIA_COMAS_2014),
    },
    &[EPSILON, ORDER],
    |settings, _| Ok(Box::new(DpCentroids::from_settings(settings)?)),
);

const EPSILON: Parameter = Parameter {
    name: "epsilon",
    kind: Kind::Positive,
    absent: Absent::Refused,
    summary: "the privacy loss of the release, split over the columns; 1 is strong, 10 weak",
};

const ORDER: Parameter = Parameter {
    name: "order",
    kind: Kind::Choice(Order::NAMES),
    absent: Absent::Means(Setting::Word(Cow::Borrowed("hilbert"))),
    summary: "how rows are ordered: along a curve through all columns, or by the distance from a corner",
};

struct DpCentroids {
    epsilon: Decimal,
    order: Order,
}

impl DpCentroids {
    fn from_settings(settings: &Settings) -> Result<Self> {
        let order = Order::named(settings.word(ORDER.name)?);
        let order = order.ok_or_else(|| Error::internal("dp_centroids: an unknown order"))?;
        Ok(Self { epsilon: settings.number(EPSILON.name)?, order })
    }
}

/// Returns the mechanism of a policy with these settings of the method, for quasi-identifiers with their
/// hierarchies and weights.
///
/// # Errors
/// A policy error that says what the method cannot do.
pub(crate) fn mechanism<'a>(
    settings: &[(String, Setting)],
    requirements: &[Requirement],
    columns: impl Iterator<Item = (&'a str, &'a crate::generalize::Hierarchy, f64)>,
) -> Result<Mechanism> {
    check_models(requirements)?;
    let DpCentroids { epsilon, order } =
        DpCentroids::from_settings(&Settings::by_name(ROW.doc, ROW.parameters, settings)?)?;
    Mechanism::new(epsilon, order, min_size(requirements), columns)
}

/// Refuses everything but k-anonymity over all quasi-identifiers.
pub(crate) fn check_models(requirements: &[Requirement]) -> Result<()> {
    let is_of_sizes = |one: &&Requirement| one.model.needs() == Needs::Size && one.is_over_all_quasi();
    match requirements.iter().find(|one| !is_of_sizes(one)) {
        None => Ok(()),
        Some(other) => Err(Error::policy(format!(
            "`{}` takes only `k`, over all quasi-identifiers; remove the requirement {}, or use another method",
            ROW.doc.name,
            other.text()
        ))
        .at("method")),
    }
}

/// The clusters of a table's rows, with the exact sums that noise is added to. `Debug` shows no cell.
pub struct Clusters {
    mechanism: Mechanism,
    rows: u64,
    /// The sums of units, one cluster after another, and in each one column after another.
    sums: Vec<u128>,
    costs: Vec<f64>,
    spreads: Vec<f64>,
    noise: Vec<f64>,
    _held: Held,
}

impl PartialEq for Clusters {
    fn eq(&self, other: &Self) -> bool {
        (&self.mechanism, self.rows, &self.sums) == (&other.mechanism, other.rows, &other.sums)
    }
}

impl Eq for Clusters {}

impl std::fmt::Debug for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clusters({})", self.count())
    }
}

impl Clusters {
    /// Orders the rows of a table and cuts them into clusters; also returns their loss. `None` for fewer rows
    /// than a cluster takes.
    ///
    /// # Errors
    /// A data error when memory runs out, an interruption.
    fn new(problem: &Problem<'_>, mechanism: Mechanism) -> Result<Option<(Self, f64)>> {
        let (table, rows) = (problem.table, problem.table.total_rows());
        let count = usize::try_from(mechanism.clusters(rows)).map_err(Error::internal)?;
        if count == 0 {
            return Ok(None);
        }
        let mut held = Held::new(table.budget());
        held.at_least(count * table.columns().len() * size_of::<u128>())?;
        let units = Units::of(table, &mechanism)?;
        let order = in_order(problem, &mechanism, &units)?;
        let (sums, members) = cut(&mechanism, &units, order, count)?;
        let (loss, costs) = without_noise(problem, &members)?;
        let (spreads, noise) = errors(&mechanism, &units, &sums)?;
        Ok(Some((Self { mechanism, rows, sums, costs, spreads, noise, _held: held }, loss)))
    }

    /// Returns the mechanism.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of clusters.
    pub fn count(&self) -> u64 {
        self.mechanism.clusters(self.rows)
    }

    /// Returns numbers that differ for two tables whose clusters have other sums.
    pub fn words(&self) -> impl Iterator<Item = u128> + '_ {
        std::iter::once(self.rows.into()).chain(self.sums.iter().copied())
    }

    /// Returns the loss of each column, without noise.
    pub fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// Returns the mean squared difference between a value of each column and what its row is expected to show,
    /// noise included, in variances of the column: very large for a constant one. Means that noise takes out of
    /// the bounds count as if they were shown.
    pub fn squared_errors(&self) -> Vec<f64> {
        self.spreads.iter().zip(&self.noise).map(|(spread, noise)| spread + noise).collect()
    }

    /// Returns the mean of these differences over the columns.
    pub fn mean_squared_error(&self) -> f64 {
        let errors = self.squared_errors();
        errors.iter().sum::<f64>() / ratio(errors.len() as u128, 1)
    }

    /// Returns the variance of the noise of each column, in variances of the column.
    pub fn noise_of_columns(&self) -> &[f64] {
        &self.noise
    }

    /// Returns what each cluster shows in each column with this noise, and its rows.
    pub fn noisy_means<'a>(&'a self, noise: &'a [i128]) -> impl Iterator<Item = (Vec<f64>, u64)> + 'a {
        self.mechanism.noisy_means(self.rows, &self.sums, noise)
    }
}

/// The base classes of a table with their values in units.
struct Units<'a> {
    table: &'a ClassTable,
    /// The units of each column's values, by code.
    of_code: Vec<Vec<u64>>,
    _held: Held,
}

impl<'a> Units<'a> {
    fn of(table: &'a ClassTable, mechanism: &Mechanism) -> Result<Self> {
        let mut held = Held::new(table.budget());
        held.at_least(table.columns().iter().map(|column| column.distinct() * size_of::<u64>()).sum())?;
        let of_column = |(column, noisy): (&EncodedColumn, &NoisyColumn)| -> Result<Vec<u64>> {
            column.clipped_values()?.iter().map(|value| noisy.units(value)).collect()
        };
        let of_code =
            table.columns().iter().zip(mechanism.columns()).map(of_column).collect::<Result<_>>()?;
        Ok(Self { table, of_code, _held: held })
    }

    fn width(&self) -> usize {
        self.of_code.len()
    }

    fn at(&self, base: u32, column: usize) -> u64 {
        self.of_code[column][self.table.code(self.table.base(), base as usize, column) as usize]
    }

    fn of_base(&self, base: u32) -> impl Iterator<Item = u64> + '_ {
        (0..self.width()).map(move |column| self.at(base, column))
    }

    fn rows(&self, base: u32) -> u64 {
        self.table.base().rows_of(base as usize)
    }

    fn bases(&self) -> impl Iterator<Item = u32> {
        (0u32..).take(self.table.base().len())
    }
}

/// Base classes in the order of their rows.
struct InOrder {
    bases: Vec<u32>,
    _held: Held,
}

fn in_order(problem: &Problem<'_>, mechanism: &Mechanism, units: &Units<'_>) -> Result<InOrder> {
    let mut held = Held::new(problem.table.budget());
    // With its place; as a member of a cluster; and with its cluster.
    let of_base = size_of::<(u64, u32)>() + 2 * size_of::<u32>() + size_of::<Option<u32>>();
    held.at_least(problem.table.base().len() * of_base)?;
    let mut row = Vec::with_capacity(units.width());
    let place = |base: u32| {
        row.clear();
        row.extend(units.of_base(base));
        (mechanism.place(&row), base)
    };
    let mut placed: Vec<(u64, u32)> = units.bases().map(place).collect();
    problem.stop.check()?;
    let by_units = |a: u32, b: u32| units.of_base(a).cmp(units.of_base(b));
    placed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| by_units(a.1, b.1)).then(a.1.cmp(&b.1)));
    problem.stop.check()?;
    Ok(InOrder { bases: placed.into_iter().map(|(_, base)| base).collect(), _held: held })
}

/// Cuts the rows of base classes into clusters. Returns the sums of units, one cluster after another, and the
/// base classes by the cluster of their first row.
fn cut(
    mechanism: &Mechanism,
    units: &Units<'_>,
    order: InOrder,
    count: usize,
) -> Result<(Vec<u128>, Vec<Vec<u32>>)> {
    let (width, rows) = (units.width(), units.table.total_rows());
    let mut sums = vec![0u128; count * width];
    let (mut placed, mut members, mut last) = (0u64, Vec::new(), None);
    for base in &order.bases {
        let first = mechanism.cluster_of(placed, rows);
        if last != Some(first) {
            members.push(Vec::new());
            last = Some(first);
        }
        members.last_mut().into_iter().for_each(|members: &mut Vec<u32>| members.push(*base));
        let end = placed + units.rows(*base);
        while placed < end {
            let cluster = mechanism.cluster_of(placed, rows);
            let begin = mechanism.k() * cluster;
            let taken = end.min(begin + mechanism.size(cluster, rows)) - placed;
            let at = usize::try_from(cluster).map_err(Error::internal)? * width;
            for (sum, units) in sums[at..at + width].iter_mut().zip(units.of_base(*base)) {
                *sum += u128::from(units) * u128::from(taken);
            }
            placed += taken;
        }
    }
    Ok((sums, members))
}

/// Returns the objective's loss and the loss of each column, as if clusters showed the finest regions around
/// their values.
fn without_noise(problem: &Problem<'_>, members: &[Vec<u32>]) -> Result<(f64, Vec<f64>)> {
    let table = problem.table;
    let mut class_of_base = vec![None; table.base().len()];
    let mut regions = Vec::with_capacity(members.len());
    for (members, number) in members.iter().zip(0u32..) {
        members.iter().for_each(|base| class_of_base[*base as usize] = Some(number));
        regions.push(table.regions_around(members)?);
    }
    let released = ReleasedClasses::new(table, class_of_base, regions)?;
    let merged = table.merge(&released)?;
    let evaluated = EvaluatedPartition::new(table, &released, &merged, &[])?;
    let objective = problem.objective.for_any_recoding();
    let objective = objective.ok_or_else(|| Error::internal("dp_centroids: an objective of levels"))?;
    Ok((objective.of(&evaluated), granularity::of_columns(&evaluated)))
}

/// Returns the mean squared difference between a value and the mean of its cluster, and the variance of the
/// noise: both of each column, in variances of it.
fn errors(mechanism: &Mechanism, units: &Units<'_>, sums: &[u128]) -> Result<(Vec<f64>, Vec<f64>)> {
    let rows = units.table.total_rows();
    let number = |units: u128| ratio(units, 1);
    let all = number(rows.into());
    let of_column = |(at, scale): (usize, f64)| {
        let sums = || (0u64..).zip(sums.iter().skip(at).step_by(units.width()));
        let mean = sums().map(|(_, sum)| number(*sum)).sum::<f64>() / all;
        let away =
            |base| (number(units.at(base, at).into()) - mean).powi(2) * number(units.rows(base).into());
        let total = units.bases().map(away).sum::<f64>().max(f64::MIN_POSITIVE);
        let between = sums().map(|(cluster, sum)| {
            let size = number(mechanism.size(cluster, rows).into());
            (number(*sum) / size - mean).powi(2) * size
        });
        // Of a constant column, a number that can be written.
        let noise = (2.0 * scale.powi(2) * all / total).min(1e300);
        ((1.0 - between.sum::<f64>() / total).max(0.0), noise)
    };
    Ok(mechanism.scales_in_units(rows)?.into_iter().enumerate().map(of_column).unzip())
}

impl Method for DpCentroids {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let (table, requirements) = (problem.table, problem.requirements);
        check_models(requirements)?;
        check_people(ROW.doc.name, table)?;
        let columns =
            table.columns().iter().map(|column| (column.name(), column.hierarchy(), column.weight()));
        let mechanism = Mechanism::new(self.epsilon, self.order, min_size(requirements), columns)?;
        let rows = table.total_rows();
        let found = Clusters::new(problem, mechanism)?;
        let best = found.map(|(clusters, loss)| Candidate {
            loss,
            suppressed_rows: 0,
            suppressed_individuals: 0,
            classes: clusters.count(),
            min_class: Some(clusters.mechanism().size(0, rows)),
            recoding: Recoding::Clusters(Arc::new(clusters)),
            by: None,
        });
        let best: Vec<Candidate> = best.into_iter().collect();
        Ok(Outcome { evaluated: best.len() as u64, best, nodes: None, proven: false, bound: None })
    }
}

#[cfg(test)]
#[path = "dp_centroids_tests.rs"]
mod tests;
