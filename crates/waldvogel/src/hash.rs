//! [`Key`]: a prefix as the hash tables hold it; [`Seed`]: in which bucket that is.
//!
//! A prefix of up to 48 bits is a word of 49 bits, its bits from the top, then a one, then zeros, so that
//! prefixes of different lengths are different words and none is zero:
//!
//! ```text
//! 2001:db8:0::/48    2001 0db8 0000 8000          2001:db8::/32    2001 0db8 8000 0000
//! ```
//!
//! A longer one is its 128 bits and its length. Two multiplications by secret odd numbers with a fold between
//! them hash a word: each of the three is one to one on 49 bits, so that different words have different
//! hashes (`slots.rs` says what that is for). Whoever chooses prefixes without knowing the seed cannot make
//! them meet: for two different words a multiplication by a random odd number is a universal hash
//! (Dietzfelbinger et al., "A reliable randomized algorithm for the closest-pair problem", 1997). The seed is
//! random for each process, and where a table finds no room for a key with one seed it is built with the
//! next.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use wirespeed_fib::{Address, Prefix};

use crate::value::{WIDE_FROM, low};

/// Bits of a word and of its hash, which are the upper ones of 64.
pub const HASH_BITS: u32 = WIDE_FROM as u32;
/// The bits of 64 that are not theirs.
const BELOW: u32 = 64 - HASH_BITS;
/// The shift of the fold between the multiplications.
pub const FOLD: u32 = 25;
/// The bits of 64 that are theirs.
pub(crate) const HASH_MASK: u64 = u64::MAX << BELOW;

/// A prefix as it is found by hashing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    /// The first 64 bits, those past the length zero.
    pub(crate) high: u64,
    /// The others.
    pub(crate) low: u64,
    pub(crate) len: u8,
}

impl Key {
    pub(crate) fn of<A: Address>(prefix: Prefix<A>) -> Self {
        let (high, low) = halves(prefix.address());
        Self { high, low, len: prefix.len() }
    }

    /// Whether it is longer than a word holds.
    #[inline]
    pub(crate) fn is_wide(self) -> bool {
        self.len >= WIDE_FROM
    }
}

/// The first 64 bits of an address and the others; an IPv4 address is at the top.
#[inline]
#[allow(clippy::cast_possible_truncation)] // meant
pub(crate) fn halves<A: Address>(address: A) -> (u64, u64) {
    let bits = address.to_u128() << (128 - u32::from(A::BITS));
    ((bits >> 64) as u64, bits as u64)
}

/// The word of the first `len` bits of an address, of which these are the first 64; `len` below 64.
#[inline]
pub(crate) fn word(high: u64, len: u8) -> u64 {
    debug_assert!(len < WIDE_FROM);
    let end = 1 << 63 >> len;
    // What is above the end, and the end.
    high & !(end | (end - 1)) | end
}

/// Two odd multipliers for a word, and two more for the second half of a longer key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(pub(crate) [u64; 4]);

/// What both buckets of a long key follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash(u64);

impl Seed {
    /// The seed of an attempt to build, from the number that a user gave or else this process's own: within a
    /// process equal tables are built alike.
    pub(crate) fn new(chosen: Option<u64>, attempt: u32) -> Self {
        static OF_PROCESS: OnceLock<u64> = OnceLock::new();
        let first = chosen.unwrap_or_else(|| *OF_PROCESS.get_or_init(|| RandomState::new().hash_one(0)));
        let mut state = first.wrapping_add(u64::from(attempt).wrapping_mul(0xd1b5_4a32_d192_ed03));
        // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
        Self([(); 4].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ mixed >> 31) | 1
        }))
    }

    /// The hash of a word, 49 bits at the top.
    #[inline]
    pub(crate) fn of_word(&self, word: u64) -> u64 {
        let product = word.wrapping_mul(self.0[0]);
        (product ^ product >> FOLD & HASH_MASK).wrapping_mul(self.0[1])
    }

    /// The hash of a key that is longer than a word.
    #[inline]
    pub(crate) fn of_wide(&self, key: Key) -> Hash {
        let high = mix(key.high, self.0[0], self.0[1]).wrapping_add(u64::from(key.len));
        Hash(mix(high ^ key.low, self.0[2], self.0[3]))
    }
}

impl Hash {
    /// The bucket of so many to look in first.
    #[inline]
    pub(crate) fn first(self, buckets: u32) -> u32 {
        scaled(self.0 >> 32, buckets)
    }

    /// The bucket for what the first has no room for.
    #[inline]
    pub(crate) fn second(self, buckets: u32) -> u32 {
        scaled(self.0 & u64::from(u32::MAX), buckets)
    }
}

