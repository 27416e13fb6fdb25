//! Methods: the searches that choose a recoding.
//!
//! A method only looks at the class table, never at rows, and returns an [`Outcome`]: the best
//! candidates it found, each with its [`Recoding`], and whether they are proven best. Each row of
//! [`METHODS`] names one method.

pub mod anatomy;
pub mod best;
pub mod lattice;
pub mod microaggregation;
pub mod partition;

use std::ops::RangeInclusive;
use std::sync::Arc;

use self::microaggregation::dp_centroids::Clusters;
use crate::class::{ClassTable, EncodedColumn, Groups, ReleasedClasses};
use crate::doc::{Doc, find};
use crate::error::{Error, Result};
use crate::generalize::{Centroid, Ends};
use crate::measure::LossMeasure;
use crate::model::Requirement;
use crate::parameter::{Kind, Parameter, Setting};
use crate::progress::{CancelToken, Phase, Progress};
use crate::role::Role;

/// The problem that a method solves.
pub struct Problem<'a> {
    /// The classes of the data.
    pub table: &'a ClassTable,
    /// The models that every class must satisfy.
    pub requirements: &'a [Requirement],
    /// The loss to minimize.
    pub objective: &'a dyn LossMeasure,
    /// What the ends of intervals show, where a method makes its own.
    pub ends: Ends,
    /// L, how many individuals may be suppressed: distinct ones with a suppressed row, or rows if
    /// none are counted.
    pub limit: u64,
    /// The number of threads that may search.
    pub threads: usize,
    /// The receiver of the number of nodes that are decided.
    pub progress: &'a dyn Progress,
    /// The flag that stops the search.
    pub stop: &'a CancelToken,
}

/// Which released class each base class goes to, and what that class shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recoding {
    /// Full-domain generalization: one level per quasi-identifier, in policy order. A class shows
    /// its labels at these levels.
    Levels(Vec<usize>),
    /// Classes of the method's own, each with the regions or centroids that it shows.
    Classes(Arc<ReleasedClasses>),
    /// Quasi-identifiers as they are, beside groups that hide to which of them a sensitive value belongs.
    Groups(Arc<Groups>),
    /// Clusters of rows, which show centroids with noise.
    Clusters(Arc<Clusters>),
}

impl Recoding {
    /// Returns the level of each quasi-identifier; `None` if its values need not share a level.
    pub fn levels(&self) -> Option<&[usize]> {
        match self {
            Self::Levels(levels) => Some(levels),
            Self::Classes(_) | Self::Groups(_) | Self::Clusters(_) => None,
        }
    }
}

/// An anonymous recoding that a method found. Failing classes are suppressed.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The recoding.
    pub recoding: Recoding,
    /// The objective's value of the recoding.
    pub loss: f64,
    /// S, the number of rows in failing classes.
    pub suppressed_rows: u64,
    /// The number of individuals with a row in a failing class; rows if none are counted.
    pub suppressed_individuals: u64,
    /// The number of kept classes.
    pub classes: u64,
    /// The size of the smallest kept class; `None` if no class is kept.
    pub min_class: Option<u64>,
    /// The method that found it, where several were tried.
    pub by: Option<MethodSpec>,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The best anonymous recodings, best first; empty if none was found.
    pub best: Vec<Candidate>,
    /// The number of nodes that the method chooses from, within the allowed levels; `None` if it
    /// searches no lattice.
    pub nodes: Option<u64>,
    /// The number of them whose classes were computed far enough to decide whether they are
    /// anonymous; without a lattice, the number of sets of classes that were tried. `incognito` also
    /// counts nodes of column subsets, which can lie outside the allowed levels.
    pub evaluated: u64,
    /// Whether these recodings are proven best.
    pub proven: bool,
    /// A lower bound of every anonymous recoding's loss; `None` if it is proven that there is none.
    pub bound: Option<f64>,
}

/// A search over recodings.
pub trait Method {
    /// Searches for the best anonymous recodings.
    ///
    /// # Errors
    /// A data error when memory runs out, [`Error::interrupted`] when it was stopped.
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome>;
}

/// The name of a method that leaves the choice to the problem.
pub const AUTO: &str = "auto";

/// What a policy says of its method: a name, or [`AUTO`], and settings of the method's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodSpec {
    /// The name.
    pub name: String,
    /// The settings; parameters without one have their defaults.
    pub settings: Vec<(String, Setting)>,
}

impl MethodSpec {
    /// Returns the method `name` with its default settings.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), settings: Vec::new() }
    }
}

