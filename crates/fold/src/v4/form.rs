//! [`Form`]: which chunk is where and who shares it.
//!
//! It is filled slot by slot from the Rib, the same way whether a table is built or updated; only that a build then copies
//! the chunks into an image whole, and an update writes down what became different.

use rustc_hash::FxHashMap;
use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{BuildError, NextHop, Outgrown, Rib, V4};
use wirespeed_image::{Changes, Element, Image, Pool, SectionId, SharedPool, WORD};

use super::layout::{B18, C18, C24, LONG, N24, N32, Room, SHORT, SLOT_BITS, SLOTS, allocate, mark};

/// Where everything is.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Bytes of an element of a chunk.
    pub(super) width: usize,
    /// The chunk of each slot; 0 before it has one.
    short_of: Vec<u32>,
    short: SharedPool<u8>,
    /// The block of each slot that has prefixes longer than 24 bits.
    blocks: FxHashMap<u32, Block>,
    block_pool: Pool,
    long: SharedPool<u8>,
}

/// The chunks of level 32 beneath one slot.
#[derive(Clone, Debug)]
struct Block {
    number: u32,
    chunks: Box<[u32; SHORT]>,
}

/// Slots under two octets.
pub(super) const QUARTERS: u32 = 4;

/// Room for updates beside what is in use: an eighth and some.
fn with_head_room(in_use: u32, at_most: u32) -> u32 {
    // Number 0 is not in use.
    (in_use + in_use / 8 + 65).min(at_most)
}

impl Form {
    /// Before any slot is filled, for elements of so many bytes.
    pub(super) fn new(width: usize) -> Self {
        Self {
            width,
            short_of: vec![0; SLOTS],
            short: SharedPool::new(SHORT * width, u32::MAX),
            blocks: FxHashMap::default(),
            block_pool: Pool::new(u32::MAX),
            long: SharedPool::new(LONG * width, u32::MAX),
        }
    }

    /// Fills every slot.
    pub(super) fn fill(&mut self, rib: &Rib<V4>) {
        let root = rib.cursor();
        let mut of_first = [NextHop::NONE; 256];
        root.expand(NextHop::NONE, &mut of_first);
        let mut even = None;
        for first in 0..=u8::MAX {
            let cursor = root.child(first);
            let mut of_second = [of_first[usize::from(first)]; 256];
            if let Some(cursor) = cursor {
                cursor.expand(of_first[usize::from(first)], &mut of_second);
            }
            for second in 0..=u8::MAX {
                let cursor = cursor.and_then(|cursor| cursor.child(second));
                let inherited = of_second[usize::from(second)];
                if cursor.is_none() {
                    let octets = u32::from_be_bytes([0, 0, first, second]);
                    self.make_even(octets, inherited, &mut even, &mut Changes::none())
                        .expect("a form that is filled has no bounds");
                    continue;
                }
                let mut of_third = [inherited; 256];
                if let Some(cursor) = cursor {
                    cursor.expand(inherited, &mut of_third);
                }
                let slots = u32::from_be_bytes([0, 0, first, second]) * QUARTERS;
                for (slot, (octets, next_hops)) in
                    (slots..).zip((0..=u8::MAX).step_by(SHORT).zip(of_third.chunks(SHORT)))
                {
                    let mut content = Content::new(self.width);
                    for (octet, (at, &next_hop)) in (octets..=u8::MAX).zip(next_hops.iter().enumerate()) {
                        match cursor.and_then(|cursor| cursor.child(octet)) {
                            None => {
                                content.set(at, next_hop.0);
                            }
                            Some(child) => {
                                self.lead_on(slot, at, child, next_hop, &mut Changes::none())
                                    .expect("a form that is filled has no bounds");
                                content.set(at, mark(self.width));
                            }
                        }
                    }
                    self.place(slot, &content, &mut Changes::none())
                        .expect("a form that is filled has no bounds");
                }
            }
        }
    }

