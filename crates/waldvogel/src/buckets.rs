//! [`Buckets`]: the hash table of the keys that are longer than a word, of one cache line a bucket, as the control
//! plane keeps it beside the image.
//!
//! ```text
//! words   0   1   2   3   4   5   6   7
//!         h0  l0  n0  h1  l1  n1  -   - spilled        2 keys of two words and, in n, the length and the value
//! ```
//!
//! A key is in its first bucket or, where that was full, in its second; `spilled` counts the keys that are
//! elsewhere, so that a search in vain ends at the first bucket nearly always, and at the second always. Where both
//! are full, keys that are in the way move to their other bucket (cuckoo hashing; Pagh and Rodler, 2001, with
//! buckets as Dietzfelbinger and Weidling, 2007), a bounded number of them; where that doesn't help the table is
//! outgrown and is built with another seed.

use wirespeed_fib::Outgrown;

use crate::hash::{Key, Seed};
use crate::layout::WIDE;
use crate::value::Value;
use wirespeed_image::Changes;

/// Words of a bucket: a cache line.
pub const WORDS: usize = 8;

/// Keys of a bucket.
pub const SLOTS: usize = 2;
/// How many keys move to make room for one, one after another: enough to see some 100 slots.
const MOVES: u32 = 5;

/// The buckets, and how full they are.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
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
    pub(crate) fn new(seed: Seed, count: u32) -> Self {
        // Past that making room takes more and more moves.
        let most = count as usize * SLOTS * 4 / 5;
        Self { seed, words: vec![0; count as usize * WORDS], count, len: 0, most: most.max(1) }
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
        let hash = self.seed.of_wide(key);
        let first = hash.first(self.count);
        let within = |bucket| {
            let slot = (0..SLOTS).find(|&slot| self.holds(Spot { bucket, slot }, key))?;
            Some(Spot { bucket, slot })
        };
        within(first).or_else(|| if self.spilled(first) > 0 { within(hash.second(self.count)) } else { None })
    }

    /// The value of a key.
    pub(crate) fn value(&self, spot: Spot) -> Value {
        Value(low(self.words[index(spot.bucket, 3 * spot.slot + 2)]))
    }

    /// Gives a key another value.
    pub(crate) fn set_value(&mut self, spot: Spot, value: Value, changes: &mut Changes) {
        let at = index(spot.bucket, 3 * spot.slot + 2);
        self.set(at, self.words[at] >> 32 << 32 | u64::from(value.0), changes);
    }

    /// Puts in a key that is not there. After an error nothing is where it was.
    pub(crate) fn insert(&mut self, key: Key, value: Value, changes: &mut Changes) -> Result<(), Outgrown> {
        if self.len >= self.most {
            return Err(Outgrown("room for keys"));
        }
        let hash = self.seed.of_wide(key);
        let (first, second) = (hash.first(self.count), hash.second(self.count));
        let spot = [first, second]
            .into_iter()
            .find_map(|bucket| self.free(bucket))
            .or_else(|| (0..MOVES).find_map(|moves| self.make_room(first, moves, changes)))
            .or_else(|| self.make_room(second, MOVES, changes))
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
        let first = self.seed.of_wide(self.key(spot)).first(self.count);
        if first != spot.bucket {
            self.add_spilled(first, -1, changes);
        }
        self.clear(spot, changes);
        self.len -= 1;
    }

    /// A slot of a full bucket, after what was there has moved to its other bucket; moves up to `moves` keys more to
    /// make room there.
    fn make_room(&mut self, bucket: u32, moves: u32, changes: &mut Changes) -> Option<Spot> {
        for slot in 0..SLOTS {
            let from = Spot { bucket, slot };
            let other = self.other(from);
            if let Some(to) = self.free(other).filter(|_| other != bucket) {
                return Some(self.shift(from, to, changes));
            }
        }
        for slot in 0..SLOTS {
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
        let first = self.seed.of_wide(key).first(self.count);
        self.add_spilled(first, if first == from.bucket { 1 } else { -1 }, changes);
        self.put(to, key, value, changes);
        self.clear(from, changes);
        from
    }

    /// The other bucket of a key that is in one.
    fn other(&self, spot: Spot) -> u32 {
        let hash = self.seed.of_wide(self.key(spot));
        match hash.first(self.count) {
            first if first == spot.bucket => hash.second(self.count),
            first => first,
        }
    }

    /// A slot of a bucket that is not taken.
    fn free(&self, bucket: u32) -> Option<Spot> {
        let slot = (0..SLOTS).find(|&slot| self.words[index(bucket, 3 * slot + 2)] == 0)?;
        Some(Spot { bucket, slot })
    }

    fn holds(&self, spot: Spot, key: Key) -> bool {
        self.words[index(spot.bucket, 3 * spot.slot + 2)] != 0 && self.key(spot) == key
    }

    /// The key of a taken slot.
    fn key(&self, spot: Spot) -> Key {
        let at = |word| self.words[index(spot.bucket, 3 * spot.slot + word)];
        let len = u8::try_from(at(2) >> 32).expect("a length");
        Key { high: at(0), low: at(1), len }
    }

    fn put(&mut self, spot: Spot, key: Key, value: Value, changes: &mut Changes) {
        let first = index(spot.bucket, 3 * spot.slot);
        self.set(first, key.high, changes);
        self.set(first + 1, key.low, changes);
        self.set(first + 2, u64::from(key.len) << 32 | u64::from(value.0), changes);
    }

    fn clear(&mut self, spot: Spot, changes: &mut Changes) {
        let first = index(spot.bucket, 3 * spot.slot);
        (first..first + 3).for_each(|at| self.set(at, 0, changes));
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
        changes.set(WIDE, at as u64, word);
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
