//! `kanon init`: the roles that it proposes for real tables, and that its policies release once the
//! open questions are answered.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, ListArray,
    StringArray, TimestampMicrosecondArray, UInt8Array,
};
use arrow::datatypes::Int32Type;
use datafusion_kanon::internals::policy::{Folder, PolicySpec};

use crate::command::{Place, table};
use crate::house::root;
use crate::shared;

/// Runs `init` and checks what holds for every policy of it; returns the policy.
#[track_caller]
fn init(place: &Place, input: &str) -> String {
    let policy = place.run(&format!("init '{input}'")).exit(0).out;
    toml::from_str::<toml::Table>(&policy).unwrap_or_else(|error| panic!("{error}\n{policy}"));
    for line in policy.lines().filter(|line| line.starts_with('#')) {
        assert!(line.chars().count() < 100, "{line}");
    }
    assert!(!policy.contains("role = \"insensitive\""), "{policy}");
    // Printed, told as JSON and written it is the same but for the name of its file.
    let json = place.run(&format!("init '{input}' --format json")).exit(0).json();
    assert_eq!(json["policy"], policy);
    let roles = json["columns"].as_array().unwrap().iter();
    let roles: BTreeMap<String, String> =
        roles.map(|c| (c["name"].as_str().unwrap().into(), c["role"].as_str().unwrap().into())).collect();
    assert_eq!(roles, columns(&policy).into_iter().collect());
    policy
}

/// The columns of a policy and their roles, in order.
fn columns(policy: &str) -> Vec<(String, String)> {
    let policy: toml::Table = toml::from_str(policy).unwrap();
    let columns = policy["columns"].as_table().unwrap().iter();
    columns.map(|(name, column)| (name.clone(), column["role"].as_str().unwrap().to_owned())).collect()
}

#[track_caller]
fn proposes(policy: &str, roles: &[(&str, &str)]) {
    let roles: Vec<(String, String)> =
        roles.iter().map(|(name, role)| ((*name).to_owned(), (*role).to_owned())).collect();
    assert_eq!(columns(policy), roles, "{policy}");
}

/// The levels of a column as the policy says them.
#[track_caller]
fn levels(policy: &str, name: &str) -> String {
    let policy: toml::Table = toml::from_str(policy).unwrap();
    policy["columns"][name].get("hierarchy").map_or_else(String::new, |levels| format!("{levels:?}"))
}

/// The policy is refused as it is; with its questions answered it releases, and the release holds.
#[track_caller]
fn releases_with(place: &Place, input: &str, policy: &str, answer: impl Fn(String) -> String) {
    place.write("open.toml", policy);
    if policy.contains("role = \"?\"") {
        let refused = place.run(&format!("check '{input}' --policy open.toml")).exit(2);
        assert!(refused.err.contains("still undecided"), "{refused:?}");
    }
    // In a small table few people hold each sensitive value; a made-up one gives nobody away.
    let answered = answer(policy.to_owned())
        .replace("role = \"sensitive\"", "role = \"sensitive\", allow_unique = true");
    place.write("p.toml", answered);
    place.run(&format!("release '{input}' --policy p.toml --to out")).exit(0);
    place.run(&format!("verify out --input '{input}'")).exit(0);
}

#[test]
fn two_small_tables() {
    let place = Place::new();
    let health = root().join("data/papers/health.csv").display().to_string();
    let policy = init(&place, &health);
    proposes(
        &policy,
        &[
            ("marital_status", "quasi"),
            ("sex", "quasi"),
            ("dob", "quasi"),
            ("zip", "quasi"),
            ("race", "quasi"),
            ("problem", "sensitive"),
        ],
    );
    assert!(policy.contains("zip = { role = \"quasi\", hierarchy = { prefix = [3, 2, 1] } }"), "{policy}");
    let dob =
        "dob = { role = \"quasi\", hierarchy = { period = [\"month\", \"quarter\", \"year\", \"decade\"] } }";
    assert!(policy.contains(dob), "{policy}");
    assert!(policy.contains("#   dob: 100 %\n#   all 5: 100 %\n"), "{policy}");
    assert!(policy.contains("\nmethod = \"best\"\n"), "{policy}");
    releases_with(&place, &health, &policy, |policy| policy);

    let place = Place::new();
    let voter = root().join("data/papers/voter.csv").display().to_string();
    let policy = init(&place, &voter);
    proposes(&policy, &[("name", "identifier"), ("sex", "quasi"), ("dob", "quasi"), ("zip", "quasi")]);
    assert!(!policy.contains("[[require]]") && !policy.contains("[input]"), "{policy}");
    assert!(policy.contains("\nmethod = \"auto\"\n"), "{policy}");
    releases_with(&place, &voter, &policy, |policy| policy);
}

