//! [`Remote`]: an IP table on GPUs, kept in step with a live one.
//!
//! ```text
//! LiveTable ──patch, replace──► Follower ──► FleetTable: a replica on each GPU
//! addresses ──pack──► batch of the least loaded GPU ──► results ──unpack──► next hops
//! ```
//!
//! Keys are of as few bytes as the longest prefix allows ([`KeyBytes`]). Before a longer prefix comes in, the table is told to take
//! wider keys only, in the same order as patches: a batch of narrow keys that is late for that comes back as
//! [`GpuError::NarrowKeys`] and is packed anew from the addresses, so none is looked up by keys that don't tell enough.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wirespeed_fib::{Address, NextHop};
use wirespeed_image::live::Follower;
use wirespeed_image::{Patch, Table};

use super::keys::{KeyBytes, pack, unpack};
use crate::error::GpuError;
use crate::program::OnDevice;
use crate::runtime::{Batch, Calibration, Done, Fleet, FleetBatch, FleetTable, Ticket};

/// Parts that a large batch is cut into, so that keys of one travel while another's results come back.
const PARTS: usize = 4;
/// The shortest part that is worth it.
const LEAST_PART: usize = 1 << 17;

/// A table on GPUs. Clones are the same table.
#[derive(Clone)]
pub struct Remote<A> {
    inner: Arc<Inner>,
    address: PhantomData<fn(A)>,
}

struct Inner {
    fleet: Fleet,
    table: FleetTable,
    /// The bits of a key that a lookup may depend on.
    bits: AtomicU8,
    /// Whether a change couldn't be made, so that the table is of an older state than the live one.
    is_stale: AtomicBool,
    why_stale: Mutex<Option<GpuError>>,
    calibration: Calibration,
}

/// Keys under way.
struct Part {
    ticket: Ticket,
    keys: Range<usize>,
}

impl<A: Address> Remote<A> {
    /// Brings a table to all GPUs; lookups in it depend on so many first bits of an address. Finds the fastest launches and measures
    /// the ways of moving data on the first GPU: about a second.
    pub fn upload<T: OnDevice>(fleet: &Fleet, table: &T, bits: u8) -> Result<Self, GpuError> {
        let remote = fleet.upload(table.image(), |sections| table.programs(sections))?;
        let kind = KeyBytes::for_bits(A::FAMILY, bits);
        let mut calibration = Calibration::default();
        for (at, (gpu, replica)) in fleet.gpus().iter().zip(remote.replicas()).enumerate() {
            for &each in KeyBytes::kinds(A::FAMILY) {
                if at == 0 || each == kind {
                    gpu.tune(replica, each.count())?;
                }
            }
            let measured = gpu.calibrate(replica, kind.count())?;
            if at == 0 {
                calibration = measured;
            }
        }
        let inner = Inner {
            fleet: fleet.clone(),
            table: remote,
            bits: AtomicU8::new(bits),
            is_stale: AtomicBool::new(false),
            why_stale: Mutex::new(None),
            calibration,
        };
        Ok(Self { inner: Arc::new(inner), address: PhantomData })
    }

    /// What keeps it in step with a live table: for [`LiveTable::follow`](wirespeed_fib::LiveTable::follow).
    pub fn follower(&self) -> RemoteFollower<A> {
        RemoteFollower(self.clone())
    }

    /// The GPUs.
    pub fn fleet(&self) -> &Fleet {
        &self.inner.fleet
    }

    /// The table on them.
    pub fn table(&self) -> &FleetTable {
        &self.inner.table
    }

    /// The keys that it takes now.
    pub fn key_bytes(&self) -> KeyBytes {
        KeyBytes::for_bits(A::FAMILY, self.inner.bits.load(Ordering::Acquire))
    }

    /// What the ways of moving data give, as measured at the start.
    pub fn calibration(&self) -> &Calibration {
        &self.inner.calibration
    }

    /// Why nothing can be looked up in it, if so.
    pub fn is_out(&self) -> Option<GpuError> {
        if self.inner.is_stale.load(Ordering::Acquire) {
            return self.inner.why_stale.lock().unwrap_or_else(PoisonError::into_inner).clone();
        }
        let gpus = self.inner.fleet.gpus();
        gpus.iter().all(|gpu| gpu.lost().is_some()).then(|| gpus[0].lost().cloned()).flatten()
    }

    /// How long a batch of so many keys is expected to take: as long as one alone, and what is under way before it.
    #[allow(clippy::cast_precision_loss)] // an estimate
    pub fn estimate(&self, keys: usize) -> Duration {
        let before = self.inner.fleet.gpus().iter().map(crate::runtime::Gpu::load).min().unwrap_or(0);
        let calibration = &self.inner.calibration;
        let rate = calibration.measured.iter().map(|measured| measured.rate).fold(0.0, f64::max);
        let waits = if rate > 0.0 { before as f64 / rate * 1e6 } else { 0.0 };
        micros(lone_us(calibration, keys) + waits)
    }

