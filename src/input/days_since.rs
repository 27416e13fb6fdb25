//! Date columns replaced by the days since the date in another column, when the table is opened: profile, apply and
//! verify then see an ordinary integer column.

use std::collections::BTreeMap;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, NaiveDate, Offset, TimeDelta};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};
use datafusion::prelude::DataFrame;

use crate::engine::{Context, column, into_engine};
use crate::error::{Error, Result};
use crate::generalize::Value;

/// Replaces each column of `relative` by the whole days, an `Int64`, from the date in the other
/// column to its own: negative before that date, NULL if either date is NULL. Times of day are
/// dropped on both sides; a timestamp with a time zone has its date in that zone.
///
/// # Errors
/// A data error when the plan cannot be made.
pub(crate) fn days_since(table: DataFrame, relative: &BTreeMap<String, String>) -> Result<DataFrame> {
    with_days(table, relative, &|from, to| day(to) - day(from))
}

/// Does the same as [`days_since`] row by row with chrono's calendar, for verification; it shares
/// nothing with Arrow's casts.
///
/// # Errors
/// As [`days_since`].
pub(crate) fn plain_days_since(table: DataFrame, relative: &BTreeMap<String, String>) -> Result<DataFrame> {
    with_days(table, relative, &|from, to| {
        let function = DaysBetween { signature: Signature::any(2, Volatility::Immutable) };
        ScalarUDF::new_from_impl(function).call(vec![column(from), column(to)])
    })
}

fn with_days(
    table: DataFrame,
    relative: &BTreeMap<String, String>,
    days: &dyn Fn(&str, &str) -> Expr,
) -> Result<DataFrame> {
    if relative.is_empty() {
        return Ok(table);
    }
    let names: Vec<String> = table.schema().fields().iter().map(|field| field.name().clone()).collect();
    let columns = names.iter().map(|name| match relative.get(name) {
        Some(other) => days(other, name).alias(name),
        None => column(name),
    });
    table.select(columns.collect::<Vec<Expr>>()).context("counting days")
}

/// Returns the days from 1970-01-01 to a date.
fn day(name: &str) -> Expr {
    cast(cast(cast(column(name), DataType::Date32), DataType::Int32), DataType::Int64)
}

/// `days_between(from, to)`, evaluated row by row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DaysBetween {
    signature: Signature,
}

impl ScalarUDFImpl for DaysBetween {
    fn name(&self) -> &'static str {
        "kanon_days_between"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let days = days_between(&columns).map_err(into_engine)?;
        Ok(ColumnarValue::Array(std::sync::Arc::new(days)))
    }
}

fn days_between(columns: &[ArrayRef]) -> Result<Int64Array> {
    let [from, to] = columns else {
        return Err(Error::internal("days_since: days_between got other than two columns"));
    };
    let mut days = Vec::with_capacity(to.len());
    for row in 0..to.len() {
        let (from, to) = (local_date(&Value::read(from, row)?)?, local_date(&Value::read(to, row)?)?);
        days.push(from.zip(to).map(|(from, to)| to.signed_duration_since(from).num_days()));
    }
    Ok(Int64Array::from(days))
}

