//! An encoded quasi-identifier: its distinct values, and its labels at every level.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};

use super::encoder::Encoder;
use super::{Budget, Held, QuasiColumn};
use crate::decimal::ratio;
use crate::error::{Error, Result};
use crate::generalize::{Hierarchy, Value, apply};

/// A column's distinct values and labels as codes, both in the order of the values: that of a
/// hierarchy file's leaves, else that of the type (numbers as numbers, dates as dates), NULL first.
/// The label whose least value is smaller has the smaller code. Its `Debug` shows no cell.
pub struct EncodedColumn {
    name: String,
    hierarchy: Hierarchy,
    weight: f64,
    values: ArrayRef,
    levels: Vec<EncodedLevel>,
    leaves: u64,
    /// The place of each level-0 code among all leaves.
    places: Vec<u32>,
    /// The bits that level 0 removes from a row with each of its labels.
    removed: Vec<f64>,
}

/// One level of an [`EncodedColumn`]. Its `Debug` shows no cell.
pub struct EncodedLevel {
    labels: ArrayRef,
    of_value: Vec<u32>,
    leaves: Vec<u64>,
    rows: Vec<u64>,
    most_leaves: u64,
    covered: u128,
    entropy: f64,
    to_coarser: Vec<Vec<u32>>,
}

impl fmt::Debug for EncodedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "EncodedColumn(`{}`, {} values, {} levels)",
            self.name,
            self.values.len(),
            self.levels.len()
        )
    }
}

impl fmt::Debug for EncodedLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedLevel({} labels)", self.labels.len())
    }
}

impl EncodedLevel {
    /// Returns the labels in code order.
    pub fn labels(&self) -> &ArrayRef {
        &self.labels
    }

    /// Returns the number of leaves below each label, by code.
    pub fn leaves(&self) -> &[u64] {
        &self.leaves
    }

    /// Returns the number of input rows with each label, by code.
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// Returns the label code of each distinct input value.
    pub fn of_value(&self) -> &[u32] {
        &self.of_value
    }
}

impl EncodedColumn {
    /// Generalizes the distinct `values` to every level and encodes the labels. `frequency` holds
    /// the number of rows of each value.
    pub(super) fn new(
        column: QuasiColumn,
        values: ArrayRef,
        frequency: &[u64],
        heaviest: f64,
        budget: &Arc<dyn Budget>,
    ) -> Result<Self> {
        let QuasiColumn { name, hierarchy, weight } = column;
        // Accounts for the codes until the caller accounts for the finished column.
        let mut held = Held::new(budget);
        let mut bytes = 0;
        let mut coded: Vec<(ArrayRef, Vec<u32>)> = Vec::new();
        for level in hierarchy.levels() {
            let labels = apply(&**level, &values)
                .map_err(|e| Error::of_policy(e).at(format!("columns.{name}.hierarchy")))?;
            let (distinct, codes) = code(&labels, budget)?;
            bytes += distinct.get_array_memory_size() + codes.capacity() * size_of::<u32>();
            held.at_least(bytes + labels.get_array_memory_size())?;
            coded.push((distinct, codes));
        }
        // A map of label codes for each pair of levels, and the leaves and rows of each label.
        let maps = coded
            .iter()
            .zip(1..)
            .map(|((labels, _), levels)| labels.len() * (levels * size_of::<u32>() + 40));
        held.at_least(bytes + maps.sum::<usize>() + 2 * values.len() * size_of::<u64>())?;
        // Values that a clip merges count as one, those that `merge` joins do not.
        let leaf_count = coded.first().map_or(0, |(leaves, _)| leaves.len());
        let of_leaf = |level: usize| map_codes(&coded[0].1, &coded[level].1, leaf_count);
        let of_leaf = (0..coded.len()).map(of_leaf).collect::<Result<Vec<_>>>()?;
        let mut leaf_rows = vec![0u64; leaf_count];
        coded[0].1.iter().zip(frequency).for_each(|(leaf, n)| leaf_rows[*leaf as usize] += n);
        let (leaf_counts, total) = leaf_counts(&hierarchy, &coded, &of_leaf, &values);
        let mut removed = vec![0.0; leaf_count];
        if joins(&hierarchy, leaf_count, &values) {
            for (code, rows) in coded[0].1.iter().zip(frequency) {
                let all = leaf_rows[*code as usize];
                removed[*code as usize] += bits(*rows, all) / ratio(u128::from(all), 1);
            }
        }
        let places = places(&hierarchy, &values, &coded[0].1, leaf_count)?;
        let mut levels: Vec<EncodedLevel> = Vec::new();
        for (level, leaves) in leaf_counts.into_iter().enumerate() {
            let labels = ArrayRef::clone(&coded[level].0);
            let to_coarser = (level..coded.len())
                .map(|coarser| map_codes(&coded[level].1, &coded[coarser].1, labels.len()))
                .collect::<Result<_>>()?;
            let of_value = std::mem::take(&mut coded[level].1);
            let covered = of_value
                .iter()
                .zip(frequency)
                .map(|(label, rows)| u128::from(*rows) * u128::from(leaves[*label as usize]))
                .sum();
            let most_leaves = leaves.iter().copied().max().unwrap_or(0);
            let mut rows = vec![0u64; labels.len()];
            of_value.iter().zip(frequency).for_each(|(label, n)| rows[*label as usize] += n);
            let entropy = entropy(&of_leaf[level], &rows, &leaf_rows, &removed);
            levels.push(EncodedLevel {
                labels,
                of_value,
                leaves,
                rows,
                most_leaves,
                covered,
                entropy,
                to_coarser,
            });
        }
        let weight = weight / heaviest;
        Ok(Self { name, hierarchy, weight, values, levels, leaves: total, places, removed })
    }

