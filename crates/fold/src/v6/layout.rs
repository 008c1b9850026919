//! The sections of an IPv6 table and what their elements say.
//!
//! An address is cut into strides ([`SHAPES`]). The first chooses an element of `t0`; each further one an
//! element of a chunk of 2^stride elements of the next section.
//!
//! ```text
//! t0 … t14  u64   words of elements of W bytes: below `base` the next hop, else chunk `element - base` of the next
//!                 section; the last section has next hops only
//! strides   u8    bits of each step, together 128
//! base      u32   what is added to the number of a chunk
//! w         u8, u16 or u32 × 1: an element of this section is as wide as those of the chunks, W
//! ```
//!
//! To the 32nd bit each chunk is its own and changes in place: these are few and large. Beneath, chunks of
//! equal content are one chunk. Chunks are numbered from 1, chunk 0 of each section stays zero. Sections are
//! of words of 8 bytes so that a patch writes several narrow elements at a time.
//!
//! With two-byte elements a chunk of 5 bits is one cache line. The real table of 2026 takes 2 MB in t0 (of
//! which lookups touch little), 5.5 MB in t1 and 2.2 MB in all others.

use wirespeed_fib::{V6, VectorLevel};
use wirespeed_image::{Checked, Column, Element, Image, ImageBuilder, ImageError, SectionId, Table, WORD};

/// The strides that are the fastest on a CPU.
pub const FASTEST: &[u8] = &[20, 12, 5, 5, 6, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8];
/// The strides that take the least memory for scattered prefixes.
pub const SMALLEST: &[u8] = &[16, 8, 8, 5, 5, 6, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8];
/// The strides that are the fastest on a GPU: every read costs the same 32 bytes there, so it is their number
/// that counts.
pub const ON_GPU: &[u8] = &[16, 16, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8];
/// The ways to cut an address. Each has a cut at bit 32 and one at bit 64, and strides of 8 from there.
pub const SHAPES: [&[u8]; 3] = [FASTEST, SMALLEST, ON_GPU];
/// Most steps of any shape.
pub const MOST_STEPS: usize = 16;
/// Bytes from which on a table is looked up in rounds of [`Rounds::Far`] with AVX2.
const FAR_FROM_AVX2: u64 = 13 << 20;
/// Bytes from which on a table is looked up in rounds of [`Rounds::Far`] with AVX-512.
const FAR_FROM_AVX512: u64 = 15 << 20;
/// Bits after which chunks are shared.
pub(crate) const SHARED_FROM: u8 = 32;

/// An element as it is stored: 2 or 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Two,
    Four,
}

impl Width {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// Number of values that an element can have.
    pub(crate) const fn values(self) -> u64 {
        1 << (8 * self.bytes())
    }
}

/// The keys of a batch that go through the steps together.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// Four vectors.
    Near,
    /// 128 keys, with what they read next prefetched: for tables that are larger than the caches nearby.
    Far,
}

/// A table of FOLD for IPv6, ready for lookups.
#[derive(Clone, Debug)]
pub struct FoldTableV6 {
    image: Image,
    pub(super) shape: &'static [u8],
    pub(super) width: Width,
    pub(super) base: u32,
    /// Number of chunks of each section, chunk 0 and head room included.
    chunks: Vec<u64>,
    /// The stride of each step, the bits before it, and its section.
    pub(super) steps: Vec<Level>,
}

/// What a lookup knows of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) stride: u8,
    pub(super) from: u8,
    pub(super) elements: Column,
}

/// The section of a step, one of [`MOST_STEPS`] at most.
pub fn section(step: usize) -> SectionId {
    SectionId(u16::try_from(step).expect("there are at most 16 steps"))
}

/// Bytes of a chunk of a step.
pub(crate) fn chunk_bytes(stride: u8, width: Width) -> usize {
    width.bytes() << stride
}

/// An empty image with room for so many chunks of each step from the second on, chunk 0 included.
pub(crate) fn allocate(
    shape: &[u8],
    chunks: &[u64],
    width: Width,
    base: u32,
    cap: Option<u64>,
) -> Result<Image, ImageError> {
    let mut builder = ImageBuilder::new(FoldTableV6::KIND, FoldTableV6::LAYOUT);
    for (step, &stride) in shape.iter().enumerate() {
        let pieces = step.checked_sub(1).map_or(1, |at| chunks[at]);
        builder =
            builder.section::<u64>(&format!("t{step}"), pieces * (chunk_bytes(stride, width) / WORD) as u64);
    }
    let mut image = builder
        .section::<u8>("strides", shape.len() as u64)
        .section::<u32>("base", 1)
        .section_of_width("w", width.bytes(), 1)
        .build(cap)?;
    image.section_mut::<u8>(section(shape.len()))?.copy_from_slice(shape);
    image.section_mut::<u32>(section(shape.len() + 1))?[0] = base;
    Ok(image)
}

