//! The base classes of a table, from the codes of its groups: the groups with one key are one class.
//!
//! Memory is taken list by list, and the codes of a column are given back as soon as they are in
//! a list.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::classes::Classes;
use super::grouping::Grouping;
use super::held::{Held, HeldList};
use super::histograms::Histograms;
use super::individuals::{ClassIndividuals, IndividualsByValue, MemberLists};
use super::packing::Packing;
use super::{Budget, Individuals, too_many_classes};
use crate::error::Result;
use crate::model::ValueCount;

/// The groups of a table, column by column.
pub(super) struct GroupedCodes<'a> {
    pub(super) packing: &'a Packing,
    /// The level-0 codes of each quasi-identifier.
    pub(super) quasi: Vec<HeldList<u32>>,
    /// The values of each sensitive column; none without a group.
    pub(super) sensitive: Vec<SensitiveCodes>,
    /// The individuals, if they are counted.
    pub(super) holders: Option<&'a GroupHolders>,
    pub(super) rows: &'a [u64],
}

/// A sensitive column's values as numbers. Codes begin with `null` (0 or 1) codes for NULL.
pub(super) struct SensitiveCodes {
    pub(super) codes: HeldList<u32>,
    pub(super) null: u32,
    /// All codes are below this.
    pub(super) values: u32,
}

/// The individual of every group.
pub(super) struct GroupHolders {
    /// Codes begin with `null` (0 or 1) codes for NULL.
    pub(super) codes: HeldList<u32>,
    pub(super) null: u32,
    /// All individual numbers are below this.
    pub(super) all: u32,
}

impl GroupedCodes<'_> {
    /// Makes the base classes, in the order of their keys.
    ///
    /// # Errors
    /// A data error when memory runs out or there are too many groups.
    pub(super) fn base(self, budget: &Arc<dyn Budget>) -> Result<Classes> {
        let (words, groups) = (self.packing.words(), self.rows.len());
        let (mut held, mut held_meanwhile) = (Held::new(budget), Held::new(budget));
        let (of_keys, of_order) = (groups * words * size_of::<u64>(), groups * size_of::<u32>());
        let of_sort = groups * if words == 1 { size_of::<(u64, u32)>() } else { size_of::<(u128, u32)>() };
        held_meanwhile.at_least(of_keys + of_order + of_sort).map_err(|_| {
            // Then come the lists, so the figure is of both.
            budget.refusal((of_keys + of_order + of_sort).max(self.most_bytes()))
        })?;
        let mut keys = vec![0u64; groups * words];
        for (column, codes) in self.quasi.into_iter().enumerate() {
            let field = self.packing.field(column);
            keys.chunks_exact_mut(words).zip(&*codes).for_each(|(key, code)| field.put(key, *code));
        }
        let key = |group: u32| &keys[group as usize * words..][..words];
        // Sorted by key, so that a roll-up touches entries that are still in the cache.
        let order = in_order(&keys, words)?;
        held_meanwhile.at_most(of_keys + of_order);
        let opens = |before: u32, group: u32| key(before) != key(group);
        let opened = order.windows(2).filter(|pair| opens(pair[0], pair[1])).count();
        let classes = opened + usize::from(groups > 0);
        held_meanwhile.at_least(of_keys + of_order + (classes + 1) * size_of::<usize>())?;
        let groups_of = Grouping::of_runs(order, classes, opens);
        held.at_least(classes * (words + 1) * size_of::<u64>())?;
        let mut entries = Vec::with_capacity(classes * (words + 1));
        for class in 0..classes {
            let groups = groups_of.of(class);
            entries.extend(groups.iter().take(1).flat_map(|group| key(*group)));
            entries.push(groups.iter().map(|group| self.rows[*group as usize]).sum());
        }
        drop(keys);
        held_meanwhile.at_most(of_order + (classes + 1) * size_of::<usize>());

        let mut seen = Vec::new();
        let mut held_seen = Held::new(budget);
        let members = self.holders.map(|holders| {
            let of = |group: u32| holders.of(group).into_iter();
            held_seen.at_least(holders.all as usize * size_of::<u32>())?;
            let make = || Ok(MemberLists::gathered(&groups_of, holders.all, groups, of, &mut seen));
            let individuals =
                held.adding(MemberLists::bytes_of(classes, groups), make, MemberLists::bytes)?;
            Ok(ClassIndividuals { individuals, by_value: Vec::new() })
        });
        let mut members = members.transpose()?;
        let mut sensitive = Vec::with_capacity(self.sensitive.len());
        for SensitiveCodes { codes, null, values } in self.sensitive {
            let count = |group: u32| {
                let value = codes[group as usize].checked_sub(null);
                std::iter::once(ValueCount { value, count: self.rows[group as usize] })
            };
            let make = || Ok(Histograms::gathered(&groups_of, values, groups, count));
            sensitive.push(held.adding(Histograms::bytes_of(classes, groups), make, Histograms::bytes)?);
            let (Some(members), Some(holders)) = (&mut members, self.holders) else { continue };
            let Pairs { of_group, value_of } = holders.pairs(&codes, null, budget)?;
            drop(codes);
            let all = u32::try_from(value_of.len()).map_err(|_| too_many_classes())?;
            held_seen.at_least(value_of.len() * size_of::<u32>())?;
            let of = |group: u32| Some(of_group[group as usize]).filter(|pair| *pair != NO_PAIR).into_iter();
            let make = || Ok(MemberLists::gathered(&groups_of, all, groups, of, &mut seen));
            let pairs = held.adding(MemberLists::bytes_of(classes, groups), make, MemberLists::bytes)?;
            drop(of_group);
            members.by_value.push(IndividualsByValue::new(pairs, Arc::new(value_of), values, &mut held)?);
        }
        let mut base = Classes { entries, words, sensitive, members, held };
        base.account()?;
        Ok(base)
    }

    /// Returns the bytes that the lists can take while they are made.
    fn most_bytes(&self) -> usize {
        let (groups, words) = (self.rows.len(), self.packing.words());
        let entries = groups * (words + 1) * size_of::<u64>();
        let order = MemberLists::bytes_of(groups, groups);
        let lists = match self.holders {
            None => self.sensitive.len() * Histograms::bytes_of(groups, groups),
            Some(_) => {
                let of_value =
                    MemberLists::bytes_of(groups, groups) + 2 * Histograms::bytes_of(groups, groups);
                MemberLists::bytes_of(groups, groups)
                    + self.sensitive.len() * (of_value + groups * size_of::<Option<u32>>())
            }
        };
        let given_back = self.quasi.len() * groups * size_of::<u32>();
        (entries + order + lists).saturating_sub(given_back)
    }
}

