//! The Hilbert curve through a cube of points: one step of it goes to a neighbour.
//!
//! It is hierarchical: the first bits of a place are the place of the cube's half, quarter and so on that
//! the point lies in, on a curve through these.

use crate::error::{Error, Result};

/// Returns the place of a point on the curve, where each coordinate has so many bits (Skilling 2004:
/// "Programming the Hilbert curve").
pub(super) fn place(point: &mut [u32], bits: u32) -> u64 {
    let Some(last) = point.len().checked_sub(1) else { return 0 };
    for bit in (1..bits).rev() {
        let (bit, lower) = (1u32 << bit, (1u32 << bit) - 1);
        for at in 0..point.len() {
            if point[at] & bit != 0 {
                point[0] ^= lower;
            } else {
                let exchanged = (point[0] ^ point[at]) & lower;
                point[0] ^= exchanged;
                point[at] ^= exchanged;
            }
        }
    }
    // The Gray code.
    for at in 1..point.len() {
        point[at] ^= point[at - 1];
    }
    let flipped =
        (1..bits).filter(|bit| point[last] & (1 << bit) != 0).fold(0, |all, bit| all ^ ((1u32 << bit) - 1));
    let mut place = 0u64;
    for bit in (0..bits).rev() {
        for coordinate in point.iter() {
            place = (place << 1) | u64::from(((coordinate ^ flipped) >> bit) & 1);
        }
    }
    place
}

/// The most bits of the number of a cell whose steps are counted.
const MAX_CELL_BITS: u32 = 16;

/// Through more dimensions even the halves of a cube are too many cells to count the steps of the curve.
pub(super) const MAX_DIMENSIONS: usize = MAX_CELL_BITS as usize;

/// Returns how many steps of the curve through the cells of a cube go along each coordinate, where each has
/// so many bits; above 2^16 cells a number that is no smaller.
///
/// # Errors
/// An internal error for no dimension or more than [`MAX_DIMENSIONS`], and for a place outside of the curve.
pub(super) fn steps(dimensions: usize, bits: u32) -> Result<Vec<u128>> {
    let of_all = u32::try_from(dimensions).map_err(Error::internal)?;
    let most = MAX_CELL_BITS.checked_div(of_all).filter(|most| *most > 0);
    let counted = most.ok_or_else(|| Error::internal("hilbert: too many dimensions"))?.min(bits);
    let steps = counted_steps(dimensions, counted)?;
    if counted == bits {
        return Ok(steps);
    }
    // Curves through smaller cubes, each turned in some way, and a step from each to the next.
    let curves = 1u128.checked_shl(of_all * (bits - counted)).unwrap_or(u128::MAX);
    let most = steps.iter().copied().max().unwrap_or(0).saturating_add(1);
    Ok(vec![curves.saturating_mul(most); dimensions])
}

fn counted_steps(dimensions: usize, bits: u32) -> Result<Vec<u128>> {
    let cells = 1usize << (dimensions * bits as usize);
    let cell = |number: usize| (0..dimensions).map(move |at| coordinate(number, at, bits));
    let mut in_order = vec![0; cells];
    for number in 0..cells {
        let place = place(&mut cell(number).collect::<Vec<_>>(), bits);
        let place = usize::try_from(place).ok().and_then(|place| in_order.get_mut(place));
        *place.ok_or_else(|| Error::internal("hilbert: a place outside of the curve"))? = number;
    }
    let mut steps = vec![0; dimensions];
    for pair in in_order.windows(2) {
        let apart = cell(pair[0]).zip(cell(pair[1])).map(|(a, b)| u128::from(a.abs_diff(b)));
        steps.iter_mut().zip(apart).for_each(|(steps, apart)| *steps += apart);
    }
    Ok(steps)
}

/// Returns a coordinate of the cell with this number.
fn coordinate(number: usize, at: usize, bits: u32) -> u32 {
    let bits_of_number = number >> (at * bits as usize);
    u32::try_from(bits_of_number & ((1 << bits) - 1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_curve_visits_every_point_and_steps_to_a_neighbour() {
        for (dimensions, bits) in [(1usize, 6u32), (2, 4), (3, 3), (4, 2), (5, 1)] {
            let points = 1usize << (dimensions * bits as usize);
            let point = |number| (0..dimensions).map(|at| coordinate(number, at, bits)).collect::<Vec<_>>();
            let mut order: Vec<(u64, Vec<u32>)> =
                (0..points).map(|number| (place(&mut point(number), bits), point(number))).collect();
            order.sort_unstable();
            for (expected, (place, _)) in (0u64..).zip(&order) {
                assert_eq!(*place, expected);
            }
            for pair in order.windows(2) {
                let apart: u32 = pair[0].1.iter().zip(&pair[1].1).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(apart, 1, "{dimensions} dimensions");
            }
            assert_eq!(steps(dimensions, bits).unwrap().iter().sum::<u128>(), points as u128 - 1);
        }
    }

    #[test]
    fn too_many_dimensions_are_refused() {
        assert!(steps(MAX_DIMENSIONS, 3).is_ok());
        for dimensions in [0, MAX_DIMENSIONS + 1, 64] {
            assert!(steps(dimensions, 1).is_err(), "{dimensions}");
        }
    }

    /// No curve steps more often along a coordinate than its parts together.
    #[test]
    fn steps_are_at_most_those_of_the_parts() {
        for (dimensions, bits) in [(2usize, 8u32), (3, 5), (4, 4), (5, 3), (8, 2)] {
            let counted = steps(dimensions, bits).unwrap();
            for fewer in 1..bits {
                let curves = 1u128 << (dimensions * (bits - fewer) as usize);
                let most = steps(dimensions, fewer).unwrap().into_iter().max().unwrap() + 1;
                assert!(counted.iter().all(|steps| *steps <= curves * most), "{dimensions} {bits} {fewer}");
            }
        }
        let [counted, bounded] = [8, 9].map(|bits| steps(2, bits).unwrap().into_iter().max().unwrap());
        assert!(bounded > 4 * counted && bounded <= 4 * counted + 4);
    }

    proptest! {
        /// The bound of a sensitivity rests on it.
        #[test]
        fn places_begin_with_those_of_coarser_cells(
            point in prop::collection::vec(any::<u32>(), 1..9),
            bits in 2..8u32,
            fewer in 1..7u32,
        ) {
            let fewer = fewer.min(bits - 1);
            let at = |bits: u32| place(&mut point.iter().map(|x| x >> (32 - bits)).collect::<Vec<_>>(), bits);
            let dimensions = u32::try_from(point.len()).unwrap();
            prop_assert_eq!(at(bits) >> (dimensions * (bits - fewer)), at(fewer));
        }
    }
}
