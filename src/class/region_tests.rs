//! The regions of all kinds of columns: what they hold, and what their text says.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, StringViewArray,
    TimestampSecondArray,
};
use arrow::datatypes::DataType;

use super::*;
use crate::class::tests::{quasi, table};
use crate::class::{ClassTable, GrowingRegion, QuasiColumn};
use crate::decimal::Decimal;
use crate::generalize::clip::Clip;
use crate::generalize::{GENERALIZERS, Hierarchy, date, hierarchy};
use crate::parameter::{Setting, TextTable};

/// Returns the canonical form of a region.
pub(in crate::class) fn canonical(column: &EncodedColumn, region: Region) -> Region {
    region.canonical(&LabelTexts::of(column).unwrap()).unwrap()
}

/// The labels of all levels, the intervals, some sets, and everything.
fn all_regions(column: &EncodedColumn) -> Vec<Region> {
    let values = column.distinct() as u32;
    let labels = (0..=column.height()).flat_map(|level| {
        let labels = column.level(level).labels().len() as u32;
        (0..labels).map(move |code| Region::Label { level, code })
    });
    let pairs = (0..values).flat_map(|first| (first..values).map(move |last| (first, last)));
    let intervals = pairs.clone().map(|(first, last)| Region::Interval { first, last });
    // A text column has no intervals: they are sets.
    let has_intervals = !column.hierarchy().input_type().is_string();
    let pairs_above_null = pairs.clone().filter(|(first, _)| *first > 0 && column.has_null());
    let apart = pairs.filter(move |(first, last)| has_intervals && first < last);
    let sets = apart.map(|(first, last)| Region::Set([first, last].into()));
    let with_null = pairs_above_null.map(|(first, last)| Region::OrMissing { first, last });
    labels.chain(intervals).chain(with_null).chain(sets).chain([Region::Everything]).collect()
}

/// An interval that several classes share may reach to values of suppressed rows; its text does not.
#[test]
fn an_interval_ends_at_kept_values() {
    let ages: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(20), Some(30), Some(40), Some(50)]));
    let table = table(vec![(quasi("age", &ages, None), ages)]);
    let column = &table.columns()[0];
    let text =
        |region: Region, kept: &[u32]| region.label_among(column, kept).unwrap().write(&DataType::Int32);
    let (interval, or_missing) =
        (Region::Interval { first: 1, last: 4 }, Region::OrMissing { first: 1, last: 4 });
    assert_eq!(text(interval.clone(), &[0, 1, 2, 3, 4]).unwrap(), "[20,50]");
    assert_eq!(text(interval.clone(), &[2, 3]).unwrap(), "[30,40]");
    assert_eq!(text(interval, &[0, 3]).unwrap(), "40");
    assert_eq!(text(or_missing.clone(), &[0, 2, 3]).unwrap(), "[30,40] or missing");
    assert_eq!(text(or_missing, &[0, 4]).unwrap(), "50 or missing");
}

/// A region that grows value by value shows as many leaves as the finest one around these values.
fn regions_grow(column: &EncodedColumn) {
    let values = column.distinct() as u32;
    let mut growing = GrowingRegion::new(column).unwrap();
    assert_eq!(growing.leaves(), 0);
    for step in 1..=values {
        for first in 0..values {
            growing.clear();
            let mut added = Vec::new();
            // Forwards and around the end, so that values come in any order and several times.
            for value in (0..=values).map(|at| (first + at * step) % values) {
                growing.add(value);
                added.push(value);
                let mut codes = added.clone();
                codes.sort_unstable();
                codes.dedup();
                let is_several = codes.len() > 1;
                let around = Region::around(column, codes).unwrap();
                assert_eq!(growing.leaves(), around.leaves(column), "{column:?} {added:?}");
                let labels = growing.labels_below();
                assert_eq!(labels.is_some(), is_several && !column.has_intervals());
                // The values share a label, and the one below it parts them.
                if let Some(Some(labels)) = labels {
                    assert!(added.iter().any(|value| labels[*value as usize] != labels[first as usize]));
                }
            }
        }
    }
}

