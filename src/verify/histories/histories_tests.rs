//! Random lives of a few people, judged as the rule says, one history at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};
use arrow::record_batch::RecordBatch;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::judge::{FailedModel, Histories, Pattern};
use super::trace::ReturningPeople;
use super::*;
use crate::engine::{Resources, Rules};
use crate::generalize::{AsIs, Generalizer};
use crate::model::k_anonymity::KAnonymity;
use crate::model::l_diversity::LDiversity;
use crate::model::{Requirement, SensitiveColumn};

/// A row: its person, its visit, its class, its sensitive value and its day.
type Row = [Option<&'static str>; 5];

const NAMES: [&str; 5] = ["person", "visit", "zip", "disease", "day"];

/// The rows of an input, and the classes that its release shows.
#[derive(Clone, Debug, Default)]
struct Release {
    rows: Vec<Row>,
    shown: BTreeSet<Option<&'static str>>,
    requires_l: bool,
}

impl Release {
    /// Whether a day is outside of those of the input.
    fn excludes(&self, day: Option<&str>) -> bool {
        let days = || self.rows.iter().filter(|row| row[0].is_some()).filter_map(|row| row[4]);
        day.is_some_and(|day| {
            days().count() > 0 && (days().all(|other| other < day) || days().all(|other| other > day))
        })
    }
}

fn any<T: Copy>(random: &mut ChaCha8Rng, from: &[T]) -> T {
    from[(random.next_u32() as usize) % from.len()]
}

fn one_in(random: &mut ChaCha8Rng, n: u32) -> bool {
    random.next_u32().is_multiple_of(n)
}

const PEOPLE: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];
const VISITS: [&str; 3] = ["v0", "v1", "v2"];
const ZIPS: [Option<&str>; 3] = [Some("a"), Some("b"), None];
const DAYS: [Option<&str>; 4] = [Some("2026-01-01"), Some("2026-01-02"), Some("2026-01-03"), None];
const DISEASES: [Option<&str>; 4] = [Some("flu"), Some("gout"), Some("HIV"), None];

/// Draws the lives of at most eight people in two or three releases.
fn lives(random: &mut ChaCha8Rng) -> Vec<Release> {
    let people = 1 + (random.next_u32() as usize) % PEOPLE.len();
    let is_calm = one_in(random, 2);
    let mut rows: Vec<Row> = Vec::new();
    for person in &PEOPLE[..people] {
        for visit in &VISITS[..1 + (random.next_u32() as usize) % 2] {
            let (zip, disease, day) = (any(random, &ZIPS), any(random, &DISEASES), any(random, &DAYS));
            rows.push([Some(person), Some(visit), zip, disease, day]);
        }
    }
    let repeats = one_in(random, 3);
    let requires_l = one_in(random, 3);
    let mut releases = Vec::new();
    let has_days = one_in(random, 2);
    for place in 0..2 + (random.next_u32() as usize) % 2 {
        let mut release = Release { requires_l, ..Release::default() };
        for row in &rows {
            let mut row = *row;
            if one_in(random, 6) && !is_calm {
                row[2] = any(random, &ZIPS);
            }
            if one_in(random, 8) {
                row[3] = any(random, &DISEASES);
            }
            if one_in(random, 20) {
                row[0] = None;
            }
            // Later releases have later rows, or rows of each day.
            let is_late =
                has_days && row[4].is_some_and(|day| day[9..].parse::<usize>().unwrap() > place + 1);
            if (is_calm || !one_in(random, 5)) && !is_late {
                release.rows.push(row);
                if repeats && one_in(random, 3) {
                    release.rows.push(row);
                }
            }
        }
        release.shown = ZIPS.into_iter().filter(|_| !one_in(random, 4)).collect();
        releases.push(release);
    }
    releases
}

/// What the rule says of a history.
#[derive(Default)]
struct Judged {
    people: BTreeSet<&'static str>,
    rows: Vec<Vec<Option<Row>>>,
}

/// Whether two rows of one person may be one that changed: no release has both.
fn may_be_one(one: &[Option<Row>], other: &[Option<Row>]) -> bool {
    one.iter().zip(other).all(|(one, other)| one.is_none() || other.is_none())
}

