//! The release: profile, choose, apply, verify, publish.
//!
//! [`release`] is the whole pipeline in one function. The other entry points stop earlier: [`load`] profiles,
//! [`search`] chooses, [`check_release()`] verifies a folder that lies there.

pub(crate) mod again;
pub(crate) mod anonymized;
pub mod apply;
pub mod as_is;
mod check_record;
mod check_release;
pub mod chosen;
pub(crate) mod class_key;
mod counting;
pub(crate) mod damaged;
pub mod digest;
mod disk;
pub(crate) mod distinct;
pub mod engine;
pub mod files;
pub mod functions;
pub mod hierarchy_files;
mod holders;
pub mod homogeneous;
pub mod input;
mod judge;
mod known;
pub mod link;
mod order;
mod per_class;
mod plain_values;
pub mod profile;
pub mod propose;
mod read_arrow;
mod read_csv;
mod read_json;
pub mod record;
mod recording;
pub(crate) mod relative;
pub mod roles;
pub mod staging;
pub mod stop;
pub(crate) mod target;
mod typed;
pub mod verify;
mod watcher;
mod work_folder;
pub mod write;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::prelude::{DataFrame, SessionContext};

pub use check_release::{Checked, check_release};

use crate::class::{Budget, ClassTable, Judged};
use crate::error::{Error, Result};
use crate::generalize::Generalizer;
use crate::measure::{ClassSizes, granularity};
use crate::method::lattice::minimal::minimal;
use crate::method::{self, Found, Outcome, Problem};
use crate::model::{Class, ClassModel, Counted, Merge, Requirement};
use crate::plural::plural;
use crate::policy::{Files, Policy, Said};
use crate::release::apply::ClassNumbers;
use crate::release::as_is::{Finer, ReleasedRows};
use crate::release::chosen::{Chosen, KeptClasses};
use crate::release::engine::{Doing, PoolBudget, Resources};
use crate::release::input::Input;
use crate::release::record::{LevelRecord, PrivateRecord, PublicRecord};
pub use crate::release::recording::risks;
use crate::release::recording::{Before, private_record, public_levels, public_record};
use crate::release::staging::Staging;
use crate::release::stop::Stop;
use crate::release::typed::Typing;
use crate::release::verify::Expected;
use crate::release::watcher::Watcher;

/// What is going on, for a progress display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Grouping the input.
    Profile,
    /// Looking for the best node.
    Search,
    /// Writing rows.
    Write,
    /// Counting what was written.
    Verify,
    /// Making it appear.
    Publish,
}

/// Hears what a run does.
pub trait Listener: Sync + Send {
    /// A phase begins; `total` units of work are known to lie ahead, or 0.
    fn begin(&self, _phase: Phase, _total: u64) {}
    /// So much of the phase is done.
    fn done(&self, _units: u64) {}
    /// The user should know this while the run goes on.
    fn notice(&self, _text: &str) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Listener for Silent {}

/// What every run needs.
pub struct Run<'a> {
    /// Threads and memory.
    pub resources: &'a Resources,
    /// Who may stop it.
    pub stop: &'a Stop,
    /// Who hears of it.
    pub listener: &'a dyn Listener,
    /// Whether errors may show values that a hierarchy does not cover. Nothing else ever shows a cell.
    pub show_values: bool,
}

/// A policy, the text it came from and where its hierarchy files are.
pub struct PolicySource<'a> {
    /// The policy as it was said.
    pub said: &'a Said,
    /// Its text, kept in the private record.
    pub text: &'a str,
    /// Its hierarchy files.
    pub files: &'a dyn Files,
}

/// An opened input: the resolved policy and the table behind it.
pub struct Loaded {
    /// The session that the table lives in.
    pub session: SessionContext,
    /// The input as canonical columns.
    pub table: DataFrame,
    /// The policy, resolved against the table.
    pub policy: Arc<Policy>,
}

impl Loaded {
    /// The input's schema.
    pub fn schema(&self) -> &Schema {
        self.table.schema().as_arrow()
    }
}

/// Opens the input and resolves the policy against it.
///
/// # Errors
/// Data errors of the input, policy errors of the policy.
pub async fn open(resources: &Resources, input: &Input, said: &Said, files: &dyn Files) -> Result<Loaded> {
    open_typed(resources, input, said, files, Typing::Columnar).await
}