/// The text of a region covers its values and no others, and is that of no other region.
pub(in crate::class) fn labels_cover(column: &EncodedColumn) {
    let mut by_text: BTreeMap<Option<String>, Region> = BTreeMap::new();
    let data_type = column.hierarchy().input_type();
    regions_grow(column);
    for region in all_regions(column) {
        let region = canonical(column, region);
        assert_eq!(canonical(column, region.clone()), region);
        let Ok(label) = region.label(column) else {
            let stands_for_more = |code: u32| {
                matches!(
                    column.leaf_label(code).unwrap(),
                    RegionLabel::Values { values: Values::Interval(..), .. }
                )
            };
            assert!(matches!(region, Region::Set(codes) if codes.iter().any(|code| stands_for_more(*code))));
            continue;
        };
        let text = label.write(data_type);
        let read = RegionLabel::parse(text.as_deref(), data_type);
        assert_eq!(read.write(data_type), text);
        for (value, code) in column.level(0).of_value().iter().enumerate() {
            let value = Value::read(column.values(), value).unwrap();
            let covers = read.covers(column.hierarchy(), &value).unwrap();
            assert_eq!(covers, region.holds(column, *code), "{text:?} {:?}", value.text_form());
        }
        assert_eq!(by_text.entry(text).or_insert_with(|| region.clone()), &region);
        cut_labels_cover(column, &region);
    }
}

/// Without the ends of its values a region shows the same values, or everything.
fn cut_labels_cover(column: &EncodedColumn, region: &Region) {
    let all: Vec<u32> = (0u32..).take(column.distinct()).collect();
    let label = region.label_of_cuts(column, &all).unwrap();
    let data_type = column.hierarchy().input_type();
    let read = RegionLabel::parse(label.write(data_type).as_deref(), data_type);
    assert_eq!(read.write(data_type), label.write(data_type));
    if let Region::OrMissing { .. } = region {
        assert_eq!(region.label_of_cuts(column, &[0]).unwrap(), RegionLabel::Missing);
    }
    for (value, code) in column.level(0).of_value().iter().enumerate() {
        let value = Value::read(column.values(), value).unwrap();
        let covers = read.covers(column.hierarchy(), &value).unwrap();
        let holds = region.holds(column, *code);
        // Between no ends there are NULL and NaN, too.
        let has_no_end = read == RegionLabel::Everything;
        assert!(covers == holds || has_no_end, "{region:?} {:?}", label.write(data_type));
    }
}

#[test]
fn labels_of_every_kind_of_column() {
    let numbers: ArrayRef =
        Arc::new(Int32Array::from(vec![None, Some(-7), Some(0), Some(3), Some(12), Some(95)]));
    let floats = Float64Array::from(vec![
        None,
        Some(-7.5),
        Some(0.0),
        Some(18.5),
        Some(f64::INFINITY),
        Some(f64::NAN),
    ]);
    let floats: ArrayRef = Arc::new(floats);
    let dates: ArrayRef =
        Arc::new(Date32Array::from(vec![None, Some(-4_000), Some(0), Some(31), Some(9_000), Some(9_001)]));
    let answers: ArrayRef =
        Arc::new(BooleanArray::from(vec![None, Some(true), Some(false), Some(true), None, Some(false)]));
    let words = [None, Some("*"), Some("{a; b}"), Some("other"), Some("rest"), Some("x or missing")];
    let words: ArrayRef = Arc::new(StringViewArray::from(words.to_vec()));
    let file = [["*", "m"], ["{a; b}", "\\m"], ["other", "other"], ["rest", "other"], ["x or missing", "m"]];
    let file = TextTable::from(file.iter().map(|row| row.map(str::to_owned).to_vec()).collect::<Vec<_>>());
    let by_file = hierarchy::ROW.of(file).unwrap();
    let clip = Clip::new(Some(Decimal::integer(0)), Some(Decimal::integer(90))).unwrap();
    let mut clipped = quasi("clipped", &numbers, Some(("floor", &[10])));
    clipped.hierarchy = clipped.hierarchy.clipped(&clip).unwrap();
    let mut of_file = quasi("file", &words, None);
    of_file.hierarchy = Hierarchy::new(&DataType::Utf8View, by_file).unwrap();
    let years = date::ROW.of(vec!["month", "decade"]);
    let mut dated = quasi("date", &dates, None);
    dated.hierarchy = Hierarchy::new(&DataType::Date32, years.unwrap()).unwrap();
    let table = table(vec![
        (quasi("floor", &numbers, Some(("floor", &[10, 20]))), Arc::clone(&numbers)),
        (quasi("prefix", &numbers, Some(("prefix", &[1]))), Arc::clone(&numbers)),
        (quasi("range", &floats, Some(("range", &[10]))), Arc::clone(&floats)),
        (quasi("plain", &floats, None), floats),
        (clipped, numbers),
        (dated, dates),
        (quasi("answer", &answers, None), answers),
        (quasi("word", &words, Some(("prefix", &[2]))), Arc::clone(&words)),
        (of_file, words),
    ]);
    table.columns().iter().for_each(labels_cover);
}

