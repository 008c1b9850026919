//! The sections of a table and what their elements say.
//!
//! ```text
//!             first 16 bits         next 8, where there is a chunk
//! key ──► root u32 × 2^16 ──────► chunks u32 × n×256 ──────► a value: the next hop, or a length to try and a record
//!            a value                a value                     │ length, key ──hash──► group, home, rest
//!                                                               ▼
//!                                    pilots u8 × g   how far from its home the group of a key is
//!                                    slots u64 × s   rest, value: the key is there if its rest is
//!                                     ├─ found:      that value is what goes on
//!                                     └─ not found:  misses u32 × 8×r, the record's, does: the next length of
//!                                                    the same rope, or the best match so far
//! wide u64 × w×8: three keys of more than 48 bits a bucket      ropes u64 × r: the lengths that records are for
//! seed u64 × 4: where a key is
//! ```
//!
//! A key of a hash table is a prefix of the routing table or the marker of longer ones; its value has the
//! next hop of the longest route that covers it (the paper's precomputed best match), so that a search that
//! ends has the answer. Eight records, a piece, are a rope and a next hop; pieces are stored once where they
//! are equal: the real IPv6 table has some 2,200.

use std::marker::PhantomData;

use wirespeed_fib::{Address, Family};
use wirespeed_image::{Checked, Column, Image, ImageBuilder, ImageError, SectionId, Table};

pub use crate::buckets::{
    LENGTHS as BUCKET_LENGTHS, SLOTS as BUCKET_SLOTS, SPILLED as BUCKET_SPILLED, VALUES as BUCKET_VALUES,
    WORDS as BUCKET_WORDS,
};
pub use crate::form::STEPS;
use crate::hash::Seed;
pub use crate::hash::{FOLD, HASH_BITS};
use crate::rope::Rope;
pub use crate::sections::{CHUNKS, MISSES, PILOTS, ROOT, ROPES, SEED, SLOTS, WIDE};
use crate::slots::{FEWEST_BITS, MOST_BITS};
use crate::value::WIDE_FROM;
use crate::value::{MOST, Says, Value, low};
pub use crate::value::{NUMBER_BITS, OPEN, WIDE as WIDE_LENGTH};

/// Names and widths, in order.
const SECTIONS: [(&str, u32); 8] = [
    ("root", 4),
    ("chunks", 4),
    ("ropes", 8),
    ("misses", 4),
    ("slots", 8),
    ("pilots", 1),
    ("wide", 8),
    ("seed", 8),
];

/// Bits of an address that choose an element of the root.
pub const ROOT_BITS: u8 = 16;
/// Bits that choose an element of a chunk.
pub const CHUNK_BITS: u8 = 8;
/// Elements of a chunk.
pub(crate) const CHUNK: usize = 1 << CHUNK_BITS;
/// Most lengths that a lookup tries. A table is built with seven at most, and built anew before updates make
/// it more than this.
pub const MOST_TRIES: u32 = 16;

/// A table of binary search on lengths, ready for lookups.
#[derive(Clone, Debug)]
pub struct WaldvogelTable<A> {
    image: Image,
    pub(crate) columns: Columns,
    pub(crate) sizes: Sizes,
    pub(crate) seed: Seed,
    family: PhantomData<A>,
}

/// The columns of the sections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    pub(crate) root: Column,
    pub(crate) chunks: Column,
    pub(crate) ropes: Column,
    pub(crate) misses: Column,
    pub(crate) slots: Column,
    pub(crate) pilots: Column,
    pub(crate) wide: Column,
}

/// The sizes of the sections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) chunks: u32,
    /// Pieces of eight records each.
    pub(crate) pieces: u32,
    /// Bits of the number of a slot.
    pub(crate) slot_bits: u32,
    /// Buckets of longer keys.
    pub(crate) wide: u32,
}

