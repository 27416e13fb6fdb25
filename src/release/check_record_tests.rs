//! Records that say what cannot be, and those that can.

use arrow::array::{ArrayRef, Int64Array};
use arrow::record_batch::RecordBatch;

use super::*;
use crate::decimal::Decimal;
use crate::engine::{Resources, Rules};
use crate::model::{Class, Quantity, ValueCount, Worst};
use crate::model::{MODELS, make};
use crate::release::check_models::{MOST_VALUES, check_among_released};
use crate::release::publish::record::ModelRecord;
use crate::release::publish::record::{ColumnRecord, FORMAT, RecodingRecord, TableRecord};

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

/// The premise of [`is_reached`]: for every model whose least value is its worst, a class
/// reaches no more with individuals than with rows.
#[test]
fn individuals_reach_no_more_than_their_rows() {
    let mut state = 11u64;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let counts = |pairs: &BTreeSet<(u64, Option<u32>)>| -> Vec<ValueCount> {
        let values: BTreeSet<Option<u32>> = pairs.iter().map(|(_, value)| *value).collect();
        let of = |value| pairs.iter().filter(|(_, other)| *other == value).count() as u64;
        values.into_iter().map(|value| ValueCount { value, count: of(value) }).collect()
    };
    for _ in 0..2_000 {
        let rows: Vec<(u64, Option<u32>)> = (0..=below(7))
            .map(|_| (below(4), u32::try_from(below(4)).ok().filter(|value| *value < 3)))
            .collect();
        // The individual 3 is NULL and is not counted.
        let known: BTreeSet<_> = rows.iter().copied().filter(|(individual, _)| *individual < 3).collect();
        let individuals =
            known.iter().map(|(individual, _)| *individual).collect::<BTreeSet<_>>().len() as u64;
        let by_row: BTreeSet<_> = rows.iter().zip(0u64..).map(|((_, value), row)| (row, *value)).collect();
        for row in MODELS {
            let with = |number: i64| {
                let parameters = row
                    .parameters
                    .iter()
                    .map(|parameter| (parameter.name.to_owned(), Decimal::integer(number).into()));
                row.with(&parameters.collect::<Vec<_>>())
            };
            let model = with(2).or_else(|_| with(1)).unwrap();
            let of_individuals = model.value(&Class::of_values(individuals, &counts(&known)));
            let Some(by_rows) = model.bounded_by_rows() else { continue };
            let of_rows = by_rows.value(&Class::of_values(rows.len() as u64, &counts(&by_row)));
            let is_bounded = match model.worst() {
                Worst::Least => of_individuals.to_f64() <= of_rows.to_f64(),
                Worst::Greatest => of_individuals.to_f64() >= of_rows.to_f64(),
            };
            assert!(is_bounded, "{}: {rows:?}", row.doc.name);
            assert!(!model.holds(of_individuals) || by_rows.holds(of_rows), "{}: {rows:?}", row.doc.name);
        }
    }
}

/// l-diversity of diagnoses.
fn diversity(l: i64) -> Requirement {
    let model = make("l_diversity", &[("l".to_owned(), Decimal::integer(l).into())]).unwrap();
    Requirement::new(model, Some("diagnosis".into()))
}

fn reached(reached: f64) -> ModelRecord {
    ModelRecord {
        model: "l_diversity".into(),
        parameters: [("l".to_owned(), "3".to_owned())].into(),
        level: None,
        values: None,
        quasi: None,
        sensitive: Some("diagnosis".into()),
        required: 3.0,
        reached: Some(reached),
        compared_with: None,
    }
}

/// Nine different values among the rows of a class do not make five individuals more diverse than five.
#[test]
fn diversity_is_bounded_by_rows_and_by_individuals() {
    let l = diversity(3);
    let can = |said, by_rows, least| {
        is_reached(&reached(said), &l, Some(Quantity::Count(by_rows)), least, Counted::Individuals)
    };
    assert!(can(3.0, 9, 5) && can(5.0, 9, 5) && can(4.0, 4, 5));
    assert!(!can(6.0, 9, 5), "more values than individuals");
    assert!(!can(5.0, 4, 5), "more values than among the rows");
    assert!(!can(2.0, 9, 5), "less than required");
    assert!(can(3.0, 9, 3) && !can(3.0, 9, 2), "fewer individuals than values");
    assert!(!can(3.5, 9, 5), "half a value");
    let many = u64::from(MOST_VALUES) + 1;
    assert!(can(9.0, 9, many) && !can(10.0, 9, many), "large classes");
    assert!(!is_reached(&reached(3.0), &l, None, 5, Counted::Individuals), "no class among the rows");
}

