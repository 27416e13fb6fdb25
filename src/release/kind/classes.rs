//! Tables whose rows show what their class shows, and other columns as they are: common to levels, regions and centroids.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, cast, lexsort_to_indices, take};
use arrow::datatypes::{Schema, SchemaRef, UInt64Type};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::logical_expr::Expr;
use datafusion::prelude::DataFrame;

use crate::class::{Budget, ClassTable, EvaluatedClasses, Held};
use crate::engine::{Context, PoolBudget, Run};
use crate::error::{Error, Result};
use crate::generalize::{AsIs, Generalizer};
use crate::input::Loaded;
use crate::input::population::PopulationTable;
use crate::method::ReleaseKind;
use crate::policy::Policy;
use crate::progress::Phase;
use crate::release::apply::{self, ClassKeys, ClassNumbers};
use crate::release::kind::ordered_rows::{ordered_rows, typed};
use crate::release::kind::{Content, Extent, Judge, Judged, TablePlan, TableRows, only_table};
use crate::release::publish::record::{ColumnRecord, RecodingRecord};
use crate::release::role_checks;
use crate::release::written_columns::as_texts;
use crate::verify::as_is::{self, Finer, ReleasedRows, UniqueTogether};
use crate::verify::assignment::{Assignment, LinesShow};
use crate::verify::expected::Expected;
use crate::verify::row_lines::RowLines;
use crate::verify::sufficient::Sufficient;
use crate::verify::verify;

/// The kept classes in the order of their labels. `Debug` shows no cell.
#[derive(Clone)]
pub struct KeptClasses {
    /// The label of every class, per quasi-identifier in policy order.
    pub labels: Vec<ArrayRef>,
    /// What tells the class of a row.
    pub keys: ClassKeys,
    /// The rows of every class.
    pub rows: Vec<u64>,
}

impl std::fmt::Debug for KeptClasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptClasses({} classes)", self.rows.len())
    }
}

impl KeptClasses {
    /// Returns the memory of the classes in bytes.
    pub(super) fn bytes(&self) -> usize {
        let labels: usize = self.labels.iter().map(Array::get_array_memory_size).sum();
        let key = self.labels.len() * size_of::<u32>() + size_of::<(Box<[u32]>, Option<u64>)>();
        labels + self.rows.len() * size_of::<u64>() + self.keys.classes.len() * key
    }

    /// Returns the number of all rows.
    pub(super) fn total_rows(&self) -> u64 {
        self.rows.iter().sum()
    }
}

/// Refuses a recoding that keeps no class.
///
/// # Errors
/// An unmet error that says what helps.
pub(super) fn check_not_empty(policy: &Policy, classes: &EvaluatedClasses<'_>) -> Result<()> {
    if classes.kept_classes() > 0 {
        return Ok(());
    }
    Err(Error::unmet(format!(
        "the best release by `{}` would be empty: every row is suppressed; nothing was published; lower \
         suppression_limit, so that the search prefers levels that keep rows, or add coarser levels",
        policy.spec.objective.doc().name
    )))
}

/// Returns the order of classes by their labels, in the order in which they are given. The order of the input's codes would reveal facts about
/// suppressed values, because a label has the code of its least value.
///
/// # Errors
/// An internal error if labels cannot be ordered.
pub(in crate::release) fn order_of_labels(labels: &[ArrayRef], classes: usize) -> Result<UInt32Array> {
    if classes == 0 {
        return Ok(UInt32Array::from(Vec::<u32>::new()));
    }
    let options = Some(SortOptions { descending: false, nulls_first: true });
    let keys: Vec<SortColumn> =
        labels.iter().map(|values| SortColumn { values: Arc::clone(values), options }).collect();
    lexsort_to_indices(&keys, None).context("ordering the kept classes")
}

