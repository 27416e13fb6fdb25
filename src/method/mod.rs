//! Methods: the searches that choose a recoding.
//!
//! A method only looks at the class table, never at rows, and returns an [`Outcome`]: the best
//! candidates it found, each with its [`Recoding`], and whether they are proven best. Each row of
//! [`METHODS`] names one method.

pub mod anatomy;
pub mod best;
mod kind;
pub mod lattice;
pub mod microaggregation;
pub mod partition;

pub use kind::ReleaseKind;

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
pub struct MethodRow {
    /// What its releases are.
    pub kind: ReleaseKind,
    /// Says why no groups satisfy models, and what to do; `None` if the method makes classes.
    pub why_nothing: Option<fn(&[Requirement]) -> String>,
    search: Search,
}

/// How a method searches.
enum Search {
    /// Through the nodes of the lattice.
    Lattice(lattice::Row),
    /// For a recoding of its own.
    Own(partition::Row),
    /// By all other methods.
    Best(&'static Doc),
}

impl MethodRow {
    const fn lattice(row: lattice::Row) -> Self {
        Self { kind: ReleaseKind::Levels, why_nothing: None, search: Search::Lattice(row) }
    }

    const fn of(kind: ReleaseKind, row: partition::Row) -> Self {
        Self { kind, why_nothing: None, search: Search::Own(row) }
    }

    /// Returns the method's name and documentation.
    pub fn doc(&self) -> &'static Doc {
        match &self.search {
            Search::Lattice(row) => row.doc,
            Search::Own(row) => row.doc,
            Search::Best(doc) => doc,
        }
    }

    /// Returns the row of a method that searches the lattice.
    pub fn of_lattice(&self) -> Option<&lattice::Row> {
        if let Search::Lattice(row) = &self.search { Some(row) } else { None }
    }

    /// Returns the row of a method that makes a recoding of its own.
    pub fn of_own(&self) -> Option<&partition::Row> {
        if let Search::Own(row) = &self.search { Some(row) } else { None }
    }

    /// Returns whether no class shows anything coarser than a label of a level that the policy allows.
    pub(crate) fn keeps_max_level(&self) -> bool {
        self.of_own().is_none_or(|row| row.keeps_max_level)
    }

    /// Returns whether classes can show what a choice that does not look at single values leaves to them.
    pub(crate) fn shows_cuts(&self) -> bool {
        self.of_own().is_none_or(|row| row.shows_cuts)
    }

    /// Returns whether a policy's effort bounds the method; others run to completion.
    fn takes_effort(&self) -> bool {
        match &self.search {
            Search::Lattice(row) => row.takes_effort,
            Search::Own(_) => false,
            Search::Best(_) => true,
        }
    }

    /// Returns the method's parameters.
    pub fn parameters(&self) -> &'static [Parameter] {
        match &self.search {
            Search::Lattice(row) => row.parameters,
            Search::Own(row) => row.parameters,
            Search::Best(_) => &[],
        }
    }
}

/// All methods.
pub const METHODS: &[MethodRow] = &[
    MethodRow::lattice(lattice::exhaustive::ROW),
    MethodRow::lattice(lattice::optimal::ROW),
    MethodRow::lattice(lattice::anytime::ROW),
    MethodRow::lattice(lattice::samarati::ROW),
    MethodRow::lattice(lattice::incognito::ROW),
    MethodRow::lattice(lattice::datafly::ROW),
    MethodRow::lattice(lattice::strategies::ROW),
    MethodRow::of(ReleaseKind::Regions, partition::local::ROW),
    MethodRow::of(ReleaseKind::Regions, partition::subtree::ROW),
    MethodRow::of(ReleaseKind::Regions, partition::cells::ROW),
    MethodRow::of(ReleaseKind::Regions, partition::mondrian::ROW),
    MethodRow::of(ReleaseKind::Regions, partition::clusters::ROW),
    MethodRow::of(ReleaseKind::Centroids, microaggregation::mdav::ROW),
    MethodRow::of(ReleaseKind::Centroids, microaggregation::ona::ROW),
    MethodRow::of(ReleaseKind::Centroids, microaggregation::mona::ROW),
    MethodRow::of(ReleaseKind::Noise, microaggregation::dp_centroids::ROW),
    MethodRow { why_nothing: Some(anatomy::why_nothing), ..MethodRow::of(ReleaseKind::Groups, anatomy::ROW) },
    MethodRow { kind: ReleaseKind::Regions, why_nothing: None, search: Search::Best(best::DOC) },
];