#[test]
fn visits_of_people_who_come_again() {
    let place = Place::new();
    let visits = root().join("data/visits.parquet").display().to_string();
    let policy = init(&place, &visits);
    proposes(
        &policy,
        &[
            ("patient_id", "individual"),
            ("ssn", "identifier"),
            ("name", "identifier"),
            ("dob", "quasi"),
            ("sex", "quasi"),
            ("zip", "quasi"),
            ("race", "quasi"),
            ("education", "quasi"),
            ("marital_status", "quasi"),
            ("visit_date", "quasi"),
            ("diagnosis", "sensitive"),
            ("length_of_stay", "?"),
            ("cost", "?"),
        ],
    );
    assert!(!policy.contains("rows_are_individuals"), "{policy}");
    assert!(policy.contains("\nk = 5\n") && policy.contains("sensitive = \"diagnosis\""), "{policy}");
    // `best` tries ten methods; `adult` releases with it.
    let answer =
        |policy: String| policy.replace("\"?\" }", "\"text\" }").replace(METHOD, "method = \"mondrian\"");
    assert!(policy.contains(METHOD), "{policy}");
    releases_with(&place, &visits, &policy, answer);
}

const METHOD: &str = "method = \"best\"";

/// Rows of one person do not make a value frequent: a proposal to merge must be one that a run accepts.
#[test]
fn values_of_people_who_come_again_are_counted_in_people() {
    let place = Place::new();
    let text = |of: &dyn Fn(i64) -> String| -> ArrayRef {
        Arc::new((0..240).map(|n| Some(of(n))).collect::<StringArray>())
    };
    place.parquet(
        "in.parquet",
        &table([
            ("patient_id", text(&|n| format!("p{}", n / 6))),
            ("city", text(&|n| format!("town {}", n / 6 / 2))),
            ("race", text(&|n| format!("group {}", n / 6 % 4))),
        ]),
    );
    let policy = init(&place, "in.parquet");
    proposes(&policy, &[("patient_id", "individual"), ("city", "quasi"), ("race", "quasi")]);
    assert!(!levels(&policy, "city").contains("merge"), "{policy}");
    assert!(levels(&policy, "race").contains("merge"), "{policy}");
    assert!(policy.contains("fewer than 5 individuals"), "{policy}");
    releases_with(&place, "in.parquet", &policy, |policy| policy);
}

#[test]
fn people_who_come_once() {
    let place = Place::new();
    let rows = 0..200i64;
    let text = |of: &dyn Fn(i64) -> String| -> ArrayRef {
        Arc::new(rows.clone().map(|n| Some(of(n))).collect::<StringArray>())
    };
    let number = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
        Arc::new(rows.clone().map(|n| Some(of(n))).collect::<Int64Array>())
    };
    place.parquet(
        "in.parquet",
        &table([
            ("PatientID", number(&|n| 7_000 + n)),
            ("lastName", text(&|n| format!("Family {}", n % 90))),
            ("birth_date", Arc::new((0..200).map(|n| Some(n * 113 % 9_000)).collect::<Date32Array>())),
            ("birth date as text", text(&|n| format!("19{:02}-0{}-11", n * 7 % 90, 1 + n % 9))),
            ("zip", number(&|n| 10_000 + n * 37 % 80_000)),
            ("age", number(&|n| 18 + n * 13 % 70)),
            (
                "income",
                Arc::new((0..200).map(|n| Some(f64::from(n % 40) * 1_000.0)).collect::<Float64Array>()),
            ),
            ("comments", text(&|n| format!("came on day {n}"))),
            ("letter", text(&|n| format!("dear doctor number {n}, this is about my left foot again"))),
            ("disease", text(&|n| ["flu", "cough", "gastritis"][n as usize % 3].into())),
        ]),
    );
    let policy = init(&place, "in.parquet");
    proposes(
        &policy,
        &[
            ("PatientID", "identifier"),
            ("lastName", "identifier"),
            ("birth_date", "quasi"),
            ("birth date as text", "quasi"),
            ("zip", "quasi"),
            ("age", "quasi"),
            ("income", "sensitive"),
            ("comments", "text"),
            ("letter", "text"),
            ("disease", "sensitive"),
        ],
    );
    assert!(policy.contains("\nrows_are_individuals = true\n"), "{policy}");
    assert!(levels(&policy, "age").contains("range"), "{policy}");
    assert!(levels(&policy, "zip").contains("prefix"), "{policy}");
    assert!(policy.contains("prefix = [7, 4, 3]"), "{policy}");
    assert_eq!(policy.matches("\n[[require]]").count(), 2);
    // Many quasi-identifiers, all different: the last two weeks of levels are not worth the time of a test.
    releases_with(&place, "in.parquet", &policy, |policy| {
        policy
            .replace("\"birth date as text\" = { role = \"quasi\", hierarchy = { prefix = [7, 4, 3] } }", "")
            + "\n\"birth date as text\" = { role = \"text\" }\n"
    });
}

