//! From an opened input to the best nodes: profile, check that the policy can be satisfied, search.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::class::{ClassTable, Population};
use crate::engine::Run;
use crate::error::{Error, ErrorCode, Result};
use crate::input::Loaded;
use crate::method::best::{self, Tried};
use crate::method::lattice::minimal::minimal;
use crate::method::lattice::{Found, Lattice};
use crate::method::{self, AUTO, MethodRow, Outcome, Problem};
use crate::model::{Class, Counted, Merge, Requirement};
use crate::plural::{individuals, plural, rows};
use crate::policy::{Policy, Quasi};
use crate::progress::{Phase, Progress};
use crate::release::profile;
use crate::release::publish::record::models_text;
use crate::release::search_progress::SearchProgress;

/// Profiles an opened input.
///
/// # Errors
/// A data error when reading fails, memory runs out or a hierarchy does not cover the values.
pub async fn profile_classes(run: &Run, loaded: &Loaded) -> Result<ClassTable> {
    run.progress.begin(Phase::Profile, 0);
    let quasi = loaded.policy.quasi.iter().map(Quasi::for_class_table).collect();
    let (table, counted) = (loaded.table.clone(), loaded.policy.counted());
    let individual = loaded.policy.individual();
    let classes = profile::profile(&loaded.session, table, quasi, counted, individual, run).await?;
    can_be_searched(&loaded.policy, &classes)?;
    let Some(population) = &loaded.population else { return Ok(classes) };
    population.check_members(&loaded.policy.requirements, &loaded.table).await?;
    let quasi = population.policy.quasi.iter().map(Quasi::for_class_table).collect();
    let (table, individual) = (population.table.clone(), population.policy.individual());
    let grouped = profile::profile(&loaded.session, table, quasi, Vec::new(), individual, run).await;
    let grouped = grouped.map_err(|error| error.at("population"))?;
    let population = Population::new(classes.columns(), grouped)?;
    Ok(classes.with_population(population))
}

/// Refuses a table without rows or individuals, and requirements that no recoding can satisfy.
///
/// # Errors
/// A data error, or an unmet one.
pub(crate) fn can_be_searched(policy: &Policy, classes: &ClassTable) -> Result<()> {
    if classes.total_rows() == 0 {
        return Err(Error::data("the input has no rows").coded(ErrorCode::EmptyInput));
    }
    if let (Some(name), 0) = (policy.individual(), classes.total_individuals()) {
        return Err(Error::data("the individual is NULL in every row: there are no individuals to count")
            .at(format!("column `{name}`")));
    }
    can_be_met(policy, classes)
}

/// Returns a notice for each requirement that names values which the input does not have: a
/// misspelt one bounds nothing.
pub(crate) fn unseen_values(policy: &Policy, classes: &ClassTable) -> Vec<String> {
    let of_requirement = |requirement: &Requirement| {
        let column = requirement.sensitive.as_ref()?;
        let named = column.values()?.iter().collect::<BTreeSet<_>>().len();
        let counted = classes.distribution(classes.sensitive_index(column)?).values();
        let unseen = named.saturating_sub(counted.iter().filter(|count| count.value.is_some()).count());
        (unseen > 0).then(|| {
            let values = plural(unseen as u64, "value that does", "values that do");
            format!("{} names {values} not occur in the input, so nothing bounds it; is it spelt as in the input?", requirement.text())
        })
    };
    policy.requirements.iter().filter_map(of_requirement).collect()
}

/// Refuses requirements that even one class of all rows would fail.
fn can_be_met(policy: &Policy, classes: &ClassTable) -> Result<()> {
    let (total, counted) = (classes.total_individuals(), classes.counted());
    for requirement in &policy.requirements {
        let model = &requirement.model;
        let text = || format!("{} cannot be met: ", requirement.text());
        if model.min_size() > total {
            let found = match counted {
                Counted::Rows => rows(total),
                Counted::Individuals => individuals(total),
            };
            return Err(Error::unmet(format!("{}the input has only {found}", text())));
        }
        let column = requirement.sensitive.as_ref().and_then(|column| classes.sensitive_index(column));
        if let (Merge::Any, Some(column)) = (model.merge(Counted::Rows), column) {
            let mut values = classes.distribution(column).values().to_vec();
            if counted == Counted::Individuals {
                // No class can be better than one in which each individual has a different value.
                values.iter_mut().for_each(|value| value.count = 1);
            }
            let value = model.value(&Class::of_values(total, &values));
            if !model.holds(value) {
                return Err(Error::unmet(format!(
                    "{}all rows together reach only {}",
                    text(),
                    value.to_f64()
                )));
            }
        }
    }
    Ok(())
}

/// Searches by the policy's method; returns the method's name and the outcome.
///
/// # Errors
/// Errors of the method; a policy error if the policy says something that it cannot do.
pub fn search(
    run: &Run,
    policy: &Policy,
    classes: &ClassTable,
    top: usize,
) -> Result<(&'static str, Outcome)> {
    let name = policy.spec.method.name.as_str();
    let runs_to_the_end = name == AUTO
        || method::row(name).and_then(MethodRow::of_lattice).is_some_and(|row| !row.takes_effort);
    let advice = runs_to_the_end.then_some(
        "For an answer within a minute, put `method = \"anytime\"` and `effort = { seconds = 60 }` in the \
         policy; it may not be proven best",
    );
    let options = policy.options(top);
    let progress = SearchProgress::new(run, options.nodes(), advice);
    method::search(&policy.spec.method, &problem(run, policy, classes, &progress), &options)
}

