//! The individuals of classes. An individual can have many rows, in one class or in several, so
//! sizes are not added but counted again after every roll-up.
//!
//! A roll-up joins the lists of the classes that it merges and drops repeated numbers, with one array that
//! remembers in which class each number was seen last. Loss measures go on counting rows: the search bounds
//! losses with the most rows that the individuals who may be suppressed can have.

use std::sync::Arc;

use super::grouping::Grouping;
use super::held::{Held, HeldList};
use super::histograms::Histograms;
use crate::error::Result;
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
    /// The value of each pair; `None` is NULL. All classes of a table share them.
    value_of: Arc<HeldList<Option<u32>>>,
    /// The number of individuals with each value.
    pub(super) counts: Histograms,
}

impl MemberLists {
    /// Lists the distinct members of each group of sources; `of` has those of one source, below
    /// `all`, and all of them together are at most `most`. `seen` is scratch memory.
    pub(super) fn gathered<I: Iterator<Item = u32>>(
        groups: &Grouping,
        all: u32,
        most: usize,
        of: impl Fn(u32) -> I,
        seen: &mut Vec<u32>,
    ) -> Self {
        // `u32::MAX` stands for "never seen": there are too few classes to reach it.
        seen.clear();
        seen.reserve_exact(all as usize);
        seen.resize(all as usize, u32::MAX);
        let mut starts = Vec::with_capacity(groups.classes() + 1);
        // Room that is never written costs nothing until it is given back.
        let mut items = Vec::with_capacity(most);
        for (class, number) in (0..groups.classes()).zip(0u32..) {
            starts.push(items.len());
            for source in groups.of(class) {
                for item in of(*source) {
                    let seen = &mut seen[item as usize];
                    if *seen != number {
                        *seen = number;
                        items.push(item);
                    }
                }
            }
        }
        starts.push(items.len());
        items.shrink_to_fit();
        Self { starts, items, all }
    }

    /// Returns the bytes of so many lists with so many members.
    pub(super) fn bytes_of(classes: usize, members: usize) -> usize {
        (classes + 1) * size_of::<usize>() + members * size_of::<u32>()
    }

    /// Returns the members of a class.
    pub(super) fn of(&self, class: usize) -> &[u32] {
        match self.starts.get(class..class + 2) {
            Some([from, to]) => &self.items[*from..*to],
            _ => &[],
        }
    }

    fn only(&self, classes: &[u32]) -> Self {
        let mut starts = Vec::with_capacity(classes.len() + 1);
        let mut items = Vec::with_capacity(classes.iter().map(|class| self.of(*class as usize).len()).sum());
        starts.push(0);
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

    /// Returns the members of the merged classes, and reserves their memory; `seen` is scratch memory.
    fn regrouped(&self, groups: &Grouping, seen: &mut Vec<u32>, held: &mut Held) -> Result<Self> {
        let of = |source: u32| self.of(source as usize).iter().copied();
        let most = Self::bytes_of(groups.classes(), self.items.len());
        let make = || Ok(Self::gathered(groups, self.all, self.items.len(), of, seen));
        held.adding(most, make, Self::bytes)
    }

    pub(super) fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<usize>() + self.items.capacity() * size_of::<u32>()
    }
}

