//! The sections of SAIL_L (section 4.2 of the paper) and what their elements say.
//!
//! Prefixes are pushed to the levels 16, 24 and 32; for IPv6 to 16, 24, 32 and so on to 128. Level 16 is one
//! array, each deeper level is made of chunks of 256 elements, one chunk for each element above that has
//! longer prefixes beneath it.
//!
//! ```text
//! bcn16  u32 × 2^16      1 nnnnnnn…  the next hop is n           (the paper's BCN: bit map, chunk id, next hop)
//!                        0 ccccccc…  go on in chunk c of level 24
//! bn24   uW  × chunks×256            0: go on, the chunk is in c24; else the next hop plus one     (BN)
//! c24    uI  × chunks×256            chunk of the next level                                       (C)
//! …                                  bn32, c32, … bn120, c120 for IPv6
//! n32    uW  × chunks×256            the next hop (n128 for IPv6)                                  (N)
//! ```
//!
//! Chunk ids start from 1; chunk 0 of each level stays zero, which leads to no route. `W`, one for the whole
//! table, is the narrowest of 8, 16 and 32 bits that holds every next hop plus one; `I` is the narrowest that
//! holds the level's chunk ids. The paper has 8 bits for next hops and 15 for chunk ids, and always a default
//! route; the plus one in BN is what makes room for no route.
//!
//! A lookup of the real IPv4 table of 2026 (26,502 chunks in level 24; bcn16 0.26 MB, bn24 7.6 MB) reads one
//! or two elements, where there are prefixes longer than /24 (that table has none) four. IPv6 reads two
//! elements a level past the first, of which the second only where the first is zero.

use std::marker::PhantomData;

use wirespeed_fib::Address;
use wirespeed_image::{Checked, Column, Image, ImageBuilder, ImageError, SectionId, Table, width_for};

/// Elements of a chunk.
pub const CHUNK: usize = 256;
/// Set in an element of bcn16 that holds a next hop.
pub const LEAF: u32 = 1 << 31;
/// The largest next-hop index that bcn16 can hold.
pub(crate) const MAX_NEXT_HOP: u32 = LEAF - 1;
/// Elements of an IPv4 level past the first stay below this.
const MAX_ELEMENTS: u64 = 1 << 30;
/// The array of level 16.
pub const BCN16: SectionId = SectionId(0);

/// Elements of level 16.
pub const FIRST: usize = 1 << 16;

/// Number of levels: 16, 24, … to the width of the address. Level numbers count these from 0.
pub const fn levels<A: Address>() -> usize {
    A::OCTETS - 1
}

/// Number of sections that lookups read: bcn16, bn and c of each level between, and n of the last.
const fn sections<A: Address>() -> usize {
    2 * levels::<A>() - 2
}

/// The array of next hops of a level from 1 on: bn, or n in the last.
pub fn next_hops(level: usize) -> SectionId {
    id(2 * level - 1)
}

/// The array of chunk ids of a level from 1 to the last but one.
pub fn chunk_ids(level: usize) -> SectionId {
    id(2 * level)
}

fn id(at: usize) -> SectionId {
    SectionId(u16::try_from(at).expect("there are at most 30 sections"))
}

/// A table of SAIL_L, ready for lookups.
#[derive(Clone, Debug)]
pub struct SailLTable<A> {
    image: Image,
    /// Bytes of a next-hop element.
    width: u32,
    pub(super) bcn16: Column,
    /// The arrays of next hops and of chunk ids, with the width of these, of each level from 1 on.
    pub(super) deeper: Vec<(Column, Column, u32)>,
    family: PhantomData<A>,
}

/// An empty image with room for that many chunks (chunk 0 included) in each level from 1 on.
pub(crate) fn allocate<A: Address>(
    capacities: &[u64],
    width: usize,
    cap: Option<u64>,
) -> Result<Image, ImageError> {
    debug_assert_eq!(capacities.len(), levels::<A>() - 1);
    let mut builder = ImageBuilder::new(SailLTable::<A>::KIND, SailLTable::<A>::LAYOUT)
        .section::<u32>("bcn16", FIRST as u64);
    for (at, &chunks) in capacities.iter().enumerate() {
        let bits = 8 * (at + 3);
        let len = chunks * CHUNK as u64;
        builder =
            match capacities.get(at + 1) {
                Some(&beneath) => builder
                    .section_of_width(&format!("bn{bits}"), width, len)
                    .section_of_width(&format!("c{bits}"), width_for(beneath - 1), len),
                None => builder.section_of_width(&format!("n{bits}"), width, len),
            };
    }
    builder.build(cap)
}

