//! Released classes: the recoding of methods that need not give all values of a column one level.

use super::region::Region;
use super::{ClassTable, Held};
use crate::error::{Error, Result};

/// Which released class each base class goes to, and what each released class shows.
///
/// # Contract
/// Every released class has a base class, and shows in each column a region that holds the values
/// of all its base classes. No two released classes show the same regions: rows that look the same
/// are in one class. Its memory comes out of the table's budget. `Debug` shows no cell.
pub struct ReleasedClasses {
    of_base: Vec<Option<u32>>,
    shows: Vec<Box<[Region]>>,
    _held: Held,
}

impl std::fmt::Debug for ReleasedClasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReleasedClasses({} of {} base classes)", self.shows.len(), self.of_base.len())
    }
}

impl ReleasedClasses {
    /// Checks the classes that a method made of a table: `of_base` has the released class of each
    /// base class, `None` for a suppressed one; `shows` has the regions of each released class, one
    /// per column.
    ///
    /// # Errors
    /// An internal error if the contract does not hold, a data error when memory runs out.
    pub fn new(table: &ClassTable, of_base: Vec<Option<u32>>, shows: Vec<Box<[Region]>>) -> Result<Self> {
        let broken = |why: &str| Err(Error::internal(format!("released classes: {why}")));
        let mut held = Held::new(table.base.held.budget());
        let regions = shows.len() * (table.columns.len() * size_of::<Region>() + size_of::<Box<[Region]>>());
        held.at_least(of_base.len() * size_of::<Option<u32>>() + 2 * regions)?;
        let is_of = |shown: &[Region]| {
            let mut regions = shown.iter().zip(&table.columns);
            shown.len() == table.columns.len() && regions.all(|(region, column)| region.is_of(column))
        };
        if of_base.len() != table.base.len() || !shows.iter().all(|shown| is_of(shown)) {
            return broken("not one class per base class, or not one region per column");
        }
        let mut has_base = vec![false; shows.len()];
        for class in of_base.iter().flatten() {
            match has_base.get_mut(*class as usize) {
                Some(has_base) => *has_base = true,
                None => return broken("a base class goes to a class that shows nothing"),
            }
        }
        if has_base.contains(&false) {
            return broken("a class without a base class");
        }
        let mut all: Vec<&Box<[Region]>> = shows.iter().collect();
        all.sort_unstable();
        if all.windows(2).any(|pair| pair[0] == pair[1]) {
            return broken("two classes show the same");
        }
        for (base, class) in of_base.iter().enumerate() {
            let Some(class) = class else { continue };
            let mut regions = shows[*class as usize].iter().zip(&table.columns).enumerate();
            if !regions.all(|(at, (region, column))| region.holds(column, table.code(&table.base, base, at)))
            {
                return broken("a class does not show the value of one of its base classes");
            }
        }
        Ok(Self { of_base, shows, _held: held })
    }

    /// Returns the released class of each base class; `None` for a suppressed one.
    pub fn of_base(&self) -> &[Option<u32>] {
        &self.of_base
    }

    /// Returns the regions of each released class, one per column.
    pub fn shows(&self) -> &[Box<[Region]>] {
        &self.shows
    }
}

#[cfg(test)]
#[path = "released_classes_tests.rs"]
mod tests;
