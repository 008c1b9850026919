//! The sections of SAIL_M (section 4.3 of the paper) and what their elements say.
//!
//! The levels are those of SAIL_L, cut from the overlay of all FIBs: an element leads on if any FIB has
//! longer prefixes beneath it. So all FIBs share the bit maps and chunk ids, which say on which level a
//! lookup ends, and the next hop of an element is an array with one for each FIB, the paper's N\[i\]. Each
//! distinct array is kept once:
//!
//! ```text
//! bca16  u32 × 2^16            1 aaaaaaa…  ends here, with array a           (bit map, chunk id, array)
//!                              0 ccccccc…  go on in chunk c of level 24
//! bca24  uI × chunks×256       the same, with chunk c of level 32
//! …                            bca32, … bca120 for IPv6
//! a32    uI × chunks×256       the array                                      (a128 for IPv6)
//! n      uW × F × arrays       next hops of FIB 0 by array, of FIB 1, … of FIB F-1
//! fibs   u32                   F
//! ```
//!
//! The arrays lie side by side, so that what one FIB has lies together: a batch in one FIB touches no more
//! than that.
//!
//! `F` is the number of FIBs rounded up: room for FIBs to come. A slot without a FIB holds no route anywhere.
//! `I`, one for all levels, is the narrowest of 8, 16 and 32 bits that holds every array's and chunk's id and
//! the bit before it, `W` the narrowest that holds every next hop of every FIB. Chunks and arrays are
//! numbered from 1; chunk 0 and array 0 stay zero, which leads to no route.
//!
//! What was tried first is the paper's layout: BC16 and the bit map B24, chunk ids apart, and an array of F
//! next hops beside every element of levels 16, 24 and 32. The paper keeps BC16 and B24 on chip (2^16 × 17 +
//! 2^24 bits = 2.13 MB at most). Its lookup reads one place of large memory where this one reads two that are
//! smaller. On the real table of 2026 and variations of it that lack and change these shares of its prefixes,
//! in MB:
//!
//! ```text
//! FIBs   lack, change    distinct arrays    SAIL_L for each    paper's layout    this one
//!   4     5 %, 20 %              120,378               61.9              39.7        33.2
//!  12     5 %, 20 %              763,802              185.8             101.3        41.9
//!   4     1 %,  2 %               13,382               62.1              39.7        15.7
//!  12     1 %,  2 %               72,431              186.3             101.3        33.6
//! ```
//!
//! In prototypes side by side the paper's layout ran at 57, 42, 52 and 20 M/s, arrays kept once at 72, 44, 41
//! and 41. Keys were drawn by prefix and mixed over the FIBs, on a core of a busy Zen 4 with 32 MB of third
//! cache. The arrays side by side were level with one after the other for mixed keys and mostly ahead of it
//! for batches of one FIB.
//!
//! With hundreds of FIBs of which most are small the difference is no longer one of degree: an element of the
//! paper's has a next hop for each of them. The price is in updates and in the control plane. An update
//! writes an array; the paper's writes one next hop. The control plane has to know how many elements have
//! each array.

use std::marker::PhantomData;

use wirespeed_fib::Address;
use wirespeed_image::{Checked, Column, Image, ImageBuilder, ImageError, SectionId, Table, width_for};

use super::fibs::FibId;
pub(super) use crate::sail_l::layout::FIRST;
use crate::sail_l::{CHUNK, levels};

/// Set in an element of bca16 that ends a lookup; in the levels after it the top bit of their elements is.
pub const LEAF: u32 = 1 << 31;
/// Ids of arrays, that of array 0 included.
pub(super) const MAX_ARRAYS: u32 = LEAF;
/// Level 16.
pub const BCA16: SectionId = SectionId(0);

/// The elements of a level.
pub fn elements(level: usize) -> SectionId {
    id(level)
}

/// The next hops of the arrays.
pub fn next_hops<A: Address>() -> SectionId {
    id(levels::<A>())
}

/// The one number F.
pub(super) fn fibs<A: Address>() -> SectionId {
    id(levels::<A>() + 1)
}

fn id(at: usize) -> SectionId {
    SectionId(u16::try_from(at).expect("there are 17 sections at most"))
}