#[test]
fn adult() {
    let Some(shared) = shared::folder("adult") else { return };
    let place = Place::new();
    let adult = shared.join("data/adult_full/adult.csv").display().to_string();
    let policy = init(&place, &adult);
    proposes(
        &policy,
        &[
            ("age", "quasi"),
            ("workclass", "quasi"),
            ("fnlwgt", "?"),
            ("education", "quasi"),
            ("education-num", "quasi"),
            ("marital-status", "quasi"),
            ("occupation", "quasi"),
            ("relationship", "quasi"),
            ("race", "quasi"),
            ("sex", "quasi"),
            ("capital-gain", "?"),
            ("capital-loss", "?"),
            ("hours-per-week", "?"),
            ("native-country", "quasi"),
            ("salary-class", "sensitive"),
        ],
    );
    assert!(policy.contains("age = { role = \"quasi\", hierarchy = { range = [5, 10, 20] } }"), "{policy}");
    // A quarter of the names are not those of countries.
    for (name, merge) in [
        ("native-country", "levels = 3, by = \"counts\""),
        ("occupation", "levels = 3"),
        ("race", "levels = 2, by = \"counts\""),
    ] {
        let line = format!("{name} = {{ role = \"quasi\", hierarchy = {{ merge = {{ {merge} }} }} }}");
        assert!(policy.contains(&line), "{policy}");
    }
    assert!(policy.contains("# rows_are_individuals = true"), "{policy}");
    assert!(policy.contains("\nmethod = \"best\"\n"), "{policy}");
    let flowing = policy.replace("\n# ", " ");
    let why = "with 10 quasi-identifiers one level per column would be coarse";
    assert!(flowing.contains(why), "{policy}");
    releases_with(&place, &adult, &policy, |policy| policy.replace("\"?\" }", "\"text\" }"));
    // Without a file written by hand one level per column keeps more than half.
    let auto = policy
        .replace("\"?\" }", "\"text\" }")
        .replace("method = \"best\"", "method = \"auto\"\nobjective = \"granularity_mean\"");
    place.write("auto.toml", auto.replace("# rows_are_individuals", "rows_are_individuals"));
    let found = place.run(&format!("search {adult} --policy auto.toml --format json")).exit(0).json();
    let lost = found["best"][0]["measures"]["granularity_mean"].as_f64().unwrap();
    assert!(lost > 0.2 && lost <= 0.40, "{lost}");
}

/// The line of a column, and the comment above it as one line.
#[track_caller]
fn line_of<'a>(policy: &'a str, name: &str) -> (String, &'a str) {
    let lines: Vec<&str> = policy.lines().collect();
    let at = lines.iter().position(|line| line.starts_with(&format!("{name} = "))).unwrap();
    let comments: Vec<&str> = lines[..at].iter().rev().map_while(|line| line.strip_prefix("# ")).collect();
    (comments.into_iter().rev().collect::<Vec<_>>().join(" "), lines[at])
}

