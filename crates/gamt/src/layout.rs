//! The sections of a state-jump table (GAMT, section 3.1) and what their units say.
//!
//! ```text
//! strides     u8 × H          bits that each level reads
//! bases       u32 × H         narrow units only: the first value that leads on
//! level1      uW × 2^s1       one node
//! level2      uW × nodes×2^s2, …  to levelH
//! next_hops   uW × slots      GAMT_S only: the next hop of each prefix
//!
//! unit        iiiiiiii iiiiiiii iiiiiiii jjjjjjjj
//!             jump 0:      a leaf; inf is the next hop (GAMT_T), or the prefix's slot in next_hops (GAMT_S)
//!             jump l > 0:  a child in level l, whose first unit is inf
//! ```
//!
//! These are the paper's rules 1 to 3. A unit takes 8 bytes, with 56 for inf, where the level below has more
//! than 2^24 units or a leaf holds more than 2^24 - 1: the paper ends there. Of the paper's two-dimensional
//! array each row is as long as the widest level; here each level is a section of its own and as long as it
//! has to be, head room included.
//!
//! A child lies in the level after its parent's, always: the jump of a unit says no more than that there is
//! one. So the keys of a batch stay in step, and the level that they read from is the same for all that are
//! not done.
//!
//! It also means that a unit need not say which level it leads to. Where strides are left to us, a level
//! takes **narrow units** of 1 or 2 bytes if they hold what it has: values below the level's base are leaves,
//! from there on they count the nodes of the next level. The base lies as high as the room for nodes allows,
//! and leaves next hops the rest. On the real IPv4 table of 2026 that makes 5 MB of 18: the last level, by
//! far the widest, holds next hops alone.

use std::marker::PhantomData;

use wirespeed_fib::Address;
use wirespeed_image::{Checked, Column, Image, ImageBuilder, ImageError, SectionId, Table};

use crate::code::JUMP;
pub use crate::code::{Code, JUMP_BITS};
use crate::plan::PlannedLevel;
use crate::strides::MAX_STRIDE;
/// The section that says how many bits each level reads.
const STRIDES: SectionId = SectionId(0);
/// The section that says from where on narrow units lead on.
const BASES: SectionId = SectionId(1);
/// Sections before those of the levels.
const BEFORE: u16 = 2;

/// The place of the next hop of a leaf: [`InTrie`] or [`Separate`].
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
    /// The separate table, with the width of its elements.
    pub(crate) next_hops: Option<(Column, u32)>,
    /// Number of its elements, found once: each write of a patch is held against it.
    slots: u64,
    /// The largest next hop that every level can hold.
    widest: u64,
    kind: PhantomData<(A, P)>,
}

/// A level as lookups see it.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The column of its units.
    pub(crate) units: Column,
    /// The first bit that it reads.
    pub from: u8,
    /// The number of bits that it reads.
    pub stride: u8,
    /// The number of its units.
    pub len: u64,
    /// The code of its units.
    pub code: Code,
}

/// The section of a level, counted from 0.
pub fn units(level: usize) -> SectionId {
    SectionId(BEFORE + u16::try_from(level).expect("there are at most 128 levels"))
}

/// The section of the separate next hops.
pub fn next_hops(levels: usize) -> SectionId {
    units(levels)
}

/// An empty image of levels as planned, and of `slots` next hops of `width` bytes where they are separate.
pub(crate) fn allocate<A: Address, P: Placement>(
    levels: &[PlannedLevel],
    slots: Option<(u64, usize)>,
    cap: Option<u64>,
) -> Result<Image, ImageError> {
    let kind = GamtTable::<A, P>::KIND;
    let count = levels.len() as u64;
    let mut builder = ImageBuilder::new(kind, GamtTable::<A, P>::LAYOUT)
        .section::<u8>("strides", count)
        .section::<u32>("bases", count);
    for (number, level) in (1..).zip(levels) {
        let (units, width) = (level.units() as u64, level.code.width() as usize);
        builder = builder.section_of_width(&format!("level{number}"), width, units);
    }
    if let Some((slots, width)) = slots {
        builder = builder.section_of_width("next_hops", width, slots);
    }
    let mut image = builder.build(cap)?;
    for (to, level) in image.section_mut::<u8>(STRIDES)?.iter_mut().zip(levels) {
        *to = level.stride;
    }
    for (to, level) in image.section_mut::<u32>(BASES)?.iter_mut().zip(levels) {
        *to = level.code.base();
    }
    Ok(image)
}

