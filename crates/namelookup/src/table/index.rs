//! [`Index`]: nodes by the hash of their names, in 4.6 bytes each.
//!
//! ```text
//! line     16 × u32      passed | 15 slots
//! slot     tag | id      0: free. The id takes as many bits as ids need, the tag takes the rest
//! ```
//!
//! A hash has a home line. An id goes into the first line from there on that has a free slot, and each full
//! line counts the ids that passed it. So a search ends at the first line that no id has passed, a removal
//! frees a slot and moves nothing, and lines can be 93 % full: few ids are in another line than their home.
//!
//! The tag is the last part of the hash, as its first part leads to the line. With 22 bits of id a tag has 10
//! bits, so a search reads the node of another name once in a hundred times. The rest of the hash is not
//! stored: to grow, the index is made anew from the nodes.
//!
//! Before, slots of 8 bytes stored the whole hash (`wirespeed_image::Index`), were at most three quarters
//! full, and doubled: 11 to 21 bytes a node.

use wirespeed_image::HugeVec;

use crate::fetch::prefetch;

/// Slots of a line.
const SLOTS: usize = 15;
/// Ids that lines have room for, in hundredths of their slots.
const FILL: usize = 93;

/// A line. Its first element counts the ids that passed it.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u32; SLOTS + 1]);

/// Ids by hash. Several ids may have one hash. Id 0 can't be in it.
#[derive(Clone, Debug)]
pub(super) struct Index {
    lines: HugeVec<Line>,
    len: usize,
    /// The most ids.
    most: usize,
    /// Bits of a slot that are the id.
    ids: u32,
}

impl Index {
    /// Makes an empty index with room for so many ids, which are below `bound`.
    pub(super) fn with_room(ids: usize, bound: usize) -> Self {
        let lines = HugeVec::filled(Line([0; SLOTS + 1]), Self::lines_for(ids));
        let most = lines.len() * SLOTS * FILL / 100;
        Self { lines, len: 0, most, ids: bound.next_power_of_two().ilog2().clamp(1, u32::BITS) }
    }

    const fn lines_for(ids: usize) -> usize {
        1 + ids * 100 / (SLOTS * FILL)
    }

    /// The number of ids.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no room for one more id, which is this one.
    #[inline]
    pub(super) fn is_full_for(&self, id: u32) -> bool {
        self.len >= self.most || id & !self.id_mask() != 0
    }

    /// Whether it has room for `least` ids, and not for many more than `most`.
    pub(super) fn suits(&self, least: usize, most: usize) -> bool {
        let lines = Self::lines_for(most);
        self.has_room(least) && self.lines.len() <= lines + lines / 64
    }

    /// Whether it has room for so many ids.
    pub(super) fn has_room(&self, ids: usize) -> bool {
        Self::lines_for(ids) <= self.lines.len()
    }

    /// The id with this hash for which `is_it` is true.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let ids = self.id_mask();
        let tag = self.tag(hash);
        let mut at = self.home(hash);
        for _ in 0..self.lines.len() {
            let Line(line) = &self.lines[at];
            let mut like = same(line, tag, !ids);
            while like != 0 {
                let id = line[like.trailing_zeros() as usize] & ids;
                if id != 0 && is_it(id) {
                    return Some(id);
                }
                like &= like - 1;
            }
            if line[0] == 0 {
                break;
            }
            at = self.after(at);
        }
        None
    }

    /// Prefetches the line that [`find`](Self::find) reads first.
    #[inline]
    pub(super) fn fetch(&self, hash: u32) {
        prefetch(&self.lines, self.home(hash));
    }

    /// Adds an id that is not in it, and for which it is [not full](Self::is_full_for).
    #[inline]
    pub(super) fn insert(&mut self, hash: u32, id: u32) {
        let slot = self.tag(hash) | id;
        let mut at = self.home(hash);
        loop {
            let Line(line) = &mut self.lines[at];
            let free = same(line, 0, u32::MAX);
            if free != 0 {
                line[free.trailing_zeros() as usize] = slot;
                break;
            }
            line[0] += 1;
            at = self.after(at);
        }
        self.len += 1;
    }

    /// Removes an id that is in it.
    pub(super) fn remove(&mut self, hash: u32, id: u32) {
        let slot = self.tag(hash) | id;
        let mut at = self.home(hash);
        loop {
            let Line(line) = &mut self.lines[at];
            let found = same(line, slot, u32::MAX);
            if found != 0 {
                line[found.trailing_zeros() as usize] = 0;
                break;
            }
            debug_assert_ne!(line[0], 0, "the id has passed it");
            line[0] -= 1;
            at = self.after(at);
        }
        self.len -= 1;
    }

    /// Bytes held.
    pub(super) const fn memory_usage(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }

    #[inline]
    const fn id_mask(&self) -> u32 {
        u32::MAX >> (u32::BITS - self.ids)
    }

    /// The last bits of the hash, as the first ones say which line is its home.
    #[inline]
    const fn tag(&self, hash: u32) -> u32 {
        match hash.checked_shl(self.ids) {
            Some(tag) => tag,
            None => 0,
        }
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.lines.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.lines.len() { 0 } else { at + 1 }
    }
}

