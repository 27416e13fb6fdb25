use arrow::array::*;
use arrow::compute::cast;
use proptest::prelude::*;

use super::super::civil::{FIRST_DAY, LAST_DAY};
use super::*;
use crate::generalize::apply;
use crate::generalize::laws_tests::agree;

fn days(date: &str) -> i32 {
    match date.parse::<NaiveDate>() {
        Ok(date) => (date - NaiveDate::default()).num_days() as i32,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn first_days_by_hand() {
    let cases = [
        (Period::Day, "1969-12-31", "1969-12-31"),
        (Period::Week, "1969-12-31", "1969-12-29"),
        (Period::Month, "1969-12-31", "1969-12-01"),
        (Period::Quarter, "1969-12-31", "1969-10-01"),
        (Period::Decade, "1969-12-31", "1960-01-01"),
        (Period::Century, "1969-12-31", "1900-01-01"),
        (Period::Century, "2000-01-01", "2000-01-01"),
        (Period::Decade, "1999-12-31", "1990-01-01"),
        (Period::Decade, "-0001-06-01", "-0010-01-01"),
        (Period::Month, "2000-02-29", "2000-02-01"),
        (Period::Year, "1900-02-28", "1900-01-01"),
        (Period::Quarter, "2024-03-31", "2024-01-01"),
        (Period::Quarter, "2024-04-01", "2024-04-01"),
        // ISO weeks that belong to two years: 2020-W53 and 2025-W01.
        (Period::Week, "2021-01-03", "2020-12-28"),
        (Period::Week, "2021-01-04", "2021-01-04"),
        (Period::Week, "2025-01-01", "2024-12-30"),
        (Period::Week, "2024-03-02", "2024-02-26"),
    ];
    for (period, date, first) in cases {
        let column: ArrayRef = Arc::new(Date32Array::from(vec![Some(days(date)), None]));
        let expected: ArrayRef = Arc::new(Date32Array::from(vec![Some(days(first)), None]));
        assert_eq!(&agree(&Date::new(period), &column).unwrap(), &expected, "{period:?} of {date}");
    }
}

#[test]
fn time_of_day_is_dropped_and_the_type_stays() {
    let column: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1, 1]).with_timezone("UTC"));
    let expected: ArrayRef =
        Arc::new(TimestampNanosecondArray::from(vec![-86_400_000_000_000, 0]).with_timezone("UTC"));
    assert_eq!(&apply(&Date::new(Period::Day), &column).unwrap(), &expected);
    let column: ArrayRef = Arc::new(Date64Array::from(vec![-1, 86_400_001]));
    let expected: ArrayRef = Arc::new(Date64Array::from(vec![-86_400_000, 86_400_000]));
    assert_eq!(&agree(&Date::new(Period::Day), &column).unwrap(), &expected);
}

#[test]
fn a_zone_has_days_of_its_own() {
    let zone = |zone: &str| DataType::Timestamp(TimeUnit::Second, Some(zone.into()));
    let day = Date::new(Period::Day);
    assert!(
        ["UTC", "+00:00", "Etc/UTC", "Z", "-03:30"].iter().all(|one| day.output_type(&zone(one)).is_ok())
    );
    let unknown = day.output_type(&zone("Mars/Olympus")).unwrap_err().to_string();
    assert!(unknown.contains("of the column; convert the column to UTC first"), "{unknown}");
    assert!(day.output_type(&DataType::Utf8View).is_err());
    // 1969-12-31 23:00 in UTC is 01:00 on the day after, two hours east.
    let moments = |moments: Vec<i64>| -> ArrayRef {
        Arc::new(TimestampMillisecondArray::from(moments).with_timezone("+02:00"))
    };
    let column = moments(vec![-3_600_000, -7_200_001]);
    let days = moments(vec![-7_200_000, -93_600_000]);
    assert_eq!(&agree(&day, &column).unwrap(), &days);
    let years = moments(vec![-7_200_000, -7_200_000 - 365 * 86_400_000]);
    assert_eq!(&agree(&Date::new(Period::Year), &column).unwrap(), &years);
}

