//! [`Slots`]: a hash table in which a key can be in one place only, as the control plane keeps it beside the
//! image.
//!
//! ```text
//! hash of a key, 49 bits     b bits       b − 2 bits
//!                           ┌────────────┬───────────┬────────┐   rest: the last 31 bits, which
//!                           │ home       │ group     │        │         include the group, and a one
//!                           └────────────┴───────────┴────────┘
//! pilots u8  × 2^(b−2)      p = pilots[group]
//! slots  u64 × 2^b          slots[home + p × rest] = rest, value
//! ```
//!
//! Keys are in groups of some two. A group has a pilot, which takes each of its keys to a slot of its own
//! (perfect hashing by displacement: Fox, Heath, Chen and Daoud, "Practical minimal perfect hash functions
//! for large databases", 1992). So a search is two reads, in vain or not: the pilot and the slot.
//!
//! A slot has the rest of a key's hash in place of the key, and that is enough: the hash is one to one, and
//! two keys with the same rest are in the same group, have the same pilot, and come to the same slot only if
//! their homes are the same too. A free slot is zero, which no rest is.
//!
//! A key whose slot is taken gives its group another pilot. Where none leads to free slots alone, the group
//! takes the one that is in the way of fewest keys, and the groups of these look for new ones, a bounded
//! number of them.

use wirespeed_fib::Outgrown;

use crate::hash::{HASH_BITS, Seed, group, rest, slot};
use crate::sections::PILOTS;
use crate::sections::SLOTS;
use crate::value::Value;
use wirespeed_image::Changes;

/// Pilots to choose from: a byte's.
const CHOICE: u32 = 1 << 8;
/// Groups that may move to make room for a key.
const MOVES: u32 = 64;
/// Fewest and most bits of the number of a slot: with fewer the rest is not all that is left, with more it
/// has not all of the group.
pub(crate) const FEWEST_BITS: u32 = HASH_BITS - 31;
pub(crate) const MOST_BITS: u32 = (HASH_BITS + 2) / 2;
/// The end of a group's list.
const END: u32 = u32::MAX;
/// No key is in this slot.
const FREE: u32 = u32::MAX - 1;

/// The slots, and which keys are one group.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    seed: Seed,
    /// Bits of the number of a slot.
    bits: u32,
    words: Vec<u64>,
    pilots: Vec<u8>,
    /// The first slot of each group, or [`END`].
    firsts: Vec<u32>,
    /// The next slot of each slot's group, [`END`] or [`FREE`].
    nexts: Vec<u32>,
    /// Number of keys.
    len: usize,
}

/// A key that is not in its slot.
#[derive(Clone, Copy)]
struct Loose {
    hash: u64,
    value: u32,
}

impl Slots {
    /// Empty ones, 2 to the power of `bits`.
    pub(crate) fn new(seed: Seed, bits: u32) -> Self {
        assert!((FEWEST_BITS..=MOST_BITS).contains(&bits), "a number of slots that there can be");
        Self {
            seed,
            bits,
            words: vec![0; 1 << bits],
            pilots: vec![0; 1 << (bits - 2)],
            firsts: vec![END; 1 << (bits - 2)],
            nexts: vec![FREE; 1 << bits],
            len: 0,
        }
    }

    /// The bits of a number of slots of which `keys` take no more than three fifths, or in a table that is to
    /// be `tight` as many as they may; `None` where that is too many.
    pub(crate) fn bits_for(keys: usize, tight: bool) -> Option<u32> {
        let most = |bits: u32| if tight { Self::most(bits) } else { (3 << bits) / 5 };
        (FEWEST_BITS..=MOST_BITS).find(|&bits| keys <= most(bits))
    }

    /// Keys that so many slots take: past that groups are in each other's way.
    const fn most(bits: u32) -> usize {
        (7 << bits) / 10
    }

    /// All slots.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// All pilots.
    pub(crate) fn pilots(&self) -> &[u8] {
        &self.pilots
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        let slots = self.words.capacity() * (size_of::<u64>() + size_of::<u32>());
        (slots + self.pilots.capacity() * (1 + size_of::<u32>())) as u64
    }

    /// Where a word is.
    pub(crate) fn find(&self, word: u64) -> Option<u32> {
        let hash = self.seed.of_word(word);
        let at = self.slot(hash);
        (self.nexts[at as usize] != FREE && self.words[at as usize] >> 32 == u64::from(rest(hash)))
            .then_some(at)
    }

    /// The value in a slot.
    pub(crate) fn value(&self, at: u32) -> Value {
        Value(crate::value::low(self.words[at as usize]))
    }

    /// Gives the key of a slot another value.
    pub(crate) fn set_value(&mut self, at: u32, value: Value, changes: &mut Changes) {
        let word = self.words[at as usize] >> 32 << 32 | u64::from(value.0);
        self.set(at, word, changes);
    }

