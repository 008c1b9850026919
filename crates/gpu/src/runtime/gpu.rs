//! [`Gpu`]: the handle of a started device.

use std::sync::Arc;
use std::time::Instant;

use wirespeed_image::Image;
use wirespeed_image::device::{Programs, Sections};

use super::batch::Batch;
use super::calibration::Calibration;
use super::command::{Command, OnDevice};
use super::core::Core;
use super::memory::Usage;
use super::on_device::{DeviceKeys, DeviceMemory, Enqueued};
use super::options::GpuOptions;
use super::table::TableHandle;
use super::tune::{Tuned, Tuning};
use super::{Result, locked};
use crate::driver::{Driver, Properties, Stream};
use crate::error::GpuError;

/// A device in use. Clones share the device.
#[derive(Clone)]
pub struct Gpu {
    pub(super) core: Arc<Core>,
}

impl Gpu {
    /// Starts a device's owner, and allocates the memory of all slots.
    pub fn start(driver: Box<dyn Driver>, options: GpuOptions) -> Result<Self> {
        Ok(Self { core: Arc::new(Core::start(driver, options)?) })
    }

    /// The properties of the device.
    pub fn properties(&self) -> &Properties {
        &self.core.shared.properties
    }

    /// The options that it was started with.
    pub fn options(&self) -> &GpuOptions {
        &self.core.shared.options
    }

    /// The memory that it uses.
    pub fn usage(&self) -> Usage {
        self.core.shared.account.usage()
    }

    /// The number of keys under way.
    pub fn load(&self) -> u64 {
        self.core.shared.load.now()
    }

    /// The reason why it can't be used any more. `None` while it can.
    pub fn lost(&self) -> Option<&GpuError> {
        self.core.shared.lost.get()
    }

    /// The number of keys that the largest slot holds.
    pub fn largest_batch(&self) -> usize {
        self.core.shared.pool.largest()
    }

    /// The number of slots that hold this number of keys.
    pub fn slots_for(&self, keys: usize) -> usize {
        self.core.shared.pool.slots_for(keys)
    }

    /// A batch for `keys` keys. Waits for a slot. A caller that holds all slots itself waits for ever; a
    /// [`Submitter`](super::Submitter) waits for one of its own batches instead.
    pub fn batch(&self, keys: usize) -> Result<Batch> {
        loop {
            if let Some(slot) = self.core.shared.pool.take(keys, None)? {
                return Ok(Batch::new(Arc::clone(&self.core), slot));
            }
        }
    }

    /// Whether a quarter of the slots for `keys` keys is free.
    pub fn has_spare_slots(&self, keys: usize) -> bool {
        self.core.shared.pool.has_spare(keys)
    }

    /// A batch, if a slot is free.
    pub fn try_batch(&self, keys: usize) -> Result<Option<Batch>> {
        let slot = self.core.shared.pool.try_take(keys)?;
        Ok(slot.map(|slot| Batch::new(Arc::clone(&self.core), slot)))
    }

    /// A batch, if a slot becomes free before the deadline.
    pub fn batch_until(&self, keys: usize, deadline: Instant) -> Result<Option<Batch>> {
        let slot = self.core.shared.pool.take(keys, Some(deadline))?;
        Ok(slot.map(|slot| Batch::new(Arc::clone(&self.core), slot)))
    }

    /// Copies an image to the device, without the sections in [`GpuOptions::leave_out`]. `make` gives the
    /// programs that look up in it. Returns when the copy is done. O(bytes).
    ///
    /// The image must have been checked by its engine, because kernels follow its elements without a check.
    pub fn upload(&self, image: &Image, make: impl FnOnce(Sections<'_>) -> Programs) -> Result<TableHandle> {
        TableHandle::upload(&self.core, image, make)
    }

    /// Looks up keys that are on the device: puts the lookup into the caller's stream and returns. The lookup
    /// sees one state of the table, like a batch. Its results are as wide as those of that state: an error,
    /// and nothing in the stream, if the memory for them is too small.
    ///
    /// # Safety
    /// Until the stream is done with the lookup, both parts of the keys are valid: planes for all keys, other
    /// parts in the layout that kernels of this kind take, up to the next multiple of 16 bytes. So are the
    /// results, for the bytes that are stated. Nobody writes to the keys or uses the results, except in the
    /// order of the stream. All are on this device, in the driver's context. The stream is the driver's or
    /// belongs to its context, and is not being captured.
    #[allow(unsafe_code)] // as its contract says
    pub unsafe fn lookup_on(
        &self,
        table: &TableHandle,
        stream: Stream,
        keys: DeviceKeys,
        results: DeviceMemory,
    ) -> Result<Enqueued> {
        if !table.is_of(&self.core) {
            return Err(GpuError::OtherDevice);
        }
        keys.check()?;
        let table = table.id();
        let command = |answer| Command::LookUp(Box::new(OnDevice { table, stream, keys, results, answer }));
        self.core.ask_briefly(command)
    }

    /// The last measurement.
    pub fn calibration(&self) -> Option<Calibration> {
        locked(&self.core.shared.calibration).clone()
    }

    /// Uses an earlier measurement for choosing.
    pub fn set_calibration(&self, calibration: Calibration) -> Result<()> {
        *locked(&self.core.shared.calibration) = Some(calibration.clone());
        self.core.order(Command::Calibrated(Box::new(calibration)))
    }

    /// Uses the result of an earlier run on a device of this name. Other results are ignored.
    pub fn set_tuned(&self, tuning: &Tuning) -> Result<()> {
        let tuned: Vec<Tuned> =
            if tuning.device == self.properties().name { tuning.tuned.clone() } else { Vec::new() };
        self.core.order(Command::Tuned(tuned))
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (device, lost) = (&self.properties().name, self.lost());
        f.debug_struct("Gpu").field("device", device).field("lost", &lost).finish_non_exhaustive()
    }
}
