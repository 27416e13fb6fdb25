//! The sizes of a table's classes, and the smallest class of everyone in it: what risk measures look at.

use std::collections::BTreeMap;

use super::{ClassTable, Classes};
use crate::decimal::ratio;

/// How many classes have each size, and how many individuals are in no smaller class than that. A person with rows in
/// several classes is as easy to find as in the smallest of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassSizes(BTreeMap<u64, OfSize>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OfSize {
    classes: u64,
    individuals: u64,
}

impl ClassSizes {
    /// The sizes of classes of a table.
    pub fn of(table: &ClassTable, classes: &Classes) -> Self {
        let mut all = Self::default();
        let mut smallest = vec![u64::MAX; usize::try_from(table.total_individuals()).unwrap_or(0)];
        for (class, rows) in classes.rows().enumerate() {
            match classes.individuals(class) {
                None => all.add(rows),
                Some(individuals) => {
                    let size = all.add_class(individuals.len() as u64);
                    for individual in individuals {
                        let smallest = &mut smallest[*individual as usize];
                        *smallest = size.min(*smallest);
                    }
                }
            }
        }
        smallest.into_iter().filter(|size| *size < u64::MAX).for_each(|size| all.add_individual(size));
        all
    }

    /// Counts one class of individuals who are in no other.
    pub fn add(&mut self, size: u64) {
        self.add_many(size, 1);
    }

    /// Counts classes of this size, each of individuals who are in no other.
    pub fn add_many(&mut self, size: u64, classes: u64) {
        let of_size = self.0.entry(size).or_default();
        of_size.classes += classes;
        of_size.individuals += size * classes;
    }

    /// Counts one class, and nobody in it; returns its size.
    pub fn add_class(&mut self, size: u64) -> u64 {
        self.0.entry(size).or_default().classes += 1;
        size
    }

    /// Counts individuals whose smallest class has this size, and that there is such a class.
    pub fn add_individuals(&mut self, smallest: u64, individuals: u64) {
        let of_size = self.0.entry(smallest).or_default();
        of_size.classes = of_size.classes.max(1);
        of_size.individuals += individuals;
    }

    /// Counts one individual whose smallest class has this size.
    pub fn add_individual(&mut self, smallest: u64) {
        self.0.entry(smallest).or_default().individuals += 1;
    }

    /// Size, number of classes of that size and individuals whose smallest class it is, ascending; classes without
    /// an individual are left out.
    pub fn histogram(&self) -> impl DoubleEndedIterator<Item = (u64, u64, u64)> + '_ {
        self.0.iter().filter(|(size, _)| **size > 0).map(|(size, of)| (*size, of.classes, of.individuals))
    }

    /// The number of classes.
    pub fn classes(&self) -> u64 {
        self.histogram().map(|(_, classes, _)| classes).sum()
    }

    /// The number of individuals, each once.
    pub fn individuals(&self) -> u64 {
        self.histogram().map(|(_, _, individuals)| individuals).sum()
    }

    /// The smallest class, k.
    pub fn min(&self) -> Option<u64> {
        self.histogram().next().map(|(size, ..)| size)
    }

    /// The largest class.
    pub fn max(&self) -> Option<u64> {
        self.histogram().next_back().map(|(size, ..)| size)
    }

    /// The chances to find each individual in their smallest class, summed: the number of classes, where nobody
    /// is in two.
    pub fn expected_matches(&self) -> f64 {
        self.histogram().map(|(size, _, of)| ratio(u128::from(of), u128::from(size))).sum()
    }
}

impl FromIterator<u64> for ClassSizes {
    fn from_iter<T: IntoIterator<Item = u64>>(sizes: T) -> Self {
        let mut all = Self::default();
        sizes.into_iter().for_each(|size| all.add(size));
        all
    }
}
