//! `anatomy`: leaves quasi-identifiers as they are and hides to which of them a sensitive value belongs.
//!
//! The rows are put into groups, and two tables are released: one has each row's exact
//! quasi-identifiers and its group, the other says how often each sensitive value occurs in each group
//! (Xiao & Tao 2006). While there are l values with rows that are left, a group takes one row of each of
//! the l most frequent among those; what is left at the end joins groups without its value. Here only the
//! numbers of rows are chosen. Which rows they are is decided by chance when the tables are written, so
//! the groups say nothing about quasi-identifiers.
//!
//! # Contract
//! No value occurs in more than 1/l of a group's rows, where l is the number of equally frequent values
//! that the models need; NULL counts as a value. That is more than distinct l-diversity. A group has at least k rows: if k is above l, it takes up to k values at once, or groups
//! are joined, whichever makes the smaller ones.
//! There are such groups iff no value occurs in more than 1/l of the rows that have one, nor NULL in more
//! than 1/l of all rows, there are k rows, and the models hold. The models must look at
//! nothing but the size and the values of a class; without one that needs two values the policy is
//! refused. Nothing is suppressed: a suppressed row would reveal that it has a frequent value. Each
//! individual has one row. `min_level`, `clip` and `merge` are refused.
//!
//! It does not hide who is in the table, nor which exact quasi-identifiers occur. A second release of the
//! same individuals puts them into other groups, and readers can intersect these. Values of other groups
//! can teach which value goes with which quasi-identifiers (Kifer 2009).

use std::collections::BinaryHeap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::lattice::Options;
use super::partition::{Row, check_people};
use super::{Candidate, Method, Outcome, Problem, Recoding};
use crate::class::{EvaluatedNode, Groups, Held, by_rank};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::generalize::{Descriptor, Hierarchy};
use crate::model::{Class, Needs, Requirement, SensitiveColumn, ValueCount, min_size, values_needed};
use crate::papers;
use crate::progress::CancelToken;

/// The row of [`METHODS`](super::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "anatomy",
        summary: "separates exact quasi-identifiers from the sensitive values of groups: two tables",
        parameters: "",
        example: "method = \"anatomy\"",
        paper: Some(papers::XIAO_TAO_2006),
    },
    parameters: &[],
    keeps_max_level: true,
    shows_cuts: false,
    make: |_, options| Ok(Box::new(Anatomy { options: options.clone() })),
};

/// The columns that the two tables have besides those of the input: the number of a group, and how
/// many of its rows have a sensitive value.
pub const COLUMNS: [&str; 2] = ["group_id", "count"];

struct Anatomy {
    options: Options,
}

/// Returns why there are no groups that satisfy these models, and what to do.
pub(crate) fn why_nothing(requirements: &[Requirement]) -> String {
    let l = values_needed(requirements);
    format!(
        "each sensitive value may occur in at most 1 of {l} of the rows that have one, and NULL in at most 1 of {l} of all: require \
         less, or use another method"
    )
}

/// Checks that the method can do what a policy says; `quasi` has the name, the levels and the allowed
/// levels of each quasi-identifier. Returns the sensitive column.
///
/// # Errors
/// A policy error that says what it cannot do.
pub(crate) fn check<'a>(
    requirements: &[Requirement],
    quasi: impl Iterator<Item = (&'a str, &'a Hierarchy, &'a RangeInclusive<usize>)>,
) -> Result<SensitiveColumn> {
    let sensitive = check_models(requirements)?;
    for (column, hierarchy, levels) in quasi {
        let is_as_is =
            hierarchy.levels().first().is_none_or(|level| level.descriptor() == Descriptor::as_is());
        if *levels.start() > 0 || !is_as_is {
            let why = format!(
                "`{}` shows every value as it is, so it cannot honour `min_level`, `clip` or `merge`; remove it, or use another \
                 method",
                ROW.doc.name
            );
            return Err(Error::policy(why).at(format!("columns.{column}")));
        }
    }
    Ok(sensitive)
}

/// Checks that groups can satisfy these models, and returns the sensitive column that they look at.
///
/// # Errors
/// A policy error that says what they cannot.
pub(crate) fn check_models(requirements: &[Requirement]) -> Result<SensitiveColumn> {
    let name = ROW.doc.name;
    let refused = |why: String| Err(Error::policy(why).at("method"));
    let mut sensitive: Option<&SensitiveColumn> = None;
    for requirement in requirements {
        let column = requirement.sensitive.as_ref();
        let is_of_counts = matches!(requirement.model.needs(), Needs::Size | Needs::SensitiveCounts);
        if !is_of_counts || !requirement.is_over_all_quasi() || column.is_some_and(|one| !one.is_as_it_is()) {
            return refused(format!(
                "`{name}` takes only models of the size of a class and of how often its values occur, over all \
                 quasi-identifiers and values, and {} is none; use another method",
                requirement.text()
            ));
        }
        if let (Some(column), Some(first)) = (column, sensitive)
            && column != first
        {
            return refused(format!(
                "`{name}` releases one sensitive column, and the models look at several; leave the others out, or use another method"
            ));
        }
        sensitive = sensitive.or(column);
    }
    match sensitive.filter(|_| values_needed(requirements) >= 2) {
        Some(sensitive) => Ok(sensitive.clone()),
        None => refused(format!(
            "`{name}` shows quasi-identifiers as they are and protects sensitive values alone, so it needs a model of them, such as \
             l_diversity with l of at least 2; k says how large a group is"
        )),
    }
}

