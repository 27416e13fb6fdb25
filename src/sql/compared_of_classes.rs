//! `compared_of_classes(name, constants..., name, constants..., counts)`: what models that compare a
//! class with its whole group reach in the group, from the counts of each class.
//! `compared_counts_of_classes`: the same for models that reach a whole number.
//!
//! # Contract
//! Takes the names of class models, each with its constants, and one list per class of structs: the
//! individual, where it is counted, the sensitive value, and their rows (BIGINT). NULL is no class.
//! Returns a list of DOUBLE or BIGINT with one number for each name, NULL where it has none. The
//! values of a group are known only after its last class, so all counts are kept, once for all
//! models. The optimizer rule puts this aggregate above the GROUP BY that lists the counts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};

use super::accounted::{Accounted, Memory};
use super::by_name::told_apart_by_name;
use super::class_counts::{list_of, lists};
use super::compared_classes::ComparedClasses;
use super::constants::{Constant, literals};
use super::hierarchies::Hierarchies;
use super::listed_classes::{damaged, emitted};
use super::measure_state::{Number, Row};
use super::one_group::{Groups, OneGroup};
use crate::engine::into_engine;
use crate::model::{self, HIERARCHY, SensitiveColumn};

/// The aggregate; see the [module](self).
pub(super) struct ComparedOfClasses {
    name: &'static str,
    /// The type that all its models return.
    pub(super) returns: DataType,
    /// The hierarchies that a constant may name.
    hierarchies: Hierarchies,
    /// Where states are accounted for.
    memory: Memory,
    signature: Signature,
}

impl ComparedOfClasses {
    /// Creates the function for models that return this type.
    pub(super) fn new(returns: &DataType, hierarchies: Hierarchies, memory: Memory) -> Self {
        let name = match returns {
            DataType::Int64 => "compared_counts_of_classes",
            _ => "compared_of_classes",
        };
        let signature = Signature::user_defined(Volatility::Immutable);
        Self { name, returns: returns.clone(), hierarchies, memory, signature }
    }

    /// Returns both functions.
    pub(super) fn all(hierarchies: &Hierarchies, memory: &Memory) -> [Self; 2] {
        [DataType::Float64, DataType::Int64]
            .map(|returns| Self::new(&returns, hierarchies.clone(), memory.clone()))
    }

    /// Reads the models of a call from its arguments before the list; `None` stands for one that is
    /// no literal.
    fn models(&self, literals: &[Option<&ScalarValue>]) -> Result<Vec<ComparedModel>> {
        let (mut models, mut rest) = (Vec::new(), literals);
        while let [name, after @ ..] = rest {
            let position = literals.len() - rest.len() + 1;
            let place = Constant { function: self.name, position, name: "model" };
            let name = place.word(*name)?;
            let row = model::all().find(|row| row.doc.name == name);
            let row = Row::Model(row.ok_or_else(|| place.refused(&"there is no such model"))?);
            let (constants, after) = after.split_at_checked(row.constants().len()).ok_or_else(damaged)?;
            let needs = row.needs().map_err(into_engine)?;
            let first = constants.first().copied().flatten();
            let hierarchy = Constant { position: position + 1, name: HIERARCHY.name, ..place };
            models.push(ComparedModel {
                number: row.number(self.name, constants.iter().copied())?,
                column: self.hierarchies.sensitive_column(needs, hierarchy, first)?,
            });
            rest = after;
        }
        Ok(models)
    }

    fn groups(&self, arguments: &AccumulatorArgs<'_>) -> Result<Accounted<ComparedGroups>> {
        let literals: Vec<Option<&ScalarValue>> = literals(arguments).collect();
        let (_, before) = literals.split_last().ok_or_else(damaged)?;
        let list = arguments.expr_fields.last().ok_or_else(damaged)?;
        let groups = ComparedGroups {
            models: self.models(before)?,
            returns: self.returns.clone(),
            classes: ComparedClasses::new(list.data_type())?,
            groups: 0,
        };
        Ok(Accounted { groups, memory: self.memory.clone() })
    }
}

told_apart_by_name!(ComparedOfClasses);

impl AggregateUDFImpl for ComparedOfClasses {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Accepts what the rule passes; anything else is an error when it runs.
    fn coerce_types(&self, declared: &[DataType]) -> Result<Vec<DataType>> {
        Ok(declared.to_vec())
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(list_of(self.returns.clone()))
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
        let list = arguments.input_fields.last().ok_or_else(damaged)?;
        let fields = ComparedClasses::state_fields(list.data_type())?.into_iter();
        let field = |(name, of): (&str, DataType)| {
            Arc::new(Field::new(format_state_name(arguments.name, name), of, true))
        };
        Ok(fields.map(field).collect())
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// A model of a call.
struct ComparedModel {
    number: Number,
    column: SensitiveColumn,
}

/// The classes of every group, and what models reach in them.
struct ComparedGroups {
    models: Vec<ComparedModel>,
    returns: DataType,
    classes: ComparedClasses,
    groups: usize,
}

impl ComparedGroups {
    fn forget(&mut self, emit: EmitTo) -> Result<()> {
        self.groups = self.groups.saturating_sub(emitted(emit, self.groups));
        self.classes.forget(emit)
    }
}

impl Groups for ComparedGroups {
    fn answers(&self, emit: EmitTo) -> Result<ArrayRef> {
        let groups = emitted(emit, self.groups);
        let mut answers: Vec<Vec<_>> =
            self.models.iter().map(|model| (0..groups).map(|_| model.number.begin()).collect()).collect();
        let columns: Vec<SensitiveColumn> = self.models.iter().map(|model| model.column.clone()).collect();
        self.classes.for_each_class(emit, &columns, &mut |group, individuals, at, class| {
            let answer = answers.get_mut(at).and_then(|answers| answers.get_mut(group));
            if let (Some(model), Some(answer)) = (self.models.get(at), answer) {
                model.number.add(answer, Some(individuals), class);
            }
        })?;
        let columns = self.models.iter().zip(answers);
        let columns = columns.map(|(model, answers)| model.number.answers(answers, &self.returns));
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let columns: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
        // `concat` orders the numbers by model; the lists need them by group.
        let places = (0..groups).flat_map(|group| (0..columns.len()).map(move |model| (group, model)));
        let places = places.map(|(group, model)| (model * groups + group) as u64);
        let numbers = take(&concat(&columns)?, &UInt64Array::from_iter_values(places), None)?;
        lists(numbers, std::iter::repeat_n(columns.len(), groups))
    }
}

impl GroupsAccumulator for ComparedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.groups = total_groups;
        self.classes.update(values.last().ok_or_else(damaged)?, groups, filter)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let answers = self.answers(emit)?;
        self.forget(emit)?;
        Ok(answers)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let state = self.classes.state(emit, emitted(emit, self.groups))?;
        self.forget(emit)?;
        Ok(state)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_groups: usize) -> Result<()> {
        self.groups = total_groups;
        self.classes.merge(states, groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let list = values.last().ok_or_else(damaged)?;
        let mut alone = ComparedClasses::new(list.data_type())?;
        alone.update(list, &(0..list.len()).collect::<Vec<_>>(), filter)?;
        alone.state(EmitTo::All, list.len())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.classes.bytes()
    }
}
