//! The submission of a batch to its stream.
//!
//! ```text
//! Copies   keys in ─► (patch) ─► kernel ─► [looked up] ─► results out ─► [done]
//! Mapped              (patch) ─► kernel ─► [done]      with others (`joined`); blocks say that they are done (`flag`)
//! Graphs              (patch) ─► keys in, kernel, results out as one ─► [done]
//! ```
//!
//! `(patch)` waits for the table's last patch, if it is still under way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytemuck::bytes_of;

use super::launch::Launch;
use super::{Cargo, Flight, Owner};
use crate::driver::batches::{Batches, KernelBatch};
use crate::driver::{DevicePtr, Event, Graph, Shape, Stream};
use crate::error::GpuError;
use crate::runtime::Result;
use crate::runtime::command::OnDevice;
use crate::runtime::form::Form;
use crate::runtime::graphs::{Plan, Recorded};
use crate::runtime::on_device::{DeviceKeys, Enqueued};
use crate::runtime::options::{Transfer, Way};
use crate::runtime::slot::{Outcome, Request, Slot, Slots};
use crate::runtime::tune::Company;
use wirespeed_image::device::Kind;

/// A batch in this form, without a word to say in that it is done. A table's results have `result_bytes`
/// bytes if the form does not state it.
pub(super) fn kernel_batch(
    keys: DevicePtr,
    form: Form,
    results: DevicePtr,
    result_bytes: usize,
) -> KernelBatch {
    let low = form.second().map_or(DevicePtr(0), |second| keys.plus(second as u64));
    KernelBatch {
        keys,
        low,
        results,
        count: form.count() as u64,
        done: DevicePtr(0),
        mark: 0,
        result_bytes: few(form.result_bytes().unwrap_or(result_bytes)),
    }
}

/// Bytes of a result, at most 8.
fn few(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(0)
}

/// What a batch needs to be sent.
pub(super) struct Ready {
    pub(super) table: u64,
    /// The copy of the table.
    pub(super) copy: u64,
    pub(super) launch: Arc<Launch>,
    has_patches: bool,
    way: Way,
}

#[allow(unsafe_code)] // copies and launches
impl Owner {
    pub(super) fn submit(&mut self, mut slot: Box<Slot>) {
        let ready = self.caught(|owner| owner.ready(&mut slot));
        match ready {
            Ok(ready) if ready.way == Way::Mapped => self.join(slot, ready),
            Ok(ready) => {
                self.launch_joined();
                let sent = self.caught(|owner| owner.enqueue(&mut slot, &ready));
                self.sent(sent, ready.copy, slot.stream, vec![slot]);
            }
            Err(error) => self.refuse(&error, slot.stream, vec![slot]),
        }
    }

