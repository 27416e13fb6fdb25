//! Texts read one by one as values, for verification: a simple second reading that shares nothing
//! with the casts and patterns of [`infer_types`](super::infer_types), so that neither can repeat a
//! mistake of the other.
//!
//! Dates and times are split at their separators and parsed by chrono, numbers by the standard
//! library. A text that cannot be read as its column's type refuses the release.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Date32Array, Float64Array, Int64Array, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use datafusion::logical_expr::Expr;

use crate::engine::distinct::{self, Distinct};
use crate::engine::functions::{OfValues, of_values};
use crate::error::{Error, Result};
use crate::policy::cell_forms::{DateFormat, NumberFormat, is_same_mark};

/// Reads the texts of the column `name` one by one as values of a type.
pub(crate) fn plain_value(name: &str, texts: Expr, data_type: DataType) -> Expr {
    of_values(Arc::new(PlainValue(data_type)), name, texts)
}

struct PlainValue(DataType);

impl OfValues for PlainValue {
    fn name(&self) -> &'static str {
        "kanon_plain_value"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(self.0.clone())
    }

    fn distinct(&self, values: &ArrayRef) -> Result<Distinct, ArrowError> {
        distinct::of_batch_plainly(values)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values
            .as_string_view_opt()
            .ok_or_else(|| Error::internal("plain_values: a text column is not Utf8View"))?;
        let texts: Vec<Option<&str>> = texts.iter().collect();
        Ok(match self.0 {
            DataType::Int64 => Arc::new(Int64Array::from(all(&texts, integer)?)),
            DataType::Float64 => Arc::new(Float64Array::from(all(&texts, number)?)),
            DataType::Date32 => Arc::new(Date32Array::from(all(&texts, day)?)),
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                Arc::new(TimestampMicrosecondArray::from(all(&texts, microseconds)?))
            }
            _ => return Err(Error::internal("plain_values: a column has a type without a plain reading")),
        })
    }
}

/// Returns the date or moment of a cell in ISO form, if it is written in this format.
pub(super) fn plain_date(cell: &str, format: &DateFormat) -> Option<String> {
    if format.has_time() {
        let moment = NaiveDateTime::parse_from_str(cell, format.text()).ok()?;
        return Some(moment.format("%Y-%m-%dT%H:%M:%S").to_string());
    }
    NaiveDate::parse_from_str(cell, format.text()).ok().map(|date| date.format("%Y-%m-%d").to_string())
}

/// Returns the digits of a cell with a point before the fraction.
pub(super) fn plain_number(cell: &str, format: &NumberFormat) -> String {
    let is_kept = |letter: &char| !format.thousands.is_some_and(|mark| is_same_mark(mark, *letter));
    cell.trim_ascii()
        .chars()
        .filter(is_kept)
        .map(|letter| if letter == format.decimal { '.' } else { letter })
        .collect()
}

/// Reads all texts; NULL stays NULL.
fn all<T>(texts: &[Option<&str>], read: impl Fn(&str) -> Option<T>) -> Result<Vec<Option<T>>> {
    let mut values = Vec::with_capacity(texts.len());
    for text in texts {
        values.push(match text {
            None => None,
            Some(text) => Some(read(text).ok_or_else(|| {
                Error::unmet(
                    "verification refused: a text is not a value of the type that the release gave it",
                )
            })?),
        });
    }
    Ok(values)
}

fn integer(text: &str) -> Option<i64> {
    text.trim_ascii().parse().ok()
}

/// Reads a number, with one zero and one NaN.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_ascii();
    let number: f64 = text.parse().ok()?;
    let says_infinite = text.to_lowercase().contains("inf");
    let is_integer = !text.contains(|c: char| c == '.' || c.is_ascii_alphabetic());
    // Above 2^53 some integers have no double.
    let is_exact = !is_integer || text.parse::<i64>().is_ok_and(|integer| integer.abs_diff(0) <= 1 << 53);
    match number {
        _ if number.is_infinite() != says_infinite || !is_exact => None,
        _ if number.is_nan() => Some(f64::NAN),
        _ if number == 0.0 => Some(0.0),
        _ => Some(number),
    }
}

/// Reads a number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    let all_digits = text.len() == count && text.chars().all(|c| c.is_ascii_digit());
    if all_digits { text.parse().ok() } else { None }
}

