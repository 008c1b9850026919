//! [`Changes`]: what an update makes different in a table.

use crate::patch::{Patch, PatchBuilder};
use crate::section::SectionId;
use crate::shared::{Placed, SharedPool};

/// Bytes of an element of the sections that hold several narrow elements in one.
pub const WORD: usize = 8;

/// Collects the writes of a patch; while a table is built, when nobody asks, it drops them.
#[derive(Debug)]
pub struct Changes(Option<PatchBuilder>);

impl Changes {
    /// Not wanted.
    pub fn none() -> Self {
        Self(None)
    }

    /// Wanted.
    pub fn collected() -> Self {
        Self(Some(PatchBuilder::new()))
    }

    /// An element has a new value.
    #[inline]
    pub fn set(&mut self, section: SectionId, index: u64, value: u64) {
        if let Some(patch) = &mut self.0 {
            patch.set(section, index, value);
        }
    }

    /// A content was placed: what a fresh piece has different from before is written.
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

    /// A range of bytes within a section of words was written.
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
