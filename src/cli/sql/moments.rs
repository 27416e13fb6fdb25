//! Comparisons of moments with texts, in the unit of the column. The engine compares them in nanoseconds, in which there
//! is no year before 1678 or after 2261, so that `valid_to = '9999-12-31T00:00:00'` would fail; and where the unit of the
//! column is coarser than the text, it cuts the text off.

use std::str::FromStr;

use arrow::array::{Array, StringArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{FixedOffset, NaiveDate, Timelike, Utc};
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, Case, InList, ScalarFunction};
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
            Expr::Case(Case { expr: Some(of), when_then_expr, else_expr }) => {
                searched(of, when_then_expr, else_expr.as_deref(), schema)
            }
            Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "nullif" => {
                match args.as_slice() {
                    [of, text] => compare(of, Operator::Eq, text, schema).map(|is_text| {
                        let null = Box::new(Expr::Literal(ScalarValue::Null, None));
                        let when_then = vec![(Box::new(is_text), null)];
                        Expr::Case(Case::new(None, when_then, Some(Box::new(of.clone()))))
                    }),
                    _ => None,
                }
            }
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

/// Returns `CASE of WHEN text THEN ...` with comparisons; `None` where no text is compared with a moment.
fn searched(
    of: &Expr,
    when_then: &[(Box<Expr>, Box<Expr>)],
    otherwise: Option<&Expr>,
    schema: &DFSchema,
) -> Option<Expr> {
    let found: Vec<_> = when_then.iter().map(|(when, _)| compare(of, Operator::Eq, when, schema)).collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    let compared = found.into_iter().zip(when_then).map(|(found, (when, then))| {
        let is_equal = found.unwrap_or_else(|| binary_expr(of.clone(), Operator::Eq, when.as_ref().clone()));
        (Box::new(is_equal), then.clone())
    });
    Some(Expr::Case(Case::new(None, compared.collect(), otherwise.cloned().map(Box::new))))
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
    let (step, zone) = match &data_type {
        DataType::Timestamp(TimeUnit::Second, zone) => (1_000_000_000, zone.as_ref()),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => (1_000_000, zone.as_ref()),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => (1_000, zone.as_ref()),
        DataType::Date32 => (NANOSECONDS_OF_DAY, None),
        _ => return None,
    };
    let text = match text {
        Expr::Literal(ScalarValue::Null, _) => {
            return Some(Moment { value: ScalarValue::try_from(&data_type).ok()?, is_whole: true });
        }
        Expr::Literal(text, _) => text.try_as_str()??,
        // TIMESTAMP '9999-12-31', DATE '9999-12-31'.
        Expr::Cast(Cast { expr, field }) => {
            let Expr::Literal(text, _) = expr.as_ref() else { return None };
            let text = text.try_as_str()??;
            match field.data_type() {
                DataType::Timestamp(TimeUnit::Nanosecond, None) if zone.is_none() || !has_zone(text) => text,
                DataType::Date32 if zone.is_none() && NaiveDate::from_str(text).is_ok() => text,
                _ => return None,
            }
        }
        _ => return None,
    };
    let read = string_to_datetime(&Utc, text).ok()?;
    let of_day = u64::from(read.num_seconds_from_midnight()) * 1_000_000_000 + u64::from(read.nanosecond());
    let is_whole = of_day.is_multiple_of(step) && !is_finer_than_nanoseconds(text);
    if data_type == DataType::Date32 {
        let days = read.date_naive().signed_duration_since(NaiveDate::default()).num_days();
        return Some(Moment { value: ScalarValue::Date32(Some(i32::try_from(days).ok()?)), is_whole });
    }
    let read = cast(&StringArray::from(vec![text]), &data_type).ok().filter(|read| read.is_valid(0))?;
    Some(Moment { value: ScalarValue::try_from_array(&read, 0).ok()?, is_whole })
}

const NANOSECONDS_OF_DAY: u64 = 86_400_000_000_000;

/// Returns whether a text has digits other than 0 behind nanoseconds, which are cut off.
fn is_finer_than_nanoseconds(text: &str) -> bool {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    fraction.chars().take_while(char::is_ascii_digit).skip(9).any(|digit| digit != '0')
}

/// Returns whether a text says its own time zone: it is one moment wherever it is read.
fn has_zone(text: &str) -> bool {
    let elsewhere = FixedOffset::east_opt(3600).and_then(|zone| string_to_datetime(&zone, text).ok());
    string_to_datetime(&Utc, text).is_ok_and(|here| elsewhere.is_some_and(|elsewhere| elsewhere == here))
}
