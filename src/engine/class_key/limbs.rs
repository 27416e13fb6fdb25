//! Turns each text, byte string, Boolean, interval or wide decimal of a column into two numbers, from which
//! [class keys](super) are computed.

use std::hash::Hasher;

use arrow::array::{Array, AsArray, GenericByteArray, GenericByteViewArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowPrimitiveType, ByteArrayType, ByteViewType, DataType, Decimal128Type, Decimal256Type,
    IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType,
};
use datafusion::error::{DataFusionError, Result};
use siphasher::sip128::{Hasher128, SipHasher13 as SipHasher128};

use super::Seed;

/// A value of a column: two values of one column are equal if and only if their limbs are.
pub(super) type Limbs = [u64; 2];

/// The limbs of NULL.
pub(super) const NULL: Limbs = [1 << 51, 0];

/// Returns the limbs of each value of a type that [`bits::map_each`](crate::engine::bits::map_each) does not read.
///
/// # Errors
/// An internal error for a type that has no keys.
pub(super) fn limbs_of(seed: Seed, array: &dyn Array) -> Result<Vec<Limbs>> {
    Ok(match array.data_type() {
        DataType::Decimal128(..) => of_fixed_width(seed, array.as_primitive::<Decimal128Type>()),
        DataType::Decimal256(..) => of_fixed_width(seed, array.as_primitive::<Decimal256Type>()),
        DataType::Interval(IntervalUnit::YearMonth) => {
            of_fixed_width(seed, array.as_primitive::<IntervalYearMonthType>())
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            of_fixed_width(seed, array.as_primitive::<IntervalDayTimeType>())
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            of_fixed_width(seed, array.as_primitive::<IntervalMonthDayNanoType>())
        }
        DataType::Utf8 => of_bytes(seed, array.as_string::<i32>()),
        DataType::LargeUtf8 => of_bytes(seed, array.as_string::<i64>()),
        DataType::Binary => of_bytes(seed, array.as_binary::<i32>()),
        DataType::LargeBinary => of_bytes(seed, array.as_binary::<i64>()),
        DataType::Utf8View => of_views(seed, array.as_string_view()),
        DataType::BinaryView => of_views(seed, array.as_binary_view()),
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary().iter();
            values.map(|value| value.map_or(NULL, |bytes| limbs_of_bytes(seed, bytes))).collect()
        }
        DataType::Boolean => {
            array.as_boolean().iter().map(|value| value.map_or(NULL, |value| [value.into(), 0])).collect()
        }
        DataType::Null => vec![NULL; array.len()],
        _ => return Err(unknown(array)),
    })
}

/// Returns up to twelve bytes and their number unchanged; a hash for longer values, which
/// equals the limbs of no short value.
fn limbs_of_bytes(seed: Seed, bytes: &[u8]) -> Limbs {
    let mut short = [0u8; 16];
    match short.get_mut(4..4 + bytes.len()) {
        Some(place) => {
            place.copy_from_slice(bytes);
            let number = u32::try_from(bytes.len()).unwrap_or_default();
            short[..4].copy_from_slice(&number.to_le_bytes());
            limbs_of_short(u128::from_le_bytes(short))
        }
        None => {
            let mut hasher = SipHasher128::new_with_keys(seed[0], seed[1]);
            hasher.write(bytes);
            let hash = hasher.finish128();
            [1 << 60 | hash.h1 >> 5, hash.h2 >> 4]
        }
    }
}

fn of_bytes<T: ByteArrayType>(seed: Seed, array: &GenericByteArray<T>) -> Vec<Limbs>
where
    T::Native: AsRef<[u8]>,
{
    array.iter().map(|value| value.map_or(NULL, |value| limbs_of_bytes(seed, value.as_ref()))).collect()
}

fn of_views<T: ByteViewType>(seed: Seed, array: &GenericByteViewArray<T>) -> Vec<Limbs>
where
    T::Native: AsRef<[u8]>,
{
    // Equal views are equal texts, and equal texts of one Parquet dictionary have equal views.
    let mut known = [(0u128, NULL); 64];
    let mut limbs = |row: usize, view: u128| {
        if view & 0xFFFF_FFFF <= 12 {
            return limbs_of_short(view);
        }
        let place = &mut known[(view ^ view >> 64 ^ view >> 99).to_le_bytes()[0] as usize % 64];
        if place.0 != view {
            *place = (view, limbs_of_bytes(seed, array.value(row).as_ref()));
        }
        place.1
    };
    let views = array.views().iter().enumerate();
    match array.nulls() {
        None => views.map(|(row, view)| limbs(row, *view)).collect(),
        Some(nulls) => {
            let valid = |row| nulls.is_valid(row);
            views.map(|(row, view)| if valid(row) { limbs(row, *view) } else { NULL }).collect()
        }
    }
}

/// Reads the number of bytes from the lowest 32 bits, and up to twelve bytes above them.
fn limbs_of_short(view: u128) -> Limbs {
    let number = (view & 0xF) | (view >> 32) << 4;
    let limb = |limb: u128| u64::try_from(limb & ((1 << 50) - 1)).unwrap_or_default();
    [limb(number), limb(number >> 50)]
}

/// Returns the limbs of values of a fixed width from their bytes.
fn of_fixed_width<T: ArrowPrimitiveType>(seed: Seed, array: &PrimitiveArray<T>) -> Vec<Limbs> {
    let values = array.values().inner().chunks_exact(size_of::<T::Native>()).enumerate();
    let limbs = |bytes: &[u8]| limbs_of_bytes(seed, bytes);
    values.map(|(row, bytes)| if array.is_null(row) { NULL } else { limbs(bytes) }).collect()
}

fn unknown(array: &dyn Array) -> DataFusionError {
    DataFusionError::Internal(format!("no key can be made of {}", array.data_type()))
}
