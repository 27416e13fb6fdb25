//! Released classes against rows: what is merged, and what it loses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, StringViewArray, UInt8Array};
use proptest::prelude::*;

use super::*;
use crate::class::tests::quasi;
use crate::class::{Budget, ClassTableBuilder, EvaluatedClasses, EvaluatedNode, EvaluatedRegions, Unlimited};
use crate::generalize::Value;
use crate::measure::LOSSES;
use crate::model::{Requirement, ValueCount, k_anonymity::KAnonymity, l_diversity::LDiversity};

/// Two quasi-identifiers, a sensitive value and an individual.
type Row = (Option<u8>, Option<u8>, Option<u8>, Option<u8>);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (
        prop::option::weighted(0.9, 0..8u8),
        prop::option::weighted(0.9, 0..4u8),
        prop::option::weighted(0.8, 0..3u8),
        prop::option::weighted(0.8, 0..9u8),
    );
    prop::collection::vec(row, 1..40)
}

fn table(rows: &[Row], counts_individuals: bool) -> ClassTable {
    let mut groups: BTreeMap<Row, u64> = BTreeMap::new();
    for (a, b, value, individual) in rows {
        *groups.entry((*a, *b, *value, individual.filter(|_| counts_individuals))).or_default() += 1;
    }
    let cells = |cell: fn(&Row) -> Option<u8>| groups.keys().map(cell).collect::<Vec<_>>();
    let a: ArrayRef =
        Arc::new(cells(|row| row.0).into_iter().map(|n| n.map(i32::from)).collect::<Int32Array>());
    let words = ["d", "c", "b", "a"];
    let b = cells(|row| row.1).into_iter().map(|n| n.map(|n| words[usize::from(n)]));
    let b: ArrayRef = Arc::new(b.collect::<StringViewArray>());
    let value: ArrayRef = Arc::new(UInt8Array::from(cells(|row| row.2)));
    let individual: ArrayRef = Arc::new(UInt8Array::from(cells(|row| row.3)));
    let columns = vec![quasi("a", &a, Some(("range", &[2, 4]))), quasi("b", &b, None)];
    let budget: Arc<dyn Budget> = Arc::new(Unlimited);
    let mut builder = ClassTableBuilder::new(columns, vec!["value".into()], &budget).unwrap();
    let mut values = vec![a, b, value];
    if counts_individuals {
        builder = builder.counting_individuals();
        values.push(individual);
    }
    builder.add(&values, &groups.into_values().collect::<Vec<_>>()).unwrap();
    builder.finish().unwrap()
}

/// The codes of a base class.
fn codes(table: &ClassTable, base: usize) -> Vec<u32> {
    (0..table.columns().len()).map(|column| table.code(table.base(), base, column)).collect()
}

/// Gives the base classes their regions; those that show the same are one class.
fn released(table: &ClassTable, regions: &[Option<Box<[Region]>>]) -> ReleasedClasses {
    let distinct: BTreeSet<&Box<[Region]>> = regions.iter().flatten().collect();
    let numbers: BTreeMap<&Box<[Region]>, u32> = distinct.into_iter().zip(0..).collect();
    let of_base = regions.iter().map(|shown| shown.as_ref().map(|shown| numbers[shown])).collect();
    ReleasedClasses::new(table, of_base, numbers.into_keys().cloned().collect()).unwrap()
}

/// The regions that hold these codes, as an interval, a set or everything.
fn region(codes: &BTreeSet<u32>, kind: u8) -> Region {
    match kind {
        0 => Region::Interval { first: *codes.first().unwrap(), last: *codes.last().unwrap() },
        1 => Region::Set(codes.iter().copied().collect()),
        _ => Region::Everything,
    }
}

/// Each base class with a number of its own choice, or suppressed.
fn dealt(table: &ClassTable, picks: &[Option<u8>], kinds: [u8; 2]) -> ReleasedClasses {
    let pick = |base: usize| picks[base % picks.len()];
    let shown = |base: usize| {
        let group = pick(base)?;
        let members = (0..table.base().len()).filter(|other| pick(*other) == Some(group));
        let members: Vec<Vec<u32>> = members.map(|other| codes(table, other)).collect();
        let regions = (0..2).map(|at| region(&members.iter().map(|codes| codes[at]).collect(), kinds[at]));
        Some(regions.collect())
    };
    released(table, &(0..table.base().len()).map(shown).collect::<Vec<_>>())
}

