//! [`Masks`]: which class a mask is of. Hashed with the table's seed, as users choose masks too.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use super::hash::K;

/// Classes by mask.
pub(super) type Masks<T> = HashMap<T, u32, Seed>;

/// What masks are hashed with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(pub(super) u64);

/// Folded multiplications of eight bytes at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folded {
    state: u64,
    seed: u64,
}

impl BuildHasher for Seed {
    type Hasher = Folded;

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
        for chunk in bytes.chunks(8) {
            let mut eight = [0; 8];
            eight[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(eight));
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // both halves are wanted
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.seed);
        self.state = ((product >> 64) as u64 ^ product as u64).wrapping_add(self.seed);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_differ_under_the_seed_that_would_cancel_itself_out() {
        for seed in [0, 1, K.rotate_left(32), u64::MAX] {
            let hashes: std::collections::HashSet<_> =
                (0..100u64).map(|mask| Seed(seed).hash_one([mask, !mask])).collect();
            assert_eq!(hashes.len(), 100, "seed {seed:#x}");
        }
    }
}
