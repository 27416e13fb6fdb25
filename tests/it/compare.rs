//! `kanon compare`: releases of the same people, judged as an attacker with all files and all quasi-identifiers would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use arrow::array::Array;
use arrow::util::display::array_value_to_string;
use datafusion_kanon::internals::answer::compare::{CompareAnswer, Verdict, compare};
use datafusion_kanon::internals::input::{Input, PolicySource};
use datafusion_kanon::internals::policy::{Folder, PolicySpec};
use datafusion_kanon::internals::release::histories::{Compared, SamePeople};
use datafusion_kanon::internals::release::{Place as ReleasePlace, release};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::command::Place;
use crate::releases::{PART, read_parquet};
use crate::shared::with_run;

/// A visit: its person, its number, two quasi-identifiers and a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Visit {
    person: u32,
    visit: u32,
    age: Option<u32>,
    zip: &'static str,
    diagnosis: &'static str,
}

impl Visit {
    /// What a release shows as it is, so that its rows can be found again: the same for equal visits only.
    fn mark(&self) -> String {
        format!("{}/{:?}/{}/{}", self.person, self.age, self.zip, self.diagnosis)
    }
}

fn below(random: &mut ChaCha8Rng, n: u32) -> u32 {
    random.next_u32() % n
}

fn drawn(random: &mut ChaCha8Rng, person: u32, visit: u32) -> Visit {
    let zips = ["1001", "1002", "1010", "2001", "2002"];
    let diagnoses = ["flu", "gout", "HIV", "cold"];
    Visit {
        person,
        visit,
        age: (below(random, 12) > 0).then(|| 20 + 5 * below(random, 6)),
        zip: zips[below(random, 5) as usize],
        diagnosis: diagnoses[below(random, 4) as usize],
    }
}

/// The inputs of two or three releases: people come and go, and some of their visits change.
fn lives(random: &mut ChaCha8Rng) -> Vec<Vec<Visit>> {
    let people = 4 + below(random, 5);
    let mut visits = Vec::new();
    for person in 0..people {
        for visit in 0..1 + below(random, 2) {
            visits.push(drawn(random, person, 10 * person + visit));
        }
    }
    let versions = 2 + below(random, 2);
    let mut inputs = Vec::new();
    for _ in 0..versions {
        let mut input = Vec::new();
        let absent = below(random, people);
        for visit in &mut visits {
            if below(random, 10) == 0 {
                *visit = drawn(random, visit.person, visit.visit);
            }
            if visit.person != absent || below(random, 2) == 0 {
                input.push(visit.clone());
            }
        }
        inputs.push(input);
    }
    inputs
}

fn csv(visits: &[Visit]) -> String {
    let mut text = "person,visit,age,zip,diagnosis,mark\n".to_owned();
    for visit in visits {
        let Visit { person, visit: number, age, zip, diagnosis } = visit;
        let age = age.map(|age| age.to_string()).unwrap_or_default();
        text += &format!("p{person},{number},{age},{zip},{diagnosis},{}\n", visit.mark());
    }
    text
}

fn policy(method: &str, l: bool) -> String {
    let l = if l { "[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"diagnosis\"\n" } else { "" };
    let shows = ["mdav", "ona"].contains(&method);
    let hierarchy = |text: &str| if shows { String::new() } else { format!(", hierarchy = {text}") };
    format!(
        "k = 2\nmethod = \"{method}\"\nsuppression_limit = 1\nothers = \"drop\"\naccept_homogeneity = [\"diagnosis\"]\n{l}[columns]\n\
         person = {{ role = \"individual\" }}\nage = {{ role = \"quasi\"{} }}\nzip = {{ role = \"quasi\"{} }}\n\
         diagnosis = {{ role = \"sensitive\", allow_unique = true }}\nmark = {{ role = \"insensitive\", allow_unique = true }}\n",
        hierarchy("{ range = [10, 20] }"),
        hierarchy("{ prefix = [2, 1] }")
    )
}

