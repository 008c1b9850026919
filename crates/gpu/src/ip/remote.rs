//! [`Remote`]: an IP table on GPUs, kept in step with a live one.
//!
//! ```text
//! LiveTable ──patch, replace──► Follower ──► FleetTable: a replica on each GPU
//! addresses ──pack──► batch of the least loaded GPU ──► results ──unpack──► next hops
//! ```
//!
//! Keys are of as few bytes as the longest prefix allows ([`KeyBytes`]). Before a longer prefix comes in, the
//! table is told to take wider keys only, in the same order as patches: a batch of narrow keys that is late
//! for that comes back as [`GpuError::NarrowKeys`] and is packed anew from the addresses, so none is looked
//! up by keys that don't tell enough.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use wirespeed_fib::{Address, NextHop};
use wirespeed_image::live::Follower;
use wirespeed_image::{Patch, Table};

use super::keys::{KeyBytes, pack, unpack};
use crate::error::GpuError;
use crate::follow::Staleness;
use crate::offload::{Answers, RemoteTable, look_up};
use crate::runtime::{Batch, Calibration, Done, Fleet, FleetBatch, FleetTable, Ticket};
use wirespeed_image::device::OnDevice;

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
    staleness: Staleness,
    calibration: Calibration,
}

impl<A: Address> Remote<A> {
    /// Brings a table to all GPUs; lookups in it depend on so many first bits of an address. Finds the
    /// fastest launches and measures the ways of moving data on the first GPU: about a second.
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
            staleness: Staleness::default(),
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
        self.inner.staleness.is_out(&self.inner.fleet)
    }

    /// How long a batch of so many keys is expected to take: as long as one alone, and what is under way
    /// before it.
    pub fn estimate(&self, keys: usize) -> Duration {
        self.inner.calibration.estimate(keys, self.inner.fleet.least_load())
    }

    /// Looks up each address into the same place of `next_hops`, in parts where there are many. On an error
    /// some of `next_hops` are written and some not.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) -> Result<(), GpuError> {
        look_up(self, addresses, next_hops)
    }

    /// Packs and sends keys, at most as many as a slot holds; waits for a slot.
    pub fn submit(&self, addresses: &[A]) -> Result<Ticket, GpuError> {
        self.check()?;
        Ok(self.submit_on(self.inner.fleet.batch(addresses.len())?, addresses))
    }

    /// Packs and sends keys like [`submit`](Self::submit); `None` where no slot is free. A caller with
    /// batches under way then takes the results of one, which frees a slot.
    pub fn try_submit(&self, addresses: &[A]) -> Result<Option<Ticket>, GpuError> {
        self.check()?;
        Ok(self.inner.fleet.try_batch(addresses.len())?.map(|batch| self.submit_on(batch, addresses)))
    }

    fn check(&self) -> Result<(), GpuError> {
        self.is_out().map_or(Ok(()), Err)
    }

    fn submit_on(&self, mut batch: FleetBatch, addresses: &[A]) -> Ticket {
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
}

impl<A: Address> RemoteTable for Remote<A> {
    type Keys<'k> = &'k [A];
    type Follower = RemoteFollower<A>;

    const PARTS: usize = 4;

    fn fleet(&self) -> &Fleet {
        self.fleet()
    }

    fn follower(&self) -> RemoteFollower<A> {
        self.follower()
    }

    fn is_out(&self) -> Option<GpuError> {
        self.is_out()
    }

    fn estimate(&self, keys: usize) -> Duration {
        self.estimate(keys)
    }

    fn count(keys: &[A]) -> usize {
        keys.len()
    }

    fn part<'k>(keys: Self::Keys<'k>, part: Range<usize>) -> Self::Keys<'k> {
        &keys[part]
    }

    fn end_of_part(&self, keys: &[A], start: usize) -> usize {
        let largest = self.inner.fleet.largest_batch();
        let part = keys.len().div_ceil(Self::PARTS).max(LEAST_PART).min(largest).max(1);
        keys.len().min(start + part)
    }
}

impl<A: Address> Answers<NextHop> for Remote<A> {
    fn send(&self, keys: &[A]) -> Result<Ticket, GpuError> {
        self.submit(keys)
    }

    fn try_send(&self, keys: &[A]) -> Result<Option<Ticket>, GpuError> {
        self.try_submit(keys)
    }

    fn results(&self, done: Done, keys: &[A], found: &mut [NextHop]) -> Result<(), GpuError> {
        self.take(done, keys, found)
    }
}

/// Passes a live table's changes on to its copy on GPUs. A change that fails takes the copy out of use, until
/// a whole table takes its place again.
pub struct RemoteFollower<A>(Remote<A>);

impl<A> std::fmt::Debug for RemoteFollower<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RemoteFollower")
    }
}

impl<A: Address, T: OnDevice> Follower<T> for RemoteFollower<A> {
    fn reach(&mut self, bits: u8) {
        let inner = &self.0.inner;
        let narrow = KeyBytes::for_bits(A::FAMILY, inner.bits.fetch_max(bits, Ordering::AcqRel));
        let wide = KeyBytes::for_bits(A::FAMILY, bits);
        if wide > narrow {
            inner.staleness.note(inner.table.require(wide.count()).map(|()| 0));
        }
    }

    fn patch(&mut self, patch: &Patch) {
        // A table that missed a change takes no other.
        let inner = &self.0.inner;
        if !inner.staleness.is_stale() {
            inner.staleness.note(inner.table.patch(patch));
        }
    }

    fn replace(&mut self, table: &T) {
        let inner = &self.0.inner;
        let replaced = inner.table.replace(Table::image(table), |sections| table.programs(sections));
        inner.staleness.replaced(replaced);
    }
}