#[test]
fn known_hierarchies_where_name_and_values_agree() {
    let place = Place::new();
    let rows = 0..400usize;
    let text = |of: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new(rows.clone().map(|n| Some(of(n))).collect::<StringArray>())
    };
    let of = |values: &'static [&'static str]| text(&|n| values[n % values.len()].to_owned());
    let number = |of: &dyn Fn(usize) -> i64| -> ArrayRef {
        Arc::new(rows.clone().map(|n| Some(of(n))).collect::<Int64Array>())
    };
    let country = |n: usize| match n % 40 {
        7 => "Germanny",
        11 => "Canary Republic",
        n => {
            ["Germany", "FR", "usa", "United-Kingdom", "Côte d’Ivoire", "KEN", "Chile", "JP", "Egypt"][n % 9]
        }
    };
    let wrong = |n: usize| ["Germany", "Canary Republic", "Pop", "Folk", "Western"][n % 5].to_owned();
    let states = &["MA", "ca", "New York", "DC", "texas", "PR"];
    place.parquet(
        "in.parquet",
        &table([
            ("patient_no", number(&|n| 7_000 + n as i64)),
            ("native-country", text(&|n| country(n).to_owned())),
            (
                "citizenship",
                Arc::new(rows.clone().map(|n| (n % 3 > 0).then(|| country(n))).collect::<StringArray>()),
            ),
            ("birth_country", of(&["DE", "AUT", "Switzerland"])),
            ("origin", of(&["DE", "AUT", "Switzerland"])),
            ("country", text(&wrong)),
            ("continent", of(&["DE", "AUT", "Switzerland"])),
            ("home_state", of(states)),
            ("state", text(&|n| states[n % 6].replace("MA", "Canary State"))),
            ("education", text(&|n| format!("ED{}", n % 9))),
            ("isced_level", number(&|n| n as i64 % 9)),
            ("school_level", text(&|n| (n % 9).to_string())),
            ("educational_code", text(&|n| (n % 9).to_string())),
            ("education_code", number(&|n| n as i64 % 9)),
            ("arrival_time", text(&|n| format!("{:02}:{:02}", n % 24, n % 60))),
            ("hours-per-week", number(&|n| n as i64 % 60)),
            ("latitude", Arc::new(rows.clone().map(|n| Some(n as f64 / 8.0)).collect::<Float64Array>())),
            ("lon", text(&|n| format!("-{}.25", n % 180))),
            ("naics", number(&|n| 541_110 + n as i64 % 50)),
            ("industry", text(&|n| format!("{}", 5_411 + n % 40))),
            ("occupation", text(&|n| format!("{}", 2_210 + n % 40))),
            ("age", number(&|n| 18 + n as i64 % 70)),
            ("age_group", text(&|n| (18 + n % 70).to_string())),
            ("zip", text(&|n| format!("021{:02}", n % 100))),
            ("visit_date", Arc::new(rows.clone().map(|n| Some(n as i32 % 90)).collect::<Date32Array>())),
            ("icd10", text(&|n| format!("E1{}.{}", n % 5, n % 10))),
            ("cause", text(&|n| format!("E1{}.{}", n % 5, n % 10))),
            ("cause_before", text(&|n| format!("25{}.0{}", n % 10, n % 4))),
        ]),
    );
    let policy = init(&place, "in.parquet");
    let json = place.run("init in.parquet --format json").exit(0).out;
    assert!(
        !policy.contains("Canary") && !json.contains("Canary") && !policy.contains("Germann"),
        "{policy}"
    );
    let known = |name: &str, hierarchy: &str, why: &str| {
        let (comment, line) = line_of(&policy, name);
        assert!(comment.contains(why), "{name}: {comment}");
        if line.contains("\"?\"") {
            assert!(
                comment.ends_with(&format!("If it is quasi: hierarchy = {hierarchy}")),
                "{name}: {comment}"
            );
        } else {
            assert_eq!(line, format!("{name} = {{ role = \"quasi\", hierarchy = {hierarchy} }}"));
        }
    };
    let join = |row: &str| format!("{{ known = {row:?}, outside = \"join\" }}");
    let all = |row: &str| format!("{{ known = {row:?} }}");
    let country = "The hierarchy `country` (ISO 3166-1 codes and English names, 2024) covers ";
    let others = "; the others join the label `other`.";
    known(
        "native-country",
        &join("country"),
        &format!("{country}95 % of the rows and 9 of 11 distinct values{others}"),
    );
    known(
        "citizenship",
        &join("country"),
        &format!("{country}94 % of the rows with a value and 9 of 11 distinct values{others}"),
    );
    known("birth_country", &all("country"), &format!("{country}all 3 distinct values."));
    known("origin", &all("country"), "all 3 distinct values. If it is quasi:");
    known("home_state", &all("us_state"), "all 6 distinct values");
    for (name, row, why) in [
        ("education", "isced", "all 9"),
        ("isced_level", "isced", "all 9"),
        ("arrival_time", "hour", "all 120"),
        ("latitude", "latitude", "all 400"),
        ("lon", "longitude", "all 180"),
        ("naics", "naics", "all 50"),
        ("industry", "naics", "all 40"),
        ("age_group", "life_stage", "all 70"),
        ("cause", "icd10", "all 10"),
        ("cause_before", "icd9", "all 20"),
    ] {
        known(name, &all(row), why);
    }
    known("occupation", &all("isco"), "all 40");
    // Names without the values, values without the name, numbers that can mean anything.
    for name in ["country", "continent", "state", "school_level", "educational_code", "icd10"] {
        let (comment, line) = line_of(&policy, name);
        assert!(!comment.contains("The hierarchy `") && !comment.contains("known = "), "{name}: {comment}");
        assert!(!line.contains("known = "), "{name}: {line}");
    }
    for (name, levels) in [("age", "range"), ("zip", "prefix"), ("visit_date", "period")] {
        assert!(line_of(&policy, name).1.contains(levels), "{policy}");
    }
    for name in ["hours-per-week", "education_code"] {
        assert!(!line_of(&policy, name).0.contains("known = "), "{policy}");
    }
    let few = ["native-country", "education", "latitude", "age", "icd10"];
    releases_with(&place, "in.parquet", &policy, |policy| {
        let columns = toml::from_str::<toml::Table>(&policy).unwrap();
        let columns = columns["columns"].as_table().unwrap().keys();
        columns.filter(|name| !few.contains(&name.as_str())).fold(policy.clone(), |policy, name| {
            let line = line_of(&policy, name).1.to_owned();
            policy.replace(&line, &format!("{name} = {{ role = \"text\" }}"))
        })
    });
}

