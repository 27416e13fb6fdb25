//! Regions are read as they were written, and hold what they say.

use arrow::datatypes::{TimeUnit, i256};
use proptest::prelude::*;

use super::*;
use crate::decimal::Decimal;
use crate::generalize::GENERALIZERS;
use crate::parameter::{Setting, TextTable};

fn values_of(data_type: &DataType) -> BoxedStrategy<Value> {
    match data_type {
        DataType::Int64 => any::<i64>().prop_map(|v| Value::Int(v.into())).boxed(),
        DataType::Float32 => {
            any::<f32>().prop_map(|v| Value::Float(crate::generalize::value::widen(v))).boxed()
        }
        DataType::Float64 => any::<f64>().prop_map(Value::Float).boxed(),
        DataType::Boolean => any::<bool>().prop_map(Value::Bool).boxed(),
        DataType::Date32 => (-700_000..700_000i32).prop_map(Value::Date).boxed(),
        DataType::Decimal128(_, scale) => {
            let scale = *scale;
            (-99_999..99_999i64).prop_map(move |v| Value::Decimal(i256::from(v), scale)).boxed()
        }
        DataType::Timestamp(unit, zone) => {
            let (unit, zone) = (*unit, zone.clone());
            let ticks =
                prop_oneof![any::<i32>().prop_map(i64::from), any::<i64>(), Just(i64::MIN), Just(i64::MAX)];
            ticks.prop_map(move |v| Value::Timestamp(v, unit, zone.clone())).boxed()
        }
        _ => text().prop_map(Value::Text).boxed(),
    }
}

/// Texts that could be read as something else.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select(vec![
            "*",
            "\\",
            ";",
            "; ",
            "{",
            "}",
            "[",
            "]",
            "(",
            ")",
            "<",
            ">=",
            ",",
            " or missing",
            "1",
            "20",
            "a",
            "é",
            " ",
            "NaN",
            "true",
            "2020-01-01",
        ]),
        0..6,
    )
    .prop_map(|parts| parts.concat())
}

fn types() -> impl Strategy<Value = DataType> {
    prop::sample::select(vec![
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Boolean,
        DataType::Date32,
        DataType::Decimal128(9, 2),
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Millisecond, Some("Europe/Berlin".into())),
        DataType::Utf8View,
    ])
}

/// A type, and a region of a column of that type.
fn regions() -> impl Strategy<Value = (DataType, RegionLabel)> {
    let end = |value: BoxedStrategy<Value>| {
        (value, any::<bool>()).prop_map(|(value, is_closed)| Some(End { value, is_closed }))
    };
    types().prop_flat_map(move |data_type| {
        let value = values_of(&data_type);
        let has_intervals = !data_type.is_string() && data_type != DataType::Boolean;
        let one = value.clone().prop_map(|value| match value {
            Value::Text(text) => Values::Label(text),
            value => Values::One(value),
        });
        let set = prop::collection::vec(value.clone(), 1..4).prop_map(Values::Set);
        let label = text().prop_map(Values::Label);
        let interval = match has_intervals {
            true => (end(value.clone()), end(value.clone()), 0..3u8)
                .prop_map(|(low, high, open)| match open {
                    0 => Values::Interval(None, high),
                    1 => Values::Interval(low, None),
                    _ => Values::Interval(low, high),
                })
                .boxed(),
            false => text().prop_map(Values::Label).boxed(),
        };
        let values = prop_oneof![one, set, label, interval];
        let region = (values, any::<bool>()).prop_map(|(values, or_missing)| {
            let region = RegionLabel::from(values);
            if or_missing { region.or_missing() } else { region }
        });
        let region =
            prop_oneof![1 => Just(RegionLabel::Everything), 1 => Just(RegionLabel::Missing), 8 => region];
        (Just(data_type), region)
    })
}

proptest! {
    #[test]
    fn a_region_is_read_as_it_was_written((data_type, region) in regions()) {
        // Labels with NULL become sets of texts, which only text columns have.
        let is_possible = match &region {
            RegionLabel::Values { values: Values::Set(all), .. } => {
                all.iter().all(|value| matches!(value, Value::Text(_)) == data_type.is_string())
            }
            _ => true,
        };
        prop_assume!(is_possible);
        let text = region.write(&data_type);
        let read = RegionLabel::parse(text.as_deref(), &data_type);
        prop_assert!(read == region, "{text:?}");
    }

    #[test]
    fn any_text_is_a_region_with_one_writing(text in text(), data_type in types()) {
        let region = RegionLabel::parse(Some(&text), &data_type);
        let written = region.write(&data_type);
        let again = RegionLabel::parse(written.as_deref(), &data_type).write(&data_type);
        prop_assert_eq!(again, written);
    }

    #[test]
    fn intervals_hold_what_is_between_their_ends(
        low in -5..5i64,
        high in -5..5i64,
        closed in prop::array::uniform2(any::<bool>()),
        value in -6..6i64,
        open in 0..3u8,
    ) {
        let end = |value: i64, is_closed| Some(End { value: Value::Int(value.into()), is_closed });
        let (low_end, high_end) = (end(low, closed[0]), end(high, closed[1]));
        let region = RegionLabel::from(match open {
            0 => Values::Interval(None, high_end),
            1 => Values::Interval(low_end, None),
            _ => Values::Interval(low_end, high_end),
        });
        let above = open == 0 || value > low || (closed[0] && value == low);
        let below = open == 1 || value < high || (closed[1] && value == high);
        let integers = Hierarchy::new(&DataType::Int64, vec![]).unwrap();
        prop_assert_eq!(region.covers(&integers, &Value::Int(value.into())).unwrap(), above && below);
        prop_assert!(!region.covers(&integers, &Value::Null).unwrap());
        prop_assert!(region.or_missing().covers(&integers, &Value::Null).unwrap());
    }
}

