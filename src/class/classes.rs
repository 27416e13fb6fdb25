//! The classes of one node, or released ones: packed codes, rows, and the frequency of each sensitive value.

use super::Held;
use super::histograms::Histograms;
use super::individuals::{ClassIndividuals, IndividualsByValue, Marked};
use super::packing::Packing;
use crate::error::Result;
use crate::model::{Distribution, ValueCount};

/// The classes of one node in arbitrary order, or released classes in theirs. Their memory comes
/// out of the table's budget.
pub struct Classes {
    /// One run of words per class: its key, then its number of rows.
    pub(super) entries: Vec<u64>,
    pub(super) words: usize,
    /// One entry per sensitive column of the table.
    pub(super) sensitive: Vec<Histograms>,
    /// The individuals of every class, if individuals are counted.
    pub(super) members: Option<ClassIndividuals>,
    pub(super) held: Held,
}

impl std::fmt::Debug for Classes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Classes({})", self.len())
    }
}

impl Classes {
    /// Returns the number of classes.
    pub fn len(&self) -> usize {
        self.entries.len() / (self.words + 1)
    }

    /// Returns whether there are no classes.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of rows of each class.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.entries.chunks_exact(self.words + 1).map(|entry| entry[self.words])
    }

    /// Returns the key of each class.
    pub(super) fn keys(&self) -> impl ExactSizeIterator<Item = &[u64]> + '_ {
        self.entries.chunks_exact(self.words + 1).map(|entry| &entry[..self.words])
    }

    /// Returns the number of rows of one class.
    pub fn rows_of(&self, class: usize) -> u64 {
        self.entries[class * (self.words + 1) + self.words]
    }

    /// Returns the size of a class with `rows` rows: its individuals, or `rows` if none are
    /// counted.
    pub fn size(&self, class: usize, rows: u64) -> u64 {
        self.members.as_ref().map_or(rows, |members| members.individuals.of(class).len() as u64)
    }

    /// Returns the individuals of several classes together, or their rows if no individuals are counted.
    pub(crate) fn size_of(&self, classes: &[u32]) -> u64 {
        let Some(members) = &self.members else {
            return classes.iter().map(|class| self.rows_of(*class as usize)).sum();
        };
        let mut marked = Marked::none(members.individuals.all() as u64);
        classes.iter().for_each(|class| marked.mark(members.individuals.of(*class as usize)));
        marked.count()
    }

    /// Returns the numbers of the individuals of a class, each once, in arbitrary order; `None` if
    /// rows are counted.
    pub fn individuals(&self, class: usize) -> Option<&[u32]> {
        self.members.as_ref().map(|members| members.individuals.of(class))
    }

    /// Returns the number of individuals of all classes together; 0 if rows are counted.
    pub(crate) fn all_individuals(&self) -> usize {
        self.members.as_ref().map_or(0, |members| members.individuals.all())
    }

    /// Returns how many individuals of a class (rows, if none are counted) have each value of a
    /// sensitive column, ordered by value, NULL first. `column` is the position among the table's
    /// sensitive columns.
    pub fn by_value(&self, class: usize, column: usize) -> &[ValueCount] {
        match &self.members {
            Some(members) => members.by_value.get(column).map_or(&[], |by_value| by_value.counts.of(class)),
            None => self.sensitive(class, column),
        }
    }

    /// Returns how many individuals of all classes (rows, if none are counted) have each value of a
    /// sensitive column. Where individuals are counted, there are so many of them.
    pub(super) fn distribution(&self, column: usize, individuals: u64) -> Distribution {
        if let Some(members) = &self.members {
            let values = members.by_value.get(column).map_or(Vec::new(), IndividualsByValue::counts_of_all);
            return Distribution::of_individuals(values, individuals);
        }
        let values = self.sensitive.get(column).map_or(Vec::new(), Histograms::of_all);
        Distribution::of_rows(values)
    }

    /// Returns how many rows of a class have each value of a sensitive column, ordered by value,
    /// NULL first. `column` is the position among the table's sensitive columns.
    pub fn sensitive(&self, class: usize, column: usize) -> &[ValueCount] {
        self.sensitive.get(column).map_or(&[], |histograms| histograms.of(class))
    }

    /// Returns the label code of a class in one column.
    pub(super) fn code(&self, class: usize, column: usize, packing: &Packing) -> u32 {
        packing.field(column).get(&self.entries[class * (self.words + 1)..][..self.words])
    }

    /// Reserves the memory of these classes, no more and no less.
    pub(super) fn account(&mut self) -> Result<()> {
        let bytes = self.bytes();
        self.held.exactly(bytes)
    }

    /// Returns the bytes that the classes take.
    pub fn bytes(&self) -> usize {
        let sensitive: usize = self.sensitive.iter().map(Histograms::bytes).sum();
        let members = self.members.as_ref().map_or(0, ClassIndividuals::bytes);
        self.entries.capacity() * size_of::<u64>() + sensitive + members
    }
}