/// As [`open`], with the texts of untyped formats and the days since other dates read as `typing` says.
pub(super) async fn open_typed(
    resources: &Resources,
    input: &Input,
    said: &Said,
    files: &dyn Files,
    typing: Typing,
) -> Result<Loaded> {
    let session = resources.session()?;
    let table = input.table_typed(&session, said.csv(), &|name| said.csv_type(name), typing).await?;
    let relative = said.relative_columns(table.schema().as_arrow())?;
    let table = match typing {
        Typing::Columnar => relative::days_since(table, &relative)?,
        Typing::Plain => relative::plain_days_since(table, &relative)?,
    };
    let policy = said.resolve(table.schema().as_arrow(), files)?;
    Ok(Loaded { session, table, policy: Arc::new(policy) })
}

/// Profiles an opened input.
///
/// # Errors
/// A data error when reading fails, memory runs out or a hierarchy does not cover the values.
pub async fn load(run: &Run<'_>, loaded: &Loaded) -> Result<ClassTable> {
    run.listener.begin(Phase::Profile, 0);
    let quasi = loaded.policy.quasi.iter().map(crate::policy::Quasi::for_class_table).collect();
    let (table, counted) = (loaded.table.clone(), loaded.policy.counted());
    let individual = loaded.policy.individual();
    let classes = profile::profile(&loaded.session, table, quasi, &counted, individual, run).await?;
    can_be_searched(&loaded.policy, &classes)?;
    Ok(classes)
}

/// Refuses a table without rows or people, and what no recoding can satisfy.
///
/// # Errors
/// A data error, or an unmet one.
pub(crate) fn can_be_searched(policy: &Policy, classes: &ClassTable) -> Result<()> {
    if classes.total_rows() == 0 {
        return Err(Error::data("the input has no rows"));
    }
    if let (Some(name), 0) = (policy.individual(), classes.total_individuals()) {
        return Err(
            Error::data("no row says whose it is: nobody can be counted").at(format!("column `{name}`"))
        );
    }
    can_be_met(policy, classes)
}

/// Refuses what not even a single class of all rows would hold.
fn can_be_met(policy: &Policy, classes: &ClassTable) -> Result<()> {
    let (people, counted) = (classes.total_individuals(), classes.counted());
    for requirement in &policy.requirements {
        let model = &requirement.model;
        let said = || format!("{} cannot be met: ", requirement.said());
        if model.min_size() > people {
            let found = match counted {
                Counted::Rows => plural(people, "row", "rows"),
                Counted::Individuals => plural(people, "individual", "individuals"),
            };
            return Err(Error::unmet(format!("{}the input has only {found}", said())));
        }
        let name = requirement.sensitive.as_ref();
        let column = classes.sensitive().iter().position(|column| Some(column) == name);
        if let (Merge::Any, Some(column)) = (model.merge(Counted::Rows), column) {
            let mut values = classes.values_of_all(column);
            if counted == Counted::Individuals {
                // No class can be better than one in which each value is one person's.
                values.iter_mut().for_each(|value| value.count = 1);
            }
            let value = model.value(&Class { size: people, sensitive: &values });
            if !model.holds(value) {
                return Err(Error::unmet(format!(
                    "{}all rows together reach only {}",
                    said(),
                    value.to_f64()
                )));
            }
        }
    }
    Ok(())
}

/// Searches for the best nodes; returns the method's name with what it found.
///
/// # Errors
/// Those of the method.
pub fn search(
    run: &Run<'_>,
    policy: &Policy,
    classes: &ClassTable,
    top: usize,
) -> Result<(&'static str, Outcome)> {
    let advice = (policy.method != "anytime").then_some(
        "`method = \"anytime\"` with `effort = { seconds = 60 }` ends in time, without the proof that nothing is better",
    );
    ask(run, policy, classes, top, advice, |problem| {
        let method = method::choose(&policy.method, problem)?;
        Ok((method.doc().name, method.search(problem)?))
    })
}

/// Searches for all minimal nodes; returns how many nodes were evaluated as well.
///
/// # Errors
/// Those of [`minimal()`].
pub fn search_minimal(run: &Run<'_>, policy: &Policy, classes: &ClassTable) -> Result<(Vec<Found>, u64)> {
    ask(run, policy, classes, 1, Some("fewer levels (`min_level`, `max_level`) are searched sooner"), minimal)
}

