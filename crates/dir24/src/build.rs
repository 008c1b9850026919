//! [`Dir24`]: the form of the table, and its compilation from a Rib.
//!
//! The form is the writer's own copy of the table's entries and, after GALE, beside each entry the length of
//! the prefix that it has its next hop from. It is filled by announcing every route in table order, where a
//! longer prefix comes after those that cover it and paints over them.
//!
//! ```text
//! len24  u8 × 2^24         the longest prefix of at most 24 bits that covers the slot, 0 where none does
//! len8   u8 × chunks×256   the longest prefix that covers the address
//! ```
//!
//! A slot that leads to a chunk has its length, too, so that the prefixes that end above it are told apart
//! without reading the chunk. No prefix and the default route have one length: where neither is, there is
//! nothing to keep apart.

use wirespeed_fib::{Address, BuildError, BuildOptions, Engine, Outgrown, Prefix, Rib, Standing, V4};
use wirespeed_image::{Element, Image, ImageBuilder, ImageError, Patch, Pool, SectionId};

use super::layout::{
    CHUNK, Dir24Table, SLOTS, TBL8, TBL24, WORD, allocate, chunk_bit, entry_width, most_chunks, slot,
};

/// DIR-24-8's control plane: build, and keep up to date, a [`Dir24Table`].
///
/// Memory: the table once more, and a byte for each of its entries.
#[derive(Clone, Debug)]
pub struct Dir24 {
    /// The table as its copies are after the last patch.
    pub(super) table: Image,
    /// The length of the prefix that each entry is of, in the sections [`LEN24`] and [`LEN8`]: an image for
    /// its huge pages.
    pub(super) lengths: Image,
    pub(super) chunks: Pool,
    /// Bytes of an entry.
    pub(super) width: usize,
}

/// The lengths of slots.
pub(super) const LEN24: SectionId = SectionId(0);
/// The lengths of the entries of chunks.
pub(super) const LEN8: SectionId = SectionId(1);

/// The reason why the form's images can be written to.
pub(super) const OWN: &str = "an image that was built is in memory";

impl Engine<V4> for Dir24 {
    const NAME: &'static str = "dir24";
    const STANDING: Standing =
        Standing::Niche("traffic that follows the routes, with 16 MB of cache to spend");
    type Table = Dir24Table;

    fn build(rib: &Rib<V4>, options: &BuildOptions) -> Result<(Self, Dir24Table), BuildError> {
        let results = rib.max_next_hop().0;
        let in_use = chunks(rib);
        let width = entry_width(results.max(options.results), in_use)?;
        let room = with_head_room(in_use, width, options);
        let mut engine = Self {
            table: allocate(width, room, options.memory_cap)?,
            lengths: lengths(room)?,
            chunks: Pool::new(room),
            width,
        };
        match width {
            1 => engine.fill::<u8>(rib)?,
            2 => engine.fill::<u16>(rib)?,
            _ => engine.fill::<u32>(rib)?,
        }
        engine.table.set_counts(rib.len() as u64, u64::from(results));
        let table = Dir24Table::new(engine.table.clone());
        Ok((engine, table))
    }

    fn patch(&mut self, _: &Self::Table, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
        match self.width {
            1 => self.patch::<u8>(rib, changed),
            2 => self.patch::<u16>(rib, changed),
            _ => self.patch::<u32>(rib, changed),
        }
    }

    fn memory_usage(&self) -> u64 {
        self.table.bytes() + self.lengths.bytes() + self.chunks.memory_usage()
    }
}

/// Slots that have prefixes longer than 24 bits.
fn chunks(rib: &Rib<V4>) -> u32 {
    let root = rib.cursor();
    let seconds = root.octets().filter_map(|octet| root.child(octet));
    let thirds = seconds.flat_map(|second| second.octets().filter_map(move |octet| second.child(octet)));
    let slots: usize = thirds.map(|third| third.octets().count()).sum();
    u32::try_from(slots).expect("there are 2^24 slots")
}

