//! [`Buckets`]: the hash table of the keys that are longer than a word, of one cache line a bucket.
//!
//! ```text
//! words   0   1   2   3   4   5   6       7
//!         h0  l0  h1  l1  h2  l2  v0 v1   v2, then a byte each: n0 n1 n2, spilled
//! ```
//!
//! Three keys of two words, with a value v of 32 bits and a length n. A slot whose length is zero is free. A
//! key is in its first bucket or, where that was full, in its second; `spilled` counts the keys that are
//! elsewhere, so that a search in vain ends at the first bucket mostly, and at the second always. Where both
//! are full, keys that are in the way move to their other bucket (cuckoo hashing; Pagh and Rodler, 2001, with
//! buckets as Dietzfelbinger and Weidling, 2007), a bounded number of them; where that doesn't help the table
//! is outgrown and is built with another seed.
//!
//! The control plane has no second copy of the words: scattered host routes are a table's largest part, and a
//! third copy beside the two live ones would be a quarter of all that is held. It reads them in a live copy,
//! and collects beside it what an update changes ([`Words`]).

use rustc_hash::FxHashMap;
use wirespeed_fib::Outgrown;
use wirespeed_image::Changes;

use crate::hash::{Key, Seed};
use crate::sections::WIDE;
use crate::value::{Value, low};

/// Words of a bucket: a cache line.
pub const WORDS: usize = 8;
/// Keys of a bucket.
pub const SLOTS: usize = 3;
/// The word of the first two values.
pub const VALUES: usize = 2 * SLOTS;
/// The word of the third value, and from its second half on a byte for each length.
const LAST: usize = WORDS - 1;
/// The first bit of the lengths in that word.
pub const LENGTHS: u32 = 32;
/// The first bit there of the number of keys that are elsewhere.
#[allow(clippy::cast_possible_truncation)] // three
pub const SPILLED: u32 = LENGTHS + 8 * SLOTS as u32;
/// Most keys that are elsewhere.
const MOST_SPILLED: u64 = 0xff;
/// How many keys move to make room for one, one after another: enough to see some 200 slots.
const MOVES: u32 = 5;

/// What a bucket holds.
#[derive(Clone, Copy)]
pub(crate) struct Bucket(pub(crate) [u64; WORDS]);

impl Bucket {
    /// One of the table's.
    #[inline]
    pub(crate) fn of(words: &[u64], bucket: u32) -> Self {
        let from = bucket as usize * WORDS;
        Self(std::array::from_fn(|at| words[from..from + WORDS][at]))
    }

    /// The slot of a key.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<usize> {
        (0..SLOTS).find(|&slot| self.key(slot) == key)
    }

    /// [`find`](Self::find) without a branch for each slot.
    #[inline]
    pub(crate) fn slot_of(&self, key: Key) -> Option<usize> {
        let differs = |slot: usize| {
            let other = self.key(slot);
            (other.high ^ key.high) | (other.low ^ key.low) | u64::from(other.len ^ key.len)
        };
        let found = usize::from(differs(0) == 0)
            | usize::from(differs(1) == 0) << 1
            | usize::from(differs(2) == 0) << 2;
        // Keys are there once in tables that we made. A damaged one may hold a key twice: the first counts.
        (found != 0).then_some(found.trailing_zeros() as usize)
    }

    /// The key of a slot: of length 0 where it is free.
    #[inline]
    pub(crate) fn key(&self, slot: usize) -> Key {
        Key { high: self.0[2 * slot], low: self.0[2 * slot + 1], len: self.byte(slot) }
    }

    /// The value of a slot.
    #[inline]
    pub(crate) fn value(&self, slot: usize) -> Value {
        Value(low(self.0[VALUES + slot / 2] >> (32 * (slot % 2))))
    }

    /// Number of keys whose first bucket this is and that are in their second.
    #[inline]
    pub(crate) fn spilled(&self) -> u64 {
        self.0[LAST] >> SPILLED
    }

    /// A slot that is not taken.
    fn free(&self) -> Option<usize> {
        (0..SLOTS).find(|&slot| self.byte(slot) == 0)
    }

    #[inline]
    fn byte(&self, slot: usize) -> u8 {
        self.0[LAST].to_le_bytes()[LENGTHS as usize / 8 + slot]
    }
}

/// The words of all buckets: while a table is built its own, then those of a live copy and what has changed
/// since.
pub(crate) enum Words<'t> {
    Built(Vec<u64>),
    Live { table: &'t [u64], changed: FxHashMap<u32, Bucket> },
}

