//! The rows of one release: whose each is, which class shows it, and the values that models look at.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt64Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::{Expr, lit, when};
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;

use super::{DOING, Matching, Member};
use crate::class::Budget;
use crate::engine::functions::{random_keys, row_hash};
use crate::engine::replay_table::table_of_partitions;
use crate::engine::spilled_rows::SpilledRows;
use crate::engine::{Context, PoolBudget, column};
use crate::error::{Error, Result};
use crate::model::{Distribution, Needs, Requirement, SensitiveColumn};
use crate::progress::CancelToken;
use crate::verify::counting::{column_name, counted_name, numbered, numbered_input};
use crate::verify::distributions_of;
use crate::verify::each_class::seen;
use crate::verify::expected::Expected;
use crate::verify::members::{Members, member as member_of};
use crate::verify::per_class::{INDIVIDUAL, PerClass, individual};

/// Of each row its person as two hashes, its hash, the inputs in which it was not, as its dates tell, and the class that shows it
/// as two hashes; values follow.
pub(super) const FIRST: [&str; 6] =
    [INDIVIDUAL[0], INDIVIDUAL[1], "kanon_row", "kanon_not_in", CLASS[0], CLASS[1]];

/// The class, NULL for a row that no class shows.
pub(super) const CLASS: [&str; 2] = ["kanon_shown_a", "kanon_shown_b"];

/// The rows of a release as histories look at them, in a spill file.
pub(crate) struct ShownRows<'a> {
    /// The columns [`FIRST`], then those of [`value_name`].
    pub(super) table: DataFrame,
    /// The number of columns with values: the counted ones, then the lasting ones.
    pub(super) width: usize,
    pub(super) models: Vec<JudgedModel<'a>>,
    /// The distribution of each counted column over the input.
    pub(super) inputs: Vec<Distribution>,
    /// The columns whose values last, by their names, behind the counted ones.
    pub(super) lasting: Vec<String>,
    /// The number of people that each class promises.
    pub(super) least: u64,
    /// The rows without a person; they have no history.
    pub(crate) rows_without_person: u64,
}

/// A model of a release that is judged for the rows of histories.
pub(super) struct JudgedModel<'a> {
    /// Its place among the requirements of the release.
    pub(super) at: usize,
    pub(super) requirement: &'a Requirement,
    /// The place of its column among the counted ones.
    pub(super) column: Option<usize>,
    /// The name of its column, if its values last.
    pub(super) lasting: Option<&'a str>,
}

/// Returns the name of a column of values.
pub(super) fn value_name(at: usize) -> String {
    format!("kanon_of_row_{at}")
}

impl<'a> ShownRows<'a> {
    /// Reads the rows of a release once.
    ///
    /// # Errors
    /// An unmet error if the private record assigns no class to a row, a data error when reading fails or memory runs out.
    pub(crate) async fn read(member: &Member<'a>, matching: &Matching, stop: &CancelToken) -> Result<Self> {
        let expected = member.expected;
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(member.session, "histories"));
        let labels = expected.labels(&budget);
        let assigner = expected.assigner(&budget)?;
        let counted = expected.counted()?;
        let models = models_of(expected, matching)?;
        let mut lasting: Vec<String> = models.iter().filter_map(|m| m.lasting).map(str::to_owned).collect();
        lasting.sort_unstable();
        lasting.dedup();

        let by_all = class_columns(expected, &member.known_elsewhere, None);
        let by_known = class_columns(expected, &member.known_elsewhere, matching.over.as_deref());
        let (of_all, of_known) = (random_keys(DOING)?[0], random_keys(DOING)?);
        let released = numbered(member.output.clone(), expected, &labels, Vec::new())?;
        let members = shown_classes(released, row_hash(of_all, by_all.clone()), &budget, stop).await?;

        let mut others = individual(column(&matching.person), matching.of_people)?;
        let of_row = matching.row.iter().map(column).collect();
        others.push(row_hash(matching.of_rows[0], of_row).alias(FIRST[2]));
        others.push(matching.dates.not_in(&member.input)?.alias(FIRST[3]));
        let of_counted = counted.iter().enumerate();
        others.extend(of_counted.map(|(at, (of, _))| seen(of, column(of.name())).alias(counted_name(at))));
        for (at, name) in lasting.iter().enumerate() {
            let hash = row_hash(matching.of_rows[1], vec![column(name)]);
            let known = when(column(name).is_null(), null()).otherwise(hash).context(DOING)?;
            others.push(known.alias(value_name(at)));
        }
        let rows = numbered_input(member.input.clone(), expected, assigner.as_ref(), &labels, others)?;
        let width = counted.len() + lasting.len();
        let mut fold = PerClass::new(counted.len(), expected.individual.is_some(), &budget);
        let inputs = distributions_of(&member.input, &rows, expected, &counted, &mut fold, stop).await?;

        let shown = member_of(Arc::new(members), row_hash(of_all, by_all));
        let class = row_hash(of_known[0], by_known.clone());
        let mut columns: Vec<Expr> = FIRST[..4].iter().map(|name| column(*name)).collect();
        columns.push(when(shown.is_null(), null()).otherwise(class).context(DOING)?.alias(CLASS[0]));
        columns.push(row_hash(of_known[1], by_known).alias(CLASS[1]));
        columns.extend((0..counted.len()).map(|at| column(counted_name(at))));
        columns.extend((0..lasting.len()).map(|at| column(value_name(at))));
        let rows = rows.select(columns).context(DOING)?;

