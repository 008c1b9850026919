//! The sections of a table and what their elements say.
//!
//! ```text
//!             first 16 bits         next 8, where there is a chunk        a rope: lengths to try, the longest first
//! key ──► root u32 × 2^16 ──────► chunks u32 × n×256 ──────► ropes u64 × r   48 44 40 32 - - - -
//!            a value                a value                  bests u32 × r   the next hop if all are in vain
//!                                                               │ length, key ──hash──► bucket
//!                                                               ▼
//!    ┌────┬────┬────┬────┬────┬───────┬───────┬──────────┐  buckets u64 × b×8, a cache line each: five keys of up to 63 bits,
//!    │ k0 │ k1 │ k2 │ k3 │ k4 │ v0 v1 │ v2 v3 │ v4 spill │  their values, and how many keys are not where they were looked
//!    └────┴────┴────┴────┴────┴───────┴───────┴──────────┘  for first. wide u64 × w×8: two longer keys each
//!      found: the value is a next hop, or a record with another rope;      seed u64 × 4: where a key is
//!      not found: the next length of the rope
//! ```
//!
//! A key of a hash table is a prefix of the routing table or the marker of longer ones; its value has the next hop
//! of the longest route that covers it (the paper's precomputed best match), so that the last value found is the
//! answer. Records, a rope and a next hop, are stored once where they are equal: the real IPv6 table has some
//! 2,200.

use std::marker::PhantomData;

use wirespeed_fib::{Address, Family};
use wirespeed_image::{Checked, Column, Image, ImageBuilder, ImageError, SectionId, Table};

use crate::buckets::{Kind, WORDS, low};
use crate::hash::Seed;
use crate::rope::Rope;
use crate::value::{MOST, Says, Value};

pub(crate) const ROOT: SectionId = SectionId(0);
pub(crate) const CHUNKS: SectionId = SectionId(1);
pub(crate) const ROPES: SectionId = SectionId(2);
pub(crate) const BESTS: SectionId = SectionId(3);
pub(crate) const BUCKETS: SectionId = SectionId(4);
pub(crate) const WIDE: SectionId = SectionId(5);
pub(crate) const SEED: SectionId = SectionId(6);
/// Names and widths, in order.
const SECTIONS: [(&str, u32); 7] =
    [("root", 4), ("chunks", 4), ("ropes", 8), ("bests", 4), ("buckets", 8), ("wide", 8), ("seed", 8)];

/// Bits of an address that choose an element of the root.
pub(crate) const ROOT_BITS: u8 = 16;
/// Bits that choose an element of a chunk.
pub(crate) const CHUNK_BITS: u8 = 8;
/// Elements of a chunk.
pub(crate) const CHUNK: usize = 1 << CHUNK_BITS;
/// Most lengths that a lookup tries. A table is built with seven at most, and built anew before updates make it more
/// than this.
pub(crate) const MOST_TRIES: u32 = 16;
/// Most buckets that a lookup reads.
pub(crate) const MOST_READS: u32 = 2 * MOST_TRIES;

/// A table of binary search on lengths, ready for lookups.
#[derive(Clone, Debug)]
pub struct WaldvogelTable<A> {
    image: Image,
    pub(crate) columns: Columns,
    pub(crate) sizes: Sizes,
    pub(crate) seed: Seed,
    family: PhantomData<A>,
}

/// Where the sections lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    pub(crate) root: Column,
    pub(crate) chunks: Column,
    pub(crate) ropes: Column,
    pub(crate) bests: Column,
    pub(crate) buckets: Column,
    pub(crate) wide: Column,
}

/// How many there are of what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) chunks: u32,
    pub(crate) records: u32,
    pub(crate) buckets: u32,
    pub(crate) wide: u32,
}

/// An empty image.
pub(crate) fn allocate<A: Address>(sizes: Sizes, seed: Seed, cap: Option<u64>) -> Result<Image, ImageError> {
    let lens = [
        1 << ROOT_BITS,
        u64::from(sizes.chunks) << CHUNK_BITS,
        sizes.records.into(),
        sizes.records.into(),
        u64::from(sizes.buckets) * WORDS as u64,
        u64::from(sizes.wide) * WORDS as u64,
        seed.0.len() as u64,
    ];
    let builder = ImageBuilder::new(WaldvogelTable::<A>::KIND, WaldvogelTable::<A>::LAYOUT);
    let builder = SECTIONS
        .iter()
        .zip(lens)
        .fold(builder, |builder, (&(name, width), len)| builder.section_of_width(name, width as usize, len));
    let mut image = builder.build(cap)?;
    image.section_mut::<u64>(SEED)?.copy_from_slice(&seed.0);
    Ok(image)
}

