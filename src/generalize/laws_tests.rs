//! Laws and examples for all generalizers; those that need the engine are in `tests/it/laws.rs`.

use std::iter;

use arrow::array::*;
use arrow::compute::sort;
use arrow::datatypes::{Int8Type, Int32Type, TimeUnit};
use proptest::prelude::*;

use super::civil::{FIRST_DAY, LAST_DAY};
use super::suppress::Suppress;
use super::*;
use crate::generalize::bounds::{FloatGrid, Grid};
use crate::generalize::floor::Floor;

#[test]
fn what_a_call_needs_is_what_the_documentation_says() {
    for row in GENERALIZERS {
        let needed = &row.parameters[..row.parameters.len() - row.options().len()];
        let names: Vec<&str> = needed.iter().map(|parameter| parameter.name).collect();
        assert_eq!(row.doc.parameters.trim_end_matches("..."), names.join(", "));
        assert!(row.options().iter().all(|option| option.absent != Absent::Refused), "{}", row.doc.name);
    }
}

/// The column in every encoding: as is, as a dictionary, and text in all its types.
fn encodings(values: &ArrayRef) -> Vec<ArrayRef> {
    let mut all = vec![Arc::clone(values)];
    if values.data_type().is_string() {
        all = [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View]
            .map(|t| cast(values, &t).unwrap())
            .into();
    }
    for plain in all.clone() {
        // The first entry is used by no row.
        let entries: Vec<u64> = iter::once(0).chain(0..plain.len() as u64).take(plain.len() + 1).collect();
        if plain.is_empty() {
            continue;
        }
        let entries = take(&plain, &UInt64Array::from(entries), None).unwrap();
        let keys = (0..plain.len()).map(|row| plain.is_valid(row).then_some(row as i32 + 1));
        all.push(Arc::new(DictionaryArray::<Int32Type>::new(keys.collect(), entries)));
    }
    all
}

/// Checks that the columnar and the naive way agree in every encoding and that all results are
/// labels; returns the results, or `None` when both refuse.
pub(crate) fn agree(generalizer: &dyn Generalizer, values: &ArrayRef) -> Option<ArrayRef> {
    let mut results = encodings(values).into_iter().map(|values| {
        let plain = match values.data_type() {
            DataType::Dictionary(_, entries) => entries.as_ref().clone(),
            other => other.clone(),
        };
        let naive = (0..values.len())
            .map(|row| generalizer.generalize_value(&Value::read(&values, row)?))
            .collect::<Result<Vec<Value>>>()
            .and_then(|cells| {
                assert!(cells.iter().all(|cell| generalizer.is_label(cell)), "{}", generalizer.descriptor());
                Value::build(&cells, &generalizer.output_type(&plain)?)
            });
        let columnar = apply(generalizer, &values);
        assert_eq!(columnar.is_ok(), naive.is_ok(), "{columnar:?} {naive:?}");
        (columnar.ok(), naive.ok())
    });
    let (first, naive) = results.next().unwrap();
    assert_eq!(first, naive);
    for (columnar, naive) in results {
        assert_eq!((&columnar, &naive), (&first, &first));
    }
    first
}

/// Floats of all sizes, and many that are a decimal's nearest double or a neighbour of one.
pub(crate) fn float() -> impl Strategy<Value = f64> {
    let decimal = (-5_000_000_000_000_000i64..5_000_000_000_000_000, 0u32..25, -2i32..3).prop_map(
        |(n, shift, ulps)| {
            let v: f64 = format!("{n}e-{shift}").parse().unwrap();
            (0..ulps.abs()).fold(v, |v, _| if ulps < 0 { v.next_down() } else { v.next_up() })
        },
    );
    prop_oneof![4 => decimal, 1 => any::<f64>(), 1 => -1e3..1e3]
}

fn restored(descriptor: &str, text: bool) -> Option<Arc<dyn Generalizer>> {
    descriptor.parse::<Descriptor>().ok()?.restore(text)
}

fn level(label: &str) -> Arc<dyn Generalizer> {
    let text = !["floor", "date", "clip"].iter().any(|name| label.starts_with(name));
    restored(label, text).unwrap()
}

fn moments(zone: Option<&str>) -> DataType {
    DataType::Timestamp(TimeUnit::Second, zone.map(Into::into))
}

