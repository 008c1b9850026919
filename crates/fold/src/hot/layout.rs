//! The sections of a table and what their elements say.
//!
//! ```text
//! c16   uI  × 2^16        for each 16 first bits, a slot: below `base` the next hop, else chunk `element - base` of level 24
//! n24   u64 × chunks×256W/8  256 elements of W bytes: the next hop; all ones: there are prefixes longer than 24 bits
//! b16   uJ  × 2^16        block of the slot in c24, 0 where it has no prefix longer than 24 bits
//! c24   u32 × blocks×256  chunk of level 32 for each element of a slot that is all ones
//! n32   u64 × chunks×256W/8  256 elements of W bytes: the next hop
//! w     u8, u16 or u32 × 1   an element of this section is as wide as those of chunks, W
//! base  u32 × 1           what is added to the number of a chunk
//! hot   u64 × H           hot blocks: for each of the first chunks of level 24 the next hops of a few runs of elements
//! ```
//!
//! Chunks of equal content are one chunk, in n24 as in n32. The two arrays are of words of 8 bytes so that a
//! patch writes eight narrow elements at a time; lookups read elements of `W` bytes: 1, 2 or 4, the narrowest
//! that holds every next hop below all ones. Chunks and blocks of c24 are numbered from 1, number 0 of each
//! stays zero. The first five sections are those of `v4`, at another split.
//!
//! A hot block is what a GPU reads in place of the chunk:
//!
//! ```text
//! byte      0   1   2   3     4   5   6   7
//!           b1  b2  b3  0     next hop of the elements below b1, from b1, from b2, from b3 on; 255: ask the chunk
//! ```
//!
//! There are hot blocks only where elements are of one byte and those of c16 of two, so that c16 (128 KB) and
//! all of them fit the shared memory of a block of threads together. Chunks are numbered so that those with a
//! hot block that answers most keys come first. A CPU takes no notice of them. Opening an image does not
//! compare them with the chunks. No engine writes an image in which they differ; a GPU would answer otherwise
//! than a CPU there.
//!
//! The real table of 2026 has 18,356 chunks: 5.3 MB in n24, head room included, 128 KB in c16 and 12,544 hot
//! blocks of 100 KB in all. With c16 these answer 43 % of keys drawn by prefix and 81 % of random ones, and
//! after a day of updates without a new build 31 % and 78 % (`benches/hot_share.rs`).

use wirespeed_image::{Checked, Image, ImageBuilder, ImageError, SectionId, SectionUsage, Table, width_for};

use super::block::{Block, ESCAPE};
use crate::v4::layout::Upper;
use crate::v4::layout::{B18, C18, MAX_ELEMENTS, Split, admits_word, is_whole};

pub(crate) use crate::v4::layout::mark;

/// Bits that choose a slot.
pub const SLOT_BITS: u32 = 16;
/// Number of slots.
pub(crate) const SLOTS: usize = 1 << SLOT_BITS;
/// Elements of a chunk of level 24.
pub const SHORT: usize = 1 << (24 - SLOT_BITS);
/// Elements of a chunk of level 32.
pub const LONG: usize = 256;
/// Most hot blocks: with c16 they take 231,424 bytes, of the 232,448 that a block of threads may have.
pub const MOST_HOT: u32 = 12_544;
const _: () = assert!(MOST_HOT.is_multiple_of(2), "blocks are staged two at a time");
/// The largest next-hop index that an element of c16 can hold beside the numbers of chunks.
pub(crate) const MAX_NEXT_HOP: u32 = (1 << 30) - 1;

/// Next hops and chunks of level 24 by slot.
pub const C16: SectionId = C18;
/// The chunks of level 24.
pub const N24: SectionId = crate::v4::layout::N24;
/// Blocks of c24 by slot.
pub const B16: SectionId = B18;
/// The blocks: chunks of level 32.
pub const C24: SectionId = crate::v4::layout::C24;
/// The chunks of level 32.
pub const N32: SectionId = crate::v4::layout::N32;
const W: SectionId = SectionId(5);
const BASE: SectionId = SectionId(6);
/// Hot blocks.
pub const HOT: SectionId = SectionId(7);

/// 16 bits, of which a slot may have its next hop, then 8.
pub(crate) struct At16;

