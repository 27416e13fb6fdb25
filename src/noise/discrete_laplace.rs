//! The discrete Laplace distribution, sampled exactly.
//!
//! An integer x has a probability proportional to `exp(-|x| / scale)`. Sampled by integers alone (Canonne,
//! Kamath & Steinke 2020, algorithm 2): noise made from floats tells by its lowest bits what it was added
//! to (Mironov 2012).

use crate::error::{Error, Result};

/// A source of random words, each uniform over 64 bits.
pub type Random<'a> = dyn FnMut() -> Result<u64> + 'a;

/// The distribution with the scale `numerator / denominator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscreteLaplace {
    numerator: u128,
    denominator: u128,
}

/// Products with a numerator must fit into 128 bits.
const MOST: u128 = 1 << 116;

impl DiscreteLaplace {
    /// Creates the distribution; `None` if the scale is 0 or has more digits than are computed with.
    pub fn new(numerator: u128, denominator: u128) -> Option<Self> {
        let shared = greatest_divisor(numerator, denominator);
        let (numerator, denominator) = (numerator.checked_div(shared)?, denominator.checked_div(shared)?);
        let is_valid = numerator > 0 && denominator > 0 && numerator <= MOST;
        is_valid.then_some(Self { numerator, denominator })
    }

    /// Draws a number.
    ///
    /// # Errors
    /// Those of the source.
    pub fn draw(&self, random: &mut Random<'_>) -> Result<i128> {
        loop {
            let rest = below(self.numerator, random)?;
            if !happens_exp(rest, self.numerator, random)? {
                continue;
            }
            let mut whole = 0u128;
            while happens_exp(1, 1, random)? {
                whole += 1;
            }
            let size = whole.checked_mul(self.numerator).and_then(|size| size.checked_add(rest));
            let size = size.ok_or_else(|| Error::internal("discrete Laplace: a number out of range"))?;
            let size = i128::try_from(size / self.denominator).map_err(Error::internal)?;
            // Otherwise 0 would be drawn twice as often.
            match random()? & 1 == 1 {
                true if size == 0 => {}
                true => return Ok(-size),
                false => return Ok(size),
            }
        }
    }
}

/// Returns true with the probability `exp(-n / d)`, where n is at most d.
fn happens_exp(n: u128, d: u128, random: &mut Random<'_>) -> Result<bool> {
    let mut count = 1;
    loop {
        let all =
            d.checked_mul(count).ok_or_else(|| Error::internal("discrete Laplace: a number out of range"))?;
        if below(all, random)? >= n {
            return Ok(count % 2 == 1);
        }
        count += 1;
    }
}

/// Returns a uniform integer below `end`, which is above 0.
fn below(end: u128, random: &mut Random<'_>) -> Result<u128> {
    let bits = u128::BITS - (end - 1).leading_zeros();
    if bits == 0 {
        return Ok(0);
    }
    loop {
        let mut word = u128::from(random()?);
        if bits > u64::BITS {
            word = (word << u64::BITS) | u128::from(random()?);
        }
        let number = word & (u128::MAX >> (u128::BITS - bits));
        if number < end {
            return Ok(number);
        }
    }
}

