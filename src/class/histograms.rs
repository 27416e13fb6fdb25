//! How often each value of a sensitive column occurs in each class.

use super::Held;
use super::grouping::Grouping;
use crate::error::Result;
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

    /// Returns the bytes of the counts of so many classes, so many in all.
    pub(super) fn bytes_of(classes: usize, counts: usize) -> usize {
        (classes + 1) * size_of::<usize>() + counts * size_of::<ValueCount>()
    }

    pub(super) fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<usize>() + self.counts.capacity() * size_of::<ValueCount>()
    }

    /// Lists the counts of each group of sources; `of` has those of one source, and all of them
    /// together are at most `most`. All value numbers are below `values`.
    pub(super) fn gathered<I: Iterator<Item = ValueCount>>(
        groups: &Grouping,
        values: u32,
        most: usize,
        of: impl Fn(u32) -> I,
    ) -> Self {
        let mut starts = Vec::with_capacity(groups.classes() + 1);
        let mut counts: Vec<ValueCount> = Vec::with_capacity(most.min(4 * groups.classes()));
        for class in 0..groups.classes() {
            let start = counts.len();
            starts.push(start);
            let members = groups.of(class);
            members.iter().for_each(|member| counts.extend(of(*member)));
            if members.len() > 1 {
                counts[start..].sort_unstable_by_key(|count| count.value);
                let mut last = start;
                for at in start + 1..counts.len() {
                    let count = counts[at];
                    if counts[last].value == count.value {
                        counts[last].count += count.count;
                    } else {
                        last += 1;
                        counts[last] = count;
                    }
                }
                counts.truncate(last + 1);
            }
        }
        starts.push(counts.len());
        counts.shrink_to_fit();
        Self { starts, counts, values }
    }

    /// Returns the cells of a table of all merged classes and values, if that is small enough to
    /// merge through it.
    pub(super) fn cells(&self, classes: usize) -> Option<usize> {
        let cells = classes.checked_mul(self.width())?;
        (cells <= 4 * self.counts.len() + 4096).then_some(cells)
    }

    /// NULL has a column of its own.
    fn width(&self) -> usize {
        self.values as usize + 1
    }

    /// Returns the histograms of the merged classes, through a table of `cells` cells, and reserves
    /// their memory.
    pub(super) fn regrouped_in_a_table(
        &self,
        target: &[u32],
        classes: usize,
        cells: usize,
        held: &mut Held,
    ) -> Result<Self> {
        let most = Self::bytes_of(classes, self.counts.len().min(cells)) + cells * size_of::<u64>();
        held.adding(most, || Ok(self.in_a_table(target, classes)), Self::bytes)
    }

    /// Returns how often each value occurs in all classes.
    pub(super) fn of_all(&self) -> Vec<ValueCount> {
        self.in_a_table(&vec![0; self.starts.len().saturating_sub(1)], 1).counts
    }

    fn in_a_table(&self, target: &[u32], classes: usize) -> Self {
        let width = self.width();
        let mut table = vec![0u64; classes * width];
        for (member, class) in target.iter().enumerate() {
            let row = &mut table[*class as usize * width..][..width];
            for count in self.of(member) {
                row[count.value.map_or(0, |value| value as usize + 1)] += count.count;
            }
        }
        let mut starts = Vec::with_capacity(classes + 1);
        let mut counts = Vec::with_capacity(self.counts.len().min(table.len()));
        for row in table.chunks_exact(width) {
            starts.push(counts.len());
            let null = row.first().map(|count| (None, *count));
            let values = (0u32..).zip(row.iter().skip(1)).map(|(value, count)| (Some(value), *count));
            let there = null.into_iter().chain(values).filter(|(_, count)| *count > 0);
            counts.extend(there.map(|(value, count)| ValueCount { value, count }));
        }
        starts.push(counts.len());
        counts.shrink_to_fit();
        Self { starts, counts, values: self.values }
    }

    /// Returns the histograms of the merged classes, one class after the other, and reserves their
    /// memory.
    pub(super) fn regrouped_by_members(&self, groups: &Grouping, held: &mut Held) -> Result<Self> {
        let of = |member: u32| self.of(member as usize).iter().copied();
        let most = Self::bytes_of(groups.classes(), self.counts.len());
        let make = || Ok(Self::gathered(groups, self.values, self.counts.len(), of));
        held.adding(most, make, Self::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::held::tests::counting;

    #[test]
    fn histograms_are_merged_in_the_order_of_values() {
        let of = |value, count| ValueCount { value, count };
        let finer = Histograms {
            starts: vec![0, 2, 3, 5],
            counts: vec![of(None, 1), of(Some(4), 2), of(Some(4), 5), of(Some(0), 1), of(Some(9), 1)],
            values: 10,
        };
        let target = [1, 0, 1];
        let (counting, budget) = counting(usize::MAX);
        let held = &mut Held::new(&budget);
        let cells = finer.cells(2).unwrap();
        let both = [
            finer.regrouped_by_members(&Grouping::new(&target, 2), held).unwrap(),
            finer.regrouped_in_a_table(&target, 2, cells, held).unwrap(),
        ];
        for coarser in &both {
            assert_eq!(coarser.of(0), [of(Some(4), 5)]);
            assert_eq!(coarser.of(1), [of(None, 1), of(Some(0), 1), of(Some(4), 2), of(Some(9), 1)]);
        }
        assert_eq!(counting.used(), both.iter().map(Histograms::bytes).sum::<usize>());
        assert_eq!(finer.of_all(), [of(None, 1), of(Some(0), 1), of(Some(4), 7), of(Some(9), 1)]);
        let wide = Histograms { values: 100_000, ..finer };
        assert_eq!((wide.cells(1), cells), (None, 22));
    }
}
