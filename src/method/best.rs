//! The method `best`: tries every other method and takes the recoding that loses least.
//!
//! The lattice is searched first: by `anytime` if the policy gives an `effort` or there are more
//! than 100,000 nodes (then within 1,000 nodes), else to its end. Each class of the node found then
//! shows the finest regions around its own values rather than the labels of its levels; under `ends
//! = "cuts"` it shows these labels. After that come the methods whose classes show regions of their
//! own, with every choice that their parameters allow. Candidates of equal loss stay in this order.
//!
//! A method whose releases show centroids, noise or groups is left out, because every candidate needs the same
//! schema. All candidates are rated by the regions that they show. [`compare`], behind
//! `kanon search --compare`, tries the other methods, too, and shows a node as levels.
//!
//! # Contract
//! The loss is at most that of any method tried that makes classes of its own, and is not proven
//! best. A node of the lattice loses at most as much by regions as by its labels, but for columns
//! in which a value has the same text as a label above it, as which the region must then be read,
//! and where an interval reaches from the least to the greatest released value: it is written `*`,
//! and loses as much. It does not hold where a model is required over a subset of the
//! quasi-identifiers: there classes are joined by what they show, and finer regions join fewer.
//! Methods that cannot do what the policy says are left out, such as those that choose no levels
//! where a column has a `max_level`; a `min_level` is refused, but in a column with `recode =
//! "global"`, because a class may show values finer than its labels. The schema is the same
//! whichever method wins: every quasi-identifier shows regions, which the policy writes as text or
//! as columns. The same bytes for any number of threads, unless the effort is given in seconds. A
//! method that runs out of memory is left out.

use std::time::{Duration, Instant};

use super::lattice::{Effort, Options};
use super::partition::global::{at_levels, count_combinations};
use super::partition::nodes::Node;
use super::partition::{candidate, released};
use super::{AUTO, Candidate, MethodSpec, Outcome, Problem, Recoding, ReleaseKind, variants};
use crate::class::{ReleasedClasses, Union};
use crate::doc::Doc;
use crate::error::{Error, ErrorKind, Result};

/// The name and documentation of the method.
pub const DOC: &Doc = &Doc {
    name: "best",
    summary: "tries all methods and takes the recoding that loses least; classes show intervals, labels or sets",
    parameters: "",
    example: "method = \"best\"",
    paper: None,
};

/// The effort for a lattice that is too large to be searched to its end, and for each round of `local`.
pub(super) const EFFORT: Effort = Effort::Nodes(1_000);

/// A lattice of more nodes is searched by `anytime`.
const MANY: u64 = 100_000;

/// A method that was tried.
#[derive(Debug)]
pub struct Tried {
    /// The method.
    pub method: MethodSpec,
    /// What came of it.
    pub result: Attempt,
    /// The nodes or cuts that were evaluated.
    pub steps: u64,
    /// The time that the search took.
    pub time: Duration,
}

/// What came of a method.
#[derive(Debug)]
pub enum Attempt {
    /// It found a recoding.
    Found {
        /// The best one.
        best: Candidate,
        /// Whether no recoding of its kind loses less.
        proven: bool,
    },
    /// It found nothing within the policy.
    Nothing,
    /// The policy says something that the method cannot do, or memory ran out: the reason.
    DoesNotApply(String),
}

