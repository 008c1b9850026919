//! The sections of a forest and the meaning of their elements.
//!
//! An address is cut into strides of 4 or 8 bits, all of one length. A chunk has a cell for each value of a
//! stride:
//!
//! ```text
//! cells   uC × 2^stride × chunks   the longest route that ends in this stride, as its next hop + 1 (0: none),
//!                                  and the chunk or leaf beneath (0: none)
//! leaves  uW × 2^stride × leaves   the same route of chunks with nothing beneath
//! roots   uC × tables              a cell for each table before its first stride: the default route
//! stride  u8 × 1, or × 2  the stride; for uneven cells also the bits of a route
//!
//! C = 32 (narrow): 16 bits of route, above them 15 bits of number and a bit that is set for a leaf
//! C = 32 (uneven): as many bits of route as section `stride` says, the rest of number, and that bit
//! C = 64 (wide):   32 bits of route, 31 bits of number, and that bit
//! W = 8, 16, 32:   the narrowest that holds every route
//! ```
//!
//! Uneven cells are for many tables with more chunks than 15 bits can number and few next hops: twelve full
//! tables with 62 next hops have 360,000 leaves. GPUs don't take them.
//!
//! The two copies of a live table of many tables share cells and leaves, and each has its roots. A change
//! then writes chunks that no state has, up to the root, and the old ones are used again when no reader is
//! in the state before (`chunks.rs`).
//!
//! A lookup goes from chunk to chunk and keeps the last route. A route to next hop 0 hides the routes that
//! cover it, so it is not the same as no route. Routes are not pushed to longer prefixes (leaf pushing), so a
//! chunk depends only on the routes beneath it: tables that are alike share chunks whatever covers them, and
//! a change writes one chunk for each stride of its prefix. Most chunks have nothing beneath, so leaves make
//! tables several times smaller. Chunks and leaves are numbered from 1; nothing reads those of number 0. A
//! table number that has no table has a root of 0.

use std::marker::PhantomData;

use wirespeed_fib::Address;
use wirespeed_image::{
    Checked, Column, Element, Image, ImageBuilder, ImageError, Padded, SectionId, Shared, SharedColumn, Table,
};

/// The cells of all chunks.
pub const CELLS: SectionId = SectionId(0);
/// The routes of all leaves.
pub const LEAVES: SectionId = SectionId(1);
/// The cell above the first chunk of each table.
pub const ROOTS: SectionId = SectionId(2);
/// The one stride.
const STRIDE: SectionId = SectionId(3);
/// The bit of a link that is set for a leaf.
pub const LEAF: u32 = 1 << 31;
/// The strides that there are, in bits.
pub const STRIDES: [u8; 2] = [4, 8];
/// Cells end here: a vector's signed 32-bit index must reach each half of a wide cell.
pub const MOST_CELLS: u64 = 1 << 30;

/// A cell: a route, as its next hop + 1, and a link to a chunk or leaf; 0 for none. A link that is read from
/// a cell has the bit of leaves where the width says.
pub(crate) trait Cell: Element {
    /// The width of cells of two halves.
    const EVEN: Width;

    /// The next hop + 1 of the route.
    fn route(self, width: Width) -> u32;

    /// The number of the chunk or leaf beneath, with the bit that tells them apart.
    fn link(self, width: Width) -> u32;
}

impl Cell for u32 {
    const EVEN: Width = Width::NARROW;

    #[inline(always)]
    fn route(self, width: Width) -> u32 {
        self & width.route_mask()
    }

    #[inline(always)]
    fn link(self, width: Width) -> u32 {
        self >> (width.route_bits() & 31)
    }
}

impl Cell for u64 {
    const EVEN: Width = Width::Wide;

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the lower half
    fn route(self, _: Width) -> u32 {
        self as u32
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // 32 bits are left
    fn link(self, _: Width) -> u32 {
        (self >> 32) as u32
    }
}

/// The width of a cell, and of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// 4 bytes, with so many bits of route.
    Narrow(u8),
    /// 8 bytes.
    Wide,
}

impl Width {
    /// 4 bytes, of which the route takes half.
    pub(crate) const NARROW: Self = Self::Narrow(16);

    /// The narrowest for numbers of chunks and leaves, and for next hops, below and up to these.
    pub(crate) fn for_up_to(numbers: u32, next_hop: u32, may_be_uneven: bool) -> Self {
        let holds = |width: &Self| numbers - 1 < width.leaf_bit() && next_hop <= width.most();
        let number_bits = 32 - (numbers - 1).leading_zeros();
        // The route gets what the numbers and the bit of leaves leave.
        let uneven = u8::try_from(31 - number_bits.min(31)).ok().filter(|bits| may_be_uneven && *bits > 0);
        let widths = [Some(Self::NARROW), uneven.map(Self::Narrow)];
        widths.into_iter().flatten().find(holds).unwrap_or(Self::Wide)
    }

