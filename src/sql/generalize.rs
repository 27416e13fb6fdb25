//! `generalize('hierarchy', value, level)`: maps a value to its label in a loaded hierarchy.
//!
//! # Contract
//! Name and level are literals, checked when the query is planned:
//! [`load_hierarchy`](super::load_hierarchy) must have loaded the name, and the level is a whole
//! number from 0, the value's [text form](Value::text_form), to the hierarchy's top, which is one
//! label for all. The result is text (`Utf8View`) at every level; NULL stays NULL below the top.
//! Values that the hierarchy does not hold are refused and counted; level 0, and a top that the
//! table lacks, accept any value. Dictionaries are generalized once per distinct value. The
//! optimizer binds the call to the table loaded at that time: loading the name again affects later
//! plans, not running queries. The bound call has a fourth argument, the SHA-256 of the table, so
//! that a worker with another hierarchy of that name refuses the call. Labels are text and do not
//! keep the order of the values: no order is claimed, and nothing is pruned.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, lit,
};

use super::codes::{KnownCodes, codes_of, name_of_codes, type_of_codes};
use super::constants::Constant;
use super::documentation;
use super::hierarchies::{Hierarchies, LoadedHierarchy};
use super::udf::{labels_of, types};
use crate::generalize::Generalizer;
#[cfg(doc)]
use crate::generalize::Value;

/// The function's name.
pub(super) const NAME: &str = "generalize";
const SYNTAX: &str = "generalize('hierarchy', value, level)";

/// Returns the hierarchies of `function` if it is `generalize`.
pub(super) fn of_loaded(function: &ScalarUDF) -> Option<Hierarchies> {
    Some(function.inner().downcast_ref::<GeneralizeLoaded>()?.hierarchies.clone())
}

/// Returns the hierarchies that the functions of a registry share; `None` where they are not
/// registered.
pub(super) fn hierarchies(registry: &dyn FunctionRegistry) -> Option<Hierarchies> {
    registry.udf(NAME).ok().and_then(|function| of_loaded(&function))
}

/// One level of one loaded hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    name: String,
    level: usize,
    loaded: Arc<LoadedHierarchy>,
}

impl Bound {
    fn generalizer(&self) -> Result<&Arc<dyn Generalizer>> {
        let levels = self.loaded.hierarchy.levels();
        levels.get(self.level).ok_or_else(|| DataFusionError::Internal(format!("{NAME}: no such level")))
    }
}

/// The SQL function over the hierarchies of its session; in an optimized plan, over the hierarchy
/// it is bound to.
#[derive(Debug)]
pub(super) struct GeneralizeLoaded {
    hierarchies: Hierarchies,
    bound: Option<Bound>,
    /// Where it returns codes instead of labels, those of dictionaries.
    codes: Option<KnownCodes>,
    name: String,
    signature: Signature,
    documentation: Documentation,
}

impl GeneralizeLoaded {
    /// Creates the function over these hierarchies.
    pub(super) fn new(hierarchies: Hierarchies) -> Self {
        // The meaning of a name changes with time, the meaning of a bound name does not.
        Self::with(hierarchies, None, Volatility::Stable)
    }

    fn with(hierarchies: Hierarchies, bound: Option<Bound>, volatility: Volatility) -> Self {
        let summary = "maps a value to its label at a level (0: its own text) of a loaded hierarchy";
        let example = "generalize('marital', status, 1)";
        let signature = Signature::user_defined(volatility);
        let documentation = documentation(SYNTAX, summary, None, example);
        Self { hierarchies, bound, codes: None, name: NAME.to_owned(), signature, documentation }
    }

    /// Returns the function that returns codes instead of labels.
    pub(super) fn of_codes(&self) -> Self {
        let labels = Self::with(self.hierarchies.clone(), self.bound.clone(), self.signature.volatility);
        Self { codes: Some(KnownCodes::default()), name: name_of_codes("hierarchy"), ..labels }
    }

    pub(super) fn returns_codes(&self) -> bool {
        self.codes.is_some()
    }