/// The group of a hash, where the number of a slot has `bits` bits.
#[inline]
#[allow(clippy::cast_possible_truncation)] // fewer than 32 bits
pub(crate) fn group(hash: u64, bits: u32) -> u32 {
    (hash << bits >> (66 - bits)) as u32
}

/// The last 31 bits of a hash and a one.
#[inline]
pub(crate) fn rest(hash: u64) -> u32 {
    low(hash >> (BELOW - 1)) | 1
}

/// The slot where a pilot takes a hash.
#[inline]
#[allow(clippy::cast_possible_truncation)] // fewer than 32 bits
pub(crate) fn slot(hash: u64, pilot: u32, bits: u32) -> u32 {
    let home = (hash >> (64 - bits)) as u32;
    home.wrapping_add(pilot.wrapping_mul(rest(hash))) & ((1 << bits) - 1)
}

/// The hash whose rest is in a slot, by the pilots of groups.
pub(crate) fn whole(rest: u64, at: u32, bits: u32, pilot: impl Fn(u32) -> u32) -> u64 {
    let known = rest << (BELOW - 1) & HASH_MASK & (u64::MAX >> bits);
    let home = at.wrapping_sub(pilot(group(known, bits)).wrapping_mul(low(rest))) & ((1 << bits) - 1);
    u64::from(home) << (64 - bits) | known
}

#[inline]
fn mix(word: u64, first: u64, second: u64) -> u64 {
    let product = word.wrapping_mul(first);
    (product ^ product >> 32).wrapping_mul(second)
}

/// A number of 32 bits brought below `below` (Lemire, "Fast random integer generation in an interval", 2019).
#[inline]
#[allow(clippy::cast_possible_truncation)] // below `below`
fn scaled(number: u64, below: u32) -> u32 {
    ((number * u64::from(below)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{V4, V6};

    use super::*;

    #[test]
    fn words_of_all_lengths_differ() {
        let mut words: Vec<_> = (0..WIDE_FROM).map(|len| word(u64::MAX, len)).collect();
        words.extend((0..WIDE_FROM).map(|len| word(0, len)));
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        // Of length 0 there is one.
        assert_eq!(words.len(), count - 1);
        assert!(!words.contains(&0));
    }

    #[test]
    fn addresses_are_cut_in_halves_from_the_top() {
        assert_eq!(halves(V4(0x0102_0304)), (0x0102_0304_0000_0000, 0));
        assert_eq!(halves(V6(0x1_0000_0000_0000_0002)), (1, 2));
        assert_eq!(word(halves("2001:db8::".parse::<V6>().unwrap()).0, 32), 0x2001_0db8_8000_0000);
    }

    #[test]
    fn slots_and_groups_are_used_evenly() {
        const BITS: u32 = 18;
        // Keys in steps, as prefixes come.
        for shift in [16, 20, 32, 44] {
            let seed = Seed::new(Some(shift), 0);
            let keys = 1u64 << 12;
            let (mut homes, mut groups) = (vec![0; 1 << 8], vec![0; 1 << 8]);
            for key in 0..keys {
                let hash = seed.of_word(word(key << shift, 63 - u8::try_from(shift.max(15)).unwrap()));
                homes[slot(hash, 0, BITS) as usize >> (BITS - 8)] += 1;
                groups[group(hash, BITS) as usize >> (BITS - 10)] += 1;
            }
            // 16 on average.
            assert!(homes.iter().chain(&groups).all(|&keys| keys < 64), "{shift}: {homes:?} {groups:?}");
        }
    }

    #[test]
    fn a_slot_and_what_is_in_it_give_the_hash() {
        let seed = Seed::new(Some(1), 0);
        for bits in [18, 19, 25] {
            for key in 0..1_000u64 {
                let hash = seed.of_word(word(key.wrapping_mul(0x9e37_79b9_7f4a_7c15), 48));
                let pilot = |group: u32| group % 256;
                let at = slot(hash, pilot(group(hash, bits)), bits);
                assert_eq!(whole(rest(hash).into(), at, bits, pilot), hash);
            }
        }
    }

    #[test]
    fn seeds_follow_from_what_was_chosen() {
        assert_eq!(Seed::new(Some(1), 0), Seed::new(Some(1), 0));
        assert_ne!(Seed::new(Some(1), 0), Seed::new(Some(2), 0));
        assert_ne!(Seed::new(Some(1), 0), Seed::new(Some(1), 1));
        assert_eq!(Seed::new(None, 0), Seed::new(None, 0));
    }
}