/// Searches by every method that needs no parameter, and by the `named` one, which stands for all that
/// search the lattice if it is one of these; returns them by loss, then those that found nothing or do not
/// apply, methods that make groups or add noise last: their loss measures something else.
///
/// # Errors
/// An interruption.
pub fn compare(problem: &Problem<'_>, options: &Options, named: Option<&MethodSpec>) -> Result<Vec<Tried>> {
    let lattice = named.filter(|method| method.name != AUTO && method.searches_lattice());
    let with_noise = named.filter(|method| method.kind() == ReleaseKind::Noise).cloned();
    let methods = methods(options, lattice).into_iter().chain(with_noise);
    // A method that is named keeps its own effort.
    let within = &if lattice.is_some() { options.clone() } else { within_effort(options) };
    let mut all = methods.map(|method| attempt(problem, within, method)).collect::<Result<Vec<_>>>()?;
    let loss = |tried: &Tried| match &tried.result {
        Attempt::Found { best, .. } => best.loss,
        Attempt::Nothing | Attempt::DoesNotApply(_) => f64::INFINITY,
    };
    // Groups lose nothing of a quasi-identifier, but what goes with it; noise is in no loss.
    let is_other = |tried: &Tried| match &tried.result {
        Attempt::Found { .. } => !tried.method.kind().facts().suppresses,
        Attempt::Nothing | Attempt::DoesNotApply(_) => false,
    };
    // Stable: equal losses stay in the order of the methods.
    all.sort_by(|a, b| is_other(a).cmp(&is_other(b)).then(loss(a).total_cmp(&loss(b))));
    Ok(all)
}

fn within_effort(options: &Options) -> Options {
    Options { effort: Some(options.effort.unwrap_or(EFFORT)), ..options.clone() }
}

/// Searches by one method.
fn attempt(problem: &Problem<'_>, options: &Options, method: MethodSpec) -> Result<Tried> {
    let begin = Instant::now();
    let (result, steps) = match super::search(&method, problem, options) {
        Ok((_, Outcome { best, evaluated, proven, .. })) => {
            let found = best.into_iter().next().map(|best| Attempt::Found { best, proven });
            (found.unwrap_or(Attempt::Nothing), evaluated)
        }
        // What is refused for its data here is out of memory; another method may need less.
        Err(error) if matches!(error.kind(), ErrorKind::Policy | ErrorKind::Data) => {
            (Attempt::DoesNotApply(error.to_string()), 0)
        }
        Err(error) => return Err(error),
    };
    Ok(Tried { method, result, steps, time: begin.elapsed() })
}

/// Returns every method with every choice of its parameters; one method stands for all that search
/// the lattice.
fn methods(options: &Options, lattice: Option<&MethodSpec>) -> Vec<MethodSpec> {
    let cheapest = || match options.effort {
        None if options.nodes() <= MANY => MethodSpec::default(),
        _ => MethodSpec::named("anytime"),
    };
    let lattice = lattice.cloned().unwrap_or_else(cheapest);
    let all = variants().into_iter();
    all.map(|method| if method.kind() == ReleaseKind::Levels { lattice.clone() } else { method }).collect()
}

/// Tries every method and returns the best recoding of each, which shows regions, best first.
pub(super) fn search(problem: &Problem<'_>, options: &Options) -> Result<Outcome> {
    // Otherwise only nodes of the lattice would be left.
    count_combinations(options)?;
    let within = &Options { top: 1, ..within_effort(options) };
    let (mut best, mut evaluated, mut does_not_apply) = (Vec::new(), 0, None);
    // Centroids and groups would give the release another schema.
    let has_schema =
        |method: &MethodSpec| matches!(method.kind(), ReleaseKind::Levels | ReleaseKind::Regions);
    let methods = methods(options, None).into_iter().filter(has_schema);
    for method in methods {
        let tried = attempt(problem, within, method)?;
        evaluated += tried.steps;
        let found = match tried.result {
            Attempt::Found { best, .. } => best,
            Attempt::Nothing => continue,
            Attempt::DoesNotApply(why) => {
                does_not_apply = Some(why);
                continue;
            }
        };
        let found = match &found.recoding {
            Recoding::Classes(_) => Some(found),
            Recoding::Levels(levels) => candidate(problem, as_regions(problem, levels, &options.global)?)?,
            _ => return Err(Error::internal("best: a method that makes classes found another recoding")),
        };
        best.extend(found.map(|found| Candidate { by: Some(tried.method), ..found }));
    }
    if let (true, Some(why)) = (best.is_empty() && evaluated == 0, does_not_apply) {
        return Err(Error::data(why));
    }
    // Stable: equal losses stay in the order of the methods.
    best.sort_by(|a, b| a.loss.total_cmp(&b.loss));
    Ok(Outcome { best, nodes: None, evaluated, proven: false, bound: None })
}