/// An empty image.
pub(crate) fn allocate<A: Address>(sizes: Sizes, seed: Seed, cap: Option<u64>) -> Result<Image, ImageError> {
    let lens = [
        1 << ROOT_BITS,
        u64::from(sizes.chunks) << CHUNK_BITS,
        sizes.pieces.into(),
        u64::from(sizes.pieces) * u64::from(STEPS),
        1 << sizes.slot_bits,
        1 << (sizes.slot_bits - 2),
        u64::from(sizes.wide) * BUCKET_WORDS as u64,
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
        let slots = count(SLOTS, 1, 1 << FEWEST_BITS, 1 << MOST_BITS)?;
        count(SLOTS, slots.next_power_of_two().into(), 1, 1)?;
        count(PILOTS, u64::from(slots) / 4, 1, 1)?;
        let sizes = Sizes {
            // A vector's signed 32-bit index must reach every element.
            chunks: count(CHUNKS, CHUNK as u64, 0, 1 << ROOT_BITS)?,
            pieces: count(ROPES, 1, 1, u64::from(MOST / STEPS))?,
            slot_bits: slots.ilog2(),
            wide: count(WIDE, BUCKET_WORDS as u64, 1, u32::MAX.into())?,
        };
        count(MISSES, u64::from(sizes.pieces) * u64::from(STEPS), 1, 1)?;
        let columns = Columns {
            root: image.column(ROOT),
            chunks: image.column(CHUNKS),
            ropes: image.column(ROPES),
            misses: image.column(MISSES),
            slots: image.column(SLOTS),
            pilots: image.column(PILOTS),
            wide: image.column(WIDE),
        };
        let seed = Seed(image.section::<u64>(SEED).try_into().expect("there are four"));
        Ok(Self { image, columns, sizes, seed, family: PhantomData })
    }

    /// Bits of the number of a slot.
    pub fn slot_bits(&self) -> u32 {
        self.sizes.slot_bits
    }

    /// Number of buckets of longer keys.
    pub fn buckets(&self) -> u32 {
        self.sizes.wide
    }

    /// The seed that the hashes of keys follow from.
    pub fn seed(&self) -> [u64; 4] {
        self.seed.0
    }

    /// Whether a value leads somewhere; to a chunk only from the root.
    #[inline]
    fn admits_value(&self, value: u32, results: u64, from_root: bool) -> bool {
        match Value(value).says() {
            Says::NextHop(next_hop) => u64::from(next_hop.0) <= results,
            Says::Try(len, record) => {
                len.is_none_or(|len| len < WIDE_FROM) && record / STEPS < self.sizes.pieces
            }
            Says::Chunk(chunk) => from_root && chunk < self.sizes.chunks,
        }
    }

    /// Whether a record may say what to do where its length is in vain: the one after it of its piece, if
    /// any.
    fn admits_miss(&self, index: u64, value: u32, results: u64) -> bool {
        let goes_on = Value(value)
            .record()
            .is_none_or(|record| u64::from(record) == index + 1 && !record.is_multiple_of(STEPS));
        goes_on && self.admits_value(value, results, false)
    }

    /// Whether a word may be at its place in a bucket: a key and its length can be anything.
    fn admits_word(&self, place: usize, word: u64, results: u64) -> bool {
        // The values are halves of words, from one place on.
        (0..BUCKET_SLOTS)
            .filter(|slot| BUCKET_VALUES + slot / 2 == place)
            .all(|slot| self.admits_value(low(word >> (32 * (slot % 2))), results, false))
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
            Some(1) => None,
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
    const LAYOUT: u32 = 3;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        let table = Self::of_shape(image)?;
        for id in [ROOT, CHUNKS, ROPES, MISSES, SLOTS, WIDE] {
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
        match section {
            MISSES => self.admits_value(low(value), results, false),
            _ => (0..BUCKET_WORDS as u64).any(|index| self.admits_at(section, index, value, results)),
        }
    }

    #[inline]
    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        let place = usize::from(low(index).to_le_bytes()[0]) % BUCKET_WORDS;
        match section {
            ROOT => self.admits_value(low(value), results, true),
            CHUNKS => self.admits_value(low(value), results, false),
            ROPES => Rope(value).is_valid(A::BITS),
            MISSES => self.admits_miss(index, low(value), results),
            SLOTS => self.admits_value(low(value), results, false),
            // Any pilot leads to a slot.
            PILOTS => true,
            WIDE => self.admits_word(place, value, results),
            // What a table was built with stays.
            _ => false,
        }
    }
}
