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
    pub(super) not_in: u64,
    /// Those of them of which the files tell.
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
    /// Returns the inputs that have the row, and those in which it was not, as all its dates tell: a bit for each.
    pub(super) fn places(&self) -> (u64, u64) {
        (self.inputs(), self.not_in())
    }

    /// Returns a word with a bit for each input that has the row.
    fn inputs(&self) -> u64 {
        (0..).zip(&self.copies).map(|(place, copy): (u32, _)| u64::from(copy.is_some()) << place).sum()
    }

    /// Returns a word with a bit for each input in which the row was not, as all its dates tell.
    fn not_in(&self) -> u64 {
        self.copies.iter().flatten().fold(u64::MAX, |all, copy| all & copy.not_in)
    }

    /// Adds the copies of a row that is in other inputs.
    fn join(&mut self, other: Self) {
        for (copy, other) in self.copies.iter_mut().zip(other.copies) {
            *copy = copy.or(other);
        }
    }
}

/// Returns whether two rows of one person may be one that changed: no input has both, and the dates of both do not tell why.
fn may_be_one((inputs, not_in): (u64, u64), (other_inputs, other_not_in): (u64, u64)) -> bool {
    let is_told = inputs & !other_not_in == 0 && other_inputs & !not_in == 0;
    inputs & other_inputs == 0 && !is_told
}

/// Returns whether an input has rows of a person, as inputs before it do, but none of theirs, and dates do not tell why. `rows` are the
/// places of all rows of the person.
pub(super) fn has_other_rows(rows: &[(u64, u64)], input: usize) -> bool {
    let (here, before) = (1 << input, (1 << input) - 1);
    let (those, others): (Vec<_>, Vec<_>) = rows.iter().partition(|(inputs, _)| inputs & here != 0);
    let is_again = those.iter().any(|(inputs, _)| inputs & before != 0);
    let mut gone = others.into_iter().filter(|(inputs, _)| inputs & before != 0);
    !is_again && gone.any(|gone| those.iter().any(|new| may_be_one(gone, *new)))
}

/// Joins the rows of a person, which were matched by their values. Returns whether some may be one and are not joined: that is known only
/// of a person who never has more than one row.
pub(super) fn join(tracks: &mut Vec<Track>) -> bool {
    let of = Track::places;
    let most =
        (0..u64::BITS).map(|place| tracks.iter().filter(|track| track.inputs() & 1 << place != 0).count());
    if most.max().unwrap_or_default() > 1 {
        let kinds: Vec<(u64, u64)> = tracks.iter().map(of).collect::<BTreeSet<_>>().into_iter().collect();
        return kinds
            .iter()
            .enumerate()
            .any(|(at, one)| kinds[..at].iter().any(|other| may_be_one(*one, *other)));
    }
    tracks.sort_by_key(|track| track.inputs().trailing_zeros());
    let mut joined: Vec<Track> = Vec::new();
    for track in tracks.drain(..) {
        match joined.iter_mut().find(|one| may_be_one(of(one), of(&track))) {
            Some(one) => one.join(track),
            None => joined.push(track),
        }
    }
    *tracks = joined;
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row in these of three inputs, with a word of the inputs in which it was not.
    fn track(inputs: &[usize], not_in: u64) -> Track {
        let copy = |place: usize| Copy { row: 0, class: None, not_in, told: not_in, values: place };
        Track { copies: (0..3).map(|place| inputs.contains(&place).then(|| copy(place))).collect() }
    }

    fn joined(tracks: &[Track]) -> (usize, bool) {
        let mut tracks = tracks.to_vec();
        let is_unclear = join(&mut tracks);
        (tracks.len(), is_unclear)
    }

    #[test]
    fn the_only_row_of_a_person_is_one_row() {
        assert_eq!(joined(&[track(&[0], 0), track(&[1], 0), track(&[2], 0)]), (1, false));
        assert_eq!(joined(&[track(&[0, 2], 0), track(&[1], 0)]), (1, false));
        // A stay of March and one of April, in extracts of these months.
        assert_eq!(joined(&[track(&[0], 0b110), track(&[1], 0b101)]), (2, false));
        // The date of the last visit: the row of March did not leave because of its date.
        assert_eq!(joined(&[track(&[0], 0), track(&[1], 0b001)]), (1, false));
    }

    #[test]
    fn rows_that_were_numbered_anew_are_others() {
        let rows = |tracks: &[Track]| tracks.iter().map(Track::places).collect::<Vec<_>>();
        let others = |tracks: &[Track]| [1, 2].map(|input| has_other_rows(&rows(tracks), input));
        assert_eq!(others(&[track(&[0], 0), track(&[1, 2], 0)]), [true, false]);
        assert_eq!(others(&[track(&[0, 1], 0), track(&[1], 0), track(&[2], 0)]), [false, true]);
        assert_eq!(others(&[track(&[0, 2], 0)]), [false, false]);
        // Stays of two months.
        assert_eq!(others(&[track(&[0], 0b010), track(&[1], 0b001)]), [false, false]);
        assert_eq!(others(&[track(&[2], 0)]), [false, false]);
    }

    #[test]
    fn rows_of_a_person_with_several_may_be_one() {
        assert_eq!(joined(&[track(&[0], 0), track(&[0, 1], 0), track(&[1], 0)]), (3, true));
        assert_eq!(joined(&[track(&[0, 1], 0), track(&[0, 1], 0), track(&[1], 0)]), (3, false));
        assert_eq!(joined(&[track(&[0], 0b010), track(&[0, 1], 0), track(&[1], 0b001)]), (3, false));
    }
}