/// Returns every way to make a recoding: [`AUTO`] for all methods that search a lattice, and each
/// other method with each choice that its parameters allow. Methods that show centroids or make groups
/// come once, with their defaults; one that adds noise needs its epsilon, and is left out.
pub fn variants() -> Vec<MethodSpec> {
    let mut all = vec![MethodSpec::default()];
    for row in METHODS.iter().filter(|row| row.kind == ReleaseKind::Regions && row.of_own().is_some()) {
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
    let comes_once = |row: &&MethodRow| matches!(row.kind, ReleaseKind::Centroids | ReleaseKind::Groups);
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

impl MethodSpec {
    /// Returns what the releases of the method are; those of [`AUTO`] and of unknown methods show levels.
    pub fn kind(&self) -> ReleaseKind {
        kind_of(&self.name)
    }

    /// Returns whether the method searches the lattice.
    pub fn searches_lattice(&self) -> bool {
        row(&self.name).is_none_or(|row| row.of_lattice().is_some())
    }

    /// Returns what the classes of the method show for a column of numbers, if they show centroids.
    ///
    /// # Errors
    /// A policy error for a wrong or an unknown parameter.
    pub fn centroid(&self) -> Result<Option<Centroid>> {
        match self.kind() {
            ReleaseKind::Noise => Ok(Some(Centroid::NoisyMean)),
            ReleaseKind::Centroids => {
                let row = row(&self.name).and_then(MethodRow::of_own);
                row.map(|row| microaggregation::centroid_of(row, &self.settings)).transpose()
            }
            ReleaseKind::Levels | ReleaseKind::Regions | ReleaseKind::Groups => Ok(None),
        }
    }
}

/// Returns what the releases of the method with this name are.
pub(crate) fn kind_of(name: &str) -> ReleaseKind {
    row(name).map_or(ReleaseKind::Levels, |row| row.kind)
}

/// Returns why a method whose classes show regions or centroids refuses a limit of levels.
pub(crate) fn chooses_no_levels(method: &str) -> String {
    if kind_of(method).facts().shows_centroids {
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

/// Searches by a method; returns its name and the outcome. `options` are the allowed levels, the global columns and the effort.
///
/// # Errors
/// Errors of the method; a policy error if the problem says something that it cannot do.
pub fn search(
    method: &MethodSpec,
    problem: &Problem<'_>,
    options: &lattice::Options,
) -> Result<(&'static str, Outcome)> {
    let row = choose(&method.name, options)?;
    let outcome = match &row.search {
        Search::Lattice(row) => {
            problem.progress.begin(Phase::Search, options.nodes());
            row.with(&method.settings, options.clone())?.search(problem)
        }
        Search::Own(own) => {
            if row.kind.facts().makes_classes {
                refuse_limits(row, problem, options)?;
            }
            if row.kind.facts().shows_centroids {
                refuse_labels(row, problem, options)?;
            }
            if row.kind == ReleaseKind::Regions && problem.ends == Ends::Cuts && !row.shows_cuts() {
                return Err(Error::policy(makes_no_cuts(row.doc().name)).at("output.ends"));
            }
            let make = |options: &lattice::Options| own.with(&method.settings, options);
            match options.global.as_slice() {
                [_, ..] if row.kind == ReleaseKind::Regions => {
                    partition::global::search(make, problem, options)
                }
                _ => make(options)?.search(problem),
            }
        }
        Search::Best(_) => {
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

/// Refuses labels of one level or of merged values, which centroids cannot keep.
fn refuse_labels(row: &MethodRow, problem: &Problem<'_>, options: &lattice::Options) -> Result<()> {
    let columns = problem.table.columns();
    let global = options.global.first().and_then(|at| columns.get(*at));
    let merged = columns.iter().find(|column| column.hierarchy().is_merged());
    match [(global, "recode"), (merged, "hierarchy")]
        .into_iter()
        .find_map(|(column, key)| Some((column?, key)))
    {
        Some((column, key)) => {
            let place = format!("columns.{}.{key}", column.name());
            Err(Error::policy(shows_values(row.doc().name)).at(place))
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
        for row in METHODS.iter().filter(|row| row.kind == ReleaseKind::Regions && row.of_own().is_some()) {
            assert!(variants().iter().any(|method| method.name == row.doc().name), "{}", row.doc().name);
        }
    }
}
