//! [`Batch`], [`Ticket`] and [`Done`]: a slot that is lent to a submitter, a slot under way, and a slot back
//! with its results.

use std::sync::Arc;
use std::time::Instant;

use super::command::Command;
use super::core::Core;
use super::form::Form;
use super::options::Way;
use super::planes::Planes;
use super::reply::Reply;
use super::slot::{Outcome, Request, Slot};
use super::table::TableHandle;
use crate::error::GpuError;
use wirespeed_image::device::Kind;

/// The fewest threads that took a device's last batches from which on keys are written past the caches.
const STREAMING: usize = 4;

/// Batches of so many bytes of keys are not streamed, nor are larger ones: when a device reads them, the
/// caches have let go of the first keys.
const MOST_STREAMED: usize = 2 << 20;

/// Pinned memory for the keys of one batch, to fill in place. If it is dropped without being submitted, it
/// returns to the pool.
pub struct Batch {
    lent: Lent,
}

/// A batch under way. Dropping it drops the results when the device is done.
#[must_use = "a ticket that is dropped drops the results"]
pub struct Ticket {
    // The field comes before the core, so that the slot is back before the owner may end.
    reply: Option<Arc<Reply>>,
    core: Arc<Core>,
}

/// A batch that has come back, with its results or an error, and with its keys in both cases. Dropping it
/// frees the slot.
pub struct Done {
    lent: Lent,
}

/// A slot from the pool. Dropping it returns it to the pool.
struct Lent {
    slot: Option<Box<Slot>>,
    core: Arc<Core>,
}

impl Batch {
    pub(super) fn new(core: Arc<Core>, slot: Box<Slot>) -> Self {
        Self { lent: Lent { slot: Some(slot), core } }
    }

    /// Takes the slot out, for the owner.
    pub(super) fn into_slot(mut self) -> Box<Slot> {
        self.lent.slot.take().expect("a batch has its slot until it is sent")
    }

    /// The number of keys that the batch holds.
    pub fn capacity(&self) -> usize {
        self.lent.slot().capacity
    }

    /// Whether so many bytes of keys that are copied from slices are written past the caches.
    ///
    /// A device is slow to read lines that a core's cache holds changed, and slower the more cores there are.
    /// But a thread alone writes to its cache twice as fast as past it.
    pub fn is_streamed(&self, bytes: usize) -> bool {
        self.lent.slot().feeders >= STREAMING && bytes < MOST_STREAMED
    }

    /// Whether `count` keys of `key_bytes` bytes that are packed from a slice are written past the caches: if
    /// many threads feed the device, and a thread's keys under way fit a core's cache with these.
    ///
    /// With more keys under way the cache has let go of them when the device reads them. Then 15 threads with
    /// 4 batches of 256 K each sent 16.5 G keys a second to their caches, and 13.8 past them (IPv4, H100).
    pub fn is_streamed_when_packed(&self, key_bytes: usize, count: usize) -> bool {
        let under_way = usize::try_from(self.lent.core.shared.load.now()).unwrap_or(usize::MAX);
        let of_thread = under_way / self.lent.slot().feeders.max(1);
        self.is_streamed(key_bytes.saturating_mul(of_thread.saturating_add(count)))
    }

    /// Whether the batch belongs to the device of a table.
    pub fn is_beside(&self, table: &TableHandle) -> bool {
        table.is_of(&self.lent.core)
    }

    /// All bytes of the batch.
    pub fn keys(&self) -> &[u8] {
        self.lent.slot().keys()
    }

    /// All bytes of the batch. They still hold an earlier batch's content.
    pub fn keys_mut(&mut self) -> &mut [u8] {
        self.lent.slot_mut().keys_mut()
    }

    /// The planes of `count` keys. The second is empty if the keys have one plane. Panics if the keys don't
    /// fit.
    pub fn planes_mut(&mut self, key_bytes: usize, count: usize) -> (&mut [u8], &mut [u8]) {
        let planes = Planes::of(key_bytes);
        let (first, second) = planes.widths();
        let all = self.keys_mut();
        let low = planes.low(count).unwrap_or(first * count);
        let (head, tail) = all.split_at_mut(low);
        (&mut head[..first * count], &mut tail[..second * count])
    }

