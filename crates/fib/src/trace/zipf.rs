//! [`Zipf`]: ranks drawn by Zipf's law, exactly.
//!
//! Rejection-inversion (Hörmann and Derflinger, 1996) needs no table, but several powers for each draw. A
//! table of sums, here 8 bytes a prefix, costs one binary search, is exact for any skew, 0 and 1 included,
//! and always finishes. A first guess by the top bits keeps the search to a few steps for frequent ranks.

use crate::synth::power::power;
use crate::synth::rng::Rng;

/// Zipf's law over ranks: rank r, from 1, in proportion to r^-skew.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// Running sums of the weights of ranks.
    sums: Vec<f64>,
    /// The lowest possible index for each part of the whole sum, in `GUESSES` parts.
    guess: Vec<usize>,
}

const GUESSES: usize = 1 << 12;

impl Zipf {
    /// Makes the law over `count` ranks, at least 1. O(count).
    #[allow(clippy::cast_precision_loss)] // ranks and parts are far below 2^53
    pub fn new(count: usize, skew: f64) -> Self {
        let mut sum = 0.0;
        let weigh = |rank: usize| {
            sum += power(rank as f64, -skew);
            sum
        };
        let sums: Vec<f64> = (1..=count.max(1)).map(weigh).collect();
        let guess = (0..=GUESSES)
            .map(|part| sum * (part as f64 / GUESSES as f64))
            .map(|at| sums.partition_point(|&sum| sum <= at).min(sums.len() - 1))
            .collect();
        Self { sums, guess }
    }

    /// Draws an index, 0 for rank 1. O(log count) or less.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // 0..GUESSES
    pub fn draw(&self, rng: &mut Rng) -> usize {
        let unit = rng.unit();
        let at = unit * self.sums[self.sums.len() - 1];
        let part = ((unit * GUESSES as f64) as usize).min(GUESSES - 1);
        let (first, last) = (self.guess[part], self.guess[part + 1]);
        first + self.sums[first..last].partition_point(|&sum| sum <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_law() {
        for skew in [0.0, 0.7, 1.0, 1.3] {
            let zipf = Zipf::new(50, skew);
            let mut rng = Rng::new(8);
            let mut counts = [0f64; 50];
            (0..200_000).for_each(|_| counts[zipf.draw(&mut rng)] += 1.0);
            let whole: f64 = (1..=50).map(|r| f64::from(r).powf(-skew)).sum();
            for (rank, &count) in (1..).zip(&counts) {
                let expected = 200_000.0 * f64::from(rank).powf(-skew) / whole;
                assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{skew} {rank} {count} {expected}");
            }
        }
    }

    #[test]
    fn one_rank_is_always_drawn() {
        let zipf = Zipf::new(1, 1.1);
        let mut rng = Rng::new(8);
        assert!((0..100).all(|_| zipf.draw(&mut rng) == 0));
        assert_eq!(Zipf::new(0, 1.1).draw(&mut rng), 0);
    }
}
