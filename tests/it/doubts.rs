//! What is doubtful about a policy and its input though nothing is refused: an individual column that
//! does not distinguish people, rows without an individual, cells that may be wrong, prefixes of codes
//! that lost zeros, columns that each suffice to single people out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use serde_json::{Value, json};

use crate::command::{Place, table};

fn texts(rows: usize, of: impl Fn(usize) -> Option<String>) -> ArrayRef {
    Arc::new((0..rows).map(of).collect::<StringArray>())
}

/// Rows in two classes; the visit and the texts of one or two identifiers as said.
fn visits(
    rows: usize,
    visit: impl Fn(usize) -> Option<String>,
    ssn: impl Fn(usize) -> Option<String>,
    name: impl Fn(usize) -> Option<String>,
) -> RecordBatch {
    table([
        ("visit", texts(rows, visit)),
        ("ssn", texts(rows, ssn)),
        ("name", texts(rows, name)),
        ("q", texts(rows, |row| Some(["x", "y"][row * 2 / rows].to_owned()))),
    ])
}

const POLICY: &str = "k = 5\n[columns]\nvisit = { role = \"individual\" }\nssn = { role = \"identifier\" }\n\
                      name = { role = \"identifier\" }\nq = { role = \"quasi\" }\n";

/// The warnings of a release, which are those of the other commands as well.
#[track_caller]
fn doubts(place: &Place, rows: &RecordBatch) -> Vec<String> {
    place.parquet("in.parquet", rows);
    place.write("p.toml", POLICY);
    let released = place.run("release in.parquet --policy p.toml --to out --overwrite").exit(0).out;
    let lines = |out: &str| -> Vec<String> {
        out.lines().filter_map(|line| line.strip_prefix("warning   ")).map(str::to_owned).collect()
    };
    let warnings = lines(&released);
    for command in ["search", "search --minimal", "search --compare", "check", "risk"] {
        let (command, option) = command.split_once(' ').unwrap_or((command, ""));
        let line = format!("{command} in.parquet --policy p.toml {option}");
        assert_eq!(lines(&place.run(&line).exit(0).out), warnings, "{line}");
        let json = place.run(&format!("{line} --format json")).exit(0).json();
        assert_eq!(json["doubts"], json!(warnings), "{line}");
    }
    warnings
}

#[test]
fn a_visit_is_no_individual_where_an_identifier_says_so() {
    let place = Place::new();
    let visit = |row: usize| Some(format!("v{row}"));
    // Two people with five visits each.
    let person = |row: usize| Some(["A", "B"][row / 5].to_owned());
    let none = |_: usize| None;
    let says = |what: &str, it: &str, their: &str| {
        format!(
            "{what}, and `visit`, the individual column, 10; 2 are those of several individuals: if {it} a person, \
             `visit` does not, and one person counts as several; give the column that says whose row it is the role \
             `individual`. If people share {their} values, as a family shares a telephone number, ignore this warning"
        )
    };
    let alone = says("`ssn` has 2 values", "it identifies", "its");
    assert_eq!(doubts(&place, &visits(10, visit, person, none)), std::slice::from_ref(&alone));
    // What each visit has of its own does not vouch for it.
    assert_eq!(doubts(&place, &visits(10, visit, person, visit)), [alone]);
    let both = says("`ssn`, `name` together have 2 values", "they identify", "their");
    assert_eq!(doubts(&place, &visits(10, visit, person, person)), [both]);
    // The individual is the person, or has no identifier.
    assert_eq!(doubts(&place, &visits(10, visit, visit, none)), [""; 0]);
    assert_eq!(doubts(&place, &visits(10, visit, none, none)), [""; 0]);
    // Two visits each, of a hundred people.
    let warned = doubts(&place, &visits(200, visit, |row| Some((row / 2).to_string()), none));
    assert!(warned[0].starts_with("`ssn` has 100 values, and `visit`, the individual column, 200; 100 are"));
}

