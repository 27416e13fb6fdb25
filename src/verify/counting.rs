//! The single query plan of a verification: `GROUP BY` over input and output together, with labels
//! as numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::{DataType, UInt32Type};
use arrow::error::ArrowError;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::{Expr, cast, lit, when};
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;

use super::Expected;
use super::assigner::Assigner;
use super::assignment::SUPPRESSED;
use super::each_class::seen;
use super::labels::Labels;
use super::per_class::{by_class, individual, individual_columns, no_individual};
use super::row_lines::RowNames;
use crate::engine::distinct::{self, Distinct};
use crate::engine::functions::{OfValues, of_values, random_keys, row_hash};
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::generalize::{Generalizer, Value};
use crate::model::SensitiveColumn;

/// The columns of the counting plan after the quasi-identifiers.
const COUNTS: [&str; 6] = ["in_rows", "out_rows", "in_hash_a", "in_hash_b", "out_hash_a", "out_hash_b"];

/// Builds the query plan of a verification. The `assigner` finds the classes of the input's rows if
/// an assignment is expected.
pub(crate) fn counting_plan(
    output: DataFrame,
    input: Option<DataFrame>,
    expected: &Expected<'_>,
    counted: &[(SensitiveColumn, bool)],
    assigner: Option<&Arc<Assigner>>,
    labels: &[Option<Arc<Labels>>],
) -> Result<DataFrame> {
    let doing = "planning the verification";
    let keys = random_keys(doing)?;
    let (positions, individual_keys) = (random_keys(doing)?, random_keys(doing)?);
    let types = types_of_preferences(input.as_ref(), expected, counted)?;
    let counted: Vec<_> = counted.iter().map(|(column, _)| column.clone()).zip(types).collect();
    let side =
        |table, from_input, assigner| side(table, expected, &counted, from_input, assigner, labels, keys);
    let mut rows = side(output, None, None)?;
    if let Some(input) = input {
        rows = rows.union(side(input, Some(individual_keys), assigner)?).context(doing)?;
    }
    let labels: Vec<Expr> = expected.quasi().map(|index| column(column_name(index))).collect();
    let mut values: Vec<Expr> = (0..counted.len()).map(|at| column(counted_name(at))).collect();
    if expected.individual.is_some() {
        values.extend(individual_columns());
    }
    let sums = COUNTS.iter().map(|name| sum(column(*name)).alias(*name)).collect();
    let groups = rows.aggregate([labels.clone(), values.clone()].concat(), sums).context(doing)?;
    if values.is_empty() {
        return Ok(groups);
    }
    let counts = COUNTS.iter().map(|name| column(*name)).collect();
    by_class(groups, &labels, [labels.clone(), values, counts].concat(), positions)
}

/// Returns the columns of a release under the names of [`column_name`]: labels as numbers, other
/// columns unchanged. The columns `others` follow.
pub(crate) fn numbered(
    output: DataFrame,
    expected: &Expected<'_>,
    labels: &[Option<Arc<Labels>>],
    others: Vec<Expr>,
) -> Result<DataFrame> {
    with_numbers(output, expected, labels, others, false)
}

