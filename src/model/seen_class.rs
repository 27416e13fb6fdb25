//! A class with the counts of all sensitive columns that models look at.

use super::{Class, Distribution, ValueCount};

/// A class with what models look at.
pub struct SeenClass<'a> {
    /// The rows of the class.
    pub rows: u64,
    /// The distinct individuals of the class, or its rows where none are counted.
    pub size: u64,
    /// Its rows without an individual; 0 where rows are counted.
    pub unowned_rows: u64,
    /// For each sensitive column the individuals (or rows) with each value.
    pub values: &'a [Vec<ValueCount>],
    /// The same over the whole table, for the columns with which a model compares the class.
    pub inputs: &'a [Distribution],
    /// The numbers of its individuals, where they are counted.
    pub individuals: Option<&'a [u32]>,
}

impl<'a> SeenClass<'a> {
    /// Returns the class as a model sees it that looks at this sensitive column, or at none.
    pub fn of_column(&self, column: Option<usize>) -> Class<'_> {
        column.map_or(Class::of_size(self.size), |column| Class {
            size: self.size,
            sensitive: self.values.get(column).map_or(&[], Vec::as_slice),
            input: self.inputs.get(column).unwrap_or(Distribution::NONE),
            population: None,
        })
    }
}
