//! Counts rows in a table that grows.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::counted::{Counted, Rows};

/// The most rows for which an empty table keeps memory.
const KEPT: usize = 1 << 20;

/// The number of rows of each class, or of each of its values.
pub(super) struct Distinct<const VALUES: usize, N: Rows>(HashTable<Counted<VALUES, N>>);

impl<const VALUES: usize, N: Rows> Default for Distinct<VALUES, N> {
    fn default() -> Self {
        Self(HashTable::new())
    }
}

impl<const VALUES: usize, N: Rows> Distinct<VALUES, N> {
    fn add(&mut self, counted: Counted<VALUES, N>) {
        let is_it = |other: &Counted<VALUES, N>| other.is_of_same(&counted);
        // The highest bits may be those of a part, and a table looks at the highest and the lowest.
        let hash = |counted: &Counted<VALUES, N>| counted.hash().rotate_left(u64::BITS / 2);
        match self.0.entry(hash(&counted), is_it, hash) {
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
