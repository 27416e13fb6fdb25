//! Tests of policies made by code: they are those of a file with the same keys.

use serde::Serialize;
use toml::{Table, Value};

use super::builder::{PolicyBuilder, PolicyColumn, PolicyRequirement};
use super::key_tables::{COLUMN, HISTORY, INPUT, Key, OUTPUT, REQUIRE, TOP};
use super::spec::{ColumnSpec, PolicySpec};
use crate::role::Role;

/// Levels, a person of several rows, models of sensitive values, CSV.
const LEVELS: &str = r#"
k = 5
suppression_limit = 0.05
objective = "height"
method = "anytime"
effort = { seconds = 30 }
others = "drop"
accept_homogeneity = ["notes"]
population = "census.csv"

[[require]]
model = "k_map"
k = 5

[[require]]
model = "l_diversity"
l = 2
sensitive = "icd10"
level = 3

[[require]]
model = "alpha_k_anonymity"
alpha = 0.2
sensitive = "icd10"
values = ["B20", "B24"]

[[require]]
model = "k_anonymity"
k = 20
quasi = ["age", "a.b \"c\""]

[columns]
patient = { role = "individual" }
ssn = { role = "identifier" }
age = { role = "quasi", clip = [0, 90.5], hierarchy = { range = [5, 10, 20], origin = 5 }, min_level = 1, max_level = 3 }
"a.b \"c\"" = { role = "quasi", hierarchy = { prefix = [4, 2], side = "right", width = 8 }, weight = 2.5 }
bmi = { role = "quasi", hierarchy = { bands = [[18.5, 25, 30], [25]] } }
country = { role = "quasi", hierarchy = { known = "country", outside = "join" } }
city = { role = "quasi", hierarchy = { file = "city.csv" } }
icd10 = { role = "sensitive", hierarchy = { known = "icd10" }, allow_unique = true }
notes = { role = "sensitive" }
discharge = { role = "insensitive", relative_to = "admission" }
prose = { role = "text" }

[input]
delimiter = "\t"
header = true
nulls = ["", "?"]
date_format = ["%d.%m.%Y", "%d %b %Y"]
decimal = ","
thousands = "."
encoding = "latin1"

[history]
person = "patient"
row = ["visit"]
dates = ["discharge"]
changes = ["icd10"]
changes_known = false
reason = "corrections are made inside the hospital"
"#;

/// Regions, rows, output.
const REGIONS: &str = r#"
k = 5
rows_are_individuals = true
others = "drop"
method = { mondrian = { split = "loss" } }

[columns]
age = { role = "quasi", clip = { to = 90 } }
job = { role = "quasi", hierarchy = { merge = { levels = 3, order = ["driver", "smith"] } } }
zip = { role = "quasi", hierarchy = { prefix = [4, 3] }, recode = "global" }

[output]
ends = "cuts"
intervals = "columns"
left_out = "names"
released_on = 2026-11-24
private = "../private"
row_group_rows = 100000
file_bytes = 128000000
compression = "snappy"
partition_by = ["zip"]
"#;

fn table(text: &str) -> Table {
    toml::from_str(text).unwrap()
}

/// What a policy spec holds besides its text.
fn meaning(spec: &PolicySpec) -> String {
    let PolicySpec { required, suppression_limit, objective, method, effort, output, columns, .. } = spec;
    let PolicySpec { others_are_dropped, rows_are_individuals, accept_homogeneity, .. } = spec;
    let PolicySpec { text: _, population, csv, earlier, numbers, history, .. } = spec;
    let search = (suppression_limit, objective, method, effort, output);
    let individuals = (others_are_dropped, rows_are_individuals, accept_homogeneity);
    format!("{:?}", (required, search, columns, individuals, (population, csv, earlier, numbers), history))
}

fn assert_same(built: PolicyBuilder, text: &str) {
    let (built, parsed) = (built.build().unwrap(), PolicySpec::parse(text).unwrap());
    assert_eq!(parsed.text(), text);
    assert_eq!(table(built.text()), table(text));
    assert_eq!(meaning(&built), meaning(&parsed));
}

fn error(policy: PolicyBuilder) -> String {
    policy.build().unwrap_err().to_string()
}