#[test]
fn people_who_share_a_value_are_no_doubt() {
    let place = Place::new();
    let person = |row: usize| Some(format!("p{row}"));
    let none = |_: usize| None;
    // Of a hundred people a third share a telephone in pairs: 84 numbers.
    let phone = |row: usize| Some(if row < 32 { row / 2 } else { row }.to_string());
    assert_eq!(doubts(&place, &visits(100, person, phone, none)), [""; 0]);
    // Two fifths have one number for "unknown": 61 numbers, of which one belongs to several.
    let unknown = |row: usize| Some(if row < 40 { 0 } else { row }.to_string());
    assert_eq!(doubts(&place, &visits(100, person, unknown, none)), [""; 0]);
    // Ten first names and ten last names are few by themselves, and one for each together.
    let first = |row: usize| Some(format!("first{}", row % 10));
    let last = |row: usize| Some(format!("last{}", row / 10));
    assert_eq!(doubts(&place, &visits(100, person, first, last)), [""; 0]);
    // Several numbers of one person, and persons without a number, are no doubt either.
    let few = |row: usize| (row < 20).then(|| row.to_string());
    assert_eq!(doubts(&place, &visits(100, |row| Some((row / 2).to_string()), few, person)), [""; 0]);
    // An amount identifies no person.
    let cost: ArrayRef =
        Arc::new((0..40).map(|row| Some(f64::from(row % 4) + 0.5)).collect::<Float64Array>());
    let columns = [("pid", texts(40, person)), ("cost", cost), ("q", texts(40, |_| Some("x".to_owned())))];
    place.parquet("amount.parquet", &table(columns));
    let policy = "k = 5\n[columns]\npid = { role = \"individual\" }\ncost = { role = \"identifier\" }\nq = { role = \"quasi\" }\n";
    place.write("amount.toml", policy);
    let out = place.run("check amount.parquet --policy amount.toml").exit(0).out;
    assert!(!out.contains("warning"), "{out}");
}

/// The example of the finding: 300 rows, of which 270 are nobody's.
#[test]
fn rows_without_an_individual_are_told() {
    let place = Place::new();
    let pid = |row: usize| (row < 30).then(|| row.to_string());
    // All rows of class c are nobody's.
    let class = |row: usize| Some(["a", "b", "c"][if row < 193 { row % 2 } else { 2 }].to_owned());
    place.parquet("in.parquet", &table([("pid", texts(300, pid)), ("q", texts(300, class))]));
    place.write(
        "p.toml",
        "k = 5\n[columns]\npid = { role = \"individual\" }\nq = { role = \"quasi\", max_level = 0 }\n",
    );
    let warning = "warning   270 of 300 rows have no individual, because `pid` is NULL: such rows are in no class size, are released \
                   beside the individuals of their class, and leave with it outside the limit\n";
    let released = place.run("release in.parquet --policy p.toml --to out").exit(0).out;
    let read = format!("{warning}read      300 rows of 30 individuals, 270 rows without one\n");
    assert!(released.starts_with(&read), "{released}");
    let suppressed = "suppressed 107 rows of 0 individuals, 107 rows without one (0 % of individuals, 36 % of rows, limit 0 %: 0 \
                      individuals)\n";
    assert!(released.contains(suppressed), "{released}");
    let private: Value =
        serde_json::from_slice(&std::fs::read(place.path("out.private.json")).unwrap()).unwrap();
    let counts = [&private["input_rows_without_individual"], &private["suppressed_rows_without_individual"]];
    assert_eq!(counts, [&json!(270), &json!(107)]);
    // The 193 others are 30 of individuals and 163 of nobody.
    let verified = place.run("verify out --input in.parquet").exit(0).out;
    assert!(
        verified.starts_with("read      193 rows in 2 classes, 1 file; 163 rows without an individual\n"),
        "{verified}"
    );
    let all = "verified  against the input: all 193 rows come from it, 107 rows suppressed, 107 without an individual\n";
    assert!(verified.contains(all), "{verified}");
    let json = place.run("verify out --input in.parquet --format json").exit(0).json();
    assert_eq!(
        [&json["rows_without_individual"], &json["suppressed_rows_without_individual"]],
        [&json!(163), &json!(107)]
    );
    assert_eq!(place.run("verify out --format json").exit(0).json()["rows_without_individual"], Value::Null);
    let found = place.run("search in.parquet --policy p.toml").exit(0).out;
    assert!(
        found.contains("\nread      300 rows of 30 individuals, 270 rows without one, 3 base classes\n"),
        "{found}"
    );
    assert!(found.contains("suppressed 107 rows of 0 individuals, 107 rows without one (0 %)"), "{found}");
    let risk = place.run("risk in.parquet --policy p.toml").exit(0).out;
    assert!(risk.contains("; 30 individuals by `pid`, 270 rows without one\n"), "{risk}");
    let checked = place.run("check in.parquet --policy p.toml").exit(1).out;
    assert!(checked.contains("counted   30 individuals by `pid`, 270 rows without one\n"), "{checked}");
    for (command, said) in [("search", &found), ("risk", &risk), ("check", &checked)] {
        assert_eq!(said.matches(warning).count(), 1, "{said}");
        let json = place.run(&format!("{command} in.parquet --policy p.toml --format json")).json();
        assert_eq!(json["rows_without_individual"], 270, "{command}");
    }
    // A tenth is not too many, and where everybody has a number nothing is said.
    let pid = |row: usize| (row >= 30).then(|| row.to_string());
    place.parquet("tenth.parquet", &table([("pid", texts(300, pid)), ("q", texts(300, class))]));
    let released = place.run("release tenth.parquet --policy p.toml --to tenth").exit(0).out;
    let read = "read      300 rows of 270 individuals, 30 rows without one\n";
    assert!(released.starts_with(read) && !released.contains("warning"), "{released}");
    let all = |row: usize| Some(row.to_string());
    place.parquet("all.parquet", &table([("pid", texts(300, all)), ("q", texts(300, class))]));
    let released = place.run("release all.parquet --policy p.toml --to all").exit(0).out;
    assert!(!released.contains("without"), "{released}");
}

