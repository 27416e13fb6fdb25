//! Released classes that are evaluated.

use std::ops::Deref;

use super::evaluated_classes::{EvaluatedClasses, EvaluatedRecoding};
use super::{ClassTable, MergedClasses, Region, ReleasedClasses};
use crate::error::Result;
use crate::model::{Requirement, numbered};

/// Released classes that were checked against all class models.
#[derive(Debug)]
pub struct EvaluatedPartition<'a> {
    released: &'a ReleasedClasses,
    classes: EvaluatedClasses<'a>,
}

impl<'a> Deref for EvaluatedPartition<'a> {
    type Target = EvaluatedClasses<'a>;

    fn deref(&self) -> &Self::Target {
        &self.classes
    }
}

impl<'a> EvaluatedPartition<'a> {
    /// Evaluates the [merged](ClassTable::merge) classes: a released class is kept iff every model
    /// holds; the class of the suppressed base classes is not.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub fn new(
        table: &'a ClassTable,
        released: &'a ReleasedClasses,
        merged: &'a MergedClasses,
        requirements: &[Requirement],
    ) -> Result<Self> {
        let regions = released.regions();
        // The class of the suppressed base classes shows nothing.
        type Shown<'s> = (Option<&'s Region>, Option<Option<String>>);
        let shown_in = |class: usize, column: usize| -> Shown<'_> {
            if let Some(centroid) = released.centroid(class, column) {
                return (None, Some(centroid.map(str::to_owned)));
            }
            let data_type = table.columns()[column].hierarchy().input_type();
            let earlier = released.label(class, column).map(|label| label.write(data_type));
            (Some(&regions[class][column]), earlier)
        };
        let shown = |class: usize, columns: &[usize]| -> Option<Vec<Shown<'_>>> {
            regions.get(class)?;
            Some(columns.iter().map(|column| shown_in(class, *column)).collect())
        };
        let join_by = |columns: &[usize]| numbered((0..merged.0.len()).map(|class| shown(class, columns)));
        let evaluated = EvaluatedClasses::new(table, &merged.0, regions.len(), requirements, None, &join_by)?;
        Ok(Self { released, classes: evaluated })
    }

    /// Returns the released classes.
    pub fn released(&self) -> &'a ReleasedClasses {
        self.released
    }
}

impl EvaluatedRecoding for EvaluatedPartition<'_> {
    fn evaluated(&self) -> &EvaluatedClasses<'_> {
        &self.classes
    }

    fn leaves_shown(&self) -> Vec<u128> {
        let suppressed = u128::from(self.suppressed_rows());
        let columns = self.table().columns().iter().enumerate();
        let covered = columns.map(|(at, column)| {
            let shown = |class: usize| self.released.regions()[class][at].leaves(column);
            let kept = self.kept().map(|(class, rows)| u128::from(rows) * u128::from(shown(class)));
            kept.sum::<u128>() + suppressed * u128::from(column.leaves())
        });
        covered.collect()
    }
}
