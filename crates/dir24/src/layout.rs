//! The sections of a table and what their entries say.
//!
//! ```text
//! tbl24  u64 × 2^24·W/8       an entry of W bytes for each 24 first bits, a slot:
//!                             0 nnnnnnn…  the next hop is n
//!                             1 ccccccc…  a longer prefix may match: go on in chunk c
//! tbl8   u64 × chunks·256·W/8 an entry of W bytes for each last octet: the next hop
//! ```
//!
//! Both are of words of 8 bytes so that a patch writes eight one-byte entries at a time; lookups read
//! entries. `W`, which the length of tbl24 tells, is the narrowest that holds next hops and chunk ids alike,
//! as they share an entry:
//!
//! | bytes of an entry | next hops up to | chunks up to | tbl24 |
//! |---|---|---|---|
//! | 1 | 127 | 127 | 16 MB |
//! | 2 | 32,767 | 32,767 | 32 MB |
//! | 4 | 2^31 - 1 | 2^23 - 1 | 64 MB |
//!
//! One bit for the kind of an entry is what PacketShader has and what DPDK has. A bound between next hops and
//! chunks, set for each table, would keep some tables in narrower entries (200 next hops and 50 chunks in a
//! byte) and end that at the first update past either; with the bit both can grow to the same limit. Chunks
//! stop at 2^23 - 1, and 8 GB, so that vectors of signed 32-bit indexes reach each entry. Chunk ids start
//! from 1; chunk 0 stays zero.

use wirespeed_fib::{BuildError, V4};
use wirespeed_image::{Checked, Column, Element, Image, ImageBuilder, ImageError, SectionId, Table, number};

/// Number of slots.
pub(crate) const SLOTS: usize = 1 << 24;
/// Entries of a chunk.
pub const CHUNK: usize = 256;
/// Bytes of an element of both sections.
pub(crate) const WORD: usize = 8;
/// Chunks, number 0 included, for which vectors reach every entry.
const MOST_CHUNKS: u32 = 1 << 23;

/// The direct table.
pub const TBL24: SectionId = SectionId(0);
/// The chunks.
pub const TBL8: SectionId = SectionId(1);

/// A DIR-24-8 table, ready for lookups.
#[derive(Clone, Debug)]
pub struct Dir24Table {
    image: Image,
    /// Bytes of an entry.
    width: usize,
    /// Number of chunks, found once: each write of a patch is held against it.
    chunks: u64,
    pub(super) tbl24: Column,
    pub(super) tbl8: Column,
}

/// Set in an entry of tbl24 that leads to a chunk; all that is below it are next hops.
pub(crate) const fn chunk_bit(width: usize) -> u32 {
    1 << (8 * width - 1)
}

/// The narrowest entry that holds next hops up to `next_hop` and so many chunks, number 0 not among them.
pub(crate) fn entry_width(next_hop: u32, chunks: u32) -> Result<usize, BuildError> {
    let fits = |&width: &usize| next_hop < chunk_bit(width) && chunks < most_chunks(width);
    let limit = |what, limit: u32, found: u32| {
        let (limit, found) = (u64::from(limit), u64::from(found));
        Err(BuildError::Limit { engine: "dir24", what, limit, found })
    };
    match [1, 2, 4].into_iter().find(fits) {
        Some(width) => Ok(width),
        None if next_hop >= chunk_bit(4) => limit("next hops", chunk_bit(4) - 1, next_hop),
        None => limit("chunks", most_chunks(4) - 1, chunks),
    }
}

/// The number of chunks that entries can lead to, number 0 included.
pub(crate) fn most_chunks(width: usize) -> u32 {
    chunk_bit(width).min(MOST_CHUNKS)
}

/// An empty image with room for so many chunks, number 0 included.
pub(crate) fn allocate(width: usize, chunks: u32, cap: Option<u64>) -> Result<Image, ImageError> {
    ImageBuilder::new(Dir24Table::KIND, Dir24Table::LAYOUT)
        .section::<u64>("tbl24", (SLOTS * width / WORD) as u64)
        .section::<u64>("tbl8", u64::from(chunks) * (CHUNK * width / WORD) as u64)
        .build(cap)
}

impl Dir24Table {
    /// The table of an image just compiled, or of one that has the sections of one.
    pub(crate) fn new(image: Image) -> Self {
        let width = (image.padded(TBL24).len() - 64) / SLOTS;
        let (tbl24, tbl8) = (image.column(TBL24), image.column(TBL8));
        let chunks = (image.section::<u64>(TBL8).len() / (CHUNK * width / WORD)) as u64;
        Self { image, width, chunks, tbl24, tbl8 }
    }

    /// Bytes of an entry: 1, 2 or 4.
    pub fn entry_width(&self) -> usize {
        self.width
    }

