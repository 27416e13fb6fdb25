//! Comparisons of moments with texts, in the unit of the column. The engine compares them in nanoseconds, in which there
//! is no year before 1678 or after 2261: `valid_to = '9999-12-31T00:00:00'` would fail.

use arrow::array::{Array, StringArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{Timelike, Utc};
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};
use datafusion::scalar::ScalarValue;

/// Gives the texts that a query compares with moments the type of these.
#[derive(Debug)]
pub(super) struct Moments;

impl FunctionRewrite for Moments {
    fn name(&self) -> &'static str {
        "moments_in_the_unit_of_the_column"
    }

    fn rewrite(&self, mut expr: Expr, schema: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        let (of, texts): (&Expr, Vec<&mut Expr>) = match &mut expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
                match is_moment(left, schema) {
                    true => (left, vec![right]),
                    false => (right, vec![left]),
                }
            }
            Expr::Between(Between { expr, low, high, .. }) => (expr, vec![low, high]),
            Expr::InList(InList { expr, list, .. }) => (expr, list.iter_mut().collect()),
            _ => return Ok(Transformed::no(expr)),
        };
        let Some(moment) = of.get_type(schema).ok().filter(is_coarse) else {
            return Ok(Transformed::no(expr));
        };
        let literals: Option<Vec<ScalarValue>> = texts.iter().map(|text| in_unit(text, &moment)).collect();
        let Some(literals) = literals else { return Ok(Transformed::no(expr)) };
        texts.into_iter().zip(literals).for_each(|(text, literal)| *text = Expr::Literal(literal, None));
        Ok(Transformed::yes(expr))
    }
}

fn compares(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_moment(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|found| matches!(found, DataType::Timestamp(..)))
}

/// Returns whether a type is of moments in a unit that is coarser than that of the engine's comparisons.
fn is_coarse(found: &DataType) -> bool {
    matches!(found, DataType::Timestamp(unit, _) if *unit != TimeUnit::Nanosecond)
}

/// Returns a literal as a moment of this type; `None` if the type does not hold it, and for other expressions.
fn in_unit(expr: &Expr, moment: &DataType) -> Option<ScalarValue> {
    let text = match expr {
        Expr::Literal(text, _) => text.try_as_str()??,
        // TIMESTAMP '9999-12-31'.
        Expr::Cast(Cast { expr, field }) => match (expr.as_ref(), field.data_type(), moment) {
            (Expr::Literal(text, _), DataType::Timestamp(_, None), DataType::Timestamp(_, None)) => {
                text.try_as_str()??
            }
            _ => return None,
        },
        _ => return None,
    };
    let DataType::Timestamp(unit, _) = moment else { return None };
    let step = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let is_whole = string_to_datetime(&Utc, text).is_ok_and(|read| read.nanosecond() % step == 0);
    let read = cast(&StringArray::from(vec![text]), moment).ok()?;
    (is_whole && read.is_valid(0)).then(|| ScalarValue::try_from_array(&read, 0).ok()).flatten()
}
