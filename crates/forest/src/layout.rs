//! The sections of a forest and the meaning of their elements.
//!
//! An address is cut into strides of 4 or 8 bits, all of one length. A chunk has a cell for each value of a
//! stride:
//!
//! ```text
//! cells   uC × 2^stride × chunks   the longest route that ends in this stride, as its next hop + 1 (0: none),
//!                                  and the chunk beneath (0: none)
//! roots   uC × tables              the same for each table before its first stride: the default route
//! stride  u8 × 1
//!
//! C = 32 (narrow): 16 bits of route, 16 bits of chunk above them;  C = 64 (wide): 32 and 32 bits
//! ```
//!
//! A lookup goes from chunk to chunk and keeps the last route. A route to next hop 0 hides the routes that
//! cover it, so it is not the same as no route. Routes are not pushed to
//! longer prefixes (leaf pushing), so a chunk depends only on the routes beneath it: tables that are alike
//! share chunks whatever covers them, and a change writes one chunk for each stride of its prefix. Chunks are
//! numbered from 1; chunk 0 stays zero. A table number that has no table has a root of 0.

use std::marker::PhantomData;

use wirespeed_fib::Address;
use wirespeed_image::{Checked, Column, Element, Image, ImageBuilder, ImageError, SectionId, Table};

/// The cells of all chunks.
pub const CELLS: SectionId = SectionId(0);
/// The cell above the first chunk of each table.
pub const ROOTS: SectionId = SectionId(1);
/// The one stride.
const STRIDE: SectionId = SectionId(2);
/// The strides that there are, in bits.
pub const STRIDES: [u8; 2] = [4, 8];
/// Cells end here: a vector's signed 32-bit index must reach each half of a wide cell.
pub const MOST_CELLS: u64 = 1 << 30;

/// A cell: a route, as its next hop + 1, and a chunk; 0 for none.
pub trait Cell: Element {
    /// The most that either part can hold.
    const MOST: u32;

    /// The next hop + 1 of the route.
    fn route(self) -> u32;

    /// The chunk beneath.
    fn chunk(self) -> u32;

    /// A cell of these parts, each at most [`MOST`](Self::MOST), as a patch writes it.
    fn of(route: u32, chunk: u32) -> u64 {
        u64::from(route) | u64::from(chunk) << (4 * size_of::<Self>())
    }
}

impl Cell for u32 {
    const MOST: u32 = 0xffff;

    #[inline(always)]
    fn route(self) -> u32 {
        self & 0xffff
    }

    #[inline(always)]
    fn chunk(self) -> u32 {
        self >> 16
    }
}

impl Cell for u64 {
    const MOST: u32 = u32::MAX;

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the lower half
    fn route(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // 32 bits are left
    fn chunk(self) -> u32 {
        (self >> 32) as u32
    }
}

/// The width of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// 4 bytes.
    Narrow,
    /// 8 bytes.
    Wide,
}

impl Width {
    /// The narrowest for chunks and next hops up to these.
    pub(crate) fn for_up_to(chunks: u32, next_hop: u32) -> Self {
        if chunks.max(next_hop.saturating_add(1)) <= u32::MOST { Self::Narrow } else { Self::Wide }
    }

    /// Bytes of a cell.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Narrow => 4,
            Self::Wide => 8,
        }
    }

    /// The largest next hop that a cell can hold.
    pub(crate) fn most(self) -> u32 {
        match self {
            Self::Narrow => u32::MOST - 1,
            Self::Wide => u64::MOST - 1,
        }
    }
}

/// The compiled tables of a forest, ready for lookups in any of them. Lookups that name no table are in
/// table 0.
#[derive(Clone, Debug)]
pub struct ForestTable<A> {
    image: Image,
    pub(crate) width: Width,
    pub(crate) stride: u8,
    /// Number of chunks, chunk 0 and head room included.
    pub(crate) chunks: u64,
    /// Number of tables, head room included.
    pub(crate) tables: u64,
    pub(crate) cells: Column,
    pub(crate) roots: Column,
    family: PhantomData<A>,
}

