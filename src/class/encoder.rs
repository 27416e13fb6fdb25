//! Encodes the distinct values of a column of any type through Arrow's row format, whose bytes sort
//! like the values, NULL first.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

use arrow::array::ArrayRef;
use arrow::row::{Row, RowConverter, Rows, SortField};
use hashbrown::{DefaultHashBuilder, HashTable};

use super::{Budget, Held, too_many_classes};
use crate::error::{Error, Result};

/// Gives each distinct value a code in the order of arrival.
#[derive(Default)]
struct Interner {
    known: Option<(RowConverter, Rows)>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// The codes of one column's values, shared by all threads that encode them.
#[derive(Clone)]
pub struct Encoder(Arc<Mutex<(Interner, Held)>>);

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder(..)")
    }
}

impl Encoder {
    /// Creates an empty encoder whose memory comes out of `budget`.
    pub fn new(budget: &Arc<dyn Budget>) -> Self {
        Self(Arc::new(Mutex::new((Interner::default(), Held::new(budget)))))
    }

    /// Returns the code of each value, and adds a code for each new value.
    ///
    /// # Errors
    /// A data error when memory runs out or the type cannot be grouped.
    pub fn code(&self, values: &ArrayRef) -> Result<Vec<u32>> {
        let mut coder = self.0.lock().map_err(|_| Error::internal("encoder: a thread panicked"))?;
        let (interner, held) = &mut *coder;
        let codes = interner.add(values)?;
        held.at_least(interner.bytes())?;
        Ok(codes)
    }

    /// Returns the code of each value, `None` for an unknown value.
    ///
    /// # Errors
    /// An internal error when the values are of another type.
    pub fn find(&self, values: &ArrayRef) -> Result<Vec<Option<u32>>> {
        let coder = self.0.lock().map_err(|_| Error::internal("encoder: a thread panicked"))?;
        coder.0.find(values)
    }

    /// Returns the distinct values in code order; `None` if no value was encoded. Leaves the encoder
    /// empty; it holds the memory of the values until it is dropped.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn finish(&self) -> Result<Option<ArrayRef>> {
        self.finish_with(0, |interner| {
            let Some((converter, distinct)) = interner.known else { return Ok(None) };
            Ok(Some((values_of(&converter, distinct.iter())?, Vec::new())))
        })
        .map(|finished| finished.map(|(values, _)| values))
    }

    /// Returns the distinct values in order, NULL first, and the position of each code in that
    /// order; `None` if no value was encoded. Leaves the encoder empty; it holds the memory of the
    /// values until it is dropped.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn finish_sorted(&self) -> Result<Option<(ArrayRef, Vec<u32>)>> {
        self.finish_with(2 * size_of::<u32>(), Interner::sorted)
    }

    /// Empties the encoder by `finish`, which takes `each` bytes per value besides the values.
    fn finish_with(
        &self,
        each: usize,
        finish: impl FnOnce(Interner) -> Result<Option<(ArrayRef, Vec<u32>)>>,
    ) -> Result<Option<(ArrayRef, Vec<u32>)>> {
        let mut coder = self.0.lock().map_err(|_| Error::internal("encoder: a thread panicked"))?;
        let (interner, held) = &mut *coder;
        let (rows, bytes) =
            interner.known.as_ref().map_or((0, 0), |(_, rows)| (rows.num_rows(), rows.size()));
        held.at_least(interner.bytes() + bytes + rows * each)?;
        let finished = finish(std::mem::take(interner))?;
        held.exactly(finished.as_ref().map_or(0, |(values, _)| values.get_array_memory_size()))?;
        Ok(finished)
    }
}

impl Interner {
    fn add(&mut self, values: &ArrayRef) -> Result<Vec<u32>> {
        let known = match self.known.take() {
            Some(known) => known,
            None => {
                let data_type = values.data_type();
                let converter = RowConverter::new(vec![SortField::new(data_type.clone())])
                    .map_err(|_| Error::data(format!("values of type {data_type} cannot be grouped")))?;
                let distinct = converter.empty_rows(0, 0);
                (converter, distinct)
            }
        };
        let (converter, distinct) = self.known.insert(known);
        let rows = converted(converter, values)?;
        let mut codes = Vec::with_capacity(rows.num_rows());
        for row in &rows {
            let hash = self.hasher.hash_one(row.data());
            let found = self.index.find(hash, |at| distinct.row(*at as usize) == row);
            let code = match found {
                Some(code) => *code,
                None => {
                    let code = u32::try_from(distinct.num_rows()).map_err(|_| too_many_classes())?;
                    distinct.push(row);
                    let hasher = &self.hasher;
                    self.index
                        .insert_unique(hash, code, |at| hasher.hash_one(distinct.row(*at as usize).data()));
                    code
                }
            };
            codes.push(code);
        }
        Ok(codes)
    }

    fn find(&self, values: &ArrayRef) -> Result<Vec<Option<u32>>> {
        let Some((converter, distinct)) = &self.known else { return Ok(vec![None; values.len()]) };
        let rows = converted(converter, values)?;
        let find = |row: Row<'_>| {
            let hash = self.hasher.hash_one(row.data());
            self.index.find(hash, |at| distinct.row(*at as usize) == row).copied()
        };
        Ok(rows.iter().map(find).collect())
    }

    fn bytes(&self) -> usize {
        let distinct = self.known.as_ref().map_or(0, |(_, distinct)| distinct.size());
        distinct + self.index.allocation_size()
    }

    fn sorted(self) -> Result<Option<(ArrayRef, Vec<u32>)>> {
        let Some((converter, distinct)) = self.known else { return Ok(None) };
        let mut order: Vec<u32> = (0..u32::try_from(distinct.num_rows()).map_err(Error::internal)?).collect();
        order.sort_unstable_by(|a, b| distinct.row(*a as usize).cmp(&distinct.row(*b as usize)));
        let ranks = ranks(&order);
        let sorted = order.iter().map(|code| distinct.row(*code as usize));
        Ok(Some((values_of(&converter, sorted)?, ranks)))
    }
}

/// Returns the position of each code in an order of all codes.
pub(super) fn ranks(order: &[u32]) -> Vec<u32> {
    let mut ranks = vec![0u32; order.len()];
    for (rank, code) in (0u32..).zip(order) {
        ranks[*code as usize] = rank;
    }
    ranks
}

fn values_of<'a>(converter: &RowConverter, rows: impl Iterator<Item = Row<'a>>) -> Result<ArrayRef> {
    let columns = converter.convert_rows(rows).map_err(|_| Error::internal("encoder: codes have no values"));
    columns?.pop().ok_or_else(|| Error::internal("encoder: rows without a column"))
}

fn converted(converter: &RowConverter, values: &ArrayRef) -> Result<Rows> {
    converter
        .convert_columns(std::slice::from_ref(values))
        .map_err(|_| Error::internal("encoder: a column changed its type between batches"))
}
