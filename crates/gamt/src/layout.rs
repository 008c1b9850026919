//! The sections of a state-jump table (GAMT, section 3.1) and what their units say.
//!
//! ```text
//! strides     u8 × H          bits that each level reads
//! level1      u32 × 2^s1      one node
//! level2      u32 × nodes×2^s2, …  to levelH
//! next_hops   uW × slots      GAMT_S only: the next hop of each prefix
//!
//! unit        iiiiiiii iiiiiiii iiiiiiii jjjjjjjj
//!             jump 0:      a leaf; inf is the next hop (GAMT_T), or the prefix's slot in next_hops (GAMT_S)
//!             jump l > 0:  a child in level l, whose first unit is inf
//! ```
//!
//! These are the paper's rules 1 to 3. A unit takes 8 bytes, with 56 for inf, where a level has more than 2^24 units or
//! a leaf holds more than 2^24 - 1: the paper ends there. Of the paper's two-dimensional array each row is as long as
//! the widest level; here each level is a section of its own and as long as it has to be, head room included.
//!
//! A child lies in the level after its parent's, always: the jump of a unit says no more than that there is one. So the
//! keys of a batch stay in step, and the level that they read from is the same for all that are not done.

use std::marker::PhantomData;

use wirespeed_fib::Address;
use wirespeed_image::{Checked, Column, Element, Image, ImageBuilder, ImageError, SectionId, Table};

/// Bits of a unit below inf.
pub(crate) const JUMP_BITS: u32 = 8;
/// The largest inf of a unit of 4 bytes.
pub(crate) const MAX_NARROW: u64 = (1 << 24) - 1;
/// The section that says how many bits each level reads.
const STRIDES: SectionId = SectionId(0);
/// The widest level node: what fits the narrow inf.
pub(crate) const MAX_STRIDE: u8 = 24;

/// Where the next hop of a leaf is: [`InTrie`] or [`Separate`].
pub trait Placement: sealed::Sealed + Copy + Send + Sync + std::fmt::Debug + 'static {
    /// Whether leaves lead to a separate table of next hops.
    const SEPARATE: bool;
    /// The kinds of images for IPv4 and IPv6.
    const KINDS: [&'static str; 2];
}

/// Leaves hold next hops: the paper's GAMT_T.
#[derive(Clone, Copy, Debug)]
pub struct InTrie;

/// Leaves hold the slots of prefixes in a separate table of next hops: the paper's GAMT_S.
#[derive(Clone, Copy, Debug)]
pub struct Separate;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::InTrie {}
    impl Sealed for super::Separate {}
}

impl Placement for InTrie {
    const SEPARATE: bool = false;
    const KINDS: [&'static str; 2] = ["gamt-v4", "gamt-v6"];
}

impl Placement for Separate {
    const SEPARATE: bool = true;
    const KINDS: [&'static str; 2] = ["gamt-s-v4", "gamt-s-v6"];
}

/// A state-jump table, ready for lookups.
#[derive(Clone, Debug)]
pub struct GamtTable<A, P> {
    image: Image,
    pub(crate) levels: Vec<Level>,
    /// Bytes of a unit: 4 or 8.
    pub(crate) unit: u32,
    /// The separate table, with the width of its elements.
    pub(crate) next_hops: Option<(Column, u32)>,
    kind: PhantomData<(A, P)>,
}

/// A level as lookups see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// Where its units are.
    pub(crate) units: Column,
    /// The first bit that it reads.
    pub(crate) from: u8,
    /// How many bits it reads.
    pub(crate) stride: u8,
    /// Number of its units.
    pub(crate) len: u64,
}

/// The section of a level, counted from 0.
pub(crate) fn units(level: usize) -> SectionId {
    SectionId(u16::try_from(level + 1).expect("there are at most 128 levels"))
}

/// The section of the separate next hops.
pub(crate) fn next_hops(levels: usize) -> SectionId {
    units(levels)
}

/// An element of a leaf.
pub(crate) fn leaf(inf: u32) -> u64 {
    u64::from(inf) << JUMP_BITS
}

/// An element that leads to a child, in the level after `level`, counted from 0.
pub(crate) fn link(level: usize, inf: u32) -> u64 {
    // The paper counts levels from 1.
    leaf(inf) | (level as u64 + 2)
}

/// An empty image of levels with so many units each; of `slots` next hops of `width` bytes where they are separate.
pub(crate) fn allocate<A: Address, P: Placement>(
    strides: &[u8],
    lens: &[u64],
    unit: usize,
    slots: Option<(u64, usize)>,
    cap: Option<u64>,
) -> Result<Image, ImageError> {
    let kind = GamtTable::<A, P>::KIND;
    let mut builder =
        ImageBuilder::new(kind, GamtTable::<A, P>::LAYOUT).section::<u8>("strides", strides.len() as u64);
    for (level, &len) in (1..).zip(lens) {
        builder = builder.section_of_width(&format!("level{level}"), unit, len);
    }
    if let Some((slots, width)) = slots {
        builder = builder.section_of_width("next_hops", width, slots);
    }
    let mut image = builder.build(cap)?;
    image.section_mut::<u8>(STRIDES)?.copy_from_slice(strides);
    Ok(image)
}

impl<A: Address, P: Placement> GamtTable<A, P> {
    /// The table of an image whose shape is known to be right.
    pub(crate) fn new(image: Image) -> Self {
        let strides = image.section::<u8>(STRIDES);
        let usage = image.memory_usage();
        let mut from = 0;
        let levels = strides.iter().enumerate().map(|(level, &stride)| {
            let (units, len) = (image.column(units(level)), usage[level + 1].len);
            from += stride;
            Level { units, from: from - stride, stride, len }
        });
        let levels: Vec<_> = levels.collect();
        let next_hops = P::SEPARATE.then(|| {
            let section = next_hops(levels.len());
            (image.column(section), image.width(section).unwrap_or(0))
        });
        let unit = image.width(units(0)).unwrap_or(0);
        Self { image, levels, unit, next_hops, kind: PhantomData }
    }