/// The class that a release shows for each mark.
fn shown(out: &Path) -> BTreeMap<String, Vec<String>> {
    let rows = read_parquet(&out.join(PART));
    let cell = |name: &str, row| {
        let column = rows.column_by_name(name).unwrap();
        if column.is_null(row) { "NULL".to_owned() } else { array_value_to_string(column, row).unwrap() }
    };
    let class = |row| ["age", "zip"].map(|name| cell(name, row)).to_vec();
    (0..rows.num_rows()).map(|row| (cell("mark", row), class(row))).collect()
}

/// The people whose rows share a history, by the classes of the history, with the number of rows.
fn histories(
    inputs: &[Vec<Visit>],
    shown: &[BTreeMap<String, Vec<String>>],
    by_visit: bool,
) -> BTreeMap<Vec<Option<Vec<String>>>, (BTreeSet<u32>, u64)> {
    let key =
        |visit: &Visit| if by_visit { format!("{} {}", visit.person, visit.visit) } else { visit.mark() };
    let mut rows: BTreeMap<String, Vec<Vec<&Visit>>> = BTreeMap::new();
    for (place, input) in inputs.iter().enumerate() {
        for visit in input {
            rows.entry(key(visit)).or_insert_with(|| vec![Vec::new(); inputs.len()])[place].push(visit);
        }
    }
    // A person who never has more than one row has one row.
    let mut joined: BTreeMap<String, Vec<Vec<&Visit>>> = BTreeMap::new();
    for (key, copies) in rows {
        let person = copies.iter().flatten().next().unwrap().person;
        let of_person = |input: &Vec<Visit>| input.iter().filter(|visit| visit.person == person).count();
        let is_single = !by_visit && inputs.iter().all(|input| of_person(input) <= 1);
        let key = if is_single { format!("{person}") } else { key };
        let all = joined.entry(key).or_insert_with(|| vec![Vec::new(); inputs.len()]);
        all.iter_mut().zip(copies).for_each(|(all, copies)| all.extend(copies));
    }
    let mut found: BTreeMap<Vec<Option<Vec<String>>>, (BTreeSet<u32>, u64)> = BTreeMap::new();
    for copies in joined.values() {
        for number in 0..copies.iter().map(Vec::len).max().unwrap() {
            let class = |(shown, same): (&BTreeMap<String, Vec<String>>, &Vec<&Visit>)| {
                same.get(number).and_then(|visit| shown.get(&visit.mark())).cloned()
            };
            let history: Vec<Option<Vec<String>>> = shown.iter().zip(copies).map(class).collect();
            if history.iter().any(Option::is_some) {
                let (people, rows) = found.entry(history).or_default();
                people.insert(copies.iter().flatten().next().unwrap().person);
                *rows += 1;
            }
        }
    }
    found
}

