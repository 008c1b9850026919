//! Lookups of SAIL_M: in one FIB, alone and in batches, and in batches in which each key has a FIB of its own.
//!
//! A batch goes over a block of keys in three passes, so that as many reads are under way as the core can hold, and no
//! branch depends on a key:
//!
//! ```text
//! 1  bc16, b24     each key's element, and a bit for those that go on past level 24; mostly from the second cache
//! 2  c24, b32 …    the few (IPv4) or many (IPv6) that go on, as lists, one a level
//! 3  n16 n24 …     the next hop of each key's FIB: one read a key from large memory, none waiting for another
//! ```

use wirespeed_fib::{Address, Lpm, NextHop, Step};
use wirespeed_image::{Element, Image, Table};

use super::fibs::FibId;
use super::layout::{BC16, FIRST, SailMTable, bits, chunk_ids, next_hops};
use crate::sail_l::{Ids, first_index, index_in, levels, number};

/// Keys of a block: more than a core has reads under way, and a bit each in a word.
const BLOCK: usize = 64;
/// Room for levels, of IPv6 too; a power of two.
const LEVELS: usize = 16;

impl<A: Address> SailMTable<A> {
    /// The next hop of the longest prefix in a FIB that contains the address, [`NextHop::NONE`] where there is none; so
    /// for every address where there is no such FIB.
    #[inline]
    pub fn lookup_in(&self, fib: FibId, address: A) -> NextHop {
        if fib.index() >= self.slots() {
            return NextHop::NONE;
        }
        let (level, element) = find(self.image(), address);
        let (section, at) = (next_hops::<A>(level), element * self.slots() + fib.index());
        NextHop(match self.entry_width() {
            1 => self.image().section::<u8>(section)[at].into(),
            2 => self.image().section::<u16>(section)[at].into(),
            _ => self.image().section::<u32>(section)[at],
        })
    }

    /// [`lookup_in`](Self::lookup_in) of each address in the FIB at the same place of `fibs`, into the same place of
    /// `next_hops`. Much faster than one by one, as many addresses are under way at once.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_mixed(&self, fibs: &[FibId], addresses: &[A], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        assert_eq!(addresses.len(), fibs.len(), "a FIB for each key");
        self.batch(|first| move |key| fibs[first + key], addresses, next_hops);
    }

    /// [`lookup_mixed`](Self::lookup_mixed) with all addresses in one FIB.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch_in(&self, fib: FibId, addresses: &[A], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        self.batch(|_| move |_| fib, addresses, next_hops);
    }

    /// The steps of one lookup, for people: each element that is read, in order.
    pub fn explain_in(&self, fib: FibId, address: A) -> Vec<Step> {
        explain(self, fib, address)
    }

    /// A batch; `fibs` gives for the first key of a block what gives the FIB of each key of the block.
    fn batch<F: Fn(usize) -> FibId>(
        &self,
        fibs: impl Fn(usize) -> F,
        addresses: &[A],
        next_hops: &mut [NextHop],
    ) {
        match self.entry_width() {
            1 => View::<u8>::of(self).batch(fibs, addresses, next_hops),
            2 => View::<u16>::of(self).batch(fibs, addresses, next_hops),
            _ => View::<u32>::of(self).batch(fibs, addresses, next_hops),
        }
    }
}

/// Lookups in FIB 0.
impl<A: Address> Lpm<A> for SailMTable<A> {
    #[inline]
    fn lookup(&self, address: A) -> NextHop {
        self.lookup_in(FibId(0), address)
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        self.lookup_batch_in(FibId(0), addresses, next_hops);
    }

    fn explain(&self, address: A) -> Vec<Step> {
        self.explain_in(FibId(0), address)
    }
}

