//! Releases whose classes show centroids: what they hold, and forgeries of rows and of the assignment
//! in the private record. `kanon verify` must refuse them.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Float64Array};
use arrow::datatypes::{DataType, Date32Type, Float64Type};
use arrow::record_batch::RecordBatch;
use datafusion_kanon::internals::generalize::Centroid;
use datafusion_kanon::internals::release::publish::record::{CentroidColumn, RecodingRecord};

use crate::command::Place;
use crate::mutants::Must::{self, Pass, Refuse};
use crate::mutants::verify;
use crate::regions::{self, Line, QUASI, assignment, cell, write_assignment};
use crate::releases::{Lab, OUT, PART, edited, forge, people, read_parquet, record, seal, with};

/// The policy of releases that show regions, with this method and clipped ages.
fn policy(method: &str) -> String {
    let policy = regions::POLICY.replace("\"mondrian\"", method);
    policy.replace("age       = { role = \"quasi\",", "age       = { role = \"quasi\", clip = [25, 60],")
}

fn released(method: &str) -> Lab {
    let lab = Lab::new(&people(1));
    fs::write(lab.path("policy.toml"), policy(method)).unwrap();
    lab.release("policy.toml", OUT).exit(0, "each class shows centroids");
    lab
}

fn written(lab: &Lab) -> RecordBatch {
    read_parquet(&lab.out().join(PART))
}

/// The rows of each class, by what it shows.
fn classes(rows: &RecordBatch) -> BTreeMap<Vec<Option<String>>, Vec<usize>> {
    let mut classes: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for row in 0..rows.num_rows() {
        classes.entry(QUASI.iter().map(|name| cell(rows, name, row)).collect()).or_default().push(row);
    }
    classes
}

/// The texts of the input's values, by the lines of the assignment, with their rows.
fn rows_of_lines(lab: &Lab) -> Vec<(Line, u64)> {
    let input = read_parquet(&lab.path("people.parquet"));
    let mut lines: Vec<(Line, u64)> = assignment(lab).into_iter().map(|line| (line, 0)).collect();
    for row in 0..input.num_rows() {
        let value = |name: &&str| {
            let text = cell(&input, name, row);
            // Ages are clipped.
            match (*name, text.as_deref().and_then(|text| text.parse::<i64>().ok())) {
                ("age", Some(..25)) => Some("<25".to_owned()),
                ("age", Some(60..)) => Some(">=60".to_owned()),
                _ => text,
            }
        };
        let values: Vec<Option<String>> = QUASI.iter().map(value).collect();
        let line = lines.iter_mut().find(|(line, _)| line.values == values).expect("a line for each row");
        line.1 += 1;
    }
    lines
}

/// Every released centroid is computed here once more, from the input's rows.
#[test]
fn every_class_shows_the_centroids_of_its_rows() {
    for (method, is_median) in [
        ("\"mdav\"", false),
        ("\"ona\"", false),
        ("{ mona = { rho = 0.4 } }", false),
        ("{ ona = { centroid = \"median\" } }", true),
    ] {
        let lab = released(method);
        lab.run(&["verify", OUT]).exit(0, "");
        lab.run(&["verify", OUT, "--input", "people.parquet"]).exit(0, "against the input");
        let rows = written(&lab);
        let types: Vec<DataType> =
            QUASI.iter().map(|name| rows.column_by_name(name).unwrap().data_type().clone()).collect();
        let age_type =
            read_parquet(&lab.path("people.parquet")).column_by_name("age").unwrap().data_type().clone();
        let age_type = if is_median { age_type } else { DataType::Float64 };
        assert_eq!(types, [DataType::Date32, DataType::Utf8, age_type, DataType::Utf8, DataType::Utf8]);
        assert!(classes(&rows).values().all(|rows| rows.len() >= 5), "{method}");

        let mut by_shown: BTreeMap<Vec<Option<String>>, Vec<(Line, u64)>> = BTreeMap::new();
        for (line, rows) in rows_of_lines(&lab) {
            if line.kept {
                by_shown.entry(line.shown.clone()).or_default().push((line, rows));
            }
        }
        assert_eq!(by_shown.len(), classes(&rows).len(), "{method}");
        for (shown, lines) in by_shown {
            for (at, name) in QUASI.iter().enumerate() {
                let mut values: Vec<Option<String>> = Vec::new();
                for (line, rows) in &lines {
                    let value = line.values[at].as_deref().map(|value| match value {
                        "<25" => "25".to_owned(),
                        ">=60" => "60".to_owned(),
                        other => other.to_owned(),
                    });
                    values.extend(std::iter::repeat_n(value, usize::try_from(*rows).unwrap()));
                }
                let expected = match *name {
                    "dob" if !is_median => mean_day(&values),
                    "age" if !is_median => mean(&values),
                    "dob" | "age" => median(values),
                    _ => mode(&values),
                };
                assert_eq!(shown[at], expected, "{method} {name}");
            }
        }
    }
}

