//! Counts the rows of classes, or of values in them, in a table of fixed size, in which one takes the place
//! of another.
//!
//! A table with few classes stays small. Where classes often take each other's places, a larger table takes
//! over. It stays if it removes many more repetitions; if not (the rows of a class lie side by side, or the
//! classes are too many), the small table, which costs less, returns for good. Where nearly no row meets
//! another one of its class, there is none.
//!
//! The places of several rows in the larger table are read before the first of these rows is added, so that
//! their cache misses overlap.

use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use super::counted::{Counted, RowCount};

/// The numbers of places of the tables are 2 to the powers of these: of classes 96 KiB and 1.5 MiB, which the
/// processor's caches hold.
const BITS: [u32; 2] = [12, 16];

/// The rows that met another one in its place after which it is decided whether a table is of use.
const PROBED: [usize; 2] = [1 << 14, 1 << 18];

/// The number of rows whose places in the larger table are read before the first of them is added.
const READ_AHEAD: usize = 64;

fn table<const VALUES: usize, N: RowCount>(size: usize) -> Vec<Counted<VALUES, N>> {
    vec![Counted::NONE; 1 << BITS[size]]
}

/// The rows of the classes that came last to each place.
pub(super) struct FirstCounts<const VALUES: usize, N: RowCount> {
    /// Empty if every row is moved on.
    places: Vec<Counted<VALUES, N>>,
    /// Which of the two tables it is.
    size: usize,
    /// The rows that came to a place that was taken, and those of them that took it.
    met: usize,
    moved: usize,
    /// The percentage of the rows that left the small table, when the larger one was tried.
    percent_from_small: Option<usize>,
    memory: MemoryReservation,
}

impl<const VALUES: usize, N: RowCount> FirstCounts<VALUES, N> {
    /// Creates an empty table, without places if there is no memory for them.
    pub(super) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        // Registered as spillable, so that it never takes more than a fair share; it hands rows on instead.
        let consumer = MemoryConsumer::new("first counts of classes").with_can_spill(true);
        let memory = consumer.register(pool);
        let mut counts =
            Self { places: Vec::new(), size: 0, met: 0, moved: 0, percent_from_small: None, memory };
        if counts.has_memory_for(0) {
            counts.places = table(0);
        }
        counts
    }

    /// Reserves memory for a table and what leaves it in the end.
    fn has_memory_for(&self, size: usize) -> bool {
        self.memory.try_resize((2 * size_of::<Counted<VALUES, N>>()) << BITS[size]).is_ok()
    }

    /// Adds rows of classes. What has to leave the table goes to `moved`.
    pub(super) fn add(
        &mut self,
        rows: impl Iterator<Item = Counted<VALUES, N>>,
        moved: &mut Vec<Counted<VALUES, N>>,
    ) {
        if self.places.is_empty() {
            moved.extend(rows);
            return;
        }
        let (before, shift) = (moved.len(), u64::BITS - BITS[self.size]);
        let place_of = |counted: &Counted<VALUES, N>| usize::try_from(counted.hash() >> shift);
        let mut rows = rows.map(|counted| (place_of(&counted).unwrap_or_default(), counted));
        if self.size == 0 {
            rows.for_each(|(at, counted)| self.add_at(at, counted, moved));
        } else {
            let mut group = Vec::with_capacity(READ_AHEAD);
            loop {
                group.extend(rows.by_ref().take(READ_AHEAD));
                if group.is_empty() {
                    break;
                }
                self.read_ahead(&group);
                group.drain(..).for_each(|(at, counted)| self.add_at(at, counted, moved));
            }
        }
        self.moved += moved.len() - before;
        if self.met >= PROBED[self.size] {
            self.change_size(moved);
        }
    }

    /// Reads the places of some rows, so that the cache misses overlap instead of following one another.
    fn read_ahead(&self, rows: &[(usize, Counted<VALUES, N>)]) {
        let bits = rows.iter().filter_map(|(at, _)| self.places.get(*at)).map(|place| place.class[0]);
        std::hint::black_box(bits.fold(0, |all, bits| all | bits));
    }

    /// Adds a row to its place.
    #[inline]
    fn add_at(&mut self, at: usize, counted: Counted<VALUES, N>, moved: &mut Vec<Counted<VALUES, N>>) {
        let Some(place) = self.places.get_mut(at).filter(|_| !counted.is_none()) else {
            moved.push(counted);
            return;
        };
        if place.is_none() {
            *place = counted;
            return;
        }
        self.met += 1;
        if place.is_of_same(&counted) {
            place.add(counted);
            return;
        }
        // In the larger table, what has to leave its place goes to the one beside it.
        let other = std::mem::replace(place, counted);
        match self.places.get_mut(at ^ 1) {
            Some(beside) if self.size == 1 => {
                let second = std::mem::replace(beside, other);
                if second.is_of_same(&counted) {
                    self.places[at].add(second);
                } else if !second.is_none() {
                    moved.push(second);
                }
            }
            _ => moved.push(other),
        }
    }

    /// Replaces or drops the table, by the percentage of the rows that left it.
    fn change_size(&mut self, moved: &mut Vec<Counted<VALUES, N>>) {
        let percent = 100 * self.moved / self.met.max(1);
        (self.met, self.moved) = (0, 0);
        match (self.percent_from_small, self.size) {
            _ if self.places.is_empty() => {}
            (None, _) if percent > 1 && self.has_memory_for(1) => {
                self.percent_from_small = Some(percent);
                self.replace(1, moved);
            }
            (None, _) => {}
            _ if percent > 90 => self.drain(moved),
            (Some(before), 1) if 4 * percent > 3 * before => self.replace(0, moved),
            _ => {}
        }
    }

    /// Begins another table.
    fn replace(&mut self, size: usize, moved: &mut Vec<Counted<VALUES, N>>) {
        self.drain(moved);
        self.places = table(size);
        self.size = size;
    }

    /// Gives back memory that neither the table needs nor what left it.
    pub(super) fn shrink(&self, moved: &[Counted<VALUES, N>]) {
        let needed = (2 * self.places.len()).max(moved.len()) * size_of::<Counted<VALUES, N>>();
        self.memory.resize(needed.min(self.memory.size()));
    }

    /// Moves everything to `moved`.
    pub(super) fn drain(&mut self, moved: &mut Vec<Counted<VALUES, N>>) {
        moved.extend(std::mem::take(&mut self.places).into_iter().filter(|place| !place.is_none()));
    }
}