    /// Whether route and link take half of a cell each.
    #[inline(always)]
    pub(crate) fn is_even(self) -> bool {
        matches!(self, Self::NARROW | Self::Wide)
    }

    /// Bytes of a cell.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Narrow(_) => 4,
            Self::Wide => 8,
        }
    }

    /// Bits of a route.
    #[inline(always)]
    pub(crate) fn route_bits(self) -> u32 {
        match self {
            Self::Narrow(bits) => bits.into(),
            Self::Wide => 32,
        }
    }

    /// The bits of a cell that a route takes.
    #[inline(always)]
    pub(crate) fn route_mask(self) -> u32 {
        u32::MAX >> (32 - self.route_bits())
    }

    /// The bit of a cell's link that is set for a leaf.
    #[inline(always)]
    pub(crate) fn leaf_bit(self) -> u32 {
        match self {
            Self::Narrow(bits) => 1 << (31 - u32::from(bits)),
            Self::Wide => LEAF,
        }
    }

    /// The largest next hop that a cell can hold.
    pub(crate) fn most(self) -> u32 {
        self.route_mask() - 1
    }

    /// A cell of a route and a link with the bit [`LEAF`], both narrow enough, as a patch writes it.
    pub(crate) fn cell(self, route: u32, link: u32) -> u64 {
        let link = if link & LEAF == 0 { link } else { link & !LEAF | self.leaf_bit() };
        u64::from(route) | u64::from(link) << self.route_bits()
    }
}

/// The compiled tables of a forest, ready for lookups in any of them. Lookups that name no table are in
/// table 0.
#[derive(Debug)]
pub struct ForestTable<A> {
    image: Image,
    pub(crate) width: Width,
    /// Whether live copies may share cells and leaves: all but those that are patched in place.
    pub(crate) may_share: bool,
    /// Bytes of a route of a leaf: 1, 2 or 4.
    pub(crate) leaf_width: usize,
    pub(crate) stride: u8,
    /// Number of chunks, chunk 0 and head room included.
    chunks: u64,
    /// Number of leaves, leaf 0 and head room included.
    leaf_count: u64,
    /// Number of tables, head room included.
    pub(crate) tables: u64,
    cells: SharedColumn,
    leaves: SharedColumn,
    pub(crate) roots: Column,
    family: PhantomData<A>,
}

impl<A: Address> Clone for ForestTable<A> {
    /// Makes a table that shares nothing.
    fn clone(&self) -> Self {
        self.with_image(self.image.clone())
    }
}

/// The shape of an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) stride: u8,
    pub(crate) width: Width,
    pub(crate) leaf_width: usize,
    /// Chunks, leaves and tables that there is room for. Number 0 of chunks and leaves is one of them.
    pub(crate) chunks: u32,
    pub(crate) leaves: u32,
    pub(crate) tables: u64,
}

/// An empty image.
pub(crate) fn allocate<A: Address>(shape: Shape, cap: Option<u64>) -> Result<Image, ImageError> {
    let Shape { stride, width, leaf_width, chunks, leaves, tables } = shape;
    let mut image = ImageBuilder::new(ForestTable::<A>::KIND, ForestTable::<A>::LAYOUT)
        .section_of_width("cells", width.bytes(), u64::from(chunks) << stride)
        .section_of_width("leaves", leaf_width, u64::from(leaves) << stride)
        .section_of_width("roots", width.bytes(), tables)
        .section::<u8>("stride", if width.is_even() { 1 } else { 2 })
        .build(cap)?;
    let shape = image.section_mut::<u8>(STRIDE)?;
    shape[0] = stride;
    if let (Width::Narrow(bits), Some(route_bits)) = (width, shape.get_mut(1)) {
        *route_bits = bits;
    }
    Ok(image)
}

impl<A: Address> ForestTable<A> {
    /// The table of an image with the right sections, whose cells are not checked yet.
    pub(crate) fn of_shape(image: Image) -> Result<Self, ImageError> {
        let malformed = |what: &str| Err(ImageError::Malformed(what.to_owned()));
        let usage = image.memory_usage();
        let Some([cells, leaves, roots, stride]) = usage.first_chunk() else {
            return malformed("sections are missing");
        };
        let names = [cells, leaves, roots, stride].map(|section| section.name.as_str());
        if names != ["cells", "leaves", "roots", "stride"] {
            return malformed("the sections are not in order");
        }
        if stride.width != 1 || stride.len == 0 {
            return malformed("section stride");
        }
        let width = match (cells.width, roots.width, &image.section::<u8>(STRIDE)[1..]) {
            (4, 4, []) => Width::NARROW,
            (4, 4, &[bits @ 1..=30]) => Width::Narrow(bits),
            (8, 8, []) => Width::Wide,
            _ => return malformed("cells that are not of 4 or 8 bytes, or a route that is not part of one"),
        };
        let leaf_width = match leaves.width {
            1 => 1,
            2 => 2,
            4 => 4,
            _ => return malformed("leaves that are not of 1, 2 or 4 bytes"),
        };
        let bits = image.section::<u8>(STRIDE)[0];
        if !STRIDES.contains(&bits) {
            return malformed("a stride that is not 4 or 8");
        }
        let is_whole = |len: u64| len >> bits << bits == len && len > 0 && len <= MOST_CELLS;
        if !is_whole(cells.len) || !is_whole(leaves.len) || roots.len == 0 {
            return malformed("sections that are not of whole chunks");
        }
        let (chunks, leaf_count, tables) = (cells.len >> bits, leaves.len >> bits, roots.len);
        let [cells, leaves] = [CELLS, LEAVES].map(|section| image.shared_column(section));
        let roots = image.column(ROOTS);
        let (stride, may_share, family) = (bits, true, PhantomData);
        Ok(Self {
            image,
            width,
            may_share,
            leaf_width,
            stride,
            chunks,
            leaf_count,
            tables,
            cells,
            leaves,
            roots,
            family,
        })
    }

