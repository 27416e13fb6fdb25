//! The state of [`compared_of_classes`](super::compared_of_classes): the counts of all classes of each
//! group.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Int64Type, UInt32Type, UInt64Type};
use datafusion::error::Result;
use datafusion::logical_expr::EmitTo;

use super::class_counts::{list_of, lists};
use super::interned::{Interned, NULL, passes};
use super::listed_classes::{Count, CountedColumns, ListedClasses, See, damaged, left_behind};
use crate::model::SensitiveColumn;

/// The counts of all classes, in the order of arrival. Values and individuals are numbered as in
/// [`ClassCounts`](super::class_counts::ClassCounts).
pub(super) struct ComparedClasses {
    looks: CountedColumns,
    values: Interned,
    individuals: Interned,
    listed: ListedClasses,
}

impl ComparedClasses {
    /// Creates an empty state for lists of this type.
    pub(super) fn new(list: &DataType) -> Result<Self> {
        let (types, looks) = (types_of(list)?, counted_columns(list)?);
        let columns = types.get(..looks.columns()).ok_or_else(damaged)?;
        let (individual, value) = columns.split_at(usize::from(looks.individual));
        Ok(Self {
            looks,
            values: Interned::new(value)?,
            individuals: Interned::new(individual)?,
            listed: ListedClasses::default(),
        })
    }

    /// Returns the fields of [`state`](Self::state) for lists of this type.
    pub(super) fn state_fields(list: &DataType) -> Result<Vec<(&'static str, DataType)>> {
        let mut fields = vec![("values", DataType::LargeBinary), ("value_of_counts", DataType::UInt32)];
        if counted_columns(list)?.individual {
            fields
                .extend([("individuals", DataType::LargeBinary), ("individual_of_counts", DataType::UInt32)]);
        }
        fields.extend([("rows", DataType::UInt64), ("counts", DataType::UInt64)]);
        Ok(fields.into_iter().map(|(name, items)| (name, list_of(items))).collect())
    }

    /// Calls `see` for each class of the emitted groups and each of `columns`, which are the facts
    /// that models read of the values.
    pub(super) fn for_each_class(
        &self,
        emit: EmitTo,
        columns: &[SensitiveColumn],
        see: &mut See<'_>,
    ) -> Result<()> {
        self.listed.for_each_class(emit, self.looks, &self.values, columns, see)
    }

