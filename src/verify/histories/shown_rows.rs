//! The rows of one release: whose each is, which class shows it, and the values that models look at.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt64Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::{Expr, lit, when};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;

use super::dates::time_of;
use super::shown_classes::{ShownClasses, in_view, of_view};
use super::{DOING, Matching, Member, View, knows};
use crate::class::{Budget, Held};
use crate::engine::functions::{random_keys, row_hash};
use crate::engine::pseudonym::pseudonym;
use crate::engine::replay_table::table_of_partitions;
use crate::engine::spilled_rows::SpilledRows;
use crate::engine::{Context, PoolBudget, column};
use crate::error::{Error, Result};
use crate::model::{Distribution, Needs, Requirement, SensitiveColumn};
use crate::progress::CancelToken;
use crate::verify::assignment::SUPPRESSED;
use crate::verify::counting::{column_name, counted_name, numbered, numbered_input};
use crate::verify::distributions_of;
use crate::verify::each_class::seen;
use crate::verify::expected::Expected;
use crate::verify::per_class::{INDIVIDUAL, PerClass};

/// Of each row its person as two hashes, and its own.
pub(super) const ROW: [&str; 3] = [INDIVIDUAL[0], INDIVIDUAL[1], "kanon_row"];

/// A hash of the name of the person as it may also be spelled; NULL where it is no text.
pub(super) const LOOSE: &str = "kanon_loose";

/// Returns the name of a hash of values that everybody compares; NULL where the release does not show all of them.
pub(super) fn compared_name(at: usize) -> String {
    format!("kanon_compared_{at}")
}

/// Returns the name of the class that shows a row to an attacker who knows the quasi-identifiers of a view; NULL for a row that no
/// class shows.
pub(super) fn class_name(view: usize) -> String {
    format!("kanon_shown_{view}")
}

/// Returns the name of a hash of what such an attacker also knows of a row, from other releases.
pub(super) fn elsewhere_name(view: usize) -> String {
    format!("kanon_elsewhere_{view}")
}

/// Returns the name of a column of values.
pub(super) fn value_name(at: usize) -> String {
    format!("kanon_of_row_{at}")
}

/// Returns the name of a column whose values tell that a row was not in an input.
pub(super) fn date_name(at: usize) -> String {
    format!("kanon_date_{at}")
}

/// The rows of a release as histories look at them, in a spill file.
pub(crate) struct ShownRows<'a> {
    /// The columns [`ROW`], [`LOOSE`], those of [`compared_name`], those of [`class_name`] and of [`elsewhere_name`] for each view,
    /// then those of [`value_name`] and of [`date_name`].
    pub(super) table: DataFrame,
    /// The number of columns with values: the counted ones, then the lasting ones.
    pub(super) width: usize,
    pub(super) models: Vec<JudgedModel<'a>>,
    /// The distribution of each counted column over the input.
    pub(super) inputs: Vec<Distribution>,
    /// The columns whose values last, by their names, behind the counted ones.
    pub(super) lasting: Vec<String>,
    /// The places among the dates of those that the release has.
    pub(super) dates: Vec<usize>,
    pub(crate) classes: ShownClasses,
    /// What attackers know.
    pub(super) views: Vec<View>,
    /// The number of hashes of values that are compared.
    pub(super) compared: usize,
    /// The rows without a person; they have no history.
    pub(crate) without_person: WithoutPerson,
}

/// The rows without a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WithoutPerson {
    pub(crate) rows: u64,
    /// Those that the release shows.
    pub(crate) shown: u64,
}

/// A model of a release that is judged for the rows of histories.
pub(crate) struct JudgedModel<'a> {
    /// Its place among the requirements of the release.
    pub(crate) at: usize,
    pub(super) requirement: &'a Requirement,
    /// The place of its column among the counted ones.
    pub(crate) column: Option<usize>,
    /// The name of its column, if its values last.
    pub(crate) lasting: Option<&'a str>,
}

impl<'a> ShownRows<'a> {
    /// Reads the rows of a release once, for attackers who know the quasi-identifiers of these views.
    ///
    /// # Errors
    /// An unmet error if the private record assigns no class to a row, a data error when reading fails or memory runs out.
    pub(crate) async fn read(
        member: &Member<'a>,
        matching: &Matching,
        views: &[View],
        stop: &CancelToken,
    ) -> Result<Self> {
        let expected = member.expected;
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(member.session, "histories"));
        let labels = expected.labels(&budget);
        let assigner = expected.assigner(&budget)?;
        let counted = expected.counted()?;
        let (models, of_known) = (models_of(expected, matching)?, random_keys(DOING)?[0]);
        let mut lasting: Vec<String> = models.iter().filter_map(|m| m.lasting).map(str::to_owned).collect();
        lasting.sort_unstable();
        lasting.dedup();