#[test]
fn order_is_promised_where_it_is_kept() {
    let promised = |label: &str, input: &DataType| level(label).keeps_order(input);
    for input in [DataType::Int64, DataType::Float64] {
        assert!(promised("floor:10", &input) && promised("clip:0,90", &input));
        assert!(!promised("range:10", &input) && !promised("bands:5,10", &input));
    }
    assert!(!promised("prefix:2", &DataType::Utf8View) && !promised("period:year", &DataType::Date32));
    assert!(!restored("clip:0,90", true).unwrap().keeps_order(&DataType::Int64));
    for text in [true, false] {
        assert_eq!(AsIs { text }.keeps_order(&DataType::Int64), !text);
    }
    assert!(
        Suppress::star().keeps_order(&DataType::Utf8View) && Suppress::null().keeps_order(&DataType::Int64)
    );
    for zone in [None, Some("UTC"), Some("Etc/UTC"), Some("Z"), Some("+02:00"), Some("-05:30")] {
        assert!(promised("date:month", &moments(zone)), "{zone:?}");
    }
    // In autumn the clocks are put back: a later moment can have an earlier local time.
    assert!(!promised("date:month", &moments(Some("Europe/Berlin"))));
    assert!(promised("date:month", &DataType::Date32));

    // Labels that do not keep the order have no preimage between two moments.
    let end = |zone: Option<&str>| {
        let first = Value::Timestamp(0, TimeUnit::Second, zone.map(Into::into));
        level("date:day").preimage_end(&moments(zone), &first)
    };
    assert_eq!(end(None), Some(Value::Timestamp(86_400, TimeUnit::Second, None)));
    assert!(end(Some("+02:00")).is_some() && end(Some("Europe/Berlin")).is_none());
    let (february, march) = (Value::Date(31), Value::Date(59));
    assert_eq!(level("date:month").preimage_end(&DataType::Date32, &february), Some(march));

    let numbers = Float64Array::from_iter((-40..140).map(|n| Some(f64::from(n) / 4.0)));
    for label in ["floor:10", "floor:2.5 origin:1", "floor:10 clip:0,20", "clip:-3,12.5"] {
        let labels = agree(&*level(label), &(Arc::new(numbers.clone()) as ArrayRef)).unwrap();
        assert_eq!(&sort(&labels, None).unwrap(), &labels, "{label}");
    }
    // As text `<5` sorts before `>=10`, and that before the interval between them.
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 7, 12]));
    let labels = agree(&*level("bands:5,10"), &numbers).unwrap();
    assert_ne!(&sort(&labels, None).unwrap(), &labels);
}

#[test]
fn only_whole_numbers_and_decimals_have_a_preimage_of_a_floor() {
    let price = |digits: i128| Value::Decimal(digits.into(), 2);
    let money = DataType::Decimal128(9, 2);
    let end = |label: &str, input: &DataType, from: &Value| level(label).preimage_end(input, from);
    assert_eq!(end("floor:10 origin:5", &DataType::Int8, &Value::Int(25)), Some(Value::Int(35)));
    assert_eq!(end("floor:2.5", &money, &price(-250)), Some(price(0)));
    assert_eq!(end("floor:10", &DataType::Float64, &Value::Float(20.0)), None);
    // A label of another type than the column's, and a level whose first and last labels are
    // open-ended.
    assert_eq!(end("floor:10", &DataType::Float64, &Value::Int(20)), None);
    assert_eq!(end("floor:10", &DataType::Int64, &price(2_000)), None);
    assert_eq!(end("floor:10 clip:0,90", &DataType::Int64, &Value::Int(20)), None);
}

#[test]
fn labels_are_what_a_level_can_give() {
    let text = |text: &str| Value::Text(text.into());
    let star = || Arc::new(Suppress::star()) as Arc<dyn Generalizer>;
    for (level, label, other) in [
        (level("clip:0,90"), Value::Int(90), Value::Int(91)),
        (level("clip:0,90"), Value::Float(0.0), Value::Float(-0.5)),
        (restored("clip:0,90", true).unwrap(), Value::Null, Value::Int(5)),
        (level("range:10 clip:0,90"), text("[80,90)"), text("[90,90)")),
        (level("date:month"), Value::Date(31), Value::Date(30)),
        (star(), text("*"), text("**")),
        (star(), text("*"), Value::Null),
        (Arc::new(Suppress::null()), Value::Null, Value::Bool(true)),
    ] {
        assert!(
            level.is_label(&label) && !level.is_label(&other),
            "{} {label:?} {other:?}",
            level.descriptor()
        );
    }
    assert!(star().is_top() && Suppress::null().is_top());
}