    /// Puts in a word that is not there. After an error nothing is where it was.
    pub(crate) fn insert(&mut self, word: u64, value: Value, changes: &mut Changes) -> Result<(), Outgrown> {
        if self.len >= Self::most(self.bits) {
            return Err(Outgrown("room for keys"));
        }
        self.len += 1;
        let loose = Loose { hash: self.seed.of_word(word), value: value.0 };
        let at = self.slot(loose.hash);
        if self.nexts[at as usize] == FREE {
            self.put(at, loose, changes);
            return Ok(());
        }
        let mut keys = self.loosen(group(loose.hash, self.bits), changes);
        keys.push(loose);
        let mut groups = vec![keys];
        for _ in 0..MOVES {
            let Some(keys) = groups.pop() else { return Ok(()) };
            self.settle(keys, &mut groups, changes)?;
        }
        if groups.is_empty() { Ok(()) } else { Err(Outgrown("a slot for a key")) }
    }

    /// Takes out the key of a slot.
    pub(crate) fn remove(&mut self, at: u32, changes: &mut Changes) {
        self.len -= 1;
        let group = group(self.hash(at), self.bits) as usize;
        let next = self.nexts[at as usize];
        if self.firsts[group] == at {
            self.firsts[group] = next;
        } else {
            let mut before = self.firsts[group];
            while self.nexts[before as usize] != at {
                before = self.nexts[before as usize];
            }
            self.nexts[before as usize] = next;
        }
        self.nexts[at as usize] = FREE;
        self.set(at, 0, changes);
    }

    /// Puts in all keys of a group, by another pilot; those of groups that are in the way are taken out.
    fn settle(
        &mut self,
        keys: Vec<Loose>,
        in_the_way: &mut Vec<Vec<Loose>>,
        changes: &mut Changes,
    ) -> Result<(), Outgrown> {
        let own = group(keys[0].hash, self.bits);
        // The one it had is in the way of what took its place.
        let had = u32::from(self.pilots[own as usize]);
        let pilot = (1..=CHOICE)
            .map(|step| (had + step) % CHOICE)
            .filter_map(|pilot| Some((self.hurt(&keys, pilot)?, pilot)))
            .scan(false, |over, (hurt, pilot)| (!std::mem::replace(over, hurt == 0)).then_some((hurt, pilot)))
            .min()
            .ok_or(Outgrown("a slot for a key"))?
            .1;
        self.pilots[own as usize] = u8::try_from(pilot).expect("one of 256");
        changes.set(PILOTS, own.into(), pilot.into());
        for &key in &keys {
            let at = self.slot(key.hash);
            if self.nexts[at as usize] != FREE {
                let other = group(self.hash(at), self.bits);
                in_the_way.push(self.loosen(other, changes));
            }
        }
        for key in keys {
            self.put(self.slot(key.hash), key, changes);
        }
        Ok(())
    }

    /// How many keys have to move for those of a group to go where a pilot takes them; `None` where two of it
    /// go to one slot.
    fn hurt(&self, keys: &[Loose], pilot: u32) -> Option<u32> {
        let mut hurt = 0;
        for (at, key) in keys.iter().enumerate() {
            let to = slot(key.hash, pilot, self.bits);
            if keys[..at].iter().any(|other| slot(other.hash, pilot, self.bits) == to) {
                return None;
            }
            if self.nexts[to as usize] != FREE {
                hurt += self.members(group(self.hash(to), self.bits)).map(|_| 1).sum::<u32>();
            }
        }
        Some(hurt)
    }

    /// Takes the keys of a group out of their slots.
    fn loosen(&mut self, group: u32, changes: &mut Changes) -> Vec<Loose> {
        let slots: Vec<_> = self.members(group).collect();
        self.firsts[group as usize] = END;
        let mut loosened = |at: u32| {
            let loose = Loose { hash: self.hash(at), value: self.value(at).0 };
            self.nexts[at as usize] = FREE;
            self.set(at, 0, changes);
            loose
        };
        slots.into_iter().map(&mut loosened).collect()
    }

    /// The slots of a group.
    fn members(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        let here = |at: u32| (at != END).then_some(at);
        std::iter::successors(here(self.firsts[group as usize]), move |&at| here(self.nexts[at as usize]))
    }

    /// Puts a key in a slot that is free.
    fn put(&mut self, at: u32, key: Loose, changes: &mut Changes) {
        let first = &mut self.firsts[group(key.hash, self.bits) as usize];
        self.nexts[at as usize] = std::mem::replace(first, at);
        self.set(at, u64::from(rest(key.hash)) << 32 | u64::from(key.value), changes);
    }

    /// The slot where a key is, if it is there.
    fn slot(&self, hash: u64) -> u32 {
        slot(hash, self.pilots[group(hash, self.bits) as usize].into(), self.bits)
    }

    /// The hash of the key in a slot.
    fn hash(&self, at: u32) -> u64 {
        crate::hash::whole(self.words[at as usize] >> 32, at, self.bits, |group| {
            self.pilots[group as usize].into()
        })
    }

    fn set(&mut self, at: u32, word: u64, changes: &mut Changes) {
        self.words[at as usize] = word;
        changes.set(SLOTS, at.into(), word);
    }
}