/// Joins rows that were matched by their values, of people who never have more than one; returns the people with rows that may be one.
fn joined(releases: &[Release], rows: Vec<Vec<Option<Row>>>) -> (Vec<Vec<Option<Row>>>, u64) {
    let mut by_person: BTreeMap<&str, Vec<Vec<Option<Row>>>> = BTreeMap::new();
    for row in rows {
        by_person.entry(row.iter().flatten().next().unwrap()[0].unwrap()).or_default().push(row);
    }
    let (mut all, mut unmatched) = (Vec::new(), 0);
    for mut of_person in by_person.into_values() {
        let count = |place: usize| of_person.iter().filter(|row| row[place].is_some()).count();
        let pairs = of_person
            .iter()
            .enumerate()
            .flat_map(|(at, one)| of_person[..at].iter().map(move |other| (one, other)));
        if (0..releases.len()).any(|place| count(place) > 1) {
            unmatched += u64::from(pairs.into_iter().any(|(one, other)| may_be_one(one, other)));
            all.extend(of_person);
            continue;
        }
        of_person.sort_by_key(|row| row.iter().position(Option::is_some));
        let mut found: Vec<Vec<Option<Row>>> = Vec::new();
        for row in of_person {
            match found.iter_mut().find(|one| may_be_one(one, &row)) {
                Some(one) => one.iter_mut().zip(row).for_each(|(one, copy)| *one = one.or(copy)),
                None => found.push(row),
            }
        }
        all.extend(found);
    }
    (all, unmatched)
}

/// Returns the people with rows in this input and before it, but none in both.
fn with_other_rows(rows: &[Vec<Option<Row>>], place: usize) -> u64 {
    let person = |row: &Vec<Option<Row>>| row.iter().flatten().next().unwrap()[0];
    let people: BTreeSet<Option<&str>> = rows.iter().map(person).collect();
    let has_others = |who: &&Option<&str>| {
        let was = |row: &[Option<Row>]| row[..place].iter().any(Option::is_some);
        let is = |row: &[Option<Row>]| row[place].is_some();
        let of_person: Vec<_> = rows.iter().filter(|row| person(row) == **who).collect();
        of_person.iter().any(|row| was(row))
            && of_person.iter().any(|row| is(row))
            && !of_person.iter().any(|row| was(row) && is(row))
    };
    people.iter().filter(has_others).count() as u64
}