/// Returns the same columns of the input, whose values are recoded first: by the `assigner`, or
/// without one by the generalizers of the levels. The labels of rows that an assignment suppresses
/// are [`SUPPRESSED`].
pub(crate) fn numbered_input(
    input: DataFrame,
    expected: &Expected<'_>,
    assigner: Option<&Arc<Assigner>>,
    labels: &[Option<Arc<Labels>>],
    others: Vec<Expr>,
) -> Result<DataFrame> {
    let Some(assigner) = assigner else {
        return with_numbers(input, expected, labels, others, true);
    };
    let doing = "planning the verification";
    let others_by_name = || others.iter().map(|other| column(other.schema_name().to_string()));
    let as_is = || expected.as_is().map(|index| column(column_name(index)));
    let value_name = |index: usize| format!("kanon_value_{index}");
    let is_quasi = |index: usize| expected.columns[index].1.is_some();
    let mut values = assigner.values().iter();
    let mut columns = Vec::with_capacity(expected.columns.len() + others.len());
    for (index, ((name, generalizer), labels)) in expected.columns.iter().zip(labels).enumerate() {
        let values = if is_quasi(index) { values.next() } else { None };
        columns.push(match (values, generalizer, labels) {
            (Some(values), ..) => number_of("kanon_value", name, None, values).alias(value_name(index)),
            // Without labels of its own, the assignment says which rows are shown.
            (None, Some(generalizer), Some(labels)) => {
                number_of("kanon_label", name, Some(generalizer), labels).alias(value_name(index))
            }
            _ => column(name).alias(column_name(index)),
        });
    }
    columns.extend(others.iter().cloned());
    let names = assigner.assignment().row_names().map(RowNames::expressions).transpose()?;
    let names = names.into_iter().flatten().zip(NAME_OF_ROW).map(|(part, name)| part.alias(name));
    let names: Vec<Expr> = names.collect();
    let of_names = NAME_OF_ROW.into_iter().take(names.len()).map(column);
    columns.extend(names.iter().cloned());
    let rows = input.select(columns).context(doing)?;

    let has_labels = assigner.assignment().has_labels();
    let value_numbers = || expected.quasi().map(|index| column(value_name(index)));
    let looked_at = of_names.chain(value_numbers().filter(|_| has_labels));
    let class = assigner.class_of(looked_at.collect());
    let mut columns = vec![class.alias(ASSIGNED)];
    columns.extend(as_is().chain(others_by_name()).chain(value_numbers().filter(|_| !has_labels)));
    let rows = rows.select(columns).context(doing)?;

    let quasi: Vec<&Labels> = labels.iter().flatten().map(|labels| &**labels).collect();
    let mut of_class = assigner.assignment().label_numbers(&quasi)?.into_iter();
    let mut columns = Vec::with_capacity(expected.columns.len() + others.len());
    let is_shown = || column(ASSIGNED).not_eq(lit(SUPPRESSED));
    for (index, (name, _)) in expected.columns.iter().enumerate() {
        let labels = if is_quasi(index) { of_class.next() } else { None };
        let value = match labels {
            Some(labels) => of_values(Arc::new(LabelOfClass(labels)), name, column(ASSIGNED)),
            None if is_quasi(index) => {
                let mut label = when(is_shown(), column(value_name(index)));
                label.otherwise(lit(SUPPRESSED)).context(doing)?
            }
            None => column(column_name(index)),
        };
        columns.push(value.alias(column_name(index)));
    }
    columns.extend(others_by_name());
    rows.select(columns).context(doing)
}

const ASSIGNED: &str = "kanon_assigned";

/// What names a row, where lines are of rows.
const NAME_OF_ROW: [&str; 3] = ["kanon_name_a", "kanon_name_b", "kanon_name_row"];

fn with_numbers(
    table: DataFrame,
    expected: &Expected<'_>,
    labels: &[Option<Arc<Labels>>],
    others: Vec<Expr>,
    is_input: bool,
) -> Result<DataFrame> {
    let columns = expected.columns.iter().zip(labels).enumerate();
    let columns = columns.map(|(index, ((name, generalizer), labels))| {
        let value = match (generalizer, labels) {
            (Some(generalizer), Some(labels)) => {
                number_of("kanon_label", name, is_input.then_some(generalizer), labels)
            }
            _ => column(name),
        };
        value.alias(column_name(index))
    });
    table.select(columns.chain(others).collect::<Vec<_>>()).context("planning the verification")
}

/// Returns the number of the label of a class by the class's number.
struct LabelOfClass(Arc<Vec<u32>>);

impl OfValues for LabelOfClass {
    fn name(&self) -> &'static str {
        "kanon_label_of_class"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn distinct(&self, values: &ArrayRef) -> std::result::Result<Distinct, ArrowError> {
        distinct::of_batch_plainly(values)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let classes = values.as_primitive::<UInt32Type>().values().iter();
        let label = |class: &u32| self.0.get(*class as usize).copied().unwrap_or(SUPPRESSED);
        Ok(Arc::new(classes.map(label).collect::<UInt32Array>()))
    }
}

/// Returns the expression that numbers the labels in the column `name`; with `recode` its values
/// are generalized first. `function` is its name in plans: two numberings of one column in one plan
/// need two names.
pub(crate) fn number_of(
    function: &'static str,
    name: &str,
    recode: Option<&Arc<dyn Generalizer>>,
    labels: &Arc<Labels>,
) -> Expr {
    let number = Number { name: function, recode: recode.map(Arc::clone), labels: Arc::clone(labels) };
    of_values(Arc::new(number), name, column(name))
}

