//! Columns of every type with values at its ends, and what must hold of a hierarchy over them.

use std::collections::HashMap;
use std::slice;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array, StringArray, new_null_array};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use datafusion_kanon::internals::generalize::{Hierarchy, Value, apply};

const TEXTS: &[&str] = &[
    "",
    "*",
    "0",
    "-0.0",
    "1",
    "-1",
    "5",
    "9.99",
    "0.1",
    "0.3",
    "-0.05",
    "1e300",
    "-1e-300",
    "NaN",
    "inf",
    "-inf",
    "127",
    "-128",
    "255",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "true",
    "false",
    "02139",
    "zqxj1",
    "ä",
    "👩\u{200d}👧",
    "\u{202e}x",
    "a\0b",
    "739173917",
    "-739173917.5",
    "4503599627370497.5",
    "3.4028235e38",
    "1e-45",
    "[0,10)",
    "1970-01-01",
    "7391-01-01",
];
const TICKS: &[i64] = &[
    0,
    1,
    -1,
    86_399,
    86_400,
    -86_401,
    951_782_400,
    1_330_473_600_000,
    i32::MAX as i64,
    i32::MIN as i64,
    171_063_446_400,
    253_402_300_800,
    -62_135_596_801,
    8_210_266_876_799,
    8_210_266_876_800,
    -8_334_601_228_800_000,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    i64::MIN + 1,
];

/// The types that a column can have, with a short name each.
pub(super) fn types() -> Vec<(String, DataType)> {
    use DataType::*;
    let words = || Dictionary(Box::new(Int8), Box::new(Utf8));
    let item = |of| Arc::new(Field::new("item", of, true));
    let mut types = vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        Date32,
        Date64,
        words(),
        Null,
        Time32(TimeUnit::Second),
        Time64(TimeUnit::Nanosecond),
        Duration(TimeUnit::Second),
        Interval(IntervalUnit::YearMonth),
        Decimal32(9, 2),
        Decimal64(18, -2),
        Decimal128(38, 0),
        Decimal128(10, 2),
        Decimal128(38, 38),
        Decimal256(76, 3),
        List(item(Int8)),
        Struct(vec![item(Utf8)].into()),
        Dictionary(Box::new(UInt16), Box::new(Int64)),
    ];
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        let zones = [None, Some("UTC"), Some("+05:30"), Some("America/New_York"), Some("Mars/Olympus")];
        types.extend(zones.map(|zone| Timestamp(unit, zone.map(Into::into))));
    }
    types.into_iter().enumerate().map(|(at, of)| (format!("c{at}"), of)).collect()
}

/// Values at the ends of a type, and NULL.
pub(super) fn extremes(of: &DataType) -> ArrayRef {
    let texts: ArrayRef =
        Arc::new(TEXTS.iter().map(|text| Some(*text)).chain([None]).collect::<StringArray>());
    let ticks: ArrayRef =
        Arc::new(TICKS.iter().map(|ticks| Some(*ticks)).chain([None]).collect::<Int64Array>());
    let safe = CastOptions { safe: true, ..CastOptions::default() };
    let days = || {
        let days: Int32Array = TICKS.iter().map(|ticks| Some(*ticks as i32)).chain([None]).collect();
        Arc::new(days) as ArrayRef
    };
    let made = match of {
        DataType::Date32 => cast(&days(), of),
        DataType::Date64 | DataType::Timestamp(_, None) | DataType::Duration(_) => cast(&ticks, of),
        DataType::Timestamp(unit, Some(_)) => cast(&ticks, &DataType::Timestamp(*unit, None))
            .and_then(|local| cast(&cast(&local, &DataType::Int64)?, of)),
        DataType::Dictionary(_, values) => cast(&extremes(values), of),
        DataType::List(_) | DataType::Struct(_) | DataType::Null | DataType::Interval(_) => {
            Ok(new_null_array(of, 3))
        }
        _ => cast_with_options(&texts, of, &safe),
    };
    made.unwrap_or_else(|_| new_null_array(of, 3))
}

/// Equal to the bit, apart from the bits of NaN.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