impl<A: Address> WaldvogelTable<A> {
    /// The table of an image, if its sections have the lengths and widths that lookups count on.
    pub(crate) fn of_shape(image: Image) -> Result<Self, ImageError> {
        let usage = image.memory_usage();
        for (at, &(name, width)) in SECTIONS.iter().enumerate() {
            if usage.get(at).is_none_or(|section| section.name != name || section.width != width) {
                return Err(ImageError::Malformed(format!("section {at} is not {name} of {width} bytes")));
            }
        }
        // So many whole pieces, from one on, and below a limit.
        let count = |id: SectionId, piece: u64, least: u64, limit: u64| {
            let section = &usage[usize::from(id.0)];
            let pieces = section.len / piece;
            if section.len.is_multiple_of(piece) && pieces >= least && pieces <= limit {
                Ok(u32::try_from(pieces).unwrap_or(u32::MAX))
            } else {
                Err(ImageError::Malformed(format!("section {} has {} elements", section.name, section.len)))
            }
        };
        count(ROOT, 1 << ROOT_BITS, 1, 1)?;
        count(SEED, 4, 1, 1)?;
        let sizes = Sizes {
            // A vector's signed 32-bit index must reach every element.
            chunks: count(CHUNKS, CHUNK as u64, 0, 1 << ROOT_BITS)?,
            records: count(ROPES, 1, 1, MOST.into())?,
            buckets: count(BUCKETS, WORDS as u64, 1, u32::MAX.into())?,
            wide: count(WIDE, WORDS as u64, 1, u32::MAX.into())?,
        };
        count(BESTS, sizes.records.into(), 1, 1)?;
        let columns = Columns {
            root: image.column(ROOT),
            chunks: image.column(CHUNKS),
            ropes: image.column(ROPES),
            bests: image.column(BESTS),
            buckets: image.column(BUCKETS),
            wide: image.column(WIDE),
        };
        let seed = Seed(image.section::<u64>(SEED).try_into().expect("there are four"));
        Ok(Self { image, columns, sizes, seed, family: PhantomData })
    }

    /// Whether a value leads somewhere; to a chunk only from the root.
    #[inline]
    fn admits_value(&self, value: u32, results: u64, from_root: bool) -> bool {
        match Value(value).says() {
            Says::NextHop(next_hop) => u64::from(next_hop.0) <= results,
            Says::Record(record) => record < self.sizes.records,
            Says::Chunk(chunk) => from_root && chunk < self.sizes.chunks,
        }
    }

    /// Whether a word may be at its place in a bucket: a key can be anything.
    fn admits_word(&self, kind: Kind, place: usize, word: u64, results: u64) -> bool {
        (0..kind.slots())
            .map(|slot| kind.value_at(slot))
            .all(|(at, shift)| at != place || self.admits_value(low(word >> shift), results, false))
    }

    /// The first element of a section that is not admitted.
    fn first_bad(&self, id: SectionId) -> Option<u64> {
        let results = self.image.results();
        let bad = |(index, value): (u64, u64)| !self.admits_at(id, index, value, results);
        match self.image.width(id) {
            Some(4) => {
                let elements = self.image.section::<u32>(id).iter().map(|&value| u64::from(value));
                (0..).zip(elements).find(|&element| bad(element))
            }
            _ => (0..).zip(self.image.section::<u64>(id).iter().copied()).find(|&element| bad(element)),
        }
        .map(|(index, _)| index)
    }
}

impl<A: Address> Table for WaldvogelTable<A> {
    const KIND: &'static str = match A::FAMILY {
        Family::V4 => "waldvogel-v4",
        Family::V6 => "waldvogel-v6",
    };
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        let table = Self::of_shape(image)?;
        for id in [ROOT, CHUNKS, ROPES, BESTS, BUCKETS, WIDE] {
            if let Some(index) = table.first_bad(id) {
                let name = SECTIONS[usize::from(id.0)].0;
                return Err(ImageError::Malformed(format!("{name}[{index}] leads nowhere")));
            }
        }
        Ok(table)
    }

    fn image(&self) -> &Image {
        &self.image
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.image
    }

    /// Whether it may be somewhere in the section.
    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        (0..WORDS as u64).any(|index| self.admits_at(section, index, value, results))
    }

    #[inline]
    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        let place = usize::from(low(index).to_le_bytes()[0]) % WORDS;
        match section {
            ROOT => self.admits_value(low(value), results, true),
            CHUNKS => self.admits_value(low(value), results, false),
            ROPES => Rope(value).is_valid(A::BITS),
            BESTS => value <= results,
            BUCKETS => self.admits_word(Kind::Narrow, place, value, results),
            WIDE => self.admits_word(Kind::Wide, place, value, results),
            // What a table was built with stays.
            _ => false,
        }
    }
}
