//! Roll-up: merges the classes of a finer node into those of a coarser one; or base classes into
//! released ones, by their numbers.
//!
//! A roll-up maps codes to codes and adds the rows of classes that become equal; it never touches
//! values or labels. The inner loop allocates nothing: the compiler knows the width of keys, and
//! the hash index and the growing result live in a [`Scratch`] that is reused. The codes of neighbouring
//! columns are mapped together, by one table of all their combinations.

use super::classes::Classes;
use super::grouping::Grouping;
use super::histograms::Histograms;
use super::individuals::ClassIndividuals;
use super::packing::Field;
use super::{Budget, Held, too_many_classes};
use crate::error::{Error, Result};
use std::sync::Arc;

/// Memory that roll-ups reuse, taken from a budget.
pub struct Scratch {
    /// A hash index with open addressing: the number of a class, or [`EMPTY`].
    slots: Vec<u32>,
    entries: Vec<u64>,
    /// The class that each source class is merged into.
    target: Vec<u32>,
    /// The class in which each individual was last seen.
    seen: Vec<u32>,
    held: Held,
}

const EMPTY: u32 = u32::MAX;
const LEAST_SLOTS: usize = 1 << 8;

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scratch(..)")
    }
}

impl Scratch {
    /// Creates a scratch without memory.
    pub fn new(budget: &Arc<dyn Budget>) -> Self {
        let (slots, target, seen) = (Vec::new(), Vec::new(), Vec::new());
        Self { slots, entries: Vec::new(), target, seen, held: Held::new(budget) }
    }

    fn bytes(&self) -> usize {
        let numbers = self.slots.capacity() + self.target.capacity() + self.seen.capacity();
        numbers * size_of::<u32>() + self.entries.capacity() * size_of::<u64>()
    }

    /// Makes room for the classes of so many sources.
    fn for_targets(&mut self, sources: usize) -> Result<()> {
        self.target.clear();
        let more = sources.saturating_sub(self.target.capacity());
        self.held.at_least(self.bytes() + more * size_of::<u32>())?;
        self.target.reserve_exact(sources);
        Ok(())
    }

    /// Makes room to see the members of `source`.
    fn for_members(&mut self, source: &Classes) -> Result<()> {
        let all = source.members.as_ref().map_or(0, ClassIndividuals::most_members);
        self.seen.clear();
        let more = all.saturating_sub(self.seen.capacity());
        self.held.at_least(self.bytes() + more * size_of::<u32>())?;
        self.seen.reserve_exact(all);
        Ok(())
    }
}

/// The change of one column's codes.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) field: Field,
    pub(super) map: &'a [u32],
}

/// Several columns' changes in one: the bits of a word from `shift` on are an index into `keys`.
struct Table {
    word: usize,
    shift: u32,
    mask: usize,
    keys: Vec<u64>,
}

/// A table of more bits would not fit the processor's first cache.
const MOST_BITS: u32 = 11;