/// The level on which the lookup of an address ends, in whatever FIB, and its element there.
#[inline]
fn find<A: Address>(image: &Image, address: A) -> (usize, usize) {
    let first = first_index(address);
    let mut chunk = image.section::<u32>(BC16)[first];
    if chunk == 0 {
        return (0, first);
    }
    let last = levels::<A>() - 1;
    for level in 1..last {
        let element = index_in(chunk, address, level);
        if !is_set(image.section(bits(level)), element) {
            return (level, element);
        }
        chunk = Ids::of(image, chunk_ids(level)).at(element);
    }
    (last, index_in(chunk, address, last))
}

#[inline]
fn is_set(words: &[u32], element: usize) -> bool {
    words[element / 32] >> (element % 32) & 1 == 1
}

/// The sections of a table, found once a batch.
struct View<'a, W> {
    bc16: &'a [u32; FIRST],
    levels: [Level<'a, W>; LEVELS],
    slots: usize,
}

/// Those of one level.
#[derive(Clone, Copy)]
struct Level<'a, W> {
    next_hops: &'a [W],
    /// Of a level between the first and the last, as the next.
    bits: &'a [u32],
    ids: Ids<'a>,
}

/// Where the lookups of a block end: for each key its level and its element there.
struct Ends {
    levels: [u8; BLOCK],
    elements: [usize; BLOCK],
}

impl<'a, W: Element> View<'a, W> {
    fn of<A: Address>(table: &'a SailMTable<A>) -> Self {
        let image = table.image();
        let bc16 = image.section(BC16).try_into().expect("the shape was checked");
        let last = levels::<A>() - 1;
        let levels = std::array::from_fn(|level| {
            let next_hops = if level <= last { image.section(next_hops::<A>(level)) } else { &[][..] };
            if (1..last).contains(&level) {
                let (bits, ids) = (image.section(bits(level)), Ids::of(image, chunk_ids(level)));
                Level { next_hops, bits, ids }
            } else {
                Level { next_hops, bits: &[], ids: Ids::Narrow(&[]) }
            }
        });
        Self { bc16, levels, slots: table.slots() }
    }

    fn batch<A: Address, F: Fn(usize) -> FibId>(
        &self,
        fibs: impl Fn(usize) -> F,
        addresses: &[A],
        next_hops: &mut [NextHop],
    ) {
        let mut ends = Ends { levels: [0; BLOCK], elements: [0; BLOCK] };
        let blocks = addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK));
        for (block, (addresses, next_hops)) in blocks.enumerate() {
            let open = self.first_two(addresses, &mut ends);
            if open != 0 {
                self.deeper(open, addresses, &mut ends);
            }
            self.read(fibs(block * BLOCK), &ends, next_hops);
        }
    }

    /// The first two levels of a block; a bit for each key that goes on past them.
    #[inline]
    fn first_two<A: Address>(&self, addresses: &[A], ends: &mut Ends) -> u64 {
        let bits = self.levels[1].bits;
        let mut open = 0;
        for (key, &address) in addresses.iter().enumerate().take(BLOCK) {
            let first = first_index(address);
            let chunk = self.bc16[first];
            let goes_on = chunk != 0;
            // A key that ends in level 16 reads chunk 0, which is always there.
            let element = index_in(chunk, address, 1);
            ends.levels[key] = goes_on.into();
            ends.elements[key] = if goes_on { element } else { first };
            open |= u64::from(goes_on & is_set(bits, element)) << key;
        }
        open
    }

    /// The levels after these two, for the keys in `open`.
    fn deeper<A: Address>(&self, mut open: u64, addresses: &[A], ends: &mut Ends) {
        let mut keys = [0u8; BLOCK];
        let mut count = 0;
        while open != 0 {
            keys[count % BLOCK] = open.trailing_zeros().to_le_bytes()[0];
            count += 1;
            open &= open - 1;
        }
        let last = levels::<A>() - 1;
        let mut chunks = [0u32; BLOCK];
        for (level, above) in (1..=15u8).zip(&self.levels[1..last]) {
            if count == 0 {
                return;
            }
            let level = level + 1;
            for (chunk, &key) in chunks.iter_mut().zip(&keys[..count]) {
                *chunk = above.ids.at(ends.elements[usize::from(key) % BLOCK]);
            }
            let bits = self.levels[usize::from(level) % LEVELS].bits;
            let mut still_open = 0;
            for which in 0..count {
                let key = keys[which];
                let element = index_in(chunks[which], addresses[usize::from(key)], usize::from(level));
                ends.levels[usize::from(key) % BLOCK] = level;
                ends.elements[usize::from(key) % BLOCK] = element;
                if usize::from(level) < last {
                    // Moving the end of the list or not takes the place of a branch.
                    keys[still_open % BLOCK] = key;
                    still_open += usize::from(is_set(bits, element));
                }
            }
            count = still_open;
        }
    }

    /// The next hops at the ends.
    #[inline]
    fn read(&self, fibs: impl Fn(usize) -> FibId, ends: &Ends, next_hops: &mut [NextHop]) {
        for (key, next_hop) in next_hops.iter_mut().enumerate().take(BLOCK) {
            let slot = fibs(key).index();
            let is_there = slot < self.slots;
            // A key of no FIB reads what is FIB 0's, and drops it.
            let at = ends.elements[key] * self.slots + if is_there { slot } else { 0 };
            let found = number(self.levels[usize::from(ends.levels[key]) % LEVELS].next_hops[at]);
            *next_hop = NextHop(if is_there { found } else { 0 });
        }
    }
}

