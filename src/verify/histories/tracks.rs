//! Which rows of several inputs are one row.

use std::collections::BTreeSet;

/// A row in one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copy {
    /// The pseudonym of the row.
    pub(super) row: u64,
    /// The class that shows it.
    pub(super) class: Option<[u64; 2]>,
    /// The inputs in which it was not, as its dates tell.
    pub(super) told: u64,
    /// Where its values begin.
    pub(super) values: usize,
}

/// A row in all inputs: a place for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) copies: Vec<Option<Copy>>,
}

impl Track {
    /// Returns a word with a bit for each input that has the row.
    pub(super) fn inputs(&self) -> u64 {
        (0..).zip(&self.copies).map(|(place, copy): (u32, _)| u64::from(copy.is_some()) << place).sum()
    }

    /// Adds the copies of a row that is in other inputs.
    fn join(&mut self, other: Self) {
        for (copy, other) in self.copies.iter_mut().zip(other.copies) {
            *copy = copy.or(other);
        }
    }
}

/// Returns whether an input has rows of a person, as inputs before it do, but none of theirs. `rows` are the inputs of all rows of the
/// person.
pub(super) fn has_other_rows(rows: &[u64], input: usize) -> bool {
    let (here, before) = (1 << input, (1 << input) - 1);
    let is_in = |inputs: u64| rows.iter().any(|row| row & inputs != 0);
    let is_again = rows.iter().any(|row| row & here != 0 && row & before != 0);
    is_in(here) && is_in(before) && !is_again
}

/// Joins the rows of a person, which were matched by their values: who never has more than one row has one, whatever changed in it, be it a
/// date. Returns whether rows of anybody else may be one: one is gone, and one is new.
pub(super) fn join(tracks: &mut Vec<Track>) -> bool {
    let rows_in = |input: u32| tracks.iter().filter(|track| track.inputs() & 1 << input != 0).count();
    if (0..u64::BITS).map(rows_in).max().unwrap_or_default() > 1 {
        let kinds: BTreeSet<u64> = tracks.iter().map(Track::inputs).collect();
        return kinds.iter().any(|one| kinds.range(..one).any(|other| one & other == 0));
    }
    let all = tracks.drain(..).reduce(|mut one, other| {
        one.join(other);
        one
    });
    tracks.extend(all);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row in these of three inputs.
    fn track(inputs: &[usize]) -> Track {
        let copy = |place: usize| Copy { row: 0, class: None, told: 0, values: place };
        Track { copies: (0..3).map(|place| inputs.contains(&place).then(|| copy(place))).collect() }
    }

    fn joined(tracks: &[Track]) -> (usize, bool) {
        let mut tracks = tracks.to_vec();
        let is_unclear = join(&mut tracks);
        (tracks.len(), is_unclear)
    }

    #[test]
    fn the_only_row_of_a_person_is_one_row() {
        assert_eq!(joined(&[track(&[0]), track(&[1]), track(&[2])]), (1, false));
        assert_eq!(joined(&[track(&[0, 2]), track(&[1])]), (1, false));
        assert_eq!(joined(&[]), (0, false));
    }

    #[test]
    fn rows_that_were_numbered_anew_are_others() {
        let rows = |tracks: &[Track]| tracks.iter().map(Track::inputs).collect::<Vec<_>>();
        let others = |tracks: &[Track]| [1, 2].map(|input| has_other_rows(&rows(tracks), input));
        assert_eq!(others(&[track(&[0]), track(&[1, 2])]), [true, false]);
        assert_eq!(others(&[track(&[0, 1]), track(&[1]), track(&[2])]), [false, true]);
        assert_eq!(others(&[track(&[0, 2])]), [false, false]);
        assert_eq!(others(&[track(&[2])]), [false, false]);
    }

    #[test]
    fn rows_of_a_person_with_several_may_be_one() {
        assert_eq!(joined(&[track(&[0]), track(&[0, 1]), track(&[1])]), (3, true));
        assert_eq!(joined(&[track(&[0, 1]), track(&[0, 1]), track(&[1])]), (3, false));
    }
}
