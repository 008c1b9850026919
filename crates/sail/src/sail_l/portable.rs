//! Batches without vectors, and what is left of those with them: block by block.
//!
//! A batch goes level by level over a block of keys, so that as many reads are under way as the core can
//! hold, and no branch depends on a key. The first two levels are one pass: a key that is done after the
//! first reads the empty chunk 0 of the second and drops what it finds. The few (IPv4) or many (IPv6) that go
//! on are lists, one a level.

use wirespeed_fib::{Address, NextHop};
use wirespeed_image::{Element, Image, SectionId, Table, number};

use super::layout::{BCN16, CHUNK, LEAF, SailLTable, chunk_ids, levels, next_hops};

/// Keys of a block: more than a core has reads under way, and a bit each in a word.
const BLOCK: usize = 64;
/// Most levels past the first, those of IPv6.
pub(super) const DEEPEST: usize = 14;

/// The element of level 16.
#[inline]
pub(crate) fn first_index<A: Address>(address: A) -> usize {
    address.first_16().into()
}

/// The element of a chunk.
#[inline]
pub(crate) fn index_in<A: Address>(chunk: u32, address: A, level: usize) -> usize {
    chunk as usize * CHUNK + usize::from(address.octet(level + 1))
}

#[inline]
pub(super) fn lookup<A: Address, W: Element>(table: &SailLTable<A>, address: A) -> NextHop {
    let image = table.image();
    let first = image.at::<u32>(table.bcn16, first_index(address));
    if first & LEAF != 0 {
        return NextHop(first & !LEAF);
    }
    let mut chunk = first;
    let last = levels::<A>() - 1;
    for (level, &(elements, ids, width)) in (1..last).zip(&table.deeper) {
        let element = index_in(chunk, address, level);
        let next_hop = number(image.at::<W>(elements, element));
        if next_hop != 0 {
            return NextHop(next_hop - 1);
        }
        chunk = match width {
            1 => image.at::<u8>(ids, element).into(),
            2 => image.at::<u16>(ids, element).into(),
            _ => image.at::<u32>(ids, element),
        };
    }
    NextHop(number(image.at::<W>(table.deeper[last - 1].0, index_in(chunk, address, last))))
}

/// An array of chunk ids, of whichever width.
#[derive(Clone, Copy)]
pub(crate) enum Ids<'a> {
    Narrow(&'a [u8]),
    Middle(&'a [u16]),
    Wide(&'a [u32]),
}

impl<'a> Ids<'a> {
    #[inline]
    pub(crate) fn of(image: &'a Image, section: SectionId) -> Self {
        match image.width(section) {
            Some(1) => Self::Narrow(image.section(section)),
            Some(2) => Self::Middle(image.section(section)),
            _ => Self::Wide(image.section(section)),
        }
    }

    #[inline]
    pub(crate) fn at(self, element: usize) -> u32 {
        match self {
            Self::Narrow(ids) => ids[element].into(),
            Self::Middle(ids) => ids[element].into(),
            Self::Wide(ids) => ids[element],
        }
    }
}

/// The sections of a table, found once a batch.
pub(super) struct View<'a, W> {
    bcn16: &'a [u32; 1 << 16],
    /// Levels from 1 on; the last has no chunk ids.
    deeper: [(&'a [W], Ids<'a>); DEEPEST],
}

impl<'a, W: Element> View<'a, W> {
    pub(super) fn of<A: Address>(image: &'a Image) -> Self {
        let last = levels::<A>() - 1;
        let bcn16 = image.section(BCN16).try_into().expect("the shape was checked");
        let deeper = std::array::from_fn(|at| match at + 1 {
            level if level < last => (image.section(next_hops(level)), Ids::of(image, chunk_ids(level))),
            level if level == last => (image.section(next_hops(level)), Ids::Narrow(&[])),
            _ => (&[][..], Ids::Narrow(&[])),
        });
        Self { bcn16, deeper }
    }

    pub(super) fn batch<A: Address>(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        for (addresses, next_hops) in addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK)) {
            let open = self.first_two(addresses, next_hops);
            if open != 0 {
                self.deeper(open, addresses, next_hops);
            }
        }
    }

    /// The first two levels of a block; a bit for each key that is not done after them.
    #[inline]
    fn first_two<A: Address>(&self, addresses: &[A], next_hops: &mut [NextHop]) -> u64 {
        let next_hops = &mut next_hops[..addresses.len()];
        let (elements, _) = self.deeper[0];
        let mut open = 0;
        // Counting, not zipped iterators, which the compiler kept in memory.
        for key in 0..addresses.len() {
            let address = addresses[key];
            let first = self.bcn16[first_index(address)];
            // All ones for a leaf. Its key reads chunk 0, and what it finds there is masked out.
            let leaf = (first.cast_signed() >> 31).cast_unsigned();
            let element = number(elements[index_in(first & !leaf, address, 1)]);
            next_hops[key] = NextHop(first & !LEAF & leaf | element.wrapping_sub(1) & !leaf);
            open |= u64::from(element | leaf == 0) << key;
        }
        open
    }

    /// The levels after these two, for the keys in `open`.
    fn deeper<A: Address>(&self, mut open: u64, addresses: &[A], next_hops: &mut [NextHop]) {
        // The keys that are not done, and the element at which each goes on.
        let mut keys = [0u8; BLOCK];
        let mut at = [0usize; BLOCK];
        let mut count = 0;
        while open != 0 {
            let key = open.trailing_zeros().to_le_bytes()[0];
            let address = addresses[usize::from(key)];
            keys[count % BLOCK] = key;
            at[count % BLOCK] = index_in(self.bcn16[first_index(address)], address, 1);
            count += 1;
            open &= open - 1;
        }
        let mut chunks = [0u32; BLOCK];
        follow(self.deeper[0].1, &at[..count], &mut chunks);
        let last = levels::<A>() - 1;
        for (level, &(elements, ids)) in (2..last).zip(&self.deeper[1..]) {
            if count == 0 {
                return;
            }
            let mut still_open = 0;
            for which in 0..count {
                let (key, chunk) = (keys[which % BLOCK], chunks[which % BLOCK]);
                let index = index_in(chunk, addresses[usize::from(key)], level);
                let element = number(elements[index]);
                next_hops[usize::from(key)] = NextHop(element.wrapping_sub(1));
                // Moving the end of the list or not takes the place of a branch.
                keys[still_open % BLOCK] = key;
                at[still_open % BLOCK] = index;
                still_open += usize::from(element == 0);
            }
            count = still_open;
            follow(ids, &at[..count], &mut chunks);
        }
        let (elements, _) = self.deeper[last - 1];
        for (&key, &chunk) in keys.iter().zip(&chunks).take(count) {
            let key = usize::from(key);
            next_hops[key] = NextHop(number(elements[index_in(chunk, addresses[key], last)]));
        }
    }
}

/// The chunks that elements lead to.
#[inline]
fn follow(ids: Ids<'_>, elements: &[usize], chunks: &mut [u32; BLOCK]) {
    for (chunk, &element) in chunks.iter_mut().zip(elements) {
        *chunk = ids.at(element);
    }
}
