//! The recoding of an earlier release, applied again to other rows (`kanon release --recoding`).
//!
//! Levels are taken as they are. Regions come from the private record's assignment: rows of a combination of values that it holds
//! go to the class of that combination, or are suppressed as it is. Those of another one go to the class whose regions cover
//! their values and lose the least, or are suppressed if there is none. A class shows what it showed, but for an end at the least or the greatest of the new
//! released values, which is written open as in every release.
//!
//! # Contract
//! Every class must satisfy the policy among the new rows. Those that fail are suppressed, and if that exceeds the limit, the
//! recoding is refused: nothing is searched. What comes of it is verified like any other recoding. The policy and the hierarchy
//! files are those of the earlier release, so the schema is, too.

use std::sync::Arc;

use arrow::array::Array;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::class::{Budget, ClassTable, EncodedColumn, EvaluatedNode, Region, ReleasedClasses};
use crate::decimal::ratio;
use crate::engine::{PoolBudget, Run};
use crate::error::{Error, Result};
use crate::generalize::region_label::Values;
use crate::generalize::{RegionLabel, Value, text_forms};
use crate::input::Loaded;
use crate::method::lattice::Found;
use crate::method::partition::candidate;
use crate::method::{Candidate, Outcome};
use crate::plural::plural;
use crate::policy::Policy;
use crate::release::publish::record::{FoundRecoding, PrivateRecord};
use crate::release::search::{limit, problem};
use crate::verify::assignment::Assignment;

/// Applies the recoding of the release that a private record belongs to.
///
/// # Errors
/// An unmet error if it does not hold for these rows, or if the record holds none; a data error when memory runs out.
pub(super) fn again(
    run: &Run<'_>,
    loaded: &Loaded,
    classes: &ClassTable,
    record: &PrivateRecord,
) -> Result<Outcome> {
    let policy = &loaded.policy;
    let recoding = record.search.best.first().map(|best| &best.recoding);
    let found = match (recoding, &record.assignment) {
        (Some(FoundRecoding::Levels(levels)), None) => levels_again(policy, classes, levels)?,
        (_, Some(assignment)) => {
            let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "earlier classes"));
            let released = classes_again(policy, classes, assignment, &budget)?;
            candidate(&problem(run, policy, classes, run.progress), released)?
                .filter(|found| found.classes > 0)
        }
        _ => return Err(no_recoding()),
    };
    let found = found.ok_or_else(|| {
        let limit = limit(policy, classes);
        let limit = match policy.individual() {
            Some(_) => plural(limit, "individual", "individuals"),
            None => plural(limit, "row", "rows"),
        };
        Error::unmet(format!(
            "the recoding of the earlier release does not hold for these rows: more of them fail or fit no class than the \
             {limit} that may be suppressed, or all; release them by a recoding of their own, without --recoding"
        ))
    })?;
    Ok(Outcome { best: vec![found], nodes: None, evaluated: 1, proven: false, bound: None })
}

fn no_recoding() -> Error {
    Error::unmet("the private record holds no recoding that could be applied")
}

fn levels_again(policy: &Policy, classes: &ClassTable, levels: &[usize]) -> Result<Option<Candidate>> {
    let ranges = policy.ranges();
    let is_allowed = levels.len() == ranges.len()
        && levels.iter().zip(&ranges).all(|(level, range)| range.contains(level));
    if !is_allowed {
        return Err(no_recoding());
    }
    let rolled = classes.roll_up(classes.base(), &vec![0; levels.len()], levels)?;
    let node = EvaluatedNode::new(classes, levels, &rolled, &policy.requirements);
    let holds = node.kept_classes() > 0 && node.suppressed_individuals() <= limit(policy, classes);
    Ok(holds.then(|| Found::new(&node, policy.objective).into()))
}

/// What the classes of the earlier release show in one column of the new rows.
struct Column<'a> {
    column: &'a EncodedColumn,
    /// The level-0 labels as text.
    texts: Vec<Option<String>>,
    /// The level-0 codes that each text covers, and the region that it is among them.
    shown: Vec<(Vec<bool>, Region)>,
    /// The index of what each class shows.
    by_class: &'a [u32],
    labels: &'a [(Option<String>, RegionLabel)],
}

impl<'a> Column<'a> {
    fn new(
        column: &'a EncodedColumn,
        labels: &'a [(Option<String>, RegionLabel)],
        by_class: &'a [u32],
    ) -> Result<Self> {
        let texts = text_forms(column.level(0).labels())?;
        let texts = (0..texts.len()).map(|at| texts.is_valid(at).then(|| texts.value(at).to_owned()));
        // Level 0 may merge values: a label covers them all or none.
        let values = (0..column.values().len()).map(|at| Value::read(column.values(), at));
        let values = values.collect::<Result<Vec<_>>>()?;
        let shown = labels.iter().map(|(_, label)| {
            let mut covered = vec![true; column.distinct()];
            for (value, code) in values.iter().zip(column.level(0).of_value()) {
                covered[*code as usize] &= label.covers(column.hierarchy(), value)?;
            }
            let region = region(column, label, &covered)?;
            Ok((covered, region))
        });
        Ok(Self { column, texts: texts.collect(), shown: shown.collect::<Result<_>>()?, by_class, labels })
    }

