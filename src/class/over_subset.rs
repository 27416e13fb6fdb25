//! Requirements over a subset of the quasi-identifiers: the kept classes that show the same in
//! these columns are judged together, as one joined class.
//!
//! A joined class is the union of several classes over all quasi-identifiers, so no class can be judged alone.
//! For models that survive any merging the rounds end with the largest possible result; for others the result
//! depends only on the order of the requirements. The merge of the roll-up counts joined classes, so an
//! individual in several classes counts once. The value of a joined class over all rows bounds every node
//! below, as that of a class does, so the searches prune by it and know nothing else. Methods that partition
//! require the model of each class by itself, which is stricter than the policy.
//!
//! Only models of sizes and of sensitive values can be required so: a model that compares with the input would
//! need a second notion of the released rows, and population and table models define their own classes. Such a
//! requirement never counts as protection of a column.

use super::evaluated_classes::Verdict;
use super::roll_up::merge_by_number;
use super::{ClassTable, Classes};
use crate::error::{Error, Result};
use crate::model::{Class, Merge, Requirement};

/// Maps column indices to the number of each class's joined class: classes with equal labels in
/// these columns share one.
pub(super) type JoinBy<'a> = &'a dyn Fn(&[usize]) -> Vec<u32>;

/// Judges the classes by the requirements over subsets. In rounds, all classes of a joined class
/// that fails among the kept ones are suppressed, until none fails: released rows are then safe
/// even against an attacker who knows which rows are suppressed.
///
/// # Errors
/// A data error when memory runs out, an internal error for an unknown column.
pub(super) fn judge(
    table: &ClassTable,
    classes: &Classes,
    requirements: &[Requirement],
    join_by: JoinBy<'_>,
    verdicts: &mut [Verdict],
) -> Result<()> {
    let over_subsets = requirements.iter().filter(|requirement| !requirement.is_over_all_quasi());
    let subsets: Vec<Subset<'_>> =
        over_subsets.map(|requirement| Subset::new(table, requirement, join_by)).collect::<Result<_>>()?;
    let counted = table.counted();
    for subset in &subsets {
        let model = &subset.requirement.model;
        let fails_below = |class: &Class<'_>| {
            class.size < model.min_size()
                || (model.merge(counted) == Merge::Any && !model.holds(model.value(class)))
        };
        let all = vec![true; verdicts.len()];
        for class in subset.failing(table, classes, &all, &fails_below)? {
            verdicts[class] = Verdict { holds: false, may_hold_below: false };
        }
    }
    loop {
        let mut is_stable = true;
        for subset in &subsets {
            let requirement = subset.requirement;
            let fails = |class: &Class<'_>| !requirement.holds(class.size, requirement.model.value(class));
            let kept: Vec<bool> = verdicts.iter().map(|verdict| verdict.holds).collect();
            for class in subset.failing(table, classes, &kept, &fails)? {
                verdicts[class].holds = false;
                is_stable = false;
            }
        }
        if is_stable {
            return Ok(());
        }
    }
}

/// A requirement over a subset of the quasi-identifiers, and the joined class of each class.
struct Subset<'a> {
    requirement: &'a Requirement,
    joined: Vec<u32>,
}

impl<'a> Subset<'a> {
    fn new(table: &ClassTable, requirement: &'a Requirement, join_by: JoinBy<'_>) -> Result<Self> {
        let column = |name: &String| {
            let found = table.columns().iter().position(|column| column.name() == name);
            found.ok_or_else(|| {
                Error::internal(
                    "over_subset: `quasi` names a column that is not a quasi-identifier of the class table",
                )
            })
        };
        let columns = requirement.quasi.iter().flatten().map(column).collect::<Result<Vec<_>>>()?;
        Ok(Self { requirement, joined: join_by(&columns) })
    }

    /// Returns those of the `chosen` classes whose joined class, made of chosen classes alone, fails.
    fn failing(
        &self,
        table: &ClassTable,
        classes: &Classes,
        chosen: &[bool],
        fails: &dyn Fn(&Class<'_>) -> bool,
    ) -> Result<Vec<usize>> {
        let others = self.joined.iter().max().map_or(0, |last| last + 1);
        let pairs = self.joined.iter().zip(chosen);
        let target: Vec<u32> =
            pairs.map(|(joined, is_chosen)| if *is_chosen { *joined } else { others }).collect();
        let joined = merge_by_number(classes, &target, others as usize + 1)?;
        let column = self.requirement.sensitive.as_ref();
        let column = column.map(|column| table.sensitive_index(column).unwrap_or(usize::MAX));
        let is_failing = |(number, rows): (usize, u64)| {
            let size = joined.size(number, rows);
            let class = column.map_or(Class::of_size(size), |column| Class {
                input: table.distribution(column),
                ..Class::of_values(size, joined.by_value(number, column))
            });
            fails(&class)
        };
        let failing: Vec<bool> = joined.rows().enumerate().map(is_failing).collect();
        let is_found = |(_, joined): &(usize, &u32)| **joined != others && failing[**joined as usize];
        Ok(target.iter().enumerate().filter(is_found).map(|(class, _)| class).collect())
    }
}