/// Returns the classes of a node. They show the finest regions around their values; under `ends =
/// "cuts"`, and in the `global` columns, the labels of the levels.
pub(crate) fn as_regions(
    problem: &Problem<'_>,
    levels: &[usize],
    global: &[usize],
) -> Result<ReleasedClasses> {
    let (table, ends) = (problem.table, problem.ends);
    let node = Node::new(table, levels, ends)?;
    let classes = node.classes((0u32..).take(table.base().len()).collect())?;
    let mut parts = classes.into_iter().map(|class| node.part(class)).collect::<Result<Vec<_>>>()?;
    let of_global: Vec<usize> = global.iter().map(|column| levels[*column]).collect();
    if !global.is_empty() {
        // What a class shows of these columns depends on the other classes, but not on those that
        // are suppressed.
        let mut union = Union::new(table, problem.requirements)?;
        parts.retain(|part| union.holds(&part.classes));
        at_levels(table, &mut parts, global, &of_global, ends)?;
    }
    released(table, parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::class::Region;
    use crate::generalize::Ends;
    use crate::method::partition::mondrian::tests::{problem, requirements, rows, table_with};
    use crate::method::row;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_method_loses_less_and_each_shows_regions(
            rows in rows(),
            k in 1..6u64,
            l in 1..3u64,
            counts_individuals in any::<bool>(),
            limit in 0..10u64,
            top_is_allowed in any::<bool>(),
            shows_cuts in any::<bool>(),
        ) {
            let table = table_with(&rows, counts_individuals, true);
            let requirements = requirements(k, l);
            let ends = if shows_cuts { Ends::Cuts } else { Ends::Values };
            let problem = Problem { limit, ends, ..problem(&table, &requirements) };
            let mut ranges: Vec<_> = table.heights().into_iter().map(|height| 0..=height).collect();
            if !top_is_allowed {
                ranges[1] = 0..=0;
            }
            let options = Options { ranges, top: 1, effort: None, global: Vec::new() };
            let outcome = search(&problem, &options).unwrap();
            let tried = compare(&problem, &options, None).unwrap();
            prop_assert_eq!(tried.len(), variants().len());
            let found = tried.iter().filter_map(|tried| match &tried.result {
                Attempt::Found { best, .. } => Some((&tried.method, best)),
                Attempt::Nothing => None,
                Attempt::DoesNotApply(_) if tried.method.kind() == ReleaseKind::Groups => None,
                Attempt::DoesNotApply(why) => {
                    let makes_no_cuts = row(&tried.method.name).is_some_and(|row| !row.shows_cuts());
                    let place = if makes_no_cuts && shows_cuts && top_is_allowed { "output.ends: " } else { "columns.b: " };
                    assert!((shows_cuts || !top_is_allowed) && why.starts_with(place), "{}: {why}", tried.method);
                    None
                }
            });
            let found: Vec<_> = found.filter(|(method, _)| matches!(method.kind(), ReleaseKind::Levels | ReleaseKind::Regions)).collect();
            prop_assert_eq!(outcome.best.len(), found.len());
            prop_assert!(outcome.best.is_sorted_by_key(|best| best.loss));
            for (method, of_method) in found {
                let best = outcome.best.iter().find(|best| best.by.as_ref() == Some(method)).unwrap();
                prop_assert!(best.recoding.levels().is_none());
                let Recoding::Classes(released) = &best.recoding else { panic!("{method} chose levels") };
                // What is written `*` is everything, whatever label its level has, and such classes
                // may be one.
                let shows_all = released.regions().iter().any(|shown| shown.contains(&Region::Everything));
                prop_assert!(best.loss <= of_method.loss || (shows_cuts && best.loss - of_method.loss < 0.2) || shows_all);
                if shows_all && best.classes < of_method.classes {
                    continue;
                }
                // The classes are those of the method; they only show more.
                let facts = |one: &Candidate| {
                    (one.suppressed_rows, one.suppressed_individuals, one.classes, one.min_class)
                };
                prop_assert_eq!(facts(best), facts(of_method), "{}", method);
            }
        }
    }
}