/// Judges the lives in the obvious way, and returns whether the rows of a person can be told apart.
fn brute_force(
    releases: &[Release],
    by_visit: bool,
    tells: bool,
    changes: bool,
    known: bool,
) -> (Histories, bool) {
    let mut found = Histories::default();
    let mut copies: BTreeMap<Vec<Option<&str>>, Vec<Vec<Row>>> = BTreeMap::new();
    for (place, release) in releases.iter().enumerate() {
        for row in release.rows.iter().filter(|row| row[0].is_some()) {
            let key = if by_visit { vec![row[0], row[1]] } else { vec![row[0], row[2], row[3]] };
            copies.entry(key).or_insert_with(|| vec![Vec::new(); releases.len()])[place].push(*row);
        }
    }
    let mut rows: Vec<Vec<Option<Row>>> = Vec::new();
    for of_row in copies.values() {
        for (release, same) in releases.iter().zip(of_row) {
            found.counts.repeated += (same.len() as u64).saturating_sub(1);
            let state = |row: &Row| release.shown.contains(&row[2]).then_some(row[2]);
            found.counts.ambiguous += same.iter().filter(|row| state(row) != state(&same[0])).count() as u64;
        }
        for number in 0..of_row.iter().map(Vec::len).max().unwrap() {
            rows.push(of_row.iter().map(|same| same.get(number).copied()).collect());
        }
    }
    if !by_visit {
        (rows, found.counts.unmatched) = joined(releases, rows);
    }
    let with_other_rows: Vec<u64> = (1..releases.len()).map(|place| with_other_rows(&rows, place)).collect();
    let mut histories: BTreeMap<Vec<String>, Judged> = BTreeMap::new();
    let mut everybody = BTreeSet::new();
    for row in rows {
        let copies = || releases.iter().zip(&row);
        let is_shown = |release: &Release, copy: &Row| release.shown.contains(&copy[2]);
        let shown = copies().filter_map(|(release, copy)| copy.filter(|copy| is_shown(release, copy)));
        let days: Vec<Option<&str>> = shown.map(|copy| copy[4]).collect();
        let mut seen: Vec<Option<&str>> = Vec::new();
        let states = copies().map(|(release, copy)| match copy {
            Some(copy) if is_shown(release, copy) => {
                seen.push(copy[3]);
                let first = seen.iter().position(|value| *value == copy[3]).unwrap();
                let distinct = seen[..first].iter().collect::<BTreeSet<_>>().len();
                format!("class {:?} {}", copy[2], if known { distinct } else { 0 })
            }
            None if tells && days.iter().any(|day| release.excludes(*day)) => "not there".to_owned(),
            _ => String::new(),
        });
        let states: Vec<String> = states.collect();
        if !states.iter().any(|state| state.starts_with("class")) {
            continue;
        }
        let judged = histories.entry(states).or_default();
        let person = row.iter().flatten().next().unwrap()[0].unwrap();
        judged.people.insert(person);
        everybody.insert(person);
        judged.rows.push(row);
    }
    let mut people_found: BTreeSet<&str> = BTreeSet::new();
    for (states, judged) in &histories {
        let shows = |place: usize| states[place].starts_with("class");
        let pattern =
            (0..releases.len()).filter(|place| shows(*place)).map(|place| 1u64 << place).sum::<u64>();
        let mut failed = Vec::new();
        let least = if releases[0].requires_l { 3 } else { 2 };
        // The people with each value in a release that shows the history.
        let values = |place: usize| {
            let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            for row in judged.rows.iter().map(|rows| rows[place].unwrap()) {
                if let Some(disease) = row[3] {
                    values.entry(disease).or_default().insert(row[0].unwrap());
                }
            }
            values
        };
        // l-diversity of people: no value is that of too many of them.
        let is_diverse = |counts: &[usize]| {
            let others = judged.people.len() + 1 - counts.iter().max().unwrap_or(&0);
            counts.len().min(others) >= 3 && judged.people.len() >= 3
        };
        let shown: Vec<usize> = (0..releases.len()).filter(|place| shows(*place)).collect();
        for release in shown.iter().copied().filter(|_| releases[0].requires_l) {
            let counts: Vec<usize> = values(release).values().map(BTreeSet::len).collect();
            if !is_diverse(&counts) {
                failed.push(FailedModel { release, model: 1, on_lasting: false });
            }
        }
        if releases[0].requires_l && !changes && shown.len() > 1 {
            let count = |at: usize, value: &str| values(at).get(value).map_or(0, BTreeSet::len);
            let least = |value: &str| shown.iter().map(|at| count(*at, value)).min().unwrap();
            let counts = values(shown[0]).into_keys().map(least).filter(|count| *count > 0);
            if !is_diverse(&counts.collect::<Vec<_>>()) {
                failed.extend(shown.iter().map(|at| FailedModel {
                    release: *at,
                    model: 1,
                    on_lasting: true,
                }));
            }
        }
        for release in (0..releases.len()).filter(|place| shows(*place) && judged.people.len() < 2) {
            failed.push(FailedModel { release, model: 0, on_lasting: false });
        }
        let (people, too_few) = (judged.people.len() as u64, judged.people.len() < least);
        let entry =
            found.patterns.entry(pattern).or_insert(Pattern { fewest: u64::MAX, ..Pattern::default() });
        entry.histories += 1;
        entry.rows += judged.rows.len() as u64;
        entry.fewest = entry.fewest.min(people);
        entry.too_few += u64::from(too_few);
        if too_few || !failed.is_empty() {
            entry.failed += 1;
            entry.rows_failed += judged.rows.len() as u64;
            people_found.extend(judged.people.iter());
        }
        failed.into_iter().for_each(|model| *found.models.entry(model).or_default() += 1);
    }
    let people = |release: &Release| release.rows.iter().filter_map(|row| row[0]).collect::<BTreeSet<_>>();
    for place in 1..releases.len() {
        let here = people(&releases[place]);
        let before: BTreeSet<&str> = releases[..place].iter().flat_map(people).collect();
        let both = here.intersection(&before).count() as u64;
        found.counts.returning.push(ReturningPeople {
            before: before.len() as u64,
            here: here.len() as u64,
            both,
            with_other_rows: with_other_rows[place - 1],
        });
    }
    found.counts.people = everybody.len() as u64;
    found.people_found = people_found.len() as u64;
    let is_clear = found.counts.ambiguous == 0;
    (found, is_clear)
}

