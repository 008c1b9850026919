//! The submission of a batch to its stream.
//!
//! ```text
//! Copies   keys in ─► (patch) ─► kernel ─► [looked up] ─► results out ─► [done]
//! Mapped              (patch) ─► kernel ─► [done]               a kernel of one block says itself that it is done (`flag`)
//! Graphs              (patch) ─► keys in, kernel, results out as one ─► [done]
//! ```
//!
//! `(patch)` waits for the table's last patch, if it is still under way.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytemuck::{Pod, Zeroable, bytes_of};

use super::graphs::{Plan, Recorded};
use super::launch::Launch;
use super::{Cargo, Owner};
use crate::driver::{DevicePtr, Shape, Stream};
use crate::error::GpuError;
use crate::runtime::Result;
use crate::runtime::command::OnDevice;
use crate::runtime::form::Form;
use crate::runtime::on_device::{DeviceKeys, Enqueued};
use crate::runtime::options::{Transfer, Way};
use crate::runtime::slot::{Outcome, Request, Slot};
use crate::runtime::tune::Company;
use wirespeed_image::device::Kind;

/// `Batch` of `kernels/batch.cuh`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct KernelBatch {
    keys: DevicePtr,
    low: DevicePtr,
    results: DevicePtr,
    count: u64,
    /// The address at which a grid of one block writes the mark when it is done. Null for none.
    done: DevicePtr,
    mark: u32,
    /// 0 until the launch if the batch does not state it.
    result_bytes: u32,
}

impl KernelBatch {
    pub(super) fn new(keys: DevicePtr, form: Form, results: DevicePtr) -> Self {
        let low = form.second().map_or(DevicePtr(0), |second| keys.plus(second as u64));
        Self::of(keys, low, results, form.count(), form.result_bytes())
    }

    fn of(
        keys: DevicePtr,
        low: DevicePtr,
        results: DevicePtr,
        count: usize,
        result_bytes: Option<usize>,
    ) -> Self {
        let result_bytes = result_bytes.map_or(0, few);
        Self { keys, low, results, count: count as u64, done: DevicePtr(0), mark: 0, result_bytes }
    }

    /// Sets the width of the table's results if the batch states none.
    fn or_results_of(mut self, bytes: usize) -> Self {
        if self.result_bytes == 0 {
            self.result_bytes = few(bytes);
        }
        self
    }
}

/// Bytes of a result, at most 8.
fn few(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(0)
}

#[allow(unsafe_code)] // copies and launches
impl Owner {
    pub(super) fn submit(&mut self, mut slot: Box<Slot>) {
        // A panic must not lose the slot, because a thread waits for it.
        let sent = catch_unwind(AssertUnwindSafe(|| self.alive().and_then(|()| self.enqueue(&mut slot))))
            .unwrap_or_else(|_| Err(GpuError::Lost("its owner thread panicked".into())));
        let error = match sent {
            Ok((copy, reads_on)) => {
                let read = if reads_on { slot.looked_up } else { slot.done };
                return self.take_off(slot.done, read, Some(copy), Cargo::Batch(slot));
            }
            Err(error) => error,
        };
        // Work that was sent before the error may still be under way, and use the slot.
        if !error.is_fatal()
            && let Err(worse) = self.driver.synchronize(slot.stream)
        {
            self.fail(&worse);
        }
        // This is first, so that a thread that learns of a loss finds no part that looks usable.
        self.note(&error);
        slot.outcome = Outcome::failed(error);
        self.hand_out(slot);
    }

    /// Submits a batch to its stream. Returns the copy of the table that it reads, and whether `looked_up`
    /// tells when it has.
    fn enqueue(&mut self, slot: &mut Slot) -> Result<(u64, bool)> {
        let Request { table, form, .. } = slot.request;
        self.check_keys(table, form.kind())?;
        self.flush(table)?;
        let launch = self.launch_for(table, form.kind(), form.count(), Company::Batches)?;
        let state = self.table(table)?;
        let (copy, has_patches) = (state.copy, state.patched.is_some());
        slot.flag.lower();
        let result_bytes = form.result_bytes().unwrap_or(launch.result_bytes);
        slot.outcome = Outcome { error: None, result_bytes, version: state.version };
        let reads_on = match self.way(&slot.request) {
            Way::Mapped => {
                self.after_patch(table, slot.stream, Some(&mut slot.waited_for))?;
                let mut batch = KernelBatch::new(slot.keys.device, form, slot.results.device);
                let shape = launch.mapped_shape_for(batch.count);
                if shape.blocks == 1 {
                    (batch.done, batch.mark) = slot.flag.next();
                }
                // SAFETY: keys and results are pinned, long enough (`request` saw to that), and stay with the
                // flight, untouched until the kernel has no more use for them (`flag`), and at their place
                // until it has ended; so does the table.
                unsafe { self.start(slot.stream, &launch, shape, &batch) }?;
                false
            }
            Way::Copies => {
                // SAFETY: as in `copies`.
                unsafe { self.copies(slot, form, &launch, Some(table), has_patches) }?;
                has_patches
            }
            Way::Graphs => {
                self.after_patch(table, slot.stream, Some(&mut slot.waited_for))?;
                self.replayed(slot, &launch)?;
                false
            }
        };
        self.driver.record(slot.done, slot.stream)?;
        Ok((copy, reads_on))
    }

    /// Refuses keys that were packed before the table began to depend on more of their bits.
    fn check_keys(&self, table: u64, kind: Kind) -> Result<()> {
        let Kind::Bytes(asked) = kind else { return Ok(()) };
        let least = self.table(table)?.least_key_bytes;
        if asked < least { Err(GpuError::NarrowKeys { asked, least }) } else { Ok(()) }
    }