impl<A: Address, P: Placement> GamtTable<A, P> {
    /// The table of an image whose shape is known to be right.
    pub(crate) fn new(image: Image) -> Self {
        let strides = image.section::<u8>(STRIDES);
        let bases = image.section::<u32>(BASES);
        let usage = &image.memory_usage()[usize::from(BEFORE)..];
        let mut from = 0;
        let levels = strides.iter().enumerate().map(|(level, &stride)| {
            let (units, len, width) = (image.column(units(level)), usage[level].len, usage[level].width);
            from += stride;
            let code = match bases[level] {
                0 => Code::paper(width, level),
                base => Code::Narrow { width, base, below: strides.get(level + 1).copied().unwrap_or(0) },
            };
            Level { units, from: from - stride, stride, len, code }
        });
        let levels: Vec<_> = levels.collect();
        let next_hops = P::SEPARATE.then(|| {
            let section = next_hops(levels.len());
            (image.column(section), image.width(section).unwrap_or(0))
        });
        let slots = next_hops.and(usage.get(levels.len())).map_or(0, |slots| slots.len);
        // A next hop has 32 bits, whatever an image states.
        let widest = levels.iter().map(|level| level.code.widest()).fold(u32::MAX.into(), u64::min);
        Self { image, levels, next_hops, slots, widest, kind: PhantomData }
    }

    /// The levels, from the first on.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Bits that each level reads.
    pub fn strides(&self) -> impl ExactSizeIterator<Item = u8> + '_ {
        self.levels.iter().map(|level| level.stride)
    }

    /// Bytes of a unit of each level: the paper's 4; 8 where they don't do; 1 or 2 where these will, and
    /// strides were left to us.
    pub fn unit_bytes(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.levels.iter().map(|level| level.code.width())
    }

    /// Whether all sections are there with the lengths and widths that lookups count on.
    fn check_shape(image: &Image) -> Result<(), ImageError> {
        let malformed = |what: String| Err(ImageError::Malformed(what));
        if image.width(STRIDES) != Some(1) || image.width(BASES) != Some(4) {
            return malformed("no strides or bases".into());
        }
        let strides = image.section::<u8>(STRIDES);
        let bits: u64 = strides.iter().map(|&stride| u64::from(stride)).sum();
        let bad = strides.iter().any(|stride| !(1..=MAX_STRIDE).contains(stride));
        if strides.is_empty() || bad || bits > u64::from(A::BITS) {
            return malformed(format!("strides {strides:?}"));
        }
        let bases = image.section::<u32>(BASES);
        if bases.len() != strides.len() {
            return malformed(format!("{} strides and {} bases", strides.len(), bases.len()));
        }
        let needed = usize::from(BEFORE) + strides.len() + usize::from(P::SEPARATE);
        if image.sections() < needed {
            return malformed(format!("{} sections, {needed} are needed", image.sections()));
        }
        let usage = image.memory_usage();
        for (level, (&stride, section)) in strides.iter().zip(&usage[usize::from(BEFORE)..]).enumerate() {
            let whole = section.len.is_multiple_of(1 << stride) && section.len <= 1 << 32;
            let root = level > 0 || section.len == 1 << stride;
            // A base lies within what a unit holds, or right after it.
            let code = match bases[level] {
                0 => section.width >= 4,
                base => section.width <= 2 && base <= 1 << (8 * section.width),
            };
            if !whole || !root || !code {
                return malformed(format!("section {}", section.name));
            }
        }
        let separate = P::SEPARATE.then(|| &usage[needed - 1]);
        if separate.is_some_and(|slots| slots.len == 0 || slots.len > 1 << 32 || slots.width > 4) {
            return malformed("section next_hops".into());
        }
        Ok(())
    }

    /// Bytes that hold every next hop that can be in this table, now or by a patch: 1, 2 or 4.
    pub fn entry_width(&self) -> u32 {
        match self.next_hops {
            Some((_, width)) => width,
            None if self.widest <= u8::MAX.into() => 1,
            None if self.widest <= u16::MAX.into() => 2,
            None => 4,
        }
    }

    /// The largest number that a leaf may hold, the same for all levels.
    fn widest_leaf(&self, results: u64) -> u64 {
        if P::SEPARATE { self.slots - 1 } else { results.min(self.widest) }
    }

    /// Whether a unit of a level leads where a lookup may go.
    #[inline]
    fn admits_unit(&self, level: usize, value: u64, widest_leaf: u64) -> bool {
        let code = self.levels[level].code;
        let (leads_on, to) = code.read(value);
        if !leads_on {
            return to <= widest_leaf;
        }
        // Nodes begin where they would if all were in use, and a jump is to the next level.
        let Some(below) = self.levels.get(level + 1) else { return false };
        let whole = to < below.len && to.trailing_zeros() >= u32::from(below.stride);
        let jump = match code {
            Code::Paper { jump, .. } => value & JUMP == u64::from(jump),
            Code::Narrow { .. } => true,
        };
        whole && jump
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
        let widest = table.widest_leaf(results);
        for level in 0..table.levels.len() {
            table.image.check_elements(units(level), |value| table.admits_unit(level, value, widest))?;
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
        match section.0.checked_sub(BEFORE).map(usize::from) {
            Some(level) if level < self.levels.len() => {
                self.admits_unit(level, value, self.widest_leaf(results))
            }
            Some(level) => P::SEPARATE && level == self.levels.len() && value <= results,
            // The shape of a table stays.
            None => false,
        }
    }
}