/// The base class of a row: that of its values' places in their order, NULL first.
fn base_of(table: &ClassTable, rows: &[Row], row: &Row) -> usize {
    let places =
        |all: BTreeSet<Option<u8>>, cell: Option<u8>| all.iter().position(|one| *one == cell).unwrap();
    // The words are in the other order.
    let word = |row: &Row| row.1.map(|n| 3 - n);
    let a = places(rows.iter().map(|row| row.0).collect(), row.0);
    let b = places(rows.iter().map(word).collect(), word(row));
    (0..table.base().len()).find(|base| codes(table, *base) == [a as u32, b as u32]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merging_equals_regrouping_the_rows(
        rows in rows(),
        picks in prop::collection::vec(prop::option::weighted(0.8, 0..5u8), 1..12),
        kinds in prop::array::uniform2(0..3u8),
        counts_individuals in any::<bool>(),
    ) {
        let table = table(&rows, counts_individuals);
        let released = dealt(&table, &picks, kinds);
        let merged = table.merge(&released).unwrap();
        let suppressed = released.shows().len();
        let mut groups: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
        for row in &rows {
            let class = released.of_base()[base_of(&table, &rows, row)];
            groups.entry(class.map_or(suppressed, |class| class as usize)).or_default().push(row);
        }
        prop_assert_eq!(merged.len(), groups.len());
        let values: BTreeSet<u8> = rows.iter().filter_map(|row| row.2).collect();
        let number = |value: &Option<u8>| value.map(|value| values.iter().position(|v| *v == value).unwrap() as u32);
        for ((class, rows), found) in groups.iter().zip(merged.rows()) {
            prop_assert_eq!(found, rows.len() as u64);
            let mut counts: BTreeMap<Option<u32>, BTreeSet<u64>> = BTreeMap::new();
            for (at, row) in rows.iter().enumerate() {
                let holder = if counts_individuals { row.3.map(u64::from) } else { Some(at as u64) };
                if let Some(holder) = holder {
                    counts.entry(number(&row.2)).or_default().insert(holder);
                }
            }
            let expected: Vec<ValueCount> = counts
                .iter()
                .map(|(value, holders)| ValueCount { value: *value, count: holders.len() as u64 })
                .collect();
            prop_assert_eq!(merged.by_value(*class, 0), expected);
            let people: BTreeSet<u64> = counts.into_values().flatten().collect();
            prop_assert_eq!(merged.size(*class, found), people.len() as u64);
        }
    }

    /// A class shows what its base classes hold, and its leaves are the values that it shows.
    #[test]
    fn regions_hold_their_values(
        rows in rows(),
        picks in prop::collection::vec(prop::option::weighted(0.8, 0..5u8), 1..12),
        kinds in prop::array::uniform2(0..3u8),
    ) {
        let table = table(&rows, false);
        let released = dealt(&table, &picks, kinds);
        for (base, class) in released.of_base().iter().enumerate() {
            let Some(class) = class else { continue };
            for (at, column) in table.columns().iter().enumerate() {
                let region = &released.shows()[*class as usize][at];
                prop_assert!(region.holds(column, codes(&table, base)[at]));
                let held = (0..column.distinct()).filter(|code| region.holds(column, *code as u32)).count();
                prop_assert_eq!(region.leaves(column), held as u64);
            }
        }
    }

    /// The levels of any node, said once more as released classes, keep and lose the same to the bit.
    #[test]
    fn levels_said_as_classes_lose_the_same(rows in rows(), counts_individuals in any::<bool>(), as_sets in any::<bool>()) {
        let table = table(&rows, counts_individuals);
        let requirements = [
            Requirement::of_sizes(KAnonymity::new(2).unwrap()),
            Requirement { model: Box::new(LDiversity::new(2).unwrap()), sensitive: Some("value".into()) },
        ];
        let heights = table.heights();
        for levels in (0..=heights[0]).flat_map(|a| (0..=heights[1]).map(move |b| [a, b])) {
            let shown = |base: usize| -> Option<Box<[Region]>> {
                let columns = table.columns().iter().zip(codes(&table, base)).zip(levels);
                let regions = columns.map(|((column, code), level)| {
                    let labels = column.map(0, level).unwrap();
                    let code = labels[code as usize];
                    let held = (0u32..).zip(labels).filter(|(_, label)| **label == code).map(|(value, _)| value);
                    if as_sets { Region::Set(held.collect()) } else { Region::Label { level, code } }
                });
                Some(regions.collect())
            };
            let released = released(&table, &(0..table.base().len()).map(shown).collect::<Vec<_>>());
            let (rolled, merged) =
                (table.roll_up(table.base(), &[0, 0], &levels).unwrap(), table.merge(&released).unwrap());
            let node = EvaluatedNode::new(&table, &levels, &rolled, &requirements);
            let regions = EvaluatedRegions::new(&table, &released, &merged, &requirements);
            let facts = |c: &EvaluatedClasses<'_>| {
                (c.kept_rows(), c.suppressed_individuals(), c.kept_classes(), c.min_class(), c.squares())
            };
            prop_assert_eq!(facts(&node), facts(&regions), "{:?}", levels);
            for loss in LOSSES {
                if let Some(any) = loss.of_any() {
                    let (of_levels, of_regions) = (loss.value(&node), any.of(&regions));
                    prop_assert_eq!(of_levels.to_bits(), of_regions.to_bits(), "{} at {:?}", loss.doc().name, levels);
                }
            }
        }
    }
}

