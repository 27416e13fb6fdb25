//! The state of an aggregate over classes: the number of rows of each class, per group of the outer
//! GROUP BY. With a sensitive or an individual column, the rows of each value or individual in it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, UInt64Type};
use datafusion::error::Result;
use datafusion::logical_expr::EmitTo;
use hashbrown::HashMap;

use super::interned::{Interned, passes};
use super::listed_classes::{Count, CountedColumns, ListedClasses, See, damaged, is_emitted, left_behind};
use crate::engine::into_engine;
use crate::error::Error;
use crate::model::{Class, SensitiveColumn};

/// The key of one count: a class of a group and, where they are counted, a value and an individual
/// in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Entry {
    group: usize,
    class: u32,
    value: u32,
    individual: u32,
}

/// The number of rows per entry. Tuples are in Arrow's row format: equal tuples have equal bytes,
/// NULL is a value like any other, and there is one zero and one NaN.
pub(super) struct ClassCounts {
    looks: CountedColumns,
    classes: Interned,
    values: Interned,
    individuals: Interned,
    entries: HashMap<Entry, u64>,
}

impl ClassCounts {
    /// Creates an empty state. `types` lists the types of the counted individual and sensitive
    /// columns, then those of the quasi-identifiers. Without quasi-identifiers every group is one
    /// class.
    pub(super) fn new(looks: CountedColumns, types: &[DataType]) -> Result<Self> {
        let (before, quasi) = types.split_at_checked(looks.columns()).ok_or_else(damaged)?;
        let (individual, value) = before.split_at(usize::from(looks.individual));
        Ok(Self {
            looks,
            individuals: Interned::new(individual)?,
            values: Interned::new(value)?,
            classes: Interned::new(quasi)?,
            entries: HashMap::new(),
        })
    }

    /// Returns the entries of the emitted groups, in order.
    fn sorted(&self, emit: EmitTo) -> Vec<(Entry, u64)> {
        let entries = self.entries.iter().map(|(entry, rows)| (*entry, *rows));
        let mut entries: Vec<_> = entries.filter(|(entry, _)| is_emitted(emit, entry.group)).collect();
        entries.sort_unstable();
        entries
    }

    /// Returns the fields of [`state`](Self::state): lists of equal length with one item per entry.
    pub(super) fn state_fields(looks: CountedColumns, has_quasi: bool) -> Vec<(&'static str, DataType)> {
        let tuples = [("classes", has_quasi), ("values", looks.sensitive), ("individuals", looks.individual)];
        let tuples = tuples.into_iter().filter(|(_, is_there)| *is_there);
        let tuples = tuples.map(|(name, _)| (name, list_of(DataType::LargeBinary)));
        tuples.chain([("rows", list_of(DataType::UInt64))]).collect()
    }

