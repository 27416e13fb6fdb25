use arrow::array::{ArrayRef, Int64Array};
use arrow::record_batch::RecordBatch;

use super::*;
use crate::engine::{Resources, Rules};
use crate::release::check_record::tests::public;
use crate::release::publish::record::ColumnRecord;
use crate::role::Role;

#[test]
fn levels_are_those_that_kanon_writes() {
    let level = |level, of, by: &str, text| {
        let record = |by| LevelRecord { column: "x".to_owned(), level, of, by };
        by.parse().is_ok_and(|by| is_level(&record(by), text))
    };
    for (number, of, by, text) in [
        (0, 3, "as_is", true),
        (0, 3, "clip:0,90", true),
        (0, 1, "clip:,90", false),
        (3, 3, "suppress", false),
        (2, 4, "hierarchy:2", true),
        (1, 2, "date:year", false),
        (1, 2, "range:10 origin:5 clip:0,90", true),
        (1, 2, "bands:18.5,25", true),
        (2, 3, "prefix:3 side:right", true),
    ] {
        assert!(level(number, of, by, text), "{number} of {of} by {by}");
    }
    for (number, of, by, text) in [
        (77, 3, "suppress", true),
        (2, 3, "suppress", true),
        (3, 3, "date:year", false),
        (4, 3, "date:year", false),
        (0, 0, "as_is", true),
        (0, 0, "suppress", true),
        (1, 3, "as_is", true),
        (1, 3, "clip:0,90", true),
        (0, 3, "range:10", true),
        (1, 3, "hierarchy:2", true),
        (1, 3, "hierarchy:01", true),
        (1, 3, "hierarchy:1", false),
        (1, 3, "hierarchy:1 Bob", true),
        (1, 3, "range:010", true),
        (1, 3, "Bob has HIV", true),
        (1, 3, "date:Bob", false),
        (1, 3, "", true),
    ] {
        assert!(!level(number, of, by, text), "{number} of {of} by {by}");
    }
}

/// Texts that the text of a descriptor cannot hold.
#[test]
fn a_descriptor_holds_nothing_else() {
    let is_right = |by: serde_json::Value| {
        let by: Descriptor = serde_json::from_value(by).unwrap();
        let level = |level| LevelRecord { column: "x".to_owned(), level, of: 3, by: by.clone() };
        (0..4).any(|number| is_level(&level(number), true))
    };
    assert!(is_right(serde_json::json!({ "generalizer": "as_is" })));
    assert!(is_right(serde_json::json!({ "generalizer": "range", "argument": ["10"], "clip": ["0", null] })));
    for by in [
        serde_json::json!({ "generalizer": "as_is", "argument": ["Bob has HIV"] }),
        serde_json::json!({ "generalizer": "as_is", "clip": ["0", "90"] }),
        serde_json::json!({ "generalizer": "suppress", "options": { "Bob": "HIV" } }),
        serde_json::json!({ "generalizer": "suppress", "clip": ["Bob", "HIV"] }),
        serde_json::json!({ "generalizer": "hierarchy", "argument": ["1", "Bob"] }),
        serde_json::json!({ "generalizer": "hierarchy", "argument": ["1"], "options": { "Bob": "HIV" } }),
        serde_json::json!({ "generalizer": "clip", "argument": ["Bob"], "clip": ["0", "90"] }),
        serde_json::json!({ "generalizer": "clip", "argument": ["0", "90"] }),
        serde_json::json!({ "generalizer": "range", "argument": ["10", "20"] }),
        serde_json::json!({ "generalizer": "range", "argument": ["10"], "options": { "origin": "0" } }),
        serde_json::json!({ "generalizer": "date", "argument": ["year", "Bob"] }),
        serde_json::json!({ "generalizer": "bands", "argument": ["18,25"] }),
        serde_json::json!({ "generalizer": "range", "argument": ["10"], "clip": [null, null] }),
    ] {
        assert!(!is_right(by.clone()), "{by}");
    }
}

/// What is said of a column `x` of these numbers that is called generalized by `by`.
async fn generalized(numbers: &[i64], by: &str) -> String {
    let x: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
    let rows = RecordBatch::try_from_iter([("x", x)]).unwrap();
    let column = ColumnRecord {
        name: "x".into(),
        role: Role::Quasi.word().into(),
        data_type: "Int64".into(),
        days_since: None,
    };
    let session = Resources { threads: 1, memory: 1 << 26, spill: None }.session(Rules::new()).unwrap();
    let (schema, output) = (rows.schema(), session.read_batch(rows).unwrap());
    let level = LevelRecord { column: "x".into(), level: 1, of: 2, by: by.parse().unwrap() };
    match generalizers(&public(vec![column], vec![level], Vec::new()), &schema, &output).await {
        Ok(made) => format!("{} made", made.iter().flatten().count()),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn levels_make_the_released_types() {
    assert_eq!(generalized(&[10, 20], "floor:10").await, "1 made");
    let dates = generalized(&[2019, 2020], "date:year").await;
    assert!(dates.contains("`x` has a type that its level does not produce"), "{dates}");
    assert_eq!(generalized(&[7, 7], "suppress").await, "1 made");
    let several = generalized(&[7, 8], "suppress").await;
    assert!(several.contains("`x` is recorded as suppressed but holds several values"), "{several}");
}
