//! The released regions or centroids: what each kept class shows, in the order of the release, and the
//! assignment for the private record.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, StringArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Schema};
use bytes::Bytes;

use crate::class::{ClassTable, EvaluatedRegions, ReleasedClasses, ShownColumn};
use crate::engine::Context;
use crate::error::{Error, Result};
use crate::generalize::{Descriptor, text_forms};
use crate::policy::{Policy, Quasi};
use crate::release::interval_columns::with_ends_included;
use crate::release::publish::record::CentroidColumn;
use crate::release::publish::write_assignment::{self, Texts};
use crate::release::released_recoding::{Chosen, ClassKeys, KeptClasses, Shown, in_order, released_schema};

const DOING: &str = "labelling the kept classes";

/// Returns the type and the descriptor of each quasi-identifier that shows regions or centroids.
pub(super) fn fields(policy: &Policy) -> Vec<(DataType, Descriptor)> {
    let by = |quasi: &Quasi| match policy.centroid {
        Some(centroid) => CentroidColumn::of(quasi, centroid).descriptor(),
        None => Descriptor::region(),
    };
    policy.quasi.iter().map(|quasi| (DataType::Utf8, by(quasi))).collect()
}

/// Builds the recoding of evaluated regions. Kept classes that show the same text are one.
///
/// # Errors
/// An internal error if the labels cannot be made.
pub(super) fn choose(
    policy: &Policy,
    input: &Schema,
    evaluated: &EvaluatedRegions<'_>,
) -> Result<(Chosen, KeptClasses)> {
    let (table, released) = (evaluated.table(), evaluated.released());
    let kept: Vec<(usize, u64)> = evaluated.kept().collect();
    let labels = labels(policy, table, released, &kept)?;
    let order = in_order(&written(policy, &labels)?.concat(), kept.len())?;

    // The number of each released class in the release.
    let mut number_of: Vec<Option<u32>> = vec![None; released.regions().len()];
    let (mut first_of_class, mut rows) = (Vec::new(), Vec::new());
    for place in order.values() {
        let (class, size) = kept[*place as usize];
        let is_new = first_of_class.last().is_none_or(|last| !shows_the_same(&labels, *last, *place));
        if is_new {
            first_of_class.push(*place);
            rows.push(0);
        }
        if let Some(rows) = rows.last_mut() {
            *rows += size;
        }
        number_of[class] = Some(u32::try_from(rows.len() - 1).map_err(Error::internal)?);
    }
    let of_class = UInt32Array::from(first_of_class);
    let labels = labels.iter().map(|column| take(column, &of_class, None).context(DOING));
    let labels: Vec<ArrayRef> = labels.collect::<Result<_>>()?;

    let class_of_base: Vec<Option<u32>> = released
        .class_of_base()
        .iter()
        .map(|class| class.and_then(|class| number_of[class as usize]))
        .collect();
    let assignment = assignment_of(policy, table, &class_of_base, &labels)?;
    let keys = (0..table.base().len()).zip(&class_of_base).map(|(base, class)| {
        let codes = (0..table.columns().len()).map(|column| table.code(table.base(), base, column));
        (codes.collect(), class.map(u64::from))
    });
    let levels = vec![0; table.columns().len()];
    let keys = ClassKeys { levels, classes: keys.collect(), is_complete: true };
    let schema = Arc::new(released_schema(policy, input, &fields(policy))?);
    let shown = Shown::Regions { assignment, is_of_earlier: released.shows_earlier_labels() };
    Ok((Chosen { shown, schema }, KeptClasses { labels, keys, rows }))
}

/// Returns the columns that the labels of each quasi-identifier are written as.
///
/// # Errors
/// An internal error for a label that cannot be written so.
pub(super) fn written(policy: &Policy, labels: &[ArrayRef]) -> Result<Vec<Vec<ArrayRef>>> {
    let columns =
        policy.quasi.iter().zip(labels).map(|(quasi, labels)| match quasi.written_columns(policy) {
            Some(columns) => columns.arrays(labels),
            None => Ok(vec![Arc::clone(labels)]),
        });
    columns.collect()
}

fn shows_the_same(labels: &[ArrayRef], a: u32, b: u32) -> bool {
    labels.iter().all(|column| column.slice(a as usize, 1).to_data() == column.slice(b as usize, 1).to_data())
}

/// Returns what each kept class shows, one text array per column.
fn labels(
    policy: &Policy,
    table: &ClassTable,
    released: &ReleasedClasses,
    kept: &[(usize, u64)],
) -> Result<Vec<ArrayRef>> {
    let mut is_kept = vec![false; released.regions().len()];
    kept.iter().for_each(|(class, _)| is_kept[*class] = true);
    let columns = table.columns().iter().enumerate().map(|(at, column)| {
        let shown = ShownColumn::new(table, released, &is_kept, at, policy.ends)?;
        let labels = kept.iter().map(|(class, _)| {
            if let Some(centroid) = released.centroid(*class, at) {
                return Ok(centroid.map(str::to_owned));
            }
            let label = match released.label(*class, at) {
                Some(label) => label.clone(),
                None => shown.label(&released.regions()[*class][at])?,
            };
            let label =
                if policy.writes_ends && column.has_intervals() { with_ends_included(label) } else { label };
            Ok(shown.open(label).write(column.hierarchy().input_type()))
        });
        Ok(Arc::new(labels.collect::<Result<StringArray>>()?) as ArrayRef)
    });
    columns.collect()
}

/// Writes the assignment, in the order of the released columns.
fn assignment_of(
    policy: &Policy,
    table: &ClassTable,
    class_of_base: &[Option<u32>],
    labels: &[ArrayRef],
) -> Result<Bytes> {
    let kept: BooleanArray = class_of_base.iter().map(|class| Some(class.is_some())).collect();
    let (mut values, mut shown) = (Vec::new(), Vec::new());
    for at in policy.released().filter_map(|(name, _)| policy.quasi_index(name)) {
        let codes = (0..table.base().len()).map(|base| table.code(table.base(), base, at));
        let texts: ArrayRef = Arc::new(text_forms(table.columns()[at].level(0).labels())?);
        let texts = cast(&texts, &DataType::Utf8).context(DOING)?;
        values.push(Texts { texts, of_line: UInt32Array::from_iter_values(codes) });
        let of_line = UInt32Array::from(class_of_base.to_vec());
        shown.push(Texts { texts: Arc::clone(&labels[at]), of_line });
    }
    write_assignment::write(kept, values, shown).map(Bytes::from)
}

#[cfg(test)]
#[path = "released_regions_tests.rs"]
mod tests;
