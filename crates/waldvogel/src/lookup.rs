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
use wirespeed_image::Table;

use crate::form::STEPS;
use crate::hash::halves;
use crate::layout::{MOST_TRIES, WaldvogelTable};
use crate::probe::{BLOCK, Wide, chunk_element, root_element};
use crate::simd;
use crate::value::{Says, Value};

impl<A: Address> Lookup<A> for WaldvogelTable<A> {
    #[inline]
    fn lookup(&self, address: A) -> NextHop {
        let (high, low) = halves(address);
        self.search(high, low, self.start(high))
    }

    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        let done = simd::batch(VectorLevel::best(), self, addresses, next_hops);
        portable(self, &addresses[done..], &mut next_hops[done..]);
    }

    fn explain(&self, address: A) -> Vec<Step> {
        explain(self, address)
    }
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
