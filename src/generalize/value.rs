//! Values one cell at a time: the slow, obvious reading and writing that the naive generalizers
//! use.
//!
//! The columnar code in the feature files never uses this module; verification and the law tests
//! always do, so neither can repeat a mistake of the other.

use std::fmt;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::*;

use crate::error::{Error, Result};

/// A cell. Its `Debug` shows only the kind, so that no cell reaches a log.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// A missing value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of any width.
    Int(i128),
    /// A float of any width; an `f32` by its exact value.
    Float(f64),
    /// A string.
    Text(String),
    /// Days since 1970-01-01.
    Date(i32),
    /// Ticks of a unit since 1970-01-01 00:00, in UTC if there is a time zone, else local.
    Timestamp(i64, TimeUnit, Option<Arc<str>>),
    /// Digits and scale: `Decimal(1250, 2)` is 12.50.
    Decimal(i256, i8),
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Value::Null => "Null",
            Value::Bool(_) => "Bool(..)",
            Value::Int(_) => "Int(..)",
            Value::Float(_) => "Float(..)",
            Value::Text(_) => "Text(..)",
            Value::Date(_) => "Date(..)",
            Value::Timestamp(..) => "Timestamp(..)",
            Value::Decimal(..) => "Decimal(..)",
        })
    }
}

/// Creates the error for a column type that no feature handles.
pub fn unsupported(data_type: &DataType, wanted: &str) -> Error {
    let cast = match wanted {
        _ if !data_type.is_string() => "",
        "dates or timestamps" => "; in SQL: to_date(x), or to_date(x, '%d.%m.%Y')",
        _ => "; in SQL: CAST(x AS INT), CAST(x AS DOUBLE)",
    };
    Error::data(format!(
        "values of type {} cannot be used here; expected {wanted}{cast}",
        type_name(data_type)
    ))
}

/// Returns the name of a type whatever its encoding: all texts are `text`, and a dictionary has the
/// name of its values.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Dictionary(_, values) => type_name(values),
        text if text.is_string() => "text".to_owned(),
        other => other.to_string(),
    }
}

/// Returns whether values of this type can be quasi-identifiers: integers, floats, decimals, text
/// in all encodings, dates, timestamps and booleans.
pub fn is_supported(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => {
            !matches!(**values, DataType::Dictionary(..)) && is_supported(values)
        }
        DataType::Float16 => false,
        other => {
            other.is_integer()
                || other.is_floating()
                || other.is_string()
                || other.is_decimal()
                || matches!(
                    other,
                    DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) | DataType::Boolean
                )
        }
    }
}

/// The types of [`is_supported`] in words, for an error.
pub(crate) const SUPPORTED: &str = "integers, floats, decimals, text, dates, timestamps or booleans";