/// As many periods as are compared with their first moments, and one more.
#[test]
fn few_periods_and_one_more_agree_at_their_ends() {
    for (name, period) in PERIODS {
        let level = Date::new(period);
        for periods in [1, FEW, FEW + 1] {
            let mut firsts = vec![i64::from(level.first(-200_000).unwrap())];
            while firsts.len() < periods {
                firsts.push(level.next(firsts[firsts.len() - 1]).unwrap().into());
            }
            // The last moment of the last period, too.
            let end = i64::from(level.next(firsts[periods - 1]).unwrap());
            let lasts = firsts[1..].iter().chain([&end]);
            let days: Vec<i64> = firsts.iter().copied().chain(lasts.clone().map(|next| next - 1)).collect();
            let seconds: Vec<i64> =
                firsts.iter().map(|day| day * 86_400).chain(lasts.map(|next| next * 86_400 - 1)).collect();
            let expected: Vec<i64> = [&firsts[..], &firsts[..]].concat();
            let days = Date32Array::from_iter_values(days.into_iter().map(|day| day as i32));
            let of_days = agree(&level, &(Arc::new(days) as ArrayRef)).unwrap();
            let expected_days = Date32Array::from_iter_values(expected.iter().map(|day| *day as i32));
            assert_eq!(of_days.as_primitive::<Date32Type>(), &expected_days, "{periods} of {name}");
            let of_moments = agree(&level, &(Arc::new(TimestampSecondArray::from(seconds)) as ArrayRef));
            let expected = TimestampSecondArray::from_iter_values(expected.iter().map(|day| day * 86_400));
            assert_eq!(of_moments.unwrap().as_primitive(), &expected, "{periods} of {name}");
        }
    }
}

proptest! {
    #[test]
    fn moments_in_zones_agree_and_nest(
        moments in prop::collection::vec(prop::option::of(-3_000_000_000i64..2_200_000_000), 1..8),
        zone in prop::sample::select(vec![
            "Europe/Berlin", "America/Sao_Paulo", "America/St_Johns", "Pacific/Apia", "Africa/Cairo", "+05:45",
        ]),
    ) {
        let column: ArrayRef = Arc::new(TimestampSecondArray::from(moments).with_timezone(zone));
        for (at, (_, finer)) in PERIODS.iter().enumerate() {
            let fine = agree(&Date::new(*finer), &column).unwrap();
            for (_, coarser) in &PERIODS[at + 1..] {
                if Date::new(*coarser).check_coarsens(&Date::new(*finer)).is_ok() {
                    let direct = agree(&Date::new(*coarser), &column).unwrap();
                    prop_assert_eq!(&agree(&Date::new(*coarser), &fine).unwrap(), &direct);
                }
            }
        }
    }
}

#[test]
fn what_the_calendar_or_the_type_cannot_hold_is_counted() {
    let year = Date::new(Period::Year);
    let column: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![i64::MIN, 0, i64::MAX]));
    assert!(agree(&year, &column).is_none()); // 1677-01-01 is before the first nanosecond
    assert!(apply(&year, &column).unwrap_err().to_string().starts_with("1 value is a date whose year"));
    let column: ArrayRef = Arc::new(Date32Array::from(vec![i32::MIN, 0, i32::MAX]));
    assert!(apply(&year, &column).unwrap_err().to_string().starts_with("2 values are dates whose year"));
    let edges = [NaiveDate::MIN, NaiveDate::MAX].map(|d| (d - NaiveDate::default()).num_days() as i32);
    for (edge, out) in edges.into_iter().zip([-1, 1]) {
        for (_, period) in PERIODS {
            for day in [edge, edge + out, edge - out * 7] {
                agree(&Date::new(period), &(Arc::new(Date32Array::from(vec![day])) as ArrayRef));
            }
        }
    }
}

#[test]
fn levels_are_unions_of_finer_ones() {
    let follows = |coarser, finer| Date::new(coarser).check_coarsens(&Date::new(finer));
    for pair in PERIODS.windows(2) {
        let (finer, coarser) = (pair[0].1, pair[1].1);
        assert_eq!(follows(coarser, finer).is_ok(), finer != Period::Week);
        assert!(follows(finer, coarser).is_err() && follows(finer, finer).is_err());
    }
    assert_eq!(follows(Period::Month, Period::Week), Err("week cannot be combined with month".into()));
    assert!(follows(Period::Month, Period::Day).is_ok() && follows(Period::Century, Period::Month).is_ok());
    let words = |word: &'static str| ROW.of(vec![word]);
    for (word, _) in PERIODS {
        assert_eq!(words(word).unwrap()[0].descriptor().to_string(), format!("date:{word}"));
    }
    assert!(words("monht").unwrap_err().to_string().contains("did you mean \"month\"?"));
}

