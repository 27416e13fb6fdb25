//! The state of a measure that compares each class with all of its group, where the classes are
//! counted already: one list of counts per class.
//!
//! What the group is compared with is known only after the last class, so all counts are kept.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, LargeBinaryBuilder, UInt64Array};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::EmitTo;

use super::class_counts::{list_of, lists};
use super::class_entries::{
    CountedClasses, CountedColumns, Entry, See, damaged, for_each_class, is_emitted, left_behind,
};
use super::interned::{Interned, NULL, passes};
use crate::model::SensitiveColumn;

/// The counts of all classes. Values and individuals are numbered as in
/// [`ClassCounts`](super::class_counts::ClassCounts), classes in the order of arrival.
pub(super) struct ComparedClasses {
    looks: CountedColumns,
    values: Interned,
    individuals: Interned,
    entries: Vec<(Entry, u64)>,
    classes: u32,
}

impl ComparedClasses {
    /// Creates an empty state for lists of this type: of structs that have the individual, where it
    /// is counted, the sensitive value, and their number of rows.
    pub(super) fn new(looks: CountedColumns, list: &DataType) -> Result<Self> {
        let DataType::List(item) = list else { return Err(damaged()) };
        let DataType::Struct(fields) = item.data_type() else { return Err(damaged()) };
        let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
        let columns = types.get(..looks.columns()).ok_or_else(damaged)?;
        let (individual, value) = columns.split_at(usize::from(looks.individual));
        Ok(Self {
            looks,
            values: Interned::new(value)?,
            individuals: Interned::new(individual)?,
            entries: Vec::new(),
            classes: 0,
        })
    }

    /// Returns the fields of [`state`](CountedClasses::state): lists with one item per count, and
    /// one of the number of counts of each class.
    pub(super) fn state_fields(looks: CountedColumns) -> Vec<(&'static str, DataType)> {
        let individuals = looks.individual.then(|| ("individuals", list_of(DataType::LargeBinary)));
        let counts = ["rows", "counts"].map(|name| (name, list_of(DataType::UInt64)));
        [("values", list_of(DataType::LargeBinary))].into_iter().chain(individuals).chain(counts).collect()
    }

    /// Adds a class: the numbers of its values and individuals with their rows.
    fn add(&mut self, group: usize, counts: impl Iterator<Item = (u32, u32, u64)>) -> Result<()> {
        let class = self.classes;
        self.classes = class
            .checked_add(1)
            .ok_or_else(|| DataFusionError::ResourcesExhausted("more than 4,294,967,295 classes".into()))?;
        let entry = |(value, individual, rows)| (Entry { group, class, value, individual }, rows);
        self.entries.extend(counts.map(entry));
        Ok(())
    }

    /// Returns the entries of the emitted groups, in order.
    fn sorted(&self, emit: EmitTo) -> Vec<(Entry, u64)> {
        let emitted = self.entries.iter().filter(|(entry, _)| is_emitted(emit, entry));
        let mut entries: Vec<(Entry, u64)> = emitted.copied().collect();
        entries.sort_unstable();
        entries
    }
}

