//! `<model>(quasi-identifiers...)`, `<risk>(constants..., quasi-identifiers...)`: one adapter for every model
//! that looks at sizes and for every risk measure.
//!
//! # Contract
//! Rows with equal quasi-identifiers are a class; NULL is a value like any other, -0.0 is 0.0 and all NaNs are
//! one. The input is the rows that reach the aggregate: after WHERE and FILTER, for each group of an outer GROUP
//! BY. A model returns what its worst class reaches (`k_anonymity`: the least size), a risk measure its number;
//! no rows give NULL. Sizes count rows. DISTINCT is refused, since it would make every class one row; sliding
//! windows are refused. All classes of a group are held in memory, which the engine's limit covers.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Documentation, Expr, Signature, Volatility};
use datafusion::physical_expr::expressions::Literal;

use super::class_counts::ClassCounts;
use super::constants::Constant;
use super::documentation;
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::measure::{ClassSizes, RiskMeasure, RiskRow};
use crate::model::{Class, ClassModel, Model, ModelRow, Needs, Parameters, Quantity};
use crate::release::engine::into_engine;

/// A row of [`MODELS`](crate::model::MODELS) or [`RISKS`](crate::measure::RISKS) as a SQL aggregate.
pub struct ClassAggregate {
    row: Row,
    returns: DataType,
    signature: Signature,
    documentation: Documentation,
}

#[derive(Clone, Copy)]
enum Row {
    Model(&'static ModelRow),
    Risk(&'static RiskRow),
}

impl Row {
    fn doc(self) -> &'static Doc {
        match self {
            Row::Model(row) => row.doc,
            Row::Risk(row) => row.doc,
        }
    }

    /// The constants before the quasi-identifiers. A model has none: what it reaches needs no bound.
    fn constants(self) -> &'static [&'static str] {
        match self {
            Row::Model(_) => &[],
            Row::Risk(row) => row.parameters,
        }
    }

    fn make(self, constants: &[Decimal]) -> crate::error::Result<Number> {
        match self {
            Row::Model(row) => match reached_by(row)? {
                Model::Class(model) => Ok(Number::Reached(model)),
                Model::Table(_) => Err(crate::error::Error::internal("a table model has no classes")),
            },
            Row::Risk(row) => (row.make)(constants).map(Number::Risk),
        }
    }
}

/// The model with every parameter 1: its `value` and its worst end do not depend on what is required.
fn reached_by(row: &ModelRow) -> crate::error::Result<Model> {
    let ones = row.parameters.iter().map(|name| ((*name).to_owned(), Decimal::integer(1)));
    (row.make)(Parameters::new(ones.collect()))
}

/// What an aggregate computes of the sizes of its classes.
enum Number {
    Reached(Box<dyn ClassModel>),
    Risk(Box<dyn RiskMeasure>),
}

impl Number {
    fn of(&self, sizes: impl Iterator<Item = u64>) -> Result<ScalarValue> {
        let number = match self {
            Number::Risk(risk) => {
                return Ok(ScalarValue::Float64(risk.value(&sizes.collect::<ClassSizes>())));
            }
            Number::Reached(model) => {
                model.reached(&mut sizes.map(|size| model.value(&Class::of_size(size))))
            }
        };
        Ok(match number {
            Some(Quantity::Count(count)) => {
                let count = i64::try_from(count);
                ScalarValue::Int64(Some(count.map_err(|e| DataFusionError::External(Box::new(e)))?))
            }
            other => ScalarValue::Float64(other.map(Quantity::to_f64)),
        })
    }
}

impl ClassAggregate {
    /// The aggregate of a model; `None` for table models and models that look at more than sizes.
    ///
    /// # Errors
    /// When the model cannot be made with every parameter 1.
    pub fn model(row: &'static ModelRow) -> Result<Option<Self>> {
        let Model::Class(model) = reached_by(row).map_err(into_engine)? else { return Ok(None) };
        if model.needs() != Needs::Size {
            return Ok(None);
        }
        let returns = Number::Reached(model).of(std::iter::once(1))?.data_type();
        Ok(Some(Self::new(Row::Model(row), returns)))
    }

    /// The aggregate of a risk measure.
    pub fn risk(row: &'static RiskRow) -> Self {
        Self::new(Row::Risk(row), DataType::Float64)
    }

    fn new(row: Row, returns: DataType) -> Self {
        let doc = Doc {
            parameters: if row.constants().is_empty() { "" } else { row.doc().parameters },
            ..*row.doc()
        };
        Self {
            row,
            returns,
            signature: Signature::user_defined(Volatility::Immutable),
            documentation: documentation(doc.name, &doc, true, &[]),
        }
    }