impl Value {
    /// Reads the cell `row` of `array`.
    ///
    /// # Errors
    /// A data error for unsupported types.
    pub fn read(array: &dyn Array, row: usize) -> Result<Self> {
        if array.is_null(row) {
            return Ok(Value::Null);
        }
        macro_rules! int {
            ($t:ty) => {
                Value::Int(i128::from(array.as_primitive::<$t>().value(row)))
            };
        }
        Ok(match array.data_type() {
            DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
            DataType::Int8 => int!(Int8Type),
            DataType::Int16 => int!(Int16Type),
            DataType::Int32 => int!(Int32Type),
            DataType::Int64 => int!(Int64Type),
            DataType::UInt8 => int!(UInt8Type),
            DataType::UInt16 => int!(UInt16Type),
            DataType::UInt32 => int!(UInt32Type),
            DataType::UInt64 => int!(UInt64Type),
            DataType::Float32 => Value::Float(widen(array.as_primitive::<Float32Type>().value(row))),
            DataType::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(row)),
            DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
            DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row).to_owned()),
            DataType::Utf8View => Value::Text(array.as_string_view().value(row).to_owned()),
            DataType::Date32 => Value::Date(array.as_primitive::<Date32Type>().value(row)),
            DataType::Date64 => {
                let days = array.as_primitive::<Date64Type>().value(row).div_euclid(86_400_000);
                Value::Date(i32::try_from(days).map_err(|_| Error::data("a date is out of range"))?)
            }
            DataType::Timestamp(unit, zone) => Value::Timestamp(
                match unit {
                    TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row),
                    TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row),
                    TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(row),
                    TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().value(row),
                },
                *unit,
                zone.clone(),
            ),
            DataType::Decimal32(_, scale) => {
                Value::Decimal(array.as_primitive::<Decimal32Type>().value(row).into(), *scale)
            }
            DataType::Decimal64(_, scale) => {
                Value::Decimal(array.as_primitive::<Decimal64Type>().value(row).into(), *scale)
            }
            DataType::Decimal128(_, scale) => {
                Value::Decimal(array.as_primitive::<Decimal128Type>().value(row).into(), *scale)
            }
            DataType::Decimal256(_, scale) => {
                Value::Decimal(array.as_primitive::<Decimal256Type>().value(row), *scale)
            }
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let key = *dictionary
                    .normalized_keys()
                    .get(row)
                    .ok_or_else(|| Error::internal("value: a dictionary has no key for a row"))?;
                return Value::read(dictionary.values(), key);
            }
            other => return Err(unsupported(other, SUPPORTED)),
        })
    }

    /// Builds an array of `data_type` from cells; each cell must be of that type or NULL.
    ///
    /// # Errors
    /// A data error when a cell does not fit the type.
    pub fn build(values: &[Value], data_type: &DataType) -> Result<ArrayRef> {
        let misfit = || Error::data(format!("a generalized value does not fit the type {data_type}"));
        macro_rules! primitive {
            ($t:ty, $pattern:pat => $value:expr) => {{
                let cells: Result<Vec<Option<<$t as ArrowPrimitiveType>::Native>>> = values
                    .iter()
                    .map(|v| match v {
                        Value::Null => Ok(None),
                        $pattern => ($value).map(Some),
                        _ => Err(misfit()),
                    })
                    .collect();
                Arc::new(PrimitiveArray::<$t>::from(cells?).with_data_type(data_type.clone())) as ArrayRef
            }};
        }
        macro_rules! int {
            ($t:ty) => { primitive!($t, Value::Int(v) => <$t as ArrowPrimitiveType>::Native::try_from(*v).map_err(|_| misfit())) };
        }
        macro_rules! ticks {
            ($t:ty) => { primitive!($t, Value::Timestamp(v, ..) => Ok(*v)) };
        }
        // A cell with more digits than the type is not a value of it.
        macro_rules! decimal {
            ($t:ty, $digits:expr, $native:expr) => {
                primitive!($t, Value::Decimal(v, _) => {
                    let native: Option<<$t as ArrowPrimitiveType>::Native> = $native(*v);
                    native.filter(|v| <$t>::is_valid_decimal_precision(*v, $digits)).ok_or_else(misfit)
                })
            };
        }
        macro_rules! text {
            ($t:ty) => {{
                let cells: Result<Vec<Option<&str>>> = values
                    .iter()
                    .map(|v| match v {
                        Value::Null => Ok(None),
                        Value::Text(t) => Ok(Some(t.as_str())),
                        _ => Err(misfit()),
                    })
                    .collect();
                Arc::new(<$t>::from_iter(cells?)) as ArrayRef
            }};
        }
        Ok(match data_type {
            DataType::Boolean => {
                let cells: Result<Vec<Option<bool>>> = values
                    .iter()
                    .map(|v| match v {
                        Value::Null => Ok(None),
                        Value::Bool(b) => Ok(Some(*b)),
                        _ => Err(misfit()),
                    })
                    .collect();
                Arc::new(BooleanArray::from(cells?))
            }
            DataType::Int8 => int!(Int8Type),
            DataType::Int16 => int!(Int16Type),
            DataType::Int32 => int!(Int32Type),
            DataType::Int64 => int!(Int64Type),
            DataType::UInt8 => int!(UInt8Type),
            DataType::UInt16 => int!(UInt16Type),
            DataType::UInt32 => int!(UInt32Type),
            DataType::UInt64 => int!(UInt64Type),
            DataType::Float32 => primitive!(Float32Type, Value::Float(v) => Ok(narrow(*v))),
            DataType::Float64 => primitive!(Float64Type, Value::Float(v) => Ok(*v)),
            DataType::Utf8 => text!(StringArray),
            DataType::LargeUtf8 => text!(LargeStringArray),
            DataType::Utf8View => text!(StringViewArray),
            DataType::Date32 => primitive!(Date32Type, Value::Date(v) => Ok(*v)),
            DataType::Date64 => primitive!(Date64Type, Value::Date(v) => Ok(i64::from(*v) * 86_400_000)),
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => ticks!(TimestampSecondType),
                TimeUnit::Millisecond => ticks!(TimestampMillisecondType),
                TimeUnit::Microsecond => ticks!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => ticks!(TimestampNanosecondType),
            },
            DataType::Decimal128(digits, _) => decimal!(Decimal128Type, *digits, i256::to_i128),
            DataType::Decimal256(digits, _) => decimal!(Decimal256Type, *digits, Some),
            other => return Err(unsupported(other, "a type that a generalizer returns")),
        })
    }

    /// Returns a number, the days of a date or the ticks of a timestamp; `None` for other values.
    pub fn to_f64(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            Value::Date(days) => Some(f64::from(*days)),
            Value::Timestamp(ticks, ..) => Some(*ticks as f64),
            Value::Decimal(..) => self.text_form()?.parse().ok(),
            Value::Null | Value::Bool(_) | Value::Text(_) => None,
        }
    }

    /// Returns the text on which hierarchy files match and which level 0 of a text hierarchy shows:
    /// integers in decimal, floats as the shortest decimal that reads back, decimals with all
    /// digits of their scale (`12.50`), `true`/`false`, ISO dates and timestamps; a timestamp with
    /// a time zone in UTC, followed by `Z`. `None` for NULL.
    pub fn text_form(&self) -> Option<String> {
        Some(match self {
            Value::Null => return None,
            Value::Bool(b) => b.to_string(),
            Value::Int(i) => i.to_string(),
            Value::Float(x) => x.to_string(),
            Value::Text(t) => t.clone(),
            Value::Date(days) => date_text(*days),
            Value::Timestamp(ticks, unit, None) => timestamp_text(*ticks, *unit),
            Value::Timestamp(ticks, unit, Some(_)) => timestamp_text(*ticks, *unit) + "Z",
            Value::Decimal(digits, scale) => {
                Decimal256Type::format_decimal(*digits, DECIMAL256_MAX_PRECISION, *scale)
            }
        })
    }
}

