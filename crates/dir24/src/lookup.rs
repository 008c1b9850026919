//! Lookups, alone and in batches.
//!
//! One read of tbl24 for each key, and for the few whose entry leads on one of tbl8. The first is almost
//! always a miss of the near caches, so what counts is how many such reads are under way. Each entry is asked
//! for 128 keys ahead, into the second cache, and read when it is there. Keys that lead on are noted down,
//! their entries of tbl8 asked for as well, and seen to 64 at a time. There are no vectors: one way serves
//! every CPU.
//!
//! # What was tried
//!
//! Figures are M lookups/s for random keys and keys drawn by prefix, on a Zen 4 core with 1 MB of L2 and 16
//! MB of one-byte entries in an L3 that other programs share. The table is the real one of 2026, and batches
//! are 1,024 of 4 million distinct keys. They are medians of one run of prototypes of the loop, except where
//! another is named. Between runs they differ by a third and more. Eight AVX-512 gathers at a time, as
//! `wirespeed-fold` does it: 416 · 423; presumably as a gather holds its place in the core until its last
//! lane is there. Gathers after prefetches 256 ahead: AVX-512 (two at a time) 512 · 580, AVX2 590 · 725;
//! scalar reads after them: 641 · 749. Prefetches 64, 128, 192, 384 and all 1,024 ahead: 625 · 681, 659 ·
//! 823, 660 · 833, 618 · 777 and 499 · 649. Blocks of 8, 16, 32 and 64 keys: 662 · 858, 641 · 749, 612 · 783
//! and 559 · 683 at 256 ahead. Prefetching into the first cache loses nearly all of it (in another run 142 ·
//! 415 beside 282 · 518 into the second, both with gathers), presumably as the second can have more reads
//! under way. First far into the second and then near into the first: 226 · 495. With two- and four-byte
//! entries it is the same order: gathers alone 188 · 419 and 127 · 256, scalar reads 128 ahead 345 · 741 and
//! 232 · 492.
//!
//! A table of which every second /24 has a longer prefix beneath it (370,000 chunks, four-byte entries;
//! prefix traffic): seeing to the keys that lead on after each block of 16 gave 27 by scalar reads, 26 by
//! AVX2 gathers, and 21 by AVX-512 gathers, as these wait for what was just stored. Keys that are noted down
//! and asked for gave about 93, though in another run, both beside other work. With 74,000 chunks 111, 75, 69
//! and about 118.

use wirespeed_fib::{Lookup, NextHop, Step, V4};
use wirespeed_image::{Element, Image, SectionId, Table, number, prefetch_outer_at};

use super::layout::{Dir24Table, SLOTS, TBL8, TBL24, WORD, chunk_bit, entry_in, slot};

/// Keys of a block, after which those that lead on are noted down.
const BLOCK: usize = 16;
/// Keys that lead on, after which they are seen to.
const PENDING: usize = 64;
/// The distance in keys from the prefetch of an entry to its read.
const AHEAD: usize = 128;
/// The distance in keys from the prefetch of a key to its read.
const KEYS_AHEAD: usize = 512;

impl Lookup<V4> for Dir24Table {
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
        match self.entry_width() {
            1 => batch::<u8>(self.image(), addresses, next_hops),
            2 => batch::<u16>(self.image(), addresses, next_hops),
            _ => batch::<u32>(self.image(), addresses, next_hops),
        }
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
    let found = NextHop(number(table.image().at::<W>(table.tbl24, slot(address))));
    match chunk::<W>(found) {
        None => found,
        Some(chunk) => NextHop(number(table.image().at::<W>(table.tbl8, entry_in(chunk, address)))),
    }
}

/// The entries of a section.
#[inline]
fn entries<W: Element>(image: &Image, section: SectionId) -> &[W] {
    bytemuck::cast_slice(image.section::<u64>(section))
}

/// A batch block by block, entries asked for well before they are read; what is left of the last block key by
/// key.
fn batch<W: Element>(image: &Image, addresses: &[V4], next_hops: &mut [NextHop]) {
    let tbl24: &[W; SLOTS] = entries(image, TBL24).try_into().expect("the shape was checked");
    let tbl8 = entries::<W>(image, TBL8);
    let ask = |address: V4| prefetch_outer_at((&raw const tbl24[slot(address)]).cast());
    let read = |address: V4| NextHop(number(tbl24[slot(address)]));
    addresses.iter().take(AHEAD).for_each(|&address| ask(address));
    // The keys whose entries lead on, asked for in tbl8 and not read yet.
    let mut pending = [0; PENDING + BLOCK];
    let mut count = 0;
    let (blocks, rest) = addresses.as_chunks::<BLOCK>();
    for (at, block) in blocks.iter().enumerate() {
        if let Some(ahead) = blocks.get(at + AHEAD / BLOCK) {
            ahead.iter().for_each(|&address| ask(address));
        }
        // The keys of calls to come, where those lie behind one another, as they mostly do.
        prefetch_outer_at(block.as_ptr().wrapping_add(KEYS_AHEAD).cast());
        let found = &mut next_hops[at * BLOCK..(at + 1) * BLOCK];
        let mut any = 0;
        for (&address, found) in block.iter().zip(&mut *found) {
            *found = read(address);
            any |= found.0;
        }
        if chunk::<W>(NextHop(any)).is_some() {
            for (key, (&address, &found)) in (at * BLOCK..).zip(block.iter().zip(&*found)) {
                // Moving the end of the list or not takes the place of a branch.
                pending[count] = key;
                let leads_on = chunk::<W>(found);
                prefetch_outer_at(
                    tbl8.as_ptr().wrapping_add(entry_in(leads_on.unwrap_or(0), address)).cast(),
                );
                count += usize::from(leads_on.is_some());
            }
            if count >= PENDING {
                follow(tbl8, &pending[..count], addresses, next_hops);
                count = 0;
            }
        }
    }
    follow(tbl8, &pending[..count], addresses, next_hops);
    let done = addresses.len() - rest.len();
    for (&address, found) in rest.iter().zip(&mut next_hops[done..]) {
        *found = read(address);
        if let Some(chunk) = chunk::<W>(*found) {
            *found = NextHop(number(tbl8[entry_in(chunk, address)]));
        }
    }
}

/// Looks up keys whose entries lead on.
fn follow<W: Element>(tbl8: &[W], keys: &[usize], addresses: &[V4], next_hops: &mut [NextHop]) {
    for &key in keys {
        let found = &mut next_hops[key];
        if let Some(chunk) = chunk::<W>(*found) {
            *found = NextHop(number(tbl8[entry_in(chunk, addresses[key])]));
        }
    }
}

/// The chunk that an entry of tbl24 leads to.
#[inline]
fn chunk<W: Element>(entry: NextHop) -> Option<u32> {
    let bit = chunk_bit(size_of::<W>());
    (entry.0 & bit != 0).then_some(entry.0 ^ bit)
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
