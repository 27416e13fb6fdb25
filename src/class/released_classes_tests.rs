//! Released classes against rows: what is merged, and what it loses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StringViewArray, UInt8Array};
use proptest::prelude::*;

use super::*;
use crate::class::held::tests::counting;
use crate::class::region::tests::canonical;
use crate::class::tests::quasi;
use crate::class::{
    Budget, ClassTableBuilder, EvaluatedClasses, EvaluatedNode, EvaluatedPartition, MergedClasses, Unlimited,
};
use crate::decimal::Decimal;
use crate::generalize::clip::Clip;
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

/// The columns are a number, in intervals or clipped, and a word.
fn table(rows: &[Row], counts_individuals: bool) -> ClassTable {
    table_within(rows, counts_individuals, None, &(Arc::new(Unlimited) as Arc<dyn Budget>)).unwrap()
}

fn table_within(
    rows: &[Row],
    counts_individuals: bool,
    clip: Option<&Clip>,
    budget: &Arc<dyn Budget>,
) -> Result<ClassTable> {
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
    let mut columns = vec![quasi("a", &a, Some(("range", &[2, 4]))), quasi("b", &b, None)];
    if let Some(clip) = clip {
        columns[0].hierarchy = columns[0].hierarchy.clipped(clip).unwrap();
    }
    columns[1].weight = 0.5;
    let mut builder = ClassTableBuilder::new(columns, vec!["value".into()], budget)?;
    let mut values = vec![a, b, value];
    if counts_individuals {
        builder = builder.counting_individuals();
        values.push(individual);
    }
    builder.add(&values, &groups.into_values().collect::<Vec<_>>())?;
    builder.finish()
}

/// The codes of a base class.
fn codes(table: &ClassTable, base: usize) -> Vec<u32> {
    (0..table.columns().len()).map(|column| table.code(table.base(), base, column)).collect()
}

/// Gives the base classes their regions; those that show the same are one class.
fn released(table: &ClassTable, regions: &[Option<Box<[Region]>>]) -> ReleasedClasses {
    let all_canonical = |shown: &[Region]| -> Box<[Region]> {
        shown.iter().zip(&table.columns).map(|(region, column)| canonical(column, region.clone())).collect()
    };
    let regions: Vec<Option<Box<[Region]>>> =
        regions.iter().map(|shown| shown.as_deref().map(all_canonical)).collect();
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
        let MergedClasses(merged) = table.merge(&released).unwrap();
        let suppressed = released.regions().len();
        let mut groups: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
        for row in &rows {
            let class = released.class_of_base()[base_of(&table, &rows, row)];
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
        for (base, class) in released.class_of_base().iter().enumerate() {
            let Some(class) = class else { continue };
            for (at, column) in table.columns().iter().enumerate() {
                let region = &released.regions()[*class as usize][at];
                prop_assert!(region.holds(column, codes(&table, base)[at]));
                let held = (0..column.distinct()).filter(|code| region.holds(column, *code as u32)).count();
                prop_assert_eq!(region.leaves(column), held as u64);
            }
        }
    }

    #[test]
    fn labels_cover_what_their_regions_hold(rows in rows(), is_clipped in any::<bool>()) {
        let clip = Clip::new(Some(Decimal::integer(2)), Some(Decimal::integer(6))).unwrap();
        let budget: Arc<dyn Budget> = Arc::new(Unlimited);
        let table = table_within(&rows, false, is_clipped.then_some(&clip), &budget).unwrap();
        table.columns().iter().for_each(crate::class::region::tests::labels_cover);
    }

    /// The levels of any node, expressed as released classes, keep and lose the same to the bit.
    #[test]
    fn levels_expressed_as_released_classes_lose_the_same(
        rows in rows(),
        counts_individuals in any::<bool>(),
        as_sets in any::<bool>(),
        is_clipped in any::<bool>(),
    ) {
        let clip = Clip::new(Some(Decimal::integer(2)), Some(Decimal::integer(6))).unwrap();
        let budget: Arc<dyn Budget> = Arc::new(Unlimited);
        let table = table_within(&rows, counts_individuals, is_clipped.then_some(&clip), &budget).unwrap();
        let requirements = [
            Requirement::of_sizes(KAnonymity::new(2).unwrap()),
            Requirement::new(Box::new(LDiversity::new(2).unwrap()), Some("value".into())),
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
            let node = EvaluatedNode::new(&table, &levels, &rolled, &requirements).unwrap();
            let regions = EvaluatedPartition::new(&table, &released, &merged, &requirements).unwrap();
            let facts = |c: &EvaluatedClasses<'_>| {
                (c.kept_rows(), c.suppressed_individuals(), c.kept_classes(), c.min_class(), c.squares())
            };
            prop_assert_eq!(facts(&node), facts(&regions), "{:?}", levels);
            for loss in LOSSES {
                if let Some(any) = loss.for_any_recoding() {
                    let (of_levels, of_regions) = (loss.value(&node), any.of(&regions));
                    prop_assert_eq!(of_levels.to_bits(), of_regions.to_bits(), "{} at {:?}", loss.doc().name, levels);
                }
            }
        }
    }
}