#[test]
fn a_policy_by_code_is_that_of_a_file() {
    #[derive(Serialize)]
    struct Csv {
        delimiter: char,
        header: bool,
        nulls: [&'static str; 2],
        date_format: Vec<&'static str>,
        decimal: &'static str,
        thousands: Option<&'static str>,
        encoding: Option<&'static str>,
    }
    let csv = Csv {
        delimiter: '\t',
        header: true,
        nulls: ["", "?"],
        date_format: vec!["%d.%m.%Y", "%d %b %Y"],
        decimal: ",",
        thousands: Some("."),
        encoding: None,
    };
    let code = PolicyColumn::new;
    let age = code(Role::Quasi).hierarchy("range", [5, 10, 20]).hierarchy("origin", 5);
    let age = age.set("clip", (0, 90.5)).set("min_level", 1).set("max_level", 3);
    let built = PolicySpec::builder()
        .column("patient", code(Role::Individual))
        .column("ssn", code(Role::Identifier))
        .column("age", age)
        .column(
            "a.b \"c\"",
            code(Role::Quasi)
                .hierarchy("prefix", [4, 2])
                .hierarchy("side", "right")
                .hierarchy("width", 8)
                .weight(2.5),
        )
        .column("bmi", code(Role::Quasi).set("hierarchy", table("bands = [[18.5, 25, 30], [25]]")))
        .column("country", code(Role::Quasi).hierarchy("known", "country").hierarchy("outside", "join"))
        .column("city", code(Role::Quasi).hierarchy("file", "city.csv"))
        .column("icd10", code(Role::Sensitive).hierarchy("known", "icd10").set("allow_unique", true))
        .column("notes", code(Role::Sensitive))
        .column("discharge", code(Role::Insensitive).set("relative_to", "admission"))
        .column("prose", code(Role::Text))
        .set("input", csv)
        .set("input.encoding", "latin1")
        .require(PolicyRequirement::new("k_map").set("k", 5))
        .require(PolicyRequirement::new("l_diversity").set("l", 2).set("sensitive", "icd10").set("level", 3))
        .require(
            PolicyRequirement::new("alpha_k_anonymity")
                .set("alpha", 0.2)
                .set("sensitive", "icd10")
                .set("values", ["B20", "B24"]),
        )
        .require(PolicyRequirement::new("k_anonymity").set("k", 20).set("quasi", ["age", "a.b \"c\""]))
        .k(2)
        .k(5)
        .suppression_limit(0.05)
        .drop_others()
        .method("anytime")
        .set("effort.seconds", 30)
        .set("objective", "height")
        .set("accept_homogeneity", ["notes"])
        .set("population", "census.csv")
        .set("history", table(LEVELS)["history"].as_table().unwrap().clone());
    assert_same(built, LEVELS);

    let day: Value = table(REGIONS)["output"]["released_on"].clone();
    assert!(day.is_datetime());
    let built = PolicySpec::builder()
        .k(5)
        .rows_are_individuals()
        .drop_others()
        .set("method.mondrian.split", "loss")
        .set("columns.age", table("role = \"quasi\""))
        .set("columns.age.clip.to", 90)
        .column(
            "job",
            code(Role::Quasi).hierarchy("merge.levels", 3).hierarchy("merge.order", ["driver", "smith"]),
        )
        .column("zip", code(Role::Quasi).hierarchy("prefix", [4, 3]).set("recode", "global"))
        .set("output", table("ends = \"cuts\"\nintervals = \"columns\"\nleft_out = \"names\""))
        .set("output.released_on", day)
        .set("output.private", "../private")
        .set("output.row_group_rows", 100_000)
        .set("output.file_bytes", 128_000_000)
        .set("output.compression", "snappy")
        .set("output.partition_by", ["zip"]);
    assert_same(built, REGIONS);
}

#[test]
fn every_key_can_be_set() {
    let mut given: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |place: &str, table: &Table| given.push((place.into(), table.keys().cloned().collect()));
    for text in [LEVELS, REGIONS] {
        let all = table(text);
        let mut built = PolicySpec::builder();
        add("", &all);
        for (key, value) in &all {
            match (key.as_str(), value) {
                ("columns", Value::Table(columns)) => {
                    for (name, line) in columns {
                        let line = line.as_table().unwrap();
                        add("columns", line);
                        let column = PolicyColumn::new(Role::Text);
                        let column = line.iter().fold(column, |column, (key, value)| column.set(key, value));
                        built = built.column(name, column);
                    }
                }
                ("require", Value::Array(requirements)) => {
                    for requirement in requirements {
                        let requirement = requirement.as_table().unwrap();
                        add("require", requirement);
                        let model = PolicyRequirement::new("");
                        built =
                            built.require(requirement.iter().fold(model, |model, (k, v)| model.set(k, v)));
                    }
                }
                ("input" | "output" | "history", Value::Table(inner)) => {
                    add(key, inner);
                    for (name, value) in inner {
                        built = built.set(&format!("{key}.{name}"), value);
                    }
                }
                _ => built = built.set(key, value),
            }
        }
        assert_same(built, text);
    }
    let rooms: [(&str, &[Key]); 6] = [
        ("", TOP),
        ("columns", COLUMN),
        ("require", REQUIRE),
        ("input", INPUT),
        ("output", OUTPUT),
        ("history", HISTORY),
    ];
    for (place, keys) in rooms {
        for key in keys {
            let is_set =
                |(at, names): &(String, Vec<String>)| at == place && names.iter().any(|n| n == key.name);
            assert!(given.iter().any(is_set), "{place}.{}", key.name);
        }
    }
}

#[test]
fn errors_name_the_key() {
    let base = || PolicySpec::builder().k(5).rows_are_individuals();
    let quasi = || PolicyColumn::new(Role::Quasi);
    for (policy, why) in [
        (PolicySpec::builder(), "a policy needs `k = ...` or a [[require]]"),
        (base().set("kk", 3), "kk: unknown key; did you mean `k`?"),
        (base().k(0), "k: expected an integer of at least 1, found 0"),
        (
            base().suppression_limit(1.5),
            "suppression_limit: expected a share from 0 to 1, such as 0.05, found 1.5",
        ),
        (
            base().suppression_limit(f64::NAN),
            "suppression_limit: expected a share from 0 to 1, such as 0.05, found NaN",
        ),
        (
            base().column("a.b", quasi().set("rule", 1)),
            "columns.\"a.b\".rule: unknown key; did you mean `role`?",
        ),
        (
            base().column("zip", quasi().weight(0.0)),
            "columns.zip.weight: expected a number above 0, found 0.0",
        ),
        (base().column("zip", quasi()).column("zip", quasi()), "columns.zip: the column is given twice"),
        (base().set("columns", 3).column("zip", quasi()), "columns.zip: `columns` is not a table"),
        (
            base().set("require", 3).require(PolicyRequirement::new("k_map")),
            "require: is set to a value that is no list",
        ),
        (base().set("k.l", 3), "k.l: `k` is not a table"),
        (base().set("objective", None::<u8>), "objective: the value cannot be written as TOML: "),
        (
            base().column("zip", quasi().set("weight", u64::MAX)),
            "columns.zip: weight: the value cannot be written as TOML: ",
        ),
        (
            base().require(PolicyRequirement::new("l_diversity").set("l", ())),
            "require[0]: l: the value cannot be written as TOML: ",
        ),
    ] {
        let found = error(policy);
        // The rest is in the words of the library.
        assert!(found == why || why.ends_with(": ") && found.starts_with(why), "{found}");
    }
    for key in ["", " ", "a b", "k = 5\nl", "k = 5 #", "k\n", "k = 0 #", "[columns]\nk", "k.", ".k", "k #"] {
        let found = error(base().set(key, 3));
        assert!(found.contains("is no key: expected names with dots"), "{key:?}: {found}");
    }
    let both = base().set("a b", 1).set("objective", ());
    assert_eq!(error(both).lines().count(), 2);
}

#[test]
fn any_name_is_a_column() {
    let names: Vec<String> = ('\0'..'\u{3100}').map(|one| format!("{one}=")).collect();
    let names = names.iter().map(String::as_str).chain(["", "a.b", "'", "\"\"\"", "\r\n", "\u{feff}", "🙂"]);
    let names: Vec<&str> = names.filter(|name| *name != "{=").collect();
    let policy = PolicySpec::builder().k(2);
    let policy =
        names.iter().fold(policy, |policy, name| policy.column(name, PolicyColumn::new(Role::Quasi)));
    let spec = policy.build().unwrap();
    assert!(spec.columns().iter().map(ColumnSpec::name).eq(names));
}

#[test]
fn debug_shows_no_value() {
    let order = ["Canary", "Canary's"];
    let job = PolicyColumn::new(Role::Quasi).hierarchy("merge.levels", 1).hierarchy("merge.order", order);
    let policy = PolicySpec::builder().k(2).column("job", job.clone());
    let shown = format!("{job:?} {policy:?} {:?}", policy.clone().build().unwrap());
    assert!(!shown.contains("Canary"), "{shown}");
    assert!(shown.contains("hierarchy"), "{shown}");
}
