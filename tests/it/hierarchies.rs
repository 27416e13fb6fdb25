//! Releases with every kind of hierarchy, end to end: the labels that come out, their verification,
//! the same bytes for any number of threads, and a search that finds what looking at every node
//! finds.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use datafusion_kanon::internals::release::publish::record::PublicRecord;

use crate::command::{Place, table, texts};

const ROWS: i64 = 400;
const TOWNS: [&str; 5] = ["Boston", "Cambridge", "Olympia", "a;b", "town"];

fn people() -> RecordBatch {
    let rows = || 0..ROWS;
    let maybe = |n: i64| (n % 17 > 0).then_some(n);
    let ages = rows().map(|n| maybe(n).map(|n| 15 + n * 7 % 80));
    let zips = rows().map(|n| maybe(n).map(|n| format!("0{:04}", 2_130 + n % 4 * 100 + n % 9)));
    let codes = rows().map(|n| ["A1", "A12345", "B2", "Ł1x", "Z"][n as usize % 5]);
    let prices = Decimal128Array::from_iter(rows().map(|n| maybe(n).map(|n| i128::from(n * 129 % 5_000))));
    table([
        (
            "bmi",
            Arc::new(
                rows()
                    .map(|n| maybe(n).map(|n| 15.0 + (n * 37 % 300) as f64 / 10.0))
                    .collect::<Float64Array>(),
            ) as ArrayRef,
        ),
        ("age", Arc::new(ages.collect::<Int64Array>())),
        (
            "income",
            Arc::new(rows().map(|n| maybe(n).map(|n| (n * 11 % 60 - 5) as i32)).collect::<Int32Array>()),
        ),
        ("zip", Arc::new(zips.collect::<StringArray>())),
        ("code", Arc::new(StringArray::from_iter_values(codes))),
        ("town", Arc::new(StringArray::from_iter_values(rows().map(|n| TOWNS[n as usize % 5])))),
        ("visits", Arc::new(rows().map(|n| maybe(n).map(|n| n % 12)).collect::<Int64Array>())),
        ("price", Arc::new(prices.with_precision_and_scale(9, 2).unwrap())),
        (
            "disease",
            Arc::new(StringArray::from_iter_values(rows().map(|n| ["flu", "gout", "HIV"][n as usize % 3]))),
        ),
    ])
}

/// A folder with the people as Parquet and as CSV, and a hierarchy of towns in Parquet.
fn place() -> Place {
    let place = Place::new();
    let people = people();
    place.parquet("in.parquet", &people);
    let names: Vec<String> = people.schema().fields().iter().map(|field| field.name().clone()).collect();
    let columns: Vec<Vec<String>> = names.iter().map(|name| texts(&people, name)).collect();
    let mut csv = names.join(",") + "\n";
    for row in 0..people.num_rows() {
        let cells = columns.iter().map(|column| if column[row] == "-" { "" } else { column[row].as_str() });
        csv += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    place.write("in.csv", csv);
    let labels = |of: &dyn Fn(usize) -> &'static str| {
        Arc::new(StringArray::from_iter_values((0..5).map(of))) as ArrayRef
    };
    let towns = table([
        // The value `town` stands first and is no header.
        ("town", labels(&|n| TOWNS[4 - n])),
        ("state", labels(&|n| ["Texas", "Maine", "Washington", "Massachusetts", "Massachusetts"][n])),
    ]);
    place.parquet("towns.parquet", &towns);
    place
}

fn policy(lines: &str, columns: &str) -> String {
    format!(
        "{lines}\nrows_are_individuals = true\naccept_homogeneity = [\"disease\"]\nothers = \"drop\"\n[columns]\n\
         {columns}\ndisease = {{ role = \"sensitive\" }}\n"
    )
}

