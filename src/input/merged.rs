//! Resolves a policy against a table whose values some of its hierarchies are made of.
//!
//! A generalizer is a function of one value, but `merge` needs the whole column, so it is neither a row of
//! `GENERALIZERS` nor a SQL function. The holders of each value are counted here, before the policy is
//! resolved, and values with fewer than q are dropped while the engine returns them. `generalize/merge.rs`
//! makes a tree of the rest in the form of a hierarchy file, and from there on it is treated as one, except
//! that a value without a row is `other`.
//!
//! Rare values are joined at level 0, as a clip joins outliers: then no label, set or assignment can name one,
//! whatever the method. Losses and figures count the values of the input all the same:
//! `class/encoded_column.rs` counts the leaves below a label of level 0, and `class/value_classes.rs` keeps the
//! base classes by value for the figures. A rare value never decides the label of the others. Every
//! value below a label is frequent, and a set of values is finer than the label above it. So classes that show
//! regions show sets, and only level 0 matters to them.
//!
//! The verification makes the tree anew and refuses a record with another one; besides,
//! `verify/merged_values.rs` reads the rows one by one and refuses a tree that lists a value with too few
//! holders, in SQL as well. Under `--recoding` a run that has lost an end is named after the one it has now, so
//! its label reveals only which values join; a tree with other labels is refused.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use arrow::row::{RowConverter, SortField};
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{cast, lit};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use crate::class::{Budget, Held};
use crate::engine::functions::counted as counted_of;
use crate::engine::{Context, PoolBudget, column};
use crate::error::{Error, ErrorCode, Result};
use crate::generalize::Value;
use crate::generalize::merge::FrequentValues;
use crate::model::least_holders;
use crate::policy::{Files, FilesAndTrees, Policy, PolicySpec};
use crate::progress::CancelToken;

const DOING: &str = "counting the values of a column to be merged";

/// The rows whose values are counted.
pub(crate) struct RowsToCount<'a> {
    /// The session of the table.
    pub(crate) session: &'a SessionContext,
    /// The table.
    pub(crate) table: &'a DataFrame,
    /// The column that says how many rows a row stands for; without one, each stands for itself.
    pub(crate) rows: Option<&'a str>,
}

/// Resolves a policy against a table with this schema. The trees of merged columns are made of the
/// counted rows, or follow those that `files` knows of an earlier release.
///
/// # Errors
/// Policy errors, and a data error when counting fails.
pub(crate) async fn resolve(
    spec: &PolicySpec,
    schema: &Schema,
    files: &dyn Files,
    counted: &RowsToCount<'_>,
    stop: &CancelToken,
) -> Result<Policy> {
    let mut with_trees = FilesAndTrees { files, trees: spec.placeholder_trees() };
    let policy = spec.resolve(schema, &with_trees)?;
    let (mut trees, mut held) = (BTreeMap::new(), Vec::new());
    for (column, merge) in spec.merged_quasi() {
        let (name, place) =
            (column.name(), |error: Error| error.at(format!("{}.hierarchy.merge", column.path())));
        let earlier = files.tree(name)?;
        let column_to_merge = ColumnToMerge {
            name,
            individual: policy.individual(),
            least_holders: least_holders(&policy.requirements),
            levels: merge.count_levels(),
            label: merge.label().filter(|_| earlier.is_none()),
        };
        let (values, bytes) = frequent_values(&column_to_merge, counted, stop).await?;
        held.push(bytes);
        if values.is_empty() && !has_rows(counted.table).await? {
            return Err(Error::data("the input has no rows").coded(ErrorCode::EmptyInput));
        }
        let tree = match earlier {
            Some(earlier) => merge.follow(&earlier, &values),
            None => merge.tree(&values),
        };
        trees.insert(name.to_owned(), tree.map_err(place)?);
    }
    if trees.is_empty() {
        return Ok(policy);
    }
    with_trees.trees.extend(trees);
    spec.resolve(schema, &with_trees)
}

async fn has_rows(table: &DataFrame) -> Result<bool> {
    let first = table.clone().limit(0, Some(1)).context(DOING)?;
    Ok(first.count().await.context(DOING)? > 0)
}