/// Every kind that shows classes; as many lives as `KANON_LIVES` says.
#[test]
fn histories_are_those_of_the_released_files() {
    let lives_of_each = std::env::var("KANON_LIVES").map_or(6, |text| text.parse().unwrap());
    let mut random = ChaCha8Rng::seed_from_u64(51);
    let (mut safe, mut not_safe) = (0, 0);
    for method in ["auto", "mondrian", "local", "clusters", "mdav"] {
        for life in 0..lives_of_each {
            let place = Place::new();
            let (inputs, by_visit) = (lives(&mut random), below(&mut random, 2) == 0);
            let mut text = policy(method, below(&mut random, 3) == 0) + "[history]\ndates = []\n";
            if by_visit {
                text += "row = [\"visit\"]\n";
            }
            text += "changes_known = false\nreason = \"a test\"\n";
            let spec = PolicySpec::parse(&text).unwrap();
            let source = PolicySource { spec: &spec, files: &Folder(".".into()) };
            let (mut released, mut kept, mut files) = (Vec::new(), Vec::new(), Vec::new());
            let row = if by_visit { vec!["visit".to_owned()] } else { Vec::new() };
            let same = SamePeople {
                row,
                dates: Some(Vec::new()),
                changes_are_unknown: true,
                accept_new_people: true,
                ..SamePeople::default()
            };
            let key = Some(place.path("lives.key"));
            let answer: Option<CompareAnswer> = with_run(async |run| {
                for (number, visits) in inputs.iter().enumerate() {
                    let (name, out) = (format!("in{number}.csv"), place.path(&format!("out{number}")));
                    place.write(&name, csv(visits));
                    let input = Input::find(place.path(&name).to_str().unwrap()).unwrap();
                    let at = ReleasePlace::beside(&out).unwrap().with_key(key.clone());
                    if release(run, &input, &source, &at, false).await.is_ok() {
                        files.push(shown(&out));
                        kept.push(visits.clone());
                        released.push(Compared { place: at, input: Some(input.into()) });
                    }
                }
                match released.len() {
                    0 | 1 => None,
                    _ => {
                        let answer = compare(run, &released, &same, true).await.unwrap();
                        // The private records say the same without any input.
                        released.iter_mut().for_each(|one| one.input = None);
                        let same = SamePeople { accept_new_people: true, ..SamePeople::default() };
                        let recorded = compare(run, &released, &same, true).await.unwrap();
                        let found = |answer: &CompareAnswer| {
                            let mut found = serde_json::to_value(answer).unwrap();
                            found["cannot_tell"] = json!(answer.cannot_tell.len());
                            found
                        };
                        assert_eq!(found(&recorded), found(&answer), "{method} {life}: {inputs:#?}");
                        Some(answer)
                    }
                }
            });
            let Some(answer) = answer else { continue };
            let found = histories(&kept, &files, by_visit);
            let by_people = answer.by_people.as_ref().unwrap();
            let mut patterns: BTreeMap<Vec<bool>, [u64; 4]> = BTreeMap::new();
            for (history, (people, rows)) in &found {
                let shown = history.iter().map(Option::is_some).collect();
                let [all, of_rows, fewest, few] = patterns.entry(shown).or_insert([0, 0, u64::MAX, 0]);
                *all += 1;
                *of_rows += rows;
                *fewest = (*fewest).min(people.len() as u64);
                *few += u64::from(people.len() < 2);
            }
            let context = format!("{method} {life}: {kept:#?} {files:#?} {answer:#?}");
            let counted = by_people.views[0].histories.iter();
            let counted: BTreeMap<Vec<bool>, [u64; 4]> = counted
                .map(|one| {
                    (one.shown.clone(), [one.histories, one.rows, one.fewest_people, one.too_few_people])
                })
                .collect();
            assert_eq!(counted, patterns, "{context}");
            let few = found.values().filter(|(people, _)| people.len() < 2);
            let few: BTreeSet<u32> = few.flat_map(|(people, _)| people.iter().copied()).collect();
            assert!(by_people.people_found >= few.len() as u64, "{context}");
            if spec.text().contains("l_diversity") {
                assert!(few.is_empty() || answer.verdict != Verdict::Safe, "{context}");
            } else {
                assert_eq!(by_people.people_found, few.len() as u64, "{context}");
                let is_safe = answer.cannot_tell.is_empty() && few.is_empty();
                assert_eq!(answer.verdict == Verdict::Safe, is_safe, "{context}");
            }
            *if answer.verdict == Verdict::Safe { &mut safe } else { &mut not_safe } += 1;
        }
    }
    assert!(safe > 0 && not_safe > lives_of_each, "{safe} safe, {not_safe} not");
}

const POLICY: &str = r#"
    k = 2
    method = "auto"
    suppression_limit = 0.5
    others = "drop"
    accept_homogeneity = ["disease"]
    [columns]
    person = { role = "individual" }
    zip = { role = "quasi", hierarchy = { prefix = [2] } }
    disease = { role = "sensitive", allow_unique = true }
"#;