    /// Number of chunks that there is room for, number 0 included.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Whether an entry may have a value: a next hop within the count, or in tbl24 a chunk that exists.
    #[inline]
    fn admits_entry(&self, leads_on: bool, chunks: u64, results: u64, value: u32) -> bool {
        let bit = chunk_bit(self.width);
        match value & bit {
            0 => u64::from(value) <= results,
            _ => leads_on && u64::from(value ^ bit) < chunks,
        }
    }

    /// The first word of a section of which an entry may not have its value.
    fn first_bad<W: Element>(&self, section: SectionId) -> Option<usize> {
        /// Words that are judged together, by the largest of their entries.
        const BLOCK: usize = 512;
        let bit = chunk_bit(size_of::<W>());
        let (chunks, results) = (self.chunks(), self.image.results());
        let words = self.image.section::<u64>(section);
        let (at, bad) = words.chunks(BLOCK).enumerate().find(|(_, block)| {
            let (mut next_hop, mut chunk) = (0, 0);
            for &entry in bytemuck::cast_slice::<u64, W>(block) {
                let value = number(entry);
                let leads_on = value & bit != 0;
                next_hop = next_hop.max(if leads_on { 0 } else { value });
                chunk = chunk.max(if leads_on { value } else { 0 });
            }
            let admitted = |value| self.admits_entry(section == TBL24, chunks, results, value);
            !admitted(next_hop) || chunk != 0 && !admitted(chunk)
        })?;
        bad.iter().position(|&word| !self.admits(section, word, results)).map(|word| at * BLOCK + word)
    }
}

impl Table for Dir24Table {
    const KIND: &'static str = "dir24";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        let usage = image.memory_usage();
        let malformed = |what: String| Err(ImageError::Malformed(what));
        let [tbl24, tbl8, ..] = &usage[..] else {
            return malformed("sections are missing".into());
        };
        let width = tbl24.bytes / SLOTS as u64;
        if tbl24.width != 8 || tbl24.bytes != width * SLOTS as u64 || !matches!(width, 1 | 2 | 4) {
            return malformed("tbl24 is not of 2^24 entries of 1, 2 or 4 bytes".into());
        }
        let chunk = CHUNK as u64 * width;
        let most = u64::from(most_chunks(4));
        if tbl8.width != 8 || !tbl8.bytes.is_multiple_of(chunk) || !(1..=most).contains(&(tbl8.bytes / chunk))
        {
            return malformed("tbl8 is not of whole chunks that entries can lead to".into());
        }
        let table = Self::new(image);
        for (section, usage) in [TBL24, TBL8].into_iter().zip(&usage) {
            let bad = match table.width {
                1 => table.first_bad::<u8>(section),
                2 => table.first_bad::<u16>(section),
                _ => table.first_bad::<u32>(section),
            };
            if let Some(word) = bad {
                return malformed(format!("{}[{word}] leads nowhere", usage.name));
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
        let admitted = |leads_on| {
            let chunks = self.chunks();
            let entries = value.to_le_bytes();
            entries.chunks_exact(self.width).all(|entry| {
                let mut bytes = [0; 4];
                bytes[..self.width].copy_from_slice(entry);
                self.admits_entry(leads_on, chunks, results, u32::from_le_bytes(bytes))
            })
        };
        match section {
            TBL24 => admitted(true),
            TBL8 => admitted(false),
            _ => false,
        }
    }
}

/// The slot of an address.
#[inline]
pub(crate) fn slot(address: V4) -> usize {
    (address.0 >> 8) as usize
}

/// The entry of tbl8 for an address in the slot of a chunk.
#[inline]
pub(crate) fn entry_in(chunk: u32, address: V4) -> usize {
    chunk as usize * CHUNK + address.0 as usize % CHUNK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_entry_that_holds_both() {
        let width = |next_hop, chunks| entry_width(next_hop, chunks).ok();
        assert_eq!((width(0, 0), width(127, 127)), (Some(1), Some(1)));
        assert_eq!((width(128, 0), width(0, 128)), (Some(2), Some(2)));
        assert_eq!((width(32_767, 32_767), width(32_768, 0), width(0, 32_768)), (Some(2), Some(4), Some(4)));
        assert_eq!(width((1 << 31) - 1, (1 << 23) - 1), Some(4));
    }

    #[test]
    fn past_the_widest_both_numbers_are_told() {
        let error = |next_hop, chunks| entry_width(next_hop, chunks).unwrap_err().to_string();
        assert_eq!(error(1 << 31, 5), "dir24 holds 2147483647 next hops, the table has 2147483648");
        assert_eq!(error(5, 1 << 23), "dir24 holds 8388607 chunks, the table has 8388608");
    }
}
