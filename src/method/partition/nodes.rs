//! The classes of a node of the lattice as parts of the base classes.

use super::cuts::Finished;
use super::near::sorted_by;
use crate::class::{ClassTable, EncodedColumn, Held, Region};
use crate::error::{Error, Result};
use crate::generalize::Ends;

/// A node of the lattice.
pub(in crate::method) struct Node<'a> {
    table: &'a ClassTable,
    /// For each column the label of each value.
    labels: Vec<&'a [u32]>,
    /// For each column the region of each label, where that is what a class shows.
    regions: Option<Vec<Vec<Region>>>,
}

impl<'a> Node<'a> {
    /// Reads the labels of the levels, which classes show under [`Ends::Cuts`]; else they show the
    /// finest regions around their values.
    ///
    /// # Errors
    /// An internal error for levels that the table does not have.
    pub(in crate::method) fn new(table: &'a ClassTable, levels: &[usize], ends: Ends) -> Result<Self> {
        let columns = || table.columns().iter().zip(levels);
        let labels = columns().map(|(column, level)| column.map(0, *level)).collect::<Result<_>>()?;
        let regions = || columns().map(|(column, level)| regions(column, *level)).collect();
        let regions = (ends == Ends::Cuts).then(regions).transpose()?;
        Ok(Self { table, labels, regions })
    }

    fn label(&self, class: u32, column: usize) -> u32 {
        self.labels[column][self.table.code(self.table.base(), class as usize, column) as usize]
    }

    /// Returns the node's classes of some base classes.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(in crate::method) fn classes(&self, base: Vec<u32>) -> Result<Vec<Vec<u32>>> {
        let mut held = Held::new(self.table.budget());
        // Its key, and its place in a class, which may be one of its own.
        held.at_least(base.len() * (size_of::<(u128, u32)>() + size_of::<u32>() + size_of::<Vec<u32>>()))?;
        let columns: Vec<usize> = (0..self.labels.len()).rev().collect();
        let sorted = sorted_by(self.table, base, &columns, |class, column| self.label(class, column));
        let is_same = |a: &u32, b: &u32| {
            columns.iter().all(|column| self.label(*a, *column) == self.label(*b, *column))
        };
        Ok(sorted.chunk_by(is_same).map(<[u32]>::to_vec).collect())
    }

    /// Returns one of these classes as a part.
    ///
    /// # Errors
    /// An internal error without a base class.
    pub(in crate::method) fn part(&self, classes: Vec<u32>) -> Result<Finished> {
        let first = *classes.first().ok_or_else(|| Error::internal("node: a class without a base class"))?;
        let shown = self.regions.as_ref().map(|regions| {
            let shown = regions
                .iter()
                .enumerate()
                .map(|(at, regions)| regions[self.label(first, at) as usize].clone());
            shown.collect()
        });
        Ok(Finished { classes, shown })
    }
}

/// Returns the region of each label of a level.
pub(super) fn regions(column: &EncodedColumn, level: usize) -> Result<Vec<Region>> {
    if level == 0 || level == column.height() || !column.has_intervals() {
        let all = (0u32..).take(column.level(level).leaves().len());
        return Ok(all.map(|code| Region::Label { level, code }).collect());
    }
    let region = |values: Vec<u32>| match *values.as_slice() {
        [first, .., last] if (last - first) as usize + 1 == values.len() => Region::Interval { first, last },
        _ => Region::Set(values.into()),
    };
    Ok(column.values_by_label(level)?.into_iter().map(region).collect())
}
