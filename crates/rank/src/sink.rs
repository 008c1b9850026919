//! [`Sink`]: where changes of chunks and runs go.

use wirespeed_image::SectionId;

use crate::layout::Word;

/// The target of writes.
pub(crate) trait Sink {
    /// The slot leads to a chunk of level 24.
    fn slot(&mut self, slot: u16, chunk: u32);
    /// A word of level 24 or 32, by its index in the section.
    fn word(&mut self, level: SectionId, index: u64, word: Word);
    /// A run holds a value.
    fn run(&mut self, run: u32, value: u32);
}

/// Writes go nowhere: a table is compiled from what the control plane holds in the end.
pub(crate) struct Unrecorded;

impl Sink for Unrecorded {
    fn slot(&mut self, _: u16, _: u32) {}
    fn word(&mut self, _: SectionId, _: u64, _: Word) {}
    fn run(&mut self, _: u32, _: u32) {}
}
