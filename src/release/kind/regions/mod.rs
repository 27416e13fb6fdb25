//! Releases whose classes show regions: what each kept class shows, in the order of the release, and the assignment for the
//! private record. Classes that show centroids are planned in the same way.

mod check;
pub(in crate::release) mod earlier;
mod text;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, StringArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::class::{Budget, ClassTable, EvaluatedPartition, Held, ReleasedClasses, ShownColumn};
use crate::engine::{Context, PoolBudget, Run};
use crate::error::{Error, Result};
use crate::generalize::{Descriptor, text_forms};
use crate::input::Loaded;
use crate::measure::granularity;
use crate::measure::utility::Utility;
use crate::method::{Candidate, Recoding};
use crate::policy::{Policy, Quasi};
use crate::release::apply::ClassKeys;
use crate::release::check_record::refused;
use crate::release::histories::recorded_lines;
use crate::release::interval_columns::with_ends_included;
use crate::release::kind::classes::{
    AssignedLines, ClassesJudge, KeptClasses, as_shown, check_not_empty, content, finer, order_of_labels,
    planned_rows, written,
};
use crate::release::kind::measure::{Measured, RecodingParts, Searched, applicable_losses};
use crate::release::kind::recorded_table::RecordedTable;
use crate::release::kind::{
    Content, Extent, Folder, Judged, Kind, PlanInput, Records, ReleasePlan, Secret, wrong_recoding,
};
use crate::release::publish::record::{
    CentroidColumn, PrivateRecord, PublicRecord, RecodingRecord, RegionColumn, Regions as Shows,
    RegionsRecord,
};
use crate::release::publish::write_assignment::{self, Texts};
use crate::release::released_schema::released_schema;
use crate::verify::row_lines::RowLines;

const DOING: &str = "labelling the kept classes";

/// The row of this kind.
pub(super) struct Regions;

#[async_trait]
impl Kind for Regions {
    fn schemas(&self, policy: &Policy, input: &Schema) -> Result<Vec<SchemaRef>> {
        Ok(vec![schema(policy, input)?])
    }

    fn measure(&self, searched: &Searched<'_>, with_utility: bool) -> Result<Measured> {
        measured(searched, with_utility, "each class shows regions of its own")
    }

    fn apply_again(
        &self,
        run: &Run,
        loaded: &Loaded,
        classes: &ClassTable,
        earlier: &PrivateRecord,
    ) -> Result<Option<Candidate>> {
        earlier::apply_again(run, loaded, classes, earlier)
    }

    async fn plan(&self, run: &Run, loaded: &Loaded, found: PlanInput<'_>) -> Result<ReleasePlan> {
        plan(run, loaded, found, |_| Ok(Vec::new()))
    }

    async fn read(&self, policy: &Policy, input: &Schema, records: &Records<'_>) -> Result<Content> {
        read(policy, input, records)
    }

    fn check_columns(&self, public: &PublicRecord) -> Result<()> {
        check::check_columns(public)
    }

    async fn judge_alone(&self, run: &Run, folder: &Folder<'_>) -> Result<(Judged, bool)> {
        let table = RecordedTable::open(run, folder)?;
        let public = folder.public;
        for region in public.columns().filter_map(|column| public.recoding.region(&column.name)) {
            check::check_canonical(region, &table.output).await?;
        }
        table.judge_texts(run).await
    }
}

/// Measures classes of a method's own, which show `what`.
///
/// # Errors
/// A data error when memory runs out.
pub(super) fn measured(searched: &Searched<'_>, with_utility: bool, what: &str) -> Result<Measured> {
    let &Searched { policy, classes, found } = searched;
    let Recoding::Classes(released) = &found.recoding else { return Err(wrong_recoding()) };
    let merged = classes.merge(released)?;
    let evaluated = EvaluatedPartition::new(classes, released, &merged, &policy.requirements)?;
    let losses = applicable_losses(policy, classes);
    Ok(Measured {
        text: found.by.as_ref().map_or(what.to_owned(), |method| format!("by {method}")),
        parts: RecodingParts { regions: Some(released.regions().len()), ..RecodingParts::default() },
        losses: losses
            .filter_map(|loss| Some((loss.doc().name, loss.for_any_recoding()?.of(&evaluated))))
            .collect(),
        utility: with_utility.then(|| Utility::of_partition(&evaluated)).transpose()?,
    })
}

