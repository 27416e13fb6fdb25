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

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::take;
use hashbrown::HashMap;

use crate::class::parts::{EarlierRow, Now, Parts, parts};
use crate::class::{Budget, ClassTable, EvaluatedPartition, Held};
use crate::engine::{Context, PoolBudget, Run, column};
use crate::error::{Error, ErrorKind, Result};
use crate::generalize::{RegionLabel, text_forms};
use crate::input::Loaded;
use crate::measure::granularity::share;
use crate::method::{Recoding, ReleaseKind};
use crate::plural::{individuals, plural};
use crate::policy::Policy;
use crate::release::apply::{self, ClassKeys, ClassNumbers};
use crate::release::histories::about::About;
use crate::release::histories::chain::{Chain, Continued};
use crate::release::histories::row_numbers::number_of_row;
use crate::release::kind::classes::{KeptClasses, order_of_labels, planned_rows_by, written};
use crate::release::kind::regions::earlier::Column as LabelledColumn;
use crate::release::kind::regions::{content_by_rows, label_kept};
use crate::release::kind::{ReleasePlan, Secret};
use crate::release::search::{limit, profile_classes, search_apart};
use crate::verify::histories::{EarlierTrack, Member, PeopleFound, RowNow, ShownRows, trace_earlier};
use crate::verify::row_lines::{RowLines, RowName};

const DOING: &str = "planning the next release";

/// The column with the place of a new row.
const NEW: &str = "kanon_new_row";

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
) -> Result<(ReleasePlan, Continued)> {
    if loaded.policy.kind != ReleaseKind::Regions {
        let why = format!(
            "`{}` cannot follow other releases yet: only methods whose classes show regions can",
            loaded.policy.spec.method.name
        );
        return Err(Error::policy(why).at("--after"));
    }
    let about = About::of_input("the input", loaded, &run.stop).await?;
    chain.check(&about, loaded)?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "next release"));
    let mut shown = chain.shown(&loaded.session, run).await?;
    let known = EarlierClasses::of(&loaded.policy, &shown)?;
    let base = apply::class_of_row(&loaded.policy, bases(&classes, &budget)?);
    shown.push(ShownRows::of_input(&loaded.session, &loaded.table, &chain.matching, base, &run.stop).await?);
    let all: Vec<&ShownRows<'_>> = shown.iter().collect();
    chain.check_people(&about, &all, run).await?;
    let tracks = tracks(loaded, chain, &all, run).await?;
    shown.pop();
    let mut next = NextRelease::new(run, loaded, chain, &classes, known, tracks, &budget)?;
    next.add_new_classes(run, loaded, chain, &classes).await?;
    next.make_safe(run, loaded, chain, &shown).await?;
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
    let rows = chain.matching.row.join(", ");
    if counts.repeated > 0 {
        return Err(Error::unmet(format!(
            "{} of a person: nobody can say which is which in the next release; name the columns that tell the rows of a person apart (`row` \
             of [history])",
            plural(
                counts.repeated,
                &format!("row is equal in {rows} to another"),
                &format!("rows are equal in {rows} to others")
            )
        )));
    }
    if counts.unmatched > 0 {
        return Err(Error::unmet(format!(
            "{} a row that is gone and one that is new, which may be one row that changed; name the columns that tell the rows of a person \
             apart (`row` of [history])",
            plural(counts.unmatched, "person has", "people have")
        )));
    }
    if let Some(returning) = counts.returning.last().filter(|returning| returning.are_few()) {
        if !chain.accepts_new_people {
            return Err(Error::unmet(format!(
                "{} of {} come back; if `{}` was numbered anew, nobody can be found again; if these are other people, say so \
                 (--accept-new-people)",
                returning.both,
                individuals(returning.most()),
                chain.matching.person
            )));
        }
    }
    Ok((tracks, held))
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

/// What classes show, in the order of the released quasi-identifiers.
type Labels = Vec<Option<String>>;

/// The classes of the releases before.
struct EarlierClasses {
    labels: Vec<Labels>,
    /// Of each release the number of each class.
    of_release: Vec<Vec<u32>>,
}

