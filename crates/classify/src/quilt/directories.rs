//! [`Directories`]: the slots of all layers.

use wirespeed_image::{HugeVec, PatchBuilder, prefetch};

use super::dirty::Dirty;
use super::full::Full;
use super::layout::{Directory, SLOTS, Slot};
use super::space::{Space, with_room};

/// The control plane's copy of the slots, as far as they were ever taken: an image has room for more.
#[derive(Clone, Debug)]
pub(super) struct Directories {
    slots: HugeVec<u64>,
    space: Space,
    /// Slots that there may be.
    limit: u32,
    dirty: Dirty,
}

/// The number of slots between a prefetch and its use.
const AHEAD: usize = 64;

impl Directories {
    /// Empty, with the largest capacity of an image.
    pub(super) fn new() -> Self {
        let limit = u32::MAX >> 1;
        Self { slots: HugeVec::new(), space: Space::new(limit), limit, dirty: Dirty::default() }
    }

    /// Limits slots to so many, and notes changes from now on.
    pub(super) fn set_limit(&mut self, slots: u32) {
        self.space.set_limit(slots);
        self.limit = slots;
        self.slots.fit(0);
        self.dirty.start();
    }

    /// All that were ever taken.
    pub(super) fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// Slots that were ever taken.
    pub(super) const fn end(&self) -> u32 {
        self.space.end()
    }

    #[inline]
    pub(super) fn slot(&self, at: usize) -> Slot {
        Slot(self.slots[at])
    }

    pub(super) fn set(&mut self, at: usize, slot: Slot) {
        if self.slots[at] != slot.0 {
            self.slots[at] = slot.0;
            self.dirty.note(u32::try_from(at).expect("slots have indices of 31 bits"));
        }
    }

    /// The slots of a directory.
    pub(super) fn of(&self, Directory { base, bits }: Directory) -> &[u64] {
        &self.slots[base as usize..][..1 << bits]
    }

    /// A directory of empty slots.
    pub(super) fn take(&mut self, bits: u32) -> Result<Directory, Full> {
        let base = self.space.take(bits as usize).ok_or(Full("slots"))?;
        let end = self.space.end();
        if self.slots.capacity() < end as usize {
            self.slots.reserve_exact(with_room(end, self.limit) as usize - self.slots.len());
        }
        if self.slots.len() < end as usize {
            self.slots.resize(end as usize, 0);
        }
        Ok(Directory { base, bits })
    }

    /// Takes a directory of empty slots back.
    pub(super) fn give(&mut self, Directory { base, bits }: Directory) {
        self.space.give(base, bits as usize);
    }

    /// Prefetches a slot.
    #[inline]
    pub(super) fn fetch(&self, at: usize) {
        prefetch(&self.slots, at);
    }

    /// Writes that there are at most.
    pub(super) const fn writes(&self) -> usize {
        self.dirty.len()
    }

    /// Adds to a patch what the image hasn't.
    pub(super) fn write(&mut self, patch: &mut PatchBuilder) {
        let dirty = self.dirty.take();
        for (nth, &at) in dirty.iter().enumerate() {
            dirty.get(nth + AHEAD).into_iter().for_each(|&at| prefetch(&self.slots, at as usize));
            patch.set(SLOTS, at.into(), self.slots[at as usize]);
        }
    }

    pub(super) fn memory_usage(&self) -> u64 {
        (self.slots.capacity() * 8) as u64 + self.space.memory_usage() + self.dirty.memory_usage()
    }
}
