//! The Hilbert curve through a cube of points: one step of it goes to a neighbour.
//!
//! It is hierarchical: the first bits of a place are the place of the cube's half, quarter and so on that
//! the point lies in, on a curve through these.

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

/// Returns how many steps of the curve through the cells of a cube go along each coordinate, where each has
/// so many bits.
pub(super) fn steps(dimensions: usize, bits: u32) -> Vec<u64> {
    let cells = 1usize << (dimensions * bits as usize);
    let cell = |number: usize| (0..dimensions).map(move |at| coordinate(number, at, bits));
    let mut in_order = vec![0; cells];
    for number in 0..cells {
        let mut point: Vec<u32> = cell(number).collect();
        if let Some(place) = usize::try_from(place(&mut point, bits)).ok().and_then(|at| in_order.get_mut(at))
        {
            *place = number;
        }
    }
    let mut steps = vec![0; dimensions];
    for pair in in_order.windows(2) {
        let apart = cell(pair[0]).zip(cell(pair[1])).map(|(a, b)| u64::from(a.abs_diff(b)));
        steps.iter_mut().zip(apart).for_each(|(steps, apart)| *steps += apart);
    }
    steps
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
            assert_eq!(steps(dimensions, bits).iter().sum::<u64>(), points as u64 - 1);
        }
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