fn date(text: &str) -> Option<NaiveDate> {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return None };
    NaiveDate::from_ymd_opt(i32::try_from(digits(year, 4)?).ok()?, digits(month, 2)?, digits(day, 2)?)
}

fn time(text: &str) -> Option<NaiveTime> {
    let parts: Vec<&str> = text.split(':').collect();
    let [hour, minute, seconds] = parts.as_slice() else { return None };
    let (second, nanosecond) = match seconds.split_once('.') {
        None => (*seconds, 0),
        Some((second, fraction)) => {
            let places = u32::try_from(fraction.len()).ok().filter(|places| (1..=9).contains(places))?;
            (second, digits(fraction, fraction.len())? * 10u32.pow(9 - places))
        }
    };
    NaiveTime::from_hms_nano_opt(digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?, nanosecond)
}

/// Reads a moment in UTC, or a local one without a zone.
fn moment(text: &str) -> Option<NaiveDateTime> {
    let Some(mark) = text.find(['T', 't', ' ']) else {
        return date(text).map(|date| date.and_time(NaiveTime::MIN));
    };
    let (day, rest) = (text.get(..mark)?, text.get(mark + 1..)?);
    let utc = ["Z", "z", "+00:00", " UTC"].into_iter().find_map(|utc| rest.strip_suffix(utc));
    Some(date(day)?.and_time(time(utc.unwrap_or(rest))?))
}

fn microseconds(text: &str) -> Option<i64> {
    let moment = moment(text)?;
    // Drops the digits beyond the microsecond.
    let moment = moment.with_nanosecond(moment.nanosecond() / 1_000 * 1_000)?;
    Some(moment.and_utc().timestamp_micros())
}

