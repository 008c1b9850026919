//! Lookups, alone and in batches.
//!
//! ```text
//! value ← root, chunk
//! while the value says to try a length:  look for the first bits of the key, that many, where they belong
//!     found:      value ← its value
//!     not found:  value ← misses[its record]
//! the value is the next hop
//! ```

use wirespeed_fib::{Address, Lookup, NextHop, Step, VectorLevel};
use wirespeed_image::{Table, prefetch};

use crate::buckets::{Bucket, VALUES, WORDS, index};
use crate::form::STEPS;
use crate::hash::{Key, group, halves, rest, slot, word};
use crate::layout::{CHUNK_BITS, MOST_TRIES, WIDE, WaldvogelTable};
use crate::rope::Rope;
use crate::simd;
use crate::value::low;
use crate::value::{MOST, Says, Value};

/// Keys of a block of the portable way, and of those that are looked for in buckets together.
pub(crate) const BLOCK: usize = 64;

impl<A: Address> Lookup<A> for WaldvogelTable<A> {
    #[inline]
    fn lookup(&self, address: A) -> NextHop {
        let (high, low) = halves(address);
        self.search(high, low, self.start(high))
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        let done = simd::batch(VectorLevel::Avx512, self, addresses, next_hops);
        portable(self, &addresses[done..], &mut next_hops[done..]);
    }

    fn explain(&self, address: A) -> Vec<Step> {
        explain(self, address)
    }
}

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

    /// What a record says to do where its length is in vain.
    #[inline]
    fn miss(&self, record: u32) -> Value {
        Value(self.image().at(self.columns.misses, record as usize))
    }

    /// The slot for so many bits, fewer than 49, and the value there if they are.
    #[inline]
    fn probe(&self, high: u64, len: u8) -> (usize, Option<Value>) {
        let hash = self.seed.of_word(word(high, len));
        let bits = self.sizes.slot_bits;
        let pilot: u8 = self.image().at(self.columns.pilots, group(hash, bits) as usize);
        let at = slot(hash, pilot.into(), bits) as usize;
        let word: u64 = self.image().at(self.columns.slots, at);
        let is_here = word >> 32 == u64::from(rest(hash));
        (at, is_here.then_some(Value(low(word))))
    }

    /// The rope of a record.
    fn rope(&self, record: u32) -> Rope {
        Rope(self.image().at(self.columns.ropes, (record / STEPS) as usize))
    }

    /// The length to try that a record is for.
    fn length(&self, record: u32) -> u8 {
        self.rope(record).0.to_le_bytes()[(record % STEPS) as usize]
    }

    /// The word where the search for the bits that a record is for ends, whether they are there, and the
    /// value to go on with.
    #[cold]
    fn probe_wide(&self, high: u64, low: u64, record: u32) -> (usize, bool, Value) {
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

/// What is looked for in buckets, and in which.
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
fn root_element(high: u64) -> usize {
    (high >> 48) as usize
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // the bits of a chunk
fn chunk_element(chunk: u32, high: u64) -> usize {
    (chunk as usize) << CHUNK_BITS | (high >> (48 - CHUNK_BITS)) as usize & ((1 << CHUNK_BITS) - 1)
}

/// A batch block by block, each try for all keys of a block that are not done before the next.
pub(crate) fn portable<A: Address>(table: &WaldvogelTable<A>, addresses: &[A], next_hops: &mut [NextHop]) {
    for (addresses, next_hops) in addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK)) {
        let mut open = [Open::default(); BLOCK];
        let mut count = 0;
        for ((at, &address), next_hop) in (0u8..).zip(addresses).zip(next_hops.iter_mut()) {
            let (high, _) = halves(address);
            let value = table.start(high);
            // Where it is not one, that comes later.
            *next_hop = NextHop(value.0);
            open[count] = Open { high, value, key: at };
            count += usize::from(value.record().is_some());
        }
        for _ in 0..MOST_TRIES {
            try_wide(table, addresses, &mut open[..count]);
            let mut still = 0;
            for which in 0..count {
                let Open { high, value, key } = open[which % BLOCK];
                let value = match value.says() {
                    Says::Try(Some(len), record) => {
                        table.probe(high, len).1.unwrap_or_else(|| table.miss(record))
                    }
                    _ => value,
                };
                next_hops[usize::from(key)] = NextHop(value.0);
                // Moving the end of the list or not takes the place of a branch.
                open[still % BLOCK] = Open { high, value, key };
                still += usize::from(value.record().is_some());
            }
            count = still;
            if count == 0 {
                break;
            }
        }
        // Tables that we made end before.
        for &Open { key, .. } in &open[..count] {
            next_hops[usize::from(key)] = NextHop::NONE;
        }
    }
}