    /// What a call with these constants computes; `None` stands for an argument that is no literal.
    fn number<'a>(&self, literals: impl Iterator<Item = Option<&'a ScalarValue>>) -> Result<Number> {
        let (function, names) = (self.row.doc().name, self.row.constants());
        let places = names.iter().zip(1..).map(|(name, position)| Constant { function, position, name });
        let constants: Vec<(Constant<'_>, Decimal)> = places
            .zip(literals)
            .map(|(place, literal)| Ok((place, place.number(literal)?)))
            .collect::<Result<_>>()?;
        let numbers: Vec<Decimal> = constants.iter().map(|(_, number)| *number).collect();
        self.row.make(&numbers).map_err(|e| match constants.first() {
            Some((place, _)) => place.refused(&e),
            None => into_engine(e.at(function)),
        })
    }

    fn no_distinct(&self, distinct: bool) -> Result<()> {
        if distinct {
            Err(self.refused("DISTINCT would make every class one row; leave it out"))
        } else {
            Ok(())
        }
    }

    fn refused(&self, why: &str) -> DataFusionError {
        DataFusionError::Plan(format!("{}: {why}", self.row.doc().name))
    }
}

/// The type in which quasi-identifiers of type `said` are compared.
fn compared(said: &DataType) -> DataType {
    match said {
        DataType::Dictionary(_, values) => compared(values),
        DataType::Float16 => DataType::Float32,
        other => other.clone(),
    }
}

impl std::fmt::Debug for ClassAggregate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row.doc().name)
    }
}

impl PartialEq for ClassAggregate {
    fn eq(&self, other: &Self) -> bool {
        self.row.doc().name == other.row.doc().name
    }
}

impl Eq for ClassAggregate {}

impl Hash for ClassAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.row.doc().name.hash(state);
    }
}

impl AggregateUDFImpl for ClassAggregate {
    fn name(&self) -> &str {
        self.row.doc().name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Quasi-identifiers in the type in which they are compared; [`Self::return_type`] judges the rest.
    fn coerce_types(&self, said: &[DataType]) -> Result<Vec<DataType>> {
        let constants = self.row.constants().len();
        let types = said.iter().enumerate();
        Ok(types.map(|(at, said)| if at < constants { said.clone() } else { compared(said) }).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let constants = self.row.constants().len();
        if types.len() <= constants {
            let syntax = &self.documentation.syntax_example;
            return Err(DataFusionError::Plan(format!("{syntax}: expected at least one quasi-identifier")));
        }
        for (of, position) in types.iter().zip(1..).skip(constants) {
            if of.is_nested() || matches!(of, DataType::RunEndEncoded(..)) {
                return Err(self.refused(&format!(
                    "argument {position} (quasi-identifier): values of type {of} cannot be grouped"
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
                this.number(call.params.args.iter().map(|argument| match argument {
                    Expr::Literal(value, _) => Some(value),
                    _ => None,
                }))?;
            }
            Ok(Expr::AggregateFunction(call))
        }))
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.no_distinct(arguments.is_distinct)?;
        let literals = arguments.exprs.iter().map(|e| e.downcast_ref::<Literal>().map(Literal::value));
        let number = self.number(literals)?;
        let constants = self.row.constants().len();
        let types = arguments.expr_fields.iter().skip(constants).map(|field| field.data_type().clone());
        Ok(Box::new(ClassAccumulator {
            number,
            constants,
            classes: ClassCounts::new(types)?,
            returns: self.returns.clone(),
        }))
    }

    fn create_sliding_accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Err(self.refused("no sliding windows; use GROUP BY, or OVER (PARTITION BY ...) without a frame"))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let [classes, sizes] = ClassCounts::state_types();
        let field = |name, of| Arc::new(Field::new(format_state_name(arguments.name, name), of, true));
        Ok(vec![field("classes", classes), field("sizes", sizes)])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.documentation)
    }
}

struct ClassAccumulator {
    number: Number,
    constants: usize,
    classes: ClassCounts,
    returns: DataType,
}

/// Names the kind only: the classes hold cells.
impl std::fmt::Debug for ClassAccumulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClassAccumulator(..)")
    }
}

impl Accumulator for ClassAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.classes.update(values.get(self.constants..).unwrap_or_default())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.number.of(self.classes.sizes())?;
        if value.is_null() { ScalarValue::try_from(&self.returns) } else { Ok(value) }
    }

    fn size(&self) -> usize {
        size_of_val(self) - size_of_val(&self.classes) + self.classes.bytes()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.classes.state())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.classes.merge(states)
    }
}