/// Values at the edges of their types, bounds on one side or both, and words that a file uses twice.
#[test]
fn labels_of_difficult_columns() {
    let leveled = |values: &ArrayRef, key: &str, first: &Setting| {
        let row = GENERALIZERS.iter().find(|row| row.key == Some(key)).unwrap();
        let levels = row.of(first.clone()).unwrap();
        let hierarchy = Hierarchy::new(values.data_type(), levels).unwrap();
        QuasiColumn { name: "n".into(), hierarchy, weight: 1.0 }
    };
    let number = Decimal::integer;
    let tens = Setting::from(vec![number(10)]);
    let columns = |clip: Option<Clip>| {
        let floats = [
            None,
            Some(f64::NEG_INFINITY),
            Some(-3.0),
            Some(0.0),
            Some(45.5),
            Some(90.0),
            Some(f64::INFINITY),
            Some(f64::NAN),
        ];
        let floats: ArrayRef = Arc::new(Float64Array::from(floats.to_vec()));
        let decimals = Decimal128Array::from(vec![
            None,
            Some(-300),
            Some(0),
            Some(4_550),
            Some(8_999),
            Some(9_000),
            Some(12_345),
            Some(1),
        ]);
        let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(9, 2).unwrap());
        let bands = Setting::from(vec![vec![number(18), number(40)]]);
        let all = [
            (&floats, "range", &tens),
            (&floats, "floor", &tens),
            (&decimals, "range", &tens),
            (&decimals, "floor", &tens),
            (&floats, "bands", &bands),
        ];
        let columns = all.map(|(values, key, argument)| {
            let mut column = leveled(values, key, argument);
            if let Some(clip) = &clip {
                column.hierarchy = column.hierarchy.clipped(clip).unwrap();
            }
            (column, ArrayRef::clone(values))
        });
        Vec::from(columns)
    };
    for clip in [
        None,
        Some((Some(number(0)), Some(number(90)))),
        Some((None, Some(number(90)))),
        Some((Some(number(0)), None)),
    ] {
        let clip = clip.map(|(low, high)| Clip::new(low, high).unwrap());
        table(columns(clip)).columns().iter().for_each(labels_cover);
    }

    let seconds =
        vec![None, Some(-99_999_999_999), Some(-1), Some(0), Some(253_402_300_800), Some(9_999_999_999_999)];
    let seconds = TimestampSecondArray::from(seconds);
    let days: ArrayRef = Arc::new(Date32Array::from(vec![
        None,
        Some(i32::MIN),
        Some(-800_000),
        Some(3_000_000),
        Some(0),
        Some(1),
    ]));
    let zoned: ArrayRef = Arc::new(seconds.clone().with_timezone("Europe/Berlin"));
    let seconds: ArrayRef = Arc::new(seconds);
    let plain = [seconds, zoned, days].map(|values| (quasi("n", &values, None), values));
    table(plain.into()).columns().iter().for_each(labels_cover);
    // Clocks were set back across midnight: the first of November came twice.
    let moments = TimestampSecondArray::from(vec![
        1_257_042_600,
        1_257_042_660,
        1_257_042_720,
        1_257_046_200,
        1_257_046_260,
    ]);
    let moments: ArrayRef = Arc::new(moments.with_timezone("America/St_Johns"));
    let months = leveled(&moments, "date", &vec!["month", "year"].into());
    table(vec![(months, moments)]).columns().iter().for_each(labels_cover);

    let words = |cells: &[&str]| -> ArrayRef { Arc::new(StringViewArray::from_iter_values(cells)) };
    let texts = words(&["02", "02*", "021", "", "*", "\\", "{02}"]);
    table(vec![(quasi("n", &texts, Some(("prefix", &[3, 1]))), texts)])
        .columns()
        .iter()
        .for_each(labels_cover);
    for file in [
        "Tbilisi;Georgia;Asia;*\nAtlanta;Atlanta;America;*\nGeorgia;USA;America;*\n",
        "a;other;x;*\nb;y;other;*\nc;y;other;*\n",
        "unknown;*;*\na;b;*\nc;b;*\n",
        "a;a;*\nb;a;*\n*;c;*\n",
    ] {
        let leaves: Vec<Option<&str>> =
            file.lines().map(|line| line.split(';').next()).chain([None]).collect();
        of_file(file, leaves).columns().iter().for_each(labels_cover);
    }
    let integers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(3), None, Some(5)]));
    for file in ["1;a;*\n3;a;*\n2;b;*\n5;5;*\n", "3;<50;*\n1;<50;*\n2;[1,3];*\n5;1;*\n"] {
        let column = leveled(&integers, "file", &hierarchy::parse_csv(file, "n").unwrap().into());
        table(vec![(column, Arc::clone(&integers))]).columns().iter().for_each(labels_cover);
    }
}

