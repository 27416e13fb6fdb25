//! Columns that become the days since another column's date.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, cast};
use datafusion::prelude::DataFrame;

use super::engine::{Doing, column};
use crate::error::Result;

/// `table` with each column of `relative` as the whole days, an `Int64`, from the date in the other column to its own:
/// below 0 before it, NULL where either is NULL. Times of day are dropped on both sides; a timestamp with a time zone
/// has its date there.
///
/// # Errors
/// A data error when the plan cannot be made.
pub(crate) fn days_since(table: DataFrame, relative: &BTreeMap<String, String>) -> Result<DataFrame> {
    if relative.is_empty() {
        return Ok(table);
    }
    let names: Vec<String> = table.schema().fields().iter().map(|field| field.name().clone()).collect();
    let columns = names.iter().map(|name| match relative.get(name) {
        Some(other) => (day(name) - day(other)).alias(name),
        None => column(name),
    });
    table.select(columns.collect::<Vec<Expr>>()).doing("counting days")
}

/// The days from 1970-01-01 to a date.
fn day(name: &str) -> Expr {
    cast(cast(cast(column(name), DataType::Date32), DataType::Int32), DataType::Int64)
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
        let batches = days_since(table, &relative).unwrap().collect().await.unwrap();
        let days = batches[0].column(1);
        assert_eq!(days.data_type(), &DataType::Int64);
        days.as_primitive::<Int64Type>().iter().collect()
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
        // The same with the dates of one side.
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
        // 23:30 in UTC is the day after in Berlin, and the day itself in New York.
        let moment = micros("2024-06-30T23:30:00Z").map(|micros| micros / 1000);
        let in_zone = |zone: &str| -> ArrayRef {
            Arc::new(TimestampMillisecondArray::from(vec![moment]).with_timezone(zone))
        };
        let midnight: ArrayRef = Arc::new(Date32Array::from(vec![19_904])); // 2024-06-30
        for (zone, expected) in [("UTC", 0), ("Europe/Berlin", 1), ("America/New_York", 0), ("+02:00", 1)] {
            assert_eq!(days(Arc::clone(&midnight), in_zone(zone)).await, [Some(expected)], "{zone}");
        }
    }
}