    /// Bytes of a cell: 4 or 8.
    pub fn cell_width(&self) -> usize {
        self.width.bytes()
    }

    /// Bits of an address that each step of a lookup takes.
    pub fn stride(&self) -> u8 {
        self.stride
    }

    /// Bytes of a route of a leaf: 1, 2 or 4.
    pub fn leaf_width(&self) -> usize {
        self.leaf_width
    }

    /// The table as another image of the same sections has it.
    fn with_image(&self, image: Image) -> Self {
        let [cells, leaves] = [CELLS, LEAVES].map(|section| image.shared_column(section));
        Self { roots: image.column(ROOTS), image, cells, leaves, ..*self }
    }

    /// Says that patches write to chunks that are in use.
    pub(crate) fn patched_in_place(self) -> Self {
        Self { may_share: false, ..self }
    }

    /// The cells of all chunks. `C` has the table's width.
    #[inline(always)]
    pub(crate) fn cells<C: Cell>(&self) -> Shared<'_, C> {
        self.image.shared_at(self.cells)
    }

    /// The routes of all leaves. `W` has their width.
    #[inline(always)]
    pub(crate) fn leaves<W: Element>(&self) -> Shared<'_, W> {
        self.image.shared_at(self.leaves)
    }

    /// The routes of all leaves for vectors.
    #[inline]
    pub(crate) fn padded_leaves(&self) -> Padded<'_> {
        match self.leaf_width {
            1 => self.leaves::<u8>().padded(),
            2 => self.leaves::<u16>().padded(),
            _ => self.leaves::<u32>().padded(),
        }
    }

    fn admits_cell<C: Cell>(&self, cell: C, results: u64) -> bool {
        let (link, bit) = (cell.link(self.width), self.width.leaf_bit());
        let (link, is_leaf) = (link & !bit, link & bit != 0);
        let count = if is_leaf { self.leaf_count } else { self.chunks };
        u64::from(cell.route(self.width)) <= results + 1 && u64::from(link) < count
    }

    fn first_bad<C: Cell>(&self, section: SectionId) -> Option<usize> {
        let results = self.image.results();
        self.image.section::<C>(section).iter().position(|&cell| !self.admits_cell(cell, results))
    }

    fn first_bad_leaf<W: Element>(&self) -> Option<usize> {
        let most = self.image.results() + 1;
        self.image.section::<W>(LEAVES).iter().position(|&route| route.into() > most)
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
        let bad_cell = |section| match table.width {
            Width::Narrow(_) => table.first_bad::<u32>(section),
            Width::Wide => table.first_bad::<u64>(section),
        };
        let bad_leaf = match table.leaf_width {
            1 => table.first_bad_leaf::<u8>(),
            2 => table.first_bad_leaf::<u16>(),
            _ => table.first_bad_leaf::<u32>(),
        };
        let bad = [("cells", bad_cell(CELLS)), ("leaves", bad_leaf), ("roots", bad_cell(ROOTS))];
        if let Some((name, index)) = bad.iter().find_map(|&(name, bad)| Some((name, bad?))) {
            return Err(ImageError::Malformed(format!("{name}[{index}] leads nowhere")));
        }
        Ok(table)
    }

    fn image(&self) -> &Image {
        &self.image
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.image
    }

    fn share(&mut self, checked: Checked) {
        if self.may_share {
            checked.share(&mut self.image, ROOTS.0);
            self.roots = self.image.column(ROOTS);
        }
    }

    fn twin(&self, checked: Checked) -> Self {
        self.with_image(checked.twin(&self.image))
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        match (section, self.width) {
            (LEAVES, _) => value <= results + 1,
            (CELLS | ROOTS, Width::Narrow(_)) => {
                u32::try_from(value).is_ok_and(|cell| self.admits_cell(cell, results))
            }
            (CELLS | ROOTS, Width::Wide) => self.admits_cell(value, results),
            _ => false,
        }
    }
}
