//! Lookups, alone and in batches.
//!
//! ```text
//! value ← root, chunk;  rope ← the value's, if it is a record
//! while the rope has a length:  look for the first bits of the key, that many, in their bucket
//!     found:      value ← its value;  rope ← the value's, if it is a record, else empty
//!     not found:  rope ← what is left of it
//! the next hop is the value, or its record's
//! ```

use wirespeed_fib::{Address, Lpm, NextHop, Step, Way};
use wirespeed_image::{SectionId, Table};

use crate::buckets::{Kind, WORDS, index, low};
use crate::hash::{Key, WIDE_FROM, halves, word};
use crate::layout::{BUCKETS, CHUNK_BITS, MOST_READS, ROPES, WIDE, WaldvogelTable};
use crate::rope::Rope;
use crate::simd;
use crate::value::{Says, Value};

/// Keys of a block of the portable way.
const BLOCK: usize = 64;

impl<A: Address> Lpm<A> for WaldvogelTable<A> {
    #[inline]
    fn lookup(&self, address: A) -> NextHop {
        let (high, low) = halves(address);
        let start = self.start(high);
        self.best(self.search(high, low, start, self.rope(start), 0))
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        let done = simd::batch(Way::Avx512, self, addresses, next_hops);
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

    /// The rope of a value.
    #[inline]
    pub(crate) fn rope(&self, value: Value) -> Rope {
        value
            .record()
            .map_or_else(Rope::default, |record| Rope(self.image().at(self.columns.ropes, record as usize)))
    }

    /// The next hop of a value.
    #[inline]
    pub(crate) fn best(&self, value: Value) -> NextHop {
        match value.says() {
            Says::NextHop(next_hop) => next_hop,
            Says::Record(record) => NextHop(self.image().at(self.columns.bests, record as usize)),
            Says::Chunk(_) => NextHop::NONE,
        }
    }

    /// The rest of a search: what was found so far, what to try next, and how many buckets were read.
    pub(crate) fn search(&self, high: u64, low: u64, found: Value, rope: Rope, reads: u32) -> Value {
        let (mut found, mut rope, mut reads) = (found, rope, reads);
        while let Some(len) = rope.first() {
            let (probe, in_bucket) = self.probe(high, low, len);
            reads += probe.reads;
            // Tables that we made end before.
            if reads > MOST_READS {
                break;
            }
            rope = match in_bucket {
                Some((_, value)) => {
                    found = value;
                    self.rope(value)
                }
                None => rope.rest(),
            };
        }
        found
    }

    /// The bucket where the search for `len` bits ends, and the slot and the value where they are found there.
    #[inline]
    fn probe(&self, high: u64, low: u64, len: u8) -> (Probe, Option<(usize, Value)>) {
        let (kind, column, count) = match len >= WIDE_FROM {
            false => (Kind::Narrow, self.columns.buckets, self.sizes.buckets),
            true => (Kind::Wide, self.columns.wide, self.sizes.wide),
        };
        let key = wide_key(high, low, len);
        let hash = match kind {
            Kind::Narrow => self.seed.of_word(word(high, len)),
            Kind::Wide => self.seed.of_wide(key),
        };
        let first = hash.first(count);
        let bucket = |bucket: u32| -> [u64; WORDS] {
            std::array::from_fn(|at| self.image().at(column, index(bucket, at)))
        };
        let words = bucket(first);
        let in_first = within(kind, &words, high, key);
        if in_first.is_some() || words[WORDS - 1] >> 32 == 0 {
            return (Probe { kind, bucket: first, reads: 1 }, in_first);
        }
        let second = hash.second(count);
        (Probe { kind, bucket: second, reads: 2 }, within(kind, &bucket(second), high, key))
    }

    /// [`find`](Self::find) of fewer bits than a word has.
    #[inline]
    fn find_narrow(&self, words: &[u64], high: u64, len: u8) -> (u32, Option<Value>) {
        let key = word(high, len);
        let hash = self.seed.of_word(key);
        let in_bucket = |bucket: u32| -> (Option<Value>, u64) {
            let words: &[u64; WORDS] = words[index(bucket, 0)..].first_chunk().expect("buckets are whole");
            // All five are compared: which one it is can't be predicted.
            let slot = (0..5).fold(5, |found, slot| if words[slot] == key { slot } else { found });
            let (at, shift) = Kind::Narrow.value_at(slot);
            ((slot < 5).then(|| Value(low(words[at] >> shift))), words[WORDS - 1] >> 32)
        };
        match in_bucket(hash.first(self.sizes.buckets)) {
            (None, spilled) if spilled > 0 => (2, in_bucket(hash.second(self.sizes.buckets)).0),
            (found, _) => (1, found),
        }
    }
}

/// The bucket that a search in a hash table ended in.
#[derive(Clone, Copy)]
struct Probe {
    kind: Kind,
    bucket: u32,
    /// Buckets read, this one included.
    reads: u32,
}

impl Probe {
    fn section(self) -> SectionId {
        match self.kind {
            Kind::Narrow => BUCKETS,
            Kind::Wide => WIDE,
        }
    }

    fn name(self) -> &'static str {
        match self.kind {
            Kind::Narrow => "buckets",
            Kind::Wide => "wide",
        }
    }
}

/// The slot of a key in a bucket, and its value.
#[inline]
fn within(kind: Kind, words: &[u64; WORDS], high: u64, key: Key) -> Option<(usize, Value)> {
    let slot = match kind {
        Kind::Narrow => {
            let word = word(high, key.len);
            (0..kind.slots()).find(|&slot| words[slot] == word)
        }
        Kind::Wide => (0..kind.slots()).find(|&slot| {
            (words[3 * slot], words[3 * slot + 1], words[3 * slot + 2] >> 32)
                == (key.high, key.low, u64::from(key.len))
        }),
    }?;
    let (at, shift) = kind.value_at(slot);
    Some((slot, Value(low(words[at] >> shift))))
}