/// Four people in two zip areas; in June somebody joins.
fn march_and_june(place: &Place, joins: &str) {
    let march = "person,zip,disease\na,1001,flu\nb,1002,gout\nc,2001,HIV\nd,2002,cold\n";
    place.write("march.csv", march);
    place.write("june.csv", format!("{march}{joins}"));
    place.write("p.toml", POLICY);
    for month in ["march", "june"] {
        place.run(&format!("release {month}.csv --policy p.toml --to {month}")).exit(0);
    }
}

const COMPARE: &str = "compare march june --input march.csv --input june.csv";

#[test]
fn one_who_joins_is_found_and_two_are_not() {
    let place = Place::new();
    march_and_june(&place, "e,1003,asthma\n");
    let ran = place.run(COMPARE).exit(1);
    assert!(ran.out.contains("1 individual has a row"), "{}", ran.out);
    let found = place.run(&format!("{COMPARE} --format json")).exit(1).json();
    assert_eq!(found["by_people"]["people_found"], json!(1));
    assert_eq!(found["by_people"]["broken_by"], json!("june"));

    let place = Place::new();
    march_and_june(&place, "e,1003,asthma\nf,1004,flu\n");
    let found = place.run(&format!("{COMPARE} --format json")).exit(0).json();
    assert_eq!(found["verdict"], json!("safe"));
    let text = place.run(COMPARE).exit(0).out;
    assert!(text.contains("safe      the rows of every history belong to enough people"), "{text}");
    // What is published twice is not found by subtraction.
    place.run("compare march march --input march.csv --input march.csv").exit(0);
}

#[test]
fn what_cannot_be_told_is_said() {
    let place = Place::new();
    march_and_june(&place, "e,1003,asthma\nf,1004,flu\n");
    let text = place.run("compare march june").exit(1).out;
    assert!(text.contains("without the input of every release nobody can say"), "{text}");
    assert_eq!(place.run("compare march june --format json").exit(1).json()["verdict"], json!("cannot_tell"));
    place
        .run("compare march june --input march.csv --input march.csv")
        .exit(1)
        .says("june: `march.csv` is not the input that it was made of, byte for byte");
    place.run("compare march june --input march.csv").exit(2).says("expected one for each of the 2 releases");
    place.run(&format!("{COMPARE} --person nobody")).exit(2).says("its input has no column `nobody`");
    place
        .run(&format!("{COMPARE} --dates disease,nothing"))
        .exit(2)
        .says("no release has a column `nothing`");
    fs::rename(place.path("june.private.json"), place.path("elsewhere.json")).unwrap();
    place.run(COMPARE).exit(2).says("private record june.private.json is missing");
    place.run(&format!("{COMPARE} --private march.private.json --private elsewhere.json")).exit(0);
}

/// People with new numbers are not found again, and nothing that their histories say is right.
#[test]
fn people_who_are_numbered_anew_are_told() {
    let place = Place::new();
    march_and_june(&place, "e,1003,asthma\n");
    let renumbered = "person,zip,disease\nv,1001,flu\nw,1002,gout\nx,2001,HIV\ny,2002,cold\ne,1003,asthma\n";
    place.write("june.csv", renumbered);
    place.run("release june.csv --policy p.toml --to june --overwrite").exit(0);
    let ran = place.run(COMPARE).exit(1);
    assert!(ran.out.contains("0 of 4 individuals come back in the input of june"), "{}", ran.out);
    let found = place.run(&format!("{COMPARE} --format json --accept-new-people")).exit(1).json();
    assert_eq!(found["verdict"], json!("cannot_tell"), "the files alone pair four of four rows: {found:#}");
    let query = "SELECT * FROM compare('march', 'june', input => 'march.csv', input => 'june.csv')";
    place.run_on("sql -c", Some(query), "").exit(1).says("4 have another person by `person`, and 0 the same");

    // Other people, with other values.
    place.write("june.csv", "person,zip,disease\nv,3001,a\nw,3002,b\nx,4001,c\ny,4002,d\n");
    place.run("release june.csv --policy p.toml --to june --overwrite").exit(0);
    place.run(COMPARE).exit(1);
    place.run(&format!("{COMPARE} --accept-new-people")).exit(0);
    place
        .run(&format!("{COMPARE} --changes nothing"))
        .exit(2)
        .says("no release has a sensitive column `nothing`");
}