/// Returns the days since 1970-01-01 of a date, or of a moment at midnight.
fn day(text: &str) -> Option<i32> {
    let moment = moment(text)?;
    let since = moment.date().signed_duration_since(NaiveDate::default());
    if microseconds(text)? == moment.date().and_time(NaiveTime::MIN).and_utc().timestamp_micros() {
        i32::try_from(since.num_days()).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, BooleanArray, StringViewArray};
    use arrow::compute::cast;
    use arrow::datatypes::{Field, Int64Type, Schema};
    use arrow::record_batch::RecordBatch;
    use datafusion::logical_expr::{lit, try_cast};
    use datafusion::prelude::{DataFrame, SessionContext};
    use proptest::prelude::*;

    use super::*;
    use crate::decimal::Decimal;
    use crate::engine::functions::canonical_float;
    use crate::engine::{Resources, Rules, column};
    use crate::generalize::AsIs;
    use crate::input::infer_types::{TIMES, Typing, misfit, typed};
    use crate::model::Requirement;
    use crate::model::k_anonymity::KAnonymity;
    use crate::policy::{CsvOptions, CsvType};
    use crate::progress::CancelToken;
    use crate::verify::{Expected, verify};

    fn table(session: &SessionContext, texts: &[Option<&str>]) -> DataFrame {
        let texts: ArrayRef = Arc::new(StringViewArray::from(texts.to_vec()));
        session.read_batch(RecordBatch::try_from_iter([("x", texts)]).unwrap()).unwrap()
    }

    fn types() -> Vec<DataType> {
        [&[DataType::Int64, DataType::Float64], &TIMES[..]].concat()
    }

    /// Returns the result of the casts for each text, as bits; `None` for a misfit.
    fn by_casts(texts: &[&str], data_type: &DataType) -> Vec<Option<i64>> {
        let texts: Vec<Option<&str>> = texts.iter().map(|text| Some(*text)).collect();
        let read = try_cast(column("x"), data_type.clone());
        let read = if *data_type == DataType::Float64 { canonical_float(read) } else { read };
        let columns = vec![misfit("x", &column("x"), data_type).alias("misfit"), read.alias("value")];
        let rows = table(&SessionContext::new(), &texts).select(columns).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let batches = runtime.block_on(rows.collect()).unwrap();
        let batch = arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
        let misfits: &BooleanArray = batch.column(0).as_boolean();
        let values = bits(batch.column(1));
        values
            .into_iter()
            .zip(misfits)
            .map(|(value, misfit)| value.filter(|_| misfit != Some(true)))
            .collect()
    }

    fn bits(values: &ArrayRef) -> Vec<Option<i64>> {
        match values.data_type() {
            DataType::Float64 => values
                .as_primitive::<arrow::datatypes::Float64Type>()
                .iter()
                .map(|value| value.map(|value| i64::from_ne_bytes(value.to_ne_bytes())))
                .collect(),
            DataType::Date32 => bits(&cast(values, &DataType::Int32).unwrap()),
            _ => cast(values, &DataType::Int64).unwrap().as_primitive::<Int64Type>().iter().collect(),
        }
    }

    fn one_by_one(texts: &[&str], data_type: &DataType) -> Vec<Option<i64>> {
        let read = |text: &&str| {
            let text: ArrayRef = Arc::new(StringViewArray::from(vec![*text]));
            PlainValue(data_type.clone()).of(&text).ok().and_then(|value| bits(&value)[0])
        };
        texts.iter().map(read).collect()
    }

    #[track_caller]
    fn agree(texts: &[&str]) {
        for data_type in types() {
            let (fast, plain) = (by_casts(texts, &data_type), one_by_one(texts, &data_type));
            for (text, (fast, plain)) in texts.iter().zip(fast.into_iter().zip(plain)) {
                assert_eq!(fast, plain, "{text:?} as {data_type}");
            }
        }
    }

    #[test]
    fn what_is_a_moment() {
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        let moments = [
            ("2020-06-30", Some(1_593_475_200_000_000)),
            ("2020-06-30T23:59:59", Some(1_593_561_599_000_000)),
            ("2020-06-30 23:59:59.5Z", Some(1_593_561_599_500_000)),
            ("2020-06-30t23:59:59.123456789+00:00", Some(1_593_561_599_123_456)),
            ("2020-06-30 23:59:59 UTC", Some(1_593_561_599_000_000)),
            ("1969-12-31T23:59:59.9999999z", Some(-1)),
            ("0000-02-29", Some(-62_162_121_600_000_000)),
            // Zones, leap seconds, other forms.
            ("2020-06-30T23:00:00 America/New_York", None),
            ("2020-06-30T23:00:00 EST", None),
            ("2020-06-30T23:00:00EST", None),
            ("2020-06-30T23:00:00-05:00", None),
            ("2020-06-30T23:00:00+05", None),
            ("2020-06-30T23:00:00 -00:00", None),
            ("2020-06-30T23:59:60", None),
            ("2016-12-31T23:59:60Z", None),
            ("2020-06-30T24:00:00", None),
            ("2020-06-30T230000", None),
            ("2020-06-30T23:00", None),
            ("2020-06-30T23:00:00.", None),
            ("2020-06-30T23:00:00.1234567890", None),
            ("2020-06-30T", None),
            ("2020-6-30", None),
            ("20200630", None),
            ("+2020-06-30", None),
            ("-0044-03-15", None),
            ("2020-02-30", None),
            (" 2020-06-30", None),
            ("2020-06-30 ", None),
            ("２020-06-30", None),
            ("", None),
        ];
        let texts: Vec<&str> = moments.iter().map(|(text, _)| *text).collect();
        let expected: Vec<Option<i64>> = moments.iter().map(|(_, value)| *value).collect();
        assert_eq!(by_casts(&texts, &micros), expected);
        assert_eq!(one_by_one(&texts, &micros), expected);
        let midnights =
            ["2020-06-30", "2020-06-30T00:00:00Z", "2020-06-30 00:00:00.000", "2020-06-30T00:00:01"];
        let days = [Some(18_443), Some(18_443), Some(18_443), None];
        assert_eq!(by_casts(&midnights, &DataType::Date32), days);
        agree(&texts);
        agree(&midnights);
    }

    #[test]
    fn what_is_a_number() {
        let numbers = [
            ("1234.5", Some(1234.5)),
            ("-0", Some(0.0)),
            (" +.5e-1 ", Some(0.05)),
            ("5.", Some(5.0)),
            ("NaN", Some(f64::NAN)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("Infinity", Some(f64::INFINITY)),
            ("1e308", Some(1e308)),
            ("1e-400", Some(0.0)),
            ("9007199254740992", Some(9_007_199_254_740_992.0)),
            ("00000000000000000000012", Some(12.0)),
            // Beyond the range of a double, or beyond its exact integers.
            ("1e400", None),
            ("-1e309", None),
            ("9007199254740993", None),
            ("1234567890123456789", None),
            ("18446744073709551616", None),
            (".", None),
            ("1e", None),
            ("e5", None),
            ("1,5", None),
            ("1 5", None),
            ("0x10", None),
            ("in", None),
            ("", None),
        ];
        let texts: Vec<&str> = numbers.iter().map(|(text, _)| *text).collect();
        let expected: Vec<Option<i64>> = numbers
            .iter()
            .map(|(_, value)| value.map(|value: f64| i64::from_ne_bytes((value + 0.0).to_ne_bytes())))
            .collect();
        assert_eq!(by_casts(&texts, &DataType::Float64), expected);
        agree(&texts);
        agree(&[
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "+7",
            " 7\t",
            "7 7",
            "７",
        ]);
    }

    fn texts() -> impl Strategy<Value = Vec<String>> {
        let date = prop_oneof![
            "(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
            "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}",
            "[-+]?[0-9]{2,6}-?[0-9]{2}-?[0-9]{2}",
        ];
        let time = prop_oneof![
            Just(String::new()),
            "[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{0,10})?",
            "[Tt _]?00:00:00(\\.0{0,9}[0-9])?",
            "[Tt ][0-9]{1,2}:?[0-9]{2}(:?[0-6][0-9])?[ap]?",
        ];
        let zone = prop_oneof![
            Just(String::new()),
            " ?(Z|z|UTC|utc|GMT|EST|CET|[+-]0[0-9](:?[0-9]{2})?|Asia/Tokyo|America/New_York|\\+00:00|-00:00)",
        ];
        let number = prop_oneof![
            "[-+]?[0-9]{1,20}",
            " ?[-+]?[0-9]{0,20}\\.?[0-9]{0,20}([eE][-+]?[0-9]{1,3})?[ \t]?",
            "[-+]?(nan|NaN|inf|INF|infinity|Infinity|in|1e999|1e-999)",
            "[-+.eE0-9 ]{0,8}",
        ];
        let text = prop_oneof![
            4 => (date, time, zone).prop_map(|(date, time, zone)| date + &time + &zone),
            4 => number,
            1 => "\\PC{0,12}",
        ];
        prop::collection::vec(text, 1..60)
    }

    proptest! {
        #[test]
        fn both_readings_agree(texts in texts()) {
            agree(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }

    /// The verification refuses a table whose dates were typed wrongly: it is not the input.
    #[tokio::test]
    async fn a_wrong_typing_is_refused() {
        let session = Resources { threads: 2, memory: 1 << 28, spill: None }.session(Rules::new()).unwrap();
        let texts =
            [Some("2020-06-30"), Some("2020-06-30"), Some("2021-01-01"), Some("2021-01-01"), None, None];
        let schema = Schema::new(vec![Field::new("x", DataType::Utf8View, true)]);
        let read = async |typing| {
            let rows = table(&session, &texts);
            let csv = CsvOptions::default();
            typed(rows, &schema, &|_| true, (&csv, &|_| CsvType::Date), typing).await.unwrap()
        };
        let requirements = [Requirement::of_sizes(KAnonymity::new(2).unwrap())];
        let expected = Expected {
            assignment: None,
            columns: vec![("x".into(), Some(Arc::new(AsIs { text: false })))],
            requirements: &requirements,
            sensitive: Vec::new(),
            preferences: Vec::new(),
            population: None,
            individual: None,
            suppression_limit: Some(Decimal::parse("0").unwrap()),
        };
        let plain = read(Typing::Plain).await;
        let judged = async |released: DataFrame| {
            verify(&session, released, Some(plain.clone()), &expected, &CancelToken::default()).await
        };
        judged(read(Typing::Columnar).await).await.unwrap();
        let day_later = datafusion::logical_expr::cast(column("x"), DataType::Int32) + lit(1i32);
        let day_later = datafusion::logical_expr::cast(day_later, DataType::Date32).alias("x");
        let wrong = read(Typing::Columnar).await.select(vec![day_later]).unwrap();
        let error = judged(wrong).await.unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::Unmet);
    }

    /// The verification refuses a text that the casts read and the plain reading does not.
    #[tokio::test]
    async fn a_text_that_cannot_be_read_is_refused() {
        let rows = table(&SessionContext::new(), &[Some("2020-06-30T23:00:00 EST")]);
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        let rows = rows.select(vec![plain_value("x", column("x"), micros)]).unwrap();
        let error = crate::engine::map_error(&rows.collect().await.unwrap_err(), "reading");
        assert_eq!(error.kind(), crate::error::ErrorKind::Unmet);
        assert!(error.to_string().contains("column `x`: verification refused"), "{error}");
        assert!(!error.to_string().contains("EST"), "{error}");
    }
}