/// Stands for a group without an individual.
const NO_PAIR: u32 = u32::MAX;

/// The pairs of an individual and a value.
struct Pairs {
    /// The pair of each group, or [`NO_PAIR`].
    of_group: HeldList<u32>,
    /// The value of each pair.
    value_of: HeldList<Option<u32>>,
}

impl GroupHolders {
    fn of(&self, group: u32) -> Option<u32> {
        self.codes[group as usize].checked_sub(self.null)
    }

    /// Counts the rows of each individual.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn individuals(&self, rows: &[u64], budget: &Arc<dyn Budget>) -> Result<Individuals> {
        let mut held = Held::new(budget);
        held.at_least(self.all as usize * size_of::<u64>())?;
        let mut of_each = vec![0u64; self.all as usize];
        let mut unowned_rows = 0;
        for (code, rows) in self.codes.iter().zip(rows) {
            match code.checked_sub(self.null) {
                Some(individual) => of_each[individual as usize] += rows,
                None => unowned_rows += rows,
            }
        }
        let mut by_rows: BTreeMap<u64, u64> = BTreeMap::new();
        of_each.into_iter().for_each(|rows| *by_rows.entry(rows).or_default() += 1);
        Ok(Individuals { count: u64::from(self.all), by_rows, unowned_rows })
    }

    /// Numbers the pairs of an individual and a value that occur; the codes of the groups' values
    /// begin with `null` (0 or 1) codes for NULL.
    fn pairs(&self, codes: &[u32], null: u32, budget: &Arc<dyn Budget>) -> Result<Pairs> {
        let pair = |group: u32| {
            let (holder, code) = (self.of(group)?, codes[group as usize]);
            Some((u64::from(holder) << 32 | u64::from(code), group))
        };
        let groups = u32::try_from(codes.len()).map_err(|_| too_many_classes())?;
        let mut held = Held::new(budget);
        held.at_least(codes.len() * size_of::<(u64, u32)>())?;
        let mut pairs: Vec<(u64, u32)> = Vec::with_capacity(codes.len());
        pairs.extend((0..groups).filter_map(pair));
        pairs.sort_unstable();
        let alike = || pairs.chunk_by(|(a, _), (b, _)| a == b);
        let mut of_group = HeldList::filled(NO_PAIR, codes.len(), budget)?;
        let mut value_of = HeldList::with_room(alike().count(), budget)?;
        for (same, number) in alike().zip(0u32..) {
            same.iter().for_each(|(_, group)| of_group[*group as usize] = number);
            let code = same.first().map(|(_, group)| codes[*group as usize]);
            value_of.extend(&[code.and_then(|code| code.checked_sub(null))])?;
        }
        Ok(Pairs { of_group, value_of })
    }
}

/// Returns the groups ordered by their keys, the highest word first.
fn in_order(keys: &[u64], words: usize) -> Result<Vec<u32>> {
    if u32::try_from(keys.len() / words).is_err() {
        return Err(too_many_classes());
    }
    if words == 1 {
        return Ok(sorted(keys.iter().copied(), |_, _| Ordering::Equal));
    }
    let key = |key: &[u64]| u128::from(key[words - 1]) << 64 | u128::from(key[words - 2]);
    // The words below the two that were compared.
    let rest = |group: u32| keys[group as usize * words..][..words - 2].iter().rev();
    Ok(sorted(keys.chunks_exact(words).map(key), |a, b| rest(a).cmp(rest(b))))
}

/// Returns the numbers of the keys in the order of the keys, equal ones by `then`.
fn sorted<K: Ord + Copy>(
    keys: impl ExactSizeIterator<Item = K>,
    then: impl Fn(u32, u32) -> Ordering,
) -> Vec<u32> {
    let mut order: Vec<(K, u32)> = keys.zip(0u32..).collect();
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| then(a.1, b.1)));
    // Not `collect`, which would keep the larger allocation.
    let mut numbers = Vec::with_capacity(order.len());
    numbers.extend(order.iter().map(|(_, number)| *number));
    numbers
}
