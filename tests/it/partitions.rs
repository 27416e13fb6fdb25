//! Columns that folders give: `year=2024/part-0.parquet`, as Hive and Spark write tables.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::csv::Writer;

use crate::command::{Place, table, texts};
use crate::formats::json_lines;

const POLICY: &str = r#"
    k = 3
    suppression_limit = 0.4
    rows_are_individuals = true
    accept_homogeneity = ["disease"]
    [columns]
    age     = { role = "quasi", hierarchy = { range = [10, 20] } }
    disease = { role = "sensitive", allow_unique = true }
    year    = { role = "quasi", hierarchy = { range = [2, 4] } }
    city    = { role = "quasi" }
"#;

/// The rows of a folder: `year` and `city` are those of its name, where it does not give them.
fn rows(year: Option<i64>, city: Option<&str>) -> RecordBatch {
    let n = || 0..12i64;
    let columns: [(&str, ArrayRef); 4] = [
        ("age", Arc::new(n().map(|n| Some(20 + n)).collect::<Int64Array>())),
        ("disease", Arc::new(n().map(|n| Some(["flu", "gout"][n as usize % 2])).collect::<StringArray>())),
        ("year", Arc::new(n().map(|_| year.map(|year| year.to_string())).collect::<StringArray>())),
        ("city", Arc::new(n().map(|_| city).collect::<StringArray>())),
    ];
    table(columns)
}

/// The folders, and the values that they mean.
const FOLDERS: [(&str, Option<i64>, Option<&str>); 4] = [
    ("year=2021/city=K%C3%B6ln", Some(2021), Some("Köln")),
    ("year=2021/city=a b", Some(2021), Some("a b")),
    ("year=2024/city=__HIVE_DEFAULT_PARTITION__", Some(2024), None),
    ("year=2024/x/city=x%2Fy", Some(2024), Some("x/y")),
];

/// Writes the table with folders, and flat, in a format; returns the names of both.
fn written(place: &Place, end: &str) -> (String, String) {
    let write = |name: &str, rows: &RecordBatch| match end {
        "parquet" => place.parquet(name, rows),
        "arrow" => place.arrow_file(name, rows),
        "jsonl" => place.write(name, json_lines(rows)),
        _ => {
            let mut csv = Vec::new();
            Writer::new(&mut csv).write(rows).unwrap();
            match end {
                "csv" => place.write(name, csv),
                _ => {
                    let text = String::from_utf8(csv).unwrap();
                    let bytes = text.encode_utf16().flat_map(u16::to_le_bytes);
                    place.write(
                        &format!("{}csv", name.strip_suffix("utf16").unwrap()),
                        [0xff, 0xfe].into_iter().chain(bytes).collect::<Vec<u8>>(),
                    );
                }
            }
        }
    };
    let mut all = Vec::new();
    for (folder, year, city) in FOLDERS {
        let whole = rows(year, city);
        write(&format!("in-{end}/{folder}/part-0.{end}"), &whole.project(&[0, 1]).unwrap());
        all.push(whole);
    }
    let all = arrow::compute::concat_batches(&all[0].schema(), &all).unwrap();
    write(&format!("flat.{end}"), &all);
    (format!("in-{end}"), format!("flat.{}", if end == "utf16" { "csv" } else { end }))
}

/// The same release as of a flat table, or the same refusal, whatever the role.
#[test]
fn a_partition_column_has_any_role() {
    let place = Place::new();
    let (folders, flat) = written(&place, "csv");
    let mut released = 0;
    for (column, role, more) in [
        ("city", "sensitive", ", allow_unique = true"),
        ("city", "insensitive", ""),
        ("city", "identifier", ""),
        ("city", "text", ""),
        ("city", "individual", ""),
        ("year", "individual", ""),
        ("year", "sensitive", ""),
        ("year", "insensitive", ""),
        ("year", "preference", ""),
    ] {
        let other = |line: &&str| !line.trim_start().starts_with(&format!("{column} "));
        let mut policy = POLICY.lines().filter(other).collect::<Vec<_>>().join("\n") + "\n";
        policy += &format!("{column} = {{ role = \"{role}\"{more} }}\n");
        policy = policy.replace("[\"disease\"]", &format!("[\"disease\", \"{column}\"]"));
        if role != "sensitive" {
            policy = policy.replace(&format!(", \"{column}\"]"), "]");
        }
        if role == "individual" {
            policy = policy.replace("rows_are_individuals = true", "").replace("k = 3", "k = 2");
        }
        place.write("p.toml", policy);
        let released_of = |input: &str, out: &str| {
            let ran = place.run(&format!("release {input} --policy p.toml --to {out} --overwrite"));
            let said = (ran.out + &ran.err).replace(input, "IN").replace(out, "OUT");
            (ran.code, said)
        };
        let (one, other) = (released_of(&folders, "of_folders"), released_of(&flat, "of_one"));
        assert_eq!(one.0, other.0, "{column} {role}: {one:?} {other:?}");
        if one.0 == 0 {
            released += 1;
            assert_eq!(place.files("of_folders"), place.files("of_one"), "{column} {role}");
            place.run(&format!("verify of_folders --input {folders}")).exit(0);
        } else {
            assert_eq!(one.1, other.1, "{column} {role}");
        }
    }
    assert!(released >= 7, "only {released} were released");
}

