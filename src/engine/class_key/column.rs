//! What the values of a column add to the two sums of a [class key](super).
//!
//! A key is a sum over the columns, so the contribution of a value is computed apart from its rows: for a
//! dictionary once per entry, for all batches that share the dictionary.

use std::hash::Hasher;
use std::sync::Arc;

use arrow::array::{AnyDictionaryArray, Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::Int32Type;
use datafusion::error::Result;
use hashbrown::HashMap;
use siphasher::sip::SipHasher13;

use super::limbs::{Limbs, NULL, limbs_of};
use super::{P, Seed};
use crate::engine::bits;
use crate::engine::per_dictionary::PerDictionary;

/// Two sums of a row, each below 2^61 + 8.
pub(super) type Sums = [u64; 2];

/// What a value of a column adds to the two sums of a row, each below 2^63 and to be taken modulo p.
type Contribution = [u64; 2];

/// What the entries of a dictionary contribute, computed once for all batches that have it.
pub(super) type KnownContributions = PerDictionary<(Seed, u64), Arc<EntryContributions>>;

/// A column of a batch.
pub(super) struct Column {
    values: ArrayRef,
    /// What the entries contribute if the values are a dictionary.
    entries: Option<Arc<EntryContributions>>,
    seed: Seed,
    coefficients: Coefficients,
}

impl Column {
    /// Creates the column with this number.
    ///
    /// # Errors
    /// An internal error for a type that has no keys.
    pub(super) fn new(
        seed: Seed,
        number: u64,
        values: &ArrayRef,
        known: &KnownContributions,
    ) -> Result<Self> {
        let coefficients = Coefficients::new(seed, number);
        let Some(dictionary) = values.as_any_dictionary_opt() else {
            return Ok(Self { values: Arc::clone(values), entries: None, seed, coefficients });
        };
        let entries = dictionary.values();
        let make = || Ok(Arc::new(EntryContributions::new(coefficients.contributions_of(seed, entries)?)));
        let contributions = match entries.is_empty() {
            true => None,
            false => known.get((seed, number), entries, make)?,
        };
        let values = match contributions {
            Some(_) => Arc::clone(values),
            None => take(entries, dictionary.keys(), None)?,
        };
        Ok(Self { values, entries: contributions, seed, coefficients })
    }

    /// Adds what the rows from `first` on contribute.
    ///
    /// # Errors
    /// An internal error for a type that has no keys.
    pub(super) fn add_to(&self, sums: &mut [Sums], first: usize) -> Result<()> {
        let values = self.values.slice(first, sums.len());
        match (values.as_any_dictionary_opt(), self.entries.as_deref()) {
            (Some(rows), Some(entries)) => entries.add_rows(sums, rows, self.coefficients.of(NULL)),
            _ => add(sums, self.coefficients.contributions_of(self.seed, &values)?.into_iter()),
        }
        Ok(())
    }
}

/// Adds what each row contributes.
fn add(sums: &mut [Sums], contributions: impl Iterator<Item = Contribution>) {
    // The number is below 2^61 + 8 + 2^63.
    let reduced = |sum: u64| (sum & P) + (sum >> 61);
    for (sums, [a, b]) in sums.iter_mut().zip(contributions) {
        *sums = [reduced(sums[0] + a), reduced(sums[1] + b)];
    }
}

/// Adds the contribution of each row's entry. `of_entry(usize::MAX)` must be that of NULL; no dictionary has so many
/// entries.
fn add_entries(sums: &mut [Sums], rows: &dyn AnyDictionaryArray, of_entry: impl Fn(usize) -> Contribution) {
    let keys = rows.keys();
    match keys.as_primitive_opt::<Int32Type>() {
        // Parquet's dictionaries.
        Some(keys) => {
            let of_key = |key: &i32| of_entry(usize::try_from(*key).unwrap_or(usize::MAX));
            match keys.nulls() {
                None => add(sums, keys.values().iter().map(of_key)),
                Some(nulls) => add(sums, with_nulls(keys.values().to_vec(), nulls, -1).iter().map(of_key)),
            }
        }
        None => {
            let entries = rows.normalized_keys().into_iter().enumerate();
            let of_row = |(row, entry)| of_entry(if keys.is_null(row) { usize::MAX } else { entry });
            add(sums, entries.map(of_row));
        }
    }
}

/// Puts `null` into the places of NULLs.
fn with_nulls<T: Copy>(mut values: Vec<T>, nulls: &NullBuffer, null: T) -> Vec<T> {
    for row in (!nulls.inner()).set_indices() {
        if let Some(value) = values.get_mut(row) {
            *value = null;
        }
    }
    values
}

/// What the entries of a dictionary contribute.
pub(super) enum EntryContributions {
    /// The contribution of each entry.
    Each(Vec<Contribution>),
    /// The group of each entry and the contribution of each group, where entries repeat, as codes do. This has an
    /// eighth to a quarter of the bytes of the contributions of each, so more of it stays in the cache.
    Grouped { group_of: Vec<u16>, contributions: Vec<Contribution> },
}

impl EntryContributions {
    /// The least average number of entries of a group for which grouping pays.
    const ENTRIES_PER_GROUP: usize = 8;

    fn new(of_each: Vec<Contribution>) -> Self {
        let most_groups = of_each.len() / Self::ENTRIES_PER_GROUP;
        let (mut group_numbers, mut contributions) = (HashMap::new(), Vec::new());
        let mut group_of = Vec::with_capacity(of_each.len());
        for contribution in &of_each {
            let Ok(next) = u16::try_from(contributions.len()) else { return Self::Each(of_each) };
            let group = *group_numbers.entry(*contribution).or_insert(next);
            if group == next {
                contributions.push(*contribution);
            }
            if contributions.len() > most_groups {
                return Self::Each(of_each);
            }
            group_of.push(group);
        }
        Self::Grouped { group_of, contributions }
    }

    /// Adds the contribution of each row, `null` where it has none of the entries.
    fn add_rows(&self, sums: &mut [Sums], rows: &dyn AnyDictionaryArray, null: Contribution) {
        match self {
            Self::Each(of_each) => {
                add_entries(sums, rows, |entry| of_each.get(entry).copied().unwrap_or(null));
            }
            Self::Grouped { group_of, contributions } => {
                let of_entry = |entry| contributions.get(usize::from(*group_of.get(entry)?)).copied();
                add_entries(sums, rows, |entry| of_entry(entry).unwrap_or(null));
            }
        }
    }
}

/// The random coefficients of a column.
struct Coefficients {
    first: Limbs,
    second: Limbs,
}

impl Coefficients {
    /// Returns those of the column with this number.
    fn new(seed: Seed, column: u64) -> Self {
        let below_p = |number: u64| {
            let mut hasher = SipHasher13::new_with_keys(seed[0], seed[1]);
            hasher.write_u64(number);
            (hasher.finish() >> 3) % P
        };
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| below_p(4 * column + at));
        Self { first: [a, b], second: [c, d] }
    }

    fn of(&self, limbs: Limbs) -> Contribution {
        // A product is below 2^122, their sum below 2^123.
        [self.first, self.second].map(|[a, b]| folded(product(a, limbs[0]) + product(b, limbs[1])))
    }

    /// As [`of`](Self::of), for a second limb of 0.
    fn of_single_limb(&self, limb: u64) -> Contribution {
        [folded(product(self.first[0], limb)), folded(product(self.second[0], limb))]
    }

    /// Returns what each value contributes.
    fn contributions_of(&self, seed: Seed, values: &dyn Array) -> Result<Vec<Contribution>> {
        let numbers = match values.data_type().primitive_width() {
            Some(..=4) => bits::map_each(values, |bits| self.of_single_limb(bits)),
            _ => bits::map_each(values, |bits| self.of([bits & 0xFFFF_FFFF, bits >> 32])),
        };
        Ok(match (numbers, values.nulls()) {
            (Some(numbers), None) => numbers,
            (Some(numbers), Some(nulls)) => with_nulls(numbers, nulls, self.of(NULL)),
            (None, _) => limbs_of(seed, values)?.into_iter().map(|limbs| self.of(limbs)).collect(),
        })
    }
}

fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// Returns a number congruent modulo p to one below 2^123, since 2^61 is congruent to 1. It is below 2^63.
#[inline]
fn folded(sum: u128) -> u64 {
    let [low, high] = [sum, sum >> 61].map(|part| part & u128::from(u64::MAX));
    let [low, high] = [low, high].map(|part| u64::try_from(part).unwrap_or_default());
    (low & P) + high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_grouped_where_few_differ() {
        let entries = |number: usize, groups: u64| -> Vec<Contribution> {
            (0..groups).cycle().take(number).map(|group| [group, 1]).collect()
        };
        let groups_of = |entries: &[Contribution]| match EntryContributions::new(entries.to_vec()) {
            EntryContributions::Each(of_each) => {
                assert_eq!(of_each, entries);
                None
            }
            EntryContributions::Grouped { group_of, contributions } => {
                let back: Vec<_> = group_of.iter().map(|group| contributions[usize::from(*group)]).collect();
                assert_eq!(back, entries);
                Some(contributions.len())
            }
        };
        for (number, groups, expected) in [
            (7, 1, None),
            (8, 1, Some(1)),
            (17, 2, Some(2)),
            (17, 3, None),
            (1 << 19, (1 << 16) - 1, Some((1 << 16) - 1)),
            (1 << 20, 1 << 16, None),
        ] {
            assert_eq!(groups_of(&entries(number, groups)), expected, "{number} {groups}");
        }
    }
}
