//! Roles that the data contradict: what a release refuses before it searches, and with which words.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use serde_json::Value;

use crate::command::{Place, table};

/// Forty visits in two classes; `ssn`, `visit` and `diagnosis` as said.
fn visits(
    ssn: impl Fn(usize) -> usize,
    visit: impl Fn(usize) -> usize,
    diagnosis: impl Fn(usize) -> String,
) -> RecordBatch {
    let texts = |of: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new((0..40).map(|row| Some(of(row))).collect::<StringArray>())
    };
    let number = |row: usize| i64::try_from(visit(row)).unwrap();
    table([
        ("ssn", texts(&|row| format!("999-{:04}", ssn(row)))),
        ("zip", texts(&|row| format!("0213{}", row % 2))),
        ("visit", Arc::new(Int64Array::from_iter_values((0..40).map(number))) as ArrayRef),
        ("diagnosis", texts(&diagnosis)),
    ])
}

fn some_diagnosis(row: usize) -> String {
    ["flu", "gout", "HIV"][row % 3].to_owned()
}

const POLICY: &str = "k = 5\n[columns]\nssn = { role = \"identifier\" }\nzip = { role = \"quasi\" }\n\
                      visit = { role = \"insensitive\" }\ndiagnosis = { role = \"insensitive\" }\n";

#[test]
fn an_identifier_that_repeats_asks_who_is_counted() {
    let place = Place::new();
    place.parquet("in.parquet", &visits(|row| row / 2 * 2 + row % 4 / 3, |_| 1, some_diagnosis));
    place.write("p.toml", POLICY);
    let refused = place.run("release in.parquet --policy p.toml --to out").exit(2);
    let says = "`ssn` repeats in 20 rows: individuals seem to have several rows each and would be counted several \
         times; give the column that says whose row it is the role `individual`, or set \
         `rows_are_individuals = true` if each row is another individual";
    assert_eq!(refused.err.trim_end(), format!("kanon: {says}"));
    // Nor are nodes shown under which people count several times.
    let refused = place.run("search in.parquet --policy p.toml").exit(2);
    assert_eq!(refused.err.trim_end(), format!("kanon: {says}"));
    place.write("who.toml", POLICY.replace("identifier", "individual"));
    place.run("release in.parquet --policy who.toml --to out").exit(0);
    place.write("rows.toml", format!("rows_are_individuals = true\n{POLICY}"));
    place.run("release in.parquet --policy rows.toml --to rows").exit(0);
    // Whoever is named twice as an individual is no finding.
    place.parquet("once.parquet", &visits(|row| row, |_| 1, some_diagnosis));
    place.run("release once.parquet --policy p.toml --to once").exit(0);
}

#[test]
fn a_released_column_whose_values_name_their_rows() {
    let place = Place::new();
    let of = |many: usize| {
        let diagnosis =
            move |row: usize| if row < many { format!("rare {row}") } else { some_diagnosis(row) };
        visits(|row| row, |_| 1, diagnosis)
    };
    place.write("p.toml", POLICY);
    // A tenth of the rows is not too much, one row more is.
    place.parquet("tenth.parquet", &of(4));
    place.run("release tenth.parquet --policy p.toml --to tenth").exit(0);
    place.parquet("in.parquet", &of(5));
    let refused = place.run("release in.parquet --policy p.toml --to out").exit(2);
    let says = "columns.diagnosis: 5 of 40 rows in the input hold a value that fewer than 5 hold, and more \
         than a tenth is too many for a column that is released as it is (role `insensitive`): such values \
         identify people regardless of the quasi-identifiers; make the column a quasi-identifier with a \
         hierarchy, leave it out (`identifier`, `text`), or set `allow_unique = true` in its line if no \
         outsider knows its values";
    assert_eq!(refused.err.trim_end(), format!("kanon: {says}"));
    let allowed = POLICY.replace(
        "diagnosis = { role = \"insensitive\" }",
        "diagnosis = { role = \"insensitive\", allow_unique = true }",
    );
    place.write("allowed.toml", allowed);
    place.run("release in.parquet --policy allowed.toml --to out").exit(0);
    // Numbers, and a sensitive column.
    place.parquet("numbers.parquet", &visits(|row| row, |row| row, some_diagnosis));
    place
        .run("release numbers.parquet --policy p.toml --to no")
        .exit(2)
        .says("columns.visit: 40 of 40 rows in the input hold a value");
    let sensitive = "accept_homogeneity = [\"diagnosis\"]\n".to_owned()
        + &POLICY.replace("diagnosis = { role = \"insensitive\"", "diagnosis = { role = \"sensitive\"");
    place.write("sensitive.toml", sensitive);
    place
        .run("release in.parquet --policy sensitive.toml --to no")
        .exit(2)
        .says("columns.diagnosis: 5 of 40 rows");
}