fn of_file(file: &str, values: Vec<Option<&str>>) -> ClassTable {
    let levels = hierarchy::ROW.of(hierarchy::parse_csv(file, "n").unwrap()).unwrap();
    let values: ArrayRef = Arc::new(StringViewArray::from(values));
    let hierarchy = Hierarchy::new(values.data_type(), levels).unwrap();
    table(vec![(QuasiColumn { name: "n".into(), hierarchy, weight: 1.0 }, values)])
}

/// Leaves of a file count where they do not occur, and NULL is one more.
#[test]
fn regions_of_a_file_have_its_leaves() {
    let file = "one;low;*\ntwo;low;*\nthree;high;*\nfour;four;*\n";
    let table = of_file(file, vec![Some("four"), Some("one")]);
    let column = &table.columns()[0];
    let low = Region::Label { level: 1, code: 0 };
    assert_eq!((low.leaves(column), low.holds(column, 0), low.holds(column, 1)), (2, true, false));
    assert_eq!((Region::Everything.leaves(column), Region::Set([1].into()).leaves(column)), (4, 1));
    assert_eq!(Region::Interval { first: 0, last: 1 }.leaves(column), 4);
    // Its own level repeats the last value.
    assert_eq!(canonical(column, Region::Set([1].into())), Region::Label { level: 1, code: 1 });

    let table = of_file(file, vec![Some("three"), None, Some("one")]);
    let column = &table.columns()[0];
    assert_eq!(Region::Interval { first: 0, last: 1 }.leaves(column), 2);
    assert_eq!(Region::Interval { first: 1, last: 2 }.leaves(column), 3);
    assert_eq!(
        (Region::Interval { first: 0, last: 2 }.leaves(column), Region::Everything.leaves(column)),
        (4, 5)
    );
}
