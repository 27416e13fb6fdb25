//! The classes of a table, one after the other, with the counts that models look at: for answers that nothing is released
//! by, such as those of `kanon check`. Verification has [a way of its own](mod@crate::verify), without keys and rules.

mod fold;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Decimal128Type};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use self::fold::Fold;
use super::class_key::{NAME_OF_CLASS_KEY, Seed, key_of_value, one_key};
use super::functions::{OfValues, counted, of_values, random_keys};
use super::{Context, column};
use crate::class::Budget;
use crate::error::{Error, Result};
use crate::model::{Distribution, SeenClass, SensitiveColumn, ValueCount};
use crate::progress::CancelToken;

/// A table in classes.
pub(crate) struct InClasses<'a> {
    pub(crate) table: &'a DataFrame,
    /// The columns whose values form the classes.
    pub(crate) labels: Vec<Expr>,
    /// The sensitive columns, and whether a model reads the values of each in the whole table.
    pub(crate) sensitive: &'a [(SensitiveColumn, bool)],
    /// The column that names individuals; `None` where rows are counted.
    pub(crate) individual: Option<Expr>,
}

const INDIVIDUAL: &str = "individual";
const VALUE: &str = "value";
const KEY: &str = "key";
const ROWS: &str = "rows";

/// Calls `see` for every class; returns the number of distinct individuals, where they are counted.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn each_class(
    of: InClasses<'_>,
    budget: &Arc<dyn Budget>,
    stop: &CancelToken,
    doing: &str,
    see: &mut (dyn FnMut(&SeenClass<'_>) + Send),
) -> Result<Option<u64>> {
    // Neither labels nor values are shown, and numbers are grouped and sorted faster than texts.
    let keys = Keys { table: of.table, seed: random_keys(doing)?[0], doing };
    let class = one_key(of.labels, keys.seed, of.table.schema()).context(doing)?.ok_or_else(without_key)?;
    let individual = of.individual.map(|individual| keys.of(individual)).transpose()?;
    let values = of.sensitive.iter().map(|(of, _)| keys.of(seen(of))).collect::<Result<Vec<_>>>()?;
    let mut fold = Fold::new(values.len(), individual.is_some(), budget);
    let inputs = distributions(&keys, of.sensitive, individual.as_ref(), &mut fold, stop).await?;
    // The name of class keys: the engine's rule counts them, in order.
    let mut columns = vec![class.alias(NAME_OF_CLASS_KEY)];
    columns.extend(values.into_iter().enumerate().map(|(at, value)| value.alias(format!("{VALUE}_{at}"))));
    columns.extend(individual.map(|individual| individual.alias(INDIVIDUAL)));
    let groups = of.table.clone().aggregate(columns, vec![count(lit(1i64)).alias(ROWS)]).context(doing)?;
    let sorted = groups.sort(vec![column(NAME_OF_CLASS_KEY).sort(true, true)]).context(doing)?;
    let mut stream = sorted.execute_stream().await.context(doing)?;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(doing)?;
        let (counts, keys) = batch.columns().split_last().ok_or_else(without_key)?;
        let keys = keys.iter().map(decimals).collect::<Result<Vec<_>>>()?;
        let (class, values) = keys.split_first().ok_or_else(without_key)?;
        for (row, count) in counted(counts)?.into_iter().enumerate() {
            fold.add(class.value(row), values, row, count, |ended| see(&ended.seen(&inputs)))?;
        }
        fold.hold()?;
    }
    fold.end(|ended| see(&ended.seen(&inputs)));
    Ok(fold.individuals())
}

fn without_key() -> Error {
    Error::internal("each_class: a label or a value of a type without keys")
}

fn decimals(array: &ArrayRef) -> Result<&Decimal128Array> {
    array.as_primitive_opt::<Decimal128Type>().ok_or_else(without_key)
}

/// How values of a table become keys.
struct Keys<'a> {
    table: &'a DataFrame,
    seed: Seed,
    doing: &'a str,
}

impl Keys<'_> {
    fn of(&self, values: Expr) -> Result<Expr> {
        let key = key_of_value(values, self.seed, self.table.schema()).context(self.doing)?;
        key.ok_or_else(without_key)
    }
}

/// Returns the expression of what a requirement sees of a column's values.
fn seen(of: &SensitiveColumn) -> Expr {
    let values = column(of.name());
    if of.is_as_it_is() {
        return values;
    }
    let mut hasher = DefaultHasher::new();
    of.to_string().hash(&mut hasher);
    let see = See { name: format!("kanon_seen_{:016x}", hasher.finish()), of: of.clone() };
    of_values(Arc::new(see), of.name(), values)
}

/// What a requirement sees of the values of a column.
struct See {
    /// What two requirements see of one column needs two names in a plan: the engine merges calls that print alike.
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

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.of.see(values)
    }
}

/// Counts the values of each sensitive column over the whole table, under the numbers that `fold` gives them, which are
/// in the order of the values. A column whose whole no model reads has no distribution.
async fn distributions(
    keys: &Keys<'_>,
    columns: &[(SensitiveColumn, bool)],
    individual: Option<&Expr>,
    fold: &mut Fold,
    stop: &CancelToken,
) -> Result<Vec<Distribution>> {
    let doing = "counting sensitive values";
    let mut individuals = 0;
    if let (Some(individual), true) = (individual, columns.iter().any(|(_, reads_whole)| *reads_whole)) {
        let rows = keys.table.clone().select(vec![individual.clone().alias(INDIVIDUAL)]).context(doing)?;
        let rows = rows.filter(column(INDIVIDUAL).is_not_null()).context(doing)?;
        individuals = rows.distinct().context(doing)?.count().await.context(doing)? as u64;
    }
    let mut all = Vec::with_capacity(columns.len());
    for (at, (of, reads_whole)) in columns.iter().enumerate() {
        if !reads_whole {
            all.push(Distribution::of_rows(Vec::new()));
            continue;
        }
        let mut rows = vec![keys.of(seen(of))?.alias(KEY), seen(of).alias(VALUE)];
        rows.extend(individual.map(|individual| individual.clone().alias(INDIVIDUAL)));
        let mut rows = keys.table.clone().select(rows).context(doing)?;
        if individual.is_some() {
            rows = rows.filter(column(INDIVIDUAL).is_not_null()).context(doing)?.distinct().context(doing)?;
        }
        let by_value = vec![column(KEY), column(VALUE)];
        let groups = rows.aggregate(by_value, vec![count(lit(1i64)).alias(ROWS)]).context(doing)?;
        let sorted = groups.sort(vec![column(VALUE).sort(true, true)]).context(doing)?;
        let mut stream = sorted.execute_stream().await.context(doing)?;
        let (mut counts, mut values) = (Vec::new(), Vec::new());
        while let Some(batch) = stream.next().await {
            stop.check()?;
            let batch = batch.context(doing)?;
            let [keys, of_batch, rows] = batch.columns() else { return Err(without_key()) };
            let numbers = fold.numbers(at, decimals(keys)?)?;
            let rows = counted(rows)?;
            counts.extend(numbers.into_iter().zip(rows).map(|(value, count)| ValueCount { value, count }));
            values.push(ArrayRef::clone(of_batch));
        }
        let distribution = match individual {
            None => Distribution::of_rows(counts),
            Some(_) => Distribution::of_individuals(counts, individuals),
        };
        let parts: Vec<&dyn Array> = values.iter().map(|part| &**part).collect();
        all.push(match parts.as_slice() {
            [] => distribution,
            parts => of.facts(&concat(parts).context(doing)?)?.add_to(distribution)?,
        });
    }
    Ok(all)
}