/// An empty image with room for so many chunks, chunk 0 included, and tables.
pub(crate) fn allocate<A: Address>(
    (stride, width): (u8, Width),
    chunks: u64,
    tables: u64,
    cap: Option<u64>,
) -> Result<Image, ImageError> {
    let mut image = ImageBuilder::new(ForestTable::<A>::KIND, ForestTable::<A>::LAYOUT)
        .section_of_width("cells", width.bytes(), chunks << stride)
        .section_of_width("roots", width.bytes(), tables)
        .section::<u8>("stride", 1)
        .build(cap)?;
    image.section_mut::<u8>(STRIDE)?[0] = stride;
    Ok(image)
}

impl<A: Address> ForestTable<A> {
    /// The table of an image with the right sections, whose cells are not checked yet.
    pub(crate) fn of_shape(image: Image) -> Result<Self, ImageError> {
        let malformed = |what: &str| Err(ImageError::Malformed(what.to_owned()));
        let usage = image.memory_usage();
        let Some([cells, roots, stride]) = usage.first_chunk() else {
            return malformed("sections are missing");
        };
        if (&*cells.name, &*roots.name, &*stride.name) != ("cells", "roots", "stride") {
            return malformed("the sections are not in order");
        }
        let width = match (cells.width, roots.width) {
            (4, 4) => Width::Narrow,
            (8, 8) => Width::Wide,
            _ => return malformed("cells that are not of 4 or 8 bytes"),
        };
        if (stride.width, stride.len) != (1, 1) {
            return malformed("section stride");
        }
        let bits = image.section::<u8>(STRIDE)[0];
        if !STRIDES.contains(&bits) {
            return malformed("a stride that is not 4 or 8");
        }
        let chunks = cells.len >> bits;
        if chunks << bits != cells.len || chunks == 0 || roots.len == 0 || cells.len > MOST_CELLS {
            return malformed("section cells");
        }
        let (tables, columns) = (roots.len, (image.column(CELLS), image.column(ROOTS)));
        let (cells, roots) = columns;
        Ok(Self { image, width, stride: bits, chunks, tables, cells, roots, family: PhantomData })
    }

    /// Bytes of a cell: 4 or 8.
    pub fn cell_width(&self) -> usize {
        self.width.bytes()
    }

    /// Bits of an address that each step of a lookup takes.
    pub fn stride(&self) -> u8 {
        self.stride
    }

    fn admits_cell(&self, route: u32, chunk: u32, results: u64) -> bool {
        u64::from(route) <= results + 1 && u64::from(chunk) < self.chunks
    }

    fn first_bad<C: Cell>(&self, section: SectionId) -> Option<usize> {
        let results = self.image.results();
        let is_bad = |cell: &C| !self.admits_cell(cell.route(), cell.chunk(), results);
        let cells = self.image.section::<C>(section);
        // A chunk with cells in chunk 0 would not end lookups that lead nowhere.
        let zero = if section == CELLS { 1 << self.stride } else { 0 };
        let in_zero = cells[..zero].iter().position(|&cell| cell.into() != 0u64);
        in_zero.or_else(|| cells.iter().position(is_bad))
    }
}

impl<A: Address> Table for ForestTable<A> {
    const KIND: &'static str = match A::BITS {
        32 => "forest-v4",
        _ => "forest-v6",
    };
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        let table = Self::of_shape(image)?;
        for (section, name) in [(CELLS, "cells"), (ROOTS, "roots")] {
            let bad = match table.width {
                Width::Narrow => table.first_bad::<u32>(section),
                Width::Wide => table.first_bad::<u64>(section),
            };
            if let Some(index) = bad {
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

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        let (route, chunk) = match self.width {
            Width::Narrow if value > u32::MAX.into() => return false,
            #[allow(clippy::cast_possible_truncation)] // just checked
            Width::Narrow => ((value as u32).route(), (value as u32).chunk()),
            Width::Wide => (value.route(), value.chunk()),
        };
        section <= ROOTS && self.admits_cell(route, chunk, results)
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        let is_zero = section == CELLS && index >> self.stride == 0;
        self.admits(section, value, results) && !(is_zero && value != 0)
    }
}
