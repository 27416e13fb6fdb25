//! The shape of a hierarchy file: what lies below each of its labels.

use hashbrown::HashMap;
use serde::Serialize;

use crate::decimal::ratio;

/// A label of a hierarchy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label<'a> {
    /// The text.
    pub text: &'a str,
    /// The values of the file below it.
    pub leaves: u64,
    /// The rows of a table that hold one of these values.
    pub rows: u64,
    /// The positions of the labels below it among those of their level, largest first; empty at
    /// level 1.
    pub children: Vec<usize>,
}

/// The labels of a hierarchy file, level by level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HierarchyShape<'a> {
    levels: Vec<Vec<Label<'a>>>,
}

/// The least, the mean and the greatest of a number that each label has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The least number.
    pub least: u64,
    /// The mean of all labels.
    pub mean: f64,
    /// The greatest number.
    pub greatest: u64,
}

impl<'a> HierarchyShape<'a> {
    /// Counts what lies below each label of a checked hierarchy file; `counts` are the rows of a
    /// table that hold each value.
    pub fn new(rows: &'a [Vec<String>], counts: &[u64]) -> Self {
        let columns = rows.first().map_or(0, Vec::len);
        let mut levels: Vec<Vec<Label<'a>>> = Vec::new();
        // The position of each row's label at the level below.
        let mut below: Vec<usize> = Vec::new();
        for level in 1..columns {
            let mut labels: Vec<Label<'a>> = Vec::new();
            let mut positions: HashMap<&str, usize> = HashMap::new();
            let mut own = Vec::with_capacity(rows.len());
            // A label has one parent, so it is linked once.
            let mut is_linked = vec![false; levels.last().map_or(0, Vec::len)];
            for (row, text) in rows.iter().filter_map(|cells| cells.get(level)).enumerate() {
                let at = *positions.entry(text).or_insert(labels.len());
                if at == labels.len() {
                    labels.push(Label { text, leaves: 0, rows: 0, children: Vec::new() });
                }
                if let Some(label) = labels.get_mut(at) {
                    label.leaves += 1;
                    label.rows += counts.get(row).copied().unwrap_or(0);
                    if let Some(child) = below.get(row)
                        && let Some(linked @ false) = is_linked.get_mut(*child)
                    {
                        *linked = true;
                        label.children.push(*child);
                    }
                }
                own.push(at);
            }
            if let Some(finer) = levels.last() {
                labels.iter_mut().for_each(|label| largest_first(finer, &mut label.children));
            }
            below = own;
            levels.push(labels);
        }
        Self { levels }
    }

    /// Returns the labels of each level from level 1 on, in the order of the file.
    pub fn levels(&self) -> &[Vec<Label<'a>>] {
        &self.levels
    }

    /// Returns the positions of the labels of the last level, largest first.
    pub fn tops(&self) -> Vec<usize> {
        let labels = self.levels.last().map(Vec::as_slice).unwrap_or_default();
        let mut tops: Vec<usize> = (0..labels.len()).collect();
        largest_first(labels, &mut tops);
        tops
    }
}

/// Sorts positions of labels by their rows, then by their leaves, the largest first.
fn largest_first(labels: &[Label<'_>], positions: &mut [usize]) {
    let size = |at: &usize| labels.get(*at).map(|label| (label.rows, label.leaves));
    positions.sort_by_key(|at| std::cmp::Reverse(size(at)));
}

impl Spread {
    /// Returns the spread of some counts; zeros without any.
    pub fn of(counts: impl Iterator<Item = u64> + Clone) -> Self {
        let all = counts.clone().map(u128::from).sum();
        let mean = ratio(all, counts.clone().count() as u128);
        Self { least: counts.clone().min().unwrap_or(0), mean, greatest: counts.max().unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn labels_count_leaves_and_rows() {
        let rows = rows("a;x;big\nb;y;big\nc;x;big\nd;z;small");
        let shape = HierarchyShape::new(&rows, &[1, 20, 3, 4]);
        let label = |text, leaves, rows, children| Label { text, leaves, rows, children };
        assert_eq!(
            shape.levels(),
            [
                vec![label("x", 2, 4, vec![]), label("y", 1, 20, vec![]), label("z", 1, 4, vec![])],
                vec![label("big", 3, 24, vec![1, 0]), label("small", 1, 4, vec![2])],
            ]
        );
        assert_eq!(shape.tops(), [0, 1]);
        let of_level_1 = Spread::of(shape.levels()[0].iter().map(|label| label.rows));
        assert_eq!(of_level_1, Spread { least: 4, mean: 28.0 / 3.0, greatest: 20 });
        assert_eq!(Spread::of(std::iter::empty()), Spread { least: 0, mean: 0.0, greatest: 0 });
    }

    #[test]
    fn equal_texts_at_two_levels_are_two_labels() {
        let rows = rows("a;x;x\nb;y;x");
        let shape = HierarchyShape::new(&rows, &[0, 0]);
        assert_eq!(shape.levels().iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(shape.levels()[1][0].children, [0, 1]);
    }
}