    /// The image of the form, and the bounds that it sets.
    pub(super) fn compile(
        &mut self,
        routes: usize,
        results: u32,
        cap: Option<u64>,
    ) -> Result<Image, BuildError> {
        // Every slot has one chunk, so there are never more in use, but for the moment in which one takes the place of
        // another.
        let short = with_head_room(self.short.in_use(), (1 << SLOT_BITS) + 2);
        let room = Room {
            width: self.width,
            short,
            blocks: with_head_room(self.block_pool.in_use(), (1 << SLOT_BITS) + 1),
            long: with_head_room(self.long.in_use(), 1 << 26),
        };
        let mut image = allocate(room, cap)?;
        self.short.set_capacity(room.short);
        self.block_pool.set_capacity(room.blocks);
        self.long.set_capacity(room.long);
        fill_front(image.section_mut::<u64>(N24)?, self.short.contents());
        fill_front(image.section_mut::<u64>(N32)?, self.long.contents());
        put_all(&mut image, C18, self.short_of.iter().copied().enumerate())?;
        let blocks = self.blocks.iter();
        put_all(&mut image, B18, blocks.clone().map(|(&slot, block)| (slot as usize, block.number)))?;
        let c24 = image.section_mut::<u32>(C24)?;
        for (_, block) in blocks {
            c24[block.number as usize * SHORT..][..SHORT].copy_from_slice(&*block.chunks);
        }
        image.set_counts(routes as u64, u64::from(results));
        Ok(image)
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        let block = size_of::<(u32, Block)>() + 1;
        let chunks = SHORT * size_of::<u32>();
        let blocks = self.blocks.capacity() * block + self.blocks.len() * chunks;
        (self.short_of.capacity() * size_of::<u32>() + blocks) as u64
            + self.short.memory_usage()
            + self.long.memory_usage()
            + self.block_pool.memory_usage()
    }

    /// What a slot holds now.
    pub(super) fn content(&self, slot: u32) -> Content<SHORT_WORDS> {
        Content::of(self.width, self.short.content(self.short_of[slot as usize]))
    }

    /// Gives a slot its chunk.
    pub(super) fn place(
        &mut self,
        slot: u32,
        content: &Content<SHORT_WORDS>,
        changes: &mut Changes,
    ) -> Result<(), Outgrown> {
        let now = self.short_of[slot as usize];
        let placed = match now {
            0 => self.short.link(content.bytes()),
            _ => self.short.relink(now, content.bytes()),
        }
        .ok_or(Outgrown("room for chunks of level 24"))?;
        changes.chunk(N24, placed, &self.short);
        if placed.piece() != now {
            self.short_of[slot as usize] = placed.piece();
            changes.set(C18, u64::from(slot), placed.piece().into());
        }
        Ok(())
    }

    /// Gives the four slots under two octets one next hop throughout. `even` is the chunk of a next hop that is known
    /// to be in use.
    pub(super) fn make_even(
        &mut self,
        octets: u32,
        next_hop: NextHop,
        even: &mut Option<(NextHop, u32)>,
        changes: &mut Changes,
    ) -> Result<(), Outgrown> {
        for slot in octets * QUARTERS..(octets + 1) * QUARTERS {
            if let Some(block) = self.blocks.remove(&slot) {
                for &chunk in block.chunks.iter().filter(|&&chunk| chunk != 0) {
                    self.long.unlink(chunk);
                }
                self.block_pool.give_back(block.number);
                changes.set(B18, u64::from(slot), 0);
            }
            let now = self.short_of[slot as usize];
            match *even {
                Some((of, chunk)) if of == next_hop && now != 0 => {
                    if now != chunk {
                        self.short.move_link(now, chunk);
                        self.short_of[slot as usize] = chunk;
                        changes.set(C18, u64::from(slot), chunk.into());
                    }
                }
                _ => {
                    let mut content = Content::new(self.width);
                    for at in 0..SHORT {
                        content.set(at, next_hop.0);
                    }
                    self.place(slot, &content, changes)?;
                    *even = Some((next_hop, self.short_of[slot as usize]));
                }
            }
        }
        Ok(())
    }

