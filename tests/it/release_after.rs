//! `kanon release --after`: chains of releases of the same people, attacked with all files by somebody who knows all quasi-identifiers, and
//! whose rows changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow::array::Array;
use arrow::util::display::array_value_to_string;
use datafusion_kanon::internals::answer::compare::{Verdict, compare};
use datafusion_kanon::internals::input::{Input, PolicySource};
use datafusion_kanon::internals::policy::{Folder, PolicySpec};
use datafusion_kanon::internals::release::histories::{Compared, SamePeople};
use datafusion_kanon::internals::release::{Place as ReleasePlace, release, release_after};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::json;

use crate::command::Place;
use crate::releases::{PART, read_parquet};
use crate::shared::with_run;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Visit {
    person: u32,
    visit: u32,
    age: u32,
    zip: u32,
    diagnosis: &'static str,
}

fn below(random: &mut ChaCha8Rng, n: u32) -> u32 {
    random.next_u32() % n
}

fn drawn(random: &mut ChaCha8Rng, person: u32, visit: u32) -> Visit {
    let diagnoses = ["flu", "gout", "HIV", "cold", "asthma"];
    Visit {
        person,
        visit,
        age: 20 + below(random, 60),
        zip: 1000 + below(random, 4) * 100 + below(random, 20),
        diagnosis: diagnoses[below(random, 5) as usize],
    }
}

/// The inputs of some releases: people come, go, come back, move and change.
fn lives(random: &mut ChaCha8Rng) -> Vec<Vec<Visit>> {
    let (mut all, mut next) = (Vec::new(), 0);
    let mut arrive = |all: &mut Vec<(Visit, bool)>, people: u32, random: &mut ChaCha8Rng| {
        for _ in 0..people {
            for visit in 0..1 + below(random, 5) / 4 {
                all.push((drawn(random, next, visit), true));
            }
            next += 1;
        }
    };
    arrive(&mut all, 30 + below(random, 30), random);
    let (arriving, leaving) = (below(random, 15), below(random, 3));
    let changing = [0, 1, 2, 20][below(random, 4) as usize];
    let mut inputs = Vec::new();
    for _ in 0..2 + below(random, 5) {
        inputs.push(all.iter().filter(|(_, is_there)| *is_there).map(|(visit, _)| visit.clone()).collect());
        for (visit, is_there) in &mut all {
            if below(random, 60) < leaving {
                *is_there = !*is_there;
            }
            if below(random, 60) < changing {
                let new = drawn(random, visit.person, visit.visit);
                match below(random, 4) {
                    0 => visit.diagnosis = new.diagnosis,
                    // Many change to the same, and back.
                    1 | 2 => visit.diagnosis = if visit.diagnosis == "flu" { "gout" } else { "flu" },
                    _ => *visit = new,
                }
            }
        }
        arrive(&mut all, arriving, random);
    }
    inputs
}

fn csv(visits: &[Visit]) -> String {
    let mut text = "person,visit,age,zip,diagnosis,mark\n".to_owned();
    for Visit { person, visit, age, zip, diagnosis } in visits {
        text += &format!("p{person},{visit},{age},{zip},{diagnosis},p{person}/{visit}\n");
    }
    text
}

fn policy(method: &str, l: bool) -> String {
    let l = if l { "[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"diagnosis\"\n" } else { "" };
    format!(
        "k = 3\nmethod = \"{method}\"\nsuppression_limit = 1\nothers = \"drop\"\naccept_homogeneity = [\"diagnosis\"]\n{l}[columns]\n\
         person = {{ role = \"individual\" }}\nage = {{ role = \"quasi\", hierarchy = {{ range = [10, 20] }} }}\n\
         zip = {{ role = \"quasi\", hierarchy = {{ prefix = [2, 1] }} }}\n\
         diagnosis = {{ role = \"sensitive\", allow_unique = true }}\nmark = {{ role = \"insensitive\", allow_unique = true }}\n\
         [history]\nrow = [\"visit\"]\ndates = []\nchanges = [\"diagnosis\"]\n"
    )
}

/// The class that a release shows for each row.
fn shown(out: &Path) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    let rows = read_parquet(&out.join(PART));
    let cell = |name: &str, row| {
        let column = rows.column_by_name(name).unwrap();
        if column.is_null(row) { "NULL".to_owned() } else { array_value_to_string(column, row).unwrap() }
    };
    for row in 0..rows.num_rows() {
        found.insert(cell("mark", row), ["age", "zip"].map(|name| cell(name, row)).to_vec());
    }
    found
}