impl<'t> Words<'t> {
    /// Zero, of so many buckets.
    pub(crate) fn built(count: u32) -> Self {
        Self::Built(vec![0; count as usize * WORDS])
    }

    /// The words of a table, as the last update left them.
    pub(crate) fn live(table: &'t [u64]) -> Self {
        Self::Live { table, changed: FxHashMap::default() }
    }

    fn bucket(&self, bucket: u32) -> Bucket {
        match self {
            Self::Built(words) => Bucket::of(words, bucket),
            Self::Live { table, changed } => {
                changed.get(&bucket).copied().unwrap_or_else(|| Bucket::of(table, bucket))
            }
        }
    }

    fn set(&mut self, bucket: u32, at: usize, word: u64) {
        match self {
            Self::Built(words) => words[index(bucket, at)] = word,
            Self::Live { table, changed } => {
                changed.entry(bucket).or_insert_with(|| Bucket::of(table, bucket)).0[at] = word;
            }
        }
    }
}

/// What an update changes: the writes to come, and the words of the buckets with them.
pub(crate) struct Edit<'t> {
    pub(crate) changes: Changes<'t>,
    pub(crate) wide: Words<'t>,
}

impl Edit<'_> {
    /// An element has a new value.
    pub(crate) fn set(&mut self, section: wirespeed_image::SectionId, index: u64, value: u64) {
        self.changes.set(section, index, value);
    }

    fn set_word(&mut self, bucket: u32, at: usize, word: u64) {
        self.wide.set(bucket, at, word);
        self.changes.set(WIDE, index(bucket, at) as u64, word);
    }
}

/// Where keys go, and how full it is.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    seed: Seed,
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
    /// Empty ones.
    pub(crate) fn new(seed: Seed, count: u32) -> Self {
        // Past that making room takes more and more moves; at 24 of 25 there often is none.
        let most = count as usize * SLOTS * 11 / 12;
        Self { seed, count, len: 0, most: most.max(1) }
    }

    /// How many buckets so many keys are to have: they take five sixths of the slots then, or in a table that
    /// is to be `tight` as many as they may.
    pub(crate) fn count_for(keys: usize, tight: bool) -> usize {
        if tight { keys * 4 / 11 + 2 } else { keys * 2 / 5 + 16 }
    }

    /// Where a key is.
    pub(crate) fn find(&self, key: Key, words: &Words<'_>) -> Option<Spot> {
        let hash = self.seed.of_wide(key);
        let first = hash.first(self.count);
        let bucket = words.bucket(first);
        if let Some(slot) = bucket.find(key) {
            return Some(Spot { bucket: first, slot });
        }
        if bucket.spilled() == 0 {
            return None;
        }
        let second = hash.second(self.count);
        words.bucket(second).find(key).map(|slot| Spot { bucket: second, slot })
    }

    /// The value of a key.
    pub(crate) fn value(Spot { bucket, slot }: Spot, words: &Words<'_>) -> Value {
        words.bucket(bucket).value(slot)
    }

    /// Gives a key another value.
    pub(crate) fn set_value(Spot { bucket, slot }: Spot, value: Value, edit: &mut Edit<'_>) {
        let (at, shift) = (VALUES + slot / 2, 32 * (slot % 2));
        let word = edit.wide.bucket(bucket).0[at];
        let others = word & !(u64::from(u32::MAX) << shift);
        edit.set_word(bucket, at, others | u64::from(value.0) << shift);
    }

    /// Puts in a key that is not there. After an error nothing is where it was.
    pub(crate) fn insert(&mut self, key: Key, value: Value, edit: &mut Edit<'_>) -> Result<(), Outgrown> {
        if self.len >= self.most {
            return Err(Outgrown("room for keys"));
        }
        let hash = self.seed.of_wide(key);
        let (first, second) = (hash.first(self.count), hash.second(self.count));
        let spot = [first, second]
            .into_iter()
            .find_map(|bucket| free(bucket, edit))
            .or_else(|| (0..MOVES).find_map(|moves| self.make_room(first, moves, edit)))
            .or_else(|| self.make_room(second, MOVES, edit))
            .ok_or(Outgrown("two buckets of a key"))?;
        if spot.bucket != first {
            if edit.wide.bucket(first).spilled() == MOST_SPILLED {
                return Err(Outgrown("keys elsewhere of a bucket"));
            }
            spill(first, 1, edit);
        }
        put(spot, key, value, edit);
        self.len += 1;
        Ok(())
    }

    /// Takes out a key.
    pub(crate) fn remove(&mut self, spot: Spot, edit: &mut Edit<'_>) {
        let first = self.seed.of_wide(edit.wide.bucket(spot.bucket).key(spot.slot)).first(self.count);
        if first != spot.bucket {
            spill(first, -1, edit);
        }
        put(spot, Key { high: 0, low: 0, len: 0 }, Value::default(), edit);
        self.len -= 1;
    }

    /// A slot of a full bucket, after what was there has moved to its other bucket; moves up to `moves` keys
    /// more to make room there.
    fn make_room(&self, bucket: u32, moves: u32, edit: &mut Edit<'_>) -> Option<Spot> {
        for slot in 0..SLOTS {
            let from = Spot { bucket, slot };
            let Some(other) = self.other(from, edit) else { continue };
            if let Some(to) = free(other, edit).filter(|_| other != bucket) {
                return Some(self.shift(from, to, edit));
            }
        }
        for slot in 0..SLOTS {
            let from = Spot { bucket, slot };
            let Some(other) = self.other(from, edit) else { continue };
            if moves == 0 || other == bucket {
                continue;
            }
            if let Some(to) = self.make_room(other, moves - 1, edit) {
                // On the way there something may have left this bucket already.
                return free(bucket, edit).or_else(|| Some(self.shift(from, to, edit)));
            }
        }
        None
    }

    /// Moves a key to its other bucket; the slot that it leaves.
    fn shift(&self, from: Spot, to: Spot, edit: &mut Edit<'_>) -> Spot {
        let bucket = edit.wide.bucket(from.bucket);
        let (key, value) = (bucket.key(from.slot), bucket.value(from.slot));
        let first = self.seed.of_wide(key).first(self.count);
        spill(first, if first == from.bucket { 1 } else { -1 }, edit);
        put(to, key, value, edit);
        put(from, Key { high: 0, low: 0, len: 0 }, Value::default(), edit);
        from
    }

    /// The other bucket of a key that is in one; `None` where no key is there, or where it has to stay as no
    /// more can be counted as elsewhere.
    fn other(&self, spot: Spot, edit: &Edit<'_>) -> Option<u32> {
        let bucket = edit.wide.bucket(spot.bucket);
        let key = bucket.key(spot.slot);
        if key.len == 0 || bucket.spilled() == MOST_SPILLED {
            return None;
        }
        let hash = self.seed.of_wide(key);
        Some(match hash.first(self.count) {
            first if first == spot.bucket => hash.second(self.count),
            first => first,
        })
    }
}

