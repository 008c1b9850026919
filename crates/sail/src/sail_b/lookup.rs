//! Lookups of SAIL_B (Algorithm 1) and SAIL_U, alone and in batches.
//!
//! A batch goes level by level over a block of keys, so that as many reads are under way as the core can
//! hold. The bit map of the pivot level parts the block: keys that it knows read n24 and, in the same pass,
//! the chunk that it leads to (chunk 0 where it leads to none). The others are a list that each level up
//! shortens; what is noted for each is the level at which it left, and the next hops are read at the end, all
//! at once.
//!
//! Each list ends in a branch that is mispredicted, so blocks are larger than what is under way at a time
//! needs: with 256 keys SAIL_U went from 73 to 109 million lookups a second on random traffic, from 94 to 149
//! on prefix traffic, against 64 keys. Testing every level for every key, without lists, came to 71 and 130.
//! (The best of three runs each, Zen 4, shared.)

use wirespeed_fib::{Lookup, NextHop, Step, V4};
use wirespeed_image::{Element, Image, Table, number};

use super::layout::{Levels, MOST_LEVELS, PIVOT, SplitTable, bits, long, next_hops, pivot, top};
use crate::sail_l::CHUNK;

/// Keys of a block.
const BLOCK: usize = 256;

/// Calls a generic function with the widths of a table: of next hops, and of the pivot level, which is no
/// narrower.
macro_rules! with_widths {
    ($table:expr, $function:ident::<$levels:ty>($($argument:expr),*)) => {
        match ($table.entry_width(), $table.pivot_width()) {
            (1, 1) => $function::<$levels, u8, u8>($($argument),*),
            (1, 2) => $function::<$levels, u8, u16>($($argument),*),
            (1, _) => $function::<$levels, u8, u32>($($argument),*),
            (2, 2) => $function::<$levels, u16, u16>($($argument),*),
            (2, _) => $function::<$levels, u16, u32>($($argument),*),
            _ => $function::<$levels, u32, u32>($($argument),*),
        }
    };
}

impl<L: Levels> Lookup<V4> for SplitTable<L> {
    #[inline]
    fn lookup(&self, address: V4) -> NextHop {
        with_widths!(self, lookup::<L>(self.image(), address))
    }

    fn lookup_batch(&self, addresses: &[V4], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        with_widths!(self, batch::<L>(self.image(), addresses, next_hops));
    }

    fn explain(&self, address: V4) -> Vec<Step> {
        with_widths!(self, explain::<L>(self.image(), address))
    }
}

/// The element of a level, which is 32 bits less `shift`.
#[inline]
#[allow(clippy::cast_possible_truncation)] // 32 bits at most
fn index(address: V4, shift: u8) -> usize {
    (u64::from(address.0) >> shift) as usize
}

#[inline]
fn is_set(map: &[u64], index: usize) -> bool {
    map[index / 64] >> (index % 64) & 1 != 0
}

/// The element of a chunk.
#[inline]
fn index_in(chunk: u32, address: V4) -> usize {
    chunk as usize * CHUNK + index(address, 0) % CHUNK
}

#[inline]
fn lookup<L: Levels, W: Element, P: Element>(image: &Image, address: V4) -> NextHop {
    for (at, &level) in L::LEVELS.iter().enumerate().rev() {
        let element = index(address, 32 - level);
        if !is_set(image.section(bits(at)), element) {
            continue;
        }
        if level < PIVOT {
            return NextHop(number(image.section::<W>(next_hops::<L>(at))[element]));
        }
        let value = number(image.section::<P>(next_hops::<L>(at))[element]);
        let long = image.section::<W>(long::<L>());
        // A chunk that is not there is a next hop.
        let chunk = long.get(index_in(top(size_of::<P>()) - value, address));
        return NextHop(chunk.map_or(value, |&next_hop| number(next_hop)));
    }
    NextHop::NONE
}

fn batch<L: Levels, W: Element, P: Element>(image: &Image, addresses: &[V4], next_hops: &mut [NextHop]) {
    let nothing = [W::zeroed()];
    let view = View::<W, P>::of::<L>(image, &nothing);
    for (addresses, next_hops) in addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK)) {
        view.block::<L>(addresses, next_hops);
    }
}