fn explain<A: Address>(table: &SailMTable<A>, fib: FibId, address: A) -> Vec<Step> {
    let image = table.image();
    let step = |section, index: usize, value: u32, meaning| Step {
        section,
        index: index as u64,
        value: value.into(),
        meaning,
    };
    let first = first_index(address);
    let mut chunk = image.section::<u32>(BC16)[first];
    let (end, element) = find(image, address);
    let go_on = |chunk: u32, level: usize| format!("go on in chunk {chunk} of level {}", 8 * (level + 2));
    let mut steps = vec![match end {
        0 => step("bc16", first, chunk, "ends in level 16".into()),
        _ => step("bc16", first, chunk, go_on(chunk, 1)),
    }];
    for level in 1..=end.min(levels::<A>() - 2) {
        let element = index_in(chunk, address, level);
        let word = image.section::<u32>(bits(level))[element / 32];
        let depth = 8 * (level + 2);
        if level == end {
            steps.push(step(
                BITS[level],
                element / 32,
                word,
                format!("bit {} is 0: ends in level {depth}", element % 32),
            ));
        } else {
            steps.push(step(BITS[level], element / 32, word, format!("bit {} is 1: goes on", element % 32)));
            chunk = Ids::of(image, chunk_ids(level)).at(element);
            steps.push(step(IDS[level], element, chunk, go_on(chunk, level + 1)));
        }
    }
    let found = table.lookup_in(fib, address);
    let result = match found {
        _ if fib.index() >= table.slots() => format!("no FIB {fib}, and so no route"),
        NextHop::NONE => "no route".into(),
        next_hop => format!("next hop {next_hop}"),
    };
    let slot = if fib.index() < table.slots() { fib.index() } else { 0 };
    steps.push(step(NEXT_HOPS[end], element * table.slots() + slot, found.0, result));
    steps
}

const NEXT_HOPS: [&str; LEVELS - 1] = [
    "n16", "n24", "n32", "n40", "n48", "n56", "n64", "n72", "n80", "n88", "n96", "n104", "n112", "n120",
    "n128",
];
const BITS: [&str; LEVELS - 2] =
    ["", "b24", "b32", "b40", "b48", "b56", "b64", "b72", "b80", "b88", "b96", "b104", "b112", "b120"];
const IDS: [&str; LEVELS - 2] =
    ["", "c24", "c32", "c40", "c48", "c56", "c64", "c72", "c80", "c88", "c96", "c104", "c112", "c120"];
