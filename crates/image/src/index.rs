//! [`Index`]: ids of a control plane's objects, found by hash.
//!
//! ```text
//! slots  u64 × any number, at most three quarters taken, or less     hash 32 | id 32; all ones: free
//! ```
//!
//! Open addressing, starting at the slot that is as far along as the hash is among all hashes. A removal
//! moves later slots up, so that no markers stay behind. Stored hashes spare most comparisons of the objects
//! themselves, and all of them when the index grows. It grows by a quarter: slots are in the order of their
//! hashes, so that all are moved in one pass from front to back. A slot's position depends on the hash alone,
//! so slots of many lookups can be prefetched together. `hashbrown`'s table does neither: with it 0.7 M names
//! a second were removed from a live table of 3.6 M (and rebuilding the index took 30 % of filling it), with
//! this index 1.0 to 1.3 M.

use std::ops::ControlFlow;

use crate::fetch::prefetch;
use crate::huge::HugeVec;

/// Ids by hash. Several ids may have one hash. The hash and the id of an object must not both be all ones.
#[derive(Clone, Debug)]
pub struct Index {
    slots: HugeVec<u64>,
    len: usize,
    /// The most quarters of the slots that may be taken.
    quarters: usize,
}

/// The position of an id in an index, or a free position. Valid until the index changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(usize);

const FREE: u64 = u64::MAX;
const FEWEST: usize = 16;

impl Index {
    /// Makes an empty index.
    pub fn new() -> Self {
        Self { slots: HugeVec::filled(FREE, FEWEST), len: 0, quarters: 3 }
    }

    /// Makes an empty index with at most a quarter of its slots taken: an id is then almost always in the
    /// first slot, or nowhere.
    pub fn sparse() -> Self {
        Self { quarters: 1, ..Self::new() }
    }