/// Searches for one best recoding on a thread of its own; also returns the class table.
///
/// # Errors
/// Those of [`search()`].
pub(super) async fn search_apart(
    run: &Run,
    policy: &Arc<Policy>,
    classes: ClassTable,
) -> Result<(ClassTable, &'static str, Outcome)> {
    let policy = Arc::clone(policy);
    run.on_own_thread(move |run| {
        let (method, outcome) = search(run, &policy, &classes, 1)?;
        Ok((classes, method, outcome))
    })
    .await
}

/// Searches by every method; returns what came of each, by loss.
///
/// # Errors
/// A data error when memory runs out, an interruption.
pub fn compare(run: &Run, policy: &Policy, classes: &ClassTable) -> Result<Vec<Tried>> {
    let options = policy.options(1);
    best::compare(&problem(run, policy, classes, &*run.progress), &options, Some(&policy.spec.method))
}

pub(super) fn problem<'a>(
    run: &'a Run,
    policy: &'a Policy,
    classes: &'a ClassTable,
    progress: &'a dyn Progress,
) -> Problem<'a> {
    Problem {
        table: classes,
        requirements: &policy.requirements,
        objective: policy.spec.objective,
        ends: policy.spec.output.ends(),
        limit: limit(policy, classes),
        threads: run.resources.threads,
        progress,
        stop: &run.stop,
    }
}

/// Searches for all minimal nodes; also returns how many nodes were evaluated.
///
/// # Errors
/// Errors of [`minimal()`].
pub fn search_minimal(run: &Run, policy: &Policy, classes: &ClassTable) -> Result<(Vec<Found>, u64)> {
    ask(run, policy, classes, 1, Some("Fewer levels (`min_level`, `max_level`) are searched faster"), minimal)
}

/// Runs a search on the lattice of a policy and its class table; if it takes long, a notice shows
/// the `advice`.
pub(crate) fn ask<T>(
    run: &Run,
    policy: &Policy,
    classes: &ClassTable,
    top: usize,
    advice: Option<&'static str>,
    answer: impl FnOnce(Lattice<'_>) -> Result<T>,
) -> Result<T> {
    let options = policy.options(top);
    let nodes = options.nodes();
    let progress = SearchProgress::new(run, nodes, advice);
    let problem = problem(run, policy, classes, &progress);
    run.progress.begin(Phase::Search, nodes);
    answer(Lattice { problem: &problem, options: &options })
}

/// Returns L, the number of individuals that may be suppressed; rows where none are counted.
pub fn limit(policy: &Policy, classes: &ClassTable) -> u64 {
    if !policy.kind.facts().suppresses {
        return 0;
    }
    policy.spec.suppression_limit.floor_of(classes.total_individuals())
}

/// Returns why the method of a policy makes no groups that satisfy it, and what to do; `None` for one that makes classes.
pub(crate) fn why_nothing(policy: &Policy) -> Option<String> {
    let row = method::row(&policy.spec.method.name)?;
    row.why_nothing.map(|why| why(&policy.requirements))
}

/// Returns the error for a search that found no node.
pub(super) fn nothing_found(policy: &Policy, limit: u64, outcome: &Outcome) -> Error {
    if let Some(why) = why_nothing(policy) {
        return Error::unmet(format!(
            "`{}` found no groups that satisfy {}; {why}",
            policy.spec.method.name,
            models_text(&policy.requirements),
        ));
    }
    let found = match outcome.nodes {
        None if policy.spec.method.name == best::DOC.name => {
            "no method found classes that satisfy".to_owned()
        }
        None => format!("`{}` found no classes that satisfy", policy.spec.method.name),
        Some(_) if outcome.proven => "no combination of levels satisfies".to_owned(),
        Some(_) if !method::takes_effort(&policy.spec.method.name) => {
            format!("`{}` found no combination of levels that satisfies", policy.spec.method.name)
        }
        Some(nodes) => {
            return Error::unmet(format!(
                "nothing was found in {} of {} of levels; raise effort, or let the search end with \
                 method = \"auto\"",
                outcome.evaluated,
                plural(nodes, "combination", "combinations")
            ));
        }
    };
    let row = method::row(&policy.spec.method.name);
    let advice = match outcome.nodes {
        Some(_) if !outcome.proven => {
            "use method = \"auto\", which looks at all of them, or raise suppression_limit"
        }
        None if policy.quasi.iter().any(|quasi| quasi.is_global) => {
            "raise suppression_limit, or allow coarser levels of the columns with recode = \"global\""
        }
        // Those that choose labels can suppress rows.
        None if row.is_some_and(|row| !row.keeps_max_level()) => {
            "require less, or try a method that can suppress rows, such as \"auto\""
        }
        _ => "raise suppression_limit, add coarser levels, or make a quasi-identifier an identifier",
    };
    Error::unmet(format!(
        "{found} {} with at most {}; {advice}",
        models_text(&policy.requirements),
        match policy.individual() {
            Some(_) => plural(limit, "suppressed individual", "suppressed individuals"),
            None => plural(limit, "suppressed row", "suppressed rows"),
        },
    ))
}