/// With `[history]`, releases are judged by their private records and the key.
#[test]
fn releases_are_compared_without_their_inputs() {
    let place = Place::new();
    march_and_june(&place, "e,1003,asthma\n");
    place.write("p.toml", format!("{POLICY}[history]\n"));
    let release = |month: &str, more: &str| {
        place.run(&format!("release {month}.csv --policy p.toml --to {month} --overwrite {more}"))
    };
    release("march", "").exit(0);
    #[cfg(unix)]
    {
        let mode = fs::metadata(place.path("march.key")).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    }
    release("june", "").exit(0);
    place
        .run("compare march june")
        .exit(2)
        .says("june: its pseudonyms are made with another key than those of march");
    release("june", "--key march.key").exit(0);
    place
        .run("compare march june --key june.key")
        .exit(2)
        .says("march: june.key: this is the key of other pseudonyms");
    let ran = place.run("compare march june --key march.key").exit(1);
    assert!(ran.out.contains("1 individual has a row"), "{}", ran.out);
    let found = place.run("compare march june --key march.key --format json").exit(1).json();
    let with_inputs = place.run(&format!("{COMPARE} --format json")).exit(1).json();
    assert_eq!(found, with_inputs);
    place.run("compare march june --key march.key --row zip").exit(2).says("matched as its policy says");
    place.run("verify june --input june.csv").exit(0);

    // The same bytes, whatever the number of threads.
    let private = |threads: u32| {
        release("june", &format!("--key march.key --threads {threads}")).exit(0);
        let record: Value =
            serde_json::from_slice(&fs::read(place.path("june.private.json")).unwrap()).unwrap();
        record["history"].clone()
    };
    assert_eq!(private(1), private(4));

    let path = place.path("june.private.json");
    let edited = fs::read_to_string(&path)
        .unwrap()
        .replace("\"rows_without_person\": 0", "\"rows_without_person\": 1");
    fs::write(&path, edited).unwrap();
    place.run("compare march june --key march.key").exit(1).says("is not what the public record names");
    place.run("verify june --input june.csv").exit(1);
    place
        .run("compare march june --key none.key")
        .exit(2)
        .says("none.key: the key of the pseudonyms is missing");
}

#[test]
fn a_history_that_cannot_be_kept_is_refused() {
    let place = Place::new();
    march_and_june(&place, "");
    let run = |policy: String| {
        place.write("q.toml", policy);
        place.run("release march.csv --policy q.toml --to other")
    };
    run(format!("{POLICY}[history]\nperson = \"nobody\"\n"))
        .exit(2)
        .says("history: the input: its input has no column `nobody`");
    run(format!("{POLICY}[history]\nrow = [\"visit\"]\n")).exit(2).says("no column `visit`");
    let groups = POLICY
        .replace("\"auto\"", "\"anatomy\"")
        .replace("k = 2", "l = 2")
        .replace("suppression_limit = 0.5\n", "");
    let groups =
        groups.replace("l = 2", "require = [{ model = \"l_diversity\", l = 2, sensitive = \"disease\" }]");
    run(format!("{groups}[history]\n")).says("shows no classes");
    assert!(!place.path("other").exists() && !place.path("other.key").exists());
}

