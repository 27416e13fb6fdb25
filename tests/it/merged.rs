//! `merge`: hierarchies that a run makes of a column's values, through every method, SQL and the commands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion_kanon::internals::method::{MethodSpec, ReleaseKind, variants};
use serde_json::Value;

use crate::command::{self, Place, Ran, read};
use crate::releases::{read_parquet, texts};

const K: usize = 4;

/// A value with fewer than [`K`] holders begins like this.
const RARE: &str = "RARE";

/// The jobs by the number of their holders; a person may have two rows.
fn people(rows_again: bool) -> RecordBatch {
    let (mut who, mut job, mut code, mut sex) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let jobs = [
        ("baker", 9),
        ("clerk", 40),
        ("cook", 5),
        ("driver", 12),
        ("miner", 4),
        ("nurse", 17),
        ("other", 6),
        ("smith", 8),
        ("RARE diver", 3),
        ("RARE mayor", 1),
        ("RARE pilot", 2),
    ];
    for (at, (name, holders)) in jobs.into_iter().enumerate() {
        for holder in 0..holders {
            // Rows of one person do not make a value frequent.
            let rows = if name.starts_with(RARE) && rows_again { 9 } else { 1 + holder % 2 };
            for _ in 0..rows {
                who.push(Some(i64::try_from(100 * at + holder).unwrap()));
                job.push((holder % 7 != 6).then_some(name));
                // Only person 990 has the code 990; all others share six codes.
                code.push(Some(if name == "RARE mayor" {
                    990
                } else {
                    i64::try_from(10 * (holder % 6)).unwrap()
                }));
                sex.push(Some(if holder % 3 == 0 { "f" } else { "m" }));
            }
        }
    }
    let columns: [(&str, ArrayRef); 4] = [
        ("who", Arc::new(Int64Array::from(who))),
        ("job", Arc::new(StringArray::from(job))),
        ("code", Arc::new(Int64Array::from(code))),
        ("sex", Arc::new(StringArray::from(sex))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn policy(method: &MethodSpec, by: &str) -> String {
    format!(
        "k = {K}\nmethod = {method}\nsuppression_limit = 0.2\n[columns]\nwho = {{ role = \"individual\" }}\n\
         job = {{ role = \"quasi\", hierarchy = {{ merge = {{ levels = 2, by = \"{by}\" }} }} }}\n\
         code = {{ role = \"quasi\", hierarchy = {{ merge = {{ levels = 1 }} }} }}\n\
         sex = {{ role = \"quasi\" }}\n"
    )
}

fn scene(method: &MethodSpec, by: &str) -> Place {
    let place = Place::new();
    place.parquet("in.parquet", &people(true));
    place.write("p.toml", policy(method, by));
    place
}

fn kanon(place: &Place, arguments: &[&str]) -> Ran {
    let (query, line): (Vec<&str>, Vec<&str>) = arguments.iter().partition(|argument| argument.contains(' '));
    place.run_on(&line.join(" "), query.first().copied(), "")
}

fn json(place: &Place, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(place.path(name)).unwrap()).unwrap()
}

/// Every method but those of centroids and groups, which refuse merged values.
fn all_methods() -> impl Iterator<Item = MethodSpec> {
    let shows_labels =
        |method: &MethodSpec| !method.kind().facts().shows_centroids && method.kind() != ReleaseKind::Groups;
    variants().into_iter().chain(["auto", "best"].map(MethodSpec::named)).filter(shows_labels)
}

/// The values of the records that are no policy, no key and no number.
fn strings(value: &Value, all: &mut String) {
    match value {
        Value::String(text) => *all += text,
        Value::Array(items) => items.iter().for_each(|item| strings(item, all)),
        Value::Object(fields) => fields.iter().for_each(|(key, field)| {
            *all += key;
            strings(field, all);
        }),
        _ => {}
    }
}

/// The texts of the assignment in a private record; none where levels say what rows show.
fn assigned(place: &Place, private: &Value) -> String {
    let Some(encoded) = private["assignment"].as_str() else { return String::new() };
    let path = place.path("assignment.parquet");
    fs::write(&path, STANDARD.decode(encoded).unwrap()).unwrap();
    let mut all = String::new();
    for batch in read(&path) {
        for field in batch.schema().fields() {
            all.extend(command::texts(&batch, field.name()).iter().map(|cell| format!("\"{cell}\"\n")));
        }
    }
    assert!(all.contains("\"m\""), "no cell is found");
    all
}

#[test]
fn no_label_names_a_value_that_few_hold_whatever_the_method() {
    for method in all_methods() {
        for by in ["names", "counts"] {
            let place = scene(&method, by);
            let release = ["release", "in.parquet", "--policy", "p.toml", "--to", "out"];
            let ran = kanon(&place, &release).exit(0);
            assert!(!ran.out.contains(RARE));
            kanon(&place, &["verify", "out"]).exit(0);
            kanon(&place, &["verify", "out", "--input", "in.parquet"]).exit(0);

            let rows = read_parquet(&place.path("out/part-00000.parquet"));
            let jobs: Vec<String> = texts(&rows, "job").into_iter().flatten().collect();
            assert!(jobs.iter().all(|job| !job.contains(RARE)), "{method} {by}: {jobs:?}");
            let codes: Vec<String> = texts(&rows, "code").into_iter().flatten().collect();
            assert!(codes.iter().all(|code| !code.contains("990")), "{method} {by}: {codes:?}");
            let (public, private) = (json(&place, "out/_kanon.json"), json(&place, "out.private.json"));
            let mut all = String::new();
            strings(&public, &mut all);
            strings(&private, &mut all);
            all += &assigned(&place, &private);
            assert!(!all.contains(RARE) && !all.contains("\"990\""), "{method} {by}");

            let tree = private["merged"]["job"].as_str().unwrap();
            let listed: BTreeSet<&str> = tree.lines().map(|line| line.split('"').nth(1).unwrap()).collect();
            let expected =
                ["baker", "clerk", "cook", "driver", "miner", "nurse", "other", "other values", "smith"];
            assert_eq!(listed, BTreeSet::from(expected), "{method} {by}");
            assert_eq!(private["merged_labels"], serde_json::json!({ "job": "other values" }));
            assert!(private["merged"]["code"].as_str().unwrap().contains("\"other\""));
        }
    }
}

#[test]
fn sets_and_labels_are_judged_by_what_was_merged() {
    // Without the rows of the frequent jobs, what `other` holds is released, too.
    let place = scene(&MethodSpec::named("clusters"), "names");
    kanon(&place, &["release", "in.parquet", "--policy", "p.toml", "--to", "out"]).exit(0);
    let rows = read_parquet(&place.path("out/part-00000.parquet"));
    let jobs: BTreeSet<String> = texts(&rows, "job").into_iter().flatten().collect();
    assert!(jobs.iter().any(|job| job.contains("other")), "{jobs:?}");
    // The attacker with the private record finds everybody again among at least k people.
    let linked = kanon(&place, &["link", "in.parquet", "out", "--individual", "who", "--format", "json"])
        .exit(0)
        .json();
    assert_eq!(linked["unique"].as_u64(), Some(0), "{linked}");
    assert!(linked["matched"].as_u64().unwrap() > 80, "{linked}");
}

#[test]
fn a_record_that_merges_otherwise_is_refused() {
    for method in ["auto", "mondrian"] {
        let place = scene(&MethodSpec::named(method), "names");
        kanon(&place, &["release", "in.parquet", "--policy", "p.toml", "--to", "out"]).exit(0);
        let path = place.path("out.private.json");
        let honest = fs::read_to_string(&path).unwrap();
        let (row, rare) =
            (r#"\"baker\";\"baker\""#, r#"\"RARE mayor\";\"RARE mayor\";\"RARE mayor\";\"RARE mayor\"\n"#);
        assert!(honest.contains(row));
        for forged in [
            honest.replacen(row, &format!("{rare}{row}"), 1),
            honest.replacen(row, r#"\"baker\";\"RARE mayor\""#, 1),
            honest.replacen("clerk", "clark", 1),
            honest.replacen("baker", "", 1),
        ] {
            assert_ne!(forged, honest);
            fs::write(&path, forged).unwrap();
            kanon(&place, &["verify", "out", "--input", "in.parquet"]).exit(1);
        }
        fs::write(&path, honest).unwrap();
        kanon(&place, &["verify", "out", "--input", "in.parquet"]).exit(0);
        // Without the record the same tree is made again where levels say what rows show.
        fs::remove_file(&path).unwrap();
        let alone = kanon(&place, &["verify", "out", "--input", "in.parquet", "--policy", "p.toml"]);
        alone.exit(if method == "auto" { 0 } else { 2 });
    }
}

#[test]
fn the_same_tree_whatever_the_order_of_rows_and_the_threads() {
    let place = scene(&MethodSpec::named("best"), "names");
    let table = people(true);
    let order: Vec<u32> = (0..u32::try_from(table.num_rows()).unwrap()).rev().collect();
    let reversed =
        arrow::compute::take_record_batch(&table, &arrow::array::UInt32Array::from(order)).unwrap();
    place.parquet("reversed.parquet", &reversed);
    let mut found = BTreeMap::new();
    for (input, threads) in [("in.parquet", "1"), ("in.parquet", "4"), ("reversed.parquet", "2")] {
        kanon(
            &place,
            &["release", input, "--policy", "p.toml", "--to", "out", "--overwrite", "--threads", threads],
        )
        .exit(0);
        let bytes = fs::read(place.path("out/part-00000.parquet")).unwrap();
        found.insert((json(&place, "out.private.json")["merged"].to_string(), bytes), threads);
    }
    assert_eq!(found.len(), 1);
}

#[test]
fn another_night_follows_the_same_tree() {
    for method in ["auto", "mondrian"] {
        let place = scene(&MethodSpec::named(method), "names");
        // The heavier job is shown, whatever the method.
        let policy = fs::read_to_string(place.path("p.toml")).unwrap();
        place.write("p.toml", policy.replace("job = { role", "job = { weight = 20, role"));
        kanon(&place, &["release", "in.parquet", "--policy", "p.toml", "--to", "out"]).exit(0);
        // Fewer rows of some, and a job that nobody had before.
        let table = people(false);
        let (keep, jobs) = (0..table.num_rows(), table.column_by_name("job").unwrap());
        let jobs = jobs.as_any().downcast_ref::<StringArray>().unwrap();
        let new =
            |row: usize| if row.is_multiple_of(31) { Some("NEW") } else { jobs.iter().nth(row).flatten() };
        let jobs: ArrayRef = Arc::new(keep.map(new).collect::<StringArray>());
        let columns = ["who", "job", "code", "sex"].map(|name| match name {
            "job" => (name, Arc::clone(&jobs), true),
            _ => (name, Arc::clone(table.column_by_name(name).unwrap()), true),
        });
        place.parquet("tonight.parquet", &RecordBatch::try_from_iter_with_nullable(columns).unwrap());
        kanon(&place, &["release", "tonight.parquet", "--recoding", "out.private.json", "--to", "again"])
            .exit(0);
        kanon(&place, &["verify", "again", "--input", "tonight.parquet"]).exit(0);
        kanon(&place, &["verify", "again", "--input", "in.parquet"]).exit(1);
        let rows = read_parquet(&place.path("again/part-00000.parquet"));
        assert!(texts(&rows, "job").iter().flatten().all(|job| !job.contains("NEW") && !job.contains(RARE)));
        let trees = ["out.private.json", "again.private.json"].map(|name| {
            let record = json(&place, name);
            let tree = record["merged"]["job"].as_str().unwrap();
            tree.lines().map(str::to_owned).collect::<BTreeSet<String>>()
        });
        assert!(trees[1].is_subset(&trees[0]), "{trees:?}");
        // A label of an edited tree is none of its own values.
        let path = place.path("out.private.json");
        let honest = fs::read_to_string(&path).unwrap();
        let tree = json(&place, "out.private.json")["merged"]["job"].as_str().unwrap().to_owned();
        let label = tree.split('"').find(|cell| cell.contains("..")).unwrap();
        let forged = honest.replace(label, &format!("{RARE} mayor..smith"));
        assert_ne!(forged, honest);
        fs::write(&path, forged).unwrap();
        kanon(&place, &["release", "in.parquet", "--recoding", "out.private.json", "--to", "third"])
            .exit(1)
            .says(
                "columns.job.hierarchy.merge: the tree of the earlier release is none that this rule makes",
            );
        assert!(!place.path("third").exists());
        let begin = honest.find("\"merged\"").unwrap();
        let end = begin + honest[begin..].find('}').unwrap();
        fs::write(&path, format!("{}\"merged\": {{}}{}", &honest[..begin], &honest[end + 1..])).unwrap();
        kanon(&place, &["release", "in.parquet", "--recoding", "out.private.json", "--to", "third"])
            .exit(1)
            .says("lacks the tree of a merged column");
        // An edited tree names no more than the rows of tonight allow.
        let path = place.path("again.private.json");
        let honest = fs::read_to_string(&path).unwrap();
        let value = trees[1].first().unwrap().split('"').nth(1).unwrap();
        let row = format!(r#"\"{value}\";\"{value}\""#);
        for forged in [
            honest.replacen(&row, &format!(r#"\"NEW\";\"NEW\";\"NEW\";\"NEW\"\n{row}"#), 1),
            honest.replacen(&format!(r#"\"{value}\""#), r#"\"barber\""#, 1),
        ] {
            assert_ne!(forged, honest);
            fs::write(&path, forged).unwrap();
            kanon(&place, &["verify", "again", "--input", "tonight.parquet"]).exit(1);
        }
        kanon(&place, &["link", "tonight.parquet", "again", "--individual", "who"])
            .exit(2)
            .says("the tree in the private record is none that this rule makes");
    }
}

#[test]
fn sql_and_the_other_commands_count_first_too() {
    let place = scene(&MethodSpec::named("auto"), "counts");
    kanon(&place, &["release", "in.parquet", "--policy", "p.toml", "--to", "out"]).exit(0);
    let released = read_parquet(&place.path("out/part-00000.parquet"));
    let mut expected: Vec<Option<String>> = texts(&released, "job");
    expected.sort();
    let query = "SELECT job FROM anonymize('in.parquet', 'p.toml') ORDER BY job NULLS FIRST";
    let found = kanon(&place, &["sql", "--format", "json", "-c", query]);
    let found = found
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["job"].as_str().map(str::to_owned))
        .collect::<Vec<_>>();
    assert_eq!(found, expected);
    let query =
        "SELECT count(*) AS nodes, count(DISTINCT classes) AS sizes FROM lattice('in.parquet', 'p.toml')";
    let nodes = kanon(&place, &["sql", "--format", "json", "-c", query]).exit(0).json();
    assert_eq!(nodes[0]["nodes"], 4 * 3 * 2);
    assert!(nodes[0]["sizes"].as_u64().unwrap() > 4);
    for command in [&["search"][..], &["check"], &["risk"]] {
        let ran = kanon(&place, &[command, &["in.parquet", "--policy", "p.toml"]].concat());
        assert!(ran.code <= 1 && !ran.out.contains(RARE), "{ran:?}");
    }
    place.write(
        "rare.csv",
        (0..20).map(|n| format!("{n},x{n}\n")).fold("who,name\n".to_owned(), |all, line| all + &line),
    );
    let rare = "k = 3\nothers = \"drop\"\n[columns]\nname = { role = \"quasi\", hierarchy = { merge = { levels = 2 } } }";
    place.write("rare.toml", rare);
    kanon(&place, &["search", "rare.csv", "--policy", "rare.toml"]).exit(2).says(
        "columns.name.hierarchy.merge: none of its 20 distinct values are held by 3 or more, so all would become `other`",
    );
    for (wrong, why) in [
        ("{ merge = 3 }", "columns.name.hierarchy.merge: expected a table"),
        ("{ merge = {} }", "columns.name.hierarchy.merge: the parameter `levels` is missing"),
        (
            "{ merge = { levels = 0 } }",
            "columns.name.hierarchy.merge.levels: expected an integer of at least 1, found 0",
        ),
        (
            "{ merge = { level = 1 } }",
            "columns.name.hierarchy.merge.level: unknown key; did you mean `levels`?",
        ),
        (
            "{ merge = { levels = 1 }, width = 3 }",
            "columns.name.hierarchy: `merge` has its options in a table of its own",
        ),
    ] {
        place.write("wrong.toml", rare.replace("{ merge = { levels = 2 } }", wrong));
        kanon(&place, &["search", "rare.csv", "--policy", "wrong.toml"]).exit(2).says(why);
    }
}

#[test]
fn the_file_of_the_rule_has_the_tree_of_a_release() {
    let place = scene(&MethodSpec::named("auto"), "names");
    kanon(&place, &["release", "in.parquet", "--policy", "p.toml", "--to", "out"]).exit(0);
    let tree = json(&place, "out.private.json")["merged"]["job"].as_str().unwrap().to_owned();
    place
        .run("hierarchy in.parquet job --by 'merge = { levels = 2 }' --k 4 --individual who --to job.csv")
        .exit(0);
    let file = fs::read_to_string(place.path("job.csv")).unwrap();
    let rows: BTreeSet<&str> = file.lines().collect();
    // A file also has the top, and a row for each value with few holders.
    for row in tree.lines().filter(|row| !row.contains("\"other values\"")) {
        assert!(rows.contains(format!("{row};\"*\"").as_str()), "{row}: {rows:?}");
    }
    let others: BTreeSet<&str> = rows
        .iter()
        .copied()
        .filter(|row| row.ends_with(r#";"other values";"other values";"other values";"*""#))
        .collect();
    assert_eq!(others.iter().filter(|row| row.contains(RARE)).count(), 3, "{others:?}");
    assert_eq!(rows.len(), tree.lines().count() + 2);
    // Rows are counted without an individual column, so nine rows of one mayor make the office frequent.
    place.run("hierarchy in.parquet job --by 'merge = { levels = 2 }' --k 4 --to rows.csv").exit(0);
    assert!(fs::read_to_string(place.path("rows.csv")).unwrap().contains(r#""RARE mayor";"RARE mayor""#));
    place.run("hierarchy check job.csv --input in.parquet").exit(0);
}

/// Writes a table of one column `v` with so many rows of each value.
fn values(place: &Place, rows: &[(&str, usize)]) {
    let cells = rows.iter().flat_map(|(value, rows)| std::iter::repeat_n(Some(*value), *rows));
    let column: ArrayRef = Arc::new(cells.collect::<StringArray>());
    let table = RecordBatch::try_from_iter_with_nullable([("v", column, true)]).unwrap();
    place.parquet("in.parquet", &table);
}

fn policy_of_v(k: u64, rest: &str, hierarchy: &str) -> String {
    format!(
        "k = {k}\nrows_are_individuals = true\n{rest}[columns]\nv = {{ role = \"quasi\", {hierarchy} }}\n"
    )
}

/// Returns how many rows of a release show each text.
fn shown(place: &Place, out: &str) -> BTreeMap<Option<String>, usize> {
    let rows = read_parquet(&place.path(&format!("{out}/part-00000.parquet")));
    let mut counts = BTreeMap::new();
    texts(&rows, "v").into_iter().for_each(|text| *counts.entry(text).or_default() += 1);
    counts
}

fn counts(rows: &[(&str, usize)]) -> BTreeMap<Option<String>, usize> {
    rows.iter().map(|(text, rows)| (Some((*text).to_owned()), *rows)).collect()
}

#[test]
fn rare_values_that_are_too_few_take_the_rarest_with_them() {
    let place = Place::new();
    values(&place, &[("q", 5), ("r", 4), ("s", 3), ("t", 1), ("u", 1)]);
    for (method, label) in [("auto", "other"), ("best", "other"), ("mondrian", "other")] {
        place.write(
            "p.toml",
            policy_of_v(3, &format!("method = \"{method}\"\n"), "hierarchy = { merge = { levels = 1 } }"),
        );
        kanon(&place, &["release", "in.parquet", "--policy", "p.toml", "--to", "out", "--overwrite"]).exit(0);
        assert_eq!(shown(&place, "out"), counts(&[("q", 5), ("r", 4), (label, 5)]), "{method}");
        kanon(&place, &["verify", "out", "--input", "in.parquet"]).exit(0);
    }
    // A tree that joins one more, or one less, is another one.
    let path = place.path("out.private.json");
    let honest = fs::read_to_string(&path).unwrap();
    let row = |value: &str| format!(r#"\"{value}\";\"{value}\";\"{value}\"\n"#);
    let more = honest.replacen(&row("r"), "", 1);
    let less = honest.replacen(&row("r"), &(row("r") + &row("s")), 1);
    for forged in [more, less] {
        assert_ne!(forged, honest);
        fs::write(&path, forged).unwrap();
        kanon(&place, &["verify", "out", "--input", "in.parquet"]).exit(1);
    }
    fs::write(&path, honest).unwrap();
    // Tonight t has become frequent, and s rare.
    values(&place, &[("q", 5), ("r", 4), ("s", 1), ("t", 3), ("u", 1)]);
    kanon(&place, &["release", "in.parquet", "--recoding", "out.private.json", "--to", "again"]).exit(0);
    kanon(&place, &["verify", "again", "--input", "in.parquet"]).exit(0);
    assert_eq!(shown(&place, "again"), counts(&[("q", 5), ("r", 4), ("other", 5)]));
}

#[test]
fn the_others_count_each_individual_once() {
    let place = Place::new();
    // x and y hold both t and u: four pairs of a rare value and a holder, but two people.
    let rows: String = [("q", 5), ("r", 4), ("s", 3)]
        .iter()
        .flat_map(|(value, people)| (0..*people).map(move |one| format!("{value}{one},{value}\n")))
        .chain(["x,t\n", "y,t\n", "x,u\n", "y,u\n"].map(str::to_owned))
        .collect();
    place.write("in.csv", format!("who,v\n{rows}"));
    let file =
        place.run("hierarchy in.csv v --by 'merge = { levels = 1 }' --k 3 --individual who").exit(0).out;
    assert_eq!(file.matches(r#""s";"other""#).count(), 1, "{file}");
    let policy = "k = 3\n[columns]\nwho = { role = \"individual\" }\n\
                  v = { role = \"quasi\", hierarchy = { merge = { levels = 1 } } }\n";
    place.write("p.toml", policy);
    kanon(&place, &["release", "in.csv", "--policy", "p.toml", "--to", "out"]).exit(0);
    kanon(&place, &["verify", "out", "--input", "in.csv"]).exit(0);
    assert_eq!(shown(&place, "out"), counts(&[("q", 5), ("r", 4), ("other", 7)]));
    // By rows t and u are enough together.
    let file = place.run("hierarchy in.csv v --by 'merge = { levels = 1 }' --k 3").exit(0).out;
    assert_eq!(file.matches(r#""s";"s""#).count(), 1, "{file}");
}

#[test]
fn losses_and_figures_count_the_values_of_the_input() {
    let place = Place::new();
    values(&place, &[("a", 4), ("b", 4), ("c", 1), ("d", 1), ("e", 1)]);
    place.run("hierarchy in.parquet v --by 'merge = { levels = 1 }' --k 3 --to v.csv").exit(0);
    place.write("merged.toml", policy_of_v(3, "", "hierarchy = { merge = { levels = 1 } }"));
    place.write("file.toml", policy_of_v(3, "", "hierarchy = { file = \"v.csv\" }, min_level = 1"));
    let found = |policy: &str, compare: &[&str]| {
        kanon(&place, &[&["search", "in.parquet", "--policy", policy, "--format", "json"], compare].concat())
            .exit(0)
            .json()
    };
    let best = |policy: &str| found(policy, &[])["best"][0]["measures"].clone();
    let losses = best("merged.toml");
    let expected = 3.0 * (3.0 - 1.0) / (5.0 - 1.0) / 11.0;
    assert!((losses["granularity"].as_f64().unwrap() - expected).abs() < 1e-12, "{losses}");
    for (name, of_file) in best("file.toml").as_object().unwrap() {
        let difference = losses[name].as_f64().unwrap() - of_file.as_f64().unwrap();
        assert!(difference.abs() < 1e-9, "{name}: {losses}, {of_file}");
    }
    let line = kanon(&place, &["search", "in.parquet", "--policy", "merged.toml"]).exit(0).out;
    assert!(line.contains("granularity 0.136364") && line.contains("v frequent or other"), "{line}");
    for (policy, level) in [("merged.toml", 0), ("file.toml", 1)] {
        let released =
            kanon(&place, &["release", "in.parquet", "--policy", policy, "--to", "out", "--overwrite"])
                .exit(0)
                .out;
        assert!(!released.contains("costs     nothing") && !released.contains("as is"), "{released}");
        assert!(released.contains("a value of v covers on average 14 % of its domain"), "{released}");
        assert_eq!(json(&place, "out/_kanon.json")["recoding"]["levels"][0]["level"], level);
    }
    let utility = |policy: &str, method: &str| {
        let compared = found(policy, &["--compare"]);
        let methods = compared["methods"].as_array().unwrap().clone();
        let one = methods.iter().find(|one| one["method"] == method).unwrap().clone();
        one["found"]["utility"]["columns"].clone()
    };
    // The bits that three of eleven rows lose, of those of all values.
    let bits = |rows: f64| -rows / 11.0 * (rows / 11.0).log2();
    let kept = 1.0 - 3.0 * 3f64.log2() / 11.0 / (2.0 * bits(4.0) + 3.0 * bits(1.0));
    for method in ["auto", "clusters"] {
        let found = utility("merged.toml", method);
        assert!((found[0]["information_kept"].as_f64().unwrap() - kept).abs() < 1e-6, "{method}: {found}");
    }
    assert_eq!(utility("merged.toml", "auto"), utility("file.toml", "auto"));
    // Without a rare value nothing is lost.
    values(&place, &[("a", 4), ("b", 4), ("c", 3)]);
    let losses = best("merged.toml");
    assert!(
        ["granularity", "height", "precision_loss", "non_uniform_entropy"]
            .iter()
            .all(|loss| losses[*loss] == 0.0)
    );
}

#[test]
fn a_label_is_no_value_of_the_column() {
    let place = Place::new();
    let rows = [("other", 4), ("a", 5), ("other values", 7), ("c", 2), ("d", 2)];
    let expected = |label: &str| counts(&[("other", 4), ("a", 5), ("other values", 7), (label, 4)]);
    for method in ["auto", "mondrian"] {
        for (key, label) in [("", "other values 2"), (", label = \"the rest\"", "the rest")] {
            values(&place, &rows);
            let hierarchy = format!("hierarchy = {{ merge = {{ levels = 1{key} }} }}");
            place.write("p.toml", policy_of_v(4, &format!("method = \"{method}\"\n"), &hierarchy));
            let said =
                kanon(&place, &["release", "in.parquet", "--policy", "p.toml", "--to", "out", "--overwrite"])
                    .exit(0)
                    .out;
            assert!(
                said.contains(&format!("labels    `{label}` stands for the values of `v` that few hold")),
                "{said}"
            );
            assert_eq!(shown(&place, "out"), expected(label), "{method}");
            kanon(&place, &["verify", "out", "--input", "in.parquet"]).exit(0);
            let page = kanon(&place, &["explain", "out"]).exit(0).out;
            assert!(page.contains(&format!("`{label}` stands for the values that few hold")), "{page}");
            let link = || kanon(&place, &["link", "in.parquet", "out", "--format", "json"]);
            let found = link().exit(0).json();
            assert_eq!((&found["unique"], &found["matched"]), (&0.into(), &20.into()), "{found}");
            let honest = fs::read_to_string(place.path("out.private.json")).unwrap();
            for wrong in ["other", "c", "other values"] {
                let forged = honest.replace(label, wrong);
                assert_ne!(forged, honest);
                fs::write(place.path("out.private.json"), forged).unwrap();
                assert_ne!(kanon(&place, &["verify", "out", "--input", "in.parquet"]).code, 0);
            }
            fs::write(place.path("out.private.json"), honest).unwrap();
            // Nor does a reader of the texts alone take the label for a value.
            if method == "mondrian" {
                fs::rename(place.path("out.private.json"), place.path("away.json")).unwrap();
                let alone = link().exit(0).json();
                assert_eq!(alone["read_as_texts"], serde_json::json!(["v"]));
                assert_eq!(
                    (&alone["unique"], &alone["histogram"]),
                    (&0.into(), &found["histogram"]),
                    "{alone}"
                );
                fs::rename(place.path("away.json"), place.path("out.private.json")).unwrap();
            }
            // Tonight nobody has the values that were labels, and the label stays.
            values(&place, &[("a", 5), ("c", 2), ("f", 2)]);
            kanon(
                &place,
                &["release", "in.parquet", "--recoding", "out.private.json", "--to", "again", "--overwrite"],
            )
            .exit(0);
            kanon(&place, &["verify", "again", "--input", "in.parquet"]).exit(0);
            assert_eq!(shown(&place, "again"), counts(&[("a", 5), (label, 4)]), "{method}");
        }
    }
    values(&place, &rows);
    let file = place.run("hierarchy in.parquet v --by 'merge = { levels = 1 }' --k 4").exit(0).out;
    assert_eq!(file.matches(r#";"other values 2";"#).count(), 2, "{file}");
    assert!(file.contains(r#""other";"other";"#), "{file}");
    let said = kanon(&place, &["search", "in.parquet", "--policy", "p.toml"]).exit(0).out;
    assert!(said.contains("labels    `the rest` stands for the values of `v` that few hold"), "{said}");
    for (label, why) in [
        ("d", "columns.v.hierarchy.merge: label: is a value of the column; choose another text"),
        ("a", "columns.v.hierarchy.merge: label: is a value of the column; choose another text"),
        ("", "columns.v.hierarchy.merge.label: expected a text that is not empty"),
        ("*", "columns.v.hierarchy.merge: label: expected a text other than `*`"),
    ] {
        let hierarchy = format!("hierarchy = {{ merge = {{ levels = 1, label = \"{label}\" }} }}");
        place.write("wrong.toml", policy_of_v(4, "", &hierarchy));
        kanon(&place, &["search", "in.parquet", "--policy", "wrong.toml"]).exit(2).says(why);
    }
}

#[test]
fn texts_like_those_of_regions_are_told_from_them() {
    let place = Place::new();
    let all = ["*", "a", "b", "{a; b}", "a or missing", "a..b", "a*", "[1,2]", "<=3", "other", "\\*"];
    let rows: Vec<(&str, usize)> = all.iter().map(|value| (*value, 4)).collect();
    values(&place, &rows);
    for (method, hierarchy) in [
        ("clusters", "hierarchy = { merge = { levels = 1 } }"),
        ("mondrian", "hierarchy = { prefix = [1] }"),
        ("clusters", "weight = 1"),
    ] {
        place.write("p.toml", policy_of_v(4, &format!("method = \"{method}\"\n"), hierarchy));
        kanon(&place, &["release", "in.parquet", "--policy", "p.toml", "--to", "out", "--overwrite"]).exit(0);
        kanon(&place, &["verify", "out", "--input", "in.parquet"]).exit(0);
        let shown = shown(&place, "out");
        // Each value is a class of its own, and the texts of regions have a mark.
        assert_eq!(shown.len(), all.len(), "{method}: {shown:?}");
        let has = |text: &str| shown.contains_key(&Some(text.to_owned()));
        assert!(
            has("\\*") && has("\\{a; b}") && has("\\\\*") && !has("*") && !has("{a; b}"),
            "{method}: {shown:?}"
        );
    }
    // Where a column has one level, the record says which.
    place.write("p.toml", policy_of_v(4, "", "hierarchy = { merge = { levels = 1 } }"));
    kanon(&place, &["release", "in.parquet", "--policy", "p.toml", "--to", "out", "--overwrite"]).exit(0);
    assert_eq!(shown(&place, "out"), counts(&rows));
}
