//! `<model>(sensitive, quasi-identifiers...)`, `<risk>(constants..., quasi-identifiers...)` and
//! their `_individuals` forms: one adapter for every class model and every risk measure.
//!
//! # Contract
//! Rows with equal quasi-identifiers form a class; NULL is a value like any other, -0.0 equals 0.0
//! and all NaNs are equal. The input is the rows that reach the aggregate: after WHERE and FILTER,
//! for each group of an outer GROUP BY. A model returns the value of its worst class
//! (`k_anonymity`: the smallest size), a risk measure its number; without rows the result is NULL.
//! For a model that reads the values of the whole table, these are the rows of its group.
//! Sizes count rows; with `_individuals` they count the distinct non-NULL values of the column
//! before the others. The model defines the meaning of a sensitive NULL. DISTINCT, OVER and WITHIN
//! GROUP are refused.
//!
//! The optimizer rule turns most calls into GROUP BYs
//! ([`k_anonymity_to_group_by`](super::k_anonymity_to_group_by)). Where it does not, all classes of
//! a group are held in memory, within the engine's limit.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, Expr, ExprSchemable, GroupsAccumulator, Signature,
    Volatility,
};

use super::accounted::{Accounted, Memory};
use super::aggregate_documentation::documented;
use super::by_name::told_apart_by_name;
use super::class_counts::ClassCounts;
use super::compared_of_classes::ComparedOfClasses;
use super::constants::{Constant, literals};
use super::hierarchies::Hierarchies;
use super::listed_classes::{CountedColumns, emitted};
use super::measure_state::{Answer, Number, Row};
use super::one_group::{Groups, OneGroup};
use super::size_aggregate::OfSizes;
use crate::engine::functions::canonical_float;
use crate::engine::into_engine;
use crate::measure::RISKS;
use crate::model::{self, Counted, HIERARCHY, Needs, ReadFacts, SensitiveColumn};

/// A row of the [models](crate::model::all) or of [`RISKS`] as a SQL aggregate.
pub struct ClassAggregate {
    row: Row,
    looks: CountedColumns,
    over: AggregateInput,
    /// The hierarchies that a call may name.
    hierarchies: Hierarchies,
    /// Where states are accounted for.
    memory: Memory,
    /// What the measure needs of a class, its group and its table.
    needs: Needs,
    name: String,
    returns: DataType,
    signature: Signature,
    documentation: Documentation,
}

/// The arguments after the constants, the individual and the sensitive column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AggregateInput {
    /// Quasi-identifiers, at least one.
    Quasi,
    /// The number of rows per sensitive value and individual, where every group is one class
    /// (`_of_class`): the form that the optimizer rule puts above the GROUP BY that counts, where
    /// individuals are counted. Counts of rows go to [`of_counts`](super::of_counts).
    OneClass,
}

/// Returns all aggregates: one over rows and one over individuals per table row, and those that the
/// optimizer rule needs. Calls may name these hierarchies, and account for their states in this memory.
///
/// # Errors
/// When a model cannot be made with every parameter 1.
pub(super) fn aggregates(
    hierarchies: &Hierarchies,
    memory: &Memory,
) -> Result<(Vec<ClassAggregate>, Vec<OfSizes>)> {
    let (mut all, mut of_sizes) = (Vec::new(), Vec::new());
    for row in model::all().map(Row::Model).chain(RISKS.iter().map(Row::Risk)) {
        let needs = row.needs().map_err(into_engine)?;
        // A population is a table of its own: such models have table functions.
        if needs == Needs::Population {
            continue;
        }
        let returns = row.returns().map_err(into_engine)?;
        for individual in [false, true] {
            let looks =
                CountedColumns { individual, sensitive: needs.reads_column(), compared: needs.reads_input() };
            let of_quasi = ClassAggregate::new(row, needs, looks, AggregateInput::Quasi, &returns);
            let (hierarchies, memory) = (hierarchies.clone(), memory.clone());
            let of_quasi = ClassAggregate { hierarchies, memory, ..of_quasi };
            all.push(of_quasi);
            // One class does not tell the distribution of them all.
            if looks.sensitive && !row.is_of_table(needs) && !looks.compared {
                all.push(ClassAggregate::new(row, needs, looks, AggregateInput::OneClass, &returns));
            }
        }
        if !needs.reads_column() {
            of_sizes.push(OfSizes::new(row, false, returns.clone()));
        }
        if row.is_of_table(needs) {
            of_sizes.push(OfSizes::new(row, true, returns));
        }
    }
    Ok((all, of_sizes))
}

