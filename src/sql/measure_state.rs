//! The result of an aggregate, built class by class: the worst value reached, or the risk over all
//! classes.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};

use super::constants::Constant;
use crate::class::ClassSizesBuilder;
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::engine::into_engine;
use crate::measure::{RiskMeasure, RiskRow};
use crate::model::{Class, ClassModel, Distribution, ModelRow, Needs, Quantity, ValueCount, Worst};
use crate::parameter::{Parameter, Setting};

/// A row of [`MODELS`](crate::model::MODELS) or [`RISKS`](crate::measure::RISKS).
#[derive(Clone, Copy)]
pub(super) enum Row {
    Model(&'static ModelRow),
    Risk(&'static RiskRow),
}

impl Row {
    pub(super) fn doc(self) -> &'static Doc {
        match self {
            Row::Model(row) => row.doc,
            Row::Risk(row) => row.doc,
        }
    }

    /// Returns the constants before the columns. Of a model these are the parameters on which the
    /// value that it reaches depends: it needs no bound.
    pub(super) fn constants(self) -> &'static [Parameter] {
        match self {
            Row::Model(row) => row.constants,
            Row::Risk(row) => row.parameters,
        }
    }

    fn make(self, constants: &[(String, Setting)]) -> crate::error::Result<Number> {
        match self {
            Row::Model(row) => reached_by(row, constants).map(|model| match model.needs() {
                Needs::Table => Number::Table(model),
                _ => Number::Reached(model),
            }),
            Row::Risk(row) => row.with(constants).map(Number::Risk),
        }
    }

    /// Returns the columns that the measure looks at.
    ///
    /// # Errors
    /// When the model cannot be made with every parameter 1.
    pub(super) fn needs(self) -> crate::error::Result<Needs> {
        match self {
            Row::Model(row) => Ok(reached_by(row, &[])?.needs()),
            Row::Risk(_) => Ok(Needs::Size),
        }
    }

    /// Returns whether the result comes from all classes together, by their sizes alone.
    pub(super) fn is_of_table(self, needs: Needs) -> bool {
        matches!(self, Row::Risk(_)) || needs == Needs::Table
    }

    /// Returns whether a model's value of a class depends only on its size, the number of its
    /// sensitive values and the greatest of their counts.
    ///
    /// # Errors
    /// As [`needs`](Self::needs).
    pub(super) fn reads_extremes_only(self) -> crate::error::Result<bool> {
        match self {
            Row::Model(row) => Ok(reached_by(row, &[])?.reads_extremes_only()),
            Row::Risk(_) => Ok(false),
        }
    }

    /// Returns the number that a call of `function` with these literals computes; `None` stands for
    /// an argument that is not a literal.
    ///
    /// # Errors
    /// A plan error that names the wrong constant.
    pub(super) fn number<'a>(
        self,
        function: &str,
        literals: impl Iterator<Item = Option<&'a ScalarValue>>,
    ) -> Result<Number> {
        let read = |((parameter, position), literal): ((&Parameter, usize), Option<&ScalarValue>)| {
            let place = Constant { function, position, name: parameter.name };
            Ok((parameter.name.to_owned(), place.setting(parameter.kind, &[literal])?))
        };
        let constants = self.constants().iter().zip(1..).zip(literals).map(read);
        let constants = constants.collect::<Result<Vec<_>>>()?;
        self.make(&constants).map_err(|error| into_engine(error.at(function)))
    }

    /// Returns which end of the per-class values is the overall value.
    ///
    /// # Errors
    /// For a row whose result is not an end of per-class values.
    pub(super) fn worst(self) -> Result<Worst> {
        match self {
            Row::Model(row) => Ok(reached_by(row, &[]).map_err(into_engine)?.worst()),
            Row::Risk(_) => Err(DataFusionError::Internal("a risk has no worst class".into())),
        }
    }

    /// Returns the type of the result.
    ///
    /// # Errors
    /// As [`needs`](Self::needs).
    pub(super) fn returns(self) -> crate::error::Result<DataType> {
        let Row::Model(row) = self else { return Ok(DataType::Float64) };
        let model = reached_by(row, &[])?;
        let value = [ValueCount { value: Some(0), count: 1 }];
        let input = Distribution::of_rows(value.to_vec()).with_integers(vec![0]);
        let class = Class { size: 1, sensitive: &value, input: &input, population: None };
        Ok(type_of(model.value(&class)))
    }
}

