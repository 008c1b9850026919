//! The sections of SAIL_M (section 4.3 of the paper) and what their elements say.
//!
//! The levels are those of SAIL_L, cut from the overlay of all FIBs: an element leads on if any FIB has longer prefixes
//! beneath it. So all FIBs share the bit maps and chunk ids, which say on which level a lookup ends, and an element of a
//! next-hop array is itself an array with a next hop for each FIB, the paper's N\[i\]:
//!
//! ```text
//! bc16   u32 × 2^16               0: ends here; else the chunk of level 24 to go on in   (bit map and chunk id, BC)
//! n16    uW × 2^16 × F            next hop of FIB 0, of FIB 1, … of FIB F-1              (N16)
//! b24    1 bit × chunks×256       1: go on, the chunk is in c24; in words of 32           (B24)
//! c24    uI × chunks×256          chunk of the next level                                 (C24)
//! n24    uW × chunks×256 × F                                                              (N24)
//! …                               b32, c32, n32, … n120 for IPv6
//! n32    uW × chunks×256 × F      n128 for IPv6                                           (N32)
//! ```
//!
//! A lookup finds the element by bc16 and b24 alone, whatever its FIB, and reads one element of one next-hop array. The
//! paper keeps these two on chip, 2^16 × 17 + 2^24 bits = 2.13 MB at most for IPv4; here they are 0.26 MB and 32 bytes a
//! chunk (0.85 MB for the real table of 2026), small enough for the second cache, and only the one read past them
//! goes to large memory.
//!
//! `F`, the stride, is the number of FIBs rounded up: room for FIBs to come. A slot without a FIB holds no route
//! anywhere. `W` is the narrowest of 8, 16 and 32 bits that holds every next hop of every FIB; the next hop of an element
//! that leads on is not read and may be anything. Chunk ids start from 1; chunk 0 of each level stays zero, which leads to
//! no route.

use std::marker::PhantomData;

use wirespeed_fib::Address;
use wirespeed_image::{Checked, Element, Image, ImageBuilder, ImageError, SectionId, Table, width_for};

use super::fibs::FibId;
use crate::sail_l::{CHUNK, levels};

/// Elements of level 16.
pub(super) const FIRST: usize = 1 << 16;
/// Words of a chunk's bit map.
pub(super) const WORDS: usize = CHUNK / 32;
/// The chunk ids of level 16.
pub(super) const BC16: SectionId = SectionId(0);

/// The next-hop arrays of a level.
pub(super) fn next_hops<A: Address>(level: usize) -> SectionId {
    match level {
        0 => id(1),
        level if level + 1 < levels::<A>() => id(3 * level + 1),
        level => id(3 * level - 1),
    }
}

/// The bit map of a level from 1 to the last but one.
pub(super) fn bits(level: usize) -> SectionId {
    id(3 * level - 1)
}

/// The chunk ids of a level from 1 to the last but one.
pub(super) fn chunk_ids(level: usize) -> SectionId {
    id(3 * level)
}

fn id(at: usize) -> SectionId {
    SectionId(u16::try_from(at).expect("there are at most 42 sections"))
}

/// Number of sections that lookups read.
fn sections<A: Address>() -> usize {
    usize::from(next_hops::<A>(levels::<A>() - 1).0) + 1
}

/// Slots for so many FIBs: one or two as they are; beyond, a multiple of 4 and of about an eighth, for FIBs to come.
pub(super) fn slots_for(fibs: usize) -> usize {
    match fibs {
        0..=2 => fibs.max(1),
        _ => fibs.next_multiple_of((fibs / 8).next_power_of_two().max(4)).min(FibId::COUNT),
    }
}

/// The table of SAIL_M, ready for lookups in any of its FIBs.
#[derive(Clone, Debug)]
pub struct SailMTable<A> {
    image: Image,
    /// Bytes of a next hop.
    width: u32,
    /// The stride F.
    slots: usize,
    family: PhantomData<A>,
}

/// An empty image with room for that many chunks (chunk 0 included) in each level from 1 on, and that many FIBs.
pub(super) fn allocate<A: Address>(
    capacities: &[u64],
    slots: usize,
    width: usize,
    cap: Option<u64>,
) -> Result<Image, ImageError> {
    debug_assert_eq!(capacities.len(), levels::<A>() - 1);
    // What overflows is refused all the same.
    let next_hops = |elements: u64| elements.saturating_mul(slots as u64);
    let mut builder = ImageBuilder::new(SailMTable::<A>::KIND, SailMTable::<A>::LAYOUT)
        .section::<u32>("bc16", FIRST as u64)
        .section_of_width("n16", width, next_hops(FIRST as u64));
    for (at, &chunks) in capacities.iter().enumerate() {
        let depth = 8 * (at + 3);
        let elements = chunks * CHUNK as u64;
        if let Some(&beneath) = capacities.get(at + 1) {
            builder = builder.section::<u32>(&format!("b{depth}"), chunks * WORDS as u64).section_of_width(
                &format!("c{depth}"),
                width_for(beneath - 1),
                elements,
            );
        }
        builder = builder.section_of_width(&format!("n{depth}"), width, next_hops(elements));
    }
    builder.build(cap)
}

impl<A: Address> SailMTable<A> {
    /// The table of an image just compiled.
    pub(super) fn new(image: Image) -> Self {
        let width = image.width(next_hops::<A>(0)).unwrap_or(0);
        let mut table = Self { image, width, slots: 0, family: PhantomData };
        table.slots = table.len(next_hops::<A>(0)) / FIRST;
        table
    }

