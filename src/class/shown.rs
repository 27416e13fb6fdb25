//! What released classes show among those that are kept.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClassTable, EncodedColumn, Held, Region, ReleasedClasses};
use crate::error::{Error, Result};
use crate::generalize::{Ends, RegionLabel, Value};

/// What regions of a column show among the kept classes. Nothing in it comes from the rows of others.
pub(crate) struct ShownColumn<'a> {
    column: &'a EncodedColumn,
    ends: Ends,
    /// The codes of the kept rows, in order.
    kept: Vec<u32>,
    /// The least and the greatest value of the kept rows, NULL and NaN aside, where no end may show them.
    extremes: Option<(Value, Value)>,
}

impl<'a> ShownColumn<'a> {
    /// Reads the values of the classes that are kept.
    ///
    /// # Errors
    /// An internal error if values cannot be read.
    pub(crate) fn new(
        table: &'a ClassTable,
        released: &ReleasedClasses,
        is_kept: &[bool],
        at: usize,
        ends: Ends,
    ) -> Result<Self> {
        let bases = released.class_of_base().iter().enumerate();
        let kept = bases.filter(|(_, class)| class.is_some_and(|class| is_kept[class as usize]));
        let codes = kept.map(|(base, _)| table.code(table.base(), base, at));
        Self::of_codes(&table.columns()[at], codes, ends)
    }

    /// Reads the values that kept rows have, by their codes, in any order.
    ///
    /// # Errors
    /// An internal error if values cannot be read.
    pub(crate) fn of_codes(
        column: &'a EncodedColumn,
        codes: impl Iterator<Item = u32>,
        ends: Ends,
    ) -> Result<Self> {
        let mut occurs = vec![false; column.distinct()];
        codes.for_each(|code| occurs[code as usize] = true);
        let kept: Vec<u32> =
            (0u32..).zip(occurs).filter(|(_, occurs)| *occurs).map(|(code, _)| code).collect();
        let extremes = match ends {
            Ends::Values | Ends::Cuts => extremes(column, &kept)?,
            Ends::Closed => None,
        };
        Ok(Self { column, ends, kept, extremes })
    }

    /// Returns the label of a region, which [`open`](Self::open) must still be applied to.
    ///
    /// # Errors
    /// An internal error for a region without a kept value.
    pub(crate) fn label(&self, region: &Region) -> Result<RegionLabel> {
        match self.ends {
            Ends::Values | Ends::Closed => region.label_among(self.column, &self.kept),
            Ends::Cuts => region.label_of_cuts(self.column, &self.kept),
        }
    }

    /// Returns a label without an end at the least or the greatest kept value, where these may not show.
    pub(crate) fn open(&self, label: RegionLabel) -> RegionLabel {
        match &self.extremes {
            Some((least, greatest)) => label.without_ends_at(least, greatest),
            None => label,
        }
    }
}

/// Returns the least and the greatest value with these codes, NULL and NaN aside.
fn extremes(column: &EncodedColumn, kept: &[u32]) -> Result<Option<(Value, Value)>> {
    let value = |place: Option<usize>| {
        let place = place.ok_or_else(|| Error::internal("shown: a label without a value"))?;
        Value::read(column.values(), place)
    };
    // Codes are in the order of the values, and several values may share a label of level 0.
    let labels = column.level(0).of_value();
    let least = |code: u32| value(labels.iter().position(|label| *label == code));
    let greatest = |code: u32| value(labels.iter().rposition(|label| *label == code));
    // NULL has the first code, NaN the last.
    let kept = column.without_null(kept);
    let Some((last, below)) = kept.split_last() else { return Ok(None) };
    let is_nan = matches!(greatest(*last)?, Value::Float(last) if last.is_nan());
    let kept = if is_nan { below } else { kept };
    let (Some(first), Some(last)) = (kept.first(), kept.last()) else { return Ok(None) };
    Ok(Some((least(*first)?, greatest(*last)?)))
}

impl ReleasedClasses {
    /// Lets every kept class show what its text says: a region that is written `*` becomes
    /// everything, and regions of one text become one that holds all of theirs, so that classes
    /// which show the same are one. `None` if that changes nothing.
    ///
    /// # Errors
    /// An internal error if labels cannot be made, a data error when memory runs out.
    pub(crate) fn as_shown(&self, table: &ClassTable, is_kept: &[bool], ends: Ends) -> Result<Option<Self>> {
        // They show something else, or it is not known yet which rows are kept besides.
        if !self.shows_regions() || table.is_part {
            return Ok(None);
        }
        let mut held = Held::new(table.budget());
        let of_regions: usize = self.regions().iter().map(|shown| Region::bytes_of(shown)).sum();
        held.at_least(2 * (size_of_val(self.regions()) + of_regions))?;
        let mut regions = self.regions().to_vec();
        for at in 0..table.columns().len() {
            let shown = ShownColumn::new(table, self, is_kept, at, ends)?;
            let kept = self.regions().iter().zip(is_kept).filter(|(_, is_kept)| **is_kept);
            let coarser = shown.coarser(kept.map(|(shown, _)| &shown[at]).collect())?;
            let kept = regions.iter_mut().zip(is_kept).filter(|(_, is_kept)| **is_kept);
            for (shown, _) in kept {
                if let Some(coarser) = coarser.get(&shown[at]) {
                    shown[at] = coarser.clone();
                }
            }
        }
        match regions == self.regions() {
            true => Ok(None),
            false => Self::new(table, self.class_of_base().to_vec(), regions).map(Some),
        }
    }
}

impl ShownColumn<'_> {
    /// Returns for each region that its text says more than, or shares with others, the one that it becomes.
    fn coarser(&self, regions: BTreeSet<&Region>) -> Result<BTreeMap<Region, Region>> {
        let mut by_text: BTreeMap<Option<String>, Vec<&Region>> = BTreeMap::new();
        let mut coarser = BTreeMap::new();
        for region in regions {
            let label = self.open(self.label(region)?);
            if label == RegionLabel::Everything {
                coarser.insert(region.clone(), Region::Everything);
            } else {
                by_text.entry(label.write(self.column.hierarchy().input_type())).or_default().push(region);
            }
        }
        for (_, same) in by_text.into_iter().filter(|(_, same)| same.len() > 1) {
            let held = |code: &&u32| same.iter().any(|region| region.holds(self.column, **code));
            let held: Vec<u32> = self.kept.iter().filter(held).copied().collect();
            let holds_all = |region: &&&Region| held.iter().all(|code| region.holds(self.column, *code));
            let one = same.iter().filter(holds_all).max_by_key(|region| region.leaves(self.column));
            let one = one.map_or(Region::Everything, |one| (*one).clone());
            coarser.extend(same.into_iter().map(|region| (region.clone(), one.clone())));
        }
        Ok(coarser)
    }
}
