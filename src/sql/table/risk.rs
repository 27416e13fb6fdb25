//! `risk(table, column..., [individual => column])`: returns all re-identification risks in one
//! row.
//!
//! # Contract
//! Columns are names in quotes or expressions. The result is one row: `k` (BIGINT, the smallest
//! size; NULL without rows), then a column for each risk measure by its name (DOUBLE) with
//! constants at their defaults ([`RISKS`]). Sizes count rows, with `individual` its distinct
//! values. The function is one query over the aggregates of the same names.

use datafusion::error::Result;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{AggregateUDF, AggregateUDFImpl, Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::TableFunctionRow;
use super::arguments::Arguments;
use crate::doc::Doc;
use crate::measure::RISKS;
use crate::model::k_anonymity;
use crate::parameter::Setting;
use crate::sql::accounted::Memory;
use crate::sql::hierarchies::Hierarchies;
use crate::sql::udaf::aggregates;

/// The row of [`TABLE_FUNCTIONS`](super::TABLE_FUNCTIONS) for this function.
pub const ROW: TableFunctionRow = TableFunctionRow { doc: DOC, plan };

const DOC: &Doc = &Doc {
    name: "risk",
    summary: "k and every risk measure of a table, in one row",
    parameters: "table, column..., [individual => column]",
    example: "SELECT * FROM risk(visits, 'age', 'zip', individual => 'patient_id')",
    paper: None,
};

fn plan(mut call: Arguments<'_>) -> Result<LogicalPlan> {
    let table = call.table()?;
    let columns = call.columns(&table)?;
    let individual = call.named_column("individual", &table)?;
    call.finish(&["individual"])?;

    let end = if individual.is_some() { "_individuals" } else { "" };
    let (mut functions, _) = aggregates(&Hierarchies::default(), &Memory::default())?;
    let mut measure = |name: &str, constants: Vec<Expr>| {
        let function = functions.iter().position(|function| function.name() == format!("{name}{end}"));
        let function = function.map(|at| AggregateUDF::from(functions.swap_remove(at)));
        let columns = columns.iter().map(|(_, column)| column.clone());
        let arguments = constants.into_iter().chain(individual.clone()).chain(columns).collect();
        let call = |function: AggregateUDF| {
            AggregateFunction::new_udf(function.into(), arguments, false, None, vec![], None)
        };
        function.map(|function| Expr::AggregateFunction(call(function)).alias(name))
    };
    let k = measure(k_anonymity::ROW.doc.name, Vec::new()).map(|k| k.unalias().alias("k"));
    let risks = RISKS.iter().map(|row| {
        let constants = row.parameters.iter().filter_map(|parameter| match parameter.default()? {
            Setting::Number(number) => Some(lit(number.to_f64())),
            Setting::Word(word) => Some(lit(word.as_ref())),
            Setting::List(_) | Setting::Table(_) | Setting::Node(_) => None,
        });
        let constants = constants.collect();
        measure(row.doc.name, constants)
    });
    let all: Vec<Expr> = k.into_iter().chain(risks.flatten()).collect();
    LogicalPlanBuilder::from(table).aggregate(Vec::<Expr>::new(), all)?.build()
}