/// The arguments of a call by their meaning.
pub struct Arguments<'a> {
    /// Literals.
    pub constants: &'a [Expr],
    /// The individual column.
    pub individual: Option<&'a Expr>,
    /// The sensitive column.
    pub sensitive: Option<&'a Expr>,
    /// The quasi-identifiers.
    pub quasi: &'a [Expr],
}

impl ClassAggregate {
    fn new(row: Row, needs: Needs, looks: CountedColumns, over: AggregateInput, returns: &DataType) -> Self {
        let counted = if looks.individual { Counted::Individuals } else { Counted::Rows };
        let doc = row.doc();
        let name = match (over, counted) {
            (AggregateInput::Quasi, Counted::Rows) => doc.name.to_owned(),
            (AggregateInput::Quasi, Counted::Individuals) => format!("{}_individuals", doc.name),
            (AggregateInput::OneClass, Counted::Rows) => format!("{}_of_class", doc.name),
            (AggregateInput::OneClass, Counted::Individuals) => format!("{}_individuals_of_class", doc.name),
        };
        let documentation = documented(&name, row, looks);
        let signature = Signature::user_defined(Volatility::Immutable);
        Self {
            row,
            looks,
            over,
            hierarchies: Hierarchies::default(),
            memory: Memory::default(),
            needs,
            name,
            returns: returns.clone(),
            signature,
            documentation,
        }
    }

    pub(super) fn row(&self) -> Row {
        self.row
    }

    /// Returns whether the measure looks at all classes of its group together, by their sizes alone.
    pub(super) fn is_of_table(&self) -> bool {
        self.row.is_of_table(self.needs)
    }

    /// Returns whether the measure reads more of the sensitive values than which are equal.
    pub(super) fn reads_values(&self) -> bool {
        self.needs.facts() != ReadFacts::default()
    }

    /// Returns the function that computes the measure from lists of counts, if it reads the values of
    /// its whole group.
    pub(super) fn of_classes(&self) -> Option<ComparedOfClasses> {
        let new = || ComparedOfClasses::new(&self.returns, self.hierarchies.clone(), self.memory.clone());
        self.looks.compared.then(new)
    }

    pub(super) fn over(&self) -> AggregateInput {
        self.over
    }

    /// Returns the number of arguments before the quasi-identifiers.
    fn before(&self) -> usize {
        self.row.constants().len() + self.looks.columns()
    }

