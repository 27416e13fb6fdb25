//! `generalize_<row>(value, constants...)`: one adapter for every generalizer.
//!
//! # Contract
//! The value may be a column, an expression or a literal. The constants are literals, checked by
//! the row when the query is planned: one level's settings of the row's parameters, in their order;
//! a list of cut points may have any length, options may be left out, and NULL leaves an end or
//! another parameter without a default unset. The result is that of [`apply`], so dictionaries are
//! generalized once per distinct value. Its type follows from the value's type alone, with
//! dictionaries unpacked and text as `Utf8View`. An untyped NULL counts as the first type that the
//! generalizer accepts, and stays NULL (under `suppress` it becomes the label, like every NULL).
//! Volatility is immutable.
//!
//! Sorted values stay sorted under `floor`, `clip` and `date` ([`Generalizer::keeps_order`]), so
//! that grouping by them can stream. A comparison of `floor` or `date` with one of its labels
//! becomes a comparison of the value with the ends of that label ([`Generalizer::preimage_end`]),
//! so that files and row groups are pruned: `generalize_floor(age, 10) = 30` becomes `age >= 30 AND
//! age < 40`. A value that the function would refuse is then not looked at. Both hold for values of
//! the types that a release has, unpacked, and are tested by `tests/it/sql_laws.rs`. No bounds are
//! claimed: nothing is pruned by them.
//!
//! Order and ends are claimed rarely, because a wrong claim gives wrong answers silently. Doubles have no ends:
//! statistics leave NaN out, and the engine sorts NaN above all numbers. A date in a zone whose clocks change
//! has none, and text labels, hierarchies and masks keep no order.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{ArrayRef, new_null_array};
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
    Volatility,
};

use super::by_name::told_apart_by_name;
use super::codes::{KnownCodes, codes_of, name_of_codes, type_of_codes};
use super::constants::Constant;
use super::documentation;
use crate::engine::{Context, distinct, into_engine};
use crate::error::Error;
use crate::generalize::{Generalizer, GeneralizerRow, Value, apply};
use crate::input::canonical_type;
use crate::parameter::{Absent, Kind};

/// A row of [`GENERALIZERS`](crate::generalize::GENERALIZERS) as a SQL function.
pub struct GeneralizeFunction {
    row: &'static GeneralizerRow,
    /// Where it returns codes instead of labels, those of dictionaries.
    codes: Option<KnownCodes>,
    name: String,
    signature: Signature,
    documentation: Documentation,
}

impl GeneralizeFunction {
    /// Creates the function of a row; `None` where a parameter is a file, which a SQL function
    /// cannot take.
    pub fn new(row: &'static GeneralizerRow) -> Option<Self> {
        if row.parameters.iter().any(|parameter| parameter.kind == Kind::File) {
            return None;
        }
        let name = format!("generalize_{}", row.doc.name);
        let constants = if row.doc.parameters.is_empty() { "" } else { ", " };
        let options: String = row.options().iter().map(|option| format!("[, {}]", option.name)).collect();
        let syntax = format!("{name}(value{constants}{}{options})", row.doc.parameters);
        let documentation = documentation(&syntax, row.doc.summary, row.doc.paper, row.doc.example);
        let signature = Signature::user_defined(Volatility::Immutable);
        Some(Self { row, codes: None, signature, documentation, name })
    }

    /// Returns the function of the row that returns codes instead of labels.
    pub(crate) fn of_codes(&self) -> Self {
        Self {
            row: self.row,
            codes: Some(KnownCodes::default()),
            name: name_of_codes(self.row.doc.name),
            signature: self.signature.clone(),
            documentation: self.documentation.clone(),
        }
    }

    pub(super) fn returns_codes(&self) -> bool {
        self.codes.is_some()
    }