/// Builds one side of the comparison: labels, then the counts that this side contributes. Only the
/// input names the individual of a row, so only its side has the keys for it.
fn side(
    table: DataFrame,
    expected: &Expected<'_>,
    counted: &[(SensitiveColumn, Option<DataType>)],
    from_input: Option<[[u64; 2]; 2]>,
    assigner: Option<&Arc<Assigner>>,
    labels: &[Option<Arc<Labels>>],
    keys: [[u64; 2]; 2],
) -> Result<DataFrame> {
    let doing = "planning the verification";
    let individual = match (&expected.individual, from_input) {
        (None, _) => Vec::new(),
        (Some(name), Some(keys)) => individual(column(name), keys)?,
        (Some(_), None) => no_individual(),
    };
    let seen = counted.iter().enumerate().map(|(at, (of, unreleased))| {
        let value = match (unreleased, from_input) {
            (Some(of_type), None) => cast(lit(ScalarValue::Null), of_type.clone()),
            _ => seen(of, column(of.name())),
        };
        value.alias(counted_name(at))
    });
    let others = seen.chain(individual).collect();
    let rows = match from_input {
        Some(_) => numbered_input(table, expected, assigner, labels, others)?,
        None => numbered(table, expected, labels, others)?,
    };
    // The labels of a class are equal, so only the other columns are hashed.
    let others = (0..expected.columns.len()).filter(|index| expected.columns[*index].1.is_none());
    let others: Vec<Expr> = others.map(|index| column(column_name(index))).collect();
    let hash = |key: [u64; 2]| row_hash(key, others.clone());
    let nothing = || lit(0u64);
    let counts = match from_input {
        Some(_) => [lit(1u64), nothing(), hash(keys[0]), hash(keys[1]), nothing(), nothing()],
        None => [nothing(), lit(1u64), nothing(), nothing(), hash(keys[0]), hash(keys[1])],
    };
    let mut columns: Vec<Expr> = expected.quasi().map(|index| column(column_name(index))).collect();
    columns.extend((0..counted.len()).map(|at| column(counted_name(at))));
    if expected.individual.is_some() {
        columns.extend(individual_columns());
    }
    columns.extend(counts.into_iter().zip(COUNTS).map(|(value, name)| value.alias(name)));
    rows.select(columns).context(doing)
}

/// Returns the types of those counted columns that the output does not have.
fn types_of_preferences(
    input: Option<&DataFrame>,
    expected: &Expected<'_>,
    counted: &[(SensitiveColumn, bool)],
) -> Result<Vec<Option<DataType>>> {
    let type_of = |(column, _): &(SensitiveColumn, bool)| {
        if !expected.is_preference(column.name()) {
            return Ok(None);
        }
        let schema = input.map(|input| input.schema().as_arrow());
        let field = schema.and_then(|schema| schema.field_with_name(column.name()).ok());
        let missing = || Error::internal("counting: a preference is read without the input");
        field.map(|field| Some(field.data_type().clone())).ok_or_else(missing)
    };
    counted.iter().map(type_of).collect()
}

/// Numbers the labels of a quasi-identifier, so that integers are grouped instead of texts. The
/// naive generalizer recodes values of the input first.
struct Number {
    /// Two numberings of one column in one plan need two names: the engine merges calls that print
    /// alike.
    name: &'static str,
    recode: Option<Arc<dyn Generalizer>>,
    labels: Arc<Labels>,
}

impl OfValues for Number {
    fn name(&self) -> &'static str {
        self.name
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn distinct(&self, values: &ArrayRef) -> std::result::Result<Distinct, ArrowError> {
        distinct::of_batch_plainly(values)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let recode = |row: usize| {
            let value = Value::read(values, row)?;
            self.recode.as_ref().map_or(Ok(value.clone()), |generalizer| generalizer.generalize_value(&value))
        };
        let labels = (0..values.len()).map(recode).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(UInt32Array::from(self.labels.number(labels)?)))
    }
}

/// Returns the counting plan's name for what is counted of a sensitive column.
pub(crate) fn counted_name(at: usize) -> String {
    format!("kanon_counted_{at}")
}

/// Returns the counting plan's name for the released column at `index`.
pub(crate) fn column_name(index: usize) -> String {
    format!("kanon_column_{index}")
}
