//! Groups: the recoding of Anatomy, which separates quasi-identifiers from sensitive values instead
//! of coarsening them.
//!
//! Groups are a function of how often each sensitive value occurs, so they are the same under any key by which
//! rows are dealt. Values are known by their rank, because the class table has their counts and not the values.

use super::{ClassTable, Held, too_many_classes};
use crate::decimal::ratio;
use crate::error::{Error, Result};
use crate::model::ValueCount;

/// Says how many rows with each value of the sensitive column are in each group. Which rows these
/// are is decided when the groups are made, by chance.
///
/// # Contract
/// Values are known by their rank: the most frequent one first, of equally frequent ones NULL, then
/// in the order of their numbers. Groups are numbered from 0 and none is empty. Its memory comes out
/// of the table's budget. `Debug` shows no count.
pub struct Groups {
    /// For each value by rank the group of each of its rows, ascending.
    of_value: Vec<Box<[u32]>>,
    /// The rank of NULL, if it occurs.
    null: Option<usize>,
    /// The number of rows of each group.
    sizes: Vec<u64>,
    reconstruction_error: f64,
    held: Held,
}

impl PartialEq for Groups {
    fn eq(&self, other: &Self) -> bool {
        (&self.of_value, self.null) == (&other.of_value, other.null)
    }
}

impl Eq for Groups {}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Groups({} groups)", self.sizes.len())
    }
}

/// Returns the counts of a sensitive column's values by rank.
pub fn by_rank(values: &[ValueCount]) -> Vec<ValueCount> {
    let mut by_rank = values.to_vec();
    by_rank.sort_by_key(|value| (std::cmp::Reverse(value.count), value.value));
    by_rank
}

impl Groups {
    /// Checks the groups that a method made of the values `by_rank`: `of_value` has the group of
    /// each row with a value.
    ///
    /// # Errors
    /// An internal error if the contract does not hold, a data error when memory runs out.
    pub fn new(table: &ClassTable, by_rank: &[ValueCount], of_value: Vec<Box<[u32]>>) -> Result<Self> {
        let broken = |why: &str| Err(Error::internal(format!("groups: {why}")));
        let mut held = Held::new(table.budget());
        let last = of_value.iter().filter_map(|groups| groups.last()).max();
        let count = last.map_or(0, |last| *last as usize + 1);
        let rows: usize = of_value.iter().map(|groups| groups.len()).sum();
        held.at_least(rows * size_of::<u32>() + count * size_of::<u64>() + size_of_val(&*of_value))?;
        if of_value.len() != by_rank.len() {
            return broken("not one list per value");
        }
        let mut sizes = vec![0u64; count];
        for (groups, value) in of_value.iter().zip(by_rank) {
            if groups.len() as u64 != value.count || !groups.is_sorted() {
                return broken("not one group per row, ascending");
            }
            groups.iter().for_each(|group| sizes[*group as usize] += 1);
        }
        if sizes.contains(&0) {
            return broken("a group without rows");
        }
        let null = by_rank.iter().position(|value| value.value.is_none());
        let mut groups = Self { of_value, null, sizes, reconstruction_error: 0.0, held };
        let mut known = 0.0;
        groups.each(|number, values| {
            let squares: u128 = values.iter().map(|value| u128::from(value.count).pow(2)).sum();
            known += ratio(squares, groups.sizes.get(number).copied().unwrap_or_default().into());
            Ok(())
        })?;
        groups.reconstruction_error = 1.0 - known / ratio(rows as u128, 1);
        Ok(groups)
    }

    /// Returns the group of each row with a value, ascending, for each value by rank.
    pub fn of_value(&self) -> &[Box<[u32]>] {
        &self.of_value
    }

    /// Returns the rank of NULL, if it occurs.
    pub fn null(&self) -> Option<usize> {
        self.null
    }

    /// Returns the number of rows of each group.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Calls `see` for each group, with its number and the rows of each of its values; a value is
    /// named by its rank, NULL is `None`.
    ///
    /// # Errors
    /// Those of `see`, a data error when memory runs out.
    pub fn each(&self, mut see: impl FnMut(usize, &[ValueCount]) -> Result<()>) -> Result<()> {
        let rows: usize = self.of_value.iter().map(|groups| groups.len()).sum();
        let mut held = Held::new(self.held.budget());
        held.at_least(rows * size_of::<(u32, u32)>())?;
        let mut all: Vec<(u32, u32)> = Vec::with_capacity(rows);
        for (rank, groups) in self.of_value.iter().enumerate() {
            let rank = u32::try_from(rank).map_err(|_| too_many_classes())?;
            all.extend(groups.iter().map(|group| (*group, rank)));
        }
        all.sort_unstable();
        let mut values = Vec::new();
        for (number, group) in all.chunk_by(|a, b| a.0 == b.0).enumerate() {
            values.clear();
            values.extend(group.chunk_by(|a, b| a.1 == b.1).map(|rows| {
                let value = rows.first().map(|(_, rank)| *rank);
                let value = value.filter(|rank| self.null != Some(*rank as usize));
                ValueCount { value, count: rows.len() as u64 }
            }));
            see(number, &values)?;
        }
        Ok(())
    }

    /// Returns the mean reconstruction error of a row (Xiao & Tao 2006): the squared distance between
    /// its sensitive value and the distribution of its group, from 0 (the value is known) to 1.
    pub fn reconstruction_error(&self) -> f64 {
        self.reconstruction_error
    }
}