/// A column, how it is generalized, what its level 1 (0 for a bare clip) is called, and the labels
/// that come out.
const COLUMNS: [(&str, &str, &str, &[&str]); 10] = [
    (
        "bmi",
        "hierarchy = { bands = [[18.5, 25, 30, 40], [25, 30]] }, max_level = 1, min_level = 1",
        "bands:18.5,25,30,40",
        &["-", "<18.5", ">=40", "[18.5,25)", "[25,30)", "[30,40)"],
    ),
    (
        "age",
        "clip = [18, 90], hierarchy = { range = [10, 20], origin = 5 }, max_level = 1, min_level = 1",
        "range:10 origin:5 clip:18,90",
        &[
            "-", "<18", ">=90", "[18,25)", "[25,35)", "[35,45)", "[45,55)", "[55,65)", "[65,75)", "[75,85)",
            "[85,90)",
        ],
    ),
    (
        "bmi",
        "clip = { to = 35 }, hierarchy = { range = [12.5] }, max_level = 1, min_level = 1",
        "range:12.5 clip:,35",
        &["-", ">=35.0", "[12.5,25.0)", "[25.0,35.0)"],
    ),
    (
        "income",
        "clip = { to = 50 }, hierarchy = { floor = [20, 40] }, max_level = 1, min_level = 1",
        "floor:20 clip:,50",
        &["-", "-20", "0", "20", "40", "50"],
    ),
    (
        "income",
        "clip = { to = 50 }, hierarchy = { bands = [[0, 10, 50], [0, 10]] }, max_level = 2, min_level = 2",
        "bands:0,10 clip:,50",
        &["-", "<00", ">=50", "[00,10)", "[10,50)"],
    ),
    (
        "zip",
        "hierarchy = { prefix = [2, 1], side = \"right\" }, max_level = 1, min_level = 1",
        "prefix:2 side:right",
        &["*30", "*31", "*32", "*33", "*34", "*35", "*36", "*37", "*38", "-"],
    ),
    (
        "code",
        "hierarchy = { prefix = [2], width = 5 }, max_level = 1, min_level = 1",
        "prefix:2 width:5",
        &["A1***", "B2***", "Z****", "Ł1***"],
    ),
    (
        "town",
        "hierarchy = { file = \"towns.parquet\" }, max_level = 1, min_level = 1",
        "hierarchy:1",
        &["Maine", "Massachusetts", "Texas", "Washington"],
    ),
    ("visits", "clip = [3, 7], max_level = 0", "clip:3,7", &["-", "3", "4", "5", "6", "7"]),
    (
        "visits",
        "clip = [3, 7], hierarchy = { range = [4] }, max_level = 0",
        "clip:3,7",
        &["-", "3", "4", "5", "6", "<3", ">=7"],
    ),
];

#[test]
fn the_labels_of_every_hierarchy_are_released_and_verified() {
    let place = place();
    for (at, (column, said, by, labels)) in COLUMNS.iter().enumerate() {
        place.write("p.toml", policy("k = 2", &format!("{column} = {{ role = \"quasi\", {said} }}")));
        for input in ["in.parquet", "in.csv"] {
            let out = format!("out_{at}_{}", input.replace('.', "_"));
            let told = place.run(&format!("release {input} --policy p.toml --to {out}")).exit(0).out;
            assert!(told.contains("k_anonymity 2 required"), "{told}");
            let released: BTreeSet<String> = texts(&place.released(&out), column).into_iter().collect();
            assert_eq!(
                released,
                labels.iter().map(|label| (*label).to_owned()).collect(),
                "{said} of {input}"
            );
            let record = PublicRecord::read(&place.path(&out)).unwrap();
            assert_eq!(record.recoding.level(column).unwrap().by.to_string(), *by);
            place.run(&format!("verify {out}")).exit(0);
            place.run(&format!("verify {out} --input {input}")).exit(0);
        }
    }
}

/// Every column at once, at any level.
const ALL: &str = r#"
    bmi    = { role = "quasi", hierarchy = { bands = [[18.5, 25, 30, 40], [25, 30]] } }
    age    = { role = "quasi", clip = [18, 90], hierarchy = { range = [10, 20, 40], origin = 5 }, weight = 2.0 }
    income = { role = "quasi", clip = { to = 50 }, hierarchy = { floor = [20, 40] } }
    town   = { role = "quasi", hierarchy = { file = "towns.parquet" } }
    visits = { role = "quasi", clip = [3, 7] }
"#;

#[test]
fn the_same_bytes_for_any_threads_and_a_record_that_verifies() {
    let place = place();
    place.write("p.toml", policy("k = 3\nsuppression_limit = 0.2", ALL));
    for input in ["in.parquet", "in.csv"] {
        let out_of = |threads| format!("out_{threads}_{}", input.replace('.', "_"));
        for threads in [1, 3] {
            let out = out_of(threads);
            place.run(&format!("release {input} --policy p.toml --to {out} --threads {threads}")).exit(0);
        }
        assert_eq!(place.files(&out_of(1)), place.files(&out_of(3)), "{input}");
    }
    // The private record has the hierarchy file's text: the file itself is not needed any more.
    std::fs::remove_file(place.path("towns.parquet")).unwrap();
    for input in ["in.parquet", "in.csv"] {
        place.run(&format!("verify out_3_{} --input {input}", input.replace('.', "_"))).exit(0);
    }
    let missing = place.run("release in.csv --policy p.toml --to again").exit(3);
    missing.says("columns.town.hierarchy.file: hierarchy file towns.parquet: there is no such file");
    place.write("towns.parquet", "no Parquet");
    let broken = place.run("release in.csv --policy p.toml --to again").exit(2);
    broken.says("hierarchy file towns.parquet: it cannot be read as Parquet");
}