    /// Bits that each level reads.
    pub fn strides(&self) -> impl ExactSizeIterator<Item = u8> + '_ {
        self.levels.iter().map(|level| level.stride)
    }

    /// Bytes of a unit: 4, or 8 where a table is past what the paper's units hold.
    pub fn unit_bytes(&self) -> u32 {
        self.unit
    }

    /// Whether all sections are there with the lengths and widths that lookups count on.
    fn check_shape(image: &Image) -> Result<(), ImageError> {
        let malformed = |what: String| Err(ImageError::Malformed(what));
        if image.width(STRIDES) != Some(1) {
            return malformed("no strides".into());
        }
        let strides = image.section::<u8>(STRIDES);
        let bits: u64 = strides.iter().map(|&stride| u64::from(stride)).sum();
        let bad = strides.iter().any(|stride| !(1..=MAX_STRIDE).contains(stride));
        if strides.is_empty() || bad || bits > u64::from(A::BITS) {
            return malformed(format!("strides {strides:?}"));
        }
        let needed = 1 + strides.len() + usize::from(P::SEPARATE);
        if image.sections() < needed {
            return malformed(format!("{} sections, {needed} are needed", image.sections()));
        }
        let usage = image.memory_usage();
        let width = usage[1].width;
        for (level, (&stride, section)) in strides.iter().zip(&usage[1..]).enumerate() {
            let most = if width == 4 { MAX_NARROW + 1 } else { 1 << 32 };
            let whole = section.len.is_multiple_of(1 << stride) && section.len <= most;
            let root = level > 0 || section.len == 1 << stride;
            if !matches!(width, 4 | 8) || section.width != width || !whole || !root {
                return malformed(format!("section {}", section.name));
            }
        }
        let separate = P::SEPARATE.then(|| &usage[needed - 1]);
        if separate.is_some_and(|slots| slots.len == 0 || slots.len > 1 << 32 || slots.width > 4) {
            return malformed("section next_hops".into());
        }
        Ok(())
    }

    /// What a leaf may hold at most.
    fn widest_leaf(&self, results: u64) -> u64 {
        if !P::SEPARATE {
            return results;
        }
        let usage = self.image.memory_usage();
        usage.get(self.levels.len() + 1).map_or(0, |slots| slots.len - 1)
    }

    /// Whether a unit of a level leads where a lookup may go.
    #[inline]
    fn admits_unit(&self, level: usize, value: u64, widest_leaf: u64) -> bool {
        let (jump, inf) = (value & ((1 << JUMP_BITS) - 1), value >> JUMP_BITS);
        if jump == 0 {
            return inf <= widest_leaf;
        }
        // Levels count from 1, children lie in the next one, nodes begin where they would if all were in use.
        let Some(child) = self.levels.get(level + 1) else { return false };
        jump == level as u64 + 2 && inf < child.len && inf.trailing_zeros() >= u32::from(child.stride)
    }

    fn first_bad<U: Element>(&self, level: usize, results: u64) -> Option<usize> {
        let widest = self.widest_leaf(results);
        let units = self.image.section::<U>(units(level));
        units.iter().position(|&unit| !self.admits_unit(level, unit.into(), widest))
    }
}

impl<A: Address, P: Placement> Table for GamtTable<A, P> {
    const KIND: &'static str = P::KINDS[(A::OCTETS != 4) as usize];
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        Self::check_shape(&image)?;
        let table = Self::new(image);
        let results = table.image.results();
        for level in 0..table.levels.len() {
            let bad = match table.unit {
                4 => table.first_bad::<u32>(level, results),
                _ => table.first_bad::<u64>(level, results),
            };
            if let Some(index) = bad {
                return Err(ImageError::Malformed(format!("level{}[{index}] leads nowhere", level + 1)));
            }
        }
        let section = next_hops(table.levels.len());
        let most = table.next_hops.and_then(|(_, width)| match width {
            1 => table.image.section::<u8>(section).iter().max().map(|&most| most.into()),
            2 => table.image.section::<u16>(section).iter().max().map(|&most| most.into()),
            _ => table.image.section::<u32>(section).iter().max().map(|&most| u64::from(most)),
        });
        match most {
            Some(most) if most > results => {
                Err(ImageError::Malformed(format!("a next hop of {most}, the largest is {results}")))
            }
            _ => Ok(table),
        }
    }

    fn image(&self) -> &Image {
        &self.image
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.image
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        let section = usize::from(section.0);
        match section.checked_sub(1) {
            Some(level) if level < self.levels.len() => {
                self.admits_unit(level, value, self.widest_leaf(results))
            }
            Some(level) => P::SEPARATE && level == self.levels.len() && value <= results,
            // The shape of a table stays.
            None => false,
        }
    }
}