#[test]
fn copies_of_rows_are_reported() {
    let place = Place::new();
    place.write("p.toml", format!("rows_are_individuals = true\n{POLICY}"));
    place.parquet("in.parquet", &visits(|row| row % 30, |_| 1, |row| some_diagnosis(row % 30)));
    let released = place.run("release in.parquet --policy p.toml --to out").exit(0);
    let line = "copies    10 rows are exact copies of another row (25 %): intended, or loaded twice?\n";
    assert!(released.out.contains(line), "{released:?}");
    let private: Value =
        serde_json::from_slice(&std::fs::read(place.path("out.private.json")).unwrap()).unwrap();
    assert_eq!(private["duplicate_rows"], 10);
    place.parquet("once.parquet", &visits(|row| row, |_| 1, some_diagnosis));
    let released = place.run("release once.parquet --policy p.toml --to once").exit(0);
    assert!(!released.out.contains("copies"), "{released:?}");
}

#[test]
fn homogeneous_classes_are_always_shown() {
    let place = Place::new();
    // The first class shares the flu, the second does not.
    let diagnosis = |row: usize| if row.is_multiple_of(2) { "flu".to_owned() } else { some_diagnosis(row) };
    place.parquet("in.parquet", &visits(|row| row, |_| 1, diagnosis));
    let policy = "accept_homogeneity = [\"diagnosis\"]\n".to_owned()
        + &POLICY.replace("diagnosis = { role = \"insensitive\"", "diagnosis = { role = \"sensitive\"");
    place.write("p.toml", policy);
    let line = "shared    `diagnosis`: 1 homogeneous class with 20 rows gives its value away\n";
    for command in [
        "check in.parquet --policy p.toml",
        "release in.parquet --policy p.toml --to out",
        "verify out",
        "verify out --input in.parquet",
    ] {
        let said = place.run(command).exit(0).out;
        assert!(said.contains(line), "{command}: {said}");
    }
}

/// Three hundred people with two visits each; every person has a member number as well.
fn members() -> RecordBatch {
    let visit = |of: &dyn Fn(usize, usize) -> String| -> ArrayRef {
        let visits = (0..600).map(|row| Some(of(row / 2, row % 2)));
        Arc::new(visits.collect::<StringArray>())
    };
    table([
        ("pid", visit(&|person, _| person.to_string())),
        ("sex", visit(&|person, _| ["M", "F"][person % 2].to_owned())),
        ("member_no", visit(&|person, _| format!("M{person:05}"))),
        ("dx", visit(&|person, visit| ["A", "B", "C", "D", "E"][(person + visit) % 5].to_owned())),
    ])
}

const MEMBERS: &str = "k = 5\nothers = \"drop\"\naccept_homogeneity = [\"dx\"]\n[columns]\n\
                       pid = { role = \"individual\" }\nsex = { role = \"quasi\" }\n\
                       member_no = { role = \"insensitive\" }\ndx = { role = \"sensitive\" }\n";