#[test]
fn a_column_of_folders_is_a_column_like_others() {
    for end in ["parquet", "csv", "utf16", "jsonl", "arrow"] {
        let place = Place::new();
        let (folders, flat) = written(&place, end);
        // In Parquet and Arrow a text is no number.
        place.write("p.toml", POLICY);
        place.write(
            "flat.toml",
            if matches!(end, "parquet" | "arrow") {
                POLICY
                    .replace("hierarchy = { range = [2, 4] }", "")
                    .replace("{ role = \"quasi\",  }", "{ role = \"quasi\" }")
            } else {
                POLICY.to_owned()
            },
        );
        for leftover in ["_SUCCESS", "_temporary/0/x.parquet", ".part-0.crc"] {
            place.write(&format!("{folders}/{leftover}"), "x");
        }
        let check =
            |input: &str| place.run(&format!("check {input} --quasi age,year,city --k 2 --format json"));
        let same = |input: &str| check(input).out.replace(input, "IN");
        assert_eq!(same(&folders), same(&flat), "{end}: {:?}", check(&folders));
        place.run(&format!("release {folders} --policy p.toml --to out")).exit(0);
        place.run(&format!("verify out --input {folders}")).exit(0);
        if !matches!(end, "parquet" | "arrow") {
            place.run(&format!("release {flat} --policy p.toml --to out-flat")).exit(0);
            assert_eq!(place.files("out"), place.files("out-flat"), "{end}");
        }
        place.run(&format!("init {folders} --to i.toml")).exit(0);
        place.run(&format!("risk {folders} --quasi year,city")).exit(0);
        let values = place.run("verify out").exit(0).out;
        assert!(!values.contains("Köln"));
    }
}

