//! The next release of the same people: every row that an earlier release shows stays in its class or is not shown, in parts of enough
//! people (`class/parts.rs`); new rows have classes of their own, in which they are new together.
//!
//! ```text
//! rows of the records and of the input  -> tracks: history, last class, what the row is now
//! rows that a release shows             -> again in their class, or not shown
//! new rows, by their history            -> classes by the method of the policy, among themselves
//! the plan, judged with the records     -> histories that fail are left out whole, and it is judged again
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::class::parts::{EarlierRow, Now, Part, parts};
use crate::class::{Budget, ClassTable, Held};
use crate::engine::{Context, PoolBudget, Run};
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::method::ReleaseKind;
use crate::plural::individuals;
use crate::policy::Policy;
use crate::release::apply::{self, ClassKeys, ClassNumbers};
use crate::release::histories::about::About;
use crate::release::histories::chain::Chain;
use crate::release::histories::next_classes::{
    LabelsOfColumns, LevelClasses, Numbered, OpenEnds, earlier_classes, new_classes, number_of,
};
use crate::release::histories::next_plan::Next;
use crate::release::histories::row_numbers::number_of_row;
use crate::release::histories::unclear;
use crate::verify::histories::{Counts, EarlierTrack, Member, PeopleFound, RowNow, ShownRows, trace_earlier};
use crate::verify::row_lines::{RowLines, RowName};

pub(super) const DOING: &str = "planning the next release";

/// How often histories are left out before the run gives up.
const ROUNDS: usize = 20;

/// Plans the release of an input that follows others.
///
/// # Errors
/// A policy error if the policy does not fit the earlier releases; an unmet error if people cannot be found again, or too many would not be
/// shown; a data error when reading fails or memory runs out.
pub(in crate::release) async fn plan(
    run: &Run,
    loaded: &Loaded,
    classes: ClassTable,
    chain: &Chain,
) -> Result<Next> {
    if !matches!(loaded.policy.kind, ReleaseKind::Levels | ReleaseKind::Regions) {
        let why = format!(
            "`{}` cannot follow other releases: only methods whose classes show levels or regions can",
            loaded.policy.spec.method.name
        );
        return Err(Error::policy(why).at("--after"));
    }
    let about = About::of_input("the input", loaded, &run.stop).await?;
    chain.check(&about, loaded)?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "next release"));
    let mut shown = chain.shown(&loaded.session, run).await?;
    let mut numbered = Numbered::default();
    let of_release = earlier_classes(&loaded.policy, &shown, &mut numbered)?;
    let earlier = numbered.labels.len();
    let levels = match loaded.policy.kind {
        ReleaseKind::Levels => Some(LevelClasses::of(&loaded.policy, &classes, chain, &mut numbered)?),
        _ => None,
    };
    let shows = Shows { numbered, earlier, of_release, levels };
    let base = apply::class_of_row(&loaded.policy, bases(&classes, &budget)?);
    shown.push(ShownRows::of_input(&loaded.session, &loaded.table, &chain.matching, base, &run.stop).await?);
    let all: Vec<&ShownRows<'_>> = shown.iter().collect();
    chain.check_people(&about, &all, run).await?;
    let tracks = tracks(loaded, chain, &all, run).await?;
    shown.pop();
    let mut next = NextRelease::new(run, loaded, chain, &classes, shows, tracks, &budget)?;
    next.add_new_classes(run, loaded, chain, &classes).await?;
    next.make_safe(run, loaded, chain, &classes, &shown).await?;
    drop(shown);
    next.planned(run, loaded, &classes, chain, budget)
}