    /// Adds rows: the columns in the order of the types, the group of each row, and the row's weight,
    /// 1 where none is given.
    pub(super) fn update(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        weights: Option<&Int64Array>,
    ) -> Result<()> {
        let (before, quasi) = columns.split_at_checked(self.looks.columns()).ok_or_else(damaged)?;
        let (individual, value) = before.split_at(usize::from(self.looks.individual));
        let (classes, values) = (self.classes.numbers(quasi, filter)?, self.values.numbers(value, filter)?);
        let individuals = self.individuals.numbers(individual, filter)?;
        let at = |numbers: &[u32], row: usize| numbers.get(row).copied().unwrap_or(0);
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| passes(filter, *row)) {
            let weight = match weights {
                None => 1,
                Some(weights) if weights.is_null(row) => 0,
                Some(weights) => u64::try_from(weights.value(row)).map_err(|_| damaged())?,
            };
            if weight > 0 {
                let (class, value) = (at(&classes, row), at(&values, row));
                let entry = Entry { group: *group, class, value, individual: at(&individuals, row) };
                *self.entries.entry(entry).or_default() += weight;
            }
        }
        Ok(())
    }

    /// Calls `see` for each class of the emitted groups; a model reads these facts of `column`.
    pub(super) fn for_each_class(
        &self,
        emit: EmitTo,
        column: &SensitiveColumn,
        see: &mut See<'_>,
    ) -> Result<()> {
        if self.looks.columns() == 0 {
            for (entry, rows) in self.entries.iter().filter(|(entry, _)| is_emitted(emit, entry.group)) {
                see(entry.group, &[], 0, &Class::of_size(*rows));
            }
            return Ok(());
        }
        let mut classes = ListedClasses::default();
        for class in self.sorted(emit).chunk_by(|(a, _), (b, _)| (a.group, a.class) == (b.group, b.class)) {
            let Some((Entry { group, .. }, _)) = class.first() else { continue };
            let counts = class.iter().map(|(entry, rows)| {
                Ok(Count { value: entry.value, individual: entry.individual, rows: *rows })
            });
            classes.add(*group, counts)?;
        }
        classes.for_each_class(EmitTo::All, self.looks, &self.values, std::slice::from_ref(column), see)
    }

    /// Returns the counts of each of the `groups` emitted groups, for [`merge`](Self::merge) in
    /// another state.
    pub(super) fn state(&self, emit: EmitTo, groups: usize) -> Result<Vec<ArrayRef>> {
        let entries = self.sorted(emit);
        let mut lengths = vec![0usize; groups];
        for (entry, _) in &entries {
            *lengths.get_mut(entry.group).ok_or_else(damaged)? += 1;
        }
        let numbers: [fn(&Entry) -> u32; 3] =
            [|entry| entry.class, |entry| entry.value, |entry| entry.individual];
        let columns = [&self.classes, &self.values, &self.individuals].into_iter().zip(numbers);
        let tuples = columns
            .filter(|(interned, _)| interned.has_columns())
            .map(|(interned, number)| interned.tuples(entries.iter().map(|(entry, _)| number(entry))));
        let mut items: Vec<ArrayRef> = tuples.collect();
        items.push(Arc::new(UInt64Array::from_iter_values(entries.iter().map(|(_, rows)| *rows))));
        items.into_iter().map(|items| lists(items, lengths.iter().copied())).collect()
    }

    /// Returns the state of groups of one row each; rows that `filter` drops count nothing.
    pub(super) fn state_of_rows(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        weights: Option<&Int64Array>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = columns.first().map_or_else(|| weights.map_or(0, Array::len), Array::len);
        let types = [&self.individuals, &self.values, &self.classes].map(Interned::types).concat();
        let mut alone = Self::new(self.looks, &types)?;
        alone.update(columns, &(0..rows).collect::<Vec<_>>(), filter, weights)?;
        alone.state(EmitTo::All, rows)
    }

    /// Adds the counts of other states to these groups.
    pub(super) fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let (rows, tuples) = states.split_last().ok_or_else(damaged)?;
        let rows = rows.as_list_opt::<i32>().ok_or_else(damaged)?;
        let mut tuples = tuples.iter();
        let classes = self.classes.numbers_of_state(&mut tuples)?;
        let values = self.values.numbers_of_state(&mut tuples)?;
        let individuals = self.individuals.numbers_of_state(&mut tuples)?;
        let at = |numbers: &[u32], item: usize| numbers.get(item).copied().unwrap_or(0);
        let counts = rows.values().as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?;
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| rows.is_valid(*row)) {
            let offsets = rows.value_offsets();
            let (start, end) = (usize::try_from(offsets[row]), usize::try_from(offsets[row + 1]));
            for item in start.map_err(|_| damaged())?..end.map_err(|_| damaged())? {
                let (class, value) = (at(&classes, item), at(&values, item));
                let entry = Entry { group: *group, class, value, individual: at(&individuals, item) };
                *self.entries.entry(entry).or_default() += counts.value(item);
            }
        }
        Ok(())
    }

    /// Removes the emitted groups and moves the groups behind them to the front.
    pub(super) fn forget(&mut self, emit: EmitTo) -> Result<()> {
        let entries = std::mem::take(&mut self.entries).into_iter();
        let left = entries.filter_map(|(entry, rows)| {
            left_behind(emit, entry.group).map(|group| (Entry { group, ..entry }, rows))
        });
        let mut left: Vec<(Entry, u64)> = left.collect();
        // Groups end one after the other, so tuples that only ended groups had are dropped.
        let known = [&self.classes, &self.values, &self.individuals].map(Interned::len);
        if known.into_iter().any(|known| known > 2 * left.len()) {
            let (classes, values) = (self.classes.take(), self.values.take());
            let individuals = self.individuals.take();
            for (entry, _) in &mut left {
                entry.class = self.classes.again(&classes, entry.class)?;
                entry.value = self.values.again(&values, entry.value)?;
                entry.individual = self.individuals.again(&individuals, entry.individual)?;
            }
        }
        self.entries = left.into_iter().collect();
        Ok(())
    }

    /// Returns the memory used, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let interned = [&self.classes, &self.values, &self.individuals];
        size_of_val(self)
            + interned.into_iter().map(Interned::bytes).sum::<usize>()
            + self.entries.allocation_size()
    }
}