/// A table in which one column has every kind of odd cell; it holds no other date, code or spelling twice.
fn odd_rows() -> String {
    let mut rows = "patient_id;plz;born;place;score\n".to_owned();
    for n in 0..200 {
        let pid = match n {
            0 => "a5".to_owned(),
            1 => "A5".to_owned(),
            2 => "00a5".to_owned(),
            _ => format!("p{}", n % 100),
        };
        let plz = if n < 4 { format!("1{:03}", n) } else { format!("01{:03}", n) };
        let born = match n {
            0..30 => "1900-01-01".to_owned(),
            30..33 => format!("2970-03-{:02}", n - 20),
            _ => format!("19{:02}-05-{:02}", 20 + n % 70, 1 + n % 28),
        };
        let place = match n {
            0 => "Zürich",
            1 => "zürich",
            2 => "Zu\u{308}rich ",
            _ => ["Bern", "Basel", "Chur"][n % 3],
        };
        rows += &format!("{pid};{plz};{born};\"{place}\";{n}\n");
    }
    rows
}

#[test]
fn odd_cells_are_counted_without_their_values() {
    let place = Place::new();
    place.write("in.csv", odd_rows());
    let found = [
        (
            "patient_id",
            "2 values differ from another only in capitals, outer blanks, Unicode form or leading zeros: one person may count as several",
        ),
        ("plz", "4 cells have 4 digits, 196 have 5: were leading zeros lost?"),
        ("born", "3 cells lie in the future"),
        (
            "born",
            "30 cells hold one and the same day, more than 20 times as many as the median day: does it stand for \"unknown\"?",
        ),
        ("place", "2 values differ from another only in capitals, outer blanks or Unicode form"),
    ];
    let policy = place.run("init in.csv").exit(0).out;
    let flowing = policy.replace("\n# ", " ");
    let json = place.run("init in.csv --format json").exit(0).json();
    for column in json["columns"].as_array().unwrap() {
        let name = column["name"].as_str().unwrap();
        let notes: Vec<&str> = found.iter().filter(|(of, _)| *of == name).map(|(_, note)| *note).collect();
        assert_eq!(column["notes"], json!(notes), "{name}");
        for note in notes {
            assert!(flowing.contains(note), "{note} in {policy}");
        }
    }
    assert!(!policy.contains("2970") && !policy.contains("1900") && !policy.contains("rich"), "{policy}");

    let says: Vec<String> = found.iter().map(|(name, note)| format!("`{name}`: {note}")).collect();
    let line =
        "check in.csv --csv 'delimiter=\";\"' --quasi plz,born,place,score --individual patient_id --k 2";
    let checked = place.run(line).exit(1);
    for note in &says {
        assert!(checked.out.contains(&format!("note      {note}\n")), "{note} in {}", checked.out);
    }
    assert_eq!(checked.out.matches("note      ").count(), says.len(), "{}", checked.out);
    let json = place.run(&format!("{line} --format json")).exit(1).json();
    let mut notes: Vec<&str> =
        json["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    let mut expected: Vec<&str> = says.iter().map(String::as_str).collect();
    notes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(notes, expected);
}

/// Numbers as text are no codes, unless some keep their leading zeros or all are long.
#[test]
fn codes_of_two_lengths() {
    let place = Place::new();
    let number = |n: usize, short: &str, long: &str| Some(if n < 8 { short } else { long }.to_owned());
    for (short, long, is_odd) in [
        ("7", "34", false),
        ("7", "07", true),
        ("980", "1750", false),
        ("980", "0980", true),
        ("2139", "10001", true),
        ("2139", "a0001", false),
    ] {
        for (rows, is_rare) in [(40, true), (39, false)] {
            place.parquet("in.parquet", &table([("code", texts(rows, |n| number(n, short, long)))]));
            let json = place.run("check in.parquet --quasi code --k 2 --format json").json();
            let says = format!(
                "`code`: 8 cells have {}, {} have {}: were leading zeros lost?",
                if short.len() == 1 { "1 digit".to_owned() } else { format!("{} digits", short.len()) },
                rows - 8,
                long.len()
            );
            let notes = if is_odd && is_rare { vec![says] } else { vec![] };
            assert_eq!(json["notes"], json!(notes), "{short} {long} {rows}");
        }
    }
    // A third length: house numbers.
    let third = |n: usize| if n == 0 { Some("123".to_owned()) } else { number(n, "07", "7") };
    place.parquet("in.parquet", &table([("code", texts(40, third))]));
    assert_eq!(place.run("check in.parquet --quasi code --k 2 --format json").json()["notes"], json!([]));
}

/// More values than are counted in memory, two of them spelt twice.
#[test]
fn spellings_among_many_values() {
    let place = Place::new();
    let name = |row: usize| {
        Some(match row {
            0 => "Name 7".to_owned(),
            1 => " name 8".to_owned(),
            _ => format!("name {row}"),
        })
    };
    place.parquet("in.parquet", &table([("name", texts(15_000, name))]));
    let json = place.run("check in.parquet --quasi name --k 1 --format json").exit(0).json();
    assert_eq!(
        json["notes"],
        json!(["`name`: 2 values differ from another only in capitals, outer blanks or Unicode form"])
    );
}

#[test]
fn prefixes_of_integers_of_two_lengths_are_a_doubt() {
    let place = Place::new();
    let zip = |odd: i64| -> ArrayRef {
        Arc::new((0..40).map(|row| Some(if row < 20 { 10_001 } else { odd })).collect::<Int64Array>())
    };
    place.parquet("in.parquet", &table([("zip", zip(2_139))]));
    place.parquet("even.parquet", &table([("zip", zip(21_390))]));
    place.parquet("null.parquet", &table([("zip", Arc::new(Int64Array::from(vec![None; 40])) as ArrayRef)]));
    let policy = |levels: &str| {
        format!(
            "k = 5\nrows_are_individuals = true\n[columns]\nzip = {{ role = \"quasi\", hierarchy = {{ {levels} }} }}\n"
        )
    };
    let says = "warning   `zip` holds integers of 4 and 5 digits, and its prefixes keep the first ones: if leading zeros were \
                lost, codes of different places get one label; load the column as text\n";
    for (levels, input, is_said) in [
        ("prefix = [3]", "in", true),
        ("prefix = [3]", "even", false),
        ("prefix = [3]", "null", false),
        ("prefix = [3], side = \"right\"", "in", false),
        ("range = [10]", "in", false),
    ] {
        place.write("p.toml", policy(levels));
        for command in ["release --to out --overwrite", "search"] {
            let (command, options) = command.split_once(' ').unwrap_or((command, ""));
            let out = place.run(&format!("{command} {input}.parquet --policy p.toml {options}")).exit(0).out;
            assert_eq!(out.contains(says), is_said, "{levels} {input}: {out}");
        }
    }
}

#[test]
fn rows_that_were_suppressed_before_are_nobody() {
    let place = Place::new();
    let hidden = |row: usize| row < 7;
    let city = |row: usize| Some(if hidden(row) { "*".to_owned() } else { format!("c{}", row % 3) });
    // The eighth row is hidden in one column only.
    let sex = |row: usize| (!hidden(row) && row != 8).then(|| "m".to_owned());
    place.parquet("in.parquet", &table([("city", texts(40, city)), ("sex", texts(40, sex))]));
    let said = place.run("risk in.parquet --quasi city,sex").exit(0).out;
    let note = "note      7 rows are `*` or NULL in every quasi-identifier, as after an earlier suppression: no individual can be found by them, \
                and the figures below count them all the same\n";
    assert!(said.contains(note), "{said}");
    let json =
        |quasi: &str| place.run(&format!("risk in.parquet --quasi {quasi} --format json")).exit(0).json();
    assert_eq!([&json("city,sex")["rows_without_quasi"], &json("sex")["rows_without_quasi"]], [7, 8]);
}

/// Thirty people in three classes, with columns released as they are.
fn survey(columns: &[(&str, fn(usize) -> String)]) -> RecordBatch {
    let own = columns.iter().map(|(name, of)| (*name, texts(30, |row| Some(of(row)))));
    table([("q", texts(30, |row| Some((row / 10).to_string())))].into_iter().chain(own))
}

#[test]
fn all_columns_that_suffice_alone_are_named() {
    let place = Place::new();
    // Of ten people in a class, ten, five and four have a value of their own; a and b together have five.
    let columns: [(&str, fn(usize) -> String); 5] = [
        ("height", |row| if row % 10 < 5 { row.to_string() } else { "x".into() }),
        ("income", |row| row.to_string()),
        ("nofriend", |row| if row % 10 < 4 { row.to_string() } else { "x".into() }),
        ("a", |row| if row % 10 < 1 { "1" } else { "0" }.to_owned()),
        ("b", |row| (row % 2).to_string()),
    ];
    let in_line = |name: &str| format!("{name} = {{ role = \"insensitive\", allow_unique = true }}\n");
    let policy = |names: &[&str]| {
        let lines: String = names.iter().map(|name| in_line(name)).collect();
        format!(
            "k = 10\nothers = \"drop\"\nrows_are_individuals = true\n[columns]\nq = {{ role = \"quasi\", max_level = 0 }}\n{lines}"
        )
    };
    place.parquet("in.parquet", &survey(&columns));
    let said = |names: &[&str]| {
        place.write("p.toml", policy(names));
        let released = place.run("release in.parquet --policy p.toml --to out --overwrite").exit(0).out;
        let warning =
            |out: &str| out.lines().find(|line| line.starts_with("warning")).unwrap_or("").to_owned();
        assert_eq!(warning(&place.run("verify out --input in.parquet").exit(0).out), warning(&released));
        assert_eq!(warning(&place.run("verify out").exit(0).out), warning(&released));
        warning(&released)
    };
    // a alone singles out the first of each class: a tenth, which is not more than a tenth; so do a and b.
    assert_eq!(
        said(&["height", "income", "nofriend", "a", "b"]),
        "warning   `income` (100 %), `height` (50 %), `nofriend` (40 %) each single out more than a tenth of rows within their \
         class: anyone who knows the values of one finds the row; if others may know them, make all of them \
         quasi-identifiers or leave them out; without all of them 10 % of the rows are unique"
    );
    assert_eq!(
        said(&["income", "b"]),
        "warning   `income` singles out more than a tenth of rows within their class: anyone who knows its values finds the row; \
         if others may know them, make it a quasi-identifier or leave it out; without it 0 % of the rows are unique"
    );
    // No other column is left.
    assert!(said(&["income"]).ends_with("make it a quasi-identifier or leave it out"));
    assert_eq!(said(&["a", "b"]), "");
}

#[test]
fn all_columns_that_would_be_refused_are_named() {
    let place = Place::new();
    let columns: [(&str, fn(usize) -> String); 4] = [
        ("bmi", |row| if row < 5 { row.to_string() } else { "x".into() }),
        ("income", |row| row.to_string()),
        ("age", |row| if row < 12 { row.to_string() } else { "x".into() }),
        ("sex", |row| (row % 2).to_string()),
    ];
    place.parquet("in.parquet", &survey(&columns));
    let lines: String =
        columns.iter().map(|(name, _)| format!("{name} = {{ role = \"insensitive\" }}\n")).collect();
    let policy = |limit: &str| {
        format!(
            "k = 10\nsuppression_limit = {limit}\nrows_are_individuals = true\n[columns]\nq = {{ role = \"quasi\" }}\n{lines}"
        )
    };
    place.write("p.toml", policy("0"));
    let refused = place.run("release in.parquet --policy p.toml --to out").exit(2);
    assert!(
        refused.err.starts_with("kanon: columns.income: 30 of 30 rows in the input hold a value"),
        "{refused:?}"
    );
    assert!(refused.err.trim_end().ends_with("; the same applies to `age` (12), `bmi` (5)"), "{refused:?}");
    // Three rows may go, and of the five rare values of bmi two or more stay.
    place.write("p.toml", policy("0.1"));
    let refused = place.run("release in.parquet --policy p.toml --to out").exit(2);
    let ends = "; the same applies to `age` (12); after the search the same may apply to `bmi` (5)";
    assert!(refused.err.trim_end().ends_with(ends), "{refused:?}");
}
