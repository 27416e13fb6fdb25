//! Distinct values to codes, for any column type, through Arrow's row format (whose bytes sort like the
//! values, NULL first).

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use crate::error::{Error, Result};

/// Gives each distinct value a code in the order of arrival.
pub(super) struct Interner {
    converter: RowConverter,
    distinct: Rows,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Interner {
    pub(super) fn new(data_type: &DataType) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(data_type.clone())])
            .map_err(|_| Error::data(format!("values of type {data_type} cannot be grouped")))?;
        let distinct = converter.empty_rows(0, 0);
        Ok(Self { converter, distinct, index: HashTable::new(), hasher: DefaultHashBuilder::default() })
    }

    /// Appends the code of each value to `codes`.
    pub(super) fn add(&mut self, values: &ArrayRef, codes: &mut Vec<u32>) -> Result<()> {
        let rows = self
            .converter
            .convert_columns(std::slice::from_ref(values))
            .map_err(|_| Error::internal("a column changed its type between batches"))?;
        codes.reserve(rows.num_rows());
        for row in &rows {
            let hash = self.hasher.hash_one(row.data());
            let distinct = &self.distinct;
            let known = self.index.find(hash, |at| distinct.row(*at as usize) == row);
            let code = match known {
                Some(code) => *code,
                None => {
                    let code =
                        u32::try_from(self.distinct.num_rows()).map_err(|_| super::too_many_classes())?;
                    self.distinct.push(row);
                    let (distinct, hasher) = (&self.distinct, &self.hasher);
                    self.index
                        .insert_unique(hash, code, |at| hasher.hash_one(distinct.row(*at as usize).data()));
                    code
                }
            };
            codes.push(code);
        }
        Ok(())
    }

    /// The bytes this takes.
    pub(super) fn bytes(&self) -> usize {
        self.distinct.size() + self.index.capacity() * size_of::<u32>()
    }

    /// The distinct values in their order, NULL first, and for each code of arrival its place in that order.
    pub(super) fn finish(self) -> Result<(ArrayRef, Vec<u32>)> {
        let mut order: Vec<u32> =
            (0..u32::try_from(self.distinct.num_rows()).map_err(Error::internal)?).collect();
        order.sort_unstable_by(|a, b| self.distinct.row(*a as usize).cmp(&self.distinct.row(*b as usize)));
        let mut ranks = vec![0u32; order.len()];
        for (rank, code) in (0u32..).zip(&order) {
            ranks[*code as usize] = rank;
        }
        let sorted = order.iter().map(|code| self.distinct.row(*code as usize));
        let mut columns =
            self.converter.convert_rows(sorted).map_err(|_| Error::internal("codes back to values"))?;
        let values = columns.pop().ok_or_else(|| Error::internal("no column in the row format"))?;
        Ok((values, ranks))
    }
}
