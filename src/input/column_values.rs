//! The distinct values of one column of an input, and the hierarchy of a rule over them.
//!
//! The file is for `hierarchy = { file = "..." }`, under which CSV columns are text: `07` and `7` are two
//! values there, and one number for the rule. So the rule reads numbers, and each cell gets a row of its own.
//! Distinct values come from a GROUP BY and a sort, which spill; the rows are held, and their memory is taken
//! from the pool.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringViewArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use super::files::{Input, InputFormat};
use super::infer_types::{Typing, typed};
use super::merged::{self, RowsToCount};
use crate::class::{Budget, Held};
use crate::engine::functions::counted;
use crate::engine::{Context, PoolBudget, Run, column, counting_rules};
use crate::error::{Error, Result};
use crate::generalize::hierarchy_rows::{label_texts, rows_of, size_as_rows};
use crate::generalize::value::{SUPPORTED, is_supported, unsupported};
use crate::generalize::{Hierarchy, text_forms};
use crate::plural::grouped;
use crate::policy::{CsvOptions, CsvType, Files, PolicySpec, no_column};

/// The greatest number of distinct values that a hierarchy file is made for.
pub const MOST_VALUES: usize = 1_000_000;

/// A rule for the values of one column.
pub struct ColumnRule<'a> {
    /// The column.
    pub column: &'a str,
    /// The policy spec with the [rule](PolicySpec::of_hierarchy), and how CSV files are read.
    pub spec: &'a PolicySpec,
    /// The hierarchy files.
    pub files: &'a dyn Files,
    /// The place of the rule in errors.
    pub place: &'a str,
}

/// A hierarchy over the distinct values of a column, as the rows of a hierarchy file.
pub struct HierarchyOfValues {
    /// The value and its label at every level up to the top, finest first.
    pub rows: Vec<Vec<String>>,
    /// The descriptors of the levels of the labels.
    pub levels: Vec<String>,
    /// The memory of the rows, and of their CSV.
    pub(crate) held: Held,
}

/// Applies a rule to the distinct values of a column. A value is written as a policy with a
/// hierarchy file reads it: by its text form, but in CSV and JSON, where texts are numbers or dates
/// only for the rule, as the text is.
///
/// # Errors
/// A policy error when the input lacks the column or the rule does not suit or cover its values; a
/// data error when reading fails, or there are no values or more than [`MOST_VALUES`].
pub async fn hierarchy_of_values(
    run: &Run,
    input: &Input,
    rule: &ColumnRule<'_>,
) -> Result<HierarchyOfValues> {
    let (name, spec) = (rule.column, rule.spec);
    let (session, table) = open_column(run, input, spec.csv(), name).await?;
    let table = typed_column(input, spec, name, table).await?;
    let hierarchy = hierarchy_of(run, input, rule, &session, &table).await?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&session, "hierarchy of values"));
    let mut held = Held::new(&budget);
    let batch = distinct_values(run, name, &table, &mut held).await?;
    // The last column is that of the texts as they are written, if there are two.
    let (Some(values), Some(texts)) = (batch.columns().first(), batch.columns().last()) else {
        return Err(Error::internal("column values: a batch without columns"));
    };
    let texts = text_forms(texts)?;
    let of_batch: usize = batch.columns().iter().map(bytes_of).sum();
    // The value and its labels, level by level.
    let mut columns = vec![texts];
    // Level 0 is the value, unless it joins values with few holders.
    let levels = &hierarchy.levels()[usize::from(!hierarchy.is_merged())..];
    for level in levels {
        run.stop.check()?;
        columns.push(match label_texts(&**level, values) {
            Ok(labels) => labels,
            Err(error) => return Err(refusal(run, name, &hierarchy, values, error)?),
        });
        held.at_least(of_batch + size_as_rows(&columns))?;
    }
    // The columns, the rows of texts, and their CSV.
    held.at_least(of_batch + 3 * size_as_rows(&columns))?;
    run.stop.check()?;
    let rows = rows_of(&hierarchy, values, &columns)?;
    let levels = levels.iter().map(|level| level.descriptor().to_string());
    Ok(HierarchyOfValues { rows, levels: levels.collect(), held })
}

/// Counts the rows of every value of a column as a policy with a hierarchy file reads it, NULL
/// included. `see` gets each value once, in batches, with its rows.
///
/// # Errors
/// A policy error when the input lacks the column or its values have no text form; a data error when
/// reading fails; errors of `see`.
pub async fn for_each_text(
    run: &Run,
    input: &Input,
    csv: &CsvOptions,
    name: &str,
    see: &mut (dyn FnMut(&StringViewArray, &[u64]) -> Result<()> + Send),
) -> Result<()> {
    let doing = "counting the values";
    let (_session, table) = open_column(run, input, csv, name).await?;
    let rows = vec![count(lit(1i64)).alias("rows")];
    let groups = table.aggregate(vec![column(name)], rows).context(doing)?;
    let mut batches = groups.execute_stream().await.context(doing)?;
    while let Some(batch) = batches.next().await {
        run.stop.check()?;
        let batch = batch.context(doing)?;
        if let [values, rows] = batch.columns() {
            see(&text_forms(values)?, &counted(rows)?)?;
        }
    }
    Ok(())
}