/// Plans the release of classes of a method's own; `remarks` are about what the kept ones show.
///
/// # Errors
/// An unmet error when no row would be left, a data error when memory runs out.
pub(super) fn plan(
    run: &Run,
    loaded: &Loaded,
    found: PlanInput<'_>,
    remarks: impl Fn(&EvaluatedPartition<'_>) -> Result<Vec<String>>,
) -> Result<ReleasePlan> {
    let PlanInput { recoding: Recoding::Classes(released), classes, extent, .. } = found else {
        return Err(wrong_recoding());
    };
    let policy = &loaded.policy;
    let merged = classes.merge(&released)?;
    let evaluated = EvaluatedPartition::new(&classes, &released, &merged, &policy.requirements)?;
    let remarks = if extent > Extent::Verdict { remarks(&evaluated)? } else { Vec::new() };
    check_not_empty(policy, &evaluated)?;
    let (assignment, kept) = label_kept(policy, &evaluated)?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "kept classes"));
    let mut held = Held::new(&budget);
    // With what the private record makes of it.
    held.at_least(assignment.len() * 4)?;
    let utility = (extent == Extent::Private).then(|| Utility::of_partition(&evaluated)).transpose()?;
    let costs = granularity::of_columns(&evaluated);
    let secret = Secret { assignment: Some(assignment.clone()), ..Secret::default() };
    let assigned =
        AssignedLines::OfValues { lines: assignment, is_of_earlier: released.shows_earlier_labels() };
    drop((merged, released));
    let schema = schema(policy, loaded.schema())?;
    let rows = vec![planned_rows(run, loaded, classes, kept, &schema, &budget)?];
    let content = content_of(policy, schema, assigned)?;
    Ok(ReleasePlan { content, rows, secret, costs, utility, remarks, warnings: Vec::new(), budget, held })
}

/// Reads what a release shows from its assignment, as the policy of its input is.
///
/// # Errors
/// A policy error when the private record is missing, an unmet error when it is damaged.
pub(super) fn read(policy: &Policy, input: &Schema, records: &Records<'_>) -> Result<Content> {
    if let Some(lines) = recorded_lines(records)? {
        return content_by_rows(policy, input, lines);
    }
    let recorded =
        records.private.and_then(|one| Some((one.recoding_of.is_some(), one.assignment.as_deref()?)));
    let (is_of_earlier, assignment) = recorded.ok_or_else(|| {
        Error::policy(
            "this release shows regions or centroids: to compare it with the input, its private record is needed, which says \
             what each combination of values shows; it is missing, damaged or belongs to another release",
        )
    })?;
    let lines = STANDARD.decode(assignment).map_err(|_| refused("the private record is damaged"))?;
    content_of(policy, schema(policy, input)?, AssignedLines::OfValues { lines: lines.into(), is_of_earlier })
}

/// Returns what a release shows whose rows have classes of their own.
///
/// # Errors
/// An internal error if the schema lacks a released column.
pub(in crate::release) fn content_by_rows(
    policy: &Policy,
    input: &Schema,
    lines: Arc<RowLines>,
) -> Result<Content> {
    content_of(policy, schema(policy, input)?, AssignedLines::OfRows(lines))
}

fn content_of(policy: &Policy, schema: SchemaRef, assigned: AssignedLines) -> Result<Content> {
    // Values themselves are finer than what classes show.
    let judge = ClassesJudge {
        generalizers: as_shown(policy),
        assignment: Some(assigned),
        finer: finer(policy, |_| Some(0)),
    };
    content(policy, schema, recoding(policy), Box::new(judge))
}

/// Returns the schema of the only table.
pub(super) fn schema(policy: &Policy, input: &Schema) -> Result<SchemaRef> {
    let by = |quasi: &Quasi| match policy.centroid {
        Some(centroid) => CentroidColumn::of(quasi, centroid).descriptor(),
        None => Descriptor::region(),
    };
    let fields: Vec<_> = policy.quasi.iter().map(|quasi| (DataType::Utf8, by(quasi))).collect();
    Ok(Arc::new(released_schema(policy, input, &fields)?))
}

/// Returns what the public record says of the classes.
fn recoding(policy: &Policy) -> RecodingRecord {
    let quasi = policy.released_quasi().map(|at| &policy.quasi[at]);
    if let Some(centroid) = policy.centroid {
        return RecodingRecord::Centroids(quasi.map(|quasi| CentroidColumn::of(quasi, centroid)).collect());
    }
    let column = |quasi: &Quasi| {
        let first = quasi.hierarchy.levels().first();
        RegionColumn {
            column: quasi.name.clone(),
            value_type: quasi.hierarchy.input_type().to_string(),
            shows: Shows::of(&quasi.hierarchy),
            written_as: quasi.interval_columns(policy).map(|columns| columns.names()),
            joined_as: first.and_then(|level| level.descriptor().label_of_merge().cloned()),
        }
    };
    RecodingRecord::Regions(RegionsRecord {
        ends: policy.spec.output.ends(),
        columns: quasi.map(column).collect(),
    })
}