/// Whether a moment in a zone lies so near the ends of the calendar that the fast way, which looks
/// at the days around it, may refuse it.
fn is_at_the_end(value: &Value) -> bool {
    let Value::Timestamp(ticks, unit, Some(_)) = value else { return false };
    let seconds = match unit {
        TimeUnit::Second => *ticks,
        TimeUnit::Millisecond => ticks / 1_000,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => return false,
    };
    !(-8_334_601_000_000..8_210_266_000_000).contains(&seconds)
}

/// Checks a hierarchy on a column: the fast way and the obvious one agree on each value and on all,
/// results are labels of the announced type, NULL stays NULL below the top, equal labels stay
/// equal, what is not covered is what fails.
pub(super) fn agree(hierarchy: &Hierarchy, values: &ArrayRef) -> Result<(), String> {
    let mut finer: Vec<Option<Value>> = Vec::new();
    for (level, generalizer) in hierarchy.levels().iter().enumerate() {
        let wrong = |row: usize, what: &str| {
            Err(format!(
                "level {level} ({}) over {}: {what} (row {row})",
                generalizer.descriptor(),
                values.data_type()
            ))
        };
        let whole = apply(&**generalizer, values);
        let mut coarser = Vec::new();
        for row in 0..values.len() {
            // A `Date64` may lie outside the calendar; the engine's plans know it as a timestamp.
            let Ok(value) = Value::read(values, row) else { return Ok(()) };
            // What one value becomes may not fit the column's type: it is found out when the column
            // is made of it.
            let one = generalizer.generalize_value(&value).and_then(|one| match hierarchy.output_type() {
                of if of.is_integer() => Value::build(slice::from_ref(&one), of).map(|_| one),
                _ => Ok(one),
            });
            let fast = apply(&**generalizer, &values.slice(row, 1));
            match (&one, &fast) {
                (Ok(one), Ok(fast)) => {
                    if fast.data_type() != hierarchy.output_type() {
                        return wrong(row, &format!("the result is {}", fast.data_type()));
                    }
                    let read =
                        |array: &ArrayRef, row| Value::read(array, row).map_err(|error| error.to_string());
                    if !same(one, &read(fast, 0)?) {
                        return wrong(row, "generalize and one differ");
                    }
                    if whole.as_ref().is_ok_and(|all| !read(all, row).is_ok_and(|label| same(one, &label))) {
                        return wrong(row, "the value alone and among others differ");
                    }
                    if !generalizer.is_label(one) {
                        return wrong(row, "the result is no label");
                    }
                    if !generalizer.is_top()
                        && values.is_null(row) != (*one == Value::Null)
                        && !values.data_type().is_nested()
                    {
                        let null_key =
                            matches!(values.data_type(), DataType::Dictionary(..)) && value == Value::Null;
                        if !null_key {
                            return wrong(row, "NULL does not stay NULL, or something else becomes it");
                        }
                    }
                }
                (Err(error), Err(other)) => {
                    for error in [error, other] {
                        super::blameless(error, "")?;
                    }
                    if whole.is_ok() {
                        return wrong(row, "the value fails alone, but not among others");
                    }
                }
                (Ok(_), Err(_)) if is_at_the_end(&value) => {}
                (Ok(_), Err(error)) => return wrong(row, &format!("only generalize fails: {error}")),
                (Err(error), Ok(_)) => return wrong(row, &format!("only one fails: {error}")),
            }
            coarser.push(one.ok());
        }
        if whole.is_err() && coarser.iter().all(Option::is_some) {
            return wrong(0, "all fail together, but none alone");
        }
        let mut parents: HashMap<String, &Value> = HashMap::new();
        for (fine, coarse) in finer.iter().zip(&coarser) {
            if let (Some(fine), Some(coarse)) = (fine, coarse) {
                let parent = *parents.entry(format!("{:?}", fine.text_form())).or_insert(coarse);
                if !same(parent, coarse) {
                    return wrong(0, "it separates what the finer level puts together");
                }
            }
        }
        let uncovered = generalizer.uncovered(values).map_err(|error| error.to_string())?;
        if let Some(row) = uncovered.iter().find(|row| coarser[**row].is_some()) {
            return wrong(*row, "a value that is not covered has a label");
        }
        finer = coarser;
    }
    Ok(())
}
