//! The sections of a state transition table and what their elements say.
//!
//! ```text
//! head      u64 × 5          0 the stride, 1   1 bits of a state, 31   2 root's row, 0 for none   3 root's result, 0 for none
//!                            4 bytes of an element of results
//! table     u32 × 256 × R    by row · 256 + byte: a link; 0 for no transition. Row 0 is never used.
//! results   u8, u16, u32     by state: the result of the entry that ends there
//!
//! link      bit 31 accepting: an entry ends here; bits 0–30 the state
//! state     below R the row of its transitions, from R on a leaf, which has none
//! ```

use crate::name::SLASH;
use wirespeed_image::{Checked, Image, ImageBuilder, ImageError, SectionId, Table, number};

/// Stride, root and its result.
pub const HEAD: SectionId = SectionId(0);
/// The links.
pub const TABLE: SectionId = SectionId(1);
/// The results, by state.
pub const RESULTS: SectionId = SectionId(2);

/// Elements of `head`.
pub const HEAD_LEN: usize = 5;
/// Place in `head` of the row that names start in.
pub const ROOT: usize = 2;
/// Place in `head` of the root entry's result.
pub const ROOT_RESULT: usize = 3;
/// Place in `head` of the bytes of an element of `results`.
pub const RESULT_BYTES: usize = 4;
/// Links of a row.
pub const ROW: usize = 256;
/// Set in a link with which an entry ends.
pub const ACCEPTING: u32 = 1 << 31;

/// The size from which a table is refused without a cap: 1 GiB.
pub const CAP: u64 = 1 << 30;

/// A state transition table, ready for lookups.
#[derive(Clone, Debug)]
pub struct SttTable {
    image: Image,
}

/// An empty image of so many rows and states.
pub(super) fn allocate(rows: u64, states: u64, width: usize, cap: u64) -> Result<Image, ImageError> {
    let mut image = ImageBuilder::new(SttTable::KIND, SttTable::LAYOUT)
        .section::<u64>("head", HEAD_LEN as u64)
        .section::<u32>("table", rows * ROW as u64)
        .section_of_width("results", width, states)
        .build(Some(cap))?;
    let head = image.section_mut::<u64>(HEAD)?;
    head[..2].copy_from_slice(&[1, 31]);
    head[RESULT_BYTES] = width as u64;
    Ok(image)
}

impl SttTable {
    /// The table of an image just compiled.
    pub(super) const fn new(image: Image) -> Self {
        Self { image }
    }

    /// Number of rows, the unused ones among them.
    pub fn rows(&self) -> u64 {
        (self.image.section::<u32>(TABLE).len() / ROW) as u64
    }

    /// Number of states that there is room for, leaves among them.
    pub fn states(&self) -> u64 {
        match self.image.width(RESULTS) {
            Some(1) => self.image.section::<u8>(RESULTS).len() as u64,
            Some(2) => self.image.section::<u16>(RESULTS).len() as u64,
            _ => self.image.section::<u32>(RESULTS).len() as u64,
        }
    }

    /// Bytes of all sections for each name, infinite for none.
    #[allow(clippy::cast_precision_loss)] // a ratio
    pub fn bytes_per_name(&self) -> f64 {
        self.image.bytes() as f64 / self.image.entries() as f64
    }
}

impl Table for SttTable {
    const KIND: &'static str = "stt";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        let malformed = |what: &str| Err(ImageError::Malformed(what.to_owned()));
        Self::expect_kind(&image)?;
        let usage = image.memory_usage();
        let [head, links, results, ..] = &usage[..] else { return malformed("a section is missing") };
        if (head.width, links.width) != (8, 4) || !matches!(results.width, 1 | 2 | 4) {
            return malformed("a section's elements are of another width");
        }
        if head.len != HEAD_LEN as u64 || links.len == 0 || links.len % ROW as u64 != 0 {
            return malformed("the head or a row is cut");
        }
        if results.len < links.len / ROW as u64 || results.len > ACCEPTING.into() {
            return malformed("there is not a result for each state, or more than 2^31 states");
        }
        let head = image.section::<u64>(HEAD);
        if head[..2] != [1, 31] || head[RESULT_BYTES] != u64::from(results.width) {
            return malformed("the stride, the bits of a state or the results' width are another kind's");
        }
        let table = Self::new(image);
        let most = table.image.results();
        let head = table.image.section::<u64>(HEAD);
        let is_head = |at: usize| table.admits_at(HEAD, at as u64, head[at], most);
        let links = table.image.section::<u32>(TABLE);
        if !is_head(ROOT)
            || !is_head(ROOT_RESULT)
            || !(0..).zip(links).all(|(index, &link)| table.is_link(index, link.into()))
        {
            return malformed("an element leads nowhere");
        }
        let found = match table.image.width(RESULTS) {
            Some(1) => table.image.section::<u8>(RESULTS).iter().copied().max().map(number),
            Some(2) => table.image.section::<u16>(RESULTS).iter().copied().max().map(number),
            _ => table.image.section::<u32>(RESULTS).iter().copied().max().map(number),
        };
        if u64::from(found.unwrap_or(0)) > most {
            return malformed("a result is over the largest");
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
            RESULTS => value <= results,
            _ => false,
        }
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        match (section, usize::try_from(index)) {
            (TABLE, _) => self.is_link(index, value),
            (HEAD, Ok(ROOT)) => value < self.rows(),
            (HEAD, Ok(ROOT_RESULT)) => value <= results.min(u64::from(u32::MAX)),
            // What a table is made by stays as it is.
            (HEAD, Ok(at)) => self.image.section::<u64>(HEAD).get(at) == Some(&value),
            _ => self.admits(section, value, results),
        }
    }
}

impl SttTable {
    /// Whether a link leads to a state, or is 0, and where an entry ends, a component does.
    fn is_link(&self, index: u64, link: u64) -> bool {
        let state = link & !u64::from(ACCEPTING);
        let may_end = state != 0 && index % ROW as u64 == u64::from(SLASH);
        link >> 32 == 0 && state < self.states() && (link == state || may_end)
    }
}