/// Returns the rows of the input and of the releases before.
async fn tracks(
    loaded: &Loaded,
    chain: &Chain,
    shown: &[&ShownRows<'_>],
    run: &Run,
) -> Result<(Vec<EarlierTrack>, Held)> {
    let (tracks, counts, held) = trace_earlier(&loaded.session, shown, &chain.matching, &run.stop).await?;
    let mut unclear = unclear::rows(&counts, counts.repeated, &chain.matching);
    if !chain.accepts_new_people {
        let of_this = Counts { returning: counts.returning.last().copied().into_iter().collect(), ..counts };
        unclear.extend(unclear::returning(&of_this, &["", "this release"], &chain.matching));
    }
    match unclear.into_iter().next() {
        Some(why) => Err(Error::unmet(why)),
        None => Ok((tracks, held)),
    }
}

/// Numbers the base classes.
fn bases(classes: &ClassTable, budget: &Arc<dyn Budget>) -> Result<ClassNumbers> {
    let columns = 0..classes.columns().len();
    let base = |base: usize| {
        let codes: Box<[u32]> = columns.clone().map(|at| classes.code(classes.base(), base, at)).collect();
        (codes, Some(base as u64))
    };
    let keys = ClassKeys {
        levels: vec![0; columns.len()],
        classes: (0..classes.base().len()).map(base).collect(),
        is_complete: true,
    };
    ClassNumbers::new(classes, keys, budget)
}

/// What classes show.
pub(super) struct Shows {
    /// Those of earlier releases come first.
    pub(super) numbered: Numbered,
    pub(super) earlier: usize,
    /// Of each release before the number of each class.
    of_release: Vec<Vec<u32>>,
    /// The classes of the rows, where all show the labels of one level per column.
    pub(super) levels: Option<LevelClasses>,
}

/// A row of the input.
pub(super) struct Row {
    pub(super) name: RowName,
    /// Its base class.
    base: usize,
    /// The class that may show it.
    pub(super) class: Option<u32>,
    /// Whether no earlier release shows it.
    pub(super) is_new: bool,
    /// What is done with it.
    pub(super) part: Part,
}

impl Row {
    pub(super) fn is_shown(&self) -> bool {
        self.part == Part::Shown
    }

    /// Returns the pseudonym of its person.
    pub(super) fn person(&self) -> [u64; 2] {
        [self.name[0], self.name[1]]
    }
}

/// A row that an earlier release shows.
pub(super) struct KnownRow {
    row: EarlierRow,
    person: [u64; 2],
    /// Its place among the rows of the input.
    place: Option<usize>,
}

/// The next release while it is planned.
pub(super) struct NextRelease {
    k: u64,
    pub(super) shows: Shows,
    /// The rows that an earlier release shows, by history and person.
    known: Vec<KnownRow>,
    /// The rows of the input.
    pub(super) rows: Vec<Row>,
    /// The new rows by what their dates tell.
    new: Vec<Vec<usize>>,
    left_out: BTreeSet<u32>,
    left_out_classes: BTreeSet<u32>,
    /// What is done with each of the known rows.
    parts: Vec<Part>,
    _held: [Held; 2],
}

impl NextRelease {
    fn new(
        run: &Run,
        loaded: &Loaded,
        chain: &Chain,
        classes: &ClassTable,
        shows: Shows,
        (mut tracks, held): (Vec<EarlierTrack>, Held),
        budget: &Arc<dyn Budget>,
    ) -> Result<Self> {
        let mut held_rows = Held::new(budget);
        held_rows.at_least(
            tracks.len() * (size_of::<Row>() + size_of::<KnownRow>() + size_of::<([u64; 2], u32)>()),
        )?;
        let of_columns = match &shows.levels {
            None => Some(LabelsOfColumns::of(&loaded.policy, classes, &shows.numbered.labels)?),
            Some(_) => None,
        };
        let columns =
            of_columns.as_ref().map(|of_columns| of_columns.columns(run, classes, budget)).transpose()?;
        let covers = |class: u32, base: usize| match (&shows.levels, &columns) {
            (Some(levels), _) => levels.of_base[base] == class,
            (None, columns) => columns
                .iter()
                .flatten()
                .all(|(at, column)| column.covers(class, classes.code(classes.base(), base, *at) as usize)),
        };
        tracks.sort_unstable_by_key(|track| {
            (track.history, track.person, track.shown, track.now.as_ref().map(|now| now.row))
        });
        let (mut rows, mut earlier, mut new) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut history = 0u32;
        let mut numbers: HashMap<[u64; 2], u32> = HashMap::new();
        for (at, track) in tracks.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &tracks[before]);
            history += u32::from(before.is_some_and(|before| before.history != track.history));
            let next = number_of(numbers.len());
            let person = *numbers.entry(track.person).or_insert(next);
            let class = track.shown.and_then(|(place, class)| {
                shows.of_release.get(place)?.get(usize::try_from(class).ok()?).copied()
            });
            let name = |now: &RowNow| [track.person[0], track.person[1], now.row];
            let place = track.now.as_ref().map(|now| {
                let base = usize::try_from(now.class).unwrap_or(usize::MAX);
                rows.push(Row { name: name(now), base, class, is_new: class.is_none(), part: Part::LeftOut });
                rows.len() - 1
            });
            if let Some(class) = class {
                let now = match &track.now {
                    Some(now) if !covers(class, usize::try_from(now.class).unwrap_or(usize::MAX)) => {
                        Now::Gone
                    }
                    Some(now) => Now::Again(now.version),
                    None => Now::Gone,
                };
                earlier.push(KnownRow {
                    row: EarlierRow { history, person, now },
                    person: track.person,
                    place,
                });
            } else if let Some(place) = place {
                new.entry(track.history).or_insert_with(Vec::new).push(place);
            }
        }
        // Their histories are hashes under a key of this run.
        let mut new: Vec<Vec<usize>> = new.into_values().collect();
        new.sort_by_key(|rows_of| rows_of.iter().map(|row| rows[*row].name).min());
        drop(columns);
        Ok(Self {
            k: chain.least(loaded),
            shows,
            known: earlier,
            rows,
            new,
            left_out: BTreeSet::new(),
            left_out_classes: BTreeSet::new(),
            parts: Vec::new(),
            _held: [held, held_rows],
        })
    }

    /// Finds classes for the new rows, among themselves.
    async fn add_new_classes(
        &mut self,
        run: &Run,
        loaded: &Loaded,
        chain: &Chain,
        classes: &ClassTable,
    ) -> Result<()> {
        let names = chain.matching.names();
        for rows_of in std::mem::take(&mut self.new) {
            if let Some(levels) = &self.shows.levels {
                for (class, rows_of) in self.by_class(&rows_of, levels) {
                    rows_of.into_iter().for_each(|row| self.rows[row].class = Some(class));
                }
                continue;
            }
            let group: HashMap<RowName, u64> = rows_of.iter().map(|row| (self.rows[*row].name, 0)).collect();
            let is_new = number_of_row(&names, group)?.is_not_null();
            let found = Loaded {
                session: loaded.session.clone(),
                table: loaded.table.clone().filter(is_new).context(DOING)?,
                policy: Arc::clone(&loaded.policy),
                population: None,
            };
            let of_base = new_classes(run, &found, classes, &mut self.shows.numbered).await?;
            for row in rows_of {
                self.rows[row].class = of_base.get(&self.rows[row].base).copied();
            }
        }
        Ok(())
    }

    /// Returns new rows by the class of their levels, where it has enough people of them.
    fn by_class(&self, rows_of: &[usize], levels: &LevelClasses) -> BTreeMap<u32, Vec<usize>> {
        let mut by_class: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for row in rows_of {
            by_class.entry(levels.of_base[self.rows[*row].base]).or_default().push(*row);
        }
        by_class.retain(|_, rows| {
            let people = rows.iter().map(|row| self.rows[*row].person());
            people.collect::<BTreeSet<_>>().len() as u64 >= self.k
        });
        by_class
    }

    /// Decides which rows are shown.
    fn decide(&mut self) {
        let known: Vec<EarlierRow> = self.known.iter().map(|known| known.row).collect();
        // The pseudonym of a person is random to everybody without the key.
        let of_person: HashMap<u32, u64> =
            self.known.iter().map(|known| (known.row.person, known.person[0])).collect();
        let order = |person: u32| of_person.get(&person).copied().unwrap_or_default();
        self.parts = parts(&known, self.k, order, &self.left_out);
        for row in self.rows.iter_mut().filter(|row| row.is_new) {
            let is_shown = row.class.is_some_and(|class| !self.left_out_classes.contains(&class));
            row.part = if is_shown { Part::Shown } else { Part::LeftOut };
        }
        for (known, part) in self.known.iter().zip(&self.parts) {
            if let Some(place) = known.place {
                self.rows[place].part = *part;
            }
        }
    }

    /// Leaves out histories until all releases are safe together.
    async fn make_safe(
        &mut self,
        run: &Run,
        loaded: &Loaded,
        chain: &Chain,
        classes: &ClassTable,
        shown: &[ShownRows<'_>],
    ) -> Result<()> {
        let mut found = 0;
        for _ in 0..ROUNDS {
            self.decide();
            let used = self.used();
            let content = self.content(loaded, self.lines(chain, &used))?;
            let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "next release"));
            let expected = content.judge.shown(&loaded.policy, &budget)?;
            let expected = expected.ok_or_else(|| Error::internal("next release: no classes"))?;
            let member = Member {
                session: &loaded.session,
                input: loaded.table.clone(),
                output: None,
                expected: &expected,
                known_elsewhere: Vec::new(),
            };
            let planned = ShownRows::read(&member, &chain.matching, &[None], &run.stop).await?;
            let all: Vec<&ShownRows<'_>> = shown.iter().chain([&planned]).collect();
            let Some(people) = chain.unsafe_people(&loaded.session, &all, run).await? else {
                // A row that was left out may have held the least or the greatest value.
                if self.open_ends(&loaded.policy, classes)? {
                    continue;
                }
                return Ok(());
            };
            found = people.count();
            if !self.leave_out(&people) {
                break;
            }
        }
        chain.check_safe(&loaded.session, shown, run).await?;
        let dates = &chain.matching.dates;
        let window = match dates.is_empty() {
            true => String::new(),
            false => format!(
                "; if rows left because the days of the input moved on, as {} tells, they stand out where fewer than k of a group left: \
                 keep earlier days in the input",
                dates.join(", ")
            ),
        };
        Err(Error::unmet(format!(
            "the earlier releases cannot be followed safely: {} would stand out{window}; nothing was published",
            individuals(found)
        )))
    }

    /// Leaves out the histories and the new classes of these people; returns whether any was not left out before.
    fn leave_out(&mut self, people: &PeopleFound) -> bool {
        let before = (self.left_out.len(), self.left_out_classes.len());
        // Somebody who is found may have other rows, in parts of people of whom most are not found.
        for are_all in [true, false] {
            let known = self.known.iter().zip(&self.parts).map(|(known, part)| {
                let part = (known.row.history, (*part == Part::Shown).then_some(known.row.now));
                (part, people.contains(known.person))
            });
            let new = self.rows.iter().filter(|row| row.is_shown() && row.is_new);
            let new = new.filter_map(|row| Some((row.class?, people.contains(row.person()))));
            let (parts, classes) = (with_found(known, are_all), with_found(new, are_all));
            self.left_out.extend(parts.into_iter().map(|(history, _)| history));
            self.left_out_classes.extend(classes);
            if before != (self.left_out.len(), self.left_out_classes.len()) {
                return true;
            }
        }
        false
    }

    /// Opens the ends of new labels at the least and the greatest value that is shown; returns whether any label changed.
    fn open_ends(&mut self, policy: &Policy, classes: &ClassTable) -> Result<bool> {
        if self.shows.levels.is_some() {
            return Ok(false);
        }
        let shown = self.rows.iter().filter(|row| row.is_shown()).map(|row| row.base);
        let columns = OpenEnds::of(policy, classes, &shown.collect())?;
        let mut opened: HashMap<u32, u32> = HashMap::new();
        for class in self.used().into_iter().filter(|class| *class as usize >= self.shows.earlier) {
            let labels = &self.shows.numbered.labels[class as usize];
            let open = columns.open(labels)?;
            if open != *labels {
                opened.insert(class, self.shows.numbered.number(open));
            }
        }
        for row in self.rows.iter_mut().filter(|row| row.is_new) {
            row.class = row.class.map(|class| opened.get(&class).copied().unwrap_or(class));
        }
        Ok(!opened.is_empty())
    }

    /// Returns the classes that show a row.
    pub(super) fn used(&self) -> Vec<u32> {
        let shown = self.rows.iter().filter(|row| row.is_shown());
        shown.filter_map(|row| row.class).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// Returns which of these classes shows each row.
    pub(super) fn lines(&self, chain: &Chain, classes: &[u32]) -> RowLines {
        let number: HashMap<u32, u32> = classes.iter().copied().zip(0..).collect();
        let class =
            |row: &Row| row.class.filter(|_| row.is_shown()).and_then(|class| number.get(&class).copied());
        RowLines {
            names: chain.matching.names(),
            classes: classes
                .iter()
                .map(|class| self.shows.numbered.labels[*class as usize].clone())
                .collect(),
            are_earlier: classes.iter().map(|class| (*class as usize) < self.shows.earlier).collect(),
            rows: self.rows.iter().map(|row| (row.name, class(row))).collect(),
        }
    }
}

/// Returns the groups in which all are found, or any.
fn with_found<G: Ord>(rows: impl Iterator<Item = (G, bool)>, are_all: bool) -> BTreeSet<G> {
    let (mut found, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (group, is_found) in rows {
        if is_found { &mut found } else { &mut others }.insert(group);
    }
    found.retain(|group| !are_all || !others.contains(group));
    found
}
