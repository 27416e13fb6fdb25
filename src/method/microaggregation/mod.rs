//! Microaggregation: classes of rows that are near one another, and show a centroid in each column
//! instead of a region.
//!
//! Each file is a way to find such classes. They share the space in which rows are near
//! (`points.rs`), and what comes after: the centroids, and the loss.
//!
//! The classes are [`ReleasedClasses`] that show centroids, and no variant of
//! `Recoding` of their own: they have regions as well, which say how far the rows of a class are from one
//! another. So losses, models, the assignment and the comparison of methods work without a change. The method's
//! kind (`ReleaseKind`) answers for the differences: the types of the columns, the record, and the demands of a
//! verification. Classes whose centroids have the same texts are one.
//!
//! # Contract
//! All rows together must satisfy every requirement; otherwise nothing is found. Every class
//! satisfies every requirement. Base classes that fit into no class are suppressed; if those are too
//! many, all rows become one class. Columns of numbers, dates and timestamps show the mean or the
//! lower median of the class, other ones its most frequent value: see
//! [`centroid`](crate::generalize::centroid) for what that gives away. Distances count all
//! quasi-identifiers, each by its weight; sensitive values can only veto. The methods are greedy; none
//! promises the least loss. `min_level`, `max_level`, `recode`, `merge` and the keys of intervals are
//! refused, because no class shows a level or an interval. The objective rates the finest regions
//! around a class's values, as if it showed those. The same bytes for any number of threads.
//!
//! More than 8,192 base classes are cut into parts first, as `mona` does, and each part is clustered
//! by itself: the time of the other methods grows with the square of a part. A part stays larger where
//! no cut leaves both sides satisfying the requirements.

mod cut;
pub mod dp_centroids;
pub mod mdav;
pub mod mona;
pub mod ona;
mod points;

use std::borrow::Cow;

use self::points::Points;
use super::partition::cuts::{Cut, Cuts, Finished, Judge, cut_all};
use super::partition::{Row, candidate};
use super::{Method, Outcome, Problem};
use crate::class::{Region, ReleasedClasses};
use crate::decimal::{Decimal, ratio};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::generalize::Centroid;
use crate::model::min_size;
use crate::parameter::{Absent, Kind, Parameter, Setting, Settings};

/// What columns of numbers show; a parameter of every method here.
const CENTROID: Parameter = Parameter {
    name: "centroid",
    kind: Kind::Choice(&["mean", "median"]),
    absent: Absent::Means(Setting::Word(Cow::Borrowed("mean"))),
    summary: "what columns of numbers, dates and timestamps show; others show the most frequent value",
};

/// More base classes are cut into parts first.
const MOST_AT_ONCE: usize = 8_192;

/// In smaller parts there are too few clusters to choose from.
const LEAST_AT_ONCE: usize = 64;

/// Returns what columns of numbers show under these settings of a method.
///
/// # Errors
/// A policy error for a wrong or an unknown parameter.
pub(crate) fn centroid_of(row: &Row, given: &[(String, Setting)]) -> Result<Centroid> {
    centroid(&Settings::by_name(row.doc, row.parameters, given)?)
}

fn centroid(settings: &Settings) -> Result<Centroid> {
    let centroid = Centroid::named(settings.word(CENTROID.name)?);
    centroid.ok_or_else(|| Error::internal("microaggregation: an unknown centroid"))
}

const fn row(
    doc: &'static Doc,
    parameters: &'static [Parameter],
    make: fn(&Settings, &super::lattice::Options) -> Result<Box<dyn Method>>,
) -> Row {
    Row { doc, parameters, keeps_max_level: false, shows_cuts: false, make }
}

