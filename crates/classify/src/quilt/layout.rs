//! The sections of a quilt and what their elements say.
//!
//! ```text
//! head     u64   W, the words of a tuple; L, the layers; M; S; keys by two (see hash); G, the groups of scanned cells in use
//! layers   u64   by layer: directory, rest, mask                          2 + 2·B each, B = ⌈W / 4⌉ blocks of 4 words
//!                directory   bits << 32 | base        2^bits slots from base on
//!                rest        the highest rank that a rule of this layer or a later one may have
//!                mask        words by two, the first one low
//! slots    u64   top (32) | filter (8) | masks (1) | groups - 1 (2) | group (21)      0: no bucket
//!                top         the height of the bucket's best rank
//! cells    u64   by group: block 0: a of 4 cells, b of 4 cells | block 1 … 128·B bytes; 4 words, the first lowest, of each
//! ranks    u64   by group: of 4 cells; 0 where there is none
//!
//! tops        u64   by group of 16 scanned cells: the best of their ranks, the best of theirs and those of later groups
//! scan        u32   by group: word 0: 16 masks, 16 least numbers, 16 spans | word 1 … 192·W bytes a group
//! scan_ranks  u64   by group: of 16 cells; 0 where there is none
//! ```
//!
//! The *height* of a rank is what is left of it without its S lowest bits, as 32 bits, or all ones where
//! these are too few: of two ranks the lower isn't the higher one's. S is the bits of the highest priority
//! when the table was built.
//!
//! A scanned cell matches where of each 16 bits `(x & mask) - least ≤ span`, unsigned and wrapping. Scanned
//! cells are compared after all layers, group by group in their order, until no later one has a rank above
//! what was found; a group that has none is passed over.
//!
//! An empty cell may match: its rank is that of no rule. Layers from L on and groups of scanned
//! cells from G on are not read.

use std::marker::PhantomData;

use wirespeed_image::{Checked, Image, ImageBuilder, ImageError, SectionId, Table};

use super::cell::Form;
pub use super::hash::BLOCK;
use super::hash::{MOST_WORDS, Seeds};
use crate::rank::Rank;
use crate::tuple::Tuple;

/// The head: values for the whole table.
pub const HEAD: SectionId = SectionId(0);
/// Masks and directories.
pub const LAYERS: SectionId = SectionId(1);
/// Directories.
pub const SLOTS: SectionId = SectionId(2);
/// Cells by groups.
pub const CELLS: SectionId = SectionId(3);
/// Ranks of cells.
pub const RANKS: SectionId = SectionId(4);
/// The best ranks of groups of scanned cells, and of all from each on.
pub const SCAN_TOPS: SectionId = SectionId(5);
/// Scanned cells by groups.
pub const SCAN: SectionId = SectionId(6);
/// Ranks of scanned cells.
pub const SCAN_RANKS: SectionId = SectionId(7);

/// The element of the head that holds the number of words of a tuple.
pub const WORDS_AT: usize = 0;
/// The element of the head that holds the number of layers in use.
pub const COUNT_AT: usize = 1;
/// The element of the head that holds the factor.
pub const FACTOR_AT: usize = 2;
/// The element of the head that holds S.
pub const SHIFT_AT: usize = 3;
/// The first element of the keys in the head.
pub const KEYS_AT: usize = 4;
/// The element of the head that holds the number of groups of scanned cells in use.
pub const SCAN_AT: usize = KEYS_AT + MOST_WORDS / 2;
/// Elements of the head.
pub const HEAD_LEN: usize = SCAN_AT + 1;

/// Cells of a group.
pub const LANES: usize = 4;
/// Layers that are tried before what they found is held against the bound of the next.
pub const LAYERS_AT_ONCE: usize = 4;
/// Groups of a bucket at most.
pub const MOST_GROUPS: usize = 4;
/// The element of a layer's record that holds the bound of ranks.
pub const REST_AT: usize = 1;
/// The element of a layer's record that holds the mask.
pub const MASK_AT: usize = 2;

/// Bits of a group's index.
pub const GROUP_BITS: u32 = 21;
/// The most groups.
pub const GROUPS: u32 = 1 << GROUP_BITS;
const LEN_SHIFT: u32 = GROUP_BITS;
/// The place of the bit of a slot that tells cells that are masks.
pub const FORM_SHIFT: u32 = LEN_SHIFT + 2;
/// The place of the filter in a slot.
pub const FILTER_SHIFT: u32 = 24;
/// The most slots of a directory.
pub const MOST_BITS: u32 = 28;

