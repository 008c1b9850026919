//! The sections of an IPv4 table and what their elements say.
//!
//! ```text
//! c18   uI  × 2^18        chunk of level 24 for each 18 first bits, a slot
//! n24   u64 × chunks×64W/8   64 elements of W bytes: the next hop; all ones: there are prefixes longer than 24 bits
//! b18   uJ  × 2^18        block of the slot in c24, 0 where it has no prefix longer than 24 bits
//! c24   u32 × blocks×64   chunk of level 32 for each element of a slot that is all ones
//! n32   u64 × chunks×256W/8  256 elements of W bytes: the next hop
//! w     u8, u16 or u32 × 1   an element of this section is as wide as those of chunks, W
//! ```
//!
//! Chunks of equal content are one chunk, in n24 as in n32. The two arrays are of words of 8 bytes so that a
//! patch writes eight narrow elements at a time; lookups read elements of `W` bytes: 1, 2 or 4, the narrowest
//! that holds every next hop below all ones. Chunks and blocks are numbered from 1, number 0 of each stays
//! zero.
//!
//! Bytes of a lookup of the real table of 2026 (42,298 chunks, one-byte elements): one of c18 (0.5 MB), one
//! of n24 (2.7 MB). Only prefixes longer than 24 bits, of which that table has none, lead on to the three
//! others.

use wirespeed_fib::V4;
use wirespeed_image::{
    Checked, Column, Image, ImageBuilder, ImageError, SectionId, SectionUsage, Table, WORD, width_for,
};

/// Bits that choose a slot.
pub const SLOT_BITS: u32 = 18;
/// Number of slots.
pub(crate) const SLOTS: usize = 1 << SLOT_BITS;
/// Elements of a chunk of level 24.
pub const SHORT: usize = 1 << (24 - SLOT_BITS);
/// Elements of a chunk of level 32.
pub const LONG: usize = 256;
/// The largest next-hop index that the widest element can hold.
pub(crate) const MAX_NEXT_HOP: u32 = u32::MAX - 1;

/// Chunks of level 24 by slot.
pub const C18: SectionId = SectionId(0);
/// The chunks of level 24.
pub const N24: SectionId = SectionId(1);
/// Blocks by slot.
pub const B18: SectionId = SectionId(2);
/// The blocks: chunks of level 32.
pub const C24: SectionId = SectionId(3);
/// The chunks of level 32.
pub const N32: SectionId = SectionId(4);
const W: SectionId = SectionId(5);

/// Elements of n24 stay below this, so that a vector's 32-bit signed indexes reach them all.
pub(crate) const MAX_ELEMENTS: u64 = 1 << 29;

/// The capacities of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Bytes of an element of a chunk.
    pub(crate) width: usize,
    /// Chunks of level 24, number 0 included.
    pub(crate) short: u32,
    /// Blocks of c24, number 0 included.
    pub(crate) blocks: u32,
    /// Chunks of level 32, number 0 included.
    pub(crate) long: u32,
}

/// The slots and chunks of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upper {
    pub(crate) slots: Column,
    pub(crate) n24: Column,
    /// Where numbers of chunks start.
    pub(crate) base: u32,
}

/// A table of FOLD for IPv4, ready for lookups.
#[derive(Clone, Debug)]
pub struct FoldTableV4 {
    image: Image,
    /// Bytes of an element of a chunk.
    width: usize,
    /// Whether elements of c18 are of 2 bytes.
    pub(super) narrow: bool,
    pub(super) upper: Upper,
}

/// The value of an element that leads on: all ones.
pub(crate) const fn mark(width: usize) -> u32 {
    u32::MAX >> (32 - 8 * width)
}

/// An empty image.
pub(crate) fn allocate(room: Room, cap: Option<u64>) -> Result<Image, ImageError> {
    let words = |chunks: u32, elements: usize| u64::from(chunks) * (elements * room.width / WORD) as u64;
    ImageBuilder::new(FoldTableV4::KIND, FoldTableV4::LAYOUT)
        .section_of_width("c18", width_for(u64::from(room.short) - 1).max(2), SLOTS as u64)
        .section::<u64>("n24", words(room.short, SHORT))
        .section_of_width("b18", width_for(u64::from(room.blocks) - 1).max(2), SLOTS as u64)
        .section::<u32>("c24", u64::from(room.blocks) * SHORT as u64)
        .section::<u64>("n32", words(room.long, LONG))
        .section_of_width("w", room.width, 1)
        .build(cap)
}

