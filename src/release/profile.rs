//! Profile: one GROUP BY over the quasi-identifiers becomes the class table.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::{DataType, Int64Type, UInt32Type};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use super::Run;
use super::engine::{Doing, PoolBudget, column};
use super::functions::{OfValues, of_values};
use super::per_class::{PerClass, Position, by_class, random_keys};
use super::stop::Stop;
use crate::class::{Budget, ClassTable, ClassTableBuilder, Coder, QuasiColumn};
use crate::error::{Error, Result};
use crate::measure::ClassSizes;
use crate::model::ValueCount;

/// Groups `table` by the quasi-identifiers as they are and the sensitive columns that are counted.
///
/// # Errors
/// A data error when reading fails, memory runs out or a hierarchy does not cover the values.
pub async fn profile(
    session: &SessionContext,
    table: DataFrame,
    quasi: Vec<QuasiColumn>,
    sensitive: &[&str],
    run: &Run<'_>,
) -> Result<ClassTable> {
    let doing = "grouping the input by its quasi-identifiers";
    let names: Vec<String> =
        quasi.iter().map(|q| q.name.clone()).chain(sensitive.iter().map(|name| (*name).to_owned())).collect();
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "class table"));
    let sensitive = sensitive.iter().map(|name| (*name).to_owned()).collect();
    let mut builder = ClassTableBuilder::new(quasi, sensitive, &budget)?.showing_values(run.show_values);
    let keys = names.iter().zip(builder.coders());
    let keys = keys.map(|(name, coder)| of_values(Arc::new(Code(coder)), name, column(name)));
    let mut stream = grouped(table, keys)?.execute_stream().await.doing(doing)?;
    while let Some(batch) = stream.next().await {
        run.stop.check()?;
        let batch = batch.doing(doing)?;
        let (counts, codes) =
            batch.columns().split_last().ok_or_else(|| Error::internal("a GROUP BY without a count"))?;
        let code =
            |codes: &'_ ArrayRef| codes.as_primitive_opt::<UInt32Type>().map(|codes| codes.values().to_vec());
        let codes: Option<Vec<Vec<u32>>> = codes.iter().map(code).collect();
        let codes = codes.ok_or_else(|| Error::internal("codes of another type"))?;
        builder.add_coded(&codes.iter().map(Vec::as_slice).collect::<Vec<_>>(), &counted(counts)?)?;
    }
    tokio::task::spawn_blocking(move || builder.finish())
        .await
        .map_err(|_| Error::internal("coding the classes"))?
}

/// Values as the codes of the class table: what is grouped are small integers.
struct Code(Coder);

impl OfValues for Code {
    fn name(&self) -> &'static str {
        "kanon_code"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(Arc::new(UInt32Array::from(self.0.code(values)?)))
    }
}

const ROWS: &str = "rows";

fn key(index: usize) -> String {
    format!("key_{index}")
}

/// The classes of some columns, under names that are none of the table's, and their rows.
fn grouped(table: DataFrame, columns: impl Iterator<Item = Expr>) -> Result<DataFrame> {
    let doing = "grouping the input by its quasi-identifiers";
    let keys: Vec<Expr> = columns.enumerate().map(|(index, column)| column.alias(key(index))).collect();
    let names = (0..keys.len()).map(|index| column(key(index))).collect();
    let table = table.select(keys).doing(doing)?;
    table.aggregate(names, vec![count(lit(1i64)).alias(ROWS)]).doing(doing)
}

fn counted(counts: &ArrayRef) -> Result<Vec<u64>> {
    let counts =
        counts.as_primitive_opt::<Int64Type>().ok_or_else(|| Error::internal("a count that is no BIGINT"))?;
    counts
        .values()
        .iter()
        .map(|n| u64::try_from(*n).map_err(|_| Error::internal("a negative count")))
        .collect()
}

/// The class sizes of `table` grouped by some of its columns as they are.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub async fn class_sizes(table: &DataFrame, names: &[&str], stop: &Stop) -> Result<ClassSizes> {
    let doing = "grouping the input by its quasi-identifiers";
    let sizes = grouped(table.clone(), names.iter().map(|name| column(*name)))?
        .select(vec![column(ROWS)])
        .doing(doing)?;
    let mut stream = sizes.execute_stream().await.doing(doing)?;
    let mut all = ClassSizes::default();
    while let Some(batch) = stream.next().await {
        stop.check()?;
        counted(batch.doing(doing)?.column(0))?.into_iter().for_each(|size| all.add(size));
    }
    Ok(all)
}

/// Shows `see` every class of `table`, grouped by some of its columns as they are: its rows, and for each
/// sensitive column how often its values occur.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub async fn for_every_class(
    table: &DataFrame,
    names: &[&str],
    sensitive: &[&str],
    stop: &Stop,
    see: &mut (dyn FnMut(u64, &[Vec<ValueCount>]) + Send),
) -> Result<()> {
    let doing = "grouping the input by its quasi-identifiers";
    if sensitive.is_empty() {
        let sizes = class_sizes(table, names, stop).await?;
        sizes.histogram().for_each(|(size, classes)| (0..classes).for_each(|_| see(size, &[])));
        return Ok(());
    }
    let columns = names.iter().chain(sensitive).map(|name| column(*name));
    let grouped = grouped(table.clone(), columns)?;
    let keys = |places: std::ops::Range<usize>| places.map(|at| column(key(at))).collect::<Vec<_>>();
    let (labels, values) = (keys(0..names.len()), keys(names.len()..names.len() + sensitive.len()));
    let sorted = by_class(grouped, &labels, [values, vec![column(ROWS)]].concat(), random_keys(doing)?)?;
    let mut stream = sorted.execute_stream().await.doing(doing)?;
    let mut fold = PerClass::new(sensitive.len());
    let mut rows = 0u64;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.doing(doing)?;
        let (class, columns) = Position::split(&batch)?;
        let (counts, values) = columns.split_last().ok_or_else(|| Error::internal("no counts"))?;
        let (counts, values) = (counted(counts)?, fold.values(values)?);
        for (row, count) in counts.iter().enumerate() {
            if fold.begins(class.at(row)) {
                see(std::mem::take(&mut rows), &fold.take());
            }
            rows += *count;
            fold.add(row, &values, *count);
        }
    }
    if rows > 0 {
        see(rows, &fold.take());
    }
    Ok(())
}