    /// Splits the arguments of a call by their meaning; `None` when there are too few.
    pub fn arguments<'a>(&self, all: &'a [Expr]) -> Option<Arguments<'a>> {
        let (constants, columns) = all.split_at_checked(self.row.constants().len())?;
        let (before, quasi) = columns.split_at_checked(self.looks.columns())?;
        let (individuals, value) = before.split_at(usize::from(self.looks.individual));
        let [individual, sensitive] = [individuals, value].map(|one| one.first());
        (!quasi.is_empty()).then_some(Arguments { constants, individual, sensitive, quasi })
    }

    /// Returns the meaning of argument number `at` (from 0).
    fn meaning(&self, at: usize) -> &'static str {
        let at = at - self.row.constants().len();
        match (self.looks.individual, self.looks.sensitive) {
            (true, _) if at == 0 => "individual",
            (individual, true) if at == usize::from(individual) => "sensitive column",
            _ => "quasi-identifier",
        }
    }

    /// Refuses DISTINCT with a plan error.
    pub(super) fn no_distinct(&self, distinct: bool) -> Result<()> {
        if distinct {
            Err(self.refused("DISTINCT would reduce every class to one row; remove it"))
        } else {
            Ok(())
        }
    }

    /// Refuses a constant column with a plan error: most likely it is a name in the wrong quotes,
    /// and every row would be in one class.
    pub(super) fn no_constant_column(&self, arguments: &[Expr]) -> Result<()> {
        let mut columns = arguments.iter().enumerate().skip(self.row.constants().len());
        match columns.find(|(_, column)| column.column_refs().is_empty() && !column.contains_outer()) {
            None => Ok(()),
            Some((at, _)) => Err(self.refused(&format!(
                "argument {} ({}) is a constant, not a column; write a column's name without quotes or in \
                 double quotes",
                at + 1,
                self.meaning(at)
            ))),
        }
    }

    pub(super) fn refused(&self, why: &str) -> DataFusionError {
        DataFusionError::Plan(format!("{}: {why}", self.name))
    }

    /// Returns the sensitive column with what the measure reads of it.
    fn column(&self, constant: Option<&ScalarValue>) -> Result<SensitiveColumn> {
        let place = Constant { function: &self.name, position: 1, name: HIERARCHY.name };
        self.hierarchies.sensitive_column(self.needs, place, constant)
    }

    fn groups(&self, arguments: &AccumulatorArgs<'_>) -> Result<Accounted<ClassGroups>> {
        self.no_distinct(arguments.is_distinct)?;
        let constants = self.row.constants().len();
        let fields = arguments.expr_fields.get(constants..).unwrap_or_default();
        let mut types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
        if self.over == AggregateInput::OneClass {
            types.pop();
        }
        let groups = ClassGroups {
            number: self.row.number(&self.name, literals(arguments))?,
            column: self.column(literals(arguments).next().flatten())?,
            constants,
            over: self.over,
            looks: self.looks,
            classes: ClassCounts::new(self.looks, &types)?,
            returns: self.returns.clone(),
            groups: 0,
        };
        Ok(Accounted { groups, memory: self.memory.clone() })
    }
}

/// Returns whether an expression is a measure.
pub(super) fn is_measure(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_measure(&alias.expr),
        Expr::AggregateFunction(call) => call
            .func
            .inner()
            .downcast_ref::<ClassAggregate>()
            .is_some_and(|f| f.over() == AggregateInput::Quasi),
        _ => false,
    }
}

/// Returns the type in which columns of type `declared` are compared.
pub(super) fn compared(declared: &DataType) -> DataType {
    match declared {
        DataType::Dictionary(_, values) => compared(values),
        DataType::Float16 => DataType::Float32,
        other => other.clone(),
    }
}

/// Returns a column in its compared form: without encoding, one zero, one NaN.
pub(super) fn compared_column(column: Expr, schema: &DFSchema) -> Result<Expr> {
    let plain = compared(&column.get_type(schema)?);
    let column = column.cast_to(&plain, schema)?;
    Ok(if plain.is_floating() { canonical_float(column) } else { column })
}

told_apart_by_name!(ClassAggregate);

