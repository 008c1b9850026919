//! [`Fleet`]: several GPUs with a replica of every table on each.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use wirespeed_image::{Image, Patch};

use super::batch::{Batch, Done, Ticket};
use super::form::Form;
use super::gpu::Gpu;
use super::table::TableHandle;
use super::{Result, locked};
use crate::error::GpuError;
use wirespeed_image::device::{Programs, Sections};

/// The time that a batch waits for the least loaded device before all devices are considered again.
const PATIENCE: Duration = Duration::from_millis(1);

/// Devices that share the work: a batch goes to the device with the fewest keys under way. Lost devices are
/// left out.
#[derive(Clone, Debug)]
pub struct Fleet {
    gpus: Arc<[Gpu]>,
}

/// A table with a replica on each device. All replicas get the same changes in the same order, and have the
/// same versions, those of [`TableHandle`].
#[derive(Clone, Debug)]
pub struct FleetTable {
    replicas: Arc<[TableHandle]>,
    /// Held while a change goes to all devices.
    order: Arc<Mutex<()>>,
}

/// A batch of one of the devices.
#[derive(Debug)]
pub struct FleetBatch {
    device: usize,
    batch: Batch,
}

impl Fleet {
    /// Makes a fleet of at least one device.
    pub fn new(gpus: Vec<Gpu>) -> Result<Self> {
        if gpus.is_empty() { Err(GpuError::NoDevice) } else { Ok(Self { gpus: gpus.into() }) }
    }

    /// The devices.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// The fewest keys under way on any device.
    pub fn least_load(&self) -> u64 {
        self.gpus.iter().map(Gpu::load).min().unwrap_or(0)
    }

    /// The number of keys that the largest slot of every device holds.
    pub fn largest_batch(&self) -> usize {
        self.gpus.iter().map(Gpu::largest_batch).min().unwrap_or(0)
    }

    /// The number of slots, of all devices together, that hold this number of keys.
    pub fn slots_for(&self, keys: usize) -> usize {
        self.gpus.iter().map(|gpu| gpu.slots_for(keys)).sum()
    }