    /// Returns the column's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the column's hierarchy.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// Returns the column's weight, divided by the largest weight.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Sets the weight to 0.
    pub(super) fn weigh_nothing(&mut self) {
        self.weight = 0.0;
    }

    /// Returns the distinct input values in order, NULL first. Level 0 may give several of them one label.
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Returns H, the number of the top level.
    pub fn height(&self) -> usize {
        self.levels.len() - 1
    }

    /// Returns the codes of one level.
    pub fn level(&self, level: usize) -> &EncodedLevel {
        &self.levels[level]
    }

    /// Returns the number of distinct level-0 labels in the input; NULL counts as one.
    pub fn distinct(&self) -> usize {
        self.levels[0].labels.len()
    }

    /// Returns whether level 0 joins values that count each for itself: those that `merge` found few to
    /// hold.
    pub(crate) fn joins_values(&self) -> bool {
        joins(&self.hierarchy, self.distinct(), &self.values)
    }

    /// Returns the number of the column's own values: those of the input where level 0 joins values that
    /// count each for itself, else its level-0 codes.
    pub(crate) fn own_values(&self) -> usize {
        if self.joins_values() { self.values.len() } else { self.distinct() }
    }

    /// Returns the level-0 code of an own value.
    pub(crate) fn own_code(&self, own: u32) -> u32 {
        if self.joins_values() { self.levels[0].of_value[own as usize] } else { own }
    }

    /// Returns the label of each own value at a level.
    ///
    /// # Errors
    /// An internal error for an unknown level.
    pub(crate) fn own_labels(&self, level: usize) -> Result<&[u32]> {
        if self.joins_values() { Ok(&self.level(level).of_value) } else { self.map(0, level) }
    }

    /// Returns how many steps a level is above the values, and the top: level 0 is the first step if
    /// it joins values.
    pub fn steps(&self, level: usize) -> [u64; 2] {
        [level, self.height()].map(|level| level as u64 + u64::from(self.joins_values()))
    }

    /// Returns the number of leaves below these level-0 codes.
    pub(super) fn leaves_of(&self, codes: &[u32]) -> u64 {
        match self.joins_values() {
            true => codes.iter().map(|code| self.leaves_below(*code)).sum(),
            false => codes.len() as u64,
        }
    }

    /// Returns the number of leaves below a level-0 code.
    pub(crate) fn leaves_below(&self, code: u32) -> u64 {
        self.levels[0].leaves[code as usize]
    }

    /// Returns the sum over all rows of the number of leaves below the row's label at `level`.
    pub fn covered(&self, level: usize) -> u128 {
        self.levels[level].covered
    }

    /// Returns the largest number of leaves below a label of `level` that occurs.
    pub fn most_leaves(&self, level: usize) -> u64 {
        self.levels[level].most_leaves
    }

    /// Returns the bits of information that `level` removes from the column:
    /// `-sum_x f(x) log2(f(x) / F(label of x))` over the leaves x, where f and F
    /// count rows.
    pub fn entropy(&self, level: usize) -> f64 {
        self.levels[level].entropy
    }