    /// Sends the batch: `count` keys of `key_bytes` bytes, in the layout of [`Planes`]. Never waits for the
    /// device. Errors are in the ticket.
    pub fn submit(self, table: &TableHandle, key_bytes: usize, count: usize) -> Ticket {
        self.send(table, key_bytes, count, None)
    }

    /// Sends the batch like [`submit`](Self::submit), by this transfer.
    pub fn submit_by(self, way: Way, table: &TableHandle, key_bytes: usize, count: usize) -> Ticket {
        self.send(table, key_bytes, count, Some(way))
    }

    /// Sends keys of any length in this form. Never waits for the device. Errors are in the ticket.
    pub fn submit_form(self, table: &TableHandle, form: Form) -> Ticket {
        self.send_form(table, Ok(form), None)
    }

    /// Sends keys like [`submit_form`](Self::submit_form), by this transfer.
    pub fn submit_form_by(self, way: Way, table: &TableHandle, form: Form) -> Ticket {
        self.send_form(table, Ok(form), Some(way))
    }

    fn send(self, table: &TableHandle, key_bytes: usize, count: usize, way: Option<Way>) -> Ticket {
        let too_many = GpuError::TooManyKeys { asked: count, most: self.capacity() };
        self.send_form(table, Form::keys(key_bytes, count).ok_or(too_many), way)
    }

    fn send_form(self, table: &TableHandle, form: super::Result<Form>, way: Option<Way>) -> Ticket {
        let core = Arc::clone(&self.lent.core);
        let mut slot = self.into_slot();
        let reply = Arc::clone(&slot.reply);
        let ticket = Ticket { reply: Some(Arc::clone(&reply)), core: Arc::clone(&core) };
        let request = form.and_then(|form| request(&core, &slot, table, form, way));
        match request {
            Err(error) => {
                slot.request = Request::NONE;
                slot.outcome = Outcome::failed(error);
                reply.complete(slot);
            }
            Ok(request) if request.form.count() == 0 => {
                slot.request = request;
                slot.outcome = Outcome { version: table.version(), ..Outcome::NONE };
                reply.complete(slot);
            }
            Ok(request) => {
                slot.request = request;
                slot.outcome = Outcome::NONE;
                let count = request.form.count();
                core.shared.load.add(count);
                if let Err(Command::Submit(mut slot)) = core.send(Command::Submit(slot)) {
                    core.shared.load.done(count);
                    slot.outcome = Outcome::failed(core.shared.why_lost());
                    reply.complete(slot);
                }
            }
        }
        ticket
    }
}

/// Checks a request against the sizes of the slot.
fn request(
    core: &Arc<Core>,
    slot: &Slot,
    table: &TableHandle,
    form: Form,
    way: Option<Way>,
) -> super::Result<Request> {
    if let Some(lost) = core.shared.lost.get() {
        return Err(lost.clone());
    }
    if !table.is_of(core) {
        return Err(GpuError::OtherDevice);
    }
    let options = &core.shared.options;
    if let Kind::Bytes(asked) = form.kind()
        && asked > options.key_bytes
    {
        return Err(GpuError::TooWide { what: "keys", asked, most: options.key_bytes });
    }
    if let Some(asked) = form.result_bytes().filter(|&asked| asked > options.result_bytes) {
        return Err(GpuError::TooWide { what: "results", asked, most: options.result_bytes });
    }
    if form.count() > slot.capacity || form.bytes() > slot.keys.len {
        return Err(GpuError::TooManyKeys { asked: form.count(), most: slot.capacity });
    }
    Ok(Request { table: table.id(), form, way })
}

