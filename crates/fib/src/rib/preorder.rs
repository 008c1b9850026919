//! The place of a prefix in a node: its number in a preorder walk of a binary trie of height 8.
//!
//! A node holds the prefixes of one octet, of 0 to 8 bits: 511 places. Numbered in preorder (a node, all
//! below its 0 branch, all below its 1 branch) three things come for free:
//!
//! ```text
//!            *  0                       ascending place  = ascending (address, length), the order of a table
//!       0* 1      1* 256                all below a prefix = one run of places
//!   00* 2  01* 129   …                  longest match for an octet = highest place among the 9 on its path
//! ```
//!
//! The more usual numbering by levels (heap order, as in Tree Bitmap) has neither of the first two.

/// Places in a node.
pub(super) const PLACES: u16 = 511;

/// Bits that say which places are taken.
pub(super) type PlaceSet = [u64; 8];

/// The place of the prefix made of the first `bits` bits of `octet`.
#[inline]
pub(super) const fn place(octet: u8, bits: u8) -> u16 {
    debug_assert!(bits <= 8);
    // Each 1 branch at depth i skips the 2^(9-i) - 1 places of the 0 branch beside it, and each step down is
    // one place.
    let value = (octet as u16) >> (8 - bits);
    bits as u16 + (value << (9 - bits)) - count_ones(value)
}

/// Number of places in the run that starts with a prefix of `bits` bits: itself and all below.
#[inline]
pub(super) const fn run(bits: u8) -> u16 {
    (1 << (9 - bits)) - 1
}

#[allow(clippy::cast_possible_truncation)] // at most 16
const fn count_ones(value: u16) -> u16 {
    value.count_ones() as u16
}

/// The first octet and the number of bits of the prefix at a place: the inverse of [`place`].
pub(super) static AT: [(u8, u8); PLACES as usize] = {
    let mut at = [(0, 0); PLACES as usize];
    let mut bits = 0;
    while bits <= 8 {
        let mut octet = 0u16;
        while octet < 256 {
            at[place(octet.to_le_bytes()[0], bits) as usize] = (octet.to_le_bytes()[0], bits);
            octet += 1 << (8 - bits);
        }
        bits += 1;
    }
    at
};

/// The 9 places on the path of each octet, from none of its bits to all of them.
pub(super) static PATH: [PlaceSet; 256] = {
    let mut path = [[0; 8]; 256];
    let mut octet = 0u8;
    loop {
        let mut bits = 0;
        while bits <= 8 {
            let at = place(octet, bits) as usize;
            path[octet as usize][at / 64] |= 1 << (at % 64);
            bits += 1;
        }
        if octet == u8::MAX {
            break;
        }
        octet += 1;
    }
    path
};

/// Bits, with the number of set bits before each word: a rank then needs one bit count, which takes a dozen
/// instructions on a CPU without an instruction for it.
#[derive(Clone, Debug)]
pub(super) struct Ranked<const N: usize> {
    words: [u64; N],
    before: [u16; N],
}

impl<const N: usize> Ranked<N> {
    /// No bit set.
    pub(super) const EMPTY: Self = Self { words: [0; N], before: [0; N] };

    /// Number of set bits below bit `at`.
    #[inline]
    pub(super) fn rank(&self, at: u16) -> usize {
        let (word, bit) = (usize::from(at / 64), at % 64);
        usize::from(self.before[word]) + (self.words[word] & ((1 << bit) - 1)).count_ones() as usize
    }

    /// Sets or clears bit `at`.
    pub(super) fn put(&mut self, at: u16, on: bool) {
        let was = has(&self.words, at);
        put(&mut self.words, at, on);
        for before in &mut self.before[usize::from(at / 64) + 1..] {
            *before = *before + u16::from(on) - u16::from(was);
        }
    }
}

impl<const N: usize> std::ops::Deref for Ranked<N> {
    type Target = [u64; N];

    #[inline]
    fn deref(&self) -> &[u64; N] {
        &self.words
    }
}