proptest! {
    #[test]
    fn dates_agree_and_nest(values in prop::collection::vec(prop::option::of(-2_000_000i32..2_000_000), 0..20)) {
        let values: ArrayRef = Arc::new(Date32Array::from(values));
        for (_, fine) in PERIODS {
            let once = agree(&Date::new(fine), &values).unwrap();
            let wide = cast(&values, &DataType::Date64).unwrap();
            prop_assert_eq!(&cast(&agree(&Date::new(fine), &wide).unwrap(), &DataType::Date32).unwrap(), &once);
            for (_, coarse) in PERIODS {
                let (fine, coarse) = (Date::new(fine), Date::new(coarse));
                if coarse.check_coarsens(&fine).is_ok() {
                    prop_assert_eq!(&agree(&coarse, &once).unwrap(), &agree(&coarse, &values).unwrap());
                }
            }
        }
    }

    /// Values of few periods are compared with the first moments of these.
    #[test]
    fn moments_near_each_other_agree(
        around in -60_000_000_000i64..60_000_000_000,
        apart in prop::collection::vec(prop::option::weighted(0.9, any::<i64>()), 0..20),
        bits in 23u32..64,
        period in 0usize..7,
    ) {
        let level = Date::new(PERIODS[period].1);
        let moments: Vec<_> = apart.into_iter().map(|apart| Some(around + (apart? >> bits))).collect();
        let days = moments.iter().map(|moment| i32::try_from((*moment)? / 86_400).ok()).collect::<Date32Array>();
        agree(&level, &(Arc::new(days) as ArrayRef));
        agree(&level, &(Arc::new(TimestampSecondArray::from(moments)) as ArrayRef));
    }

    #[test]
    fn timestamps_agree(ticks in any::<i64>(), bits in 0u32..40, period in 0usize..7) {
        let (ticks, level) = (ticks >> bits, Date::new(PERIODS[period].1));
        let columns: [ArrayRef; 4] = [
            Arc::new(TimestampSecondArray::from(vec![Some(ticks), None])),
            Arc::new(TimestampMillisecondArray::from(vec![Some(ticks), None])),
            Arc::new(TimestampMicrosecondArray::from(vec![Some(ticks), None])),
            Arc::new(TimestampNanosecondArray::from(vec![Some(ticks), None])),
        ];
        for column in columns {
            agree(&level, &column);
        }
    }

    #[test]
    fn the_order_is_kept(a in -2_000_000i32..2_000_000, b in -2_000_000i32..2_000_000, period in 0usize..7) {
        let level = Date::new(PERIODS[period].1);
        let first = |day: i32| level.first(i64::from(day)).unwrap();
        prop_assert!(first(a.min(b)) <= first(a.max(b)));
        prop_assert!(first(a) <= a);
    }

    #[test]
    fn days_of_the_whole_type_agree(
        days in prop::collection::vec(prop::option::weighted(0.9, any::<i32>()), 1..4),
        near in prop::collection::vec(prop::option::of(FIRST_DAY - 40_000..=LAST_DAY + 40_000), 0..20),
        ends in prop::collection::vec((any::<bool>(), -40_000i32..40_000), 0..3),
        period in 0usize..7,
    ) {
        let level = Date::new(PERIODS[period].1);
        let ends = ends.iter().map(|(is_last, off)| Some(if *is_last { LAST_DAY } else { FIRST_DAY } + off));
        for days in [days.clone(), near.clone(), ends.chain(near.iter().take(3).copied()).collect()] {
            agree(&level, &(Arc::new(Date32Array::from(days)) as ArrayRef));
        }
    }

    #[test]
    fn what_stands_where_a_value_is_null_does_not_matter(hidden in any::<i64>(), period in 0usize..7) {
        let level = Date::new(PERIODS[period].1);
        let nulls = || Some(vec![true, false].into());
        let days = Date32Array::new(vec![-1, hidden as i32].into(), nulls());
        let moments = TimestampNanosecondArray::new(vec![-1, hidden].into(), nulls());
        for column in [Arc::new(days) as ArrayRef, Arc::new(moments)] {
            prop_assert!(agree(&level, &column).unwrap().is_null(1));
        }
    }
}