    fn of(&self, class: u32) -> &(Vec<bool>, Region) {
        &self.shown[self.by_class[class as usize] as usize]
    }

    /// Returns what a class loses in this column, between 0 and 1, times the column's weight.
    fn loss(&self, class: u32) -> f64 {
        let (covered, region) = self.of(class);
        let leaves = if covered.contains(&true) { region.leaves(self.column) } else { 1 };
        self.column.weight() * ratio(leaves.into(), self.column.leaves().max(1).into())
    }
}

/// Returns the region of a label among the codes that it covers; of a label that covers none everything.
fn region(column: &EncodedColumn, label: &RegionLabel, covered: &[bool]) -> Result<Region> {
    let codes: Vec<u32> =
        (0u32..).zip(covered).filter(|(_, covered)| **covered).map(|(code, _)| code).collect();
    if codes.is_empty() || *label == RegionLabel::Everything {
        return Ok(Region::Everything);
    }
    if column.has_intervals() {
        return Region::around(column, codes);
    }
    if let RegionLabel::Values { values: Values::Label(text), .. } = label {
        for level in 0..column.height() {
            let texts = text_forms(column.level(level).labels())?;
            let code = (0u32..).zip(texts.iter()).find(|(_, known)| *known == Some(text.as_str()));
            if let Some((code, _)) = code {
                return Ok(Region::Label { level, code });
            }
        }
    }
    Ok(Region::Set(codes.into()))
}

fn classes_again(
    policy: &Policy,
    table: &ClassTable,
    assignment: &str,
    budget: &Arc<dyn Budget>,
) -> Result<ReleasedClasses> {
    let quasi: Vec<usize> = policy.released().filter_map(|(name, _)| policy.quasi_index(name)).collect();
    let bytes = STANDARD.decode(assignment).map_err(|_| no_recoding())?;
    let hierarchies = quasi.iter().map(|at| policy.quasi[*at].hierarchy.clone()).collect();
    let earlier = Assignment::read(bytes.into(), hierarchies, policy.ends, budget)?;
    let columns = quasi.iter().enumerate().map(|(place, at)| {
        let (labels, by_class) = earlier.shown(place);
        Column::new(&table.columns()[*at], labels, by_class)
    });
    let columns: Vec<Column<'_>> = columns.collect::<Result<_>>()?;
    let loss = |class: u32| columns.iter().map(|column| column.loss(class)).sum::<f64>();
    let mut by_loss: Vec<(f64, u32)> =
        (0u32..).take(earlier.classes()).map(|class| (loss(class), class)).collect();
    by_loss.sort_by(|a, b| a.0.total_cmp(&b.0));

    let code = |base: usize, at: usize| table.code(table.base(), base, at) as usize;
    let covers = |class: u32, base: usize| {
        columns.iter().zip(&quasi).all(|(column, at)| column.of(class).0[code(base, *at)])
    };
    let class_of = |base: usize| {
        let values = columns.iter().zip(&quasi).map(|(column, at)| column.texts[code(base, *at)].as_deref());
        match earlier.class_of(values) {
            Some(known) => known.filter(|class| covers(*class, base)),
            None => by_loss.iter().map(|(_, class)| *class).find(|class| covers(*class, base)),
        }
    };
    // Classes without new rows are none.
    let mut number_of: Vec<Option<u32>> = vec![None; earlier.classes()];
    let (mut regions, mut labels) = (Vec::new(), Vec::new());
    let class_of_base = (0..table.base().len()).map(|base| {
        let class = class_of(base)?;
        let number = &mut number_of[class as usize];
        if number.is_none() {
            *number = u32::try_from(regions.len()).ok();
            // The columns of the release may have another order than those of the table.
            let mut shown: Vec<(usize, Region, RegionLabel)> = columns
                .iter()
                .zip(&quasi)
                .map(|(column, at)| {
                    let label = column.labels[column.by_class[class as usize] as usize].1.clone();
                    (*at, column.of(class).1.clone(), label)
                })
                .collect();
            shown.sort_by_key(|(at, ..)| *at);
            let (region, label): (Vec<Region>, Vec<RegionLabel>) =
                shown.into_iter().map(|(_, region, label)| (region, label)).unzip();
            regions.push(region.into_boxed_slice());
            labels.push(label.into_boxed_slice());
        }
        *number
    });
    let class_of_base: Vec<Option<u32>> = class_of_base.collect();
    ReleasedClasses::with_labels(table, class_of_base, regions, labels)
}
