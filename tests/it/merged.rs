//! `merge`: hierarchies that a run makes of a column's values, through every method, SQL and the commands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion_kanon::method::{MethodSpec, Shows, variants};
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
        |method: &MethodSpec| !matches!(method.shows(), Ok(Shows::Centroids(_) | Shows::Groups));
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
            let expected = ["baker", "clerk", "cook", "driver", "miner", "nurse", "other", "smith"];
            assert_eq!(listed, BTreeSet::from(expected), "{method} {by}");
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
        let row = r#"\"baker\";\"baker\""#;
        fs::write(&path, honest.replacen(row, &format!(r#"\"NEW\";\"NEW\";\"NEW\";\"NEW\"\n{row}"#), 1))
            .unwrap();
        kanon(&place, &["verify", "again", "--input", "tonight.parquet"]).exit(1);
        fs::write(&path, honest.replacen(r#"\"baker\""#, r#"\"barber\""#, 1)).unwrap();
        kanon(&place, &["verify", "again", "--input", "tonight.parquet"]).exit(1);
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
    for row in tree.lines().filter(|row| !row.contains("\"other\"")) {
        assert!(rows.contains(format!("{row};\"*\"").as_str()), "{row}: {rows:?}");
    }
    let others: BTreeSet<&str> =
        rows.iter().copied().filter(|row| row.ends_with(r#";"other";"other";"other";"*""#)).collect();
    assert_eq!(others.iter().filter(|row| row.contains(RARE)).count(), 3, "{others:?}");
    assert_eq!(rows.len(), tree.lines().count() + 3);
    // Rows are counted without an individual column, so nine rows of one mayor make the office frequent.
    place.run("hierarchy in.parquet job --by 'merge = { levels = 2 }' --k 4 --to rows.csv").exit(0);
    assert!(fs::read_to_string(place.path("rows.csv")).unwrap().contains(r#""RARE mayor";"RARE mayor""#));
    place.run("hierarchy check job.csv --input in.parquet").exit(0);
}
