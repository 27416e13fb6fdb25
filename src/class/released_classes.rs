//! Released classes: the recoding of methods that need not give all values of a column one level.

use std::collections::BTreeMap;

use arrow::array::Array;

use super::region::{LabelTexts, Region};
use super::{ClassTable, EncodedColumn, Held};
use crate::error::{Error, Result};
use crate::generalize::{Centroid, RegionLabel, Value};

/// Maps each base class to a released class or to none, and holds for each released class one region
/// per column.
///
/// # Contract
/// Every released class has a base class, and in each column a region that holds the values of all
/// its base classes. A class shows the text of these regions, or the centroids of its rows. Classes
/// that show the same are one: regions with the same text are one region. Its memory comes out of
/// the table's budget. `Debug` shows no cell.
pub struct ReleasedClasses {
    class_of_base: Vec<Option<u32>>,
    regions: Vec<Box<[Region]>>,
    shows: ClassTexts,
    _held: Held,
}

/// Where the texts that the classes show come from.
#[derive(PartialEq)]
enum ClassTexts {
    /// The labels of their regions among the values of the table.
    Regions,
    /// Labels made for another table.
    Labels(Vec<Box<[RegionLabel]>>),
    /// The texts of the centroids of their rows; columns of numbers have this one.
    Centroids(Centroid, Vec<Box<[Option<String>]>>),
}

impl PartialEq for ReleasedClasses {
    fn eq(&self, other: &Self) -> bool {
        self.class_of_base == other.class_of_base
            && self.regions == other.regions
            && self.shows == other.shows
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
        Ok(Self { class_of_base, regions, shows: ClassTexts::Regions, _held: held })
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
        let labels = labels.ok_or_else(|| Error::internal("released classes: a class without labels"))?;
        released.shows = ClassTexts::Labels(labels);
        Ok(released)
    }

    /// Makes the classes of microaggregation, which show the centroids of their rows: `class_of_base`
    /// has the class of each base class, `None` for a suppressed one, and `centroid` is that of
    /// columns of numbers. The regions are the finest around the values of a class: they are not
    /// shown, and say how far its rows are from one another.
    ///
    /// # Errors
    /// An internal error if the contract does not hold, a data error when memory runs out or a sum is
    /// too large.
    pub fn with_centroids(
        table: &ClassTable,
        mut class_of_base: Vec<Option<u32>>,
        centroid: Centroid,
    ) -> Result<Self> {
        let (columns, base) = (&table.columns, &table.base);
        if class_of_base.len() != base.len() {
            return Err(Error::internal("released classes: not one entry per base class"));
        }
        let mut held = Held::new(base.held.budget());
        // The values of each column; the members of each class, twice, and what it shows.
        let values: usize = columns
            .iter()
            .map(|column| column.distinct() * size_of::<Value>() + column.values().get_array_memory_size())
            .sum();
        let of_base = size_of::<Option<u32>>() + 2 * size_of::<u32>() + size_of::<(Value, u64)>();
        held.at_least(values + class_of_base.len() * of_base)?;
        let numbers = columns.iter().map(EncodedColumn::clipped_values).collect::<Result<Vec<_>>>()?;
        let shown = |members: &[u32]| -> Result<Box<[Option<String>]>> {
            let text = |(at, (column, numbers)): (usize, (&EncodedColumn, &Vec<Value>))| {
                let value = |class: &u32| {
                    let code = table.code(base, *class as usize, at) as usize;
                    (numbers[code].clone(), base.rows_of(*class as usize))
                };
                let values: Vec<(Value, u64)> = members.iter().map(value).collect();
                let centroid = centroid.for_column(column.hierarchy());
                let shown = centroid.of(&values).map_err(|e| e.at(format!("column `{}`", column.name())))?;
                Ok(shown.text_form())
            };
            columns.iter().zip(&numbers).enumerate().map(text).collect()
        };
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, class) in (0u32..).zip(&class_of_base) {
            if let Some(class) = class {
                members.entry(*class).or_default().push(number);
            }
        }
        // Classes with the same centroids are one, whose centroids are these again.
        let mut by_text: BTreeMap<Box<[Option<String>]>, Vec<u32>> = BTreeMap::new();
        for members in members.into_values() {
            by_text.entry(shown(&members)?).or_default().extend(members);
        }
        let (mut regions, mut centroids) = (Vec::with_capacity(by_text.len()), Vec::new());
        for ((texts, members), class) in by_text.into_iter().zip(0u32..) {
            members.iter().for_each(|base| class_of_base[*base as usize] = Some(class));
            regions.push(table.regions_around(&members)?);
            centroids.push(texts);
        }
        let texts = centroids.iter().flatten().flatten().map(String::len).sum::<usize>();
        let of_texts = texts + centroids.len() * columns.len() * size_of::<Option<String>>();
        held.at_least(class_of_base.len() * size_of::<Option<u32>>() + bytes(&regions) + of_texts)?;
        Ok(Self { class_of_base, regions, shows: ClassTexts::Centroids(centroid, centroids), _held: held })
    }

    /// Returns what a class shows in a column in place of the label of its region, if that is given.
    pub fn label(&self, class: usize, column: usize) -> Option<&RegionLabel> {
        match &self.shows {
            ClassTexts::Labels(labels) => labels.get(class)?.get(column),
            ClassTexts::Regions | ClassTexts::Centroids(..) => None,
        }
    }

    /// Returns the text of the centroid that a class shows in a column, `None` within for NULL, if
    /// classes show centroids.
    pub fn centroid(&self, class: usize, column: usize) -> Option<Option<&str>> {
        match &self.shows {
            ClassTexts::Centroids(_, centroids) => Some(centroids.get(class)?.get(column)?.as_deref()),
            ClassTexts::Regions | ClassTexts::Labels(_) => None,
        }
    }

    /// Returns whether the classes show centroids.
    pub fn shows_centroids(&self) -> bool {
        matches!(self.shows, ClassTexts::Centroids(..))
    }

    /// Returns which centroid classes show in a column, if they show centroids.
    #[cfg(feature = "engine")]
    pub(crate) fn centroid_of(&self, column: &EncodedColumn) -> Option<Centroid> {
        match &self.shows {
            ClassTexts::Centroids(centroid, _) => Some(centroid.for_column(column.hierarchy())),
            ClassTexts::Regions | ClassTexts::Labels(_) => None,
        }
    }

    /// Returns the centroid that a class shows in a column of the table, if classes show centroids.
    pub(crate) fn centroid_value(&self, table: &ClassTable, class: usize, column: usize) -> Option<Value> {
        let ClassTexts::Centroids(centroid, _) = &self.shows else { return None };
        let hierarchy = table.columns.get(column)?.hierarchy();
        let output_type = centroid.for_column(hierarchy).output_type(hierarchy.input_type());
        Centroid::parse(self.centroid(class, column)?, &output_type)
    }

    /// Returns whether the classes show labels made for another table.
    pub fn shows_earlier_labels(&self) -> bool {
        matches!(self.shows, ClassTexts::Labels(_))
    }

    /// Returns whether the classes show the labels of their regions among the values of the table.
    pub(crate) fn shows_regions(&self) -> bool {
        matches!(self.shows, ClassTexts::Regions)
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
