//! Lookups, alone and in batches.
//!
//! One read of tbl24 for each key, and for the few whose entry leads on one of tbl8. The first is almost always a miss of
//! the near caches, so what counts is how many such reads are under way. Each entry is asked for 128 keys ahead, into the
//! second cache, and read when it is there.
//!
//! # What was tried
//!
//! On a Zen 4 core with 1 MB of L2, 16 MB of one-byte entries in an L3 that other programs share, the real table of 2026,
//! batches of 1,024 of 4 million distinct keys, M lookups/s for random keys and keys drawn by prefix; medians of one run.
//! Eight AVX-512 gathers at a time, as `wirespeed-fold` does it: 416 · 423; it is the reads under way that end it, as a gather
//! holds its place in the core until its last lane is there. Gathers after prefetches 256 ahead: AVX-512 512 · 580, AVX2 590 · 725;
//! scalar reads after them: 641 · 749. Prefetches 64, 128, 192, 384 and all 1,024 ahead: 625 · 681, 659 · 823, 660 · 833,
//! 618 · 777 and 499 · 649. Blocks of 8, 16, 32 and 64 keys: 662 · 858, 641 · 749, 612 · 783 and 559 · 683 at 256 ahead.
//! Prefetching into the first cache loses nearly all of it (in another run 142 · 415 beside 282 · 518 into the second, both with
//! gathers): the second has more reads under way. First far into the second and then near into the first: 226 · 495.
//! With two- and four-byte entries it is the same order: gathers alone 188 · 419 and 127 · 256, what there is now 345 · 741 and
//! 232 · 492.

use wirespeed_fib::{Lpm, NextHop, Step, V4, Way};
use wirespeed_image::{Element, Image, SectionId, Table, number};

use super::layout::{Dir24Table, SLOTS, TBL8, TBL24, WORD, chunk_bit, entry_in, slot};
use super::simd;

/// Keys of a block, after which those that lead on are seen to: a vector of the widest.
pub(super) const BLOCK: usize = 16;
/// How far ahead of its read, in keys, an entry is asked for.
const AHEAD: usize = 128;
/// How far ahead keys are asked for themselves.
const KEYS_AHEAD: usize = 512;

impl Lpm<V4> for Dir24Table {
    #[inline]
    fn lookup(&self, address: V4) -> NextHop {
        match self.entry_width() {
            1 => lookup::<u8>(self, address),
            2 => lookup::<u16>(self, address),
            _ => lookup::<u32>(self, address),
        }
    }

    fn lookup_batch(&self, addresses: &[V4], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        batch_of_width(self, Way::best(), addresses, next_hops);
    }

    fn explain(&self, address: V4) -> Vec<Step> {
        match self.entry_width() {
            1 => explain::<u8>(self.image(), address),
            2 => explain::<u16>(self.image(), address),
            _ => explain::<u32>(self.image(), address),
        }
    }
}

#[inline]
fn lookup<W: Element>(table: &Dir24Table, address: V4) -> NextHop {
    let bit = chunk_bit(size_of::<W>());
    let found = number(table.image().at::<W>(table.tbl24, slot(address)));
    if found & bit == 0 {
        return NextHop(found);
    }
    NextHop(number(table.image().at::<W>(table.tbl8, entry_in(found ^ bit, address))))
}

fn batch_of_width(table: &Dir24Table, way: Way, addresses: &[V4], next_hops: &mut [NextHop]) {
    match table.entry_width() {
        1 => batch::<u8>(table.image(), way, addresses, next_hops),
        2 => batch::<u16>(table.image(), way, addresses, next_hops),
        _ => batch::<u32>(table.image(), way, addresses, next_hops),
    }
}

/// The entries of a section.
#[inline]
fn entries<W: Element>(image: &Image, section: SectionId) -> &[W] {
    bytemuck::cast_slice(image.section::<u64>(section))
}

