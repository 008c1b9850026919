//! Lookups of SAIL_M: in one FIB, alone and in batches, and in batches in which each key has a FIB of its
//! own.
//!
//! A batch goes over a block of keys in three passes, so that as many reads are under way as the core can
//! hold, and no branch depends on a key:
//!
//! ```text
//! 1  bca16, bca24     each key's array, and a bit for those that go on past level 24
//! 2  a32, or bca32 …  the few (IPv4) or many (IPv6) that go on, as lists, one a level
//! 3  n                the next hop of each key's FIB
//! ```

use wirespeed_fib::{Address, Lookup, NextHop, Step};
use wirespeed_image::{Element, Table, number};

use super::fibs::FibId;
use super::layout::{BCA16, FIRST, LEAF, SailMTable, elements, leaf, next_hops};
use crate::sail_l::{Ids, first_index, index_in, levels};

/// Keys of a block: more than a core has reads under way, and a bit each in a word.
const BLOCK: usize = 64;
/// Most levels past the first, those of IPv6.
const DEEPEST: usize = 14;

impl<A: Address> SailMTable<A> {
    /// The next hop of the longest prefix in a FIB that contains the address, [`NextHop::NONE`] where there
    /// is none; so for every address where there is no such FIB.
    #[inline]
    pub fn lookup_in(&self, fib: FibId, address: A) -> NextHop {
        if fib.index() >= self.slots() {
            return NextHop::NONE;
        }
        let array = match self.id_width() {
            1 => find::<A, u8>(self, address),
            2 => find::<A, u16>(self, address),
            _ => find::<A, u32>(self, address),
        };
        self.next_hop(fib, array)
    }

    /// The next hop of a FIB that there is room for in an array.
    #[inline]
    fn next_hop(&self, fib: FibId, array: u32) -> NextHop {
        let at = fib.index() * self.arrays() + array as usize;
        let image = self.image();
        NextHop(match self.entry_width() {
            1 => image.at::<u8>(self.next_hops, at).into(),
            2 => image.at::<u16>(self.next_hops, at).into(),
            _ => image.at::<u32>(self.next_hops, at),
        })
    }

    /// [`lookup_in`](Self::lookup_in) of each address in the FIB at the same place of `fibs`, into the same
    /// place of `next_hops`. Much faster than one by one, as many addresses are under way at once.
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
        match self.id_width() {
            1 => View::<u8>::of(self).batch(fibs, addresses, next_hops),
            2 => View::<u16>::of(self).batch(fibs, addresses, next_hops),
            _ => View::<u32>::of(self).batch(fibs, addresses, next_hops),
        }
    }
}

/// Lookups in FIB 0.
impl<A: Address> Lookup<A> for SailMTable<A> {
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

/// The array of an address, which is that of every FIB; `I` is the type of elements past level 16.
#[inline]
fn find<A: Address, I: Element>(table: &SailMTable<A>, address: A) -> u32 {
    let image = table.image();
    let first = image.at::<u32>(table.bca16, first_index(address));
    if first & LEAF != 0 {
        return first & !LEAF;
    }
    let mut chunk = first;
    let last = levels::<A>() - 1;
    for (level, &elements) in (1..last).zip(&table.deeper) {
        let element = number(image.at::<I>(elements, index_in(chunk, address, level)));
        if element & View::<I>::LEAF != 0 {
            return element & !View::<I>::LEAF;
        }
        chunk = element;
    }
    number(image.at::<I>(table.deeper[last - 1], index_in(chunk, address, last)))
}

/// The sections of a table, found once a batch; `I` is the type of elements past level 16.
struct View<'a, I> {
    bca16: &'a [u32; FIRST],
    /// Levels from 1 on.
    deeper: [&'a [I]; DEEPEST],
    next_hops: Ids<'a>,
    slots: usize,
    /// The stride from one FIB's next hops to the next.
    arrays: usize,
}

impl<'a, I: Element> View<'a, I> {
    /// The bit of an element that says that lookups end there.
    const LEAF: u32 = 1 << (8 * size_of::<I>() - 1);

    fn of<A: Address>(table: &'a SailMTable<A>) -> Self {
        let image = table.image();
        let of_level = |level| if level < levels::<A>() { image.section(elements(level)) } else { &[][..] };
        Self {
            bca16: image.section(BCA16).try_into().expect("the shape was checked"),
            deeper: std::array::from_fn(|at| of_level(at + 1)),
            next_hops: Ids::of(image, next_hops::<A>()),
            slots: table.slots(),
            arrays: table.arrays(),
        }
    }

