//! Columns with `recode = "global"`: all rows show them at one level, whatever the method does with
//! the other columns.
//!
//! Each combination of levels of these columns is tried, finest first; more than 64 are refused. It
//! groups the base classes by their labels, and the method partitions each group by itself, the
//! smallest first; a group may suppress what the groups before it left of the limit. The
//! combination that loses least is taken, of equal ones the finest. If none is left, because classes
//! that show the same are one and fail, all rows are one class, where the levels allow it.
//!
//! No method knows of these columns. It gets each group as a table in which they weigh nothing, and afterwards
//! the region of the label replaces the method's choice there. So every method has the key, a new one too, and
//! a `min_level` of labels can hold.
//!
//! # Contract
//! A value of such a column shows the same text in every class: the label of its level, or, where
//! the column shows intervals, the interval around the released values that have this label, the
//! set of them where the level does not keep the order, and `*` where it reaches from the least to
//! the greatest. The levels are those that the policy allows. A `min_level` holds for labels; for a
//! column that shows intervals it is refused, because their ends are values. What the method
//! promises holds within a group.

use std::ops::RangeInclusive;

use super::cuts::Finished;
use super::nodes::{Node, regions};
use super::{best_or_one_class, candidate, released};
use crate::class::{ClassTable, EncodedColumn, Held, Region, Union};
use crate::error::{Error, Result};
use crate::generalize::Ends;
use crate::method::lattice::Options;
use crate::method::{Candidate, Method, Outcome, Problem, Recoding};
use crate::model::min_size;
use crate::progress::{Phase, Silent};

/// Why a policy that leaves no column to the method is refused.
pub(crate) const ALL_ARE_GLOBAL: &str = "every quasi-identifier is recoded globally, which is full-domain generalization; use method = \"auto\", or leave \
     this key out of one column";

/// The most combinations of levels that are tried.
const MOST_COMBINATIONS: u64 = 64;

/// Searches with the method that `make` makes, with the columns of [`Options::global`] at one level each.
///
/// # Errors
/// Those of the method; a policy error when there are too many combinations of levels, or no other
/// column is left.
pub(in crate::method) fn search(
    make: impl Fn(&Options) -> Result<Box<dyn Method>>,
    problem: &Problem<'_>,
    options: &Options,
) -> Result<Outcome> {
    let (global, table) = (options.global.as_slice(), problem.table);
    if global.len() == table.columns().len() {
        return Err(Error::policy(ALL_ARE_GLOBAL));
    }
    let mut within = Options { global: Vec::new(), ..options.clone() };
    for column in global {
        // Constant in every group.
        let height = table.columns()[*column].height();
        within.ranges[*column] = height..=height;
    }
    let ranges: Vec<RangeInclusive<usize>> =
        global.iter().map(|column| options.ranges[*column].clone()).collect();
    let tried = count_combinations(options)?;
    let groups = Groups { problem, method: make(&within)?, global };
    let base = table.base().len() as u64;
    problem.progress.begin(Phase::Search, tried * base);
    let (mut best, mut evaluated): (Option<Candidate>, u64) = (None, 0);
    let mut levels: Vec<usize> = ranges.iter().map(|range| *range.start()).collect();
    for number in 0..tried {
        let found = groups.search(&levels, number * base, &mut evaluated)?;
        if let Some(found) = found.filter(|found| best.as_ref().is_none_or(|best| found.loss < best.loss)) {
            best = Some(found);
        }
        // The next combination counts like an odometer.
        for (level, range) in levels.iter_mut().zip(&ranges).rev() {
            if *level < *range.end() {
                *level += 1;
                break;
            }
            *level = *range.start();
        }
    }
    best_or_one_class(problem, options, best, evaluated)
}

/// Counts the combinations of levels of the global columns.
///
/// # Errors
/// A policy error when there are too many to try.
pub(in crate::method) fn count_combinations(options: &Options) -> Result<u64> {
    let ranges = options.global.iter().map(|column| options.ranges[*column].clone()).collect();
    match (Options { ranges, ..options.clone() }).nodes() {
        tried @ ..=MOST_COMBINATIONS => Ok(tried),
        tried => Err(Error::policy(format!(
            "the columns with `recode = \"global\"` have {tried} combinations of levels, more than {MOST_COMBINATIONS}; \
             narrow them with min_level and max_level"
        ))),
    }
}

