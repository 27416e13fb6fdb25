//! Profile: one GROUP BY over the quasi-identifiers becomes the class table.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::{DataType, UInt32Type};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use crate::class::{Budget, ClassSizes, ClassTable, ClassTableBuilder, Encoder, QuasiColumn};
use crate::engine::class_key::{NAME_OF_CLASS_KEY, is_key, keyed};
use crate::engine::each_class::{InClasses, each_class};
use crate::engine::functions::{OfValues, counted, of_values, random_keys};
use crate::engine::{Context, PoolBudget, Run, column};
use crate::error::{Error, Result};
use crate::model::{SeenClass, SensitiveColumn};
use crate::policy::Policy;
use crate::progress::CancelToken;
use crate::verify::homogeneous::{Counting, Homogeneous};

/// Groups `table` by the unrecoded quasi-identifiers, the sensitive columns that are counted and
/// the individual column if there is one.
///
/// # Errors
/// A data error when reading fails, memory runs out or a hierarchy does not cover the values.
pub async fn profile(
    session: &SessionContext,
    table: DataFrame,
    quasi: Vec<QuasiColumn>,
    sensitive: Vec<SensitiveColumn>,
    individual: Option<&str>,
    run: &Run,
) -> Result<ClassTable> {
    let doing = "grouping the input by its quasi-identifiers";
    let names = quasi.iter().map(|q| q.name.clone()).chain(sensitive.iter().map(|s| s.name().to_owned()));
    let names: Vec<String> = names.chain(individual.map(str::to_owned)).collect();
    let mut seen: Vec<Option<SensitiveColumn>> = vec![None; quasi.len()];
    seen.extend(sensitive.iter().map(|column| Some(column.clone()).filter(|column| !column.is_as_it_is())));
    seen.resize(names.len(), None);
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "classes"));
    let mut builder = ClassTableBuilder::new(quasi, sensitive, &budget)?.showing_values(run.show_values);
    if individual.is_some() {
        builder = builder.counting_individuals();
    }
    let keys = names.iter().zip(seen).zip(builder.coders()).enumerate();
    let keys = keys.map(|(at, ((of, seen), coder))| {
        of_values(Arc::new(Code { name: format!("kanon_code_{at}"), coder, seen }), of, column(of))
    });
    let mut stream = grouped(table, keys, doing)?.execute_stream().await.context(doing)?;
    while let Some(batch) = stream.next().await {
        run.stop.check()?;
        let batch = batch.context(doing)?;
        let (counts, codes) = batch
            .columns()
            .split_last()
            .ok_or_else(|| Error::internal("profile: a GROUP BY has no count"))?;
        let code =
            |codes: &'_ ArrayRef| codes.as_primitive_opt::<UInt32Type>().map(|codes| codes.values().to_vec());
        let codes: Option<Vec<Vec<u32>>> = codes.iter().map(code).collect();
        let codes = codes.ok_or_else(|| Error::internal("profile: a code has the wrong type"))?;
        builder.add_coded(&codes.iter().map(Vec::as_slice).collect::<Vec<_>>(), &counted(counts)?)?;
    }
    // It has the encoders, too, which give back what they hold with the last of them.
    drop(stream);
    finished(builder).await
}

/// A function that returns the class table's codes of values, so that small integers are grouped.
struct Code {
    /// Two codes of one column in one plan need two names: the engine merges calls that print alike.
    name: String,
    coder: Encoder,
    /// What is counted, where it is not the values themselves.
    seen: Option<SensitiveColumn>,
}

impl OfValues for Code {
    fn name(&self) -> &str {
        &self.name
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let seen = self.seen.as_ref().map(|column| column.see(values)).transpose()?;
        Ok(Arc::new(UInt32Array::from(self.coder.code(seen.as_ref().unwrap_or(values))?)))
    }
}

/// The name of the rows per group in [`grouped`].
const ROWS: &str = "rows";

/// Returns the name of a grouped column in [`grouped`].
fn key(index: usize) -> String {
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

/// Builds the plan of a profile by values: the quasi-identifiers, sensitive columns and individual
/// that the policy counts, and the rows of each group.
///
/// # Errors
/// When the plan cannot be built.
pub(crate) fn by_values(table: DataFrame, policy: &Policy) -> Result<DataFrame> {
    grouped(table, grouped_columns(policy).into_iter().map(column), "planning the classes")
}

fn grouped_columns(policy: &Policy) -> Vec<String> {
    let quasi = policy.quasi.iter().map(|quasi| quasi.name.clone());
    quasi.chain(counted_names(policy)).chain(policy.individual().map(str::to_owned)).collect()
}

/// Returns the names of the sensitive columns that are counted, each once.
fn counted_names(policy: &Policy) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in policy.counted() {
        if !names.iter().any(|name| name == column.name()) {
            names.push(column.name().to_owned());
        }
    }
    names
}

/// The name of the rows of each group in [`with_names`].
pub(crate) const ROWS_OF_GROUP: &str = "kanon_rows_of_group";

/// Gives the columns of [`by_values`] their names back.
///
/// # Errors
/// When the plan cannot be built.
pub(crate) fn with_names(groups: DataFrame, policy: &Policy) -> Result<DataFrame> {
    let names = grouped_columns(policy).into_iter().enumerate();
    let named = names.map(|(at, name)| column(key(at)).alias(name));
    let rows = column(ROWS).alias(ROWS_OF_GROUP);
    groups.select(named.chain([rows]).collect::<Vec<_>>()).context("planning the classes")
}

