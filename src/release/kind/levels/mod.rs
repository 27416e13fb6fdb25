//! Releases that show the labels of one level per column.

mod check;
mod text;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use async_trait::async_trait;

use crate::class::{Budget, ClassTable, EncodedColumn, EvaluatedNode, Held};
use crate::engine::{Context, PoolBudget, Run};
use crate::error::{Error, Result};
use crate::generalize::{Descriptor, Generalizer, apply};
use crate::input::Loaded;
use crate::measure::granularity;
use crate::measure::utility::Utility;
use crate::method::lattice::Found;
use crate::method::{Candidate, Recoding};
use crate::policy::Policy;
use crate::release::apply::ClassKeys;
use crate::release::check_record::refused;
use crate::release::earlier_recoding::no_recoding;
use crate::release::histories::recorded_lines;
use crate::release::kind::classes::{
    AssignedLines, ClassesJudge, KeptClasses, check_not_empty, content, finer, order_of_labels, planned_rows,
};
use crate::release::kind::measure::{Measured, RecodingParts, Searched, losses_of_node};
use crate::release::kind::recorded_table::RecordedTable;
use crate::release::kind::{
    Content, Extent, Folder, Judged, Kind, PlanInput, Records, ReleasePlan, Secret, only_table,
    wrong_recoding,
};
use crate::release::publish::record::{
    FoundRecoding, LevelRecord, PrivateRecord, PublicRecord, RecodingRecord,
};
use crate::release::released_labels::released_labels;
use crate::release::released_schema::released_schema;
use crate::release::search::limit;
use crate::verify::row_lines::RowLines;

/// The row of this kind.
pub(super) struct Levels;

#[async_trait]
impl Kind for Levels {
    fn schemas(&self, policy: &Policy, input: &Schema) -> Result<Vec<SchemaRef>> {
        let as_is = policy.quasi.iter().filter_map(|quasi| quasi.hierarchy.levels().first().cloned());
        Ok(vec![schema(policy, input, &as_is.collect::<Vec<_>>())?])
    }

    fn measure(&self, searched: &Searched<'_>, with_utility: bool) -> Result<Measured> {
        let &Searched { policy, classes, found } = searched;
        let Recoding::Levels(levels) = &found.recoding else { return Err(wrong_recoding()) };
        let rolled = classes.roll_up(classes.base(), &vec![0; levels.len()], levels)?;
        let node = EvaluatedNode::new(classes, levels, &rolled, &policy.requirements)?;
        let names = policy.quasi.iter().map(|quasi| quasi.name.clone());
        let by_column = names.zip(levels.iter().copied()).collect();
        Ok(Measured {
            text: text::levels_text(policy, levels),
            parts: RecodingParts { levels: Some(by_column), ..RecodingParts::default() },
            losses: losses_of_node(policy, &node).collect(),
            utility: with_utility.then(|| Utility::of_node(&node)).transpose()?,
        })
    }

    fn apply_again(
        &self,
        _: &Run,
        loaded: &Loaded,
        classes: &ClassTable,
        earlier: &PrivateRecord,
    ) -> Result<Option<Candidate>> {
        let policy = &loaded.policy;
        let recoding = earlier.search.best.first().map(|best| &best.recoding);
        let (Some(FoundRecoding::Levels(levels)), None) = (recoding, &earlier.assignment) else {
            return Err(no_recoding());
        };
        if !are_allowed(levels, policy) {
            return Err(no_recoding());
        }
        let rolled = classes.roll_up(classes.base(), &vec![0; levels.len()], levels)?;
        let node = EvaluatedNode::new(classes, levels, &rolled, &policy.requirements)?;
        let holds = node.kept_classes() > 0 && node.is_anonymous(limit(policy, classes));
        Ok(holds.then(|| Found::new(&node, policy.spec.objective).into()))
    }

