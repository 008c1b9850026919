//! [`Bubbles`]: the write-bubble table (GAMT, section 3.2).
//!
//! A bubble is a unit that a set of updates changed: the paper's ⟨stage, location, value⟩, without the value.
//! Locations are kept by level, and where one is noted again and again it still comes to one write: the
//! values are fetched last, when the set is done, from what the form then holds (Algorithm 2). Within a level
//! they are written in order, which is what a GPU's memory likes.

use std::ops::Range;

use wirespeed_image::{PatchBuilder, SectionId};

/// Changed places of a table, by level.
#[derive(Clone, Debug)]
pub(crate) struct Bubbles {
    levels: Vec<Vec<u32>>,
}

impl Bubbles {
    /// None yet, for so many levels.
    pub(crate) fn new(levels: usize) -> Self {
        Self { levels: vec![Vec::new(); levels] }
    }

    /// The element of a level changed.
    #[inline]
    pub(crate) fn note(&mut self, level: usize, element: usize) {
        self.levels[level].push(Self::location(element));
    }

    /// All of these did.
    pub(crate) fn note_all(&mut self, level: usize, elements: Range<usize>) {
        self.levels[level].extend(elements.map(Self::location));
    }

    /// Takes the bubbles of a level, each location once and in order, and adds them to a patch with their
    /// values.
    pub(crate) fn fetch(
        &mut self,
        level: usize,
        section: SectionId,
        patch: &mut PatchBuilder,
        value: impl Fn(usize) -> u64,
    ) {
        let locations = &mut self.levels[level];
        locations.sort_unstable();
        locations.dedup();
        for location in locations.drain(..) {
            patch.set(section, location.into(), value(location as usize));
        }
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        self.levels.iter().map(|level| (level.capacity() * size_of::<u32>()) as u64).sum()
    }

    fn location(element: usize) -> u32 {
        u32::try_from(element).expect("a level has at most 2^32 elements")
    }
}