/// Whether bit `at` is set.
#[inline]
pub(super) fn has<const N: usize>(set: &[u64; N], at: u16) -> bool {
    set[usize::from(at / 64)] >> (at % 64) & 1 == 1
}

/// Sets or clears bit `at`.
#[inline]
fn put<const N: usize>(set: &mut [u64; N], at: u16, on: bool) {
    let (word, bit) = (usize::from(at / 64), at % 64);
    set[word] = set[word] & !(1 << bit) | u64::from(on) << bit;
}

/// The first set bit at or after `from`, if any.
#[inline]
#[allow(clippy::cast_possible_truncation)] // bit numbers are under 512
pub(super) fn first_from<const N: usize>(set: &[u64; N], from: u16) -> Option<u16> {
    let start = usize::from(from / 64);
    let mut word = start;
    while word < N {
        let mut bits = set[word];
        if word == start {
            bits &= u64::MAX << (from % 64);
        }
        if bits != 0 {
            return Some((word * 64) as u16 + bits.trailing_zeros() as u16);
        }
        word += 1;
    }
    None
}

/// The last bit set in both, if any.
#[inline]
#[allow(clippy::cast_possible_truncation)] // bit numbers are under 512
pub(super) fn last_common(a: &PlaceSet, b: &PlaceSet) -> Option<u16> {
    for word in (0..8).rev() {
        let bits = a[word] & b[word];
        if bits != 0 {
            return Some((word * 64) as u16 + 63 - bits.leading_zeros() as u16);
        }
    }
    None
}

/// The last bit below `to` that is set in both, if any.
#[inline]
#[allow(clippy::cast_possible_truncation)] // bit numbers are under 512
pub(super) fn last_common_below(a: &PlaceSet, b: &PlaceSet, to: u16) -> Option<u16> {
    let last = usize::from((to - 1) / 64);
    for word in (0..=last).rev() {
        let mut bits = a[word] & b[word];
        if word == last {
            bits &= u64::MAX >> (63 - (to - 1) % 64);
        }
        if bits != 0 {
            return Some((word * 64) as u16 + 63 - bits.leading_zeros() as u16);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_a_permutation_in_table_order() {
        let mut seen = [false; PLACES as usize];
        for bits in 0..=8u8 {
            for octet in (0..=255u8).step_by(1 << (8 - bits)) {
                let at = usize::from(place(octet, bits));
                assert!(!seen[at]);
                seen[at] = true;
                assert_eq!(AT[at], (octet, bits));
            }
        }
        assert!(seen.iter().all(|&s| s));
        assert!(AT.is_sorted());
    }

    #[test]
    fn a_run_is_what_a_prefix_covers() {
        for (at, &(octet, bits)) in AT.iter().enumerate() {
            for (other, &(o, b)) in AT.iter().enumerate() {
                let covered = b >= bits && (bits == 0 || (o ^ octet) >> (8 - bits) == 0);
                assert_eq!(covered, (at..at + usize::from(run(bits))).contains(&other), "{at} {other}");
            }
        }
    }

    #[test]
    fn paths_hold_nine_places_deepest_last() {
        for octet in 0..=255u8 {
            let path = &PATH[usize::from(octet)];
            let places: Vec<u16> = (0..PLACES).filter(|&at| has(path, at)).collect();
            assert_eq!(places, (0..=8).map(|bits| place(octet, bits)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn bit_searches() {
        let mut set = Ranked::<8>::EMPTY;
        for at in [3, 64, 200, 511, 200] {
            set.put(at, true);
        }
        assert_eq!([0, 3, 4, 64, 65, 200, 201, 511].map(|at| set.rank(at)), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(first_from(&set, 4), Some(64));
        assert_eq!(first_from(&set, 64), Some(64));
        assert_eq!(first_from(&set, 201), Some(511));
        set.put(511, false);
        set.put(64, false);
        set.put(64, false);
        assert_eq!([64, 65, 200, 201, 511].map(|at| set.rank(at)), [1, 1, 1, 2, 2]);
        assert_eq!(first_from(&set, 201), None);
        assert_eq!(last_common(&set, &[u64::MAX; 8]), Some(200));
    }
}
