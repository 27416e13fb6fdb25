//! Joins runs of neighbouring values, always the two that add the least to the loss.

use std::collections::{BTreeMap, BTreeSet};

/// Neighbouring values that have joined.
#[derive(Clone, Copy)]
struct ValueRun {
    values: usize,
    holders: u64,
}

/// Runs of neighbouring values.
pub(super) struct Runs {
    /// The runs by the places of their first values.
    by_first: BTreeMap<usize, ValueRun>,
    /// By how much the loss grows when a run and the next one join, with the place of its first value.
    costs: BTreeSet<(u128, usize)>,
}

impl Runs {
    /// Creates a run of each value.
    pub(super) fn of(holders: &[u64]) -> Self {
        let runs = holders.iter().map(|holders| ValueRun { values: 1, holders: *holders }).enumerate();
        let mut runs = Self { by_first: runs.collect(), costs: BTreeSet::new() };
        (0..holders.len()).for_each(|first| runs.insert_cost(first));
        runs
    }

    /// Returns the numbers of values of the runs, in order.
    pub(super) fn lengths(&self) -> Vec<usize> {
        self.by_first.values().map(|run| run.values).collect()
    }

    /// Returns by how much the loss grows when a run and the next one join.
    fn added(&self, first: usize) -> Option<u128> {
        let run = self.by_first.get(&first)?;
        let next = self.by_first.get(&(first + run.values))?;
        let of = |run: &ValueRun, next: &ValueRun| u128::from(run.holders) * next.values as u128;
        Some(of(run, next) + of(next, run))
    }

    fn insert_cost(&mut self, first: usize) {
        if let Some(added) = self.added(first) {
            self.costs.insert((added, first));
        }
    }

    fn remove_cost(&mut self, first: usize) {
        if let Some(added) = self.added(first) {
            self.costs.remove(&(added, first));
        }
    }

    /// Joins neighbours until `groups` runs are left, always those that add the least.
    pub(super) fn join(&mut self, groups: usize) {
        while self.by_first.len() > groups {
            let Some(first) = self.costs.first().map(|(_, first)| *first) else { return };
            let before = self.by_first.range(..first).next_back().map(|(first, _)| *first);
            let next = first + self.by_first.get(&first).map_or(0, |run| run.values);
            let changed = [before, Some(first), Some(next)];
            changed.iter().flatten().for_each(|first| self.remove_cost(*first));
            if let (Some(next), Some(run)) = (self.by_first.remove(&next), self.by_first.get_mut(&first)) {
                run.values += next.values;
                run.holders = run.holders.saturating_add(next.holders);
            }
            changed.iter().flatten().for_each(|first| self.insert_cost(*first));
        }
    }
}
