//! The class table: what a method knows of the data.
//!
//! [`ClassTable`] holds the base classes, the distinct tuples of the quasi-identifiers with their sizes, as
//! small integer codes. A node's [`Classes`] come from a finer node's by [`ClassTable::roll_up`], which maps
//! codes to codes and adds the rows of classes that become equal; values and labels are never touched.

mod coded;
mod intern;
mod judged;
mod packing;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use hashbrown::HashTable;

pub use coded::{CodedColumn, CodedLevel};
pub use judged::Judged;

use crate::error::{Error, Result};
use crate::generalize::{Hierarchy, Value};
use intern::Interner;
use packing::Packing;

/// Asks for memory before it is used. Above this layer it is DataFusion's memory pool.
pub trait Budget: Send + Sync {
    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// A data error that names the limit to raise.
    fn grow(&self, bytes: usize) -> Result<()>;

    /// Gives `bytes` back.
    fn shrink(&self, bytes: usize);
}

/// A budget without a limit, for tests and small tables.
#[derive(Debug, Clone, Copy)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn grow(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn shrink(&self, _bytes: usize) {}
}

/// One quasi-identifier as the policy resolved it: what the class table needs to know of it.
#[derive(Debug, Clone)]
pub struct QuasiColumn {
    /// The column's name.
    pub name: String,
    /// Its levels.
    pub hierarchy: Hierarchy,
    /// Its weight in the loss, above 0; only the ratio to the other columns' weights matters.
    pub weight: f64,
}

/// Memory taken from a budget, given back when dropped.
struct Held {
    budget: Arc<dyn Budget>,
    bytes: usize,
}

impl Held {
    fn new(budget: &Arc<dyn Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Takes what is missing to `bytes`.
    fn at_least(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            self.budget.grow(bytes - self.bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.shrink(self.bytes);
    }
}

/// The classes of one node: packed codes and rows, one entry a class, in no order that means anything. The
/// memory comes out of the table's budget.
pub struct Classes {
    keys: Vec<u64>,
    rows: Vec<u64>,
    held: Held,
}

impl std::fmt::Debug for Classes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Classes({})", self.len())
    }
}

impl Classes {
    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no class.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows of each class.
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// The bytes this takes.
    pub fn bytes(&self) -> usize {
        (self.keys.capacity() + self.rows.capacity()) * size_of::<u64>()
    }
}

/// The base classes of a table and the codes of its quasi-identifiers at every level.
pub struct ClassTable {
    columns: Vec<CodedColumn>,
    packing: Packing,
    base: Classes,
    total_rows: u64,
}

impl std::fmt::Debug for ClassTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClassTable({} columns, {} base classes)", self.columns.len(), self.base.len())
    }
}

impl ClassTable {
    /// The coded quasi-identifiers in policy order.
    pub fn columns(&self) -> &[CodedColumn] {
        &self.columns
    }

    /// The classes at level 0 of every column.
    pub fn base(&self) -> &Classes {
        &self.base
    }

    /// n, the rows of the input.
    pub fn total_rows(&self) -> u64 {
        self.total_rows
    }

    /// The top level of every column.
    pub fn heights(&self) -> Vec<usize> {
        self.columns.iter().map(CodedColumn::height).collect()
    }

    /// The label code of a class of a node in one column.
    pub fn code(&self, classes: &Classes, class: usize, column: usize) -> u32 {
        self.packing.get(&classes.keys, class, column)
    }

