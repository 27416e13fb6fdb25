//! The state of a measure that reads the values of its whole group, where the classes are counted
//! already: one list of counts per class.
//!
//! The values of the group are known only after the last class, so all counts are kept.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::EmitTo;

use super::class_counts::{list_of, lists};
use super::class_entries::{
    CountedClasses, CountedColumns, Entry, See, damaged, for_each_class, left_behind, sorted,
};
use super::interned::{Interned, passes};
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
    fn add(&mut self, group: usize, counts: impl Iterator<Item = Result<(u32, u32, u64)>>) -> Result<()> {
        let class = self.classes;
        self.classes = class
            .checked_add(1)
            .ok_or_else(|| DataFusionError::ResourcesExhausted("more than 4,294,967,295 classes".into()))?;
        for count in counts {
            let (value, individual, rows) = count?;
            self.entries.push((Entry { group, class, value, individual }, rows));
        }
        Ok(())
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
            if let (true, Some([start, end])) = (classes.is_valid(row), ends.get(row..row + 2)) {
                let counts = (start - first..end - first).map(|item| {
                    let (value, rows) = values.get(item).zip(rows.get(item)).ok_or_else(damaged)?;
                    Ok((*value, individual(item), *rows))
                });
                self.add(*group, counts)?;
            }
        }
        Ok(())
    }

    fn for_each_class(&self, emit: EmitTo, column: &SensitiveColumn, see: &mut See<'_>) -> Result<()> {
        for_each_class(self.looks, sorted(self.entries.iter().copied(), emit), &self.values, column, see)
    }

    fn state(&self, emit: EmitTo, groups: usize) -> Result<Vec<ArrayRef>> {
        let groups = if let EmitTo::First(first) = emit { first } else { groups };
        let entries = sorted(self.entries.iter().copied(), emit);
        let (mut counts, mut classes) = (vec![0usize; groups], vec![0usize; groups]);
        let mut of_class: Vec<u64> = Vec::new();
        for class in entries.chunk_by(|(a, _), (b, _)| a.class == b.class) {
            let Some((entry, _)) = class.first() else { continue };
            *counts.get_mut(entry.group).ok_or_else(damaged)? += class.len();
            *classes.get_mut(entry.group).ok_or_else(damaged)? += 1;
            of_class.push(class.len() as u64);
        }
        let values = self.values.tuples(entries.iter().map(|(entry, _)| entry.value));
        let mut state = vec![lists(values, counts.iter().copied())?];
        if self.looks.individual {
            let individuals = self.individuals.tuples(entries.iter().map(|(entry, _)| entry.individual));
            state.push(lists(individuals, counts.iter().copied())?);
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
        let values = self.values.numbers_of_state(&mut tuples)?;
        let individuals = self.individuals.numbers_of_state(&mut tuples)?;
        let individual = |item: usize| individuals.get(item).copied().unwrap_or(0);
        let (rows, counts) = (
            rows.as_list_opt::<i64>().ok_or_else(damaged)?,
            counts.as_list_opt::<i64>().ok_or_else(damaged)?,
        );
        let ends = |row: usize| {
            let ends = rows.value_offsets().get(row..row + 2).ok_or_else(damaged)?;
            let end = |at: usize| usize::try_from(ends[at]).map_err(|_| damaged());
            Ok::<_, DataFusionError>((end(0)?, end(1)?))
        };
        let numbers_of = rows.values().as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?;
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| rows.is_valid(*row)) {
            let (mut start, last) = ends(row)?;
            let of_classes = counts.value(row);
            for count in of_classes.as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?.values() {
                let end = usize::try_from(*count).ok().and_then(|count| start.checked_add(count));
                let end = end.filter(|end| *end <= last).ok_or_else(damaged)?;
                let counts = (start..end).map(|item| {
                    let value = values.get(item).ok_or_else(damaged)?;
                    Ok((*value, individual(item), numbers_of.value(item)))
                });
                self.add(*group, counts)?;
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