    /// Returns the place of a constant, counted from 0 after the value.
    fn constant(&self, index: usize) -> Constant<'_> {
        let parameter = self.row.parameters.get(index).or(self.row.parameters.last());
        let name = parameter.map_or("", |parameter| parameter.name);
        Constant { function: &self.name, position: index + 2, name }
    }

    /// Returns the number of constants that a call may have.
    fn constants(&self) -> RangeInclusive<usize> {
        let parameters = self.row.parameters;
        let is_variadic = parameters.iter().any(|parameter| parameter.kind == Kind::Levels(&Kind::Numbers));
        let most = if is_variadic { usize::MAX } else { parameters.len() };
        parameters.len() - self.row.options().len()..=most
    }

    /// Returns the generalizer of a call with these literals after the value.
    fn generalizer(&self, literals: &[Option<&ScalarValue>]) -> Result<Arc<dyn Generalizer>> {
        if !self.constants().contains(&literals.len()) {
            return Err(self.wrong_arity(literals.len() + 1));
        }
        let mut given = Vec::new();
        for (index, (parameter, literal)) in self.row.parameters.iter().zip(literals).enumerate() {
            if parameter.absent != Absent::Unset || !literal.is_some_and(ScalarValue::is_null) {
                let literals = literals.get(index..).unwrap_or_default();
                let setting = self.constant(index).setting(parameter.kind, literals)?;
                given.push((parameter.name.to_owned(), setting));
            }
        }
        // An error about several constants is reported at the last one.
        let place = if self.row.options().is_empty() { 0 } else { literals.len().saturating_sub(1) };
        let mut levels = self.row.with(&given).map_err(|e| self.constant(place).refused(&e))?;
        levels.pop().ok_or_else(|| DataFusionError::Internal(format!("{}: no level", self.name)))
    }

    fn wrong_arity(&self, found: usize) -> DataFusionError {
        let syntax = &self.documentation.syntax_example;
        let (least, most) = (self.constants().start() + 1, self.constants().end().saturating_add(1));
        let takes = match most {
            usize::MAX => format!("at least {least}"),
            most if most > least => format!("{least} to {most}"),
            most => most.to_string(),
        };
        DataFusionError::Plan(format!("{syntax} takes {takes} arguments, found {found}"))
    }

    fn wrong_value(&self, why: &dyn std::fmt::Display) -> DataFusionError {
        DataFusionError::Plan(format!("{}: argument 1 (value): {why}", self.name))
    }

    /// As [`types`], with errors reported at the value.
    fn types(&self, generalizer: &dyn Generalizer, declared: &DataType) -> Result<(DataType, DataType)> {
        types(generalizer, declared).map_err(|e| self.wrong_value(&e))
    }

    /// Returns the generalizer of these literals if it looks at values of type `declared`
    /// unconverted.
    fn seeing(&self, declared: &DataType, literals: &[Option<&ScalarValue>]) -> Option<Arc<dyn Generalizer>> {
        let generalizer = self.generalizer(literals).ok()?;
        let (seen, _) = self.types(&*generalizer, declared).ok()?;
        (seen == *declared).then_some(generalizer)
    }

    fn order(&self, inputs: &[ExprProperties]) -> Option<SortProperties> {
        let (value, constants) = inputs.split_first()?;
        let literals = constants.iter().map(|constant| {
            let (least, most) = (constant.range.lower(), constant.range.upper());
            (constant.sort_properties == SortProperties::Singleton && least == most).then_some(least)
        });
        let declared = value.range.data_type();
        let generalizer = self.seeing(&declared, &literals.collect::<Vec<_>>())?;
        (generalizer.keeps_order(&declared) && !generalizer.is_top()).then_some(value.sort_properties)
    }

    /// Returns the half-open interval of values that become `label`.
    fn preimage_of(
        &self,
        arguments: &[Expr],
        label: &Expr,
        info: &SimplifyContext,
    ) -> Option<PreimageResult> {
        let ((value, constants), Expr::Literal(label, _)) = (arguments.split_first()?, label) else {
            return None;
        };
        let literals = constants.iter().map(|constant| match constant {
            Expr::Literal(literal, _) => Some(literal),
            _ => None,
        });
        let declared = info.get_data_type(value).ok()?;
        // A volatile expression would be evaluated twice.
        if value.is_volatile() || label.is_null() || label.data_type() != declared {
            return None;
        }
        let generalizer = self.seeing(&declared, &literals.collect::<Vec<_>>())?;
        let label = Value::read(&label.to_array().ok()?, 0).ok()?;
        let end = generalizer.preimage_end(&declared, &label)?;
        if ![&label, &end].into_iter().all(|one| generalizer.is_label(one)) {
            return None;
        }
        let ends = Value::build(&[label, end], &declared).ok()?;
        let end = |row| ScalarValue::try_from_array(&ends, row).ok();
        let interval = Box::new(Interval::try_new(end(0)?, end(1)?).ok()?);
        Some(PreimageResult::Range { expr: value.clone(), interval })
    }
}

