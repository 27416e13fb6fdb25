//! Sizes in bins that double, each with a bar.

use crate::plural::grouped;

/// The sizes between two powers of two.
pub(super) struct SizeBin {
    from: u64,
    to: u64,
    /// The classes of these sizes.
    pub(super) classes: u64,
    /// The individuals in them.
    pub(super) individuals: u64,
}

impl SizeBin {
    /// Returns the range of sizes: `1`, `2-3`, `4-7`.
    pub(super) fn text(&self) -> String {
        match self.from == self.to {
            true => grouped(self.from),
            false => format!("{}-{}", grouped(self.from), grouped(self.to)),
        }
    }
}

/// Groups ascending sizes with their classes and individuals into bins that double; the first
/// begins with the least size.
pub(super) fn size_bins(sizes: impl Iterator<Item = (u64, u64, u64)>) -> Vec<SizeBin> {
    let mut bins: Vec<SizeBin> = Vec::new();
    for (size, classes, individuals) in sizes {
        let to = (2u64 << size.ilog2()).wrapping_sub(1);
        match bins.last_mut() {
            Some(bin) if bin.to == to => {
                bin.classes += classes;
                bin.individuals += individuals;
            }
            last => {
                let from = if last.is_none() { size } else { 1 << size.ilog2() };
                bins.push(SizeBin { from, to, classes, individuals });
            }
        }
    }
    bins
}

/// Draws a bar for the individuals of each bin; the longest is that of most individuals.
pub(super) fn bars(bins: &[SizeBin]) -> Vec<String> {
    let most = bins.iter().map(|bin| bin.individuals).max().unwrap_or(0);
    bins.iter().map(|bin| bar(bin.individuals, most)).collect()
}

/// Draws a bar for `part`, where `most` has the longest; half a block is the shortest.
pub(super) fn bar(part: u64, most: u64) -> String {
    const WIDTH: u64 = 30;
    let halves = usize::try_from(part.saturating_mul(2 * WIDTH) / most.max(1)).unwrap_or(0);
    let halves = halves.max(usize::from(part > 0));
    "\u{2588}".repeat(halves / 2) + if halves % 2 == 1 { "\u{258c}" } else { "" }
}
