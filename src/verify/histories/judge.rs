//! The verdict on histories: their people are counted like those of classes, and models see them as classes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use arrow::array::Array;
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use super::DOING;
use super::shown_rows::{ShownRows, lost, numbers};
use super::trace::{Counts, TRACED, Traced};
use crate::class::{Budget, Held};
use crate::engine::{Context, PoolBudget, column};
use crate::error::Result;
use crate::model::{Class, SeenClass, ValueCount};
use crate::progress::CancelToken;

/// The histories of all rows, and those that are not safe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Histories {
    /// What was counted of the rows.
    pub(crate) counts: Counts,
    /// The people with a row in a history that is not safe.
    pub(crate) people_found: u64,
    /// The histories by the releases that show them.
    pub(crate) patterns: BTreeMap<u64, Pattern>,
    /// The models of values that fail in any history.
    pub(crate) models: BTreeMap<FailedModel, u64>,
}

/// The people with a row in a history that is not safe, as hashes.
#[derive(Default)]
pub(crate) struct PeopleFound {
    people: HashSet<[u64; 2]>,
    held: Option<Held>,
}

impl PeopleFound {
    pub(crate) fn count(&self) -> u64 {
        self.people.len() as u64
    }

    pub(crate) fn contains(&self, person: [u64; 2]) -> bool {
        self.people.contains(&person)
    }
}

/// The histories of rows that the same releases show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) histories: u64,
    pub(crate) rows: u64,
    /// The fewest people of one.
    pub(crate) fewest: u64,
    /// Those with fewer people than a release promises that shows them.
    pub(crate) too_few: u64,
    /// Those that are not safe, for whatever reason.
    pub(crate) failed: u64,
    /// The rows in them.
    pub(crate) rows_failed: u64,
}

/// A model of values that does not hold for the rows of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FailedModel {
    /// The place of the release.
    pub(crate) release: usize,
    /// The place of the model among its requirements.
    pub(crate) model: usize,
    /// Whether it fails on the values alone that all releases show.
    pub(crate) on_lasting: bool,
}

impl Histories {
    /// Returns whether every history is safe.
    pub(crate) fn are_safe(&self) -> bool {
        self.patterns.values().all(|pattern| pattern.failed == 0)
    }
}

/// Judges the histories of rows.
///
/// # Errors
/// A data error when reading fails or memory runs out, an interruption.
pub(super) async fn judge(
    session: &SessionContext,
    releases: &[&ShownRows<'_>],
    view: usize,
    traced: Traced,
    people_found: &mut PeopleFound,
    stop: &CancelToken,
) -> Result<Histories> {
    let Traced { table, counts } = traced;
    let order = [TRACED[0], TRACED[1], TRACED[2], TRACED[3], TRACED[4]];
    let rows = table.sort(order.map(|name| column(name).sort(true, true)).to_vec()).context(DOING)?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "histories"));
    let found = Histories { counts, ..Histories::default() };
    let mut judge = Judge::new(releases, view, found, &budget);
    let mut stream = rows.execute_stream().await.context(DOING)?;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let columns = numbers(&batch)?;
        let (first, values) = columns.split_at(TRACED.len());
        for row in 0..batch.num_rows() {
            let [a, b, release, person_a, person_b, _, pattern] = first else { return Err(lost()) };
            let history = [a.value(row), b.value(row)];
            let place = usize::try_from(release.value(row)).map_err(|_| lost())?;
            judge.begin(history, place, pattern.value(row));
            judge.people.push([person_a.value(row), person_b.value(row)]);
            let values = values.iter().take(releases[place].width);
            judge.values.extend(values.map(|values| values.is_valid(row).then(|| values.value(row))));
        }
        judge.account()?;
    }
    judge.end_history();
    judge.account()?;
    judge.found.people_found = judge.people_found.len() as u64;
    people_found.people.extend(judge.people_found);
    let held = people_found.held.get_or_insert_with(|| Held::new(&budget));
    held.at_least(people_found.people.capacity() * size_of::<[u64; 2]>())?;
    Ok(judge.found)
}

/// Reads rows in the order of histories, releases and people.
struct Judge<'a> {
    releases: &'a [&'a ShownRows<'a>],
    view: usize,
    history: Option<[u64; 2]>,
    pattern: u64,
    release: usize,
    /// The people of the rows of the history in the release, and the values of these rows.
    people: Vec<[u64; 2]>,
    values: Vec<Option<u64>>,
    /// The rows of the history, its people, and how many these have to be.
    rows: u64,
    of_history: Vec<[u64; 2]>,
    least: u64,
    failed: Vec<FailedModel>,
    /// For each column whose values last the number of people with each value in all releases so far, and of these releases.
    lasting: HashMap<&'a str, (u64, HashMap<u64, u64>)>,
    people_found: HashSet<[u64; 2]>,
    found: Histories,
    held: Held,
}

impl<'a> Judge<'a> {
    fn new(
        releases: &'a [&'a ShownRows<'a>],
        view: usize,
        found: Histories,
        budget: &Arc<dyn Budget>,
    ) -> Self {
        Self {
            releases,
            view,
            history: None,
            pattern: 0,
            release: 0,
            people: Vec::new(),
            values: Vec::new(),
            rows: 0,
            of_history: Vec::new(),
            least: 0,
            failed: Vec::new(),
            lasting: HashMap::new(),
            people_found: HashSet::new(),
            found,
            held: Held::new(budget),
        }
    }

