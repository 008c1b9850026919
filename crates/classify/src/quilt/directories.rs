//! [`Directories`]: the slots of all layers.

use wirespeed_image::{HugeVec, PatchBuilder, prefetch};

use super::base::Base;
use super::full::Full;
use super::layout::{Directory, SLOTS, Slot};
use super::pending::Pending;
use super::space::{MOST_SLOTS, Space, with_room};

/// Which slots are taken, and what the update at hand changes of them. The slots themselves lie in the table
/// alone, once there is one.
#[derive(Clone, Debug)]
pub(super) struct Directories {
    /// While the table is built all slots, as far as they were ever taken.
    built: Option<HugeVec<u64>>,
    pending: Pending<Line>,
    space: Space,
    /// Slots that there may be.
    limit: u32,
}

/// Slots of a line of the cache.
type Line = [u64; LINE];
const LINE: usize = 8;

/// The number of lines between a prefetch and its use.
const AHEAD: usize = 64;

impl Directories {
    /// Empty, with the largest capacity of an image.
    pub(super) fn new() -> Self {
        let (built, limit) = (Some(HugeVec::new()), MOST_SLOTS);
        Self { built, pending: Pending::new(), space: Space::new(limit), limit }
    }

    /// Limits slots to so many.
    pub(super) fn set_limit(&mut self, slots: u32) {
        self.space.set_limit(slots);
        self.limit = slots;
    }

    /// The table has all slots from now on.
    pub(super) fn settle(&mut self) {
        self.built = None;
    }

    /// While a table is built, all that were ever taken.
    pub(super) fn slots(&self) -> &[u64] {
        self.built.as_deref().unwrap_or_default()
    }

    /// Slots that were ever taken.
    pub(super) const fn end(&self) -> u32 {
        self.space.end()
    }

    #[inline(always)]
    pub(super) fn slot(&self, at: usize, base: Base<'_>) -> Slot {
        if let Some(slots) = &self.built {
            return Slot(slots[at]);
        }
        Slot(self.pending.get(at / LINE).map_or_else(|| base.slot(at), |line| line[at % LINE]))
    }

    #[inline(always)]
    pub(super) fn set(&mut self, at: usize, slot: Slot, base: Base<'_>) {
        match &mut self.built {
            Some(slots) => slots[at] = slot.0,
            None => self.pending.change(at / LINE, || base.line(at / LINE))[at % LINE] = slot.0,
        }
    }

    /// While a table is built, the slots of a directory.
    pub(super) fn of(&self, Directory { base, bits }: Directory) -> &[u64] {
        &self.slots()[base as usize..][..1 << bits]
    }

    /// While a table is built, the slots that have a bucket.
    pub(super) fn taken(&mut self) -> Vec<&mut u64> {
        self.built.iter_mut().flat_map(|slots| slots.iter_mut()).filter(|slot| **slot != 0).collect()
    }

    /// A directory of empty slots.
    pub(super) fn take(&mut self, bits: u32) -> Result<Directory, Full> {
        let base = self.space.take(bits as usize).ok_or(Full("slots"))?;
        let end = self.space.end();
        if let Some(slots) = &mut self.built {
            if slots.capacity() < end as usize {
                slots.reserve_exact(with_room(end, self.limit) as usize - slots.len());
            }
            if slots.len() < end as usize {
                slots.resize(end as usize, 0);
            }
        }
        Ok(Directory { base, bits })
    }

    /// Takes a directory of empty slots back.
    pub(super) fn give(&mut self, Directory { base, bits }: Directory) {
        self.space.give(base, bits as usize);
    }

    /// While a table is built, moves directories together, the largest first, so that there is nothing free
    /// between them.
    pub(super) fn pack(&mut self, all: &mut [Directory]) {
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(all[at].bits));
        let (before, mut slots) = (self.slots(), HugeVec::new());
        let mut space = Space::new(self.limit);
        for at in order {
            let old = all[at];
            // Each is as large as the next or larger, so they lie one behind the other.
            if let Some(base) = space.take(old.bits as usize) {
                slots.extend_from_slice(&before[old.base as usize..][..1 << old.bits]);
                all[at].base = base;
            }
        }
        (self.built, self.space) = (Some(slots), space);
    }

    /// Writes that there are at most.
    pub(super) const fn writes(&self) -> usize {
        self.pending.len() * LINE
    }

    /// Adds to a patch what the table hasn't.
    pub(super) fn write(&mut self, patch: &mut PatchBuilder, base: Base<'_>) {
        self.pending.sort();
        let mut ahead = self.pending.iter().skip(AHEAD);
        for (line, slots) in self.pending.iter() {
            ahead.next().into_iter().for_each(|(line, _)| prefetch(base.slots, line * LINE));
            let before: Line = base.line(line);
            for at in (0..LINE).filter(|&at| slots[at] != before[at]) {
                patch.set(SLOTS, (line * LINE + at) as u64, slots[at]);
            }
        }
        drop(ahead);
        self.pending.clear();
    }

    pub(super) fn memory_usage(&self) -> u64 {
        (self.slots().len() * 8) as u64 + self.space.memory_usage() + self.pending.memory_usage()
    }
}