/// `p1 ` is not `p1`, and 7 is not `007`.
#[test]
fn people_who_are_written_in_two_ways_are_told() {
    let place = Place::new();
    place.write("p.toml", POLICY);
    place.write("march.csv", "person,zip,disease\np7,1001,flu\np8,1002,gout\n");
    for (june, said) in [
        (
            "person,zip,disease\nP7,1001,flu\np8 ,1002,gout\n",
            "4 people of `person` differ from one of another input",
        ),
        ("person,zip,disease\np7,1001,flu\np8,1002,gout\n", "safe"),
    ] {
        place.write("june.csv", june);
        for month in ["march", "june"] {
            place.run(&format!("release {month}.csv --policy p.toml --to {month} --overwrite")).exit(0);
        }
        let ran = place.run(COMPARE);
        assert!(ran.out.contains(said), "{ran:?}");
    }
}

/// Releases two inputs under a policy, and compares them with these flags, with their inputs and by their records.
fn compared(place: &Place, policy: &str, inputs: [&str; 2], flags: &str) -> [Value; 2] {
    place.write("p.toml", format!("{policy}[history]\n"));
    for (name, input) in ["a", "b"].into_iter().zip(inputs) {
        place.write(&format!("{name}.csv"), input);
        let ran =
            place.run(&format!("release {name}.csv --policy p.toml --to {name} --key k.key --overwrite"));
        // It may warn of rows that name nobody.
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let by_input = format!("compare a b --input a.csv --input b.csv {flags} --format json");
    [place.run(&by_input).json(), place.run("compare a b --key k.key --format json").json()]
}

/// What users of other tools reported, as inputs: each was said to be safe once.
#[test]
fn what_names_and_rows_hide_is_told() {
    let place = Place::new();
    let said = |policy: &str, inputs: [&str; 2], words: &str| {
        for answer in compared(&place, policy, inputs, "") {
            assert_ne!(answer["verdict"], json!("safe"), "{words}: {answer:#}");
            assert!(answer["cannot_tell"].to_string().contains(words), "{words}: {answer:#}");
        }
    };
    let first = "person,zip,disease\na,1001,flu\nb,1002,gout\nc,2001,HIV\nd,2002,cold\n";
    let shown = format!("{first},1001,flu\n");
    said(POLICY, [&shown, &shown], "1 row of a name no person by `person`");
    said(POLICY, [&first.replace("a,", "7.0,"), &first.replace("a,", "7,")], "write them alike");
    said(
        POLICY,
        [&first.replace("a,", "Jos\u{e9},"), &first.replace("a,", "Jose\u{301},")],
        "write them alike",
    );
    // The rows of the second input are numbered anew.
    let anew = "person,zip,disease\nd,1001,flu\na,1002,gout\nb,2001,HIV\nc,2002,cold\n";
    said(POLICY, [first, anew], "4 have another person by `person`, and 0 the same");
    // One of two visits of a moved.
    let visits = format!("{first}a,1003,cold\n");
    said(
        POLICY,
        [&visits, &visits.replace("a,1003", "a,2003")],
        "1 person has a row that is gone and one that is new",
    );

    // A column that was renamed hides that a value lasts.
    let renamed = POLICY.replace("disease", "illness");
    place.write("q.toml", &renamed);
    place.write("c.csv", first.replace("disease", "illness"));
    place.write("a.csv", first);
    place.run("release a.csv --policy p.toml --to a --overwrite --key k.key").exit(0);
    place.run("release c.csv --policy q.toml --to c").exit(0);
    let ran = place.run("compare a c --input a.csv --input c.csv").exit(1);
    assert!(ran.out.contains("a shows `disease`, and c shows `illness`"), "{ran:?}");
}

/// A person who has one row in each input and moved is one row.
#[test]
fn one_who_moved_is_found() {
    let place = Place::new();
    let first = "person,zip,disease\na,1001,HIV\nb,1002,gout\nc,1003,flu\nd,2001,flu\ne,2002,cold\n";
    for answer in compared(&place, POLICY, [first, &first.replace("a,1001", "a,2003")], "") {
        assert_eq!(answer["by_people"]["people_found"], json!(1), "{answer:#}");
        assert_ne!(answer["verdict"], json!("safe"));
    }
}

/// A third release that does not show a column hides no change between two that do.
#[test]
fn changes_are_seen_by_the_releases_that_show_them() {
    let place = Place::new();
    place.write("p.toml", POLICY);
    place.write(
        "q.toml",
        POLICY
            .replace("disease = { role = \"sensitive\", allow_unique = true }", "")
            .replace("accept_homogeneity = [\"disease\"]", ""),
    );
    let first = "person,zip,disease,visit\na,1001,flu,1\nb,1002,gout,2\nc,2001,HIV,3\nd,2002,cold,4\n";
    place.write("a.csv", first);
    place.write("b.csv", first.replace("a,1001,flu", "a,1001,asthma"));
    for (name, policy) in [("a", "p"), ("b", "p"), ("c", "q")] {
        let input = if name == "c" { "a" } else { name };
        place.run(&format!("release {input}.csv --policy {policy}.toml --to {name}")).exit(0);
    }
    for (releases, inputs) in [("a b", "a b"), ("a b c", "a b a")] {
        let inputs: String = inputs.split(' ').map(|input| format!(" --input {input}.csv")).collect();
        let ran =
            place.run(&format!("compare {releases}{inputs} --row visit --changes disease --format json"));
        let found = ran.exit(1).json();
        assert_eq!(found["by_people"]["people_found"], json!(2), "{releases}: {found:#}");
    }
}

/// A stay of April was not there in March, although its day is a text.
#[test]
fn days_of_csv_tell_who_was_not_there() {
    let place = Place::new();
    let policy =
        POLICY.replace("[columns]", "[columns]\nday = { role = \"insensitive\", allow_unique = true }");
    let first = "person,zip,disease,day\na,1001,flu,2026-03-01\nb,1002,gout,2026-03-31\nc,2001,HIV,2026-03-01\nd,2002,cold,2026-03-31\n";
    // One stay of March was suppressed or late; one is of April.
    let second = format!("{first}e,1003,flu,2026-03-05\nf,1004,gout,2026-04-02\n");
    let found = compared(&place, &policy, [first, &second], "");
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0]["by_people"]["dates"], json!(["day"]));
    assert_eq!(found[0]["by_people"]["people_found"], json!(2), "{:#}", found[0]);
}