fn hierarchy(data_type: &DataType, key: &str, setting: impl Into<Setting>) -> Hierarchy {
    let row = GENERALIZERS.iter().find(|row| row.key == Some(key)).unwrap();
    Hierarchy::new(data_type, row.of(setting).unwrap()).unwrap()
}

fn words(rows: &[&[&str]]) -> TextTable {
    TextTable::from(
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect::<Vec<_>>(),
    )
}

#[test]
fn texts_and_what_they_hold() {
    let ages = hierarchy(&DataType::Int64, "range", vec![Decimal::integer(10)]);
    let zips = hierarchy(&DataType::Int64, "prefix", vec![Decimal::integer(2)]);
    let plain = Hierarchy::new(&DataType::Utf8View, vec![]).unwrap();
    let jobs = words(&[&["nurse", "care", "*"], &["cook", "kitchen", "*"], &["*", "care", "*"]]);
    let jobs = hierarchy(&DataType::Utf8View, "file", jobs);
    let int = |v: i64| Value::Int(v.into());
    let word = |v: &str| Value::Text(v.to_owned());
    let cases: [(&Hierarchy, &str, Vec<Value>, Vec<Value>); 14] = [
        (&ages, "34", vec![int(34)], vec![int(35), Value::Null]),
        (&ages, "34 or missing", vec![int(34), Value::Null], vec![int(33)]),
        (&ages, "[30,40)", vec![int(30), int(39)], vec![int(40), int(29)]),
        (&ages, "<=23", vec![int(23), int(-900)], vec![int(24), Value::Null]),
        (&ages, ">70 or missing", vec![int(71), Value::Null], vec![int(70)]),
        (&ages, "{1; 5}", vec![int(1), int(5)], vec![int(3)]),
        (&ages, "*", vec![int(1), Value::Null], vec![]),
        // Read as a label of a level below the top, which there is not.
        (&ages, "034", vec![], vec![int(34)]),
        (&zips, "12*", vec![int(12), int(129)], vec![int(13), int(1)]),
        (&plain, "{a; b\\;\\}} or missing", vec![word("a"), word("b;}"), Value::Null], vec![word("b")]),
        (&plain, "a or missing", vec![word("a or missing")], vec![word("a"), Value::Null]),
        (&plain, "\\*", vec![word("*")], vec![word("a"), Value::Null]),
        (&jobs, "care", vec![word("nurse"), word("*")], vec![word("cook"), Value::Null]),
        (&jobs, "\\*", vec![word("*")], vec![word("nurse")]),
    ];
    for (hierarchy, text, inside, outside) in cases {
        let region = RegionLabel::parse(Some(text), hierarchy.input_type());
        for (values, is_inside) in [(inside, true), (outside, false)] {
            for value in values {
                let said = region.covers(hierarchy, &value).unwrap();
                assert_eq!(said, is_inside, "{text}: {:?}", value.text_form());
            }
        }
    }
    assert!(RegionLabel::parse(None, &DataType::Int64).covers(&ages, &Value::Null).unwrap());
    assert!(!RegionLabel::parse(None, &DataType::Int64).covers(&ages, &int(1)).unwrap());
}

#[test]
fn ends_at_the_least_and_the_greatest_value_are_open() {
    let open = |text: &str, data_type: &DataType, least: Value, greatest: Value| {
        let region = RegionLabel::parse(Some(text), data_type).without_ends_at(&least, &greatest);
        region.write(data_type).unwrap()
    };
    for (closed, opened) in [
        ("[1,5]", "<=5"),
        ("[2,9]", ">=2"),
        ("[1,9]", "*"),
        ("[1,9] or missing", "*"),
        ("[2,9] or missing", ">=2 or missing"),
        ("[2,5]", "[2,5]"),
        // A whole class shares it.
        ("9", "9"),
        ("9 or missing", "*"),
        ("1 or missing", "*"),
        ("5 or missing", "5 or missing"),
        ("{1; 9}", "{1; 9}"),
        ("<=9", "*"),
        ("<5", "<5"),
    ] {
        assert_eq!(open(closed, &DataType::Int64, Value::Int(1), Value::Int(9)), opened, "{closed}");
    }
    let nan = || Value::Float(f64::NAN);
    assert_eq!(open("[1,NaN]", &DataType::Float64, Value::Float(1.0), nan()), "<=NaN");
}

#[test]
fn nothing_of_a_region_is_shown() {
    let region = RegionLabel::parse(Some("{flu; cold}"), &DataType::Utf8View);
    assert_eq!(format!("{region:?}"), "Values { values: Set(..), or_missing: false }");
}
