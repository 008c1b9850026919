//! The sections of SAIL_B (section 3 of the paper) and SAIL_U (section 4.1) and what their elements say.
//!
//! A bit map for each level says which prefixes of that length there are; the longest that covers an address
//! is found in bit maps alone, and its next hop with one read of an array that is as long as the level is
//! wide. SAIL_B has every level from 0 to 24. SAIL_U has 6, 12, 18 and 24, to which the shorter prefixes are
//! pushed by prefix expansion: those of one step lie in one aligned word of the bit map, so that an update
//! changes one word at most.
//!
//! ```text
//! b0 … b24   u64 × ⌈2^i/64⌉     bit p: there is a prefix p of that length; lowest bit first       (the paper's B)
//!                               in b24: a prefix of that length or longer                       (pivot pushing)
//! n0 … n23   uW × 2^i           the next hop of prefix p, where its bit is set                    (N)
//! n24        uP × 2^24          n         the next hop is n
//!                               top - c   prefixes longer than /24 follow: go on in chunk c of n32
//! n32        uW × chunks×256    the next hop of each address
//! ```
//!
//! (SAIL_U: b6, b12, b18, b24, n6, n12, n18, n24, n32.) `top` is the largest value of an element of n24. The
//! paper has negative numbers for chunk ids; counted down from the top they cost no bit, and one comparison,
//! with the number of chunks, tells them from next hops. A value that is taken for a chunk is one that
//! exists, so that lookups can follow whatever an image holds. Chunk ids start from 1; chunk 0 stays zero,
//! which leads to no route.
//!
//! `W` is the narrowest of 8, 16 and 32 bits that holds every next hop, `P` the narrowest that holds every
//! next hop and chunk. The paper counts on a default route. Here an address that no bit map knows has no
//! route, and neither has one whose next hop is 0. What lies under a clear bit, and chunks that nothing leads
//! to, is left as it was.
//!
//! For the real IPv4 table (1,042,325 prefixes, none longer than /24, one-byte elements) the image of SAIL_B
//! is 38 MB, 4.2 MB of it bit maps; that of SAIL_U 19 MB, 2.1 MB of it bit maps. With 79,563 next hops and
//! 25,499 chunks n24 takes four bytes an element, and they are 167 MB and 99 MB.

use std::fmt::Debug;
use std::marker::PhantomData;

use wirespeed_image::{Checked, Image, ImageBuilder, ImageError, SectionId, Table};

/// Addresses of a chunk.
pub const CHUNK: usize = crate::sail_l::CHUNK;

/// The pivot level, the last that has a bit map.
pub const PIVOT: u8 = 24;
/// Most chunks there can be, chunk 0 included: one for each element of the pivot level.
pub(crate) const MAX_CHUNKS: u64 = (1 << PIVOT) + 1;
/// Most levels that a variant has.
pub const MOST_LEVELS: usize = 25;

/// The levels that have a bit map and a next-hop array: [`EveryLength`] or [`EverySixth`].
pub trait Levels: sealed::Sealed + Copy + Debug + Send + Sync + 'static {
    /// The engine's name.
    const NAME: &'static str;
    /// The kind of its images.
    const KIND: &'static str;
    /// The levels, ascending. The last is 24, the one before it past 16: what is pushed to the last then
    /// differs in one octet.
    const LEVELS: &'static [u8];
}

/// The levels of SAIL_B: 0, 1, 2 … 24.
#[derive(Clone, Copy, Debug)]
pub struct EveryLength;

/// The levels of SAIL_U: 6, 12, 18 and 24.
#[derive(Clone, Copy, Debug)]
pub struct EverySixth;

mod sealed {
    #[allow(unreachable_pub)] // so that nobody else can name it
    pub trait Sealed {}

    impl Sealed for super::EveryLength {}
    impl Sealed for super::EverySixth {}
}

impl Levels for EveryLength {
    const NAME: &'static str = "sail-b";
    const KIND: &'static str = "sail-b-v4";
    const LEVELS: &'static [u8] =
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, PIVOT];
}

impl Levels for EverySixth {
    const NAME: &'static str = "sail-u";
    const KIND: &'static str = "sail-u-v4";
    const LEVELS: &'static [u8] = &[6, 12, 18, PIVOT];
}

/// The place of the pivot level among the levels.
pub const fn pivot<L: Levels>() -> usize {
    L::LEVELS.len() - 1
}

/// The bit map of a level, which is given by its place in [`Levels::LEVELS`].
pub fn bits(at: usize) -> SectionId {
    id(at)
}

