//! Released classes: the recoding of methods that need not give all values of a column one level.

use super::region::{LabelTexts, Region};
use super::{ClassTable, Held};
use crate::error::{Error, Result};
use crate::generalize::RegionLabel;

/// Maps each base class to a released class or to none, and holds for each released class one region
/// per column.
///
/// # Contract
/// Every released class has a base class, and shows in each column a region that holds the values
/// of all its base classes. Classes that show the same are one: regions with the same text are one
/// region. Its memory comes out of the table's budget. `Debug` shows no cell.
pub struct ReleasedClasses {
    class_of_base: Vec<Option<u32>>,
    regions: Vec<Box<[Region]>>,
    /// What each class shows, where that is not the label of its regions among the values of this table.
    labels: Option<Vec<Box<[RegionLabel]>>>,
    _held: Held,
}

impl PartialEq for ReleasedClasses {
    fn eq(&self, other: &Self) -> bool {
        self.class_of_base == other.class_of_base
            && self.regions == other.regions
            && self.labels == other.labels
    }
}

impl Eq for ReleasedClasses {}

impl std::fmt::Debug for ReleasedClasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReleasedClasses({} of {} base classes)", self.regions.len(), self.class_of_base.len())
    }
}

impl ReleasedClasses {
    /// Checks the classes that a method made of a table: `class_of_base` has the released class of
    /// each base class, `None` for a suppressed one; `regions` has the regions of each released
    /// class, one per column.
    ///
    /// # Errors
    /// An internal error if the contract does not hold, a data error when memory runs out.
    pub fn new(
        table: &ClassTable,
        class_of_base: Vec<Option<u32>>,
        mut regions: Vec<Box<[Region]>>,
    ) -> Result<Self> {
        let broken = |why: &str| Err(Error::internal(format!("released classes: {why}")));
        let (columns, base) = (&table.columns, &table.base);
        let mut held = Held::new(base.held.budget());
        held.at_least(class_of_base.len() * size_of::<Option<u32>>() + bytes(&regions))?;
        let mut for_checks = Held::new(base.held.budget());
        for_checks.at_least(regions.len() * (3 * size_of::<usize>() + size_of::<u32>() + 1))?;
        if class_of_base.len() != base.len() {
            return broken("not one entry per base class");
        }
        if regions.iter().any(|shown| shown.len() != columns.len()) {
            return broken("not one region per column");
        }
        let texts = columns.iter().map(LabelTexts::of).collect::<Result<Vec<_>>>()?;
        let mut taken = class_of_base.len() * size_of::<Option<u32>>() + size_of_val(&*regions);
        for shown in &mut regions {
            for (region, texts) in shown.iter_mut().zip(&texts) {
                if !region.is_valid_for(texts.column()) {
                    return broken("a region without values of its column");
                }
                *region = std::mem::replace(region, Region::Everything).canonical(texts)?;
            }
            // An interval of texts has become a set.
            taken += bytes(std::slice::from_ref(shown));
            held.at_least(taken)?;
        }
        let mut has_base = vec![false; regions.len()];
        for (number, class) in class_of_base.iter().enumerate() {
            let Some(class) = class.map(|class| class as usize) else { continue };
            let Some(shown) = regions.get(class) else {
                return broken("a base class goes to a class that shows nothing");
            };
            has_base[class] = true;
            let mut shown = shown.iter().zip(columns).enumerate();
            if !shown.all(|(at, (region, column))| region.holds(column, table.code(base, number, at))) {
                return broken("a class does not show the value of one of its base classes");
            }
        }
        if has_base.contains(&false) {
            return broken("a class without a base class");
        }
        let (class_of_base, regions) = without_repeats(class_of_base, regions)?;
        Ok(Self { class_of_base, regions, labels: None, _held: held })
    }

    /// Checks classes that show labels made for another table. Each label must cover the values of
    /// this table that the region in its place holds, and no others.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn with_labels(
        table: &ClassTable,
        class_of_base: Vec<Option<u32>>,
        regions: Vec<Box<[Region]>>,
        labels: Vec<Box<[RegionLabel]>>,
    ) -> Result<Self> {
        let mut held = Held::new(table.budget());
        held.at_least(size_of_val(&*class_of_base))?;
        let earlier = class_of_base.clone();
        let mut released = Self::new(table, class_of_base, regions)?;
        // Of classes that show the same here, the labels of the first base class's.
        let mut number_of: Vec<Option<u32>> = vec![None; released.regions.len()];
        for (class, earlier) in released.class_of_base.iter().zip(earlier) {
            let Some(class) = class else { continue };
            number_of[*class as usize] = number_of[*class as usize].or(earlier);
        }
        let label = |number: Option<u32>| number.and_then(|number| labels.get(number as usize)).cloned();
        let labels: Option<Vec<_>> = number_of.into_iter().map(label).collect();
        released.labels =
            Some(labels.ok_or_else(|| Error::internal("released classes: a class without labels"))?);
        Ok(released)
    }

    /// Returns what a class shows in a column in place of the label of its region, if that is given.
    pub fn label(&self, class: usize, column: usize) -> Option<&RegionLabel> {
        self.labels.as_ref()?.get(class)?.get(column)
    }

    /// Returns the released class of each base class; `None` for a suppressed one.
    pub fn class_of_base(&self) -> &[Option<u32>] {
        &self.class_of_base
    }

    /// Returns the regions of each released class, one per column.
    pub fn regions(&self) -> &[Box<[Region]>] {
        &self.regions
    }
}

/// The released class of each base class, and what each released class shows.
type Parts = (Vec<Option<u32>>, Vec<Box<[Region]>>);

/// Makes one class of those that show the same, and orders the classes by what they show.
fn without_repeats(mut class_of_base: Vec<Option<u32>>, regions: Vec<Box<[Region]>>) -> Result<Parts> {
    let mut order: Vec<usize> = (0..regions.len()).collect();
    order.sort_by(|a, b| regions[*a].cmp(&regions[*b]));
    let mut number_of = vec![0u32; regions.len()];
    let mut distinct: Vec<usize> = Vec::with_capacity(regions.len());
    for class in order {
        if distinct.last().is_none_or(|last| regions[*last] != regions[class]) {
            distinct.push(class);
        }
        number_of[class] = u32::try_from(distinct.len() - 1).map_err(Error::internal)?;
    }
    for class in class_of_base.iter_mut().flatten() {
        *class = number_of[*class as usize];
    }
    let mut regions: Vec<Option<Box<[Region]>>> = regions.into_iter().map(Some).collect();
    let distinct = distinct.into_iter().filter_map(|class| regions[class].take()).collect();
    Ok((class_of_base, distinct))
}

/// Returns the bytes that regions take.
fn bytes(regions: &[Box<[Region]>]) -> usize {
    size_of_val(regions) + regions.iter().map(|shown| Region::bytes_of(shown)).sum::<usize>()
}

#[cfg(test)]
#[path = "released_classes_tests.rs"]
mod tests;