/// The sections of a table, found once a batch.
struct View<'a, W, P> {
    bits: [&'a [u64]; MOST_LEVELS],
    /// Next hops by level. The pivot level has one zero instead: keys end up there that no level knows.
    next_hops: [&'a [W]; MOST_LEVELS],
    /// 32 bits less the level, for `next_hops`.
    shifts: [u8; MOST_LEVELS],
    pivot: &'a [P],
    long: &'a [W],
}

impl<'a, W: Element, P: Element> View<'a, W, P> {
    fn of<L: Levels>(image: &'a Image, nothing: &'a [W; 1]) -> Self {
        let pivot = pivot::<L>();
        let mut view = Self {
            bits: [&[]; MOST_LEVELS],
            next_hops: [nothing; MOST_LEVELS],
            shifts: [32; MOST_LEVELS],
            pivot: image.section(next_hops::<L>(pivot)),
            long: image.section(long::<L>()),
        };
        for (at, &level) in L::LEVELS.iter().enumerate() {
            view.bits[at] = image.section(bits(at));
            if at < pivot {
                view.next_hops[at] = image.section(next_hops::<L>(at));
                view.shifts[at] = 32 - level;
            }
        }
        view
    }

    fn block<L: Levels>(&self, addresses: &[V4], next_hops: &mut [NextHop]) {
        // The keys that the pivot level knows, and the others.
        let (mut known, mut others) = ([0u8; BLOCK], [0u8; BLOCK]);
        let (mut knows, mut rest) = (0, 0);
        let map = self.bits[pivot::<L>()];
        for (key, &address) in (0..=u8::MAX).zip(addresses) {
            let set = is_set(map, index(address, 32 - PIVOT));
            // Moving the end of a list or not takes the place of a branch.
            known[knows % BLOCK] = key;
            others[rest % BLOCK] = key;
            knows += usize::from(set);
            rest += usize::from(!set);
        }
        self.long(&known[..knows], addresses, next_hops);
        self.short::<L>(&others[..rest], addresses, next_hops);
    }

    /// The keys that the pivot level knows.
    fn long(&self, keys: &[u8], addresses: &[V4], next_hops: &mut [NextHop]) {
        let chunks = self.long.len() / CHUNK;
        for &key in keys {
            let address = addresses[usize::from(key)];
            let value = number(self.pivot[index(address, 32 - PIVOT)]);
            let chunk = top(size_of::<P>()) - value;
            let leads_on = (chunk as usize) < chunks;
            // Chunk 0 for who needs none, where its next hop is not looked at.
            let element = self.long[index_in(if leads_on { chunk } else { 0 }, address)];
            next_hops[usize::from(key)] = NextHop(if leads_on { number(element) } else { value });
        }
    }

    /// The keys that it does not know.
    fn short<L: Levels>(&self, keys: &[u8], addresses: &[V4], next_hops: &mut [NextHop]) {
        let mut open = [0u8; BLOCK];
        open[..keys.len()].copy_from_slice(keys);
        let mut count = keys.len();
        // The level at which each key left the list.
        let mut left = [0u8; BLOCK];
        for (at, &level) in (0..=u8::MAX).zip(L::LEVELS).rev().skip(1) {
            if count == 0 {
                break;
            }
            let map = self.bits[usize::from(at)];
            let mut still_open = 0;
            for which in 0..count {
                let key = open[which % BLOCK];
                let set = is_set(map, index(addresses[usize::from(key)], 32 - level));
                left[usize::from(key)] = at;
                open[still_open % BLOCK] = key;
                still_open += usize::from(!set);
            }
            count = still_open;
        }
        for &key in &open[..count] {
            left[usize::from(key)] = pivot::<L>().to_le_bytes()[0];
        }
        for &key in keys {
            let at = usize::from(left[usize::from(key)]) % 32;
            let element = index(addresses[usize::from(key)], self.shifts[at]);
            next_hops[usize::from(key)] = NextHop(number(self.next_hops[at][element]));
        }
    }
}

fn explain<L: Levels, W: Element, P: Element>(image: &Image, address: V4) -> Vec<Step> {
    const MAPS: [&str; MOST_LEVELS] = [
        "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11", "b12", "b13", "b14", "b15",
        "b16", "b17", "b18", "b19", "b20", "b21", "b22", "b23", "b24",
    ];
    const ARRAYS: [&str; MOST_LEVELS] = [
        "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12", "n13", "n14", "n15",
        "n16", "n17", "n18", "n19", "n20", "n21", "n22", "n23", "n24",
    ];
    let result = |next_hop: u32| match next_hop {
        0 => "no route".to_owned(),
        n => format!("next hop {n}"),
    };
    let step = |section, index: usize, value, meaning| Step { section, index: index as u64, value, meaning };
    let mut steps = Vec::new();
    for (at, &level) in L::LEVELS.iter().enumerate().rev() {
        let element = index(address, 32 - level);
        let map = image.section::<u64>(bits(at));
        let (word, bit) = (element / 64, element % 64);
        let name = MAPS[usize::from(level)];
        if !is_set(map, element) {
            let meaning = match at {
                0 => format!("bit {bit} is clear: no level has a prefix, no route"),
                _ => format!("bit {bit} is clear: no prefix of level {level}"),
            };
            steps.push(step(name, word, map[word], meaning));
            continue;
        }
        let or_longer = if level == PIVOT { " or longer" } else { "" };
        let meaning = format!("bit {bit} is set: a prefix of level {level}{or_longer} matches");
        steps.push(step(name, word, map[word], meaning));
        let name = ARRAYS[usize::from(level)];
        if level < PIVOT {
            let value = number(image.section::<W>(next_hops::<L>(at))[element]);
            steps.push(step(name, element, value.into(), result(value)));
            return steps;
        }
        let value = number(image.section::<P>(next_hops::<L>(at))[element]);
        let chunk = top(size_of::<P>()) - value;
        let in_chunk = index_in(chunk, address);
        if let Some(&next_hop) = image.section::<W>(long::<L>()).get(in_chunk) {
            steps.push(step(name, element, value.into(), format!("go on in chunk {chunk}")));
            let value = number(next_hop);
            steps.push(step("n32", in_chunk, value.into(), result(value)));
        } else {
            steps.push(step(name, element, value.into(), result(value)));
        }
        return steps;
    }
    steps
}
