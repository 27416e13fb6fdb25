//! Finds expressions that cannot fail on any row.
//!
//! An aggregate without GROUP BY evaluates its arguments only for the rows that pass its FILTER; a
//! GROUP BY evaluates its keys for all rows. `k_anonymity(10 / x) FILTER (WHERE x <> 0)` would then
//! divide by zero.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator};

/// Returns whether an expression gives a value for every row: columns, literals, comparisons, tests
/// for NULL, AND, OR, NOT and casts that keep every value. Returns false for all other expressions,
/// even for those that cannot fail.
///
/// # Errors
/// When the expression has no type in `schema`.
pub(super) fn cannot_fail(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let both = |left: &Expr, right: &Expr| {
        let same = left.get_type(schema)? == right.get_type(schema)?;
        Ok(same && cannot_fail(left, schema)? && cannot_fail(right, schema)?)
    };
    match expr {
        Expr::Column(_) | Expr::Literal(..) => Ok(true),
        Expr::Alias(alias) => cannot_fail(&alias.expr, schema),
        Expr::Not(inner)
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsNotUnknown(inner) => cannot_fail(inner, schema),
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::And
            | Operator::Or
            | Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom => both(&binary.left, &binary.right),
            _ => Ok(false),
        },
        Expr::Between(between) => {
            Ok(both(&between.expr, &between.low)? && both(&between.expr, &between.high)?)
        }
        Expr::InList(in_list) => {
            for item in &in_list.list {
                if !both(&in_list.expr, item)? {
                    return Ok(false);
                }
            }
            cannot_fail(&in_list.expr, schema)
        }
        Expr::Cast(cast) => {
            let from = cast.expr.get_type(schema)?;
            Ok(keeps_values(&from, cast.field.data_type()) && cannot_fail(&cast.expr, schema)?)
        }
        _ => Ok(false),
    }
}

/// Returns whether no expression of a plan can fail. A Filter above it is then safe: the engine
/// moves and merges filters, so that one may meet rows that another should have kept from it.
pub(super) fn nothing_can_fail(plan: &LogicalPlan) -> Result<bool> {
    let fails = plan.exists(|node| {
        let mut schema = DFSchema::empty();
        node.inputs().into_iter().for_each(|input| schema.merge(input.schema()));
        if let LogicalPlan::TableScan(scan) = node {
            let all = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
            schema.merge(&all);
        }
        Ok(!node.expressions().iter().all(|expr| cannot_fail(expr, &schema).unwrap_or(false)))
    })?;
    Ok(!fails)
}

/// Returns whether a cast gives a value for every value.
fn keeps_values(from: &DataType, to: &DataType) -> bool {
    if from == to {
        return true;
    }
    if let DataType::Dictionary(_, values) = from {
        return keeps_values(values, to);
    }
    let is_text = |of: &DataType| matches!(of, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8);
    if is_text(from) && is_text(to) {
        return *from != DataType::LargeUtf8;
    }
    if *to == DataType::Float64 {
        return from.is_integer() || from.is_floating();
    }
    let (Some(before), Some(after)) = (from.primitive_width(), to.primitive_width()) else { return false };
    let wider = after > before;
    match (from.is_signed_integer(), from.is_unsigned_integer()) {
        (true, _) => wider && to.is_signed_integer(),
        (_, true) => wider && to.is_integer(),
        _ => wider && from.is_floating() && to.is_floating(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::logical_expr::{cast, col, lit};

    #[test]
    fn divisions_calls_and_narrowing_casts_can_fail() {
        let schema = Schema::new(vec![
            Field::new("i", DataType::Int32, true),
            Field::new("s", DataType::Utf8View, true),
            Field::new("b", DataType::Boolean, true),
        ]);
        let schema = DFSchema::try_from(schema).unwrap();
        let all = [
            (col("i"), true),
            (col("i").eq(lit(1i32)).and(col("b")), true),
            (col("i").is_null().or(col("s").is_not_null()), true),
            (cast(col("i"), DataType::Int64).gt(lit(2i64)), true),
            (cast(col("i"), DataType::Float64), true),
            (cast(col("s"), DataType::Utf8), true),
            (col("s").in_list(vec![lit(datafusion::common::ScalarValue::from("a"))], false), false),
            (cast(col("i"), DataType::Int16), false),
            (cast(col("i"), DataType::UInt64), false),
            (cast(col("s"), DataType::Int64), false),
            (lit(10i32) / col("i"), false),
            ((lit(10i32) / col("i")).gt(lit(2i32)), false),
            (col("i") + lit(1i32), false),
        ];
        for (expr, expected) in all {
            assert_eq!(cannot_fail(&expr, &schema).unwrap(), expected, "{expr}");
        }
    }
}
