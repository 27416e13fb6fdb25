//! Builds a [`ClassTable`] from the batches of a GROUP BY.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array, new_empty_array};
use arrow::compute::{sort_to_indices, take};

use super::classes::Classes;
use super::encoded_column::EncodedColumn;
use super::encoder::{Encoder, ranks};
use super::histograms::Histograms;
use super::individuals::{ClassIndividuals, IndividualsByValue, MemberLists};
use super::packing::Packing;
use super::roll_up::{Scratch, roll_up};
use super::{Budget, ClassTable, Held, Individuals, QuasiColumn, too_many_classes};
use crate::error::{Error, Result};
use crate::generalize::Hierarchy;
use crate::model::{Distribution, SensitiveColumn, ValueCount};

/// Builds a [`ClassTable`] from the batches of a GROUP BY over the quasi-identifiers, the counted
/// sensitive columns and the individual column, if there is one. Batches may come in any order.
pub struct ClassTableBuilder {
    columns: Vec<QuasiColumn>,
    sensitive: Vec<SensitiveColumn>,
    counts_individuals: bool,
    /// The encodings of the quasi-identifiers, then of the sensitive columns, then of the
    /// individual.
    coding: Vec<Coding>,
    rows: Vec<u64>,
    held: Held,
    show_values: bool,
    /// The distinct values of each sensitive column, in their order, once they are encoded.
    distinct: Vec<ArrayRef>,
}

/// One column while its values are being encoded.
struct Coding {
    coder: Encoder,
    codes: Vec<u32>,
}

impl Coding {
    /// Returns the distinct values in order and turns each code into its value's position in that
    /// order; `None` without a row.
    fn finish(&mut self) -> Result<Option<ArrayRef>> {
        let Some((values, ranks)) = self.coder.finish_sorted()? else { return Ok(None) };
        self.codes.iter_mut().for_each(|code| *code = ranks[*code as usize]);
        Ok(Some(values))
    }

    /// Returns the `values` in the order of their positions, values without a position (NULL) first,
    /// and changes their codes accordingly.
    fn order_by(&mut self, values: &ArrayRef, positions: &UInt32Array) -> Result<ArrayRef> {
        let order = sort_to_indices(positions, None, None).map_err(Error::internal)?;
        let ranks = ranks(order.values());
        self.codes.iter_mut().for_each(|code| *code = ranks[*code as usize]);
        take(values, &order, None).map_err(Error::internal)
    }
}

impl ClassTableBuilder {
    /// Creates an empty table over these quasi-identifiers that counts the values of these
    /// sensitive columns.
    ///
    /// # Errors
    /// A policy error without a quasi-identifier.
    pub fn new(
        columns: Vec<QuasiColumn>,
        sensitive: Vec<SensitiveColumn>,
        budget: &Arc<dyn Budget>,
    ) -> Result<Self> {
        if columns.is_empty() {
            return Err(Error::policy("no quasi-identifier: give at least one column the role `quasi`"));
        }
        let coding = (0..columns.len() + sensitive.len())
            .map(|_| Coding { coder: Encoder::new(budget), codes: Vec::new() })
            .collect();
        let (rows, held) = (Vec::new(), Held::new(budget));
        Ok(Self {
            columns,
            sensitive,
            counts_individuals: false,
            coding,
            rows,
            held,
            show_values: false,
            distinct: Vec::new(),
        })
    }

    /// Counts individuals instead of rows; the individual column is the last of every batch.
    #[must_use]
    pub fn counting_individuals(mut self) -> Self {
        self.coding.push(Coding { coder: Encoder::new(self.held.budget()), codes: Vec::new() });
        self.counts_individuals = true;
        self
    }

    /// Sets whether an error may show the values that a hierarchy does not cover; no other error
    /// shows a cell.
    #[must_use]
    pub fn showing_values(mut self, show_values: bool) -> Self {
        self.show_values = show_values;
        self
    }

    /// Returns the encoders for [`add_coded`](Self::add_coded): one per quasi-identifier, then one
    /// per sensitive column, in order, then the individual's.
    pub fn coders(&self) -> Vec<Encoder> {
        self.coding.iter().map(|coding| coding.coder.clone()).collect()
    }