    fn batch<A: Address, F: Fn(usize) -> FibId>(
        &self,
        fibs: impl Fn(usize) -> F,
        addresses: &[A],
        next_hops: &mut [NextHop],
    ) {
        let mut arrays = [0; BLOCK];
        let blocks = addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK));
        for (block, (addresses, next_hops)) in blocks.enumerate() {
            let open = self.first_two(addresses, &mut arrays);
            if open != 0 {
                self.deeper(open, addresses, &mut arrays);
            }
            let fibs = fibs(block * BLOCK);
            match self.next_hops {
                Ids::Narrow(of) => self.read(of, fibs, &arrays, next_hops),
                Ids::Middle(of) => self.read(of, fibs, &arrays, next_hops),
                Ids::Wide(of) => self.read(of, fibs, &arrays, next_hops),
            }
        }
    }

    /// The first two levels of a block: the array of each key or, with its bit in what is returned, the chunk
    /// that it goes on in.
    #[inline]
    fn first_two<A: Address>(&self, addresses: &[A], arrays: &mut [u32; BLOCK]) -> u64 {
        let elements = self.deeper[0];
        let mut open = 0;
        for (key, (&address, array)) in addresses.iter().zip(arrays).enumerate() {
            let first = self.bca16[first_index(address)];
            // All ones for a leaf. Its key reads chunk 0, and what it finds there is masked out.
            let ends = (first.cast_signed() >> 31).cast_unsigned();
            let element = number(elements[index_in(first & !ends, address, 1)]);
            *array = first & !LEAF & ends | element & !Self::LEAF & !ends;
            open |= u64::from(element & Self::LEAF | ends == 0) << key;
        }
        open
    }

    /// The levels after these two, for the keys in `open`.
    fn deeper<A: Address>(&self, mut open: u64, addresses: &[A], arrays: &mut [u32; BLOCK]) {
        // The keys that go on.
        let mut keys = [0u8; BLOCK];
        let mut count = 0;
        while open != 0 {
            keys[count % BLOCK] = open.trailing_zeros().to_le_bytes()[0];
            count += 1;
            open &= open - 1;
        }
        let last = levels::<A>() - 1;
        for (level, elements) in (2..last).zip(&self.deeper[1..]) {
            let mut still_open = 0;
            for which in 0..count {
                let key = keys[which % BLOCK];
                let array = &mut arrays[usize::from(key) % BLOCK];
                let element = number(elements[index_in(*array, addresses[usize::from(key)], level)]);
                *array = element & !Self::LEAF;
                // Moving the end of the list or not takes the place of a branch.
                keys[still_open % BLOCK] = key;
                still_open += usize::from(element & Self::LEAF == 0);
            }
            count = still_open;
            if count == 0 {
                return;
            }
        }
        for &key in &keys[..count] {
            let array = &mut arrays[usize::from(key) % BLOCK];
            let at = index_in(*array, addresses[usize::from(key)], last);
            *array = number(self.deeper[last - 1][at]);
        }
    }

    /// The next hops in the arrays.
    #[inline]
    fn read<W: Element>(
        &self,
        of: &[W],
        fibs: impl Fn(usize) -> FibId,
        arrays: &[u32; BLOCK],
        next_hops: &mut [NextHop],
    ) {
        for (key, (next_hop, &array)) in next_hops.iter_mut().zip(arrays).enumerate() {
            let slot = fibs(key).index();
            let is_there = slot < self.slots;
            // A key of no FIB reads what is FIB 0's, and drops it.
            let found = number(of[if is_there { slot } else { 0 } * self.arrays + array as usize]);
            *next_hop = NextHop(if is_there { found } else { 0 });
        }
    }
}

fn explain<A: Address>(table: &SailMTable<A>, fib: FibId, address: A) -> Vec<Step> {
    const ELEMENTS: [&str; DEEPEST] = [
        "bca24", "bca32", "bca40", "bca48", "bca56", "bca64", "bca72", "bca80", "bca88", "bca96", "bca104",
        "bca112", "bca120", "a128",
    ];
    let image = table.image();
    let step = |section, index: usize, value: u32, meaning| Step {
        section,
        index: index as u64,
        value: value.into(),
        meaning,
    };
    let go_on = |chunk: u32, level: usize| format!("go on in chunk {chunk} of level {}", 8 * (level + 2));
    let mut steps = Vec::new();
    let index = first_index(address);
    let first = image.section::<u32>(BCA16)[index];
    let mut found = first & !LEAF;
    if first & LEAF != 0 {
        steps.push(step("bca16", index, first, format!("array {found}")));
    } else {
        steps.push(step("bca16", index, first, go_on(found, 1)));
        let (last, leaf) = (levels::<A>() - 1, leaf(table.id_width()));
        for level in 1..=last {
            let index = index_in(found, address, level);
            let section = if A::OCTETS == 4 && level == last { "a32" } else { ELEMENTS[level - 1] };
            let element = Ids::of(image, elements(level)).at(index);
            let ends = level == last || element & leaf != 0;
            found = if level == last { element } else { element & !leaf };
            let meaning = if ends { format!("array {found}") } else { go_on(found, level + 1) };
            steps.push(step(section, index, element, meaning));
            if ends {
                break;
            }
        }
    }
    if fib.index() >= table.slots() {
        let meaning = format!("no FIB {fib}, and so no route");
        steps.push(step("fibs", 0, u32::try_from(table.slots()).unwrap_or(u32::MAX), meaning));
        return steps;
    }
    let next_hop = table.next_hop(fib, found);
    let meaning = if next_hop.is_some() { format!("next hop {next_hop}") } else { "no route".into() };
    let index = fib.index() * table.arrays() + found as usize;
    steps.push(step("n", index, next_hop.0, meaning));
    steps
}