/// The slots whose bits under a mask are these, one bit each.
#[inline]
#[cfg(target_arch = "x86_64")]
fn same(line: &[u32; SLOTS + 1], bits: u32, mask: u32) -> u32 {
    #[allow(unsafe_code)]
    // SAFETY: every CPU of the architecture has SSE2.
    unsafe {
        same_by_vectors(line, bits, mask)
    }
}

/// Like [`same`]: a quarter of the instructions that compilers make of a loop.
#[inline]
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
fn same_by_vectors(line: &[u32; SLOTS + 1], bits: u32, mask: u32) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32,
    };
    let all = |number: u32| -> __m128i { bytemuck::cast([number; 4]) };
    let (mask, bits) = (all(mask), all(bits));
    let [a, b, c, d]: [__m128i; 4] = bytemuck::cast(*line);
    let (a, b) = (_mm_and_si128(a, mask), _mm_and_si128(b, mask));
    let (c, d) = (_mm_and_si128(c, mask), _mm_and_si128(d, mask));
    let first = _mm_packs_epi32(_mm_cmpeq_epi32(a, bits), _mm_cmpeq_epi32(b, bits));
    let second = _mm_packs_epi32(_mm_cmpeq_epi32(c, bits), _mm_cmpeq_epi32(d, bits));
    // The first element is no slot.
    _mm_movemask_epi8(_mm_packs_epi16(first, second)).cast_unsigned() & !1
}

/// The slots whose bits under a mask are these, one bit each.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
fn same(line: &[u32; SLOTS + 1], bits: u32, mask: u32) -> u32 {
    let is_same = |at: usize| u32::from(line[at] & mask == bits) << at;
    (1..=SLOTS).fold(0, |all, at| all | is_same(at))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Takes few homes, so that lines are full and ids pass them and go round the end.
        #[test]
        fn it_is_a_set(room in 14..60usize, steps in proptest::collection::vec((1..80u32, any::<bool>()), 0..400)) {
            let mut index = Index::with_room(room, 80);
            let mut set = BTreeSet::new();
            let hash = |id: u32| u32::MAX - (id % 3) * 0x2000_0000 - (id % 5);
            for (id, comes) in steps {
                if comes && !set.contains(&id) && !index.is_full_for(id) {
                    index.insert(hash(id), id);
                    set.insert(id);
                } else if !comes && set.remove(&id) {
                    index.remove(hash(id), id);
                }
                prop_assert_eq!(index.len(), set.len());
                for id in 1..80 {
                    let found = index.find(hash(id), |other| other == id);
                    prop_assert_eq!(found, set.contains(&id).then_some(id));
                }
            }
            for id in set {
                index.remove(hash(id), id);
            }
            prop_assert!(index.lines.iter().all(|line| line.0 == [0; SLOTS + 1]), "no id has passed a line");
        }
    }

    #[test]
    fn its_room_is_what_was_asked_for() {
        for ids in [0, 1, 13, 14, 1_000, 12_345] {
            let mut index = Index::with_room(ids, 1 << 20);
            assert!(index.suits(ids, ids) && index.has_room(ids));
            for id in 1..=u32::try_from(ids).unwrap() {
                assert!(!index.is_full_for(id));
                index.insert(id.wrapping_mul(0x9e37_79b9), id);
            }
            assert!(!index.suits(2 * ids + 30, 3 * ids + 30));
            assert!(!index.has_room(2 * ids + 30));
            assert!(index.is_full_for(1 << 20), "an id of too many bits");
        }
    }
}