impl CountedClasses for ComparedClasses {
    /// The one column has a list of counts per class; NULL is no class.
    fn update(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        _weights: Option<&Int64Array>,
    ) -> Result<()> {
        let [classes] = columns else { return Err(damaged()) };
        let classes = classes.as_list_opt::<i32>().ok_or_else(damaged)?;
        let ends: Vec<usize> =
            classes.value_offsets().iter().filter_map(|end| (*end).try_into().ok()).collect();
        let (Some(first), Some(last)) = (ends.first(), ends.last()) else { return Err(damaged()) };
        // The items may be those of a larger batch.
        let items = classes.values().slice(*first, last - first);
        let items = items.as_struct_opt().ok_or_else(damaged)?;
        let (rows, columns) = items.columns().split_last().ok_or_else(damaged)?;
        let (individual, value) =
            columns.split_at_checked(usize::from(self.looks.individual)).ok_or_else(damaged)?;
        let (values, individuals) =
            (self.values.numbers(value, None)?, self.individuals.numbers(individual, None)?);
        let rows = rows.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
        let rows: Vec<u64> = rows
            .values()
            .iter()
            .map(|rows| u64::try_from(*rows).map_err(|_| damaged()))
            .collect::<Result<_>>()?;
        let individual = |item: usize| individuals.get(item).copied().unwrap_or(0);
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| passes(filter, *row)) {
            if let (true, [start, end]) = (classes.is_valid(row), &ends[row..row + 2]) {
                let items = start - first..end - first;
                self.add(*group, items.map(|item| (values[item], individual(item), rows[item])))?;
            }
        }
        Ok(())
    }

    fn for_each_class(&self, emit: EmitTo, column: &SensitiveColumn, see: &mut See<'_>) -> Result<()> {
        for_each_class(self.looks, self.sorted(emit), &self.values, column, see)
    }

    fn state(&self, emit: EmitTo, groups: usize) -> Result<Vec<ArrayRef>> {
        let groups = if let EmitTo::First(first) = emit { first } else { groups };
        let entries = self.sorted(emit);
        let (mut counts, mut classes) = (vec![0usize; groups], vec![0usize; groups]);
        let mut of_class: Vec<u64> = Vec::new();
        for class in entries.chunk_by(|(a, _), (b, _)| a.class == b.class) {
            let Some((entry, _)) = class.first() else { continue };
            *counts.get_mut(entry.group).ok_or_else(damaged)? += class.len();
            *classes.get_mut(entry.group).ok_or_else(damaged)? += 1;
            of_class.push(class.len() as u64);
        }
        let tuples = |interned: &Interned, number: fn(&Entry) -> u32| {
            let mut tuples = LargeBinaryBuilder::with_capacity(entries.len(), 0);
            entries.iter().for_each(|(entry, _)| tuples.append_option(interned.tuple(number(entry))));
            Arc::new(tuples.finish()) as ArrayRef
        };
        let mut state = vec![lists(tuples(&self.values, |entry| entry.value), counts.iter().copied())?];
        if self.looks.individual {
            state.push(lists(tuples(&self.individuals, |entry| entry.individual), counts.iter().copied())?);
        }
        let rows = UInt64Array::from_iter_values(entries.iter().map(|(_, rows)| *rows));
        state.push(lists(Arc::new(rows), counts.iter().copied())?);
        state.push(lists(Arc::new(UInt64Array::from(of_class)), classes.iter().copied())?);
        Ok(state)
    }

    fn state_of_rows(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        weights: Option<&Int64Array>,
    ) -> Result<Vec<ArrayRef>> {
        let [classes] = columns else { return Err(damaged()) };
        let mut alone = Self::new(self.looks, classes.data_type())?;
        alone.update(columns, &(0..classes.len()).collect::<Vec<_>>(), filter, weights)?;
        alone.state(EmitTo::All, classes.len())
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let [tuples @ .., rows, counts] = states else { return Err(damaged()) };
        let mut tuples = tuples.iter();
        let mut numbers = |interned: &mut Interned| -> Result<Vec<u32>> {
            if !interned.has_columns() {
                return Ok(Vec::new());
            }
            let list = tuples.next().and_then(|list| list.as_list_opt::<i64>()).ok_or_else(damaged)?;
            let tuples = list.values().as_binary_opt::<i64>().ok_or_else(damaged)?;
            tuples.iter().map(|tuple| tuple.map_or(Ok(NULL), |tuple| interned.number(tuple))).collect()
        };
        let (values, individuals) = (numbers(&mut self.values)?, numbers(&mut self.individuals)?);
        let individual = |item: usize| individuals.get(item).copied().unwrap_or(0);
        let (rows, counts) = (
            rows.as_list_opt::<i64>().ok_or_else(damaged)?,
            counts.as_list_opt::<i64>().ok_or_else(damaged)?,
        );
        let start = |row: usize| usize::try_from(rows.value_offsets()[row]).map_err(|_| damaged());
        let numbers_of = rows.values().as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?;
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| rows.is_valid(*row)) {
            let mut start = start(row)?;
            let of_classes = counts.value(row);
            for count in of_classes.as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?.values() {
                let end = usize::try_from(*count).ok().and_then(|count| start.checked_add(count));
                let end = end.filter(|end| *end <= numbers_of.len()).ok_or_else(damaged)?;
                self.add(
                    *group,
                    (start..end).map(|item| (values[item], individual(item), numbers_of.value(item))),
                )?;
                start = end;
            }
        }
        Ok(())
    }

    fn forget(&mut self, emit: EmitTo) -> Result<()> {
        let mut left = left_behind(emit, std::mem::take(&mut self.entries).into_iter());
        // Groups end one after the other, so tuples that only ended groups had are dropped.
        if self.values.len().max(self.individuals.len()) > 2 * left.len() {
            let (values, individuals) = (self.values.take(), self.individuals.take());
            for (entry, _) in &mut left {
                entry.value = self.values.again(&values, entry.value)?;
                entry.individual = self.individuals.again(&individuals, entry.individual)?;
            }
        }
        self.entries = left;
        Ok(())
    }

    fn bytes(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<(Entry, u64)>();
        size_of_val(self) + entries + self.values.bytes() + self.individuals.bytes()
    }
}
