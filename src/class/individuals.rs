//! The individuals of classes. An individual can have many rows, in one class or in several, so
//! sizes are not added but counted again after every roll-up.

use std::sync::Arc;

use super::histograms::Histograms;
use crate::model::ValueCount;

/// The individuals of every class, and which of them have which sensitive value. A row without an
/// individual (NULL) is in no list.
pub(super) struct ClassIndividuals {
    pub(super) individuals: MemberLists,
    /// One entry per sensitive column of the table.
    pub(super) by_value: Vec<IndividualsByValue>,
}

/// The distinct member numbers of each class, in arbitrary order.
#[derive(Default)]
pub(super) struct MemberLists {
    /// The start of each class's members, then the end of the last one's.
    starts: Vec<usize>,
    items: Vec<u32>,
    /// All member numbers are below this.
    all: u32,
}

/// The individuals of each class that have each value of a sensitive column.
pub(super) struct IndividualsByValue {
    /// The members are pairs of an individual and a value.
    pairs: MemberLists,
    /// The value of each pair; `None` is NULL.
    value_of: Arc<[Option<u32>]>,
    /// The number of individuals with each value.
    pub(super) counts: Histograms,
}

/// The source classes grouped by the class that they are merged into.
pub(super) struct Grouping {
    ends: Vec<usize>,
    sources: Vec<u32>,
}

impl Grouping {
    /// Groups the source classes; `target` maps each of them to one of `classes` classes.
    pub(super) fn new(target: &[u32], classes: usize) -> Self {
        let mut ends = vec![0usize; classes + 1];
        target.iter().for_each(|class| ends[*class as usize + 1] += 1);
        (1..=classes).for_each(|class| ends[class] += ends[class - 1]);
        let mut next = ends.clone();
        let mut sources = vec![0u32; target.len()];
        for (source, class) in (0u32..).zip(target) {
            let place = &mut next[*class as usize];
            sources[*place] = source;
            *place += 1;
        }
        Self { ends, sources }
    }

    /// Returns the number of classes.
    pub(super) fn classes(&self) -> usize {
        self.ends.len() - 1
    }

    /// Returns the source classes of a class.
    pub(super) fn of(&self, class: usize) -> &[u32] {
        &self.sources[self.ends[class]..self.ends[class + 1]]
    }
}

impl MemberLists {
    /// Stores one optional member number (below `all`) per group.
    pub(super) fn of_groups(members: impl Iterator<Item = Option<u32>>, all: u32) -> Self {
        let (mut starts, mut items) = (vec![0], Vec::new());
        for member in members {
            items.extend(member);
            starts.push(items.len());
        }
        Self { starts, items, all }
    }

    /// Returns the members of a class.
    pub(super) fn of(&self, class: usize) -> &[u32] {
        match self.starts.get(class..class + 2) {
            Some([from, to]) => &self.items[*from..*to],
            _ => &[],
        }
    }

    fn only(&self, classes: &[u32]) -> Self {
        let (mut starts, mut items) = (vec![0], Vec::new());
        for class in classes {
            items.extend_from_slice(self.of(*class as usize));
            starts.push(items.len());
        }
        Self { starts, items, all: self.all }
    }

    /// Returns an upper bound of the member numbers.
    pub(super) fn all(&self) -> usize {
        self.all as usize
    }

    /// Returns the members of the merged classes; `seen` is scratch memory.
    fn regrouped(&self, groups: &Grouping, seen: &mut Vec<u32>) -> Self {
        // `u32::MAX` stands for "never seen": there are too few classes to reach it.
        seen.clear();
        seen.resize(self.all as usize, u32::MAX);
        let mut starts = Vec::with_capacity(groups.classes() + 1);
        let mut items = Vec::new();
        for (class, number) in (0..groups.classes()).zip(0u32..) {
            starts.push(items.len());
            for source in groups.of(class) {
                for item in self.of(*source as usize) {
                    let seen = &mut seen[*item as usize];
                    if *seen != number {
                        *seen = number;
                        items.push(*item);
                    }
                }
            }
        }
        starts.push(items.len());
        items.shrink_to_fit();
        Self { starts, items, all: self.all }
    }

    fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<usize>() + self.items.capacity() * size_of::<u32>()
    }
}

impl IndividualsByValue {
    /// Stores one optional pair number per group; `value_of` has the value of each pair, below
    /// `values`.
    pub(super) fn of_groups(
        pairs: impl Iterator<Item = Option<u32>>,
        value_of: Vec<Option<u32>>,
        values: u32,
    ) -> Self {
        let all = u32::try_from(value_of.len()).unwrap_or(u32::MAX);
        let pairs = MemberLists::of_groups(pairs, all);
        let counts = Histograms { values, ..Histograms::default() };
        Self { pairs, value_of: value_of.into(), counts }.counted()
    }