#[test]
fn a_key_is_kept_where_nobody_publishes_it() {
    let place = Place::new();
    march_and_june(&place, "");
    place.write("q.toml", format!("{POLICY}[history]\n"));
    let run =
        |to: &str, key: &str| place.run(&format!("release march.csv --policy q.toml --to {to} --key {key}"));
    run("other", "other/k.key").exit(2).says("--key other/k.key: is the release or its private record");
    run("other", "other").exit(2).says("is the release or its private record");
    run("other", "other.private.json").exit(2).says("is the release or its private record");
    run("other", "june/k.key").exit(2).says("--key june/k.key: is inside a release");
    run("other", "s3://lake/k.key").exit(2);
    assert!(!place.path("other").exists() && !place.path("s3:").exists());
    let ran = run("other", "k.key").exit(0);
    assert!(ran.out.contains("k.key to yourself: it is new"), "{ran:?}");
    assert!(!run("another", "k.key").exit(0).out.contains("it is new"));

    // Who edits the rows, and both digests, has no key.
    place.run("release june.csv --policy q.toml --to next --key k.key").exit(0);
    place.run("compare other next --key k.key").exit(0);
    let read =
        |name: &str| -> Value { serde_json::from_slice(&fs::read(place.path(name)).unwrap()).unwrap() };
    let mut private = read("next.private.json");
    private["history"]["shown_without_person"] = json!(1);
    let forged = private["history"]["seal"].as_str().unwrap().replace('1', "2");
    private["history"]["seal"] = json!(forged);
    fs::write(place.path("next.private.json"), private.to_string()).unwrap();
    place.run("compare other next --key k.key").exit(1).says("is not what the public record names");
}