/// Returns the type of [`lists`] of these items. Offsets of 64 bits would not survive Arrow Flight,
/// which announces such lists as lists with offsets of 32 bits.
pub(super) fn list_of(items: DataType) -> DataType {
    DataType::List(item_field(items))
}

fn item_field(items: DataType) -> FieldRef {
    Arc::new(Field::new_list_field(items, true))
}

/// Returns lists of these lengths, which together hold the items.
///
/// # Errors
/// When there are more items than offsets of 32 bits can count.
pub(super) fn lists(items: ArrayRef, lengths: impl Iterator<Item = usize>) -> Result<ArrayRef> {
    lists_of_at_most(i32::MAX, items, lengths)
}

fn lists_of_at_most(most: i32, items: ArrayRef, lengths: impl Iterator<Item = usize>) -> Result<ArrayRef> {
    if i32::try_from(items.len()).map_or(true, |items| items > most) {
        return Err(into_engine(Error::data(format!(
            "a measure has {} different counts in one partition, and at most {most} can be passed on; use \
             more partitions (--threads), or count fewer rows at once",
            items.len()
        ))));
    }
    let field = item_field(items.data_type().clone());
    Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), items, None)?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, StringArray};

    use super::*;

    const ROWS: CountedColumns = CountedColumns { individual: false, sensitive: false, compared: false };
    const BOTH: CountedColumns = CountedColumns { individual: true, sensitive: true, compared: false };

    fn columns(numbers: &[Option<f64>], texts: &[Option<&str>]) -> [ArrayRef; 2] {
        [Arc::new(Float64Array::from(numbers.to_vec())), Arc::new(StringArray::from(texts.to_vec()))]
    }

    fn counts() -> ClassCounts {
        ClassCounts::new(ROWS, &[DataType::Float64, DataType::Utf8]).unwrap()
    }

    /// Returns the group, the size and the value counts of each class.
    fn seen(counts: &ClassCounts, emit: EmitTo) -> Vec<(usize, u64, Vec<u64>)> {
        let mut all = Vec::new();
        let mut see = |group: usize, _: &[u32], _: usize, class: &Class<'_>| {
            let mut of_values: Vec<u64> = class.sensitive.iter().map(|value| value.count).collect();
            of_values.sort_unstable();
            all.push((group, class.size, of_values));
        };
        counts.for_each_class(emit, &"value".into(), &mut see).unwrap();
        all.sort();
        all
    }

    fn sizes(counts: &ClassCounts) -> Vec<u64> {
        let mut sizes: Vec<u64> = seen(counts, EmitTo::All).into_iter().map(|(_, size, _)| size).collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn null_zero_and_nan_are_one_value_each() {
        let mut counts = counts();
        let numbers = [None, None, Some(0.0), Some(-0.0), Some(f64::NAN), Some(-f64::NAN)];
        let texts = [None, Some(""), None, None, None, None];
        counts.update(&columns(&numbers, &texts), &[0; 6], None, None).unwrap();
        assert_eq!(sizes(&counts), [1, 1, 2, 2]);
    }

    #[test]
    fn states_merge_to_what_one_would_have_counted() {
        let texts = ["a", "b", "a", "a", "c", "b"].map(Some);
        let mut whole = counts();
        whole.update(&columns(&[None; 6], &texts), &[0, 0, 0, 1, 1, 1], None, None).unwrap();
        let mut merged = counts();
        for (part, texts) in texts.chunks(2).chain([&[][..]]).enumerate() {
            let columns = columns(&vec![None; texts.len()], texts);
            let groups: Vec<usize> =
                [0, 0, 0, 1, 1, 1].into_iter().skip(2 * part).take(texts.len()).collect();
            let (mut counts, both) = (counts(), groups.iter().max().map_or(0, |last| last + 1));
            counts.update(&columns, &groups, None, None).unwrap();
            let state = counts.state(EmitTo::All, both).unwrap();
            let types: Vec<DataType> = state.iter().map(|state| state.data_type().clone()).collect();
            let fields = ClassCounts::state_fields(ROWS, true).into_iter().map(|(_, of)| of);
            assert_eq!(types, fields.collect::<Vec<_>>());
            merged.merge(&state, &(0..both).collect::<Vec<_>>()).unwrap();
        }
        assert_eq!(seen(&merged, EmitTo::All), seen(&whole, EmitTo::All));
        assert_eq!(sizes(&whole), [1, 1, 1, 1, 2]);
        // Each row is a group of its own.
        let all = columns(&[None; 6], &texts);
        let filter =
            BooleanArray::from(vec![Some(true), Some(true), Some(true), Some(false), None, Some(true)]);
        let state = whole.state_of_rows(&all, Some(&filter), None).unwrap();
        let mut rows = counts();
        rows.merge(&state, &[0; 6]).unwrap();
        assert_eq!(sizes(&rows), [2, 2]);
        assert!(merged.merge(&[], &[]).is_err());
    }

    #[test]
    fn more_items_than_offsets_can_count_are_refused() {
        let items: ArrayRef = Arc::new(UInt64Array::from(vec![1, 2, 3]));
        let of = |most| lists_of_at_most(most, Arc::clone(&items), [2, 1].into_iter());
        let lists = of(3).unwrap();
        assert_eq!(*lists.data_type(), list_of(DataType::UInt64));
        assert_eq!(lists.as_list::<i32>().value_offsets(), [0, 2, 3]);
        let error = of(2).unwrap_err().to_string();
        assert!(error.contains("3 different counts") && error.contains("at most 2"), "{error}");
    }

    #[test]
    fn individuals_count_once_and_missing_ones_not() {
        let mut counts =
            ClassCounts::new(BOTH, &[DataType::Utf8, DataType::Float64, DataType::Utf8]).unwrap();
        let individual: ArrayRef =
            Arc::new(StringArray::from(vec![Some("ann"), Some("ann"), Some("bob"), Some("bob"), None, None]));
        let [value, class] = columns(
            &[Some(1.0), Some(2.0), Some(1.0), Some(1.0), Some(3.0), None],
            &[Some("x"), Some("x"), Some("x"), Some("x"), Some("x"), Some("y")],
        );
        let all = [individual, value, class];
        counts.update(&all, &[0; 6], None, None).unwrap();
        assert_eq!(seen(&counts, EmitTo::All), [(0, 0, vec![]), (0, 2, vec![1, 2])]);
        let weights = Int64Array::from(vec![Some(0), None, Some(5), Some(0), Some(1), Some(0)]);
        let mut weighted =
            ClassCounts::new(BOTH, &[DataType::Utf8, DataType::Float64, DataType::Utf8]).unwrap();
        weighted.update(&all, &[0; 6], None, Some(&weights)).unwrap();
        assert_eq!(seen(&weighted, EmitTo::All), [(0, 1, vec![1])]);
    }

    #[test]
    fn groups_that_end_are_forgotten() {
        let mut counts = counts();
        for group in 0..1000usize {
            let texts: Vec<String> = (0..20).map(|n| format!("{:0100}", group * 20 + n)).collect();
            let texts: Vec<Option<&str>> = texts.iter().map(|text| Some(text.as_str())).collect();
            // The group before is complete.
            let here = usize::from(group > 0);
            counts.update(&columns(&[None; 20], &texts), &[here; 20], None, None).unwrap();
            if here == 1 {
                assert_eq!(seen(&counts, EmitTo::First(1)).len(), 20);
                counts.forget(EmitTo::First(1)).unwrap();
            }
        }
        assert_eq!(seen(&counts, EmitTo::All), vec![(0, 1, vec![]); 20]);
        assert!(counts.bytes() < 100_000, "{}", counts.bytes());
    }

    #[test]
    fn bytes_grow_with_the_classes() {
        let mut counts = counts();
        let texts: Vec<String> = (0..1000).map(|n| format!("{n:0100}")).collect();
        let texts: Vec<Option<&str>> = texts.iter().map(|text| Some(text.as_str())).collect();
        let all = columns(&vec![None; 1000], &texts);
        let empty = counts.bytes();
        counts.update(&all, &[0; 1000], None, None).unwrap();
        let full = counts.bytes();
        assert!(full - empty > 1000 * (100 + 16 + 8), "{}", full - empty);
        counts.update(&all, &[0; 1000], None, None).unwrap();
        assert_eq!(counts.bytes(), full);
    }
}
