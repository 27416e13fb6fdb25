//! Tests of [`known`](super::known) as a generalizer; those of the lists are in `src/known`.

use arrow::array::*;
use arrow::datatypes::TimeUnit;
use proptest::prelude::*;

use super::known::{JOIN, ROW};
use super::*;
use crate::generalize::laws_tests::agree;
use crate::known::{self, Input, KnownRow, OTHER};

fn level(name: &'static str, options: &[(&str, Setting)]) -> Arc<dyn Generalizer> {
    let named = |(name, setting): (&str, Setting)| (name.to_owned(), setting);
    let given = [("name", name.into())].into_iter().chain(options.iter().cloned());
    ROW.with(&given.map(named).collect::<Vec<_>>()).unwrap().pop().unwrap()
}

fn number(n: i64) -> Setting {
    Decimal::integer(n).into()
}

fn labels(level: &dyn Generalizer, values: &ArrayRef) -> Vec<Option<String>> {
    let labels = agree(level, values).unwrap();
    labels.as_string_view().iter().map(|label| label.map(str::to_owned)).collect()
}

/// Returns a column of examples of the types that a hierarchy reads.
fn columns(row: &KnownRow) -> Vec<ArrayRef> {
    let texts: ArrayRef = Arc::new(StringArray::from_iter(
        (row.rule)().examples().into_iter().take(60).map(Some).chain([None]),
    ));
    let small: ArrayRef = Arc::new(Int64Array::from_iter((0..9).map(Some).chain([None])));
    let dates: ArrayRef = Arc::new(Date32Array::from_iter((-9..9).map(Some).chain([None])));
    let moments = |zone: Option<&str>| -> ArrayRef {
        let moments = (-40..40).map(|n| Some(n * 5_000_001)).chain([None]);
        Arc::new(TimestampMillisecondArray::from_iter(moments).with_timezone_opt(zone))
    };
    match row.input {
        Input::Text => vec![texts],
        Input::TextOrIntegers(1) if row.doc.name != "naics" => vec![texts, small],
        Input::TextOrIntegers(_) => vec![texts, Arc::new(Int32Array::from(vec![Some(2_211), None]))],
        Input::TextOrNumbers => {
            let decimals = Decimal128Array::from(vec![Some(-7_125), None]);
            let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(9, 3).unwrap());
            let floats = Float64Array::from(vec![Some(-0.0), Some(42.3601), Some(-1e-9), None]);
            vec![
                texts,
                small,
                decimals,
                Arc::new(floats),
                Arc::new(Float32Array::from(vec![Some(0.1), None])),
            ]
        }
        Input::Weekday => {
            vec![
                cast(&dates, &DataType::Date64).unwrap(),
                dates,
                moments(None),
                moments(Some("Asia/Kathmandu")),
            ]
        }
        Input::Hour => {
            vec![texts, moments(None), moments(Some("-03:30")), moments(Some("Europe/Berlin"))]
        }
    }
}

#[test]
fn every_known_hierarchy_keeps_the_promises() {
    for row in known::KNOWN {
        for values in columns(row) {
            let levels = ROW.of(row.doc.name).unwrap();
            assert_eq!(levels.len(), row.levels.len());
            for level in &levels {
                let found = labels(&**level, &values);
                assert_eq!(found.iter().filter(|label| label.is_none()).count(), 1, "NULL is NULL");
                let descriptor = level.descriptor();
                let again = descriptor.to_string().parse::<Descriptor>().unwrap().restore(true).unwrap();
                assert_eq!(again.descriptor(), descriptor);
                assert_eq!(labels(&*again, &values), found, "{descriptor}");
                assert!(level.uncovered(&values).unwrap().is_empty() && !level.is_top());
            }
            let hierarchy = Hierarchy::new(values.data_type(), levels).unwrap();
            assert_eq!(
                (hierarchy.height(), hierarchy.output_type()),
                (row.levels.len() + 1, &DataType::Utf8View)
            );
        }
    }
}

#[test]
fn values_outside_are_counted_or_joined_and_not_shown() {
    let values: ArrayRef =
        Arc::new(StringArray::from(vec![Some("SECRET"), Some("de"), None, Some(""), Some("SECRET")]));
    let refusing = level("country", &[]);
    assert!(agree(&*refusing, &values).is_none());
    assert_eq!(refusing.uncovered(&values).unwrap(), [0, 3, 4]);
    let error = apply(&*refusing, &values).unwrap_err().to_string();
    assert_eq!(
        error,
        "2 distinct values are outside `country` (ISO 3166-1 codes and English names, 2024); correct them, or let \
         `outside = \"join\"` make them one label"
    );
    let joining = level("country", &[("outside", JOIN.into())]);
    let other = || Some(OTHER.to_owned());
    assert_eq!(labels(&*joining, &values), [other(), Some("Europe".into()), None, other(), other()]);
    assert!(joining.uncovered(&values).unwrap().is_empty());
    assert_eq!(joining.descriptor().to_string(), "known:country level:2 outside:join");
    assert!(joining.is_label(&Value::Text(OTHER.into())) && !refusing.is_label(&Value::Text(OTHER.into())));
    assert!(!joining.is_label(&Value::Text("Western Europe".into())) && !joining.is_label(&Value::Int(1)));
    assert_eq!(format!("{joining:?}"), "KnownLevel(known:country level:2 outside:join)");
}

