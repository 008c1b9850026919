//! [`Log`]: what changes in the table as its form changes.

use wirespeed_fib::{Address, NextHop};
use wirespeed_image::{Patch, PatchBuilder, SectionId};

use super::layout::{LEAF, elements, next_hops};
use crate::sail_l::levels;

/// The changes of the table that follow from changes of the form; none while the form is built.
pub(super) struct Log {
    patch: Option<PatchBuilder>,
    table: Shape,
}

/// The shape of the table that a patch is for.
struct Shape {
    /// Levels, and the bit of elements between the first level and the last that says that lookups end there.
    levels: usize,
    leaf: u32,
    /// The section of the arrays' next hops, and the capacity in arrays.
    next_hops: SectionId,
    arrays: u64,
}

impl Log {
    /// A log for a form that has no table yet.
    pub(super) fn off() -> Self {
        Self { patch: None, table: Shape { levels: 0, leaf: 0, next_hops: elements(0), arrays: 0 } }
    }

    /// A log for a patch of a table, of the bit that ends lookups between the first level and the last, and
    /// the capacity in arrays.
    pub(super) fn on<A: Address>(leaf: u32, arrays: u64) -> Self {
        let levels = levels::<A>();
        let table = Shape { levels, leaf, next_hops: next_hops::<A>(), arrays };
        Self { patch: Some(PatchBuilder::new()), table }
    }

    /// An element ends a lookup, with an array.
    pub(super) fn leaf(&mut self, level: usize, element: u64, id: u32) {
        let leaf = match level {
            0 => LEAF,
            level if level + 1 < self.table.levels => self.table.leaf,
            _ => 0,
        };
        self.set(elements(level), element, leaf | id);
    }

    /// An element leads to a chunk of the next level.
    pub(super) fn link(&mut self, level: usize, element: u64, chunk: u32) {
        self.set(elements(level), element, chunk);
    }

    /// An array has these next hops.
    pub(super) fn array(&mut self, id: u32, array: &[NextHop]) {
        for (slot, next_hop) in (0u64..).zip(array) {
            self.set(self.table.next_hops, slot * self.table.arrays + u64::from(id), next_hop.0);
        }
    }

    fn set(&mut self, section: SectionId, index: u64, value: u32) {
        if let Some(patch) = &mut self.patch {
            patch.set(section, index, value.into());
        }
    }

    /// The patch; `counts` are the table's after it.
    pub(super) fn finish(self, counts: (u64, u64)) -> Patch {
        self.patch.unwrap_or_default().finish(Some(counts))
    }
}
