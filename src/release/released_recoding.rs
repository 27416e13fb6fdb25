//! The chosen recoding in detail: the generalizers, and the kept classes in the order of the
//! release.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::class::{ClassSizes, ClassTable, EncodedColumn, EvaluatedNode};
use crate::engine::Context;
use crate::error::{Error, Result};
use crate::generalize::{Descriptor, Generalizer, apply};
use crate::input::canonical_type;
use crate::measure::granularity;
use crate::policy::Policy;
use crate::verify::as_is::Finer;
use crate::verify::expected::Expected;

/// The recoding that apply executes and verify expects.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// One level per quasi-identifier, in policy order.
    pub levels: Vec<usize>,
    /// The generalizer of each of these levels.
    pub generalizers: Vec<Arc<dyn Generalizer>>,
    /// The schema of the released files.
    pub schema: SchemaRef,
}

/// The kept classes in the order of their labels, with one label per quasi-identifier (policy
/// order). `Debug` shows no cell.
#[derive(Clone)]
pub struct KeptClasses {
    /// The label of every class, per quasi-identifier.
    pub labels: Vec<ArrayRef>,
    /// The label codes of every class.
    pub codes: Vec<Box<[u32]>>,
    /// The rows of every class.
    pub rows: Vec<u64>,
}

impl std::fmt::Debug for KeptClasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptClasses({} classes)", self.rows.len())
    }
}

impl KeptClasses {
    /// Returns the sizes of the classes.
    pub fn sizes(&self) -> ClassSizes {
        self.rows.iter().copied().collect()
    }

    /// Returns the memory of the classes in bytes.
    pub fn bytes(&self) -> usize {
        let labels: usize = self.labels.iter().map(Array::get_array_memory_size).sum();
        let codes = self.labels.len() * size_of::<u32>() + size_of::<Box<[u32]>>();
        labels + self.rows.len() * (codes + size_of::<u64>())
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
    let (mut codes, mut rows) = (Vec::with_capacity(classes.len()), Vec::with_capacity(classes.len()));
    for place in order.values() {
        let (class, size) = classes[*place as usize];
        codes.push((0..table.columns().len()).map(|column| node.code(class, column)).collect());
        rows.push(size);
    }
    let schema = Arc::new(released_schema(policy, input, &generalizers)?);
    let chosen = Chosen { levels: node.levels().to_vec(), generalizers, schema };
    Ok((chosen, KeptClasses { labels, codes, rows }))
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

fn in_order(labels: &[ArrayRef], classes: usize) -> Result<UInt32Array> {
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

/// Returns the schema of the released files: released columns in the input's order, no metadata but
/// ours.
///
/// # Errors
/// An internal error if a released column is not in the input.
pub fn released_schema(
    policy: &Policy,
    input: &Schema,
    generalizers: &[Arc<dyn Generalizer>],
) -> Result<Schema> {
    let fields = policy.released().map(|(name, _)| {
        let field = input
            .field_with_name(name)
            .map_err(|_| Error::internal("released_recoding: the input lacks a released column"))?;
        let (data_type, by) = match policy.quasi_index(name) {
            None => (field.data_type(), None),
            Some(index) => {
                (policy.quasi[index].hierarchy.output_type(), Some(generalizers[index].descriptor()))
            }
        };
        let label = field_label(policy.days_since.get(name).map(String::as_str), by.as_ref());
        Ok(labelled_field(name, released_type(data_type), label))
    });
    Ok(Schema::new(fields.collect::<Result<Vec<_>>>()?))
}

/// Returns the type that is written: plain text instead of views and dictionaries.
fn released_type(data_type: &DataType) -> DataType {
    match canonical_type(data_type) {
        DataType::Utf8View => DataType::Utf8,
        other => other,
    }
}

/// Builds the recoding of the chosen node.
pub(super) fn concrete(
    policy: &Policy,
    schema: &Schema,
    classes: &ClassTable,
    levels: &[usize],
) -> Result<(Chosen, KeptClasses, Vec<f64>)> {
    let rolled = classes.roll_up(classes.base(), &vec![0; levels.len()], levels)?;
    let node = EvaluatedNode::new(classes, levels, &rolled, &policy.requirements);
    if node.kept_classes() == 0 {
        return Err(Error::unmet(format!(
            "the best release by `{}` would be empty: every row is suppressed; nothing was published; lower \
             suppression_limit, so that the search prefers levels that keep rows, or add coarser levels",
            policy.objective.doc().name
        )));
    }
    let (chosen, kept) = choose(policy, schema, &node)?;
    Ok((chosen, kept, granularity::of_columns(&node)))
}

/// Returns the level below the released one for each generalized quasi-identifier.
pub(super) fn finer(policy: &Policy, levels: &[usize]) -> Vec<Finer> {
    let columns = policy.released().enumerate().filter_map(|(index, (name, _))| {
        let quasi = policy.quasi_index(name)?;
        let level = levels.get(quasi)?.checked_sub(1)?;
        let generalizer = policy.quasi[quasi].hierarchy.levels().get(level)?;
        Some((index, Arc::clone(generalizer)))
    });
    columns.collect()
}

/// Returns the properties that a verification expects of a release by these generalizers.
pub(super) fn expected<'a>(policy: &'a Policy, generalizers: &[Arc<dyn Generalizer>]) -> Expected<'a> {
    let columns = policy.released().map(|(name, _)| {
        let generalizer = policy.quasi_index(name).map(|index| Arc::clone(&generalizers[index]));
        (name.to_owned(), generalizer)
    });
    Expected {
        columns: columns.collect(),
        requirements: &policy.requirements,
        sensitive: policy.sensitive().map(str::to_owned).collect(),
        individual: policy.individual().map(str::to_owned),
        suppression_limit: Some(policy.suppression_limit),
    }
}