impl Split for At16 {
    const SLOT_BITS: u32 = SLOT_BITS;
    const DIRECT: bool = true;
    const SLOT_SECTIONS: [&'static str; 2] = ["c16", "b16"];
}

/// The capacities of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Bytes of an element of a chunk.
    pub(crate) width: usize,
    /// What is added to the number of a chunk.
    pub(crate) base: u32,
    /// Chunks of level 24, number 0 included.
    pub(crate) short: u32,
    /// Blocks of c24, number 0 included.
    pub(crate) blocks: u32,
    /// Chunks of level 32, number 0 included.
    pub(crate) long: u32,
}

impl Room {
    /// Bytes of an element of c16.
    fn slot_width(self) -> usize {
        width_for(u64::from(self.base) + u64::from(self.short) - 1).max(2)
    }

    /// Number of hot blocks. An even one, so that they are whole words of 16 bytes.
    pub(crate) fn hot(self) -> u32 {
        match (self.width, self.slot_width()) {
            (1, 2) => self.short.next_multiple_of(2).min(MOST_HOT),
            _ => 0,
        }
    }
}

/// A table of FOLD with hot blocks, ready for lookups.
#[derive(Clone, Debug)]
pub struct FoldHotTable {
    image: Image,
    /// Bytes of an element of a chunk.
    width: usize,
    /// Whether elements of c16 are of 2 bytes.
    pub(super) narrow: bool,
    pub(super) upper: Upper,
}

/// An empty image.
pub(crate) fn allocate(room: Room, cap: Option<u64>) -> Result<Image, ImageError> {
    let words = |chunks: u32, elements: usize| u64::from(chunks) * (elements * room.width / 8) as u64;
    let mut image = ImageBuilder::new(FoldHotTable::KIND, FoldHotTable::LAYOUT)
        .section_of_width("c16", room.slot_width(), SLOTS as u64)
        .section::<u64>("n24", words(room.short, SHORT))
        .section_of_width("b16", width_for(u64::from(room.blocks) - 1).max(2), SLOTS as u64)
        .section::<u32>("c24", u64::from(room.blocks) * SHORT as u64)
        .section::<u64>("n32", words(room.long, LONG))
        .section_of_width("w", room.width, 1)
        .section::<u32>("base", 1)
        .section::<u64>("hot", room.hot().into())
        .build(cap)?;
    image.section_mut::<u32>(BASE)?[0] = room.base;
    Ok(image)
}

impl FoldHotTable {
    /// The table of an image just compiled, or of one that has the sections of one.
    pub(crate) fn new(image: Image) -> Self {
        let width = image.width(W).unwrap_or(0) as usize;
        let base = image.section::<u32>(BASE)[0];
        let upper = Upper { slots: image.column(C16), n24: image.column(N24), base };
        Self { narrow: image.width(C16) == Some(2), image, width, upper }
    }

    /// Bytes of an element of a chunk: 1, 2 or 4.
    pub fn entry_width(&self) -> usize {
        self.width
    }

    /// Bytes of an element of c16: 2 or 4.
    pub fn slot_width(&self) -> usize {
        if self.narrow { 2 } else { 4 }
    }

    /// Bytes of an element of b16: 2 or 4.
    pub fn block_width(&self) -> usize {
        self.image.width(B16).unwrap_or(0) as usize
    }

    /// The number that is added to that of a chunk: elements of c16 below it are next hops.
    pub fn base(&self) -> u32 {
        self.upper.base
    }

    /// Number of hot blocks.
    pub fn hot(&self) -> usize {
        self.image.section::<u64>(HOT).len()
    }

    fn check_shape(image: &Image) -> Result<(), ImageError> {
        let usage = image.memory_usage();
        let malformed = |what: &str| Err(ImageError::Malformed(what.to_owned()));
        let [c16, n24, b16, c24, n32, w, base, hot, ..] = &usage[..] else {
            return malformed("sections are missing");
        };
        if !matches!((w.width, w.len), (1 | 2 | 4, 1)) {
            return malformed("section w");
        }
        // So that a chunk's number with the base stays below 2^31, which signed comparisons rely on.
        let base_is_fine = |image: &Image| image.section::<u32>(BASE)[0] <= MAX_NEXT_HOP + 1;
        if !matches!((base.width, base.len), (4, 1)) || !base_is_fine(image) {
            return malformed("section base");
        }
        let is_of_slots = |slots: &&SectionUsage| matches!(slots.width, 2 | 4) && slots.len == SLOTS as u64;
        if ![c16, b16].iter().all(is_of_slots) {
            return malformed("an array of slots is not of 2^16 elements of 2 or 4 bytes");
        }
        let element = w.width as usize;
        if !is_whole(n24, 8, SHORT * element)
            || !is_whole(c24, 4, SHORT * 4)
            || !is_whole(n32, 8, LONG * element)
        {
            return malformed("a section is not of whole chunks");
        }
        if n24.bytes / element as u64 >= MAX_ELEMENTS {
            return malformed("too many elements in n24");
        }
        let some_hot =
            (c16.width, w.width) == (2, 1) && hot.len.is_multiple_of(2) && hot.len <= MOST_HOT.into();
        if hot.width != 8 || hot.len > 0 && !some_hot {
            return malformed("section hot");
        }
        Ok(())
    }