    /// The classes of the node `to`, from those of a node `from` that is nowhere above it.
    ///
    /// # Errors
    /// An internal error when `from` is above `to` in some column, a data error when memory runs out.
    pub fn roll_up(&self, classes: &Classes, from: &[usize], to: &[usize]) -> Result<Classes> {
        let mut changed = Vec::new();
        for (column, coded) in self.columns.iter().enumerate() {
            if from[column] != to[column] {
                changed.push((column, coded.map(from[column], to[column])?));
            }
        }
        let words = self.packing.words();
        let mut rolled =
            Classes { keys: Vec::new(), rows: Vec::new(), held: Held::new(&self.base.held.budget) };
        let mut index: HashTable<u32> = HashTable::new();
        let mut key = vec![0u64; words];
        for (class, source) in classes.keys.chunks_exact(words).enumerate() {
            key.copy_from_slice(source);
            for (column, map) in &changed {
                let code = self.packing.get(&key, 0, *column);
                let coarser =
                    map.get(code as usize).ok_or_else(|| Error::internal("a code without a label"))?;
                self.packing.set(&mut key, *column, *coarser);
            }
            let entry = index.entry(
                mix(&key),
                |at| rolled.keys[*at as usize * words..][..words] == key,
                |at| mix(&rolled.keys[*at as usize * words..][..words]),
            );
            match entry {
                hashbrown::hash_table::Entry::Occupied(at) => {
                    rolled.rows[*at.get() as usize] += classes.rows[class];
                }
                hashbrown::hash_table::Entry::Vacant(slot) => {
                    slot.insert(u32::try_from(rolled.rows.len()).map_err(|_| too_many_classes())?);
                    rolled.keys.extend_from_slice(&key);
                    rolled.rows.push(classes.rows[class]);
                }
            }
        }
        rolled.keys.shrink_to_fit();
        rolled.rows.shrink_to_fit();
        rolled.held.at_least(rolled.bytes())?;
        Ok(rolled)
    }
}

fn too_many_classes() -> Error {
    Error::data("more than 4,294,967,295 base classes: generalize a column first (min_level)")
}

/// A hash of a packed key; only the speed of the roll-up depends on its quality.
fn mix(words: &[u64]) -> u64 {
    words.iter().fold(0x9E37_79B9_7F4A_7C15, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ (mixed >> 32)
    })
}

/// Builds a [`ClassTable`] from the batches of a GROUP BY over the quasi-identifiers, in any order.
pub struct ClassTableBuilder {
    columns: Vec<QuasiColumn>,
    interners: Vec<Interner>,
    codes: Vec<Vec<u32>>,
    rows: Vec<u64>,
    held: Held,
    show_values: bool,
}

impl ClassTableBuilder {
    /// An empty table over these quasi-identifiers.
    ///
    /// # Errors
    /// A policy error when there is no quasi-identifier, a data error for unsupported types.
    pub fn new(columns: Vec<QuasiColumn>, budget: &Arc<dyn Budget>) -> Result<Self> {
        if columns.is_empty() {
            return Err(Error::policy("no quasi-identifier: give at least one column the role `quasi`"));
        }
        let interners =
            columns.iter().map(|c| Interner::new(c.hierarchy.input_type())).collect::<Result<_>>()?;
        let codes = vec![Vec::new(); columns.len()];
        Ok(Self { columns, interners, codes, rows: Vec::new(), held: Held::new(budget), show_values: false })
    }

    /// Whether an error may name the values that a hierarchy does not cover; no cell is named otherwise.
    #[must_use]
    pub fn showing_values(mut self, show_values: bool) -> Self {
        self.show_values = show_values;
        self
    }