/// Writes the value of a policy's key `method`.
impl std::fmt::Display for MethodSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = self.settings.iter().map(|(name, setting)| format!("{name} = {setting}"));
        match self.settings.as_slice() {
            [] => write!(f, "{:?}", self.name),
            [(_, nodes @ Setting::List(all))] if all.iter().all(|one| matches!(one, Setting::Node(_))) => {
                write!(f, "{{ {} = {nodes} }}", self.name)
            }
            _ => write!(f, "{{ {} = {{ {} }} }}", self.name, settings.collect::<Vec<_>>().join(", ")),
        }
    }
}

impl Default for MethodSpec {
    fn default() -> Self {
        Self::named(AUTO)
    }
}

/// A row of [`METHODS`].
pub enum MethodRow {
    /// A method that chooses [`Recoding::Levels`].
    Lattice(lattice::Row),
    /// A method that makes [`Recoding::Classes`], which show regions.
    Partition(partition::Row),
    /// A method that makes [`Recoding::Classes`], which show centroids.
    Microaggregation(partition::Row),
    /// A method that makes [`Recoding::Clusters`].
    Noise(partition::Row),
    /// A method that makes [`Recoding::Groups`].
    Groups(partition::Row),
    /// The method that tries the others; it makes [`Recoding::Classes`].
    Best(&'static Doc),
}

impl MethodRow {
    /// Returns the method's name and documentation.
    pub fn doc(&self) -> &'static Doc {
        match self {
            Self::Lattice(row) => row.doc,
            Self::Partition(row) | Self::Microaggregation(row) | Self::Noise(row) | Self::Groups(row) => {
                row.doc
            }
            Self::Best(doc) => doc,
        }
    }

    /// Returns whether no class shows anything coarser than a label of a level that the policy allows.
    pub(crate) fn keeps_max_level(&self) -> bool {
        match self {
            Self::Lattice(_) | Self::Best(_) => true,
            Self::Partition(row) | Self::Microaggregation(row) | Self::Noise(row) | Self::Groups(row) => {
                row.keeps_max_level
            }
        }
    }

    /// Returns whether classes can show what a choice that does not look at single values leaves to them.
    pub(crate) fn shows_cuts(&self) -> bool {
        match self {
            Self::Lattice(_) | Self::Best(_) => true,
            Self::Partition(row) | Self::Microaggregation(row) | Self::Noise(row) | Self::Groups(row) => {
                row.shows_cuts
            }
        }
    }

    /// Returns whether a policy's effort bounds the method; others run to completion.
    fn takes_effort(&self) -> bool {
        match self {
            Self::Lattice(row) => row.takes_effort,
            Self::Partition(_) | Self::Microaggregation(_) | Self::Noise(_) | Self::Groups(_) => false,
            Self::Best(_) => true,
        }
    }

    /// Returns the method's parameters.
    pub fn parameters(&self) -> &'static [Parameter] {
        match self {
            Self::Lattice(row) => row.parameters,
            Self::Partition(row) | Self::Microaggregation(row) | Self::Noise(row) | Self::Groups(row) => {
                row.parameters
            }
            Self::Best(_) => &[],
        }
    }
}

/// All methods.
pub const METHODS: &[MethodRow] = &[
    MethodRow::Lattice(lattice::exhaustive::ROW),
    MethodRow::Lattice(lattice::optimal::ROW),
    MethodRow::Lattice(lattice::anytime::ROW),
    MethodRow::Lattice(lattice::samarati::ROW),
    MethodRow::Lattice(lattice::incognito::ROW),
    MethodRow::Lattice(lattice::datafly::ROW),
    MethodRow::Lattice(lattice::strategies::ROW),
    MethodRow::Partition(partition::local::ROW),
    MethodRow::Partition(partition::subtree::ROW),
    MethodRow::Partition(partition::cells::ROW),
    MethodRow::Partition(partition::mondrian::ROW),
    MethodRow::Partition(partition::clusters::ROW),
    MethodRow::Microaggregation(microaggregation::mdav::ROW),
    MethodRow::Microaggregation(microaggregation::ona::ROW),
    MethodRow::Microaggregation(microaggregation::mona::ROW),
    MethodRow::Noise(microaggregation::dp_centroids::ROW),
    MethodRow::Groups(anatomy::ROW),
    MethodRow::Best(best::DOC),
];

/// Returns every way to make a recoding: [`AUTO`] for all methods that search a lattice, and each
/// other method with each choice that its parameters allow. Methods that show centroids or make groups
/// come once, with their defaults; one that adds noise needs its epsilon, and is left out.
pub fn variants() -> Vec<MethodSpec> {
    let mut all = vec![MethodSpec::default()];
    for row in METHODS.iter().filter(|row| matches!(row, MethodRow::Partition(_))) {
        let mut variants = vec![MethodSpec::named(row.doc().name)];
        for parameter in row.parameters() {
            let Kind::Choice(words) = parameter.kind else { continue };
            let with = |variant: &MethodSpec, word: &'static str| {
                let mut variant = variant.clone();
                variant.settings.push((parameter.name.to_owned(), Setting::Word(word.into())));
                variant
            };
            variants =
                variants.iter().flat_map(|variant| words.iter().map(|word| with(variant, word))).collect();
        }
        all.extend(variants);
    }
    let comes_once = |row: &&MethodRow| matches!(row, MethodRow::Microaggregation(_) | MethodRow::Groups(_));
    all.extend(METHODS.iter().filter(comes_once).map(|row| MethodSpec::named(row.doc().name)));
    all
}