impl<A: Address> SailLTable<A> {
    /// The table of an image just compiled.
    pub(crate) fn new(image: Image) -> Self {
        let width = image.width(next_hops(1)).unwrap_or(0);
        let last = levels::<A>() - 1;
        let deeper = |level| {
            // The last level has no ids, and nobody asks for them.
            let ids = if level < last { chunk_ids(level) } else { next_hops(level) };
            (image.column(next_hops(level)), image.column(ids), image.width(ids).unwrap_or(0))
        };
        let (bcn16, deeper) = (image.column(BCN16), (1..=last).map(deeper).collect());
        Self { image, width, bcn16, deeper, family: PhantomData }
    }

    /// Bytes of a next-hop element: 1, 2 or 4.
    pub fn entry_width(&self) -> u32 {
        self.width
    }

    /// Number of chunks of a level from 1 on, chunk 0 and head room included.
    pub fn chunks(&self, level: usize) -> u64 {
        let len = match self.width {
            1 => self.image.section::<u8>(next_hops(level)).len(),
            2 => self.image.section::<u16>(next_hops(level)).len(),
            _ => self.image.section::<u32>(next_hops(level)).len(),
        };
        (len / CHUNK) as u64
    }

    /// Whether all sections are there with the lengths and widths that lookups count on.
    fn check_shape(&self) -> Result<(), ImageError> {
        let usage = self.image.memory_usage();
        let malformed = |what: String| Err(ImageError::Malformed(what));
        if (usage[0].width, usage[0].len) != (4, FIRST as u64) {
            return malformed("bcn16 is not of 65,536 elements of 4 bytes".into());
        }
        for level in 1..levels::<A>() {
            // What IPv4 can use at most is far below, and vectors of 32-bit indexes reach that far.
            if A::OCTETS == 4 && usage[usize::from(next_hops(level).0)].len >= MAX_ELEMENTS {
                return malformed(format!("over {MAX_ELEMENTS} elements in a level"));
            }
            let elements = &usage[usize::from(next_hops(level).0)];
            let whole = elements.len >= CHUNK as u64 && elements.len.is_multiple_of(CHUNK as u64);
            if elements.width != self.width || elements.width > 4 || !whole {
                return malformed(format!("section {}", elements.name));
            }
            if level + 1 < levels::<A>() {
                let ids = &usage[usize::from(chunk_ids(level).0)];
                if ids.width > 4 || ids.len != elements.len {
                    return malformed(format!("section {}", ids.name));
                }
            }
        }
        Ok(())
    }
}

impl<A: Address> Table for SailLTable<A> {
    const KIND: &'static str = match A::OCTETS {
        4 => "sail-l-v4",
        _ => "sail-l-v6",
    };
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        if image.sections() < sections::<A>() {
            let (there, needed) = (image.sections(), sections::<A>());
            return Err(ImageError::Malformed(format!("{there} sections, {needed} are needed")));
        }
        let table = Self::new(image);
        table.check_shape()?;
        let results = table.image.results();
        for section in (0..).map(SectionId).take(sections::<A>()) {
            let bounds = table.bounds(section, results);
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
        usize::from(section.0) < sections::<A>() && self.bounds(section, results).admit(value)
    }
}

/// The values that a section's elements may have: up to `plain` and, with `flag`, up to `flagged`.
#[derive(Clone, Copy)]
struct Bounds {
    plain: u64,
    flag: u64,
    flagged: u64,
}

impl Bounds {
    fn admit(self, value: u64) -> bool {
        if value & self.flag == 0 { value <= self.plain } else { value ^ self.flag <= self.flagged }
    }
}

impl<A: Address> SailLTable<A> {
    /// The invariant that lookups rely on: chunk ids are of chunks that exist, results within the count.
    fn bounds(&self, section: SectionId, results: u64) -> Bounds {
        let plain = |plain| Bounds { plain, flag: 0, flagged: 0 };
        let at = usize::from(section.0);
        if section == BCN16 {
            // A next hop is as wide as in the levels after it, whose elements hold it plus one.
            let flagged = results.min((u64::MAX >> (64 - 8 * self.width)) - 1);
            Bounds { plain: self.chunks(1) - 1, flag: u64::from(LEAF), flagged }
        } else if at % 2 == 0 {
            plain(self.chunks(at / 2 + 1) - 1)
        } else if at / 2 + 2 == levels::<A>() {
            plain(results)
        } else {
            plain(results + 1)
        }
    }
}
