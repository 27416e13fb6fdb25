//! Reads values of at most eight bytes as integers.

use arrow::array::{Array, ArrayData};
use arrow::datatypes::{ArrowNativeType, DataType};

/// Applies `of` to the bits of each value, with zeros above them; the bits of a NULL are arbitrary. Returns `None`
/// for intervals, and for types that are not primitive or have more than eight bytes.
pub(super) fn map_each<T>(column: &dyn Array, of: impl Fn(u64) -> T) -> Option<Vec<T>> {
    // An interval of days and milliseconds is aligned to four bytes, and so cannot be read as an integer of eight.
    if matches!(column.data_type(), DataType::Interval(_)) {
        return None;
    }
    let width = column.data_type().primitive_width().filter(|width| *width <= 8)?;
    // The buffer of an array may have bytes behind the last value; that of a slice has none.
    let data = column.slice(0, column.len()).to_data();
    match width {
        1 => Some(map_width::<u8, T>(&data, of)),
        2 => Some(map_width::<u16, T>(&data, of)),
        4 => Some(map_width::<u32, T>(&data, of)),
        8 => Some(map_width::<u64, T>(&data, of)),
        _ => None,
    }
}

fn map_width<W: ArrowNativeType + Into<u64>, T>(data: &ArrayData, of: impl Fn(u64) -> T) -> Vec<T> {
    data.buffer::<W>(0).iter().map(|bits| of((*bits).into())).collect()
}
