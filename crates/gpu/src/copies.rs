//! [`Copies`]: a table on GPUs, for keys of any kind: a replica on each GPU, whether the replicas are in step
//! with the live table, and the measurements.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wirespeed_image::Patch;

use crate::error::GpuError;
use crate::follow::Staleness;
use crate::runtime::{Calibration, Curve, Fleet, FleetBatch, FleetTable, Gpu, TableHandle};
use crate::source::Source;

/// A table on GPUs.
#[derive(Debug)]
pub struct Copies {
    fleet: Fleet,
    table: FleetTable,
    staleness: Staleness,
    calibration: Calibration,
    curve: Curve,
    /// Whether the last wait for a slot was in vain, and no slot has been free since.
    is_crowded: AtomicBool,
}

/// The time that a batch waits for a slot while nothing is under way: slots that somebody keeps may never be
/// free. Batches under way will free theirs, so a wait for them may be as long as a device is trusted to
/// take.
const PATIENCE: Duration = Duration::from_millis(200);

/// A measurement of a GPU, with its index and the copy on it.
type Measure<'m> = dyn FnMut(usize, &Gpu, &TableHandle) -> Result<Option<Calibration>, GpuError> + 'm;

impl Copies {
    /// Copies a table to all GPUs, and calls a measurement on each; the result of the first GPU counts.
    /// `None` says that there is nothing to measure with.
    pub(crate) fn upload(
        fleet: &Fleet,
        table: &dyn Source,
        measure: &mut Measure<'_>,
    ) -> Result<Self, GpuError> {
        let remote = fleet.upload(table.image(), &|sections| table.programs(sections))?;
        let mut calibration = Calibration::default();
        for (at, (gpu, replica)) in fleet.gpus().iter().zip(remote.replicas()).enumerate() {
            let measured = measure(at, gpu, replica)?;
            if at == 0 {
                calibration = measured.unwrap_or_default();
            }
        }
        let (staleness, curve) = (Staleness::default(), calibration.curve());
        let is_crowded = AtomicBool::new(false);
        Ok(Self { fleet: fleet.clone(), table: remote, staleness, calibration, curve, is_crowded })
    }

    /// The GPUs.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The replicas.
    pub fn table(&self) -> &FleetTable {
        &self.table
    }

    /// The measurements of transfers, made at the start.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The time of a batch and the rate of many by batch size, as measured at the start.
    pub(crate) fn curve(&self) -> &Curve {
        &self.curve
    }

    /// The error that took the copies out of use, if they are.
    pub fn is_out(&self) -> Option<GpuError> {
        self.staleness.is_out(&self.fleet)
    }

    /// A GPU by its index in the fleet, and the copy on it. Fails if the GPU is lost, or if the copies are
    /// out of use.
    pub fn replica(&self, device: usize) -> Result<(&Gpu, &TableHandle), GpuError> {
        self.check()?;
        let (gpus, replicas) = (self.fleet.gpus(), self.table.replicas());
        let none = GpuError::NoSuchDevice { asked: device, there: gpus.len() };
        let (gpu, replica) = gpus.get(device).zip(replicas.get(device)).ok_or(none)?;
        gpu.lost().map_or(Ok((gpu, replica)), |lost| Err(lost.clone()))
    }

    /// Fails if the copies are out of use.
    pub(crate) fn check(&self) -> Result<(), GpuError> {
        self.is_out().map_or(Ok(()), Err)
    }

    /// A free slot for `keys` keys of the widest kind. `None` if no slot is free.
    pub(crate) fn try_slot(&self, keys: usize) -> Result<Option<FleetBatch>, GpuError> {
        self.check()?;
        let slot = self.fleet.try_batch(keys)?;
        if slot.is_some() && self.is_crowded.load(Ordering::Relaxed) {
            self.is_crowded.store(false, Ordering::Relaxed);
        }
        Ok(slot)
    }

    /// Whether enough slots for `keys` keys are free that one may be kept for some time: a quarter.
    #[cfg(feature = "names")]
    pub(crate) fn has_spare_slots(&self, keys: usize) -> bool {
        self.fleet.gpus().iter().any(|gpu| gpu.has_spare_slots(keys))
    }

    /// A slot like that of [`try_slot`](Self::try_slot). Waits for one, but not for ever: slots may be kept
    /// for any time. After a wait in vain nobody waits until a slot is free again.
    pub(crate) fn slot(&self, keys: usize) -> Result<FleetBatch, GpuError> {
        if let Some(slot) = self.try_slot(keys)? {
            return Ok(slot);
        }
        let none = || GpuError::NoSlot(u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX));
        if self.is_crowded.load(Ordering::Relaxed) {
            return Err(none());
        }
        let start = Instant::now();
        let trust = self.fleet.gpus().iter().map(|gpu| gpu.options().timeout).max().unwrap_or(PATIENCE);
        loop {
            let slot = self.fleet.batch_until(keys, Instant::now() + PATIENCE)?;
            let is_working = self.fleet.gpus().iter().any(|gpu| gpu.load() > 0);
            if slot.is_some() || !is_working || start.elapsed() >= trust {
                self.is_crowded.store(slot.is_none(), Ordering::Relaxed);
                return slot.ok_or_else(none);
            }
        }
    }

    /// The expected time of a batch of `keys` keys: the time of a batch alone, and of the keys under way
    /// before it.
    pub fn estimate(&self, keys: usize) -> Duration {
        self.curve.estimate(keys, self.fleet.least_load())
    }

    /// The number of keys to ask a slot for, so that it holds `count` keys of `bytes` bytes in all.
    #[cfg(any(feature = "names", feature = "rules"))]
    pub(crate) fn slot_keys(&self, count: usize, bytes: usize) -> usize {
        let each = |gpu: &Gpu| gpu.options().slot_keys(count, bytes);
        self.fleet.gpus().iter().map(each).max().unwrap_or(0)
    }

    /// Makes lookups refuse keys of fewer bytes, from the next change on.
    pub(crate) fn require(&self, key_bytes: usize) {
        self.staleness.note(self.table.require(key_bytes).map(|()| 0));
    }

    /// Makes results of keys on the GPUs wider, from the next change on.
    #[cfg(feature = "rules")]
    pub(crate) fn widen(&self, result_bytes: usize) {
        self.staleness.note(self.table.widen(result_bytes).map(|()| 0));
    }

    /// Applies a patch. A failure takes the copies out of use.
    pub(crate) fn patch(&self, patch: &Patch) {
        // A table that missed a change takes no further change.
        if !self.staleness.is_stale() {
            self.staleness.note(self.table.patch(patch));
        }
    }

    /// Replaces the table. Success puts the copies in use again. Returns whether it succeeded.
    pub(crate) fn replace(&self, table: &dyn Source) -> bool {
        let replaced = self.table.replace(table.image(), &|sections| table.programs(sections));
        let is_replaced = replaced.is_ok();
        self.staleness.replaced(replaced);
        is_replaced
    }
}
