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
use datafusion_kanon::internals::release::{Followed, Place as ReleasePlace, release, release_after};
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

/// A model of values besides k.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Also {
    Nothing,
    Values,
    Distribution,
}

fn policy(method: &str, also: Also) -> String {
    let model = match also {
        Also::Nothing => "",
        Also::Values => "[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"diagnosis\"\n",
        Also::Distribution => "[[require]]\nmodel = \"t_closeness\"\nt = 0.6\nsensitive = \"diagnosis\"\n",
    };
    format!(
        "k = 3\nmethod = \"{method}\"\nsuppression_limit = 1\nothers = \"drop\"\naccept_homogeneity = [\"diagnosis\"]\n{model}[columns]\n\
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

/// As many random chains as `KANON_CHAINS` says, each prefix attacked with all files.
fn chains_of(method: &str, seed: u64) {
    let chains = std::env::var("KANON_CHAINS").map_or(4, |text| text.parse().unwrap());
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut followed, mut refused, mut again, mut new) = (0, 0, 0, 0);
    for chain in 0..chains {
        let place = Place::new();
        let inputs = lives(&mut random);
        let also = [Also::Nothing, Also::Values, Also::Distribution][below(&mut random, 3) as usize];
        let spec = PolicySpec::parse(&policy(method, also)).unwrap();
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
                    false => {
                        let followed = Followed { releases: places.clone(), ..Followed::default() };
                        release_after(run, &input, &followed, None, &at, false).await
                    }
                };
                let context = format!("{method} {chain} {number} {also:?}");
                match released {
                    Ok(_) => {
                        let shown = shown(&out);
                        if let Some(before) = files.last() {
                            let before: &BTreeMap<String, Vec<String>> = before;
                            again +=
                                shown.iter().filter(|(mark, class)| before.get(*mark) == Some(class)).count();
                            new += shown.keys().filter(|mark| !before.contains_key(*mark)).count();
                            followed += 1;
                        }
                        files.push(shown);
                        kept.push(visits.clone());
                        places.push(at);
                        attack(&kept, &files, also == Also::Values, &context);
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), datafusion_kanon::ErrorKind::Unmet, "{context}: {error}");
                        assert!(!error.to_string().contains("verification refused"), "{context}: {error}");
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
    println!("{method}: {followed} followed, {refused} refused, {again} rows again, {new} new");
    assert!(
        2 * followed > 3 * chains && again > 5 * followed && new > followed / 2,
        "{followed} {refused} {again} {new}"
    );
}

#[test]
fn chains_of_levels_hold_for_who_has_all_files() {
    chains_of("auto", 2026);
}

#[test]
fn chains_of_regions_hold_for_who_has_all_files() {
    chains_of("mondrian", 2027);
}

#[test]
fn chains_of_local_levels_hold_for_who_has_all_files() {
    chains_of("local", 2028);
}

#[test]
fn chains_of_clusters_hold_for_who_has_all_files() {
    chains_of("clusters", 2029);
}

/// Two extracts of the same people, from the command line.
#[test]
fn an_extract_follows_another() {
    let place = Place::new();
    place.write("p.toml", policy("mondrian", Also::Nothing));
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
        .says("june: it follows 1 release that is not before it, or not as it was when it was made");
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
    place.write("p.toml", policy("mondrian", Also::Nothing).replace("k = 3", "k = 2"));
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
    // Another version of the same release is a further release.
    place
        .run("release c.csv --after a --after b --to c --overwrite")
        .exit(2)
        .says("--to c: holds a release of these people");
    place
        .run("release c.csv --after b --after a --to d")
        .exit(2)
        .says("b: it follows 1 release that is not before it, or not as it was when it was made");
    place.run("release a.csv --policy p.toml --to a --key b.key --overwrite").exit(0);
    let ran = place.run("compare a b --input a.csv --input b.csv --row visit").exit(1);
    assert!(ran.out.contains("b follows a release that is not among these"), "{ran:?}");
}

/// Private records that are kept elsewhere.
#[test]
fn records_kept_elsewhere_are_followed() {
    let place = Place::new();
    place.write("p.toml", policy("mondrian", Also::Nothing));
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

fn place_text(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap()
}

fn of_people(random: &mut ChaCha8Rng, people: std::ops::Range<u32>, visit: u32) -> Vec<Visit> {
    people.map(|person| drawn(random, person, visit)).collect()
}

/// Visits that are numbered anew are found nowhere, so that each release would be one by itself.
#[test]
fn rows_that_are_numbered_anew_are_not_followed() {
    let place = Place::new();
    place.write("p.toml", policy("mondrian", Also::Nothing));
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let march = of_people(&mut random, 0..60, 1);
    let june: Vec<Visit> =
        march.iter().map(|visit| Visit { visit: visit.visit + 7, ..visit.clone() }).collect();
    place.write("march.csv", csv(&march));
    place.write("june.csv", csv(&june));
    let typed = |name: &str, visit: &str| {
        let line = |Visit { person, age, zip, diagnosis, .. }: &Visit| {
            format!(
                "{{\"person\":\"p{person}\",\"visit\":{visit},\"age\":{age},\"zip\":{zip},\"diagnosis\":\"{diagnosis}\",\"mark\":\"{person}\"}}\n"
            )
        };
        place.write(name, march.iter().map(line).collect::<String>());
    };
    typed("numbers.jsonl", "1");
    typed("texts.jsonl", "\"01\"");
    place.run("release march.csv --policy p.toml --to march").exit(0);
    place
        .run("release june.csv --after march --to june")
        .exit(1)
        .says("60 of 60 individuals who come back in the input of this release have no row that they had before; if visit was numbered anew");
    place.run("release numbers.jsonl --policy p.toml --to numbers").exit(0);
    place
        .run("release texts.jsonl --after numbers --to june")
        .exit(2)
        .says("column `visit` is Utf8View here, and Int64 in the input of numbers");
    place.run("release june.csv --policy p.toml --to alone --key march.key").exit(0);
    for inputs in ["--key march.key", "--input march.csv --input june.csv --row visit"] {
        let answer = place.run(&format!("compare march alone {inputs} --format json")).exit(1).json();
        assert_eq!(answer["verdict"], json!("cannot_tell"), "{inputs}");
        assert_eq!(answer["by_people"]["returning"][0]["with_other_rows"], json!(60), "{inputs}");
    }
    // Visits of another quarter.
    place.run("release june.csv --after march --to june --accept-new-people").exit(0);
}

/// A window of dates that are generalized moves on: no file tells whose rows left because of their dates.
#[test]
fn a_window_of_generalized_dates_is_followed() {
    let place = Place::new();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let stays: Vec<(Visit, u32)> =
        (0..300).map(|person| (drawn(&mut random, person, 0), below(&mut random, 4))).collect();
    let with_day = |months: std::ops::Range<u32>| -> String {
        let within = stays.iter().filter(|(_, month)| months.contains(month));
        let (stays, months): (Vec<Visit>, Vec<u32>) = within.cloned().unzip();
        let text = csv(&stays);
        let mut lines = text.lines();
        let mut dated = format!("{},admitted\n", lines.next().unwrap());
        for (line, month) in lines.zip(months) {
            dated += &format!("{line},2026-0{}-1{}\n", month + 1, line.len() % 10);
        }
        dated
    };
    place.write("first.csv", with_day(0..3));
    place.write("second.csv", with_day(1..4));
    let with_date = |role: &str| {
        let text = policy("mondrian", Also::Nothing).replace("dates = []\n", "");
        text.replace("[history]", &format!("admitted = {{ {role} }}\n[history]"))
    };
    place.write("quasi.toml", with_date("role = \"quasi\""));
    place.write("as_is.toml", with_date("role = \"insensitive\", allow_unique = true"));
    place.run("release first.csv --policy quasi.toml --to first").exit(0);
    place.run("release second.csv --after first --to second").exit(0);
    place.run("compare first second").exit(0);
    place
        .run("compare first second --input first.csv --input second.csv --row visit --changes diagnosis")
        .exit(0);
    let files = ["first", "second"].map(|name| shown(&place.path(name)));
    let mut histories: BTreeMap<[Option<&Vec<String>>; 2], BTreeSet<&str>> = BTreeMap::new();
    for mark in files.iter().flat_map(BTreeMap::keys) {
        let history = [0, 1].map(|release| files[release].get(mark));
        histories.entry(history).or_default().insert(mark);
    }
    assert!(histories.len() > 20 && histories.values().all(|people| people.len() >= 3), "{histories:?}");
    // Where the file shows each day, it shows who left.
    place.run("release first.csv --policy as_is.toml --to shown").exit(0);
    place
        .run("release second.csv --after shown --to other")
        .exit(1)
        .says("because the days of the input moved on, as admitted tells");
}

/// What an outsider sees of a chain, and what its publisher sees: links, copies, swaps and records that were edited.
#[test]
fn a_chain_is_verified() {
    let place = Place::new();
    place.write("p.toml", policy("mondrian", Also::Nothing));
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut people = of_people(&mut random, 0..60, 0);
    for name in ["a", "b", "c"] {
        place.write(&format!("{name}.csv"), csv(&people));
        let next = people.len() as u32;
        people.extend(of_people(&mut random, next..next + 12, 0));
    }
    place.run("release a.csv --policy p.toml --to a").exit(0);
    place.run("release b.csv --after a --to b").exit(0);
    place.run("release c.csv --after a --after b --to c").exit(0);
    let answer = place.run("verify --chain a b c --format json").exit(0).json();
    assert_eq!(answer["people"], json!(84));
    assert!(answer["fewest_people"].as_u64().unwrap() >= 3);
    assert_eq!(answer["not_counted"], json!(null));
    let follows: Vec<_> =
        answer["releases"].as_array().unwrap().iter().map(|one| one["follows"].clone()).collect();
    assert_eq!(follows, [0, 1, 2]);
    let with_inputs = place.run("verify --chain a b c --input a.csv --input b.csv --input c.csv").exit(0);
    assert!(with_inputs.out.contains("against its input"), "{with_inputs:?}");
    place.run("verify --chain a b c --input a.csv").exit(2).says("expected one for each of the 3 releases");
    place.run("verify a b c").exit(2).says("several releases: add --chain");
    place.run("verify --chain a").exit(2).says("expected at least 2 releases");
    // Swapped, dropped, doubled, and one that does not follow.
    place.run("verify --chain b a c").exit(2).says("b: it follows 1 release that is not before it");
    place.run("verify --chain a c").exit(2).says("c: it follows 1 release that is not before it");
    place.run("verify --chain a a").exit(2).says("a: it does not follow a, which is given before it");
    place.run("release c.csv --policy p.toml --to other --key a.key").exit(0);
    place.run("verify --chain a other").exit(2).says("other: it does not follow a");
    // One in the place of another.
    std::fs::rename(place.path("other"), place.path("x")).unwrap();
    std::fs::rename(place.path("a"), place.path("kept")).unwrap();
    std::fs::rename(place.path("x"), place.path("a")).unwrap();
    let same = std::fs::read(place.path("a/_kanon.json")).unwrap()
        == std::fs::read(place.path("kept/_kanon.json")).unwrap();
    assert!(!same);
    place
        .run("verify --chain a b c")
        .exit(2)
        .says("b: it follows 1 release that is not before it, or not as it was");
    std::fs::rename(place.path("a"), place.path("other")).unwrap();
    std::fs::rename(place.path("kept"), place.path("a")).unwrap();
    place.run("verify --chain a b c").exit(0);
    // A policy that asks for less, in the private record.
    let record = std::fs::read_to_string(place.path("c.private.json")).unwrap();
    place.write("c.private.json", record.replace("k = 3", "k = 2"));
    place.write("d.csv", csv(&people));
    let edited = "what the private record holds of the rows of the release, or its policy, is not what the public record names";
    place.run("release d.csv --after a --after b --after c --to d").exit(1).says(edited);
    place.run("verify --chain a b c").exit(1).says(edited);
    let mut hierarchies: serde_json::Value = serde_json::from_str(&record).unwrap();
    hierarchies["hierarchies"]["zip.csv"] = json!("1000,10");
    place.write("c.private.json", hierarchies.to_string());
    place.run("release d.csv --after a --after b --after c --to d").exit(1).says(edited);
    place.write("c.private.json", place_text(&place, "b.private.json"));
    place
        .run("release d.csv --after a --after b --after c --to d")
        .exit(2)
        .says("the private record c.private.json is missing, or of another release");
    place
        .run("verify --chain a b c")
        .exit(2)
        .says("the private record c.private.json is missing, or of another release");
    // A public record that was made to follow one release less.
    let kept = place_text(&place, "c/_kanon.json");
    let mut public: serde_json::Value = serde_json::from_str(&kept).unwrap();
    public["history"]["after"].as_array_mut().unwrap().pop();
    place.write("c/_kanon.json", public.to_string());
    place.run("verify --chain a c").exit(1);
    place.write("c/_kanon.json", kept);
    place.write("c.private.json", record);
    place.run("release d.csv --after a --after b --after c --to d").exit(0);
    place
        .run("verify --chain a b c --key none.key")
        .exit(2)
        .says("none.key: the key of the pseudonyms is missing");
    // Somebody without the key, and without the private records.
    std::fs::rename(place.path("a.key"), place.path("key")).unwrap();
    place.run("verify --chain a b c").exit(2).says("the key of the pseudonyms is missing");
    for name in ["a", "b", "c"] {
        std::fs::remove_file(place.path(&format!("{name}.private.json"))).unwrap();
    }
    let outside = place.run("verify --chain a b c --format json").exit(0).json();
    assert_eq!(outside["people"], json!(null));
    assert!(outside["not_counted"].as_str().unwrap().contains("a private record is missing"), "{outside}");
    place.run("compare a b --format json").exit(1);
    // A changed file.
    let part = place.path("b").join(PART);
    let mut bytes = std::fs::read(&part).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    place.run("verify --chain a b c").exit(1).says("b");
}

/// Who is not shown, and why; the limit may be another one than at first.
#[test]
fn who_is_not_shown_is_counted_once() {
    let place = Place::new();
    let with_limit = |share: &str| {
        policy("mondrian", Also::Nothing)
            .replace("suppression_limit = 1", &format!("suppression_limit = {share}"))
    };
    place.write("p.toml", with_limit("0.01"));
    // Two rows of each person, in two classes of four people.
    let visits = |people: std::ops::Range<u32>| -> Vec<Visit> {
        let of = |person: u32| {
            [0, 1].map(|visit| Visit { person, visit, age: 20 + 40 * visit, zip: 1000, diagnosis: "flu" })
        };
        people.flat_map(of).collect()
    };
    place.write("a.csv", csv(&visits(0..4)));
    place.write("b.csv", csv(&visits(1..4)));
    place.run("release a.csv --policy p.toml --to a").exit(0);
    place.run("release b.csv --after a --to b").exit(1).says("the next release would be empty");
    place.run("release b.csv --after a --to b --suppression-limit 2").exit(2).says("--suppression-limit");
    let mut more = visits(1..4);
    more.extend(visits(10..13));
    place.write("c.csv", csv(&more));
    place
        .run("release c.csv --after a --to c")
        .exit(1)
        .says("3 individuals could not be shown safely, and suppression_limit allows 0: 3 with their whole class, of which too few are left; ");
    let released = "release c.csv --after a --to c --suppression-limit 0.6 --format json";
    let answer = place.run(released).exit(0).json();
    assert_eq!(answer["not_shown"], json!({ "new": 0, "moved": 0, "companions": 0, "left_out": 3 }));
    place.run("verify c --input c.csv").exit(0);
}

/// The people of each history of two releases, by the marks of rows.
fn people_of_histories(place: &Place, names: [&str; 2]) -> Vec<BTreeSet<String>> {
    let files = names.map(|name| shown(&place.path(name)));
    let mut histories: BTreeMap<[Option<Vec<String>>; 2], BTreeSet<String>> = BTreeMap::new();
    for mark in files.iter().flat_map(BTreeMap::keys) {
        let history = [0, 1].map(|release| files[release].get(mark).cloned());
        histories.entry(history).or_default().insert(mark.split('/').next().unwrap().to_owned());
    }
    histories.into_values().collect()
}

/// A column that holds the day of the extract does not make all rows new.
#[test]
fn the_day_of_an_extract_hides_nobody() {
    let mut random = ChaCha8Rng::seed_from_u64(12);
    let march = of_people(&mut random, 0..90, 0);
    let june = march.iter().skip(3).cloned().collect::<Vec<_>>();
    let with_day =
        |visits: &[Visit], day: &str| csv(visits).replace('\n', &format!(",{day}\n")).replacen(day, "day", 1);
    for (role, dates, refused) in [
        ("insensitive\", allow_unique = true", "", Some("as day tells")),
        ("insensitive\", allow_unique = true", "dates = []\n", None),
        // No class of March covers a day of June.
        ("quasi\"", "", Some("the next release would be empty")),
    ] {
        let place = Place::new();
        let text = policy("mondrian", Also::Nothing).replace("row = [\"visit\"]\ndates = []\n", dates);
        place.write("p.toml", text.replace("[history]", &format!("day = {{ role = \"{role} }}\n[history]")));
        place.write("march.csv", with_day(&march, "2026-03-31"));
        place.write("june.csv", with_day(&june, "2026-06-30"));
        place.run("release march.csv --policy p.toml --to march").exit(0);
        let ran = place.run("release june.csv --after march --to june");
        if let Some(why) = refused {
            ran.exit(1).says(why);
            continue;
        }
        ran.exit(0);
        place.run("compare march june").exit(0);
        let histories = people_of_histories(&place, ["march", "june"]);
        assert!(histories.len() > 3 && histories.iter().all(|people| people.len() >= 3), "{histories:?}");
    }
}

/// Visits that are numbered within the extract are other visits once the first of a person leaves it.
#[test]
fn visits_numbered_within_an_extract_are_told() {
    let place = Place::new();
    place.write("p.toml", policy("auto", Also::Nothing));
    let mut random = ChaCha8Rng::seed_from_u64(13);
    let visits: Vec<(Visit, u32)> = (0..60)
        .flat_map(|person| [1, 2, 3].map(|visit| (person, visit)))
        .map(|(person, visit)| (drawn(&mut random, person, visit), visit))
        .collect();
    let numbered = |leave: u32| {
        let mut text = "person,visit,age,zip,diagnosis,mark\n".to_owned();
        for (Visit { person, age, zip, diagnosis, .. }, visit) in &visits {
            let leaves = u32::from(person % 10 < leave);
            if *visit > leaves {
                text += &format!("p{person},{},{age},{zip},{diagnosis},p{person}/{visit}\n", visit - leaves);
            }
        }
        text
    };
    place.write("a.csv", numbered(0));
    place.write("b.csv", numbered(3));
    place.run("release a.csv --policy p.toml --to a").exit(0);
    place
        .run("release b.csv --after a --to b")
        .exit(1)
        .says("have another visit, and 126 the same: was visit numbered anew?");
    place.run("release b.csv --policy p.toml --to b --key a.key").exit(0);
    let compared = "compare a b --input a.csv --input b.csv --row visit --format json";
    assert_eq!(place.run(compared).exit(1).json()["verdict"], json!("broken"), "the files alone pair rows");
}

/// Rows without a person cannot be followed, which is said at once.
#[test]
fn rows_without_a_person_are_told_at_once() {
    let place = Place::new();
    place.write("p.toml", policy("mondrian", Also::Nothing));
    let mut random = ChaCha8Rng::seed_from_u64(14);
    let text = csv(&of_people(&mut random, 0..30, 0)) + ",0,30,1000,flu,nobody\n";
    place.write("a.csv", text);
    let ran = place.run("release a.csv --policy p.toml --to a");
    assert!(
        ran.err.contains("1 row of it names no person by `person`, so no release can follow it"),
        "{ran:?}"
    );
    place
        .run("release a.csv --policy p.toml --to b --suppression-limit 1")
        .exit(2)
        .says("--suppression-limit");
}