#[test]
fn text_arrives_in_one_encoding() {
    let words: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None]));
    for encoding in [DataType::Utf8, DataType::LargeUtf8] {
        let text = cast(&words, &encoding).unwrap();
        assert_eq!(&apply(&AsIs { text: false }, &text).unwrap(), &words);
    }
}

#[test]
fn dictionaries_are_generalized_by_the_values_that_rows_have() {
    // No row uses the second entry, which cannot be floored; the third is NULL; the last row has no
    // key.
    let entries: ArrayRef = Arc::new(Int8Array::from(vec![Some(17), Some(-128), None, Some(25)]));
    let keys = Int8Array::from(vec![Some(3), Some(0), Some(2), Some(0), None]);
    let values: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::clone(&entries)));
    let floors = apply(&*level("floor:10"), &values).unwrap();
    let expected = Int8Array::from(vec![Some(20), Some(10), None, Some(10), None]);
    assert_eq!(floors.as_primitive::<Int8Type>(), &expected);
    assert!(apply(&*level("floor:10"), &entries).is_err());

    let stars = apply(&Suppress::star(), &values).unwrap();
    assert_eq!(stars.as_string_view().iter().collect::<Vec<_>>(), [Some("*"); 5]);
    let nothing = apply(&Suppress::null(), &values).unwrap();
    assert_eq!((nothing.len(), nothing.null_count()), (5, 5));
}

#[test]
fn null_keys_may_hold_any_number() {
    // Rows use all entries, or all but one whose floor does not fit.
    for entries in [vec![17, 25], vec![17, 25, -128]] {
        let keys = Int8Array::new(vec![1, -77, 0].into(), Some(vec![true, false, true].into()));
        let values = DictionaryArray::<Int8Type>::new(keys, Arc::new(Int8Array::from(entries)));
        let [whole, end] = [values.clone(), values.slice(1, 2)]
            .map(|values| apply(&*level("floor:10"), &(Arc::new(values) as ArrayRef)).unwrap());
        let expected = Int8Array::from(vec![Some(20), None, Some(10)]);
        assert_eq!((whole.as_primitive::<Int8Type>(), &end), (&expected, &whole.slice(1, 2)));
    }
}

#[test]
fn a_level_is_made_again_from_its_label() {
    for label in [
        "range:10",
        "range:10 origin:5 clip:0,90",
        "bands:18.5,25 clip:,40",
        "floor:10 origin:5 clip:0,",
        "clip:0,90",
        "date:quarter",
        "period:quarter",
        "prefix:3",
        "prefix:2 side:right",
        "prefix:2 side:right width:5",
        "known:icd10 level:3",
        "known:us_zip level:1 outside:join",
    ] {
        assert_eq!(level(label).descriptor().to_string(), label);
    }
    let zip = level("prefix:2 side:right width:5").generalize_value(&Value::Text("02139".into())).unwrap();
    assert_eq!(zip, Value::Text("***39".into()));
    let age = level("floor:10 origin:5 clip:0,").generalize_value(&Value::Int(4)).unwrap();
    assert_eq!(age, Value::Int(0));
    for wrong in [
        "range:10 origin",
        "range:10 side:right",
        "prefix:2 origin:5",
        "as_is",
        "hierarchy:1",
        "floor:010",
        "known:country",
        "known:country level:3",
        "known:country level:1 outside:refuse",
        "known:contry level:1",
    ] {
        assert!(restored(wrong, true).is_none(), "{wrong}");
    }
}

#[test]
fn a_clip_is_text_where_labels_are_text() {
    let old = |text: bool| restored("clip:0,90", text).unwrap().generalize_value(&Value::Int(95)).unwrap();
    assert_eq!((old(true), old(false)), (Value::Text(">=90".into()), Value::Int(90)));
    let error = level("clip:0.5,90").generalize_value(&Value::Int(3)).unwrap_err();
    assert_eq!(error.to_string(), "integers need integer bounds");
}