/// Converts an `f32` to the `f64` that prints alike, so that 0.1 stays 0.1.
pub(crate) fn widen(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// Converts `value` to the `f32` that prints alike.
pub(crate) fn narrow(value: f64) -> f32 {
    value.to_string().parse().unwrap_or(f32::NAN)
}

fn date_text(days: i32) -> String {
    match chrono::DateTime::from_timestamp(i64::from(days) * 86_400, 0) {
        Some(t) => t.format("%Y-%m-%d").to_string(),
        None => format!("day {days}"),
    }
}

fn timestamp_text(ticks: i64, unit: TimeUnit) -> String {
    let per_second: i64 = ticks_per_second(unit);
    let nanos = ticks.rem_euclid(per_second) * (1_000_000_000 / per_second);
    match chrono::DateTime::from_timestamp(ticks.div_euclid(per_second), u32::try_from(nanos).unwrap_or(0)) {
        Some(t) => t.format("%Y-%m-%dT%H:%M:%S%.f").to_string(),
        None => format!("tick {ticks}"),
    }
}

/// Returns the number of ticks of `unit` in a second.
pub(crate) fn ticks_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_survive_a_round_trip() {
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int8Array::from(vec![Some(-128), None, Some(127)])),
            Arc::new(UInt8Array::from(vec![Some(u8::MAX), None])),
            Arc::new(UInt16Array::from(vec![Some(u16::MAX), None])),
            Arc::new(UInt32Array::from(vec![Some(u32::MAX), None])),
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
            Arc::new(Float32Array::from(vec![Some(0.1), None, Some(-3.5e-9)])),
            Arc::new(StringArray::from(vec![Some("a"), None, Some("")])),
            Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("")])),
            Arc::new(StringViewArray::from(vec![Some("a"), None, Some("")])),
            Arc::new(Date64Array::from(vec![Some(-86_400_000), None])),
            Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None])),
            Arc::new(BooleanArray::from(vec![Some(true), None])),
            Arc::new(TimestampSecondArray::from(vec![Some(5), None]).with_timezone("Europe/Berlin")),
            Arc::new(
                Decimal128Array::from(vec![Some(-99_999), None]).with_precision_and_scale(5, 2).unwrap(),
            ),
            Arc::new(Decimal256Array::from(vec![Some(i256::from_i128(i128::MIN)), None])),
        ];
        for array in arrays {
            let cells: Vec<Value> = (0..array.len()).map(|i| Value::read(&array, i).unwrap()).collect();
            assert_eq!(&Value::build(&cells, array.data_type()).unwrap(), &array);
        }
    }

    #[test]
    fn decimals_of_all_widths_are_read() {
        let arrays: [ArrayRef; 4] = [
            Arc::new(Decimal32Array::from(vec![-1250]).with_precision_and_scale(5, 2).unwrap()),
            Arc::new(Decimal64Array::from(vec![-1250]).with_precision_and_scale(5, 2).unwrap()),
            Arc::new(Decimal128Array::from(vec![-1250]).with_precision_and_scale(5, 2).unwrap()),
            Arc::new(Decimal256Array::from(vec![i256::from(-1250)]).with_precision_and_scale(5, 2).unwrap()),
        ];
        for array in arrays {
            assert_eq!(Value::read(&array, 0).unwrap().text_form().unwrap(), "-12.50");
        }
    }

    #[test]
    fn a_dictionary_is_supported_where_its_values_are() {
        let packed = |values| DataType::Dictionary(Box::new(DataType::Int8), Box::new(values));
        let list = DataType::new_list(DataType::Int8, true);
        assert!(is_supported(&DataType::Utf8) && is_supported(&packed(DataType::Utf8)));
        for wrong in [DataType::Float16, list, packed(DataType::Utf8)] {
            assert!(!is_supported(&packed(wrong)));
        }
        assert!(!is_supported(&DataType::Float16));
    }

    #[test]
    fn text_forms() {
        let cases = [
            (Value::Int(-5), "-5"),
            (Value::Float(0.5), "0.5"),
            (Value::Float(1.0), "1"),
            (Value::Date(-1), "1969-12-31"),
            (Value::Timestamp(-1, TimeUnit::Millisecond, None), "1969-12-31T23:59:59.999"),
            (Value::Timestamp(0, TimeUnit::Second, Some("+02:00".into())), "1970-01-01T00:00:00Z"),
            (Value::Decimal(i256::from(-1250), 2), "-12.50"),
            (Value::Decimal(i256::from(5), 3), "0.005"),
            (Value::Decimal(i256::from(12), -2), "1200"),
            (Value::Bool(true), "true"),
        ];
        for (value, text) in cases {
            assert_eq!(value.text_form().unwrap(), text);
        }
        assert_eq!(Value::Null.text_form(), None);
    }

    #[test]
    fn debug_shows_no_cell() {
        assert_eq!(format!("{:?}", Value::Text("secret".into())), "Text(..)");
    }
}
