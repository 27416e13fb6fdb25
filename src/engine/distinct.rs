//! The distinct values of a batch, so that a generalizer or an encoder handles each value once.
//!
//! Two implementations share nothing, so that neither can repeat a mistake of the other:
//! [`of_batch`] compares the bits of values, for profile and apply; [`of_batch_plainly`] compares
//! texts as texts and leaves the other types to Arrow's dictionaries, for verification.

use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, StringViewArray, UInt32Array, new_null_array};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{DataType, Int32Type};
use arrow::error::ArrowError;
use hashbrown::HashMap;

/// The distinct values of an array, including NULL, and for each row the index of its value among
/// them.
pub(crate) type Distinct = (ArrayRef, Int32Array);

/// Returns the distinct values by their bits, or as [`of_batch_plainly`] does for types without a
/// fast path.
pub(crate) fn of_batch(values: &ArrayRef) -> Result<Distinct, ArrowError> {
    let (firsts, places) = match values.data_type() {
        DataType::Utf8View => of_texts(values),
        other => match other.primitive_width() {
            Some(width @ ..=16) => of_bits(values, width),
            _ => return of_batch_plainly(values),
        },
    };
    Ok((take(values, &UInt32Array::from(firsts), None)?, Int32Array::from(places)))
}

/// The first row of each distinct value, and for each row the index of its value.
type Places = (Vec<u32>, Vec<i32>);

/// Finds the distinct values of a type of `width` bytes.
fn of_bits(values: &ArrayRef, width: usize) -> Places {
    let data = values.to_data();
    let bytes = data.buffers().first().map_or(&[][..], |buffer| buffer.as_slice());
    let bytes = bytes.get(data.offset() * width..).unwrap_or_default();
    by_key(values.len(), |row| {
        let mut key = [0u8; 16];
        key[..width].copy_from_slice(&bytes[row * width..][..width]);
        (!values.is_null(row)).then(|| u128::from_le_bytes(key))
    })
}

fn of_texts(values: &ArrayRef) -> Places {
    let values = values.as_string_view();
    let views = values.views();
    // A text of up to twelve bytes lies in its view.
    let is_short = |row: usize| views[row] & 0xFFFF_FFFF <= 12;
    if (0..values.len()).all(|row| values.is_null(row) || is_short(row)) {
        by_key(values.len(), |row| (!values.is_null(row)).then(|| views[row]))
    } else {
        by_key(values.len(), |row| (!values.is_null(row)).then(|| values.value(row)))
    }
}

fn by_key<K: Hash + Eq + Copy>(rows: usize, key: impl Fn(usize) -> Option<K>) -> Places {
    let (mut firsts, mut places) = (Vec::new(), Vec::with_capacity(rows));
    let mut known: HashMap<Option<K>, i32> = HashMap::new();
    let mut last: Option<(Option<K>, i32)> = None;
    // A batch is far below two billion rows.
    for (row, number) in (0..rows).zip(0u32..) {
        let key = key(row);
        let place = match last {
            Some((before, place)) if before == key => place,
            _ => *known.entry(key).or_insert_with(|| {
                firsts.push(number);
                i32::try_from(firsts.len() - 1).unwrap_or(i32::MAX)
            }),
        };
        last = Some((key, place));
        places.push(place);
    }
    (firsts, places)
}

/// Returns the distinct values by Arrow's dictionaries; the values unchanged for types without
/// dictionaries.
pub(crate) fn of_batch_plainly(values: &ArrayRef) -> Result<Distinct, ArrowError> {
    if let Some(texts) = values.as_string_view_opt() {
        let (mut distinct, mut places) = (Vec::new(), Vec::with_capacity(texts.len()));
        let mut known: HashMap<Option<&str>, i32> = HashMap::new();
        for text in texts {
            let next = i32::try_from(distinct.len()).map_err(|e| ArrowError::ComputeError(e.to_string()))?;
            let place = *known.entry(text).or_insert(next);
            if place == next {
                distinct.push(text);
            }
            places.push(place);
        }
        return Ok((Arc::new(StringViewArray::from(distinct)), Int32Array::from(places)));
    }
    let plain = Box::new(values.data_type().clone());
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), plain);
    let rows = i32::try_from(values.len()).map_err(|e| ArrowError::ComputeError(e.to_string()))?;
    let Ok(packed) = cast(values, &dictionary) else {
        return Ok((Arc::clone(values), Int32Array::from_iter_values(0..rows)));
    };
    let packed = packed.as_dictionary::<Int32Type>();
    let distinct = Arc::clone(packed.values());
    if packed.keys().null_count() == 0 {
        return Ok((distinct, packed.keys().clone()));
    }
    let null = i32::try_from(distinct.len()).map_err(|e| ArrowError::ComputeError(e.to_string()))?;
    let distinct = concat(&[&*distinct, &*new_null_array(values.data_type(), 1)])?;
    let places = packed.keys().iter().map(|key| key.unwrap_or(null));
    Ok((distinct, Int32Array::from_iter_values(places)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float64Array, Int8Array, Int64Array, StringViewArray,
    };
    use arrow::util::display::array_value_to_string;

    #[test]
    fn both_ways_give_each_row_its_value_once() {
        let long = "a text of more than twelve bytes";
        let longer = "a text of more than twelve bytes, too";
        let arrays: [ArrayRef; 9] = [
            Arc::new(StringViewArray::from(vec![Some("b"), None, Some(""), Some("b"), Some("a"), None])),
            Arc::new(StringViewArray::from(vec![Some(long), Some("b"), Some(longer), None, Some(long)])),
            Arc::new(Int8Array::from(vec![Some(-1), Some(-1), None, Some(7), Some(0)])),
            Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(0), Some(i64::MIN), None])),
            Arc::new(Date32Array::from(vec![Some(3), Some(3), Some(4)])),
            Arc::new(Float64Array::from(vec![Some(0.5), Some(f64::NAN), Some(f64::NAN), None])),
            Arc::new(
                Decimal128Array::from(vec![Some(5), None, Some(5)]).with_precision_and_scale(9, 2).unwrap(),
            ),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
            Arc::new(StringViewArray::from(Vec::<Option<&str>>::new())),
        ];
        for array in arrays {
            for whole in [true, false] {
                let array = if whole {
                    Arc::clone(&array)
                } else {
                    array.slice(array.len().min(1), array.len().saturating_sub(1))
                };
                for (ours, way) in [(true, of_batch as fn(&ArrayRef) -> _), (false, of_batch_plainly)] {
                    let (distinct, places): Distinct = way(&array).unwrap();
                    let back = take(&distinct, &places, None).unwrap();
                    assert_eq!(&back, &array, "{}", array.data_type());
                    let mut seen: Vec<_> = (0..distinct.len())
                        .map(|at| (distinct.is_null(at), array_value_to_string(&distinct, at).unwrap()))
                        .collect();
                    seen.sort();
                    seen.dedup();
                    let as_is = *array.data_type() == DataType::Boolean;
                    assert!(as_is || seen.len() == distinct.len(), "{} {ours}", array.data_type());
                }
            }
        }
    }
}