    /// Adds a list of counts per class.
    pub(super) fn update(
        &mut self,
        classes: &ArrayRef,
        groups: &[usize],
        filter: Option<&BooleanArray>,
    ) -> Result<()> {
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
        let rows = rows.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?.values();
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| passes(filter, *row)) {
            if let (true, Some([start, end])) = (classes.is_valid(row), ends.get(row..row + 2)) {
                let counts = (start - first..end - first).map(|item| {
                    let rows = rows.get(item).and_then(|rows| u64::try_from(*rows).ok());
                    let (value, rows) = values.get(item).zip(rows).ok_or_else(damaged)?;
                    Ok(Count { value: *value, individual: number_at(&individuals, item), rows })
                });
                self.listed.add(*group, counts)?;
            }
        }
        Ok(())
    }

    /// Returns, for each of the `groups` emitted groups, lists of its distinct tuples, of the tuple
    /// of each count (from 0 in this group), of the rows of each count, and of each class's number of
    /// counts.
    pub(super) fn state(&self, emit: EmitTo, groups: usize) -> Result<Vec<ArrayRef>> {
        let classes = self.listed.emitted(emit);
        let (mut counts, mut of_group) = (vec![0usize; groups], vec![0usize; groups]);
        for (group, class) in &classes {
            *counts.get_mut(*group).ok_or_else(damaged)? += class.len();
            *of_group.get_mut(*group).ok_or_else(damaged)? += 1;
        }
        let mut state: Vec<ArrayRef> = Vec::new();
        state.extend(tuples_of_groups(&self.values, |count| count.value, &classes, &counts)?);
        if self.looks.individual {
            let of_count = |count: &Count| count.individual;
            state.extend(tuples_of_groups(&self.individuals, of_count, &classes, &counts)?);
        }
        let rows = classes.iter().flat_map(|(_, class)| class.iter().map(|count| count.rows));
        let rows = UInt64Array::from_iter_values(rows);
        state.push(lists(Arc::new(rows), counts.iter().copied())?);
        let lengths = UInt64Array::from_iter_values(classes.iter().map(|(_, class)| class.len() as u64));
        state.push(lists(Arc::new(lengths), of_group.into_iter())?);
        Ok(state)
    }

    /// Adds the counts of other states to these groups.
    pub(super) fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let [tuples @ .., rows, lengths] = states else { return Err(damaged()) };
        let mut tuples = tuples.iter();
        let values = StateNumbers::read(&mut self.values, &mut tuples)?;
        let individuals = StateNumbers::read(&mut self.individuals, &mut tuples)?;
        let (rows, lengths) = (
            rows.as_list_opt::<i32>().ok_or_else(damaged)?,
            lengths.as_list_opt::<i32>().ok_or_else(damaged)?,
        );
        let of_counts = rows.values().as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?.values();
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| rows.is_valid(*row)) {
            let end = |at: usize| rows.value_offsets().get(at).and_then(|end| usize::try_from(*end).ok());
            let (mut start, last) = end(row).zip(end(row + 1)).ok_or_else(damaged)?;
            let lengths = lengths.value(row);
            for length in lengths.as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?.values() {
                let end = usize::try_from(*length).ok().and_then(|length| start.checked_add(length));
                let end = end.filter(|end| *end <= last).ok_or_else(damaged)?;
                let counts = (start..end).map(|item| {
                    Ok(Count {
                        value: values.of_count(row, item)?,
                        individual: individuals.of_count(row, item)?,
                        rows: *of_counts.get(item).ok_or_else(damaged)?,
                    })
                });
                self.listed.add(*group, counts)?;
                start = end;
            }
        }
        Ok(())
    }

    /// Removes the emitted groups and moves the groups behind them to the front.
    pub(super) fn forget(&mut self, emit: EmitTo) -> Result<()> {
        let before = std::mem::take(&mut self.listed);
        let left = before.iter().filter_map(|(group, counts)| Some((left_behind(emit, group)?, counts)));
        let left: Vec<(usize, &[Count])> = left.collect();
        let counts: usize = left.iter().map(|(_, counts)| counts.len()).sum();
        // Groups end one after the other, so tuples that only ended groups had are dropped.
        let tuples = self.values.len().max(self.individuals.len());
        let ended = (tuples > 2 * counts).then(|| (self.values.take(), self.individuals.take()));
        for (group, counts) in left {
            let counts = counts.iter().map(|count| match &ended {
                None => Ok(*count),
                Some((values, individuals)) => Ok(Count {
                    value: self.values.again(values, count.value)?,
                    individual: self.individuals.again(individuals, count.individual)?,
                    ..*count
                }),
            });
            self.listed.add(group, counts)?;
        }
        Ok(())
    }

    /// Returns the memory used, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.listed.bytes() + self.values.bytes() + self.individuals.bytes()
    }
}

/// Returns, for each group, a list of its distinct tuples and one of the place of each count's tuple
/// among them, [`NULL`] for NULL. `counts` has the number of counts of each group.
fn tuples_of_groups(
    interned: &Interned,
    number: impl Fn(&Count) -> u32,
    classes: &[(usize, &[Count])],
    counts: &[usize],
) -> Result<[ArrayRef; 2]> {
    let (mut tuples, mut of_counts, mut lengths) = (Vec::new(), Vec::new(), vec![0usize; counts.len()]);
    // The place of each tuple in its group, and the group for which it is.
    let mut known: Vec<(usize, u32)> = vec![(usize::MAX, 0); interned.len()];
    for (group, class) in classes {
        let length = lengths.get_mut(*group).ok_or_else(damaged)?;
        for tuple in class.iter().map(&number) {
            let Some(place) = known.get_mut(tuple as usize) else {
                of_counts.push(NULL);
                continue;
            };
            if place.0 != *group {
                *place = (*group, u32::try_from(*length).map_err(|_| damaged())?);
                tuples.push(tuple);
                *length += 1;
            }
            of_counts.push(place.1);
        }
    }
    let tuples = lists(interned.tuples(tuples.into_iter()), lengths.into_iter())?;
    Ok([tuples, lists(Arc::new(UInt32Array::from(of_counts)), counts.iter().copied())?])
}