#[test]
fn a_lower_end_lies_between_the_ends_and_an_upper_one_beyond() {
    let prices = Decimal128Array::from(vec![-1, 0, 8_999, 9_000]).with_precision_and_scale(9, 2).unwrap();
    let prices: ArrayRef = Arc::new(prices);
    for (level, expected) in [
        (level("range:10 clip:0,90"), ["<0", "[0,10)", "[80,90)", ">=90"]),
        (restored("clip:0,90", true).unwrap(), ["<0", "0.00", "89.99", ">=90"]),
    ] {
        let labels = agree(&*level, &prices).unwrap();
        assert_eq!(labels.as_string_view().iter().flatten().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn only_a_hierarchy_file_knows_leaves_that_no_row_has() {
    for label in ["range:10", "bands:5", "floor:10", "clip:0,90", "date:year", "period:year", "prefix:2"] {
        assert_eq!(level(label).all_leaves(), None, "{label}");
    }
    assert_eq!(Suppress::star().all_leaves(), None);
}

#[test]
fn levels_clipped_at_other_ends_do_not_nest() {
    for (coarse, fine) in [("floor:20", "floor:10"), ("range:20", "range:10"), ("bands:5", "bands:5,10")] {
        let follows =
            |a: &str, b: &str| level(&format!("{coarse}{a}")).check_coarsens(&*level(&format!("{fine}{b}")));
        assert!(follows("", "").is_ok() && follows(" clip:0,90", " clip:0,90").is_ok(), "{coarse}");
        for (a, b) in [(" clip:0,90", ""), ("", " clip:0,90"), (" clip:0,90", " clip:0,80")] {
            assert_eq!(follows(a, b).unwrap_err(), "they are clipped at other bounds", "{coarse}");
        }
    }
    let follows = |a: &str, b: &str| level(a).check_coarsens(&*level(b)).is_ok();
    assert!(follows("clip:5,90", "clip:0,90") && follows("clip:0,80", "clip:0,90"));
    assert!(follows("clip:0,90", "clip:0,") && follows("clip:0,90", "clip:,90"));
    assert!(!follows("clip:0,90", "clip:0,90") && !follows("clip:-5,90", "clip:0,90"));
    assert!(!follows("clip:0,95", "clip:0,90") && !follows("clip:0,", "clip:0,90"));
}

#[test]
fn zero_has_no_sign_behind_a_clip() {
    let clip = level("clip:-5,5");
    let wide = apply(&*clip, &(Arc::new(Float64Array::from(vec![-0.0, 0.0])) as ArrayRef)).unwrap();
    let narrow = apply(&*clip, &(Arc::new(Float32Array::from(vec![-0.0, 0.0])) as ArrayRef)).unwrap();
    assert!(wide.as_primitive::<arrow::datatypes::Float64Type>().values().iter().all(|v| v.to_bits() == 0));
    assert!(narrow.as_primitive::<arrow::datatypes::Float32Type>().values().iter().all(|v| v.to_bits() == 0));
}

#[test]
fn floats_are_floored_up_to_the_reach_and_not_beyond() {
    let ten = Floor::new(Decimal::integer(10)).unwrap();
    let floored = |v: f64| agree(&ten, &(Arc::new(Float64Array::from(vec![v])) as ArrayRef));
    for v in [4e15, -4e15] {
        let labels = floored(v).unwrap();
        assert_eq!(labels.as_primitive::<arrow::datatypes::Float64Type>().values(), &[v]);
    }
    assert!(floored(4e15 + 1.0).is_none() && floored(-4e15 - 1.0).is_none());
    let grid = |step: i64| FloatGrid::new(&Grid::new(Decimal::integer(step), Decimal::integer(0)).unwrap());
    assert!(grid(4_000_000_000_000_000).is_ok() && grid(4_000_000_000_000_001).is_err());
}

/// Checks that the codes of a column, and of its halves on their own, part its rows as the labels do.
fn codes_part_as_labels(level: &dyn Generalizer, values: &ArrayRef) {
    let name = format!("{} of {}", level.descriptor(), values.data_type());
    let none = level.codes(&values.slice(0, 0)).map(|codes| (codes.len(), codes.data_type().clone()));
    let (labels, codes) = match (level.generalize(values), level.codes(values)) {
        (Err(error), Err(of_codes)) => return assert_eq!(error.to_string(), of_codes.to_string(), "{name}"),
        (labels, codes) => (labels.expect(&name), codes.expect(&name)),
    };
    assert_eq!((codes.len(), none), (values.len(), Ok((0, codes.data_type().clone()))), "{name}");
    let parts = [(0, values.len() / 2), (values.len() / 2, values.len() - values.len() / 2)];
    let parts = parts.map(|(at, rows)| level.codes(&values.slice(at, rows)).expect(&name));
    let parts = arrow::compute::concat(&parts.each_ref().map(|part| &**part)).expect(&name);
    // An encoding of rows: floats by their bits, and NULL is a value.
    let keys = |array: &ArrayRef| {
        let fields = vec![arrow::row::SortField::new(array.data_type().clone())];
        let rows = arrow::row::RowConverter::new(fields).unwrap();
        let rows = { rows }.convert_columns(&[Arc::clone(array)]).unwrap();
        rows.iter().map(|row| row.as_ref().to_vec()).collect::<Vec<_>>()
    };
    let (labels, codes, parts) = (keys(&labels), keys(&codes), keys(&parts));
    assert_eq!(codes, parts, "{name}");
    let (mut code_of, mut label_of) = (hashbrown::HashMap::new(), hashbrown::HashMap::new());
    for (row, (label, code)) in labels.iter().zip(&codes).enumerate() {
        assert_eq!(*code_of.entry(label).or_insert(code), code, "{name}: row {row} has a label of two codes");
        assert_eq!(
            *label_of.entry(code).or_insert(label),
            label,
            "{name}: row {row} has a code of two labels"
        );
    }
}

/// One level of every kind. Those of a file or of `merge` list some of the column's values.
fn all_levels(values: &ArrayRef) -> Vec<Arc<dyn Generalizer>> {
    let steps = [
        "1",
        "2",
        "10",
        "2.5",
        "0.01",
        "10 origin:5",
        "10 origin:0.5",
        "9000000000000000",
        "0.000000000000001",
    ];
    let clips = ["", " clip:0,90", " clip:-3.5,", " clip:,12.25", " clip:-9000000000000000,-0.5"];
    let clipped = |text: String| clips.map(|clip| format!("{text}{clip}"));
    let ranges = steps.iter().flat_map(|step| clipped(format!("range:{step}")));
    let bands = ["bands:0", "bands:-2.5,18.5,25"].into_iter().flat_map(|bands| clipped(bands.to_owned()));
    let floors = ["floor:10", "floor:0.5 clip:0,90", "clip:0,90"].map(str::to_owned);
    let periods = ["day", "week", "month", "quarter", "year", "decade", "century"];
    let periods = periods.iter().flat_map(|period| [format!("date:{period}"), format!("period:{period}")]);
    let marks = ["", " side:right", " width:14", " side:right width:14"];
    let prefixes = [1, 2, 3, 13].iter().flat_map(|n| marks.map(|marks| format!("prefix:{n}{marks}")));
    let known = ["us_zip level:1", "us_zip level:2 outside:join", "weekday level:1", "hour level:1"];
    let known = known.map(|name| format!("known:{name}"));
    let described = ranges.chain(bands).chain(floors).chain(periods).chain(prefixes).chain(known);
    let mut levels: Vec<_> = described.map(|label| level(&label)).collect();
    levels.extend(clips.iter().skip(1).map(|clip| restored(clip.trim(), true).unwrap()));
    levels.extend([true, false].map(|text| Arc::new(AsIs { text }) as Arc<dyn Generalizer>));
    levels.extend([Suppress::star(), Suppress::null()].map(|top| Arc::new(top) as Arc<dyn Generalizer>));
    let texts = text_forms(values)
        .into_iter()
        .flat_map(|texts| texts.iter().flatten().map(str::to_owned).collect::<Vec<_>>());
    let listed: std::collections::BTreeSet<String> = texts.collect();
    let rows = listed.into_iter().take(12).enumerate().map(|(row, value)| {
        // Every third row has the label of another; a label may be a number, and one may be empty.
        vec![value, "*".repeat(row / 3), (row / 6).to_string(), "all".to_owned()]
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        levels.extend(hierarchy::ROW.of(crate::parameter::TextTable::from(rows.clone())).unwrap());
        levels.extend(hierarchy::merged_levels(&rows.into(), "other").unwrap());
    }
    levels
}

/// Columns of all types that generalizers read; half of them have small values only.
fn columns() -> impl Strategy<Value = ArrayRef> {
    let rows = |rows: usize| 0..rows;
    let small = prop::collection::vec(prop::option::weighted(0.9, -160i64..160), rows(24));
    let wild = prop_oneof![
        any::<i64>(),
        -160..160i64,
        Just(i64::MIN),
        Just(i64::MAX),
        -300_000_000_000..300_000_000_000i64
    ];
    let wild = prop::collection::vec(prop::option::weighted(0.9, wild), rows(12));
    let types = vec![
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(3, 1),
        DataType::Decimal128(18, 0),
        DataType::Decimal128(18, 17),
        DataType::Decimal128(12, -2),
        DataType::Decimal128(38, 2),
        DataType::Decimal256(50, 20),
        DataType::Date32,
        DataType::Date64,
        moments(None),
        moments(Some("Pacific/Apia")),
        DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::Utf8View,
    ];
    let integers = (prop_oneof![small, wild], prop::sample::select(types)).prop_map(|(numbers, to)| {
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        // A number that the type cannot hold becomes NULL.
        match &to {
            DataType::Date32 => cast(&cast(&numbers, &DataType::Int32).unwrap(), &to).unwrap(),
            _ => cast(&numbers, &to).unwrap(),
        }
    });
    let day = prop_oneof![
        any::<i32>(),
        Just(i32::MIN),
        Just(i32::MAX),
        -160..160i32,
        FIRST_DAY..=LAST_DAY,
        FIRST_DAY - 40_000..FIRST_DAY + 40_000,
        LAST_DAY - 40_000..LAST_DAY + 40_000
    ];
    let days = (prop::collection::vec(prop::option::weighted(0.9, day), rows(8)), any::<bool>());
    // In half of the columns all days are in the calendar, so that not all are refused.
    let days = days.prop_map(|(days, are_dates)| {
        let day = |day: i32| if are_dates { day.clamp(FIRST_DAY, LAST_DAY) } else { day };
        Arc::new(days.into_iter().map(|it| it.map(day)).collect::<Date32Array>()) as ArrayRef
    });
    let special = prop::sample::select(vec![
        f64::NAN,
        -f64::NAN,
        f64::from_bits(!0),
        f64::INFINITY,
        -f64::INFINITY,
        0.0,
        -0.0,
    ]);
    let floats = prop_oneof![4 => -99.0..99.0f64, 2 => special, 1 => float()];
    let floats = (prop::collection::vec(prop::option::weighted(0.9, floats), rows(16)), any::<bool>())
        .prop_map(|(floats, narrow)| {
            let wide: ArrayRef = Arc::new(Float64Array::from(floats));
            if narrow { cast(&wide, &DataType::Float32).unwrap() } else { wide }
        });
    let digits = (prop::collection::vec(prop::option::of(-99_999_999i128..100_000_000), rows(24)), 0i8..9);
    let decimals = digits.prop_map(|(digits, scale)| {
        Arc::new(Decimal128Array::from(digits).with_precision_and_scale(8.max(scale as u8), scale).unwrap())
            as ArrayRef
    });
    let texts =
        prop::collection::vec(prop::option::weighted(0.9, "[a*é北🦀]{0,4}|[0-9]{5}|[ab*]{10,18}"), rows(24));
    let texts = texts.prop_map(|texts| Arc::new(StringViewArray::from_iter(texts)) as ArrayRef);
    let flags = prop::collection::vec(prop::option::of(any::<bool>()), rows(5));
    let flags = flags.prop_map(|flags| Arc::new(BooleanArray::from(flags)) as ArrayRef);
    prop_oneof![8 => integers, 3 => floats, 2 => decimals, 4 => texts, 1 => flags, 2 => days]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn codes_are_equal_exactly_where_labels_are(values in columns()) {
        for level in all_levels(&values) {
            if level.output_type(values.data_type()).is_ok() {
                codes_part_as_labels(&*level, &values);
            }
        }
    }
}