/// Returns what the only table shows.
///
/// # Errors
/// An internal error if the schema lacks a released column.
pub(super) fn content(
    policy: &Policy,
    schema: SchemaRef,
    recoding: RecodingRecord,
    judge: Box<dyn Judge>,
) -> Result<Content> {
    let quasi = policy.quasi_in_order().into_iter().flat_map(|at| policy.quasi[at].written_names(policy));
    let table = TablePlan {
        folder: None,
        columns: column_records(policy, &schema)?,
        partition_by: policy.spec.output.partition_by().to_vec(),
        ordered_by: policy.as_is_partition_columns().into_iter().map(str::to_owned).chain(quasi).collect(),
        names_models: true,
        schema,
    };
    Ok(Content { tables: vec![table], recoding, judge })
}

fn column_records(policy: &Policy, schema: &Schema) -> Result<Vec<ColumnRecord>> {
    let columns = policy.released().map(|(name, role)| {
        let quasi = policy.quasi_index(name).map(|index| &policy.quasi[index]);
        let data_type = match quasi.and_then(|quasi| quasi.interval_columns(policy)) {
            Some(columns) => columns.value_type.to_string(),
            None => {
                let field = schema.field_with_name(name);
                field
                    .map_err(|_| Error::internal("classes: the schema lacks a released column"))?
                    .data_type()
                    .to_string()
            }
        };
        let days_since = policy.days_since.get(name).cloned();
        Ok(ColumnRecord { name: name.to_owned(), role: role.word().to_owned(), data_type, days_since })
    });
    columns.collect()
}

/// Returns a finer generalization of each quasi-identifier that has one: `level` says its level, by the place in the policy.
pub(super) fn finer(policy: &Policy, level: impl Fn(usize) -> Option<usize>) -> Vec<Finer> {
    let columns = policy.released().enumerate().filter_map(|(index, (name, _))| {
        let quasi = policy.quasi_index(name)?;
        Some((index, Arc::clone(policy.quasi[quasi].hierarchy.levels().get(level(quasi)?)?)))
    });
    columns.collect()
}

/// Returns what stands for the labels of each quasi-identifier where classes show texts of their own.
pub(super) fn as_shown(policy: &Policy) -> Vec<Arc<dyn Generalizer>> {
    policy.quasi.iter().map(|_| Arc::new(AsIs { text: true }) as Arc<dyn Generalizer>).collect()
}

/// Returns the rows of the only table: what the class of each shows, and its other columns. Those of classes that are not
/// kept are left out.
///
/// # Errors
/// A data error when memory runs out or the rows cannot be planned.
pub(super) fn planned_rows(
    run: &Run,
    loaded: &Loaded,
    classes: ClassTable,
    mut kept: KeptClasses,
    schema: &SchemaRef,
    budget: &Arc<dyn Budget>,
) -> Result<TableRows> {
    let policy = &loaded.policy;
    let mut held = Held::new(budget);
    held.at_least(kept.bytes())?;
    let numbers = ClassNumbers::new(&classes, std::mem::take(&mut kept.keys), budget)?;
    drop((classes, held));
    planned_rows_by(run, loaded, apply::class_of_row(policy, numbers), kept, schema, budget)
}

/// Returns the same rows, whose classes this expression numbers.
///
/// # Errors
/// As [`planned_rows`].
pub(in crate::release) fn planned_rows_by(
    run: &Run,
    loaded: &Loaded,
    class: Expr,
    kept: KeptClasses,
    schema: &SchemaRef,
    budget: &Arc<dyn Budget>,
) -> Result<TableRows> {
    let policy = &loaded.policy;
    let mut held = Held::new(budget);
    held.at_least(kept.bytes())?;
    run.progress.begin(Phase::Write, kept.total_rows());
    let plan = apply::apply_by(loaded.table.clone(), policy, class)?;
    let folders = apply::folder_columns(policy);
    let label = labelled(policy, schema, &kept)?;
    Ok(Box::pin(async move {
        let rows = plan.execute_stream().await.context("planning the release")?;
        Ok(ordered_rows(rows, folders, move |batch| {
            let _until_all_are_written = &held;
            label(batch)
        }))
    }))
}

