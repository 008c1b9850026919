//! [`Gpu`]: the handle of a started device.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use wirespeed_image::Image;

use super::batch::Batch;
use super::calibrate::Calibration;
use super::command::{Answer, Command, OnDevice, Staging};
use super::form::Form;
use super::memory::{Account, Usage};
use super::on_device::{DeviceKeys, DeviceMemory, Enqueued};
use super::options::GpuOptions;
use super::owner::Owner;
use super::pool::Pool;
use super::table::TableHandle;
use super::tune::{Tuned, Tuning};
use super::{Result, calibrate, locked};
use crate::driver::{Driver, Properties, Stream};
use crate::error::GpuError;
use wirespeed_image::device::{Programs, Sections};

/// The most commands that wait for the owner. Sending one more waits.
const COMMANDS: usize = 1024;

/// A device in use. Clones share the device.
#[derive(Clone)]
pub struct Gpu {
    core: Arc<Core>,
}

/// The part that all handles of a device share. The owner ends when it is dropped.
pub(super) struct Core {
    commands: Option<Sender<Command>>,
    pub(super) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    ended: Receiver<()>,
}

/// The part that the owner shares with the handles.
pub(super) struct Shared {
    pub(super) options: GpuOptions,
    pub(super) properties: Properties,
    pub(super) pool: Pool,
    /// The reason why the device can't be used any more.
    pub(super) lost: OnceLock<GpuError>,
    pub(super) load: Load,
    pub(super) account: Account,
    pub(super) stagings: Receiver<Staging>,
    pub(super) calibration: Mutex<Option<Calibration>>,
    ids: AtomicU64,
}

/// The number of keys under way.
#[derive(Debug, Default)]
pub(super) struct Load(AtomicU64);

impl Gpu {
    /// Starts a device's owner, and allocates the memory of all slots.
    pub fn start(driver: Box<dyn Driver>, mut options: GpuOptions) -> Result<Self> {
        options.slots.retain(|size| size.slots > 0 && size.keys > 0);
        options.slots.sort_by_key(|size| size.keys);
        let (commands, orders) = bounded(COMMANDS);
        let (staging, stagings) = bounded(2);
        let shared = Arc::new(Shared {
            properties: driver.properties().clone(),
            pool: Pool::new(options.slots.iter().map(|size| size.keys).collect()),
            lost: OnceLock::new(),
            load: Load::default(),
            account: Account::new(options.memory_cap),
            stagings,
            calibration: Mutex::new(None),
            ids: AtomicU64::new(0),
            options,
        });
        let (up, is_up) = bounded(1);
        let (end, ended) = bounded(1);
        let of_owner = Arc::clone(&shared);
        let name = format!("gpu {}", shared.properties.bus);
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || {
                // It is sent, or dropped by a panic; both end the wait.
                let _end: Sender<()> = end;
                match Owner::new(driver, orders, of_owner, staging) {
                    Ok(owner) => {
                        drop(up.send(Ok(())));
                        owner.run();
                    }
                    Err(error) => drop(up.send(Err(error))),
                }
            })
            .map_err(|error| GpuError::Call { call: "starting a thread", why: error.to_string() })?;
        let core = Core { commands: Some(commands), shared, thread: Some(thread), ended };
        is_up.recv().unwrap_or_else(|_| Err(core.shared.why_lost()))?;
        Ok(Self { core: Arc::new(core) })
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