impl EarlierClasses {
    fn of(policy: &Policy, shown: &[ShownRows<'_>]) -> Result<Self> {
        let (mut labels, mut numbers): (Vec<Labels>, HashMap<Labels, u32>) = (Vec::new(), HashMap::new());
        let names: Vec<&str> = policy.released_quasi().map(|at| policy.quasi[at].name.as_str()).collect();
        let mut of_release = Vec::with_capacity(shown.len());
        for release in shown {
            let (quasi, classes) = release.classes.labels();
            let place = |name: &&str| quasi.iter().position(|known| known == name);
            let places: Option<Vec<usize>> = names.iter().map(place).collect();
            let places = places.ok_or_else(|| Error::internal("next release: a class without a label"))?;
            let number = |class: &Labels| {
                let class: Labels = places.iter().map(|place| class[*place].clone()).collect();
                *numbers.entry(class.clone()).or_insert_with(|| {
                    labels.push(class);
                    (labels.len() - 1) as u32
                })
            };
            of_release.push(classes.iter().map(number).collect());
        }
        Ok(Self { labels, of_release })
    }
}

/// A row of the input.
struct Row {
    name: RowName,
    /// Its base class.
    base: usize,
    /// The class that may show it.
    class: Option<u32>,
    /// Whether no earlier release shows it.
    is_new: bool,
    is_shown: bool,
}

/// A row that an earlier release shows.
struct KnownRow {
    row: EarlierRow,
    person: [u64; 2],
    /// Its place among the rows of the input.
    place: Option<usize>,
}

/// The next release while it is planned.
struct NextRelease {
    k: u64,
    /// What each class shows; the first ones are those of earlier releases.
    labels: Vec<Labels>,
    earlier: usize,
    /// The rows that an earlier release shows, by history and person.
    known: Vec<KnownRow>,
    /// The rows of the input, in the order of their names.
    rows: Vec<Row>,
    /// The new rows by what their dates tell.
    new: Vec<Vec<usize>>,
    left_out: BTreeSet<u32>,
    left_out_classes: BTreeSet<u32>,
    parts: Parts,
    _held: [Held; 2],
}

impl NextRelease {
    fn new(
        run: &Run,
        loaded: &Loaded,
        chain: &Chain,
        classes: &ClassTable,
        known: EarlierClasses,
        (mut tracks, held): (Vec<EarlierTrack>, Held),
        budget: &Arc<dyn Budget>,
    ) -> Result<Self> {
        let mut held_rows = Held::new(budget);
        held_rows.at_least(tracks.len() * (size_of::<Row>() + size_of::<KnownRow>()))?;
        let EarlierClasses { labels, of_release } = known;
        let of_columns = LabelsOfColumns::of(&loaded.policy, classes, &labels)?;
        let columns = of_columns.columns(run, classes, budget)?;
        tracks.sort_unstable_by_key(|track| {
            (track.history, track.person, track.shown, track.now.as_ref().map(|now| now.row))
        });
        let (mut rows, mut earlier, mut new) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (mut history, mut person) = (0u32, 0u32);
        for (at, track) in tracks.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &tracks[before]);
            history += u32::from(before.is_some_and(|before| before.history != track.history));
            // A number for each person of a history would do, but not for those with rows in several.
            person += u32::from(before.is_some_and(|before| before.person != track.person));
            let class = track
                .shown
                .and_then(|(place, class)| of_release.get(place)?.get(usize::try_from(class).ok()?).copied());
            let name = |now: &RowNow| [track.person[0], track.person[1], now.row];
            let place = track.now.as_ref().map(|now| {
                let base = usize::try_from(now.class).unwrap_or(usize::MAX);
                rows.push(Row { name: name(now), base, class, is_new: class.is_none(), is_shown: false });
                rows.len() - 1
            });
            if let Some(class) = class {
                let covers = |now: &RowNow| {
                    let base = usize::try_from(now.class).unwrap_or(usize::MAX);
                    columns.iter().all(|(at, column)| {
                        column.covers(class, classes.code(classes.base(), base, *at) as usize)
                    })
                };
                let now = match &track.now {
                    Some(now) if !covers(now) => Now::Gone,
                    Some(now) if now.has_changed => Now::Changed,
                    Some(_) => Now::Same,
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
        let earlier_classes = labels.len();
        Ok(Self {
            k: chain.least(loaded),
            labels,
            earlier: earlier_classes,
            known: earlier,
            rows,
            new,
            left_out: BTreeSet::new(),
            left_out_classes: BTreeSet::new(),
            parts: Parts::default(),
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
        let mut numbers: HashMap<Labels, u32> = self.labels.iter().cloned().zip(0..).collect();
        for rows_of in std::mem::take(&mut self.new) {
            let group: HashMap<RowName, u64> =
                rows_of.iter().map(|row| (self.rows[*row].name, *row as u64)).collect();
            let is_new = number_of_row(&names, group)?;
            let table = loaded.table.clone().with_column(NEW, is_new).context(DOING)?;
            let table = table.filter(column(NEW).is_not_null()).context(DOING)?;
            let found = Loaded {
                session: loaded.session.clone(),
                table,
                policy: Arc::clone(&loaded.policy),
                population: None,
            };
            let Some(NewClasses { labels, of_base }) = new_classes(run, &found, classes).await? else {
                continue;
            };
            let number = labels.into_iter().map(|labels| {
                *numbers.entry(labels.clone()).or_insert_with(|| {
                    self.labels.push(labels);
                    (self.labels.len() - 1) as u32
                })
            });
            let number: Vec<u32> = number.collect();
            for row in rows_of {
                let class = of_base.get(&self.rows[row].base);
                self.rows[row].class = class.and_then(|class| number.get(*class).copied());
            }
        }
        Ok(())
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
            row.is_shown = row.class.is_some_and(|class| !self.left_out_classes.contains(&class));
        }
        for (known, is_shown) in self.known.iter().zip(&self.parts.shown) {
            if let Some(place) = known.place {
                self.rows[place].is_shown = *is_shown;
            }
        }
    }

    /// Leaves out histories until all releases are safe together.
    async fn make_safe(
        &mut self,
        run: &Run,
        loaded: &Loaded,
        chain: &Chain,
        shown: &[ShownRows<'_>],
    ) -> Result<()> {
        let mut found = 0;
        for _ in 0..ROUNDS {
            self.decide();
            let used = self.used();
            let content =
                content_by_rows(&loaded.policy, loaded.schema(), Arc::new(self.lines(chain, &used)))?;
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
            let Some(people) = chain.unsafe_people(&loaded.session, &all, run).await? else { return Ok(()) };
            found = people.count();
            if !self.leave_out(&people) {
                break;
            }
        }
        Err(Error::unmet(format!(
            "the earlier releases cannot be followed safely: {} would stand out; nothing was published",
            individuals(found)
        )))
    }

    /// Leaves out the histories and the new classes of these people; returns whether any was not left out before.
    fn leave_out(&mut self, people: &PeopleFound) -> bool {
        let before = (self.left_out.len(), self.left_out_classes.len());
        let known = self.known.iter().filter(|known| people.contains(known.person));
        self.left_out.extend(known.map(|known| known.row.history));
        let new = self
            .rows
            .iter()
            .filter(|row| row.is_shown && row.is_new && people.contains([row.name[0], row.name[1]]));
        self.left_out_classes.extend(new.filter_map(|row| row.class));
        before != (self.left_out.len(), self.left_out_classes.len())
    }

    /// Returns the classes that show a row.
    fn used(&self) -> Vec<u32> {
        let shown = self.rows.iter().filter(|row| row.is_shown);
        shown.filter_map(|row| row.class).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// Returns which of these classes shows each row.
    fn lines(&self, chain: &Chain, classes: &[u32]) -> RowLines {
        let number: HashMap<u32, u32> = classes.iter().copied().zip(0..).collect();
        let class =
            |row: &Row| row.class.filter(|_| row.is_shown).and_then(|class| number.get(&class).copied());
        RowLines {
            names: chain.matching.names(),
            classes: classes.iter().map(|class| self.labels[*class as usize].clone()).collect(),
            are_earlier: classes.iter().map(|class| (*class as usize) < self.earlier).collect(),
            rows: self.rows.iter().map(|row| (row.name, class(row))).collect(),
        }
    }

    /// Returns the plan of the release.
    fn planned(
        self,
        run: &Run,
        loaded: &Loaded,
        classes: &ClassTable,
        chain: &Chain,
        budget: Arc<dyn Budget>,
    ) -> Result<(ReleasePlan, Continued)> {
        let policy = &loaded.policy;
        let used = self.used();
        if used.is_empty() {
            return Err(Error::unmet(
                "the next release would be empty: no row can be shown safely; nothing was published",
            ));
        }
        self.check_limit(policy, classes)?;
        let texts = |at: usize| -> ArrayRef {
            let place = policy.released_quasi().position(|quasi| quasi == at);
            let text = |class: &u32| self.labels[*class as usize][place?].clone();
            Arc::new(used.iter().map(text).collect::<StringArray>())
        };
        let labels: Vec<ArrayRef> = (0..policy.quasi.len()).map(texts).collect();
        let written = written(policy, &labels)?;
        let in_order = policy.quasi_in_order().into_iter().flat_map(|at| written[at].clone());
        let order = order_of_labels(&in_order.collect::<Vec<_>>(), used.len())?;
        let labels = labels.iter().map(|texts| take(texts, &order, None).context(DOING));
        let labels: Vec<ArrayRef> = labels.collect::<Result<_>>()?;
        let used: Vec<u32> = order.values().iter().map(|place| used[*place as usize]).collect();

        let lines = self.lines(chain, &used);
        let mut rows = vec![0; used.len()];
        let mut numbers: HashMap<RowName, u64> = HashMap::new();
        for (name, class) in lines.rows.iter().filter_map(|(name, class)| Some((*name, (*class)?))) {
            rows[class as usize] += 1;
            numbers.insert(name, class.into());
        }
        let costs = self.costs(run, policy, classes, &budget)?;
        let new_classes = used.iter().filter(|class| **class as usize >= self.earlier);
        let new_classes = new_classes.map(|class| self.labels[*class as usize].clone()).collect();
        let mut held = Held::new(&budget);
        held.at_least(2 * lines.rows.len() * (size_of::<RowName>() + 2 * size_of::<u64>()))?;
        let class = number_of_row(&lines.names, numbers)?;
        let kept = KeptClasses { labels, keys: ClassKeys::default(), rows };
        let content = content_by_rows(policy, loaded.schema(), Arc::new(lines))?;
        let schema = Arc::clone(&content.tables[0].schema);
        let rows = vec![planned_rows_by(run, loaded, class, kept, &schema, &budget)?];
        let remarks = self.remarks();
        let plan = ReleasePlan {
            content,
            rows,
            secret: Secret::default(),
            costs,
            utility: None,
            remarks,
            warnings: Vec::new(),
            budget,
            held,
        };
        Ok((plan, Continued { new_classes }))
    }

    /// Returns the people with a row of these that is not shown.
    fn waiting(&self, is_one: impl Fn(&Row) -> bool) -> u64 {
        let rows = self.rows.iter().filter(|row| !row.is_shown && is_one(row));
        rows.map(|row| [row.name[0], row.name[1]]).collect::<BTreeSet<_>>().len() as u64
    }

    /// Refuses a release that suppresses more individuals than the policy allows.
    fn check_limit(&self, policy: &Policy, classes: &ClassTable) -> Result<()> {
        let (limit, waiting) = (limit(policy, classes), self.waiting(|_| true));
        if policy.individual().is_some() && waiting > limit {
            return Err(Error::unmet(format!(
                "{} could not be shown safely, and suppression_limit allows {limit}: {} new, {} for others who left, {} in classes that \
                 cannot be shown again; nothing was published; raise suppression_limit (--set suppression_limit=0.5 with --policy)",
                individuals(waiting),
                self.waiting(|row| row.is_new),
                self.parts.companions,
                self.parts.left_out,
            )));
        }
        Ok(())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let new = self.waiting(|row| row.is_new);
        if new > 0 {
            remarks.push(format!(
                "{} until enough others are new with them",
                plural(new, "new individual waits", "new individuals wait")
            ));
        }
        if self.parts.companions + self.parts.left_out > 0 {
            remarks.push(format!(
                "{} not shown again: {} because others left or changed, {} because their class cannot be shown in parts",
                plural(self.parts.companions + self.parts.left_out, "individual is", "individuals are"),
                self.parts.companions,
                self.parts.left_out
            ));
        }
        remarks
    }

    /// Returns the loss of each quasi-identifier, in policy order.
    fn costs(
        &self,
        run: &Run,
        policy: &Policy,
        classes: &ClassTable,
        budget: &Arc<dyn Budget>,
    ) -> Result<Vec<f64>> {
        let of_columns = LabelsOfColumns::of(policy, classes, &self.labels)?;
        let columns = of_columns.columns(run, classes, budget)?;
        let mut shown = vec![0u64; self.labels.len()];
        self.rows
            .iter()
            .filter(|row| row.is_shown)
            .filter_map(|row| row.class)
            .for_each(|class| shown[class as usize] += 1);
        let (rows, mut costs) = (classes.total_rows(), vec![0.0; policy.quasi.len()]);
        for ((_, column), at) in columns.iter().zip(policy.released_quasi()) {
            let of_class = (0u32..).zip(&shown).filter(|(_, rows)| **rows > 0);
            let covered = of_class.map(|(class, rows)| u128::from(*rows) * u128::from(column.leaves(class)));
            let hidden = u128::from(rows - shown.iter().sum::<u64>());
            let leaves = classes.columns()[at].leaves();
            costs[at] = share(covered.sum::<u128>() + hidden * u128::from(leaves), rows, leaves);
        }
        Ok(costs)
    }
}

/// What classes show in each column, as the place among its labels.
struct LabelsOfColumns {
    labels: Vec<Vec<(Option<String>, RegionLabel)>>,
    by_class: Vec<Vec<u32>>,
    /// The place of each among the columns of the class table.
    places: Vec<usize>,
}

impl LabelsOfColumns {
    fn of(policy: &Policy, classes: &ClassTable, labels: &[Labels]) -> Result<Self> {
        let places: Vec<usize> = policy.released_quasi().collect();
        let (mut all, mut by_class) = (Vec::new(), Vec::new());
        for (position, at) in places.iter().enumerate() {
            let hierarchy = classes.columns()[*at].hierarchy();
            let mut numbers: HashMap<&Option<String>, u32> = HashMap::new();
            let (mut of_column, mut of_class) = (Vec::new(), Vec::with_capacity(labels.len()));
            for class in labels {
                let text = &class[position];
                let next = of_column.len() as u32;
                let number = *numbers.entry(text).or_insert(next);
                if number == next {
                    let label = RegionLabel::parse_canonical(
                        text.as_deref(),
                        hierarchy.input_type(),
                        hierarchy.has_intervals(),
                    );
                    let label = label
                        .ok_or_else(|| Error::unmet("the private record is damaged: a label is none"))?;
                    of_column.push((text.clone(), label));
                }
                of_class.push(number);
            }
            all.push(of_column);
            by_class.push(of_class);
        }
        Ok(Self { labels: all, by_class, places })
    }

    /// Returns the columns, with their places in the class table.
    fn columns<'a>(
        &'a self,
        run: &Run,
        classes: &'a ClassTable,
        budget: &Arc<dyn Budget>,
    ) -> Result<Vec<(usize, LabelledColumn<'a>)>> {
        let columns =
            self.places.iter().zip(self.labels.iter().zip(&self.by_class)).map(|(at, (labels, by_class))| {
                let mut held = Held::new(budget);
                let column =
                    LabelledColumn::new(&classes.columns()[*at], labels, by_class, &run.stop, &mut held)?;
                Ok((*at, column))
            });
        columns.collect()
    }
}

/// The classes of some rows of an input.
struct NewClasses {
    /// What each shows.
    labels: Vec<Labels>,
    /// The class of each base class of the input, if it has one.
    of_base: HashMap<usize, usize>,
}

/// Finds classes for new rows, which are all of this table; `None` if they make none. `all` are those of the whole input.
async fn new_classes(run: &Run, loaded: &Loaded, all: &ClassTable) -> Result<Option<NewClasses>> {
    let policy = &loaded.policy;
    let found = async {
        let classes = profile_classes(run, loaded).await?;
        search_apart(run, policy, classes).await
    };
    let (classes, _, outcome) = match found.await {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::Unmet => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(best) = outcome.best.into_iter().next() else { return Ok(None) };
    let Recoding::Classes(released) = best.recoding else {
        return Err(Error::internal("next release: the method found no regions"));
    };
    let merged = classes.merge(&released)?;
    let evaluated = EvaluatedPartition::new(&classes, &released, &merged, &policy.requirements)?;
    if evaluated.kept().next().is_none() {
        return Ok(None);
    }
    let (_, kept) = label_kept(policy, &evaluated)?;
    let texts: Vec<&StringArray> = kept.labels.iter().filter_map(|labels| labels.as_string_opt()).collect();
    let text = |at: usize, class: usize| -> Option<String> {
        texts.get(at).filter(|texts| texts.is_valid(class)).map(|texts| texts.value(class).to_owned())
    };
    let labels =
        (0..kept.rows.len()).map(|class| policy.released_quasi().map(|at| text(at, class)).collect());
    let labels: Vec<Labels> = labels.collect();
    // The codes of the whole input as those of the new rows, by the labels of level 0.
    let codes = classes.columns().iter().zip(all.columns()).map(|(new, all)| {
        let (new, all) = (text_forms(new.level(0).labels())?, text_forms(all.level(0).labels())?);
        let known: HashMap<Option<&str>, u32> = new.iter().zip(0..).collect();
        Ok(all.iter().map(|text| known.get(&text).copied()).collect())
    });
    let codes: Vec<Vec<Option<u32>>> = codes.collect::<Result<_>>()?;
    let class_of: HashMap<Box<[u32]>, Option<u64>> = kept.keys.classes.into_iter().collect();
    let of_base = (0..all.base().len()).filter_map(|base| {
        let code = |(at, codes): (usize, &Vec<Option<u32>>)| codes[all.code(all.base(), base, at) as usize];
        let key: Option<Box<[u32]>> = codes.iter().enumerate().map(code).collect();
        Some((base, usize::try_from((*class_of.get(&key?)?)?).ok()?))
    });
    Ok(Some(NewClasses { labels, of_base: of_base.collect() }))
}