/// Builds the class table from the rows of [`by_values`].
///
/// # Errors
/// As [`profile`].
pub(crate) async fn of_values_grouped(
    session: &SessionContext,
    policy: &Policy,
    mut groups: SendableRecordBatchStream,
    run: &Run,
) -> Result<ClassTable> {
    let doing = "grouping the input by its quasi-identifiers";
    let quasi = policy.quasi.iter().map(crate::policy::Quasi::for_class_table).collect();
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "classes"));
    let (names, counted_columns) = (counted_names(policy), policy.counted());
    let mut builder =
        ClassTableBuilder::new(quasi, counted_columns.clone(), &budget)?.showing_values(run.show_values);
    if policy.individual().is_some() {
        builder = builder.counting_individuals();
    }
    let wrong = || Error::internal("profile: a sensitive column is not grouped");
    while let Some(batch) = groups.next().await {
        run.stop.check()?;
        let batch = batch.context(doing)?;
        let (counts, values) = batch
            .columns()
            .split_last()
            .ok_or_else(|| Error::internal("profile: a GROUP BY has no count"))?;
        let (quasi, others) = values.split_at_checked(policy.quasi.len()).ok_or_else(wrong)?;
        let (sensitive, individual) = others.split_at_checked(names.len()).ok_or_else(wrong)?;
        let seen = counted_columns.iter().map(|column| {
            let at = names.iter().position(|name| name == column.name()).ok_or_else(wrong)?;
            column.see(&sensitive[at])
        });
        let seen: Vec<ArrayRef> = seen.collect::<Result<_>>()?;
        builder.add(&[quasi, &seen, individual].concat(), &counted(counts)?)?;
    }
    drop(groups);
    finished(builder).await
}

async fn finished(builder: ClassTableBuilder) -> Result<ClassTable> {
    let finish = tokio::task::spawn_blocking(move || builder.finish());
    finish.await.map_err(|_| Error::internal("profile: the thread that encodes the classes failed"))?
}

/// Returns the class sizes of `table` grouped by some of its unrecoded columns; errors name the
/// step `doing`.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub async fn class_sizes(
    table: &DataFrame,
    names: &[&str],
    stop: &CancelToken,
    doing: &str,
) -> Result<ClassSizes> {
    let columns = names.iter().map(|name| column(*name)).collect();
    let keys = keyed(columns, random_keys(doing)?[0], table.schema()).context(doing)?;
    let prefix = if is_key(&keys) { NAME_OF_CLASS_KEY } else { "kanon_column" };
    let keys = keys.into_iter().enumerate().map(|(at, key)| key.alias(format!("{prefix}_{at}")));
    let rows = vec![count(lit(1i64)).alias(ROWS)];
    let groups = table.clone().aggregate(keys.collect(), rows).context(doing)?;
    let sizes = groups.select(vec![column(ROWS)]).context(doing)?;
    let mut stream = sizes.execute_stream().await.context(doing)?;
    let mut all = ClassSizes::default();
    while let Some(batch) = stream.next().await {
        stop.check()?;
        counted(batch.context(doing)?.column(0))?.into_iter().for_each(|size| all.add(size));
    }
    Ok(all)
}

/// The counts of [`for_every_class`] over all classes.
#[derive(Debug)]
pub struct SeenAll {
    /// The number of distinct individuals, where they are counted.
    pub individuals: Option<u64>,
    /// The homogeneous classes, per sensitive column.
    pub homogeneous: Vec<Homogeneous>,
}

/// Calls `see` for every class of `table`, grouped by some of its unrecoded columns; sizes count
/// the distinct values of the individual column if there is one. Each sensitive column says whether
/// a model reads the values of the whole column. Those that are counted as they are, which are
/// judged for homogeneity, come first.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub async fn for_every_class(
    session: &SessionContext,
    table: &DataFrame,
    names: &[&str],
    sensitive: &[(SensitiveColumn, bool)],
    individual: Option<&str>,
    stop: &CancelToken,
    see: &mut (dyn FnMut(&SeenClass<'_>) + Send),
) -> Result<SeenAll> {
    let doing = "grouping the input by its quasi-identifiers";
    let as_they_are = sensitive.iter().take_while(|(column, _)| column.is_as_it_is());
    let mut homogeneous = Counting::new(as_they_are.map(|(column, _)| column.name()));
    if sensitive.is_empty() && individual.is_none() {
        let sizes = class_sizes(table, names, stop, doing).await?;
        for (size, classes, _) in sizes.histogram() {
            let class =
                SeenClass { rows: size, size, unowned_rows: 0, values: &[], inputs: &[], individuals: None };
            (0..classes).for_each(|_| see(&class));
        }
        return Ok(SeenAll { individuals: None, homogeneous: homogeneous.finish() });
    }
    let in_classes = InClasses {
        table,
        labels: names.iter().map(|name| column(*name)).collect(),
        sensitive,
        individual: individual.map(column),
    };
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "classes"));
    let mut show = |class: &SeenClass<'_>| {
        homogeneous.add(class.size, class.values, class.individuals);
        see(class);
    };
    let individuals = each_class(in_classes, &budget, stop, doing, &mut show).await?;
    Ok(SeenAll { individuals, homogeneous: homogeneous.finish() })
}