impl Ticket {
    /// Whether the batch has come back.
    pub fn is_done(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.is_there())
    }

    /// Waits until the batch has come back: polls for [`GpuOptions::spin`](super::GpuOptions::spin), then
    /// sleeps. It always ends, if necessary with [`GpuError::TimedOut`].
    pub fn wait(mut self) -> Done {
        let spin = self.core.shared.options.spin;
        loop {
            let came = self.reply.as_ref().and_then(|reply| reply.take(spin, None));
            if let Some(slot) = came {
                return self.done(slot);
            }
        }
    }

    /// The results, if the batch has come back; otherwise the ticket.
    pub fn try_wait(mut self) -> Result<Done, Self> {
        match self.reply.as_ref().and_then(|reply| reply.try_take()) {
            Some(slot) => Ok(self.done(slot)),
            None => Err(self),
        }
    }

    /// Waits until the deadline at most.
    pub fn wait_until(mut self, deadline: Instant) -> Result<Done, Self> {
        let spin = self.core.shared.options.spin;
        match self.reply.as_ref().and_then(|reply| reply.take(spin, Some(deadline))) {
            Some(slot) => Ok(self.done(slot)),
            None => Err(self),
        }
    }

    fn done(&mut self, slot: Box<Slot>) -> Done {
        self.reply = None;
        Done { lent: Lent { slot: Some(slot), core: Arc::clone(&self.core) } }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(slot) = self.reply.take().and_then(|reply| reply.abandon()) {
            self.core.shared.pool.give_back(slot);
        }
    }
}

impl Done {
    /// Number of keys.
    pub fn count(&self) -> usize {
        self.lent.slot().request.form.count()
    }

    /// The results, one for each key, of [`result_bytes`](Self::result_bytes) bytes each, little-endian; or
    /// the error.
    pub fn results(&self) -> Result<&[u8], &GpuError> {
        let slot = self.lent.slot();
        match &slot.outcome.error {
            Some(error) => Err(error),
            None => Ok(slot.results()),
        }
    }

    /// The submitted keys, and the bytes after them.
    pub fn keys(&self) -> &[u8] {
        self.lent.slot().keys()
    }

    /// The form of the keys.
    pub fn form(&self) -> Form {
        self.lent.slot().request.form
    }

    /// Whether the batch belongs to the device of a table.
    pub fn is_beside(&self, table: &TableHandle) -> bool {
        table.is_of(&self.lent.core)
    }

    /// Sends the keys once more, in this form. They stay in the slot, whatever comes of it: errors are in the
    /// ticket.
    pub fn submit_form(mut self, table: &TableHandle, form: Form) -> Ticket {
        let slot = self.lent.slot.take().expect("what is done has its slot");
        Batch::new(Arc::clone(&self.lent.core), slot).submit_form(table, form)
    }

    /// Bytes of a result.
    pub fn result_bytes(&self) -> usize {
        self.lent.slot().outcome.result_bytes
    }

    /// The version of the table's state that the batch saw ([`TableHandle::version`]).
    pub fn version(&self) -> u64 {
        self.lent.slot().outcome.version
    }

    /// Reuses the slot for the next batch, without the pool. The keys are still there. After an error the
    /// pool decides whether the slot is lent again.
    pub fn into_batch(mut self) -> super::Result<Batch> {
        if let Some(lost) = self.lent.core.shared.lost.get() {
            return Err(lost.clone());
        }
        let slot = self.lent.slot.take().expect("what is done has its slot");
        Ok(Batch::new(Arc::clone(&self.lent.core), slot))
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("is_done", &self.is_done()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outcome = &self.lent.slot().outcome;
        f.debug_struct("Done").field("count", &self.count()).field("outcome", outcome).finish_non_exhaustive()
    }
}

impl Lent {
    fn slot(&self) -> &Slot {
        self.slot.as_ref().expect("the slot is taken out only when this ends")
    }

    fn slot_mut(&mut self) -> &mut Slot {
        self.slot.as_mut().expect("the slot is taken out only when this ends")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.core.shared.pool.give_back(slot);
        }
    }
}