/// Returns the type that a generalizer sees for values of type `declared`, and the type of its
/// result.
pub(super) fn types(
    generalizer: &dyn Generalizer,
    declared: &DataType,
) -> crate::error::Result<(DataType, DataType)> {
    let seen = match declared {
        DataType::Null => OF_UNTYPED.iter().find(|one| generalizer.output_type(one).is_ok()).cloned(),
        _ => None,
    };
    let seen = seen.unwrap_or_else(|| canonical_type(declared));
    let result = generalizer.output_type(&seen)?;
    Ok((seen, result))
}

/// Returns values as a generalizer sees them; encodings of text stay.
pub(super) fn seen_values(
    generalizer: &dyn Generalizer,
    values: &ArrayRef,
) -> crate::error::Result<ArrayRef> {
    let (seen, _) = types(generalizer, values.data_type())?;
    match values.data_type() {
        DataType::Null => Ok(new_null_array(&seen, values.len())),
        other if *other == seen => Ok(Arc::clone(values)),
        // A value that `seen` cannot hold must not become NULL, and Arrow's error would show it.
        _ => cast_with_options(values, &seen, &CastOptions { safe: false, ..CastOptions::default() })
            .map_err(|_| Error::data(format!("a value does not fit the type {seen}"))),
    }
}

/// Returns the labels of a call's value; an error begins with `place`.
pub(super) fn labels_of(
    place: &str,
    generalizer: &dyn Generalizer,
    value: &ColumnarValue,
) -> Result<ColumnarValue> {
    let generalized = |values: &ArrayRef| -> crate::error::Result<ArrayRef> {
        match values.data_type() {
            // The generalizer handles encodings of text itself.
            DataType::Dictionary(..) => apply(generalizer, values),
            // Texts repeat, and their labels are expensive.
            DataType::Utf8View => {
                let (distinct, places) = distinct::of_batch(values).context("reading the values")?;
                take(&apply(generalizer, &distinct)?, &places, None).context("generalizing the values")
            }
            _ => apply(generalizer, &seen_values(generalizer, values)?),
        }
    };
    let generalized = |values: &ArrayRef| generalized(values).map_err(|e| into_engine(e.at(place)));
    match value {
        ColumnarValue::Array(values) => generalized(values).map(ColumnarValue::Array),
        ColumnarValue::Scalar(value) => {
            let label = generalized(&value.to_array()?)?;
            ScalarValue::try_from_array(&label, 0).map(ColumnarValue::Scalar)
        }
    }
}

/// The types that an untyped NULL may take.
const OF_UNTYPED: [DataType; 4] = [DataType::Utf8View, DataType::Int64, DataType::Float64, DataType::Date32];

told_apart_by_name!(GeneralizeFunction);

impl ScalarUDFImpl for GeneralizeFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Accepts every type: [`Self::return_field_from_args`] checks them, where constants are known.
    fn coerce_types(&self, declared: &[DataType]) -> Result<Vec<DataType>> {
        Ok(declared.to_vec())
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{}: the type needs the constant", self.name)))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let Some(value) = arguments.arg_fields.first() else { return Err(self.wrong_arity(0)) };
        let generalizer = self.generalizer(arguments.scalar_arguments.get(1..).unwrap_or_default())?;
        let result = match &self.codes {
            None => self.types(&*generalizer, value.data_type())?.1,
            Some(_) => type_of_codes(&*generalizer, value.data_type()).map_err(|e| self.wrong_value(&e))?,
        };
        Ok(Arc::new(Field::new(&self.name, result, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let literals = arguments.args.iter().skip(1).map(|argument| match argument {
            ColumnarValue::Scalar(literal) => Some(literal),
            ColumnarValue::Array(_) => None,
        });
        let literals: Vec<Option<&ScalarValue>> = literals.collect();
        let generalizer = self.generalizer(&literals)?;
        let Some(value) = arguments.args.first() else { return Err(self.wrong_arity(0)) };
        match &self.codes {
            None => labels_of(&self.name, &*generalizer, value),
            Some(known) => {
                let place = format!("generalize_{}", self.row.doc.name);
                codes_of(&place, &*generalizer, value, known, &literals)
            }
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        let order = self.order(inputs).filter(|_| self.codes.is_none());
        Ok(order.unwrap_or(SortProperties::Unordered))
    }

    fn preimage(&self, arguments: &[Expr], label: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
        let preimage = self.preimage_of(arguments, label, info).filter(|_| self.codes.is_none());
        Ok(preimage.unwrap_or(PreimageResult::None))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.codes.is_none().then_some(&self.documentation)
    }
}
