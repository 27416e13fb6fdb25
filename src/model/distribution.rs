//! How often each value of a sensitive column occurs in the whole input: what models of
//! distributions compare a class with.
//!
//! A class carries its distribution ([`Class::input`](super::Class::input)). In a search the class table counts
//! it once; `kanon check` and the verification count it by a GROUP BY before they look at the classes; in SQL
//! it is the distribution of the group. A comparison with the input would reveal facts about suppressed rows, so
//! the public record has the value that the released rows reach when they are compared with one another. That may
//! be more than the policy requires, and without the input it is the only thing that `kanon verify` counts
//! again; where individuals are counted, it cannot count it and repeats the record. The private record has the
//! value against the input.
//!
//! No other place knows a model of distributions: it says that it needs one ([`Needs`](super::Needs)) and which
//! values the released rows alone can show
//! ([`may_reach_among_released`](super::ClassModel::may_reach_among_released)).
//!
//! Values are numbered in their order, NULL first: the class table's codes are ranks, the verification sorts
//! the distinct values before it numbers them, and SQL ranks the bytes of Arrow's row format, which compare as
//! the values do. So `t_closeness_ordered` sees the same order everywhere.

use serde::{Deserialize, Serialize};

use super::{Counted, ValueCount};

/// The frequency of each value of one sensitive column in the whole input, NULL being a value like any other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    counted: Counted,
    /// Each value once, in the order of their numbers, NULL first.
    values: Vec<ValueCount>,
    total: u64,
    size: u64,
    /// For each level above 0 of the column's hierarchy the number of each value's label; empty if
    /// no model reads levels.
    levels: Vec<Vec<u32>>,
    /// Each value as an integer, 0 for NULL; empty if no model reads integers.
    integers: Vec<u64>,
}

impl Distribution {
    /// The distribution of no input, for models that look at nothing but the class.
    pub const NONE: &'static Self = &Self {
        counted: Counted::Rows,
        values: Vec::new(),
        total: 0,
        size: 0,
        levels: Vec::new(),
        integers: Vec::new(),
    };

    /// Creates the distribution of an input with so many rows of each value, each value once.
    pub fn of_rows(values: Vec<ValueCount>) -> Self {
        let rows = total(&values);
        Self::new(Counted::Rows, values, rows)
    }

    /// Creates the distribution of an input of `individuals` people, so many of whom have each
    /// value, each value once.
    pub fn of_individuals(values: Vec<ValueCount>, individuals: u64) -> Self {
        Self::new(Counted::Individuals, values, individuals)
    }

    fn new(counted: Counted, mut values: Vec<ValueCount>, size: u64) -> Self {
        values.sort_unstable_by_key(|count| count.value);
        Self { counted, total: total(&values), values, size, levels: Vec::new(), integers: Vec::new() }
    }

    /// Adds, for each level above 0 of the column's hierarchy, the number of the label of each of
    /// [`values`](Self::values).
    #[must_use]
    pub fn with_levels(mut self, levels: Vec<Vec<u32>>) -> Self {
        self.levels = levels;
        self
    }

    /// Adds each of [`values`](Self::values) as an integer, 0 for NULL.
    #[must_use]
    pub fn with_integers(mut self, integers: Vec<u64>) -> Self {
        self.integers = integers;
        self
    }

    /// Returns the unit of the counts.
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// Returns all values with their counts, in the order of their numbers, NULL first. Where a
    /// model reads facts of the values ([`ReadFacts`](super::ReadFacts)), that is the order of the
    /// values.
    pub fn values(&self) -> &[ValueCount] {
        &self.values
    }

    /// Returns the count of a value; 0 for one that does not occur.
    pub fn of(&self, value: Option<u32>) -> u64 {
        self.place(value).map_or(0, |at| self.values[at].count)
    }

    /// Returns the place of a value among [`values`](Self::values); `None` for one that does not occur.
    pub fn place(&self, value: Option<u32>) -> Option<usize> {
        // Numbers mostly go from 0 without gaps.
        let nulls = usize::from(self.values.first().is_some_and(|first| first.value.is_none()));
        let likely = value.map_or(0, |number| number as usize + nulls);
        match self.values.get(likely) {
            Some(count) if count.value == value => Some(likely),
            _ => self.values.binary_search_by_key(&value, |count| count.value).ok(),
        }
    }

    /// Returns, for each level above 0 of the column's hierarchy, the number of the label of each of
    /// [`values`](Self::values).
    pub fn levels(&self) -> &[Vec<u32>] {
        &self.levels
    }

    /// Returns each of [`values`](Self::values) as an integer, 0 for NULL.
    pub fn integers(&self) -> &[u64] {
        &self.integers
    }

    /// Returns the sum of all counts: rows, or pairs of an individual and one of its values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the individuals of the input; its rows where rows are counted.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the bytes that the values take.
    pub fn bytes(&self) -> usize {
        let levels: usize = self.levels.iter().map(|level| level.capacity() * size_of::<u32>()).sum();
        self.values.capacity() * size_of::<ValueCount>()
            + levels
            + self.integers.capacity() * size_of::<u64>()
    }
}

fn total(values: &[ValueCount]) -> u64 {
    values.iter().map(|count| count.count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_numbers() {
        let of = |value, count| ValueCount { value, count };
        let input = Distribution::of_rows(vec![of(Some(7), 3), of(None, 2), of(Some(0), 5)]);
        assert_eq!([None, Some(0), Some(3), Some(7)].map(|value| input.of(value)), [2, 5, 0, 3]);
        assert_eq!((input.total(), input.size(), Distribution::NONE.total()), (10, 10, 0));
        let people = Distribution::of_individuals(vec![of(Some(7), 3), of(None, 2)], 4);
        assert_eq!((people.total(), people.size(), people.counted()), (5, 4, Counted::Individuals));
        assert_eq!(input.values(), [of(None, 2), of(Some(0), 5), of(Some(7), 3)]);
    }
}
