//! Lookups, alone and in batches.
//!
//! Two dependent reads, of c18 and of n24, and no branch that depends on a key, but for the few keys whose
//! element is all ones: those are finished after the others.
//!
//! A single lookup among one-byte elements is 33 instructions of x86-64: 12 look up, the others choose
//! between the widths and keep to the bounds of the image (`benches/examples/single_lookup.rs`).

use wirespeed_fib::{Lookup, NextHop, Step, V4, VectorLevel};
use wirespeed_image::{Element, Image, Table, WORD, number};

use super::layout::{At18, C18, FoldTableV4, LONG, N24, N32, Split, Upper, long_element, mark};
use super::past_24::{block_of, chunk_of_32, elements, lookup_long};
use super::simd;

/// Keys of a block: as many as a core can have reads under way for, and some.
const BLOCK: usize = 64;

/// Calls a function generic over a split and the elements of slots and of chunks, with those of a table.
macro_rules! with_widths {
    ($table:expr, $split:ty, $function:ident($($argument:expr),*)) => {
        match ($table.narrow, $table.entry_width()) {
            (true, 1) => $function::<$split, u16, u8>($($argument),*),
            (true, 2) => $function::<$split, u16, u16>($($argument),*),
            (true, _) => $function::<$split, u16, u32>($($argument),*),
            (_, 1) => $function::<$split, u32, u8>($($argument),*),
            (_, 2) => $function::<$split, u32, u16>($($argument),*),
            _ => $function::<$split, u32, u32>($($argument),*),
        }
    };
}
pub(crate) use with_widths;

impl Lookup<V4> for FoldTableV4 {
    #[inline]
    fn lookup(&self, address: V4) -> NextHop {
        with_widths!(self, At18, lookup(self.image(), &self.upper, address))
    }

    fn lookup_batch(&self, addresses: &[V4], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        with_widths!(self, At18, batch(VectorLevel::best(), self.image(), 0, addresses, next_hops));
    }

    fn explain(&self, address: V4) -> Vec<Step> {
        with_widths!(self, At18, explain(self.image(), 0, address))
    }
}

/// One lookup.
#[inline]
pub(crate) fn lookup<S: Split, I: Element, W: Element>(image: &Image, upper: &Upper, address: V4) -> NextHop {
    let slot = number(image.at::<I>(upper.slots, S::slot(address)));
    if S::DIRECT && slot < upper.base {
        return NextHop(slot);
    }
    let chunk = if S::DIRECT { slot - upper.base } else { slot } as usize;
    let found = number(image.at::<W>(upper.n24, chunk * S::SHORT + S::short_element(address)));
    if found == mark(size_of::<W>()) { lookup_long::<S, W>(image, address) } else { NextHop(found) }
}

/// A batch in vectors, as far as the vector level has them, and the rest block by block.
pub(crate) fn batch<S: Split, I: Element, W: Element>(
    level: VectorLevel,
    image: &Image,
    base: u32,
    addresses: &[V4],
    next_hops: &mut [NextHop],
) {
    let done = simd::batch::<S, I, W>(level, image, base, addresses, next_hops);
    portable::<S, I, W>(image, base, &addresses[done..], &mut next_hops[done..]);
}

/// A batch block by block, each level for the whole block before the next, so that as many reads are under
/// way as the core can hold; what is left of the last block key by key.
fn portable<S: Split, I: Element, W: Element>(
    image: &Image,
    base: u32,
    addresses: &[V4],
    next_hops: &mut [NextHop],
) {
    // Of a length that is known, so that no slot is looked for outside of it.
    let slots = &image.section::<I>(C18)[..S::SLOTS];
    let n24 = elements::<W>(image, N24);
    let mark = mark(size_of::<W>());
    let slot_of = |address: V4| number(slots[S::slot(address)]);
    let found_in = |slot: u32, address: V4| {
        // Where the slot has the next hop, what is read is an element of chunk 0, and dropped.
        let chunk = if S::DIRECT { slot.saturating_sub(base) } else { slot };
        let found = number(n24[chunk as usize * S::SHORT + S::short_element(address)]);
        NextHop(if S::DIRECT && slot < base { slot } else { found })
    };
    let (blocks, rest) = addresses.as_chunks::<BLOCK>();
    let (found, found_rest) = next_hops.as_chunks_mut::<BLOCK>();
    for (block, found) in blocks.iter().zip(found) {
        let slot = block.map(slot_of);
        *found = std::array::from_fn(|key| found_in(slot[key], block[key]));
        if found.iter().fold(false, |any, found| any | (found.0 == mark)) {
            finish::<S, W>(image, block, found);
        }
    }
    for (&address, found) in rest.iter().zip(&mut *found_rest) {
        *found = found_in(slot_of(address), address);
    }
    finish::<S, W>(image, rest, found_rest);
}

/// Looks up the keys at which a longer prefix may match.
fn finish<S: Split, W: Element>(image: &Image, addresses: &[V4], next_hops: &mut [NextHop]) {
    for (&address, next_hop) in addresses.iter().zip(next_hops) {
        if next_hop.0 == mark(size_of::<W>()) {
            *next_hop = lookup_long::<S, W>(image, address);
        }
    }
}

/// The steps of a lookup.
pub(crate) fn explain<S: Split, I: Element, W: Element>(image: &Image, base: u32, address: V4) -> Vec<Step> {
    let result = |next_hop: u32| match next_hop {
        0 => "no route".to_owned(),
        n => format!("next hop {n}"),
    };
    let step =
        |section, index: usize, value: u64, meaning| Step { section, index: index as u64, value, meaning };
    // An element as part of the word that the section has.
    let in_word = |name, section, element: usize, meaning: &dyn Fn(u32) -> String| {
        let value = number(elements::<W>(image, section)[element]);
        let word = element * size_of::<W>() / WORD;
        let within = element % (WORD / size_of::<W>());
        let meaning = format!("element {within} of the word: {}", meaning(value));
        (value, step(name, word, image.section::<u64>(section)[word], meaning))
    };
    let [slots, blocks] = S::SLOT_SECTIONS;
    let slot = S::slot(address);
    let value = number(image.section::<I>(C18)[slot]);
    if S::DIRECT && value < base {
        return vec![step(slots, slot, value.into(), result(value))];
    }
    let chunk = value - base;
    let mut steps = vec![step(slots, slot, value.into(), format!("chunk {chunk} of level 24"))];
    let element = chunk as usize * S::SHORT + S::short_element(address);
    let (found, short) = in_word("n24", N24, element, &|found| {
        if found == mark(size_of::<W>()) { "a longer prefix may match".into() } else { result(found) }
    });
    steps.push(short);
    if found == mark(size_of::<W>()) {
        let block = block_of::<S>(image, address);
        steps.push(step(blocks, slot, block as u64, format!("block {block}")));
        let chunk = chunk_of_32::<S>(image, address);
        let index = block * S::SHORT + S::short_element(address);
        steps.push(step("c24", index, chunk as u64, format!("chunk {chunk} of level 32")));
        steps.push(in_word("n32", N32, chunk * LONG + long_element(address), &result).1);
    }
    steps
}