    /// Does a part of a submission, unless the device is lost. A panic must not lose the slots, because
    /// threads wait for them.
    pub(super) fn caught<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.alive()?;
        catch_unwind(AssertUnwindSafe(|| part(self)))
            .unwrap_or_else(|_| Err(GpuError::Lost("its owner thread panicked".into())))
    }

    /// Takes off with batches that were sent to a stream, or refuses them. The events are the end of all
    /// work, and the end of the reading of the table.
    pub(super) fn sent(&mut self, sent: Result<[Event; 2]>, copy: u64, stream: Stream, slots: Slots) {
        match sent {
            Ok([event, read]) => self.take_off(event, read, Some(copy), Cargo::Batches(stream, slots)),
            Err(error) => self.refuse(&error, stream, slots),
        }
    }

    fn refuse(&mut self, error: &GpuError, stream: Stream, slots: Slots) {
        // Work that was sent before the error may still be under way, and use the slots.
        if !error.is_fatal()
            && let Err(worse) = self.driver.synchronize(stream)
        {
            self.fail(&worse);
        }
        // This is first, so that a thread that learns of a loss finds no part that looks usable.
        self.note(error);
        self.hand_out_failed(slots, error);
    }

    /// Checks a batch, and chooses what it is sent with.
    fn ready(&mut self, slot: &mut Slot) -> Result<Ready> {
        let Request { table, form, .. } = slot.request;
        self.check_keys(table, form.kind())?;
        self.flush(table)?;
        let launch = self.launch_for(table, form.kind(), form.count(), Company::Batches)?;
        let state = self.table(table)?;
        let (copy, has_patches) = (state.copy, state.patched.is_some());
        slot.flag.lower();
        let result_bytes = form.result_bytes().unwrap_or(launch.result_bytes);
        slot.outcome = Outcome { error: None, result_bytes, version: state.version };
        Ok(Ready { table, copy, launch, has_patches, way: self.way(&slot.request) })
    }

    /// Submits a batch to its stream, by copies or a graph. Returns the end of all work, and the end of the
    /// reading of the table.
    fn enqueue(&mut self, slot: &mut Slot, ready: &Ready) -> Result<[Event; 2]> {
        let &Ready { table, ref launch, has_patches, .. } = ready;
        let notes = ready.way == Way::Copies && has_patches;
        if ready.way == Way::Graphs {
            self.after_patch(table, slot.stream, Some(&mut slot.waited_for))?;
            self.replayed(slot, launch)?;
        } else {
            let form = slot.request.form;
            // SAFETY: the slot is with the flight until its work is done; so is the table.
            unsafe { self.copies(slot, form, launch, Some(table), notes) }?;
        }
        let event = self.spare_event()?;
        self.driver.record(event, slot.stream)?;
        Ok([event, if notes { slot.looked_up } else { event }])
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
                let is_batch = |flight: &Flight| matches!(flight.cargo, Cargo::Batches(..));
                let is_busy = self.joined.is_some() || self.flights.iter().any(is_batch);
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
        let batch = kernel_batch(slot.device_keys, form, slot.device_results, launch.result_bytes);
        // SAFETY: the caller promises that all stay; the keys are there as the copy comes before in the same
        // stream.
        unsafe { self.start(stream, launch, launch.shape_for(batch.count), &[batch]) }?;
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
            Plan::Record => match self.record(slot, form, launch) {
                Ok(graph) => {
                    slot.graphs.keep(recorded, graph, &mut *self.driver);
                    graph
                }
                // Other code of the process ends a recording, for example by waiting for the whole context.
                // SAFETY: as for a plain batch.
                Err(GpuError::Call { .. }) => return unsafe { self.copies(slot, form, launch, None, false) },
                Err(error) => return Err(error),
            },
        };
        // SAFETY: its buffers are this slot's, and stay with the flight; the table's copy is that of
        // `launch`, whose id no other has.
        unsafe { self.driver.replay(graph, slot.stream) }
    }

    /// Records the work of a batch.
    fn record(&mut self, slot: &mut Slot, form: Form, launch: &Launch) -> Result<Graph> {
        self.driver.begin_capture(slot.stream)?;
        // SAFETY: nothing is done until the graph is replayed, and whoever does that promises the rest.
        let copied = unsafe { self.copies(slot, form, launch, None, false) };
        // The recording is ended in any case; otherwise the stream would record for ever.
        let graph = self.driver.end_capture(slot.stream);
        copied.and(graph)
    }

    /// Launches a lookup of batches, each in a row of blocks of this shape.
    ///
    /// # Safety
    /// As [`Driver::launch`](crate::driver::Driver::launch): keys, results and the table stay until the
    /// stream has done this.
    pub(super) unsafe fn start(
        &mut self,
        stream: Stream,
        launch: &Launch,
        shape: Shape,
        batches: &[KernelBatch],
    ) -> Result<()> {
        let shape = Shape { rows: u32::try_from(batches.len()).unwrap_or(u32::MAX), ..shape };
        let batches = Batches::of(batches);
        let arguments = [bytes_of(&batches), &launch.argument[..]];
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
        let batch = KernelBatch {
            keys: first,
            low: second.unwrap_or(DevicePtr(0)),
            results: results.at,
            count: count as u64,
            done: DevicePtr(0),
            mark: 0,
            result_bytes: few(result_bytes),
        };
        // SAFETY: the caller of `Gpu::lookup_on` promises it for keys and results, whose memory is long
        // enough; the table stays with the flight.
        unsafe { self.start(stream, &launch, launch.shape_for(batch.count), &[batch]) }?;
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