/// The numbers of the tuples in a state, for each of its groups.
struct StateNumbers<'a> {
    /// The numbers here of all tuples of the state; empty without columns.
    numbers: Vec<u32>,
    /// Where the tuples of each group begin, and the place of each count's tuple among them.
    of_groups: Option<(&'a [i32], &'a [u32])>,
}

impl<'a> StateNumbers<'a> {
    fn read(own: &mut Interned, state: &mut impl Iterator<Item = &'a ArrayRef>) -> Result<Self> {
        if !own.has_columns() {
            return Ok(Self { numbers: Vec::new(), of_groups: None });
        }
        let (tuples, of_counts) = state.next().zip(state.next()).ok_or_else(damaged)?;
        let numbers = own.numbers_of_state(&mut std::iter::once(tuples))?;
        let starts = tuples.as_list_opt::<i32>().ok_or_else(damaged)?.value_offsets();
        let of_counts = of_counts.as_list_opt::<i32>().ok_or_else(damaged)?.values();
        let of_counts = of_counts.as_primitive_opt::<UInt32Type>().ok_or_else(damaged)?.values();
        Ok(Self { numbers, of_groups: Some((starts, of_counts)) })
    }

    /// Returns the number here of a count's tuple; 0 without columns.
    fn of_count(&self, group: usize, count: usize) -> Result<u32> {
        let Some((starts, of_counts)) = self.of_groups else { return Ok(0) };
        let at = *of_counts.get(count).ok_or_else(damaged)?;
        if at == NULL {
            return Ok(NULL);
        }
        let start = starts.get(group).and_then(|start| usize::try_from(*start).ok());
        let number = start.and_then(|start| self.numbers.get(start.checked_add(at as usize)?));
        number.copied().ok_or_else(damaged)
    }
}

/// Returns the number of an item; 0 without columns.
fn number_at(numbers: &[u32], item: usize) -> u32 {
    numbers.get(item).copied().unwrap_or(0)
}

/// Returns the types of the fields of a list's structs.
fn types_of(list: &DataType) -> Result<Vec<DataType>> {
    let DataType::List(item) = list else { return Err(damaged()) };
    let DataType::Struct(fields) = item.data_type() else { return Err(damaged()) };
    Ok(fields.iter().map(|field| field.data_type().clone()).collect())
}