    /// Makes an element of a slot lead on to the prefixes beneath it.
    pub(super) fn lead_on(
        &mut self,
        slot: u32,
        at: usize,
        cursor: Cursor<'_, V4>,
        inherited: NextHop,
        changes: &mut Changes,
    ) -> Result<(), Outgrown> {
        let mut next_hops = [NextHop::NONE; LONG];
        cursor.expand(inherited, &mut next_hops);
        let mut content = Content::<LONG_WORDS>::new(self.width);
        for (at, next_hop) in next_hops.iter().enumerate() {
            content.set(at, next_hop.0);
        }
        let bytes = content.bytes();
        let block = match self.blocks.get_mut(&slot) {
            Some(block) => block,
            None => {
                let number = self.block_pool.take().ok_or(Outgrown("room for blocks of level 24"))?;
                changes.set(B18, u64::from(slot), number.into());
                for at in 0..SHORT {
                    changes.set(C24, u64::from(number) * SHORT as u64 + at as u64, 0);
                }
                self.blocks.entry(slot).or_insert(Block { number, chunks: Box::new([0; SHORT]) })
            }
        };
        let chunk = &mut block.chunks[at];
        let placed = match *chunk {
            0 => self.long.link(bytes),
            now => self.long.relink(now, bytes),
        }
        .ok_or(Outgrown("room for chunks of level 32"))?;
        changes.chunk(N32, placed, &self.long);
        if placed.piece() != *chunk {
            *chunk = placed.piece();
            changes.set(C24, u64::from(block.number) * SHORT as u64 + at as u64, placed.piece().into());
        }
        Ok(())
    }

    /// Gives back what was beneath an element of a slot, if anything was.
    pub(super) fn end_here(&mut self, slot: u32, at: usize, changes: &mut Changes) {
        let Some(block) = self.blocks.get_mut(&slot) else { return };
        let chunk = std::mem::take(&mut block.chunks[at]);
        if chunk == 0 {
            return;
        }
        self.long.unlink(chunk);
        if block.chunks.iter().all(|&chunk| chunk == 0) {
            self.block_pool.give_back(block.number);
            self.blocks.remove(&slot);
            changes.set(B18, u64::from(slot), 0);
        }
    }
}

/// Copies bytes to the front of a section of words.
fn fill_front(words: &mut [u64], bytes: &[u8]) {
    bytemuck::cast_slice_mut::<u64, u8>(words)[..bytes.len()].copy_from_slice(bytes);
}

/// Writes numbers into a section of 2 or 4 bytes an element.
fn put_all(
    image: &mut Image,
    section: SectionId,
    values: impl Iterator<Item = (usize, u32)>,
) -> Result<(), BuildError> {
    fn put<T: Element>(elements: &mut [T], values: impl Iterator<Item = (usize, u32)>) {
        for (at, value) in values {
            elements[at] =
                T::try_from(u64::from(value)).ok().expect("the width was chosen for the largest number");
        }
    }
    match image.width(section) {
        Some(2) => put(image.section_mut::<u16>(section)?, values),
        _ => put(image.section_mut::<u32>(section)?, values),
    }
    Ok(())
}

/// Words that hold the widest elements of a chunk of level 24.
const SHORT_WORDS: usize = SHORT * 4 / WORD;
/// Words that hold the widest elements of a chunk of level 32.
const LONG_WORDS: usize = LONG * 4 / WORD;

/// The elements of a chunk, as wide as the table has them.
pub(super) struct Content<const WORDS: usize> {
    width: usize,
    words: [u64; WORDS],
}

impl<const WORDS: usize> Content<WORDS> {
    fn new(width: usize) -> Self {
        Self { width, words: [0; WORDS] }
    }

    fn of(width: usize, bytes: &[u8]) -> Self {
        let mut content = Self::new(width);
        bytemuck::cast_slice_mut(&mut content.words)[..bytes.len()].copy_from_slice(bytes);
        content
    }

    /// Sets an element; whether it had another value. The value fits: the width was chosen for it, or the update
    /// refused.
    #[inline]
    pub(super) fn set(&mut self, at: usize, value: u32) -> bool {
        /// Of a known width, so that this is a load, a comparison and a store.
        fn set<const WIDTH: usize>(bytes: &mut [u8], at: usize, value: u32) -> bool {
            let element: &mut [u8; WIDTH] =
                bytes[at * WIDTH..].first_chunk_mut().expect("an element of a chunk");
            let new: &[u8; WIDTH] =
                &value.to_le_bytes()[..WIDTH].try_into().expect("at most the 4 bytes of a value");
            let other = element != new;
            *element = *new;
            other
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        match self.width {
            1 => set::<1>(bytes, at, value),
            2 => set::<2>(bytes, at, value),
            _ => set::<4>(bytes, at, value),
        }
    }

    fn bytes(&self) -> &[u8] {
        // As many elements as there is room for of the widest.
        &bytemuck::cast_slice(&self.words)[..WORDS * WORD / 4 * self.width]
    }
}