#[test]
fn suppressed_base_classes_are_not_released() {
    let rows: Vec<Row> = vec![
        (Some(1), Some(0), None, Some(1)),
        (Some(1), Some(0), None, Some(1)),
        (Some(2), Some(0), None, Some(2)),
    ];
    let table = table(&rows, true);
    let everything: Box<[Region]> = vec![Region::Everything, Region::Everything].into();
    let released = ReleasedClasses::new(&table, vec![Some(0), None], vec![everything]).unwrap();
    let merged = table.merge(&released).unwrap();
    let judged = EvaluatedPartition::new(
        &table,
        &released,
        &merged,
        &[Requirement::of_sizes(KAnonymity::new(1).unwrap())],
    )
    .unwrap();
    assert_eq!((judged.kept_classes(), judged.kept_rows(), judged.suppressed_rows()), (1, 2, 1));
    assert_eq!((judged.suppressed_individuals(), judged.min_class()), (1, Some(1)));
}

#[test]
fn classes_that_break_the_contract_are_refused() {
    // The words are in the other order, so that the base classes are in the order of both columns.
    let rows: Vec<Row> = (0..3u8).map(|n| (Some(n), Some(3 - n), None, None)).collect();
    let table = table(&rows, false);
    let interval = |first, last| Region::Interval { first, last };
    let all_words = || interval(0, 2);
    let make = |class_of_base: &[Option<u32>], regions: &[&[Region]]| {
        let regions = regions.iter().map(|shown| shown.to_vec().into()).collect();
        ReleasedClasses::new(&table, class_of_base.to_vec(), regions).map_err(|error| error.to_string())
    };
    let (one, all) = ([Some(0); 3], Region::Everything);
    assert!(
        make(&[Some(0), Some(0), Some(1)], &[&[interval(0, 1), all.clone()], &[interval(2, 2), all.clone()]])
            .is_ok()
    );
    assert!(make(&[Some(0), Some(0), None], &[&[Region::Set([0, 1].into()), all_words()]]).is_ok());
    assert_eq!(format!("{:?}", make(&[None; 3], &[]).unwrap()), "ReleasedClasses(0 of 3 base classes)");
    let of_one = |a: Region, b: Region, why: &str| {
        let error = make(&one, &[&[a, b]]).unwrap_err();
        assert!(error.contains(why), "{error}: not `{why}`");
    };
    let invalid = "a region without values of its column";
    of_one(interval(0, 3), all.clone(), invalid);
    of_one(interval(2, 0), all.clone(), invalid);
    of_one(Region::Set([0, 2, 1].into()), all.clone(), invalid);
    of_one(Region::Set([0, 0, 1, 2].into()), all.clone(), invalid);
    of_one(Region::Set([].into()), all.clone(), invalid);
    of_one(Region::Set([0, 3].into()), all.clone(), invalid);
    of_one(Region::Label { level: 9, code: 0 }, all.clone(), invalid);
    of_one(Region::Label { level: 0, code: 3 }, all.clone(), invalid);
    of_one(interval(0, 1), all.clone(), "does not show the value");
    of_one(Region::Set([0, 2].into()), all.clone(), "does not show the value");
    of_one(all.clone(), interval(0, 1), "does not show the value");
    for (class_of_base, regions, why) in [
        (vec![Some(0); 2], vec![vec![all.clone(), all.clone()]], "not one entry per base class"),
        (vec![Some(0); 3], vec![vec![all.clone()]], "not one region per column"),
        (vec![Some(1); 3], vec![vec![all.clone(), all.clone()]], "shows nothing"),
        (
            vec![Some(0); 3],
            vec![vec![all.clone(), all.clone()], vec![interval(0, 1), all.clone()]],
            "without a base class",
        ),
    ] {
        let regions: Vec<&[Region]> = regions.iter().map(Vec::as_slice).collect();
        let error = make(&class_of_base, &regions).unwrap_err();
        assert!(error.contains(why), "{error}: not `{why}`");
    }
}