/// Returns what is counted, by the fields of a list's structs.
fn counted_columns(list: &DataType) -> Result<CountedColumns> {
    let looks = |individual| CountedColumns { individual, sensitive: true, compared: true };
    match types_of(list)?.len() {
        2 => Ok(looks(false)),
        3 => Ok(looks(true)),
        _ => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray, StringArray, StructArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Field, Fields};

    use super::*;
    use crate::model::{Class, ValueCount};

    /// A count: its individual, its value and its rows.
    type Row = (Option<&'static str>, Option<&'static str>, i64);

    /// Returns lists of counts, with the individuals if `individual` is set.
    fn classes(individual: bool, classes: &[&[Row]]) -> ArrayRef {
        let all: Vec<Row> = classes.iter().flat_map(|class| class.iter().copied()).collect();
        let texts = |of: fn(&Row) -> Option<&'static str>| -> ArrayRef {
            Arc::new(all.iter().map(of).collect::<StringArray>())
        };
        let rows: ArrayRef = Arc::new(all.iter().map(|(.., rows)| Some(*rows)).collect::<Int64Array>());
        let columns = [("individual", texts(|row| row.0)), ("value", texts(|row| row.1)), ("rows", rows)];
        let columns: Vec<(&str, ArrayRef)> = columns.into_iter().skip(usize::from(!individual)).collect();
        let field = |(name, of): &(&str, ArrayRef)| Field::new(*name, of.data_type().clone(), true);
        let fields: Fields = columns.iter().map(field).collect();
        let items = StructArray::new(fields, columns.into_iter().map(|(_, of)| of).collect(), None);
        let item = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        let ends = OffsetBuffer::from_lengths(classes.iter().map(|class| class.len()));
        Arc::new(ListArray::new(item, ends, Arc::new(items), None))
    }

    /// A class as it is seen: its group and size, the counts of its values here and in the group,
    /// sorted, and the size of the group.
    type Seen = (usize, u64, Vec<(u64, u64)>, u64);

    fn seen(of: &ComparedClasses) -> Vec<Seen> {
        let mut all = Vec::new();
        let mut see = |group: usize, _: &[u32], at: usize, class: &Class<'_>| {
            assert_eq!(at, 0);
            let both = |count: &ValueCount| (count.count, class.input.of(count.value));
            let mut counts: Vec<(u64, u64)> = class.sensitive.iter().map(both).collect();
            counts.sort_unstable();
            all.push((group, class.size, counts, class.input.size()));
        };
        of.for_each_class(EmitTo::All, &["value".into()], &mut see).unwrap();
        all
    }

    const A: Option<&str> = Some("a");
    const B: Option<&str> = Some("b");

    #[test]
    fn counts_stand_beside_those_of_their_group() {
        let lists = classes(
            false,
            &[&[(None, A, 2), (None, None, 1)], &[(None, B, 3), (None, A, 1)], &[(None, A, 5)]],
        );
        let mut of = ComparedClasses::new(lists.data_type()).unwrap();
        of.update(&lists, &[1, 0, 1], None).unwrap();
        let of_group_1 = |group| [(group, 3, vec![(1, 1), (2, 7)], 8), (group, 5, vec![(5, 7)], 8)];
        let [first, second] = of_group_1(1);
        assert_eq!(seen(&of), [(0, 4, vec![(1, 1), (3, 3)], 4), first, second]);
        of.forget(EmitTo::First(1)).unwrap();
        assert_eq!(seen(&of), of_group_1(0));
        of.forget(EmitTo::All).unwrap();
        assert_eq!((seen(&of), of.values.len()), (vec![], 0));
    }

    #[test]
    fn individuals_count_once_in_a_group() {
        let lists = classes(true, &[&[(A, A, 2), (A, B, 1), (B, A, 9)], &[(A, A, 1), (None, B, 4)]]);
        let mut of = ComparedClasses::new(lists.data_type()).unwrap();
        of.update(&lists, &[0, 0], None).unwrap();
        assert_eq!(seen(&of), [(0, 2, vec![(1, 1), (2, 2)], 2), (0, 1, vec![(1, 2)], 2)]);
    }

    #[test]
    fn states_merge_to_what_one_would_have_listed() {
        for individual in [false, true] {
            let first: &[&[Row]] = &[&[(A, A, 2), (B, None, 1)], &[(A, B, 3)], &[(B, A, 1), (B, B, 1)]];
            let second: &[&[Row]] = &[&[(None, B, 7)], &[(A, None, 1), (B, B, 2)]];
            let mut whole = ComparedClasses::new(classes(individual, first).data_type()).unwrap();
            let mut merged = ComparedClasses::new(classes(individual, first).data_type()).unwrap();
            for (part, groups) in [(first, [1, 0, 1].as_slice()), (second, &[0, 2])] {
                let lists = classes(individual, part);
                whole.update(&lists, groups, None).unwrap();
                let mut one = ComparedClasses::new(lists.data_type()).unwrap();
                one.update(&lists, groups, None).unwrap();
                let state = one.state(EmitTo::All, 3).unwrap();
                let types: Vec<DataType> = state.iter().map(|state| state.data_type().clone()).collect();
                let fields = ComparedClasses::state_fields(lists.data_type()).unwrap();
                assert_eq!(types, fields.into_iter().map(|(_, of)| of).collect::<Vec<_>>());
                merged.merge(&state, &[0, 1, 2]).unwrap();
            }
            assert_eq!(seen(&merged), seen(&whole), "{individual}");
            assert!(merged.merge(&[], &[]).is_err());
        }
    }

    #[test]
    fn a_filter_and_null_leave_classes_out() {
        let lists = classes(false, &[&[(None, A, 2)], &[(None, A, 3)]]);
        let mut of = ComparedClasses::new(lists.data_type()).unwrap();
        of.update(&lists, &[0, 0], Some(&BooleanArray::from(vec![Some(true), None]))).unwrap();
        assert_eq!(seen(&of), [(0, 2, vec![(2, 2)], 2)]);
    }
}
