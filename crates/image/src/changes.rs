//! [`Changes`]: the writes of an update to a table.

use crate::patch::{Patch, PatchBuilder};
use crate::section::SectionId;
use crate::shared::{Placed, SharedPool};

/// Bytes of an element in sections whose elements hold several narrow elements.
pub const WORD: usize = 8;

/// Collects the writes of a patch, or drops them while a table is built.
#[derive(Debug)]
pub struct Changes(Option<PatchBuilder>);

impl Changes {
    /// Drops all writes.
    pub fn none() -> Self {
        Self(None)
    }

    /// Collects all writes.
    pub fn collected() -> Self {
        Self(Some(PatchBuilder::new()))
    }

    /// Writes a new value of an element.
    #[inline]
    pub fn set(&mut self, section: SectionId, index: u64, value: u64) {
        if let Some(patch) = &mut self.0 {
            patch.set(section, index, value);
        }
    }

    /// Writes the changed elements of a piece that is [`Fresh`](Placed::Fresh).
    #[inline]
    pub fn chunk(&mut self, section: SectionId, placed: Placed, pool: &SharedPool<u8>) {
        let (Some(patch), Placed::Fresh(piece)) = (&mut self.0, placed) else { return };
        let (old, new) = (pool.previous(), pool.content(piece));
        let first = u64::from(piece) * (new.len() / WORD) as u64;
        for (index, (old, new)) in (first..).zip(old.chunks_exact(WORD).zip(new.chunks_exact(WORD))) {
            if old != new {
                patch.set(section, index, word(new));
            }
        }
    }

    /// Writes a range of bytes of a section of words.
    pub fn bytes(&mut self, section: SectionId, all: &[u8], range: std::ops::Range<usize>) {
        let Some(patch) = &mut self.0 else { return };
        for at in range.start / WORD..range.end.div_ceil(WORD) {
            patch.set(section, at as u64, word(&all[at * WORD..][..WORD]));
        }
    }

    /// The patch.
    pub fn finish(self, counts: (u64, u64)) -> Patch {
        self.0.unwrap_or_default().finish(Some(counts))
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a word"))
}