    /// Adds base classes: one array a quasi-identifier, in order, and the rows of each class. No class may
    /// come twice.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub fn add(&mut self, values: &[ArrayRef], rows: &[u64]) -> Result<()> {
        for ((interner, codes), array) in self.interners.iter_mut().zip(&mut self.codes).zip(values) {
            if array.len() != rows.len() {
                return Err(Error::internal("a class table batch whose columns differ in length"));
            }
            interner.add(array, codes)?;
        }
        self.rows.extend_from_slice(rows);
        self.account()
    }

    /// Reserves what has been allocated since the last call.
    fn account(&mut self) -> Result<()> {
        let codes: usize = self.codes.iter().map(|c| c.capacity() * size_of::<u32>()).sum();
        let interned: usize = self.interners.iter().map(Interner::bytes).sum();
        self.held.at_least(codes + interned + self.rows.capacity() * size_of::<u64>())
    }

    /// Codes every level and packs the base classes.
    ///
    /// # Errors
    /// Those of the generalizers (values not covered, overflow), named with their column.
    pub fn finish(mut self) -> Result<ClassTable> {
        let heaviest = self.columns.iter().map(|c| c.weight).fold(0.0, f64::max);
        let mut columns = Vec::with_capacity(self.columns.len());
        for ((column, interner), codes) in
            self.columns.drain(..).zip(self.interners.drain(..)).zip(&mut self.codes)
        {
            let (values, ranks) = interner.finish()?;
            let mut frequency = vec![0; values.len()];
            for (code, rows) in codes.iter_mut().zip(&self.rows) {
                *code = ranks[*code as usize];
                frequency[*code as usize] += rows;
            }
            let name = column.name.clone();
            let uncovered =
                if self.show_values { uncovered(&column.hierarchy, &values)? } else { String::new() };
            let coded = CodedColumn::new(column, values, &frequency, heaviest)
                .map_err(|e| Error::of_policy(e).at(format!("columns.{name}.hierarchy")).and(&uncovered))?;
            // A base class stands at level 0, whose labels need not sort like the values: "10" < "9".
            let level_0 = coded.level(0).of_value();
            codes.iter_mut().for_each(|code| *code = level_0[*code as usize]);
            columns.push(coded);
        }
        let packing = Packing::new(columns.iter().map(CodedColumn::distinct));
        let needed = self.rows.len() * (packing.words() + 1) * size_of::<u64>();
        let mut held = Held::new(&self.held.budget);
        held.at_least(needed)?;
        let keys = packing.pack(&self.codes, self.rows.len());
        let total_rows = self.rows.iter().sum();
        let base = Classes { keys, rows: std::mem::take(&mut self.rows), held };
        Ok(ClassTable { columns, packing, base, total_rows })
    }
}

