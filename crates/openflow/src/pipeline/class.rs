//! [`Class`]: the flows of one mask in a hash table, for lookups of many keys at once.
//!
//! ```text
//! slots    | tag, entry | 0 | tag, entry | …      8 bytes each, at most half of them taken; linear probing
//! keys     the words of each entry that count, one entry after the other
//! flows    the flows of each entry: the one of the highest priority, and those beneath it
//! ```
//!
//! Slots of a chunk of packets are read in one loop, the keys that they point at in the next, so a core has
//! many of these reads under way at once.

use std::sync::Arc;

use wirespeed::image::prefetch;

use super::flow::{Flow, Shape};
use crate::wire::Key;

/// The flows of one value, the highest priority first.
#[derive(Clone, Debug)]
struct Stack {
    top: Arc<Flow>,
    /// The flows beneath, the highest priority last.
    rest: Vec<Arc<Flow>>,
}

/// The flows of one mask.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    shape: Arc<Shape>,
    /// A tag in the upper half and the number of an entry plus 1 in the lower half; 0 is free.
    slots: Vec<u64>,
    keys: Vec<u64>,
    stacks: Vec<Option<Stack>>,
    free: Vec<u32>,
    /// The number of entries.
    taken: usize,
    /// The number of flows.
    len: usize,
    /// The number of flows of each priority, by priority in order.
    priorities: std::collections::BTreeMap<u16, usize>,
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word into a hash: the halves of the product of 128 bits.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the halves
const fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word) as u128 * 0xd6e8_feb8_6659_fd93_u128;
    (product >> 64) as u64 ^ product as u64 ^ SEED
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
            slots: vec![0; 8],
            keys: Vec::new(),
            stacks: Vec::new(),
            free: Vec::new(),
            taken: 0,
            len: 0,
            priorities: std::collections::BTreeMap::new(),
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

    #[inline]
    pub(crate) fn hash(&self, key: &Key) -> u64 {
        self.shape.masked(key).fold(SEED, mix)
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

    fn value(&self, entry: usize) -> &[u64] {
        let words = self.shape.words.len();
        &self.keys[entry * words..(entry + 1) * words]
    }

    /// The slot and the entry of a value.
    fn find(&self, hash: u64, is_it: impl Fn(&[u64]) -> bool) -> Option<(usize, usize)> {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if tag(slot) == tag(hash) && is_it(self.value(Self::entry(slot))) {
                return Some((at, Self::entry(slot)));
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// The best flow of a key.
    #[inline]
    pub(crate) fn lookup(&self, key: &Key) -> Option<&Arc<Flow>> {
        self.lookup_hashed(key, self.hash(key))
    }

    /// Brings the slot near where the search for a hash begins.
    #[inline]
    pub(crate) fn prefetch_slot(&self, hash: u64) {
        prefetch(&self.slots, self.home(hash));
    }

    /// The slot where the search for a hash begins. What it points at is brought near.
    #[inline]
    pub(crate) fn first_slot(&self, hash: u64) -> u64 {
        let slot = self.slots[self.home(hash)];
        if slot != 0 {
            let (entry, words) = (Self::entry(slot), self.shape.words.len());
            prefetch(&self.keys, entry * words);
            // A value may reach into a second line.
            prefetch(&self.keys, (entry + 1) * words - usize::from(words > 0));
            prefetch(&self.stacks, entry);
        }
        slot
    }

    /// The best flow of a key, whose hash and first slot are known.
    #[inline]
    pub(crate) fn lookup_from(&self, key: &Key, hash: u64, slot: u64) -> Option<&Arc<Flow>> {
        if slot == 0 {
            return None;
        }
        if tag(slot) == tag(hash) {
            let entry = Self::entry(slot);
            if self.value(entry).iter().copied().eq(self.shape.masked(key)) {
                return self.stacks[entry].as_ref().map(|stack| &stack.top);
            }
        }
        self.lookup_hashed(key, hash)
    }

    fn lookup_hashed(&self, key: &Key, hash: u64) -> Option<&Arc<Flow>> {
        let (_, entry) = self.find(hash, |value| value.iter().copied().eq(self.shape.masked(key)))?;
        self.stacks[entry].as_ref().map(|stack| &stack.top)
    }

    /// The flow of a value and a priority.
    pub(crate) fn get(&self, value: &Key, priority: u16) -> Option<&Arc<Flow>> {
        let (_, entry) =
            self.find(self.hash(value), |known| known.iter().copied().eq(self.shape.masked(value)))?;
        self.stacks[entry].as_ref()?.iter().find(|flow| flow.priority == priority)
    }

    /// The flows of a value.
    pub(crate) fn of_value(&self, value: &Key) -> impl Iterator<Item = &Arc<Flow>> {
        let found = self.find(self.hash(value), |known| known.iter().copied().eq(self.shape.masked(value)));
        found.and_then(|(_, entry)| self.stacks[entry].as_ref()).into_iter().flat_map(Stack::iter)
    }

    /// All flows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Flow>> {
        self.stacks.iter().flatten().flat_map(Stack::iter)
    }

    /// Adds a flow of this mask, in the place of one with the same value and priority.
    pub(crate) fn insert(&mut self, flow: Arc<Flow>) {
        let hash = flow.value().iter().copied().fold(SEED, mix);
        let priority = flow.priority;
        let is_new = match self.find(hash, |value| value == flow.value()) {
            Some((_, entry)) => match &mut self.stacks[entry] {
                Some(stack) => stack.insert(flow),
                None => false,
            },
            None => {
                if (self.taken + 1) * 2 > self.slots.len() {
                    self.grow();
                }
                let entry = match self.free.pop() {
                    Some(entry) => entry as usize,
                    None => {
                        self.stacks.push(None);
                        self.keys.resize(self.stacks.len() * self.shape.words.len(), 0);
                        self.stacks.len() - 1
                    }
                };
                let words = self.shape.words.len();
                self.keys[entry * words..(entry + 1) * words].copy_from_slice(flow.value());
                self.stacks[entry] = Some(Stack { top: flow, rest: Vec::new() });
                self.place(hash, entry);
                self.taken += 1;
                true
            }
        };
        if is_new {
            self.len += 1;
            *self.priorities.entry(priority).or_insert(0) += 1;
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
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; old.len() * 2];
        for slot in old.into_iter().filter(|&slot| slot != 0) {
            let entry = Self::entry(slot);
            let hash = self.value(entry).iter().copied().fold(SEED, mix);
            self.place(hash, entry);
        }
    }

    /// Removes the flow of the value and the priority of this one.
    pub(crate) fn remove(&mut self, flow: &Flow) {
        let hash = flow.value().iter().copied().fold(SEED, mix);
        let Some((at, entry)) = self.find(hash, |value| value == flow.value()) else { return };
        let Some(stack) = &mut self.stacks[entry] else { return };
        if stack.top.priority == flow.priority {
            match stack.rest.pop() {
                Some(next) => stack.top = next,
                None => {
                    self.stacks[entry] = None;
                    // Fewer than 2^32 entries: the switch limits its flows.
                    self.free.push(u32::try_from(entry).unwrap_or(u32::MAX));
                    self.taken -= 1;
                    self.close_gap(at);
                }
            }
        } else {
            let Some(place) = stack.rest.iter().position(|known| known.priority == flow.priority) else {
                return;
            };
            stack.rest.remove(place);
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
                let home = self.home(self.value(Self::entry(slot)).iter().copied().fold(SEED, mix));
                if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                    self.slots[gap] = slot;
                    gap = at;
                    break;
                }
            }
        }
    }
}

impl Stack {
    fn iter(&self) -> impl Iterator<Item = &Arc<Flow>> {
        std::iter::once(&self.top).chain(self.rest.iter().rev())
    }

    /// Adds a flow. Returns whether there was none of its priority.
    fn insert(&mut self, mut flow: Arc<Flow>) -> bool {
        if flow.priority == self.top.priority {
            self.top = flow;
            return false;
        }
        if flow.priority > self.top.priority {
            std::mem::swap(&mut self.top, &mut flow);
        }
        match self.rest.binary_search_by_key(&flow.priority, |known| known.priority) {
            Ok(at) => {
                self.rest[at] = flow;
                false
            }
            Err(at) => {
                self.rest.insert(at, flow);
                true
            }
        }
    }
}