impl AggregateUDFImpl for ClassAggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Casts columns to the type in which they are compared; [`Self::return_type`] checks the rest.
    fn coerce_types(&self, declared: &[DataType]) -> Result<Vec<DataType>> {
        let constants = self.row.constants().len();
        let types = declared.iter().enumerate();
        Ok(types
            .map(|(at, declared)| if at < constants { declared.clone() } else { compared(declared) })
            .collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        if types.len() <= self.before() {
            let syntax = match self.over {
                AggregateInput::Quasi => &self.documentation.syntax_example,
                AggregateInput::OneClass => &self.name,
            };
            let expected = if self.looks.columns() == 0 {
                "expected at least one quasi-identifier".to_owned()
            } else {
                format!("expected at least {} arguments, found {}", self.before() + 1, types.len())
            };
            return Err(DataFusionError::Plan(format!("{syntax}: {expected}")));
        }
        for (at, of) in types.iter().enumerate().skip(self.row.constants().len()) {
            if of.is_nested() || matches!(of, DataType::RunEndEncoded(..)) {
                return Err(self.refused(&format!(
                    "argument {} ({}): values of type {of} cannot be grouped",
                    at + 1,
                    self.meaning(at)
                )));
            }
        }
        Ok(self.returns.clone())
    }

    /// Leaves the call as it is and refuses wrong constants and DISTINCT before anything runs.
    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        Some(Box::new(|call: AggregateFunction, _| {
            if let Some(this) = call.func.inner().downcast_ref::<Self>() {
                this.no_distinct(call.params.distinct)?;
                let literals = call.params.args.iter().map(|argument| match argument {
                    Expr::Literal(value, _) => Some(value),
                    _ => None,
                });
                this.row.number(&this.name, literals)?;
                if let (Needs::Hierarchy, Some(Expr::Literal(value, _))) =
                    (this.needs, call.params.args.first())
                {
                    this.column(Some(value))?;
                }
            }
            Ok(Expr::AggregateFunction(call))
        }))
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

    fn create_sliding_accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Err(self.refused("windows are not supported; use GROUP BY"))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let fields = ClassCounts::state_fields(self.looks, self.over == AggregateInput::Quasi);
        let field = |(name, of)| Arc::new(Field::new(format_state_name(arguments.name, name), of, true));
        Ok(fields.into_iter().map(field).collect())
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn documentation(&self) -> Option<&Documentation> {
        (self.over == AggregateInput::Quasi).then_some(&self.documentation)
    }
}

/// The classes of every group.
struct ClassGroups {
    number: Number,
    column: SensitiveColumn,
    constants: usize,
    over: AggregateInput,
    looks: CountedColumns,
    classes: ClassCounts,
    returns: DataType,
    groups: usize,
}

impl ClassGroups {
    /// Splits `values` into the columns and the weight of each row.
    fn split<'a>(&self, values: &'a [ArrayRef]) -> Result<(&'a [ArrayRef], Option<&'a Int64Array>)> {
        let columns = values.get(self.constants..).unwrap_or_default();
        if self.over != AggregateInput::OneClass {
            return Ok((columns, None));
        }
        let wrong = || DataFusionError::Internal("rows that are not BIGINT".into());
        let (rows, columns) = columns.split_last().ok_or_else(wrong)?;
        Ok((columns, Some(rows.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?)))
    }

    fn forget(&mut self, emit: EmitTo) -> Result<()> {
        self.groups = self.groups.saturating_sub(emitted(emit, self.groups));
        self.classes.forget(emit)
    }
}

impl Groups for ClassGroups {
    fn answers(&self, emit: EmitTo) -> Result<ArrayRef> {
        let mut answers: Vec<Answer> = (0..emitted(emit, self.groups)).map(|_| self.number.begin()).collect();
        self.classes.for_each_class(emit, &self.column, &mut |group, individuals, _, class| {
            if let Some(answer) = answers.get_mut(group) {
                self.number.add(answer, self.looks.individual.then_some(individuals), class);
            }
        })?;
        self.number.answers(answers, &self.returns)
    }
}

impl GroupsAccumulator for ClassGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.groups = total_groups;
        let (columns, rows) = self.split(values)?;
        self.classes.update(columns, groups, filter, rows)
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
        let (columns, rows) = self.split(values)?;
        self.classes.state_of_rows(columns, filter, rows)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.classes.bytes()
    }
}