        let released = match &member.output {
            Some(output) => numbered(output.clone(), expected, &labels, Vec::new())?,
            None => {
                let rows = numbered_input(
                    member.input.clone(),
                    expected,
                    expected.assigner(&budget)?.as_ref(),
                    &labels,
                    Vec::new(),
                )?;
                let is_shown =
                    expected.quasi().map(|index| column(column_name(index)).not_eq(lit(SUPPRESSED)));
                rows.filter(is_shown.reduce(Expr::and).ok_or_else(lost)?).context(DOING)?
            }
        };
        let classes = ShownClasses::read(released, expected, &labels, &budget, stop).await?;

        let mut others = matching.row_of(&member.input, |name| expected.shows_as_it_is(name))?;
        let of_counted = counted.iter().enumerate();
        others.extend(of_counted.map(|(at, (of, _))| seen(of, column(of.name())).alias(counted_name(at))));
        for (at, name) in lasting.iter().enumerate() {
            let value = pseudonym(&matching.key, &format!("value of {name}"), vec![column(name)]);
            let known = when(column(name).is_null(), null()).otherwise(value).context(DOING)?;
            others.push(known.alias(lasting_name(at)));
        }
        let schema = member.input.schema().as_arrow();
        let dates = matching.dates.iter().enumerate();
        let dates: Vec<(usize, &String)> =
            dates.filter(|(_, name)| schema.field_with_name(name).is_ok()).collect();
        for (at, name) in &dates {
            others.push(time_of(schema, name)?.alias(date_name(*at)));
        }
        let rows = numbered_input(member.input.clone(), expected, assigner.as_ref(), &labels, others)?;
        let width = counted.len() + lasting.len();
        let mut fold = PerClass::new(counted.len(), expected.individual.is_some(), &budget);
        let inputs = distributions_of(&member.input, &rows, expected, &counted, &mut fold, stop).await?;

        let mut columns: Vec<Expr> = ROW.map(column).to_vec();
        columns.push(column(LOOSE));
        columns.extend((0..matching.compared.len()).map(|at| column(compared_name(at))));
        let of_row = columns.len();
        columns.extend(expected.quasi().map(|index| column(column_name(index))));
        let elsewhere = views.iter().enumerate().map(|(view, over)| {
            let known = member.known_elsewhere.iter().filter(|name| knows(over, name));
            let place = |name: &String| expected.columns.iter().position(|(column, _)| column == name);
            let columns = known.filter_map(place).map(|at| column(column_name(at)));
            let columns: Vec<Expr> = columns.collect();
            let known = if columns.is_empty() { lit(0u64) } else { row_hash(of_known, columns) };
            known.alias(elsewhere_name(view))
        });
        columns.extend(elsewhere);
        let values = (0..counted.len()).map(counted_name).chain((0..lasting.len()).map(lasting_name));
        columns.extend(values.enumerate().map(|(at, name)| column(name).alias(value_name(at))));
        columns.extend(dates.iter().map(|(at, _)| column(date_name(*at))));
        let rows = rows.select(columns).context(DOING)?;

