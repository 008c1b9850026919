//! [`Seeded`]: a hash of values that users choose, for the control planes, so that chosen values don't
//! collide: folded products with a seed.

use std::hash::{BuildHasher, Hasher};

/// Makes consecutive seeds differ.
const K: u64 = 0x9e37_79b9_7f4a_7c15;

/// A seed to hash with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeded(pub(crate) u64);

/// The state of a hash: folded multiplications of eight bytes at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folded {
    state: u64,
    seed: u64,
}

impl BuildHasher for Seeded {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        let seed = match self.0.rotate_left(32) ^ K {
            // By 0 all products would be alike.
            0 => K,
            seed => seed,
        };
        Folded { state: self.0, seed }
    }
}

impl Hasher for Folded {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|&word| self.write_u64(u64::from_le_bytes(word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.state = folded(self.state ^ word, self.seed).wrapping_add(self.seed);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.cast_unsigned() as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

/// The halves of a product in one.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // both halves are wanted
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// Hashes pairs of words, all pairs at once: where a chain of products would take longer than all else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pairs {
    keys: [u64; 3],
}

impl Pairs {
    pub(crate) fn new(seed: Seeded) -> Self {
        Self { keys: std::array::from_fn(|key| seed.hash_one(key)) }
    }

    /// Hashes any number of pairs; their order counts.
    #[inline(always)]
    pub(crate) fn hash(&self, pairs: impl Iterator<Item = [u64; 2]>) -> u64 {
        let [first, second, last] = self.keys;
        let sum = pairs.fold(last, |sum, [a, b]| sum.rotate_left(21) ^ folded(a ^ first, b ^ second));
        folded(sum, last | 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_differ_by_words_order_and_number() {
        let hash = Pairs::new(Seeded(7));
        let all = [
            &[][..],
            &[[0, 0]],
            &[[0, 1]],
            &[[1, 0]],
            &[[0, 0], [0, 0]],
            &[[0, 1], [1, 0]],
            &[[1, 0], [0, 1]],
        ];
        let hashes: std::collections::HashSet<_> =
            all.iter().map(|pairs| hash.hash(pairs.iter().copied()) >> 32).collect();
        assert_eq!(hashes.len(), all.len());
        assert_ne!(hash.hash([[1, 2]].into_iter()), Pairs::new(Seeded(8)).hash([[1, 2]].into_iter()));
    }

    #[test]
    fn keys_differ_under_the_seed_that_would_cancel_itself_out() {
        for seed in [0, 1, K.rotate_left(32), u64::MAX] {
            let hashes: std::collections::HashSet<_> =
                (0..100u64).map(|mask| Seeded(seed).hash_one([mask, !mask])).collect();
            assert_eq!(hashes.len(), 100, "seed {seed:#x}");
        }
    }
}
