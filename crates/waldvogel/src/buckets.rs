//! [`Buckets`]: a hash table of one cache line a bucket, as the control plane keeps it beside the image.
//!
//! ```text
//! words   0   1   2   3   4   5      6      7
//! narrow  k0  k1  k2  k3  k4  v0 v1  v2 v3  v4 spilled        5 keys of a word, 5 values of half a word
//! wide    h0  l0  n0  h1  l1  n1     -      -  spilled        2 keys of two words and, in n, the length and the value
//! ```
//!
//! A key is in its first bucket or, where that was full, in its second; `spilled` counts the keys that are
//! elsewhere, so that a search in vain ends at the first bucket nearly always, and at the second always. Where both
//! are full, keys that are in the way move to their other bucket (cuckoo hashing; Pagh and Rodler, 2001, with
//! buckets as Dietzfelbinger and Weidling, 2007), a bounded number of them; where that doesn't help the table is
//! outgrown and is built with another seed.

use wirespeed_fib::Outgrown;
use wirespeed_image::SectionId;

use crate::changes::Changes;
use crate::hash::{Hash, Key, Seed, word};
use crate::value::Value;

/// Words of a bucket: a cache line.
pub(crate) const WORDS: usize = 8;

/// What the keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Words.
    Narrow,
    /// Longer than a word.
    Wide,
}

impl Kind {
    /// Keys of a bucket.
    pub(crate) const fn slots(self) -> usize {
        match self {
            Self::Narrow => 5,
            Self::Wide => 2,
        }
    }

    /// How many keys move to make room for one, one after another: enough to see some 600 or some 100 slots.
    const fn moves(self) -> u32 {
        match self {
            Self::Narrow => 3,
            Self::Wide => 5,
        }
    }

    /// Where the value of a slot is: the word, and by how many bits it is shifted there.
    pub(crate) const fn value_at(self, slot: usize) -> (usize, u32) {
        match self {
            Self::Narrow => (5 + slot / 2, if slot.is_multiple_of(2) { 0 } else { 32 }),
            Self::Wide => (3 * slot + 2, 0),
        }
    }
}

/// The buckets, and how full they are.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    kind: Kind,
    section: SectionId,
    seed: Seed,
    words: Vec<u64>,
    /// Number of buckets.
    count: u32,
    /// Number of keys.
    len: usize,
    /// Most keys.
    most: usize,
}

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    bucket: u32,
    slot: usize,
}

impl Buckets {
    /// Empty ones, with room for at least so many keys.
    pub(crate) fn new(kind: Kind, section: SectionId, seed: Seed, count: u32) -> Self {
        let slots = count as usize * kind.slots();
        // Past that making room takes more and more moves.
        let most = match kind {
            Kind::Narrow => slots * 23 / 25,
            Kind::Wide => slots * 4 / 5,
        };
        Self { kind, section, seed, words: vec![0; count as usize * WORDS], count, len: 0, most: most.max(1) }
    }