async fn judged(releases: &[Release], by_visit: bool, tells: bool, changes: bool, known: bool) -> Histories {
    let session = Resources { threads: 2, memory: 1 << 28, spill: None }.session(Rules::new()).unwrap();
    let table = |rows: &[Row], names: &[&'static str]| {
        let columns = names.iter().map(|name| {
            let at = NAMES.iter().position(|known| known == name).unwrap();
            let values: StringViewArray = rows.iter().map(|row| row[at]).collect();
            (*name, Arc::new(values) as ArrayRef, true)
        });
        session.read_batch(RecordBatch::try_from_iter_with_nullable(columns).unwrap()).unwrap()
    };
    let mut requirements = vec![Requirement::of_sizes(KAnonymity::new(2).unwrap())];
    if releases[0].requires_l {
        let column = Some(SensitiveColumn::from("disease"));
        requirements.push(Requirement::new(Box::new(LDiversity::new(3).unwrap()), column));
    }
    let as_is: Arc<dyn Generalizer> = Arc::new(AsIs { text: true });
    let expected = Expected {
        columns: vec![("zip".into(), Some(as_is)), ("disease".into(), None)],
        assignment: None,
        requirements: &requirements,
        sensitive: vec!["disease".into()],
        preferences: Vec::new(),
        population: None,
        individual: Some("person".into()),
        suppression_limit: None,
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let row = if by_visit { names(&["visit"]) } else { names(&["zip", "disease"]) };
    let stop = CancelToken::default();
    let dates = if tells { names(&["day"]) } else { vec![] };
    let changes = if changes { names(&["disease"]) } else { vec![] };
    let key = PseudonymKey::random().unwrap();
    let matching = Matching {
        person: "person".into(),
        row,
        row_is_named: by_visit,
        changes,
        compared: vec![names(&["disease"])],
        changes_are_unknown: !known,
        dates,
        key,
    };
    let mut shown = Vec::new();
    for release in releases {
        let rows: Vec<Row> =
            release.rows.iter().filter(|row| release.shown.contains(&row[2])).copied().collect();
        let member = Member {
            session: &session,
            input: table(&release.rows, &NAMES),
            output: Some(table(&rows, &["zip", "disease"])),
            expected: &expected,
            known_elsewhere: Vec::new(),
        };
        shown.push(ShownRows::read(&member, &matching, &[None], &stop).await.unwrap());
        let without = release.rows.iter().filter(|row| row[0].is_none()).count() as u64;
        assert_eq!(shown.last().unwrap().without_person.rows, without);
    }
    let mut people_found = PeopleFound::default();
    let shown: Vec<&ShownRows<'_>> = shown.iter().collect();
    let found = judge(&session, &shown, &matching, 0, &mut people_found, &stop).await.unwrap();
    assert_eq!(people_found.count(), found.people_found);
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_are_those_of_the_rule() {
    let mut random = ChaCha8Rng::seed_from_u64(51);
    let (mut safe, mut unsafe_ones) = (0, 0);
    for number in 0..300 {
        let releases = lives(&mut random);
        let [by_visit, tells, changes, known] = [2, 2, 2, 2].map(|n| one_in(&mut random, n));
        let found = judged(&releases, by_visit, tells, changes, known).await;
        let (expected, is_clear) = brute_force(&releases, by_visit, tells, changes, known);
        if is_clear {
            assert_eq!(found, expected, "{number}: {releases:#?} {by_visit} {tells} {changes} {known}");
            *if found.are_safe() { &mut safe } else { &mut unsafe_ones } += 1;
        } else {
            assert_eq!(
                (found.counts.repeated, found.counts.ambiguous),
                (expected.counts.repeated, expected.counts.ambiguous),
                "{number}"
            );
        }
    }
    assert!(safe > 10 && unsafe_ones > 100, "{safe} safe, {unsafe_ones} not");
}

/// The values of two classes, each with three of them, tell those of C and E by subtraction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_classes_do_not_share_is_judged() {
    let row = |person, disease| -> Row { [Some(person), Some("v0"), Some("a"), Some(disease), None] };
    let release = |rows: &[(&'static str, &'static str)]| Release {
        rows: rows.iter().map(|(person, disease)| row(*person, *disease)).collect(),
        shown: ZIPS.into_iter().collect(),
        requires_l: true,
    };
    let releases = [
        release(&[("A", "flu"), ("B", "gout"), ("C", "HIV"), ("E", "HIV")]),
        release(&[("A", "flu"), ("B", "gout"), ("D", "asthma"), ("F", "asthma")]),
    ];
    let found = judged(&releases, true, false, false, true).await;
    assert_eq!((found.counts.people, found.people_found), (6, 6));
    assert_eq!(found.patterns[&1].fewest, 2);
    assert!(found.models.contains_key(&FailedModel { release: 0, model: 1, on_lasting: false }));
}
