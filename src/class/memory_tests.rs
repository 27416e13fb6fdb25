//! What the class table reserves is what it takes, and a refusal says how much would do.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, StringArray};

pub(crate) use super::held::tests::{Counting, counting};
use super::individuals::ClassIndividuals;
use super::tests::quasi;
use super::{Budget, ClassTable, ClassTableBuilder, EncodedColumn};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::model::Distribution;

/// Builds a table of this many groups over two quasi-identifiers and a sensitive column; people have two
/// rows each, or are not counted.
pub(crate) fn visits(
    groups: i32,
    place: fn(i32) -> i32,
    counts_individuals: bool,
    budget: &Arc<dyn Budget>,
) -> Result<ClassTable> {
    let numbers =
        |of: fn(i32) -> i32| Arc::new(Int32Array::from_iter_values((0..groups).map(of))) as ArrayRef;
    let (age, place) = (numbers(|n| n * 79 % 997), numbers(place));
    let diagnosis: ArrayRef = Arc::new(StringArray::from_iter((0..groups).map(|n| match n % 7 {
        0 => None,
        n => Some(format!("diagnosis {n}")),
    })));
    let columns = vec![
        quasi("age", &age, Some(("range", &[5, 50, 500]))),
        quasi("place", &place, Some(("range", &[3, 15]))),
    ];
    let mut builder = ClassTableBuilder::new(columns, vec!["diagnosis".into()], budget)?;
    let mut values = vec![age, place, diagnosis];
    if counts_individuals {
        builder = builder.counting_individuals();
        values.push(numbers(|n| n / 2));
    }
    // As they come from a GROUP BY: batch by batch.
    for from in (0..values[0].len()).step_by(1_000) {
        let length = 1_000.min(values[0].len() - from);
        let batch: Vec<ArrayRef> = values.iter().map(|values| values.slice(from, length)).collect();
        builder.add(&batch, &vec![1; length])?;
    }
    builder.finish()
}

const GROUPS: i32 = 20_000;

fn made(counts_individuals: bool, limit: usize) -> (Arc<Counting>, Result<ClassTable>) {
    let (counting, budget) = counting(limit);
    // Every group is a class.
    (counting, visits(GROUPS, |n| n / 997, counts_individuals, &budget))
}

fn is_refusal(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    assert!(error.is(ErrorCode::OutOfMemory), "{error}");
}

#[test]
fn a_table_reserves_what_it_takes() {
    for counts_individuals in [false, true] {
        let (counting, table) = made(counts_individuals, usize::MAX);
        let table = table.unwrap();
        let shared = table.base.members.as_ref().map_or(0, ClassIndividuals::shared_bytes);
        let codes: usize = table.columns.iter().map(EncodedColumn::bytes).sum();
        let distributions: usize = table.distributions.iter().map(Distribution::bytes).sum();
        assert_eq!(counting.used(), table.base.bytes() + shared + codes + distributions);
        // Of every group a class: the key and the rows, the value with its count, and, of people, themselves
        // in the class, their pair of person and value, how many have the value, and its value.
        let each = 16 + (16 + 8) + if counts_individuals { (4 + 8) + (4 + 8) + (16 + 8) + 8 } else { 0 };
        let base = table.base.bytes() + shared;
        assert_eq!(table.base.len(), GROUPS as usize);
        assert!(base.abs_diff(each * GROUPS as usize) < 100, "{base} bytes, {each} each");
        // While it is made, it takes hardly more than twice as much.
        let most = counting.most();
        assert!(most < (base + codes) * 9 / 4, "{most} of {base} and {codes} bytes");
        drop(table);
        assert_eq!(counting.used(), 0);
    }
}

#[test]
fn a_table_is_made_within_what_it_takes_and_is_refused_below() {
    for counts_individuals in [false, true] {
        let (counting, table) = made(counts_individuals, usize::MAX);
        drop(table);
        let most = counting.most();
        assert!(made(counts_individuals, most).1.is_ok());
        let mut refused = 0;
        for limit in (0..most).rev().step_by(most / 50) {
            let (counting, table) = made(counts_individuals, limit);
            let error = table.unwrap_err();
            is_refusal(&error);
            assert!(error.to_string().contains("would do"), "{error}");
            assert_eq!(counting.used(), 0, "{limit}");
            refused += 1;
        }
        assert!(refused >= 50);
        let error = made(counts_individuals, most / 2).1.unwrap_err().to_string();
        assert!(error.contains("the input has 20,000 combinations of values"), "{error}");
    }
}

#[test]
fn a_roll_up_is_made_within_what_it_takes_and_is_refused_one_byte_below() {
    for counts_individuals in [false, true] {
        for to in [[1, 0], [0, 1], [2, 1], [4, 3]] {
            let (counting, table) = made(counts_individuals, usize::MAX);
            let table = table.unwrap();
            counting.most();
            let before = counting.used();
            let rolled = table.roll_up(&table.base, &[0, 0], &to).unwrap();
            assert_eq!(counting.used(), before + rolled.bytes(), "{to:?}");
            let most = counting.most();
            // The index, the result, and the list that takes most while it is made.
            assert!(most - before < table.base.bytes() * 5 / 2, "{to:?}: {} bytes", most - before);
            drop((rolled, table));

            // The table was made with more than the roll-up takes, so the limit is lowered afterwards.
            let within = |limit: usize| {
                let (counting, table) = made(counts_individuals, usize::MAX);
                let table = table.unwrap();
                counting.limit_to(limit);
                let rolled = table.roll_up(&table.base, &[0, 0], &to).map(|rolled| rolled.len());
                assert_eq!(counting.used(), before, "{to:?}");
                rolled
            };
            assert!(within(most).is_ok());
            let error = within(most - 1).unwrap_err();
            is_refusal(&error);
            let figure = format!(
                "too much: {most} bytes would do; the input has 20,000 combinations of values: coarser ones, such as \
                 months in place of days, make fewer"
            );
            assert_eq!(error.to_string(), figure);
        }
    }
}

#[test]
fn released_classes_are_merged_within_what_they_take() {
    let (counting, table) = made(true, usize::MAX);
    let table = table.unwrap();
    counting.most();
    let before = counting.used();
    let target: Vec<u32> = (0..GROUPS as u32).map(|class| class / 4).collect();
    let merged = super::merge_by_number(&table.base, &target, GROUPS as usize / 4).unwrap();
    assert_eq!(counting.used(), before + merged.bytes());
    let most = counting.most();
    drop(merged);
    counting.limit_to(most - 1);
    is_refusal(&super::merge_by_number(&table.base, &target, GROUPS as usize / 4).map(drop).unwrap_err());
    assert_eq!(counting.used(), before);
}
