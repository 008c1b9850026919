//! [`PerKey`]: the measured cost of a key, by the size of its batch.
//!
//! A batch has costs of its own: a call, a state to enter, memory that is no longer in a cache. With five
//! keys these are most of the time, with five thousand they are nothing. So a size learns from batches of its
//! own size, and from larger ones until it has any. It never learns from smaller ones: these would make
//! the CPU look slow, batches would go to a GPU, and no batch would be left to show that the CPU is faster.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Sizes: powers of two. The last one holds all larger batches.
const SIZES: usize = 24;
/// The weight of a new measurement is one part in this many; the rest is the old value.
const MEMORY: u64 = 8;
/// A measurement counts at most as this many times the old value: a thread may lose its core meanwhile.
const MOST: u64 = 2;
/// Picoseconds in a nanosecond.
const PICO: u64 = 1000;

/// Picoseconds for each key, by size, measured by all threads. 0 until a batch of that size was measured.
#[derive(Debug)]
pub struct PerKey {
    /// The cost before anything was measured.
    first: u64,
    by_size: [AtomicU64; SIZES],
}

impl PerKey {
    /// Begins with a cost of `first` picoseconds for each key.
    #[must_use]
    pub const fn new(first: u64) -> Self {
        Self { first, by_size: [const { AtomicU64::new(0) }; SIZES] }
    }

    /// Begins with the cost of a batch of `keys` keys that took `time`.
    pub(crate) fn measured(keys: usize, time: Duration) -> Self {
        Self::new(picos(keys, time))
    }

    /// The cost of each of `keys` keys, in picoseconds.
    #[must_use]
    pub fn of_one(&self, keys: usize) -> u64 {
        let known = self.by_size[size(keys)..].iter().map(|cost| cost.load(Ordering::Relaxed));
        known.into_iter().find(|&cost| cost > 0).unwrap_or(self.first)
    }

    /// The cost of `keys` keys in one batch.
    pub(crate) fn of(&self, keys: usize) -> Duration {
        Duration::from_nanos(self.of_one(keys).saturating_mul(keys as u64) / PICO)
    }

    /// Takes in that a batch of `keys` keys took `time`.
    pub fn note(&self, keys: usize, time: Duration) {
        if keys == 0 {
            return;
        }
        let cost = &self.by_size[size(keys)];
        // The first one of a size counts no more than others: it finds cold caches.
        let (old, new) = (self.of_one(keys), picos(keys, time));
        let average = if old == 0 {
            new
        } else {
            let most = new.min(old.saturating_mul(MOST));
            let average = old.saturating_mul(MEMORY - 1).saturating_add(most) / MEMORY;
            // Rounded down, so a small cost would never grow.
            average.max(if new > old { old + 1 } else { 1 })
        };
        // If two threads store at once one value is lost, which does not matter.
        cost.store(average, Ordering::Relaxed);
    }
}

/// The index of the size of a batch.
fn size(keys: usize) -> usize {
    (keys.max(1).ilog2() as usize).min(SIZES - 1)
}

/// Picoseconds for each key, at least 1.
fn picos(keys: usize, time: Duration) -> u64 {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    (nanos.saturating_mul(PICO) / keys.max(1) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    #[test]
    fn costs_follow_what_is_measured() {
        let costs = PerKey::new(2 * PICO);
        assert_eq!(costs.of(1000), US(2));
        (0..100).for_each(|_| costs.note(1000, US(10)));
        let cost = costs.of(1000);
        assert!(cost > US(9) && cost <= US(10), "{cost:?}");
        (0..100).for_each(|_| costs.note(1000, US(1)));
        let cost = costs.of(1000);
        assert!(cost >= US(1) && cost < US(2), "{cost:?}");
        costs.note(0, US(9));
        assert_eq!(PerKey::measured(4000, US(8)).of(1000), US(2));
    }

    #[test]
    fn a_size_learns_from_larger_batches_and_not_from_smaller_ones() {
        let costs = PerKey::new(PICO);
        (0..100).for_each(|_| costs.note(3, US(1)));
        assert_eq!(costs.of(256), Duration::from_nanos(256), "a small batch is expensive by itself");
        assert_eq!(costs.of(3), Duration::from_nanos(999));
        (0..100).for_each(|_| costs.note(1 << 12, US(8)));
        let cost = costs.of(256);
        assert!(cost > Duration::from_nanos(490) && cost <= Duration::from_nanos(500), "{cost:?}");
        assert_eq!(costs.of(1 << 20), Duration::from_nanos(1 << 20));
        costs.note(usize::MAX, US(1));
        costs.note(1, Duration::MAX);
        assert!(costs.of(usize::MAX) > Duration::ZERO && costs.of(0) == Duration::ZERO);
    }

    #[test]
    fn a_small_cost_grows() {
        let costs = PerKey::new(1);
        (0..200).for_each(|_| costs.note(1000, US(1)));
        assert!(costs.of(1000) > Duration::from_nanos(980));
    }

    #[test]
    fn a_lost_core_counts_little() {
        let costs = PerKey::new(PICO);
        costs.note(1000, US(4000));
        assert!(costs.of(1000) < Duration::from_nanos(1200), "the first measurement of a size");
        (0..20).for_each(|_| costs.note(1000, US(1)));
        costs.note(1000, US(4000));
        assert!(costs.of(1000) < Duration::from_nanos(1200));
    }
}
