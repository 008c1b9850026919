//! The parts of a search: where it begins, a try of a length, and what to do where that is in vain.

use wirespeed_fib::{Address, NextHop};
use wirespeed_image::{Table, prefetch};

use crate::buckets::{Bucket, VALUES, WORDS, index};
use crate::form::STEPS;
use crate::hash::{Key, group, halves, rest, slot, word};
use crate::layout::{CHUNK_BITS, MOST_TRIES, WIDE, WaldvogelTable};
use crate::rope::Rope;
use crate::value::{MOST, Says, Value, low};

/// Keys of a block of the portable way, and of those that are looked for in buckets together.
pub(crate) const BLOCK: usize = 64;

impl<A: Address> WaldvogelTable<A> {
    /// The value that the arrays have for the first bits of a key.
    #[inline]
    pub(crate) fn start(&self, high: u64) -> Value {
        let value = Value(self.image().at(self.columns.root, root_element(high)));
        match value.says() {
            Says::Chunk(chunk) => Value(self.image().at(self.columns.chunks, chunk_element(chunk, high))),
            _ => value,
        }
    }

    /// The rest of a search, from what was found so far.
    pub(crate) fn search(&self, high: u64, low: u64, found: Value) -> NextHop {
        let mut value = found;
        // Tables that we made end before.
        for _ in 0..=MOST_TRIES {
            value = match value.says() {
                Says::NextHop(next_hop) => return next_hop,
                Says::Try(Some(len), record) => {
                    let (_, found) = self.probe(high, len);
                    found.unwrap_or_else(|| self.miss(record))
                }
                Says::Try(None, record) => self.probe_wide(high, low, record).2,
                Says::Chunk(_) => break,
            };
        }
        NextHop::NONE
    }

    /// The value to go on with if the length of a record is in vain.
    #[inline]
    pub(crate) fn miss(&self, record: u32) -> Value {
        Value(self.image().at(self.columns.misses, record as usize))
    }

    /// The slot for so many bits, fewer than 49, and the value there if they are.
    #[inline]
    pub(crate) fn probe(&self, high: u64, len: u8) -> (usize, Option<Value>) {
        let hash = self.seed.of_word(word(high, len));
        let bits = self.sizes.slot_bits;
        let pilot: u8 = self.image().at(self.columns.pilots, group(hash, bits) as usize);
        let at = slot(hash, pilot.into(), bits) as usize;
        let word: u64 = self.image().at(self.columns.slots, at);
        let is_here = word >> 32 == u64::from(rest(hash));
        (at, is_here.then_some(Value(low(word))))
    }

    /// The rope of a record.
    pub(crate) fn rope(&self, record: u32) -> Rope {
        Rope(self.image().at(self.columns.ropes, (record / STEPS) as usize))
    }

    /// The length to try that a record is for.
    fn length(&self, record: u32) -> u8 {
        self.rope(record).0.to_le_bytes()[(record % STEPS) as usize]
    }

    /// The word where the search for the bits that a record is for ends, whether they are there, and the
    /// value to go on with.
    #[cold]
    pub(crate) fn probe_wide(&self, high: u64, low: u64, record: u32) -> (usize, bool, Value) {
        let key = wide_key(high, low, self.length(record));
        let hash = self.seed.of_wide(key);
        let words = self.image().section(WIDE);
        let within = |number: u32| {
            let bucket = Bucket::of(words, number);
            let found =
                bucket.find(key).map(|slot| (index(number, VALUES + slot / 2), true, bucket.value(slot)));
            (found, bucket.spilled())
        };
        let first = hash.first(self.sizes.wide);
        let in_vain = (index(first, WORDS - 1), false, self.miss(record));
        match within(first) {
            (Some(found), _) => found,
            (None, 0) => in_vain,
            (None, _) => within(hash.second(self.sizes.wide)).0.unwrap_or(in_vain),
        }
    }

    /// A try of each of some keys, [`BLOCK`] of them at most, whose next length no word holds. Their buckets
    /// are on their way together: in large tables each is a miss of all caches.
    pub(crate) fn probe_all_wide(&self, addresses: &[A], keys: &mut [Wide]) {
        let words = self.image().section(WIDE);
        let mut sought = [Sought::default(); BLOCK];
        for (key, sought) in keys.iter().zip(&mut sought) {
            let (high, low) = halves(addresses[key.place as usize]);
            let found = wide_key(high, low, self.length(key.value.0 % MOST));
            let hash = self.seed.of_wide(found);
            let first = hash.first(self.sizes.wide);
            prefetch(words, index(first, 0));
            *sought = Sought { key: found, first, second: hash.second(self.sizes.wide) };
        }
        let mut elsewhere = [0u8; BLOCK];
        let mut count = 0;
        for ((at, key), sought) in (0u8..).zip(keys.iter_mut()).zip(&sought) {
            let bucket = Bucket::of(words, sought.first);
            let record = key.value.0 % MOST;
            let slot = bucket.slot_of(sought.key);
            key.value = slot.map_or_else(|| self.miss(record), |slot| bucket.value(slot));
            if slot.is_none() && bucket.spilled() > 0 {
                prefetch(words, index(sought.second, 0));
                elsewhere[count] = at;
                count += 1;
            }
        }
        for &at in &elsewhere[..count] {
            let (key, sought) = (&mut keys[usize::from(at)], &sought[usize::from(at)]);
            let bucket = Bucket::of(words, sought.second);
            if let Some(slot) = bucket.slot_of(sought.key) {
                key.value = bucket.value(slot);
            }
        }
    }
}

/// A key whose next length no word holds: its place in the batch, and the value that says so, or what comes
/// after it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wide {
    pub(crate) place: u32,
    pub(crate) value: Value,
}

/// A key to look for, and the two buckets that may hold it.
#[derive(Clone, Copy, Default)]
struct Sought {
    key: Key,
    first: u32,
    second: u32,
}

/// The first `len` bits of 128.
#[inline]
fn wide_key(high: u64, low: u64, len: u8) -> Key {
    let keep = |bits: u64, len: u8| bits & !u64::MAX.checked_shr(len.into()).unwrap_or(0);
    Key { high: keep(high, len), low: keep(low, len.saturating_sub(64)), len }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // 16 bits
pub(crate) fn root_element(high: u64) -> usize {
    (high >> 48) as usize
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // the bits of a chunk
pub(crate) fn chunk_element(chunk: u32, high: u64) -> usize {
    (chunk as usize) << CHUNK_BITS | (high >> (48 - CHUNK_BITS)) as usize & ((1 << CHUNK_BITS) - 1)
}