#[test]
fn how_a_csv_file_is_written() {
    let place = Place::new();
    let rows: String =
        (0..40).map(|n| format!("{};0{};{};x\n", 20 + n, 2100 + n % 7, ["?", "1,5", "2"][n % 3])).collect();
    place.write("in.csv", format!("age;zip;dose;ward\n{rows}"));
    let policy = init(&place, "in.csv");
    proposes(&policy, &[("age", "quasi"), ("zip", "quasi"), ("dose", "?"), ("ward", "?")]);
    assert!(
        policy.contains("[input]\ndelimiter = \";\"\ndecimal = \",\"\nnulls = [\"\", \"?\"]\n"),
        "{policy}"
    );
    assert!(policy.contains("prefix = [4, 3, 2, 1]"), "{policy}");

    place.write("in.csv", format!("age;zip;dose;ward\n{}NA;;NA;\n", rows.replace("1,5", "1.5")));
    let policy = init(&place, "in.csv");
    assert!(policy.contains("nulls = [\"\", \"?\", \"NA\"]"), "{policy}");
    releases_with(&place, "in.csv", &policy, |policy| policy.replace("\"?\" }", "\"text\" }"));

    // Lines without names: as numbers show, or as cells that occur again.
    for (name, lines) in [("numbers.csv", "a,1\nb,2\n"), ("again.csv", "f,yes\nm,no\nf,no\n")] {
        place.write(name, lines);
        let policy = init(&place, name);
        assert!(policy.contains("header = false"), "{policy}");
        proposes(&policy, &[("column_1", "?"), ("column_2", "?")]);
    }
}