/// A try of those keys of a block whose next length no word holds.
fn try_wide<A: Address>(table: &WaldvogelTable<A>, addresses: &[A], open: &mut [Open]) {
    let mut keys = [Wide::default(); BLOCK];
    let mut of = [0u8; BLOCK];
    let mut count = 0;
    for (at, open) in (0u8..).zip(open.iter()) {
        keys[count] = Wide { place: open.key.into(), value: open.value };
        of[count] = at;
        count += usize::from(matches!(open.value.says(), Says::Try(None, _)));
        if count == BLOCK {
            break;
        }
    }
    if count > 0 {
        table.probe_all_wide(addresses, &mut keys[..count]);
        for (&at, key) in of.iter().zip(&keys[..count]) {
            open[usize::from(at)].value = key.value;
        }
    }
}

/// A key of a block that is not done.
#[derive(Clone, Copy, Default)]
struct Open {
    high: u64,
    value: Value,
    /// Which one of the block.
    key: u8,
}

fn explain<A: Address>(table: &WaldvogelTable<A>, address: A) -> Vec<Step> {
    let (high, low) = halves(address);
    let mut steps = Vec::new();
    let mut say = |section, index: usize, word: u64, value: Value| {
        let meaning = match value.says() {
            Says::NextHop(next_hop) if next_hop.is_some() => format!("next hop {next_hop}"),
            Says::NextHop(_) => "no route".to_owned(),
            Says::Try(_, record) => {
                let lengths = table.rope(record).lengths().skip((record % STEPS) as usize);
                let lengths: Vec<_> = lengths.map(|len| len.to_string()).collect();
                format!("record {record}: try lengths {}", lengths.join(", "))
            }
            Says::Chunk(chunk) => format!("go on in chunk {chunk}"),
        };
        steps.push(Step { section, index: index as u64, value: word, meaning });
    };
    let element = root_element(high);
    let mut value = Value(table.image().at(table.columns.root, element));
    say("root", element, value.0.into(), value);
    if let Says::Chunk(chunk) = value.says() {
        let element = chunk_element(chunk, high);
        value = Value(table.image().at(table.columns.chunks, element));
        say("chunks", element, value.0.into(), value);
    }
    for _ in 0..=MOST_TRIES {
        let Says::Try(len, record) = value.says() else { break };
        let (section, at, found, next) = match len {
            Some(len) => {
                let (at, found) = table.probe(high, len);
                ("slots", at, found.is_some(), found.unwrap_or_else(|| table.miss(record)))
            }
            None => {
                let (at, found, next) = table.probe_wide(high, low, record);
                ("wide", at, found, next)
            }
        };
        value = next;
        let column = if section == "slots" { table.columns.slots } else { table.columns.wide };
        match found {
            true => say(section, at, table.image().at(column, at), value),
            // The record says what comes then.
            false => say("misses", record as usize, value.0.into(), value),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::conformance::{Expected, scattered, tables};
    use wirespeed_fib::{BuildOptions, Engine, V4, V6, oracle};

    use super::*;
    use crate::build::Waldvogel;

    fn portable_agrees<A: Address>() {
        for (name, rib) in tables::hand_picked::<A>() {
            let (_, table) =
                Waldvogel::build(&rib, &BuildOptions::default()).expect("a valid table is built");
            let expected = Expected::of(&rib);
            let mut keys = oracle::boundaries(rib.iter().map(|(prefix, _)| prefix));
            keys.extend(scattered::<A>(1_000));
            let mut found = vec![NextHop(u32::MAX); keys.len()];
            portable(&table, &keys, &mut found);
            for (&key, &found) in keys.iter().zip(&found) {
                assert_eq!(found, expected.lookup(key), "{name}: {key}");
            }
        }
    }

    /// The suite sees the portable way only for keys that fill no vector.
    #[test]
    fn the_portable_way_finds_the_same() {
        portable_agrees::<V4>();
        portable_agrees::<V6>();
    }
}