    /// Returns the number and the value of each pair of an individual and a value in a class.
    pub(super) fn pairs(&self, class: usize) -> impl Iterator<Item = (u32, Option<u32>)> + '_ {
        self.pairs.of(class).iter().map(|pair| (*pair, self.value_of[*pair as usize]))
    }

    /// Returns how many individuals of all classes have each value.
    pub(super) fn counts_of_all(&self) -> Vec<ValueCount> {
        let mut values = self.value_of.to_vec();
        values.sort_unstable();
        let of_value = |same: &[Option<u32>]| ValueCount { value: same[0], count: same.len() as u64 };
        values.chunk_by(|a, b| a == b).map(of_value).collect()
    }

    /// Returns an upper bound of the numbers of pairs.
    pub(super) fn all(&self) -> usize {
        self.pairs.all()
    }

    /// Counts the individuals of every class by value.
    fn counted(mut self) -> Self {
        let classes = self.pairs.starts.len() - 1;
        // NULL has a place of its own.
        let place = |value: Option<u32>| value.map_or(0, |value| value as usize + 1);
        let mut rows = vec![0u64; self.counts.values as usize + 1];
        let mut there: Vec<Option<u32>> = Vec::new();
        let (mut starts, mut counts) = (Vec::with_capacity(classes + 1), Vec::new());
        for class in 0..classes {
            starts.push(counts.len());
            for pair in self.pairs.of(class) {
                let value = self.value_of[*pair as usize];
                let count = &mut rows[place(value)];
                if *count == 0 {
                    there.push(value);
                }
                *count += 1;
            }
            there.sort_unstable();
            let taken = there.drain(..);
            counts.extend(
                taken.map(|value| ValueCount { value, count: std::mem::take(&mut rows[place(value)]) }),
            );
        }
        starts.push(counts.len());
        counts.shrink_to_fit();
        self.counts.starts = starts;
        self.counts.counts = counts;
        self
    }
}

impl ClassIndividuals {
    /// Returns the individuals of the merged classes; `seen` is scratch memory.
    pub(super) fn regrouped(&self, groups: &Grouping, seen: &mut Vec<u32>) -> Self {
        let by_value = self.by_value.iter().map(|by_value| {
            let pairs = by_value.pairs.regrouped(groups, seen);
            let counts = Histograms { values: by_value.counts.values, ..Histograms::default() };
            IndividualsByValue { pairs, value_of: Arc::clone(&by_value.value_of), counts }.counted()
        });
        Self { by_value: by_value.collect(), individuals: self.individuals.regrouped(groups, seen) }
    }

    /// Returns those of some classes.
    pub(super) fn only(&self, classes: &[u32]) -> Self {
        let by_value = self.by_value.iter().map(|by_value| IndividualsByValue {
            pairs: by_value.pairs.only(classes),
            value_of: Arc::clone(&by_value.value_of),
            counts: by_value.counts.only(classes),
        });
        Self { by_value: by_value.collect(), individuals: self.individuals.only(classes) }
    }

    /// Returns an upper bound of the member numbers in any of the lists.
    pub(super) fn most_members(&self) -> usize {
        let pairs = self.by_value.iter().map(|by_value| by_value.pairs.all);
        pairs.chain([self.individuals.all]).max().unwrap_or(0) as usize
    }

    pub(super) fn bytes(&self) -> usize {
        let by_value = self.by_value.iter().map(|by_value| by_value.pairs.bytes() + by_value.counts.bytes());
        self.individuals.bytes() + by_value.sum::<usize>()
    }
}

/// A set of individuals.
pub(super) struct Marked {
    bits: Vec<u64>,
    count: u64,
}

impl Marked {
    /// Creates an empty set over `all` individuals.
    pub(super) fn none(all: u64) -> Self {
        Self { bits: vec![0; usize::try_from(all.div_ceil(64)).unwrap_or(usize::MAX)], count: 0 }
    }

    pub(super) fn mark(&mut self, individuals: &[u32]) {
        for individual in individuals {
            let (word, bit) = (*individual as usize / 64, 1u64 << (individual % 64));
            if let Some(bits) = self.bits.get_mut(word) {
                self.count += u64::from(*bits & bit == 0);
                *bits |= bit;
            }
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_who_are_in_several_classes_count_once_in_each() {
        // Per group one individual, and one pair of individual and value (flu, HIV or NULL).
        let members = [Some(0), Some(0), Some(1), None, Some(1)];
        let pairs = [Some(0), Some(1), Some(2), None, Some(3)];
        let value_of = vec![Some(0), Some(1), Some(0), None];
        let base = ClassIndividuals {
            individuals: MemberLists::of_groups(members.into_iter(), 2),
            by_value: vec![IndividualsByValue::of_groups(pairs.into_iter(), value_of, 2)],
        };
        let count = |value, count| ValueCount { value, count };
        let mut seen = Vec::new();
        let rolled = base.regrouped(&Grouping::new(&[1, 0, 1, 1, 0], 2), &mut seen);
        assert_eq!([rolled.individuals.of(0), rolled.individuals.of(1)], [[0, 1], [0, 1]]);
        assert_eq!(rolled.by_value[0].counts.of(0), [count(None, 1), count(Some(1), 1)]);
        assert_eq!(rolled.by_value[0].counts.of(1), [count(Some(0), 2)]);
        let all = rolled.regrouped(&Grouping::new(&[0, 0], 1), &mut seen);
        assert_eq!(all.individuals.of(0), [0, 1]);
        assert_eq!(all.by_value[0].counts.of(0), [count(None, 1), count(Some(0), 2), count(Some(1), 1)]);
    }

    #[test]
    fn a_set_counts_each_individual_once() {
        let mut marked = Marked::none(130);
        marked.mark(&[0, 129, 64]);
        marked.mark(&[64, 63]);
        assert_eq!(marked.count(), 4);
    }
}
