//! Lookups, alone and in batches.
//!
//! One read of tbl24 for each key, and for the few whose entry leads on one of tbl8. The first is almost always a miss of
//! the near caches, so a batch has the reads of a whole block under way before it looks at any.

use wirespeed_fib::{Lpm, NextHop, Step, V4, Way};
use wirespeed_image::{Element, Image, SectionId, Table, number};

use super::layout::{Dir24Table, TBL8, TBL24, WORD, chunk_bit, entry_in, slot};
use super::simd;

/// Keys of a block: as many as a core can have reads under way for, and some.
const BLOCK: usize = 64;

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

/// A batch in vectors, as far as a way has them, and the rest block by block.
fn batch<W: Element>(image: &Image, way: Way, addresses: &[V4], next_hops: &mut [NextHop]) {
    let done = simd::batch::<W>(way, image, addresses, next_hops);
    portable::<W>(image, &addresses[done..], &mut next_hops[done..]);
}

/// The entries of a section.
#[inline]
fn entries<W: Element>(image: &Image, section: SectionId) -> &[W] {
    bytemuck::cast_slice(image.section::<u64>(section))
}

/// A batch block by block; what is left of the last block key by key.
fn portable<W: Element>(image: &Image, addresses: &[V4], next_hops: &mut [NextHop]) {
    let (tbl24, tbl8) = (entries::<W>(image, TBL24), entries::<W>(image, TBL8));
    let bit = chunk_bit(size_of::<W>());
    let first = |address: V4| NextHop(number(tbl24[slot(address)]));
    let second = |address: V4, found: &mut NextHop| {
        if found.0 & bit != 0 {
            *found = NextHop(number(tbl8[entry_in(found.0 ^ bit, address)]));
        }
    };
    let (blocks, rest) = addresses.as_chunks::<BLOCK>();
    let (found, found_rest) = next_hops.as_chunks_mut::<BLOCK>();
    for (block, found) in blocks.iter().zip(found) {
        *found = block.map(first);
        if found.iter().fold(0, |any, found| any | found.0) & bit != 0 {
            block.iter().zip(found).for_each(|(&address, found)| second(address, found));
        }
    }
    for (&address, found) in rest.iter().zip(found_rest) {
        *found = first(address);
        second(address, found);
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
