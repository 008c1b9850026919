//! [`Form`]: which slot has a next hop and which a chunk, who shares it, and the hot blocks of the first
//! chunks.
//!
//! It is filled slot by slot from the Rib, the same way whether a table is built or updated. A build then
//! numbers the chunks anew by what their hot blocks are worth, and copies all into an image; an update writes
//! down what became different.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{BuildError, BuildOptions, NextHop, Outgrown, Rib, V4};
use wirespeed_image::{Changes, Elements, Image, Placed, SharedPool, WORD};

use super::block::Block;
use super::cover::Demand;
use super::layout::{C16, HOT, N24, Room, SHORT, SLOTS, allocate, mark};
use crate::v4::content::{Content, fill_front};
use crate::v4::form::with_head_room;
use crate::v4::long::Long;
use crate::v4::walk::every_16;

/// Words that hold the widest elements of a chunk of level 24.
pub(super) const SHORT_WORDS: usize = SHORT * 4 / WORD;

/// Where everything is.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Bytes of an element of a chunk.
    pub(super) width: usize,
    /// What is added to the number of a chunk.
    pub(super) base: u32,
    /// The elements of c16.
    slots: Elements<u32>,
    short: SharedPool<u8>,
    /// What is beneath slots that have prefixes longer than 24 bits.
    pub(super) long: Long,
    /// The blocks of the first chunks, by number. None while the form is filled.
    hot: Vec<Block>,
}

impl Form {
    /// No routes, for elements of so many bytes, and numbers of chunks from `base` on.
    pub(super) fn new(width: usize, base: u32) -> Self {
        Self {
            width,
            base,
            slots: Elements::zeroed(C16, SLOTS),
            short: SharedPool::new(N24, SHORT * width, u32::MAX),
            long: Long::new(width, SHORT),
            hot: Vec::new(),
        }
    }

    /// Fills every slot.
    pub(super) fn fill(&mut self, rib: &Rib<V4>) {
        every_16(rib, |slot, cursor, inherited| match cursor {
            None => {
                self.make_even(slot, inherited, &mut Changes::none());
                Ok(())
            }
            Some(cursor) => self.fill_slot(slot, cursor, inherited),
        })
        .expect("a form that is filled has no bounds");
    }

    fn fill_slot(&mut self, slot: u32, cursor: Cursor<'_, V4>, inherited: NextHop) -> Result<(), Outgrown> {
        let mut next_hops = [NextHop::NONE; SHORT];
        cursor.expand(inherited, &mut next_hops);
        let mut content = Content::new(self.width);
        for (at, next_hop) in next_hops.iter().enumerate() {
            content.set(at, next_hop.0);
        }
        for octet in cursor.octets() {
            let (at, child) = (usize::from(octet), cursor.child(octet));
            let child = child.expect("one of the octets that have a child");
            self.long.lead_on(slot, at, child, next_hops[at], &mut Changes::none())?;
            content.set(at, mark(self.width));
        }
        self.place(slot, &content, &mut Changes::none())
    }

    /// The image of the form, and the bounds that it sets.
    pub(super) fn compile(
        &mut self,
        rib: &Rib<V4>,
        results: u32,
        options: &BuildOptions,
    ) -> Result<Image, BuildError> {
        let room = Room {
            width: self.width,
            base: self.base,
            short: self.room_for_chunks(options),
            blocks: with_head_room(self.long.blocks_in_use(), SLOTS_AND_ONE, options),
            long: with_head_room(self.long.chunks_in_use(), 1 << 26, options),
        };
        let mut image = allocate(room, options.memory_cap)?;
        self.heat(rib, room.hot());
        self.short.set_capacity(room.short);
        self.long.set_capacity(room.blocks, room.long);
        fill_front(image.section_mut::<u64>(N24)?, self.short.built());
        self.slots.compile(&mut image)?;
        self.long.compile(&mut image)?;
        self.settle();
        for (element, block) in image.section_mut::<u64>(HOT)?.iter_mut().zip(&self.hot) {
            *element = block.0;
        }
        image.set_counts(rib.len() as u64, u64::from(results));
        Ok(image)
    }

    /// How many chunks of level 24 to have room for: as ever, or somewhat fewer where these keep c16 at two
    /// bytes.
    fn room_for_chunks(&self, options: &BuildOptions) -> u32 {
        let in_use = self.short.in_use();
        // Every slot has one chunk at most, so there are never more in use, but for the moment in which one
        // takes the place of another.
        let wanted = with_head_room(in_use, SLOTS_AND_ONE + 1, options);
        let narrow = (1u32 << 16).saturating_sub(self.base);
        if in_use + in_use / 64 + 65 <= narrow { wanted.min(narrow) } else { wanted }
    }

