//! The chunks of a level.

use wirespeed_fib::Outgrown;
use wirespeed_image::{Pool, SectionId};

use crate::layout::{WORDS, Word};
use crate::sink::Sink;

/// The words of a chunk.
pub(crate) type Chunk = [Word; WORDS as usize];

/// A chunk that leads to no route.
pub(crate) const EMPTY: Chunk = [Word::EMPTY; WORDS as usize];

/// The chunks of level 24 or 32.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    section: SectionId,
    pub(crate) pool: Pool,
    /// What each chunk holds in the table, up to the highest id ever used.
    pub(crate) chunks: Vec<Chunk>,
}

impl Level {
    /// No chunks, with room for so many, chunk 0 included.
    pub(crate) fn new(section: SectionId, capacity: u32) -> Self {
        Self { section, pool: Pool::new(capacity), chunks: vec![EMPTY] }
    }

    pub(crate) fn take(&mut self) -> Result<u32, Outgrown> {
        let id = self.pool.take().ok_or(Outgrown("room for chunks"))?;
        if self.chunks.len() <= id as usize {
            self.chunks.push(EMPTY);
        }
        Ok(id)
    }

    /// Writes the words that are not there yet.
    pub(crate) fn write(&mut self, id: u32, chunk: Chunk, sink: &mut impl Sink) {
        let first = u64::from(id) * u64::from(WORDS);
        for ((index, held), word) in (first..).zip(&mut self.chunks[id as usize]).zip(chunk) {
            if *held != word {
                *held = word;
                sink.word(self.section, index, word);
            }
        }
    }

    pub(crate) fn memory_usage(&self) -> u64 {
        (self.chunks.capacity() * size_of::<Chunk>()) as u64 + self.pool.memory_usage()
    }
}
