//! [`Class`]: the flows of one mask in a hash table, for lookups of many keys at once.
//!
//! ```text
//! slots    | tag, entry | 0 | tag, entry | …      8 bytes each, at most half of them taken; linear probing
//! entries  | five words of the value | what frames need of the best flow |      one cache line each
//! later    the other words of each entry's value, which few masks have
//! tops     the flow of each entry that has the highest priority; those beneath it lie in `rest`
//! ```
//!
//! Slots of a chunk of packets are read in one loop, the entries that they point at in the next, so a core
//! has many of these reads under way at once. A class with few slots lies in the nearest cache and needs one
//! loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use wirespeed::image::{HugeVec, prefetch};

use super::extract::{HEAD, by_width};
use super::flow::{Flow, Shape};
use super::hit::Hit;
use super::hot::Hot;
use super::row::Row;
use crate::wire::{Key, WORDS};

/// Slots up to which a class is searched in one loop: 16 KiB.
const FEW_SLOTS: usize = 2048;

/// Entries from which on there is room for [`ROOM`] times as many more when they fill their memory. Memory
/// takes no pages before it is used, but each time that entries move the system clears pages for all of them.
/// With room for as many more, new flows mostly waited for that.
const MANY: usize = 1 << 16;
const ROOM: usize = 7;

/// A value and its best flow; a free entry has no flow.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Entry {
    head: [u64; HEAD],
    hot: Option<Hot>,
}

/// The flows of one mask.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    shape: Arc<Shape>,
    /// A tag in the upper half and the number of an entry plus 1 in the lower half; 0 is free.
    slots: HugeVec<u64>,
    entries: HugeVec<Entry>,
    later: Vec<u64>,
    tops: Vec<Option<Arc<Flow>>>,
    /// The flows beneath the best ones by entry, the highest priority last.
    rest: FxHashMap<usize, Vec<Arc<Flow>>>,
    free: Vec<usize>,
    /// The number of flows.
    len: usize,
    /// The number of flows of each priority, by priority in order.
    priorities: BTreeMap<u16, usize>,
}

/// A key on its way through a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// The place of the key in its chunk.
    pub(crate) at: u32,
    hash: u64,
    /// The first slot whose tag is that of the hash; 0 for none.
    slot: u64,
}

impl Probe {
    pub(crate) const fn new(at: u32) -> Self {
        Self { at, hash: 0, slot: 0 }
    }
}

/// The tag of a hash: its upper half.
#[inline]
const fn tag(hash: u64) -> u64 {
    hash & 0xffff_ffff_0000_0000
}

impl Class {
    pub(crate) fn new(shape: Arc<Shape>) -> Self {
        Self {
            shape,
            slots: HugeVec::filled(0, 8),
            entries: HugeVec::new(),
            later: Vec::new(),
            tops: Vec::new(),
            rest: FxHashMap::default(),
            free: Vec::new(),
            len: 0,
            priorities: BTreeMap::new(),
        }
    }

    pub(crate) const fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// The number of flows.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The highest priority of a flow.
    pub(crate) fn best(&self) -> Option<u16> {
        self.priorities.last_key_value().map(|(&priority, _)| priority)
    }

