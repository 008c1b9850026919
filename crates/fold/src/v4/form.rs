//! [`Form`]: which chunk is where and who shares it.
//!
//! It is filled slot by slot from the Rib, the same way whether a table is built or updated; only that a
//! build then copies the chunks into an image whole, and an update writes down what became different.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{BuildError, BuildOptions, NextHop, Outgrown, Rib, V4};
use wirespeed_image::{Changes, Elements, Image, SharedPool, WORD};

use super::content::{Content, fill_front};
use super::layout::{C18, N24, Room, SHORT, SLOT_BITS, SLOTS, allocate, mark};
use super::long::Long;
use super::walk::every_16;

/// The positions of all parts.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Bytes of an element of a chunk.
    pub(super) width: usize,
    /// The chunk of each slot; 0 before it has one.
    short_of: Elements<u32>,
    short: SharedPool<u8>,
    /// The chunks beneath slots with prefixes longer than 24 bits.
    pub(super) long: Long,
}

/// Slots under two octets.
pub(super) const QUARTERS: u32 = 4;

/// Room for updates beside what is in use: an eighth and some.
pub(crate) fn with_head_room(in_use: u32, at_most: u32, options: &BuildOptions) -> u32 {
    // Number 0 is not in use.
    (in_use + options.head_room_of(in_use, 8, 65)).min(at_most)
}

impl Form {
    /// Before any slot is filled, for elements of so many bytes.
    pub(super) fn new(width: usize) -> Self {
        Self {
            width,
            short_of: Elements::zeroed(C18, SLOTS),
            short: SharedPool::new(N24, SHORT * width, u32::MAX),
            long: Long::new(width, SHORT),
        }
    }

    /// Fills every slot.
    pub(super) fn fill(&mut self, rib: &Rib<V4>) {
        let mut even = None;
        every_16(rib, |octets, cursor, inherited| match cursor {
            None => self.make_even(octets, inherited, &mut even, &mut Changes::none()),
            Some(cursor) => self.fill_slots(octets, cursor, inherited),
        })
        .expect("a form that is filled has no bounds");
    }

    /// Fills the slots under two octets.
    fn fill_slots(
        &mut self,
        octets: u32,
        cursor: Cursor<'_, V4>,
        inherited: NextHop,
    ) -> Result<(), Outgrown> {
        let mut next_hops = [NextHop::NONE; 256];
        cursor.expand(inherited, &mut next_hops);
        for (slot, (octets, next_hops)) in
            (octets * QUARTERS..).zip((0..=u8::MAX).step_by(SHORT).zip(next_hops.chunks(SHORT)))
        {
            let mut content = Content::new(self.width);
            for (octet, (at, &next_hop)) in (octets..=u8::MAX).zip(next_hops.iter().enumerate()) {
                match cursor.child(octet) {
                    None => {
                        content.set(at, next_hop.0);
                    }
                    Some(child) => {
                        self.long.lead_on(slot, at, child, next_hop, &mut Changes::none())?;
                        content.set(at, mark(self.width));
                    }
                }
            }
            self.place(slot, &content, &mut Changes::none())?;
        }
        Ok(())
    }

    /// The image of the form, and the bounds that it sets.
    pub(super) fn compile(
        &mut self,
        routes: usize,
        results: u32,
        options: &BuildOptions,
    ) -> Result<Image, BuildError> {
        // Every slot has one chunk, so there are never more in use, but for the moment in which one takes the
        // place of another.
        let short = with_head_room(self.short.in_use(), (1 << SLOT_BITS) + 2, options);
        let room = Room {
            width: self.width,
            short,
            blocks: with_head_room(self.long.blocks_in_use(), (1 << SLOT_BITS) + 1, options),
            long: with_head_room(self.long.chunks_in_use(), 1 << 26, options),
        };
        let mut image = allocate(room, options.memory_cap)?;
        self.short.set_capacity(room.short);
        self.long.set_capacity(room.blocks, room.long);
        fill_front(image.section_mut::<u64>(N24)?, self.short.built());
        self.short_of.compile(&mut image)?;
        self.long.compile(&mut image)?;
        self.settle();
        image.set_counts(routes as u64, u64::from(results));
        Ok(image)
    }

    /// Says that the table has everything: at the end of a build, and at the start of an update.
    pub(super) fn settle(&mut self) {
        self.short.settle();
        self.long.settle();
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        self.short_of.memory_usage() + self.short.memory_usage() + self.long.memory_usage()
    }

    /// Writes the content of a slot to a content of any slot.
    pub(super) fn load(&self, slot: u32, content: &mut Content<SHORT_WORDS>, changes: &Changes<'_>) {
        let chunk = self.short_of.get(slot as usize, changes);
        content.copy_from(self.short.content(chunk, changes));
    }

    /// Prefetches the chunk of a slot.
    pub(super) fn fetch(&self, slot: u32, changes: &Changes<'_>) {
        self.short.fetch(self.short_of.get(slot as usize, changes), changes);
    }

    /// Gives a slot its chunk.
    pub(super) fn place(
        &mut self,
        slot: u32,
        content: &Content<SHORT_WORDS>,
        changes: &mut Changes<'_>,
    ) -> Result<(), Outgrown> {
        let now = self.short_of.get(slot as usize, changes);
        let placed = match now {
            0 => self.short.link(content.bytes(), changes),
            _ => self.short.relink(now, content.bytes(), changes),
        }
        .ok_or(Outgrown("room for chunks of level 24"))?;
        self.short.write(placed, changes);
        if placed.piece() != now {
            self.short_of.set(slot as usize, placed.piece(), changes);
        }
        Ok(())
    }

    /// Gives the four slots under two octets one next hop throughout. `even` is the chunk of a next hop that
    /// is known to be in use.
    pub(super) fn make_even(
        &mut self,
        octets: u32,
        next_hop: NextHop,
        even: &mut Option<(NextHop, u32)>,
        changes: &mut Changes<'_>,
    ) -> Result<(), Outgrown> {
        for slot in octets * QUARTERS..(octets + 1) * QUARTERS {
            self.long.clear(slot, changes);
            let now = self.short_of.get(slot as usize, changes);
            match *even {
                Some((of, chunk)) if of == next_hop && now != 0 => {
                    if now != chunk {
                        self.short.move_link(now, chunk);
                        self.short_of.set(slot as usize, chunk, changes);
                    }
                }
                _ => {
                    let mut content = Content::new(self.width);
                    for at in 0..SHORT {
                        content.set(at, next_hop.0);
                    }
                    self.place(slot, &content, changes)?;
                    *even = Some((next_hop, self.short_of.get(slot as usize, changes)));
                }
            }
        }
        Ok(())
    }
}

/// Words that hold the widest elements of a chunk of level 24.
pub(super) const SHORT_WORDS: usize = SHORT * 4 / WORD;