impl Method for Anatomy {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let (table, requirements) = (problem.table, problem.requirements);
        let columns = table.columns().iter().zip(&self.options.ranges);
        let quasi = columns.map(|(column, levels)| (column.name(), column.hierarchy(), levels));
        let sensitive = check(requirements, quasi)?;
        check_people(ROW.doc.name, table)?;
        let counted = table.sensitive_index(&sensitive);
        let counted = counted.ok_or_else(|| Error::internal("anatomy: the values are not counted"))?;
        let values = table.distribution(counted).values();
        let mut held = Held::new(table.budget());
        // The members of groups and the groups of members; per value its count twice, its place in the heap
        // and its list.
        let of_rows = usize::try_from(table.total_rows()).unwrap_or(usize::MAX).saturating_mul(8);
        let of_value = 3 * size_of::<ValueCount>() + size_of::<Vec<u32>>();
        held.at_least(of_rows.saturating_add(values.len() * of_value))?;
        let values = by_rank(values);
        let sizes = Sizes { l: values_needed(requirements), least: min_size(requirements) };
        let found = match groups(&values, sizes, problem.stop)? {
            None => None,
            Some(of_value) => candidate(problem, Groups::new(table, &values, of_value)?, sizes.l)?,
        };
        let evaluated = found.as_ref().map_or(0, |found| found.classes);
        Ok(Outcome { best: found.into_iter().collect(), nodes: None, evaluated, proven: false, bound: None })
    }
}

/// The bounds of a group.
#[derive(Clone, Copy)]
struct Sizes {
    /// No value is that of more than one in so many rows.
    l: u64,
    /// The least rows.
    least: u64,
}

impl Sizes {
    /// Returns how many values a group takes at once, and how many of such groups are joined, so that they
    /// are the smallest that there are if the most frequent value has `most` of the `rows`; of equally
    /// small ones those with more values.
    fn of_group(self, most: u64, rows: u64) -> Option<(u64, u64)> {
        // As many values at once as rows of the most frequent one allow.
        let at_most = rows.checked_div(most)?;
        let values = (self.l..=self.least.max(self.l).min(at_most)).rev();
        let joined = values.map(|l| (l, self.least.div_ceil(l).max(1)));
        joined.min_by_key(|(l, each)| l.saturating_mul(*each))
    }
}

/// Returns the group of each row with a value, ascending, for each of the `values` by rank; `None` if
/// some value is too frequent.
fn groups(values: &[ValueCount], sizes: Sizes, stop: &CancelToken) -> Result<Option<Vec<Box<[u32]>>>> {
    let too_many = || Error::data("more than 4,294,967,294 rows: `anatomy` cannot group them");
    let known = || values.iter().filter(|value| value.value.is_some());
    let rows: u64 = known().map(|value| value.count).sum();
    let most = known().map(|value| value.count).max().unwrap_or(0);
    let Some((l, each)) = sizes.of_group(most, rows) else { return Ok(None) };
    let (l, each) =
        usize::try_from(l).and_then(|l| Ok((l, usize::try_from(each)?))).map_err(|_| too_many())?;
    let (mut left, mut nulls) = (BinaryHeap::with_capacity(values.len()), 0);
    for (rank, value) in values.iter().enumerate() {
        let rank = u32::try_from(rank).map_err(|_| too_many())?;
        match value.value {
            // The first rank first, where counts are equal.
            Some(_) => left.push((value.count, std::cmp::Reverse(rank))),
            None => nulls = value.count,
        }
    }
    // l members for each group.
    let mut members: Vec<u32> = Vec::with_capacity(usize::try_from(rows).map_err(|_| too_many())?);
    let mut taken = Vec::with_capacity(l);
    while left.len() >= l {
        if members.len() % (1 << 16) < l {
            stop.check()?;
        }
        taken.extend((0..l).filter_map(|_| left.pop()));
        for (count, rank) in taken.drain(..) {
            members.push(rank.0);
            if count > 1 {
                left.push((count - 1, rank));
            }
        }
    }
    let count = members.len() / l;
    // NULLs may be as frequent as any value; in larger groups there is room for more of them.
    let has_room = |each: &usize| {
        let joined = (count / each).max(1) as u64;
        let (nulls, others) = (nulls.div_ceil(joined), if joined == 1 { rows } else { (each * l) as u64 });
        nulls.saturating_mul(sizes.l) <= nulls + others
    };
    let Some(each) = (each..=each.max(count)).find(has_room) else { return Ok(None) };
    let joined = (count / each).max(1);
    let group = |at: usize| u32::try_from((at / each).min(joined - 1)).map_err(|_| too_many());

    let list =
        |value: &ValueCount| Ok(Vec::with_capacity(usize::try_from(value.count).map_err(|_| too_many())?));
    let mut of_value: Vec<Vec<u32>> = values.iter().map(list).collect::<Result<_>>()?;
    for (at, rank) in members.iter().enumerate() {
        of_value[*rank as usize].push(group(at / l)?);
    }
    let mut next = 0;
    for (_, rank) in left.into_sorted_vec() {
        let lacks = |at: &usize| !members[at * l..(at + 1) * l].contains(&rank.0);
        let Some(at) = (next..count).chain(0..next).find(lacks) else { return Ok(None) };
        of_value[rank.0 as usize].push(group(at)?);
        next = (at + 1) % count;
    }
    if let Some(null) = values.iter().position(|value| value.value.is_none()) {
        let in_turn = (0..nulls).map(|row| u32::try_from(row % joined as u64).map_err(|_| too_many()));
        of_value[null] = in_turn.collect::<Result<_>>()?;
    }
    let ascending = of_value.into_iter().map(|mut groups| {
        groups.sort_unstable();
        groups.into_boxed_slice()
    });
    Ok(Some(ascending.collect()))
}