/// Returns the row of the method with this name; `None` for [`AUTO`] and unknown names.
pub(crate) fn row(name: &str) -> Option<&'static MethodRow> {
    METHODS.iter().find(|row| row.doc().name == name)
}

/// Returns whether a policy's effort bounds the method with this name.
pub(crate) fn takes_effort(name: &str) -> bool {
    row(name).is_some_and(MethodRow::takes_effort)
}

/// What the classes of a method show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// The labels of one level per column.
    Levels,
    /// Regions of their own.
    Regions,
    /// Centroids, of columns of numbers this one.
    Centroids(Centroid),
    /// Nothing: rows show their values, and are in groups.
    Groups,
}

impl MethodSpec {
    /// Returns whether the method makes groups, and two tables.
    pub fn makes_groups(&self) -> bool {
        makes_groups(&self.name)
    }

    /// Returns whether the method adds noise.
    pub fn adds_noise(&self) -> bool {
        adds_noise(&self.name)
    }

    /// Returns whether the method releases columns of this role: beside exact quasi-identifiers, a
    /// method that makes groups releases sensitive values alone, and one that adds noise releases nothing
    /// without it.
    pub fn releases(&self, role: Role) -> bool {
        let is_left_out = match role {
            Role::Quasi => false,
            Role::Sensitive => self.adds_noise(),
            Role::Insensitive => self.makes_groups() || self.adds_noise(),
            Role::Identifier | Role::Individual | Role::Preference | Role::Text => true,
        };
        !is_left_out
    }

    /// Returns what the classes of the method show; [`AUTO`] and unknown methods show levels.
    ///
    /// # Errors
    /// A policy error for a wrong or an unknown parameter.
    pub fn shows(&self) -> Result<Shows> {
        Ok(match row(&self.name) {
            None | Some(MethodRow::Lattice(_)) => Shows::Levels,
            Some(MethodRow::Partition(_) | MethodRow::Best(_)) => Shows::Regions,
            Some(MethodRow::Microaggregation(row)) => {
                Shows::Centroids(microaggregation::centroid_of(row, &self.settings)?)
            }
            Some(MethodRow::Noise(_)) => Shows::Centroids(Centroid::NoisyMean),
            Some(MethodRow::Groups(_)) => Shows::Groups,
        })
    }
}

/// Returns whether the method with this name chooses levels.
pub(crate) fn chooses_levels(name: &str) -> bool {
    row(name).is_none_or(|row| matches!(row, MethodRow::Lattice(_)))
}

/// Returns whether the classes of the method with this name show centroids.
pub(crate) fn shows_centroids(name: &str) -> bool {
    row(name).is_some_and(|row| matches!(row, MethodRow::Microaggregation(_) | MethodRow::Noise(_)))
}

/// Returns whether the method with this name makes groups, and two tables.
pub(crate) fn makes_groups(name: &str) -> bool {
    row(name).is_some_and(|row| matches!(row, MethodRow::Groups(_)))
}

/// Returns whether the method with this name adds noise.
pub(crate) fn adds_noise(name: &str) -> bool {
    row(name).is_some_and(|row| matches!(row, MethodRow::Noise(_)))
}

/// Returns whether the classes of the method with this name show regions of their own.
pub(crate) fn shows_regions(name: &str) -> bool {
    !chooses_levels(name) && !shows_centroids(name) && !makes_groups(name)
}

/// Returns why a method whose classes show regions or centroids refuses a limit of levels.
pub(crate) fn chooses_no_levels(method: &str) -> String {
    if shows_centroids(method) {
        return shows_values(method);
    }
    format!(
        "the classes of `{method}` show no levels, so it cannot honour this limit; remove it, use another method, or hold the column to \
         one level with recode = \"global\""
    )
}

/// Returns why a method whose classes show centroids refuses labels, of one level or of merged values.
pub(crate) fn shows_values(method: &str) -> String {
    format!(
        "`{method}` shows a centroid of the values themselves in every column, so it cannot honour this; remove it, or use a method \
         whose classes show regions, such as \"best\""
    )
}

pub(crate) use partition::global::ALL_ARE_GLOBAL;