    /// The number of ids.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the index is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The id with this hash for which `is_it` is true.
    #[inline]
    pub fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.look(hash, |_, id| is_it(id)).ok().map(|(_, id)| id)
    }

    /// The id with this hash for which `is_it` is true, and its position; otherwise a free position for this
    /// hash.
    #[inline]
    pub fn look(&self, hash: u32, is_it: impl FnMut(At, u32) -> bool) -> Result<(At, u32), At> {
        self.look_from(self.home(hash), hash, is_it)
    }

    /// The next such id after an id of this hash, and its position; otherwise a free position.
    #[inline]
    pub fn look_after(
        &self,
        At(at): At,
        hash: u32,
        is_it: impl FnMut(At, u32) -> bool,
    ) -> Result<(At, u32), At> {
        self.look_from(self.after(at), hash, is_it)
    }

    #[inline(always)]
    fn look_from(
        &self,
        from: usize,
        hash: u32,
        mut is_it: impl FnMut(At, u32) -> bool,
    ) -> Result<(At, u32), At> {
        let found = self.probe(from, |at, slot| match split(slot) {
            // This is tested first, because the first half of a free slot is a valid hash, too.
            _ if slot == FREE => ControlFlow::Break(Err(At(at))),
            (other, id) if other == hash && is_it(At(at), id) => ControlFlow::Break(Ok((At(at), id))),
            _ => ControlFlow::Continue(()),
        });
        found.expect("a quarter is free")
    }

    /// Prefetches the slot that [`find`](Self::find) tests first.
    #[inline]
    pub fn fetch(&self, hash: u32) {
        prefetch(&self.slots, self.home(hash));
    }

    /// Reserves capacity for `more` ids.
    pub fn reserve(&mut self, more: usize) {
        let slots = ((self.len + more) * 4).div_ceil(self.quarters);
        if slots > self.slots.len() {
            self.grow(slots);
        }
    }

    /// Adds an id that is not in the index.
    pub fn insert(&mut self, hash: u32, id: u32) {
        if self.is_full() {
            self.grow(self.slots.len() / 4 * 5);
        }
        let at = self.at_of(hash, FREE).expect("a quarter is free");
        self.put(At(at), hash, id);
    }

    /// Adds an id at a free position that [`look`](Self::look) returned.
    #[inline]
    pub fn insert_at(&mut self, at: At, hash: u32, id: u32) {
        match self.is_full() {
            true => self.insert(hash, id),
            false => self.put(at, hash, id),
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        (self.len + 1) * 4 > self.slots.len() * self.quarters
    }

    #[inline]
    fn put(&mut self, At(at): At, hash: u32, id: u32) {
        debug_assert_eq!(self.slots[at], FREE, "the index did not change");
        self.len += 1;
        self.slots[at] = joined(hash, id);
    }

    /// Replaces the id at a position.
    #[inline]
    pub fn replace_at(&mut self, At(at): At, by: u32) {
        debug_assert_ne!(self.slots[at], FREE, "the index did not change");
        self.slots[at] = joined(split(self.slots[at]).0, by);
    }

    /// All hashes and ids, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.slots.iter().filter(|&&slot| slot != FREE).map(|&slot| split(slot))
    }

    /// Removes an id that is in the index.
    pub fn remove(&mut self, hash: u32, id: u32) {
        if let Some(at) = self.at_of(hash, joined(hash, id)) {
            self.remove_at(At(at));
        }
    }

    /// Removes the id at a position.
    #[inline]
    pub fn remove_at(&mut self, At(mut hole): At) {
        debug_assert_ne!(self.slots[hole], FREE, "the index did not change");
        self.len -= 1;
        let mut at = hole;
        loop {
            at = self.after(at);
            let slot = self.slots[at];
            if slot == FREE {
                break;
            }
            // A slot stays if moving it would put it before its home.
            if self.steps(self.home(split(slot).0), at) >= self.steps(hole, at) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = FREE;
    }

    /// Bytes held.
    pub const fn memory_usage(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize
    }

    /// The slot after a slot; the first one after the last.
    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    /// The number of slots from one to another, round the end where need be.
    #[inline]
    fn steps(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots.len() - from }
    }

    /// The first slot with this content, starting at the hash's home.
    fn at_of(&self, hash: u32, content: u64) -> Option<usize> {
        self.probe(self.home(hash), |at, slot| match slot {
            slot if slot == content => ControlFlow::Break(Some(at)),
            FREE => ControlFlow::Break(None),
            _ => ControlFlow::Continue(()),
        })
        .flatten()
    }

    #[inline(always)]
    fn probe<T>(&self, from: usize, mut look: impl FnMut(usize, u64) -> ControlFlow<T>) -> Option<T> {
        let mut at = from;
        for _ in 0..self.slots.len() {
            if let ControlFlow::Break(found) = look(at, self.slots[at]) {
                return Some(found);
            }
            at = self.after(at);
        }
        None
    }

    /// Grows to so many slots.
    fn grow(&mut self, slots: usize) {
        let slots = std::mem::replace(&mut self.slots, HugeVec::filled(FREE, slots));
        for &slot in slots.iter().filter(|&&slot| slot != FREE) {
            let at = self.at_of(split(slot).0, FREE).expect("more than half are free");
            self.slots[at] = slot;
        }
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
const fn joined(hash: u32, id: u32) -> u64 {
    (hash as u64) << 32 | id as u64
}

/// Splits a slot into hash and id.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the two halves
const fn split(slot: u64) -> (u32, u32) {
    ((slot >> 32) as u32, slot as u32)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Takes few homes, so that runs are long and go round the end.
        #[test]
        fn it_is_a_map(
            steps in proptest::collection::vec((0..40u32, any::<bool>()), 0..300),
            (is_sparse, room) in (any::<bool>(), 0..30usize),
        ) {
            let mut index = if is_sparse { Index::sparse() } else { Index::new() };
            index.reserve(room);
            let mut map = BTreeMap::new();
            let hash = |id: u32| u32::MAX - (id / 2 % 5) * 7;
            for (id, comes) in steps {
                match (comes, map.contains_key(&id)) {
                    (true, false) => {
                        match index.look(hash(id), |_, other| other == id) {
                            Err(at) if id % 3 == 0 => index.insert_at(at, hash(id), id),
                            _ => index.insert(hash(id), id),
                        }
                        map.insert(id, ());
                    }
                    (false, true) => {
                        match index.look(hash(id), |_, other| other == id) {
                            Ok((at, _)) if id % 3 == 0 => index.remove_at(at),
                            _ => index.remove(hash(id), id),
                        }
                        map.remove(&id);
                    }
                    // What has its hash takes its place.
                    (true, true) if !map.contains_key(&(id ^ 1)) && hash(id ^ 1) == hash(id) => {
                        let (at, _) = index.look(hash(id), |_, other| other == id).expect("it is there");
                        index.replace_at(at, id ^ 1);
                        map.remove(&id);
                        map.insert(id ^ 1, ());
                    }
                    _ => {}
                }
                let mut all: Vec<_> = index.iter().collect();
                all.sort_unstable_by_key(|&(_, id)| id);
                prop_assert!(all.iter().copied().eq(map.keys().map(|&id| (hash(id), id))));
                prop_assert_eq!(index.len(), map.len());
                for id in 0..40 {
                    let is_it = |other| {
                        assert!(other < 40, "there never was a {other}");
                        other == id
                    };
                    let found = index.find(hash(id), is_it);
                    prop_assert_eq!(found, map.contains_key(&id).then_some(id));
                    let others: Vec<_> = all.iter().filter(|&&(of, _)| of == hash(id)).collect();
                    if let Ok((first, _)) = index.look(hash(id), |_, _| true) {
                        prop_assert_eq!(index.look_after(first, hash(id), |_, _| true).is_ok(), others.len() > 1);
                    }
                }
            }
        }
    }
}