    /// Bytes of a next hop: 1, 2 or 4.
    pub fn entry_width(&self) -> u32 {
        self.width
    }

    /// Number of FIBs that there is room for; ids from here on have no route.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Elements of a section.
    fn len(&self, section: SectionId) -> usize {
        match self.image.width(section) {
            Some(1) => self.image.section::<u8>(section).len(),
            Some(2) => self.image.section::<u16>(section).len(),
            Some(4) => self.image.section::<u32>(section).len(),
            _ => 0,
        }
    }

    /// Number of chunks of a level from 1 on, head room included.
    fn chunks(&self, level: usize) -> usize {
        self.len(next_hops::<A>(level)) / self.slots / CHUNK
    }

    /// Whether all sections are there with the lengths and widths that lookups count on.
    fn check_shape(&self) -> Result<(), ImageError> {
        let usage = self.image.memory_usage();
        let malformed = |what: String| Err(ImageError::Malformed(what));
        // Attachments may follow.
        if usage.len() < sections::<A>() {
            return malformed(format!("{} sections, {} are needed", usage.len(), sections::<A>()));
        }
        if (usage[0].width, usage[0].len) != (4, FIRST as u64) {
            return malformed("bc16 is not of 65,536 elements of 4 bytes".into());
        }
        if !(1..=FibId::COUNT).contains(&self.slots) {
            return malformed(format!("room for {} FIBs", self.slots));
        }
        for level in 0..levels::<A>() {
            let next_hops = &usage[usize::from(next_hops::<A>(level).0)];
            let chunks = match level {
                0 => (FIRST / CHUNK) as u64,
                _ => self.chunks(level) as u64,
            };
            let elements = chunks * CHUNK as u64;
            let whole = chunks > 0 && next_hops.len == elements * self.slots as u64;
            if next_hops.width != self.width || self.width > 4 || !whole {
                return malformed(format!("section {}", next_hops.name));
            }
            if (1..levels::<A>() - 1).contains(&level) {
                let (bits, ids) =
                    (&usage[usize::from(bits(level).0)], &usage[usize::from(chunk_ids(level).0)]);
                if (bits.width, bits.len) != (4, chunks * WORDS as u64) {
                    return malformed(format!("section {}", bits.name));
                }
                if ids.width > 4 || ids.len != elements {
                    return malformed(format!("section {}", ids.name));
                }
            }
        }
        Ok(())
    }
}

impl<A: Address> Table for SailMTable<A> {
    const KIND: &'static str = match A::OCTETS {
        4 => "sail-m-v4",
        _ => "sail-m-v6",
    };
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        let table = Self::new(image);
        table.check_shape()?;
        let results = table.image.results();
        for (section, usage) in (0..).map(SectionId).zip(table.image.memory_usage()).take(sections::<A>()) {
            let most = table.most(section, results);
            let bad = match usage.width {
                1 => table.first_over::<u8>(section, most),
                2 => table.first_over::<u16>(section, most),
                _ => table.first_over::<u32>(section, most),
            };
            if let Some(index) = bad {
                return Err(ImageError::Malformed(format!("{}[{index}] leads nowhere", usage.name)));
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

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        usize::from(section.0) < sections::<A>() && value <= self.most(section, results)
    }
}

impl<A: Address> SailMTable<A> {
    /// The largest value that an element may have, which is all that lookups rely on: chunk ids are of chunks that exist,
    /// results within the count. A word of a bit map may be anything: an element that wrongly leads on leads to chunk 0.
    fn most(&self, section: SectionId, results: u64) -> u64 {
        let ids_of = |level| self.chunks(level) as u64 - 1;
        let inner = 1..levels::<A>() - 1;
        match usize::from(section.0) {
            0 => ids_of(1),
            at if at % 3 == 2 && inner.contains(&at.div_ceil(3)) => u64::from(u32::MAX),
            at if at % 3 == 0 && inner.contains(&(at / 3)) => ids_of(at / 3 + 1),
            _ => results,
        }
    }

    /// The first element of a section that is over `most`.
    fn first_over<T: Element>(&self, section: SectionId, most: u64) -> Option<usize> {
        let elements = self.image.section::<T>(section);
        // The largest element decides, and finding it runs at the speed of memory.
        if elements.iter().copied().max().is_none_or(|largest| largest.into() <= most) {
            return None;
        }
        elements.iter().position(|&value| value.into() > most)
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{V4, V6};

    use super::*;

    #[test]
    fn sections_are_numbered_as_they_are_made() {
        fn names<A: Address>() {
            let image = allocate::<A>(&vec![2; levels::<A>() - 1], 1, 1, None).unwrap();
            for level in 0..levels::<A>() {
                let depth = 8 * (level + 2);
                assert_eq!(image.find(&format!("n{depth}")), Some(next_hops::<A>(level)));
                if (1..levels::<A>() - 1).contains(&level) {
                    assert_eq!(image.find(&format!("b{depth}")), Some(bits(level)));
                    assert_eq!(image.find(&format!("c{depth}")), Some(chunk_ids(level)));
                }
            }
            assert_eq!(image.sections(), sections::<A>());
        }
        names::<V4>();
        names::<V6>();
    }

    #[test]
    fn room_for_fibs_is_close_to_their_number() {
        assert_eq!([0, 1, 2, 3, 4, 5, 12, 13].map(slots_for), [1, 1, 2, 4, 4, 8, 12, 16]);
        for fibs in 3..=FibId::COUNT {
            let slots = slots_for(fibs);
            assert!(slots >= fibs && slots <= FibId::COUNT && slots - fibs < (fibs / 4).max(4), "{fibs}");
        }
    }
}
