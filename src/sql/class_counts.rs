//! The state of an aggregate over classes: how many rows each class has.

use std::mem::size_of_val;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, LargeBinaryArray, UInt64Array};
use arrow::datatypes::{DataType, UInt64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::{DataFusionError, Result};
use hashbrown::HashMap;

use crate::release::functions::canonical;

/// A class is its quasi-identifiers in Arrow's row format: equal bytes for equal tuples, NULL a value like any
/// other, one zero and one NaN.
pub(super) struct ClassCounts {
    converter: RowConverter,
    sizes: HashMap<Box<[u8]>, u64>,
    key_bytes: usize,
}

impl ClassCounts {
    /// No class yet, of quasi-identifiers of these types.
    pub(super) fn new(types: impl Iterator<Item = DataType>) -> Result<Self> {
        let converter = RowConverter::new(types.map(SortField::new).collect())?;
        Ok(Self { converter, sizes: HashMap::new(), key_bytes: 0 })
    }

    /// Counts rows.
    pub(super) fn update(&mut self, quasi: &[ArrayRef]) -> Result<()> {
        let columns: Vec<ArrayRef> = quasi.iter().map(canonical).collect();
        let rows = self.converter.convert_columns(&columns)?;
        for row in &rows {
            self.add(row.data(), 1);
        }
        Ok(())
    }

    fn add(&mut self, class: &[u8], rows: u64) {
        match self.sizes.get_mut(class) {
            Some(size) => *size += rows,
            None => {
                self.key_bytes += class.len();
                self.sizes.insert(class.into(), rows);
            }
        }
    }

    /// The sizes of the classes, in no order.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> + '_ {
        self.sizes.values().copied()
    }

    /// The bytes this takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self) + self.converter.size() + self.sizes.allocation_size() + self.key_bytes
    }

    /// The types of [`Self::state`]: lists of classes and of their sizes, of equal length.
    pub(super) fn state_types() -> [DataType; 2] {
        let list =
            |items| DataType::LargeList(Arc::new(arrow::datatypes::Field::new_list_field(items, true)));
        [list(DataType::LargeBinary), list(DataType::UInt64)]
    }

    /// The counts for [`Self::merge`] elsewhere.
    pub(super) fn state(&self) -> Vec<ScalarValue> {
        let list = |items: ArrayRef| SingleRowListArrayBuilder::new(items).build_large_list_scalar();
        let classes = LargeBinaryArray::from_iter_values(self.sizes.keys());
        let sizes = UInt64Array::from_iter_values(self.sizes());
        vec![list(Arc::new(classes)), list(Arc::new(sizes))]
    }

    /// Adds counts that were made elsewhere.
    pub(super) fn merge(&mut self, states: &[ArrayRef]) -> Result<()> {
        let damaged = || DataFusionError::Internal("the state of an aggregate over classes".into());
        let [classes, sizes] = states else { return Err(damaged()) };
        let classes = classes.as_list_opt::<i64>().ok_or_else(damaged)?;
        let sizes = sizes.as_list_opt::<i64>().ok_or_else(damaged)?;
        for (classes, sizes) in classes.iter().zip(sizes.iter()) {
            let (Some(classes), Some(sizes)) = (classes, sizes) else { continue };
            let classes = classes.as_binary_opt::<i64>().ok_or_else(damaged)?;
            let sizes = sizes.as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?;
            for (class, size) in classes.iter().zip(sizes.values()) {
                self.add(class.ok_or_else(damaged)?, *size);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, StringArray};

    use super::*;

    fn columns(numbers: &[Option<f64>], texts: &[Option<&str>]) -> [ArrayRef; 2] {
        [Arc::new(Float64Array::from(numbers.to_vec())), Arc::new(StringArray::from(texts.to_vec()))]
    }

    fn counts() -> ClassCounts {
        ClassCounts::new([DataType::Float64, DataType::Utf8].into_iter()).unwrap()
    }

    fn sorted(counts: &ClassCounts) -> Vec<u64> {
        let mut sizes: Vec<u64> = counts.sizes().collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn null_zero_and_nan_are_one_value_each() {
        let mut counts = counts();
        let numbers = [None, None, Some(0.0), Some(-0.0), Some(f64::NAN), Some(-f64::NAN)];
        counts.update(&columns(&numbers, &[None, Some(""), None, None, None, None])).unwrap();
        assert_eq!(sorted(&counts), [1, 1, 2, 2]);
    }

    #[test]
    fn states_merge_to_what_one_would_have_counted() {
        let texts = ["a", "b", "a", "a", "c", "b"].map(Some);
        let mut whole = counts();
        whole.update(&columns(&[None; 6], &texts)).unwrap();
        let mut merged = counts();
        for part in texts.chunks(2).chain([&[][..]]) {
            let mut counts = counts();
            counts.update(&columns(&vec![None; part.len()], part)).unwrap();
            let state: Vec<ArrayRef> = counts.state().iter().map(|s| s.to_array().unwrap()).collect();
            let types: Vec<DataType> = state.iter().map(|s| s.data_type().clone()).collect();
            assert_eq!(types, ClassCounts::state_types());
            merged.merge(&state).unwrap();
        }
        assert_eq!(sorted(&merged), sorted(&whole));
        assert_eq!(sorted(&whole), [1, 2, 3]);
        assert!(merged.merge(&[]).is_err());
    }

    #[test]
    fn bytes_grow_with_the_classes() {
        let mut counts = counts();
        let texts: Vec<String> = (0..1000).map(|n| format!("{n:0100}")).collect();
        let texts: Vec<Option<&str>> = texts.iter().map(|text| Some(text.as_str())).collect();
        let empty = counts.bytes();
        counts.update(&columns(&vec![None; 1000], &texts)).unwrap();
        let full = counts.bytes();
        assert!(full - empty > 1000 * (100 + 16 + 8), "{}", full - empty);
        counts.update(&columns(&vec![None; 1000], &texts)).unwrap();
        assert_eq!(counts.bytes(), full);
    }
}