    /// Looks up each address into the same place of `next_hops`, in parts where there are many. On an error some of `next_hops` are
    /// written and some not.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) -> Result<(), GpuError> {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        let largest =
            self.inner.fleet.gpus().iter().map(crate::runtime::Gpu::largest_batch).min().unwrap_or(1);
        let part = addresses.len().div_ceil(PARTS).max(LEAST_PART).min(largest).max(1);
        let mut under_way = VecDeque::new();
        for start in (0..addresses.len()).step_by(part) {
            let keys = start..addresses.len().min(start + part);
            if under_way.len() == PARTS
                && let Some(oldest) = under_way.pop_front()
            {
                self.finish(oldest, addresses, next_hops)?;
            }
            let ticket = loop {
                if let Some(ticket) = self.try_submit(&addresses[keys.clone()])? {
                    break ticket;
                }
                // Whoever holds slots must not wait for more: all could.
                match under_way.pop_front() {
                    Some(oldest) => self.finish(oldest, addresses, next_hops)?,
                    None => break self.submit(&addresses[keys.clone()])?,
                }
            };
            under_way.push_back(Part { ticket, keys });
        }
        while let Some(oldest) = under_way.pop_front() {
            self.finish(oldest, addresses, next_hops)?;
        }
        Ok(())
    }

    /// Packs and sends keys, at most as many as a slot holds; waits for a slot.
    pub fn submit(&self, addresses: &[A]) -> Result<Ticket, GpuError> {
        self.check()?;
        Ok(self.send(self.inner.fleet.batch(addresses.len())?, addresses))
    }

    /// The same where a slot is free. Who has batches under way is to take one of these where none is, and not to wait.
    pub fn try_submit(&self, addresses: &[A]) -> Result<Option<Ticket>, GpuError> {
        self.check()?;
        Ok(self.inner.fleet.try_batch(addresses.len())?.map(|batch| self.send(batch, addresses)))
    }

    fn check(&self) -> Result<(), GpuError> {
        self.is_out().map_or(Ok(()), Err)
    }

    fn send(&self, mut batch: FleetBatch, addresses: &[A]) -> Ticket {
        let kind = self.fill(batch.batch(), addresses);
        batch.submit(&self.inner.table, kind.count(), addresses.len())
    }

    /// Takes the results of keys that were sent; sends them again where their kind had become too narrow.
    pub fn take(&self, mut done: Done, addresses: &[A], next_hops: &mut [NextHop]) -> Result<(), GpuError> {
        loop {
            match done.results() {
                Ok(results) => {
                    unpack(results, done.result_bytes(), next_hops);
                    return Ok(());
                }
                Err(GpuError::NarrowKeys { .. }) => {}
                Err(error) => return Err(error.clone()),
            }
            // In the same slot: who has others under way must not wait for one.
            let mut batch = done.into_batch()?;
            let replica = self.inner.table.beside(&batch).ok_or(GpuError::OtherDevice)?;
            let kind = self.fill(&mut batch, addresses);
            done = batch.submit(replica, kind.count(), addresses.len()).wait();
        }
    }

    fn fill(&self, batch: &mut Batch, addresses: &[A]) -> KeyBytes {
        let kind = self.key_bytes();
        let (first, second) = batch.planes_mut(kind.count(), addresses.len());
        pack(addresses, kind, first, second);
        kind
    }

    fn finish(&self, part: Part, addresses: &[A], next_hops: &mut [NextHop]) -> Result<(), GpuError> {
        let Part { ticket, keys } = part;
        self.take(ticket.wait(), &addresses[keys.clone()], &mut next_hops[keys])
    }
}

/// Microseconds of a lone batch by the best way, between the sizes that were measured.
#[allow(clippy::cast_precision_loss)] // an estimate
fn lone_us(calibration: &Calibration, keys: usize) -> f64 {
    let best = |size: usize| {
        let of_size = calibration.measured.iter().filter(|measured| measured.count == size);
        of_size.map(|measured| measured.lone_us).fold(f64::INFINITY, f64::min)
    };
    let sizes = calibration.measured.iter().map(|measured| measured.count);
    let below = sizes.clone().filter(|&size| size <= keys).max();
    let above = sizes.filter(|&size| size >= keys).min();
    match (below, above) {
        (Some(below), Some(above)) if below < above => {
            let (low, high) = (best(below), best(above));
            low + (high - low) * (keys - below) as f64 / (above - below) as f64
        }
        (Some(size), _) if size < keys => best(size) * keys as f64 / size as f64,
        (Some(size), _) | (None, Some(size)) => best(size),
        // Nothing was measured: as if it took for ever.
        (None, None) => 1e12,
    }
}

fn micros(us: f64) -> Duration {
    Duration::try_from_secs_f64(us / 1e6).unwrap_or(Duration::MAX)
}

/// Passes a live table's changes on to its copy on GPUs. A change that fails takes the copy out of use, until a whole table
/// takes its place again.
pub struct RemoteFollower<A>(Remote<A>);

impl<A> std::fmt::Debug for RemoteFollower<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RemoteFollower")
    }
}

impl<A: Address> RemoteFollower<A> {
    fn note(&self, changed: Result<u64, GpuError>) {
        let inner = &self.0.inner;
        if let Err(error) = changed {
            *inner.why_stale.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            inner.is_stale.store(true, Ordering::Release);
        }
    }
}

impl<A: Address, T: OnDevice> Follower<T> for RemoteFollower<A> {
    fn reach(&mut self, bits: u8) {
        let inner = &self.0.inner;
        let narrow = KeyBytes::for_bits(A::FAMILY, inner.bits.fetch_max(bits, Ordering::AcqRel));
        let wide = KeyBytes::for_bits(A::FAMILY, bits);
        if wide > narrow {
            self.note(inner.table.require(wide.count()).map(|()| 0));
        }
    }

    fn patch(&mut self, patch: &Patch) {
        // A table that missed a change takes no other.
        if !self.0.inner.is_stale.load(Ordering::Acquire) {
            self.note(self.0.inner.table.patch(patch));
        }
    }

    fn replace(&mut self, table: &T) {
        let inner = &self.0.inner;
        let replaced = inner.table.replace(Table::image(table), |sections| table.programs(sections));
        if replaced.is_ok() {
            inner.is_stale.store(false, Ordering::Release);
        }
        self.note(replaced);
    }
}