impl IndividualsByValue {
    /// Counts the individuals with each value, given the pairs of each class; `value_of` has the
    /// value of each pair, below `values`. Reserves the memory of the counts.
    pub(super) fn new(
        pairs: MemberLists,
        value_of: Arc<HeldList<Option<u32>>>,
        values: u32,
        held: &mut Held,
    ) -> Result<Self> {
        let most = Histograms::bytes_of(pairs.starts.len() - 1, pairs.items.len())
            + (values as usize + 1) * size_of::<u64>();
        let counts = held.adding(most, || Ok(counted(&pairs, &value_of, values)), Histograms::bytes)?;
        Ok(Self { pairs, value_of, counts })
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
}

/// Counts the pairs of every class by value.
fn counted(pairs: &MemberLists, value_of: &[Option<u32>], values: u32) -> Histograms {
    let classes = pairs.starts.len() - 1;
    // NULL has a place of its own.
    let place = |value: Option<u32>| value.map_or(0, |value| value as usize + 1);
    let mut rows = vec![0u64; values as usize + 1];
    let mut there: Vec<Option<u32>> = Vec::new();
    let (mut starts, mut counts) = (Vec::with_capacity(classes + 1), Vec::with_capacity(pairs.items.len()));
    for class in 0..classes {
        starts.push(counts.len());
        for pair in pairs.of(class) {
            let value = value_of[*pair as usize];
            let count = &mut rows[place(value)];
            if *count == 0 {
                there.push(value);
            }
            *count += 1;
        }
        there.sort_unstable();
        let taken = there.drain(..);
        counts
            .extend(taken.map(|value| ValueCount { value, count: std::mem::take(&mut rows[place(value)]) }));
    }
    starts.push(counts.len());
    counts.shrink_to_fit();
    Histograms { starts, counts, values }
}

impl ClassIndividuals {
    /// Returns the individuals of the merged classes, and reserves their memory; `seen` is scratch
    /// memory.
    pub(super) fn regrouped(&self, groups: &Grouping, seen: &mut Vec<u32>, held: &mut Held) -> Result<Self> {
        let by_value = self.by_value.iter().map(|by_value| {
            let pairs = by_value.pairs.regrouped(groups, seen, held)?;
            let values = by_value.counts.values;
            IndividualsByValue::new(pairs, Arc::clone(&by_value.value_of), values, held)
        });
        let by_value = by_value.collect::<Result<_>>()?;
        Ok(Self { by_value, individuals: self.individuals.regrouped(groups, seen, held)? })
    }

    /// Returns the bytes that all classes of a table share.
    #[cfg(test)]
    pub(super) fn shared_bytes(&self) -> usize {
        self.by_value.iter().map(|by_value| size_of_val(&**by_value.value_of)).sum()
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
    use crate::class::held::tests::counting;

    #[test]
    fn people_who_are_in_several_classes_count_once_in_each() {
        // Per group one individual, and one pair of individual and value (flu, HIV or NULL).
        let members = [Some(0), Some(0), Some(1), None, Some(1)];
        let pairs = [Some(0), Some(1), Some(2), None, Some(3)];
        let (counting, budget) = counting(usize::MAX);
        let mut value_of = HeldList::with_room(4, &budget).unwrap();
        value_of.extend(&[Some(0), Some(1), Some(0), None]).unwrap();
        let (mut held, mut seen) = (Held::new(&budget), Vec::new());
        let alone = Grouping::new(&[0, 1, 2, 3, 4], 5);
        let mut lists = |of: [Option<u32>; 5], all| {
            MemberLists::gathered(&alone, all, 5, |group| of[group as usize].into_iter(), &mut seen)
        };
        let (individuals, pairs) = (lists(members, 2), lists(pairs, 4));
        held.at_least(individuals.bytes() + pairs.bytes()).unwrap();
        let by_value = IndividualsByValue::new(pairs, Arc::new(value_of), 2, &mut held).unwrap();
        let base = ClassIndividuals { individuals, by_value: vec![by_value] };
        let count = |value, count| ValueCount { value, count };
        let rolled = base.regrouped(&Grouping::new(&[1, 0, 1, 1, 0], 2), &mut seen, &mut held).unwrap();
        assert_eq!([rolled.individuals.of(0), rolled.individuals.of(1)], [[0, 1], [0, 1]]);
        assert_eq!(rolled.by_value[0].counts.of(0), [count(None, 1), count(Some(1), 1)]);
        assert_eq!(rolled.by_value[0].counts.of(1), [count(Some(0), 2)]);
        let all = rolled.regrouped(&Grouping::new(&[0, 0], 1), &mut seen, &mut held).unwrap();
        assert_eq!(all.individuals.of(0), [0, 1]);
        assert_eq!(all.by_value[0].counts.of(0), [count(None, 1), count(Some(0), 2), count(Some(1), 1)]);
        let of_pairs = 4 * size_of::<Option<u32>>();
        assert_eq!(counting.used(), base.bytes() + rolled.bytes() + all.bytes() + of_pairs);
    }

    #[test]
    fn a_set_counts_each_individual_once() {
        let mut marked = Marked::none(130);
        marked.mark(&[0, 129, 64]);
        marked.mark(&[64, 63]);
        assert_eq!(marked.count(), 4);
    }
}
