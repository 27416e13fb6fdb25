//! A node whose classes are evaluated.

use std::ops::Deref;

use super::evaluated_classes::{EvaluatedClasses, EvaluatedRecoding};
use super::{ClassTable, Classes};
use crate::error::Result;
use crate::model::{Requirement, numbered};

/// A node whose classes were checked against all class models.
#[derive(Debug)]
pub struct EvaluatedNode<'a> {
    levels: &'a [usize],
    classes: EvaluatedClasses<'a>,
}

impl<'a> Deref for EvaluatedNode<'a> {
    type Target = EvaluatedClasses<'a>;

    fn deref(&self) -> &Self::Target {
        &self.classes
    }
}

impl<'a> EvaluatedNode<'a> {
    /// Evaluates the `classes` of the node `levels`: a class is kept iff every model holds.
    ///
    /// # Errors
    /// A data error when memory runs out.
    #[doc(hidden)]
    pub fn new(
        table: &'a ClassTable,
        levels: &'a [usize],
        classes: &'a Classes,
        requirements: &[Requirement],
    ) -> Result<Self> {
        let population = table.population.as_ref();
        let population = population.map(|all| all.counts(table, classes, levels)).transpose()?;
        let codes = |class: usize, columns: &[usize]| -> Vec<u32> {
            columns.iter().map(|column| table.code(classes, class, *column)).collect()
        };
        let join_by = |columns: &[usize]| numbered((0..classes.len()).map(|class| codes(class, columns)));
        let (released, population) = (classes.len(), population.as_ref());
        let evaluated = EvaluatedClasses::new(table, classes, released, requirements, population, &join_by)?;
        Ok(Self { levels, classes: evaluated })
    }

    /// Returns the node's levels, one per column.
    pub fn levels(&self) -> &'a [usize] {
        self.levels
    }

    /// Returns the label code of `class` in `column`.
    pub fn code(&self, class: usize, column: usize) -> u32 {
        self.table().code(self.classes.classes, class, column)
    }

    /// Returns the suppressed rows of each column by label code.
    pub fn suppressed_by_label(&self) -> Vec<Vec<u64>> {
        let columns = self.table().columns.iter().zip(self.levels);
        let rows = columns.map(|(column, level)| column.level(*level).rows().to_vec());
        // Only the smaller of the two sets of classes is read.
        if self.kept_classes() * 2 > self.classes() {
            return self.rows_by_label(false);
        }
        let kept = self.rows_by_label(true);
        let without = |(rows, kept): (Vec<u64>, Vec<u64>)| {
            rows.iter().zip(&kept).map(|(rows, kept)| rows - kept).collect()
        };
        rows.zip(kept).map(without).collect()
    }

    /// Returns the rows of the kept or of the failing classes, per column by label code.
    fn rows_by_label(&self, of_kept: bool) -> Vec<Vec<u64>> {
        let columns = self.table().columns.iter().zip(self.levels);
        let mut rows: Vec<Vec<u64>> =
            columns.map(|(column, level)| vec![0; column.level(*level).leaves().len()]).collect();
        for (class, size, _) in self.all().filter(|(_, _, kept)| *kept == of_kept) {
            for (column, rows) in rows.iter_mut().enumerate() {
                rows[self.code(class, column) as usize] += size;
            }
        }
        rows
    }
}

impl EvaluatedRecoding for EvaluatedNode<'_> {
    fn evaluated(&self) -> &EvaluatedClasses<'_> {
        &self.classes
    }

    fn leaves_shown(&self) -> Vec<u128> {
        let columns = || self.table().columns().iter().zip(self.levels);
        let missing: Vec<(&[u64], u64)> =
            columns().map(|(c, level)| (c.level(*level).leaves(), c.leaves())).collect();
        // Only the smaller of the two sets of classes is read.
        let by_kept = self.kept_classes() * 2 < self.classes();
        let mut added = vec![0u128; missing.len()];
        for (class, rows, _) in self.all().filter(|(_, _, kept)| *kept == by_kept) {
            for (column, (sum, (leaves, all))) in added.iter_mut().zip(&missing).enumerate() {
                *sum += u128::from(rows)
                    * u128::from(all.saturating_sub(leaves[self.code(class, column) as usize]));
            }
        }
        let rows = u128::from(self.table().total_rows());
        let covered = columns().zip(added).map(|((column, level), added)| match by_kept {
            // All rows, without what the kept ones do not cover.
            true => rows * u128::from(column.leaves()) - added,
            false => column.covered(*level) + added,
        });
        covered.collect()
    }
}