/// Looks for rows among too few people, and for too few values, in all that the releases show.
fn attack(inputs: &[Vec<Visit>], files: &[BTreeMap<String, Vec<String>>], l: bool, context: &str) {
    let mark = |visit: &Visit| format!("p{}/{}", visit.person, visit.visit);
    let mut rows: BTreeMap<String, Vec<Option<&Visit>>> = BTreeMap::new();
    for (place, input) in inputs.iter().enumerate() {
        for visit in input {
            rows.entry(mark(visit)).or_insert_with(|| vec![None; inputs.len()])[place] = Some(visit);
        }
    }
    let mut histories: BTreeMap<Vec<String>, Vec<Vec<Option<&Visit>>>> = BTreeMap::new();
    for (mark, row) in rows {
        let mut seen: Vec<&str> = Vec::new();
        let states = files.iter().zip(&row).map(|(shown, visit)| {
            let Some(class) = shown.get(&mark) else { return String::new() };
            // Any two releases show whether the row changed between them.
            seen.push(visit.unwrap().diagnosis);
            format!("{class:?} {:?}", seen.iter().map(|one| seen.last() == Some(one)).collect::<Vec<_>>())
        });
        let states: Vec<String> = states.collect();
        if states.iter().any(|state| !state.is_empty()) {
            histories.entry(states).or_default().push(row);
        }
    }
    for (states, rows) in &histories {
        let people: BTreeSet<u32> =
            rows.iter().map(|row| row.iter().flatten().next().unwrap().person).collect();
        assert!(people.len() >= 3, "{states:?}: {people:?} {context}");
        for place in (0..files.len()).filter(|place| l && !states[*place].is_empty()) {
            let values: BTreeSet<&str> = rows.iter().map(|row| row[place].unwrap().diagnosis).collect();
            assert!(values.len() >= 2, "{states:?}: {values:?} {context}");
        }
    }
}

/// As many chains as `KANON_CHAINS` says, of each method whose classes show regions.
#[test]
fn chains_hold_for_who_has_all_files() {
    let chains = std::env::var("KANON_CHAINS").map_or(4, |text| text.parse().unwrap());
    let mut random = ChaCha8Rng::seed_from_u64(2026);
    let (mut followed, mut refused, mut again, mut new) = (0, 0, 0, 0);
    for method in ["auto", "mondrian", "local", "clusters"] {
        for chain in 0..chains {
            let place = Place::new();
            let (inputs, l) = (lives(&mut random), below(&mut random, 3) == 0);
            let spec = PolicySpec::parse(&policy(method, l)).unwrap();
            let source = PolicySource { spec: &spec, files: &Folder(".".into()) };
            with_run(async |run| {
                let (mut places, mut kept, mut files): (Vec<ReleasePlace>, Vec<Vec<Visit>>, Vec<_>) =
                    Default::default();
                for (number, visits) in inputs.iter().enumerate() {
                    let (name, out) = (format!("in{number}.csv"), place.path(&format!("out{number}")));
                    place.write(&name, csv(visits));
                    let input = Input::find(place.path(&name).to_str().unwrap()).unwrap();
                    let at = ReleasePlace::beside(&out).unwrap().with_key(Some(place.path("lives.key")));
                    let released = match places.is_empty() {
                        true => release(run, &input, &source, &at, false).await,
                        false => release_after(run, &input, &places, false, None, &at, false).await,
                    };
                    let context = format!("{method} {chain} {number}");
                    match released {
                        Ok(_) => {
                            let shown = shown(&out);
                            if let Some(before) = files.last() {
                                let before: &BTreeMap<String, Vec<String>> = before;
                                again += shown
                                    .iter()
                                    .filter(|(mark, class)| before.get(*mark) == Some(class))
                                    .count();
                                new += shown.keys().filter(|mark| !before.contains_key(*mark)).count();
                                followed += 1;
                            }
                            files.push(shown);
                            kept.push(visits.clone());
                            places.push(at);
                            attack(&kept, &files, l, &context);
                        }
                        Err(error) => {
                            assert_eq!(
                                error.kind(),
                                datafusion_kanon::ErrorKind::Unmet,
                                "{context}: {error}"
                            );
                            refused += 1;
                            assert!(!out.exists(), "{context}");
                        }
                    }
                }
                if places.len() > 1 {
                    let all = places.iter().map(|place| Compared { place: place.clone(), input: None });
                    let all: Vec<Compared> = all.collect();
                    let answer = compare(run, &all, &SamePeople::default(), false).await.unwrap();
                    assert_eq!(answer.verdict, Verdict::Safe, "{method} {chain}: {answer:#?}");
                }
            });
        }
    }
    println!("{followed} followed, {refused} refused, {again} rows again, {new} new");
    assert!(
        followed > 2 * chains && again > 10 * followed && new > followed,
        "{followed} {refused} {again} {new}"
    );
}

