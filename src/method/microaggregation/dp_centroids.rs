//! `dp_centroids`: microaggregation with noise, so that the release is differentially private.
//!
//! The rows are ordered, each k consecutive ones become a cluster, and a cluster shows for each of its rows
//! the mean of each column, with noise (Soria-Comas, Domingo-Ferrer, Sánchez & Martínez 2014). The order
//! does not depend on the data: it follows a Hilbert curve through the box of the columns' bounds, or, as in
//! the paper, the distance from its corner. So where one row is replaced by another, each cluster loses at
//! most one row and gains at most one. Noise with the scale that this takes is added to the sums; the larger
//! k is, the less of it is left in a mean.
//!
//! # Contract
//! The release is ε-differentially private: whatever an attacker knows, replacing one individual's row by any
//! other changes the probability of any release by a factor of at most `exp(epsilon)`. That holds for the one
//! release: several of the same individuals add up their epsilons. The number of rows is public. Each
//! individual has one row. All columns that are released get noise: quasi-identifiers of numbers with a
//! `clip` on both sides, which must be chosen without looking at the data. Sensitive columns are refused,
//! because a value as it is would promise nothing, and insensitive ones are left out. Values outside the
//! bounds count as these, NULL and NaN as the middle. Every column has its share of epsilon, by its weight;
//! the shares add up to at most epsilon.
//!
//! k is the number of rows of a cluster, the least class size of the models, which may look at sizes only.
//! The last cluster takes the rest. Nothing is suppressed. Noise takes a mean away by `S / k / epsilon` on average,
//! for a column's share of epsilon; S is how much its sums over all clusters can change together
//! ([`Mechanism::sensitivities`]): at most its range for each of the n / k clusters, in the order of the paper. Along the
//! curve it is much less, about `1.4 * (n / k)^(1/2)` ranges for two columns and `1.4 * (n / k)^(2/3)` for three, because
//! the rows that clusters exchange lie along the curve, too; one column alone is ordered by its values, and S is its range. So
//! noise falls faster than k rises, while the rows of a cluster become more different. Noise is drawn exactly from a
//! discrete Laplace distribution ([`noise`](crate::noise)), by a key that the private record keeps. The mean is kept within
//! the bounds.
//!
//! Only the released table is protected, and only as a whole: that a run was refused, how long it took, the
//! private record and what the command prints to the publisher are not. Means alone gain from clusters:
//! counts and sums over the whole table do not. The objective rates the spread of the clusters, without the
//! noise; a combination of values that several clusters share counts in the first.

use std::borrow::Cow;
use std::sync::Arc;

use super::row;
use crate::class::{ClassTable, EvaluatedRegions, Held, ReleasedClasses};
use crate::decimal::{Decimal, ratio};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::measure::granularity;
use crate::method::partition::Row;
use crate::method::partition::check_people;
use crate::method::{Candidate, Method, Outcome, Problem, Recoding};
use crate::model::{Class, Needs, Requirement, min_size};
use crate::noise::{Mechanism, NoisyColumn, Order, with_noise};
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
    |settings, _| Ok(Box::new(DpCentroids::of(settings)?)),
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
    fn of(settings: &Settings) -> Result<Self> {
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
        DpCentroids::of(&Settings::by_name(ROW.doc, ROW.parameters, settings)?)?;
    Mechanism::new(epsilon, order, min_size(requirements), columns)
}

