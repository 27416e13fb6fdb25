//! The classes of one node: packed codes, rows, and how often each sensitive value occurs.

use super::Held;
use super::individuals::ClassIndividuals;
use super::packing::Packing;
use crate::model::ValueCount;

/// The classes of one node, in no order that means anything. The memory comes out of the table's budget.
pub struct Classes {
    /// One stretch a class: the words of its key, then its rows.
    pub(super) entries: Vec<u64>,
    pub(super) words: usize,
    /// One for each sensitive column of the table.
    pub(super) sensitive: Vec<Histograms>,
    /// Where individuals are counted.
    pub(super) people: Option<ClassIndividuals>,
    pub(super) held: Held,
}

/// For each class how many rows or individuals have each value of a sensitive column, values in their order, NULL
/// first.
#[derive(Default, Clone)]
pub(super) struct Histograms {
    /// Where each class's counts begin, and where the last one's end.
    pub(super) starts: Vec<usize>,
    pub(super) counts: Vec<ValueCount>,
    /// The numbers of values are below this.
    pub(super) values: u32,
}

impl std::fmt::Debug for Classes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Classes({})", self.len())
    }
}

impl Classes {
    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.entries.len() / (self.words + 1)
    }

    /// Whether there is no class.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The rows of each class.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.entries.chunks_exact(self.words + 1).map(|entry| entry[self.words])
    }

    /// The size of a class with so many rows: its individuals, or the rows where none are counted.
    pub fn size(&self, class: usize, rows: u64) -> u64 {
        self.people.as_ref().map_or(rows, |people| people.individuals.of(class).len() as u64)
    }

    /// The numbers of the individuals of a class, each once, in no order; `None` where rows are counted.
    pub fn individuals(&self, class: usize) -> Option<&[u32]> {
        self.people.as_ref().map(|people| people.individuals.of(class))
    }

    /// How many individuals (rows, where none are counted) of a class have each value of a sensitive column (by
    /// its place among the table's), values in their order, NULL first.
    pub fn by_value(&self, class: usize, column: usize) -> &[ValueCount] {
        match &self.people {
            Some(people) => people.by_value.get(column).map_or(&[], |by_value| by_value.counts.of(class)),
            None => self.sensitive(class, column),
        }
    }

    /// How many rows of a class have each value of a sensitive column (by its place among the table's), values in
    /// their order, NULL first.
    pub fn sensitive(&self, class: usize, column: usize) -> &[ValueCount] {
        self.sensitive.get(column).map_or(&[], |histograms| histograms.of(class))
    }

    /// The label code of a class in one column.
    pub(super) fn code(&self, class: usize, column: usize, packing: &Packing) -> u32 {
        packing.field(column).get(&self.entries[class * (self.words + 1)..][..self.words])
    }

    /// The bytes this takes.
    pub fn bytes(&self) -> usize {
        let sensitive: usize = self.sensitive.iter().map(Histograms::bytes).sum();
        let people = self.people.as_ref().map_or(0, ClassIndividuals::bytes);
        self.entries.capacity() * size_of::<u64>() + sensitive + people
    }
}

impl Histograms {
    /// The counts of one class.
    pub(super) fn of(&self, class: usize) -> &[ValueCount] {
        match self.starts.get(class..class + 2) {
            Some([from, to]) => &self.counts[*from..*to],
            _ => &[],
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<usize>() + self.counts.capacity() * size_of::<ValueCount>()
    }
}