/// Blocks of a tuple.
pub const fn blocks<T: Tuple>() -> usize {
    T::WORDS.div_ceil(BLOCK)
}

/// Elements of a layer's record.
pub const fn record_len<T: Tuple>() -> usize {
    MASK_AT + 2 * blocks::<T>()
}

/// Elements of a group of cells.
pub const fn group_len<T: Tuple>() -> usize {
    blocks::<T>() * 4 * LANES
}

/// The place where a cell has the first two words of a block's `a`; the other two come after, and `b` is
/// [`B_AFTER`] on.
pub const fn cell_at<T: Tuple>(group: usize, block: usize, lane: usize) -> usize {
    group * group_len::<T>() + block * 4 * LANES + 2 * lane
}

/// See [`cell_at`].
pub const B_AFTER: usize = 2 * LANES;

/// Elements of a group's tops.
pub const TOPS: usize = 2;
/// Scanned cells of a group.
pub const SCAN_LANES: usize = 16;
/// The least numbers of a group's word come so many elements after the masks,
pub const VALUES_AFTER: usize = SCAN_LANES;
/// and the spans so many.
pub const SPANS_AFTER: usize = 2 * SCAN_LANES;

/// Elements of a group of scanned cells, of tuples of so many words.
pub const fn scan_len(words: usize) -> usize {
    words * 3 * SCAN_LANES
}

/// The place where a scanned cell has the mask of a word.
pub const fn scan_at(words: usize, lane: usize, word: usize) -> usize {
    lane / SCAN_LANES * scan_len(words) + word * 3 * SCAN_LANES + lane % SCAN_LANES
}

/// The words of a tuple's block, by two.
#[inline(always)]
pub(super) fn words<T: Tuple>(tuple: &T, block: usize) -> [u64; 2] {
    let word = |at: usize| u64::from(tuple.words().get(at).copied().unwrap_or(0));
    [0, 2].map(|at| word(block * BLOCK + at) | word(block * BLOCK + at + 1) << 32)
}

/// A slot: where a bucket is, and what may be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u64);

impl Slot {
    pub(super) const fn new(top: u32, filter: u8, form: Form, groups: usize, group: u32) -> Self {
        debug_assert!(!form.is_mixed(), "mixed cells are scanned");
        let form = form.bits() as u64 & 1;
        let more = (groups - 1) as u64;
        let low = (filter as u64) << FILTER_SHIFT | form << FORM_SHIFT | more << LEN_SHIFT | group as u64;
        Self((top as u64) << 32 | low)
    }

    /// The height of the best rank of the bucket.
    #[inline(always)]
    pub const fn top(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The bits that its keys have set.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the byte
    pub const fn filter(self) -> u8 {
        (self.0 >> FILTER_SHIFT) as u8
    }

    #[inline(always)]
    pub(super) const fn form(self) -> Form {
        if self.0 >> FORM_SHIFT & 1 == 0 { Form::RANGES } else { Form::MASKS }
    }

    /// Groups of the bucket.
    #[inline(always)]
    pub const fn groups(self) -> usize {
        (self.0 >> LEN_SHIFT & 3) as usize + 1
    }

    /// The bucket's first group.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // 21 bits
    pub const fn group(self) -> usize {
        (self.0 & (GROUPS as u64 - 1)) as usize
    }
}

/// The height of a rank.
#[inline(always)]
pub fn height(rank: u64, shift: u32) -> u32 {
    u32::try_from(rank >> shift).unwrap_or(u32::MAX)
}

/// The place of a layer's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Its first slot.
    pub base: u32,
    /// The logarithm of its slots.
    pub bits: u32,
}

impl Directory {
    pub(super) const fn element(self) -> u64 {
        (self.bits as u64) << 32 | self.base as u64
    }

    #[allow(clippy::cast_possible_truncation)] // the halves
    pub(super) const fn of(element: u64) -> Self {
        Self { base: element as u32, bits: (element >> 32) as u32 }
    }

    fn is_in(self, slots: u64) -> bool {
        self.bits <= MOST_BITS && u64::from(self.base) + (1 << self.bits) <= slots
    }
}

/// The data plane of a quilt.
#[derive(Clone, Debug)]
pub struct QuiltTable<T> {
    image: Image,
    tuple: PhantomData<fn() -> T>,
}

/// The part of the table that lookups read.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'t> {
    pub(super) head: &'t [u64],
    pub(super) layers: &'t [u64],
    pub(super) slots: &'t [u64],
    pub(super) cells: &'t [u64],
    pub(super) ranks: &'t [u64],
    pub(super) scan: ScanView<'t>,
}

