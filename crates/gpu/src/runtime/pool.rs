//! [`Pool`]: the free slots. Taking a slot waits if none is free: this is the back pressure.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::options::SlotSize;
use super::slot::{Slot, Slots};
use super::{Result, locked};
use crate::error::GpuError;

pub(super) struct Pool {
    inner: Mutex<Inner>,
    returned: Condvar,
    /// The number of keys in a slot of each size, ascending.
    sizes: Vec<usize>,
    /// The number of slots of each size.
    counts: Vec<usize>,
}

#[derive(Default)]
struct Inner {
    /// Free slots by size. The last returned slot is taken first, because its memory is in the caches.
    free: Vec<Slots>,
    waiting: usize,
    closed: Option<GpuError>,
    takers: Takers,
}

/// The threads that took the last slots.
#[derive(Default)]
struct Takers {
    last: [u64; Self::KEPT],
    next: usize,
}

impl Pool {
    /// Makes a pool without slots, for slots of these sizes, ascending.
    pub(super) fn new(slots: &[SlotSize]) -> Self {
        let free = slots.iter().map(|_| Vec::new()).collect();
        let (sizes, counts) = slots.iter().map(|size| (size.keys, size.slots)).unzip();
        let inner = Mutex::new(Inner { free, ..Inner::default() });
        Self { inner, returned: Condvar::new(), sizes, counts }
    }

    /// The smallest free slot for `keys` keys. `None` if all that are large enough are lent.
    pub(super) fn try_take(&self, keys: usize) -> Result<Option<Box<Slot>>> {
        locked(&self.inner).take(self.first_fit(keys)?)
    }

    /// Waits for a slot for `keys` keys. `None` if the deadline comes first.
    pub(super) fn take(&self, keys: usize, deadline: Option<Instant>) -> Result<Option<Box<Slot>>> {
        let first = self.first_fit(keys)?;
        let mut inner = locked(&self.inner);
        loop {
            if let Some(slot) = inner.take(first)? {
                return Ok(Some(slot));
            }
            let left = match deadline {
                None => Duration::from_secs(3600),
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            };
            if left.is_zero() {
                return Ok(None);
            }
            inner.waiting += 1;
            inner = self.returned.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
            inner.waiting -= 1;
        }
    }

    /// The number of slots for `keys` keys, free or lent.
    pub(super) fn slots_for(&self, keys: usize) -> usize {
        self.first_fit(keys).map_or(0, |first| self.counts[first..].iter().sum())
    }

    /// Whether a quarter of the slots for `keys` keys is free.
    pub(super) fn has_spare(&self, keys: usize) -> bool {
        let Ok(first) = self.first_fit(keys) else { return false };
        let all = self.slots_for(keys);
        4 * locked(&self.inner).free[first..].iter().map(Vec::len).sum::<usize>() >= all
    }

    pub(super) fn give_back(&self, slot: Box<Slot>) {
        let mut inner = locked(&self.inner);
        let size = slot.size;
        inner.free[size].push(slot);
        let wake = inner.waiting > 0;
        drop(inner);
        if wake {
            // Waiting threads may want other sizes.
            if self.sizes.len() == 1 { self.returned.notify_one() } else { self.returned.notify_all() }
        }
    }

    /// Lends no more slots: waiting and later calls get the error.
    pub(super) fn close(&self, why: GpuError) {
        locked(&self.inner).closed.get_or_insert(why);
        self.returned.notify_all();
    }

    /// Takes all free slots.
    pub(super) fn drain(&self) -> Slots {
        locked(&self.inner).free.iter_mut().flat_map(std::mem::take).collect()
    }

    /// The number of keys that the largest slot holds.
    pub(super) fn largest(&self) -> usize {
        self.sizes.last().copied().unwrap_or(0)
    }

    fn first_fit(&self, keys: usize) -> Result<usize> {
        let first = self.sizes.partition_point(|&size| size < keys);
        if first == self.sizes.len() {
            return Err(GpuError::TooManyKeys { asked: keys, most: self.largest() });
        }
        Ok(first)
    }
}

impl Inner {
    fn take(&mut self, first: usize) -> Result<Option<Box<Slot>>> {
        if let Some(why) = &self.closed {
            return Err(why.clone());
        }
        let Some(mut slot) = self.free[first..].iter_mut().find_map(Vec::pop) else { return Ok(None) };
        slot.feeders = self.takers.count_with(this_thread());
        Ok(Some(slot))
    }
}

impl Takers {
    /// The number of takers that are kept: eight threads that take two slots each are all among them.
    const KEPT: usize = 16;

    /// Notes a thread, and counts the threads among the last ones.
    fn count_with(&mut self, thread: u64) -> usize {
        self.last[self.next] = thread;
        self.next = (self.next + 1) % Self::KEPT;
        let taken = self.last.iter().enumerate().filter(|&(_, &thread)| thread != 0);
        taken.filter(|&(at, thread)| !self.last[..at].contains(thread)).count()
    }
}

/// The number of this thread, from 1. No other thread has the number.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static THIS: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    THIS.with(|&this| this)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takers_are_counted_once() {
        let mut takers = Takers::default();
        assert_eq!([7, 7, 9, 7, 5].map(|thread| takers.count_with(thread)), [1, 1, 2, 2, 3]);
        let counts: Vec<_> = (0..Takers::KEPT).map(|_| takers.count_with(8)).collect();
        assert_eq!((counts[0], counts[Takers::KEPT - 1]), (4, 1), "the others took none of late");
    }

    #[test]
    fn threads_have_numbers_of_their_own() {
        let other = std::thread::spawn(this_thread).join().expect("a number");
        assert!(other != this_thread() && this_thread() == this_thread());
    }
}
