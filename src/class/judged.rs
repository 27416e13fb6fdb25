//! A node's classes after judgement: which are kept, and what follows from it.

use super::{ClassTable, Classes};
use crate::model::{Class, ClassModel};

/// A node whose classes were judged by all class models: what loss measures look at.
#[derive(Debug)]
pub struct Judged<'a> {
    table: &'a ClassTable,
    levels: &'a [usize],
    classes: &'a Classes,
    kept: Vec<bool>,
    kept_rows: u64,
    kept_classes: u64,
    min_class: Option<u64>,
}

impl<'a> Judged<'a> {
    /// Judges the `classes` of the node `levels`: a class is kept iff every model holds.
    pub fn new(
        table: &'a ClassTable,
        levels: &'a [usize],
        classes: &'a Classes,
        models: &[Box<dyn ClassModel>],
    ) -> Self {
        let (mut kept_rows, mut kept_classes, mut min_class) = (0, 0, None::<u64>);
        let kept = classes
            .rows()
            .iter()
            .map(|size| {
                let class = Class { size: *size };
                let holds = models.iter().all(|model| model.holds(model.value(&class)));
                if holds {
                    kept_rows += size;
                    kept_classes += 1;
                    min_class = Some(min_class.map_or(*size, |least| least.min(*size)));
                }
                holds
            })
            .collect();
        Self { table, levels, classes, kept, kept_rows, kept_classes, min_class }
    }

    /// The table the node belongs to.
    pub fn table(&self) -> &'a ClassTable {
        self.table
    }

    /// One level a column.
    pub fn levels(&self) -> &'a [usize] {
        self.levels
    }

    /// K, the rows of kept classes.
    pub fn kept_rows(&self) -> u64 {
        self.kept_rows
    }

    /// S, the rows of failing classes.
    pub fn suppressed_rows(&self) -> u64 {
        self.table.total_rows - self.kept_rows
    }

    /// How many classes are kept.
    pub fn kept_classes(&self) -> u64 {
        self.kept_classes
    }

    /// The smallest kept class.
    pub fn min_class(&self) -> Option<u64> {
        self.min_class
    }

    /// The kept classes: number and rows.
    pub fn kept(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let rows = self.classes.rows();
        self.kept.iter().enumerate().filter(|(_, kept)| **kept).map(|(class, _)| (class, rows[class]))
    }

    /// The label code of `class` in `column`.
    pub fn code(&self, class: usize, column: usize) -> u32 {
        self.table.code(self.classes, class, column)
    }
}