    /// Numbers the chunks anew, so that those with the best blocks are first, and gives them these.
    fn heat(&mut self, rib: &Rib<V4>, hot: u32) {
        if hot == 0 {
            return;
        }
        // None was freed yet: they are numbered without a gap.
        let chunks = self.short.in_use();
        let base = self.base;
        let demand = Demand::of(rib, chunks as usize + 1, |slot| {
            self.slots.built()[slot as usize].checked_sub(base).map(|chunk| chunk as usize)
        });
        let mut blocks: Vec<(u32, Block, f32)> = (1..=chunks)
            .map(|chunk| {
                let (block, worth) =
                    demand.block(chunk as usize, self.short.content(chunk, &Changes::none()));
                (chunk, block, worth)
            })
            .collect();
        blocks.sort_by(|a, b| b.2.total_cmp(&a.2));
        self.renumber(blocks.iter().map(|&(chunk, ..)| chunk));
        let zero = Block::even(self.short.content(0, &Changes::none()));
        self.hot = std::iter::once(zero).chain(blocks.into_iter().map(|(_, block, _)| block)).collect();
        self.hot.resize(hot as usize, zero);
    }

    /// Numbers the chunks in this order of their old numbers.
    fn renumber(&mut self, order: impl Iterator<Item = u32>) {
        let mut short = SharedPool::new(N24, SHORT * self.width, u32::MAX);
        let mut new = vec![0; self.short.in_use() as usize + 1];
        let building = Changes::none();
        for old in order {
            let placed =
                short.link(self.short.content(old, &building), &building).expect("there is no bound yet");
            new[old as usize] = placed.piece();
        }
        let mut is_linked = vec![false; new.len()];
        for slot in self.slots.built_mut().iter_mut().filter(|slot| **slot >= self.base) {
            let chunk = new[(*slot - self.base) as usize];
            // The first link is there.
            if std::mem::replace(&mut is_linked[chunk as usize], true) {
                short.add_link(chunk);
            }
            *slot = self.base + chunk;
        }
        self.short = short;
    }

    /// Says that the table has everything: at the end of a build, and at the start of an update.
    pub(super) fn settle(&mut self) {
        self.short.settle();
        self.long.settle();
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        let hot = (self.hot.capacity() * size_of::<Block>()) as u64;
        hot + self.slots.memory_usage() + self.short.memory_usage() + self.long.memory_usage()
    }

    /// The content of a slot.
    pub(super) fn content(&self, slot: u32, changes: &Changes<'_>) -> Content<SHORT_WORDS> {
        let element = self.slots.get(slot as usize, changes);
        match element.checked_sub(self.base) {
            Some(chunk) => Content::of(self.width, self.short.content(chunk, changes)),
            None => Content::all(self.width, element),
        }
    }

    /// Gives a slot its content: a next hop if it is of one throughout, else a chunk.
    pub(super) fn place(
        &mut self,
        slot: u32,
        content: &Content<SHORT_WORDS>,
        changes: &mut Changes<'_>,
    ) -> Result<(), Outgrown> {
        if let Some(next_hop) = content.uniform().filter(|&value| value != mark(self.width)) {
            self.set(slot, next_hop, changes);
            return Ok(());
        }
        let placed = match self.slots.get(slot as usize, changes).checked_sub(self.base) {
            None => self.short.link(content.bytes(), changes),
            Some(now) => self.short.relink(now, content.bytes(), changes),
        }
        .ok_or(Outgrown("room for chunks of level 24"))?;
        self.short.write(placed, changes);
        if let Placed::Fresh(chunk) = placed {
            self.refresh(chunk, changes);
        }
        self.write(slot, self.base + placed.piece(), changes);
        Ok(())
    }

    /// Gives a slot one next hop throughout, with nothing beneath.
    pub(super) fn make_even(&mut self, slot: u32, next_hop: NextHop, changes: &mut Changes<'_>) {
        self.long.clear(slot, changes);
        self.set(slot, next_hop.0, changes);
    }

    /// Gives a slot a next hop in place of what it has.
    fn set(&mut self, slot: u32, next_hop: u32, changes: &mut Changes<'_>) {
        if let Some(chunk) = self.slots.get(slot as usize, changes).checked_sub(self.base) {
            self.short.unlink(chunk);
        }
        self.write(slot, next_hop, changes);
    }

    fn write(&mut self, slot: u32, element: u32, changes: &mut Changes<'_>) {
        if self.slots.get(slot as usize, changes) != element {
            self.slots.set(slot as usize, element, changes);
        }
    }

    /// Brings the block of a chunk, if it has one, up to date with what the chunk holds. The boundaries stay.
    fn refresh(&mut self, chunk: u32, changes: &mut Changes<'_>) {
        let Some(block) = self.hot.get_mut(chunk as usize) else { return };
        let now = block.of(self.short.latest());
        if std::mem::replace(block, now) != now {
            changes.set(HOT, u64::from(chunk), now.0);
        }
    }
}

/// Blocks of c24 when every slot has one, and number 0.
const SLOTS_AND_ONE: u32 = (1 << 16) + 1;
