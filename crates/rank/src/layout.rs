//! The sections of ranked chunks and what their elements say.
//!
//! SAIL_L's levels (Yang et al., SIGCOMM 2014, section 4.2): prefixes are pushed to the levels 16, 24 and 32,
//! and a chunk is the 256 elements of a level beneath one element of the level above. Neighbours in a chunk
//! are mostly equal, so a chunk stores each run of equal elements once, and a bit map says where runs start:
//! the number of set bits up to an element is the number of its run (Lulea, Degermark et al., SIGCOMM 1997;
//! Poptrie, Asai and Ohara, SIGCOMM 2015). Both compress 2-byte results; here the gain grows with their
//! width, as a chunk takes 64 bytes whatever that is.
//!
//! ```text
//! level16  uI  × 2^16      the chunk of level 24
//! level24  u64 × chunks×8  a word for 32 elements each:  bits   bit i: element i differs from element i - 1
//! level32  u64 × chunks×8                                base   the run of element 0, so bit 0 is never set
//! runs     uW  × runs      0 nnnnnnn…  the next hop is n
//!                          1 ccccccc…  go on in chunk c of level 32
//!
//! element i of a word is in    runs[base + popcount(bits << (31 - i))]
//!
//!   elements  7 7 7 9 9 7 …      bits  0 0 0 1 0 1 0 0 …
//!   runs      … 7 9 7 …                ↑ base
//! ```
//!
//! A chunk of a single run is stored once for each value that it may have, and one that would be of level 32
//! not at all: its element of level 24 has the value itself. The runs of a word lie next to each other and
//! belong to it alone; the words of a single run share it. Chunk 0 of each level and the first of the runs
//! stay zero, which leads to no route. `I` is the narrower of 16 and 32 bits that holds the chunk ids, `W`
//! that which holds the next hops and the ids of level 32 beside the flag. After the last run there are 32
//! elements that no word of our own leads to: a word is valid wherever its bits are, if only its base is.
//!
//! On the real table of 1,042,325 prefixes and 79,563 next hops: 18,563 chunks and 460,896 runs. Tried on it
//! and dropped:
//!
//! - Equal chunks stored once: 18,272 chunks. Equal runs of words stored once: 425,856 runs. Neither is worth
//!   its index when an update has to keep it.
//! - The runs of a chunk in one piece: 460,766 runs. An update moves all of them where it now moves those of
//!   a word.
//! - 24-bit values: no faster than 32-bit ones, in a prototype of the vector code.

use wirespeed_image::{Checked, Element, Image, ImageBuilder, ImageError, SectionId, SectionUsage, Table};

/// Elements of level 16.
pub const SLOTS: usize = 1 << 16;
/// Elements of a word.
pub const WORD: usize = 32;
/// Words of a chunk.
pub const WORDS: u32 = 8;
/// Set, in 32 bits, in a run that leads to a chunk of level 32.
pub(crate) const LONG: u32 = 1 << 31;
/// The largest next-hop index that a run can hold.
pub(crate) const MAX_NEXT_HOP: u32 = LONG - 1;
/// Most runs, and the elements after them: vectors of 32-bit indexes reach that far.
pub(crate) const MAX_RUNS: u32 = 1 << 30;
/// Elements after the last run.
pub(crate) const AFTER: u32 = 32;
/// Chunks of level 24 where each of the 2^16 slots has its own, and chunk 0.
pub(crate) const MAX_CHUNKS_24: u32 = (1 << 16) + 1;

/// Chunk ids by slot. An element of level 16 is called a slot to tell it from others.
pub const LEVEL16: SectionId = SectionId(0);
/// The words of level 24.
pub const LEVEL24: SectionId = SectionId(1);
/// The words of level 32.
pub const LEVEL32: SectionId = SectionId(2);
/// The runs.
pub const RUNS: SectionId = SectionId(3);
/// Number of sections that lookups read.
const SECTIONS: usize = 4;