impl Table {
    /// Makes tables of neighbouring columns, each much smaller than `source` classes, and returns
    /// the steps that are left.
    fn of_steps<'a>(steps: &[Step<'a>], source: usize) -> (Vec<Self>, Vec<Step<'a>>) {
        let most_bits = (source / 4).checked_ilog2().unwrap_or(0).min(MOST_BITS);
        let mut steps = steps.to_vec();
        steps.sort_unstable_by_key(|step| (step.field.word, step.field.shift));
        let (mut tables, mut left, mut rest) = (Vec::new(), Vec::new(), steps.as_slice());
        while let Some(first) = rest.first() {
            let fits = |step: &&Step<'_>| {
                step.field.word == first.field.word && step.field.end() - first.field.shift <= most_bits
            };
            let together = rest.iter().take_while(fits).count().max(1);
            let (group, others) = rest.split_at(together);
            match group {
                [alone] => left.push(*alone),
                _ => tables.push(Self::of(group, first.field)),
            }
            rest = others;
        }
        (tables, left)
    }

    fn of(steps: &[Step<'_>], first: Field) -> Self {
        let mut keys = vec![0u64];
        let mut end = first.shift;
        for Step { field, map } in steps {
            // The columns between do not change; their codes are kept by the mask.
            let below = keys.repeat(1 << (field.shift - end));
            // A column may have fewer codes than its bits can hold.
            let codes = (0..=field.mask).zip(map.iter().copied().chain(std::iter::repeat(0)));
            keys = codes
                .flat_map(|(_, code)| below.iter().map(move |key| key | u64::from(code) << field.shift))
                .collect();
            end = field.end();
        }
        Self { word: first.word, shift: first.shift, mask: keys.len() - 1, keys }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the mask is that of an index")]
    fn put<const W: usize>(&self, entry: &[u64], key: &mut [u64; W]) {
        key[self.word] |= self.keys[(entry[self.word] >> self.shift) as usize & self.mask];
    }
}

/// Merges the `source` entries that become equal under `steps`; `keep` masks the bits of all other
/// columns. Returns `None` if there would be more than `at_most` classes.
pub(super) fn roll_up(
    source: &Classes,
    keep: &[u64],
    steps: &[Step<'_>],
    at_most: usize,
    scratch: &mut Scratch,
) -> Result<Option<Classes>> {
    let at_most = at_most.min(EMPTY as usize - 1);
    let needs_target = !source.sensitive.is_empty() || source.members.is_some();
    let merge = match source.words {
        1 => merge::<1>,
        2 => merge::<2>,
        4 => merge::<4>,
        8 => merge::<8>,
        16 => merge::<16>,
        _ => merge::<32>,
    };
    if merge(&source.entries, keep, steps, at_most, needs_target, scratch)?.is_none() {
        if at_most == EMPTY as usize - 1 {
            return Err(too_many_classes());
        }
        return Ok(None);
    }
    scratch.for_members(source)?;
    let Scratch { entries, target, seen, .. } = scratch;
    regrouped(source, entries, source.words, target, seen).map(Some)
}

/// Merges the classes of `source` that have the same number in `target`, which is below `classes`.
/// The key of a merged class is its number.
pub(super) fn merge_by_number(source: &Classes, target: &[u32], classes: usize) -> Result<Classes> {
    let mut held = Held::new(source.held.budget());
    held.at_least(classes * 2 * size_of::<u64>())?;
    let mut entries: Vec<u64> = (0..classes as u64).flat_map(|number| [number, 0]).collect();
    for (class, rows) in target.iter().zip(source.rows()) {
        entries[*class as usize * 2 + 1] += rows;
    }
    let mut scratch = Scratch::new(source.held.budget());
    scratch.for_members(source)?;
    regrouped(source, &entries, 1, target, &mut scratch.seen)
}

/// Returns the classes with these keys and rows, and what the source classes merged into them hold.
/// Each list is reserved before it is made.
fn regrouped(
    source: &Classes,
    entries: &[u64],
    words: usize,
    target: &[u32],
    seen: &mut Vec<u32>,
) -> Result<Classes> {
    let classes = entries.len() / (words + 1);
    let mut held = Held::new(source.held.budget());
    held.at_least(size_of_val(entries))?;
    let entries = entries.to_vec();
    let mut for_groups = Held::new(source.held.budget());
    let needs_groups = |histograms: &Histograms| histograms.cells(classes).is_none();
    let groups = if source.members.is_some() || source.sensitive.iter().any(needs_groups) {
        for_groups.at_least(Grouping::most_bytes(target.len(), classes))?;
        Some(Grouping::new(target, classes))
    } else {
        None
    };
    let mut sensitive = Vec::with_capacity(source.sensitive.len());
    for histograms in &source.sensitive {
        sensitive.push(match (histograms.cells(classes), &groups) {
            (Some(cells), _) => histograms.regrouped_in_a_table(target, classes, cells, &mut held)?,
            (None, Some(groups)) => histograms.regrouped_by_members(groups, &mut held)?,
            (None, None) => return Err(Error::internal("roll-up: classes that are not grouped")),
        });
    }
    let members = source.members.as_ref().zip(groups.as_ref());
    let members = members.map(|(members, groups)| members.regrouped(groups, seen, &mut held)).transpose()?;
    Ok(Classes { entries, words, sensitive, members, held })
}

/// Runs the inner loop; leaves the classes in `scratch.entries` and each source's class in
/// `scratch.target`.
fn merge<const W: usize>(
    source: &[u64],
    keep: &[u64],
    steps: &[Step<'_>],
    at_most: usize,
    needs_target: bool,
    scratch: &mut Scratch,
) -> Result<Option<()>> {
    scratch.entries.clear();
    scratch.for_targets(if needs_target { source.len() / (W + 1) } else { 0 })?;
    let (tables, steps) = Table::of_steps(steps, source.len() / (W + 1));
    let others = (scratch.target.capacity() + scratch.seen.capacity()) * size_of::<u32>();
    let Scratch { slots, entries, target: of_source, held, .. } = scratch;
    let used = slots.len().clamp(LEAST_SLOTS, LEAST_SLOTS * 16);
    slots.clear();
    slots.resize(used, EMPTY);
    let mut keep_words = [0u64; W];
    keep_words.copy_from_slice(keep);
    let mut count = 0usize;
    let mut last_class = EMPTY;
    for entry in source.chunks_exact(W + 1) {
        let mut key = [0u64; W];
        for (word, (from, kept)) in key.iter_mut().zip(entry.iter().zip(&keep_words)) {
            *word = from & kept;
        }
        tables.iter().for_each(|table| table.put(entry, &mut key));
        for step in &steps {
            step.field.put(&mut key, step.map[step.field.get(entry) as usize]);
        }
        // Classes come in key order, so equal ones are often neighbours.
        if last_class != EMPTY {
            let known = &mut entries[last_class as usize * (W + 1)..][..=W];
            if known[..W] == key {
                known[W] += entry[W];
                if needs_target {
                    of_source.push(last_class);
                }
                continue;
            }
        }
        let last = slots.len() - 1;
        let mut at = mix(&key) & last;
        let class = loop {
            let slot = slots[at];
            if slot == EMPTY {
                if count == at_most {
                    return Ok(None);
                }
                // `count` is at most EMPTY - 1, by the bound on `at_most`.
                let class = u32::try_from(count).unwrap_or(EMPTY);
                slots[at] = class;
                if entries.len() + W + 1 > entries.capacity() {
                    let room = (entries.len() / 2 * 3).max(LEAST_SLOTS * (W + 1));
                    let slots = slots.capacity() * size_of::<u32>();
                    held.at_least(others + slots + room * size_of::<u64>())?;
                    entries.reserve_exact(room - entries.len());
                }
                entries.extend_from_slice(&key);
                entries.push(entry[W]);
                count += 1;
                if count * 2 > slots.len() {
                    // The slots grow fourfold.
                    let slots_then = slots.capacity().max(slots.len() * 4) * size_of::<u32>();
                    held.at_least(others + slots_then + entries.capacity() * size_of::<u64>())?;
                    grow::<W>(slots, entries);
                }
                break class;
            }
            let known = &mut entries[slot as usize * (W + 1)..][..=W];
            if known[..W] == key {
                known[W] += entry[W];
                break slot;
            }
            at = (at + 1) & last;
        };
        last_class = class;
        if needs_target {
            of_source.push(class);
        }
    }
    Ok(Some(()))
}

/// Grows the hash index to four times the slots.
fn grow<const W: usize>(slots: &mut Vec<u32>, entries: &[u64]) {
    let len = slots.len() * 4;
    slots.clear();
    slots.resize(len, EMPTY);
    for (class, entry) in (0u32..).zip(entries.chunks_exact(W + 1)) {
        let mut key = [0u64; W];
        key.copy_from_slice(&entry[..W]);
        let mut at = mix(&key) & (len - 1);
        while slots[at] != EMPTY {
            at = (at + 1) & (len - 1);
        }
        slots[at] = class;
    }
}

/// Hashes a packed key; only the speed of a roll-up depends on the quality.
#[expect(clippy::cast_possible_truncation, reason = "a hash may lose bits")]
fn mix<const W: usize>(key: &[u64; W]) -> usize {
    let hash = key.iter().fold(0x9E37_79B9_7F4A_7C15u64, |hash, word| {
        let product = u128::from(hash ^ word) * 0xD6E8_FEB8_6659_FD93;
        (product >> 64) as u64 ^ product as u64
    });
    hash as usize
}

/// Compares the result with a plain map, since every mistake here would be silent.
#[cfg(test)]
mod tests {
    use super::super::Unlimited;
    use super::super::packing::Packing;
    use super::*;
    use std::collections::BTreeMap;

    fn budget() -> Arc<dyn Budget> {
        Arc::new(Unlimited)
    }

    /// Many classes in `words` words whose lowest word is a number below `distinct`.
    fn source(words: usize, rows: u64, distinct: u64) -> Classes {
        let mut entries = Vec::new();
        for row in 0..rows {
            let code = row * 7 % distinct;
            entries.extend((0..words).map(|word| if word == 0 { code } else { row }));
            entries.push(row % 3 + 1);
        }
        Classes { entries, words, sensitive: Vec::new(), members: None, held: Held::new(&budget()) }
    }

    #[test]
    fn every_width_adds_up_what_becomes_equal() {
        let mut scratch = Scratch::new(&budget());
        for words in super::super::packing::WIDTHS {
            for (rows, distinct) in [(0, 1), (1, 1), (5_000, 17), (5_000, 4_999)] {
                let source = source(words, rows, distinct);
                let map: Vec<u32> = (0..u32::try_from(distinct).unwrap()).map(|code| code / 2).collect();
                let steps = [Step { field: Field { word: 0, shift: 0, mask: (1 << 13) - 1 }, map: &map }];
                let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
                for entry in source.entries.chunks_exact(words + 1) {
                    *expected.entry(entry[0] / 2).or_default() += entry[words];
                }
                let keep = vec![0; words];
                let rolled = roll_up(&source, &keep, &steps, usize::MAX, &mut scratch).unwrap().unwrap();
                let got: BTreeMap<u64, u64> =
                    rolled.entries.chunks_exact(words + 1).map(|entry| (entry[0], entry[words])).collect();
                assert_eq!((rolled.len(), got), (expected.len(), expected.clone()));
                let capped = |most| roll_up(&source, &keep, &steps, most, &mut Scratch::new(&budget()));
                assert!(capped(expected.len()).unwrap().is_some());
                assert!(expected.is_empty() || capped(expected.len() - 1).unwrap().is_none());
            }
        }
    }

    #[test]
    fn neighbouring_columns_are_mapped_as_each_alone_would_be() {
        // The second and the fifth column stay as they are; the last is too wide for a table.
        let sizes = [5u32, 3, 17, 2, 12, 9, 5_000];
        let unchanged = [1, 4];
        let packing = Packing::new(sizes.iter().map(|size| *size as usize)).unwrap();
        let maps = sizes.map(|size| (0..size).map(|code| code / 2).collect::<Vec<u32>>());
        let changed = || (0..sizes.len()).filter(|column| !unchanged.contains(column));
        let steps: Vec<_> =
            changed().map(|column| Step { field: packing.field(column), map: &maps[column] }).collect();
        let mut keep = vec![u64::MAX];
        steps.iter().for_each(|step| keep[0] &= !(step.field.mask << step.field.shift));
        for rows in [1, 10, 200, 9_000u32] {
            assert_eq!(Table::of_steps(&steps, rows as usize).0.is_empty(), rows <= 200);
            let mut entries = Vec::new();
            let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
            for row in 0..rows {
                let code =
                    |column: usize| row.wrapping_mul(2_654_435_761) / (column as u32 + 1) % sizes[column];
                let (mut key, mut coarser) = ([0u64], [0u64]);
                for column in 0..sizes.len() {
                    packing.field(column).put(&mut key, code(column));
                    let to = if unchanged.contains(&column) { code(column) } else { code(column) / 2 };
                    packing.field(column).put(&mut coarser, to);
                }
                entries.extend([key[0], 1]);
                *expected.entry(coarser[0]).or_default() += 1;
            }
            let source = Classes {
                entries,
                words: 1,
                sensitive: Vec::new(),
                members: None,
                held: Held::new(&budget()),
            };
            let rolled = roll_up(&source, &keep, &steps, usize::MAX, &mut Scratch::new(&budget()));
            let rolled = rolled.unwrap().unwrap();
            let got = rolled.entries.chunks_exact(2).map(|entry| (entry[0], entry[1]));
            assert_eq!(got.collect::<BTreeMap<_, _>>(), expected);
        }
    }
}