/// Opens one column of an input; texts of CSV and JSON files stay text.
async fn open_column(
    run: &Run,
    input: &Input,
    csv: &CsvOptions,
    name: &str,
) -> Result<(SessionContext, DataFrame)> {
    let session = run.resources.session(counting_rules())?;
    let table = input.table(&session, csv, &|_| CsvType::Text).await?;
    let schema = table.schema().as_arrow();
    let field = schema.field_with_name(name).map_err(|_| no_column(schema, name))?;
    if !is_supported(field.data_type()) {
        return Err(unsupported(field.data_type(), SUPPORTED).of_policy().at(place(name)));
    }
    let table = table.select(vec![column(name)]).context("opening the input")?;
    Ok((session, table))
}

/// Reads the texts of CSV and JSON files as the rule requires, like a policy with this rule. A second
/// column then holds them as they are written.
async fn typed_column(input: &Input, spec: &PolicySpec, name: &str, table: DataFrame) -> Result<DataFrame> {
    let wanted = spec.csv_type(name);
    let is_text = table.schema().fields().iter().all(|field| *field.data_type() == DataType::Utf8View);
    if !is_text || wanted == CsvType::Text || !matches!(input.format, InputFormat::Csv | InputFormat::Json) {
        return Ok(table);
    }
    let written = format!("{name} as written");
    let columns = vec![column(name), column(name).alias(&written)];
    let table = table.select(columns).context("opening the input")?;
    let fields = [name, &written].map(|name| Field::new(name, DataType::Utf8View, true));
    let is_value = |field: &Field| field.name() == name;
    typed(table, &Schema::new(fields.to_vec()), &is_value, (spec.csv(), &|_| wanted), Typing::Columnar).await
}

/// Makes the hierarchy of a rule over the first column of `table`; `merge` counts the values of the input.
async fn hierarchy_of(
    run: &Run,
    input: &Input,
    rule: &ColumnRule<'_>,
    session: &SessionContext,
    table: &DataFrame,
) -> Result<Hierarchy> {
    let at_rule = |error: Error| error.at(rule.place);
    if rule.spec.merged_quasi().next().is_some() {
        let whole = input.table(session, rule.spec.csv(), &|_| CsvType::Text).await?;
        let counted = RowsToCount { session, table: &whole, rows: None };
        let schema = whole.schema().as_arrow();
        let policy =
            merged::resolve(rule.spec, schema, rule.files, &counted, &run.stop).await.map_err(at_rule)?;
        let hierarchy = policy.quasi.into_iter().map(|quasi| quasi.hierarchy).next();
        return hierarchy.ok_or_else(|| Error::internal("column values: a policy without its column"));
    }
    let field = table.schema().as_arrow().fields().first().map(Arc::clone);
    match (rule.spec.column(rule.column), field) {
        (Some(column), Some(field)) => column.levels(field.data_type(), rule.files).map_err(at_rule),
        _ => Err(Error::internal("column values: a rule without its column")),
    }
}

/// Reads the distinct rows of `table` in which the value is not NULL, in the order of the values.
async fn distinct_values(run: &Run, name: &str, table: &DataFrame, held: &mut Held) -> Result<RecordBatch> {
    let doing = "reading the values";
    let columns: Vec<Expr> = table.schema().fields().iter().map(|field| column(field.name())).collect();
    let known = table.clone().filter(column(name).is_not_null()).context(doing)?;
    let distinct = known.aggregate(columns.clone(), Vec::new()).context(doing)?;
    // A limit below the sort would make it keep a heap of all rows.
    let sorted = distinct.sort(columns.into_iter().map(|column| column.sort(true, false)).collect());
    let mut stream = sorted.context(doing)?.execute_stream().await.context(doing)?;
    let (schema, mut batches, mut bytes, mut rows) = (stream.schema(), Vec::new(), 0, 0);
    while let Some(batch) = stream.next().await {
        run.stop.check()?;
        let batch = batch.context(doing)?;
        rows += batch.num_rows();
        if rows > MOST_VALUES {
            return Err(Error::data(format!(
                "it has more than {} distinct values, too many to edit by hand; use the rule itself in the \
                 policy",
                grouped(MOST_VALUES as u64)
            ))
            .at(place(name)));
        }
        // The batches, and the one batch that is made of them.
        bytes += 2 * batch.columns().iter().map(bytes_of).sum::<usize>();
        held.at_least(bytes)?;
        batches.push(batch);
    }
    if rows == 0 {
        return Err(Error::data("it has no values, so there is nothing to write").at(place(name)));
    }
    concat_batches(&schema, &batches).context(doing)
}

/// Returns the bytes of the values of an array, which may share its buffers with others.
fn bytes_of(values: &ArrayRef) -> usize {
    match (values.as_string_view_opt(), values.data_type().primitive_width()) {
        (Some(texts), _) => texts.iter().flatten().map(|text| text.len() + size_of::<u128>()).sum(),
        (None, width) => values.len() * width.unwrap_or(1),
    }
}

/// Completes the error of a rule that does not cover the values: with its place and, on demand, with
/// the values.
fn refusal(run: &Run, name: &str, hierarchy: &Hierarchy, values: &ArrayRef, error: Error) -> Result<Error> {
    let uncovered = if run.show_values { hierarchy.uncovered(values)? } else { Vec::new() };
    let shown = if uncovered.is_empty() { String::new() } else { format!(": {}", uncovered.join(", ")) };
    Ok(error.of_policy().at(place(name)).and(&shown))
}

fn place(name: &str) -> String {
    format!("column `{name}`")
}