/// Without a value in more than half of the rows, nothing is shown.
fn present(values: &[Option<String>]) -> Option<Vec<&str>> {
    let present: Vec<&str> = values.iter().flatten().map(String::as_str).collect();
    (!present.is_empty() && 2 * present.len() >= values.len()).then_some(present)
}

fn mean(values: &[Option<String>]) -> Option<String> {
    let numbers = present(values)?.into_iter().map(|text| text.parse::<i64>().unwrap());
    let numbers: Vec<i64> = numbers.collect();
    Some((numbers.iter().sum::<i64>() as f64 / numbers.len() as f64).to_string())
}

fn mean_day(values: &[Option<String>]) -> Option<String> {
    let days = |text: &str| {
        let day: chrono::NaiveDate = text.parse().unwrap();
        day.signed_duration_since(chrono::NaiveDate::default()).num_days()
    };
    let all: Vec<i64> = present(values)?.into_iter().map(days).collect();
    let mean = all.iter().sum::<i64>().div_euclid(all.len() as i64);
    Some((chrono::NaiveDate::default() + chrono::Duration::days(mean)).to_string())
}

fn median(values: Vec<Option<String>>) -> Option<String> {
    // Two digits, and years of four, are in the order of their texts.
    let mut present = present(&values)?;
    present.sort_unstable();
    Some(present[(present.len() - 1) / 2].to_owned())
}

fn mode(values: &[Option<String>]) -> Option<String> {
    let mut counts: BTreeMap<&Option<String>, usize> = BTreeMap::new();
    values.iter().for_each(|value| *counts.entry(value).or_default() += 1);
    let most = counts.values().copied().max()?;
    counts.into_iter().find(|(_, count)| *count == most)?.0.clone()
}

/// Changes the mean age of the first class in rows and assignment alike.
fn forge_age(lab: &Lab, by: f64) {
    let rows = written(lab);
    let all = classes(&rows);
    let (shown, members) = all.iter().find(|(shown, _)| shown[2].is_some()).unwrap();
    let ages = rows.column_by_name("age").unwrap().as_primitive::<Float64Type>();
    let forged = ages.value(members[0]) + by;
    let age = |(row, age): (usize, Option<f64>)| if members.contains(&row) { Some(forged) } else { age };
    let ages: Float64Array = ages.iter().enumerate().map(age).collect();
    let mut lines = assignment(lab);
    for line in lines.iter_mut().filter(|line| line.kept && same(&line.shown, shown)) {
        line.shown[2] = Some(forged.to_string());
    }
    forge(lab, &with(&rows, "age", Arc::new(ages)));
    write_assignment(lab, &lines);
}

/// Texts of floats differ between Arrow and kanon, and so do those of dates.
fn same(line: &[Option<String>], class: &[Option<String>]) -> bool {
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<f64>().ok());
    line.iter().zip(class).all(|(a, b)| a == b || (number(a).is_some() && number(a) == number(b)))
}

fn forged(what: &str, forgery: impl FnOnce(&Lab), alone: Must, against: Must) {
    let lab = released("\"mdav\"");
    forgery(&lab);
    verify(&lab, what, alone, against);
}

#[test]
fn the_forger_is_good() {
    forged("the same rows", |lab| forge(lab, &written(lab)), Pass, Pass);
    forged("the same assignment", |lab| write_assignment(lab, &assignment(lab)), Pass, Pass);
    forged("a mean that is 0 off", |lab| forge_age(lab, 0.0), Pass, Pass);
}

