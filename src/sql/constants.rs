//! Constants of a call: literals that are read when the query is planned.

use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::physical_expr::expressions::Literal;

use crate::decimal::Decimal;
use crate::parameter::{Kind, Setting};

/// A constant's place in a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constant<'a> {
    /// The function's name.
    pub(super) function: &'a str,
    /// The position among the arguments, counted from 1.
    pub(super) position: usize,
    /// The meaning of the constant, in one word.
    pub(super) name: &'a str,
}

impl Constant<'_> {
    /// Returns the exact number of the literal; `None` stands for an argument that is not a
    /// literal.
    pub(super) fn number(self, literal: Option<&ScalarValue>) -> Result<Decimal> {
        let found = match literal {
            Some(value) if !value.is_null() && value.data_type().is_numeric() => value,
            other => return Err(self.wrong("a literal number", other)),
        };
        let value = found.to_array()?;
        let text = ArrayFormatter::try_new(&value, &FormatOptions::default())?.value(0).to_string();
        Decimal::parse(&text).map_err(|e| self.refused(&e))
    }

    /// Returns the word of the literal.
    pub(super) fn word(self, literal: Option<&ScalarValue>) -> Result<String> {
        match literal.and_then(ScalarValue::try_as_str).flatten() {
            Some(word) => Ok(word.to_owned()),
            None => Err(self.wrong("a literal text", literal)),
        }
    }

    /// Returns the setting of this argument: a list takes all the literals, any other kind the first
    /// one only.
    pub(super) fn setting(self, kind: Kind, literals: &[Option<&ScalarValue>]) -> Result<Setting> {
        let literal = literals.first().copied().flatten();
        let setting = match kind {
            Kind::Levels(entry) => {
                return self.setting(*entry, literals).map(|one| Setting::List(vec![one]));
            }
            Kind::Numbers => {
                let number = |(literal, position)| Self { position, ..self }.number(literal);
                let numbers = literals.iter().copied().zip(self.position..).map(number);
                numbers.collect::<Result<Vec<_>>>()?.into()
            }
            Kind::Words => {
                let word = |(literal, position)| Self { position, ..self }.word(literal);
                let words = literals.iter().copied().zip(self.position..).map(word);
                Setting::List(words.map(|word| Ok(Setting::Word(word?.into()))).collect::<Result<_>>()?)
            }
            Kind::Choice(_) | Kind::Word | Kind::File | Kind::Nodes => {
                Setting::Word(self.word(literal)?.into())
            }
            Kind::Count | Kind::AtLeastOne | Kind::Positive | Kind::Share | Kind::Number => {
                Setting::Number(self.number(literal)?)
            }
        };
        kind.check(&setting).map_err(|why| self.refused(&why))?;
        Ok(setting)
    }

    fn wrong(self, expected: &str, found: Option<&ScalarValue>) -> DataFusionError {
        let found = match found {
            None => "a column or an expression".to_owned(),
            Some(value) if value.is_null() => "NULL".to_owned(),
            Some(value) => format!("a literal of type {}", value.data_type()),
        };
        self.refused(&format!("expected {expected}, found {found}"))
    }

    /// Builds the plan error for a constant that was read but cannot be used.
    pub(super) fn refused(self, why: &dyn std::fmt::Display) -> DataFusionError {
        let Self { function, position, name } = self;
        DataFusionError::Plan(format!("{function}: argument {position} ({name}): {why}"))
    }
}

/// Returns the literals among the arguments of an accumulator.
pub(super) fn literals<'a>(
    arguments: &'a AccumulatorArgs<'_>,
) -> impl Iterator<Item = Option<&'a ScalarValue>> {
    arguments.exprs.iter().map(|e| e.downcast_ref::<Literal>().map(Literal::value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_was_written() {
        let constant = Constant { function: "f", position: 2, name: "step" };
        let number = |value: ScalarValue| constant.number(Some(&value)).map(|n| n.to_string());
        assert_eq!(number(ScalarValue::from(0.1)).unwrap(), "0.1");
        assert_eq!(number(ScalarValue::from(1e16)).unwrap(), "10000000000000000");
        assert_eq!(number(ScalarValue::from(-5_i64)).unwrap(), "-5");
        assert_eq!(number(ScalarValue::Decimal128(Some(25), 5, 2)).unwrap(), "0.25");
        for wrong in [
            ScalarValue::from("5"),
            ScalarValue::Float64(None),
            ScalarValue::Null,
            ScalarValue::from(f64::NAN),
        ] {
            assert!(number(wrong).unwrap_err().to_string().contains("f: argument 2 (step): expected"));
        }
        let error = constant.word(None).unwrap_err().strip_backtrace();
        assert_eq!(
            error,
            "Error during planning: f: argument 2 (step): expected a literal text, found a column or an expression"
        );
    }
}
