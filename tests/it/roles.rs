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
    let says = "`ssn` repeats in 20 rows: people seem to have several rows each, and would count several times; give the \
                column that tells whose row it is the role `individual`, or say `rows_are_individuals = true` if each row \
                is a person";
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
    let says = "columns.diagnosis: 5 of 40 rows hold a value that no other row has, and the column is released as it is \
                (role `insensitive`): whoever knows the value finds the row, whatever the quasi-identifiers say; make it \
                a quasi-identifier with a hierarchy, leave it out (`identifier`, `text`), or say `allow_unique = true` in \
                its line if nobody can know its values";
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
        .says("columns.visit: 40 of 40 rows hold a value");
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
    let line = "copies    10 of them (25 %) are exact copies of another row: meant, or loaded twice?\n";
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
