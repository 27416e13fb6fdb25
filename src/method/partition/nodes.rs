//! The classes of a node of the lattice as parts of the base classes.

use super::cuts::Finished;
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
    /// Reads the labels of the levels, which classes show under [`Ends::Cuts`]; else they show the finest regions around
    /// their values.
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
    pub(in crate::method) fn classes(&self, mut base: Vec<u32>) -> Result<Vec<Vec<u32>>> {
        let mut held = Held::new(self.table.budget());
        // Its key, and its place in a class, which may be one of its own.
        held.at_least(base.len() * (size_of::<(u128, u32)>() + size_of::<u32>() + size_of::<Vec<u32>>()))?;
        let mut bits = 0;
        let shift = |column: &EncodedColumn| {
            let shift = bits;
            bits += usize::BITS - column.distinct().leading_zeros();
            shift
        };
        let shifts: Vec<u32> = self.table.columns().iter().map(shift).collect();
        if bits > u128::BITS {
            let columns = 0..self.labels.len();
            let key = |class: u32| columns.clone().map(move |column| self.label(class, column));
            base.sort_by(|a, b| key(*a).cmp(key(*b)));
            return Ok(base.chunk_by(|a, b| key(*a).eq(key(*b))).map(<[u32]>::to_vec).collect());
        }
        let key = |class: u32| {
            let labels =
                shifts.iter().enumerate().map(|(at, shift)| u128::from(self.label(class, at)) << shift);
            labels.sum::<u128>()
        };
        let mut keyed: Vec<(u128, u32)> = base.into_iter().map(|class| (key(class), class)).collect();
        keyed.sort_unstable();
        let class = |same: &[(u128, u32)]| same.iter().map(|(_, class)| *class).collect();
        Ok(keyed.chunk_by(|a, b| a.0 == b.0).map(class).collect())
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
