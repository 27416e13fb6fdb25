//! The chosen recoding in detail: the generalizers, and the kept classes in the order of the
//! release.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;

use crate::class::{EncodedColumn, EvaluatedNode};
use crate::engine::Context;
use crate::error::{Error, Result};
use crate::generalize::{Descriptor, Generalizer, apply};
use crate::input::canonical_type;
use crate::noise::Mechanism;
use crate::policy::Policy;
use crate::verify::noise::NoiseKey;

/// The recoding that apply executes and verify expects.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// What the quasi-identifiers show.
    pub shown: Shown,
    /// The schema of the released files.
    pub schema: SchemaRef,
}

/// What the released quasi-identifiers show.
#[derive(Clone)]
pub enum Shown {
    /// The labels of a level for all values of a column.
    Levels {
        /// One level per quasi-identifier, in policy order.
        levels: Vec<usize>,
        /// The generalizer of each of these levels.
        generalizers: Vec<Arc<dyn Generalizer>>,
    },
    /// A region for each class, or a centroid.
    Regions {
        /// What each combination of values shows, as the private record keeps it.
        assignment: Bytes,
        /// Whether classes show what those of an earlier release did, whose values need not be in this one.
        is_of_earlier: bool,
    },
    /// The means of clusters, with noise.
    Noise {
        /// What the policy says of the noise.
        mechanism: Arc<Mechanism>,
        /// The number of rows.
        rows: u64,
        /// The key that the noise was drawn by.
        key: NoiseKey,
    },
}

impl Shown {
    /// Returns the memory that it takes in bytes, with what the private record makes of it.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Levels { .. } | Self::Noise { .. } => 0,
            Self::Regions { assignment, .. } => assignment.len() * 4,
        }
    }
}

/// Shows no cell.
impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Levels { levels, .. } => write!(f, "Levels({levels:?})"),
            Self::Regions { .. } => f.write_str("Regions(..)"),
            Self::Noise { .. } => f.write_str("Noise(..)"),
        }
    }
}

/// The kept classes in the order of their labels, with one label per quasi-identifier (policy
/// order). `Debug` shows no cell.
#[derive(Clone)]
pub struct KeptClasses {
    /// The label of every class, per quasi-identifier.
    pub labels: Vec<ArrayRef>,
    /// What tells the class of a row.
    pub keys: ClassKeys,
    /// The rows of every class.
    pub rows: Vec<u64>,
}

/// The numbers of the kept classes, by label codes of a row's quasi-identifiers.
#[derive(Clone, Default)]
pub struct ClassKeys {
    /// The level of each column's codes.
    pub levels: Vec<usize>,
    /// The codes of a class, or of each base class in it, with the class's number; `None` for a
    /// suppressed base class.
    pub classes: Vec<(Box<[u32]>, Option<u64>)>,
    /// Whether suppressed ones are there too, so that others are rows that the profile did not see.
    pub is_complete: bool,
}

impl std::fmt::Debug for KeptClasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptClasses({} classes)", self.rows.len())
    }
}

impl KeptClasses {
    /// Returns the memory of the classes in bytes.
    pub fn bytes(&self) -> usize {
        let labels: usize = self.labels.iter().map(Array::get_array_memory_size).sum();
        let key = self.labels.len() * size_of::<u32>() + size_of::<(Box<[u32]>, Option<u64>)>();
        labels + self.rows.len() * size_of::<u64>() + self.keys.classes.len() * key
    }

    /// Returns the number of all rows.
    pub fn total_rows(&self) -> u64 {
        self.rows.iter().sum()
    }
}

/// The metadata key of a released field for its descriptor.
pub const GENERALIZED: &str = "kanon.generalized";

/// Builds the recoding of an evaluated node. Labels are padded for the kept classes alone, so that
/// they reveal nothing about suppressed rows.
///
/// # Errors
/// An internal error if the labels cannot be made.
pub fn choose(policy: &Policy, input: &Schema, node: &EvaluatedNode<'_>) -> Result<(Chosen, KeptClasses)> {
    let table = node.table();
    let classes: Vec<(usize, u64)> = node.kept().collect();
    let mut generalizers = Vec::new();
    let mut labels = Vec::new();
    for (index, column) in table.columns().iter().enumerate() {
        let codes: Vec<u32> = classes.iter().map(|(class, _)| node.code(*class, index)).collect();
        let (generalizer, all) = padded(column, node.levels()[index], &codes)?;
        labels.push(take(&all, &UInt32Array::from(codes), None).context("labelling the kept classes")?);
        generalizers.push(generalizer);
    }
    let order = in_order(&labels, classes.len())?;
    let labels = labels
        .iter()
        .map(|column| take(column, &order, None).context("ordering the kept classes"))
        .collect::<Result<_>>()?;
    let (mut keys, mut rows) = (Vec::with_capacity(classes.len()), Vec::with_capacity(classes.len()));
    for (place, number) in order.values().iter().zip(0u64..) {
        let (class, size) = classes[*place as usize];
        keys.push((
            (0..table.columns().len()).map(|column| node.code(class, column)).collect(),
            Some(number),
        ));
        rows.push(size);
    }
    let levels = node.levels().to_vec();
    let schema = Arc::new(released_schema(policy, input, &fields(policy, &generalizers))?);
    let keys = ClassKeys { levels: levels.clone(), classes: keys, is_complete: false };
    let chosen = Chosen { shown: Shown::Levels { levels, generalizers }, schema };
    Ok((chosen, KeptClasses { labels, keys, rows }))
}