/// One person with many rows of one value makes rows look less even than people are; still people have no
/// more values than their rows.
#[test]
fn entropy_is_bounded_by_the_diversity_of_rows() {
    let parameters = [("l".to_owned(), Decimal::parse("2.4602329762901234").unwrap().into())];
    let model = make("entropy_l_diversity", &parameters).unwrap();
    let entropy = Requirement::new(model, Some("diagnosis".into()));
    let can = |value, by_rows, least| {
        is_reached(&reached(value), &entropy, Some(Quantity::Count(by_rows)), least, Counted::Individuals)
    };
    assert!(can(4.5, 5, 5) && can(5.0, 5, 5) && !can(4.5, 4, 5), "more values than among the rows");
    assert!(!can(5.5, 9, 5), "more values than individuals");
    assert!(!can(2.46, 9, 5), "less than required");
    assert!(can(2.46023297629, 9, 5), "what is required, as a record rounds it");
    assert!(!can(2.5, 9, 2), "fewer individuals than values");
    assert!(!is_reached(&reached(2.5), &entropy, None, 5, Counted::Individuals), "no class among the rows");
}

/// A record of ten classes and a hundred individuals.
fn public(columns: Vec<ColumnRecord>, levels: Vec<LevelRecord>, models: Vec<ModelRecord>) -> PublicRecord {
    PublicRecord {
        format: FORMAT,
        tool: String::new(),
        statement: None,
        models,
        counted_in: "individuals".into(),
        recoding: RecodingRecord::Levels(levels),
        tables: vec![TableRecord { folder: None, columns, rows: 200, files: Vec::new() }],
        individuals: Some(100),
        classes: 10,
        unique: Default::default(),
        homogeneous: Vec::new(),
        risk: Default::default(),
        digest: String::new(),
    }
}

/// Twenty of the hundred are in classes of four, at risk.
#[test]
fn risks_are_possible() {
    let sizes: ClassSizes = [4, 4, 4, 4, 4, 16, 16, 16, 16, 16].into_iter().collect();
    let value = |row: &RiskRow| recorded(row.with(&[]).unwrap().value(&sizes).unwrap());
    let mut public = public(Vec::new(), Vec::new(), Vec::new());
    public.risk = RISKS.iter().map(|row| (row.doc.name.to_owned(), value(row))).collect();
    let mut least = |share: f64| {
        public.risk.insert("share_at_risk".into(), share);
        check_risks(&public, 100).ok()
    };
    assert_eq!([0.2, 0.04, 1.0].map(&mut least), [Some(4); 3]);
    // More than all, fewer than a class, half a person.
    assert_eq!([1.5, 0.03, 0.205].map(&mut least), [None; 3]);
}