    async fn plan(&self, run: &Run, loaded: &Loaded, found: PlanInput<'_>) -> Result<ReleasePlan> {
        let PlanInput { recoding: Recoding::Levels(levels), classes, extent, .. } = found else {
            return Err(wrong_recoding());
        };
        let policy = &loaded.policy;
        if !are_allowed(&levels, policy) {
            return Err(Error::internal("levels: the method chose a level that the policy does not allow"));
        }
        let rolled = classes.roll_up(classes.base(), &vec![0; levels.len()], &levels)?;
        let node = EvaluatedNode::new(&classes, &levels, &rolled, &policy.requirements)?;
        check_not_empty(policy, &node)?;
        let (generalizers, kept) = label_kept(policy, &node)?;
        let utility = (extent == Extent::Private).then(|| Utility::of_node(&node)).transpose()?;
        let costs = granularity::of_columns(&node);
        drop(rolled);
        let schema = schema(policy, loaded.schema(), &generalizers)?;
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "kept classes"));
        let rows = vec![planned_rows(run, loaded, classes, kept, &schema, &budget)?];
        let content = content_of(policy, schema, &levels, generalizers, None)?;
        Ok(ReleasePlan {
            content,
            rows,
            secret: Secret::default(),
            costs,
            utility,
            remarks: Vec::new(),
            warnings: Vec::new(),
            held: Held::new(&budget),
            budget,
        })
    }

    /// The generalizers are padded as the released labels require.
    async fn read(&self, policy: &Policy, input: &Schema, records: &Records<'_>) -> Result<Content> {
        let output = only_table(records.written.to_vec())?;
        let (mut levels, mut generalizers) = (Vec::new(), Vec::new());
        for quasi in &policy.quasi {
            let level = records.public.recoding.level(&quasi.name).map(|recorded| recorded.level);
            let level = level.filter(|level| quasi.levels.contains(level)).ok_or_else(|| {
                refused(format!("the record names no level of `{}` that the policy allows", quasi.name))
            })?;
            let generalizer = &quasi.hierarchy.levels()[level];
            let labels = released_labels(&output, &quasi.name).await?;
            let padded = labels.and_then(|labels| generalizer.with_label_width(&labels));
            generalizers.push(padded.unwrap_or_else(|| Arc::clone(generalizer)));
            levels.push(level);
        }
        if let Some(lines) = recorded_lines(records)? {
            return content_by_rows(policy, input, &levels, generalizers, lines);
        }
        content_of(policy, schema(policy, input, &generalizers)?, &levels, generalizers, None)
    }

    fn check_columns(&self, public: &PublicRecord) -> Result<()> {
        check::check_columns(public)
    }

    async fn judge_alone(&self, run: &Run, folder: &Folder<'_>) -> Result<(Judged, bool)> {
        let table = RecordedTable::open(run, folder)?;
        let generalizers = check::generalizers(folder.public, &table.schema, &table.output).await?;
        table.judge(run, generalizers).await
    }
}

/// Returns whether a policy allows a level for each quasi-identifier.
fn are_allowed(levels: &[usize], policy: &Policy) -> bool {
    let ranges = policy.ranges();
    levels.len() == ranges.len() && levels.iter().zip(&ranges).all(|(level, range)| range.contains(level))
}

/// Returns what a release shows that follows others, and so does not show all rows of a class.
///
/// # Errors
/// An internal error if a released column is not in the input.
pub(in crate::release) fn content_by_rows(
    policy: &Policy,
    input: &Schema,
    levels: &[usize],
    generalizers: Vec<Arc<dyn Generalizer>>,
    lines: Arc<RowLines>,
) -> Result<Content> {
    let assignment = Some(AssignedLines::OfRows(lines));
    content_of(policy, schema(policy, input, &generalizers)?, levels, generalizers, assignment)
}

fn content_of(
    policy: &Policy,
    schema: SchemaRef,
    levels: &[usize],
    generalizers: Vec<Arc<dyn Generalizer>>,
    assignment: Option<AssignedLines>,
) -> Result<Content> {
    let columns =
        policy.released_quasi().map(|at| LevelRecord::of(&policy.quasi[at], levels[at], &*generalizers[at]));
    let recoding = RecodingRecord::Levels(columns.collect());
    let judge = ClassesJudge {
        finer: finer(policy, |quasi| levels.get(quasi)?.checked_sub(1)),
        generalizers,
        assignment,
    };
    content(policy, schema, recoding, Box::new(judge))
}