    /// All flows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Flow>> {
        self.tops.iter().flatten().chain(self.rest.values().flatten())
    }

    /// The flows of a value.
    pub(crate) fn of_value(&self, value: &Key) -> impl Iterator<Item = &Arc<Flow>> {
        let mut words = [0; WORDS];
        words.iter_mut().zip(self.shape.extract.all(value)).for_each(|(to, word)| *to = word);
        let words = &words[..self.shape.extract.len()];
        self.find(self.shape.extract.hash_value(words), words).into_iter().flat_map(|(_, entry)| {
            self.tops[entry]
                .iter()
                .chain(self.rest.get(&entry).into_iter().flat_map(|rest| rest.iter().rev()))
        })
    }

    /// The flow of a value and a priority.
    pub(crate) fn get(&self, value: &Key, priority: u16) -> Option<&Arc<Flow>> {
        self.of_value(value).find(|flow| flow.priority == priority)
    }

    /// The best flow of a key.
    #[inline]
    pub(crate) fn lookup(&self, key: &Key) -> Option<Hit<'_>> {
        by_width!(self.shape.extract, lookup_by(self, key))
    }

    /// Calls `found` with the best flow of each row that has one, among those that `open` names.
    #[inline]
    pub(crate) fn lookup_batch<'t, R: Row>(
        &'t self,
        rows: &[R],
        open: &mut [Probe],
        found: impl FnMut(usize, Hit<'t>),
    ) {
        by_width!(self.shape.extract, lookup_batch_by(self, rows, open, found));
    }

    fn lookup_by<R: Row, const W: usize, const L: bool>(&self, row: &R) -> Option<Hit<'_>> {
        let hash = self.shape.extract.hash::<R, W, L>(row);
        let (_, entry) = self.search(hash, |entry| self.matches::<R, W, L>(entry, row))?;
        self.hit(entry)
    }

    fn lookup_batch_by<'t, R: Row, const W: usize, const L: bool>(
        &'t self,
        rows: &[R],
        open: &mut [Probe],
        mut found: impl FnMut(usize, Hit<'t>),
    ) {
        if self.slots.len() <= FEW_SLOTS {
            for probe in open {
                let n = probe.at as usize;
                if let Some(hit) = self.lookup_by::<R, W, L>(&rows[n]) {
                    found(n, hit);
                }
            }
            return;
        }
        // Each loop brings near what the next one reads.
        for probe in &mut *open {
            probe.hash = self.shape.extract.hash::<R, W, L>(&rows[probe.at as usize]);
            prefetch(&self.slots, self.home(probe.hash));
        }
        for probe in &mut *open {
            probe.slot = self.first_slot(probe.hash);
            prefetch(&self.entries, Self::entry(probe.slot));
        }
        for probe in open.iter().filter(|probe| probe.slot != 0) {
            let (n, entry) = (probe.at as usize, Self::entry(probe.slot));
            let hit = if self.matches::<R, W, L>(entry, &rows[n]) {
                self.hit(entry)
            } else {
                // Another value with this tag.
                self.lookup_by::<R, W, L>(&rows[n])
            };
            if let Some(hit) = hit {
                found(n, hit);
            }
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the lower bits
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// The number of the entry of a slot.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the lower half
    const fn entry(slot: u64) -> usize {
        (slot as u32 as usize).wrapping_sub(1)
    }

    /// The first slot with the tag of a hash; 0 if there is none.
    #[inline]
    fn first_slot(&self, hash: u64) -> u64 {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 || tag(slot) == tag(hash) {
                return slot;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// The slot and the entry with a hash for which `is_it` is true.
    #[inline]
    fn search(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if tag(slot) == tag(hash) && is_it(Self::entry(slot)) {
                return Some((at, Self::entry(slot)));
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Whether a row has the value of an entry.
    #[inline]
    fn matches<R: Row, const W: usize, const L: bool>(&self, entry: usize, row: &R) -> bool {
        let extract = &self.shape.extract;
        let head = extract.head::<R, W>(row);
        // All words are compared at once: they seldom differ where a tag does not.
        let known = &self.entries[entry].head;
        let differs = (0..W).fold(0, |differs, at| differs | known[at] ^ head[at]);
        differs == 0 && (!L || self.later(entry).iter().copied().eq(extract.later(row)))
    }

    #[inline]
    fn hit(&self, entry: usize) -> Option<Hit<'_>> {
        Some(Hit::new(self.entries[entry].hot.as_ref()?, &self.tops[entry]))
    }

    /// The later words of an entry's value.
    fn later(&self, entry: usize) -> &[u64] {
        let words = self.shape.extract.len() - self.shape.extract.width();
        &self.later[entry * words..(entry + 1) * words]
    }

    /// The slot and the entry of a value with its hash.
    fn find(&self, hash: u64, value: &[u64]) -> Option<(usize, usize)> {
        let (head, later) = value.split_at(self.shape.extract.width());
        self.search(hash, |entry| {
            self.entries[entry].head[..head.len()] == *head && self.later(entry) == later
        })
    }

    /// The hash of the value of an entry that is not free.
    fn hash_of(&self, entry: usize) -> u64 {
        let extract = &self.shape.extract;
        if !extract.has_later() {
            return extract.hash_value(&self.entries[entry].head[..extract.width()]);
        }
        self.tops[entry].as_ref().map_or(0, |flow| flow.hash())
    }

    /// Brings near what a change of a flow looks at first.
    #[inline]
    pub(crate) fn prefetch(&self, flow: &Flow) {
        prefetch(&self.slots, self.home(flow.hash()));
    }

    /// Brings near what a change of the flow of a key looks at first.
    pub(crate) fn prefetch_key(&self, key: &Key) {
        let extract = &self.shape.extract;
        prefetch(&self.slots, self.home(by_width!(extract, hash(extract, key))));
    }

    /// Adds a flow of this mask, in the place of one with the same value and priority.
    pub(crate) fn insert(&mut self, flow: Arc<Flow>) {
        let priority = flow.priority;
        let is_new = match self.find(flow.hash(), flow.value()) {
            Some((_, entry)) => self.stack(entry, flow),
            None => {
                self.add(flow);
                true
            }
        };
        if is_new {
            self.len += 1;
            *self.priorities.entry(priority).or_insert(0) += 1;
        }
    }

    /// Adds an entry with a flow.
    fn add(&mut self, flow: Arc<Flow>) {
        let (hash, width) = (flow.hash(), self.shape.extract.width());
        let later = self.shape.extract.len() - width;
        if (self.tops.len() - self.free.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let entry = self.free.pop().unwrap_or_else(|| {
            self.tops.push(None);
            if self.entries.len() == self.entries.capacity() && self.entries.len() >= MANY {
                self.entries.reserve_exact(ROOM * self.entries.len());
            }
            self.entries.push(Entry { head: [0; HEAD], hot: None });
            self.later.resize(self.tops.len() * later, 0);
            self.tops.len() - 1
        });
        self.entries[entry].head[..width].copy_from_slice(&flow.value()[..width]);
        self.later[entry * later..(entry + 1) * later].copy_from_slice(&flow.value()[width..]);
        self.set_top(entry, Some(flow));
        self.place(hash, entry);
    }

    /// Sets the best flow of an entry.
    fn set_top(&mut self, entry: usize, flow: Option<Arc<Flow>>) {
        self.entries[entry].hot = flow.as_ref().map(|flow| flow.hot.clone());
        self.tops[entry] = flow;
    }

    /// Adds a flow to an entry. Returns whether there was none of its priority.
    fn stack(&mut self, entry: usize, flow: Arc<Flow>) -> bool {
        let Some(top) = &self.tops[entry] else { return false };
        if flow.priority == top.priority {
            self.set_top(entry, Some(flow));
            return false;
        }
        let lower = if flow.priority > top.priority {
            let top = Arc::clone(top);
            self.set_top(entry, Some(flow));
            top
        } else {
            flow
        };
        let rest = self.rest.entry(entry).or_default();
        match rest.binary_search_by_key(&lower.priority, |known| known.priority) {
            Ok(at) => {
                rest[at] = lower;
                false
            }
            Err(at) => {
                rest.insert(at, lower);
                true
            }
        }
    }

    fn place(&mut self, hash: u64, entry: usize) {
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = tag(hash) | (entry as u64 + 1);
    }

    fn grow(&mut self) {
        self.slots = HugeVec::filled(0, self.slots.len() * 2);
        // Entries are read as they lie: in the order of slots each of them would be a line of its own.
        for entry in 0..self.tops.len() {
            if self.tops[entry].is_some() {
                self.place(self.hash_of(entry), entry);
            }
        }
    }

    /// Removes the flow of the value and the priority of this one.
    pub(crate) fn remove(&mut self, flow: &Flow) {
        let Some((at, entry)) = self.find(flow.hash(), flow.value()) else { return };
        let Some(top) = &self.tops[entry] else { return };
        let is_top = top.priority == flow.priority;
        match self.rest.get_mut(&entry) {
            Some(rest) => {
                if is_top {
                    let next = rest.pop();
                    self.set_top(entry, next);
                } else {
                    let Some(place) = rest.iter().position(|known| known.priority == flow.priority) else {
                        return;
                    };
                    rest.remove(place);
                }
                if self.rest.get(&entry).is_some_and(Vec::is_empty) {
                    self.rest.remove(&entry);
                }
            }
            None if is_top => {
                self.close_gap(at);
                self.set_top(entry, None);
                self.free.push(entry);
            }
            None => return,
        }
        self.len -= 1;
        if let Some(count) = self.priorities.get_mut(&flow.priority) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&flow.priority);
            }
        }
    }

    /// Frees a slot: slots behind it move up, unless they are at home, so that searches find them.
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.slots.len() - 1;
        let mut at = gap;
        loop {
            self.slots[gap] = 0;
            loop {
                at = (at + 1) & mask;
                let slot = self.slots[at];
                if slot == 0 {
                    return;
                }
                let home = self.home(self.hash_of(Self::entry(slot)));
                if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                    self.slots[gap] = slot;
                    gap = at;
                    break;
                }
            }
        }
    }
}