/// Returns the type in which SQL shows a value that a model reaches.
pub(super) fn type_of(value: Quantity) -> DataType {
    match value {
        Quantity::Count(_) | Quantity::Margin(_) => DataType::Int64,
        Quantity::Ratio(..) | Quantity::Real(_) | Quantity::Broken => DataType::Float64,
    }
}

/// Creates the model with these constants and every other parameter 1: its `value` and its worst
/// end do not depend on the bound.
pub(super) fn reached_by(
    row: &ModelRow,
    constants: &[(String, Setting)],
) -> crate::error::Result<Box<dyn ClassModel>> {
    let given = row.parameters.iter().map(|parameter| {
        let constant = constants.iter().find(|(name, _)| name == parameter.name).cloned();
        constant.unwrap_or_else(|| (parameter.name.to_owned(), Decimal::integer(1).into()))
    });
    row.with(&given.collect::<Vec<_>>())
}

/// The number that is computed from classes.
pub(super) enum Number {
    Reached(Box<dyn ClassModel>),
    Table(Box<dyn ClassModel>),
    Risk(Box<dyn RiskMeasure>),
}

/// The running result after some classes.
pub(super) enum Answer {
    Reached(Option<Quantity>),
    Risk(Box<ClassSizesBuilder>),
}

impl Number {
    /// Returns the result before any class.
    pub(super) fn begin(&self) -> Answer {
        match self {
            Number::Reached(_) => Answer::Reached(None),
            Number::Risk(_) | Number::Table(_) => Answer::Risk(Box::default()),
        }
    }

    /// Adds one class; `individuals` are the numbers of its individuals where they are counted.
    pub(super) fn add(&self, answer: &mut Answer, individuals: Option<&[u32]>, class: &Class<'_>) {
        match (self, answer) {
            (Number::Reached(model), Answer::Reached(known)) => {
                let value = model.value(class);
                *known = model.reached(&mut known.iter().copied().chain([value]));
            }
            (Number::Risk(_) | Number::Table(_), Answer::Risk(sizes)) => sizes.add(class.size, individuals),
            _ => {}
        }
    }

    /// Adds `classes` disjoint classes of `size` individuals.
    pub(super) fn add_sizes(&self, answer: &mut Answer, size: u64, classes: u64) {
        match answer {
            Answer::Reached(_) => self.add(answer, None, &Class::of_size(size)),
            Answer::Risk(sizes) => sizes.add_many(size, classes),
        }
    }

    /// Adds this many individuals whose smallest class has this size.
    pub(super) fn add_individuals(&self, answer: &mut Answer, smallest: u64, individuals: u64) {
        if let Answer::Risk(sizes) = answer {
            sizes.add_individuals(smallest, individuals);
        }
    }

    /// Returns the results as a column of type `returns`; NULL for a group without classes.
    ///
    /// # Errors
    /// When a count does not fit a BIGINT.
    pub(super) fn answers(&self, answers: Vec<Answer>, returns: &DataType) -> Result<ArrayRef> {
        if *returns == DataType::Int64 {
            let count = |answer| match answer {
                Answer::Reached(Some(Quantity::Count(count))) => {
                    i64::try_from(count).map(Some).map_err(|e| DataFusionError::External(Box::new(e)))
                }
                Answer::Reached(Some(Quantity::Margin(margin))) => {
                    i64::try_from(margin).map(Some).map_err(|e| DataFusionError::External(Box::new(e)))
                }
                _ => Ok(None),
            };
            return Ok(Arc::new(answers.into_iter().map(count).collect::<Result<Int64Array>>()?));
        }
        let number = |answer| match (self, answer) {
            (Number::Risk(risk), Answer::Risk(sizes)) => risk.value(&sizes.finish()),
            (Number::Table(model), Answer::Risk(sizes)) => {
                model.table_value(&sizes.finish()).map(Quantity::to_f64)
            }
            (_, Answer::Reached(known)) => {
                known.filter(|value| *value != Quantity::Broken).map(Quantity::to_f64)
            }
            _ => None,
        };
        Ok(Arc::new(answers.into_iter().map(number).collect::<Float64Array>()))
    }
}