/// Returns why a method whose classes are made by no cuts refuses to show cuts.
pub(crate) fn makes_no_cuts(method: &str) -> String {
    format!(
        "`{method}` makes no cuts that a class could show; use \"values\" or \"closed\", or another method"
    )
}

/// In a lattice of fewer nodes, visiting all of them is faster than making a bound.
const FEW: u64 = 64;

/// Returns why [`AUTO`] takes the method that it takes.
pub fn why_auto(options: &lattice::Options) -> String {
    match options.nodes() < FEW {
        true => format!("fewer than {FEW} combinations of levels, so each is looked at"),
        false => format!("{FEW} combinations of levels or more, so bounds rule most of them out"),
    }
}

/// Returns the method that a policy names; `auto` is the cheaper of `exhaustive` and `optimal`,
/// which both prove their answer.
///
/// # Errors
/// A policy error for an unknown name.
pub fn choose(name: &str, options: &lattice::Options) -> Result<&'static MethodRow> {
    let name = match name {
        AUTO if options.nodes() < FEW => lattice::exhaustive::ROW.doc.name,
        AUTO => lattice::optimal::ROW.doc.name,
        name => name,
    };
    find(METHODS, MethodRow::doc, name)
        .map_err(|valid| Error::policy(format!("unknown method `{name}`; {valid}, {AUTO}")))
}

/// Searches by a method; returns its name and the outcome. `options` is for methods that search the lattice.
///
/// # Errors
/// Errors of the method; a policy error if the problem says something that it cannot do.
pub fn search(
    method: &MethodSpec,
    problem: &Problem<'_>,
    options: &lattice::Options,
) -> Result<(&'static str, Outcome)> {
    let row = choose(&method.name, options)?;
    let outcome = match row {
        MethodRow::Lattice(row) => {
            problem.progress.begin(Phase::Search, options.nodes());
            row.with(&method.settings, options.clone())?.search(problem)
        }
        MethodRow::Partition(of_partition) => {
            refuse_limits(row, problem, options)?;
            if problem.ends == Ends::Cuts && !row.shows_cuts() {
                return Err(Error::policy(makes_no_cuts(row.doc().name)).at("output.ends"));
            }
            let make = |options: &lattice::Options| of_partition.with(&method.settings, options);
            match options.global.as_slice() {
                [] => make(options)?.search(problem),
                _ => partition::global::search(make, problem, options),
            }
        }
        MethodRow::Microaggregation(of_classes) | MethodRow::Noise(of_classes) => {
            refuse_limits(row, problem, options)?;
            let is_merged = |column: &&EncodedColumn| column.hierarchy().is_merged();
            let global = options.global.first().and_then(|at| problem.table.columns().get(*at));
            for (column, key) in
                [(global, "recode"), (problem.table.columns().iter().find(is_merged), "hierarchy")]
            {
                if let Some(column) = column {
                    let place = format!("columns.{}.{key}", column.name());
                    return Err(Error::policy(shows_values(row.doc().name)).at(place));
                }
            }
            of_classes.with(&method.settings, options)?.search(problem)
        }
        MethodRow::Groups(of_groups) => of_groups.with(&method.settings, options)?.search(problem),
        MethodRow::Best(_) => {
            refuse_limits(row, problem, options)?;
            best::search(problem, options)
        }
    };
    Ok((row.doc().name, outcome?))
}

/// Refuses limits of levels that a method whose classes show regions of their own cannot keep.
fn refuse_limits(row: &MethodRow, problem: &Problem<'_>, options: &lattice::Options) -> Result<()> {
    let is_limited = |(column, allowed): &(&EncodedColumn, &RangeInclusive<usize>)| {
        *allowed.start() > 0 || (*allowed.end() < column.height() && !row.keeps_max_level())
    };
    let mut limits = problem.table.columns().iter().zip(&options.ranges).enumerate();
    let is_broken = |(at, limit): &(usize, (&EncodedColumn, &RangeInclusive<usize>))| {
        // Intervals end at values, which are finer than any label.
        let is_honoured = options.global.contains(at) && !(limit.0.has_intervals() && *limit.1.start() > 0);
        !is_honoured && is_limited(limit)
    };
    match limits.find(is_broken).map(|(_, limit)| limit) {
        Some((column, _)) => {
            Err(Error::policy(chooses_no_levels(row.doc().name)).at(format!("columns.{}", column.name())))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod attack_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_can_be_written_into_a_policy() {
        let texts: Vec<String> = variants().iter().map(ToString::to_string).collect();
        assert_eq!(texts[0], "\"auto\"");
        assert!(texts.contains(&"{ mondrian = { split = \"loss\" } }".to_owned()), "{texts:?}");
        for row in METHODS.iter().filter(|row| matches!(row, MethodRow::Partition(_))) {
            assert!(variants().iter().any(|method| method.name == row.doc().name), "{}", row.doc().name);
        }
    }
}