        let of_labels = of_row..of_row + expected.quasi().count();
        let (quasi, of_class) = classes.labels();
        let in_views: Vec<Vec<u64>> = views.iter().map(|over| of_view(quasi, of_class, over)).collect();
        let before_values = of_labels.end + views.len();
        let counted = before_values..before_values + counted.len();
        let schema = schema_of(rows.schema().as_arrow(), &of_labels, views.len(), &counted);
        let stream = rows.execute_stream().await.context(DOING)?;
        let mut without_person = WithoutPerson::default();
        let batches = stream.map(|batch| {
            let batch = batch.context(DOING)?;
            let (labels, rows) = (&batch.columns()[of_labels.clone()], batch.num_rows());
            let shown = classes.of_rows(labels, rows)?;
            let has_person = batch.column(0);
            let without = (0..rows).filter(|row| has_person.is_null(*row));
            without_person.shown += without.filter(|row| shown[*row].is_some()).count() as u64;
            without_person.rows += has_person.null_count() as u64;
            let shown = in_views.iter().map(|of_view| Ok(Arc::new(in_view(&shown, of_view)?) as ArrayRef));
            let shown = shown.collect::<Result<Vec<_>>>()?;
            let mut columns = batch.columns().to_vec();
            for (number, at) in counted.clone().enumerate() {
                let numbers =
                    fold.numbers(number, &columns[at])?.into_iter().map(|number| number.map(u64::from));
                columns[at] = Arc::new(numbers.collect::<UInt64Array>());
            }
            columns.splice(of_labels.clone(), shown);
            with_person(RecordBatch::try_new(Arc::clone(&schema), columns).context(DOING)?)
        });
        let runtime = member.session.runtime_env();
        let rows = SpilledRows::write(runtime, Arc::clone(&schema), batches.boxed(), stop, DOING).await?;
        Ok(Self {
            table: table_of_partitions(member.session, vec![Arc::new(rows)])?,
            width,
            models,
            inputs,
            lasting,
            dates: dates.into_iter().map(|(at, _)| at).collect(),
            classes,
            views: views.to_vec(),
            compared: matching.compared.len(),
            without_person,
        })
    }

    /// Reads the rows of an input that has not been released yet, as if all were shown; `class` gives the class of each row.
    ///
    /// # Errors
    /// A data error when reading fails.
    pub(crate) async fn of_input(
        session: &SessionContext,
        input: &DataFrame,
        matching: &Matching,
        class: Expr,
        stop: &CancelToken,
    ) -> Result<Self> {
        let schema = input.schema().as_arrow();
        let mut columns = matching.row_of(input, |name| schema.field_with_name(name).is_ok())?;
        columns.extend([class.alias(class_name(0)), lit(0u64).alias(elsewhere_name(0))]);
        let dates = matching.dates.iter().enumerate();
        let dates: Vec<(usize, &String)> =
            dates.filter(|(_, name)| schema.field_with_name(name).is_ok()).collect();
        for (at, name) in &dates {
            columns.push(time_of(schema, name)?.alias(date_name(*at)));
        }
        let rows = input.clone().select(columns).context(DOING)?;
        let schema = Arc::clone(rows.schema().inner());
        let mut without_person = WithoutPerson::default();
        let stream = rows.execute_stream().await.context(DOING)?;
        let batches = stream.map(|batch| {
            let batch = batch.context(DOING)?;
            without_person.rows += batch.column(0).null_count() as u64;
            with_person(batch)
        });
        let rows = SpilledRows::write(session.runtime_env(), schema, batches.boxed(), stop, DOING).await?;
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "histories"));
        Ok(Self {
            table: table_of_partitions(session, vec![Arc::new(rows)])?,
            width: 0,
            models: Vec::new(),
            inputs: Vec::new(),
            lasting: Vec::new(),
            dates: dates.into_iter().map(|(at, _)| at).collect(),
            classes: ShownClasses::of_labels(Vec::new(), Vec::new(), Held::new(&budget)),
            views: vec![None],
            compared: matching.compared.len(),
            without_person,
        })
    }

    /// Returns all models that say something about a class by itself.
    pub(crate) fn models(&self) -> &[JudgedModel<'a>] {
        &self.models
    }

    /// Returns the columns whose values last.
    pub(crate) fn lasting(&self) -> &[String] {
        &self.lasting
    }

    /// Returns the models that say something about a class by itself to the attacker of a view.
    pub(super) fn models_of(&self, view: usize) -> impl Iterator<Item = &JudgedModel<'a>> {
        self.models.iter().filter(move |model| model.requirement.quasi == self.views[view])
    }

    /// Returns the number of people that each class promises to the attacker of a view.
    pub(super) fn least(&self, view: usize) -> u64 {
        let promised = self.models_of(view).map(|model| model.requirement.model.min_size());
        promised.max().unwrap_or_default().max(LEAST_PEOPLE)
    }
}

/// One person alone is found, whatever a model says.
const LEAST_PEOPLE: u64 = 2;

fn lasting_name(at: usize) -> String {
    format!("kanon_lasting_{at}")
}

/// Returns the models that say something about a class by itself.
fn models_of<'a>(expected: &'a Expected<'a>, matching: &Matching) -> Result<Vec<JudgedModel<'a>>> {
    let looks_at = expected.looks_at()?;
    let all = expected.requirements.iter().zip(looks_at).enumerate();
    let judged = all.filter(|(_, (requirement, _))| {
        !matches!(requirement.model.needs(), Needs::Population | Needs::Table)
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

fn null() -> Expr {
    lit(ScalarValue::UInt64(None))
}

/// Returns the schema of rows with the classes of views instead of labels, and whose counted values are numbers.
fn schema_of(rows: &Schema, labels: &Range<usize>, views: usize, counted: &Range<usize>) -> SchemaRef {
    let fields = rows.fields().iter().enumerate().map(|(at, field)| match counted.contains(&at) {
        true => Arc::new(Field::new(field.name(), DataType::UInt64, true)),
        false => Arc::clone(field),
    });
    let mut fields: Vec<FieldRef> = fields.collect();
    let shown = (0..views).map(|view| Arc::new(Field::new(class_name(view), DataType::UInt64, true)));
    fields.splice(labels.clone(), shown);
    Arc::new(Schema::new(fields))
}

/// Returns the rows of a batch that have a person.
fn with_person(batch: RecordBatch) -> Result<RecordBatch> {
    let person = batch.column(0);
    if person.null_count() == 0 {
        return Ok(batch);
    }
    let has_person: BooleanArray = (0..person.len()).map(|row| Some(person.is_valid(row))).collect();
    filter_record_batch(&batch, &has_person).context(DOING)
}

/// Returns the columns of a batch, which are all numbers.
pub(super) fn numbers(batch: &RecordBatch) -> Result<Vec<&UInt64Array>> {
    batch.columns().iter().map(|array| array.as_primitive_opt().ok_or_else(lost)).collect()
}

pub(super) fn lost() -> Error {
    Error::internal("histories: a plan lost a column")
}