/// The groups of scanned cells in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanView<'t> {
    pub(super) tops: &'t [[u64; TOPS]],
    pub(super) cells: &'t [u32],
    pub(super) ranks: &'t [u64],
}

impl View<'_> {
    #[inline]
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.head[COUNT_AT]).expect("as many as there are in memory")
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // 32 at most
    pub(super) const fn shift(&self) -> u32 {
        self.head[SHIFT_AT] as u32
    }

    #[allow(clippy::cast_possible_truncation)] // the halves
    pub(super) fn seeds(&self) -> Seeds {
        let keys = std::array::from_fn(|at| (self.head[KEYS_AT + at / 2] >> (at % 2 * 32)) as u32);
        Seeds { keys, factor: self.head[FACTOR_AT] as u32 }
    }
}

impl<T: Tuple> QuiltTable<T> {
    pub(super) const fn new(image: Image) -> Self {
        const { assert!(T::WORDS <= MOST_WORDS) };
        Self { image, tuple: PhantomData }
    }

    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        let head = self.image.section::<u64>(HEAD);
        let scan = match head[SCAN_AT] {
            0 => ScanView { tops: &[], cells: &[], ranks: &[] },
            groups => self.scan_view(groups),
        };
        View {
            head,
            scan,
            layers: self.image.section(LAYERS),
            slots: self.image.section(SLOTS),
            cells: self.image.section(CELLS),
            ranks: self.image.section(RANKS),
        }
    }

    /// Scanned cells that there is room for.
    pub(super) fn scanned_room(&self) -> usize {
        self.image.section::<u64>(SCAN_RANKS).len()
    }

    fn scan_view(&self, groups: u64) -> ScanView<'_> {
        let groups = usize::try_from(groups).expect("as many as there are in memory");
        ScanView {
            tops: self.image.section::<u64>(SCAN_TOPS)[..groups * TOPS].as_chunks().0,
            cells: &self.image.section(SCAN)[..groups * scan_len(T::WORDS)],
            ranks: &self.image.section(SCAN_RANKS)[..groups * SCAN_LANES],
        }
    }

    /// Layers that lookups try.
    pub fn layers(&self) -> usize {
        self.view().count()
    }

    /// The keys of its hash.
    pub fn seeds(&self) -> Seeds {
        self.view().seeds()
    }

    /// S, the bits of a rank that its height is without.
    pub fn shift(&self) -> u32 {
        self.view().shift()
    }

    /// Whether the bounds that lookups ask for descend along the layers, as in every image that an engine
    /// made.
    pub fn descends(&self) -> bool {
        let records = self.view().layers.chunks_exact(record_len::<T>()).take(self.layers());
        records.step_by(LAYERS_AT_ONCE).map(|record| record[REST_AT]).is_sorted_by(|a, b| a >= b)
    }

    fn room(&self) -> u64 {
        (self.image.section::<u64>(LAYERS).len() / record_len::<T>()) as u64
    }

    /// What there is room for.
    pub(super) fn sizes(&self) -> Sizes {
        let len = |id| self.image.section::<u64>(id).len();
        Sizes {
            layers: self.room(),
            slots: len(SLOTS) as u64,
            groups: (len(RANKS) / LANES) as u64,
            scan: (self.scanned_room() / SCAN_LANES) as u64,
        }
    }

    /// A copy of other sizes: what it has no room for is left out.
    pub(super) fn resized(&self, sizes: Sizes, cap: Option<u64>) -> Result<Image, ImageError> {
        let mut image = allocate::<T>(sizes, cap)?;
        for id in [HEAD, LAYERS, SLOTS, CELLS, RANKS, SCAN_TOPS, SCAN_RANKS] {
            copy(image.section_mut::<u64>(id)?, self.image.section(id));
        }
        copy(image.section_mut::<u32>(SCAN)?, self.image.section(SCAN));
        Ok(image)
    }
}

/// Copies elements up to the end of either.
fn copy<E: Copy>(to: &mut [E], from: &[E]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
}

/// The sizes of an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) layers: u64,
    pub(super) slots: u64,
    pub(super) groups: u64,
    pub(super) scan: u64,
}