#[test]
fn centroids_that_are_not_those_of_the_rows() {
    let no_mean = || Refuse("a class does not show the mean of its rows");
    forged("a mean that is 1 off", |lab| forge_age(lab, 1.0), Pass, no_mean());
    forged("a mean that is a trifle off", |lab| forge_age(lab, 1e-9), Pass, no_mean());
    forged(
        "another sex for a class",
        |lab| {
            let rows = written(lab);
            let (shown, members) = classes(&rows).into_iter().next_back().unwrap();
            let other = if shown[3].as_deref() == Some("f") { "m" } else { "f" };
            let forged = edited(&rows, "sex", |cells| {
                members.iter().for_each(|row| cells[*row] = Some(other.to_owned()));
            });
            let mut lines = assignment(lab);
            let own = lines.iter_mut().filter(|line| line.kept && same(&line.shown, &shown));
            own.for_each(|line| line.shown[3] = Some(other.to_owned()));
            forge(lab, &forged);
            write_assignment(lab, &lines);
        },
        Pass,
        // Most rows have the other one, or else the class would be another one's.
        Refuse("verification refused: "),
    );
    forged(
        "the value of one row among those of its class",
        |lab| {
            let rows = written(lab);
            let forged = edited(&rows, "zip", |cells| cells[0] = Some("99999".to_owned()));
            forge(lab, &forged);
        },
        Refuse("fail a required model"),
        Refuse("verification refused: "),
    );
    forged(
        "a row moved to another class",
        |lab| {
            let mut lines = assignment(lab);
            let shown = lines.iter().rev().find(|line| line.kept).unwrap().shown.clone();
            let moved = lines.iter_mut().find(|line| line.kept && line.shown != shown).unwrap();
            moved.shown = shown;
            write_assignment(lab, &lines);
        },
        Pass,
        Refuse("verification refused: "),
    );
    forged(
        "a text that is no number",
        |lab| {
            let mut lines = assignment(lab);
            lines.iter_mut().filter(|line| line.kept).for_each(|line| line.shown[2] = Some("30.0".into()));
            write_assignment(lab, &lines);
        },
        Pass,
        Refuse("a label is not the canonical text of a centroid"),
    );
}

#[test]
fn records_that_contradict_their_centroids() {
    fn columns(recoding: &mut RecodingRecord) -> &mut Vec<CentroidColumn> {
        match recoding {
            RecodingRecord::Centroids(columns) => columns,
            _ => panic!("the release has no centroids"),
        }
    }
    type Edit = fn(&mut Vec<CentroidColumn>);
    let edits: [(&str, Edit); 4] = [
        ("a median that is a mean", |columns| columns[2].centroid = Centroid::Median),
        ("a text with a mean", |columns| columns[1].centroid = Centroid::Mean),
        ("another type of the values", |columns| columns[0].value_type = "Int64".into()),
        ("no type of the values", |columns| columns[0].value_type = "number".into()),
    ];
    for (what, edit) in edits {
        let lab = released("\"mdav\"");
        let mut edited = record(&lab);
        edit(columns(&mut edited.recoding));
        seal(&lab, edited);
        verify(&lab, what, Refuse("verification refused: "), Refuse("verification refused: "));
    }
}

#[test]
fn a_policy_of_another_kind_of_recoding() {
    let lab = released("\"mdav\"");
    for method in ["\"auto\"", "\"mondrian\"", "{ mdav = { centroid = \"median\" } }"] {
        fs::write(lab.path("other.toml"), policy(method)).unwrap();
        let ran = lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", "other.toml"]);
        ran.exit(1, "verification refused: ");
    }
}

/// The released numbers are typed, and the engine computes with them.
#[test]
fn numbers_stay_numbers() {
    let lab = released("\"ona\"");
    let rows = written(&lab);
    let input = read_parquet(&lab.path("people.parquet"));
    let days = |rows: &RecordBatch| rows.column_by_name("dob").unwrap().as_primitive::<Date32Type>().clone();
    assert!(days(&rows).null_count() < rows.num_rows() && days(&input).len() == rows.num_rows());
    let ran = lab.run(&["sql", "-c", "SELECT count(*) AS n FROM 'out' WHERE age < 25 OR age > 60"]);
    ran.exit(0, "| 0 |");
}

