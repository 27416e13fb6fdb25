//! `<model>_of_counts(constants..., size, counts)`: what a model of sensitive values reaches in one
//! class.
//!
//! # Contract
//! Takes BIGINT numbers of rows: the size of the class, and a list of the count of each of its
//! values (without NULL, each value once; no order is needed). A model whose value depends on
//! nothing else ([`reads_extremes_only`]) also takes the size, the number of values and the count
//! of the most common one. A size of 0 or NULL is no class, and the result is NULL; a list or a
//! count that is NULL stands for no values. A negative number is an error. The optimizer rule puts
//! this function above the GROUP BY that counts, and takes the worst result.
//!
//! [`reads_extremes_only`]: crate::model::ClassModel::reads_extremes_only

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use super::by_name::told_apart_by_name;
use super::measure_state::Row;
use crate::engine::into_engine;
use crate::model::{self, Class, Needs, ValueCount};

/// A [model](crate::model::all) as a function of counts.
pub(super) struct OfCounts {
    row: Row,
    name: String,
    returns: DataType,
    signature: Signature,
}

/// Returns a function for each model of sensitive values.
///
/// # Errors
/// When a model cannot be made with every parameter 1.
pub(super) fn functions_of_counts() -> Result<Vec<OfCounts>> {
    let mut all = Vec::new();
    for row in model::all().map(Row::Model) {
        if row.needs().map_err(into_engine)? == Needs::SensitiveCounts {
            let signature = Signature::user_defined(Volatility::Immutable);
            let name = format!("{}_of_counts", row.doc().name);
            all.push(OfCounts { row, name, returns: row.returns().map_err(into_engine)?, signature });
        }
    }
    Ok(all)
}

told_apart_by_name!(OfCounts);

/// The counts of the values of each class, without NULL.
enum ValueCounts<'a> {
    /// All of them, and the end of each class.
    All(&'a dyn Array, &'a Int64Array, &'a [i32]),
    /// Their number and the greatest.
    Extremes(&'a Int64Array, &'a Int64Array),
}

impl ValueCounts<'_> {
    /// Puts the counts of a class into `of_class`.
    fn of_class(&self, class: usize, of_class: &mut Vec<ValueCount>) -> Result<()> {
        of_class.clear();
        match self {
            Self::All(lists, counts, ends) if lists.is_valid(class) => {
                let ends = ends.get(class..class + 2).ok_or_else(damaged)?;
                let [start, end] = [ends[0], ends[1]].map(|end| usize::try_from(end).unwrap_or(0));
                for count in counts.values().get(start..end).ok_or_else(damaged)? {
                    push(of_class, *count)?;
                }
            }
            Self::Extremes(values, most) if values.is_valid(class) && most.is_valid(class) => {
                for value in 0..values.value(class) {
                    push(of_class, if value == 0 { most.value(class) } else { 1 })?;
                }
            }
            Self::All(..) | Self::Extremes(..) => {}
        }
        Ok(())
    }
}

fn push(of_class: &mut Vec<ValueCount>, count: i64) -> Result<()> {
    let value = u32::try_from(of_class.len()).map_err(|_| damaged())?;
    let count = u64::try_from(count).map_err(|_| damaged())?;
    of_class.push(ValueCount { value: Some(value), count });
    Ok(())
}

fn damaged() -> DataFusionError {
    DataFusionError::Internal("counts of sensitive values".into())
}

fn numbers(column: &ArrayRef) -> Result<&Int64Array> {
    column.as_primitive_opt::<Int64Type>().ok_or_else(damaged)
}

impl ScalarUDFImpl for OfCounts {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Accepts what the rule passes; anything else is an error when it runs.
    fn coerce_types(&self, declared: &[DataType]) -> Result<Vec<DataType>> {
        Ok(declared.to_vec())
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constants = self.row.constants().len();
        let (constants, columns) = arguments.args.split_at_checked(constants).ok_or_else(damaged)?;
        let literals = constants.iter().map(|constant| match constant {
            ColumnarValue::Scalar(literal) => Some(literal),
            ColumnarValue::Array(_) => None,
        });
        let number = self.row.number(&self.name, literals)?;
        let columns = columns.iter().map(|column| column.to_array(arguments.number_rows));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let (sizes, counts) = match columns.as_slice() {
            [sizes, lists] => {
                let counts = lists.as_list_opt::<i32>().ok_or_else(damaged)?;
                (sizes, ValueCounts::All(lists, numbers(counts.values())?, counts.value_offsets()))
            }
            [sizes, values, most] => (sizes, ValueCounts::Extremes(numbers(values)?, numbers(most)?)),
            _ => return Err(damaged()),
        };
        let (mut answers, mut of_class) = (Vec::with_capacity(sizes.len()), Vec::new());
        for (class, size) in numbers(sizes)?.iter().enumerate() {
            let size = u64::try_from(size.unwrap_or(0)).map_err(|_| damaged())?;
            let mut answer = number.begin();
            if size > 0 {
                counts.of_class(class, &mut of_class)?;
                number.add(&mut answer, None, &Class::of_values(size, &of_class));
            }
            answers.push(answer);
        }
        number.answers(answers, &self.returns).map(ColumnarValue::Array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ClassModel;
    use crate::sql::measure_state::reached_by;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_model_that_reads_extremes_only_needs_no_other_counts(
            counts in prop::collection::vec(1..9u64, 0..9), nulls in 0..9u64
        ) {
            let of = |counts: &[u64]| -> Vec<ValueCount> {
                (0..).zip(counts).map(|(value, count)| ValueCount { value: Some(value), count: *count }).collect()
            };
            let size = (counts.iter().sum::<u64>() + nulls).max(1);
            let mut extremes = vec![1; counts.len()];
            if let (Some(first), Some(most)) = (extremes.first_mut(), counts.iter().max()) {
                *first = *most;
            }
            let (mut seen, all, extremes) = (0, of(&counts), of(&extremes));
            for row in model::MODELS {
                let model: Box<dyn ClassModel> = reached_by(row, &[]).unwrap();
                if model.reads_extremes_only() {
                    let [whole, extremes] = [&all, &extremes].map(|all| model.value(&Class::of_values(size, all)));
                    prop_assert_eq!(whole, extremes, "{}", row.doc.name);
                    seen += 1;
                }
            }
            prop_assert!(seen > 0);
        }
    }
}