/// The next-hop array of a level.
pub fn next_hops<L: Levels>(at: usize) -> SectionId {
    id(L::LEVELS.len() + at)
}

/// The chunks.
pub fn long<L: Levels>() -> SectionId {
    id(2 * L::LEVELS.len())
}

fn id(at: usize) -> SectionId {
    SectionId(u16::try_from(at).expect("there are at most 51 sections"))
}

/// Whether the paper has this section of an image of `L` in on-chip memory: the bit maps.
pub(crate) fn is_on_chip<L: Levels>(section: SectionId) -> bool {
    usize::from(section.0) < L::LEVELS.len()
}

/// Words of the bit map of a level.
pub(crate) fn words(level: u8) -> usize {
    (1usize << level).div_ceil(64)
}

/// The largest value of an element of so many bytes, of which there are at most 4.
pub(crate) const fn top(width: usize) -> u32 {
    match width {
        1 => 0xff,
        2 => 0xffff,
        _ => u32::MAX,
    }
}

/// A table of [`SailB`](crate::SailB), ready for lookups.
pub type SailBTable = SplitTable<EveryLength>;
/// A table of [`SailU`](crate::SailU), ready for lookups.
pub type SailUTable = SplitTable<EverySixth>;

/// A table of SAIL_B or SAIL_U.
#[derive(Clone, Debug)]
pub struct SplitTable<L> {
    image: Image,
    levels: PhantomData<L>,
}

/// An empty image with room for so many chunks, chunk 0 included.
pub(crate) fn allocate<L: Levels>(
    chunks: u64,
    width: usize,
    pivot_width: usize,
    cap: Option<u64>,
) -> Result<Image, ImageError> {
    let mut builder = ImageBuilder::new(L::KIND, SplitTable::<L>::LAYOUT);
    for &level in L::LEVELS {
        builder = builder.section::<u64>(&format!("b{level}"), words(level) as u64);
    }
    for &level in L::LEVELS {
        let width = if level == PIVOT { pivot_width } else { width };
        builder = builder.section_of_width(&format!("n{level}"), width, 1 << level);
    }
    builder.section_of_width("n32", width, chunks * CHUNK as u64).build(cap)
}

impl<L: Levels> SplitTable<L> {
    /// The table of an image just compiled.
    pub(crate) fn new(image: Image) -> Self {
        Self { image, levels: PhantomData }
    }

    /// Bytes of a next hop in n32 and in each array of a level but 24: 1, 2 or 4.
    pub fn entry_width(&self) -> u32 {
        self.image.width(long::<L>()).unwrap_or(0)
    }

    /// Bytes of an element of n24: 1, 2 or 4.
    pub fn pivot_width(&self) -> u32 {
        self.image.width(next_hops::<L>(pivot::<L>())).unwrap_or(0)
    }

    /// Number of chunks, head room included.
    pub fn chunks(&self) -> u64 {
        let len = match self.entry_width() {
            1 => self.image.section::<u8>(long::<L>()).len(),
            2 => self.image.section::<u16>(long::<L>()).len(),
            _ => self.image.section::<u32>(long::<L>()).len(),
        };
        (len / CHUNK) as u64
    }

    /// Whether all sections are there with the lengths and widths that lookups count on.
    fn check_shape(&self) -> Result<(), ImageError> {
        let usage = self.image.memory_usage();
        let needed = 2 * L::LEVELS.len() + 1;
        // Attachments may follow.
        if usage.len() < needed {
            return Err(ImageError::Malformed(format!("{} sections, {needed} are needed", usage.len())));
        }
        let width = usage[needed - 1].width;
        for (at, &level) in L::LEVELS.iter().enumerate() {
            let map = &usage[usize::from(bits(at).0)];
            if (map.width, map.len) != (8, words(level) as u64) {
                return Err(ImageError::Malformed(format!("section {}", map.name)));
            }
            let array = &usage[usize::from(next_hops::<L>(at).0)];
            let of_width = array.width == width || level == PIVOT && (width..=4).contains(&array.width);
            if !of_width || array.len != 1 << level {
                return Err(ImageError::Malformed(format!("section {}", array.name)));
            }
        }
        let chunks = &usage[needed - 1];
        let whole = chunks.len >= CHUNK as u64 && chunks.len.is_multiple_of(CHUNK as u64);
        if width > 4 || !whole || chunks.len / CHUNK as u64 > MAX_CHUNKS {
            return Err(ImageError::Malformed(format!("section {}", chunks.name)));
        }
        Ok(())
    }
}