/// Returns the schema of the only table, whose quasi-identifiers are generalized by these levels.
///
/// # Errors
/// An internal error if a released column is not in the input.
pub fn schema(policy: &Policy, input: &Schema, generalizers: &[Arc<dyn Generalizer>]) -> Result<SchemaRef> {
    let all = policy.quasi.iter().zip(generalizers);
    let fields: Vec<(DataType, Descriptor)> =
        all.map(|(quasi, level)| (quasi.hierarchy.output_type().clone(), level.descriptor())).collect();
    Ok(Arc::new(released_schema(policy, input, &fields)?))
}

/// Returns the generalizers and the kept classes of an evaluated node. Labels are padded for the kept classes alone, so that
/// they reveal nothing about suppressed rows.
///
/// # Errors
/// An internal error if the labels cannot be made.
pub fn label_kept(
    policy: &Policy,
    node: &EvaluatedNode<'_>,
) -> Result<(Vec<Arc<dyn Generalizer>>, KeptClasses)> {
    let table = node.table();
    let classes: Vec<(usize, u64)> = node.kept().collect();
    let mut generalizers = Vec::new();
    let mut labels = Vec::new();
    for (index, column) in table.columns().iter().enumerate() {
        let codes: Vec<u32> = classes.iter().map(|(class, _)| node.code(*class, index)).collect();
        let (generalizer, all) = padded(column, node.levels()[index], &codes)?;
        labels.push(take(&all, &UInt32Array::from(codes), None).context("labelling the kept classes")?);
        generalizers.push(generalizer);
    }
    let in_order: Vec<ArrayRef> =
        policy.quasi_in_order().into_iter().map(|at| ArrayRef::clone(&labels[at])).collect();
    let order = order_of_labels(&in_order, classes.len())?;
    let labels = labels
        .iter()
        .map(|column| take(column, &order, None).context("ordering the kept classes"))
        .collect::<Result<_>>()?;
    let (mut keys, mut rows) = (Vec::with_capacity(classes.len()), Vec::with_capacity(classes.len()));
    for (place, number) in order.values().iter().zip(0u64..) {
        let (class, size) = classes[*place as usize];
        keys.push((
            (0..table.columns().len()).map(|column| node.code(class, column)).collect(),
            Some(number),
        ));
        rows.push(size);
    }
    let keys = ClassKeys { levels: node.levels().to_vec(), classes: keys, is_complete: false };
    Ok((generalizers, KeptClasses { labels, keys, rows }))
}

/// Returns the generalizer of a level, padded for the labels of `codes`, and all its labels in code
/// order.
fn padded(column: &EncodedColumn, level: usize, codes: &[u32]) -> Result<(Arc<dyn Generalizer>, ArrayRef)> {
    let coded = column.level(level);
    let mut distinct = codes.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let released =
        take(coded.labels(), &UInt32Array::from(distinct), None).context("labelling the kept classes")?;
    labels_under(column, level, &released)
}

/// Returns the generalizer of a level, padded for these labels, and all its labels in code order.
///
/// # Errors
/// An internal error if the labels cannot be made.
pub(in crate::release) fn labels_under(
    column: &EncodedColumn,
    level: usize,
    released: &ArrayRef,
) -> Result<(Arc<dyn Generalizer>, ArrayRef)> {
    let coded = column.level(level);
    let generalizer = &column.hierarchy().levels()[level];
    let Some(padded) = generalizer.with_label_width(released) else {
        return Ok((Arc::clone(generalizer), Arc::clone(coded.labels())));
    };
    // One value represents each label.
    let mut first = vec![0u32; coded.labels().len()];
    for (value, label) in (0u32..).zip(coded.of_value()) {
        first[*label as usize] = value;
    }
    let values =
        take(column.values(), &UInt32Array::from(first), None).context("labelling the kept classes")?;
    let labels = apply(&*padded, &values)?;
    Ok((padded, labels))
}