fn greatest_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::decimal::ratio;

    /// Returns a source of words that are the same for a seed (SplitMix64).
    pub(crate) fn seeded(mut state: u64) -> impl FnMut() -> Result<u64> {
        move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = state;
            word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            Ok(word ^ (word >> 31))
        }
    }

    const DRAWS: u32 = 100_000;

    /// The share of each number among 10^5 draws is that of the formula, by a chi-square test: 99.99 % of
    /// seeds pass.
    #[test]
    fn draws_follow_the_formula() {
        for (seed, (numerator, denominator)) in (0..).zip([(1, 3), (1, 1), (7, 3), (25, 2), (1_000, 1)]) {
            let scale = ratio(numerator, denominator);
            let distribution = DiscreteLaplace::new(numerator, denominator).unwrap();
            let mut random = seeded(seed);
            // Bins of so many numbers, from -REACH to REACH bins around 0, and the tails.
            const REACH: i128 = 12;
            let width = i128::try_from(numerator / denominator / 2).unwrap().max(1);
            let bin = |x: i128| x.div_euclid(width).clamp(-REACH, REACH);
            let mut counts = [0u32; 25];
            for _ in 0..DRAWS {
                counts[usize::try_from(bin(distribution.draw(&mut random).unwrap()) + REACH).unwrap()] += 1;
            }
            let r = (-1.0 / scale).exp();
            let mut shares = [0.0; 25];
            // What is further away is less than one draw in a billion.
            let far = i128::try_from(numerator / denominator + 1).unwrap() * 25;
            for x in -far..=far {
                let share = (1.0 - r) / (1.0 + r) * (-ratio(x.unsigned_abs(), 1) / scale).exp();
                shares[usize::try_from(bin(x) + REACH).unwrap()] += share;
            }
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let all = f64::from(DRAWS);
            let (mut chi, mut degrees) = (0.0, -1.0);
            let (mut count, mut share) = (0.0, 0.0);
            for (counted, expected) in counts.iter().zip(&shares) {
                count += f64::from(*counted);
                share += expected;
                if share * all >= 10.0 {
                    chi += (count - share * all).powi(2) / (share * all);
                    degrees += 1.0;
                    (count, share) = (0.0, 0.0);
                }
            }
            // The normal approximation of the chi-square distribution (Wilson & Hilferty).
            let z = ((chi / degrees).cbrt() - (1.0 - 2.0 / (9.0 * degrees))) / (2.0 / (9.0 * degrees)).sqrt();
            assert!(degrees >= 2.0 && z < 3.72, "scale {scale}: chi-square {chi} of {degrees}, z {z}");
        }
    }

    #[test]
    fn moments_are_those_of_the_formula() {
        // The variance is 2 r / (1 - r)^2.
        for (seed, (numerator, denominator)) in (9..).zip([(3, 4), (40, 1), (1 << 110, 3)]) {
            let distribution = DiscreteLaplace::new(numerator, denominator).unwrap();
            let scale = ratio(numerator, denominator);
            let mut random = seeded(seed);
            let draws: Vec<f64> = (0..DRAWS)
                .map(|_| {
                    let x = distribution.draw(&mut random).unwrap();
                    if x < 0 { -ratio(x.unsigned_abs(), 1) } else { ratio(x.unsigned_abs(), 1) }
                })
                .collect();
            let all = f64::from(DRAWS);
            let (mean, square) =
                (draws.iter().sum::<f64>() / all, draws.iter().map(|x| x * x).sum::<f64>() / all);
            let less = -(-1.0 / scale).exp_m1();
            let variance = 2.0 * (1.0 - less) / (less * less);
            assert!(mean.abs() < 4.0 * (variance / all).sqrt(), "{mean} {variance}");
            // The kurtosis is at most 6 for scales of at least 1, and the error of a variance with it.
            assert!((square / variance - 1.0).abs() < 4.0 * (9.0 / all).sqrt(), "{square} {variance}");
        }
    }

    #[test]
    fn scales_out_of_range_are_refused() {
        for (numerator, denominator) in [(0, 1), (1, 0), (0, 0), (u128::MAX, 1)] {
            assert_eq!(DiscreteLaplace::new(numerator, denominator), None);
        }
        assert_eq!(DiscreteLaplace::new(u128::MAX - 1, u128::MAX - 1), DiscreteLaplace::new(1, 1));
    }

    #[test]
    fn an_exhausted_source_is_an_error() {
        let mut none = || Err(Error::data("no random numbers"));
        assert!(DiscreteLaplace::new(5, 1).unwrap().draw(&mut none).is_err());
    }
}