/// Makes a problem of a policy and its class table; a search that takes long is told with the `advice`.
pub(crate) fn ask<T>(
    run: &Run<'_>,
    policy: &Policy,
    classes: &ClassTable,
    top: usize,
    advice: Option<&'static str>,
    answer: impl FnOnce(&Problem<'_>) -> Result<T>,
) -> Result<T> {
    let ranges = policy.ranges();
    let nodes = ranges.iter().map(|range| range.clone().count() as u64).fold(1, u64::saturating_mul);
    let problem = Problem {
        table: classes,
        requirements: &policy.requirements,
        objective: policy.objective,
        limit: limit(policy, classes),
        ranges: &ranges,
        top,
        effort: policy.effort,
        threads: run.resources.threads,
        watch: &Watcher::new(run, nodes, advice),
    };
    run.listener.begin(Phase::Search, nodes);
    answer(&problem)
}

/// L, the individuals that may be suppressed; rows where none are counted.
pub fn limit(policy: &Policy, classes: &ClassTable) -> u64 {
    policy.suppression_limit.floor_of(classes.total_individuals())
}

/// How many of the best nodes the private record logs.
const LOGGED_NODES: usize = 3;

/// A release that was published.
#[derive(Debug)]
pub struct Released {
    /// What everybody may know.
    pub public: PublicRecord,
    /// What stays with its maker.
    pub private: PrivateRecord,
    /// The classes of the input as it is.
    pub before: ClassSizes,
    /// The classes of the release.
    pub after: ClassSizes,
    /// How much the generalization of each quasi-identifier costs, in policy order: the share of its domain that a
    /// released value stands for.
    pub costs: Vec<f64>,
    /// The quasi-identifiers in policy order: name, level, top level, generalizer.
    pub chosen: Vec<(String, LevelRecord)>,
    /// q, the holders below which a value names people: the largest class size that a requirement implies.
    pub least_holders: u64,
    /// What could not be done after the release was in its place, in whole sentences for people.
    pub warnings: Vec<String>,
}

/// Releases `input` under a policy to the folder `out`: profile, choose, apply, verify, publish.
///
/// # Errors
/// Whatever goes wrong; `out` is then as it was.
pub async fn release(
    run: &Run<'_>,
    input: &Input,
    source: &PolicySource<'_>,
    out: &Path,
    overwrite: bool,
) -> Result<Released> {
    let staging = Staging::begin(out, overwrite, input)?;
    let resources = Resources { spill: Some(staging.spill()), ..run.resources.clone() };

    let loaded = open(&resources, input, source.said, source.files).await?;
    let policy = &loaded.policy;
    let duplicates = roles::check(run, &loaded).await?;
    let classes = load(run, &loaded).await?;
    roles::check_as_is(run, &loaded, &classes).await?;
    let before = Before {
        sizes: ClassSizes::of(&classes, classes.base()),
        rows: classes.total_rows(),
        individuals: policy.individual().map(|_| classes.total_individuals()),
        limit: limit(policy, &classes),
        duplicates,
    };

    let (method, outcome) = tokio::task::block_in_place(|| search(run, policy, &classes, LOGGED_NODES))?;
    let best = outcome.best.first().ok_or_else(|| nothing_found(policy, before.limit, &outcome))?;
    if !best.levels.iter().zip(policy.ranges()).all(|(level, allowed)| allowed.contains(level)) {
        return Err(Error::internal("the method chose a level that the policy does not allow"));
    }
    let (chosen, kept, costs) = choose(policy, loaded.schema(), &classes, &best.levels)?;
    let memory: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "kept classes"));
    memory.grow(kept.bytes())?;
    let numbers = ClassNumbers::new(&classes, &chosen.levels, &kept, &memory)?;
    drop(classes);

    run.listener.begin(Phase::Write, kept.total_rows());
    let plan = apply::apply(loaded.table.clone(), policy, numbers)?;
    let rows = plan.execute_stream().await.doing("planning the release")?;
    let footer = write::footer(&said_models(&policy.requirements));
    let listener = run.listener;
    let folder = staging.release();
    let progress = |rows| listener.done(rows);
    let parts = write::write(rows, policy, &chosen, &kept, &footer, &folder, &memory, run.stop, &progress);
    let parts = parts.await?;

    run.listener.begin(Phase::Verify, 0);
    let expected = expected(policy, &chosen.generalizers);
    check_release::check_files(&staging.release(), &parts, &chosen.schema, &footer)?;
    let (verified, unique, as_is) = {
        let again = open_typed(&resources, input, source.said, source.files, Typing::Plain).await?;
        verify::same_types(loaded.schema(), again.schema())?;
        let (session, table) = (&again.session, again.table);
        let output = check_release::read_parts(session, &staging.release(), &parts)?;
        let verified =
            verify::verify(session, output.clone(), Some(table.clone()), &expected, run.stop).await?;
        let rows =
            ReleasedRows::new(session, output.clone(), Some(table.clone()), &expected, &verified, run.stop);
        let rows = rows.await?;
        let (mut as_is, unique) = (rows.shown(policy).await?, rows.unique_together().await?);
        let finer = finer(policy, &chosen.levels);
        as_is::reveals(session, output, table, &expected, &finer, &mut as_is, run.stop).await?;
        (verified, unique, as_is)
    };
    input.still_the_same()?;

    let public = public_record(policy, &chosen, &verified, unique, &parts, &staging.release())?;
    staging.write_record(&public)?;
    let private =
        private_record(source, policy, input, &public, &before, &verified, as_is, method, &outcome)?;
    run.stop.check()?;
    run.listener.begin(Phase::Publish, 0);
    let warnings = staging.publish(&private)?;

    let levels = public_levels(policy, &chosen);
    let chosen = policy.quasi.iter().map(|q| q.name.clone()).zip(levels).collect();
    let least_holders = verify::least_holders(&policy.requirements);
    Ok(Released {
        public,
        private,
        before: before.sizes,
        after: verified.sizes,
        costs,
        chosen,
        least_holders,
        warnings,
    })
}