    /// A batch for `keys` keys. Waits for a slot. A caller that holds all slots itself waits for ever; a
    /// [`Submitter`](super::Submitter) waits for one of its own batches instead.
    pub fn batch(&self, keys: usize) -> Result<Batch> {
        loop {
            if let Some(slot) = self.core.shared.pool.take(keys, None)? {
                return Ok(Batch::new(Arc::clone(&self.core), slot));
            }
        }
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

    /// A batch for a measurement. Fails if none comes free: slots may be kept for any time.
    pub(super) fn batch_in_time(&self, keys: usize) -> Result<Batch> {
        let timeout = self.options().timeout;
        let batch = self.batch_until(keys, Instant::now() + timeout)?;
        batch.ok_or_else(|| GpuError::NoSlot(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Measures each transfer by batch size, for half a second at most, with the slots that such batches get.
    /// [`Transfer::Auto`](super::Transfer::Auto) chooses by the result from then on. Keys are random bytes.
    /// Batches of other threads disturb the measurement.
    pub fn calibrate(&self, table: &TableHandle, key_bytes: usize) -> Result<Calibration> {
        let seed = Cell::new(0);
        let fill = |batch: &mut Batch, count: usize| {
            seed.set(seed.get() + 1);
            let used = (count * key_bytes).min(batch.keys_mut().len());
            calibrate::fill(&mut batch.keys_mut()[..used], seed.get());
            Form::keys(key_bytes, count)
        };
        calibrate::run(self, table, fill, Duration::from_millis(500))
    }

    /// Measures like [`calibrate`](Self::calibrate), with keys of any length: `fill` writes the first keys of
    /// a sample into a batch and returns their form, or `None` if they don't fit.
    pub fn calibrate_with(
        &self,
        table: &TableHandle,
        fill: impl Fn(&mut Batch, usize) -> Option<Form>,
    ) -> Result<Calibration> {
        calibrate::run(self, table, fill, Duration::from_millis(500))
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

    /// Measures by batch size the best numbers of blocks and threads for each of the table's programs, and
    /// the fastest program, and uses the result. Keys are random bytes on the device. All other work waits,
    /// well under a second.
    pub fn tune(&self, table: &TableHandle, key_bytes: usize) -> Result<Tuning> {
        let most = self.options().key_bytes;
        if key_bytes > most {
            return Err(GpuError::TooWide { what: "keys", asked: key_bytes, most });
        }
        self.tune_with(table, |batch| {
            calibrate::fill(batch.keys_mut(), 1);
            Form::keys(key_bytes, batch.capacity())
        })
    }

    /// Measures like [`tune`](Self::tune), with keys of any length: `fill` writes as many keys of a sample as
    /// fit into a batch and returns their form.
    pub fn tune_with(
        &self,
        table: &TableHandle,
        fill: impl FnOnce(&mut Batch) -> Option<Form>,
    ) -> Result<Tuning> {
        if !table.is_of(&self.core) {
            return Err(GpuError::OtherDevice);
        }
        let mut batch = self.batch_in_time(self.largest_batch())?;
        let too_many = GpuError::TooManyKeys { asked: batch.capacity(), most: batch.capacity() };
        let form = fill(&mut batch).ok_or(too_many)?;
        let (slot, table) = (batch.into_slot(), table.id());
        self.core.ask(|answer| Command::Tune { slot, table, form, answer })
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

impl Core {
    /// Sends a command. Returns it if there is no owner any more.
    #[allow(clippy::result_large_err)] // the error is the command itself
    pub(super) fn send(&self, command: Command) -> std::result::Result<(), Command> {
        match &self.commands {
            Some(commands) => commands.send(command).map_err(|unsent| unsent.0),
            None => Err(command),
        }
    }

    /// Sends a command that has no answer.
    pub(super) fn order(&self, command: Command) -> Result<()> {
        match self.shared.lost.get() {
            Some(lost) => Err(lost.clone()),
            None => self.send(command).map_err(|_| self.shared.why_lost()),
        }
    }

    /// Sends a command that takes microseconds, and polls for its answer before it waits: to be woken takes
    /// as long as such a command.
    pub(super) fn ask_briefly<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T> {
        let (answer, answered) = bounded(1);
        self.order(command(answer))?;
        let began = Instant::now();
        while began.elapsed() < self.shared.options.spin {
            match answered.try_recv() {
                Ok(found) => return found,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
        }
        answered.recv().unwrap_or_else(|_| Err(self.shared.why_lost()))
    }

    /// Sends a command and waits for its answer.
    pub(super) fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T> {
        let (answer, answered) = bounded(1);
        self.order(command(answer))?;
        answered.recv().unwrap_or_else(|_| Err(self.shared.why_lost()))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.commands = None;
        // The owner sees that no handle is left. It ends when the device has done its work, or has not done
        // it within the timeout. Only a call of the driver that never returns could take longer; then the
        // thread is abandoned.
        let patience = self.shared.options.timeout * 2 + Duration::from_secs(1);
        let is_stuck =
            matches!(self.ended.recv_timeout(patience), Err(crossbeam_channel::RecvTimeoutError::Timeout));
        if let Some(thread) = self.thread.take()
            && !is_stuck
        {
            drop(thread.join());
        }
    }
}

impl Shared {
    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Says that the device can't be used any more. The first reason counts.
    pub(super) fn lose(&self, why: GpuError) {
        if self.lost.set(why.clone()).is_ok() {
            tracing::error!(device = self.properties.name, "{why}");
        }
        self.pool.close(why);
    }

    /// The reason why there is no answer. If the owner has ended, or is about to say why, the device counts
    /// as lost from now on.
    pub(super) fn why_lost(&self) -> GpuError {
        if self.lost.get().is_none() {
            self.lose(GpuError::Lost("its owner thread has ended".into()));
        }
        self.lost.get().cloned().expect("it is lost now if it wasn't")
    }
}

impl Load {
    pub(super) fn add(&self, keys: usize) {
        self.0.fetch_add(keys as u64, Ordering::Relaxed);
    }

    pub(super) fn done(&self, keys: usize) {
        self.0.fetch_sub(keys as u64, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
