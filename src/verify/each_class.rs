//! The classes of a table, one after the other, with the counts that models look at.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type};
use arrow::error::ArrowError;
use datafusion::common::ExprSchema;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::distributions::distributions;
use super::per_class::{ClassSummary, PerClass};
use crate::class::Budget;
use crate::engine::class_key::{NAME_OF_CLASS_KEY, Seed, one_key, value_key};
use crate::engine::distinct::{self, Distinct};
use crate::engine::functions::{OfValues, counted, of_values, random_keys};
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::generalize::Value;
use crate::model::{Class, Distribution, ReadFacts, SensitiveColumn, ValueCount};
use crate::progress::CancelToken;

/// A table in classes.
pub(crate) struct InClasses<'a> {
    pub(crate) table: &'a DataFrame,
    /// The columns whose values form the classes.
    pub(crate) labels: Vec<Expr>,
    /// The sensitive columns.
    pub(crate) sensitive: Vec<CountedColumn>,
    /// The two hash columns of the [individual](super::per_class::individual); none where rows are counted.
    pub(crate) individual: Vec<Expr>,
}

/// A sensitive column whose values are counted.
#[derive(Debug, Clone)]
pub(crate) struct CountedColumn {
    /// What is counted.
    pub(crate) seen: Expr,
    /// The column, if a model reads its values in the whole table.
    pub(crate) read_whole: Option<SensitiveColumn>,
}

impl CountedColumn {
    /// Counts what a requirement sees of a column's `values`; says whether a model reads the values
    /// of the whole table.
    pub(crate) fn of(column: &SensitiveColumn, values: Expr, reads_whole: bool) -> Self {
        Self { seen: seen(column, values), read_whole: reads_whole.then(|| column.clone()) }
    }

    /// Counts keys in the place of texts, where no model reads more of a value than its equality.
    fn keyed(self, seed: Seed, schema: &dyn ExprSchema) -> Result<Self> {
        let reads = self.read_whole.as_ref().map(SensitiveColumn::reads).unwrap_or_default();
        if reads != ReadFacts::default() {
            return Ok(self);
        }
        let key = value_key(self.seen.clone(), seed, schema).context("counting sensitive values")?;
        Ok(Self { seen: key.unwrap_or(self.seen), ..self })
    }
}

/// Returns the expression of what a requirement sees of a column's `values`.
pub(crate) fn seen(of: &SensitiveColumn, values: Expr) -> Expr {
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

/// A class as [`each_class`] shows it.
pub struct SeenClass<'a> {
    /// The rows of the class.
    pub rows: u64,
    /// The distinct individuals of the class, or its rows where none are counted.
    pub size: u64,
    /// Its rows without an individual; 0 where rows are counted.
    pub unowned_rows: u64,
    /// For each sensitive column the individuals (or rows) with each value.
    pub values: &'a [Vec<ValueCount>],
    /// The same over the whole table, for the columns with which a model compares the class.
    pub inputs: &'a [Distribution],
    /// The numbers of its individuals, where they are counted.
    pub individuals: Option<&'a [u32]>,
}

impl<'a> SeenClass<'a> {
    /// Creates the view of a completed class of this many rows.
    pub(super) fn new(rows: u64, ended: &'a ClassSummary, inputs: &'a [Distribution]) -> Self {
        Self {
            rows,
            size: ended.size(rows),
            unowned_rows: ended.unowned_rows,
            values: &ended.values,
            inputs,
            individuals: ended.individuals.as_deref(),
        }
    }

    /// Returns the class as a model sees it that looks at this sensitive column, or at none.
    pub fn of_column(&self, column: Option<usize>) -> Class<'_> {
        column.map_or(Class::of_size(self.size), |column| Class {
            size: self.size,
            sensitive: self.values.get(column).map_or(&[], Vec::as_slice),
            input: self.inputs.get(column).unwrap_or(Distribution::NONE),
            population: None,
        })
    }
}

/// The name of the rows per group in [`grouped`].
pub(crate) const ROWS: &str = "rows";

/// Returns the name of a grouped column in [`grouped`].
pub(crate) fn key(index: usize) -> String {
    format!("key_{index}")
}

/// Returns the groups of some columns and their rows, under names that the table does not use.
///
/// # Errors
/// When the plan cannot be built.
pub(crate) fn grouped(
    table: DataFrame,
    columns: impl Iterator<Item = Expr>,
    doing: &str,
) -> Result<DataFrame> {
    let keys = columns.enumerate().map(|(index, column)| column.alias(key(index))).collect();
    table.aggregate(keys, vec![count(lit(1i64)).alias(ROWS)]).context(doing)
}

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
    let InClasses { table, labels, sensitive, individual } = of;
    // Neither labels nor values are shown, and numbers are grouped and sorted faster than texts.
    let seed = random_keys(doing)?[0];
    let class = one_key(labels, seed, table.schema()).context(doing)?;
    let class = class.ok_or_else(|| Error::internal("each_class: a label of a type without keys"))?;
    let sensitive = sensitive.into_iter().map(|counted| counted.keyed(seed, table.schema()));
    let sensitive = sensitive.collect::<Result<Vec<_>>>()?;
    let mut fold = PerClass::new(sensitive.len(), !individual.is_empty(), budget);
    let inputs = distributions(table, &sensitive, &individual, &mut fold, stop).await?;
    let values = sensitive.into_iter().map(|counted| counted.seen).chain(individual);
    let values = values.enumerate().map(|(index, value)| value.alias(key(index)));
    // The name of class keys: the engine's rule counts them, in order.
    let columns = std::iter::once(class.alias(NAME_OF_CLASS_KEY)).chain(values).collect();
    let groups = table.clone().aggregate(columns, vec![count(lit(1i64)).alias(ROWS)]).context(doing)?;
    let sorted = groups.sort(vec![column(NAME_OF_CLASS_KEY).sort(true, true)]).context(doing)?;
    let mut stream = sorted.execute_stream().await.context(doing)?;
    let mut rows = 0u64;
    let mut show = |rows: u64, ended: ClassSummary| see(&SeenClass::new(rows, &ended, &inputs));
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(doing)?;
        let wrong = || Error::internal("each_class: a class has no key or no count");
        let [class, values @ .., counts] = batch.columns() else { return Err(wrong()) };
        let class = class.as_primitive_opt::<Decimal128Type>().ok_or_else(wrong)?;
        let (counts, values) = (counted(counts)?, fold.values(values)?);
        for (row, count) in counts.iter().enumerate() {
            if fold.begins(class.value(row).cast_unsigned()) {
                show(std::mem::take(&mut rows), fold.take());
            }
            rows += *count;
            fold.add(row, &values, *count)?;
        }
    }
    if rows > 0 {
        show(rows, fold.take());
    }
    Ok(fold.individuals())
}