    /// Returns D, the number of leaves of the hierarchy.
    pub fn leaves(&self) -> u64 {
        self.leaves
    }

    /// Returns the number of leaves from one level-0 code to another one, both included.
    pub(super) fn leaves_between(&self, first: u32, last: u32) -> u64 {
        let [first, last] = [first, last].map(|code| u64::from(self.places[code as usize]));
        last.saturating_sub(first) + 1
    }

    /// Returns the bytes that the codes take.
    pub(super) fn bytes(&self) -> usize {
        let of_level = |level: &EncodedLevel| {
            let maps: usize = level.to_coarser.iter().map(|map| map.capacity() * size_of::<u32>()).sum();
            let codes =
                level.of_value.capacity() * size_of::<u32>() + 2 * level.leaves.capacity() * size_of::<u64>();
            maps + codes + level.labels.get_array_memory_size()
        };
        let places = self.places.capacity() * (size_of::<u32>() + size_of::<f64>());
        self.values.get_array_memory_size() + places + self.levels.iter().map(of_level).sum::<usize>()
    }

    /// Returns the map of label codes at level `from` to label codes at level `to`.
    pub(crate) fn map(&self, from: usize, to: usize) -> Result<&[u32]> {
        let at = to.checked_sub(from).ok_or_else(|| Error::internal("roll-up: the target is finer"))?;
        let map = self.levels.get(from).and_then(|level| level.to_coarser.get(at));
        map.map(Vec::as_slice).ok_or_else(|| Error::internal("roll-up: no such level"))
    }

    /// Returns the same column where each level-0 code has these rows. Its `of_value` and `values`
    /// stay those of all rows.
    pub(super) fn among(&self, leaf_rows: &[u64]) -> Self {
        let levels = self.levels.iter().zip(&self.levels[0].to_coarser).map(|(level, of_leaf)| {
            let mut rows = vec![0u64; level.labels.len()];
            of_leaf.iter().zip(leaf_rows).for_each(|(label, n)| rows[*label as usize] += n);
            let there = || rows.iter().zip(&level.leaves).filter(|(rows, _)| **rows > 0);
            EncodedLevel {
                labels: ArrayRef::clone(&level.labels),
                of_value: level.of_value.clone(),
                leaves: level.leaves.clone(),
                most_leaves: there().map(|(_, leaves)| *leaves).max().unwrap_or(0),
                covered: there().map(|(rows, leaves)| u128::from(*rows) * u128::from(*leaves)).sum(),
                entropy: entropy(of_leaf, &rows, leaf_rows, &self.removed),
                to_coarser: level.to_coarser.clone(),
                rows,
            }
        });
        Self {
            name: self.name.clone(),
            hierarchy: self.hierarchy.clone(),
            weight: self.weight,
            values: ArrayRef::clone(&self.values),
            levels: levels.collect(),
            leaves: self.leaves,
            places: self.places.clone(),
            removed: self.removed.clone(),
        }
    }

    /// Returns the value of each level-0 code as a number of the clip, if there is one: of the values
    /// that have the same code any one, because they are clipped to the same bound.
    ///
    /// # Errors
    /// An internal error if the values cannot be read.
    pub(crate) fn clipped_values(&self) -> Result<Vec<Value>> {
        let mut values = vec![Value::Null; self.distinct()];
        for (at, code) in self.levels[0].of_value.iter().enumerate() {
            values[*code as usize] = self.hierarchy.clipped_value(&Value::read(&self.values, at)?)?;
        }
        Ok(values)
    }

    /// Returns the level-0 codes below each label of a level, in order, by the label's code.
    ///
    /// # Errors
    /// An internal error for an unknown level.
    pub(crate) fn values_by_label(&self, level: usize) -> Result<Vec<Vec<u32>>> {
        let mut values = vec![Vec::new(); self.level(level).labels.len()];
        let labels = (0u32..).zip(self.map(0, level)?);
        labels.for_each(|(value, label)| values[*label as usize].push(value));
        Ok(values)
    }
}

/// Returns the distinct labels in the order of their first appearance, and the code of each given label.
fn code(labels: &ArrayRef, budget: &Arc<dyn Budget>) -> Result<(ArrayRef, Vec<u32>)> {
    let coder = Encoder::new(budget);
    let codes = coder.code(labels)?;
    Ok((coder.finish()?.unwrap_or_else(|| ArrayRef::clone(labels)), codes))
}