/// Returns the generalizer of a level, padded for the labels of `codes`, and all its labels in code
/// order.
fn padded(column: &EncodedColumn, level: usize, codes: &[u32]) -> Result<(Arc<dyn Generalizer>, ArrayRef)> {
    let coded = column.level(level);
    let generalizer = &column.hierarchy().levels()[level];
    let mut distinct = codes.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let released =
        take(coded.labels(), &UInt32Array::from(distinct), None).context("labelling the kept classes")?;
    let Some(padded) = generalizer.with_label_width(&released) else {
        return Ok((Arc::clone(generalizer), Arc::clone(coded.labels())));
    };
    // One value represents each label.
    let mut first = vec![0u32; coded.labels().len()];
    for (value, label) in (0u32..).zip(coded.of_value()) {
        first[*label as usize] = value;
    }
    let values =
        take(column.values(), &UInt32Array::from(first), None).context("labelling the kept classes")?;
    let labels = apply(&*padded, &values)?;
    Ok((padded, labels))
}

/// Returns the order of classes by their labels.
pub(super) fn in_order(labels: &[ArrayRef], classes: usize) -> Result<UInt32Array> {
    if classes == 0 {
        return Ok(UInt32Array::from(Vec::<u32>::new()));
    }
    let options = Some(SortOptions { descending: false, nulls_first: true });
    let keys: Vec<SortColumn> =
        labels.iter().map(|values| SortColumn { values: Arc::clone(values), options }).collect();
    lexsort_to_indices(&keys, None).context("ordering the kept classes")
}

/// Describes the values of a released field: `days_since:admission`, the descriptor of its level,
/// or both; `None` for a column written as it was.
pub(super) fn field_label(days_since: Option<&str>, by: Option<&Descriptor>) -> Option<String> {
    let by = by.map(Descriptor::to_string);
    match (days_since.map(|other| format!("days_since:{other}")), by) {
        (Some(days), Some(by)) => Some(format!("{days} {by}")),
        (days, by) => days.or(by),
    }
}

/// Returns a released field.
pub(super) fn labelled_field(name: &str, data_type: DataType, label: Option<String>) -> Field {
    let label = label.map(|label| (GENERALIZED.to_owned(), label));
    Field::new(name, data_type, true).with_metadata(label.into_iter().collect())
}

/// Returns the type and the descriptor of each quasi-identifier, generalized by these levels.
pub(super) fn fields(policy: &Policy, generalizers: &[Arc<dyn Generalizer>]) -> Vec<(DataType, Descriptor)> {
    let all = policy.quasi.iter().zip(generalizers);
    all.map(|(quasi, level)| (quasi.hierarchy.output_type().clone(), level.descriptor())).collect()
}

/// Returns the schema of the released files: released columns in the input's order, no metadata but
/// ours. `quasi` has the type and the descriptor of each quasi-identifier, in policy order.
///
/// # Errors
/// An internal error if a released column is not in the input.
pub fn released_schema(policy: &Policy, input: &Schema, quasi: &[(DataType, Descriptor)]) -> Result<Schema> {
    let mut fields = Vec::new();
    for (name, _) in policy.released() {
        let field = input
            .field_with_name(name)
            .map_err(|_| Error::internal("released_recoding: the input lacks a released column"))?;
        let (data_type, by) = match policy.quasi_index(name) {
            None => (field.data_type(), None),
            Some(index) => (&quasi[index].0, Some(&quasi[index].1)),
        };
        let label = field_label(policy.days_since.get(name).map(String::as_str), by);
        let quasi = policy.quasi_index(name).map(|index| &policy.quasi[index]);
        match quasi.and_then(|quasi| quasi.written_columns(policy)) {
            None => fields.push(labelled_field(name, released_type(data_type), label)),
            Some(written) => fields.extend(
                written
                    .columns()
                    .into_iter()
                    .map(|(name, data_type)| labelled_field(&name, data_type, label.clone())),
            ),
        }
    }
    Ok(Schema::new(fields))
}

/// Returns the type that is written: plain text instead of views and dictionaries.
pub(super) fn released_type(data_type: &DataType) -> DataType {
    match canonical_type(data_type) {
        DataType::Utf8View => DataType::Utf8,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told() {
        let shown = Shown::Regions { assignment: Bytes::from(vec![0; 1_000]), is_of_earlier: false };
        assert_eq!(shown.bytes(), 4_000);
        let labels: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["x".repeat(50); 100]));
        let of_labels = labels.get_array_memory_size();
        let classes = (0..500u32).map(|base| (vec![base].into(), Some(0))).collect();
        let keys = ClassKeys { levels: vec![0], classes, is_complete: true };
        let kept = KeptClasses { labels: vec![labels], keys, rows: vec![5; 100] };
        let key = size_of::<u32>() + size_of::<(Box<[u32]>, Option<u64>)>();
        assert_eq!(kept.bytes(), of_labels + 100 * size_of::<u64>() + 500 * key);
    }
}