#[test]
fn homogeneous_classes_are_bounded() {
    let is_right = |models: &[ModelRecord], column: &str, by_rows, (classes, individuals)| {
        let of = |classes, individuals| Homogeneous { column: column.into(), classes, individuals };
        let mut public = public(Vec::new(), Vec::new(), models.to_vec());
        public.homogeneous.push(of(classes, individuals));
        let verified = Verified {
            rows: 200,
            sizes: ClassSizes::default(),
            homogeneous: vec![of(by_rows, 0)],
            suppressed_rows: None,
            individuals: None,
            unowned_rows: 0,
            reached: Vec::new(),
            reached_among_released: Vec::new(),
        };
        check_homogeneous(&public, 100, 5, &verified).is_ok()
    };
    let free = |by_rows, said| is_right(&[], "diagnosis", by_rows, said);
    assert!(free(0, (0, 0)) && free(0, (1, 5)) && free(2, (3, 100)) && free(10, (10, 100)));
    assert!(!free(0, (0, 5)), "somebody in no class");
    assert!(!free(0, (1, 4)), "fewer than the smallest class");
    assert!(!free(0, (1, 101)), "more than all");
    assert!(!free(0, (10, 99)), "all classes, not all people");
    assert!(!free(2, (1, 20)), "fewer classes than the rows say");
    assert!(!free(0, (11, 100)), "more classes than there are");

    let close = [closeness_record(1.0)];
    assert!(is_right(&close, "diagnosis", 0, (0, 0)), "classes of several values");
    assert!(!is_right(&close, "diagnosis", 0, (1, 5)), "no value is shared by a class of five");
    // Two values in each class leave none homogeneous, in that column.
    let diverse = [reached(3.0)];
    assert!(is_right(&diverse, "diagnosis", 0, (0, 0)) && !is_right(&diverse, "diagnosis", 0, (1, 5)));
    assert!(is_right(&diverse, "drug", 0, (1, 5)));
    assert!(is_right(&[reached(1.0)], "diagnosis", 0, (1, 5)));
    assert!(!is_right(&[reached(2.0)], "diagnosis", 0, (1, 5)));
    let size = ModelRecord { model: "k_anonymity".into(), sensitive: None, ..reached(5.0) };
    assert!(is_right(&[size], "diagnosis", 0, (1, 5)));
    let entropy = |value| ModelRecord { model: "entropy_l_diversity".into(), ..reached(value) };
    assert!(is_right(&[entropy(1.5)], "diagnosis", 0, (0, 0)));
    assert!(
        !is_right(&[entropy(1.5)], "diagnosis", 0, (1, 5))
            && is_right(&[entropy(1.0)], "diagnosis", 0, (1, 5))
    );
}

/// An individual asks for at least 0, so no class has a greater margin than its size.
#[test]
fn a_margin_is_bounded_by_the_smallest_class() {
    let model = make("personalized_k_anonymity", &[]).unwrap();
    let wishes = Requirement::new(model, Some("wanted".into()));
    let record = |value| ModelRecord { model: "personalized_k_anonymity".into(), ..reached(value) };
    let is_right = |value| is_reached(&record(value), &wishes, None, 5, Counted::Rows);
    assert!(is_right(0.0) && is_right(5.0));
    assert!(!is_right(6.0) && !is_right(-1.0) && !is_right(0.5));
}

/// t-closeness of diagnoses.
fn closeness(t: &str) -> Requirement {
    let model = make("t_closeness", &[("t".to_owned(), Decimal::parse(t).unwrap().into())]).unwrap();
    Requirement::new(model, Some("diagnosis".into()))
}

fn closeness_record(value: f64) -> ModelRecord {
    let parameters = [("t".to_owned(), "0.1".to_owned())].into();
    ModelRecord { model: "t_closeness".into(), parameters, ..reached(value) }
}

#[test]
fn closeness_is_bounded_by_what_is_released() {
    let is_right = |value, least| {
        is_reached(&closeness_record(value), &closeness("0.1"), None, least, Counted::Individuals)
    };
    assert!(is_right(0.0, 1) && is_right(1.0, 1), "with individuals any distance is possible");
    assert!(!is_right(1.5, 1) && !is_right(-0.5, 1) && !is_right(f64::NAN, 1) && !is_right(0.5, 0));
    // Rows: a distance among the released rows is at most twice that from the input.
    let verified = |above| Verified {
        rows: 200,
        sizes: ClassSizes::default(),
        homogeneous: Vec::new(),
        suppressed_rows: None,
        individuals: None,
        unowned_rows: 0,
        reached: vec![None],
        reached_among_released: vec![Some(Quantity::Ratio(above, 10))],
    };
    assert!(check_among_released(&[closeness("0.1")], &verified(2)).is_ok());
    let refused = check_among_released(&[closeness("0.1")], &verified(3)).unwrap_err().to_string();
    assert!(
        refused.contains("differ more from one another than t_closeness(0.1, diagnosis) allows"),
        "{refused}"
    );
    // Two people who share a value are never close; one alone may be.
    let rules_out = |record: &ModelRecord, size| rules_out_sharing(record, size).unwrap();
    assert!(rules_out(&closeness_record(1.0), 2) && !rules_out(&closeness_record(0.0), 1));
    assert!(rules_out(&reached(2.0), 5) && !rules_out(&reached(1.0), 5));
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