/// Maps each label code of a level to its code at a coarser level. Levels that do not nest are an
/// internal error here, because the policy was checked.
fn map_codes(finer: &[u32], coarser: &[u32], labels: usize) -> Result<Vec<u32>> {
    let mut map = vec![u32::MAX; labels];
    for (from, to) in finer.iter().zip(coarser) {
        let slot = &mut map[*from as usize];
        if *slot != u32::MAX && *slot != *to {
            return Err(Error::internal("encoded column: a level is not a function of the level below it"));
        }
        *slot = *to;
    }
    Ok(map)
}

/// Computes [`EncodedColumn::entropy`], summed in the order of level-0 codes. `removed` holds the bits
/// that level 0 removes from a row with each of them.
fn entropy(of_leaf: &[u32], below: &[u64], frequency: &[u64], removed: &[f64]) -> f64 {
    let codes = of_leaf.iter().zip(frequency).zip(removed).filter(|((_, rows), _)| **rows > 0);
    let bits = codes.map(|((label, rows), removed)| {
        bits(*rows, below[*label as usize]) + ratio(u128::from(*rows), 1) * removed
    });
    // Starts from +0.0 because an empty sum of floats is -0.0.
    bits.fold(0.0, |sum, bits| sum + bits)
}

/// Computes `-f log2(f / F)`; 0 for no row.
fn bits(rows: u64, of: u64) -> f64 {
    let rows = u128::from(rows);
    if rows == 0 { 0.0 } else { -ratio(rows, 1) * ratio(rows, u128::from(of)).log2() }
}

/// Returns whether level 0 of a hierarchy, with so many labels, joins values that count each for itself.
fn joins(hierarchy: &Hierarchy, labels: usize, values: &ArrayRef) -> bool {
    hierarchy.is_merged() && labels < values.len()
}

/// Returns the place of each of the `leaves` level-0 codes among all leaves: that of the hierarchy
/// file, after one for NULL if it occurs, else its own number.
fn places(hierarchy: &Hierarchy, values: &ArrayRef, codes: &[u32], leaves: usize) -> Result<Vec<u32>> {
    let Some(positions) = hierarchy.leaf_positions(values)? else {
        return (0..leaves).map(|code| u32::try_from(code).map_err(Error::internal)).collect();
    };
    let nulls = u32::from(values.null_count() > 0);
    let mut places = vec![0; leaves];
    for (code, position) in codes.iter().zip(&positions) {
        places[*code as usize] = position.map_or(0, |position| position + nulls);
    }
    Ok(places)
}

/// Counts the leaves below each label of each level, and all leaves (D): the rows of the hierarchy
/// file, if there is one (plus one for NULL, if it occurs), else the distinct level-0 labels. Where
/// `merge` joins values at level 0, the leaves are all `of_input`.
fn leaf_counts(
    hierarchy: &Hierarchy,
    coded: &[(ArrayRef, Vec<u32>)],
    of_leaf: &[Vec<u32>],
    of_input: &ArrayRef,
) -> (Vec<Vec<u64>>, u64) {
    if coded.first().is_some_and(|(labels, _)| joins(hierarchy, labels.len(), of_input)) {
        let count = |(labels, codes): &(ArrayRef, Vec<u32>)| {
            let mut counts = vec![0; labels.len()];
            codes.iter().for_each(|code| counts[*code as usize] += 1);
            counts
        };
        return (coded.iter().map(count).collect(), of_input.len() as u64);
    }
    let values = coded.first().map_or(0, |(values, _)| values.len() as u64);
    let nulls = coded.first().map_or(0, |(values, _)| u64::from(values.null_count() > 0));
    let in_file = hierarchy.levels().iter().find_map(|level| level.all_leaves());
    let all = in_file.map_or(values, |rows| rows + nulls);
    let top = hierarchy.height();
    let counts = hierarchy.levels().iter().zip(coded).zip(of_leaf).enumerate().map(
        |(number, ((level, (labels, _)), codes))| match level.leaves(labels) {
            Some(counts) => counts,
            None if number == 0 => vec![1; labels.len()],
            None if number == top => vec![all; labels.len()],
            None => {
                let mut counts = vec![0; labels.len()];
                codes.iter().for_each(|code| counts[*code as usize] += 1);
                counts
            }
        },
    );
    (counts.collect(), all)
}

#[cfg(test)]
#[path = "encoded_column_tests.rs"]
mod tests;