    /// Looks up the level that a call with these literals means.
    fn meant(&self, literals: &[Option<&ScalarValue>]) -> Result<Bound> {
        if let Some(bound) = &self.bound {
            return Ok(bound.clone());
        }
        let (name, level, digest) = match literals {
            [name, _, level] => (name, level, None),
            [name, _, level, digest] => (name, level, Some(digest)),
            _ => return Err(wrong_arity(literals.len())),
        };
        let constant = |position, name| Constant { function: NAME, position, name };
        let name = constant(1, "hierarchy").word(*name)?;
        let loaded = self.hierarchies.get(&name).map_err(|e| constant(1, "hierarchy").refused(&e))?;
        if let Some(digest) = digest {
            let place = constant(4, "digest");
            if place.word(*digest)? != loaded.digest {
                return Err(place.refused(&format!(
                    "the plan was made with another hierarchy `{name}` than the one that is loaded here; load the same \
                     table everywhere"
                )));
            }
        }
        let (place, height) = (constant(3, "level"), loaded.hierarchy.height());
        let number = place.number(*level)?;
        let level = number.to_u64().and_then(|level| usize::try_from(level).ok());
        match level.filter(|level| *level <= height) {
            Some(level) => Ok(Bound { name, level, loaded }),
            None => Err(place.refused(&format!(
                "hierarchy `{name}` has the levels 0 (the value) to {height} (the top), not {number}"
            ))),
        }
    }
}

impl PartialEq for GeneralizeLoaded {
    fn eq(&self, other: &Self) -> bool {
        if self.name != other.name {
            return false;
        }
        match (&self.bound, &other.bound) {
            (None, None) => self.hierarchies.is(&other.hierarchies),
            (this, other) => this == other,
        }
    }
}

impl Eq for GeneralizeLoaded {}

impl Hash for GeneralizeLoaded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        if let Some(bound) = &self.bound {
            (&bound.name, bound.level, bound.loaded.hierarchy.height()).hash(state);
        }
    }
}

impl ScalarUDFImpl for GeneralizeLoaded {
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
        Err(DataFusionError::Internal(format!("{NAME}: the type needs the constants")))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let meant = self.meant(arguments.scalar_arguments)?;
        let (levels, value) = (meant.loaded.hierarchy.levels(), arguments.arg_fields.get(1));
        // The result type is taken from level 1, which looks at values; other levels may not.
        let (Some(level), Some(value)) = (levels.get(1), value) else { return Err(wrong_arity(1)) };
        let result = match &self.codes {
            None => types(&**level, value.data_type()).map(|(_, result)| result),
            Some(_) => type_of_codes(&**meant.generalizer()?, value.data_type()),
        };
        let result = result.map_err(|why| {
            let place = Constant { function: NAME, position: 2, name: "value" };
            place.refused(&why)
        })?;
        Ok(Arc::new(Field::new(&self.name, result, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let literals = arguments.args.iter().map(|argument| match argument {
            ColumnarValue::Scalar(literal) => Some(literal),
            ColumnarValue::Array(_) => None,
        });
        let literals: Vec<Option<&ScalarValue>> = literals.collect();
        let meant = self.meant(&literals)?;
        let Some(value) = arguments.args.get(1) else { return Err(wrong_arity(1)) };
        let (place, generalizer) = (format!("{NAME}: hierarchy `{}`", meant.name), meant.generalizer()?);
        match &self.codes {
            None => labels_of(&place, &**generalizer, value),
            Some(known) => codes_of(&place, &**generalizer, value, known, &literals),
        }
    }

    /// Binds the call to the table that currently has its name.
    fn simplify(&self, mut arguments: Vec<Expr>, _info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if self.bound.is_some() {
            return Ok(ExprSimplifyResult::Original(arguments));
        }
        let literals = arguments.iter().map(|argument| match argument {
            Expr::Literal(literal, _) => Some(literal),
            _ => None,
        });
        let bound = self.meant(&literals.collect::<Vec<_>>())?;
        if arguments.len() == 3 {
            arguments.push(lit(bound.loaded.digest.as_str()));
        }
        let labels = Self::with(self.hierarchies.clone(), Some(bound), Volatility::Immutable);
        let function = if self.codes.is_some() { labels.of_codes() } else { labels };
        let call = ScalarFunction::new_udf(Arc::new(function.into()), arguments);
        Ok(ExprSimplifyResult::Simplified(Expr::ScalarFunction(call)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.codes.is_none().then_some(&self.documentation)
    }
}

fn wrong_arity(found: usize) -> DataFusionError {
    DataFusionError::Plan(format!("{SYNTAX} takes 3 arguments, found {found}"))
}
