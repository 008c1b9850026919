//! [`Counts`]: packets and bytes, in a place for each worker, summed when somebody asks. [`FlowCounts`]:
//! those of a flow, in blocks for many flows.
//!
//! ```text
//! block    | worker 0: flow 0 | flow 1 | … | worker 1: flow 0 | flow 1 | …      16 bytes each, in huge pages
//! ```
//!
//! A worker alone writes its place, so it needs no operation that locks a line: it loads, adds and stores.
//! With a million flows each frame counts in a line that is in no cache. With an allocation for each flow the
//! lines of a worker were spread over the heap, and a walk of page tables came before each of them: most of
//! the time of a lookup went there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wirespeed::image::{HugeVec, prefetch};

/// Packets and bytes of one worker.
#[derive(Debug, Default)]
struct Place {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Place {
    /// Counts packets: only one thread does so.
    #[inline]
    fn add(&self, packets: u64, bytes: u64) {
        self.packets.store(self.packets.load(Ordering::Relaxed) + packets, Ordering::Relaxed);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    fn add_to(&self, sum: &mut Sum) {
        sum.packets += self.packets.load(Ordering::Relaxed);
        sum.bytes += self.bytes.load(Ordering::Relaxed);
    }
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

    /// The memory of counters of so many workers.
    pub(crate) const fn bytes(workers: usize) -> usize {
        size_of::<Self>() + 2 * size_of::<usize>() + workers * size_of::<Place>()
    }

    /// Counts packets of one worker. No other thread counts for this worker.
    #[inline]
    pub(crate) fn add(&self, worker: usize, packets: u64, bytes: u64) {
        let Some(place) = self.0.get(worker) else { return };
        place.add(packets, bytes);
    }

    pub(crate) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        self.0.iter().for_each(|place| place.add_to(&mut sum));
        sum
    }
}

/// Flows of the first block of counters, and of the largest ones.
const FIRST_BLOCK: usize = 256;
const LARGEST_BLOCK: usize = 65_536;

/// Counters of many flows. Its line is one that nobody writes, unlike that of the reference count before it.
#[derive(Debug)]
#[repr(align(128))]
struct Block {
    places: HugeVec<Place>,
    flows: usize,
}

/// The counters of a flow for those who count, without a part in who owns them.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    block: Arc<Block>,
    /// The flow's number in the block.
    at: u32,
}

impl Cell {
    #[inline]
    fn place(&self, worker: usize) -> usize {
        worker * self.block.flows + self.at as usize
    }

    /// Counts packets of one worker. No other thread counts for this worker.
    #[inline]
    pub(crate) fn add(&self, worker: usize, packets: u64, bytes: u64) {
        let Some(place) = self.block.places.get(self.place(worker)) else { return };
        place.add(packets, bytes);
    }

    /// Brings the place of a worker near.
    #[inline]
    pub(crate) fn prefetch(&self, worker: usize) {
        prefetch(&self.block.places, self.place(worker));
    }

    /// The places of all workers.
    fn places(&self) -> impl Iterator<Item = &Place> {
        self.block.places.iter().skip(self.at as usize).step_by(self.block.flows)
    }
}

/// Blocks of counters: flows that go leave their places to flows that come.
#[derive(Debug)]
pub(crate) struct Pool {
    workers: usize,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    free: Vec<Cell>,
    /// The block that is not given out as a whole, and the next number in it.
    fresh: Option<(Arc<Block>, usize)>,
}

impl Places {
    /// The next place that no flow has had, in the last block or in a new one that is twice as large.
    #[allow(clippy::cast_possible_truncation)] // at most `LARGEST_BLOCK`
    fn next(&mut self, workers: usize) -> Cell {
        let flows = match &mut self.fresh {
            Some((block, next)) if *next < block.flows => {
                *next += 1;
                return Cell { block: Arc::clone(block), at: *next as u32 - 1 };
            }
            Some((block, _)) => (block.flows * 2).min(LARGEST_BLOCK),
            None => FIRST_BLOCK,
        };
        let mut places = HugeVec::with_capacity(flows * workers);
        (0..flows * workers).for_each(|_| places.push(Place::default()));
        let block = Arc::new(Block { places, flows });
        self.fresh = Some((Arc::clone(&block), 1));
        Cell { block, at: 0 }
    }
}

impl Pool {
    pub(crate) fn new(workers: usize) -> Self {
        Self { workers, places: Mutex::default() }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counters of a new flow, which are 0.
    pub(crate) fn counts(self: &Arc<Self>) -> FlowCounts {
        let mut places = self.places();
        let cell = places.free.pop().unwrap_or_else(|| places.next(self.workers));
        drop(places);
        FlowCounts(Arc::new(Owned { cell, pool: Arc::clone(self) }))
    }
}

/// The counters of a flow. Clones are the same counters; with the last one their places are free for another
/// flow. A flow is in both copies of the state until no worker reads it there, so nobody counts any more
/// then.
#[derive(Clone, Debug)]
pub(crate) struct FlowCounts(Arc<Owned>);

#[derive(Debug)]
struct Owned {
    cell: Cell,
    pool: Arc<Pool>,
}

impl FlowCounts {
    /// The counters for those who count, as long as there is the flow.
    pub(crate) fn cell(&self) -> &Cell {
        &self.0.cell
    }

    pub(crate) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        self.0.cell.places().for_each(|place| place.add_to(&mut sum));
        sum
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        for place in self.cell.places() {
            place.packets.store(0, Ordering::Relaxed);
            place.bytes.store(0, Ordering::Relaxed);
        }
        self.pool.places().free.push(self.cell.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_have_counters_of_their_own_and_leave_them_to_others() {
        const WORKERS: usize = 3;
        let pool = Arc::new(Pool::new(WORKERS));
        // More than two blocks.
        let mut flows: Vec<FlowCounts> = (0..FIRST_BLOCK * 4).map(|_| pool.counts()).collect();
        for (number, flow) in (1_u64..).zip(&flows) {
            for worker in 0..WORKERS {
                flow.cell().prefetch(worker);
                flow.cell().add(worker, number, number * 100 + worker as u64);
            }
            // No such worker.
            flow.cell().add(LARGEST_BLOCK * WORKERS, 1, 1);
        }
        for (number, flow) in (1_u64..).zip(&flows) {
            assert_eq!(flow.sum(), Sum { packets: number * 3, bytes: number * 300 + 3 });
        }
        let kept = flows[7].clone();
        flows.truncate(100);
        flows.remove(7);
        assert_eq!(kept.sum().packets, 24);
        let blocks = |pool: &Pool| pool.places().fresh.as_ref().map(|(block, next)| (block.flows, *next));
        let before = blocks(&pool);
        let more: Vec<FlowCounts> = (0..FIRST_BLOCK * 4 - 100).map(|_| pool.counts()).collect();
        assert_eq!(blocks(&pool), before, "free places come first");
        assert!(more.iter().all(|flow| flow.sum() == Sum::default()));
        more.iter().for_each(|flow| flow.cell().add(0, 1, 1));
        assert_eq!((kept.sum().packets, flows[98].sum().packets), (24, 300));
    }
}