/// A batch block by block, entries asked for well before they are read; what is left of the last block key by key.
fn batch<W: Element>(image: &Image, way: Way, addresses: &[V4], next_hops: &mut [NextHop]) {
    let tbl24: &[W; SLOTS] = entries(image, TBL24).try_into().expect("the shape was checked");
    let ask = |address: V4| simd::prefetch(&raw const tbl24[slot(address)]);
    let read = |address: V4| NextHop(number(tbl24[slot(address)]));
    addresses.iter().take(AHEAD).for_each(|&address| ask(address));
    let (blocks, rest) = addresses.as_chunks::<BLOCK>();
    let (found, found_rest) = next_hops.as_chunks_mut::<BLOCK>();
    for (at, (block, found)) in blocks.iter().zip(found).enumerate() {
        if let Some(ahead) = blocks.get(at + AHEAD / BLOCK) {
            ahead.iter().for_each(|&address| ask(address));
        }
        // The keys of calls to come, where those lie behind one another, as they mostly do.
        simd::prefetch(block.as_ptr().wrapping_add(KEYS_AHEAD));
        let mut any = 0;
        for (&address, found) in block.iter().zip(&mut *found) {
            *found = read(address);
            any |= found.0;
        }
        if any & chunk_bit(size_of::<W>()) != 0 && !simd::follow::<W>(way, image, block, found) {
            follow::<W>(image, block, found);
        }
    }
    for (&address, found) in rest.iter().zip(&mut *found_rest) {
        *found = read(address);
    }
    follow::<W>(image, rest, found_rest);
}

/// Looks up the keys whose entries lead on.
fn follow<W: Element>(image: &Image, addresses: &[V4], found: &mut [NextHop]) {
    let (tbl8, bit) = (entries::<W>(image, TBL8), chunk_bit(size_of::<W>()));
    for (&address, found) in addresses.iter().zip(found) {
        if found.0 & bit != 0 {
            *found = NextHop(number(tbl8[entry_in(found.0 ^ bit, address)]));
        }
    }
}

fn explain<W: Element>(image: &Image, address: V4) -> Vec<Step> {
    let result = |next_hop: u32| match next_hop {
        0 => "no route".to_owned(),
        n => format!("next hop {n}"),
    };
    // An entry as part of the word that the section has.
    let in_word = |name, section, entry: usize, meaning: &dyn Fn(u32) -> String| {
        let value = number(entries::<W>(image, section)[entry]);
        let per_word = WORD / size_of::<W>();
        let meaning = format!("entry {} of the word: {}", entry % per_word, meaning(value));
        let word = entry / per_word;
        let step =
            Step { section: name, index: word as u64, value: image.section::<u64>(section)[word], meaning };
        (value, step)
    };
    let bit = chunk_bit(size_of::<W>());
    let (found, step) = in_word("tbl24", TBL24, slot(address), &|found| match found & bit {
        0 => result(found),
        _ => format!("a longer prefix may match, go on in chunk {}", found ^ bit),
    });
    let mut steps = vec![step];
    if found & bit != 0 {
        steps.push(in_word("tbl8", TBL8, entry_in(found ^ bit, address), &result).1);
    }
    steps
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::conformance::{Expected, scattered, tables};
    use wirespeed_fib::{BuildOptions, Engine, oracle};

    use super::*;
    use crate::Dir24;

    /// The suite sees only the way that the CPU at hand prefers.
    #[test]
    fn every_way_finds_the_same() {
        for (name, rib) in tables::hand_picked::<V4>() {
            let (_, table) = Dir24::build(&rib, &BuildOptions::default()).expect("a valid table is built");
            let expected = Expected::of(&rib);
            let mut keys = oracle::boundaries(rib.iter().map(|(prefix, _)| prefix));
            keys.extend(scattered::<V4>(1_000));
            for way in Way::ALL.into_iter().filter(|way| way.is_here()) {
                let mut found = vec![NextHop(u32::MAX); keys.len()];
                batch_of_width(&table, way, &keys, &mut found);
                for (&key, &found) in keys.iter().zip(&found) {
                    assert_eq!(found, expected.lookup(key), "{name}: {key} by {way:?}");
                }
            }
        }
    }
}