/// Returns the assignment and the kept classes of evaluated regions. Kept classes that show the same text are one.
///
/// # Errors
/// An internal error if the labels cannot be made.
pub(in crate::release) fn label_kept(
    policy: &Policy,
    evaluated: &EvaluatedPartition<'_>,
) -> Result<(Bytes, KeptClasses)> {
    let (table, released) = (evaluated.table(), evaluated.released());
    let kept: Vec<(usize, u64)> = evaluated.kept().collect();
    let labels = labels(policy, table, released, &kept)?;
    let written = written(policy, &labels)?;
    let in_order = policy.quasi_in_order().into_iter().flat_map(|at| written[at].clone());
    let order = order_of_labels(&in_order.collect::<Vec<_>>(), kept.len())?;

    // The number of each released class in the release.
    let mut number_of: Vec<Option<u32>> = vec![None; released.regions().len()];
    let (mut first_of_class, mut rows) = (Vec::new(), Vec::new());
    for place in order.values() {
        let (class, size) = kept[*place as usize];
        let is_new = first_of_class.last().is_none_or(|last| !shows_the_same(&labels, *last, *place));
        if is_new {
            first_of_class.push(*place);
            rows.push(0);
        }
        if let Some(rows) = rows.last_mut() {
            *rows += size;
        }
        number_of[class] = Some(u32::try_from(rows.len() - 1).map_err(Error::internal)?);
    }
    let of_class = UInt32Array::from(first_of_class);
    let labels = labels.iter().map(|column| take(column, &of_class, None).context(DOING));
    let labels: Vec<ArrayRef> = labels.collect::<Result<_>>()?;

    let class_of_base: Vec<Option<u32>> = released
        .class_of_base()
        .iter()
        .map(|class| class.and_then(|class| number_of[class as usize]))
        .collect();
    let assignment = assignment_of(policy, table, &class_of_base, &labels)?;
    let keys = (0..table.base().len()).zip(&class_of_base).map(|(base, class)| {
        let codes = (0..table.columns().len()).map(|column| table.code(table.base(), base, column));
        (codes.collect(), class.map(u64::from))
    });
    let levels = vec![0; table.columns().len()];
    let keys = ClassKeys { levels, classes: keys.collect(), is_complete: true };
    Ok((assignment, KeptClasses { labels, keys, rows }))
}

fn shows_the_same(labels: &[ArrayRef], a: u32, b: u32) -> bool {
    labels.iter().all(|column| column.slice(a as usize, 1).to_data() == column.slice(b as usize, 1).to_data())
}

/// Returns what each kept class shows, one text array per column.
fn labels(
    policy: &Policy,
    table: &ClassTable,
    released: &ReleasedClasses,
    kept: &[(usize, u64)],
) -> Result<Vec<ArrayRef>> {
    let mut is_kept = vec![false; released.regions().len()];
    kept.iter().for_each(|(class, _)| is_kept[*class] = true);
    let columns = table.columns().iter().enumerate().map(|(at, column)| {
        let shown = ShownColumn::new(table, released, &is_kept, at, policy.spec.output.ends())?;
        let labels = kept.iter().map(|(class, _)| {
            if let Some(centroid) = released.centroid(*class, at) {
                return Ok(centroid.map(str::to_owned));
            }
            let label = match released.label(*class, at) {
                Some(label) => label.clone(),
                None => shown.label(&released.regions()[*class][at])?,
            };
            let label = if policy.spec.output.writes_ends() && column.has_intervals() {
                with_ends_included(label)
            } else {
                label
            };
            Ok(shown.open(label).write(column.hierarchy().input_type()))
        });
        Ok(Arc::new(labels.collect::<Result<StringArray>>()?) as ArrayRef)
    });
    columns.collect()
}

/// Writes the assignment, in the order of the released columns.
fn assignment_of(
    policy: &Policy,
    table: &ClassTable,
    class_of_base: &[Option<u32>],
    labels: &[ArrayRef],
) -> Result<Bytes> {
    let kept: BooleanArray = class_of_base.iter().map(|class| Some(class.is_some())).collect();
    let (mut values, mut shown) = (Vec::new(), Vec::new());
    for at in policy.released_quasi() {
        let codes = (0..table.base().len()).map(|base| table.code(table.base(), base, at));
        let texts: ArrayRef = Arc::new(text_forms(table.columns()[at].level(0).labels())?);
        let texts = cast(&texts, &DataType::Utf8).context(DOING)?;
        values.push(Texts { texts, of_line: UInt32Array::from_iter_values(codes) });
        let of_line = UInt32Array::from(class_of_base.to_vec());
        shown.push(Texts { texts: Arc::clone(&labels[at]), of_line });
    }
    write_assignment::write(kept, values, shown).map(Bytes::from)
}

#[cfg(test)]
#[path = "regions_tests.rs"]
mod tests;