/// Finds the clusters among base classes; no cluster has fewer rows than the third argument says.
type FindClusters = fn(&Points, &[u32], f64, &mut Judge<'_>) -> Result<Vec<Vec<u32>>>;

/// The most base classes that are clustered at once.
#[derive(Clone, Copy)]
enum PartSize {
    /// This number.
    Count(usize),
    /// This power of the number of all, but at least [`LEAST_AT_ONCE`].
    Power(Decimal),
}

impl PartSize {
    fn of(self, all: usize) -> Result<usize> {
        match self {
            Self::Count(count) => Ok(count),
            Self::Power(rho) => {
                let most = ratio(all as u128, 1).powf(rho.to_f64()).floor();
                let most: usize = format!("{most:.0}").parse().map_err(Error::internal)?;
                Ok(most.max(LEAST_AT_ONCE))
            }
        }
    }
}

/// A method of microaggregation: how it finds clusters, and which centroid they show.
struct Microaggregation {
    centroid: Centroid,
    part_size: PartSize,
    find: FindClusters,
}

impl Microaggregation {
    fn boxed(settings: &Settings, part_size: PartSize, find: FindClusters) -> Result<Box<dyn Method>> {
        Ok(Box::new(Self { centroid: centroid(settings)?, part_size, find }))
    }
}

impl Method for Microaggregation {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let table = problem.table;
        let (points, all) = (Points::new(table)?, table.base().len());
        let least = ratio(min_size(problem.requirements).into(), 1);
        let parts = Parts { points: &points, all, most: self.part_size.of(all)?, least, find: self.find };
        let (clusters, evaluated) = cut_all(problem, &parts)?;
        let mut best = None;
        if !clusters.is_empty() {
            let mut class_of_base = vec![None; all];
            for (number, Finished { classes, .. }) in (0u32..).zip(clusters) {
                classes.iter().for_each(|base| class_of_base[*base as usize] = Some(number));
            }
            best = self.candidate(problem, class_of_base)?;
            if best.is_none() {
                best = self.candidate(problem, vec![Some(0); all])?;
            }
        }
        Ok(Outcome { best: best.into_iter().collect(), nodes: None, evaluated, proven: false, bound: None })
    }
}

impl Microaggregation {
    fn candidate(
        &self,
        problem: &Problem<'_>,
        class_of_base: Vec<Option<u32>>,
    ) -> Result<Option<super::Candidate>> {
        candidate(problem, ReleasedClasses::with_centroids(problem.table, class_of_base, self.centroid)?)
    }
}

/// The parts of a table and the clusters in them.
struct Parts<'a> {
    points: &'a Points,
    /// The number of all base classes.
    all: usize,
    /// The most base classes that are clustered at once.
    most: usize,
    /// No class of fewer rows satisfies the requirements.
    least: f64,
    find: FindClusters,
}

/// A part of the table.
enum Part {
    /// One that is cut or clustered.
    Open(Vec<u32>),
    /// A cluster.
    Cluster(Vec<u32>),
}

impl Cuts for Parts<'_> {
    type Part = Part;
    type Scratch = ();

    fn whole(&self) -> Part {
        Part::Open((0u32..).take(self.all).collect())
    }

    fn classes(part: &Part) -> &[u32] {
        match part {
            Part::Open(classes) | Part::Cluster(classes) => classes,
        }
    }

    fn shown(&self, _part: &Part) -> Result<Option<Box<[Region]>>> {
        Ok(None)
    }

    fn scratch(&self) -> Result<()> {
        Ok(())
    }

    fn cut(&self, part: Part, judge: &mut Judge<'_>, (): &mut ()) -> Result<Cut<Part>> {
        let mut open = match part {
            Part::Open(open) => open,
            cluster @ Part::Cluster(_) => return Ok(Cut::Final(cluster)),
        };
        if open.len() > self.most {
            open = match cut::in_two(self.points, open, self.least, judge)? {
                cut::InTwo::Cut(sides) => return Ok(Cut::Into(sides.map(Part::Open).into())),
                cut::InTwo::Whole(open) => open,
            };
        }
        let clusters = (self.find)(self.points, &open, self.least, judge)?;
        Ok(Cut::Into(clusters.into_iter().map(Part::Cluster).collect()))
    }
}

#[cfg(test)]
mod microaggregation_tests;
