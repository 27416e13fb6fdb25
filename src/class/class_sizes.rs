//! The sizes of a table's classes and the smallest class of each individual: the input of risk
//! measures.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::{ClassTable, Classes};
use crate::decimal::ratio;

/// Counts the classes of each size, and the individuals whose smallest class has that size. An
/// individual with rows in several classes is as easy to find as in the smallest of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassSizes(BTreeMap<u64, OfSize>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OfSize {
    classes: u64,
    individuals: u64,
}

impl ClassSizes {
    /// Counts the classes of a table by size.
    #[doc(hidden)]
    pub fn of(table: &ClassTable, classes: &Classes) -> Self {
        Self::of_some(table, classes, |_| true)
    }

    /// Counts some of the classes of a table by size.
    pub(super) fn of_some(table: &ClassTable, classes: &Classes, counts: impl Fn(usize) -> bool) -> Self {
        let mut all = Self::default();
        let mut smallest = vec![u64::MAX; usize::try_from(table.total_individuals()).unwrap_or(0)];
        for (class, rows) in classes.rows().enumerate().filter(|(class, _)| counts(*class)) {
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

    /// Adds one class of `size` individuals who are in no other class.
    pub fn add(&mut self, size: u64) {
        self.add_many(size, 1);
    }

    /// Adds `classes` disjoint classes of `size` individuals each.
    pub fn add_many(&mut self, size: u64, classes: u64) {
        let of_size = self.0.entry(size).or_default();
        of_size.classes += classes;
        of_size.individuals += size * classes;
    }

    /// Adds one class without its individuals; returns its size.
    pub fn add_class(&mut self, size: u64) -> u64 {
        self.0.entry(size).or_default().classes += 1;
        size
    }

    /// Adds individuals whose smallest class has this size, and makes sure that such a class is
    /// counted.
    pub fn add_individuals(&mut self, smallest: u64, individuals: u64) {
        let of_size = self.0.entry(smallest).or_default();
        of_size.classes = of_size.classes.max(1);
        of_size.individuals += individuals;
    }

    /// Adds one individual whose smallest class has this size.
    pub fn add_individual(&mut self, smallest: u64) {
        self.0.entry(smallest).or_default().individuals += 1;
    }

    /// Returns, in ascending order, each size, the number of classes of that size and the number of
    /// individuals whose smallest class has it. Classes without an individual are left out.
    pub fn histogram(&self) -> impl DoubleEndedIterator<Item = (u64, u64, u64)> + '_ {
        self.0.iter().filter(|(size, _)| **size > 0).map(|(size, of)| (*size, of.classes, of.individuals))
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> u64 {
        self.histogram().map(|(_, classes, _)| classes).sum()
    }

    /// Returns the number of individuals, each counted once.
    pub fn individuals(&self) -> u64 {
        self.histogram().map(|(_, _, individuals)| individuals).sum()
    }

    /// Returns the number of individuals who are alone in a class.
    pub fn unique(&self) -> u64 {
        self.histogram().find(|(size, ..)| *size == 1).map_or(0, |(_, _, individuals)| individuals)
    }

    /// Returns the size of the smallest class, k.
    pub fn min(&self) -> Option<u64> {
        self.histogram().next().map(|(size, ..)| size)
    }

    /// Returns the size of the largest class.
    pub fn max(&self) -> Option<u64> {
        self.histogram().next_back().map(|(size, ..)| size)
    }

    /// Sums each individual's chance of being found in their smallest class: the number of classes,
    /// if no individual is in two.
    pub fn expected_matches(&self) -> f64 {
        self.histogram().map(|(size, _, of)| ratio(u128::from(of), u128::from(size))).sum()
    }
}

/// Builds [`ClassSizes`] from classes that come one by one, each with its individuals where they are counted.
#[derive(Debug, Default)]
pub struct ClassSizesBuilder {
    sizes: ClassSizes,
    /// The smallest class of each individual.
    smallest: HashMap<u32, u64>,
}

impl ClassSizesBuilder {
    /// Adds one class; `individuals` are the numbers of its individuals where they are counted.
    pub fn add(&mut self, size: u64, individuals: Option<&[u32]>) {
        let Some(individuals) = individuals else { return self.sizes.add(size) };
        self.sizes.add_class(size);
        for individual in individuals {
            let smallest = self.smallest.entry(*individual).or_insert(size);
            *smallest = size.min(*smallest);
        }
    }

    /// Adds `classes` disjoint classes of `size` individuals each.
    pub fn add_many(&mut self, size: u64, classes: u64) {
        self.sizes.add_many(size, classes);
    }

    /// Adds individuals whose smallest class has this size, and makes sure that such a class is counted.
    pub fn add_individuals(&mut self, smallest: u64, individuals: u64) {
        self.sizes.add_individuals(smallest, individuals);
    }

    /// Returns the sizes of all classes.
    pub fn finish(mut self) -> ClassSizes {
        self.smallest.values().for_each(|size| self.sizes.add_individual(*size));
        self.sizes
    }
}

impl FromIterator<u64> for ClassSizes {
    fn from_iter<T: IntoIterator<Item = u64>>(sizes: T) -> Self {
        let mut all = Self::default();
        sizes.into_iter().for_each(|size| all.add(size));
        all
    }
}