impl<L: Levels> Table for SplitTable<L> {
    const KIND: &'static str = L::KIND;
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        let table = Self::new(image);
        table.check_shape()?;
        for at in usize::from(next_hops::<L>(0).0)..=usize::from(long::<L>().0) {
            let bounds = table.bounds(id(at), table.image.results());
            table.image.check_elements(id(at), |value| bounds.admit(value))?;
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
        section <= long::<L>() && self.bounds(section, results).admit(value)
    }
}

/// The values that a section's elements may have: up to `upto`, and from `from` on.
#[derive(Clone, Copy)]
struct Bounds {
    upto: u64,
    from: u64,
}

impl Bounds {
    #[inline]
    fn admit(self, value: u64) -> bool {
        value <= self.upto || value >= self.from
    }
}

impl<L: Levels> SplitTable<L> {
    /// The invariant of a table: results are within the count, chunks are there. A bit map may hold anything:
    /// under a bit that is set for nothing there is a next hop all the same.
    fn bounds(&self, section: SectionId, results: u64) -> Bounds {
        if is_on_chip::<L>(section) {
            Bounds { upto: u64::MAX, from: 0 }
        } else if section == next_hops::<L>(pivot::<L>()) {
            let top = u64::from(top(self.pivot_width() as usize));
            Bounds { upto: results, from: (top + 1).saturating_sub(self.chunks()) }
        } else {
            Bounds { upto: results, from: u64::MAX }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_as_the_layout_counts_on() {
        fn check<L: Levels>() {
            assert!(L::LEVELS.is_sorted() && L::LEVELS.len() <= MOST_LEVELS);
            assert_eq!(L::LEVELS.last(), Some(&PIVOT));
            assert!(L::LEVELS[L::LEVELS.len() - 2] >= 16);
        }
        check::<EveryLength>();
        check::<EverySixth>();
    }

    /// An image of SAIL_U for the widths and 3 chunks, with one section of another width and length.
    fn image(width: usize, pivot_width: usize, other: Option<(&str, usize, u64)>) -> Image {
        let sections = [("b6", 8, 1), ("b12", 8, 1 << 6), ("b18", 8, 1 << 12), ("b24", 8, 1 << 18)]
            .into_iter()
            .chain([("n6", width, 1 << 6), ("n12", width, 1 << 12), ("n18", width, 1 << 18)])
            .chain([("n24", pivot_width, 1 << 24), ("n32", width, 3 * 256)]);
        let mut builder = ImageBuilder::new("sail-u-v4", 1);
        for section in sections {
            let (name, width, len) = other.filter(|other| other.0 == section.0).unwrap_or(section);
            builder = builder.section_of_width(name, width, len);
        }
        builder.build(None).unwrap()
    }

    #[test]
    fn images_of_another_shape_are_refused() {
        for (width, pivot_width) in [(1, 1), (1, 2), (2, 4), (4, 4)] {
            assert!(SailUTable::from_image(image(width, pivot_width, None)).is_ok());
        }
        assert!(SailUTable::from_image(image(2, 1, None)).is_err(), "n24 is narrower than the others");
        assert!(SailUTable::from_image(image(8, 8, None)).is_err());
        let others = [
            ("b6", 4, 1),
            ("b6", 8, 0),
            ("b24", 8, (1 << 18) - 1),
            ("n6", 2, 1 << 6),
            ("n18", 1, 1 << 17),
            ("n24", 8, 1 << 24),
            ("n24", 1, (1 << 24) - 1),
            ("n32", 1, 0),
            ("n32", 1, 257),
            ("n32", 2, 256),
            ("n32", 1, (MAX_CHUNKS + 1) * 256),
        ];
        for other in others {
            let refused = SailUTable::from_image(image(1, 1, Some(other)));
            assert!(matches!(refused, Err(ImageError::Malformed(_))), "{other:?}");
        }
    }

    #[test]
    fn every_value_of_the_pivot_level_is_a_result_or_a_chunk() {
        let table = SailUTable::new(image(1, 1, None));
        let n24 = next_hops::<EverySixth>(pivot::<EverySixth>());
        let admitted: Vec<u64> = (0..=255).filter(|&value| table.admits(n24, value, 2)).collect();
        assert_eq!(admitted, [0, 1, 2, 253, 254, 255]);
        assert!((0..=255).all(|value| table.admits(n24, value, 252)));
        assert!(!table.admits(long::<EverySixth>(), 255, 2), "chunks lead nowhere");
    }
}
