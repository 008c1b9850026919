//! The hash of a masked tuple: NH, then two rounds that are bijections. Kernels compute the same.
//!
//! ```text
//! u                    the tuple under the class's mask, an odd number of words padded with a zero word
//! x = class · K + Σ (u[2i] + key[2i] mod 2^32) · (u[2i+1] + key[2i+1] mod 2^32)      mod 2^64
//! y = x · M0           h = (y ^ y >> 32) · M1           e = (h ^ h >> 32) · M2       mod 2^64, M odd
//!
//! parts     0: high half of h     1: low half of h     2: high half of e
//! places    in subtable s of d slots: part s · d >> 32
//! bits      of a filter of 2^log bits: part 0 >> (32 - log), part 1 >> (32 - log)
//! ```
//!
//! NH (Black et al., "UMAC: Fast and Secure Message Authentication", 1999): for any two tuples that differ,
//! at most one in 2^32 choices of keys makes their x alike, whatever the tuples are; so nobody who doesn't
//! know the seed can choose rules or packets that collide. It is a multiplication of 32 × 32 bits for two
//! words, which CPUs have for eight pairs at once, and a pair that a mask leaves no bit of is the same for
//! all tuples. The rounds after it make its steps uneven: without the second one consecutive values would
//! have places in arithmetic progression, which cuckoo tables take badly.
//!
//! A lookup in a filter takes two multiplications of 64 bits beside NH; the third is only for what is looked
//! up in a table.

/// Makes classes differ.
pub const K: u64 = 0x9e37_79b9_7f4a_7c15;
/// Subtables of a class's table, s.
pub const SUBTABLES: usize = 3;
/// The most words that a tuple may have, padded.
pub const KEYS: usize = 12;

/// The keys that a table hashes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// A key for each word.
    pub words: [u32; KEYS],
    /// The odd multipliers of the rounds.
    pub rounds: [u64; 3],
}

impl Keys {
    /// The keys of an attempt of this number to place all.
    pub(super) fn of(seed: u64, attempt: u64) -> Self {
        let mut state = mix(seed ^ mix(attempt.wrapping_add(K)));
        let mut draw = || {
            state = state.wrapping_add(K);
            mix(state)
        };
        #[allow(clippy::cast_possible_truncation)] // the upper 32 bits
        let words = [(); KEYS].map(|()| (draw() >> 32) as u32);
        Self { words, rounds: [(); 3].map(|()| draw() | 1) }
    }

    /// The hash of a tuple of a class, already under its mask.
    #[inline(always)]
    pub fn hash(&self, class: u32, masked: &[u32]) -> Hash {
        let mut x = u64::from(class).wrapping_mul(K);
        let (pairs, odd) = masked.as_chunks::<2>();
        for (pair, key) in pairs.iter().zip(self.words.as_chunks::<2>().0) {
            x = x.wrapping_add(product(*pair, *key));
        }
        if let [last] = odd {
            let at = masked.len() - 1;
            x = x.wrapping_add(product([*last, 0], [self.words[at], self.words[at + 1]]));
        }
        self.finish(x)
    }

    /// The number that a pair of words without any bit adds.
    #[inline(always)]
    pub fn of_nothing(&self, pair: usize) -> u64 {
        product([0, 0], [self.words[2 * pair], self.words[2 * pair + 1]])
    }

    /// The rounds after NH.
    #[inline(always)]
    pub const fn finish(&self, x: u64) -> Hash {
        Hash(round(round(x, 0, self.rounds[0]), 32, self.rounds[1]))
    }

    /// How far from the first slot of each subtable of `d` slots the place of a hash is.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // below d
    pub fn places(&self, hash: Hash, d: u32) -> [u32; SUBTABLES] {
        let third = round(hash.0, 32, self.rounds[2]) >> 32;
        let scaled = |half: u64| ((half * d as u64) >> 32) as u32;
        [scaled(hash.0 >> 32), scaled(hash.0 & 0xffff_ffff), scaled(third)]
    }
}

/// A masked tuple's hash, h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash(pub u64);

impl Hash {
    /// Its bits in a filter of `2^log` bits; bit 0 where that is one.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // halves
    pub fn bits(self, log: u32) -> [u32; 2] {
        let scaled = |half: u64| (half >> (32 - log)) as u32;
        [scaled(self.0 >> 32), scaled(self.0 & 0xffff_ffff)]
    }
}

#[inline(always)]
const fn product([a, b]: [u32; 2], [key_a, key_b]: [u32; 2]) -> u64 {
    a.wrapping_add(key_a) as u64 * b.wrapping_add(key_b) as u64
}

#[inline(always)]
const fn round(x: u64, shift: u32, by: u64) -> u64 {
    let folded = if shift == 0 { x } else { x ^ x >> shift };
    folded.wrapping_mul(by)
}

/// SplitMix64's last step.
fn mix(seed: u64) -> u64 {
    let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_kernels_compute() {
        let keys = Keys::of(7, 0);
        let words: Vec<u32> = (1..11u32).map(|at| at.wrapping_mul(0x9e37_79b9)).collect();
        for len in 1..=words.len() {
            let mut padded = words[..len].to_vec();
            padded.resize(KEYS, 0);
            let pairs = (0..len.div_ceil(2)).map(|i| {
                let word = |at: usize| u64::from(padded[at].wrapping_add(keys.words[at]));
                u128::from(word(2 * i)) * u128::from(word(2 * i + 1))
            });
            let x = pairs.sum::<u128>() + 5 * u128::from(K);
            let low = |x: u128| x & u128::from(u64::MAX);
            let y = low(low(x) * u128::from(keys.rounds[0]));
            let h = low((y ^ y >> 32) * u128::from(keys.rounds[1]));
            assert_eq!(u128::from(keys.hash(5, &words[..len]).0), h);
            let e = low((h ^ h >> 32) * u128::from(keys.rounds[2]));
            let [p0, p1, p2] = keys.places(keys.hash(5, &words[..len]), 1000).map(u128::from);
            assert_eq!([p0, p1, p2], [h >> 32, h & 0xffff_ffff, e >> 32].map(|half| (half * 1000) >> 32));
            let bits = keys.hash(5, &words[..len]).bits(7).map(u128::from);
            assert_eq!(bits, [h >> 57, (h & 0xffff_ffff) >> 25]);
        }
        assert_ne!(keys.hash(0, &words), keys.hash(1, &words), "classes differ");
        assert_ne!(keys, Keys::of(7, 1));
        assert_eq!(Hash(u64::MAX).bits(0), [0, 0]);
    }

    #[test]
    fn places_of_consecutive_values_are_spread() {
        let keys = Keys::of(1, 0);
        let mut counts = [[0u32; 64]; SUBTABLES];
        for n in 0..64_000 {
            let places = keys.places(keys.hash(3, &[n, 7, 0, 0]), 64);
            for (counts, place) in counts.iter_mut().zip(places) {
                counts[place as usize] += 1;
            }
        }
        assert!(counts.as_flattened().iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