/// Returns what makes a row of the table from the number of its class, a hash, and its other columns.
///
/// # Errors
/// An internal error for a label that cannot be written.
pub fn labelled(
    policy: &Arc<Policy>,
    schema: &SchemaRef,
    kept: &KeptClasses,
) -> Result<impl Fn(&RecordBatch) -> Result<RecordBatch> + Send + 'static> {
    let written = written(policy, &kept.labels)?;
    let labels = policy.quasi.iter().zip(written).map(|(quasi, columns)| {
        let columns = quasi.written_names(policy).into_iter().zip(columns).map(|(name, labels)| {
            let field = schema.field_with_name(&name);
            let field = field.map_err(|_| Error::internal("classes: the schema lacks a released column"))?;
            cast(&labels, field.data_type()).context("writing the release")
        });
        columns.collect()
    });
    let labels: Vec<Vec<ArrayRef>> = labels.collect::<Result<_>>()?;
    let (policy, schema) = (Arc::clone(policy), Arc::clone(schema));
    Ok(move |batch: &RecordBatch| {
        let lost = || Error::internal("classes: the plan of the release lost a column");
        let classes = batch.column(0).as_primitive_opt::<UInt64Type>().ok_or_else(lost)?;
        let mut as_is = batch.columns().iter().skip(2);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        for (name, _) in policy.released() {
            match policy.quasi_index(name) {
                Some(index) => {
                    for labels in &labels[index] {
                        columns.push(take(labels, classes, None).context("labelling the rows")?);
                    }
                }
                None => columns.push(Arc::clone(as_is.next().ok_or_else(lost)?)),
            }
        }
        typed(columns, &schema)
    })
}

/// Returns the columns that the labels of each quasi-identifier are written as.
///
/// # Errors
/// An internal error for a label that cannot be written so.
pub(in crate::release) fn written(policy: &Policy, labels: &[ArrayRef]) -> Result<Vec<Vec<ArrayRef>>> {
    let columns =
        policy.quasi.iter().zip(labels).map(|(quasi, labels)| match quasi.written_columns(policy) {
            Some(columns) => columns.arrays(labels),
            None => Ok(vec![Arc::clone(labels)]),
        });
    columns.collect()
}

/// Judges rows whose classes show what their rows generalize to, or what an assignment says.
pub(super) struct ClassesJudge {
    /// What the values of each quasi-identifier generalize to, in policy order.
    pub(super) generalizers: Vec<Arc<dyn Generalizer>>,
    /// What each combination of values shows; `None` where the generalizers say it.
    pub(super) assignment: Option<AssignedLines>,
    /// For each generalized column a finer generalization, which other columns may reveal.
    pub(super) finer: Vec<Finer>,
}

/// Which class shows each row.
pub(super) enum AssignedLines {
    /// That of its combination of values, by lines as the private record keeps them.
    OfValues {
        lines: Bytes,
        /// Whether classes show what those of an earlier release did, whose values need not be in this one.
        is_of_earlier: bool,
    },
    /// Its own, in a release that follows others.
    OfRows(Arc<RowLines>),
}

impl ClassesJudge {
    /// Returns the properties that a verification expects. The assignment is read for the hierarchies of the policy, which is
    /// resolved for the verification.
    fn expected<'a>(&self, policy: &'a Policy, budget: &Arc<dyn Budget>) -> Result<Expected<'a>> {
        let assignment = self.assignment.as_ref().map(|assigned| {
            let hierarchies = policy.released_quasi().map(|index| policy.quasi[index].hierarchy.clone());
            let (hierarchies, ends) = (hierarchies.collect(), policy.spec.output.ends());
            let assignment = match assigned {
                AssignedLines::OfValues { lines, is_of_earlier } => {
                    let lines_show = policy.centroid.map_or(LinesShow::Regions(ends), LinesShow::Centroids);
                    let mut assignment = Assignment::read(lines.clone(), hierarchies, lines_show, budget)?;
                    assignment.is_of_earlier = *is_of_earlier;
                    assignment
                }
                AssignedLines::OfRows(lines) if policy.kind == ReleaseKind::Levels => {
                    Assignment::of_shown_rows(lines, ends, budget)?
                }
                AssignedLines::OfRows(lines) => Assignment::of_rows(lines, hierarchies, ends, budget)?,
            };
            Ok(Arc::new(assignment))
        });
        Ok(Expected { assignment: assignment.transpose()?, ..expected(policy, &self.generalizers)? })
    }
}