/// The values that no level covers, for an error of a user who asked to see them.
fn uncovered(hierarchy: &Hierarchy, values: &ArrayRef) -> Result<String> {
    for level in hierarchy.levels() {
        let places = level.uncovered(values)?;
        if !places.is_empty() {
            let texts =
                places.iter().map(|place| Ok(Value::read(values, *place)?.text_form().unwrap_or_default()));
            return Ok(format!(": {}", texts.collect::<Result<Vec<_>>>()?.join(", ")));
        }
    }
    Ok(String::new())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use crate::generalize::{Argument, GENERALIZERS};
    use arrow::array::{Int32Array, StringViewArray};

    /// A column for tests: `key` and its numbers, or no hierarchy.
    pub(crate) fn quasi(name: &str, values: &ArrayRef, key: Option<(&str, &[i64])>) -> QuasiColumn {
        let levels = match key {
            None => vec![],
            Some((key, numbers)) => {
                let row = GENERALIZERS.iter().find(|row| row.key == Some(key)).unwrap();
                (row.levels)(&Argument::Numbers(numbers.iter().map(|n| Decimal::integer(*n)).collect()))
                    .unwrap()
            }
        };
        QuasiColumn {
            name: name.into(),
            hierarchy: Hierarchy::new(values.data_type(), levels).unwrap(),
            weight: 1.0,
        }
    }

    /// A class table over columns of equal length, one row each.
    pub(crate) fn table(columns: Vec<(QuasiColumn, ArrayRef)>) -> ClassTable {
        use std::collections::BTreeMap;
        let (quasi, arrays): (Vec<_>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let mut seen: BTreeMap<Vec<String>, (u32, u64)> = BTreeMap::new();
        for row in 0..arrays[0].len() {
            let tuple =
                arrays.iter().map(|a| format!("{:?}", Value::read(a, row).unwrap().text_form())).collect();
            seen.entry(tuple).or_insert((row as u32, 0)).1 += 1;
        }
        let firsts = arrow::array::UInt32Array::from_iter_values(seen.values().map(|(row, _)| *row));
        let values: Vec<ArrayRef> =
            arrays.iter().map(|a| arrow::compute::take(a, &firsts, None).unwrap()).collect();
        let rows: Vec<u64> = seen.values().map(|(_, n)| *n).collect();
        let mut builder = ClassTableBuilder::new(quasi, &(Arc::new(Unlimited) as Arc<dyn Budget>)).unwrap();
        builder.add(&values, &rows).unwrap();
        builder.finish().unwrap()
    }

    /// Samarati & Sweeney 1998: race (as is, person) and ZIP (94138, 9413*, 941**).
    pub(crate) fn samarati() -> ClassTable {
        let race: ArrayRef = Arc::new(StringViewArray::from_iter_values(
            ["asian", "black", "white"].iter().flat_map(|r| std::iter::repeat_n(*r, 4)),
        ));
        let zip: ArrayRef =
            Arc::new(Int32Array::from_iter_values([94138, 94139, 94141, 94142].into_iter().cycle().take(12)));
        table(vec![(quasi("race", &race, None), race), (quasi("zip", &zip, Some(("prefix", &[4, 3]))), zip)])
    }

    #[test]
    fn roll_up_adds_the_rows_of_classes_that_become_equal() {
        let table = samarati();
        let least =
            |to: &[usize]| *table.roll_up(table.base(), &[0, 0], to).unwrap().rows().iter().min().unwrap();
        let expected = [([0, 0], 1), ([0, 1], 2), ([1, 0], 3), ([0, 2], 4), ([1, 1], 6), ([1, 2], 12)];
        for (node, k) in expected {
            assert_eq!(least(&node), k, "{node:?}");
        }
        // From a finer node that is not the base.
        let finer = table.roll_up(table.base(), &[0, 0], &[0, 1]).unwrap();
        let mut rows = table.roll_up(&finer, &[0, 1], &[1, 2]).unwrap().rows().to_vec();
        rows.sort_unstable();
        assert_eq!(rows, [12]);
        assert!(table.roll_up(&finer, &[0, 1], &[0, 0]).is_err());
    }

    #[test]
    fn null_is_a_value() {
        let sex: ArrayRef =
            Arc::new(StringViewArray::from(vec![Some("f"), None, None, Some("f"), Some("m")]));
        let table = table(vec![(quasi("sex", &sex, None), sex)]);
        let mut rows = table.base().rows().to_vec();
        rows.sort_unstable();
        assert_eq!(rows, [1, 2, 2]);
        assert_eq!(table.roll_up(table.base(), &[0], &[1]).unwrap().rows(), [5]);
    }

    #[test]
    fn a_class_table_says_when_memory_runs_out_and_gives_it_back() {
        struct Small(std::sync::Mutex<usize>);
        impl Budget for Small {
            fn grow(&self, bytes: usize) -> Result<()> {
                let mut used = self.0.lock().unwrap();
                if *used + bytes > 100_000 {
                    return Err(Error::data("too much"));
                }
                *used += bytes;
                Ok(())
            }
            fn shrink(&self, bytes: usize) {
                *self.0.lock().unwrap() -= bytes;
            }
        }
        let budget = Arc::new(Small(std::sync::Mutex::new(0)));
        let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..50_000));
        let dynamic: Arc<dyn Budget> = budget.clone();
        let mut builder = ClassTableBuilder::new(vec![quasi("n", &values, None)], &dynamic).unwrap();
        assert!(builder.add(&[values], &vec![1; 50_000]).is_err());
        drop(builder);
        assert_eq!(*budget.0.lock().unwrap(), 0);
    }
}
