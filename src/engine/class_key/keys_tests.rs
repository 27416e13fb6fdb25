//! Keys of all types and encodings beside Arrow's rows.

use super::*;
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, DictionaryArray, FixedSizeBinaryArray, Float32Array,
    Int8Array, Int32Array, Int64Array, IntervalDayTimeArray, IntervalMonthDayNanoArray,
    IntervalYearMonthArray, LargeStringArray, StringArray, StringViewArray, Time32SecondArray,
    TimestampMicrosecondArray, UInt16Array, downcast_integer_array,
};
use arrow::compute::{cast, take};
use arrow::datatypes::{Int32Type, IntervalDayTime, IntervalMonthDayNano, TimeUnit};
use arrow::row::{RowConverter, SortField};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const SEED: Seed = [1, 2];

fn keys_of(seed: Seed, columns: &[ArrayRef]) -> Vec<i128> {
    keys_with(&KnownContributions::default(), seed, columns)
}

/// The keys of a batch after others whose dictionaries are known.
fn keys_with(known: &KnownContributions, seed: Seed, columns: &[ArrayRef]) -> Vec<i128> {
    super::keys_of(seed, columns, columns[0].len(), known).unwrap()
}

/// The number of forms of columns; that of number 3 is a dictionary.
const FORMS: usize = 25;

/// A column of each form from small numbers, so that values repeat; a few are NULL.
fn column(form: usize, numbers: &[u8]) -> ArrayRef {
    let of = |number: u8| (number > 0).then_some(number);
    let text =
        |number: u8| of(number).map(|n| "twelve bytes".repeat(usize::from(n) / 4) + &"x".repeat(n.into()));
    let long = |number: u8| of(number).map(i64::from).map(|n| n << 31 | n);
    let texts: Vec<Option<String>> = numbers.iter().map(|n| text(*n)).collect();
    let longs = Int64Array::from_iter(numbers.iter().map(|n| long(*n)));
    match form {
        0 => Arc::new(StringViewArray::from_iter(texts)),
        1 => Arc::new(StringArray::from_iter(texts)),
        2 => Arc::new(LargeStringArray::from_iter(texts)),
        3 => Arc::new(texts.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>()),
        4 => Arc::new(BinaryArray::from_iter(texts.iter().map(|t| t.as_ref().map(String::as_bytes)))),
        5 => Arc::new(longs),
        6 => Arc::new(Int8Array::from_iter(
            numbers.iter().map(|n| of(*n).map(|n| n.cast_signed().wrapping_neg())),
        )),
        7 => Arc::new(Date32Array::from_iter(numbers.iter().map(|n| of(*n).map(i32::from)))),
        8 => Arc::new(Float32Array::from_iter(numbers.iter().map(|n| of(*n).map(|n| f32::from(n) / 3.0)))),
        9 => Arc::new(BooleanArray::from_iter(numbers.iter().map(|n| of(*n).map(|n| n % 2 == 0)))),
        10 => cast(&longs, &DataType::Decimal128(38, 3)).unwrap(),
        11 => cast(&longs, &DataType::Decimal256(50, 3)).unwrap(),
        12 => Arc::new(TimestampMicrosecondArray::from_iter(numbers.iter().map(|n| long(*n)))),
        13 => {
            let months = |n: u8| IntervalMonthDayNano::new(n.into(), 0, 7);
            Arc::new(IntervalMonthDayNanoArray::from_iter(numbers.iter().map(|n| of(*n).map(months))))
        }
        14 => {
            let bytes = numbers.iter().map(|n| of(*n).map(|n| [n; 5]));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 5).unwrap())
        }
        15 => Arc::new(UInt16Array::from_iter(numbers.iter().map(|n| of(*n).map(u16::from)))),
        16 => {
            // In the middle of a buffer, it is aligned to four bytes.
            let times = numbers.iter().map(|n| of(*n).map(|n| IntervalDayTime::new(n.into(), -7)));
            let times = std::iter::once(None).chain(times);
            Arc::new(IntervalDayTimeArray::from_iter(times).slice(1, numbers.len()))
        }
        17 => Arc::new(IntervalYearMonthArray::from_iter(numbers.iter().map(|n| of(*n).map(i32::from)))),
        18 => {
            let floats = Float32Array::from_iter(numbers.iter().map(|n| of(*n).map(|n| f32::from(n) / 4.0)));
            cast(&floats, &DataType::Float16).unwrap()
        }
        19 => cast(&column(15, numbers), &DataType::Decimal32(5, 1)).unwrap(),
        20 => cast(&column(15, numbers), &DataType::Decimal64(12, 3)).unwrap(),
        21 => cast(&longs, &DataType::Date64).unwrap(),
        22 => cast(&longs, &DataType::Duration(TimeUnit::Microsecond)).unwrap(),
        23 => cast(&column(12, numbers), &DataType::Timestamp(TimeUnit::Nanosecond, Some("+01:00".into())))
            .unwrap(),
        _ => Arc::new(Time32SecondArray::from_iter(numbers.iter().map(|n| of(*n).map(i32::from)))),
    }
}