/// An image of such sizes, zeroed.
pub(super) fn allocate<T: Tuple>(sizes: Sizes, cap: Option<u64>) -> Result<Image, ImageError> {
    ImageBuilder::new(QuiltTable::<T>::KIND, QuiltTable::<T>::LAYOUT)
        .section::<u64>("head", HEAD_LEN as u64)
        .section::<u64>("layers", sizes.layers * record_len::<T>() as u64)
        .section::<u64>("slots", sizes.slots)
        .section::<u64>("cells", sizes.groups * group_len::<T>() as u64)
        .section::<u64>("ranks", sizes.groups * LANES as u64)
        .section::<u64>("tops", sizes.scan * TOPS as u64)
        .section::<u32>("scan", sizes.scan * scan_len(T::WORDS) as u64)
        .section::<u64>("scan_ranks", sizes.scan * SCAN_LANES as u64)
        .build(cap)
}

impl<T: Tuple> Table for QuiltTable<T> {
    const KIND: &'static str = "quilt";
    const LAYOUT: u32 = 2;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        let malformed = |what: &str| Err(ImageError::Malformed(what.to_owned()));
        Self::expect_kind(&image)?;
        let usage = image.memory_usage();
        let [head, layers, slots, cells, ranks, tops, scan, scan_ranks, ..] = &usage[..] else {
            return malformed("a section is missing");
        };
        let long = [head, layers, slots, cells, ranks, tops, scan_ranks];
        if long.iter().any(|section| section.width != 8) || scan.width != 4 {
            return malformed("a section's elements are of another width");
        }
        if head.len != HEAD_LEN as u64 || layers.len % record_len::<T>() as u64 != 0 {
            return malformed("the head or a layer is cut");
        }
        let groups = ranks.len / LANES as u64;
        if ranks.len % LANES as u64 != 0 || groups.checked_mul(group_len::<T>() as u64) != Some(cells.len) {
            return malformed("there are not as many cells as ranks");
        }
        let groups = tops.len / TOPS as u64;
        let of_scan =
            [TOPS, SCAN_LANES, scan_len(T::WORDS)].map(|of_group| groups.checked_mul(of_group as u64));
        if of_scan != [Some(tops.len), Some(scan_ranks.len), Some(scan.len)] {
            return malformed("there are not as many scanned cells as ranks");
        }
        let words = image.section::<u64>(HEAD)[WORDS_AT];
        if words != T::WORDS as u64 {
            let (wanted, name) = (T::WORDS, T::NAME);
            return malformed(&format!("it is of tuples of {words} words, those of {name} have {wanted}"));
        }
        let table = Self::new(image);
        let results = table.image.results();
        let admits = |id, elements: &[u64]| {
            (0..).zip(elements).all(|(at, &element)| table.admits_at(id, at, element, results))
        };
        // Before there is a view of what is in use.
        if !admits(HEAD, table.image.section(HEAD)) {
            return malformed("more layers or scanned cells are in use than there are");
        }
        let view = table.view();
        if !admits(LAYERS, view.layers) {
            return malformed("a layer's directory is out of range");
        }
        if !admits(SLOTS, view.slots) {
            return malformed("a bucket is out of range");
        }
        if !admits(RANKS, view.ranks) || !admits(SCAN_RANKS, table.image.section(SCAN_RANKS)) {
            return malformed("a number is over the largest");
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
        match section {
            CELLS | SCAN_TOPS | SCAN => true,
            RANKS | SCAN_RANKS => u64::from(Rank::from_bits(value).result()) <= results,
            SLOTS => {
                let slot = Slot(value);
                slot.group() + slot.groups() <= self.image.section::<u64>(RANKS).len() / LANES
            }
            _ => false,
        }
    }

    fn admits_any(&self, section: SectionId) -> bool {
        [CELLS, SCAN_TOPS, SCAN].contains(&section)
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        match (section, usize::try_from(index)) {
            // First what there is most of.
            (CELLS | RANKS | SLOTS, _) | (SCAN_TOPS | SCAN | SCAN_RANKS, _) => {
                self.admits(section, value, results)
            }
            (HEAD, Ok(COUNT_AT)) => value <= self.room(),
            (HEAD, Ok(WORDS_AT)) => value == T::WORDS as u64,
            (HEAD, Ok(SHIFT_AT)) => value <= 32,
            (HEAD, Ok(SCAN_AT)) => value <= (self.scanned_room() / SCAN_LANES) as u64,
            (HEAD, _) => true,
            (LAYERS, Ok(at)) if at % record_len::<T>() == 0 => {
                Directory::of(value).is_in(self.image.section::<u64>(SLOTS).len() as u64)
            }
            (LAYERS, _) => true,
            _ => false,
        }
    }
}