    /// Adds groups: one array per quasi-identifier, then one per sensitive column, in order, then
    /// the individual's, and the number of rows of each group. Every group must be added only once.
    ///
    /// # Errors
    /// A data error when memory runs out or a type cannot be grouped.
    pub fn add(&mut self, values: &[ArrayRef], rows: &[u64]) -> Result<()> {
        let coded = self.coding.iter().zip(values).map(|(coding, values)| coding.coder.code(values));
        let coded: Vec<Vec<u32>> = coded.collect::<Result<_>>()?;
        self.add_coded(&coded.iter().map(Vec::as_slice).collect::<Vec<_>>(), rows)
    }

    /// Adds groups as [`add`](Self::add) does, given the codes of the [`coders`](Self::coders)
    /// instead of values.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub fn add_coded(&mut self, codes: &[&[u32]], rows: &[u64]) -> Result<()> {
        if codes.len() != self.coding.len() || codes.iter().any(|codes| codes.len() != rows.len()) {
            return Err(Error::internal("class table: a batch with the wrong number of columns or codes"));
        }
        self.coding.iter_mut().zip(codes).for_each(|(coding, codes)| coding.codes.extend_from_slice(codes));
        self.rows.extend_from_slice(rows);
        let coded: usize = self.coding.iter().map(|coding| coding.codes.capacity() * size_of::<u32>()).sum();
        self.held.at_least(coded + self.rows.capacity() * size_of::<u64>())
    }

    /// Encodes every level and packs the base classes.
    ///
    /// # Errors
    /// The errors of the generalizers (values not covered, overflow), each with its column's name;
    /// a data error when memory runs out.
    pub fn finish(mut self) -> Result<ClassTable> {
        let budget = Arc::clone(self.held.budget());
        let mut codes_held = Held::new(&budget);
        let heaviest = self.columns.iter().map(|c| c.weight).fold(0.0, f64::max);
        let mut columns: Vec<EncodedColumn> = Vec::with_capacity(self.columns.len());
        for (column, coding) in self.columns.drain(..).zip(&mut self.coding) {
            let values = coding.finish()?;
            let values = values.unwrap_or_else(|| new_empty_array(column.hierarchy.input_type()));
            let values = match column.hierarchy.leaf_positions(&values)? {
                Some(positions) => coding.order_by(&values, &positions)?,
                None => values,
            };
            codes_held.at_least(codes_of(&columns) + values.len() * size_of::<u64>())?;
            let mut frequency = vec![0; values.len()];
            coding.codes.iter().zip(&self.rows).for_each(|(code, rows)| frequency[*code as usize] += rows);
            let uncovered =
                if self.show_values { uncovered(&column.hierarchy, &values)? } else { String::new() };
            let coded = EncodedColumn::new(column, values, &frequency, heaviest, &budget)
                .map_err(|e| e.and(&uncovered))?;
            // Base classes are at level 0, which may merge values.
            let level_0 = coded.level(0).of_value();
            coding.codes.iter_mut().for_each(|code| *code = level_0[*code as usize]);
            columns.push(coded);
            codes_held.at_least(codes_of(&columns))?;
        }
        let packing = Packing::new(columns.iter().map(EncodedColumn::distinct)).ok_or_else(|| {
            Error::policy(format!("{} quasi-identifiers are too many to group by", columns.len()))
        })?;
        let mut holders_held = Held::new(&budget);
        if self.counts_individuals {
            holders_held.at_least(self.rows.len() * 3 * size_of::<u64>())?;
        }
        let holders = self.holders()?;
        let individuals = holders.as_ref().map(|holders| holders.individuals(&self.rows));
        let merges = columns.iter().any(EncodedColumn::merges_values);
        let base = self.base(&packing, columns.len(), merges, holders.as_ref(), &budget)?;
        let total_rows = self.rows.iter().sum();
        let sensitive = std::mem::take(&mut self.sensitive);
        let people = individuals.as_ref().map_or(0, |individuals: &Individuals| individuals.count);
        let distribution = |(at, column): (usize, &SensitiveColumn)| {
            let counts = base.distribution(at, people);
            match self.distinct.get(at) {
                Some(values) => column.facts(values)?.add_to(counts),
                None => Ok(counts),
            }
        };
        let distributions: Vec<Distribution> =
            sensitive.iter().enumerate().map(distribution).collect::<Result<_>>()?;
        let sensitive = sensitive.iter().map(SensitiveColumn::to_string).collect();
        codes_held
            .at_least(codes_of(&columns) + distributions.iter().map(Distribution::bytes).sum::<usize>())?;
        Ok(ClassTable {
            columns,
            sensitive,
            packing,
            base,
            total_rows,
            individuals,
            distributions,
            population: None,
            is_part: false,
            _codes: codes_held,
        })
    }

    /// Returns the individual of each group, if individuals are counted.
    fn holders(&mut self) -> Result<Option<GroupHolders>> {
        if !self.counts_individuals {
            return Ok(None);
        }
        let Some(mut coding) = self.coding.pop() else {
            return Err(Error::internal("class table: individuals are counted without their column"));
        };
        let Some(values) = coding.finish()? else { return Ok(Some(GroupHolders::default())) };
        let null = u32::from(values.null_count() > 0);
        let all = u32::try_from(values.len()).map_err(|_| too_many_classes())? - null;
        Ok(Some(GroupHolders {
            all,
            of_group: coding.codes.iter().map(|code| code.checked_sub(null)).collect(),
        }))
    }

    /// Returns the base classes: the groups, merged where they differ only in sensitive values or
    /// individuals, or where level 0 `merges` values.
    fn base(
        &mut self,
        packing: &Packing,
        quasi: usize,
        merges: bool,
        holders: Option<&GroupHolders>,
        budget: &Arc<dyn Budget>,
    ) -> Result<Classes> {
        let (words, groups) = (packing.words(), self.rows.len());
        let mut held = Held::new(budget);
        held.at_least(groups * (words + 1) * size_of::<u64>())?;
        let mut entries = vec![0u64; groups * (words + 1)];
        for (entry, rows) in entries.chunks_exact_mut(words + 1).zip(&self.rows) {
            entry[words] = *rows;
        }
        for (column, coding) in self.coding.iter_mut().take(quasi).enumerate() {
            let field = packing.field(column);
            for (entry, code) in entries.chunks_exact_mut(words + 1).zip(std::mem::take(&mut coding.codes)) {
                field.put(entry, code);
            }
        }
        // Sorted by key, so that a roll-up touches entries that are still in the cache.
        let of_groups = 2 * entries.len() * size_of::<u64>() + groups * size_of::<(u128, u32)>();
        // Each sensitive column has counts; with individuals, each group also has members.
        let counts = (self.coding.len() - quasi) * groups * (size_of::<ValueCount>() + size_of::<usize>());
        let member_bytes =
            holders.map_or(0, |_| (1 + self.coding.len() - quasi) * groups * 2 * size_of::<u64>());
        held.at_least(of_groups + counts + member_bytes)?;
        let order = in_order(&entries, words)?;
        let sorted = order.iter().flat_map(|group| &entries[*group as usize * (words + 1)..][..=words]);
        let entries: Vec<u64> = sorted.copied().collect();
        let mut sensitive = Vec::new();
        let mut members = holders.map(|holders| {
            let of_groups = order.iter().map(|group| holders.of_group[*group as usize]);
            ClassIndividuals {
                individuals: MemberLists::of_groups(of_groups, holders.all),
                by_value: Vec::new(),
            }
        });
        for coding in self.coding.iter_mut().skip(quasi) {
            let Some(values) = coding.finish()? else { continue };
            let null = u32::from(values.null_count() > 0);
            let count = |group: &u32| {
                let (code, rows) = (coding.codes[*group as usize], self.rows[*group as usize]);
                ValueCount { value: code.checked_sub(null), count: rows }
            };
            let counts = order.iter().map(count).collect();
            let codes = u32::try_from(values.len()).map_err(|_| too_many_classes())?;
            if let (Some(members), Some(holders)) = (&mut members, holders) {
                held.at_least(held.bytes + groups * (size_of::<(u64, u32)>() + 2 * size_of::<u64>()))?;
                members.by_value.push(holders.by_value(&coding.codes, null, &order, codes)?);
            }
            sensitive.push(Histograms { starts: (0..=groups).collect(), counts, values: codes });
            coding.codes = Vec::new();
            self.distinct.push(values);
        }
        drop(held);
        let held = Held::new(budget);
        if members.is_none() && self.sensitive.is_empty() && !merges {
            return Classes { entries, words, sensitive, members, held }.accounted();
        }
        sensitive.resize(self.sensitive.len(), Histograms::default());
        let groups = Classes { entries, words, sensitive, members, held }.accounted()?;
        let merged = roll_up(&groups, &vec![u64::MAX; words], &[], usize::MAX, &mut Scratch::new(budget))?;
        merged.ok_or_else(|| Error::internal("class table: an unbounded roll-up hit a bound"))
    }
}