#[test]
fn levels_end_where_the_policy_says() {
    let first = level("country", &[("level", number(1))]);
    assert_eq!(first.descriptor().to_string(), "known:country level:1");
    assert_eq!(super::known::level_name(&first.descriptor()), Some("subregion"));
    assert!(first.descriptor().is_of_list() && !Descriptor::as_is().is_of_list());
    for other in ["known:country level:3", "known:country", "known:contry level:1", "prefix:3"] {
        assert_eq!(super::known::level_name(&other.parse().unwrap()), None, "{other}");
    }
    let refused = |options: &[(&str, Setting)]| {
        let given = [("name", "country".into())].into_iter().chain(options.iter().cloned());
        ROW.with(&given.map(|(name, setting)| (name.to_owned(), setting)).collect::<Vec<_>>())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(refused(&[("level", number(3))]), "`country` has 2 levels (subregion, continent), not 3");
    assert!(refused(&[("level", number(0))]).starts_with("level: expected an integer of at least 1"));
    assert!(ROW.of("contry").unwrap_err().to_string().contains("did you mean \"country\"?"));
}

#[test]
fn levels_follow_their_own_hierarchy() {
    let countries = ROW.of("country").unwrap();
    assert_eq!(countries[1].check_coarsens(&*countries[0]), Ok(()));
    let why = |coarser: &dyn Generalizer, finer: &dyn Generalizer| coarser.check_coarsens(finer).unwrap_err();
    assert_eq!(why(&*countries[0], &*countries[1]), "level 1 is not above level 2");
    let states = ROW.of("us_state").unwrap();
    assert_eq!(why(&*states[1], &*countries[0]), "they come from different known hierarchies");
    let joining = level("country", &[("outside", JOIN.into())]);
    assert_eq!(why(&*joining, &*countries[0]), "`outside` must be the same at all levels");
    let prefix = prefix::Prefix::new(2).unwrap();
    assert_eq!(why(&*countries[0], &prefix), "a known hierarchy can only follow itself");
    assert!(!countries[0].keeps_order(&DataType::Utf8View));
}

#[test]
fn types_are_those_of_the_hierarchy() {
    let refused = |name: &'static str, of: &DataType| {
        level(name, &[]).output_type(of).err().map(|error| error.to_string())
    };
    let integers = DataType::Int64;
    assert!(refused("country", &integers).unwrap().ends_with("expected text"));
    assert!(refused("us_zip", &DataType::Float64).unwrap().ends_with("expected text or integers"));
    assert!(refused("latitude", &DataType::Date32).unwrap().ends_with("expected text or numbers"));
    assert!(refused("weekday", &DataType::Utf8View).unwrap().contains("expected dates or timestamps"));
    assert!(refused("hour", &DataType::Date32).unwrap().ends_with("expected text or timestamps"));
    let zone = |zone: &str| DataType::Timestamp(TimeUnit::Second, Some(zone.into()));
    assert!(refused("hour", &zone("Mars/Olympus")).unwrap().contains("unknown time zone"));
    assert!(refused("hour", &zone("Europe/Berlin")).is_none() && refused("us_zip", &integers).is_none());
    assert!(level("weekday", &[]).generalize_value(&Value::Text("Monday".into())).is_err());
}

#[test]
fn codes_and_moments_by_hand() {
    let zips: ArrayRef = Arc::new(Int32Array::from(vec![2_139, 90_210]));
    let area = level("us_zip", &[("level", number(1))]);
    assert_eq!(labels(&*area, &zips), [Some("021**".to_owned()), Some("902**".into())]);
    assert!(agree(&*area, &(Arc::new(Int32Array::from(vec![-1, 100_000, 0])) as ArrayRef)).is_none());
    // 1969-12-31 23:30 in UTC, a Wednesday, is 00:30 on Thursday in Berlin.
    let moment: ArrayRef = Arc::new(TimestampSecondArray::from(vec![-1_800]));
    let berlin = cast(&moment, &DataType::Timestamp(TimeUnit::Second, Some("UTC".into()))).unwrap();
    let berlin = cast(&berlin, &DataType::Timestamp(TimeUnit::Second, Some("Europe/Berlin".into()))).unwrap();
    let of = |name: &'static str, values: &ArrayRef| {
        labels(&*level(name, &[("level", number(1))]), values).into_iter().flatten().collect::<String>()
    };
    assert_eq!((of("weekday", &moment), of("hour", &moment)), ("Wednesday".into(), "23:00-23:59".into()));
    assert_eq!((of("weekday", &berlin), of("hour", &berlin)), ("Thursday".into(), "00:00-00:59".into()));
    let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MIN, i64::MAX]));
    assert!(agree(&*level("hour", &[]), &far).is_none() && agree(&*level("weekday", &[]), &far).is_none());
}

proptest! {
    #[test]
    fn moments_agree(
        days in prop::collection::vec(any::<i32>(), 1..9),
        moments in prop::collection::vec(-9_000_000_000..9_000_000_000_i64, 1..9),
        zone in prop::sample::select(vec!["UTC", "+05:45", "America/St_Johns", "Pacific/Apia", "Africa/Cairo"]),
    ) {
        let days: ArrayRef = Arc::new(Date32Array::from(days));
        let moments: ArrayRef = Arc::new(TimestampSecondArray::from(moments).with_timezone(zone));
        prop_assert!(agree(&*level("weekday", &[]), &days).is_some());
        for name in ["weekday", "hour"] {
            for joins in [false, true] {
                let options: &[(&str, Setting)] = if joins { &[("outside", JOIN.into())] } else { &[] };
                prop_assert!(agree(&*level(name, options), &moments).is_some());
            }
        }
    }
}