/// Judges groups; `None` if one fails.
fn candidate(problem: &Problem<'_>, groups: Groups, l: u64) -> Result<Option<Candidate>> {
    let (table, mut holds) = (problem.table, true);
    groups.each(|_, values| {
        let size = values.iter().map(|value| value.count).sum();
        let class = Class::of_values(size, values);
        let models = problem.requirements.iter().map(|requirement| &requirement.model);
        holds &= values.iter().all(|value| value.count <= size / l);
        holds &= models.clone().all(|model| model.holds(model.value(&class)));
        Ok(())
    })?;
    let levels = vec![0; table.columns().len()];
    let as_is = EvaluatedNode::new(table, &levels, table.base(), &[])?;
    Ok(holds.then(|| Candidate {
        loss: problem.objective.value(&as_is),
        suppressed_rows: 0,
        suppressed_individuals: 0,
        classes: groups.sizes().len() as u64,
        min_class: groups.sizes().iter().min().copied(),
        recoding: Recoding::Groups(Arc::new(groups)),
        by: None,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::class::ClassTable;
    use crate::class::tests::{quasi, table};

    fn values(counts: &[u64], nulls: u64) -> Vec<ValueCount> {
        let known = counts.iter().zip(0..).filter(|(count, _)| **count > 0);
        let known = known.map(|(count, value)| ValueCount { value: Some(value), count: *count });
        let null = (nulls > 0).then_some(ValueCount { value: None, count: nulls });
        by_rank(&known.chain(null).collect::<Vec<_>>())
    }

    /// A table of so many rows, in whose budget groups are made.
    fn rows(count: u64) -> ClassTable {
        let age: arrow::array::ArrayRef =
            Arc::new(arrow::array::Int64Array::from_iter_values(0..count.try_into().unwrap()));
        table(vec![(quasi("age", &age, None), age)])
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// There are groups iff no value is too frequent, and each keeps its bounds.
        #[test]
        fn groups_exist_and_hold(
            counts in proptest::collection::vec(0..12u64, 0..9),
            nulls in 0..20u64,
            l in 2..5u64,
            k in 0..9u64,
        ) {
            let by_rank = values(&counts, nulls);
            let known: u64 = counts.iter().sum();
            let is_eligible = known > 0
                && counts.iter().all(|count| count * l <= known)
                && nulls * l <= known + nulls;
            let found = groups(&by_rank, Sizes { l, least: k }, &CancelToken::default()).unwrap();
            prop_assert_eq!(found.is_some(), is_eligible);
            let Some(found) = found else { return Ok(()) };
            let all = Groups::new(&rows(known + nulls), &by_rank, found).unwrap();
            prop_assert_eq!(all.sizes().iter().sum::<u64>(), known + nulls);
            let least = k.min(known + nulls);
            prop_assert!(all.sizes().iter().all(|size| *size >= least), "{:?}", all.sizes());
            all.each(|number, values| {
                let size: u64 = values.iter().map(|value| value.count).sum();
                assert_eq!(size, all.sizes()[number]);
                let rows: u64 = values.iter().filter(|v| v.value.is_some()).map(|value| value.count).sum();
                assert!(values.iter().filter(|v| v.value.is_some()).all(|value| value.count * l <= rows));
                assert!(values.iter().all(|value| value.count * l <= size));
                Ok(())
            })
            .unwrap();
        }
    }

    #[test]
    fn the_most_frequent_values_go_first() {
        // Four of a, two of b, one of c and d: a b | a b | a c | a d.
        let by_rank = values(&[4, 2, 1, 1], 0);
        let found = groups(&by_rank, Sizes { l: 2, least: 0 }, &CancelToken::default()).unwrap().unwrap();
        let found: Vec<&[u32]> = found.iter().map(AsRef::as_ref).collect();
        assert_eq!(found, [&[0, 1, 2, 3][..], &[0, 1], &[2], &[3]]);
        let groups = Groups::new(&rows(8), &by_rank, found.into_iter().map(Into::into).collect()).unwrap();
        assert_eq!(groups.reconstruction_error(), 0.5);
    }
}
