//! People with many rows: sizes, models, limits and risks count them, not rows.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use datafusion_kanon::internals::engine::{Resources, Run};
use datafusion_kanon::internals::generalize::Ends;
use datafusion_kanon::internals::input::{Input, PolicySource, open};
use datafusion_kanon::internals::method::Problem;
use datafusion_kanon::internals::method::lattice::exhaustive::for_every_node;
use datafusion_kanon::internals::method::lattice::{Effort, Lattice, Options};
use datafusion_kanon::internals::policy::{Folder, PolicySpec};
use datafusion_kanon::internals::progress::{CancelToken, Silent};
use datafusion_kanon::internals::release::profile_classes;
use datafusion_kanon::internals::release::publish::record::{PublicRecord, recorded};
use serde_json::Value;

use crate::command::{Place, table};

fn numbers(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

fn strings<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

const POLICY: &str = r#"
    k = 3
    [columns]
    who  = { role = "individual" }
    age  = { role = "quasi", hierarchy = { range = [10] } }
    zip  = { role = "quasi", hierarchy = { prefix = [2] } }
    stay = { role = "insensitive", allow_unique = true }
"#;

/// Three people with two rows each, all six in classes of their own.
fn six_visits() -> RecordBatch {
    table([
        ("who", numbers([1, 1, 2, 2, 3, 3].map(Some))),
        ("age", numbers([21, 22, 23, 24, 25, 26].map(Some))),
        ("zip", strings(["021", "022", "023", "024", "025", "026"].map(Some))),
        ("stay", numbers((1..=6).map(Some))),
    ])
}

/// Commands that see rows alone say so in one line, with the number that the release counts; the
/// page of the board says why its figures differ.
#[test]
fn figures_in_rows_say_so() {
    let place = Place::new();
    place.parquet("in.parquet", &six_visits());
    place.write("p.toml", POLICY);
    place.run("release in.parquet --policy p.toml --to out").exit(0);
    let note = "note      counted in rows, because no released row says whose it is; the release counts 3 individuals, who may have \
                several rows: kanon explain out shows its figures\n";
    for line in ["risk out", "verify out", "link in.parquet out", "check out --k 3"] {
        let text = place.run(line).exit(0).out;
        assert_eq!(text.matches(note).count(), 1, "{line}: {text}");
        assert!(!text.contains("people") && !text.contains("person"), "{line}: {text}");
    }
    let text = place.run("verify out").exit(0).out;
    let alone = "verified  the released rows, not the individuals: only the input says whose a row is. The lines `recorded` repeat \
                 the record, which the rows do not contradict; --input INPUT recounts them\n";
    assert!(text.contains(alone) && !text.contains("by themselves"), "{text}");
    let text = place.run("verify out --input in.parquet").exit(0).out;
    assert!(text.contains("verified  against the input") && !text.contains("counted in rows"), "{text}");
    let page = place.run("explain out").exit(0).out;
    for part in [
        "Other commands and the record say class for group, and individuals for people.",
        "`kanon verify`, `kanon risk` and `kanon link` count rows, because no released row says whose it is",
    ] {
        assert_eq!(page.matches(part).count(), 1, "{page}");
    }

    // Where rows are individuals, nothing differs.
    place.write("rows.toml", POLICY.replace("who  = { role = \"individual\" }", "who = { role = \"text\" }"));
    place.run("release in.parquet --policy rows.toml --to rows").exit(0);
    for line in ["risk rows", "verify rows", "link in.parquet rows", "check rows --k 3", "explain rows"] {
        let text = place.run(line).exit(0).out;
        assert!(!text.contains("no released row says"), "{line}: {text}");
    }
}

#[test]
fn six_rows_of_three_people_are_three() {
    let place = Place::new();
    place.parquet("in.parquet", &six_visits());
    place.write("p.toml", POLICY);
    // One class of six rows, but of three people.
    place.write("four.toml", POLICY.replace("k = 3", "k = 4"));
    let refused = "k_anonymity(4) cannot be met: the input has only 3 individuals";
    place.run("release in.parquet --policy four.toml --to out").exit(1).says(refused);
    let released =
        place.run("release in.parquet --policy p.toml --to out --format json").exit(0).json()["public"]
            .clone();
    assert_eq!(
        (&released["tables"][0]["rows"], &released["individuals"], &released["classes"]),
        (&6.into(), &3.into(), &1.into())
    );
    assert_eq!(
        (&released["counted_in"], &released["models"][0]["reached"]),
        (&"individuals".into(), &3.into())
    );
    assert_eq!(released["risk"]["prosecutor_risk_max"].as_f64().unwrap(), 0.333_333_333_333);
    let names: Vec<&str> = released["tables"][0]["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["age", "zip", "stay"]);
    let verified = place.run("verify out --input in.parquet --format json").exit(0).json();
    assert_eq!((&verified["individuals"], &verified["suppressed_individuals"]), (&3.into(), &0.into()));
    let alone = place.run("verify out").exit(0);
    assert!(alone.out.contains("not the individuals: only the input says whose a row is"), "{alone:?}");

    let check = |line: &str, code: i32| {
        place.run(&format!("check in.parquet {line} --format json")).exit(code).json()
    };
    let by_person = check("--quasi zip --individual who --k 2", 1);
    assert_eq!(
        (&by_person["rows"], &by_person["individuals"], &by_person["classes"]),
        (&6.into(), &3.into(), &6.into())
    );
    assert_eq!(by_person["models"][0]["reached"], 1);
    let risk = place.run("risk in.parquet --quasi age,zip --individual who --format json").exit(0).json();
    // Everybody is alone in both of their classes.
    assert_eq!((&risk["individuals"], &risk["classes"], &risk["k"]), (&3.into(), &6.into(), &1.into()));
    assert_eq!(risk["histogram"], serde_json::json!([{ "size": 1, "classes": 6, "individuals": 3 }]));
    assert_eq!(
        (&risk["risk"]["sample_uniqueness"], &risk["risk"]["prosecutor_risk_mean"]),
        (&1.into(), &1.into())
    );
    assert_eq!(risk["risk"]["expected_reidentifications"], 3);
    place
        .run("check in.parquet --quasi zip --individual zip --k 2")
        .exit(2)
        .says("named as a quasi-identifier too");
    place.run("check in.parquet --quasi zip --individual nobody --k 2").exit(2).says("no column `nobody`");
    place.run("check in.parquet --policy p.toml --individual who").exit(2).says("cannot be used with");
}

#[test]
fn two_people_who_share_both_values_are_not_diverse() {
    let place = Place::new();
    // A = {1: HIV, 2: flu}, B = {1: flu, 2: HIV}: each is diverse, and merged everybody has both.
    place.parquet(
        "in.parquet",
        &table([
            ("who", numbers([1, 2, 1, 2].map(Some))),
            ("age", numbers([21, 21, 35, 35].map(Some))),
            ("problem", strings(["HIV", "flu", "flu", "HIV"].map(Some))),
        ]),
    );
    let policy = "k = 2\n[[require]]\nmodel = \"l_diversity\"\nl = 2\n[columns]\nwho = { role = \"individual\" }\n\
                  problem = { role = \"sensitive\", allow_unique = true }\nage = { role = \"quasi\" }\n";
    place.write("p.toml", policy);
    place.write("merged.toml", policy.replace("\"quasi\"", "\"quasi\", min_level = 1"));
    let released =
        place.run("release in.parquet --policy p.toml --to out --format json").exit(0).json()["public"]
            .clone();
    assert_eq!((&released["classes"], &released["models"][1]["reached"]), (&2.into(), &2.into()));
    assert_eq!(
        released["homogeneous"],
        serde_json::json!([{ "column": "problem", "classes": 0, "individuals": 0 }])
    );
    let refused = "no combination of levels satisfies k_anonymity(2), l_diversity(2, problem) with at most 0 suppressed \
                   individuals";
    place.run("release in.parquet --policy merged.toml --to no").exit(1).says(refused);
    let found = place.run("search in.parquet --policy p.toml --minimal --format json").exit(0).json();
    assert_eq!(found["minimal"][0]["distance"], serde_json::json!([0]));

    // A forger who merges the classes is found out: by the input, which alone tells whose rows they are.
    let weak = policy
        .replace("\"quasi\"", "\"quasi\", min_level = 1")
        .replace("[[require]]\nmodel = \"l_diversity\"\nl = 2\n", "");
    place.write("weak.toml", weak.replace("k = 2", "k = 2\naccept_homogeneity = [\"problem\"]"));
    place.run("release in.parquet --policy weak.toml --to weak").exit(0);
    let shared = place.run("verify weak --input in.parquet --format json").exit(0).json();
    let all = serde_json::json!([{ "column": "problem", "classes": 1, "individuals": 2 }]);
    assert_eq!(shared["homogeneous"], all);
    let text = place.run("verify weak --input in.parquet").exit(0).out;
    assert!(
        text.contains("shared    `problem`: 1 homogeneous class with 2 individuals gives its value away"),
        "{text}"
    );
    let checked = place.run("check in.parquet --policy p.toml --format json").exit(0).json();
    assert_eq!(checked["homogeneous"][0]["classes"], 0);
    place
        .run("verify weak --input in.parquet --policy merged.toml")
        .exit(1)
        .says("the models of the record are not");
}

#[test]
fn the_limit_counts_people_and_nobody_is_free() {
    let place = Place::new();
    // Five people in one class; 6 has rows there and alone elsewhere; two rows are nobody's.
    let who = [Some(1), Some(2), Some(3), Some(4), Some(5), Some(6), Some(6), Some(6), None, None];
    let zip = ["a", "a", "a", "a", "a", "a", "b", "c", "b", "a"];
    place.parquet("in.parquet", &table([("who", numbers(who)), ("zip", strings(zip.map(Some)))]));
    let policy = "k = 5\nsuppression_limit = LIMIT\n[columns]\nwho = { role = \"individual\" }\nzip = { role = \"quasi\", max_level = 0 }\n";
    place.write("some.toml", policy.replace("LIMIT", "0.17"));
    place.write("none.toml", policy.replace("LIMIT", "0.16"));
    // One of six is more than 16 % and less than 17 %: two of ten rows would be too many, three rows go.
    place
        .run("release in.parquet --policy none.toml --to out")
        .exit(1)
        .says("with at most 0 suppressed individuals");
    let found = place.run("search in.parquet --policy some.toml --format json").exit(0).json();
    let best = &found["best"][0];
    assert_eq!((&best["suppressed_rows"], &best["suppressed_individuals"]), (&3.into(), &1.into()));
    assert_eq!((&best["min_class"], &best["classes"]), (&6.into(), &1.into()));
    let released =
        place.run("release in.parquet --policy some.toml --to out --format json").exit(0).json()["public"]
            .clone();
    // The row of nobody in a class that holds is released; the people of the release are six.
    assert_eq!((&released["tables"][0]["rows"], &released["individuals"]), (&7.into(), &6.into()));
    let text = place.run("release in.parquet --policy some.toml --to out --overwrite").exit(0).out;
    let suppressed = "suppressed 3 rows of 1 individual, 1 row without one (17 % of individuals, 30 % of rows, limit 17 %: 1 \
                      individual)";
    assert!(text.contains(suppressed), "{text}");
    let found = place.run("search in.parquet --policy some.toml").exit(0).out;
    assert!(found.contains("suppressed 3 rows of 1 individual or of none (17 %)"), "{found}");
    place.run("verify out --input in.parquet").exit(0);
    place
        .run("verify out --input in.parquet --policy none.toml")
        .exit(1)
        .says("1 individual is suppressed, at most 0");

    let nobody = table([("who", numbers([None, None])), ("zip", strings([Some("a"), Some("a")]))]);
    place.parquet("nobody.parquet", &nobody);
    let empty = "column `who`: the individual is NULL in every row";
    place.run("release nobody.parquet --policy some.toml --to no").exit(3).says(empty);
}

/// Rows that one person has five times do not hide: smuggled into a release they look like a class of five.
#[test]
fn a_class_of_one_person_is_found_out_by_the_input() {
    let place = Place::new();
    let who: Vec<Option<i64>> = (0..10).map(Some).chain([Some(99); 5]).collect();
    let zip = (0..15).map(|row| Some(if row < 10 { "a" } else { "b" }));
    place.parquet("in.parquet", &table([("who", numbers(who)), ("zip", strings(zip))]));
    let policy = "k = 5\nsuppression_limit = 0.2\n[columns]\nwho = { role = \"individual\" }\nzip = { role = \"quasi\", max_level = 0 }\n";
    place.write("p.toml", policy);
    let by_rows = policy.replace("role = \"individual\"", "role = \"identifier\"");
    place.write("rows.toml", by_rows.replace("k = 5", "k = 5\nrows_are_individuals = true"));
    let released =
        place.run("release in.parquet --policy p.toml --to out --format json").exit(0).json()["public"]
            .clone();
    assert_eq!((&released["tables"][0]["rows"], &released["classes"]), (&10.into(), &1.into()));
    let weak =
        place.run("release in.parquet --policy rows.toml --to weak --format json").exit(0).json()["public"]
            .clone();
    assert_eq!((&weak["tables"][0]["rows"], &weak["classes"]), (&15.into(), &2.into()));
    // The rows of the weak release under the name and with the record of a release that counts people.
    let mut record: PublicRecord =
        serde_json::from_slice(&fs::read(place.path("weak/_kanon.json")).unwrap()).unwrap();
    record.counted_in = "individuals".into();
    record.individuals = Some(11);
    record.unique.of = 11;
    let statement = record.statement.as_mut().unwrap();
    statement.rows_are_individuals = false;
    let left_out = statement.left_out.remove("identifier").unwrap();
    statement.left_out.insert("individual".into(), left_out);
    record.risk.insert("prosecutor_risk_mean".into(), recorded(2.0 / 11.0));
    fs::write(place.path("weak/_kanon.json"), record.sealed().unwrap().to_json().unwrap()).unwrap();
    place.run("verify weak").exit(0);
    place
        .run("verify weak --input in.parquet --policy p.toml")
        .exit(1)
        .says("1 class fails a required model");
}

/// A small random table, the same for the same seed.
fn random(seed: u64) -> RecordBatch {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        i64::try_from(state % n).unwrap()
    };
    let rows = 5 + below(60);
    let people = u64::try_from(2 + below(25)).unwrap();
    let row = |_| (below(people + 2), below(8), below(30), below(3), below(4));
    let rows: Vec<_> = (0..rows).map(row).collect();
    let zips = ["0213", "0214", "0999", "10", "", "1000", "2"];
    table([
        ("who", numbers(rows.iter().map(|row| (row.0 > 1).then_some(row.0)))),
        ("zip", strings(rows.iter().map(|row| zips.get(usize::try_from(row.1).unwrap()).copied()))),
        ("age", numbers(rows.iter().map(|row| (row.2 > 1).then_some(15 + row.2)))),
        ("sex", strings(rows.iter().map(|row| ["f", "m"].get(usize::try_from(row.3).unwrap()).copied()))),
        (
            "problem",
            strings(
                rows.iter().map(|row| ["flu", "HIV", "gout"].get(usize::try_from(row.4).unwrap()).copied()),
            ),
        ),
    ])
}

const RANDOM_POLICY: &str = r#"
    k = 2
    suppression_limit = 0.3
    [[require]]
    model = "l_diversity"
    l = 2
    [columns]
    who     = { role = "individual" }
    zip     = { role = "quasi", hierarchy = { prefix = [3, 1] } }
    age     = { role = "quasi", hierarchy = { floor = [5, 20] } }
    sex     = { role = "quasi" }
    problem = { role = "sensitive", allow_unique = true }
"#;

/// Every node against SQL on generalized rows: `count(DISTINCT who)`, and the search against all nodes.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_what_count_distinct_says() {
    let place = Place::new();
    place.write("p.toml", RANDOM_POLICY);
    let resources = Resources { threads: 2, memory: 1 << 28, spill: None };
    let run = Run { resources, ..Run::default() };
    let mut found_some = 0;
    for seed in 1..=6 {
        place.parquet("in.parquet", &random(seed));
        let path = place.path("in.parquet");
        let input = Input::find(path.to_str().unwrap()).unwrap();
        let said = PolicySpec::parse(RANDOM_POLICY).unwrap();
        let loaded =
            open(&run, &input, &PolicySource { spec: &said, files: &Folder(".".into()) }).await.unwrap();
        let Ok(classes) = profile_classes(&run, &loaded).await else { continue };
        let policy = &loaded.policy;
        let options = Options { effort: Some(Effort::Nodes(1)), ..policy.options(1) };
        let problem = Problem {
            table: &classes,
            requirements: &policy.requirements,
            objective: policy.spec.objective(),
            ends: Ends::Values,
            limit: u64::MAX,
            threads: 1,
            progress: &Silent,
            stop: &CancelToken::default(),
        };
        let mut nodes = Vec::new();
        for_every_node(Lattice { problem: &problem, options: &options }, &mut |node| {
            nodes.push((
                node.levels().to_vec(),
                node.suppressed_rows(),
                node.suppressed_individuals(),
                node.min_class(),
                node.kept_classes(),
            ));
        })
        .unwrap();
        let session = SessionContext::new();
        datafusion_kanon::internals::sql::register_all(&session).unwrap();
        session.register_parquet("t", path.to_str().unwrap(), ParquetReadOptions::default()).await.unwrap();
        let mut anonymous = BTreeSet::new();
        for (levels, suppressed_rows, suppressed_people, min_class, kept_classes) in &nodes {
            let zip = ["zip", "generalize_prefix(zip, 3)", "generalize_prefix(zip, 1)", "'*'"][levels[0]];
            let age = ["age", "generalize_floor(age, 5)", "generalize_floor(age, 20)", "NULL"][levels[1]];
            let sex = ["sex", "'*'"][levels[2]];
            // Which classes fail: too few people, too few problems, or a problem that too many have.
            let sql = format!(
                "WITH g AS (SELECT who, problem, {zip} AS z, {age} AS a, {sex} AS s FROM t),
                 sizes AS (SELECT z, a, s, count(DISTINCT who) AS n, count(*) AS r FROM g GROUP BY z, a, s),
                 counts AS (SELECT z, a, s, problem, count(DISTINCT who) AS c FROM g
                            WHERE who IS NOT NULL AND problem IS NOT NULL GROUP BY z, a, s, problem),
                 shared AS (SELECT z, a, s, count(*) AS d, max(c) AS m FROM counts GROUP BY z, a, s),
                 judged AS (SELECT sizes.*, sizes.n >= 2 AND coalesce(d, 0) >= 2 AND coalesce(m, 0) <= sizes.n - 1 AS k
                            FROM sizes LEFT JOIN shared ON (sizes.z IS NOT DISTINCT FROM shared.z)
                            AND (sizes.a IS NOT DISTINCT FROM shared.a) AND (sizes.s IS NOT DISTINCT FROM shared.s))
                 SELECT coalesce((SELECT sum(r) FROM judged WHERE NOT k), 0),
                        (SELECT count(DISTINCT who) FROM g JOIN judged ON (g.z IS NOT DISTINCT FROM judged.z)
                         AND (g.a IS NOT DISTINCT FROM judged.a) AND (g.s IS NOT DISTINCT FROM judged.s) WHERE NOT k),
                        (SELECT min(n) FROM judged WHERE k), (SELECT count(*) FROM judged WHERE k)"
            );
            let rows = session.sql(&sql).await.unwrap().collect().await.unwrap();
            let cell = |column: usize| {
                let values = rows[0].column(column).as_primitive::<Int64Type>();
                (!values.is_null(0)).then(|| u64::try_from(values.value(0)).unwrap())
            };
            assert_eq!(
                (Some(*suppressed_rows), Some(*suppressed_people), *min_class, Some(*kept_classes)),
                (cell(0), cell(1), cell(2), cell(3)),
                "seed {seed} at {levels:?}"
            );
            let limit = policy.spec.suppression_limit().floor_of(classes.total_individuals());
            if *suppressed_people <= limit {
                anonymous.insert(levels.clone());
            }
        }
        // The search says the same as all nodes; its release is verified, which counts in its own way.
        for method in ["optimal", "exhaustive"] {
            place.write("m.toml", format!("method = \"{method}\"\n{RANDOM_POLICY}"));
            let code = i32::from(anonymous.is_empty());
            let found =
                place.run("search in.parquet --policy m.toml --top 500 --format json").exit(code).json();
            let levels = |best: &Value| -> Vec<usize> {
                ["zip", "age", "sex"]
                    .map(|name| usize::try_from(best["levels"][name].as_u64().unwrap()).unwrap())
                    .to_vec()
            };
            let best: BTreeSet<Vec<usize>> = found["best"].as_array().unwrap().iter().map(levels).collect();
            assert_eq!(best, anonymous, "seed {seed}, {method}");
        }
        let ran = place.run("release in.parquet --policy p.toml --to out --overwrite");
        if ran.code == 0 {
            found_some += 1;
            place.run("verify out --input in.parquet").exit(0);
        } else {
            assert!(anonymous.is_empty() || ran.err.contains("would be empty"), "seed {seed}: {ran:?}");
        }
    }
    assert!(found_some > 1, "only {found_some} releases");
}
