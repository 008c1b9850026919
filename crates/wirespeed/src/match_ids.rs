//! [`MatchIds`]: next hops and prefix lengths in one number, so that one lookup gives both.
//!
//! A table for [prefix lookups](crate::Builder::prefix_lookups) is compiled with a number for each pair of a
//! next hop and a length in the place of the next hop. There are about ten pairs for each next hop. Engines,
//! images and GPUs look such a table up like any other, and the reader takes the numbers apart.
//!
//! ```text
//! route 10.0.0.0/8 → 7 ──► intern(7, /8) = 3 ──► engine: 10.0.0.0/8 → 3
//! lookup 10.1.2.3 ──► engine: 3 ──► pairs[3] = (7, /8)
//! ```
//!
//! A number never changes its pair, so a reader needs no lock, and results of an earlier state can be taken
//! apart later. There are at most as many numbers as next hops times lengths.
//!
//! The pairs lie in one array. A full array is copied to one of twice the size. Readers go to the last one;
//! the earlier ones stay for readers that are in them, and take as much memory again.

use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError};

use wirespeed_fib::{Address, NextHop, Prefix, Rib, TooManyNextHops, Update};

use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};

/// Numbers for pairs of a next hop and a prefix length, from 1.
pub struct MatchIds {
    /// Array `n` has 2^n elements.
    arrays: [OnceLock<Box<[AtomicU64]>>; u32::BITS as usize + 1],
    /// The array that readers go to.
    current: AtomicUsize,
    writer: Mutex<Writer>,
}

#[derive(Default)]
struct Writer {
    known: HashMap<(NextHop, u8), NextHop>,
}

/// The first array has space for 2^`FIRST` numbers; in models for so few that they see it grow.
const FIRST: usize = if cfg!(all(loom, test)) { 1 } else { 6 };

/// Bytes of a pair in an image.
const RECORD: usize = size_of::<u32>() + 1;

impl MatchIds {
    /// No numbers.
    pub(crate) fn new() -> Self {
        let ids = Self {
            arrays: [const { OnceLock::new() }; u32::BITS as usize + 1],
            current: AtomicUsize::new(FIRST),
            writer: Mutex::default(),
        };
        ids.array(FIRST);
        ids
    }

