//! Numbers for distinct tuples.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, LargeBinaryBuilder, new_null_array};
use arrow::compute::concat;
use arrow::datatypes::DataType;
use arrow::row::{Row, RowConverter, SortField};
use datafusion::error::{DataFusionError, Result};
use hashbrown::{DefaultHashBuilder, HashTable};

use super::listed_classes::damaged;
use crate::engine::functions::canonical;

/// The number of a tuple whose only column is NULL.
pub(super) const NULL: u32 = u32::MAX;

/// Numbers for the distinct tuples of some columns, in the order of arrival. Tuples are in Arrow's
/// row format: equal tuples have equal bytes, and there is one zero and one NaN.
pub(super) struct Interned {
    types: Vec<DataType>,
    /// `None` without columns.
    converter: Option<RowConverter>,
    tuples: Tuples,
}

#[derive(Default)]
struct Tuples {
    /// The tuples' bytes, concatenated.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Tuples {
    fn get(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start..*self.ends.get(number)?)
    }

    fn number(&mut self, tuple: &[u8]) -> Result<u32> {
        let hash = self.hasher.hash_one(tuple);
        if let Some(known) = self.index.find(hash, |number| self.get(*number) == Some(tuple)) {
            return Ok(*known);
        }
        let number = u32::try_from(self.ends.len()).ok().filter(|number| *number < NULL);
        let number = number.ok_or_else(|| {
            DataFusionError::ResourcesExhausted("more than 4,294,967,294 distinct tuples".into())
        })?;
        self.bytes.extend_from_slice(tuple);
        self.ends.push(self.bytes.len());
        let Self { bytes, ends, index, hasher } = self;
        let tuple_of = |number: u32| {
            let end = ends[number as usize];
            let start = if number == 0 { 0 } else { ends[number as usize - 1] };
            &bytes[start..end]
        };
        index.insert_unique(hash, number, |number| hasher.hash_one(tuple_of(*number)));
        Ok(number)
    }
}

impl Interned {
    /// Creates an empty set of tuples with columns of these types.
    pub(super) fn new(types: &[DataType]) -> Result<Self> {
        let fields = || types.iter().cloned().map(SortField::new).collect();
        let converter = if types.is_empty() { None } else { Some(RowConverter::new(fields())?) };
        Ok(Self { types: types.to_vec(), converter, tuples: Tuples::default() })
    }

    pub(super) fn types(&self) -> &[DataType] {
        &self.types
    }

    pub(super) fn has_columns(&self) -> bool {
        self.converter.is_some()
    }

    /// Returns the number of each row's tuple: [`NULL`] where the only column is NULL, 0 where
    /// `filter` drops the row. Empty without columns.
    pub(super) fn numbers(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<u32>> {
        let Some(converter) = &self.converter else { return Ok(Vec::new()) };
        let columns: Vec<ArrayRef> = columns.iter().map(canonical).collect();
        let nulls = if let [one] = columns.as_slice() { one.logical_nulls() } else { None };
        let number = |(row, tuple): (usize, Row<'_>)| {
            if !passes(filter, row) {
                return Ok(0);
            }
            match &nulls {
                Some(nulls) if nulls.is_null(row) => Ok(NULL),
                _ => self.tuples.number(tuple.data()),
            }
        };
        converter.convert_columns(&columns)?.iter().enumerate().map(number).collect()
    }

    /// Returns the number of a tuple, adding it if it is new.
    pub(super) fn number(&mut self, tuple: &[u8]) -> Result<u32> {
        self.tuples.number(tuple)
    }

    /// Returns the numbers of the tuples in a list of a state, which [`tuples`](Self::tuples) made.
    /// Empty without columns, for which a state has no list.
    pub(super) fn numbers_of_state<'a>(
        &mut self,
        lists: &mut impl Iterator<Item = &'a ArrayRef>,
    ) -> Result<Vec<u32>> {
        if !self.has_columns() {
            return Ok(Vec::new());
        }
        let list = lists.next().and_then(|list| list.as_list_opt::<i32>()).ok_or_else(damaged)?;
        let tuples = list.values().as_binary_opt::<i64>().ok_or_else(damaged)?;
        tuples.iter().map(|tuple| tuple.map_or(Ok(NULL), |tuple| self.number(tuple))).collect()
    }

    /// Returns the tuples of these numbers.
    pub(super) fn tuples(&self, numbers: impl ExactSizeIterator<Item = u32>) -> ArrayRef {
        let mut tuples = LargeBinaryBuilder::with_capacity(numbers.len(), 0);
        numbers.for_each(|number| tuples.append_option(self.tuple(number)));
        Arc::new(tuples.finish())
    }

    /// Returns the tuple of a number; `None` for [`NULL`].
    pub(super) fn tuple(&self, number: u32) -> Option<&[u8]> {
        self.tuples.get(number)
    }

    /// Returns the number of distinct tuples.
    pub(super) fn len(&self) -> usize {
        self.tuples.ends.len()
    }

    /// Returns the place of each tuple in the order of the columns' values.
    pub(super) fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..).take(self.len()).collect();
        order.sort_unstable_by_key(|number| self.tuple(*number));
        let mut ranks = vec![0; order.len()];
        (0..).zip(order).for_each(|(rank, number)| ranks[number as usize] = rank);
        ranks
    }

    /// Returns the values of the only column in their order, after a NULL.
    pub(super) fn ordered_values(&self) -> Result<Option<ArrayRef>> {
        let (Some(converter), [of]) = (&self.converter, self.types.as_slice()) else { return Ok(None) };
        let mut tuples: Vec<&[u8]> = (0..).take(self.len()).filter_map(|number| self.tuple(number)).collect();
        tuples.sort_unstable();
        let parser = converter.parser();
        let rows = tuples.into_iter().map(|tuple| parser.parse(tuple));
        let values = converter.convert_rows(rows)?.pop();
        let null = new_null_array(of, 1);
        values.map(|values| Ok(concat(&[&null, &values])?)).transpose()
    }

    /// Removes and returns all tuples.
    pub(super) fn take(&mut self) -> Before {
        Before(std::mem::take(&mut self.tuples))
    }

    /// Returns the new number of the tuple that had this number before.
    pub(super) fn again(&mut self, before: &Before, number: u32) -> Result<u32> {
        before.0.get(number).map_or(Ok(number), |tuple| self.tuples.number(tuple))
    }

    /// Returns the memory used, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let converter = self.converter.as_ref().map_or(0, RowConverter::size);
        let Tuples { bytes, ends, index, .. } = &self.tuples;
        converter + bytes.capacity() + ends.capacity() * size_of::<usize>() + index.allocation_size()
    }
}

/// The tuples that [`Interned::take`] removed.
pub(super) struct Before(Tuples);

/// Returns whether `filter` keeps a row.
pub(super) fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}
