//! `<row>_of_sizes(constants..., size)`: a model or risk measure computed from class sizes alone.
//! `<risk>_of_individuals(constants..., size)`: a risk measure computed from the size of each
//! individual's smallest class.
//!
//! # Contract
//! Takes BIGINT sizes, one row per class (classes share no individual) or per individual. A NULL
//! size is skipped, a negative size is an error. The optimizer rule puts this aggregate above the
//! GROUP BY that counts; only measures that look at nothing but sizes have one. The state is one
//! number per distinct size.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use hashbrown::HashMap;

use super::by_name::told_apart_by_name;
use super::class_counts::{list_of, lists};
use super::constants::literals;
use super::interned::passes;
use super::listed_classes::emitted;
use super::measure_state::{Number, Row};
use super::one_group::{Groups, OneGroup};
use crate::model::k_anonymity;

/// A row of [`MODELS`](crate::model::MODELS) or [`RISKS`](crate::measure::RISKS) as an aggregate
/// over sizes.
pub struct OfSizes {
    pub(super) row: Row,
    counts_individuals: bool,
    name: String,
    returns: DataType,
    signature: Signature,
}

impl OfSizes {
    pub(super) fn new(row: Row, counts_individuals: bool, returns: DataType) -> Self {
        let name =
            format!("{}_of_{}", row.doc().name, if counts_individuals { "individuals" } else { "sizes" });
        Self {
            row,
            counts_individuals,
            name,
            returns,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    fn groups(&self, arguments: &AccumulatorArgs<'_>) -> Result<Sizes> {
        let number = self.row.number(&self.name, literals(arguments))?;
        let constants = self.row.constants().len();
        let returns = self.returns.clone();
        Ok(Sizes {
            number,
            constants,
            counts_individuals: self.counts_individuals,
            returns,
            classes: HashMap::new(),
            groups: 0,
        })
    }
}

told_apart_by_name!(OfSizes);

impl AggregateUDFImpl for OfSizes {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, declared: &[DataType]) -> Result<Vec<DataType>> {
        let mut types = declared.to_vec();
        if types.len() != self.row.constants().len() + 1 {
            return Err(DataFusionError::Plan(format!("{} takes one column of sizes", self.name)));
        }
        if let Some(size) = types.last_mut() {
            *size = DataType::Int64;
        }
        Ok(types)
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneGroup(self.groups(&arguments)?)))
    }

    fn groups_accumulator_supported(&self, _arguments: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.groups(&arguments)?))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name: &str, items| {
            Arc::new(Field::new(format_state_name(arguments.name, name), list_of(items), true))
        };
        Ok(vec![list("sizes", DataType::Int64), list("classes", DataType::UInt64)])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Returns whether a function looks only at the least of the sizes that it is given.
pub(super) fn reads_least_size_only(function: &AggregateUDF) -> bool {
    let of_sizes = function.inner().downcast_ref::<OfSizes>();
    // The k of a table is that of its smallest class.
    of_sizes.is_some_and(|of_sizes| {
        !of_sizes.counts_individuals && of_sizes.row.doc().name == k_anonymity::ROW.doc.name
    })
}

/// The number of classes of each size per group, or of individuals whose smallest class has that
/// size.
struct Sizes {
    number: Number,
    constants: usize,
    counts_individuals: bool,
    returns: DataType,
    classes: HashMap<(usize, i64), u64>,
    groups: usize,
}

fn damaged() -> DataFusionError {
    DataFusionError::Internal("the state of an aggregate over sizes".into())
}

impl Sizes {
    fn sizes<'a>(&self, values: &'a [ArrayRef]) -> Result<&'a Int64Array> {
        let sizes = values.get(self.constants).and_then(|sizes| sizes.as_primitive_opt::<Int64Type>());
        sizes.ok_or_else(damaged)
    }

    fn forget(&mut self, emit: EmitTo) {
        let emitted = emitted(emit, self.groups);
        let left = std::mem::take(&mut self.classes).into_iter().filter(|((group, _), _)| *group >= emitted);
        self.classes = left.map(|((group, size), classes)| ((group - emitted, size), classes)).collect();
        self.groups = self.groups.saturating_sub(emitted);
    }
}

impl Groups for Sizes {
    fn answers(&self, emit: EmitTo) -> Result<ArrayRef> {
        let mut answers: Vec<_> = (0..emitted(emit, self.groups)).map(|_| self.number.begin()).collect();
        for ((group, size), classes) in &self.classes {
            if let Some(answer) = answers.get_mut(*group) {
                let size = u64::try_from(*size)
                    .map_err(|_| DataFusionError::Execution("a class size is negative".into()))?;
                match self.counts_individuals {
                    true => self.number.add_individuals(answer, size, *classes),
                    false => self.number.add_sizes(answer, size, *classes),
                }
            }
        }
        self.number.answers(answers, &self.returns)
    }
}