fn codes_of(columns: &[EncodedColumn]) -> usize {
    columns.iter().map(EncodedColumn::bytes).sum()
}

/// The individual of every group.
#[derive(Default)]
struct GroupHolders {
    of_group: Vec<Option<u32>>,
    /// All individual numbers are below this.
    all: u32,
}

impl GroupHolders {
    fn individuals(&self, rows: &[u64]) -> Individuals {
        let mut of_each = vec![0u64; self.all as usize];
        let mut unowned_rows = 0;
        for (holder, rows) in self.of_group.iter().zip(rows) {
            match holder {
                Some(individual) => of_each[*individual as usize] += rows,
                None => unowned_rows += rows,
            }
        }
        let mut by_rows: BTreeMap<u64, u64> = BTreeMap::new();
        of_each.into_iter().for_each(|rows| *by_rows.entry(rows).or_default() += 1);
        Individuals { count: u64::from(self.all), by_rows, unowned_rows }
    }

    /// Numbers the pairs of an individual and a value that occur. Groups are taken in `order`; the
    /// codes of their values begin with `null` (0 or 1) codes for NULL.
    fn by_value(&self, codes: &[u32], null: u32, order: &[u32], values: u32) -> Result<IndividualsByValue> {
        let pair = |group: u32| {
            let (holder, code) = (self.of_group[group as usize]?, codes[group as usize]);
            Some((u64::from(holder) << 32 | u64::from(code), group))
        };
        let groups = u32::try_from(codes.len()).map_err(|_| too_many_classes())?;
        let mut pairs: Vec<(u64, u32)> = (0..groups).filter_map(pair).collect();
        pairs.sort_unstable();
        let mut of_group: Vec<Option<u32>> = vec![None; codes.len()];
        let (mut value_of, mut last) = (Vec::new(), None);
        for (pair, group) in pairs {
            if last.replace(pair) != Some(pair) {
                value_of.push(codes[group as usize].checked_sub(null));
            }
            let number = u32::try_from(value_of.len() - 1).map_err(|_| too_many_classes())?;
            of_group[group as usize] = Some(number);
        }
        let pairs = order.iter().map(|group| of_group[*group as usize]);
        Ok(IndividualsByValue::of_groups(pairs, value_of, values))
    }
}

/// Returns the groups ordered by their keys, the highest word first.
fn in_order(entries: &[u64], words: usize) -> Result<Vec<u32>> {
    let key = |entry: &[u64]| {
        let below = if words > 1 { entry[words - 2] } else { 0 };
        u128::from(entry[words - 1]) << 64 | u128::from(below)
    };
    if u32::try_from(entries.len() / (words + 1)).is_err() {
        return Err(too_many_classes());
    }
    let mut order: Vec<(u128, u32)> = entries.chunks_exact(words + 1).map(key).zip(0u32..).collect();
    // The words below the two that were compared.
    let rest = |group: u32| entries[group as usize * (words + 1)..][..words.saturating_sub(2)].iter().rev();
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| rest(a.1).cmp(rest(b.1))));
    Ok(order.into_iter().map(|(_, group)| group).collect())
}

/// Lists the values that no level covers, for the error of a user who asked to see them.
fn uncovered(hierarchy: &Hierarchy, values: &ArrayRef) -> Result<String> {
    let texts = hierarchy.uncovered(values)?;
    Ok(if texts.is_empty() { String::new() } else { format!(": {}", texts.join(", ")) })
}