fn nothing_found(policy: &Policy, limit: u64, outcome: &Outcome) -> Error {
    if !outcome.proven {
        return Error::unmet(format!(
            "nothing was found in {} of {} of levels; raise effort, or let the search end with \
             method = \"auto\"",
            outcome.evaluated,
            plural(outcome.nodes, "combination", "combinations")
        ));
    }
    Error::unmet(format!(
        "no combination of levels satisfies {} with at most {}; raise suppression_limit, add \
         coarser levels, or make a quasi-identifier an identifier",
        said_models(&policy.requirements),
        match policy.individual() {
            Some(_) => plural(limit, "suppressed individual", "suppressed individuals"),
            None => plural(limit, "suppressed row", "suppressed rows"),
        },
    ))
}

/// The models as a text: `k_anonymity(5)`.
fn said_models(requirements: &[Requirement]) -> String {
    requirements.iter().map(Requirement::said).collect::<Vec<_>>().join(", ")
}

/// The parameters of a model as a record says them.
fn said_parameters(model: &dyn ClassModel) -> BTreeMap<String, String> {
    model.parameters().into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}

/// Makes the chosen node concrete.
fn choose(
    policy: &Policy,
    schema: &Schema,
    classes: &ClassTable,
    levels: &[usize],
) -> Result<(Chosen, KeptClasses, Vec<f64>)> {
    let rolled = classes.roll_up(classes.base(), &vec![0; levels.len()], levels)?;
    let node = Judged::new(classes, levels, &rolled, &policy.requirements);
    if node.kept_classes() == 0 {
        return Err(Error::unmet(format!(
            "the best release by `{}` would be empty: every row is suppressed; nothing was published; lower \
             suppression_limit, so that levels that keep rows are looked for, or add coarser levels",
            policy.objective.doc().name
        )));
    }
    let (chosen, kept) = chosen::choose(policy, schema, &node)?;
    Ok((chosen, kept, granularity::of_columns(&node)))
}

/// The level below the released one of each quasi-identifier that is generalized.
fn finer(policy: &Policy, levels: &[usize]) -> Vec<Finer> {
    let columns = policy.released().enumerate().filter_map(|(index, (name, _))| {
        let quasi = policy.quasi_index(name)?;
        let level = levels.get(quasi)?.checked_sub(1)?;
        let generalizer = policy.quasi[quasi].hierarchy.levels().get(level)?;
        Some((index, Arc::clone(generalizer)))
    });
    columns.collect()
}

fn expected<'a>(policy: &'a Policy, generalizers: &[Arc<dyn Generalizer>]) -> Expected<'a> {
    let columns = policy.released().map(|(name, _)| {
        let generalizer = policy.quasi_index(name).map(|index| Arc::clone(&generalizers[index]));
        (name.to_owned(), generalizer)
    });
    Expected {
        columns: columns.collect(),
        requirements: &policy.requirements,
        sensitive: policy.sensitive().map(str::to_owned).collect(),
        individual: policy.individual().map(str::to_owned),
        suppression_limit: Some(policy.suppression_limit),
    }
}