/// Number of sections that lookups read.
fn sections<A: Address>() -> usize {
    usize::from(fibs::<A>().0) + 1
}

/// Slots for so many FIBs: one or two as they are; beyond, a multiple of 4 and of about an eighth, for FIBs
/// to come.
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
    /// Bytes of an element past level 16.
    id_width: u32,
    /// The length F of an array.
    slots: usize,
    /// Number of arrays, head room included.
    arrays: usize,
    pub(super) bca16: Column,
    /// The elements of each level from 1 on.
    pub(super) deeper: Vec<Column>,
    pub(super) next_hops: Column,
    family: PhantomData<A>,
}

/// An empty image with room for that many chunks (chunk 0 included) in each level from 1 on, that many arrays
/// (array 0 included) and that many FIBs.
pub(super) fn allocate<A: Address>(
    capacities: &[u64],
    arrays: u64,
    slots: usize,
    width: usize,
    cap: Option<u64>,
) -> Result<Image, ImageError> {
    debug_assert_eq!(capacities.len(), levels::<A>() - 1);
    let id_width = id_width(capacities, arrays);
    let mut builder = ImageBuilder::new(SailMTable::<A>::KIND, SailMTable::<A>::LAYOUT)
        .section::<u32>("bca16", FIRST as u64);
    for (at, &chunks) in capacities.iter().enumerate() {
        let depth = 8 * (at + 3);
        let elements = chunks * CHUNK as u64;
        let name = if at + 1 < capacities.len() { "bca" } else { "a" };
        builder = builder.section_of_width(&format!("{name}{depth}"), id_width, elements);
    }
    // What overflows is refused all the same.
    let builder = builder.section_of_width("n", width, arrays.saturating_mul(slots as u64));
    let mut image = builder.section::<u32>("fibs", 1).build(cap)?;
    image.section_mut::<u32>(fibs::<A>())?[0] = u32::try_from(slots).unwrap_or(u32::MAX);
    Ok(image)
}

/// Bytes of an element past level 16.
pub(super) fn id_width(capacities: &[u64], arrays: u64) -> usize {
    // Level 24's chunks are in bca16, whose elements are of 32 bits whatever there is.
    let most = capacities.iter().skip(1).fold(arrays, |most, &chunks| most.max(chunks));
    width_for(2 * (most - 1))
}

/// The bit of an element of so many bytes that says that lookups end there.
pub(super) fn leaf(width: u32) -> u32 {
    if width == 0 { 0 } else { 1 << (8 * width.min(4) - 1) }
}

impl<A: Address> SailMTable<A> {
    /// The table of an image with all its sections; nonsense, but no panic, where they have not the shape.
    pub(super) fn new(image: Image) -> Self {
        let width = |section| image.width(section).unwrap_or(0);
        let (width, id_width, fibs) = (width(next_hops::<A>()), width(elements(1)), fibs::<A>());
        let slots = match image.width(fibs) {
            Some(4) => image.section::<u32>(fibs).first().copied().unwrap_or(0),
            _ => 0,
        };
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        let arrays = len(&image, next_hops::<A>()).checked_div(slots).unwrap_or(0);
        let deeper = (1..levels::<A>()).map(|level| image.column(elements(level))).collect();
        let (bca16, next_hops) = (image.column(BCA16), image.column(next_hops::<A>()));
        Self { image, width, id_width, slots, arrays, bca16, deeper, next_hops, family: PhantomData }
    }

    /// Bytes of a next hop: 1, 2 or 4.
    pub fn entry_width(&self) -> u32 {
        self.width
    }

    /// Bytes of an element past level 16: 1, 2 or 4.
    pub fn id_width(&self) -> u32 {
        self.id_width
    }

    /// Number of FIBs that there is room for; ids from here on have no route.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Number of next-hop arrays that there is room for.
    pub fn arrays(&self) -> usize {
        self.arrays
    }

    /// Number of chunks of a level from 1 on, chunk 0 and head room included.
    pub fn chunks(&self, level: usize) -> usize {
        len(&self.image, elements(level)) / CHUNK
    }