impl FoldTableV4 {
    /// The table of an image just compiled, or of one that has the sections of one.
    pub(crate) fn new(image: Image) -> Self {
        let width = image.width(W).unwrap_or(0) as usize;
        let upper = Upper { slots: image.column(C18), n24: image.column(N24), base: 0 };
        Self { narrow: image.width(C18) == Some(2), image, width, upper }
    }

    /// Bytes of an element of a chunk: 1, 2 or 4.
    pub fn entry_width(&self) -> usize {
        self.width
    }

    fn check_shape(&self) -> Result<(), ImageError> {
        let usage = self.image.memory_usage();
        let malformed = |what: &str| Err(ImageError::Malformed(what.to_owned()));
        let [c18, n24, b18, c24, n32, w, ..] = &usage[..] else {
            return malformed("sections are missing");
        };
        if !matches!((w.width, w.len), (1 | 2 | 4, 1)) {
            return malformed("section w");
        }
        if ![c18, b18].iter().all(|slots| matches!(slots.width, 2 | 4) && slots.len == SLOTS as u64) {
            return malformed("an array of slots is not of 2^18 elements of 2 or 4 bytes");
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
}

impl Table for FoldTableV4 {
    const KIND: &'static str = "fold-v4";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        if image.sections() <= usize::from(W.0) {
            return Err(ImageError::Malformed("sections are missing".into()));
        }
        let table = Self::new(image);
        table.check_shape()?;
        let results = table.image.results();
        for section in [C18, N24, B18, C24, N32] {
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
            C18 => value < self.pieces(N24),
            N24 => admits_word(value, self.width, results, true),
            B18 => value < self.pieces(C24),
            C24 => value < self.pieces(N32),
            N32 => admits_word(value, self.width, results, false),
            _ => false,
        }
    }
}

/// The split of addresses in a family of tables: the first bits choose a slot, the bits up to 24 an element
/// of the slot's chunk. The first five sections are those of FOLD, each in its place.
pub(crate) trait Split {
    /// Bits that choose a slot.
    const SLOT_BITS: u32;
    /// Whether an element of the slots is a next hop where it is below the table's base, and a chunk counted
    /// from there otherwise; if not, it is always a chunk.
    const DIRECT: bool;
    /// Names of the sections that have an element for each slot: chunks of level 24, blocks of level 32.
    const SLOT_SECTIONS: [&'static str; 2];
    /// Number of slots.
    const SLOTS: usize = 1 << Self::SLOT_BITS;
    /// Elements of a slot.
    const SHORT: usize = 1 << (24 - Self::SLOT_BITS);

    /// The slot of an address.
    #[inline]
    fn slot(address: V4) -> usize {
        (address.0 >> (32 - Self::SLOT_BITS)) as usize
    }

    /// The element of its slot that an address is in.
    #[inline]
    fn short_element(address: V4) -> usize {
        (address.0 >> 8) as usize % Self::SHORT
    }
}

/// 18 bits, then 6.
pub(crate) struct At18;

impl Split for At18 {
    const SLOT_BITS: u32 = SLOT_BITS;
    const DIRECT: bool = false;
    const SLOT_SECTIONS: [&'static str; 2] = ["c18", "b18"];
}

/// Whether each element of so many bytes in a word of a chunk may have its value: a next hop or, where that
/// leads on, all ones.
pub(crate) fn admits_word(word: u64, width: usize, results: u64, marked: bool) -> bool {
    let mark = u64::from(mark(width));
    (0..WORD / width).all(|at| {
        let value = word >> (8 * width * at) & mark;
        value <= results && value != mark || marked && value == mark
    })
}

/// Whether a section is of whole pieces of so many bytes, with elements of so many, and has one at least.
pub(crate) fn is_whole(section: &SectionUsage, width: u32, piece: usize) -> bool {
    let elements = (piece / section.width.max(1) as usize) as u64;
    section.width == width && section.len >= elements && section.len.is_multiple_of(elements)
}

/// The element of its chunk of level 32 that an address is in.
#[inline]
pub(crate) fn long_element(address: V4) -> usize {
    address.0 as usize % LONG
}