    /// The number of a pair, in the form that engines take. A new pair gets the next number.
    pub(crate) fn intern(&self, next_hop: NextHop, len: u8) -> Result<NextHop, TooManyNextHops> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = writer.known.get(&(next_hop, len)) {
            return Ok(known);
        }
        let id = u32::try_from(writer.known.len() + 1).map_err(|_| TooManyNextHops)?;
        let current = self.current.load(Ordering::Relaxed);
        let holds = if (id as usize) < 1 << current { current } else { current + 1 };
        let array = self.array(holds);
        if holds != current {
            for (to, from) in array.iter().zip(self.array(current)) {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        array[id as usize].store(u64::from(next_hop.0) | u64::from(len) << 32, Ordering::Relaxed);
        // Whoever sees the array sees its pairs. Whoever sees the number in a table sees the array: the table
        // is published later.
        self.current.store(holds, Ordering::Release);
        writer.known.insert((next_hop, len), NextHop(id));
        Ok(NextHop(id))
    }

    fn array(&self, at: usize) -> &[AtomicU64] {
        self.arrays[at].get_or_init(|| (0..1u64 << at).map(|_| AtomicU64::new(0)).collect())
    }

    /// The number of a route's pair.
    fn of_route<A: Address>(&self, prefix: Prefix<A>, next_hop: NextHop) -> Result<NextHop, TooManyNextHops> {
        match next_hop {
            NextHop::NONE => Ok(next_hop),
            next_hop => self.intern(next_hop, prefix.len()),
        }
    }

    /// The routes with numbers in the place of next hops.
    pub(crate) fn rib<A: Address>(&self, rib: &Rib<A>) -> Result<Rib<A>, TooManyNextHops> {
        rib.iter().map(|(prefix, next_hop)| Ok((prefix, self.of_route(prefix, next_hop)?))).collect()
    }

    /// The updates of routes with numbers in the place of next hops.
    pub(crate) fn updates<A: Address>(
        &self,
        updates: &[Update<A>],
        rib: &Rib<A>,
    ) -> Result<Vec<Update<A>>, TooManyNextHops> {
        // An announcement without a next hop keeps the route's, if there is a route by then.
        let mut is_there = HashMap::new();
        let mut numbered = Vec::with_capacity(updates.len());
        let keeps = updates.iter().any(|update| matches!(update, Update::Announce { next_hop: None, .. }));
        for &update in updates {
            numbered.push(match update {
                Update::Announce { prefix, next_hop } => {
                    let next_hop = match next_hop {
                        Some(next_hop) => Some(self.of_route(prefix, next_hop)?),
                        None if is_there
                            .get(&prefix)
                            .copied()
                            .unwrap_or_else(|| rib.get(prefix).is_some()) =>
                        {
                            None
                        }
                        None => Some(self.of_route(prefix, NextHop(1))?),
                    };
                    Update::Announce { prefix, next_hop }
                }
                withdrawn @ Update::Withdraw { .. } => withdrawn,
            });
            if keeps {
                is_there.insert(update.prefix(), matches!(update, Update::Announce { .. }));
            }
        }
        Ok(numbered)
    }

    /// The largest number.
    pub(crate) fn last(&self) -> u32 {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        u32::try_from(writer.known.len()).unwrap_or(u32::MAX)
    }

    /// The largest number that a table should have space for: a quarter more than now, because updates bring
    /// new pairs.
    pub(crate) fn head_room(&self) -> u32 {
        let last = self.last();
        last.saturating_add(last / 4).saturating_add(1 << FIRST)
    }

    /// The pairs of all numbers up to now.
    #[inline]
    pub(crate) fn pairs(&self) -> Pairs<'_> {
        Pairs(self.arrays[self.current.load(Ordering::Acquire)].get().map_or(&[], |array| array))
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        let arrays = self.arrays.iter().filter_map(OnceLock::get).map(|array| size_of_val::<[_]>(array));
        let known = self.writer.lock().unwrap_or_else(PoisonError::into_inner).known.capacity()
            * size_of::<((NextHop, u8), NextHop)>();
        (arrays.sum::<usize>() + known) as u64
    }

    /// The pairs in order of their numbers, for an image: a next hop (4 bytes, little-endian) and a length
    /// each.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let pairs = self.pairs();
        let record = |id| {
            let (next_hop, len) = pairs.pair(NextHop(id));
            let [a, b, c, d] = next_hop.0.to_le_bytes();
            [a, b, c, d, len]
        };
        (1..=self.last()).flat_map(record).collect()
    }

    /// The numbers of an image. `None` if a pair comes twice, has no next hop, or is longer than a prefix.
    pub(crate) fn from_bytes(bytes: &[u8], longest: u8) -> Option<Self> {
        let ids = Self::new();
        let mut records = bytes.chunks_exact(RECORD);
        for (record, id) in (&mut records).zip(1..) {
            let (next_hop, len) = record.split_first_chunk::<4>()?;
            let (next_hop, len) = (NextHop(u32::from_le_bytes(*next_hop)), len[0]);
            let is_pair = next_hop.is_some() && len <= longest;
            if !is_pair || ids.intern(next_hop, len) != Ok(NextHop(id)) {
                return None;
            }
        }
        records.remainder().is_empty().then_some(ids)
    }
}

impl std::fmt::Debug for MatchIds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MatchIds").field("last", &self.last()).finish()
    }
}

/// Pairs by number. No match gives [`NextHop::NONE`] and 0, and so does a number that was never given out.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<'a>(&'a [AtomicU64]);

