//! Batches without vectors.
//!
//! Each step is taken for a block of keys before the next, so that as many reads are under way as the core
//! can hold, and no branch depends on a key. The few that lead on to level 32 are finished one by one.

use wirespeed_fib::{Address, NextHop, V4};
use wirespeed_image::{Element, Image, number};

use crate::layout::{LEVEL16, LEVEL24, LEVEL32, RUNS, SLOTS, WORDS, Word, flag_of};

/// Keys of a block: more than a core has reads under way.
const BLOCK: usize = 64;

/// The word of an octet.
#[inline]
pub(crate) fn word_index(chunk: u32, octet: u8) -> usize {
    chunk as usize * WORDS as usize + usize::from(octet >> 5)
}

/// The sections of a table.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, I, W> {
    pub(crate) level16: &'a [I; SLOTS],
    pub(crate) level24: &'a [u64],
    pub(crate) level32: &'a [u64],
    pub(crate) runs: &'a [W],
}

impl<'a, I: Element, W: Element> View<'a, I, W> {
    #[inline]
    pub(crate) fn of(image: &'a Image) -> Self {
        Self {
            level16: image.section(LEVEL16).try_into().expect("the shape was checked"),
            level24: image.section(LEVEL24),
            level32: image.section(LEVEL32),
            runs: image.section(RUNS),
        }
    }

    /// Finishes a lookup whose run of level 24 holds `value` and leads on to level 32.
    #[inline]
    pub(crate) fn lookup_long(&self, value: u32, address: V4) -> NextHop {
        let (chunk, octet) = (value & !flag_of::<W>(), address.octet(3));
        let value = number(self.runs[Word(self.level32[word_index(chunk, octet)]).run_of(octet)]);
        // Nothing leads on from level 32. In an image that we did not write it may say so.
        NextHop(if value & flag_of::<W>() == 0 { value } else { 0 })
    }

    /// Keys block by block. Inlined, so that counting bits takes one instruction where the caller may use it.
    #[inline(always)]
    pub(crate) fn blocks(&self, addresses: &[V4], next_hops: &mut [NextHop]) {
        for (addresses, next_hops) in addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK)) {
            self.block(addresses, next_hops);
        }
    }

    /// A block of keys, step by step.
    #[inline(always)]
    fn block(&self, addresses: &[V4], next_hops: &mut [NextHop]) {
        let mut at = [0; BLOCK];
        let mut long = [0; BLOCK];
        let mut count = 0;
        for (at, &address) in at.iter_mut().zip(addresses) {
            *at = word_index(number(self.level16[usize::from(address.first_16())]), address.octet(2));
        }
        for (at, &address) in at.iter_mut().zip(addresses) {
            *at = Word(self.level24[*at]).run_of(address.octet(2));
        }
        for (key, (next_hop, &at)) in next_hops.iter_mut().zip(&at).enumerate() {
            let value = number(self.runs[at]);
            *next_hop = NextHop(value);
            // Moving the end of the list or not takes the place of a branch.
            long[count % BLOCK] = key;
            count += usize::from(value & flag_of::<W>() != 0);
        }
        for &key in &long[..count] {
            next_hops[key] = self.lookup_long(next_hops[key].0, addresses[key]);
        }
    }
}
