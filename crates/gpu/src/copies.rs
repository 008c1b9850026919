//! [`Copies`]: a table on GPUs, whatever its keys are: a replica on each, whether they are in step with the
//! live table, and what measuring gave.

use std::time::Duration;

use wirespeed_image::Patch;
use wirespeed_image::device::OnDevice;

use crate::error::GpuError;
use crate::follow::Staleness;
use crate::runtime::{Calibration, Fleet, FleetTable, Gpu, TableHandle};

/// A table on GPUs.
#[derive(Debug)]
pub struct Copies {
    fleet: Fleet,
    table: FleetTable,
    staleness: Staleness,
    calibration: Calibration,
}

impl Copies {
    /// Brings a table to all GPUs, and has each measured; the first one's counts. `None` says that there is
    /// nothing to measure with.
    pub(crate) fn upload<T: OnDevice>(
        fleet: &Fleet,
        table: &T,
        mut measure: impl FnMut(usize, &Gpu, &TableHandle) -> Result<Option<Calibration>, GpuError>,
    ) -> Result<Self, GpuError> {
        let remote = fleet.upload(table.image(), |sections| table.programs(sections))?;
        let mut calibration = Calibration::default();
        for (at, (gpu, replica)) in fleet.gpus().iter().zip(remote.replicas()).enumerate() {
            let measured = measure(at, gpu, replica)?;
            if at == 0 {
                calibration = measured.unwrap_or_default();
            }
        }
        Ok(Self { fleet: fleet.clone(), table: remote, staleness: Staleness::default(), calibration })
    }

    /// The GPUs.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The replicas.
    pub fn table(&self) -> &FleetTable {
        &self.table
    }

    /// What the ways of moving data give, as measured at the start.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Why nothing can be looked up in it, if so.
    pub fn is_out(&self) -> Option<GpuError> {
        self.staleness.is_out(&self.fleet)
    }

    /// Fails where nothing can be looked up in it.
    pub(crate) fn check(&self) -> Result<(), GpuError> {
        self.is_out().map_or(Ok(()), Err)
    }

    /// How long a batch of so many keys is expected to take: as long as one alone, and what is under way
    /// before it.
    pub fn estimate(&self, keys: usize) -> Duration {
        self.calibration.estimate(keys, self.fleet.least_load())
    }

    /// What to ask for to get a slot for so many keys of so many bytes in all.
    #[cfg(any(feature = "names", feature = "rules"))]
    pub(crate) fn slot_keys(&self, count: usize, bytes: usize) -> usize {
        let each = |gpu: &Gpu| gpu.options().slot_keys(count, bytes);
        self.fleet.gpus().iter().map(each).max().unwrap_or(0)
    }

    /// Has lookups take keys of so many bytes only, from the next change on.
    pub(crate) fn require(&self, key_bytes: usize) {
        self.staleness.note(self.table.require(key_bytes).map(|()| 0));
    }

    /// Passes a change on. One that fails takes the copies out of use.
    pub(crate) fn patch(&self, patch: &Patch) {
        // A table that missed a change takes no other.
        if !self.staleness.is_stale() {
            self.staleness.note(self.table.patch(patch));
        }
    }

    /// Puts another table in place of this one, and the copies in use again where that succeeds; whether it
    /// did.
    pub(crate) fn replace<T: OnDevice>(&self, table: &T) -> bool {
        let replaced = self.table.replace(table.image(), |sections| table.programs(sections));
        let is_replaced = replaced.is_ok();
        self.staleness.replaced(replaced);
        is_replaced
    }
}
