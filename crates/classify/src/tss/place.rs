//! [`Slots`]: the control plane's own copy of all slots, and where a value finds its place among three
//! (section 4.2).
//!
//! A value goes to a vacant one of its three slots. Where there is none it takes one of them at random, and
//! whoever was there goes on in the same way. That ends soon in a table that is five sixths full; after
//! [`WALK`] steps the table is made larger.

use std::collections::{BTreeSet, HashMap};

use rustc_hash::FxBuildHasher;

use super::hash::{Keys, SUBTABLES};
use super::layout::{MOST_SLOT, joined, slot_elements, table_slots, value_elements};
use crate::rank::Rank;
use crate::tuple::Tuple;

/// Values that may make way for one, one after the other.
const WALK: u32 = 200;

/// A value as slots hold it.
pub(super) type Value = [u64; MOST_SLOT];

/// The value of a tuple.
#[inline(always)]
pub(super) fn value_of<T: Tuple>(tuple: &T) -> Value {
    let mut value = [0; MOST_SLOT];
    let (pairs, odd) = tuple.words().as_chunks::<2>();
    for (element, pair) in value.iter_mut().zip(pairs) {
        *element = joined(*pair);
    }
    if let [last] = odd {
        value[pairs.len()] = u64::from(*last);
    }
    value
}

/// What has a slot.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) rank: Rank,
    /// The other rules with this pattern, where there are any.
    pub(super) others: Option<BTreeSet<Rank>>,
}

/// A class's part of the slots, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) class: u32,
    pub(super) first: u32,
    pub(super) d: u32,
}

impl Part {
    /// How many slots.
    pub(super) const fn slots(self) -> u32 {
        table_slots(self.d)
    }
}

/// All slots.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    keys: Keys,
    words: usize,
    elements: Vec<u64>,
    /// The worse rules of the pattern that a slot has.
    others: HashMap<u32, BTreeSet<Rank>, FxBuildHasher>,
    /// Slots that may be others than before, some of them more than once.
    pub(super) dirty: Vec<u32>,
    chance: u64,
}

impl Slots {
    /// None yet, for tuples of so many words.
    pub(super) fn new(keys: Keys, words: usize) -> Self {
        Self { keys, words, elements: Vec::new(), others: HashMap::default(), dirty: Vec::new(), chance: 1 }
    }

    /// Grows to so many slots; new ones are vacant.
    pub(super) fn resize(&mut self, slots: usize) {
        self.elements.resize(slots * slot_elements(self.words), 0);
    }

    /// The elements of all.
    pub(super) fn elements(&self) -> &[u64] {
        &self.elements
    }

    /// The elements of one.
    #[inline(always)]
    pub(super) fn slot(&self, slot: u32) -> &[u64] {
        let elements = slot_elements(self.words);
        &self.elements[slot as usize * elements..][..elements]
    }

    /// The rank in a slot.
    #[inline(always)]
    pub(super) fn rank(&self, slot: u32) -> Rank {
        let elements = slot_elements(self.words);
        Rank::from_bits(self.elements[(slot as usize + 1) * elements - 1])
    }

    /// The slots that a hash leads to.
    #[inline(always)]
    pub(super) fn places(&self, part: Part, hash: super::hash::Hash) -> [u32; SUBTABLES] {
        let [a, b, c] = self.keys.places(hash, part.d);
        [part.first + a, part.first + part.d + b, part.first + 2 * part.d + c]
    }

    /// The one of these slots that has a value.
    #[inline(always)]
    pub(super) fn find(&self, places: [u32; SUBTABLES], value: &Value) -> Option<u32> {
        let elements = slot_elements(self.words);
        for slot in places {
            let there = self.slot(slot);
            let mut differ = 0;
            for at in 0..elements - 1 {
                differ |= there[at] ^ value[at];
            }
            if differ == 0 && there[elements - 1] != 0 {
                return Some(slot);
            }
        }
        None
    }