/// 32 elements of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// Elements that all lead to no route.
    pub(crate) const EMPTY: Self = Self(0);

    /// A word whose runs are at `base`.
    pub(crate) fn new(bits: u32, base: u32) -> Self {
        debug_assert!(bits & 1 == 0);
        Self(u64::from(base) << 32 | u64::from(bits))
    }

    /// Where runs start.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the low half is what is wanted
    pub(crate) const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// The first of its runs.
    #[inline]
    pub(crate) const fn base(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Number of its runs.
    pub(crate) const fn len(self) -> u32 {
        self.bits().count_ones() + 1
    }

    /// The run of an element; of an octet the low 5 bits.
    #[inline]
    pub(crate) fn run_of(self, octet: u8) -> usize {
        let shift = !u32::from(octet) & 31;
        self.base() as usize + (self.bits() << shift).count_ones() as usize
    }
}

/// A table of ranked chunks, ready for lookups.
///
/// Level 16 leads to a chunk of level 24; there the octet's word says which run the element is in; the run
/// holds the next hop or leads to a chunk of level 32, which is read in the same way. A lookup reads three
/// elements, for prefixes longer than /24 five. Memory: 64 bytes for each /16 that is not all one next hop,
/// and an element for each run of /24s.
#[derive(Clone, Debug)]
pub struct RankTable {
    image: Image,
    shape: Shape,
}

/// The widths that lookups are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of a chunk id in level 16: 2 or 4.
    pub(crate) ids: usize,
    /// Bytes of a run: 2 or 4.
    pub(crate) runs: usize,
}

/// The capacity of each section, with chunk 0 and without the elements after the last run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacities {
    pub(crate) level24: u32,
    pub(crate) level32: u32,
    pub(crate) runs: u32,
}

impl Shape {
    /// The narrowest that holds so many chunks, and next hops up to `widest`.
    pub(crate) fn for_table(capacities: Capacities, widest: u32) -> Self {
        let ids = if capacities.level24 <= 1 << 16 { 2 } else { 4 };
        let runs = if widest.max(capacities.level32 - 1) < flag(2) { 2 } else { 4 };
        Self { ids, runs }
    }

    /// The largest next hop that a run holds.
    pub(crate) fn largest(self) -> u32 {
        flag(self.runs) - 1
    }

    /// A run as this shape has it, from what it is in 32 bits.
    pub(crate) fn run(self, value: u32) -> u64 {
        if value & LONG == 0 { value.into() } else { u64::from(flag(self.runs) | (value & !LONG)) }
    }
}

/// The bit of a run of so many bytes that leads on.
const fn flag(bytes: usize) -> u32 {
    1 << (8 * bytes - 1)
}

/// [`flag`] of a type.
#[inline]
pub(crate) const fn flag_of<W: Element>() -> u32 {
    flag(size_of::<W>())
}

/// An empty image.
pub(crate) fn allocate(capacities: Capacities, shape: Shape, cap: Option<u64>) -> Result<Image, ImageError> {
    let words = |chunks: u32| u64::from(chunks) * u64::from(WORDS);
    ImageBuilder::new(RankTable::KIND, RankTable::LAYOUT)
        .section_of_width("level16", shape.ids, SLOTS as u64)
        .section::<u64>("level24", words(capacities.level24))
        .section::<u64>("level32", words(capacities.level32))
        .section_of_width("runs", shape.runs, u64::from(capacities.runs) + u64::from(AFTER))
        .build(cap)
}

impl RankTable {
    /// The table of an image just compiled, whose shape is known to be right or about to be checked.
    pub(crate) fn new(image: Image) -> Self {
        let width = |section| image.width(section).unwrap_or(0) as usize;
        let shape = Shape { ids: width(LEVEL16), runs: width(RUNS) };
        Self { image, shape }
    }

    /// The widths.
    #[inline]
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Bytes of a run: 2 or 4.
    pub fn entry_width(&self) -> u32 {
        self.image.width(RUNS).unwrap_or(0)
    }

    /// Bytes of a chunk id in level 16: 2 or 4.
    pub fn id_width(&self) -> u32 {
        self.image.width(LEVEL16).unwrap_or(0)
    }