/// Room for chunk 0, those in use, and an eighth and some more for updates, as far as entries can lead to
/// them.
fn with_head_room(in_use: u32, width: usize, options: &BuildOptions) -> u32 {
    (in_use + options.head_room_of(in_use, 8, 9)).min(most_chunks(width))
}

/// Zero lengths for the slots and so many chunks.
fn lengths(chunks: u32) -> Result<Image, ImageError> {
    ImageBuilder::new("dir24-lengths", 1)
        .section::<u8>("len24", SLOTS as u64)
        .section::<u8>("len8", u64::from(chunks) * CHUNK as u64)
        .build(None)
}

impl Dir24 {
    /// Announces every route to an empty form.
    fn fill<W: Element>(&mut self, rib: &Rib<V4>) -> Result<(), ImageError> {
        for (prefix, next_hop) in rib {
            let next_hop = entry::<W>(next_hop.0);
            let (section, of_lengths, entries) = if prefix.len() <= 24 {
                (TBL24, LEN24, slot(prefix.address())..slot(prefix.last()) + 1)
            } else {
                let chunk = self.chunk_of_long::<W>(prefix.address())?;
                (TBL8, LEN8, within(chunk, prefix))
            };
            entries_mut::<W>(&mut self.table, section)[entries.clone()].fill(next_hop);
            self.lengths.section_mut::<u8>(of_lengths)?[entries].fill(prefix.len());
        }
        Ok(())
    }

    /// The chunk of the slot of an address; if it has none yet, one that starts as what the slot has.
    fn chunk_of_long<W: Element>(&mut self, address: V4) -> Result<u32, ImageError> {
        let slot = slot(address);
        if let Some(chunk) = self.chunk_of::<W>(slot) {
            return Ok(chunk);
        }
        let chunk = self.chunks.take().expect("the slots that need chunks were counted on this very Rib");
        let entries = chunk as usize * CHUNK..(chunk as usize + 1) * CHUNK;
        let entry_of_slot = std::mem::replace(
            &mut entries_mut::<W>(&mut self.table, TBL24)[slot],
            entry::<W>(chunk | chunk_bit(self.width)),
        );
        entries_mut::<W>(&mut self.table, TBL8)[entries.clone()].fill(entry_of_slot);
        let length_of_slot = self.lengths.section::<u8>(LEN24)[slot];
        self.lengths.section_mut::<u8>(LEN8)?[entries].fill(length_of_slot);
        Ok(chunk)
    }

    /// The chunk that a slot leads to.
    #[inline]
    pub(super) fn chunk_of<W: Element>(&self, slot: usize) -> Option<u32> {
        leads_to(bytemuck::cast_slice::<u64, W>(self.table.section(TBL24))[slot])
    }
}

/// The chunk that an entry of tbl24 leads to.
#[inline]
pub(super) fn leads_to<W: Element>(entry: W) -> Option<u32> {
    let (value, bit) = (wirespeed_image::number(entry), chunk_bit(size_of::<W>()));
    (value & bit != 0).then_some(value ^ bit)
}

/// The entries of its chunk that a prefix longer than 24 bits covers.
pub(super) fn within(chunk: u32, prefix: Prefix<V4>) -> std::ops::Range<usize> {
    let (octets, chunk) = (prefix.octets(V4::OCTETS - 1), chunk as usize * CHUNK);
    chunk + usize::from(*octets.start())..chunk + usize::from(*octets.end()) + 1
}

/// A value as an entry, for which it was found to be narrow enough.
#[inline]
pub(super) fn entry<W: Element>(value: u32) -> W {
    W::try_from(value.into()).ok().expect("the width was chosen for the largest value")
}

/// The entries of a section, for writing.
#[inline]
pub(super) fn entries_mut<W: Element>(table: &mut Image, section: SectionId) -> &mut [W] {
    const { assert!(WORD.is_multiple_of(size_of::<W>())) };
    bytemuck::cast_slice_mut::<u64, W>(table.section_mut(section).expect(OWN))
}