#[test]
fn suppressed_base_classes_are_no_class() {
    let rows: Vec<Row> = vec![
        (Some(1), Some(0), None, Some(1)),
        (Some(1), Some(0), None, Some(1)),
        (Some(2), Some(0), None, Some(2)),
    ];
    let table = table(&rows, true);
    let everything: Box<[Region]> = vec![Region::Everything, Region::Everything].into();
    let released = ReleasedClasses::new(&table, vec![Some(0), None], vec![everything]).unwrap();
    let merged = table.merge(&released).unwrap();
    let judged = EvaluatedRegions::new(
        &table,
        &released,
        &merged,
        &[Requirement::of_sizes(KAnonymity::new(1).unwrap())],
    );
    assert_eq!((judged.kept_classes(), judged.kept_rows(), judged.suppressed_rows()), (1, 2, 1));
    assert_eq!((judged.suppressed_individuals(), judged.min_class()), (1, Some(1)));
}

#[test]
fn classes_that_break_the_contract_are_refused() {
    let rows: Vec<Row> = (0..3u8).map(|n| (Some(n), Some(0), None, None)).collect();
    let table = table(&rows, false);
    let interval = |first, last| Region::Interval { first, last };
    let shows = |regions: &[Region]| -> Vec<Box<[Region]>> {
        regions.iter().map(|region| vec![region.clone(), Region::Everything].into()).collect()
    };
    let make = |of_base: &[Option<u32>], regions: &[Region]| {
        ReleasedClasses::new(&table, of_base.to_vec(), shows(regions)).map_err(|error| error.to_string())
    };
    assert!(make(&[Some(0), Some(0), Some(1)], &[interval(0, 1), interval(2, 2)]).is_ok());
    assert!(make(&[Some(0), Some(0), None], &[Region::Set([0, 1].into())]).is_ok());
    for (of_base, regions, why) in [
        (vec![Some(0); 2], vec![interval(0, 2)], "not one class per base class"),
        (vec![Some(0); 3], vec![interval(0, 3)], "not one class per base class"),
        (vec![Some(0); 3], vec![interval(2, 0)], "not one class per base class"),
        (vec![Some(0); 3], vec![Region::Set([0, 2, 1].into())], "not one class per base class"),
        (vec![Some(0); 3], vec![Region::Label { level: 9, code: 0 }], "not one class per base class"),
        (vec![Some(1); 3], vec![interval(0, 2)], "shows nothing"),
        (vec![Some(0); 3], vec![interval(0, 2), interval(0, 1)], "without a base class"),
        (vec![Some(0), Some(1), Some(1)], vec![interval(0, 2), interval(0, 2)], "show the same"),
        (vec![Some(0); 3], vec![interval(0, 1)], "does not show the value"),
        (vec![Some(0); 3], vec![Region::Set([0, 2].into())], "does not show the value"),
    ] {
        let error = make(&of_base, &regions).unwrap_err();
        assert!(error.contains(why), "{error}: not `{why}`");
    }
    assert_eq!(
        format!("{:?}", make(&[None, None, None], &[]).unwrap()),
        "ReleasedClasses(0 of 3 base classes)"
    );
}

#[test]
fn labels_of_a_file_hold_its_leaves() {
    let file = "one;low;*\ntwo;low;*\nthree;high;*\nfour;high;*\n";
    let rows = crate::generalize::hierarchy::parse_csv(file, "n").unwrap();
    let levels =
        (crate::generalize::hierarchy::ROW.levels)(&rows, &crate::generalize::Options::default()).unwrap();
    let values: ArrayRef = Arc::new(StringViewArray::from(vec!["four", "one"]));
    let hierarchy = crate::generalize::Hierarchy::new(values.data_type(), levels).unwrap();
    let column = crate::class::QuasiColumn { name: "n".into(), hierarchy, weight: 1.0 };
    let table = crate::class::tests::table(vec![(column, Arc::clone(&values))]);
    let column = &table.columns()[0];
    let low = Region::Label { level: 1, code: 0 };
    assert_eq!((low.leaves(column), low.holds(column, 0), low.holds(column, 1)), (2, true, false));
    assert_eq!((Region::Everything.leaves(column), Region::Set([1].into()).leaves(column)), (4, 1));
    assert_eq!(Value::read(column.values(), 0).unwrap(), Value::Text("one".into()));
}