#[test]
fn a_second_number_of_a_person_is_refused_though_every_value_occurs_twice() {
    let place = Place::new();
    place.parquet("in.parquet", &members());
    place.write("p.toml", MEMBERS);
    let says = "columns.member_no: 300 of 300 individuals in the input hold a value that fewer than 5 hold";
    place.run("release in.parquet --policy p.toml --to out").exit(2).says(says);
    assert!(!place.path("out").exists() && !place.path("out.private.json").exists());
    let anonymize = "SELECT * FROM anonymize('in.parquet', 'p.toml')";
    place.run_on("sql -c", Some(anonymize), "").exit(2).says(says);
    // Allowed, it is shown as loudly as can be: every person is unique, and all rows of each are linked.
    let allowed = MEMBERS.replace(
        "member_no = { role = \"insensitive\"",
        "member_no = { role = \"insensitive\", allow_unique = true",
    );
    place.write("allowed.toml", allowed);
    let released = place.run("release in.parquet --policy allowed.toml --to out --verbose");
    let verified = place.run("verify out --input in.parquet").exit(0);
    for (said, before) in [(&released.out, "after "), (&verified.out, "read ")] {
        let lines: Vec<&str> = said.lines().skip_while(|line| !line.starts_with(before)).take(2).collect();
        assert_eq!(
            lines[1],
            "unique    0 % of the released individuals on their quasi-identifiers; 100 % together with the columns released as they are"
        );
        assert!(said.starts_with("warning   `member_no` singles out more than a tenth"), "{said}");
    }
    let as_is = "as is     `member_no`: 300 individuals hold a value that fewer than 5 individuals hold; 300 \
         individuals hold a value that is unique in its class; the rows of 300 individuals are linked by a \
         value of their own\n";
    assert!(released.out.contains(as_is), "{}", released.out);
    let public: Value =
        serde_json::from_slice(&std::fs::read(place.path("out/_kanon.json")).unwrap()).unwrap();
    assert_eq!(public["unique"], serde_json::json!({ "count": 300, "of": 300, "columns": ["member_no"] }));
    // Without the input only rows can be counted, and a person's two differ in their diagnosis.
    let alone = place.run("verify out").exit(0);
    let rows = "unique    0 % of the released rows on their quasi-identifiers; 100 % together with the columns released as they are";
    assert!(alone.out.contains(rows), "{}", alone.out);
    // An edited record shows.
    let json = place.run("verify out --input in.parquet --format json").exit(0).json();
    assert_eq!(json["unique"], public["unique"]);
}

#[test]
fn rows_without_an_individual_are_judged_as_rows() {
    let place = Place::new();
    // Of 600 visits every third has no individual, and only these have a telephone number of their own.
    let texts = |of: &dyn Fn(usize) -> Option<String>| -> ArrayRef {
        Arc::new((0..600).map(of).collect::<StringArray>())
    };
    let has_nobody = |row: usize| row.is_multiple_of(3);
    place.parquet(
        "in.parquet",
        &table([
            ("pid", texts(&|row| (!has_nobody(row)).then(|| (row / 6).to_string()))),
            ("sex", texts(&|row| Some(["M", "F"][row % 2].to_owned()))),
            ("phone", texts(&|row| has_nobody(row).then(|| format!("555-{row:04}")))),
        ]),
    );
    let policy = "k = 5\n[columns]\npid = { role = \"individual\" }\nsex = { role = \"quasi\" }\n\
                  phone = { role = \"insensitive\" }\n";
    place.write("p.toml", policy);
    // 100 individuals and 200 rows without one.
    let says = "columns.phone: 200 of 300 individuals (and rows without one) in the release hold a value that fewer \
                than 5 hold";
    place.run("release in.parquet --policy p.toml --to out").exit(2).says(says);
    place.run_on("sql -c", Some("SELECT * FROM anonymize('in.parquet', 'p.toml')"), "").exit(2).says(says);
    assert!(!place.path("out").exists());
    place.write("allowed.toml", policy.replace("\"insensitive\"", "\"insensitive\", allow_unique = true"));
    let released = place.run("release in.parquet --policy allowed.toml --to out").exit(0);
    assert!(released.out.contains("warning   `phone` singles out"), "{}", released.out);
    let public: Value =
        serde_json::from_slice(&std::fs::read(place.path("out/_kanon.json")).unwrap()).unwrap();
    assert_eq!(public["unique"], serde_json::json!({ "count": 200, "of": 300, "columns": ["phone"] }));
    place.run("verify out").exit(0);
    place.run("verify out --input in.parquet").exit(0);
    place.run("verify out --input in.parquet --policy p.toml").exit(1).says(says);
    // The same numbers in all rows name nobody; a second column is named beside the first.
    let shared = |row: usize| Some(format!("555-{:04}", row % 4));
    let two = |phone: &dyn Fn(usize) -> Option<String>| {
        let own = |row: usize| Some(row.to_string());
        table([
            ("pid", texts(&|row| (!has_nobody(row)).then(|| (row / 6).to_string()))),
            ("sex", texts(&|row| Some(["M", "F"][row % 2].to_owned()))),
            ("phone", texts(phone)),
            ("visit", texts(&own)),
        ])
    };
    place.parquet("shared.parquet", &two(&shared));
    let others = policy.to_owned() + "visit = { role = \"identifier\" }\n";
    place.write("q.toml", &others);
    place.run("release shared.parquet --policy q.toml --to shared").exit(0);
    place.parquet("own.parquet", &two(&|row| Some(format!("555-{row:04}"))));
    place.write("r.toml", others.replace("identifier", "insensitive"));
    let both = place.run("release own.parquet --policy r.toml --to own").exit(2);
    both.says("columns.phone: ").says("; the same applies to `visit`");
}