impl FoldTableV6 {
    /// The table of an image, if its sections have the lengths and widths that lookups count on.
    pub(crate) fn of_shape(image: Image) -> Result<Self, ImageError> {
        let malformed = |what: &str| ImageError::Malformed(what.to_owned());
        let strides = image.attachment("strides").ok_or_else(|| malformed("no section strides"))?;
        let shape = SHAPES
            .into_iter()
            .find(|&shape| shape == strides)
            .ok_or_else(|| malformed("strides that no lookup goes by"))?;
        let usage = image.memory_usage();
        let own = usage.get(..shape.len() + 3).ok_or_else(|| malformed("sections are missing"))?;
        let (tables, own) = own.split_at(shape.len());
        if (own[0].name != "strides") || (own[1].width, own[1].len) != (4, 1) || own[2].len != 1 {
            return Err(malformed("the sections are not in order"));
        }
        let width = match own[2].width {
            2 => Width::Two,
            4 => Width::Four,
            _ => return Err(malformed("elements that are not of 2 or 4 bytes")),
        };
        let base = image.section::<u32>(section(shape.len() + 1))[0];
        let mut chunks = Vec::with_capacity(shape.len());
        for (step, (table, &stride)) in tables.iter().zip(shape).enumerate() {
            let words = (chunk_bytes(stride, width) / WORD) as u64;
            let pieces = table.len / words;
            // A vector's signed 32-bit index must reach every element.
            let reached = pieces << stride < 1 << 31;
            if table.width != 8
                || table.len != pieces * words
                || pieces == 0
                || !reached
                || step == 0 && pieces != 1
            {
                return Err(ImageError::Malformed(format!("section {}", table.name)));
            }
            chunks.push(pieces);
        }
        let mut from = 0;
        let level = |(step, &stride): (usize, &u8)| {
            from += stride;
            Level { stride, from: from - stride, elements: image.column(section(step)) }
        };
        let steps = shape.iter().enumerate().map(level).collect();
        Ok(Self { image, shape, width, base, chunks, steps })
    }

    /// The rounds that are the fastest with vectors of a level, as far as was measured.
    pub(super) fn rounds(&self, level: VectorLevel) -> Rounds {
        let from = match level {
            VectorLevel::Avx512 => FAR_FROM_AVX512,
            VectorLevel::Avx2 => FAR_FROM_AVX2,
            VectorLevel::Portable => return Rounds::Near,
        };
        if self.image.bytes() >= from { Rounds::Far } else { Rounds::Near }
    }

    /// Bytes of an element of a chunk: 2 or 4.
    pub fn entry_width(&self) -> usize {
        self.width.bytes()
    }

    /// Bits of each step.
    pub fn strides(&self) -> &[u8] {
        self.shape
    }

    /// The number that is added to that of a chunk: elements below it are next hops.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Whether an element of a step may have a value.
    #[inline]
    fn admits_element(&self, step: usize, value: u64, results: u64) -> bool {
        let base = u64::from(self.base);
        if value < base {
            value <= results
        } else {
            self.chunks.get(step + 1).is_some_and(|&chunks| value - base < chunks)
        }
    }

    fn first_bad<W: Element>(&self, step: usize, results: u64) -> Option<usize> {
        let elements: &[W] = bytemuck::cast_slice(self.image.section::<u64>(section(step)));
        // Most elements are next hops: a pass that finds only these, or nothing bad, runs at the speed of
        // memory.
        let (base, chunks) = (u64::from(self.base), self.chunks.get(step + 1).copied().unwrap_or(0));
        let bad = |value: u64| (value > results) & (value < base) | (value >= base + chunks);
        if !elements.iter().fold(false, |any, &value| any | bad(value.into())) {
            return None;
        }
        let per_word = WORD / self.width.bytes();
        elements
            .iter()
            .position(|&value| !self.admits_element(step, value.into(), results))
            .map(|at| at / per_word)
    }
}

impl Table for FoldTableV6 {
    const KIND: &'static str = "fold-v6";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        let table = Self::of_shape(image)?;
        let results = table.image.results();
        for step in 0..table.shape.len() {
            let bad = match table.width {
                Width::Two => table.first_bad::<u16>(step, results),
                Width::Four => table.first_bad::<u32>(step, results),
            };
            if let Some(index) = bad {
                return Err(ImageError::Malformed(format!("t{step}[{index}] leads nowhere")));
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
        let step = usize::from(section.0);
        let bits = 8 * self.width.bytes();
        step < self.shape.len()
            && (0..WORD / self.width.bytes()).all(|at| {
                self.admits_element(step, value >> (bits * at) & (u64::MAX >> (64 - bits)), results)
            })
    }
}

/// The bits of an address that a step takes: `stride` of them after the first `from`.
#[inline]
#[allow(clippy::cast_possible_truncation)] // a stride is 20 bits at most
pub(crate) fn bits(address: V6, from: u8, stride: u8) -> usize {
    (address.0 << from >> (128 - stride)) as usize
}