/// Refuses models of anything but the size of a class.
pub(crate) fn check_models(requirements: &[Requirement]) -> Result<()> {
    let is_of_sizes = |one: &&Requirement| one.model.needs() == Needs::Size && one.is_over_all_quasi();
    match requirements.iter().find(|one| !is_of_sizes(one)) {
        None => Ok(()),
        Some(other) => Err(Error::policy(format!(
            "`{}` takes only models of the size of a class over all quasi-identifiers, and {} is none; use another method",
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
    squared_errors: Vec<f64>,
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
    /// Orders the rows of a table and cuts them into clusters.
    ///
    /// # Errors
    /// A data error when memory runs out, an interruption.
    pub(crate) fn new(problem: &Problem<'_>, mechanism: Mechanism) -> Result<Option<(Self, f64)>> {
        let table = problem.table;
        let (base, width, rows) = (table.base(), table.columns().len(), table.total_rows());
        let clusters = mechanism.clusters(rows);
        let Some(last) = clusters.checked_sub(1) else { return Ok(None) };
        let count = usize::try_from(clusters).map_err(Error::internal)?;
        let mut held = Held::new(table.budget());
        held.at_least(count * width * size_of::<u128>())?;
        let mut for_order = Held::new(table.budget());
        let of_values: usize =
            table.columns().iter().map(|column| column.distinct() * size_of::<u64>()).sum();
        for_order.at_least(of_values + base.len() * (size_of::<(u64, u32)>() + size_of::<Option<u32>>()))?;
        let units = units(table, &mechanism)?;
        let of_base = |class: u32, at: usize| units[at][table.code(base, class as usize, at) as usize];
        let mut order = Vec::with_capacity(base.len());
        let mut row = vec![0; width];
        for class in (0u32..).take(base.len()) {
            row.iter_mut().enumerate().for_each(|(at, units)| *units = of_base(class, at));
            order.push((mechanism.place(&row), class));
        }
        problem.stop.check()?;
        let by_units =
            |a: u32, b: u32| (0..width).map(|at| of_base(a, at)).cmp((0..width).map(|at| of_base(b, at)));
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| by_units(a.1, b.1)).then(a.1.cmp(&b.1)));
        problem.stop.check()?;

        let mut sums = vec![0u128; count * width];
        let mut class_of_base = vec![None; base.len()];
        let (mut placed, mut members) = (0u64, Vec::new());
        for (_, class) in order {
            let mut left = base.rows_of(class as usize);
            let first = mechanism.cluster_of(placed, rows);
            if members.last().is_none_or(|(cluster, _): &(u64, Vec<u32>)| *cluster != first) {
                members.push((first, Vec::new()));
            }
            if let Some((_, members)) = members.last_mut() {
                members.push(class);
            }
            while left > 0 {
                let cluster = mechanism.cluster_of(placed, rows);
                let end = if cluster == last { rows } else { (cluster + 1) * mechanism.size(0, rows) };
                let taken = left.min(end - placed);
                let at = usize::try_from(cluster).map_err(Error::internal)? * width;
                for (column, sum) in sums[at..at + width].iter_mut().enumerate() {
                    *sum += u128::from(of_base(class, column)) * u128::from(taken);
                }
                placed += taken;
                left -= taken;
            }
        }
        let mut regions = Vec::with_capacity(members.len());
        for ((_, members), number) in members.iter().zip(0u32..) {
            members.iter().for_each(|base| class_of_base[*base as usize] = Some(number));
            regions.push(table.regions_around(members)?);
        }
        let released = ReleasedClasses::new(table, class_of_base, regions)?;
        let merged = table.merge(&released)?;
        let spread = EvaluatedRegions::new(table, &released, &merged, &[])?;
        let objective = problem.objective.for_any_recoding();
        let loss =
            objective.ok_or_else(|| Error::internal("dp_centroids: an objective of levels"))?.of(&spread);
        let costs = granularity::of_columns(&spread);
        let squared_errors = squared_errors(table, &mechanism, &units, &sums);
        Ok(Some((Self { mechanism, rows, sums, costs, squared_errors, _held: held }, loss)))
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

    /// Returns the loss of each column, without noise.
    pub fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// Returns the expected squared difference between a value of each column and what its row shows, with
    /// noise, in variances of the column; 0 for a constant column without noise.
    pub fn squared_errors(&self) -> &[f64] {
        &self.squared_errors
    }

    /// Returns what each cluster shows in each column with this noise, and its rows.
    pub fn with_noise<'a>(&'a self, noise: &'a [i128]) -> impl Iterator<Item = (Vec<f64>, u64)> + 'a {
        with_noise(&self.mechanism, self.rows, &self.sums, noise)
    }
}

/// Returns [`Clusters::squared_errors`]. Means that noise takes out of the bounds count as if they were shown.
fn squared_errors(table: &ClassTable, mechanism: &Mechanism, units: &[Vec<u64>], sums: &[u128]) -> Vec<f64> {
    let (base, width, rows) = (table.base(), table.columns().len(), table.total_rows());
    let number = |units: u128| ratio(units, 1);
    let all = number(rows.into());
    let of_column = |(at, (scale, units)): (usize, (f64, &Vec<u64>))| {
        let row = |class: usize| (units[table.code(base, class, at) as usize], base.rows_of(class));
        let sum: f64 = sums.iter().skip(at).step_by(width).map(|sum| number(*sum)).sum();
        let mean = sum / all;
        let away = |(units, rows): (u64, u64)| (number(units.into()) - mean).powi(2) * number(rows.into());
        let total: f64 = (0..base.len()).map(row).map(away).sum();
        let between = (0u64..).zip(sums.iter().skip(at).step_by(width)).map(|(cluster, sum)| {
            let size = number(mechanism.size(cluster, rows).into());
            (number(*sum) / size - mean).powi(2) * size
        });
        let noise = 2.0 * scale.powi(2) * all;
        ((total - between.sum::<f64>()).max(0.0) + noise) / total.max(f64::MIN_POSITIVE)
    };
    mechanism.scales_in_units(rows).into_iter().zip(units).enumerate().map(of_column).collect()
}

/// Returns the units of each column's values, by code.
fn units(table: &ClassTable, mechanism: &Mechanism) -> Result<Vec<Vec<u64>>> {
    let of_column = |(column, noisy): (&crate::class::EncodedColumn, &NoisyColumn)| -> Result<Vec<u64>> {
        column.clipped_values()?.iter().map(|value| noisy.units(value)).collect()
    };
    table.columns().iter().zip(mechanism.columns()).map(of_column).collect()
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
        let clusters = mechanism.clusters(rows);
        // All clusters but the last have the same size.
        let holds = (clusters.saturating_sub(2)..clusters).all(|cluster| {
            let class = Class::of_values(mechanism.size(cluster, rows), &[]);
            requirements.iter().all(|requirement| requirement.model.holds(requirement.model.value(&class)))
        });
        let found = if holds { Clusters::new(problem, mechanism)? } else { None };
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