    /// Number of chunks or blocks that a section has room for, number 0 included.
    fn pieces(&self, section: SectionId) -> u64 {
        let bytes = self.image.padded(section).len() as u64 - 64;
        match section {
            N24 => bytes / (SHORT * self.width) as u64,
            C24 => bytes / (SHORT * 4) as u64,
            _ => bytes / (LONG * self.width) as u64,
        }
    }

    fn admits_slot(&self, value: u64, results: u64) -> bool {
        match value.checked_sub(self.upper.base.into()) {
            Some(chunk) => chunk < self.pieces(N24),
            // As narrow as the elements of chunks, which is how a GPU writes it.
            None => value <= results && value < mark(self.width).into(),
        }
    }
}

impl Table for FoldHotTable {
    const KIND: &'static str = "fold-hot-v4";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        Self::check_shape(&image)?;
        let table = Self::new(image);
        let results = table.image.results();
        for section in [C16, N24, B16, C24, N32, HOT] {
            table.image.check_elements(section, |value| table.admits(section, value, results))?;
        }
        Ok(table)
    }

    fn image(&self) -> &Image {
        &self.image
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.image
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        match section {
            C16 => self.admits_slot(value, results),
            N24 => admits_word(value, self.width, results, true),
            B16 => value < self.pieces(C24),
            C24 => value < self.pieces(N32),
            N32 => admits_word(value, self.width, results, false),
            // Whatever the boundaries are, they choose one of four values.
            HOT => {
                let values = Block(value).values();
                values.iter().all(|&value| u64::from(value) <= results || value == ESCAPE)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{BuildOptions, Engine, Lookup, NextHop, Rib, V4};
    use wirespeed_image::PatchBuilder;

    use super::*;
    use crate::FoldHot;

    /// The suite tries elements that lookups on a CPU read; hot blocks are none.
    #[test]
    fn hot_blocks_hold_results_or_ask_the_chunk() {
        let routes = [("10.0.0.0/8", 1), ("10.0.7.0/24", 9)];
        let rib: Rib<V4> = routes
            .map(|(prefix, next_hop)| (prefix.parse().unwrap(), NextHop(next_hop)))
            .into_iter()
            .collect();
        let (_, table) = FoldHot::build(&rib, &BuildOptions::default()).unwrap();
        assert!(table.hot() > 0);
        let address = "10.0.7.1".parse().unwrap();
        let boundaries = [0, u32::from_le_bytes([9, 8, 7, 6]), u32::MAX];
        for value in [0, 1, 9, 10, 254, 255] {
            for (at, boundaries) in [0, 1, 2, 3].into_iter().flat_map(|at| boundaries.map(|it| (at, it))) {
                let word = u64::from(boundaries) | value << (32 + 8 * at);
                let mut patch = PatchBuilder::new();
                patch.set(HOT, 1, word);
                let patch = patch.finish(None);
                let fits = value <= 9 || value == 255;
                assert_eq!(table.check(&patch).is_ok(), fits, "{word:#x}");
                let mut image = table.image().clone();
                image.apply(&patch).unwrap();
                let taken = FoldHotTable::from_image(image);
                assert_eq!(taken.is_ok(), fits, "{word:#x}");
                assert!(taken.is_ok_and(|taken| taken.lookup(address) == NextHop(9)) || !fits);
            }
        }
    }

    /// Where they can't be staged beside c16, there are none.
    #[test]
    fn wider_elements_have_no_hot_blocks() {
        let hot = |next_hop| {
            let rib: Rib<V4> = [("10.0.7.0/24".parse().unwrap(), NextHop(next_hop))].into_iter().collect();
            FoldHot::build(&rib, &BuildOptions::default()).unwrap().1.hot()
        };
        assert!(hot(254) > 0 && hot(254) % 2 == 0);
        assert_eq!([hot(255), hot(70_000)], [0, 0]);
    }
}
