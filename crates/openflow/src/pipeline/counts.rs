//! [`Counts`]: packets and bytes, in a place for each worker, summed when somebody asks.
//!
//! A worker alone writes its place, so it needs no operation that locks a line: it loads, adds and stores.
//! Places of different workers may share a line; with a million flows they seldom meet there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wirespeed::image::prefetch;

/// Packets and bytes of one worker.
#[derive(Debug, Default)]
struct Place {
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// Packets and bytes, by worker. Clones are the same counters.
#[derive(Clone, Debug)]
pub(crate) struct Counts(Arc<[Place]>);

/// Packets and bytes in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// The number of packets.
    pub(crate) packets: u64,
    /// The number of bytes.
    pub(crate) bytes: u64,
}

impl Sum {
    /// The difference to an earlier sum.
    pub(crate) const fn since(self, other: Self) -> Self {
        Self {
            packets: self.packets.wrapping_sub(other.packets),
            bytes: self.bytes.wrapping_sub(other.bytes),
        }
    }
}

impl Counts {
    pub(crate) fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| Place::default()).collect())
    }

    /// Counts packets of one worker. No other thread counts for this worker.
    #[inline]
    pub(crate) fn add(&self, worker: usize, packets: u64, bytes: u64) {
        let Some(place) = self.0.get(worker) else { return };
        place.packets.store(place.packets.load(Ordering::Relaxed) + packets, Ordering::Relaxed);
        place.bytes.store(place.bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// Brings the place of a worker near.
    #[inline]
    pub(crate) fn prefetch(&self, worker: usize) {
        prefetch(&self.0, worker);
    }

    pub(crate) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        for place in &*self.0 {
            sum.packets += place.packets.load(Ordering::Relaxed);
            sum.bytes += place.bytes.load(Ordering::Relaxed);
        }
        sum
    }
}