/// A method that partitions groups of base classes.
struct Groups<'a> {
    problem: &'a Problem<'a>,
    method: Box<dyn Method>,
    global: &'a [usize],
}

impl Groups<'_> {
    /// Returns the best recoding with the global columns at these levels; `None` if more must be
    /// suppressed than allowed.
    fn search(&self, levels: &[usize], begin: u64, evaluated: &mut u64) -> Result<Option<Candidate>> {
        let (problem, table) = (self.problem, self.problem.table);
        let mut held = Held::new(table.budget());
        // Its number in its group and in its class.
        held.at_least(table.base().len() * 2 * size_of::<u32>())?;
        let mut at: Vec<usize> = table.columns().iter().map(EncodedColumn::height).collect();
        self.global.iter().zip(levels).for_each(|(column, level)| at[*column] = *level);
        let all = (0u32..).take(table.base().len()).collect();
        let mut groups = Node::new(table, &at, problem.ends)?.classes(all)?;
        groups.sort_by_cached_key(|group| table.base().size_of(group));
        let mut union = Union::new(table, problem.requirements)?;
        problem.stop.check()?;
        let least = min_size(problem.requirements);
        let too_small = groups.partition_point(|group| table.base().size_of(group) < least);
        let mut suppressed: Vec<u32> = groups.drain(..too_small).flatten().collect();
        let mut spent = table.base().size_of(&suppressed);
        let mut done = begin + suppressed.len() as u64;
        problem.progress.done(done);
        let mut parts = Vec::new();
        for group in groups {
            problem.stop.check()?;
            let Some(limit) = problem.limit.checked_sub(spent) else { return Ok(None) };
            let found = self.partition(&group, limit, evaluated)?;
            done += group.len() as u64;
            problem.progress.done(done);
            let before = suppressed.len();
            match found {
                None => suppressed.extend(group),
                Some((classes, left)) => {
                    suppressed.extend(left);
                    for class in classes {
                        if union.holds(&class.classes) {
                            parts.push(class);
                        } else {
                            suppressed.extend(class.classes);
                        }
                    }
                }
            }
            // An individual may be in several base classes, so sizes do not add up.
            if suppressed.len() > before {
                spent = table.base().size_of(&suppressed);
            }
        }
        if parts.is_empty() || spent > problem.limit {
            return Ok(None);
        }
        at_levels(table, &mut parts, self.global, levels, problem.ends)?;
        candidate(problem, released(table, parts)?)
    }

    /// Partitions a group by the method; also returns what belongs to no class. `None` if it finds nothing.
    fn partition(
        &self,
        group: &[u32],
        limit: u64,
        evaluated: &mut u64,
    ) -> Result<Option<(Vec<Finished>, Vec<u32>)>> {
        let mut table = self.problem.table.only(group)?;
        // Its own choices about these columns would not show.
        table.weigh_nothing(self.global);
        let outcome =
            self.method.search(&Problem { table: &table, limit, progress: &Silent, ..*self.problem })?;
        *evaluated += outcome.evaluated;
        let Some(Recoding::Classes(found)) = outcome.best.into_iter().next().map(|best| best.recoding) else {
            return Ok(None);
        };
        let mut left = Vec::new();
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); found.regions().len()];
        for (base, class) in group.iter().zip(found.class_of_base()) {
            match class {
                Some(class) => members[*class as usize].push(*base),
                None => left.push(*base),
            }
        }
        let mut classes: Vec<(Box<[Region]>, Vec<u32>)> =
            found.regions().iter().cloned().zip(members).collect();
        // Classes that differ in these columns alone will show the same.
        for (shown, _) in &mut classes {
            self.global.iter().for_each(|column| shown[*column] = Region::Everything);
        }
        classes.sort();
        let mut all: Vec<Finished> = Vec::with_capacity(classes.len() + 1);
        for (shown, mut members) in classes {
            match all.last_mut().filter(|last| last.shown.as_ref() == Some(&shown)) {
                Some(last) => last.classes.append(&mut members),
                None => all.push(Finished { classes: members, shown: Some(shown) }),
            }
        }
        Ok(Some((all, left)))
    }
}