/// The first `len` bits of 128.
#[inline]
fn wide_key(high: u64, low: u64, len: u8) -> Key {
    let past = u32::from(len).saturating_sub(64);
    Key { high, low: low & !u64::MAX.checked_shr(past).unwrap_or(0), len }
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

/// A batch block by block, each try for all keys of a block that are not done before the next, the buckets read one try
/// ahead.
pub(crate) fn portable<A: Address>(table: &WaldvogelTable<A>, addresses: &[A], next_hops: &mut [NextHop]) {
    let words = table.image().section::<u64>(BUCKETS);
    let ropes = table.image().section::<u64>(ROPES);
    for (addresses, next_hops) in addresses.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK)) {
        let mut open = [Open::default(); BLOCK];
        let mut count = 0;
        let mut found = [Value::default(); BLOCK];
        for (at, &address) in (0u8..).zip(addresses) {
            let (high, _) = halves(address);
            let value = table.start(high);
            found[usize::from(at)] = value;
            open[count] = Open { high, rope: table.rope(value), key: at, reads: 0 };
            count += usize::from(value.record().is_some());
        }
        while count > 0 {
            let mut still = 0;
            for which in 0..count {
                let Open { high, rope, key, reads } = open[which % BLOCK];
                let at = usize::from(key);
                let len = rope.first().unwrap_or(0);
                if len >= WIDE_FROM {
                    let (_, low) = halves(addresses[at]);
                    found[at] = table.search(high, low, found[at], rope, reads);
                    continue;
                }
                let (more, in_bucket) = table.find_narrow(words, high, len);
                let reads = reads + more;
                // Tables that we made end before.
                if reads > MOST_READS {
                    continue;
                }
                let rope = match in_bucket {
                    Some(value) => {
                        found[at] = value;
                        Rope(value.record().map_or(0, |record| ropes[record as usize]))
                    }
                    None => rope.rest(),
                };
                // Moving the end of the list or not takes the place of a branch.
                open[still % BLOCK] = Open { high, rope, key, reads };
                still += usize::from(!rope.is_empty());
            }
            count = still;
        }
        for (next_hop, &value) in next_hops.iter_mut().zip(&found) {
            *next_hop = table.best(value);
        }
    }
}

/// A key of a block that is not done.
#[derive(Clone, Copy, Default)]
struct Open {
    high: u64,
    rope: Rope,
    /// Which one of the block.
    key: u8,
    /// Buckets read for it.
    reads: u32,
}

fn explain<A: Address>(table: &WaldvogelTable<A>, address: A) -> Vec<Step> {
    let (high, low) = halves(address);
    let mut steps = Vec::new();
    let element = root_element(high);
    let mut found = Value(table.image().at(table.columns.root, element));
    let mut rope = say_value(table, &mut steps, "root", element as u64, found.0.into(), found);
    if let Says::Chunk(chunk) = found.says() {
        let element = chunk_element(chunk, high);
        found = Value(table.image().at(table.columns.chunks, element));
        rope = say_value(table, &mut steps, "chunks", element as u64, found.0.into(), found);
    }
    let mut reads = 0;
    while let Some(len) = rope.first() {
        let (probe, in_bucket) = table.probe(high, low, len);
        reads += probe.reads;
        if reads > MOST_READS {
            break;
        }
        rope = match in_bucket {
            Some((slot, value)) => {
                found = value;
                let (at, _) = probe.kind.value_at(slot);
                let index = index(probe.bucket, at) as u64;
                let word = table.image().section::<u64>(probe.section())[index_of(index)];
                say_value(table, &mut steps, probe.name(), index, word, value)
            }
            None => {
                let index = index(probe.bucket, WORDS - 1) as u64;
                let value = table.image().section::<u64>(probe.section())[index_of(index)];
                let meaning = format!("bucket {} has no {len} bits of it", probe.bucket);
                steps.push(Step { section: probe.name(), index, value, meaning });
                rope.rest()
            }
        };
    }
    let best = table.best(found);
    let meaning = if best.is_some() { format!("next hop {best}") } else { "no route".to_owned() };
    match found.record() {
        Some(record) => {
            steps.push(Step { section: "bests", index: record.into(), value: best.0.into(), meaning });
        }
        // The last value found says it itself.
        None => {
            if let Some(last) = steps.last_mut() {
                last.meaning = format!("{}: {meaning}", last.meaning);
            }
        }
    }
    steps
}

/// The step that reads a value and, where it is a record, the one that reads the rope.
fn say_value<A: Address>(
    table: &WaldvogelTable<A>,
    steps: &mut Vec<Step>,
    section: &'static str,
    index: u64,
    word: u64,
    value: Value,
) -> Rope {
    let meaning = match value.says() {
        Says::NextHop(next_hop) => format!("found, nothing longer beneath, {next_hop}"),
        Says::Record(record) => format!("record {record}"),
        Says::Chunk(chunk) => format!("go on in chunk {chunk}"),
    };
    steps.push(Step { section, index, value: word, meaning });
    let Some(record) = value.record() else { return Rope::default() };
    let rope = table.rope(value);
    let lengths: Vec<_> = rope.lengths().map(|len| len.to_string()).collect();
    let meaning = format!("try lengths {}", lengths.join(", "));
    steps.push(Step { section: "ropes", index: record.into(), value: rope.0, meaning });
    rope
}

/// An index of a section that is in memory.
fn index_of(index: u64) -> usize {
    usize::try_from(index).expect("an index in memory")
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