impl Pairs<'_> {
    /// The next hop and the length of a number.
    #[inline]
    pub(crate) fn pair(self, id: NextHop) -> (NextHop, u8) {
        let pair = self.0.get(id.0 as usize).map_or(0, |pair| pair.load(Ordering::Relaxed));
        // The lower half is the next hop, the next byte the length.
        #[allow(clippy::cast_possible_truncation)]
        (NextHop(pair as u32), (pair >> 32) as u8)
    }

    /// Replaces numbers by their next hops.
    pub(crate) fn next_hops(self, ids: &mut [NextHop]) {
        for id in ids {
            *id = self.pair(*id).0;
        }
    }

    /// Replaces numbers by their next hops, and writes the lengths.
    pub(crate) fn split(self, ids: &mut [NextHop], lengths: &mut [u8]) {
        for (id, length) in ids.iter_mut().zip(lengths) {
            (*id, *length) = self.pair(*id);
        }
    }
}

#[cfg(loom)]
#[cfg(test)]
mod models {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::sync::model;

    #[test]
    fn a_number_that_was_published_has_its_pair_while_the_array_grows() {
        model(|| {
            let (ids, published) = (Arc::new(MatchIds::new()), Arc::new(AtomicU64::new(0)));
            let reader = thread::spawn({
                let (ids, published) = (Arc::clone(&ids), Arc::clone(&published));
                move || {
                    let last = published.load(Ordering::Acquire);
                    let pairs = ids.pairs();
                    for id in 1..=last {
                        let id = u32::try_from(id).unwrap();
                        assert_eq!(pairs.pair(NextHop(id)), (NextHop(10 * id), 24), "of {last}");
                    }
                }
            });
            // The first array has space for one number, the next for two more.
            for n in 1..=4 {
                let id = ids.intern(NextHop(10 * n), 24).unwrap();
                published.store(id.0.into(), Ordering::Release);
            }
            reader.join().unwrap();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn a_pair_keeps_its_number_through_all_growth() {
        let ids = MatchIds::new();
        for round in 0..2 {
            for n in 0..5_000u32 {
                let id = ids.intern(NextHop(n / 25 + 1), (n % 25) as u8).unwrap();
                assert_eq!(id, NextHop(n + 1), "round {round}");
            }
        }
        let pairs = ids.pairs();
        for n in 0..5_000u32 {
            assert_eq!(pairs.pair(NextHop(n + 1)), (NextHop(n / 25 + 1), (n % 25) as u8));
        }
        for id in [0, 5_001, 100_000, u32::MAX] {
            assert_eq!(pairs.pair(NextHop(id)), (NextHop::NONE, 0));
        }
        let read = MatchIds::from_bytes(&ids.to_bytes(), 24).unwrap();
        assert_eq!((read.last(), read.to_bytes()), (5_000, ids.to_bytes()));
    }

    #[test]
    fn damaged_pairs_are_refused() {
        let good = [7, 0, 0, 0, 24];
        assert!(MatchIds::from_bytes(&good, 32).is_some());
        for bad in [&[7, 0, 0, 0, 33][..], &[0, 0, 0, 0, 24], &good[..4], &[good, good].concat()] {
            assert!(MatchIds::from_bytes(bad, 32).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_number_that_was_published_has_its_pair_on_every_thread() {
        let (ids, published) = (MatchIds::new(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let last = published.load(Ordering::Acquire);
                        let pairs = ids.pairs();
                        for id in [last, last / 2, last / 3] {
                            let (next_hop, len) = pairs.pair(NextHop(id));
                            assert_eq!((next_hop.0, u32::from(len)), (id, id % 33));
                        }
                        if last == 100_000 {
                            break;
                        }
                    }
                });
            }
            for n in 1..=100_000u32 {
                let id = ids.intern(NextHop(n), (n % 33) as u8).unwrap();
                published.store(id.0, Ordering::Release);
            }
        });
    }
}
