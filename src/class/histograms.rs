//! How often each value of a sensitive column occurs in each class.

use crate::model::ValueCount;

/// The number of rows or individuals of each class that have each value of a sensitive column,
/// ordered by value, NULL first.
#[derive(Default, Clone)]
pub(super) struct Histograms {
    /// The start of each class's counts, then the end of the last one's.
    pub(super) starts: Vec<usize>,
    pub(super) counts: Vec<ValueCount>,
    /// All value numbers are below this.
    pub(super) values: u32,
}

impl Histograms {
    /// Returns the counts of one class.
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