    /// Copies an image to all devices ([`Gpu::upload`]).
    pub fn upload(
        &self,
        image: &Image,
        make: &(dyn Fn(Sections<'_>) -> Programs + Sync),
    ) -> Result<FleetTable> {
        let replicas: Result<Vec<TableHandle>> =
            on_all(&self.gpus, |gpu| gpu.upload(image, make)).into_iter().collect();
        Ok(FleetTable { replicas: replicas?.into(), order: Arc::default() })
    }

    /// A batch for `keys` keys, on the device with the fewest keys under way that has a free slot. Waits for
    /// a slot.
    pub fn batch(&self, keys: usize) -> Result<FleetBatch> {
        loop {
            if let Some(batch) = self.batch_until(keys, Instant::now() + PATIENCE)? {
                return Ok(batch);
            }
        }
    }

    /// A batch like that of [`batch`](Self::batch). `None` if the deadline comes first.
    pub fn batch_until(&self, keys: usize, deadline: Instant) -> Result<Option<FleetBatch>> {
        loop {
            if let Some(batch) = self.try_batch(keys)? {
                return Ok(Some(batch));
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            let Some(&device) = self.by_load()?.first() else { continue };
            let waited = self.gpus[device].batch_until(keys, deadline.min(now + PATIENCE));
            if let Some(batch) = self.unless_lost(device, waited)? {
                return Ok(Some(FleetBatch { device, batch }));
            }
        }
    }

    /// A batch like that of [`batch`](Self::batch). `None` if no slot is free.
    pub fn try_batch(&self, keys: usize) -> Result<Option<FleetBatch>> {
        // The usual case, without a list.
        if let [gpu] = &*self.gpus {
            return Ok(gpu.try_batch(keys)?.map(|batch| FleetBatch { device: 0, batch }));
        }
        for device in self.by_load()? {
            // A device that is lost at this moment is left out the next time.
            if let Some(batch) = self.unless_lost(device, self.gpus[device].try_batch(keys))? {
                return Ok(Some(FleetBatch { device, batch }));
            }
        }
        Ok(None)
    }

    /// The devices that are not lost, those with the fewest keys under way first. Fails with the first
    /// device's error if all are lost.
    fn by_load(&self) -> Result<Vec<usize>> {
        let mut alive: Vec<_> = self
            .gpus
            .iter()
            .enumerate()
            .filter(|(_, gpu)| gpu.lost().is_none())
            .map(|(device, gpu)| (gpu.load(), device))
            .collect();
        alive.sort_unstable();
        match self.gpus[0].lost() {
            Some(lost) if alive.is_empty() => Err(lost.clone()),
            _ => Ok(alive.into_iter().map(|(_, device)| device).collect()),
        }
    }

    fn unless_lost(&self, device: usize, batch: Result<Option<Batch>>) -> Result<Option<Batch>> {
        match batch {
            Err(_) if self.gpus[device].lost().is_some() => Ok(None),
            other => other,
        }
    }
}

impl FleetTable {
    /// The replica on each device, in their order.
    pub fn replicas(&self) -> &[TableHandle] {
        &self.replicas
    }

    /// The replica on the device of a batch. `None` if the batch is of another fleet.
    pub fn beside(&self, batch: &Batch) -> Option<&TableHandle> {
        self.replicas.iter().find(|replica| batch.is_beside(replica))
    }

    /// Sends the keys of a batch that has come back once more, in this form. Gives the batch back if it is of
    /// another fleet.
    pub fn submit_again(&self, done: Done, form: Form) -> std::result::Result<Ticket, Done> {
        match self.replicas.iter().find(|replica| done.is_beside(replica)) {
            Some(replica) => Ok(done.submit_form(replica, form)),
            None => Err(done),
        }
    }

    /// Applies a patch on all devices ([`TableHandle::patch`]), and returns the version that it makes.
    pub fn patch(&self, patch: &Patch) -> Result<u64> {
        let _in_order = locked(&self.order);
        merged(self.replicas.iter().map(|replica| replica.patch(patch)))
    }

    /// Refuses keys of fewer bytes on all devices from now on ([`TableHandle::require`]).
    pub fn require(&self, key_bytes: usize) -> Result<()> {
        let _in_order = locked(&self.order);
        merged(self.replicas.iter().map(|replica| replica.require(key_bytes).map(|()| 0))).map(drop)
    }

    /// Makes results wider on all devices from now on ([`TableHandle::widen`]).
    pub fn widen(&self, result_bytes: usize) -> Result<()> {
        let _in_order = locked(&self.order);
        merged(self.replicas.iter().map(|replica| replica.widen(result_bytes).map(|()| 0))).map(drop)
    }

    /// Replaces the table on all devices ([`TableHandle::replace`]). If a device has no memory for it the
    /// call fails, and the other devices have the new table.
    pub fn replace(&self, image: &Image, make: &(dyn Fn(Sections<'_>) -> Programs + Sync)) -> Result<u64> {
        let _in_order = locked(&self.order);
        merged(on_all(&self.replicas, |replica| replica.replace(image, make)).into_iter())
    }
}

impl FleetBatch {
    /// The index of the batch's device.
    pub const fn device(&self) -> usize {
        self.device
    }

    /// All bytes of the batch.
    pub fn keys(&self) -> &[u8] {
        self.batch.keys()
    }

    /// The batch, for filling.
    pub const fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Sends it ([`Batch::submit`]).
    pub fn submit(self, table: &FleetTable, key_bytes: usize, count: usize) -> Ticket {
        self.batch.submit(&table.replicas[self.device], key_bytes, count)
    }

    /// Sends keys of any length ([`Batch::submit_form`]).
    pub fn submit_form(self, table: &FleetTable, form: Form) -> Ticket {
        self.batch.submit_form(&table.replicas[self.device], form)
    }
}

/// Calls `each` for all devices at once: uploads use each device's own bus.
fn on_all<T: Sync, R: Send>(all: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let each = &each;
    std::thread::scope(|scope| {
        let threads: Vec<_> = all.iter().map(|one| scope.spawn(move || each(one))).collect();
        let results = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        results.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// The version that a change made. Lost devices don't count if another device is left.
fn merged(results: impl Iterator<Item = Result<u64>>) -> Result<u64> {
    let mut best = Err(GpuError::NoDevice);
    for result in results {
        match (&best, result) {
            (_, Err(error)) if !error.is_fatal() => return Err(error),
            (Err(_), result) => best = result,
            (Ok(version), Ok(other)) => best = Ok(other.max(*version)),
            (Ok(_), Err(_)) => {}
        }
    }
    best
}