    /// All words.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        (self.words.capacity() * size_of::<u64>()) as u64
    }

    /// Where a key is.
    pub(crate) fn find(&self, key: Key) -> Option<Spot> {
        let hash = self.hash(key);
        let first = hash.first(self.count);
        let within = |bucket| {
            let slot = (0..self.kind.slots()).find(|&slot| self.holds(Spot { bucket, slot }, key))?;
            Some(Spot { bucket, slot })
        };
        within(first).or_else(|| if self.spilled(first) > 0 { within(hash.second(self.count)) } else { None })
    }

    /// The value of a key.
    pub(crate) fn value(&self, spot: Spot) -> Value {
        let (word, shift) = self.kind.value_at(spot.slot);
        Value(low(self.words[index(spot.bucket, word)] >> shift))
    }

    /// Gives a key another value.
    pub(crate) fn set_value(&mut self, spot: Spot, value: Value, changes: &mut Changes) {
        let (word, shift) = self.kind.value_at(spot.slot);
        let at = index(spot.bucket, word);
        let others = self.words[at] & !(u64::from(u32::MAX) << shift);
        self.set(at, others | u64::from(value.0) << shift, changes);
    }

    /// Puts in a key that is not there. After an error nothing is where it was.
    pub(crate) fn insert(&mut self, key: Key, value: Value, changes: &mut Changes) -> Result<(), Outgrown> {
        if self.len >= self.most {
            return Err(Outgrown("room for keys"));
        }
        let hash = self.hash(key);
        let (first, second) = (hash.first(self.count), hash.second(self.count));
        let spot = [first, second]
            .into_iter()
            .find_map(|bucket| self.free(bucket))
            .or_else(|| (0..self.kind.moves()).find_map(|moves| self.make_room(first, moves, changes)))
            .or_else(|| self.make_room(second, self.kind.moves(), changes))
            .ok_or(Outgrown("two buckets of a key"))?;
        if spot.bucket != first {
            self.add_spilled(first, 1, changes);
        }
        self.put(spot, key, value, changes);
        self.len += 1;
        Ok(())
    }

    /// Takes out a key.
    pub(crate) fn remove(&mut self, spot: Spot, changes: &mut Changes) {
        let first = self.hash(self.key(spot)).first(self.count);
        if first != spot.bucket {
            self.add_spilled(first, -1, changes);
        }
        self.clear(spot, changes);
        self.len -= 1;
    }

    /// A slot of a full bucket, after what was there has moved to its other bucket; moves up to `moves` keys more to
    /// make room there.
    fn make_room(&mut self, bucket: u32, moves: u32, changes: &mut Changes) -> Option<Spot> {
        for slot in 0..self.kind.slots() {
            let from = Spot { bucket, slot };
            let other = self.other(from);
            if let Some(to) = self.free(other).filter(|_| other != bucket) {
                return Some(self.shift(from, to, changes));
            }
        }
        for slot in 0..self.kind.slots() {
            let from = Spot { bucket, slot };
            let other = self.other(from);
            if moves == 0 || other == bucket {
                continue;
            }
            if let Some(to) = self.make_room(other, moves - 1, changes) {
                // On the way there something may have left this bucket already.
                return self.free(bucket).or_else(|| Some(self.shift(from, to, changes)));
            }
        }
        None
    }

    /// Moves a key to its other bucket; the slot that it leaves.
    fn shift(&mut self, from: Spot, to: Spot, changes: &mut Changes) -> Spot {
        let (key, value) = (self.key(from), self.value(from));
        let first = self.hash(key).first(self.count);
        self.add_spilled(first, if first == from.bucket { 1 } else { -1 }, changes);
        self.put(to, key, value, changes);
        self.clear(from, changes);
        from
    }

    /// The other bucket of a key that is in one.
    fn other(&self, spot: Spot) -> u32 {
        let hash = self.hash(self.key(spot));
        match hash.first(self.count) {
            first if first == spot.bucket => hash.second(self.count),
            first => first,
        }
    }

    /// A slot of a bucket that is not taken.
    fn free(&self, bucket: u32) -> Option<Spot> {
        let slot = (0..self.kind.slots()).find(|&slot| match self.kind {
            Kind::Narrow => self.words[index(bucket, slot)] == 0,
            Kind::Wide => self.words[index(bucket, 3 * slot + 2)] == 0,
        })?;
        Some(Spot { bucket, slot })
    }

    fn holds(&self, spot: Spot, key: Key) -> bool {
        let at = |word| self.words[index(spot.bucket, word)];
        match self.kind {
            Kind::Narrow => at(spot.slot) == word(key.high, key.len),
            Kind::Wide => {
                let first = 3 * spot.slot;
                (at(first), at(first + 1), at(first + 2) >> 32) == (key.high, key.low, u64::from(key.len))
            }
        }
    }

    /// The key of a taken slot.
    fn key(&self, spot: Spot) -> Key {
        let at = |word| self.words[index(spot.bucket, word)];
        match self.kind {
            Kind::Narrow => {
                let word = at(spot.slot);
                let after = u8::try_from(word.trailing_zeros()).expect("a count of bits");
                Key { high: word & (word - 1), low: 0, len: 63 - after }
            }
            Kind::Wide => {
                let first = 3 * spot.slot;
                let len = u8::try_from(at(first + 2) >> 32).expect("a length");
                Key { high: at(first), low: at(first + 1), len }
            }
        }
    }

    fn put(&mut self, spot: Spot, key: Key, value: Value, changes: &mut Changes) {
        match self.kind {
            Kind::Narrow => {
                self.set(index(spot.bucket, spot.slot), word(key.high, key.len), changes);
                self.set_value(spot, value, changes);
            }
            Kind::Wide => {
                let first = index(spot.bucket, 3 * spot.slot);
                self.set(first, key.high, changes);
                self.set(first + 1, key.low, changes);
                self.set(first + 2, u64::from(key.len) << 32 | u64::from(value.0), changes);
            }
        }
    }

    fn clear(&mut self, spot: Spot, changes: &mut Changes) {
        match self.kind {
            Kind::Narrow => {
                self.set(index(spot.bucket, spot.slot), 0, changes);
                self.set_value(spot, Value::default(), changes);
            }
            Kind::Wide => {
                let first = index(spot.bucket, 3 * spot.slot);
                (first..first + 3).for_each(|at| self.set(at, 0, changes));
            }
        }
    }

    fn spilled(&self, bucket: u32) -> u32 {
        low(self.words[index(bucket, 7)] >> 32)
    }

    fn add_spilled(&mut self, bucket: u32, more: i32, changes: &mut Changes) {
        let spilled = self.spilled(bucket).wrapping_add_signed(more);
        let at = index(bucket, 7);
        self.set(at, u64::from(low(self.words[at])) | u64::from(spilled) << 32, changes);
    }

    fn set(&mut self, at: usize, word: u64, changes: &mut Changes) {
        self.words[at] = word;
        changes.set(self.section, at as u64, word);
    }

    fn hash(&self, key: Key) -> Hash {
        match self.kind {
            Kind::Narrow => self.seed.of_word(word(key.high, key.len)),
            Kind::Wide => self.seed.of_wide(key),
        }
    }
}

/// The index of a word of a bucket.
#[inline]
pub(crate) fn index(bucket: u32, word: usize) -> usize {
    bucket as usize * WORDS + word
}

/// The lower half of a word.
#[inline]
#[allow(clippy::cast_possible_truncation)] // meant
pub(crate) fn low(word: u64) -> u32 {
    word as u32
}
