//! [`Rng`]: the one source of chance, the same on every platform and in every release.
//!
//! xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021), its 256 bits
//! of state filled by SplitMix64 from a 64-bit seed. A general crate may change its streams between versions;
//! a seed in a benchmark record must mean the same table for ever, so these forty lines are ours. Not for
//! secrets.

/// A seeded generator of pseudorandom numbers. A copy goes on with the same stream.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of a seed. Any seed will do, 0 included.
    pub fn new(seed: u64) -> Self {
        let mut at = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut at)) }
    }

    /// An independent stream of the same seed, so that one part of a generator can change what it draws
    /// without changing the others.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut at = stream;
        Self::new(seed ^ split_mix(&mut at))
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// The next 128 bits.
    #[inline]
    pub fn bits128(&mut self) -> u128 {
        u128::from(self.bits()) << 64 | u128::from(self.bits())
    }

    /// A number in `0..bound`, each as likely to within `bound / 2^64`. 0 when `bound` is 0.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the high half of a product of two u64
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into something of that many elements. 0 when there are none.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // under `len`
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number in `0.0..1.0`, a multiple of 2^-53.
    #[inline]
    #[allow(clippy::cast_precision_loss)] // 53 bits are exact
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with that probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An index drawn by weight; the last one when all weights are 0. O(weights).
    #[inline]
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let total = weights.iter().map(|&w| u64::from(w)).sum();
        let mut at = self.below(total);
        for (index, &weight) in weights.iter().enumerate() {
            match at.checked_sub(u64::from(weight)) {
                Some(rest) => at = rest,
                None => return index,
            }
        }
        weights.len().saturating_sub(1)
    }

    /// Puts a slice in random order. O(elements).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.index(end + 1));
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_the_published_numbers() {
        let mut at = 1_234_567;
        let first: Vec<u64> = (0..3).map(|_| split_mix(&mut at)).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn xoshiro_gives_the_published_numbers() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.bits()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn draws_keep_their_bounds_and_weights() {
        let mut rng = Rng::new(0);
        let mut seen = [0u32; 4];
        for _ in 0..40_000 {
            seen[rng.weighted(&[1, 0, 2, 1])] += 1;
            assert!(rng.below(7) < 7);
            assert!((0.0..1.0).contains(&rng.unit()));
        }
        assert_eq!(seen[1], 0);
        assert!(seen[2].abs_diff(20_000) < 500 && seen[0].abs_diff(10_000) < 400, "{seen:?}");
        assert_eq!((rng.below(0), rng.index(0)), (0, 0));
    }

    #[test]
    fn a_shuffle_loses_nothing() {
        let mut items: Vec<u32> = (0..1000).collect();
        Rng::new(3).shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..1000));
    }
}