#[test]
fn regions_with_one_text_are_one_region() {
    let rows: Vec<Row> = (0..3u8).map(|n| (Some(n), Some(0), None, None)).collect();
    let table = table(&rows, false);
    let column = &table.columns()[0];
    let canonical = |region: Region| canonical(column, region);
    let second = Region::Label { level: 0, code: 1 };
    assert_eq!(canonical(Region::Interval { first: 1, last: 1 }), second);
    assert_eq!(canonical(Region::Set([1].into())), second);
    assert_eq!(canonical(Region::Label { level: column.height(), code: 0 }), Region::Everything);
    let both = Region::Interval { first: 0, last: 1 };
    assert_eq!(canonical(Region::Label { level: 1, code: 0 }), both);
    for region in [both, Region::Interval { first: 0, last: 2 }, Region::Set([0, 2].into())] {
        assert_eq!(canonical(region.clone()), region);
    }
    // The only word shows itself, although it is all there is.
    let word = Region::Label { level: 0, code: 0 };
    assert_eq!(crate::class::region::tests::canonical(&table.columns()[1], word.clone()), word);
}

/// A key of several words is replaced by a number of one.
#[test]
fn wide_tables_merge() {
    let columns = (0..20).map(|at| {
        let values: ArrayRef = Arc::new(Int32Array::from_iter_values((0..40).map(|row| (row + at) % 40)));
        (quasi(&format!("c{at}"), &values, None), values)
    });
    let table = crate::class::tests::table(columns.collect());
    let half = |base: usize| (table.code(table.base(), base, 0) >= 20) as u32;
    let mut regions = vec![vec![Region::Everything; 20]; 2];
    regions[0][0] = Region::Interval { first: 0, last: 19 };
    regions[1][0] = Region::Interval { first: 20, last: 39 };
    let class_of_base = (0..table.base().len()).map(|base| Some(half(base))).collect();
    let regions = regions.into_iter().map(Into::into).collect();
    let released = ReleasedClasses::new(&table, class_of_base, regions).unwrap();
    let MergedClasses(merged) = table.merge(&released).unwrap();
    assert!(merged.rows().eq([20, 20]));
    let other =
        table_within(&[(Some(1), None, None, None)], false, None, &(Arc::new(Unlimited) as Arc<dyn Budget>));
    assert!(other.unwrap().merge(&released).is_err());
}

/// Memory that merging takes is asked for, and given back.
#[test]
fn merging_keeps_to_the_budget() {
    let (counting, budget) = counting(usize::MAX);
    let rows: Vec<Row> = (0..200u8).map(|n| (Some(n), Some(n % 4), Some(n % 3), Some(n))).collect();
    let table = table_within(&rows, true, None, &budget).unwrap();
    let before = counting.used();
    counting.most();
    let set = |codes: std::ops::Range<u32>| -> Box<[Region]> {
        vec![Region::Set(codes.collect()), Region::Everything].into()
    };
    let class = |base: usize| Some(u32::from(table.code(table.base(), base, 0) >= 100));
    let classes = (0..table.base().len()).map(class).collect();
    let released = ReleasedClasses::new(&table, classes, vec![set(0..100), set(100..200)]).unwrap();
    let of_released = counting.used() - before;
    assert!(of_released >= 200 * size_of::<u32>() + 200 * size_of::<Option<u32>>());
    let merged = table.merge(&released).unwrap();
    let (used, most) = (counting.used(), counting.most());
    assert_eq!(used - before - of_released, merged.0.bytes());
    assert!(most - used >= 200 * size_of::<u32>(), "the numbers of the classes are not accounted for");
    drop((merged, released));
    assert_eq!(counting.used(), before);
    drop(table);
    assert_eq!(counting.used(), 0);
}