    /// Whether all sections are there with the lengths and widths that lookups count on.
    fn check_shape(&self) -> Result<(), ImageError> {
        let usage = self.image.memory_usage();
        // Attachments may follow.
        let Some([level16, level24, level32, runs]) = usage.first_chunk::<SECTIONS>() else {
            let what = format!("{} sections, {SECTIONS} are needed", usage.len());
            return Err(ImageError::Malformed(what));
        };
        let chunks = |level: &SectionUsage, most: u64| {
            let words = u64::from(WORDS);
            level.width == 8 && level.len.is_multiple_of(words) && (1..=most).contains(&(level.len / words))
        };
        let right = [
            (level16, matches!(level16.width, 2 | 4) && level16.len == SLOTS as u64),
            (level24, chunks(level24, MAX_CHUNKS_24.into())),
            (level32, chunks(level32, LONG.into())),
            (
                runs,
                matches!(runs.width, 2 | 4)
                    && (u64::from(AFTER) + 1..=u64::from(MAX_RUNS)).contains(&runs.len),
            ),
        ];
        match right.iter().find(|(_, right)| !right) {
            Some((section, _)) => Err(ImageError::Malformed(format!(
                "section {} of {} elements of {} bytes",
                section.name, section.len, section.width
            ))),
            None => Ok(()),
        }
    }

    /// Number of chunks of a level, head room included.
    fn chunks(&self, level: SectionId) -> u64 {
        self.image.section::<u64>(level).len() as u64 / u64::from(WORDS)
    }

    /// Elements in the section of runs.
    fn runs(&self) -> u64 {
        match self.shape.runs {
            2 => self.image.section::<u16>(RUNS).len() as u64,
            _ => self.image.section::<u32>(RUNS).len() as u64,
        }
    }

    /// The invariant that lookups rely on, for one section.
    fn bounds(&self, section: SectionId, results: u64) -> Option<Bounds> {
        match section {
            LEVEL16 => Some(Bounds::Below(self.chunks(LEVEL24))),
            LEVEL24 | LEVEL32 => Some(Bounds::BaseBelow(self.runs() - u64::from(AFTER))),
            RUNS => {
                let flag = u64::from(flag(self.shape.runs));
                Some(Bounds::Run { flag, results, chunks: self.chunks(LEVEL32) })
            }
            _ => None,
        }
    }
}

/// The values that a section's elements may have.
#[derive(Clone, Copy)]
enum Bounds {
    /// Values below a number.
    Below(u64),
    /// Words whose base is below. Wherever its bits are, a word leads at most 32 elements further.
    BaseBelow(u64),
    /// Next hops up to the largest result and, flagged, chunks that exist.
    Run { flag: u64, results: u64, chunks: u64 },
}

impl Bounds {
    fn admit(self, value: u64) -> bool {
        match self {
            Self::Below(end) => value < end,
            Self::BaseBelow(end) => u64::from(Word(value).base()) < end,
            Self::Run { flag, results, chunks } => {
                if value & flag == 0 {
                    value <= results
                } else {
                    value ^ flag < chunks
                }
            }
        }
    }
}

impl Table for RankTable {
    const KIND: &'static str = "rank-v4";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        let table = Self::new(image);
        table.check_shape()?;
        let results = table.image.results();
        for section in (0..).map(SectionId) {
            let Some(bounds) = table.bounds(section, results) else { break };
            table.image.check_elements(section, |value| bounds.admit(value))?;
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
        self.bounds(section, results).is_some_and(|bounds| bounds.admit(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_in_the_run_that_the_bits_before_them_count() {
        let word = Word::new(0b10_1000, 100);
        let runs: Vec<_> = [0, 1, 2, 3, 4, 5, 6, 31, 32 + 4].map(|octet| word.run_of(octet)).into();
        assert_eq!(runs, [100, 100, 100, 101, 101, 102, 102, 102, 101]);
        assert_eq!(word.len(), 3);
    }

    #[test]
    fn widths_follow_next_hops_and_chunks() {
        let shape = |level24, level32, widest| {
            let Shape { ids, runs } = Shape::for_table(Capacities { level24, level32, runs: 1 }, widest);
            (ids, runs)
        };
        assert_eq!(shape(1 << 16, 1 << 15, 0x7fff), (2, 2));
        assert_eq!(shape((1 << 16) + 1, 1 << 15, 0x8000), (4, 4));
        assert_eq!(shape(1, (1 << 15) + 1, 1), (2, 4));
        let narrow = Shape { ids: 2, runs: 2 };
        assert_eq!((narrow.run(7), narrow.run(LONG | 7), narrow.largest()), (7, 0x8007, 0x7fff));
    }
}