/// Five hundred rows of one class, and the twins of their values in classes that are suppressed.
#[test]
fn a_column_is_judged_by_the_rows_that_are_kept() {
    let place = Place::new();
    let texts = |of: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new((0..1_000).map(|row| Some(of(row))).collect::<StringArray>())
    };
    let kept = |row: usize| if row < 500 { "keep".to_owned() } else { format!("lone{row}") };
    place.parquet(
        "in.parquet",
        &table([("q", texts(&kept)), ("ref", texts(&|row| format!("R{}", row % 500)))]),
    );
    let policy = "k = 2\nrows_are_individuals = true\nsuppression_limit = 0.5\n[columns]\n\
                  q = { role = \"quasi\", max_level = 0 }\nref = { role = \"insensitive\" }\n";
    place.write("p.toml", policy);
    // No value of the input is held by one row only: all names come with the suppression.
    let says = "columns.ref: 500 of 500 rows in the release hold a value that fewer than 2 hold";
    place.run("release in.parquet --policy p.toml --to out").exit(2).says(says);
    place.run_on("sql -c", Some("SELECT * FROM anonymize('in.parquet', 'p.toml')"), "").exit(2).says(says);
    assert!(!place.path("out").exists());
    // A release that was allowed is refused by the verification under a policy that does not allow it.
    place.write("allowed.toml", policy.replace("\"insensitive\"", "\"insensitive\", allow_unique = true"));
    place.run("release in.parquet --policy allowed.toml --to out").exit(0);
    place.run("verify out --input in.parquet").exit(0);
    place.run("verify out --input in.parquet --policy p.toml").exit(1).says(says);
}

/// Harmless columns, each with two values: together they make every row unique.
#[test]
fn columns_that_are_harmless_alone_are_counted_together() {
    let place = Place::new();
    let bit = |at: usize| -> ArrayRef {
        Arc::new((0..200).map(|row: usize| Some(["x", "y"][row >> at & 1])).collect::<StringArray>())
    };
    let names: Vec<String> = (0..8).map(|at| format!("b{at}")).collect();
    let mut columns: Vec<(&str, ArrayRef)> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), bit(at))).collect();
    columns.push(("sex", Arc::new((0..200).map(|_| Some("f")).collect::<StringArray>())));
    place.parquet("in.parquet", &table(columns));
    let policy = |columns: &[String]| {
        let lines = columns.iter().map(|name| format!("{name} = {{ role = \"insensitive\" }}\n"));
        "k = 5\nrows_are_individuals = true\nothers = \"drop\"\n[columns]\nsex = { role = \"quasi\" }\n"
            .to_owned()
            + &lines.collect::<String>()
    };
    place.write("all.toml", policy(&names));
    let released = place.run("release in.parquet --policy all.toml --to out").exit(0);
    let share = "unique    0 % of the released rows on their quasi-identifiers; 100 % together with the columns released as they are\n";
    assert!(released.out.contains(share), "{}", released.out);
    // Seven of them tell 128 of 200 rows apart, 56 of which are alone: more than a tenth. Six leave
    // none alone.
    let warning = "warning   `b0`, `b1`, `b2`, `b3`, `b4`, `b5`, `b6` single out more than a tenth of rows";
    assert!(released.out.contains(warning), "{}", released.out);
    let verified = place.run("verify out").exit(0);
    assert!(verified.out.contains(share) && verified.out.contains(warning), "{}", verified.out);
    place.write("six.toml", policy(&names[..6]));
    let released = place.run("release in.parquet --policy six.toml --to six").exit(0);
    assert!(!released.out.contains("warning") && released.out.contains("; 0 % together"), "{}", released.out);
}