    fn way(&self, request: &Request) -> Way {
        match (request.way, self.shared.options.transfer) {
            (Some(way), _) | (None, Transfer::Always(way)) => way,
            (None, Transfer::Auto) => {
                // One more batch is under way beside this one: then the time for all counts, not the time for
                // this one.
                let is_busy = self.flights.iter().any(|flight| matches!(flight.cargo, Cargo::Batch(_)));
                match &self.choice {
                    Some(choice) => choice.best(request.form.bytes(), is_busy),
                    None if request.form.count() <= 1 << 18 => Way::Mapped,
                    None => Way::Copies,
                }
            }
        }
    }

    /// Submits the copy of keys, the kernel, and the copy of results. The kernel waits for the table's last
    /// patch before it starts, and afterwards it notes that it has read.
    ///
    /// # Safety
    /// The slot stays, untouched by anybody else, until its stream is done; so does the table.
    unsafe fn copies(
        &mut self,
        slot: &mut Slot,
        form: Form,
        launch: &Launch,
        waits_for: Option<u64>,
        notes: bool,
    ) -> Result<()> {
        let stream = slot.stream;
        // SAFETY: `request` held the form's bytes against the length of the pinned keys, and the device's are
        // as long; the caller promises the rest.
        unsafe { self.driver.copy_in(stream, slot.device_keys, slot.keys.host, form.bytes()) }?;
        if let Some(table) = waits_for {
            self.after_patch(table, stream, Some(&mut slot.waited_for))?;
        }
        let batch = KernelBatch::new(slot.device_keys, form, slot.device_results);
        // SAFETY: the caller promises that all stay; the keys are there as the copy comes before in the same
        // stream.
        unsafe { self.start(stream, launch, launch.shape_for(batch.count), &batch) }?;
        if notes {
            self.driver.record(slot.looked_up, stream)?;
        }
        let bytes = form.count() * form.result_bytes().unwrap_or(launch.result_bytes);
        // SAFETY: `count` is no more than the slot's capacity, a result no wider than slots are made for
        // (both checked before).
        unsafe { self.driver.copy_out(stream, slot.results.host, slot.device_results, bytes) }
    }

    fn replayed(&mut self, slot: &mut Slot, launch: &Launch) -> Result<()> {
        let form = slot.request.form.rounded(slot.keys.len);
        let recorded = Recorded { launch: launch.id, form };
        let graph = match slot.graphs.plan(recorded) {
            // SAFETY: the slot is with the flight until it is done; so is the table, whose order against
            // patches is the caller's.
            Plan::Plain => return unsafe { self.copies(slot, form, launch, None, false) },
            Plan::Replay(graph) => graph,
            Plan::Record => {
                self.driver.begin_capture(slot.stream)?;
                // SAFETY: nothing is done until the graph is replayed; for that see below.
                let copied = unsafe { self.copies(slot, form, launch, None, false) };
                // The recording is ended in any case; otherwise the stream would record for ever.
                let graph = self.driver.end_capture(slot.stream);
                copied?;
                let graph = graph?;
                slot.graphs.keep(recorded, graph, &mut *self.driver);
                graph
            }
        };
        // SAFETY: its buffers are this slot's, and stay with the flight; the table's copy is that of
        // `launch`, whose id no other has.
        unsafe { self.driver.replay(graph, slot.stream) }
    }

    /// # Safety
    /// As [`Driver::launch`](crate::driver::Driver::launch): keys, results and the table stay until the
    /// stream has done this.
    pub(super) unsafe fn start(
        &mut self,
        stream: Stream,
        launch: &Launch,
        shape: Shape,
        batch: &KernelBatch,
    ) -> Result<()> {
        let batch = batch.or_results_of(launch.result_bytes);
        let arguments = [bytes_of(&batch), &launch.argument[..]];
        // SAFETY: the kernel is one of a program that says that it takes this table; batches are what every
        // such kernel takes.
        unsafe { self.driver.launch(stream, &launch.kernel, shape, arguments) }
    }

    /// Submits a lookup in a caller's stream.
    pub(super) fn lookup_on(&mut self, lookup: &OnDevice) -> Result<Enqueued> {
        let &OnDevice { table, stream, keys, results, .. } = lookup;
        let DeviceKeys { kind, count, first, second, result_bytes } = keys;
        self.check_keys(table, kind)?;
        let state = self.table(table)?;
        let result_bytes =
            result_bytes.unwrap_or_else(|| state.programs[0].result_bytes.max(state.least_result_bytes));
        results.check(count, result_bytes)?;
        let (copy, version) = (state.copy, state.version);
        if count == 0 {
            return Ok(Enqueued { result_bytes, version });
        }
        self.flush(table)?;
        let launch = self.launch_for(table, kind, count, Company::Nothing)?;
        self.after_patch(table, stream, None)?;
        let second = second.unwrap_or(DevicePtr(0));
        let batch = KernelBatch::of(first, second, results.at, count, Some(result_bytes));
        // SAFETY: the caller of `Gpu::lookup_on` promises it for keys and results, whose memory is long
        // enough; the table stays with the flight.
        unsafe { self.start(stream, &launch, launch.shape_for(batch.count), &batch) }?;
        let event = self.spare_event()?;
        self.driver.record(event, stream)?;
        self.take_off(event, event, Some(copy), Cargo::Foreign);
        Ok(Enqueued { result_bytes, version })
    }

    pub(super) fn table(&self, table: u64) -> Result<&super::TableState> {
        // A table's handle exists while somebody submits, so nobody sees this error.
        self.tables.get(&table).ok_or_else(|| GpuError::Unsupported("a table that is gone".into()))
    }
}
