//! `<model>(table, population, column..., [individual => column])`: what a model that looks at a
//! population reached, in one row.
//!
//! # Contract
//! Every model that [needs a population](crate::model::Needs::Population) is such a function.
//! Columns are names in quotes or expressions, the same in both tables; equal values form a class,
//! NULL too. The result is one row with one column, `reached`: the worst value of the classes of
//! the table (BIGINT for counts, else DOUBLE), NULL without rows or if a class breaks a condition
//! beside the bound. Sizes count rows, with `individual` the distinct values of that column, which
//! both tables have; whether each is one of the population is not checked. The function is a join
//! of two GROUP BYs.

use std::sync::Arc;

use arrow::array::{AsArray, Float64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Column, NullEquality};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::{
    ColumnarValue, Expr, JoinType, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, cast, lit, when,
};

use super::arguments::Arguments;
use super::two_tables::compared_columns;
use crate::model::{Class, ClassModel, ModelRow, Quantity, Worst};
use crate::sql::measure_state::{reached_by, type_of};

/// The argument list of every such function.
pub(super) const PARAMETERS: &str = "table, population, column..., [individual => column]";

const REACHED: &str = "reached";

fn column(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

/// Plans the call of the function of a model.
pub(super) fn plan(mut call: Arguments<'_>, row: &ModelRow) -> Result<LogicalPlan> {
    let model = reached_by(row, &[]).map_err(|error| call.wrong(error))?;
    let (table, population) = (call.table()?, call.table()?);
    let arguments = call.rest()?;
    let mut individuals = call.named_column_of("individual", [&table, &population])?.into_iter().flatten();
    let (individual, of_population) = (individuals.next(), individuals.next());
    call.finish(&["individual"])?;
    if arguments.is_empty() {
        return Err(call.refused("expected at least one column"));
    }
    let tables = [(&table, "the table"), (&population, "the population")];
    let (here, there) = compared_columns(&mut call, &arguments, tables)?;
    let names =
        |prefix: &str| -> Vec<String> { (0..arguments.len()).map(|at| format!("{prefix}_{at}")).collect() };
    let sizes = |table: LogicalPlan, keys: Vec<Expr>, individual: Option<Expr>, prefix: &str| {
        let named = keys.into_iter().zip(names(prefix)).map(|(key, name)| key.alias(name));
        let mut keys: Vec<Expr> = named.collect();
        let counted = individual.map(|who| who.alias("who"));
        let has_individuals = counted.is_some();
        keys.extend(counted);
        let mut rows = LogicalPlanBuilder::from(table).project(keys)?;
        if has_individuals {
            rows = rows.filter(column("who").is_not_null())?.distinct()?;
        }
        let groups: Vec<Expr> = names(prefix).iter().map(|name| column(name)).collect();
        rows.aggregate(groups, vec![count(lit(1i64)).alias(format!("{prefix}_size"))])?.build()
    };
    let here = sizes(table, here, individual, "table")?;
    let there = sizes(population, there, of_population, "population")?;
    let on = (
        names("table").into_iter().map(Column::from_name).collect::<Vec<_>>(),
        names("population").into_iter().map(Column::from_name).collect::<Vec<_>>(),
    );
    let joined = LogicalPlanBuilder::from(here);
    let joined = joined.join_detailed(there, JoinType::Left, on, None, NullEquality::NullEqualsNull)?;
    let found = column("population_size");
    let found = when(found.clone().is_null(), lit(0i64)).otherwise(found)?;
    let class = Class { population: Some(1), ..Class::of_size(1) };
    let (worst, returns) = (model.worst(), type_of(model.value(&class)));
    let value = ScalarUDF::new_from_impl(ValueOfClass::new(model)).call(vec![column("table_size"), found]);
    let values = joined.project(vec![value.alias(REACHED)])?;
    let of_all = match worst {
        Worst::Least => min(column(REACHED)),
        Worst::Greatest => max(column(REACHED)),
    };
    let all = vec![
        of_all.alias("worst"),
        count(column(REACHED)).alias("values"),
        count(lit(1i64)).alias("classes"),
    ];
    let reached = when(column("values").eq(column("classes")), column("worst")).end()?;
    let reached = if returns == DataType::Float64 { reached } else { cast(reached, returns) };
    values.aggregate(Vec::<Expr>::new(), all)?.project(vec![reached.alias(REACHED)])?.build()
}

/// The value that a model reaches for a class of this size, of whose labels the population has so many.
#[derive(Debug)]
struct ValueOfClass {
    name: String,
    model: Arc<dyn ClassModel>,
    signature: Signature,
}

impl ValueOfClass {
    fn new(model: Box<dyn ClassModel>) -> Self {
        let signature = Signature::exact(vec![DataType::Int64, DataType::Int64], Volatility::Immutable);
        Self { name: format!("kanon_{}", model.doc().name), model: model.into(), signature }
    }
}

impl PartialEq for ValueOfClass {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ValueOfClass {}

impl std::hash::Hash for ValueOfClass {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for ValueOfClass {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let wrong = || DataFusionError::Internal("of_population: sizes are not BIGINT".into());
        let [sizes, population] = arrays.as_slice() else { return Err(wrong()) };
        let (sizes, population) = (
            sizes.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?,
            population.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?,
        );
        let value = |row: usize| {
            let (size, population) =
                (u64::try_from(sizes.value(row)).ok()?, u64::try_from(population.value(row)).ok()?);
            let value = self.model.value(&Class { population: Some(population), ..Class::of_size(size) });
            (value != Quantity::Broken).then(|| value.to_f64())
        };
        Ok(ColumnarValue::Array(Arc::new((0..sizes.len()).map(value).collect::<Float64Array>())))
    }
}