#[test]
fn the_keys_of_many_rows_are_those_of_each_part() {
    let numbers: Vec<u8> = (0..2 * BLOCK + 500).map(|row| (row * row / 7 % 9).try_into().unwrap()).collect();
    let columns: Vec<ArrayRef> = (0..FORMS).map(|form| column(form, &numbers)).collect();
    let part = |first: usize| {
        let rows = 700.min(numbers.len() - first);
        keys_of(SEED, &columns.iter().map(|column| column.slice(first, rows)).collect::<Vec<_>>())
    };
    let parts: Vec<i128> = (0..numbers.len()).step_by(700).flat_map(part).collect();
    assert_eq!(keys_of(SEED, &columns), parts);
    assert_eq!(parts.iter().collect::<HashSet<_>>().len(), 9);
}

#[test]
fn the_keys_of_entries_of_a_dictionary_that_is_too_large_to_be_kept_are_those_of_texts() {
    let texts = StringArray::from_iter((0..1 << 16).map(|number| Some(format!("{number:0>60}"))));
    let entries: ArrayRef = Arc::new(texts);
    let contributions = || unreachable!("the dictionary is too large");
    assert!(KnownContributions::default().get((SEED, 0), &entries, contributions).unwrap().is_none());
    let rows = (0..2 * BLOCK as i32 + 7).map(|row| (row % 5 > 0).then_some(row * 4_099 % (1 << 16)));
    let rows: Int32Array = rows.collect();
    let plain = take(&entries, &rows, None).unwrap();
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(rows, entries));
    assert_eq!(keys_of(SEED, &[dictionary]), keys_of(SEED, &[plain]));
}

#[test]
fn entries_of_few_values_have_the_keys_of_their_texts() {
    let texts = [Some("a"), None, Some("a text of more than twelve bytes"), Some("")];
    let number = 2 * BLOCK + 7;
    for (values, nulls) in (1..=texts.len()).flat_map(|values| [(values, 0), (values, 7)]) {
        let entries: ArrayRef = Arc::new(StringArray::from_iter((0..64).map(|entry| texts[entry % values])));
        let is_valid = |row: &usize| nulls == 0 || !row.is_multiple_of(nulls);
        let rows = (0..number).map(|row| is_valid(&row).then_some(i32::try_from(row * 11 % 64).unwrap()));
        let rows: Int32Array = rows.collect();
        let plain = take(&entries, &rows, None).unwrap();
        for keys in [DataType::Int32, DataType::Int8, DataType::UInt16, DataType::Int64] {
            let rows = &*cast(&rows, &keys).unwrap();
            let dictionary: ArrayRef = downcast_integer_array!(
                rows => Arc::new(DictionaryArray::new(rows.clone(), Arc::clone(&entries))),
                _ => unreachable!("keys are integers"),
            );
            let expected = keys_of(SEED, &[Arc::clone(&plain)]);
            assert_eq!(keys_of(SEED, &[Arc::clone(&dictionary)]), expected, "{values} {nulls} {keys}");
            let part = dictionary.slice(BLOCK - 3, BLOCK + 5);
            assert_eq!(
                keys_of(SEED, &[part]),
                &expected[BLOCK - 3..2 * BLOCK + 2],
                "{values} {nulls} {keys}"
            );
        }
    }
}

