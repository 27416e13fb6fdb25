//! Records that say what cannot be, and those that can.

use super::*;
use crate::decimal::Decimal;
use crate::model::{Class, Quantity, ValueCount, Worst};
use crate::model::{MODELS, make};
use crate::release::check_models::{MOST_VALUES, check_among_released};
use crate::release::publish::record::ModelRecord;
use crate::release::publish::record::{FORMAT, LevelRecord, RecodingRecord, TableRecord};

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
pub(in crate::release) fn public(
    columns: Vec<ColumnRecord>,
    levels: Vec<LevelRecord>,
    models: Vec<ModelRecord>,
) -> PublicRecord {
    PublicRecord {
        format: FORMAT,
        tool: String::new(),
        statement: None,
        models,
        counted_in: "individuals".into(),
        recoding: RecodingRecord::Levels(levels),
        layout: Default::default(),
        tables: vec![TableRecord {
            folder: None,
            columns,
            partition_by: Vec::new(),
            rows: 200,
            files: Vec::new(),
        }],
        individuals: Some(100),
        classes: 10,
        unique: Default::default(),
        homogeneous: Vec::new(),
        risk: Default::default(),
        history: None,
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