    /// The slot has another rank.
    pub(super) fn set_rank(&mut self, slot: u32, rank: Rank) {
        let elements = slot_elements(self.words);
        self.elements[(slot as usize + 1) * elements - 1] = rank.bits();
        self.dirty.push(slot);
    }

    /// The other rules of a slot's pattern.
    pub(super) fn others(&mut self, slot: u32) -> &mut BTreeSet<Rank> {
        self.others.entry(slot).or_default()
    }

    /// Takes the best of the other rules of a slot's pattern.
    pub(super) fn next_best(&mut self, slot: u32) -> Option<Rank> {
        if self.others.is_empty() {
            return None;
        }
        let best = self.others.get_mut(&slot)?.pop_last();
        self.tidy(slot);
        best
    }

    /// Takes one of the other rules; whether it was there.
    pub(super) fn forget(&mut self, slot: u32, rank: Rank) -> bool {
        let found = self.others.get_mut(&slot).is_some_and(|others| others.remove(&rank));
        self.tidy(slot);
        found
    }

    fn tidy(&mut self, slot: u32) {
        if self.others.get(&slot).is_some_and(BTreeSet::is_empty) {
            self.others.remove(&slot);
        }
    }

    /// Places an entry that isn't there; gives one back that found no place, which need not be that one.
    pub(super) fn place(&mut self, part: Part, mut entry: Entry) -> Result<(), Entry> {
        let mut last = u32::MAX;
        for _ in 0..WALK {
            let hash = self.hash(part.class, &entry.value);
            let places = self.places(part, hash);
            if let Some(&vacant) = places.iter().find(|&&slot| self.rank(slot) == Rank::NONE) {
                self.put(vacant, entry);
                return Ok(());
            }
            // Not back to where it came from.
            let mut slot = places[self.draw()];
            if slot == last {
                slot = places[(places.iter().position(|&place| place == slot).unwrap_or(0) + 1) % SUBTABLES];
            }
            let other = self.take(slot);
            self.put(slot, entry);
            (entry, last) = (other, slot);
        }
        Err(entry)
    }

    /// Takes what a slot has out of it. It isn't vacant.
    pub(super) fn take(&mut self, slot: u32) -> Entry {
        let mut value = [0; MOST_SLOT];
        let len = value_elements(self.words);
        value[..len].copy_from_slice(&self.slot(slot)[..len]);
        let rank = self.rank(slot);
        let others = if self.others.is_empty() { None } else { self.others.remove(&slot) };
        self.set_rank(slot, Rank::NONE);
        Entry { value, rank, others }
    }

    /// The hash of a value of a class.
    #[inline(always)]
    pub(super) fn hash(&self, class: u32, value: &Value) -> super::hash::Hash {
        let mut words = [0; 2 * MOST_SLOT];
        for (pair, &element) in words.as_chunks_mut::<2>().0.iter_mut().zip(value) {
            *pair = super::layout::halves(element);
        }
        self.keys.hash(class, &words[..self.words])
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        let others: usize = self.others.values().map(|others| others.len() * size_of::<Rank>()).sum();
        let map = self.others.capacity() * size_of::<(u32, BTreeSet<Rank>)>();
        (8 * self.elements.capacity() + 4 * self.dirty.capacity() + map + others) as u64
    }

    #[inline(always)]
    fn put(&mut self, slot: u32, entry: Entry) {
        let (elements, len) = (slot_elements(self.words), value_elements(self.words));
        let to = &mut self.elements[slot as usize * elements..][..elements];
        to[..len].copy_from_slice(&entry.value[..len]);
        to[elements - 1] = entry.rank.bits();
        if let Some(others) = entry.others {
            self.others.insert(slot, others);
        }
        self.dirty.push(slot);
    }

    /// A subtable at random.
    fn draw(&mut self) -> usize {
        self.chance = self.chance.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        usize::try_from((self.chance >> 33) % SUBTABLES as u64).expect("below three")
    }
}