/// Returns the date of a value, in its own time zone if it has one; `None` for NULL.
fn local_date(value: &Value) -> Result<Option<NaiveDate>> {
    let date = match value {
        Value::Null => return Ok(None),
        Value::Date(days) => TimeDelta::try_days(i64::from(*days))
            .and_then(|since| NaiveDate::default().checked_add_signed(since)),
        Value::Timestamp(ticks, unit, zone) => {
            let utc = match unit {
                TimeUnit::Second => DateTime::from_timestamp_secs(*ticks),
                TimeUnit::Millisecond => DateTime::from_timestamp_millis(*ticks),
                TimeUnit::Microsecond => DateTime::from_timestamp_micros(*ticks),
                TimeUnit::Nanosecond => Some(DateTime::from_timestamp_nanos(*ticks)),
            };
            let local = match zone {
                None => utc.map(|utc| utc.naive_utc()),
                Some(name) => {
                    let zone = name.parse::<Tz>().context("counting days")?;
                    utc.and_then(|utc| {
                        utc.naive_utc().checked_add_offset(utc.with_timezone(&zone).offset().fix())
                    })
                }
            };
            local.map(|local| local.date())
        }
        _ => return Err(Error::internal("days_since: a value is not a date")),
    };
    match date {
        Some(date) => Ok(Some(date)),
        None => Err(Error::unmet(
            "verification refused: a date is outside the supported calendar (years up to 262000)",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use arrow::array::{
        Array, ArrayRef, AsArray, Date32Array, TimestampMicrosecondArray, TimestampMillisecondArray,
    };
    use arrow::datatypes::Int64Type;
    use arrow::record_batch::RecordBatch;
    use chrono::DateTime;
    use datafusion::prelude::SessionContext;

    fn micros(text: &str) -> Option<i64> {
        (!text.is_empty()).then(|| DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros())
    }

    async fn days(from: ArrayRef, to: ArrayRef) -> Vec<Option<i64>> {
        let batch = RecordBatch::try_from_iter([("from", from), ("to", to)]).unwrap();
        let table = SessionContext::new().read_batch(batch).unwrap();
        let relative = BTreeMap::from([("to".to_owned(), "from".to_owned())]);
        let read = async |table: DataFrame| -> Vec<Option<i64>> {
            let batches = table.collect().await.unwrap();
            let days = batches[0].column(1);
            assert_eq!(days.data_type(), &DataType::Int64);
            days.as_primitive::<Int64Type>().iter().collect()
        };
        let days = read(days_since(table.clone(), &relative).unwrap()).await;
        assert_eq!(days, read(plain_days_since(table, &relative).unwrap()).await);
        days
    }

    #[tokio::test]
    async fn days_are_counted_by_the_calendar() {
        let from = [
            "2024-01-01T23:59:59Z",
            "2024-03-01T00:00:00Z",
            "1969-12-31T23:00:00Z",
            "",
            "2024-01-01T00:00:00Z",
        ];
        let to = [
            "2024-01-02T00:00:00Z",
            "2024-02-28T12:00:00Z",
            "1970-01-01T00:00:00Z",
            "2024-01-01T00:00:00Z",
            "",
        ];
        let expected = [Some(1), Some(-2), Some(1), None, None];
        let moments =
            |texts: [&str; 5]| -> TimestampMicrosecondArray { texts.map(micros).into_iter().collect() };
        assert_eq!(days(Arc::new(moments(from)), Arc::new(moments(to))).await, expected);
        // The same with dates on one side.
        let dates = |texts: [&str; 5]| -> ArrayRef {
            let day =
                |text| micros(text).map(|micros| i32::try_from(micros.div_euclid(86_400_000_000)).unwrap());
            Arc::new(texts.map(day).into_iter().collect::<Date32Array>())
        };
        assert_eq!(days(dates(from), Arc::new(moments(to))).await, expected);
        assert_eq!(days(Arc::new(moments(from)), dates(to)).await, expected);
    }

    #[tokio::test]
    async fn a_zone_has_dates_of_its_own() {
        // 23:30 in UTC is the next day in Berlin, and the same day in New York.
        let moment = micros("2024-06-30T23:30:00Z").map(|micros| micros / 1000);
        let in_zone = |zone: &str| -> ArrayRef {
            Arc::new(TimestampMillisecondArray::from(vec![moment]).with_timezone(zone))
        };
        let midnight: ArrayRef = Arc::new(Date32Array::from(vec![19_904])); // 2024-06-30
        for (zone, expected) in [("UTC", 0), ("Europe/Berlin", 1), ("America/New_York", 0), ("+02:00", 1)] {
            assert_eq!(days(Arc::clone(&midnight), in_zone(zone)).await, [Some(expected)], "{zone}");
        }
    }

    /// Compares [`days`] both ways: in all units and zones, around clock changes and before 1970.
    #[tokio::test]
    async fn both_ways_count_the_same_days() {
        let mut seed = 7u64;
        let mut moments = Vec::new();
        for _ in 0..2_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // 1900 to 2100, in seconds.
            moments.push(i64::try_from(seed >> 33).unwrap() * 3 - 2_208_988_800);
        }
        let dates: ArrayRef = Arc::new(Date32Array::from_iter_values(
            moments.iter().rev().map(|moment| i32::try_from(moment.div_euclid(86_400)).unwrap()),
        ));
        for zone in [
            None,
            Some("UTC"),
            Some("Europe/Berlin"),
            Some("America/Sao_Paulo"),
            Some("Pacific/Apia"),
            Some("-09:30"),
        ] {
            let millis = moments.iter().map(|moment| moment * 1_000 + 999);
            let millis = TimestampMillisecondArray::from_iter_values(millis).with_timezone_opt(zone);
            let nanos = moments.iter().rev().map(|moment| moment * 1_000_000_000 - 1);
            let nanos =
                arrow::array::TimestampNanosecondArray::from_iter_values(nanos).with_timezone_opt(zone);
            let (millis, nanos): (ArrayRef, ArrayRef) = (Arc::new(millis), Arc::new(nanos));
            days(Arc::clone(&millis), nanos).await;
            days(millis, Arc::clone(&dates)).await;
        }
    }
}