/// A column whose values are counted.
pub(crate) struct ColumnToMerge<'a> {
    pub(crate) name: &'a str,
    /// The column that identifies individuals; without one, rows are counted.
    pub(crate) individual: Option<&'a str>,
    /// A value with fewer holders is not listed.
    pub(crate) least_holders: u64,
    /// The number of levels of the tree for which memory is reserved.
    pub(crate) levels: usize,
    /// The label of the others, which must be no value.
    pub(crate) label: Option<&'a str>,
}

/// Returns the values of a column that enough individuals hold, in their order, and the memory of a
/// tree of them.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn frequent_values(
    column_to_merge: &ColumnToMerge<'_>,
    counted: &RowsToCount<'_>,
    stop: &CancelToken,
) -> Result<(FrequentValues, Held)> {
    let ColumnToMerge { name, individual, least_holders, levels, label } = *column_to_merge;
    let value = || vec![column(name)];
    // No name of the grouped column.
    let alias = format!("holders of {name}");
    let table = counted.table.clone().filter(column(name).is_not_null()).context(DOING)?;
    let groups = match (individual, counted.rows) {
        (Some(individual), _) => {
            let pairs =
                table.clone().aggregate(vec![column(name), column(individual)], Vec::new()).context(DOING)?;
            pairs.aggregate(value(), vec![count(column(individual)).alias(&alias)])
        }
        (None, Some(rows)) => table.clone().aggregate(value(), vec![sum(column(rows)).alias(&alias)]),
        (None, None) => table.clone().aggregate(value(), vec![count(lit(1i64)).alias(&alias)]),
    };
    let columns = vec![column(name), cast(column(&alias), DataType::Int64).alias(&alias)];
    let groups = groups.and_then(|groups| groups.select(columns));
    let sorted = groups.and_then(|groups| groups.sort(vec![column(name).sort(true, false)]));
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(counted.session, "values to be merged"));
    let (mut held, mut bytes) = (Held::new(&budget), 0);
    let mut values = FrequentValues::new(least_holders).watching(label);
    let mut batches = sorted.context(DOING)?.execute_stream().await.context(DOING)?;
    while let Some(batch) = batches.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let holders = counted_of(batch.column(1))?;
        for (row, holders) in holders.into_iter().enumerate() {
            let text = Value::read(batch.column(0), row)?.text_form().unwrap_or_default();
            let length = text.len();
            if values.add(text, holders) {
                bytes += (levels + 2) * (length + CELL);
            }
        }
        held.at_least(COPIES * bytes)?;
    }
    if let Some(individual) = individual.filter(|_| values.other_holders() >= least_holders) {
        // One who holds several of the other values was counted with each.
        let pairs = table.filter(column(individual).is_not_null()).context(DOING)?;
        let pairs = pairs.select(vec![column(name), column(individual)]).context(DOING)?;
        let others = holders_of_others(pairs, &values, stop).await?;
        values.others_are_held_by(others);
    }
    Ok((values, held))
}

/// Returns how many individuals, the second column, hold a value that is not listed; it stops at enough.
async fn holders_of_others(pairs: DataFrame, values: &FrequentValues, stop: &CancelToken) -> Result<u64> {
    let listed: HashSet<&str> = values.values().collect();
    let mut seen: HashSet<Box<[u8]>> = HashSet::new();
    let mut batches = pairs.execute_stream().await.context(DOING)?;
    while let Some(batch) = batches.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let individuals = batch.column(1);
        let fields = vec![SortField::new(individuals.data_type().clone())];
        let rows = RowConverter::new(fields).context(DOING)?;
        let rows = rows.convert_columns(std::slice::from_ref(individuals)).context(DOING)?;
        for row in 0..batch.num_rows() {
            let text = Value::read(batch.column(0), row)?.text_form().unwrap_or_default();
            if !listed.contains(text.as_str()) {
                seen.insert(rows.row(row).as_ref().into());
            }
            if values.are_enough(seen.len() as u64) {
                return Ok(seen.len() as u64);
            }
        }
    }
    Ok(seen.len() as u64)
}

/// About the memory of a label of a tree, without its text.
const CELL: usize = 48;
/// How often the labels of a tree are held while it is made.
const COPIES: usize = 6;