        let schema = schema(width);
        let stream = rows.execute_stream().await.context(DOING)?;
        let mut rows_without_person = 0;
        let batches = stream.map(|batch| {
            let batch = batch.context(DOING)?;
            let (batch, without) = with_person(&batch)?;
            rows_without_person += without;
            as_numbers(&batch, &schema, counted.len(), &mut fold)
        });
        let runtime = member.session.runtime_env();
        let rows = SpilledRows::write(runtime, Arc::clone(&schema), batches.boxed(), stop, DOING).await?;
        let of_classes = expected.requirements.iter().filter(|one| one.quasi == matching.over);
        let least = of_classes.map(|requirement| requirement.model.min_size()).max();
        Ok(Self {
            table: table_of_partitions(member.session, vec![Arc::new(rows)])?,
            width,
            models,
            inputs,
            lasting,
            least: least.unwrap_or_default().max(LEAST_PEOPLE),
            rows_without_person,
        })
    }
}

/// One person alone is found, whatever a model says.
const LEAST_PEOPLE: u64 = 2;

/// Returns the models that say something about a class by itself, over the quasi-identifiers that the attacker knows.
fn models_of<'a>(expected: &'a Expected<'a>, matching: &Matching) -> Result<Vec<JudgedModel<'a>>> {
    let looks_at = expected.looks_at()?;
    let all = expected.requirements.iter().zip(looks_at).enumerate();
    let judged = all.filter(|(_, (requirement, _))| {
        let needs = requirement.model.needs();
        requirement.quasi == matching.over && !matches!(needs, Needs::Population | Needs::Table)
    });
    let models = judged.map(|(at, (requirement, column))| {
        let of_values = requirement.sensitive.as_ref().filter(|column| {
            requirement.model.needs() == Needs::SensitiveCounts
                && column.is_as_it_is()
                && !matching.changes.iter().any(|name| name == column.name())
        });
        JudgedModel { at, requirement, column, lasting: of_values.map(SensitiveColumn::name) }
    });
    Ok(models.collect())
}

/// Returns the columns whose values form the classes of an attacker who knows some of the quasi-identifiers.
fn class_columns(expected: &Expected<'_>, known_elsewhere: &[String], over: Option<&[String]>) -> Vec<Expr> {
    let is_known = |name: &String| over.is_none_or(|over| over.contains(name));
    let columns =
        expected.columns.iter().enumerate().filter(|(_, (name, quasi))| {
            is_known(name) && (quasi.is_some() || known_elsewhere.contains(name))
        });
    columns.map(|(index, _)| column(column_name(index))).collect()
}

/// Returns the hashes of the classes of released rows.
async fn shown_classes(
    released: DataFrame,
    class: Expr,
    budget: &Arc<dyn Budget>,
    stop: &CancelToken,
) -> Result<Members> {
    let classes = released.select(vec![class.alias(CLASS[0])]).context(DOING)?.distinct().context(DOING)?;
    let mut stream = classes.execute_stream().await.context(DOING)?;
    let mut members = Members::new(budget);
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let classes = batch.column(0).as_primitive_opt::<UInt64Type>().ok_or_else(lost)?;
        members.add(classes.values().iter().copied())?;
    }
    Ok(members)
}

fn null() -> Expr {
    lit(ScalarValue::UInt64(None))
}

fn schema(width: usize) -> SchemaRef {
    let first = FIRST.iter().map(|name| Field::new(*name, DataType::UInt64, *name == CLASS[0]));
    let values = (0..width).map(|at| Field::new(value_name(at), DataType::UInt64, true));
    Arc::new(Schema::new(first.chain(values).collect::<Vec<_>>()))
}

/// Returns the rows of a batch that have a person, and the number of the others.
fn with_person(batch: &RecordBatch) -> Result<(RecordBatch, u64)> {
    let person = batch.column(0);
    let without = person.null_count() as u64;
    if without == 0 {
        return Ok((batch.clone(), 0));
    }
    let has_person: BooleanArray = (0..person.len()).map(|row| Some(person.is_valid(row))).collect();
    Ok((filter_record_batch(batch, &has_person).context(DOING)?, without))
}

/// Returns a batch with the counted values as numbers.
fn as_numbers(
    batch: &RecordBatch,
    schema: &SchemaRef,
    counted: usize,
    fold: &mut PerClass,
) -> Result<RecordBatch> {
    let (first, values) = batch.columns().split_at(FIRST.len());
    let (values, lasting) = values.split_at(counted);
    let mut columns = first.to_vec();
    for (at, values) in values.iter().enumerate() {
        let numbers = fold.numbers(at, values)?.into_iter().map(|number| number.map(u64::from));
        columns.push(Arc::new(numbers.collect::<UInt64Array>()) as ArrayRef);
    }
    columns.extend_from_slice(lasting);
    RecordBatch::try_new(Arc::clone(schema), columns).context(DOING)
}

pub(super) fn lost() -> Error {
    Error::internal("histories: a plan lost a column")
}