impl GroupsAccumulator for Sizes {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.groups = total_groups;
        let sizes = self.sizes(values)?;
        for (row, group) in groups.iter().enumerate() {
            if sizes.is_valid(row) && passes(filter, row) {
                *self.classes.entry((*group, sizes.value(row))).or_default() += 1;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let answers = self.answers(emit)?;
        self.forget(emit);
        Ok(answers)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = emitted(emit, self.groups);
        let emitted = self.classes.iter().filter(|((group, _), _)| *group < groups);
        let mut all: Vec<(usize, i64, u64)> =
            emitted.map(|((group, size), classes)| (*group, *size, *classes)).collect();
        all.sort_unstable();
        let mut lengths = vec![0; groups];
        all.iter().for_each(|(group, ..)| lengths[*group] += 1);
        let sizes: ArrayRef = Arc::new(Int64Array::from_iter_values(all.iter().map(|(_, size, _)| *size)));
        let classes: ArrayRef =
            Arc::new(UInt64Array::from_iter_values(all.iter().map(|(_, _, classes)| *classes)));
        self.forget(emit);
        [sizes, classes].into_iter().map(|items| lists(items, lengths.iter().copied())).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_groups: usize) -> Result<()> {
        self.groups = total_groups;
        let [sizes, classes] = states else { return Err(damaged()) };
        let sizes = sizes.as_list_opt::<i32>().ok_or_else(damaged)?;
        let classes = classes.as_list_opt::<i32>().ok_or_else(damaged)?;
        for ((sizes, classes), group) in sizes.iter().zip(classes.iter()).zip(groups) {
            let (Some(sizes), Some(classes)) = (sizes, classes) else { continue };
            let sizes = sizes.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
            let classes = classes.as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?;
            for (size, classes) in sizes.values().iter().zip(classes.values()) {
                *self.classes.entry((*group, *size)).or_default() += classes;
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let sizes = self.sizes(values)?;
        let counts = |row: &usize| sizes.is_valid(*row) && passes(filter, *row);
        let lengths = (0..sizes.len()).map(|row| usize::from(counts(&row)));
        let items: ArrayRef = Arc::new(Int64Array::from_iter_values(
            (0..sizes.len()).filter(counts).map(|row| sizes.value(row)),
        ));
        let ones: ArrayRef = Arc::new(UInt64Array::from(vec![1; items.len()]));
        [items, ones].into_iter().map(|items| lists(items, lengths.clone())).collect()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.classes.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::RISKS;

    fn sizes(row: Row) -> Sizes {
        let (number, returns) = (row.number("test", std::iter::empty()).unwrap(), row.returns().unwrap());
        Sizes { number, constants: 0, counts_individuals: false, returns, classes: HashMap::new(), groups: 0 }
    }

    #[test]
    fn sizes_answer_in_groups_and_states() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(4), Some(2), None, Some(2), Some(7)]));
        let groups = [0, 1, 1, 1, 2];
        let mut k = sizes(Row::Model(&k_anonymity::ROW));
        k.update_batch(&[Arc::clone(&values)], &groups, None, 4).unwrap();
        let mut merged = sizes(Row::Model(&k_anonymity::ROW));
        let state = k.convert_to_state(&[Arc::clone(&values)], None).unwrap();
        merged.merge_batch(&state, &groups, 4).unwrap();
        let expected = Int64Array::from(vec![Some(4), Some(2), Some(7), None]);
        assert_eq!(k.answers(EmitTo::All).unwrap().as_primitive::<Int64Type>(), &expected);
        assert_eq!(merged.evaluate(EmitTo::First(1)).unwrap().as_primitive::<Int64Type>().value(0), 4);
        let state = merged.state(EmitTo::All).unwrap();
        let mut again = sizes(Row::Model(&k_anonymity::ROW));
        again.merge_batch(&state, &[0, 1, 2], 3).unwrap();
        let left = again.evaluate(EmitTo::All).unwrap();
        assert_eq!(left.as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(2), Some(7), None]));

        let mean = RISKS.iter().find(|row| row.doc.name == "prosecutor_risk_mean").unwrap();
        let mut mean = sizes(Row::Risk(mean));
        mean.update_batch(&[values], &groups, None, 3).unwrap();
        let means = mean.evaluate(EmitTo::All).unwrap();
        let expected = [0.25, 0.5, 1.0 / 7.0];
        assert!(means.as_primitive::<arrow::datatypes::Float64Type>().values().iter().eq(&expected));
    }

    #[test]
    fn a_negative_size_is_an_error() {
        let mut k = sizes(Row::Model(&k_anonymity::ROW));
        k.update_batch(&[Arc::new(Int64Array::from(vec![-1]))], &[0], None, 1).unwrap();
        assert!(k.evaluate(EmitTo::All).is_err());
    }
}
