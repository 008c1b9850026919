//! The hash that leads to slots: products of pairs of words (NH of UMAC, Black et al. 1999), and what is made
//! of it. Kernels compute the same.
//!
//! ```text
//! s    = Σ (w₂ᵢ + k₂ᵢ) · (w₂ᵢ₊₁ + k₂ᵢ₊₁)     words under the layer's mask; sums of 32 bits, products and their sum of 64
//! h    = low half of s ^ high half
//! slot = the highest bits of h · M           as many as the layer's directory has
//! filter bits = FILTER[h mod 64]             4 of 8
//! ```
//!
//! Keys and M are drawn from the seed and are the same for all layers of a table.

use crate::tuple::Tuple;

/// Words of a block.
pub const BLOCK: usize = 4;

/// Words that are hashed and compared at most.
pub const MOST_WORDS: usize = 16;

/// The numbers that a table draws from its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// A number for each word.
    pub keys: [u32; MOST_WORDS],
    /// An odd number.
    pub factor: u32,
}

/// The 4 of 8 bits that each of 64 hashes sets in a slot's filter.
pub const FILTER: [u8; 64] = filter();

const fn filter() -> [u8; 64] {
    let (mut all, mut len, mut byte) = ([0; 64], 0, 0u8);
    while len < 64 {
        if byte.count_ones() == 4 {
            all[len] = byte;
            len += 1;
        }
        byte += 1;
    }
    all
}

impl Seeds {
    /// Seeds that are drawn from one.
    pub(super) fn of(seed: u64) -> Self {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            high(z ^ z >> 31)
        };
        Self { keys: std::array::from_fn(|_| next()), factor: next() | 1 }
    }

    /// The hash of a tuple under a mask.
    #[inline(always)]
    pub(super) fn hash<T: Tuple>(&self, tuple: &T, mask: &T) -> u32 {
        let mut words = [0; MOST_WORDS];
        for (word, (tuple, mask)) in words.iter_mut().zip(tuple.words().iter().zip(mask.words())) {
            *word = tuple & mask;
        }
        let mut sum = 0u64;
        for at in (0..T::WORDS.div_ceil(BLOCK) * BLOCK).step_by(2) {
            let of = |at: usize| u64::from(words[at].wrapping_add(self.keys[at]));
            sum = sum.wrapping_add(of(at).wrapping_mul(of(at + 1)));
        }
        low(sum) ^ high(sum)
    }

    /// The slot of a hash, of a directory of `1 << bits`.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // 32 bits
    pub(super) fn slot(&self, hash: u32, bits: u32) -> usize {
        let product = u64::from(hash.wrapping_mul(self.factor));
        // Of 32 bits.
        (product << bits >> 32) as usize
    }
}

/// The bits that a hash sets in a filter.
#[inline(always)]
pub(super) fn filter_bits(hash: u32) -> u8 {
    FILTER[hash as usize % FILTER.len()]
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // the half is what is wanted
const fn low(number: u64) -> u32 {
    number as u32
}

#[inline(always)]
const fn high(number: u64) -> u32 {
    low(number >> 32)
}
