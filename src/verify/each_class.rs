//! The classes of released rows, one after the other, with the counts that models look at: by a plain GROUP BY of the
//! labels, and the fold of [`PerClass`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::distributions::distributions;
use super::per_class::{ClassSummary, PerClass, Position, by_class};
use crate::class::Budget;
use crate::engine::distinct::{self, Distinct};
use crate::engine::functions::{OfValues, counted, of_values, random_keys};
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::generalize::Value;
use crate::model::{SeenClass, SensitiveColumn};
use crate::progress::CancelToken;

/// A table in classes.
pub(super) struct InClasses<'a> {
    pub(super) table: &'a DataFrame,
    /// The columns whose values form the classes.
    pub(super) labels: Vec<Expr>,
    /// The sensitive columns.
    pub(super) sensitive: Vec<CountedColumn>,
    /// The two hash columns of the [individual](super::per_class::individual); none where rows are counted.
    pub(super) individual: Vec<Expr>,
}

/// A sensitive column whose values are counted.
#[derive(Debug, Clone)]
pub(super) struct CountedColumn {
    /// What is counted.
    pub(super) seen: Expr,
    /// The column, if a model reads its values in the whole table.
    pub(super) read_whole: Option<SensitiveColumn>,
}

impl CountedColumn {
    /// Counts what a requirement sees of a column's `values`; says whether a model reads the values
    /// of the whole table.
    pub(super) fn of(column: &SensitiveColumn, values: Expr, reads_whole: bool) -> Self {
        Self { seen: seen(column, values), read_whole: reads_whole.then(|| column.clone()) }
    }
}

/// Returns the expression of what a requirement sees of a column's `values`.
pub(super) fn seen(of: &SensitiveColumn, values: Expr) -> Expr {
    if of.is_as_it_is() {
        return values;
    }
    let mut hasher = DefaultHasher::new();
    of.to_string().hash(&mut hasher);
    let see = See { name: format!("kanon_seen_{:016x}", hasher.finish()), of: of.clone() };
    of_values(Arc::new(see), of.name(), values)
}

/// What a requirement sees of each value of a column, one value at a time.
struct See {
    /// What two requirements see of one column needs two names in a plan: the engine merges calls
    /// that print alike.
    name: String,
    of: SensitiveColumn,
}

impl OfValues for See {
    fn name(&self) -> &str {
        &self.name
    }

    fn of_type(&self, values: &DataType) -> Result<DataType> {
        self.of.output_type(values)
    }

    fn distinct(&self, values: &ArrayRef) -> std::result::Result<Distinct, ArrowError> {
        distinct::of_batch_plainly(values)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let seen = (0..values.len()).map(|row| self.of.see_value(&Value::read(values, row)?));
        let seen: Vec<Value> = seen.collect::<Result<_>>()?;
        Value::build(&seen, &self.of.output_type(values.data_type())?)
    }
}

/// The name of the rows of each group.
const ROWS: &str = "rows";

/// Calls `see` for every class.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn each_class(
    of: InClasses<'_>,
    budget: &Arc<dyn Budget>,
    stop: &CancelToken,
    doing: &str,
    see: &mut (dyn FnMut(&SeenClass<'_>) + Send),
) -> Result<()> {
    let InClasses { table, labels, sensitive, individual } = of;
    let mut fold = PerClass::new(sensitive.len(), !individual.is_empty(), budget);
    let inputs = distributions(table, &sensitive, &individual, &mut fold, stop).await?;
    let named = |prefix: &str, columns: Vec<Expr>| -> (Vec<Expr>, Vec<Expr>) {
        let name = |at: usize| format!("{prefix}_{at}");
        let columns = columns.into_iter().enumerate();
        columns.map(|(at, expr)| (expr.alias(name(at)), column(name(at)))).unzip()
    };
    let (labels, label_names) = named("label", labels);
    let values = sensitive.into_iter().map(|counted| counted.seen).chain(individual).collect();
    let (values, mut names) = named("value", values);
    let rows = vec![count(lit(1i64)).alias(ROWS)];
    let groups = table.clone().aggregate([labels, values].concat(), rows).context(doing)?;
    names.push(column(ROWS));
    let sorted = by_class(groups, &label_names, names, random_keys(doing)?)?;
    let mut stream = sorted.execute_stream().await.context(doing)?;
    let mut rows = 0u64;
    let mut show = |rows: u64, ended: ClassSummary| see(&ended.seen(rows, &inputs));
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(doing)?;
        let (position, columns) = Position::split(&batch)?;
        let without_count = || Error::internal("each_class: a class has no count");
        let (counts, values) = columns.split_last().ok_or_else(without_count)?;
        let (counts, values) = (counted(counts)?, fold.values(values)?);
        for (row, count) in counts.iter().enumerate() {
            if fold.begins(position.at(row)) {
                show(std::mem::take(&mut rows), fold.take());
            }
            rows += *count;
            fold.add(row, &values, *count)?;
        }
    }
    if rows > 0 {
        show(rows, fold.take());
    }
    Ok(())
}

#[cfg(test)]
#[path = "each_class_tests.rs"]
mod tests;