/// Whatever the names and types: the file is TOML, and resolves when its questions are answered.
#[test]
fn names_and_types_of_all_kinds() {
    let names = [
        "patient_id",
        "name",
        "id",
        "dob",
        "zip",
        "age",
        "visit_date",
        "diagnosis",
        "income",
        "note",
        "x",
        "a b",
        "q\"uote\\",
        "tab\tnew\nline",
        "größe",
        "a.b",
        "#",
        "",
    ];
    let rows = 30;
    let kinds: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new((0..rows).map(|n| Some(format!("t{}", n % 9))).collect::<StringArray>())),
        ("unique", Arc::new((0..rows).map(|n| Some(format!("t{n}"))).collect::<StringArray>())),
        ("empty", Arc::new((0..rows).map(|_| None::<&str>).collect::<StringArray>())),
        ("integer", Arc::new((0..rows).map(|n| Some(i64::from(n) * 999_983)).collect::<Int64Array>())),
        ("small", Arc::new((0..rows).map(|n| u8::try_from(n % 12).ok()).collect::<UInt8Array>())),
        ("float", Arc::new((0..rows).map(|n| Some(f64::from(n) / 7.0)).collect::<Float64Array>())),
        (
            "strange",
            Arc::new(
                (0..rows)
                    .map(|n| [None, Some(f64::NAN), Some(f64::INFINITY)][n as usize % 3])
                    .collect::<Float64Array>(),
            ),
        ),
        ("decimal", Arc::new((0..rows).map(|n| Some(i128::from(n % 4))).collect::<Decimal128Array>())),
        ("boolean", Arc::new((0..rows).map(|n| Some(n % 2 == 0)).collect::<BooleanArray>())),
        ("date", Arc::new((0..rows).map(|n| Some(n * 100)).collect::<Date32Array>())),
        (
            "moment",
            Arc::new((0..rows).map(|n| Some(i64::from(n) << 40)).collect::<TimestampMicrosecondArray>()),
        ),
        (
            "zone",
            Arc::new(
                (0..rows)
                    .map(|n| Some(i64::from(n) << 40))
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("Europe/Berlin"),
            ),
        ),
        ("bytes", Arc::new((0..rows).map(|n| Some([n as u8])).collect::<BinaryArray>())),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>((0..rows).map(|n| Some([Some(n)])))),
        ),
    ];
    let named: Vec<(String, ArrayRef)> = kinds
        .iter()
        .flat_map(|(kind, array)| names.map(|name| (format!("{name} {kind}"), Arc::clone(array))))
        .chain(names.map(|name| (name.to_owned(), Arc::clone(&kinds[0].1))))
        .collect();
    let batch = table(named.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))));
    let place = Place::new();
    place.parquet("in.parquet", &batch);
    let policy = init(&place, "in.parquet");
    assert_eq!(columns(&policy).len(), named.len());
    assert!(columns(&policy).iter().filter(|(_, role)| role == "individual").count() <= 1);
    for answer in ["text", "identifier"] {
        let answered = policy.replace("role = \"?\"", &format!("role = \"{answer}\""));
        let answered = answered.replace("\"individual\"", "\"identifier\"");
        let said = PolicySpec::parse(&answered).unwrap_or_else(|error| panic!("{error}"));
        said.resolve(&batch.schema(), &Folder(".".into())).unwrap_or_else(|error| panic!("{error}"));
    }
    // The levels that are named for undecided columns fit, too.
    let lines: Vec<&str> = policy.lines().collect();
    let mut tried = 0;
    for at in 1..lines.len() {
        if let Some(levels) = lines[at - 1].strip_prefix("# If it is quasi: hierarchy = ") {
            let key = lines[at].rsplit_once(" = { role").unwrap().0;
            let said = PolicySpec::parse(&format!(
                "k = 2\nothers = \"drop\"\n[columns]\n{key} = {{ role = \"quasi\", hierarchy = {levels} }}"
            ))
            .unwrap();
            said.resolve(&batch.schema(), &Folder(".".into())).unwrap_or_else(|error| panic!("{error}"));
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn files_that_are_there_stay() {
    let place = Place::new();
    let voter = root().join("data/papers/voter.csv").display().to_string();
    let ran = place.run(&format!("init '{voter}' --to p.toml")).exit(0);
    assert!(ran.out.starts_with("wrote     p.toml (4 columns: 1 identifier, 3 quasi)\n"), "{ran:?}");
    let written = fs::read_to_string(place.path("p.toml")).unwrap();
    assert_eq!(written.replace("p.toml", "policy.toml"), init(&place, &voter));
    place.run(&format!("init '{voter}' --to p.toml")).exit(2).says("exists");
    assert_eq!(fs::read_to_string(place.path("p.toml")).unwrap(), written);
    place.run(&format!("init '{voter}' --to nowhere/p.toml")).exit(3).says("a folder that exists");
    place.run("init nothing.csv").exit(3).says("no such file");
    place.write("empty.csv", "age,sex\n");
    place.run("init empty.csv").exit(3).says("no rows");
    assert!(Path::new(&voter).exists());
}

/// The proposed steps come from the quartiles: one cell cannot be read off them, nor make them
/// useless for all others.
#[test]
fn an_outlier_says_nothing() {
    let place = Place::new();
    let incomes = |outlier: i64| -> ArrayRef {
        Arc::new((0..499i64).map(|n| n % 100).chain([outlier]).collect::<Int64Array>())
    };
    for outlier in [7_777_777, 5] {
        place.parquet("in.parquet", &table([("age", incomes(outlier))]));
        let policy = place.run("init in.parquet").exit(0).out;
        assert!(policy.contains("range = [20, 100]"), "{policy}");
    }
}
