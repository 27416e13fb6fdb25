//! Counts rows in a table that grows.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::counted::{Counted, RowCount};

/// The most rows for which an empty table keeps its memory.
const KEPT: usize = 1 << 16;

/// The number of rows of each class, or of each of its values.
pub(super) struct CountTable<const VALUES: usize, N: RowCount>(HashTable<Counted<VALUES, N>>);

impl<const VALUES: usize, N: RowCount> Default for CountTable<VALUES, N> {
    fn default() -> Self {
        Self(HashTable::new())
    }
}

/// Returns the hash that the table looks at. Rows of a part may agree in some bits of their own hashes.
fn hash<const VALUES: usize, N: RowCount>(counted: &Counted<VALUES, N>) -> u64 {
    let hash = counted.hash();
    (hash ^ hash >> (u64::BITS / 2)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<const VALUES: usize, N: RowCount> CountTable<VALUES, N> {
    pub(super) fn add(&mut self, counted: Counted<VALUES, N>) {
        match self.0.entry(hash(&counted), |other| other.is_of_same(&counted), hash) {
            Entry::Occupied(mut known) => known.get_mut().add(counted),
            Entry::Vacant(place) => {
                place.insert(counted);
            }
        }
    }

    pub(super) fn add_all(&mut self, rows: impl Iterator<Item = Counted<VALUES, N>>) {
        rows.for_each(|counted| self.add(counted));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Counted<VALUES, N>> {
        self.0.iter()
    }

    /// Returns all rows, in no particular order.
    pub(super) fn into_rows(self) -> impl Iterator<Item = Counted<VALUES, N>> {
        self.0.into_iter()
    }

    /// Removes and returns all rows, in no particular order.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Counted<VALUES, N>> + '_ {
        let large = if self.0.capacity() > KEPT { std::mem::take(&mut self.0) } else { HashTable::new() };
        large.into_iter().chain(self.0.drain())
    }
}
