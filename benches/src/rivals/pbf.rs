//! PBF, parallel Bloom filters: Dharmapurikar, Krishnamurthy, Taylor, "Longest prefix matching using Bloom
//! filters", SIGCOMM 2003. IPv4.
//!
//! Each prefix length in the table has a Bloom filter in fast memory on the chip and a hash table in slow
//! memory off it. The filters say which lengths may match; of these the hash tables are asked, longest first,
//! until one has the prefix. Hardware asks all filters at once; here they are asked from the longest length
//! down, no further than needed.
//!
//! ```text
//! key ──► length 32: filter ── no ─┐
//!                                  ▼
//!         length 24: filter ── maybe ──► hash table ── no (a false positive) ─┐
//!                                              └── yes ──► next hop           ▼
//!         …                                                                 the default route
//! ```
//!
//! Sizes are those of the SAIL paper (section 6.2): 24 filters, for lengths 9 to 32, of which 0.003 all
//! together may be wrong, make k = 13 hash functions and 13 / ln 2 = 18.755 bits for each prefix, and 1.003
//! reads off the chip a lookup. Filters are for the lengths that there are, which may be other lengths and
//! fewer. The k functions are made of two (Kirsch and Mitzenmacher, 2006). There are no updates in place:
//! those would take counting filters.

use std::f64::consts::LN_2;

use anyhow::{Result, ensure};
use wirespeed_fib::{Address, NextHop, Prefix, Rib, V4};
use wirespeed_sail::on_chip::PBF_HASHES;

use crate::table::{Contestant, one_by_one};

/// Filters and hash tables, longest prefix first, and what they leave to the default route.
pub struct Pbf {
    lengths: Vec<Length>,
    default: NextHop,
}

/// The prefixes of one length, of 1 to 32 bits.
struct Length {
    /// What shifts a key's first bits down.
    shift: u32,
    filter: Filter,
    prefixes: Prefixes,
}

impl Contestant<V4> for Pbf {
    one_by_one!(V4);

    #[inline]
    fn one(&self, key: V4) -> NextHop {
        self.look_up(key).0
    }

    fn memory(&self) -> Option<u64> {
        Some(self.on_chip() + self.off_chip())
    }
}

impl Pbf {
    /// Puts all routes into filters and hash tables.
    pub fn build(rib: &Rib<V4>) -> Result<Self> {
        let mut by_length = vec![Vec::new(); 33];
        for (prefix, next_hop) in rib {
            by_length[usize::from(prefix.len())].push((prefix.address().0, next_hop));
        }
        let mut lengths = Vec::new();
        for (len, mut routes) in (0..=V4::BITS).zip(by_length).skip(1).rev() {
            if routes.is_empty() {
                continue;
            }
            let shift = u32::from(V4::BITS - len);
            for (bits, _) in &mut routes {
                *bits >>= shift;
            }
            let mut filter = Filter::new(routes.len());
            for &(bits, _) in &routes {
                filter.insert(Hash::of(bits, shift));
            }
            lengths.push(Length { shift, filter, prefixes: Prefixes::new(&routes, shift)? });
        }
        Ok(Self { lengths, default: rib.get(Prefix::DEFAULT).unwrap_or(NextHop::NONE) })
    }

    /// The next hop of a key, and how many hash tables were asked for it.
    #[inline]
    pub fn look_up(&self, V4(key): V4) -> (NextHop, u32) {
        let mut asked = 0;
        for Length { shift, filter, prefixes } in &self.lengths {
            let bits = key >> shift;
            let hash = Hash::of(bits, *shift);
            if filter.may_have(hash) {
                asked += 1;
                if let Some(next_hop) = prefixes.find(bits, hash) {
                    return (next_hop, asked);
                }
            }
        }
        (self.default, asked)
    }

    /// Number of filters.
    pub fn filters(&self) -> usize {
        self.lengths.len()
    }

    /// Bytes of the filters.
    pub fn on_chip(&self) -> u64 {
        self.lengths.iter().map(|length| size_of_val(&*length.filter.words) as u64).sum()
    }

    /// Bytes of the hash tables.
    pub fn off_chip(&self) -> u64 {
        self.lengths.iter().map(|length| size_of_val(&*length.prefixes.slots) as u64).sum()
    }
}

/// The two functions that all others are made of: first + i × step.
#[derive(Clone, Copy)]
struct Hash {
    first: u64,
    step: u64,
}

impl Hash {
    /// Hashes the first bits of a prefix of one length; `shift` tells lengths apart.
    #[inline]
    fn of(bits: u32, shift: u32) -> Self {
        // Two rounds of multiply and fold (wyhash's mixing step); the constants are odd and have 32 bits set.
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            #[allow(clippy::cast_possible_truncation)] // both halves are used
            let (low, high) = (product as u64, (product >> 64) as u64);
            low ^ high
        };
        let key = u64::from(bits) << 6 | u64::from(shift);
        let first = fold(key ^ 0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03);
        Self { first, step: fold(first, 0xa076_1d64_78bd_642f) | 1 }
    }

    /// Function i scaled to `0..size`.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the high half of a product of two u64
    fn scaled(self, i: u32, size: u64) -> u64 {
        let hash = self.first.wrapping_add(self.step.wrapping_mul(i.into()));
        ((u128::from(hash) * u128::from(size)) >> 64) as u64
    }
}