    /// Begins to read a row; judges what ended before it.
    fn begin(&mut self, history: [u64; 2], release: usize, pattern: u64) {
        if self.history != Some(history) {
            self.end_history();
        } else if self.release != release {
            self.end_release();
        }
        (self.history, self.release, self.pattern) = (Some(history), release, pattern);
    }

    /// Judges the rows of the history as the release shows them.
    fn end_release(&mut self) {
        let release = &self.releases[self.release];
        let (people, values) = (mem::take(&mut self.people), mem::take(&mut self.values));
        let rows = people.len() as u64;
        let mut distinct = people.clone();
        distinct.dedup();
        let size = distinct.len() as u64;
        let counted = release.width - release.lasting.len();
        let counts = |at: usize| -> Vec<(Option<u64>, u64)> {
            let of_column = values.iter().skip(at).step_by(release.width.max(1));
            let mut pairs: Vec<(Option<u64>, [u64; 2])> =
                of_column.copied().zip(people.iter().copied()).collect();
            pairs.sort_unstable();
            pairs.dedup();
            pairs.chunk_by(|(a, _), (b, _)| a == b).map(|same| (same[0].0, same.len() as u64)).collect()
        };
        let of_values: Vec<Vec<ValueCount>> = (0..counted)
            .map(|at| {
                let number = |value: Option<u64>| value.map(|value| u32::try_from(value).unwrap_or(u32::MAX));
                let count = |(value, count)| ValueCount { value: number(value), count };
                counts(at).into_iter().map(count).collect()
            })
            .collect();
        let inputs = release.inputs.as_slice();
        let seen = SeenClass { rows, size, unowned_rows: 0, values: &of_values, inputs, individuals: None };
        for model in release.models_of(self.view) {
            let value = model.requirement.model.value(&seen.of_column(model.column));
            if !model.requirement.holds(size, value) {
                self.failed.push(FailedModel { release: self.release, model: model.at, on_lasting: false });
            }
        }
        for (at, name) in release.lasting.iter().enumerate() {
            let shown = counts(counted + at).into_iter();
            let shown: HashMap<u64, u64> = shown.filter_map(|(value, count)| Some((value?, count))).collect();
            match self.lasting.get_mut(name.as_str()) {
                None => drop(self.lasting.insert(name, (1, shown))),
                Some((releases, known)) => {
                    *releases += 1;
                    known.retain(|value, count| {
                        *count = (*count).min(shown.get(value).copied().unwrap_or_default());
                        *count > 0
                    });
                }
            }
        }
        self.least = self.least.max(release.least(self.view));
        self.rows = rows;
        self.of_history = distinct;
    }

    /// Judges the history.
    fn end_history(&mut self) {
        if self.history.take().is_none() {
            return;
        }
        self.end_release();
        self.judge_lasting();
        let people = self.of_history.len() as u64;
        let too_few = people < mem::take(&mut self.least);
        let failed = mem::take(&mut self.failed);
        let pattern = self.found.patterns.entry(self.pattern).or_default();
        let is_first = pattern.histories == 0;
        pattern.fewest = if is_first { people } else { pattern.fewest.min(people) };
        pattern.histories += 1;
        pattern.rows += self.rows;
        pattern.too_few += u64::from(too_few);
        if too_few || !failed.is_empty() {
            pattern.failed += 1;
            pattern.rows_failed += self.rows;
            self.people_found.extend(self.of_history.iter().copied());
        }
        failed.into_iter().for_each(|model| *self.found.models.entry(model).or_default() += 1);
        self.lasting.clear();
    }

    /// Judges the values alone that all releases show which show the history.
    fn judge_lasting(&mut self) {
        let size = self.of_history.len() as u64;
        for (release, rows) in
            self.releases.iter().enumerate().filter(|(at, _)| self.pattern & (1 << at) != 0)
        {
            for model in rows.models_of(self.view) {
                let lasting = model.lasting.and_then(|name| self.lasting.get(name));
                let Some((2.., common)) = lasting.map(|(releases, common)| (*releases, common)) else {
                    continue;
                };
                let mut counts: Vec<(u64, u64)> =
                    common.iter().map(|(value, count)| (*value, *count)).collect();
                counts.sort_unstable();
                let counts = (0u32..).zip(counts);
                let counts: Vec<ValueCount> =
                    counts.map(|(number, (_, count))| ValueCount { value: Some(number), count }).collect();
                let value = model.requirement.model.value(&Class::of_values(size, &counts));
                if counts.is_empty() || !model.requirement.holds(size, value) {
                    self.failed.push(FailedModel { release, model: model.at, on_lasting: true });
                }
            }
        }
    }

    fn account(&mut self) -> Result<()> {
        let people = self.people.capacity() + self.of_history.capacity() + self.people_found.capacity();
        let values = self.values.capacity();
        self.held.at_least(people * size_of::<[u64; 2]>() + values * (size_of::<Option<u64>>() + 32))
    }
}