#[test]
fn a_column_that_gives_a_quasi_identifier_away_is_shown() {
    let place = Place::new();
    let texts = |of: &dyn Fn(usize) -> &'static str| -> ArrayRef {
        Arc::new((0..80).map(|row| Some(of(row))).collect::<StringArray>())
    };
    let city = |row: usize| ["Boston", "Salem", "Lynn", "Quincy"][row % 4];
    let zip = |row: usize| ["02138", "02139", "02141", "02142"][row % 4];
    let ward = |row: usize| ["east", "west"][row / 4 % 2];
    // So many columns that one scan does not answer for all of them; the city is among the last.
    let names: Vec<String> = (0..66).map(|at| format!("ward_{at}")).collect();
    let wards = names.iter().map(|name| (name.as_str(), texts(&ward)));
    let columns = wards.chain([("zip", texts(&zip)), ("city", texts(&city)), ("ward", texts(&ward))]);
    place.parquet("in.parquet", &RecordBatch::try_from_iter(columns).unwrap());
    let wards: String = names.iter().map(|name| format!("{name} = {{ role = \"insensitive\" }}\n")).collect();
    let policy = format!(
        "k = 30\nrows_are_individuals = true\n[columns]\nzip = {{ role = \"quasi\", hierarchy = {{ prefix = [4, 3] }} }}\n\
         {wards}city = {{ role = \"insensitive\" }}\nward = {{ role = \"insensitive\" }}\n"
    );
    place.write("p.toml", &policy);
    let refused = place.run("release in.parquet --policy p.toml --to no").exit(2);
    assert!(
        refused.err.contains("columns.city: 80 of 80 rows in the input hold a value that fewer than 30"),
        "{refused:?}"
    );
    place.write("p.toml", policy.replace("k = 30", "k = 20").replace("[4, 3] }", "[4, 3] }, min_level = 2"));
    let released = place.run("release in.parquet --policy p.toml --to out").exit(0);
    // All of Boston lies in 0213*, where the release says 021**; a ward lies everywhere.
    let line = "as is     `city`: reveals `zip` at level prefix:4 in 80 rows\n";
    assert!(released.out.contains(line) && !released.out.contains("`ward`"), "{}", released.out);
    let private: Value =
        serde_json::from_slice(&std::fs::read(place.path("out.private.json")).unwrap()).unwrap();
    let reveals = serde_json::json!([{ "column": "zip", "by": { "generalizer": "prefix", "argument": ["4"] }, "rows": 80 }]);
    for column in private["as_is"].as_array().unwrap() {
        let is_city = column["column"] == "city";
        assert_eq!(column["reveals"], if is_city { reveals.clone() } else { serde_json::json!([]) });
    }
    assert_eq!(private["as_is"].as_array().unwrap().len(), 68);
}

#[test]
fn a_requirement_that_holds_for_one_individual_promises_nothing() {
    let place = Place::new();
    place.parquet("in.parquet", &visits(|row| row, |_| 1, some_diagnosis));
    for require in ["", "k = 1\n"] {
        let policy = format!(
            "{require}rows_are_individuals = true\naccept_homogeneity = [\"diagnosis\"]\nothers = \"drop\"\n\
             [[require]]\nmodel = \"l_diversity\"\nl = 1\nsensitive = \"diagnosis\"\n[columns]\n\
             ssn = {{ role = \"quasi\" }}\ndiagnosis = {{ role = \"sensitive\" }}\n"
        );
        place.write("p.toml", policy);
        let says = "so everyone could be identified; require k of at least 2, or l_diversity with l of at least 2, over all \
                    quasi-identifiers";
        place.run("release in.parquet --policy p.toml --to out").exit(2).says(says);
        let anonymize = "SELECT * FROM anonymize('in.parquet', 'p.toml')";
        place.run_on("sql -c", Some(anonymize), "").exit(2).says(says);
        for command in ["search in.parquet --policy p.toml", "check in.parquet --policy p.toml"] {
            let out = place.run(command).out;
            assert!(out.contains("warning   ") && out.contains(says), "{command}: {out}");
            let json = place.run(&format!("{command} --format json")).json();
            assert!(json["warning"].as_str().unwrap().contains(says), "{json}");
        }
    }
    place.write("p.toml", POLICY);
    let json = place.run("search in.parquet --policy p.toml --format json").exit(0).json();
    assert_eq!(json["warning"], Value::Null);
}