proptest! {
    #[test]
    fn two_rows_have_one_key_where_they_are_equal(
        forms in proptest::collection::vec(0..FORMS, 1..7),
        rows in proptest::collection::vec(proptest::array::uniform7(0u8..9), 1..80),
        seed: [u64; 2],
    ) {
        let columns: Vec<ArrayRef> = forms.iter().enumerate().map(|(at, form)| {
            column(*form, &rows.iter().map(|row| row[at]).collect::<Vec<_>>())
        }).collect();
        let fields = columns.iter().map(|c| SortField::new(c.data_type().clone())).collect();
        let truth = RowConverter::new(fields).unwrap().convert_columns(&columns).unwrap();
        let keys = keys_of(seed, &columns);
        let (mut of_row, mut of_key) = (HashMap::new(), HashMap::new());
        for (row, key) in truth.iter().zip(&keys) {
            prop_assert_eq!(*of_row.entry(row).or_insert(*key), *key);
            prop_assert_eq!(*of_key.entry(*key).or_insert(row), row);
        }
        prop_assert!(keys.iter().all(|key| (0..1i128 << 122).contains(key)));
        // The result must not depend on where a batch is cut.
        let cut = rows.len() / 3;
        let rest: Vec<ArrayRef> = columns.iter().map(|c| c.slice(cut, rows.len() - cut)).collect();
        prop_assert_eq!(keys_of(seed, &rest), &keys[cut..]);
    }

    #[test]
    fn what_is_known_of_a_dictionary_holds_for_its_column_and_seed_only(
        // All forms but that of dictionaries.
        form in (0..FORMS - 1).prop_map(|form| form + usize::from(form >= 3)),
        // Few values of many entries are grouped.
        numbers in prop_oneof![
            proptest::collection::vec(0u8..9, 1..12),
            proptest::collection::vec(0u8..2, 16..40),
        ],
        batches in proptest::collection::vec(
            proptest::collection::vec(
                proptest::array::uniform2(proptest::option::weighted(0.9, 0i32..40)),
                1..20,
            ),
            2..5,
        ),
        seeds: [Seed; 2],
    ) {
        let others: Vec<u8> = numbers.iter().map(|number| 8 - number).collect();
        let entries = [column(form, &numbers), column(form, &others)];
        let known = KnownContributions::default();
        for (batch, entries) in batches.iter().flat_map(|batch| entries.iter().map(move |it| (batch, it))) {
            let number = i32::try_from(entries.len()).unwrap();
            // Two columns with the same entries.
            let rows = [0, 1].map(|at| -> Int32Array {
                batch.iter().map(|row| row[at].map(|entry| entry % number)).collect()
            });
            let packed = rows.each_ref().map(|rows| -> ArrayRef {
                Arc::new(DictionaryArray::new(rows.clone(), Arc::clone(entries)))
            });
            let plain = rows.each_ref().map(|rows| take(entries, rows, None).unwrap());
            for seed in seeds {
                prop_assert_eq!(keys_with(&known, seed, &packed), keys_of(seed, &plain));
            }
        }
    }
}

#[test]
fn all_encodings_of_texts_have_the_same_keys() {
    let numbers = [3, 0, 8, 3, 1, 8, 0, 5];
    let keys = keys_of(SEED, &[column(0, &numbers)]);
    for form in 1..5 {
        assert_eq!(keys_of(SEED, &[column(form, &numbers)]), keys, "{form}");
    }
    assert_ne!(keys_of([1, 3], &[column(0, &numbers)]), keys);
    // Dictionaries: NULL among the values, more values than rows, no values.
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
    let dictionary = |keys: Vec<Option<i32>>| -> ArrayRef {
        Arc::new(DictionaryArray::<Int32Type>::new(keys.into(), Arc::clone(&values)))
    };
    let plain = |texts: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
    let dictionaries = [
        (dictionary(vec![Some(0), Some(1), None, Some(2)]), plain(vec![Some("a"), None, None, Some("b")])),
        (dictionary(vec![Some(2)]), plain(vec![Some("b")])),
        (Arc::new(DictionaryArray::<Int32Type>::from_iter([None::<&str>; 2])), plain(vec![None, None])),
    ];
    for (dictionary, plain) in dictionaries {
        assert_eq!(keys_of(SEED, &[dictionary]), keys_of(SEED, &[plain]));
    }
}

#[test]
fn where_a_value_ends_and_in_which_column_it_is_matters() {
    let text = |text: &str| -> ArrayRef { Arc::new(StringViewArray::from(vec![text])) };
    let different = [
        [text("a"), text("bc")],
        [text("ab"), text("c")],
        [text("c"), text("ab")],
        [text("abc"), text("")],
        [text(""), text("abc")],
        [text("abc\0"), text("")],
        [text("twelve bytes"), text("")],
        [text("twelve bytes!"), text("")],
        [text("twelve bytes?"), text("")],
        [Arc::new(StringViewArray::from(vec![None::<&str>])), text("abc")],
    ];
    let mut keys: Vec<i128> = different.iter().map(|columns| keys_of(SEED, columns)[0]).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), different.len());
}

#[test]
fn what_is_nested_has_no_key() {
    let list = DataType::new_list(DataType::Int8, true);
    assert!(
        !is_hashable(&list) && !is_hashable(&DataType::Dictionary(Box::new(DataType::Int8), Box::new(list)))
    );
    assert!(is_hashable(&DataType::Null) && is_hashable(&DataType::Utf8View));
}