/// A Bloom filter of [`PBF_HASHES`] functions.
struct Filter {
    words: Box<[u64]>,
    bits: u64,
}

impl Filter {
    /// A filter with 18.755 bits for each of so many members.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a size
    fn new(members: usize) -> Self {
        let bits = (members as f64 * f64::from(PBF_HASHES) / LN_2).ceil() as u64;
        Self { words: vec![0; bits.div_ceil(64) as usize].into(), bits }
    }

    fn insert(&mut self, hash: Hash) {
        for i in 0..PBF_HASHES {
            let (word, mask) = self.place(hash, i);
            self.words[word] |= mask;
        }
    }

    #[inline]
    fn may_have(&self, hash: Hash) -> bool {
        (0..PBF_HASHES).all(|i| {
            let (word, mask) = self.place(hash, i);
            self.words[word] & mask != 0
        })
    }

    /// The word and the bit in it of function i.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // an index into memory
    fn place(&self, hash: Hash, i: u32) -> (usize, u64) {
        let bit = hash.scaled(i, self.bits);
        ((bit / 64) as usize, 1 << (bit % 64))
    }
}

/// A hash table of prefixes of one length: open addressing, at most half full.
struct Prefixes {
    slots: Box<[Slot]>,
    /// What the bits of a free slot say; no prefix has these.
    vacant: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    bits: u32,
    next_hop: NextHop,
}

impl Prefixes {
    /// A table of prefixes in ascending order, each once.
    fn new(routes: &[(u32, NextHop)], shift: u32) -> Result<Self> {
        let gap = (0..=u32::MAX).zip(routes.iter().map(|route| Some(route.0)).chain([None]));
        let vacant = if shift > 0 {
            // Bits are fewer than 32.
            Some(u32::MAX)
        } else {
            gap.into_iter().find_map(|(bits, there)| (there != Some(bits)).then_some(bits))
        };
        ensure!(vacant.is_some(), "one length holds 2^32 - 1 prefixes, the table has {}", routes.len());
        let vacant = vacant.unwrap_or_default();
        let free = Slot { bits: vacant, next_hop: NextHop::NONE };
        let mut table = Self { slots: vec![free; 2 * routes.len().next_power_of_two()].into(), vacant };
        for &(bits, next_hop) in routes {
            let mut at = table.start(Hash::of(bits, shift));
            while table.slots[at].bits != vacant {
                at = (at + 1) & (table.slots.len() - 1);
            }
            table.slots[at] = Slot { bits, next_hop };
        }
        Ok(table)
    }

    /// The next hop of a prefix, if it is there.
    #[inline]
    fn find(&self, bits: u32, hash: Hash) -> Option<NextHop> {
        let mut at = self.start(hash);
        loop {
            let slot = self.slots[at];
            if slot.bits == self.vacant {
                return None;
            }
            if slot.bits == bits {
                return Some(slot.next_hop);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Where a prefix is looked for first.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // an index into memory
    fn start(&self, hash: Hash) -> usize {
        // A function that no filter uses.
        hash.scaled(PBF_HASHES, self.slots.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirespeed_fib::conformance::tables;
    use wirespeed_fib::synth::rng::Rng;
    use wirespeed_sail::on_chip;

    use super::*;
    use crate::rivals::tests::{agrees, hand_picked};

    #[test]
    fn hand_picked_tables() {
        hand_picked(Pbf::build);
    }

    #[test]
    fn the_host_that_looks_vacant() {
        let hosts = |hosts: &[u32]| -> Rib<V4> {
            hosts.iter().map(|&host| (Prefix::host(V4(host)), NextHop(host ^ 7))).collect()
        };
        for there in [&[0, 1, 2, 4][..], &[1, 2], &[0], &[u32::MAX], &[0, u32::MAX]] {
            let rib = hosts(there);
            agrees(&Pbf::build(&rib).unwrap(), &rib);
            for key in 0..8 {
                let expected = if there.contains(&key) { NextHop(key ^ 7) } else { NextHop::NONE };
                assert_eq!(Pbf::build(&rib).unwrap().one(V4(key)), expected);
            }
        }
    }

    /// The filters are as large and as often wrong as they are meant to be.
    #[test]
    fn sizes_and_false_positives() {
        let mut rng = Rng::new(5);
        let mut bits = || u32::try_from(rng.below(1 << 32)).unwrap();
        let rib: Rib<V4> = (0..200_000).map(|_| (Prefix::around(V4(bits()), 24), NextHop(1))).collect();
        let table = Pbf::build(&rib).unwrap();
        let whole = on_chip::pbf(rib.len() as u64);
        assert!(table.on_chip().abs_diff(whole) <= 8, "{} bytes, not {whole}", table.on_chip());
        assert_eq!(table.filters(), 1);
        let (mut absent, mut wrong) = (0u32, 0);
        for _ in 0..2_000_000 {
            if let (NextHop::NONE, asked) = table.look_up(V4(bits())) {
                absent += 1;
                wrong += asked;
            }
        }
        // 0.5^13 = 0.000122; some 240 of the keys, give or take five standard deviations.
        let rate = f64::from(wrong) / f64::from(absent);
        assert!((0.000_08..0.000_17).contains(&rate), "{wrong} of {absent}: {rate}");
    }

    proptest! {
        #[test]
        fn random_tables(rib in tables::random::<V4>(0..200)) {
            agrees(&Pbf::build(&rib).unwrap(), &rib);
        }
    }
}
