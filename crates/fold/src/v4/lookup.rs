//! Lookups, alone and in batches.
//!
//! Two dependent reads, of c18 and of n24, and no branch that depends on a key, but for the few keys whose element is
//! all ones: those are finished after the others.
//!
//! A single lookup among one-byte elements is 33 instructions of x86-64: 12 look up, the others choose between the
//! widths and keep to the bounds of the image (`benches/examples/single_lookup.rs`).

use wirespeed_fib::{Lpm, NextHop, Step, V4, Way};
use wirespeed_image::{Element, Image, SectionId, Table, WORD, number};

use super::layout::{
    B18, C18, C24, FoldTableV4, LONG, N24, N32, SHORT, SLOTS, long_element, mark, short_element, slot,
};
use super::simd;

/// Keys of a block: as many as a core can have reads under way for, and some.
const BLOCK: usize = 64;

/// Calls a function generic over the elements of c18 and of chunks with those of an image.
macro_rules! with_widths {
    ($table:expr, $function:ident($($argument:expr),*)) => {{
        let image = $table.image();
        match ($table.narrow, $table.entry_width()) {
            (true, 1) => $function::<u16, u8>(image, $($argument),*),
            (true, 2) => $function::<u16, u16>(image, $($argument),*),
            (true, _) => $function::<u16, u32>(image, $($argument),*),
            (_, 1) => $function::<u32, u8>(image, $($argument),*),
            (_, 2) => $function::<u32, u16>(image, $($argument),*),
            _ => $function::<u32, u32>(image, $($argument),*),
        }
    }};
}

impl Lpm<V4> for FoldTableV4 {
    #[inline]
    fn lookup(&self, address: V4) -> NextHop {
        match (self.narrow, self.entry_width()) {
            (true, 1) => lookup::<u16, u8>(self, address),
            (true, 2) => lookup::<u16, u16>(self, address),
            (true, _) => lookup::<u16, u32>(self, address),
            (_, 1) => lookup::<u32, u8>(self, address),
            (_, 2) => lookup::<u32, u16>(self, address),
            _ => lookup::<u32, u32>(self, address),
        }
    }

    fn lookup_batch(&self, addresses: &[V4], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        with_widths!(self, batch(Way::best(), addresses, next_hops));
    }

    fn explain(&self, address: V4) -> Vec<Step> {
        with_widths!(self, explain(address))
    }
}

/// The elements of a section of words.
#[inline]
fn elements<W: Element>(image: &Image, section: SectionId) -> &[W] {
    bytemuck::cast_slice(image.section::<u64>(section))
}

#[inline]
fn lookup<I: Element, W: Element>(table: &FoldTableV4, address: V4) -> NextHop {
    let image = table.image();
    let chunk = number(image.at::<I>(table.c18, slot(address))) as usize;
    let found = number(image.at::<W>(table.n24, chunk * SHORT + short_element(address)));
    if found == mark(size_of::<W>()) { lookup_long::<W>(image, address) } else { NextHop(found) }
}

/// The next hop where prefixes are longer than 24 bits.
#[cold]
pub(super) fn lookup_long<W: Element>(image: &Image, address: V4) -> NextHop {
    NextHop(number(elements::<W>(image, N32)[chunk_of_32(image, address) * LONG + long_element(address)]))
}

fn block_of(image: &Image, slot: usize) -> usize {
    match image.width(B18) {
        Some(2) => image.section::<u16>(B18)[slot].into(),
        _ => image.section::<u32>(B18)[slot] as usize,
    }
}

fn chunk_of_32(image: &Image, address: V4) -> usize {
    image.section::<u32>(C24)[block_of(image, slot(address)) * SHORT + short_element(address)] as usize
}

/// A batch in vectors, as far as a way has them, and the rest block by block.
fn batch<I: Element, W: Element>(image: &Image, way: Way, addresses: &[V4], next_hops: &mut [NextHop]) {
    let done = simd::batch::<I, W>(way, image, addresses, next_hops);
    portable::<I, W>(image, &addresses[done..], &mut next_hops[done..]);
}

/// A batch block by block, each level for the whole block before the next, so that as many reads are under way as the core
/// can hold; what is left of the last block key by key.
fn portable<I: Element, W: Element>(image: &Image, addresses: &[V4], next_hops: &mut [NextHop]) {
    let c18: &[I; SLOTS] = image.section(C18).try_into().expect("the shape was checked");
    let n24 = elements::<W>(image, N24);
    let mark = mark(size_of::<W>());
    let (blocks, rest) = addresses.as_chunks::<BLOCK>();
    let (found, found_rest) = next_hops.as_chunks_mut::<BLOCK>();
    for (block, found) in blocks.iter().zip(found) {
        let at: [usize; BLOCK] = std::array::from_fn(|key| {
            number(c18[slot(block[key])]) as usize * SHORT + short_element(block[key])
        });
        *found = at.map(|at| NextHop(number(n24[at])));
        if found.iter().fold(false, |any, found| any | (found.0 == mark)) {
            finish::<W>(image, block, found);
        }
    }
    for (&address, found) in rest.iter().zip(&mut *found_rest) {
        *found = NextHop(number(n24[number(c18[slot(address)]) as usize * SHORT + short_element(address)]));
    }
    finish::<W>(image, rest, found_rest);
}

/// Looks up the keys at which a longer prefix may match.
fn finish<W: Element>(image: &Image, addresses: &[V4], next_hops: &mut [NextHop]) {
    for (&address, next_hop) in addresses.iter().zip(next_hops) {
        if next_hop.0 == mark(size_of::<W>()) {
            *next_hop = lookup_long::<W>(image, address);
        }
    }
}

fn explain<I: Element, W: Element>(image: &Image, address: V4) -> Vec<Step> {
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
    let slot = slot(address);
    let chunk = number(image.section::<I>(C18)[slot]);
    let mut steps = vec![step("c18", slot, chunk.into(), format!("chunk {chunk} of level 24"))];
    let element = chunk as usize * SHORT + short_element(address);
    let (found, short) = in_word("n24", N24, element, &|found| {
        if found == mark(size_of::<W>()) { "a longer prefix may match".into() } else { result(found) }
    });
    steps.push(short);
    if found == mark(size_of::<W>()) {
        let block = block_of(image, slot);
        steps.push(step("b18", slot, block as u64, format!("block {block}")));
        let chunk = chunk_of_32(image, address);
        let index = block * SHORT + short_element(address);
        steps.push(step("c24", index, chunk as u64, format!("chunk {chunk} of level 32")));
        steps.push(in_word("n32", N32, chunk * LONG + long_element(address), &result).1);
    }
    steps
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::conformance::{Expected, scattered, tables};
    use wirespeed_fib::{BuildOptions, Engine, oracle};

    use super::super::FoldV4;
    use super::*;

    /// The suite sees only the way that the CPU at hand prefers.
    #[test]
    fn every_way_finds_the_same() {
        for (name, rib) in tables::hand_picked::<V4>() {
            let (_, table) = FoldV4::build(&rib, &BuildOptions::default()).expect("a valid table is built");
            let expected = Expected::of(&rib);
            let mut keys = oracle::boundaries(rib.iter().map(|(prefix, _)| prefix));
            keys.extend(scattered::<V4>(1_000));
            for way in Way::ALL.into_iter().filter(|way| way.is_here()) {
                let mut found = vec![NextHop(u32::MAX); keys.len()];
                with_widths!(table, batch(way, &keys, &mut found));
                for (&key, &found) in keys.iter().zip(&found) {
                    assert_eq!(found, expected.lookup(key), "{name}: {key} by {way:?}");
                }
            }
        }
    }
}