#[test]
fn sql_finds_types_over_all_folders() {
    let place = Place::new();
    let (folders, _) = written(&place, "parquet");
    let query = |sql: &str| {
        let ran = place
            .run_on("sql --format json -c", Some(&sql.replace("FROM IN", &format!("FROM '{folders}'"))), "")
            .exit(0);
        ran.json().to_string()
    };
    assert_eq!(
        query("SELECT arrow_typeof(year) AS y, arrow_typeof(city) AS c FROM IN LIMIT 1"),
        r#"[{"c":"Utf8View","y":"Int64"}]"#
    );
    assert_eq!(query("SELECT count(*) AS n FROM IN WHERE year = 2021"), r#"[{"n":24}]"#);
    assert_eq!(query("SELECT count(*) AS n FROM IN WHERE city IS NULL AND age < 23"), r#"[{"n":3}]"#);
    assert_eq!(query("SELECT count(*) AS n FROM IN WHERE city <> 'Köln' OR age = 20"), r#"[{"n":26}]"#);
    assert_eq!(query("SELECT count(*) AS n FROM IN WHERE year > 3000"), r#"[{"n":0}]"#);
    assert_eq!(query("SELECT count(DISTINCT city) AS n, max(year) AS y FROM IN"), r#"[{"n":3,"y":2024}]"#);
    let plan = query("EXPLAIN SELECT age FROM IN WHERE year = 2021");
    assert!(plan.contains("year=2021") && !plan.contains("year=2024"), "{plan}");
}

#[test]
fn what_lakes_hold_is_refused_or_read_and_never_guessed() {
    let two = rows(None, None).project(&[0, 1]).unwrap();
    for (folders, part) in [
        (&["month=01", "month=1"][..], "write one number in two ways"),
        (&["city=a b", "city=a%20b"], "write one value in two ways"),
        (&["Year=1", "year=1"], "expected the same names in the same order"),
        (&["year=1/Year=2"], "expected names that differ in more than case"),
        (&["year=1", "."], "lies beside the folders of `year`"),
        (&["year=1/city=a", "city=a/year=1"], "expected the same names in the same order"),
        (&["age=7"], "the files have a column of this name"),
        (&["Age=7"], "whose name differs only in case"),
        (&["year="], "is empty"),
        (&["=7"], "is empty"),
        (&["city=50%"], "expected `%25`"),
    ] {
        let place = Place::new();
        place.write("p.toml", POLICY);
        for (at, folder) in folders.iter().enumerate() {
            place.parquet(&format!("in/{folder}/{at}.parquet"), &two);
        }
        let ran = place.run("release in --policy p.toml --to out").exit(3).says(part).says("input `in`");
        assert!(!place.path("out").exists(), "{ran:?}");
    }
    // A value that is not of the type that the policy asks for, which is not shown.
    let place = Place::new();
    place.write("p.toml", POLICY);
    for year in ["2020", "later"] {
        place.parquet(&format!("in/year={year}/city=x/a.parquet"), &two);
    }
    let ran = place.run("release in --policy p.toml --to out").exit(3).says("`year`");
    assert!(!ran.err.contains("later"), "{ran:?}");
    // Names of errors hide the values of folders.
    place.write("in/year=secret/city=x/b.parquet", "");
    let ran = place.run("check in --quasi age --k 2").exit(3).says("in/year=.../city=.../b.parquet");
    assert!(!ran.err.contains("secret"), "{ran:?}");
    // However the folder is written.
    place.parquet("dots/month=01/a.parquet", &two);
    for input in ["dots", "./dots", "dots/*", "./dots/*", "././dots/**/*.parquet", "dots/../dots/m*/*"] {
        let sql = format!("SELECT month FROM '{input}' LIMIT 1");
        let ran = place.run_on("sql --format json -c", Some(&sql), "").exit(0);
        assert_eq!(ran.json()[0]["month"], "01", "{input}");
    }
    // Words for NULL are those of cells: a folder has its own.
    place.write("words/x=__HIVE_DEFAULT_PARTITION__/a.csv", "n\n1\nNA\n");
    place.write("words/x=NA/a.csv", "n\n2\n\"\"\n");
    place.write(
        "words.toml",
        "k = 2\nothers = \"drop\"\n[input]\nnulls = [\"NA\"]\n[columns]\nx = { role = \"quasi\" }\n",
    );
    place.run("release words --policy words.toml --to words-out --set rows_are_individuals=true").exit(0);
    let mut released = texts(&place.released("words-out"), "x");
    released.sort();
    assert_eq!(released, ["-", "-", "NA", "NA"]);
    // In SQL, too, the types of folders are not those of cells.
    for (folders, classes) in [(["n=5", "n=%205"], 2), (["d=2024-01-01", "d=2024-01-01 00:00:00"], 2)] {
        let place = Place::new();
        folders.iter().for_each(|folder| place.write(&format!("in/{folder}/a.csv"), "id\n1\n"));
        let column = &folders[0][..1];
        let sql = format!("SELECT count(DISTINCT {column}) AS n FROM 'in'");
        let ran = place.run_on("sql --format json -c", Some(&sql), "").exit(0);
        assert_eq!(ran.json()[0]["n"], classes, "{folders:?}");
    }
    // A link would give the rows of a file to two folders.
    place.parquet("links/y=1/a.parquet", &two);
    std::os::unix::fs::symlink("y=1", place.path("links/y=2")).unwrap();
    place.run("check links --quasi age --k 2").exit(3).says("a part of two partition folders");
    // Leading zeros of one width are text.
    let place = Place::new();
    for month in ["01", "12"] {
        place.parquet(&format!("in/month={month}/a.parquet"), &two);
    }
    let sql = "SELECT min(month) AS m FROM 'in'";
    assert_eq!(place.run_on("sql --format json -c", Some(sql), "").exit(0).json()[0]["m"], "01");
}