/// With the private record a person matches the class of its own values, whose rows the released table has;
/// without it the nearest class, which may be another one.
#[test]
fn an_attack_matches_the_own_or_the_nearest_class() {
    let lab = released("\"mdav\"");
    let all = classes(&written(&lab));
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for (line, rows) in rows_of_lines(&lab) {
        let (_, own) = all.iter().find(|(shown, _)| same(&line.shown, shown)).unwrap();
        *sizes.entry(own.len() as u64).or_default() += rows;
    }
    let link = || -> serde_json::Value {
        let ran =
            lab.run(&["link", "people.parquet", OUT, "--on", "dob,zip,age,sex,marital", "--format", "json"]);
        serde_json::from_str(&ran.exit(0, "").said).unwrap()
    };
    let by_assignment = link();
    assert_eq!(by_assignment["by_assignment"], true);
    let found: BTreeMap<u64, u64> = by_assignment["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| (bin["matches"].as_u64().unwrap(), bin["individuals"].as_u64().unwrap()))
        .collect();
    assert_eq!(found, sizes);
    fs::rename(lab.path("out.private.json"), lab.path("away.json")).unwrap();
    let by_nearest = link();
    assert_eq!(by_nearest["by_assignment"], false);
    assert_eq!(by_nearest["unmatched"], 0);
    assert!(by_nearest["least_matches"].as_u64().unwrap() >= 5);
}

/// A mean gives the size of an outlier away, and a column of names shows somebody's name in each class.
#[test]
fn means_of_one_row_and_modes_of_one_person_are_told() {
    let place = Place::new();
    let write = |name: &str, outlier: u32| {
        let income = |n: u32| if n == 0 { outlier } else { 20_000 + 50 * n };
        let rows: String = (0..200).map(|n| format!("P{n},Name{n:03},{}\n", income(n))).collect();
        place.write(name, format!("id,name,income\n{rows}"));
    };
    write("far.csv", 987_654_321);
    write("near.csv", 29_999);
    // Each person twice.
    let twice: String = (0..100).map(|n| format!("P{},Name{:03},1\n", n / 2, n / 2)).collect();
    place.write("twice.csv", format!("id,name,income\n{twice}"));
    let policy = |name: &str, method: &str, columns: &str| {
        let text =
            format!("k = {}\nmethod = {method}\nothers = \"drop\"\n", if name == "income" { 5 } else { 2 });
        place.write(&format!("{name}.toml"), format!("{text}{columns}"));
    };
    let by_row = "rows_are_individuals = true\n[columns]\n";
    let income = format!("{by_row}income = {{ role = \"quasi\", hierarchy = {{ range = [1000] }} }}\n");
    policy("income", "\"mdav\"", &income);
    policy("median", "{ mdav = { centroid = \"median\" } }", &income);
    policy("name", "\"mdav\"", &format!("{by_row}name = {{ role = \"quasi\" }}\n"));
    policy("person", "\"mdav\"", "[columns]\nid = { role = \"individual\" }\nname = { role = \"quasi\" }\n");
    let warnings = |input: &str, name: &str| {
        let line = format!("release {input}.csv --policy {name}.toml --to out_{input}_{name}");
        let out = place.run(&line).exit(0).out;
        out.lines().filter(|line| line.starts_with("warning ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let mean = warnings("far", "income");
    let told = "warning   one row makes more than half of the mean of `income` in 1 of ";
    assert!(mean.len() == 1 && mean[0].starts_with(told), "{mean:?}");
    assert!(!mean[0].contains("987"), "{mean:?}");
    for (input, name) in [("near", "income"), ("far", "median")] {
        assert_eq!(warnings(input, name), Vec::<String>::new(), "{input} {name}");
    }
    for (input, name, one) in [("far", "name", "row"), ("twice", "person", "individual")] {
        let mode = warnings(input, name);
        let told = format!("classes the most frequent value of `name` is that of one {one} alone");
        assert!(mode.len() == 1 && mode[0].contains(&told), "{mode:?}");
    }
}