/// Two extracts of the same people, from the command line.
#[test]
fn an_extract_follows_another() {
    let place = Place::new();
    place.write("p.toml", policy("mondrian", false));
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let march: Vec<Visit> = (0..60).map(|person| drawn(&mut random, person, 0)).collect();
    let mut june: Vec<Visit> = march.iter().skip(2).cloned().collect();
    june.extend((60..72).map(|person| drawn(&mut random, person, 0)));
    place.write("march.csv", csv(&march));
    place.write("june.csv", csv(&june));
    place.run("release march.csv --policy p.toml --to march").exit(0);
    // A second release by itself.
    place.run("release june.csv --policy p.toml --to alone --key march.key").exit(0);
    assert_ne!(
        place.run("compare march alone --key march.key --format json").exit(1).json()["verdict"],
        json!("safe")
    );
    let ran = place.run("release june.csv --after march --to june").exit(0);
    assert!(!ran.out.contains("march.key to yourself: it is new"), "{ran:?}");
    assert_eq!(
        place.run("compare march june --key march.key --format json").exit(0).json()["verdict"],
        json!("safe")
    );
    place.run("verify june").exit(0);
    place.run("verify june --input june.csv --key march.key").exit(0);
    place.run("verify june --input june.csv").exit(0);
    place
        .run("verify june --input june.csv --key none.key")
        .exit(2)
        .says("none.key: the key of the pseudonyms is missing");
    // The next one follows both.
    place
        .run("release june.csv --after june --to july")
        .exit(2)
        .says("june: it follows 1 release, and 0 others are given before it");
    place.run("release june.csv --after march.private.json --after june.private.json --to july").exit(0);
    let named = place.run("explain july --format json").exit(0).json();
    assert_eq!(named["history"]["after"].as_array().unwrap().len(), 2);
    place.run("compare march june july").exit(0);
    place
        .run("release june.csv --after alone --to other --key none.key")
        .exit(2)
        .says("none.key: the key of the pseudonyms is missing");
    // People who are numbered anew.
    let renumbered: Vec<Visit> =
        june.iter().map(|visit| Visit { person: visit.person + 500, ..visit.clone() }).collect();
    place.write("new.csv", csv(&renumbered));
    place.run("release new.csv --after march --to other").exit(1).says("0 of 60 individuals come back");
    place.run("release new.csv --after march --to other --accept-new-people").exit(0);
}

/// Who has the first and the third release sees who is as before, whatever the second one shows.
#[test]
fn values_that_come_back_are_seen() {
    let place = Place::new();
    place.write("p.toml", policy("mondrian", false).replace("k = 3", "k = 2"));
    let visits = |of_first: &'static str, others: &'static str| -> Vec<Visit> {
        let visit = |person: u32| Visit {
            person,
            visit: 0,
            age: 20 + 10 * (person / 4),
            zip: 1000,
            diagnosis: if person == 0 { of_first } else { others },
        };
        (0..16).map(visit).collect()
    };
    for (name, input) in
        [("a", visits("flu", "flu")), ("b", visits("gout", "gout")), ("c", visits("flu", "cold"))]
    {
        place.write(&format!("{name}.csv"), csv(&input));
    }
    place.run("release a.csv --policy p.toml --to a").exit(0);
    place.run("release b.csv --after a --to b").exit(0);
    let released = place.run("release c.csv --after a --after b --to c --format json").exit(0).json();
    assert_eq!(released["public"]["tables"][0]["rows"], json!(14), "the one who is as before, and another");
    place.run("compare a b c").exit(0);
    place
        .run("compare a b c --input a.csv --input b.csv --input c.csv --row visit --changes diagnosis")
        .exit(0);
    place.run("release c.csv --policy p.toml --to alone --key a.key").exit(0);
    let ran = place
        .run("compare a b alone --input a.csv --input b.csv --input c.csv --row visit --changes diagnosis");
    assert!(ran.exit(1).out.contains("1 individual has a row"));
    // A release that is followed stays.
    place
        .run("release c.csv --after a --after b --to b --overwrite")
        .exit(2)
        .says("is one of those that are followed");
    place
        .run("release c.csv --after b --after a --to d")
        .exit(2)
        .says("b: it follows 1 release, and 0 others are given before it");
    place.run("release a.csv --policy p.toml --to a --key b.key --overwrite").exit(0);
    let ran = place.run("compare a b --input a.csv --input b.csv --row visit").exit(1);
    assert!(ran.out.contains("b follows a release that is not among these"), "{ran:?}");
}

/// Private records that are kept elsewhere.
#[test]
fn records_kept_elsewhere_are_followed() {
    let place = Place::new();
    place.write("p.toml", policy("mondrian", false));
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let march: Vec<Visit> = (0..30).map(|person| drawn(&mut random, person, 0)).collect();
    place.write("march.csv", csv(&march));
    place.run("release march.csv --policy p.toml --to march --private kept/march.json").exit(0);
    place
        .run("release march.csv --after march --to june")
        .exit(2)
        .says("--after march: the private record march.private.json is missing");
    place.run("release march.csv --after march --after-private kept/march.json --to june --private kept/june.json").exit(0);
    place.run("compare march june --private kept/march.json --private kept/june.json").exit(0);
}