    /// Whether all sections are there with the lengths and widths that lookups count on.
    fn check_shape(&self) -> Result<(), ImageError> {
        let usage = self.image.memory_usage();
        let malformed = |what: String| Err(ImageError::Malformed(what));
        if (usage[0].width, usage[0].len) != (4, FIRST as u64) {
            return malformed("bca16 is not of 65,536 elements of 4 bytes".into());
        }
        if !(1..=FibId::COUNT).contains(&self.slots) || usage[usize::from(fibs::<A>().0)].len != 1 {
            return malformed(format!("room for {} FIBs", self.slots));
        }
        let next_hops = &usage[usize::from(next_hops::<A>().0)];
        let whole = self.arrays > 0 && (self.arrays * self.slots) as u64 == next_hops.len;
        if !whole || next_hops.width > 4 || self.arrays > MAX_ARRAYS as usize {
            return malformed(format!("{} next hops of {} FIBs", next_hops.len, self.slots));
        }
        for level in 1..levels::<A>() {
            let elements = &usage[usize::from(elements(level).0)];
            let whole = elements.len >= CHUNK as u64 && elements.len.is_multiple_of(CHUNK as u64);
            if elements.width != self.id_width || elements.width > 4 || !whole {
                return malformed(format!("section {}", elements.name));
            }
        }
        Ok(())
    }
}

/// Elements of a section, 0 where there is none of that kind.
fn len(image: &Image, section: SectionId) -> usize {
    match image.width(section) {
        Some(1) => image.section::<u8>(section).len(),
        Some(2) => image.section::<u16>(section).len(),
        Some(4) => image.section::<u32>(section).len(),
        _ => 0,
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
        // Attachments may follow.
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

/// The values that a section's elements may have: from `least` to `plain` and, with `flag`, up to `flagged`.
#[derive(Clone, Copy)]
struct Bounds {
    least: u64,
    plain: u64,
    flag: u64,
    flagged: u64,
}

impl Bounds {
    fn up_to(plain: u64) -> Self {
        Self { least: 0, plain, flag: 0, flagged: 0 }
    }

    fn admit(self, value: u64) -> bool {
        if value & self.flag == 0 {
            (self.least..=self.plain).contains(&value)
        } else {
            value ^ self.flag <= self.flagged
        }
    }
}

impl<A: Address> SailMTable<A> {
    /// The invariant that lookups rely on: ids are of chunks and arrays that exist, results within the count,
    /// and the number of FIBs stays.
    fn bounds(&self, section: SectionId, results: u64) -> Bounds {
        let array = self.arrays as u64 - 1;
        let link = |level, leaf: u32| Bounds {
            flag: leaf.into(),
            flagged: array,
            ..Bounds::up_to(self.chunks(level + 1) as u64 - 1)
        };
        match usize::from(section.0) {
            0 => link(0, LEAF),
            level if level + 1 < levels::<A>() => link(level, leaf(self.id_width)),
            level if level < levels::<A>() => Bounds::up_to(array),
            _ if section == next_hops::<A>() => Bounds::up_to(results),
            _ => Bounds { least: self.slots as u64, ..Bounds::up_to(self.slots as u64) },
        }
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{V4, V6};

    use super::*;

    #[test]
    fn sections_are_numbered_as_they_are_made() {
        fn names<A: Address>() {
            let image = allocate::<A>(&vec![2; levels::<A>() - 1], 1, 1, 1, None).unwrap();
            for level in 0..levels::<A>() {
                let name = if level + 1 < levels::<A>() { "bca" } else { "a" };
                assert_eq!(image.find(&format!("{name}{}", 8 * (level + 2))), Some(elements(level)));
            }
            assert_eq!((image.find("n"), image.find("fibs")), (Some(next_hops::<A>()), Some(fibs::<A>())));
            assert_eq!(image.sections(), sections::<A>());
        }
        names::<V4>();
        names::<V6>();
    }

    #[test]
    fn an_element_has_room_for_ids_and_a_bit() {
        assert_eq!(
            [1, 128, 129, 1 << 15, (1 << 15) + 1].map(|arrays| id_width(&[1 << 20, 2], arrays)),
            [1, 1, 2, 2, 4]
        );
        assert_eq!(id_width(&[2, 129], 1), 2);
        assert_eq!([1, 2, 4].map(leaf), [1 << 7, 1 << 15, LEAF]);
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
