//! Profile: one GROUP BY over the quasi-identifiers becomes the class table.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::lit;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use super::engine::{Doing, PoolBudget, column};
use super::stop::Stop;
use crate::class::{Budget, ClassTable, ClassTableBuilder, QuasiColumn};
use crate::error::{Error, Result};
use crate::measure::ClassSizes;

/// Groups `table` by the quasi-identifiers as they are.
///
/// # Errors
/// A data error when reading fails, memory runs out or a hierarchy does not cover the values.
pub async fn profile(
    session: &SessionContext,
    table: DataFrame,
    quasi: Vec<QuasiColumn>,
    stop: &Stop,
) -> Result<ClassTable> {
    let doing = "grouping the input by its quasi-identifiers";
    let keys = quasi.iter().map(|q| column(&q.name)).collect();
    let grouped = table.aggregate(keys, vec![count(lit(1i64)).alias("kanon_rows")]).doing(doing)?;
    let mut stream = grouped.execute_stream().await.doing(doing)?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "class table"));
    let mut builder = ClassTableBuilder::new(quasi, &budget)?;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.doing(doing)?;
        let (counts, values) =
            batch.columns().split_last().ok_or_else(|| Error::internal("a GROUP BY without a count"))?;
        builder.add(values, &counted(counts)?)?;
    }
    tokio::task::spawn_blocking(move || builder.finish())
        .await
        .map_err(|_| Error::internal("coding the classes"))?
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
    let keys = names.iter().map(|name| column(*name)).collect();
    let rows = count(lit(1i64)).alias("kanon_rows");
    let grouped = table.clone().aggregate(keys, vec![rows]).doing(doing)?;
    let sizes = grouped.select(vec![column("kanon_rows")]).doing(doing)?;
    let mut stream = sizes.execute_stream().await.doing(doing)?;
    let mut all = ClassSizes::default();
    while let Some(batch) = stream.next().await {
        stop.check()?;
        counted(batch.doing(doing)?.column(0))?.into_iter().for_each(|size| all.add(size));
    }
    Ok(all)
}