/// A slot of a bucket that is not taken.
fn free(bucket: u32, edit: &Edit<'_>) -> Option<Spot> {
    edit.wide.bucket(bucket).free().map(|slot| Spot { bucket, slot })
}

/// Writes a key and its value to a slot.
fn put(spot: Spot, key: Key, value: Value, edit: &mut Edit<'_>) {
    let Spot { bucket, slot } = spot;
    edit.set_word(bucket, 2 * slot, key.high);
    edit.set_word(bucket, 2 * slot + 1, key.low);
    let shift = LENGTHS + 8 * u32::try_from(slot).expect("one of three");
    let word = edit.wide.bucket(bucket).0[LAST] & !(0xff << shift);
    edit.set_word(bucket, LAST, word | u64::from(key.len) << shift);
    Buckets::set_value(spot, value, edit);
}

fn spill(bucket: u32, more: i64, edit: &mut Edit<'_>) {
    let word = edit.wide.bucket(bucket).0[LAST];
    edit.set_word(bucket, LAST, word.wrapping_add_signed(more << SPILLED));
}

/// The index of a word of a bucket.
#[inline]
pub(crate) fn index(bucket: u32, word: usize) -> usize {
    bucket as usize * WORDS + word
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A damaged table may hold a key twice, or look for a length of zero: both ways take the first slot.
    #[test]
    fn both_ways_find_the_first_slot() {
        for lens in [[0, 0, 0], [56, 0, 0], [56, 56, 0], [0, 56, 56], [56, 56, 56]] {
            let mut bucket = Bucket([0; WORDS]);
            for (slot, len) in lens.into_iter().enumerate() {
                bucket.0[LAST] |= len << (LENGTHS as usize + 8 * slot);
            }
            for len in [0, 56, 57] {
                let key = Key { high: 0, low: 0, len };
                assert_eq!(bucket.slot_of(key), bucket.find(key), "{len} in {lens:?}");
            }
        }
    }
}