/// Gives every part the regions of these levels in these columns. A part has one label of each.
///
/// # Errors
/// An internal error for levels that the table does not have.
pub(in crate::method) fn at_levels(
    table: &ClassTable,
    parts: &mut [Finished],
    columns: &[usize],
    levels: &[usize],
    ends: Ends,
) -> Result<()> {
    for part in parts.iter_mut().filter(|part| part.shown.is_none()) {
        part.shown = Some(table.regions_around(&part.classes)?);
    }
    for (at, level) in columns.iter().zip(levels) {
        let column = &table.columns()[*at];
        let labels = column.map(0, *level)?;
        let code = |class: u32| table.code(table.base(), class as usize, *at);
        let shows_values = ends != Ends::Cuts && column.has_intervals() && *level < column.height();
        let regions = if shows_values {
            let mut values: Vec<Vec<u32>> = vec![Vec::new(); column.level(*level).leaves().len()];
            let mut kept: Vec<u32> =
                parts.iter().flat_map(|part| &part.classes).map(|class| code(*class)).collect();
            kept.sort_unstable();
            kept.dedup();
            kept.iter().for_each(|value| values[labels[*value as usize] as usize].push(*value));
            let region = |values: Vec<u32>| match (values.first(), values.last()) {
                (Some(first), Some(last)) => {
                    let between =
                        kept.partition_point(|code| code <= last) - kept.partition_point(|code| code < first);
                    // A level such as the day of the week does not keep the order.
                    if between > values.len() {
                        Ok(Region::Set(values.into()))
                    } else {
                        Region::around(column, values)
                    }
                }
                _ => Ok(Region::Everything),
            };
            values.into_iter().map(region).collect::<Result<_>>()?
        } else {
            regions(column, *level)?
        };
        for part in parts.iter_mut() {
            if let (Some(shown), Some(first)) = (&mut part.shown, part.classes.first()) {
                shown[*at] = regions[labels[code(*first) as usize] as usize].clone();
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::mondrian;
    use super::super::mondrian::tests::{Row, options, problem, requirements, table_with};
    use super::*;
    use crate::parameter::Setting;

    /// The rows of one individual are in several parts, and what parts show without the global column is the same.
    const ROWS: [Row; 11] = [
        (Some(7), 1, 0, 2, Some(11)),
        (None, 3, 0, 1, Some(0)),
        (None, 1, 0, 0, Some(2)),
        (Some(6), 0, 1, 0, Some(0)),
        (Some(7), 0, 0, 1, None),
        (Some(0), 0, 0, 1, None),
        (None, 1, 0, 1, Some(11)),
        (Some(5), 0, 0, 1, Some(1)),
        (None, 0, 0, 0, None),
        (Some(1), 1, 0, 1, Some(2)),
        (None, 2, 1, 0, Some(3)),
    ];

    #[test]
    fn all_rows_are_one_class_where_joined_classes_fail() {
        let table = table_with(&ROWS, true, true);
        let requirements = requirements(1, 2);
        let problem = Problem { ends: Ends::Cuts, ..problem(&table, &requirements) };
        let options = Options { global: vec![2], ..options(&table) };
        let by_loss = [("split".to_owned(), Setting::Word("loss".into()))];
        let make = |within: &Options| mondrian::ROW.with(&by_loss, within);
        let found = search(make, &problem, &options).unwrap();
        assert_eq!(found.best.iter().map(|best| best.classes).collect::<Vec<_>>(), [1]);

        let mut not_suppressed = options.clone();
        not_suppressed.ranges[0] = 0..=0;
        assert!(search(make, &problem, &not_suppressed).unwrap().best.is_empty());
    }
}