/// Returns the properties that a verification expects of rows that show what these generalizers make of the quasi-identifiers,
/// in policy order.
///
/// # Errors
/// An internal error if there is not one for each quasi-identifier.
pub(super) fn expected<'a>(
    policy: &'a Policy,
    generalizers: &[Arc<dyn Generalizer>],
) -> Result<Expected<'a>> {
    if generalizers.len() != policy.quasi.len() {
        return Err(Error::internal("classes: quasi-identifiers without a generalizer"));
    }
    let columns = policy.released().map(|(name, _)| {
        let generalizer = policy.quasi_index(name).map(|index| Arc::clone(&generalizers[index]));
        (name.to_owned(), generalizer)
    });
    Ok(Expected {
        columns: columns.collect(),
        assignment: None,
        requirements: &policy.requirements,
        sensitive: policy.sensitive().map(str::to_owned).collect(),
        preferences: policy.preferences().map(str::to_owned).collect(),
        population: None,
        individual: policy.individual().map(str::to_owned),
        suppression_limit: Some(policy.spec.suppression_limit),
    })
}

#[async_trait]
impl Judge for ClassesJudge {
    fn shown<'a>(&self, policy: &'a Policy, budget: &Arc<dyn Budget>) -> Result<Option<Expected<'a>>> {
        self.expected(policy, budget).map(Some)
    }

    async fn judge(
        &self,
        run: &Run,
        again: &Loaded,
        written: Vec<DataFrame>,
        extent: Extent,
    ) -> Result<Judged> {
        let (session, policy) = (&again.session, &again.policy);
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "assignment"));
        let mut expected = self.expected(policy, &budget)?;
        expected.population = again.population.as_ref().map(PopulationTable::for_verification);
        let output = as_texts(only_table(written)?, &policy.written_columns())?;
        let input = || again.table.clone();
        let mut verified = verify(session, output.clone(), Some(input()), &expected, &run.stop).await?;
        let rows = ReleasedRows::new(session, output.clone(), Some(input()), &expected, &verified, &run.stop)
            .await?;
        let mut as_is = if extent == Extent::Private { rows.shown().await? } else { Vec::new() };
        role_checks::check_released(policy, &rows).await?;
        let (mut unique, mut sufficient) = (UniqueTogether::default(), Sufficient::default());
        if extent >= Extent::Public {
            unique = rows.unique_together().await?;
            sufficient = rows.sufficient(&unique).await?;
            verified.reached_among_released = rows.reached_among_released().await?;
        }
        if extent == Extent::Private {
            as_is::reveals(session, output, input(), &expected, &self.finer, &mut as_is, &run.stop).await?;
        }
        Ok(Judged { classes: verified.sizes.classes(), verified, unique, sufficient, as_is })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told() {
        let labels: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["x".repeat(50); 100]));
        let of_labels = labels.get_array_memory_size();
        let classes = (0..500u32).map(|base| (vec![base].into(), Some(0))).collect();
        let keys = ClassKeys { levels: vec![0], classes, is_complete: true };
        let kept = KeptClasses { labels: vec![labels], keys, rows: vec![5; 100] };
        let key = size_of::<u32>() + size_of::<(Box<[u32]>, Option<u64>)>();
        assert_eq!(kept.bytes(), of_labels + 100 * size_of::<u64>() + 500 * key);
    }
}
