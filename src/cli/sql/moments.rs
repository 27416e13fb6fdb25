//! Comparisons of moments with texts, in the unit of the column. The engine compares them in nanoseconds, in which there
//! is no year before 1678 or after 2261, so that `valid_to = '9999-12-31T00:00:00'` would fail; and where the unit of the
//! column is coarser than the text, it cuts the text off.

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
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, Operator, binary_expr, in_list, lit, not,
};
use datafusion::scalar::ScalarValue;

/// Gives the texts that a query compares with moments the type of these.
#[derive(Debug)]
pub(super) struct Moments;

impl FunctionRewrite for Moments {
    fn name(&self) -> &'static str {
        "moments_in_the_unit_of_the_column"
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        let rewritten = match &expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let swapped = || compare(right, op.swap()?, left, schema);
                compare(left, *op, right, schema).or_else(swapped)
            }
            Expr::Between(Between { expr, low, high, negated }) => {
                let ends = compare(expr, Operator::GtEq, low, schema).zip(compare(
                    expr,
                    Operator::LtEq,
                    high,
                    schema,
                ));
                ends.map(|(low, high)| if *negated { not(low.and(high)) } else { low.and(high) })
            }
            Expr::InList(InList { expr, list, negated }) => among(expr, list, *negated, schema),
            _ => None,
        };
        Ok(rewritten.map_or_else(|| Transformed::no(expr), Transformed::yes))
    }
}

/// A text as a moment in a unit, cut off if the unit is coarser.
struct Moment {
    value: ScalarValue,
    is_whole: bool,
}

/// Returns the comparison of a moment with a text; `None` for other expressions.
fn compare(of: &Expr, operator: Operator, text: &Expr, schema: &DFSchema) -> Option<Expr> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    if !matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom) {
        return None;
    }
    let moment = in_unit_of(of, text, schema)?;
    let with = |operator| binary_expr(of.clone(), operator, Expr::Literal(moment.value.clone(), None));
    Some(match operator {
        _ if moment.is_whole => with(operator),
        // The text lies between the moment and the next one; NULL stays NULL.
        Lt | LtEq => with(LtEq),
        Gt | GtEq => with(Gt),
        Eq => with(Gt).and(with(LtEq)),
        NotEq => with(Gt).or(with(LtEq)),
        other => lit(other == IsDistinctFrom),
    })
}

/// Returns whether a moment is one of these texts, or is not; `None` for other expressions.
fn among(of: &Expr, texts: &[Expr], is_negated: bool, schema: &DFSchema) -> Option<Expr> {
    let moments = texts.iter().map(|text| in_unit_of(of, text, schema)).collect::<Option<Vec<_>>>()?;
    let whole = moments.into_iter().filter(|moment| moment.is_whole);
    let whole: Vec<Expr> = whole.map(|moment| Expr::Literal(moment.value, None)).collect();
    match (whole.as_slice(), texts.first()) {
        ([], Some(text)) => {
            compare(of, if is_negated { Operator::NotEq } else { Operator::Eq }, text, schema)
        }
        _ => Some(in_list(of.clone(), whole, is_negated)),
    }
}

/// Reads a text in the unit of an expression; `None` if this is of no moments in a unit coarser than nanoseconds, or if the
/// text is no moment.
fn in_unit_of(of: &Expr, text: &Expr, schema: &DFSchema) -> Option<Moment> {
    let data_type = of.get_type(schema).ok()?;
    let DataType::Timestamp(unit, zone) = &data_type else { return None };
    let step = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => return None,
    };
    let text = match text {
        Expr::Literal(ScalarValue::Null, _) => {
            return Some(Moment { value: ScalarValue::try_from(&data_type).ok()?, is_whole: true });
        }
        Expr::Literal(text, _) => text.try_as_str()??,
        // TIMESTAMP '9999-12-31'.
        Expr::Cast(Cast { expr, field }) => match (expr.as_ref(), field.data_type(), zone) {
            (Expr::Literal(text, _), DataType::Timestamp(TimeUnit::Nanosecond, None), None) => {
                text.try_as_str()??
            }
            _ => return None,
        },
        _ => return None,
    };
    let is_whole = string_to_datetime(&Utc, text).ok()?.nanosecond() % step == 0;
    let read = cast(&StringArray::from(vec![text]), &data_type).ok().filter(|read| read.is_valid(0))?;
    Some(Moment { value: ScalarValue::try_from_array(&read, 0).ok()?, is_whole })
}
