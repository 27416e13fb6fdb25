//! Cells against a naive choice that makes and rates every cut.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::class::{ClassTable, EncodedColumn, Region, Union};
use crate::generalize::Ends;
use crate::method::Problem;
use crate::method::partition::cuts::cut_all;
use crate::method::partition::least_loss::LeastLoss;
use crate::method::partition::medians::{ColumnRank, Medians};
use crate::method::partition::mondrian::tests::{problem, requirements, rows, table_with};
use crate::method::partition::released;
use crate::model::Requirement;

/// The codes that are left to a part, by column.
type NaiveCell = Vec<BTreeSet<u32>>;

/// The base classes of each part and its cell, cut naively by least loss.
fn cells_by_loss(table: &ClassTable, requirements: &[Requirement]) -> BTreeMap<Vec<u32>, NaiveCell> {
    let code = |class: u32, column: usize| table.code(table.base(), class as usize, column);
    let rows = |part: &[u32]| part.iter().map(|class| table.base().rows_of(*class as usize)).sum::<u64>();
    let leaves = |column: &EncodedColumn, codes: &BTreeSet<u32>| {
        let values = codes.iter().filter(|code| **code > 0 || !column.has_null()).count();
        let all = column.distinct() - usize::from(column.has_null());
        // No end is shown, so that NULL makes no difference.
        let is_all = codes.len() == column.distinct() || (values == all && column.has_intervals());
        match is_all && (codes.len() > 1 || column.distinct() == 1) {
            true => column.leaves(),
            false => Region::around(column, codes.iter().copied().collect()).unwrap().leaves(column),
        }
    };
    let mut union = Union::new(table, requirements).unwrap();
    let whole: Vec<u32> = (0u32..).take(table.base().len()).collect();
    let all = |column: &EncodedColumn| (0u32..).take(column.distinct()).collect();
    let cell: NaiveCell = table.columns().iter().map(all).collect();
    let (mut open, mut done) = (vec![(whole, cell)], BTreeMap::new());
    if !union.holds(&open[0].0) {
        return done;
    }
    while let Some((part, cell)) = open.pop() {
        let mut cuts = Vec::new();
        for (at, column) in table.columns().iter().enumerate() {
            let values: BTreeSet<u32> = part.iter().map(|class| code(*class, at)).collect();
            let values: Vec<u32> = values.into_iter().collect();
            let up_to =
                |end: usize| cell[at].iter().copied().filter(|code| *code <= values[end - 1]).collect();
            let mut lefts: Vec<BTreeSet<u32>> = (1..values.len()).map(up_to).collect();
            let shared = Region::around(column, cell[at].iter().copied().collect()).unwrap();
            let label = |value: u32| match shared {
                Region::Interval { .. } | Region::OrMissing { .. } => 0,
                Region::Set(_) => value,
                Region::Everything => column.map(0, column.height() - 1).unwrap()[value as usize],
                Region::Label { level, .. } => column.map(0, level - 1).unwrap()[value as usize],
            };
            let runs: Vec<&[u32]> = values.chunk_by(|a, b| label(*a) == label(*b)).collect();
            for run in runs.iter().take(runs.len() - 1).skip(1) {
                let is_left = |code: &u32| {
                    run.contains(code) || (!values.contains(code) && label(*code) == label(run[0]))
                };
                lefts.push(cell[at].iter().copied().filter(is_left).collect());
            }
            for in_left in lefts {
                let (left, right): (Vec<u32>, Vec<u32>) =
                    part.iter().partition(|class| in_left.contains(&code(**class, at)));
                let in_right: BTreeSet<u32> = cell[at].difference(&in_left).copied().collect();
                let of = |part: &[u32], codes| (rows(part) * (leaves(column, codes) - 1)) as f64;
                let saved = of(&part, &cell[at]) - of(&left, &in_left) - of(&right, &in_right);
                let of_leaf = column.weight() * (1.0 / (column.leaves().max(2) - 1) as f64);
                let saves = of_leaf * saved / ((rows(&left) * rows(&right)) as f64).sqrt();
                let (mut one, mut other) = (cell.clone(), cell.clone());
                (one[at], other[at]) = (in_left, in_right);
                cuts.push((saves, (left, one), (right, other)));
            }
        }
        // Stable: of equal cuts the first one of the first column.
        cuts.sort_by(|a, b| b.0.total_cmp(&a.0));
        match cuts.into_iter().find(|(_, left, right)| union.holds(&left.0) && union.holds(&right.0)) {
            Some((_, left, right)) => open.extend([left, right]),
            None => drop(done.insert(part, cell)),
        }
    }
    done
}

/// The codes that regions hold, by column.
fn held(table: &ClassTable, regions: &[Region]) -> NaiveCell {
    let of_column = |(region, column): (&Region, &EncodedColumn)| {
        (0u32..).take(column.distinct()).filter(|code| region.holds(column, *code)).collect()
    };
    regions.iter().zip(table.columns()).map(of_column).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn they_are_cut_as_the_naive_choice_does(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        counts_individuals in any::<bool>(),
        threads in 1..3usize,
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let requirements = requirements(k, l);
        let problem = Problem { threads, ends: Ends::Cuts, ..problem(&table, &requirements) };
        let cuts = LeastLoss::new(&table, k, Ends::Cuts).unwrap();
        let mut found: BTreeMap<Vec<u32>, NaiveCell> = BTreeMap::new();
        for mut part in cut_all(&problem, &cuts).unwrap().0 {
            part.classes.sort_unstable();
            found.insert(part.classes, held(&table, &part.shown.unwrap()));
        }
        let expected = cells_by_loss(&table, &requirements);
        prop_assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (classes, cell) in &expected {
            prop_assert!(cell.iter().zip(&found[classes]).all(|(cell, held)| cell.is_subset(held)));
        }
    }

    /// Whatever chooses the cuts: two parts have no combination of values in common, and their
    /// regions show no more than labels, or NULL beside all values, add.
    #[test]
    fn they_leave_every_combination_to_one_part(
        rows in rows(),
        k in 1..6u64,
        counts_individuals in any::<bool>(),
        by_entropy in any::<bool>(),
    ) {
        let table = table_with(&rows, counts_individuals, false);
        let requirements = requirements(k, 1);
        let problem = Problem { ends: Ends::Cuts, ..problem(&table, &requirements) };
        let rank = if by_entropy { ColumnRank::Entropy } else { ColumnRank::Span };
        let parts = cut_all(&problem, &Medians::new(&table, rank, false, Ends::Cuts).unwrap()).unwrap().0;
        let cells: Vec<NaiveCell> = parts.iter().map(|part| held(&table, part.shown.as_ref().unwrap())).collect();
        for (at, one) in cells.iter().enumerate() {
            for other in &cells[..at] {
                let is_null_alone = |codes: &BTreeSet<u32>| codes.len() == 1 && codes.contains(&0);
                let are_apart = |(one, other): (&BTreeSet<u32>, &BTreeSet<u32>)| {
                    one.is_disjoint(other) || is_null_alone(one) || is_null_alone(other)
                };
                prop_assert!(one.iter().zip(other).any(are_apart), "{:?} {:?}", one, other);
            }
        }
        if !parts.is_empty() {
            prop_assert_eq!(released(&table, parts).unwrap().regions().len(), cells.len());
        }
    }
}