#[test]
fn the_search_finds_what_looking_at_every_node_finds() {
    let place = place();
    for objective in ["granularity", "non_uniform_entropy", "discernibility"] {
        let best = |method: &str| {
            let lines = format!(
                "k = 3\nsuppression_limit = 0.2\nobjective = \"{objective}\"\nmethod = \"{method}\"\n"
            );
            place.write("p.toml", policy(&lines, ALL));
            let found = place.run("search in.parquet --policy p.toml --format json").exit(0).json();
            assert_eq!(found["optimal"], true, "{method}");
            found["best"][0]["value"].clone()
        };
        assert_eq!(best("optimal"), best("exhaustive"), "{objective}");
    }
}

#[test]
fn a_search_that_takes_long_says_how_to_end_it() {
    let place = Place::new();
    let names: Vec<String> = (0..40).map(|at| format!("q{at}")).collect();
    let mut state = 1_u64;
    let mut cell = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33 & 1).to_string()
    };
    let lines = (0..400).map(|_| names.iter().map(|_| cell()).collect::<Vec<_>>().join(",") + "\n");
    place.write("in.csv", format!("{}\n{}", names.join(","), lines.collect::<String>()));
    let columns: String = names.iter().map(|name| format!("{name} = {{ role = \"quasi\" }}\n")).collect();
    place.write("p.toml", format!("k = 5\nrows_are_individuals = true\n[columns]\n{columns}"));

    let start = |format: &str| {
        let mut command = place.command(&format!("search in.csv --policy p.toml --threads 1{format}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (mut text, mut json) = (start(""), start(" --format json"));
    let (sender, heard) = std::sync::mpsc::channel();
    let err = text.stderr.take().unwrap();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(err).read_line(&mut line);
        let _ = sender.send(line);
    });
    let line = heard.recv_timeout(Duration::from_secs(120));
    // A program that reads JSON from standard error gets nothing else.
    std::thread::sleep(Duration::from_secs(1));
    text.kill().unwrap();
    json.kill().unwrap();
    let silent = json.wait_with_output().unwrap();
    text.wait().unwrap();
    assert_eq!(
        line.unwrap(),
        "kanon: searching 1,099,511,627,776 nodes; this may take a long time. For an answer within \
         a minute, put `method = \"anytime\"` and `effort = { seconds = 60 }` in the policy; it may not be proven \
         best\n"
    );
    assert!(silent.stderr.is_empty(), "{:?}", String::from_utf8_lossy(&silent.stderr));
}

#[test]
fn decimals_are_clipped_and_banded() {
    let place = place();
    let of = |said: &str| {
        place.write("p.toml", policy("k = 2", &format!("price = {{ role = \"quasi\", {said} }}")));
        place.run("release in.parquet --policy p.toml --to out --overwrite").exit(0);
        place.run("verify out --input in.parquet").exit(0);
        texts(&place.released("out"), "price").into_iter().collect::<BTreeSet<String>>()
    };
    let set = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect::<BTreeSet<String>>();
    let bands = "hierarchy = { bands = [[9.99, 20], [20]] }, min_level = 1, max_level = 1";
    assert_eq!(of(bands), set(&["-", "<09.99", "[09.99,20)", ">=20"]));
    let floors = "clip = [10, 40], hierarchy = { floor = [12.5] }, min_level = 1, max_level = 1";
    assert_eq!(of(floors), set(&["-", "10.00", "12.50", "25.00", "37.50", "40.00"]));
    let ranges = "clip = [10, 40], hierarchy = { range = [15] }, min_level = 1, max_level = 1";
    assert_eq!(of(ranges), set(&["-", "<10", "[10,15)", "[15,30)", "[30,40)", ">=40"]));
}

#[test]
fn a_hierarchy_in_a_table_is_checked_like_a_file() {
    let place = place();
    place.write(
        "p.toml",
        policy("k = 2", "town = { role = \"quasi\", hierarchy = { file = \"towns.parquet\" } }"),
    );
    let towns = |values: Vec<Option<&str>>, labels: Vec<Option<&str>>| {
        let text = |cells| Arc::new(StringArray::from(cells)) as ArrayRef;
        place.parquet("towns.parquet", &table([("town", text(values)), ("state", text(labels))]));
        place.run("release in.parquet --policy p.toml --to out")
    };
    let few = towns(vec![Some("Boston"), Some("Olympia")], vec![Some("Massachusetts"), Some("Washington")]);
    few.exit(2).says("columns.town.hierarchy: 3 distinct values are not in the hierarchy file");
    let null = towns(vec![Some("Boston"), None], vec![Some("Massachusetts"); 2]);
    null.exit(2).says("column `town` has 1 NULL;");
    let twice = towns(vec![Some("Boston"); 2], vec![Some("Massachusetts"); 2]);
    twice.exit(2).says("row 2 repeats the value of row 1");
}
