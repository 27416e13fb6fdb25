//! Text columns of untyped formats, typed by what their hierarchies work on.

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, cast, lit, try_cast, when};
use datafusion::prelude::DataFrame;

use super::engine::{Doing, column};
use super::functions::canonical_float;
use crate::error::{Error, Result};
use crate::policy::CsvType;

/// The types that a column of days or moments is tried as, the narrowest first.
pub(super) const TIMES: [DataType; 2] = [DataType::Date32, DataType::Timestamp(TimeUnit::Microsecond, None)];

/// `table` with each of its `texts` columns cast to what `csv_type` wants of it.
///
/// # Errors
/// A data error that counts the values which are not of their column's type.
pub(super) async fn typed(
    table: DataFrame,
    schema: &Schema,
    texts: &(dyn Fn(&Field) -> bool + Sync),
    csv_type: &(dyn Fn(&str) -> CsvType + Sync),
) -> Result<DataFrame> {
    let wanted = |field: &Field| if texts(field) { csv_type(field.name()) } else { CsvType::Text };
    let wanted: Vec<CsvType> = schema.fields().iter().map(|field| wanted(field)).collect();
    if wanted.iter().all(|one| *one == CsvType::Text) {
        return Ok(table);
    }
    let types = choose_types(&table, schema, &wanted).await?;
    let columns = schema.fields().iter().zip(types).map(|(field, data_type)| {
        let value = column(field.name());
        let value = match data_type {
            None => value,
            Some(DataType::Float64) => canonical_float(cast(value, DataType::Float64)),
            Some(other) => cast(value, other),
        };
        value.alias(field.name())
    });
    table.select(columns.collect::<Vec<Expr>>()).doing("opening the input")
}

/// Whether a text is not NULL and cannot be read as a value of this type.
pub(super) fn misfit(value: &Expr, data_type: &DataType) -> Expr {
    let read = try_cast(value.clone(), data_type.clone());
    let misfit = read.clone().is_null();
    // A date reads the day of a timestamp and drops the time.
    let misfit = match data_type {
        DataType::Date32 => {
            let whole = DataType::Timestamp(TimeUnit::Microsecond, None);
            misfit.or(try_cast(value.clone(), whole.clone()).not_eq(try_cast(read, whole)))
        }
        _ => misfit,
    };
    // A moment in another zone would become another day in UTC.
    let misfit = match data_type {
        DataType::Date32 | DataType::Timestamp(..) => {
            let east = value.clone().like(lit("%:%+%")).and(value.clone().not_like(lit("%+00:00")));
            misfit.or(east).or(value.clone().like(lit("%:%-%")))
        }
        _ => misfit,
    };
    value.clone().is_not_null().and(misfit)
}

/// The narrowest type of its kind that every value of a column fits, found in one pass over the columns that
/// are not to stay as they are.
async fn choose_types(
    texts: &DataFrame,
    schema: &Schema,
    wanted: &[CsvType],
) -> Result<Vec<Option<DataType>>> {
    let candidates = |wanted: CsvType| match wanted {
        CsvType::Text => vec![],
        CsvType::Number => vec![DataType::Int64, DataType::Float64],
        CsvType::Date => TIMES.to_vec(),
    };
    let mut misfits = Vec::new();
    for (field, wanted) in schema.fields().iter().zip(wanted) {
        for data_type in candidates(*wanted) {
            let misfit = misfit(&column(field.name()), &data_type);
            let counted = when(misfit, lit(1i64)).end().doing("typing the columns")?;
            misfits.push(count(counted).alias(format!("misfit_{}", misfits.len())));
        }
    }
    let mut counts = Vec::new();
    if !misfits.is_empty() {
        let counted = texts.clone().aggregate(vec![], misfits).doing("typing the columns")?;
        for batch in counted.collect().await.doing("typing the columns")? {
            for array in batch.columns() {
                counts.push(array.as_primitive::<Int64Type>().value(0));
            }
        }
    }
    let mut counts = counts.into_iter();
    schema
        .fields()
        .iter()
        .zip(wanted)
        .map(|(field, wanted)| {
            let candidates = candidates(*wanted);
            let tried: Vec<(DataType, i64)> = candidates.into_iter().zip(&mut counts).collect();
            let Some((_, least)) = tried.iter().min_by_key(|(_, misfits)| *misfits) else {
                return Ok(None);
            };
            match tried.iter().find(|(_, misfits)| *misfits == 0) {
                Some((fitting, _)) => Ok(Some(fitting.clone())),
                None => Err(Error::data(format!(
                    "column `{}`: {least} rows hold no {}; name the texts that mean \"missing\" in [input] nulls \
                     (CSV) or write null (JSON), or choose a hierarchy for text",
                    field.name(),
                    if *wanted == CsvType::Number { "number (as 1234.5)" } else { "date (as 2020-12-31)" },
                ))),
            }
        })
        .collect()
}
